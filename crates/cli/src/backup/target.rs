//! Where a backup goes: a directory, or a stream.

use super::complete::Complete;
use super::layout::{self, create_dirs, Description};
use super::mbstream::Chunk;
use super::messages::Messages;
use super::stream::{Stream, StreamFileSystem};
use super::BackupError;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_core::file::{FileSystem, RealFileSystem};
use teak_core::server::ExtentList;

/// Files that are open at a time; the others are closed, and durable.
const OPEN_FILES: usize = 128;

/// A directory, or a stream.
#[derive(Clone)]
pub enum Target {
    Directory(PathBuf),
    Stream(Stream),
}

impl Target {
    /// `-` is standard output.
    pub fn of(dir: &Path) -> Result<Target, BackupError> {
        use std::io::IsTerminal;
        if dir != Path::new("-") {
            layout::create_empty_dir(dir)?;
            return Ok(Target::Directory(dir.to_path_buf()));
        }
        match std::io::stdout().is_terminal() {
            true => Err(BackupError::Usage("a backup is not written to a terminal: redirect it".into())),
            false => Ok(Target::Stream(Stream::new(std::io::stdout()))),
        }
    }

    /// Where the engine's copy goes, and in which directory.
    pub fn engine(&self) -> (Arc<dyn FileSystem>, PathBuf) {
        match self {
            Target::Directory(dir) => (Arc::new(RealFileSystem), dir.join(layout::ENGINE)),
            Target::Stream(stream) => (Arc::new(StreamFileSystem(stream.clone())), layout::ENGINE.into()),
        }
    }

    /// Where the rest of the server goes.
    pub fn server(&self) -> Result<Box<dyn Place>, BackupError> {
        match self {
            Target::Directory(dir) => {
                let dir = dir.join(layout::SERVER);
                create_dirs(&dir)?;
                Ok(Box::new(FilesBelow::new(dir)))
            }
            Target::Stream(stream) => Ok(Box::new(stream.clone())),
        }
    }

    /// Where mariadb-backup's messages go: into the backup, unless that is a stream.
    pub fn messages(&self) -> Result<Messages, BackupError> {
        match self {
            Target::Directory(dir) => Messages::at(&dir.join(layout::MESSAGES)),
            Target::Stream(_) => Messages::unnamed(),
        }
    }

    /// Writes a whole file.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        match self {
            Target::Directory(dir) => layout::write_file(&dir.join(name), bytes),
            Target::Stream(stream) => stream.write_file(name, bytes).map_err(to_stream),
        }
    }

    /// Writes what makes it a backup, when all else is there.
    pub fn finish(&self, list: &ExtentList, description: &Description) -> Result<(), BackupError> {
        self.write_file(layout::EXTENTS, &list.encode())?;
        match self {
            Target::Directory(dir) => {
                let server = dir.join(layout::SERVER);
                // Without one it is for incremental backups only.
                if server.exists() {
                    super::sync_dirs(&server)?;
                }
                description.write(dir)
            }
            Target::Stream(stream) => {
                self.write_file(layout::DESCRIPTION, &description.encode()?)?;
                stream.flush().map_err(to_stream)
            }
        }
    }
}

fn to_stream(error: std::io::Error) -> BackupError {
    BackupError::Io { what: "cannot write to the stream".into(), error }
}

/// Where files are written.
pub trait Place: Send {
    /// Bytes of a file, which begin at `offset`. `anew`: what it had goes first.
    fn write(&mut self, path: &str, offset: u64, anew: bool, bytes: &[u8]) -> Result<(), BackupError>;
    /// It is so long at least: where nothing was written are zeros.
    fn hole(&mut self, path: &str, offset: u64) -> Result<(), BackupError>;
    /// It is complete, perhaps without any bytes.
    fn end(&mut self, path: &str) -> Result<(), BackupError>;
    fn rename(&mut self, path: &str, to: &str) -> Result<(), BackupError>;
    fn remove(&mut self, path: &str) -> Result<(), BackupError>;
    /// All that was written is durable, but for names.
    fn sync(&mut self) -> Result<(), BackupError>;
}

/// Files below a directory, written at any place in any order. Each is made durable when it is closed: at its end, or
/// before that, to be opened again.
pub struct FilesBelow {
    dir: PathBuf,
    open: BTreeMap<String, File>,
    complete: Complete,
}

impl FilesBelow {
    /// `dir` is there, and empty.
    pub fn new(dir: PathBuf) -> FilesBelow {
        FilesBelow { dir, open: BTreeMap::new(), complete: Complete::default() }
    }

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

    fn close(&mut self, path: &str) -> Result<(), BackupError> {
        match self.open.remove(path) {
            Some(file) => self.complete.add(self.dir.join(path), file),
            None => Ok(()),
        }
    }
}

impl Place for FilesBelow {
    fn write(&mut self, path: &str, offset: u64, anew: bool, bytes: &[u8]) -> Result<(), BackupError> {
        let on_disk = self.dir.join(path);
        let file = self.opened(path)?;
        let emptied = if anew { file.set_len(0) } else { Ok(()) };
        let written = emptied.and_then(|()| file.write_all_at(bytes, offset));
        written.map_err(BackupError::io("cannot write", &on_disk))
    }

    fn hole(&mut self, path: &str, offset: u64) -> Result<(), BackupError> {
        let on_disk = self.dir.join(path);
        let file = self.opened(path)?;
        let lengthened = file.metadata().and_then(|metadata| match metadata.len() < offset {
            true => file.set_len(offset),
            false => Ok(()),
        });
        lengthened.map_err(BackupError::io("cannot write", &on_disk))
    }

    fn end(&mut self, path: &str) -> Result<(), BackupError> {
        // One without bytes is not there yet.
        self.opened(path)?;
        self.close(path)
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), BackupError> {
        self.close(path)?;
        self.close(to)?;
        let (from_disk, to_disk) = (self.dir.join(path), self.dir.join(to));
        to_disk.parent().map_or(Ok(()), create_dirs)?;
        std::fs::rename(&from_disk, &to_disk).map_err(BackupError::io("cannot rename", &from_disk))
    }

    fn remove(&mut self, path: &str) -> Result<(), BackupError> {
        self.open.remove(path);
        let on_disk = self.dir.join(path);
        std::fs::remove_file(&on_disk).map_err(BackupError::io("cannot remove", &on_disk))
    }

    fn sync(&mut self) -> Result<(), BackupError> {
        while let Some(path) = self.open.keys().next().cloned() {
            self.close(&path)?;
        }
        self.complete.sync()
    }
}

fn in_stream(path: &str) -> String {
    format!("{}/{path}", layout::SERVER)
}

impl Place for Stream {
    fn write(&mut self, path: &str, offset: u64, anew: bool, bytes: &[u8]) -> Result<(), BackupError> {
        let chunk = Chunk::Piece { path: in_stream(path), offset, anew };
        Stream::write(self, &chunk, bytes).map_err(to_stream)
    }

    fn hole(&mut self, path: &str, offset: u64) -> Result<(), BackupError> {
        Stream::write(self, &Chunk::Seek { path: in_stream(path), offset }, &[]).map_err(to_stream)
    }

    fn end(&mut self, path: &str) -> Result<(), BackupError> {
        let piece = Chunk::Piece { path: in_stream(path), offset: 0, anew: false };
        Stream::write(self, &piece, &[]).map_err(to_stream)?;
        Stream::write(self, &Chunk::End { path: in_stream(path) }, &[]).map_err(to_stream)
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), BackupError> {
        let chunk = Chunk::Rename { path: in_stream(path), to: in_stream(to) };
        Stream::write(self, &chunk, &[]).map_err(to_stream)
    }

    fn remove(&mut self, path: &str) -> Result<(), BackupError> {
        Stream::write(self, &Chunk::Remove { path: in_stream(path) }, &[]).map_err(to_stream)
    }

    /// Whoever receives the stream makes it durable.
    fn sync(&mut self) -> Result<(), BackupError> {
        Ok(())
    }
}
