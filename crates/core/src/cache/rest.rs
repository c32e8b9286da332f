//! What the engine has in memory and charged to nobody: it counts as used, but for a little.
//!
//! Whoever makes an object that grows with the work charges it, as far as somebody thought of it, and for what it
//! takes, about. The allocator knows all of it, to the byte. And where many small objects came and went, the C
//! library's heaps have holes, which are in memory as well. What both have beyond the charges takes its room from what
//! can leave memory, so that the budget holds for the sum, whatever was forgotten.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::sync::Mutex;

/// So much is the engine's own: what it has without work, what comes and goes with single statements, some holes.
const OWN_BYTES: u64 = 8 << 20;
/// It counts for half of the budget at most, less this: something is to be left for what is used.
const LEFT_BYTES: u64 = 8 << 20;
/// It is looked at once in so many times that the sum of charges has changed by some.
const CHANGES_PER_LOOK: u32 = 16;
/// Holes are measured so often at most, and for one of so many parts of the time: heaps are locked meanwhile.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
const TIME_PER_MEASURE: u32 = 200;

/// Bytes, as somebody can tell them who must not wait, nor charge anything.
pub(super) type Bytes = Box<dyn Fn() -> u64 + Send + Sync>;

/// Of one cache.
pub(super) struct Rest {
    /// What is in memory that the cache is to pay for, charged to it or not.
    taken: Bytes,
    holes: Bytes,
    // Relaxed: numbers, all of them.
    changes: AtomicU32,
    measured: AtomicU64,
    /// See [`Rest::counted`].
    counted: AtomicU64,
    looking: Mutex<()>,
    measure_at: Mutex<Instant>,
}

impl Rest {
    pub(super) fn new(taken: Bytes, holes: Bytes) -> Rest {
        Rest {
            taken,
            holes,
            changes: AtomicU32::new(0),
            measured: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            looking: Mutex::new(()),
            measure_at: Mutex::new(Instant::now()),
        }
    }

    /// What the cache has to count in addition, of a budget of so many bytes of which `used` are; mostly nothing, since
    /// it is not the time to look. Never waits.
    pub(super) fn look(&self, used: u64, budget: u64) -> i64 {
        if !self.changes.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHANGES_PER_LOOK) {
            return 0;
        }
        let Some(_looking) = self.looking.try_lock() else { return 0 };
        let counted = self.counted.load(Ordering::Relaxed);
        let taken = (self.taken)() + self.measured.load(Ordering::Relaxed);
        let paid = used.saturating_sub(counted).saturating_add(OWN_BYTES);
        let now = taken.saturating_sub(paid).min((budget / 2).saturating_sub(LEFT_BYTES));
        self.counted.store(now, Ordering::Relaxed);
        now as i64 - counted as i64
    }

    /// What counts now, in bytes; part of what the cache has as used, and nobody can evict it.
    pub(super) fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// Measures the holes, if it is time to: for a thread that nobody waits for.
    pub(super) fn measure(&self) {
        let mut next = self.measure_at.lock();
        let began = Instant::now();
        if began < *next {
            return;
        }
        self.measured.store((self.holes)(), Ordering::Relaxed);
        *next = began + MEASURE_EVERY.max(began.elapsed() * TIME_PER_MEASURE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_nobody_charged_counts_but_for_a_little_and_for_less_than_half_of_the_budget() {
        const MIB: u64 = 1 << 20;
        let (taken, holes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let told = |bytes: &Arc<AtomicU64>| -> Bytes {
            let bytes = bytes.clone();
            Box::new(move || bytes.load(Ordering::Relaxed))
        };
        let rest = Rest::new(told(&taken), told(&holes));
        let mut used = 0;
        let look = |used: &mut u64, charged: i64| {
            *used = used.wrapping_add_signed(charged * MIB as i64);
            for _ in 0..CHANGES_PER_LOOK {
                *used = used.wrapping_add_signed(rest.look(*used, 100 * MIB));
            }
            *used / MIB
        };
        let set = |what: &AtomicU64, mib: u64| what.store(mib * MIB, Ordering::Relaxed);
        // All is charged, and something that is not in memory.
        set(&taken, 40);
        assert_eq!(look(&mut used, 42), 42);
        // Somebody forgot ten.
        set(&taken, 60);
        assert_eq!(look(&mut used, 0), 52);
        set(&taken, 50);
        assert_eq!(look(&mut used, -10), 42);
        // Holes count once they are measured.
        set(&holes, 20);
        assert_eq!(look(&mut used, 0), 42);
        rest.measure();
        assert_eq!(look(&mut used, 0), 62);
        // It is too early for the next time.
        set(&holes, 0);
        rest.measure();
        assert_eq!(look(&mut used, 0), 62);
        *rest.measure_at.lock() = Instant::now();
        rest.measure();
        assert_eq!(look(&mut used, 0), 42);
        set(&taken, 500);
        assert_eq!((look(&mut used, 0), rest.counted() / MIB), (32 + 42, 42));
    }
}
