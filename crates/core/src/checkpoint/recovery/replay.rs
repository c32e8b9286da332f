//! The second pass over the log: what is to stay goes to the workers.

use super::apply::{Applier, Batch, Worker};
use super::ids::IdMap;
use super::lanes::{Lanes, Watch};
use super::latest::Operation;
use super::survey::{Part, Survey};
use super::targets::{Target, Targets};
use super::{ReadStretch, RecoveredTransaction, Replayed, Resolve};
use crate::cache::Cache;
use crate::catalog::{Contained, Counted};
use crate::checkpoint::direct::DirectBlock;
use crate::log::{LogRecord, Lsn, Op, OpKind, Ops};
use crate::mvcc::TxnStatus;
use crate::slabs::Buffer;
use crate::sync::Mutex;
use crate::tree::block::{Block, Value};
use crate::types::{TreeId, TxnId};
use crate::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// How the second pass is to work.
pub struct Plan {
    /// So many read the log, and as many apply what they read; with one, everything happens on the caller's thread.
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

/// Batches that a reader gathers for its workers, together, in bytes; and the least for one.
const GATHERED_BYTES: usize = 2 << 20;
const LEAST_BATCH_BYTES: usize = 32 << 10;
/// What is on its way to the workers, in bytes for each, if they may hold back twice that.
const UNDER_WAY_BYTES: usize = 2 << 20;

/// What all readers share.
struct Replay<'a> {
    survey: &'a Survey,
    plan: &'a Plan,
    targets: &'a Targets<'a>,
    applier: &'a Applier<'a>,
    prepared: Mutex<HashMap<TxnId, RecoveredTransaction>>,
    operations: AtomicU64,
}

/// Runs the second pass over `stretches` of the log, which follow each other and have been read by the first; `read`
/// reads one.
pub fn replay(
    survey: &Survey,
    plan: &Plan,
    resolve: &Resolve<'_>,
    stretches: &[Range<Lsn>],
    read: &ReadStretch<'_>,
) -> Result<Replayed> {
    let targets = Targets::new(resolve, &plan.counted);
    let applier = Applier::new(&targets, plan.committed.clone(), plan.held_bytes, plan.cache.clone());
    let replay = Replay {
        survey,
        plan,
        targets: &targets,
        applier: &applier,
        prepared: Mutex::default(),
        operations: AtomicU64::new(0),
    };
    if plan.threads <= 1 {
        replay.alone(stretches, read)?;
    } else {
        replay.on_threads(stretches, read)?;
    }
    // Also those that have written nothing: their coordinator asks for them.
    for &txn in survey.prepared.keys() {
        replay.with_transaction(txn, Lsn::MAX, |_| {});
    }
    let prepared = replay.prepared.into_inner().into_values().collect();
    let operations = replay.operations.into_inner();
    applier.check()?;
    let damaged = applier.into_damaged();
    Ok(Replayed { prepared, damaged, trees: targets.finish(), operations })
}

impl Replay<'_> {
    fn alone(&self, stretches: &[Range<Lsn>], read: &ReadStretch<'_>) -> Result<()> {
        let mut worker = Worker::new(self.applier);
        for stretch in stretches {
            let mut send = |_: usize, batch: Batch| {
                worker.take(&batch);
                Ok(())
            };
            self.read(stretch, read, &mut send)?;
        }
        worker.finish();
        Ok(())
    }

    fn on_threads(&self, stretches: &[Range<Lsn>], read: &ReadStretch<'_>) -> Result<()> {
        let threads = self.plan.threads;
        let under_way = threads * UNDER_WAY_BYTES.min(self.plan.held_bytes / 2);
        let lanes = Lanes::new(stretches.len(), threads, under_way, self.plan.cache.clone());
        let failed: Mutex<Option<(usize, Error)>> = Mutex::default();
        let read_some = || {
            let _watch = Watch(&lanes);
            while let Some(number) = lanes.begin() {
                let mut given_up = false;
                let mut send =
                    |worker, batch| lanes.send(number, worker, batch).inspect_err(|_| given_up = true);
                match self.read(&stretches[number], read, &mut send) {
                    Ok(()) => lanes.end(number),
                    // Because of what another thread has met.
                    Err(_) if given_up => {}
                    Err(error) => {
                        let mut failed = failed.lock();
                        // Of two errors, the first in the log is told.
                        if failed.as_ref().is_none_or(|first| number < first.0) {
                            *failed = Some((number, error));
                        }
                        lanes.abort();
                    }
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let _watch = Watch(&lanes);
            for number in 0..threads {
                let lanes = &lanes;
                let work = move || {
                    let _watch = Watch(lanes);
                    let mut worker = Worker::new(self.applier);
                    while let Some(batch) = lanes.take(number) {
                        worker.take(&batch);
                    }
                    if !lanes.is_aborted() {
                        worker.finish();
                    }
                };
                if crate::threads::spawn_scoped(scope, format!("teak-replay-{number}"), work).is_err() {
                    lanes.abort();
                    return Err(Error::OutOfMemory("no thread for the replay of the log"));
                }
            }
            crate::threads::share(threads, "teak-log-read", read_some)
        })?;
        failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Reads one stretch; `send` gets batches, and the number of their worker.
    fn read(
        &self,
        stretch: &Range<Lsn>,
        read: &ReadStretch<'_>,
        send: &mut dyn FnMut(usize, Batch) -> Result<()>,
    ) -> Result<()> {
        let workers = self.plan.threads.max(1);
        let mut reader = Reader {
            replay: self,
            known: IdMap::default(),
            met: Vec::new(),
            pending: std::iter::repeat_with(Batch::default).take(workers).collect(),
            batch_bytes: (GATHERED_BYTES.min(self.plan.held_bytes) / workers).max(LEAST_BATCH_BYTES),
            send,
            operations: 0,
        };
        read(stretch.clone(), &mut |lsn, record| reader.visit(lsn, record))?;
        reader.finish()
    }

    /// Lets `change` see a prepared transaction, of which a record is at `lsn`.
    fn with_transaction<T>(
        &self,
        txn: TxnId,
        lsn: Lsn,
        change: impl FnOnce(&mut RecoveredTransaction) -> T,
    ) -> T {
        let survey = self.survey;
        let mut prepared = self.prepared.lock();
        change(prepared.entry(txn).or_insert_with(|| RecoveredTransaction {
            txn,
            xid: survey.prepared.get(&txn).cloned().unwrap_or_default(),
            first: survey.first_record(txn).unwrap_or(lsn),
            records: Vec::new(),
            bytes: 0,
            voids: survey.voids_of(txn).to_vec(),
            status: TxnStatus::new(txn),
            sequence: 0,
            writes: Vec::new(),
            rows: HashMap::new(),
        }))
    }
}

/// A target that the stretch has met.
struct Met {
    target: Arc<Target>,
    /// What the stretch adds to its rows.
    rows: i64,
}

/// Gets the records of one stretch.
struct Reader<'a> {
    replay: &'a Replay<'a>,
    /// Indexes of `met`.
    known: IdMap<usize>,
    met: Vec<Met>,
    /// By worker.
    pending: Vec<Batch>,
    /// A batch of this size is handed over.
    batch_bytes: usize,
    send: &'a mut dyn FnMut(usize, Batch) -> Result<()>,
    operations: u64,
}

impl Reader<'_> {
    fn visit(&mut self, lsn: Lsn, record: LogRecord<'_>) -> Result<()> {
        let survey = self.replay.survey;
        match record {
            LogRecord::Commit { txn, ops } => {
                // Usually the only record of its transaction.
                let at = survey.commit_of(txn).unwrap_or(lsn);
                self.committed(txn, ops, lsn, at)
            }
            LogRecord::Ops { txn, ops } | LogRecord::Prepare { txn, ops, .. } => {
                self.early(txn, ops, lsn, Part::Original)
            }
            LogRecord::Copy { txn, ops } => self.early(txn, ops, lsn, Part::Copy),
            LogRecord::Rollback { .. }
            | LogRecord::RollbackTo { .. }
            | LogRecord::Counter { .. }
            | LogRecord::Checkpoint { .. }
            | LogRecord::CopyEnd { .. } => Ok(()),
        }
    }

    /// Operations in a record before the end of their transaction.
    fn early(&mut self, txn: TxnId, ops: Ops<'_>, lsn: Lsn, part: Part) -> Result<()> {
        let survey = self.replay.survey;
        if !survey.counts(txn, lsn, part) {
            return Ok(());
        }
        match survey.commit_of(txn) {
            Some(at) => self.committed(txn, ops, lsn, at),
            None if survey.prepared.contains_key(&txn) => self.undecided(txn, ops, lsn),
            None => Ok(()),
        }
    }

    /// Index of the target with this id.
    #[inline]
    fn target(&mut self, id: TreeId) -> Result<usize> {
        match self.known.get(&id) {
            Some(&at) => Ok(at),
            None => self.meet(id),
        }
    }

    #[cold]
    fn meet(&mut self, id: TreeId) -> Result<usize> {
        let target = self.replay.targets.get(id)?;
        self.met.push(Met { target, rows: 0 });
        self.known.insert(id, self.met.len() - 1);
        Ok(self.met.len() - 1)
    }

    fn committed(&mut self, txn: TxnId, ops: Ops<'_>, lsn: Lsn, commit: Lsn) -> Result<()> {
        let replay = self.replay;
        let voids = replay.survey.voids(txn, lsn);
        // Whether the image has it for certain; whether it can have anything of it: the record was there before its
        // operations were visible to anybody, so an image that has them is younger.
        let contained = |image: &Counted| (image.contains(commit), lsn >= image.end);
        let common = contained(&replay.plan.counted.common);
        for op in ops.iter().filter(|op| !voids.contain(op.sequence)) {
            let at = self.target(op.tree)?;
            let Met { target, rows } = &mut self.met[at];
            let (counted, fresh) = target.apart.as_ref().map_or(common, contained);
            // All or nothing: the image has what came last on each key, so to apply some of what it has would take
            // others back.
            if target.tree.is_none() || counted {
                continue;
            }
            *rows += op.rows_added();
            self.each_write(at, &replay.plan.committed, &op, &mut |reader, row| {
                reader.push(None, fresh, row)
            })?;
        }
        Ok(())
    }

    fn undecided(&mut self, txn: TxnId, ops: Ops<'_>, lsn: Lsn) -> Result<()> {
        let replay = self.replay;
        let voids = replay.survey.voids(txn, lsn);
        if !ops.is_empty() {
            replay.with_transaction(txn, lsn, |transaction| {
                transaction.records.push(lsn);
                transaction.bytes += ops.encoded_bytes() as u64;
            });
        }
        for op in ops.iter().filter(|op| !voids.contain(op.sequence)) {
            let at = self.target(op.tree)?;
            let Some(tree) = self.met[at].target.tree.clone() else { continue };
            let status = replay.with_transaction(txn, lsn, |transaction| {
                transaction.sequence = transaction.sequence.max(op.sequence);
                *transaction.rows.entry(op.tree).or_default() += op.rows_added();
                transaction.status.clone()
            });
            self.each_write(at, &status, &op, &mut |reader, row| {
                let write = (tree.clone(), row.key.to_vec());
                replay.with_transaction(txn, lsn, |transaction| transaction.writes.push(write));
                reader.push(Some(&status), false, row)
            })?;
        }
        Ok(())
    }

    /// Calls `take` with the writes that `op` stands for: itself, or each row of its block, or itself with the value
    /// that is in the table's file.
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
        let block = match Block::parse_spilled(bytes, Box::default()) {
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
        if let Some(tree) = &self.met[target].target.tree {
            let detail = format!("block of the log: {detail}");
            self.replay.applier.damage(tree.id(), Error::corrupt(tree.space().path(), 0, detail));
        }
        Ok(())
    }

    /// What an operation names in the table's file, where it stays allocated until a checkpoint has it. `None`: it
    /// cannot be read, and the tree is damaged.
    fn stored(&mut self, target: usize, status: &Arc<TxnStatus>, op: &Op<'_>) -> Result<Option<Buffer>> {
        let Some(tree) = self.met[target].target.tree.clone() else { return Ok(None) };
        let read = || -> Result<Buffer> {
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
                self.replay.applier.damage(tree.id(), error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives an operation on a target that has a tree to the worker of its key.
    #[inline]
    fn push(&mut self, status: Option<&Arc<TxnStatus>>, fresh: bool, op: &Op<'_>) -> Result<()> {
        let hash = twox_hash::XxHash3_64::oneshot_with_seed(op.tree, op.key);
        let worker = (hash % self.pending.len() as u64) as usize;
        let batch = &mut self.pending[worker];
        let Op { tree, key, kind, value, sequence } = *op;
        batch.push(status, &Operation { tree, key, kind, value, hash, sequence, fresh });
        self.operations += 1;
        if batch.memory() >= self.batch_bytes {
            self.flush(worker)?;
        }
        Ok(())
    }

    fn flush(&mut self, worker: usize) -> Result<()> {
        (self.send)(worker, std::mem::take(&mut self.pending[worker]))?;
        self.replay.applier.check()
    }

    fn finish(mut self) -> Result<()> {
        for worker in 0..self.pending.len() {
            if !self.pending[worker].is_empty() {
                self.flush(worker)?;
            }
        }
        self.met.iter().for_each(|met| met.target.add_rows(met.rows));
        // Relaxed: read when all threads have ended.
        self.replay.operations.fetch_add(self.operations, Ordering::Relaxed);
        Ok(())
    }
}
