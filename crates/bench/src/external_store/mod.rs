//! A wiki's store of texts: tables of an id and a compressed text, read one at a time by id at random, with a trickle
//! of inserts. As Wikimedia's External Storage is used, and by the method by which its engines were compared: groups of
//! random ids, the first run with cold caches.
//!
//! ```text
//! words -> page -> deflate -> corpus ─┬─> tables ──> server <── reading (every value compared)
//!                                     └─> writing ─────┘            │
//!                                          footprint ───────────────┴─> result ──> report
//! ```

mod corpus;
mod deflate;
mod footprint;
mod page;
mod reading;
pub mod report;
pub mod result;
mod tables;
mod words;
mod writing;

use super::server::Server;
use super::{write_json, Error};
use corpus::{Corpus, Form, Later};
use reading::Values;
use result::Outcome;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tables::{Definition, Filler};
use teak_client::{self as client, Connection, Settings};
use teak_console::{amounts, terminal};

/// Where the tables are, unless the command line says otherwise.
const DATABASE: &str = "external_store";
/// How long the server may take to answer after the restart.
const RESTART: Duration = Duration::from_secs(600);

/// Options of `teak-bench external-store`.
#[derive(clap::Args)]
pub struct Options {
    /// Tables, named blobs_cluster1 and so on
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    tables: u64,
    /// Options of the tables, written behind the engine in CREATE TABLE, such as "COMPRESSION_LEVEL=3"
    #[arg(long, value_name = "SQL", default_value = "")]
    table_options: String,
    /// Pages; a text has 35 KB in the mean, gzipped 10.4 KB. This program holds the latest text of each
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    histories: u64,
    /// Revisions of each page, each of them a whole text
    #[arg(long, default_value_t = 60, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    revisions: u64,
    /// Texts of as many different pages instead
    #[arg(long)]
    unrelated: bool,
    /// Read the last revision of each page only
    #[arg(long, conflicts_with = "unrelated")]
    newest: bool,
    /// How texts are stored
    #[arg(long, value_enum, default_value = "gzip")]
    form: Form,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads that make texts
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    makers: u64,
    /// Leave the tables at the end, and use those that an earlier run with --keep and the same corpus has left
    #[arg(long)]
    keep: bool,
    /// Drop tables of these names first
    #[arg(long, conflicts_with = "keep")]
    replace: bool,
    /// Threads that read
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Random ids that each thread reads in a run
    #[arg(long, default_value_t = 100_000, value_name = "IDS", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    group: u64,
    /// Runs; with 0 the tables are filled and measured only
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    runs: u64,
    /// Inserts a second, all along; 0 for none
    #[arg(long, default_value_t = 50.0, value_name = "N")]
    inserts: f64,
    /// Restarts the server and empties the caches, once the tables are filled [default: the first run is warm]
    #[arg(long, value_name = "COMMAND")]
    restart_command: Option<String>,
    /// The server's data directory, if it is on this machine: what the tables' files take is counted
    #[arg(long, value_name = "DIRECTORY")]
    datadir: Option<PathBuf>,
    /// The server's process, or its pid file, if it is on this machine: what it reads from disks is counted
    #[arg(long, value_name = "NUMBER|FILE")]
    pid: Option<String>,
    /// What it is called in reports [default: the engine]
    #[arg(long)]
    label: Option<String>,
    /// Write what was measured to this file, for `teak-bench report`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page about it to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    // Last, since its heading in the help is that of all options after it.
    #[command(flatten)]
    server: Server,
}

/// Fills the tables, reads, and reports.
pub fn run(options: &Options) -> Result<(), Error> {
    if !options.inserts.is_finite() || options.inserts < 0.0 {
        return Err(Error::Usage("--inserts wants a number of inserts a second".into()));
    }
    let mut settings = options.server.settings_in(DATABASE)?;
    settings.several_statements = false;
    let definition = options.definition();
    let mut connection = reading::connect(&settings)?;
    let mut outcome = options.describe(&connection);
    let (values, later) = fill(options, &definition, &mut connection, &mut outcome)?;
    definition.analyze(&mut connection)?;
    if let Some(command) = &options.restart_command {
        drop(connection);
        restart(command, &settings)?;
        connection = reading::connect(&settings)?;
        outcome.cold = true;
    } else if options.runs > 0 {
        terminal::message("the first run is warm, as the others: there is no --restart-command");
    }
    outcome.table_bytes = definition.bytes(&mut connection)?;
    drop(connection);
    if let (Some(data), Some(database)) = (&options.datadir, &settings.database) {
        outcome.disk_bytes = Some(footprint::disk_bytes(data, database, &options.server.engine)?);
    }
    if options.runs > 0 {
        measure(options, &settings, &values, later, &mut outcome)?;
    }
    if !options.keep {
        // A new connection: after hours of runs the server may have closed the first.
        definition.drop(&mut reading::connect(&settings)?)?;
    }
    print!("{}", report::text(&outcome));
    if let Some(path) = &options.json {
        write_json(path, &outcome)?;
    }
    if let Some(path) = &options.html {
        super::write_file(path, &report::html(std::slice::from_ref(&outcome)))?;
    }
    Ok(())
}

impl Options {
    fn corpus(&self) -> Corpus {
        let Options { seed, histories, revisions, unrelated, form, .. } = *self;
        Corpus { seed, histories, revisions, unrelated, form }
    }

    fn definition(&self) -> Definition<'_> {
        Definition {
            engine: &self.server.engine,
            options: &self.table_options,
            tables: self.tables,
            corpus: self.corpus(),
        }
    }

    fn describe(&self, connection: &Connection) -> Outcome {
        Outcome {
            format: result::FORMAT.into(),
            label: self.label.clone().unwrap_or_else(|| self.server.engine.clone()),
            engine: self.server.engine.clone(),
            table_options: self.table_options.clone(),
            server: connection.version().into(),
            zlib: deflate::version(),
            settings: result::Settings {
                tables: self.tables,
                histories: self.histories,
                revisions: self.revisions,
                unrelated: self.unrelated,
                newest: self.newest,
                form: format!("{:?}", self.form).to_lowercase(),
                seed: self.seed,
                threads: self.threads,
                group: self.group,
                inserts_per_second: self.inserts,
            },
            ..Outcome::default()
        }
    }
}

/// Shows where things are, at most once in a while and on a terminal only.
struct Progress {
    shown: Option<Instant>,
}

impl Progress {
    fn show(&mut self, line: impl FnOnce() -> String) {
        if self.shown.is_none_or(|shown| shown.elapsed() >= Duration::from_millis(500))
            && terminal::is_there()
        {
            self.shown = Some(Instant::now());
            terminal::show_line(&line());
        }
    }
}

/// Makes and fills the tables, unless they are there; the hashes of what is in them, and what comes after it.
fn fill(
    options: &Options,
    definition: &Definition<'_>,
    connection: &mut Connection,
    outcome: &mut Outcome,
) -> Result<(Values, Later), Error> {
    let (corpus, tables) = (definition.corpus, options.tables);
    let is_there = options.keep && definition.are_there(connection)?;
    if !is_there {
        definition.create(connection, options.replace)?;
    }
    let began = Instant::now();
    let mut values = Values::new(&corpus, tables);
    let mut filler = Filler::new(connection, tables);
    let mut progress = Progress { shown: None };
    let what = if is_there { "tables are there, making their texts again to compare" } else { "filling" };
    let later = corpus.generate(options.makers, |number, record| {
        let table = corpus.table(number, tables);
        if options.newest && number == corpus.records() - corpus.histories {
            values.pass();
        }
        values.push(table, record.hash);
        outcome.text_bytes += record.text_bytes;
        outcome.value_bytes += record.value.len() as u64;
        progress.show(|| format!("{what}: {} of {} records", number + 1, corpus.records()));
        if is_there {
            return Ok(());
        }
        filler.add(table, &record)
    })?;
    filler.finish()?;
    let inserting = filler.inserting;
    terminal::clear_line();
    outcome.records = corpus.records();
    if !is_there {
        let seconds = inserting.as_secs_f64().max(1e-9);
        let load = result::Load {
            seconds: began.elapsed().as_secs_f64(),
            insert_seconds: seconds,
            rows_per_second: outcome.records as f64 / seconds,
            mb_per_second: outcome.value_bytes as f64 / 1e6 / seconds,
        };
        terminal::message(&format!(
            "filled {} records, {}, in {:.1} s",
            outcome.records,
            amounts::bytes(outcome.value_bytes as f64),
            load.seconds
        ));
        outcome.load = Some(load);
    }
    Ok((values, later))
}

/// Lets the command restart the server, and waits until it answers.
fn restart(command: &str, settings: &Settings) -> Result<(), Error> {
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .status()
        .map_err(|error| Error::Usage(format!("--restart-command: sh cannot be started: {error}")))?;
    if !status.success() {
        return Err(Error::Usage(format!("--restart-command failed: {status}")));
    }
    let began = Instant::now();
    loop {
        match settings.connect() {
            Err(client::Error::Io { .. }) if began.elapsed() < RESTART => {
                std::thread::sleep(Duration::from_millis(100));
            }
            other => break other.map(drop).map_err(Error::from),
        }
    }
}

/// All runs, with the inserts beside them.
fn measure(
    options: &Options,
    settings: &Settings,
    values: &Values,
    mut later: Later,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = (options.inserts > 0.0).then(|| {
            let (stop, later) = (&stop, &mut later);
            scope.spawn(move || writing::write(settings, later, options.tables, options.inserts, stop))
        });
        let read = read_all(options, settings, values, &stop, outcome);
        stop.store(true, Ordering::SeqCst);
        let written = writer.map(|writer| writer.join().map_err(|_| Error::Panic("the writer"))?).transpose();
        // A reader is stopped by the writer's error, which is thus the first; a reader's own is told before.
        read.and(written)
    })?;
    if let Some(written) = written {
        outcome.inserts = Some(result::Inserts {
            per_second: written.times.count() as f64 / written.seconds,
            times: (&written.times).into(),
            sent_times: (&written.sent_times).into(),
            verified: written.verify(settings)?,
        });
    }
    Ok(())
}

fn read_all(
    options: &Options,
    settings: &Settings,
    values: &Values,
    stop: &AtomicBool,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let plan = reading::Plan { settings, values, threads: options.threads, group: options.group };
    let wanted = options.threads * options.group;
    let read_bytes = || options.pid.as_deref().map(footprint::read_bytes).transpose();
    for number in 0..options.runs {
        let before = read_bytes()?;
        let place = format!("run {} of {}", number + 1, options.runs);
        let mut progress = Progress { shown: None };
        let began = Instant::now();
        let reads = plan.run(number, stop, |done| {
            let rate = done as f64 / began.elapsed().as_secs_f64();
            progress.show(|| format!("{place}: {done} of {wanted} reads, {rate:.0} a second"));
        })?;
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let count = reads.times.count() as f64;
        let from_disk =
            read_bytes()?.zip(before).map(|(after, before)| after.saturating_sub(before) as f64 / count);
        let run = result::Run {
            seconds: reads.seconds,
            queries_per_second: count / reads.seconds.max(1e-9),
            times: (&reads.times).into(),
            disk_bytes_per_query: from_disk,
        };
        terminal::message(&format!("{place}: {}", report::line(&run)));
        if number == 0 {
            outcome.first_curve = result::curve(&reads.times);
        }
        outcome.last_curve = result::curve(&reads.times);
        outcome.series.extend(reads.series);
        outcome.runs.push(run);
    }
    Ok(())
}
