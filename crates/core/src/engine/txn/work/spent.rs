//! The end of a transaction, and what of its memory is left for the next of the same owner: a small one that follows
//! another allocates next to nothing.

use super::{Phase, Work};
use crate::engine::shared::Shared;
use crate::numbers::NumberMap;
use crate::types::TxnId;

/// A transaction with so many writes may have left leaves to the background that were due for consolidation.
const MANY_WRITES: u64 = 1024;
/// Entries of a list that are kept as memory for the next transaction.
const MOST_KEPT: usize = 32;

impl Work {
    pub(in crate::engine) fn close_snapshot(&mut self) {
        if let Some(mut snapshot) = self.snapshot.take() {
            snapshot.end();
            self.ended_snapshot = Some(snapshot);
        }
    }

    /// Lets the others on. The snapshot goes first: it holds garbage back.
    pub(super) fn end(mut self: Box<Self>, shared: &Shared) -> Spent {
        self.close_snapshot();
        debug_assert_eq!(self.phase == Phase::Active, self.xid.is_none(), "an identifier is left over");
        // One that is visible and that the log could not be told of is held on to until the restart.
        debug_assert!(self.trail.is_none() || shared.health.check().is_err(), "the log is held for nobody");
        if let Some(owner) = self.opened_locks() {
            owner.release_all();
        }
        self.intent = None;
        shared.counted.writes.add(self.weight);
        shared.counted.reads.add(self.reads);
        shared.counted.active.subtract(1);
        if self.weight >= MANY_WRITES && shared.context.attention().has_due() {
            shared.context.past.bell().ring();
        }
        self.start_anew();
        Spent(self)
    }

    /// As it was before its first use, but for memory that a small transaction needs. What is not named here does not
    /// compile.
    fn start_anew(&mut self) {
        let Work {
            id: _,
            label,
            phase,
            snapshot: _,
            ended_snapshot: _,
            xid,
            reads,
            status,
            owner: _,
            asked_for_locks,
            intent,
            weight,
            vitals: _,
            sequence,
            redo,
            direct,
            deferred,
            charge,
            marks,
            marks_memory,
            row,
            logged_redo,
            unlogged,
            touched,
            near,
            keys,
            founded,
            counters,
            trail,
            doomed,
        } = self;
        (*label, *phase, *reads, *weight, *sequence, *marks_memory) = (0, Phase::Active, 0, 0, 0, 0);
        (*asked_for_locks, *logged_redo, *unlogged) = (false, None, None);
        (*xid, *status, *intent, *charge) = (None, None, None, None);
        (*near, *trail, *doomed) = (None, None, None);
        redo.start_anew();
        direct.start_anew();
        deferred.start_anew();
        empty(marks);
        empty(founded);
        empty(counters);
        if let Some(row) = row {
            row.start_anew();
        }
        match touched.capacity() > MOST_KEPT {
            true => *touched = NumberMap::default(),
            false => touched.clear(),
        }
        keys.start_anew();
    }
}

/// A transaction that has ended, as memory for the next of the same owner. Its id is void.
pub(in crate::engine) struct Spent(Box<Work>);

impl Spent {
    /// The next one.
    pub(in crate::engine) fn renew(mut self, id: TxnId) -> Box<Work> {
        debug_assert!(
            self.0.phase == Phase::Active && !self.0.has_writes() && !self.0.asked_for_locks,
            "not spent"
        );
        self.0.id = id;
        self.0
    }
}

/// Empties a list, which keeps the memory that small transactions need.
#[inline]
pub(super) fn empty<T>(list: &mut Vec<T>) {
    match list.capacity() > MOST_KEPT {
        true => *list = Vec::new(),
        false => list.clear(),
    }
}
