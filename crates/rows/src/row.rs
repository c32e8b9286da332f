//! Row operations: one change of a row and of all its index entries, all or nothing.
//!
//! Locks: the row exclusively; each unique key that is put in or taken out exclusively (see [`crate::unique`]);
//! non-unique entries are not locked, whoever changes them holds the row. What is put in must not lie in a range that
//! another transaction has locked (see `locking.rs` for why that is checked before and after the write).

use std::sync::Arc;

use teak_core::{LockMode, WaitPolicy, WriteOp};

use crate::outcome::{Result, Stop};
use crate::session::Session;
use crate::unique::primary_key;
use crate::way::{Gathered, Proof, Way};
use teak_core::server::{LockOutcome, Table, Tree};

/// An index entry of a row.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Which tree of the table.
    pub tree: u32,
    /// Whether nobody else may have the key.
    pub unique: bool,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// What a statement promises of a row that it writes, and asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// Nobody else can see the table.
    pub private: bool,
    /// The primary key of a new row was never used.
    pub fresh_key: bool,
    /// Which others the statement writes.
    pub batch: Batch,
    /// How strongly the row behind a duplicate key is locked.
    pub duplicate: LockMode,
    /// Entries that stay as they are are written all the same (see [`Session::overtakes`]).
    pub rewrites: bool,
}

impl Default for Promise {
    fn default() -> Promise {
        Promise {
            private: false,
            fresh_key: false,
            batch: Batch::Single,
            duplicate: LockMode::Shared,
            rewrites: false,
        }
    }
}

/// Which rows a new one is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// It is on its own.
    Single,
    /// One of many, which [`Session::finish_rows`] ends.
    Many,
    /// Likewise; and if the key of one is taken none of them is to stay, so that it may be told at that end, and rows
    /// and entries in no order be sorted before.
    ManyOrNone,
}

fn tree(table: &Table, number: u32) -> Result<&Arc<Tree>> {
    if number as usize >= table.trees() {
        return Err(Stop::Misuse("no such tree"));
    }
    Ok(table.tree(number as usize))
}

impl Session {
    /// Puts in a new row. On [`Stop::Duplicate`] [`Session::collision`] says with what.
    pub fn insert<'e>(
        &mut self,
        table: &Table,
        pk: &[u8],
        row: &[u8],
        entries: impl Iterator<Item = Entry<'e>> + Clone,
        promise: Promise,
    ) -> Result<()> {
        // What fails after the claims of one of many fails the statement, whose rollback undoes it: a savepoint a row
        // would end the gathering.
        match promise.batch {
            Batch::Single => self.atomically(|session| session.put_in(table, pk, row, entries, promise)),
            Batch::Many => self.put_in(table, pk, row, entries, promise),
            Batch::ManyOrNone => {
                let put = self.put_in(table, pk, row, entries, promise);
                put.map_err(|stop| self.first_to_end(stop, table))
            }
        }
    }

    /// Claims everything, then writes, then looks for range locks that came meanwhile (for appended rows at the end of
    /// the statement).
    fn put_in<'e>(
        &mut self,
        table: &Table,
        pk: &[u8],
        row: &[u8],
        entries: impl Iterator<Item = Entry<'e>> + Clone,
        promise: Promise,
    ) -> Result<()> {
        let rows = tree(table, 0)?;
        self.writable()?;
        let gathered = Gathered::by(self.gathers_entries(), promise.batch);
        let way = self.way(rows, pk, promise, gathered)?;
        self.claims.clear();
        let claimed = self.make_room_for_row(rows, pk, promise, way).and_then(|()| {
            entries.clone().try_for_each(|entry| {
                self.make_room_for_entry(tree(table, entry.tree)?, &entry, promise, gathered)
            })
        });
        if let Err(stop) = claimed {
            self.give_claims_back(Some((rows, pk)), table, entries);
            return Err(stop);
        }
        let txn = self.writable()?;
        way.put(txn, rows, pk, row)?;
        for entry in entries.clone() {
            gathered.put(txn, tree(table, entry.tree)?, &entry, WriteOp::Insert(entry.value))?;
        }
        self.count_row();
        if !promise.private {
            if way == Way::Log {
                self.check_insert(rows, pk)?;
            }
            for entry in entries.filter(|entry| !gathered.has(entry)) {
                self.check_insert(tree(table, entry.tree)?, entry.key)?;
            }
        }
        Ok(())
    }

    /// Replaces the row `old_pk`. Each pair of entries belongs to one tree; `None`: there is no entry.
    pub fn update<'e>(
        &mut self,
        table: &Table,
        old_pk: &[u8],
        new_pk: &[u8],
        row: &[u8],
        pairs: impl Iterator<Item = (Option<Entry<'e>>, Option<Entry<'e>>)> + Clone,
        promise: Promise,
    ) -> Result<()> {
        let rows = tree(table, 0)?;
        let moves = old_pk != new_pk;
        self.atomically(|session| {
            session.take_row(rows, old_pk, promise)?;
            let changed = pairs.clone().filter(|(old, new)| key(old) != key(new));
            session.claims.clear();
            let claimed = session.claim_changes(table, moves.then_some(new_pk), changed.clone(), promise);
            if let Err(stop) = claimed {
                let row = moves.then_some((rows, new_pk));
                session.give_claims_back(row, table, changed.filter_map(|(_, new)| new));
                return Err(stop);
            }
            let gathered = Gathered::by(session.gathers_entries(), Batch::Single);
            let txn = session.writable()?;
            if moves {
                txn.write(rows, old_pk, WriteOp::Delete)?;
                txn.write(rows, new_pk, WriteOp::Insert(row))?;
            } else {
                txn.write(rows, old_pk, WriteOp::Update(row))?;
            }
            for pair in pairs.clone() {
                match pair {
                    (Some(old), Some(new)) if old.key == new.key => {
                        if promise.rewrites || old.value != new.value {
                            gathered.put(txn, tree(table, new.tree)?, &new, WriteOp::Update(new.value))?;
                        }
                    }
                    (old, new) => {
                        if let Some(old) = old {
                            gathered.put(txn, tree(table, old.tree)?, &old, WriteOp::Delete)?;
                        }
                        if let Some(new) = new {
                            gathered.put(txn, tree(table, new.tree)?, &new, WriteOp::Insert(new.value))?;
                        }
                    }
                }
            }
            session.count_row();
            if !promise.private {
                if moves {
                    session.check_insert(rows, new_pk)?;
                }
                for (_, new) in pairs.filter(|(old, new)| key(old) != key(new)) {
                    if let Some(new) = new.filter(|new| !gathered.has(new)) {
                        session.check_insert(tree(table, new.tree)?, new.key)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Takes a row and its entries out.
    pub fn delete<'e>(
        &mut self,
        table: &Table,
        pk: &[u8],
        entries: impl Iterator<Item = Entry<'e>> + Clone,
        promise: Promise,
    ) -> Result<()> {
        let rows = tree(table, 0)?;
        self.atomically(|session| {
            session.take_row(rows, pk, promise)?;
            for entry in entries.clone() {
                session.lock_entry(tree(table, entry.tree)?, &entry, promise)?;
            }
            let gathered = Gathered::by(session.gathers_entries(), Batch::Single);
            let txn = session.writable()?;
            txn.write(rows, pk, WriteOp::Delete)?;
            for entry in entries {
                gathered.put(txn, tree(table, entry.tree)?, &entry, WriteOp::Delete)?;
            }
            session.count_row();
            Ok(())
        })
    }

    /// Locks an existing row for a change.
    pub(crate) fn take_row(&mut self, rows: &Arc<Tree>, pk: &[u8], promise: Promise) -> Result<()> {
        if promise.private || self.has_taken(rows, pk) {
            return Ok(());
        }
        if self.has_locked(rows, pk) {
            return self.check_unchanged(rows, pk);
        }
        // A row that was read with a lock, as the server does before a change, is there; any other may have gone
        // meanwhile.
        let outcome = self.lock(rows, pk, LockMode::Exclusive, WaitPolicy::Wait)?;
        self.check_unchanged(rows, pk)?;
        if outcome == LockOutcome::New && !self.txn()?.find(rows, pk)? {
            return Err(Stop::NotFound);
        }
        Ok(())
    }

    /// A unique key is locked before it goes: who wants it must wait to know whether it does.
    fn lock_entry(&mut self, tree: &Arc<Tree>, entry: &Entry<'_>, promise: Promise) -> Result<()> {
        if entry.unique && !promise.private {
            self.lock(tree, entry.key, LockMode::Exclusive, WaitPolicy::Wait)?;
        }
        Ok(())
    }

    /// Claims the keys that an UPDATE puts in, and locks those that it takes out.
    fn claim_changes<'e>(
        &mut self,
        table: &Table,
        new_pk: Option<&[u8]>,
        changed: impl Iterator<Item = (Option<Entry<'e>>, Option<Entry<'e>>)>,
        promise: Promise,
    ) -> Result<()> {
        if let Some(pk) = new_pk {
            self.make_room_for_row(tree(table, 0)?, pk, promise, Way::Log)?;
        }
        for (old, new) in changed {
            if let Some(old) = old {
                self.lock_entry(tree(table, old.tree)?, &old, promise)?;
            }
            if let Some(new) = new {
                self.make_room_for_entry(tree(table, new.tree)?, &new, promise, Gathered::None)?;
            }
        }
        Ok(())
    }

    /// One of a row's claims was refused: nothing is going to be under the keys that it has claimed before, which were
    /// free, so their locks are what they were. `row` and `entries` are all that it was to claim, in that order.
    fn give_claims_back<'e>(
        &mut self,
        row: Option<(&Arc<Tree>, &[u8])>,
        table: &Table,
        entries: impl Iterator<Item = Entry<'e>>,
    ) {
        let mut claims = std::mem::take(&mut self.claims);
        let mut claimed = claims.drain(..);
        if let Some((rows, pk)) = row {
            claimed.next().into_iter().for_each(|outcome| self.give_back(rows, pk, outcome));
        }
        for (entry, outcome) in entries.zip(claimed) {
            if let Ok(tree) = tree(table, entry.tree) {
                self.give_back(tree, entry.key, outcome);
            }
        }
        self.claims = claims;
    }

    fn make_room_for_row(&mut self, rows: &Arc<Tree>, pk: &[u8], promise: Promise, way: Way) -> Result<()> {
        let proved = self.prove(Proof::of_row(promise, way), rows, pk, promise.duplicate);
        if matches!(proved, Err(Stop::Duplicate)) {
            self.collision.note(0, pk);
        }
        self.claims.push(proved?);
        if promise.private || promise.fresh_key {
            return Ok(());
        }
        self.check_unchanged(rows, pk)
    }

    fn make_room_for_entry(
        &mut self,
        tree: &Arc<Tree>,
        entry: &Entry<'_>,
        promise: Promise,
        gathered: Gathered,
    ) -> Result<()> {
        let proved =
            self.prove(Proof::of_entry(promise, gathered, entry), tree, entry.key, promise.duplicate);
        if matches!(proved, Err(Stop::Duplicate)) {
            let mut collision = std::mem::take(&mut self.collision);
            let taken = self.txn()?.found(tree)?;
            collision.note(entry.tree, primary_key(taken).unwrap_or_default());
            self.collision = collision;
        }
        self.claims.push(proved?);
        Ok(())
    }
}

fn key<'e>(entry: &Option<Entry<'e>>) -> Option<&'e [u8]> {
    entry.as_ref().map(|entry| entry.key)
}
