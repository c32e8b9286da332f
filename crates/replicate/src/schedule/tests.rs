//! A model of what follows a source: a log, a target that has rows of workers and a position, a program with its
//! workers, and what is left of programs that were killed. Each step is one of a party, chosen by chance; so orders and
//! crashes of all kinds come up. What must be so is looked at with each commit.

use super::*;
use crate::above::read_noted;
use std::collections::BTreeSet;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// A transaction of the log.
struct Logged {
    gtid: Gtid,
    touches: Vec<Touch>,
    /// Such as a statement that changes definitions.
    is_barrier: bool,
}

fn touch_the_same(one: &Logged, other: &Logged) -> bool {
    let same = |one: &Touch, other: &Touch| match (one, other) {
        (Touch::Key { .. }, Touch::Key { .. }) => one == other,
        (Touch::Table(table), Touch::Key { table: of_key, .. })
        | (Touch::Key { table: of_key, .. }, Touch::Table(table)) => table == of_key,
        (Touch::Table(table), Touch::Table(other)) => table == other,
    };
    one.is_barrier
        || other.is_barrier
        || one.touches.iter().any(|one| other.touches.iter().any(|other| same(one, other)))
}

fn gtid_of(number: u64) -> Gtid {
    Gtid::MariaDb(format!("0-1-{number}").parse().unwrap())
}

fn log(random: &mut Random, transactions: u64) -> Vec<Logged> {
    // Few numbers: GTIDs come again, as a server without strict mode may write them.
    let comes_again = random.one_in(3);
    let tables = 1 + random.below(4);
    let keys = 1 + random.below(40);
    let whole = 2 + random.below(60);
    (0..transactions)
        .map(|at| {
            let gtid = gtid_of(if comes_again { random.below(12) } else { at });
            let touches = (0..random.below(4))
                .map(|_| match (random.below(tables), random.one_in(whole)) {
                    (table, true) => Touch::Table(table),
                    (table, false) => Touch::Key { table, key: random.below(keys) },
                })
                .collect();
            Logged { gtid, touches, is_barrier: random.one_in(40) }
        })
        .collect()
}

/// What a worker has sent: it is committed as a whole, or not at all.
struct Sent {
    worker: usize,
    generation: u64,
    transactions: Vec<usize>,
    noted: String,
    /// If the order is kept: how far the position was before it, and is with it.
    moves: Option<(usize, usize)>,
    is_committed: bool,
}

/// What outlives everything.
#[derive(Default)]
struct Target {
    applied: Vec<usize>,
    is_applied: Vec<bool>,
    /// So many transactions of the log are part of the position.
    position: usize,
    mark: u64,
    generation: u64,
    left: BTreeSet<String>,
    rows: Vec<String>,
}

impl Target {
    fn apply(&mut self, log: &[Logged], transactions: &[usize]) {
        for &at in transactions {
            assert!(!self.is_applied[at], "transaction {at} is applied twice");
            for before in 0..at {
                let waits = !self.is_applied[before] && touch_the_same(&log[before], &log[at]);
                assert!(!waits, "transaction {at} is applied before {before}");
            }
            self.is_applied[at] = true;
            self.applied.push(at);
        }
    }

    /// A worker's transaction ends.
    fn commit(&mut self, log: &[Logged], sent: &Sent) -> bool {
        let is_of_now = self.generation == sent.generation;
        if !is_of_now || sent.moves.is_some_and(|(before, _)| before != self.position) {
            return false;
        }
        self.apply(log, &sent.transactions);
        self.rows[sent.worker] = sent.noted.clone();
        if let Some((_, behind)) = sent.moves {
            self.position = behind;
        }
        true
    }

    /// A program begins: nothing of former ones is committed from here on.
    fn take_over(&mut self, workers: usize) {
        let noted = self.rows.iter().flat_map(|row| read_noted(row, Some(self.mark)));
        self.left.extend(noted);
        self.generation += 1;
        self.rows = vec![String::new(); workers];
    }
}

/// A program that runs.
struct Program {
    schedule: Schedule<usize>,
    /// So many transactions of the log were read.
    read: usize,
    /// So many are part of what was given out.
    given: usize,
    /// So many are below the mark.
    passed: usize,
    workers: Vec<Option<Sent>>,
}

struct World {
    random: Random,
    log: Vec<Logged>,
    target: Target,
    order: CommitOrder,
    program: Option<Program>,
    /// Of programs that are gone.
    stragglers: Vec<Sent>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed);
        let transactions = 20 + random.below(150);
        let log = log(&mut random, transactions);
        let target = Target { is_applied: vec![false; log.len()], ..Target::default() };
        let order = if random.one_in(3) { CommitOrder::Kept } else { CommitOrder::Free };
        World { random, log, target, order, program: None, stragglers: Vec::new() }
    }

    fn start(&mut self) {
        let workers = 1 + self.random.below(4) as usize;
        // Somebody may have changed the configuration.
        if self.random.one_in(4) {
            self.order = if self.random.one_in(2) { CommitOrder::Kept } else { CommitOrder::Free };
        }
        self.target.take_over(workers);
        let position = self.target.position;
        self.program = Some(Program {
            schedule: Schedule::new(self.order, workers, self.target.mark),
            read: position,
            given: position,
            passed: position,
            workers: (0..workers).map(|_| None).collect(),
        });
    }

    fn crash(&mut self) {
        if let Some(program) = self.program.take() {
            let sent = program.workers.into_iter().flatten();
            self.stragglers.extend(sent.filter(|sent| !sent.is_committed));
        }
    }

    /// Something happens. False: all is done.
    fn step(&mut self) -> bool {
        match self.random.below(200) {
            0 | 1 => self.crash(),
            2 => {
                // The target is killed.
                self.program = None;
                self.stragglers.clear();
            }
            3..=6 if !self.stragglers.is_empty() => {
                let one = self.random.below(self.stragglers.len() as u64) as usize;
                let sent = self.stragglers.swap_remove(one);
                self.target.commit(&self.log, &sent);
            }
            _ if self.program.is_none() => self.start(),
            _ => return self.program_step(),
        }
        true
    }

    /// What was left is passed over, and what is between it applied, one after the other, by nobody else.
    fn pass_over(&mut self) {
        let Some(program) = &mut self.program else { return };
        let (random, target, log) = (&mut self.random, &mut self.target, &self.log);
        for _ in 0..=random.below(5) {
            let Some(next) = log.get(target.position) else { break };
            if !target.left.remove(&next.gtid.to_string()) {
                target.apply(log, &[target.position]);
            }
            target.position += 1;
        }
        (program.read, program.given, program.passed) = (target.position, target.position, target.position);
        assert!(target.position < log.len() || target.left.is_empty(), "{:?} is not in the log", target.left);
    }

    fn program_step(&mut self) -> bool {
        let Some(program) = &mut self.program else { return true };
        let (random, target, log) = (&mut self.random, &mut self.target, &self.log);
        if !target.left.is_empty() {
            self.pass_over();
            return true;
        }
        let worker = random.below(program.workers.len() as u64) as usize;
        match random.below(4) {
            0 => {
                let Some(next) = log.get(program.read) else {
                    let is_done = program.schedule.len() == 0 && program.schedule.unrecorded() == 0;
                    return !is_done || target.position < log.len();
                };
                let is_idle = program.schedule.len() == 0;
                if next.is_barrier {
                    if is_idle && program.schedule.unrecorded() == 0 {
                        target.apply(log, &[program.read]);
                        target.position += 1;
                        (program.read, program.given, program.passed) =
                            (target.position, target.position, target.position);
                    }
                } else if !program.schedule.has(&next.gtid) && program.schedule.len() < 50 {
                    let place = Place { file: String::new(), position: program.read as u64, time: 0 };
                    program.schedule.add(
                        Passed { gtid: next.gtid.clone(), place },
                        &next.touches,
                        program.read,
                        10,
                    );
                    program.read += 1;
                }
            }
            1 if program.workers[worker].is_none() => {
                let (most, bytes) = (1 + random.below(12) as usize, 10 + 10 * random.below(12) as usize);
                if let Some(batch) = program.schedule.give(worker, most, bytes) {
                    assert!(batch.transactions.len() <= most && batch.transactions.len() * 10 < bytes + 10);
                    let before = program.given;
                    program.given += batch.transactions.len();
                    let moves = (self.order == CommitOrder::Kept).then_some((before, program.given));
                    program.workers[worker] = Some(Sent {
                        worker,
                        generation: target.generation,
                        transactions: batch.transactions,
                        noted: batch.noted,
                        moves,
                        is_committed: false,
                    });
                }
            }
            2 => {
                if let Some(sent) = program.workers[worker].as_mut().filter(|sent| !sent.is_committed) {
                    sent.is_committed = target.commit(log, sent);
                    // In its turn.
                    assert!(
                        sent.is_committed || sent.moves.is_some_and(|(before, _)| before > target.position)
                    );
                }
            }
            _ => {
                if program.workers[worker].as_ref().is_some_and(|sent| sent.is_committed) {
                    program.workers[worker] = None;
                    for passed in program.schedule.done(worker) {
                        assert_eq!(passed.gtid, log[program.passed].gtid);
                        assert_eq!(passed.place.position, program.passed as u64);
                        program.passed += 1;
                    }
                    let is_done = |entry: &&Entry<_>| matches!(entry.state, State::Done);
                    let done = program.schedule.entries.iter().filter(is_done).count();
                    assert_eq!(program.schedule.done_above(), done);
                }
                if self.order == CommitOrder::Free && random.one_in(4) {
                    (target.position, target.mark) = (program.passed, program.schedule.mark());
                    program.schedule.is_recorded();
                }
            }
        }
        true
    }
}

/// Runs until all is applied.
fn run(seed: u64) {
    let mut world = World::new(seed);
    let mut steps = 0;
    while world.step() {
        steps += 1;
        assert!(steps < 1_000_000, "it goes on for ever");
    }
    let target = &world.target;
    assert!(target.is_applied.iter().all(|&applied| applied), "a transaction is lost");
    // Whatever is left comes too late.
    for sent in std::mem::take(&mut world.stragglers) {
        assert!(!world.target.commit(&world.log, &sent));
    }
}

#[test]
fn no_transaction_is_lost_applied_twice_or_before_one_that_it_needs() {
    for seed in 0..3000 {
        if std::panic::catch_unwind(|| run(seed)).is_err() {
            panic!("seed {seed}");
        }
    }
}

fn passed(number: u64) -> Passed {
    Passed { gtid: gtid_of(number), place: Place { file: "b.1".into(), position: number, time: 0 } }
}

fn key(key: u64) -> Touch {
    Touch::Key { table: 1, key }
}

#[test]
fn what_touches_the_same_is_in_one_batch_or_waits() {
    let mut schedule = Schedule::new(CommitOrder::Free, 3, 10);
    for (number, touches) in
        [(1, vec![key(1)]), (2, vec![key(2)]), (3, vec![key(1)]), (4, vec![key(3), key(2)]), (5, vec![])]
    {
        schedule.add(passed(number), &touches, number, 1);
    }
    let batch = schedule.give(0, 1, 100).unwrap();
    assert_eq!((batch.transactions, batch.noted.as_str()), (vec![1], "11 0-1-1"));
    // The third one waits for the first one.
    let batch = schedule.give(1, 100, 100).unwrap();
    assert_eq!((&batch.transactions[..], batch.first, batch.last), (&[2, 4, 5][..], 12, 15));
    assert_eq!(schedule.give(2, 100, 100), None);
    assert!(schedule.done(1).is_empty() && schedule.mark() == 10);
    assert_eq!(schedule.done(0), [passed(1), passed(2)]);
    let batch = schedule.give(1, 100, 100).unwrap();
    assert_eq!(batch.noted, "12 0-1-2,14 0-1-4,15 0-1-5,13 0-1-3");
    schedule.is_recorded();
    assert_eq!((schedule.done(1).len(), schedule.mark(), schedule.len()), (3, 15, 0));
    // The target does not know of the last three.
    schedule.add(passed(6), &[key(1)], 6, 1);
    assert_eq!(schedule.give(1, 1, 1).unwrap().noted, "14 0-1-4,15 0-1-5,13 0-1-3,16 0-1-6");
}

#[test]
fn a_table_as_a_whole_waits_for_all_of_its_keys_and_they_for_it() {
    let mut schedule = Schedule::new(CommitOrder::Free, 4, 0);
    for (number, touches) in [
        (1, vec![key(1)]),
        (2, vec![key(2)]),
        (3, vec![Touch::Table(1)]),
        (4, vec![key(3)]),
        (5, vec![Touch::Table(2)]),
    ] {
        schedule.add(passed(number), &touches, number, 1);
    }
    assert_eq!(schedule.give(0, 1, 100).unwrap().transactions, [1]);
    assert_eq!(schedule.give(1, 1, 100).unwrap().transactions, [2]);
    assert_eq!(schedule.give(2, 100, 100).unwrap().transactions, [5]);
    schedule.done(0);
    assert_eq!(schedule.give(0, 100, 100), None);
    schedule.done(1);
    assert_eq!(schedule.give(0, 100, 100).unwrap().transactions, [3, 4]);
}

#[test]
fn batches_that_are_committed_in_order_have_no_gaps() {
    let mut schedule = Schedule::new(CommitOrder::Kept, 3, 0);
    for (number, touches) in [(1, vec![key(1)]), (2, vec![key(2)]), (3, vec![key(1)]), (4, vec![key(4)])] {
        schedule.add(passed(number), &touches, number, 1);
    }
    assert_eq!(schedule.give(0, 1, 100).unwrap().transactions, [1]);
    let batch = schedule.give(1, 100, 100).unwrap();
    assert_eq!((batch.transactions, batch.noted.as_str()), (vec![2], ""));
    assert_eq!(schedule.give(2, 100, 100), None);
    schedule.done(0);
    assert_eq!(schedule.give(2, 100, 100).unwrap().transactions, [3, 4]);
    schedule.done(1);
    assert_eq!((schedule.mark(), schedule.unrecorded()), (2, 0));
}

#[test]
fn what_is_done_is_forgotten() {
    let mut schedule = Schedule::new(CommitOrder::Free, 1, 0);
    for number in 1..100_000 {
        schedule.add(passed(number), &[key(number)], number, 1);
        schedule.give(0, 10, 10);
        schedule.done(0);
        schedule.is_recorded();
    }
    assert!(schedule.keys.len() < 10_000 && schedule.tables[&1].since.len() < 10_000);
}
