//! Leaves that were due for consolidation while their changes were undecided.
//!
//! What a large transaction has written stays in deltas when it ends: the consolidations of its own writes came too
//! early, and the next would be that of a checkpoint, or of a reader who has paid for the merge often enough. So such
//! leaves are noted, and the thread `teak-history` folds them once they are decided: scans get their windows over the
//! block back, and the memory of the deltas is free. It is woken when a transaction with many writes ends.
//!
//! A leaf that was evicted meanwhile is left alone: folding it would cost the reading.

use super::trunk::Trunk;
use super::waiting::Turn;
use crate::mvcc::State;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::LeafView;
use crate::tree::versions::delta::EntryRef;
use crate::Result;
use std::sync::Arc;

/// Leaves of a tree that one look folds at most: a fraction of a second.
const FOLDED_AT_ONCE: usize = 1024;

/// Whether no version of the entry is committed or rolled back.
fn is_undecided(entry: EntryRef<'_>) -> bool {
    let mut versions = std::iter::successors(entry.newest(), |version| version.older());
    versions.all(|version| version.status.state() == State::Active && !version.is_void())
}

impl Trunk {
    /// The leaf was consolidated because it was due; it is noted if too much of it is left.
    pub(super) fn note_due(&self, node: &Arc<Node>) {
        let Some(leaf) = node.leaf() else { return };
        if !self.is_logged() || !self.is_large_delta(&leaf.view()) {
            return;
        }
        self.note(node, Care::Fold);
    }

    /// Whether a consolidation would find nothing to fold, and the leaf is not so large either that it should be cut:
    /// then the next is due when it is.
    pub(super) fn waits_for_decision(&self, node: &Arc<Node>) -> bool {
        let Some(leaf) = node.leaf() else { return false };
        let mut state = leaf.latch();
        let view = leaf.view();
        let Changes::Live(delta) = &view.delta else { return false };
        let block_bytes = self.shared.spec.block_bytes as usize;
        if view.birth.is_some() || delta.memory() > block_bytes || !delta.iter().all(is_undecided) {
            return false;
        }
        state.deletions = 0;
        state.fold_again_at = block_bytes;
        state.deletions_again_at = delta.versions() * 2;
        true
    }

    fn is_large_delta(&self, view: &LeafView) -> bool {
        let limit = self.shared.spec.block_bytes as usize / 2;
        matches!(&view.delta, Changes::Live(delta) if delta.memory() > limit)
    }

    /// Consolidates the noted leaves that are decided, or some of them, if they are many; the others keep their turn.
    pub(crate) fn fold_due(&self) -> Result<()> {
        let mut folded = 0;
        let result = self.attend(Care::Fold, usize::MAX, |leaf| {
            if folded == FOLDED_AT_ONCE {
                return Ok(Turn::Enough);
            }
            let view = leaf.view();
            if let Some(status) = view.delta.undecided_by() {
                return Ok(Turn::Undecided(status));
            }
            if leaf.is_in_memory() && !view.dead && self.is_large_delta(&view) {
                folded += 1;
                // What cannot be read shows again to whoever needs it.
                self.maintain(leaf.node())?;
            }
            Ok(Turn::Done)
        });
        if folded > 0 && self.ready(Care::Fold) > 0 {
            self.shared.context.past.bell().ring();
        }
        result
    }
}
