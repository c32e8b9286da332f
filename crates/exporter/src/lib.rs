//! `teak exporter`: tells Prometheus how a MariaDB server and its Teak tables are.
//!
//! ```text
//!  HTTP                              one thread, one connection
//!  /metrics ─┐                      ┌─ server_status, server_variables (SHOW GLOBAL STATUS, VARIABLES)
//!  /healthz ─┼─> collector: rounds ─┼─ engine, indexes (information_schema.TEAK_METRICS, TEAK_INDEXES)
//!  /history ─┤   (what the last     ├─ replication (SHOW ALL SLAVES STATUS)
//!  /        ─┘    one has found)    └─ disk (what is free where the data are)
//! ```
//!
//! Who asks starts a round, or waits for the one that goes on: a hundred who ask at once cost the server one round. A
//! round has a limit of time, after which there is an answer whatever the server does, with what has come until then.
//!
//! | module | is about |
//! |---|---|
//! | `collector` | rounds: who starts them, who waits for them, and what is answered |
//! | `session` | the connection, and what is asked over it in time |
//! | `part` | the parts of a round, each of which may be missing |
//! | `server_status`, `server_variables`, `engine`, `indexes`, `replication`, `disk` | what each has |
//! | `value` | texts of the server that are numbers |
//! | `history` | the last hour, for the page |
//!
//! What it tells is in docs/exporter.md.

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_op_in_unsafe_fn)]

mod collector;
mod disk;
mod engine;
mod history;
mod indexes;
mod part;
mod replication;
mod server_status;
mod server_variables;
mod session;
mod value;

use collector::Collector;
use part::Part;
use session::Session;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use teak_client::Settings;
use teak_console::service::Service;
use teak_console::{signals, Status};
use teak_metrics::{page, Answer, Listen, Site};

/// How often it is looked whether the end was asked for.
const TICK: Duration = Duration::from_millis(100);
/// More would be no limit: Prometheus waits for ten seconds, unless told else.
const MOST_SECONDS: u64 = 600;

/// Options of `teak exporter`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Where to be asked: an address with a port, or the absolute path of a socket. There is neither TLS nor a password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9869")]
    listen: Listen,
    /// Answer after this many seconds at the latest, with what there is until then
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=MOST_SECONDS))]
    timeout: u64,
    /// Tell the size and use of each index of tables that are open, too: eight numbers for each index
    #[arg(long)]
    indexes: bool,
    /// The password is the text of this file, without the end of its line
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    client: teak_client::Arguments,
}

/// Why it ended, other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// An option, or an option file.
    #[error("{0}")]
    Settings(teak_client::Error),
    /// A password that others can see.
    #[error(
        "a password on the command line can be seen by everybody on this machine: \
         give it in an option file, in a file of --password-file, or in $MYSQL_PWD"
    )]
    Password,
    /// The file of the password.
    #[error("--password-file {}: {error}", file.display())]
    PasswordFile {
        /// Which one.
        file: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// Nobody could ask.
    #[error("--listen {listen}: {error}")]
    Listen {
        /// Where they were to.
        listen: Listen,
        /// Why not.
        error: std::io::Error,
    },
    /// No thread could be made.
    #[error("no thread: {0}")]
    Thread(std::io::Error),
}

impl ExporterError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            ExporterError::Settings(error) => error.status(),
            ExporterError::Password => Status::Usage,
            ExporterError::PasswordFile { .. } | ExporterError::Listen { .. } => Status::InputOutput,
            ExporterError::Thread(_) => Status::Other,
        }
    }
}

/// Answers until a signal comes; a server that is away is waited for. `version` is that of the program.
pub fn run(arguments: &Arguments, version: &str) -> Result<(), ExporterError> {
    signals::catch();
    let settings = settings(arguments)?;
    let timeout = Duration::from_secs(arguments.timeout);
    let parts = Part::ALL.iter().copied().filter(|part| match part {
        Part::Indexes => arguments.indexes,
        // Of another machine nothing is known.
        Part::Disk => matches!(settings.address, teak_client::Address::Socket(_)),
        _ => true,
    });
    let collector = Arc::new(Collector::new(parts.collect(), timeout, version));
    let listen = &arguments.listen;
    let _listening = teak_metrics::listen(listen, site(&collector))
        .map_err(|error| ExporterError::Listen { listen: listen.clone(), error })?;
    let working = Arc::clone(&collector);
    let work = move || working.work(Session::new(settings));
    std::thread::Builder::new().name("collector".into()).spawn(work).map_err(ExporterError::Thread)?;
    let mut service = Service::of_environment();
    while !signals::interrupted() {
        if let Some(service) = &mut service {
            service.tell(collector.told(), Instant::now());
        }
        std::thread::sleep(TICK);
    }
    if let Some(service) = &mut service {
        service.tell(collector.told(), Instant::now());
    }
    collector.end();
    Ok(())
}

fn site(collector: &Arc<Collector>) -> Site {
    let [metrics, health, history] = [(); 3].map(|()| Arc::clone(collector));
    Site::default()
        .with("/", || page(include_str!("page.html")))
        .with("/metrics", move || Answer::metrics(metrics.scrape()))
        .with("/healthz", move || Answer::text(health.health()))
        .with("/history", move || Answer::json(history.history()))
}

fn settings(arguments: &Arguments) -> Result<Settings, ExporterError> {
    if matches!(&arguments.client.password, Some(Some(password)) if !password.is_empty()) {
        return Err(ExporterError::Password);
    }
    let mut settings = Settings::read(&arguments.client).map_err(ExporterError::Settings)?;
    if let Some(file) = &arguments.password_file {
        settings.password = teak_client::password_of_file(file)
            .map_err(|error| ExporterError::PasswordFile { file: file.clone(), error })?;
    }
    // One of an option file may be missing, and is not needed.
    settings.database = None;
    Ok(settings)
}
