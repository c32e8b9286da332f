//! The evictor thread: sleeps until it is woken, works until there is room, sleeps again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};

use crate::{Error, Result};

/// How long the thread rests after work that did not make room, whoever wakes it.
const REST: Duration = Duration::from_millis(100);

/// What a slice of the thread's work came to.
pub(super) enum Progress {
    /// There is room; sleep until woken.
    Done,
    /// Something was freed, more is due.
    More,
    /// Nothing could be freed: no use to try again at once.
    Nothing,
}

#[derive(Default)]
struct Signals {
    wanted: bool,
    stop: bool,
}

#[derive(Default)]
struct Bell {
    signals: Mutex<Signals>,
    /// Rung for the thread.
    work: Condvar,
    /// Rung by the thread when it has worked.
    done: Condvar,
    /// Whether ringing is of use: false while the thread has been woken, and without a thread.
    asleep: AtomicBool,
}

#[derive(Default)]
pub(super) struct Evictor {
    bell: Arc<Bell>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Evictor {
    pub fn new() -> Evictor {
        Evictor::default()
    }

    /// Runs `work`, in slices between which the thread can be stopped, whenever it is woken.
    pub fn start(&self, work: impl Fn() -> Progress + Send + 'static) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return Ok(());
        }
        *self.bell.signals.lock() = Signals::default();
        let bell = self.bell.clone();
        let spawned = crate::threads::spawn("teak-evict".into(), move || bell.answer(work));
        *thread = Some(spawned.map_err(|cause| Error::io("start a thread for", "teak-evict", &cause))?);
        Ok(())
    }

    pub fn stop(&self) {
        self.bell.signals.lock().stop = true;
        self.bell.work.notify_all();
        let Some(thread) = self.thread.lock().take() else { return };
        // The thread itself may drop the last owner of the cache, through an entry it held; it then ends by the flag.
        if thread.thread().id() != std::thread::current().id() {
            // The thread has no result; if it panicked, the panic was reported when it happened.
            let _ = thread.join();
        }
    }

    /// Costs a load when the thread is at work, or there is none.
    #[inline]
    pub fn wake(&self) {
        // Relaxed: a hint; the signal itself is under the latch. A wake that comes while the thread works is not
        // needed, and one that is missed while it falls asleep is made up for by the next caller's.
        if self.bell.asleep.load(Ordering::Relaxed) && self.bell.asleep.swap(false, Ordering::Relaxed) {
            self.bell.signals.lock().wanted = true;
            self.bell.work.notify_one();
        }
    }

    /// Waits until the thread has done some work, at most for `limit`; not at all without a thread.
    pub fn pause(&self, limit: Duration) {
        if self.thread.lock().is_none() {
            return;
        }
        let mut signals = self.bell.signals.lock();
        if !signals.stop {
            self.bell.done.wait_for(&mut signals, limit);
        }
    }
}

impl Bell {
    fn answer(&self, work: impl Fn() -> Progress) {
        let mut signals = self.signals.lock();
        while !signals.stop {
            if !signals.wanted {
                // Relaxed: see `wake`.
                self.asleep.store(true, Ordering::Relaxed);
                self.work.wait(&mut signals);
                continue;
            }
            drop(signals);
            let progress = work();
            signals = self.signals.lock();
            self.done.notify_all();
            signals.wanted = matches!(progress, Progress::More);
            if matches!(progress, Progress::Nothing) && !signals.stop {
                self.work.wait_for(&mut signals, REST);
            }
        }
        // Relaxed: a hint, see `wake`; nobody answers any more.
        self.asleep.store(false, Ordering::Relaxed);
    }
}
