//! A leaf's base made anew, with other bytes that say the same, and put in the place of the old one unless somebody has
//! changed that meanwhile.
//!
//! No version is made, nothing is logged and nobody waits: who reads a row finds what it said before, and old snapshots
//! find what they need. The next checkpoint writes the leaf. After a crash before that it is as it was.

use super::tree::Tree;
use crate::tree::block::blob::Blob;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::tree::leaf::node::LeafRef;
use crate::tree::leaf::{Base, LeafView};
use crate::Result;
use std::sync::Arc;

/// How often a leaf is tried that others change meanwhile, if it is worth more than one try.
pub(super) const MOST_TRIES: usize = 8;

/// What came of exchanging a leaf's base.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exchanged {
    Done,
    /// All of it stays, or the leaf is gone.
    Unneeded,
    /// The leaf has changed each time.
    TooLate,
}

/// What a value is to be.
pub(super) enum Other {
    /// What it is.
    Keep,
    /// What was put into the buffer.
    Bytes,
    Large(Arc<Blob>),
}

impl Tree {
    /// Has the leaf, consolidated, get what `make` makes of its base; `None`: all of that stays. `tries`: how often it
    /// is made, if others change the leaf.
    pub(super) fn exchange_base(
        &self,
        leaf: &LeafRef,
        tries: usize,
        mut make: impl FnMut(&Block) -> Result<Option<Block>>,
    ) -> Result<Exchanged> {
        for _ in 0..tries {
            self.consolidate_changed(leaf.node())?;
            leaf.touch();
            let base = leaf.base(leaf.node(), &leaf.view())?;
            let Some(other) = make(&base)? else { return Ok(Exchanged::Unneeded) };
            let mut state = leaf.latch();
            let now = leaf.view();
            if now.dead {
                return Ok(Exchanged::Unneeded);
            }
            if now.base.is_block(&base) {
                state.copies.changed();
                self.list_dirty(&state, leaf.node());
                leaf.publish(&mut state, LeafView { base: Base::Loaded(Arc::new(other)), ..(*now).clone() });
                return Ok(Exchanged::Done);
            }
        }
        Ok(Exchanged::TooLate)
    }

    /// A large value, in the tree's file if it has one.
    pub(super) fn stored_value(&self, bytes: &[u8]) -> Result<Arc<Blob>> {
        let blob = Arc::new(Blob::charged(bytes, &self.shared.context.cache));
        if !self.is_in_memory() {
            blob.evict(&self.shared.space, &self.shared.encoding.value_packer()?)?;
        }
        Ok(blob)
    }
}

impl Block {
    /// The same keys, with what `other` makes of their values; `None`: all of them stay. It is told key and value, and
    /// given an empty buffer.
    pub(super) fn with(
        &self,
        mut other: impl FnMut(&[u8], Value<'_>, &mut Vec<u8>) -> Result<Other>,
    ) -> Result<Option<Block>> {
        let mut builder = None;
        let (mut key, mut bytes) = (Vec::new(), Vec::new());
        // What stays is copied range by range.
        let mut copied = 0;
        for at in 0..self.len() {
            self.key_into(at, &mut key);
            bytes.clear();
            let other = other(&key, self.value(at), &mut bytes)?;
            let value = match &other {
                Other::Keep => continue,
                Other::Bytes => Value::Inline(&bytes),
                Other::Large(blob) => Value::Blob(blob),
            };
            let builder = builder.get_or_insert_with(BlockBuilder::new);
            builder.push_range(self, copied..at);
            builder.push(&key, value);
            copied = at + 1;
        }
        let Some(mut builder) = builder else { return Ok(None) };
        builder.push_range(self, copied..self.len());
        Ok(Some(builder.finish()))
    }
}
