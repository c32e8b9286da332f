//! The engine's files as a restore of a chain of backups would write them, for reading: so an engine can be opened on a
//! chain that nobody has restored.
//!
//! A table's file is put together of the extents that the list names, each from the backup that has it, and of the
//! header in the last one; what lies between are zeros, and it cannot be written to. All other files are those of the
//! last backup.

use super::list::ListedExtent;
use super::Chain;
use crate::catalog::space_of_file_name;
use crate::file::{Directory, File, FileSystem, OpenMode};
use crate::store::Space;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file system of a chain, but for the tables' files in the directory of its last backup.
struct ChainFiles(Arc<Chain>);

/// A table's file. It holds no descriptor: a long chain would need one a backup for each table.
struct ChainFile {
    chain: Arc<Chain>,
    space: u32,
    path: PathBuf,
}

impl Chain {
    /// The file system in which [`Chain::dir`] is the directory of the engine that a restore would make. The engine is
    /// to be opened with [`ForceRecovery::ReadOnly`](crate::ForceRecovery::ReadOnly): else its log would be changed.
    pub fn files(self) -> Arc<dyn FileSystem> {
        Arc::new(ChainFiles(Arc::new(self)))
    }
}

impl ChainFiles {
    /// The table's file that a path means.
    fn space_of(&self, path: &Path) -> Option<u32> {
        let space = space_of_file_name(path.file_name()?.to_str()?)?;
        let is_listed = path.parent() == Some(self.0.dir()) && self.0.list.spaces.contains_key(&space);
        is_listed.then_some(space)
    }
}

impl FileSystem for ChainFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        match self.space_of(path) {
            None => self.0.fs.open(path, mode),
            Some(space) => Ok(Arc::new(ChainFile { chain: self.0.clone(), space, path: path.into() })),
        }
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.0.fs.open_unnamed(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.0.fs.create_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.0.fs.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.0.fs.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.fs.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.fs.remove(path)
    }

    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        self.0.fs.open_dir(dir)
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.0.fs.lock_exclusive(path)
    }
}

impl ChainFile {
    fn extents(&self) -> &[ListedExtent] {
        self.chain.list.spaces.get(&self.space).map_or(&[], Vec::as_slice)
    }

    fn refused<T>(&self) -> Result<T> {
        Err(Error::ReadOnly(format!("{} is part of a backup", self.path.display())))
    }

    fn bytes(&self) -> u64 {
        self.extents().last().map_or(0, ListedExtent::end).max(Space::HEADER_BYTES)
    }
}

/// The part of `buf`, which is to have what lies from `offset` on, that is in a range of the file.
fn part(buf: &mut [u8], offset: u64, (from, to): (u64, u64)) -> Option<(u64, &mut [u8])> {
    let (from, to) = (from.max(offset), to.min(offset + buf.len() as u64));
    let range = from.checked_sub(offset)? as usize..to.checked_sub(offset)? as usize;
    buf.get_mut(range).filter(|part| !part.is_empty()).map(|part| (from, part))
}

impl File for ChainFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let read = self.bytes().saturating_sub(offset).min(buf.len() as u64) as usize;
        let buf = &mut buf[..read];
        buf.fill(0);
        if let Some((from, part)) = part(buf, offset, (0, Space::HEADER_BYTES)) {
            self.chain.file_of(self.chain.list.backup, self.space)?.read_exact_at(from, part)?;
        }
        let first = self.extents().partition_point(|extent| extent.end() <= offset);
        for extent in &self.extents()[first..] {
            let Some((from, part)) = part(buf, offset, (extent.offset, extent.end())) else { break };
            self.chain.file_of(extent.origin, self.space)?.read_exact_at(from, part)?;
        }
        Ok(read)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        self.refused()
    }

    fn sync(&self) -> Result<()> {
        self.refused()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes())
    }

    fn set_len(&self, _: u64) -> Result<()> {
        self.refused()
    }

    fn punch_hole(&self, _: u64, _: u64) -> Result<bool> {
        self.refused()
    }

    fn allocated_bytes(&self) -> Result<u64> {
        Ok(Space::HEADER_BYTES
            + self.extents().iter().map(|extent| u64::from(extent.stored_bytes)).sum::<u64>())
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        Arc::new(ChainFile { chain: self.chain.clone(), space: self.space, path: path.into() })
    }
}
