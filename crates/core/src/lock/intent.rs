//! Prepared transactions and the trees they have written to: whoever changes what a table is made of waits for them.
//!
//! A transaction with an owner needs no mark here. Its caller keeps definitions from changing under it, in the server
//! by the metadata lock of each table that its statements use, to its end. A prepared one may lose its owner, and does
//! in every restart. So a transaction enters when it is prepared, once, with all trees, while its owner still has it;
//! those that recovery brings back enter again. Writes cost nothing.
//!
//! ```text
//! Intents ──> 16 shards by transaction: txn -> its XID, its trees     (one latch for a prepare, one for its end)
//!    └──────> bell: rung by an end while somebody waits
//! ```
//!
//! A change of definition looks at all shards. While it waits nobody can enter for the same tree: the caller keeps new
//! writers out. Nobody here waits for it in turn, as a prepared transaction asks for no more locks, so there is no
//! deadlock to look for.

use crate::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};
use crossbeam_utils::CachePadded;

use crate::{Error, Result, Time, TreeId, TxnId, WaitPolicy, WaitRequest};

const SHARDS: usize = 16;
/// A waiter asks this often whether it was interrupted.
const LOOK_AROUND: Duration = Duration::from_secs(1);

struct Entry {
    xid: Arc<[u8]>,
    trees: Vec<TreeId>,
}

type Shard = Mutex<HashMap<TxnId, Entry>>;

/// What prepared transactions have written to.
#[derive(Default)]
pub struct Intents {
    time: Time,
    shards: [CachePadded<Shard>; SHARDS],
    waiting: AtomicUsize,
    bell: Mutex<()>,
    rung: Condvar,
}

/// One transaction's entry; it ends with this.
pub struct Intent {
    intents: Arc<Intents>,
    txn: TxnId,
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
    /// Nobody is prepared; waits go by `time`.
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

    /// `txn`, known to its coordinator by `xid`, is about to be prepared and has written to `trees`.
    pub fn enter(self: &Arc<Self>, txn: TxnId, xid: &[u8], trees: Vec<TreeId>) -> Intent {
        self.shard(txn).lock().insert(txn, Entry { xid: xid.into(), trees });
        Intent { intents: self.clone(), txn }
    }

    /// A prepared transaction that has written to one of `trees`, and its XID.
    fn holder(&self, trees: &[TreeId]) -> Option<(TxnId, Arc<[u8]>)> {
        self.shards.iter().find_map(|shard| {
            let shard = shard.lock();
            let holds = |entry: &Entry| entry.trees.iter().any(|tree| trees.contains(tree));
            shard.iter().find(|(_, entry)| holds(entry)).map(|(txn, entry)| (*txn, entry.xid.clone()))
        })
    }

    /// [`Error::Undecided`] if a prepared transaction has written to one of `trees`.
    pub fn check(&self, trees: &[TreeId]) -> Result<()> {
        self.holder(trees).map_or(Ok(()), |(_, xid)| Err(Error::Undecided { xid: xid.to_vec() }))
    }

    /// Waits until no prepared transaction has written to any of `trees`. `told` is given the XID that is waited for,
    /// once.
    ///
    /// Errors: [`Error::Undecided`] when the time is up, [`Error::Interrupted`].
    pub fn wait(&self, trees: &[TreeId], wait: &WaitRequest<'_>, told: &dyn Fn(&[u8])) -> Result<()> {
        if wait.policy == WaitPolicy::NoWait {
            return self.check(trees);
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let result = self.sleep(trees, wait, told);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn sleep(&self, trees: &[TreeId], wait: &WaitRequest<'_>, told: &dyn Fn(&[u8])) -> Result<()> {
        // A time-out too far away to be represented is none.
        let deadline = self.time.now().checked_add(wait.timeout);
        let Some((holder, xid)) = self.holder(trees) else { return Ok(()) };
        // No latch is held while a callback runs.
        told(&xid);
        if (wait.before_wait)() {
            (wait.waits_for)(&[holder]);
        }
        loop {
            if (wait.interrupted)() {
                return Err(Error::Interrupted);
            }
            let mut bell = self.bell.lock();
            let Some((_, xid)) = self.holder(trees) else { return Ok(()) };
            let now = self.time.now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Error::Undecided { xid: xid.to_vec() });
            }
            let round = now + LOOK_AROUND;
            let until = deadline.map_or(round, |deadline| deadline.min(round));
            self.time.wait_until(until, || {
                self.rung.wait_until(&mut bell, until);
            });
        }
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

    #[test]
    fn a_wait_goes_by_the_time_of_the_engine() {
        let time = Time::simulated();
        let intents = Arc::new(Intents::new(time.clone()));
        let _intent = intents.enter(7, b"x", vec![1]);
        let begin = time.now();
        let result = intents.wait(&[1], &WaitRequest::waiting(LONG), &|_| ());
        assert!(matches!(result, Err(Error::Undecided { .. })), "{result:?}");
        assert_eq!(time.since(begin), LONG);
    }

    #[test]
    fn only_trees_that_were_written_to_are_waited_for() {
        let intents = Arc::new(Intents::default());
        let intent = intents.enter(7, b"x", vec![1, 2]);
        intents.check(&[3, 4]).unwrap();
        intents.wait(&[3], &WaitRequest::waiting(LONG), &|_| panic!("nobody is in the way")).unwrap();
        assert!(matches!(intents.check(&[4, 2]), Err(Error::Undecided { xid }) if xid == b"x"));
        drop(intent);
        intents.check(&[1, 2]).unwrap();
    }

    #[test]
    fn a_wait_ends_with_the_decision() {
        let intents = Arc::new(Intents::default());
        let intent = intents.enter(7, b"x", vec![1]);
        let (told, asked) = std::sync::mpsc::channel();
        let waiter = {
            let intents = intents.clone();
            std::thread::spawn(move || {
                intents.wait(&[1], &WaitRequest::waiting(LONG), &|xid| told.send(xid.to_vec()).unwrap())
            })
        };
        assert_eq!(asked.recv().unwrap(), b"x");
        drop(intent);
        waiter.join().unwrap().unwrap();
    }

    #[test]
    fn a_wait_ends_with_its_time_or_an_interrupt() {
        let intents = Arc::new(Intents::default());
        let _intent = intents.enter(7, b"x", vec![1]);
        let short = WaitRequest::waiting(Duration::from_millis(20));
        assert!(matches!(intents.wait(&[1], &short, &|_| ()), Err(Error::Undecided { .. })));
        assert!(matches!(intents.wait(&[1], &WaitRequest::no_wait(), &|_| ()), Err(Error::Undecided { .. })));
        let killed = Arc::new(AtomicBool::new(false));
        let (told, asked) = std::sync::mpsc::channel();
        let waiter = {
            let (intents, killed) = (intents.clone(), killed.clone());
            std::thread::spawn(move || {
                let interrupted = || killed.load(Ordering::SeqCst);
                let wait = WaitRequest { interrupted: &interrupted, ..WaitRequest::waiting(LONG) };
                intents.wait(&[1], &wait, &|_| told.send(()).unwrap())
            })
        };
        asked.recv().unwrap();
        killed.store(true, Ordering::SeqCst);
        intents.interrupt();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Interrupted)));
    }
}
