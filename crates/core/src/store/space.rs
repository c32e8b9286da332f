//! One table file: a header and extents.
//!
//! A block is written to new space, never in place; which space is new is what the [`Books`] of the space say, and this
//! module adds the I/O. No I/O happens under the books' mutex but the truncation in [`Space::trim`].
//!
//! A checkpoint `g` (the caller numbers them; the number grows with each that became durable) does, in this order:
//!
//! 1. `begin(g)`, before it looks at anything in memory: what memory has superseded until then is not in image `g`
//! 2. `prepare` and `write` of what has changed, `supersede(g)` of the extents that image `g` no longer names
//! 3. `write_map(g)`, for each space where 2. did anything ; its address becomes part of the image
//! 4. `sync`, then the superblock, written and synced
//! 5. `durable(g)`, then `trim`, and `punch_holes` some time before the next
//!
//! Between checkpoints, and while one runs, memory writes and supersedes too: with `g + 1` while checkpoint `g` runs,
//! whose image may name the extent, else with the number of the next checkpoint.
//!
//! If a step before the superblock fails there are two ways on; an engine takes one or the other. *Resume*: keep in
//! memory what was written (leaves point to their new extents) and later start again with `begin(g)`; nothing need be
//! undone. What was superseded stays so, and gives its space back with the next checkpoint that succeeds. *Abandon*:
//! `abandon(g)` makes live again what was superseded by `g` since `begin(g)`, and frees what has the lifetime
//! [`Lifetime::Checkpoint`](super::Lifetime::Checkpoint); memory must refer to the old extents again. If the
//! *superblock's* write or sync fails nobody knows which image is durable: neither `durable` nor `abandon` may be
//! called, the engine stops writing.
//!
//! ```text
//! file:    | header 4 KiB | extent | extent | free | extent ... | end      extents: multiples of its unit
//! header:  0            8         12         16                4088
//!          | "TEAKSPAC" | version | space id | zeros ...       | XXH3-64 of bytes 0..4088 |
//! version: 2, extents in units of 512 bytes; 3, of 32
//! ```

mod kind;
mod preparing;
mod reading;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use self::kind::SpaceKind;
use crate::counts::Count;
use crate::sync::{Mutex, MutexGuard};

use super::dictionary::Dictionary;
use super::extent::{Extent, PreparedBlock};
use super::lifecycle::Books;
use super::open_files::{KernelAhead, OpenFiles, TableFile};
use super::packer::Doubts;
use super::spill::{SpillFile, SpillShare};
use super::twin::Twin;
use super::{checksum, free_map, u32_at, u64_at, BlockAddress, BundleUse, ThinnedBundle, Unit};
use crate::file::OpenMode;
use crate::{Compression, Error, Residence, Result};

/// The first extent starts here.
pub(super) const HEADER_BYTES: u64 = 4096;
const MAGIC: &[u8; 8] = b"TEAKSPAC";
/// Of a file whose extents are in sectors.
const SECTOR_VERSION: u32 = 2;
const VERSION: u32 = 3;
const HEADER_CHECKSUM_AT: usize = HEADER_BYTES as usize - 8;

/// One file of extents. All methods may be called from any thread.
pub struct Space {
    id: u32,
    unit: Unit,
    file: Arc<TableFile>,
    kind: SpaceKind,
    /// At least the length of the file; a block that ends past it cannot be there.
    length: AtomicU64,
    map: Option<BlockAddress>,
    /// Held while the map is read, so that it is read once.
    loading: Mutex<()>,
    books: Mutex<Books>,
    dictionaries: Mutex<HashMap<u16, Known>>,
    /// Past those that are known.
    next_dictionary: AtomicU32,
    /// Of large values that are deflate streams.
    doubts: Doubts,
}

/// A dictionary that blocks may name.
struct Known {
    at: BlockAddress,
    /// Read when it is first needed.
    loaded: Option<Arc<Dictionary>>,
}

impl Space {
    /// What a file begins with, before its extents.
    pub const HEADER_BYTES: u64 = HEADER_BYTES;

    /// Creates an empty space; the file and its name are durable when this returns. What a file of that name held is
    /// lost.
    pub fn create(files: &Arc<OpenFiles>, path: &Path, id: u32) -> Result<Arc<Space>> {
        let file = files.fs().open(path, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_at(0, &header(id))?;
        file.sync()?;
        if let Some(dir) = path.parent() {
            files.fs().sync_dir(dir)?;
        }
        let file = TableFile::new(files, path, file);
        Ok(Arc::new(Space::of(file, SpaceKind::file(None), id, Unit::Fine, HEADER_BYTES, None)))
    }

    /// Stands for the file of a table that lives in memory alone, as `residence` says. Whatever reads or writes there
    /// fails.
    pub fn in_memory(files: &Arc<OpenFiles>, path: &Path, id: u32, residence: Residence) -> Arc<Space> {
        debug_assert!(residence.memory_limit().is_some(), "a table in memory alone that has a file");
        let kind = SpaceKind::Memory { limit_bytes: AtomicU64::new(residence.memory_limit().unwrap_or(0)) };
        Arc::new(Space::of(TableFile::without_file(files, path), kind, id, Unit::Fine, 0, None))
    }

    /// That of a temporary table: the first write makes the file, beside the spill file and without a name as that, and
    /// out of the same budget. All extents are private, and no checkpoint comes by.
    pub fn temporary(files: &Arc<OpenFiles>, id: u32, spill: &Arc<SpillFile>) -> Arc<Space> {
        let path = spill.path().with_file_name(format!("teak-table-{id}"));
        let kind = SpaceKind::Unnamed(SpillShare::of(spill));
        Arc::new(Space::of(TableFile::unnamed(files, &path), kind, id, Unit::Fine, HEADER_BYTES, None))
    }

    /// [`Space::create`] for a space whose bytes are kept twice.
    pub fn create_twice(files: &Arc<OpenFiles>, path: &Path, id: u32) -> Result<()> {
        Space::create(files, path, id)?;
        Twin::create(files, path, &header(id)).map(drop)
    }

    /// Opens a space as of a durable image: `map` is what `write_map` returned for it. `None` if no image has had
    /// extents in this space: whatever lies past the header is then free. The map is read when it is first needed.
    pub fn open(
        files: &Arc<OpenFiles>,
        path: &Path,
        id: u32,
        map: Option<BlockAddress>,
    ) -> Result<Arc<Space>> {
        Space::open_with(files, path, id, map, None)
    }

    /// [`Space::open`] for a space whose bytes are kept twice. One that was not so far gets its second copy.
    pub fn open_twice(
        files: &Arc<OpenFiles>,
        path: &Path,
        id: u32,
        map: Option<BlockAddress>,
    ) -> Result<Arc<Space>> {
        let is_header =
            |bytes: &[u8]| bytes.first_chunk().is_some_and(|bytes| check_header(bytes, id, path).is_ok());
        match Twin::open(files, path, HEADER_BYTES as usize, &is_header) {
            Ok(twin) => Space::open_with(files, path, id, map, Some(twin)),
            // Nothing can be made, nor written back: one copy has to do.
            Err(_) if files.fs().is_read_only() => Space::open_with(files, path, id, map, None),
            Err(error) => Err(error),
        }
    }

    fn open_with(
        files: &Arc<OpenFiles>,
        path: &Path,
        id: u32,
        map: Option<BlockAddress>,
        twin: Option<Twin>,
    ) -> Result<Arc<Space>> {
        let file = files.fs().open(path, OpenMode::Existing)?;
        let mut bytes = [0; HEADER_BYTES as usize];
        let own = file.read_exact_at(0, &mut bytes).and_then(|()| check_header(&bytes, id, path));
        let unit = own.or_else(|error| match &twin {
            Some(twin) if error.is_damage_of(path) => {
                twin.file.read_exact_at(0, &mut bytes, KernelAhead::Usual)?;
                check_header(&bytes, id, path)
            }
            _ => Err(error),
        })?;
        let length = file.len()?.max(twin.as_ref().and_then(|twin| twin.file.len_if_open()).unwrap_or(0));
        Ok(Arc::new(Space::of(
            TableFile::new(files, path, file),
            SpaceKind::file(twin),
            id,
            unit,
            length,
            map,
        )))
    }

    fn of(
        file: Arc<TableFile>,
        kind: SpaceKind,
        id: u32,
        unit: Unit,
        length: u64,
        map: Option<BlockAddress>,
    ) -> Space {
        let books = Books::new(unit, map.map(|map| (map.offset, map.occupied_bytes(unit))));
        Space {
            id,
            unit,
            file,
            kind,
            length: AtomicU64::new(length),
            map,
            loading: Mutex::new(()),
            books: Mutex::new(books),
            dictionaries: Mutex::default(),
            next_dictionary: AtomicU32::new(1),
            doubts: Doubts::default(),
        }
    }

    /// What its extents are multiples of.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The number in its header.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Size of the file.
    #[cfg(test)]
    pub fn file_bytes(&self) -> u64 {
        // Relaxed: a figure for display.
        self.file.len_if_open().unwrap_or_else(|| self.length.load(Ordering::Relaxed))
    }

    /// To be called before the file's name is removed: what readers still hold stays readable.
    pub fn keep_open(&self) -> Result<()> {
        match self.kind {
            SpaceKind::File { .. } => self.file.keep_open(),
            SpaceKind::Unnamed(_) | SpaceKind::Memory { .. } => Ok(()),
        }
    }

    /// Bytes in the file that can be reused now; 0 if the map cannot be read.
    #[cfg(test)]
    pub fn free_bytes(&self) -> u64 {
        self.loaded_books().ok().and_then(|books| books.usage()).map_or(0, |(_, free)| free)
    }

    /// Writes a block; it is durable after the next [`Space::sync`]. After an error it may be written again or dropped.
    pub fn write(&self, block: &PreparedBlock) -> Result<()> {
        let offset = block.address().offset;
        self.write_at(offset, &block.stored)?;
        self.books.lock().written(offset);
        Ok(())
    }

    /// The same for blocks that were prepared together: those that lie side by side with one write.
    pub fn write_together(&self, blocks: &[PreparedBlock]) -> Result<()> {
        let follows = |a: &PreparedBlock, b: &PreparedBlock| {
            a.address().offset + a.extent().occupied_bytes() == b.address().offset
        };
        for run in blocks.chunk_by(follows) {
            let start = run[0].address().offset;
            let mut bytes = Vec::new();
            for block in run {
                bytes.resize((block.address().offset - start) as usize, 0);
                bytes.extend_from_slice(&block.stored);
            }
            self.write_at(start, &bytes)?;
        }
        let mut books = self.books.lock();
        blocks.iter().for_each(|block| books.written(block.address().offset));
        Ok(())
    }

    /// The extent that a durable structure, or one in memory, names.
    pub fn adopt(self: &Arc<Self>, at: BlockAddress) -> Arc<Extent> {
        self.books.lock().hold(at.offset);
        Arc::new(Extent::new(self.clone(), at, 0))
    }

    /// The log is going to be replayed: until [`Space::end_replay`], new extents take nothing that the file had when it
    /// was opened, since the log may name extents there that are not claimed yet.
    pub fn begin_replay(&self) {
        let mut books = self.books.lock();
        // Relaxed: nobody writes to it yet.
        books.put_new_behind(Some(self.length.load(Ordering::Relaxed)));
    }

    /// All extents that the log names are claimed.
    pub fn end_replay(&self) {
        self.books.lock().put_new_behind(None);
    }

    /// See [`Books::prefer_below`]: while the end of the file is to become free.
    pub fn prefer_below(&self, limit: Option<u64>) {
        self.books.lock().prefer_below(limit);
    }

    /// Whether `bytes` more can be stored as they are: [`Error::SpillFull`] if the file is temporary, has no room and
    /// must not grow. To be asked before somebody compresses them.
    pub fn check_room(&self, bytes: u64) -> Result<()> {
        let SpaceKind::Unnamed(share) = &self.kind else { return Ok(()) };
        let (end, used) = self.extent_usage()?;
        match end - used < bytes {
            true => share.check(end + bytes),
            false => Ok(()),
        }
    }

    /// Where the last extent ends, and bytes before that which are in use.
    pub fn extent_usage(&self) -> Result<(u64, u64)> {
        let usage = self.loaded_books()?.usage();
        let (end, free) = usage.ok_or_else(|| Error::corrupt(self.path(), 0, "free space is not known"))?;
        Ok((end, end - free))
    }

    /// See [`Books::needed_bytes`].
    pub fn needed_bytes(&self) -> Result<u64> {
        let needed = self.loaded_books()?.needed_bytes();
        needed.ok_or_else(|| Error::corrupt(self.path(), 0, "free space is not known"))
    }

    /// An extent of an earlier run that the log names: it is kept until it is dropped, and then free, or it is part of
    /// the image anyway. Called before anything is allocated in this run, except behind the file as it was
    /// ([`Space::begin_replay`]).
    pub fn claim(self: &Arc<Self>, at: BlockAddress) -> Result<Arc<Extent>> {
        let born = self.loaded_books()?.claim(at.offset, at.occupied_bytes(self.unit));
        Ok(match born {
            Some(born) => Arc::new(Extent::new(self.clone(), at, born)),
            None => self.adopt(at),
        })
    }

    /// Makes all that was written durable. A failure must not be followed by another try (see [`crate::file`]).
    pub fn sync(&self) -> Result<()> {
        self.file.sync()?;
        self.kind.twin().map_or(Ok(()), |twin| twin.file.sync())
    }

    /// What the operator should know of the second copy: what had to be read from there since the last call.
    pub fn take_remarks(&self) -> Vec<String> {
        self.kind.twin().map_or_else(Vec::new, Twin::take_remarks)
    }

    /// Checkpoint `generation` starts, or starts again. What is superseded by it from now on, `abandon` takes back.
    pub fn begin(&self, generation: u64) {
        self.books.lock().begin(generation);
    }

    /// Writes the map of what is free if checkpoint `generation` becomes durable. `begin` was called; every block that
    /// its image names must have been written before, and every extent that it does not name any more superseded.
    pub fn write_map(self: &Arc<Self>, generation: u64) -> Result<BlockAddress> {
        let built = self.loaded_books()?.build_map(self.id, generation);
        let (offset, content) =
            built.ok_or_else(|| Error::corrupt(self.path(), 0, "free space is not known"))?;
        let written = u32::try_from(content.len())
            .map_err(|_| Error::OutOfMemory("free-space map"))
            .and_then(|bytes| self.write_at(offset, &content).map(|()| bytes));
        match written {
            Ok(bytes) => {
                self.books.lock().map_written(offset, generation);
                Ok(BlockAddress {
                    offset,
                    stored_bytes: bytes,
                    raw_bytes: bytes,
                    checksum: checksum(&content),
                    compression: Compression::None,
                    in_parts: false,
                    is_tight: false,
                    dictionary: 0,
                })
            }
            Err(error) => {
                self.books.lock().map_failed(offset);
                Err(error)
            }
        }
    }

    /// The superblock of checkpoint `generation` is durable: what it superseded is reusable once nobody holds it.
    pub fn durable(&self, generation: u64) {
        self.books.lock().durable(generation);
    }

    /// Checkpoint `generation` failed before its superblock was written, and is given up (see the module's
    /// documentation).
    pub fn abandon(&self, generation: u64) {
        self.books.lock().abandon(generation);
    }

    /// Gives the free tail of the file back to the file system. The durable image and what readers hold are never in
    /// it.
    pub fn trim(&self) -> Result<()> {
        // The books stay locked: an extent that was allocated past the new end meanwhile could be cut off.
        let mut books = self.books.lock();
        let Some(end) = books.trim() else { return Ok(()) };
        // Relaxed: as below.
        if end < self.length.load(Ordering::Relaxed) {
            self.file.cut(end)?;
            self.kind.twin().map_or(Ok(()), |twin| twin.file.cut(end))?;
            // Relaxed: stores are ordered by the books' mutex against the allocations past `end`, whose writes raise it
            // again.
            self.length.store(end, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives free ranges inside the file back to the file system, up to `maximum` of them and none below `smallest`
    /// bytes, until `stop` says so; how many it were. What is free may be overwritten at any time, so it may become
    /// zeros as well. Meanwhile nobody is given the range. After an error the rest stays as it was.
    pub fn punch_holes(&self, smallest: u64, maximum: usize, stop: &dyn Fn() -> bool) -> Result<usize> {
        let SpaceKind::File { twin, no_holes } = &self.kind else { return Ok(0) };
        // Relaxed: a hint.
        if no_holes.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let worth = self.books.lock().worth_punching(smallest, maximum);
        let mut punched = 0;
        for (offset, bytes) in worth {
            if stop() {
                break;
            }
            if !self.books.lock().begin_punching(offset, bytes) {
                continue;
            }
            let other = twin.as_ref().map_or(Ok(true), |twin| twin.file.punch_hole(offset, bytes));
            let result = other.and_then(|_| self.file.punch_hole(offset, bytes));
            self.books.lock().punched(offset, bytes, matches!(result, Ok(true)));
            if !result? {
                no_holes.store(true, Ordering::Relaxed); // Relaxed: as above
                return Ok(punched);
            }
            punched += 1;
        }
        Ok(punched)
    }

    /// Bytes that the file takes from the disk, and how many of them are free.
    pub fn disk_usage(&self) -> (u64, u64) {
        // Relaxed: figures for display.
        let length = self.length.load(Ordering::Relaxed);
        let Some((end, free, holes)) = self.loaded_books().ok().and_then(|books| {
            let (end, free) = books.usage()?;
            Some((end, free, books.hole_bytes()))
        }) else {
            return (self.file.allocated_if_open().unwrap_or(length), 0);
        };
        // Holes of an earlier run are not in the books: what the file system says is better.
        let taken = self.file.allocated_if_open().unwrap_or(length.saturating_sub(holes));
        let behind = length.saturating_sub(end);
        (taken, taken.saturating_sub(end - free).min(free + behind))
    }

    pub(super) fn supersede(&self, at: &BlockAddress, born: u64, generation: u64) {
        self.books.lock().supersede(at.offset, at.occupied_bytes(self.unit), born, generation);
    }

    pub(super) fn enter_bundle(&self, bundle: &BundleUse) -> Result<()> {
        self.loaded_books()?.enter_bundle(bundle);
        Ok(())
    }

    pub(super) fn bury(
        &self,
        at: &BlockAddress,
        born: u64,
        member: (u8, u8),
        value_bytes: u64,
        generation: u64,
    ) -> Result<()> {
        self.loaded_books()?.bury(at, born, member, value_bytes, generation);
        Ok(())
    }

    /// What bundles there are in the durable image.
    pub fn bundle_usage(&self) -> Result<BundleUse> {
        Ok(self.loaded_books()?.bundle_usage())
    }

    /// Up to `most` bundles behind the one at `after` of which more than half is dead in the durable image.
    pub fn sparse_bundles(&self, after: u64, most: usize) -> Result<Vec<ThinnedBundle>> {
        Ok(self.loaded_books()?.sparse_bundles(after, most))
    }

    pub(super) fn join(&self, at: &BlockAddress, generation: u64) {
        self.books.lock().join(at.offset, generation);
    }

    pub(super) fn publish(&self, at: &BlockAddress) {
        self.books.lock().publish(at.offset);
    }

    pub(super) fn is_settled(&self, at: &BlockAddress) -> bool {
        self.books.lock().is_settled(at.offset)
    }

    pub(super) fn dropped(&self, at: &BlockAddress) {
        self.books.lock().dropped(at.offset);
    }

    /// Looks at the books as they are; the map is not read for it.
    pub(super) fn with_books<T>(&self, look: impl FnOnce(&Books) -> T) -> T {
        look(&self.books.lock())
    }

    /// Highest position in use.
    #[cfg(test)]
    pub(super) fn end(&self) -> Option<u64> {
        self.loaded_books().ok()?.usage().map(|(end, _)| end)
    }

    pub(super) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset + bytes.len() as u64;
        // Before the write: one that fails may have grown the file as well. Relaxed: see `read`.
        self.length.fetch_max(end, Ordering::Relaxed);
        if let SpaceKind::Unnamed(share) = &self.kind {
            share.grow_to(end)?;
        }
        self.file.write_at(offset, bytes)?;
        Count::FileWrites.add(1);
        Count::FileBytesWritten.add(bytes.len() as u64);
        self.kind.twin().map_or(Ok(()), |twin| twin.file.write_at(offset, bytes))
    }

    /// The books, with the map read into them.
    fn loaded_books(&self) -> Result<MutexGuard<'_, Books>> {
        let books = self.books.lock();
        if books.loaded() {
            return Ok(books);
        }
        drop(books);
        let _loading = self.loading.lock();
        let books = self.books.lock();
        if books.loaded() {
            return Ok(books);
        }
        drop(books);
        let Some(at) = self.map else { return Ok(self.books.lock()) };
        let corrupt = |detail: &'static str| Error::corrupt(self.path(), at.offset, detail);
        let map = free_map::decode(self.id, self.unit, &self.read(&at)?).map_err(corrupt)?;
        let mut books = self.books.lock();
        books.load(map).map_err(corrupt)?;
        Ok(books)
    }
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Space({} at {})", self.id, self.path().display())
    }
}

fn header(id: u32) -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0; HEADER_BYTES as usize];
    bytes[0..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&id.to_le_bytes());
    let sum = checksum(&bytes[..HEADER_CHECKSUM_AT]);
    bytes[HEADER_CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn check_header(bytes: &[u8; HEADER_BYTES as usize], id: u32, path: &Path) -> Result<Unit> {
    if bytes[..8] != MAGIC[..] {
        return Err(Error::corrupt(path, 0, "not a space file of Teak"));
    }
    if u64_at(bytes, HEADER_CHECKSUM_AT) != Some(checksum(&bytes[..HEADER_CHECKSUM_AT])) {
        return Err(Error::corrupt(path, 0, "checksum of the space header does not match"));
    }
    let unit = match u32_at(bytes, 8).unwrap_or(0) {
        SECTOR_VERSION => Unit::Sector,
        VERSION => Unit::Fine,
        found => return Err(Error::UnknownVersion { path: path.into(), found, supported: VERSION }),
    };
    match u32_at(bytes, 12).unwrap_or(0) {
        found if found == id => Ok(unit),
        found => Err(Error::corrupt(path, 12, format!("this is space {found}, space {id} is expected"))),
    }
}
