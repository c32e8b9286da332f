//! What can be wrong with the bytes of a log, and where.

use std::fmt;
use std::sync::Arc;

/// What is wrong, without where: what a caller does about it differs by the variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It does not begin as a binary log does.
    #[error("this is no binary log: it does not begin with the bytes fe 62 69 6e")]
    NotABinaryLog,
    /// The bytes end within an event: the rest was not written, or not sent yet.
    #[error("the log ends {left} bytes into an event")]
    Truncated {
        /// Bytes of the event that are there.
        left: usize,
    },
    /// The event's bytes are not those that were written.
    #[error("the checksum of the event is {stored:08x}, that of its bytes {computed:08x}")]
    Checksum {
        /// What the event says.
        stored: u32,
        /// What its bytes have.
        computed: u32,
    },
    /// The event's type is none that is known, and its header does not say that it may be ignored.
    #[error("event type {0} is not known, and its header does not say that it may be ignored")]
    UnknownEvent(u8),
    /// What follows is encrypted.
    #[error("the log is encrypted from here on (key version {key_version}), and no key is given")]
    Encrypted {
        /// That of the server's key.
        key_version: u32,
    },
    /// Something is larger than is allowed.
    #[error("{what} would be {bytes} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// As it says of itself.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Something ends past the end of what it is in.
    #[error("{what} needs {needed} bytes, and {left} are left")]
    Short {
        /// What it is.
        what: &'static str,
        /// Its length.
        needed: u64,
        /// What there is.
        left: usize,
    },
    /// Rows of a table that no table map of the statement has named.
    #[error("no table map of this statement has table id {0}")]
    NoTable(u64),
    /// Something says what cannot be.
    #[error("{0}")]
    Invalid(String),
}

impl Problem {
    pub(crate) fn invalid(text: impl Into<String>) -> Problem {
        Problem::Invalid(text.into())
    }
}

/// Where in which log something is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The log's name, if it is known.
    pub file: Option<Arc<str>>,
    /// The first byte of the event, counted from the file's beginning. Of an event within a compressed transaction it
    /// is that of the event that holds the transaction.
    pub position: u64,
    /// The event's type by its name.
    pub event: Option<&'static str>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}, ")?;
        }
        write!(f, "position {}", self.position)?;
        self.event.map_or(Ok(()), |event| write!(f, ", {event}"))
    }
}

/// What is wrong, and where: log, position and event, and table and column as far as it is about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    place: Place,
    table: Option<String>,
    column: Option<String>,
    problem: Problem,
}

impl Error {
    /// Of an event as a whole.
    pub fn new(place: Place, problem: Problem) -> Error {
        Error(Box::new(Details { place, table: None, column: None, problem }))
    }

    /// Of a table's rows.
    pub(crate) fn with_table(mut self, table: String) -> Error {
        self.0.table = Some(table);
        self
    }

    /// Of a value.
    pub(crate) fn with_column(mut self, column: String) -> Error {
        self.0.column = Some(column);
        self
    }

    /// Where.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// The table that it is about, as `db`.`table`.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// The column that it is about: its number from 1 on, and its name if the log has that.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { place, table, column, problem } = &*self.0;
        place.fmt(f)?;
        for (what, name) in [("table", table), ("column", column)] {
            if let Some(name) = name {
                write!(f, ", {what} {name}")?;
            }
        }
        write!(f, ": {problem}")
    }
}

impl std::error::Error for Error {}
