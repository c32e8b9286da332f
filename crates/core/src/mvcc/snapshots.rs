//! The registry of active snapshots, and what it means for garbage.
//!
//! Interval rule (after Steam, PVLDB 13(2), 2019): a version that was current during [begin, end) is garbage as soon as no active
//! snapshot lies in that interval, also while much older snapshots live.

use super::Clock;
use crate::types::Timestamp;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

const SHARDS: usize = 16;

/// One active snapshot, for status output.
#[derive(Debug, Clone)]
pub struct SnapshotInfo {
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// Whom it belongs to (the session's number).
    pub label: u64,
    /// When it was taken.
    pub since: Instant,
    id: u64,
}

#[derive(Default)]
struct Shard {
    count: AtomicUsize,
    snapshots: Mutex<Vec<SnapshotInfo>>,
}

/// Sharded, so that sessions on many cores do not meet in one latch.
pub(super) struct Registry {
    next: AtomicU64,
    shards: Vec<CachePadded<Shard>>,
}

impl Registry {
    pub(super) fn new() -> Registry {
        Registry {
            next: AtomicU64::new(1),
            shards: (0..SHARDS).map(|_| CachePadded::new(Shard::default())).collect(),
        }
    }

    /// Reads the time and registers it in one critical section of the shard.
    pub(super) fn register(&self, label: u64, now: impl Fn() -> Timestamp) -> (Timestamp, (usize, u64)) {
        let id = if label == 0 {
            // Relaxed: only uniqueness matters.
            self.next.fetch_add(1, Ordering::Relaxed) << 32
        } else {
            // Relaxed: only uniqueness matters.
            (self.next.fetch_add(1, Ordering::Relaxed) << 32) | (label & 0xffff_ffff)
        };
        let shard_number =
            (label as usize).wrapping_add((id >> 32) as usize * usize::from(label == 0)) % SHARDS;
        let shard = &self.shards[shard_number];
        let mut snapshots = shard.snapshots.lock();
        // The count rises before the time is read: who sees 0 has read a floor that this snapshot cannot undercut.
        shard.count.store(snapshots.len() + 1, Ordering::SeqCst);
        let timestamp = now();
        snapshots.push(SnapshotInfo { timestamp, label, since: Instant::now(), id });
        (timestamp, (shard_number, id))
    }

    fn unregister(&self, (shard, id): (usize, u64)) {
        let shard = &self.shards[shard];
        let mut snapshots = shard.snapshots.lock();
        if let Some(at) = snapshots.iter().position(|s| s.id == id) {
            snapshots.swap_remove(at);
        }
        shard.count.store(snapshots.len(), Ordering::SeqCst);
    }

    pub(super) fn active(&self, floor: Timestamp) -> ActiveSnapshots {
        let mut timestamps = Vec::new();
        for shard in &self.shards {
            if shard.count.load(Ordering::SeqCst) != 0 {
                timestamps.extend(shard.snapshots.lock().iter().map(|s| s.timestamp));
            }
        }
        timestamps.sort_unstable();
        timestamps.dedup();
        ActiveSnapshots { timestamps, floor }
    }

    pub(super) fn list(&self) -> Vec<SnapshotInfo> {
        let mut all: Vec<SnapshotInfo> = Vec::new();
        for shard in &self.shards {
            all.extend(shard.snapshots.lock().iter().cloned());
        }
        all.sort_by_key(|s| (s.timestamp, s.since));
        all
    }
}

/// Keeps a snapshot registered until dropped.
pub struct SnapshotGuard {
    clock: Arc<Clock>,
    timestamp: Timestamp,
    slot: (usize, u64),
}

impl SnapshotGuard {
    pub(super) fn new(clock: Arc<Clock>, timestamp: Timestamp, slot: (usize, u64)) -> SnapshotGuard {
        SnapshotGuard { clock, timestamp, slot }
    }

    /// The snapshot sees all commits with timestamps up to this.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.clock.registry().unregister(self.slot);
    }
}

/// Which points of time somebody may still look at: the registered timestamps, and all from `floor` on.
#[derive(Debug, Clone)]
pub struct ActiveSnapshots {
    timestamps: Vec<Timestamp>,
    floor: Timestamp,
}

impl ActiveSnapshots {
    /// Whether a version that was current during [begin, end) may still be read.
    pub fn needs(&self, begin: Timestamp, end: Timestamp) -> bool {
        if begin >= end {
            return false;
        }
        if end > self.floor {
            return true;
        }
        let at = self.timestamps.partition_point(|&t| t < begin);
        self.timestamps.get(at).is_some_and(|&t| t < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mvcc::TxnStatus;

    fn advance(clock: &Clock, n: usize) {
        for i in 0..n {
            clock.publish(&TxnStatus::new(i as u64));
        }
    }

    #[test]
    fn only_intervals_with_a_snapshot_inside_are_needed() {
        let clock = Clock::new(0);
        advance(&clock, 10);
        let old = clock.snapshot(7);
        advance(&clock, 90);
        let active = clock.active_snapshots();
        assert_eq!(old.timestamp(), 10);
        assert!(active.needs(5, 11) && active.needs(10, 11));
        assert!(!active.needs(11, 50), "a hole between snapshots is garbage");
        assert!(!active.needs(3, 10));
        assert!(active.needs(50, 101), "what is current at the floor stays");
        drop(old);
        assert!(!clock.active_snapshots().needs(5, 11));
    }

    #[test]
    fn a_snapshot_taken_while_garbage_is_judged_is_never_missed() {
        let clock = Clock::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| advance(&clock, 20_000));
            scope.spawn(|| {
                for _ in 0..5_000 {
                    let active = clock.active_snapshots();
                    let snapshot = clock.snapshot(3);
                    assert!(active.needs(snapshot.timestamp(), snapshot.timestamp() + 1));
                }
            });
        });
    }
}
