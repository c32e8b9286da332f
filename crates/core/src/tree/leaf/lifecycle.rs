//! Where a leaf's bytes are on disk: one life, without I/O.
//!
//! Four write blocks of leaves: a checkpoint; whoever writes finished leaves ahead of it; a load that attaches blocks,
//! which are written beside; a rebuild. All of them say so here. What the *durable* copy is, the last checkpoint has
//! said; what comes after it is in [`Next`]:
//!
//! ```text
//! Nothing ── written_ahead ──> Ahead ── join ──> Joined ── durable ──> Nothing, beside the new durable copy
//!    └──────────────── checkpointed ───────────> Pending ── durable ─────┘
//!
//!            written_ahead   join     checkpointed   changed   checkpoint_durable   checkpoint_abandoned
//! Nothing    Ahead                    Pending        Nothing   Nothing              Nothing
//! Ahead      Ahead           Joined   Both           Nothing   Ahead                Ahead
//! Joined     Both                     Pending        Pending   Nothing              Ahead
//! Pending    Both                     Pending        Pending   Nothing              Nothing
//! Both       Both                     Both           Pending   Ahead                Ahead
//! ```
//!
//! Whether the extents themselves may be reused is another life, that of `store/lifecycle.rs`: `Ahead` is private
//! there, `Joined` and `Pending` belong to the running checkpoint.
//!
//! What of the content is in memory is no part of this: it says only which block in memory equals a copy, so that an
//! eviction has not to write it again. That holds for a copy in the spill file, too, for as long as the file of the
//! tree has none.

use super::patch::Patch;
use super::{Base, Image, SpilledBase};
use crate::store::Extent;
use crate::tree::block::{Block, BlockNumber};
use std::sync::Arc;

/// A leaf in the file: a block, and what has changed since that was written.
#[derive(Clone)]
pub(crate) struct FileCopy {
    pub image: Arc<Image>,
    pub patch: Option<Arc<Patch>>,
    /// The block in memory that equals `image`, if there is or was one.
    twin: Option<BlockNumber>,
    /// Likewise the one that equals both together, or `image` and a patch before, since which all changes are in the
    /// leaf's delta.
    patched_twin: Option<BlockNumber>,
}

impl FileCopy {
    /// What the file has, of which nothing is in memory.
    pub(in crate::tree) fn stored(image: Arc<Image>, patch: Option<Arc<Patch>>) -> FileCopy {
        FileCopy { image, patch, twin: None, patched_twin: None }
    }

    /// `image` was made of `block` as it is.
    pub(in crate::tree) fn of(image: Arc<Image>, block: &Block) -> FileCopy {
        FileCopy { twin: Some(block.number()), ..FileCopy::stored(image, None) }
    }

    /// The same block with another patch.
    pub(in crate::tree) fn with_patch(&self, patch: Arc<Patch>) -> FileCopy {
        FileCopy { patch: Some(patch), ..self.clone() }
    }

    /// Bytes on disk, and before they were compressed.
    pub(in crate::tree) fn sizes(&self) -> (i64, i64) {
        let (stored, raw) = self.image.sizes();
        let patch = self.patch.as_ref().map_or((0, 0), |patch| patch.sizes());
        (stored + patch.0, raw + patch.1)
    }

    /// The images of `generation` and later do not name it, but for what is `kept`.
    pub(in crate::tree) fn supersede(&self, generation: u64, kept: Option<&FileCopy>) {
        if !kept.is_some_and(|kept| Arc::ptr_eq(&kept.image, &self.image)) {
            self.image.extent.supersede(generation);
        }
        if let Some(patch) = self.patch.as_ref().filter(|patch| !kept.is_some_and(|kept| kept.has(patch))) {
            patch.extent().supersede(generation);
        }
    }

    fn has(&self, patch: &Arc<Patch>) -> bool {
        self.patch.as_ref().is_some_and(|own| Arc::ptr_eq(own, patch))
    }

    /// Likewise; but the block is not what the leaf has in memory, or not all that it has.
    pub(in crate::tree) fn without_twin(self) -> FileCopy {
        FileCopy { twin: None, ..self }
    }

    /// Whether the leaf needs no other copy than this.
    pub(in crate::tree) fn has_twin(&self) -> bool {
        self.twin.is_some()
    }

    fn equals(&self, block: &Block) -> bool {
        self.twin == Some(block.number())
    }

    /// Whether `base` is all of it: the block with its patch.
    pub(in crate::tree) fn is_patched(&self, base: &Base) -> bool {
        let number = match base {
            Base::Loaded(block) => block.number(),
            Base::Packed(packed) if packed.patch().is_some() => packed.keys().number(),
            Base::Packed(_) | Base::Stored(_) | Base::Spilled(_) => return false,
        };
        self.patched_twin == Some(number)
    }

    /// Whether `base` is its block, apart from what the patch says.
    pub(in crate::tree) fn is_of(&self, base: &Base) -> bool {
        match base {
            Base::Loaded(block) => self.equals(block),
            Base::Stored(image) => Arc::ptr_eq(image, &self.image),
            Base::Packed(packed) => packed.patch().is_none() && Arc::ptr_eq(&packed.image, &self.image),
            Base::Spilled(_) => false,
        }
    }
}

/// What was written of a leaf since its durable copy.
#[derive(Default)]
enum Next {
    #[default]
    Nothing,
    /// Ahead of the next checkpoint, of the leaf's base; nothing names it.
    Ahead(FileCopy),
    /// Ahead of the running checkpoint, which has made it its own; of the leaf's base still.
    Joined(FileCopy),
    /// By the running checkpoint.
    Pending(FileCopy),
    /// By the running checkpoint; then the leaf has got another base, which was written ahead of the next one.
    Both { pending: FileCopy, ahead: FileCopy },
}

impl Next {
    fn copies_mut(&mut self) -> impl Iterator<Item = &mut FileCopy> {
        let (one, other) = match self {
            Next::Nothing => (None, None),
            Next::Ahead(copy) | Next::Joined(copy) | Next::Pending(copy) => (Some(copy), None),
            Next::Both { pending, ahead } => (Some(pending), Some(ahead)),
        };
        one.into_iter().chain(other)
    }
}

/// The copies of a leaf. The leaf's latch protects them.
#[derive(Default)]
pub(crate) struct Copies {
    /// What the last durable checkpoint names.
    durable: Option<FileCopy>,
    next: Next,
    /// The base is, or was made of, this block, and is in the spill file.
    spilled: Option<(Arc<SpilledBase>, BlockNumber)>,
    /// The next checkpoint is to write the block anew, however little has changed.
    is_to_be_rewritten: bool,
}

impl Copies {
    /// Of a leaf that a durable checkpoint, or a load, has left on disk.
    pub(in crate::tree) fn stored(copy: FileCopy) -> Copies {
        Copies { durable: Some(copy), ..Copies::default() }
    }

    /// What the last durable checkpoint names.
    pub(crate) fn durable(&self) -> Option<&FileCopy> {
        self.durable.as_ref()
    }

    /// What the running checkpoint has written.
    pub(in crate::tree) fn pending(&self) -> Option<&FileCopy> {
        match &self.next {
            Next::Joined(copy) | Next::Pending(copy) | Next::Both { pending: copy, .. } => Some(copy),
            Next::Nothing | Next::Ahead(_) => None,
        }
    }

    /// What a patch of `base` would be added to: the durable copy, if nothing else was written of the leaf since, and
    /// `base` is its block, or that with its patch.
    pub(in crate::tree) fn to_patch(&self, base: &Base) -> Option<&FileCopy> {
        let is_newest = matches!(self.next, Next::Nothing) && !self.is_to_be_rewritten;
        self.durable.as_ref().filter(|copy| is_newest && (copy.is_of(base) || copy.is_patched(base)))
    }

    /// The durable copy, if there is no other of the leaf, none is wanted, and `base` is its block.
    pub(in crate::tree) fn only(&self, base: &Base) -> Option<&FileCopy> {
        self.to_patch(base).filter(|copy| self.spilled.is_none() && copy.is_of(base))
    }

    /// What was written of the leaf's base ahead of a checkpoint.
    fn ahead(&self) -> Option<&FileCopy> {
        match &self.next {
            Next::Ahead(copy) | Next::Joined(copy) | Next::Both { ahead: copy, .. } => Some(copy),
            Next::Nothing | Next::Pending(_) => None,
        }
    }

    /// What the page above the leaf is to name, if a checkpoint writes it now.
    pub(in crate::tree) fn newest(&self) -> Option<&FileCopy> {
        self.pending().or(self.durable())
    }

    /// All of them.
    pub(in crate::tree) fn all(&self) -> impl Iterator<Item = &FileCopy> {
        let ahead = match &self.next {
            Next::Ahead(copy) | Next::Both { ahead: copy, .. } => Some(copy),
            Next::Nothing | Next::Joined(_) | Next::Pending(_) => None,
        };
        self.durable().into_iter().chain(self.pending()).chain(ahead)
    }

    /// Their blocks.
    pub(in crate::tree) fn images(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.all().map(|copy| &copy.image)
    }

    /// What `base`, which is in memory, is the block of together with its patch.
    pub(in crate::tree) fn patched_as(&self, base: &Base) -> Option<(&Arc<Image>, &Arc<Patch>)> {
        let copy = self.durable.iter().chain(self.pending()).find(|copy| copy.is_patched(base))?;
        Some((&copy.image, copy.patch.as_ref()?))
    }

    /// The block of that number is the leaf's base from now on: what the file has, with `patch` folded in.
    pub(in crate::tree) fn folded(&mut self, patch: &Arc<Patch>, number: BlockNumber) {
        self.copies_mut().filter(|copy| copy.has(patch)).for_each(|copy| copy.patched_twin = Some(number));
    }

    fn copies_mut(&mut self) -> impl Iterator<Item = &mut FileCopy> {
        self.durable.as_mut().into_iter().chain(self.next.copies_mut())
    }

    /// What `base`, which is in memory, can be read back from. What only a running checkpoint has is none of that: it
    /// shows what that checkpoint may see.
    pub(in crate::tree) fn copy_of(&self, base: &Base) -> Option<&Arc<Image>> {
        let Base::Loaded(block) = base else { return None };
        let copies = self.durable.iter().chain(self.ahead());
        copies.into_iter().find(|copy| copy.equals(block)).map(|copy| &copy.image)
    }

    /// Where `base`, which is in memory, is on disk as well.
    pub(in crate::tree) fn place_of(&self, base: &Base) -> Option<Base> {
        let Base::Loaded(block) = base else { return None };
        if let Some(image) = self.copy_of(base) {
            return Some(Base::Stored(image.clone()));
        }
        let (place, _) = self.spilled.as_ref().filter(|(_, twin)| *twin == block.number())?;
        Some(Base::Spilled(place.clone()))
    }

    /// What is at `place` was read: `block` equals it.
    pub(in crate::tree) fn read_back(&mut self, place: &Base, block: &Block) {
        let image = match place {
            Base::Stored(image) => image,
            Base::Packed(packed) if packed.patch().is_none() => &packed.image,
            Base::Spilled(place) => return self.spilled(place, block),
            Base::Packed(_) => {
                let patched = self.copies_mut().filter(|copy| copy.is_patched(place));
                return patched.for_each(|copy| copy.patched_twin = Some(block.number()));
            }
            Base::Loaded(_) => return,
        };
        let copies = self.copies_mut().filter(|copy| Arc::ptr_eq(&copy.image, image));
        copies.for_each(|copy| copy.twin = Some(block.number()));
    }

    /// `block`, the leaf's base, is in the spill file at `place`.
    pub(in crate::tree) fn spilled(&mut self, place: &Arc<SpilledBase>, block: &Block) {
        self.spilled = Some((place.clone(), block.number()));
    }

    /// The leaf gets another base.
    pub(in crate::tree) fn changed(&mut self) {
        if let Some(durable) = &mut self.durable {
            (durable.twin, durable.patched_twin) = (None, None);
        }
        self.spilled = None;
        self.forget_ahead();
    }

    /// The leaf is to be written anew, whether it changes or not.
    pub(in crate::tree) fn rewrite(&mut self) {
        self.is_to_be_rewritten = true;
        self.forget_ahead();
    }

    /// What was written ahead of a checkpoint is not what the leaf has, or not what it is to have.
    pub(in crate::tree) fn forget_ahead(&mut self) {
        self.next = match std::mem::take(&mut self.next) {
            Next::Ahead(_) => Next::Nothing,
            Next::Joined(pending) | Next::Both { pending, .. } => Next::Pending(pending),
            next @ (Next::Nothing | Next::Pending(_)) => next,
        };
    }

    /// The leaf's base is in the file, in a private extent.
    pub(in crate::tree) fn written_ahead(&mut self, copy: FileCopy) {
        debug_assert!(copy.has_twin(), "a copy ahead of a checkpoint that does not equal the leaf's base");
        self.next = match std::mem::take(&mut self.next) {
            Next::Nothing | Next::Ahead(_) => Next::Ahead(copy),
            Next::Joined(pending) | Next::Pending(pending) | Next::Both { pending, .. } => {
                Next::Both { pending, ahead: copy }
            }
        };
        self.spilled = None;
    }

    /// The running checkpoint takes what was written of `base` ahead of it: that image, and the one which it replaces.
    pub(in crate::tree) fn join(&mut self, base: &Base) -> Option<(FileCopy, Option<FileCopy>)> {
        debug_assert!(self.pending().is_none(), "a leaf that the running checkpoint has written already");
        let before = self.newest().cloned();
        match std::mem::take(&mut self.next) {
            Next::Ahead(copy) if copy.is_of(base) => {
                self.next = Next::Joined(copy.clone());
                Some((copy, before))
            }
            next => {
                self.next = next;
                None
            }
        }
    }

    /// The running checkpoint has written the leaf. The copy that it had written before, if it has done so twice.
    pub(in crate::tree) fn checkpointed(&mut self, copy: FileCopy) -> Option<FileCopy> {
        let (replaced, next) = match std::mem::take(&mut self.next) {
            Next::Nothing => (None, Next::Pending(copy)),
            // It belongs to the checkpoint, which does not name it: no later one is to name it again.
            Next::Joined(replaced) | Next::Pending(replaced) => (Some(replaced), Next::Pending(copy)),
            Next::Ahead(ahead) => (None, Next::Both { pending: copy, ahead }),
            Next::Both { pending, ahead } => (Some(pending), Next::Both { pending: copy, ahead }),
        };
        self.next = next;
        replaced
    }

    /// The running checkpoint is durable.
    pub(in crate::tree) fn checkpoint_durable(&mut self) {
        match std::mem::take(&mut self.next) {
            Next::Joined(copy) | Next::Pending(copy) => self.settle(copy),
            Next::Both { pending, ahead } => {
                self.settle(pending);
                self.next = Next::Ahead(ahead);
            }
            next @ (Next::Nothing | Next::Ahead(_)) => self.next = next,
        }
        debug_assert!(self.pending().is_none());
    }

    /// That copy is durable. One with a patch has the block of before still.
    fn settle(&mut self, copy: FileCopy) {
        self.is_to_be_rewritten &= copy.patch.is_some();
        self.durable = Some(copy);
    }

    /// Lets go what is in the spill file, if the durable copy is the same; that is where `base`, which the leaf has, is
    /// then, if it was there.
    pub(in crate::tree) fn leave_spill(&mut self, base: &Base) -> Option<Base> {
        let (durable, (place, block)) = (self.durable.as_ref()?, self.spilled.as_ref()?);
        if durable.twin != Some(*block) {
            return None;
        }
        let is_there = matches!(base, Base::Spilled(spilled) if Arc::ptr_eq(spilled, place));
        let stored = is_there.then(|| Base::Stored(durable.image.clone()));
        self.spilled = None;
        stored
    }

    /// The running checkpoint was abandoned: its copy, which is void.
    pub(in crate::tree) fn checkpoint_abandoned(&mut self) -> Option<FileCopy> {
        let void = self.pending().cloned();
        self.next = match std::mem::take(&mut self.next) {
            Next::Joined(ahead) | Next::Ahead(ahead) | Next::Both { ahead, .. } => Next::Ahead(ahead),
            Next::Nothing | Next::Pending(_) => Next::Nothing,
        };
        void
    }

    /// The leaf leaves the tree: its durable copy, which the next checkpoint is not going to name.
    pub(in crate::tree) fn retire(&mut self) -> Option<FileCopy> {
        debug_assert!(self.pending().is_none(), "a leaf goes that the running checkpoint has written");
        self.durable.take()
    }
}

/// Images that no leaf has, or none that is durable. The structure latch protects them.
#[derive(Default)]
pub(crate) struct LooseImages {
    /// Of leaves that left the tree; superseded by the next checkpoint.
    removed: Vec<FileCopy>,
    /// Those that the running checkpoint supersedes, or one that was abandoned.
    removing: Vec<FileCopy>,
    /// A load has written them, and no checkpoint has named them yet.
    loaded: Vec<Arc<Image>>,
}

impl LooseImages {
    /// The leaf with this copy is gone.
    pub(in crate::tree) fn retire(&mut self, copy: Option<FileCopy>) {
        if let Some(copy) = copy {
            // No eviction would come by them any more.
            copy.image.forget_bytes();
            self.removed.push(copy);
        }
    }

    /// Likewise the page that is stored there.
    pub(in crate::tree) fn retire_page(&mut self, page: Option<Arc<Extent>>) {
        self.retire(page.map(|extent| FileCopy::stored(Image::new(extent), None)));
    }

    /// A load has put leaves with these images into the tree.
    pub(in crate::tree) fn load(&mut self, images: Vec<Arc<Image>>) {
        self.loaded.extend(images);
    }

    /// A checkpoint begins, which does not name what was removed.
    pub(in crate::tree) fn checkpoint_begins(&mut self) {
        self.removing.append(&mut self.removed);
    }

    /// What the running checkpoint is the first to name.
    pub(in crate::tree) fn publish_loaded(&mut self) {
        for image in self.loaded.drain(..) {
            image.extent.publish();
            image.known_blobs().iter().for_each(|blob| blob.publish());
            // As it was loaded, nobody has them in memory; it may be more than memory holds.
            image.forget_blobs();
        }
    }

    /// What the running checkpoint supersedes.
    pub(in crate::tree) fn superseded(&self) -> &[FileCopy] {
        &self.removing
    }

    /// The running checkpoint is durable.
    pub(in crate::tree) fn checkpoint_durable(&mut self) {
        self.removing.clear();
    }

    /// All that no image of later checkpoints names.
    pub(in crate::tree) fn gone(&self) -> impl Iterator<Item = &FileCopy> {
        self.removed.iter().chain(&self.removing)
    }
}
