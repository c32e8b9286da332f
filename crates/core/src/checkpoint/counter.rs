//! What log and checkpoints know of a table's AUTO_INCREMENT counter.
//!
//! Values are given out from a cell in the table, without a lock and in any order; transactions log what they took. So
//! the log has the values in another order than they were given out, and "raise" must mean the maximum.

use crate::log::CounterChange;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counter as far as it is, or is about to be, in the log. There is one for a table as long as anybody has it.
pub struct PersistedCounter {
    /// Contains what is about to be logged: what a checkpoint stores. Too great a value only leaves a gap.
    announced: AtomicU64,
    /// In the log's queue: a record queued later may rely on it.
    logged: AtomicU64,
}

impl PersistedCounter {
    /// A counter whose value is durable.
    pub fn new(value: u64) -> PersistedCounter {
        PersistedCounter { announced: AtomicU64::new(value), logged: AtomicU64::new(value) }
    }

    /// What a checkpoint stores.
    pub fn value(&self) -> u64 {
        self.announced.load(Ordering::SeqCst)
    }

    /// Whether a log record with at least this value is queued.
    pub fn is_logged(&self, value: u64) -> bool {
        self.logged.load(Ordering::SeqCst) >= value
    }

    /// Before the record is queued.
    pub fn announce(&self, value: u64, change: CounterChange) {
        apply(&self.announced, value, change);
    }

    /// After the record was queued.
    pub fn logged(&self, value: u64, change: CounterChange) {
        apply(&self.logged, value, change);
    }
}

fn apply(cell: &AtomicU64, value: u64, change: CounterChange) {
    match change {
        CounterChange::Raise => cell.fetch_max(value, Ordering::SeqCst),
        CounterChange::Set => cell.swap(value, Ordering::SeqCst),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raising_keeps_the_greatest_value_and_setting_the_last() {
        let counter = PersistedCounter::new(5);
        for value in [9, 7] {
            counter.announce(value, CounterChange::Raise);
            counter.logged(value, CounterChange::Raise);
        }
        assert_eq!(counter.value(), 9);
        assert!(counter.is_logged(9) && !counter.is_logged(10));
        counter.announce(2, CounterChange::Set);
        counter.logged(2, CounterChange::Set);
        assert_eq!(counter.value(), 2);
        assert!(!counter.is_logged(3));
    }
}
