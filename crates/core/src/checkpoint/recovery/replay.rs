//! The second pass over the log: what is to stay goes to the workers.

use super::apply::{Applier, Batch, Sink};
use super::ids::IdMap;
use super::latest::Operation;
use super::survey::Survey;
use super::{RecoveredTransaction, Replayed, Resolve};
use crate::cache::Cache;
use crate::catalog::{Contained, Counted, CATALOG_TREE};
use crate::checkpoint::direct::DirectBlock;
use crate::log::{LogRecord, Lsn, Op, OpKind, Ops};
use crate::mvcc::TxnStatus;
use crate::tree::block::{Block, Value};
use crate::tree::Tree;
use crate::types::{TreeId, TxnId};
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// How the second pass is to work.
pub struct Plan {
    /// Workers; with one, everything happens on the caller's thread.
    pub threads: usize,
    /// Bytes of operations that each worker may hold back, to write once what the log has more than once.
    pub held_bytes: usize,
    /// Accounts for them.
    pub cache: Arc<Cache>,
    /// The commits that are contained in the images and their row counts already.
    pub counted: Contained,
    /// The status of all that is replayed and not of a prepared transaction.
    pub committed: Arc<TxnStatus>,
}

/// A tree that the log writes to.
struct Target {
    /// `None`: gone, or not to be opened.
    tree: Option<Arc<Tree>>,
    /// What its image contains, if that differs from the others.
    apart: Option<Counted>,
    /// What the log adds to its rows.
    rows: i64,
    /// By worker: its index in a batch, and in which.
    seats: Vec<(u64, u32)>,
}

/// Gathers a worker's operations.
#[derive(Default)]
struct Pending {
    batch: Batch,
    /// From 1.
    number: u64,
}

/// Gets the same records as the survey again.
struct Replay<'a, 'r> {
    survey: &'a Survey,
    plan: &'a Plan,
    resolve: &'a mut Resolve<'r>,
    known: IdMap<usize>,
    targets: Vec<Target>,
    prepared: HashMap<TxnId, RecoveredTransaction>,
    pending: Vec<Pending>,
    sink: Sink<'a>,
    applier: &'a Applier,
    sequence: u32,
    operations: u64,
}

/// Runs the second pass. `scan` reads the log from the same position as the first.
pub fn replay(
    survey: &Survey,
    plan: &Plan,
    resolve: &mut Resolve<'_>,
    scan: impl FnOnce(&mut dyn FnMut(Lsn, LogRecord<'_>) -> Result<()>) -> Result<()>,
) -> Result<Replayed> {
    let applier = Applier::new(plan.committed.clone(), plan.held_bytes, plan.cache.clone());
    let replayed = std::thread::scope(|scope| {
        let pending = || Pending { number: 1, ..Pending::default() };
        let mut replay = Replay {
            survey,
            plan,
            resolve,
            known: IdMap::default(),
            targets: Vec::new(),
            prepared: HashMap::new(),
            pending: std::iter::repeat_with(pending).take(plan.threads.max(1)).collect(),
            sink: Sink::start(scope, plan.threads, &applier)?,
            applier: &applier,
            sequence: 0,
            operations: 0,
        };
        scan(&mut |lsn, record| replay.visit(lsn, record))?;
        replay.finish()
        // Dropping the queues ends the workers; the scope waits for them.
    })?;
    applier.check()?;
    Ok(Replayed { damaged: applier.into_damaged(), ..replayed })
}

impl Replay<'_, '_> {
    fn visit(&mut self, lsn: Lsn, record: LogRecord<'_>) -> Result<()> {
        match record {
            LogRecord::Commit { txn, ops } => {
                // Usually the only record of its transaction.
                let at = self.survey.commit_of(txn).unwrap_or(lsn);
                self.committed(txn, ops, lsn, at)
            }
            LogRecord::Ops { txn, ops } | LogRecord::Prepare { txn, ops, .. } => {
                if let Some(at) = self.survey.commit_of(txn) {
                    self.committed(txn, ops, lsn, at)
                } else if self.survey.prepared.contains_key(&txn) {
                    self.undecided(txn, ops, lsn)
                } else {
                    Ok(())
                }
            }
            LogRecord::Rollback { .. }
            | LogRecord::RollbackTo { .. }
            | LogRecord::Counter { .. }
            | LogRecord::Checkpoint { .. } => Ok(()),
        }
    }

    /// Index of the target with this id.
    #[inline]
    fn target(&mut self, id: TreeId) -> Result<usize> {
        match self.known.get(&id) {
            Some(&at) => Ok(at),
            None => self.new_target(id),
        }
    }

    #[cold]
    fn new_target(&mut self, id: TreeId) -> Result<usize> {
        // Catalog rows were applied before: opening the tables depends on them.
        let tree = if id == CATALOG_TREE { None } else { (self.resolve)(id)? };
        // Large values that have to leave memory go to its file.
        tree.iter().for_each(|tree| tree.space().begin_replay());
        let apart = tree.as_ref().and_then(|tree| self.plan.counted.apart.get(&tree.space().id()).cloned());
        self.targets.push(Target { tree, apart, rows: 0, seats: vec![(0, 0); self.pending.len()] });
        self.known.insert(id, self.targets.len() - 1);
        Ok(self.targets.len() - 1)
    }

    fn committed(&mut self, txn: TxnId, ops: Ops<'_>, lsn: Lsn, commit: Lsn) -> Result<()> {
        let voids = self.survey.voids(txn, lsn);
        // Whether the image has it for certain; whether it can have anything of it: the record was there before its operations were
        // visible to anybody, so an image that has them is younger.
        let contained = |image: &Counted| (image.contains(commit), lsn >= image.end);
        let common = contained(&self.plan.counted.common);
        for op in ops.iter().filter(|op| !voids.contain(op.sequence)) {
            let at = self.target(op.tree)?;
            let (counted, fresh) = self.targets[at].apart.as_ref().map_or(common, contained);
            // All or nothing: the image has what came last on each key, so to apply some of what it has would take others back.
            if self.targets[at].tree.is_none() || counted {
                continue;
            }
            self.targets[at].rows += op.rows_added();
            let committed = self.plan.committed.clone();
            self.each_write(at, &committed, &op, &mut |replay, row| {
                replay.sequence = replay.sequence.wrapping_add(1);
                replay.push(at, None, replay.sequence, fresh, row)
            })?;
        }
        Ok(())
    }

    fn undecided(&mut self, txn: TxnId, ops: Ops<'_>, lsn: Lsn) -> Result<()> {
        let voids = self.survey.voids(txn, lsn);
        for op in ops.iter().filter(|op| !voids.contain(op.sequence)) {
            let at = self.target(op.tree)?;
            let Some(tree) = self.targets[at].tree.clone() else { continue };
            let transaction = self.transaction(txn, lsn);
            transaction.sequence = transaction.sequence.max(op.sequence);
            *transaction.rows.entry(op.tree).or_default() += op.rows_added();
            let status = transaction.status.clone();
            self.each_write(at, &status, &op, &mut |replay, row| {
                replay.transaction(txn, lsn).writes.push((tree.clone(), row.key.to_vec()));
                replay.push(at, Some(&status), op.sequence, false, row)
            })?;
        }
        Ok(())
    }

    /// Calls `take` with the writes that `op` stands for: itself, or each row of its block, or itself with the value that is in the table's
    /// file.
    fn each_write(
        &mut self,
        target: usize,
        status: &Arc<TxnStatus>,
        op: &Op<'_>,
        take: &mut dyn FnMut(&mut Self, &Op<'_>) -> Result<()>,
    ) -> Result<()> {
        let kind = match op.kind {
            OpKind::Insert | OpKind::Update | OpKind::Delete => return take(self, op),
            OpKind::Block | OpKind::InsertStored => OpKind::Insert,
            OpKind::UpdateStored => OpKind::Update,
        };
        let Some(bytes) = self.stored(target, status, op)? else { return Ok(()) };
        if op.kind != OpKind::Block {
            return take(self, &Op { kind, value: &bytes, ..*op });
        }
        let block = match Block::parse_spilled(bytes, Vec::new()) {
            Ok(block) => block,
            Err(detail) => return self.damaged(target, &detail),
        };
        let mut key = Vec::new();
        for at in 0..block.len() {
            block.key_into(at, &mut key);
            // Large values are never in such a block: it was parsed without any.
            if let Value::Inline(value) = block.value(at) {
                take(self, &Op { kind, key: &key, value, ..*op })?;
            }
        }
        Ok(())
    }

    /// What the log has for the tree cannot be applied.
    fn damaged(&self, target: usize, detail: &str) -> Result<()> {
        if let Some(tree) = &self.targets[target].tree {
            let detail = format!("block of the log: {detail}");
            self.applier.damage(tree.id(), Error::corrupt(tree.space().path(), 0, detail));
        }
        Ok(())
    }

    /// What an operation names in the table's file, where it stays allocated until a checkpoint has it. `None`: it cannot be read, and the
    /// tree is damaged.
    fn stored(&mut self, target: usize, status: &Arc<TxnStatus>, op: &Op<'_>) -> Result<Option<Vec<u8>>> {
        let Some(tree) = self.targets[target].tree.clone() else { return Ok(None) };
        let read = || -> Result<Vec<u8>> {
            let damaged =
                |detail: &str| Error::corrupt(tree.space().path(), 0, format!("block of the log: {detail}"));
            let named = DirectBlock::of(op).ok_or_else(|| damaged("malformed"))?;
            if let Some(at) = named.dictionary {
                tree.keep_named(status, tree.space().claim(at)?);
                tree.space().know_dictionary(named.address.dictionary, at, None);
            }
            let extent = tree.space().claim(named.address)?;
            let bytes = extent.read()?;
            tree.keep_named(status, extent);
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_damage_of(tree.space().path()) => {
                self.applier.damage(tree.id(), error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn transaction(&mut self, txn: TxnId, lsn: Lsn) -> &mut RecoveredTransaction {
        let survey = self.survey;
        self.prepared.entry(txn).or_insert_with(|| RecoveredTransaction {
            txn,
            xid: survey.prepared.get(&txn).cloned().unwrap_or_default(),
            first: survey.first_record(txn).unwrap_or(lsn),
            status: TxnStatus::new(txn),
            sequence: 0,
            writes: Vec::new(),
            rows: HashMap::new(),
        })
    }

    /// Gives an operation on a target that has a tree to the worker of its key.
    fn push(
        &mut self,
        target: usize,
        status: Option<&Arc<TxnStatus>>,
        sequence: u32,
        fresh: bool,
        op: &Op<'_>,
    ) -> Result<()> {
        let hash = twox_hash::XxHash3_64::oneshot_with_seed(op.tree, op.key);
        let worker = (hash % self.pending.len() as u64) as usize;
        let Pending { batch, number } = &mut self.pending[worker];
        let target = &mut self.targets[target];
        let seat = &mut target.seats[worker];
        if seat.0 != *number {
            let Some(tree) = &target.tree else { return Ok(()) };
            *seat = (*number, batch.add_tree(tree));
        }
        let Op { tree, key, kind, value, .. } = *op;
        batch.push(seat.1, status, &Operation { tree, key, kind, value, hash, sequence, fresh });
        self.operations += 1;
        if batch.is_full() {
            self.flush(worker)?;
        }
        Ok(())
    }

    fn flush(&mut self, worker: usize) -> Result<()> {
        let pending = &mut self.pending[worker];
        pending.number += 1;
        self.sink.send(worker, std::mem::take(&mut pending.batch))?;
        self.applier.check()
    }

    fn finish(mut self) -> Result<Replayed> {
        for worker in 0..self.pending.len() {
            self.flush(worker)?;
        }
        // Also those that have written nothing: their coordinator asks for them.
        for &txn in self.survey.prepared.keys() {
            self.transaction(txn, Lsn::MAX);
        }
        self.sink.finish();
        let mut trees = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            if let Some(tree) = target.tree {
                tree.space().end_replay();
                tree.add_entries(target.rows);
                trees.push(tree);
            }
        }
        Ok(Replayed {
            prepared: self.prepared.into_values().collect(),
            damaged: HashMap::new(),
            trees,
            operations: self.operations,
        })
    }
}
