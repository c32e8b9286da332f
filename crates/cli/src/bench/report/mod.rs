//! Runs of LinkBench for people: a table on the terminal, and a page.

mod chart;
mod page;
mod terminal;

use super::result::{Run, FORMAT};
use super::{write_file, Error};
use std::path::{Path, PathBuf};

pub use page::html;
pub use terminal::text;

/// Options of `teak bench report`.
#[derive(clap::Args)]
pub struct Options {
    /// JSON files of runs
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

/// Combines runs on one page.
pub fn run(options: &Options) -> Result<(), Error> {
    let runs = options.runs.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    write_file(&options.html, &html(&runs))
}

fn read(path: &Path) -> Result<Run, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::File { path: path.into(), error })?;
    let run: Run = serde_json::from_str(&text).map_err(|error| Error::Json { path: path.into(), error })?;
    if run.format != FORMAT {
        return Err(Error::Usage(format!("{}: not a run of LinkBench of this version", path.display())));
    }
    Ok(run)
}
