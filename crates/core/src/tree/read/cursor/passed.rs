//! What one step of a scan of the newest has passed on its way to what it finds.
//!
//! Such a scan sees what is there when it comes by, and rows are committed meanwhile. It may miss what comes into a
//! place that it has left, but then it must not find what was written later still, by somebody who may have read that:
//! a list would have a hole. So nothing may have been pushed between the key that a step began at and the one it ends
//! at, from before the first look to behind the last; otherwise the step is done again. InnoDB has a latch of the page
//! for that. Between two steps the scan has a lock of the row, or has given it back, and comes by for what came since.

use super::TreeCursor;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::LeafView;
use crate::tree::versions::visibility::Reader;
use crate::types::Timestamp;
use crate::Result;
use std::sync::Arc;

/// So often a step is done again at most: where others push without a pause, the scan goes on.
const MOST_TIMES: u32 = 100;

/// What a step has passed.
#[derive(Default)]
pub(super) struct Passed {
    left: Vec<Left>,
    /// So often it has begun again.
    again: u32,
}

/// A leaf that a step has left.
struct Left {
    node: Arc<Node>,
    /// As of before the step has looked: see [`super::pin::Pin::changes`].
    changes: u64,
    versions: Option<usize>,
}

/// Versions that others may push onto without a trace in [`crate::tree::leaf::Leaf::changes`].
fn versions_of(view: &LeafView, count: impl Fn() -> usize) -> Option<usize> {
    matches!(view.delta, Changes::Live(_)).then(count)
}

impl Passed {
    /// A step begins.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.left.clear();
        self.again = 0;
    }

    fn begin_again(&mut self) {
        self.left.clear();
        self.again += 1;
    }
}

impl Left {
    fn is_as_it_was(&self) -> bool {
        let Some(leaf) = self.node.leaf() else { return true };
        let view = leaf.view();
        let versions = versions_of(&view, || view.delta.newest().versions());
        // Last: then the view was the leaf's until now.
        versions == self.versions && leaf.changes() == self.changes
    }
}

/// Whether it sees what is committed while it is on its way.
#[inline]
pub(super) fn sees_newest(reader: &Reader<'_>) -> bool {
    reader.snapshot == Timestamp::MAX
}

impl TreeCursor {
    /// A step begins. Scans of snapshots pass by all of this, and need not look at it.
    #[inline]
    pub(super) fn begin_step(&mut self, reader: &Reader<'_>) {
        if sees_newest(reader) {
            self.passed.begin();
        }
    }

    /// The pinned leaf, whose delta had `versions` before the step looked at it, is left.
    pub(super) fn leave(&mut self, reader: &Reader<'_>, versions: usize) {
        if let (Some(pin), true) = (&self.pin, sees_newest(reader)) {
            let versions = versions_of(&pin.view, || versions);
            self.passed.left.push(Left { node: pin.node.clone(), changes: pin.changes, versions });
        }
        // Once: that is a change of the leaf, too.
        if !sees_newest(reader) || self.passed.again == 0 {
            self.tidy_up();
        }
    }

    /// Whether the leaves that the step has left are as they were. That is enough where it has found a row of a base,
    /// which is older than the look at the leaf.
    #[inline]
    pub(super) fn has_left_as_found(&self, reader: &Reader<'_>) -> bool {
        let Passed { left, again } = &self.passed;
        !sees_newest(reader) || left.is_empty() || *again >= MOST_TIMES || left.iter().all(Left::is_as_it_was)
    }

    /// The same, and whether the pinned leaf is, whose delta had `versions` before. Asked behind the look at an entry.
    #[inline]
    pub(super) fn is_as_found(&self, reader: &Reader<'_>, versions: usize) -> bool {
        let is_pushed = self.passed.again < MOST_TIMES
            && self.pin.as_ref().is_some_and(|pin| pin.delta.versions() != versions);
        !sees_newest(reader) || (!is_pushed && self.has_left_as_found(reader))
    }

    /// A step down is about to go on from the key, and may have to come back to where it began.
    pub(super) fn note_beginning(&self, reader: &Reader<'_>, began_at: &mut Option<Vec<u8>>) {
        if sees_newest(reader) {
            began_at.get_or_insert_with(|| self.key.clone());
        }
    }

    /// Goes back to the key at which a step up began.
    #[cold]
    pub(super) fn begin_again(&mut self, reader: &Reader<'_>) -> Result<()> {
        self.passed.begin_again();
        self.stand_behind_key(reader)
    }

    /// Goes back to where a step down began: to that key, or where it is still, or to the end of the tree.
    #[cold]
    pub(super) fn begin_again_backward(
        &mut self,
        reader: &Reader<'_>,
        key: Option<Vec<u8>>,
        is_last: bool,
    ) -> Result<()> {
        self.passed.begin_again();
        if is_last {
            self.pin_last(reader)?;
            return self.prepare_backward(reader, None);
        }
        self.key = key.unwrap_or_else(|| std::mem::take(&mut self.key));
        self.stand_before_key(reader)
    }
}
