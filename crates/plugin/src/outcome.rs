//! Why an operation did not succeed, and the number the shim knows it by.

use teak_core::Error;

/// `teak_status` of `teak_ffi.h`; the numbers are the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // each is explained in the header
pub enum Status {
    Ok = 0,
    NotFound = 1,
    End = 2,
    Duplicate = 3,
    LockTimeout = 4,
    Deadlock = 5,
    WouldBlock = 6,
    Interrupted = 7,
    Conflict = 8,
    TooOld = 9,
    ReadOnly = 10,
    DiskFull = 11,
    Corrupt = 12,
    Exists = 13,
    NoTable = 14,
    TooLarge = 15,
    Io = 16,
    OutOfMemory = 17,
    CounterExhausted = 18,
    NoXid = 19,
    InUse = 20,
    UnknownVersion = 21,
    Misuse = 22,
    Internal = 23,
    TableChanged = 24,
    HistoryFull = 25,
    Undecided = 26,
    LockMemory = 27,
    NoDescriptor = 28,
}

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
    /// The number for the shim.
    pub fn status(&self) -> Status {
        match self {
            Stop::NotFound => Status::NotFound,
            Stop::End => Status::End,
            Stop::Duplicate => Status::Duplicate,
            Stop::CounterExhausted => Status::CounterExhausted,
            Stop::Misuse(_) => Status::Misuse,
            Stop::Inconsistent { .. } => Status::Corrupt,
            Stop::Core(error) => of_error(error),
        }
    }

    /// Whether there is anything to say beyond the number.
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

fn of_error(error: &Error) -> Status {
    match error {
        Error::Io { .. } => Status::Io,
        Error::DiskFull { .. } | Error::SpillFull { .. } => Status::DiskFull,
        Error::Corrupt { .. } => Status::Corrupt,
        Error::UnknownVersion { .. } => Status::UnknownVersion,
        Error::InUse { .. } => Status::InUse,
        Error::LockTimeout => Status::LockTimeout,
        Error::Deadlock => Status::Deadlock,
        Error::LockMemory { .. } => Status::LockMemory,
        Error::WouldBlock => Status::WouldBlock,
        Error::Interrupted => Status::Interrupted,
        Error::SnapshotConflict => Status::Conflict,
        Error::SnapshotTooOld { .. } => Status::TooOld,
        Error::HistoryFull { .. } => Status::HistoryFull,
        Error::TableChanged => Status::TableChanged,
        Error::Undecided { .. } => Status::Undecided,
        Error::NoDescriptor { .. } => Status::NoDescriptor,
        Error::TableExists(_) => Status::Exists,
        Error::NoSuchTable(_) => Status::NoTable,
        Error::NoSuchTree(_) => Status::Misuse,
        Error::DuplicateEntry { .. } | Error::DuplicateRow { .. } => Status::Duplicate,
        Error::Xid(_) => Status::NoXid,
        Error::ReadOnly(_) => Status::ReadOnly,
        Error::TooLarge { .. } => Status::TooLarge,
        Error::OutOfMemory(_) => Status::OutOfMemory,
        // No number of the server says it; the text does.
        Error::TooManyChanges { .. } => Status::Io,
    }
}
