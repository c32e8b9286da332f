//! Where a backup goes: a directory, or a stream.

use super::layout::{self, create_dirs, create_file, Description};
use super::mbstream::Chunk;
use super::stream::{Stream, StreamFileSystem};
use super::BackupError;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_core::file::{FileSystem, RealFileSystem};
use teak_core::server::ExtentList;

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
                Ok(Box::new(Below { dir, open: BTreeMap::new() }))
            }
            Target::Stream(stream) => Ok(Box::new(stream.clone())),
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

/// Where files are written from their beginning to their end.
pub trait Place: Send {
    /// The next bytes of a file; `offset` is where they go. `anew`: what it had goes first.
    fn write(&mut self, path: &str, offset: u64, anew: bool, bytes: &[u8]) -> Result<(), BackupError>;
    /// There are zeros up to `offset`.
    fn hole(&mut self, path: &str, offset: u64) -> Result<(), BackupError>;
    /// It is complete.
    fn end(&mut self, path: &str) -> Result<(), BackupError>;
    fn rename(&mut self, path: &str, to: &str) -> Result<(), BackupError>;
    fn remove(&mut self, path: &str) -> Result<(), BackupError>;
}

/// Files below a directory; each is durable at its end.
struct Below {
    dir: PathBuf,
    open: BTreeMap<String, File>,
}

impl Below {
    fn opened(&mut self, path: &str, anew: bool) -> Result<&mut File, BackupError> {
        if !self.open.contains_key(path) {
            let on_disk = self.dir.join(path);
            on_disk.parent().map_or(Ok(()), create_dirs)?;
            if anew && on_disk.exists() {
                std::fs::remove_file(&on_disk).map_err(BackupError::io("cannot remove", &on_disk))?;
            }
            self.open.insert(path.to_string(), create_file(&on_disk)?);
        }
        self.open.get_mut(path).ok_or(BackupError::Stopped)
    }
}

impl Place for Below {
    fn write(&mut self, path: &str, _: u64, anew: bool, bytes: &[u8]) -> Result<(), BackupError> {
        let on_disk = self.dir.join(path);
        self.opened(path, anew)?.write_all(bytes).map_err(BackupError::io("cannot write", &on_disk))
    }

    fn hole(&mut self, path: &str, offset: u64) -> Result<(), BackupError> {
        let on_disk = self.dir.join(path);
        let file = self.opened(path, false)?;
        let sought = file.set_len(offset).and_then(|()| file.seek(SeekFrom::Start(offset)));
        sought.map(drop).map_err(BackupError::io("cannot write", &on_disk))
    }

    fn end(&mut self, path: &str) -> Result<(), BackupError> {
        // A file without bytes was not opened yet.
        self.opened(path, false)?;
        match self.open.remove(path) {
            Some(file) => file.sync_all().map_err(BackupError::io("cannot sync", &self.dir.join(path))),
            None => Ok(()),
        }
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), BackupError> {
        let (from_disk, to_disk) = (self.dir.join(path), self.dir.join(to));
        to_disk.parent().map_or(Ok(()), create_dirs)?;
        std::fs::rename(&from_disk, &to_disk).map_err(BackupError::io("cannot rename", &from_disk))?;
        if let Some(file) = self.open.remove(path) {
            self.open.insert(to.to_string(), file);
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), BackupError> {
        self.open.remove(path);
        let on_disk = self.dir.join(path);
        std::fs::remove_file(&on_disk).map_err(BackupError::io("cannot remove", &on_disk))
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
}
