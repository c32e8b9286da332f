//! Cursors of the public interface: a tree's cursor read through a transaction's eyes.

use super::transaction::Transaction;
use crate::tree::{Node, Reader, Tree, TreeCursor, Window};
use crate::types::{Seek, View};
use crate::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;

/// A position in a tree. Owns a view of one leaf and no borrow of the transaction; buffers are reused. After a call
/// that returned `false` the position is the key that was sought or left: `next` and `prev` go on from there.
pub struct Cursor {
    inner: TreeCursor,
    view: View,
    /// The age of the transaction's snapshot is no matter.
    timeless: bool,
}

impl Cursor {
    /// A cursor without a position.
    pub fn new(tree: Arc<Tree>) -> Cursor {
        Cursor { inner: TreeCursor::new(tree), view: View::Snapshot, timeless: false }
    }

    /// A cursor for questions whether something is there now: to [`View::Pending`] it is no error that the tree's
    /// content is younger than the transaction's snapshot.
    pub fn timeless(tree: Arc<Tree>) -> Cursor {
        Cursor { timeless: true, ..Cursor::new(tree) }
    }

    /// The eyes through which the tree is read; [`Error::TableChanged`] if the transaction's snapshot is older than its
    /// content. So it is for a locking read, too: nobody could tell which of the rows were changed since. Only
    /// [`View::Latest`] and [`Cursor::timeless`] ask for no snapshot at all.
    #[inline]
    fn reader<'t>(&self, txn: &'t mut Transaction, view: View) -> Result<Reader<'t>> {
        let tree = self.inner.tree();
        let is_older = match view {
            View::Snapshot => txn.open_snapshot() < tree.visible_from(),
            View::Pending => !self.timeless && txn.precedes(tree),
            View::Latest => false,
        };
        match is_older {
            true => Err(Error::TableChanged),
            false => Ok(txn.reader(view)),
        }
    }

    /// Goes to exactly `key`.
    pub fn get(&mut self, txn: &mut Transaction, view: View, key: &[u8]) -> Result<bool> {
        self.view = view;
        txn.show_writes(self.inner.tree(), Some(key))?;
        let found = self.inner.get(&self.reader(txn, view)?, key)?;
        Ok(counted(txn, found))
    }

    /// Goes to the key nearest to `key`.
    pub fn seek(&mut self, txn: &mut Transaction, view: View, seek: Seek, key: &[u8]) -> Result<bool> {
        self.view = view;
        txn.show_writes(self.inner.tree(), None)?;
        let found = self.inner.seek(&self.reader(txn, view)?, seek, key)?;
        Ok(counted(txn, found))
    }

    /// Goes to the first key.
    pub fn first(&mut self, txn: &mut Transaction, view: View) -> Result<bool> {
        self.view = view;
        txn.show_writes(self.inner.tree(), None)?;
        let found = self.inner.first(&self.reader(txn, view)?)?;
        Ok(counted(txn, found))
    }

    /// Goes to the last key.
    pub fn last(&mut self, txn: &mut Transaction, view: View) -> Result<bool> {
        self.view = view;
        txn.show_writes(self.inner.tree(), None)?;
        let found = self.inner.last(&self.reader(txn, view)?)?;
        Ok(counted(txn, found))
    }

    /// Goes to the next key, in the view of the call that placed the cursor.
    pub fn next(&mut self, txn: &mut Transaction) -> Result<bool> {
        txn.show_writes(self.inner.tree(), None)?;
        let found = self.inner.next(&txn.reader(self.view))?;
        Ok(counted(txn, found))
    }

    /// Goes to the previous key, in the view of the call that placed the cursor.
    pub fn prev(&mut self, txn: &mut Transaction) -> Result<bool> {
        txn.show_writes(self.inner.tree(), None)?;
        let found = self.inner.prev(&txn.reader(self.view))?;
        Ok(counted(txn, found))
    }

    /// Reads the current key again; `false` if it is gone (the position is kept).
    pub fn refresh(&mut self, txn: &mut Transaction, view: View) -> Result<bool> {
        self.view = view;
        txn.show_writes(self.inner.tree(), None)?;
        let found = self.inner.refresh(&txn.reader(view))?;
        Ok(counted(txn, found))
    }

    /// What it is in the tree.
    pub(super) fn in_tree(&self) -> &TreeCursor {
        &self.inner
    }

    /// The tree that it is a cursor of.
    pub(crate) fn tree(&self) -> &Arc<Tree> {
        self.inner.tree()
    }

    /// Under a lock of the current key, which was taken since the cursor came here: whether the item is still what
    /// [`Cursor::refresh`] would find; `false` if that is not sure.
    #[inline]
    pub fn is_current(&mut self, txn: &mut Transaction, view: View) -> Result<bool> {
        if view != self.view {
            return Ok(false);
        }
        txn.show_writes(self.inner.tree(), None)?;
        Ok(self.inner.is_current(&txn.reader(view)))
    }

    /// For a scan that goes up: not less than the keys that the leaf it stands in has left for it, and the key that
    /// they are below. `None` if it is the last leaf, or if nobody knows.
    pub fn rest_of_leaf(&self) -> Option<(usize, &[u8])> {
        self.inner.rest_of_leaf()
    }

    /// Whether the scan comes to one leaf after another that is not in memory: then [`Cursor::read_ahead`] is worth a
    /// call.
    #[inline]
    pub fn wants_ahead(&self) -> bool {
        self.inner.wants_ahead()
    }

    /// The cursor is going to be asked for these keys, or what begins with them, in ascending order: once one of them
    /// is not in memory other threads read the blocks of the next. Of `keys` each is behind its length, two bytes,
    /// little-endian; in any order. Holds until the cursor is reset.
    pub fn expect(&mut self, keys: Vec<u8>) {
        self.inner.expect(keys);
    }

    /// Has blocks read by other threads that the scan comes to if it goes on to `end`; what they meet is for who comes
    /// to the block. Does not wait.
    pub fn read_ahead(&mut self, end: Bound<&[u8]>) {
        self.inner.read_ahead(end);
    }

    /// The entries that come next in the direction of the last move, for somebody who walks over them without further
    /// calls, see [`Window`]: as long as the transaction itself writes nothing to them and takes nothing back. A
    /// snapshot stays the same for as long; of what is committed now, that is so for keys that the transaction has
    /// locked since before it came here, and the caller has to leave out all others. `None` also if the next move has
    /// to look closer.
    pub fn window(&mut self, txn: &mut Transaction) -> Option<Window<'_>> {
        self.inner.window(&txn.reader(self.view))
    }

    /// After [`Cursor::get`] has found its key: the entries that follow it, as [`Cursor::window`] has them of a scan
    /// that goes up, for somebody who looks neighbours up one after the other.
    pub fn window_behind(&mut self, txn: &mut Transaction) -> Option<Window<'_>> {
        self.inner.window_behind(&txn.reader(self.view))
    }

    /// Right after a call that has found something in a snapshot: whether it is sure that what follows lies past the
    /// end of a scan that goes up, as long as the transaction itself writes nothing there.
    #[inline]
    pub fn is_last_before(&self, txn: &mut Transaction, end: Bound<&[u8]>) -> bool {
        self.inner.is_last_before(&txn.reader(self.view), end)
    }

    /// To be called before anything else if somebody has walked over `passed` entries of the window: he stands on entry
    /// `at`, which is one of them.
    pub fn arrive(&mut self, at: usize, passed: usize) {
        self.inner.arrive(at, passed);
    }

    /// The current key. Valid until the next call on this cursor.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The current value. Valid until the next call on this cursor.
    pub fn value(&self) -> Result<&[u8]> {
        self.inner.value()
    }

    /// Whether it stands on an item: the last call returned `true`.
    pub fn has_item(&self) -> bool {
        self.inner.has_item()
    }

    /// The leaf that it stands in.
    pub(in crate::engine) fn leaf(&self) -> Option<(&Tree, &Arc<Node>)> {
        self.inner.leaf().map(|node| (&**self.inner.tree(), node))
    }

    /// Forgets the position and lets go of the pinned leaf.
    pub fn reset(&mut self) {
        self.inner.reset();
    }
}

fn counted(txn: &mut Transaction, found: bool) -> bool {
    if found {
        txn.count_read();
    }
    found
}
