//! A backup and those that it stands on.

use crate::backup::layout::{self, Base, Description};
use crate::backup::BackupError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_core::file::RealFileSystem;
use teak_core::server::{Chain, ExtentList};

/// More do not belong together: a circle would be endless.
const LONGEST_CHAIN: usize = 1 << 12;

/// A full backup and the incremental ones on top of it, in this order.
pub struct Backups {
    backups: Vec<(PathBuf, Description)>,
    last: (PathBuf, Description),
}

impl Backups {
    /// The backup in `dir` and all below it. They are where they were when it was made, seen from it or from the root,
    /// or among `moved`.
    pub fn find(dir: &Path, moved: &[PathBuf]) -> Result<Backups, BackupError> {
        let last = (dir.to_path_buf(), Description::read(dir)?);
        let mut backups = vec![];
        let mut above = last.clone();
        while let Some(base) = &above.1.base {
            let below = find_base(&above.0, base, moved)?;
            if backups.len() >= LONGEST_CHAIN {
                return Err(BackupError::damaged(dir, "it stands on too many other backups"));
            }
            backups.push(below.clone());
            above = below;
        }
        backups.reverse();
        Ok(Backups { backups, last })
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
        self.backups.iter().chain([&self.last]).map(|(dir, description)| (dir.as_path(), description))
    }

    /// Bytes that a restore writes, about.
    pub fn bytes(&self) -> u64 {
        self.all().map(|(_, description)| description.server_bytes).sum::<u64>() + self.last.1.engine_bytes
    }

    /// The engine's part of them.
    pub fn chain(&self) -> Result<Chain, BackupError> {
        let list = ExtentList::read(&RealFileSystem, &self.last.0.join(layout::EXTENTS))?;
        let dirs = self.all().map(|(dir, _)| dir.join(layout::ENGINE)).collect();
        Ok(Chain::new(Arc::new(RealFileSystem), dirs, list)?)
    }
}

fn find_base(above: &Path, base: &Base, moved: &[PathBuf]) -> Result<(PathBuf, Description), BackupError> {
    let beside = base.relative.iter().map(|relative| above.join(relative));
    let candidates = moved.iter().cloned().chain(beside).chain([base.absolute.clone()]);
    let mut damage = String::new();
    for dir in candidates {
        match Description::read(&dir) {
            Ok(description) if description.id == base.id => return Ok((dir, description)),
            // It may be the one, or be none of these backups: the others may do.
            Err(error) if dir.join(layout::DESCRIPTION).exists() => damage = format!("; {error}"),
            _ => {}
        }
    }
    Err(BackupError::damaged(
        above,
        format!(
            "the backup that it stands on is not in {} any more (its id is {}): say where it is with --base=DIR{damage}",
            base.absolute.display(),
            base.id
        ),
    ))
}
