//! A run as a table for the terminal.

use crate::result::{Phase, Run};
use std::fmt::Write;

/// All phases, with every operation.
pub fn text(run: &Run) -> String {
    let mut out = String::new();
    for phase in &run.phases {
        table(&mut out, phase, run.phases.first());
    }
    for (failure, count) in &run.failures {
        let _ = writeln!(out, "FAILED {count} times: {failure}");
    }
    for inconsistency in &run.inconsistencies {
        let _ = writeln!(out, "INCONSISTENT: {inconsistency}");
    }
    if let Some(error) = run.snapshot.as_ref().and_then(|snapshot| snapshot.error.as_ref()) {
        let _ = writeln!(out, "SNAPSHOT LOST: {error}");
    }
    if run.unserved > 0 {
        let _ = writeln!(
            out,
            "{} requests were due and never sent: the server does not keep up with the rate",
            run.unserved
        );
    }
    out
}

fn table(out: &mut String, phase: &Phase, first: Option<&Phase>) {
    let share = first.filter(|first| first.name != phase.name && first.operations_per_second > 0.0);
    let share = share.map(|first| {
        format!(", {:.3} of the first phase", phase.operations_per_second / first.operations_per_second)
    });
    let repeated: u64 = phase.retries.values().sum();
    let _ = writeln!(
        out,
        "\n{}: {:.0} operations per second{}; {repeated} transactions repeated, {} failed",
        phase.name,
        phase.operations_per_second,
        share.unwrap_or_default(),
        phase.failures
    );
    let _ = writeln!(
        out,
        "{:<16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "ms", "count", "mean", "p50", "p95", "p99", "max"
    );
    let rows = phase.operations.iter().map(|(name, latency)| (name.as_str(), latency));
    for (name, latency) in rows.chain([("all", &phase.total)]) {
        let _ = writeln!(
            out,
            "{name:<16}{:>10}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.1}",
            latency.count, latency.mean, latency.p50, latency.p95, latency.p99, latency.max
        );
    }
}
