//! The parts of a round. Each may be missing, and says so.

use std::time::Duration;
use teak_metrics::Family;

/// What is asked by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// SHOW GLOBAL STATUS.
    ServerStatus,
    /// SHOW GLOBAL VARIABLES.
    ServerVariables,
    /// information_schema.TEAK_METRICS.
    Engine,
    /// SHOW ALL SLAVES STATUS.
    Replication,
    /// information_schema.TEAK_INDEXES.
    Indexes,
    /// The file system of the data directory.
    Disk,
}

impl Part {
    /// All, in the order in which they are asked: those that the others need first, what may hang last.
    pub const ALL: [Part; 6] = [
        Part::ServerStatus,
        Part::Engine,
        Part::ServerVariables,
        Part::Replication,
        Part::Indexes,
        Part::Disk,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Part::ServerStatus => "server_status",
            Part::ServerVariables => "server_variables",
            Part::Engine => "engine",
            Part::Replication => "replication",
            Part::Indexes => "indexes",
            Part::Disk => "disk",
        }
    }

    /// Whether the server is asked for it.
    pub fn is_of_server(self) -> bool {
        self != Part::Disk
    }
}

/// Why a part is missing.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The server, or the connection.
    #[error("{0}")]
    Server(#[from] teak_client::Error),
    /// There was no time left for it.
    #[error("it was not asked for in time")]
    Late,
    /// So many rows are not what was asked for.
    #[error("more than {0} rows")]
    TooMuch(usize),
    /// The table is there, and empty.
    #[error(
        "the plugin is there, but not the engine, which could not start: the server's error log says why"
    )]
    NoEngine,
    /// The file system.
    #[error("{0}")]
    Disk(std::io::Error),
    /// A connection that does not stand, as was said.
    #[error("{0}")]
    NotConnected(String),
}

/// What became of a part.
#[derive(Debug)]
pub struct Found {
    /// Which one.
    pub part: Part,
    /// How long it took.
    pub took: Duration,
    /// Numbers, or why there are none.
    pub families: Result<Vec<Family>, Missing>,
}
