//! Runs of entries that a scan takes from a leaf without a call for each.
//!
//! A window shows entries of the pinned leaf as the reader sees them: those of its base that lie side by side up to the
//! next key that the delta knows, or, if that is near, a listing of base and delta merged ([`super::listing`]). Whoever
//! has it walks over it by himself and tells the cursor where he is, with [`TreeCursor::arrive`], before he calls it
//! again. What others write meanwhile a snapshot does not see; after a write or a rollback of the reader's own
//! transaction the window is no longer to be used.

use super::cursor::{Item, Ready, TreeCursor};
use crate::tree::block::{Block, Items};
use crate::tree::read::listing::{Listed, Rows, Source};
use crate::tree::versions::delta::EntryRef;
use crate::tree::versions::visibility::Reader;
use std::cmp::Ordering;
use std::ops::{Bound, Range};

/// Where the delta has a key among so many entries that follow, these are listed.
const SPARSE: usize = 24;
/// So many entries of a delta that are listed cost a leaf as much as one that is merged by a step.
const LISTED_TO_MERGED: usize = 4;

/// Entries of a leaf, all of which one reader sees.
pub struct Window<'a> {
    block: &'a Block,
    rows: Option<Rows<'a>>,
    entries: Range<usize>,
}

impl<'a> Window<'a> {
    /// Which entries: numbers for the cursor's `arrive`. Never empty.
    pub fn entries(&self) -> Range<usize> {
        self.entries.clone()
    }

    /// If the entries are not those of the block: all of the listing that they are numbers in.
    pub fn listed(&self) -> Option<&'a [Listed]> {
        self.rows.map(|rows| rows.listed)
    }

    /// How many bytes each key has, if all have as many.
    pub fn key_bytes(&self) -> Option<usize> {
        if let Some(rows) = self.rows {
            return rows.key_bytes();
        }
        let suffixes = self.suffixes();
        suffixes.starts.is_none().then(|| self.prefix().len() + suffixes.length)
    }

    /// What the keys of the block begin with.
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
        if let Some(rows) = self.rows {
            let mut key = Vec::new();
            return self
                .entries()
                .map(|at| {
                    rows.key_into(at, &mut key);
                    (at, key.clone(), Some(rows.value(at).to_vec()))
                })
                .collect();
        }
        let key = |at| [self.prefix(), item(self.suffixes(), at).unwrap_or_default()].concat();
        self.entries().map(|at| (at, key(at), item(self.values(), at).map(<[u8]>::to_vec))).collect()
    }

    fn compare(&self, at: usize, key: &[u8]) -> Ordering {
        self.rows.map_or_else(|| self.block.compare(at, key), |rows| rows.compare(at, key))
    }

    /// How many of the entries that the numbers count are before `key`; `with`: or have it.
    fn count_before(&self, key: &[u8], with: bool) -> usize {
        match self.rows {
            Some(rows) => rows.before(key, with),
            None if with => self.block.upper_bound(key),
            None => self.block.lower_bound(key),
        }
    }

    /// Without what lies past the end of a scan; `None`: nothing is left.
    pub fn before(self, end: Bound<&[u8]>) -> Option<Window<'a>> {
        let Range { start, end: mut stop } = self.entries;
        stop = match end {
            Bound::Unbounded => stop,
            Bound::Included(key) if self.compare(stop - 1, key).is_gt() => {
                self.count_before(key, true).min(stop)
            }
            Bound::Excluded(key) if self.compare(stop - 1, key).is_ge() => {
                self.count_before(key, false).min(stop)
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
            Bound::Included(key) if self.compare(start, key).is_lt() => {
                self.count_before(key, false).max(start)
            }
            Bound::Excluded(key) if self.compare(start, key).is_le() => {
                self.count_before(key, true).max(start)
            }
            _ => start,
        };
        (start < stop).then_some(Window { entries: start..stop, ..self })
    }
}

impl TreeCursor {
    /// The entries that come next in the direction of the last move, which found something.
    pub fn window(&mut self, reader: &Reader<'_>) -> Option<Window<'_>> {
        if !self.is_fresh(reader) || self.tree.is_salvaged() {
            return None;
        }
        let (entries, met) = self.run_of_base()?;
        if met && entries.len() < SPARSE {
            return self.list(reader);
        }
        self.is_listed = false;
        let block = &self.pin.as_ref()?.base;
        (!entries.is_empty()).then_some(Window { block, rows: None, entries })
    }

    /// After a look-up that has found its key: the entries that follow, as if a scan had come there. The item stays.
    pub fn window_behind(&mut self, reader: &Reader<'_>) -> Option<Window<'_>> {
        let pin = self.pin.as_ref()?;
        let has_past = reader.snapshot < pin.view.horizon && !pin.view.history.is_empty();
        let is_whole = pin.ephemeral.is_none() && !pin.is_packed();
        if matches!(self.item, Item::None) || self.ready != Ready::No || has_past || !is_whole {
            return None;
        }
        if !std::mem::take(&mut self.placed) {
            self.base_at = pin.base.upper_bound(&self.key);
        }
        self.versions = pin.delta.versions();
        // SAFETY: the entry lives in `pin.delta`; `delta_at` is cleared before the pin is replaced.
        self.delta_at = pin
            .delta
            .first_after(&self.key)
            .map(|entry| unsafe { std::mem::transmute::<EntryRef<'_>, EntryRef<'static>>(entry) });
        self.ready = Ready::Forward;
        self.window(reader)
    }

    /// Right after a move of a snapshot that found something: whether it is sure that the entry which follows lies past
    /// the end of a scan that goes up.
    #[inline]
    pub fn is_last_before(&self, reader: &Reader<'_>, end: Bound<&[u8]>) -> bool {
        let (Some(pin), Item::Base(at)) = (&self.pin, self.item) else { return false };
        let has_past = reader.snapshot < pin.view.horizon && !pin.view.history.is_empty();
        if at + 1 >= pin.base.len() || !pin.delta.is_empty() || has_past || self.tree.is_salvaged() {
            return false;
        }
        match end {
            Bound::Unbounded => false,
            Bound::Included(key) => pin.base.compare(at + 1, key).is_gt(),
            Bound::Excluded(key) => pin.base.compare(at + 1, key).is_ge(),
        }
    }

    /// The entries of the base up to the next key of the delta, and whether there is one.
    fn run_of_base(&self) -> Option<(Range<usize>, bool)> {
        let pin = self.pin.as_ref()?;
        match self.ready {
            Ready::No => None,
            Ready::Forward => {
                let met = self.delta_at.map(|entry| pin.base.search_from(self.base_at, entry.key()));
                Some((
                    self.base_at..met.map_or(pin.base.len(), |at| at.unwrap_or_else(|at| at)),
                    met.is_some(),
                ))
            }
            Ready::Backward => {
                let met = (!pin.delta.is_empty()).then(|| pin.delta.last_before(&self.key)).flatten();
                let start = met.map_or(0, |entry| pin.base.upper_bound(entry.key()));
                Some((start..self.base_at, met.is_some()))
            }
        }
    }

    /// Merges what comes next of the base and a delta that changes much of it.
    fn list(&mut self, reader: &Reader<'_>) -> Option<Window<'_>> {
        let pin = self.pin.as_ref()?;
        let source = Source { base: &pin.base, delta: &pin.delta, reader };
        let met = match self.ready {
            Ready::No => return None,
            Ready::Forward => self.listing.forward(&source, self.base_at, self.delta_at),
            Ready::Backward => self.listing.backward(&source, self.base_at, &self.key),
        };
        self.merged += (met / LISTED_TO_MERGED) as u32;
        self.is_listed = true;
        // SAFETY: just listed of this pin, which has base and delta both; it stays as long as the window borrows from
        // the cursor.
        let rows = unsafe { self.listing.rows(&pin.base) };
        let entries = 0..rows.listed.len();
        (!entries.is_empty()).then_some(Window { block: &pin.base, rows: Some(rows), entries })
    }

    /// Somebody who has walked over `passed` entries of the window stands on entry `at`, which is one of them.
    pub fn arrive(&mut self, at: usize, passed: usize) {
        let Some(pin) = &self.pin else { return };
        debug_assert!(self.ready != Ready::No, "a window that was not given");
        self.settled = false;
        self.blob.take();
        self.yielded += passed;
        if !self.is_listed {
            self.base_at = if self.ready == Ready::Forward { at + 1 } else { at };
            self.item = Item::Base(at);
            return pin.base.key_into(at, &mut self.key);
        }
        // SAFETY: the pin is the one that the window was listed of: nothing else was asked of the cursor since.
        let rows = unsafe { self.listing.rows(&pin.base) };
        rows.key_into(at, &mut self.key);
        self.item = Item::Listed(at);
        self.base_at = match self.ready {
            Ready::Backward => pin.base.lower_bound(&self.key),
            Ready::Forward | Ready::No => pin.base.upper_bound(&self.key),
        };
        if self.ready == Ready::Forward {
            self.versions = pin.delta.versions();
            // SAFETY: as in `prepare_forward`.
            self.delta_at = pin
                .delta
                .first_after(&self.key)
                .map(|entry| unsafe { std::mem::transmute::<EntryRef<'_>, EntryRef<'static>>(entry) });
        }
    }
}
