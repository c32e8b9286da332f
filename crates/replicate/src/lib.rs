//! `teak replicate`: follows servers of MariaDB and MySQL, and applies what they change in another server, each
//! transaction exactly once.
//!
//! ```text
//!                 a thread for each source
//! configuration ─> follow ─> dump ─> steps ─> apply ──────> target
//! (TOML)           (connects, (events  (where    (rows, as     (rows and position in
//!                   begins     as a     trans-    events again;  one transaction)
//!                   anew)      server   actions   definitions)
//!                              sends    begin
//!                              them)    and end)
//! ```
//!
//! | module | is about |
//! |---|---|
//! | `configuration`, `routes` | what is to be done; which databases are followed |
//! | `requirements`, `claims` | what servers must be; no table is of two sources |
//! | `tables`, `grants` | what servers tell of tables and accounts |
//! | `dump` | logs as a server sends them, which `teak binlog` reads too |
//! | `position` | how far a source was followed |
//! | `steps`, `statement` | where transactions begin and end; what statements are |
//! | `events` | events with rows, written anew for a BINLOG statement |
//! | `session`, `keys` | the session of a statement; rows as errors name them |
//! | `target`, `schema` | the connection to the target, transactions; the tables of positions |
//! | `check`, `status`, `verify`, `repair` | `teak replicate check`, `status`, `verify`, `verify --repair` |
//! | `copier`, `copying`, `chunk_reader` | `start = "copy"`: what is copied next, what is there, how it is read |
//! | `sides`, `chunks` | source and target as who compares them asks them; rows by ranges of keys |
//! | `apply`, `follow` | steps carried out; what happens when something fails |
//!
//! The design is in docs/design/replicate.md.

#![deny(missing_docs, unnameable_types)]
#![forbid(unsafe_code)]

mod apply;
mod check;
mod chunk_reader;
mod chunks;
mod claims;
mod configuration;
mod copier;
mod copying;
mod dump;
mod events;
mod failure;
mod follow;
mod grants;
mod keys;
mod position;
mod repair;
mod requirements;
mod routes;
mod schema;
mod session;
mod sides;
mod statement;
mod status;
mod steps;
mod tables;
mod target;
mod verify;

pub use check::CheckError;
pub use configuration::Wrong;
pub use dump::{Asked, Beginning, Dump, DumpError, Log, Sent, HEARTBEAT};
pub use position::{Gtid, Position};
pub use sides::SideError;
pub use status::StatusError;
pub use verify::VerifyError;

use claims::Claims;
use configuration::Configuration;
use std::io::Write;
use std::path::PathBuf;
use teak_console::{signals, terminal, Status};
use verify::Wanted;

/// Options of `teak replicate`.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    file: Option<ConfigurationFile>,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Whether the configuration can be carried out, as the servers tell it
    Check {
        #[command(flatten)]
        file: ConfigurationFile,
    },
    /// How far each source is
    Status {
        #[command(flatten)]
        file: ConfigurationFile,
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Compare the rows of sources and target, while they are followed or not
    Verify {
        #[command(flatten)]
        file: ConfigurationFile,
        /// Print the values that differ
        #[arg(long)]
        values: bool,
        /// Make rows of the target that differ those of the source
        #[arg(long)]
        repair: bool,
    },
}

#[derive(clap::Args, Debug)]
struct ConfigurationFile {
    /// The file that says which servers are followed, and where their rows go: docs/replicate.md has its keys
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Why it ended, other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum ReplicateError {
    /// The configuration.
    #[error("{0}")]
    Configuration(#[from] Wrong),
    /// There is none.
    #[error("--config FILE is missing")]
    NoConfiguration,
    /// Sources stopped, each with a message of its own.
    #[error("{stopped} of {sources} sources stopped")]
    Stopped {
        /// How many stopped.
        stopped: usize,
        /// Of how many.
        sources: usize,
        /// Of the first one.
        status: Status,
    },
    /// `check` has found something.
    #[error("{0}")]
    Check(#[from] CheckError),
    /// `verify` has found something.
    #[error("{0}")]
    Verify(#[from] VerifyError),
    /// No thread could be made.
    #[error("no thread for a source: {0}")]
    Thread(#[from] std::io::Error),
    /// `status` could tell nothing.
    #[error("{0}")]
    Status(#[from] StatusError),
}

impl ReplicateError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            ReplicateError::Configuration(_) | ReplicateError::NoConfiguration => Status::Usage,
            ReplicateError::Check(CheckError::Found { .. }) => Status::Usage,
            ReplicateError::Check(CheckError::Output(_)) => Status::InputOutput,
            ReplicateError::Verify(VerifyError::Different(_)) => Status::Other,
            ReplicateError::Verify(VerifyError::Side { error, .. }) => error.error().status(),
            ReplicateError::Verify(VerifyError::Output(_)) => Status::InputOutput,
            ReplicateError::Stopped { status, .. } => *status,
            ReplicateError::Thread(_) => Status::Other,
            ReplicateError::Status(StatusError::Target(error)) => error.status(),
            ReplicateError::Status(StatusError::Output(_)) => Status::InputOutput,
        }
    }
}

/// Does what the command line says; `out` is for what `check`, `status` and `verify` tell.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), ReplicateError> {
    match &arguments.command {
        None => (),
        Some(Command::Check { file }) => return Ok(check::show(&Configuration::read(&file.config)?, out)?),
        Some(Command::Status { file, json }) => {
            return Ok(status::show(&Configuration::read(&file.config)?, *json, out)?)
        }
        Some(Command::Verify { file, values, repair }) => {
            let wanted = Wanted { values: *values, repair: *repair };
            return Ok(verify::show(&Configuration::read(&file.config)?, wanted, out)?);
        }
    }
    let file = arguments.file.as_ref().ok_or(ReplicateError::NoConfiguration)?;
    follow_all(&Configuration::read(&file.config)?)
}

/// Follows all sources until a signal comes, or until all of them have stopped. One that stops does not stop others.
fn follow_all(Configuration { target, sources, .. }: &Configuration) -> Result<(), ReplicateError> {
    signals::catch();
    let claims = &Claims::default();
    let stopped: Vec<Status> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for source in sources {
            let work = move || match follow::follow(target, source, claims) {
                Ok(()) => None,
                Err((why, status)) => {
                    terminal::message(&format!("{}: stopped: {why}", source.name));
                    Some(status)
                }
            };
            threads.push(std::thread::Builder::new().name(source.name.clone()).spawn_scoped(scope, work)?);
        }
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or(Some(Status::Other)));
        Ok::<_, std::io::Error>(ended.flatten().collect())
    })?;
    match stopped.first() {
        None => Ok(()),
        Some(&status) => {
            Err(ReplicateError::Stopped { stopped: stopped.len(), sources: sources.len(), status })
        }
    }
}
