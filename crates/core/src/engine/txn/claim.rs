//! The rule of a row: nobody else has its key, nobody changed it since the snapshot, and now it is this transaction's.
//!
//! ```text
//! lock ──> look (a cursor pins the leaf) ──> ranges of others ──> the snapshot ──> write
//!                       └── asked once: what follows asks the pinned leaf, as long as it is what a descent would find
//! ```
//!
//! Whoever puts a key in, or takes it out, holds its exclusive lock to the end of the transaction, also where there is
//! no row. Under it the newest committed version of the key is the last, so what is found stays true. Programs claim by
//! the verbs of [`super::verbs`], a server row by row with all of a row's unique keys; the rule is the same.

use super::transaction::Transaction;
use super::work::Work;
use crate::engine::shared::Shared;
use crate::lock::{LockOutcome, WaitRequest};
use crate::tree::{Node, Reader, Tree, TreeCursor};
use crate::types::{Isolation, LockMode};
use crate::{Error, Result};
use std::sync::Arc;

/// Trees whose cursor a transaction keeps.
const MOST_TREES: usize = 32;

/// Where a transaction has looked keys up last: a cursor for each tree.
#[derive(Default)]
pub(in crate::engine) struct Keys {
    cursors: Vec<TreeCursor>,
}

impl Keys {
    fn cursor(&mut self, tree: &Arc<Tree>) -> &mut TreeCursor {
        let place = self.place(tree).unwrap_or_else(|| {
            if self.cursors.len() == MOST_TREES {
                self.cursors.remove(0);
            }
            self.cursors.push(TreeCursor::new(tree.clone()));
            self.cursors.len() - 1
        });
        &mut self.cursors[place]
    }

    /// By address, not by number: a leaf of the same tree as it was opened before is no place to write to.
    fn place(&self, tree: &Tree) -> Option<usize> {
        self.cursors.iter().position(|cursor| std::ptr::eq(&**cursor.tree(), tree))
    }

    fn known(&self, tree: &Tree) -> Option<&TreeCursor> {
        self.place(tree).map(|place| &self.cursors[place])
    }

    /// The leaf that the last look in `tree` has found, if `key` belongs there.
    pub(super) fn leaf(&self, tree: &Tree, key: &[u8]) -> Option<&Arc<Node>> {
        self.known(tree)?.leaf_of(key)
    }

    /// Lets go of the trees; memory for a few cursors stays.
    pub(super) fn start_anew(&mut self) {
        self.cursors.clear();
    }

    /// Lets go of the leaves.
    pub(super) fn rest(&mut self) {
        self.cursors.iter_mut().for_each(TreeCursor::reset);
    }
}

/// What has become of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The key is this transaction's to put in; what has become of its lock.
    Free(LockOutcome),
    /// A row has it; [`Transaction::found`] is its value.
    Taken,
}

impl Work {
    /// Looks for the newest committed version of `key`, or the transaction's own; whether it is there.
    pub(super) fn find(&mut self, shared: &Shared, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        self.show_deferred(shared, tree)?;
        self.show_append(shared, tree, Some(key))?;
        self.find_in_tree(tree, key)
    }

    /// [`Work::find`] of what is in the tree by now.
    pub(super) fn find_in_tree(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        let (keys, own) = self.keys_and_status();
        let found = keys.cursor(tree).get(&Reader::latest(own), key)?;
        self.reads += u64::from(found);
        Ok(found)
    }

    /// Whether no other transaction's range lock covers the key now.
    fn is_clear(&mut self, shared: &Shared, tree: &Tree, key: &[u8]) -> Result<bool> {
        match self.locks(shared).check_insert(tree.id(), key, &WaitRequest::no_wait()) {
            Err(Error::WouldBlock) => Ok(false),
            asked => asked.map(|()| true),
        }
    }

    /// See [`Transaction::claim`].
    fn claim(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        duplicate: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<Claim> {
        let mut waited_for_ranges = false;
        // What a wait for the exclusive lock has done.
        let mut waited = None;
        loop {
            // Most claims succeed, and most locks are free: the exclusive lock first, without waiting.
            let locked = match waited.take() {
                Some(outcome) => Ok(outcome),
                None => self.locks(shared).lock(tree.id(), key, LockMode::Exclusive, &WaitRequest::no_wait()),
            };
            match locked {
                Ok(outcome) => {
                    if !self.find(shared, tree, key)? {
                        if waited_for_ranges || self.is_clear(shared, tree, key)? {
                            return Ok(Claim::Free(outcome));
                        }
                        // Without the key's lock: the one with the range may want the key. What it had from before
                        // stays: a deadlock with the one who has the range is for the lock manager to find.
                        self.locks(shared).give_back(tree.id(), key, outcome);
                        self.locks(shared).check_insert(tree.id(), key, wait)?;
                        waited_for_ranges = true;
                        continue;
                    }
                    if outcome == LockOutcome::Held || duplicate == LockMode::Exclusive {
                        return Ok(Claim::Taken);
                    }
                    // A lock that was shared before is so again: others have passed it and are to pass it on.
                    self.locks(shared).give_back(tree.id(), key, outcome);
                }
                Err(Error::WouldBlock) => {
                    if duplicate == LockMode::Exclusive || !self.find(shared, tree, key)? {
                        waited = Some(self.locks(shared).lock(tree.id(), key, LockMode::Exclusive, wait)?);
                        continue;
                    }
                }
                Err(error) => return Err(error),
            }
            self.locks(shared).lock(tree.id(), key, LockMode::Shared, wait)?;
            if self.find(shared, tree, key)? {
                return Ok(Claim::Taken);
            }
            // It went while nobody had it locked: the next round takes it.
        }
    }

    /// See [`Transaction::reserve`].
    fn reserve(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        duplicate: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<Claim> {
        self.locks(shared).check_insert(tree.id(), key, wait)?;
        match self.locks(shared).lock(tree.id(), key, LockMode::Exclusive, &WaitRequest::no_wait()) {
            Err(Error::WouldBlock) => self.claim(shared, tree, key, duplicate, wait),
            locked => locked.map(Claim::Free),
        }
    }

    /// Whether another transaction has committed a change of `key` after the snapshot. `cursor`: one that may have
    /// pinned the leaf that says so.
    fn changed_since_snapshot(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        cursor: Option<&TreeCursor>,
    ) -> Result<bool> {
        if self.snapshot.is_none() {
            return Ok(false);
        }
        self.status_or_new();
        let (Some(snapshot), Some(own)) = (&self.snapshot, self.status()) else { return Ok(false) };
        match cursor.or_else(|| self.keys.known(tree)) {
            Some(cursor) => cursor.changed_since(key, snapshot, own),
            None => tree.changed_since(key, snapshot, own),
        }
    }
}

impl Transaction {
    /// Locks `key` exclusively and makes sure that it is free, and that no range which others have locked covers it. If
    /// it is taken it stays locked as strongly as `duplicate` says, or as it was before: shared is enough to make an
    /// error true to the end of the transaction. Whether the snapshot allows a write is for
    /// [`Transaction::check_unchanged`]; whether a range was locked meanwhile is to be asked after the write, by
    /// [`Transaction::check_insert`]. An error is one of waiting or reading, and leaves locks behind.
    pub fn claim(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        duplicate: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<Claim> {
        let (work, shared) = self.opened()?;
        work.claim(shared, tree, key, duplicate, wait)
    }

    /// Like [`Transaction::claim`] of a key of which whoever writes it finds out whether it is taken
    /// ([`Transaction::claim_later`], [`Transaction::sorts`]), or which was never used: it is not looked for, unless
    /// somebody else has it locked. He may not be worth waiting for.
    pub fn reserve(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        duplicate: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<Claim> {
        let (work, shared) = self.opened()?;
        work.reserve(shared, tree, key, duplicate, wait)
    }

    /// Looks for the newest committed version of `key`, or its own; whether it is there. Costs no descent if the leaf
    /// is the one where it looked last in this tree.
    pub fn find(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        let (work, shared) = self.opened()?;
        work.find(shared, tree, key)
    }

    /// The value that the last look in `tree`, by [`Transaction::find`] or for a claim, has found; none: it found none.
    pub fn found(&self, tree: &Tree) -> Result<&[u8]> {
        let cursor = self.work().and_then(|work| work.keys.known(tree));
        cursor.map_or(Ok(&[]), TreeCursor::value)
    }

    /// Lets go of the leaves in which it has looked keys up; a statement has ended.
    pub fn rest(&mut self) {
        if let Ok((work, _)) = self.opened() {
            work.keys.rest();
            work.show();
        }
    }

    /// Whether another transaction committed a version of `key` after this one's snapshot; `false` without one. A key
    /// that was not there and is not there may have come and gone meanwhile: nobody kept that.
    pub fn changed_since_snapshot(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        self.opened()?.0.changed_since_snapshot(tree, key, None)
    }

    /// First committer wins: [`Error::SnapshotConflict`] if the key was committed after this transaction's snapshot and
    /// the level [is strict](Isolation::is_strict).
    pub fn check_unchanged(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<()> {
        self.check_unchanged_by(tree, key, None)
    }

    /// [`Transaction::check_unchanged`] of the key that `cursor` stands on, or has looked for.
    pub fn check_unchanged_at(&mut self, cursor: &super::cursor::Cursor) -> Result<()> {
        self.check_unchanged_by(cursor.tree(), cursor.key(), Some(cursor.in_tree()))
    }

    fn check_unchanged_by(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        cursor: Option<&TreeCursor>,
    ) -> Result<()> {
        let is_strict = Isolation::is_strict(self.isolation());
        match is_strict && self.opened()?.0.changed_since_snapshot(tree, key, cursor)? {
            true => Err(Error::SnapshotConflict),
            false => Ok(()),
        }
    }
}
