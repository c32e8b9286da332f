//! Where the log has what an undecided transaction did, and the copy of it that is being made.
//!
//! The transaction's own thread appends its records through this, and so does who copies them: each append and what is
//! noted of it are one step under the mutex, so a copy knows all that lies before it in the log.
//!
//! An example. A transaction has appended two records, has rolled back to a savepoint behind its operation 6, and has
//! appended a third when, at 40, a copy begins (o: a record, with the sequences of its operations, which are not used
//! twice; r: a rollback, with the last that stays; c: the copy of a record; E: the end of the copy):
//!
//! ```text
//! log:      0     10    20    30     40    50    60
//!           o1-4  o5-8  r6    o9-11  c1-4  r3    E
//!
//! records:  0, 10, 30                            40
//! voids:    kept 6, until 20         kept 3, until 50
//! ```
//!
//! [`Trail::next`] names one record after the other, with how much of it is not void as of now, which the first
//! rollback *behind* it says: of the records at 0 and 10 what goes up to 6, of the one at 30 all. The copier reads it,
//! leaves out what is void, and gives the rest to [`Trail::copied`]: so the first one is copied, to 40. While it reads
//! the second the transaction rolls back to 3. That void takes the place of the other, which keeps more. `copied` sees
//! that the record at 10 would be named with 3 by now, and does nothing; `next` names it anew. Of it nothing is left
//! then, nor of the record at 30: both are noted as copied, and nothing is written. The rollback at 50 lies behind the
//! copy at 40, and voids operation 4 in that as well: so a void is kept until a copy *begins* behind it. With E the
//! transaction is what lies from 40 on, and the log before 40 may go.

use crate::log::{Log, LogRecord, Lsn};
use crate::options::CommitFlush;
use crate::sync::Mutex;
use crate::types::TxnId;
use crate::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub(in crate::engine) struct Trail {
    txn: TxnId,
    /// What its records with operations take in the log.
    bytes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where records with operations begin, ascending.
    records: Vec<Lsn>,
    /// The later, the more stays: of what another has made void as well, only the last is here.
    voids: Vec<Void>,
    /// Of a prepared one.
    xid: Option<Vec<u8>>,
    /// Its decision is in the log, or about to be.
    decided: bool,
    /// It cannot be copied.
    given_up: bool,
    copy: Option<Copy>,
}

/// A rollback to a savepoint.
struct Void {
    /// The last sequence that stays.
    kept: u32,
    /// Of records before this.
    until: Lsn,
}

/// A copy that is not complete.
struct Copy {
    /// It lies behind this.
    start: Lsn,
    /// How many of the records are in it.
    done: usize,
    records: Vec<Lsn>,
    bytes: u64,
}

/// What a copy needs next.
pub(in crate::engine) enum Next {
    /// The operations of this record that are not void.
    Record(Original),
    /// Nothing: it is complete, and the log before this is not needed any more for this transaction.
    Complete(Lsn),
    /// Nothing: there is to be none.
    Nothing,
}

/// A record that is to be copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Original {
    /// Where it begins.
    pub lsn: Lsn,
    /// Operations with a greater sequence are void.
    pub kept: u32,
}

impl State {
    fn note(&mut self, end: Lsn, bytes: usize) -> u64 {
        let start = Log::start_of(end, bytes);
        debug_assert!(self.records.last().is_none_or(|last| *last < start), "records are ascending");
        debug_assert!(!self.decided, "operations behind the decision");
        self.records.push(start);
        end - start
    }

    fn note_void(&mut self, void: Void) {
        while self.voids.last().is_some_and(|last| last.kept >= void.kept) {
            self.voids.pop();
        }
        debug_assert!(
            self.voids.last().is_none_or(|last| last.until <= void.until),
            "rollbacks are ascending"
        );
        self.voids.push(void);
    }

    fn original(&self, lsn: Lsn) -> Original {
        // The first behind it keeps least.
        let behind = self.voids.partition_point(|void| void.until <= lsn);
        Original { lsn, kept: self.voids.get(behind).map_or(u32::MAX, |void| void.kept) }
    }
}

impl Trail {
    /// Of a transaction of which the log has nothing.
    pub(in crate::engine) fn new(txn: TxnId) -> Trail {
        Trail { txn, bytes: AtomicU64::new(0), state: Mutex::default() }
    }

    /// Of a prepared transaction that a start has found: where its records begin, what they take, and its rollbacks to
    /// savepoints, each with the last sequence that stays and its position.
    pub(in crate::engine) fn found(
        txn: TxnId,
        xid: &[u8],
        mut records: Vec<Lsn>,
        bytes: u64,
        voids: &[(u32, Lsn)],
    ) -> Trail {
        records.sort_unstable();
        let mut state = State { records, xid: Some(xid.to_vec()), ..State::default() };
        voids.iter().for_each(|&(kept, until)| state.note_void(Void { kept, until }));
        Trail { txn, bytes: AtomicU64::new(bytes), state: Mutex::new(state) }
    }

    /// Bytes of the log that its operations take.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        // Relaxed: a size by which is decided what is worth copying.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Its identifier if it is prepared.
    pub(in crate::engine) fn xid(&self) -> Option<Vec<u8>> {
        self.state.lock().xid.clone()
    }

    /// Appends operations.
    pub(in crate::engine) fn append(&self, log: &Log, record: Vec<u8>) -> Result<()> {
        let mut state = self.state.lock();
        let bytes = record.len();
        let taken = state.note(log.append(record)?, bytes);
        // Relaxed: see `bytes`.
        self.bytes.fetch_add(taken, Ordering::Relaxed);
        Ok(())
    }

    /// Appends the record that makes it prepared.
    pub(in crate::engine) fn prepare(
        &self,
        log: &Log,
        record: Vec<u8>,
        xid: &[u8],
        flush: CommitFlush,
    ) -> Result<()> {
        let mut state = self.state.lock();
        debug_assert!(state.xid.is_none(), "transaction {} is prepared twice", self.txn);
        let bytes = record.len();
        // Others may wait for a sync here, but only for this transaction.
        let taken = state.note(log.harden(record, flush)?, bytes);
        state.xid = Some(xid.to_vec());
        // Relaxed: see `bytes`.
        self.bytes.fetch_add(taken, Ordering::Relaxed);
        Ok(())
    }

    /// Appends a rollback to a savepoint.
    pub(in crate::engine) fn roll_back_to(&self, log: &Log, sequence: u32) -> Result<()> {
        let record = LogRecord::RollbackTo { txn: self.txn, sequence }.encode();
        let mut state = self.state.lock();
        debug_assert!(!state.decided && state.xid.is_none(), "nothing is undone in part any more");
        let bytes = record.len();
        let end = log.append(record)?;
        state.note_void(Void { kept: sequence, until: Log::start_of(end, bytes) });
        Ok(())
    }

    /// To be called before the decision is appended: no copy ends behind it in the log.
    pub(in crate::engine) fn decide(&self) {
        let mut state = self.state.lock();
        debug_assert!(!state.decided, "transaction {} is decided once", self.txn);
        state.decided = true;
        state.copy = None;
    }

    /// The decision could not be logged.
    pub(in crate::engine) fn take_back(&self) {
        let mut state = self.state.lock();
        debug_assert!(state.decided, "there is no decision to take back");
        state.decided = false;
    }

    /// What its copy needs next; begins one if there is none. If nothing, the copy is in the log, and is the
    /// transaction's records from now on.
    pub(in crate::engine) fn next(&self, log: &Log) -> Result<Next> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.decided || state.given_up {
            return Ok(Next::Nothing);
        }
        let copy = state.copy.get_or_insert_with(|| Copy {
            start: log.end(),
            done: 0,
            records: Vec::new(),
            bytes: 0,
        });
        if let Some(&lsn) = state.records.get(copy.done) {
            return Ok(Next::Record(state.original(lsn)));
        }
        let start = copy.start;
        log.append(LogRecord::CopyEnd { txn: self.txn, start, xid: state.xid.as_deref() }.encode())?;
        if let Some(copy) = state.copy.take() {
            state.records = copy.records;
            // Relaxed: see `bytes`.
            self.bytes.store(copy.bytes, Ordering::Relaxed);
        }
        state.voids.retain(|void| void.until > start);
        Ok(Next::Complete(start))
    }

    /// Appends the copy of a record, or notes that nothing of it is left. Returns the bytes that it takes in the log;
    /// `None`: more of it is void by now, or the transaction is decided, and nothing was done.
    pub(in crate::engine) fn copied(
        &self,
        log: &Log,
        original: Original,
        copy: Option<Vec<u8>>,
    ) -> Result<Option<u64>> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        // Under the mutex: a rollback to a savepoint lies behind this copy, or was known when it was made.
        if state.decided || state.original(original.lsn) != original {
            return Ok(None);
        }
        let Some(under_way) = &mut state.copy else { return Ok(None) };
        let mut taken = 0;
        if let Some(record) = copy {
            let bytes = record.len();
            let end = log.append(record)?;
            let start = Log::start_of(end, bytes);
            let before = under_way.records.last().map_or(under_way.start, |last| last + 1);
            debug_assert!(start >= before, "a copy lies before {before}");
            under_way.records.push(start);
            taken = end - start;
        }
        debug_assert_eq!(state.records.get(under_way.done), Some(&original.lsn), "another one was due");
        under_way.bytes += taken;
        under_way.done += 1;
        Ok(Some(taken))
    }

    /// No copy is tried any more.
    pub(in crate::engine) fn give_up(&self) {
        let mut state = self.state.lock();
        state.given_up = true;
        state.copy = None;
    }

    /// Whether it is decided.
    pub(in crate::engine) fn is_decided(&self) -> bool {
        self.state.lock().decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::SimulatedFileSystem;
    use crate::log::RedoBuffer;
    use crate::types::WriteOp;
    use std::path::Path;
    use std::sync::Arc;

    fn log() -> Log {
        Log::create(Arc::new(SimulatedFileSystem::new(1)), Path::new("/log"), 1 << 20, 0).unwrap()
    }

    /// A record with one operation, for a trail; or the copy of one.
    fn record(sequence: u32, is_copy: bool) -> Vec<u8> {
        let mut redo = RedoBuffer::new();
        redo.push(9, sequence, b"key", WriteOp::Insert(b"value")).unwrap();
        match is_copy {
            true => LogRecord::Copy { txn: 7, ops: redo.ops() }.encode(),
            false => LogRecord::Ops { txn: 7, ops: redo.ops() }.encode(),
        }
    }

    fn original(trail: &Trail, log: &Log) -> Original {
        match trail.next(log).unwrap() {
            Next::Record(original) => original,
            _ => panic!("something is left to copy"),
        }
    }

    #[test]
    fn what_is_appended_while_it_is_copied_is_copied_too_and_then_the_copy_is_what_there_is() {
        let (log, trail) = (log(), Trail::new(7));
        trail.append(&log, record(1, false)).unwrap();
        let before = log.end();
        for sequence in 2..5 {
            let original = original(&trail, &log);
            trail.append(&log, record(sequence, false)).unwrap();
            assert!(trail.copied(&log, original, Some(record(sequence - 1, true))).unwrap().is_some());
        }
        let last = original(&trail, &log);
        trail.copied(&log, last, None).unwrap();
        assert!(matches!(trail.next(&log).unwrap(), Next::Complete(start) if start == before));
        // Three are left, behind the beginning of the copy.
        let first = original(&trail, &log);
        assert!(first.lsn >= before && trail.bytes() < before * 4);
        for _ in 0..3 {
            let next = original(&trail, &log);
            trail.copied(&log, next, None).unwrap();
        }
        assert!(matches!(trail.next(&log).unwrap(), Next::Complete(_)));
        assert_eq!(trail.bytes(), 0);
    }

    #[test]
    fn no_copy_goes_on_behind_a_decision_unless_that_is_taken_back() {
        let (log, trail) = (log(), Trail::new(7));
        trail.append(&log, record(1, false)).unwrap();
        let first = original(&trail, &log);
        trail.decide();
        let end = log.end();
        assert_eq!(trail.copied(&log, first, Some(record(1, true))).unwrap(), None);
        assert!(matches!(trail.next(&log).unwrap(), Next::Nothing));
        assert_eq!(log.end(), end);
        trail.take_back();
        let again = original(&trail, &log);
        assert!(again == first && trail.copied(&log, again, None).unwrap() == Some(0));
        trail.decide();
        assert!(matches!(trail.next(&log).unwrap(), Next::Nothing));
        assert_eq!(log.end(), end);
    }

    #[test]
    fn a_rollback_to_a_savepoint_voids_what_lies_before_it_and_is_seen_by_a_copy_under_way() {
        let (log, trail) = (log(), Trail::new(7));
        trail.append(&log, record(1, false)).unwrap();
        trail.append(&log, record(5, false)).unwrap();
        trail.roll_back_to(&log, 6).unwrap();
        trail.append(&log, record(8, false)).unwrap();
        let first = original(&trail, &log);
        assert_eq!(first.kept, 6);
        trail.roll_back_to(&log, 4).unwrap();
        trail.roll_back_to(&log, 5).unwrap();
        trail.append(&log, record(9, false)).unwrap();
        assert_eq!(trail.copied(&log, first, Some(record(1, true))).unwrap(), None);
        let kept: Vec<u32> = std::iter::repeat_with(|| {
            let next = original(&trail, &log);
            trail.copied(&log, next, None).unwrap();
            next.kept
        })
        .take(4)
        .collect();
        assert_eq!(kept, [4, 4, 4, u32::MAX]);
    }
}
