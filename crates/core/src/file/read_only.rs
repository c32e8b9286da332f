//! A file system through which nothing is changed: for a look at files that must stay as they are, or that nobody can
//! write to.

use std::path::Path;
use std::sync::Arc;

use super::{Directory, File, FileSystem, OpenMode};
use crate::{Error, Result};

/// Opens every file for reading and refuses what would change anything. To sync a directory is no error: there is
/// nothing to sync.
pub struct ReadOnlyFileSystem(pub Arc<dyn FileSystem>);

/// A directory in which there is nothing to sync.
struct Unchanged;

impl Directory for Unchanged {
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

fn refused<T>(operation: &str, path: &Path) -> Result<T> {
    Err(Error::ReadOnly(format!("the files are opened for reading: no {operation} of {}", path.display())))
}

impl FileSystem for ReadOnlyFileSystem {
    fn open(&self, path: &Path, _mode: OpenMode) -> Result<Arc<dyn File>> {
        self.0.open(path, OpenMode::ReadOnly)
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        refused("creation", path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        match self.0.exists(path)? {
            true => Ok(()),
            false => refused("creation", path),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.0.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.0.exists(path)
    }

    fn rename(&self, from: &Path, _to: &Path) -> Result<()> {
        refused("renaming", from)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        refused("removal", path)
    }

    fn open_dir(&self, _dir: &Path) -> Result<Arc<dyn Directory>> {
        Ok(Arc::new(Unchanged))
    }

    fn is_read_only(&self) -> bool {
        true
    }

    /// Where nothing can be written there is no lock, and nobody who writes.
    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        if !self.0.exists(path)? {
            return Ok(Box::new(()));
        }
        match self.0.lock_exclusive(path) {
            Err(Error::Io { .. }) => Ok(Box::new(())),
            other => other,
        }
    }
}
