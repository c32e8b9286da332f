//! The handle of an open engine: the core's engine, the server, and which sessions there are.
//!
//! Invariant: a session is in the registry exactly as long as its THD may be used by other threads.

use std::collections::BTreeMap;
use std::sync::atomic::{fence, AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use teak_core::TxnId;

use crate::deadlocks::Deadlocks;
use crate::host::{Host, Person, Thd};
use crate::session::Level;
use crate::transactions::Phase;
use teak_core::server::{Engine, Vitals};

/// What other threads may know of a session.
pub struct SessionTag {
    /// Its THD.
    pub thd: Thd,
    /// Its number in the process list.
    pub id: u64,
    /// Its transaction; 0 if there is none. Others read it; the session changes it by `EngineHandle::works_on`.
    pub txn: AtomicU64,
    /// Somebody is reporting to the server that he waits for it.
    reported: AtomicBool,
    /// What the transaction itself says of how far it is.
    pub vitals: Arc<Vitals>,
    rows: AtomicU64,
    started: AtomicU64,
    level: AtomicU8,
    phase: AtomicU8,
}

/// What a session says of its transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// When its first statement began.
    pub started: u64,
    pub level: Level,
    pub phase: Phase,
    /// Written.
    pub rows: u64,
}

impl SessionTag {
    /// Of a session without a transaction.
    pub fn new(thd: Thd, id: u64) -> SessionTag {
        SessionTag {
            thd,
            id,
            txn: AtomicU64::new(0),
            reported: AtomicBool::new(false),
            vitals: Arc::default(),
            rows: AtomicU64::new(0),
            started: AtomicU64::new(0),
            level: AtomicU8::new(0),
            phase: AtomicU8::new(0),
        }
    }

    /// The session's next transaction is like this; it has said that it works on none, and says then that it works on
    /// this one.
    pub(crate) fn begin(&self, progress: Progress) {
        debug_assert_eq!(self.txn.load(Ordering::SeqCst), 0, "numbers of two transactions are mixed");
        // Orders the end of the last transaction before what follows: see `transactions`.
        fence(Ordering::Release);
        self.vitals.reset();
        // Relaxed, here and below: the fence orders them, and `works_on` does after them.
        self.rows.store(progress.rows, Ordering::Relaxed);
        self.started.store(progress.started, Ordering::Relaxed);
        self.set_level(progress.level);
        self.set_phase(progress.phase);
    }

    /// What was said last.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            // Relaxed: as in `begin`.
            started: self.started.load(Ordering::Relaxed),
            level: Level::of(self.level.load(Ordering::Relaxed)),
            phase: Phase::of(self.phase.load(Ordering::Relaxed)),
            rows: self.rows.load(Ordering::Relaxed),
        }
    }

    #[inline]
    pub(crate) fn set_level(&self, level: Level) {
        // Relaxed: as in `begin`.
        self.level.store(level as u8, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn set_phase(&self, phase: Phase) {
        // Relaxed: as in `begin`.
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// A row more is written.
    #[inline]
    pub(crate) fn count_row(&self) {
        // Relaxed: as in `begin`. Nobody else changes it, so this need not be one step.
        self.rows.store(self.rows.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The sessions that exist, by the order they came.
#[derive(Default)]
pub struct Sessions {
    next: u64,
    tags: BTreeMap<u64, Arc<SessionTag>>,
}

/// An engine and the server that it works for.
pub struct EngineHandle {
    /// The core.
    pub core: Engine,
    /// The server.
    pub host: Box<dyn Host>,
    /// When it was opened.
    pub opened: Instant,
    /// Changes that were passed over, as a restart has taken their rows.
    pub lost_rows: AtomicU64,
    /// Rows that full scans passed over, as their condition cannot be true of them.
    pub passed_rows: AtomicU64,
    /// That were resolved.
    pub deadlocks: Deadlocks,
    sessions: Mutex<Sessions>,
}

impl EngineHandle {
    /// Wraps an open engine.
    pub fn new(core: Engine, host: Box<dyn Host>) -> EngineHandle {
        EngineHandle {
            core,
            host,
            opened: Instant::now(),
            lost_rows: AtomicU64::new(0),
            passed_rows: AtomicU64::new(0),
            deadlocks: Deadlocks::default(),
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Nothing panics while it is held that could leave it half changed.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a session; the number is for [`EngineHandle::leave`].
    pub(crate) fn enter(&self, tag: Arc<SessionTag>) -> u64 {
        let mut sessions = self.sessions();
        sessions.next += 1;
        let number = sessions.next;
        sessions.tags.insert(number, tag);
        number
    }

    /// Forgets a session; afterwards its THD is not used any more.
    pub(crate) fn leave(&self, number: u64) {
        self.sessions().tags.remove(&number);
    }

    /// Number of sessions that have used the engine and are connected.
    pub(crate) fn session_count(&self) -> usize {
        self.sessions().tags.len()
    }

    /// The process list numbers of the sessions with an open transaction, with the transaction.
    pub(crate) fn open_transactions(&self) -> Vec<(TxnId, u64)> {
        let open = |tag: &Arc<SessionTag>| (tag.txn.load(Ordering::SeqCst), tag.id);
        self.sessions().tags.values().map(open).filter(|(txn, _)| *txn != 0).collect()
    }

    /// All sessions, by their numbers in the registry.
    pub(crate) fn all_sessions(&self) -> Vec<(u64, Arc<SessionTag>)> {
        self.sessions().tags.iter().map(|(number, tag)| (*number, tag.clone())).collect()
    }

    /// Who works for a session; `None` if it has ended.
    pub(crate) fn person(&self, number: u64) -> Option<Person> {
        // The lock is held while the server looks at the THD: it cannot go away meanwhile.
        let sessions = self.sessions();
        sessions.tags.get(&number).map(|tag| self.host.person(tag.thd))
    }

    /// A session has begun a transaction, or ended it (0). When this returns nobody reports any more that he waits for
    /// the one before: the server kills whom it is told of whenever it comes to it, and knows how to undo that only
    /// while the transaction is the same. A replica's worker that has gone on would take the kill for its own end.
    pub(crate) fn works_on(&self, tag: &SessionTag, txn: TxnId) {
        tag.txn.store(txn, Ordering::SeqCst);
        // Who reports says so first and then looks at the transaction: either he sees the new one, or is seen here.
        if tag.reported.load(Ordering::SeqCst) {
            drop(self.sessions());
        }
    }

    /// Reports to the server that `waiter` waits for the sessions of `holders`, which ascend. Only waits of a replica's
    /// workers are, so transactions are not registered one by one: the sessions are searched instead.
    pub fn report_wait(&self, waiter: &SessionTag, holders: &[TxnId]) {
        let mut victims = false;
        // The lock is held while the server looks at the holder's THD: it cannot go away meanwhile.
        let sessions = self.sessions();
        let holds = |tag: &SessionTag| {
            let txn = tag.txn.load(Ordering::SeqCst);
            txn != 0 && holders.binary_search(&txn).is_ok()
        };
        for tag in sessions.tags.values().filter(|tag| tag.thd != waiter.thd && holds(tag)) {
            // From here on it does not end; see `works_on`.
            tag.reported.store(true, Ordering::SeqCst);
            if holds(tag) {
                victims |= self.host.report_wait(waiter.thd, tag.thd);
            }
            tag.reported.store(false, Ordering::SeqCst);
        }
        // The server may interrupt sessions before it returns.
        drop(sessions);
        if victims {
            self.host.reports_made();
        }
    }

    /// A panic was caught in a call of the server: it is in the error log already; nothing is written from here on.
    pub fn panicked(&self, message: &str) {
        self.core.fail(message);
    }
}
