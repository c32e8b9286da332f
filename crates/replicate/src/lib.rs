//! `teak replicate`: follows servers of MariaDB and MySQL, and applies what they change in another server, each
//! transaction exactly once.
//!
//! ```text
//!                 a thread for each source
//! configuration ─> follow ─> dump ─> steps ─> apply ──────> target
//! (TOML)           (connects, (events  (where    (rows, as     (rows and position in
//!                   begins     as a     trans-    events again;  one transaction)
//!                   anew)      server   actions   definitions)
//!                              sends    begin          │
//!                              them)    and end)       └─> crew ─> worker, worker ... ─> target
//! ```
//!
//! | module | is about |
//! |---|---|
//! | `configuration`, `routes`, `part` | what is to be done; what is followed, and where to; tables that are one |
//! | `exclusions`, `own_columns` | what is left out of rows; columns that only the target has |
//! | `renamed_columns`, `counterpart` | columns that have other names there; what a table is in the target |
//! | `requirements`, `claims` | what servers must be; no table is of two sources |
//! | `tables`, `grants` | what servers tell of tables and accounts |
//! | `dump` | logs as a server sends them, which `teak binlog` reads too |
//! | `position` | how far a source was followed |
//! | `steps`, `statement` | where transactions begin and end; what statements are |
//! | `of_mysql` | statements of a MySQL that change definitions, as MariaDB takes them |
//! | `events`, `rows_variable` | events with rows, written anew for a BINLOG statement; how a long one is sent |
//! | `session`, `keys` | the session of a statement; rows as errors name them |
//! | `target`, `schema` | the connection to the target, transactions; the tables of positions |
//! | `control` | `teak replicate pause`, `resume`, `skip`, `stop`, and what they leave for who follows |
//! | `progress`, `metrics`, `service` | what a running program knows of each source; HTTP; systemd |
//! | `check`, `status`, `verify`, `repair` | `teak replicate check`, `status`, `verify`, `verify --repair` |
//! | `copy_plan`, `copier`, `copying` | `start = "copy"`: what is copied; what is next; what is there |
//! | `copy_others` | views, triggers and routines of a copy |
//! | `copy_worker`, `chunk_reader`, `chunk_writer`, `sent_rows` | threads that copy: reading, adding, comparing |
//! | `links` | the connections of a thread, which others can end |
//! | `sides`, `chunks` | source and target as who compares them asks them; rows by ranges of keys |
//! | `schedule`, `touched` | which transactions may be applied at once; what they touch |
//! | `crew`, `worker`, `above` | the workers of a source; one of them; what they did above its position |
//! | `apply`, `follow` | steps carried out; what happens when something fails |
//!
//! The design is in docs/design/replicate.md.

#![deny(missing_docs, unnameable_types)]
#![forbid(unsafe_code)]

mod above;
mod apply;
mod check;
mod chunk_reader;
mod chunk_writer;
mod chunks;
mod claims;
mod configuration;
mod control;
mod copier;
mod copy_others;
mod copy_plan;
mod copy_worker;
mod copying;
mod counterpart;
mod crew;
mod dump;
mod events;
mod exclusions;
mod failure;
mod follow;
mod grants;
mod keys;
mod links;
mod metrics;
mod of_mysql;
mod own_columns;
mod part;
mod position;
mod prepared;
mod progress;
mod renamed_columns;
mod repair;
mod requirements;
mod routes;
mod rows_variable;
mod schedule;
mod schema;
mod sent_rows;
mod service;
mod session;
mod sides;
mod statement;
mod status;
mod steps;
mod tables;
mod target;
mod touched;
mod verify;
mod worker;
mod written_here;

pub use check::CheckError;
pub use configuration::Wrong;
pub use control::ControlError;
pub use dump::{Asked, Beginning, Dump, DumpError, Log, Sent, HEARTBEAT};
pub use position::{Gtid, Position};
pub use sides::SideError;
pub use status::StatusError;
pub use verify::VerifyError;

use claims::Claims;
use configuration::Configuration;
use control::Asking;
use follow::Follower;
use progress::{Condition, Progress};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use teak_console::service::Service;
use teak_console::{signals, terminal, Status};
use teak_metrics::Listen;
use verify::Wanted;

/// How often it is looked whether there is something to tell who started the program.
const TICK: Duration = Duration::from_millis(100);

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
    /// Apply nothing more of sources, until `resume`
    Pause {
        #[command(flatten)]
        file: ConfigurationFile,
        /// Which ones; all without
        sources: Vec<String>,
    },
    /// Go on with sources that pause, or have stopped
    Resume {
        #[command(flatten)]
        file: ConfigurationFile,
        /// Which ones; all without
        sources: Vec<String>,
    },
    /// Pass over one transaction of a source
    Skip {
        #[command(flatten)]
        file: ConfigurationFile,
        /// The transaction
        #[arg(long)]
        gtid: String,
        /// Whose it is; may be left out if there is one source only
        source: Option<String>,
    },
    /// End the program that follows sources, or that it follows some
    Stop {
        #[command(flatten)]
        file: ConfigurationFile,
        /// Which ones; all without
        sources: Vec<String>,
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
        /// Compare nothing, but name rows that somebody else has changed in the target, by its binary log, from a file
        /// of it on or of all that are there; sources need gtid_domain_id
        #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["values", "repair"])]
        target_log: Option<Option<String>>,
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
    /// `pause`, `resume`, `skip` or `stop` could not be carried out.
    #[error("{0}")]
    Control(#[from] ControlError),
    /// `verify` has found something.
    #[error("{0}")]
    Verify(#[from] VerifyError),
    /// No thread could be made.
    #[error("no thread for a source: {0}")]
    Thread(#[from] std::io::Error),
    /// Nobody could ask for metrics.
    #[error("metrics: {listen}: {error}")]
    Listen {
        /// Where they were to.
        listen: Listen,
        /// Why not.
        error: std::io::Error,
    },
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
            ReplicateError::Control(error) => error.status(),
            ReplicateError::Verify(VerifyError::Different(_) | VerifyError::WrittenHere(_)) => Status::Other,
            ReplicateError::Verify(VerifyError::NoOrigin(_)) => Status::Usage,
            ReplicateError::Verify(VerifyError::Log(DumpError::Server(error))) => error.status(),
            ReplicateError::Verify(VerifyError::Log(_)) => Status::Damage,
            ReplicateError::Verify(VerifyError::Side { error, .. }) => error.error().status(),
            ReplicateError::Verify(VerifyError::Output(_)) => Status::InputOutput,
            ReplicateError::Stopped { status, .. } => *status,
            ReplicateError::Thread(_) => Status::Other,
            ReplicateError::Listen { .. } => Status::InputOutput,
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
        Some(Command::Pause { file, sources }) => {
            return Ok(control::ask(&Configuration::read(&file.config)?, sources, Asking::Pause, out)?)
        }
        Some(Command::Resume { file, sources }) => {
            return Ok(control::ask(&Configuration::read(&file.config)?, sources, Asking::Resume, out)?)
        }
        Some(Command::Stop { file, sources }) => {
            return Ok(control::ask(&Configuration::read(&file.config)?, sources, Asking::Stop, out)?)
        }
        Some(Command::Skip { file, gtid, source }) => {
            return Ok(control::skip(&Configuration::read(&file.config)?, source.as_deref(), gtid, out)?)
        }
        Some(Command::Verify { file, target_log: Some(from), .. }) => {
            return Ok(written_here::show(&Configuration::read(&file.config)?, from.as_deref(), out)?);
        }
        Some(Command::Verify { file, values, repair, .. }) => {
            let wanted = Wanted { values: *values, repair: *repair };
            return Ok(verify::show(&Configuration::read(&file.config)?, wanted, out)?);
        }
    }
    let file = arguments.file.as_ref().ok_or(ReplicateError::NoConfiguration)?;
    follow_all(&Configuration::read(&file.config)?)
}

/// How many sources are followed.
struct Followed(AtomicUsize);

impl Followed {
    fn less(&self) {
        self.0.fetch_sub(1, SeqCst);
    }

    fn some(&self) -> bool {
        self.0.load(SeqCst) > 0
    }

    /// One more, if there are others; otherwise the program is about to end.
    fn more(&self) -> bool {
        self.0.fetch_update(SeqCst, SeqCst, |some| (some > 0).then(|| some + 1)).is_ok()
    }
}

/// Follows all sources until a signal comes, or until all of them have stopped. One that stops does not stop others,
/// and is followed again if somebody asks for it while others are.
fn follow_all(Configuration { target, sources, metrics, .. }: &Configuration) -> Result<(), ReplicateError> {
    signals::catch();
    let progress: Arc<[Progress]> = sources.iter().map(|source| Progress::new(&source.name)).collect();
    let listening = metrics.as_ref().map(|listen| {
        let error = |error| ReplicateError::Listen { listen: listen.clone(), error };
        metrics::listen(listen, Arc::clone(&progress)).map_err(error)
    });
    let _listening = listening.transpose()?;
    let claims = &Claims::default();
    let workers = copy_worker::of_each(sources.len());
    let followed = &Followed(AtomicUsize::new(sources.len()));
    let stopped: Vec<Status> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (source, progress) in sources.iter().zip(progress.iter()) {
            let work = move || {
                let mut follower = Follower::new(target, source, claims, progress, workers);
                loop {
                    let stopped = match follower.follow() {
                        Ok(()) => {
                            progress.becomes(Condition::Ended);
                            None
                        }
                        Err((why, status)) => {
                            progress.becomes(Condition::Stopped);
                            terminal::message(&format!("{}: stopped: {why}", source.name));
                            Some(status)
                        }
                    };
                    followed.less();
                    if !follower.is_wanted_again(&|| followed.some()) || !followed.more() {
                        return stopped;
                    }
                }
            };
            threads.push(std::thread::Builder::new().name(source.name.clone()).spawn_scoped(scope, work)?);
        }
        if let Some(mut service) = Service::of_environment() {
            while !threads.iter().all(|thread| thread.is_finished()) {
                service.tell(service::told(&progress), Instant::now());
                std::thread::sleep(TICK);
            }
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
