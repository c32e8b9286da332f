//! Collecting what is kept for old snapshots only, once nobody needs it: see [`crate::tree::versions::past`].

use super::trunk::Trunk;
use super::waiting::Turn;
use crate::mvcc::ActiveSnapshots;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::spill::SpilledHistory;
use crate::tree::leaf::{Archive, Leaf, LeafView};
use crate::tree::versions::history::{History, HistoryEntry};
use crate::tree::versions::past::{shares_of, Counted, Share};
use crate::Result;
use std::sync::Arc;

impl Trunk {
    /// The leaf has a history that [`Trunk::collect_history`] has to know of.
    pub(in crate::tree) fn note_past(&self, node: &Arc<Node>) {
        let Some(leaf) = node.leaf() else { return };
        if !leaf.view().history.is_empty() {
            self.note(node, Care::Collect);
        }
    }

    /// Lets go of the history that no snapshot needs any more. Reads spilled history only where some of it is still
    /// needed.
    pub(crate) fn collect_history(&self) -> Result<()> {
        let active = self.shared.context.clock.newest_active_snapshots();
        self.attend(Care::Collect, usize::MAX, |leaf| {
            let result = self.collect(leaf, &active);
            if !leaf.view().dead {
                self.note_past(leaf.node());
                self.note_thin(leaf.node());
            }
            result.map(|()| Turn::Done)
        })
    }

    pub(super) fn collect(&self, leaf: &Leaf, active: &ActiveSnapshots) -> Result<()> {
        let view = leaf.view();
        let Some(Counted { shares, spilled }) = view.history.counted() else { return Ok(()) };
        if view.dead || shares.iter().all(|share| active.contains(share.holder)) {
            return Ok(());
        }
        let needed = |share: &Share| active.needs(share.holder, share.latest_end);
        let archive = match shares.iter().any(needed) {
            false => Archive::Empty,
            true => self.still_needed(leaf, &view.history, spilled, active)?,
        };
        let mut state = leaf.latch();
        let now = leaf.view();
        // A consolidation that came between has done the same.
        if now.history.is_same(&view.history) {
            leaf.publish(&mut state, LeafView { history: archive, ..(*now).clone() });
        }
        Ok(())
    }

    /// The part of a history that somebody sees, in the place where it was.
    fn still_needed(
        &self,
        leaf: &Leaf,
        archive: &Archive,
        spilled: bool,
        active: &ActiveSnapshots,
    ) -> Result<Archive> {
        let Some(history) = leaf.read_history(archive)? else { return Ok(Archive::Empty) };
        let entries: Vec<HistoryEntry<'_>> = history.needed(active).collect();
        if let (Archive::Spilled(spilled), true) = (archive, entries.len() == history.len()) {
            return Ok(Archive::Spilled(Arc::new(spilled.shared_as(shares_of(&entries, active)))));
        }
        let Some(kept) = History::from_sorted(&entries, shares_of(&entries, active)) else {
            return Ok(Archive::Empty);
        };
        Ok(match spilled {
            true => Archive::Spilled(Arc::new(SpilledHistory::write(&kept, &self.shared.context)?)),
            false => Archive::Live(kept),
        })
    }
}
