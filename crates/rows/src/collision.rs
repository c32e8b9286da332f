//! Which key a row could not have.

use crate::outcome::Stop;
use crate::unique::primary_key;
use teak_core::server::{Table, Transaction};
use teak_core::Error;

/// What a row has collided with, after [`Stop::Duplicate`].
#[derive(Debug, Default)]
pub struct Collision {
    /// Which tree of the table refused: 0, or that of a unique index.
    pub tree: u32,
    /// Primary key of the row that is there, or, if it `is_late`, of any that has the key.
    pub pk: Vec<u8>,
    /// If it `is_late`: that row.
    pub row: Vec<u8>,
    /// It was told after the row was written, perhaps after others of the statement were.
    pub is_late: bool,
}

impl Collision {
    pub(crate) fn note(&mut self, tree: u32, pk: &[u8]) {
        self.tree = tree;
        self.pk.clear();
        self.pk.extend_from_slice(pk);
        self.is_late = false;
    }

    /// Takes what the core says of rows and entries of `table` that were sorted first; anything else is passed on.
    pub(crate) fn note_late(&mut self, stop: Stop, table: &Table, txn: Option<&mut Transaction>) -> Stop {
        let taken = match &stop {
            Stop::Core(Error::DuplicateRow { key }) => Some((0, key.as_slice())),
            Stop::Core(Error::DuplicateKey { tree, key, value }) => {
                match (0..table.trees()).find(|&number| table.tree(number).id() == *tree) {
                    Some(0) => Some((0, key.as_slice())),
                    number => number.and_then(|number| Some((number as u32, primary_key(value)?))),
                }
            }
            _ => None,
        };
        let Some((tree, pk)) = taken else { return stop };
        self.note(tree, pk);
        self.is_late = true;
        // What cannot be read is not shown.
        let row = txn.and_then(|txn| txn.peek(table.tree(0), pk).ok().flatten());
        self.row = row.unwrap_or_default();
        Stop::Duplicate
    }
}
