//! Numbers for people who watch an engine.

use crate::cache::Purpose;
use crate::engine::shared::Engine;
use crate::lock::Sought;
use crate::tree::Held;
use crate::types::{Timestamp, TxnId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Counted since the start, or as of now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Keys that cursors returned.
    pub reads: u64,
    /// Operations written by transactions.
    pub writes: u64,
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that were rolled back.
    pub rollbacks: u64,
    /// Open transactions.
    pub active_transactions: u64,
    /// Prepared transactions that wait for their coordinator.
    pub prepared_transactions: u64,
    /// Timestamp of the newest commit.
    pub last_commit: Timestamp,
    /// Log written since the start, in bytes.
    pub log_bytes: u64,
    /// Log written since the last checkpoint began, in bytes.
    pub log_bytes_since_checkpoint: u64,
    /// Everything in the log before this is durable. A position in bytes, where a record begins.
    pub log_synced: u64,
    /// Bytes of the log kept because open or prepared transactions have records in it.
    pub log_pinned_bytes: u64,
    /// Log that was written to copy forward what such transactions have in it, in bytes.
    pub log_copied_bytes: u64,
    /// Bytes of rows that loads wrote to table files past the log.
    pub direct_bytes: u64,
    /// Checkpoints that became durable.
    pub checkpoints: u64,
    /// Number of the newest one, as its superblock has it. They are counted since the directory was made.
    pub newest_checkpoint: u64,
    /// Checkpoints that failed and were tried again later.
    pub failed_checkpoints: u64,
    /// Times a write waited because checkpoints were behind.
    pub checkpoint_waits: u64,
    /// Memory in use, in bytes.
    pub cache_used_bytes: u64,
    /// What is charged of it, by [`Purpose`].
    pub charged: [u64; Purpose::COUNT],
    /// Records that are not written yet, and the buffer that they are written from, in bytes; not a part of the above.
    pub log_memory_bytes: u64,
    /// Open tables without their leaves, in bytes.
    pub catalog_bytes: u64,
    /// Memory budget, in bytes.
    pub cache_budget_bytes: u64,
    /// What the process has, with whatever else is in it.
    pub memory: Memory,
    /// What tables in memory take, in bytes: not a part of the above.
    pub memory_used_bytes: u64,
    /// What they may take, in bytes.
    pub memory_max_bytes: u64,
    /// Disk that spilled data takes, in bytes.
    pub spilled_bytes: u64,
    /// Bytes that were spilled since the start.
    pub spill_written_bytes: u64,
    /// Bytes of it that were read back.
    pub spill_read_bytes: u64,
    /// Blocks that were read ahead of scans.
    pub read_ahead: u64,
    /// How many of these were used.
    pub read_ahead_used: u64,
    /// What is kept for old snapshots only.
    pub history: Held,
    /// Leaves that were merged into their neighbours.
    pub merged_leaves: u64,
    /// Snapshots that had to give way.
    pub snapshots_too_old: u64,
    /// Writes that waited for old snapshots to end.
    pub history_waits: u64,
    /// Memory of all locks, in bytes; part of what is in use.
    pub lock_bytes: u64,
    /// Ranges of keys that scans passed over, as they cannot be read; a log of which only the beginning could be used
    /// counts as one.
    pub lost_ranges: u64,
    /// Lock requests that waited.
    pub lock_waits: u64,
    /// Lock waits that timed out.
    pub lock_timeouts: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Lock requests that wait now.
    pub locks_awaited: u64,
    /// Time spent waiting for locks.
    pub lock_wait_time: Duration,
    /// Of it in the longest wait.
    pub longest_lock_wait: Duration,
    /// Active snapshots.
    pub snapshots: u64,
    /// Age of the oldest snapshot, zero if there is none.
    pub oldest_snapshot_age: Duration,
    /// Tables that are open.
    pub open_tables: u64,
    /// Trees with changes that no checkpoint contains.
    pub dirty_trees: u64,
    /// Operations replayed from the log at the start.
    pub replayed_operations: u64,
}

/// Memory of the process, in bytes; what is the engine's is that of all engines in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of the process, files that it maps included.
    pub resident: u64,
    /// Blocks, and changes of more than half a KiB.
    pub slabs: u64,
    /// What is free of these, and keeps its pages for the next.
    pub slabs_kept: u64,
    /// Allocations beyond 64 KiB; as address space, of which the last fifth may not be in memory.
    pub large: u64,
    /// What is free of these.
    pub large_kept: u64,
    /// Leaves that were ever read, in memory or not, half a KiB each.
    pub leaves: u64,
    /// All that is small, but leaves; with what the C library needs for it.
    pub small: u64,
}

impl Memory {
    /// What is in memory now; `leaves` bytes of leaves.
    pub(in crate::engine) fn now(leaves: u64) -> Memory {
        Memory {
            resident: crate::file::resident_bytes().unwrap_or(0),
            slabs: crate::slabs::used_bytes() as u64,
            slabs_kept: crate::slabs::kept_bytes() as u64,
            large: crate::Heap::bytes() as u64,
            large_kept: crate::Heap::spare_bytes() as u64,
            leaves,
            small: (crate::Heap::small_bytes() as u64).saturating_sub(leaves),
        }
    }

    /// What the rest of the process has: the server, its sessions, free parts of heaps.
    pub fn rest(&self) -> u64 {
        let known = self.slabs + self.slabs_kept + self.large + self.large_kept + self.leaves + self.small;
        self.resident.saturating_sub(known)
    }
}

/// An open snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// What [`crate::engine::Transaction::set_label`] was given.
    pub session: u64,
    /// It sees the commits up to this.
    pub timestamp: Timestamp,
    /// How long it has been open.
    pub age: Duration,
    /// What is kept for it: the versions of which it is the oldest that sees them.
    pub held: Held,
    /// It had to give way: reads fail with [`crate::Error::SnapshotTooOld`].
    pub too_old: bool,
}

/// A transaction that waits for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWait {
    /// Who waits.
    pub waiter: TxnId,
    /// For whom.
    pub holder: TxnId,
    /// What for.
    pub sought: Arc<Sought>,
    /// The tree that it is of; None: its table is not open any more.
    pub name: Option<TreeName>,
    /// How long it has.
    pub age: Duration,
}

/// A tree as its table's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeName {
    /// The table's name.
    pub table: String,
    /// Its number among the table's trees.
    pub tree: usize,
    /// See [`crate::engine::Table::describe`].
    pub description: Option<Arc<[u8]>>,
}

/// A number that many threads add to.
#[derive(Default)]
pub(in crate::engine) struct Counter(AtomicU64);

impl Counter {
    pub(in crate::engine) fn add(&self, n: u64) {
        // Relaxed: a statistic.
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(in crate::engine) fn subtract(&self, n: u64) {
        // Relaxed: a statistic.
        let before = self.0.fetch_sub(n, Ordering::Relaxed);
        debug_assert!(before >= n, "more went than came");
    }

    pub(in crate::engine) fn get(&self) -> u64 {
        // Relaxed: a statistic.
        self.0.load(Ordering::Relaxed)
    }
}

/// What the engine itself counts. Transactions add their reads and writes when they end.
#[derive(Default)]
pub(in crate::engine) struct Counters {
    pub reads: Counter,
    pub writes: Counter,
    pub commits: Counter,
    pub rollbacks: Counter,
    pub active: Counter,
    pub checkpoints: Counter,
    pub failed_checkpoints: Counter,
    pub checkpoint_waits: Counter,
    pub log_copied: Counter,
    pub snapshots_too_old: Counter,
    pub history_waits: Counter,
}

impl Engine {
    /// Keys that were read out of a window ([`crate::engine::Cursor::window`]) whose transaction was not at hand.
    pub fn count_reads(&self, keys: u64) {
        self.shared.counted.reads.add(keys);
    }
}
