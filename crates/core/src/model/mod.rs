//! An engine simple enough to be believed at sight: the oracle of the property tests.
//!
//! It offers the names and signatures of `engine/`, in memory, without durability: one mutex around maps of
//! `key -> versions in the order they were written`. Nothing is ever pruned. Locks are the real ones of `lock/`.
//!
//! Invariants: a version belongs to a [`Status`]; it is committed when the status carries a timestamp; versions
//! of a transaction or statement that was rolled back are removed at once.

mod cursor;
mod table;
mod transaction;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use cursor::Cursor;
pub use table::{Table, Tree};
pub use transaction::{Savepoint, Transaction};

use crate::file::FileSystem;
use crate::lock::LockManager;
use crate::server::{IfPrepared, NewTable, Renaming};
use crate::{CommitFlush, Error, Findings, Isolation, Options, Result, Timestamp, TreeId, TxnId};
use transaction::Ending;

/// Whether and when a transaction committed.
pub(crate) struct Status {
    id: TxnId,
    /// 0 while it has not.
    committed: AtomicU64,
}

/// One value (or none: deleted) that a transaction gave a key.
pub(crate) struct Version {
    status: Arc<Status>,
    sequence: u32,
    value: Option<Arc<[u8]>>,
}

/// The versions of one key, in the order they were written.
pub(crate) type Chain = Vec<Version>;

/// What `txn` sees of a key: its own newest version, otherwise the newest committed up to `timestamp`.
pub(crate) fn visible(chain: &Chain, txn: TxnId, timestamp: Timestamp) -> Option<&Arc<[u8]>> {
    let own = chain.iter().rev().find(|v| v.status.id == txn);
    let committed = || {
        chain
            .iter()
            .map(|v| (v.status.committed.load(Ordering::SeqCst), v))
            .filter(|(at, _)| *at != 0 && *at <= timestamp)
            .max_by_key(|(at, v)| (*at, v.sequence))
            .map(|(_, v)| v)
    };
    own.or_else(committed).and_then(|v| v.value.as_ref())
}

/// As [`visible`] of the newest, but puts of other open transactions count as well (their deletes do not, since they
/// may be undone: also a put under such a delete may come back).
pub(crate) fn pending(chain: &Chain, txn: TxnId) -> Option<&Arc<[u8]>> {
    let open = |v: &Version| v.status.id != txn && v.status.committed.load(Ordering::SeqCst) == 0;
    let newest = chain.iter().rev().find(|v| !open(v) || v.value.is_some())?;
    if open(newest) {
        newest.value.as_ref()
    } else {
        visible(chain, txn, Timestamp::MAX)
    }
}

#[derive(Default)]
pub(crate) struct State {
    trees: HashMap<TreeId, BTreeMap<Vec<u8>, Chain>>,
    tables: BTreeMap<String, Arc<Table>>,
    snapshots: BTreeMap<TxnId, (Timestamp, u64, Instant)>,
    prepared: BTreeMap<Vec<u8>, Ending>,
    xids: BTreeMap<Vec<u8>, TxnId>,
    clock: Timestamp,
    next_tree: TreeId,
    next_txn: TxnId,
    read_only: Option<String>,
    commits: u64,
    rollbacks: u64,
    active: u64,
}

/// What handles share.
pub(crate) struct ModelShared {
    state: Mutex<State>,
    locks: LockManager,
    settings: Settings,
    observer: Arc<dyn crate::Observer>,
}

/// An engine in memory; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<ModelShared>,
}

/// Options that can be changed while the engine runs.
pub struct Settings {
    cache_bytes: AtomicU64,
    commit_flush: AtomicU8,
    checkpoint_log_bytes: AtomicU64,
    spill_max_bytes: AtomicU64,
}

impl Settings {
    /// Memory budget in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.cache_bytes.load(Ordering::SeqCst)
    }
    /// Sets the memory budget.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.cache_bytes.store(bytes, Ordering::SeqCst);
    }
    /// What a commit waits for.
    pub fn commit_flush(&self) -> CommitFlush {
        match self.commit_flush.load(Ordering::SeqCst) {
            0 => CommitFlush::Lazy,
            1 => CommitFlush::Sync,
            _ => CommitFlush::Write,
        }
    }
    /// Sets what a commit waits for.
    pub fn set_commit_flush(&self, flush: CommitFlush) {
        self.commit_flush.store(flush as u8, Ordering::SeqCst);
    }
    /// Log that starts a checkpoint, in bytes.
    pub fn checkpoint_log_bytes(&self) -> u64 {
        self.checkpoint_log_bytes.load(Ordering::SeqCst)
    }
    /// Sets the log that starts a checkpoint.
    pub fn set_checkpoint_log_bytes(&self, bytes: u64) {
        self.checkpoint_log_bytes.store(bytes, Ordering::SeqCst);
    }
    /// Disk that spilled data may take, in bytes.
    pub fn spill_max_bytes(&self) -> u64 {
        self.spill_max_bytes.load(Ordering::SeqCst)
    }
    /// Sets the disk that spilled data may take.
    pub fn set_spill_max_bytes(&self, bytes: u64) {
        self.spill_max_bytes.store(bytes, Ordering::SeqCst);
    }
}

/// Numbers for SHOW STATUS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that were rolled back.
    pub rollbacks: u64,
    /// Open transactions.
    pub active_transactions: u64,
    /// Lock requests that waited.
    pub lock_waits: u64,
    /// Lock waits that timed out.
    pub lock_timeouts: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Timestamp of the newest commit.
    pub last_commit: Timestamp,
}

/// An open snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The transaction that reads with it.
    pub txn: TxnId,
    /// What [`Transaction::set_label`] was given.
    pub session: u64,
    /// It sees the commits up to this.
    pub timestamp: Timestamp,
    /// How long it is open.
    pub age: Duration,
}

impl Engine {
    /// A new, empty engine: nothing is read or written.
    pub fn open(_fs: Arc<dyn FileSystem>, options: Options) -> Result<Engine> {
        let settings = Settings {
            cache_bytes: AtomicU64::new(options.cache_bytes),
            commit_flush: AtomicU8::new(options.commit_flush as u8),
            checkpoint_log_bytes: AtomicU64::new(options.checkpoint_log_bytes),
            spill_max_bytes: AtomicU64::new(options.spill_max_bytes),
        };
        let state = State { next_tree: 16, next_txn: 1, ..State::default() };
        Ok(Engine {
            shared: Arc::new(ModelShared {
                state: Mutex::new(state),
                locks: LockManager::new(None),
                settings,
                observer: options.observer,
            }),
        })
    }

    /// Forgets everything: handles refer to the engine and would otherwise keep each other alive.
    pub fn close(&self) -> Result<()> {
        let empty = State { read_only: Some("closed".into()), ..State::default() };
        let old = std::mem::replace(&mut *self.shared.state.lock(), empty);
        drop(old);
        Ok(())
    }

    /// Options that can be changed.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Creates a table of empty trees.
    pub fn create(&self, new: NewTable<'_>) -> Result<()> {
        let mut state = self.shared.state.lock();
        state.check_writable()?;
        if state.tables.contains_key(new.name) {
            return Err(Error::TableExists(new.name.to_string()));
        }
        self.add_table(&mut state, new.name, new.trees.len(), new.meta);
        Ok(())
    }

    fn add_table(&self, state: &mut State, name: &str, trees: usize, meta: &[u8]) {
        let trees = (0..trees)
            .map(|_| {
                let id = state.next_tree;
                state.next_tree += 1;
                state.trees.insert(id, BTreeMap::new());
                Arc::new(Tree::new(id, self.shared.clone()))
            })
            .collect();
        state.tables.insert(name.to_string(), Arc::new(Table::new(name, meta, trees)));
    }

    /// Removes a table and its rows.
    pub fn drop(&self, name: &str, _prepared: IfPrepared) -> Result<()> {
        let mut state = self.shared.state.lock();
        state.check_writable()?;
        state.remove_table(name).map(drop)
    }

    /// Gives a table another name, which must be free.
    pub fn rename(&self, renaming: Renaming<'_>) -> Result<()> {
        let Renaming { from, to, .. } = renaming;
        let mut state = self.shared.state.lock();
        state.check_writable()?;
        if !state.tables.contains_key(from) {
            return Err(Error::NoSuchTable(from.to_string()));
        }
        if state.tables.contains_key(to) {
            return Err(Error::TableExists(to.to_string()));
        }
        if let Some(table) = state.tables.remove(from) {
            table.set_name(to);
            state.tables.insert(to.to_string(), table);
        }
        Ok(())
    }

    /// New empty trees under the same record, with other metadata if some are given; the counter starts again. Handles
    /// opened before keep the old trees.
    pub fn empty(&self, name: &str, meta: Option<&[u8]>) -> Result<()> {
        let mut state = self.shared.state.lock();
        state.check_writable()?;
        let old = state.remove_table(name)?;
        self.add_table(&mut state, name, old.trees(), meta.unwrap_or(old.meta()));
        Ok(())
    }

    /// The table of that name.
    pub fn open_table(&self, name: &str) -> Result<Arc<Table>> {
        let state = self.shared.state.lock();
        state.tables.get(name).cloned().ok_or_else(|| Error::NoSuchTable(name.to_string()))
    }

    /// Names that begin with `prefix`, sorted.
    pub fn table_names(&self, prefix: &str) -> Result<Vec<String>> {
        let state = self.shared.state.lock();
        Ok(state.tables.keys().filter(|n| n.starts_with(prefix)).cloned().collect())
    }

    /// Begins a transaction.
    pub fn begin(&self, isolation: Isolation) -> Transaction {
        let mut state = self.shared.state.lock();
        let id = state.next_txn;
        state.next_txn += 1;
        state.active += 1;
        Transaction::new(self.shared.clone(), id, isolation)
    }

    /// Identifiers of prepared transactions that no [`Transaction`] handle owns.
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        self.shared.state.lock().prepared.keys().cloned().collect()
    }

    /// Commits a prepared transaction.
    pub fn commit_prepared(&self, xid: &[u8]) -> Result<()> {
        let mut ending = self.take_prepared(xid)?;
        ending.commit();
        Ok(())
    }

    /// Rolls a prepared transaction back.
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<()> {
        let mut ending = self.take_prepared(xid)?;
        ending.rollback();
        Ok(())
    }

    fn take_prepared(&self, xid: &[u8]) -> Result<Ending> {
        self.shared.state.lock().prepared.remove(xid).ok_or(Error::Xid("no such transaction"))
    }

    /// Nothing to do in memory.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.state.lock().check_writable()
    }

    /// Nothing to do in memory.
    pub fn sync_log(&self) -> Result<()> {
        self.shared.state.lock().check_writable()
    }

    /// Wakes a transaction that waits for a lock, so that it asks whether it was interrupted.
    pub fn interrupt(&self, txn: TxnId) {
        self.shared.locks.interrupt(txn);
    }

    /// Numbers for SHOW STATUS.
    pub fn statistics(&self) -> Statistics {
        let locks = self.shared.locks.counters();
        let state = self.shared.state.lock();
        Statistics {
            commits: state.commits,
            rollbacks: state.rollbacks,
            active_transactions: state.active,
            lock_waits: locks.waits,
            lock_timeouts: locks.timeouts,
            deadlocks: locks.deadlocks,
            last_commit: state.clock,
        }
    }

    /// Open snapshots.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        let state = self.shared.state.lock();
        let info = |(txn, (timestamp, session, since)): (&TxnId, &(Timestamp, u64, Instant))| SnapshotInfo {
            txn: *txn,
            session: *session,
            timestamp: *timestamp,
            age: since.elapsed(),
        };
        state.snapshots.iter().map(info).collect()
    }

    /// Turns the engine read-only.
    pub fn fail(&self, reason: &str) {
        self.shared.observer.message(crate::LogLevel::Error, reason);
        self.shared.state.lock().read_only.get_or_insert_with(|| reason.to_string());
    }

    /// Always whole.
    pub fn check_everything(&self, _watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<Findings> {
        Ok(Findings::default())
    }

    /// See [`Engine::check_everything`].
    pub fn check_files(&self, _watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<Findings> {
        Ok(Findings::default())
    }

    /// Always fine in memory.
    pub fn check_table(&self, _table: &Table) -> Result<()> {
        Ok(())
    }
}

impl State {
    fn check_writable(&self) -> Result<()> {
        match &self.read_only {
            Some(reason) => Err(Error::ReadOnly(reason.clone())),
            None => Ok(()),
        }
    }

    fn remove_table(&mut self, name: &str) -> Result<Arc<Table>> {
        // The rows stay for those who still hold the table open.
        self.tables.remove(name).ok_or_else(|| Error::NoSuchTable(name.to_string()))
    }
}

#[cfg(test)]
mod tests;
