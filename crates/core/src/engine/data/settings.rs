//! Settings that can be changed while the engine runs.

use crate::cache::Cache;
use crate::file::memory_limit;
use crate::lock::LockManager;
use crate::options::{CommitFlush, FileBuffering, HistoryFull, Options};
use crate::store::{OpenFiles, SpillFile};
use crate::tree::TreeContext;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Log between checkpoints if nobody says how much: at least the first, and the second part of the cache. A checkpoint
/// writes each inner page that leads to a changed leaf, however few of those there are, so a large database has fewer.
const CHECKPOINT_LOG_BYTES: u64 = 256 << 20;
const CACHE_PER_CHECKPOINT_LOG: u64 = 64;

/// Without anybody's word look-ups leave the kernel's cache of files out if the engine's is to have one of so many
/// parts of the memory, or more: what is left to the kernel holds little of what is not in memory already, and costs
/// the processor more than it saves.
const MEMORY_PER_LARGE_CACHE: u64 = 3;

/// The dynamic ones of [`Options`]. A change counts for what begins after it.
pub struct Settings {
    commit_flush: AtomicU8,
    checkpoint_log_bytes: AtomicU64,
    spill_max_bytes: AtomicU64,
    history_full: AtomicU8,
    file_buffering: AtomicU8,
    /// In milliseconds.
    snapshot_warn_age: AtomicU64,
    context: Arc<TreeContext>,
    cache: Arc<Cache>,
    spill: Arc<SpillFile>,
    files: Arc<OpenFiles>,
    locks: LockManager,
}

fn milliseconds(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

// Relaxed throughout this file: each setting stands for itself, nothing else is published through it.
impl Settings {
    pub(in crate::engine) fn new(
        options: &Options,
        files: Arc<OpenFiles>,
        context: Arc<TreeContext>,
        locks: LockManager,
    ) -> Settings {
        let (cache, spill) = (context.cache.clone(), context.spill.clone());
        context.past.set_maximum(options.history_max_bytes);
        locks.set_memory_limit(options.lock_max_bytes);
        context.ahead.set_most_blocks(options.read_ahead_blocks);
        let settings = Settings {
            commit_flush: AtomicU8::new(options.commit_flush as u8),
            checkpoint_log_bytes: AtomicU64::new(options.checkpoint_log_bytes),
            spill_max_bytes: AtomicU64::new(options.spill_max_bytes),
            history_full: AtomicU8::new(options.history_full as u8),
            file_buffering: AtomicU8::new(options.file_buffering as u8),
            snapshot_warn_age: AtomicU64::new(milliseconds(options.snapshot_warn_age)),
            context,
            cache,
            spill,
            files,
            locks,
        };
        settings.settle_buffering();
        settings
    }

    /// What a commit waits for.
    pub fn commit_flush(&self) -> CommitFlush {
        match self.commit_flush.load(Ordering::Relaxed) {
            0 => CommitFlush::Lazy,
            2 => CommitFlush::Write,
            _ => CommitFlush::Sync,
        }
    }

    /// Sets what a commit waits for.
    pub fn set_commit_flush(&self, flush: CommitFlush) {
        self.commit_flush.store(flush as u8, Ordering::Relaxed);
    }

    /// Log written between checkpoints, in bytes.
    #[inline]
    pub fn checkpoint_log_bytes(&self) -> u64 {
        match self.checkpoint_log_bytes.load(Ordering::Relaxed) {
            0 => CHECKPOINT_LOG_BYTES.max(self.cache.budget() / CACHE_PER_CHECKPOINT_LOG),
            bytes => bytes,
        }
    }

    /// Sets how much log is written between checkpoints, in bytes; 0: by the size of the cache.
    pub fn set_checkpoint_log_bytes(&self, bytes: u64) {
        self.checkpoint_log_bytes.store(bytes, Ordering::Relaxed);
    }

    /// What may be kept for old snapshots, in bytes.
    pub fn history_max_bytes(&self) -> u64 {
        self.context.past.maximum()
    }

    /// Sets what may be kept for old snapshots, in bytes.
    pub fn set_history_max_bytes(&self, bytes: u64) {
        self.context.past.set_maximum(bytes);
    }

    /// What happens when old snapshots hold as much as they may.
    pub fn history_full(&self) -> HistoryFull {
        match self.history_full.load(Ordering::Relaxed) {
            0 => HistoryFull::FailOldest,
            _ => HistoryFull::Wait,
        }
    }

    /// Sets what happens when old snapshots hold as much as they may.
    pub fn set_history_full(&self, what: HistoryFull) {
        self.history_full.store(what as u8, Ordering::Relaxed);
        self.context.past.bell().ring();
    }

    /// Of snapshots older than this the observer is told; zero: never.
    pub fn snapshot_warn_age(&self) -> Duration {
        Duration::from_millis(self.snapshot_warn_age.load(Ordering::Relaxed))
    }

    /// Sets the age from which the observer is told of a snapshot, in whole milliseconds; zero: never.
    pub fn set_snapshot_warn_age(&self, age: Duration) {
        self.snapshot_warn_age.store(milliseconds(age), Ordering::Relaxed);
    }

    /// Disk that spilled data of transactions and sorting may take, in bytes.
    pub fn spill_max_bytes(&self) -> u64 {
        self.spill_max_bytes.load(Ordering::Relaxed)
    }

    /// Sets the disk that spilled data of transactions and sorting may take, in bytes.
    pub fn set_spill_max_bytes(&self, bytes: u64) {
        self.spill_max_bytes.store(bytes, Ordering::Relaxed);
        self.spill.set_maximum(bytes);
    }

    /// Sets the memory from which owners of many locks make fewer of them, in bytes; 0: a quarter of the budget.
    pub fn set_lock_max_bytes(&self, bytes: u64) {
        self.locks.set_memory_limit(bytes);
    }

    /// Sets how many blocks are read ahead of a scan that finds nothing in memory, at most; 0: none.
    pub fn set_read_ahead_blocks(&self, blocks: u32) {
        self.context.ahead.set_most_blocks(blocks);
    }

    /// Sets whether look-ups use the kernel's cache of files.
    pub fn set_file_buffering(&self, buffering: FileBuffering) {
        self.file_buffering.store(buffering as u8, Ordering::Relaxed);
        self.settle_buffering();
    }

    /// Whether look-ups leave the kernel's cache of files out, as of now.
    pub fn reads_unbuffered(&self) -> bool {
        self.files.reads_unbuffered()
    }

    fn settle_buffering(&self) {
        let large = |limit: u64| self.cache.budget().saturating_mul(MEMORY_PER_LARGE_CACHE) >= limit;
        self.files.read_unbuffered(match self.file_buffering.load(Ordering::Relaxed) {
            0 => memory_limit().is_some_and(|limit| large(limit.bytes)),
            chosen => chosen == FileBuffering::Off as u8,
        });
    }

    /// Memory budget, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.budget()
    }

    /// What all tables without a file may take, in bytes.
    pub fn memory_max_bytes(&self) -> u64 {
        self.context.memory().budget()
    }

    /// Sets what all tables without a file may take, in bytes. Nothing goes when it is less than they take.
    pub fn set_memory_max_bytes(&self, bytes: u64) {
        self.context.memory().set_budget(bytes);
    }

    /// Sets the memory budget, in bytes.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.cache.set_budget(bytes);
        self.settle_buffering();
    }
}
