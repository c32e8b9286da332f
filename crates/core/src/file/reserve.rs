//! A reserve of disk space, so that a full disk can be emptied.
//!
//! Whatever gives space back has to write first: a DELETE its log, a DROP TABLE its commit, a checkpoint the image that
//! no longer names what was deleted. So a file of zeros lies beside the engine's files. When a write of the log or of a
//! checkpoint finds the disk full, the file is cut and the write tried again; from then on writes that need more space
//! are refused before they begin ([`DiskReserve::is_spent`]), and what deletes goes on. When there is space again the
//! file is filled, and everything is as before.
//!
//! ```text
//! | kept for the log: a quarter |           for checkpoints: the rest           |
//!                       given away from here, to the log in pieces of a sixteenth <─┘
//! ```
//!
//! A checkpoint takes what it can get, and on a full disk it may fail all the same. What deletes must not be refused
//! meanwhile, and needs little: so the log has a share that no checkpoint gets, and gives up as little of it at a
//! time as may do, since whoever writes at that moment takes it.
//!
//! On a file system that others write to they may take what the reserve gave up. On one that compresses, or shares
//! blocks, zeros reserve nothing: then a full disk is as it was without a reserve.

use crate::sync::atomic::{AtomicBool, Ordering};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sync::Mutex;

use super::{File, FileSystem, OpenMode};
use crate::{Error, Result};

/// Bytes written at a time.
const PIECE: usize = 1 << 20;

/// One part in so many is for the log alone.
const LOG_SHARE: u64 = 4;

/// The log gets one part in so many at a time.
const LOG_PIECES: u64 = 16;

/// See the module. Without bytes there is none, and a full disk is an error at once.
pub struct DiskReserve {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    bytes: u64,
    spent: AtomicBool,
    /// Held over filling and emptying.
    file: Mutex<()>,
}

impl DiskReserve {
    /// A reserve of `bytes` at `path`; it is there once [`DiskReserve::fill`] has been called.
    pub fn new(fs: Arc<dyn FileSystem>, path: &Path, bytes: u64) -> DiskReserve {
        let (path, spent) = (path.to_owned(), AtomicBool::new(false));
        DiskReserve { fs, path, bytes, spent, file: Mutex::new(()) }
    }

    /// Whether the disk was full and has not had room for the reserve since.
    #[inline]
    pub fn is_spent(&self) -> bool {
        // Relaxed: a hint to refuse early; who is not refused finds the disk full.
        self.spent.load(Ordering::Relaxed)
    }

    /// Gives space for a checkpoint back to the file system: all but what is kept for the log. Whether there was any:
    /// then what failed is worth another try.
    pub fn spend_for_checkpoint(&self) -> bool {
        self.cut(|_| self.log_share())
    }

    /// Gives a little back for the log, or for a change of the catalog. Whether there was any, as above.
    pub fn spend_for_log(&self) -> bool {
        self.cut(|length| length.saturating_sub(self.bytes.div_ceil(LOG_PIECES)))
    }

    fn log_share(&self) -> u64 {
        self.bytes / LOG_SHARE
    }

    /// Leaves as much of its length as `kept` says.
    fn cut(&self, kept: impl Fn(u64) -> u64) -> bool {
        if self.bytes == 0 {
            return false;
        }
        let _file = self.file.lock();
        let file = match self.fs.open(&self.path, OpenMode::Existing) {
            // It has its space still, for the next attempt.
            Err(Error::NoDescriptor { .. }) => return false,
            file => file,
        };
        // Relaxed: see `is_spent`.
        self.spent.store(true, Ordering::Relaxed);
        let cut = || -> Result<bool> {
            let file = file?;
            let length = file.len()?;
            let kept = kept(length);
            if kept < length {
                file.set_len(kept)?;
            }
            Ok(kept < length)
        };
        matches!(cut(), Ok(true))
    }

    /// Takes the space, if the disk has it; an error leaves the reserve spent, and what it took so far is given back
    /// but for the log's share.
    pub fn fill(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let _file = self.file.lock();
        let filled = self.take_space();
        // Relaxed: see `is_spent`.
        self.spent.store(filled.is_err(), Ordering::Relaxed);
        filled
    }

    fn take_space(&self) -> Result<()> {
        let file = self.fs.open(&self.path, OpenMode::Create)?;
        if file.allocated_bytes()? >= self.bytes {
            return Ok(());
        }
        let written = self.write_zeros(&*file);
        if written.is_err() && file.len()? > self.log_share() {
            file.set_len(self.log_share())?;
        }
        written
    }

    fn write_zeros(&self, file: &dyn File) -> Result<()> {
        let piece = vec![0; PIECE.min(usize::try_from(self.bytes).unwrap_or(PIECE))];
        let mut at = 0;
        while at < self.bytes {
            let length = (self.bytes - at).min(piece.len() as u64) as usize;
            file.write_at(at, &piece[..length])?;
            at += length as u64;
        }
        // Some file systems find out only now that they have no room.
        file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fault, SimulatedFileSystem};
    use super::*;

    fn reserve(fs: &SimulatedFileSystem, bytes: u64) -> DiskReserve {
        fs.create_dir(Path::new("/d")).unwrap();
        DiskReserve::new(Arc::new(fs.clone()), Path::new("/d/teak.reserve"), bytes)
    }

    fn length(fs: &SimulatedFileSystem) -> u64 {
        fs.open(Path::new("/d/teak.reserve"), OpenMode::Create).unwrap().len().unwrap()
    }

    #[test]
    fn a_checkpoint_leaves_the_log_its_share_and_all_is_filled_again() {
        let fs = SimulatedFileSystem::new(1);
        let reserve = reserve(&fs, 160_000);
        reserve.fill().unwrap();
        assert_eq!((length(&fs), reserve.is_spent()), (160_000, false));
        assert!(reserve.spend_for_log());
        assert_eq!((length(&fs), reserve.is_spent()), (150_000, true));
        assert!(reserve.spend_for_checkpoint());
        assert_eq!((length(&fs), reserve.is_spent()), (40_000, true));
        assert!(!reserve.spend_for_checkpoint(), "the rest is not for checkpoints");
        for _ in 0..4 {
            assert!(reserve.spend_for_log());
        }
        assert!(!reserve.spend_for_log() && length(&fs) == 0, "there is nothing left to give");
        reserve.fill().unwrap();
        assert_eq!((length(&fs), reserve.is_spent()), (160_000, false));
    }

    #[test]
    fn on_a_full_disk_it_takes_no_more_than_the_share_of_the_log() {
        let fs = SimulatedFileSystem::new(1);
        let reserve = reserve(&fs, 8 << 20);
        // After three of its pieces there is no more room.
        fs.fail_from(4, Fault::Enospc);
        assert!(matches!(reserve.fill(), Err(Error::DiskFull { .. })));
        assert_eq!((length(&fs), reserve.is_spent()), (2 << 20, true));
        assert!(!reserve.spend_for_checkpoint() && reserve.spend_for_log());
    }

    #[test]
    fn without_bytes_there_is_none() {
        let fs = SimulatedFileSystem::new(1);
        let reserve = reserve(&fs, 0);
        reserve.fill().unwrap();
        assert!(!reserve.is_spent() && !reserve.spend_for_log() && !reserve.spend_for_checkpoint());
    }
}
