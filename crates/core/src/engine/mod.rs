//! Engines, tables, transactions and cursors.
//!
//! From the ground up, each knows only what is below:
//!
//! | floor or file | what |
//! |---|---|
//! | `data/` | open tables and what is known of them, settings, numbers |
//! | `txn/` | transactions: the verbs, the ways in which a row goes in, the end; cursors |
//! | `definitions/` | tables by name: creating, changing, dropping, relations |
//! | `care/` | checkpoints, old snapshots, packing; the threads that do it |
//! | `bulk/` | building, comparing, rebuilding tables whole |
//! | `open.rs` | a new directory, or recovery |
//! | `check.rs`, `check_image.rs` | whether everything is as it should be, in memory and in the files |
//! | `exports.rs` | single tables as files, and back |
//!
//! Apart stands `shared.rs`: what the handles of one engine share, and the order of its mutexes. What a checkpoint
//! writes and what a replay does is in [`crate::checkpoint`].

mod bulk;
mod care;
mod check;
mod check_image;
mod data;
mod definitions;
mod exports;
mod open;
mod shared;
#[cfg(test)]
mod tests;
mod txn;

pub use crate::catalog::Link;
pub use crate::tree::block::Items;
pub use crate::tree::{Depth, Held, Listed, Lost, Outline, Rewriter, Tree, Trunk, Window};
pub use bulk::build::TreeBuild;
pub use bulk::compare::{Difference, IndexCheck, IndexCount};
pub use bulk::feed::Feed;
pub use bulk::online::OnlineBuild;
pub use care::pause::CheckpointPause;
pub use check::TableCheck;
pub use data::settings::Settings;
pub use data::statistics::{LockWait, Memory, SnapshotInfo, Statistics, TreeName};
pub use data::tables::Table;
pub(crate) use data::view::FixedView;
pub use data::watch::Watcher;
pub use definitions::alter::{Alteration, Replacement, TableChange, TreeSource};
pub use definitions::ddl::{IfPrepared, NewTable};
pub use definitions::links::{Relink, Renaming};
pub use exports::{Admission, Incoming};
pub use shared::Engine;
pub use txn::claim::Claim;
pub use txn::cursor::Cursor;
pub use txn::transaction::{Savepoint, Transaction};
pub use txn::vitals::{Figures, LogUse, Unowned, Vitals};

use crate::file::FileSystem;
use crate::lock::{HeldLock, Wait};
use crate::options::{LogLevel, Options};
use crate::types::{Isolation, LockMode, Timestamp, TreeId, TxnId};
use crate::Result;
use care::checkpoints::Urgency;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

impl Engine {
    /// Opens the engine in `options.dir`, which is created if there is none; [`Error::InUse`](crate::Error::InUse) if
    /// another process has it. Replays the log: what was committed is there, prepared transactions are in
    /// [`Engine::prepared`].
    pub fn open(fs: Arc<dyn FileSystem>, options: Options) -> Result<Engine> {
        Ok(Engine { shared: open::open(fs, options)? })
    }

    /// Ends the threads and makes a last checkpoint. Transactions must have ended; prepared ones without a handle stay
    /// prepared. Afterwards every write is [`Error::ReadOnly`](crate::Error::ReadOnly).
    pub fn close(&self) -> Result<()> {
        let shared = &*self.shared;
        let Some(directory_lock) = shared.opening.directory_lock.lock().take() else { return Ok(()) };
        shared.stop_threads();
        if !shared.care.await_threads() {
            shared.fail("a background thread has panicked");
        }
        // Undecided still; the log from their first records on is kept.
        let prepared = shared.undecided.prepared.abandon();
        let result = match shared.health.check() {
            _ if shared.fs.is_read_only() => Ok(()),
            Ok(()) => {
                // Of the log nothing is needed but for prepared transactions and for tables that could not be
                // recovered.
                let clean = shared.undecided.holds.first().is_none() && !shared.care.has_damage();
                let synced =
                    shared.log.sync_up_to(shared.log.end()).inspect_err(|error| shared.log_failed(error));
                let made = synced.and_then(|()| shared.checkpoint(clean, Urgency::Awaited));
                // The log is to know of the checkpoint, too.
                made.and_then(|()| shared.log.sync_up_to(shared.log.end()))
            }
            Err(error) => Err(error),
        };
        shared.health.fail("the engine is closed");
        shared.context.cache.stop();
        drop(prepared);
        drop(directory_lock);
        if let Err(error) = &result {
            shared.observer.message(LogLevel::Warning, &format!("closed without a last checkpoint: {error}"));
        }
        result
    }

    /// Settings that can be changed.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Fills trees of `table` that are empty, from entries in any order, without the log: see [`TreeBuild`]. About
    /// `sort_bytes` of memory are used for sorting, and the spill file for what is more.
    /// [`Error::Undecided`](crate::Error::Undecided) if a prepared transaction has written to the table: entries of its
    /// rows would be missing.
    pub fn build_trees(&self, table: &Arc<Table>, trees: &[usize], sort_bytes: u64) -> Result<TreeBuild> {
        TreeBuild::new(self.shared.clone(), table, trees, sort_bytes)
    }

    /// The table of that name.
    pub fn open_table(&self, name: &str) -> Result<Arc<Table>> {
        self.shared.open_table(name)
    }

    /// The table of that name, if it is open; no I/O.
    pub fn opened_table(&self, name: &str) -> Option<Arc<Table>> {
        self.shared.data.tables.lock().get(name).cloned()
    }

    /// The last commit that has written to the tree, or one after it: it is kept from the first call on. A snapshot
    /// that is taken before, and that has it, sees all that was committed to the tree by then.
    pub fn last_change(&self, tree: &Tree) -> Timestamp {
        self.shared.clock.last_change(tree.last_change())
    }

    /// The same, if it is kept.
    pub fn known_last_change(&self, tree: &Tree) -> Option<Timestamp> {
        tree.last_change().known()
    }

    /// Names that begin with `prefix`, sorted.
    pub fn table_names(&self, prefix: &str) -> Result<Vec<String>> {
        self.shared.system.names(prefix)
    }

    /// Begins a transaction.
    pub fn begin(&self, isolation: Isolation) -> Transaction {
        Transaction::new(self.shared.clone(), isolation)
    }

    /// Makes a checkpoint now: the log before it is not needed any more, but for open prepared or very large
    /// transactions.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.checkpoint(false, Urgency::Awaited)
    }

    /// How far the log is durable, and how far it goes, in bytes.
    pub fn log_positions(&self) -> (u64, u64) {
        (self.shared.log.synced(), self.shared.log.end())
    }

    /// Returns when everything committed so far is durable.
    pub fn sync_log(&self) -> Result<()> {
        let shared = &self.shared;
        shared.log.sync_up_to(shared.log.end()).inspect_err(|error| shared.log_failed(error))
    }

    /// Wakes a transaction that waits for a lock, so that it asks whether it was interrupted; and whoever waits for a
    /// prepared transaction.
    pub fn interrupt(&self, txn: TxnId) {
        self.shared.locks.interrupt(txn);
        self.shared.undecided.intents.interrupt();
    }

    /// Numbers for people who watch.
    pub fn statistics(&self) -> Statistics {
        let shared = &*self.shared;
        let locks = shared.locks.counters();
        let mut snapshots = shared.clock.snapshots();
        snapshots.retain(|open| !open.internal);
        let held = shared.context.past.holders().into_values().fold(Held::default(), Held::plus);
        let log_end = shared.log.end();
        let (spill_written_bytes, spill_read_bytes) = shared.context.spill.moved_bytes();
        let (open_tables, catalog_bytes) = {
            let tables = shared.data.tables.lock();
            (tables.len() as u64, tables.memory() as u64)
        };
        let (read_ahead, read_ahead_used) = shared.context.ahead.counts();
        Statistics {
            reads: shared.counted.reads.get(),
            writes: shared.counted.writes.get(),
            commits: shared.counted.commits.get(),
            rollbacks: shared.counted.rollbacks.get(),
            active_transactions: shared.counted.active.get(),
            prepared_transactions: shared.undecided.prepared.waiting() as u64,
            last_commit: shared.clock.last_committed(),
            log_bytes: log_end.saturating_sub(shared.opening.log_start),
            log_bytes_since_checkpoint: log_end.saturating_sub(shared.care.progress.began()),
            log_synced: shared.log.synced(),
            log_pinned_bytes: shared.log_pinned_bytes(),
            log_copied_bytes: shared.counted.log_copied.get(),
            direct_bytes: shared.care.progress.direct_bytes(),
            checkpoints: shared.counted.checkpoints.get(),
            newest_checkpoint: shared.care.checkpointer.newest(),
            failed_checkpoints: shared.counted.failed_checkpoints.get(),
            checkpoint_waits: shared.counted.checkpoint_waits.get(),
            cache_used_bytes: shared.context.cache.used(),
            charged: shared.context.cache.used_for(),
            log_memory_bytes: shared.log.memory(),
            catalog_bytes,
            cache_budget_bytes: shared.context.cache.budget(),
            memory: Memory::now(shared.context.leaves.exact()),
            memory_used_bytes: shared.context.memory().used(),
            memory_max_bytes: shared.context.memory().budget(),
            spilled_bytes: shared.context.spill.used_bytes(),
            spill_written_bytes,
            spill_read_bytes,
            read_ahead,
            read_ahead_used,
            history: held,
            merged_leaves: shared.context.attention().merged_leaves(),
            snapshots_too_old: shared.counted.snapshots_too_old.get(),
            history_waits: shared.counted.history_waits.get(),
            lock_bytes: shared.locks.memory(),
            lost_ranges: shared.context.lost().len() as u64 + u64::from(shared.opening.log_is_cut),
            lock_waits: locks.waits,
            lock_timeouts: locks.timeouts,
            deadlocks: locks.deadlocks,
            locks_awaited: locks.waiting,
            lock_wait_time: Duration::from_nanos(locks.wait_nanoseconds),
            longest_lock_wait: Duration::from_nanos(locks.longest_wait_nanoseconds),
            snapshots: snapshots.len() as u64,
            oldest_snapshot_age: snapshots.iter().map(|s| s.fate.age()).max().unwrap_or_default(),
            open_tables,
            dirty_trees: shared.data.dirty.len() as u64,
            replayed_operations: shared.opening.replayed_operations,
        }
    }

    /// Who waits for whom, for a while at least. O(open tables) if anybody does.
    pub fn lock_waits(&self) -> Vec<LockWait> {
        let waits = self.shared.locks.waits();
        let tables = self.tree_names(&waits.iter().map(|wait| wait.sought.tree).collect());
        let shown = |wait: Wait| LockWait {
            name: tables.get(&wait.sought.tree).cloned(),
            waiter: wait.waiter,
            holder: wait.holder,
            sought: wait.sought,
            age: wait.age,
        };
        waits.into_iter().map(shown).collect()
    }

    /// The tables that are open; no I/O.
    pub fn opened_tables(&self) -> Vec<Arc<Table>> {
        self.shared.data.tables.lock().all().cloned().collect()
    }

    /// How many waits there were for locks of the tree, and how long they were together.
    pub fn lock_waits_for(&self, tree: &Tree) -> (u64, Duration) {
        self.shared.locks.waits_for(tree.id())
    }

    /// Where these trees are; those are missing whose tables are not open. O(open tables) if any are asked for.
    pub fn tree_names(&self, trees: &HashSet<TreeId>) -> HashMap<TreeId, TreeName> {
        self.shared.data.tables.lock().with_trees(trees)
    }

    /// Calls `visit` with all locks of ranges and of runs of rows, until it says that it is enough. What is listed is
    /// not of one moment; latches are held for some hundred at a time.
    pub fn list_locks<B>(&self, visit: &mut dyn FnMut(HeldLock) -> ControlFlow<B>) -> ControlFlow<B> {
        self.shared.locks.list(visit)
    }

    /// Trees with such locks.
    pub fn locked_trees(&self) -> HashSet<TreeId> {
        self.shared.locks.trees()
    }

    /// As what `txn` has a row locked, unless it has it as one of a run.
    pub fn row_lock(&self, tree: TreeId, key: &[u8], txn: TxnId) -> Option<LockMode> {
        self.shared.locks.holds(tree, key, txn)
    }

    /// Turns the engine read-only: something happened after which nothing it writes can be trusted.
    pub fn fail(&self, reason: &str) {
        self.shared.fail(reason);
    }

    /// Ranges of keys that scans have passed over since the start, as their blocks cannot be read: nothing unless
    /// [`ForceRecovery::PassOver`](crate::ForceRecovery::PassOver) or more was asked for.
    pub fn lost(&self) -> Vec<Lost> {
        self.shared.context.lost()
    }
}
