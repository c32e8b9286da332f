//! What can go wrong. Variants are what a caller acts on differently.

use crate::{Digest, Name, Oid};
use std::path::PathBuf;

/// Result of whatever can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, and with what.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine below.
    #[error("{0}")]
    Core(#[from] teak_core::Error),
    /// Another process has the archive.
    #[error("{} is in use by another process: one at a time can have an archive open", .0.display())]
    InUse(PathBuf),
    /// There is none to open.
    #[error("{} is not an archive: make one with `teak archive init`", .0.display())]
    NoArchive(PathBuf),
    /// There is something where one is to be made.
    #[error("{} is there already, and not empty", .0.display())]
    Exists(PathBuf),
    /// It was made by a later version.
    #[error("the archive has format {found}, and this version knows {known}: use a newer teak")]
    TooNew {
        /// Which it has.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// What was to be stored could not be read, or what was read not be written.
    #[error("{what}: {cause}")]
    Stream {
        /// What was done.
        what: &'static str,
        /// What the system says.
        cause: std::io::Error,
    },
    /// A text that names nothing.
    #[error("'{0}' is no name of an object: OIDs are UUIDs, data is b3: and 64 hexadecimal digits")]
    Name(String),
    /// No record, or no data, of that name.
    #[error("there is no {0}")]
    Missing(Name),
    /// No version of that number.
    #[error("{oid} has no version {version}, or it is not kept")]
    MissingVersion {
        /// The record.
        oid: Oid,
        /// The version.
        version: u64,
    },
    /// A range that begins behind the end.
    #[error("the range begins at {from}, and the data has {size} bytes")]
    Range {
        /// Where it begins, in bytes.
        from: u64,
        /// Of all of it, in bytes.
        size: u64,
    },
    /// A field and a value that do not go together, or a field that there is not.
    #[error("field {field}: {problem}")]
    Field {
        /// By its full name.
        field: String,
        /// What is wrong, with the type.
        problem: String,
    },
    /// A schema that contradicts itself, or what is in the archive.
    #[error("schema: {0}")]
    Schema(String),
    /// An expression or a pattern that cannot be read.
    #[error("{problem} at character {at} of: {text}")]
    Syntax {
        /// What is wrong.
        problem: String,
        /// From 1.
        at: usize,
        /// All of it.
        text: String,
    },
    /// What cannot be asked for.
    #[error("{0}")]
    Query(String),
    /// It is protected.
    #[error("{name} is protected: {by}")]
    Protected {
        /// What is.
        name: Name,
        /// The holds, or the date.
        by: String,
    },
    /// Stored bytes are not what was stored.
    #[error("chunk {chunk} of {data} is damaged: {detail}; all else can be read")]
    Damaged {
        /// The part.
        chunk: Digest,
        /// The whole.
        data: Digest,
        /// How.
        detail: String,
    },
    /// Rows that contradict each other.
    #[error("the archive is damaged: {0}")]
    Inconsistent(String),
    /// There is no more room, by the archive's own rule.
    #[error("quota: {0}")]
    Quota(String),
    /// Another version of a record than the one that was to be changed.
    #[error("{oid} has version {found}, and version {wanted} was to be changed")]
    OtherVersion {
        /// The record.
        oid: Oid,
        /// The newest.
        found: u64,
        /// The one that was to be.
        wanted: u64,
    },
    /// A view, a path of one, or a hold, that there is not.
    #[error("{0}")]
    Unknown(String),
    /// What was to be changed is not as it was to be.
    #[error("{0}")]
    Precondition(String),
    /// What contradicts something that is there: a view of that name, other data, a later date.
    #[error("{0}")]
    Conflict(String),
    /// What cannot be meant: a name, a path, a pattern, a size.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Field { field: field.into(), problem: problem.into() }
    }

    /// Of a row of a tree that cannot be read.
    pub(crate) fn row(tree: &str, key: &[u8]) -> Error {
        Error::Inconsistent(format!("row {} of {tree} cannot be read", key.escape_ascii()))
    }

    /// Whether the same transaction may succeed if it is done once more.
    pub(crate) fn is_transient(&self) -> bool {
        use teak_core::Error as Core;
        matches!(self, Error::Core(Core::Deadlock | Core::SnapshotConflict | Core::LockTimeout))
    }
}
