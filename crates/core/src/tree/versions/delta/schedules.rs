//! A delta under many schedules: one thread pushes, others look without a latch.

use super::{Delta, VersionOp};
use crate::mvcc::TxnStatus;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{explore, yield_now};
use std::sync::Arc;

/// Enough for chunks of all sizes, for divided ones, and for an inner chunk that others are appended to.
const KEYS: usize = 100;

/// What of the keys is there before others look: nothing, so that the first chunk grows and is divided; a full chunk
/// and a bit, so that the inner chunk gets its third and fourth; most, so that all of its places have been used.
const FILLED: [usize; 3] = [0, 40, 80];

/// Keys share what they begin with: heads are equal, and differ.
fn key(number: usize) -> [u8; 12] {
    let mut key = *b"key/........";
    key[4..].copy_from_slice(&(number as u64 / 2).to_be_bytes());
    [&key[..11], &[key[11].wrapping_mul(2) + (number % 2) as u8]].concat().try_into().unwrap()
}

/// In which order the writer pushes.
#[derive(Clone, Copy)]
enum Order {
    Up,
    Down,
    Mixed,
    /// Upwards, but the greatest comes first: the last chunk is divided again and again.
    Below,
}

impl Order {
    fn key(self, push: usize) -> usize {
        match self {
            Order::Up => push,
            Order::Down => KEYS - 1 - push,
            Order::Mixed => push * 17 % KEYS,
            Order::Below => (push + KEYS - 1) % KEYS,
        }
    }
}

/// What one reader sees is complete, in order, and has all that was pushed before it looked.
fn look(delta: &Delta, pushed: &AtomicUsize, order: Order) {
    let mut round = 0;
    while round == 0 || pushed.load(Ordering::SeqCst) < KEYS {
        round += 1;
        yield_now();
        let before = pushed.load(Ordering::SeqCst);
        let known = |number| (0..before).any(|push| order.key(push) == number);
        let wanted = key(order.key(round * 11 % KEYS));
        let number = order.key(round * 11 % KEYS);
        match delta.find(&wanted) {
            Some(entry) => {
                assert_eq!(entry.key(), wanted);
                let version = entry.newest().expect("each key has a version");
                assert!(matches!(version.op(), VersionOp::Put(value) if value == wanted));
            }
            None => assert!(!known(number), "{number} of {before} pushed ones was not found"),
        }
        let next = delta.first_at_or_after(&wanted).map(|entry| entry.key().to_vec());
        let least = (number..KEYS).find(|&number| known(number)).map(|number| key(number).to_vec());
        assert!(least.is_none() || next.is_some(), "nothing at or after {number}");
        if let (Some(next), Some(least)) = (next, least) {
            assert!(next >= wanted.to_vec() && next <= least, "{number}: a key was passed over");
        }
        let last = delta.last_before(&wanted).map(|entry| entry.key().to_vec());
        let greatest = (0..number).rev().find(|&number| known(number)).map(|number| key(number).to_vec());
        assert!(greatest.is_none() || last.is_some(), "nothing before {number}");
        if let (Some(last), Some(greatest)) = (last, greatest) {
            assert!(last < wanted.to_vec() && last >= greatest, "{number}: a key was passed over");
        }
        let mut downwards = Vec::new();
        delta.some_before(&key(KEYS), &mut downwards);
        let top = downwards.first().map(|(entry, _)| entry.key().to_vec());
        let greatest = (0..KEYS).rev().find(|&number| known(number)).map(|number| key(number).to_vec());
        assert!(top >= greatest, "the greatest keys were passed over");
        if round % 4 == 0 {
            let all: Vec<_> = delta.iter().map(|entry| entry.key().to_vec()).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
            assert!(all.len() >= before && delta.versions() >= before);
            assert!(
                all.iter().all(|key| delta.find(key).is_some()),
                "a scan met what a search does not find"
            );
            let greatest = delta.last().map(|entry| entry.key().to_vec());
            assert!(greatest >= all.last().cloned());
        }
    }
}

fn readers_beside_a_writer(order: Order, filled: usize) {
    explore(move || {
        let delta = Arc::new(Delta::new());
        let status = TxnStatus::new(1);
        let push = |delta: &Delta, push: usize| {
            let key = key(order.key(push));
            // SAFETY: this thread alone pushes.
            unsafe { delta.push(&key, status.clone(), push as u32, VersionOp::Put(&key)) };
        };
        (0..filled).for_each(|number| push(&delta, number));
        let pushed = Arc::new(AtomicUsize::new(filled));
        let readers = [0, 1].map(|_| {
            let (delta, pushed) = (delta.clone(), pushed.clone());
            shuttle::thread::spawn(move || look(&delta, &pushed, order))
        });
        for number in filled..KEYS {
            push(&delta, number);
            pushed.store(number + 1, Ordering::SeqCst);
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(delta.iter().count(), KEYS);
    });
}

#[test]
fn readers_find_what_was_pushed_in_ascending_order() {
    FILLED.into_iter().for_each(|filled| readers_beside_a_writer(Order::Up, filled));
}

#[test]
fn readers_find_what_was_pushed_in_descending_order() {
    FILLED.into_iter().for_each(|filled| readers_beside_a_writer(Order::Down, filled));
}

#[test]
fn readers_find_what_was_pushed_in_any_order() {
    FILLED.into_iter().for_each(|filled| readers_beside_a_writer(Order::Mixed, filled));
}

#[test]
fn readers_find_what_was_pushed_below_the_greatest_key() {
    FILLED.into_iter().for_each(|filled| readers_beside_a_writer(Order::Below, filled));
}

#[test]
fn the_newest_version_of_a_key_never_becomes_an_older_one() {
    explore(|| {
        let delta = Arc::new(Delta::new());
        let readers = [0, 1].map(|_| {
            let delta = delta.clone();
            shuttle::thread::spawn(move || {
                let mut newest = 0;
                for _ in 0..3 {
                    let versions = delta.versions();
                    let Some(entry) = delta.find(b"key") else {
                        assert_eq!(versions, 0);
                        continue;
                    };
                    let chain: Vec<_> =
                        std::iter::successors(entry.newest(), |version| version.older()).collect();
                    assert!(chain.len() >= versions && chain.len() >= newest);
                    newest = chain.len();
                    let numbers = chain.iter().rev().map(|version| version.sequence as usize);
                    assert_eq!(numbers.collect::<Vec<_>>(), (0..newest).collect::<Vec<_>>());
                }
            })
        });
        for sequence in 0..6 {
            let status = TxnStatus::new(1);
            // SAFETY: this thread alone pushes.
            unsafe { delta.push(b"key", status, sequence, VersionOp::Put(b"value")) };
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}
