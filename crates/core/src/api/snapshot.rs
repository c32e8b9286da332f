//! Reading what was committed at a moment.

use super::cursor::{bounds, Cursor};
use super::Tree;
use crate::engine::FixedView;
use crate::tree::TreeCursor;
use crate::{Result, Timestamp};
use std::ops::RangeBounds;
use std::sync::Arc;

/// What was committed at a moment ([`crate::Engine::snapshot`]). It locks nothing and waits for nobody; any number of
/// threads may read with it at a time.
///
/// What writers replace is kept while it lives, in memory and then in a file, up to
/// [`Options::history_max_bytes`](crate::Options::history_max_bytes): past that the oldest snapshot gives way, and its
/// next read is [`SnapshotTooOld`](crate::Error::SnapshotTooOld).
pub struct Snapshot {
    view: FixedView,
}

impl Snapshot {
    pub(super) fn new(view: FixedView) -> Snapshot {
        Snapshot { view }
    }

    /// The last commit that it shows.
    pub fn timestamp(&self) -> Timestamp {
        self.view.timestamp()
    }

    /// The value of the key; `None`: it was not there.
    pub fn get(&self, tree: &Arc<Tree>, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let mut cursor = TreeCursor::new(tree.clone());
        if !cursor.get(&self.view.reader(tree)?, key.as_ref())? {
            return Ok(None);
        }
        self.view.count_reads(1);
        Ok(Some(cursor.value()?.to_vec()))
    }

    /// All rows of the tree, ascending.
    pub fn rows(&self, tree: &Arc<Tree>) -> Cursor<'_> {
        self.range::<&[u8]>(tree, ..)
    }

    /// The rows with keys in a range, ascending.
    pub fn range<K: AsRef<[u8]>>(&self, tree: &Arc<Tree>, range: impl RangeBounds<K>) -> Cursor<'_> {
        Cursor::of_snapshot(&self.view, tree, bounds(&range))
    }
}
