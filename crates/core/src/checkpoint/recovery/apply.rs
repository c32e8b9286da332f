//! Applying operations, on threads of their own or at once.

use super::latest::{Latest, Operation};
use crate::cache::Cache;
use crate::log::OpKind;
use crate::mvcc::TxnStatus;
use crate::tree::{Tree, Write};
use crate::types::TreeId;
use crate::{Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread::Scope;

const BATCH_ITEMS: usize = 16 << 10;
const BATCH_BYTES: usize = 1 << 20;
const QUEUED_BATCHES: usize = 4;

struct Item {
    /// Index of its tree.
    tree: u32,
    /// Index of its transaction's status; `None`: the shared, committed one.
    status: Option<u32>,
    sequence: u32,
    kind: OpKind,
    fresh: bool,
    hash: u64,
    key_end: usize,
    value_end: usize,
}

/// Operations for one worker, in log order. Keys and values lie one after another in `bytes`.
#[derive(Default)]
pub(super) struct Batch {
    trees: Vec<Arc<Tree>>,
    statuses: Vec<Arc<TxnStatus>>,
    items: Vec<Item>,
    bytes: Vec<u8>,
}

impl Batch {
    /// Makes a tree known, for [`Batch::push`].
    pub fn add_tree(&mut self, tree: &Arc<Tree>) -> u32 {
        self.trees.push(tree.clone());
        self.trees.len() as u32 - 1
    }

    /// Adds an operation on one of its trees.
    #[inline]
    pub fn push(&mut self, tree: u32, status: Option<&Arc<TxnStatus>>, operation: &Operation<'_>) {
        let status = status.map(|status| {
            if self.statuses.last().is_none_or(|last| !Arc::ptr_eq(last, status)) {
                self.statuses.push(status.clone());
            }
            self.statuses.len() as u32 - 1
        });
        let Operation { kind, hash, sequence, fresh, .. } = *operation;
        self.bytes.extend_from_slice(operation.key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(operation.value);
        let value_end = self.bytes.len();
        self.items.push(Item { tree, status, sequence, kind, fresh, hash, key_end, value_end });
    }

    /// Whether it is time to hand it over.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.items.len() >= BATCH_ITEMS || self.bytes.len() >= BATCH_BYTES
    }

    /// Its operations, with the statuses of those that are undecided.
    fn operations(&self) -> impl Iterator<Item = (Operation<'_>, Option<&Arc<TxnStatus>>)> {
        let mut start = 0;
        self.items.iter().map(move |item| {
            let operation = Operation {
                tree: self.trees[item.tree as usize].id(),
                key: &self.bytes[start..item.key_end],
                kind: item.kind,
                value: &self.bytes[item.key_end..item.value_end],
                hash: item.hash,
                sequence: item.sequence,
                fresh: item.fresh,
            };
            start = item.value_end;
            (operation, item.status.map(|at| &self.statuses[at as usize]))
        })
    }
}

/// What all workers share.
pub(super) struct Applier {
    /// Of all operations without a status of their own.
    committed: Arc<TxnStatus>,
    /// Bytes of operations that a worker may hold back.
    held_bytes: usize,
    cache: Arc<Cache>,
    damaged: Mutex<HashMap<TreeId, Error>>,
    failed: Mutex<Option<Error>>,
}

impl Applier {
    /// Operations without a status of their own get `committed`. Each worker may hold back `held_bytes`, which `cache` accounts for.
    pub fn new(committed: Arc<TxnStatus>, held_bytes: usize, cache: Arc<Cache>) -> Applier {
        Applier { committed, held_bytes, cache, damaged: Mutex::default(), failed: Mutex::default() }
    }

    /// The trees whose damage kept operations from being applied.
    pub fn into_damaged(self) -> HashMap<TreeId, Error> {
        self.damaged.into_inner()
    }

    /// What the log has for the tree cannot be applied.
    pub fn damage(&self, tree: TreeId, error: Error) {
        self.damaged.lock().entry(tree).or_insert(error);
    }

    /// The error that ended the replay, if there is one.
    pub fn check(&self) -> Result<()> {
        match &*self.failed.lock() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Writes operations, sorted by key, to their tree.
    fn write(&self, tree: &Tree, writes: &[Write<'_>]) {
        match tree.write_run(writes) {
            Ok(()) => {}
            Err(error) if error.is_damage_of(tree.space().path()) => {
                self.damage(tree.id(), error);
                if tree.is_salvaged() && writes.len() > 1 {
                    // What goes elsewhere is not lost with it.
                    writes.chunks(1).for_each(|write| self.write(tree, write));
                }
            }
            Err(error) => {
                self.failed.lock().get_or_insert(error);
            }
        }
    }
}

/// Holds back the operations that fall to one thread, and applies the last on each key.
pub(super) struct Worker<'a> {
    applier: &'a Applier,
    trees: HashMap<TreeId, Arc<Tree>>,
    latest: Latest,
    charged: usize,
}

impl<'a> Worker<'a> {
    fn new(applier: &'a Applier) -> Worker<'a> {
        Worker { applier, trees: HashMap::new(), latest: Latest::default(), charged: 0 }
    }

    fn take(&mut self, batch: &Batch) {
        for tree in &batch.trees {
            self.trees.entry(tree.id()).or_insert_with(|| tree.clone());
        }
        if batch.statuses.is_empty() {
            batch.operations().for_each(|(operation, _)| self.latest.add(&operation));
        } else {
            self.take_undecided(batch);
        }
        self.charge(self.latest.memory());
        if self.latest.memory() > self.applier.held_bytes {
            self.flush();
        }
    }

    /// A prepared transaction still has its locks at the end of the log: on its keys nothing follows, what others did comes before.
    fn take_undecided(&mut self, batch: &Batch) {
        for (operation, status) in batch.operations() {
            if status.is_none() {
                self.latest.add(&operation);
            }
        }
        self.flush();
        for (operation, status) in batch.operations() {
            if let (Some(status), Some(tree)) = (status, self.trees.get(&operation.tree)) {
                self.applier.write(tree, &[write(&operation, status)]);
            }
        }
    }

    fn flush(&mut self) {
        if self.applier.check().is_err() {
            return;
        }
        let sorted = self.latest.sorted();
        for operations in sorted.chunk_by(|a, b| a.tree == b.tree) {
            let Some(tree) = self.trees.get(&operations[0].tree) else { continue };
            let committed = &self.applier.committed;
            let writes: Vec<Write<'_>> =
                operations.iter().map(|operation| write(operation, committed)).collect();
            self.applier.write(tree, &writes);
        }
        drop(sorted);
        self.latest.clear();
    }

    fn charge(&mut self, bytes: usize) {
        self.applier.cache.charge(bytes.saturating_sub(self.charged));
        self.applier.cache.discharge(self.charged.saturating_sub(bytes));
        self.charged = bytes;
    }

    /// Applies what is left.
    fn finish(mut self) {
        self.flush();
        self.charge(0);
    }
}

fn write<'a>(operation: &Operation<'a>, status: &'a Arc<TxnStatus>) -> Write<'a> {
    let Operation { key, kind, value, sequence, .. } = *operation;
    Write { key, op: kind.write(value), status, sequence }
}

/// Where batches go: to a thread each, or (simulator, one thread) applied at once.
pub(super) enum Sink<'a> {
    /// By worker.
    Queues(Vec<SyncSender<Batch>>),
    /// Nobody else works.
    Inline(Worker<'a>),
}

impl<'a> Sink<'a> {
    /// Starts the workers; they apply what they still hold, and end, when the sink is dropped.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
        applier: &'scope Applier,
    ) -> Result<Sink<'a>>
    where
        'scope: 'a,
    {
        if threads <= 1 {
            return Ok(Sink::Inline(Worker::new(applier)));
        }
        let mut queues = Vec::with_capacity(threads);
        for number in 0..threads {
            let (sender, receiver) = sync_channel::<Batch>(QUEUED_BATCHES);
            let thread = std::thread::Builder::new().name(format!("teak-replay-{number}"));
            let work = move || {
                let mut worker = Worker::new(applier);
                receiver.iter().for_each(|batch| worker.take(&batch));
                worker.finish();
            };
            let spawned = thread.spawn_scoped(scope, work);
            spawned.map_err(|_| Error::OutOfMemory("no thread for the replay of the log"))?;
            queues.push(sender);
        }
        Ok(Sink::Queues(queues))
    }

    /// Hands a batch to its worker; waits while that one is far behind.
    pub fn send(&mut self, worker: usize, batch: Batch) -> Result<()> {
        match self {
            Sink::Inline(worker) => worker.take(&batch),
            // A worker is there as long as its queue: it only ends when the queue does.
            Sink::Queues(queues) => queues[worker]
                .send(batch)
                .map_err(|_| Error::OutOfMemory("a thread that replays the log has died"))?,
        }
        Ok(())
    }

    /// There is no more.
    pub fn finish(self) {
        if let Sink::Inline(worker) = self {
            worker.finish();
        }
    }
}
