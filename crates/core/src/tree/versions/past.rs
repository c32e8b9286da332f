//! What is kept for old snapshots only: how much, for whom, and how it goes.
//!
//! Each kept version is counted for the oldest snapshot that sees it (see [`ActiveSnapshots::holder`]), as of the last
//! time its leaf was consolidated. So the counts of all snapshots add up to the whole, and when the oldest goes, what
//! others need as well is counted for the next. A leaf's history carries its [`Share`]s; the sums are in [`PastUsage`].
//!
//! What a snapshot held when it ended is garbage, or somebody else's. Consolidations find that out for the leaves they
//! come by; [`crate::tree::Trunk::collect_history`] goes through the others when there is enough of it.

use super::history::HistoryEntry;
use crate::mvcc::ActiveSnapshots;
use crate::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};
use crate::types::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const SHARDS: usize = 16;

/// What a leaf's history keeps for one snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub holder: Timestamp,
    /// When the last of its versions was replaced: younger snapshots see none of them.
    pub latest_end: Timestamp,
    pub versions: u32,
    pub bytes: u64,
}

/// All shares of a history, by holder.
pub(crate) type Shares = Arc<[Share]>;

/// Whom sorted entries are kept for.
pub(crate) fn shares_of(entries: &[HistoryEntry<'_>], active: &ActiveSnapshots) -> Shares {
    let mut shares: Vec<Share> = Vec::new();
    for entry in entries {
        // Kept by nobody: one that ended while the entries were chosen.
        let holder = active.holder(entry.begin, entry.end).unwrap_or(entry.begin);
        let at = match shares.binary_search_by_key(&holder, |share| share.holder) {
            Ok(at) => at,
            Err(at) => {
                shares.insert(at, Share { holder, latest_end: 0, versions: 0, bytes: 0 });
                at
            }
        };
        let share = &mut shares[at];
        share.latest_end = share.latest_end.max(entry.end);
        share.versions += 1;
        share.bytes += entry.kept_bytes() as u64;
    }
    shares.into()
}

/// What is kept for one snapshot, or for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Number of versions.
    pub versions: u64,
    /// Their bytes in memory.
    pub memory_bytes: u64,
    /// Their bytes in the spill file.
    pub spilled_bytes: u64,
}

impl Held {
    /// In memory or spilled.
    pub fn bytes(&self) -> u64 {
        self.memory_bytes + self.spilled_bytes
    }

    /// Both together.
    pub fn plus(self, other: Held) -> Held {
        Held {
            versions: self.versions + other.versions,
            memory_bytes: self.memory_bytes + other.memory_bytes,
            spilled_bytes: self.spilled_bytes + other.spilled_bytes,
        }
    }

    fn change(&mut self, share: &Share, spilled: bool, add: bool) {
        let place = if spilled { &mut self.spilled_bytes } else { &mut self.memory_bytes };
        for (sum, n) in [(&mut self.versions, u64::from(share.versions)), (place, share.bytes)] {
            *sum = if add { *sum + n } else { sum.saturating_sub(n) };
        }
    }
}

/// The sums over all leaves, the budget, and who waits because of it.
pub struct PastUsage {
    holders: [Mutex<HashMap<Timestamp, Held>>; SHARDS],
    bytes: AtomicI64,
    maximum: AtomicU64,
    /// The disk is full: as if the budget were used up.
    pressed: AtomicBool,
    bell: Arc<Bell>,
}

/// Wakes the thread that looks after history, and the writers that wait for it.
#[derive(Default)]
pub struct Bell {
    signals: Mutex<Signals>,
    work: Condvar,
    room: Condvar,
    /// There is something to do and the thread has not looked yet.
    rung: AtomicBool,
}

#[derive(Default)]
struct Signals {
    stopped: bool,
}

impl Bell {
    /// Somebody wants the thread to look.
    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            let _signals = self.signals.lock();
            self.work.notify_all();
        }
    }

    /// For the thread: returns when the bell was rung, at the latest after `longest`. `false`: the engine goes.
    pub fn wait_for_work(&self, longest: Duration) -> bool {
        let mut signals = self.signals.lock();
        if !signals.stopped && !self.rung.load(Ordering::SeqCst) {
            self.work.wait_for(&mut signals, longest);
        }
        self.rung.store(false, Ordering::SeqCst);
        !signals.stopped
    }

    /// For writers: returns when the thread has looked, at the latest after `longest`. `false`: the engine goes.
    pub fn wait_for_room(&self, longest: Duration) -> bool {
        let mut signals = self.signals.lock();
        if !signals.stopped {
            self.room.wait_for(&mut signals, longest);
        }
        !signals.stopped
    }

    /// The thread has looked.
    pub fn looked(&self) {
        let _signals = self.signals.lock();
        self.room.notify_all();
    }

    /// Ends the thread and all waits.
    pub fn stop(&self) {
        self.signals.lock().stopped = true;
        self.work.notify_all();
        self.room.notify_all();
    }
}

impl PastUsage {
    pub(in crate::tree) fn new() -> PastUsage {
        PastUsage {
            holders: std::array::from_fn(|_| Mutex::default()),
            bytes: AtomicI64::new(0),
            maximum: AtomicU64::new(u64::MAX),
            pressed: AtomicBool::new(false),
            bell: Arc::default(),
        }
    }

    /// See [`Bell`].
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Sets what all snapshots together may hold, in bytes. It is passed for as long as it takes to make the oldest
    /// snapshot give way.
    pub fn set_maximum(&self, bytes: u64) {
        // Relaxed: a number on its own; likewise where it is read.
        self.maximum.store(bytes, Ordering::Relaxed);
        self.bell.ring();
    }

    /// What all snapshots together may hold, in bytes.
    pub fn maximum(&self) -> u64 {
        self.maximum.load(Ordering::Relaxed) // Relaxed: as above
    }

    /// What is kept for old snapshots, in memory or spilled, in bytes.
    pub fn bytes(&self) -> u64 {
        // Relaxed: a statistic.
        self.bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Whether snapshots hold more than they may.
    #[inline]
    pub fn is_full(&self) -> bool {
        // Relaxed: a hint; the disk does not fill from one write to the next.
        self.bytes() > self.maximum() || self.pressed.load(Ordering::Relaxed)
    }

    /// There was no room on disk for history.
    pub(in crate::tree) fn press(&self) {
        // Relaxed: see `is_full`.
        self.pressed.store(true, Ordering::Relaxed);
        self.bell.ring();
    }

    /// Something was given back, or nothing can be: spilling history may be tried again.
    pub fn relax(&self) {
        // Relaxed: see `is_full`.
        self.pressed.store(false, Ordering::Relaxed);
    }

    /// For whom how much is kept, by timestamp of the snapshot; those that ended are garbage or not looked at yet.
    pub fn holders(&self) -> HashMap<Timestamp, Held> {
        let mut all = HashMap::new();
        self.holders.iter().for_each(|shard| all.extend(shard.lock().iter().map(|(&t, &held)| (t, held))));
        all
    }

    /// A leaf's history takes the place of another (or of none), each in the spill file or in memory.
    pub(in crate::tree) fn replace(&self, old: Option<&Counted>, new: Option<&Counted>) {
        let mut change = 0;
        for (counted, add) in [(old, false), (new, true)] {
            let Some(Counted { shares, spilled }) = counted else { continue };
            for share in shares.iter() {
                change += if add { share.bytes as i64 } else { -(share.bytes as i64) };
                let mut holders = self.holders[share.holder as usize % SHARDS].lock();
                let held = holders.entry(share.holder).or_default();
                held.change(share, *spilled, add);
                if *held == Held::default() {
                    holders.remove(&share.holder);
                }
            }
        }
        // Relaxed: a statistic.
        self.bytes.fetch_add(change, Ordering::Relaxed);
        if change > 0 && self.is_full() {
            self.bell.ring();
        }
    }
}

/// What a leaf has added to the sums.
#[derive(Clone)]
pub(crate) struct Counted {
    pub shares: Shares,
    pub spilled: bool,
}

impl Counted {
    pub(in crate::tree) fn is_same(&self, other: &Counted) -> bool {
        self.spilled == other.spilled && Arc::ptr_eq(&self.shares, &other.shares)
    }
}
