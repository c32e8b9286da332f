//! The root of a durable image: `teak.super`, two slots that checkpoints write in turn, each of them twice.
//!
//! ```text
//!   0                4096             8192             12288            16384
//!   | slot 0, first  | slot 1, first  | slot 0, second | slot 1, second |
//!
//!   0            8         12      16          32           40          48            56          64
//!   | "TEAKSUPR" | version | flags | engine id | checkpoint | timestamp | replay_from | next_tree | next_txn |
//!  72           76           139          166      172         178         4088
//!   | next_space | directory | system map | writer | read from | zeros ... | XXH3-64 of bytes 0..4088 |
//! flags: 1 clean, 2 the directory is there, 4 the system map is there; features.rs has the others
//! ```
//! Slot `checkpoint % 2`. Magic, version and checksum keep their places in every version of the format, and from 6 on
//! so do the flags and the two versions of Teak. Files before version 4 had the first copies only.
//!
//! Invariants: the slot of the newest durable superblock is never written, but with the same superblock again; the
//! second copy is written when the first is synced, so that a crash leaves at most one copy of a slot in pieces. Hence
//! a slot without an intact copy is damage, of a superblock that may have been the newest, and not the trace of a
//! crash. The file appears under its name with its first superblock in it: a file without a valid one is damage and not
//! a new engine.
//!
//! All four copies go with the file. So each superblock that is durable is written once more, to `teak.copy` beside it:
//! the same slots, without second copies, and not synced but by a clean shutdown, as no start relies on it. Who saves
//! what is readable begins there if nothing else is left.

use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{checksum, fixed, u32_at, u64_at, BlockAddress, TreeRoot};
use crate::file::{File, FileSystem, OpenMode};
use crate::log::Lsn;
use crate::{Error, Result, Timestamp, TreeId, TxnId};

mod features;
mod newest;

pub use features::{Features, Release};
pub use newest::Newest;

const MAGIC: &[u8; 8] = b"TEAKSUPR";
const BLOCK_BYTES: usize = 4096;
/// Two slots, two copies each.
const FILE_BYTES: u64 = 4 * BLOCK_BYTES as u64;
/// The first version whose superblocks are written twice.
const FIRST_WITH_COPIES: u32 = 4;
const CHECKSUM_AT: usize = BLOCK_BYTES - 8;
const DIRECTORY_AT: usize = 76;
const SYSTEM_MAP_AT: usize = DIRECTORY_AT + TreeRoot::ENCODED_BYTES;
const END_AT: usize = SYSTEM_MAP_AT + BlockAddress::ENCODED_BYTES;
/// Versions of Teak: which wrote it, and the oldest that knows all that the files have. From version 6 on.
const WRITER_AT: usize = END_AT;
const READ_FROM_AT: usize = WRITER_AT + Release::ENCODED_BYTES;
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
    /// What else is in the files. Stays from one superblock to the next.
    pub features: Features,
    /// The oldest Teak that knows all of it.
    pub read_from: Release,
    /// The engine was closed after this checkpoint, and has not been opened since: there is nothing to replay. Before
    /// version 4: it was closed, and may have been opened.
    pub clean: bool,
}

impl Superblock {
    /// The version that this build writes.
    pub const VERSION: u32 = 6;
    /// The oldest that it reads: version 2 has no blocks by columns, 3 no second copies, no checkpoints in the log, and
    /// `clean` says nothing of what came after it; 4 no files in units of 32 bytes; 5 no features and no versions of
    /// Teak.
    const OLDEST_VERSION: u32 = 2;

    /// Whether the log after it has nothing: see [`Superblock::clean`].
    pub fn closed_cleanly(&self) -> bool {
        self.clean && self.version >= FIRST_WITH_COPIES
    }

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

    /// The newest superblock in the file at `path`, and what is wrong with the others; `None` if there is no file.
    pub fn read(fs: &dyn FileSystem, path: &Path) -> Result<Option<Newest>> {
        if !fs.exists(path)? {
            return Ok(None);
        }
        Newest::read(&*fs.open(path, OpenMode::ReadOnly)?).map(Some)
    }

    /// The newest superblock in the spare file of the one at `path`, if anything there is intact. It may be older than
    /// the newest that was durable.
    pub fn read_spare(fs: &dyn FileSystem, path: &Path) -> Option<Superblock> {
        let file = fs.open(&spare_path(path), OpenMode::ReadOnly).ok()?;
        (0..2).filter_map(|slot| newest::read_intact(&*file, slot)).max_by_key(|found| found.checkpoint)
    }

    /// The newest superblock in the file at `path`, if it is certain that it is; `None` if there is no file.
    pub fn read_newest(fs: &dyn FileSystem, path: &Path) -> Result<Option<Superblock>> {
        match Superblock::read(fs, path)? {
            Some(Newest { doubt: Some(doubt), .. }) => Err(doubt),
            newest => Ok(newest.map(|newest| newest.superblock)),
        }
    }

    /// Makes the superblock that [`Superblock::read`] found durable, in both copies, with its file's name; `self` may
    /// differ from it in `clean`. Returns the file, for those that follow.
    ///
    /// To be called before anything relies on it: a process that died between writing and syncing it, or whose sync
    /// failed, leaves a superblock that everybody can read but the disk does not have, and the kernel may never write
    /// it. If this is interrupted, one copy is intact, or what it was the successor of.
    pub fn make_durable(&self, fs: &dyn FileSystem, path: &Path) -> Result<Arc<dyn File>> {
        let file = fs.open(path, OpenMode::Existing)?;
        // A file of an earlier version has no room for second copies.
        if file.len()? < FILE_BYTES {
            file.set_len(FILE_BYTES)?;
        }
        self.write_copies(&*file)?;
        path.parent().map_or(Ok(()), |dir| fs.sync_dir(dir))?;
        Ok(file)
    }

    /// Makes the file, with this as the first superblock, durably.
    pub fn create(&self, fs: &dyn FileSystem, path: &Path) -> Result<()> {
        let new = path.with_extension("super.new");
        let file = fs.open(&new, OpenMode::Create)?;
        file.set_len(0)?;
        file.set_len(FILE_BYTES)?;
        self.write_copies(&*file)?;
        fs.rename(&new, path)?;
        path.parent().map_or(Ok(()), |dir| fs.sync_dir(dir))
    }

    /// Writes and syncs this superblock, which follows the newest in `file`. Opens nothing: whoever gets here has
    /// written all else.
    ///
    /// After an error from the write or the sync the superblock may or may not be durable: the caller must stop
    /// writing, and both images must stay intact.
    pub fn write(&self, file: &dyn File) -> Result<()> {
        let newest = Newest::read(file)?.superblock.checkpoint;
        if newest.checked_add(1) != Some(self.checkpoint) {
            let detail = format!("checkpoint {} cannot follow {newest}", self.checkpoint);
            return Err(Error::corrupt(file.path(), offset_of(self.checkpoint % 2, 0), detail));
        }
        self.write_copies(file)
    }

    /// [`Superblock::write`] to a file that is open only for that, or [`Superblock::create`].
    #[cfg(test)]
    pub(super) fn write_next(&self, fs: &dyn FileSystem, path: &Path) -> Result<()> {
        match fs.exists(path)? {
            true => self.write(&*fs.open(path, OpenMode::Existing)?),
            false => self.create(fs, path),
        }
    }

    /// Puts this superblock, which is durable, into the spare file.
    pub fn write_spare(&self, spare: &dyn File) -> Result<()> {
        spare.write_at(offset_of(self.checkpoint % 2, 0), &self.encode())
    }

    /// One after the other: a crash tears one of them at most.
    fn write_copies(&self, file: &dyn File) -> Result<()> {
        let bytes = self.encode();
        for copy in 0..2 {
            file.write_at(offset_of(self.checkpoint % 2, copy), &bytes)?;
            file.sync()?;
        }
        Ok(())
    }

    fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut flags = self.features.flags() | if self.clean { CLEAN } else { 0 };
        let mut out = [0; BLOCK_BYTES];
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
        for (at, release) in [(WRITER_AT, Release::OWN), (READ_FROM_AT, self.read_from)] {
            out[at..at + Release::ENCODED_BYTES].copy_from_slice(&release.encode());
        }
        let sum = checksum(&out[..CHECKSUM_AT]);
        out[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; BLOCK_BYTES]) -> Option<Superblock> {
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
            features: Features::among(flags),
            read_from: Release::decode(&bytes[READ_FROM_AT..])?,
            clean: flags & CLEAN != 0,
        })
    }
}

/// Where the spare file of the superblocks at `path` is.
pub fn spare_path(path: &Path) -> PathBuf {
    path.with_extension("copy")
}

/// Where a copy (0 or 1) of a slot (0 or 1) is.
fn offset_of(slot: u64, copy: u64) -> u64 {
    (slot + 2 * copy) * BLOCK_BYTES as u64
}

/// Whatever the bytes are, as one copy in either slot, as it is and with the right checksum.
#[cfg(feature = "rooms")]
pub(super) fn decode_any(bytes: &[u8]) {
    use newest::{decode_copy, Found};
    let mut block = [0; BLOCK_BYTES];
    let length = bytes.len().min(BLOCK_BYTES);
    block[..length].copy_from_slice(&bytes[..length]);
    for _ in 0..2 {
        for slot in 0..2 {
            if let Ok(Found::Intact(superblock)) = decode_copy(&block, slot, Path::new("hostile")) {
                assert_eq!(Superblock::decode(&superblock.encode()), Some(superblock));
            }
        }
        let sum = checksum(&block[..CHECKSUM_AT]);
        block[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// What a superblock is on disk; the rest of its block is zeros and a checksum.
#[cfg(feature = "rooms")]
pub(super) fn encode(superblock: &Superblock) -> Vec<u8> {
    superblock.encode()[..END_AT].to_vec()
}

#[cfg(test)]
mod tests;
