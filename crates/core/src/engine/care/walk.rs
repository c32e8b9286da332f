//! A walk over the leaves of a table's trees, from the first to the last, while others read and write.
//!
//! What is done with a leaf is its user's rule: a step, which is given a key and says where the walk goes on. All else
//! is here. Whenever a round of leaves has changed there is a checkpoint, which writes them and frees what they took
//! before: so neither memory nor the file grow with the table, and no checkpoint is a long one. Whoever began it is
//! told, and may end it. Nothing is kept between two steps but the key, and no latch or lock is held: definitions,
//! checkpoints and writers come between as they like.

use super::checkpoints::Urgency;
use crate::engine::data::tables::Table;
use crate::engine::data::watch::Watcher;
use crate::engine::shared::Shared;
use crate::store::Space;
use crate::tree::Tree;
use crate::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Leaves between two looks whether to go on, and whether a checkpoint is due.
const STEPS_BETWEEN_LOOKS: u64 = 16;

/// Bytes of leaves that change between two checkpoints, before compression; less where memory is small.
const ROUND_BYTES: u64 = 256 << 20;

/// What walks over one table share. Once one has said so, what is written to its file goes to the front, where it can,
/// for as long as this lives.
pub(super) struct LeafWalk<'a> {
    pub shared: &'a Shared,
    space: &'a Space,
    /// Leaves that were come by.
    done: Cell<u64>,
    watch: RefCell<Watcher<'a>>,
}

impl<'a> LeafWalk<'a> {
    /// `watch` is told how many leaves were come by; its error ends the walk. [`Error::CheckpointsPaused`] while
    /// somebody holds back checkpoints, unless none has what is in the table.
    pub fn new(shared: &'a Shared, table: &'a Table, watch: Watcher<'a>) -> Result<LeafWalk<'a>> {
        shared.health.check()?;
        if table.is_logged() && shared.care.progress.pauses.any() {
            return Err(Error::CheckpointsPaused);
        }
        Ok(LeafWalk { shared, space: table.space(), done: Cell::new(0), watch: RefCell::new(watch) })
    }

    /// Calls `step` with a key of each leaf of `tree`: it returns the key that the next step is at, which may be the
    /// same or, where others merged leaves meanwhile, one before it, and `None` after the last leaf. Its error ends the
    /// walk, what was done stays.
    pub fn over(
        &self,
        tree: &Arc<Tree>,
        mut step: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        debug_assert_eq!(tree.space().id(), self.space.id(), "a tree of another file");
        // Some stay dirty whatever checkpoints write: those count for no round.
        let mut unwritten = tree.dirty_leaves();
        let mut key = Vec::new();
        loop {
            self.shared.context.cache.make_room()?;
            let next = step(&key);
            // The next checkpoint is to write what has changed, after an error as well.
            if tree.is_dirty() {
                self.shared.mark_dirty(std::iter::once(tree));
            }
            self.done.set(self.done.get() + 1);
            let Some(next) = next? else { return Ok(()) };
            key = next;
            if !self.done.get().is_multiple_of(STEPS_BETWEEN_LOOKS) {
                continue;
            }
            self.tell()?;
            self.shared.mind_finished();
            let changed = tree.dirty_leaves().saturating_sub(unwritten) as u64;
            let round = ROUND_BYTES.min(self.shared.context.cache.budget() / 4);
            if tree.is_logged() && changed * u64::from(tree.spec().block_bytes) >= round {
                self.shared.checkpoint(false, Urgency::Awaited)?;
                unwritten = tree.dirty_leaves();
                self.prefer_front()?;
            }
        }
    }

    /// Tells how far it is; an error: it ends. For steps that take long.
    pub fn tell(&self) -> Result<()> {
        (self.watch.borrow_mut())(self.done.get())
    }

    /// Nothing is to lie behind the end that the file could have now. That end, if anything does.
    pub fn prefer_front(&self) -> Result<Option<u64>> {
        let (end, used) = self.space.extent_usage()?;
        // With so much more than its extents take they fit into the gaps, mostly.
        let limit = used + used / 16 + (64 << 10);
        self.space.prefer_below(Some(limit));
        Ok((end > limit).then_some(limit))
    }
}

impl Drop for LeafWalk<'_> {
    fn drop(&mut self) {
        self.space.prefer_below(None);
    }
}
