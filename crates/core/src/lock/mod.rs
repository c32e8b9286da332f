//! Row and key-range locks of transactions.
//!
//! A first, plain implementation: one table under one mutex. It keeps the interface and its meaning.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::{Error, LockMode, Result, TreeId, TxnId, WaitPolicy, WaitRequest};

/// What [`LockOwner::lock`] did.
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
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Nanoseconds spent waiting.
    pub wait_nanoseconds: u64,
}

type Holders = Vec<(TxnId, LockMode)>;
type OwnedRange = (TreeId, Bound<Vec<u8>>, Bound<Vec<u8>>, LockMode, TxnId);

#[derive(Default)]
struct Table {
    rows: HashMap<(TreeId, Vec<u8>), Holders>,
    ranges: Vec<OwnedRange>,
    waits: HashMap<TxnId, Vec<TxnId>>,
    interrupts: u64,
    counters: LockCounters,
}

/// All locks of an engine; cheap to clone.
#[derive(Clone, Default)]
pub struct LockManager {
    shared: Arc<(Mutex<Table>, Condvar)>,
}

/// The locks of one transaction; dropping it releases them.
pub struct LockOwner {
    manager: LockManager,
    txn: TxnId,
    rows: Vec<(TreeId, Vec<u8>)>,
    ranges: usize,
}

impl LockManager {
    /// No locks.
    pub fn new() -> LockManager {
        LockManager::default()
    }

    /// Opens an owner. `weight` is read when a victim is chosen: the lightest of the highest `victim_preference`.
    pub fn open(&self, txn: TxnId, _weight: Arc<AtomicU64>, _victim_preference: i32) -> LockOwner {
        LockOwner { manager: self.clone(), txn, rows: Vec::new(), ranges: 0 }
    }

    /// Wakes `txn` if it waits, so that it asks its request's `interrupted`.
    pub fn interrupt(&self, _txn: TxnId) {
        self.shared.0.lock().interrupts += 1;
        self.shared.1.notify_all();
    }

    /// Who waits for whom.
    pub fn waits(&self) -> Vec<(TxnId, TxnId)> {
        let table = self.shared.0.lock();
        table.waits.iter().flat_map(|(a, all)| all.iter().map(|b| (*a, *b))).collect()
    }

    /// Counts since the start.
    pub fn counters(&self) -> LockCounters {
        self.shared.0.lock().counters
    }
}

fn owned(bound: Bound<&[u8]>) -> Bound<Vec<u8>> {
    match bound {
        Bound::Included(k) => Bound::Included(k.to_vec()),
        Bound::Excluded(k) => Bound::Excluded(k.to_vec()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

fn covers(range: &OwnedRange, key: &[u8]) -> bool {
    (match &range.1 {
        Bound::Included(k) => key >= k.as_slice(),
        Bound::Excluded(k) => key > k.as_slice(),
        Bound::Unbounded => true,
    }) && (match &range.2 {
        Bound::Included(k) => key <= k.as_slice(),
        Bound::Excluded(k) => key < k.as_slice(),
        Bound::Unbounded => true,
    })
}

impl LockOwner {
    /// Retries `attempt` (`Err` names who is in the way) until it succeeds or the request says otherwise.
    fn wait_for<T>(
        &self,
        wait: &WaitRequest<'_>,
        mut attempt: impl FnMut(&mut Table) -> Result<T, Vec<TxnId>>,
    ) -> Result<T> {
        let start = Instant::now();
        let (mutex, condvar) = &*self.manager.shared;
        let mut table = mutex.lock();
        let mut first = true;
        loop {
            let blockers = match attempt(&mut table) {
                Ok(done) => {
                    table.waits.remove(&self.txn);
                    return Ok(done);
                }
                Err(blockers) => blockers,
            };
            let left = wait.timeout.saturating_sub(start.elapsed());
            let mut failure = None;
            if wait.policy == WaitPolicy::NoWait {
                failure = Some(Error::WouldBlock);
            } else if self.reaches_self(&table, &blockers) {
                table.counters.deadlocks += 1;
                failure = Some(Error::Deadlock);
            } else if left.is_zero() {
                table.counters.timeouts += 1;
                failure = Some(Error::LockTimeout);
            } else if !first && (wait.interrupted)() {
                failure = Some(Error::Interrupted);
            }
            if let Some(failure) = failure {
                table.waits.remove(&self.txn);
                return Err(failure);
            }
            if first {
                table.counters.waits += 1;
                (wait.before_wait)(&blockers);
                first = false;
            }
            table.waits.insert(self.txn, blockers);
            condvar.wait_for(&mut table, left.min(Duration::from_secs(1)));
        }
    }

    fn reaches_self(&self, table: &Table, blockers: &[TxnId]) -> bool {
        let mut seen = blockers.to_vec();
        let mut next = 0;
        while next < seen.len() {
            if seen[next] == self.txn {
                return true;
            }
            for other in table.waits.get(&seen[next]).into_iter().flatten() {
                if !seen.contains(other) {
                    seen.push(*other);
                }
            }
            next += 1;
        }
        false
    }

    /// Locks a row.
    pub fn lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<LockOutcome> {
        let txn = self.txn;
        let outcome = self.wait_for(wait, |table| {
            let held = table.rows.entry((tree, key.to_vec())).or_default();
            let mine = held.iter().position(|(owner, _)| *owner == txn);
            if let Some(i) = mine {
                if held[i].1 >= mode {
                    return Ok(LockOutcome::Held);
                }
            }
            let mut blockers: Vec<TxnId> = held
                .iter()
                .filter(|(owner, m)| {
                    *owner != txn && (mode == LockMode::Exclusive || *m == LockMode::Exclusive)
                })
                .map(|(owner, _)| *owner)
                .collect();
            if mode == LockMode::Exclusive {
                blockers.extend(
                    table.ranges.iter().filter(|r| r.0 == tree && r.4 != txn && covers(r, key)).map(|r| r.4),
                );
            }
            if !blockers.is_empty() {
                return Err(blockers);
            }
            Ok(match mine {
                Some(i) => {
                    held[i].1 = mode;
                    LockOutcome::Upgraded
                }
                None => {
                    held.push((txn, mode));
                    LockOutcome::New
                }
            })
        })?;
        if outcome == LockOutcome::New {
            self.rows.push((tree, key.to_vec()));
        }
        Ok(outcome)
    }

    /// Locks a range of keys against inserts and exclusive row locks of others.
    pub fn lock_range(
        &mut self,
        tree: TreeId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<()> {
        let txn = self.txn;
        self.wait_for(wait, |table| {
            let blockers: Vec<TxnId> = table
                .ranges
                .iter()
                .filter(|r| r.0 == tree && r.4 != txn && mode.max(r.3) == LockMode::Exclusive)
                .map(|r| r.4)
                .collect();
            if !blockers.is_empty() {
                return Err(blockers);
            }
            table.ranges.push((tree, owned(from), owned(to), mode, txn));
            Ok(())
        })?;
        self.ranges += 1;
        Ok(())
    }

    /// Waits while another owner's range covers `key`.
    pub fn check_insert(&mut self, tree: TreeId, key: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        let txn = self.txn;
        self.wait_for(wait, |table| {
            let blockers: Vec<TxnId> = table
                .ranges
                .iter()
                .filter(|r| r.0 == tree && r.4 != txn && covers(r, key))
                .map(|r| r.4)
                .collect();
            if blockers.is_empty() {
                Ok(())
            } else {
                Err(blockers)
            }
        })
    }

    /// Gives back one row lock.
    pub fn unlock(&mut self, tree: TreeId, key: &[u8]) {
        if let Some(i) = self.rows.iter().rposition(|(t, k)| *t == tree && k == key) {
            let row = self.rows.swap_remove(i);
            self.release_rows(std::iter::once(row));
        }
    }

    fn release_rows(&self, rows: impl Iterator<Item = (TreeId, Vec<u8>)>) {
        let mut table = self.manager.shared.0.lock();
        for row in rows {
            if let Some(held) = table.rows.get_mut(&row) {
                held.retain(|(owner, _)| *owner != self.txn);
                if held.is_empty() {
                    table.rows.remove(&row);
                }
            }
        }
        if self.ranges > 0 {
            table.ranges.retain(|r| r.4 != self.txn);
        }
        self.manager.shared.1.notify_all();
    }

    /// Gives back everything.
    pub fn release_all(&mut self) {
        if !self.rows.is_empty() || self.ranges > 0 {
            let rows = std::mem::take(&mut self.rows);
            self.release_rows(rows.into_iter());
            self.ranges = 0;
        }
    }

    /// Row locks held.
    pub fn held(&self) -> usize {
        self.rows.len()
    }

    /// Whether range locks are held.
    pub fn has_ranges(&self) -> bool {
        self.ranges > 0
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        self.release_all();
    }
}
