//! Commit timestamps: one counter, one short critical section a commit.

use super::snapshots::{ActiveSnapshots, Registry, SnapshotGuard, SnapshotInfo};
use super::TxnStatus;
use crate::types::Timestamp;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Orders commits and knows the active snapshots.
pub struct Clock {
    latch: CachePadded<Mutex<()>>,
    last: CachePadded<AtomicU64>,
    registry: Registry,
}

impl Clock {
    /// A clock whose last commit had the timestamp `last`.
    pub fn new(last: Timestamp) -> Arc<Clock> {
        Arc::new(Clock {
            latch: CachePadded::new(Mutex::new(())),
            last: CachePadded::new(AtomicU64::new(last)),
            registry: Registry::new(),
        })
    }

    /// Makes a transaction's writes visible, all at once, with the next timestamp.
    pub fn publish(&self, status: &TxnStatus) -> Timestamp {
        let _latch = self.latch.lock();
        // Relaxed: only written under the latch that is held here.
        let timestamp = self.last.load(Ordering::Relaxed) + 1;
        status.set_committed(timestamp);
        // Release: a snapshot that reads this timestamp sees the status set above.
        self.last.store(timestamp, Ordering::Release);
        timestamp
    }

    /// Timestamp of the newest visible commit.
    pub fn last_committed(&self) -> Timestamp {
        // Acquire: pairs with `publish`.
        self.last.load(Ordering::Acquire)
    }

    /// Takes a snapshot of now. `label` names its owner in status output (the session).
    pub fn snapshot(self: &Arc<Self>, label: u64) -> SnapshotGuard {
        let (timestamp, slot) = self.registry.register(label, || self.last_committed());
        SnapshotGuard::new(self.clone(), timestamp, slot)
    }

    /// What the past is still needed for. Safe to use for as long as one likes: it errs to the side of keeping.
    pub fn active_snapshots(&self) -> ActiveSnapshots {
        // The floor is read before the registry: a snapshot that registers while we look is at or above it.
        let floor = self.last_committed();
        self.registry.active(floor)
    }

    /// All active snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.registry.list()
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}
