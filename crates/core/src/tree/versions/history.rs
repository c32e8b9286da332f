//! Versions of a leaf that only old snapshots still need.
//!
//! An entry says what a key's value was during [begin, end) of commit timestamps. Consolidation puts here what an
//! active snapshot can still see and drops what none can; readers look only if their snapshot is older than the view's
//! horizon.
//!
//! Keys and values lie one after another in one buffer: a leaf's history is two allocations, however many entries it
//! has.

use super::past::Shares;
use crate::mvcc::ActiveSnapshots;
use crate::tree::block::blob::Blob;
use crate::tree::block::Value;
use crate::types::Timestamp;
use std::sync::Arc;

/// What a key was during an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryEntry<'a> {
    pub key: &'a [u8],
    pub begin: Timestamp,
    pub end: Timestamp,
    /// `None`: it did not exist.
    pub past: Option<Value<'a>>,
}

impl HistoryEntry<'_> {
    /// Bytes that are kept for it, in memory or on disk.
    pub(crate) fn kept_bytes(&self) -> usize {
        let value = match self.past {
            Some(Value::Inline(bytes)) => bytes.len(),
            Some(Value::Blob(blob)) => BLOB_INDEX_BYTES + blob.len() as usize,
            None => 0,
        };
        std::mem::size_of::<Slot>() + self.key.len() + value
    }
}

/// In place of a value's length: the key did not exist.
const ABSENT: u32 = u32::MAX;
/// In place of a value's length: the value is a blob, whose index is in the bytes.
const BLOB: u32 = u32::MAX - 1;
const BLOB_INDEX_BYTES: usize = 4;

/// Where an entry lies: the key at `start`, the value behind it.
#[derive(Debug, Clone, Copy)]
struct Slot {
    begin: Timestamp,
    end: Timestamp,
    start: usize,
    key_bytes: u32,
    value: u32,
}

/// Sorted by key, then by time.
#[derive(Debug)]
pub(crate) struct History {
    slots: Box<[Slot]>,
    bytes: Box<[u8]>,
    blobs: Vec<Arc<Blob>>,
    memory: usize,
    shares: Shares,
}

/// By key, then by time.
pub(crate) fn sort(entries: &mut [HistoryEntry<'_>]) {
    entries.sort_unstable_by(|a, b| a.key.cmp(b.key).then(a.begin.cmp(&b.begin)));
}

impl History {
    /// From sorted entries, which are kept for `shares`.
    pub(crate) fn from_sorted(entries: &[HistoryEntry<'_>], shares: Shares) -> Option<Arc<History>> {
        if entries.is_empty() {
            return None;
        }
        let value_bytes = |past: &Option<Value<'_>>| match past {
            Some(Value::Inline(bytes)) => bytes.len(),
            Some(Value::Blob(_)) => BLOB_INDEX_BYTES,
            None => 0,
        };
        let total = entries.iter().map(|e| e.key.len() + value_bytes(&e.past)).sum();
        let mut bytes = Vec::with_capacity(total);
        let mut slots = Vec::with_capacity(entries.len());
        let mut blobs: Vec<Arc<Blob>> = Vec::new();
        for entry in entries {
            let start = bytes.len();
            bytes.extend_from_slice(entry.key);
            let value = match entry.past {
                None => ABSENT,
                Some(Value::Inline(value)) => {
                    bytes.extend_from_slice(value);
                    value.len() as u32
                }
                Some(Value::Blob(blob)) => {
                    bytes.extend_from_slice(&(blobs.len() as u32).to_le_bytes());
                    blobs.push(blob.clone());
                    BLOB
                }
            };
            let key_bytes = entry.key.len() as u32;
            slots.push(Slot { begin: entry.begin, end: entry.end, start, key_bytes, value });
        }
        let memory = std::mem::size_of::<History>() + bytes.len() + std::mem::size_of_val(&slots[..]);
        Some(Arc::new(History { slots: slots.into(), bytes: bytes.into(), blobs, memory, shares }))
    }

    /// For whom it is kept.
    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Large values, in no order to rely on.
    pub(crate) fn blobs(&self) -> &[Arc<Blob>] {
        &self.blobs
    }

    /// Bytes of memory; blobs account for themselves.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The entry at `at`, which is below [`History::len`].
    pub(crate) fn entry(&self, at: usize) -> HistoryEntry<'_> {
        let slot = &self.slots[at];
        let (key, rest) = self.bytes[slot.start..].split_at(slot.key_bytes as usize);
        let past = match slot.value {
            ABSENT => None,
            BLOB => {
                let mut index = [0; BLOB_INDEX_BYTES];
                index.copy_from_slice(&rest[..BLOB_INDEX_BYTES]);
                Some(Value::Blob(&self.blobs[u32::from_le_bytes(index) as usize]))
            }
            length => Some(Value::Inline(&rest[..length as usize])),
        };
        HistoryEntry { key, begin: slot.begin, end: slot.end, past }
    }

    /// All entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = HistoryEntry<'_>> {
        (0..self.len()).map(|at| self.entry(at))
    }

    fn key(&self, slot: &Slot) -> &[u8] {
        &self.bytes[slot.start..slot.start + slot.key_bytes as usize]
    }

    /// Where the entries of one key lie, oldest first.
    fn of_key(&self, key: &[u8]) -> std::ops::Range<usize> {
        let from = self.slots.partition_point(|slot| self.key(slot) < key);
        let count = self.slots[from..].partition_point(|slot| self.key(slot) == key);
        from..from + count
    }

    /// The entry that says what `key` was for `snapshot`, if that differs from what the base says.
    pub(crate) fn find(&self, key: &[u8], snapshot: Timestamp) -> Option<usize> {
        self.of_key(key).find(|&at| self.slots[at].begin <= snapshot && snapshot < self.slots[at].end)
    }

    /// Since when the base's value of `key` has been current, as far as anybody can still ask.
    pub(crate) fn current_since(&self, key: &[u8]) -> Timestamp {
        self.slots[self.of_key(key)].last().map_or(0, |slot| slot.end)
    }

    /// The entries that an active snapshot can still see.
    pub(crate) fn needed<'a>(
        &'a self,
        active: &'a ActiveSnapshots,
    ) -> impl Iterator<Item = HistoryEntry<'a>> + 'a {
        self.entries().filter(|entry| active.needs(entry.begin, entry.end))
    }
}
