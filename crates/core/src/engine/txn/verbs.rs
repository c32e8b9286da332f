//! One verb for a row: lock, look, compare with the snapshot, write.
//!
//! A row's exclusive lock is held to the end of the transaction, also where there is no row: nobody else puts one
//! there. Under it the newest committed version of the key is the last, so what is found stays true. What the snapshot
//! shows may be older: at [`Isolation::Repeatable`] and [`Isolation::Serializable`] that is
//! [`Error::SnapshotConflict`].
//!
//! An insert also waits for range locks of others: before the write, when the lock of the key is given back, as the one
//! with the range may want the key; and after it, as the range may have been locked in between. Who locks ranges looks
//! after the lock. Whatever the order, one of the two sees the other.
//!
//! A verb that fails has written nothing; its locks stay, but that a shared lock of a row that an insert has found does
//! not become an exclusive one. After [`Error::Deadlock`] the transaction has to be rolled
//! back.

use super::cursor::Cursor;
use super::transaction::{Savepoint, Transaction};
use crate::lock::LockOutcome;
use crate::stop;
use crate::tree::Tree;
use crate::types::{Isolation, LockMode, View, WaitRequest, WriteOp};
use crate::{Error, Result};
use std::sync::Arc;

impl Transaction {
    /// Puts a new row in. [`Error::DuplicateRow`] if there is one with this key, also if the snapshot does not show it.
    pub fn insert(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        value: &[u8],
        wait: &WaitRequest<'_>,
    ) -> Result<()> {
        self.claim_free(tree, key, wait)?;
        self.put_new(tree, key, value, wait)
    }

    /// Puts a row in, whether there is one with this key or not; whether there was.
    pub fn put(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        value: &[u8],
        wait: &WaitRequest<'_>,
    ) -> Result<bool> {
        let there = self.claim(tree, key, wait)?.1.is_some();
        match there {
            true => {
                self.check_unchanged(tree, key)?;
                self.write(tree, key, WriteOp::Update(value))?;
            }
            false => self.put_new(tree, key, value, wait)?,
        }
        Ok(there)
    }

    /// Gives the row with this key another value; `false` if there is none.
    pub fn update(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        value: &[u8],
        wait: &WaitRequest<'_>,
    ) -> Result<bool> {
        self.write_if_there(tree, key, WriteOp::Update(value), wait)
    }

    /// Takes the row with this key out; `false` if there is none.
    pub fn delete(&mut self, tree: &Arc<Tree>, key: &[u8], wait: &WaitRequest<'_>) -> Result<bool> {
        self.write_if_there(tree, key, WriteOp::Delete, wait)
    }

    fn write_if_there(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        op: WriteOp<'_>,
        wait: &WaitRequest<'_>,
    ) -> Result<bool> {
        let there = self.take(tree, key, wait)?.is_some();
        if there {
            self.write(tree, key, op)?;
        }
        Ok(there)
    }

    /// The row with this key, its newest version, which nobody else can change before the end of the transaction; if
    /// there is none, nobody else can put one in.
    pub fn get_for_update(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        wait: &WaitRequest<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let found = self.take(tree, key, wait)?;
        found.map(|row| row.value().map(<[u8]>::to_vec)).transpose()
    }

    /// Puts new rows in, and says how many: as [`Transaction::insert`] does one after the other, but that those whose
    /// keys ascend go into blocks and to the table's file, and not through the log. After an error none of them is
    /// there.
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        tree: &Arc<Tree>,
        rows: impl IntoIterator<Item = (K, V)>,
        wait: &WaitRequest<'_>,
    ) -> Result<u64> {
        let before = self.savepoint();
        self.load_rows(tree, &mut rows.into_iter(), wait)
            .or_else(|error| self.rollback_to(before).and(Err(error)))
    }

    fn load_rows<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        tree: &Arc<Tree>,
        rows: &mut dyn Iterator<Item = (K, V)>,
        wait: &WaitRequest<'_>,
    ) -> Result<u64> {
        let (mut count, mut least, mut greatest) = (0, Vec::new(), Vec::new());
        for (key, value) in rows {
            let key = key.as_ref();
            self.claim_free(tree, key, wait)?;
            self.append(tree, key, value.as_ref())?;
            if count == 0 || *key < *least {
                least = key.to_vec();
            }
            if *key > *greatest {
                greatest.clear();
                greatest.extend_from_slice(key);
            }
            count += 1;
        }
        self.finish_writes()?;
        if count > 0 {
            self.check_inserts(tree, &least, &greatest, wait)?;
        }
        Ok(count)
    }

    /// Locks the key and looks for its newest version.
    fn take(&mut self, tree: &Arc<Tree>, key: &[u8], wait: &WaitRequest<'_>) -> Result<Option<Cursor>> {
        self.lock(tree, key, LockMode::Exclusive, wait)?;
        self.check_unchanged(tree, key)?;
        self.newest(tree, key)
    }

    /// [`Transaction::take`], and if there is no row, no range lock of others covers the key. With what it did to the
    /// lock of a row that is there.
    fn claim(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        wait: &WaitRequest<'_>,
    ) -> Result<(LockOutcome, Option<Cursor>)> {
        loop {
            let outcome = self.lock(tree, key, LockMode::Exclusive, wait)?;
            if let Some(row) = self.newest(tree, key)? {
                return Ok((outcome, Some(row)));
            }
            match self.check_insert(tree, key, &WaitRequest::no_wait()) {
                Ok(()) => break,
                // What it had from before stays: a deadlock with the one who has the range is for the lock manager to
                // find.
                Err(Error::WouldBlock) => self.give_back(tree, key, outcome),
                Err(error) => return Err(error),
            }
            self.check_insert(tree, key, wait)?;
        }
        self.check_unchanged(tree, key)?;
        Ok((LockOutcome::Held, None))
    }

    /// [`Transaction::claim`] of a key that has to be free.
    fn claim_free(&mut self, tree: &Arc<Tree>, key: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        let (outcome, row) = self.claim(tree, key, wait)?;
        if row.is_none() {
            return Ok(());
        }
        if outcome == LockOutcome::Upgraded {
            // A shared one keeps the error true, and others pass that have passed before.
            self.give_back(tree, key, outcome);
        }
        Err(Error::DuplicateRow { key: key.to_vec() })
    }

    /// Writes a row whose key it has claimed.
    fn put_new(&mut self, tree: &Arc<Tree>, key: &[u8], value: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        let before = self.here()?;
        stop::at("insert: claimed and not written");
        self.write(tree, key, WriteOp::Insert(value))?;
        self.check_insert(tree, key, wait).or_else(|error| self.rollback_to(before).and(Err(error)))
    }

    /// The newest committed version of the key, or its own.
    fn newest(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<Option<Cursor>> {
        let mut cursor = Cursor::new(tree.clone());
        Ok(cursor.get(self, View::Latest, key)?.then_some(cursor))
    }

    /// First committer wins: [`Error::SnapshotConflict`] if the key was committed after this transaction's snapshot and
    /// the level [is strict](Isolation::is_strict).
    pub fn check_unchanged(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<()> {
        match Isolation::is_strict(self.isolation()) && self.changed_since_snapshot(tree, key)? {
            true => Err(Error::SnapshotConflict),
            false => Ok(()),
        }
    }

    /// Like [`Transaction::savepoint`] just before a write, and costs nothing. What is appended has to be where it can
    /// stay.
    fn here(&mut self) -> Result<Savepoint> {
        self.finish_writes()?;
        self.last_write().map(Savepoint)
    }
}
