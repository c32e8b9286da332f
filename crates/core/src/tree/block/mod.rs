//! Base blocks: sorted, immutable runs of keys and values. The bytes in memory are also those on disk if nothing is
//! compressed; otherwise leaves are stored by columns ([`self::columns`]).
//!
//! The same block serves leaves (value = a row, or nothing) and inner pages (value = an encoded child): this module
//! knows keys, values and blobs, not what they mean. It holds no timestamps and no uncommitted data.
//!
//! ```text
//! 0   magic  u16  "Tk"
//! 2   version u8  1
//! 3   flags   u8  bit 0: heads are 8 bytes, else 4;  bit 1: all suffixes have one length;  bit 2: all values have one length
//! 4   entries u32 = n
//! 8   prefix bytes u32 = p
//! 12  blobs   u32 = b
//! 16  bytes of all suffixes u32 = s
//! 20  bytes of all values u32 = v
//! 24  prefix           p bytes      what all keys begin with
//!     heads            n * (4|8)    first bytes of each suffix, padded with 0: as big-endian numbers they ascend
//!     suffix starts    (n+1) * u32  offsets into the suffixes, the last is s; absent with flag bit 1
//!     value starts     (n+1) * u32  offsets into the values, the last is v; absent with flag bit 2; bit 31: see below
//!     suffixes         s bytes      each key without the prefix, in ascending order
//!     values           v bytes      with bit 31 of its start set, a value is a u32 index into the blobs
//!     blobs            b * 35       extent (27 bytes, `BlockAddress`), length u64
//! ```
//!
//! Integers are little-endian. Keys and values lie apart so that a search touches only key bytes, a copy of a run of
//! values is one memcpy, and entries of fixed size (most primary and secondary keys) cost no offsets.
//!
//! Invariant: [`Block::parse`] accepts only bytes in which every offset is in bounds and keys ascend, and the builder
//! makes no others; no accessor can panic for an index below [`Block::len`], whatever the disk held.

pub mod blob;
pub(super) mod bound;
pub mod builder;
pub(super) mod columns;
mod header;
mod heads;
#[cfg(feature = "rooms")]
pub(crate) mod hostile;
pub(in crate::tree) mod packed;
mod transpose;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use self::blob::{Blob, BlobAddress, BLOB_ADDRESS_BYTES};
pub use self::header::MAX_BLOCK_BYTES;
use self::header::VERSION;
pub(super) use self::header::{Header, Layout, Run, HEADER_BYTES};
pub(in crate::tree) use self::heads::narrow_head;
pub use self::heads::wide_head;
use self::heads::{big_endian, first_at_or_after};
use crate::arrays::{prefetch, prefetch_around, whole_arrays};
use crate::slabs::Buffer;
use crate::store::{Packer, Space};
use crate::Result;

/// Set in the start of a value that is an index into the blobs.
pub(super) const BLOB_BIT: u32 = 1 << 31;

/// So many entries are looked at one by one before a search.
const NEAR: usize = 4;
/// Among so many entries a search compares keys at once, and does not go by their heads.
const SHORT: usize = 64;

/// The value of an entry.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// Bytes inside the block.
    Inline(&'a [u8]),
    /// A large value beside the block.
    Blob(&'a Arc<Blob>),
}

/// The items of a section, for those who find them by themselves.
#[derive(Debug, Clone, Copy)]
pub struct Items<'a> {
    /// All, one after the other.
    pub bytes: &'a [u8],
    /// The length of each, if it is one.
    pub length: usize,
    /// Otherwise where each begins and the last ends: u32, little-endian, not aligned; with bit 31 it is a blob's.
    pub starts: Option<&'a [u8]>,
}

/// An immutable sorted run of entries. In the order of its fields what a search needs comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Block {
    bytes: Buffer,
    /// Of the prefix the [`wide_head`], and which bits of it count: what nearly all keys are told by, without a look at
    /// the bytes, where the prefix is in a cache line that nothing else is looked for in.
    prefix_head: u64,
    prefix_mask: u64,
    layout: Layout,
    wide_heads: bool,
    entries: u32,
    number: BlockNumber,
    blobs: Box<[Arc<Blob>]>,
}

/// Tells a block in memory from all others that there are or were: to know it again takes no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockNumber(NonZeroU64);

impl BlockNumber {
    fn next() -> BlockNumber {
        // Some microseconds of work are in each block: all threads may share it.
        static LAST: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only that no two are the same matters.
        BlockNumber(NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed)))
    }
}

/// The addresses of the large values of the block with these bytes, in the order of its rows; nothing else of it is
/// looked at. In memory and by columns a block ends with them.
pub fn large_values(bytes: &[u8]) -> Result<Vec<BlobAddress>, String> {
    let (header, _) = Header::decode(bytes)?;
    let (count, room) = (header.blobs as usize, bytes.len() - HEADER_BYTES);
    if count > room / BLOB_ADDRESS_BYTES {
        return Err(format!("{count} large values in a block of {} bytes", bytes.len()));
    }
    bytes[bytes.len() - count * BLOB_ADDRESS_BYTES..]
        .chunks_exact(BLOB_ADDRESS_BYTES)
        .map(BlobAddress::decode)
        .collect()
}

impl Block {
    /// Checks every offset, length and the order of the keys once, in one pass over the keys. `blobs` gives the blob at
    /// an address (already known, or adopted). The error says which check failed; the caller knows file and offset.
    pub fn parse(
        bytes: impl Into<Buffer>,
        blobs: &dyn Fn(BlobAddress) -> Arc<Blob>,
    ) -> Result<Block, String> {
        let mut block = Block::frame(bytes.into())?;
        let addresses = block.bytes[block.layout.blobs..].chunks_exact(BLOB_ADDRESS_BYTES);
        let blobs = addresses.map(|row| Ok(blobs(BlobAddress::decode(row)?)));
        block.blobs = blobs.collect::<Result<_, String>>()?;
        block.check()?;
        Ok(block)
    }

    /// Takes back what [`Block::bytes`] gave, with the blobs that the block had: for blocks that were spilled while
    /// their blobs stayed where they were.
    pub fn parse_spilled(bytes: impl Into<Buffer>, blobs: Box<[Arc<Blob>]>) -> Result<Block, String> {
        let mut block = Block::frame(bytes.into())?;
        let expected = (block.layout.end - block.layout.blobs) / BLOB_ADDRESS_BYTES;
        if expected != blobs.len() {
            return Err(format!("a block of {expected} blobs spilled with {}", blobs.len()));
        }
        block.blobs = blobs;
        block.check()?;
        Ok(block)
    }

    fn frame(bytes: Buffer) -> Result<Block, String> {
        let (header, version) = Header::decode(&bytes)?;
        let bytes = if version == VERSION { bytes } else { columns::unpack(&bytes, &header, version)? };
        let layout = header.layout()?;
        if layout.end != bytes.len() {
            return Err(format!("a block of {} bytes whose header implies {}", bytes.len(), layout.end));
        }
        Ok(Block::of(bytes, Box::default(), &header, layout))
    }

    fn of(bytes: Buffer, blobs: Box<[Arc<Blob>]>, header: &Header, layout: Layout) -> Block {
        let prefix_mask = match layout.heads - HEADER_BYTES {
            0 => 0,
            length => u64::MAX << (64 - 8 * length.min(8)),
        };
        let prefix_head = wide_head(&bytes[HEADER_BYTES..layout.heads]);
        let Header { wide_heads, entries, .. } = *header;
        let number = BlockNumber::next();
        Block { bytes, prefix_head, prefix_mask, layout, wide_heads, entries, number, blobs }
    }

    /// The builder's way in: it wrote `bytes` by `header` and upholds what [`Block::parse`] checks.
    pub(super) fn assemble(bytes: Buffer, blobs: Box<[Arc<Blob>]>, header: &Header, layout: Layout) -> Block {
        debug_assert_eq!(bytes.len(), layout.end);
        let block = Block::of(bytes, blobs, header, layout);
        debug_assert_eq!(block.check(), Ok(()));
        block
    }

    /// What its bytes begin with.
    pub(super) fn header(&self) -> Header {
        let fixed = |run| matches!(run, Run::Fixed(_));
        Header {
            wide_heads: self.wide_heads,
            fixed_suffix: fixed(self.layout.suffix_run),
            fixed_value: fixed(self.layout.value_run),
            entries: self.entries,
            prefix_bytes: self.prefix().len() as u32,
            blobs: self.blobs.len() as u32,
            suffix_bytes: self.suffix_bytes().len() as u32,
            value_bytes: self.value_bytes().len() as u32,
        }
    }

    /// A block without entries.
    pub fn empty() -> Block {
        self::builder::BlockBuilder::new().finish()
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries as usize
    }

    /// Which block it is.
    pub fn number(&self) -> BlockNumber {
        self.number
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of memory that this block holds, with the objects of its large values. The values account for themselves
    /// (other blocks may share them).
    pub fn memory(&self) -> usize {
        std::mem::size_of::<Block>()
            + self.bytes.capacity()
            + self.blobs.len() * (std::mem::size_of::<Arc<Blob>>() + Blob::OBJECT_BYTES)
    }

    /// The bytes as they are. Rows of blobs that were not stored when the block was built are zero: for the disk, use
    /// [`Block::image`]; for spilling, keep [`Block::blobs`] and take it back with [`Block::parse_spilled`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as they may be written into `space`, after storing the blobs there. Whoever publishes the block's
    /// extent publishes [`Block::blobs`] too.
    pub fn image(&self, space: &Arc<Space>, packer: impl Into<Packer>) -> Result<Cow<'_, [u8]>> {
        if self.blobs.is_empty() {
            return Ok(Cow::Borrowed(&self.bytes));
        }
        let packer = packer.into();
        let mut image = self.bytes.to_vec();
        for (row, blob) in image[self.layout.blobs..].chunks_exact_mut(BLOB_ADDRESS_BYTES).zip(&self.blobs) {
            row.copy_from_slice(&blob.store(space, packer.clone())?.encode());
        }
        Ok(Cow::Owned(image))
    }

    /// The large values of this block, in the order of their entries.
    pub fn blobs(&self) -> &[Arc<Blob>] {
        &self.blobs
    }

    /// What all keys begin with.
    #[inline]
    pub fn prefix(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..self.layout.heads]
    }

    /// The key of entry `i` without the prefix.
    #[inline]
    pub fn suffix(&self, i: usize) -> &[u8] {
        if let Run::Fixed(length) = self.layout.suffix_run {
            let start = self.layout.near_suffixes + i * self.layout.suffix_stride;
            return &self.bytes[start..start + length];
        }
        self.stored_suffix(i)
    }

    /// The same, as it stands among the suffixes.
    #[inline]
    fn stored_suffix(&self, i: usize) -> &[u8] {
        let (start, end) = self.suffix_span(i);
        &self.bytes[self.layout.suffixes + start..self.layout.suffixes + end]
    }

    /// Replaces `out` by the key of entry `i`.
    #[inline]
    pub fn key_into(&self, i: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(self.suffix(i));
    }

    /// The value of entry `i`.
    #[inline]
    pub fn value(&self, i: usize) -> Value<'_> {
        let (start, end) = self.value_span(i);
        if start & BLOB_BIT as usize == 0 {
            return Value::Inline(&self.bytes[self.layout.values + start..self.layout.values + end]);
        }
        let index = read_u32(&self.bytes, self.layout.values + (start & !(BLOB_BIT as usize)));
        Value::Blob(&self.blobs[index as usize])
    }

    /// Has the processor fetch what the value of entry `i` begins with, for whoever reads it soon.
    #[inline]
    pub fn fetch_value(&self, i: usize) {
        let (start, end) = self.value_span(i);
        if start & BLOB_BIT as usize == 0 {
            prefetch(&self.bytes[self.layout.values + start..self.layout.values + end]);
        }
    }

    /// Has the processor fetch what is looked at next if a search ends at entry `i`, or near it: so it does not wait
    /// for one cache miss after the other.
    #[inline]
    fn fetch_near(&self, i: usize) {
        let layout = &self.layout;
        let width = if self.wide_heads { 8 } else { 4 };
        prefetch_around(&self.bytes, layout.heads + i * width);
        match layout.suffix_run {
            Run::Fixed(_) if layout.near_suffixes == layout.heads => {}
            Run::Fixed(length) => prefetch(&self.bytes[layout.suffixes + i * length..][..length]),
            Run::Starts(at) => prefetch(&self.bytes[at + 4 * i..][..1]),
        }
        match layout.value_run {
            Run::Fixed(length) => prefetch(&self.bytes[layout.values + i * length..][..length]),
            Run::Starts(at) => prefetch(&self.bytes[at + 4 * i..][..1]),
        }
    }

    /// What follows the prefix in `key`; if it does not begin with that, how it compares with all keys that do.
    #[inline]
    fn strip_prefix<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], Ordering> {
        let length = self.layout.heads - HEADER_BYTES;
        if length <= 8 && key.len() >= length && wide_head(key) & self.prefix_mask == self.prefix_head {
            return Ok(&key[length..]);
        }
        key.strip_prefix(self.prefix()).ok_or_else(|| key.cmp(self.prefix()))
    }

    /// Compares the key of entry `i` with `key`.
    #[inline]
    pub fn compare(&self, i: usize, key: &[u8]) -> Ordering {
        match self.strip_prefix(key) {
            Ok(rest) => self.suffix(i).cmp(rest),
            Err(order_of_key) => order_of_key.reverse(),
        }
    }

    /// The index of `key`, or where it would be inserted.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        match self.strip_prefix(key) {
            Ok(rest) if self.wide_heads => {
                self.search_heads(self.heads::<8>(), wide_head(rest).to_be_bytes(), rest)
            }
            Ok(rest) => self.search_heads(self.heads::<4>(), narrow_head(rest).to_be_bytes(), rest),
            Err(Ordering::Less) => Err(0),
            Err(_) => Err(self.len()),
        }
    }

    /// [`Block::search`] for a key before which all entries before `from` are: for keys in ascending order, many of
    /// which are those of neighbours.
    #[inline]
    pub fn search_from(&self, from: usize, key: &[u8]) -> Result<usize, usize> {
        for i in from..self.len().min(from + NEAR) {
            match self.compare(i, key) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(i),
                Ordering::Greater => return Err(i),
            }
        }
        match from + NEAR < self.len() {
            true => self.search(key),
            false => Err(self.len()),
        }
    }

    /// [`Block::search`] for a key behind which all entries from `to` on are: for keys in descending order.
    #[inline]
    pub fn search_before(&self, to: usize, key: &[u8]) -> Result<usize, usize> {
        for i in (to.saturating_sub(NEAR)..to).rev() {
            match self.compare(i, key) {
                Ordering::Less => return Err(i + 1),
                Ordering::Equal => return Ok(i),
                Ordering::Greater => {}
            }
        }
        match to > NEAR {
            true => self.search(key),
            false => Err(0),
        }
    }

    /// [`Block::search`] for a key that is behind all entries before `within`, and before all behind it.
    pub fn search_within(&self, within: Range<usize>, key: &[u8]) -> Result<usize, usize> {
        if within.len() > SHORT {
            return self.search(key);
        }
        let (mut low, mut high) = (within.start, within.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare(middle, key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// The first entry at or after `key`; [`Block::len`] if there is none.
    #[inline]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|i| i)
    }

    /// The first entry after `key`; [`Block::len`] if there is none.
    #[inline]
    pub fn upper_bound(&self, key: &[u8]) -> usize {
        self.search(key).map_or_else(|i| i, |i| i + 1)
    }

    /// Heads first: they lie side by side, so most of the search stays within few cache lines; whole suffixes are
    /// compared only among those with an equal head.
    #[inline]
    fn search_heads<const W: usize>(
        &self,
        heads: &[[u8; W]],
        head: [u8; W],
        rest: &[u8],
    ) -> Result<usize, usize> {
        let first = first_at_or_after(heads, big_endian(head), |guess| self.fetch_near(guess));
        let equal = &heads[first..];
        if equal.first() != Some(&head) {
            return Err(first);
        }
        if matches!(self.layout.suffix_run, Run::Fixed(length) if length == rest.len() && length <= W) {
            // The head is the whole suffix, and of the same length.
            return Ok(first);
        }
        let count = match equal.get(1) {
            Some(next) if *next == head => equal.partition_point(|h| *h == head),
            _ => 1,
        };
        let (mut low, mut high) = (first, first + count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.suffix(middle).cmp(rest) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn heads<const W: usize>(&self) -> &[[u8; W]] {
        whole_arrays(&self.bytes[self.layout.heads..self.layout.heads_end])
    }

    /// Start and end within the suffixes.
    #[inline]
    pub(super) fn suffix_span(&self, i: usize) -> (usize, usize) {
        match self.layout.suffix_run {
            Run::Fixed(length) => (i * length, (i + 1) * length),
            Run::Starts(at) => {
                (read_u32(&self.bytes, at + 4 * i) as usize, read_u32(&self.bytes, at + 4 * i + 4) as usize)
            }
        }
    }

    /// Start (with [`BLOB_BIT`]) and end (without) within the values.
    #[inline]
    pub(super) fn value_span(&self, i: usize) -> (usize, usize) {
        match self.layout.value_run {
            Run::Fixed(length) => (i * length, (i + 1) * length),
            Run::Starts(at) => {
                let (start, end) = (read_u32(&self.bytes, at + 4 * i), read_u32(&self.bytes, at + 4 * i + 4));
                (start as usize, (end & !BLOB_BIT) as usize)
            }
        }
    }

    /// What follows the prefix in the keys.
    pub(super) fn suffixes(&self) -> Items<'_> {
        self.items(self.layout.suffix_run, self.suffix_bytes())
    }

    /// The values, or which blobs they are.
    pub(super) fn values(&self) -> Items<'_> {
        self.items(self.layout.value_run, self.value_bytes())
    }

    fn items<'a>(&'a self, run: Run, bytes: &'a [u8]) -> Items<'a> {
        match run {
            Run::Fixed(length) => Items { bytes, length, starts: None },
            Run::Starts(at) => {
                Items { bytes, length: 0, starts: Some(&self.bytes[at..at + 4 * self.len() + 4]) }
            }
        }
    }

    /// All suffixes, one after the other.
    pub(super) fn suffix_bytes(&self) -> &[u8] {
        &self.bytes[self.layout.suffixes..self.layout.values]
    }

    /// All values, one after the other.
    pub(super) fn value_bytes(&self) -> &[u8] {
        &self.bytes[self.layout.values..self.layout.blobs]
    }

    /// Everything that the accessors rely on and the header does not tell.
    fn check(&self) -> Result<(), String> {
        let suffix_bytes = self.layout.values - self.layout.suffixes;
        let value_bytes = self.layout.blobs - self.layout.values;
        self.check_starts(self.layout.suffix_run, suffix_bytes, "suffix", 0)?;
        self.check_starts(self.layout.value_run, value_bytes, "value", BLOB_BIT)?;
        if let Run::Starts(_) = self.layout.value_run {
            self.check_blob_values()?;
        } else if !self.blobs.is_empty() {
            return Err("blobs without a value that names them".into());
        }
        match self.wide_heads {
            true => self.check_keys(self.heads::<8>(), |suffix| wide_head(suffix).to_be_bytes()),
            false => self.check_keys(self.heads::<4>(), |suffix| narrow_head(suffix).to_be_bytes()),
        }
    }

    fn check_starts(&self, run: Run, bytes: usize, what: &str, flags: u32) -> Result<(), String> {
        let Run::Starts(at) = run else { return Ok(()) };
        let mut previous = 0;
        for i in 0..=self.len() {
            let start = read_u32(&self.bytes, at + 4 * i) & !flags;
            if start < previous || (i == 0 && start != 0) {
                return Err(format!("{what} {i} starts at {start}, the one before at {previous}"));
            }
            previous = start;
        }
        let last = read_u32(&self.bytes, at + 4 * self.len());
        if last as usize != bytes {
            return Err(format!("{what}s end at {last} of {bytes}"));
        }
        Ok(())
    }

    fn check_blob_values(&self) -> Result<(), String> {
        let mut next = 0;
        for i in 0..self.len() {
            let (start, end) = self.value_span(i);
            if start & BLOB_BIT as usize == 0 {
                continue;
            }
            let start = start & !(BLOB_BIT as usize);
            if end - start != 4 || read_u32(&self.bytes, self.layout.values + start) as usize != next {
                return Err(format!("value {i} does not name blob {next}"));
            }
            next += 1;
        }
        if next != self.blobs.len() {
            return Err(format!("{next} values name {} blobs", self.blobs.len()));
        }
        Ok(())
    }

    fn check_keys<const W: usize>(
        &self,
        heads: &[[u8; W]],
        head_of: fn(&[u8]) -> [u8; W],
    ) -> Result<(), String> {
        for (i, head) in heads.iter().enumerate() {
            let suffix = self.stored_suffix(i);
            if head_of(suffix) != *head {
                return Err(format!("head {i} is not that of its key"));
            }
            if i > 0
                && (heads[i - 1] > *head || (heads[i - 1] == *head && self.stored_suffix(i - 1) >= suffix))
            {
                return Err(format!("key {i} does not follow key {}", i - 1));
            }
        }
        Ok(())
    }
}

/// How many bytes at their beginnings are the same.
pub(crate) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[inline]
pub(super) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

#[cfg(test)]
mod tests;
