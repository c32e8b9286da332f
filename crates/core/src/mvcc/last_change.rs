//! When something was changed last.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::Timestamp;

/// The timestamp of the last commit that has changed something, kept from the time on when somebody first asks
/// [`super::Clock::last_change`]: whoever commits would otherwise write to a line that all others read.
#[derive(Default)]
pub struct LastChange(AtomicU64);

/// No commit has this timestamp.
const NOT_KEPT: Timestamp = 0;

impl LastChange {
    /// What is kept, if it is.
    pub fn known(&self) -> Option<Timestamp> {
        // Acquire: pairs with the stores below, under the clock's latch but for that of `forget`.
        Some(self.0.load(Ordering::Acquire)).filter(|&timestamp| timestamp != NOT_KEPT)
    }

    /// It is not kept any more: nothing that was concluded from it holds from here on.
    pub fn forget(&self) {
        self.0.store(NOT_KEPT, Ordering::Release); // Release: see `known`
    }

    /// A commit that has changed something is about to be visible. Called by the clock, under its latch.
    pub(super) fn note(&self, timestamp: Timestamp) {
        if let Some(before) = self.known() {
            // What is forgotten at this moment stays so. Release: see `known`. Relaxed: nothing follows from a failure.
            let _ = self.0.compare_exchange(before, timestamp, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// `last` is the newest visible commit. Called by the clock, under its latch.
    pub(super) fn keep_from(&self, last: Timestamp) -> Timestamp {
        // Somebody else may have begun it.
        self.known().unwrap_or_else(|| {
            let from = last.max(NOT_KEPT + 1);
            self.0.store(from, Ordering::Release); // Release: see `known`
            from
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LastChange;
    use crate::mvcc::{Clock, TxnStatus};

    #[test]
    fn it_is_kept_from_the_first_question_on_and_until_it_is_forgotten() {
        let (clock, change) = (Clock::new(10), LastChange::default());
        let publish = || clock.publish_changes(&TxnStatus::new(1), [&change].into_iter());
        assert_eq!((publish(), change.known()), (11, None));
        clock.publish(&TxnStatus::new(2));
        assert_eq!(clock.last_change(&change), 12, "what was before the first question is not known");
        clock.publish(&TxnStatus::new(3));
        assert_eq!(clock.last_change(&change), 12, "something else has changed");
        assert_eq!((publish(), clock.last_change(&change)), (14, 14));
        change.forget();
        assert_eq!((publish(), change.known()), (15, None));
        assert_eq!(clock.last_change(&change), 15);
        let new = LastChange::default();
        assert_eq!(Clock::new(0).last_change(&new), 1, "no snapshot that there can be is as new");
    }

    #[test]
    fn a_snapshot_that_is_as_new_as_the_last_change_sees_it() {
        let (clock, changes) = (Clock::new(10), [LastChange::default(), LastChange::default()]);
        let count = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..20_000 {
                    let published = clock.publish_changes(&TxnStatus::new(i), changes.iter());
                    count.store(published, std::sync::atomic::Ordering::SeqCst);
                }
            });
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let published = count.load(std::sync::atomic::Ordering::SeqCst);
                    let snapshot = clock.snapshot(1);
                    assert!(clock.last_change(&changes[0]) >= published);
                    // Nothing was forgotten, so both have been changed by the same commits.
                    let last = clock.last_change(&changes[1]);
                    assert!(last > snapshot.timestamp() || changes[0].known() >= Some(last));
                }
            });
        });
    }
}
