//! A leaf's base that is in memory as it is stored: see [`PackedBlock`].
//!
//! ```text
//! Stored ── a look-up of one key, the cache nearly full ──> Packed ── scan, fold, many look-ups ──> Loaded
//!    ^────────────────────── eviction ─────────────────────────┴─────────────────────────────────────┘
//! ```
//!
//! What a patch has of the leaf is laid over it: then it is the base with the patch folded in, as a loaded one would
//! be.
//!
//! For all but look-ups of single keys a packed base is one that is not in memory, of which the file need not be read.
//! It equals its image, so nothing is lost with it, and of the leaf's copies nothing changes when it comes or goes.

use super::image::Image;
use super::node::Node;
use super::patch::{Patch, PatchBlock, Place};
use super::shared::TreeShared;
use super::{Base, Leaf, LeafView};
use crate::counts::Count;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::tree::block::packed::PackedBlock;
use crate::tree::block::Block;
use crate::{Error, Result};
use std::sync::Arc;

/// After so many look-ups since the clock came by twice, the whole block is worth its place in memory: each saves what
/// a fifth of a miss costs, and the place is that of one leaf and a bit, which is missed about once in that time.
const HOT_USES: u32 = 8;

/// A packed base.
pub(crate) struct PackedBase {
    /// Where it was read from.
    pub image: Arc<Image>,
    block: PackedBlock,
    patched: Option<Patched>,
    uses: AtomicU32,
}

/// What a patch makes of a packed base.
struct Patched {
    patch: Arc<Patch>,
    changes: PatchBlock,
    keys: Arc<Block>,
    /// Of the value of each key.
    places: Box<[Place]>,
}

impl PackedBase {
    /// Its keys; entries have the numbers that they have in the whole block.
    pub(crate) fn keys(&self) -> &Arc<Block> {
        self.patched.as_ref().map_or_else(|| self.block.keys(), |patched| &patched.keys)
    }

    /// The patch that is folded in.
    pub(crate) fn patch(&self) -> Option<&Arc<Patch>> {
        self.patched.as_ref().map(|patched| &patched.patch)
    }

    /// Bytes of the whole block.
    pub(crate) fn raw_bytes(&self) -> usize {
        let patch = self.patch().map_or(0, |patch| patch.extent().address().raw_bytes as usize);
        self.image.extent.address().raw_bytes as usize + patch
    }

    pub(super) fn memory(&self) -> usize {
        let patched = |patched: &Patched| {
            patched.changes.memory() + patched.keys.memory() + size_of_val(&*patched.places)
        };
        std::mem::size_of::<PackedBase>() + self.block.memory() + self.patched.as_ref().map_or(0, patched)
    }

    /// With the changes of `patch` folded in.
    fn patched_by(self, patch: Arc<Patch>, changes: PatchBlock) -> PackedBase {
        let (keys, places) = changes.laid_over(self.block.keys());
        PackedBase { patched: Some(Patched { patch, changes, keys: Arc::new(keys), places }), ..self }
    }

    /// Replaces `out` by the value of entry `i`, which there is.
    pub(crate) fn value_into(&self, i: usize, out: &mut Vec<u8>) -> Result<()> {
        // Relaxed, here and below: a hint.
        self.uses.fetch_add(1, Ordering::Relaxed);
        let at = match self.patched.as_ref().map(|patched| (patched, patched.places[i].entry())) {
            None => i,
            Some((_, Ok(at))) => at,
            Some((patched, Err(at))) => {
                patched.changes.value_into(at, out);
                return Ok(());
            }
        };
        self.block.value_into(at, out)?.map_err(|detail| self.damaged(detail))
    }

    /// The whole block.
    pub(in crate::tree) fn whole(&self) -> Result<Block> {
        let block = self.block.whole()?.map_err(|detail| self.damaged(detail))?;
        Ok(match &self.patched {
            Some(patched) => patched.changes.applied_to(&block),
            None => block,
        })
    }

    fn damaged(&self, detail: String) -> Error {
        let extent = &self.image.extent;
        Error::corrupt(extent.path(), extent.address().offset, format!("base block: {detail}"))
    }

    /// Whether it was looked up so often that the whole block is the cheaper one.
    pub(crate) fn is_hot(&self) -> bool {
        self.uses.load(Ordering::Relaxed) >= HOT_USES // Relaxed: see above
    }

    /// The clock has come by.
    pub(super) fn cool(&self) {
        self.uses.store(self.uses.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
        // Relaxed: see above
    }
}

impl Image {
    /// The block as it is stored, read and checked; `None` if it cannot be had so.
    fn read_packed(self: &Arc<Image>, shared: &TreeShared) -> Result<Option<PackedBase>> {
        let (first, parts) = self.extent.read_parts()?;
        if self.extent.address().dictionary != 0 {
            shared.encoding.charge_dictionary();
        }
        let block = PackedBlock::parse(&first, parts).map_err(|detail| {
            Error::corrupt(shared.space.path(), self.extent.address().offset, format!("base block: {detail}"))
        })?;
        if block.is_some() {
            self.learn_none();
        }
        Ok(block.map(|block| PackedBase {
            image: self.clone(),
            block,
            patched: None,
            uses: AtomicU32::new(0),
        }))
    }
}

impl Leaf {
    /// What a look-up of one key needs of the base of `view`, read from disk if need be, and then kept for others if
    /// the latch is free. `None`: the whole base is what is wanted. Call without the latch.
    #[cold]
    pub(crate) fn packed(&self, node: &Arc<Node>, view: &LeafView) -> Result<Option<Arc<PackedBase>>> {
        let cache = &self.shared.context.cache;
        let image = match &view.base {
            Base::Packed(packed) => return Ok((!packed.is_hot()).then(|| packed.clone())),
            Base::Stored(image) if image.extent.address().in_parts => image,
            _ => return Ok(None),
        };
        if cache.is_roomy() || !self.is_nobodys_guess() {
            return Ok(None);
        }
        let room = cache.make_room();
        Count::PagesMissed.add(1);
        let Some(packed) = image.read_packed(&self.shared)? else { return Ok(None) };
        let packed = Arc::new(match self.read_patch(view) {
            Some((patch, changes)) => packed.patched_by(patch, changes),
            None => packed,
        });
        // See `load_base`.
        if let (Ok(()), Some(mut state)) = (room, self.try_latch()) {
            let number = packed.keys().number();
            self.keep_base(
                &mut state,
                node,
                &view.base,
                Base::Packed(packed.clone()),
                number,
                packed.patch(),
            );
        }
        Ok(Some(packed))
    }

    /// The clock has met the leaf, which was used.
    pub(super) fn cool(&self) {
        if let Base::Packed(packed) = &self.view().base {
            packed.cool();
        }
    }
}
