//! One transaction's locks: asking for them, waiting, giving them back.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cover::{fit, span_of_length, Certainty};
use super::gather::{Gathered, Hull, UNLOCK_WINDOW};
use super::interval::Span;
use super::party::{Party, Woken};
use super::presence::Entered;
use super::range::Want;
use super::row::{Attempt, IfBlocked, Known, RowId};
use super::{LockOutcome, LockTables, Sought, Target};
use crate::numbers::{NumberMap, NumberSet};
use crate::{Error, LockMode, Result, TreeId, TxnId, WaitPolicy, WaitRequest};

/// Who waits longer than this enters the graph and searches for deadlocks: most waits are shorter, and the graph is one
/// for all.
const PATIENCE: Duration = Duration::from_millis(2);
/// A waiter asks this often whether it was interrupted.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// An owner keeps memory for so many rows when it has given back all of them.
const KEPT: usize = 64;
/// From so many locks on, those of consecutive keys are gathered into covers.
const MANY: usize = if cfg!(test) { 4 } else { 1024 };
/// What an entry of the table of rows takes, which is two thirds full, and its mark with the owner.
pub const SINGLE_LOCK_BYTES: u64 = 25 * 3 / 2 + std::mem::size_of::<RowId>() as u64;
/// After so many locks more of a tree and mode, the owner looks whether all locks take too much memory.
const LOOK_AT_MEMORY: usize = if cfg!(test) { 8 } else { 1024 };

/// The locks of one transaction; dropping it releases them.
pub struct LockOwner {
    shared: Arc<LockTables>,
    party: Arc<Party>,
    /// Rows locked; may hold rows that were unlocked again.
    rows: Vec<RowId>,
    /// Those after the first many.
    gathered: NumberMap<(TreeId, LockMode), Gathered>,
    held: usize,
    /// How many of them have an entry each.
    entries: usize,
    /// Trees with covers, and between which keys those lie.
    covered: NumberMap<TreeId, Hull>,
    /// Trees that it has been to.
    entered: Entered,
    /// Trees with range locks.
    ranges: NumberSet<TreeId>,
    /// Whether it may lock more than it was told to, to save memory.
    may_widen: bool,
}

fn if_blocked(wait: &WaitRequest<'_>) -> IfBlocked {
    match wait.policy {
        WaitPolicy::Wait => IfBlocked::Enqueue,
        WaitPolicy::NoWait => IfBlocked::Refuse,
    }
}

impl LockOwner {
    pub(super) fn new(shared: Arc<LockTables>, party: Arc<Party>) -> LockOwner {
        LockOwner {
            shared,
            party,
            rows: Vec::new(),
            gathered: NumberMap::default(),
            held: 0,
            entries: 0,
            covered: NumberMap::default(),
            entered: Entered::default(),
            ranges: NumberSet::default(),
            may_widen: true,
        }
    }

    /// The transaction.
    pub fn txn(&self) -> TxnId {
        self.party.txn()
    }

    /// It has written so many rows, as of its next request.
    #[inline]
    pub fn set_weight(&self, rows: u64) {
        self.party.set_weight(rows);
    }

    /// After [`LockOwner::release_all`]: the owner is that of another transaction from now on.
    pub fn renew(&mut self, txn: TxnId) {
        debug_assert!(self.held == 0 && self.rows.is_empty() && self.covered.is_empty(), "locks are left");
        Party::renew(&mut self.party, txn);
        self.may_widen = true;
    }

    /// Makes it a likelier (positive) or less likely victim of deadlocks than others.
    pub fn set_victim_preference(&self, preference: i32) {
        self.party.set_preference(preference);
    }

    /// It locks exactly what it is told to, however much memory that takes: for locks that must not get in the way of
    /// others that were held at the same time before a restart.
    pub fn never_widen(&mut self) {
        self.may_widen = false;
    }

    /// Locks a row. Others' ranges are not looked at: they keep out inserts, and whoever inserts asks
    /// [`LockOwner::check_insert`] first. (If they kept out locks of rows that exist, two who hold the range of a row
    /// and wait for it would wait for each other, and for its holder's ranges instead of its lock.)
    ///
    /// Errors: [`Error::WouldBlock`], [`Error::LockTimeout`], [`Error::Interrupted`]; [`Error::Deadlock`] and
    /// [`Error::LockMemory`], after which the transaction must be rolled back. What was held before is still held after
    /// an error.
    pub fn lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<LockOutcome> {
        let id = RowId::new(tree, key);
        let outcome = match self.request(tree, key, id, mode, if_blocked(wait)) {
            Attempt::Done(outcome) => outcome,
            Attempt::Blocked(_) if wait.policy == WaitPolicy::NoWait => return Err(Error::WouldBlock),
            Attempt::Blocked(outcome) => {
                let sought = Sought::row(tree, key, mode);
                self.wait(Target::Row(id), wait, &sought)?;
                outcome
            }
        };
        if outcome == LockOutcome::New {
            self.note(tree, key, id, mode)?;
        }
        Ok(outcome)
    }

    /// Locks all keys of `length` bytes from `from` on and below `below` at once, also those that no row has, and says
    /// so; `false`: none of them, since somebody else has locked rows of the tree (or of one that shares its place
    /// there). Never waits. What it has locked is not unlocked one by one.
    pub fn lock_keys(
        &mut self,
        tree: TreeId,
        from: &[u8],
        below: &[u8],
        length: usize,
        mode: LockMode,
    ) -> bool {
        self.shared.presence.enter(&mut self.entered, tree, self.party.txn());
        let alone = || self.shared.presence.is_alone(tree);
        // Once before anything is latched, and then when nobody can come unnoticed.
        let span = span_of_length(length, from, below);
        if !alone() || !self.shared.covers.publish_if(tree, &self.party, mode, span, alone) {
            return false;
        }
        self.covered.entry(tree).or_default().add((&fit(from, length), &fit(below, length)));
        true
    }

    /// Asks for a row, and queues for it if it is not to be had.
    pub(super) fn request(
        &mut self,
        tree: TreeId,
        key: &[u8],
        id: RowId,
        mode: LockMode,
        blocked: IfBlocked,
    ) -> Attempt {
        self.shared.presence.enter(&mut self.entered, tree, self.party.txn());
        let (rows, covers) = (&self.shared.rows, &self.shared.covers);
        // Its own covers say nothing of a key beyond them, which is where a scan that makes them goes.
        let own = self.covered.get(&tree).is_some_and(|hull| hull.holds(key));
        let any = || own || covers.any_but(tree, self.party.txn());
        if let Some(attempt) = rows.lock(id, &self.party, mode, blocked, Known::Not(&any)) {
            return attempt;
        }
        covers.consult(tree, key, mode, &self.party, |findings| match findings.held {
            true => Attempt::Done(LockOutcome::Held),
            false => {
                let known = Known::All(&findings.foreign);
                let attempt = rows.lock(id, &self.party, mode, blocked, known);
                attempt.unwrap_or(Attempt::Blocked(LockOutcome::New))
            }
        })
    }

    /// The row is locked, with an entry of its own in the table of rows. It stays locked after [`Error::LockMemory`].
    pub(super) fn note(&mut self, tree: TreeId, key: &[u8], id: RowId, mode: LockMode) -> Result<()> {
        self.held += 1;
        self.entries += 1;
        if self.rows.len() < MANY {
            self.push(id);
            return Ok(());
        }
        let gathered = self.gathered.entry((tree, mode)).or_default();
        let before = gathered.bytes();
        gathered.push(id, key);
        self.shared.account.change(before, gathered.bytes());
        if let Some(ends) = gathered.full_run() {
            self.shared.covers.publish(tree, &self.party, mode, ends, Certainty::Certain);
            self.covered.entry(tree).or_default().add(ends);
            let rows = gathered.take_run();
            self.give_to_cover(rows, mode);
        } else if gathered.len().is_multiple_of(LOOK_AT_MEMORY)
            && self.may_widen
            && self.shared.account.is_over()
        {
            return self.widen(tree, mode);
        }
        Ok(())
    }

    fn push(&mut self, id: RowId) {
        let before = self.rows.capacity();
        self.rows.push(id);
        let bytes = |capacity| capacity * std::mem::size_of::<RowId>();
        self.shared.account.change(bytes(before), bytes(self.rows.capacity()));
    }

    fn drop_rows(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.shared.account.change(rows.capacity() * std::mem::size_of::<RowId>(), 0);
    }

    /// Gives back entries of rows that a cover of the mode has locked.
    fn give_to_cover(&mut self, rows: Vec<RowId>, mode: LockMode) {
        let before = rows.len();
        let kept = self.shared.rows.yield_to_cover(rows, self.party.txn(), mode);
        self.entries = self.entries.saturating_sub(before - kept.len());
        for kept in kept {
            self.push(kept);
        }
    }

    /// One cover over all that it has locked in the tree; if another's is in the way, the locks stay single as long as
    /// there is memory.
    fn widen(&mut self, tree: TreeId, mode: LockMode) -> Result<()> {
        let Some(gathered) = self.gathered.get_mut(&(tree, mode)) else { return Ok(()) };
        let Some(ends) = gathered.ends() else { return Ok(()) };
        if !self.shared.covers.publish(tree, &self.party, mode, ends, Certainty::Widened) {
            return self.shared.account.check();
        }
        self.covered.entry(tree).or_default().add(ends);
        let before = gathered.bytes();
        let rows = gathered.take();
        self.shared.account.change(before, gathered.bytes());
        self.give_to_cover(rows, mode);
        Ok(())
    }

    /// Locks a range of keys against inserts of others, and against others' ranges if one of the two is exclusive. Row
    /// locks that exist are not looked at: the scan that follows takes its own.
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

    /// Waits while another owner's range covers `key`. One load when nobody holds a range of the tree. To be asked
    /// before an insert is written, and once more after (see the module's head).
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
        if self.shared.ranges.request(tree, &self.party, &want, if_blocked(wait)) {
            return Ok(());
        }
        if wait.policy == WaitPolicy::NoWait {
            return Err(Error::WouldBlock);
        }
        self.wait(Target::Ranges(tree), wait, &want.sought(tree))
    }

    /// Waits for a request that is queued; afterwards it is granted or taken back.
    fn wait(&mut self, target: Target, wait: &WaitRequest<'_>, sought: &Sought) -> Result<()> {
        let shared = &*self.shared;
        let start = shared.time.now();
        let ended = self.sleep(target, wait, start, sought);
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
        shared.counters.add_wait(sought.tree, shared.time.since(start), result.as_ref().err());
        result
    }

    fn sleep(&self, target: Target, wait: &WaitRequest<'_>, start: Instant, sought: &Sought) -> Result<()> {
        let shared = &*self.shared;
        let mut told = (wait.before_wait)().then(Vec::new);
        self.tell(target, wait, &mut told);
        // A time-out too far away to be represented is none.
        let deadline = start.checked_add(wait.timeout);
        let mut round = start + PATIENCE;
        let mut rounds = 0u32;
        loop {
            match self.party.sleep(deadline.map_or(round, |d| d.min(round)), &shared.time) {
                Woken::Granted => return Ok(()),
                Woken::Victim => return Err(Error::Deadlock),
                Woken::Interrupted => {}
                Woken::Late if deadline.is_some_and(|d| shared.time.now() >= d) => {
                    return Err(Error::LockTimeout)
                }
                Woken::Late => {
                    round = shared.time.now() + LOOK_AROUND;
                    rounds += 1;
                    if rounds == 2 {
                        if let Some(watcher) = wait.watcher {
                            watcher.lasts(sought);
                        }
                    }
                    if rounds.is_power_of_two() {
                        self.search((rounds == 1).then_some((target, start, sought)), wait)?;
                    }
                    // Some may go before who came later: upgrades, and ranges.
                    self.tell(target, wait, &mut told);
                }
            }
            // After entering the graph: an interrupt before that finds nobody to wake, but has set its mark.
            if (wait.interrupted)() {
                return Err(Error::Interrupted);
            }
        }
    }

    /// Looks whether it is deadlocked; to be seen by others, the first time. Whoever closes a cycle searches; another
    /// time is for edges that came between two who waited already.
    fn search(&self, first: Option<(Target, Instant, &Sought)>, wait: &WaitRequest<'_>) -> Result<()> {
        let shared = &*self.shared;
        let mut found = Vec::new();
        let result = match first {
            Some((target, start, sought)) => {
                let note = wait.watcher.and_then(|watcher| watcher.settles());
                let sought = (sought.clone(), note);
                shared.graph.enter(shared, &self.party, target, start, sought, &mut found)
            }
            None => shared.graph.search_again(shared, self.txn(), &mut found),
        };
        if let Some(watcher) = wait.watcher {
            found.iter().for_each(|deadlock| watcher.deadlock(deadlock));
        }
        result
    }

    /// Tells the caller of those ahead that it has not been told of, if it wants to know.
    fn tell(&self, target: Target, wait: &WaitRequest<'_>, told: &mut Option<Vec<TxnId>>) {
        let Some(told) = told else { return };
        let mut ahead = self.shared.ahead_of(target, self.txn());
        ahead.sort_unstable();
        ahead.dedup();
        ahead.retain(|txn| told.binary_search(txn).is_err());
        if !ahead.is_empty() {
            (wait.waits_for)(&ahead);
            told.append(&mut ahead);
            told.sort_unstable();
        }
    }

    /// Undoes what [`LockOwner::lock`] has just done to a row: a lock that was new goes, one that was shared before is
    /// shared again, one that was held stays.
    pub fn give_back(&mut self, tree: TreeId, key: &[u8], outcome: LockOutcome) {
        match outcome {
            LockOutcome::New => self.unlock(tree, key),
            LockOutcome::Upgraded => self.shared.rows.downgrade(RowId::new(tree, key), self.txn()),
            LockOutcome::Held => {}
        }
    }

    /// Gives back one row lock; nothing happens if it is not held, or only by a cover.
    pub fn unlock(&mut self, tree: TreeId, key: &[u8]) {
        let txn = self.txn();
        if self.covered.get(&tree).is_some_and(|hull| hull.holds(key))
            && self.shared.covers.covers(tree, key, txn)
        {
            return;
        }
        let id = RowId::new(tree, key);
        if self.shared.rows.release(id, txn) {
            self.held -= 1;
            self.entries = self.entries.saturating_sub(1);
            let mut gathered = [LockMode::Exclusive, LockMode::Shared].into_iter();
            let forgotten =
                gathered.any(|mode| self.gathered.get_mut(&(tree, mode)).is_some_and(|rows| rows.forget(id)));
            let window = self.rows.len().saturating_sub(UNLOCK_WINDOW);
            let place = || self.rows[window..].iter().rposition(|row| *row == id);
            if let Some(place) = (!forgotten).then(place).flatten() {
                self.rows.swap_remove(window + place);
            }
        }
    }

    /// Gives back everything, but for the memory of a few rows.
    pub fn release_all(&mut self) {
        let txn = self.txn();
        // Covers first: nobody makes entries for it any more once they are gone.
        let covered = !self.covered.is_empty();
        if covered {
            for (tree, _) in self.covered.drain() {
                self.shared.covers.release(tree, txn);
            }
        }
        // Rows before ranges: whoever waits for a range then finds the rows free as well.
        if covered || !self.gathered.is_empty() {
            let entries = self.party.take_entries();
            let gathered = self.gathered.drain().map(|(_, mut gathered)| {
                self.shared.account.change(gathered.bytes(), 0);
                gathered.take()
            });
            for mut rows in gathered.chain([entries]) {
                self.shared.rows.release_many(&mut rows, txn);
            }
        }
        self.shared.rows.release_many(&mut self.rows, txn);
        self.rows.clear();
        if self.rows.capacity() > KEPT {
            self.drop_rows();
        }
        (self.held, self.entries) = (0, 0);
        if !self.ranges.is_empty() {
            for tree in self.ranges.drain() {
                self.shared.ranges.release(tree, txn);
            }
        }
        self.shared.presence.leave(&mut self.entered, txn);
    }

    /// Row locks held, and those among them that are no part of a run.
    #[inline]
    pub fn figures(&self) -> (u64, u64) {
        (self.held as u64, self.entries as u64)
    }

    /// Row locks held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held
    }

    #[cfg(test)]
    pub(super) fn party(&self) -> &Arc<Party> {
        &self.party
    }

    /// Whether range locks are held.
    #[cfg(test)]
    pub fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        self.release_all();
        self.drop_rows();
    }
}

#[cfg(test)]
mod tests {
    use super::super::LockManager;
    use super::*;

    #[test]
    fn an_owner_that_has_given_back_everything_is_the_next_transactions_with_nothing_of_the_last() {
        let manager = LockManager::new(None);
        let (mut kept, mut other) = (manager.open(1, 0), manager.open(2, 0));
        let lock = |owner: &mut LockOwner| owner.lock(1, b"a", LockMode::Exclusive, &WaitRequest::no_wait());
        kept.set_weight(1000);
        kept.never_widen();
        lock(&mut kept).unwrap();
        kept.lock_range(
            1,
            Bound::Unbounded,
            Bound::Excluded(b"m"),
            LockMode::Shared,
            &WaitRequest::no_wait(),
        )
        .unwrap();
        assert!(matches!(lock(&mut other), Err(Error::WouldBlock)));
        kept.release_all();
        kept.renew(3);
        assert_eq!((kept.txn(), kept.held(), kept.has_ranges(), kept.party().cost()), (3, 0, false, (0, 0)));
        lock(&mut other).unwrap();
        assert!(matches!(lock(&mut kept), Err(Error::WouldBlock)));
        // Who still knows the last transaction keeps it as it was.
        let last = kept.party().clone();
        kept.release_all();
        kept.renew(4);
        assert_eq!((last.txn(), kept.txn()), (3, 4));
        drop((kept, other));
    }
}
