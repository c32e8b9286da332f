//! A backup and those that it stands on.

use super::layout::{self, Base, Description};
use super::BackupError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_core::file::RealFileSystem;
use teak_core::server::{Chain, ExtentList};

/// More do not belong together: a circle would be endless.
const LONGEST_CHAIN: usize = 1 << 12;
/// What a directory is that [`is_elsewhere`].
const ELSEWHERE: &str =
    "this is what --extra-lsndir has left, for incremental backups to be made; the backup itself is elsewhere";

/// A full backup and the incremental ones on top of it, in this order; or a single one of them.
pub struct Backups {
    /// Unless the last is looked at alone.
    below: Vec<(PathBuf, Description)>,
    last: (PathBuf, Description),
}

impl Backups {
    /// The backup in `dir` and all below it. They are where they were when it was made, seen from it or from the root,
    /// or among `moved`.
    pub fn find(dir: &Path, moved: &[PathBuf]) -> Result<Backups, BackupError> {
        let Backups { mut below, last } = Backups::alone(dir)?;
        let mut above = last.clone();
        while let Some(base) = &above.1.base {
            if below.len() >= LONGEST_CHAIN {
                return Err(BackupError::damaged(dir, "it stands on too many other backups"));
            }
            above = find_base(&above.0, base, moved)?;
            below.push(above.clone());
        }
        below.reverse();
        Ok(Backups { below, last })
    }

    /// The backup in `dir`, whatever it stands on.
    pub fn alone(dir: &Path) -> Result<Backups, BackupError> {
        let description = Description::read(dir)?;
        match is_elsewhere(dir) {
            true => Err(BackupError::damaged(dir, ELSEWHERE)),
            false => Ok(Backups { below: Vec::new(), last: (dir.to_path_buf(), description) }),
        }
    }

    /// Where the backup is, or was, on which the last one stands, if that is not among these.
    pub fn missing(&self) -> Option<&Path> {
        let base = self.last.1.base.as_ref().filter(|_| self.below.is_empty());
        base.map(|base| base.absolute.as_path())
    }

    /// Where the last of them is.
    pub fn dir(&self) -> &Path {
        &self.last.0
    }

    /// What the last of them is.
    pub fn last(&self) -> &Description {
        &self.last.1
    }

    /// All of them, the full one first.
    pub fn all(&self) -> impl Iterator<Item = (&Path, &Description)> {
        self.below.iter().chain([&self.last]).map(|(dir, description)| (dir.as_path(), description))
    }

    /// Bytes that a restore writes, or a look at them reads, about.
    pub fn bytes(&self) -> u64 {
        let engine = match self.missing() {
            Some(_) => self.last.1.own_engine_bytes,
            None => self.last.1.engine_bytes,
        };
        self.all().map(|(_, description)| description.server_bytes).sum::<u64>() + engine
    }

    /// The engine's part of them.
    pub fn chain(&self) -> Result<Chain, BackupError> {
        let fs = Arc::new(RealFileSystem);
        let list = ExtentList::read(&*fs, &self.last.0.join(layout::EXTENTS))?;
        let dirs = self.all().map(|(dir, _)| dir.join(layout::ENGINE));
        Ok(match self.missing() {
            Some(_) => Chain::last_alone(fs, self.last.0.join(layout::ENGINE), list),
            None => Chain::new(fs, dirs.collect(), list)?,
        })
    }
}

/// Whether `dir` has only what an incremental backup needs to be made.
fn is_elsewhere(dir: &Path) -> bool {
    !dir.join(layout::ENGINE).exists() && !dir.join(layout::CHECKSUMS).exists()
}

fn find_base(above: &Path, base: &Base, moved: &[PathBuf]) -> Result<(PathBuf, Description), BackupError> {
    let beside = base.relative.iter().filter_map(|relative| above.join(relative).canonicalize().ok());
    let candidates = moved.iter().cloned().chain(beside).chain([base.absolute.clone()]);
    let mut seen = String::new();
    for dir in candidates {
        match Description::read(&dir) {
            Ok(description) if description.id == base.id && is_elsewhere(&dir) => {
                seen = format!("; {}: {ELSEWHERE}", dir.display());
            }
            Ok(description) if description.id == base.id => return Ok((dir, description)),
            // It may be the one, or be none of these backups: the others may do.
            Err(error) if dir.join(layout::DESCRIPTION).exists() => seen = format!("; {error}"),
            _ => {}
        }
    }
    let detail = format!(
        "the backup that it stands on is missing (its id is {}; it was in {}): say where it is with --base=DIR{seen}",
        base.id,
        base.absolute.display()
    );
    Err(BackupError::damaged(above, detail))
}
