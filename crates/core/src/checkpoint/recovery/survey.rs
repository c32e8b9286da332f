//! The first pass over the log: what became of each transaction, and what is small.

use super::ids::IdMap;
use crate::catalog::CATALOG_TREE;
use crate::log::{CounterChange, LogRecord, Lsn, OpKind, Ops};
use crate::types::{TreeId, TxnId};
use std::ops::Range;

/// One change to a catalog row, in log order.
#[derive(Debug)]
pub struct CatalogChange {
    txn: TxnId,
    at: Lsn,
    sequence: u32,
    part: Part,
    /// What happened.
    pub kind: OpKind,
    /// The row's key.
    pub key: Vec<u8>,
    /// Its value; empty for a delete.
    pub value: Vec<u8>,
}

impl CatalogChange {
    /// Where the record is in the log that has it.
    pub fn at(&self) -> Lsn {
        self.at
    }
}

/// Which kind of record of its transaction something is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Its commit.
    Commit,
    /// One with operations, before the end of the transaction.
    Original,
    /// A copy of such.
    Copy,
}

/// What the log says about a table's counter.
#[derive(Debug, Clone, Copy)]
pub struct RecoveredCounter {
    /// The next value.
    pub value: u64,
    /// The log set it: what the checkpoint knew counts no more. Otherwise the greater of both does.
    pub set: bool,
}

impl RecoveredCounter {
    /// Together with what the checkpoint knew.
    pub fn merged(self, stored: Option<u64>) -> u64 {
        if self.set {
            self.value
        } else {
            self.value.max(stored.unwrap_or(0))
        }
    }
}

/// Outcomes of the transactions in the log. A transaction whose only record is its commit needs no entry.
#[derive(Debug, Default)]
pub struct Survey {
    /// Transactions with earlier records than their commit, and where the commit is.
    committed: IdMap<Lsn>,
    /// First record of transactions not ended.
    open: IdMap<Lsn>,
    /// Prepared and not ended, with the identifier that their coordinator knows them by.
    pub prepared: IdMap<Vec<u8>>,
    /// Operations with a greater sequence in records before the position are void.
    voids: IdMap<Vec<(u32, Lsn)>>,
    /// The last complete copy of a transaction's operations: all that counts of what lies before its end.
    copies: IdMap<Range<Lsn>>,
    catalog: Vec<CatalogChange>,
    /// Counters, by the first tree of their table.
    pub counters: IdMap<RecoveredCounter>,
    /// The greatest transaction id met.
    pub last_txn: TxnId,
    /// Records of transactions met.
    pub records: u64,
    /// The newest checkpoint that the log knows to have been durable; 0: none.
    pub checkpoint: u64,
    /// Where the stretches begin that the second pass hands to its threads; the first with the first record.
    stretches: Vec<Lsn>,
}

/// A stretch of the log, for one thread at a time, is no shorter, in bytes.
const STRETCH_BYTES: u64 = 1 << 20;

/// The survey of one segment, by a thread that does not know what was before.
#[derive(Debug, Default)]
pub struct SurveyPart {
    survey: Survey,
    /// Commits of transactions that have no earlier record in the segment: some may have one before it.
    committed: Vec<(TxnId, Lsn)>,
    rolled_back: Vec<TxnId>,
}

impl SurveyPart {
    /// Takes the next record of the segment into account.
    pub fn visit(&mut self, lsn: Lsn, record: LogRecord<'_>) {
        match record {
            LogRecord::Commit { txn, .. } if !self.survey.open.contains_key(&txn) => {
                self.committed.push((txn, lsn));
            }
            LogRecord::Rollback { txn } => self.rolled_back.push(txn),
            _ => {}
        }
        self.survey.visit(lsn, record);
    }
}

impl Survey {
    /// Takes the next record of the log into account.
    pub fn visit(&mut self, lsn: Lsn, record: LogRecord<'_>) {
        if self.stretches.last().is_none_or(|&start| lsn - start >= STRETCH_BYTES) {
            self.stretches.push(lsn);
        }
        let txn = record.txn();
        self.last_txn = self.last_txn.max(txn);
        self.records += u64::from(!matches!(record, LogRecord::Checkpoint { .. }));
        match record {
            LogRecord::Checkpoint { number } => self.checkpoint = self.checkpoint.max(number),
            LogRecord::Ops { ops, .. } => {
                self.open.entry(txn).or_insert(lsn);
                self.catalog_changes(txn, lsn, ops, Part::Original);
            }
            LogRecord::Prepare { xid, ops, .. } => {
                self.open.entry(txn).or_insert(lsn);
                self.prepared.insert(txn, xid.to_vec());
                self.catalog_changes(txn, lsn, ops, Part::Original);
            }
            LogRecord::Copy { ops, .. } => self.catalog_changes(txn, lsn, ops, Part::Copy),
            LogRecord::CopyEnd { start, xid, .. } => {
                // It lies before the decision.
                self.open.insert(txn, start);
                if let Some(xid) = xid {
                    self.prepared.insert(txn, xid.to_vec());
                }
                self.copies.insert(txn, start..lsn);
            }
            LogRecord::Commit { ops, .. } => {
                if self.open.remove(&txn).is_some() {
                    self.prepared.remove(&txn);
                    self.committed.insert(txn, lsn);
                }
                self.catalog_changes(txn, lsn, ops, Part::Commit);
            }
            LogRecord::Rollback { .. } => {
                self.open.remove(&txn);
                self.prepared.remove(&txn);
            }
            LogRecord::RollbackTo { sequence, .. } => {
                self.voids.entry(txn).or_default().push((sequence, lsn));
            }
            LogRecord::Counter { table, value, change, .. } => self.counter(table, value, change),
        }
    }

    /// Takes into account what was found in the segment behind.
    pub fn absorb(&mut self, part: SurveyPart) {
        let SurveyPart { survey: next, committed, rolled_back } = part;
        for &txn in &rolled_back {
            self.open.remove(&txn);
            self.prepared.remove(&txn);
        }
        for (txn, at) in committed {
            if self.open.remove(&txn).is_some() {
                self.prepared.remove(&txn);
                self.committed.insert(txn, at);
            }
        }
        for (txn, at) in next.committed {
            self.open.remove(&txn);
            self.prepared.remove(&txn);
            self.committed.insert(txn, at);
        }
        for (txn, first) in next.open {
            match next.copies.contains_key(&txn) {
                true => self.open.insert(txn, first),
                false => Some(*self.open.entry(txn).or_insert(first)),
            };
        }
        self.copies.extend(next.copies);
        self.prepared.extend(next.prepared);
        for (txn, voids) in next.voids {
            self.voids.entry(txn).or_default().extend(voids);
        }
        self.catalog.extend(next.catalog);
        for (table, counter) in next.counters {
            let change = if counter.set { CounterChange::Set } else { CounterChange::Raise };
            self.counter(table, counter.value, change);
        }
        self.stretches.extend(next.stretches);
        self.last_txn = self.last_txn.max(next.last_txn);
        self.records += next.records;
        self.checkpoint = self.checkpoint.max(next.checkpoint);
    }

    fn counter(&mut self, table: TreeId, value: u64, change: CounterChange) {
        let counter = self.counters.entry(table).or_insert(RecoveredCounter { value: 0, set: false });
        match change {
            CounterChange::Raise => counter.value = counter.value.max(value),
            CounterChange::Set => *counter = RecoveredCounter { value, set: true },
        }
    }

    fn catalog_changes(&mut self, txn: TxnId, at: Lsn, ops: Ops<'_>, part: Part) {
        if ops.least_tree() > CATALOG_TREE {
            return;
        }
        for op in ops.iter().filter(|op| op.tree == CATALOG_TREE) {
            self.catalog.push(CatalogChange {
                txn,
                at,
                sequence: op.sequence,
                part,
                kind: op.kind,
                key: op.key.to_vec(),
                value: op.value.to_vec(),
            });
        }
    }

    /// What of a transaction's record at `at` its savepoints made void.
    pub fn voids(&self, txn: TxnId, at: Lsn) -> Voids<'_> {
        Voids { all: self.voids_of(txn), at }
    }

    /// The rollbacks to savepoints of a transaction: the last sequence that stays, and the position before which
    /// greater ones are void.
    pub fn voids_of(&self, txn: TxnId) -> &[(u32, Lsn)] {
        self.voids.get(&txn).map_or(&[], |voids| &voids[..])
    }

    /// Whether the record of `txn` at `at` counts: the originals of what was copied do not, and no more does what was
    /// copied for a copy that is not complete, or not the last.
    pub fn counts(&self, txn: TxnId, at: Lsn, part: Part) -> bool {
        let copy = self.copies.get(&txn);
        match part {
            Part::Commit => true,
            Part::Original => copy.is_none_or(|copy| at > copy.end),
            Part::Copy => copy.is_some_and(|copy| copy.contains(&at)),
        }
    }

    /// Where `txn` committed, if it had records before its commit.
    pub fn commit_of(&self, txn: TxnId) -> Option<Lsn> {
        self.committed.get(&txn).copied()
    }

    /// First record of a transaction that has not ended.
    pub fn first_record(&self, txn: TxnId) -> Option<Lsn> {
        self.open.get(&txn).copied()
    }

    /// The log up to `end`, in stretches that begin with a record.
    pub fn stretches(&self, end: Lsn) -> Vec<Range<Lsn>> {
        let ends = self.stretches.iter().skip(1).copied().chain([end]);
        self.stretches.iter().zip(ends).map(|(&start, end)| start..end).collect()
    }

    /// Catalog changes of committed transactions, in log order.
    pub fn take_catalog(&mut self) -> Vec<CatalogChange> {
        let mut changes = std::mem::take(&mut self.catalog);
        changes.retain(|c| {
            (c.part == Part::Commit || self.committed.contains_key(&c.txn))
                && self.counts(c.txn, c.at, c.part)
                && !self.voids(c.txn, c.at).contain(c.sequence)
        });
        changes
    }
}

/// See [`Survey::voids`].
#[derive(Clone, Copy)]
pub struct Voids<'a> {
    all: &'a [(u32, Lsn)],
    at: Lsn,
}

impl Voids<'_> {
    /// Whether the operation with this sequence is void.
    #[inline]
    pub fn contain(&self, sequence: u32) -> bool {
        self.all.iter().any(|&(kept, until)| sequence > kept && self.at < until)
    }
}
