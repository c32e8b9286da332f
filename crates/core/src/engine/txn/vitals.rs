//! Numbers of a transaction that others may read while it works.
//!
//! Whoever begins transactions hands them over, one after the other, and says whose they are: the transaction only
//! stores what it has come to whenever it asks for a lock, or comes to the end of a statement. It is the only one to
//! change them, so that is a plain store each.

use super::work::Work;
use crate::engine::shared::Engine;
use crate::lock::SINGLE_LOCK_BYTES;
use crate::log::Lsn;
use crate::types::TxnId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// See the module's documentation. All orderings are Relaxed: they guard nothing, and whose they are is for the one who
/// hands them over to say.
#[derive(Debug, Default)]
pub struct Vitals {
    redo: AtomicU64,
    locks: AtomicU64,
    single_locks: AtomicU64,
}

/// What [`Vitals`] say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes that are to go to the log: those that the log has already are in [`LogUse`].
    pub redo_bytes: u64,
    /// Row locks.
    pub locks: u64,
    /// Those among them that are kept one by one, and not as runs of consecutive keys.
    pub single_locks: u64,
}

impl Figures {
    /// What the locks take, in bytes, about: a run takes next to nothing.
    pub fn lock_bytes(&self) -> u64 {
        self.single_locks * SINGLE_LOCK_BYTES
    }
}

impl Vitals {
    /// Those of a transaction that has done nothing.
    pub fn reset(&self) {
        self.store(Figures::default());
    }

    #[inline]
    pub(super) fn store(&self, figures: Figures) {
        // Relaxed: see the type.
        self.redo.store(figures.redo_bytes, Ordering::Relaxed);
        self.locks.store(figures.locks, Ordering::Relaxed);
        self.single_locks.store(figures.single_locks, Ordering::Relaxed);
    }

    /// As of its last lock or statement.
    pub fn read(&self) -> Figures {
        // Relaxed: see the type.
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (locks, single_locks) = (read(&self.locks), read(&self.single_locks));
        Figures { redo_bytes: read(&self.redo), locks, single_locks }
    }
}

/// Why the log is kept for a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogUse {
    /// Whose it is.
    pub txn: TxnId,
    /// From its first record on, in bytes: the log has it all as long as it is undecided.
    pub pinned_bytes: u64,
    /// What its operations take there.
    pub redo_bytes: u64,
    /// Since that record.
    pub age: Duration,
    /// It is prepared.
    pub xid: Option<Vec<u8>>,
}

/// A prepared transaction without a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unowned {
    /// Its number.
    pub txn: TxnId,
    /// As it was prepared.
    pub xid: Vec<u8>,
    /// As of its end.
    pub figures: Figures,
}

impl Work {
    /// Others see from now on how far it is.
    pub(super) fn show_by(&mut self, vitals: &Arc<Vitals>) {
        self.vitals.get_or_insert_with(|| vitals.clone());
    }

    /// They see it as it is now.
    pub(super) fn show(&self) {
        if let Some(vitals) = &self.vitals {
            vitals.store(self.figures());
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let (locks, single_locks) = self.lock_figures();
        Figures { redo_bytes: self.redo.len() as u64, locks, single_locks }
    }
}

impl Engine {
    /// The transactions for which the log is kept.
    pub fn log_uses(&self) -> Vec<LogUse> {
        let end: Lsn = self.shared.log.end();
        self.shared.undecided.holds.uses(end, &self.shared.time)
    }

    /// The transactions of [`Engine::prepared`].
    pub fn prepared_transactions(&self) -> Vec<Unowned> {
        self.shared.undecided.prepared.look(|xid, work| Unowned {
            txn: work.id,
            xid: xid.to_vec(),
            figures: work.figures(),
        })
    }
}
