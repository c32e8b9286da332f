//! Rows in the order of their keys.

use super::transaction::Transaction;
use super::Tree;
use crate::engine::{self, FixedView};
use crate::tree::TreeCursor;
use crate::types::Seek;
use crate::Result;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The rows of a range, in the order of their keys or against it.
///
/// It is an iterator, whose rows are the caller's own. Where a copy of each would be too much, [`Cursor::advance`] goes
/// to the next row, and [`Cursor::key`] and [`Cursor::value`] lend what is there:
///
/// ```
/// # fn sum(snapshot: &teak_core::Snapshot, tree: &std::sync::Arc<teak_core::Tree>) -> teak_core::Result<usize> {
/// let mut cursor = snapshot.rows(tree);
/// let mut bytes = 0;
/// while cursor.advance()? {
///     bytes += cursor.value()?.len();
/// }
/// # Ok(bytes)
/// # }
/// ```
///
/// After an error it has no more rows.
pub struct Cursor<'r> {
    reader: Reads<'r>,
    /// What of the range is left.
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    descending: bool,
    state: State,
}

/// Through whose eyes, and a position.
enum Reads<'r> {
    Snapshot(&'r FixedView, TreeCursor),
    Transaction(&'r mut Transaction, engine::Cursor),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unplaced,
    Placed,
    Ended,
}

/// A range that owns its ends.
pub(super) fn bounds<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let own = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
    (own(range.start_bound()), own(range.end_bound()))
}

impl<'r> Cursor<'r> {
    pub(super) fn of_snapshot(
        view: &'r FixedView,
        tree: &Arc<Tree>,
        (from, to): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Cursor<'r> {
        let reader = Reads::Snapshot(view, TreeCursor::new(tree.clone()));
        Cursor { reader, from, to, descending: false, state: State::Unplaced }
    }

    pub(super) fn of_transaction(
        txn: &'r mut Transaction,
        tree: &Arc<Tree>,
        (from, to): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Cursor<'r> {
        let reader = Reads::Transaction(txn, engine::Cursor::new(tree.clone()));
        Cursor { reader, from, to, descending: false, state: State::Unplaced }
    }

    /// The rows that are left, the last first.
    pub fn descending(mut self) -> Cursor<'r> {
        if self.state == State::Placed {
            // Those behind the present one; it has been returned.
            self.from = Bound::Excluded(self.key().to_vec());
            self.state = State::Unplaced;
        }
        self.descending = true;
        self
    }

    /// Goes to the next row; `false`: there is none.
    pub fn advance(&mut self) -> Result<bool> {
        let found = match self.state {
            State::Ended => return Ok(false),
            State::Unplaced => self.place(),
            State::Placed => self.reader.step(self.descending),
        };
        debug_assert!(!matches!(found, Ok(true)) || self.has_begun(), "a row before its range");
        self.state = match found {
            Ok(true) if self.is_inside() => State::Placed,
            _ => State::Ended,
        };
        found.map(|_| self.state == State::Placed)
    }

    fn place(&mut self) -> Result<bool> {
        if is_empty(&self.from, &self.to) {
            return Ok(false);
        }
        let bound = if self.descending { &self.to } else { &self.from };
        let seek = match (bound, self.descending) {
            (Bound::Unbounded, _) => None,
            (Bound::Included(key), false) => Some((Seek::AtOrAfter, key)),
            (Bound::Excluded(key), false) => Some((Seek::After, key)),
            (Bound::Included(key), true) => Some((Seek::AtOrBefore, key)),
            (Bound::Excluded(key), true) => Some((Seek::Before, key)),
        };
        match seek {
            Some((seek, key)) => self.reader.seek(seek, key),
            None => self.reader.end(self.descending),
        }
    }

    /// Whether the row has not left the range.
    fn is_inside(&self) -> bool {
        match self.descending {
            true => self.is_above_begin(),
            false => self.is_below_end(),
        }
    }

    /// Whether the row does not lie before the range, in the direction of the cursor.
    fn has_begun(&self) -> bool {
        match self.descending {
            true => self.is_below_end(),
            false => self.is_above_begin(),
        }
    }

    fn is_above_begin(&self) -> bool {
        match &self.from {
            Bound::Unbounded => true,
            Bound::Included(begin) => *self.key() >= **begin,
            Bound::Excluded(begin) => *self.key() > **begin,
        }
    }

    fn is_below_end(&self) -> bool {
        match &self.to {
            Bound::Unbounded => true,
            Bound::Included(end) => *self.key() <= **end,
            Bound::Excluded(end) => *self.key() < **end,
        }
    }

    /// The key of the present row. Empty before the first [`Cursor::advance`].
    pub fn key(&self) -> &[u8] {
        match &self.reader {
            Reads::Snapshot(_, position) => position.key(),
            Reads::Transaction(_, position) => position.key(),
        }
    }

    /// Its value.
    pub fn value(&self) -> Result<&[u8]> {
        match &self.reader {
            Reads::Snapshot(_, position) => position.value(),
            Reads::Transaction(_, position) => position.value(),
        }
    }
}

impl Iterator for Cursor<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = match self.advance() {
            Ok(false) => return None,
            Ok(true) => self.value().map(|value| (self.key().to_vec(), value.to_vec())),
            Err(error) => Err(error),
        };
        if row.is_err() {
            self.state = State::Ended;
        }
        Some(row)
    }
}

impl std::iter::FusedIterator for Cursor<'_> {}

/// Whether no key can lie in between.
pub(super) fn is_empty(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
    }
}

impl Reads<'_> {
    fn seek(&mut self, seek: Seek, key: &[u8]) -> Result<bool> {
        match self {
            Reads::Snapshot(view, position) => {
                let found = position.seek(&view.reader(position.tree())?, seek, key)?;
                Ok(counted(view, found))
            }
            Reads::Transaction(txn, position) => {
                let eyes = txn.view();
                let found = position.seek(&mut txn.inner, eyes, seek, key)?;
                txn.settle(position, found, matches!(seek, Seek::AtOrBefore | Seek::Before))
            }
        }
    }

    /// The first row of the tree, or the last.
    fn end(&mut self, last: bool) -> Result<bool> {
        match self {
            Reads::Snapshot(view, position) => {
                let reader = view.reader(position.tree())?;
                let found = if last { position.last(&reader) } else { position.first(&reader) }?;
                Ok(counted(view, found))
            }
            Reads::Transaction(txn, position) => {
                let eyes = txn.view();
                let found = match last {
                    true => position.last(&mut txn.inner, eyes),
                    false => position.first(&mut txn.inner, eyes),
                };
                txn.settle(position, found?, last)
            }
        }
    }

    fn step(&mut self, back: bool) -> Result<bool> {
        match self {
            Reads::Snapshot(view, position) => {
                let reader = view.reader(position.tree())?;
                let found = if back { position.prev(&reader) } else { position.next(&reader) }?;
                Ok(counted(view, found))
            }
            Reads::Transaction(txn, position) => {
                let found = if back { position.prev(&mut txn.inner) } else { position.next(&mut txn.inner) }?;
                txn.settle(position, found, back)
            }
        }
    }
}

fn counted(view: &FixedView, found: bool) -> bool {
    view.count_reads(u64::from(found));
    found
}
