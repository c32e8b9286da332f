//! Packing a tree: leaf after leaf is filled up from the one behind it, while others read and write.
//!
//! ```text
//! leaves:   |####    |##      |#####   |   #####|   ->   |########|########|#   |
//!            takes in the next one, is cut where it is full, what is left over goes on
//! ```
//!
//! A walk over the keys, one step a call, that keeps nothing between two steps but where it is. A step folds a leaf,
//! lets go of history that nobody needs, and unless the leaf is full has it take over the one behind it
//! ([`super::merge`] says how nobody notices) and be divided again at a block's worth of rows. What comes out full is
//! listed as if appends had filled it, so that it can be written ahead of the next checkpoint and leave memory. A leaf
//! that is full is not read.
//!
//! Leaves have neighbours below their own parent only. So where a parent ends, it first gets children of the next one
//! ([`Trunk::pull_children`]): inner pages come out packed as well.
//!
//! Invariant: a step that does not move on leaves the tree with a leaf less, or finds that another thread has changed
//! something.

use super::consolidate::Pieces;
use super::merge::{Merge, Sizes, MOST_HISTORY_BLOCKS};
use super::removal::children;
use super::structure::{mark_dirty, Path, Structure};
use super::trunk::Trunk;
use crate::tree::leaf::node::{InnerView, Node};
use crate::tree::leaf::{Base, Leaf, LeafView};
use crate::Result;
use std::sync::Arc;

/// Where a walk that packs a tree stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// The next step is at this key.
    At(Vec<u8>),
    /// Not while a checkpoint writes the tree.
    Later,
    /// All leaves were come by.
    Done,
}

/// The leaf behind another.
enum Behind {
    Leaf(Arc<Node>),
    /// There is none, or none that can be got at.
    Nothing,
    /// The leaf is not where it was.
    Moved,
    Later,
}

/// What came of moving children from one inner node to the one before.
enum Pulled {
    Some,
    None,
    Later,
}

impl Trunk {
    /// One step of packing, at the leaf that holds `key`.
    pub(crate) fn pack_at(&self, key: &[u8]) -> Result<Packing> {
        let again = || Ok(Packing::At(key.to_vec()));
        let moment = self.changes.now();
        let node = self.find_leaf(key)?;
        let Some(leaf) = node.leaf() else { return Ok(Packing::Done) };
        if !leaf.view().holds(key) {
            self.check_way(moment)?;
            return again();
        }
        self.tidy_up(&node, leaf)?;
        let view = leaf.view();
        if !view.holds(key) {
            return again();
        }
        if self.is_full(&node, leaf, &view)? {
            return Ok(past(&view));
        }
        let next = match self.leaf_behind(&node, leaf)? {
            Behind::Leaf(next) => next,
            Behind::Nothing => return Ok(past(&view)),
            Behind::Moved => return again(),
            Behind::Later => return Ok(Packing::Later),
        };
        let Some(next_leaf) = next.leaf() else { return Ok(past(&view)) };
        self.tidy_up(&next, next_leaf)?;
        match self.merge_away(&next, next_leaf, self.most_united())? {
            Merge::Done(_) => {}
            Merge::Later => return Ok(Packing::Later),
            // It was empty, or somebody came between.
            Merge::No if next_leaf.view().dead || leaf.view().dead => return again(),
            Merge::No => return Ok(past(&view)),
        }
        let united = leaf.view();
        if Sizes::of(&united).is_some_and(|sizes| sizes.rows > self.largest_full()) {
            return self.divide(&node, leaf);
        }
        if self.is_full(&node, leaf, &united)? {
            self.note_finished(&node);
        }
        again()
    }

    /// Folds what can be folded, also in the file, and lets go of history that nobody needs.
    fn tidy_up(&self, node: &Arc<Node>, leaf: &Leaf) -> Result<()> {
        if leaf.view().has_changes() || leaf.view().birth.is_some() {
            self.maintain(node)?;
        }
        {
            let mut state = leaf.latch();
            if state.copies.durable().is_some_and(|copy| copy.patch.is_some()) {
                state.copies.rewrite();
                self.list_dirty(&state, node);
            }
        }
        if !leaf.view().history.is_empty() {
            self.collect(leaf, &self.shared.context.clock.newest_active_snapshots())?;
        }
        Ok(())
    }

    /// Whether nothing is gained by filling it up. What it has on disk may be a little less than in memory, so it is
    /// read if it seems to have room. What is not known without reading changes counts as full.
    fn is_full(&self, node: &Arc<Node>, leaf: &Leaf, view: &LeafView) -> Result<bool> {
        let block_bytes = self.shared.spec.block_bytes as usize;
        let enough = block_bytes - block_bytes / 16;
        let is_enough = |view: &LeafView| Sizes::of(view).is_none_or(|sizes| sizes.rows >= enough);
        if is_enough(view) || matches!(view.base, Base::Loaded(_)) {
            return Ok(is_enough(view));
        }
        leaf.touch();
        let base = leaf.base(node, view)?;
        Ok(is_enough(&LeafView { base: Base::Loaded(base), ..view.clone() }))
    }

    /// A leaf with more than this is divided.
    fn largest_full(&self) -> usize {
        let block_bytes = self.shared.spec.block_bytes as usize;
        block_bytes + block_bytes / 16
    }

    fn most_united(&self) -> Sizes {
        let block_bytes = self.shared.spec.block_bytes as usize;
        Sizes { rows: 3 * block_bytes, history: MOST_HISTORY_BLOCKS * block_bytes }
    }

    /// Divides a leaf whose rows have become longer, if it is too large by that.
    pub(in crate::tree) fn divide_grown(&self, node: &Arc<Node>, leaf: &Leaf) -> Result<()> {
        let sizes = Sizes::of(&leaf.view());
        if sizes.is_some_and(|sizes| sizes.rows > self.largest_full()) {
            self.divide(node, leaf)?;
        }
        Ok(())
    }

    /// Cuts a leaf that has taken over another into full ones and what is left over, where the walk goes on.
    fn divide(&self, node: &Arc<Node>, leaf: &Leaf) -> Result<Packing> {
        {
            let mut structure = self.structure.lock();
            let mut state = leaf.latch();
            if !leaf.view().dead {
                // A checkpoint may have come between that has written it whole.
                self.list_dirty(&state, node);
                self.restructure(&mut structure, node, leaf, &mut state, Pieces::Full)?;
            }
        }
        self.note_past(node);
        let view = leaf.view();
        Ok(past(&view))
    }

    fn leaf_behind(&self, node: &Arc<Node>, leaf: &Leaf) -> Result<Behind> {
        let mut structure = self.structure.lock();
        if structure.checkpointing {
            return Ok(Behind::Later);
        }
        loop {
            let path = self.path_to(&leaf.view().low)?;
            let Some((parent, at)) = path.last() else { return Ok(Behind::Nothing) };
            let Some(view) = children(parent) else { return Ok(Behind::Nothing) };
            if leaf.view().dead || !Arc::ptr_eq(view.child(*at), node) {
                return Ok(Behind::Moved);
            }
            if at + 1 < view.len() {
                return Ok(Behind::Leaf(view.child(at + 1).clone()));
            }
            match self.pull_children(&mut structure, &path)? {
                Pulled::Some => {}
                Pulled::None => return Ok(Behind::Nothing),
                Pulled::Later => return Ok(Behind::Later),
            }
        }
    }

    /// The lowest node of `path` whose parent has another behind it gets as many of that one's children as fit; if
    /// these are all, the other goes. A reader who has the old content of either finds leaves that he would have found
    /// before, and they know what they hold.
    fn pull_children(&self, structure: &mut Structure, path: &Path) -> Result<Pulled> {
        let has_more =
            |(node, at): &(Arc<Node>, usize)| children(node).is_some_and(|view| at + 1 < view.len());
        let Some(fork) = path.iter().rposition(has_more) else { return Ok(Pulled::None) };
        let (Some((left, _)), (above, at)) = (path.get(fork + 1), &path[fork]) else {
            return Ok(Pulled::None);
        };
        let (Some(above_view), Some(left_view)) = (children(above), children(left)) else {
            return Ok(Pulled::None);
        };
        let right = above_view.child(at + 1);
        let (Node::Inner(above), Node::Inner(left), Node::Inner(right)) = (&**above, &**left, &**right)
        else {
            return Ok(Pulled::None);
        };
        let Some(right_view) = right.view()?.clone() else { return Ok(Pulled::None) };
        let mut entries = left_view.entries();
        let mut rest = right_view.entries();
        let room = self.shared.filled_children().saturating_sub(entries.len());
        if room == 0 {
            return Ok(Pulled::None);
        }
        // What the next durable checkpoint names must be settled before it can go.
        if right.image.lock().pending.is_some() {
            return Ok(Pulled::Later);
        }
        entries.extend(rest.drain(..room.min(rest.len())));
        let mut siblings = above_view.entries();
        match rest.first() {
            Some((low, _)) => siblings[at + 1].0 = low.clone(),
            None => drop(siblings.remove(at + 1)),
        }
        let _change = self.changes.begin();
        left.publish(InnerView::new(&entries));
        above.publish(InnerView::new(&siblings));
        match rest.is_empty() {
            true => structure.loose.retire_page(right.image.lock().durable.take()),
            false => right.publish(InnerView::new(&rest)),
        }
        mark_dirty(&path[..=fork]);
        Ok(Pulled::Some)
    }
}

/// The walk goes on behind this leaf.
fn past(view: &LeafView) -> Packing {
    view.high.as_ref().map_or(Packing::Done, |high| Packing::At(high.to_vec()))
}
