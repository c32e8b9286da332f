//! What a run measured, as it is written to JSON and read again for pages.

use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// The first field of every file, by which `teak-bench report` knows what it is.
pub const FORMAT: &str = "teak-external-store-1";

/// One engine with one corpus.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// [`FORMAT`].
    pub format: String,
    /// What it is called in reports: the engine, unless a name was given.
    pub label: String,
    pub engine: String,
    pub table_options: String,
    pub server: String,
    pub settings: Settings,
    /// Of the zlib that made the values.
    pub zlib: String,
    pub records: u64,
    /// Of all texts before compression, and of the values.
    pub text_bytes: u64,
    pub value_bytes: u64,
    /// Without it the tables were there before.
    pub load: Option<Load>,
    /// Data and indexes of the tables as the server says, right before the first run.
    pub table_bytes: u64,
    /// What the engine's files took from the disk then, if the data directory was given.
    pub disk_bytes: Option<u64>,
    /// Whether the server was restarted before the first run.
    pub cold: bool,
    pub runs: Vec<Run>,
    /// Time of the reads by percent of them, from 0 to 99: in the first run and in the last.
    pub first_curve: Vec<f64>,
    pub last_curve: Vec<f64>,
    /// Reads in each second, over all runs.
    pub series: Vec<u64>,
    pub inserts: Option<Inserts>,
}

/// How it was run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    pub tables: u64,
    pub histories: u64,
    pub revisions: u64,
    pub unrelated: bool,
    /// Only the last revision of each page was read. Files from before 2026-11-28 do not say.
    #[serde(default)]
    pub newest: bool,
    pub form: String,
    pub seed: u64,
    pub threads: u64,
    pub group: u64,
    pub inserts_per_second: f64,
}

/// The filling of the tables, by one connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    /// In all, with the waiting for texts that were still being made.
    pub seconds: f64,
    /// In INSERT statements alone; the rates are of these.
    pub insert_seconds: f64,
    pub rows_per_second: f64,
    /// Megabytes of values.
    pub mb_per_second: f64,
}

/// One run: each thread has read its group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    pub seconds: f64,
    pub queries_per_second: f64,
    pub times: Times,
    /// Bytes that the server read from disks for each query, if its process was given.
    pub disk_bytes_per_query: Option<f64>,
}

/// The inserts, over all runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Inserts {
    pub per_second: f64,
    /// From when each was due.
    pub times: Times,
    /// From when it was sent, which is late where the client waits for a processor or for the insert before.
    pub sent_times: Times,
    /// How many were read back at the end, and were right.
    pub verified: u64,
}

/// A distribution of times, in milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p9999: f64,
    pub max: f64,
}

impl From<&Histogram> for Times {
    fn from(histogram: &Histogram) -> Times {
        Times {
            count: histogram.count(),
            mean: histogram.mean_ms(),
            p50: histogram.percentile_ms(0.5),
            p95: histogram.percentile_ms(0.95),
            p99: histogram.percentile_ms(0.99),
            p9999: histogram.percentile_ms(0.9999),
            max: histogram.max_ms(),
        }
    }
}

/// The times of 0 to 99 percent.
pub fn curve(histogram: &Histogram) -> Vec<f64> {
    (0..100).map(|percent| histogram.percentile_ms(f64::from(percent) / 100.0)).collect()
}

impl Outcome {
    /// The last run.
    pub fn last(&self) -> Option<&Run> {
        self.runs.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn percentiles_are_of_all_times() {
        let mut histogram = Histogram::default();
        (1..=20_000).for_each(|n| histogram.record(Duration::from_micros(n)));
        let times = Times::from(&histogram);
        assert_eq!((times.count, times.max), (20_000, 20.0));
        for (found, exact) in [(times.p50, 10.0), (times.p95, 19.0), (times.p99, 19.8), (times.p9999, 19.998)]
        {
            assert!(found >= exact && found <= exact * 1.016, "{found} for {exact}");
        }
        let curve = curve(&histogram);
        assert_eq!(curve.len(), 100);
        assert!(curve.windows(2).all(|pair| pair[0] <= pair[1]) && curve[0] < 0.01);
    }
}
