//! What has changed in a leaf since its block was written, as checkpoints store it: a *patch*, in an extent of its own.
//!
//! ```text
//! page ── address of the block, address of the patch        the patch: a block of
//!              │                     └─> what was committed      key ── 0 | value      it has this value
//!              └─> as it was written     since, key by key       key ── 1              it is gone
//! ```
//!
//! A row changed in a leaf of 170 would otherwise write 14 KB. The patch is what the leaf's delta has for the timestamp
//! of the checkpoint, and replaces the one before: a reader needs a block and at most one patch. In memory it is the
//! oldest part of the delta again ([`super::spill`]), so nobody but who reads and writes the file knows of patches: who
//! pushes to the leaf need not read it, nor its block.
//!
//! The idea is that of the delta pages of LLAMA and of the message buffers of B-epsilon trees, with one level of them.

use super::changes::Changes;
use super::evict::covered_delta;
use super::lifecycle::FileCopy;
use super::spill::DeltaSize;
use super::{Base, Leaf, LeafState, LeafView};
use crate::mvcc::{State, TxnStatus};
use crate::slabs::Buffer;
use crate::store::Extent;
use crate::tree::block::blob::Blob;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::tree::versions::delta::{Delta, VersionOp};
use crate::tree::versions::visibility::{visible, Reader};
use crate::types::Timestamp;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::{Arc, Weak};

/// A block that has more than this part of it changed is written anew: then each change costs a part of the block in
/// the end, and until then patches that are half as large as they become.
const MOST_OF_BLOCK: usize = 8;

/// In front of a value.
const PUT: u8 = 0;
/// In place of one.
const GONE: u8 = 1;

/// A patch in the file.
pub(crate) struct Patch {
    extent: Arc<Extent>,
    /// All of it was committed up to this; 0: before the engine was opened.
    newest: Timestamp,
    size: DeltaSize,
}

impl Patch {
    /// One that an image on disk names.
    pub(crate) fn stored(extent: Arc<Extent>) -> Arc<Patch> {
        let memory = extent.address().raw_bytes as usize;
        // Nobody knows how many keys it has before it is read: so many, of short ones without values.
        let keys = memory / 16;
        Arc::new(Patch { extent, newest: 0, size: DeltaSize { keys, versions: keys, memory } })
    }

    pub(crate) fn extent(&self) -> &Arc<Extent> {
        &self.extent
    }

    /// Readers of snapshots before this must not meet it in place of the versions that it was made of.
    pub(crate) fn newest(&self) -> Timestamp {
        self.newest
    }

    pub(crate) fn size(&self) -> DeltaSize {
        self.size
    }

    /// Bytes on disk, and before they were compressed.
    pub(in crate::tree) fn sizes(&self) -> (i64, i64) {
        let address = self.extent.address();
        (i64::from(address.stored_bytes), i64::from(address.raw_bytes))
    }

    /// What it says, read and checked.
    pub(in crate::tree) fn read(&self) -> Result<PatchBlock> {
        PatchBlock::parse(self.extent.read()?).map_err(|detail| {
            Error::corrupt(self.extent.path(), self.extent.address().offset, format!("patch: {detail}"))
        })
    }

    /// Adds what it says to `delta`, which is to get what is newer afterwards; some of that may be in the patch as
    /// well. It is as if it had been committed before everything: no snapshot is so old that it makes a difference.
    pub(crate) fn read_into(&self, delta: &mut Delta) -> Result<()> {
        let status = TxnStatus::of_commit(0);
        self.read()?.each(|key, value| {
            let op = value.map_or(VersionOp::Delete, VersionOp::Put);
            delta.add(key, status.clone(), 0, op);
        });
        Ok(())
    }
}

/// The content of a patch.
pub(crate) struct PatchBlock(Block);

impl PatchBlock {
    /// Takes the bytes of a patch apart; anything else is refused.
    pub fn parse(raw: impl Into<Buffer>) -> std::result::Result<PatchBlock, String> {
        let block = Block::parse(raw, &|_| Arc::new(Blob::new(Vec::new())))?;
        if block.is_empty() || !block.blobs().is_empty() {
            return Err("no changes, or large values".to_string());
        }
        let is_known = |at| match block.value(at) {
            Value::Inline([PUT, ..] | [GONE]) => true,
            Value::Inline(_) | Value::Blob(_) => false,
        };
        match (0..block.len()).all(is_known) {
            true => Ok(PatchBlock(block)),
            false => Err("a change that is neither a value nor a deletion".to_string()),
        }
    }

    /// Each key, in their order, with its value; `None`: it is gone.
    pub fn each(&self, mut take: impl FnMut(&[u8], Option<&[u8]>)) {
        let mut key = Vec::new();
        for at in 0..self.0.len() {
            self.0.key_into(at, &mut key);
            match self.0.value(at) {
                Value::Inline([PUT, value @ ..]) => take(&key, Some(value)),
                _ => take(&key, None),
            }
        }
    }

    /// `base` with the changes.
    pub fn applied_to(&self, base: &Block) -> Block {
        self.merged_with(base, |piece, builder| match piece {
            Piece::Unchanged(range) => builder.push_range(base, range),
            Piece::Changed(_, key, value) => builder.push(key, Value::Inline(value)),
        })
    }

    /// The same of keys without values, which `keys` are; and where the value of each is.
    pub fn laid_over(&self, keys: &Block) -> (Block, Box<[Place]>) {
        let mut places = Vec::with_capacity(keys.len() + self.0.len());
        let block = self.merged_with(keys, |piece, builder| match piece {
            Piece::Unchanged(range) => {
                places.extend(range.clone().map(Place::block));
                builder.push_range(keys, range);
            }
            Piece::Changed(at, key, _) => {
                places.push(Place::patch(at));
                builder.push(key, Value::Inline(&[]));
            }
        });
        (block, places.into())
    }

    /// What `push` makes of the pieces that `base` and the changes consist of, in the order of the keys.
    fn merged_with(&self, base: &Block, mut push: impl FnMut(Piece<'_>, &mut BlockBuilder)) -> Block {
        let mut builder = BlockBuilder::reused();
        let (mut from, mut at) = (0, 0);
        self.each(|key, value| {
            let found = base.search_from(from, key);
            let (Ok(to) | Err(to)) = found;
            push(Piece::Unchanged(from..to), &mut builder);
            from = to + usize::from(found.is_ok());
            if let Some(value) = value {
                push(Piece::Changed(at, key, value), &mut builder);
            }
            at += 1;
        });
        push(Piece::Unchanged(from..base.len()), &mut builder);
        let block = builder.finish();
        builder.give_back();
        block
    }

    /// Replaces `out` by the value of change `at`, which is one.
    pub fn value_into(&self, at: usize, out: &mut Vec<u8>) {
        out.clear();
        if let Value::Inline([PUT, value @ ..]) = self.0.value(at) {
            out.extend_from_slice(value);
        }
    }

    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// The least and the greatest key.
    pub fn bounds(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut least, mut greatest) = (Vec::new(), Vec::new());
        self.0.key_into(0, &mut least);
        self.0.key_into(self.0.len() - 1, &mut greatest);
        (least, greatest)
    }
}

/// A piece of a block with a patch.
enum Piece<'a> {
    /// Entries of the block.
    Unchanged(Range<usize>),
    /// An entry of the patch: its number, its key and its value.
    Changed(usize, &'a [u8], &'a [u8]),
}

/// Where the value of a key is: in the block, or in the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    const IN_PATCH: u32 = 1 << 31;

    fn block(at: usize) -> Place {
        Place(at as u32)
    }

    fn patch(at: usize) -> Place {
        Place(at as u32 | Place::IN_PATCH)
    }

    /// Its number in the block, or else in the patch.
    pub fn entry(self) -> std::result::Result<usize, usize> {
        match self.0 & Place::IN_PATCH {
            0 => Ok(self.0 as usize),
            _ => Err((self.0 & !Place::IN_PATCH) as usize),
        }
    }
}

/// A patch that is not in the file yet.
pub(in crate::tree) struct NewPatch {
    /// What is to be stored.
    pub bytes: Vec<u8>,
    newest: Timestamp,
    size: DeltaSize,
    /// Nothing of the delta is missing, or will be.
    pub is_complete: bool,
}

impl NewPatch {
    /// What `delta`, which has all that was changed since the block of `copy` was written, has for the checkpoint `at`.
    /// `None`: it is too much, or has large values.
    pub fn of(delta: &Delta, at: Timestamp, copy: &FileCopy) -> Option<NewPatch> {
        let most = copy.image.extent.address().raw_bytes as usize / MOST_OF_BLOCK;
        if delta.blobs().next().is_some() {
            return None;
        }
        let mut builder = BlockBuilder::reused();
        let gathered = gather(delta, at, most, &mut builder).filter(|_| !builder.is_empty());
        let patch = gathered.map(|(newest, is_complete)| {
            let bytes = builder.finish().bytes().to_vec();
            NewPatch { bytes, newest, size: DeltaSize::of(delta), is_complete }
        });
        builder.give_back();
        patch
    }

    /// It is stored there.
    pub fn stored(self, extent: Arc<Extent>) -> Arc<Patch> {
        Arc::new(Patch { extent, newest: self.newest, size: self.size })
    }
}

/// Puts what the checkpoint `at` sees of `delta` into `builder`: the newest commit among it, and whether the delta has
/// nothing else. `None`: it takes more than `most` bytes, or is a large value.
fn gather(
    delta: &Delta,
    at: Timestamp,
    most: usize,
    builder: &mut BlockBuilder,
) -> Option<(Timestamp, bool)> {
    let (mut newest, mut is_complete) = (0, true);
    let (reader, mut value) = (Reader::at(at), Vec::new());
    for entry in delta.iter() {
        let seen = visible(entry.newest(), &reader);
        let mut versions = std::iter::successors(entry.newest(), |version| version.older());
        is_complete &= versions.find(|version| !version.is_void()).map(std::ptr::from_ref)
            == seen.map(std::ptr::from_ref);
        let Some(version) = seen else { continue };
        if let State::Committed(committed) = version.status.state() {
            newest = newest.max(committed);
        }
        value.clear();
        match version.op() {
            VersionOp::Put(bytes) => {
                value.push(PUT);
                value.extend_from_slice(bytes);
            }
            VersionOp::Delete => value.push(GONE),
            VersionOp::Blob(_) => return None,
        }
        builder.push(entry.key(), Value::Inline(&value));
        if builder.estimated_bytes() > most {
            return None;
        }
    }
    Some((newest, is_complete))
}

impl LeafState {
    /// Bytes of `changes`, which the leaf has, that no checkpoint has written.
    pub(in crate::tree) fn unwritten_bytes(&self, changes: &Changes) -> usize {
        let written = match changes {
            Changes::Live(_) => self.covered.as_ref().map_or(0, |covered| covered.bytes),
            Changes::Spilled { older, .. } => older.patched_bytes(),
        };
        changes.bytes().saturating_sub(written)
    }

    /// Whether `patch` has all of `changes`.
    pub(super) fn covers(&self, changes: &Changes, patch: &Arc<Patch>) -> bool {
        let covered = self.covered.as_ref().filter(|covered| Arc::ptr_eq(&covered.patch, patch));
        covered.is_some_and(|covered| covered.covers(changes))
    }

    /// The patch that has all of the changes of `view`, which the leaf has.
    pub(in crate::tree) fn patch_of(&self, view: &LeafView) -> Option<Arc<Patch>> {
        let patch = match &view.delta {
            Changes::Live(_) => &self.covered.as_ref().filter(|covered| covered.covers(&view.delta))?.patch,
            Changes::Spilled { older, fresh } => older.only_patch().filter(|_| fresh.is_empty())?,
        };
        let has = |copy: &FileCopy| {
            copy.patch.as_ref().is_some_and(|own| Arc::ptr_eq(own, patch))
                && (copy.is_of(&view.base) || copy.is_patched(&view.base))
        };
        self.copies.all().any(has).then(|| patch.clone())
    }
}

impl Leaf {
    /// The first `versions` of `delta` are all in `patch`, which a checkpoint has written: if the leaf has it still, it
    /// can leave memory, and does if there is no block beside it.
    pub(in crate::tree) fn cover(
        &self,
        state: &mut LeafState,
        delta: &Arc<Delta>,
        versions: usize,
        patch: Arc<Patch>,
    ) {
        let view = self.view();
        if !matches!(&view.delta, Changes::Live(live) if Arc::ptr_eq(live, delta)) {
            return;
        }
        state.covered = Some(Box::new(Covered::new(delta, versions, patch)));
        state.backing = None;
        let is_away = matches!(view.base, Base::Stored(_));
        let away = covered_delta(self, state, &view.delta).filter(|_| is_away);
        let delta = away.unwrap_or_else(|| view.delta.clone());
        self.publish(state, LeafView { delta, ..(*view).clone() });
    }
}

/// A delta in memory that is all in the file.
pub(crate) struct Covered {
    live: Weak<Delta>,
    /// So many it has, if nothing was pushed since.
    versions: usize,
    /// What it took then.
    bytes: usize,
    pub patch: Arc<Patch>,
}

impl Covered {
    /// `live` had so many versions when `patch` was made of it.
    pub(super) fn new(live: &Arc<Delta>, versions: usize, patch: Arc<Patch>) -> Covered {
        Covered { live: Arc::downgrade(live), versions, bytes: live.charge(), patch }
    }

    /// Whether it is about these changes.
    pub(in crate::tree) fn is_of(&self, changes: &Changes) -> bool {
        matches!(changes, Changes::Live(delta) if std::ptr::eq(self.live.as_ptr(), Arc::as_ptr(delta)))
    }

    /// Whether it is, and nothing was pushed since.
    pub(in crate::tree) fn covers(&self, changes: &Changes) -> bool {
        self.is_of(changes) && changes.newest().versions() == self.versions
    }
}
