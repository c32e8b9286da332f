//! Which parts of a tree have nothing for new readers, so that their scans pass them by, and how empty leaves go.
//!
//! A leaf whose rows were all deleted stays while a snapshot still sees them, and while a checkpoint writes the tree. A
//! scan that looked into each would pay for what was deleted long ago (a queue pays at each look at its first row). So
//! a leaf says since when it has been vacant, and an inner node likewise once all below it are: a scan finds the next
//! leaf with content in one descent, which looks at no more than the children of one node a level.
//!
//! Invariants:
//! * A vacant leaf has an empty base and an empty delta; commits after its timestamp find it occupied. All above an
//!   occupied leaf are occupied.
//! * Nodes become vacant under the structure latch (leaves under theirs as well). Whoever wants to push to a vacant
//!   leaf first marks it and all above it occupied, under the same latches. So a reader that sees a commit also sees
//!   the marks that came before it.
//! * Children move between nodes only while [`StructureCount`] is odd: a descent that passed something by starts again
//!   if it has changed.

use super::structure::Structure;
use super::trunk::Trunk;
use super::waiting::Turn;
use crate::mvcc::State;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::yield_now;
use crate::tree::block::Block;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::node::{InnerView, Node};
use crate::tree::leaf::{Latched, Leaf};
use crate::tree::versions::delta::{Delta, EntryRef, Version, VersionOp};
use crate::types::Timestamp;
use crate::Result;
use std::sync::Arc;

/// Counts structure changes; odd while one is going on.
#[derive(Default)]
pub(in crate::tree) struct StructureCount(AtomicU64);

/// A structure change that is going on.
pub(in crate::tree) struct Changing<'a>(&'a StructureCount);

impl StructureCount {
    /// The structure latch is held.
    pub(in crate::tree) fn begin(&self) -> Changing<'_> {
        let before = self.0.fetch_add(1, Ordering::SeqCst);
        debug_assert!(before.is_multiple_of(2), "two changes of the structure at once");
        Changing(self)
    }

    /// Which moment this is in the life of the structure.
    pub(in crate::tree) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether no change of the structure has begun since that moment, nor was one going on then.
    pub(in crate::tree) fn is_still(&self, moment: u64) -> bool {
        moment & 1 == 0 && self.now() == moment
    }

    /// Gives the processor to a change that is going on: it may have been interrupted, and is short.
    pub(in crate::tree) fn let_go_on(&self) {
        if self.now() & 1 == 1 {
            yield_now();
        }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let before = self.0 .0.fetch_add(1, Ordering::SeqCst);
        debug_assert!(before % 2 == 1, "a change of the structure ends that had not begun");
    }
}

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tree) enum Towards {
    Greater,
    Lesser,
}

/// The children at or beyond `bound`, in the order in which a scan comes to them; with the first the bound, which none
/// of the others lie on.
#[inline]
pub(in crate::tree) fn children_towards<'a>(
    view: &'a InnerView,
    towards: Towards,
    bound: Option<&'a [u8]>,
) -> impl Iterator<Item = (&'a Arc<Node>, Option<&'a [u8]>)> {
    let last = view.len() - 1;
    let from = match (towards, bound) {
        (Towards::Greater, Some(bound)) => view.child_for(bound),
        (Towards::Greater, None) => 0,
        (Towards::Lesser, Some(bound)) => view.child_before(bound),
        (Towards::Lesser, None) => last,
    };
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let at = next?;
        next = match towards {
            Towards::Greater => (at < last).then_some(at + 1),
            Towards::Lesser => at.checked_sub(1),
        };
        Some((view.child(at), bound.filter(|_| at == from)))
    })
}

impl Trunk {
    /// The next leaf, at or beyond `bound`, in which a reader of `snapshot` may find something, or that there is none:
    /// as long as the structure is as at `moment` (see [`StructureCount::now`]). `None`: it is changing.
    pub(in crate::tree) fn occupied_leaf(
        &self,
        moment: u64,
        towards: Towards,
        bound: &[u8],
        snapshot: Timestamp,
    ) -> Result<Option<Option<Arc<Node>>>> {
        if moment % 2 == 1 {
            return Ok(None);
        }
        let found = self.search(&self.root.load(), towards, Some(bound), snapshot)?;
        Ok((self.changes.now() == moment).then_some(found))
    }

    /// `bound`: none if all below `node` are beyond it.
    fn search(
        &self,
        node: &Arc<Node>,
        towards: Towards,
        bound: Option<&[u8]>,
        snapshot: Timestamp,
    ) -> Result<Option<Arc<Node>>> {
        let Node::Inner(inner) = &**node else { return Ok(Some(node.clone())) };
        let view = inner.view()?;
        let Some(view) = view.as_ref() else { return Ok(None) };
        for (child, bound) in children_towards(view, towards, bound) {
            if !child.vacancy().is_vacant_for(snapshot) {
                if let Some(found) = self.search(child, towards, bound, snapshot)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Somebody is about to push to a vacant leaf.
    #[cold]
    pub(in crate::tree) fn occupy(&self, node: &Arc<Node>) -> Result<()> {
        let Node::Leaf(leaf) = &**node else { return Ok(()) };
        let _structure = self.structure.lock();
        let _state = leaf.latch();
        let view = leaf.view();
        if view.dead {
            return Ok(());
        }
        self.occupy_all(leaf, &view.low)
    }

    /// Marks the leaf that begins at `low`, and all above it. The latches of structure and leaf are held.
    pub(in crate::tree) fn occupy_all(&self, leaf: &Leaf, low: &[u8]) -> Result<()> {
        for (above, _) in self.path_to(low)? {
            above.vacancy().occupy();
        }
        leaf.vacancy.occupy();
        Ok(())
    }

    /// A reader found an empty leaf: it goes, or is marked.
    pub(in crate::tree) fn retire(&self, node: &Arc<Node>) -> Result<()> {
        let Node::Leaf(leaf) = &**node else { return Ok(()) };
        let mut structure = self.structure.lock();
        let mut state = leaf.latch();
        self.vacate(&mut structure, node, leaf, &mut state)
    }

    /// Removes the leaf if nobody needs it, or marks it vacant, if it is empty.
    pub(in crate::tree) fn vacate(
        &self,
        structure: &mut Structure,
        node: &Arc<Node>,
        leaf: &Leaf,
        state: &mut Latched<'_>,
    ) -> Result<()> {
        let view = leaf.view();
        if view.dead || !view.is_vacant() {
            return Ok(());
        }
        if view.history.is_empty() {
            if let Some(departure) = self.departure(structure, node, leaf, state)? {
                let Node::Leaf(heir) = &*departure.heir else { return Ok(()) };
                // Two leaf latches: only under the structure latch, so never in opposite orders.
                let mut heir_state = heir.latch();
                let inherited = (*heir.view()).clone();
                self.depart(structure, &departure, (leaf, state), (heir, &mut heir_state), inherited);
                // It has another neighbour now.
                self.note_thin(&departure.heir);
                return Ok(());
            }
        }
        let path = self.path_to(&view.low)?;
        // A root that is a leaf has nobody who would pass it by.
        if path.is_empty() {
            return Ok(());
        }
        self.note_latched(state, node, Care::Remove);
        leaf.vacancy.set(view.horizon);
        for (above, _) in path.iter().rev() {
            let Node::Inner(inner) = &**above else { continue };
            let Some(view) = inner.loaded() else { break };
            inner.vacancy.follow(&view);
            if inner.vacancy.is_occupied() {
                break;
            }
        }
        Ok(())
    }

    /// Consolidates the leaves whose rows were all deleted, so that no reader has to. The undecided ones wait.
    pub(crate) fn retire_spent(&self) -> Result<()> {
        self.attend(Care::Retire, usize::MAX, |leaf| {
            let view = leaf.view();
            if view.dead || !view.has_changes() {
                return Ok(Turn::Done);
            }
            if let Some(status) = view.delta.undecided_by() {
                return Ok(Turn::Undecided(status));
            }
            // What cannot be read shows again to whoever needs it.
            let (base, delta) = (leaf.base(leaf.node(), &view)?, leaf.delta(leaf.node(), &view)?);
            if is_spent(&base, &delta) {
                self.maintain(leaf.node())?;
            }
            Ok(Turn::Done)
        })
    }

    /// Removes the vacant leaves that nobody needs any more; not while a checkpoint writes the tree.
    pub(in crate::tree) fn remove_vacant(&self) -> Result<()> {
        self.attend(Care::Remove, usize::MAX, |leaf| {
            let view = leaf.view();
            if view.is_vacant() && !view.history.is_empty() {
                return Ok(Turn::Again);
            }
            let mut structure = self.structure.lock();
            if structure.checkpointing {
                return Ok(Turn::Enough);
            }
            let mut state = leaf.latch();
            self.vacate(&mut structure, leaf.node(), leaf, &mut state)?;
            Ok(Turn::Done)
        })
    }
}

/// Whether everything was deleted, and for good.
pub(in crate::tree) fn is_spent(base: &Block, delta: &Delta) -> bool {
    let counts = |version: &&Version| {
        version.status.state() != State::Aborted && !version.status.is_void(version.sequence)
    };
    let is_gone = |entry: EntryRef<'_>| {
        std::iter::successors(entry.newest(), |version| version.older()).find(counts).is_none_or(|version| {
            matches!(version.status.state(), State::Committed(_)) && matches!(version.op(), VersionOp::Delete)
        })
    };
    base.len() <= delta.len() && delta.iter().all(is_gone)
}
