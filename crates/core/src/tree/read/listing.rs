//! What comes next in a leaf whose delta changes many keys, for one reader, merged ahead of a scan.
//!
//! A window into the base ends at each key that the delta knows. Where these lie close together the cursor merges some
//! hundred entries of base and delta at once, and lists where their keys and values are. Nothing is copied: base and
//! delta are pinned, and neither moves what it has. Entries of the delta are taken some at a time, so that their cache
//! misses overlap; for a scan downwards from the chunks of its index, so that it needs no search for each.

use crate::tree::block::{Block, Value};
use crate::tree::versions::delta::{Delta, EntryRef, Version, SOME};
use crate::tree::versions::visibility::{seen, visible, Reader, Seen};
use std::cmp::Ordering;

/// The first listing of a scan, which may be a short one, has so many entries.
const FIRST_ROOM: usize = 16;
/// Each has twice as many as the one before, up to this.
const MOST_ROOM: usize = 128;
/// Set in `key_bytes`: the key's prefix is not there.
const SUFFIX: u32 = 1 << 31;

/// An entry of a listing: where its key and its value are.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Listed {
    key: *const u8,
    value: *const u8,
    /// Of the whole key; with bit 31 set, of what follows the base's prefix.
    key_bytes: u32,
    value_bytes: u32,
}

/// Entries in ascending order, as pointers into the pinned base and delta of the cursor that owns it.
#[derive(Default)]
pub(in crate::tree) struct Listing {
    listed: Vec<Listed>,
    /// For how many entries the next one is.
    room: usize,
}

/// What a listing is made of.
pub(in crate::tree) struct Source<'a> {
    pub base: &'a Block,
    pub delta: &'a Delta,
    pub reader: &'a Reader<'a>,
}

impl Listing {
    /// Another scan begins.
    #[inline]
    pub fn restart(&mut self) {
        self.room = 0;
    }

    /// # Safety
    /// What was listed last was listed of `base` and of a delta that stays as long as `base` does.
    pub unsafe fn rows<'a>(&'a self, base: &'a Block) -> Rows<'a> {
        Rows { listed: &self.listed, base }
    }

    fn clear(&mut self) {
        self.listed.clear();
        self.room = (2 * self.room).clamp(FIRST_ROOM, MOST_ROOM);
    }

    /// Lists what is to come: of the base from `base_at` on, of the delta from `first` on. Returns how many entries of
    /// the delta it has met.
    pub fn forward(&mut self, from: &Source<'_>, mut base_at: usize, first: Option<EntryRef<'_>>) -> usize {
        self.clear();
        let (mut next, mut some, mut met) = (first, Vec::with_capacity(SOME), 0);
        while let Some(first) = next {
            from.delta.some_from(first, &mut some);
            for &(entry, newest) in &some {
                let found = from.base.search_from(base_at, entry.key());
                let (Ok(to) | Err(to)) = found;
                met += 1;
                if !self.push_base(from.base, base_at..to) || !self.push(from, entry, newest, found.ok()) {
                    return met;
                }
                base_at = to + usize::from(found.is_ok());
            }
            next = some.last().and_then(|(entry, _)| entry.next());
        }
        self.push_base(from.base, base_at..from.base.len());
        met
    }

    /// Lists what precedes `key`, of the base before `base_at`. Returns how many entries of the delta it has met.
    pub fn backward(&mut self, from: &Source<'_>, base_at: usize, key: &[u8]) -> usize {
        self.clear();
        let met = self.descend(from, base_at, key);
        self.listed.reverse();
        met
    }

    fn descend(&mut self, from: &Source<'_>, mut base_at: usize, key: &[u8]) -> usize {
        let (mut some, mut met) = (Vec::with_capacity(SOME), 0);
        from.delta.some_before(key, &mut some);
        while let Some(&(last, _)) = some.last() {
            for &(entry, newest) in &some {
                let found = from.base.search_before(base_at, entry.key());
                let start = found.map_or_else(|at| at, |at| at + 1);
                met += 1;
                if !self.push_base(from.base, (start..base_at).rev())
                    || !self.push(from, entry, newest, found.ok())
                {
                    return met;
                }
                base_at = found.unwrap_or_else(|at| at);
            }
            from.delta.some_before(last.key(), &mut some);
        }
        self.push_base(from.base, (0..base_at).rev());
        met
    }

    /// Lists entries of the base; `false`: no more.
    #[inline]
    fn push_base(&mut self, base: &Block, entries: impl Iterator<Item = usize>) -> bool {
        for at in entries {
            if !self.add(base.suffix(at), false, base.value(at)) {
                return false;
            }
        }
        true
    }

    /// Lists what the reader sees of an entry of the delta; `false`: no more.
    #[inline]
    fn push(
        &mut self,
        from: &Source<'_>,
        entry: EntryRef<'_>,
        newest: Option<&Version>,
        base_at: Option<usize>,
    ) -> bool {
        match (seen(visible(newest, from.reader)), base_at) {
            (Seen::Value(value), _) => self.add(entry.key(), true, value),
            (Seen::Nothing, Some(at)) => self.add(entry.key(), true, from.base.value(at)),
            (Seen::Gone, _) | (Seen::Nothing, None) => true,
        }
    }

    #[inline]
    fn add(&mut self, key: &[u8], whole: bool, value: Value<'_>) -> bool {
        let Value::Inline(value) = value else { return false };
        if self.listed.len() == self.room {
            return false;
        }
        self.listed.push(Listed {
            key: key.as_ptr(),
            value: value.as_ptr(),
            key_bytes: key.len() as u32 | if whole { 0 } else { SUFFIX },
            value_bytes: value.len() as u32,
        });
        true
    }
}

/// A listing with the base that it was made of.
#[derive(Clone, Copy)]
pub(in crate::tree) struct Rows<'a> {
    pub listed: &'a [Listed],
    base: &'a Block,
}

impl<'a> Rows<'a> {
    /// What the keys begin with that are not whole, and what is listed of the key of entry `at`.
    fn key(&self, at: usize) -> (&'a [u8], &'a [u8]) {
        let Listed { key, key_bytes, .. } = self.listed[at];
        // SAFETY: by `Listing::rows`: a slice of the base or the delta, which stay for `'a` and do not change it.
        let bytes = unsafe { std::slice::from_raw_parts(key, (key_bytes & !SUFFIX) as usize) };
        (if key_bytes & SUFFIX == 0 { &[] } else { self.base.prefix() }, bytes)
    }

    /// How many bytes each key has, if all have as many.
    pub fn key_bytes(&self) -> Option<usize> {
        let bytes = |listed: &Listed| {
            let prefix = if listed.key_bytes & SUFFIX == 0 { 0 } else { self.base.prefix().len() };
            prefix + (listed.key_bytes & !SUFFIX) as usize
        };
        let first = self.listed.first().map(bytes)?;
        self.listed.iter().all(|listed| bytes(listed) == first).then_some(first)
    }

    /// The value of entry `at`.
    pub fn value(&self, at: usize) -> &'a [u8] {
        let Listed { value, value_bytes, .. } = self.listed[at];
        // SAFETY: as in `key`.
        unsafe { std::slice::from_raw_parts(value, value_bytes as usize) }
    }

    /// Replaces `out` by the key of entry `at`.
    pub fn key_into(&self, at: usize, out: &mut Vec<u8>) {
        let (prefix, rest) = self.key(at);
        out.clear();
        out.extend_from_slice(prefix);
        out.extend_from_slice(rest);
    }

    /// Compares the key of entry `at` with `key`.
    pub fn compare(&self, at: usize, key: &[u8]) -> Ordering {
        let (prefix, rest) = self.key(at);
        let (start, end) = key.split_at(prefix.len().min(key.len()));
        prefix.cmp(start).then_with(|| rest.cmp(end))
    }

    /// How many entries are before `key`; `with`: or have it.
    pub fn before(&self, key: &[u8], with: bool) -> usize {
        let (mut low, mut high) = (0, self.listed.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.compare(middle, key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal if with => low = middle + 1,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        low
    }
}
