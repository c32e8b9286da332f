//! What a run of LinkBench measured, as it is written to JSON and read again for reports.

use super::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first field of every file, so that other JSON is refused.
pub const FORMAT: &str = "teak-linkbench-1";

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// [`FORMAT`].
    pub format: String,
    /// What the run is called in reports: the engine, unless a name was given.
    pub label: String,
    pub engine: String,
    pub server: String,
    pub settings: Settings,
    /// Without it, the tables were there before.
    pub load: Option<Load>,
    /// Operations before the first phase, which are in none of the figures below.
    pub warmup_operations: u64,
    pub phases: Vec<Phase>,
    /// One entry a second, from the start of the first phase (warm-up is not in it).
    pub series: Vec<Second>,
    /// Operations that failed for good, by operation and error, over all phases.
    pub failures: BTreeMap<String, u64>,
    /// Requests that were due before the end and never sent, because the server did not keep up with the rate.
    pub unserved: u64,
    /// What was wrong with the tables after the run; nothing if they were not verified.
    pub inconsistencies: Vec<String>,
    /// Seconds from BEGIN to the end of the long-running snapshot, and what went wrong with it.
    pub snapshot: Option<Snapshot>,
}

/// How it was run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    pub max_id: u64,
    pub seed: u64,
    pub requesters: u64,
    pub phase_seconds: u64,
    pub warmup_seconds: u64,
    /// Requests per second of all requesters; 0 is as fast as possible.
    pub rate: f64,
    pub isolation: String,
}

/// The loading of the tables.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    pub seconds: f64,
    pub loaders: u64,
    pub nodes: u64,
    pub links: u64,
    pub counts: u64,
}

/// One phase; the operations that ended in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    /// Whether the long-running snapshot was open.
    pub snapshot: bool,
    /// Seconds from the start of the first phase.
    pub start: f64,
    pub seconds: f64,
    pub operations_per_second: f64,
    /// All operations together.
    pub total: Latency,
    /// By LinkBench's name.
    pub operations: BTreeMap<String, Latency>,
    /// Transactions that were repeated, by error number.
    pub retries: BTreeMap<String, u64>,
    pub failures: u64,
}

/// A distribution of latencies, in milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// The operations that ended in one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// 0 is the first second of the first phase.
    pub second: u64,
    pub operations: u64,
    pub mean: f64,
    pub p99: f64,
    pub max: f64,
    /// Of GET_LINKS_LIST alone.
    pub list_mean: f64,
    pub list_p99: f64,
}

/// The long-running snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    pub seconds: f64,
    pub error: Option<String>,
}

impl From<&Histogram> for Latency {
    fn from(histogram: &Histogram) -> Latency {
        Latency {
            count: histogram.count(),
            mean: histogram.mean_ms(),
            p50: histogram.percentile_ms(0.5),
            p95: histogram.percentile_ms(0.95),
            p99: histogram.percentile_ms(0.99),
            max: histogram.max_ms(),
        }
    }
}

impl Run {
    /// Whether an operation failed, the tables are inconsistent or the snapshot was lost.
    pub fn has_errors(&self) -> bool {
        !self.failures.is_empty()
            || !self.inconsistencies.is_empty()
            || self.snapshot.as_ref().is_some_and(|snapshot| snapshot.error.is_some())
    }
}
