//! Replaying the log after a start.
//!
//! Two passes, each on all processors. [`Survey`] learns what became of each transaction and collects what is small:
//! catalog rows and counters; threads take segments of the log and put what they find together in log order. [`replay`]
//! then applies the operations of committed transactions, for each key in the order in which its row lock was held,
//! which is log order. Threads take stretches of the log and spread what they read over workers by a hash of tree and
//! key, in batches that each worker takes in log order (`lanes`). A worker holds back what it gets, in memory that the
//! cache accounts for, keeps the last operation on each key, and writes that to the trees in key order: a row that the
//! log changes a hundred times is written once.
//!
//! All replayed operations carry one status that is published beforehand: nobody reads yet. Operations of prepared
//! transactions carry their own, undecided one.

mod apply;
mod ids;
mod lanes;
mod latest;
mod replay;
mod survey;
mod targets;

pub use replay::{replay, Plan};
pub use survey::{CatalogChange, Survey, SurveyPart};

use crate::log::{LogRecord, Lsn};
use crate::mvcc::TxnStatus;
use crate::tree::Tree;
use crate::types::{TreeId, TxnId};
use crate::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A prepared transaction as the log has it.
pub struct RecoveredTransaction {
    /// Its identifier.
    pub txn: TxnId,
    /// The identifier its coordinator knows it by.
    pub xid: Vec<u8>,
    /// Its first record: the log from there on must be kept.
    pub first: Lsn,
    /// Where its records with operations begin, in any order.
    pub records: Vec<Lsn>,
    /// What these operations take in the log, in bytes, if nothing of it is packed.
    pub bytes: u64,
    /// Its rollbacks to savepoints: the last sequence that stays, and the position before which greater ones are void.
    pub voids: Vec<(u32, Lsn)>,
    /// Undecided.
    pub status: Arc<TxnStatus>,
    /// The greatest sequence of its operations.
    pub sequence: u32,
    /// The keys it has written, some more than once.
    pub writes: Vec<(Arc<Tree>, Vec<u8>)>,
    /// What its commit adds to the row counts.
    pub rows: HashMap<TreeId, i64>,
}

/// Finds the tree of an id: `None` for one that the catalog does not know (any more).
pub type Resolve<'a> = dyn Fn(TreeId) -> Result<Option<Arc<Tree>>> + Sync + 'a;

/// Calls the visitor with the records of a stretch of the log.
pub type ReadStretch<'a> =
    dyn Fn(Range<Lsn>, &mut dyn FnMut(Lsn, LogRecord<'_>) -> Result<()>) -> Result<()> + Sync + 'a;

/// What the second pass did.
#[derive(Default)]
pub struct Replayed {
    /// Transactions waiting for their coordinator.
    pub prepared: Vec<RecoveredTransaction>,
    /// Trees with committed operations that could not be applied because the tree is damaged.
    pub damaged: HashMap<TreeId, Error>,
    /// All trees that were written to.
    pub trees: Vec<Arc<Tree>>,
    /// Operations applied.
    pub operations: u64,
}
