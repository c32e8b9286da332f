//! `teak backup unpack`: a directory from the stream of a backup.

use super::layout::{self, Description};
use super::mbstream::{Chunk, Reader};
use super::pace::Pace;
use super::target::{FilesBelow, Place};
use super::BackupError;
use std::io::Read;
use std::path::Path;

/// Writes what `input` has into `dir`, which is empty. What the backup is, if the stream is that of a backup, and
/// whole.
pub fn unpack(input: impl Read, dir: &Path, pace: &Pace) -> Result<Description, BackupError> {
    let mut reader = Reader::new(input);
    let mut files = FilesBelow::new(dir.to_path_buf());
    let broken = |error| BackupError::Io { what: "cannot read the stream".into(), error };
    while let Some(chunk) = reader.next().map_err(broken)? {
        match chunk {
            Chunk::Piece { path, offset, anew } => files.write(&path, offset, anew, reader.piece())?,
            Chunk::Seek { path, offset } => files.hole(&path, offset)?,
            Chunk::End { path } => files.end(&path)?,
            Chunk::Rename { path, to } => files.rename(&path, &to)?,
            Chunk::Remove { path } => files.remove(&path)?,
        }
        pace.wrote(reader.piece().len() as u64)?;
    }
    files.sync()?;
    super::sync_dirs(dir)?;
    Description::read(dir)
}

/// The command: standard input into a new directory.
pub fn run(dir: &Path, quiet: bool) -> Result<(), BackupError> {
    teak_console::signals::catch();
    layout::create_empty_dir(dir)?;
    let pace = Pace::new(0, quiet);
    pace.phase("unpack");
    let input = teak_console::signals::Input::open()
        .map_err(BackupError::io("reading", Path::new("standard input")))?;
    let unpacked = unpack(input, dir, &pace);
    pace.clear();
    unpacked.map(drop)
}
