//! `mariadb-backup --prepare`: makes the other engines' files what a server leaves that was shut down.

use crate::backup::companion::path_option;
use crate::backup::messages::Messages;
use crate::backup::BackupError;
use std::path::Path;
use std::process::{Command, Stdio};

/// How it is called.
pub struct Prepare<'a> {
    pub program: &'a Path,
    pub use_memory: Option<&'a str>,
    /// Where its messages go.
    pub log: &'a Path,
}

impl Prepare<'_> {
    /// Works on the copy in `target`; with what an incremental backup has in `incremental`.
    pub fn run(&self, target: &Path, incremental: Option<&impl AsRef<Path>>) -> Result<(), BackupError> {
        let _ = std::fs::remove_file(self.log);
        let messages = Messages::at(self.log)?;
        let mut command = Command::new(self.program);
        command
            .args(["--no-defaults", "--prepare"])
            .arg(path_option("target-dir", target))
            .args(incremental.map(|dir| path_option("incremental-dir", dir.as_ref())))
            .args(self.use_memory.map(|bytes| format!("--use-memory={bytes}")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages.output()?);
        let status = command.status().map_err(BackupError::io("cannot run", self.program))?;
        match status.success() {
            true => Ok(()),
            false => Err(messages.failed(status)),
        }
    }
}
