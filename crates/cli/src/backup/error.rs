//! Why a backup or a restore failed.

use std::path::{Path, PathBuf};
use teak_client as client;

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
    #[error("mariadb-backup failed ({status}); the last of its messages{place}:\n{tail}")]
    Companion { status: String, place: String, tail: String, missed_log: bool },
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
            // The engine's own words for it are about its data: here they are those of a copy.
            teak_core::Error::DiskFull { path } => {
                let error = std::io::Error::from_raw_os_error(libc::ENOSPC);
                BackupError::Io { what: format!("cannot write {}", path.display()), error }
            }
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
}
