//! Writing a checkpoint.

use super::images::{write_trees, Pace, Written};
use crate::catalog::directory::{self, StoredDictionary};
use crate::catalog::{Contained, SystemTrees};
use crate::file::File;
use crate::log::{Log, LogRecord, Lsn};
use crate::mvcc::{Clock, SnapshotGuard, TxnStatus};
use crate::store::{BlockAddress, Features, Release, Space, Superblock, TreeRoot};
use crate::sync::atomic::AtomicUsize;
use crate::sync::Mutex;
use crate::tree::{Moment, Tree};
use crate::types::{Timestamp, TreeId, TxnId, WriteOp};
use crate::{Error, Result};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A tree to be written, and its row count as of the capture.
pub struct TreeImage {
    /// The tree.
    pub tree: Arc<Tree>,
    /// Its rows as of T. The counter of the tree itself has moved on by the time the image is written.
    pub entries: u64,
}

/// What was dropped since the last checkpoint: its directory rows go.
#[derive(Clone, Default)]
pub struct Dropped {
    /// The space whose file is gone, if it is.
    pub space: Option<u32>,
    /// The trees.
    pub trees: Vec<TreeId>,
    /// Those of them whose space goes on without them: their extents are to be reused.
    pub retired: Vec<Arc<Tree>>,
}

impl Dropped {
    /// The spaces that go on without a tree of theirs.
    pub fn retired_from(&self) -> impl Iterator<Item = u32> + '_ {
        self.retired.iter().map(|tree| tree.space().id())
    }
}

/// A table's file that was filled from outside, and is synced: what the directory is to say of it.
#[derive(Clone)]
pub struct Arrival {
    /// The file.
    pub space: u32,
    /// Its free map.
    pub map: BlockAddress,
    /// Its trees, in the table's order.
    pub trees: Vec<ArrivedTree>,
    /// The table's counter.
    pub counter: u64,
    /// What the caller knows of its content; empty: nothing.
    pub digest: Vec<u8>,
}

/// One of its trees.
#[derive(Clone, Copy)]
pub struct ArrivedTree {
    /// Its number here.
    pub tree: TreeId,
    /// `None`: it is empty.
    pub root: Option<TreeRoot>,
    /// What its blocks are encoded with.
    pub dictionary: Option<StoredDictionary>,
}

/// What a checkpoint contains, as captured by the engine in one moment without DDL.
pub struct Capture {
    /// T, registered so that versions of that time are kept.
    pub snapshot: SnapshotGuard,
    /// End of the log as of T.
    pub log_end: Lsn,
    /// Where replay begins.
    pub replay_from: Lsn,
    /// The commits that are contained in `entries` of the images, and in the images of tables that could not be
    /// recovered.
    pub counted: Contained,
    /// Bytes of rows in blocks that the log names instead of them, so far.
    pub direct_bytes: u64,
    /// Timestamp of the last of these commits.
    pub counted_at: Timestamp,
    /// All trees with changes since the last checkpoint, except the directory.
    pub trees: Vec<TreeImage>,
    /// Values of the counters that changed since the last checkpoint, by the first tree of their table.
    pub counters: BTreeMap<TreeId, u64>,
    /// What callers have found out about tables since the last checkpoint, by the first tree of their table.
    pub digests: BTreeMap<TreeId, Arc<[u8]>>,
    /// Files that came from outside since the last checkpoint.
    pub arrivals: Vec<Arrival>,
    /// What was dropped since the last checkpoint.
    pub dropped: Vec<Dropped>,
    /// Spaces whose files are of no table and could not be removed.
    pub orphans: HashSet<u32>,
    /// Identifiers that were never used.
    pub next_tree: TreeId,
    /// See `next_tree`.
    pub next_txn: TxnId,
    /// See `next_tree`.
    pub next_space: u32,
    /// The engine is being closed.
    pub clean: bool,
}

/// What has become of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is there.
    Durable,
    /// It is not, or nobody knows and there is no other.
    Failed,
}

/// A checkpoint that did not come about.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: Error,
    /// Nobody knows what is on disk: the engine must not write any more.
    pub fatal: bool,
    /// The space whose trees could not be written, if it is that.
    pub space: Option<u32>,
}

impl Failure {
    pub(super) fn fatal(error: Error) -> Failure {
        Failure { error, fatal: true, space: None }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, fatal: false, space: None }
    }
}

/// What is known of the superblock.
struct Durable {
    /// Number of the newest durable checkpoint. Each attempt has the number of its successor, as generation in the
    /// spaces and in the superblock: spaces remember their newest generation in their maps, and the next start knows
    /// only superblocks.
    checkpoint: u64,
    /// The superblock of the one after that was written in vain, or perhaps not: there is no other.
    undecided: Option<Error>,
}

/// Writes checkpoints, one at a time.
pub struct Checkpointer {
    /// The superblocks' file, open: a checkpoint that is complete but for them must not wait for a descriptor.
    superblock: Arc<dyn File>,
    /// See [`Superblock::write_spare`].
    spare: Option<Arc<dyn File>>,
    log: Arc<Log>,
    clock: Arc<Clock>,
    system: Arc<SystemTrees>,
    engine_id: [u8; 16],
    features: Features,
    /// What is to be set once the durable superblock has [`Features::FRAMES`], and to what.
    frames: (Arc<AtomicUsize>, usize),
    durable: Mutex<Durable>,
    /// Number of the newest durable checkpoint, for who only wants to know it and must not wait for the mutex.
    newest: AtomicU64,
}

/// What one attempt has touched so far and has to finish or to abandon.
#[derive(Default)]
pub(super) struct Touched {
    spaces: BTreeMap<u32, Arc<Space>>,
    pub trees: Vec<Arc<Tree>>,
}

impl Touched {
    pub fn space(&mut self, space: &Arc<Space>, generation: u64) {
        self.spaces.entry(space.id()).or_insert_with(|| {
            space.begin(generation);
            space.clone()
        });
    }

    fn abandon(&self, generation: u64) {
        for tree in &self.trees {
            tree.checkpoint_abandoned();
        }
        for space in self.spaces.values() {
            space.abandon(generation);
        }
    }

    fn durable(&self, generation: u64) {
        for tree in &self.trees {
            tree.checkpoint_durable();
        }
        for space in self.spaces.values() {
            space.durable(generation);
        }
    }
}

impl Checkpointer {
    /// Goes on after `newest`, the superblock that the engine was opened with, in their file, with their spare one.
    /// `frames` is a number, and what it is set to as soon as leaves may be in frames: the first checkpoint of a
    /// directory of before says that there may be some, and only then there are, so that no build of before meets one
    /// in the log.
    pub fn new(
        (superblock, spare): (Arc<dyn File>, Option<Arc<dyn File>>),
        log: Arc<Log>,
        clock: Arc<Clock>,
        system: Arc<SystemTrees>,
        newest: &Superblock,
        frames: (Arc<AtomicUsize>, usize),
    ) -> Checkpointer {
        let durable = Mutex::new(Durable { checkpoint: newest.checkpoint, undecided: None });
        let Superblock { engine_id, features, checkpoint, .. } = *newest;
        let newest = AtomicU64::new(checkpoint);
        let knows_frames = features.has(Features::FRAMES);
        let features = features.with(Features::OURS);
        let checkpointer = Checkpointer {
            superblock,
            spare,
            log,
            clock,
            system,
            engine_id,
            features,
            frames,
            durable,
            newest,
        };
        if knows_frames {
            checkpointer.permit_frames();
        }
        checkpointer
    }

    /// The durable superblock says that leaves may be in frames.
    fn permit_frames(&self) {
        let (frame_bytes, bytes) = &self.frames;
        // Relaxed: nothing is reached through it.
        frame_bytes.store(*bytes, Ordering::Relaxed);
    }

    /// Captures and writes one checkpoint. After an error that is not fatal everything is as before and another attempt
    /// may succeed. The mutex is held over I/O on purpose: it is what makes checkpoints follow each other, nobody else
    /// takes it. An error beside the capture came after the checkpoint was durable: some space could not be given back.
    /// Without a capture there is no checkpoint.
    ///
    /// `leave` is called before anybody can capture the next one, which has to find what this one does not have: its
    /// replay begins behind all that was published before it, in whatever image that is.
    pub fn run(
        &self,
        pace: &Pace<'_>,
        capture: impl FnOnce() -> Option<Capture>,
        leave: impl FnOnce(&mut Capture, Outcome),
    ) -> Option<Result<(Capture, Option<Error>), Failure>> {
        let mut durable = self.durable.lock();
        let mut capture = capture()?;
        let written = self.write(&mut durable, &capture, pace);
        let outcome = if written.is_ok() { Outcome::Durable } else { Outcome::Failed };
        leave(&mut capture, outcome);
        Some(written.map(|leftover| (capture, leftover)))
    }

    /// Number of the newest durable checkpoint.
    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// Runs `body` while no checkpoint is under way or begins: the durable image stays what it is, and nothing of it is
    /// overwritten.
    pub fn paused<T>(&self, body: impl FnOnce() -> T) -> T {
        let _durable = self.durable.lock();
        body()
    }

    /// [`Checkpointer::paused`], or nothing if a checkpoint is under way.
    pub fn unless_running<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        let _durable = self.durable.try_lock()?;
        Some(body())
    }

    fn write(
        &self,
        durable: &mut Durable,
        capture: &Capture,
        pace: &Pace<'_>,
    ) -> Result<Option<Error>, Failure> {
        if let Some(error) = &durable.undecided {
            return Err(Failure::fatal(error.clone()));
        }
        let generation = durable.checkpoint + 1;
        debug_assert!(capture.replay_from <= capture.log_end, "replay would begin behind what is contained");
        debug_assert!(capture.counted_at <= capture.snapshot.timestamp(), "a commit after T is counted");
        let mut touched = Touched::default();
        let written = self.write_image(generation, capture, &mut touched, pace);
        let superblock = match written {
            Ok(superblock) => superblock,
            Err(failure) => {
                touched.abandon(generation);
                return Err(failure);
            }
        };
        // In release as well: what an image has beyond the durable log, a crash would leave half there.
        assert!(
            self.log.synced() >= capture.log_end,
            "an image up to {} with a log up to {}",
            capture.log_end,
            self.log.synced()
        );
        debug_assert!(
            superblock.timestamp >= capture.snapshot.timestamp(),
            "an image of before its snapshot"
        );
        if let Err(error) = superblock.write(&*self.superblock) {
            // Whether it is there nobody knows: what it names must stay, and so must what the one before it names.
            durable.undecided = Some(error.clone());
            return Err(Failure::fatal(error));
        }
        self.write_spare(&superblock);
        self.permit_frames();
        durable.checkpoint = generation;
        self.newest.store(generation, Ordering::SeqCst);
        // Before anything is overwritten that only older images have, and before anybody commits what relies on this
        // one.
        let noted = self.log.append_decision(LogRecord::Checkpoint { number: generation }.encode());
        touched.durable(generation);
        // From here on the checkpoint stands; what follows only gives space back.
        let mut trimmed = Ok(());
        for space in touched.spaces.values() {
            let result = space.trim();
            trimmed = trimmed.and(result);
        }
        let released = self.log.release_before(capture.replay_from);
        Ok(noted.map(drop).and(trimmed).and(released).err())
    }

    /// What becomes of it matters to who finds no other superblock, and then there is nothing better.
    fn write_spare(&self, superblock: &Superblock) {
        let Some(spare) = &self.spare else { return };
        let written = superblock.write_spare(&**spare);
        if superblock.clean && written.is_ok() {
            let _ = spare.sync();
        }
    }

    fn write_image(
        &self,
        generation: u64,
        capture: &Capture,
        touched: &mut Touched,
        pace: &Pace<'_>,
    ) -> Result<Superblock, Failure> {
        let system_space = &self.system.space;
        touched.space(system_space, generation);
        let written = write_trees(generation, capture, touched, system_space.id(), pace)?;
        self.log.sync_up_to(capture.log_end)?;

        let directory = &self.system.directory;
        self.update_directory(capture, &written)?;
        // A snapshot of its own: the rows just written are newer than T, and nobody else writes here.
        let now = self.clock.internal_snapshot();
        touched.trees.push(directory.clone());
        // There is always something: at least the row that was just written.
        let root = directory.checkpoint(Moment::at(now.timestamp()), generation, 1)?;
        let root = root.ok_or(Error::OutOfMemory("the directory has no image"))?;
        let system_map = system_space.write_map(generation)?;
        system_space.sync().map_err(Failure::fatal)?;
        Ok(Superblock {
            version: Superblock::VERSION,
            engine_id: self.engine_id,
            checkpoint: generation,
            timestamp: now.timestamp(),
            replay_from: capture.replay_from,
            next_tree: capture.next_tree,
            next_txn: capture.next_txn,
            next_space: capture.next_space,
            directory: Some(root),
            system_map: Some(system_map),
            features: self.features,
            read_from: Release::READS_OURS,
            clean: capture.clean,
        })
    }

    /// Puts the new roots, maps and counters into the directory tree. If the attempt fails later, rows of abandoned
    /// images stay there in memory; the same trees are then still dirty, so the next attempt replaces them before
    /// anything of it is durable.
    fn update_directory(&self, capture: &Capture, written: &Written) -> Result<()> {
        let mut batch = Batch { tree: &self.system.directory, status: TxnStatus::new(0), sequence: 0 };
        let apart = self.system.counted_apart()?;
        let known = self.system.orphans()?;
        let rows = batch.rows(capture, written, apart.into_keys());
        match rows.and_then(|()| batch.orphans(&known, &capture.orphans)) {
            Ok(()) => {
                self.clock.publish(&batch.status);
                Ok(())
            }
            Err(error) => {
                batch.status.abort();
                Err(error)
            }
        }
    }
}

/// Rows written to the directory under one status.
struct Batch<'a> {
    tree: &'a Arc<Tree>,
    status: Arc<TxnStatus>,
    sequence: u32,
}

impl Batch<'_> {
    /// `apart` are the spaces that had a row of their own of what they contain.
    fn rows(&mut self, capture: &Capture, written: &Written, apart: impl Iterator<Item = u32>) -> Result<()> {
        capture.arrivals.iter().try_for_each(|arrival| self.arrival(arrival))?;
        for (tree, root) in &written.roots {
            self.put(&directory::root_key(*tree), &directory::encode_root(root))?;
        }
        for (tree, dictionary) in &written.dictionaries {
            self.put(&directory::dictionary_key(*tree), &directory::encode_dictionary(dictionary))?;
        }
        for (space, map) in &written.maps {
            self.put(&directory::map_key(*space), &directory::encode_map(map))?;
        }
        for (tree, counter) in &capture.counters {
            self.put(&directory::counter_key(*tree), &directory::encode_number(*counter))?;
        }
        for (tree, digest) in &capture.digests {
            self.put(&directory::digest_key(*tree), &directory::encode_digest(digest))?;
        }
        // Last: a tree that was dropped after its image was captured leaves no row.
        for dropped in &capture.dropped {
            for tree in &dropped.trees {
                self.write(&directory::root_key(*tree), WriteOp::Delete)?;
                self.write(&directory::dictionary_key(*tree), WriteOp::Delete)?;
                self.write(&directory::counter_key(*tree), WriteOp::Delete)?;
                self.write(&directory::digest_key(*tree), WriteOp::Delete)?;
            }
            if let Some(space) = dropped.space {
                self.write(&directory::map_key(space), WriteOp::Delete)?;
            }
        }
        for space in apart {
            self.write(&directory::counted_apart_key(space), WriteOp::Delete)?;
        }
        for (space, counted) in &capture.counted.apart {
            self.put(&directory::counted_apart_key(*space), &directory::encode_counted(counted))?;
        }
        self.put(directory::COUNTED_KEY, &directory::encode_counted(&capture.counted.common))
    }

    fn arrival(&mut self, arrival: &Arrival) -> Result<()> {
        for ArrivedTree { tree, root, dictionary } in &arrival.trees {
            if let Some(root) = root {
                self.put(&directory::root_key(*tree), &directory::encode_root(root))?;
            }
            if let Some(dictionary) = dictionary {
                self.put(&directory::dictionary_key(*tree), &directory::encode_dictionary(dictionary))?;
            }
        }
        self.put(&directory::map_key(arrival.space), &directory::encode_map(&arrival.map))?;
        let Some(first) = arrival.trees.first() else { return Ok(()) };
        self.put(&directory::counter_key(first.tree), &directory::encode_number(arrival.counter))?;
        match arrival.digest.is_empty() {
            true => Ok(()),
            false => self.put(&directory::digest_key(first.tree), &directory::encode_digest(&arrival.digest)),
        }
    }

    /// What the directory has of files that are left over becomes `now`.
    fn orphans(&mut self, before: &HashSet<u32>, now: &HashSet<u32>) -> Result<()> {
        for space in before.difference(now) {
            self.write(&directory::orphan_key(*space), WriteOp::Delete)?;
        }
        for space in now.difference(before) {
            self.put(&directory::orphan_key(*space), &directory::encode_orphan())?;
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(key, WriteOp::Update(value))
    }

    fn write(&mut self, key: &[u8], op: WriteOp<'_>) -> Result<()> {
        self.sequence += 1;
        self.tree.write(key, op, &self.status, self.sequence)
    }
}
