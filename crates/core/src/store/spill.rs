//! Temporary data of one process: history and redo that outgrow memory; and the budget of all such data.
//!
//! Nothing here outlives the process: the file has no name, its allocation is in memory only. It
//! still has checksums (a disk can fail any day) and a budget (a long transaction must not fill the device).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use crate::counts::{note_read, Count};
use crate::slabs::Buffer;
use crate::sync::Mutex;

use super::allocator::Allocator;
use super::checksum;
use super::compression::{compress, decompress};
use crate::file::{File, FileSystem};
use crate::{Compression, Error, Result};

/// Spilled data is often small and is never read by page: a unit finer than that of spaces wastes less.
const UNIT: u64 = 64;
/// An empty file past this size is cut.
const KEPT_BYTES: u64 = 1 << 20;

/// Whose budget pays for an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Large transactions, dirty blocks, sorting.
    Work,
    /// Old snapshots.
    History,
}

/// Pieces of leaves are smaller, and are read in no order, so that what the system reads ahead is read in vain; those
/// of sorting, which come one behind the other, are larger.
const IN_ORDER_BYTES: usize = 64 << 10;

fn occupied(bytes: usize) -> u64 {
    (bytes as u64).max(1).next_multiple_of(UNIT)
}

/// A file of temporary extents. All methods may be called from any thread.
pub struct SpillFile {
    file: Arc<dyn File>,
    maximum_bytes: AtomicU64,
    /// Of what is stored, what old snapshots need.
    history_bytes: AtomicU64,
    /// What other files take that the same budget pays for.
    shared_bytes: AtomicU64,
    /// Ever written, and read.
    moved: (AtomicU64, AtomicU64),
    allocator: Mutex<Allocator>,
}

impl SpillFile {
    /// Creates the file in `dir`, for at most `maximum_bytes` at a time.
    pub fn create(fs: &dyn FileSystem, dir: &Path, maximum_bytes: u64) -> Result<Arc<SpillFile>> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only the number's uniqueness within the process matters.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("teak-spill-{}-{number}", std::process::id()));
        let file = fs.open_unnamed(&path)?;
        Ok(Arc::new(SpillFile {
            file,
            maximum_bytes: AtomicU64::new(maximum_bytes),
            history_bytes: AtomicU64::new(0),
            shared_bytes: AtomicU64::new(0),
            moved: Default::default(),
            allocator: Mutex::new(Allocator::new(0)),
        }))
    }

    /// A name for messages.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Changes the budget; what is stored stays.
    pub fn set_maximum(&self, bytes: u64) {
        self.maximum_bytes.store(bytes, Ordering::Relaxed); // Relaxed: a number on its own
    }

    /// Bytes that history takes: see [`SpillFile::write_history`].
    pub fn history_bytes(&self) -> u64 {
        self.history_bytes.load(Ordering::Relaxed) // Relaxed: a number on its own
    }

    /// Bytes in use, here and in files that share the budget.
    pub fn used_bytes(&self) -> u64 {
        let allocator = self.allocator.lock();
        self.stored_bytes(&allocator) + self.shared_bytes()
    }

    fn stored_bytes(&self, allocator: &Allocator) -> u64 {
        allocator.end() - allocator.free_bytes()
    }

    fn shared_bytes(&self) -> u64 {
        self.shared_bytes.load(Ordering::Relaxed) // Relaxed: changed under the allocator's mutex only
    }

    /// `more` bytes of the budget for work are about to be taken.
    fn check_budget(&self, allocator: &Allocator, more: u64) -> Result<()> {
        let maximum = self.maximum_bytes.load(Ordering::Relaxed); // Relaxed: a number on its own
        let stored = self.stored_bytes(allocator).saturating_sub(self.history_bytes());
        match stored + self.shared_bytes() + more > maximum {
            true => Err(Error::SpillFull { path: self.file.path().to_path_buf(), maximum }),
            false => Ok(()),
        }
    }

    /// Bytes written so far, and bytes read.
    pub fn moved_bytes(&self) -> (u64, u64) {
        let (written, read) = &self.moved;
        (written.load(Ordering::Relaxed), read.load(Ordering::Relaxed)) // Relaxed: statistics
    }

    /// Stores `bytes`; [`Error::SpillFull`] if the budget does not allow it.
    pub fn write(self: &Arc<Self>, bytes: &[u8]) -> Result<SpillExtent> {
        self.store(bytes, Kind::Work)
    }

    /// Stores what only old snapshots need. It has a budget of its own, which the owner of the snapshots keeps: nobody
    /// fails here because of it.
    pub fn write_history(self: &Arc<Self>, bytes: &[u8]) -> Result<SpillExtent> {
        self.store(bytes, Kind::History)
    }

    fn store(self: &Arc<Self>, bytes: &[u8], kind: Kind) -> Result<SpillExtent> {
        let occupied = occupied(bytes.len());
        let offset = {
            let mut allocator = self.allocator.lock();
            match kind {
                Kind::Work => self.check_budget(&allocator, occupied)?,
                // Relaxed: changed under the allocator's mutex only.
                Kind::History => drop(self.history_bytes.fetch_add(occupied, Ordering::Relaxed)),
            }
            allocator.allocate(occupied)
        };
        // From here on dropping the extent gives the space back, also when the write fails.
        let (file, checksum) = (self.clone(), checksum(bytes));
        let extent = SpillExtent { file, offset, bytes: bytes.len(), checksum, raw: None, kind };
        self.file.write_at(offset, bytes)?;
        Count::SpillWrites.add(1);
        self.moved.0.fetch_add(bytes.len() as u64, Ordering::Relaxed); // Relaxed: a statistic
        Ok(extent)
    }

    /// The same, compressed if that makes it smaller.
    pub fn write_compressed(self: &Arc<Self>, bytes: &[u8]) -> Result<SpillExtent> {
        match compress(bytes, Compression::Lz4.into(), None, bytes.len())? {
            Some(compressed) => {
                let mut extent = self.write(&compressed)?;
                extent.raw = Some(bytes.len());
                Ok(extent)
            }
            None => self.write(bytes),
        }
    }

    fn release(&self, offset: u64, bytes: u64, kind: Kind) {
        let mut allocator = self.allocator.lock();
        if kind == Kind::History {
            // Relaxed: as in `store`.
            self.history_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        let released = allocator.release(offset, bytes);
        debug_assert!(released, "a spill extent is freed once");
        let end = allocator.trim();
        // Nobody allocates while the mutex is held, so nothing is cut off. A failure only leaves the file long.
        if end == 0 && self.file.len().is_ok_and(|length| length > KEPT_BYTES) {
            let _ = self.file.set_len(0);
        }
    }
}

/// What a temporary file of its own takes of the budget; given back when dropped.
pub struct SpillShare {
    spill: Arc<SpillFile>,
    bytes: Mutex<u64>,
}

impl SpillShare {
    /// For a file that is empty.
    pub fn of(spill: &Arc<SpillFile>) -> SpillShare {
        SpillShare { spill: spill.clone(), bytes: Mutex::new(0) }
    }

    /// Whether the file may have `length` bytes; [`Error::SpillFull`] if the budget does not allow it.
    pub fn check(&self, length: u64) -> Result<()> {
        let more = length.saturating_sub(*self.bytes.lock());
        self.spill.check_budget(&self.spill.allocator.lock(), more)
    }

    /// The file is about to have `length` bytes; [`Error::SpillFull`] if the budget does not allow it.
    pub fn grow_to(&self, length: u64) -> Result<()> {
        let mut bytes = self.bytes.lock();
        if length > *bytes {
            let allocator = self.spill.allocator.lock();
            self.spill.check_budget(&allocator, length - *bytes)?;
            // Relaxed: changed under the allocator's mutex only.
            self.spill.shared_bytes.fetch_add(length - *bytes, Ordering::Relaxed);
            *bytes = length;
        }
        Ok(())
    }
}

impl Drop for SpillShare {
    fn drop(&mut self) {
        let _allocator = self.spill.allocator.lock();
        // Relaxed: as above.
        self.spill.shared_bytes.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// Bytes in the spill file; freed when dropped.
pub struct SpillExtent {
    file: Arc<SpillFile>,
    offset: u64,
    bytes: usize,
    checksum: u64,
    /// Size before compression; `None`: not compressed.
    raw: Option<usize>,
    kind: Kind,
}

impl SpillExtent {
    /// What was written.
    pub fn read(&self) -> Result<Buffer> {
        let fetch = |bytes: &mut [u8]| {
            let begun = Instant::now();
            match bytes.len() < IN_ORDER_BYTES {
                true => self.file.file.read_apart_at(self.offset, bytes)?,
                false => self.file.file.read_exact_at(self.offset, bytes)?,
            }
            note_read(begun.elapsed());
            Count::SpillReads.add(1);
            self.file.moved.1.fetch_add(bytes.len() as u64, Ordering::Relaxed); // Relaxed: a statistic
            match checksum(bytes) == self.checksum {
                true => Ok(()),
                false => Err(self.corrupt("checksum of spilled data".to_string())),
            }
        };
        let (raw, compression) =
            self.raw.map_or((self.bytes, Compression::None), |raw| (raw, Compression::Lz4));
        decompress(self.bytes, raw, compression, None, fetch)?.map_err(|detail| self.corrupt(detail))
    }

    fn corrupt(&self, detail: String) -> Error {
        Error::corrupt(self.file.file.path(), self.offset, detail)
    }

    /// Its size in the file.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for SpillExtent {
    fn drop(&mut self) {
        self.file.release(self.offset, occupied(self.bytes), self.kind);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::TestDir;
    use super::*;
    use crate::file::RealFileSystem;

    #[test]
    fn data_comes_back_and_leaves_no_name_and_no_bytes() {
        let dir = TestDir::new();
        let spill = SpillFile::create(&RealFileSystem, &dir.0, 10 << 20).unwrap();
        assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 0);
        let extents: Vec<_> = (0..200usize)
            .map(|i| {
                let bytes = vec![i as u8; i * 97];
                (spill.write(&bytes).unwrap(), bytes)
            })
            .collect();
        for (extent, bytes) in &extents {
            assert_eq!(&extent.read().unwrap(), bytes);
            assert_eq!(extent.len(), bytes.len());
        }
        assert!(spill.file.len().unwrap() > KEPT_BYTES);
        drop(extents);
        assert_eq!((spill.used_bytes(), spill.file.len().unwrap()), (0, 0));
    }

    #[test]
    fn a_link_of_its_name_leads_nowhere() {
        let dir = TestDir::new();
        let victim = dir.0.join("victim");
        std::fs::write(&victim, b"precious").unwrap();
        // Whoever shares the directory can guess the next names.
        let own = |number| dir.0.join(format!("teak-spill-{}-{number}", std::process::id()));
        (0..1000).for_each(|number| std::os::unix::fs::symlink(&victim, own(number)).unwrap());
        let spill = SpillFile::create(&RealFileSystem, &dir.0, 10 << 20).unwrap();
        assert_eq!(spill.write(&[1; 5000]).unwrap().read().unwrap(), [1; 5000]);
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn the_budget_is_kept_and_freed_bytes_count_again() {
        let dir = TestDir::new();
        let spill = SpillFile::create(&RealFileSystem, &dir.0, 1000).unwrap();
        let first = spill.write(&[1; 900]).unwrap();
        assert!(matches!(spill.write(&[2; 100]), Err(Error::SpillFull { maximum: 1000, .. })));
        drop(first);
        let second = spill.write(&[2; 100]).unwrap();
        spill.set_maximum(100);
        assert!(spill.write(&[3; 1]).is_err());
        let history = spill.write_history(&[4; 5000]).unwrap();
        assert_eq!((spill.history_bytes(), spill.used_bytes()), (5056, 5056 + 128));
        assert_eq!(history.read().unwrap(), [4; 5000]);
        drop(history);
        assert_eq!((spill.history_bytes(), spill.used_bytes()), (0, 128));
        assert_eq!(second.read().unwrap(), [2; 100]);
    }

    #[test]
    fn a_changed_byte_is_detected() {
        let dir = TestDir::new();
        let spill = SpillFile::create(&RealFileSystem, &dir.0, 1 << 20).unwrap();
        let extent = spill.write(&[7; 300]).unwrap();
        spill.file.write_at(extent.offset + 299, &[8]).unwrap();
        assert!(matches!(extent.read(), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn threads_share_it() {
        let dir = TestDir::new();
        let spill = SpillFile::create(&RealFileSystem, &dir.0, 1 << 20).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let spill = &spill;
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for i in 0..300usize {
                        let bytes = vec![thread ^ i as u8; i * 7 % 1500];
                        kept.push((spill.write(&bytes).unwrap(), bytes));
                        if kept.len() > 10 {
                            let (extent, bytes) = kept.swap_remove(i % 10);
                            assert_eq!(extent.read().unwrap(), bytes);
                        }
                    }
                });
            }
        });
        assert_eq!(spill.used_bytes(), 0);
    }
}
