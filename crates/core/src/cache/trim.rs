//! Gives what evictions freed back to the operating system.
//!
//! Blocks of tens of kilobytes come from the C library's heaps, where a freed block stays with the process as long as
//! anything above it lives: resident memory would follow the highest use ever of each heap. The memory is the server's
//! (profilers see every allocation), so the means is the C library's own: `malloc_trim` returns the whole pages inside
//! free chunks. It holds each heap's lock while it walks it, so it runs once per an eighth of the budget freed, on the
//! evictor thread; on a caller's only when that one falls behind.

use std::sync::atomic::{AtomicU64, Ordering};

/// Freed less than this, trimming is not worth its time.
const MINIMUM_BYTES: u64 = 16 << 20;

#[derive(Default)]
pub(super) struct Trimmer {
    freed: AtomicU64,
}

impl Trimmer {
    /// Counts bytes freed by whichever thread.
    pub fn note(&self, bytes: u64) {
        // Relaxed: a count.
        self.freed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// For the evictor: trims if enough was freed since the last time.
    pub fn trim(&self, budget: u64) {
        self.trim_after(MINIMUM_BYTES.max(budget / 8));
    }

    /// For callers, who should not have to.
    pub fn trim_late(&self, budget: u64) {
        self.trim_after(2 * MINIMUM_BYTES.max(budget / 8));
    }

    fn trim_after(&self, limit: u64) {
        // Relaxed: a count; whoever takes it trims.
        if self.freed.load(Ordering::Relaxed) >= limit && self.freed.swap(0, Ordering::Relaxed) >= limit {
            trim_heaps();
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim_heaps() {
    // SAFETY: `malloc_trim` takes its own locks and may be called from any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim_heaps() {}
