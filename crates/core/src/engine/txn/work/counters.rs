//! Counters (AUTO_INCREMENT) that a transaction has raised or set: they are in the log before whatever uses them, also
//! if it is rolled back.

use super::Work;
use crate::checkpoint::PersistedCounter;
use crate::engine::data::tables::Table;
use crate::engine::shared::Shared;
use crate::log::{CounterChange, LogRecord};
use crate::types::TreeId;
use crate::Result;
use std::sync::Arc;

/// One that the next record is to be preceded by.
pub(super) struct NotedCounter {
    table: TreeId,
    cell: Arc<PersistedCounter>,
    value: u64,
    pub(super) change: CounterChange,
}

impl Work {
    /// That of a table that is not logged is not persisted: it is empty after a restart, or gone, and counts from the
    /// beginning.
    pub(in crate::engine) fn note_counter(&mut self, table: &Table, value: u64, change: CounterChange) {
        let Some(id) = table.counter_id().filter(|_| table.is_logged()) else { return };
        let cell = table.persisted_counter();
        // What the log has is no help if this transaction is about to set the counter down.
        let sets = self.counters.iter().any(|noted| noted.table == id && noted.change == CounterChange::Set);
        if change == CounterChange::Raise && !sets && cell.is_logged(value) {
            return;
        }
        match self.counters.last_mut() {
            Some(last)
                if last.table == id && last.change == CounterChange::Raise && change == last.change =>
            {
                last.value = value.max(last.value);
            }
            _ => self.counters.push(NotedCounter { table: id, cell: cell.clone(), value, change }),
        }
    }

    /// Queues the noted counters, so that they are in the log before the record that follows.
    pub(super) fn log_counters(&mut self, shared: &Shared) -> Result<()> {
        for NotedCounter { table, cell, value, change } in self.counters.drain(..) {
            // A checkpoint that captures the list before this finds the record behind its start of replay.
            cell.announce(value, change);
            shared.data.counters.lock().entry(table).or_insert_with(|| cell.clone());
            let record = LogRecord::Counter { txn: self.id, table, value, change }.encode();
            shared.log.append(record).inspect_err(|error| shared.log_failed(error))?;
            cell.logged(value, change);
        }
        Ok(())
    }
}
