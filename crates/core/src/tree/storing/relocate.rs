//! Moving what lies at the end of a file to its beginning, so that the end can be cut off.
//!
//! A walk over the leaves, one a call. A leaf, or a page above it, that lies behind the limit is written anew by the
//! next checkpoint, to where the space has room before the limit ([`crate::store::Space::prefer_below`]); it need not
//! be read for that by who asks. Large values have extents of their own, which only the leaves' blocks name: where
//! those are to move, each leaf is read, and the values are copied one by one.

use super::exchange::Other;
use super::tree::Tree;
use crate::store::Extent;
use crate::tree::block::blob::Blob;
use crate::tree::block::Value;
use crate::tree::change::structure::mark_dirty;
use crate::tree::leaf::lifecycle::FileCopy;
use crate::tree::leaf::node::{LeafRef, Node};
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
        let leaf = self.relocate_block(key, limit)?;
        if moved == Moved::Values {
            self.relocate_values(&leaf, limit)?;
        }
        self.relocate_pages(key, limit)?;
        Ok(leaf.view().next_key())
    }

    /// The leaf that holds `key`; if its block lies behind `limit`, the next checkpoint writes it anew.
    pub(super) fn relocate_block(&self, key: &[u8], limit: u64) -> Result<LeafRef> {
        let (leaf, _) = self.leaf_of(key)?;
        let mut state = leaf.latch();
        let is_far = |extent: &Extent| extent.address().offset >= limit;
        let is_far = |copy: &FileCopy| {
            is_far(&copy.image.extent) || copy.patch.as_ref().is_some_and(|patch| is_far(patch.extent()))
        };
        if state.copies.durable().is_some_and(is_far) {
            state.copies.rewrite();
            self.list_dirty(&state, leaf.node());
        }
        drop(state);
        Ok(leaf)
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

    /// The leaf gets copies of those of its large values that lie behind `limit`, unless it changes meanwhile. One at a
    /// time is in memory.
    fn relocate_values(&self, leaf: &LeafRef, limit: u64) -> Result<()> {
        // Bundles are moved as a whole (`bundles.rs`).
        let is_far = |blob: &Arc<Blob>| {
            blob.is_alone() && blob.extent().is_some_and(|at| at.address().offset >= limit)
        };
        let exchanged = self.exchange_base(leaf, 1, |base| {
            if !base.blobs().iter().any(is_far) {
                return Ok(None);
            }
            base.with(|_, value, _| match value {
                Value::Blob(blob) if is_far(blob) => Ok(Other::Large(self.stored_value(&blob.bytes()?)?)),
                _ => Ok(Other::Keep),
            })
        });
        exchanged.map(drop)
    }
}
