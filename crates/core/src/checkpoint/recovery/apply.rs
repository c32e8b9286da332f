//! Applying batches of operations, on threads of their own or at once.

use crate::log::{Op, OpKind};
use crate::mvcc::TxnStatus;
use crate::tree::block::wide_head;
use crate::tree::{Tree, Write};
use crate::types::TreeId;
use crate::{Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread::Scope;

const BATCH_ITEMS: usize = 64 << 10;
const QUEUED_BATCHES: usize = 2;

struct Item {
    /// Index of its tree.
    tree: u32,
    /// Index of its transaction's status; `None`: the shared, committed one.
    status: Option<u32>,
    sequence: u32,
    kind: OpKind,
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

/// Where an item stands in the order of application.
struct Place {
    tree: u32,
    item: u32,
    /// The key's first bytes, as a number that sorts like them.
    head: u64,
}

impl Batch {
    /// Makes a tree known, for [`Batch::push`].
    pub fn add_tree(&mut self, tree: &Arc<Tree>) -> u32 {
        self.trees.push(tree.clone());
        self.trees.len() as u32 - 1
    }

    /// Adds an operation on one of its trees.
    #[inline]
    pub fn push(&mut self, tree: u32, status: Option<&Arc<TxnStatus>>, sequence: u32, op: &Op<'_>) {
        let status = status.map(|status| {
            if self.statuses.last().is_none_or(|last| !Arc::ptr_eq(last, status)) {
                self.statuses.push(status.clone());
            }
            self.statuses.len() as u32 - 1
        });
        self.bytes.extend_from_slice(op.key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(op.value);
        self.items.push(Item { tree, status, sequence, kind: op.kind, key_end, value_end: self.bytes.len() });
    }

    /// Whether it is time to apply it: a batch has at most so many bytes, but for a last large operation.
    #[inline]
    pub fn is_full(&self, limit_bytes: usize) -> bool {
        self.items.len() >= BATCH_ITEMS || self.bytes.len() >= limit_bytes
    }

    fn start(&self, item: usize) -> usize {
        item.checked_sub(1).map_or(0, |before| self.items[before].value_end)
    }

    fn key(&self, item: u32) -> &[u8] {
        &self.bytes[self.start(item as usize)..self.items[item as usize].key_end]
    }

    /// By tree and key, so that one leaf's work comes together; operations on one key in log order.
    fn order(&self) -> Vec<Place> {
        let place = |(number, item): (usize, &Item)| {
            let key = &self.bytes[self.start(number)..item.key_end];
            Place { tree: item.tree, item: number as u32, head: wide_head(key) }
        };
        let mut order: Vec<Place> = self.items.iter().enumerate().map(place).collect();
        order.sort_unstable_by(|a, b| {
            let heads = (a.tree, a.head).cmp(&(b.tree, b.head));
            heads.then_with(|| self.key(a.item).cmp(self.key(b.item))).then(a.item.cmp(&b.item))
        });
        order
    }

    /// Whether the operation has no effect because the one behind it, on the same key, has the same outcome.
    fn is_overwritten(&self, at: &Place, next: Option<&Place>) -> bool {
        next.is_some_and(|next| {
            (at.tree, at.head) == (next.tree, next.head)
                && self.items[at.item as usize].status.is_none()
                && self.items[next.item as usize].status.is_none()
                && self.key(at.item) == self.key(next.item)
        })
    }
}

/// Applies batches; shared by all workers.
pub(super) struct Applier {
    status: Arc<TxnStatus>,
    damaged: Mutex<HashMap<TreeId, Error>>,
    failed: Mutex<Option<Error>>,
}

impl Applier {
    /// Operations without a status of their own get `committed`.
    pub fn new(committed: Arc<TxnStatus>) -> Applier {
        Applier { status: committed, damaged: Mutex::default(), failed: Mutex::default() }
    }

    /// The trees whose damage kept operations from being applied.
    pub fn into_damaged(self) -> HashMap<TreeId, Error> {
        self.damaged.into_inner()
    }

    /// The error that ended the replay, if there is one.
    pub fn check(&self) -> Result<()> {
        match &*self.failed.lock() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Applies the last committed operation on each key, leaf by leaf.
    fn apply(&self, batch: &Batch) {
        let order = batch.order();
        let mut writes = Vec::new();
        for places in order.chunk_by(|a, b| a.tree == b.tree) {
            writes.clear();
            for (i, place) in places.iter().enumerate() {
                if !batch.is_overwritten(place, places.get(i + 1)) {
                    writes.push(self.write(batch, place));
                }
            }
            let tree = &batch.trees[places[0].tree as usize];
            match tree.write_run(&writes) {
                Ok(()) => {}
                Err(error @ (Error::Corrupt { .. } | Error::UnknownVersion { .. })) => {
                    self.damaged.lock().entry(tree.id()).or_insert(error);
                }
                Err(error) => {
                    self.failed.lock().get_or_insert(error);
                    return;
                }
            }
        }
    }

    fn write<'a>(&'a self, batch: &'a Batch, place: &Place) -> Write<'a> {
        let item = &batch.items[place.item as usize];
        let value = &batch.bytes[item.key_end..item.value_end];
        let status = item.status.map_or(&self.status, |index| &batch.statuses[index as usize]);
        Write { key: batch.key(place.item), op: item.kind.write(value), status, sequence: item.sequence }
    }
}

/// Where batches go: to a thread each, or (simulator, one thread) applied at once.
pub(super) enum Sink<'a> {
    /// By worker.
    Queues(Vec<SyncSender<Batch>>),
    /// Nobody else works.
    Inline(&'a Applier),
}

impl<'a> Sink<'a> {
    /// Starts the workers; they end when the sink is dropped.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
        applier: &'scope Applier,
    ) -> Result<Sink<'a>>
    where
        'scope: 'a,
    {
        if threads <= 1 {
            return Ok(Sink::Inline(applier));
        }
        let mut queues = Vec::with_capacity(threads);
        for number in 0..threads {
            let (sender, receiver) = sync_channel::<Batch>(QUEUED_BATCHES);
            let thread = std::thread::Builder::new().name(format!("teak-replay-{number}"));
            let spawned =
                thread.spawn_scoped(scope, move || receiver.iter().for_each(|batch| applier.apply(&batch)));
            spawned.map_err(|_| Error::OutOfMemory("no thread for the replay of the log"))?;
            queues.push(sender);
        }
        Ok(Sink::Queues(queues))
    }

    /// Hands a batch to its worker; waits while that one is far behind.
    pub fn send(&self, worker: usize, batch: Batch) -> Result<()> {
        match self {
            Sink::Inline(applier) => applier.apply(&batch),
            // A worker is there as long as its queue: it only ends when the queue does.
            Sink::Queues(queues) => queues[worker]
                .send(batch)
                .map_err(|_| Error::OutOfMemory("a thread that replays the log has died"))?,
        }
        Ok(())
    }
}
