//! `teak report`: what the Teak tables of a server, or in a directory, take, what that saves, and what to do about it.
//!
//! ```text
//!  server, directory ──> facts ──> advice ──> text, JSON or HTML
//! ```
//!
//! | module | is about |
//! |---|---|
//! | `facts` | what the server says of its tables, indexes and itself |
//! | `directory` | the same of files without a server, as far as they say it |
//! | `asking` | statements whose rows are numbers and names |
//! | `advice` | what follows from the facts: evidence and a statement, by rules that know no server |
//! | `text`, `html` | the report for people |
//!
//! It reads and changes nothing. What it tells is in docs/report.md.

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_code)]

mod advice;
mod asking;
mod directory;
mod facts;
mod html;
mod text;

use advice::Advice;
use facts::Facts;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use teak_client::Settings;
use teak_console::Status;
use teak_core::server::Engine;

/// How the report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a terminal
    Text,
    /// One object with all facts and all advice
    Json,
    /// One page without anything from elsewhere
    Html,
}

/// Options of `teak report`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show this many tables and indexes, the largest; JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    largest: usize,
    /// Say nothing of unused indexes before the server is up for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    unused_after: u64,
    /// Report on the engine in this directory, or in this data directory, instead of a server. No server must run on
    /// it. Files know sizes, and neither names of indexes nor uses
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    #[command(flatten)]
    client: teak_client::Arguments,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// An option, the connection, or a statement that the server refused.
    #[error("{0}")]
    Client(#[from] teak_client::Error),
    /// The server has no Teak.
    #[error("the server has no Teak, or one before TEAK_INDEXES: INSTALL SONAME 'ha_teak'")]
    NoEngine,
    /// The user may not see it.
    #[error("the user needs the PROCESS privilege: without it TEAK_TABLES and TEAK_INDEXES are empty")]
    NoPrivilege,
    /// The directory cannot be read.
    #[error("{0}")]
    Engine(#[from] teak_core::Error),
    /// It cannot be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] std::io::Error),
}

impl ReportError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            ReportError::Client(error) => error.status(),
            ReportError::NoEngine | ReportError::NoPrivilege => Status::Server,
            ReportError::Engine(_) | ReportError::Output(_) => Status::InputOutput,
        }
    }
}

/// All of it.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    facts: Facts,
    advice: Vec<Advice>,
}

/// Writes the report on an engine that was opened for a look in `path`.
pub fn of_directory(
    engine: &Engine,
    path: &Path,
    arguments: &Arguments,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    write(directory::facts(engine, path)?, arguments, out)
}

/// Asks the server and writes the report.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), ReportError> {
    let mut settings = Settings::read(&arguments.client)?;
    // One of an option file may be missing, and is not needed.
    settings.database = None;
    write(Facts::of(&mut settings.connect()?)?, arguments, out)
}

fn write(facts: Facts, arguments: &Arguments, out: &mut dyn Write) -> Result<(), ReportError> {
    let advice = advice::all(&facts, arguments.unused_after);
    let report = Report { facts, advice };
    let shown = match arguments.format {
        Format::Text => text::shown(&report, arguments.largest),
        Format::Html => html::page(&report, arguments.largest),
        Format::Json => serde_json::to_string_pretty(&report).map_err(std::io::Error::from)? + "\n",
    };
    out.write_all(shown.as_bytes())?;
    Ok(())
}
