//! The lock room against a model: random requests of rows, ranges and inserts, releases, time-outs; each decision is
//! compared.
//!
//! Everything runs on one thread: a request that must wait is queued and not slept on, so each case can be repeated.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::owner::LockOwner;
use super::party::Standing;
use super::row::{Attempt, IfBlocked, RowId};
use super::*;
use crate::LockMode::{Exclusive, Shared as SharedMode};
use crate::{Error, LockMode, WaitRequest};

const TXNS: usize = 5;
const KEYS: u8 = 40;

#[derive(Debug, Clone)]
enum Step {
    /// Locks so many rows of consecutive keys, downwards or upwards.
    Lock {
        txn: usize,
        key: u8,
        rows: u8,
        down: bool,
        mode: LockMode,
        waits: bool,
    },
    /// Locks all keys of a stretch at once, if nobody else is there.
    LockKeys {
        txn: usize,
        from: u8,
        keys: u8,
        mode: LockMode,
    },
    Unlock {
        txn: usize,
        key: u8,
    },
    /// Makes a shared lock exclusive, if it is to be had, and shared again.
    Try {
        txn: usize,
        key: u8,
    },
    TimeOut {
        txn: usize,
    },
    Range {
        txn: usize,
        from: u8,
        to: u8,
    },
    Insert {
        txn: usize,
        key: u8,
    },
    End {
        txn: usize,
    },
}

fn mode() -> impl Strategy<Value = LockMode> {
    prop_oneof![2 => Just(Exclusive), 3 => Just(SharedMode)]
}

fn step() -> impl Strategy<Value = Step> {
    let txn = 0..TXNS;
    prop_oneof![
        12 => (txn.clone(), 0..KEYS, prop_oneof![3 => Just(1u8), 2 => 1..20u8], any::<bool>(), mode(), any::<bool>())
            .prop_map(|(txn, key, rows, down, mode, waits)| Step::Lock { txn, key, rows, down, mode, waits }),
        4 => (txn.clone(), 0..KEYS, 1..20u8, mode())
            .prop_map(|(txn, from, keys, mode)| Step::LockKeys { txn, from, keys, mode }),
        2 => (txn.clone(), 0..KEYS).prop_map(|(txn, key)| Step::Unlock { txn, key }),
        4 => (txn.clone(), 0..KEYS).prop_map(|(txn, key)| Step::Try { txn, key }),
        1 => txn.clone().prop_map(|txn| Step::TimeOut { txn }),
        2 => (txn.clone(), 0..KEYS, 0..6u8).prop_map(|(txn, from, n)| Step::Range { txn, from, to: from + n }),
        2 => (txn.clone(), 0..KEYS).prop_map(|(txn, key)| Step::Insert { txn, key }),
        2 => txn.prop_map(|txn| Step::End { txn }),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    txn: usize,
    mode: LockMode,
    upgrade: bool,
}

/// Who holds and who waits, key by key; the ranges as they were asked for.
#[derive(Default)]
struct Model {
    held: BTreeMap<u8, BTreeMap<usize, LockMode>>,
    queues: BTreeMap<u8, Vec<Waiting>>,
    ranges: Vec<(usize, u8, u8)>,
}

impl Model {
    fn holds(&self, txn: usize, key: u8) -> Option<LockMode> {
        self.held.get(&key).and_then(|holders| holders.get(&txn)).copied()
    }

    fn compatible(&self, txn: usize, key: u8, mode: LockMode) -> bool {
        let holders = self.held.get(&key).into_iter().flatten();
        holders.filter(|(other, _)| **other != txn).all(|(_, theirs)| mode.max(*theirs) == SharedMode)
    }

    fn hold(&mut self, txn: usize, key: u8, mode: LockMode) {
        let held = self.held.entry(key).or_default().entry(txn).or_insert(mode);
        *held = mode.max(*held);
    }

    /// What the request comes to; if it waits it is queued.
    fn request(&mut self, txn: usize, key: u8, mode: LockMode, waits: bool) -> Attempt {
        let mine = self.holds(txn, key);
        if mine.is_some_and(|mine| mine >= mode) {
            return Attempt::Done(LockOutcome::Held);
        }
        let upgrade = mine.is_some();
        let outcome = if upgrade { LockOutcome::Upgraded } else { LockOutcome::New };
        let queue = self.queues.entry(key).or_default();
        let overtakes = queue.iter().any(|waiting| waiting.upgrade || !upgrade);
        if !overtakes && self.compatible(txn, key, mode) {
            self.hold(txn, key, mode);
            return Attempt::Done(outcome);
        }
        if waits {
            let queue = self.queues.entry(key).or_default();
            let upgrades = queue.iter().take_while(|waiting| waiting.upgrade).count();
            let place = if upgrade { upgrades } else { queue.len() };
            queue.insert(place, Waiting { txn, mode, upgrade });
        }
        Attempt::Blocked(outcome)
    }

    /// Grants what can be granted now.
    fn settle(&mut self) {
        for key in 0..KEYS + 20 {
            while let Some(first) = self.queues.get(&key).and_then(|queue| queue.first()).copied() {
                if !self.compatible(first.txn, key, first.mode) {
                    break;
                }
                self.hold(first.txn, key, first.mode);
                self.queues.entry(key).or_default().remove(0);
            }
        }
    }

    fn is_waiting(&self, txn: usize) -> bool {
        self.queues.values().flatten().any(|waiting| waiting.txn == txn)
    }

    fn give_up(&mut self, txn: usize) {
        self.queues.values_mut().for_each(|queue| queue.retain(|waiting| waiting.txn != txn));
    }

    fn end(&mut self, txn: usize) {
        self.give_up(txn);
        self.held.values_mut().for_each(|holders| {
            holders.remove(&txn);
        });
        self.ranges.retain(|(owner, _, _)| *owner != txn);
    }

    /// Whom a waiter must let go first.
    fn blockers(&self, txn: usize) -> Vec<usize> {
        let mut blockers = Vec::new();
        for (key, queue) in &self.queues {
            let Some(place) = queue.iter().position(|waiting| waiting.txn == txn) else { continue };
            let mode = queue[place].mode;
            let ahead = queue[..place].iter().map(|waiting| (waiting.txn, waiting.mode));
            let holders = self.held.get(key).into_iter().flatten().map(|(txn, mode)| (*txn, *mode));
            let conflicting = ahead
                .chain(holders)
                .filter(|(other, theirs)| *other != txn && mode.max(*theirs) == Exclusive);
            blockers.extend(conflicting.map(|(other, _)| other));
        }
        blockers
    }

    /// Whether a waiter waits for itself.
    fn is_deadlocked(&self, txn: usize) -> bool {
        let mut seen = [false; TXNS];
        let mut next = self.blockers(txn);
        while let Some(other) = next.pop() {
            if other == txn {
                return true;
            }
            if !std::mem::replace(&mut seen[other], true) {
                next.extend(self.blockers(other));
            }
        }
        false
    }
}

/// A transaction's side of the real locks, and what it waits for.
struct Actor {
    owner: LockOwner,
    waits_for: Option<(u8, LockMode, LockOutcome)>,
}

struct Bench {
    manager: LockManager,
    actors: Vec<Actor>,
    model: Model,
    next_txn: TxnId,
    /// The locks are as the model says; otherwise there may be more of them.
    exact: bool,
}

fn id(key: u8) -> RowId {
    RowId::new(1, &[0, key])
}

impl Bench {
    fn new(exact: bool) -> Bench {
        let manager = LockManager::new(None);
        if !exact {
            manager.set_memory_limit(1);
        }
        let mut bench = Bench { manager, actors: Vec::new(), model: Model::default(), next_txn: 1, exact };
        for _ in 0..TXNS {
            let actor = bench.actor();
            bench.actors.push(actor);
        }
        bench
    }

    fn actor(&mut self) -> Actor {
        self.next_txn += 1;
        Actor { owner: self.manager.open(self.next_txn, 0), waits_for: None }
    }

    /// One lock; `false` if the transaction waits now or was refused.
    fn lock(&mut self, txn: usize, key: u8, mode: LockMode, waits: bool) -> Result<bool, TestCaseError> {
        let blocked = if waits { IfBlocked::Enqueue } else { IfBlocked::Refuse };
        let actor = &mut self.actors[txn];
        let attempt = actor.owner.request(1, &[0, key], id(key), mode, blocked);
        match self.exact {
            true => {
                let expected = self.model.request(txn, key, mode, waits);
                match (attempt, expected) {
                    (Attempt::Blocked(_), Attempt::Blocked(_)) if !waits => {}
                    _ => prop_assert_eq!(attempt, expected, "{} wants {} {:?}", txn, key, mode),
                }
            }
            false => {
                // What it has it gets at once. The outcome may also be that of a new entry, or of a shared one made
                // exclusive: under a widened cover of its own, which may lie over rows it has not come to yet, a
                // request makes an entry again.
                let known = self.model.holds(txn, key).is_some_and(|held| held >= mode);
                prop_assert!(!known || matches!(attempt, Attempt::Done(_)), "{} has {} {:?}", txn, key, mode);
                if matches!(attempt, Attempt::Done(_)) {
                    prop_assert!(self.model.compatible(txn, key, mode), "{} got {} {:?}", txn, key, mode);
                    self.model.hold(txn, key, mode);
                }
            }
        }
        match attempt {
            Attempt::Done(LockOutcome::New) => {
                self.note(txn, key, mode)?;
                Ok(true)
            }
            Attempt::Done(_) => Ok(true),
            Attempt::Blocked(outcome) => {
                if waits {
                    self.actors[txn].waits_for = Some((key, mode, outcome));
                    self.search(txn, key)?;
                }
                Ok(false)
            }
        }
    }

    /// The owner takes note of a lock that it was given. That there are too many is told only where memory is short.
    fn note(&mut self, txn: usize, key: u8, mode: LockMode) -> Result<(), TestCaseError> {
        let noted = self.actors[txn].owner.note(1, &[0, key], id(key), mode);
        prop_assert!(noted.is_ok() || !self.exact, "{:?}", noted);
        Ok(())
    }

    /// The waiter searches for deadlocks, as it does when it has waited for a while.
    fn search(&mut self, txn: usize, key: u8) -> Result<(), TestCaseError> {
        let party = self.actors[txn].owner.party().clone();
        let shared = self.manager.shared.clone();
        let deadlocked = self.model.is_deadlocked(txn);
        let sought = Sought::row(1, b"", LockMode::Exclusive);
        let victim = {
            let (target, now) = (Target::Row(id(key)), shared.time.now());
            shared.graph.enter(&shared, &party, target, now, (sought, None), &mut Vec::new())
        };
        let others: Vec<usize> = (0..TXNS)
            .filter(|t| *t != txn && self.actors[*t].waits_for.is_some())
            .filter(|t| self.actors[*t].owner.party().waiting().is_none())
            .collect();
        if self.exact {
            prop_assert_eq!(victim.is_err() || !others.is_empty(), deadlocked, "{} searches", txn);
        }
        // All of them first: what one lets go another victim must not be taken to have been granted.
        for other in &others {
            prop_assert_eq!(self.give_up(*other), Standing::Victim);
        }
        if victim.is_err() {
            prop_assert!(matches!(victim, Err(Error::Deadlock)));
            self.give_up(txn);
            self.end(txn)?;
        }
        for other in others {
            self.end(other)?;
        }
        Ok(())
    }

    /// Ends a wait; says how it stood. The queue is left.
    fn give_up(&mut self, txn: usize) -> Standing {
        let Some((key, _, _)) = self.actors[txn].waits_for.take() else { return Standing::Idle };
        let party = self.actors[txn].owner.party().clone();
        let victim = party.waiting().is_none();
        self.manager.shared.graph.leave(party.txn());
        self.manager.shared.give_up(Target::Row(id(key)), &party);
        self.model.give_up(txn);
        if victim {
            Standing::Victim
        } else {
            Standing::Waiting
        }
    }

    /// The transactions that were granted something meanwhile take note, and they are those that the model says.
    fn collect(&mut self) -> Result<(), TestCaseError> {
        self.model.settle();
        for txn in 0..TXNS {
            let Some((key, mode, outcome)) = self.actors[txn].waits_for else { continue };
            let party = self.actors[txn].owner.party().clone();
            let granted = party.waiting().is_none();
            if self.exact {
                prop_assert_eq!(granted, !self.model.is_waiting(txn), "{} waits for {}", txn, key);
            }
            if granted {
                prop_assert_eq!(party.end(), Standing::Granted);
                prop_assert!(self.model.compatible(txn, key, mode), "{} was given {}", txn, key);
                self.model.hold(txn, key, mode);
                self.manager.shared.graph.leave(party.txn());
                self.actors[txn].waits_for = None;
                if outcome == LockOutcome::New {
                    self.note(txn, key, mode)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, txn: usize) -> Result<(), TestCaseError> {
        self.give_up(txn);
        self.model.end(txn);
        self.actors[txn] = self.actor();
        self.collect()
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let (Step::Lock { txn, .. }
        | Step::LockKeys { txn, .. }
        | Step::Unlock { txn, .. }
        | Step::Try { txn, .. }
        | Step::TimeOut { txn }
        | Step::Range { txn, .. }
        | Step::Insert { txn, .. }
        | Step::End { txn }) = step;
        let waits_already = self.actors[txn].waits_for.is_some();
        match step {
            Step::End { .. } => self.end(txn)?,
            Step::TimeOut { .. } if waits_already => {
                self.give_up(txn);
            }
            _ if waits_already => {}
            Step::Lock { key, rows, down, mode, waits, .. } => {
                for i in 0..rows {
                    let key = if down { (key + rows) - i } else { key + i };
                    if !self.lock(txn, key, mode, waits)? {
                        break;
                    }
                }
            }
            Step::LockKeys { from, keys, mode, .. } => {
                let owner = &mut self.actors[txn].owner;
                if owner.lock_keys(1, &[0, from], &[0, from + keys], 2, mode) {
                    for key in from..from + keys {
                        prop_assert!(self.model.compatible(txn, key, mode), "{} got {} {:?}", txn, key, mode);
                        let waiting = self.model.queues.get(&key).is_some_and(|queue| !queue.is_empty());
                        prop_assert!(!waiting, "{} got {} before those who wait", txn, key);
                        self.model.hold(txn, key, mode);
                    }
                }
            }
            Step::Unlock { key, .. } => {
                let owner = &mut self.actors[txn].owner;
                let stays = self.manager.shared.covers.covers(1, &[0, key], owner.txn());
                owner.unlock(1, &[0, key]);
                if let (false, Some(holders)) = (stays, self.model.held.get_mut(&key)) {
                    holders.remove(&txn);
                }
            }
            Step::Try { key, .. } => {
                // Where more may be locked an entry may be made that was not there.
                let shared = self.exact && self.model.holds(txn, key) == Some(SharedMode);
                if shared && self.lock(txn, key, Exclusive, false)? {
                    self.actors[txn].owner.give_back(1, &[0, key], LockOutcome::Upgraded);
                    self.model.held.entry(key).or_default().insert(txn, SharedMode);
                }
            }
            Step::Range { from, to, .. } => {
                let (low, high) = ([0, from], [0, to]);
                let bounds = (std::ops::Bound::Included(&low[..]), std::ops::Bound::Included(&high[..]));
                let owner = &mut self.actors[txn].owner;
                let locked = owner.lock_range(1, bounds.0, bounds.1, SharedMode, &WaitRequest::no_wait());
                prop_assert!(locked.is_ok(), "shared ranges exclude no others");
                self.model.ranges.push((txn, from, to));
            }
            Step::Insert { key, .. } => {
                let owner = &mut self.actors[txn].owner;
                let passed = owner.check_insert(1, &[0, key], &WaitRequest::no_wait()).is_ok();
                let over =
                    |(other, from, to): &(usize, u8, u8)| *other != txn && (*from..=*to).contains(&key);
                let free = !self.model.ranges.iter().any(over);
                prop_assert!(passed == free || (!self.exact && !passed), "{} inserts {}", txn, key);
            }
            Step::TimeOut { .. } => {}
        }
        self.collect()
    }

    fn finish(mut self) -> Result<(), TestCaseError> {
        // Whoever still waits gets what it waits for when all others have ended.
        for last in 0..TXNS {
            if self.actors[last].waits_for.is_none() {
                continue;
            }
            for other in (0..TXNS).filter(|other| *other != last) {
                self.end(other)?;
            }
            prop_assert!(self.actors[last].waits_for.is_none(), "{} waits for nobody", last);
            break;
        }
        self.actors.clear();
        let shared = &self.manager.shared;
        prop_assert_eq!(shared.rows.len(), 0);
        prop_assert_eq!(shared.covers.len(), (0, 0));
        prop_assert_eq!(shared.ranges.len(), (0, 0));
        prop_assert!(shared.presence.is_empty());
        Ok(())
    }
}

fn run(exact: bool, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(exact);
    for step in steps {
        bench.step(step)?;
    }
    bench.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn each_decision_is_that_of_the_model(steps in prop::collection::vec(step(), 1..120)) {
        run(true, steps)?;
    }

    #[test]
    fn with_too_little_memory_more_is_locked_and_never_less(steps in prop::collection::vec(step(), 1..120)) {
        run(false, steps)?;
    }
}
