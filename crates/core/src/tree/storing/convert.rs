//! Rewriting a tree's blocks with another compression, some at each checkpoint.
//!
//! Every block says how it was compressed, so a tree may have blocks of both kinds for as long as it takes. Where the
//! conversion stands is not durable: after a restart the blocks it has not come to stay as they are until they change.

use super::tree::Tree;
use crate::options::Packing;
use crate::Result;

/// Leaves that a checkpoint rewrites though they have not changed: 64 MiB of them, before compression.
const LEAVES_PER_CHECKPOINT: usize = if cfg!(test) { 7 } else { 2048 };

impl Tree {
    /// Blocks are written like this from now on, and those that are there are rewritten by the next checkpoints. (Large
    /// values, which have extents of their own, stay as they are.)
    pub(crate) fn convert(&self, packing: Packing) {
        self.shared.encoding.set_packing(packing);
        *self.unconverted.lock() = Some(Vec::new());
        self.note_dirty();
    }

    /// Whether blocks are left to be rewritten.
    pub(crate) fn is_converting(&self) -> bool {
        self.unconverted.lock().is_some()
    }

    /// Puts the next leaves to be rewritten on the list of dirty ones; whether there are more.
    pub(in crate::tree) fn list_unconverted(&self) -> Result<bool> {
        let Some(mut next) = self.unconverted.lock().clone() else { return Ok(false) };
        for _ in 0..LEAVES_PER_CHECKPOINT {
            let leaf = self.relocate_block(&next, 0)?;
            let Some(key) = leaf.view().next_key() else {
                *self.unconverted.lock() = None;
                return Ok(false);
            };
            next = key;
        }
        if let Some(place) = &mut *self.unconverted.lock() {
            *place = next;
        }
        Ok(true)
    }
}
