//! The second copy of a space's file. The system space has one: a bad sector in it would otherwise take all tables with
//! it, and its blocks are few and small.
//!
//! The twin `s0.copy` has the bytes of `s0.teak` at the same offsets. Each write goes to both, and a sync covers both,
//! so an image that is durable is durable twice. A block that cannot be read from the one, or fails its checksum there,
//! is read from the other and written back. What the two disagree about beyond that does not matter: checksums lie with
//! the parents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sync::Mutex;

use super::open_files::{OpenFiles, TableFile};
use crate::file::{File, FileSystem, OpenMode};
use crate::{Error, Result};

/// How much is copied at a time, in bytes; what of it cannot be read becomes zeros, which no checksum fits.
const COPIED_BYTES: usize = 4096;

/// The twin of one file.
pub(super) struct Twin {
    pub file: Arc<TableFile>,
    /// What had to be read from here, to be told to the operator.
    remarks: Mutex<Vec<String>>,
}

/// Where the twin of the file at `path` is.
fn twin_path(path: &Path) -> PathBuf {
    path.with_extension("copy")
}

impl Twin {
    /// Makes the twin of a new file, durably.
    pub fn create(files: &Arc<OpenFiles>, path: &Path, header: &[u8]) -> Result<Twin> {
        let twin = twin_path(path);
        let file = files.fs().open(&twin, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_at(0, header)?;
        file.sync()?;
        path.parent().map_or(Ok(()), |dir| files.fs().sync_dir(dir))?;
        Ok(Twin::of(files, &twin, file))
    }

    /// Opens the twin, or makes it if there is none; makes the file itself anew if that is gone. `is_header` knows a
    /// header that is intact; one that is not is replaced by the other's.
    pub fn open(
        files: &Arc<OpenFiles>,
        path: &Path,
        header_bytes: usize,
        is_header: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Twin> {
        let (fs, twin) = (files.fs(), twin_path(path));
        let mut remarks = Vec::new();
        if fs.is_read_only() {
            return Ok(Twin::of(files, &twin, fs.open(&twin, OpenMode::ReadOnly)?));
        }
        match (fs.exists(path)?, fs.exists(&twin)?) {
            (true, false) => copy(fs, path, &twin)?,
            (false, true) => {
                copy(fs, &twin, path)?;
                remarks.push(format!(
                    "{} was missing and was made anew from {}",
                    path.display(),
                    twin.display()
                ));
            }
            _ => {}
        }
        for (broken, whole) in [(path, &*twin), (&*twin, path)] {
            let header = |of: &Path| -> Option<Vec<u8>> {
                let mut bytes = vec![0; header_bytes];
                let read = fs.open(of, OpenMode::ReadOnly).and_then(|file| file.read_exact_at(0, &mut bytes));
                read.ok().map(|()| bytes).filter(|bytes| is_header(bytes))
            };
            if let (None, Some(bytes)) = (header(broken), header(whole)) {
                let file = fs.open(broken, OpenMode::Existing)?;
                file.write_at(0, &bytes)?;
                file.sync()?;
                remarks.push(format!("the header of {} was damaged and was written again", broken.display()));
            }
        }
        let opened = Twin::of(files, &twin, fs.open(&twin, OpenMode::Existing)?);
        *opened.remarks.lock() = remarks;
        Ok(opened)
    }

    fn of(files: &Arc<OpenFiles>, path: &Path, file: Arc<dyn File>) -> Twin {
        Twin { file: TableFile::new(files, path, file), remarks: Mutex::default() }
    }

    /// A block at `offset` of `original` could not be read, because of `error`: `read` gets it from the twin, and it is
    /// written back.
    pub fn rescue(
        &self,
        original: &Arc<TableFile>,
        offset: u64,
        bytes: &mut [u8],
        error: Error,
        read: impl FnOnce(&Arc<TableFile>, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let error = match read(&self.file, bytes) {
            Ok(()) => error,
            Err(_) => return Err(error),
        };
        // Whether this works or not, the twin has it; the next sync of the space covers it.
        let written = match original.write_at(offset, bytes) {
            Ok(()) => "written back",
            Err(_) => "not written back",
        };
        let remark = format!("a block was read from {} and {written}: {error}", self.file.path().display());
        self.remarks.lock().push(remark);
        Ok(())
    }

    /// What was said since the last call.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut self.remarks.lock())
    }
}

/// Copies a file under another name, durably; a crash leaves it whole or not at all.
fn copy(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<()> {
    let new = to.with_extension("new");
    let source = fs.open(from, OpenMode::ReadOnly)?;
    let target = fs.open(&new, OpenMode::Create)?;
    target.set_len(0)?;
    let mut buffer = [0; COPIED_BYTES];
    for offset in (0..source.len()?).step_by(COPIED_BYTES) {
        let found = match source.read_at(offset, &mut buffer) {
            Ok(found) => found,
            Err(Error::Io { operation: "read", .. }) => continue,
            Err(error) => return Err(error),
        };
        target.write_at(offset, &buffer[..found])?;
    }
    target.sync()?;
    fs.rename(&new, to)?;
    to.parent().map_or(Ok(()), |dir| fs.sync_dir(dir))
}
