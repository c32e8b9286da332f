//! Which transactions there are, and how far each is: for information_schema.TEAK_TRX.
//!
//! Nothing is stopped for a look. A session's numbers are read between two looks at which transaction it works on, and
//! are taken for that one if both say the same: before the session says that it works on another, it says that it
//! works on none, and only then changes its numbers. What is known by transaction, as who waits for whom, is looked up
//! by that number; the snapshots, which are known by session, count only for a transaction that was there before they
//! were listed. So no row is made of two transactions.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;
use std::time::Duration;

use teak_core::server::{Figures, LogUse};
use teak_core::{Timestamp, TxnId};

use crate::engine::{EngineHandle, SessionTag};
use crate::host::Person;
use crate::session::Level;

/// A session that ends transactions this often while it is looked at has none that is worth a look.
const LOOKS: usize = 3;

/// What a transaction is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Its statements, or between two.
    Running = 0,
    /// The first phase of a commit is done.
    Prepared = 1,
    /// It is committing.
    Committing = 2,
    /// It is being undone.
    RollingBack = 3,
}

impl Phase {
    pub(crate) fn of(number: u8) -> Phase {
        match number {
            1 => Phase::Prepared,
            2 => Phase::Committing,
            3 => Phase::RollingBack,
            _ => Phase::Running,
        }
    }
}

/// An open transaction.
#[derive(Debug, Clone)]
pub struct OpenTransaction {
    /// Its number.
    pub txn: TxnId,
    /// Whose it is, in the process list; 0: nobody's, it is prepared.
    pub session: u64,
    /// What it is at.
    pub phase: Phase,
    /// When its first statement began, as [`crate::session::Session::note_time`] was told; `None` of nobody's.
    pub started: Option<u64>,
    /// Of nobody's: since when the log has it.
    pub age: Duration,
    /// Of a session's.
    pub level: Option<Level>,
    /// Its timestamp and age.
    pub snapshot: Option<(Timestamp, Duration)>,
    /// Rows that it has put in, changed and taken out, also if that was undone; not known of nobody's.
    pub rows: Option<u64>,
    /// As of its last lock or statement.
    pub figures: Figures,
    /// Log that is kept for it, in bytes.
    pub pinned_bytes: u64,
    /// Whom it waits for, the first of several, and for how long.
    pub waits_for: Option<(TxnId, Duration)>,
    /// As XA COMMIT takes it.
    pub xid: Option<String>,
    /// Who works on it, and the statement.
    pub person: Person,
}

/// All open transactions, by number.
pub fn open_transactions(engine: &EngineHandle) -> Vec<OpenTransaction> {
    let sessions = engine.all_sessions();
    let before: Vec<TxnId> = sessions.iter().map(|(_, tag)| tag.txn.load(Ordering::SeqCst)).collect();
    let mut snapshots = HashMap::new();
    for snapshot in engine.core.snapshots() {
        snapshots.entry(snapshot.session).or_insert((snapshot.timestamp, snapshot.age));
    }
    let mut found: Vec<OpenTransaction> = Vec::with_capacity(sessions.len());
    for ((number, tag), before) in sessions.iter().zip(before) {
        if let Some(mut open) = (0..LOOKS).find_map(|_| look(engine, *number, tag)) {
            open.snapshot = snapshots.get(&tag.id).copied().filter(|_| open.txn == before);
            found.push(open);
        }
    }
    // After the sessions: one that ends meanwhile leaves here what it has prepared.
    let own: HashSet<TxnId> = found.iter().map(|open| open.txn).collect();
    let unowned = engine.core.prepared_transactions();
    found.extend(unowned.into_iter().filter(|unowned| !own.contains(&unowned.txn)).map(|unowned| {
        OpenTransaction {
            phase: Phase::Prepared,
            figures: unowned.figures,
            xid: Some(crate::xid::text(&unowned.xid)),
            ..OpenTransaction::of(unowned.txn)
        }
    }));
    let uses: HashMap<TxnId, LogUse> = engine.core.log_uses().into_iter().map(|one| (one.txn, one)).collect();
    let mut waits = HashMap::new();
    for wait in engine.core.lock_waits() {
        waits.entry(wait.waiter).or_insert((wait.holder, wait.age));
    }
    for open in &mut found {
        open.waits_for = waits.get(&open.txn).copied();
        if let Some(one) = uses.get(&open.txn) {
            open.pinned_bytes = one.pinned_bytes;
            open.figures.redo_bytes += one.redo_bytes;
            open.age = one.age;
            open.xid = open.xid.take().or_else(|| one.xid.as_deref().map(crate::xid::text));
        }
    }
    found.sort_unstable_by_key(|open| open.txn);
    found
}

impl OpenTransaction {
    fn of(txn: TxnId) -> OpenTransaction {
        OpenTransaction {
            txn,
            session: 0,
            phase: Phase::Running,
            started: None,
            age: Duration::ZERO,
            level: None,
            snapshot: None,
            rows: None,
            figures: Figures::default(),
            pinned_bytes: 0,
            waits_for: None,
            xid: None,
            person: Person::default(),
        }
    }
}

/// What a session works on; `None` if it is nothing, or something else by now.
fn look(engine: &EngineHandle, number: u64, tag: &Arc<SessionTag>) -> Option<OpenTransaction> {
    let txn = tag.txn.load(Ordering::SeqCst);
    if txn == 0 {
        return None;
    }
    let progress = tag.progress();
    let person = engine.person(number)?;
    let figures = tag.vitals.read();
    // With that in `SessionTag::begin`: who has seen a number of the next transaction sees that this one has ended.
    fence(Ordering::Acquire);
    (tag.txn.load(Ordering::SeqCst) == txn).then(|| OpenTransaction {
        session: tag.id,
        phase: progress.phase,
        started: Some(progress.started),
        level: Some(progress.level),
        rows: Some(progress.rows),
        figures,
        person,
        ..OpenTransaction::of(txn)
    })
}
