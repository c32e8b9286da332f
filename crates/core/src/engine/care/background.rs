//! The engine's threads. They hold a reference to it only while they work, so that an engine which is dropped ends
//! them.

use super::checkpoints::Urgency;
use super::Care;
use crate::engine::shared::{Engine, Shared};
use crate::sync::Mutex;
use crate::{Error, Result, Time};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a commit that does not wait for the log may be lost.
const LOG_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// How often old snapshots are looked at when nothing asks for it.
const HISTORY_INTERVAL: Duration = Duration::from_secs(1);

/// How often large values that are alike are looked at when no checkpoint asks for it.
const ALIKE_INTERVAL: Duration = Duration::from_secs(5);

/// Starts `teak-checkpoint`, `teak-log-sync`, `teak-history`, `teak-alike`, `teak-block-*` and `teak-ahead-*`.
pub(in crate::engine) fn start(shared: &Arc<Shared>) -> Result<()> {
    let (progress, syncs) = (shared.care.progress.clone(), shared.care.progress.clone());
    let bell = shared.context.past.bell().clone();
    let alike = shared.care.alike.bell.clone();
    let mut threads = vec![
        spawn("teak-checkpoint", shared, checkpoints, move || progress.wait_for_work())?,
        spawn("teak-log-sync", shared, sync_log, move || syncs.pause(LOG_SYNC_INTERVAL))?,
        spawn("teak-history", shared, Shared::look_after_history, move || {
            bell.wait_for_work(HISTORY_INTERVAL)
        })?,
        spawn("teak-alike", shared, Shared::look_for_alike_values, move || {
            alike.wait_for_work(ALIKE_INTERVAL)
        })?,
    ];
    for number in 0..block_writers() {
        let blocks = shared.context.blocks.clone();
        threads.push(spawn_worker(format!("teak-block-{number}"), move || blocks.work())?);
    }
    shared.context.ahead.serve();
    for number in 0..readers_ahead() {
        let ahead = shared.context.ahead.clone();
        threads.push(spawn_worker(format!("teak-ahead-{number}"), move || ahead.work())?);
    }
    shared.care.threads.lock().extend(threads);
    Ok(())
}

impl Care {
    /// When they have been stopped: waits for their ends. `false`: one has panicked.
    pub(in crate::engine) fn await_threads(&self) -> bool {
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.into_iter().map(JoinHandle::join).filter(Result::is_err).count() == 0
    }
}

impl Shared {
    /// Has the threads end.
    pub(in crate::engine) fn stop_threads(&self) {
        self.care.progress.stop();
        self.context.past.bell().stop();
        self.care.alike.bell.stop();
        self.context.blocks.stop();
        self.context.ahead.stop();
    }
}

/// When an engine without threads had its last rounds.
pub(in crate::engine) struct Rounds(Mutex<Round>);

struct Round {
    log: Instant,
    history: Instant,
}

impl Rounds {
    pub(in crate::engine) fn new(time: &Time) -> Rounds {
        Rounds(Mutex::new(Round { log: time.now(), history: time.now() }))
    }
}

impl Engine {
    /// For an engine without threads ([`Options::background`](crate::Options::background)): does what they would have
    /// done by now ([`Options::time`](crate::Options::time)). A simulation calls it when time has passed. Of what fails
    /// the observer is told, as by threads.
    pub fn do_what_is_due(&self) {
        let shared = &*self.shared;
        debug_assert!(!shared.background, "threads do it already");
        let now = shared.time.now();
        let is_due = |last: &mut Instant, interval: Duration| {
            let is_due = now.saturating_duration_since(*last) >= interval;
            *last = if is_due { now } else { *last };
            is_due
        };
        let (log, history) = {
            let mut round = shared.care.rounds.0.lock();
            (is_due(&mut round.log, LOG_SYNC_INTERVAL), is_due(&mut round.history, HISTORY_INTERVAL))
        };
        if log {
            sync_log(shared);
        }
        if history {
            shared.look_after_history();
            shared.look_for_alike_values();
        }
        checkpoints(shared);
    }
}

/// A thread that does `run` each time `wait` returns, until that says that the engine goes.
fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    run: fn(&Shared),
    wait: impl Fn() -> bool + Send + 'static,
) -> Result<JoinHandle<()>> {
    let weak = Arc::downgrade(shared);
    let body = move || loop {
        let goes_on = wait();
        let Some(shared) = weak.upgrade().filter(|_| goes_on) else { break };
        if catch_unwind(AssertUnwindSafe(|| run(&shared))).is_err() {
            // A bug. Nobody must wait for this thread, and nothing be built on what it left.
            shared.fail("a background thread has panicked");
            break;
        }
    };
    let thread = crate::threads::spawn(name.to_string(), body);
    thread.map_err(|_| Error::OutOfMemory("no thread for background work"))
}

/// A thread that works until it is told to end, also if some of the work panics.
fn spawn_worker(name: String, work: impl Fn() + Send + 'static) -> Result<JoinHandle<()>> {
    let body = move || while catch_unwind(AssertUnwindSafe(&work)).is_err() {};
    let thread = crate::threads::spawn(name, body);
    thread.map_err(|_| Error::OutOfMemory("no thread for background work"))
}

/// Threads that read ahead: also where there are few processors some, since they wait for the disk.
fn readers_ahead() -> usize {
    std::thread::available_parallelism().map_or(4, |n| n.get()).clamp(4, 32)
}

/// Threads that write blocks of loads. Those who load write, too, when they have to wait.
fn block_writers() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().div_ceil(4)).min(8)
}

fn checkpoints(shared: &Shared) {
    if shared.care.progress.pauses.any() {
        // The end of the pause asks again.
        return;
    }
    if shared.checkpoint_is_due() || shared.conversion_goes_on() || shared.reserve.is_spent() {
        // The observer has been told, and writers that wait get the error.
        let _ = shared.checkpoint(false, Urgency::Background);
    }
    if shared.conversion_goes_on() {
        shared.care.progress.ask();
    }
    shared.write_finished();
}

fn sync_log(shared: &Shared) {
    shared.regain_space();
    let end = shared.log.end();
    let done = match shared.log.synced() < end {
        true => shared.log.sync_up_to(end),
        false => shared.log.seal(),
    };
    if let Err(error) = done {
        shared.log_failed(&error);
    }
}
