//! Cursors of the model: a key and a direction.

use std::ops::Bound;
use std::sync::Arc;

use super::{pending, visible, Transaction, Tree};
use crate::{Result, Seek, Timestamp, View};

/// A position in a tree. After a call that returned `false` the position is the key that was sought or left:
/// `next` and `prev` go on from there.
pub struct Cursor {
    tree: Arc<Tree>,
    view: View,
    key: Vec<u8>,
    value: Option<Arc<[u8]>>,
}

/// Whether nothing can lie between the bounds (`BTreeMap::range` panics on some such).
pub(super) fn is_empty(from: &Bound<&[u8]>, to: &Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(a), Bound::Included(b)) => a > b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a >= b,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Cursor {
    /// A cursor without a position.
    pub fn new(tree: Arc<Tree>) -> Cursor {
        Cursor { tree, view: View::Snapshot, key: Vec::new(), value: None }
    }

    fn find(
        &mut self,
        txn: &mut Transaction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<bool> {
        let timestamp = match self.view {
            View::Snapshot => txn.open_snapshot(),
            View::Latest | View::Pending => Timestamp::MAX,
        };
        self.value = None;
        if is_empty(&from, &to) {
            return Ok(false);
        }
        let shared = self.tree.shared().clone();
        let state = shared.state.lock();
        let Some(rows) = state.trees.get(&self.tree.id()) else { return Ok(false) };
        let mut seen = rows.range::<[u8], _>((from, to)).filter_map(|(key, chain)| {
            let value = match self.view {
                View::Pending => pending(chain, txn.id()),
                View::Snapshot | View::Latest => visible(chain, txn.id(), timestamp),
            };
            value.map(|value| (key, value))
        });
        let found = match direction {
            Direction::Up => seen.next(),
            Direction::Down => seen.next_back(),
        };
        let Some((key, value)) = found else { return Ok(false) };
        self.key.clone_from(key);
        self.value = Some(value.clone());
        Ok(true)
    }

    /// Goes to exactly `key`.
    pub fn get(&mut self, txn: &mut Transaction, view: View, key: &[u8]) -> Result<bool> {
        self.view = view;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.find(txn, Bound::Included(key), Bound::Included(key), Direction::Up)
    }

    /// Goes to the key nearest to `key`.
    pub fn seek(&mut self, txn: &mut Transaction, view: View, seek: Seek, key: &[u8]) -> Result<bool> {
        self.view = view;
        self.key.clear();
        self.key.extend_from_slice(key);
        match seek {
            Seek::AtOrAfter => self.find(txn, Bound::Included(key), Bound::Unbounded, Direction::Up),
            Seek::After => self.find(txn, Bound::Excluded(key), Bound::Unbounded, Direction::Up),
            Seek::AtOrBefore => self.find(txn, Bound::Unbounded, Bound::Included(key), Direction::Down),
            Seek::Before => self.find(txn, Bound::Unbounded, Bound::Excluded(key), Direction::Down),
        }
    }

    /// Goes to the first key.
    pub fn first(&mut self, txn: &mut Transaction, view: View) -> Result<bool> {
        self.view = view;
        self.key.clear();
        self.find(txn, Bound::Unbounded, Bound::Unbounded, Direction::Up)
    }

    /// Goes to the last key.
    pub fn last(&mut self, txn: &mut Transaction, view: View) -> Result<bool> {
        self.view = view;
        self.key.clear();
        self.find(txn, Bound::Unbounded, Bound::Unbounded, Direction::Down)
    }

    /// Goes to the next key.
    pub fn next(&mut self, txn: &mut Transaction) -> Result<bool> {
        let from = self.key.clone();
        self.find(txn, Bound::Excluded(&from), Bound::Unbounded, Direction::Up)
    }

    /// Goes to the previous key.
    pub fn prev(&mut self, txn: &mut Transaction) -> Result<bool> {
        let from = self.key.clone();
        self.find(txn, Bound::Unbounded, Bound::Excluded(&from), Direction::Down)
    }

    /// Reads the current key again; `false` if it is gone (the position is kept).
    pub fn refresh(&mut self, txn: &mut Transaction, view: View) -> Result<bool> {
        self.view = view;
        let key = self.key.clone();
        self.find(txn, Bound::Included(&key), Bound::Included(&key), Direction::Up)
    }

    /// The current key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The current value; empty if there is none.
    pub fn value(&self) -> Result<&[u8]> {
        Ok(self.value.as_deref().unwrap_or(&[]))
    }

    /// Forgets the position.
    pub fn reset(&mut self) {
        self.key.clear();
        self.value = None;
    }
}
