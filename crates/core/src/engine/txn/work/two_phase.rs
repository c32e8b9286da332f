//! Two-phase commit: preparing, publishing what is prepared, and rolling it back; also what a start finds prepared.

use super::{Phase, Spent, Touched, Work};
use crate::checkpoint::recovery::RecoveredTransaction;
use crate::engine::data::tables::{row_id_of_key, Table};
use crate::engine::data::trail::Trail;
use crate::engine::shared::Shared;
use crate::engine::txn::claim::Keys;
use crate::lock::{Intent, WaitRequest};
use crate::log::{LogRecord, Ops, RedoBuffer};
use crate::options::CommitFlush;
use crate::types::LockMode;
use crate::{Error, Result};
use std::sync::Arc;

impl Work {
    /// A prepared transaction as the log had it; takes its locks again.
    pub(in crate::engine) fn recovered(
        shared: &Shared,
        from: RecoveredTransaction,
        tables: &[Arc<Table>],
    ) -> Result<Work> {
        debug_assert!(from.records.iter().all(|&record| record >= from.first), "a record that is not kept");
        let mut work = Work::new(from.txn);
        work.phase = Phase::Prepared;
        let trail = Trail::found(from.txn, &from.xid, from.records, from.bytes, &from.voids);
        work.trail = Some(shared.hold_log_from(&work, from.first, trail));
        work.xid = Some(from.xid);
        work.logged_redo = Some(from.sequence);
        work.status = Some(from.status);
        work.sequence = from.sequence;
        // What one locked too much another might have had.
        work.locks(shared).never_widen();
        for (tree, key) in &from.writes {
            // Nobody else has locks but other prepared transactions, with which it had no conflict when it was alive.
            work.locks(shared).lock(tree.id(), key, LockMode::Exclusive, &WaitRequest::no_wait())?;
            let table = tables.iter().find(|table| table.counter_id() == Some(tree.id()));
            if let (Some(table), Some(row)) = (table, row_id_of_key(key)) {
                table.raise_row_id(row);
            }
            let rows = from.rows.get(&tree.id()).copied().unwrap_or(0);
            work.touched.entry(tree.id()).or_insert_with(|| Touched::new(tree, rows));
        }
        work.enter_intent(shared);
        Ok(work)
    }

    /// Whoever changes one of its tables waits for its decision from now on, whether it has an owner or not.
    pub(super) fn enter_intent(&mut self, shared: &Shared) {
        if let Some(xid) = self.xid.as_ref().filter(|_| !self.touched.is_empty()) {
            let trees = self.touched.keys().copied().collect();
            self.intent.get_or_insert_with(|| shared.undecided.intents.enter(self.id)).prepare(xid, trees);
        }
    }

    pub(in crate::engine) fn prepare(
        &mut self,
        shared: &Shared,
        xid: &[u8],
        flush: CommitFlush,
        always_logged: bool,
    ) -> Result<()> {
        debug_assert!(self.phase == Phase::Active && self.xid.is_none(), "prepared twice");
        self.finish_append(shared)?;
        self.finish_deferred(shared)?;
        self.check(shared)?;
        self.xid = Some(xid.to_vec());
        self.enter_intent(shared);
        let logged = match always_logged && self.has_writes() || self.is_logged() {
            true => self.log_prepare(shared, xid, flush),
            false => self.log_counters(shared),
        };
        match logged {
            Ok(()) => {
                self.phase = Phase::Prepared;
                // Nothing is read or written any more, and the decision may be long in coming.
                self.keys = Keys::default();
                if self.redo.is_empty() {
                    self.redo = RedoBuffer::new();
                }
                self.charge_memory(shared);
            }
            Err(_) => {
                self.xid = None;
                self.intent.iter_mut().for_each(Intent::withdraw);
            }
        }
        logged
    }

    fn log_prepare(&mut self, shared: &Shared, xid: &[u8], flush: CommitFlush) -> Result<()> {
        debug_assert!(!self.direct.has_writes(), "what is prepared lacks rows that were appended");
        let trail = self.hold_log(shared);
        self.direct.sync(shared)?;
        let record = LogRecord::Prepare { txn: self.id, xid, ops: self.redo.ops() };
        let record = record.encode();
        let logged = self.log_counters(shared).and_then(|()| trail.prepare(&shared.log, record, xid, flush));
        logged.inspect_err(|error| shared.log_failed(error))?;
        self.redo_is_logged(self.sequence);
        Ok(())
    }

    /// Publishes a prepared transaction. The record is queued before: a checkpoint that contains the transaction makes
    /// the log durable up to its record.
    pub(in crate::engine) fn publish_prepared(&mut self, shared: &Shared) {
        if self.phase != Phase::Prepared {
            return;
        }
        if !self.is_logged() {
            self.announce(shared);
            self.publish(shared);
            self.phase = Phase::Published;
            return;
        }
        self.announce(shared);
        let record = LogRecord::Commit { txn: self.id, ops: Ops::NONE }.encode();
        let logged = self.decide(|| shared.log.append_published(record, || self.publish(shared)));
        self.phase = match logged {
            Ok(_) => Phase::Published,
            Err(_) => {
                self.publish(shared);
                Phase::PublishedUnlogged
            }
        };
        if self.phase == Phase::Published {
            self.release_hold(shared);
        }
    }

    /// Rolls back what is not published. Without its commit record the log makes nothing of it, so nothing is waited
    /// for; but a prepared transaction comes back until the log says otherwise: its decision is as durable as `flush`
    /// says when this returns. Its memory comes back. If it could not be logged the transaction comes back with the
    /// error, undecided as before: its locks must outlive its records in the log.
    pub(in crate::engine) fn rollback(
        mut self: Box<Self>,
        shared: &Shared,
        flush: CommitFlush,
    ) -> Result<Spent, (Error, Box<Work>)> {
        match self.phase {
            Phase::Active => self.undo(shared),
            Phase::Prepared if !self.is_logged() => self.undo(shared),
            Phase::Prepared => {
                if let Err(error) = self.log_rollback(shared, flush) {
                    shared.log_failed(&error);
                    return Err((error, self));
                }
                self.undo(shared);
            }
            // Visible already: there is no way back.
            Phase::Published | Phase::PublishedUnlogged => self.release_hold(shared),
        }
        Ok(self.end(shared))
    }

    /// The decision on a prepared transaction.
    fn log_rollback(&mut self, shared: &Shared, flush: CommitFlush) -> Result<()> {
        // Blocks that the log names are free when it is rolled back. What is written there next must not be met by a
        // restart that has the transaction prepared still.
        let flush = if self.direct.trees().is_empty() { flush } else { CommitFlush::Sync };
        let record = LogRecord::Rollback { txn: self.id }.encode();
        self.decide(|| shared.log.harden(record, flush))?;
        self.logged_redo = None;
        Ok(())
    }
}
