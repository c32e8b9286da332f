//! Locking reads.
//!
//! A candidate is found with [`teak_core::View::Pending`], which shows what is committed and what other transactions
//! have inserted; then its row is locked, which waits for those transactions; then it is read again. Under the lock
//! nobody else can change it.
//!
//! A scan of an index returns its entries unlocked, so that the shim can evaluate the pushed condition first;
//! [`TableCursor::fetch`] then locks the row and checks that the entry is still there.
//!
//! # Ranges
//!
//! From REPEATABLE READ on, a scan also locks the gaps it passes against inserts: one by one at first, then some
//! entries ahead, in proportion to those it has passed. So a `LIMIT 1` leaves the rest of the table alone, and a long
//! scan pays little. (The lock manager merges neighbouring ranges.) After a range was locked the scan looks again,
//! because an insert may have come before the lock. An inserter does the reverse: it checks for ranges, writes, and
//! checks again. Whatever the order, one of the two sees the other.

use std::ops::Bound;

use teak_core::{Error, LockMode, View};

use crate::bounds::{Direction, Start};
use crate::outcome::{Result, Stop};
use crate::scan::{place, Busy, Ranges, Read, Sight, TableCursor};
use crate::session::Session;
use teak_core::server::{LockOutcome, Window};

/// A scan locks ahead one entry for so many that it has passed, at least one.
const PASSED_PER_AHEAD: usize = 8;
/// And not more than so many.
const MAX_AHEAD: usize = 1024;

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Candidate {
    /// It is locked and there; or, where that is asked for, not locked and as it was committed.
    Ours,
    /// It went before it could be locked.
    Gone,
    /// Another transaction has it and it is to be passed over.
    Skipped,
}

impl TableCursor {
    /// The first entry from `self.from` on, locked (rows) or not yet (index entries).
    pub(crate) fn first_locked(&mut self, session: &mut Session, mode: LockMode) -> Result<bool> {
        self.follow_snapshot(session)?;
        let found = match self.ranges {
            Ranges::AsItGoes => self.lock_ahead(session)?,
            Ranges::None | Ranges::Done => self.place(session)? && self.inside(),
        };
        self.take_candidates(session, mode, found)
    }

    /// The entry after the current one in the present direction.
    pub(crate) fn next_locked(&mut self, session: &mut Session, mode: LockMode) -> Result<bool> {
        let found = self.next_candidate(session)?;
        self.take_candidates(session, mode, found)
    }

    fn next_candidate(&mut self, session: &mut Session) -> Result<bool> {
        self.locked = LockOutcome::Held;
        // Where ranges are locked nothing comes back.
        let again = std::mem::take(&mut self.gone) && self.ranges == Ranges::None;
        let found = if again { self.place_again(session)? } else { self.advance(session)? } && self.inside();
        if self.ranges != Ranges::AsItGoes || (found && !self.is_ahead()) {
            return Ok(found);
        }
        self.lock_ahead(session)
    }

    /// Goes to the current key, or to the next one if it is not there, in one step: between two, others could insert
    /// the key and one behind it, and the scan would return the second without the first.
    fn place_again(&mut self, session: &mut Session) -> Result<bool> {
        self.reach.clear();
        self.reach.extend_from_slice(self.core.key());
        let from = Bound::Included(self.reach.as_slice());
        place(&mut self.core, session.txn()?, self.read.view(), self.direction, from)
    }

    /// Whether the current key lies where the scan has not locked yet.
    fn is_ahead(&self) -> bool {
        self.from.admits(self.core.key(), self.direction.opposite())
    }

    /// Locks the range from `self.from` to some candidates ahead, or to the end of the scan if it has no more, and goes
    /// to the first.
    fn lock_ahead(&mut self, session: &mut Session) -> Result<bool> {
        let tree = self.tree().clone();
        loop {
            let ahead = (self.passed / PASSED_PER_AHEAD).clamp(1, MAX_AHEAD);
            self.ahead = 0;
            let mut candidates = 0;
            let mut more = self.place(session)? && self.inside();
            let leaf = self.leaf_ahead(ahead).filter(|_| more);
            if let Some((keys, beyond)) = leaf {
                let Some(from) = self.from.bound() else { return Ok(false) };
                session.lock_range(&tree, from, Bound::Excluded(&beyond))?;
                self.passed += keys;
                self.lock_rows_below(session, &beyond)?;
                let found = self.place(session)? && self.inside();
                self.from.set_start(Start::AtOrAfter, &beyond);
                if found && !self.is_ahead() {
                    return Ok(true);
                }
                continue;
            }
            while more {
                candidates += 1;
                if candidates == ahead {
                    break;
                }
                more = self.advance(session)? && self.inside();
            }
            let (Some(from), Some(end)) = (self.from.bound(), self.end.bound()) else { return Ok(false) };
            let to = if more { Bound::Included(self.core.key()) } else { end };
            match self.direction {
                Direction::Up => session.lock_range(&tree, from, to)?,
                Direction::Down => session.lock_range(&tree, to, from)?,
            }
            self.passed += candidates;
            if !more {
                self.ranges = Ranges::Done;
                return Ok(self.place(session)? && self.inside());
            }
            self.reach.clear();
            self.reach.extend_from_slice(self.core.key());
            let found = self.place(session)? && self.inside();
            self.from.set_beyond(&self.reach);
            // Nothing left in the range if all candidates were rolled back meanwhile: then what comes behind it.
            if found && !self.is_ahead() {
                return Ok(true);
            }
        }
    }

    /// Locks all rows from `self.from` on and below `beyond`, whose gaps it has just locked, at once, if nobody else
    /// has locked any row of the table: then the scan need not ask for each. They are those with keys as long as the
    /// one that it stands on.
    fn lock_rows_below(&mut self, session: &mut Session, beyond: &[u8]) -> Result<()> {
        let Sight::Locking(mode) = self.read.sight else { return Ok(()) };
        if !self.is_rows() || self.read.busy == Busy::Skip {
            return Ok(());
        }
        let behind;
        let from = match self.from.bound() {
            Some(Bound::Included(key)) => key,
            Some(Bound::Excluded(key)) => {
                behind = [key, &[0]].concat();
                &behind
            }
            Some(Bound::Unbounded) => &[],
            None => return Ok(()),
        };
        let length = self.core.key().len();
        if session.lock_keys(self.table.tree(0), from, beyond, length, mode)? {
            self.ahead = length;
        }
        Ok(())
    }

    /// What comes next and was locked at once, as a window.
    pub(crate) fn locked_window(
        &mut self,
        session: &mut Session,
        mode: LockMode,
    ) -> Result<Option<Window<'_>>> {
        if self.ahead == 0 || self.direction != Direction::Up || session.may_conflict() {
            return Ok(None);
        }
        let (Some(end), Some(Bound::Included(locked_below))) = (self.end.bound(), self.from.bound()) else {
            return Ok(None);
        };
        let txn = session.txn()?;
        if mode == LockMode::Exclusive {
            txn.aim(&self.core);
        }
        let found = self.core.window(txn).filter(|window| window.key_bytes() == Some(self.ahead));
        Ok(found.and_then(|w| w.before(end)).and_then(|w| w.before(Bound::Excluded(locked_below))))
    }

    /// The rest of the leaf that a scan up has come to, if it may lock so many keys ahead and ends behind them: how
    /// many there are at most, and the key that they are below. They need not be visited before they are locked.
    fn leaf_ahead(&self, ahead: usize) -> Option<(usize, Vec<u8>)> {
        if self.direction != Direction::Up {
            return None;
        }
        let (keys, beyond) = self.core.rest_of_leaf()?;
        let fits = keys <= ahead && self.end.admits(beyond, Direction::Up);
        fits.then(|| (keys, beyond.to_vec()))
    }

    /// From a candidate on, the first that can be had.
    fn take_candidates(&mut self, session: &mut Session, mode: LockMode, mut found: bool) -> Result<bool> {
        while found && self.is_rows() {
            self.meet_vanished(session, true)?;
            match self.take_row(session, mode)? {
                Candidate::Ours => return Ok(true),
                Candidate::Gone | Candidate::Skipped => found = self.next_candidate(session)?,
            }
        }
        if !found {
            self.meet_vanished(session, false)?;
        }
        Ok(found)
    }

    /// Locks the row the cursor stands on and reads it again.
    fn take_row(&mut self, session: &mut Session, mode: LockMode) -> Result<Candidate> {
        let tree = self.table.tree(0);
        if self.ahead != 0 && self.ahead == self.core.key().len() {
            // Read since it was locked.
            self.locked = LockOutcome::Held;
            session.txn()?.check_unchanged_at(&self.core)?;
            self.note_taken(session, mode)?;
            return Ok(Candidate::Ours);
        }
        self.locked = match session.lock(tree, self.core.key(), mode, self.read.busy.policy()) {
            Ok(outcome) => outcome,
            Err(Stop::Core(Error::WouldBlock)) if self.read.busy == Busy::Skip => {
                return Ok(Candidate::Skipped)
            }
            Err(Stop::Core(Error::WouldBlock)) if self.read.busy == Busy::AsCommitted => {
                return self.take_committed(session)
            }
            Err(error) => return Err(error),
        };
        session.txn()?.check_unchanged_at(&self.core)?;
        let (txn, view) = (session.txn()?, self.read.view());
        if self.core.is_current(txn, view)? || self.core.refresh(txn, view)? {
            self.note_taken(session, mode)?;
            return Ok(Candidate::Ours);
        }
        session.give_back(tree, self.core.key(), std::mem::replace(&mut self.locked, LockOutcome::Held));
        self.gone = true;
        Ok(Candidate::Gone)
    }

    /// Reads the row the cursor stands on, which another transaction has locked, as it was committed last. One that has
    /// never been committed is nobody's to wait for: it is passed over.
    fn take_committed(&mut self, session: &mut Session) -> Result<Candidate> {
        let tree = self.table.tree(0);
        let txn = session.txn()?;
        if !txn.find(tree, self.core.key())? {
            return Ok(Candidate::Skipped);
        }
        self.committed.clear();
        self.committed.extend_from_slice(txn.found(tree)?);
        self.unlocked = true;
        Ok(Candidate::Ours)
    }

    /// The row that was returned without its lock is wanted: that is waited for now. If the row has gone by then, the
    /// next one.
    pub(crate) fn take_again(&mut self, session: &mut Session, mode: LockMode) -> Result<bool> {
        let busy = std::mem::replace(&mut self.read.busy, Busy::Wait);
        let taken = self.take_row(session, mode);
        self.read.busy = busy;
        match taken? {
            Candidate::Ours => Ok(true),
            Candidate::Gone | Candidate::Skipped => self.next_locked(session, mode),
        }
    }

    /// What the cursor stands on is locked and there: a change of it need not look again.
    fn note_taken(&self, session: &mut Session, mode: LockMode) -> Result<()> {
        if mode == LockMode::Exclusive {
            session.note_taken(self.table.tree(0), self.core.key());
            session.txn()?.aim(&self.core);
        }
        Ok(())
    }

    /// The entry with exactly this key. One that is missing is kept missing, where the level locks ranges.
    pub(crate) fn get_locked(&mut self, session: &mut Session, key: &[u8], mode: LockMode) -> Result<bool> {
        let tree = self.tree().clone();
        let mut keep_missing = self.ranges != Ranges::None;
        if keep_missing {
            self.from.set_beyond(key);
        }
        loop {
            if self.core.get(session.txn()?, self.read.view(), key)? {
                if !self.is_rows() {
                    return Ok(true);
                }
                match self.take_row(session, mode)? {
                    Candidate::Ours => return Ok(true),
                    Candidate::Skipped => return Ok(false),
                    Candidate::Gone => continue,
                }
            }
            session.check_unchanged(&tree, key)?;
            if !std::mem::take(&mut keep_missing) {
                return Ok(false);
            }
            session.lock_range(&tree, Bound::Included(key), Bound::Included(key))?;
        }
    }

    /// The row with this key, which the session has locked exclusively, as it is now: for whoever has found it by a
    /// look ([`Session::find`]), and so by what is committed, it is there although the table's content may be younger
    /// than the snapshot. Changed since then it is a conflict like any other.
    pub fn get_held(&mut self, session: &mut Session, key: &[u8]) -> Result<()> {
        if !self.is_rows() {
            return Err(Stop::Misuse("rows are read with a cursor over tree 0"));
        }
        self.begin(session, Read { sight: Sight::Latest, busy: Busy::Wait, ranges: false }, Direction::Up);
        self.end.set_open();
        if !self.core.get(session.txn()?, View::Latest, key)? {
            return Err(Stop::NotFound);
        }
        session.txn()?.check_unchanged_at(&self.core)?;
        self.note_taken(session, LockMode::Exclusive)
    }

    /// The row with primary key `pk` of the entry that `index` stands on; `self` is a cursor over the rows.
    /// [`Stop::NotFound`] means that the entry is stale or its row is to be skipped.
    pub fn fetch(
        &mut self,
        session: &mut Session,
        index: &mut TableCursor,
        pk: &[u8],
        read: Read,
    ) -> Result<()> {
        if !self.is_rows() {
            return Err(Stop::Misuse("rows are fetched with a cursor over tree 0"));
        }
        self.begin(session, Read { ranges: false, ..read }, Direction::Up);
        self.end.set_open();
        let Sight::Locking(mode) = read.sight else {
            if self.core.get(session.txn()?, read.view(), pk)? {
                return Ok(());
            }
            return match read.sight {
                // Its own delete, of a newer version than the snapshot's.
                Sight::Snapshot if session.may_overtake() => Err(Stop::NotFound),
                Sight::Snapshot => Err(Stop::Inconsistent { table: self.table.name(), tree: index.number }),
                _ => Err(Stop::NotFound),
            };
        };
        // `pk` can point into the memory of `index`, which is read again.
        let mut named = std::mem::take(&mut self.named);
        named.clear();
        named.extend_from_slice(pk);
        let result = self.fetch_locked(session, index, &mut named, mode);
        self.named = named;
        result
    }

    /// Locks and reads the row that `index` names, at first `named`. A unique key may pass to another row while the
    /// lock is waited for: then that one is wanted.
    fn fetch_locked(
        &mut self,
        session: &mut Session,
        index: &mut TableCursor,
        named: &mut Vec<u8>,
        mode: LockMode,
    ) -> Result<()> {
        let rows = self.table.tree(0).clone();
        loop {
            self.locked = match session.lock(&rows, named, mode, self.read.busy.policy()) {
                Ok(outcome) => outcome,
                Err(Stop::Core(Error::WouldBlock)) if self.read.busy == Busy::Skip => {
                    return Err(Stop::NotFound)
                }
                Err(error) => return Err(error),
            };
            session.check_unchanged(&rows, named)?;
            let found = self.core.get(session.txn()?, self.read.view(), named)?;
            let exists = index.core.refresh(session.txn()?, index.read.view())?;
            // The key of a non-unique entry ends with the primary key.
            let other = match exists && index.unique {
                true => crate::unique::primary_key(index.core.value()?).filter(|pk| *pk != named.as_slice()),
                false => None,
            };
            if exists && other.is_none() {
                // Under the lock of a row nobody else changes its entries.
                if found && mode == LockMode::Exclusive {
                    session.note_taken(&rows, named);
                    session.txn()?.aim(&self.core);
                }
                return match found {
                    true => Ok(()),
                    false => Err(Stop::Inconsistent { table: self.table.name(), tree: index.number }),
                };
            }
            session.give_back(&rows, named, std::mem::replace(&mut self.locked, LockOutcome::Held));
            let Some(pk) = other else {
                index.gone = true;
                return Err(Stop::NotFound);
            };
            named.clear();
            named.extend_from_slice(pk);
        }
    }

    /// The newest committed value (or this transaction's own) of the entry that the cursor stands on, which may be
    /// another transaction's. Stays readable until the session looks for a key in that tree again.
    pub fn committed<'s>(&self, session: &'s mut Session) -> Result<&'s [u8]> {
        let tree = self.tree();
        let txn = session.txn()?;
        if !txn.find(tree, self.core.key())? {
            return Err(Stop::NotFound);
        }
        Ok(txn.found(tree)?)
    }

    /// The row last returned did not match: at READ COMMITTED its lock is what it was before this cursor took it.
    pub fn unlock_row(&mut self, session: &mut Session) {
        if std::mem::take(&mut self.unlocked) {
            return;
        }
        if session.is_read_committed() && self.is_rows() {
            let outcome = std::mem::replace(&mut self.locked, LockOutcome::Held);
            session.give_back(self.table.tree(0), self.core.key(), outcome);
        }
    }
}
