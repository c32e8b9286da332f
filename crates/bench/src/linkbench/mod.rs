//! LinkBench, a benchmark of social graphs that Facebook published (Armstrong and others, SIGMOD 2013): nodes, links
//! between them and counts of links, ten operations in the mix observed in production, and power laws for what is
//! popular.
//!
//! ```text
//! graph (degrees, shuffle, zipf) ─┬─> loader ──────────────> session / schema ──> server
//! payload ────────────────────────┴─> workload ─> requester ─┘   │
//!                                        schedule ┘      recorder ┴─> run ──> result
//! ```
//!
//! The schema, the statements, the mix, the distributions and their parameters are those of the default workload for
//! MySQL. What is different: random numbers, so that a run is not the same request for request; the times of loaded
//! links, which are fixed; and the node with the most links, see [`degrees`].

mod degrees;
mod graph;
mod loader;
mod operation;
mod payload;
mod recorder;
mod requester;
mod run;
mod schedule;
mod schema;
mod session;
mod shuffle;
mod snapshot;
mod verify;
mod workload;
mod zipf;

use super::result::{self, Run};
use super::server::Server;
use super::{report, write_file, write_json, Error};
use graph::Graph;
pub use session::is_conflict;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use teak_client::Settings;
use teak_console::terminal;

/// Options of `teak-bench linkbench`.
#[derive(clap::Args)]
pub struct Options {
    /// What to do
    #[arg(value_enum)]
    stage: Stage,
    /// Number of nodes; a million are about 1 GB in InnoDB
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    maxid: u64,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads that load
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1024))]
    loaders: u64,
    /// Partition the links by id1 into so many
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1024))]
    partitions: u32,
    /// Clients that send requests, each with connections of its own
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    requesters: u64,
    /// Seconds of requests before the first phase, which are not counted
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    warmup_seconds: u64,
    /// Seconds of each of the three phases
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    phase_seconds: u64,
    /// Hold a snapshot open: a transaction that begins, reads a little, and ends after the phase
    #[arg(long, value_enum, default_value = "none")]
    snapshot: SnapshotWhen,
    /// Requests per second, of all requesters together; latencies then count from when a request was due [default: no
    /// limit]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Isolation level of the requesters [default: the server's]
    #[arg(long, value_enum)]
    isolation: Option<Isolation>,
    /// Compare counts with links, and the indexes of links, at the end
    #[arg(long)]
    verify: bool,
    /// What the run is called in reports [default: the engine]
    #[arg(long)]
    label: Option<String>,
    /// Write what was measured to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page about it to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show a line each so many seconds; 0 shows none
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    progress: u64,
    // Last, since its heading in the help is that of all options after it.
    #[command(flatten)]
    server: Server,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Make the tables and fill them
    Load,
    /// Send requests to tables that were loaded with the same --maxid
    Run,
    /// Load and run
    All,
    /// Only what --verify does
    Verify,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum SnapshotWhen {
    None,
    /// During the second phase
    Middle,
}

#[derive(clap::ValueEnum, Clone, Copy)]
enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    fn sql(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

impl Options {
    fn verifies(&self) -> bool {
        self.verify || self.stage == Stage::Verify
    }
}

/// Loads, runs, verifies and reports, as the options say.
pub fn run(options: &Options) -> Result<(), Error> {
    let rate = options.rate.unwrap_or(0.0);
    if !rate.is_finite() || rate < 0.0 || (options.rate.is_some() && rate < 0.001) {
        return Err(Error::Usage("--rate wants a number of requests per second".into()));
    }
    let settings = options.server.settings()?;
    let graph = Arc::new(Graph::new(options.maxid));
    let mut result = describe(options, rate);
    if matches!(options.stage, Stage::Load | Stage::All) {
        result.load = Some(load(options, &settings, &graph)?);
    }
    let mut connection = settings.connect()?;
    result.server = connection.version().to_string();
    result.engine = schema::engine(&mut connection)?;
    result.label = options.label.clone().unwrap_or_else(|| result.engine.clone());
    if matches!(options.stage, Stage::Run | Stage::All) {
        check_size(options, &mut connection)?;
        let plan = run::Plan {
            settings: settings.clone(),
            graph,
            seed: options.seed,
            requesters: options.requesters,
            warmup: Duration::from_secs(options.warmup_seconds),
            phase: Duration::from_secs(options.phase_seconds),
            rate,
            snapshot: options.snapshot == SnapshotWhen::Middle,
            isolation: options.isolation.map(|level| level.sql().to_string()),
        };
        let mut seconds = 0;
        run::run(&plan, &mut result, |line| {
            seconds += 1;
            if options.progress > 0 && seconds % options.progress == 0 {
                teak_console::terminal::message(line);
            }
        })?;
    }
    if options.verifies() {
        result.inconsistencies = verify::verify(&mut connection, options.maxid)?;
    }
    output(options, &result)
}

fn describe(options: &Options, rate: f64) -> Run {
    let settings = result::Settings {
        max_id: options.maxid,
        seed: options.seed,
        requesters: options.requesters,
        phase_seconds: options.phase_seconds,
        warmup_seconds: options.warmup_seconds,
        rate,
        isolation: options.isolation.map_or("default", Isolation::sql).into(),
    };
    Run { format: result::FORMAT.into(), settings, ..Run::default() }
}

fn load(options: &Options, settings: &Settings, graph: &Graph) -> Result<result::Load, Error> {
    let mut connection = settings.connect()?;
    schema::create(&mut connection, &options.server.engine, options.partitions)?;
    let is_terminal = terminal::is_there();
    let loaded = loader::load(settings, graph, options.seed, options.loaders, |share, links| {
        if is_terminal && options.progress > 0 {
            terminal::show_line(&format!("loading: {:>3.0} %, {links} links", share * 100.0));
        }
    })?;
    connection.execute("ANALYZE TABLE linktable, counttable, nodetable")?;
    terminal::message(&format!(
        "loaded {} nodes and {} links ({:.2} per node) into {} in {:.1} s",
        loaded.nodes,
        loaded.links,
        loaded.links as f64 / loaded.nodes.max(1) as f64,
        options.server.engine,
        loaded.seconds
    ));
    Ok(loaded)
}

/// Refuses to run with ids that were never loaded: most requests would find nothing.
fn check_size(options: &Options, connection: &mut teak_client::Connection) -> Result<(), Error> {
    let largest =
        connection.value("SELECT MAX(id) FROM nodetable")?.and_then(|text| text.parse::<u64>().ok());
    if largest.unwrap_or(0) + options.maxid / 10 < options.maxid {
        let what = format!(
            "the largest node is {}, so these tables were loaded with another --maxid than {}",
            largest.unwrap_or(0),
            options.maxid
        );
        return Err(Error::Usage(what));
    }
    Ok(())
}

fn output(options: &Options, result: &Run) -> Result<(), Error> {
    print!("{}", report::text(result));
    if let Some(path) = &options.json {
        write_json(path, result)?;
    }
    if let Some(path) = &options.html {
        write_file(path, &report::html(std::slice::from_ref(result)))?;
    }
    if options.verifies() && result.inconsistencies.is_empty() {
        println!("verified: counts agree with visible links, and the indexes of links with each other");
    }
    if result.has_errors() {
        return Err(Error::Failed("the run had errors, named above"));
    }
    Ok(())
}
