//! Row and key-range locks of transactions.
//!
//! Knows trees and keys only as numbers and bytes; a row is the 128-bit hash of its tree and key, so that a lock costs
//! the same whatever the key's length (two rows that collide would share a lock, which costs waiting, never
//! correctness).
//!
//! ```text
//! LockOwner ──> RowTable    256 shards: id -> the only holder      (nobody waits: 24 bytes a lock)
//!    │                                  id -> holders and FIFO queue (shared by several, or waited for)
//!    ├────────> CoverTable  tree -> rows of consecutive keys locked by owners of many; an atomic count answers "none"
//!    ├────────> Presence    tree -> how many owners have been there: who is alone may lock many keys at once
//!    ├────────> RangeTable  tree -> ranges granted (interval trees), requests waiting; an atomic count answers "none"
//!    └────────> WaitGraph   only those who wait: who, for what
//! ```
//!
//! Invariants:
//! - Grants are made by whoever releases or gives up, under the shard's latch, in the order of the queue: a request
//!   never overtakes a waiting one, except that an upgrade (shared to exclusive) goes before all that are not upgrades.
//! - A wait ends exactly once: granted, chosen as victim, or given up by the waiter; [`party::Party`] decides which.
//! - Latches are taken in the order graph, covers, shard, party; never back, and none is held while a callback runs.
//! - The uncontended path takes one shard latch and nothing global.
//! - All memory of locks is charged to the cache ([`account`]). Owners of many locks make fewer of them if it is too
//!   much.
//!
//! **Inserts and ranges.** A locking range scan publishes its range, then looks at the rows. An insert asks
//! [`LockOwner::check_insert`] before its write; a range published between that answer and the write could miss the
//! row, so the inserter asks once more after the write: both sides pass a full fence between publishing and looking, so
//! at least one of them sees the other.

mod account;
mod cover;
mod gather;
mod granted;
mod graph;
mod held;
mod intent;
mod interval;
mod owner;
mod party;
mod presence;
mod range;
mod request;
mod row;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::cache::Cache;
use crate::counts::Timed;
use crate::numbers::NumberMap;
use crate::sync::Mutex;
use crate::{Error, Time, TreeId, TxnId};
use account::Account;
use cover::CoverTable;
use graph::WaitGraph;
pub use graph::{Deadlock, Entangled, Reason, Sought, Wait};
pub use held::{HeldLock, LockKind};
pub use intent::{Intent, Intention, Intents};
pub use interval::KeyBound;
pub use owner::{LockOwner, SINGLE_LOCK_BYTES};
use party::Party;
use presence::Presence;
use range::RangeTable;
pub use request::{WaitNote, WaitPolicy, WaitRequest, WaitWatcher};
use row::{RowId, RowTable};

/// What asking for a lock did; and what giving it back undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// The lock is new to the owner.
    New,
    /// A shared lock became exclusive.
    Upgraded,
    /// The owner had it already.
    Held,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockCounters {
    /// Requests that had to wait.
    pub waits: u64,
    /// Waits that ended with a time-out.
    pub timeouts: u64,
    /// Waits that ended because the waiter was the victim of a deadlock.
    pub deadlocks: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// Nanoseconds spent waiting.
    pub wait_nanoseconds: u64,
    /// Of them in the longest wait.
    pub longest_wait_nanoseconds: u64,
}

/// What a transaction waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A row.
    Row(RowId),
    /// Other owners' ranges of a tree.
    Ranges(TreeId),
}

/// Someone who must go first, and through whose place in the queue that is so, if not directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Blocker {
    txn: TxnId,
    via: Option<TxnId>,
}

#[derive(Default)]
struct Counters {
    waits: AtomicU64,
    timeouts: AtomicU64,
    deadlocks: AtomicU64,
    wait_nanoseconds: AtomicU64,
    longest_wait_nanoseconds: AtomicU64,
    /// How many waits were for locks of which tree, and for how many nanoseconds; of those that were ever waited for.
    of_trees: Mutex<NumberMap<TreeId, (u64, u64)>>,
}

impl Counters {
    /// A wait for a lock of the tree has ended.
    fn add_wait(&self, tree: TreeId, waited: Duration, error: Option<&Error>) {
        let nanoseconds = waited.as_nanos() as u64;
        Timed::LockWait.add(waited);
        // Relaxed, here and below: statistics.
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.wait_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.longest_wait_nanoseconds.fetch_max(nanoseconds, Ordering::Relaxed);
        match error {
            Some(Error::LockTimeout) => self.timeouts.fetch_add(1, Ordering::Relaxed),
            Some(Error::Deadlock) => self.deadlocks.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let mut of_trees = self.of_trees.lock();
        let (waits, all) = of_trees.entry(tree).or_default();
        (*waits, *all) = (*waits + 1, *all + nanoseconds);
    }
}

struct LockTables {
    time: Time,
    account: Arc<Account>,
    rows: RowTable,
    covers: CoverTable,
    presence: Presence,
    ranges: RangeTable,
    graph: WaitGraph,
    counters: Counters,
}

impl LockTables {
    /// Who must go before `txn`, which waits for `target`. Requests that wait ahead of it in a row's queue are left out
    /// unless they are `sought`: they wait for the same row, so its holders say the same.
    fn blockers(&self, target: Target, txn: TxnId, sought: Option<TxnId>) -> Vec<Blocker> {
        match target {
            Target::Row(id) => self.rows.blockers(id, txn, sought),
            Target::Ranges(tree) => self.ranges.blockers(tree, txn),
        }
    }

    /// All that `txn`, which waits for `target`, has to let go first, those included that wait themselves.
    fn ahead_of(&self, target: Target, txn: TxnId) -> Vec<TxnId> {
        match target {
            Target::Row(id) => self.rows.ahead_of(id, txn),
            Target::Ranges(tree) => self.ranges.blockers(tree, txn).iter().map(|b| b.txn).collect(),
        }
    }

    /// Takes a request back; `true` if it had been granted before that.
    fn give_up(&self, target: Target, party: &Party) -> bool {
        match target {
            Target::Row(id) => self.rows.give_up(id, party),
            Target::Ranges(tree) => self.ranges.give_up(tree, party),
        }
    }
}

/// All locks of an engine; cheap to clone.
#[derive(Clone)]
pub struct LockManager {
    shared: Arc<LockTables>,
}

impl Default for LockManager {
    fn default() -> LockManager {
        LockManager::new(None)
    }
}

impl LockManager {
    /// No locks. Their memory is charged to `cache`.
    pub(crate) fn new(cache: Option<Arc<Cache>>) -> LockManager {
        LockManager::with_time(cache, Time::REAL)
    }

    /// The same; waits for locks go by `time`.
    pub(crate) fn with_time(cache: Option<Arc<Cache>>, time: Time) -> LockManager {
        let account = Arc::new(Account::new(cache));
        LockManager {
            shared: Arc::new(LockTables {
                time,
                rows: RowTable::new(account.clone()),
                covers: CoverTable::new(account.clone()),
                presence: Presence::new(),
                ranges: RangeTable::new(account.clone()),
                account,
                graph: WaitGraph::new(),
                counters: Counters::default(),
            }),
        }
    }

    /// Memory of all locks, in bytes.
    pub fn memory(&self) -> u64 {
        self.shared.account.bytes()
    }

    /// Beyond so many bytes, owners of many locks lock everything between the least and the greatest key that they have
    /// locked instead. 0: a quarter of the cache.
    pub fn set_memory_limit(&self, bytes: u64) {
        self.shared.account.set_limit(bytes);
    }

    /// Opens an owner. The victim of a deadlock is the waiter in it with the highest `victim_preference`, among those
    /// the one with the smallest weight ([`LockOwner::set_weight`]), among those the one that began to wait last.
    pub fn open(&self, txn: TxnId, victim_preference: i32) -> LockOwner {
        LockOwner::new(self.shared.clone(), Arc::new(Party::new(txn, victim_preference)))
    }

    /// Wakes `txn` if it waits, so that it asks its request's `interrupted`.
    pub fn interrupt(&self, txn: TxnId) {
        self.shared.graph.interrupt(txn);
    }

    /// Who waits for whom.
    pub fn waits(&self) -> Vec<Wait> {
        self.shared.graph.waits(&self.shared)
    }

    /// How many waits there were for locks of the tree, and how long they were together.
    pub fn waits_for(&self, tree: TreeId) -> (u64, Duration) {
        let (waits, nanoseconds) =
            self.shared.counters.of_trees.lock().get(&tree).copied().unwrap_or_default();
        (waits, Duration::from_nanos(nanoseconds))
    }

    /// Counts since the start.
    pub fn counters(&self) -> LockCounters {
        // Relaxed: statistics, nothing is concluded from them.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.shared.counters;
        LockCounters {
            waits: read(&counters.waits),
            timeouts: read(&counters.timeouts),
            deadlocks: read(&counters.deadlocks),
            waiting: self.shared.graph.len() as u64,
            wait_nanoseconds: read(&counters.wait_nanoseconds),
            longest_wait_nanoseconds: read(&counters.longest_wait_nanoseconds),
        }
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod stress_tests;
#[cfg(test)]
mod tests;
