//! `teak load`: loads SQL dumps into any MariaDB or MySQL server, on several connections, with the result of a serial
//! load.
//!
//! ```text
//! input ─> splitter ─> loader ──────────────────────────> queue ─> workers ─> server
//! (files,  (statements) (what each is about: statement,    (per     (sessions,
//!  pipes,                rows; who waits for whom; joins     table)   transactions,
//!  gz ...)               small ones)                                  repeats)
//! ```
//!
//! The loader's own connection carries out what orders the dump; `progress` records in the server what is done;
//! `deferred` keeps keys for the end. The rules that keep a parallel load equal to a serial one are in docs/load.md.

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_op_in_unsafe_fn)]

mod deferred;
mod dry;
mod durability;
mod error;
mod input;
mod into;
mod loader;
mod pace;
mod progress;
mod queue;
mod report;
mod server;
mod session;
mod state;
mod task;
mod team;
mod verify;
mod worker;

pub use error::{LoadError, Place};
pub use verify::columns_of;

use clap::Args;
use deferred::{DeferIndexes, Deferred};
use loader::Loader;
use progress::Progress;
use report::Report;
use state::{Beginning, LoadState, OnError};
use std::io::Write;
use std::path::PathBuf;
use teak_client::{self as client, Settings};
use teak_console::signals;
use team::Team;
use verify::Verify;

/// Memory for statements that wait for a connection, or for its answer: at least this, and so much for each connection.
const QUEUE: usize = 32 << 20;
const QUEUE_EACH: usize = 1 << 20;

/// Options of `teak load`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    client: client::Arguments,
    /// Dumps: files, directories of mydumper, - for standard input; plain, gzip, zstd, bzip2 or xz
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Connections that insert [default: found out while loading, beginning with twice the processors, from 4 to 16]
    #[arg(long, short = 'n', value_name = "N")]
    connections: Option<usize>,
    /// Load a directory of mydumper, a dump of one database, into this one, which is made if it is missing
    #[arg(long, value_name = "DB")]
    into: Option<String>,
    /// One connection, every statement as it stands, in its order
    #[arg(long)]
    serial: bool,
    /// What to do when the server refuses a statement
    #[arg(long, value_enum, default_value_t)]
    on_error: OnError,
    /// Whether secondary keys are built after the rows
    #[arg(long, value_enum, default_value_t)]
    defer_indexes: DeferIndexes,
    /// Go on where an interrupted load of the same files ended
    #[arg(long, conflicts_with_all = ["serial", "no_record"])]
    resume: bool,
    /// Do not record progress in the server: an interrupted load cannot be resumed
    #[arg(long)]
    no_record: bool,
    /// Do not write to the binary log
    #[arg(long)]
    skip_log_bin: bool,
    /// Let commits of the whole server not wait for the disk while loading
    #[arg(long)]
    relaxed_durability: bool,
    /// Compare the rows of each table, value by value, with the dump's in the end
    #[arg(long)]
    check: bool,
    /// Only read and split, without a server; print what is there and how fast it went
    #[arg(long)]
    dry_run: bool,
    /// Events as JSON, one a line, on standard output
    #[arg(long)]
    json: bool,
    /// No summary
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// Loads, or fails; what was loaded before a failure stays.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), LoadError> {
    let result = load(arguments, out);
    if arguments.json {
        // The last event of all, so that who reads them knows that and how it ended.
        let error = result.as_ref().err().map(ToString::to_string);
        let event = serde_json::json!({"event": "end", "ok": result.is_ok(), "error": error});
        let _ = writeln!(out, "{event}");
    }
    result
}

fn load(arguments: &Arguments, out: &mut dyn Write) -> Result<(), LoadError> {
    let sources = input::find(&arguments.files)?;
    let (sources, create) = match &arguments.into {
        Some(database) => {
            let redirected = into::redirect(sources, database)?;
            (redirected.sources, Some(redirected.create))
        }
        None => {
            into::refuse_other_default(&sources, arguments.client.database.as_deref())?;
            (sources, None)
        }
    };
    let total = sources.iter().map(|source| source.size).sum::<Option<u64>>();
    let report = Report::new(total, arguments.json);
    if arguments.dry_run {
        let mut nothing = std::io::sink();
        let initial = session::Initial::of_options(&Settings::character_set(&arguments.client)?);
        let out = if arguments.json { &mut nothing } else { out };
        return dry::run(&sources, &initial, &report, arguments.check, out);
    }
    if arguments.no_record && arguments.defer_indexes == DeferIndexes::On {
        let why = "--defer-indexes=on takes keys off, which only records remember: not with --no-record";
        return Err(LoadError::Usage(why.into()));
    }
    let team = Team::new(arguments.connections, arguments.serial)?;
    let settings = Settings::read(&arguments.client)?;
    let mut control = state::connect(&settings, arguments.skip_log_bin)?;
    if let Some(create) = create {
        control.execute(create)?;
    }
    signals::catch();
    let _relaxed = arguments.relaxed_durability.then(|| durability::Relaxed::begin(&settings)).transpose()?;
    let progress = match arguments.no_record || arguments.serial {
        true => None,
        false => {
            let database = arguments.into.as_deref().or(settings.database.as_deref());
            open_progress(&mut control, &sources, database, arguments, &report)?
        }
    };
    let shared = LoadState::new(Beginning {
        settings,
        initial: session::Initial::ask(&mut control)?,
        report,
        progress,
        deferred: Deferred::new(if arguments.serial { DeferIndexes::Off } else { arguments.defer_indexes }),
        verify: arguments.check.then(|| Verify::new(arguments.resume)),
        on_error: arguments.on_error,
        skip_log_bin: arguments.skip_log_bin,
        resumes: arguments.resume,
        total,
        queue_bytes: QUEUE.max(team.most() * QUEUE_EACH),
    });
    let mut loader = Loader::new(&shared, control, arguments.serial)?;
    work(&shared, &mut loader, &sources, team)?;
    finish(&shared, &mut loader, arguments)
}

/// Records of progress are made if the user may; only `--resume` needs them.
fn open_progress(
    control: &mut client::Connection,
    sources: &[input::Source],
    database: Option<&str>,
    arguments: &Arguments,
    report: &Report,
) -> Result<Option<Progress>, LoadError> {
    match Progress::open(control, sources, database, arguments.resume, report) {
        Ok(progress) => {
            let left = progress.left_by_others(control)?;
            if left > 0 {
                let loads = if left == 1 { "another load".into() } else { format!("{left} other loads") };
                report.warn(&format!(
                    "the database teak_load has the records of {loads} that did not end: --resume with the same files \
                     goes on, DROP DATABASE teak_load forgets{}",
                    match progress.keys_of_others(control)?.join(", ") {
                        none if none.is_empty() => String::new(),
                        tables => format!(
                            "; keys of these tables are missing, and how they are built is nowhere else: {tables}"
                        ),
                    }
                ));
            }
            Ok(Some(progress))
        }
        Err(LoadError::Server(error @ client::Error::Server { .. })) if !arguments.resume => {
            report.warn(&format!("progress is not recorded, so this load cannot be resumed: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Runs the loader and its workers to their end.
fn work(
    shared: &LoadState,
    loader: &mut Loader<'_>,
    sources: &[input::Source],
    team: Team,
) -> Result<(), LoadError> {
    std::thread::scope(|scope| {
        let start = || -> Result<(), LoadError> {
            std::thread::Builder::new().name("report".into()).spawn_scoped(scope, || shared.report.run())?;
            team.start(scope, shared)
        };
        if let Err(error) = start().and_then(|()| loader.run(sources)) {
            // Tasks that run end; those that wait do not begin.
            shared.fail(error);
        }
        shared.queue.close();
        shared.report.end();
    });
    match shared.take_failure() {
        None => Ok(()),
        Some(error) if shared.progress.is_some() => {
            Err(LoadError::Unfinished { error: Box::new(error), missing: shared.deferred.statements() })
        }
        Some(error) => Err(error),
    }
}

fn finish(shared: &LoadState, loader: &mut Loader<'_>, arguments: &Arguments) -> Result<(), LoadError> {
    // Relaxed: the threads that count have ended.
    let skipped = shared.counters.skipped.load(std::sync::atomic::Ordering::Relaxed);
    if skipped == 0 {
        loader.remove_records()?;
    }
    let compared = shared.verify.as_ref().map(|verify| verify.compare(shared)).transpose()?;
    if !arguments.quiet {
        shared.report.summary(compared);
    }
    match (skipped, compared.map_or(0, |compared| compared.different)) {
        (0, 0) => Ok(()),
        (0, different) => Err(LoadError::Different(different)),
        (skipped, _) => Err(LoadError::Skipped(skipped)),
    }
}
