//! Filling a file with the extents of another one, each where it was there: what an import does. Nobody else has the
//! file meanwhile, and no image names anything in it; its books are made when it is opened with the map that is written
//! at the end.

use super::bundles::BundleMap;
use super::check::{Merged, NamedExtent};
use super::free_map::{self, FreeMap};
use super::space::HEADER_BYTES;
use super::{checksum, BlockAddress, Space, SECTOR_BYTES};
use crate::{Compression, Error, Result};

impl Space {
    /// Writes the stored bytes of the extent at `at`.
    pub fn place(&self, at: &BlockAddress, stored: &[u8]) -> Result<()> {
        self.write_at(at.offset, stored)
    }

    /// Writes the map of what is free beside the extents that `next` gives by ascending offset, behind the last of
    /// them. An error if two overlap, or one lies where none can be. Does not sync.
    pub fn write_map_around(
        &self,
        next: &mut dyn FnMut() -> Result<Option<NamedExtent>>,
    ) -> Result<BlockAddress> {
        let (mut end, mut ranges, mut bundles) = (HEADER_BYTES, Vec::new(), BundleMap::default());
        let mut extents = Merged::new(next);
        while let Some(extent) = extents.next()? {
            let NamedExtent { offset, bytes, .. } = extent;
            extent.count_bundle(&mut bundles);
            if offset < end {
                return Err(Error::corrupt(self.path(), offset, "an extent overlaps another"));
            }
            if offset > end {
                ranges.push((end, offset - end));
            }
            end = offset + bytes;
        }
        let mut map = FreeMap { generation: 0, end, ranges, bundles, areas: Vec::new() };
        // The end's number has the same size whatever it is.
        let bytes =
            (free_map::encode(self.id(), self.unit(), &map).len() as u64).next_multiple_of(SECTOR_BYTES);
        map.end = end + bytes;
        let mut content = free_map::encode(self.id(), self.unit(), &map);
        content.resize(bytes as usize, 0);
        self.write_at(end, &content)?;
        let stored_bytes = u32::try_from(bytes).map_err(|_| Error::OutOfMemory("free-space map"))?;
        Ok(BlockAddress {
            offset: end,
            stored_bytes,
            raw_bytes: stored_bytes,
            checksum: checksum(&content),
            compression: Compression::None,
            in_parts: false,
            is_tight: false,
            dictionary: 0,
        })
    }
}
