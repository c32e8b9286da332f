//! Looks of one table's row at the rows of another: what foreign keys are made of.
//!
//! A row that names a parent asks whether the parent is there; a row that goes, or changes what others may name it by,
//! asks whether it has children. Both are one question: is there a row with this key *now*, and does it stay so to the
//! end of the transaction? The answer is the newest committed state (or the transaction's own), whatever its snapshot
//! is: a constraint holds of what is committed, not of what somebody sees.
//!
//! How the two sides meet. Who puts in a child holds the child exclusively and then looks: the parent's row is locked
//! shared from then on. Who takes a parent out holds it exclusively ([`Session::hold_row`]) and then looks for
//! children. So whoever comes second waits for the other's row, and finds out how it ended. Each has locked its own row
//! before it looks, which is why no order of the two lets both pass.
//!
//! A parent that is not there stays away as long as the transaction, above READ COMMITTED: a row that was passed over
//! for the lack of it (INSERT IGNORE) would else be taken by a replica that comes to the parent first. So do children
//! of a parent that shares its key with others, since a new one is content with any of those and waits for none that
//! goes.

use std::ops::Bound;
use std::sync::Arc;

use teak_core::{LockMode, Seek, View, WaitPolicy};

use crate::bounds::successor;
use crate::outcome::{Result, Stop};
use crate::row::Promise;
use crate::session::Session;
use teak_core::server::{Cursor, LockOutcome, Table, Tree};

/// The primary key that an entry (its key, its value) names.
pub type PrimaryOf<'a> = dyn Fn(&[u8], &[u8]) -> Option<Vec<u8>> + 'a;

/// Which rows of a table are history: for constraints they are not there.
#[derive(Clone, Copy)]
pub enum History<'a> {
    /// None.
    Never,
    /// Those whose primary keys say so.
    ByKey(&'a dyn Fn(&[u8]) -> bool),
    /// Those that say so themselves.
    ByRow(&'a dyn Fn(&[u8]) -> bool),
}

/// A look at another table.
pub struct Look<'a> {
    /// The table.
    pub table: &'a Table,
    /// Which of its trees has the key.
    pub tree: u32,
    /// What the entry's key begins with.
    pub prefix: &'a [u8],
    /// It is a whole primary key (tree 0).
    pub is_row: bool,
    /// Reads an entry of the tree.
    pub primary_of: &'a PrimaryOf<'a>,
    /// Rows that it does not see.
    pub history: History<'a>,
    /// The key of a row that it does not see either.
    pub except: Option<&'a [u8]>,
    /// What becomes of it if the row that it finds is another transaction's.
    pub policy: WaitPolicy,
    /// If nothing is found, or nothing more of what is to be changed, it stays so to the end of the transaction, where
    /// the level locks ranges: what follows from the answer may be all that is told of it, to a client or a replica.
    pub stays_missing: bool,
    /// The table keeps its rows to the end of the transaction.
    pub counts_on: bool,
}

impl Look<'_> {
    /// The primary key of the row that the cursor's entry names.
    fn row_of(&self, cursor: &Cursor) -> Result<Vec<u8>> {
        let row = match self.tree {
            0 => Some(cursor.key().to_vec()),
            _ => (self.primary_of)(cursor.key(), cursor.value()?),
        };
        row.ok_or_else(|| Stop::Inconsistent { table: self.table.name(), tree: self.tree })
    }
}

/// Where a look has found something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The entry's key, in the tree that was looked at.
    pub entry: Vec<u8>,
    /// The row's primary key.
    pub row: Vec<u8>,
}

impl Session {
    /// Whether there is a row with such a key. One that was found is locked shared.
    pub fn look(&mut self, look: &Look<'_>) -> Result<bool> {
        Ok(!self.find(look, None, LockMode::Shared, 1)?.is_empty())
    }

    /// The first rows with such a key whose entries lie behind `after`, at most so many, locked in `mode`.
    pub fn find(
        &mut self,
        look: &Look<'_>,
        after: Option<&[u8]>,
        mode: LockMode,
        most: usize,
    ) -> Result<Vec<Found>> {
        if look.tree as usize >= look.table.trees() {
            return Err(Stop::Misuse("no such tree"));
        }
        let rows = look.table.tree(0).clone();
        if look.counts_on {
            self.txn()?.counts_on(&rows);
        }
        if look.is_row {
            let is_there = after.is_none() && self.find_row(&rows, look, mode)?;
            let key = look.prefix.to_vec();
            return Ok(is_there.then(|| Found { entry: key.clone(), row: key }).into_iter().collect());
        }
        let keeps = self.keeps_missing(look);
        let changes = mode == LockMode::Exclusive;
        if keeps && changes && after.is_none() {
            // None may come before those that are found, either: they are changed one after the other.
            self.keep_missing(look)?;
        }
        let found = self.find_entries(look, &rows, after, mode, most)?;
        if !found.is_empty() || !keeps || changes {
            return Ok(found);
        }
        // Who came before the range was locked is seen now.
        self.keep_missing(look)?;
        self.find_entries(look, &rows, after, mode, most)
    }

    /// Nobody puts in a key with the beginning of the look's before the transaction ends.
    fn keep_missing(&mut self, look: &Look<'_>) -> Result<()> {
        let mut behind = Vec::new();
        let to = match successor(look.prefix, &mut behind) {
            true => Bound::Excluded(behind.as_slice()),
            false => Bound::Unbounded,
        };
        self.lock_range(look.table.tree(look.tree as usize), Bound::Included(look.prefix), to)
    }

    fn keeps_missing(&self, look: &Look<'_>) -> bool {
        look.stays_missing && self.locks_ranges()
    }

    fn find_entries(
        &mut self,
        look: &Look<'_>,
        rows: &Arc<Tree>,
        after: Option<&[u8]>,
        mode: LockMode,
        most: usize,
    ) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        let mut cursor = Cursor::timeless(look.table.tree(look.tree as usize).clone());
        let mut found = match after {
            None => cursor.seek(self.txn()?, View::Pending, Seek::AtOrAfter, look.prefix)?,
            Some(entry) => cursor.seek(self.txn()?, View::Pending, Seek::After, entry)?,
        };
        while found && cursor.key().starts_with(look.prefix) {
            let row = look.row_of(&cursor)?;
            if look.except == Some(row.as_slice())
                || matches!(look.history, History::ByKey(says) if says(&row))
            {
                found = cursor.next(self.txn()?)?;
                continue;
            }
            let outcome =
                match self.has_locked(rows, &row) || self.lock_family(look, rows, &row, mode, most)? {
                    true => LockOutcome::Held,
                    false => self.lock(rows, &row, mode, look.policy)?,
                };
            let is_current = cursor.is_current(self.txn()?, View::Pending)?;
            let is_there = is_current || cursor.refresh(self.txn()?, View::Pending)?;
            let is_same = is_current || (is_there && look.row_of(&cursor)? == row);
            if is_same && !self.is_history(look, rows, &row)? {
                all.push(Found { entry: cursor.key().to_vec(), row });
                if all.len() >= most {
                    break;
                }
                found = cursor.next(self.txn()?)?;
                continue;
            }
            self.give_back(rows, &row, outcome);
            // A unique key may have passed to another row while this one was waited for: then that one is looked at.
            found = (is_there && !is_same) || cursor.next(self.txn()?)?;
        }
        Ok(all)
    }

    /// Where rows themselves lie in the order of the look: locks this one and all behind it at once, if nobody else has
    /// locked any of the table and many are wanted. So it does for those that others might put in between: they would
    /// wait for the parent.
    fn lock_family(
        &mut self,
        look: &Look<'_>,
        rows: &Arc<Tree>,
        row: &[u8],
        mode: LockMode,
        most: usize,
    ) -> Result<bool> {
        let is_plain = look.tree == 0 && matches!(look.history, History::Never);
        let mut behind = Vec::new();
        if !is_plain || most == 1 || mode != LockMode::Exclusive || !successor(look.prefix, &mut behind) {
            return Ok(false);
        }
        self.lock_keys(rows, row, &behind, row.len(), mode)
    }

    /// Whether a row, which is locked, says that it is history.
    fn is_history(&mut self, look: &Look<'_>, rows: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        let History::ByRow(says) = look.history else { return Ok(false) };
        let txn = self.txn()?;
        Ok(!txn.find(rows, key)? || says(txn.found(rows)?))
    }

    fn find_row(&mut self, rows: &Arc<Tree>, look: &Look<'_>, mode: LockMode) -> Result<bool> {
        if look.except == Some(look.prefix) {
            return Ok(false);
        }
        // Whoever puts the row in or takes it out has it locked.
        let outcome = self.lock(rows, look.prefix, mode, look.policy)?;
        let found = self.txn()?.find(rows, look.prefix)?;
        if !found && !self.keeps_missing(look) {
            self.give_back(rows, look.prefix, outcome);
        }
        Ok(found)
    }

    /// Locks a row that is about to be changed; an error if it has gone. To be called before it is asked whether other
    /// rows name it.
    pub fn hold_row(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        let rows = table.tree(0).clone();
        self.take_row(&rows, key, Promise::default())
    }

    /// What is written from here on, [`Session::undo_row`] undoes: of a row at `depth` in a cascade, and all that
    /// follows from it. Marks of greater depth are forgotten.
    pub fn mark_row(&mut self, depth: usize) -> Result<()> {
        let mark = self.writable()?.row_savepoint();
        if depth > self.marks.len() {
            return Err(Stop::Misuse("a row in a cascade without the one before it"));
        }
        self.marks.truncate(depth);
        self.marks.push(mark);
        Ok(())
    }

    /// Undoes what was written since [`Session::mark_row`] at this depth; locks are kept.
    pub fn undo_row(&mut self, depth: usize) -> Result<()> {
        let mark = *self.marks.get(depth).ok_or(Stop::Misuse("no row was marked"))?;
        self.marks.truncate(depth);
        Ok(self.txn()?.rollback_to(mark)?)
    }
}
