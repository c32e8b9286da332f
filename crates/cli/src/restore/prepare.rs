//! `mariadb-backup --prepare`: makes the other engines' files what a server leaves that was shut down.

use crate::backup::companion::path_option;
use crate::backup::messages::Messages;
use crate::backup::BackupError;
use std::path::Path;
use std::process::{Command, Stdio};

/// In which mariadb-backup writes what the server was.
pub const SET_UP: &str = "backup-my.cnf";

/// How it is called.
pub struct Prepare<'a> {
    pub program: &'a Path,
    pub use_memory: Option<&'a str>,
    /// Options of the user, which go before what the backup says.
    pub options: &'a [String],
    /// Where its messages go.
    pub log: &'a Path,
}

impl Prepare<'_> {
    /// Works on the copy in `target`; with what an incremental backup has in `incremental`.
    ///
    /// What the server was has to be known: the size of its pages, its data files, where its keys are. Each backup says
    /// so of itself, as of its own end: keys may have been added since the one below it.
    pub fn run(&self, target: &Path, incremental: Option<&impl AsRef<Path>>) -> Result<(), BackupError> {
        let _ = std::fs::remove_file(self.log);
        let messages = Messages::at(self.log)?;
        let said = incremental.map_or(target, |dir| dir.as_ref()).join(SET_UP);
        let mut command = Command::new(self.program);
        command
            .arg(path_option("defaults-file", &said))
            .arg("--prepare")
            .arg(path_option("target-dir", target))
            .args(incremental.map(|dir| path_option("incremental-dir", dir.as_ref())))
            .args(self.use_memory.map(|bytes| format!("--use-memory={bytes}")))
            .args(self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages.output()?);
        let status = command.status().map_err(BackupError::io("cannot run", self.program))?;
        match status.success() {
            true => Ok(()),
            false => Err(with_advice(messages.failed(status))),
        }
    }
}

/// Where keys are missing, it is said how they are given: the plugin's messages do not know.
fn with_advice(error: BackupError) -> BackupError {
    match error {
        BackupError::Companion { status, place, tail, missed_log } if tail.contains("ncryption") => {
            let tail = format!(
                "{tail}\nThe keys of encrypted tables are needed. If they are elsewhere than on the server that was backed \
                 up, say so: --mariadb-backup-option=--file-key-management-filename=FILE, or what the plugin of the \
                 keys takes"
            );
            BackupError::Companion { status, place, tail, missed_log }
        }
        error => error,
    }
}
