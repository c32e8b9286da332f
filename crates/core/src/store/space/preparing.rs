//! Blocks on their way to the file: compressed, with a checksum and an extent.

use super::Space;
use crate::counts::Count;
use crate::store::extent::{Extent, Lifetime, PreparedBlock};
use crate::store::packer::{Packed, Packer};
use crate::store::{checksum, BlockAddress};
use crate::{Error, Result};
use std::sync::Arc;

impl Space {
    /// Compresses `raw`, computes its checksum and allocates an extent for it. No I/O but the first time, when the map
    /// is read.
    #[cfg(test)]
    pub fn prepare(self: &Arc<Self>, raw: &[u8], packer: impl Into<Packer>) -> Result<PreparedBlock> {
        self.prepare_for(Lifetime::Kept, raw, packer)
    }

    /// [`Space::prepare`] for an extent that does not stay for good.
    pub fn prepare_for(
        self: &Arc<Self>,
        lifetime: Lifetime,
        raw: &[u8],
        packer: impl Into<Packer>,
    ) -> Result<PreparedBlock> {
        self.prepare_in_parts(lifetime, raw, &[], packer)
    }

    /// The same of a block in parts: `cuts` says where each but the first begins, if there is more than one.
    pub fn prepare_in_parts(
        self: &Arc<Self>,
        lifetime: Lifetime,
        raw: &[u8],
        cuts: &[usize],
        packer: impl Into<Packer>,
    ) -> Result<PreparedBlock> {
        self.place_packed(lifetime, raw.len(), packer.into().pack(raw, cuts)?)
    }

    /// [`Space::prepare_for`] of many small blocks, whose extents lie side by side where they can, and tight, for
    /// [`Space::write_together`].
    pub fn prepare_together<'a>(
        self: &Arc<Self>,
        lifetime: Lifetime,
        blocks: impl Iterator<Item = &'a [u8]>,
        packer: impl Into<Packer>,
    ) -> Result<Vec<PreparedBlock>> {
        let packer = packer.into();
        let packed: Vec<(usize, Packed)> =
            blocks.map(|raw| Ok((raw.len(), packer.pack_small(raw)?))).collect::<Result<_>>()?;
        let occupied = |packed: &Packed| self.unit.occupied_tightly(packed.stored.len() as u64);
        let sizes: Vec<u64> = packed.iter().map(|(_, packed)| occupied(packed)).collect();
        let extents = self.loaded_books()?.allocate_together(&sizes, lifetime);
        let extents = extents.ok_or_else(|| self.unknown_room())?;
        let placed = |((raw_bytes, packed), (offset, born)): ((usize, Packed), _)| {
            self.placed(packed, raw_bytes as u32, (offset, true), born)
        };
        Ok(packed.into_iter().zip(extents).map(placed).collect())
    }

    /// The same for a large value, in a private extent.
    pub fn prepare_value(self: &Arc<Self>, value: &[u8], packer: &Packer) -> Result<PreparedBlock> {
        self.place_packed(Lifetime::Private, value.len(), packer.pack_value(value, &self.doubts)?)
    }

    fn place_packed(
        self: &Arc<Self>,
        lifetime: Lifetime,
        raw_bytes: usize,
        packed: Packed,
    ) -> Result<PreparedBlock> {
        let raw_bytes = u32::try_from(raw_bytes).map_err(|_| Error::TooLarge {
            what: "block",
            bytes: raw_bytes as u64,
            maximum: u64::from(u32::MAX),
        })?;
        let occupied = self.unit.occupied(packed.stored.len() as u64, packed.compression);
        let room = self.loaded_books()?.allocate(occupied, lifetime);
        let (offset, born) = room.ok_or_else(|| self.unknown_room())?;
        Ok(self.placed(packed, raw_bytes, (offset, false), born))
    }

    fn unknown_room(&self) -> Error {
        Error::corrupt(self.path(), 0, "free space is not known")
    }

    /// What is to be written to the extent at an offset, tight or not, which it has got.
    fn placed(
        self: &Arc<Self>,
        packed: Packed,
        raw_bytes: u32,
        (offset, is_tight): (u64, bool),
        born: u64,
    ) -> PreparedBlock {
        let Packed { stored, compression, in_parts, dictionary } = packed;
        Count::RawBytesPacked.add(raw_bytes.into());
        Count::StoredBytesPacked.add(stored.len() as u64);
        let (checksum, stored_bytes) = (checksum(&stored), stored.len() as u32);
        let address = BlockAddress {
            offset,
            stored_bytes,
            raw_bytes,
            checksum,
            compression,
            in_parts,
            is_tight,
            dictionary,
        };
        PreparedBlock { extent: Arc::new(Extent::new(self.clone(), address, born)), stored }
    }
}
