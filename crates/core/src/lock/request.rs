//! How somebody waits for a lock, and who is told of it.

use super::graph::{Deadlock, Sought};
use crate::TxnId;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// What to do when a lock is held by another transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Wait in the queue.
    Wait,
    /// [`crate::Error::WouldBlock`] at once (NOWAIT and SKIP LOCKED).
    NoWait,
}

/// How to wait for a lock.
#[derive(Clone, Copy)]
pub struct WaitRequest<'a> {
    /// Wait or not.
    pub policy: WaitPolicy,
    /// Longest wait; then [`crate::Error::LockTimeout`].
    pub timeout: Duration,
    /// Asked when the wait is woken by `interrupt` and about once a second; `true` ends the wait with
    /// [`crate::Error::Interrupted`].
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Called once, before the first sleep. Whether `waits_for` is to be called: naming all who are ahead costs as much
    /// as the queue is long.
    pub before_wait: &'a (dyn Fn() -> bool + Sync),
    /// Called before the first sleep with the ids of the transactions waited for, those ahead in the queue included;
    /// again later with those that came to go first.
    pub waits_for: &'a (dyn Fn(&[TxnId]) + Sync),
    /// Who is told of waits that others get to see.
    pub watcher: Option<&'a (dyn WaitWatcher + 'a)>,
}

/// What the waiter's side says of a long wait, for people to see; none of Teak's business.
pub type WaitNote = Arc<dyn Any + Send + Sync>;

/// Told of waits that last for a while, and of what comes of them: by the thread that waits, which has no latch.
pub trait WaitWatcher: Sync {
    /// The wait has lasted for a while: others get to see it from now on. What this returns is in
    /// [`crate::server::Deadlock`], if it becomes a part of one.
    fn settles(&self) -> Option<WaitNote>;

    /// It goes on, for a second or so by now.
    fn lasts(&self, sought: &Sought);

    /// This wait has closed a circle, which was opened again.
    fn deadlock(&self, deadlock: &Deadlock);
}

impl WaitRequest<'static> {
    /// Waits up to `timeout`, not interruptible.
    pub fn waiting(timeout: Duration) -> WaitRequest<'static> {
        WaitRequest {
            policy: WaitPolicy::Wait,
            timeout,
            interrupted: &|| false,
            before_wait: &|| false,
            waits_for: &|_| (),
            watcher: None,
        }
    }

    /// Does not wait.
    pub fn no_wait() -> WaitRequest<'static> {
        WaitRequest { policy: WaitPolicy::NoWait, ..WaitRequest::waiting(Duration::ZERO) }
    }
}
