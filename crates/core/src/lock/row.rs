//! Row locks: who holds which row, and who waits for it in which order. (Who holds many rows holds some by covers, see
//! [`super::cover`].)

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use crate::sync::Mutex;
use crossbeam_utils::CachePadded;
use twox_hash::XxHash3_64;

use super::account::Account;
use super::party::{Party, Standing};
use super::{Blocker, LockOutcome};
use crate::{LockMode, TreeId, TxnId};

const SHARDS: usize = 256;
/// Roughly what the holders and the requests of a queue take.
const QUEUE_BYTES: usize = 160;
/// A shard's maps keep room for so many when they empty.
const KEPT: usize = 128;
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
    txn: TxnId,
    mode: LockMode,
    upgrade: bool,
}

/// A lock of a row that is not in the table: a cover has it.
pub(super) struct Foreign {
    pub party: Arc<Party>,
    pub mode: LockMode,
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
        debug_assert!(self.compatible(txn, mode), "{mode:?} is granted beside another's lock");
        match self.holders.iter_mut().find(|h| h.txn() == txn) {
            Some(holder) => *holder = Holder::new(txn, mode),
            None => self.holders.push(Holder::new(txn, mode)),
        }
    }

    /// Grants from the front what can be granted.
    fn grant_ready(&mut self) {
        while let Some(front) = self.waiting.front() {
            let (txn, mode) = (front.txn, front.mode);
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
        debug_assert!(
            self.waiting.iter().all(|r| r.txn != request.txn),
            "a transaction waits twice for a row"
        );
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
    /// Bytes that the account knows of.
    charged: usize,
}

impl Shard {
    /// Bytes of the maps, and roughly of what queues point to.
    fn bytes(&self) -> usize {
        let single = std::mem::size_of::<(RowId, Holder)>() + 1;
        let queue = std::mem::size_of::<(RowId, Queue)>() + 1 + QUEUE_BYTES;
        // The maps fill up to seven eighths.
        (self.single.capacity() * single + self.queues.capacity() * queue) * 8 / 7
    }

    /// Tells the account what it does not know.
    fn charge(&mut self, account: &Account) {
        let bytes = self.bytes();
        account.change(std::mem::replace(&mut self.charged, bytes), bytes);
    }

    /// The row's queue, also if it had none.
    fn queue(&mut self, id: RowId) -> &mut Queue {
        let holder = self.single.remove(&id);
        let queue = self.queues.entry(id).or_default();
        queue.holders.extend(holder);
        queue
    }

    /// Whether somebody in the table shows that a lock of `mode` by `txn` cannot be.
    fn excludes(&self, id: RowId, txn: TxnId, mode: LockMode) -> bool {
        let conflicts = |h: &Holder| h.txn() != txn && h.conflicts(mode);
        self.single.get(&id).is_some_and(conflicts)
            || self.queues.get(&id).is_some_and(|queue| queue.holders.iter().any(conflicts))
    }

    fn holds(&self, id: RowId, txn: TxnId, mode: LockMode) -> bool {
        let covers = |h: &Holder| h.txn() == txn && h.covers(mode);
        self.single.get(&id).is_some_and(covers)
            || self.queues.get(&id).is_some_and(|queue| queue.holders.iter().any(covers))
    }

    /// Makes an entry of the lock that a cover has, unless one of another shows that it has none.
    fn admit(&mut self, id: RowId, foreign: &Foreign) {
        let txn = foreign.party.txn();
        if self.excludes(id, txn, foreign.mode) || self.holds(id, txn, foreign.mode) {
            return;
        }
        self.queue(id).hold(txn, foreign.mode);
        foreign.party.note_entry(id);
    }

    /// Takes back the entry of a row that a cover of the same owner has locked as strongly; `false` if it must stay,
    /// since somebody waits for it or it is stronger.
    fn yield_to_cover(&mut self, id: RowId, txn: TxnId, mode: LockMode) -> bool {
        let theirs = |h: &Holder| h.txn() == txn && (mode == LockMode::Exclusive || !h.exclusive());
        if let Entry::Occupied(entry) = self.single.entry(id) {
            let yields = theirs(entry.get());
            if yields {
                entry.remove();
            }
            return yields;
        }
        let free = self.queues.get(&id).is_some_and(|q| q.waiting.is_empty() && q.holders.iter().any(theirs));
        free && self.release(id, txn)
    }

    fn lock(&mut self, id: RowId, party: &Arc<Party>, mode: LockMode, blocked: IfBlocked) -> Attempt {
        let txn = party.txn();
        let contended = !self.queues.is_empty() && self.queues.contains_key(&id);
        if !contended {
            match self.single.entry(id) {
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
                }
            }
        }
        let queue = self.queue(id);
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
            queue.enqueue(Request { party: party.clone(), txn, mode, upgrade });
        }
        Attempt::Blocked(outcome)
    }

    /// Grants, and gives up the queue when it is no longer needed.
    fn settle(&mut self, id: RowId) {
        let Entry::Occupied(mut entry) = self.queues.entry(id) else { return };
        entry.get_mut().grant_ready();
        let queue = entry.get();
        if queue.waiting.is_empty() && queue.holders.len() <= 1 {
            if let Some(holder) = entry.remove().holders.pop() {
                let other = self.single.insert(id, holder);
                debug_assert!(other.is_none(), "a row with a queue had a holder beside it");
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

    fn downgrade(&mut self, id: RowId, txn: TxnId) {
        let shared = Holder::new(txn, LockMode::Shared);
        if let Some(holder) = self.single.get_mut(&id).filter(|holder| holder.txn() == txn) {
            *holder = shared;
        }
        let Some(queue) = self.queues.get_mut(&id) else { return };
        if let Some(holder) = queue.holders.iter_mut().find(|holder| holder.txn() == txn) {
            *holder = shared;
            self.settle(id);
        }
    }

    /// Gives memory back after a large transaction.
    fn shrink(&mut self, account: &Account) {
        if self.single.capacity() > KEPT && self.single.len() < self.single.capacity() / 8 {
            self.single.shrink_to(self.single.len() * 2);
        }
        if self.queues.capacity() > KEPT && self.queues.len() < self.queues.capacity() / 8 {
            self.queues.shrink_to(self.queues.len() * 2);
        }
        self.charge(account);
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

/// What a request knows of covers.
pub(super) enum Known<'a> {
    /// Nothing yet: if this says that there are any the request is not decided.
    Not(&'a dyn Fn() -> bool),
    /// These are over the row, and stay until the request is decided.
    All(&'a [Foreign]),
}

/// All row locks.
pub(super) struct RowTable {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    account: Arc<Account>,
}

impl RowTable {
    pub(super) fn new(account: Arc<Account>) -> RowTable {
        RowTable { shards: (0..SHARDS).map(|_| CachePadded::default()).collect(), account }
    }

    fn shard(&self, id: RowId) -> &Mutex<Shard> {
        &self.shards[id.shard()]
    }

    /// `None` if covers are to be asked first.
    pub(super) fn lock(
        &self,
        id: RowId,
        party: &Arc<Party>,
        mode: LockMode,
        blocked: IfBlocked,
        known: Known<'_>,
    ) -> Option<Attempt> {
        let mut guard = self.shard(id).lock();
        let shard = &mut *guard;
        match known {
            Known::Not(any) if any() => return None,
            Known::Not(_) | Known::All([]) => {}
            Known::All(foreign) => {
                let txn = party.txn();
                if shard.holds(id, txn, mode) {
                    return Some(Attempt::Done(LockOutcome::Held));
                }
                let others = || foreign.iter().filter(|f| f.party.txn() != txn);
                if blocked == IfBlocked::Refuse
                    && others().any(|f| !shard.excludes(id, f.party.txn(), f.mode))
                {
                    return Some(Attempt::Blocked(LockOutcome::New));
                }
                foreign.iter().for_each(|foreign| shard.admit(id, foreign));
            }
        }
        let attempt = shard.lock(id, party, mode, blocked);
        if shard.bytes() > shard.charged {
            shard.charge(&self.account);
        }
        Some(attempt)
    }

    pub(super) fn give_up(&self, id: RowId, party: &Party) -> bool {
        let mut shard = self.shard(id).lock();
        let granted = party.end() == Standing::Granted;
        if !granted {
            if let Some(queue) = shard.queues.get_mut(&id) {
                queue.waiting.retain(|r| r.txn != party.txn());
                shard.settle(id);
            }
        }
        granted
    }

    /// As what `txn` has the row locked.
    pub(super) fn mode_of(&self, id: RowId, txn: TxnId) -> Option<LockMode> {
        let shard = self.shard(id).lock();
        let modes = [LockMode::Exclusive, LockMode::Shared];
        modes.into_iter().find(|mode| shard.holds(id, txn, *mode))
    }

    /// Makes the exclusive lock of `txn` a shared one; others may have waited for that.
    pub(super) fn downgrade(&self, id: RowId, txn: TxnId) {
        self.shard(id).lock().downgrade(id, txn);
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
                shard.shrink(&self.account);
            }
        }
    }

    /// Takes back the entries of rows that a cover of the same owner has locked; those that must stay are returned.
    pub(super) fn yield_to_cover(&self, mut ids: Vec<RowId>, txn: TxnId, mode: LockMode) -> Vec<RowId> {
        ids.sort_unstable_by_key(|id| id.shard());
        let mut kept = Vec::new();
        for of_shard in ids.chunk_by(|a, b| a.shard() == b.shard()) {
            for batch in of_shard.chunks(RELEASE_BATCH) {
                let mut shard = self.shard(batch[0]).lock();
                kept.extend(batch.iter().filter(|id| !shard.yield_to_cover(**id, txn, mode)));
                shard.shrink(&self.account);
            }
        }
        kept
    }

    /// See [`super::LockTables::blockers`]. With an exclusive request ahead, a shared one waits for all holders through
    /// it.
    pub(super) fn blockers(&self, id: RowId, txn: TxnId, sought: Option<TxnId>) -> Vec<Blocker> {
        let shard = self.shard(id).lock();
        let Some(queue) = shard.queues.get(&id) else { return Vec::new() };
        // From the end: most searches are by who came last.
        let Some(place) = queue.waiting.iter().rposition(|r| r.txn == txn) else { return Vec::new() };
        let mode = queue.waiting[place].mode;
        let mut found = Vec::new();
        let mut via = None;
        let mut sought = sought.filter(|sought| *sought != txn);
        for ahead in queue.waiting.iter().take(place).rev() {
            if via.is_some() && sought.is_none() {
                break;
            }
            let conflicts = mode.max(ahead.mode) == LockMode::Exclusive;
            let matters = Some(ahead.txn) == sought || (via.is_none() && ahead.mode == LockMode::Exclusive);
            if !conflicts || !matters || ahead.party.waiting().is_none() {
                continue;
            }
            if Some(ahead.txn) == sought {
                found.push(Blocker { txn: ahead.txn, via: None });
                sought = None;
            }
            if via.is_none() && ahead.mode == LockMode::Exclusive {
                via = Some(ahead.txn);
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
        let Some(place) = queue.waiting.iter().rposition(|r| r.txn == txn) else { return Vec::new() };
        let mode = queue.waiting[place].mode;
        let holders = queue.holders.iter().filter(|h| h.txn() != txn && h.conflicts(mode)).map(|h| h.txn());
        let requests = queue.waiting.iter().take(place).filter(|r| mode.max(r.mode) == LockMode::Exclusive);
        holders.chain(requests.map(|r| r.txn)).collect()
    }

    /// Rows that anybody holds or waits for.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock()).map(|s| s.single.len() + s.queues.len()).sum()
    }
}
