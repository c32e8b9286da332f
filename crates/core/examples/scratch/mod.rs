//! A directory for a program that cleans up after itself.

use std::path::{Path, PathBuf};

/// Removed when it is dropped.
pub struct Directory(PathBuf);

impl Directory {
    /// A new one below the system's directory for temporary files.
    pub fn new(program: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("teak-{program}-{}", std::process::id()));
        // Of a process with this number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        Directory(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
