//! Table files: blocks of bytes in extents, their compression and checksums, free space, superblocks, the spill file.
//!
//! The room knows `file` and nothing above it: not what a block means, not what the log says. It promises that
//! * a block is returned exactly as it was given, or the error is [`crate::Error::Corrupt`] and names file and offset;
//! * nothing that the last durable checkpoint refers to is overwritten ([`Space`] has the protocol);
//! * no bytes, however damaged, make it panic or allocate more than the file holds or the address says.
//!
//! | file | what |
//! |---|---|
//! | `address.rs` | [`BlockAddress`] and [`TreeRoot`]: how a parent names a block |
//! | `compression.rs` | bytes to stored bytes and back |
//! | `dictionary/` | frequent words of a tree as codes |
//! | `allocator.rs` | free ranges of one file, in memory |
//! | `free_map.rs` | free ranges as a block on disk |
//! | `holes.rs` | which free ranges the file system has back |
//! | `lifecycle.rs` | which extent may be reused when: the generation protocol, without I/O |
//! | `space.rs`, `extent.rs` | one table file and its extents |
//! | `twin.rs` | the second copy of the system space |
//! | `open_files.rs` | which table files have a descriptor |
//! | `arrival.rs` | filling a file with the extents of another one |
//! | `check.rs` | whether each byte is in use or free |
//! | `superblock.rs` | the root of a durable image |
//! | `spill.rs` | temporary data of one process |
//!
//! The bytes are described in `docs/format.md`.

mod address;
mod allocator;
mod arrival;
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
mod space;
mod spill;
mod superblock;
#[cfg(test)]
mod tests;
mod twin;

pub use address::{BlockAddress, TreeRoot};
pub use check::FreeSpace;
pub use dictionary::{Dictionary, Training};
pub use extent::{Extent, Lifetime, PreparedBlock};
pub use open_files::OpenFiles;
pub use space::{Packer, Space};
pub use spill::{SpillExtent, SpillFile};
pub use superblock::{Newest, Superblock};

/// Extents start at multiples of this many bytes and occupy multiples of it.
pub const ALLOCATION_UNIT: u64 = 512;

/// Bytes that an extent of `bytes` stored bytes occupies; an empty block still takes one unit.
fn occupied(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(ALLOCATION_UNIT)
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
