//! What `mariadb-backup` has to say: a file, of which the end is shown when it has failed.

use super::{layout, unnamed, BackupError};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

/// So much is shown.
const TAIL_BYTES: u64 = 1500;

/// With this it gives up if it could not read InnoDB's log up to its end within five seconds of no commits, which
/// happens now and then with all of the log in its file. It says nothing about the rest of the server.
const MISSED_LOG: &str = "Was only able to copy log from";

/// A file for it.
pub struct Messages {
    file: File,
    /// None if it has no name: what is not shown is lost.
    path: Option<PathBuf>,
}

impl Messages {
    /// In a new file, which stays.
    pub fn at(path: &Path) -> Result<Messages, BackupError> {
        Ok(Messages { file: layout::create_file(path)?, path: Some(path.to_path_buf()) })
    }

    /// Until the end of this process.
    pub fn unnamed() -> Result<Messages, BackupError> {
        Ok(Messages { file: unnamed::file()?, path: None })
    }

    /// The program is to write them there.
    pub fn output(&self) -> Result<Stdio, BackupError> {
        let what = || "cannot open the messages of mariadb-backup again".to_string();
        self.file.try_clone().map(Stdio::from).map_err(|error| BackupError::Io { what: what(), error })
    }

    /// The program has ended so.
    pub fn failed(&self, status: ExitStatus) -> BackupError {
        let place = self.path.as_ref().map(|path| format!(", which are in {}", path.display()));
        BackupError::Companion {
            status: status.to_string(),
            place: place.unwrap_or_default(),
            missed_log: self.tell_that_log_was_missed(),
            tail: self.tail().unwrap_or_else(|error| format!("(cannot be read: {error})")),
        }
    }

    /// Whether the program has failed for a reason that is gone when it is run again.
    pub fn tell_that_log_was_missed(&self) -> bool {
        self.tail().is_ok_and(|tail| tail.contains(MISSED_LOG))
    }

    fn tail(&self) -> std::io::Result<String> {
        let length = self.file.metadata()?.len();
        let shown = length.min(TAIL_BYTES);
        let mut bytes = vec![0; shown as usize];
        self.file.read_exact_at(&mut bytes, length - shown)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
