//! The handle of a transaction.

use super::cursor::{bounds, is_empty, Cursor};
use super::{Savepoint, Tree};
use crate::engine;
use crate::lock::WaitRequest;
use crate::types::{LockMode, View};
use crate::{Isolation, Result, TxnId};
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

/// How long a transaction waits for a lock until it is told otherwise.
const LOCK_TIMEOUT: Duration = Duration::from_secs(50);

/// Reads and writes that are all there after the commit, or none of them; dropped without a commit it is rolled back.
///
/// What it reads is as of its first read, and its own writes; at [`Isolation::ReadCommitted`] as of each read. A row
/// that it writes is locked to its end: others that want to write it wait. One that was changed after its snapshot it
/// cannot write: that is [`SnapshotConflict`](crate::Error::SnapshotConflict), and the transaction is to be rolled back
/// and done again. What it has read and does not write may change meanwhile; [`Transaction::get_for_update`] keeps a
/// row as it is, and [`Isolation::Serializable`] all that was read.
///
/// A call that fails has written nothing. After [`Deadlock`](crate::Error::Deadlock) the transaction is to be rolled
/// back, so that the others can go on.
pub struct Transaction {
    pub(super) inner: engine::Transaction,
    lock_timeout: Duration,
}

impl Transaction {
    pub(super) fn new(inner: engine::Transaction) -> Transaction {
        Transaction { inner, lock_timeout: LOCK_TIMEOUT }
    }

    /// Its identifier.
    pub fn id(&self) -> TxnId {
        self.inner.id()
    }

    /// How long it waits for a lock: then the call is [`LockTimeout`](crate::Error::LockTimeout). With zero it does not
    /// wait, and a row that another transaction has is [`WouldBlock`](crate::Error::WouldBlock): to pass over what
    /// others are at. 50 seconds until this is called.
    pub fn set_lock_timeout(&mut self, timeout: Duration) {
        self.lock_timeout = timeout;
    }

    fn wait(&self) -> WaitRequest<'static> {
        match self.lock_timeout.is_zero() {
            true => WaitRequest::no_wait(),
            false => WaitRequest::waiting(self.lock_timeout),
        }
    }

    // ---- reading ----

    /// The value of the key; `None`: it is not there.
    pub fn get(&mut self, tree: &Arc<Tree>, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.read_begins();
        if self.locks_reads() {
            self.inner.lock(tree, key, LockMode::Shared, &self.wait())?;
            self.inner.check_unchanged(tree, key)?;
        }
        let (mut cursor, eyes) = (engine::Cursor::new(tree.clone()), self.view());
        match cursor.get(&mut self.inner, eyes, key)? {
            true => cursor.value().map(|value| Some(value.to_vec())),
            false => Ok(None),
        }
    }

    /// All rows of the tree, ascending.
    pub fn rows(&mut self, tree: &Arc<Tree>) -> Result<Cursor<'_>> {
        self.range::<&[u8]>(tree, ..)
    }

    /// The rows with keys in a range, ascending.
    pub fn range<K: AsRef<[u8]>>(
        &mut self,
        tree: &Arc<Tree>,
        range: impl RangeBounds<K>,
    ) -> Result<Cursor<'_>> {
        self.read_begins();
        let (from, to) = bounds(&range);
        if self.locks_reads() && !is_empty(&from, &to) {
            // Before the first look: nobody puts a row in behind the cursor.
            let (first, last) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
            self.inner.lock_range(tree, first, last, LockMode::Shared, &self.wait())?;
        }
        Ok(Cursor::of_transaction(self, tree, (from, to)))
    }

    /// The row with this key, its newest version, which nobody else can change before the end of the transaction; if
    /// there is none, nobody else can put one in.
    pub fn get_for_update(&mut self, tree: &Arc<Tree>, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.inner.get_for_update(tree, key.as_ref(), &self.wait())
    }

    // ---- writing ----

    /// Puts a new row in. [`DuplicateRow`](crate::Error::DuplicateRow) if there is one with this key, also if the
    /// snapshot does not show it.
    pub fn insert(&mut self, tree: &Arc<Tree>, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.insert(tree, key.as_ref(), value.as_ref(), &self.wait())
    }

    /// Puts a row in, whether there is one with this key or not; whether there was.
    pub fn put(&mut self, tree: &Arc<Tree>, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.inner.put(tree, key.as_ref(), value.as_ref(), &self.wait())
    }

    /// Gives the row with this key another value; `false` if there is none.
    pub fn update(
        &mut self,
        tree: &Arc<Tree>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.inner.update(tree, key.as_ref(), value.as_ref(), &self.wait())
    }

    /// Takes the row with this key out; `false` if there is none.
    pub fn delete(&mut self, tree: &Arc<Tree>, key: impl AsRef<[u8]>) -> Result<bool> {
        self.inner.delete(tree, key.as_ref(), &self.wait())
    }

    /// Puts new rows in, and says how many. Those whose keys ascend go into blocks and to the table's file, and not
    /// through the log: the way to fill a table. After an error none of them is there.
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        tree: &Arc<Tree>,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.inner.load(tree, rows, &self.wait())
    }

    // ---- going back, and the end ----

    /// A point to go back to.
    pub fn savepoint(&mut self) -> Savepoint {
        self.inner.savepoint()
    }

    /// Undoes the writes since then; locks are kept.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.inner.rollback_to(savepoint)
    }

    /// Makes its writes visible to transactions and snapshots that begin from now on, and as durable as
    /// [`Options::commit_flush`](crate::Options::commit_flush) says. After an error it was rolled back.
    pub fn commit(self) -> Result<()> {
        self.inner.commit()
    }

    /// Undoes everything, as dropping does.
    pub fn rollback(self) {
        self.inner.rollback();
    }

    // ---- as the level has it ----

    fn locks_reads(&self) -> bool {
        self.inner.isolation().is_serializable()
    }

    fn read_begins(&mut self) {
        if self.inner.isolation() == Isolation::ReadCommitted {
            self.inner.close_snapshot();
        }
    }

    /// Through which eyes it reads. What a locking read finds may be another transaction's; the lock of the row waits
    /// for that one, and then nobody else has an open version of it.
    pub(super) fn view(&self) -> View {
        match self.locks_reads() {
            true => View::Pending,
            false => View::Snapshot,
        }
    }

    /// At [`Isolation::Serializable`], from the row that the cursor found on: the first that is there once it is
    /// locked.
    pub(super) fn settle(&mut self, cursor: &mut engine::Cursor, found: bool, back: bool) -> Result<bool> {
        if !self.locks_reads() {
            return Ok(found);
        }
        let mut found = found;
        while found {
            let tree = cursor.tree().clone();
            self.inner.lock(&tree, cursor.key(), LockMode::Shared, &self.wait())?;
            self.inner.check_unchanged(&tree, cursor.key())?;
            if cursor.refresh(&mut self.inner, View::Pending)? {
                return Ok(true);
            }
            found = if back { cursor.prev(&mut self.inner) } else { cursor.next(&mut self.inner) }?;
        }
        Ok(false)
    }
}
