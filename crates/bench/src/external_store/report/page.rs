//! One self-contained HTML page about one outcome, or about several side by side.

use super::super::result::{Outcome, Settings, Times};
use crate::report::chart::{escape, Across, Chart, Line, Scale};
use crate::report::page::{color, key, STYLE};
use std::fmt::Write;
use teak_console::amounts::bytes;

/// The page. Each corpus has a part of its own, whose ratios are to InnoDB, or to its first outcome where there is
/// none.
pub fn html(outcomes: &[Outcome]) -> String {
    let mut out = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>External store</title>",
    );
    let _ = write!(out, "<style>{STYLE}</style></head><body><h1>A wiki's store of texts</h1>");
    let mut parts: Vec<Vec<Outcome>> = Vec::new();
    for outcome in outcomes {
        match parts.iter_mut().find(|part| corpus(&part[0]) == corpus(outcome)) {
            Some(part) => part.push(outcome.clone()),
            None => parts.push(vec![outcome.clone()]),
        }
    }
    parts.iter().for_each(|part| compare(&mut out, part));
    out.push_str("</body></html>\n");
    out
}

/// What makes texts, and what is read of them, the same.
fn corpus(outcome: &Outcome) -> (&str, bool, u64, u64, u64, bool) {
    let settings = &outcome.settings;
    let Settings { unrelated, histories, revisions, seed, newest, .. } = *settings;
    (&settings.form, unrelated, histories, revisions, seed, newest)
}

/// Outcomes of one corpus side by side.
fn compare(out: &mut String, outcomes: &[Outcome]) {
    if let Some(first) = outcomes.first() {
        about(out, first);
    }
    out.push_str("<h3>Rates and sizes</h3>");
    rates(out, outcomes);
    out.push_str("<h3>Times, ms</h3>");
    times(out, outcomes);
    let labels = || outcomes.iter().map(|outcome| outcome.label.as_str());
    let chart = |unit, scale, across, values: &dyn Fn(&Outcome) -> Vec<f64>| {
        let lines = outcomes.iter().enumerate().map(|(index, outcome)| Line {
            label: outcome.label.clone(),
            color: color(index),
            values: values(outcome).into_iter().map(Some).collect(),
        });
        Chart { unit, scale, across, lines: lines.collect(), bands: Vec::new() }.svg()
    };
    for (title, last) in
        [("Time of a query by percent of the queries, last run", true), ("The same, first run", false)]
    {
        let _ = write!(out, "<h3>{title}</h3>");
        key(out, labels());
        let curve = |outcome: &Outcome| if last { &outcome.last_curve } else { &outcome.first_curve }.clone();
        out.push_str(&chart("ms", Scale::Logarithmic, Across::Percent, &curve));
    }
    out.push_str("<h3>Queries a second, from the start of the first run</h3>");
    key(out, labels());
    let series = |outcome: &Outcome| outcome.series.iter().map(|count| *count as f64).collect();
    out.push_str(&chart("queries/s", Scale::Linear, Across::Seconds, &series));
}

fn about(out: &mut String, first: &Outcome) {
    let settings = &first.settings;
    let corpus = match settings.unrelated {
        true => format!("{} unrelated texts", first.records),
        false => format!("{} pages with {} revisions each", settings.histories, settings.revisions),
    };
    let _ = write!(
        out,
        "<h2>Texts {}</h2><p class=\"note\">{}: {corpus}, {} of texts, {} stored ({}), in {} tables. {} threads read {} random ids{} each in a run, \
         beside {} inserts a second; every value that was read was compared with what was stored.</p>",
        if settings.form == "plain" { "as they are" } else { "gzipped" },
        escape(&first.server),
        bytes(first.text_bytes as f64),
        bytes(first.value_bytes as f64),
        escape(&settings.form),
        settings.tables,
        settings.threads,
        settings.group,
        if settings.newest { " of newest revisions" } else { "" },
        settings.inserts_per_second,
    );
}

fn rates(out: &mut String, outcomes: &[Outcome]) {
    let base =
        outcomes.iter().find(|outcome| outcome.engine.eq_ignore_ascii_case("InnoDB")).or(outcomes.first());
    out.push_str(
        "<table><tr><th>engine</th><th>stored</th><th>tables</th><th>on disk</th><th>ratio</th><th>load MB/s</th><th>first run/s</th>\
         <th>ratio</th><th>last run/s</th><th>ratio</th><th>from disk for a query: first</th><th>last</th></tr>",
    );
    for outcome in outcomes {
        let rate = |outcome: &Outcome, last: bool| {
            let run = if last { outcome.runs.last() } else { outcome.runs.first() };
            run.map(|run| run.queries_per_second)
        };
        let from_disk = |last: bool| {
            let run = if last { outcome.runs.last() } else { outcome.runs.first() };
            run.and_then(|run| run.disk_bytes_per_query).map_or("-".into(), bytes)
        };
        let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.0}"));
        let size = |outcome: &Outcome| Some(outcome.disk_bytes.unwrap_or(outcome.table_bytes) as f64);
        let to_base = |of: &dyn Fn(&Outcome) -> Option<f64>| ratio(of(outcome), base.and_then(of));
        let cells = [
            escape(&outcome.label),
            bytes(outcome.value_bytes as f64),
            bytes(outcome.table_bytes as f64),
            outcome.disk_bytes.map_or("-".into(), |count| bytes(count as f64)),
            to_base(&size),
            outcome.load.as_ref().map_or("-".into(), |load| format!("{:.1}", load.mb_per_second)),
            number(rate(outcome, false)) + if outcome.cold { "" } else { " (warm)" },
            to_base(&|outcome| rate(outcome, false)),
            number(rate(outcome, true)),
            to_base(&|outcome| rate(outcome, true)),
            from_disk(false),
            from_disk(true),
        ];
        row(out, &cells);
    }
    out.push_str("</table><p class=\"note\">Ratios are to InnoDB, or to the first line. The first run is with cold caches.</p>");
}

fn times(out: &mut String, outcomes: &[Outcome]) {
    out.push_str(
        "<table><tr><th>engine</th><th></th><th>count</th><th>mean</th><th>50 %</th><th>95 %</th><th>99 %</th><th>99.99 %</th><th>max</th></tr>",
    );
    let mut line = |label: &str, what: &str, times: &Times| {
        let figures = [times.mean, times.p50, times.p95, times.p99, times.p9999, times.max];
        let mut cells = vec![escape(label), what.into(), times.count.to_string()];
        cells.extend(figures.map(|figure| format!("{figure:.3}")));
        row(out, &cells);
    };
    for outcome in outcomes {
        if let (Some(first), Some(last)) = (outcome.runs.first(), outcome.last()) {
            line(&outcome.label, "first run", &first.times);
            line(&outcome.label, "last run", &last.times);
        }
        if let Some(inserts) = &outcome.inserts {
            line(&outcome.label, "inserts, all runs", &inserts.sent_times);
            line(&outcome.label, "the same, from when due", &inserts.times);
        }
    }
    out.push_str("</table><p class=\"note\">Inserts from when they were sent, and from when they were due. Percentiles are at most 1.6 % too large.</p>");
}

fn row(out: &mut String, cells: &[String]) {
    let _ = write!(out, "<tr><td>{}</td></tr>", cells.join("</td><td>"));
}

fn ratio(value: Option<f64>, base: Option<f64>) -> String {
    match (value, base) {
        (Some(value), Some(base)) if base > 0.0 => format!("{:.2}", value / base),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_store::result::Run;

    #[test]
    fn a_page_has_all_outcomes_and_nothing_that_is_not_valid() {
        let run = |rate| Run { queries_per_second: rate, ..Run::default() };
        let measured = Outcome {
            label: "a<b".into(),
            engine: "Teak".into(),
            runs: vec![run(50.0), run(200.0)],
            first_curve: vec![1.0; 100],
            last_curve: vec![0.5; 100],
            series: vec![3, 4],
            ..Outcome::default()
        };
        let innodb = Outcome {
            label: "second".into(),
            engine: "InnoDB".into(),
            runs: vec![run(100.0)],
            ..Outcome::default()
        };
        let page = html(&[measured.clone(), innodb]);
        assert!(page.contains("a&lt;b") && !page.contains("a<b") && page.contains("second"));
        assert!(page.contains("<td>0.50</td>") && page.contains("<td>2.00</td>"));
        assert!(!page.contains("NaN") && !page.contains("inf<") && !page.contains("<script"));
        assert_eq!(html(std::slice::from_ref(&measured)).matches("<svg").count(), 3);
        let mut plain = measured.clone();
        plain.settings.form = "plain".into();
        assert_eq!(html(&[measured, plain]).matches("<svg").count(), 6);
        assert!(html(&[Outcome::default()]).contains("<svg"));
    }
}
