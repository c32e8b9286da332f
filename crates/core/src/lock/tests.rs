use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::*;
use crate::LockMode::{Exclusive, Shared as SharedMode};
use crate::{Error, LockMode, Result, WaitRequest};

pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) fn owner(manager: &LockManager, txn: TxnId) -> LockOwner {
    manager.open(txn, 0)
}

pub(super) fn try_lock(owner: &mut LockOwner, key: &[u8], mode: LockMode) -> Result<LockOutcome> {
    owner.lock(1, key, mode, &WaitRequest::no_wait())
}

/// Runs `ask` on a thread of its own, which gives the owner back with the result.
pub(super) fn asks<T: Send + 'static>(
    mut owner: LockOwner,
    ask: impl FnOnce(&mut LockOwner) -> T + Send + 'static,
) -> JoinHandle<(LockOwner, T)> {
    std::thread::spawn(move || {
        let result = ask(&mut owner);
        (owner, result)
    })
}

pub(super) fn waits_for(
    owner: LockOwner,
    key: &'static [u8],
    mode: LockMode,
) -> JoinHandle<(LockOwner, Result<LockOutcome>)> {
    asks(owner, move |o| o.lock(1, key, mode, &WaitRequest::waiting(LONG)))
}

fn telling(report: &(dyn Fn(&[TxnId]) + Sync)) -> WaitRequest<'_> {
    WaitRequest { before_wait: &|| true, waits_for: report, ..WaitRequest::waiting(LONG) }
}

pub(super) fn until_waiting(manager: &LockManager, txn: TxnId) {
    let start = Instant::now();
    while !manager.waits().iter().any(|wait| wait.waiter == txn) {
        assert!(start.elapsed() < LONG, "{txn} never waited");
        crate::sync::yield_now();
    }
}

fn edges(manager: &LockManager) -> Vec<(TxnId, TxnId)> {
    manager.waits().iter().map(|wait| (wait.waiter, wait.holder)).collect()
}

fn assert_empty(manager: &LockManager) {
    assert_eq!(manager.shared.rows.len(), 0);
    assert_eq!(manager.shared.covers.len(), (0, 0));
    assert_eq!(manager.shared.ranges.len(), (0, 0));
    assert!(manager.waits().is_empty());
    assert!(manager.shared.presence.is_empty());
}

#[test]
fn an_upgrade_that_is_given_back_leaves_the_shared_lock_to_its_owner_and_to_others() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    for shared_by_both in [false, true] {
        assert_eq!(try_lock(&mut a, b"k", SharedMode).unwrap(), LockOutcome::New);
        if shared_by_both {
            // The row has a queue then.
            assert_eq!(try_lock(&mut b, b"k", SharedMode).unwrap(), LockOutcome::New);
            b.give_back(1, b"k", LockOutcome::New);
        }
        let upgraded = try_lock(&mut a, b"k", Exclusive).unwrap();
        assert_eq!(upgraded, LockOutcome::Upgraded);
        let held = try_lock(&mut a, b"k", Exclusive).unwrap();
        a.give_back(1, b"k", held);
        assert!(matches!(try_lock(&mut b, b"k", SharedMode), Err(Error::WouldBlock)));
        a.give_back(1, b"k", upgraded);
        assert_eq!(try_lock(&mut b, b"k", SharedMode).unwrap(), LockOutcome::New);
        assert_eq!(try_lock(&mut a, b"k", SharedMode).unwrap(), LockOutcome::Held);
        assert!(matches!(try_lock(&mut a, b"k", Exclusive), Err(Error::WouldBlock)));
        assert_eq!((a.held(), b.held()), (1, 1));
        a.release_all();
        b.release_all();
    }
    drop((a, b));
    assert_empty(&manager);
}

#[test]
fn shared_locks_are_compatible_and_exclusive_ones_are_not() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    assert_eq!(try_lock(&mut a, b"k", SharedMode).unwrap(), LockOutcome::New);
    assert_eq!(try_lock(&mut b, b"k", SharedMode).unwrap(), LockOutcome::New);
    assert_eq!(try_lock(&mut b, b"k", SharedMode).unwrap(), LockOutcome::Held);
    assert!(matches!(try_lock(&mut a, b"k", Exclusive), Err(Error::WouldBlock)));
    b.unlock(1, b"k");
    assert_eq!(b.held(), 0);
    assert_eq!(try_lock(&mut a, b"k", Exclusive).unwrap(), LockOutcome::Upgraded);
    assert_eq!(try_lock(&mut a, b"k", SharedMode).unwrap(), LockOutcome::Held);
    assert!(matches!(try_lock(&mut b, b"k", SharedMode), Err(Error::WouldBlock)));
    assert!(matches!(try_lock(&mut b, b"k", Exclusive), Err(Error::WouldBlock)));
    assert_eq!(b.lock(2, b"k", Exclusive, &WaitRequest::no_wait()).unwrap(), LockOutcome::New);
    drop((a, b));
    assert_empty(&manager);
}

#[test]
fn the_queue_is_first_come_first_served() {
    let manager = LockManager::new(None);
    let mut first = owner(&manager, 1);
    try_lock(&mut first, b"k", SharedMode).unwrap();
    let (sender, order): (_, Receiver<TxnId>) = channel();
    let mut threads = Vec::new();
    for txn in 2..8 {
        let (mut waiter, sender) = (owner(&manager, txn), sender.clone());
        // Shared ones between exclusive ones: they must not overtake.
        let mode = if txn % 2 == 0 { Exclusive } else { SharedMode };
        threads.push(std::thread::spawn(move || {
            waiter.lock(1, b"k", mode, &WaitRequest::waiting(LONG)).unwrap();
            sender.send(txn).unwrap();
        }));
        until_waiting(&manager, txn);
    }
    let mut late = owner(&manager, 9);
    assert!(matches!(try_lock(&mut late, b"k", SharedMode), Err(Error::WouldBlock)));
    drop(first);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(order.try_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
    drop(late);
    assert_empty(&manager);
}

#[test]
fn an_upgrade_goes_before_those_who_wait() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    try_lock(&mut a, b"k", SharedMode).unwrap();
    try_lock(&mut b, b"k", SharedMode).unwrap();
    let c = waits_for(owner(&manager, 3), b"k", Exclusive);
    until_waiting(&manager, 3);
    let a = waits_for(a, b"k", Exclusive);
    until_waiting(&manager, 1);
    drop(b);
    let (a, upgraded) = a.join().unwrap();
    assert_eq!(upgraded.unwrap(), LockOutcome::Upgraded);
    assert_eq!(edges(&manager), [(3, 1)]);
    drop(a);
    c.join().unwrap().1.unwrap();
}

#[test]
fn two_upgrades_are_a_deadlock() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    try_lock(&mut a, b"k", SharedMode).unwrap();
    try_lock(&mut b, b"k", SharedMode).unwrap();
    let a = waits_for(a, b"k", Exclusive);
    until_waiting(&manager, 1);
    assert!(matches!(b.lock(1, b"k", Exclusive, &WaitRequest::waiting(LONG)), Err(Error::Deadlock)));
    assert_eq!(b.held(), 1);
    drop(b);
    assert_eq!(a.join().unwrap().1.unwrap(), LockOutcome::Upgraded);
    assert_eq!(manager.counters().deadlocks, 1);
}

#[test]
fn the_cheapest_of_a_deadlock_of_three_is_the_victim_wherever_it_waits() {
    for cheapest in 0..3 {
        let manager = LockManager::new(None);
        let keys: [&'static [u8]; 3] = [b"a", b"b", b"c"];
        let mut waiters = Vec::new();
        let mut owners = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            let weight = if i == cheapest { 1 } else { 10 + i as u64 };
            let mut owner = manager.open(i as u64 + 1, 0);
            owner.set_weight(weight);
            try_lock(&mut owner, key, Exclusive).unwrap();
            owners.push(owner);
        }
        for (i, owner) in owners.into_iter().enumerate() {
            waiters.push(waits_for(owner, keys[(i + 1) % 3], Exclusive));
            if i < 2 {
                until_waiting(&manager, i as u64 + 1);
            }
        }
        // Only the victim comes back by itself; then the one who waited for it, and so on.
        let mut waiters: Vec<_> = waiters.into_iter().map(Some).collect();
        for (step, i) in [cheapest, (cheapest + 2) % 3, (cheapest + 1) % 3].into_iter().enumerate() {
            let (owner, result) = waiters[i].take().unwrap().join().unwrap();
            match step {
                0 => assert!(matches!(result, Err(Error::Deadlock))),
                _ => assert_eq!(result.unwrap(), LockOutcome::New),
            }
            drop(owner);
        }
        assert_empty(&manager);
    }
}

#[test]
fn among_equals_the_one_who_closes_the_circle_is_the_victim() {
    // Whichever of the two is older.
    for (first, second) in [(1, 2), (2, 1)] {
        let manager = LockManager::new(None);
        let (mut a, mut b) = (owner(&manager, first), owner(&manager, second));
        try_lock(&mut a, b"a", Exclusive).unwrap();
        try_lock(&mut b, b"b", Exclusive).unwrap();
        let a = waits_for(a, b"b", Exclusive);
        until_waiting(&manager, first);
        assert!(matches!(b.lock(1, b"a", Exclusive, &WaitRequest::waiting(LONG)), Err(Error::Deadlock)));
        drop(b);
        a.join().unwrap().1.unwrap();
    }
}

#[test]
fn preference_comes_before_weight() {
    let manager = LockManager::new(None);
    let mut heavy = manager.open(1, 0);
    heavy.set_weight(1000);
    let mut light = owner(&manager, 2);
    heavy.set_victim_preference(1);
    try_lock(&mut heavy, b"a", Exclusive).unwrap();
    try_lock(&mut light, b"b", Exclusive).unwrap();
    let heavy = waits_for(heavy, b"b", Exclusive);
    until_waiting(&manager, 1);
    let light = waits_for(light, b"a", Exclusive);
    let (heavy, result) = heavy.join().unwrap();
    assert!(matches!(result, Err(Error::Deadlock)));
    drop(heavy);
    light.join().unwrap().1.unwrap();
}

#[test]
fn a_cycle_through_a_place_in_the_queue_is_found() {
    // 1 holds a shared; 2 waits for it exclusively and 3, shared, behind 2. When 1 comes to wait for 3, the cycle is 1,
    // 3, 2.
    let manager = LockManager::new(None);
    let (mut one, mut three) = (owner(&manager, 1), owner(&manager, 3));
    try_lock(&mut one, b"a", SharedMode).unwrap();
    try_lock(&mut three, b"b", Exclusive).unwrap();
    let two = waits_for(manager.open(2, 1), b"a", Exclusive);
    until_waiting(&manager, 2);
    let three = waits_for(three, b"a", SharedMode);
    until_waiting(&manager, 3);
    let one = waits_for(one, b"b", Exclusive);
    assert!(matches!(two.join().unwrap().1, Err(Error::Deadlock)));
    let (three, granted) = three.join().unwrap();
    granted.unwrap();
    drop(three);
    one.join().unwrap().1.unwrap();
    assert_empty(&manager);
}

#[test]
fn a_wait_ends_at_its_timeout_and_lets_the_next_one_through() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    try_lock(&mut a, b"k", SharedMode).unwrap();
    let b_waits = asks(owner(&manager, 3), |o| {
        o.lock(1, b"k", Exclusive, &WaitRequest::waiting(Duration::from_millis(300)))
    });
    until_waiting(&manager, 3);
    let c = waits_for(owner(&manager, 4), b"k", SharedMode);
    assert!(matches!(b_waits.join().unwrap().1, Err(Error::LockTimeout)));
    c.join().unwrap().1.unwrap();
    let refused = b.lock(1, b"k", Exclusive, &WaitRequest::waiting(Duration::ZERO));
    assert!(matches!(refused, Err(Error::LockTimeout)));
    assert_eq!(manager.counters().timeouts, 2);
    drop((a, b));
    assert_empty(&manager);
}

#[test]
fn an_interrupt_wakes_the_waiter() {
    let manager = LockManager::new(None);
    let mut a = owner(&manager, 1);
    try_lock(&mut a, b"k", Exclusive).unwrap();
    let killed = Arc::new(AtomicBool::new(false));
    let mark = killed.clone();
    let b = asks(owner(&manager, 2), move |o| {
        let interrupted = || mark.load(Ordering::SeqCst);
        let wait = WaitRequest { interrupted: &interrupted, ..WaitRequest::waiting(LONG) };
        o.lock(1, b"k", Exclusive, &wait)
    });
    until_waiting(&manager, 2);
    manager.interrupt(2);
    assert_eq!(edges(&manager), [(2, 1)]);
    killed.store(true, Ordering::SeqCst);
    manager.interrupt(2);
    assert!(matches!(b.join().unwrap().1, Err(Error::Interrupted)));
    assert!(manager.waits().is_empty());
}

#[test]
fn who_is_waited_for_is_reported_once_before_the_sleep() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    try_lock(&mut a, b"k", SharedMode).unwrap();
    try_lock(&mut b, b"k", SharedMode).unwrap();
    let (sender, reports) = channel();
    let c = asks(owner(&manager, 3), move |o| {
        let sender = std::sync::Mutex::new(sender);
        let report = |txns: &[TxnId]| sender.lock().unwrap().send(txns.to_vec()).unwrap();
        o.lock(1, b"k", Exclusive, &telling(&report))
    });
    assert_eq!(reports.recv().unwrap(), [1, 2]);
    drop((a, b));
    c.join().unwrap().1.unwrap();
    assert!(reports.recv().is_err());
}

#[test]
fn those_who_wait_ahead_are_reported_too() {
    // Parallel replication rolls back who is in the way of an earlier transaction: also one that does not have the lock
    // yet.
    let manager = LockManager::new(None);
    let mut holder = owner(&manager, 1);
    try_lock(&mut holder, b"k", Exclusive).unwrap();
    let first = waits_for(owner(&manager, 2), b"k", Exclusive);
    until_waiting(&manager, 2);
    let (sender, reports) = channel();
    let second = asks(owner(&manager, 3), move |o| {
        let sender = std::sync::Mutex::new(sender);
        let report = |txns: &[TxnId]| sender.lock().unwrap().send(txns.to_vec()).unwrap();
        o.lock(1, b"k", Exclusive, &telling(&report))
    });
    assert_eq!(reports.recv().unwrap(), [1, 2]);
    drop(holder);
    drop(first.join().unwrap());
    second.join().unwrap().1.unwrap();
}

#[test]
fn a_range_keeps_inserts_out_and_no_locks_of_rows() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    let none = WaitRequest::no_wait();
    a.lock_range(1, Bound::Excluded(b"c"), Bound::Included(b"f"), SharedMode, &none).unwrap();
    assert!(a.has_ranges());
    assert!(b.check_insert(1, b"c", &none).is_ok());
    assert!(matches!(b.check_insert(1, b"d", &none), Err(Error::WouldBlock)));
    assert!(matches!(b.check_insert(1, b"f", &none), Err(Error::WouldBlock)));
    assert!(b.check_insert(1, b"fa", &none).is_ok());
    assert!(b.check_insert(2, b"d", &none).is_ok());
    assert!(a.check_insert(1, b"d", &none).is_ok());
    assert!(try_lock(&mut b, b"d", Exclusive).is_ok(), "who waits for a row may hold its range");
    assert!(b.lock_range(1, Bound::Unbounded, Bound::Unbounded, SharedMode, &none).is_ok());
    let refused = b.lock_range(1, Bound::Unbounded, Bound::Included(b"d"), Exclusive, &none);
    assert!(matches!(refused, Err(Error::WouldBlock)));
    assert!(b.lock_range(1, Bound::Unbounded, Bound::Included(b"c"), Exclusive, &none).is_ok());
    let b = asks(b, |o| o.check_insert(1, b"e", &WaitRequest::waiting(LONG)));
    until_waiting(&manager, 2);
    assert_eq!(edges(&manager), [(2, 1)]);
    drop(a);
    b.join().unwrap().1.unwrap();
    assert_empty(&manager);
}

#[test]
fn an_insert_that_waits_goes_before_later_ranges_over_its_key() {
    let manager = LockManager::new(None);
    let (mut reader, inserter) = (owner(&manager, 1), owner(&manager, 2));
    let (mut other, mut late) = (owner(&manager, 3), owner(&manager, 4));
    let no_wait = WaitRequest::no_wait();
    let all = (Bound::Unbounded, Bound::Unbounded);
    reader.lock_range(1, all.0, all.1, SharedMode, &no_wait).unwrap();
    other.lock_range(1, Bound::Unbounded, Bound::Included(b"m"), SharedMode, &no_wait).unwrap();
    let inserts = asks(inserter, |o| o.check_insert(1, b"k", &WaitRequest::waiting(LONG)));
    until_waiting(&manager, 2);
    let refused = late.lock_range(1, Bound::Unbounded, Bound::Included(b"k"), SharedMode, &no_wait);
    assert!(refused.is_err(), "readers that come and go would starve the insert");
    late.lock_range(1, Bound::Excluded(b"k"), Bound::Unbounded, SharedMode, &no_wait).unwrap();
    // The insert waits for this one anyway: it may have more without a deadlock.
    reader.lock_range(1, Bound::Included(b"a"), Bound::Included(b"z"), SharedMode, &no_wait).unwrap();
    drop((reader, other));
    let (inserter, result) = inserts.join().unwrap();
    result.unwrap();
    late.lock_range(1, Bound::Unbounded, Bound::Included(b"k"), SharedMode, &no_wait).unwrap();
    drop((inserter, late));
    assert_empty(&manager);
}

#[test]
fn ranges_and_rows_deadlock_too() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    a.set_weight(5);
    let none = WaitRequest::no_wait();
    a.lock_range(1, Bound::Unbounded, Bound::Excluded(b"m"), SharedMode, &none).unwrap();
    b.lock_range(1, Bound::Included(b"m"), Bound::Unbounded, SharedMode, &none).unwrap();
    let a = asks(a, |o| o.check_insert(1, b"z", &WaitRequest::waiting(LONG)));
    until_waiting(&manager, 1);
    assert!(matches!(b.check_insert(1, b"a", &WaitRequest::waiting(LONG)), Err(Error::Deadlock)));
    drop(b);
    let (a, passed) = a.join().unwrap();
    passed.unwrap();
    let mut c = owner(&manager, 3);
    try_lock(&mut c, b"x", Exclusive).unwrap();
    let c = asks(c, |o| o.check_insert(1, b"a", &WaitRequest::waiting(LONG)));
    until_waiting(&manager, 3);
    let a = asks(a, |o| o.lock(1, b"x", SharedMode, &WaitRequest::waiting(LONG)));
    assert!(matches!(c.join().unwrap().1, Err(Error::Deadlock)));
    a.join().unwrap().1.unwrap();
    assert_empty(&manager);
}

#[test]
fn an_exclusive_range_is_granted_when_the_others_go() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    let none = WaitRequest::no_wait();
    a.lock_range(1, Bound::Included(b"a"), Bound::Included(b"c"), SharedMode, &none).unwrap();
    a.lock_range(1, Bound::Included(b"b"), Bound::Included(b"e"), SharedMode, &none).unwrap();
    assert_eq!(manager.shared.ranges.len(), (1, 1), "overlapping ranges of an owner are one");
    let c = asks(owner(&manager, 3), |o| {
        let wait = WaitRequest::waiting(LONG);
        o.lock_range(1, Bound::Included(b"d"), Bound::Unbounded, Exclusive, &wait)
    });
    until_waiting(&manager, 3);
    // Not before the one who waits.
    let refused = b.lock_range(1, Bound::Included(b"x"), Bound::Unbounded, SharedMode, &none);
    assert!(matches!(refused, Err(Error::WouldBlock)));
    drop(a);
    let (c, granted) = c.join().unwrap();
    granted.unwrap();
    assert!(matches!(b.check_insert(1, b"d", &none), Err(Error::WouldBlock)));
    drop(c);
    b.check_insert(1, b"d", &none).unwrap();
    drop(b);
    assert_empty(&manager);
}

#[test]
fn unlocked_rows_can_be_locked_again_and_are_released_once() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    for i in 0..1000u32 {
        try_lock(&mut a, &i.to_be_bytes(), Exclusive).unwrap();
    }
    a.unlock(1, &0u32.to_be_bytes());
    a.unlock(1, &0u32.to_be_bytes());
    a.unlock(1, b"never locked");
    assert_eq!(a.held(), 999);
    try_lock(&mut b, &0u32.to_be_bytes(), Exclusive).unwrap();
    drop(a);
    assert_eq!(manager.shared.rows.len(), 1, "what was unlocked and taken by another stays his");
    drop(b);
    assert_empty(&manager);
}

#[test]
fn a_million_locks_of_scattered_rows_are_given_back_with_their_memory() {
    let manager = LockManager::new(None);
    let mut a = owner(&manager, 1);
    for i in 0..1_000_000u32 {
        try_lock(&mut a, &i.wrapping_mul(0x9e37_79b9).to_be_bytes(), Exclusive).unwrap();
    }
    assert_eq!(a.held(), 1_000_000);
    assert!((20 << 20..100 << 20).contains(&manager.memory()), "{} bytes", manager.memory());
    a.release_all();
    assert_empty(&manager);
    assert!(manager.memory() < 8 << 20, "{} bytes", manager.memory());
}

#[test]
fn a_million_locks_of_consecutive_rows_take_no_memory_to_speak_of() {
    let manager = LockManager::new(None);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    try_lock(&mut b, &77_777u32.to_be_bytes(), SharedMode).unwrap();
    let mut refused = 0;
    for i in 0..1_000_000u32 {
        refused += u32::from(try_lock(&mut a, &i.to_be_bytes(), Exclusive).is_err());
    }
    assert_eq!((a.held(), refused), (999_999, 1));
    assert!(manager.memory() < 1 << 20, "{} bytes", manager.memory());
    assert_eq!(manager.shared.covers.len(), (2, 1), "before the row of another and behind it");
    for i in [0u32, 500_000, 999_990] {
        assert!(matches!(try_lock(&mut b, &i.to_be_bytes(), SharedMode), Err(Error::WouldBlock)));
        assert_eq!(try_lock(&mut a, &i.to_be_bytes(), SharedMode).unwrap(), LockOutcome::Held);
    }
    // Not of that length, not of that tree, not among them.
    for key in [&[0, 1, 2][..], &[0, 1, 2, 3, 4], &1_000_000u32.to_be_bytes()] {
        try_lock(&mut b, key, Exclusive).unwrap();
    }
    b.lock(2, &5u32.to_be_bytes(), Exclusive, &WaitRequest::no_wait()).unwrap();
    let key: &'static [u8] = Box::leak(Box::new(500_000u32.to_be_bytes()));
    let c = waits_for(owner(&manager, 3), key, Exclusive);
    until_waiting(&manager, 3);
    assert_eq!(edges(&manager), [(3, 1)]);
    a.release_all();
    c.join().unwrap().1.unwrap();
    drop((a, b));
    assert_empty(&manager);
}

#[test]
fn who_is_alone_in_a_tree_locks_all_keys_of_a_stretch_at_once() {
    let manager = LockManager::new(None);
    let (mut a, mut b, mut c) = (owner(&manager, 1), owner(&manager, 2), owner(&manager, 3));
    c.lock(2, b"elsewhere", Exclusive, &WaitRequest::no_wait()).unwrap();
    // The ends may have other lengths than the keys: a leaf's do.
    assert!(a.lock_keys(1, b"b", b"cd", 2, Exclusive));
    assert!(a.lock_keys(1, b"cd", b"cdx", 2, Exclusive));
    assert_eq!(manager.shared.covers.len(), (1, 1), "stretches that touch are one");
    for key in [&b"bb"[..], b"b\0", b"b\xff", b"cc", b"cd"] {
        assert!(matches!(try_lock(&mut b, key, SharedMode), Err(Error::WouldBlock)), "{key:?}");
        assert_eq!(try_lock(&mut a, key, Exclusive).unwrap(), LockOutcome::Held, "{key:?}");
    }
    for key in [&b"b"[..], b"bbb", b"ce", b"a\xff"] {
        assert_eq!(try_lock(&mut b, key, Exclusive).unwrap(), LockOutcome::New, "{key:?}");
    }
    // Somebody else has been here, so nobody knows what is locked; and an empty stretch is none.
    assert!(!a.lock_keys(1, b"x", b"y", 2, Exclusive) && !b.lock_keys(1, b"x", b"y", 2, SharedMode));
    try_lock(&mut b, b"xx", Exclusive).unwrap();
    b.release_all();
    assert!(a.lock_keys(1, b"x", b"y", 2, SharedMode));
    assert!(!a.lock_keys(1, b"z", b"z", 2, SharedMode));
    let b = waits_for(b, b"xx", Exclusive);
    until_waiting(&manager, 2);
    assert_eq!(edges(&manager), [(2, 1)]);
    a.release_all();
    b.join().unwrap().1.unwrap();
    drop((a, c));
    assert_empty(&manager);
}

#[test]
fn with_too_little_memory_an_owner_of_many_locks_what_lies_between() {
    let manager = LockManager::new(None);
    manager.set_memory_limit(1 << 20);
    let (mut a, mut b, mut early) = (owner(&manager, 1), owner(&manager, 2), owner(&manager, 3));
    // One who was there before keeps what it has.
    try_lock(&mut early, &30_001u32.to_be_bytes(), Exclusive).unwrap();
    for i in 0..200_000u32 {
        try_lock(&mut a, &(i * 2).to_be_bytes(), Exclusive).unwrap();
    }
    assert!(manager.memory() < 2 << 20, "{} bytes", manager.memory());
    assert!(matches!(try_lock(&mut b, &50_001u32.to_be_bytes(), SharedMode), Err(Error::WouldBlock)));
    assert_eq!(try_lock(&mut early, &30_001u32.to_be_bytes(), Exclusive).unwrap(), LockOutcome::Held);
    assert!(matches!(try_lock(&mut a, &30_001u32.to_be_bytes(), Exclusive), Err(Error::WouldBlock)));
    assert!(try_lock(&mut b, &1_000_000u32.to_be_bytes(), Exclusive).is_ok());
    // Ranges likewise.
    for i in 0..20_000u32 {
        let key = (i * 2).to_be_bytes();
        let bound = Bound::Included(&key[..]);
        early.lock_range(2, bound, bound, SharedMode, &WaitRequest::no_wait()).unwrap();
    }
    assert!(manager.memory() < 2 << 20, "{} bytes", manager.memory());
    assert!(b.check_insert(2, &701u32.to_be_bytes(), &WaitRequest::no_wait()).is_err());
    drop((a, b, early));
    assert_empty(&manager);
}

#[test]
fn two_owners_of_many_scattered_rows_cannot_take_all_memory() {
    let manager = LockManager::new(None);
    manager.set_memory_limit(1 << 20);
    let (mut a, mut b) = (owner(&manager, 1), owner(&manager, 2));
    // Neither's stretch of the tree may cover the other's.
    let refused = (0..1_000_000u32).find_map(|i| {
        try_lock(&mut a, &(i * 4).to_be_bytes(), Exclusive)
            .and(try_lock(&mut b, &(i * 4 + 2).to_be_bytes(), Exclusive))
            .err()
    });
    assert!(matches!(refused, Some(Error::LockMemory { maximum: 1_048_576, .. })), "{refused:?}");
    assert!(manager.memory() < 3 << 20, "{} bytes", manager.memory());
    // What was locked is locked; whoever has few goes on; and when one is rolled back the other can go on too.
    let mut c = owner(&manager, 3);
    assert!(matches!(try_lock(&mut c, &0u32.to_be_bytes(), SharedMode), Err(Error::WouldBlock)));
    try_lock(&mut c, &1u32.to_be_bytes(), Exclusive).unwrap();
    a.release_all();
    for i in 0..100_000u32 {
        try_lock(&mut b, &(8_000_000 + i * 4).to_be_bytes(), Exclusive).unwrap();
    }
    assert!(manager.memory() < 2 << 20, "{} bytes", manager.memory());
    drop((a, b, c));
    assert_empty(&manager);
}

#[test]
fn a_wait_goes_by_the_time_of_the_engine() {
    let time = crate::Time::simulated();
    let manager = LockManager::with_time(None, time.clone());
    let mut holder = manager.open(1, 0);
    let mut waiter = manager.open(2, 0);
    holder.lock(1, b"a", LockMode::Exclusive, &WaitRequest::no_wait()).unwrap();
    let begin = time.now();
    let wait = WaitRequest::waiting(Duration::from_secs(50));
    let result = waiter.lock(1, b"a", LockMode::Exclusive, &wait);
    assert!(matches!(result, Err(Error::LockTimeout)), "{result:?}");
    assert_eq!(time.since(begin), Duration::from_secs(50));
}
