//! Giving back what a table's file has more than its rows need, while others read and write them.
//!
//! 1. *Leaves* of each tree are filled up ([`crate::tree`], `change/pack.rs`).
//! 2. *Extents* that are left behind where the file could end are moved before that (`storing/relocate.rs`).
//!
//! Nothing is logged, as no row changes: after a crash, or an end before the end, the leaves that a checkpoint has
//! written are packed and the others are not.

use super::checkpoints::Urgency;
use super::walk::LeafWalk;
use crate::engine::data::tables::Table;
use crate::engine::data::watch::Watcher;
use crate::engine::shared::Engine;
use crate::tree::{Moved, Packing, Rewriter, Tree};
use crate::Result;
use std::time::Duration;

/// How often somebody who waits for the end of a checkpoint looks whether he is to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

impl Engine {
    /// Fills the leaves of all trees of the table, and moves what lies at the end of its file to the front, so that it
    /// is about as small as that of a copy. Others read and write meanwhile. `watch` is told how many steps are done,
    /// of about [`Engine::packing_steps`]; its error ends the work, what was done stays.
    /// [`crate::Error::CheckpointsPaused`] while somebody holds back checkpoints.
    pub fn pack_table(&self, table: &Table, watch: Watcher<'_>) -> Result<()> {
        let shared = &*self.shared;
        // Of one that is not logged no checkpoint comes by, and no file is worth being shortened.
        let is_logged = table.is_logged();
        if is_logged {
            shared.put_alike_together(table, &mut *watch)?;
        }
        let walk = LeafWalk::new(shared, table, watch)?;
        if is_logged {
            walk.prefer_front()?;
        }
        for tree in table.all_trees() {
            walk.over(tree, |key| walk.pack_at(tree, key))?;
        }
        if !is_logged {
            return Ok(());
        }
        // What was committed before it counts as well: what that has left behind becomes free.
        shared.checkpoint(false, Urgency::Awaited)?;
        // To move values means to write leaves again, which may come to lie behind the end once more.
        for moved in [Moved::Blocks, Moved::Values, Moved::Blocks] {
            let Some(limit) = walk.prefer_front()? else { break };
            for tree in table.all_trees() {
                match moved == Moved::Values && table.has_bundles() {
                    true => shared.move_values(tree, limit, &walk)?,
                    false => walk.over(tree, |key| tree.relocate_at(key, limit, moved))?,
                }
            }
            shared.checkpoint(false, Urgency::Awaited)?;
        }
        Ok(())
    }

    /// Exchanges the rows in the table's tree of this number for others that say the same, as `rewrite` makes them,
    /// while others read and write; see `tree/storing/rewrite.rs` for which are left. `watch` is told how many leaves
    /// were looked at; its error, or one of `rewrite`, ends the work, what was done stays.
    /// [`crate::Error::CheckpointsPaused`] while somebody holds back checkpoints.
    pub fn rewrite_rows(
        &self,
        table: &Table,
        tree: usize,
        rewrite: Rewriter<'_>,
        watch: Watcher<'_>,
    ) -> Result<()> {
        let tree = table.tree(tree);
        LeafWalk::new(&self.shared, table, watch)?.over(tree, |key| tree.rewrite_at(key, rewrite))
    }

    /// See [`Engine::pack_table`]: as the table is now.
    pub fn packing_steps(&self, table: &Table) -> u64 {
        2 * table.all_trees().iter().map(|tree| tree.leaves()).sum::<u64>()
    }
}

impl LeafWalk<'_> {
    /// A step of packing, not while a checkpoint is under way; none begins meanwhile.
    fn pack_at(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let care = &self.shared.care;
        loop {
            let step = care.checkpointer.unless_running(|| tree.pack_at(key));
            match step.unwrap_or(Ok(Packing::Later))? {
                Packing::At(next) => return Ok(Some(next)),
                Packing::Done => return Ok(None),
                Packing::Later => {}
            }
            self.tell()?;
            care.progress.await_attempt(LOOK);
        }
    }
}
