//! Range locks: ranges of keys in which nobody else may insert or take an exclusive row lock.

use std::collections::{HashMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{fence, AtomicUsize, Ordering};
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::party::{Party, Standing};
use super::row::IfBlocked;
use super::Blocker;
use crate::{LockMode, TreeId, TxnId};

const SHARDS: usize = 64;
/// An owner's ranges that a new one is tried to be merged with, newest first.
const MERGE_WITH: usize = 4;

/// A range of keys.
#[derive(Clone)]
pub(super) struct KeyRange {
    from: Bound<Box<[u8]>>,
    to: Bound<Box<[u8]>>,
    mode: LockMode,
}

fn owned(bound: Bound<&[u8]>) -> Bound<Box<[u8]>> {
    match bound {
        Bound::Included(key) => Bound::Included(key.into()),
        Bound::Excluded(key) => Bound::Excluded(key.into()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Whether a range that ends with `to` ends before one that begins with `from`.
fn ends_before(to: &Bound<Box<[u8]>>, from: &Bound<Box<[u8]>>) -> bool {
    match (to, from) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(a), Bound::Included(b)) => a < b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a <= b,
    }
}

/// Lower bounds in their order: (key, comes after the key); `None` is before all.
fn start(bound: &Bound<Box<[u8]>>) -> Option<(&[u8], bool)> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((key, false)),
        Bound::Excluded(key) => Some((key, true)),
    }
}

/// Upper bounds in their order, turned so that `None`, the end of all, is the least.
fn end(bound: &Bound<Box<[u8]>>) -> Option<std::cmp::Reverse<(&[u8], bool)>> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(std::cmp::Reverse((key, true))),
        Bound::Excluded(key) => Some(std::cmp::Reverse((key, false))),
    }
}

impl KeyRange {
    pub(super) fn new(from: Bound<&[u8]>, to: Bound<&[u8]>, mode: LockMode) -> KeyRange {
        KeyRange { from: owned(from), to: owned(to), mode }
    }

    fn covers(&self, key: &[u8]) -> bool {
        let after_start = match &self.from {
            Bound::Included(from) => key >= &**from,
            Bound::Excluded(from) => key > &**from,
            Bound::Unbounded => true,
        };
        let before_end = match &self.to {
            Bound::Included(to) => key <= &**to,
            Bound::Excluded(to) => key < &**to,
            Bound::Unbounded => true,
        };
        after_start && before_end
    }

    /// Whether it covers a key from `first` to `last`.
    fn meets(&self, first: &[u8], last: &[u8]) -> bool {
        let ends_before = match &self.to {
            Bound::Included(to) => **to < *first,
            Bound::Excluded(to) => **to <= *first,
            Bound::Unbounded => false,
        };
        let begins_after = match &self.from {
            Bound::Included(from) => **from > *last,
            Bound::Excluded(from) => **from >= *last,
            Bound::Unbounded => false,
        };
        !ends_before && !begins_after
    }

    fn overlaps(&self, other: &KeyRange) -> bool {
        !ends_before(&self.to, &other.from) && !ends_before(&other.to, &self.from)
    }

    fn conflicts(&self, other: &KeyRange) -> bool {
        self.mode.max(other.mode) == LockMode::Exclusive && self.overlaps(other)
    }

    /// Takes in `other`, which overlaps.
    fn extend(&mut self, other: &KeyRange) {
        if start(&other.from) < start(&self.from) {
            self.from = other.from.clone();
        }
        if end(&other.to) < end(&self.to) {
            self.to = other.to.clone();
        }
    }
}

/// What a request waits to do.
#[derive(Clone)]
pub(super) enum Want {
    /// Pass with an insert or an exclusive row lock; nothing is held afterwards.
    Key(Box<[u8]>),
    /// Pass with inserts of keys from the first to the last.
    Keys(Box<[u8]>, Box<[u8]>),
    /// Hold a range.
    Range(KeyRange),
}

impl Want {
    fn blocked_by(&self, granted: &KeyRange) -> bool {
        match self {
            Want::Key(key) => granted.covers(key),
            Want::Keys(first, last) => granted.meets(first, last),
            Want::Range(range) => range.conflicts(granted),
        }
    }
}

struct Request {
    party: Arc<Party>,
    want: Want,
}

#[derive(Default)]
struct Ranges {
    granted: Vec<(TxnId, KeyRange)>,
    waiting: VecDeque<Request>,
}

impl Ranges {
    /// Who must go before `txn`, which waits at `place` (or would come to wait there).
    fn in_the_way<'a>(
        &'a self,
        txn: TxnId,
        want: &'a Want,
        place: usize,
    ) -> impl Iterator<Item = TxnId> + 'a {
        let granted = self.granted.iter().filter(move |(by, range)| *by != txn && want.blocked_by(range));
        let ahead = self.waiting.iter().take(place).filter(move |r| {
            r.party.txn() != txn && r.party.waiting().is_some() && self.goes_first(&r.want, txn, want)
        });
        granted.map(|(by, _)| *by).chain(ahead.map(|r| r.party.txn()))
    }

    /// Whether a request that waits goes before a later one. An insert does before a range over its key: otherwise readers that
    /// come and go would keep it waiting for ever. Not before one of a transaction that it waits for already.
    fn goes_first(&self, theirs: &Want, txn: TxnId, mine: &Want) -> bool {
        match (theirs, mine) {
            (Want::Range(theirs), Want::Range(mine)) => theirs.conflicts(mine),
            (Want::Key(_) | Want::Keys(..), Want::Range(mine)) => {
                let held = || self.granted.iter().filter(|(by, _)| *by == txn);
                theirs.blocked_by(mine) && !held().any(|(_, range)| theirs.blocked_by(range))
            }
            (_, Want::Key(_) | Want::Keys(..)) => false,
        }
    }

    /// Adds a range; returns how many more there are.
    fn hold(&mut self, txn: TxnId, range: KeyRange) -> usize {
        let own = self.granted.iter_mut().rev().filter(|(by, _)| *by == txn);
        for (_, mine) in own.take(MERGE_WITH) {
            if mine.mode == range.mode && mine.overlaps(&range) {
                mine.extend(&range);
                return 0;
            }
        }
        self.granted.push((txn, range));
        1
    }

    /// Grants, in the order of the queue, what nothing is in the way of.
    fn grant_ready(&mut self) {
        let mut place = 0;
        while let Some(request) = self.waiting.get(place) {
            let txn = request.party.txn();
            if self.in_the_way(txn, &request.want, place).next().is_some() {
                place += 1;
                continue;
            }
            let granted = request.party.grant();
            if let Some(Request { want: Want::Range(range), .. }) = self.waiting.remove(place) {
                if granted {
                    self.hold(txn, range);
                }
            }
        }
    }
}

#[derive(Default)]
struct Shard {
    /// Granted ranges of all trees of the shard.
    count: AtomicUsize,
    trees: Mutex<HashMap<TreeId, Ranges>>,
}

/// All range locks.
pub(super) struct RangeTable {
    shards: Box<[CachePadded<Shard>]>,
}

impl RangeTable {
    pub(super) fn new() -> RangeTable {
        RangeTable { shards: (0..SHARDS).map(|_| CachePadded::default()).collect() }
    }

    fn shard(&self, tree: TreeId) -> &Shard {
        &self.shards[tree as usize % SHARDS]
    }

    /// Whether nobody holds a range of `tree`. The caller has written its row or is about to (see the module's head).
    pub(super) fn none(&self, tree: TreeId) -> bool {
        // The fence orders the caller's write before the load; it meets that of `published`.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence; what is in the list is read under the latch.
        self.shard(tree).count.load(Ordering::Relaxed) == 0
    }

    /// To be called between a range's grant and the scan of its rows: orders the count before the scan.
    pub(super) fn published(&self) {
        fence(Ordering::SeqCst);
    }

    /// `true` if the want is satisfied, otherwise it waits (or is refused).
    pub(super) fn request(&self, tree: TreeId, party: &Arc<Party>, want: Want, blocked: IfBlocked) -> bool {
        let shard = self.shard(tree);
        let mut trees = shard.trees.lock();
        let txn = party.txn();
        if !matches!(want, Want::Range(_)) && !trees.contains_key(&tree) {
            return true;
        }
        let ranges = trees.entry(tree).or_default();
        if ranges.in_the_way(txn, &want, ranges.waiting.len()).next().is_some() {
            if blocked == IfBlocked::Enqueue {
                party.begin();
                ranges.waiting.push_back(Request { party: party.clone(), want });
            }
            return false;
        }
        if let Want::Range(range) = want {
            let more = ranges.hold(txn, range);
            shard.count.fetch_add(more, Ordering::SeqCst);
        }
        true
    }

    fn change<T>(&self, tree: TreeId, change: impl FnOnce(&mut Ranges) -> T) -> Option<T> {
        let shard = self.shard(tree);
        let mut trees = shard.trees.lock();
        let ranges = trees.get_mut(&tree)?;
        let before = ranges.granted.len();
        let result = change(ranges);
        ranges.grant_ready();
        let after = ranges.granted.len();
        if ranges.granted.is_empty() && ranges.waiting.is_empty() {
            trees.remove(&tree);
        }
        // Late is right: a waiter that was granted a range may scan already, and until here the count is not below the truth of
        // before, which was not zero, or nobody would have waited.
        shard.count.fetch_add(after.wrapping_sub(before), Ordering::SeqCst);
        Some(result)
    }

    pub(super) fn give_up(&self, tree: TreeId, party: &Party) -> bool {
        let mut granted = false;
        let found = self.change(tree, |ranges| {
            granted = party.end() == Standing::Granted;
            if !granted {
                ranges.waiting.retain(|r| r.party.txn() != party.txn());
            }
        });
        match found {
            Some(()) => granted,
            // The tree has neither ranges nor waiters: the request was granted, and what it waited for is gone.
            None => party.end() == Standing::Granted,
        }
    }

    pub(super) fn release(&self, tree: TreeId, txn: TxnId) {
        self.change(tree, |ranges| ranges.granted.retain(|(by, _)| *by != txn));
    }

    pub(super) fn blockers(&self, tree: TreeId, txn: TxnId) -> Vec<Blocker> {
        let trees = self.shard(tree).trees.lock();
        let Some(ranges) = trees.get(&tree) else { return Vec::new() };
        let Some(place) = ranges.waiting.iter().position(|r| r.party.txn() == txn) else {
            return Vec::new();
        };
        let want = &ranges.waiting[place].want;
        ranges.in_the_way(txn, want, place).map(|txn| Blocker { txn, via: None }).collect()
    }

    /// Ranges held and requests waiting.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let counted = self.shards.iter().map(|s| s.count.load(Ordering::SeqCst)).sum();
        let trees = self.shards.iter().map(|s| s.trees.lock().len()).sum();
        (counted, trees)
    }
}
