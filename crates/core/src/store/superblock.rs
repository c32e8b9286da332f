//! The root of a durable image: `teak.super`, two slots that checkpoints write in turn, each of them twice.
//!
//! ```text
//!   0                4096             8192             12288            16384
//!   | slot 0, first  | slot 1, first  | slot 0, second | slot 1, second |
//!
//!   0            8         12      16          32           40          48            56          64
//!   | "TEAKSUPR" | version | flags | engine id | checkpoint | timestamp | replay_from | next_tree | next_txn |
//!  72           76           139          166                     4088
//!   | next_space | directory | system map | zeros ...             | XXH3-64 of bytes 0..4088 |
//! flags: 1 clean, 2 the directory is there, 4 the system map is there
//! ```
//! Slot `checkpoint % 2`. Magic, version and checksum keep their places in every version of the format. Files before
//! version 4 had the first copies only.
//!
//! Invariants: the slot of the newest durable superblock is never written, but with the same superblock again; the
//! second copy is written when the first is synced, so that a crash leaves at most one copy of a slot in pieces. Hence
//! a slot without an intact copy is damage, of a superblock that may have been the newest, and not the trace of a
//! crash. The file appears under its name with its first superblock in it: a file without a valid one is damage and not
//! a new engine.

use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

use super::{checksum, fixed, u32_at, u64_at, BlockAddress, TreeRoot};
use crate::file::{File, FileSystem, OpenMode};
use crate::log::Lsn;
use crate::options::LogLevel;
use crate::{Error, Result, Timestamp, TreeId, TxnId};

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
    /// The engine was closed after this checkpoint, and has not been opened since: there is nothing to replay. Before
    /// version 4: it was closed, and may have been opened.
    pub clean: bool,
}

impl Superblock {
    /// The version that this build writes.
    pub const VERSION: u32 = 4;
    /// The oldest that it reads: version 2 has no blocks by columns, 3 no second copies, no checkpoints in the log, and
    /// `clean` says nothing of what came after it.
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
        let mut flags = if self.clean { CLEAN } else { 0 };
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
            clean: flags & CLEAN != 0,
        })
    }
}

/// Where a copy (0 or 1) of a slot (0 or 1) is.
fn offset_of(slot: u64, copy: u64) -> u64 {
    (slot + 2 * copy) * BLOCK_BYTES as u64
}

/// What is in the place of one copy of a slot.
#[derive(Debug)]
enum Found {
    Intact(Superblock),
    /// Nothing was ever written there.
    Nothing,
    /// Something else than a superblock, or nothing can be read: why.
    Damaged(String),
}

impl Found {
    fn intact(&self) -> Option<&Superblock> {
        match self {
            Found::Intact(superblock) => Some(superblock),
            _ => None,
        }
    }
}

fn read_copy(file: &dyn File, slot: u64, copy: u64) -> Result<Found> {
    let mut bytes = [0; BLOCK_BYTES];
    match file.read_at(offset_of(slot, copy), &mut bytes) {
        Ok(0) => Ok(Found::Nothing),
        Ok(_) => decode_copy(&bytes, slot, file.path()),
        // A sector that cannot be read is one copy that cannot.
        Err(error @ Error::Io { .. }) => Ok(Found::Damaged(error.to_string())),
        Err(error) => Err(error),
    }
}

/// An error only if another build wrote it.
fn decode_copy(bytes: &[u8; BLOCK_BYTES], slot: u64, path: &Path) -> Result<Found> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(Found::Nothing);
    }
    let intact = u64_at(bytes, CHECKSUM_AT) == Some(checksum(&bytes[..CHECKSUM_AT]));
    if bytes[..8] != MAGIC[..] || !intact {
        return Ok(Found::Damaged("its checksum does not match".to_string()));
    }
    match u32_at(bytes, 8).unwrap_or(0) {
        Superblock::OLDEST_VERSION..=Superblock::VERSION => {
            Ok(Superblock::decode(bytes).filter(|found| found.checkpoint % 2 == slot).map_or_else(
                || Found::Damaged("it is malformed, or in the wrong place".to_string()),
                Found::Intact,
            ))
        }
        found => Err(Error::UnknownVersion { path: path.into(), found, supported: Superblock::VERSION }),
    }
}

/// Whatever the bytes are, as one copy in either slot, as it is and with the right checksum.
#[cfg(feature = "rooms")]
pub(super) fn decode_any(bytes: &[u8]) {
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

/// The newest superblock of a file, and what is wrong with the file.
#[derive(Debug)]
pub struct Newest {
    /// The newest that is intact.
    pub superblock: Superblock,
    /// What the operator should know.
    pub remarks: Vec<(LogLevel, String)>,
    /// There may have been a newer one: why. Who starts from an older image than the newest finds parts of it
    /// overwritten, and trees empty that were built since.
    pub doubt: Option<Error>,
}

impl Newest {
    fn read(file: &dyn File) -> Result<Newest> {
        let mut slots = Vec::with_capacity(2);
        for slot in 0..2 {
            slots.push([read_copy(file, slot, 0)?, read_copy(file, slot, 1)?]);
        }
        Newest::among(&slots, file.path())
    }

    fn among(slots: &[[Found; 2]], path: &Path) -> Result<Newest> {
        let intact = || slots.iter().flatten().filter_map(Found::intact);
        let Some(newest) = intact().max_by_key(|found| found.checkpoint) else {
            return Err(Error::corrupt(path, 0, "no superblock is intact"));
        };
        if intact().any(|found| found.engine_id != newest.engine_id) {
            return Err(Error::corrupt(path, 16, "the superblocks belong to different engines"));
        }
        // The first copy is written first: if they differ, it is the later one.
        let own = &slots[(newest.checkpoint % 2) as usize];
        let superblock =
            *own[0].intact().filter(|first| first.checkpoint == newest.checkpoint).unwrap_or(newest);
        let mut found = Newest { superblock, remarks: Vec::new(), doubt: None };
        found.judge_own(own, path);
        found.judge_other(&slots[1 - (newest.checkpoint % 2) as usize], path);
        Ok(found)
    }

    /// A copy of the newest may be damaged, or missing in a file that has second copies.
    fn judge_own(&mut self, own: &[Found; 2], path: &Path) {
        let Superblock { checkpoint, version, .. } = self.superblock;
        for (number, copy) in ["first", "second"].into_iter().zip(own) {
            let detail = match copy {
                Found::Damaged(detail) => detail,
                Found::Nothing if version >= FIRST_WITH_COPIES => "it is not there",
                _ => continue,
            };
            let path = path.display();
            let text = format!("{path}: the {number} copy of superblock {checkpoint} is damaged, the other is used: {detail}");
            self.remarks.push((LogLevel::Warning, text));
        }
    }

    /// In the other slot was the superblock before, and perhaps a newer one.
    fn judge_other(&mut self, other: &[Found; 2], path: &Path) {
        let Superblock { checkpoint, .. } = self.superblock;
        let slot = (checkpoint + 1) % 2;
        let detail = match other {
            [Found::Intact(_), Found::Intact(_) | Found::Nothing] | [Found::Nothing, Found::Intact(_)] => {
                return
            }
            [Found::Nothing, Found::Nothing] if checkpoint == 1 => return,
            [Found::Damaged(detail), Found::Intact(_) | Found::Nothing] => {
                let text = format!(
                    "{}: the first copy of superblock {} in slot {slot} is damaged, or a crash interrupted its writing ({detail}); \
                     superblock {checkpoint} is used",
                    path.display(),
                    checkpoint + 1
                );
                return self.remarks.push((LogLevel::Warning, text));
            }
            [Found::Intact(_), Found::Damaged(detail)] => {
                let text = format!("{}: the second copy of slot {slot} is damaged: {detail}", path.display());
                return self.remarks.push((LogLevel::Warning, text));
            }
            [Found::Nothing, Found::Damaged(detail)] | [Found::Damaged(detail), Found::Damaged(_)] => {
                &**detail
            }
            [Found::Nothing, Found::Nothing] => "both copies are gone",
        };
        let detail = format!(
            "slot {slot} is damaged in both copies ({detail}): checkpoint {} may have been there, and what it replaced of \
             checkpoint {checkpoint} may be overwritten",
            checkpoint + 1
        );
        self.doubt = Some(Error::corrupt(path, offset_of(slot, 0), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{flip, TestDir};
    use super::*;
    use crate::file::{Fault, RealFileSystem, SimulatedFileSystem};
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
            clean: checkpoint % 3 > 1,
        }
    }

    fn file_with(dir: &TestDir, checkpoints: u64) -> PathBuf {
        let path = dir.0.join("teak.super");
        for checkpoint in 1..=checkpoints {
            superblock(checkpoint).write_next(&FS, &path).unwrap();
        }
        path
    }

    #[test]
    fn the_newest_is_read() {
        let dir = TestDir::new();
        let path = dir.0.join("teak.super");
        assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), None);
        for checkpoint in 1..10 {
            superblock(checkpoint).write_next(&FS, &path).unwrap();
            assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(checkpoint)));
        }
        assert_ne!(Superblock::new_engine_id(), Superblock::new_engine_id());
    }

    #[test]
    fn only_the_successor_of_the_newest_is_written() {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        for checkpoint in [2, 3, 4, 6] {
            assert!(superblock(checkpoint).write_next(&FS, &path).is_err());
        }
        assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(4)));
    }

    /// What is found, and how much is said about it.
    fn found(path: &Path) -> (u64, usize, bool) {
        let newest = Superblock::read(&FS, path).unwrap().unwrap();
        (newest.superblock.checkpoint, newest.remarks.len(), newest.doubt.is_some())
    }

    fn put(path: &Path, slot: u64, copy: u64, bytes: &[u8]) {
        let mut file = std::fs::read(path).unwrap();
        file[offset_of(slot, copy) as usize..][..bytes.len()].copy_from_slice(bytes);
        std::fs::write(path, file).unwrap();
    }

    #[test]
    fn each_flipped_byte_is_told_and_the_newest_found() {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        assert_eq!(found(&path), (4, 0, false));
        for at in (0..FILE_BYTES).step_by(7) {
            flip(&path, at);
            assert_eq!(found(&path), (4, 1, false), "byte {at}");
            flip(&path, at);
        }
    }

    #[test]
    fn a_start_from_the_one_before_is_refused_when_the_newest_is_gone() {
        for ruin in [[7; BLOCK_BYTES], [0; BLOCK_BYTES]] {
            let dir = TestDir::new();
            let path = file_with(&dir, 4);
            put(&path, 0, 0, &ruin);
            put(&path, 0, 1, &ruin);
            assert_eq!(found(&path), (3, 0, true));
            let error = Superblock::read_newest(&FS, &path).unwrap_err();
            assert!(
                matches!(error, Error::Corrupt { offset: 0, .. })
                    && error.to_string().contains("both copies")
            );
            flip(&path, offset_of(1, 0));
            flip(&path, offset_of(1, 1));
            assert!(matches!(Superblock::read(&FS, &path), Err(Error::Corrupt { .. })));
            assert!(superblock(5).write_next(&FS, &path).is_err());
        }
    }

    #[test]
    fn a_copy_that_was_damaged_is_written_again() {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        for copy in 0..2 {
            flip(&path, offset_of(0, copy) + 40);
            Superblock::read_newest(&FS, &path).unwrap().unwrap().make_durable(&FS, &path).unwrap();
            assert_eq!(found(&path), (4, 0, false));
        }
    }

    #[test]
    fn an_unreadable_sector_costs_one_copy() {
        let fs = SimulatedFileSystem::new(1);
        fs.create_dir(Path::new("/d")).unwrap();
        let path = Path::new("/d/teak.super");
        (1..=4).for_each(|checkpoint| superblock(checkpoint).write_next(&fs, path).unwrap());
        fs.break_sectors(path, 512..1024);
        let newest = Superblock::read(&fs, path).unwrap().unwrap();
        assert!(newest.superblock.checkpoint == 4 && newest.doubt.is_none());
        assert!(newest.remarks[0].1.contains("I/O error"), "{:?}", newest.remarks);
    }

    #[test]
    fn any_torn_write_leaves_the_one_before_or_the_new_one() {
        let dir = TestDir::new();
        let path = file_with(&dir, 5);
        let (old, new) = (superblock(4).encode(), superblock(6).encode());
        for sectors in 0u32..256 {
            let mut torn = old;
            for sector in (0..8).filter(|sector| sectors & (1 << sector) != 0) {
                torn[sector * 512..][..512].copy_from_slice(&new[sector * 512..][..512]);
            }
            // The first and the last sector are those that differ.
            let (complete, untouched) = (sectors & 0x81 == 0x81, sectors & 0x81 == 0);
            let remarks = usize::from(!complete && !untouched);
            put(&path, 0, 0, &torn);
            put(&path, 0, 1, &old);
            assert_eq!(found(&path), (if complete { 6 } else { 5 }, remarks, false));
            put(&path, 0, 0, &new);
            put(&path, 0, 1, &torn);
            assert_eq!(found(&path), (6, remarks, false));
        }
    }

    #[test]
    fn a_power_cut_at_any_moment_leaves_no_doubt() {
        for cut in 0..40 {
            let fs = SimulatedFileSystem::new(cut);
            fs.create_dir(Path::new("/d")).unwrap();
            fs.sync_dir(Path::new("/")).unwrap();
            let path = Path::new("/d/teak.super");
            superblock(1).write_next(&fs, path).unwrap();
            fs.fail_after(cut, Fault::PowerCut);
            let written =
                (2..=9).take_while(|&checkpoint| superblock(checkpoint).write_next(&fs, path).is_ok());
            let last = 1 + written.count() as u64;
            let fs = fs.crash();
            let newest = Superblock::read(&fs, path).unwrap().unwrap();
            assert!(newest.doubt.is_none(), "{newest:?}");
            assert!((last..=last + 1).contains(&newest.superblock.checkpoint), "{newest:?} after {last}");
        }
    }

    #[test]
    fn files_without_second_copies_are_read_and_get_them() {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        let old = |checkpoint| Superblock { version: 3, ..superblock(checkpoint) };
        std::fs::write(&path, [old(4).encode(), old(3).encode()].concat()).unwrap();
        assert_eq!(found(&path), (4, 0, false));
        // Such a file cannot tell a damaged newest superblock from one that a crash tore.
        flip(&path, 40);
        assert_eq!(found(&path), (3, 1, false));
        flip(&path, 40);
        let newest = Superblock::read_newest(&FS, &path).unwrap().unwrap();
        newest.make_durable(&FS, &path).unwrap();
        superblock(5).write_next(&FS, &path).unwrap();
        superblock(6).write_next(&FS, &path).unwrap();
        flip(&path, 40);
        assert_eq!(found(&path), (6, 1, false));
    }

    #[test]
    fn an_unknown_version_is_refused_even_beside_a_known_one() {
        let dir = TestDir::new();
        let path = file_with(&dir, 3);
        let old = Superblock { version: 2, ..superblock(4) };
        old.write_next(&FS, &path).unwrap();
        assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(old));
        Superblock { version: 9, ..superblock(5) }.write_next(&FS, &path).unwrap();
        let error = Superblock::read_newest(&FS, &path).unwrap_err();
        assert!(matches!(error, Error::UnknownVersion { found: 9, supported: Superblock::VERSION, .. }));
        assert!(superblock(6).write_next(&FS, &path).is_err());
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
            let mut slot = [0; BLOCK_BYTES];
            slot[..160].copy_from_slice(&bytes);
            Superblock::decode(&slot);
            let _ = decode_copy(&slot, 0, Path::new("x"));
        }
    }
}
