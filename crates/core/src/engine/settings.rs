//! Settings that can be changed while the engine runs.

use crate::cache::Cache;
use crate::options::{CommitFlush, Options};
use crate::store::SpillFile;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;

/// The dynamic ones of [`Options`]. A change counts for what begins after it.
pub struct Settings {
    commit_flush: AtomicU8,
    checkpoint_log_bytes: AtomicU64,
    spill_max_bytes: AtomicU64,
    cache: Arc<Cache>,
    spill: Arc<SpillFile>,
}

// Relaxed throughout this file: each setting stands for itself, nothing else is published through it.
impl Settings {
    pub(super) fn new(options: &Options, cache: Arc<Cache>, spill: Arc<SpillFile>) -> Settings {
        Settings {
            commit_flush: AtomicU8::new(options.commit_flush as u8),
            checkpoint_log_bytes: AtomicU64::new(options.checkpoint_log_bytes),
            spill_max_bytes: AtomicU64::new(options.spill_max_bytes),
            cache,
            spill,
        }
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
    pub fn checkpoint_log_bytes(&self) -> u64 {
        self.checkpoint_log_bytes.load(Ordering::Relaxed)
    }

    /// Sets how much log is written between checkpoints, in bytes.
    pub fn set_checkpoint_log_bytes(&self, bytes: u64) {
        self.checkpoint_log_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Disk that spilled data may take, in bytes.
    pub fn spill_max_bytes(&self) -> u64 {
        self.spill_max_bytes.load(Ordering::Relaxed)
    }

    /// Sets the disk that spilled data may take, in bytes.
    pub fn set_spill_max_bytes(&self, bytes: u64) {
        self.spill_max_bytes.store(bytes, Ordering::Relaxed);
        self.spill.set_maximum(bytes);
    }

    /// Memory budget, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.budget()
    }

    /// Sets the memory budget, in bytes.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.cache.set_budget(bytes);
    }
}
