//! The handle of a transaction.

use super::cursor::Cursor;
use super::vitals::Vitals;
use super::work::{Phase, Spent, Work};
use crate::engine::data::tables::Table;
use crate::engine::shared::Shared;
use crate::lock::{LockOutcome, WaitRequest};
use crate::log::CounterChange;
use crate::tree::{Reader, Tree};
use crate::types::{Isolation, LockMode, Timestamp, TxnId, View, WriteOp};
use crate::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;

/// A point within a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(pub(crate) u32);

/// A transaction; dropped without commit it is rolled back, unless it is prepared: then it waits for
/// [`crate::engine::Engine::commit_prepared`] or [`crate::engine::Engine::rollback_prepared`].
pub struct Transaction {
    shared: Arc<Shared>,
    isolation: Isolation,
    /// There until the end.
    work: Option<Box<Work>>,
    /// Memory for the next, once it has ended in place.
    spent: Option<Spent>,
    id: TxnId,
}

const ENDED: Error = Error::Xid("the transaction has ended");

impl Transaction {
    pub(in crate::engine) fn new(shared: Arc<Shared>, isolation: Isolation) -> Transaction {
        let id = shared.ids.next_txn();
        shared.counted.active.add(1);
        Transaction { shared, isolation, work: Some(Box::new(Work::new(id))), spent: None, id }
    }

    /// The handle's next transaction, in the memory of the last, which has ended by [`Transaction::commit_in_place`] or
    /// [`Transaction::try_rollback`] (what is open is left as by a drop): a session has one after the other.
    pub fn begin_next(&mut self, isolation: Isolation) {
        self.abandon();
        debug_assert!(self.work.is_none(), "the last transaction goes on");
        let id = self.shared.ids.next_txn();
        debug_assert!(id > self.id, "transaction {id} comes after {}", self.id);
        self.shared.counted.active.add(1);
        self.work = Some(match self.spent.take() {
            Some(spent) => spent.renew(id),
            None => Box::new(Work::new(id)),
        });
        (self.isolation, self.id) = (isolation, id);
    }

    /// What it has done so far, and the engine, until its end.
    pub(super) fn opened(&mut self) -> Result<(&mut Work, &Shared)> {
        Ok((self.work.as_deref_mut().ok_or(ENDED)?, &self.shared))
    }

    pub(super) fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }

    /// Its identifier.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// Its isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Changes the level, per statement; a snapshot already taken stays.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.isolation = isolation;
    }

    /// Takes the snapshot, if there is none, and returns its timestamp.
    pub fn open_snapshot(&mut self) -> Timestamp {
        match &mut self.work {
            Some(work) => work.open_snapshot(&self.shared),
            None => self.shared.clock.last_committed(),
        }
    }

    /// The timestamp of the snapshot, if there is one.
    pub(in crate::engine) fn snapshot(&self) -> Option<Timestamp> {
        self.work.as_ref().and_then(|work| work.snapshot.as_ref()).map(|snapshot| snapshot.timestamp())
    }

    /// Whether it reads as of a snapshot that it has taken.
    pub fn has_snapshot(&self) -> bool {
        self.snapshot().is_some()
    }

    /// Whether the tree's content is younger than its snapshot, if it has one: reads end with [`Error::TableChanged`].
    pub fn precedes(&self, tree: &Tree) -> bool {
        self.snapshot().is_some_and(|snapshot| snapshot < tree.visible_from())
    }

    /// Gives the snapshot back; the next read takes another (READ COMMITTED: at the end of each statement).
    pub fn close_snapshot(&mut self) {
        if let Some(work) = &mut self.work {
            work.close_snapshot();
        }
    }

    /// How many entries it has added to the tree so far, less those that it has deleted.
    pub fn rows_added(&self, tree: &Tree) -> i64 {
        self.work.as_ref().map_or(0, |work| work.rows_added(tree))
    }

    /// Whether it has written to the tree, also if that was undone.
    pub fn has_written(&self, tree: &Tree) -> bool {
        self.work.as_ref().is_some_and(|work| work.has_written(tree))
    }

    /// Names the session in [`crate::engine::Engine::snapshots`], for snapshots taken from now on.
    pub fn set_label(&mut self, session: u64) {
        if let Some(work) = &mut self.work {
            work.label = session;
        }
    }

    /// Where others see how far it is, and the next ones of the handle.
    pub fn show_by(&mut self, vitals: &Arc<Vitals>) {
        if let Some(work) = &mut self.work {
            work.show_by(vitals);
        }
    }

    /// They see it as it is now.
    pub fn show(&self) {
        if let Some(work) = &self.work {
            work.show();
        }
    }

    /// Through whose eyes a cursor reads for this transaction.
    pub(in crate::engine) fn reader(&mut self, view: View) -> Reader<'_> {
        let snapshot = match view {
            View::Snapshot => self.open_snapshot(),
            View::Latest | View::Pending => Timestamp::MAX,
        };
        let work = self.work.as_ref();
        let own = work.and_then(|work| work.status());
        let guard = work.and_then(|work| work.snapshot.as_ref()).filter(|_| view == View::Snapshot);
        Reader { snapshot, own, pending: view == View::Pending, fate: guard.map(|guard| guard.fate()) }
    }

    /// A cursor returned a key.
    pub(in crate::engine) fn count_read(&mut self) {
        self.count_reads(1);
    }

    /// So many keys were read; those of a window nobody else counts.
    pub fn count_reads(&mut self, keys: u64) {
        if let Some(work) = &mut self.work {
            work.reads += keys;
        }
    }

    /// Writes; the caller holds the exclusive row lock where one is due. Conflicts with the snapshot are for
    /// [`Transaction::changed_since_snapshot`] to find. May wait for memory or for a checkpoint. After an error the
    /// write has not happened, or the caller has to roll back to a savepoint before it.
    pub fn write(&mut self, tree: &Arc<Tree>, key: &[u8], op: WriteOp<'_>) -> Result<()> {
        if !matches!(op, WriteOp::Delete) {
            self.shared.check_space()?;
        }
        writing(&mut self.work, &self.shared)?.write(&self.shared, tree, key, op)
    }

    /// The next write to the tree of `cursor` is likely to be at the key that it stands on: it will not descend for it.
    #[inline]
    pub fn aim(&mut self, cursor: &Cursor) {
        if let (Some(work), Some((tree, node))) = (self.work.as_deref_mut(), cursor.leaf()) {
            work.aim(tree, node);
        }
    }

    /// Like [`Transaction::write`], for one of many entries of an index, whose keys come in another order: it may wait
    /// in memory until others can be written with it, as late as [`Transaction::finish_writes`]. Whoever looks for a
    /// key before he writes it must use [`Transaction::write`]. Whether a range lock covers the key is to be asked
    /// (again) after that, by [`Transaction::check_finished`].
    pub fn write_later(&mut self, tree: &Arc<Tree>, key: &[u8], op: WriteOp<'_>) -> Result<()> {
        if !matches!(op, WriteOp::Delete) {
            self.shared.check_space()?;
        }
        writing(&mut self.work, &self.shared)?.write_later(&self.shared, tree, key, op)
    }

    /// Like [`Transaction::write_later`] of a row, or of an entry of a unique index, whose key the caller has locked
    /// exclusively and nobody may have: if it is taken, whatever writes the entry gives [`Error::DuplicateKey`],
    /// [`Transaction::finish_writes`] at the latest.
    pub fn claim_later(&mut self, tree: &Arc<Tree>, key: &[u8], value: &[u8]) -> Result<()> {
        self.shared.check_space()?;
        writing(&mut self.work, &self.shared)?.claim_later(&self.shared, tree, key, value)
    }

    /// After [`Error::DuplicateKey`] or [`Error::DuplicateRow`]: the value of a row that was written before it, or is
    /// going to be. A read would try to have it written, and fail again.
    pub fn peek(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.work.as_deref_mut().ok_or(ENDED)?.peek(&self.shared, tree, key)
    }

    /// Whether an index entry is in the tree, or is going to be, as far as this transaction sees it. For assertions of
    /// who deletes one: it costs a descent, and may cost a walk over all that is gathered.
    pub fn has_entry(&self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        self.work.as_deref().ok_or(ENDED)?.has_entry(tree, key)
    }

    /// Like [`Transaction::write`] of an insert, for many rows in the order of their keys: they are gathered into
    /// blocks, which go to the table's file past the log. The key is not in the tree, and the caller holds its
    /// exclusive row lock; whether a range lock covers it is to be asked (again) before the commit, after
    /// [`Transaction::finish_writes`].
    pub fn append(&mut self, tree: &Arc<Tree>, key: &[u8], value: &[u8]) -> Result<()> {
        self.shared.check_space()?;
        writing(&mut self.work, &self.shared)?.append(&self.shared, tree, key, value)
    }

    /// Whether the row with `key`, which is to be appended, is going to be sorted first, in `sort_bytes` of memory: it
    /// does not lie behind the ones before, and the tree has no others. Then its key may be taken: whatever writes the
    /// sorted rows, [`Transaction::finish_writes`] at the latest, gives [`Error::DuplicateRow`].
    pub fn sorts(&mut self, tree: &Arc<Tree>, key: &[u8], sort_bytes: usize) -> Result<bool> {
        // It only says where the row is going to: the append that follows looks whether anything may be written.
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        work.sorts(&self.shared, tree, key, sort_bytes)
    }

    /// Whether rows that were appended came in no order, so that [`Transaction::append`] writes one by one from now on
    /// and [`Transaction::claim_later`] is cheaper.
    pub fn is_scattered(&self) -> bool {
        self.work.as_deref().is_some_and(|work| work.direct.is_scattered())
    }

    /// Everything that was appended, or written for later, is where other transactions meet it. After an error roll
    /// back to a savepoint before it.
    pub fn finish_writes(&mut self) -> Result<()> {
        let Some(work) = self.work.as_deref_mut() else { return Ok(()) };
        work.finish_append(&self.shared)?;
        work.finish_deferred(&self.shared)
    }

    /// After an error of [`Transaction::finish_writes`], for who drops the trees that it has written to and does not
    /// roll back.
    pub fn abandon_writes(&mut self) {
        if let Some(work) = self.work.as_deref_mut() {
            work.drop_deferred(&self.shared);
        }
    }

    /// After [`Transaction::finish_writes`]: waits while another transaction's range lock covers what
    /// [`Transaction::write_later`] has put in.
    pub fn check_finished(&mut self, wait: &WaitRequest<'_>) -> Result<()> {
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        work.check_deferred(&self.shared, wait)
    }

    /// Whether [`Transaction::check_finished`] has anything to look at.
    pub fn is_unchecked(&self) -> bool {
        self.work.as_deref().is_some_and(|work| work.deferred.is_unchecked())
    }

    /// What it has written to the tree is to be seen by its next read, of `key` or of anything.
    pub(in crate::engine) fn show_writes(&mut self, tree: &Arc<Tree>, key: Option<&[u8]>) -> Result<()> {
        let Some(work) = self.work.as_deref_mut() else { return Ok(()) };
        work.show_deferred(&self.shared, tree)?;
        work.show_append(&self.shared, tree, key)
    }

    /// What the transaction writes to `table`, which nobody else has seen, is how the table begins: snapshots from
    /// before its commit get [`Error::TableChanged`] and not a table without rows.
    pub fn founds(&mut self, table: &Arc<Table>) {
        if let Some(work) = &mut self.work {
            work.founded.push(table.clone());
        }
    }

    /// Whether the next write waits for a checkpoint, as too much log was written since the last one.
    #[inline]
    pub fn checkpoint_is_far_behind(&self) -> bool {
        self.shared.checkpoint_is_far_behind()
    }

    /// What a write does by itself, for callers that can be interrupted: to be called before it, outside of any latch.
    pub fn wait_for_checkpoint(&mut self, wait: &WaitRequest<'_>) -> Result<()> {
        (wait.before_wait)();
        self.shared.wait_for_checkpoint_slowly(wait.interrupted)
    }

    /// Whether [`Transaction::wait_for_history`] has anything to wait for.
    #[inline]
    pub fn history_is_full(&self) -> bool {
        self.shared.history_is_full()
    }

    /// To be called before a write, if writers are to wait while old snapshots hold as much as they may (see
    /// [`crate::HistoryFull::Wait`]): [`Error::HistoryFull`] if that takes too long. Costs two loads otherwise.
    pub fn wait_for_history(&mut self, wait: &WaitRequest<'_>) -> Result<()> {
        self.shared.wait_for_history(wait)
    }

    /// The number of its last write.
    pub(in crate::engine) fn last_write(&self) -> Result<u32> {
        Ok(self.work.as_deref().ok_or(ENDED)?.next_sequence()? - 1)
    }

    /// Makes it a likelier (positive) or less likely victim of deadlocks than others.
    pub fn set_victim_preference(&mut self, preference: i32) {
        if let Some(work) = self.work.as_deref_mut() {
            work.locks(&self.shared).set_victim_preference(preference);
        }
    }

    /// Locks a row.
    pub fn lock(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<LockOutcome> {
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        work.locks(&self.shared).lock(tree.id(), key, mode, wait)
    }

    /// Locks all keys of `length` bytes from `from` on and below `below` at once, also those that no row has, and says
    /// so; `false`: none, they have to be locked one by one, since somebody else may have locked some. Never waits.
    /// They stay locked to the end: [`Transaction::give_back`] does not give them back.
    pub fn lock_keys(
        &mut self,
        tree: &Arc<Tree>,
        from: &[u8],
        below: &[u8],
        length: usize,
        mode: LockMode,
    ) -> Result<bool> {
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        Ok(work.locks(&self.shared).lock_keys(tree.id(), from, below, length, mode))
    }

    /// Locks a range of keys.
    pub fn lock_range(
        &mut self,
        tree: &Arc<Tree>,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<()> {
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        work.locks(&self.shared).lock_range(tree.id(), from, to, mode, wait)
    }

    /// Waits while another transaction's range lock covers `key`.
    pub fn check_insert(&mut self, tree: &Arc<Tree>, key: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        work.locks(&self.shared).check_insert(tree.id(), key, wait)
    }

    /// Undoes what the last [`Transaction::lock`] of this row did: of a key that is not changed after all, or of a row
    /// that did not match (READ COMMITTED).
    pub fn give_back(&mut self, tree: &Arc<Tree>, key: &[u8], outcome: LockOutcome) {
        if let Some(locks) = self.work.as_deref_mut().and_then(|work| work.opened_locks()) {
            locks.give_back(tree.id(), key, outcome);
        }
    }

    /// A point to go back to.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.work.as_deref_mut().map_or(0, |work| work.savepoint(&self.shared)))
    }

    /// A point to go back to if the row that follows cannot be written whole: as [`Transaction::savepoint`], but good
    /// only until the next call of it, and without cost.
    pub fn row_savepoint(&mut self) -> Savepoint {
        Savepoint(self.work.as_deref_mut().map_or(0, |work| work.row_savepoint(&self.shared)))
    }

    /// Undoes the writes since; locks are kept. O(1) for the trees; the redo since is dropped.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        if work.phase != Phase::Active {
            return Err(Error::Xid("the transaction is prepared"));
        }
        work.rollback_to(&self.shared, savepoint.0)
    }

    /// Raises the table's counter to at least `value`, and persists that with the next log write, also if the
    /// transaction is rolled back: values given out are not given out again.
    pub fn note_counter(&mut self, table: &Table, value: u64) {
        table.counter_cell().fetch_max(value, std::sync::atomic::Ordering::SeqCst);
        if let Some(work) = &mut self.work {
            work.note_counter(table, value, CounterChange::Raise);
        }
    }

    /// Sets the table's counter, also downwards; persisted as by [`Transaction::note_counter`].
    pub fn set_counter(&mut self, table: &Table, value: u64) {
        table.counter_cell().store(value, std::sync::atomic::Ordering::SeqCst);
        if let Some(work) = &mut self.work {
            work.note_counter(table, value, CounterChange::Set);
        }
    }

    /// What it finds in the tree, or does not find, is to hold to its end, though none of its statements names the
    /// table: [`crate::engine::Engine::wait_for_holders`] waits for it.
    #[inline]
    pub fn counts_on(&mut self, tree: &Tree) {
        if let Some(work) = &mut self.work {
            work.counts_on(&self.shared, tree.id());
        }
    }

    /// Whether it counts on the tree, and somebody waits for it because of that: so the tree's table stays as it is.
    pub fn is_awaited(&self, tree: &Tree) -> bool {
        let counts = self.work.as_ref().is_some_and(|work| work.has_counted_on(tree.id()));
        counts && self.shared.undecided.intents.awaits(tree.id())
    }

    /// Whether it has asked for any lock, which it keeps to its end.
    pub fn has_locks(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.has_locks())
    }

    /// Whether it has written anything that is not undone.
    pub fn has_writes(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.has_writes())
    }

    /// First phase of a two-phase commit: its writes and `xid` are as durable as the commit flush setting says when
    /// this returns. From here on only commit or rollback. After an error it is as before and can only be rolled back.
    /// Of one without writes the log says nothing, and a restart knows nothing.
    pub fn prepare(&mut self, xid: &[u8]) -> Result<()> {
        self.prepare_with(xid, true)
    }

    /// The same for a coordinator that asks, after a restart, for those only that it has to commit: of a transaction
    /// all of whose writes are in memory alone the log says nothing.
    pub fn prepare_what_lasts(&mut self, xid: &[u8]) -> Result<()> {
        self.prepare_with(xid, false)
    }

    fn prepare_with(&mut self, xid: &[u8], always_logged: bool) -> Result<()> {
        let work = self.work.as_deref_mut().ok_or(ENDED)?;
        if work.phase != Phase::Active {
            return Err(Error::Xid("the transaction is prepared already"));
        }
        self.shared.undecided.prepared.claim(xid)?;
        let flush = self.shared.settings.commit_flush();
        let prepared = work.prepare(&self.shared, xid, flush, always_logged);
        prepared.inspect_err(|_| self.shared.undecided.prepared.forget(xid))
    }

    /// Publishes a prepared transaction: O(1), no I/O. To be called in the order in which the binlog has the
    /// transactions.
    pub fn commit_ordered(&mut self) {
        if let Some(work) = &mut self.work {
            work.publish_prepared(&self.shared);
        }
    }

    /// Commits. After an error the transaction was rolled back, or, if it was prepared, is still prepared.
    pub fn commit(mut self) -> Result<()> {
        self.commit_in_place()
    }

    /// [`Transaction::commit`]; the handle stays, ended, for [`Transaction::begin_next`].
    pub fn commit_in_place(&mut self) -> Result<()> {
        let Some(work) = self.work.take() else { return Err(ENDED) };
        let xid = work.xid.clone();
        let flush = self.shared.settings.commit_flush();
        let result = match work.commit(&self.shared, flush) {
            Ok(spent) => {
                self.spent = Some(spent);
                Ok(())
            }
            Err((error, None)) => Err(error),
            Err((error, Some(undecided))) => {
                self.shared.undecided.prepared.leave(undecided);
                return Err(error);
            }
        };
        self.forget(xid);
        result
    }

    /// Undoes everything; [`Transaction::try_rollback`] says whether that went well.
    pub fn rollback(mut self) {
        // Only a prepared one can fail, and then it waits for its coordinator.
        let _ = self.try_rollback();
    }

    /// Undoes everything. That a prepared transaction was rolled back is as durable as the commit flush setting says
    /// when this returns; after an error it is still prepared. The handle stays, for [`Transaction::begin_next`].
    pub fn try_rollback(&mut self) -> Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let xid = work.xid.clone();
        let flush = self.shared.settings.commit_flush();
        match work.rollback(&self.shared, flush) {
            Ok(spent) => self.spent = Some(spent),
            Err((error, undecided)) => {
                self.shared.undecided.prepared.leave(undecided);
                return Err(error);
            }
        }
        self.forget(xid);
        Ok(())
    }

    /// Lets a prepared transaction wait for its coordinator (as dropping it does); any other is rolled back.
    pub fn detach(self) {}

    /// What becomes of one that is not ended and has no handle any more.
    fn abandon(&mut self) {
        match self.work.as_ref().map(|work| work.phase) {
            Some(Phase::Prepared) => {
                if let Some(work) = self.work.take() {
                    self.shared.undecided.prepared.leave(work);
                }
            }
            // There is nothing to fail: see there.
            Some(Phase::Active) => drop(self.try_rollback()),
            // Decided: only the end is missing. A failure has turned the engine read-only.
            Some(Phase::Published | Phase::PublishedUnlogged) => drop(self.commit_in_place()),
            None => {}
        }
    }

    fn forget(&self, xid: Option<Vec<u8>>) {
        if let Some(xid) = xid {
            self.shared.undecided.prepared.forget(&xid);
        }
    }
}

/// What a transaction may write with, once there is room for more.
fn writing<'a>(work: &'a mut Option<Box<Work>>, shared: &Shared) -> Result<&'a mut Work> {
    shared.health.check()?;
    shared.wait_for_checkpoint()?;
    shared.mind_history();
    let work = work.as_deref_mut().ok_or(ENDED)?;
    match work.phase {
        Phase::Active => Ok(work),
        _ => Err(Error::Xid("the transaction is prepared")),
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abandon();
    }
}
