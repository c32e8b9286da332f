//! Long work that whoever began it is told of and may end: by itself, or on one of several threads.

use crate::Result;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;

/// How often a thread looks whether it is to go on.
const STEPS_BETWEEN_LOOKS: u64 = if cfg!(test) { 10 } else { 1024 };

/// Told how much was looked at so far; its error ends the work.
pub type Watcher<'a> = &'a mut dyn FnMut(u64) -> Result<()>;

/// Shared by the threads.
pub(in crate::engine) struct Watch<'a> {
    done: AtomicU64,
    /// A thread has failed.
    stopped: AtomicBool,
    caller: ThreadId,
    report: &'a (dyn Fn(u64) -> Result<()> + Sync),
}

impl<'a> Watch<'a> {
    /// To be made on the thread on which `report` is told, now and then, how many steps are done; its error ends the
    /// work.
    pub fn new(report: &'a (dyn Fn(u64) -> Result<()> + Sync)) -> Watch<'a> {
        let (done, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        Watch { done, stopped, caller: std::thread::current().id(), report }
    }

    /// After each step of a thread, of which it was the `step`-th: whether to go on.
    #[inline]
    pub fn goes_on(&self, step: u64) -> Result<bool> {
        debug_assert!(step > 0, "a look before the first step");
        match step % STEPS_BETWEEN_LOOKS {
            0 => self.look(),
            _ => Ok(true),
        }
    }

    fn look(&self) -> Result<bool> {
        // Relaxed: a count for reports, and a hint.
        let done = self.done.fetch_add(STEPS_BETWEEN_LOOKS, Ordering::Relaxed) + STEPS_BETWEEN_LOOKS;
        if std::thread::current().id() == self.caller {
            (self.report)(done)?;
        }
        Ok(!self.stopped.load(Ordering::Relaxed)) // Relaxed: as above
    }

    /// Has the other threads end if this one has failed.
    pub fn outcome(&self, outcome: Result<()>) -> Result<()> {
        outcome.inspect_err(|_| self.stopped.store(true, Ordering::Relaxed)) // Relaxed: a hint
    }
}
