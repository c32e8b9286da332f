//! What was counted: by a thread, for the server's statistics of statements, and by all.

use std::os::raw::c_char;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use teak_core::server::{Count, Counts};
use teak_rows::engine::EngineHandle;
use teak_rows::metrics::{metrics, Kind, Metric, Unit};

use super::border::{put, Out, RawBytes, Room};
use super::engine::ask_engine;

/// It grows from the start on.
pub const TEAK_METRIC_COUNTER: u32 = 0;
/// It is what it is now.
pub const TEAK_METRIC_GAUGE: u32 = 1;
/// How often something took a time within a range.
pub const TEAK_METRIC_HISTOGRAM: u32 = 2;
const _: () = assert!(TEAK_METRIC_COUNTER == Kind::Counter as u32 && TEAK_METRIC_GAUGE == Kind::Gauge as u32);
const _: () = assert!(TEAK_METRIC_HISTOGRAM == Kind::Histogram as u32);
/// So many units of numbers there are, and none (0): bytes, seconds, milliseconds, microseconds.
pub const TEAK_METRIC_UNITS: u32 = 5;
const _: () = assert!(TEAK_METRIC_UNITS == Unit::Microseconds as u32 + 1);

/// A number with its name.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawMetric {
    /// Static, zero-terminated, lower case without the prefix "teak_", e.g. "cache_bytes_used".
    pub name: *const c_char,
    /// TEAK_METRIC_...
    pub kind: u32,
    /// Below TEAK_METRIC_UNITS.
    pub unit: u32,
    pub value: u64,
    /// The end of a histogram's range in microseconds; 0: none.
    pub up_to: u64,
    /// Static.
    pub help: RawBytes,
}

/// What the calling thread has counted; only differences mean anything.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawCounts {
    pub pages_accessed: u64,
    pub pages_updated: u64,
    /// Reads of files that it waited for.
    pub reads: u64,
    pub read_nanoseconds: u64,
    /// Blocks that it had other threads read.
    pub prefetched: u64,
    /// Versions that it passed.
    pub old_versions: u64,
}

/// What the calling thread has counted so far.
#[no_mangle]
pub extern "C" fn teak_thread_counts(out: Out<'_, RawCounts>) {
    let counts = Counts::of_this_thread();
    let raw = RawCounts {
        pages_accessed: counts.get(Count::PagesAccessed),
        pages_updated: counts.get(Count::PagesUpdated),
        reads: counts.get(Count::ReadsAwaited),
        read_nanoseconds: counts.get(Count::ReadNanoseconds),
        prefetched: counts.get(Count::Prefetched),
        old_versions: counts.get(Count::OldVersions),
    };
    put(out, raw);
}

/// Fills in all numbers, as far as there is room, and returns how many there are: by their names, the same each time.
/// Those of histograms only if `ranges` is 1.
#[no_mangle]
pub extern "C" fn teak_engine_metrics(
    handle: Option<&Arc<EngineHandle>>,
    ranges: u8,
    out: Room<'_, RawMetric>,
) -> usize {
    ask_engine(handle, |engine| {
        let metrics = metrics(engine, ranges != 0);
        let raw = |metric: &Metric| RawMetric {
            name: metric.name.as_ptr(),
            kind: metric.kind as u32,
            unit: metric.unit as u32,
            value: metric.value,
            up_to: metric.up_to.unwrap_or(0),
            help: RawBytes::of(metric.help.as_bytes()),
        };
        out.fill(metrics.iter().map(raw));
        metrics.len()
    })
}

/// A scan has passed over so many rows, as its condition cannot be true of them.
#[no_mangle]
pub extern "C" fn teak_count_passed_rows(handle: Option<&Arc<EngineHandle>>, rows: u64) {
    // Relaxed: a statistic.
    ask_engine(handle, |engine| engine.passed_rows.fetch_add(rows, Ordering::Relaxed));
}
