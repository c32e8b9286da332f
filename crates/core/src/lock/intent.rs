//! Who holds a table against being changed as a whole, though no metadata lock says so.
//!
//! Most transactions need no mark here. Their callers keep definitions from changing under them, in the server by the
//! metadata lock of each table that their statements use, to their end. Two kinds do:
//!
//! - A *prepared* one may lose its owner, and does in every restart. It enters when it is prepared, once, with all
//!   trees that it has written to, while its owner still has it; those that recovery brings back enter again.
//! - One that has *looked* at rows of a table that no statement of it names (the parents of rows that it has written)
//!   and counts on what it has found, or not found, to its end. It enters at its first look at a tree.
//!
//! Writes cost nothing.
//!
//! ```text
//! Intents ──> 32 shards by transaction: txn -> its XID, trees written, looked at (a latch each to enter, to leave)
//!    └──────> bell: rung by an end while somebody waits; of which trees looks are waited for
//! ```
//!
//! A change of definition looks at all shards. While it waits nobody can enter for the same tree: the caller keeps new
//! writers and looks out. Nobody here waits for it in turn: a prepared transaction asks for no more locks, and one that
//! looks again asks whether its tree is waited for ([`Intents::awaits`]) rather than for the definition's lock. So
//! there is no deadlock to look for.

use crate::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};
use crossbeam_utils::CachePadded;

use crate::{Error, Result, Time, TreeId, TxnId, WaitPolicy, WaitRequest};

const SHARDS: usize = 32;
/// A waiter asks this often whether it was interrupted.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// What a transaction is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intention {
    /// It is prepared, and has written to the table.
    Prepared,
    /// It has looked at the table's rows, prepared or not.
    Looked,
}

/// The XID is there once it is prepared.
#[derive(Default)]
struct Entry {
    xid: Option<Arc<[u8]>>,
    written: Vec<TreeId>,
    looked: Vec<TreeId>,
}

/// Whose holds are in the way of a change.
struct Sought<'a> {
    trees: &'a [TreeId],
    intentions: &'a [Intention],
    /// The transaction of who asks.
    own: TxnId,
}

impl Sought<'_> {
    fn is(&self, txn: TxnId, entry: &Entry) -> bool {
        let any = |trees: &[TreeId]| trees.iter().any(|tree| self.trees.contains(tree));
        let holds = |intention: &Intention| match intention {
            Intention::Prepared => entry.xid.is_some() && any(&entry.written),
            Intention::Looked => any(&entry.looked),
        };
        txn != self.own && self.intentions.iter().any(holds)
    }
}

/// Somebody in the way.
struct Holder {
    txn: TxnId,
    xid: Option<Arc<[u8]>>,
}

impl Holder {
    /// What a change of definition ends with that cannot wait for it any longer.
    fn refusal(&self) -> Error {
        match &self.xid {
            Some(xid) => Error::Undecided { xid: xid.to_vec() },
            None => Error::LockTimeout,
        }
    }
}

type Shard = Mutex<HashMap<TxnId, Entry>>;

/// What transactions hold in this way.
#[derive(Default)]
pub struct Intents {
    time: Time,
    shards: [CachePadded<Shard>; SHARDS],
    waiting: AtomicUsize,
    /// Of which trees looks are waited for.
    bell: Mutex<Vec<TreeId>>,
    rung: Condvar,
}

/// One transaction's entry; it ends with this.
pub struct Intent {
    intents: Arc<Intents>,
    txn: TxnId,
    /// The same as in the entry, for the one who asks at each row.
    looked: Vec<TreeId>,
}

impl Intent {
    fn change(&self, change: impl FnOnce(&mut Entry)) {
        change(self.intents.shard(self.txn).lock().entry(self.txn).or_default());
    }

    /// The transaction counts on what it finds in the tree.
    pub fn look(&mut self, tree: TreeId) {
        if !self.has_looked(tree) {
            self.looked.push(tree);
            self.change(|entry| entry.looked.push(tree));
        }
    }

    /// Whether it has looked at the tree.
    #[inline]
    pub fn has_looked(&self, tree: TreeId) -> bool {
        self.looked.contains(&tree)
    }

    /// The transaction, known to its coordinator by `xid`, is about to be prepared and has written to `trees`.
    pub fn prepare(&mut self, xid: &[u8], trees: Vec<TreeId>) {
        self.change(|entry| (entry.xid, entry.written) = (Some(xid.into()), trees));
    }

    /// It was not prepared after all.
    pub fn withdraw(&mut self) {
        self.change(|entry| (entry.xid, entry.written) = (None, Vec::new()));
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        self.intents.shard(self.txn).lock().remove(&self.txn);
        // A waiter counts itself before it looks, and this looks after it has gone: one of the two sees the other.
        if self.intents.waiting.load(Ordering::SeqCst) > 0 {
            self.intents.ring();
        }
    }
}

impl Intents {
    /// Nobody is in the way; waits go by `time`.
    pub fn new(time: Time) -> Intents {
        Intents { time, ..Intents::default() }
    }

    fn shard(&self, txn: TxnId) -> &Shard {
        &self.shards[txn as usize % SHARDS]
    }

    fn ring(&self) {
        // With the mutex: who has looked and is about to sleep is not missed.
        let _bell = self.bell.lock();
        self.rung.notify_all();
    }

    /// For a transaction that is about to hold something; it has one of these.
    pub fn enter(self: &Arc<Self>, txn: TxnId) -> Intent {
        Intent { intents: self.clone(), txn, looked: Vec::new() }
    }

    fn holder(&self, sought: &Sought<'_>) -> Option<Holder> {
        self.shards.iter().find_map(|shard| {
            let shard = shard.lock();
            let (txn, entry) = shard.iter().find(|(txn, entry)| sought.is(**txn, entry))?;
            Some(Holder { txn: *txn, xid: entry.xid.clone() })
        })
    }

    /// An error if there is one.
    fn refuse(&self, sought: &Sought<'_>) -> Result<()> {
        self.holder(sought).map_or(Ok(()), |holder| Err(holder.refusal()))
    }

    /// [`Error::Undecided`] if a prepared transaction has written to one of `trees`.
    pub fn check(&self, trees: &[TreeId]) -> Result<()> {
        self.refuse(&Sought { trees, intentions: &[Intention::Prepared], own: TxnId::MAX })
    }

    /// Waits until no transaction but `own` holds any of `trees` in one of these ways. `told` is given the XID of a
    /// prepared one that is waited for, once.
    ///
    /// Errors: when the time is up [`Error::Undecided`] because of a prepared one, else [`Error::LockTimeout`];
    /// [`Error::Interrupted`].
    pub fn wait(
        &self,
        trees: &[TreeId],
        intentions: &[Intention],
        own: TxnId,
        wait: &WaitRequest<'_>,
        told: &dyn Fn(&[u8]),
    ) -> Result<()> {
        let sought = Sought { trees, intentions, own };
        if wait.policy == WaitPolicy::NoWait {
            return self.refuse(&sought);
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let awaited = if intentions.contains(&Intention::Looked) { trees } else { &[] };
        self.bell.lock().extend_from_slice(awaited);
        let result = self.sleep(&sought, wait, told);
        let mut all = self.bell.lock();
        for tree in awaited {
            if let Some(place) = all.iter().position(|other| other == tree) {
                all.swap_remove(place);
            }
        }
        drop(all);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn sleep(&self, sought: &Sought<'_>, wait: &WaitRequest<'_>, told: &dyn Fn(&[u8])) -> Result<()> {
        // A time-out too far away to be represented is none.
        let deadline = self.time.now().checked_add(wait.timeout);
        let Some(first) = self.holder(sought) else { return Ok(()) };
        // No latch is held while a callback runs.
        if let Some(xid) = &first.xid {
            told(xid);
        }
        if (wait.before_wait)() {
            (wait.waits_for)(&[first.txn]);
        }
        loop {
            if (wait.interrupted)() {
                return Err(Error::Interrupted);
            }
            let mut bell = self.bell.lock();
            let Some(holder) = self.holder(sought) else { return Ok(()) };
            let now = self.time.now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(holder.refusal());
            }
            let round = now + LOOK_AROUND;
            let until = deadline.map_or(round, |deadline| deadline.min(round));
            self.time.wait_until(until, || {
                self.rung.wait_until(&mut bell, until);
            });
        }
    }

    /// Whether somebody waits until nobody counts on what he has looked at in the tree: then who does is sure that it
    /// stays as it is.
    pub fn awaits(&self, tree: TreeId) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0 && self.bell.lock().contains(&tree)
    }

    /// Has all who wait ask whether they were interrupted.
    pub fn interrupt(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicBool;

    const LONG: Duration = Duration::from_secs(60);

    fn prepared(intents: &Arc<Intents>, trees: &[TreeId]) -> Intent {
        let mut intent = intents.enter(7);
        intent.prepare(b"x", trees.to_vec());
        intent
    }

    fn wait(intents: &Intents, trees: &[TreeId], wait: &WaitRequest<'_>, told: &dyn Fn(&[u8])) -> Result<()> {
        intents.wait(trees, &[Intention::Prepared], 0, wait, told)
    }

    #[test]
    fn a_wait_goes_by_the_time_of_the_engine() {
        let time = Time::simulated();
        let intents = Arc::new(Intents::new(time.clone()));
        let _intent = prepared(&intents, &[1]);
        let begin = time.now();
        let result = wait(&intents, &[1], &WaitRequest::waiting(LONG), &|_| ());
        assert!(matches!(result, Err(Error::Undecided { .. })), "{result:?}");
        assert_eq!(time.since(begin), LONG);
    }

    #[test]
    fn only_trees_that_were_written_to_are_waited_for() {
        let intents = Arc::new(Intents::default());
        let intent = prepared(&intents, &[1, 2]);
        intents.check(&[3, 4]).unwrap();
        wait(&intents, &[3], &WaitRequest::waiting(LONG), &|_| panic!("nobody is in the way")).unwrap();
        assert!(matches!(intents.check(&[4, 2]), Err(Error::Undecided { xid }) if xid == b"x"));
        drop(intent);
        intents.check(&[1, 2]).unwrap();
    }

    #[test]
    fn a_wait_ends_with_the_decision() {
        let intents = Arc::new(Intents::default());
        let intent = prepared(&intents, &[1]);
        let (told, asked) = std::sync::mpsc::channel();
        let waiter = {
            let intents = intents.clone();
            std::thread::spawn(move || {
                wait(&intents, &[1], &WaitRequest::waiting(LONG), &|xid| told.send(xid.to_vec()).unwrap())
            })
        };
        assert_eq!(asked.recv().unwrap(), b"x");
        drop(intent);
        waiter.join().unwrap().unwrap();
    }

    #[test]
    fn a_wait_ends_with_its_time_or_an_interrupt() {
        let intents = Arc::new(Intents::default());
        let _intent = prepared(&intents, &[1]);
        let short = WaitRequest::waiting(Duration::from_millis(20));
        assert!(matches!(wait(&intents, &[1], &short, &|_| ()), Err(Error::Undecided { .. })));
        assert!(matches!(
            wait(&intents, &[1], &WaitRequest::no_wait(), &|_| ()),
            Err(Error::Undecided { .. })
        ));
        let killed = Arc::new(AtomicBool::new(false));
        let (told, asked) = std::sync::mpsc::channel();
        let waiter = {
            let (intents, killed) = (intents.clone(), killed.clone());
            std::thread::spawn(move || {
                let interrupted = || killed.load(Ordering::SeqCst);
                let request = WaitRequest { interrupted: &interrupted, ..WaitRequest::waiting(LONG) };
                wait(&intents, &[1], &request, &|_| told.send(()).unwrap())
            })
        };
        asked.recv().unwrap();
        killed.store(true, Ordering::SeqCst);
        intents.interrupt();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Interrupted)));
    }

    #[test]
    fn looks_are_waited_for_by_who_asks_for_them() {
        let intents = Arc::new(Intents::default());
        let mut intent = intents.enter(7);
        intent.look(1);
        intent.look(1);
        intents.check(&[1]).unwrap();
        let now = WaitRequest::no_wait();
        let both = [Intention::Prepared, Intention::Looked];
        wait(&intents, &[1], &now, &|_| ()).unwrap();
        assert!(matches!(intents.wait(&[1, 2], &both, 0, &now, &|_| ()), Err(Error::LockTimeout)));
        intents.wait(&[2], &both, 0, &now, &|_| ()).unwrap();
        intents.wait(&[1], &both, 7, &now, &|_| ()).unwrap();
        // Prepared, it still counts on what it has looked at; what it has written to is another thing.
        intent.prepare(b"x", vec![2]);
        intents.check(&[1]).unwrap();
        assert!(matches!(intents.wait(&[1], &both, 0, &now, &|_| ()), Err(Error::Undecided { .. })));
        intent.withdraw();
        intents.check(&[2]).unwrap();
        assert!(intents.wait(&[1], &both, 0, &now, &|_| ()).is_err());
        drop(intent);
        intents.wait(&[1], &both, 0, &now, &|_| ()).unwrap();
    }

    #[test]
    fn who_is_waited_for_can_tell() {
        let intents = Arc::new(Intents::default());
        let mut intent = intents.enter(7);
        intent.look(1);
        assert!(!intents.awaits(1));
        let (began, begun) = std::sync::mpsc::channel();
        let waiter = {
            let intents = intents.clone();
            std::thread::spawn(move || {
                let began = || {
                    began.send(()).unwrap();
                    false
                };
                let request = WaitRequest { before_wait: &began, ..WaitRequest::waiting(LONG) };
                intents.wait(&[1, 2], &[Intention::Looked], 0, &request, &|_| panic!("nobody is prepared"))
            })
        };
        begun.recv().unwrap();
        assert!(intents.awaits(1) && intents.awaits(2) && !intents.awaits(3));
        drop(intent);
        waiter.join().unwrap().unwrap();
        assert!(!intents.awaits(1));
    }
}
