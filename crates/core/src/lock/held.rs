//! The locks that there are, for people to see.
//!
//! A lock of a single row is known by a hash ([`super::row`]), from which nobody gets its key back; ranges and runs of
//! consecutive keys have theirs. These are listed, some at a time: between two of these steps no latch is held, so what
//! is listed is not of one moment, but each lock is there once, if it was there all the while.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::cover::CoverTable;
use super::interval::{Cut, KeyBound};
use super::range::RangeTable;
use super::row::RowId;
use super::LockManager;
use crate::{LockMode, TreeId, TxnId};

/// So many are copied under one hold of a latch.
pub(super) const STEP: usize = 512;

/// What a lock is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Keys that nobody else may insert.
    Range,
    /// Rows of consecutive keys.
    Run,
    /// The same, with what lies between them: there were too many locks.
    Widened,
}

/// A lock that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// Who.
    pub txn: TxnId,
    /// Where.
    pub tree: TreeId,
    /// As what.
    pub mode: LockMode,
    /// Of what.
    pub kind: LockKind,
    /// From this key on.
    pub from: KeyBound,
    /// To this one.
    pub to: KeyBound,
}

/// Some owner's spans of one tree and mode, after one of them.
pub(super) fn some(own: &BTreeMap<Cut, Cut>, after: Option<&Cut>) -> Vec<(Cut, Cut)> {
    let begin = after.map_or(Bound::Unbounded, |cut| Bound::Excluded(cut.clone()));
    own.range((begin, Bound::Unbounded)).take(STEP).map(|(from, to)| (from.clone(), to.clone())).collect()
}

/// Whose spans are where, in one of several sets of a tree.
pub(super) type Owners = Vec<(TreeId, usize, TxnId)>;

/// Where spans are listed from.
pub(super) trait Spans {
    /// So many shards.
    fn shards(&self) -> usize;
    /// Who has spans in a shard.
    fn owners(&self, shard: usize) -> Owners;
    /// The next of one of these.
    fn spans(&self, of: (TreeId, usize, TxnId), after: Option<&Cut>) -> Vec<(Cut, Cut)>;
    /// What the spans of a set are.
    fn what(&self, set: usize) -> (LockMode, LockKind);
}

fn list<B>(
    table: &dyn Spans,
    bounds: impl Fn(Cut, Cut) -> (KeyBound, KeyBound),
    visit: &mut dyn FnMut(HeldLock) -> ControlFlow<B>,
) -> ControlFlow<B> {
    for of in (0..table.shards()).flat_map(|shard| table.owners(shard)) {
        let (tree, set, txn) = of;
        let (mode, kind) = table.what(set);
        let mut last: Option<Cut> = None;
        loop {
            let next = table.spans(of, last.as_ref());
            let is_end = next.len() < STEP;
            for (begin, end) in next {
                last = Some(begin.clone());
                let (from, to) = bounds(begin, end);
                visit(HeldLock { txn, tree, mode, kind, from, to })?;
            }
            if is_end {
                break;
            }
        }
    }
    ControlFlow::Continue(())
}

/// An end of a run without the length before its key (see [`super::cover`]).
fn unmeasured(bound: KeyBound) -> KeyBound {
    bound.map(|key| Arc::from(key.get(4..).unwrap_or_default()))
}

impl LockManager {
    /// Calls `visit` with all ranges and runs, until it says that it is enough.
    pub fn list<B>(&self, visit: &mut dyn FnMut(HeldLock) -> ControlFlow<B>) -> ControlFlow<B> {
        let (ranges, covers): (&RangeTable, &CoverTable) = (&self.shared.ranges, &self.shared.covers);
        let bounds = |from, to| super::interval::Span { from, to }.bounds();
        list(ranges, bounds, visit)?;
        let of_run = |from, to| {
            let (from, to) = bounds(from, to);
            (unmeasured(from), unmeasured(to))
        };
        list(covers, of_run, visit)
    }

    /// Trees with ranges or runs.
    pub fn trees(&self) -> HashSet<TreeId> {
        let trees = |table: &dyn Spans| -> Vec<TreeId> {
            (0..table.shards()).flat_map(|shard| table.owners(shard)).map(|(tree, _, _)| tree).collect()
        };
        trees(&self.shared.ranges).into_iter().chain(trees(&self.shared.covers)).collect()
    }

    /// As what `txn` has the row locked, if it has an entry of its own.
    pub fn holds(&self, tree: TreeId, key: &[u8], txn: TxnId) -> Option<LockMode> {
        self.shared.rows.mode_of(RowId::new(tree, key), txn)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{owner, try_lock};
    use super::*;
    use crate::LockMode::{Exclusive, Shared};
    use crate::WaitRequest;

    fn all(manager: &LockManager) -> Vec<HeldLock> {
        let mut found = Vec::new();
        let _ = manager.list(&mut |lock| {
            found.push(lock);
            ControlFlow::<()>::Continue(())
        });
        found
    }

    fn key(number: u32) -> Arc<[u8]> {
        Arc::from(number.to_be_bytes())
    }

    #[test]
    fn ranges_are_listed_each_once_and_as_long_as_somebody_wants_to_see_them() {
        let manager = LockManager::new(None);
        let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
        let mut range = |from: u32, to: u32| {
            let (from, to) = (key(from), key(to));
            a.lock_range(7, Bound::Included(&from), Bound::Excluded(&to), Shared, &WaitRequest::no_wait())
        };
        let count = 3 * STEP as u32 + 1;
        (0..count).for_each(|n| range(2 * n, 2 * n + 1).unwrap());
        b.lock_range(9, Bound::Excluded(b"m"), Bound::Unbounded, Exclusive, &WaitRequest::no_wait()).unwrap();
        let found = all(&manager);
        let of_a = found.iter().filter(|lock| lock.txn == 1);
        let expected = |n| (Bound::Included(key(2 * n)), Bound::Excluded(key(2 * n + 1)));
        assert!(of_a.map(|lock| (lock.from.clone(), lock.to.clone())).eq((0..count).map(expected)));
        let last = HeldLock {
            txn: 2,
            tree: 9,
            mode: Exclusive,
            kind: LockKind::Range,
            from: Bound::Excluded(Arc::from(&b"m"[..])),
            to: Bound::Unbounded,
        };
        assert_eq!(found.iter().filter(|lock| lock.txn == 2).collect::<Vec<_>>(), [&last]);
        let mut seen = 0;
        let enough = manager.list(&mut |_| {
            seen += 1;
            if seen == 5 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert!(enough.is_break() && seen == 5);
    }

    #[test]
    fn rows_of_consecutive_keys_are_a_run() {
        let manager = LockManager::new(None);
        let mut a = owner(&manager, 1);
        for number in 0..12 {
            try_lock(&mut a, &key(number), Exclusive).unwrap();
        }
        let found = all(&manager);
        let ends: Vec<_> =
            found.iter().map(|lock| (lock.kind, lock.mode, lock.from.clone(), lock.to.clone())).collect();
        assert_eq!(ends, [(LockKind::Run, Exclusive, Bound::Included(key(4)), Bound::Excluded(key(12)))]);
        assert_eq!(manager.holds(1, &key(0), 1), Some(Exclusive));
        assert_eq!(manager.holds(1, &key(5), 1), None);
        assert_eq!(a.figures().0, 12);
    }
}
