//! Leaves that wait for somebody, by what they wait for: one list of the tree and one mark of the leaf for each
//! [`Care`]; and trees that have such leaves, with one list of the engine and one mark of the tree.
//!
//! One protocol for all of them. Whoever gives a leaf something to do does it *before* [`Trunk::note`], which puts the
//! mark on and the leaf into the list, unless it is marked; then the tree, likewise. Whoever attends to the leaves
//! ([`Trunk::attend`]) takes each out, takes the mark off and only *then* looks: what is noted from there on enlists
//! the leaf again. So no leaf is in a list twice, and what somebody has noted somebody will look at.
//!
//! ```text
//! care        noted by                             attended to by               what fails
//! Write       whoever changes the leaf             a checkpoint; settle         is listed again
//! Fold        a write that made it due             fold_due                     waits no more
//! Merge       a consolidation, or a collection     merge_thin                   waits no more
//! Retire      a deletion, perhaps the last         retire_spent                 waits no more
//! Collect     whoever publishes history            collect_history              is listed again
//! Remove      vacate                               remove_vacant                waits no more
//! WriteAhead  appends and packing                  write_finished               waits no more
//! ```
//!
//! What waits no more though it could not be read shows again to whoever needs it.
//!
//! The mark goes under the leaf's latch. So a writer, who has that latch while he gives the leaf something to do, need
//! only read the mark ([`Trunk::note_latched`]): either his change is there at the look, or he finds the mark gone.

use super::merge::LOOKS_AT_ONCE;
use super::trunk::Trunk;
use crate::mvcc::{State, TxnStatus};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::Mutex;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::node::{LeafRef, Node};
use crate::tree::leaf::{Latched, Leaf};
use crate::Result;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// What is to become of a leaf that was looked at.
pub(in crate::tree) enum Turn {
    /// It waits no more, unless somebody has noted it meanwhile.
    Done,
    /// It waits on, behind the others.
    Again,
    /// It waits on until this transaction has ended: the leaves of one that stays open cost nothing until then.
    Undecided(Arc<TxnStatus>),
    /// It waits on, as do the others: enough was done for this time.
    Enough,
}

/// The leaves of a tree that wait for one thing.
#[derive(Default)]
struct List {
    /// In the order in which they are looked at.
    ready: VecDeque<LeafRef>,
    /// By the transaction whose end they wait for.
    undecided: Vec<(Arc<TxnStatus>, Vec<LeafRef>)>,
    /// When there are more somebody is woken, once until he has looked: see [`Care::many`].
    ring_above: usize,
}

impl List {
    fn put_off(&mut self, leaf: LeafRef, status: Arc<TxnStatus>) {
        match self.undecided.iter_mut().rev().find(|(of, _)| Arc::ptr_eq(of, &status)) {
            Some((_, leaves)) => leaves.push(leaf),
            None => self.undecided.push((status, vec![leaf])),
        }
    }

    /// Leaves of transactions that have ended get their turn. How many leaves have it now.
    fn wake(&mut self) -> usize {
        let all = std::mem::take(&mut self.undecided).into_iter();
        let (open, decided): (Vec<_>, Vec<_>) = all.partition(|(of, _)| of.state() == State::Active);
        self.undecided = open;
        self.ready.extend(decided.into_iter().flat_map(|(_, leaves)| leaves));
        // Somebody is awake.
        self.ring_above = usize::MAX;
        self.ready.len()
    }

    /// The oldest leaf, if there are too many.
    fn shorten(&mut self, care: Care) -> Option<LeafRef> {
        (self.ready.len() > care.most()).then(|| self.ready.pop_front()).flatten()
    }

    /// Whether there have come so many that somebody is to be woken for them.
    fn takes_ring(&mut self, care: Care) -> bool {
        let rings = care.many().is_some() && self.ready.len() > self.ring_above;
        if rings {
            self.ring_above = usize::MAX;
        }
        rings
    }

    fn leaves(&self) -> impl Iterator<Item = &LeafRef> {
        self.ready.iter().chain(self.undecided.iter().flat_map(|(_, leaves)| leaves))
    }
}

impl Leaf {
    /// Before somebody looks at it.
    fn unmark(&self, care: Care) {
        let _latched = self.latch();
        self.marks.take_off(care);
    }
}

/// The leaves of a tree that wait for something.
#[derive(Default)]
pub(super) struct Waiting([Mutex<List>; Care::COUNT]);

impl Waiting {
    fn list(&self, care: Care) -> &Mutex<List> {
        &self.0[care as usize]
    }
}

impl Trunk {
    /// The leaf has got something to do.
    pub(in crate::tree) fn note(&self, node: &Arc<Node>, care: Care) {
        if node.leaf().is_some_and(|leaf| leaf.marks.put_on(care)) {
            self.enlist(care, |list| list.ready.extend(LeafRef::of(node.clone())));
        }
    }

    /// The leaf whose latch this is has got something to do.
    #[inline]
    pub(in crate::tree) fn note_latched(&self, _: &Latched<'_>, node: &Arc<Node>, care: Care) {
        if node.leaf().is_some_and(|leaf| !leaf.marks.has(care)) {
            self.note(node, care);
        }
    }

    /// Puts a leaf whose mark was put on into the list.
    fn enlist(&self, care: Care, put: impl FnOnce(&mut List)) {
        let (left, rings) = {
            let mut list = self.waiting.list(care).lock();
            put(&mut list);
            (list.shorten(care), list.takes_ring(care))
        };
        match left {
            // Not under its latch: nobody notes such leaves by `note_latched`.
            Some(left) => left.marks.take_off(care),
            None => self.attention.count(care, 1),
        }
        self.attention.note(self, care);
        if rings {
            self.shared.context.past.bell().ring();
        }
    }

    /// Whether leaves wait for it.
    pub(crate) fn waits(&self, care: Care) -> bool {
        self.waiting.list(care).lock().leaves().next().is_some()
    }

    /// How many of them have their turn.
    pub(in crate::tree) fn ready(&self, care: Care) -> usize {
        self.waiting.list(care).lock().ready.len()
    }

    /// All that wait for it.
    pub(in crate::tree) fn waiting(&self, care: Care) -> Vec<LeafRef> {
        self.waiting.list(care).lock().leaves().cloned().collect()
    }

    /// Takes out all that wait for it.
    pub(in crate::tree) fn take(&self, care: Care) -> Vec<LeafRef> {
        // Before: what is noted from here on marks it again.
        self.marks.take_off(care);
        let leaves = Vec::from(std::mem::take(&mut self.waiting.list(care).lock().ready));
        leaves.iter().for_each(|leaf| leaf.unmark(care));
        leaves
    }

    /// Looks at leaves that wait for `care`, one after the other, `most` at most, and not at those that come meanwhile.
    /// After an error the others get their turn; it is the first one.
    pub(in crate::tree) fn attend(
        &self,
        care: Care,
        most: usize,
        mut look: impl FnMut(&LeafRef) -> Result<Turn>,
    ) -> Result<()> {
        let list = self.waiting.list(care);
        let looks = list.lock().wake().min(most);
        let mut result = Ok(());
        for _ in 0..looks {
            let Some(leaf) = list.lock().ready.pop_front() else { break };
            self.attention.count(care, -1);
            leaf.unmark(care);
            let looked = look(&leaf);
            let turn = match looked {
                Ok(turn) => turn,
                Err(error) => {
                    result = result.and(Err(error));
                    Turn::Done
                }
            };
            let is_enough = matches!(turn, Turn::Enough);
            match turn {
                Turn::Done => {}
                // If somebody has noted it meanwhile, it has its turn anyhow.
                _ if !leaf.marks.put_on(care) => {}
                Turn::Again => self.enlist(care, |list| list.ready.push_back(leaf)),
                Turn::Undecided(status) => self.enlist(care, |list| list.put_off(leaf, status)),
                Turn::Enough => self.enlist(care, |list| list.ready.push_front(leaf)),
            }
            if is_enough {
                break;
            }
        }
        if let Some(many) = care.many() {
            let mut list = list.lock();
            list.ring_above = list.ready.len() + many;
        }
        result
    }
}

impl Drop for Trunk {
    fn drop(&mut self) {
        let Waiting(lists) = &mut self.waiting;
        let left = lists[Care::WriteAhead as usize].get_mut().ready.len();
        self.attention.count(Care::WriteAhead, -(left as isize));
    }
}

/// Trees that have work for a thread in the background, and how much.
#[derive(Default)]
pub struct Attention {
    /// By what their leaves wait for; some are gone.
    trees: [Mutex<Vec<Weak<Trunk>>>; Care::COUNT],
    /// Leaves that were merged into others.
    pub(super) merged: AtomicU64,
    /// Leaves of all trees that appends have filled and that wait to be written.
    finished: AtomicUsize,
}

impl Attention {
    /// Leaves of the tree wait for it: they are in its list already.
    pub(super) fn note(&self, tree: &Trunk, care: Care) {
        // The load is for those that find it marked: they do not write to the line.
        if tree.marks.has(care) || !tree.marks.put_on(care) {
            return;
        }
        // Whoever makes checkpoints comes by those of trees that are logged, whether they are here or not.
        if !tree.is_logged() || !matches!(care, Care::Write | Care::WriteAhead) {
            self.trees[care as usize].lock().push(tree.me.clone());
        }
    }

    /// So many more leaves wait for it.
    fn count(&self, care: Care, more: isize) {
        if care == Care::WriteAhead {
            // Relaxed: says how much work there is; the lists have their mutexes.
            self.finished.fetch_add(more as usize, Ordering::Relaxed);
        }
    }

    /// Does `work` for each tree whose leaves wait for `care`, whatever becomes of the others; the error is the first
    /// one. Those whose leaves still wait then are looked at again the next time.
    fn each(&self, care: Care, work: impl Fn(&Trunk) -> Result<()>) -> Result<()> {
        let trees = std::mem::take(&mut *self.trees[care as usize].lock());
        let mut result = Ok(());
        for tree in trees.iter().filter_map(Weak::upgrade) {
            // Before the work: what is noted from here on enlists it again.
            tree.marks.take_off(care);
            result = result.and(work(&tree));
            if tree.waits(care) {
                self.note(&tree, care);
            }
        }
        result
    }

    /// Leaves that appends have filled and that wait to be written.
    #[inline]
    pub fn finished_leaves(&self) -> usize {
        // Relaxed: a hint that there is work.
        self.finished.load(Ordering::Relaxed)
    }

    /// [`Trunk::collect_history`] for all trees that have any, then [`Trunk::remove_vacant`].
    pub fn collect_history(&self) -> Result<()> {
        self.each(Care::Collect, Trunk::collect_history).and(self.each(Care::Remove, Trunk::remove_vacant))
    }

    /// [`Trunk::retire_spent`] for all trees with leaves whose rows were all deleted.
    pub fn retire_spent(&self) -> Result<()> {
        self.each(Care::Retire, Trunk::retire_spent)
    }

    /// [`Trunk::merge_thin`] for all trees with leaves that may be merged.
    pub fn merge_thin(&self) -> Result<()> {
        let trees = self.trees[Care::Merge as usize].lock().len();
        let share = (LOOKS_AT_ONCE / trees.max(1)).max(1);
        self.each(Care::Merge, |trunk| trunk.merge_thin(share))
    }

    /// Whether [`Attention::fold_due`] may have something to do.
    pub fn has_due(&self) -> bool {
        !self.trees[Care::Fold as usize].lock().is_empty()
    }

    /// [`Trunk::fold_due`] for all trees with leaves that were due while they were undecided.
    pub fn fold_due(&self) -> Result<()> {
        self.each(Care::Fold, Trunk::fold_due)
    }

    /// [`Trunk::settle`] for all trees that have something for it.
    pub fn settle(&self) -> Result<()> {
        self.each(Care::Write, Trunk::settle)
    }

    /// Leaves that were merged into others.
    pub fn merged_leaves(&self) -> u64 {
        // Relaxed: a statistic.
        self.merged.load(Ordering::Relaxed)
    }
}
