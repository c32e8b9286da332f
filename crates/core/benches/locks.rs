//! What waiting for locks costs when many do it.
//!
//! `cargo bench -p teak-core --bench locks`
//!
//! - sessions that wait for one row for some seconds, and then pass it on: time and processor time of all;
//! - missing keys locked as ranges by one transaction, and another one's inserts meanwhile.

mod processor;

use processor::processor_time;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use teak_core::rooms::{LockManager, LockOwner};
use teak_core::{LockMode, TxnId, WaitRequest};

const LONG: Duration = Duration::from_secs(600);

fn owner(manager: &LockManager, txn: TxnId) -> LockOwner {
    manager.open(txn, 0)
}

/// `waiters` sessions wait for one row for the time `held`; then its holder lets go, and each passes it on.
fn hot_row(waiters: u64, held: Duration) {
    let manager = LockManager::default();
    let mut first = owner(&manager, 1);
    first.lock(1, b"row", LockMode::Exclusive, &WaitRequest::no_wait()).expect("a free row");
    let start = std::thread::scope(|scope| {
        for txn in 2..waiters + 2 {
            let manager = &manager;
            scope.spawn(move || {
                let mut owner = owner(manager, txn);
                owner.lock(1, b"row", LockMode::Exclusive, &WaitRequest::waiting(LONG)).expect("its turn");
            });
        }
        while manager.waits().len() < waiters as usize {
            std::thread::sleep(Duration::from_millis(50));
        }
        let waiting = processor_time();
        std::thread::sleep(held);
        println!("{waiters:>6} wait {held:?}: {:?} of processor time", processor_time() - waiting);
        let start = (Instant::now(), processor_time());
        drop(first);
        start
    });
    let (time, used) = (start.0.elapsed(), processor_time() - start.1);
    println!("{waiters:>6} pass a row on: {time:?}, {used:?} of processor time");
}

/// One transaction finds `keys` keys missing, in an order of its own; another one inserts beside them.
fn missing_keys(keys: u64) {
    let manager = LockManager::default();
    let done = AtomicBool::new(false);
    let (time, inserts) = std::thread::scope(|scope| {
        let (manager, done) = (&manager, &done);
        let inserter = scope.spawn(move || {
            let mut owner = owner(manager, 2);
            let mut inserts = 0u64;
            // Relaxed: it only ends the loop.
            while !done.load(Ordering::Relaxed) {
                let key = (inserts * 2 + 1).to_be_bytes();
                owner.check_insert(1, &key, &WaitRequest::waiting(LONG)).expect("a free gap");
                inserts += 1;
            }
            inserts
        });
        let mut reader = owner(manager, 1);
        let start = Instant::now();
        for i in 0..keys {
            let key = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !1).to_be_bytes();
            let bound = Bound::Included(&key[..]);
            reader.lock_range(1, bound, bound, LockMode::Shared, &WaitRequest::no_wait()).expect("no range");
        }
        let time = start.elapsed();
        done.store(true, Ordering::Relaxed);
        (time, inserter.join().expect("the inserter"))
    });
    println!("{keys:>6} missing keys: {time:?}, meanwhile {inserts} inserts of another");
}

fn main() {
    for waiters in [100, 500, 1000] {
        hot_row(waiters, Duration::from_secs(5));
    }
    for keys in [20_000, 40_000, 80_000] {
        missing_keys(keys);
    }
}
