//! Counts of a running program over HTTP: `/metrics`, and `/` as a page that draws them.

use crate::progress::{Condition, Progress};
use std::io::Error;
use std::sync::Arc;
use teak_metrics::{page, Answer, Family, Kind, Listen, Listening, Site};

/// Answers whoever asks, on threads of its own.
pub fn listen(at: &Listen, sources: Arc<[Progress]>) -> Result<Listening, Error> {
    let site = Site::default()
        .with("/", || page(include_str!("metrics.html")))
        .with("/metrics", move || Answer::metrics(text(&sources)));
    teak_metrics::listen(at, site)
}

/// All counts.
fn text(sources: &[Progress]) -> String {
    type Count<'c> = &'c dyn Fn(&Progress) -> Option<u64>;
    let counts: [(&str, Kind, &str, Count<'_>); 10] = [
        ("transactions_total", Kind::Counter, "Transactions of the source that were applied", &|source| {
            Some(source.transactions.get())
        }),
        ("skipped_total", Kind::Counter, "Transactions that were passed over by skip", &|source| {
            Some(source.skipped.get())
        }),
        (
            "conflicts_total",
            Kind::Counter,
            "Rows that did not fit and were skipped or overwritten",
            &|source| Some(source.conflicts.get()),
        ),
        ("received_bytes_total", Kind::Counter, "Bytes of the source's log", &|source| {
            Some(source.bytes.get())
        }),
        ("connections_total", Kind::Counter, "How often it was begun to follow the source", &|source| {
            Some(source.connections.get())
        }),
        ("failures_total", Kind::Counter, "How often that ended for what passes", &|source| {
            Some(source.failures.get())
        }),
        ("done_above", Kind::Gauge, "Transactions that workers have applied above the position", &|source| {
            Some(source.done_above.get())
        }),
        ("tables_to_copy", Kind::Gauge, "Tables that are not copied yet", &|source| {
            Some(source.tables_to_copy.get())
        }),
        (
            "source_time_seconds",
            Kind::Gauge,
            "When the last applied transaction was committed at the source",
            &|source| Some(source.source_time.get()).filter(|&time| time != 0),
        ),
        (
            "behind_seconds",
            Kind::Gauge,
            "How long ago that was, 0 if the source has no others",
            &Progress::seconds_behind,
        ),
    ];
    let family = |name: &str, kind, help: &str| Family::new(&format!("teak_replicate_{name}"), kind, help);
    let mut states =
        family("state", Kind::Gauge, "What becomes of the source: 1 for the state that it is in");
    for source in sources {
        let now = source.state();
        for state in Condition::ALL {
            let labels = [("source", source.source.as_str()), ("state", state.name())];
            states.add(&labels, f64::from(u8::from(state == now)));
        }
    }
    let mut text = states.to_string();
    for (name, kind, help, count) in counts {
        let mut counted = family(name, kind, help);
        for source in sources {
            if let Some(count) = count(source) {
                counted.add(&[("source", &source.source)], count as f64);
            }
        }
        text += &counted.to_string();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_as_prometheus_reads_them() {
        let sources = [Progress::new("a"), Progress::new("b")];
        sources[1].becomes(Condition::Paused);
        sources[1].transactions.set(7);
        let body = text(&sources);
        for line in [
            "# TYPE teak_replicate_transactions_total counter",
            "teak_replicate_transactions_total{source=\"b\"} 7",
            "teak_replicate_state{source=\"b\",state=\"paused\"} 1",
            "teak_replicate_state{source=\"b\",state=\"following\"} 0",
            "teak_replicate_state{source=\"a\",state=\"beginning\"} 1",
        ] {
            assert!(body.lines().any(|other| other == line), "{line}: {body}");
        }
        assert!(!body.contains("behind_seconds"), "what is not known is told: {body}");
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = format!("{:?}", page(include_str!("metrics.html")));
        assert!(
            page.contains("<html") && page.contains("function chart(") && !page.contains("://"),
            "{page}"
        );
    }
}
