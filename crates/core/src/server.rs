//! The core as a database server drives it. Programs that keep their data in Teak do not need this module: see the
//! crate's own page.
//!
//! A server brings rules of its own. It knows which rows a statement is about to write, gathers the entries of indexes,
//! counts for AUTO_INCREMENT, prepares transactions for a coordinator, builds indexes from what it makes of the rows,
//! and shows its users what the engine does. So here are the steps that `teak_core::Transaction` takes as one:
//!
//! - a row that is to be changed is locked ([`Transaction::lock`]), looked for ([`Transaction::find`], or a
//!   [`Cursor`] with [`View::Latest`](crate::View::Latest)), compared with the snapshot
//!   ([`Transaction::check_unchanged`]) and only then written ([`Transaction::write`]);
//! - a key that is to be put in is claimed ([`Transaction::claim`]): it is locked, is free, and lies in no range that
//!   another transaction has locked, for which [`Transaction::check_insert`] looks again after the write;
//! - rows that [`Transaction::append`] or [`Transaction::write_later`] took are in the tree after
//!   [`Transaction::finish_writes`], and [`Transaction::check_finished`] looks for ranges that they lie in.
//!
//! Nothing here checks that they were taken. Who leaves one out has a row that two transactions have inserted, or that
//! nobody finds; whatever the order, the files stay whole, and a commit is all or nothing. [`Transaction::insert`],
//! [`Transaction::update`], [`Transaction::delete`] and [`Transaction::get_for_update`] take all of them.
//!
//! | | |
//! |---|---|
//! | rows | [`Transaction`], [`Savepoint`], [`Cursor`], [`Table`], [`Tree`] with its [`Trunk`] |
//! | definitions | [`Engine::create`], [`Engine::rename`], [`Engine::empty`], [`Engine::change`], [`Engine::drop`] |
//! | builds of indexes | [`TreeBuild`], [`OnlineBuild`] and [`Feed`] |
//! | relations of tables | [`NewTable::links`], [`Engine::links_to`], [`Relink`] |
//! | space that is given back | [`Engine::pack_table`], [`Engine::rewrite_rows`] with a [`Rewriter`] |
//! | checks | [`Engine::check_trees`] to a [`Depth`], [`IndexCheck`], [`Engine::check_files`] |
//! | numbers | [`Statistics`] with memory by [`Purpose`], [`SnapshotInfo`], [`Lost`] |
//! | what threads have done | [`Counts`], [`Histogram`] |
//! | transactions | [`Vitals`], [`LogUse`]; [`LockWait`] and [`Deadlock`] with [`Sought`] and [`TreeName`] |
//! | a directory without an engine | [`is_engine`], [`Checkpoint`] |
//! | single tables | [`Engine::export_table`], [`Engine::import_table`] with [`Incoming`] and [`Admission`] |
//! | backups | [`BackupCopy`], [`Engine::pause_checkpoints`], [`Engine::durable_log_end`]; [`Chain`], [`ExtentList`] |

pub use crate::cache::Purpose;
pub use crate::counts::{Count, Counts, Histogram, Timed};
pub use crate::store::BundleUse;

pub use crate::lock::{
    Deadlock, Entangled, HeldLock, Intention, KeyBound, LockKind, LockOutcome, Reason, Sought, WaitNote,
    WaitWatcher,
};

pub use crate::backup::{BackupCopy, Chain, ExtentList, Pacer, Round, Wanted};
pub use crate::engine::{
    Admission, Alteration, CheckpointPause, Claim, Cursor, Depth, Difference, Engine, Feed, Figures, Held,
    IfPrepared, Incoming, IndexCheck, IndexCount, Items, Link, Listed, LockWait, LogUse, Lost, Memory,
    NewTable, OnlineBuild, Outline, Relink, Renaming, Replacement, Rewriter, Savepoint, Settings,
    SnapshotInfo, Statistics, Table, TableChange, TableCheck, Transaction, Tree, TreeBuild, TreeName,
    TreeSource, Trunk, Unowned, Vitals, Watcher, Window,
};

pub use crate::threads::{watch_threads, ThreadWatch};

use crate::catalog::superblock_path;
use crate::file::FileSystem;
use crate::store::{spare_path, Superblock};
use crate::{Result, Timestamp};
use std::path::Path;

/// Whether `dir` is an engine's: it has superblocks, or has had them.
pub fn is_engine(fs: &dyn FileSystem, dir: &Path) -> Result<bool> {
    let path = superblock_path(dir);
    Ok(fs.exists(&path)? || fs.exists(&spare_path(&path))?)
}

/// What the newest checkpoint in a directory says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Random, made when the directory was created.
    pub engine_id: [u8; 16],
    /// Version of the formats.
    pub version: u32,
    /// Each is followed by its successor.
    pub number: u64,
    /// It holds the commits up to this one.
    pub timestamp: Timestamp,
    /// The engine was closed after it, and has not been opened since.
    pub clean: bool,
    /// The byte of the log where a replay starts.
    pub replay_from: u64,
}

impl Checkpoint {
    /// The newest in `dir`, if it is certain that it is; `None` if there is no engine.
    pub fn newest(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Checkpoint>> {
        let superblock = Superblock::read_newest(fs, &superblock_path(dir))?;
        Ok(superblock.map(|superblock| Checkpoint {
            engine_id: superblock.engine_id,
            version: superblock.version,
            number: superblock.checkpoint,
            timestamp: superblock.timestamp,
            clean: superblock.clean,
            replay_from: superblock.replay_from,
        }))
    }
}
