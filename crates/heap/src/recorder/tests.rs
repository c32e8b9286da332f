//! The tables by themselves, by one thread and by several.

use std::collections::HashMap;

use super::records::{Record, Records, EXACT, SAMPLED};
use super::stacks::Stacks;
use super::statements::Statements;
use super::thread::ThreadState;
use super::walk::Stack;

fn record(address: usize) -> Record {
    Record { address, bytes: 8, session: 1, statement: 2, digest: 0, stack: 0, kind: EXACT }
}

/// Numbers that are the same at each run.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed | 1), |&last| {
        Some(last.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407))
    })
    .map(|number| number >> 24)
}

#[test]
fn objects_are_those_of_a_map() {
    let records = Records::new().unwrap();
    let thread = ThreadState::default();
    let mut model = HashMap::new();
    let mut random = numbers(7);
    for _ in 0..200_000 {
        // Few addresses, so that they come again, and some that differ in what chooses the shard only.
        let address = 0x7f00_0000_0000 + (random.next().unwrap() % 3000) as usize * 16;
        if random.next().unwrap().is_multiple_of(2) {
            let one = Record { bytes: random.next().unwrap(), ..record(address) };
            records.insert(one, || true);
            model.insert(address, one);
        } else {
            records.remove(address, |_| true);
            model.remove(&address);
        }
        assert!(!model.contains_key(&address) || records.may_have(address));
    }
    let found: HashMap<_, _> = records.copy(&thread).into_iter().map(|one| (one.address, one)).collect();
    assert_eq!(found, model);
    assert_eq!(records.count(), model.len() as u64);
    for address in model.keys() {
        records.remove(*address, |_| true);
    }
    assert_eq!(records.count(), 0);
    assert!(model.keys().all(|&address| !records.may_have(address)));
}

#[test]
fn what_finds_no_place_is_counted() {
    let records = Records::new().unwrap();
    let many = 2_200_000;
    for number in 1..=many {
        records.insert(record(number * 16), || true);
    }
    assert!(records.lost() > 0);
    assert_eq!(records.count() + records.lost(), many as u64);
    records.clear();
    assert_eq!((records.count(), records.lost(), records.may_have(16)), (0, 0, false));
}

#[test]
fn an_object_that_is_late_is_not_kept() {
    let records = Records::new().unwrap();
    records.insert(record(16), || false);
    assert_eq!(records.count(), 0);
}

#[test]
fn some_are_forgotten_and_others_not() {
    let (records, thread) = (Records::new().unwrap(), ThreadState::default());
    records.insert(record(16), || true);
    records.insert(Record { statement: 3, ..record(32) }, || true);
    records.insert(Record { kind: SAMPLED, ..record(48) }, || true);
    records.forget_statement(&thread, 1, 3);
    records.forget_kind(&thread, SAMPLED);
    assert_eq!(records.copy(&thread), [record(16)]);
}

#[test]
fn threads_leave_what_they_do_not_free() {
    let records = Records::new().unwrap();
    std::thread::scope(|scope| {
        for part in 0..4usize {
            let records = &records;
            scope.spawn(move || {
                for number in 0..50_000 {
                    let address = (number * 4 + part + 1) * 16;
                    records.insert(record(address), || true);
                    if number % 10 != 0 {
                        records.remove(address, |_| true);
                    }
                }
            });
        }
    });
    let left = records.copy(&ThreadState::default());
    assert_eq!(left.len(), 4 * 5_000);
    assert!(left.iter().all(|one| ((one.address / 16 - 1) / 4) % 10 == 0));
}

#[test]
fn a_stack_is_kept_once() {
    let stacks = Stacks::new().unwrap();
    let (mut one, mut other, mut read) = (Stack::new(), Stack::new(), Stack::new());
    one.fill(&[1, 2, 3], true);
    other.fill(&[1, 2], false);
    let number = stacks.number_of(&one);
    assert_eq!(stacks.number_of(&one), number);
    assert_ne!(stacks.number_of(&other), number);
    stacks.read(number, &mut read);
    assert_eq!((read.frames(), read.is_whole()), (&[1usize, 2, 3][..], true));
    stacks.read(0, &mut read);
    assert!(read.frames().is_empty());
    stacks.clear();
    stacks.read(number, &mut read);
    assert!(read.frames().is_empty());
}

#[test]
fn a_statement_is_kept_once_with_its_text() {
    let statements = Statements::new().unwrap();
    let number = statements.number_of(b"select 1");
    assert_eq!(statements.number_of(b"SELECT  2"), number);
    assert_eq!(statements.read(number).unwrap().1, "select ?");
    assert_eq!(statements.number_of(b""), super::statements::NONE);
    assert!(statements.read(super::statements::NONE).is_none());
}

#[test]
fn samples_come_by_bytes() {
    let thread = ThreadState::default();
    let taken = (0..100_000).filter(|_| thread.is_sampled(100, 10_000)).count();
    // A thousand are to be expected, give or take thirty.
    assert!((850..1150).contains(&taken), "{taken}");
    assert!(thread.is_sampled(1, 1));
}

#[inline(never)]
fn outer() -> Stack {
    let mut stack = Stack::new();
    stack.walk();
    stack
}

#[inline(never)]
fn deep(levels: u32, stack: &mut Stack) -> u32 {
    if levels == 0 {
        stack.walk();
        return 0;
    }
    // What is done behind the call keeps the frame.
    std::hint::black_box(deep(levels - 1, stack)) + 1
}

#[test]
fn a_walk_that_cannot_go_on_says_so() {
    let mut stack = Stack::new();
    assert_eq!(deep(200, &mut stack), 200);
    assert_eq!((stack.frames().len(), stack.is_whole()), (super::walk::FRAMES, false));
}

#[test]
fn the_walk_goes_up_to_where_the_thread_began() {
    let stack = outer();
    assert!(stack.frames().len() > 3);
    assert!(stack.is_whole());
}
