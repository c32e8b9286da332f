//! Applying operations: what a worker does.

use super::latest::{Latest, Operation};
use super::targets::Targets;
use crate::cache::{Cache, Purpose};
use crate::log::OpKind;
use crate::mvcc::TxnStatus;
use crate::sync::Mutex;
use crate::tree::{Tree, Write};
use crate::types::TreeId;
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// Operations that are looked up at the same time.
const FETCHED: usize = 16;

struct Item {
    tree: TreeId,
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
    statuses: Vec<Arc<TxnStatus>>,
    items: Vec<Item>,
    bytes: Vec<u8>,
}

impl Batch {
    /// Adds an operation.
    #[inline]
    pub fn push(&mut self, status: Option<&Arc<TxnStatus>>, operation: &Operation<'_>) {
        let status = status.map(|status| {
            if self.statuses.last().is_none_or(|last| !Arc::ptr_eq(last, status)) {
                self.statuses.push(status.clone());
            }
            self.statuses.len() as u32 - 1
        });
        let Operation { tree, kind, hash, sequence, fresh, .. } = *operation;
        self.bytes.extend_from_slice(operation.key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(operation.value);
        let value_end = self.bytes.len();
        self.items.push(Item { tree, status, sequence, kind, fresh, hash, key_end, value_end });
    }

    /// Bytes of memory in use.
    #[inline]
    pub fn memory(&self) -> usize {
        self.items.len() * std::mem::size_of::<Item>() + self.bytes.len()
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Its operations, with the statuses of those that are undecided.
    pub fn operations(&self) -> impl Iterator<Item = (Operation<'_>, Option<&Arc<TxnStatus>>)> {
        let mut start = 0;
        self.items.iter().map(move |item| {
            let operation = Operation {
                tree: item.tree,
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
pub(super) struct Applier<'a> {
    targets: &'a Targets<'a>,
    /// Of all operations without a status of their own.
    committed: Arc<TxnStatus>,
    /// Bytes of operations that a worker may hold back.
    held_bytes: usize,
    cache: Arc<Cache>,
    damaged: Mutex<HashMap<TreeId, Error>>,
    failed: Mutex<Option<Error>>,
}

impl<'a> Applier<'a> {
    /// Operations without a status of their own get `committed`. Each worker may hold back `held_bytes`, which `cache`
    /// accounts for.
    pub fn new(
        targets: &'a Targets<'a>,
        committed: Arc<TxnStatus>,
        held_bytes: usize,
        cache: Arc<Cache>,
    ) -> Applier<'a> {
        let (damaged, failed) = Default::default();
        Applier { targets, committed, held_bytes, cache, damaged, failed }
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
    applier: &'a Applier<'a>,
    latest: Latest,
    charged: usize,
}

impl<'a> Worker<'a> {
    /// One that has nothing yet.
    pub fn new(applier: &'a Applier<'a>) -> Worker<'a> {
        Worker { applier, latest: Latest::default(), charged: 0 }
    }

    /// Takes operations that come after all before.
    pub fn take(&mut self, batch: &Batch) {
        if batch.statuses.is_empty() {
            let mut operations = batch.operations();
            for run in batch.items.chunks(FETCHED) {
                self.latest.fetch(run.iter().map(|item| item.hash));
                operations.by_ref().take(run.len()).for_each(|(operation, _)| self.latest.add(&operation));
            }
        } else {
            self.take_undecided(batch);
        }
        self.charge(self.latest.memory());
        if self.latest.memory() > self.applier.held_bytes {
            self.flush();
        }
    }

    /// A prepared transaction still has its locks at the end of the log: on its keys nothing follows, what others did
    /// comes before.
    fn take_undecided(&mut self, batch: &Batch) {
        for (operation, status) in batch.operations() {
            if status.is_none() {
                self.latest.add(&operation);
            }
        }
        self.flush();
        for (operation, status) in batch.operations() {
            if let (Some(status), Some(tree)) = (status, self.applier.targets.tree(operation.tree)) {
                self.applier.write(&tree, &[write(&operation, status)]);
            }
        }
    }

    fn flush(&mut self) {
        if self.applier.check().is_err() {
            return;
        }
        let sorted = self.latest.sorted();
        for operations in sorted.chunk_by(|a, b| a.tree == b.tree) {
            let Some(tree) = self.applier.targets.tree(operations[0].tree) else { continue };
            let committed = &self.applier.committed;
            let writes: Vec<Write<'_>> =
                operations.iter().map(|operation| write(operation, committed)).collect();
            self.applier.write(&tree, &writes);
        }
        drop(sorted);
        self.latest.clear();
    }

    fn charge(&mut self, bytes: usize) {
        self.applier.cache.charge(Purpose::Recovery, bytes.saturating_sub(self.charged));
        self.applier.cache.discharge(Purpose::Recovery, self.charged.saturating_sub(bytes));
        self.charged = bytes;
    }

    /// Applies what is left.
    pub fn finish(mut self) {
        self.flush();
        self.charge(0);
    }
}

fn write<'a>(operation: &Operation<'a>, status: &'a Arc<TxnStatus>) -> Write<'a> {
    let Operation { key, kind, value, sequence, .. } = *operation;
    Write { key, op: kind.write(value), status, sequence }
}
