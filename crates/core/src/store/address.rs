//! How a parent names a block: position, sizes and the checksum of the stored bytes.
//!
//! The checksum lives in the parent and not beside the data (as in ZFS), so that a block which was written to the
//! wrong place, or not at all, is detected as surely as a flipped bit.
//!
//! ```text
//! BlockAddress, 27 bytes, little-endian
//!  0        8          12        16         24            25           27
//!  | offset | stored   | raw     | checksum | compression | dictionary |
//! ChildAddress, 27, 28 or 54 bytes
//!  0              27               54
//!  | BlockAddress | nothing, or a 1: a leaf that has no large values, or
//!  |              | BlockAddress of the patch of such a leaf
//! TreeRoot, 63 bytes
//!  0              27       31        39       47             55          63
//!  | BlockAddress | height | entries | leaves | stored bytes | raw bytes |
//! ```

use super::{checksum, fixed, u32_at, u64_at, Unit, SMALLEST_UNIT};
use crate::file::File;
use crate::{Compression, Result};

/// Largest offset at which a block may end; keeps all sums of offsets and sizes far from overflow.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 62;

/// Names a block within its space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockAddress {
    /// Byte position in the file; a multiple of the file's unit.
    pub offset: u64,
    /// Bytes in the file.
    pub stored_bytes: u32,
    /// Bytes after decompression.
    pub raw_bytes: u32,
    /// XXH3-64 of the stored bytes.
    pub checksum: u64,
    /// How the stored bytes are compressed.
    pub compression: Compression,
    /// Whether they are parts, each compressed by itself.
    pub in_parts: bool,
    /// Whether the extent ends with a unit of the file, and not with a sector.
    pub is_tight: bool,
    /// The dictionary of the space that they were encoded with before that; 0: none.
    pub dictionary: u16,
}

/// Set in the byte of the compression if the block is in parts.
const IN_PARTS: u8 = 0x80;
/// Set there if its extent is tight.
const TIGHT: u8 = 0x40;

impl BlockAddress {
    /// Size of the encoding.
    pub const ENCODED_BYTES: usize = 27;

    /// The fixed encoding.
    pub fn encode(&self) -> [u8; Self::ENCODED_BYTES] {
        let mut out = [0; Self::ENCODED_BYTES];
        out[0..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..12].copy_from_slice(&self.stored_bytes.to_le_bytes());
        out[12..16].copy_from_slice(&self.raw_bytes.to_le_bytes());
        out[16..24].copy_from_slice(&self.checksum.to_le_bytes());
        out[24] = self.compression as u8
            | if self.in_parts { IN_PARTS } else { 0 }
            | if self.is_tight { TIGHT } else { 0 };
        out[25..27].copy_from_slice(&self.dictionary.to_le_bytes());
        out
    }

    /// Reads an address from the start of `bytes`; `None` if they are too few or cannot be an address.
    pub fn decode(bytes: &[u8]) -> Option<BlockAddress> {
        let address = BlockAddress {
            offset: u64_at(bytes, 0)?,
            stored_bytes: u32_at(bytes, 8)?,
            raw_bytes: u32_at(bytes, 12)?,
            checksum: u64_at(bytes, 16)?,
            compression: match bytes.get(24)? & !(IN_PARTS | TIGHT) {
                0 => Compression::None,
                1 => Compression::Lz4,
                2 => Compression::Zstd,
                3 => Compression::Recompress,
                _ => return None,
            },
            in_parts: bytes.get(24)? & IN_PARTS != 0,
            is_tight: bytes.get(24)? & TIGHT != 0,
            dictionary: fixed(bytes, 25).map(u16::from_le_bytes)?,
        };
        let plausible = match address.compression {
            Compression::None | Compression::Recompress if address.in_parts => false,
            Compression::None => address.stored_bytes == address.raw_bytes && address.dictionary == 0,
            _ => address.stored_bytes < address.raw_bytes,
        };
        let placed = address.offset.is_multiple_of(SMALLEST_UNIT) && address.offset < MAX_FILE_BYTES;
        (plausible && placed).then_some(address)
    }

    /// The stored bytes, if they are in `file` as they should be.
    pub fn stored_in(&self, file: &dyn File) -> Result<Option<Vec<u8>>> {
        if self.offset + u64::from(self.stored_bytes) > file.len()? {
            return Ok(None);
        }
        let mut bytes = vec![0; self.stored_bytes as usize];
        file.read_exact_at(self.offset, &mut bytes)?;
        Ok(Some(bytes).filter(|bytes| checksum(bytes) == self.checksum))
    }

    /// Bytes that the block takes in its file, which is more than `stored_bytes` by less than 512.
    pub fn occupied_bytes(&self, unit: Unit) -> u64 {
        let bytes = u64::from(self.stored_bytes);
        match self.is_tight {
            true => unit.occupied_tightly(bytes),
            false => unit.occupied(bytes, self.compression),
        }
    }
}

/// What an inner page says of one of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildAddress {
    /// The page or leaf.
    pub block: BlockAddress,
    /// What has changed in a leaf since its block was written, if anything has.
    pub patch: Option<BlockAddress>,
    /// It is a leaf that is known to have no large values; one with a patch has none.
    pub has_no_large: bool,
}

/// Behind the address of a leaf that is known to have no large values.
const NO_LARGE: u8 = 1;

impl From<BlockAddress> for ChildAddress {
    fn from(block: BlockAddress) -> ChildAddress {
        ChildAddress { block, patch: None, has_no_large: false }
    }
}

impl ChildAddress {
    /// One address, or two, or one and a byte.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(
            self.has_no_large || self.patch.is_none(),
            "a patch of a leaf that may have large values"
        );
        let mut out = self.block.encode().to_vec();
        match &self.patch {
            Some(patch) => out.extend_from_slice(&patch.encode()),
            None if self.has_no_large => out.push(NO_LARGE),
            None => {}
        }
        out
    }

    /// Reads what [`ChildAddress::encode`] wrote; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<ChildAddress> {
        let block = BlockAddress::decode(bytes)?;
        let (patch, has_no_large) = match &bytes[BlockAddress::ENCODED_BYTES..] {
            [] => (None, false),
            [NO_LARGE] => (None, true),
            rest if rest.len() == BlockAddress::ENCODED_BYTES => (Some(BlockAddress::decode(rest)?), true),
            _ => return None,
        };
        Some(ChildAddress { block, patch, has_no_large })
    }
}

/// Names the root block of a tree as of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRoot {
    /// The root block.
    pub address: BlockAddress,
    /// Levels above the leaves; 0 if the root is a leaf.
    pub height: u32,
    /// Keys in the tree.
    pub entries: u64,
    /// Leaves in the tree.
    pub leaves: u64,
    /// Bytes that its leaves take on disk.
    pub stored_bytes: u64,
    /// Bytes of its leaves before they were encoded and compressed.
    pub raw_bytes: u64,
}

impl TreeRoot {
    /// Size of the encoding.
    pub const ENCODED_BYTES: usize = BlockAddress::ENCODED_BYTES + 36;

    /// The fixed encoding.
    pub fn encode(&self) -> [u8; Self::ENCODED_BYTES] {
        let mut out = [0; Self::ENCODED_BYTES];
        out[0..27].copy_from_slice(&self.address.encode());
        out[27..31].copy_from_slice(&self.height.to_le_bytes());
        out[31..39].copy_from_slice(&self.entries.to_le_bytes());
        out[39..47].copy_from_slice(&self.leaves.to_le_bytes());
        out[47..55].copy_from_slice(&self.stored_bytes.to_le_bytes());
        out[55..63].copy_from_slice(&self.raw_bytes.to_le_bytes());
        out
    }

    /// More levels than a tree of 2^63 leaves has: descents need no bound of their own.
    pub const MOST_LEVELS: u32 = 64;

    /// Reads a root from the start of `bytes`; `None` if they are too few or cannot be a root.
    pub fn decode(bytes: &[u8]) -> Option<TreeRoot> {
        let root = TreeRoot {
            address: BlockAddress::decode(bytes)?,
            height: u32_at(bytes, 27)?,
            entries: u64_at(bytes, 31)?,
            leaves: u64_at(bytes, 39)?,
            stored_bytes: u64_at(bytes, 47)?,
            raw_bytes: u64_at(bytes, 55)?,
        };
        (root.height <= TreeRoot::MOST_LEVELS).then_some(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_address_and_root_survive_a_round_trip(
            unit in 0u64..1 << 40, stored in 0u32..u32::MAX, more in 1u32.., checksum: u64, kind in 0u8..4, number: u16, parts: bool, is_tight: bool,
            height in 0..=TreeRoot::MOST_LEVELS, entries: u64, leaves: u64,
        ) {
            let compression = [Compression::None, Compression::Lz4, Compression::Zstd, Compression::Recompress]
                [usize::from(kind)];
            let dictionary = if kind == 0 { 0 } else { number };
            let raw_bytes = if kind == 0 { stored } else { stored.saturating_add(more) };
            let in_parts = parts && matches!(kind, 1 | 2);
            let address = BlockAddress { offset: unit * SMALLEST_UNIT, stored_bytes: stored, raw_bytes, checksum, compression, in_parts, is_tight, dictionary };
            prop_assert_eq!(BlockAddress::decode(&address.encode()), Some(address));
            let child = ChildAddress::from(address);
            let without = ChildAddress { has_no_large: true, ..child };
            for child in [child, without, ChildAddress { patch: Some(address), ..without }] {
                prop_assert_eq!(ChildAddress::decode(&child.encode()), Some(child));
            }
            let root = TreeRoot { address, height, entries, leaves, stored_bytes: entries / 2, raw_bytes: entries };
            prop_assert_eq!(TreeRoot::decode(&root.encode()), Some(root));
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            BlockAddress::decode(&bytes);
            ChildAddress::decode(&bytes);
            TreeRoot::decode(&bytes);
        }
    }
}
