//! Table files: blocks of bytes in extents, their compression and checksums, free space, superblocks, the spill file.
//!
//! The room knows `file` and nothing above it: not what a block means, not what the log says. It promises that
//! * a block is returned exactly as it was given, or the error is [`crate::Error::Corrupt`] and names file and offset;
//! * nothing that the last durable checkpoint refers to is overwritten ([`Space`] has the protocol);
//! * no bytes, however damaged, make it panic or allocate more than the file holds or the address says.
//!
//! | file | what |
//! |---|---|
//! | `address.rs` | [`BlockAddress`], [`ChildAddress`] and [`TreeRoot`]: how a parent names a block |
//! | `compression.rs` | bytes to stored bytes and back |
//! | `parts.rs` | the same of a block in parts, each by itself |
//! | `recompression.rs` | the same for large values that are deflate streams |
//! | `packer.rs` | which of these a block or a value takes |
//! | `dictionary/` | frequent words of a tree as codes |
//! | `allocator.rs` | free ranges of one file, in memory |
//! | `areas.rs` | those of blocks, and those of small extents apart |
//! | `free_map.rs` | free ranges as a block on disk |
//! | `holes.rs` | which free ranges the file system has back |
//! | `bundles.rs` | which values of extents that hold several are still named |
//! | `lifecycle.rs` | which extent may be reused when: the generation protocol, without I/O |
//! | `space.rs`, `extent.rs` | one table file and its extents |
//! | `twin.rs` | the second copy of the system space |
//! | `open_files.rs` | which table files have a descriptor |
//! | `arrival.rs` | filling a file with the extents of another one |
//! | `check.rs` | whether each byte is in use or free |
//! | `superblock.rs` | the root of a durable image |
//! | `spill.rs` | temporary data of one process |
//! | `hostile.rs` | what `rooms` needs of this room |
//!
//! The bytes are described in `docs/format.md`.

mod address;
mod allocator;
mod areas;
mod arrival;
mod bundles;
mod check;
mod compression;
mod dictionary;
mod extent;
mod free_map;
mod holes;
#[cfg(feature = "rooms")]
pub(crate) mod hostile;
mod lifecycle;
mod open_files;
mod packer;
mod parts;
mod recompression;
mod space;
mod spill;
mod superblock;
#[cfg(test)]
mod tests;
mod twin;

pub use address::{BlockAddress, ChildAddress, TreeRoot};
pub use bundles::{BundleUse, ThinnedBundle};
pub use check::{FreeSpace, NamedExtent};
pub use compression::is_dense;
pub use dictionary::{Dictionary, Training};
pub use extent::{Extent, Lifetime, PreparedBlock};
pub use open_files::OpenFiles;
pub use packer::Packer;
#[cfg(any(test, feature = "rooms"))]
pub(crate) use parts::in_parts;
pub use parts::{StoredParts, MOST_PARTS};
pub use space::Space;
pub use spill::{SpillExtent, SpillFile};
pub use superblock::{spare_path, Features, Newest, Release, Superblock};

use crate::Compression;

/// Extents start at multiples of this many bytes in any file.
pub const SMALLEST_UNIT: u64 = 32;

/// What the extents of a file start at multiples of, and occupy multiples of. A file has one for good.
///
/// That neighbours share a sector is nothing new, since the kernel writes whole pages: a write that is torn leaves the
/// bytes beside it as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Of files made before version 3 of their header.
    Sector = SECTOR_BYTES as isize,
    /// Of all others.
    Fine = SMALLEST_UNIT as isize,
}

const SECTOR_BYTES: u64 = 512;
/// In a file of the fine unit: extents of no more than this occupy whole sectors.
const COARSE_BYTES: u64 = 2 << 10;

impl Unit {
    /// In bytes.
    pub fn bytes(self) -> u64 {
        self as u64
    }

    /// Bytes that an extent of `bytes` stored bytes occupies; an empty block still takes something.
    ///
    /// A large value of 10 KB that cannot be compressed would lose 2.5 % to whole sectors, and loses 0.16 %. Blocks,
    /// which are compressed, take whole sectors: they are written again and again in slightly different sizes, and
    /// find the places of others.
    pub fn occupied(self, bytes: u64, compression: Compression) -> u64 {
        let unit = match compression {
            Compression::None | Compression::Recompress if bytes > COARSE_BYTES => self.bytes(),
            _ => SECTOR_BYTES,
        };
        bytes.max(1).next_multiple_of(unit)
    }

    /// The same of a small extent among others of its kind, which are written side by side and die one by one
    /// ([`areas`]): sectors would be half empty.
    pub fn occupied_tightly(self, bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(self.bytes())
    }
}

/// The checksum of everything in this room.
pub fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// `N` bytes at `at`, or `None` past the end: decoding never panics.
fn fixed<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    fixed(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    fixed(bytes, at).map(u64::from_le_bytes)
}
