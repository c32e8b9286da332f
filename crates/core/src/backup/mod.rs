//! Copies of an engine's files, made while the engine runs, perhaps in another process.
//!
//! A copy is what a restart needs: the image of one checkpoint, and the log from there to a moment that the caller
//! chooses. Opened like any other directory, it shows what was committed by then ([`BackupCopy::finish`]).
//!
//! ```text
//!  round   round   round ...   settle                       finish
//!  image 7 image 8 image 9     image 10                     log 10 .. end ─> superblock
//!  └── what changed since the round before ──┘              │
//!                              ├── checkpoints are paused ──┼──────────────────────┤
//!                                                          end: what is committed by now is in the copy
//! ```
//!
//! - **Rounds.** Blocks are never written in place, so a block of image 8 that was in image 7 need not be copied again
//!   ([`extents`]). A round takes no lock and asks nothing of the engine; a block that was overwritten before the round
//!   came to it fails its checksum, which lies with its parent, and is left to the next round, whose image does not
//!   name it. The caller makes a checkpoint before each round. Each takes less than the one before, since less has
//!   changed meanwhile, until so little is left that checkpoints can be paused for it.
//! - **The last round** has to be without fault: while checkpoints are paused
//!   ([`Engine::pause_checkpoints`](crate::server::Engine::pause_checkpoints)) nothing of the newest image is
//!   overwritten, so what cannot be read is damage, and the copy fails.
//! - **The log** behind the newest checkpoint has all that was committed since, but for blocks and large values in
//!   table files, which it names: they are copied, too. A record of a later checkpoint is not in it; a start from an
//!   older one would be refused ([`crate::checkpoint`]).
//! - **Everything is checked** on its way: the checksum of each block, the bounds of inner pages and the sums of each
//!   tree ([`crate::tree::check_image`]), and each record of the log. Not the rows in leaves, which would take most of
//!   the time: a backup has what the engine has written, and whoever opens the copy can check that.
//! - **The superblock is written last**, when all else is durable: a copy that was not finished is no engine.
//! - **Incremental**: with the list of what an older backup has ([`ExtentList`]) a copy begins where that one ended,
//!   and its files have what is new only. A restore takes each extent from the backup that has it ([`Chain`]).
//! - **Partial**: some of the tables only, by their names ([`BackupCopy::only`], [`partial`]).
//! - **The target is only written to**, so that it may be a stream.
//!
//! Why not hold one image and take the log from its checkpoint to the end, as engines do that copy pages: the log would
//! have the later checkpoints, and what they rely on (trees that were built, blocks that were rewritten) is in no log.
//!
//! Knows `checkpoint`, `catalog`, `tree`, `store` and `log`, and no engine.

mod chain_files;
mod extents;
mod list;
mod partial;
mod restore;
mod space;
mod tail;

pub use list::ExtentList;
pub use partial::Wanted;
pub use restore::Chain;

use extents::{Extents, Mark, FIRST_ROUND};
use partial::Choice;
use space::{is_for_several, SpaceCopy};

use crate::catalog::directory::StoredDictionary;
use crate::catalog::image::{Catalog, DirectoryRows};
use crate::catalog::{
    log_dir, space_file_name, superblock_path, Contained, TableRecord, CATALOG_TREE, DIRECTORY_TREE,
    SYSTEM_SPACE,
};
use crate::file::{FileSystem, OpenMode, ReadOnlyFileSystem};
use crate::finding::Findings;
use crate::log::Lsn;
use crate::store::{BlockAddress, OpenFiles, Space, Superblock, TreeRoot};
use crate::sync::Mutex;
use crate::tree::each_row;
use crate::types::TreeId;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Descriptors of the engine's files.
const OPEN_FILES: usize = 64;

/// So many damaged tables are named.
const MOST_NAMED: usize = 20;

/// Is told how many bytes were written since it was told last, and may wait, or end the work with an error. Called from
/// several threads at a time.
pub type Pacer<'a> = &'a (dyn Fn(u64) -> Result<()> + Sync);

/// What a round has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// The checkpoint whose image it copied.
    pub checkpoint: u64,
    /// Bytes that it wrote.
    pub copied_bytes: u64,
    /// Bytes that the trees of the image take in their files, large values apart.
    pub image_bytes: u64,
    /// Blocks that were overwritten before it came to them; the next round finds what took their place.
    pub missed: u64,
}

/// A copy that is being made.
pub struct BackupCopy {
    source: Arc<dyn FileSystem>,
    from: PathBuf,
    target: Arc<dyn FileSystem>,
    to: PathBuf,
    threads: usize,
    mark: Mark,
    extents: BTreeMap<u32, Arc<Mutex<Extents>>>,
    /// The files that the target has, with their headers.
    begun: Mutex<BTreeSet<u32>>,
    settled: Option<Settled>,
    /// `None`: all tables.
    wanted: Option<Wanted>,
    /// The spaces of those tables that the copy has when it ends; `None` before, or if it has all.
    chosen: Option<BTreeSet<u32>>,
}

/// The image that the copy has, whole.
struct Settled {
    superblock: Superblock,
    contained: Contained,
    /// Of a copy with some of the tables.
    choice: Option<Choice>,
}

/// What an image has in one file.
struct SpaceImage {
    /// Of the table.
    name: String,
    space: u32,
    map: Option<BlockAddress>,
    trees: Vec<TreeImage>,
}

/// What an image has of one tree.
struct TreeImage {
    tree: TreeId,
    /// `None`: it is empty.
    root: Option<TreeRoot>,
    dictionary: Option<StoredDictionary>,
}

/// What one round adds up.
#[derive(Default)]
struct Tally {
    copied_bytes: AtomicU64,
    findings: Mutex<Findings>,
    /// Tables of which something could not be read.
    damaged: Mutex<BTreeSet<String>>,
}

impl BackupCopy {
    /// A copy of the engine in `from` is to be made in `to`, an empty directory, by so many threads. The engine's files
    /// are only read.
    pub fn new(
        (source, from): (Arc<dyn FileSystem>, &Path),
        (target, to): (Arc<dyn FileSystem>, &Path),
        threads: usize,
    ) -> BackupCopy {
        let source: Arc<dyn FileSystem> = Arc::new(ReadOnlyFileSystem(source));
        let (from, to) = (from.to_path_buf(), to.to_path_buf());
        let mark = Mark { round: FIRST_ROUND - 1, origin: 0 };
        let (extents, begun, settled, wanted, chosen) = Default::default();
        BackupCopy { source, from, target, to, threads, mark, extents, begun, settled, wanted, chosen }
    }

    /// What `older` has, also in the backups below it, is not copied: the copy is worth nothing without them.
    pub fn on_top_of(mut self, older: &ExtentList) -> BackupCopy {
        let extents =
            |(space, listed): (&u32, &Vec<_>)| (*space, Arc::new(Mutex::new(Extents::of_list(listed))));
        self.extents = older.spaces.iter().map(extents).collect();
        self.mark.origin = older.backup.saturating_add(1);
        self
    }

    /// Copies what the newest image has and the target has not. The engine may make checkpoints meanwhile.
    pub fn round(&mut self, pacer: Pacer<'_>) -> Result<Round> {
        self.copy_image(&Tally::default(), pacer).map(|(_, round)| round)
    }

    /// The last round. Checkpoints are paused, and stay so until [`BackupCopy::finish`] has returned. What cannot be
    /// read is an error, which names it.
    pub fn settle(&mut self, pacer: Pacer<'_>) -> Result<Round> {
        let tally = Tally::default();
        let (settled, round) = self.copy_image(&tally, pacer)?;
        tally.faultless()?;
        self.settled = Some(settled);
        Ok(round)
    }

    /// Adds the log up to `end`, which is durable
    /// ([`Engine::durable_log_end`](crate::server::Engine::durable_log_end)), and what it names, and makes the copy one
    /// that can be opened: it has what was committed when `end` was the end. The list of all extents, for a backup on
    /// top of this one, and the bytes that were written.
    pub fn finish(mut self, end: Lsn, pacer: Pacer<'_>) -> Result<(ExtentList, u64)> {
        let Some(settled) = self.settled.take() else {
            return Err(Error::corrupt(&self.from, 0, "the copy has no image that is whole"));
        };
        let tally = Tally::default();
        self.choose_at_end(&settled, end, &tally, pacer)?;
        let created = tail::copy(&self, &settled, end, &tally, pacer)?;
        self.extents.extend(created);
        self.has_all_chosen()?;
        let source_path = superblock_path(&self.from);
        let source = self.source.open(&source_path, OpenMode::ReadOnly)?;
        let mut bytes = vec![0; source.len()? as usize];
        source.read_exact_at(0, &mut bytes)?;
        // Read again, after those bytes: a checkpoint would have changed it.
        match Superblock::read_newest(&*self.source, &source_path)? {
            Some(newest) if newest.checkpoint == settled.superblock.checkpoint => {}
            _ => {
                let detail = "there was a checkpoint while the copy was finished";
                return Err(Error::corrupt(superblock_path(&self.to), 0, detail));
            }
        }
        make_engine(&*self.target, &self.to, &bytes)?;
        self.target.sync_dir(parent(&self.to))?;
        Ok((self.list(settled.superblock.engine_id), tally.copied_bytes()))
    }

    fn list(&self, engine_id: [u8; 16]) -> ExtentList {
        let listed = |(space, extents): (&u32, &Arc<Mutex<Extents>>)| {
            (*space, extents.lock().to_list(self.mark.round))
        };
        // Others are of tables that were dropped since the image: the log says so.
        let begun = self.begun.lock();
        let spaces = self.extents.iter().filter(|(space, _)| begun.contains(space)).map(listed).collect();
        let (backup, lists_memory) = (self.mark.origin, self.wanted.is_some());
        ExtentList { engine_id, backup, lists_memory, spaces }
    }

    /// One round; what the target has if nothing was found.
    fn copy_image(&mut self, tally: &Tally, pacer: Pacer<'_>) -> Result<(Settled, Round)> {
        // Whatever the target had whole is being changed.
        self.settled = None;
        self.mark.round += 1;
        let path = superblock_path(&self.from);
        let superblock = Superblock::read_newest(&*self.source, &path)?
            .ok_or_else(|| Error::corrupt(&path, 0, "there is no engine in this directory"))?;
        self.target.create_dir(&self.to)?;
        let files = OpenFiles::new(self.source.clone(), OPEN_FILES);
        let (directory, catalog) = self.copy_system(&files, &superblock, tally, pacer)?;
        let image_bytes = directory.roots.values().map(|root| root.stored_bytes).sum();
        let contained = directory.contained(superblock.replay_from);
        let (images, choice) = self.choose(directory, catalog);
        self.keep_files(images.iter().map(|image| image.space))?;
        self.copy_spaces(&files, &images.iter().collect::<Vec<_>>(), tally, pacer)?;
        let round = Round {
            checkpoint: superblock.checkpoint,
            copied_bytes: tally.copied_bytes(),
            image_bytes,
            missed: tally.findings.lock().count(),
        };
        Ok((Settled { superblock, contained, choice }, round))
    }

    /// The target is to have these files, and no others: tables may have been dropped since the last round.
    fn keep_files(&mut self, spaces: impl Iterator<Item = u32>) -> Result<()> {
        let mut before = std::mem::take(&mut self.extents);
        for space in spaces.chain([SYSTEM_SPACE]) {
            self.extents.insert(space, before.remove(&space).unwrap_or_default());
        }
        let begun = &mut *self.begun.lock();
        for space in before.into_keys().filter(|space| begun.remove(space)) {
            self.target.remove(&self.to.join(space_file_name(space)))?;
        }
        Ok(())
    }

    /// The file of the system trees; what these say of the others.
    fn copy_system(
        &mut self,
        files: &Arc<OpenFiles>,
        superblock: &Superblock,
        tally: &Tally,
        pacer: Pacer<'_>,
    ) -> Result<(DirectoryRows, Catalog)> {
        let extents = self.extents.entry(SYSTEM_SPACE).or_default().clone();
        let path = self.from.join(space_file_name(SYSTEM_SPACE));
        let space = Space::open_twice(files, &path, SYSTEM_SPACE, superblock.system_map)?;
        let (mut rows, mut names, mut odd) = (DirectoryRows::default(), Catalog::default(), Vec::new());
        let target = self.target_file(SYSTEM_SPACE, &path)?;
        extents.lock().change(|known| {
            let mut copy = SpaceCopy::new(&space, &*target, (known, self.mark), tally, pacer);
            // All of them are read in each round: they say where everything else is.
            if let Some(root) = &superblock.directory {
                copy.tree_with(DIRECTORY_TREE, root, &mut |block| {
                    each_row(block, &mut |key, value| rows.note(key, value, &mut odd))
                })?;
            }
            if let Some(root) = rows.roots.get(&CATALOG_TREE) {
                copy.tree_with(CATALOG_TREE, root, &mut |block| {
                    each_row(block, &mut |key, value| names.note(key, value, &mut odd))
                })?;
            }
            superblock.system_map.iter().try_for_each(|map| copy.extent_apart(map))?;
            copy.finish()
        })?;
        target.sync()?;
        match odd.into_iter().next() {
            Some(detail) => Err(Error::corrupt(&path, 0, detail)),
            None => Ok((rows, names)),
        }
    }

    /// The files of tables: of large ones, one after the other, by all threads; then of all others, one a thread.
    fn copy_spaces(
        &self,
        files: &Arc<OpenFiles>,
        images: &[&SpaceImage],
        tally: &Tally,
        pacer: Pacer<'_>,
    ) -> Result<()> {
        let is_large = |image: &SpaceImage| {
            let mut roots = image.trees.iter().filter_map(|tree| tree.root.as_ref());
            roots.any(|root| is_for_several(root, self.threads))
        };
        let (large, others): (Vec<_>, Vec<_>) = images.iter().partition(|image| is_large(image));
        for image in large {
            self.copy_space(files, image, self.threads, tally, pacer)?;
        }
        crate::threads::share_out(&others, self.threads, "teak-copy", |image| {
            self.copy_space(files, image, 1, tally, pacer)
        })
    }

    /// One table's file. It may be removed meanwhile, with its table.
    fn copy_space(
        &self,
        files: &Arc<OpenFiles>,
        image: &SpaceImage,
        threads: usize,
        tally: &Tally,
        pacer: Pacer<'_>,
    ) -> Result<()> {
        let path = self.from.join(space_file_name(image.space));
        let own = Tally::default();
        let copied = match self.copy_file((files, &path), image, threads, &own, pacer) {
            Err(Error::Io { path: of, .. }) if of == path && !self.source.exists(&path)? => Ok(()),
            copied => copied,
        };
        tally.join(own, &image.name, copied)
    }

    fn copy_file(
        &self,
        (files, path): (&Arc<OpenFiles>, &Path),
        image: &SpaceImage,
        threads: usize,
        tally: &Tally,
        pacer: Pacer<'_>,
    ) -> Result<()> {
        let Some(extents) = self.extents.get(&image.space) else { return Ok(()) };
        let space = Space::open(files, path, image.space, image.map)?;
        let target = self.target_file(image.space, path)?;
        let has_written = extents.lock().change(|known| {
            let mut copy = SpaceCopy::new(&space, &*target, (known, self.mark), tally, pacer);
            // Before any block that needs one of them.
            for (number, address) in image.trees.iter().filter_map(|tree| tree.dictionary) {
                space.know_dictionary(number, address, None);
                copy.extent_apart(&address)?;
            }
            for TreeImage { tree, root, .. } in &image.trees {
                root.iter().try_for_each(|root| copy.tree(*tree, root, threads))?;
            }
            image.map.iter().try_for_each(|map| copy.extent_apart(map))?;
            copy.finish()
        })?;
        match has_written {
            true => target.sync(),
            false => Ok(()),
        }
    }

    /// The file of the target that is as the engine's `path`, with its header.
    fn target_file(&self, space: u32, path: &Path) -> Result<Arc<dyn crate::file::File>> {
        let target = self.to.join(space_file_name(space));
        if self.begun.lock().contains(&space) {
            return self.target.open(&target, OpenMode::Create);
        }
        // Before the target has anything of a file that may be gone.
        let mut header = vec![0; Space::HEADER_BYTES as usize];
        self.source.open(path, OpenMode::ReadOnly)?.read_exact_at(0, &mut header)?;
        let file = self.target.open(&target, OpenMode::Create)?;
        file.write_at(0, &header)?;
        file.sync()?;
        self.begun.lock().insert(space);
        Ok(file)
    }

    fn log_dirs(&self) -> (PathBuf, PathBuf) {
        (log_dir(&self.from), log_dir(&self.to))
    }
}

/// Makes a directory, in which all else is durable, an engine's: `superblock` is the content of that file.
fn make_engine(fs: &dyn FileSystem, dir: &Path, superblock: &[u8]) -> Result<()> {
    let path = superblock_path(dir);
    let unnamed = path.with_extension("new");
    let file = fs.open(&unnamed, OpenMode::Create)?;
    file.write_at(0, superblock)?;
    file.sync()?;
    fs.sync_dir(dir)?;
    fs.rename(&unnamed, &path)?;
    fs.sync_dir(dir)
}

fn parent(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn space_images(mut rows: DirectoryRows, names: Catalog) -> Vec<SpaceImage> {
    let mut image = |(name, record): (String, TableRecord)| {
        let mut take = |tree: TreeId| TreeImage {
            tree,
            root: rows.roots.remove(&tree),
            dictionary: rows.dictionaries.remove(&tree),
        };
        let trees = record.trees.iter().map(|(tree, _)| take(*tree)).collect();
        SpaceImage { name, space: record.space, map: rows.maps.remove(&record.space), trees }
    };
    // Of tables in memory there is nothing to copy but their records.
    names.records.into_iter().filter(|(_, record)| record.has_file()).map(&mut image).collect()
}

impl Tally {
    fn wrote(&self, bytes: u64) {
        // Relaxed: a sum that is read when the threads have ended.
        self.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What has come of `table`. That its file is damaged is a finding: others are copied all the same, so that all
    /// that are damaged are named.
    fn join(&self, of: Tally, table: &str, copied: Result<()>) -> Result<()> {
        self.wrote(of.copied_bytes());
        let mut findings = of.findings.into_inner();
        let copied = findings.absorb(None, copied).map(drop);
        if findings.count() > 0 {
            self.damaged.lock().insert(table.to_string());
        }
        self.findings.lock().append(findings);
        copied
    }

    /// The first of what could not be read, as an error, which names the tables that are damaged.
    fn faultless(&self) -> Result<()> {
        let findings = self.findings.lock();
        let Some(first) = findings.iter().next() else { return Ok(()) };
        let damaged = self.damaged.lock();
        let named: Vec<&str> = damaged.iter().take(MOST_NAMED).map(String::as_str).collect();
        let detail = match damaged.len() {
            0 => first.detail.clone(),
            count => {
                let others = if count > MOST_NAMED {
                    format!(" and {} more", count - MOST_NAMED)
                } else {
                    String::new()
                };
                format!("{}; damaged: {}{others}", first.detail, named.join(", "))
            }
        };
        Err(Error::corrupt(&first.path, first.offset.unwrap_or(0), detail))
    }

    /// When the threads that add to it have ended.
    fn copied_bytes(&self) -> u64 {
        // Relaxed: as above.
        self.copied_bytes.load(Ordering::Relaxed)
    }
}
