//! One self-contained HTML page about one run, or about several side by side.

use super::chart::{escape, Across, Band, Chart, Line, Scale};
use crate::result::{Latency, Phase, Run, Second};
use std::collections::BTreeSet;
use std::fmt::Write;

const COLORS: [&str; 6] = ["#1b7837", "#2166ac", "#b35806", "#762a83", "#c51b7d", "#636363"];

/// The style sheet; a page has nothing else that is not text.
pub const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;margin:.6em 0}\
td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
th{font-weight:600}.chart{width:100%;height:auto}.grid{stroke:#ddd}.tick{font-size:11px;fill:#555}.band{fill:#fdecc8}\
.bandname{font-size:11px;fill:#8a6d1c}.line{fill:none;stroke-width:1.6;stroke-linejoin:round}.key{margin-right:1.4em;white-space:nowrap}\
.swatch{display:inline-block;width:1.4em;height:.28em;margin-right:.4em;vertical-align:middle}.bad{color:#b00020}.note{color:#555}";

/// The page.
pub fn html(runs: &[Run]) -> String {
    let mut out = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>LinkBench</title>",
    );
    let _ = write!(out, "<style>{STYLE}</style></head><body><h1>LinkBench</h1>");
    settings(&mut out, runs);
    problems(&mut out, runs);
    out.push_str("<h2>Phases</h2>");
    phases(&mut out, runs);
    let charts = [
        ("Operations per second", "ops/s", Scale::Linear, (|s| s.operations as f64) as fn(&Second) -> f64),
        ("Latency of all operations, 99th percentile of each second", "ms", Scale::Logarithmic, |s| s.p99),
        ("GET_LINKS_LIST, mean of each second", "ms", Scale::Logarithmic, |s| s.list_mean),
        ("GET_LINKS_LIST, 99th percentile of each second", "ms", Scale::Logarithmic, |s| s.list_p99),
    ];
    for (title, unit, scale, value) in charts {
        let _ = write!(out, "<h2>{title}</h2>");
        key(&mut out, runs.iter().map(|run| run.label.as_str()));
        out.push_str(&chart(runs, unit, scale, value).svg());
    }
    for run in runs {
        operations(&mut out, run);
    }
    out.push_str("</body></html>\n");
    out
}

/// The colour of a run, by its number.
pub fn color(index: usize) -> &'static str {
    COLORS[index % COLORS.len()]
}

/// Which colour is whose.
pub fn key<'a>(out: &mut String, labels: impl Iterator<Item = &'a str>) {
    out.push_str("<p>");
    for (index, label) in labels.enumerate() {
        let _ = write!(
            out,
            "<span class=\"key\"><span class=\"swatch\" style=\"background:{}\"></span>{}</span>",
            color(index),
            escape(label)
        );
    }
    out.push_str("</p>");
}

fn settings(out: &mut String, runs: &[Run]) {
    out.push_str("<table><tr><th>run</th><th>server</th><th>nodes</th><th>requesters</th><th>rate</th><th>load</th></tr>");
    for run in runs {
        let rate =
            if run.settings.rate > 0.0 { format!("{}/s", run.settings.rate) } else { "unlimited".into() };
        let load = run
            .load
            .as_ref()
            .map_or("before".into(), |load| format!("{:.0} s, {} links", load.seconds, load.links));
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{rate}</td><td>{load}</td></tr>",
            escape(&run.label),
            escape(&run.server),
            run.settings.max_id,
            run.settings.requesters
        );
    }
    out.push_str("</table>");
}

fn problems(out: &mut String, runs: &[Run]) {
    for run in runs {
        let label = escape(&run.label);
        for (failure, count) in &run.failures {
            let _ = write!(out, "<p class=\"bad\">{label}: {count} times {}</p>", escape(failure));
        }
        for inconsistency in &run.inconsistencies {
            let _ = write!(out, "<p class=\"bad\">{label}: {}</p>", escape(inconsistency));
        }
        if let Some(error) = run.snapshot.as_ref().and_then(|snapshot| snapshot.error.as_ref()) {
            let _ = write!(out, "<p class=\"bad\">{label}: the snapshot was lost: {}</p>", escape(error));
        }
        if run.unserved > 0 {
            let _ = write!(
                out,
                "<p class=\"bad\">{label}: {} requests were due and never sent</p>",
                run.unserved
            );
        }
    }
}

fn phases(out: &mut String, runs: &[Run]) {
    out.push_str(
        "<table><tr><th>run</th><th>phase</th><th>ops/s</th><th>to first</th><th>mean ms</th><th>p99 ms</th><th>max ms</th>\
         <th>GET_LINKS_LIST mean ms</th><th>to first</th><th>repeated</th></tr>",
    );
    for run in runs {
        let list = |phase: &Phase| phase.operations.get("GET_LINKS_LIST").map_or(0.0, |latency| latency.mean);
        for phase in &run.phases {
            let first = &run.phases[0];
            let _ = write!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{:.0}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td><td>{:.1}</td><td>{:.3}</td><td>{}</td><td>{}</td></tr>",
                escape(&run.label),
                escape(&phase.name),
                phase.operations_per_second,
                ratio(phase.operations_per_second, first.operations_per_second),
                phase.total.mean,
                phase.total.p99,
                phase.total.max,
                list(phase),
                ratio(list(phase), list(first)),
                phase.retries.values().sum::<u64>(),
            );
        }
    }
    out.push_str("</table><p class=\"note\">Latencies in milliseconds. With a rate they count from when the request was due. \
         Repeated: transactions after a deadlock, a lock wait that was too long or a row changed since the snapshot.</p>");
}

fn ratio(value: f64, first: f64) -> String {
    if first > 0.0 {
        format!("{:.3}", value / first)
    } else {
        "-".into()
    }
}

fn chart(runs: &[Run], unit: &'static str, scale: Scale, value: fn(&Second) -> f64) -> Chart {
    let lines = runs.iter().enumerate().map(|(index, run)| {
        let seconds = run.series.iter().map(|second| second.second as usize + 1).max().unwrap_or(0);
        let mut values = vec![None; seconds];
        for second in &run.series {
            let value = value(second);
            // A second in which nothing ended has no latency, but it has a throughput of 0.
            values[second.second as usize] =
                (second.operations > 0 || scale == Scale::Linear).then_some(value);
        }
        Line { label: run.label.clone(), color: color(index), values }
    });
    let mut seen = BTreeSet::new();
    let bands = runs
        .iter()
        .flat_map(|run| &run.phases)
        .filter(|phase| phase.snapshot)
        // Runs with the same phases would draw the same band over itself.
        .filter(|phase| seen.insert((phase.start as u64, phase.seconds as u64)))
        .map(|phase| Band {
            label: "a snapshot is open".into(),
            from: phase.start,
            to: phase.start + phase.seconds,
        });
    Chart { unit, scale, across: Across::Seconds, lines: lines.collect(), bands: bands.collect() }
}

fn operations(out: &mut String, run: &Run) {
    let _ = write!(
        out,
        "<h2>{}: operations</h2><table><tr><th>operation</th><th>phase</th><th>count</th>",
        escape(&run.label)
    );
    out.push_str("<th>mean</th><th>p50</th><th>p95</th><th>p99</th><th>max ms</th></tr>");
    let names: BTreeSet<&String> = run.phases.iter().flat_map(|phase| phase.operations.keys()).collect();
    for name in names {
        for phase in &run.phases {
            if let Some(latency) = phase.operations.get(name) {
                row(out, name, &phase.name, latency);
            }
        }
    }
    out.push_str("</table>");
}

fn row(out: &mut String, name: &str, phase: &str, latency: &Latency) {
    let Latency { count, mean, p50, p95, p99, max } = latency;
    let _ = write!(
        out,
        "<tr><td>{}</td><td>{}</td><td>{count}</td><td>{mean:.3}</td><td>{p50:.3}</td><td>{p95:.3}</td><td>{p99:.3}</td><td>{max:.1}</td></tr>",
        escape(name),
        escape(phase)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_else_and_escapes_names() {
        let phase = Phase { name: "before".into(), snapshot: true, seconds: 2.0, ..Phase::default() };
        let run = Run {
            label: "<x>".into(),
            phases: vec![phase.clone(), phase],
            series: vec![Second { second: 3, operations: 7, ..Second::default() }],
            ..Run::default()
        };
        let page = html(&[run.clone(), run, Run::default()]);
        assert!(!page.contains("<x>") && page.contains("&lt;x&gt;"));
        for outside in ["<script", "http:", "https:", "src=", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("NaN") && page.ends_with("</html>\n"));
        assert_eq!(page.matches("class=\"band\"").count(), 4, "one band a chart");
    }
}
