//! The one error type of the core. Variants are what callers act on differently.

use std::path::{Path, PathBuf};

/// Result of every fallible operation of the core.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, with what, where, and the cause.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The operating system refused a file operation.
    #[error("{operation} on {path} failed: {cause}")]
    Io {
        /// What was tried, e.g. `write`.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// The file system is full.
    #[error("no space left while writing {path}; free space on the device, nothing was lost")]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The system has no descriptor, or no memory for one, to open a file. Nothing has been done: it may be tried
    /// again.
    #[error("{path} could not be opened: {cause}; nothing was lost, raise open_files_limit (ulimit -n) or use fewer files")]
    NoDescriptor {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// Temporary data reached its budget.
    #[error("temporary data in {path} reached its maximum of {maximum} bytes")]
    SpillFull {
        /// The spill file.
        path: PathBuf,
        /// The budget in bytes.
        maximum: u64,
    },
    /// Tables that live in memory alone take what they may.
    #[error("{what} reached the maximum of {maximum} bytes of memory ({setting})")]
    MemoryFull {
        /// What is full: one table, or all.
        what: &'static str,
        /// The budget in bytes.
        maximum: u64,
        /// What would have to be raised.
        setting: &'static str,
    },
    /// Stored bytes are not what was written.
    #[error("{path} is corrupt at offset {offset}: {detail}")]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Byte offset of the damaged structure.
        offset: u64,
        /// What check failed.
        detail: String,
    },
    /// A format version this build does not know.
    #[error("{path} has format version {found}, this build reads {supported}")]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// Version found in the file.
        found: u32,
        /// Newest version this build reads.
        supported: u32,
    },
    /// A newer build has left what this one does not know.
    #[error("{path} has {what}, which Teak {} does not know: {remedy}; nothing was changed", env!("CARGO_PKG_VERSION"))]
    TooNew {
        /// The file.
        path: PathBuf,
        /// What is not known.
        what: String,
        /// Which Teak is needed, or what goes without it.
        remedy: String,
    },
    /// Another process has the directory open.
    #[error("{path} is in use by another process")]
    InUse {
        /// The lock file.
        path: PathBuf,
    },
    /// A lock was not granted within the time-out.
    #[error("lock wait timeout exceeded")]
    LockTimeout,
    /// This transaction was chosen as the victim of a deadlock; it must be rolled back.
    #[error("deadlock found when trying to get a lock")]
    Deadlock,
    /// The locks of all transactions take too much memory, and those of this one cannot be made fewer; it must be
    /// rolled back.
    #[error("row locks take {bytes} bytes, more than twice their maximum of {maximum}")]
    LockMemory {
        /// What the locks of all transactions take.
        bytes: u64,
        /// What they may take before transactions make fewer of them.
        maximum: u64,
    },
    /// The lock is held by another transaction and the caller did not want to wait.
    #[error("the lock is held by another transaction")]
    WouldBlock,
    /// The wait was interrupted (for example by KILL).
    #[error("the wait was interrupted")]
    Interrupted,
    /// First-committer-wins: the row was committed by another transaction after this one's snapshot.
    #[error("the row was changed after this transaction's snapshot")]
    SnapshotConflict,
    /// The versions that this snapshot needs were given up.
    #[error(
        "snapshot too old: it was {} seconds old when the versions kept for old snapshots passed their maximum of {maximum} bytes",
        age.as_secs()
    )]
    SnapshotTooOld {
        /// How old it was when it had to give way.
        age: std::time::Duration,
        /// What all snapshots together may hold, in bytes.
        maximum: u64,
    },
    /// Writers wait for old snapshots to end, and have waited long enough.
    #[error("the versions kept for old snapshots take their maximum of {maximum} bytes, and no snapshot ended while this write waited")]
    HistoryFull {
        /// What all snapshots together may hold, in bytes.
        maximum: u64,
    },
    /// The snapshot is older than what it wants to read: an index was built, or a table altered, after it.
    #[error("the table was altered after this transaction's snapshot was taken; begin a new transaction")]
    TableChanged,
    /// A prepared transaction, which no session need own, has written to a table that is to be changed.
    #[error(
        "the table has changes of a prepared transaction, which has to be committed or rolled back first"
    )]
    Undecided {
        /// The identifier its coordinator knows it by.
        xid: Vec<u8>,
    },
    /// A checkpoint is needed, and somebody who copies the engine's files holds them back.
    #[error("checkpoints are paused, as the files are being copied (teak_pause_checkpoints, FLUSH TABLES ... DISABLE CHECKPOINT); try again when that has ended")]
    CheckpointsPaused,
    /// A file has another table than the one that it is to be imported into.
    #[error("the file has another table: {0}")]
    OtherDefinition(String),
    /// A table of that name exists.
    #[error("table '{0}' already exists")]
    TableExists(String),
    /// A link of that name exists.
    #[error("table '{table}' has a link '{name}' already")]
    LinkExists {
        /// The table that has it.
        table: String,
        /// The link's name.
        name: String,
    },
    /// No table of that name.
    #[error("table '{0}' does not exist")]
    NoSuchTable(String),
    /// A table has no such tree.
    #[error("the table has no tree {0}")]
    NoSuchTree(usize),
    /// Two entries of a build have one key.
    #[error("two entries of the index have one key")]
    DuplicateEntry {
        /// Which of the trees.
        part: usize,
        /// Their key.
        key: Vec<u8>,
        /// The lesser one of their values.
        value: Vec<u8>,
    },
    /// A key of a unique index is taken, which was put in without a look.
    #[error("two entries of a unique index have one key")]
    DuplicateKey {
        /// Number of the tree.
        tree: crate::types::TreeId,
        /// The key.
        key: Vec<u8>,
        /// Value of the entry that cannot have it.
        value: Vec<u8>,
    },
    /// There is a row with this key already, perhaps one that came after the transaction's snapshot.
    #[error("two rows have one key")]
    DuplicateRow {
        /// Of the rows' tree.
        key: Vec<u8>,
    },
    /// A prepared transaction with that identifier exists, or none does.
    #[error("prepared transaction: {0}")]
    Xid(&'static str),
    /// The engine has stopped writing after a failure; restart recovers from the log.
    #[error("the engine is read-only since: {0}")]
    ReadOnly(String),
    /// A key or a value past the limits.
    #[error("{what} of {bytes} bytes exceeds the maximum of {maximum}")]
    TooLarge {
        /// "key" or "value".
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The limit.
        maximum: u64,
    },
    /// A transaction has written as often as it can: its writes are counted in 32 bits.
    #[error("the transaction has made {maximum} changes of rows and index entries, and one can make no more: commit more often")]
    TooManyChanges {
        /// Changes that it has made.
        maximum: u32,
    },
    /// Memory budget could not be met.
    #[error("out of memory: {0}")]
    OutOfMemory(&'static str),
}

impl Error {
    /// Wraps an operating system error; a full disk becomes [`Error::DiskFull`], a lack of descriptors
    /// [`Error::NoDescriptor`].
    pub fn io(operation: &'static str, path: impl Into<PathBuf>, cause: &std::io::Error) -> Error {
        let path = path.into();
        match cause.raw_os_error() {
            Some(libc::ENOSPC) | Some(libc::EDQUOT) => Error::DiskFull { path },
            Some(libc::EMFILE) | Some(libc::ENFILE) => Error::NoDescriptor { path, cause: cause.to_string() },
            _ => Error::Io { operation, path, cause: cause.to_string() },
        }
    }

    /// Whether what the file at `path` should hold is lost or cannot be read, which concerns nothing but that file.
    pub fn is_damage_of(&self, path: &Path) -> bool {
        match self {
            Error::Corrupt { path: of, .. } | Error::UnknownVersion { path: of, .. } => of == path,
            // A bad sector.
            Error::Io { operation: "read", path: of, .. } => of == path,
            _ => false,
        }
    }

    /// A structure that failed a check.
    pub fn corrupt(path: impl Into<PathBuf>, offset: u64, detail: impl Into<String>) -> Error {
        Error::Corrupt { path: path.into(), offset, detail: detail.into() }
    }
}
