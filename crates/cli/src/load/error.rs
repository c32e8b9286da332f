//! Why a load failed: each names the place in the input.

use super::splitter::SplitError;
use crate::client;
use std::fmt;

/// Of a statement this much is shown.
const SHOWN: usize = 150;

/// Where a statement begins, and how.
#[derive(Debug, Clone)]
pub struct Place {
    pub source: String,
    pub line: u64,
    pub begin: String,
}

impl Place {
    pub fn new(source: &str, line: u64, text: &[u8]) -> Place {
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]).into_owned();
        let begin = if text.len() > SHOWN { format!("{shown}...") } else { shown };
        Place { source: source.to_string(), line, begin }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.source, self.line, self.begin)
    }
}

/// Why a load, or a statement of it, failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{name}: cannot read: {error}")]
    Read { name: String, error: std::io::Error },
    #[error("{name}, {error}")]
    Split { name: String, error: SplitError },
    #[error("{error}\n  in {place}")]
    Statement { place: Place, error: client::Error },
    #[error(
        "{what} of {size} bytes is longer than the server takes: its max_allowed_packet is {limit}\n  in {place}"
    )]
    TooLong { what: &'static str, size: usize, limit: usize, place: Place },
    #[error("{what} works only on one connection: load this dump with --serial\n  in {place}")]
    SerialOnly { what: &'static str, place: Place },
    #[error("{0}")]
    Server(#[from] client::Error),
    #[error("{0}")]
    Usage(String),
    #[error("{0} of the dump's statements failed and were skipped")]
    Skipped(u64),
    #[error("interrupted; --resume goes on from here")]
    Interrupted,
    #[error("the check found differences in {0} tables")]
    Different(usize),
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// Another thread failed, and tells why.
    #[error("stopped")]
    Stopped,
}
