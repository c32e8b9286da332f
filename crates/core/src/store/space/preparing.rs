//! Blocks on their way to the file: compressed, with a checksum and an extent.

use super::Space;
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
        let Packed { stored, compression, in_parts, dictionary } = packed;
        let raw_bytes = u32::try_from(raw_bytes).map_err(|_| Error::TooLarge {
            what: "block",
            bytes: raw_bytes as u64,
            maximum: u64::from(u32::MAX),
        })?;
        let checksum = checksum(&stored);
        let (offset, born) = self
            .loaded_books()?
            .allocate(self.unit.occupied(stored.len() as u64, compression), lifetime)
            .ok_or_else(|| Error::corrupt(self.path(), 0, "free space is not known"))?;
        let stored_bytes = stored.len() as u32;
        let address =
            BlockAddress { offset, stored_bytes, raw_bytes, checksum, compression, in_parts, dictionary };
        Ok(PreparedBlock { extent: Arc::new(Extent::new(self.clone(), address, born)), stored })
    }
}
