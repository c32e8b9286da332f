//! Commit timestamps: one counter, one short critical section a commit.

use super::last_change::LastChange;
use super::snapshots::{ActiveSnapshots, Registry, SnapshotGuard, SnapshotInfo};
use super::{State, TxnStatus};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::ArcSwapOption;
use crate::sync::Mutex;
use crate::types::Timestamp;
use crate::Time;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Orders commits and knows the active snapshots.
pub struct Clock {
    /// With whether there is any [`LastChange`] to be kept.
    latch: CachePadded<Mutex<bool>>,
    last: CachePadded<AtomicU64>,
    registry: Registry,
    time: Time,
    /// The last list of active snapshots, if it was long.
    recent: ArcSwapOption<Recent>,
}

/// Lists of snapshots up to this length are made anew each time.
const FEW: usize = 128;

/// A long list is used for so many times the time that it took to make.
const REUSE: u32 = 16;

struct Recent {
    active: Arc<ActiveSnapshots>,
    made: Instant,
    cost: Duration,
}

impl Clock {
    /// [`Clock::with_time`] with that of the machine.
    #[cfg(test)]
    pub fn new(last: Timestamp) -> Arc<Clock> {
        Clock::with_time(last, Time::REAL)
    }

    /// A clock whose last commit had the timestamp `last`; snapshots age by `time`.
    pub fn with_time(last: Timestamp, time: Time) -> Arc<Clock> {
        Arc::new(Clock {
            latch: CachePadded::new(Mutex::new(false)),
            last: CachePadded::new(AtomicU64::new(last)),
            registry: Registry::new(time.clone()),
            time,
            recent: ArcSwapOption::empty(),
        })
    }

    /// Makes a transaction's writes visible, all at once, with the next timestamp.
    pub fn publish(&self, status: &TxnStatus) -> Timestamp {
        self.publish_changes(status, std::iter::empty())
    }

    /// The same for a transaction that has changed what these belong to.
    pub fn publish_changes<'a>(
        &self,
        status: &TxnStatus,
        changed: impl Iterator<Item = &'a LastChange>,
    ) -> Timestamp {
        let are_kept = self.latch.lock();
        // Relaxed: only written under the latch that is held here.
        let timestamp = self.last.load(Ordering::Relaxed) + 1;
        debug_assert_eq!(status.state(), State::Active, "transaction {} is decided once", status.id());
        status.set_committed(timestamp);
        if *are_kept {
            changed.for_each(|change| change.note(timestamp));
        }
        // Relaxed: as above.
        debug_assert_eq!(self.last.load(Ordering::Relaxed) + 1, timestamp, "two commits with one timestamp");
        // Release: a snapshot that reads this timestamp sees the status set above, and the changes noted.
        self.last.store(timestamp, Ordering::Release);
        timestamp
    }

    /// The commit that was the last to change what `change` belongs to, or a later one. It is kept from the first call
    /// on. A snapshot that was taken before the call, and is not older, sees the newest state that there is.
    pub fn last_change(&self, change: &LastChange) -> Timestamp {
        change.known().unwrap_or_else(|| {
            // Under the latch: a commit either has been published by now, or is going to be noted.
            let mut are_kept = self.latch.lock();
            *are_kept = true;
            change.keep_from(self.last_committed())
        })
    }

    /// Timestamp of the newest visible commit.
    pub fn last_committed(&self) -> Timestamp {
        // Acquire: pairs with `publish`.
        self.last.load(Ordering::Acquire)
    }

    /// Takes a snapshot of now. `label` names its owner in status output (the session).
    pub fn snapshot(self: &Arc<Self>, label: u64) -> SnapshotGuard {
        SnapshotGuard::new(self, label, false)
    }

    /// The same for the engine's own use: it never has to give way.
    pub fn internal_snapshot(self: &Arc<Self>) -> SnapshotGuard {
        SnapshotGuard::new(self, 0, true)
    }

    /// What the past is still needed for. Safe to use for as long as one likes: it errs to the side of keeping. With
    /// thousands of snapshots it may be a moment old, so that looking at them all takes a bounded share of the time of
    /// those who ask.
    pub fn active_snapshots(&self) -> Arc<ActiveSnapshots> {
        if let Some(recent) = &*self.recent.load() {
            if self.time.since(recent.made) < recent.cost * REUSE {
                return recent.active.clone();
            }
        }
        let before = self.time.now();
        let active = Arc::new(self.newest_active_snapshots());
        let recent = (active.count() > FEW).then(|| {
            let made = self.time.now();
            Arc::new(Recent { active: active.clone(), made, cost: made - before })
        });
        if recent.is_some() || self.recent.load().is_some() {
            self.recent.store(recent);
        }
        active
    }

    /// The same as of now.
    pub fn newest_active_snapshots(&self) -> ActiveSnapshots {
        // The floor is read before the registry: a snapshot that registers while we look is at or above it.
        let floor = self.last_committed();
        self.registry.active(floor)
    }

    /// Makes an open snapshot give way: its readers get [`crate::Error::SnapshotTooOld`] from now on, which names
    /// `maximum`, and nothing is kept for it. `false`: it had done so before.
    pub fn give_way(&self, snapshot: &SnapshotInfo, maximum: u64) -> bool {
        debug_assert!(!snapshot.internal, "a snapshot of the engine itself gives way");
        let first = snapshot.fate.give_way(maximum);
        self.recent.store(None);
        first
    }

    /// All open snapshots, oldest first, also those that gave way.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.registry.list()
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}
