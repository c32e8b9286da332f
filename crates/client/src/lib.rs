//! A client of MariaDB and MySQL servers, as small as Teak's commands need it: text protocol, statements as bytes.
//!
//! Options are named as the `mariadb` client names them and are read from the same files:
//!
//! ```text
//! Arguments (command line) ─┐
//! option_file (my.cnf)      ├─> Settings ── connect() ──> Connection ── execute(), query()
//! environment, prompt       ─┘                  │
//!                                handshake, authentication, tls      silence: whether a server still works
//! ```
//!
//! [`Guest`] is the other side: a client of somebody else, whose statements go to a server over a connection of ours.
//!
//! Statements are bytes and not strings, since a dump may be in any character set.

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_op_in_unsafe_fn)]

mod arguments;
mod authentication;
mod connection;
mod handshake;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
mod option_file;
mod packet;
mod process_list;
mod proxy;
mod request;
mod settings;
mod silence;
mod tls;

pub use arguments::{split_short_password, Arguments};
pub use connection::{values, Completed, Connection, Rows};
pub use packet::Closer;
pub use process_list::hide_passwords;
pub use proxy::{Answered, Guest};
pub use request::{Prepared, Request};
pub use settings::{password_of_file, Address, Settings, Tls, TlsPolicy};

use teak_console::Status;

/// Why the server could not be asked, or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered with an error.
    #[error("ERROR {code} ({state}): {message}")]
    Server {
        /// The server's number, such as 1062.
        code: u16,
        /// SQLSTATE.
        state: String,
        /// What it says besides.
        message: String,
    },
    /// The connection broke, or none could be made.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The server answered something that the protocol does not know.
    #[error("the server sent something unexpected: {0}")]
    Protocol(String),
    /// An option or an option file is wrong.
    #[error("{0}")]
    Settings(String),
    /// No encrypted connection, although one is asked for.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server wants an authentication that this client has not.
    #[error("{0}")]
    Authentication(String),
}

impl Error {
    /// The server's error number, if the server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Error::Server { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether nothing came, or could be sent, for as long as a limit of time says.
    pub fn is_silence(&self) -> bool {
        matches!(self, Error::Io { error, .. } if error.kind() == std::io::ErrorKind::TimedOut)
    }

    /// The exit status of a command that fails by it.
    pub fn status(&self) -> Status {
        match self {
            Error::Settings(_) => Status::Usage,
            _ => Status::Server,
        }
    }

    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |error| Error::Io { what, error }
    }
}
