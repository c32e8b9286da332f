//! The one door to the operating system: every byte that the core keeps on disk passes through [`FileSystem`] and
//! [`File`].
//!
//! [`RealFileSystem`] is the operating system's; [`SimulatedFileSystem`] is its deterministic twin in memory, which
//! loses power, tears writes and fills up on command. Code above this module must be correct under the rules of the
//! twin:
//!
//! - what was written to a file survives a power loss only once [`File::sync`] returned; before that each write may
//!   survive wholly, partly (whole 512-byte sectors) or not at all, independently of earlier and later ones;
//! - a name that was created, renamed or removed is durable only once [`FileSystem::sync_dir`] of its directory
//!   returned;
//! - each call that opens something may find no descriptor left ([`Error::NoDescriptor`]), whatever went well before:
//!   what must not fail for that has its file, or its directory, open already;
//! - a failed `sync` says nothing about which writes survived, and must not be retried in the hope that they do.
//!
//! Files are created with mode 0600 and directories with 0700: they hold the users' data.

mod memory;
mod read_only;
mod real;
mod reserve;
mod simulated;
mod sparing;
#[cfg(test)]
mod tests;
mod unbuffered;

use std::path::Path;
use std::sync::Arc;

use crate::{Error, Result};

pub use memory::{memory_limit, resident_bytes, MemoryLimit};
pub use read_only::ReadOnlyFileSystem;
pub use real::{descriptor_limit, RealFileSystem};
pub use reserve::DiskReserve;
pub use simulated::{Fault, SimulatedFileSystem};
pub use sparing::{IdleFiles, SparingFileSystem};

/// How [`FileSystem::open`] treats a file that does or does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading and writing; it is an error if there is none.
    Existing,
    /// For reading and writing; created empty (mode 0600) if there is none, never truncated.
    Create,
    /// For reading; it is an error if there is none.
    ReadOnly,
}

/// Directories and the names in them. Paths are used as given; nothing is resolved or cached.
pub trait FileSystem: Send + Sync {
    /// Opens the file at `path`. A created name is durable only after [`FileSystem::sync_dir`] of its parent.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;
    /// A new, empty file for reading and writing that nobody else finds and that ends with its last handle, in the
    /// directory of `path`, which is its name in messages. Whatever has that name, also a link that somebody else has
    /// put there, is left alone.
    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Creates one directory (mode 0700), not its parents; it is no error if it exists.
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// The names of the files and directories in `dir`, sorted.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;
    /// Whether there is a file or directory at `path`.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Gives a file another name within the same file system, replacing what had that name. Open files stay open.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes the name of a file. Open files stay readable.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Opens a directory, for its syncs.
    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>>;
    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.open_dir(dir)?.sync()
    }
    /// Takes the exclusive lock on the file at `path` (created if missing) until the result is dropped or the process
    /// dies; [`Error::InUse`] if another holder has it.
    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
    /// Whether it refuses every change.
    fn is_read_only(&self) -> bool {
        false
    }
}

/// An open directory. All methods may be called from any number of threads.
pub trait Directory: Send + Sync {
    /// Makes creations, renames and removals in it durable.
    fn sync(&self) -> Result<()>;
}

/// An open file. All methods may be called from any number of threads.
#[allow(clippy::len_without_is_empty)]
pub trait File: Send + Sync {
    /// Reads at `offset`; returns fewer bytes than asked only at the end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Fills `buf` from `offset`; [`Error::Corrupt`] if the file ends before.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let found = self.read_at(offset, buf)?;
        debug_assert!(found <= buf.len(), "more was read than was asked for");
        if found < buf.len() {
            let detail = format!("the file ends after {found} of {} bytes", buf.len());
            return Err(Error::corrupt(self.path(), offset, detail));
        }
        Ok(())
    }

    /// Fills `buf` like [`File::read_exact_at`], for who does not go on to read what lies behind: the system should
    /// read nothing more than that ahead of time. What it costs a file is a second descriptor, while there are enough.
    fn read_apart_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_exact_at(offset, buf)
    }

    /// Likewise, and the system need not keep what was read: where it can, it does not pass by its cache of files. What
    /// was written before is read, as ever. Another descriptor.
    fn read_unbuffered_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_apart_at(offset, buf)
    }

    /// Writes all of `buf` at `offset`, growing the file as needed. After an error any part of it may have been
    /// written.
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()>;
    /// Makes the content written so far, and the length, durable (fdatasync).
    fn sync(&self) -> Result<()>;
    /// Length in bytes.
    fn len(&self) -> Result<u64>;
    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, bytes: u64) -> Result<()>;
    /// Gives the blocks of a range back to the file system: it reads as zeros, and the file keeps its length. Blocks
    /// are 4096 bytes or what the file system has; of those that are only partly in the range, the part becomes zeros.
    /// Not durable before [`File::sync`]: until then any part of the range may have its old content after a power loss.
    /// A write into it needs space again, and may find the disk full.
    ///
    /// `false`: this file system cannot, and nothing was changed.
    fn punch_hole(&self, offset: u64, bytes: u64) -> Result<bool>;
    /// What it takes from the disk, in bytes: less than its length if it has holes, and a little more if the last block
    /// is not full.
    fn allocated_bytes(&self) -> Result<u64>;
    /// The path under which it was opened.
    fn path(&self) -> &Path;
    /// Whether its descriptor is among the last quarter of those that the process may have. The system gives out the
    /// least number that is free, so most were taken when it was opened.
    fn is_among_last(&self) -> bool {
        false
    }
    /// The same open file after it was renamed, under the name that errors are to tell.
    fn renamed(&self, path: &Path) -> Arc<dyn File>;
}
