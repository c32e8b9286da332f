//! Which way a new row goes into its tree, and which entries of a row wait for those of others.
//!
//! | way | when | whether its key is taken |
//! |---|---|---|
//! | [`Way::Log`] | a row by itself | it is looked for before |
//! | [`Way::Blocks`] | one of many whose keys ascend: into blocks of the table's file | likewise |
//! | [`Way::Sorted`] | the first ones of a table came in no order: sorted, then as above | the sort shows |
//! | [`Way::Gathered`] | many in no order, in a table that has others: with the entries | the write shows |
//!
//! The last two are for statements that a duplicate ends, whenever it is found.

use std::sync::Arc;

use teak_core::server::{Transaction, Tree};
use teak_core::WriteOp;

use crate::outcome::Result;
use crate::row::{Entry, Manner};
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
    /// `many`: the statement has written enough rows for that. `claims`: it may be told late that a key is taken.
    pub(crate) fn by(many: bool, claims: bool) -> Gathered {
        match (many, claims) {
            (false, _) => Gathered::None,
            (true, false) => Gathered::Plain,
            (true, true) => Gathered::All,
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

impl Session {
    /// The way of a new row. May make it the first of those that are sorted.
    pub(crate) fn way(
        &mut self,
        rows: &Arc<Tree>,
        pk: &[u8],
        manner: Manner,
        gathered: Gathered,
    ) -> Result<Way> {
        if !manner.append {
            return Ok(Way::Log);
        }
        if !manner.sorts {
            return Ok(Way::Blocks);
        }
        if gathered == Gathered::All && !manner.fresh_key && self.txn()?.is_scattered() {
            return Ok(Way::Gathered);
        }
        Ok(match self.sorts(rows, pk)? {
            true => Way::Sorted,
            false => Way::Blocks,
        })
    }
}
