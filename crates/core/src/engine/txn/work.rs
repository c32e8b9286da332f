//! What a transaction has done so far, apart from the handle: a prepared transaction outlives its handle as this.
//!
//! ```text
//! Active ── prepare ──> Prepared ── commit_ordered ──> Published
//!    └──────── commit, rollback ──┴───────── commit ──────┘──> ended
//! ```
//!
//! Order at the end of a transaction: its trees are marked dirty, its record is in the log, it is published, its hold
//! on the log is released, its locks are released. Each step relies on those before it.

mod counters;
mod savepoints;
mod spent;
mod two_phase;

use super::append::Direct;
use super::claim::Keys;
use super::deferred::Deferred;
use super::vitals::{Figures, Vitals};
use crate::cache::{Charge, Purpose};
use crate::engine::data::followed::NotedKeys;
use crate::engine::data::tables::Table;
use crate::engine::data::trail::Trail;
use crate::engine::shared::Shared;
use crate::lock::{Intent, LockOwner};
use crate::log::{CounterChange, LogRecord, RedoBuffer};
use crate::mvcc::{SnapshotGuard, TxnStatus};
use crate::numbers::NumberMap;
use crate::options::CommitFlush;
use crate::tree::{Node, Tree, Write};
use crate::types::{Timestamp, TreeId, TxnId, WriteOp};
use crate::{Error, Result};
use counters::NotedCounter;
use savepoints::Mark;
pub(in crate::engine) use spent::Spent;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Phase {
    /// Reads and writes.
    Active,
    /// Its redo and its XID are in the log; undecided.
    Prepared,
    /// Visible, and its commit record is queued.
    Published,
    /// Visible, but its commit record could not be queued.
    PublishedUnlogged,
}

/// A tree that the transaction has written to.
pub(in crate::engine) struct Touched {
    tree: Arc<Tree>,
    /// What the commit adds to its row count.
    rows: i64,
    /// Keys that it has put in, also if that was taken back.
    inserts: u64,
    /// Its keys that it has written, while somebody follows the tree.
    keys: NotedKeys,
}

impl Touched {
    fn new(tree: &Arc<Tree>, rows: i64) -> Touched {
        Touched { tree: tree.clone(), rows, inserts: 0, keys: NotedKeys::default() }
    }
}

/// Memory of a transaction that is not charged: little beside what a session takes elsewhere.
const LEAST_CHARGED: usize = 16 << 10;

/// See the module's documentation.
pub(in crate::engine) struct Work {
    // Who it is, and how far.
    pub id: TxnId,
    pub label: u64,
    pub phase: Phase,
    pub xid: Option<Vec<u8>>,
    status: Option<Arc<TxnStatus>>,
    /// The number of its last write; numbers are not used twice, whatever is undone.
    sequence: u32,

    // What it sees.
    pub snapshot: Option<SnapshotGuard>,
    /// The last one, with memory for the next.
    ended_snapshot: Option<SnapshotGuard>,
    /// Keys that cursors returned to it.
    pub reads: u64,

    // What it has locked.
    /// An owner that is this transaction's once it has asked for a lock.
    owner: Option<LockOwner>,
    asked_for_locks: bool,
    /// Of a prepared one, or one that counts on tables that its statements do not name.
    intent: Option<Intent>,
    /// Rows written, for the choice of a deadlock's victim.
    weight: u64,
    /// Where others see how far it is.
    pub(super) vitals: Option<Arc<Vitals>>,

    // What it has written.
    touched: NumberMap<TreeId, Touched>,
    /// Tables that begin with its commit.
    pub founded: Vec<Arc<Table>>,
    /// Counters to be logged with the next record.
    counters: Vec<NotedCounter>,
    pub(in crate::engine) redo: RedoBuffer,
    /// Rows that go to table files as they are.
    pub(in crate::engine) direct: Direct,
    /// Index entries that wait to be pushed.
    pub(in crate::engine) deferred: Deferred,
    /// What redo, gathered rows and entries, and marks take, if that is much.
    charge: Option<Charge>,

    // Where it may go back to.
    /// Ascending. Some may be missing: they make going back cheap and row counts exact.
    marks: Vec<Mark>,
    /// What these take, in bytes.
    marks_memory: usize,
    /// Where the row began that is being written; its memory is used again for each row.
    row: Option<Mark>,

    // What the log has of it already, beside the redo above.
    /// Operations, the last with this sequence.
    logged_redo: Option<u32>,
    /// Nothing of its writes to a table that is not logged, the first of which this is.
    unlogged: Option<u32>,
    /// Where these are, if the log is held for it.
    trail: Option<Arc<Trail>>,
    /// Operations that are void, since a rollback to a savepoint could not be logged: there is no commit any more,
    /// whatever else is undone.
    doomed: Option<Error>,

    // Where it has been last.
    /// A leaf that the next write to this tree may go to.
    near: Option<(TreeId, Arc<Node>)>,
    /// Where it has looked keys up.
    pub(super) keys: Keys,
}

impl Work {
    pub(in crate::engine) fn new(id: TxnId) -> Work {
        Work {
            id,
            label: 0,
            phase: Phase::Active,
            snapshot: None,
            ended_snapshot: None,
            xid: None,
            reads: 0,
            status: None,
            owner: None,
            asked_for_locks: false,
            intent: None,
            weight: 0,
            vitals: None,
            sequence: 0,
            redo: RedoBuffer::new(),
            direct: Direct::default(),
            deferred: Deferred::default(),
            charge: None,
            marks: Vec::new(),
            marks_memory: 0,
            row: None,
            logged_redo: None,
            unlogged: None,
            touched: NumberMap::default(),
            near: None,
            keys: Keys::default(),
            founded: Vec::new(),
            counters: Vec::new(),
            trail: None,
            doomed: None,
        }
    }

    pub(in crate::engine) fn status(&self) -> Option<&TxnStatus> {
        self.status.as_deref()
    }

    /// Where it has looked keys up, and through whose eyes.
    pub(super) fn keys_and_status(&mut self) -> (&mut Keys, Option<&TxnStatus>) {
        (&mut self.keys, self.status.as_deref())
    }

    pub(in crate::engine) fn status_or_new(&mut self) -> &Arc<TxnStatus> {
        let id = self.id;
        self.status.get_or_insert_with(|| TxnStatus::new(id))
    }

    pub(in crate::engine) fn open_snapshot(&mut self, shared: &Shared) -> Timestamp {
        let (label, ended) = (self.label, &mut self.ended_snapshot);
        let take = || match ended.take() {
            Some(mut ended) => {
                ended.renew(label);
                ended
            }
            None => shared.clock.snapshot(label),
        };
        self.snapshot.get_or_insert_with(take).timestamp()
    }

    pub(in crate::engine) fn locks(&mut self, shared: &Shared) -> &mut LockOwner {
        let (id, is_new) = (self.id, !std::mem::replace(&mut self.asked_for_locks, true));
        let owner = self.owner.get_or_insert_with(|| shared.locks.open(id, 0));
        if is_new && owner.txn() != id {
            owner.renew(id);
        }
        owner.set_weight(self.weight);
        if let Some(vitals) = &self.vitals {
            let (locks, single_locks) = owner.figures();
            vitals.store(Figures { redo_bytes: self.redo.len() as u64, locks, single_locks });
        }
        owner
    }

    /// Row locks, and those that are kept one by one.
    pub(super) fn lock_figures(&self) -> (u64, u64) {
        self.owner.as_ref().filter(|_| self.asked_for_locks).map_or((0, 0), LockOwner::figures)
    }

    pub(in crate::engine) fn has_locks(&self) -> bool {
        self.asked_for_locks
    }

    pub(in crate::engine) fn opened_locks(&mut self) -> Option<&mut LockOwner> {
        self.owner.as_mut().filter(|_| self.asked_for_locks)
    }

    /// Whether it has written anything that is not undone.
    pub(in crate::engine) fn has_writes(&self) -> bool {
        self.has_logged_writes() || self.unlogged.is_some() || self.direct.has_writes()
    }

    fn has_logged_writes(&self) -> bool {
        !self.redo.is_empty() || self.logged_redo.is_some()
    }

    /// Whether the log has, or is to have, anything of it: not if all its writes are to tables that are not logged.
    fn is_logged(&self) -> bool {
        self.trail.is_some() || self.has_logged_writes()
    }

    pub(in crate::engine) fn write(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        op: WriteOp<'_>,
    ) -> Result<()> {
        self.finish_append_to(shared, tree)?;
        self.show_deferred(shared, tree)?;
        self.write_row(shared, tree, key, op)
    }

    /// The number of the next write.
    pub(in crate::engine) fn next_sequence(&self) -> Result<u32> {
        self.sequence
            .checked_add(1)
            .filter(|&s| s != u32::MAX)
            .ok_or(Error::TooManyChanges { maximum: u32::MAX - 1 })
    }

    /// The number of the last write.
    pub(in crate::engine) fn last_number(&self) -> u32 {
        self.sequence
    }

    /// The next number is that of no write.
    pub(in crate::engine) fn skip_number(&mut self) {
        self.sequence = self.next_sequence().unwrap_or(self.sequence);
    }

    pub(in crate::engine) fn write_row(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        op: WriteOp<'_>,
    ) -> Result<()> {
        let sequence = self.next_sequence()?;
        let status = self.status_or_new().clone();
        let write = Write { key, op, status: &status, sequence };
        let written = match (tree.is_logged(), self.is_for_file(shared, tree, op)) {
            (false, _) => self.write_unlogged(tree, &write),
            (true, true) => self.write_stored(shared, tree, &write),
            (true, false) => self.write_logged(tree, &write),
        };
        written.inspect_err(|error| shared.ask_for_room(error))?;
        self.wrote(shared, tree, sequence, key, op)
    }

    /// The write with this number is in the redo.
    pub(in crate::engine) fn wrote(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        sequence: u32,
        key: &[u8],
        op: WriteOp<'_>,
    ) -> Result<()> {
        let rows = match op {
            WriteOp::Insert(_) => 1,
            WriteOp::Update(_) => 0,
            WriteOp::Delete => -1,
        };
        self.note_written(tree, sequence, rows);
        if shared.data.followed.any() {
            self.note_key(shared, tree, key);
        }
        if self.redo.len() > shared.redo_bytes {
            self.log_redo(shared)?;
        }
        self.charge_memory(shared);
        Ok(())
    }

    /// Charges the cache with what redo, gathered rows and entries, and marks take now: what is there, and not what
    /// they may come to, as sessions in the middle of a transaction are many and have little, as a rule.
    #[inline]
    pub(in crate::engine) fn charge_memory(&mut self, shared: &Shared) {
        let gathered = self.deferred.memory() + self.direct.memory();
        let memory = self.redo.memory() + gathered + self.marks_memory;
        if memory > LEAST_CHARGED || self.charge.is_some() {
            self.charge_much(shared, memory);
        }
    }

    fn charge_much(&mut self, shared: &Shared, memory: usize) {
        match &mut self.charge {
            charge if memory <= LEAST_CHARGED => *charge = None,
            Some(charge) => {
                if charge.bytes() != memory {
                    charge.change(memory);
                }
            }
            none => *none = Some(Charge::new(&shared.context.cache, Purpose::Transactions, memory)),
        }
    }

    /// Whether a value goes to the table's file and not to the log: large ones of transactions with more redo than is
    /// kept in memory. A small transaction would wait for the sync of another file.
    fn is_for_file(&self, shared: &Shared, tree: &Tree, op: WriteOp<'_>) -> bool {
        match op {
            WriteOp::Insert(value) | WriteOp::Update(value) => {
                tree.is_large(value)
                    && (self.logged_redo.is_some() || self.redo.len() + value.len() > shared.redo_bytes)
            }
            WriteOp::Delete => false,
        }
    }

    fn write_logged(&mut self, tree: &Tree, write: &Write<'_>) -> Result<()> {
        // The redo first: if it refuses the operation nothing has happened, and if the tree does it is taken back.
        let mark = self.redo.mark();
        self.redo.push(tree.id(), write.sequence, write.key, write.op)?;
        self.write_to_tree(tree, write).inspect_err(|_| {
            // Same buffer, nothing went to the log in between.
            let _ = self.redo.truncate_to(mark);
        })
    }

    fn write_unlogged(&mut self, tree: &Tree, write: &Write<'_>) -> Result<()> {
        self.write_to_tree(tree, write)?;
        self.note_unlogged(write.sequence);
        Ok(())
    }

    /// The write with this number went to a table that is not logged.
    pub(in crate::engine) fn note_unlogged(&mut self, sequence: u32) {
        let first = *self.unlogged.get_or_insert(sequence);
        debug_assert!(first <= sequence, "an earlier write would not be undone");
    }

    fn write_to_tree(&mut self, tree: &Tree, write: &Write<'_>) -> Result<()> {
        let mut near = self.near.take().filter(|(of, _)| *of == tree.id()).map(|(_, node)| node);
        if let Some(found) = self.keys.leaf(tree, write.key) {
            if !near.as_ref().is_some_and(|near| Arc::ptr_eq(near, found)) {
                near = Some(found.clone());
            }
        }
        let written = tree.write_near(write, &mut near);
        self.near = near.map(|node| (tree.id(), node));
        written
    }

    /// The next write to `tree` is likely to go to the leaf `node`.
    pub(in crate::engine) fn aim(&mut self, tree: &Tree, node: &Arc<Node>) {
        let known = self.near.as_ref().is_some_and(|(of, near)| *of == tree.id() && Arc::ptr_eq(near, node));
        if !known {
            self.near = Some((tree.id(), node.clone()));
        }
    }

    pub(in crate::engine) fn rows_added(&self, tree: &Tree) -> i64 {
        self.touched.get(&tree.id()).map_or(0, |touched| touched.rows)
    }

    /// Whether it has written to the tree, also if that was undone.
    pub(in crate::engine) fn has_written(&self, tree: &Tree) -> bool {
        self.touched.contains_key(&tree.id()) || self.direct.appends_to(tree)
    }

    /// The write with this number is done and added so many rows.
    pub(in crate::engine) fn note_written(&mut self, tree: &Arc<Tree>, sequence: u32, rows: i64) {
        debug_assert!(sequence > self.sequence, "number {sequence} after {}", self.sequence);
        debug_assert_eq!(self.phase, Phase::Active, "a write behind the end");
        self.sequence = sequence;
        let touched = self.touched.entry(tree.id()).or_insert_with(|| Touched::new(tree, 0));
        touched.rows += rows;
        touched.inserts += rows.max(0) as u64;
        self.weight += rows.unsigned_abs().max(1);
    }

    /// The key is noted for who follows the tree.
    #[cold]
    fn note_key(&mut self, shared: &Shared, tree: &Tree, key: &[u8]) {
        let status = self.status_or_new().clone();
        if let Some(touched) = self.touched.get_mut(&tree.id()) {
            touched.keys.note(shared, tree.id(), key, &status);
        }
    }

    /// What a commit needs before it is published: its trees are known to be dirty, and who follows one of them has all
    /// keys.
    fn announce(&mut self, shared: &Shared) {
        shared.mark_dirty(self.touched.values().map(|touched| &touched.tree));
        let Some(status) = &self.status else { return };
        self.touched.values_mut().for_each(|touched| touched.keys.hand_over(shared, status));
    }

    /// Sends the redo to the log ahead of the decision. If that fails the redo stays here and the write stands.
    fn log_redo(&mut self, shared: &Shared) -> Result<()> {
        let trail = self.hold_log(shared);
        self.direct.sync(shared)?;
        self.log_counters(shared)?;
        let record = LogRecord::Ops { txn: self.id, ops: self.redo.ops() }.encode();
        trail.append(&shared.log, record).inspect_err(|error| shared.log_failed(error))?;
        self.redo_is_logged(self.sequence);
        Ok(())
    }

    fn publish(&self, shared: &Shared) {
        publish(shared, self.status.as_deref(), &self.touched, &self.founded);
    }

    fn hold_log(&mut self, shared: &Shared) -> Arc<Trail> {
        match &self.trail {
            Some(trail) => trail.clone(),
            None => self.trail.insert(shared.hold_log(self)).clone(),
        }
    }

    fn release_hold(&mut self, shared: &Shared) {
        if self.trail.take().is_some() {
            shared.release_hold(self.id);
        }
    }

    /// Runs `log`, which logs the decision.
    fn decide<T>(&self, log: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(trail) = &self.trail else { return log() };
        trail.decide();
        log().inspect_err(|_| trail.take_back())
    }

    /// Commits; its memory comes back. A prepared transaction whose commit could not be logged comes back with the
    /// error, undecided as before; any other was rolled back then.
    pub(in crate::engine) fn commit(
        mut self: Box<Self>,
        shared: &Shared,
        flush: CommitFlush,
    ) -> Result<Spent, (Error, Option<Box<Work>>)> {
        // No read follows, and what the snapshot holds back need not wait for the log.
        self.close_snapshot();
        let result = match self.phase {
            Phase::Active if !self.has_writes() => self.commit_nothing(shared),
            Phase::Active => self
                .finish_append(shared)
                .and_then(|()| self.finish_deferred(shared))
                .and_then(|()| self.check(shared))
                .and_then(|()| self.log_counters(shared))
                .and_then(|()| self.commit_record(shared, flush, true)),
            Phase::Prepared => self.commit_record(shared, flush, true),
            Phase::Published => Ok(()),
            Phase::PublishedUnlogged => self.commit_record(shared, flush, false),
        };
        let Err(error) = result else {
            self.release_hold(shared);
            shared.counted.commits.add(1);
            return Ok(self.end(shared));
        };
        shared.log_failed(&error);
        match self.phase {
            Phase::Prepared => return Err((error, Some(self))),
            Phase::Active => self.undo(shared),
            // Visible, and only the log does not know: nothing may build on it.
            Phase::Published | Phase::PublishedUnlogged => shared.fail(&error.to_string()),
        }
        self.end(shared);
        Err((error, None))
    }

    /// Whether it can still commit.
    fn check(&self, shared: &Shared) -> Result<()> {
        shared.health.check()?;
        self.doomed.clone().map_or(Ok(()), Err)
    }

    /// Whatever was written has been undone.
    fn commit_nothing(&mut self, shared: &Shared) -> Result<()> {
        if let Some(status) = &self.status {
            status.abort();
        }
        let sets = self.counters.iter().any(|noted| noted.change == CounterChange::Set);
        self.log_counters(shared)?;
        if sets {
            // Not a number that was given out, which is no loss without the row it was for, but one that somebody asked
            // for.
            shared.log.sync_up_to(shared.log.end())?;
        }
        found(&self.founded);
        Ok(())
    }

    fn commit_record(&mut self, shared: &Shared, flush: CommitFlush, publishes: bool) -> Result<()> {
        debug_assert!(!self.direct.has_writes(), "rows were appended that the redo has not");
        self.announce(shared);
        match flush {
            // On this thread, which waits anyway, and not on that of the group's leader, for whom others wait.
            CommitFlush::Sync => self.direct.sync(shared)?,
            CommitFlush::Write | CommitFlush::Lazy => self.direct.rely_on(shared),
        }
        if !self.is_logged() {
            debug_assert!(publishes, "a transaction is published twice");
            // Its place among the commits is all that it needs.
            self.publish(shared);
            return Ok(());
        }
        let record = LogRecord::Commit { txn: self.id, ops: self.redo.ops() }.encode();
        let (status, touched, founded) = (self.status.as_deref(), &self.touched, &self.founded[..]);
        let publish = |_| {
            if publishes {
                publish(shared, status, touched, founded);
            }
        };
        self.decide(|| shared.log.commit(record, flush, publish))?;
        if flush == CommitFlush::Sync && !self.direct.trees().is_empty() {
            // Rows of it are outside of the log: their damage must not pass for an unfinished end even for a second. It
            // is durable without.
            let _ = shared.log.seal();
        }
        Ok(())
    }

    /// See [`crate::engine::Transaction::counts_on`].
    pub(in crate::engine) fn counts_on(&mut self, shared: &Shared, tree: TreeId) {
        self.intent.get_or_insert_with(|| shared.undecided.intents.enter(self.id)).look(tree);
    }

    pub(in crate::engine) fn has_counted_on(&self, tree: TreeId) -> bool {
        self.intent.as_ref().is_some_and(|intent| intent.has_looked(tree))
    }

    fn undo(&mut self, shared: &Shared) {
        if let Some(status) = &self.status {
            status.abort();
            self.direct.trees().iter().for_each(|tree| tree.forget_named(status));
            shared.mark_dirty(self.direct.trees().iter());
        }
        // A failure is no harm here: a transaction without outcome counts for nothing, and a prepared one comes back
        // undecided.
        let _ = self.log_counters(shared);
        if self.logged_redo.is_some() {
            let record = LogRecord::Rollback { txn: self.id }.encode();
            let _ = self.decide(|| shared.log.append_decision(record));
        }
        self.release_hold(shared);
        shared.counted.rollbacks.add(1);
    }
}

/// Makes the writes visible, all at once.
fn publish(
    shared: &Shared,
    status: Option<&TxnStatus>,
    all: &NumberMap<TreeId, Touched>,
    founded: &[Arc<Table>],
) {
    if let Some(status) = status {
        shared.clock.publish_changes(status, all.values().map(|touched| touched.tree.last_change()));
    }
    let now = shared.time.calendar_seconds();
    all.values().for_each(|touched| touched.tree.note_commit(touched.rows, touched.inserts, now));
    found(founded);
}

/// Nobody else has these tables before their transaction ends, so it is soon enough after the commit.
fn found(tables: &[Arc<Table>]) {
    tables.iter().flat_map(|table| table.all_trees()).for_each(|tree| tree.hide_from_older_snapshots());
}
