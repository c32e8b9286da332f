//! The handle of an engine.

use super::{Settings, Snapshot, Statistics, Table, Transaction};
use crate::file::{FileSystem, RealFileSystem};
use crate::server::{self, Depth, IfPrepared, NewTable, Renaming};
use crate::{Findings, Isolation, Options, Result, TreeSpec};
use std::path::PathBuf;
use std::sync::Arc;

/// An engine over one directory; cheap to clone.
///
/// What was committed is there after a crash, whenever that was: [`Options::commit_flush`] says of which crashes. An
/// engine that is dropped without [`Engine::close`] is left as by one, and the next [`Engine::open`] replays its log.
#[derive(Clone)]
pub struct Engine {
    inner: server::Engine,
}

impl Engine {
    /// Opens the engine in `dir`, which is created if there is none, as [`Options::new`] has it.
    /// [`InUse`](crate::Error::InUse) if another process has it.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Engine> {
        Engine::open_with(Options::new(dir))
    }

    /// Opens the engine in `options.dir`.
    pub fn open_with(options: Options) -> Result<Engine> {
        Engine::open_on(Arc::new(RealFileSystem), options)
    }

    /// The same on another file system, such as one of the memory that loses power on command
    /// ([`SimulatedFileSystem`](crate::file::SimulatedFileSystem)).
    pub fn open_on(fs: Arc<dyn FileSystem>, options: Options) -> Result<Engine> {
        Ok(Engine { inner: server::Engine::open(fs, options)? })
    }

    /// Ends the engine's threads and makes a last checkpoint, so that the next start has nothing to replay.
    /// Transactions must have ended; afterwards every write is [`ReadOnly`](crate::Error::ReadOnly).
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }

    /// Creates a table of empty trees and opens it. It is durable when this returns.
    pub fn create_table(&self, name: &str, trees: &[TreeSpec]) -> Result<Arc<Table>> {
        self.inner.create(NewTable::new(name, trees))?;
        self.inner.open_table(name)
    }

    /// The table of that name; [`NoSuchTable`](crate::Error::NoSuchTable) if there is none.
    pub fn open_table(&self, name: &str) -> Result<Arc<Table>> {
        self.inner.open_table(name)
    }

    /// Removes a table and its rows. Who has it open reads on until the handle is dropped.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.inner.drop(name, IfPrepared::Refuse)
    }

    /// Gives a table another name, which must be free. Open handles follow.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(Renaming::new(from, to))
    }

    /// Removes all rows in one step. Handles opened before keep the old trees: see [`Table::is_current`].
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.inner.empty(name, None)
    }

    /// Names that begin with `prefix`, sorted.
    pub fn table_names(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.table_names(prefix)
    }

    /// Begins a transaction at [`Isolation::Repeatable`]: no update is lost.
    pub fn begin(&self) -> Transaction {
        self.begin_at(Isolation::Repeatable)
    }

    /// Begins a transaction at another level.
    pub fn begin_at(&self, isolation: Isolation) -> Transaction {
        Transaction::new(self.inner.begin(isolation))
    }

    /// What is committed now, for as long as the snapshot lives. Writers go on, and what they replace is kept for it.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.inner.fixed_view())
    }

    /// Writes what changed since the last checkpoint to the files of the tables, so that the log before it goes. The
    /// engine does so by itself, too.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    /// Returns when everything committed so far is durable: for engines whose commits do not wait for that.
    pub fn sync(&self) -> Result<()> {
        self.inner.sync_log()
    }

    /// Looks at every structure of every table, in memory and in the files: what is wrong, or nothing. Others read and
    /// write meanwhile; checkpoints wait.
    pub fn check(&self) -> Result<Findings> {
        let mut findings = self.inner.check_files(&mut |_| Ok(()))?;
        for name in self.inner.table_names("")? {
            let mut txn = self.inner.begin(Isolation::Repeatable);
            let checked = self.inner.open_table(&name).and_then(|table| {
                self.inner.check_trees(
                    &mut txn,
                    (&table, 0..table.trees()),
                    Depth::Structure,
                    &mut |_| Ok(()),
                )
            });
            let Some(checked) = findings.absorb(None, checked)? else { continue };
            findings.append(checked.findings);
        }
        Ok(findings)
    }

    /// Settings that can be changed.
    pub fn settings(&self) -> &Settings {
        self.inner.settings()
    }

    /// Numbers for people who watch.
    pub fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    /// The same engine, with the steps of each verb one by one: see [`crate::server`].
    pub fn server(&self) -> &server::Engine {
        &self.inner
    }
}

impl From<server::Engine> for Engine {
    fn from(inner: server::Engine) -> Engine {
        Engine { inner }
    }
}
