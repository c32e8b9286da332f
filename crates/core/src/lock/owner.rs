//! One transaction's locks: asking for them, waiting, giving them back.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::interval::Span;
use super::party::{Party, Woken};
use super::range::Want;
use super::row::{Attempt, IfBlocked, RowId};
use super::{LockOutcome, Shared, Target};
use crate::{Error, LockMode, Result, TreeId, TxnId, WaitPolicy, WaitRequest};

/// A waiter looks around this often: it asks whether it was interrupted and searches for deadlocks once more.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// How far back [`LockOwner::unlock`] looks for its entry; one that is further back stays as a harmless leftover.
const UNLOCK_WINDOW: usize = 64;

/// The locks of one transaction; dropping it releases them.
pub struct LockOwner {
    shared: Arc<Shared>,
    party: Arc<Party>,
    /// Rows locked; may hold rows that were unlocked again.
    rows: Vec<RowId>,
    held: usize,
    /// Trees with range locks.
    ranges: HashSet<TreeId>,
}

fn if_blocked(wait: &WaitRequest<'_>) -> IfBlocked {
    match wait.policy {
        WaitPolicy::Wait => IfBlocked::Enqueue,
        WaitPolicy::NoWait => IfBlocked::Refuse,
    }
}

impl LockOwner {
    pub(super) fn new(shared: Arc<Shared>, party: Arc<Party>) -> LockOwner {
        LockOwner { shared, party, rows: Vec::new(), held: 0, ranges: HashSet::new() }
    }

    /// The transaction.
    pub fn txn(&self) -> TxnId {
        self.party.txn()
    }

    /// Makes it a likelier (positive) or less likely victim of deadlocks than others.
    pub fn set_victim_preference(&self, preference: i32) {
        self.party.set_preference(preference);
    }

    /// Locks a row. Others' ranges are not looked at: they keep out inserts, and whoever inserts asks
    /// [`LockOwner::check_insert`] first. (If they kept out locks of rows that exist, two who hold the range of a row and
    /// wait for it would wait for each other, and for its holder's ranges instead of its lock.)
    ///
    /// Errors: [`Error::WouldBlock`], [`Error::LockTimeout`], [`Error::Deadlock`] (the transaction must be rolled back),
    /// [`Error::Interrupted`]. What was held before is still held after an error.
    pub fn lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<LockOutcome> {
        let id = RowId::new(tree, key);
        let outcome = match self.shared.rows.lock(id, &self.party, mode, if_blocked(wait)) {
            Attempt::Done(outcome) => outcome,
            Attempt::Blocked(_) if wait.policy == WaitPolicy::NoWait => return Err(Error::WouldBlock),
            Attempt::Blocked(outcome) => {
                self.wait(Target::Row(id), wait)?;
                outcome
            }
        };
        if outcome == LockOutcome::New {
            self.rows.push(id);
            self.held += 1;
        }
        Ok(outcome)
    }

    /// Locks a range of keys against inserts of others, and against others' ranges if one of the two is exclusive. Row locks that exist are not looked at: the scan that follows takes its own.
    pub fn lock_range(
        &mut self,
        tree: TreeId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<()> {
        self.pass(tree, Want::Range(Span::new(from, to), mode), wait)?;
        self.shared.ranges.published();
        self.ranges.insert(tree);
        Ok(())
    }

    /// Waits while another owner's range covers `key`. One load when nobody holds a range of the tree. To be asked before an
    /// insert is written, and once more after (see the module's head).
    pub fn check_insert(&mut self, tree: TreeId, key: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        if self.shared.ranges.none(tree) {
            return Ok(());
        }
        self.pass(tree, Want::key(key), wait)
    }

    /// [`LockOwner::check_insert`] for keys from `first` to `last`.
    pub fn check_inserts(
        &mut self,
        tree: TreeId,
        first: &[u8],
        last: &[u8],
        wait: &WaitRequest<'_>,
    ) -> Result<()> {
        if self.shared.ranges.none(tree) {
            return Ok(());
        }
        self.pass(tree, Want::keys(first, last), wait)
    }

    fn pass(&mut self, tree: TreeId, want: Want, wait: &WaitRequest<'_>) -> Result<()> {
        if self.shared.ranges.request(tree, &self.party, want, if_blocked(wait)) {
            return Ok(());
        }
        if wait.policy == WaitPolicy::NoWait {
            return Err(Error::WouldBlock);
        }
        self.wait(Target::Ranges(tree), wait)
    }

    /// Waits for a request that is queued; afterwards it is granted or taken back.
    fn wait(&mut self, target: Target, wait: &WaitRequest<'_>) -> Result<()> {
        let shared = &*self.shared;
        let start = Instant::now();
        let ended = self.sleep(target, wait, start);
        shared.graph.leave(self.txn());
        // A grant that came meanwhile is kept: the lock is held, whatever else happened.
        let result = match ended {
            Err(_) if shared.give_up(target, &self.party) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                self.party.end();
                Ok(())
            }
        };
        // Relaxed: statistics.
        let counters = &shared.counters;
        counters.waits.fetch_add(1, Ordering::Relaxed);
        counters.wait_nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        match &result {
            Err(Error::LockTimeout) => counters.timeouts.fetch_add(1, Ordering::Relaxed),
            Err(Error::Deadlock) => counters.deadlocks.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        result
    }

    fn sleep(&self, target: Target, wait: &WaitRequest<'_>, start: Instant) -> Result<()> {
        let shared = &*self.shared;
        let txn = self.txn();
        shared.graph.enter(shared, &self.party, target)?;
        let mut told = Vec::new();
        self.tell(target, wait, &mut told);
        // A time-out too far away to be represented is none.
        let deadline = start.checked_add(wait.timeout);
        // Asked after entering the graph: an interrupt before that finds nobody to wake, but has set its mark.
        let mut ask = true;
        loop {
            if ask && (wait.interrupted)() {
                return Err(Error::Interrupted);
            }
            let round = Instant::now() + LOOK_AROUND;
            match self.party.sleep(deadline.map_or(round, |d| d.min(round))) {
                Woken::Granted => return Ok(()),
                Woken::Victim => return Err(Error::Deadlock),
                Woken::Interrupted => ask = true,
                Woken::Late if deadline.is_some_and(|d| Instant::now() >= d) => {
                    return Err(Error::LockTimeout)
                }
                Woken::Late => {
                    ask = true;
                    shared.graph.search_again(shared, txn)?;
                    // Some may go before who came later: upgrades, and ranges.
                    self.tell(target, wait, &mut told);
                }
            }
        }
    }

    /// Tells the caller of those ahead that it has not been told of.
    fn tell(&self, target: Target, wait: &WaitRequest<'_>, told: &mut Vec<TxnId>) {
        let mut ahead = self.shared.ahead_of(target, self.txn());
        ahead.sort_unstable();
        ahead.dedup();
        ahead.retain(|txn| !told.contains(txn));
        if !ahead.is_empty() {
            (wait.before_wait)(&ahead);
            told.append(&mut ahead);
        }
    }

    /// Gives back one row lock; nothing happens if it is not held.
    pub fn unlock(&mut self, tree: TreeId, key: &[u8]) {
        let id = RowId::new(tree, key);
        if self.shared.rows.release(id, self.txn()) {
            self.held -= 1;
            let window = self.rows.len().saturating_sub(UNLOCK_WINDOW);
            if let Some(i) = self.rows[window..].iter().rposition(|row| *row == id) {
                self.rows.swap_remove(window + i);
            }
        }
    }

    /// Gives back everything.
    pub fn release_all(&mut self) {
        // Rows first: whoever waits for a range then finds the rows free as well.
        let mut rows = std::mem::take(&mut self.rows);
        self.shared.rows.release_many(&mut rows, self.txn());
        self.held = 0;
        for tree in self.ranges.drain() {
            self.shared.ranges.release(tree, self.party.txn());
        }
    }

    /// Row locks held.
    pub fn held(&self) -> usize {
        self.held
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.rows.capacity() * std::mem::size_of::<RowId>()
    }

    /// Whether range locks are held.
    pub fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        self.release_all();
    }
}
