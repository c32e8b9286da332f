//! Who waits for whom: the waiters, and the search for cycles among them.
//!
//! The graph stores no edges. A waiter names the row or tree it waits for, and the search asks there who is in the way.
//! A waiter enters after it was queued and then searches under the graph's latch, so of the members of a cycle the last
//! to enter sees all edges: no deadlock is missed. The edges are read one shard at a time, so a cycle that was found is
//! read a second time: if each member is still in the same wait and each edge still there, then all of them existed at
//! the moment between the two readings, for a transaction that waits gives up nothing.
//!
//! Who waits enters only after a while ([`super::owner`]): most waits end before that, and they share no latch. A
//! search costs the edges of those it comes by; the requests ahead in the queue of one row are one edge, to what they
//! wait for.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::Mutex;

use super::interval::KeyBound;
use super::party::Party;
use super::request::WaitNote;
use super::{LockTables, Target};
use crate::{Error, LockMode, Result, TreeId, TxnId};

struct Waiter {
    party: Arc<Party>,
    target: Target,
    since: Instant,
    sought: Arc<Sought>,
    note: Option<WaitNote>,
}

/// What somebody wants who waits, for people to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    /// Of the keys.
    pub tree: TreeId,
    /// From this key on: a row or a new key is from it and to it.
    pub from: KeyBound,
    /// To this one.
    pub to: KeyBound,
    /// As what: an insert into another one's range is exclusive.
    pub mode: LockMode,
    /// It is a range, or lies in one of another's.
    pub is_range: bool,
}

impl Sought {
    /// The key, if it is one.
    pub fn key(&self) -> Option<&[u8]> {
        match (&self.from, &self.to) {
            (Bound::Included(from), Bound::Included(to)) if from == to => Some(from),
            _ => None,
        }
    }

    /// One row.
    pub(super) fn row(tree: TreeId, key: &[u8], mode: LockMode) -> Sought {
        let key: Arc<[u8]> = Arc::from(key);
        Sought { tree, from: Bound::Included(key.clone()), to: Bound::Included(key), mode, is_range: false }
    }
}

/// Somebody waits for somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub waiter: TxnId,
    /// For whom.
    pub holder: TxnId,
    /// What for.
    pub sought: Arc<Sought>,
    /// How long it has.
    pub age: Duration,
}

/// Transactions that waited for each other, until one of them was chosen to give up.
#[derive(Clone)]
pub struct Deadlock {
    /// Each waits for another of them.
    pub members: Vec<Entangled>,
    /// Who has to give up.
    pub victim: TxnId,
    /// Why it.
    pub reason: Reason,
}

/// One of a [`Deadlock`].
#[derive(Clone)]
pub struct Entangled {
    /// Who.
    pub txn: TxnId,
    /// For whom it waits.
    pub waits_for: TxnId,
    /// What for.
    pub sought: Arc<Sought>,
    /// How long it has.
    pub age: Duration,
    /// What it has written, rows and entries of indexes.
    pub weight: u64,
    /// What its side says of the wait.
    pub note: Option<WaitNote>,
}

/// Why a transaction is the victim of a deadlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Whoever began it prefers that ([`crate::server::Transaction::set_victim_preference`]).
    Preference,
    /// It has written least.
    Weight,
    /// Of those it has begun to wait last, and so has closed the circle.
    Last,
}

impl Waiter {
    /// Orders the members of a cycle: the greatest is its victim. Among equals it is who began to wait last and so
    /// closed the circle, as in InnoDB: a program that runs into it alone knows which of its sessions gets the error.
    fn fitness(&self) -> (i32, Reverse<u64>, Instant, TxnId) {
        let (preference, weight) = self.party.cost();
        (preference, Reverse(weight), self.since, self.party.txn())
    }
}

/// One step of a path: `txn`, in its wait `number`, waits for `next`, perhaps behind `via`.
#[derive(Debug, Clone, Copy)]
struct Step {
    txn: TxnId,
    number: u64,
    via: Option<TxnId>,
    next: TxnId,
}

type Waiters = HashMap<TxnId, Waiter>;

/// All waiters.
pub(super) struct WaitGraph {
    waiters: Mutex<Waiters>,
}

impl WaitGraph {
    pub(super) fn new() -> WaitGraph {
        WaitGraph { waiters: Mutex::new(HashMap::new()) }
    }

    /// Enters a waiter that is queued `since` then, and resolves the deadlocks it closes; an error if it is itself the
    /// victim.
    pub(super) fn enter(
        &self,
        shared: &LockTables,
        party: &Arc<Party>,
        target: Target,
        since: Instant,
        (sought, note): (Sought, Option<WaitNote>),
        found: &mut Vec<Deadlock>,
    ) -> Result<()> {
        let sought = Arc::new(sought);
        let mut waiters = self.waiters.lock();
        waiters.insert(party.txn(), Waiter { party: party.clone(), target, since, sought, note });
        resolve(&waiters, shared, party.txn(), found)
    }

    /// Searches once more, for a waiter that has waited long.
    pub(super) fn search_again(
        &self,
        shared: &LockTables,
        txn: TxnId,
        found: &mut Vec<Deadlock>,
    ) -> Result<()> {
        resolve(&self.waiters.lock(), shared, txn, found)
    }

    /// Takes a waiter out whose wait has ended.
    pub(super) fn leave(&self, txn: TxnId) {
        self.waiters.lock().remove(&txn);
    }

    /// Wakes a waiter without ending its wait.
    pub(super) fn interrupt(&self, txn: TxnId) {
        if let Some(waiter) = self.waiters.lock().get(&txn) {
            waiter.party.interrupt();
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.waiters.lock().len()
    }

    /// All direct edges between waiters and those in their way, in their order.
    pub(super) fn waits(&self, shared: &LockTables) -> Vec<Wait> {
        let waiters = self.waiters.lock();
        let mut edges: Vec<Wait> = Vec::new();
        for (txn, waiter) in waiters.iter() {
            let age = shared.time.since(waiter.since);
            for blocker in shared.blockers(waiter.target, *txn, None) {
                let holder = blocker.via.unwrap_or(blocker.txn);
                edges.push(Wait { waiter: *txn, holder, sought: waiter.sought.clone(), age });
            }
        }
        edges.sort_unstable_by_key(|wait| (wait.waiter, wait.holder));
        edges.dedup_by_key(|wait| (wait.waiter, wait.holder));
        edges
    }
}

/// Ends every cycle through `start` by a victim each, and adds them to `found`; an error if one is `start`.
fn resolve(waiters: &Waiters, shared: &LockTables, start: TxnId, found: &mut Vec<Deadlock>) -> Result<()> {
    while let Some(cycle) = find_cycle(waiters, shared, start) {
        if !cycle.iter().all(|step| still_there(waiters, shared, step, start)) {
            // Something moved while it was read: what moved is not deadlocked. Look again.
            continue;
        }
        let members = cycle.iter().flat_map(|step| [Some(step.txn), step.via]).flatten();
        let victim = members
            .filter_map(|txn| waiters.get(&txn))
            .filter_map(|waiter| Some((waiter.fitness(), waiter.party.waiting()?, &waiter.party)))
            .max_by_key(|(fitness, _, _)| *fitness);
        match victim {
            Some((_, _, party)) if party.txn() == start => {
                found.push(deadlock(waiters, shared, &cycle, start));
                return Err(Error::Deadlock);
            }
            Some((_, number, party)) => {
                let deadlock = deadlock(waiters, shared, &cycle, party.txn());
                // If the sacrifice fails, its wait has ended by itself and with it the cycle.
                if party.sacrifice(number) {
                    found.push(deadlock);
                }
            }
            None => return Ok(()),
        }
    }
    Ok(())
}

/// The cycle, for people.
fn deadlock(waiters: &Waiters, shared: &LockTables, cycle: &[Step], victim: TxnId) -> Deadlock {
    let edges = cycle.iter().flat_map(|step| match step.via {
        Some(via) => [Some((step.txn, via)), Some((via, step.next))],
        None => [Some((step.txn, step.next)), None],
    });
    let waiting = |txn: TxnId| waiters.get(&txn);
    let members = edges.flatten().filter_map(|(txn, waits_for)| {
        let waiter = waiting(txn)?;
        let (sought, note) = (waiter.sought.clone(), waiter.note.clone());
        let age = shared.time.since(waiter.since);
        Some(Entangled { txn, waits_for, sought, age, weight: waiter.party.cost().1, note })
    });
    let members: Vec<Entangled> = members.collect();
    let cost = |txn| waiting(txn).map(|waiter| waiter.party.cost());
    let others = || members.iter().map(|member| member.txn).filter(|txn| *txn != victim).filter_map(cost);
    let reason = match cost(victim) {
        Some((preference, _)) if others().all(|(other, _)| other < preference) => Reason::Preference,
        Some((preference, weight))
            if others().all(|(other, written)| other < preference || written > weight) =>
        {
            Reason::Weight
        }
        _ => Reason::Last,
    };
    Deadlock { members, victim, reason }
}

/// A shortest cycle through `start`, breadth first.
fn find_cycle(waiters: &Waiters, shared: &LockTables, start: TxnId) -> Option<Vec<Step>> {
    let mut steps: Vec<(Step, Option<usize>)> = Vec::new();
    let mut seen = HashSet::from([start]);
    let mut frontier: Vec<(TxnId, Option<usize>)> = vec![(start, None)];
    let target = waiters.get(&start).map(|waiter| waiter.target);
    let mut done = 0;
    while done < frontier.len() {
        let (txn, parent) = frontier[done];
        done += 1;
        let Some(waiter) = waiters.get(&txn) else { continue };
        let Some(number) = waiter.party.waiting() else { continue };
        for blocker in shared.blockers(waiter.target, txn, (Some(waiter.target) == target).then_some(start)) {
            let step = Step { txn, number, via: blocker.via, next: blocker.txn };
            if blocker.txn == start {
                let mut cycle = vec![step];
                let mut at = parent;
                while let Some(i) = at {
                    cycle.push(steps[i].0);
                    at = steps[i].1;
                }
                return Some(cycle);
            }
            if seen.insert(blocker.txn) {
                steps.push((step, parent));
                frontier.push((blocker.txn, Some(steps.len() - 1)));
            }
        }
    }
    None
}

fn still_there(waiters: &Waiters, shared: &LockTables, step: &Step, start: TxnId) -> bool {
    let Some(waiter) = waiters.get(&step.txn) else { return false };
    let edge = |b: &super::Blocker| b.txn == step.next && b.via == step.via;
    waiter.party.waiting() == Some(step.number)
        && shared.blockers(waiter.target, step.txn, Some(start)).iter().any(edge)
}

#[cfg(test)]
mod tests {
    use super::super::request::WaitWatcher;
    use super::super::tests::{asks, owner, try_lock, until_waiting, waits_for, LONG};
    use super::super::{LockManager, LockOwner};
    use super::*;
    use crate::LockMode::{Exclusive, Shared};
    use crate::WaitRequest;
    use std::ops::Bound;

    #[test]
    fn a_wait_says_what_it_is_for() {
        let manager = LockManager::new(None);
        let (mut a, b) = (owner(&manager, 1), owner(&manager, 2));
        try_lock(&mut a, b"k", Exclusive).unwrap();
        let none = WaitRequest::no_wait();
        a.lock_range(7, Bound::Included(b"m"), Bound::Unbounded, Shared, &none).unwrap();
        let b = waits_for(b, b"k", Shared);
        until_waiting(&manager, 2);
        let c = asks(owner(&manager, 3), |o| o.check_insert(7, b"n", &WaitRequest::waiting(LONG)));
        until_waiting(&manager, 3);
        let sought: Vec<Sought> = manager.waits().iter().map(|wait| (*wait.sought).clone()).collect();
        let place = Sought { is_range: true, ..Sought::row(7, b"n", Exclusive) };
        assert_eq!(sought, [Sought::row(1, b"k", Shared), place]);
        assert!(manager.waits().iter().all(|wait| wait.age < LONG));
        drop(a);
        b.join().unwrap().1.unwrap();
        c.join().unwrap().1.unwrap();
    }

    /// Keeps the deadlocks that the waits of one transaction have closed.
    #[derive(Clone)]
    struct Kept(TxnId, Arc<Mutex<Vec<Deadlock>>>);

    impl WaitWatcher for Kept {
        fn settles(&self) -> Option<WaitNote> {
            Some(Arc::new(self.0))
        }
        fn lasts(&self, _: &Sought) {}
        fn deadlock(&self, deadlock: &Deadlock) {
            self.1.lock().push(deadlock.clone());
        }
    }

    /// Two wait for each other, of which the first came first; weights as given. The deadlock.
    fn deadlock_of(weights: [u64; 2], preferences: [i32; 2]) -> Deadlock {
        let manager = LockManager::new(None);
        let kept = Arc::new(Mutex::new(Vec::new()));
        let mut owners: Vec<_> =
            (1..=2).map(|txn| manager.open(txn, preferences[txn as usize - 1])).collect();
        let keys: [&[u8]; 2] = [b"a", b"b"];
        for (owner, (key, weight)) in owners.iter_mut().zip(keys.into_iter().zip(weights)) {
            try_lock(owner, key, Exclusive).unwrap();
            owner.set_weight(weight);
        }
        let ask = |owner: LockOwner, key: &'static [u8]| {
            let watcher = Kept(owner.txn(), kept.clone());
            asks(owner, move |o| {
                let wait = WaitRequest { watcher: Some(&watcher), ..WaitRequest::waiting(LONG) };
                let result = o.lock(1, key, Exclusive, &wait);
                o.release_all();
                result
            })
        };
        let (second, first) = (owners.pop().unwrap(), owners.pop().unwrap());
        let first = ask(first, b"b");
        until_waiting(&manager, 1);
        let second = ask(second, b"a");
        let results = [first.join().unwrap().1, second.join().unwrap().1];
        let mut kept = kept.lock();
        let deadlock = kept.pop().unwrap();
        assert!(kept.is_empty());
        for (txn, result) in (1..).zip(results) {
            assert_eq!(matches!(result, Err(Error::Deadlock)), txn == deadlock.victim, "{txn}");
        }
        deadlock
    }

    #[test]
    fn a_deadlock_is_told_with_all_who_are_in_it() {
        let deadlock = deadlock_of([3, 3], [0, 0]);
        let mut members = deadlock.members.clone();
        members.sort_by_key(|member| member.txn);
        let told: Vec<_> =
            members.iter().map(|m| (m.txn, m.waits_for, m.weight, (*m.sought).clone())).collect();
        assert_eq!(
            told,
            [(1, 2, 3, Sought::row(1, b"b", Exclusive)), (2, 1, 3, Sought::row(1, b"a", Exclusive))]
        );
        let note = |member: &Entangled| *member.note.clone().unwrap().downcast::<TxnId>().unwrap();
        assert_eq!(members.iter().map(note).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_deadlock_says_why_its_victim_is_the_one() {
        let why = |weights, preferences| {
            let deadlock = deadlock_of(weights, preferences);
            (deadlock.victim, deadlock.reason)
        };
        assert_eq!(why([3, 3], [0, 0]), (2, Reason::Last));
        assert_eq!(why([2, 3], [0, 0]), (1, Reason::Weight));
        assert_eq!(why([3, 2], [1, 0]), (1, Reason::Preference));
    }
}
