//! `teak archive`: the archive of crates/archive on the command line.
//!
//! | file | is about |
//! |---|---|
//! | `objects.rs` | putting and getting: `put`, `get`, `stat`, `change`, `rm` |
//! | `folders.rs` | all files below a directory |
//! | `asking.rs` | `query` |
//! | `keeping.rs` | the archive itself: `init`, `schema`, `rules`, `hold`, `retain`, `gc`, `scrub`, `check`, `audit` |
//! | `views.rs` | `view` |
//! | `moving.rs` | `export`, `import` |
//! | `serving.rs` | `serve` |
//! | `values.rs` | options that are fields, durations, sizes |

mod asking;
mod folders;
mod keeping;
mod moving;
mod objects;
mod serving;
mod values;
mod views;

use clap::{Args, Subcommand};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_archive::{Archive, Durability, Name, Options};
use teak_console::Status;
use teak_core::file::RealFileSystem;

/// What is asked for.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make an archive in a directory that is empty or missing
    Init(keeping::Init),
    /// Store files, or standard input, and print the OID of each
    Put(objects::Put),
    /// Write the bytes of an object to standard output or a file; each chunk is compared with its hash
    Get(objects::Get),
    /// Show what is known of an object
    Stat(objects::Show),
    /// Change metadata: a new version of the record
    Change(objects::Change),
    /// Remove records. Data that no record names goes with `gc`, when its grace period is over
    Rm(objects::Remove),
    /// Find records by an expression: one OID a line
    Query(asking::Asked),
    /// Directories made of fields: make them, look into them, read and store files in them
    View(views::Viewed),
    /// Write records as plain files with a manifest that `b3sum -c` verifies
    Export(moving::Export),
    /// Store what an export has written, with its OIDs
    Import(moving::Import),
    /// Show the schema as JSON, or give the archive another one
    Schema(keeping::Evolve),
    /// Show or change how long data without records, and versions, are kept
    Rules(keeping::Change),
    /// Put a legal hold on a record or on data, or release it
    Hold(keeping::Hold),
    /// Protect a record, or data, until a date; that can be made longer, not shorter
    Retain(keeping::Retain),
    /// Give back what nobody names any more
    Gc(keeping::Collect),
    /// Read all bytes and compare them with their hashes; exit status 3 if something is damaged
    Scrub(keeping::Read),
    /// Compare all rows of the archive with each other; exit status 3 if something is damaged
    Check(keeping::Check),
    /// Show who has removed, changed or protected what, one JSON object a line
    Audit(keeping::Audit),
    /// Serve the archive by HTTP, until a signal comes
    Serve(serving::Serve),
}

/// Why a command of an archive failed.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive says so.
    #[error("{0}")]
    Archive(#[from] teak_archive::Error),
    /// An option that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A file that cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// It was told what is damaged.
    #[error("{0}")]
    Damaged(String),
    /// A server has the archive open.
    #[error("{} is served at {address}: use its API, see {address}/api/openapi.json", path.display())]
    Served {
        /// The archive.
        path: PathBuf,
        /// The server's.
        address: String,
    },
    /// It cannot be served.
    #[error("{0}")]
    Serve(#[from] teak_archive_http::ServeError),
}

impl ArchiveError {
    /// The exit status.
    pub fn status(&self) -> Status {
        use teak_archive::Error;
        use teak_core::Error as CoreError;
        match self {
            ArchiveError::Archive(error) => match error {
                Error::Core(
                    CoreError::Io { .. } | CoreError::DiskFull { .. } | CoreError::NoDescriptor { .. },
                )
                | Error::Stream { .. } => Status::InputOutput,
                Error::Core(CoreError::Corrupt { .. }) | Error::Damaged { .. } | Error::Inconsistent(_) => {
                    Status::Damage
                }
                Error::Core(_) => Status::Other,
                _ => Status::Usage,
            },
            ArchiveError::Usage(_) | ArchiveError::Served { .. } => Status::Usage,
            ArchiveError::Serve(teak_archive_http::ServeError::Open(_)) => Status::Usage,
            ArchiveError::Serve(_) => Status::InputOutput,
            ArchiveError::File { .. } | ArchiveError::Output(_) => Status::InputOutput,
            ArchiveError::Damaged(_) => Status::Damage,
        }
    }
}

/// Does what is asked for.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), ArchiveError> {
    teak_console::signals::catch();
    match &arguments.command {
        Command::Init(init) => keeping::init(init),
        Command::Put(put) => objects::put(put, out),
        Command::Get(get) => objects::get(get, out),
        Command::Stat(show) => objects::stat(show, out),
        Command::Change(change) => objects::change(change, out),
        Command::Rm(remove) => objects::remove(remove),
        Command::Query(asked) => asking::query(asked, out),
        Command::View(viewed) => views::view(viewed, out),
        Command::Export(export) => moving::export(export, out),
        Command::Import(import) => moving::import(import, out),
        Command::Schema(evolve) => keeping::schema(evolve, out),
        Command::Rules(change) => keeping::rules(change, out),
        Command::Hold(hold) => keeping::hold(hold),
        Command::Retain(retain) => keeping::retain(retain),
        Command::Gc(collect) => keeping::collect(collect, out),
        Command::Scrub(read) => keeping::scrub(read, out),
        Command::Check(check) => keeping::check(check, out),
        Command::Audit(audit) => keeping::audit(audit, out),
        Command::Serve(serve) => serving::serve(serve),
    }
}

/// How archives are opened here.
fn options(dir: &Path) -> Options {
    let user = std::env::var("SUDO_USER").or_else(|_| std::env::var("USER")).unwrap_or_default();
    Options { actor: user, ..Options::new(dir) }
}

fn open(dir: &Path) -> Result<Archive, ArchiveError> {
    told_who_has_it(Archive::open_on(Arc::new(RealFileSystem), options(dir)))
}

/// For many changes, each of which is told when [`Archive::sync`] was called.
fn open_for_many(dir: &Path) -> Result<Archive, ArchiveError> {
    let options = Options { durability: Durability::OnSync, ..options(dir) };
    told_who_has_it(Archive::open_on(Arc::new(RealFileSystem), options))
}

/// Of an archive that is in use: by which server, if it is one.
fn told_who_has_it(opened: teak_archive::Result<Archive>) -> Result<Archive, ArchiveError> {
    opened.map_err(|error| match &error {
        teak_archive::Error::InUse(path) => match teak_archive_http::server_of(path) {
            Some(address) => ArchiveError::Served { path: path.clone(), address },
            None => error.into(),
        },
        _ => error.into(),
    })
}

/// Opens an archive, changes it, and leaves it with nothing to replay.
fn changing<T>(
    dir: &Path,
    change: impl FnOnce(&Archive) -> Result<T, ArchiveError>,
) -> Result<T, ArchiveError> {
    let archive = open(dir)?;
    let changed = change(&archive)?;
    archive.close()?;
    Ok(changed)
}

/// For errors of a file.
fn of_file(path: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError + '_ {
    move |cause| ArchiveError::File { path: path.to_path_buf(), cause }
}

/// An object by the name that was given.
fn name(text: &str) -> Result<Name, ArchiveError> {
    Ok(text.parse()?)
}
