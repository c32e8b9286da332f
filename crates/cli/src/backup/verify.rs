//! `teak backup verify`: reads a backup and compares what it is with what it should be.

use super::files;
use super::layout::{self, Description};
use super::pace::Pace;
use super::BackupError;
use crate::restore::Backups;
use crate::{check, directory};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use teak_core::server::Chain;

/// Options of `teak backup verify`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Where a backup is on which DIR stands: verify those, too, and what all of them make together; can be given
    /// several times, and need not be for those that are where they were
    #[arg(long, value_name = "DIR")]
    base: Vec<PathBuf>,
    /// Threads that read
    #[arg(long, value_name = "N", default_value_t = 2)]
    parallel: usize,
    /// Read at most so many MB a second
    #[arg(long, value_name = "MB")]
    throttle: Option<u64>,
    /// Show no progress, and no verdict if all is well
    #[arg(long, short = 'q')]
    quiet: bool,
    /// The verdict as a JSON object
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// Print this help
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Compares all checksums of the backup, recovers it in memory, and checks its tables; nothing is written to it. Of an
/// incremental one all that is done to the backups that it stands on, too, if it is said that they are there
/// (`--base`); else its own files are looked at alone.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BackupError> {
    let Arguments { dir, base, quiet, .. } = arguments;
    let threads = arguments.parallel.clamp(1, 64);
    crate::signals::catch();
    let backups = match &base[..] {
        [] => Backups::alone(dir)?,
        moved => Backups::find(dir, moved)?,
    };
    let pace = Pace::new(arguments.throttle.unwrap_or(0) * 1_000_000, *quiet);
    pace.expect(backups.bytes());
    pace.phase("verify");
    for (dir, description) in backups.all() {
        server_files(dir, description, threads, &pace)?;
    }
    let chain = backups.chain()?;
    chain.verify(threads, &|bytes| pace.wrote(bytes))?;
    chain.verify_log(backups.last().log_end)?;
    pace.clear();
    let verdict = match (backups.missing(), backups.all().count() - 1) {
        (None, below) => {
            let mut told = Vec::new();
            let checked = tables(chain, &mut told);
            if checked.is_err() || !(*quiet || arguments.json) {
                out.write_all(&told).map_err(output)?;
            }
            checked.map_err(|detail| BackupError::damaged(dir, detail))?;
            let kind = backups.last().kind();
            match below {
                0 => format!("the {kind} is whole"),
                1 => format!("the {kind} and the one that it stands on are whole"),
                _ => format!("the {kind} and the {below} that it stands on are whole"),
            }
        }
        (Some(missing), _) => format!(
            "the {}'s own files are whole; the one that it stands on was not looked at, nor were tables, which need \
             both: --base={} does that",
            backups.last().kind(),
            missing.display()
        ),
    };
    let text = match (*quiet, arguments.json) {
        (true, _) => return Ok(()),
        (_, true) => super::json(&serde_json::json!({
            "dir": dir,
            "id": backups.last().id,
            "kind": backups.last().kind(),
            // Without those below an incremental one its tables cannot be looked at.
            "whole": backups.missing().is_none(),
            "missing_base": backups.missing(),
            "verdict": verdict,
        })),
        _ => format!("{}: {verdict}\n", dir.display()),
    };
    out.write_all(text.as_bytes()).map_err(output)
}

fn output(error: std::io::Error) -> BackupError {
    BackupError::Io { what: "cannot write the output".into(), error }
}

/// Recovers the engine in memory, and checks each table.
fn tables(chain: Chain, out: &mut dyn Write) -> Result<(), String> {
    let dir = chain.dir().to_path_buf();
    let engine = directory::open_unchanged(chain.files(), &dir).map_err(|failure| failure.to_string())?;
    match engine.lost().first() {
        Some(lost) => Err(format!("after its recovery: {lost:?}")),
        None => check::check(&engine, false, out).map_err(|failure| failure.to_string()),
    }
}

/// The files of the rest of the server are what they were when they were written.
fn server_files(
    dir: &Path,
    description: &Description,
    threads: usize,
    pace: &Pace,
) -> Result<(), BackupError> {
    files::share_out(&layout::checksums(dir, description)?, threads, |files| {
        for (digest, path) in files {
            let path = dir.join(path);
            if files::digest(&path, None, pace)? != *digest {
                return Err(BackupError::damaged(&path, "the file has changed since the backup was made"));
            }
        }
        Ok(())
    })
}
