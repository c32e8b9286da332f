//! Range locks: ranges of keys in which nobody else may insert.
//!
//! The ranges of a tree are two [`Granted`], one a mode, that say in O(log n) whose ranges a key lies in. A new one
//! that meets or touches others of its owner becomes one with them, so a scan that locks gap after gap holds one range.
//! Where locks take too much memory, an owner of many ranges gets one from the first to the last of them.

use crate::sync::atomic::{fence, AtomicUsize, Ordering};
use std::collections::{HashMap, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crate::sync::RwLock;
use crossbeam_utils::CachePadded;

use super::account::Account;
use super::granted::Granted;
use super::held::{LockKind, Owners, Spans};
use super::interval::{Cut, Span};
use super::party::{Party, Standing};
use super::row::IfBlocked;
use super::{Blocker, Sought};
use crate::{LockMode, TreeId, TxnId};

const SHARDS: usize = 64;
/// An owner of fewer ranges of a tree keeps them, however much memory all locks take.
const FEW: usize = if cfg!(test) { 8 } else { 1024 };

/// What a request waits to do.
#[derive(Clone)]
pub(super) enum Want {
    /// Pass with inserts of keys in the span; nothing is held afterwards.
    Insert(Span),
    /// Hold a range.
    Range(Span, LockMode),
}

impl Want {
    /// Pass with an insert of `key`.
    pub(super) fn key(key: &[u8]) -> Want {
        Want::keys(key, key)
    }

    /// Pass with inserts of keys from `first` to `last`.
    pub(super) fn keys(first: &[u8], last: &[u8]) -> Want {
        Want::Insert(Span::new(Bound::Included(first), Bound::Included(last)))
    }

    /// As people are told of it.
    pub(super) fn sought(&self, tree: TreeId) -> Sought {
        let mode = match self {
            Want::Insert(_) => LockMode::Exclusive,
            Want::Range(_, mode) => *mode,
        };
        let (from, to) = self.span().bounds();
        Sought { tree, from, to, mode, is_range: true }
    }

    fn span(&self) -> &Span {
        match self {
            Want::Insert(span) | Want::Range(span, _) => span,
        }
    }
}

struct Request {
    party: Arc<Party>,
    want: Want,
}

#[derive(Default)]
struct Ranges {
    shared: Granted,
    exclusive: Granted,
    waiting: VecDeque<Request>,
}

impl Ranges {
    fn is_unused(&self) -> bool {
        self.shared.is_empty() && self.exclusive.is_empty() && self.waiting.is_empty()
    }

    /// How many are granted, and their memory.
    fn size(&self) -> (usize, usize) {
        (self.shared.len() + self.exclusive.len(), self.shared.bytes() + self.exclusive.bytes())
    }

    fn granted(&mut self, mode: LockMode) -> &mut Granted {
        match mode {
            LockMode::Shared => &mut self.shared,
            LockMode::Exclusive => &mut self.exclusive,
        }
    }

    /// Calls `visit` with each other owner of a granted range that is in the way of `want`.
    fn owners_in_the_way<B>(
        &self,
        txn: TxnId,
        want: &Want,
        visit: &mut impl FnMut(TxnId) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut others = |owner| if owner == txn { ControlFlow::Continue(()) } else { visit(owner) };
        if !matches!(want, Want::Range(_, LockMode::Shared)) {
            self.shared.meeting(want.span().borrow(), &mut others)?;
        }
        self.exclusive.meeting(want.span().borrow(), &mut others)
    }

    /// Requests ahead of `place` that go before `want`.
    fn requests_in_the_way<'a>(
        &'a self,
        txn: TxnId,
        want: &'a Want,
        place: usize,
    ) -> impl Iterator<Item = TxnId> + 'a {
        let ahead = match want {
            Want::Insert(_) => 0,
            Want::Range(..) => place,
        };
        let in_the_way = move |r: &&Request| {
            r.party.txn() != txn && self.goes_first(&r.want, txn, want) && r.party.waiting().is_some()
        };
        self.waiting.iter().take(ahead).filter(in_the_way).map(|r| r.party.txn())
    }

    fn is_free(&self, txn: TxnId, want: &Want, place: usize) -> bool {
        self.owners_in_the_way(txn, want, &mut |_| ControlFlow::Break(())).is_continue()
            && self.requests_in_the_way(txn, want, place).next().is_none()
    }

    /// Who must go before `txn`, which waits at `place`.
    fn in_the_way(&self, txn: TxnId, want: &Want, place: usize) -> Vec<TxnId> {
        let mut found = Vec::new();
        let _ = self.owners_in_the_way(txn, want, &mut |owner| {
            found.push(owner);
            ControlFlow::<()>::Continue(())
        });
        found.extend(self.requests_in_the_way(txn, want, place));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether a request that waits goes before a later one. An insert does before a range over its key: otherwise
    /// readers that come and go would keep it waiting for ever. Not before one of a transaction that it waits for
    /// already.
    fn goes_first(&self, theirs: &Want, txn: TxnId, mine: &Want) -> bool {
        match (theirs, mine) {
            (Want::Range(theirs, their_mode), Want::Range(mine, mode)) => {
                mode.max(their_mode) == &LockMode::Exclusive && theirs.meets(mine)
            }
            (Want::Insert(theirs), Want::Range(mine, _)) => {
                let waits_for = |granted: &Granted| granted.owner_meets(txn, theirs);
                theirs.meets(mine) && !waits_for(&self.shared) && !waits_for(&self.exclusive)
            }
            (_, Want::Insert(_)) => false,
        }
    }

    /// Grants, in the order of the queue, what nothing is in the way of.
    fn grant_ready(&mut self) {
        let mut place = 0;
        while let Some(request) = self.waiting.get(place) {
            let txn = request.party.txn();
            if !self.is_free(txn, &request.want, place) {
                place += 1;
                continue;
            }
            let granted = request.party.grant();
            if let Some(Request { want: Want::Range(span, mode), .. }) = self.waiting.remove(place) {
                if granted {
                    self.granted(mode).hold(txn, span);
                }
            }
        }
    }
}

#[derive(Default)]
struct Shard {
    /// Granted ranges of all trees of the shard.
    count: AtomicUsize,
    trees: RwLock<HashMap<TreeId, Ranges>>,
}

/// All range locks.
pub(super) struct RangeTable {
    shards: Box<[CachePadded<Shard>]>,
    account: Arc<Account>,
}

impl RangeTable {
    pub(super) fn new(account: Arc<Account>) -> RangeTable {
        RangeTable { shards: (0..SHARDS).map(|_| CachePadded::default()).collect(), account }
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
    pub(super) fn request(&self, tree: TreeId, party: &Arc<Party>, want: &Want, blocked: IfBlocked) -> bool {
        let shard = self.shard(tree);
        let txn = party.txn();
        if want.span().is_empty() {
            return true;
        }
        if let Want::Insert(_) = want {
            // Inserters do not exclude each other while nobody is in their way.
            let trees = shard.trees.read();
            if trees.get(&tree).is_none_or(|ranges| ranges.is_free(txn, want, ranges.waiting.len())) {
                return true;
            }
        }
        let mut trees = shard.trees.write();
        let ranges = trees.entry(tree).or_default();
        let free = ranges.is_free(txn, want, ranges.waiting.len());
        match want {
            Want::Range(span, mode) if free => {
                let before = ranges.size();
                let granted = ranges.granted(*mode);
                granted.hold(txn, span.clone());
                // Shared ranges exclude no others of their kind, so what lies between can be had.
                let widens = *mode == LockMode::Shared && granted.len_of(txn) > FEW && self.account.is_over();
                if widens && ranges.exclusive.is_empty() {
                    ranges.shared.widen(txn);
                }
                self.count(shard, before, ranges.size());
            }
            Want::Insert(_) if free && ranges.is_unused() => {
                trees.remove(&tree);
            }
            want if !free && blocked == IfBlocked::Enqueue => {
                party.begin();
                ranges.waiting.push_back(Request { party: party.clone(), want: want.clone() });
            }
            _ => {}
        }
        free
    }

    fn count(&self, shard: &Shard, before: (usize, usize), now: (usize, usize)) {
        shard.count.fetch_add(now.0.wrapping_sub(before.0), Ordering::SeqCst);
        self.account.change(before.1, now.1);
    }

    fn change(&self, tree: TreeId, change: impl FnOnce(&mut Ranges)) -> bool {
        let shard = self.shard(tree);
        let mut trees = shard.trees.write();
        let Some(ranges) = trees.get_mut(&tree) else { return false };
        let before = ranges.size();
        change(ranges);
        ranges.grant_ready();
        // Late is right: a waiter that was granted a range may scan already, and until here the count is not below the
        // truth of before, which was not zero, or nobody would have waited.
        self.count(shard, before, ranges.size());
        if ranges.is_unused() {
            trees.remove(&tree);
        }
        true
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
            true => granted,
            // The tree has neither ranges nor waiters: the request was granted, and what it waited for is gone.
            false => party.end() == Standing::Granted,
        }
    }

    pub(super) fn release(&self, tree: TreeId, txn: TxnId) {
        self.change(tree, |ranges| {
            ranges.shared.release(txn);
            ranges.exclusive.release(txn);
        });
    }

    pub(super) fn blockers(&self, tree: TreeId, txn: TxnId) -> Vec<Blocker> {
        let trees = self.shard(tree).trees.read();
        let Some(ranges) = trees.get(&tree) else { return Vec::new() };
        let Some(place) = ranges.waiting.iter().position(|r| r.party.txn() == txn) else {
            return Vec::new();
        };
        let want = &ranges.waiting[place].want;
        ranges.in_the_way(txn, want, place).into_iter().map(|txn| Blocker { txn, via: None }).collect()
    }

    /// Ranges held and requests waiting.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let counted = self.shards.iter().map(|s| s.count.load(Ordering::SeqCst)).sum();
        let trees = self.shards.iter().map(|s| s.trees.read().len()).sum();
        (counted, trees)
    }
}

/// Set 0 are the shared ones.
impl Spans for RangeTable {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn owners(&self, shard: usize) -> Owners {
        let trees = self.shards[shard].trees.read();
        let of_tree = |(tree, ranges): (&TreeId, &Ranges)| {
            let sets = [&ranges.shared, &ranges.exclusive].into_iter().enumerate();
            let of_set = |(set, granted): (usize, &Granted)| {
                granted.owners().map(|txn| (*tree, set, txn)).collect::<Vec<_>>()
            };
            sets.flat_map(of_set).collect::<Vec<_>>()
        };
        trees.iter().flat_map(of_tree).collect()
    }

    fn spans(&self, (tree, set, txn): (TreeId, usize, TxnId), after: Option<&Cut>) -> Vec<(Cut, Cut)> {
        let trees = self.shard(tree).trees.read();
        let Some(ranges) = trees.get(&tree) else { return Vec::new() };
        [&ranges.shared, &ranges.exclusive][set].some_of(txn, after)
    }

    fn what(&self, set: usize) -> (LockMode, LockKind) {
        ([LockMode::Shared, LockMode::Exclusive][set], LockKind::Range)
    }
}
