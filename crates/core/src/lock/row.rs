//! Row locks: who holds which row, and who waits for it in which order.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use twox_hash::XxHash3_64;

use super::party::{Party, Standing};
use super::{Blocker, LockOutcome};
use crate::{LockMode, TreeId, TxnId};

const SHARDS: usize = 256;
/// Locks released under one hold of a shard's latch.
const RELEASE_BATCH: usize = 512;

/// A row: the hash of its tree and key under two seeds. The first half chooses the shard, the second the place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowId {
    shard: u64,
    place: u64,
}

impl RowId {
    pub(super) fn new(tree: TreeId, key: &[u8]) -> RowId {
        // The tree goes into the seed: multiplied by an odd number, so that different trees have different seeds.
        let tree = tree.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        RowId {
            shard: XxHash3_64::oneshot_with_seed(tree ^ 0x5851_f42d_4c95_7f2d, key),
            place: XxHash3_64::oneshot_with_seed(tree ^ 0x1405_7b7e_f767_814f, key),
        }
    }

    fn shard(self) -> usize {
        (self.shard >> 56) as usize % SHARDS
    }
}

impl Hash for RowId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.place);
    }
}

/// Passes on what is a hash already.
#[derive(Default)]
pub(super) struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A transaction and the mode in which it holds a row, in eight bytes (transaction numbers stay below 2^63).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Holder(u64);

impl Holder {
    fn new(txn: TxnId, mode: LockMode) -> Holder {
        Holder(txn << 1 | u64::from(mode == LockMode::Exclusive))
    }
    fn txn(self) -> TxnId {
        self.0 >> 1
    }
    fn exclusive(self) -> bool {
        self.0 & 1 == 1
    }
    fn covers(self, mode: LockMode) -> bool {
        self.exclusive() || mode == LockMode::Shared
    }
    fn conflicts(self, mode: LockMode) -> bool {
        self.exclusive() || mode == LockMode::Exclusive
    }
}

struct Request {
    party: Arc<Party>,
    mode: LockMode,
    upgrade: bool,
}

/// A row that several share or somebody waits for.
#[derive(Default)]
struct Queue {
    holders: Vec<Holder>,
    waiting: VecDeque<Request>,
}

impl Queue {
    fn compatible(&self, txn: TxnId, mode: LockMode) -> bool {
        self.holders.iter().all(|h| h.txn() == txn || !h.conflicts(mode))
    }

    fn hold(&mut self, txn: TxnId, mode: LockMode) {
        match self.holders.iter_mut().find(|h| h.txn() == txn) {
            Some(holder) => *holder = Holder::new(txn, mode),
            None => self.holders.push(Holder::new(txn, mode)),
        }
    }

    /// Grants from the front what can be granted.
    fn grant_ready(&mut self) {
        while let Some(front) = self.waiting.front() {
            let (txn, mode) = (front.party.txn(), front.mode);
            if front.party.waiting().is_some() {
                if !self.compatible(txn, mode) {
                    return;
                }
                if front.party.grant() {
                    self.hold(txn, mode);
                }
            }
            // Granted, or a victim that has not come round to leave the queue.
            self.waiting.pop_front();
        }
    }

    fn enqueue(&mut self, request: Request) {
        let place = match request.upgrade {
            true => self.waiting.iter().take_while(|r| r.upgrade).count(),
            false => self.waiting.len(),
        };
        self.waiting.insert(place, request);
    }
}

#[derive(Default)]
struct Shard {
    /// Rows with one holder and no queue.
    single: HashMap<RowId, Holder, BuildHasherDefault<PassThrough>>,
    /// All other rows; no row is in both.
    queues: HashMap<RowId, Queue, BuildHasherDefault<PassThrough>>,
}

impl Shard {
    /// Grants, and gives up the queue when it is no longer needed.
    fn settle(&mut self, id: RowId) {
        let Entry::Occupied(mut entry) = self.queues.entry(id) else { return };
        entry.get_mut().grant_ready();
        let queue = entry.get();
        if queue.waiting.is_empty() && queue.holders.len() <= 1 {
            if let Some(holder) = entry.remove().holders.pop() {
                self.single.insert(id, holder);
            }
        }
    }

    /// `true` if `txn` held it.
    fn release(&mut self, id: RowId, txn: TxnId) -> bool {
        if let Entry::Occupied(entry) = self.single.entry(id) {
            let held = entry.get().txn() == txn;
            if held {
                entry.remove();
            }
            return held;
        }
        let Some(queue) = self.queues.get_mut(&id) else { return false };
        let before = queue.holders.len();
        queue.holders.retain(|h| h.txn() != txn);
        let held = queue.holders.len() < before;
        if held {
            self.settle(id);
        }
        held
    }

    /// Gives memory back after a large transaction.
    fn shrink(&mut self) {
        if self.single.capacity() > 1024 && self.single.len() < self.single.capacity() / 8 {
            self.single.shrink_to(self.single.len() * 2);
        }
        if self.queues.capacity() > 1024 && self.queues.len() < self.queues.capacity() / 8 {
            self.queues.shrink_to(self.queues.len() * 2);
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Granted or held before.
    Done(LockOutcome),
    /// Queued, or refused if it was not to be queued; the outcome is that of a later grant.
    Blocked(LockOutcome),
}

/// Whether a request that cannot be granted is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfBlocked {
    /// It waits; [`Party::begin`] is called.
    Enqueue,
    /// It is forgotten.
    Refuse,
}

/// All row locks.
pub(super) struct RowTable {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
}

impl RowTable {
    pub(super) fn new() -> RowTable {
        RowTable { shards: (0..SHARDS).map(|_| CachePadded::default()).collect() }
    }

    fn shard(&self, id: RowId) -> &Mutex<Shard> {
        &self.shards[id.shard()]
    }

    pub(super) fn lock(&self, id: RowId, party: &Arc<Party>, mode: LockMode, blocked: IfBlocked) -> Attempt {
        let txn = party.txn();
        let mut guard = self.shard(id).lock();
        let shard = &mut *guard;
        let contended = !shard.queues.is_empty() && shard.queues.contains_key(&id);
        if !contended {
            let holder = match shard.single.entry(id) {
                Entry::Vacant(entry) => {
                    entry.insert(Holder::new(txn, mode));
                    return Attempt::Done(LockOutcome::New);
                }
                Entry::Occupied(mut entry) => {
                    let holder = *entry.get();
                    if holder.txn() == txn {
                        if holder.covers(mode) {
                            return Attempt::Done(LockOutcome::Held);
                        }
                        entry.insert(Holder::new(txn, mode));
                        return Attempt::Done(LockOutcome::Upgraded);
                    }
                    if holder.conflicts(mode) && blocked == IfBlocked::Refuse {
                        return Attempt::Blocked(LockOutcome::New);
                    }
                    entry.remove()
                }
            };
            shard.queues.insert(id, Queue { holders: vec![holder], waiting: VecDeque::new() });
        }
        let queue = shard.queues.entry(id).or_default();
        let mine = queue.holders.iter().find(|h| h.txn() == txn);
        if mine.is_some_and(|h| h.covers(mode)) {
            return Attempt::Done(LockOutcome::Held);
        }
        let upgrade = mine.is_some();
        let outcome = if upgrade { LockOutcome::Upgraded } else { LockOutcome::New };
        let overtakes = queue.waiting.iter().any(|r| r.upgrade || !upgrade);
        if !overtakes && queue.compatible(txn, mode) {
            queue.hold(txn, mode);
            return Attempt::Done(outcome);
        }
        if blocked == IfBlocked::Enqueue {
            party.begin();
            queue.enqueue(Request { party: party.clone(), mode, upgrade });
        }
        Attempt::Blocked(outcome)
    }

    pub(super) fn give_up(&self, id: RowId, party: &Party) -> bool {
        let mut shard = self.shard(id).lock();
        let granted = party.end() == Standing::Granted;
        if !granted {
            if let Some(queue) = shard.queues.get_mut(&id) {
                queue.waiting.retain(|r| r.party.txn() != party.txn());
                shard.settle(id);
            }
        }
        granted
    }

    /// `true` if `txn` held it.
    pub(super) fn release(&self, id: RowId, txn: TxnId) -> bool {
        self.shard(id).lock().release(id, txn)
    }

    /// Releases rows; they are sorted, so that each shard is visited once and stays in the processor's cache.
    pub(super) fn release_many(&self, ids: &mut [RowId], txn: TxnId) {
        ids.sort_unstable_by_key(|id| id.shard());
        for of_shard in ids.chunk_by(|a, b| a.shard() == b.shard()) {
            for batch in of_shard.chunks(RELEASE_BATCH) {
                let mut shard = self.shard(batch[0]).lock();
                for id in batch {
                    shard.release(*id, txn);
                }
                shard.shrink();
            }
        }
    }

    /// See [`super::Shared::blockers`]. With an exclusive request ahead, a shared one waits for all holders through it.
    pub(super) fn blockers(&self, id: RowId, txn: TxnId, sought: TxnId) -> Vec<Blocker> {
        let shard = self.shard(id).lock();
        let Some(queue) = shard.queues.get(&id) else { return Vec::new() };
        let Some(place) = queue.waiting.iter().position(|r| r.party.txn() == txn) else { return Vec::new() };
        let mode = queue.waiting[place].mode;
        let mut found = Vec::new();
        let mut via = None;
        for ahead in queue.waiting.iter().take(place).rev() {
            let conflicts = mode.max(ahead.mode) == LockMode::Exclusive;
            if !conflicts || ahead.party.waiting().is_none() {
                continue;
            }
            if ahead.party.txn() == sought {
                found.push(Blocker { txn: sought, via: None });
            }
            if via.is_none() && ahead.mode == LockMode::Exclusive {
                via = Some(ahead.party.txn());
            }
        }
        for holder in queue.holders.iter().filter(|h| h.txn() != txn) {
            if holder.conflicts(mode) {
                found.push(Blocker { txn: holder.txn(), via: None });
            } else if via.is_some() && via != Some(holder.txn()) {
                found.push(Blocker { txn: holder.txn(), via });
            } else if via.is_some() {
                found.push(Blocker { txn: holder.txn(), via: None });
            }
        }
        found
    }

    /// All that `txn`, which waits for the row, has to let go first: holders, and requests ahead that will hold it.
    pub(super) fn ahead_of(&self, id: RowId, txn: TxnId) -> Vec<TxnId> {
        let shard = self.shard(id).lock();
        let Some(queue) = shard.queues.get(&id) else { return Vec::new() };
        let Some(place) = queue.waiting.iter().position(|r| r.party.txn() == txn) else { return Vec::new() };
        let mode = queue.waiting[place].mode;
        let holders = queue.holders.iter().filter(|h| h.txn() != txn && h.conflicts(mode)).map(|h| h.txn());
        let requests = queue.waiting.iter().take(place).filter(|r| mode.max(r.mode) == LockMode::Exclusive);
        holders.chain(requests.map(|r| r.party.txn())).collect()
    }

    /// Bytes of the maps, but for what queues point to.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        let single = std::mem::size_of::<(RowId, Holder)>() + 1;
        let queue = std::mem::size_of::<(RowId, Queue)>() + 1;
        // The maps fill up to seven eighths.
        let bytes = |s: &Shard| (s.single.capacity() * single + s.queues.capacity() * queue) * 8 / 7;
        self.shards.iter().map(|s| bytes(&s.lock())).sum()
    }

    /// Rows that anybody holds or waits for.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock()).map(|s| s.single.len() + s.queues.len()).sum()
    }
}
