//! Writing a tree's image as of a timestamp: the tree's part of a checkpoint.
//!
//! 1. *Leaves*: each leaf that was dirty when the image began is consolidated, then written as the timestamp sees it.
//!    Of one with few changes since its block was written only these are ([`super::patches`]): it stays as it is. No
//!    latch is held over I/O; writers and readers go on. Where the leaves are more than memory has room for, each is
//!    written once it is consolidated, ahead of the image ([`super::early`]): nothing has to be evicted to the spill
//!    file and read again in between.
//! 2. *Splits*: leaves that a split touched since they were written are written again, until they are few.
//! 3. *Pages*: what the pages above the written leaves name is noted under the structure latch; then they are built and
//!    written without it ([`super::pages`]).
//!
//! Old extents are superseded by the checkpoint's generation and stay untouched until it is durable; if it fails,
//! [`Tree::checkpoint_abandoned`] puts the leaves back on the list.

use super::bundles::Part;
use super::patches::Patches;
use super::tree::Tree;
use crate::store::{Lifetime, PreparedBlock, TreeRoot};
use crate::sync::atomic::Ordering;
use crate::tree::block::blob::Blob;
use crate::tree::block::Block;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::lifecycle::FileCopy;
use crate::tree::leaf::node::{LeafRef, Node};
use crate::tree::leaf::{Base, LeafView};
use crate::tree::versions::materialise::materialise;
use crate::tree::versions::visibility::{Content, Reader};
use crate::types::Timestamp;
use crate::{Error, Result};
use std::collections::HashSet;
use std::sync::Arc;

/// What a leaf's image is made of.
struct LeafImage {
    block: Arc<Block>,
    /// The block is the leaf's base itself and the leaf has nothing else.
    clean: bool,
}

/// Fewer leaves than these are not worth another thread.
const LEAVES_PER_WRITER: usize = 32;

/// Leaves that were split meanwhile are written in so many rounds at most, unless they are
const MOST_ROUNDS: usize = 16;

/// so few: the pages above them are noted then, and these, as they are then, written behind that.
const FEW_SPLIT: usize = 32;

/// Does `work` for each of `leaves`, on up to `writers` threads. After an error some are left out.
fn each(leaves: &[LeafRef], writers: usize, work: &(dyn Fn(&LeafRef) -> Result<()> + Sync)) -> Result<()> {
    crate::threads::share_out(leaves, writers.min(Tree::useful_writers(leaves.len())), "teak-write", work)
}

/// The moment that an image shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The image has what was committed up to this.
    pub at: Timestamp,
    /// A replay of the log on top of the image passes over the blocks of what was committed up to this, which is not
    /// after `at`.
    pub counted_at: Timestamp,
}

impl Moment {
    /// Of a tree that no load puts blocks into.
    pub fn at(at: Timestamp) -> Moment {
        Moment { at, counted_at: 0 }
    }
}

/// Large values that an image names.
#[derive(Default)]
struct Kept {
    alone: HashSet<*const Blob>,
    /// Of bundles: of those several objects may stand for one.
    parts: HashSet<Part>,
}

impl Kept {
    fn add(&mut self, blobs: &[Arc<Blob>]) {
        for blob in blobs {
            match Part::of(blob) {
                Some(part) => _ = self.parts.insert(part),
                None => _ = self.alone.insert(Arc::as_ptr(blob)),
            }
        }
    }

    fn has(&self, blob: &Arc<Blob>) -> bool {
        match Part::of(blob) {
            Some(part) => self.parts.contains(&part),
            None => self.alone.contains(&Arc::as_ptr(blob)),
        }
    }
}

impl Tree {
    /// Leaves that the next image has to write, about.
    pub(crate) fn dirty_leaves(&self) -> usize {
        self.ready(Care::Write)
    }

    /// How many threads have something to do if there are so many dirty leaves.
    pub(crate) fn useful_writers(leaves: usize) -> usize {
        leaves / LEAVES_PER_WRITER
    }

    /// Writes what changed since the last image, as of `at`, which must be a registered snapshot until this returns.
    /// Returns the new root; None if nothing changed. Does not sync. On an error, call [`Tree::checkpoint_abandoned`].
    /// `writers`: threads that consolidate and compress leaves.
    pub(crate) fn checkpoint(
        &self,
        moment: Moment,
        generation: u64,
        writers: usize,
    ) -> Result<Option<TreeRoot>> {
        let at = moment.at;
        let more = self.list_unconverted()?;
        // Consolidation comes first: while the image is being made, empty leaves and small ones have to stay.
        let listed = self.waiting(Care::Write);
        let overflows = self.overflows(listed.len());
        each(&listed, writers, &|leaf| {
            let node = leaf.node();
            self.shared.context.cache.make_room_if_possible();
            if self.is_to_be_patched(leaf) {
                return Ok(());
            }
            self.consolidate_changed(node)?;
            self.merge_around(node);
            match overflows {
                true => self.write_overflowing(node),
                false => Ok(()),
            }
        })?;
        drop(listed);
        self.remove_vacant()?;
        let recount = self.is_miscounted.swap(false, Ordering::SeqCst) && self.root_has_image();
        let Some(dirty) = self.begin_image(recount) else {
            // The durable image has all that was committed.
            self.settle_direct(moment.counted_at);
            return Ok(None);
        };
        let patches = Patches::new(self, at, generation);
        each(&dirty, writers, &|leaf| match patches.take(leaf)? {
            true => Ok(()),
            false => self.write_leaf(leaf, at, generation),
        })
        .and_then(|()| patches.write_rest())
        .inspect_err(|_| self.list_again(&dirty))?;
        self.write_split(at, generation, writers)?;
        let root = self.write_cut(self.cut()?, at, generation, writers)?;
        self.supersede_replaced(generation)?;
        self.settle_direct(moment.counted_at);
        if more {
            self.note_dirty();
        }
        Ok(Some(root))
    }

    /// Whether so many leaves, consolidated one after the other, may not be in memory together.
    fn overflows(&self, leaves: usize) -> bool {
        let bytes = (leaves as u64).saturating_mul(u64::from(self.shared.spec.block_bytes));
        bytes > self.shared.context.cache.budget() / 2
    }

    /// Takes the list of dirty leaves; from here on structure changes note what they touch. `None`: there is nothing to
    /// write, which is to be asked under the latch only. `recount`: there is, also if no leaf is dirty.
    pub(in crate::tree) fn begin_image(&self, recount: bool) -> Option<Vec<LeafRef>> {
        let mut structure = self.structure.lock();
        structure.reimage.clear();
        structure.loose.checkpoint_begins();
        let dirty = self.take(Care::Write);
        structure.checkpointing = !dirty.is_empty() || recount || self.root_needs_image();
        structure.checkpointing.then_some(dirty)
    }

    fn root_needs_image(&self) -> bool {
        match &**self.root.load() {
            Node::Inner(inner) => inner.dirty.load(Ordering::SeqCst),
            Node::Leaf(_) => false,
        }
    }

    fn root_has_image(&self) -> bool {
        match &**self.root.load() {
            Node::Inner(inner) => {
                let image = inner.image.lock();
                image.pending.is_some() || image.durable.is_some()
            }
            Node::Leaf(leaf) => leaf.latch().copies.newest().is_some(),
        }
    }

    fn list_again(&self, leaves: &[LeafRef]) {
        leaves.iter().for_each(|leaf| self.list_dirty(&leaf.latch(), leaf.node()));
    }

    pub(in crate::tree) fn write_leaf(&self, leaf: &LeafRef, at: Timestamp, generation: u64) -> Result<()> {
        let node = leaf.node();
        self.shared.context.cache.make_room_if_possible();
        self.consolidate_changed(node)?;
        let view = leaf.view();
        if view.dead {
            return Ok(());
        }
        if self.take_early(leaf, &view, at, generation) {
            self.imaged(node);
        } else {
            // A structure change since `view` was taken puts the leaf on the list of those to write again.
            self.write_view(leaf, &view, at, generation)?;
        }
        self.mark_way(node, &view.low)
    }

    /// Writes again what splits touched since the leaves were written, until these are few. Each round has the splits
    /// of the one before, which takes no longer than that: soon there are few, unless the disk keeps up with nothing.
    pub(in crate::tree) fn write_split(&self, at: Timestamp, generation: u64, writers: usize) -> Result<()> {
        for _ in 0..MOST_ROUNDS {
            let split = {
                let mut structure = self.structure.lock();
                if structure.reimage.len() <= FEW_SPLIT {
                    break;
                }
                std::mem::take(&mut structure.reimage)
            };
            each(&split, writers, &|leaf| self.write_again(leaf, at, generation))
                .inspect_err(|_| self.list_again(&split))?;
        }
        Ok(())
    }

    fn write_again(&self, leaf: &LeafRef, at: Timestamp, generation: u64) -> Result<()> {
        let node = leaf.node();
        self.shared.context.cache.make_room_if_possible();
        let view = leaf.view();
        if view.dead {
            return Ok(());
        }
        self.write_view(leaf, &view, at, generation)?;
        self.mark_way(node, &view.low)
    }

    /// Writes the leaf's image as of `at`, from `view`, which may be older than what the leaf has by now.
    pub(super) fn write_view(
        &self,
        leaf: &LeafRef,
        view: &LeafView,
        at: Timestamp,
        generation: u64,
    ) -> Result<()> {
        let (image, block) = self.prepare_leaf(leaf, view, at, generation)?;
        self.shared.space.write(&block)?;
        self.note_image(leaf, image, generation);
        Ok(())
    }

    pub(in crate::tree) fn consolidate_changed(&self, node: &Arc<Node>) -> Result<()> {
        let changed =
            node.leaf().is_some_and(|leaf| leaf.view().has_changes() || leaf.view().birth.is_some());
        if changed {
            self.maintain(node)?;
        }
        Ok(())
    }

    /// The leaf's image and the block to write. Large values that are not stored yet are written here.
    fn prepare_leaf(
        &self,
        leaf: &LeafRef,
        view: &LeafView,
        at: Timestamp,
        generation: u64,
    ) -> Result<(FileCopy, PreparedBlock)> {
        let made = self.leaf_image(leaf, view, at)?;
        let (copy, block) = self.shared.prepare(Lifetime::Checkpoint(generation), &made.block)?;
        made.block.blobs().iter().for_each(|blob| blob.join(generation));
        Ok((if made.clean { copy } else { copy.without_twin() }, block))
    }

    fn leaf_image(&self, leaf: &LeafRef, view: &LeafView, at: Timestamp) -> Result<LeafImage> {
        let reader = Reader::at(at);
        let base = leaf.base_for(leaf.node(), view, &reader)?;
        let delta = leaf.delta(leaf.node(), view)?;
        if !view.shows_base(&reader) && delta.is_empty() {
            return Ok(LeafImage { block: base, clean: false });
        }
        if delta.is_empty() && (view.horizon <= at || view.history.is_empty()) {
            return Ok(LeafImage { block: base, clean: view.horizon <= at });
        }
        let history = leaf.history(view)?;
        let content =
            Content { horizon: view.horizon, base: &base, delta: &delta, history: history.as_deref() };
        let block = Arc::new(materialise(&content, &reader));
        Ok(LeafImage { block, clean: false })
    }

    pub(super) fn note_image(&self, leaf: &LeafRef, made: FileCopy, generation: u64) {
        let mut state = leaf.latch();
        self.shared.size.count_image(state.copies.newest(), Some(&made));
        let clean = made.has_twin();
        if let Some(replaced) = state.copies.checkpointed(made) {
            // Its blobs are in the images that replace it: the leaf's, or its new neighbours'.
            replaced.supersede(generation, state.copies.durable());
        }
        if !clean {
            self.list_dirty(&state, leaf.node());
        }
        drop(state);
        self.imaged(leaf.node());
    }

    pub(super) fn imaged(&self, node: &Arc<Node>) {
        self.imaged.lock().push(node.clone());
    }

    /// Supersedes the images that this one replaces, and the blobs that no leaf of it names any more. (A blob may have
    /// moved to another leaf by a split; both were written then.)
    pub(in crate::tree) fn supersede_replaced(&self, generation: u64) -> Result<()> {
        let mut replaced: Vec<FileCopy> = self.structure.lock().loose.superseded().to_vec();
        let mut kept = Kept::default();
        for node in self.imaged.lock().iter() {
            match &**node {
                Node::Leaf(leaf) => {
                    let state = leaf.latch();
                    if let (Some(pending), durable) = (state.copies.pending(), state.copies.durable()) {
                        kept.add(&pending.image.known_blobs());
                        match durable.filter(|durable| Arc::ptr_eq(&durable.image, &pending.image)) {
                            Some(durable) => durable.supersede(generation, Some(pending)),
                            None => replaced.extend(durable.cloned()),
                        }
                    }
                }
                Node::Inner(inner) => {
                    let image = inner.image.lock();
                    if let (Some(old), Some(_)) = (&image.durable, &image.pending) {
                        old.supersede(generation);
                    }
                }
            }
        }
        for copy in &replaced {
            copy.supersede(generation, None);
            let Some(named) = unless_damaged(copy.image.blobs(&self.shared))? else { continue };
            let mut gone = named.iter().filter(|blob| !kept.has(blob));
            gone.try_for_each(|blob| blob.supersede(generation))?;
        }
        self.bundles.enter(&kept.parts, generation)
    }

    /// The superblock that names this image is durable: it is now what evicted leaves are read from.
    pub(crate) fn checkpoint_durable(&self) {
        self.structure.lock().loose.checkpoint_durable();
        self.shared.encoding.checkpoint_durable();
        self.release_direct();
        self.bundles.checkpoint_durable();
        let looks = self.is_for_bundles();
        for node in std::mem::take(&mut *self.imaged.lock()) {
            match &*node {
                Node::Leaf(leaf) => {
                    let mut state = leaf.latch();
                    state.copies.checkpoint_durable();
                    leaf.leave_spill(&mut state);
                    let view = leaf.view();
                    if let Some(copy) = state.copies.durable().filter(|_| looks) {
                        self.bundles.note_leaf(&copy.image.known_blobs(), &view.low);
                    }
                    // It may have been evicted while the checkpoint was under way.
                    state.forget_blobs(&view.base);
                }
                Node::Inner(inner) => {
                    let mut image = inner.image.lock();
                    if let Some(extent) = image.pending.take() {
                        image.durable = Some(extent);
                    }
                }
            }
        }
    }

    /// The tree is dropped while others of its space go on: the images of `generation` and later name nothing of it.
    /// Reads all blocks that may name large values.
    pub(crate) fn supersede_all(&self, generation: u64) -> Result<()> {
        let structure = self.structure.lock();
        for copy in structure.loose.gone() {
            copy.supersede(generation, None);
            if let Some(named) = unless_damaged(copy.image.blobs(&self.shared))? {
                named.iter().try_for_each(|blob| blob.supersede(generation))?;
            }
        }
        self.supersede_node(&self.root.load_full(), generation)?;
        self.shared.encoding.supersede(generation);
        Ok(())
    }

    fn supersede_node(&self, node: &Arc<Node>, generation: u64) -> Result<()> {
        match &**node {
            Node::Leaf(leaf) => {
                let copy = leaf.latch().copies.durable().cloned();
                let Some(copy) = copy else { return Ok(()) };
                if !copy.image.names_none() {
                    if let Some(block) = unless_damaged(leaf.read_base(&Base::Stored(copy.image.clone())))? {
                        block.blobs().iter().try_for_each(|blob| blob.supersede(generation))?;
                    }
                }
                copy.supersede(generation, None);
            }
            Node::Inner(inner) => {
                let view = unless_damaged(inner.view())?.and_then(|view| view.clone());
                for (view, at) in view.iter().flat_map(|view| (0..view.len()).map(move |at| (view, at))) {
                    match view.plain_copy(at) {
                        Some(copy) => copy.supersede(generation, None),
                        None => self.supersede_node(view.child(at), generation)?,
                    }
                }
                if let Some(extent) = &inner.image.lock().durable {
                    extent.supersede(generation);
                }
            }
        }
        Ok(())
    }

    /// The checkpoint failed: its image is void, and what it wrote must be written again.
    pub(crate) fn checkpoint_abandoned(&self) {
        self.end_image(&mut self.structure.lock());
        self.shared.encoding.checkpoint_abandoned();
        self.settle_direct(0);
        let nodes = std::mem::take(&mut *self.imaged.lock());
        for node in &nodes {
            match &**node {
                Node::Leaf(leaf) => {
                    let mut state = leaf.latch();
                    if let Some(void) = state.copies.checkpoint_abandoned() {
                        self.shared.size.count_image(Some(&void), state.copies.durable());
                    }
                    self.list_dirty(&state, node);
                }
                Node::Inner(inner) => {
                    // First: a page that seems to be as it is stored may leave memory.
                    inner.dirty.store(true, Ordering::SeqCst);
                    inner.image.lock().pending = None;
                }
            }
        }
        self.note_dirty();
        // Perhaps it was written for its count alone.
        self.note_miscounted();
    }
}

/// What a damaged block names stays in use when its tree goes: that space is lost until the table is copied. Nothing
/// else may depend on it, least of all whether there can be checkpoints.
fn unless_damaged<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(Error::Corrupt { .. } | Error::UnknownVersion { .. }) => Ok(None),
        read => read.map(Some),
    }
}
