//! Builds base blocks: entries in ascending order in, one [`Block`] out.
//!
//! Consolidation, splits, inner pages, bulk loads and checkpoints all run through here, so entries are gathered in flat
//! buffers that [`BlockBuilder::finish`] empties but keeps, values reach the block by one memcpy for all, and runs of
//! an old block are taken over without touching entry by entry what need not change. The bytes are those of
//! `crate::tree::block`, which documents them.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use super::blob::{Blob, BLOB_ADDRESS_BYTES};
use crate::slabs::Buffer;
use crate::tree::block::{
    shared_bytes, wide_head, Block, Header, Run, Value, BLOB_BIT, HEADER_BYTES, MAX_BLOCK_BYTES,
};

/// A thread keeps the buffers of one builder up to this size.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static KEPT: Cell<Option<BlockBuilder>> = const { Cell::new(None) };
}

/// Gathers entries for a block; reusable.
#[derive(Default)]
pub struct BlockBuilder {
    /// Whole keys, one after the other, and where each ends.
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    /// Values as they will lie in the block, and where each starts, with [`BLOB_BIT`].
    values: Vec<u8>,
    value_starts: Vec<u32>,
    blobs: Vec<Arc<Blob>>,
    /// Length of what all keys begin with.
    prefix: usize,
    /// Whether all keys, and all values, have the length of the first.
    fixed_keys: bool,
    fixed_values: bool,
    /// Of the suffixes; filled by [`BlockBuilder::finish`].
    heads: Vec<u64>,
}

impl BlockBuilder {
    /// An empty builder.
    pub fn new() -> BlockBuilder {
        BlockBuilder::default()
    }

    /// An empty builder with the buffers of one that this thread gave back.
    pub fn reused() -> BlockBuilder {
        // A thread that is being torn down has none.
        KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default()
    }

    /// Keeps the buffers for [`BlockBuilder::reused`]: growing them anew for each leaf costs more than filling them.
    pub fn give_back(mut self) {
        self.clear();
        let numbers = self.key_ends.capacity() + self.value_starts.capacity() + 2 * self.heads.capacity();
        if self.keys.capacity() + self.values.capacity() + 4 * numbers <= KEPT_BYTES {
            let _ = KEPT.try_with(|kept| kept.set(Some(self)));
        }
    }

    /// Forgets all entries, keeps the buffers.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.values.clear();
        self.value_starts.clear();
        self.blobs.clear();
    }

    /// Number of entries so far.
    pub fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// Whether there is no entry yet.
    pub fn is_empty(&self) -> bool {
        self.key_ends.is_empty()
    }

    /// The last key pushed.
    pub fn last_key(&self) -> Option<&[u8]> {
        let end = *self.key_ends.last()? as usize;
        let start = self.key_ends.len().checked_sub(2).map_or(0, |i| self.key_ends[i] as usize);
        Some(&self.keys[start..end])
    }

    /// Upper bound of the bytes of the block if it were finished now; exceeds them by at most four per entry.
    pub fn estimated_bytes(&self) -> usize {
        let entries = self.len();
        let starts = |fixed: bool| if fixed { 0 } else { 4 * (entries + 1) };
        HEADER_BYTES + self.keys.len() - self.prefix * entries.saturating_sub(1)
            + 8 * entries
            + starts(self.fixed_keys)
            + starts(self.fixed_values)
            + self.values.len()
            + self.blobs.len() * BLOB_ADDRESS_BYTES
    }

    /// Appends an entry.
    ///
    /// # Panics
    /// If `key` is not greater than the last one, or the block would pass [`MAX_BLOCK_BYTES`]: bugs of the caller,
    /// which would otherwise make a block that nobody can read back.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: Value<'_>) {
        self.push_parts(key, &[], value);
    }

    /// Appends an entry whose key comes in two parts, as an old block has it.
    #[inline]
    pub fn push_parts(&mut self, prefix: &[u8], suffix: &[u8], value: Value<'_>) {
        let start = self.keys.len();
        self.keys.extend_from_slice(prefix);
        self.keys.extend_from_slice(suffix);
        self.note_key(start);
        let start = self.values.len();
        match value {
            Value::Inline(bytes) => {
                self.values.extend_from_slice(bytes);
                self.note_value(start as u32);
            }
            Value::Blob(blob) => {
                self.values.extend_from_slice(&(self.blobs.len() as u32).to_le_bytes());
                self.blobs.push(blob.clone());
                self.fixed_values = false;
                self.note_value(start as u32 | BLOB_BIT);
            }
        }
        assert!(self.keys.len() + self.values.len() < MAX_BLOCK_BYTES / 2, "a block past the limit");
    }

    /// Appends the entries of `range` of `block`; much cheaper than one by one.
    pub fn push_range(&mut self, block: &Block, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        if !block.blobs().is_empty() {
            range.for_each(|i| self.push_parts(block.prefix(), block.suffix(i), block.value(i)));
            return;
        }
        let first = range.start;
        self.push_parts(block.prefix(), block.suffix(first), block.value(first));
        let rest = first + 1..range.end;
        if rest.is_empty() {
            return;
        }
        let prefix = block.prefix();
        let suffixes = block.suffix_bytes();
        let (last_start, last_end) = block.suffix_span(range.end - 1);
        let key_bytes = *self.key_ends.first().unwrap_or(&0) as usize;
        let mut end = self.keys.len();
        self.keys.resize(end + prefix.len() * rest.len() + last_end - block.suffix_span(first).1, 0);
        self.key_ends.reserve(rest.len());
        for i in rest.clone() {
            let (from, to) = block.suffix_span(i);
            copy_short(&mut self.keys, end, prefix, 0..prefix.len());
            copy_short(&mut self.keys, end + prefix.len(), suffixes, from..to);
            self.fixed_keys &= prefix.len() + to - from == key_bytes;
            end += prefix.len() + to - from;
            self.key_ends.push(end as u32);
        }
        // Keys of a block ascend, so what the first and the last share, all between share.
        self.shrink_prefix(end - prefix.len() - (last_end - last_start));
        let (from, to) = (block.value_span(rest.start).0, block.value_span(range.end - 1).1);
        let at = self.values.len();
        let value_bytes = self.first_value_bytes();
        self.values.extend_from_slice(&block.value_bytes()[from..to]);
        self.value_starts.reserve(rest.len());
        for i in rest {
            let (start, end) = block.value_span(i);
            self.fixed_values &= end - start == value_bytes;
            self.value_starts.push((at + start - from) as u32);
        }
        assert!(self.keys.len() + self.values.len() < MAX_BLOCK_BYTES / 2, "a block past the limit");
    }

    /// Makes the block and empties the builder, whose buffers stay.
    pub fn finish(&mut self) -> Block {
        let entries = self.len();
        let prefix = if entries == 0 { 0 } else { self.prefix };
        self.gather_heads(prefix);
        let header = Header {
            wide_heads: self.wants_wide_heads(),
            fixed_suffix: self.fixed_keys || entries == 0,
            fixed_value: self.fixed_values || entries == 0,
            entries: entries as u32,
            prefix_bytes: prefix as u32,
            blobs: self.blobs.len() as u32,
            suffix_bytes: (self.keys.len() - prefix * entries) as u32,
            value_bytes: self.values.len() as u32,
        };
        let layout = header.layout().expect("pushes keep a block within its limits");
        let mut out = Buffer::must(layout.end);
        out[..HEADER_BYTES].copy_from_slice(&header.encode());
        out[HEADER_BYTES..layout.heads].copy_from_slice(&self.keys[..prefix]);
        let heads = &mut out[layout.heads..layout.heads_end];
        match header.wide_heads {
            true => put_all(heads, self.heads.iter().map(|head| head.to_be_bytes())),
            false => put_all(heads, self.heads.iter().map(|head| ((head >> 32) as u32).to_be_bytes())),
        }
        if let Run::Starts(at) = layout.suffix_run {
            let ends = self.key_ends.iter().enumerate().map(|(i, end)| end - (prefix * (i + 1)) as u32);
            put_all(&mut out[at..], std::iter::once(0).chain(ends).map(u32::to_le_bytes));
        }
        if let Run::Starts(at) = layout.value_run {
            let starts = self.value_starts.iter().copied().chain(std::iter::once(header.value_bytes));
            put_all(&mut out[at..], starts.map(u32::to_le_bytes));
        }
        if prefix == 0 {
            out[layout.suffixes..layout.values].copy_from_slice(&self.keys);
        } else {
            let mut at = layout.suffixes;
            for key in self.key_ranges() {
                let suffix = key.start + prefix..key.end;
                let end = at + suffix.len();
                copy_short(&mut out, at, &self.keys, suffix);
                at = end;
            }
        }
        out[layout.values..layout.blobs].copy_from_slice(&self.values);
        let addresses = self.blobs.iter().map(|blob| blob.address());
        let rows = addresses.map(|at| at.map_or([0; BLOB_ADDRESS_BYTES], |at| at.encode()));
        put_all(&mut out[layout.blobs..], rows);
        let blobs = self.blobs.drain(..).collect();
        self.clear();
        Block::assemble(out, blobs, &header, layout)
    }

    /// Where each key lies within the keys.
    fn key_ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut start = 0;
        self.key_ends.iter().map(move |&end| std::mem::replace(&mut start, end as usize)..end as usize)
    }

    fn gather_heads(&mut self, prefix: usize) {
        let mut heads = std::mem::take(&mut self.heads);
        heads.clear();
        heads.extend(self.key_ranges().map(|key| wide_head(&self.keys[key.start + prefix..key.end])));
        self.heads = heads;
    }

    /// Four bytes do, unless they leave many entries alike that eight bytes tell apart.
    fn wants_wide_heads(&self) -> bool {
        let (mut narrow_alike, mut wide_alike) = (0, 0);
        for pair in self.heads.windows(2) {
            narrow_alike += usize::from(pair[0] >> 32 == pair[1] >> 32);
            wide_alike += usize::from(pair[0] == pair[1]);
        }
        narrow_alike > self.len() / 16 && wide_alike < narrow_alike / 2
    }

    /// Notes the key that was just appended at `start` of the keys.
    #[inline]
    fn note_key(&mut self, start: usize) {
        let end = self.keys.len();
        match self.last_key() {
            None => {
                self.prefix = end - start;
                self.fixed_keys = true;
            }
            Some(last) => {
                assert!(*last < self.keys[start..], "keys pushed out of order");
                self.fixed_keys &= self.key_ends[0] as usize == end - start;
                self.shrink_prefix(start);
            }
        }
        self.key_ends.push(end as u32);
    }

    /// Cuts the common prefix to what the newest key, at `start`, shares with it.
    #[inline]
    fn shrink_prefix(&mut self, start: usize) {
        let (common, newest) = (&self.keys[..self.prefix], &self.keys[start..]);
        if !newest.starts_with(common) {
            self.prefix = shared_bytes(common, newest);
        }
    }

    /// Notes the value that was just appended; `start` is where, with [`BLOB_BIT`].
    #[inline]
    fn note_value(&mut self, start: u32) {
        self.value_starts.push(start);
        if self.value_starts.len() == 1 {
            self.fixed_values = start & BLOB_BIT == 0;
        } else if self.fixed_values {
            self.fixed_values = self.values.len() - start as usize == self.first_value_bytes();
        }
    }

    fn first_value_bytes(&self) -> usize {
        self.value_starts.get(1).map_or(self.values.len(), |start| (start & !BLOB_BIT) as usize)
    }
}

/// Copies `range` of `from` to `at`. What lies behind it in `to` may change, and is still to be written: most keys are
/// short, and a copy of a fixed length is two instructions where one of a variable length is a call.
#[inline]
fn copy_short(to: &mut [u8], at: usize, from: &[u8], range: Range<usize>) {
    const SHORT: usize = 16;
    if range.len() <= SHORT {
        if let (Some(to), Some(from)) =
            (to.get_mut(at..at + SHORT), from.get(range.start..range.start + SHORT))
        {
            to.copy_from_slice(from);
            return;
        }
    }
    to[at..at + range.len()].copy_from_slice(&from[range]);
}

/// Writes `items` one after the other.
#[inline]
fn put_all<const N: usize>(to: &mut [u8], items: impl Iterator<Item = [u8; N]>) {
    to.chunks_exact_mut(N).zip(items).for_each(|(place, item)| place.copy_from_slice(&item));
}
