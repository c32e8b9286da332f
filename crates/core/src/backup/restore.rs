//! An engine's directory from a backup, or from a full one and the incremental ones on top of it.
//!
//! Each extent is written once, from the backup that has it, with its checksum compared on the way. The log and the
//! superblock are those of the last backup; the superblock is written last, as when a backup is made, so that a restore
//! that was not finished leaves no engine.

use super::list::{ExtentList, ListedExtent};
use super::Pacer;
use crate::catalog::{decode_memory_list, log_dir, space_file_name, superblock_path, MEMORY_LIST};
use crate::file::{File, FileSystem, OpenMode};
use crate::log::{Lsn, Segments};
use crate::store::{checksum, Space, Superblock};
use crate::threads::share_out;
use crate::{Error, Result};
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Extents that lie side by side are read and written together, up to so many bytes.
const RUN_BYTES: u64 = 1 << 20;
/// Also if no more lies between them than this.
const GAP_BYTES: u64 = 4096;
/// What a thread takes at a time of a file that several work on. Several do if there is that much for each.
const PART_EXTENTS: usize = 64;
/// The log's files are copied in pieces.
const PIECE_BYTES: usize = 1 << 20;

/// What is to be done with the extents of a file, by so many threads.
type SpaceWork<'a> = &'a (dyn Fn(u32, &[ListedExtent], usize) -> Result<()> + Sync);

/// Is shown bytes of a file, and where they are in it.
type Show<'a> = &'a (dyn Fn(u64, &[u8]) -> Result<()> + Sync);

/// A backup and, unless it is looked at alone, those that it stands on.
pub struct Chain {
    pub(super) fs: Arc<dyn FileSystem>,
    /// The engine's directory in the last.
    last: PathBuf,
    /// Those in the others, the full one first; empty if the last is looked at alone.
    below: Vec<PathBuf>,
    pub(super) list: ExtentList,
}

impl Chain {
    /// `list` is that of the last backup, `dirs` the engine's directories in all of them.
    pub fn new(fs: Arc<dyn FileSystem>, mut dirs: Vec<PathBuf>, list: ExtentList) -> Result<Chain> {
        let last = dirs.pop().unwrap_or_default();
        if dirs.len() != usize::from(list.backup) {
            let (number, given) = (list.backup + 1, dirs.len() + 1);
            let detail = format!("the backup is number {number} of its chain, and {given} were given");
            return Err(Error::corrupt(last, 0, detail));
        }
        Ok(Chain { fs, last, below: dirs, list })
    }

    /// The last backup alone, to be verified: what it takes from those below it is not looked at.
    pub fn last_alone(fs: Arc<dyn FileSystem>, dir: PathBuf, list: ExtentList) -> Chain {
        Chain { fs, last: dir, below: Vec::new(), list }
    }

    /// Reads all blocks that a restore takes from these backups, where they lie, and compares their checksums.
    pub fn verify(&self, threads: usize, pacer: Pacer<'_>) -> Result<()> {
        let is_here = |extent: &ListedExtent| self.dir_of(extent.origin).is_some();
        self.each_space(threads, &|space, extents, threads| {
            let extents: Vec<_> = extents.iter().copied().filter(is_here).collect();
            self.header(space)?;
            self.each_run(space, &extents, threads, &|_, bytes| pacer(bytes.len() as u64))
        })?;
        self.verify_memory_list()?;
        self.superblock().map(drop)
    }

    fn verify_memory_list(&self) -> Result<()> {
        if !self.list.lists_memory {
            return Ok(());
        }
        let path = self.last.join(MEMORY_LIST);
        let file = self.fs.open(&path, OpenMode::ReadOnly)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(0, &mut bytes)?;
        decode_memory_list(&bytes).map(drop).map_err(|detail| Error::corrupt(path, 0, detail))
    }

    /// Reads the log to `end`, where the backup ends. A recovery takes what is damaged there for what a crash has torn:
    /// what was committed behind it would be missing, and nobody would know.
    pub fn verify_log(&self, end: Lsn) -> Result<()> {
        let (dir, range) = (log_dir(&self.last), self.superblock()?.replay_from..end);
        Segments::list(&*self.fs, &dir, range.start)?.read(range, &mut |_, _| Ok(()))
    }

    /// Makes an engine's directory of them: `to`, which is empty or missing.
    pub fn restore(
        &self,
        target: &Arc<dyn FileSystem>,
        to: &Path,
        threads: usize,
        pacer: Pacer<'_>,
    ) -> Result<()> {
        target.create_dir(to)?;
        self.each_space(threads, &|space, extents, threads| {
            let file = target.open(&to.join(space_file_name(space)), OpenMode::Create)?;
            file.write_at(0, &self.header(space)?)?;
            self.each_run(space, extents, threads, &|offset, bytes| {
                file.write_at(offset, bytes)?;
                pacer(bytes.len() as u64)
            })?;
            file.sync()
        })?;
        if self.list.lists_memory {
            self.copy_file(&self.last.join(MEMORY_LIST), &**target, &to.join(MEMORY_LIST), pacer)?;
        }
        self.restore_log(&**target, to, pacer)?;
        super::make_engine(&**target, to, &self.superblock_bytes()?)
    }

    /// The engine's directory in the last backup.
    pub fn dir(&self) -> &Path {
        &self.last
    }

    /// The engine's directory in the backup that has extents of this origin.
    pub(super) fn dir_of(&self, origin: u16) -> Option<&Path> {
        match origin == self.list.backup {
            true => Some(&self.last),
            false => self.below.get(usize::from(origin)).map(PathBuf::as_path),
        }
    }

    /// A table's file in the backup that has extents of this origin.
    pub(super) fn file_of(&self, origin: u16, space: u32) -> Result<Arc<dyn File>> {
        let missing =
            || Error::corrupt(&self.last, 0, format!("number {} of the chain is missing", origin + 1));
        let dir = self.dir_of(origin).ok_or_else(missing)?;
        self.fs.open(&dir.join(space_file_name(space)), OpenMode::ReadOnly)
    }

    /// Does `work` for each file: for large ones, one after the other, by all threads, as `work` is told; then for the
    /// others, each by one.
    fn each_space(&self, threads: usize, work: SpaceWork<'_>) -> Result<()> {
        let is_large = |extents: &[ListedExtent]| extents.len() / PART_EXTENTS >= threads.max(2);
        let (large, others): (Vec<_>, Vec<_>) =
            self.list.spaces.iter().partition(|(_, extents)| is_large(extents));
        for (space, extents) in large {
            work(*space, extents, threads)?;
        }
        share_out(&others, threads, "teak-restore", |(space, extents)| work(**space, extents, 1))
    }

    fn header(&self, space: u32) -> Result<Vec<u8>> {
        let file = self.file_of(self.list.backup, space)?;
        let mut header = vec![0; Space::HEADER_BYTES as usize];
        file.read_exact_at(0, &mut header)?;
        Ok(header)
    }

    fn superblock(&self) -> Result<Superblock> {
        let path = superblock_path(&self.last);
        let superblock = Superblock::read_newest(&*self.fs, &path)?
            .ok_or_else(|| Error::corrupt(&path, 0, "the backup has no superblock"))?;
        match superblock.engine_id == self.list.engine_id {
            true => Ok(superblock),
            false => Err(Error::corrupt(&path, 0, "the backup's superblock is that of another engine")),
        }
    }

    /// The superblock's file, which has one.
    fn superblock_bytes(&self) -> Result<Vec<u8>> {
        self.superblock()?;
        let file = self.fs.open(&superblock_path(&self.last), OpenMode::ReadOnly)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Shows the bytes of extents, several at a time, with the offset of the first; by so many threads.
    fn each_run(&self, space: u32, extents: &[ListedExtent], threads: usize, show: Show<'_>) -> Result<()> {
        let parts: Vec<_> = match threads {
            1 => vec![extents],
            _ => extents.chunks(PART_EXTENTS).collect(),
        };
        share_out(&parts, threads, "teak-restore", |part| self.each_run_of(space, part, show))
    }

    fn each_run_of(&self, space: u32, extents: &[ListedExtent], show: Show<'_>) -> Result<()> {
        let mut files: BTreeMap<u16, Arc<dyn File>> = BTreeMap::new();
        let mut rest = extents;
        let mut bytes = Vec::new();
        while let Some(first) = rest.first() {
            let run = rest.windows(2).take_while(|pair| {
                pair[0].origin == pair[1].origin
                    && pair[1].offset - pair[0].end() <= GAP_BYTES
                    && pair[1].end() - first.offset <= RUN_BYTES
            });
            let (run, after) = rest.split_at(run.count() + 1);
            rest = after;
            let file = match files.entry(first.origin) {
                Entry::Occupied(open) => open.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(self.file_of(first.origin, space)?),
            };
            bytes.clear();
            bytes.resize((run[run.len() - 1].end() - first.offset) as usize, 0);
            file.read_exact_at(first.offset, &mut bytes)?;
            for extent in run {
                let at = (extent.offset - first.offset) as usize;
                if checksum(&bytes[at..at + extent.stored_bytes as usize]) != extent.checksum {
                    return Err(Error::corrupt(
                        file.path(),
                        extent.offset,
                        "the checksum of a block is wrong",
                    ));
                }
            }
            show(first.offset, &bytes)?;
        }
        Ok(())
    }

    fn restore_log(&self, target: &dyn FileSystem, to: &Path, pacer: Pacer<'_>) -> Result<()> {
        let (from_log, to_log) = (log_dir(&self.last), log_dir(to));
        target.create_dir(&to_log)?;
        for name in self.fs.list(&from_log)? {
            self.copy_file(&from_log.join(&name), target, &to_log.join(&name), pacer)?;
        }
        target.sync_dir(&to_log)
    }

    fn copy_file(&self, from: &Path, target: &dyn FileSystem, to: &Path, pacer: Pacer<'_>) -> Result<()> {
        let from = self.fs.open(from, OpenMode::ReadOnly)?;
        let file = target.open(to, OpenMode::Create)?;
        let (mut at, mut piece) = (0, vec![0; PIECE_BYTES]);
        loop {
            let read = from.read_at(at, &mut piece)?;
            if read == 0 {
                return file.sync();
            }
            file.write_at(at, &piece[..read])?;
            pacer(read as u64)?;
            at += read as u64;
        }
    }
}
