//! What keeps the log from being given up: open transactions that have operations in it, and prepared ones.
//!
//! A checkpoint keeps the log from the first record of the oldest of them on, since a restart must find it. Nothing
//! bounds that but their end, so it is said to whoever reads the error log: when a transaction pins twice what a
//! checkpoint is made for, and each time that has doubled.

use super::shared::Shared;
use super::work::Work;
use crate::log::Lsn;
use crate::options::LogLevel;
use crate::types::TxnId;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Instant;

/// Why a transaction needs the log.
struct Hold {
    /// Its first record is here, or behind.
    from: Lsn,
    since: Instant,
    /// See [`super::Transaction::set_label`].
    label: u64,
    /// Of a prepared one.
    xid: Option<Vec<u8>>,
    /// Bytes it pinned when that was said last.
    told: u64,
}

/// So many transactions may come and go without meeting each other.
const SHARDS: usize = 64;

type Shard = CachePadded<Mutex<HashMap<TxnId, Hold>>>;

/// By transaction.
pub(crate) struct Holds([Shard; SHARDS]);

impl Default for Holds {
    fn default() -> Holds {
        Holds(std::array::from_fn(|_| Shard::default()))
    }
}

impl Holds {
    fn shard(&self, txn: TxnId) -> &Shard {
        // Numbers are given out one after the other.
        &self.0[txn as usize % SHARDS]
    }

    /// Where the log begins that they need. Not of one moment: a transaction that comes while this looks has its
    /// records behind the end that the log had then.
    pub(super) fn first(&self) -> Option<Lsn> {
        let first = |shard: &Shard| shard.lock().values().map(|hold| hold.from).min();
        self.0.iter().filter_map(first).min()
    }

    /// What the log's reader should know of whom pins too much of it, up to `end`, if it was not said yet.
    fn complaint(&self, end: Lsn, limit: u64, name: &dyn Fn(&[u8]) -> String) -> Option<String> {
        let first = self.first()?;
        let has_it = |shard: &&Shard| shard.lock().values().any(|hold| hold.from == first);
        let mut shard = self.0.iter().find(has_it)?.lock();
        let (txn, hold) = shard.iter_mut().min_by_key(|(_, hold)| hold.from)?;
        let bytes = end.saturating_sub(hold.from);
        if bytes < limit.saturating_mul(2).max(hold.told.saturating_mul(2)) {
            return None;
        }
        hold.told = bytes;
        let (who, what) = match &hold.xid {
            Some(xid) => (format!("prepared transaction {}", name(xid)), "commit it or roll it back"),
            None if hold.label != 0 => {
                (format!("the open transaction of connection {}", hold.label), "end it")
            }
            None => (format!("transaction {txn}"), "end it"),
        };
        Some(format!(
            "{who} has kept {} MiB of the log for {} s, which a restart would have to read; {what}",
            bytes >> 20,
            hold.since.elapsed().as_secs()
        ))
    }
}

impl Shared {
    /// Keeps the log from its present end on, until [`Shared::release_hold`]. To be called before the transaction's
    /// first record is appended, so that the position is at or before that record; again when it has got its XID.
    pub(super) fn hold_log(&self, work: &Work) {
        self.hold_log_from(work, self.log.end());
    }

    /// The same for a recovered transaction, whose first record is at `first`.
    pub(super) fn hold_log_from(&self, work: &Work, first: Lsn) {
        let (label, mut xid) = (work.label, work.xid.clone());
        let mut holds = self.holds.shard(work.id).lock();
        if let Some(hold) = holds.get_mut(&work.id) {
            std::mem::swap(&mut hold.xid, &mut xid);
            return;
        }
        holds.insert(work.id, Hold { from: first, since: Instant::now(), label, xid, told: 0 });
    }

    /// The transaction is decided and, if it committed, published.
    pub(super) fn release_hold(&self, txn: TxnId) {
        self.holds.shard(txn).lock().remove(&txn);
    }

    /// Bytes of the log that are kept for open and prepared transactions.
    pub(super) fn log_pinned_bytes(&self) -> u64 {
        let first = self.holds.first();
        first.map_or(0, |first| self.log.end().saturating_sub(first))
    }

    /// Says who pins much of the log. Called by each checkpoint.
    pub(super) fn mind_pinned_log(&self) {
        let limit = self.settings.checkpoint_log_bytes();
        let name = |xid: &[u8]| self.observer.xid(xid);
        let complaint = self.holds.complaint(self.log.end(), limit, &name);
        if let Some(text) = complaint {
            self.observer.message(LogLevel::Warning, &text);
        }
    }
}
