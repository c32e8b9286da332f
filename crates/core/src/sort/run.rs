//! Runs of entries: in memory, and in the spill file.
//!
//! ```text
//! chunk: per entry  key length u32 | value length u32 | key | value
//! ```
//! Little-endian; compressed one by one. The file never outlives the process, so the format has no version.

use crate::arrays::prefetch;
use crate::cache::{Cache, Charge, Purpose};
use crate::slabs::Buffer;
use crate::store::{SpillExtent, SpillFile};
use crate::tree::block::{shared_bytes, wide_head};
use crate::{Error, Result};
use std::sync::Arc;

/// A chunk is written when it has grown past this.
const CHUNK_BYTES: usize = 128 << 10;
/// A run in memory is charged in steps of so many bytes.
const CHARGE_BYTES: usize = 256 << 10;
/// Entries of a run in memory lie in the order in which they came: who reads them in that of their keys would wait for
/// each, and has the one that comes after so many fetched.
const FETCHED_AHEAD: usize = 8;
/// Offsets in a run are 32 bits.
const MOST_RUN_BYTES: usize = u32::MAX as usize;

/// A key's first bytes, as a number that sorts like them: most comparisons end there, also of keys that begin with a
/// number that many share.
pub(super) fn head(key: &[u8]) -> u128 {
    u128::from(wide_head(key)) << 64 | u128::from(wide_head(key.get(8..).unwrap_or_default()))
}

/// The beginning that all of these have.
pub(super) fn shared_by_all<'a>(mut prefixes: impl Iterator<Item = &'a [u8]>) -> &'a [u8] {
    let first = prefixes.next().unwrap_or_default();
    prefixes.fold(first, |shared, prefix| &shared[..shared_bytes(shared, prefix)])
}

#[derive(Clone, Copy)]
struct Item {
    /// Of the key without what all keys of the run share; there once it is sorted.
    head: u128,
    start: u32,
    key_bytes: u32,
    value_bytes: u32,
}

/// Entries in memory.
#[derive(Default)]
pub(super) struct MemoryRun {
    items: Vec<Item>,
    bytes: Vec<u8>,
    /// Bytes that all keys begin with: texts and numbers often begin alike, and would have the same heads.
    shared: usize,
    /// What was charged for it, also for others that had its memory before.
    charge: Option<Charge>,
}

impl MemoryRun {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Bytes of memory with one more entry; more than there can be if it does not fit.
    pub fn memory_with(&self, key: &[u8], value: &[u8]) -> usize {
        let more = key.len() + value.len();
        if self.bytes.len() + more > MOST_RUN_BYTES {
            return usize::MAX;
        }
        self.memory() + more + std::mem::size_of::<Item>()
    }

    /// Bytes that its entries take.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.items.len() * std::mem::size_of::<Item>()
    }

    /// Charges what it takes, in steps; whether there was one.
    pub fn charge(&mut self, cache: &Arc<Cache>) -> bool {
        let memory = self.memory();
        if memory < self.charge.as_ref().map_or(0, Charge::bytes) + CHARGE_BYTES {
            return false;
        }
        match &mut self.charge {
            Some(charge) => charge.change(memory),
            none => *none = Some(Charge::new(cache, Purpose::Sorting, memory)),
        }
        true
    }

    /// The beginning of all its keys.
    pub fn shared(&self) -> &[u8] {
        self.items.first().map_or(&[], |first| &self.bytes[first.start as usize..][..self.shared])
    }

    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        if self.items.is_empty() {
            self.shared = key.len();
        } else if !key.starts_with(self.shared()) {
            self.shared = shared_bytes(self.shared(), key);
        }
        self.items.push(Item {
            head: 0,
            start: self.bytes.len() as u32,
            key_bytes: key.len() as u32,
            value_bytes: value.len() as u32,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    pub fn sort(&mut self) {
        let (bytes, shared) = (&self.bytes, self.shared);
        let key = |item: &Item| &bytes[item.start as usize..][..item.key_bytes as usize];
        self.items.iter_mut().for_each(|item| item.head = head(&key(item)[shared..]));
        self.items.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b))));
        debug_assert!(
            self.items.windows(2).all(|pair| key(&pair[0]) <= key(&pair[1])),
            "heads do not sort like their keys"
        );
    }

    pub fn entry(&self, i: usize) -> (&[u8], &[u8]) {
        let item = &self.items[i];
        let (key, rest) = self.bytes[item.start as usize..].split_at(item.key_bytes as usize);
        (key, &rest[..item.value_bytes as usize])
    }

    /// Has the processor fetch what entry `i` begins with, if there is one.
    fn fetch(&self, i: usize) {
        if let Some(item) = self.items.get(i) {
            prefetch(&self.bytes[item.start as usize..]);
        }
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.items.clear();
        self.bytes.clear();
    }
}

/// A sorted run in the spill file.
pub(super) struct SpilledRun {
    chunks: std::vec::IntoIter<SpillExtent>,
    shared: Vec<u8>,
}

impl SpilledRun {
    /// The beginning of all its keys.
    pub fn shared(&self) -> &[u8] {
        &self.shared
    }
}

/// Writes a run.
pub(super) struct RunWriter<'a> {
    spill: &'a Arc<SpillFile>,
    chunk: Vec<u8>,
    chunks: Vec<SpillExtent>,
    shared: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    /// For keys that all begin with `shared`.
    pub fn new(spill: &'a Arc<SpillFile>, shared: &[u8]) -> RunWriter<'a> {
        RunWriter { spill, chunk: Vec::new(), chunks: Vec::new(), shared: shared.to_vec() }
    }

    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        debug_assert!(key.starts_with(&self.shared), "a key that does not begin as all of the run do");
        self.chunk.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.chunk.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.chunk.extend_from_slice(key);
        self.chunk.extend_from_slice(value);
        if self.chunk.len() >= CHUNK_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.chunks.push(self.spill.write_compressed(&self.chunk)?);
        self.chunk.clear();
        Ok(())
    }

    pub fn finish(mut self) -> Result<SpilledRun> {
        if !self.chunk.is_empty() {
            self.write()?;
        }
        Ok(SpilledRun { chunks: self.chunks.into_iter(), shared: self.shared })
    }
}

/// Reads a run from its first entry to its last.
pub(super) enum RunReader {
    Memory { run: MemoryRun, next: usize },
    Spilled { run: SpilledRun, chunk: Buffer, key: std::ops::Range<usize>, value: std::ops::Range<usize> },
}

impl RunReader {
    pub fn memory(run: MemoryRun) -> RunReader {
        RunReader::Memory { run, next: 0 }
    }

    pub fn spilled(run: SpilledRun) -> RunReader {
        RunReader::Spilled { run, chunk: Buffer::must(0), key: 0..0, value: 0..0 }
    }

    /// Goes to the next entry; `false` at the end.
    pub fn advance(&mut self) -> Result<bool> {
        match self {
            RunReader::Memory { run, next } => {
                *next += 1;
                run.fetch(*next + FETCHED_AHEAD);
                Ok(*next <= run.len())
            }
            RunReader::Spilled { run, chunk, key, value } => {
                let mut at = value.end;
                if at >= chunk.len() {
                    // Its space in the file is free again when it has been read.
                    let Some(extent) = run.chunks.next() else { return Ok(false) };
                    *chunk = extent.read()?;
                    at = 0;
                }
                let damaged = || Error::corrupt("temporary file", 0, "a sorted run that does not decode");
                let number = |at: usize| {
                    let bytes = chunk.get(at..at + 4)?.try_into().ok()?;
                    Some(u32::from_le_bytes(bytes) as usize)
                };
                let (Some(key_bytes), Some(value_bytes)) = (number(at), number(at + 4)) else {
                    return Err(damaged());
                };
                *key = at + 8..at + 8 + key_bytes;
                *value = key.end..key.end + value_bytes;
                if value.end > chunk.len() {
                    return Err(damaged());
                }
                Ok(true)
            }
        }
    }

    /// The current entry.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        match self {
            RunReader::Memory { run, next } => run.entry(*next - 1),
            RunReader::Spilled { chunk, key, value, .. } => (&chunk[key.clone()], &chunk[value.clone()]),
        }
    }
}
