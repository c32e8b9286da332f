//! Runs for people: those of LinkBench as a table on the terminal and as a page, and what other pages are made of.

pub mod chart;
pub mod page;
mod terminal;

use super::external_store::{report::html as external_store_page, result as external_store};
use super::result::FORMAT;
use super::{write_file, Error};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub use page::html;
pub use terminal::text;

/// Options of `teak-bench report`.
#[derive(clap::Args)]
pub struct Options {
    /// JSON files of runs, all of them of one benchmark
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

/// Combines runs on one page.
pub fn run(options: &Options) -> Result<(), Error> {
    let files = options.runs.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let page = match files.first().and_then(|(_, file)| file["format"].as_str()) {
        Some(external_store::FORMAT) => external_store_page(&decoded(files, external_store::FORMAT)?),
        _ => html(&decoded(files, FORMAT)?),
    };
    write_file(&options.html, &page)
}

fn read(path: &Path) -> Result<(&Path, Value), Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::File { path: path.into(), error })?;
    let value = serde_json::from_str(&text).map_err(|error| Error::Json { path: path.into(), error })?;
    Ok((path, value))
}

/// The files as what they say they are; those that are something else are an error.
fn decoded<T: DeserializeOwned>(files: Vec<(&Path, Value)>, format: &str) -> Result<Vec<T>, Error> {
    let one = |(path, value): (&Path, Value)| match value["format"].as_str() {
        Some(found) if found == format => {
            serde_json::from_value(value).map_err(|error| Error::Json { path: path.into(), error })
        }
        _ => Err(Error::Usage(format!(
            "{}: not a run of this version and of the first file's benchmark",
            path.display()
        ))),
    };
    files.into_iter().map(one).collect()
}
