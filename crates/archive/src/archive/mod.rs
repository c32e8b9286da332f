//! An archive: an engine's directory, its trees, and what all that is done with them has in common.
//!
//! | file | is about |
//! |---|---|
//! | `open.rs` | making and opening one; what is kept of it in `settings` |
//! | `put.rs` | bytes into chunks, lists and data; the record that names them |
//! | `get.rs` | records by name, and the bytes of data, checked |
//! | `change.rs` | new versions of records, and their removal |
//! | `protect.rs` | holds and retention |
//! | `collect.rs` | giving back what nobody names (gc) |
//! | `scrub.rs` | reading all again |
//! | `evolve.rs` | another schema: comparing all records with it, building indexes |
//! | `audit.rs` | who has changed what |
//! | `verify.rs` | what must hold of all trees together, for tests |

mod audit;
mod change;
mod collect;
mod evolve;
mod get;
mod open;
mod protect;
mod put;
mod scrub;
mod verify;

pub use audit::Entry;
pub use change::Metadata;
pub use collect::Collected;
pub(crate) use get::oid_of_entry;
pub use get::{Range, Stat};
pub use open::{Chunking, Clock, Durability, Options, Rules};
pub use protect::Protecting;
pub(crate) use put::Upload;
pub use put::{Imported, Stored};
pub use scrub::{Damage, Scrub, Scrubbed};

use crate::oid::OidMaker;
use crate::rows::{Content, ListName, Record};
use crate::schema::Schema;
use crate::{Digest, Error, Name, Oid, Result};
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use teak_core::{Engine, Isolation, Snapshot, Transaction, Tree};

/// How often a transaction that met another is done again.
const ATTEMPTS: usize = 100;

/// An open archive. All methods may be called from any number of threads.
pub struct Archive {
    engine: Engine,
    trees: Trees,
    /// Writers hold it shared during their transaction.
    schema: RwLock<Arc<Schema>>,
    rules: RwLock<Rules>,
    chunking: Chunking,
    clock: Clock,
    durability: Durability,
    oids: OidMaker,
    /// Who is told to have done what is in the audit.
    actor: String,
    next_chunk: AtomicU64,
    next_entry: AtomicU64,
    /// Lists that puts of this process are filling.
    live: Mutex<HashSet<ListName>>,
    /// One at a time changes the schema, or collects.
    care: Mutex<()>,
    /// One at a time changes what is at paths of a tree, but for who changes records by their OIDs.
    paths: Mutex<()>,
}

/// Handles of all trees.
pub(crate) struct Trees {
    pub(crate) chunks: Arc<Tree>,
    pub(crate) settings: Arc<Tree>,
    pub(crate) contents: Arc<Tree>,
    pub(crate) lists: Arc<Tree>,
    pub(crate) pending: Arc<Tree>,
    pub(crate) records: Arc<Tree>,
    pub(crate) versions: Arc<Tree>,
    pub(crate) entries: Arc<Tree>,
    pub(crate) orphans: Arc<Tree>,
    pub(crate) audit: Arc<Tree>,
    pub(crate) directories: Arc<Tree>,
}

impl Archive {
    /// The schema as it is now.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema_shared().clone()
    }

    pub(crate) fn schema_shared(&self) -> RwLockReadGuard<'_, Arc<Schema>> {
        self.schema.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The time, in microseconds since 1970.
    pub fn now(&self) -> i64 {
        (self.clock)()
    }

    /// The engine below, for who wants its numbers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn trees(&self) -> &Trees {
        &self.trees
    }

    /// Returns when all that was done so far is durable: for [`Durability::OnSync`].
    pub fn sync(&self) -> Result<()> {
        Ok(self.engine.sync()?)
    }

    /// Ends it with a checkpoint, so that the next opening has nothing to replay.
    pub fn close(self) -> Result<()> {
        Ok(self.engine.close()?)
    }

    /// What is to be told is durable, if each answer is.
    pub(crate) fn answered(&self) -> Result<()> {
        match self.durability {
            Durability::Each => self.sync(),
            Durability::OnSync => Ok(()),
        }
    }

    /// Does `work` in a transaction, and once more if it met another.
    pub(crate) fn transact<T>(&self, mut work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut txn = self.engine.begin_at(Isolation::ReadCommitted);
            let done = work(&mut txn).and_then(|result| Ok(txn.commit().map(|()| result)?));
            match done {
                Err(error) if error.is_transient() && attempt < ATTEMPTS => {}
                done => return done,
            }
        }
    }

    pub(crate) fn paths(&self) -> MutexGuard<'_, ()> {
        self.paths.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn care(&self) -> MutexGuard<'_, ()> {
        self.care.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn live(&self) -> MutexGuard<'_, HashSet<ListName>> {
        self.live.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    // ---- rows that several of the files look at ----

    fn read_record(&self, oid: Oid, bytes: &[u8]) -> Result<Record> {
        Record::read(oid, bytes).ok_or_else(|| Error::row("records", &oid.0))
    }

    /// The newest version of a record, as of a snapshot.
    pub(crate) fn record_in(&self, snapshot: &Snapshot, oid: Oid) -> Result<Option<Record>> {
        let row = snapshot.get(&self.trees.records, oid.0)?;
        row.map(|row| self.read_record(oid, &row)).transpose()
    }

    fn content_in(&self, snapshot: &Snapshot, name: Digest) -> Result<Content> {
        content(name, snapshot.get(&self.trees.contents, name.0)?)
    }

    /// The record, which nobody else changes before the transaction ends.
    pub(crate) fn lock_record(&self, txn: &mut Transaction, oid: Oid) -> Result<Record> {
        match txn.get_for_update(&self.trees.records, oid.0)? {
            Some(row) => self.read_record(oid, &row),
            None => Err(Error::Missing(Name::Record(oid))),
        }
    }

    /// What has the content, which nobody else changes before the transaction ends; also if nothing has it.
    fn lock_content(&self, txn: &mut Transaction, name: Digest) -> Result<Content> {
        content(name, txn.get_for_update(&self.trees.contents, name.0)?)
    }

    fn write_content(&self, txn: &mut Transaction, name: Digest, content: &Content) -> Result<()> {
        match content.is_empty() {
            true => txn.delete(&self.trees.contents, name.0)?,
            false => txn.put(&self.trees.contents, name.0, content.bytes())?,
        };
        Ok(())
    }
}

/// A row of the tree of that name.
fn content(name: Digest, row: Option<Vec<u8>>) -> Result<Content> {
    let Some(row) = row else { return Ok(Content::default()) };
    Content::read(&row).ok_or_else(|| Error::row("contents", &name.0))
}

/// The key of a moment and what is of it.
fn timed_key(time: i64, of: &[u8]) -> Vec<u8> {
    let mut key = (time as u64 ^ 1 << 63).to_be_bytes().to_vec();
    key.extend(of);
    key
}

/// Its parts.
fn read_timed_key(key: &[u8]) -> Option<(i64, &[u8])> {
    let (time, of) = key.split_first_chunk::<8>()?;
    Some(((u64::from_be_bytes(*time) ^ 1 << 63) as i64, of))
}
