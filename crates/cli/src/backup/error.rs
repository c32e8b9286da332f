//! Why a backup or a restore failed.

use crate::client;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// So much of what mariadb-backup says is shown when it has failed.
const TAIL_BYTES: u64 = 1500;

/// Why there is no backup, or none that is whole.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0}")]
    Server(#[from] client::Error),
    #[error("{0}")]
    Core(teak_core::Error),
    #[error("{what}: {error}")]
    Io { what: String, error: std::io::Error },
    #[error("{0}")]
    Usage(String),
    #[error("{}: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    #[error("mariadb-backup failed ({status}); its messages are in {}, the last of them:\n{tail}", log.display())]
    Companion { status: String, log: PathBuf, tail: String },
    #[error("interrupted; what was written so far is worth nothing and can be removed")]
    Interrupted,
    /// Another thread failed, and tells why.
    #[error("stopped")]
    Stopped,
}

impl From<teak_core::Error> for BackupError {
    fn from(error: teak_core::Error) -> BackupError {
        match error {
            teak_core::Error::Interrupted => BackupError::Interrupted,
            error => BackupError::Core(error),
        }
    }
}

impl BackupError {
    /// Of a call that concerns a path.
    pub fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
        let what = format!("{what} {}", path.display());
        move |error| BackupError::Io { what, error }
    }

    pub fn damaged(path: &Path, detail: impl Into<String>) -> BackupError {
        BackupError::Damaged { path: path.to_path_buf(), detail: detail.into() }
    }

    /// `mariadb-backup` has ended so; `log` has its messages.
    pub fn companion_failed(status: std::process::ExitStatus, log: &Path) -> BackupError {
        let tail = tail(log).unwrap_or_else(|error| format!("(cannot be read: {error})"));
        BackupError::Companion { status: status.to_string(), log: log.to_path_buf(), tail }
    }
}

/// The end of a file of messages.
fn tail(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
