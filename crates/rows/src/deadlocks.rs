//! The last deadlocks: for information_schema.TEAK_DEADLOCKS, SHOW ENGINE TEAK STATUS and the error log.
//!
//! Whoever waits for a while notes who he is and in which statement, on his own thread; if his wait becomes a part of a
//! deadlock, that is there when it is told. So nobody has to look at the session of another.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use teak_core::server::{Deadlock, Entangled, Reason, Sought, TreeName, WaitNote};
use teak_core::{LockMode, LogLevel, TxnId};

use crate::engine::EngineHandle;
use crate::host::Person;

/// So many are kept until somebody says otherwise.
pub const DEFAULT_HISTORY: usize = 100;

/// What a session says of a wait of its own.
pub(crate) struct Note {
    pub session: u64,
    pub person: Person,
}

/// One of the transactions of a deadlock.
#[derive(Debug, Clone)]
pub struct Member {
    /// Who.
    pub txn: TxnId,
    /// Its number in the process list.
    pub session: u64,
    /// Who worked for it, and at what.
    pub person: Person,
    /// For whom it waited.
    pub waits_for: TxnId,
    /// What for.
    pub sought: Arc<Sought>,
    /// Of which table; `None`: it is not open any more.
    pub name: Option<TreeName>,
    /// How long it had.
    pub age: Duration,
    /// Rows and entries of indexes that it had written.
    pub written: u64,
}

/// A deadlock that was resolved.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// They are counted since the start, from 1.
    pub number: u64,
    /// When that was.
    pub at: SystemTime,
    /// Each waited for another of them.
    pub members: Vec<Member>,
    /// Who had to give up.
    pub victim: TxnId,
    /// Why it.
    pub reason: Reason,
}

/// What people are told of why a transaction is the victim.
pub fn reason_text(reason: Reason) -> &'static str {
    match reason {
        Reason::Preference => "preferred as victim",
        Reason::Weight => "wrote least",
        Reason::Last => "waited last",
    }
}

/// The last of them.
pub struct Deadlocks {
    last: Mutex<(u64, VecDeque<Arc<Resolved>>)>,
    most: AtomicUsize,
    prints: AtomicBool,
}

impl Default for Deadlocks {
    fn default() -> Deadlocks {
        Deadlocks {
            last: Mutex::default(),
            most: AtomicUsize::new(DEFAULT_HISTORY),
            prints: AtomicBool::new(false),
        }
    }
}

impl Deadlocks {
    fn last(&self) -> MutexGuard<'_, (u64, VecDeque<Arc<Resolved>>)> {
        // Nothing panics while it is held that could leave it half changed.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on so many are kept.
    pub fn keep(&self, most: usize) {
        // Relaxed: a number.
        self.most.store(most, Ordering::Relaxed);
        self.last().1.truncate(most);
    }

    /// Whether each goes to the error log.
    pub fn print(&self, prints: bool) {
        // Relaxed: a number.
        self.prints.store(prints, Ordering::Relaxed);
    }

    /// Those that are kept, the newest first.
    pub fn list(&self) -> Vec<Arc<Resolved>> {
        self.last().1.iter().cloned().collect()
    }
}

impl EngineHandle {
    /// One was found, by the thread of one of its members.
    pub(crate) fn note_deadlock(&self, deadlock: &Deadlock) {
        let trees: HashSet<_> = deadlock.members.iter().map(|member| member.sought.tree).collect();
        let names = self.core.tree_names(&trees);
        let member = |entangled: &Entangled| {
            let note = entangled.note.clone().and_then(|note: WaitNote| note.downcast::<Note>().ok());
            Member {
                txn: entangled.txn,
                session: note.as_ref().map_or(0, |note| note.session),
                person: note.map_or_else(Person::default, |note| note.person.clone()),
                waits_for: entangled.waits_for,
                sought: entangled.sought.clone(),
                name: names.get(&entangled.sought.tree).cloned(),
                age: entangled.age,
                written: entangled.weight,
            }
        };
        let mut resolved = Resolved {
            number: 0,
            at: SystemTime::now(),
            members: deadlock.members.iter().map(member).collect(),
            victim: deadlock.victim,
            reason: deadlock.reason,
        };
        let resolved = {
            let (count, last) = &mut *self.deadlocks.last();
            *count += 1;
            resolved.number = *count;
            let resolved = Arc::new(resolved);
            last.push_front(resolved.clone());
            // Relaxed: a number.
            last.truncate(self.deadlocks.most.load(Ordering::Relaxed));
            resolved
        };
        // Relaxed: a number.
        if self.deadlocks.prints.load(Ordering::Relaxed) {
            self.host.log(LogLevel::Note, &self.deadlock_text(&resolved));
        }
    }

    /// A line of text, and one for each member.
    pub(crate) fn deadlock_text(&self, resolved: &Resolved) -> String {
        let mut text = format!(
            "deadlock {} of {} transactions; transaction {} was rolled back, as it {}",
            resolved.number,
            resolved.members.len(),
            resolved.victim,
            reason_text(resolved.reason)
        );
        for member in &resolved.members {
            let table = member.name.as_ref().map_or("a table that is closed", |name| &name.table);
            text += &format!(
                "\n  transaction {} (connection {}, {} writes) waited {:.3} s for transaction {}, for {} {} of {table}: {}\n    {}",
                member.txn,
                member.session,
                member.written,
                member.age.as_secs_f64(),
                member.waits_for,
                match member.sought.mode {
                    LockMode::Exclusive => "exclusive",
                    LockMode::Shared => "shared",
                },
                if member.sought.is_range { "range" } else { "row" },
                self.host.key_text(member.name.as_ref(), &member.sought),
                String::from_utf8_lossy(&member.person.query),
            );
        }
        text
    }
}
