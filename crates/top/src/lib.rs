//! `teak top`: one MariaDB server in a terminal.
//!
//! ```text
//!  server ──> session ──> sample ──┬─> moment, chains, views ──> screen, JSON
//!             (a thread)           └─> recording ──> sample ──> the same
//! ```
//!
//! | module | is about |
//! |---|---|
//! | `sample` | what a server has answered at one moment, as it came |
//! | `session`, `queries`, `wanted` | the one connection, and what is asked over it |
//! | `live` | the thread that asks |
//! | `recording` | samples in a file |
//! | `moment` | a sample beside an earlier one: rates |
//! | `chains` | who waits for whom |
//! | `views`, `overview`, `locks`, `table` | the tables that are made of it, without how they are shown |
//! | `state`, `keys` | what was chosen, and what keys do |
//! | `screen`, `terminal`, `harmless`, `time` | how it is drawn, and on what |
//! | `watch` | all of these together |
//!
//! What it shows is in docs/top.md.

#![deny(missing_docs, unnameable_types)]
#![cfg_attr(not(test), deny(unsafe_code))]

mod chains;
mod harmless;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
mod keys;
mod live;
mod locks;
mod moment;
mod overview;
mod queries;
mod recording;
mod sample;
mod screen;
mod session;
mod state;
mod table;
mod terminal;
mod time;
mod views;
mod wanted;
mod watch;

pub use recording::RecordingError;

use live::{Live, Samples};
use moment::Moment;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use recording::{Recorder, Recording};
use session::Session;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use teak_client::Settings;
use teak_console::{signals, Status};
use views::View;
use wanted::Wanted;

const MEBIBYTE: u64 = 1 << 20;
/// Of `--once` without `--json`.
const COLUMNS: u16 = 120;

/// Options of `teak top`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Ask the server once in so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = interval)]
    interval: f64,
    /// Print one sample, with rates over one interval, and end
    #[arg(long)]
    once: bool,
    /// As one object with all tables
    #[arg(long, requires = "once")]
    json: bool,
    /// Write each sample into this file, or behind what it has; without a terminal until SIGTERM
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    record: Option<PathBuf>,
    /// Put the file aside, as FILE.1, when it has so many MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20), requires = "record")]
    record_size: u64,
    /// Show a recording; with --once its last sample
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
    #[command(flatten)]
    client: teak_client::Arguments,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("seconds, from 0.1 to 3600".into()),
    }
}

/// Why it ended, other than because it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// An option, or the connection.
    #[error("{0}")]
    Client(#[from] teak_client::Error),
    /// There is no terminal.
    #[error("standard output is no terminal: --once prints a sample, --record FILE records without one")]
    NoTerminal,
    /// The terminal.
    #[error("the terminal: {0}")]
    Terminal(std::io::Error),
    /// A recording that is read or written.
    #[error("{}: {error}", file.display())]
    Recording {
        /// Which one.
        file: PathBuf,
        /// What is wrong with it.
        error: RecordingError,
    },
    /// The output.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// No thread could be made.
    #[error("no thread: {0}")]
    Thread(std::io::Error),
    /// The thread that asks has ended by itself.
    #[error("a defect of this program has ended it")]
    Defect,
}

impl TopError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            TopError::Client(error) => error.status(),
            TopError::NoTerminal => Status::Usage,
            TopError::Terminal(_) | TopError::Output(_) => Status::InputOutput,
            TopError::Recording { error, .. } => error.status(),
            TopError::Thread(_) | TopError::Defect => Status::Other,
        }
    }
}

/// Shows, prints or records, until it is ended.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), TopError> {
    let interval = Duration::from_secs_f64(arguments.interval);
    let is_on_terminal = std::io::stdout().is_terminal();
    if let Some(file) = &arguments.replay {
        return replay(arguments, file, interval, is_on_terminal, out);
    }
    if !is_on_terminal && !arguments.once && arguments.record.is_none() {
        return Err(TopError::NoTerminal);
    }
    let mut settings = Settings::read(&arguments.client)?;
    // One of an option file may be missing, and is not needed.
    settings.database = None;
    let mut session = Session::new(settings);
    if arguments.once {
        session.connect()?;
        return once(session, interval, arguments.json, out);
    }
    let recorder = match &arguments.record {
        Some(file) => {
            let (recorder, was_torn) =
                Recorder::open(file, arguments.record_size * MEBIBYTE).map_err(of_file(file))?;
            if was_torn {
                let what = "ended within a sample, which was cut off";
                teak_console::terminal::message(&format!("teak: top: {} {what}", file.display()));
            }
            Some(recorder)
        }
        None => None,
    };
    signals::catch();
    match recorder {
        Some(recorder) if !is_on_terminal => {
            watch::daemon(Live::start(session).map_err(TopError::Thread)?, recorder, interval)
        }
        recorder => {
            session.connect()?;
            watch::server(Live::start(session).map_err(TopError::Thread)?, recorder, interval)
        }
    }
}

fn replay(
    arguments: &Arguments,
    file: &Path,
    interval: Duration,
    is_on_terminal: bool,
    out: &mut dyn Write,
) -> Result<(), TopError> {
    let mut recording =
        File::open(file).map_err(RecordingError::File).and_then(Recording::open).map_err(of_file(file))?;
    let Some(last) = recording.len().checked_sub(1) else {
        return Err(of_file(file)(RecordingError::Empty));
    };
    if arguments.once {
        if let Some(end) = watch::end_of(recording.end()) {
            teak_console::terminal::message(&format!("teak: top: {}: {end}", file.display()));
        }
        let mut samples = Samples::default();
        for number in last.saturating_sub(1)..=last {
            samples.push(recording.sample(number).map_err(of_file(file))?, 0);
        }
        return print(&samples.moment(), arguments.json, out);
    }
    if !is_on_terminal {
        return Err(TopError::NoTerminal);
    }
    signals::catch();
    watch::recording(recording, last, interval)
}

/// An error with the file that it is about.
fn of_file(file: &Path) -> impl Fn(RecordingError) -> TopError + '_ {
    |error| TopError::Recording { file: file.to_path_buf(), error }
}

fn once(
    mut session: Session,
    interval: Duration,
    is_json: bool,
    out: &mut dyn Write,
) -> Result<(), TopError> {
    let mut samples = Samples::default();
    samples.push(session.sample(&Wanted::all()), 0);
    std::thread::sleep(interval);
    samples.push(session.sample(&Wanted::all()), 0);
    print(&samples.moment(), is_json, out)
}

/// All tables as JSON, or the first one as it is on a terminal.
fn print(moment: &Moment<'_>, is_json: bool, out: &mut dyn Write) -> Result<(), TopError> {
    if is_json {
        let views: serde_json::Map<String, serde_json::Value> =
            View::ALL.iter().map(|view| (view.name().to_string(), view.table(moment).json())).collect();
        let missing: serde_json::Map<String, serde_json::Value> = moment
            .now
            .missing
            .iter()
            .map(|(part, why)| (part.name().to_string(), why.as_str().into()))
            .collect();
        let all = serde_json::json!({
            "at": time::utc(moment.now.at),
            "server": moment.header(),
            "missing": missing,
            "views": views,
        });
        let text = serde_json::to_string_pretty(&all).map_err(std::io::Error::from)?;
        return Ok(writeln!(out, "{}", harmless::json(&text))?);
    }
    let state = state::State::new(false);
    let table = state.table(moment);
    let lines = 12 + table.rows.len().min(sample::MOST_ROWS) as u16;
    let mut buffer = Buffer::empty(Rect::new(0, 0, COLUMNS, lines));
    let around = screen::Around { moment: *moment, place: String::new(), has_colours: false };
    screen::draw(&mut buffer, &around, &table, &state);
    for y in 0..lines - 1 {
        let line: String = (0..COLUMNS).map(|x| buffer[(x, y)].symbol()).collect();
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
