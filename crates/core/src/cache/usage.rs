//! Bytes in use: exact in sum, cheap to change, one load to read roughly.
//!
//! Threads add to one of several padded counters and carry to the total only when a counter has gone far enough from
//! zero, so that threads that charge and discharge do not share a cache line.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

pub(super) const COUNTERS: usize = 16;
const LEAST_CARRY: i64 = 256;
const MOST_CARRY: i64 = 64 << 10;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    // Relaxed: only spreads threads over counters.
    static COUNTER: usize = THREADS.fetch_add(1, Ordering::Relaxed) % COUNTERS;
}

/// The number of the thread's counter; a thread that is ending has lost it, and any will do.
#[inline]
pub(super) fn own_counter() -> usize {
    COUNTER.try_with(|counter| *counter).unwrap_or(0)
}

/// A sum of bytes. All orderings are Relaxed: these are numbers, nothing is reached through them.
pub(crate) struct Usage {
    total: CachePadded<AtomicI64>,
    carry: AtomicI64,
    counters: [CachePadded<AtomicI64>; COUNTERS],
}

impl Usage {
    /// With an error of [`Usage::approximate`] below a percent of `budget` bytes.
    pub fn new(budget: u64) -> Usage {
        let usage = Usage {
            total: CachePadded::new(AtomicI64::new(0)),
            carry: AtomicI64::new(LEAST_CARRY),
            counters: std::array::from_fn(|_| CachePadded::new(AtomicI64::new(0))),
        };
        usage.set_precision(budget);
        usage
    }

    /// Keeps the error of [`Usage::approximate`] below a percent of `budget` bytes.
    pub fn set_precision(&self, budget: u64) {
        let carry = i64::try_from(budget / 2048).unwrap_or(MOST_CARRY).clamp(LEAST_CARRY, MOST_CARRY);
        self.carry.store(carry, Ordering::Relaxed);
    }

    /// Whether the rough sum has changed.
    #[inline]
    pub fn add(&self, bytes: i64) -> bool {
        let counter = &self.counters[own_counter()];
        let sum = counter.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let carries = sum.abs() > self.carry.load(Ordering::Relaxed);
        if carries {
            self.total.fetch_add(counter.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        carries
    }

    /// Without what the counters have not carried yet.
    #[inline]
    pub fn approximate(&self) -> u64 {
        self.total.load(Ordering::Relaxed).max(0) as u64
    }

    /// The sum; exact while nobody adds.
    pub fn exact(&self) -> u64 {
        self.sum().max(0) as u64
    }

    fn sum(&self) -> i64 {
        let parts = self.counters.iter().map(|counter| counter.load(Ordering::Relaxed));
        self.total.load(Ordering::Relaxed) + parts.sum::<i64>()
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        let sum = self.sum();
        debug_assert!(sum >= 0 || std::thread::panicking(), "{} bytes given back that nobody took", -sum);
    }
}
