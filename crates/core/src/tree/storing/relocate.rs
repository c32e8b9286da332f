//! Moving what lies at the end of a file to its beginning, so that the end can be cut off.
//!
//! A walk over the leaves, one a call. A leaf, or a page above it, that lies behind the limit is written anew by the
//! next checkpoint, to where the space has room before the limit ([`crate::store::Space::prefer_below`]); it need not
//! be read for that by who asks. Large values have extents of their own, which only the leaves' blocks name: where
//! those are to move, each leaf is read, and the values are copied one by one.

use super::tree::Tree;
use crate::tree::block::blob::Blob;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::tree::change::structure::mark_dirty;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::{Base, Leaf, LeafView};
use crate::Result;
use std::sync::Arc;

/// What is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Leaves and pages.
    Blocks,
    /// And large values.
    Values,
}

impl Tree {
    /// Has the leaf that holds `key`, and the pages above it, leave the part of the file behind `limit` with the next
    /// checkpoint. Where the walk goes on; `None`: that was the last leaf.
    pub(crate) fn relocate_at(&self, key: &[u8], limit: u64, moved: Moved) -> Result<Option<Vec<u8>>> {
        let moment = self.changes.now();
        let node = self.find_leaf(key)?;
        let Some(leaf) = node.leaf() else { return Ok(None) };
        if !leaf.view().holds(key) {
            self.check_way(moment)?;
            return Ok(Some(key.to_vec()));
        }
        {
            let mut state = leaf.latch();
            let durable = state.copies.durable();
            if durable.is_some_and(|image| image.extent.address().offset >= limit) {
                state.copies.forget_ahead();
                self.list_dirty(&state, &node);
            }
        }
        if moved == Moved::Values {
            self.relocate_values(&node, leaf, limit)?;
        }
        self.relocate_pages(key, limit)?;
        Ok(leaf.view().high.as_ref().map(|high| high.to_vec()))
    }

    fn relocate_pages(&self, key: &[u8], limit: u64) -> Result<()> {
        let _structure = self.structure.lock();
        let path = self.path_to(key)?;
        let is_far = |node: &Node| match node {
            Node::Inner(inner) => {
                let image = inner.image.lock();
                image.durable.as_ref().is_some_and(|extent| extent.address().offset >= limit)
            }
            Node::Leaf(_) => false,
        };
        if let Some(lowest) = path.iter().rposition(|(node, _)| is_far(node)) {
            mark_dirty(&path[..=lowest]);
            self.note_dirty();
        }
        Ok(())
    }

    /// The leaf gets copies of those of its large values that lie behind `limit`, unless it changes meanwhile.
    fn relocate_values(&self, node: &Arc<Node>, leaf: &Leaf, limit: u64) -> Result<()> {
        self.shared.context.cache.make_room()?;
        self.consolidate_changed(node)?;
        leaf.touch();
        let base = leaf.base(node, &leaf.view())?;
        // Bundles are moved as a whole (`bundles.rs`).
        let is_far = |blob: &Arc<Blob>| {
            blob.is_alone() && blob.extent().is_some_and(|at| at.address().offset >= limit)
        };
        if !base.blobs().iter().any(is_far) {
            return Ok(());
        }
        let moved = Arc::new(self.with_copies(&base, &is_far)?);
        let mut state = leaf.latch();
        let now = leaf.view();
        if now.base.is_block(&base) && !now.dead {
            state.copies.changed();
            self.list_dirty(&state, node);
            leaf.publish(&mut state, LeafView { base: Base::Loaded(moved), ..(*now).clone() });
        }
        Ok(())
    }

    /// The same rows, with copies of some large values, of which one at a time is in memory.
    fn with_copies(&self, base: &Block, is_far: &dyn Fn(&Arc<Blob>) -> bool) -> Result<Block> {
        let packer = self.shared.encoding.value_packer()?;
        let mut builder = BlockBuilder::new();
        let mut key = Vec::new();
        for at in 0..base.len() {
            base.key_into(at, &mut key);
            match base.value(at) {
                Value::Blob(blob) if is_far(blob) => {
                    let copy = Arc::new(Blob::charged(&blob.bytes()?, &self.shared.context.cache));
                    copy.evict(&self.shared.space, &packer)?;
                    builder.push(&key, Value::Blob(&copy));
                }
                value => builder.push(&key, value),
            }
        }
        Ok(builder.finish())
    }
}
