//! Deltas and histories in the spill file: how uncommitted changes larger than the cache, and what only old snapshots
//! need, get out of memory.
//!
//! ```text
//! history: entries u32, then per entry:  key length u32 | key | begin u64 | end u64
//!     | kind u8 (0 value, 1 blob, 2 absent) | length or blob index u32 | bytes
//! delta:   keys u32, then per key:  key length u32 | key | versions u32, oldest first:
//!     status index u32 | sequence u32 | kind u8 (0 put, 1 blob, 2 delete) | length or blob index u32 | bytes
//! ```
//! Blobs (without their bytes) stay in memory, named by index, and so do the statuses of transactions that are not
//! decided. Of one that has committed nothing stays: in place of an index is u32::MAX, and a timestamp u64 behind it.
//! The file never outlives the process, so the format has no version.
//!
//! What is below a delta that was evicted may be in the file of the tree: the patch of the leaf.

use super::patch::Patch;
use super::shared::Resources;
use crate::mvcc::{State, TxnStatus};
use crate::store::{Extent, SpillExtent};
use crate::tree::block::blob::Blob;
use crate::tree::block::Value;
use crate::tree::versions::delta::{Delta, Version, VersionOp};
use crate::tree::versions::history::{History, HistoryEntry};
use crate::tree::versions::past::Shares;
use crate::types::Timestamp;
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// So many runs of a delta are read one after the other; one more, and they are written as one. Between two such times
/// a version is written once, however many runs there are.
const MOST_RUNS: usize = 8;

/// In place of a status's index: a timestamp of commit follows.
const COMMITTED: u32 = u32::MAX;

/// What a delta holds, or held when it was in memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeltaSize {
    /// Of several runs: at most.
    pub keys: usize,
    pub versions: usize,
    /// Bytes.
    pub memory: usize,
}

impl DeltaSize {
    pub(crate) fn of(delta: &Delta) -> DeltaSize {
        DeltaSize { keys: delta.len(), versions: delta.versions(), memory: delta.memory() }
    }

    pub(crate) fn plus(self, other: DeltaSize) -> DeltaSize {
        DeltaSize {
            keys: self.keys + other.keys,
            versions: self.versions + other.versions,
            memory: self.memory + other.memory,
        }
    }
}

/// What an Arc adds to what it owns: two counts.
const ARC_BYTES: usize = 2 * std::mem::size_of::<usize>();

/// What stands for a patch.
const PATCH_BYTES: usize = std::mem::size_of::<Patch>() + std::mem::size_of::<Extent>() + 2 * ARC_BYTES;

/// A delta on disk, in one run or several. An eviction adds a run with what was pushed since the last one, so that who
/// pushes does not have to read what was evicted before.
pub(crate) struct SpilledDelta {
    /// Older than all runs.
    patch: Option<Arc<Patch>>,
    /// Oldest first.
    runs: Vec<Arc<DeltaRun>>,
    size: DeltaSize,
}

/// What one eviction wrote.
struct DeltaRun {
    extent: SpillExtent,
    statuses: Box<[Arc<TxnStatus>]>,
    blobs: Box<[Arc<Blob>]>,
}

impl SpilledDelta {
    /// A delta that is all in the patch of its leaf.
    pub(crate) fn of_patch(patch: Arc<Patch>) -> SpilledDelta {
        SpilledDelta { size: patch.size(), patch: Some(patch), runs: Vec::new() }
    }

    /// This one, which has no patch, on top of `patch`.
    pub(crate) fn on_top_of(&self, patch: Arc<Patch>) -> SpilledDelta {
        debug_assert!(self.patch.is_none(), "a delta on top of two patches");
        SpilledDelta { size: self.size.plus(patch.size()), patch: Some(patch), runs: self.runs.clone() }
    }

    /// The patch, if that is all.
    pub(crate) fn only_patch(&self) -> Option<&Arc<Patch>> {
        self.patch.as_ref().filter(|_| self.runs.is_empty())
    }

    pub(crate) fn patch(&self) -> Option<&Arc<Patch>> {
        self.patch.as_ref()
    }

    /// What is left without the patch.
    pub(crate) fn without_patch(&self) -> Option<SpilledDelta> {
        let rest = SpilledDelta { patch: None, runs: self.runs.clone(), size: self.size };
        (!rest.runs.is_empty()).then_some(rest)
    }

    /// Bytes of [`SpilledDelta::size`] that a checkpoint has written.
    pub(crate) fn patched_bytes(&self) -> usize {
        self.patch.as_ref().map_or(0, |patch| patch.size().memory)
    }

    /// Writes `newer`, whose versions come after those of `older`. Nobody may push to it meanwhile: the caller holds
    /// the leaf's latch.
    pub(crate) fn write(
        older: Option<&SpilledDelta>,
        newer: &Delta,
        context: &Resources,
    ) -> Result<SpilledDelta> {
        match older {
            Some(older) if older.is_full() => {
                SpilledDelta::write(None, &older.read_with(newer, context)?, context)
            }
            Some(older) => {
                let run = Arc::new(DeltaRun::write(newer, context)?);
                let runs = older.runs.iter().cloned().chain([run]).collect();
                let size = older.size.plus(DeltaSize::of(newer));
                Ok(SpilledDelta { patch: older.patch.clone(), runs, size })
            }
            None => {
                let run = Arc::new(DeltaRun::write(newer, context)?);
                Ok(SpilledDelta { patch: None, runs: vec![run], size: DeltaSize::of(newer) })
            }
        }
    }

    /// Whether it takes no other run.
    pub(crate) fn is_full(&self) -> bool {
        self.runs.len() >= MOST_RUNS
    }

    /// What it held in memory.
    pub(crate) fn size(&self) -> DeltaSize {
        self.size
    }

    /// Bytes of memory that it takes while it is on disk.
    pub(crate) fn memory(&self) -> usize {
        let list = self.runs.capacity() * std::mem::size_of::<Arc<DeltaRun>>();
        let runs: usize = self.runs.iter().map(|run| run.memory()).sum();
        let patch = self.patch.as_ref().map_or(0, |_| PATCH_BYTES);
        std::mem::size_of::<SpilledDelta>() + ARC_BYTES + list + runs + patch
    }

    /// The same delta in memory again.
    pub(crate) fn read(&self, context: &Resources) -> Result<Delta> {
        let (mut delta, mut committed) = (Delta::new(), HashMap::new());
        if let Some(patch) = &self.patch {
            patch.read_into(&mut delta)?;
        }
        for run in &self.runs {
            let bytes = run.extent.read()?;
            run.decode(&bytes, &mut committed, &mut delta).ok_or_else(|| {
                Error::corrupt(context.spill.path(), 0, "a spilled delta that does not decode")
            })?;
        }
        Ok(delta)
    }

    /// The same with `newer` on top.
    pub(crate) fn read_with(&self, newer: &Delta, context: &Resources) -> Result<Delta> {
        let mut delta = self.read(context)?;
        delta.add_newer(newer);
        Ok(delta)
    }

    /// Its large values.
    #[cfg(test)]
    pub(crate) fn blobs(&self) -> Vec<Arc<Blob>> {
        self.runs.iter().flat_map(|run| &run.blobs).cloned().collect()
    }

    /// A transaction that has written some of it, and is neither committed nor rolled back.
    pub(crate) fn undecided_by(&self) -> Option<Arc<TxnStatus>> {
        let mut statuses = self.runs.iter().flat_map(|run| &run.statuses);
        statuses.find(|status| status.state() == State::Active).cloned()
    }
}

impl DeltaRun {
    fn write(delta: &Delta, context: &Resources) -> Result<DeltaRun> {
        let mut encoder = Encoder { bytes: Vec::with_capacity(delta.memory()), ..Encoder::default() };
        encoder.number(delta.len());
        for entry in delta.iter() {
            encoder.number(entry.key().len());
            encoder.bytes.extend_from_slice(entry.key());
            let versions = oldest_first(entry.newest());
            encoder.number(versions.len());
            versions.iter().for_each(|(version, state)| encoder.version(version, *state));
        }
        let extent = context.spill.write_compressed(&encoder.bytes)?;
        Ok(DeltaRun { extent, statuses: encoder.statuses.into(), blobs: encoder.blobs.into() })
    }

    fn memory(&self) -> usize {
        std::mem::size_of::<DeltaRun>()
            + ARC_BYTES
            + (self.statuses.len() + self.blobs.len()) * std::mem::size_of::<usize>()
    }

    /// Adds its versions to those of the runs before. `committed`: statuses by their timestamps, so that a transaction
    /// with many versions has one.
    fn decode(
        &self,
        bytes: &[u8],
        committed: &mut HashMap<Timestamp, Arc<TxnStatus>>,
        delta: &mut Delta,
    ) -> Option<()> {
        let mut input = Input(bytes);
        for _ in 0..input.number()? {
            let length = input.number()?;
            let key = input.take(length)?;
            for _ in 0..input.number()? {
                let status = match input.number()? as u32 {
                    COMMITTED => {
                        let at = input.timestamp()?;
                        committed.entry(at).or_insert_with(|| TxnStatus::of_commit(at)).clone()
                    }
                    index => self.statuses.get(index as usize)?.clone(),
                };
                let sequence = input.number()? as u32;
                let op = input.op(&self.blobs)?;
                delta.add(key, status, sequence, op);
            }
        }
        Some(())
    }
}

/// A history on disk.
pub(crate) struct SpilledHistory {
    extent: Arc<SpillExtent>,
    blobs: Vec<Arc<Blob>>,
    shares: Shares,
}

impl SpilledHistory {
    pub(crate) fn write(history: &History, context: &Resources) -> Result<SpilledHistory> {
        let mut encoder = Encoder { bytes: Vec::with_capacity(history.memory()), ..Encoder::default() };
        encoder.number(history.len());
        for entry in history.entries() {
            encoder.number(entry.key.len());
            encoder.bytes.extend_from_slice(entry.key);
            encoder.bytes.extend_from_slice(&entry.begin.to_le_bytes());
            encoder.bytes.extend_from_slice(&entry.end.to_le_bytes());
            encoder.op(match entry.past {
                Some(Value::Inline(bytes)) => VersionOp::Put(bytes),
                Some(Value::Blob(blob)) => VersionOp::Blob(blob),
                None => VersionOp::Delete,
            });
        }
        let extent = Arc::new(context.spill.write_history(&encoder.bytes)?);
        Ok(SpilledHistory { extent, blobs: encoder.blobs, shares: history.shares().clone() })
    }

    /// For whom it is kept.
    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Its large values.
    #[cfg(test)]
    pub(crate) fn blobs(&self) -> &[Arc<Blob>] {
        &self.blobs
    }

    /// The same, kept for others.
    pub(crate) fn shared_as(&self, shares: Shares) -> SpilledHistory {
        SpilledHistory { extent: self.extent.clone(), blobs: self.blobs.clone(), shares }
    }

    /// The same history in memory again.
    pub(crate) fn read(&self, context: &Resources) -> Result<Option<Arc<History>>> {
        let bytes = self.extent.read()?;
        let entries = self.decode(&bytes);
        let entries = entries.ok_or_else(|| {
            Error::corrupt(context.spill.path(), 0, "a spilled history that does not decode")
        })?;
        Ok(History::from_sorted(&entries, self.shares.clone()))
    }

    fn decode<'a>(&'a self, bytes: &'a [u8]) -> Option<Vec<HistoryEntry<'a>>> {
        let mut input = Input(bytes);
        let count = input.number()?;
        let mut entries = Vec::with_capacity(count.min(bytes.len() / 25));
        for _ in 0..count {
            let length = input.number()?;
            let key = input.take(length)?;
            let (begin, end) = (input.timestamp()?, input.timestamp()?);
            let past = match input.op(&self.blobs)? {
                VersionOp::Put(bytes) => Some(Value::Inline(bytes)),
                VersionOp::Blob(blob) => Some(Value::Blob(blob)),
                VersionOp::Delete => None,
            };
            entries.push(HistoryEntry { key, begin, end, past });
        }
        Some(entries)
    }
}

/// The versions that can still matter to somebody, oldest first, with what is known of their transactions. The state
/// comes before the look whether it was rolled back: what a transaction takes back, it has taken back before it
/// commits.
fn oldest_first(newest: Option<&Version>) -> Vec<(&Version, State)> {
    let mut versions: Vec<(&Version, State)> = std::iter::successors(newest, |version| version.older())
        .map(|version| (version, version.status.state()))
        .filter(|(version, _)| !version.is_void())
        .collect();
    versions.reverse();
    versions
}

#[derive(Default)]
struct Encoder {
    bytes: Vec<u8>,
    statuses: Vec<Arc<TxnStatus>>,
    known: HashMap<*const TxnStatus, usize>,
    blobs: Vec<Arc<Blob>>,
}

impl Encoder {
    fn number(&mut self, number: usize) {
        self.bytes.extend_from_slice(&(number as u32).to_le_bytes());
    }

    fn version(&mut self, version: &Version, state: State) {
        if let State::Committed(at) = state {
            self.number(COMMITTED as usize);
            self.bytes.extend_from_slice(&at.to_le_bytes());
        } else {
            let next = self.statuses.len();
            let index = *self.known.entry(Arc::as_ptr(&version.status)).or_insert(next);
            if index == next {
                self.statuses.push(version.status.clone());
            }
            self.number(index);
        }
        self.number(version.sequence as usize);
        self.op(version.op());
    }

    fn op(&mut self, op: VersionOp<'_>) {
        match op {
            VersionOp::Put(bytes) => {
                self.bytes.push(0);
                self.number(bytes.len());
                self.bytes.extend_from_slice(bytes);
            }
            VersionOp::Blob(blob) => {
                self.bytes.push(1);
                self.number(self.blobs.len());
                self.blobs.push(blob.clone());
            }
            VersionOp::Delete => {
                self.bytes.push(2);
                self.number(0);
            }
        }
    }
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    }

    fn timestamp(&mut self) -> Option<Timestamp> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn op<'b>(&mut self, blobs: &'b [Arc<Blob>]) -> Option<VersionOp<'b>>
    where
        'a: 'b,
    {
        let kind = self.take(1)?[0];
        let length = self.number()?;
        Some(match kind {
            0 => VersionOp::Put(self.take(length)?),
            1 => VersionOp::Blob(blobs.get(length)?),
            _ => VersionOp::Delete,
        })
    }
}
