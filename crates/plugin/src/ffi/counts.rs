//! What a thread has done, for the server's statistics of statements.

use super::border::{put, Out};
use teak_core::server::{Count, Counts};

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
