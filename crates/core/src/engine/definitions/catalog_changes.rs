//! Rows of the catalog that are changed in one synced transaction: what all DDL ends with.

use crate::catalog::{link_key, name_key, referrer_key, tree_key, TableRecord};
use crate::engine::data::tables::Table;
use crate::engine::shared::Shared;
use crate::engine::txn::work::Work;
use crate::log::CounterChange;
use crate::mvcc::TxnStatus;
use crate::options::CommitFlush;
use crate::types::{TreeId, WriteOp};
use crate::Result;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Rows of the catalog to be changed together, and counters; or temporary tables.
#[derive(Default)]
pub(in crate::engine) struct CatalogChanges {
    rows: Vec<(Vec<u8>, Option<Vec<u8>>, bool)>,
    counters: Vec<(Arc<Table>, u64)>,
    temporary: Vec<(String, Option<TableRecord>)>,
}

impl CatalogChanges {
    pub(super) fn remove(&mut self, name: &str, record: &TableRecord) {
        if record.residence.is_temporary() {
            return self.temporary.push((name.to_string(), None));
        }
        self.rows.push((name_key(name), None, false));
        for (tree, _) in &record.trees {
            self.remove_tree(*tree);
        }
        self.unlink(name, record);
    }

    pub(super) fn add(&mut self, name: &str, record: &TableRecord) {
        if record.residence.is_temporary() {
            return self.temporary.push((name.to_string(), Some(record.clone())));
        }
        self.rows.push((name_key(name), Some(record.encode()), true));
        for (tree, _) in &record.trees {
            self.add_tree(*tree, name);
        }
        self.link(name, record);
    }

    fn add_tree(&mut self, tree: TreeId, name: &str) {
        self.rows.push((tree_key(tree).to_vec(), Some(name.as_bytes().to_vec()), true));
    }

    fn remove_tree(&mut self, tree: TreeId) {
        self.rows.push((tree_key(tree).to_vec(), None, false));
    }

    /// The table of that record has the same trees and links as before but for these. The record says the rest.
    pub(super) fn exchange_trees(&mut self, name: &str, old: &TableRecord, new: &TableRecord) {
        if old.residence.is_temporary() {
            return;
        }
        debug_assert_eq!(old.space, new.space, "trees go to another file");
        let has = |record: &TableRecord, id| record.trees.iter().any(|(tree, _)| *tree == id);
        new.trees.iter().filter(|(id, _)| !has(old, *id)).for_each(|(id, _)| self.add_tree(*id, name));
        old.trees.iter().filter(|(id, _)| !has(new, *id)).for_each(|(id, _)| self.remove_tree(*id));
    }

    /// The table has other links than before, and the same trees.
    pub(super) fn relink(&mut self, name: &str, old: &TableRecord, new: &TableRecord) {
        self.unlink(name, old);
        self.link(name, new);
        self.update(name, new);
    }

    fn unlink(&mut self, name: &str, record: &TableRecord) {
        let targets = record.targets().into_iter();
        self.rows.extend(targets.map(|target| (referrer_key(target, name), None, false)));
        self.rows.extend(record.link_names().map(|link| (link_key(link), None, false)));
    }

    fn link(&mut self, name: &str, record: &TableRecord) {
        let targets = record.targets().into_iter();
        self.rows.extend(targets.map(|target| (referrer_key(target, name), Some(Vec::new()), true)));
        let name = name.as_bytes();
        self.rows.extend(record.link_names().map(|link| (link_key(link), Some(name.to_vec()), true)));
    }

    /// The table has the same trees and links as before.
    pub(in crate::engine) fn update(&mut self, name: &str, record: &TableRecord) {
        if record.residence.is_temporary() {
            return self.temporary.push((name.to_string(), Some(record.clone())));
        }
        self.rows.push((name_key(name), Some(record.encode()), false));
    }

    /// The table's counter from then on.
    pub(super) fn set_counter(&mut self, table: Arc<Table>, value: u64) {
        self.counters.push((table, value));
    }

    /// One transaction, durable when it returns; of temporary tables nothing is logged.
    pub(in crate::engine) fn commit(&self, shared: &Shared) -> Result<()> {
        let catalog = &shared.system.catalog;
        let mut work = Box::new(Work::new(shared.ids.next_txn()));
        shared.counted.active.add(1);
        for (key, value, is_new) in &self.rows {
            let op = match value {
                Some(value) if *is_new => WriteOp::Insert(value),
                Some(value) => WriteOp::Update(value),
                None => WriteOp::Delete,
            };
            if let Err(error) = work.write(shared, catalog, key, op) {
                // Not prepared: there is nothing to fail.
                let _ = work.rollback(shared, CommitFlush::Lazy);
                return Err(error);
            }
        }
        for (table, value) in &self.counters {
            work.note_counter(table, *value, CounterChange::Set);
        }
        work.commit(shared, CommitFlush::Sync).map_err(|(error, _)| error)?;
        for (table, value) in &self.counters {
            table.counter_cell().store(*value, Ordering::SeqCst);
        }
        shared.definitions.temporary.change(&self.temporary);
        Ok(())
    }

    /// Changes what an engine shows that is only read. Nobody has read the catalog before.
    pub(super) fn show(&self, shared: &Shared) -> Result<()> {
        let status = TxnStatus::new(0);
        shared.clock.publish(&status);
        for (key, value, _) in &self.rows {
            let op = value.as_deref().map_or(WriteOp::Delete, WriteOp::Update);
            shared.system.catalog.write(key, op, &status, 1)?;
        }
        Ok(())
    }
}
