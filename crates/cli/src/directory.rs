//! Opening an engine directory for a look.

use crate::Failure;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_console::terminal;
use teak_core::file::{FileSystem, RealFileSystem};
use teak_core::server::{is_engine, Checkpoint, Engine};
use teak_core::{ForceRecovery, LogLevel, Observer, Options};

/// Where a server's data directory has the engine's.
pub const IN_DATADIR: &str = "#teak";

/// Prints messages of the engine: all, or errors only.
struct Messages {
    errors_only: bool,
}

impl Observer for Messages {
    fn message(&self, level: LogLevel, text: &str) {
        if self.errors_only && level != LogLevel::Error {
            return;
        }
        let level = match level {
            LogLevel::Note => "note",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
        };
        terminal::message(&format!("{level}: {text}"));
    }
}

/// The engine's directory that is meant by `dir`: itself, or what it has in it if it is a server's data directory.
fn engine_directory(dir: &Path) -> Result<PathBuf, Failure> {
    for candidate in [dir.to_path_buf(), dir.join(IN_DATADIR)] {
        if is_engine(&RealFileSystem, &candidate)? {
            return Ok(candidate);
        }
    }
    Err(Failure::NoEngine(dir.to_path_buf()))
}

/// The newest checkpoint of the directory.
pub fn checkpoint(dir: &Path) -> Result<Checkpoint, Failure> {
    let newest = Checkpoint::newest(&RealFileSystem, &engine_directory(dir)?)?;
    newest.ok_or_else(|| Failure::NoEngine(dir.to_path_buf()))
}

/// Opens the engine, which must be there and not in use. Dropped, not closed: the next start recovers the same again.
pub fn open(dir: &Path) -> Result<Engine, Failure> {
    open_with(dir, ForceRecovery::Off)
}

/// The same, with what is done about damage.
pub fn open_with(dir: &Path, force_recovery: ForceRecovery) -> Result<Engine, Failure> {
    let dir = engine_directory(dir)?;
    let observer = Arc::new(Messages { errors_only: false });
    let options = Options { background: false, force_recovery, observer, ..Options::new(dir) };
    Ok(Engine::open(Arc::new(RealFileSystem), options)?)
}

/// Opens the engine of a backup in `dir` of a file system, in which nothing changes. Damage is passed over where that
/// is possible, and told of.
pub fn open_unchanged(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Engine, Failure> {
    let options = Options {
        background: false,
        force_recovery: ForceRecovery::ReadOnly,
        partial: true,
        observer: Arc::new(Messages { errors_only: true }),
        temp_dir: std::env::temp_dir(),
        ..Options::new(dir)
    };
    Ok(Engine::open(fs, options)?)
}

/// Recovers the engine of a backup in `dir`, and leaves it as one that was shut down.
pub fn recover(dir: &Path) -> Result<(), Failure> {
    let observer = Arc::new(Messages { errors_only: true });
    let options = Options { partial: true, observer, ..Options::new(dir) };
    Ok(Engine::open(Arc::new(RealFileSystem), options)?.close()?)
}
