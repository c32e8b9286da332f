//! Opening an engine directory for a look.

use crate::Failure;
use std::path::Path;
use std::sync::Arc;
use teak_core::engine::Engine;
use teak_core::file::{FileSystem, RealFileSystem};
use teak_core::store::Superblock;
use teak_core::{LogLevel, Observer, Options};

/// Prints messages of the engine.
struct Messages;

impl Observer for Messages {
    fn message(&self, level: LogLevel, text: &str) {
        let level = match level {
            LogLevel::Note => "note",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
        };
        eprintln!("{level}: {text}");
    }
}

/// The newest superblock of the directory.
pub fn superblock(dir: &Path) -> Result<Superblock, Failure> {
    let superblock = Superblock::read_newest(&RealFileSystem, &dir.join("teak.super"))?;
    superblock.ok_or_else(|| Failure::NoEngine(dir.to_path_buf()))
}

/// Opens the engine, which must be there and not in use. Dropped, not closed: the next start recovers the same again.
pub fn open(dir: &Path) -> Result<Engine, Failure> {
    if !RealFileSystem.exists(&dir.join("teak.super"))? {
        return Err(Failure::NoEngine(dir.to_path_buf()));
    }
    let options = Options { background: false, observer: Arc::new(Messages), ..Options::new(dir) };
    Ok(Engine::open(Arc::new(RealFileSystem), options)?)
}
