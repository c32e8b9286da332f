//! Files that are complete and have to be durable, many of them.
//!
//! A new file that is synced costs a commit of the file system's journal, for which others wait who sync theirs, as the
//! server does at each commit. So they are synced many at a time: each is written from the moment it is complete on,
//! and the first sync has the journal committed for all (ext4, 200 files of 10 KB: 0.25 s instead of 0.47).

use super::BackupError;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// So many stay open.
const OPEN_FILES: usize = 128;

/// Files that are complete, and not durable yet.
#[derive(Default)]
pub struct Complete(Vec<(PathBuf, File)>);

impl Complete {
    /// The file at `path` has its bytes.
    pub fn add(&mut self, path: PathBuf, file: File) -> Result<(), BackupError> {
        begin_to_write(&file);
        self.0.push((path, file));
        match self.0.len() < OPEN_FILES {
            true => Ok(()),
            false => self.sync(),
        }
    }

    /// Makes all of them durable, their names not.
    pub fn sync(&mut self) -> Result<(), BackupError> {
        let mut files = std::mem::take(&mut self.0).into_iter();
        files.try_for_each(|(path, file)| file.sync_all().map_err(BackupError::io("cannot sync", &path)))
    }
}

/// Has the kernel write what it has of a file, and allocate space for it, without waiting for that.
fn begin_to_write(file: &File) {
    // SAFETY: it takes numbers only, and the descriptor is open. What fails here fails when the file is synced.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}
