//! Where the base of a leaf is.

use super::image::Image;
use super::packed::PackedBase;
use crate::store::SpillExtent;
use crate::tree::block::blob::Blob;
use crate::tree::block::Block;
use std::sync::Arc;

/// A base in the spill file, with its blobs, which stay where they are.
pub(crate) struct SpilledBase {
    pub extent: SpillExtent,
    /// Of the block in memory.
    pub bytes: usize,
    pub blobs: Box<[Arc<Blob>]>,
}

#[derive(Clone)]
pub(crate) enum Base {
    Loaded(Arc<Block>),
    Stored(Arc<Image>),
    Packed(Arc<PackedBase>),
    Spilled(Arc<SpilledBase>),
}

impl Base {
    /// Whether it is this block, in memory.
    pub(crate) fn is_block(&self, block: &Arc<Block>) -> bool {
        matches!(self, Base::Loaded(loaded) if Arc::ptr_eq(loaded, block))
    }

    /// Whether it is this one, in memory as it is stored.
    pub(crate) fn is_packed(&self, base: &Arc<PackedBase>) -> bool {
        matches!(self, Base::Packed(packed) if Arc::ptr_eq(packed, base))
    }

    /// Bytes, without those of large values.
    pub(super) fn memory(&self) -> usize {
        match self {
            Base::Loaded(block) => block.memory(),
            Base::Packed(packed) => packed.memory(),
            Base::Stored(_) | Base::Spilled(_) => 0,
        }
    }

    pub(super) fn same_place(&self, other: &Base) -> bool {
        match (self, other) {
            (Base::Stored(a), Base::Stored(b)) => Arc::ptr_eq(a, b),
            (Base::Packed(a), Base::Packed(b)) => Arc::ptr_eq(a, b),
            (Base::Spilled(a), Base::Spilled(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
