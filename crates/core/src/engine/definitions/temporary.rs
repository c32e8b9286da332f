//! Temporary tables: their definitions, which go with the engine as their rows do.
//!
//! They stand beside the catalog and not in it, so that no DDL on them writes or waits for the log, and a restart,
//! after whatever end, finds nothing of them. A name is that of a temporary table or of another, never of both. What
//! is changed together is of one kind.

use crate::catalog::TableRecord;
use crate::checkpoint::PersistedCounter;
use crate::engine::data::tables::Table;
use crate::engine::shared::Shared;
use crate::store::Space;
use crate::sync::Mutex;
use crate::tree::Tree;
use crate::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// The records of all temporary tables, by name.
#[derive(Default)]
pub(crate) struct TemporaryTables(Mutex<HashMap<String, TableRecord>>);

impl TemporaryTables {
    pub(in crate::engine) fn record(&self, name: &str) -> Option<TableRecord> {
        self.0.lock().get(name).cloned()
    }

    /// In the order of `changes`; `None`: there is no table of that name any more.
    pub(in crate::engine) fn change(&self, changes: &[(String, Option<TableRecord>)]) {
        let mut records = self.0.lock();
        for (name, record) in changes {
            let before = match record {
                Some(record) => records.insert(name.clone(), record.clone()),
                None => records.remove(name),
            };
            debug_assert!(record.is_some() || before.is_some(), "there is no temporary table '{name}'");
        }
    }

    /// Sorted.
    pub(in crate::engine) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.lock().keys().cloned().collect();
        names.sort_unstable();
        names
    }
}

impl Shared {
    /// The record of the table `name`, of whatever kind, if there is one.
    pub(in crate::engine) fn find_record(&self, name: &str) -> Result<Option<TableRecord>> {
        match self.definitions.temporary.record(name) {
            Some(record) => Ok(Some(record)),
            None => self.system.table(name),
        }
    }

    /// A temporary table that is not open, and so is empty. All snapshots see it: they are its session's.
    pub(in crate::engine) fn make_temporary(&self, name: &str, record: TableRecord) -> Arc<Table> {
        let space = match record.residence.memory_limit() {
            Some(_) => {
                let path = self.space_path(record.space);
                Space::in_memory(&self.files, &path, record.space, record.residence)
            }
            None => Space::temporary(&self.files, record.space, &self.context.spill),
        };
        let open = |(id, spec)| Tree::open(id, spec, space.clone(), None, self.context.clone());
        let trees = record.trees.iter().copied().map(open).collect();
        Arc::new(Table::new(name, record.meta, space, trees, Arc::new(PersistedCounter::new(0))))
    }
}
