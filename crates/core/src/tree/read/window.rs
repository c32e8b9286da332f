//! Runs of entries that a scan takes from a leaf without a call for each.
//!
//! A window shows entries of the pinned base that lie side by side and that the reader sees as they are there: it ends
//! before the next key that the delta knows. Whoever has it walks over it by himself and tells the cursor where he is,
//! with [`TreeCursor::arrive`], before he calls it again. What others write meanwhile a snapshot does not see; after a
//! write or a rollback of the reader's own transaction the window is no longer to be used.

use super::cursor::{Item, Ready, TreeCursor};
use crate::tree::block::{Block, Items};
use crate::tree::versions::visibility::Reader;
use std::ops::{Bound, Range};

/// Entries of a block, all of which one reader sees.
pub struct Window<'a> {
    block: &'a Block,
    entries: Range<usize>,
}

impl<'a> Window<'a> {
    /// Which entries: numbers for the cursor's `arrive`. Never empty.
    pub fn entries(&self) -> Range<usize> {
        self.entries.clone()
    }

    /// How many bytes each key has, if all have as many.
    pub fn key_bytes(&self) -> Option<usize> {
        let suffixes = self.suffixes();
        suffixes.starts.is_none().then(|| self.prefix().len() + suffixes.length)
    }

    /// What the keys begin with.
    pub fn prefix(&self) -> &'a [u8] {
        self.block.prefix()
    }

    /// What follows the prefix in the keys of the block.
    pub fn suffixes(&self) -> Items<'a> {
        self.block.suffixes()
    }

    /// The values of the block. For large ones the cursor has to be asked.
    pub fn values(&self) -> Items<'a> {
        self.block.values()
    }

    /// Number, key and value (if it is not large) of each entry, found as the shim finds them.
    #[cfg(test)]
    pub(in crate::tree) fn rows(&self) -> Vec<(usize, Vec<u8>, Option<Vec<u8>>)> {
        let number = |starts: &[u8], at: usize| crate::tree::block::read_u32(starts, 4 * at);
        let item = |items: Items<'a>, at: usize| match items.starts {
            None => Some(&items.bytes[at * items.length..][..items.length]),
            Some(starts) if number(starts, at) >> 31 != 0 => None,
            Some(starts) => Some(
                &items.bytes[number(starts, at) as usize..(number(starts, at + 1) & !(1 << 31)) as usize],
            ),
        };
        let key = |at| [self.prefix(), item(self.suffixes(), at).unwrap_or_default()].concat();
        self.entries().map(|at| (at, key(at), item(self.values(), at).map(<[u8]>::to_vec))).collect()
    }

    /// Without what lies past the end of a scan; `None`: nothing is left.
    pub fn before(self, end: Bound<&[u8]>) -> Option<Window<'a>> {
        let Range { start, end: mut stop } = self.entries;
        stop = match end {
            Bound::Unbounded => stop,
            Bound::Included(key) if self.block.compare(stop - 1, key).is_gt() => {
                self.block.upper_bound(key).min(stop)
            }
            Bound::Excluded(key) if self.block.compare(stop - 1, key).is_ge() => {
                self.block.lower_bound(key).min(stop)
            }
            _ => stop,
        };
        (start < stop).then_some(Window { entries: start..stop, ..self })
    }

    /// The same for a scan downwards.
    pub fn behind(self, end: Bound<&[u8]>) -> Option<Window<'a>> {
        let Range { mut start, end: stop } = self.entries;
        start = match end {
            Bound::Unbounded => start,
            Bound::Included(key) if self.block.compare(start, key).is_lt() => {
                self.block.lower_bound(key).max(start)
            }
            Bound::Excluded(key) if self.block.compare(start, key).is_le() => {
                self.block.upper_bound(key).max(start)
            }
            _ => start,
        };
        (start < stop).then_some(Window { entries: start..stop, ..self })
    }
}

impl TreeCursor {
    /// The entries that come next in the direction of the last move, which found something.
    pub fn window(&self, reader: &Reader<'_>) -> Option<Window<'_>> {
        let pin = self.pin.as_ref()?;
        if !self.is_fresh(reader) || self.tree.is_salvaged() {
            return None;
        }
        let entries = match self.ready {
            Ready::No => return None,
            Ready::Forward => {
                let met = self.delta_at.map(|entry| pin.base.search_from(self.base_at, entry.key()));
                self.base_at..met.map_or(pin.base.len(), |at| at.unwrap_or_else(|at| at))
            }
            Ready::Backward => {
                let met = (!pin.delta.is_empty()).then(|| pin.delta.last_before(&self.key)).flatten();
                met.map_or(0, |entry| pin.base.upper_bound(entry.key()))..self.base_at
            }
        };
        (!entries.is_empty()).then_some(Window { block: &pin.base, entries })
    }

    /// Somebody who has walked over `passed` entries of the window stands on entry `at`, which is one of them.
    pub fn arrive(&mut self, at: usize, passed: usize) {
        let Some(pin) = &self.pin else { return };
        debug_assert!(at < pin.base.len() && self.ready != Ready::No, "a window that was not given");
        self.base_at = if self.ready == Ready::Forward { at + 1 } else { at };
        (self.item, self.settled) = (Item::Base(at), false);
        self.blob.take();
        self.yielded += passed;
        pin.base.key_into(at, &mut self.key);
    }
}
