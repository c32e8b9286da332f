//! Blocks of new rows that a transaction puts into the tree as they are, in no delta and in no log.
//!
//! ```text
//! rows in key order ──> block ──> a leaf of its own, born by the transaction      (attach: at once, in memory)
//!                         └─────> compressed and written to a private extent      (BlockQueue: meanwhile)
//! commit: the log names the extent; the file is synced before the log is
//! ```
//!
//! A block goes in only where the leaf that is responsible for its keys has nothing at or after its first key; then
//! what is true of the whole leaf (see [`crate::tree::versions::birth`]) is true of each row. Everything else is left
//! to ordinary writes.
//!
//! A dictionary that no checkpoint has saved yet is named beside the block, and kept like it.
//!
//! The extent stays until a checkpoint that contains the commit is durable, whatever happens to the leaf: until then a
//! restart reads the rows from there.

use super::tree::Tree;
use crate::mvcc::{State, TxnStatus};
use crate::stop;
use crate::store::Extent;
use crate::sync::{Condvar, Mutex};
use crate::tree::block::bound::Bound;
use crate::tree::block::Block;
use crate::tree::change::consolidate::shortest_separator;
use crate::tree::change::structure::Structure;
use crate::tree::change::write::Written;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::node::{LeafRef, Node};
use crate::tree::leaf::shared::TreeShared;
use crate::tree::leaf::{Archive, Base, Leaf, LeafView};
use crate::tree::versions::birth::Birth;
use crate::tree::versions::delta::Delta;
use crate::types::Timestamp;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// More blocks than these do not wait for a thread: who makes them writes them.
const MOST_QUEUED: usize = 64;

/// Longer keys, in bytes, are not taken as separators as they are.
const EXACT_SEPARATOR: usize = 16;

/// So often a leaf is read to put a block behind it. Before it can be latched it may be evicted again, where memory is
/// short and threads look for some.
pub(crate) const MOST_READS: usize = 4;

/// An extent that the log names, or is about to.
pub(in crate::tree) struct Named {
    status: Arc<TxnStatus>,
    /// Held so that nothing else gets its place.
    _extent: Arc<Extent>,
    /// Not asked for once the running checkpoint is durable.
    settled: bool,
}

impl Tree {
    /// Puts `block`, written by `status` with its write `sequence`, into the tree. The caller holds whatever row locks
    /// are due.
    pub(crate) fn attach(
        &self,
        block: &Arc<Block>,
        status: &Arc<TxnStatus>,
        sequence: u32,
    ) -> Result<Attached> {
        for _ in 0..MOST_READS {
            let attached = self.try_attach(block, status, sequence)?;
            if !matches!(attached, Attached::NotNow) {
                return Ok(attached);
            }
        }
        Ok(Attached::NotNow)
    }

    fn try_attach(&self, block: &Arc<Block>, status: &Arc<TxnStatus>, sequence: u32) -> Result<Attached> {
        let Some(last) = block.len().checked_sub(1) else { return Ok(Attached::Never) };
        self.shared.context.cache.make_room()?;
        let (mut first_key, mut last_key) = (Vec::new(), Vec::new());
        block.key_into(0, &mut first_key);
        block.key_into(last, &mut last_key);
        let node = self.find_leaf(&first_key)?;
        let Node::Leaf(leaf) = &*node else { return Ok(Attached::Never) };
        // From disk, if need be, before any latch is taken.
        leaf.base(&node, &leaf.view())?;
        stop::at("attach: read and not latched");
        let birth = Some(Arc::new(Birth { status: status.clone(), sequence }));
        let mut structure = self.structure.lock();
        let mut state = leaf.latch();
        let view = leaf.view();
        if !view.holds(&first_key) || !view.holds(&last_key) {
            return Ok(Attached::Never);
        }
        let Some(room) = room_behind(&view) else { return Ok(Attached::NotNow) };
        let born = |low: Bound, horizon| LeafView {
            low,
            high: view.high.clone(),
            base: Base::Loaded(block.clone()),
            delta: Changes::Live(Arc::new(Delta::new())),
            history: Archive::Empty,
            horizon,
            birth: birth.clone(),
            dead: false,
        };
        let home = match room {
            Room::All => {
                self.occupy_all(leaf, &view.low)?;
                state.copies.changed();
                leaf.publish(&mut state, born(view.low.clone(), view.horizon));
                self.list_dirty(&state, &node);
                leaf.register(&mut state, &node);
                if structure.checkpointing {
                    structure.reimage.extend(LeafRef::of(node.clone()));
                }
                drop(state);
                node
            }
            Room::After(greatest) if *greatest < *first_key => {
                let low = Bound::from(&separator(&greatest, &first_key)[..]);
                let right = Arc::new(Node::Leaf(Leaf::new(self.shared.clone(), born(low.clone(), 0))));
                self.occupy_all(leaf, &view.low)?;
                let _change = self.changes.begin();
                self.add_right(&mut structure, &node, &low, &right)?;
                leaf.publish(&mut state, LeafView { high: Some(low), ..(*view).clone() });
                if state.copies.durable().is_some_and(|copy| copy.patch.is_some()) {
                    // Its block may have rows from there on, which the patch takes away.
                    state.copies.rewrite();
                    self.list_dirty(&state, &node);
                }
                drop(state);
                right
            }
            Room::After(_) | Room::None => return Ok(Attached::Never),
        };
        drop(structure);
        Ok(Attached::As(Arc::new(DirectJob::new(self.shared.clone(), home, block.clone()))))
    }

    /// Makes `right`, whose keys begin at `low`, known behind `left`. The left one is narrowed afterwards.
    fn add_right(
        &self,
        structure: &mut Structure,
        left: &Arc<Node>,
        low: &Bound,
        right: &Arc<Node>,
    ) -> Result<()> {
        self.list_new(right);
        let path = self.path_to(low)?;
        self.insert_children(path, left, &[(low.to_vec(), right.clone())]);
        self.shared.size.add_leaves(1);
        if structure.checkpointing {
            structure.reimage.extend(LeafRef::of(left.clone()));
            structure.reimage.extend(LeafRef::of(right.clone()));
        }
        // What is in it now stays: the next rows go behind it.
        self.note_finished(left);
        Ok(())
    }

    /// The log is going to name the extent, on behalf of `status`: it is kept until that is over.
    pub(crate) fn keep_named(&self, status: &Arc<TxnStatus>, extent: Arc<Extent>) {
        self.direct.lock().push(Named { status: status.clone(), _extent: extent, settled: false });
    }

    /// The transaction was rolled back: what the log says of it counts for nothing.
    pub(crate) fn forget_named(&self, status: &TxnStatus) {
        self.direct.lock().retain(|named| !std::ptr::eq(&*named.status, status));
    }

    /// Whether a checkpoint has something to write, or the log names blocks whose rows no durable image is known to
    /// have: those stay allocated until one has, and as long as the tree is open.
    pub(crate) fn awaits_checkpoint(&self) -> bool {
        self.is_dirty() || self.is_miscounted() || !self.direct.lock().is_empty()
    }

    /// The image is complete. Once it is durable the log's blocks of what was committed up to `counted_at` are not
    /// asked for any more.
    pub(in crate::tree) fn settle_direct(&self, counted_at: Timestamp) {
        for named in self.direct.lock().iter_mut() {
            named.settled = match named.status.state() {
                State::Committed(timestamp) => timestamp <= counted_at,
                State::Aborted => true,
                State::Active => false,
            };
        }
    }

    /// That image is durable.
    pub(in crate::tree) fn release_direct(&self) {
        self.direct.lock().retain(|named| !named.settled);
    }
}

/// Where the block's leaf begins: at its first key, so that another load which is about to fill the gap before it has
/// all of that for its own blocks; a separator of long keys is as short as it can be.
fn separator(greatest: &[u8], first_key: &[u8]) -> Vec<u8> {
    match first_key.len() {
        0..=EXACT_SEPARATOR => first_key.to_vec(),
        _ => shortest_separator(greatest, first_key),
    }
}

/// What has become of a block that was to be attached.
pub(crate) enum Attached {
    /// It is in the tree; what writes it to the file.
    As(Arc<DirectJob>),
    /// Nothing has happened: its keys are not alone where they belong, nor will those behind them be.
    Never,
    /// Nothing has happened: what is before it has been evicted again and again. The next block may find it.
    NotNow,
}

/// Where a leaf has room for keys of which it has none.
enum Room {
    /// Nowhere: it begins with rows of which nobody has a key.
    None,
    /// It has no content at all.
    All,
    /// Behind its greatest key.
    After(Vec<u8>),
}

/// `None`: not all of it is in memory.
fn room_behind(view: &LeafView) -> Option<Room> {
    let (Base::Loaded(base), Changes::Live(delta)) = (&view.base, &view.delta) else { return None };
    let mut greatest: Option<Vec<u8>> = delta.last().map(|entry| entry.key().to_vec());
    if let Some(last) = base.len().checked_sub(1) {
        let mut key = Vec::new();
        base.key_into(last, &mut key);
        greatest = greatest.max(Some(key));
    }
    match &view.history {
        Archive::Empty => {}
        Archive::Live(history) => {
            greatest = greatest.max(history.entries().map(|entry| entry.key.to_vec()).max());
        }
        Archive::Spilled(_) => return None,
    }
    match greatest {
        Some(key) => Some(Room::After(key)),
        None if view.birth.is_none() => Some(Room::All),
        None => Some(Room::None),
    }
}

/// The compression and writing of one block.
pub struct DirectJob {
    shared: Arc<TreeShared>,
    node: Arc<Node>,
    rows: usize,
    bytes: usize,
    progress: Mutex<Progress>,
    done: Condvar,
}

/// Whoever has the job does not keep the block once it is written: the leaf may be evicted.
enum Progress {
    Waiting(Arc<Block>),
    Running,
    Done(Result<Written>),
}

impl DirectJob {
    fn new(shared: Arc<TreeShared>, node: Arc<Node>, block: Arc<Block>) -> DirectJob {
        let (rows, bytes) = (block.len(), block.bytes().len());
        let progress = Mutex::new(Progress::Waiting(block));
        DirectJob { shared, node, rows, bytes, progress, done: Condvar::new() }
    }

    /// Rows in the block.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the block in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Does the work if nobody has begun it.
    fn run(&self) {
        let block = {
            let mut progress = self.progress.lock();
            let Progress::Waiting(block) = &*progress else { return };
            let block = block.clone();
            *progress = Progress::Running;
            block
        };
        // Whoever waits is woken also if this panics.
        let mut outcome =
            Outcome { job: self, result: Err(Error::OutOfMemory("a thread that wrote a block has died")) };
        outcome.result = self.write(&block);
    }

    fn write(&self, block: &Arc<Block>) -> Result<Written> {
        let Node::Leaf(leaf) = &*self.node else {
            return Err(Error::corrupt(self.shared.space.path(), 0, "a block of rows without a leaf"));
        };
        let extent = self.shared.write_ahead(leaf, block)?;
        let dictionary = self.shared.encoding.unsaved_dictionary(extent.address().dictionary);
        Ok(Written { extent, dictionary })
    }

    /// Waits for the extent in which the block is, and helps if nobody has begun. It is written, and not synced.
    pub fn wait(&self) -> Result<Written> {
        self.run();
        let mut progress = self.progress.lock();
        loop {
            match &*progress {
                Progress::Done(result) => return result.clone(),
                _ => self.done.wait(&mut progress),
            }
        }
    }
}

/// Tells the outcome when it is dropped.
struct Outcome<'a> {
    job: &'a DirectJob,
    result: Result<Written>,
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        *self.job.progress.lock() = Progress::Done(self.result.clone());
        self.job.done.notify_all();
    }
}

/// Blocks that wait for a thread. Threads are the engine's; without any, whoever waits for a block writes it.
#[derive(Default)]
pub struct BlockQueue {
    state: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<DirectJob>>,
    threads: usize,
    stopped: bool,
}

impl BlockQueue {
    /// Hands a block to a thread, if there are any that keep up.
    pub fn add(&self, job: &Arc<DirectJob>) {
        let mut state = self.state.lock();
        if state.threads > 0 && state.jobs.len() < MOST_QUEUED {
            state.jobs.push_back(job.clone());
            self.changed.notify_one();
        }
    }

    /// Works until [`BlockQueue::stop`].
    pub fn work(&self) {
        let mut state = self.state.lock();
        state.threads += 1;
        while !state.stopped {
            let Some(job) = state.jobs.pop_front() else {
                self.changed.wait(&mut state);
                continue;
            };
            drop(state);
            job.run();
            drop(job);
            state = self.state.lock();
        }
        state.threads -= 1;
    }

    /// Ends the threads.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.jobs.clear();
        self.changed.notify_all();
    }
}
