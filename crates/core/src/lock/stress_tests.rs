//! Many threads at once: nobody holds what another holds, and all get through.

use std::ops::Bound;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::LockMode::{Exclusive, Shared as SharedMode};
use crate::{Error, LockMode, WaitRequest};

const LONG: Duration = Duration::from_secs(60);

/// What the threads of the stress test believe to hold of a key: -1 exclusively, otherwise how many share it.
#[derive(Default)]
struct Guarded(AtomicI64);

impl Guarded {
    fn enter(&self, outcome: LockOutcome, mode: LockMode) {
        match (outcome, mode) {
            (LockOutcome::New, Exclusive) => assert_eq!(self.0.swap(-1, Ordering::SeqCst), 0),
            (LockOutcome::Upgraded, _) => assert_eq!(self.0.swap(-1, Ordering::SeqCst), 1),
            (LockOutcome::New, SharedMode) => assert!(self.0.fetch_add(1, Ordering::SeqCst) >= 0),
            (LockOutcome::Held, _) => {}
        }
    }

    fn leave(&self, exclusive: bool) {
        match exclusive {
            true => assert_eq!(self.0.swap(0, Ordering::SeqCst), -1),
            false => assert!(self.0.fetch_sub(1, Ordering::SeqCst) >= 1),
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Transactions of single locks, ranges, and runs of locks (which become covers); how many were not refused anything.
fn hammer(manager: &LockManager, txns: &AtomicU64, keys: &[Guarded], seed: u64) -> u64 {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut committed = 0;
    for _ in 0..150 {
        let mut run = 0;
        let mut next = 0;
        let mut run_mode = SharedMode;
        let txn = txns.fetch_add(1, Ordering::SeqCst);
        let mut owner = manager.open(txn, 0);
        owner.set_weight(random.below(5));
        let mut held: Vec<(usize, bool)> = Vec::new();
        let mut failed = false;
        if random.below(3) == 0 {
            (run, next) = (5 + random.below(15), random.below(keys.len() as u64 - 20) as usize);
            run_mode = if random.below(2) == 0 { Exclusive } else { SharedMode };
        }
        if run > 0 && random.below(2) == 0 {
            let end = next + run as usize;
            if owner.lock_keys(1, &[next as u8], &[end as u8], 1, run_mode) {
                let locked = std::mem::replace(&mut next, end)..end;
                keys[locked.clone()].iter().for_each(|key| key.enter(LockOutcome::New, run_mode));
                held.extend(locked.map(|i| (i, run_mode == Exclusive)));
                run = 0;
            }
        }
        for step in 0..run + 1 + random.below(5) {
            let mut i = random.below(keys.len() as u64) as usize;
            let mut mode = if random.below(3) == 0 { Exclusive } else { SharedMode };
            if step < run {
                (i, mode) = (next, run_mode);
                next += 1;
            }
            let wait = match random.below(12) {
                0 => WaitRequest::no_wait(),
                1 => WaitRequest::waiting(Duration::from_millis(random.below(3))),
                _ => WaitRequest::waiting(LONG),
            };
            if random.below(40) == 0 {
                manager.interrupt(random.below(txn));
            }
            if random.below(60) == 0 {
                let (from, to) = ([i as u8], [i as u8 + 2]);
                let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
                let locked = owner.lock_range(1, range.0, range.1, mode, &wait);
                failed |= locked.is_err();
            }
            match owner.lock(1, &[i as u8], mode, &wait) {
                Ok(outcome) => {
                    keys[i].enter(outcome, mode);
                    match held.iter_mut().find(|(key, _)| *key == i) {
                        Some(entry) => entry.1 |= outcome == LockOutcome::Upgraded,
                        None => held.push((i, mode == Exclusive)),
                    }
                }
                Err(Error::WouldBlock | Error::LockTimeout | Error::Deadlock) => failed = true,
                Err(other) => panic!("{other}"),
            }
            if failed {
                break;
            }
            if random.below(8) == 0 {
                let covered = |key| manager.shared.covers.covers(1, &[key as u8], txn);
                if let Some((key, exclusive)) = held.last().copied().filter(|(key, _)| !covered(*key)) {
                    held.pop();
                    keys[key].leave(exclusive);
                    owner.unlock(1, &[key as u8]);
                }
            }
        }
        held.iter().for_each(|(key, exclusive)| keys[*key].leave(*exclusive));
        committed += u64::from(!failed);
    }
    committed
}

#[test]
fn sixty_four_threads_never_hold_what_another_holds_and_all_get_through() {
    let manager = LockManager::new(None);
    let txns = AtomicU64::new(1);
    let keys: Vec<Guarded> = (0..40).map(|_| Guarded::default()).collect();
    let start = Instant::now();
    let committed: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|seed| {
                scope.spawn({
                    let (m, t, k) = (&manager, &txns, &keys);
                    move || hammer(m, t, k, seed + 1)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert!(committed > 100, "{committed} of {} transactions", txns.load(Ordering::SeqCst));
    assert!(
        start.elapsed() < LONG,
        "somebody waited until his timeout: a lost wake-up or a deadlock not found"
    );
    let shared = &manager.shared;
    assert_eq!((shared.rows.len(), shared.covers.len(), shared.ranges.len()), (0, (0, 0), (0, 0)));
    assert!(shared.presence.is_empty());
}
