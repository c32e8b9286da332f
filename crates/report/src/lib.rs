//! `teak report`: what a server's Teak tables take, what that saves, and what to do about it.
//!
//! ```text
//!  server ──> facts ──> advice ──> text, JSON or HTML
//! ```
//!
//! | module | is about |
//! |---|---|
//! | `facts` | what the server says of its tables, indexes and itself |
//! | `asking` | statements whose rows are numbers and names |
//! | `advice` | what follows from the facts: evidence and a statement, by rules that know no server |
//! | `text`, `html` | the report for people |
//!
//! It reads and changes nothing. What it tells is in docs/report.md.

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_code)]

mod advice;
mod asking;
mod facts;
mod html;
mod text;

use advice::Advice;
use facts::Facts;
use serde::Serialize;
use std::io::Write;
use teak_client::Settings;
use teak_console::Status;

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
            ReportError::Output(_) => Status::InputOutput,
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

/// Asks the server and writes the report.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), ReportError> {
    let mut settings = Settings::read(&arguments.client)?;
    // One of an option file may be missing, and is not needed.
    settings.database = None;
    let facts = Facts::of(&mut settings.connect()?)?;
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
