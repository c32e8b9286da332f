//! A connection's transaction: statements, savepoints, two-phase commit, and how it waits for locks.
//!
//! Invariants: there is at most one transaction; `tag.txn` names it as long as it may hold locks. A session that is
//! dropped rolls its transaction back, unless that is prepared: then the core keeps it for `commit_by_xid`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use teak_core::{Error, Isolation, LogLevel, Timestamp, TreeId, TxnId, WaitPolicy, WaitRequest};

use crate::collision::Collision;
use crate::deadlocks::Note;
use crate::engine::{EngineHandle, Progress, SessionTag};
use crate::foreign::Found;
use crate::host::Thd;
use crate::outcome::{Result, Stop};
use crate::transactions::Phase;
use teak_core::server::{
    Deadlock, Intention, LockOutcome, Savepoint, Sought, Table, Transaction, Tree, WaitNote, WaitWatcher,
};

mod rows;

/// Longest transaction identifier: the server's XIDDATASIZE and its header, rounded up.
pub const MAX_XID: usize = 160;

/// Memory for sorting until somebody says otherwise.
const DEFAULT_SORT_BYTES: usize = 16 << 20;

/// Isolation as the server knows it; whether REPEATABLE READ is strict is the session's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    /// READ COMMITTED, READ UNCOMMITTED.
    ReadCommitted = 1,
    /// REPEATABLE READ.
    RepeatableRead = 2,
    /// SERIALIZABLE.
    Serializable = 3,
}

impl Level {
    /// By its number.
    pub(crate) fn of(number: u8) -> Level {
        match number {
            1 => Level::ReadCommitted,
            3 => Level::Serializable,
            _ => Level::RepeatableRead,
        }
    }
}

/// How a session waits for locks.
struct Waits {
    engine: Arc<EngineHandle>,
    tag: Arc<SessionTag>,
    timeout: Duration,
}

impl Waits {
    fn run<T>(
        &self,
        policy: WaitPolicy,
        request: impl FnOnce(&WaitRequest<'_>) -> Result<T, Error>,
    ) -> Result<T> {
        let host = &self.engine.host;
        let slept = AtomicBool::new(false);
        let interrupted = || host.is_killed(self.tag.thd);
        let before_wait = || {
            slept.store(true, Ordering::SeqCst);
            host.wait_begin(self.tag.thd);
            host.wait_is_reported(self.tag.thd)
        };
        let waits_for = |holders: &[TxnId]| self.engine.report_wait(&self.tag, holders);
        let result = request(&WaitRequest {
            policy,
            timeout: self.timeout,
            interrupted: &interrupted,
            before_wait: &before_wait,
            waits_for: &waits_for,
            watcher: Some(self),
        });
        if slept.load(Ordering::SeqCst) {
            host.wait_end(self.tag.thd);
        }
        result.map_err(Stop::Core)
    }
}

impl WaitWatcher for Waits {
    fn settles(&self) -> Option<WaitNote> {
        let person = self.engine.host.person(self.tag.thd);
        Some(Arc::new(Note { session: self.tag.id, person }))
    }

    fn lasts(&self, sought: &Sought) {
        let mut names = self.engine.core.tree_names(&HashSet::from([sought.tree]));
        self.engine.host.wait_lasts(self.tag.thd, names.remove(&sought.tree).as_ref(), sought);
    }

    fn deadlock(&self, deadlock: &Deadlock) {
        self.engine.note_deadlock(deadlock);
    }
}

/// All keys of one length from one key on and below another.
#[derive(Default)]
struct Stretch {
    tree: TreeId,
    from: Vec<u8>,
    below: Vec<u8>,
    length: usize,
}

/// A connection.
pub struct Session {
    number: u64,
    waits: Waits,
    strict: bool,
    txn: Option<Transaction>,
    /// The handle of the last one, with memory for the next.
    ended_txn: Option<Transaction>,
    prepared: bool,
    /// When the statement began.
    now: u64,
    statement: Option<Savepoint>,
    /// Before the row that is being written, and before each of those in a cascade that it has brought about.
    pub(crate) marks: Vec<Savepoint>,
    /// What the last look has found.
    pub found: Vec<Found>,
    savepoints: Vec<Savepoint>,
    /// Memory for sorting rows that are inserted in no order, in bytes.
    sort_bytes: usize,
    /// Rows that the statement has written.
    rows_written: u32,
    /// Whether the transaction had a key locked that the statement has reserved.
    pub(crate) relocked: bool,
    /// What has become of the locks of the keys that the row claims which is being written, in their order.
    pub(crate) claims: Vec<LockOutcome>,
    /// The row that was last locked exclusively and then found, by the statement: its tree and key.
    taken: Option<TreeId>,
    taken_key: Vec<u8>,
    /// Rows that were locked exclusively all at once, last.
    stretch: Option<Stretch>,
    /// What the last duplicate has collided with.
    pub collision: Collision,
}

impl Session {
    /// A session without a transaction.
    pub fn new(engine: Arc<EngineHandle>, thd: Thd, id: u64) -> Session {
        let tag = Arc::new(SessionTag::new(thd, id));
        let number = engine.enter(tag.clone());
        Session {
            number,
            waits: Waits { engine, tag, timeout: Duration::from_secs(50) },
            strict: true,
            txn: None,
            ended_txn: None,
            prepared: false,
            now: 0,
            statement: None,
            marks: Vec::new(),
            found: Vec::new(),
            savepoints: Vec::new(),
            sort_bytes: DEFAULT_SORT_BYTES,
            rows_written: 0,
            relocked: false,
            claims: Vec::new(),
            taken: None,
            taken_key: Vec::new(),
            stretch: None,
            collision: Collision::default(),
        }
    }

    /// Whose it is.
    pub(crate) fn engine(&self) -> &Arc<EngineHandle> {
        &self.waits.engine
    }

    /// What other threads may know of it.
    pub fn tag(&self) -> &Arc<SessionTag> {
        &self.waits.tag
    }

    /// Longest wait for a lock.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.waits.timeout = timeout;
    }

    /// Memory for sorting rows that are inserted in no order.
    pub fn set_sort_bytes(&mut self, bytes: usize) {
        self.sort_bytes = bytes;
    }

    /// Whether writing or locking what was committed after the snapshot is a conflict; for levels set from now on.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    // ---- transaction ----

    fn isolation_of(&self, level: Level) -> Isolation {
        match level {
            Level::ReadCommitted => Isolation::ReadCommitted,
            Level::RepeatableRead if self.strict => Isolation::Repeatable,
            Level::RepeatableRead => Isolation::RepeatableLenient,
            Level::Serializable if self.strict => Isolation::Serializable,
            Level::Serializable => Isolation::SerializableLenient,
        }
    }

    /// Begins a transaction; in an open one it only sets the level.
    pub fn begin(&mut self, level: Level) -> Result<()> {
        if self.txn.is_some() {
            return self.set_level(level);
        }
        let isolation = self.isolation_of(level);
        let mut txn = match self.ended_txn.take() {
            Some(mut txn) => {
                txn.begin_next(isolation);
                txn
            }
            None => self.waits.engine.core.begin(isolation),
        };
        txn.set_label(self.waits.tag.id);
        txn.show_by(&self.waits.tag.vitals);
        self.waits.tag.begin(Progress { started: self.now, level, phase: Phase::Running, rows: 0 });
        self.works_on(txn.id());
        self.txn = Some(txn);
        Ok(())
    }

    /// When the statement began, in microseconds by a clock of the caller's.
    #[inline]
    pub fn note_time(&mut self, now: u64) {
        self.now = now;
    }

    /// A row is written.
    #[inline]
    pub(crate) fn count_row(&self) {
        self.waits.tag.count_row();
    }

    /// The open transaction.
    pub fn txn(&mut self) -> Result<&mut Transaction> {
        self.txn.as_mut().ok_or(Stop::Misuse("no transaction is open"))
    }

    /// The open transaction, for writing.
    pub fn writable(&mut self) -> Result<&mut Transaction> {
        if self.prepared {
            return Err(Stop::Misuse("the transaction is prepared"));
        }
        self.txn()
    }

    /// Its identifier; 0 if there is none.
    pub fn txn_id(&self) -> TxnId {
        self.txn.as_ref().map_or(0, Transaction::id)
    }

    /// Whether a transaction is open.
    pub fn is_active(&self) -> bool {
        self.txn.is_some()
    }

    /// Whether it has written anything.
    pub fn has_writes(&self) -> bool {
        self.txn.as_ref().is_some_and(Transaction::has_writes)
    }

    /// How many entries the open transaction has added to the tree, less those that it has deleted.
    pub fn rows_added(&self, tree: &Tree) -> i64 {
        self.txn.as_ref().map_or(0, |txn| txn.rows_added(tree))
    }

    /// Whether the tree's content is younger than the open transaction's snapshot, which then cannot read it.
    pub fn precedes(&self, tree: &Tree) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.precedes(tree))
    }

    /// Whether it has written to the tree, also if that was undone.
    pub fn has_written(&self, tree: &Tree) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.has_written(tree))
    }

    /// Whether it is prepared.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    /// Changes the level; a snapshot already taken stays.
    pub fn set_level(&mut self, level: Level) -> Result<()> {
        let isolation = self.isolation_of(level);
        self.txn()?.set_isolation(isolation);
        self.waits.tag.set_level(level);
        Ok(())
    }

    fn isolation(&self) -> Option<Isolation> {
        self.txn.as_ref().map(Transaction::isolation)
    }

    /// Whether reads take a snapshot per statement and rows that do not match are unlocked.
    pub(crate) fn is_read_committed(&self) -> bool {
        self.isolation() == Some(Isolation::ReadCommitted)
    }

    /// Whether a scan may look at what is committed of a row that another transaction has locked, before it waits for
    /// it. Not where the session is strict: InnoDB does not there either.
    pub(crate) fn may_pass_locked(&self) -> bool {
        self.is_read_committed() && !self.strict
    }

    /// Whether locking reads lock the ranges they pass.
    pub(crate) fn locks_ranges(&self) -> bool {
        !self.is_read_committed()
    }

    /// Whether even SKIP LOCKED locks ranges.
    pub(crate) fn is_serializable(&self) -> bool {
        self.isolation().is_some_and(Isolation::is_serializable)
    }

    /// Takes the snapshot, if there is none, and returns its timestamp.
    pub fn open_snapshot(&mut self) -> Result<Timestamp> {
        Ok(self.txn()?.open_snapshot())
    }

    // ---- statements and savepoints ----

    /// A statement begins; within one that has begun it does nothing.
    pub fn statement_begin(&mut self) -> Result<()> {
        let now = self.txn()?.savepoint();
        self.statement.get_or_insert(now);
        Ok(())
    }

    fn statement_end(&mut self) {
        self.statement = None;
        self.taken = None;
        self.rows_written = 0;
        self.relocked = false;
        let closes = self.is_read_committed();
        if let Some(txn) = &mut self.txn {
            txn.rest();
            if closes {
                txn.close_snapshot();
            }
        }
    }

    /// A statement ended well inside a transaction that goes on; after an error [`Session::statement_rollback`] has to
    /// end it.
    pub fn statement_commit(&mut self) -> Result<()> {
        // After an error there is something to roll back.
        self.finish_writes()?;
        self.statement_end();
        Ok(())
    }

    /// Undoes the writes of the statement; its locks are kept. Nothing happens if none has begun.
    pub fn statement_rollback(&mut self) -> Result<()> {
        let begin = self.statement;
        self.statement_end();
        match (begin, &mut self.txn) {
            (Some(begin), Some(txn)) => Ok(txn.rollback_to(begin)?),
            _ => Ok(()),
        }
    }

    /// A savepoint's token: its number within the transaction.
    pub fn savepoint(&mut self) -> Result<u64> {
        let now = self.txn()?.savepoint();
        // Nothing was written since the last one: the same point.
        if self.savepoints.last() != Some(&now) {
            self.savepoints.push(now);
        }
        Ok(self.savepoints.len() as u64 - 1)
    }

    /// Undoes the writes since a savepoint; locks are kept.
    pub fn savepoint_rollback(&mut self, token: u64) -> Result<()> {
        let position = usize::try_from(token).unwrap_or(usize::MAX);
        let to = *self.savepoints.get(position).ok_or(Stop::Misuse("no such savepoint"))?;
        self.savepoints.truncate(position + 1);
        Ok(self.txn()?.rollback_to(to)?)
    }

    /// Runs `operation`; if it fails its writes are undone.
    pub(crate) fn atomically<T>(&mut self, operation: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        self.wait_for_room()?;
        let before = self.writable()?.row_savepoint();
        let result = operation(self);
        if result.is_err() {
            self.txn()?.rollback_to(before)?;
        }
        result
    }

    /// Waits for a checkpoint, if they are far behind, and for old snapshots to end, if there is no room for history
    /// and that is what writers are told to do. KILL ends both.
    fn wait_for_room(&mut self) -> Result<()> {
        let Some(txn) = &mut self.txn else { return Ok(()) };
        if txn.checkpoint_is_far_behind() {
            self.waits.run(WaitPolicy::Wait, |wait| txn.wait_for_checkpoint(wait))?;
        }
        if txn.history_is_full() {
            self.waits.run(WaitPolicy::Wait, |wait| txn.wait_for_history(wait))?;
        }
        Ok(())
    }

    /// Runs `operation` in a transaction of its own, which commits with it: what it writes stays, whatever becomes of
    /// the session's transaction, and as durable as any commit. On an error nothing of it stays.
    pub fn apart<T>(&mut self, operation: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let mut own = self.waits.engine.core.begin(Isolation::ReadCommitted);
        own.set_label(self.waits.tag.id);
        // KILL interrupts the one that may be waiting.
        let outer_id = self.waits.tag.txn.load(Ordering::SeqCst);
        let outer_progress = self.waits.tag.progress();
        self.works_on(0);
        let level = Level::ReadCommitted;
        self.waits.tag.begin(Progress { started: self.now, level, phase: Phase::Running, rows: 0 });
        self.works_on(own.id());
        let outer = self.txn.replace(own);
        let rows_written = std::mem::take(&mut self.rows_written);
        let stretch = self.stretch.take();
        self.taken = None;
        let result = operation(self);
        self.taken = None;
        self.rows_written = rows_written;
        self.stretch = stretch;
        let own = std::mem::replace(&mut self.txn, outer);
        self.works_on(0);
        self.waits.tag.begin(outer_progress);
        if let Some(txn) = &self.txn {
            txn.show();
        }
        self.works_on(outer_id);
        let Some(own) = own else { return Err(Stop::Misuse("the transaction ended within an operation")) };
        match result {
            Ok(value) => {
                own.commit()?;
                Ok(value)
            }
            Err(error) => {
                own.rollback();
                Err(error)
            }
        }
    }

    // ---- the end ----

    fn take(&mut self) -> Option<Transaction> {
        self.statement = None;
        self.marks.clear();
        self.found.clear();
        self.taken = None;
        self.stretch = None;
        self.rows_written = 0;
        self.relocked = false;
        self.savepoints.clear();
        self.prepared = false;
        self.txn.take()
    }

    fn ended(&self) {
        self.works_on(0);
    }

    /// Others know the session by this transaction from here on.
    fn works_on(&self, txn: TxnId) {
        self.waits.engine.works_on(&self.waits.tag, txn);
    }

    /// First phase of a two-phase commit. Not `is_external`: nobody asks for the transaction after a restart if all its
    /// writes are in memory alone.
    pub fn prepare(&mut self, xid: &[u8], is_external: bool) -> Result<()> {
        if xid.is_empty() || xid.len() > MAX_XID {
            return Err(Stop::Misuse("length of the transaction identifier"));
        }
        self.finish_writes()?;
        match is_external {
            true => self.txn()?.prepare(xid)?,
            false => self.txn()?.prepare_what_lasts(xid)?,
        }
        self.prepared = true;
        self.waits.tag.set_phase(Phase::Prepared);
        Ok(())
    }

    /// Publishes a prepared transaction; [`Session::commit`] ends it.
    pub fn commit_ordered(&mut self) -> Result<()> {
        match &mut self.txn {
            Some(txn) if self.prepared => {
                self.waits.tag.set_phase(Phase::Committing);
                txn.commit_ordered();
            }
            Some(_) => return Err(Stop::Misuse("commit_ordered without prepare")),
            None => (),
        }
        Ok(())
    }

    /// Commits; on an error the transaction was rolled back, a prepared one waits for `commit_by_xid`.
    pub fn commit(&mut self) -> Result<()> {
        self.waits.tag.set_phase(Phase::Committing);
        if !self.prepared {
            if let Err(error) = self.finish_writes() {
                self.rollback();
                return Err(error);
            }
        }
        self.end_txn(Transaction::commit_in_place)
    }

    /// Undoes everything.
    pub fn rollback(&mut self) {
        // Only a prepared transaction can fail, and then it waits for `commit_by_xid` or `rollback_by_xid`.
        let _ = self.try_rollback();
    }

    /// Undoes everything; after an error a prepared transaction waits for `commit_by_xid` or `rollback_by_xid`.
    pub fn try_rollback(&mut self) -> Result<()> {
        self.waits.tag.set_phase(Phase::RollingBack);
        self.end_txn(Transaction::try_rollback)
    }

    /// Ends the transaction, whose memory the next one takes.
    fn end_txn(&mut self, end: impl FnOnce(&mut Transaction) -> Result<(), Error>) -> Result<()> {
        let Some(mut txn) = self.take() else { return Ok(()) };
        let result = end(&mut txn);
        self.ended_txn = Some(txn);
        self.ended();
        Ok(result?)
    }

    /// Whether the transaction has locks, which it keeps to its end.
    pub fn has_locks(&self) -> bool {
        self.txn.as_ref().is_some_and(Transaction::has_locks)
    }

    // ---- definitions ----

    /// Whether the transaction has looked at the table's rows so that they stay, and a change of the table waits for
    /// it.
    pub fn is_awaited(&self, table: &Table) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.is_awaited(table.tree(0)))
    }

    /// Waits until no transaction holds the table `name` in one of these ways, which is about to be changed and has no
    /// new writers: [`Engine::wait_for_holders`](teak_core::server::Engine::wait_for_holders).
    pub fn wait_for_holders(&self, name: &str, intentions: &[Intention]) -> Result<()> {
        let engine = &self.waits.engine;
        let told = |xid: &[u8]| {
            let text = format!(
                "a change of table '{name}' by connection {} waits for the prepared transaction {}",
                self.waits.tag.id,
                crate::xid::text(xid)
            );
            engine.host.log(LogLevel::Warning, &text);
        };
        let own = self.txn_id();
        self.waits
            .run(WaitPolicy::Wait, |wait| engine.core.wait_for_holders(name, intentions, own, wait, &told))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Rolled back, but the core keeps what is prepared.
        drop(self.take());
        self.ended();
        self.waits.engine.leave(self.number);
    }
}
