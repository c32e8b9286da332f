//! What commands about backups have in common: how fast they work, and how they tell what came of it.

use super::pace::Pace;
use super::BackupError;
use clap::Args;
use std::io::Write;

const MOST_THREADS: usize = 64;
const MEGABYTE: u64 = 1_000_000;

/// How fast.
#[derive(Args, Debug, Clone)]
pub struct Work {
    /// Threads that copy or read
    #[arg(long, value_name = "N", default_value_t = 2)]
    parallel: usize,
    /// Copy or read at most so many MB a second
    #[arg(long, value_name = "MB")]
    throttle: Option<u64>,
}

impl Work {
    pub fn threads(&self) -> usize {
        self.parallel.clamp(1, MOST_THREADS)
    }

    /// Shows how far it is, unless nothing is to be told.
    pub fn pace(&self, telling: &Telling) -> Pace {
        Pace::new(self.throttle.unwrap_or(0) * MEGABYTE, telling.quiet)
    }
}

/// What is told.
#[derive(Args, Debug, Clone)]
pub struct Telling {
    /// Show no progress and no result
    #[arg(long, short = 'q')]
    pub quiet: bool,
    /// The result as a JSON object on one line
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
}

impl Telling {
    pub const NOTHING: Telling = Telling { quiet: true, json: false };

    /// The result, as it is wanted.
    pub fn tell(
        &self,
        out: &mut dyn Write,
        json: impl FnOnce() -> serde_json::Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), BackupError> {
        match (self.quiet, self.json) {
            (true, _) => Ok(()),
            (_, true) => write(out, &format!("{}\n", json())),
            _ => write(out, &text()),
        }
    }
}

/// Text for who reads the output.
pub fn write(out: &mut dyn Write, text: &str) -> Result<(), BackupError> {
    let written = out.write_all(text.as_bytes());
    written.map_err(|error| BackupError::Io { what: "cannot write the output".into(), error })
}

/// Of commands below others, which do not have it of their own.
#[derive(Args, Debug)]
pub struct Help {
    /// Print this help
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    help: Option<bool>,
}
