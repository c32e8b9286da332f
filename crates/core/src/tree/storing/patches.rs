//! Leaves of which a checkpoint writes what has changed, and not the block ([`crate::tree::leaf::patch`]).
//!
//! A leaf whose block is as its durable image has it is not folded for a checkpoint, and its block not read, while its
//! changes are few. Patches of many leaves are compressed one by one, and written side by side with one call: a file
//! system writes whole pages, and has to read those of which it gets a part.

use super::tree::Tree;
use crate::store::Lifetime;
use crate::sync::Mutex;
use crate::tree::leaf::lifecycle::FileCopy;
use crate::tree::leaf::node::LeafRef;
use crate::tree::leaf::patch::{NewPatch, Patch};
use crate::tree::leaf::{Base, LeafView};
use crate::tree::versions::delta::Delta;
use crate::types::Timestamp;
use crate::Result;
use std::sync::Arc;

/// So many patches go to the file with one write: some 64 KiB.
const WRITTEN_TOGETHER: usize = 64;

/// A leaf's patch, on its way to the file.
struct Waiting {
    leaf: LeafRef,
    /// What it is added to, as it was when the patch was made.
    copy: FileCopy,
    patch: NewPatch,
    /// What it was made of, if that is in memory, with how many versions it had.
    made_of: Option<(Arc<Delta>, usize)>,
}

/// Patches of one image.
pub(super) struct Patches<'a> {
    tree: &'a Tree,
    at: Timestamp,
    generation: u64,
    waiting: Mutex<Vec<Waiting>>,
}

impl Tree {
    /// Whether a checkpoint is not to fold the leaf's changes, as they seem to be few.
    pub(super) fn is_to_be_patched(&self, leaf: &LeafRef) -> bool {
        let view = leaf.view();
        let state = leaf.latch();
        state.copies.to_patch(&view.base).is_some_and(|copy| can_be_patched(&view, copy))
    }
}

/// Whether the changes of `view` may become a patch of `copy`, which has its base.
fn can_be_patched(view: &LeafView, copy: &FileCopy) -> bool {
    let is_alone = view.low.is_empty() && view.high.is_none();
    let is_simple = !view.dead && view.birth.is_none() && !is_alone && view.has_changes();
    // The keys of an empty block would be nothing to compare with; large values stay whose they are.
    let names_none = match &view.base {
        Base::Loaded(block) => block.blobs().is_empty() && !block.is_empty(),
        Base::Packed(_) => true,
        Base::Stored(image) => image.names_none(),
        Base::Spilled(_) => false,
    };
    // What is in memory takes several times what its patch does.
    let most = copy.image.extent.address().raw_bytes as usize;
    is_simple && names_none && view.delta.bytes() <= most / 2
}

impl<'a> Patches<'a> {
    /// For the image of `tree` that the checkpoint `generation` writes, as of `at`.
    pub fn new(tree: &'a Tree, at: Timestamp, generation: u64) -> Patches<'a> {
        Patches { tree, at, generation, waiting: Mutex::default() }
    }

    /// Takes what has changed of the leaf, if that is little. `false`: its block is to be written.
    pub fn take(&self, leaf: &LeafRef) -> Result<bool> {
        let view = leaf.view();
        let Some(copy) = leaf.latch().copies.to_patch(&view.base).cloned() else { return Ok(false) };
        if view.horizon > self.at || !can_be_patched(&view, &copy) {
            return Ok(false);
        }
        let delta = leaf.delta(leaf.node(), &view)?;
        let versions = delta.versions();
        let patch = match copy.patch.as_ref().filter(|_| copy.is_patched(&view.base)) {
            Some(before) => {
                let mut all = Delta::new();
                before.read_into(&mut all)?;
                all.add_newer(&delta);
                NewPatch::of(&all, self.at, &copy)
            }
            None => NewPatch::of(&delta, self.at, &copy),
        };
        let Some(patch) = patch else { return Ok(false) };
        let made_of = Some((delta, versions));
        let mut waiting = self.waiting.lock();
        waiting.push(Waiting { leaf: leaf.clone(), copy, patch, made_of });
        if waiting.len() < WRITTEN_TOGETHER {
            return Ok(true);
        }
        let full = std::mem::take(&mut *waiting);
        drop(waiting);
        self.write(full).map(|()| true)
    }

    /// Writes those that wait still.
    pub fn write_rest(&self) -> Result<()> {
        let rest = std::mem::take(&mut *self.waiting.lock());
        self.write(rest)
    }

    fn write(&self, waiting: Vec<Waiting>) -> Result<()> {
        let (space, packing) = (&self.tree.shared.space, self.tree.shared.encoding.packing());
        let raw = waiting.iter().map(|waiting| &waiting.patch.bytes[..]);
        let blocks = space.prepare_together(Lifetime::Checkpoint(self.generation), raw, packing)?;
        space.write_together(&blocks)?;
        for (waiting, block) in waiting.into_iter().zip(&blocks) {
            let Waiting { leaf, copy, patch, made_of } = waiting;
            let is_complete = patch.is_complete;
            let patch = patch.stored(block.extent().clone());
            let low = leaf.view().low.clone();
            self.tree.note_patched(&leaf, (copy, patch), made_of.filter(|_| is_complete), self.generation);
            self.tree.mark_way(leaf.node(), &low)?;
        }
        Ok(())
    }
}

impl Tree {
    /// The running checkpoint has written a patch of the leaf, whose durable copy was this one. `made_of`: a delta that
    /// the patch has all of, and its versions; `None`: there is more.
    fn note_patched(
        &self,
        leaf: &LeafRef,
        (copy, patch): (FileCopy, Arc<Patch>),
        made_of: Option<(Arc<Delta>, usize)>,
        generation: u64,
    ) {
        let mut state = leaf.latch();
        // The block may have been read since, or folded into another.
        let now = state.copies.durable().filter(|now| Arc::ptr_eq(&now.image, &copy.image));
        let made = now.unwrap_or(&copy).with_patch(patch.clone());
        self.shared.size.count_image(state.copies.newest(), Some(&made));
        if let Some(replaced) = state.copies.checkpointed(made) {
            replaced.supersede(generation, state.copies.durable());
        }
        match made_of {
            Some((delta, versions)) => leaf.cover(&mut state, &delta, versions, patch),
            None => self.list_dirty(&state, leaf.node()),
        }
        drop(state);
        self.imaged(leaf.node());
    }
}
