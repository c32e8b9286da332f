//! `teak backup unpack`: a directory from the stream of a backup.

use super::layout::{self, create_dirs, Description};
use super::mbstream::{Chunk, Reader};
use super::pace::Pace;
use super::BackupError;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Files that are open at a time; the others are closed, and durable.
const OPEN_FILES: usize = 128;

/// Files below a directory, written at any place in any order.
struct Unpacked<'a> {
    dir: &'a Path,
    open: BTreeMap<String, File>,
}

/// Writes what `input` has into `dir`, which is empty. What the backup is, if the stream is that of a backup, and
/// whole.
pub fn unpack(input: impl Read, dir: &Path, pace: &Pace) -> Result<Description, BackupError> {
    let mut reader = Reader::new(input);
    let mut files = Unpacked { dir, open: BTreeMap::new() };
    let broken = |error| BackupError::Io { what: "cannot read the stream".into(), error };
    while let Some(chunk) = reader.next().map_err(broken)? {
        match chunk {
            Chunk::Piece { path, offset, anew } => files.piece(&path, offset, anew, reader.piece())?,
            Chunk::Seek { path, offset } => files.lengthen(&path, offset)?,
            Chunk::End { path } => files.close(&path)?,
            Chunk::Rename { path, to } => files.rename(&path, &to)?,
            Chunk::Remove { path } => files.remove(&path)?,
        }
        pace.wrote(reader.piece().len() as u64)?;
    }
    while let Some(path) = files.open.keys().next().cloned() {
        files.close(&path)?;
    }
    super::sync_dirs(dir)?;
    Description::read(dir)
}

impl Unpacked<'_> {
    fn opened(&mut self, path: &str) -> Result<&File, BackupError> {
        if !self.open.contains_key(path) {
            if self.open.len() >= OPEN_FILES {
                // The one in the middle: those at both ends are no likelier to be needed again than any other.
                let key = self.open.keys().nth(OPEN_FILES / 2).cloned().unwrap_or_default();
                self.close(&key)?;
            }
            let on_disk = self.dir.join(path);
            on_disk.parent().map_or(Ok(()), create_dirs)?;
            let mut options = File::options();
            options.write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(&on_disk).map_err(BackupError::io("cannot open", &on_disk))?;
            self.open.insert(path.to_string(), file);
        }
        self.open.get(path).ok_or(BackupError::Stopped)
    }

    fn piece(&mut self, path: &str, offset: u64, anew: bool, bytes: &[u8]) -> Result<(), BackupError> {
        let on_disk = self.dir.join(path);
        let file = self.opened(path)?;
        let emptied = if anew { file.set_len(0) } else { Ok(()) };
        let written = emptied.and_then(|()| file.write_all_at(bytes, offset));
        written.map_err(BackupError::io("cannot write", &on_disk))
    }

    fn lengthen(&mut self, path: &str, bytes: u64) -> Result<(), BackupError> {
        let on_disk = self.dir.join(path);
        let file = self.opened(path)?;
        let lengthened = file.metadata().and_then(|metadata| match metadata.len() < bytes {
            true => file.set_len(bytes),
            false => Ok(()),
        });
        lengthened.map_err(BackupError::io("cannot write", &on_disk))
    }

    fn close(&mut self, path: &str) -> Result<(), BackupError> {
        match self.open.remove(path) {
            Some(file) => file.sync_all().map_err(BackupError::io("cannot sync", &self.dir.join(path))),
            None => Ok(()),
        }
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), BackupError> {
        self.close(path)?;
        self.close(to)?;
        let (from_disk, to_disk) = (self.dir.join(path), self.dir.join(to));
        std::fs::rename(&from_disk, &to_disk).map_err(BackupError::io("cannot rename", &from_disk))
    }

    fn remove(&mut self, path: &str) -> Result<(), BackupError> {
        self.open.remove(path);
        let on_disk = self.dir.join(path);
        std::fs::remove_file(&on_disk).map_err(BackupError::io("cannot remove", &on_disk))
    }
}

/// The command: standard input into a new directory.
pub fn run(dir: &Path, quiet: bool) -> Result<(), BackupError> {
    crate::signals::catch();
    layout::create_empty_dir(dir)?;
    let pace = Pace::new(0, quiet);
    pace.phase("unpack");
    let unpacked = unpack(std::io::stdin().lock(), dir, &pace);
    pace.clear();
    unpacked.map(drop)
}
