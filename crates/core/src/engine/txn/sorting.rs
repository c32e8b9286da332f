//! New rows in no order, for a tree that has none: they are sorted, and then appended as others (see
//! [`super::append`]).
//!
//! ```text
//! rows ──> gathered while they ascend ──(one that does not)──> sorter: memory, then the spill file
//! end of the statement, or what would see the rows ──> sorted ──> append ──> blocks
//! ```
//!
//! Whether a key is taken shows when the rows are sorted: two with one key meet there, and each is looked up in the
//! tree, where the caller's locks keep things as they are. So this is for statements that a duplicate ends, whenever it
//! is found.

use super::append::for_each_row;
use super::work::Work;
use crate::engine::shared::Shared;
use crate::sort::Sorter;
use crate::tree::{Reader, Tree, TreeCursor};
use crate::{Error, Result};
use std::sync::Arc;

impl Shared {
    /// What sorts in about `bytes` of the cache, with `threads` also while entries come.
    pub(in crate::engine) fn sorter(&self, bytes: usize, threads: bool) -> Sorter {
        Sorter::new(self.context.spill.clone(), bytes, threads).charged_to(&self.context.cache)
    }
}

impl Work {
    /// Whether the row with `key` is going to be sorted: if others are, or if it is the first that does not lie behind
    /// what was gathered, and that is all there is. `sort_bytes` is the memory that sorting may take.
    pub(in crate::engine) fn sorts(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        sort_bytes: usize,
    ) -> Result<bool> {
        let Some(append) = self.direct.append_to(tree) else { return Ok(false) };
        if append.sorter.is_some() {
            return Ok(true);
        }
        if append.is_beyond(key) || !append.is_all_gathered() || !tree.is_empty()? {
            return Ok(false);
        }
        let mut sorter = shared.sorter(sort_bytes, shared.background);
        let mut blocks = append.take_gathered().into_iter();
        let pushed = blocks.try_for_each(|block| for_each_row(tree, &block, |k, v| sorter.push(k, v)));
        append.sorter = Some(sorter);
        self.keep_failure(pushed).map(|()| true)
    }

    /// Appends what was sorted. [`Error::DuplicateRow`] if a key is taken; the rows behind it are gone then, so the
    /// caller keeps the error.
    pub(in crate::engine) fn write_sorted(&mut self, shared: &Shared) -> Result<()> {
        let Some((tree, sorter)) = self.direct.take_sorter() else { return Ok(()) };
        let mut sorted = sorter.finish()?;
        let mut cursor = TreeCursor::new(tree.clone());
        while sorted.advance()? {
            let (key, value) = sorted.entry();
            // As they ascend, one that does not lie behind what is gathered is the last of it.
            let twin = self.direct.append_to(&tree).is_some_and(|append| !append.is_beyond(key));
            if twin || cursor.get(&Reader::latest(self.status()), key)? {
                return Err(Error::DuplicateRow { key: key.to_vec() });
            }
            self.append(shared, &tree, key, value)?;
        }
        Ok(())
    }
}
