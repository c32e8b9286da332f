//! Why an operation did not succeed.

use teak_core::Error;

/// Everything but success.
#[derive(Debug, Clone)]
pub enum Stop {
    /// No such key.
    NotFound,
    /// No further key.
    End,
    /// A unique key is taken; the session knows by which row.
    Duplicate,
    /// No AUTO_INCREMENT value is left.
    CounterExhausted,
    /// A call that makes no sense: a bug of the shim, reported instead of obeyed.
    Misuse(&'static str),
    /// A secondary index names a row that does not exist.
    Inconsistent {
        /// The table.
        table: String,
        /// The index tree within it.
        tree: u32,
    },
    /// The core refused.
    Core(Error),
}

/// Result of the operations of this crate.
pub type Result<T, E = Stop> = std::result::Result<T, E>;

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Core(error)
    }
}

impl Stop {
    /// Whether there is anything to say beyond that.
    pub fn has_text(&self) -> bool {
        !matches!(self, Stop::NotFound | Stop::End)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::NotFound => f.write_str("no such key"),
            Stop::End => f.write_str("no further key"),
            Stop::Duplicate => f.write_str("a unique key is taken"),
            Stop::CounterExhausted => f.write_str("no AUTO_INCREMENT value is left"),
            Stop::Misuse(what) => write!(f, "wrong use of the storage engine's interface: {what}"),
            Stop::Inconsistent { table, tree } => {
                write!(f, "index {tree} of table '{table}' has an entry for a row that does not exist")
            }
            Stop::Core(error @ Error::SnapshotTooOld { .. }) => {
                write!(
                    f,
                    "{error}; begin a new transaction, and raise teak_history_max_size if it needs more time"
                )
            }
            Stop::Core(error @ Error::HistoryFull { .. }) => {
                write!(f, "{error}; raise teak_history_max_size, or end the sessions that information_schema.TEAK_SNAPSHOTS shows")
            }
            Stop::Core(error @ Error::LockMemory { .. }) => {
                write!(f, "{error}; raise teak_lock_max_size, or lock fewer rows in a transaction")
            }
            Stop::Core(Error::Undecided { xid }) => {
                write!(
                    f,
                    "the table has changes of the prepared transaction {}; XA COMMIT or XA ROLLBACK it first",
                    crate::xid::text(xid)
                )
            }
            Stop::Core(error) => error.fmt(f),
        }
    }
}
