//! `teak backup verify`: reads a backup and compares what it is with what it should be.

use super::chain::Backups;
use super::files;
use super::layout::{self, Description};
use super::options::{self, Help, Telling, Work};
use super::pace::Pace;
use super::BackupError;
use crate::{check, directory};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use teak_console::signals;
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
    #[command(flatten)]
    work: Work,
    #[command(flatten)]
    telling: Telling,
    #[command(flatten)]
    help: Help,
}

/// Compares all checksums of the backup, recovers it in memory, and checks its tables; nothing is written to it. Of an
/// incremental one all that is done to the backups that it stands on, too, if it is said that they are there
/// (`--base`); else its own files are looked at alone.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BackupError> {
    let Arguments { dir, base, work, telling, .. } = arguments;
    let threads = work.threads();
    signals::catch();
    let backups = match &base[..] {
        [] => Backups::alone(dir)?,
        moved => Backups::find(dir, moved)?,
    };
    let pace = work.pace(telling);
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
            if checked.is_err() || !(telling.quiet || telling.json) {
                options::write(out, &String::from_utf8_lossy(&told))?;
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
    let (last, missing) = (backups.last(), backups.missing());
    telling.tell(
        out,
        || {
            serde_json::json!({
                "dir": dir,
                "id": last.id,
                "kind": last.kind(),
                // Without those below an incremental one its tables cannot be looked at.
                "whole": missing.is_none(),
                "missing_base": missing,
                "verdict": verdict,
            })
        },
        || format!("{}: {verdict}\n", dir.display()),
    )
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
