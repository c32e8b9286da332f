//! Trees in memory alone, and temporary ones: what checkpoints do for others.
//!
//! No checkpoint comes by their leaves, so what was written to them would stay in deltas until these are large, and
//! what was rolled back likewise. `teak-history` consolidates, once a second, the leaves that were written to since;
//! and who finds no memory left for a table in memory does it himself, for all trees of that budget. So memory is
//! garbage for a second, at the most, as far as nobody holds it.

use super::merge::LOOKS_AT_ONCE;
use super::trunk::Trunk;
use super::waiting::Turn;
use crate::cache::Evictable;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::changes::Changes;
use crate::Result;
use std::sync::Arc;

impl Trunk {
    /// Makes a tree in memory known to the budget that its leaves are charged to.
    pub(super) fn enter_budget(self: &Arc<Trunk>) {
        if self.is_in_memory() {
            let entry: Arc<dyn Evictable> = self.clone();
            self.shared.context.cache.register(Arc::downgrade(&entry));
        }
    }

    /// Consolidates the leaves that were written to since the last time. Those with undecided changes wait for the
    /// next.
    pub(crate) fn settle(&self) -> Result<()> {
        let result = self.attend(Care::Write, usize::MAX, |leaf| {
            let view = leaf.view();
            if view.dead || !view.has_changes() && view.birth.is_none() {
                return Ok(Turn::Done);
            }
            // Few changes of what was evicted are not worth the reading, until there are more.
            let is_away = !leaf.is_in_memory() && matches!(view.delta, Changes::Live(_));
            if is_away && view.birth.is_none() {
                return Ok(Turn::Done);
            }
            let result = match view.delta.is_undecided() {
                true => Ok(()),
                false => self.maintain(leaf.node()),
            };
            let view = leaf.view();
            if !view.dead && (view.has_changes() || view.birth.is_some()) {
                self.list_dirty(&leaf.latch(), leaf.node());
            }
            result.map(|()| Turn::Done)
        });
        result.and(self.remove_vacant())
    }
}

/// As an entry of its budget a tree in memory gives up what nobody needs.
impl Evictable for Trunk {
    fn touched(&self) -> bool {
        false
    }

    fn evict(&self) -> Result<u64> {
        let cache = &self.shared.context.cache;
        let before = cache.used();
        let result = self.settle().and(self.retire_spent()).and(self.collect_history());
        let result = result.and(self.remove_vacant()).and(self.merge_thin(LOOKS_AT_ONCE));
        result.map(|()| before.saturating_sub(cache.used()))
    }

    fn resident(&self) -> u64 {
        let cares = [Care::Write, Care::Retire, Care::Collect, Care::Remove, Care::Merge];
        u64::from(cares.into_iter().any(|care| self.waits(care)))
    }
}
