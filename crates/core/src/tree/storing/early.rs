//! Images of finished leaves, written before a checkpoint asks for them.
//!
//! A load fills leaf after leaf and does not come back to them. Their blocks go to the file while it goes on, on a
//! processor that has time, so that the checkpoint at its end finds them there, and an eviction needs no spill file for
//! them.
//!
//! The extent is private until a checkpoint makes it its own: a leaf that changes meanwhile, or a crash, leaves nothing
//! behind.

use super::tree::Tree;
use crate::store::{Extent, Lifetime};
use crate::tree::block::Block;
use crate::tree::change::finished::Finished;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::shared::Shared;
use crate::tree::leaf::{Base, Image, Leaf, LeafState, LeafView, PendingImage};
use crate::tree::versions::visibility::Reader;
use crate::types::Timestamp;
use crate::Result;
use std::sync::{Arc, Weak};

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
        let waiting = self.finished.len();
        for _ in keep..waiting {
            if stop() {
                break;
            }
            let Some(Finished { node, looks }) = self.finished.dequeue() else { break };
            if let (Look::Undecided, true) = (self.write_early(&node)?, looks < LOOKS) {
                self.finished.enqueue(Finished { node, looks: looks + 1 });
            }
        }
        Ok(())
    }

    fn write_early(&self, node: &Arc<Node>) -> Result<Look> {
        let Node::Leaf(leaf) = &**node else { return Ok(Look::Done) };
        self.shared.context.cache.make_room_if_possible();
        self.consolidate_changed(node)?;
        let view = leaf.view().clone();
        if view.has_changes() || view.birth.is_some() {
            return Ok(Look::Undecided);
        }
        let Base::Loaded(block) = &view.base else { return Ok(Look::Done) };
        let wanted = {
            let state = leaf.latch();
            state.listed && state.pending.is_none() && !state.is_written(&view.base)
        };
        if !wanted || view.dead || block.is_empty() || !block.blobs().is_empty() || !view.history.is_empty() {
            return Ok(Look::Done);
        }
        self.shared.write_ahead(leaf, block)?;
        Ok(Look::Done)
    }

    /// The leaf's early image, if that is what the checkpoint at `at` would write; from now on it belongs to
    /// `generation`.
    pub(in crate::tree) fn take_early(
        &self,
        leaf: &Leaf,
        view: &LeafView,
        at: Timestamp,
        generation: u64,
    ) -> Option<PendingImage> {
        if view.has_changes() || view.horizon > at || !view.shows_base(&Reader::at(at)) {
            return None;
        }
        let state = leaf.latch();
        let early = state.early.as_ref().filter(|early| early.is_of(&view.base))?;
        early.image.extent.join(generation);
        Some(early.clone())
    }
}

impl Shared {
    /// Writes `block`, which names no large values, to a private extent: the leaf's early image, if it is still the
    /// leaf's base then.
    pub(in crate::tree) fn write_ahead(&self, leaf: &Leaf, block: &Arc<Block>) -> Result<Arc<Extent>> {
        let prepared = self.prepare(Lifetime::Private, block)?;
        self.space.write(&prepared)?;
        let extent = prepared.extent().clone();
        let image = Image::with_blobs(extent.clone(), &[]);
        let mut state = leaf.latch();
        if leaf.view().base.is_block(block) {
            state.early = Some(PendingImage { image, written: Some(Arc::downgrade(block)) });
        }
        Ok(extent)
    }
}

/// Whether what was written is this block; one that is gone has an address that no other has while the reference to it
/// is there.
fn is_this(written: &Option<Weak<Block>>, block: &Arc<Block>) -> bool {
    written.as_ref().is_some_and(|written| std::ptr::eq(written.as_ptr(), Arc::as_ptr(block)))
}

impl PendingImage {
    /// Whether `base` is what was written.
    pub(in crate::tree) fn is_of(&self, base: &Base) -> bool {
        match base {
            Base::Loaded(block) => is_this(&self.written, block),
            Base::Stored(image) => Arc::ptr_eq(image, &self.image),
            Base::Spilled(_) => false,
        }
    }
}

impl LeafState {
    /// Whether `base` is in the file already, by the last checkpoint or early.
    fn is_written(&self, base: &Base) -> bool {
        self.image_of(base).is_some()
    }

    /// The image that `base` can be read back from.
    pub(in crate::tree) fn image_of(&self, base: &Base) -> Option<&Arc<Image>> {
        let Base::Loaded(block) = base else { return None };
        match &self.image {
            Some(image) if is_this(&self.clean, block) => Some(image),
            _ => self.early.as_ref().filter(|early| early.is_of(base)).map(|early| &early.image),
        }
    }
}
