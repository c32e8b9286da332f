//! A transaction as those see it who make it wait: how its wait is going, and how to wake it.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use crate::sync::{Condvar, Mutex};

use super::row::RowId;
use crate::{Time, TxnId};

/// How a wait stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// No wait, or it was given up.
    Idle,
    /// Queued.
    Waiting,
    /// The lock was granted.
    Granted,
    /// Chosen to end a deadlock.
    Victim,
}

/// Why [`Party::sleep`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The lock was granted.
    Granted,
    /// Chosen to end a deadlock.
    Victim,
    /// [`Party::interrupt`] was called.
    Interrupted,
    /// The time was up.
    Late,
}

struct Wait {
    number: u64,
    standing: Standing,
    interrupted: bool,
}

/// One transaction's side of its waits.
pub(super) struct Party {
    txn: TxnId,
    weight: AtomicU64,
    preference: AtomicI32,
    wait: Mutex<Wait>,
    woken: Condvar,
    /// Rows that others have made entries of for it, since its covers were in their way.
    entries: Mutex<Vec<RowId>>,
}

impl Party {
    pub(super) fn new(txn: TxnId, preference: i32) -> Party {
        Party {
            txn,
            weight: AtomicU64::new(0),
            preference: AtomicI32::new(preference),
            wait: Mutex::new(Wait { number: 0, standing: Standing::Idle, interrupted: false }),
            woken: Condvar::new(),
            entries: Mutex::new(Vec::new()),
        }
    }

    /// It is another transaction's from now on, in the same memory if nobody else knows of it any more.
    pub(super) fn renew(party: &mut Arc<Party>, txn: TxnId) {
        match Arc::get_mut(party) {
            Some(party) => {
                debug_assert!(party.entries.get_mut().is_empty(), "entries that nobody has given back");
                *party = Party::new(txn, 0);
            }
            None => *party = Arc::new(Party::new(txn, 0)),
        }
    }

    pub(super) fn txn(&self) -> TxnId {
        self.txn
    }

    /// Another transaction has made an entry of a lock that a cover of this one has.
    pub(super) fn note_entry(&self, id: RowId) {
        self.entries.lock().push(id);
    }

    /// The entries that others have made.
    pub(super) fn take_entries(&self) -> Vec<RowId> {
        std::mem::take(&mut *self.entries.lock())
    }

    pub(super) fn set_weight(&self, rows: u64) {
        // Relaxed: see `cost`.
        self.weight.store(rows, Ordering::Relaxed);
    }

    pub(super) fn set_preference(&self, preference: i32) {
        // Relaxed: a hint for the choice of a victim.
        self.preference.store(preference, Ordering::Relaxed);
    }

    /// What its end as the victim of a deadlock would cost: its preference for that, and the rows it has written.
    pub(super) fn cost(&self) -> (i32, u64) {
        // Relaxed: the party waits, so its own thread changes neither; the wait's mutex has published both.
        (self.preference.load(Ordering::Relaxed), self.weight.load(Ordering::Relaxed))
    }

    /// Begins a wait; to be called before the request can be found in a queue.
    pub(super) fn begin(&self) {
        let mut wait = self.wait.lock();
        debug_assert!(wait.standing == Standing::Idle, "a transaction waits for one thing at a time");
        wait.number += 1;
        wait.standing = Standing::Waiting;
        wait.interrupted = false;
    }

    /// Number of the present wait, if it is still open.
    pub(super) fn waiting(&self) -> Option<u64> {
        let wait = self.wait.lock();
        (wait.standing == Standing::Waiting).then_some(wait.number)
    }

    fn settle(&self, standing: Standing) -> bool {
        let mut wait = self.wait.lock();
        let open = wait.standing == Standing::Waiting;
        debug_assert!(standing != Standing::Waiting, "a wait ends as one that goes on");
        if open {
            wait.standing = standing;
            self.woken.notify_one();
        }
        open
    }

    /// Grants the lock; `false` if the wait has ended otherwise.
    pub(super) fn grant(&self) -> bool {
        self.settle(Standing::Granted)
    }

    /// Ends wait `number` as the victim of a deadlock; `false` if it has ended otherwise.
    pub(super) fn sacrifice(&self, number: u64) -> bool {
        let mut wait = self.wait.lock();
        let open = wait.standing == Standing::Waiting && wait.number == number;
        if open {
            wait.standing = Standing::Victim;
            self.woken.notify_one();
        }
        open
    }

    /// Wakes the waiter without ending its wait.
    pub(super) fn interrupt(&self) {
        self.wait.lock().interrupted = true;
        self.woken.notify_one();
    }

    /// Ends the wait from the waiter's side; says how it stood.
    pub(super) fn end(&self) -> Standing {
        std::mem::replace(&mut self.wait.lock().standing, Standing::Idle)
    }

    /// Sleeps until the wait ends, an interrupt, or `until`.
    pub(super) fn sleep(&self, until: Instant, time: &Time) -> Woken {
        let mut wait = self.wait.lock();
        loop {
            match wait.standing {
                Standing::Granted => return Woken::Granted,
                Standing::Victim => return Woken::Victim,
                Standing::Idle | Standing::Waiting => {}
            }
            if std::mem::replace(&mut wait.interrupted, false) {
                return Woken::Interrupted;
            }
            if time.now() >= until {
                return Woken::Late;
            }
            time.wait_until(until, || {
                self.woken.wait_until(&mut wait, until);
            });
        }
    }
}
