//! Where checkpoints stand, and waiting for them.

use super::pause::Pauses;
use crate::log::Lsn;
use crate::sync::{Condvar, Mutex};
use crate::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often a failing checkpoint is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Where checkpoints stand; shared with the background threads, which hold no reference to the engine while they wait.
#[derive(Default)]
pub(crate) struct Progress {
    /// Where in the log the last durable checkpoint began.
    pub(super) began: AtomicU64,
    /// Where in the log the last attempt began.
    pub(super) attempted: AtomicU64,
    /// Bytes of rows that the log names and does not have: a restart takes them for log.
    pub(super) direct_bytes: AtomicU64,
    /// How many of them there were when the last durable checkpoint began.
    pub(super) direct_began: AtomicU64,
    /// Bytes of deltas that the last durable checkpoint left, as they are not decided.
    pub(super) changes_left: AtomicU64,
    /// A checkpoint was asked for and the thread has not looked yet.
    pub(super) asked: AtomicBool,
    /// More finished leaves than these are worth a look.
    pub(super) finished_enough: AtomicUsize,
    /// Who holds checkpoints back.
    pub(in crate::engine) pauses: Pauses,
    pub(super) state: Mutex<Attempts>,
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct Attempts {
    /// Attempts that ended, either way.
    pub(super) attempts: u64,
    /// Why the last one failed.
    pub(super) failure: Option<Error>,
    pub(super) stopped: bool,
}

impl Progress {
    /// Progress of an engine whose last checkpoint began at `lsn`.
    pub(in crate::engine) fn from(lsn: Lsn) -> Progress {
        Progress { began: AtomicU64::new(lsn), attempted: AtomicU64::new(lsn), ..Progress::default() }
    }

    pub(in crate::engine) fn began(&self) -> Lsn {
        self.began.load(Ordering::SeqCst)
    }

    /// So many bytes of rows are in blocks that the log names.
    pub(in crate::engine) fn note_direct(&self, bytes: u64) {
        self.direct_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Bytes of such rows since the start.
    pub(in crate::engine) fn direct_bytes(&self) -> u64 {
        self.direct_bytes.load(Ordering::SeqCst)
    }

    pub(in crate::engine) fn ask(&self) {
        if !self.asked.swap(true, Ordering::SeqCst) {
            self.wake_all();
        }
    }

    pub(in crate::engine) fn wake_all(&self) {
        // With the mutex: who has looked and is about to wait is not missed.
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// Ends the background threads.
    pub(in crate::engine) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Whether the last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    pub(super) fn ended(&self, failure: Option<Error>) {
        let mut state = self.state.lock();
        state.attempts += 1;
        state.failure = failure;
        self.changed.notify_all();
    }

    /// For the checkpoint thread: waits until one is asked for. `false`: the engine goes.
    pub(in crate::engine) fn wait_for_work(&self) -> bool {
        let mut state = self.state.lock();
        while !state.stopped && !self.asked.load(Ordering::SeqCst) {
            self.changed.wait(&mut state);
        }
        if state.failure.is_some() && !state.stopped {
            let until = Instant::now() + RETRY;
            while !state.stopped && !self.changed.wait_until(&mut state, until).timed_out() {}
        }
        self.asked.store(false, Ordering::SeqCst);
        !state.stopped
    }

    /// Whether the engine is not being closed.
    pub(in crate::engine) fn is_running(&self) -> bool {
        !self.state.lock().stopped
    }

    /// Whether checkpoints are held back; the last one, of an engine that is being closed, is not.
    pub(super) fn is_paused(&self) -> bool {
        self.pauses.any() && !self.state.lock().stopped
    }

    /// For who cannot go on while a checkpoint is under way: waits for the end of one, and not longer than that.
    pub(in crate::engine) fn await_attempt(&self, at_most: Duration) {
        let mut state = self.state.lock();
        self.changed.wait_for(&mut state, at_most);
    }

    /// For periodic work: waits that long. `false`: the engine goes.
    pub(in crate::engine) fn pause(&self, duration: Duration) -> bool {
        let until = Instant::now() + duration;
        let mut state = self.state.lock();
        while !state.stopped && !self.changed.wait_until(&mut state, until).timed_out() {}
        !state.stopped
    }
}
