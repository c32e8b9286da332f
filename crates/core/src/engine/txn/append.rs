//! New rows in key order: they are gathered into blocks, which go to the table's file and not through deltas and log.
//!
//! ```text
//! append ──> builder ──> full blocks ──(enough of them)──> attached to the tree, on their way to the file
//!               └─ what is left at the end, or needed before: ordinary writes
//! finish ──> waits until the blocks are in the file ──> redo: one operation a block
//! ```
//!
//! Rows that do not ascend may be sorted first (see [`super::sorting`]). What has been gathered is nobody's to see:
//! reads and writes of the transaction's own that could miss it, savepoints and the end of the transaction have it
//! written first. So it never spans a savepoint, and a rollback to one drops it whole.

use crate::checkpoint::direct::{DirectBlock, TableFile};
use crate::engine::shared::Shared;
use crate::log::{Op, OpKind};
use crate::mvcc::TxnStatus;
use crate::sort::Sorter;
use crate::store::Space;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::tree::{Attached, DirectJob, Tree, Write, Written, MAX_KEY_BYTES};
use crate::types::WriteOp;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::work::Work;

/// Fewer blocks than these go through the log: a commit would wait for the table's file as well.
const LEAST_BLOCKS: usize = 8;
/// Blocks that may be on their way to the file before the transaction waits for them.
const MOST_WAITING: usize = 256;

/// A transaction that goes to and fro between trees, as with partitions, or between keys, does not gather any more
/// after so many times.
const MOST_INTERLEAVED: u32 = 16;

/// Rows of one tree that a transaction appends.
pub(in crate::engine) struct Append {
    tree: Arc<Tree>,
    /// The number of the transaction's last write before.
    since: u32,
    /// Of the tree's blocks; asking the tree takes a latch.
    block_bytes: usize,
    builder: BlockBuilder,
    /// The first key and the last, since it began.
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// Full, and not in the tree.
    gathered: Vec<Block>,
    /// In the tree, and not in the redo; by the number of the write.
    waiting: Vec<(u32, Arc<DirectJob>)>,
    /// Blocks have been attached: those that follow are, too.
    attaches: bool,
    /// Something was in the way: rows are written one by one.
    refused: bool,
    /// Rows are sorted first; nothing is gathered meanwhile.
    pub(in crate::engine) sorter: Option<Sorter>,
}

impl Append {
    fn new(tree: &Arc<Tree>, since: u32) -> Append {
        Append {
            tree: tree.clone(),
            since,
            block_bytes: tree.spec().block_bytes as usize,
            builder: BlockBuilder::reused(),
            first_key: Vec::new(),
            last_key: Vec::new(),
            gathered: Vec::new(),
            waiting: Vec::new(),
            attaches: false,
            refused: false,
            sorter: None,
        }
    }

    /// Whether `key` lies behind all that was appended.
    pub(in crate::engine) fn is_beyond(&self, key: &[u8]) -> bool {
        self.last_key.is_empty() || *key > *self.last_key
    }

    /// Whether a row goes into blocks at all.
    fn takes(&self, key: &[u8], value: &[u8]) -> bool {
        !self.refused && !key.is_empty() && key.len() <= MAX_KEY_BYTES && !self.tree.is_large(value)
    }

    fn is_empty(&self) -> bool {
        self.builder.is_empty()
            && self.gathered.is_empty()
            && self.waiting.is_empty()
            && self.sorter.is_none()
    }

    /// Of full blocks; those in the tree are charged as leaves, and the builder's is one more at most.
    fn memory(&self) -> usize {
        self.gathered.iter().map(|block| block.bytes().len()).sum()
    }

    /// Whether no row has left it.
    pub(in crate::engine) fn is_all_gathered(&self) -> bool {
        !self.attaches && !self.refused && !self.builder.is_empty()
    }

    /// Takes all rows out again, which [`Append::is_all_gathered`].
    pub(in crate::engine) fn take_gathered(&mut self) -> Vec<Block> {
        debug_assert!(self.is_all_gathered(), "some rows have left it");
        let mut blocks = std::mem::take(&mut self.gathered);
        blocks.push(self.builder.finish());
        self.first_key.clear();
        self.last_key.clear();
        blocks
    }
}

/// Rows that were appended and could not be written.
struct Failure {
    /// The number of the last write before them.
    since: u32,
    error: Error,
}

/// What the transaction has in table files.
#[derive(Default)]
pub(in crate::engine) struct Direct {
    append: Option<Box<Append>>,
    /// The first, until it is undone.
    failure: Option<Failure>,
    /// Files with blocks that the redo names and that are not synced.
    unsynced: BTreeMap<u32, Arc<Space>>,
    /// Trees of which the log names blocks on its behalf.
    trees: Vec<Arc<Tree>>,
    /// How often a row came, before blocks were attached, that was for another tree or not behind the last.
    interleaved: u32,
}

impl Direct {
    /// As it was before its transaction.
    pub(in crate::engine) fn start_anew(&mut self) {
        let is_new = self.append.is_none() && self.failure.is_none() && self.interleaved == 0;
        if !is_new || !self.unsynced.is_empty() || !self.trees.is_empty() {
            *self = Direct::default();
        }
    }

    /// Whether there is anything that the redo does not have yet.
    pub(in crate::engine) fn has_writes(&self) -> bool {
        self.failure.is_some() || self.append.as_ref().is_some_and(|append| !append.is_empty())
    }

    /// Bytes in memory that nothing else is charged for.
    pub(in crate::engine) fn memory(&self) -> usize {
        self.append.as_ref().map_or(0, |append| append.memory())
    }

    /// Whether rows of the tree have been gathered.
    pub(in crate::engine) fn appends_to(&self, tree: &Tree) -> bool {
        self.append.as_ref().is_some_and(|append| append.tree.id() == tree.id())
    }

    /// Whether rows came in no order, so that none are gathered into blocks any more.
    pub(in crate::engine) fn is_scattered(&self) -> bool {
        self.interleaved > MOST_INTERLEAVED
    }

    /// What is being appended, if it is to `tree`.
    pub(in crate::engine) fn append_to(&mut self, tree: &Arc<Tree>) -> Option<&mut Append> {
        self.append.as_deref_mut().filter(|append| Arc::ptr_eq(&append.tree, tree))
    }

    /// What waits to be sorted, and for which tree.
    pub(in crate::engine) fn take_sorter(&mut self) -> Option<(Arc<Tree>, Sorter)> {
        let append = self.append.as_deref_mut()?;
        let sorter = append.sorter.take()?;
        debug_assert!(append.is_empty(), "rows were gathered while others are sorted");
        Some((append.tree.clone(), sorter))
    }

    /// What was appended since the last savepoint is undone, and so is what could not be written if it was appended
    /// after the write with this number.
    pub(in crate::engine) fn drop_after(&mut self, sequence: u32) {
        debug_assert!(
            self.failure.is_some() || self.append.as_ref().is_none_or(|append| sequence <= append.since),
            "rows from before the savepoint are dropped"
        );
        self.append = None;
        self.failure.take_if(|failure| sequence <= failure.since);
    }

    /// Nobody misses what could not be written.
    pub(in crate::engine) fn forget_failure(&mut self) {
        self.failure = None;
    }

    /// The first error of rows that were appended and not undone: some of them are gone.
    fn check(&self) -> Result<()> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.error.clone()))
    }

    /// Makes durable what a record is going to name; for records that may not rely on the log's own sync. A failure
    /// ends writing, whatever its kind: nobody knows what of the file is on disk then.
    pub(in crate::engine) fn sync(&mut self, shared: &Shared) -> Result<()> {
        while let Some((_, space)) = self.unsynced.pop_first() {
            space.sync().inspect_err(|error| shared.fail(&error.to_string()))?;
        }
        Ok(())
    }

    /// Has the log see to it when it is synced; for a commit record.
    pub(in crate::engine) fn rely_on(&mut self, shared: &Shared) {
        while let Some((number, space)) = self.unsynced.pop_first() {
            shared.log.rely_on(number, Arc::new(TableFile(space)));
        }
    }

    /// Trees whose files have blocks that the log names.
    pub(in crate::engine) fn trees(&self) -> &[Arc<Tree>] {
        &self.trees
    }
}

impl Work {
    /// Like an insert by [`Work::write`]. The key is not in the tree, or [`Work::sorts`] has said yes; the caller has
    /// locked it.
    ///
    /// The first line that fits says where the row goes:
    ///
    /// | the row | goes |
    /// |---|---|
    /// | comes while rows of the tree are sorted | into the sorter |
    /// | comes after [`MOST_INTERLEAVED`] that were not behind the last | to the log |
    /// | fits into no block, or blocks were refused | to the log, behind all that was gathered |
    /// | is behind the last one | into the block that is being built |
    /// | is not, or is of another tree | what was gathered is written; then as the first of its tree |
    ///
    /// A block that is full waits for others: [`LEAST_BLOCKS`] of them are attached to the tree, and those behind them
    /// one by one; fewer are written to the log when something ends the gathering.
    pub(in crate::engine) fn append(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.direct.check()?;
        if let Some(sorter) = self.direct.append_to(tree).and_then(|append| append.sorter.as_mut()) {
            let pushed = sorter.push(key, value);
            return self.keep_failure(pushed);
        }
        if !self.direct.append_to(tree).is_some_and(|append| append.is_beyond(key)) {
            let early = self.direct.append.as_deref().is_some_and(|append| !append.attaches);
            self.direct.interleaved += u32::from(early);
            self.finish_append(shared)?;
        }
        if self.direct.is_scattered() {
            return self.write_alone(shared, tree, key, value);
        }
        let since = self.last_number();
        let append = self.direct.append.get_or_insert_with(|| Box::new(Append::new(tree, since)));
        if !append.takes(key, value) {
            let written = self.write_gathered(shared);
            self.keep_failure(written)?;
            return self.write_alone(shared, tree, key, value);
        }
        let full = append.builder.estimated_bytes() + key.len() + value.len() > append.block_bytes;
        if full && !append.builder.is_empty() {
            let block = append.builder.finish();
            append.gathered.push(block);
            if append.attaches || append.gathered.len() >= LEAST_BLOCKS {
                let attached = self.attach_gathered(shared);
                self.keep_failure(attached)?;
            }
            self.charge_memory(shared);
        }
        let Some(append) = &mut self.direct.append else {
            return self.write_alone(shared, tree, key, value);
        };
        debug_assert!(
            append.last_key.as_slice() < key || append.last_key.is_empty(),
            "rows are appended in order"
        );
        if append.last_key.is_empty() {
            append.first_key.extend_from_slice(key);
        }
        append.last_key.clear();
        append.last_key.extend_from_slice(key);
        append.builder.push(key, Value::Inline(value));
        Ok(())
    }

    /// A row that goes into no block.
    fn write_alone(&mut self, shared: &Shared, tree: &Arc<Tree>, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_row(shared, tree, key, WriteOp::Insert(value))?;
        self.note_if_covered(shared, tree, self.last_number() - 1, key, key);
        Ok(())
    }

    /// Before a read of the transaction's own: everything that it could see is in the tree. A single `key` behind what
    /// was gathered needs nothing of it.
    pub(in crate::engine) fn show_append(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: Option<&[u8]>,
    ) -> Result<()> {
        let shown = match self.direct.append_to(tree) {
            Some(append) if append.sorter.is_some() => {
                self.write_sorted(shared).and_then(|()| self.write_gathered(shared))
            }
            Some(append) if key.is_none_or(|key| !append.is_beyond(key)) => self.write_gathered(shared),
            _ => Ok(()),
        };
        self.keep_failure(shown)
    }

    /// An error of rows that were appended comes again until they are undone: they are in no buffer any more, so that
    /// whoever went on would lose them. It takes a number, so that savepoints before it and after it differ.
    pub(in crate::engine) fn keep_failure(&mut self, result: Result<()>) -> Result<()> {
        let Err(error) = &result else { return Ok(()) };
        if self.direct.failure.is_none() {
            let since = self.direct.append.as_ref().map_or(self.last_number(), |append| append.since);
            self.direct.failure = Some(Failure { since, error: error.clone() });
            self.skip_number();
        }
        result
    }

    /// Before another write of the transaction's own to `tree`: the redo has what came before.
    pub(in crate::engine) fn finish_append_to(&mut self, shared: &Shared, tree: &Arc<Tree>) -> Result<()> {
        match self.direct.append_to(tree) {
            Some(_) => self.finish_append(shared),
            None => Ok(()),
        }
    }

    /// Everything that was appended is in the tree, and the redo says so. After an error the transaction can only go
    /// back to a savepoint from before; until then the error comes again.
    pub(in crate::engine) fn finish_append(&mut self, shared: &Shared) -> Result<()> {
        self.direct.check()?;
        if self.direct.append.is_none() {
            return Ok(());
        }
        let written = self
            .write_sorted(shared)
            .and_then(|()| self.write_gathered(shared))
            .and_then(|()| self.settle_waiting(shared, 0));
        self.keep_failure(written)?;
        let finished = self.direct.append.take();
        debug_assert!(finished.as_ref().is_none_or(|append| append.is_empty()), "appended rows are dropped");
        if let Some(append) = finished.filter(|append| !append.last_key.is_empty()) {
            self.note_if_covered(shared, &append.tree, append.since, &append.first_key, &append.last_key);
        }
        self.charge_memory(shared);
        Ok(())
    }

    /// Puts the full blocks into the tree.
    fn attach_gathered(&mut self, shared: &Shared) -> Result<()> {
        let Some(append) = &mut self.direct.append else { return Ok(()) };
        let (tree, blocks) = (append.tree.clone(), std::mem::take(&mut append.gathered));
        for block in blocks {
            // Who follows the tree wants each key.
            let refused = shared.data.followed.has(tree.id())
                || self.direct.append.as_ref().is_some_and(|append| append.refused);
            let block = Arc::new(block);
            let sequence = self.next_sequence()?;
            let status = self.status_or_new().clone();
            let attached = match refused {
                true => Attached::Never,
                false => tree.attach(&block, &status, sequence)?,
            };
            let Some(append) = &mut self.direct.append else { return Ok(()) };
            let Attached::As(job) = attached else {
                append.refused |= matches!(attached, Attached::Never);
                self.write_rows(shared, &tree, &block)?;
                continue;
            };
            append.attaches = true;
            if tree.is_logged() {
                append.waiting.push((sequence, job.clone()));
                shared.context.blocks.add(&job);
            } else {
                self.note_unlogged(sequence);
            }
            self.note_written(&tree, sequence, job.rows() as i64);
        }
        self.settle_waiting(shared, MOST_WAITING)
    }

    /// Writes what is gathered as any other rows, and what is in full blocks only if they are few.
    fn write_gathered(&mut self, shared: &Shared) -> Result<()> {
        let Some(append) = &mut self.direct.append else { return Ok(()) };
        let tree = append.tree.clone();
        let rest = (!append.builder.is_empty()).then(|| append.builder.finish());
        let attaches = append.attaches;
        if attaches {
            self.attach_gathered(shared)?;
        } else {
            for block in std::mem::take(&mut append.gathered) {
                self.write_rows(shared, &tree, &block)?;
            }
        }
        rest.map_or(Ok(()), |block| self.write_rows(shared, &tree, &block))
    }

    fn write_rows(&mut self, shared: &Shared, tree: &Arc<Tree>, block: &Block) -> Result<()> {
        for_each_row(tree, block, |key, value| self.write_row(shared, tree, key, WriteOp::Insert(value)))
    }

    /// Waits for the oldest blocks but for `keep`, and puts them into the redo.
    fn settle_waiting(&mut self, shared: &Shared, keep: usize) -> Result<()> {
        let Some(append) = &mut self.direct.append else { return Ok(()) };
        if append.waiting.len() <= keep {
            return Ok(());
        }
        let due: Vec<_> = append.waiting.drain(..append.waiting.len() - keep).collect();
        let tree = append.tree.clone();
        let status = self.status_or_new().clone();
        for (sequence, job) in due {
            let written = job.wait()?;
            let value = self.name(shared, &tree, &status, &written, job.rows() as u32, job.bytes());
            self.redo.put(&Op { kind: OpKind::Block, tree: tree.id(), sequence, key: &[], value: &value });
        }
        Ok(())
    }

    /// What the redo says of `written`, which is kept from now on, and of which a restart would have to read `bytes`.
    fn name(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        status: &Arc<TxnStatus>,
        written: &Written,
        rows: u32,
        bytes: usize,
    ) -> Vec<u8> {
        for extent in std::iter::once(&written.extent).chain(&written.dictionary) {
            tree.keep_named(status, extent.clone());
        }
        shared.care.progress.note_direct(bytes as u64);
        self.direct.unsynced.insert(tree.space().id(), tree.space().clone());
        if !self.direct.trees.iter().any(|known| Arc::ptr_eq(known, tree)) {
            self.direct.trees.push(tree.clone());
        }
        let dictionary = written.dictionary.as_ref().map(|extent| *extent.address());
        DirectBlock { rows, space: tree.space().id(), address: *written.extent.address(), dictionary }
            .encode()
    }

    /// A write of a large value, which goes to the table's file now and not to the log.
    pub(in crate::engine) fn write_stored(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        write: &Write<'_>,
    ) -> Result<()> {
        let (kind, value) = match write.op {
            WriteOp::Insert(value) => (OpKind::InsertStored, value),
            WriteOp::Update(value) => (OpKind::UpdateStored, value),
            WriteOp::Delete => return tree.write_run(std::slice::from_ref(write)),
        };
        let written = tree.store_value(value)?;
        tree.write_stored(write, &written.extent)?;
        let named = self.name(shared, tree, write.status, &written, 1, value.len());
        let Write { key, sequence, .. } = *write;
        self.redo.put(&Op { kind, tree: tree.id(), sequence, key, value: &named });
        Ok(())
    }
}

/// Gives key and value of each row of a gathered block to `take`.
pub(in crate::engine) fn for_each_row(
    tree: &Tree,
    block: &Block,
    mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut key = Vec::new();
    for at in 0..block.len() {
        block.key_into(at, &mut key);
        match block.value(at) {
            Value::Inline(value) => take(&key, value)?,
            Value::Blob(_) => {
                return Err(Error::corrupt(tree.space().path(), 0, "a large value among gathered rows"))
            }
        }
    }
    Ok(())
}
