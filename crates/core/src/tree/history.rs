//! Versions of a leaf that only old snapshots still need.
//!
//! An entry says what a key's value was during [begin, end) of commit timestamps. Consolidation puts here what an active
//! snapshot can still see and drops what none can; readers look only if their snapshot is older than the view's horizon.

use super::blob::Blob;
use super::block::Value;
use crate::mvcc::ActiveSnapshots;
use crate::types::Timestamp;
use std::sync::Arc;

/// What a key was.
#[derive(Debug, Clone)]
pub(crate) enum Past {
    /// It did not exist.
    Absent,
    /// It had this value.
    Inline(Box<[u8]>),
    /// It had this large value.
    Blob(Arc<Blob>),
}

impl Past {
    pub(crate) fn of(value: Option<Value<'_>>) -> Past {
        match value {
            None => Past::Absent,
            Some(Value::Inline(bytes)) => Past::Inline(bytes.into()),
            Some(Value::Blob(blob)) => Past::Blob(blob.clone()),
        }
    }

    pub(crate) fn value(&self) -> Option<Value<'_>> {
        match self {
            Past::Absent => None,
            Past::Inline(bytes) => Some(Value::Inline(bytes)),
            Past::Blob(blob) => Some(Value::Blob(blob)),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Past::Absent => 0,
            Past::Inline(bytes) => bytes.len(),
            Past::Blob(blob) => blob.memory(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct HistoryEntry {
    pub key: Box<[u8]>,
    pub begin: Timestamp,
    pub end: Timestamp,
    pub past: Past,
}

/// Sorted by key, then by time.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<HistoryEntry>,
    memory: usize,
}

impl History {
    /// From entries in any order.
    pub(crate) fn from_entries(mut entries: Vec<HistoryEntry>) -> Option<Arc<History>> {
        if entries.is_empty() {
            return None;
        }
        entries.sort_by(|a, b| a.key.cmp(&b.key).then(a.begin.cmp(&b.begin)));
        entries.shrink_to_fit();
        let memory =
            entries.iter().map(|e| std::mem::size_of::<HistoryEntry>() + e.key.len() + e.past.memory()).sum();
        Some(Arc::new(History { entries, memory }))
    }

    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    pub(crate) fn entries(&self) -> &[HistoryEntry] {
        &self.entries
    }

    /// All entries of one key, oldest first.
    pub(crate) fn of_key(&self, key: &[u8]) -> &[HistoryEntry] {
        let from = self.entries.partition_point(|e| &*e.key < key);
        let count = self.entries[from..].partition_point(|e| &*e.key == key);
        &self.entries[from..from + count]
    }

    /// What `key` was for `snapshot`, if that differs from what the base says.
    pub(crate) fn find(&self, key: &[u8], snapshot: Timestamp) -> Option<&Past> {
        self.of_key(key).iter().find(|e| e.begin <= snapshot && snapshot < e.end).map(|e| &e.past)
    }

    /// Since when the base's value of `key` has been current, as far as anybody can still ask.
    pub(crate) fn current_since(&self, key: &[u8]) -> Timestamp {
        self.of_key(key).last().map_or(0, |e| e.end)
    }

    /// The entries that an active snapshot can still see.
    pub(crate) fn needed<'a>(
        &'a self,
        active: &'a ActiveSnapshots,
    ) -> impl Iterator<Item = HistoryEntry> + 'a {
        self.entries.iter().filter(|e| active.needs(e.begin, e.end)).cloned()
    }
}
