//! The registry of active snapshots, and what it means for garbage.
//!
//! A snapshot can be made to *give way*: its [`Fate`] is marked, and from then on it does not count when garbage is
//! judged. A reader that gets hold of a view (of a leaf) and then finds the fate unmarked knows that whoever made the
//! view found it unmarked too: all it needs is there.
//!
//! Interval rule (after Steam, PVLDB 13(2), 2019): a version that was current during [begin, end) is garbage as soon as
//! no active snapshot lies in that interval, also while much older snapshots live.

use super::Clock;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::Mutex;
use crate::types::Timestamp;
use crate::{Error, Result, Time};
use crossbeam_utils::CachePadded;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const SHARDS: usize = 16;

/// What became of a snapshot, shared by its owner and the registry.
#[derive(Debug)]
pub struct Fate {
    time: Time,
    since: Instant,
    gave_way: AtomicBool,
    /// How old it was then, and the bytes of history that were allowed.
    end: OnceLock<(Duration, u64)>,
    /// Somebody has been told how old it is.
    warned: AtomicBool,
}

impl Fate {
    fn new(time: &Time) -> Fate {
        let (gave_way, warned) = (AtomicBool::new(false), AtomicBool::new(false));
        Fate { time: time.clone(), since: time.now(), gave_way, end: OnceLock::new(), warned }
    }

    /// [`Error::SnapshotTooOld`] if it had to give way. To be asked *after* the view to be read was got hold of.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.gave_way() {
            true => Err(self.error()),
            false => Ok(()),
        }
    }

    /// From here on nobody keeps anything for it. `false`: it had given way before.
    pub(super) fn give_way(&self, maximum: u64) -> bool {
        let first = self.end.set((self.age(), maximum)).is_ok();
        self.gave_way.store(true, Ordering::SeqCst);
        first
    }

    /// Whether it had to give way.
    #[inline]
    pub fn gave_way(&self) -> bool {
        self.gave_way.load(Ordering::SeqCst)
    }

    /// How long ago it was taken.
    pub fn age(&self) -> Duration {
        self.time.since(self.since)
    }

    /// `true` for the first who asks.
    pub fn warn(&self) -> bool {
        !self.warned.swap(true, Ordering::SeqCst)
    }

    #[cold]
    fn error(&self) -> Error {
        let (age, maximum) = self.end.get().copied().unwrap_or((self.age(), 0));
        Error::SnapshotTooOld { age, maximum }
    }
}

/// One open snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotInfo {
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// Whom it belongs to (the session's number).
    pub label: u64,
    /// The engine took it for itself: it never gives way.
    pub internal: bool,
    /// What became of it.
    pub fate: Arc<Fate>,
    id: u64,
}

#[derive(Default)]
struct Shard {
    count: AtomicUsize,
    snapshots: Mutex<Vec<SnapshotInfo>>,
}

/// Sharded, so that sessions on many cores do not meet in one latch.
pub(super) struct Registry {
    time: Time,
    next: AtomicU64,
    shards: Vec<CachePadded<Shard>>,
}

impl Registry {
    pub(super) fn new(time: Time) -> Registry {
        Registry {
            time,
            next: AtomicU64::new(1),
            shards: (0..SHARDS).map(|_| CachePadded::new(Shard::default())).collect(),
        }
    }

    /// Reads the time and registers it in one critical section of the shard.
    fn register(
        &self,
        label: u64,
        internal: bool,
        fate: Arc<Fate>,
        now: impl Fn() -> Timestamp,
    ) -> (Timestamp, Slot) {
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
        debug_assert!(snapshots.iter().all(|other| other.id != id), "two snapshots are {id}");
        snapshots.push(SnapshotInfo { timestamp, label, internal, fate, id });
        (timestamp, (shard_number, id))
    }

    fn unregister(&self, (shard, id): Slot) {
        let shard = &self.shards[shard];
        let mut snapshots = shard.snapshots.lock();
        let place = snapshots.iter().position(|s| s.id == id);
        debug_assert!(place.is_some(), "a snapshot is registered until its guard is dropped");
        if let Some(at) = place {
            snapshots.swap_remove(at);
        }
        shard.count.store(snapshots.len(), Ordering::SeqCst);
    }

    pub(super) fn active(&self, floor: Timestamp) -> ActiveSnapshots {
        let mut timestamps = Vec::new();
        for shard in &self.shards {
            if shard.count.load(Ordering::SeqCst) != 0 {
                let snapshots = shard.snapshots.lock();
                timestamps.extend(snapshots.iter().filter(|s| !s.fate.gave_way()).map(|s| s.timestamp));
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
        all.sort_by_key(|s| (s.timestamp, s.fate.since));
        all
    }
}

/// Where a snapshot is registered: its shard, and its number.
type Slot = (usize, u64);

/// Keeps a snapshot registered until it is dropped, or [`SnapshotGuard::end`].
pub struct SnapshotGuard {
    clock: Arc<Clock>,
    timestamp: Timestamp,
    fate: Arc<Fate>,
    slot: Option<Slot>,
}

impl SnapshotGuard {
    pub(super) fn new(clock: &Arc<Clock>, label: u64, internal: bool) -> SnapshotGuard {
        let fate = Arc::new(Fate::new(&clock.registry().time));
        let (timestamp, slot) =
            clock.registry().register(label, internal, fate.clone(), || clock.last_committed());
        SnapshotGuard { clock: clock.clone(), timestamp, fate, slot: Some(slot) }
    }

    /// What became of it.
    #[inline]
    pub fn fate(&self) -> &Fate {
        &self.fate
    }

    /// The snapshot sees all commits with timestamps up to this.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Nothing is kept for it any more. What is left is memory for [`SnapshotGuard::renew`].
    pub fn end(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.clock.registry().unregister(slot);
        }
    }

    /// Another snapshot, of now, as [`Clock::snapshot`] takes it, after [`SnapshotGuard::end`].
    pub fn renew(&mut self, label: u64) {
        debug_assert!(self.slot.is_none(), "a snapshot that has not ended is taken anew");
        let (clock, registry) = (&self.clock, self.clock.registry());
        match Arc::get_mut(&mut self.fate) {
            Some(fate) => *fate = Fate::new(&registry.time),
            // Somebody has it on a list.
            None => self.fate = Arc::new(Fate::new(&registry.time)),
        }
        let (timestamp, slot) = registry.register(label, false, self.fate.clone(), || clock.last_committed());
        (self.timestamp, self.slot) = (timestamp, Some(slot));
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.end();
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
        self.holder(begin, end).is_some()
    }

    /// Whom a version that was current during [begin, end) is kept for: the oldest snapshot that sees it. Without one
    /// it may be kept for those that were being taken: then the floor stands for them.
    pub fn holder(&self, begin: Timestamp, end: Timestamp) -> Option<Timestamp> {
        if begin >= end {
            return None;
        }
        let at = self.timestamps.partition_point(|&t| t < begin);
        let oldest = self.timestamps.get(at).copied().filter(|&t| t < end);
        oldest.or((end > self.floor).then_some(self.floor.max(begin)))
    }

    /// Whether there is a snapshot with this timestamp.
    pub fn contains(&self, timestamp: Timestamp) -> bool {
        self.timestamps.binary_search(&timestamp).is_ok()
    }

    /// How many different timestamps.
    pub fn count(&self) -> usize {
        self.timestamps.len()
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
    fn a_version_is_held_by_the_oldest_that_sees_it_and_by_nobody_who_gave_way() {
        let clock = Clock::new(0);
        advance(&clock, 10);
        let first = clock.snapshot(1);
        advance(&clock, 10);
        let second = clock.snapshot(2);
        advance(&clock, 10);
        assert_eq!(clock.active_snapshots().holder(0, 25), Some(10));
        assert_eq!(clock.active_snapshots().holder(11, 25), Some(20));
        assert_eq!(clock.active_snapshots().holder(21, 25), None);
        assert!(first.fate().check().is_ok());
        let oldest = &clock.snapshots()[0];
        assert!(clock.give_way(oldest, 77) && !clock.give_way(oldest, 77));
        let error = first.fate().check();
        assert!(matches!(error, Err(Error::SnapshotTooOld { maximum: 77, .. })), "{error:?}");
        assert!(second.fate().check().is_ok());
        assert_eq!(clock.active_snapshots().holder(0, 25), Some(20));
        assert_eq!(clock.snapshots().len(), 2, "it is listed until its owner lets go");
    }

    #[test]
    fn a_snapshot_that_is_taken_anew_has_nothing_of_the_one_before() {
        let clock = Clock::new(0);
        advance(&clock, 10);
        let mut kept = clock.snapshot(1);
        clock.give_way(&clock.snapshots()[0], 77);
        assert!(kept.fate().warn() && kept.fate().check().is_err());
        kept.end();
        kept.end();
        assert!(clock.snapshots().is_empty() && clock.active_snapshots().count() == 0);
        advance(&clock, 10);
        kept.renew(2);
        assert!(kept.fate().check().is_ok() && kept.fate().warn());
        let listed = clock.snapshots();
        assert_eq!((listed.len(), listed[0].timestamp, listed[0].label), (1, 20, 2));
        assert!(clock.active_snapshots().contains(20));
        kept.end();
        // Who has it on a list sees what became of it, not of the next.
        advance(&clock, 1);
        kept.renew(3);
        clock.give_way(&clock.snapshots()[0], 1);
        assert!(kept.fate().gave_way() && !listed[0].fate.gave_way());
        drop(kept);
        assert!(clock.snapshots().is_empty());
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
