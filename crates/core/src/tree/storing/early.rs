//! Images of finished leaves, written before a checkpoint asks for them.
//!
//! A load fills leaf after leaf and does not come back to them. Their blocks go to the file while it goes on, on a
//! processor that has time, so that the checkpoint at its end finds them there, and an eviction needs no spill file for
//! them. A checkpoint of more leaves than memory has room for does the same with each that it has consolidated.
//!
//! The extent is private until a checkpoint makes it its own: a leaf that changes meanwhile, or a crash, leaves nothing
//! behind.

use super::tree::Tree;
use crate::store::{Extent, Lifetime};
use crate::tree::block::Block;
use crate::tree::change::waiting::Turn;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::node::{LeafRef, Node};
use crate::tree::leaf::shared::TreeShared;
use crate::tree::leaf::{Base, Leaf, LeafView};
use crate::tree::versions::visibility::Reader;
use crate::types::Timestamp;
use crate::{Error, Result};
use std::sync::Arc;

/// How often a leaf whose rows are undecided is looked at.
const LOOKS: u8 = 8;

/// What came of looking at a finished leaf.
enum Look {
    Done,
    Undecided,
}

impl Tree {
    /// Writes images of finished leaves but for the youngest `keep`, which may still change, until `stop`.
    pub(crate) fn write_finished(&self, keep: usize, stop: &dyn Fn() -> bool) -> Result<()> {
        let most = self.ready(Care::WriteAhead).saturating_sub(keep);
        let mut result = Ok(());
        self.attend(Care::WriteAhead, most, |leaf| {
            if result.is_err() || stop() {
                return Ok(Turn::Enough);
            }
            self.write_early(leaf).or_else(|error| {
                result = Err(error);
                Ok(Turn::Done)
            })
        })?;
        result
    }

    fn write_early(&self, leaf: &LeafRef) -> Result<Turn> {
        self.shared.context.cache.make_room_if_possible();
        self.consolidate_changed(leaf.node())?;
        let look = self.write_consolidated(leaf.node())?;
        let mut state = leaf.latch();
        let is_tried_again = matches!(look, Look::Undecided) && state.looks < LOOKS;
        state.looks = if is_tried_again { state.looks + 1 } else { 0 };
        Ok(if is_tried_again { Turn::Again } else { Turn::Done })
    }

    /// For a checkpoint of more leaves than memory has room for. What may still be merged, and what cannot be written
    /// now, it writes later.
    pub(super) fn write_overflowing(&self, node: &Arc<Node>) -> Result<()> {
        if node.leaf().is_some_and(|leaf| leaf.marks.has(Care::Merge)) {
            return Ok(());
        }
        match self.write_consolidated(node) {
            Err(Error::DiskFull { .. }) => Ok(()),
            written => written.map(drop),
        }
    }

    /// Writes the image of a leaf that was consolidated, if it has nothing else.
    fn write_consolidated(&self, node: &Arc<Node>) -> Result<Look> {
        let Node::Leaf(leaf) = &**node else { return Ok(Look::Done) };
        let view = leaf.view();
        if view.has_changes() || view.birth.is_some() {
            return Ok(Look::Undecided);
        }
        let Base::Loaded(block) = &view.base else { return Ok(Look::Done) };
        let wanted = {
            let state = leaf.latch();
            leaf.marks.has(Care::Write)
                && state.copies.pending().is_none()
                && state.copies.copy_of(&view.base).is_none()
        };
        if !wanted || view.dead || block.is_empty() || !block.blobs().is_empty() || !view.history.is_empty() {
            return Ok(Look::Done);
        }
        self.shared.write_ahead(leaf, block)?;
        Ok(Look::Done)
    }

    /// Makes the leaf's early image that of the checkpoint `generation`, if it is what the checkpoint at `at` would
    /// write.
    pub(super) fn take_early(&self, leaf: &Leaf, view: &LeafView, at: Timestamp, generation: u64) -> bool {
        if view.has_changes() || view.horizon > at || !view.shows_base(&Reader::at(at)) {
            return false;
        }
        let mut state = leaf.latch();
        let Some((copy, before)) = state.copies.join(&view.base) else { return false };
        copy.image.extent.join(generation);
        self.shared.size.count_image(before.as_ref(), Some(&copy));
        true
    }
}

impl TreeShared {
    /// Writes `block`, which names no large values, to a private extent: the leaf's early image, if it is still the
    /// leaf's base then.
    pub(in crate::tree) fn write_ahead(&self, leaf: &Leaf, block: &Arc<Block>) -> Result<Arc<Extent>> {
        let (copy, prepared) = self.prepare(Lifetime::Private, block)?;
        self.space.write(&prepared)?;
        let mut state = leaf.latch();
        if leaf.view().base.is_block(block) {
            state.copies.written_ahead(copy);
        }
        Ok(prepared.extent().clone())
    }
}
