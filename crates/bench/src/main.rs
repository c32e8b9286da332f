//! `teak-bench`: workloads against any MariaDB or MySQL server and any of its engines, and pages about them.
//!
//! | module | is responsible for |
//! |---|---|
//! | `linkbench/` | LinkBench: its graph, its operations, loading, requesters, phases, verification |
//! | `external_store/` | a wiki's store of texts: the texts, tables, reads by id, inserts beside them |
//! | `report/` | runs of LinkBench as text and as one HTML page, charts of all pages |
//! | `result` | what a run measured, in JSON |
//! | `hotrow`, `queue` | the two tests that show at once what old snapshots cost |
//! | `server` | the connection and the database that all of them use |
//! | `histogram`, `random` | latencies, random numbers that are the same everywhere |

mod external_store;
mod histogram;
mod hotrow;
mod linkbench;
mod queue;
mod random;
mod report;
mod result;
mod server;

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use teak_client as client;
use teak_console::{terminal, Status};

/// Benchmarks against any MariaDB or MySQL server
#[derive(Parser)]
#[command(name = "teak-bench", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The benchmarks.
#[derive(clap::Subcommand)]
enum Command {
    /// LinkBench: a social graph with the mix of operations that Facebook observed; three phases, in the middle one of
    /// which a snapshot can be open
    #[command(disable_help_flag = true)]
    Linkbench(Box<linkbench::Options>),
    /// A wiki's store of compressed texts: reads of one text at a time by random ids, with cold and warm caches, beside
    /// a trickle of inserts
    #[command(disable_help_flag = true)]
    ExternalStore(Box<external_store::Options>),
    /// One HTML page about several runs of LinkBench, or of the external store, side by side
    Report(report::Options),
    /// Clients that update one row, without and then with an old snapshot
    #[command(disable_help_flag = true)]
    Hotrow(Box<hotrow::Options>),
    /// A queue table: time of the query for its first row, while rows are deleted under an old snapshot
    #[command(disable_help_flag = true)]
    Queue(Box<queue::Options>),
}

/// Why a benchmark failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Client(#[from] client::Error),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: std::io::Error },
    #[error("{}: {error}", path.display())]
    Json { path: PathBuf, error: serde_json::Error },
    #[error("{0}")]
    Usage(String),
    /// A snapshot read something else than at its begin.
    #[error("the snapshot changed: first {first}, at its end {last}")]
    Changed { first: String, last: String },
    /// A value is not what was stored.
    #[error(
        "{table}: the value of blob_id {id} is wrong: its hash should be {expected:016x}, it is {found}"
    )]
    WrongValue { table: String, id: u64, expected: u64, found: String },
    /// Operations failed, or the tables are inconsistent; what it was has been printed.
    #[error("{0}")]
    Failed(&'static str),
    /// A thread of this program ended by a bug; the message was printed.
    #[error("{0} panicked")]
    Panic(&'static str),
}

impl Error {
    /// The exit status of a benchmark that fails by it.
    fn status(&self) -> Status {
        match self {
            Error::Client(error) => error.status(),
            Error::File { .. } => Status::InputOutput,
            Error::Usage(_) => Status::Usage,
            Error::Changed { .. } | Error::WrongValue { .. } => Status::Damage,
            Error::Json { .. } | Error::Failed(_) | Error::Panic(_) => Status::Other,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    client::hide_passwords(&arguments);
    let line = CommandLine::parse_from(client::split_short_password(arguments));
    match run(&line.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::message(&format!("teak-bench: {error}"));
            error.status().into()
        }
    }
}

/// Does what the command line asks for.
fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Linkbench(options) => linkbench::run(options),
        Command::ExternalStore(options) => external_store::run(options),
        Command::Report(options) => report::run(options),
        Command::Hotrow(options) => hotrow::run(options),
        Command::Queue(options) => queue::run(options),
    }
}

/// Prints what was wrong, if anything, and writes the outcome.
fn conclude(
    outcome: &impl serde::Serialize,
    errors: &[String],
    json: Option<&Path>,
    complaint: &'static str,
) -> Result<(), Error> {
    errors.iter().for_each(|error| println!("ERROR: {error}"));
    if let Some(path) = json {
        write_json(path, outcome)?;
    }
    match errors {
        [] => Ok(()),
        _ => Err(Error::Failed(complaint)),
    }
}

fn write_file(path: &Path, contents: &str) -> Result<(), Error> {
    std::fs::write(path, contents).map_err(|error| Error::File { path: path.into(), error })
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), Error> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Error::Json { path: path.into(), error })?;
    write_file(path, &(text + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn each_benchmark_has_help() {
        for command in CommandLine::command().get_subcommands() {
            let shown = CommandLine::try_parse_from(["teak-bench", command.get_name(), "--help"]);
            assert_eq!(
                shown.err().map(|error| error.kind()),
                Some(ErrorKind::DisplayHelp),
                "{}",
                command.get_name()
            );
        }
    }
}
