//! `teak backup verify`: reads a backup and compares what it is with what it should be.

use super::files;
use super::layout::{self, Description};
use super::pace::Pace;
use super::BackupError;
use crate::restore::Backups;
use crate::{check, directory};
use std::io::Write;
use std::path::{Path, PathBuf};
use teak_core::server::Chain;

/// Compares all checksums of the backup in `dir`, recovers it in memory, and checks its tables; nothing is written to
/// it. Of an incremental one all that is done to the backups that it stands on, too, if it is said that they are there
/// (`base`: where those are that were moved); else its own files are looked at alone.
pub fn run(dir: &Path, base: &[PathBuf], out: &mut dyn Write) -> Result<(), BackupError> {
    crate::signals::catch();
    let backups = match base {
        [] => Backups::alone(dir)?,
        moved => Backups::find(dir, moved)?,
    };
    let pace = Pace::new(0, false);
    pace.expect(backups.bytes());
    pace.phase("verify");
    for (dir, description) in backups.all() {
        server_files(dir, description, &pace)?;
    }
    let chain = backups.chain()?;
    chain.verify(2, &|bytes| pace.wrote(bytes))?;
    chain.verify_log(backups.last().log_end)?;
    pace.clear();
    let verdict = match (backups.missing(), backups.all().count() - 1) {
        (None, below) => {
            tables(chain, out).map_err(|detail| BackupError::damaged(dir, detail))?;
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
    writeln!(out, "{}: {verdict}", dir.display())
        .map_err(|error| BackupError::Io { what: "cannot write the output".into(), error })
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
fn server_files(dir: &Path, description: &Description, pace: &Pace) -> Result<(), BackupError> {
    for (digest, path) in layout::checksums(dir, description)? {
        let path = dir.join(path);
        if files::digest(&path, None, pace)? != digest {
            return Err(BackupError::damaged(&path, "the file has changed since the backup was made"));
        }
    }
    Ok(())
}
