//! `teak backup verify`: reads a backup and compares what it is with what it should be.

use super::files;
use super::layout::{self, Description};
use super::pace::Pace;
use super::BackupError;
use crate::restore::Backups;
use crate::{check, directory};
use std::io::Write;
use std::path::Path;

/// Compares all checksums of the backup in `dir`. A full one is also recovered in memory, and its tables are checked;
/// nothing is written to it.
pub fn run(dir: &Path, out: &mut dyn Write) -> Result<(), BackupError> {
    crate::signals::catch();
    let backups = Backups::find(dir, &[])?;
    let pace = Pace::new(0, false);
    pace.expect(backups.last().own_engine_bytes + backups.last().server_bytes);
    pace.phase("verify");
    server_files(dir, backups.last(), &pace)?;
    backups.chain()?.verify(2, &|bytes| pace.wrote(bytes))?;
    pace.clear();
    let told = |error| BackupError::Io { what: "cannot write the output".into(), error };
    if backups.last().base.is_none() {
        let engine = directory::open_unchanged(&dir.join(layout::ENGINE))
            .map_err(|failure| BackupError::damaged(dir, failure.to_string()))?;
        if let Some(lost) = engine.lost().first() {
            return Err(BackupError::damaged(dir, format!("after its recovery: {lost:?}")));
        }
        check::check(&engine, false, out)
            .map_err(|failure| BackupError::damaged(dir, failure.to_string()))?;
    }
    let Description { base, .. } = backups.last();
    let kind = if base.is_some() { "incremental backup" } else { "backup" };
    writeln!(out, "{}: the {kind} is whole", dir.display()).map_err(told)
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
