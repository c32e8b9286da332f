//! Bases that scans are going to want are read, checked and unpacked by the threads `teak-ahead-N` before the scans
//! come to them.
//!
//! ```text
//!        listed           a thread takes it          in memory
//!  Idle ────────> Queued ──────────────────> Reading ─────────> Unused
//!   ^               │ whoever needs it first     │ cannot be        │ its first reader,
//!   └───────────────┴────────────────────────────┴ read, or not now ┴ or eviction
//! ```
//!
//! What is read ahead is a guess. So an error is forgotten: who comes to the leaf reads it again and gets the error for
//! himself. Nothing is read once the cursor that asked has gone elsewhere (so nothing of a table that is dropped), or
//! memory is short. A base that nobody has used yet counts as not touched: eviction takes it first. All guesses of an
//! engine together, from the listing to the first use, are a sixteenth of the memory budget at most.
//!
//! Invariants: a leaf is on its way once at most, whoever asks; its bytes count as guessed exactly while its mark is
//! not `Idle`. A thread takes the leaf's latch last and waits for nothing else while it has it; who waits for a thread
//! gives up after a while and reads for himself.

use super::node::Node;
use super::shared::TreeShared;
use super::{Base, Leaf};
use crate::counts::{note_read, Count};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Guesses may take this part of the memory budget,
const PART_OF_BUDGET: u64 = 16;
/// but so many bytes in any case.
const LEAST_BYTES: u64 = 256 << 10;
/// Those who wait for different leaves rarely share a bell.
const BELLS: usize = 16;
/// How long somebody waits for a thread that reads what he needs, before he reads it himself.
const PATIENCE: Duration = Duration::from_secs(1);

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const READING: u8 = 2;
const UNUSED: u8 = 3;

/// How far a leaf's base is on its way to memory.
#[derive(Default)]
pub(super) struct Mark(AtomicU8);

impl Mark {
    fn is(&self, state: u8) -> bool {
        self.0.load(Ordering::SeqCst) == state
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.is(from) && self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// Held by a cursor that reads ahead; what it has listed is not read once it has let go.
#[derive(Default)]
pub(in crate::tree) struct Ticket(AtomicBool);

impl Ticket {
    pub(in crate::tree) fn cancel(&self) {
        // Relaxed: a hint.
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        // Relaxed: a hint.
        self.0.load(Ordering::Relaxed)
    }
}

struct Job {
    node: Arc<Node>,
    ticket: Arc<Ticket>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Whether anybody works on them.
    served: bool,
    stopped: bool,
}

/// Rung when a thread is done with a leaf.
#[derive(Default)]
struct Bell {
    latch: Mutex<()>,
    rung: Condvar,
}

/// What an engine reads ahead.
pub struct ReadAhead {
    queue: Mutex<Queue>,
    listed: Condvar,
    bells: [Bell; BELLS],
    most_blocks: AtomicU32,
    /// Of leaves whose mark is not `Idle`.
    guessed_bytes: AtomicUsize,
    read: AtomicU64,
    used: AtomicU64,
}

impl Default for ReadAhead {
    fn default() -> ReadAhead {
        ReadAhead {
            queue: Mutex::default(),
            listed: Condvar::new(),
            bells: Default::default(),
            most_blocks: AtomicU32::new(0),
            guessed_bytes: AtomicUsize::new(0),
            read: AtomicU64::new(0),
            used: AtomicU64::new(0),
        }
    }
}

impl ReadAhead {
    /// Blocks that are read ahead of one cursor at most; 0: none.
    pub fn most_blocks(&self) -> u32 {
        // Relaxed: a number, nothing is reached through it.
        self.most_blocks.load(Ordering::Relaxed)
    }

    /// Sets how many blocks are read ahead of one cursor at most; 0: none.
    pub fn set_most_blocks(&self, blocks: u32) {
        // Relaxed: see `most_blocks`.
        self.most_blocks.store(blocks, Ordering::Relaxed);
    }

    /// Blocks that were read ahead, and how many of those were used.
    pub fn counts(&self) -> (u64, u64) {
        // Relaxed: statistics.
        (self.read.load(Ordering::Relaxed), self.used.load(Ordering::Relaxed))
    }

    /// Somebody calls [`ReadAhead::step`], or works: without this nothing is listed.
    pub fn serve(&self) {
        self.queue.lock().served = true;
    }

    /// Works until [`ReadAhead::stop`].
    pub fn work(&self) {
        let mut queue = self.queue.lock();
        while !queue.stopped {
            let Some(job) = queue.jobs.pop_front() else {
                self.listed.wait(&mut queue);
                continue;
            };
            drop(queue);
            job.run();
            drop(job);
            queue = self.queue.lock();
        }
    }

    /// Bytes of what is listed, being read, or read and not used yet.
    #[cfg(test)]
    pub(in crate::tree) fn guessed_bytes(&self) -> usize {
        self.guessed_bytes.load(Ordering::SeqCst)
    }

    /// Does one piece of the work on the caller's thread; `false`: there is none.
    #[cfg(test)]
    pub fn step(&self) -> bool {
        let job = self.queue.lock().jobs.pop_front();
        job.inspect(Job::run).is_some()
    }

    /// Ends the threads.
    pub fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopped = true;
        let jobs = std::mem::take(&mut queue.jobs);
        self.listed.notify_all();
        drop(queue);
        for job in &jobs {
            job.give_up();
        }
    }

    /// `false`: nobody would do it.
    fn list(&self, job: Job) -> bool {
        let mut queue = self.queue.lock();
        let takes = queue.served && !queue.stopped;
        if takes {
            queue.jobs.push_back(job);
            self.listed.notify_one();
        }
        takes
    }

    fn reserve(&self, bytes: usize, budget: u64) -> bool {
        let most = (budget / PART_OF_BUDGET).max(LEAST_BYTES);
        // Relaxed: a sum. Two who look at the same time may go past the limit, by a block each.
        if self.guessed_bytes.load(Ordering::Relaxed) as u64 >= most {
            return false;
        }
        self.guessed_bytes.fetch_add(bytes, Ordering::Relaxed); // Relaxed: as above
        true
    }

    fn release(&self, bytes: usize) {
        // Relaxed: a sum.
        let before = self.guessed_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "more guesses end than began");
    }

    fn bell(&self, leaf: &Leaf) -> &Bell {
        // The lowest bits of addresses are all the same.
        &self.bells[(std::ptr::from_ref(leaf).addr() >> 7) % BELLS]
    }
}

impl Job {
    fn run(&self) {
        match &*self.node {
            Node::Leaf(leaf) => leaf.read_listed(&self.node, &self.ticket),
            // Whoever comes to the page gets the error.
            Node::Inner(page) if !self.ticket.is_cancelled() => drop(page.view()),
            Node::Inner(_) => {}
        }
    }

    fn give_up(&self) {
        if let Node::Leaf(leaf) = &*self.node {
            leaf.take_back();
        }
    }
}

/// Lists an inner page, whose children are not known yet.
pub(in crate::tree) fn list_page(node: &Arc<Node>, shared: &TreeShared, ticket: &Arc<Ticket>) {
    shared.context.ahead.list(Job { node: node.clone(), ticket: ticket.clone() });
}

impl Leaf {
    fn guess_bytes(&self) -> usize {
        self.shared.spec.block_bytes as usize
    }

    /// Whether its base is in memory, be it packed.
    pub(in crate::tree) fn is_in_memory(&self) -> bool {
        matches!(self.view().base, Base::Loaded(_) | Base::Packed(_))
    }

    /// Lists the leaf if its base is not in memory; `false`: no more are taken now.
    pub(in crate::tree) fn list_ahead(&self, node: &Arc<Node>, ticket: &Arc<Ticket>) -> bool {
        let view = self.view();
        if view.dead || matches!(view.base, Base::Loaded(_)) || !self.ahead.is(IDLE) {
            return true;
        }
        let context = &self.shared.context;
        if !context.ahead.reserve(self.guess_bytes(), context.cache.budget()) {
            return false;
        }
        if !self.ahead.turn(IDLE, QUEUED) {
            context.ahead.release(self.guess_bytes());
            return true;
        }
        let job = Job { node: node.clone(), ticket: ticket.clone() };
        let listed = context.ahead.list(job);
        match listed {
            true => Count::Prefetched.add(1),
            false => drop(self.take_back()),
        }
        listed
    }

    /// What is listed and not begun is not to be read by a thread any more.
    fn take_back(&self) -> bool {
        let taken = self.ahead.turn(QUEUED, IDLE);
        if taken {
            self.shared.context.ahead.release(self.guess_bytes());
        }
        taken
    }

    /// Whether no thread has it to read ahead, and none has done so in vain so far.
    pub(super) fn is_nobodys_guess(&self) -> bool {
        self.ahead.is(IDLE)
    }

    /// Somebody uses the base, or it goes: it is no guess any more. `true` if it was one.
    #[inline]
    pub(super) fn end_guess(&self) -> bool {
        let ended = self.ahead.turn(UNUSED, IDLE);
        if ended {
            self.shared.context.ahead.release(self.guess_bytes());
        }
        ended
    }

    /// Its first reader has come to a base that was read ahead.
    #[inline]
    pub(super) fn note_used(&self) -> bool {
        let used = self.end_guess();
        if used {
            // Relaxed: a statistic.
            self.shared.context.ahead.used.fetch_add(1, Ordering::Relaxed);
        }
        used
    }

    /// The base that a thread reads at this moment, once it is there. `None`: the caller has to read it.
    pub(super) fn await_ahead(&self) -> Option<Arc<super::Block>> {
        if self.ahead.is(IDLE) || self.take_back() {
            return None;
        }
        let bell = self.shared.context.ahead.bell(self);
        let begun = Instant::now();
        let mut latch = bell.latch.lock();
        let found = loop {
            if let Base::Loaded(block) = &self.view().base {
                self.note_used();
                break Some(block.clone());
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            if self.ahead.is(IDLE) || left.is_zero() {
                break None;
            }
            bell.rung.wait_for(&mut latch, left);
        };
        drop(latch);
        note_read(begun.elapsed());
        found
    }

    fn read_listed(&self, node: &Arc<Node>, ticket: &Ticket) {
        if !self.ahead.turn(QUEUED, READING) {
            return;
        }
        // Also if this panics.
        let _done = Reading(self);
        let cache = &self.shared.context.cache;
        if ticket.is_cancelled() || !cache.has_room() {
            return;
        }
        let view = self.view();
        if matches!(view.base, Base::Loaded(_)) {
            return;
        }
        // Whoever comes to the leaf gets the error.
        let Ok((block, patch)) = self.read_whole(&view) else { return };
        let mut state = self.latch();
        if self.view().base.same_place(&view.base) {
            // Before the base can be seen: its first reader finds the leaf untouched, and looks at the mark then.
            self.take_touched();
            self.ahead.turn(READING, UNUSED);
            // Relaxed: a statistic.
            self.shared.context.ahead.read.fetch_add(1, Ordering::Relaxed);
            self.keep_block(&mut state, node, &view.base, &block, patch.as_ref());
        }
    }
}

/// A thread is reading the leaf's base.
struct Reading<'a>(&'a Leaf);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let ahead = &self.0.shared.context.ahead;
        if self.0.ahead.turn(READING, IDLE) {
            ahead.release(self.0.guess_bytes());
        }
        let bell = ahead.bell(self.0);
        // Who has looked and is about to wait has the latch.
        drop(bell.latch.lock());
        bell.rung.notify_all();
    }
}
