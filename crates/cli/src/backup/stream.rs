//! A backup as one stream of bytes, in the form of `mbstream`: the target of the engine's copy, and of the rest.
//!
//! Pieces of the engine's files come in any order, also twice for the same place; the last one counts, since it is of a
//! later image. `backup.json` is the last file, so that a stream that was cut is no backup.

use super::mbstream::{self, Chunk};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use teak_core::file::{Directory, File, FileSystem, OpenMode};
use teak_core::{Error, Result};

/// What is written to, by several threads.
#[derive(Clone)]
pub struct Stream(Arc<Mutex<dyn Write + Send>>);

impl Stream {
    pub fn new(output: impl Write + Send + 'static) -> Stream {
        Stream(Arc::new(Mutex::new(output)))
    }

    /// Writes one chunk, `bytes` being those of a piece.
    pub fn write(&self, chunk: &Chunk, bytes: &[u8]) -> std::io::Result<()> {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mbstream::write(&mut *output, chunk, bytes)
    }

    /// Writes a whole file.
    pub fn write_file(&self, path: &str, bytes: &[u8]) -> std::io::Result<()> {
        let path = || path.to_string();
        self.write(&Chunk::Piece { path: path(), offset: 0, anew: false }, bytes)?;
        self.write(&Chunk::End { path: path() }, &[])
    }

    pub fn flush(&self) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// The engine's copy is written into a stream: paths below the directory "" are those in the stream. Nothing can be
/// read.
pub struct StreamFileSystem(pub Stream);

struct StreamFile {
    stream: Stream,
    path: PathBuf,
}

struct StreamDirectory;

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |error| Error::io("write to the stream", path, &error)
}

fn unsupported(operation: &'static str, path: &Path) -> Error {
    Error::io(operation, path, &std::io::ErrorKind::Unsupported.into())
}

impl FileSystem for StreamFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        match mode {
            OpenMode::Create => Ok(Arc::new(StreamFile { stream: self.0.clone(), path: path.to_path_buf() })),
            _ => Err(unsupported("open", path)),
        }
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        Err(unsupported("open", path))
    }

    fn create_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        Err(unsupported("list", dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Err(unsupported("look for", path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let chunk = Chunk::Rename { path: name(from), to: name(to) };
        self.0.write(&chunk, &[]).map_err(failed(from))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.write(&Chunk::Remove { path: name(path) }, &[]).map_err(failed(path))
    }

    fn open_dir(&self, _: &Path) -> Result<Arc<dyn Directory>> {
        Ok(Arc::new(StreamDirectory))
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        Err(unsupported("lock", path))
    }
}

impl Directory for StreamDirectory {
    /// Who receives the stream makes it durable.
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

impl File for StreamFile {
    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
        Err(unsupported("read", &self.path))
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let chunk = Chunk::Piece { path: name(&self.path), offset, anew: false };
        self.stream.write(&chunk, buf).map_err(failed(&self.path))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Err(unsupported("look at", &self.path))
    }

    /// Files grow only: 0 is the length that they have at first.
    fn set_len(&self, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let chunk = Chunk::Seek { path: name(&self.path), offset: bytes };
        self.stream.write(&chunk, &[]).map_err(failed(&self.path))
    }

    fn punch_hole(&self, _: u64, _: u64) -> Result<bool> {
        Ok(false)
    }

    fn allocated_bytes(&self) -> Result<u64> {
        Err(unsupported("look at", &self.path))
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        Arc::new(StreamFile { stream: self.stream.clone(), path: path.to_path_buf() })
    }
}
