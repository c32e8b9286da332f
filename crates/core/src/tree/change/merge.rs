//! Leaves that have lost most of their rows are merged with their neighbours, in the background.
//!
//! A consolidation that leaves less than half of a block behind notes the leaf ([`Trunk::note_thin`]); nothing ever
//! looks for such leaves. It is merged with the leaf before it, or the one behind, where both together are not more
//! than two thirds of a block: a leaf that splits leaves pieces of more than half, so that neither undoes the other's
//! work. Checkpoints try it for each leaf that they consolidate, and so write the result only; `teak-history` tries the
//! others. No statement does.
//!
//! The heir gets what is left of the other leaf as it is: base behind base, all versions of the delta whatever becomes
//! of them, history for the snapshots that need it, and the later of both horizons, which asks for no history that is
//! not there. How the other one goes is that of empty leaves: [`super::removal`].
//!
//! Invariant: what is read of a leaf is read before the structure latch is taken.

use super::removal::Departure;
use super::structure::Structure;
use super::trunk::Trunk;
use super::waiting::Turn;
use crate::sync::atomic::Ordering;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::Block;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::{Archive, Base, Leaf, LeafView};
use crate::tree::versions::delta::Delta;
use crate::tree::versions::history::History;
use crate::tree::versions::past::shares_of;
use crate::Result;
use std::sync::Arc;

/// A merged leaf may keep so many blocks' worth of history. Where there is more, the merge waits until it is collected.
pub(super) const MOST_HISTORY_BLOCKS: usize = 4;

/// So many leaves of all trees are looked at before others of the same thread's duties get their turn: each may have to
/// be read, and its neighbours.
pub(super) const LOOKS_AT_ONCE: usize = 256;

/// What came of trying to merge a leaf.
pub(super) enum Merge {
    /// This one has it all.
    Done(Arc<Node>),
    /// It does not fit its neighbours. If that changes, somebody notes it, or them.
    No,
    /// Not while a checkpoint goes on.
    Later,
}

/// How large a leaf is, or how large leaves may become, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// What it takes in a block: base, and all that is not folded yet.
    pub rows: usize,
    pub history: usize,
}

impl Sizes {
    /// `None`: not known without reading something.
    pub fn of(view: &LeafView) -> Option<Sizes> {
        let base = match &view.base {
            Base::Loaded(block) => block.bytes().len(),
            Base::Stored(image) => image.extent.address().raw_bytes as usize,
            Base::Packed(packed) => packed.raw_bytes(),
            Base::Spilled(spilled) => spilled.bytes,
        };
        let delta = match &view.delta {
            Changes::Live(delta) if delta.is_empty() => 0,
            Changes::Live(delta) => delta.memory(),
            Changes::Spilled { .. } => return None,
        };
        let history = match &view.history {
            Archive::Empty => 0,
            Archive::Live(history) => history.memory(),
            Archive::Spilled(_) => return None,
        };
        Some(Sizes { rows: base + delta, history })
    }

    fn fits_with(self, other: Sizes, most: Sizes) -> bool {
        self.rows + other.rows <= most.rows && self.history + other.history <= most.history
    }
}

/// The parts of a leaf that can be merged: all of it is in memory, and everybody sees its base.
struct Parts<'a> {
    base: &'a Block,
    delta: &'a Delta,
    history: Option<&'a History>,
}

impl<'a> Parts<'a> {
    fn of(leaf: &Leaf, view: &'a LeafView) -> Option<Parts<'a>> {
        if view.dead || view.birth.is_some() || !leaf.vacancy.is_occupied() {
            return None;
        }
        let (Base::Loaded(base), Changes::Live(delta)) = (&view.base, &view.delta) else { return None };
        let history = match &view.history {
            Archive::Empty => None,
            Archive::Live(history) => Some(&**history),
            Archive::Spilled(_) => return None,
        };
        Some(Parts { base, delta, history })
    }
}

impl Trunk {
    /// A leaf was consolidated, or its history collected: it may have become small enough to be merged.
    pub(in crate::tree) fn note_thin(&self, node: &Arc<Node>) {
        let Some(leaf) = node.leaf() else { return };
        if self.is_thin(leaf) {
            self.note(node, Care::Merge);
        }
    }

    fn is_thin(&self, leaf: &Leaf) -> bool {
        let view = leaf.view();
        let is_alone = view.low.is_empty() && view.high.is_none();
        !is_alone
            && !view.dead
            && leaf.vacancy.is_occupied()
            && Sizes::of(&view).is_some_and(|sizes| sizes.rows <= self.shared.spec.block_bytes as usize / 2)
    }

    /// What a merged leaf may have.
    fn most_merged(&self) -> Sizes {
        let block_bytes = self.shared.spec.block_bytes as usize;
        Sizes { rows: block_bytes * 2 / 3, history: block_bytes * MOST_HISTORY_BLOCKS }
    }

    /// Merges the leaves that were noted, up to `most` of them, as far as they fit. A tree that no checkpoint would
    /// write is left alone: a merge would give nothing back.
    pub(crate) fn merge_thin(&self, most: usize) -> Result<()> {
        let mut is_put_off = false;
        let result = self.attend(Care::Merge, most, |leaf| {
            let waits = !self.is_dirty() && self.is_logged() || self.structure.lock().checkpointing;
            is_put_off = waits || !self.merge_around(leaf.node());
            Ok(if is_put_off { Turn::Enough } else { Turn::Done })
        });
        if !is_put_off && self.waits(Care::Merge) {
            // As soon as the others have had their turn.
            self.shared.context.past.bell().ring();
        }
        result
    }

    /// Merges a leaf with its neighbours for as long as it fits; `false`: it is worth another try.
    pub(in crate::tree) fn merge_around(&self, node: &Arc<Node>) -> bool {
        let mut node = node.clone();
        if !node.leaf().is_some_and(|leaf| self.is_thin(leaf)) {
            return true;
        }
        loop {
            // What cannot be read shows again to whoever needs it.
            match self.merge_once(&node).unwrap_or(Merge::No) {
                Merge::Done(heir) => node = heir,
                Merge::No => return true,
                Merge::Later => return false,
            }
        }
    }

    /// Merges a leaf into its neighbour, or the one behind it into this one.
    fn merge_once(&self, node: &Arc<Node>) -> Result<Merge> {
        let Some(leaf) = node.leaf() else { return Ok(Merge::No) };
        match self.merge_away(node, leaf, self.most_merged())? {
            Merge::No => {}
            merge => return Ok(merge),
        }
        let next = self.path_to(&leaf.view().low)?.pop().and_then(|(parent, at)| match &*parent {
            Node::Inner(inner) => {
                inner.loaded().filter(|view| at + 1 < view.len()).map(|view| view.child(at + 1).clone())
            }
            Node::Leaf(_) => None,
        });
        match next.as_ref().and_then(|next| Some((next, next.leaf()?))) {
            Some((next, leaf)) => self.merge_away(next, leaf, self.most_merged()),
            None => Ok(Merge::No),
        }
    }

    /// Merges a leaf into its neighbour, if both together are not more than `most`.
    pub(super) fn merge_away(&self, node: &Arc<Node>, leaf: &Leaf, most: Sizes) -> Result<Merge> {
        let heir = {
            let structure = self.structure.lock();
            if structure.checkpointing {
                return Ok(Merge::Later);
            }
            let state = leaf.latch();
            if leaf.view().dead {
                return Ok(Merge::No);
            }
            match self.departure(&structure, node, leaf, &state)? {
                Some(departure) => departure.heir,
                None if state.copies.pending().is_some() => return Ok(Merge::Later),
                None => return Ok(Merge::No),
            }
        };
        let Some(heir_leaf) = heir.leaf() else { return Ok(Merge::No) };
        if !fit(leaf, heir_leaf, most) {
            return Ok(Merge::No);
        }
        for (node, leaf) in [(node, leaf), (&heir, heir_leaf)] {
            self.fetch(node, leaf)?;
        }
        let merged = {
            let mut structure = self.structure.lock();
            self.unite(&mut structure, (node, leaf), &heir, most)?
        };
        if merged {
            // Relaxed: a statistic.
            self.attention.merged.fetch_add(1, Ordering::Relaxed);
            self.note_past(&heir);
            if leaf.marks.has(Care::Retire) {
                self.note(&heir, Care::Retire);
            }
            return Ok(Merge::Done(heir));
        }
        Ok(Merge::No)
    }

    /// Folds what can be folded and has the rest in memory.
    fn fetch(&self, node: &Arc<Node>, leaf: &Leaf) -> Result<()> {
        if leaf.view().has_changes() || leaf.view().birth.is_some() {
            self.maintain(node)?;
        }
        leaf.touch();
        leaf.base(node, &leaf.view()).map(drop)
    }

    /// `false`: something came between. The structure latch is held.
    fn unite(
        &self,
        structure: &mut Structure,
        (node, leaf): (&Arc<Node>, &Leaf),
        heir: &Arc<Node>,
        most: Sizes,
    ) -> Result<bool> {
        let mut state = leaf.latch();
        if leaf.view().dead {
            return Ok(false);
        }
        let departure = self.departure(structure, node, leaf, &state)?;
        let departure = departure.filter(|departure| Arc::ptr_eq(&departure.heir, heir));
        let (Some(departure), Some(heir_leaf)) = (departure, heir.leaf()) else { return Ok(false) };
        // Two leaf latches: only under the structure latch, so never in opposite orders.
        let mut heir_state = heir_leaf.latch();
        if !fit(leaf, heir_leaf, most) {
            return Ok(false);
        }
        let Some(inherited) = self.inherited(leaf, heir_leaf, &departure) else { return Ok(false) };
        heir_state.copies.changed();
        heir_state.deletions = 0;
        heir_state.fold_again_at = 2 * inherited.delta.size().memory;
        heir_state.deletions_again_at = 2 * inherited.delta.size().versions;
        self.list_dirty(&heir_state, heir);
        heir_leaf.register(&mut heir_state, heir);
        self.depart(structure, &departure, (leaf, &mut state), (heir_leaf, &mut heir_state), inherited);
        Ok(true)
    }

    /// What the heir becomes, but for its bounds. Both latches are held.
    fn inherited(&self, leaf: &Leaf, heir: &Leaf, departure: &Departure) -> Option<LeafView> {
        let (view, heir_view) = (leaf.view(), heir.view());
        let (own, others) = (Parts::of(heir, &heir_view)?, Parts::of(leaf, &view)?);
        let [first, second] = match departure.heir_is_before() {
            true => [own, others],
            false => [others, own],
        };
        let mut builder = BlockBuilder::reused();
        let mut delta = Delta::new();
        for part in [&first, &second] {
            builder.push_range(part.base, 0..part.base.len());
            delta.add_newer(part.delta);
        }
        let base = builder.finish();
        builder.give_back();
        let active = self.shared.context.clock.active_snapshots();
        let past = [first.history, second.history].into_iter().flatten();
        let past: Vec<_> = past.flat_map(|history| history.needed(&active)).collect();
        Some(LeafView {
            base: Base::Loaded(Arc::new(base)),
            delta: Changes::Live(Arc::new(delta)),
            history: Archive::of(History::from_sorted(&past, shares_of(&past, &active))),
            horizon: view.horizon.max(heir_view.horizon),
            ..(*heir_view).clone()
        })
    }
}

/// Whether both leaves together are not too large.
fn fit(leaf: &Leaf, heir: &Leaf, most: Sizes) -> bool {
    let (one, other) = (Sizes::of(&leaf.view()), Sizes::of(&heir.view()));
    one.zip(other).is_some_and(|(one, other)| one.fits_with(other, most))
}
