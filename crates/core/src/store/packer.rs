//! What is stored of a block, or of a large value: which compression, which dictionary, or nothing but the bytes.

use super::dictionary::Dictionary;
use super::{compression, parts, recompression, SECTOR_BYTES};
use crate::slabs::Buffer;
use crate::{Compression, Packing, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// How a block is to be stored.
#[derive(Clone)]
pub struct Packer {
    /// Compression and level.
    pub packing: Packing,
    /// One of the space, whose words are encoded first.
    pub dictionary: Option<Arc<Dictionary>>,
}

impl<P: Into<Packing>> From<P> for Packer {
    fn from(packing: P) -> Packer {
        Packer { packing: packing.into(), dictionary: None }
    }
}

/// Whether the values of a table are worth inflating: streams of another library than zlib cost ten times what proving
/// those of zlib does, for nothing.
#[derive(Default)]
pub(super) struct Doubts {
    /// Values in a row that were tried in vain, or passed over.
    in_vain: AtomicU32,
}

/// So many values are tried in vain before most are passed over; then one in so many is tried.
const TRIED_IN_VAIN: u32 = 8;
const TRIED_EVERY: u32 = 32;

impl Doubts {
    fn are_worth_a_try(&self) -> bool {
        // Relaxed, here and below: a count near enough.
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        if in_vain < TRIED_IN_VAIN {
            return true;
        }
        self.in_vain.store(in_vain.wrapping_add(1).max(TRIED_IN_VAIN), Ordering::Relaxed); // Relaxed: see above
        in_vain.is_multiple_of(TRIED_EVERY)
    }

    fn note(&self, succeeded: bool) {
        match succeeded {
            true => self.in_vain.store(0, Ordering::Relaxed), // Relaxed: see above
            false => _ = self.in_vain.fetch_add(1, Ordering::Relaxed), // Relaxed: see above
        }
    }
}

/// Stored bytes, and how they were made.
pub(super) struct Packed {
    pub stored: Buffer,
    pub compression: Compression,
    pub in_parts: bool,
    /// Number of the dictionary; 0: none.
    pub dictionary: u16,
}

impl Packed {
    fn as_it_is(raw: &[u8]) -> Packed {
        Packed { stored: raw.into(), compression: Compression::None, in_parts: false, dictionary: 0 }
    }
}

impl Packer {
    /// How many bytes `raw` would take, cut into parts at `cuts` if there are any, in the file apart from rounding.
    pub fn packed_bytes(&self, raw: &[u8], cuts: &[usize]) -> Result<usize> {
        Ok(self.compress(raw, cuts, raw.len())?.map_or(raw.len(), |packed| packed.len()))
    }

    /// A block, in parts if there are `cuts` where each but the first begins.
    pub(super) fn pack(&self, raw: &[u8], cuts: &[usize]) -> Result<Packed> {
        self.pack_within(raw, cuts, worth(raw))
    }

    /// A block for a tight extent.
    pub(super) fn pack_small(&self, raw: &[u8]) -> Result<Packed> {
        self.pack_within(raw, &[], raw.len() - raw.len() / 8)
    }

    /// As it is if it would take more than `limit` bytes.
    fn pack_within(&self, raw: &[u8], cuts: &[usize], limit: usize) -> Result<Packed> {
        Ok(match self.compress(raw, cuts, limit)? {
            Some(stored) => {
                let packed = self.packed(stored, self.packing.compression.of_blocks());
                Packed { in_parts: !cuts.is_empty(), ..packed }
            }
            None => Packed::as_it_is(raw),
        })
    }

    fn compress(&self, raw: &[u8], cuts: &[usize], limit: usize) -> Result<Option<Buffer>> {
        let dictionary = self.dictionary.as_deref();
        match cuts {
            [] => compression::compress(raw, self.packing, dictionary, limit),
            _ if self.packing.compression == Compression::None => Ok(None),
            _ => parts::compress(raw, cuts, self.packing, dictionary, limit),
        }
    }

    /// A large value: if it is a deflate stream what is in it, where that is wanted; as it is, if it looks as if
    /// nothing could be gained.
    pub(super) fn pack_value(&self, value: &[u8], doubts: &Doubts) -> Result<Packed> {
        if !compression::is_dense(value) {
            return self.pack(value, &[]);
        }
        // Where values are put together later they are inflated then: one alone gains little.
        let inflates = self.packing.compression == Compression::Recompress && !self.packing.similarity;
        if inflates && doubts.are_worth_a_try() {
            let dictionary = self.dictionary.as_deref();
            let packed = recompression::pack(value, self.packing.level, dictionary, worth(value))?;
            doubts.note(packed.is_some());
            if let Some(stored) = packed {
                return Ok(self.packed(stored.into(), Compression::Recompress));
            }
        }
        Ok(Packed::as_it_is(value))
    }

    fn packed(&self, stored: Buffer, compression: Compression) -> Packed {
        let dictionary = self.dictionary.as_ref().map_or(0, |dictionary| dictionary.number());
        Packed { stored, compression, in_parts: false, dictionary }
    }
}

/// More stored bytes than this are not worth the time of decompressing them: at least a sector of the file is saved.
fn worth(raw: &[u8]) -> usize {
    raw.len().max(1).next_multiple_of(SECTOR_BYTES as usize) - SECTOR_BYTES as usize
}
