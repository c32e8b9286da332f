//! Reads that leave the kernel's cache of files out.
//!
//! A cache of blocks in memory, and one of the same blocks behind it that is smaller or no larger, have much in common:
//! what the second one has that the first has not is hit seldom, and each miss takes pages from others, a copy, and
//! the time to find them. So databases whose own cache has most of the memory read past the kernel's. The device wants
//! to be read from in whole sectors, into memory that is aligned to them.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is longer has the kernel read ahead for it: a large value.
pub(super) const MOST_UNBUFFERED_BYTES: usize = 64 << 10;
/// What reads are aligned to: the sector of most devices, and that of the others, which refuse the first.
const SECTORS: [usize; 2] = [512, 4096];
/// In place of a sector: the file system cannot.
const NEVER: usize = 0;

thread_local! {
    /// What the device reads into. A statement reads one block after the other.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A description of a file that is read in whole sectors.
pub(super) struct Unbuffered {
    file: File,
    sector: AtomicUsize,
}

impl Unbuffered {
    /// Opens what `file` is once more; `None` if that cannot be, or `suits` says no to the description.
    pub(super) fn open(file: &File, suits: impl FnOnce(&File) -> bool) -> Option<Unbuffered> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
        suits(&file).then(|| Unbuffered { file, sector: AtomicUsize::new(SECTORS[0]) })
    }

    /// Reads once; the bytes that were read, fewer than asked at the end of the file or for no reason.
    pub(super) fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        debug_assert!(buf.len() <= MOST_UNBUFFERED_BYTES, "nothing is read ahead of a large value");
        loop {
            // Relaxed: a number, and whoever has the old one is told by the device, too.
            let sector = self.sector.load(Ordering::Relaxed);
            if sector == NEVER {
                return Err(io::ErrorKind::Unsupported.into());
            }
            match self.read_sectors(offset, buf, sector) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    let next = SECTORS.iter().find(|&&larger| larger > sector).copied().unwrap_or(NEVER);
                    self.sector.store(next, Ordering::Relaxed); // Relaxed: see above
                }
                result => return result,
            }
        }
    }

    fn read_sectors(&self, offset: u64, buf: &mut [u8], sector: usize) -> io::Result<usize> {
        let skipped = (offset % sector as u64) as usize;
        let bytes = (skipped + buf.len()).next_multiple_of(sector);
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < bytes + sector {
                buffer.resize(bytes + sector, 0);
            }
            let start = buffer.as_ptr().align_offset(sector);
            let sectors = &mut buffer[start..start + bytes];
            let found = self.file.read_at(sectors, offset - skipped as u64)?.saturating_sub(skipped);
            let found = found.min(buf.len());
            buf[..found].copy_from_slice(&sectors[skipped..skipped + found]);
            Ok(found)
        })
    }
}
