//! The number by which the shim knows how a call went.

use teak_core::Error;
use teak_rows::outcome::Stop;

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
