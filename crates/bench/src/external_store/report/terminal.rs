//! One outcome as text.

use super::super::result::{Outcome, Run, Times};
use std::fmt::Write;
use teak_console::amounts::bytes;

/// A run in one line.
pub fn line(run: &Run) -> String {
    let from_disk = run.disk_bytes_per_query.map(|count| format!(", {} from disk for a query", bytes(count)));
    format!(
        "{:.0} queries a second, p50 {:.3} ms, p99 {:.3} ms, max {:.1} ms{}",
        run.queries_per_second,
        run.times.p50,
        run.times.p99,
        run.times.max,
        from_disk.unwrap_or_default()
    )
}

/// All of it.
pub fn text(outcome: &Outcome) -> String {
    let mut out = String::new();
    let ratio = outcome.table_bytes as f64 / outcome.value_bytes.max(1) as f64;
    let _ = writeln!(
        out,
        "\n{}: {} records, {} of texts, {} stored ({}); the tables have {} ({ratio:.3})",
        outcome.label,
        outcome.records,
        bytes(outcome.text_bytes as f64),
        bytes(outcome.value_bytes as f64),
        outcome.settings.form,
        bytes(outcome.table_bytes as f64)
    );
    if let Some(disk) = outcome.disk_bytes {
        let ratio = disk as f64 / outcome.value_bytes.max(1) as f64;
        let _ = writeln!(out, "on disk: {} ({ratio:.3})", bytes(disk as f64));
    }
    if let Some(load) = &outcome.load {
        let _ = writeln!(
            out,
            "load: {:.0} rows and {:.1} MB a second in INSERT statements ({:.1} s of {:.1} s)",
            load.rows_per_second, load.mb_per_second, load.insert_seconds, load.seconds
        );
    }
    for (number, run) in (1..).zip(&outcome.runs) {
        let cold = if number == 1 && outcome.cold { " (cold)" } else { "" };
        let _ = writeln!(out, "run {number}{cold}: {}", line(run));
    }
    if let (Some(first), Some(last)) = (outcome.runs.first(), outcome.last()) {
        let _ = writeln!(
            out,
            "{:<12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "ms", "count", "mean", "50 %", "95 %", "99 %", "99.99 %", "max"
        );
        row(&mut out, "first run", &first.times);
        row(&mut out, "last run", &last.times);
    }
    if let Some(inserts) = &outcome.inserts {
        row(&mut out, "inserts", &inserts.sent_times);
        row(&mut out, "from due", &inserts.times);
        let _ = writeln!(
            out,
            "every value that was read was right; {} inserted ones ({:.1} a second) were read back",
            inserts.verified, inserts.per_second
        );
    }
    out
}

fn row(out: &mut String, name: &str, times: &Times) {
    let _ = writeln!(
        out,
        "{name:<12}{:>10}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.1}",
        times.count, times.mean, times.p50, times.p95, times.p99, times.p9999, times.max
    );
}
