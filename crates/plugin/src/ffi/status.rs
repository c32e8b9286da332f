//! The number by which the shim knows how a call went.

use teak_core::Error;
use teak_rows::outcome::Stop;

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// It was done.
    Ok = 0,
    /// Exact read, seek: no such key (HA_ERR_KEY_NOT_FOUND).
    NotFound = 1,
    /// Next, prev: no further key within the bounds (HA_ERR_END_OF_FILE).
    End = 2,
    /// HA_ERR_FOUND_DUPP_KEY.
    Duplicate = 3,
    /// 1205; the statement failed, the transaction goes on.
    LockTimeout = 4,
    /// 1213; the whole transaction must be rolled back (thd_mark_transaction_to_rollback(thd, true)).
    Deadlock = 5,
    /// NOWAIT: locked by another transaction (HA_ERR_LOCK_WAIT_TIMEOUT).
    WouldBlock = 6,
    /// KILL (HA_ERR_ABORTED_BY_USER).
    Interrupted = 7,
    /// 1020 HA_ERR_RECORD_CHANGED; the whole transaction must be rolled back, as InnoDB does.
    Conflict = 8,
    /// The snapshot had to give way (a code of Teak's own); it fails until the transaction ends.
    TooOld = 9,
    /// The engine stopped writing after a failure (HA_ERR_TABLE_READONLY); also a write in a READ ONLY transaction.
    ReadOnly = 10,
    /// HA_ERR_RECORD_FILE_FULL; also what tables in memory may take is used up.
    DiskFull = 11,
    /// HA_ERR_CRASHED_ON_USAGE; the text names file and offset.
    Corrupt = 12,
    /// HA_ERR_TABLE_EXIST.
    Exists = 13,
    /// HA_ERR_NO_SUCH_TABLE; ENOENT for drop.
    NoTable = 14,
    /// Key or value past the limits (HA_ERR_TO_BIG_ROW).
    TooLarge = 15,
    /// The operating system refused (HA_ERR_GENERIC / EIO).
    Io = 16,
    /// HA_ERR_OUT_OF_MEM.
    OutOfMemory = 17,
    /// HA_ERR_AUTOINC_ERANGE.
    CounterExhausted = 18,
    /// No such prepared transaction, or the xid is taken (XAER_NOTA / XAER_DUPID).
    NoXid = 19,
    /// Another process has the directory open.
    InUse = 20,
    /// On-disk format of another build.
    UnknownVersion = 21,
    /// A call that makes no sense now (no transaction, bad argument): a bug of the shim.
    Misuse = 22,
    /// A panic was caught (HA_ERR_INTERNAL_ERROR).
    Internal = 23,
    /// Altered after the snapshot (HA_ERR_TABLE_DEF_CHANGED).
    TableChanged = 24,
    /// The write waited in vain for old snapshots to end (HA_ERR_LOCK_WAIT_TIMEOUT).
    HistoryFull = 25,
    /// A prepared transaction has written to the table (HA_ERR_LOCK_WAIT_TIMEOUT).
    Undecided = 26,
    /// 1206 HA_ERR_LOCK_TABLE_FULL; the whole transaction must be rolled back.
    LockMemory = 27,
    /// Too many open files (EMFILE); it may be tried again.
    NoDescriptor = 28,
    /// A checkpoint is needed, and they are paused (HA_ERR_LOCK_WAIT_TIMEOUT).
    CheckpointsPaused = 29,
    /// ER_TABLE_SCHEMA_MISMATCH.
    OtherDefinition = 30,
    /// A link of that name exists (HA_ERR_FOUND_DUPP_KEY, of a definition).
    LinkExists = 31,
}

impl Status {
    /// The number of what stopped an operation.
    pub fn of(stop: &Stop) -> Status {
        match stop {
            Stop::NotFound => Status::NotFound,
            Stop::End => Status::End,
            Stop::Duplicate => Status::Duplicate,
            Stop::CounterExhausted => Status::CounterExhausted,
            Stop::Misuse(_) => Status::Misuse,
            Stop::Inconsistent { .. } => Status::Corrupt,
            Stop::Core(error) => of_error(error),
        }
    }
}

fn of_error(error: &Error) -> Status {
    match error {
        Error::Io { .. } => Status::Io,
        Error::DiskFull { .. } | Error::SpillFull { .. } | Error::MemoryFull { .. } => Status::DiskFull,
        Error::Corrupt { .. } => Status::Corrupt,
        Error::UnknownVersion { .. } | Error::TooNew { .. } => Status::UnknownVersion,
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
        Error::CheckpointsPaused => Status::CheckpointsPaused,
        Error::OtherDefinition(_) => Status::OtherDefinition,
        Error::NoDescriptor { .. } => Status::NoDescriptor,
        Error::TableExists(_) => Status::Exists,
        Error::LinkExists { .. } => Status::LinkExists,
        Error::NoSuchTable(_) => Status::NoTable,
        Error::NoSuchTree(_) => Status::Misuse,
        Error::DuplicateEntry { .. } | Error::DuplicateKey { .. } | Error::DuplicateRow { .. } => {
            Status::Duplicate
        }
        Error::Xid(_) => Status::NoXid,
        Error::ReadOnly(_) => Status::ReadOnly,
        Error::TooLarge { .. } => Status::TooLarge,
        Error::OutOfMemory(_) => Status::OutOfMemory,
        // No number of the server says it; the text does.
        Error::TooManyChanges { .. } => Status::Io,
    }
}
