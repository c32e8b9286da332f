//! Giving back what a table's file has more than its rows need, while others read and write them.
//!
//! 1. *Leaves* of each tree are filled up, some at a time between two checkpoints ([`crate::tree`], `change/pack.rs`).
//! 2. *Extents* that are left behind where the file could end are moved before that (`storing/relocate.rs`).
//!
//! Whenever a round of leaves has changed there is a checkpoint, which writes them and frees what they took before: so
//! neither memory nor the file grow with the table, and no checkpoint is a long one. Nothing is logged, as no row
//! changes: after a crash, or an end before the end, the leaves that were written are packed and the others are not.

use super::checkpoints::Urgency;
use crate::engine::data::tables::Table;
use crate::engine::data::watch::Watcher;
use crate::engine::shared::{Engine, Shared};
use crate::store::Space;
use crate::tree::{Moved, Packing, Rewriter, Tree};
use crate::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// Leaves that are looked at while a checkpoint that wants to begin waits.
const STEPS_AT_ONCE: usize = 16;

/// How often somebody who waits for the end of a checkpoint looks whether he is to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of leaves that change between two checkpoints, before compression; less where memory is small.
const ROUND_BYTES: u64 = 256 << 20;

/// A file may have so much more than its extents take: they fit into the gaps then, mostly.
fn slack(used: u64) -> u64 {
    used / 16 + (64 << 10)
}

/// For as long as it lives, what is written to a file goes to the front, where it can.
struct Preference<'a>(&'a Space);

impl Preference<'_> {
    /// Nothing is to lie behind the end that the file could have now. Whether anything does.
    fn renew(&self) -> Result<Option<u64>> {
        let (end, used) = self.0.extent_usage()?;
        let limit = used + slack(used);
        self.0.prefer_below(Some(limit));
        Ok((end > limit).then_some(limit))
    }
}

impl Drop for Preference<'_> {
    fn drop(&mut self) {
        self.0.prefer_below(None);
    }
}

/// What one call for a table works with.
struct Packer<'a> {
    shared: &'a Shared,
    preference: Preference<'a>,
    done: u64,
    /// Leaves of the tree that stay dirty whatever checkpoints write, as of the last one.
    unwritten: usize,
    watch: Watcher<'a>,
}

impl Engine {
    /// Fills the leaves of all trees of the table, and moves what lies at the end of its file to the front, so that it
    /// is about as small as that of a copy. Others read and write meanwhile. `watch` is told how many steps are done,
    /// of about [`Engine::packing_steps`]; its error ends the work, what was done stays. [`Error::CheckpointsPaused`]
    /// while somebody holds back checkpoints.
    pub fn pack_table(&self, table: &Table, watch: Watcher<'_>) -> Result<()> {
        let shared = &*self.shared;
        shared.health.check()?;
        // Of one that is not logged no checkpoint comes by, and no file is worth being shortened.
        let is_logged = table.is_logged();
        if is_logged && shared.care.progress.pauses.any() {
            return Err(Error::CheckpointsPaused);
        }
        let mut packer =
            Packer { shared, preference: Preference(table.space()), done: 0, unwritten: 0, watch };
        if is_logged {
            shared.put_alike_together(table, packer.watch)?;
            packer.preference.renew()?;
        }
        for tree in table.all_trees() {
            packer.pack(tree)?;
        }
        if !is_logged {
            return Ok(());
        }
        // What was committed before it counts as well: what that has left behind becomes free.
        shared.checkpoint(false, Urgency::Awaited)?;
        // To move values means to write leaves again, which may come to lie behind the end once more.
        for moved in [Moved::Blocks, Moved::Values, Moved::Blocks] {
            let Some(limit) = packer.preference.renew()? else { break };
            for tree in table.all_trees() {
                packer.relocate(tree, limit, moved)?;
                if moved == Moved::Values && table.has_bundles() {
                    shared.move_bundles(tree, limit, packer.watch)?;
                }
            }
            shared.checkpoint(false, Urgency::Awaited)?;
        }
        Ok(())
    }

    /// Exchanges the rows in the table's tree of this number for others that say the same, as `rewrite` makes them,
    /// while others read and write; see `tree/storing/rewrite.rs` for which are left. `watch` is told how many leaves
    /// were looked at; its error, or one of `rewrite`, ends the work, what was done stays.
    /// [`Error::CheckpointsPaused`] while somebody holds back checkpoints.
    pub fn rewrite_rows(
        &self,
        table: &Table,
        tree: usize,
        rewrite: Rewriter<'_>,
        watch: Watcher<'_>,
    ) -> Result<()> {
        let shared = &*self.shared;
        shared.health.check()?;
        if table.is_logged() && shared.care.progress.pauses.any() {
            return Err(Error::CheckpointsPaused);
        }
        let tree = table.tree(tree);
        let unwritten = tree.dirty_leaves();
        let mut packer = Packer { shared, preference: Preference(table.space()), done: 0, unwritten, watch };
        let mut key = Vec::new();
        let result = loop {
            match tree.rewrite_at(&key, rewrite) {
                Ok(Some(next)) => key = next,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
            packer.done += 1;
            if packer.done % STEPS_AT_ONCE as u64 == 0 {
                if let Err(error) = (packer.watch)(packer.done).and_then(|()| packer.end_round(tree)) {
                    break Err(error);
                }
            }
        };
        packer.enter(tree);
        result
    }

    /// See [`Engine::pack_table`]: as the table is now.
    pub fn packing_steps(&self, table: &Table) -> u64 {
        2 * table.all_trees().iter().map(|tree| tree.leaves()).sum::<u64>()
    }
}

impl Packer<'_> {
    fn pack(&mut self, tree: &Arc<Tree>) -> Result<()> {
        let mut key = Vec::new();
        self.unwritten = 0;
        loop {
            self.shared.context.cache.make_room()?;
            self.shared.mind_finished();
            match self.some_steps(tree, &key)? {
                Packing::At(next) => key = next,
                Packing::Later => {
                    (self.watch)(self.done)?;
                    self.shared.care.progress.await_attempt(LOOK);
                    continue;
                }
                Packing::Done => return Ok(()),
            }
            (self.watch)(self.done)?;
            self.end_round(tree)?;
        }
    }

    /// Later, if a checkpoint is under way; none begins meanwhile.
    fn some_steps(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<Packing> {
        let mut at = Packing::At(key.to_vec());
        let done = &mut self.done;
        let steps = || {
            for _ in 0..STEPS_AT_ONCE {
                let Packing::At(key) = &at else { break };
                at = tree.pack_at(key)?;
                *done += 1;
            }
            Ok(at)
        };
        let result = self.shared.care.checkpointer.unless_running(steps).unwrap_or(Ok(Packing::Later));
        self.enter(tree);
        result
    }

    fn relocate(&mut self, tree: &Arc<Tree>, limit: u64, moved: Moved) -> Result<()> {
        let mut key = Vec::new();
        self.unwritten = tree.dirty_leaves();
        while let Some(next) = tree.relocate_at(&key, limit, moved)? {
            key = next;
            self.done += 1;
            if self.done % STEPS_AT_ONCE as u64 == 0 {
                (self.watch)(self.done)?;
            }
            self.end_round(tree)?;
        }
        self.enter(tree);
        Ok(())
    }

    /// The next checkpoint is to write the tree, if there is anything.
    fn enter(&self, tree: &Arc<Tree>) {
        if tree.is_dirty() {
            self.shared.mark_dirty(std::iter::once(tree));
        }
    }

    fn end_round(&mut self, tree: &Arc<Tree>) -> Result<()> {
        let round = ROUND_BYTES.min(self.shared.context.cache.budget() / 4);
        let changed = tree.dirty_leaves().saturating_sub(self.unwritten) as u64;
        if !tree.is_logged() || changed * u64::from(tree.spec().block_bytes) < round {
            return Ok(());
        }
        self.enter(tree);
        self.shared.checkpoint(false, Urgency::Awaited)?;
        self.unwritten = tree.dirty_leaves();
        self.preference.renew().map(drop)
    }
}
