//! Reading what a leaf has: its base, its delta, its history, from wherever they are, and keeping them for others.
//!
//! A base whose patch is the oldest part of the leaf's changes is read with the patch folded in, unless a snapshot
//! needs both apart: scans find a block as they find it where no patch is, and the delta has only what came since.

use super::changes::{Backing, Changes};
use super::node::Node;
use super::patch::{Covered, Patch, PatchBlock};
use super::{Archive, Base, Leaf, LeafState, LeafView};
use crate::counts::Count;
use crate::tree::block::{Block, BlockNumber};
use crate::tree::versions::delta::Delta;
use crate::tree::versions::history::History;
use crate::tree::versions::materialise::materialise;
use crate::tree::versions::visibility::{Content, Reader};
use crate::types::Timestamp;
use crate::{Error, Result};
use std::sync::Arc;

impl Leaf {
    /// The base of `view`, read from disk if it is not in memory, and then kept for others if the latch is free.
    /// Call without the latch.
    #[inline]
    pub(crate) fn base(&self, node: &Arc<Node>, view: &LeafView) -> Result<Arc<Block>> {
        match &view.base {
            Base::Loaded(block) => Ok(block.clone()),
            _ => self.load_base(node, view),
        }
    }

    #[cold]
    fn load_base(&self, node: &Arc<Node>, view: &LeafView) -> Result<Arc<Block>> {
        Count::PagesMissed.add(1);
        if let Some(block) = self.await_ahead() {
            return Ok(block);
        }
        let room = self.shared.context.cache.make_room();
        let (block, patch) = self.read_whole(view)?;
        // Where memory cannot be freed, for example since the disk is full, reading goes on: then what was read is not
        // kept.
        if let (Ok(()), Some(mut state)) = (room, self.try_latch()) {
            self.keep_block(&mut state, node, &view.base, &block, patch.as_ref());
        }
        Ok(block)
    }

    /// The base of `view`, read wherever it is, with the patch that it has folded in, unless that has to wait.
    pub(super) fn read_whole(&self, view: &LeafView) -> Result<(Arc<Block>, Option<Arc<Patch>>)> {
        let block = self.read_base(&view.base)?;
        Ok(match self.read_patch(view) {
            Some((patch, changes)) => (Arc::new(changes.applied_to(&block)), Some(patch)),
            None => (block, None),
        })
    }

    /// The patch of the view, read, if it can be folded into the block by who reads that: where no snapshot is older.
    /// What is wrong with a patch is told by who reads the changes.
    pub(super) fn read_patch(&self, view: &LeafView) -> Option<(Arc<Patch>, PatchBlock)> {
        let is_block = match &view.base {
            Base::Stored(_) => true,
            Base::Packed(packed) => packed.patch().is_none(),
            Base::Loaded(_) | Base::Spilled(_) => false,
        };
        let patch = view.delta.patch().filter(|_| is_block && view.birth.is_none())?;
        if self.is_needed_before(patch.newest()) {
            return None;
        }
        Some((patch.clone(), patch.read().ok()?))
    }

    /// Whether a snapshot before `timestamp` is open.
    pub(super) fn is_needed_before(&self, timestamp: Timestamp) -> bool {
        self.shared.context.clock.active_snapshots().needs(0, timestamp)
    }

    /// `block` was read from `place`, with `patch` folded in: it stays in memory, if the base is still there.
    pub(super) fn keep_block(
        &self,
        state: &mut LeafState,
        node: &Arc<Node>,
        place: &Base,
        block: &Arc<Block>,
        patch: Option<&Arc<Patch>>,
    ) -> bool {
        let is_kept = self.keep_base(state, node, place, Base::Loaded(block.clone()), block.number(), patch);
        if is_kept && patch.is_none() {
            // An older image may still be the base: what changed since is then in the delta, and in the newer image.
            state.copies.read_back(place, block);
        }
        is_kept
    }

    /// What was read from `place`, with `patch` folded in, takes its place, if the base is still there.
    pub(super) fn keep_base(
        &self,
        state: &mut LeafState,
        node: &Arc<Node>,
        place: &Base,
        base: Base,
        number: BlockNumber,
        patch: Option<&Arc<Patch>>,
    ) -> bool {
        let now = self.view();
        if !now.base.same_place(place) {
            return false;
        }
        let mut kept = LeafView { base, ..(*now).clone() };
        if let Some(patch) = patch {
            let Some(newer) = now.delta.since_patch(patch) else { return false };
            state.copies.folded(patch, number);
            (kept.delta, kept.horizon) = (newer, now.horizon.max(patch.newest()));
        }
        self.publish(state, kept);
        self.register(state, node);
        true
    }

    /// Where the file has what the spill file has of the base, that is left.
    pub(in crate::tree) fn leave_spill(&self, state: &mut LeafState) {
        let view = self.view();
        if let Some(base) = state.copies.leave_spill(&view.base) {
            self.publish(state, LeafView { base, ..(*view).clone() });
        }
    }

    /// The base as `reader` sees it: without rows if it was born by a transaction that the reader does not see.
    #[inline]
    pub(crate) fn base_for(
        &self,
        node: &Arc<Node>,
        view: &LeafView,
        reader: &Reader<'_>,
    ) -> Result<Arc<Block>> {
        match view.shows_base(reader) {
            true => self.base(node, view),
            false => Ok(self.shared.no_rows.clone()),
        }
    }

    /// What `view` shows to `reader`, as one block. Call without the latch.
    pub(crate) fn materialise(
        &self,
        node: &Arc<Node>,
        view: &LeafView,
        reader: &Reader<'_>,
    ) -> Result<Block> {
        let base = self.base_for(node, view, reader)?;
        let delta = self.delta(node, view)?;
        let history = if reader.snapshot < view.horizon { self.history(view)? } else { None };
        let horizon = view.horizon;
        Ok(materialise(&Content { horizon, base: &base, delta: &delta, history: history.as_deref() }, reader))
    }

    /// The base wherever it is, without keeping it.
    pub(crate) fn read_base(&self, place: &Base) -> Result<Arc<Block>> {
        match place {
            Base::Loaded(block) => Ok(block.clone()),
            Base::Stored(image) => Ok(Arc::new(image.read(&self.shared)?)),
            Base::Packed(packed) => Ok(Arc::new(packed.whole()?)),
            Base::Spilled(spilled) => {
                let block = Block::parse_spilled(spilled.extent.read()?, spilled.blobs.clone());
                Ok(Arc::new(
                    block.map_err(|detail| Error::corrupt(self.shared.context.spill.path(), 0, detail))?,
                ))
            }
        }
    }

    /// The delta of `view`; a spilled one is read, and kept if the latch is free. Call without the latch.
    #[inline]
    pub(crate) fn delta(&self, node: &Arc<Node>, view: &LeafView) -> Result<Arc<Delta>> {
        match &view.delta {
            Changes::Live(delta) => Ok(delta.clone()),
            Changes::Spilled { older, fresh } => {
                let room = self.shared.context.cache.make_room();
                let mut delta = older.read(&self.shared.context)?;
                // See `load_base`.
                if let (Ok(()), Some(mut state)) = (room, self.try_latch()) {
                    let now = self.view();
                    match &now.delta {
                        Changes::Spilled { older: o, fresh } if Arc::ptr_eq(o, older) => {
                            // Nobody pushes meanwhile, so that nothing is lost.
                            delta.add_newer(fresh);
                            let delta = Arc::new(delta);
                            match older.only_patch().filter(|_| fresh.is_empty()) {
                                Some(patch) => {
                                    let covered = Covered::new(&delta, delta.versions(), patch.clone());
                                    state.covered = Some(Box::new(covered));
                                }
                                None => {
                                    state.backing = Some(Backing::new(&delta, older.clone(), fresh.clone()))
                                }
                            }
                            let view = LeafView { delta: Changes::Live(delta.clone()), ..(*now).clone() };
                            self.publish(&mut state, view);
                            self.register(&mut state, node);
                            return Ok(delta);
                        }
                        _ => {}
                    }
                }
                // What is pushed from now on is not in it: see `pushed_unseen`.
                delta.add_newer(fresh);
                Ok(Arc::new(delta))
            }
        }
    }

    /// The history of `view`; a spilled one is read, and kept if the latch is free. Call without the latch.
    pub(crate) fn history(&self, view: &LeafView) -> Result<Option<Arc<History>>> {
        let history = self.read_history(&view.history)?;
        if let (Archive::Spilled(spilled), Some(history)) = (&view.history, &history) {
            if let Some(mut state) = self.try_latch() {
                let now = self.view();
                if matches!(&now.history, Archive::Spilled(s) if Arc::ptr_eq(s, spilled)) {
                    let view = LeafView { history: Archive::Live(history.clone()), ..(*now).clone() };
                    self.publish(&mut state, view);
                }
            }
        }
        Ok(history)
    }

    /// The history wherever it is, without keeping it.
    pub(crate) fn read_history(&self, place: &Archive) -> Result<Option<Arc<History>>> {
        match place {
            Archive::Empty => Ok(None),
            Archive::Live(history) => Ok(Some(history.clone())),
            Archive::Spilled(spilled) => spilled.read(&self.shared.context),
        }
    }
}
