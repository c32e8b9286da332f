//! Commits, snapshots and judgements of garbage under many schedules.

use super::{Clock, LastChange, State, TxnStatus};
use crate::sync::explore;
use crate::types::Timestamp;
use std::sync::Arc;

/// Whether a snapshot sees what this transaction wrote.
fn sees(snapshot: Timestamp, status: &TxnStatus) -> bool {
    matches!(status.state(), State::Committed(timestamp) if timestamp <= snapshot)
}

#[test]
fn a_snapshot_sees_of_each_commit_all_or_nothing_and_never_changes_its_mind() {
    explore(|| {
        let clock = Clock::new(10);
        let statuses: Vec<_> = (1..4).map(TxnStatus::new).collect();
        let mut threads: Vec<_> = statuses
            .iter()
            .map(|status| {
                let (clock, status) = (clock.clone(), status.clone());
                shuttle::thread::spawn(move || {
                    let timestamp = clock.publish(&status);
                    assert!(clock.last_committed() >= timestamp);
                    let later = clock.snapshot(7);
                    assert!(sees(later.timestamp(), &status), "a commit that its own session does not see");
                })
            })
            .collect();
        let (reading, all) = (clock.clone(), statuses.clone());
        threads.push(shuttle::thread::spawn(move || {
            let snapshot = reading.snapshot(1);
            let look = || all.iter().map(|status| sees(snapshot.timestamp(), status)).collect::<Vec<_>>();
            let first = look();
            assert_eq!(first, look(), "a snapshot at {} has changed", snapshot.timestamp());
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(clock.last_committed(), 13);
    });
}

#[test]
fn nothing_that_a_snapshot_sees_is_ever_judged_garbage() {
    explore(|| {
        let clock = Clock::new(10);
        let publishing = clock.clone();
        let commits = shuttle::thread::spawn(move || {
            for id in 1..4 {
                publishing.publish(&TxnStatus::new(id));
            }
        });
        let readers = [1, 2].map(|label| {
            let clock = clock.clone();
            shuttle::thread::spawn(move || {
                let snapshot = clock.snapshot(label);
                let at = snapshot.timestamp();
                // Whoever judges from now on knows it, and whoever judged before had a floor that is not above it.
                assert!(clock.active_snapshots().needs(at, at + 1));
                snapshot
            })
        });
        let judging = clock.clone();
        let judge = shuttle::thread::spawn(move || {
            let judged: Vec<_> = (0..2).map(|_| judging.active_snapshots()).collect();
            judged
        });
        let judged: Arc<Vec<_>> = Arc::new(judge.join().unwrap());
        for reader in readers {
            let snapshot = reader.join().unwrap();
            let at = snapshot.timestamp();
            assert!(judged.iter().all(|active| active.needs(at, at + 1)), "{at} was garbage in {judged:?}");
        }
        commits.join().unwrap();
    });
}

#[test]
fn a_snapshot_not_older_than_the_last_change_sees_all_that_was_changed_by_then() {
    explore(|| {
        let (clock, change) = (Clock::new(10), Arc::new(LastChange::default()));
        let statuses: Vec<_> = (1..4).map(TxnStatus::new).collect();
        let mut threads: Vec<_> = statuses
            .iter()
            .map(|status| {
                let (clock, status, change) = (clock.clone(), status.clone(), change.clone());
                shuttle::thread::spawn(move || {
                    let published = clock.publish_changes(&status, std::iter::once(&*change));
                    // What is said of it from now on is not older.
                    assert!(change.known().is_none_or(|last| last >= published));
                })
            })
            .collect();
        for label in [1, 2] {
            let (clock, change, all) = (clock.clone(), change.clone(), statuses.clone());
            threads.push(shuttle::thread::spawn(move || {
                let snapshot = clock.snapshot(label);
                let last = clock.last_change(&change);
                let seen = || all.iter().filter(|status| sees(snapshot.timestamp(), status)).count();
                let newest = || all.iter().filter(|status| sees(clock.last_committed(), status)).count();
                // As long as it stays the last, the snapshot misses nothing.
                let (seen, newest) = (seen(), newest());
                if last <= snapshot.timestamp() && change.known() == Some(last) {
                    assert_eq!(seen, newest, "a snapshot at {} misses a change", snapshot.timestamp());
                }
            }));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
