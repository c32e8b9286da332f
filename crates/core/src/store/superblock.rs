//! The root of a durable image: `teak.super`, two slots of 4 KiB that checkpoints write in turn.
//!
//! ```text
//!   0            8         12      16          32           40          48            56          64
//!   | "TEAKSUPR" | version | flags | engine id | checkpoint | timestamp | replay_from | next_tree | next_txn |
//!  72           76           129          154                     4088
//!   | next_space | directory | system map | zeros ...             | XXH3-64 of bytes 0..4088 |
//! flags: 1 clean, 2 the directory is there, 4 the system map is there
//! ```
//! Slot `checkpoint % 2`. Magic, version and checksum keep their places in every version of the format.
//!
//! Invariants: the slot of the newest durable superblock is never written; the file appears under its name with its first
//! superblock in it, so a file without a valid one is damage and not a new engine.

use std::hash::{BuildHasher, Hasher};
use std::path::Path;

use super::{checksum, fixed, u32_at, u64_at, BlockAddress, TreeRoot};
use crate::file::{FileSystem, OpenMode};
use crate::log::Lsn;
use crate::{Error, Result, Timestamp, TreeId, TxnId};

const MAGIC: &[u8; 8] = b"TEAKSUPR";
const SLOT_BYTES: usize = 4096;
const CHECKSUM_AT: usize = SLOT_BYTES - 8;
const DIRECTORY_AT: usize = 76;
const SYSTEM_MAP_AT: usize = DIRECTORY_AT + TreeRoot::ENCODED_BYTES;
const END_AT: usize = SYSTEM_MAP_AT + BlockAddress::ENCODED_BYTES;
const CLEAN: u32 = 1;
const HAS_DIRECTORY: u32 = 2;
const HAS_SYSTEM_MAP: u32 = 4;

/// What a checkpoint leaves for the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// Version of the on-disk formats, see [`Superblock::VERSION`].
    pub version: u32,
    /// Random, made when the engine directory was created.
    pub engine_id: [u8; 16],
    /// Number of the checkpoint; the first is 1 or any other, each durable one is followed by its successor.
    pub checkpoint: u64,
    /// The image holds the commits up to this one.
    pub timestamp: Timestamp,
    /// Where replay starts.
    pub replay_from: Lsn,
    /// No tree in the image or the log before `replay_from` has this or a higher id.
    pub next_tree: TreeId,
    /// Likewise for transactions.
    pub next_txn: TxnId,
    /// Likewise for spaces.
    pub next_space: u32,
    /// Root of the directory tree in space 0.
    pub directory: Option<TreeRoot>,
    /// Free-space map of space 0.
    pub system_map: Option<BlockAddress>,
    /// The engine was closed after this checkpoint: there is nothing to replay.
    pub clean: bool,
}

impl Superblock {
    /// The version that this build writes.
    pub const VERSION: u32 = 3;
    /// The oldest that it reads: version 2 has no blocks by columns, and nothing else that is different.
    const OLDEST_VERSION: u32 = 2;

    /// An id for a new engine: not secret, only different from other engines'.
    pub fn new_engine_id() -> [u8; 16] {
        let mut id = [0; 16];
        for half in id.chunks_mut(8) {
            // Each state is keyed from the system's random numbers.
            let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            half.copy_from_slice(&hasher.finish().to_le_bytes());
        }
        id
    }

    /// The newest superblock in the file at `path`; `None` if there is no file.
    pub fn read_newest(fs: &dyn FileSystem, path: &Path) -> Result<Option<Superblock>> {
        if !fs.exists(path)? {
            return Ok(None);
        }
        let file = fs.open(path, OpenMode::ReadOnly)?;
        let mut slots = Vec::new();
        for number in 0..2 {
            let mut bytes = [0; SLOT_BYTES];
            let found = file.read_at(number * SLOT_BYTES as u64, &mut bytes)?;
            if found == SLOT_BYTES {
                slots.extend(decode_slot(&bytes, number, path)?);
            }
        }
        if slots.windows(2).any(|pair| pair[0].engine_id != pair[1].engine_id) {
            return Err(Error::corrupt(path, 16, "the two superblocks belong to different engines"));
        }
        match slots.into_iter().max_by_key(|slot| slot.checkpoint) {
            Some(newest) => Ok(Some(newest)),
            None => Err(Error::corrupt(path, 0, "neither superblock is intact")),
        }
    }

    /// Makes the superblock that [`Superblock::read_newest`] found durable, with its file's name. To be called before anything relies
    /// on it: a process that died between writing and syncing it, or whose sync failed, leaves a superblock that everybody can read but
    /// the disk does not have, and the kernel may never write it. If this is interrupted, what it was the successor of is intact.
    pub fn make_durable(&self, fs: &dyn FileSystem, path: &Path) -> Result<()> {
        let file = fs.open(path, OpenMode::Existing)?;
        file.write_at((self.checkpoint % 2) * SLOT_BYTES as u64, &self.encode())?;
        file.sync()?;
        path.parent().map_or(Ok(()), |dir| fs.sync_dir(dir))
    }

    /// Writes and syncs this superblock, creating the file if there is none.
    ///
    /// After an error from the write or the sync the superblock may or may not be durable: the caller must stop writing, and
    /// both images must stay intact.
    pub fn write(&self, fs: &dyn FileSystem, path: &Path) -> Result<()> {
        let at = (self.checkpoint % 2) * SLOT_BYTES as u64;
        match Superblock::read_newest(fs, path)? {
            Some(newest) if newest.checkpoint.checked_add(1) != Some(self.checkpoint) => {
                let detail = format!("checkpoint {} cannot follow {}", self.checkpoint, newest.checkpoint);
                Err(Error::corrupt(path, at, detail))
            }
            Some(_) => {
                let file = fs.open(path, OpenMode::Existing)?;
                file.write_at(at, &self.encode())?;
                file.sync()
            }
            None => {
                let new = path.with_extension("super.new");
                let file = fs.open(&new, OpenMode::Create)?;
                file.set_len(0)?;
                file.set_len(2 * SLOT_BYTES as u64)?;
                file.write_at(at, &self.encode())?;
                file.sync()?;
                fs.rename(&new, path)?;
                path.parent().map_or(Ok(()), |dir| fs.sync_dir(dir))
            }
        }
    }

    fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut flags = if self.clean { CLEAN } else { 0 };
        let mut out = [0; SLOT_BYTES];
        out[0..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&self.version.to_le_bytes());
        out[16..32].copy_from_slice(&self.engine_id);
        out[32..40].copy_from_slice(&self.checkpoint.to_le_bytes());
        out[40..48].copy_from_slice(&self.timestamp.to_le_bytes());
        out[48..56].copy_from_slice(&self.replay_from.to_le_bytes());
        out[56..64].copy_from_slice(&self.next_tree.to_le_bytes());
        out[64..72].copy_from_slice(&self.next_txn.to_le_bytes());
        out[72..76].copy_from_slice(&self.next_space.to_le_bytes());
        if let Some(directory) = &self.directory {
            flags |= HAS_DIRECTORY;
            out[DIRECTORY_AT..SYSTEM_MAP_AT].copy_from_slice(&directory.encode());
        }
        if let Some(map) = &self.system_map {
            flags |= HAS_SYSTEM_MAP;
            out[SYSTEM_MAP_AT..END_AT].copy_from_slice(&map.encode());
        }
        out[12..16].copy_from_slice(&flags.to_le_bytes());
        let sum = checksum(&out[..CHECKSUM_AT]);
        out[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<Superblock> {
        let flags = u32_at(bytes, 12)?;
        let directory = TreeRoot::decode(&bytes[DIRECTORY_AT..SYSTEM_MAP_AT]);
        let system_map = BlockAddress::decode(&bytes[SYSTEM_MAP_AT..END_AT]);
        Some(Superblock {
            version: u32_at(bytes, 8)?,
            engine_id: fixed(bytes, 16)?,
            checkpoint: u64_at(bytes, 32)?,
            timestamp: u64_at(bytes, 40)?,
            replay_from: u64_at(bytes, 48)?,
            next_tree: u64_at(bytes, 56)?,
            next_txn: u64_at(bytes, 64)?,
            next_space: u32_at(bytes, 72)?,
            directory: if flags & HAS_DIRECTORY != 0 { Some(directory?) } else { None },
            system_map: if flags & HAS_SYSTEM_MAP != 0 { Some(system_map?) } else { None },
            clean: flags & CLEAN != 0,
        })
    }
}

/// The superblock in one slot; `None` if it is not intact there, an error if another build wrote it.
fn decode_slot(bytes: &[u8; SLOT_BYTES], number: u64, path: &Path) -> Result<Option<Superblock>> {
    let intact = u64_at(bytes, CHECKSUM_AT) == Some(checksum(&bytes[..CHECKSUM_AT]));
    if bytes[..8] != MAGIC[..] || !intact {
        return Ok(None);
    }
    match u32_at(bytes, 8).unwrap_or(0) {
        Superblock::OLDEST_VERSION..=Superblock::VERSION => {
            Ok(Superblock::decode(bytes).filter(|slot| slot.checkpoint % 2 == number))
        }
        found => Err(Error::UnknownVersion { path: path.into(), found, supported: Superblock::VERSION }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{flip, TestDir};
    use super::*;
    use crate::file::RealFileSystem;
    use crate::Compression;
    use proptest::prelude::*;
    use std::path::PathBuf;

    const FS: RealFileSystem = RealFileSystem;

    fn superblock(checkpoint: u64) -> Superblock {
        let address = BlockAddress {
            offset: 512 * checkpoint,
            stored_bytes: 100,
            raw_bytes: 300,
            checksum: 5,
            compression: Compression::Zstd,
            dictionary: 7,
        };
        Superblock {
            version: Superblock::VERSION,
            engine_id: [3; 16],
            checkpoint,
            timestamp: 1000 + checkpoint,
            replay_from: 77,
            next_tree: 8,
            next_txn: 9,
            next_space: 10,
            directory: (checkpoint > 1).then_some(TreeRoot {
                address,
                height: 2,
                entries: 6,
                leaves: 3,
                stored_bytes: 4,
                raw_bytes: 9,
            }),
            system_map: (checkpoint > 2).then_some(address),
            clean: checkpoint.is_multiple_of(3),
        }
    }

    fn file_with(dir: &TestDir, checkpoints: u64) -> PathBuf {
        let path = dir.0.join("teak.super");
        for checkpoint in 1..=checkpoints {
            superblock(checkpoint).write(&FS, &path).unwrap();
        }
        path
    }

    #[test]
    fn the_newest_is_read() {
        let dir = TestDir::new();
        let path = dir.0.join("teak.super");
        assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), None);
        for checkpoint in 1..10 {
            superblock(checkpoint).write(&FS, &path).unwrap();
            assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(checkpoint)));
        }
        assert_ne!(Superblock::new_engine_id(), Superblock::new_engine_id());
    }

    #[test]
    fn only_the_successor_of_the_newest_is_written() {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        for checkpoint in [2, 3, 4, 6] {
            assert!(superblock(checkpoint).write(&FS, &path).is_err());
        }
        assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(4)));
    }

    #[test]
    fn each_flipped_byte_of_the_newest_leads_to_the_one_before() {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        for at in 0..SLOT_BYTES as u64 {
            flip(&path, at);
            assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(3)), "byte {at}");
            flip(&path, at);
        }
        flip(&path, 100);
        flip(&path, 5000);
        assert!(matches!(Superblock::read_newest(&FS, &path), Err(Error::Corrupt { .. })));
        assert!(superblock(5).write(&FS, &path).is_err());
    }

    #[test]
    fn any_torn_write_leaves_the_one_before_or_the_new_one() {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        let (old, new) = (superblock(4).encode(), superblock(6).encode());
        for sectors in 0u32..256 {
            let mut slot = old;
            for sector in (0..8).filter(|sector| sectors & (1 << sector) != 0) {
                slot[sector * 512..][..512].copy_from_slice(&new[sector * 512..][..512]);
            }
            let mut file = std::fs::read(&path).unwrap();
            file[..SLOT_BYTES].copy_from_slice(&slot);
            file[SLOT_BYTES..].copy_from_slice(&superblock(5).encode());
            std::fs::write(&path, file).unwrap();
            // The first and the last sector are those that differ.
            let expected = if sectors & 0x81 == 0x81 { 6 } else { 5 };
            assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(expected)));
        }
    }

    #[test]
    fn an_unknown_version_is_refused_even_beside_a_known_one() {
        let dir = TestDir::new();
        let path = file_with(&dir, 3);
        let old = Superblock { version: 2, ..superblock(4) };
        old.write(&FS, &path).unwrap();
        assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(old));
        Superblock { version: 9, ..superblock(5) }.write(&FS, &path).unwrap();
        let error = Superblock::read_newest(&FS, &path).unwrap_err();
        assert!(matches!(error, Error::UnknownVersion { found: 9, supported: Superblock::VERSION, .. }));
        assert!(superblock(6).write(&FS, &path).is_err());
    }

    #[test]
    fn an_empty_file_is_damage_and_not_a_new_engine() {
        let dir = TestDir::new();
        let path = dir.0.join("teak.super");
        std::fs::write(&path, []).unwrap();
        assert!(matches!(Superblock::read_newest(&FS, &path), Err(Error::Corrupt { .. })));
    }

    proptest! {
        #[test]
        fn decoding_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 160)) {
            let mut slot = [0; SLOT_BYTES];
            slot[..160].copy_from_slice(&bytes);
            Superblock::decode(&slot);
            let _ = decode_slot(&slot, 0, Path::new("x"));
        }
    }
}
