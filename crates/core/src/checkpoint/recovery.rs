//! Replaying the log after a start.
//!
//! Two passes. [`Survey`] learns what became of each transaction and collects what is small: catalog rows and counters. [`Replay`] then
//! applies the operations of committed transactions in log order, which for each key is the order in which its row lock was held. Work is
//! spread over threads by a hash of tree and key, through short queues, so memory stays bounded however long the log is.
//!
//! All replayed operations carry one status that is published beforehand: nobody reads yet. Operations of prepared transactions carry their
//! own, undecided one.

use crate::catalog::CATALOG_TREE;
use crate::log::{CounterChange, LogRecord, Lsn, OpKind, Ops};
use crate::mvcc::TxnStatus;
use crate::tree::Tree;
use crate::types::{TreeId, TxnId, WriteOp};
use crate::{Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;

/// One change to a catalog row, in log order.
#[derive(Debug)]
pub struct CatalogChange {
    txn: TxnId,
    at: Lsn,
    sequence: u32,
    complete: bool,
    /// What happened.
    pub kind: OpKind,
    /// The row's key.
    pub key: Vec<u8>,
    /// Its value; empty for a delete.
    pub value: Vec<u8>,
}

/// What the log says about a table's counter.
#[derive(Debug, Clone, Copy)]
pub struct RecoveredCounter {
    /// The next value.
    pub value: u64,
    /// The log set it: what the checkpoint knew counts no more. Otherwise the greater of both does.
    pub set: bool,
}

impl RecoveredCounter {
    /// Together with what the checkpoint knew.
    pub fn merged(self, stored: Option<u64>) -> u64 {
        if self.set {
            self.value
        } else {
            self.value.max(stored.unwrap_or(0))
        }
    }
}

/// Outcomes of the transactions in the log. A transaction whose only record is its commit needs no entry.
#[derive(Debug, Default)]
pub struct Survey {
    /// Transactions with earlier records than their commit, and where the commit is.
    committed: HashMap<TxnId, Lsn>,
    /// First record of transactions not ended.
    open: HashMap<TxnId, Lsn>,
    prepared: HashMap<TxnId, Vec<u8>>,
    /// Operations with a greater sequence in records before the position are void.
    voids: HashMap<TxnId, Vec<(u32, Lsn)>>,
    catalog: Vec<CatalogChange>,
    /// Counters, by the first tree of their table.
    pub counters: HashMap<TreeId, RecoveredCounter>,
    /// The greatest transaction id met.
    pub last_txn: TxnId,
    /// Records met.
    pub records: u64,
}

impl Survey {
    /// Takes the next record of the log into account.
    pub fn visit(&mut self, lsn: Lsn, record: LogRecord<'_>) {
        let txn = record.txn();
        self.last_txn = self.last_txn.max(txn);
        self.records += 1;
        match record {
            LogRecord::Ops { ops, .. } => {
                self.open.entry(txn).or_insert(lsn);
                self.catalog_changes(txn, lsn, ops, false);
            }
            LogRecord::Prepare { xid, ops, .. } => {
                self.open.entry(txn).or_insert(lsn);
                self.prepared.insert(txn, xid.to_vec());
                self.catalog_changes(txn, lsn, ops, false);
            }
            LogRecord::Commit { ops, .. } => {
                if self.open.remove(&txn).is_some() {
                    self.prepared.remove(&txn);
                    self.committed.insert(txn, lsn);
                }
                self.catalog_changes(txn, lsn, ops, true);
            }
            LogRecord::Rollback { .. } => {
                self.open.remove(&txn);
                self.prepared.remove(&txn);
            }
            LogRecord::RollbackTo { sequence, .. } => {
                self.voids.entry(txn).or_default().push((sequence, lsn));
            }
            LogRecord::Counter { table, value, change, .. } => self.counter(table, value, change),
        }
    }

    fn counter(&mut self, table: TreeId, value: u64, change: CounterChange) {
        let counter = self.counters.entry(table).or_insert(RecoveredCounter { value: 0, set: false });
        match change {
            CounterChange::Raise => counter.value = counter.value.max(value),
            CounterChange::Set => *counter = RecoveredCounter { value, set: true },
        }
    }

    fn catalog_changes(&mut self, txn: TxnId, at: Lsn, ops: Ops<'_>, complete: bool) {
        for op in ops.iter().filter(|op| op.tree == CATALOG_TREE) {
            self.catalog.push(CatalogChange {
                txn,
                at,
                sequence: op.sequence,
                complete,
                kind: op.kind,
                key: op.key.to_vec(),
                value: op.value.to_vec(),
            });
        }
    }

    fn is_void(&self, txn: TxnId, sequence: u32, at: Lsn) -> bool {
        let voids = self.voids.get(&txn);
        voids.is_some_and(|voids| voids.iter().any(|&(kept, until)| sequence > kept && at < until))
    }

    /// Catalog changes of committed transactions, in log order.
    pub fn take_catalog(&mut self) -> Vec<CatalogChange> {
        let mut changes = std::mem::take(&mut self.catalog);
        changes.retain(|c| {
            (c.complete || self.committed.contains_key(&c.txn)) && !self.is_void(c.txn, c.sequence, c.at)
        });
        changes
    }
}

/// A prepared transaction as the log has it.
pub struct RecoveredTransaction {
    /// Its identifier.
    pub txn: TxnId,
    /// The identifier its coordinator knows it by.
    pub xid: Vec<u8>,
    /// Its first record: the log from there on must be kept.
    pub first: Lsn,
    /// Undecided.
    pub status: Arc<TxnStatus>,
    /// The greatest sequence of its operations.
    pub sequence: u32,
    /// The keys it has written, some more than once.
    pub writes: Vec<(Arc<Tree>, Vec<u8>)>,
    /// What its commit adds to the row counts.
    pub rows: HashMap<TreeId, i64>,
}

/// Finds the tree of an id: `None` for one that the catalog does not know (any more).
pub type Resolve<'a> = dyn FnMut(TreeId) -> Result<Option<Arc<Tree>>> + 'a;

/// What the second pass did.
#[derive(Default)]
pub struct Replayed {
    /// Transactions waiting for their coordinator.
    pub prepared: Vec<RecoveredTransaction>,
    /// Trees with committed operations that could not be applied because the tree is damaged.
    pub damaged: HashMap<TreeId, Error>,
    /// All trees that were written to.
    pub trees: Vec<Arc<Tree>>,
    /// Operations applied.
    pub operations: u64,
}

struct Item {
    tree: Arc<Tree>,
    /// `None`: the shared, committed one.
    status: Option<Arc<TxnStatus>>,
    sequence: u32,
    kind: OpKind,
    key_end: usize,
    value_end: usize,
}

/// Operations for one worker. Keys and values lie one after another in `bytes`.
#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    bytes: Vec<u8>,
}

impl Batch {
    /// Tree, key and number of each operation, in log order.
    fn keys(&self) -> impl Iterator<Item = (TreeId, &[u8], usize)> {
        let starts = std::iter::once(0).chain(self.items.iter().map(|item| item.value_end));
        let items = self.items.iter().zip(starts).enumerate();
        items.map(|(number, (item, start))| (item.tree.id(), &self.bytes[start..item.key_end], number))
    }
}

const BATCH_ITEMS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;
const QUEUED_BATCHES: usize = 4;

/// Applies batches; shared by all workers.
struct Applier {
    status: Arc<TxnStatus>,
    damaged: Mutex<HashMap<TreeId, Error>>,
    failed: Mutex<Option<Error>>,
}

impl Applier {
    /// Applies the last committed operation on each key, leaf by leaf: in key order one leaf's work comes together.
    fn apply(&self, batch: &Batch) {
        let mut order: Vec<(TreeId, &[u8], usize)> = batch.keys().collect();
        // Stable: operations on one key stay in log order.
        order.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        for (at, &(tree, key, number)) in order.iter().enumerate() {
            let item = &batch.items[number];
            let overwritten = order.get(at + 1).is_some_and(|&(next_tree, next_key, next)| {
                (next_tree, next_key) == (tree, key)
                    && item.status.is_none()
                    && batch.items[next].status.is_none()
            });
            if overwritten {
                continue;
            }
            let value = &batch.bytes[item.key_end..item.value_end];
            let op = match item.kind {
                OpKind::Insert => WriteOp::Insert(value),
                OpKind::Update => WriteOp::Update(value),
                OpKind::Delete => WriteOp::Delete,
            };
            let status = item.status.as_ref().unwrap_or(&self.status);
            if let Err(error) = item.tree.write(key, op, status, item.sequence) {
                match error {
                    Error::Corrupt { .. } | Error::UnknownVersion { .. } => {
                        self.damaged.lock().entry(item.tree.id()).or_insert(error);
                    }
                    other => {
                        self.failed.lock().get_or_insert(other);
                        return;
                    }
                }
            }
        }
    }

    fn check(&self) -> Result<()> {
        match &*self.failed.lock() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

/// Where batches go: to a thread each, or (simulator, one thread) applied at once.
enum Sink<'a> {
    Queues(Vec<SyncSender<Batch>>),
    Inline(&'a Applier),
}

/// The second pass: gets the same records again and applies what is to stay.
struct Replay<'a, 'r> {
    survey: &'a Survey,
    /// Commits before it are contained in the row counts already.
    counted: Lsn,
    resolve: &'a mut Resolve<'r>,
    trees: HashMap<TreeId, Option<Arc<Tree>>>,
    rows: HashMap<TreeId, i64>,
    prepared: HashMap<TxnId, RecoveredTransaction>,
    pending: Vec<Batch>,
    sink: Sink<'a>,
    applier: &'a Applier,
    sequence: u32,
    operations: u64,
}

/// Runs the second pass. `scan` reads the log from the same position as the first.
pub fn replay(
    survey: &Survey,
    threads: usize,
    counted: Lsn,
    committed: Arc<TxnStatus>,
    resolve: &mut Resolve<'_>,
    scan: impl FnOnce(&mut dyn FnMut(Lsn, LogRecord<'_>) -> Result<()>) -> Result<()>,
) -> Result<Replayed> {
    let applier = Applier { status: committed, damaged: Mutex::default(), failed: Mutex::default() };
    let replayed = std::thread::scope(|scope| {
        let sink = if threads <= 1 {
            Sink::Inline(&applier)
        } else {
            let mut queues = Vec::with_capacity(threads);
            for number in 0..threads {
                let (sender, receiver) = sync_channel::<Batch>(QUEUED_BATCHES);
                let applier = &applier;
                let thread = std::thread::Builder::new().name(format!("teak-replay-{number}"));
                let spawned = thread.spawn_scoped(scope, move || {
                    receiver.iter().for_each(|batch| applier.apply(&batch));
                });
                spawned.map_err(|_| Error::OutOfMemory("no thread for the replay of the log"))?;
                queues.push(sender);
            }
            Sink::Queues(queues)
        };
        let mut replay = Replay {
            survey,
            counted,
            resolve,
            trees: HashMap::new(),
            rows: HashMap::new(),
            prepared: HashMap::new(),
            pending: (0..threads.max(1)).map(|_| Batch::default()).collect(),
            sink,
            applier: &applier,
            sequence: 0,
            operations: 0,
        };
        scan(&mut |lsn, record| replay.visit(lsn, record))?;
        replay.finish()
        // Dropping the queues ends the workers; the scope waits for them.
    })?;
    applier.check()?;
    Ok(Replayed { damaged: applier.damaged.into_inner(), ..replayed })
}

impl Replay<'_, '_> {
    fn visit(&mut self, lsn: Lsn, record: LogRecord<'_>) -> Result<()> {
        match record {
            LogRecord::Commit { txn, ops } => {
                // Usually the only record of its transaction.
                let at = self.survey.committed.get(&txn).copied().unwrap_or(lsn);
                self.committed(txn, ops, lsn, at)
            }
            LogRecord::Ops { txn, ops } | LogRecord::Prepare { txn, ops, .. } => {
                if let Some(&at) = self.survey.committed.get(&txn) {
                    self.committed(txn, ops, lsn, at)
                } else if self.survey.prepared.contains_key(&txn) {
                    self.undecided(txn, ops, lsn)
                } else {
                    Ok(())
                }
            }
            LogRecord::Rollback { .. } | LogRecord::RollbackTo { .. } | LogRecord::Counter { .. } => Ok(()),
        }
    }

    fn tree(&mut self, id: TreeId) -> Result<Option<Arc<Tree>>> {
        if let Some(tree) = self.trees.get(&id) {
            return Ok(tree.clone());
        }
        // Catalog rows were applied before: opening the tables depends on them.
        let tree = if id == CATALOG_TREE { None } else { (self.resolve)(id)? };
        self.trees.insert(id, tree.clone());
        Ok(tree)
    }

    fn committed(&mut self, txn: TxnId, ops: Ops<'_>, lsn: Lsn, commit: Lsn) -> Result<()> {
        for op in ops {
            if self.survey.is_void(txn, op.sequence, lsn) {
                continue;
            }
            let Some(tree) = self.tree(op.tree)? else { continue };
            if commit >= self.counted {
                *self.rows.entry(op.tree).or_default() += rows_added(op.kind);
            }
            self.sequence = self.sequence.wrapping_add(1);
            self.push(tree, None, self.sequence, op.kind, op.key, op.value)?;
        }
        Ok(())
    }

    fn undecided(&mut self, txn: TxnId, ops: Ops<'_>, lsn: Lsn) -> Result<()> {
        for op in ops {
            if self.survey.is_void(txn, op.sequence, lsn) {
                continue;
            }
            let Some(tree) = self.tree(op.tree)? else { continue };
            let transaction = self.transaction(txn, lsn);
            transaction.sequence = transaction.sequence.max(op.sequence);
            transaction.writes.push((tree.clone(), op.key.to_vec()));
            *transaction.rows.entry(op.tree).or_default() += rows_added(op.kind);
            let status = transaction.status.clone();
            self.push(tree, Some(status), op.sequence, op.kind, op.key, op.value)?;
        }
        Ok(())
    }

    fn transaction(&mut self, txn: TxnId, lsn: Lsn) -> &mut RecoveredTransaction {
        let survey = self.survey;
        self.prepared.entry(txn).or_insert_with(|| RecoveredTransaction {
            txn,
            xid: survey.prepared.get(&txn).cloned().unwrap_or_default(),
            first: survey.open.get(&txn).copied().unwrap_or(lsn),
            status: TxnStatus::new(txn),
            sequence: 0,
            writes: Vec::new(),
            rows: HashMap::new(),
        })
    }

    fn push(
        &mut self,
        tree: Arc<Tree>,
        status: Option<Arc<TxnStatus>>,
        sequence: u32,
        kind: OpKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let hash = twox_hash::XxHash3_64::oneshot_with_seed(tree.id(), key);
        let worker = (hash % self.pending.len() as u64) as usize;
        let batch = &mut self.pending[worker];
        batch.bytes.extend_from_slice(key);
        let key_end = batch.bytes.len();
        batch.bytes.extend_from_slice(value);
        let value_end = batch.bytes.len();
        batch.items.push(Item { tree, status, sequence, kind, key_end, value_end });
        self.operations += 1;
        if batch.items.len() >= BATCH_ITEMS || value_end >= BATCH_BYTES {
            self.flush(worker)?;
        }
        Ok(())
    }

    fn flush(&mut self, worker: usize) -> Result<()> {
        let batch = std::mem::take(&mut self.pending[worker]);
        match &self.sink {
            Sink::Inline(applier) => applier.apply(&batch),
            // A worker is there as long as its queue: it only ends when the queue does.
            Sink::Queues(queues) => queues[worker]
                .send(batch)
                .map_err(|_| Error::OutOfMemory("a thread that replays the log has died"))?,
        }
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
        let trees: Vec<Arc<Tree>> = self.trees.into_values().flatten().collect();
        for tree in &trees {
            tree.add_entries(self.rows.get(&tree.id()).copied().unwrap_or(0));
        }
        Ok(Replayed {
            prepared: self.prepared.into_values().collect(),
            damaged: HashMap::new(),
            trees,
            operations: self.operations,
        })
    }
}

/// What an operation adds to the number of rows.
pub fn rows_added(kind: OpKind) -> i64 {
    match kind {
        OpKind::Insert => 1,
        OpKind::Update => 0,
        OpKind::Delete => -1,
    }
}
