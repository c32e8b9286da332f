//! What keeps the log from being given up: open transactions that have operations in it, and prepared ones.
//!
//! A checkpoint keeps the log from the first record of the oldest of them on, since a restart must find it. What old
//! ones have there is copied forward now and then (`log_copy`), so that is a few times their operations, besides what a
//! checkpoint is made for. When it is twice what a checkpoint is made for, and each time that has doubled, it is said
//! to whoever reads the error log who has written most of it.

use super::vitals::LogUse;
use super::work::Work;
use crate::engine::data::trail::Trail;
use crate::engine::shared::Shared;
use crate::log::Lsn;
use crate::options::LogLevel;
use crate::sync::Mutex;
use crate::types::TxnId;
use crate::Time;
use crossbeam_utils::CachePadded;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Why a transaction needs the log.
struct Hold {
    /// Its first record is here, or behind.
    from: Lsn,
    trail: Arc<Trail>,
    since: Instant,
    /// See [`crate::engine::Transaction::set_label`].
    label: u64,
    /// Bytes that were kept when its name was told last.
    told: u64,
}

/// So many transactions may come and go without meeting each other.
const SHARDS: usize = 64;

type Shard = CachePadded<Mutex<HashMap<TxnId, Hold>>>;

/// By transaction.
pub(crate) struct Holds {
    shards: [Shard; SHARDS],
    /// Held by who copies what transactions have in the log.
    pub(in crate::engine) copying: Mutex<()>,
}

impl Default for Holds {
    fn default() -> Holds {
        Holds { shards: std::array::from_fn(|_| Shard::default()), copying: Mutex::default() }
    }
}

impl Holds {
    fn shard(&self, txn: TxnId) -> &Shard {
        // Numbers are given out one after the other.
        &self.shards[txn as usize % SHARDS]
    }

    /// Where the log begins that they need. Not of one moment: a transaction that comes while this looks has its
    /// records behind the end that the log had then.
    pub(in crate::engine) fn first(&self) -> Option<Lsn> {
        let first = |shard: &Shard| shard.lock().values().map(|hold| hold.from).min();
        self.shards.iter().filter_map(first).min()
    }

    /// Bytes of the log that the operations of all of them take.
    pub(in crate::engine) fn redo_bytes(&self) -> u64 {
        let bytes = |shard: &Shard| shard.lock().values().map(|hold| hold.trail.bytes()).sum::<u64>();
        self.shards.iter().map(bytes).sum()
    }

    /// All of them; the log ends at `end`.
    pub(in crate::engine) fn uses(&self, end: Lsn, time: &Time) -> Vec<LogUse> {
        let mut uses = Vec::new();
        for shard in &self.shards {
            uses.extend(shard.lock().iter().map(|(&txn, hold)| LogUse {
                txn,
                pinned_bytes: end.saturating_sub(hold.from),
                redo_bytes: hold.trail.bytes(),
                age: time.since(hold.since),
                xid: hold.trail.xid(),
            }));
        }
        uses
    }

    /// Those that need the log from before `lsn`, the oldest first.
    pub(in crate::engine) fn before(&self, lsn: Lsn) -> Vec<(TxnId, Arc<Trail>)> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let old = shard.iter().filter(|(_, hold)| hold.from < lsn);
            found.extend(old.map(|(&txn, hold)| (hold.from, txn, hold.trail.clone())));
        }
        found.sort_unstable_by_key(|&(from, txn, _)| (from, txn));
        found.into_iter().map(|(_, txn, trail)| (txn, trail)).collect()
    }

    /// All that the log has for the transaction, if it is there still, is at or behind `from`.
    pub(in crate::engine) fn move_to(&self, txn: TxnId, from: Lsn) {
        if let Some(hold) = self.shard(txn).lock().get_mut(&txn) {
            debug_assert!(from >= hold.from, "a copy from {from} lies before {}", hold.from);
            hold.from = from;
        }
    }

    /// What whoever reads the error log should know of the log up to `end` that is kept, if it was not said yet: who
    /// has written most of what is copied, and so has all the others keep more as well.
    fn complaint(&self, end: Lsn, limit: u64, time: &Time, name: &dyn Fn(&[u8]) -> String) -> Option<String> {
        let kept = end.saturating_sub(self.first()?);
        if kept < limit.saturating_mul(2) {
            return None;
        }
        // Not one that has just come and goes soon.
        let is_old = |hold: &Hold| end.saturating_sub(hold.from) > limit;
        let sizes = |shard: &Shard| {
            let shard = shard.lock();
            let old = shard.iter().filter(|(_, hold)| is_old(hold));
            old.map(|(&txn, hold)| (hold.trail.bytes(), Reverse(hold.from), txn)).max()
        };
        let (redo, _, txn) = self.shards.iter().filter_map(sizes).max()?;
        let (trail, label, open) = {
            let mut shard = self.shard(txn).lock();
            let hold = shard.get_mut(&txn).filter(|hold| kept >= hold.told.saturating_mul(2))?;
            hold.told = kept;
            (hold.trail.clone(), hold.label, time.since(hold.since).as_secs())
        };
        let (who, what) = match trail.xid() {
            Some(xid) => (format!("prepared transaction {}", name(&xid)), "commit it or roll it back"),
            None if label != 0 => (format!("the open transaction of connection {label}"), "end it"),
            None => (format!("transaction {txn}"), "end it"),
        };
        Some(format!(
            "{} MiB of the log are kept for open and prepared transactions, which a restart would have to read; most was \
             written by {who}, which is {open} s old and has {} MiB there: {what}",
            kept >> 20,
            redo >> 20,
        ))
    }
}

impl Shared {
    /// Keeps the log from its present end on, until [`Shared::release_hold`]. To be called before the transaction's
    /// first record is appended, so that the position is at or before that record.
    pub(in crate::engine) fn hold_log(&self, work: &Work) -> Arc<Trail> {
        self.hold_log_from(work, self.log.end(), Trail::new(work.id))
    }

    /// The same for a recovered transaction, whose first record is at `first`.
    pub(in crate::engine) fn hold_log_from(&self, work: &Work, from: Lsn, trail: Trail) -> Arc<Trail> {
        debug_assert!(from <= self.log.end(), "the log is held from {from} on, which is behind its end");
        let trail = Arc::new(trail);
        let hold = Hold { from, trail: trail.clone(), since: self.time.now(), label: work.label, told: 0 };
        let other = self.undecided.holds.shard(work.id).lock().insert(work.id, hold);
        debug_assert!(other.is_none(), "transaction {} holds the log twice", work.id);
        trail
    }

    /// The transaction is decided and, if it committed, published.
    pub(in crate::engine) fn release_hold(&self, txn: TxnId) {
        let hold = self.undecided.holds.shard(txn).lock().remove(&txn);
        debug_assert!(hold.is_some(), "transaction {txn} does not hold the log");
    }

    /// Bytes of the log that are kept for open and prepared transactions.
    pub(in crate::engine) fn log_pinned_bytes(&self) -> u64 {
        let first = self.undecided.holds.first();
        first.map_or(0, |first| self.log.end().saturating_sub(first))
    }

    /// Says who pins much of the log. Called by each checkpoint.
    pub(in crate::engine) fn mind_pinned_log(&self) {
        let limit = self.settings.checkpoint_log_bytes();
        let name = |xid: &[u8]| self.observer.xid(xid);
        let complaint = self.undecided.holds.complaint(self.log.end(), limit, &self.time, &name);
        if let Some(text) = complaint {
            self.observer.message(LogLevel::Warning, &text);
        }
    }
}
