//! A directory of a test's own.

use std::path::PathBuf;

/// It goes with its owner.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// An empty one, among the system's temporary files.
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("teak-{name}-{}", std::process::id()));
        // Of a process with this number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
