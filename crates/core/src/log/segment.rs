//! The files of the log: names, headers, frames, and their life from creation over release to reuse.
//!
//! A segment `<start LSN, 20 digits>.log` holds the log from its start to the start of the next; an LSN lies in it at
//! file offset `HEADER_BYTES + lsn - start`. Each time a file becomes a segment it gets a random id, and the checksum
//! of every frame covers id and LSN, so that old bytes of a reused file, or frames that a recovery gave up, are never
//! taken for new.
//!
//! ```text
//! header  magic 8 | version u32 | 0 u32 | start LSN u64 | id u64 | xxh3 of the 32 bytes before u64 | zeros to 4096
//! frame   check u64 = xxh3(id, LSN, next 16 bytes) | length u32 | skip flag (1 bit), unsynced distance (31 bits) |
//!         xxh3 of the payload u64 | payload | zeros to a multiple of 8
//! ```
//!
//! Invariants, on which the reader relies:
//! 1. A file has a segment's name only after its header was synced, and no frame is written to it before the name was
//!    synced.
//! 2. A segment is started only when all before its start LSN is synced. Only the newest segment can have a torn tail.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sync::Mutex;
use twox_hash::XxHash3_64;

use super::Lsn;
use crate::file::{self, File, FileSystem, OpenMode};
use crate::{Error, Result};

/// Where the first frame of a segment begins; a page of its own, so that writing frames never rewrites the header.
pub(super) const HEADER_BYTES: u64 = 4096;
/// What the page cache keeps of a file in one piece, in bytes. Who writes a part of a page that is not cached waits for
/// it to be read.
const PAGE_BYTES: u64 = 4096;
/// So far ahead of its frames a new file is filled with zeros, in bytes.
const FILL_BYTES: u64 = 256 << 10;
/// Size of the header of a frame.
pub(super) const FRAME_BYTES: u64 = 24;
/// Version of segment and frame format.
const FORMAT_VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"TeakLog\n";
/// Released files kept for reuse; more are removed.
pub(super) const MAX_SPARES: usize = 4;
/// A new file before it becomes a segment.
const UNNAMED: &str = "next.tmp";

/// A failure, by what it means for the log.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing of what was tried is or will become durable; it may be tried again.
    Clean(Error),
    /// What is durable is unknown; only recovery can find out.
    Fatal(Error),
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// What precedes a record in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Bytes of the payload without padding.
    pub length: u32,
    /// The payload is void and its bytes are arbitrary.
    pub skip: bool,
    /// Everything before this LSN was synced when the frame was written.
    pub synced_to: Lsn,
    /// Checksum of the payload; 0 for a skip frame.
    pub payload_checksum: u64,
}

impl FrameHeader {
    /// Distances from here on are stored as this: nothing is known to be synced.
    const FAR: u64 = (1 << 31) - 1;

    pub(super) fn encode(&self, id: u64, lsn: Lsn) -> [u8; FRAME_BYTES as usize] {
        let distance = ((lsn - self.synced_to.min(lsn)).div_ceil(8)).min(FrameHeader::FAR) as u32;
        let mut out = [0; FRAME_BYTES as usize];
        out[8..12].copy_from_slice(&self.length.to_le_bytes());
        out[12..16].copy_from_slice(&(distance | u32::from(self.skip) << 31).to_le_bytes());
        out[16..24].copy_from_slice(&self.payload_checksum.to_le_bytes());
        let check = FrameHeader::check(id, lsn, &out[8..]);
        out[..8].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// The header in the first bytes of `bytes`, if it was written at `lsn` of the segment with this id.
    pub(super) fn decode(bytes: &[u8], id: u64, lsn: Lsn) -> Option<FrameHeader> {
        let check = number(bytes, 0);
        // Most of what is looked at behind the end are zeros.
        if check == 0 || check != FrameHeader::check(id, lsn, &bytes[8..FRAME_BYTES as usize]) {
            return None;
        }
        let sizes = number(bytes, 8);
        let distance = sizes >> 32 & FrameHeader::FAR;
        let synced_to = if distance == FrameHeader::FAR { 0 } else { lsn.saturating_sub(distance * 8) };
        let skip = sizes >> 63 == 1;
        Some(FrameHeader { length: sizes as u32, skip, synced_to, payload_checksum: number(bytes, 16) })
    }

    fn check(id: u64, lsn: Lsn, fields: &[u8]) -> u64 {
        let mut input = [0; 32];
        input[..8].copy_from_slice(&id.to_le_bytes());
        input[8..16].copy_from_slice(&lsn.to_le_bytes());
        input[16..].copy_from_slice(fields);
        checksum(&input)
    }

    /// Bytes that a frame with a payload of `length` bytes takes in the log.
    pub(super) fn frame_bytes(length: u32) -> u64 {
        FRAME_BYTES + u64::from(length).next_multiple_of(8)
    }
}

/// An open segment file.
pub(super) struct Segment {
    pub file: Arc<dyn File>,
    pub start: Lsn,
    pub id: u64,
    /// The file has its blocks up to here, an offset: syncing what is written before it changes no metadata of the file
    /// system, which would cost a commit of that system's journal each time.
    filled: u64,
    /// From the last frame up to here there are zeros, an offset: the rest of the page that it has begun.
    zeroed: u64,
}

impl Segment {
    /// Opens the segment that starts at `start` for reading and checks its header.
    pub(super) fn open(fs: &dyn FileSystem, dir: &Path, start: Lsn, mode: OpenMode) -> Result<Segment> {
        let file = fs.open(&segment_path(dir, start), mode)?;
        let mut header = [0; 40];
        file.read_exact_at(0, &mut header)?;
        if &header[..8] != MAGIC {
            return Err(Error::corrupt(file.path(), 0, "not a log segment"));
        }
        let version = number(&header, 8) as u32;
        if version != FORMAT_VERSION {
            let path = file.path().to_owned();
            return Err(Error::UnknownVersion { path, found: version, supported: FORMAT_VERSION });
        }
        if number(&header, 32) != checksum(&header[..32]) {
            return Err(Error::corrupt(file.path(), 0, "the segment header fails its checksum"));
        }
        if number(&header, 16) != start {
            return Err(Error::corrupt(file.path(), 16, "the segment has the name of another"));
        }
        let id = number(&header, 24);
        Ok(Segment { file, start, id, filled: 0, zeroed: 0 })
    }

    /// Writes frames at `lsn`, the last ones for now, and zeros behind them, once a page, so that the next ones find
    /// whole pages and, in a new file, blocks. `limit` is where the segment will end.
    pub(super) fn write_last(&mut self, lsn: Lsn, frames: &mut Vec<u8>, limit: Lsn) -> Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        let at = self.offset(lsn);
        let end = at + frames.len() as u64;
        let limit = self.offset(limit).max(end);
        if end <= self.zeroed {
            return self.file.write_at(at, frames);
        }
        if end <= self.filled {
            let page_end = end.next_multiple_of(PAGE_BYTES).min(self.filled).min(limit);
            frames.resize((page_end - at) as usize, 0);
            self.file.write_at(at, frames)?;
            self.zeroed = page_end;
            return Ok(());
        }
        self.file.write_at(at, frames)?;
        self.filled = end;
        // Large groups sync seldom for what they write.
        if (frames.len() as u64) < FILL_BYTES / 4 {
            self.fill(end.next_multiple_of(FILL_BYTES).min(limit));
        }
        Ok(())
    }

    /// Writes zeros up to `end`, which only spares later writes some work: the frames are there without them.
    fn fill(&mut self, end: u64) {
        if end > self.filled {
            let zeros = vec![0; (end - self.filled) as usize];
            // A disk that has no room for them is not asked again.
            self.filled = self.file.write_at(self.filled, &zeros).map_or(u64::MAX, |()| end);
        }
    }

    /// Cuts the file behind `lsn`.
    pub(super) fn cut(&mut self, lsn: Lsn) -> Result<()> {
        (self.filled, self.zeroed) = (self.offset(lsn), 0);
        self.file.set_len(self.filled)
    }

    /// Where `lsn` is in the file.
    pub(super) fn offset(&self, lsn: Lsn) -> u64 {
        HEADER_BYTES + (lsn - self.start)
    }
}

fn encode_header(start: Lsn, id: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES as usize);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&checksum(&out).to_le_bytes());
    out.resize(HEADER_BYTES as usize, 0);
    out
}

/// Unpredictable enough that no stale or crafted bytes carry it.
fn random_id() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    if let Ok(now) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        hasher.write_u128(now.as_nanos());
    }
    hasher.finish()
}

pub(super) fn segment_path(dir: &Path, start: Lsn) -> PathBuf {
    dir.join(format!("{start:020}.log"))
}

fn spare_path(dir: &Path, start: Lsn) -> PathBuf {
    dir.join(format!("spare-{start:020}.log"))
}

/// The start LSNs of the segments in `dir`, ascending.
pub(super) fn list_segments(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<Lsn>> {
    let number = |name: &String| {
        let digits = name.strip_suffix(".log")?;
        let plain = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    let mut starts: Vec<Lsn> = fs.list(dir)?.iter().filter_map(number).collect();
    starts.sort_unstable();
    Ok(starts)
}

/// The directory of the log: which segments live, which files wait for reuse.
pub(super) struct SegmentDirectory {
    pub fs: Arc<dyn FileSystem>,
    pub path: PathBuf,
    /// Open, since a segment that has its name must not wait for a descriptor to become durable.
    dir: Arc<dyn file::Directory>,
    pub segment_bytes: u64,
    names: Mutex<Names>,
}

struct Names {
    /// Start LSNs, ascending.
    live: Vec<Lsn>,
    /// Files that are no segments any more, durably.
    spares: Vec<PathBuf>,
}

impl SegmentDirectory {
    /// Lists the directory and clears away what an interrupted start or release left.
    pub(super) fn open(fs: Arc<dyn FileSystem>, path: &Path, segment_bytes: u64) -> Result<SegmentDirectory> {
        let dir = fs.open_dir(path)?;
        // What the list shows must not be undone by a later power loss.
        dir.sync()?;
        let live = list_segments(&*fs, path)?;
        let mut spares = Vec::new();
        for name in fs.list(path)? {
            let file = path.join(&name);
            if name.starts_with("spare-") && spares.len() < MAX_SPARES {
                spares.push(file);
            } else if name.starts_with("spare-") || name == UNNAMED {
                fs.remove(&file)?;
            }
        }
        let names = Mutex::new(Names { live, spares });
        Ok(SegmentDirectory { fs, path: path.to_owned(), dir, segment_bytes, names })
    }

    /// Lists the directory and leaves it as it is.
    pub(super) fn look_at(
        fs: Arc<dyn FileSystem>,
        path: &Path,
        segment_bytes: u64,
    ) -> Result<SegmentDirectory> {
        let live = list_segments(&*fs, path)?;
        let names = Mutex::new(Names { live, spares: Vec::new() });
        let dir = fs.open_dir(path)?;
        Ok(SegmentDirectory { fs, path: path.to_owned(), dir, segment_bytes, names })
    }

    /// Where the segment starts that has `lsn`, if it is there.
    pub(super) fn segment_of(&self, lsn: Lsn) -> Option<Lsn> {
        let names = self.names.lock();
        names.live[..names.live.partition_point(|&start| start <= lsn)].last().copied()
    }

    /// Makes a file the segment that starts at `start`, replacing one of that name. Everything before `start` must be
    /// synced. When it returns, header and name are durable.
    pub(super) fn start_segment(&self, start: Lsn) -> Result<Segment, Failure> {
        let spare = self.names.lock().spares.pop();
        let recycled = spare.is_some();
        let from = spare.unwrap_or_else(|| self.path.join(UNNAMED));
        let to = segment_path(&self.path, start);
        let id = random_id();
        let (file, filled) = match self.write_header(&from, recycled, start, id) {
            Ok(written) => written,
            Err(error @ Error::NoDescriptor { .. }) if recycled => {
                self.names.lock().spares.push(from);
                return Err(Failure::Clean(error));
            }
            Err(error) => {
                // It has no segment's name: whether this succeeds is of no consequence.
                let _ = self.fs.remove(&from);
                return Err(Failure::Clean(error));
            }
        };
        match self.fs.rename(&from, &to) {
            Err(error @ Error::DiskFull { .. }) => return Err(Failure::Clean(error)),
            Err(error) => return Err(Failure::Fatal(error)),
            Ok(()) => {}
        }
        self.dir.sync().map_err(Failure::Fatal)?;
        let mut names = self.names.lock();
        if names.live.last() != Some(&start) {
            names.live.push(start);
        }
        Ok(Segment { file: file.renamed(&to), start, id, filled, zeroed: 0 })
    }

    /// The only thing here that needs a descriptor, and the first that is done. Returns the file and its length.
    fn write_header(&self, path: &Path, recycled: bool, start: Lsn, id: u64) -> Result<(Arc<dyn File>, u64)> {
        let file = self.fs.open(path, OpenMode::Create)?;
        if !recycled {
            file.set_len(0)?;
        }
        file.write_at(0, &encode_header(start, id))?;
        file.sync()?;
        let filled = file.len()?;
        Ok((file, filled))
    }

    /// Recycles or removes the segments that end at or before `lsn`, except the newest, so that there are at most
    /// `spares` files to be used again.
    pub(super) fn release_before(&self, lsn: Lsn, spares: usize) -> Result<()> {
        let (released, room) = {
            let mut names = self.names.lock();
            let count = names.live.windows(2).take_while(|pair| pair[1] <= lsn).count();
            let released: Vec<Lsn> = names.live.drain(..count).collect();
            (released, spares.saturating_sub(names.spares.len()))
        };
        if released.is_empty() {
            return Ok(());
        }
        let mut spares = Vec::new();
        for (i, &start) in released.iter().enumerate() {
            let done = self.retire(start, spares.len() < room).map(|spare| spares.extend(spare));
            if let Err(error) = done {
                self.names.lock().live.splice(0..0, released[i..].iter().copied());
                return Err(error);
            }
        }
        // A spare must not get its old name back after it was rewritten.
        self.dir.sync()?;
        self.names.lock().spares.append(&mut spares);
        Ok(())
    }

    /// Removes the files that wait for reuse. Whether there were any.
    pub(super) fn remove_spares(&self) -> bool {
        let spares = std::mem::take(&mut self.names.lock().spares);
        // Should a power loss bring one back, the next start finds it.
        spares.iter().filter(|spare| self.fs.remove(spare).is_ok()).count() > 0
    }

    /// Takes a segment its name; returns the spare that it became, if it did.
    fn retire(&self, start: Lsn, recycle: bool) -> Result<Option<PathBuf>> {
        let path = segment_path(&self.path, start);
        // A segment for one huge record is not kept.
        if recycle && self.fs.open(&path, OpenMode::ReadOnly)?.len()? <= HEADER_BYTES + self.segment_bytes {
            let spare = spare_path(&self.path, start);
            self.fs.rename(&path, &spare)?;
            return Ok(Some(spare));
        }
        self.fs.remove(&path)?;
        Ok(None)
    }
}
