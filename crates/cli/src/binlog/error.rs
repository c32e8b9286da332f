//! Why the command fails.

use teak_console::Status;
use teak_replicate::DumpError;

/// Why a log could not be shown, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum BinlogError {
    /// The log is damaged, or has what is not known.
    #[error("{0}")]
    Log(#[from] teak_binlog::Error),
    /// A file cannot be read.
    #[error("cannot read {file}: {error}")]
    Read {
        /// Its name.
        file: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
    /// The server.
    #[error("{0}")]
    Server(#[from] teak_client::Error),
    /// What was asked for cannot be.
    #[error("{0}")]
    Usage(String),
}

impl From<DumpError> for BinlogError {
    fn from(error: DumpError) -> BinlogError {
        match error {
            DumpError::Log(error) => BinlogError::Log(error),
            DumpError::Server(error) => BinlogError::Server(error),
            DumpError::Checksums(_) => BinlogError::Usage(format!("--source: {error}")),
            DumpError::OtherFamily { .. } => BinlogError::Usage(format!("--start: {error}")),
        }
    }
}

impl BinlogError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            BinlogError::Log(_) => Status::Damage,
            BinlogError::Read { .. } | BinlogError::Output(_) => Status::InputOutput,
            BinlogError::Server(error) => error.status(),
            BinlogError::Usage(_) => Status::Usage,
        }
    }
}
