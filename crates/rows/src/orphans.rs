//! Rows whose parents are missing: all those of a table at once, by a merge of two indexes.
//!
//! The child's entries come in the order of their keys. What the parent's index is asked for comes in the same order
//! wherever the two are encoded in one direction; then its cursor goes on from where it stands, and each leaf of either
//! side is read once. Rows with one parent ask once. Wherever the order differs, each question is a descent. Rows that
//! are history ([`History`]) have no parents, and are none.
//!
//! What holds of the answer is the view's: a snapshot's, or, if the caller keeps writers out of both tables, what is
//! committed.

use teak_core::server::{Cursor, Table};
use teak_core::{Seek, View};

use crate::foreign::{History, PrimaryOf};
use crate::outcome::{Result, Stop};
use crate::session::Session;

/// After so many entries of the child it is told how many there were.
const TOLD_EVERY: u64 = 1024;
/// So many entries the parent's cursor goes on before it descends again.
const STEPS: usize = 16;

/// An index, or the rows, of one of the two tables.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The table.
    pub table: &'a Table,
    /// Which of its trees.
    pub tree: u32,
    /// Reads an entry of the tree.
    pub primary_of: &'a PrimaryOf<'a>,
    /// Rows that do not count.
    pub history: History<'a>,
}

impl Side<'_> {
    fn cursor(&self) -> Cursor {
        Cursor::new(self.table.tree(self.tree as usize).clone())
    }

    /// Whether the entry at which the cursor stands is of a row that is history.
    fn is_history(&self, session: &mut Session, view: View, entry: &Cursor) -> Result<bool> {
        if matches!(self.history, History::Never) {
            return Ok(false);
        }
        let row = match self.tree {
            0 => Some(entry.key().to_vec()),
            _ => (self.primary_of)(entry.key(), entry.value()?),
        };
        let row = row.ok_or_else(|| Stop::Inconsistent { table: self.table.name(), tree: self.tree })?;
        match self.history {
            History::Never => Ok(false),
            History::ByKey(says) => Ok(says(&row)),
            History::ByRow(says) => {
                let mut rows = Cursor::new(self.table.tree(0).clone());
                Ok(rows.get(session.txn()?, view, &row)? && says(rows.value()?))
            }
        }
    }
}

/// Which two indexes are compared.
pub struct Kinship<'a> {
    /// Entries of the child's rows.
    pub child: Side<'a>,
    /// Entries, or rows, of the parent's.
    pub parent: Side<'a>,
    /// How both are read.
    pub view: View,
}

/// What a child's entry names.
pub struct Named<'a> {
    /// With this the parent's key begins; `None`: nothing is named.
    pub parent: Option<&'a [u8]>,
    /// So much of the child's key says that: entries that begin alike name the same.
    pub bytes: usize,
}

/// The caller's part.
pub trait Relatives {
    /// What the entry with this key names.
    fn named(&mut self, child: &[u8]) -> Result<Named<'_>>;
    /// Takes a child's entry, key and value, whose parent is missing; false: that is enough.
    fn orphan(&mut self, key: &[u8], value: &[u8]) -> Result<bool>;
    /// Is told now and then of how many entries were looked at; an error ends it.
    fn watch(&mut self, entries: u64) -> Result<()>;
}

impl Session {
    /// Tells `relatives` of each of the child's entries that names a parent which is not there.
    pub fn find_orphans(&mut self, kinship: &Kinship<'_>, relatives: &mut dyn Relatives) -> Result<()> {
        let mut child = kinship.child.cursor();
        let mut parents = Parents::new(kinship);
        let mut same = Vec::new();
        let mut has_parent = true;
        let mut entries = 0;
        let mut found = child.first(self.txn()?, kinship.view)?;
        while found {
            if same.is_empty() || !child.key().starts_with(&same) {
                let named = relatives.named(child.key())?;
                has_parent = match named.parent {
                    Some(key) => parents.find(self, key)?,
                    None => true,
                };
                let bytes = named.bytes;
                same.clear();
                same.extend_from_slice(&child.key()[..bytes]);
            }
            if !has_parent
                && !kinship.child.is_history(self, kinship.view, &child)?
                && !relatives.orphan(child.key(), child.value()?)?
            {
                return Ok(());
            }
            entries += 1;
            if entries % TOLD_EVERY == 0 {
                relatives.watch(entries)?;
            }
            found = child.next(self.txn()?)?;
        }
        relatives.watch(entries)
    }
}

/// A cursor of the parent's index that is asked for one key after the other.
struct Parents<'a> {
    side: Side<'a>,
    cursor: Cursor,
    view: View,
    /// What it was asked for last; it stands at the first entry that is not less, and no history of that key.
    last: Option<Vec<u8>>,
    /// Whether there is such an entry.
    stands: bool,
}

impl<'a> Parents<'a> {
    fn new(kinship: &Kinship<'a>) -> Parents<'a> {
        let side = kinship.parent;
        Parents { side, cursor: side.cursor(), view: kinship.view, last: None, stands: false }
    }

    /// Whether there is an entry whose key begins with `key`.
    fn find(&mut self, session: &mut Session, key: &[u8]) -> Result<bool> {
        if !self.go_on(session, key)? {
            self.stands = self.cursor.seek(session.txn()?, self.view, Seek::AtOrAfter, key)?;
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        while self.stands && self.cursor.key().starts_with(key) {
            if !self.side.is_history(session, self.view, &self.cursor)? {
                return Ok(true);
            }
            self.stands = self.cursor.next(session.txn()?)?;
        }
        Ok(false)
    }

    /// Steps to the first entry that is not less than `key`; false if it is not ahead, or not near.
    fn go_on(&mut self, session: &mut Session, key: &[u8]) -> Result<bool> {
        if self.last.as_deref().is_none_or(|last| last > key) {
            return Ok(false);
        }
        for _ in 0..STEPS {
            if !self.stands || self.cursor.key() >= key {
                return Ok(true);
            }
            self.stands = self.cursor.next(session.txn()?)?;
        }
        Ok(false)
    }
}
