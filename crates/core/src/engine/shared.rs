//! The handle of an engine, what all handles of one share, and the rules about it.
//!
//! Mutexes, in the order in which they may be taken together: that of who copies log (in `holds`, only tried), the
//! checkpointer's > `names` > `ddl` > `tables` > (those inside `dirty`, `digests`, `holds` and `prepared`; `counters`,
//! `arrivals`, `dropped`, `orphans`, `damaged`, `temporary`). Only the first four are held over I/O: a name by DDL on
//! it and by the first opening of its table; `ddl` by DDL, which shares it, and by a checkpoint, which does not, for
//! the moment in which it captures its state.

use super::care::Care;
use super::data::settings::Settings;
use super::data::statistics::Counters;
use super::data::Data;
use super::definitions::Definitions;
use super::open::Opening;
use super::txn::Undecided;
use crate::catalog::{space_file_name, SystemTrees, TableRecord};
use crate::file::{DiskReserve, FileSystem};
use crate::lock::LockManager;
use crate::log::Log;
use crate::mvcc::Clock;
use crate::options::{ForceRecovery, LogLevel, Observer};
use crate::store::OpenFiles;
use crate::sync::Mutex;
use crate::tree::{Tree, TreeContext};
use crate::types::TxnId;
use crate::{Error, Result, Time};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// A storage engine over one directory; cheap to clone. Dropped without [`Engine::close`] it is left as by a crash.
#[derive(Clone)]
pub struct Engine {
    pub(in crate::engine) shared: Arc<Shared>,
}

/// The engine behind its handles.
pub(crate) struct Shared {
    pub fs: Arc<dyn FileSystem>,
    /// Those of tables.
    pub files: Arc<OpenFiles>,
    pub dir: PathBuf,
    pub background: bool,
    pub force_recovery: ForceRecovery,
    pub observer: Arc<dyn Observer>,
    pub settings: Settings,
    /// See [`crate::Options::redo_bytes`].
    pub redo_bytes: usize,
    pub time: Time,
    pub clock: Arc<Clock>,
    pub locks: LockManager,
    pub log: Arc<Log>,
    pub context: Arc<TreeContext>,
    pub system: Arc<SystemTrees>,
    pub counted: Counters,
    pub ids: Ids,
    pub health: Health,
    /// Space that what empties a full disk may take.
    pub reserve: Arc<DiskReserve>,
    pub data: Data,
    pub undecided: Undecided,
    pub definitions: Definitions,
    pub care: Care,
    pub opening: Opening,
}

/// Identifiers not used so far.
pub(crate) struct Ids {
    pub tree: AtomicU64,
    pub txn: AtomicU64,
    pub space: AtomicU32,
    /// The first that this run has given out, or gives out.
    pub first_space: AtomicU32,
}

impl Ids {
    /// None of the record's identifiers is given out again.
    pub(super) fn skip(&self, record: &TableRecord) {
        debug_assert!(!self.run_has_begun(), "others are given out meanwhile");
        // Relaxed: while the engine is opened there is one thread.
        self.space.fetch_max(record.space.saturating_add(1), Ordering::Relaxed);
        for (tree, _) in &record.trees {
            // Relaxed: as above.
            self.tree.fetch_max(tree.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// The engine is open: what is created from here on is of this run.
    pub(super) fn begin_run(&self) {
        debug_assert!(!self.run_has_begun(), "what this run has created would pass for older");
        // Relaxed: there is one thread.
        self.first_space.store(self.space.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn run_has_begun(&self) -> bool {
        // Relaxed: there is one thread.
        self.first_space.load(Ordering::Relaxed) != u32::MAX
    }

    /// Whether the table was created in an earlier run.
    pub(super) fn is_from_before(&self, record: &TableRecord) -> bool {
        // Relaxed: it does not change any more.
        record.space < self.first_space.load(Ordering::Relaxed)
    }

    /// Whether no transaction to come has this number.
    pub(super) fn is_given_out(&self, txn: TxnId) -> bool {
        // Relaxed: it only grows.
        txn < self.txn.load(Ordering::Relaxed)
    }

    pub(super) fn next_txn(&self) -> TxnId {
        // Relaxed: only uniqueness matters.
        let id = self.txn.fetch_add(1, Ordering::Relaxed);
        debug_assert_ne!(id, 0, "that is what a start has replayed");
        id
    }
}

/// Whether the engine may write.
#[derive(Default)]
pub(crate) struct Health {
    failed: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Health {
    /// An error once the engine has failed.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        // Relaxed: a hint; what fails after the failure fails at the log.
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::ReadOnly(self.reason.lock().clone().unwrap_or_default()));
        }
        Ok(())
    }

    /// The first reason stays. `true` if this was it.
    pub(super) fn fail(&self, reason: &str) -> bool {
        let mut known = self.reason.lock();
        let first = known.is_none();
        known.get_or_insert_with(|| reason.to_string());
        // Relaxed: see `check`; the reason is behind its mutex.
        self.failed.store(true, Ordering::Relaxed);
        first
    }
}

impl Shared {
    /// Turns the engine read-only.
    pub(super) fn fail(&self, reason: &str) {
        if self.health.fail(reason) {
            self.observer.message(
                LogLevel::Error,
                &format!("the engine is read-only from now on, restart it to recover from the log: {reason}"),
            );
        }
        // Writers that wait for a checkpoint must learn of it.
        self.care.progress.wake_all();
    }

    /// A write to the log failed. A full disk, or a lack of descriptors, leaves the log as it was; anything else ends
    /// writing.
    pub(super) fn log_failed(&self, error: &Error) {
        let is_harmless =
            matches!(error, Error::DiskFull { .. } | Error::NoDescriptor { .. } | Error::TooLarge { .. });
        if !is_harmless {
            self.fail(&error.to_string());
        }
    }

    /// Tells what had to be read from the second copy of the system space.
    pub(super) fn tell_remarks(&self) {
        for remark in self.system.space.take_remarks() {
            self.observer.message(LogLevel::Warning, &remark);
        }
    }

    pub(super) fn space_path(&self, space: u32) -> PathBuf {
        self.dir.join(space_file_name(space))
    }

    /// The next checkpoint must write these, but for those that were dropped or are not logged. Before the commit
    /// is published.
    pub(super) fn mark_dirty<'a>(&self, trees: impl Iterator<Item = &'a Arc<Tree>>) {
        self.data.dirty.enter(trees.filter(|tree| tree.is_logged()));
    }

    /// No table has these any more: no checkpoint is to write them but the one that runs, which may have begun to. When
    /// that ends it finds changes that it does not contain, and must not put the tree on the list again: what the next
    /// one gives back would be written anew.
    pub(super) fn forget_dirty<'a>(&self, dropped: impl Iterator<Item = &'a Arc<Tree>>) {
        let ids = dropped.inspect(|tree| tree.note_dropped()).map(|tree| tree.id());
        // Dropped without the mutex.
        drop(self.data.dirty.remove(ids));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Without `close`: as after a crash, but the threads end.
        self.stop_threads();
    }
}
