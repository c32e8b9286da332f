//! What reading, locking and writing rows asks of the transaction: locks and conflicts, and the end of what was
//! appended or gathered.
//!
//! Invariant: when [`Session::finish_writes`] has returned without an error, all rows that were written so far are
//! where others meet them, and none lies in a range that somebody else has locked.

use super::Session;
use crate::outcome::{Result, Stop};
use std::ops::Bound;
use std::sync::Arc;
use teak_core::server::{Claim, LockOutcome, Table, Tree};
use teak_core::{Error, LockMode, WaitPolicy};

/// A statement with no more rows writes their index entries at once.
const FEW_ROWS: u32 = 32;

impl Session {
    /// Locks a row.
    pub(crate) fn lock(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        mode: LockMode,
        policy: WaitPolicy,
    ) -> Result<LockOutcome> {
        let txn = self.txn.as_mut().ok_or(Stop::Misuse("no transaction is open"))?;
        self.waits.run(policy, |wait| txn.lock(tree, key, mode, wait))
    }

    /// Locks all keys of `length` bytes from `from` on and below `below` at once, if nobody else has locked any row of
    /// the tree; `false`: none of them. To the end of the transaction.
    pub(crate) fn lock_keys(
        &mut self,
        tree: &Arc<Tree>,
        from: &[u8],
        below: &[u8],
        length: usize,
        mode: LockMode,
    ) -> Result<bool> {
        let locked = self.txn()?.lock_keys(tree, from, below, length, mode)?;
        if locked && mode == LockMode::Exclusive {
            let mut stretch = self.stretch.take().unwrap_or_default();
            (stretch.tree, stretch.length) = (tree.id(), length);
            stretch.from.clear();
            stretch.from.extend_from_slice(from);
            stretch.below.clear();
            stretch.below.extend_from_slice(below);
            self.stretch = Some(stretch);
        }
        Ok(locked)
    }

    /// Whether the row was locked by the last [`Session::lock_keys`] that locked anything exclusively.
    pub(crate) fn has_locked(&self, tree: &Arc<Tree>, key: &[u8]) -> bool {
        self.stretch.as_ref().is_some_and(|stretch| {
            let inside = *stretch.from <= *key && *key < *stretch.below;
            stretch.tree == tree.id() && stretch.length == key.len() && inside
        })
    }

    /// Keeps other transactions from inserting into a range. Ranges do not exclude each other: those who read and lock
    /// rows in the same gap do not wait for each other, as in InnoDB.
    pub(crate) fn lock_range(
        &mut self,
        tree: &Arc<Tree>,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<()> {
        let txn = self.txn.as_mut().ok_or(Stop::Misuse("no transaction is open"))?;
        self.waits.run(WaitPolicy::Wait, |wait| txn.lock_range(tree, from, to, LockMode::Shared, wait))
    }

    /// Waits while another transaction's range lock covers the key.
    pub(crate) fn check_insert(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<()> {
        let txn = self.txn.as_mut().ok_or(Stop::Misuse("no transaction is open"))?;
        self.waits.run(WaitPolicy::Wait, |wait| txn.check_insert(tree, key, wait))
    }

    /// Locks a key that is to be put in, and looks whether it is free; what has become of the lock. [`Stop::Duplicate`]
    /// if it is taken: then it stays locked with `duplicate` strength, or as strongly as it was before.
    pub(crate) fn claim(&mut self, tree: &Arc<Tree>, key: &[u8], duplicate: LockMode) -> Result<LockOutcome> {
        let txn = self.txn.as_mut().ok_or(Stop::Misuse("no transaction is open"))?;
        match self.waits.run(WaitPolicy::Wait, |wait| txn.claim(tree, key, duplicate, wait))? {
            Claim::Free(outcome) => Ok(outcome),
            Claim::Taken => Err(Stop::Duplicate),
        }
    }

    /// The same of a key that nobody can have, or of which whoever writes it finds out: it is not looked for.
    pub(crate) fn reserve(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        duplicate: LockMode,
    ) -> Result<LockOutcome> {
        let txn = self.txn.as_mut().ok_or(Stop::Misuse("no transaction is open"))?;
        match self.waits.run(WaitPolicy::Wait, |wait| txn.reserve(tree, key, duplicate, wait))? {
            Claim::Free(outcome) => {
                self.relocked |= outcome != LockOutcome::New;
                Ok(outcome)
            }
            Claim::Taken => Err(Stop::Duplicate),
        }
    }

    /// Whether the row with `key`, which is to be appended, is sorted first; [`Session::finish_rows`] tells then if its
    /// key is taken.
    pub(crate) fn sorts(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        let bytes = self.sort_bytes;
        Ok(self.txn()?.sorts(tree, key, bytes)?)
    }

    /// What was appended or gathered is where others meet it; waits for those who have locked ranges that it lies in.
    pub fn finish_writes(&mut self) -> Result<()> {
        let Some(txn) = &mut self.txn else { return Ok(()) };
        txn.finish_writes()?;
        if txn.is_unchecked() {
            self.waits.run(WaitPolicy::Wait, |wait| txn.check_finished(wait))?;
        }
        Ok(())
    }

    /// [`Session::finish_writes`] for a statement that has written rows of `table`; [`Stop::Duplicate`] if a key is
    /// taken of which it was not known yet. `drops`: after an error nobody rolls back, but the table goes.
    pub fn finish_rows(&mut self, table: &Table, drops: bool) -> Result<()> {
        let result = self.finish_writes();
        let result = result.map_err(|stop| self.note_late(stop, table));
        if let (Some(txn), true, true) = (&mut self.txn, drops, result.is_err()) {
            txn.abandon_writes();
        }
        result
    }

    /// What ends a statement that sorts, whose last row was refused by `stop`: if a row before it was, and that was not
    /// known yet, then that.
    pub(crate) fn first_to_end(&mut self, stop: Stop, table: &Table) -> Stop {
        let is_earlier = |error: &Error| matches!(error, Error::DuplicateKey { .. });
        let is_taken = match &stop {
            Stop::Duplicate => true,
            Stop::Core(error) => is_earlier(error),
            _ => false,
        };
        let earlier = self.txn.as_mut().filter(|_| is_taken).and_then(|txn| txn.finish_writes().err());
        let stop = earlier.filter(is_earlier).map_or(stop, Stop::Core);
        self.note_late(stop, table)
    }

    fn note_late(&mut self, stop: Stop, table: &Table) -> Stop {
        self.share_taken(&stop, table);
        self.collision.note_late(stop, table, self.txn.as_mut())
    }

    /// The next row of the statement is written. Whether its entries in indexes may wait for those of others: a
    /// statement with few rows would only pay for that.
    pub(crate) fn gathers_entries(&mut self) -> bool {
        self.rows_written = self.rows_written.saturating_add(1);
        self.rows_written > FEW_ROWS
    }

    /// The row is locked exclusively, was found under that lock, and has not changed since the snapshot.
    pub(crate) fn note_taken(&mut self, tree: &Arc<Tree>, key: &[u8]) {
        self.taken = Some(tree.id());
        self.taken_key.clear();
        self.taken_key.extend_from_slice(key);
    }

    /// Whether [`Session::note_taken`] was said of the row, and of no other since.
    pub(crate) fn has_taken(&self, tree: &Arc<Tree>, key: &[u8]) -> bool {
        self.taken == Some(tree.id()) && self.taken_key == key
    }

    /// Undoes what the last lock of this row did.
    pub(crate) fn give_back(&mut self, tree: &Arc<Tree>, key: &[u8], outcome: LockOutcome) {
        self.taken = None;
        if let Some(txn) = &mut self.txn {
            txn.give_back(tree, key, outcome);
        }
    }

    /// Of a key that a statement has reserved and that turns out to be taken: it stays locked as a claim leaves it,
    /// shared, unless the transaction may have had it locked before the statement did.
    fn share_taken(&mut self, stop: &Stop, table: &Table) {
        let taken = match stop {
            Stop::Core(Error::DuplicateRow { key }) => Some((0, key)),
            Stop::Core(Error::DuplicateKey { tree, key, .. }) => {
                let number = (0..table.trees()).find(|number| table.tree(*number).id() == *tree);
                number.map(|number| (number, key))
            }
            _ => None,
        };
        let Some((number, key)) = taken.filter(|_| !self.relocked) else { return };
        let tree = table.tree(number).clone();
        self.give_back(&tree, key, LockOutcome::New);
        // If somebody else has it already the row is his to change: the error was true.
        let _ = self.lock(&tree, key, LockMode::Shared, WaitPolicy::NoWait);
    }

    /// First committer wins: an error if the key was committed after this transaction's snapshot and the level is
    /// strict.
    pub(crate) fn check_unchanged(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<()> {
        Ok(self.txn()?.check_unchanged(tree, key)?)
    }

    /// Whether a write to the row goes over what was committed after the transaction's snapshot, as a lenient level
    /// lets it. From then on an index of the table may show two entries of the row, one as of the snapshot and one of
    /// its own, and the first is to be passed over; and entries that the write leaves as they are have to be written,
    /// too ([`Promise::rewrites`](crate::row::Promise::rewrites)), or the snapshot may not show them. To be asked
    /// before a change of a row that is locked, and after an insert.
    pub fn overtakes(&mut self, table: &Table, pk: &[u8]) -> Result<bool> {
        if !self.may_overtake() {
            return Ok(false);
        }
        Ok(self.txn()?.changed_since_snapshot(table.tree(0), pk)?)
    }

    /// Whether [`Session::overtakes`] can be true of any row.
    pub(crate) fn may_overtake(&self) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.isolation().is_lenient() && txn.has_snapshot())
    }

    /// Whether [`Session::check_unchanged`] has anything to compare with.
    pub(crate) fn may_conflict(&self) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.isolation().is_strict() && txn.has_snapshot())
    }
}
