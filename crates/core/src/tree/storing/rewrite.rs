//! Rows that say the same in other bytes, put in the place of what they were: rows of an older layout of their table.
//!
//! A walk over the leaves, one a call. The rows of a leaf's base are exchanged, as its large values are when they move
//! ([`super::relocate`]): no version is made, nothing is logged and nobody waits, since who reads a row finds what it
//! said before. What is undecided, and what only old snapshots see, keeps its bytes. So does a leaf that changes each
//! time that it is tried. After a crash the log may bring back rows as they were. Whoever reads rows must go on to know
//! the old bytes, therefore.

use super::tree::Tree;
use crate::tree::block::blob::Blob;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::tree::leaf::node::Node;
use crate::tree::leaf::{Base, Leaf, LeafView};
use crate::Result;
use std::borrow::Cow;
use std::sync::Arc;

/// How often a leaf is tried that others change meanwhile.
const MOST_TRIES: usize = 8;

/// Told each row, its key and its value: puts what the value is to be into the buffer; `false`: it stays. It must not
/// call into the engine.
pub type Rewriter<'a> = &'a mut dyn FnMut(&[u8], &[u8], &mut Vec<u8>) -> Result<bool>;

/// What came of trying to exchange the rows of a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Exchanged,
    /// All of its rows stay, or it is gone.
    Unneeded,
    /// It has changed meanwhile.
    TooLate,
}

impl Tree {
    /// Exchanges the rows of the leaf that holds `key`. Where the walk goes on; `None`: that was the last leaf.
    pub(crate) fn rewrite_at(&self, key: &[u8], rewrite: Rewriter<'_>) -> Result<Option<Vec<u8>>> {
        self.shared.context.cache.make_room()?;
        let moment = self.changes.now();
        let node = self.find_leaf(key)?;
        let Some(leaf) = node.leaf() else { return Ok(None) };
        if !leaf.view().holds(key) {
            self.check_way(moment)?;
            return Ok(Some(key.to_vec()));
        }
        let mut came = Came::TooLate;
        for _ in 0..MOST_TRIES {
            came = self.rewrite_leaf(&node, leaf, rewrite)?;
            if came != Came::TooLate {
                break;
            }
        }
        if leaf.view().dead {
            // Another leaf has its rows, and that one may be behind the walk already.
            return Ok(Some(key.to_vec()));
        }
        if came == Came::Exchanged {
            self.divide_grown(&node, leaf)?;
        }
        Ok(leaf.view().high.as_ref().map(|high| high.to_vec()))
    }

    fn rewrite_leaf(&self, node: &Arc<Node>, leaf: &Leaf, rewrite: Rewriter<'_>) -> Result<Came> {
        self.consolidate_changed(node)?;
        leaf.touch();
        let base = leaf.base(node, &leaf.view())?;
        let Some(rewritten) = self.rewritten(&base, rewrite)? else { return Ok(Came::Unneeded) };
        let mut state = leaf.latch();
        let now = leaf.view();
        if now.dead || !now.base.is_block(&base) {
            return Ok(if now.dead { Came::Unneeded } else { Came::TooLate });
        }
        state.copies.changed();
        self.list_dirty(&state, node);
        leaf.publish(&mut state, LeafView { base: Base::Loaded(Arc::new(rewritten)), ..(*now).clone() });
        Ok(Came::Exchanged)
    }

    /// The block with the rows exchanged; `None`: all of them stay. One large value at a time is in memory.
    fn rewritten(&self, base: &Block, rewrite: Rewriter<'_>) -> Result<Option<Block>> {
        let mut builder = None;
        let (mut key, mut changed) = (Vec::new(), Vec::new());
        // What stays is copied range by range.
        let mut copied = 0;
        for at in 0..base.len() {
            base.key_into(at, &mut key);
            let value = match base.value(at) {
                Value::Inline(bytes) => Cow::Borrowed(bytes),
                Value::Blob(blob) => Cow::Owned(blob.bytes()?.to_vec()),
            };
            changed.clear();
            if !rewrite(&key, &value, &mut changed)? {
                continue;
            }
            let builder = builder.get_or_insert_with(BlockBuilder::new);
            builder.push_range(base, copied..at);
            copied = at + 1;
            match self.is_large(&changed) {
                true => builder.push(&key, Value::Blob(&self.stored_value(&changed)?)),
                false => builder.push(&key, Value::Inline(&changed)),
            }
        }
        let Some(mut builder) = builder else { return Ok(None) };
        builder.push_range(base, copied..base.len());
        Ok(Some(builder.finish()))
    }

    /// A large value, in the tree's file if it has one.
    fn stored_value(&self, bytes: &[u8]) -> Result<Arc<Blob>> {
        let blob = Arc::new(Blob::charged(bytes, &self.shared.context.cache));
        if !self.is_in_memory() {
            blob.evict(&self.shared.space, &self.shared.encoding.value_packer()?)?;
        }
        Ok(blob)
    }
}
