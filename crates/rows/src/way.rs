//! Which way a new row goes into its tree, which entries of a row wait for those of others, and how a key is seen to be
//! free: all that a statement's [`Promise`] decides.
//!
//! | way | when | whether its key is taken |
//! |---|---|---|
//! | [`Way::Log`] | a row by itself | it is looked for before |
//! | [`Way::Blocks`] | one of many whose keys ascend: into blocks of the table's file | likewise |
//! | [`Way::Sorted`] | the first ones of a table came in no order: sorted, then as above | the sort shows |
//! | [`Way::Gathered`] | many in no order, in a table that has others: with the entries | the write shows |
//!
//! The last two are for statements that a duplicate ends, whenever it is found.
//!
//! | [`Proof`] of a unique key | others see the table | it is private |
//! |---|---|---|
//! | it may be taken | [`Proof::Claim`] | [`Proof::Look`] |
//! | it was never used, or who writes it finds out | [`Proof::Reserve`] | [`Proof::Needless`] |

use std::sync::Arc;

use teak_core::server::{LockOutcome, Transaction, Tree};
use teak_core::{LockMode, WriteOp};

use crate::outcome::{Result, Stop};
use crate::row::{Batch, Entry, Promise};
use crate::session::Session;

/// See the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Log,
    Blocks,
    Sorted,
    Gathered,
}

impl Way {
    /// Whether whoever writes the row finds out if its key is taken.
    pub(crate) fn looks_later(self) -> bool {
        matches!(self, Way::Sorted | Way::Gathered)
    }

    /// Writes the row, or has it written later.
    pub(crate) fn put(self, txn: &mut Transaction, rows: &Arc<Tree>, pk: &[u8], row: &[u8]) -> Result<()> {
        Ok(match self {
            Way::Log => txn.write(rows, pk, WriteOp::Insert(row)),
            Way::Blocks | Way::Sorted => txn.append(rows, pk, row),
            Way::Gathered => txn.claim_later(rows, pk, row),
        }?)
    }
}

/// Which entries of a row a statement gathers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gathered {
    None,
    /// For a unique key everybody looks before he takes it.
    Plain,
    /// Also new ones of unique keys, which are looked for later.
    All,
}

impl Gathered {
    /// `many`: the statement has written enough rows for that.
    pub(crate) fn by(many: bool, batch: Batch) -> Gathered {
        match batch {
            _ if !many => Gathered::None,
            Batch::Single | Batch::Many => Gathered::Plain,
            Batch::ManyOrNone => Gathered::All,
        }
    }

    pub(crate) fn has(self, entry: &Entry<'_>) -> bool {
        match self {
            Gathered::None => false,
            Gathered::Plain => !entry.unique,
            Gathered::All => true,
        }
    }

    /// Whether a build with assertions looks for an entry before it is deleted. Of those that are gathered, one of 32:
    /// otherwise each would be read from where it lies, which gathering is to avoid.
    fn is_looked_for(self, entry: &Entry<'_>) -> bool {
        !self.has(entry) || entry.key.last().is_some_and(|last| last % 32 == 0)
    }

    /// Writes an entry of the index `tree`, or has it written later.
    pub(crate) fn put(
        self,
        txn: &mut Transaction,
        tree: &Arc<Tree>,
        entry: &Entry<'_>,
        op: WriteOp<'_>,
    ) -> Result<()> {
        if cfg!(debug_assertions) && matches!(op, WriteOp::Delete) && self.is_looked_for(entry) {
            let is_there = txn.has_entry(tree, entry.key).unwrap_or(true);
            assert!(is_there, "tree {} has no entry {:02x?}, which is to be deleted", entry.tree, entry.key);
        }
        match (self.has(entry), entry.unique) {
            (true, true) => txn.claim_later(tree, entry.key, entry.value)?,
            (true, false) => txn.write_later(tree, entry.key, op)?,
            (false, _) => txn.write(tree, entry.key, op)?,
        }
        Ok(())
    }
}

/// How a key is seen to be free before it is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nobody else writes to the table, and nobody has the key, or who writes it finds out.
    Needless,
    /// Others may have the key, too; only for those who have locked a range that it lies in is waited.
    Ranges,
    /// It is looked for; nobody else writes to the table.
    Look,
    /// It is locked, and looked for under the lock.
    Claim,
    /// It is locked, and nobody has it, or who writes it finds out.
    Reserve,
}

impl Proof {
    pub(crate) fn of_row(promise: Promise, way: Way) -> Proof {
        Proof::of_unique(promise, promise.fresh_key || way.looks_later())
    }

    pub(crate) fn of_entry(promise: Promise, gathered: Gathered, entry: &Entry<'_>) -> Proof {
        match entry.unique {
            true => Proof::of_unique(promise, gathered.has(entry)),
            false if promise.private => Proof::Needless,
            false => Proof::Ranges,
        }
    }

    fn of_unique(promise: Promise, is_free_or_found_out: bool) -> Proof {
        match (promise.private, is_free_or_found_out) {
            (true, true) => Proof::Needless,
            (true, false) => Proof::Look,
            (false, true) => Proof::Reserve,
            (false, false) => Proof::Claim,
        }
    }
}

impl Session {
    /// The way of a new row. May make it the first of those that are sorted.
    pub(crate) fn way(
        &mut self,
        rows: &Arc<Tree>,
        pk: &[u8],
        promise: Promise,
        gathered: Gathered,
    ) -> Result<Way> {
        Ok(match promise.batch {
            Batch::Single => Way::Log,
            Batch::Many => Way::Blocks,
            Batch::ManyOrNone => {
                let gathers = gathered == Gathered::All && !promise.fresh_key;
                if gathers && self.txn()?.is_scattered() {
                    Way::Gathered
                } else if self.sorts(rows, pk)? {
                    Way::Sorted
                } else {
                    Way::Blocks
                }
            }
        })
    }

    /// Sees to it that the key may be put in; what has become of its lock. [`Stop::Duplicate`]: it is taken, and locked
    /// with `duplicate` strength if it was claimed.
    pub(crate) fn prove(
        &mut self,
        proof: Proof,
        tree: &Arc<Tree>,
        key: &[u8],
        duplicate: LockMode,
    ) -> Result<LockOutcome> {
        match proof {
            Proof::Needless => {}
            Proof::Ranges => self.check_insert(tree, key)?,
            Proof::Look if self.txn()?.find(tree, key)? => return Err(Stop::Duplicate),
            Proof::Look => {}
            Proof::Claim => return self.claim(tree, key, duplicate),
            Proof::Reserve => return self.reserve(tree, key, duplicate),
        }
        Ok(LockOutcome::Held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(unique: bool) -> Entry<'static> {
        Entry { tree: 1, unique, key: b"k", value: b"v" }
    }

    /// What is proved of a row's key, by whether it is looked for, of a unique entry's and of another's.
    fn proofs(promise: Promise) -> [Proof; 4] {
        let of_entry = |unique, gathered| Proof::of_entry(promise, gathered, &entry(unique));
        [
            Proof::of_row(promise, Way::Log),
            Proof::of_row(promise, Way::Sorted),
            of_entry(true, Gathered::Plain),
            of_entry(false, Gathered::Plain),
        ]
    }

    #[test]
    fn nothing_is_locked_in_a_table_that_is_private_and_nothing_looked_for_that_is_found_out_later() {
        let shared = Promise::default();
        assert_eq!(proofs(shared), [Proof::Claim, Proof::Reserve, Proof::Claim, Proof::Ranges]);
        let private = Promise { private: true, ..shared };
        assert_eq!(proofs(private), [Proof::Look, Proof::Needless, Proof::Look, Proof::Needless]);
        let fresh = |promise| Proof::of_row(Promise { fresh_key: true, ..promise }, Way::Log);
        assert_eq!([fresh(shared), fresh(private)], [Proof::Reserve, Proof::Needless]);
        let gathered = |promise| Proof::of_entry(promise, Gathered::All, &entry(true));
        assert_eq!([gathered(shared), gathered(private)], [Proof::Reserve, Proof::Needless]);
    }

    #[test]
    fn unique_entries_are_gathered_only_where_a_duplicate_ends_the_statement() {
        let unique = |many, batch| Gathered::by(many, batch).has(&entry(true));
        assert!(unique(true, Batch::ManyOrNone));
        assert!(
            !unique(true, Batch::Many) && !unique(true, Batch::Single) && !unique(false, Batch::ManyOrNone)
        );
        let plain = |many| Gathered::by(many, Batch::Single).has(&entry(false));
        assert!(plain(true) && !plain(false));
    }
}
