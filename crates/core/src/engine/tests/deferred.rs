//! Index entries that wait until others can be written with them.

use super::*;
use crate::{LockMode, WaitRequest};
use std::ops::Bound;

fn key(i: u64) -> [u8; 8] {
    // In no order.
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()
}

fn count(txn: &mut Transaction, tree: &Arc<Tree>, view: View) -> usize {
    read(txn, tree, view).len()
}

#[test]
fn what_waits_is_for_its_transaction_to_read_and_nobody_elses() {
    let (fs, engine, table) = with_table(1);
    let tree = table.tree(1);
    let mut txn = engine.begin(Isolation::Repeatable);
    for i in 0..100 {
        txn.write_later(tree, &key(i), WriteOp::Insert(b"v")).unwrap();
    }
    let mut other = engine.begin(Isolation::ReadCommitted);
    assert_eq!(count(&mut other, tree, View::Pending), 0);
    assert_eq!(count(&mut txn, tree, View::Latest), 100);
    assert_eq!(count(&mut other, tree, View::Pending), 100);
    assert_eq!(count(&mut other, tree, View::Latest), 0);
    for i in 0..50 {
        txn.write_later(tree, &key(i), WriteOp::Delete).unwrap();
    }
    txn.commit().unwrap();
    assert_eq!(count(&mut other, tree, View::Latest), 50);
    other.rollback();
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(1)).len(), 50);
}

#[test]
fn going_back_to_a_savepoint_drops_what_came_after_it() {
    let (_fs, engine, table) = with_table(2);
    let tree = table.tree(1);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.write_later(tree, b"a", WriteOp::Insert(b"1")).unwrap();
    let savepoint = txn.savepoint();
    txn.write_later(tree, b"a", WriteOp::Delete).unwrap();
    txn.write_later(tree, b"b", WriteOp::Insert(b"2")).unwrap();
    txn.rollback_to(savepoint).unwrap();
    txn.write_later(tree, b"c", WriteOp::Insert(b"3")).unwrap();
    txn.write_later(tree, b"c", WriteOp::Update(b"4")).unwrap();
    txn.commit().unwrap();
    expect(&engine, "t", 1, &[("a", "1"), ("c", "4")]);
}

#[test]
fn more_than_is_gathered_at_a_time_ends_in_the_trees_and_an_undone_half_does_not() {
    const ENTRIES: u64 = 40_000;
    let (fs, engine, table) = with_table(3);
    let mut txn = engine.begin(Isolation::Repeatable);
    let write = |txn: &mut Transaction, i: u64| {
        for tree in 0..2 {
            txn.write_later(table.tree(tree), &key(i), WriteOp::Insert(&i.to_be_bytes()[..tree * 8]))
                .unwrap();
        }
    };
    (0..ENTRIES / 2).for_each(|i| write(&mut txn, i));
    let savepoint = txn.savepoint();
    (ENTRIES / 2..ENTRIES).for_each(|i| write(&mut txn, i));
    txn.rollback_to(savepoint).unwrap();
    txn.commit().unwrap();
    let expected: Rows = (0..ENTRIES / 2).map(|i| (key(i).to_vec(), i.to_be_bytes().to_vec())).collect();
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(1)) == expected);
    assert_eq!(all(&engine, table.tree(0)).len() as u64, ENTRIES / 2);
}

#[test]
fn whoever_locked_a_range_while_entries_waited_is_waited_for() {
    let (_fs, engine, table) = with_table(4);
    let tree = table.tree(1);
    let mut writer = engine.begin(Isolation::Repeatable);
    for k in ["a", "m", "z"] {
        writer.write_later(tree, k.as_bytes(), WriteOp::Insert(b"")).unwrap();
    }
    let mut reader = engine.begin(Isolation::Serializable);
    let (from, to) = (Bound::Included(&b"k"[..]), Bound::Included(&b"p"[..]));
    reader.lock_range(tree, from, to, LockMode::Shared, &WaitRequest::no_wait()).unwrap();
    assert_eq!(count(&mut reader, tree, View::Pending), 0);
    writer.finish_writes().unwrap();
    assert!(writer.is_unchecked());
    assert!(matches!(writer.check_finished(&WaitRequest::no_wait()), Err(Error::WouldBlock)));
    reader.rollback();

    // What was undone need not be waited for.
    let savepoint = writer.savepoint();
    writer.write_later(tree, b"n", WriteOp::Insert(b"")).unwrap();
    let mut reader = engine.begin(Isolation::Serializable);
    reader.lock_range(tree, from, to, LockMode::Shared, &WaitRequest::no_wait()).unwrap();
    writer.finish_writes().unwrap();
    writer.rollback_to(savepoint).unwrap();
    writer.check_finished(&WaitRequest::no_wait()).unwrap();
    writer.commit().unwrap();
    reader.rollback();
    expect(&engine, "t", 1, &[("a", ""), ("m", ""), ("z", "")]);
}

/// Whether the key is taken, so that the entry with `value` cannot have it.
fn is_taken(result: Result<()>, tree: &Arc<Tree>, key: &[u8], value: &[u8]) -> bool {
    matches!(&result, Err(Error::DuplicateKey { tree: t, key: k, value: v })
        if *t == tree.id() && k == key && v == value)
}

#[test]
fn claims_find_what_anybody_has_and_each_other() {
    let (_fs, engine, table) = with_table(5);
    let tree = table.tree(1);
    put(&engine, tree, &[("m", "old")]);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.open_snapshot();
    put(&engine, tree, &[("n", "newer than the snapshot")]);
    let before = txn.savepoint();
    for taken in [b"m", b"n"] {
        for key in [b"a", taken, b"z"] {
            txn.claim_later(tree, key, b"new").unwrap();
        }
        assert!(is_taken(txn.finish_writes(), tree, taken, b"new"));
        txn.rollback_to(before).unwrap();
    }
    // Twins, next to each other or with a push between.
    for between in [false, true] {
        txn.claim_later(tree, b"c", b"first").unwrap();
        if between {
            assert_eq!(count(&mut txn, tree, View::Latest), 3);
        }
        txn.claim_later(tree, b"b", b"other").unwrap();
        txn.claim_later(tree, b"c", b"second").unwrap();
        assert!(is_taken(txn.finish_writes(), tree, b"c", b"second"));
        txn.rollback_to(before).unwrap();
    }
    // What the transaction itself has taken out is free.
    txn.write_later(tree, b"m", WriteOp::Delete).unwrap();
    txn.claim_later(tree, b"m", b"new").unwrap();
    txn.write(tree, b"n", WriteOp::Delete).unwrap();
    txn.claim_later(tree, b"n", b"new").unwrap();
    txn.commit().unwrap();
    expect(&engine, "t", 1, &[("m", "new"), ("n", "new")]);
}

#[test]
fn a_claim_that_cannot_wait_is_looked_for_at_once() {
    let (_fs, engine, table) = with_table(6);
    let tree = table.tree(1);
    let large = vec![7; 1 << 20];
    let mut txn = engine.begin(Isolation::Repeatable);
    let before = txn.savepoint();
    txn.claim_later(tree, b"b", &large).unwrap();
    assert!(is_taken(txn.claim_later(tree, b"b", &large), tree, b"b", &large));
    txn.claim_later(tree, b"b", b"small").unwrap();
    assert!(is_taken(txn.finish_writes(), tree, b"b", b"small"));
    // One that waits is not written for it, but finds out.
    txn.rollback_to(before).unwrap();
    txn.claim_later(tree, b"a", b"small").unwrap();
    txn.claim_later(tree, b"a", &large).unwrap();
    assert!(is_taken(txn.finish_writes(), tree, b"a", b"small"));
    txn.rollback();
    expect(&engine, "t", 1, &[]);
}

#[test]
fn who_locks_a_range_beside_a_claim_that_cannot_wait_is_waited_for() {
    let (_fs, engine, table) = with_table(7);
    let tree = table.tree(1);
    let mut writer = engine.begin(Isolation::Repeatable);
    let mut reader = engine.begin(Isolation::Repeatable);
    let range = (Bound::Included(&b"a"[..]), Bound::Excluded(&b"z"[..]));
    reader.lock_range(tree, range.0, range.1, LockMode::Shared, &WaitRequest::no_wait()).unwrap();
    writer.claim_later(tree, b"m", &vec![7; 1 << 20]).unwrap();
    assert!(writer.is_unchecked());
    assert!(matches!(writer.check_finished(&WaitRequest::no_wait()), Err(Error::WouldBlock)));
}

fn with_table_of(seed: u64, trees: usize) -> (SimulatedFileSystem, Engine) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = Engine::open(Arc::new(fs.clone()), Options { cache_bytes: 1 << 40, ..options() }).unwrap();
    engine.create(NewTable { meta: b"meta", ..NewTable::new("t", &specs(trees)) }).unwrap();
    (fs, engine)
}

/// What is charged of many transactions that are left idle behind `prepare`, beyond what is charged without them.
fn charged_by_idle(seed: u64, prepare: impl Fn(&mut Transaction, &Arc<Tree>, u64)) -> u64 {
    // Nobody shall have to wait for room.
    let (_fs, engine) = with_table_of(seed, 2);
    let table = engine.open_table("t").unwrap();
    let tree = table.tree(1);
    put(&engine, tree, &[("taken", "")]);
    let before = engine.shared.context.cache.used();
    let mut idle = Vec::new();
    for number in 0..IDLE {
        let mut txn = engine.begin(Isolation::Repeatable);
        prepare(&mut txn, tree, number);
        idle.push(txn);
    }
    let charged = engine.shared.context.cache.used().saturating_sub(before);
    idle.into_iter().for_each(Transaction::rollback);
    charged
}

const IDLE: u64 = 1000;
/// Entries that one of them gathers, and what they take in vectors that have grown to twice that, and the redo.
const GATHERED: u64 = 500;
const GATHERED_BYTES: u64 = 4 * GATHERED * 64;

fn gather(txn: &mut Transaction, tree: &Arc<Tree>, number: u64) {
    for i in 0..GATHERED {
        txn.write_later(tree, &key(number * GATHERED + i), WriteOp::Insert(b"")).unwrap();
    }
}

#[test]
fn idle_transactions_are_charged_for_what_they_have_gathered_and_not_for_what_they_might() {
    let charged = charged_by_idle(8, gather);
    assert!(charged >= IDLE * GATHERED * 32, "{charged} bytes are charged");
    assert!(charged <= IDLE * GATHERED_BYTES, "{charged} bytes are charged");
    let charged = charged_by_idle(8, |txn, tree, i| txn.write_later(tree, &key(i), WriteOp::Delete).unwrap());
    assert!(charged <= IDLE * 1024, "{charged} bytes are charged for one entry each");
}

#[test]
fn idle_transactions_are_charged_for_rows_in_blocks_that_are_not_in_the_tree() {
    // Six full blocks and one that is not, fewer than go to the file.
    let append = |txn: &mut Transaction, tree: &Arc<Tree>, number: u64| {
        let keys = number * 260..(number + 1) * 260;
        keys.for_each(|key| txn.append(tree, &key.to_be_bytes(), &[7; 90]).unwrap());
    };
    let charged = charged_by_idle(14, append);
    assert!(charged >= IDLE * 5 * 3000, "{charged} bytes are charged");
    assert!(charged <= IDLE * 7 * 4096, "{charged} bytes are charged");
    let undone = charged_by_idle(15, |txn, tree, number| {
        txn.write(tree, &key(number), WriteOp::Insert(b"")).unwrap();
        let before = txn.savepoint();
        append(txn, tree, IDLE + number);
        txn.rollback_to(before).unwrap();
    });
    assert!(undone <= IDLE * 1024, "{undone} bytes are charged for nothing");
}

#[test]
fn savepoints_of_a_transaction_over_many_trees_are_charged() {
    const TREES: usize = 200;
    let (_fs, engine) = with_table_of(16, TREES);
    let table = engine.open_table("t").unwrap();
    let used = || engine.shared.context.cache.used();
    let mut txn = engine.begin(Isolation::Repeatable);
    let write = |txn: &mut Transaction, at: usize, number: u64| {
        txn.write(table.tree(at), &key(number), WriteOp::Insert(b"")).unwrap();
    };
    (0..TREES).for_each(|at| write(&mut txn, at, 0));
    let before = used();
    let first = txn.savepoint();
    (1..40).for_each(|number| {
        write(&mut txn, 0, number);
        txn.savepoint();
    });
    let charged = used().saturating_sub(before);
    assert!(charged >= 40 * TREES as u64 * 12, "{charged} bytes are charged for 40 savepoints");
    txn.rollback_to(first).unwrap();
    let charged = used().saturating_sub(before);
    assert!(charged <= 5 * TREES as u64 * 12, "{charged} bytes are charged for one");
}

#[test]
fn idle_transactions_are_charged_for_nothing_after_a_failed_statement_or_a_rollback_to_a_savepoint() {
    let failed = charged_by_idle(9, |txn, tree, number| {
        let before = txn.savepoint();
        gather(txn, tree, number);
        txn.claim_later(tree, b"taken", b"new").unwrap();
        assert!(is_taken(txn.finish_writes(), tree, b"taken", b"new"));
        txn.rollback_to(before).unwrap();
    });
    let undone = charged_by_idle(10, |txn, tree, number| {
        txn.write(tree, &key(number), WriteOp::Insert(b"")).unwrap();
        let before = txn.savepoint();
        gather(txn, tree, IDLE + number);
        txn.rollback_to(before).unwrap();
    });
    // Something of the tree may have been written before the one that failed.
    for charged in [failed, undone] {
        assert!(charged <= IDLE * 1024, "{charged} bytes are charged for nothing");
    }
}

#[test]
fn the_redo_of_idle_transactions_is_charged_while_it_is_in_memory() {
    const VALUES: u64 = 200;
    let value = [7; 1000];
    let write = |txn: &mut Transaction, tree: &Arc<Tree>, number: u64| {
        for i in 0..VALUES {
            txn.write_later(tree, &key(number * VALUES + i), WriteOp::Insert(&value)).unwrap();
        }
    };
    // What is gathered, and the redo of it.
    let gathered = charged_by_idle(11, write);
    assert!(gathered >= IDLE * VALUES * 2000, "{gathered} bytes are charged for twice that much");
    let undone = charged_by_idle(12, |txn, tree, number| {
        let before = txn.savepoint();
        write(txn, tree, number);
        txn.rollback_to(before).unwrap();
    });
    assert!(undone <= IDLE * 1024, "{undone} bytes are charged for nothing");
    // It is in the tree, and the redo in the log.
    let alone = |prepare: &dyn Fn(&mut Transaction)| {
        let (_fs, engine, table) = with_table(13);
        let mut txn = engine.begin(Isolation::Repeatable);
        let before = engine.shared.context.cache.used();
        write(&mut txn, table.tree(1), 0);
        prepare(&mut txn);
        engine.shared.context.cache.used() - before
    };
    let written = alone(&|txn| txn.finish_writes().unwrap());
    let prepared = alone(&|txn| txn.prepare(b"xid").unwrap());
    assert!(
        prepared + VALUES * 1000 <= written,
        "{prepared} bytes are charged, {written} before it was prepared"
    );
}
