//! Small types of the public interface that every module shares.

use crate::lock::{Deadlock, Sought};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Commit timestamp: a number that grows with each commit. 0 is before every commit.
pub type Timestamp = u64;
/// Identifies a tree for ever; never reused.
pub type TreeId = u64;
/// Identifies a transaction; never reused, also not after a restart.
pub type TxnId = u64;

/// Isolation levels, with their SQL meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A snapshot per statement.
    ReadCommitted,
    /// A snapshot per transaction; a write to a row committed after it is [`crate::Error::SnapshotConflict`].
    Repeatable,
    /// A snapshot per transaction, writes read the newest committed version instead of failing.
    RepeatableLenient,
    /// Every read locks; a write to a row committed after a snapshot that was taken all the same is a conflict.
    Serializable,
    /// Every read locks; nothing is a conflict.
    SerializableLenient,
}

impl Isolation {
    /// Whether every read locks.
    pub fn is_serializable(self) -> bool {
        matches!(self, Isolation::Serializable | Isolation::SerializableLenient)
    }

    /// First committer wins: whether a write to a row that was committed after the snapshot is a conflict.
    pub fn is_strict(self) -> bool {
        matches!(self, Isolation::Repeatable | Isolation::Serializable)
    }

    /// Whether a transaction keeps one snapshot and may write over what was committed after it.
    pub fn is_lenient(self) -> bool {
        matches!(self, Isolation::RepeatableLenient | Isolation::SerializableLenient)
    }
}

/// Which version of a key a read returns. A transaction always sees its own writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As of the transaction's snapshot (taken now if there is none).
    Snapshot,
    /// The newest committed version; what locking reads and unique checks use.
    Latest,
    /// As `Latest`, but a key whose newest version is another transaction's uncommitted put counts as present, with
    /// that value. Locking scans find their candidates with it (then lock, then `refresh` with `Latest`): otherwise a
    /// row inserted but not yet committed would be passed over instead of waited for.
    Pending,
}

/// Where a cursor is to be placed relative to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// First key >= the given one; then move with `next`.
    AtOrAfter,
    /// First key > the given one.
    After,
    /// Last key <= the given one; then move with `prev`.
    AtOrBefore,
    /// Last key < the given one.
    Before,
}

/// One change to one key. Insert and update store the same; the distinction keeps the row count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOp<'a> {
    /// The key is new to this transaction's view.
    Insert(&'a [u8]),
    /// The key exists.
    Update(&'a [u8]),
    /// The key exists and goes.
    Delete,
}

/// Strength of a row or range lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Compatible with other shared locks.
    Shared,
    /// Compatible with nothing.
    Exclusive,
}

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
