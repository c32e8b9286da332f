//! One verb for a row: lock, look, compare with the snapshot, write.
//!
//! A row's exclusive lock is held to the end of the transaction, also where there is no row: nobody else puts one
//! there. Under it the newest committed version of the key is the last, so what is found stays true. What the snapshot
//! shows may be older: where the level [is strict](crate::Isolation::is_strict) that is [`Error::SnapshotConflict`].
//!
//! An insert also waits for range locks of others: before the write, when the lock of the key is given back, as the one
//! with the range may want the key; and after it, as the range may have been locked in between. Who locks ranges looks
//! after the lock. Whatever the order, one of the two sees the other.
//!
//! A verb that fails has written nothing; its locks stay, and that of a row which an insert has found is shared. After
//! [`Error::Deadlock`] the transaction has to be rolled back.

use super::claim::Claim;
use super::transaction::{Savepoint, Transaction};
use crate::lock::WaitRequest;
use crate::stop;
use crate::tree::Tree;
use crate::types::{LockMode, WriteOp};
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
        let claim = self.claim(tree, key, LockMode::Exclusive, wait)?;
        self.check_unchanged(tree, key)?;
        match claim {
            Claim::Taken => self.write(tree, key, WriteOp::Update(value))?,
            Claim::Free(_) => self.put_new(tree, key, value, wait)?,
        }
        Ok(claim == Claim::Taken)
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
        let there = self.take(tree, key, wait)?;
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
        Ok(match self.take(tree, key, wait)? {
            true => Some(self.found(tree)?.to_vec()),
            false => None,
        })
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
        let mut count = 0;
        for (key, value) in rows {
            let key = key.as_ref();
            self.claim_free(tree, key, wait)?;
            self.append(tree, key, value.as_ref())?;
            count += 1;
        }
        self.finish_writes()?;
        self.check_finished(wait)?;
        Ok(count)
    }

    /// Locks the key and looks for its newest version; whether there is one.
    fn take(&mut self, tree: &Arc<Tree>, key: &[u8], wait: &WaitRequest<'_>) -> Result<bool> {
        self.lock(tree, key, LockMode::Exclusive, wait)?;
        let there = self.find(tree, key)?;
        self.check_unchanged(tree, key)?;
        Ok(there)
    }

    /// [`Transaction::claim`] of a key that has to be free.
    fn claim_free(&mut self, tree: &Arc<Tree>, key: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        match self.claim(tree, key, LockMode::Shared, wait)? {
            Claim::Free(_) => self.check_unchanged(tree, key),
            Claim::Taken => Err(Error::DuplicateRow { key: key.to_vec() }),
        }
    }

    /// Writes a row whose key it has claimed.
    fn put_new(&mut self, tree: &Arc<Tree>, key: &[u8], value: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        let before = self.here()?;
        stop::at("insert: claimed and not written");
        self.write(tree, key, WriteOp::Insert(value))?;
        self.check_insert(tree, key, wait).or_else(|error| self.rollback_to(before).and(Err(error)))
    }

    /// Like [`Transaction::savepoint`] just before a write, and costs nothing. What is appended has to be where it can
    /// stay.
    fn here(&mut self) -> Result<Savepoint> {
        self.finish_writes()?;
        self.last_write().map(Savepoint)
    }
}
