//! Transactions: visibility, savepoints, two-phase commit, counters.

use super::*;
use crate::file::Fault;
use crate::{CommitFlush, LockMode, WaitRequest};

#[test]
fn a_snapshot_sees_the_commits_before_it_and_its_own_writes() {
    let (_fs, engine, table) = with_table(1);
    let tree = table.tree(0);
    put(&engine, tree, &[("a", "1")]);
    let mut reader = engine.begin(Isolation::Repeatable);
    reader.open_snapshot();
    put(&engine, tree, &[("b", "2")]);
    insert(&mut reader, tree, "c", "3");
    let seen: Vec<Vec<u8>> = read(&mut reader, tree, View::Snapshot).into_keys().collect();
    assert_eq!(seen, [b"a".to_vec(), b"c".to_vec()]);
    let latest: Vec<Vec<u8>> = read(&mut reader, tree, View::Latest).into_keys().collect();
    assert_eq!(latest, [b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]);
    assert!(reader.changed_since_snapshot(tree, b"b").unwrap());
    assert!(!reader.changed_since_snapshot(tree, b"a").unwrap());
    reader.close_snapshot();
    assert_eq!(read(&mut reader, tree, View::Snapshot).len(), 3);
    reader.rollback();
    expect(&engine, "t", 0, &[("a", "1"), ("b", "2")]);
    assert_eq!(tree.entries(), 2);
    assert_eq!(engine.snapshots(), []);
}

#[test]
fn rolling_back_to_a_savepoint_undoes_what_came_after_and_nothing_else() {
    let (fs, engine, table) = with_table(2);
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, tree, "a", "1");
    let first = txn.savepoint();
    insert(&mut txn, tree, "b", "2");
    let second = txn.savepoint();
    insert(&mut txn, tree, "c", "3");
    txn.rollback_to(second).unwrap();
    assert_eq!(read(&mut txn, tree, View::Latest).len(), 2);
    insert(&mut txn, tree, "d", "4");
    txn.rollback_to(second).unwrap();
    insert(&mut txn, tree, "e", "5");
    txn.rollback_to(first).unwrap();
    insert(&mut txn, tree, "f", "6");
    txn.commit().unwrap();
    assert_eq!(tree.entries(), 2);
    expect(&engine, "t", 0, &[("a", "1"), ("f", "6")]);
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("a", "1"), ("f", "6")]);
    assert_eq!(engine.open_table("t").unwrap().tree(0).entries(), 2);
}

#[test]
fn a_transaction_whose_writes_were_all_undone_commits_nothing() {
    let (_fs, engine, table) = with_table(3);
    let before = engine.statistics().log_bytes;
    let mut txn = engine.begin(Isolation::Repeatable);
    let start = txn.savepoint();
    insert(&mut txn, table.tree(0), "a", "1");
    txn.rollback_to(start).unwrap();
    assert!(!txn.has_writes());
    txn.commit().unwrap();
    expect(&engine, "t", 0, &[]);
    assert_eq!(engine.statistics().log_bytes, before);
}

/// Writes `n` rows of 10 KB, so that the redo goes to the log several times.
fn large(txn: &mut Transaction, tree: &Arc<Tree>, prefix: &str, n: usize) {
    for i in 0..n {
        let value = vec![i as u8; 1000];
        txn.write(tree, format!("{prefix}{i:05}").as_bytes(), WriteOp::Insert(&value)).unwrap();
    }
}

#[test]
fn a_transaction_larger_than_the_redo_buffer_commits_or_vanishes_as_a_whole() {
    for seed in 0..4 {
        let (fs, engine, table) = with_table(seed);
        let tree = table.tree(0).clone();
        let mut txn = engine.begin(Isolation::Repeatable);
        large(&mut txn, &tree, "k", 2500);
        engine.checkpoint().unwrap();
        put(&engine, table.tree(1), &[("x", "1")]);
        if seed % 2 == 0 {
            txn.commit().unwrap();
            assert_eq!(tree.entries(), 2500);
        } else {
            engine.sync_log().unwrap();
            drop(txn);
        }
        drop((table, tree));
        let (_fs, engine) = crash(&fs, engine);
        let tree = engine.open_table("t").unwrap().tree(0).clone();
        let count = if seed % 2 == 0 { 2500 } else { 0 };
        assert_eq!(all(&engine, &tree).len(), count);
        assert_eq!(tree.entries(), count as u64);
        expect(&engine, "t", 1, &[("x", "1")]);
    }
}

#[test]
fn a_savepoint_before_redo_that_went_to_the_log_can_be_rolled_back_to() {
    let (fs, engine, table) = with_table(5);
    let tree = table.tree(0).clone();
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, &tree, "a", "1");
    let savepoint = txn.savepoint();
    large(&mut txn, &tree, "k", 1500);
    txn.rollback_to(savepoint).unwrap();
    insert(&mut txn, &tree, "k00000", "again");
    assert_eq!(read(&mut txn, &tree, View::Latest).len(), 2);
    let second = txn.savepoint();
    large(&mut txn, &tree, "m", 1500);
    txn.rollback_to(second).unwrap();
    txn.commit().unwrap();
    expect(&engine, "t", 0, &[("a", "1"), ("k00000", "again")]);
    drop((table, tree));
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("a", "1"), ("k00000", "again")]);
}

#[test]
fn a_prepared_transaction_survives_with_its_locks_and_is_decided_later() {
    for (seed, commits) in [(1, true), (2, false), (3, true), (4, false)] {
        let (fs, engine, table) = with_table(seed);
        let mut txn = engine.begin(Isolation::Repeatable);
        insert(&mut txn, table.tree(0), "a", "1");
        txn.prepare(b"xid").unwrap();
        assert!(txn.write(table.tree(0), b"b", WriteOp::Insert(b"")).is_err());
        let mut other = engine.begin(Isolation::Repeatable);
        assert!(matches!(other.prepare(b"xid"), Err(Error::Xid(_))));
        drop(other);
        assert_eq!(engine.prepared(), Vec::<Vec<u8>>::new(), "its handle lives");
        if seed > 2 {
            engine.checkpoint().unwrap();
            put(&engine, table.tree(1), &[("x", "")]);
            engine.checkpoint().unwrap();
        }
        drop((txn, table));
        let (fs, engine) = crash(&fs, engine);
        assert_eq!(engine.prepared(), [b"xid".to_vec()]);
        expect(&engine, "t", 0, &[]);
        let table = engine.open_table("t").unwrap();
        let mut other = engine.begin(Isolation::Repeatable);
        let locked = other.lock(table.tree(0), b"a", LockMode::Shared, &WaitRequest::no_wait());
        assert!(matches!(locked, Err(Error::WouldBlock)));
        drop(other);
        // Also over a clean shutdown and checkpoints.
        drop(table);
        engine.close().unwrap();
        drop(engine);
        let engine = open(&fs);
        assert_eq!(engine.prepared(), [b"xid".to_vec()]);
        match commits {
            true => engine.commit_prepared(b"xid").unwrap(),
            false => engine.rollback_prepared(b"xid").unwrap(),
        }
        assert!(matches!(engine.commit_prepared(b"xid"), Err(Error::Xid(_))));
        let rows: &[(&str, &str)] = if commits { &[("a", "1")] } else { &[] };
        expect(&engine, "t", 0, rows);
        let (fs, engine) = crash(&fs, engine);
        assert_eq!(engine.prepared(), Vec::<Vec<u8>>::new());
        expect(&engine, "t", 0, rows);
        assert_eq!(engine.open_table("t").unwrap().tree(0).entries(), rows.len() as u64);
        engine.checkpoint().unwrap();
        let (_fs, engine) = crash(&fs, engine);
        expect(&engine, "t", 0, rows);
    }
}

#[test]
fn commit_ordered_publishes_at_once_and_a_checkpoint_makes_the_decision_durable() {
    let (fs, engine, table) = with_table(9);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "a", "1");
    txn.prepare(b"xid").unwrap();
    txn.commit_ordered();
    expect(&engine, "t", 0, &[("a", "1")]);
    engine.checkpoint().unwrap();
    txn.commit().unwrap();
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.prepared(), Vec::<Vec<u8>>::new());
    expect(&engine, "t", 0, &[("a", "1")]);
}

#[test]
fn a_dropped_handle_leaves_a_prepared_transaction_waiting() {
    let (_fs, engine, table) = with_table(10);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "a", "1");
    txn.prepare(b"xid").unwrap();
    txn.detach();
    assert_eq!(engine.prepared(), [b"xid".to_vec()]);
    engine.commit_prepared(b"xid").unwrap();
    expect(&engine, "t", 0, &[("a", "1")]);
    // The identifier is free again.
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "b", "2");
    txn.prepare(b"xid").unwrap();
    txn.rollback();
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.prepare(b"xid").unwrap();
    txn.commit().unwrap();
    assert_eq!(engine.statistics().active_transactions, 0);
}

#[test]
fn of_a_prepared_transaction_that_has_changed_nothing_the_log_says_nothing() {
    let (fs, engine, table) = with_table(14);
    put(&engine, table.tree(0), &[("a", "1")]);
    let log = engine.shared.log.end();
    for end in 0..4 {
        let mut txn = engine.begin(Isolation::Repeatable);
        txn.lock(table.tree(0), b"a", LockMode::Exclusive, &WaitRequest::no_wait()).unwrap();
        if end == 3 {
            // Nor of one that has taken its changes back.
            let savepoint = txn.savepoint();
            insert(&mut txn, table.tree(0), "b", "2");
            txn.rollback_to(savepoint).unwrap();
        }
        txn.prepare(b"xid").unwrap();
        match end {
            0 => txn.commit().unwrap(),
            1 => txn.rollback(),
            _ => {
                txn.detach();
                assert_eq!(engine.prepared(), [b"xid".to_vec()]);
                let mut other = engine.begin(Isolation::Repeatable);
                let locked = other.lock(table.tree(0), b"a", LockMode::Shared, &WaitRequest::no_wait());
                assert!(matches!(locked, Err(Error::WouldBlock)));
                engine.commit_prepared(b"xid").unwrap();
            }
        }
        assert!(matches!(engine.commit_prepared(b"xid"), Err(Error::Xid(_))));
    }
    assert_eq!(engine.shared.log.end(), log);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.prepare(b"gone").unwrap();
    txn.detach();
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.prepared(), Vec::<Vec<u8>>::new());
    expect(&engine, "t", 0, &[("a", "1")]);
}

#[test]
fn counters_survive_rollback_crash_and_checkpoint_and_never_go_back() {
    let (fs, engine, table) = with_table(11);
    assert_eq!(table.counter(), 0);
    let mut first = engine.begin(Isolation::Repeatable);
    let mut second = engine.begin(Isolation::Repeatable);
    first.note_counter(&table, 5);
    second.note_counter(&table, 8);
    insert(&mut second, table.tree(0), "b", "");
    second.commit().unwrap();
    first.rollback();
    engine.sync_log().unwrap();
    assert_eq!(table.counter(), 8);
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert_eq!(table.counter(), 8);
    engine.checkpoint().unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.note_counter(&table, 7);
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert_eq!(table.counter(), 8);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.set_counter(&table, 3);
    txn.note_counter(&table, 4);
    insert(&mut txn, table.tree(0), "c", "");
    txn.commit().unwrap();
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.open_table("t").unwrap().counter(), 4);
}

#[test]
fn row_ids_go_on_after_the_last_row() {
    let (fs, engine, table) = with_table(12);
    assert_eq!((table.next_row_id(), table.next_row_id()), (1, 2));
    let mut txn = engine.begin(Isolation::Repeatable);
    for id in 1..=40u64 {
        txn.write(table.tree(0), &id.to_be_bytes(), WriteOp::Insert(b"row")).unwrap();
    }
    txn.commit().unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.write(table.tree(0), &50u64.to_be_bytes(), WriteOp::Insert(b"row")).unwrap();
    txn.prepare(b"x").unwrap();
    drop((txn, table));
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.open_table("t").unwrap().next_row_id(), 51);
}

#[test]
fn a_failed_sync_of_the_log_turns_the_engine_read_only_and_readers_go_on() {
    let (fs, engine, table) = with_table(13);
    put(&engine, table.tree(0), &[("a", "1")]);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "b", "2");
    fs.fail_from(0, Fault::Eio);
    assert!(txn.commit().is_err());
    fs.heal();
    let mut txn = engine.begin(Isolation::Repeatable);
    assert!(matches!(txn.write(table.tree(0), b"c", WriteOp::Insert(b"")), Err(Error::ReadOnly(_))));
    drop(txn);
    expect(&engine, "t", 0, &[("a", "1")]);
    assert!(matches!(engine.drop("t", IfPrepared::Refuse), Err(Error::ReadOnly(_))));
}

#[test]
fn a_full_disk_is_an_error_of_the_commit_and_nothing_else() {
    let (fs, engine, table) = with_table(14);
    put(&engine, table.tree(0), &[("a", "1")]);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "b", "2");
    fs.fail_from(0, Fault::Enospc);
    assert!(matches!(txn.commit(), Err(Error::DiskFull { .. })));
    fs.heal();
    put(&engine, table.tree(0), &[("c", "3")]);
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("a", "1"), ("c", "3")]);
}

#[test]
fn a_lazy_commit_may_be_lost_but_only_as_a_whole_and_from_the_end() {
    for seed in 0..10 {
        let (fs, engine, table) = with_table(seed);
        engine.settings().set_commit_flush(CommitFlush::Lazy);
        for i in 0..20 {
            let mut txn = engine.begin(Isolation::Repeatable);
            insert(&mut txn, table.tree(0), &format!("{i:02}"), "");
            insert(&mut txn, table.tree(1), &format!("{i:02}"), "");
            txn.commit().unwrap();
            if i == seed {
                engine.sync_log().unwrap();
            }
            if i == 15 && seed % 2 == 0 {
                engine.checkpoint().unwrap();
            }
        }
        drop(table);
        let (_fs, engine) = crash(&fs, engine);
        let table = engine.open_table("t").unwrap();
        let rows = all(&engine, table.tree(0));
        assert_eq!(rows, all(&engine, table.tree(1)));
        assert!(rows.len() > if seed % 2 == 0 { 15 } else { seed as usize });
        let expected: Vec<Vec<u8>> = (0..rows.len()).map(|i| format!("{i:02}").into_bytes()).collect();
        assert_eq!(rows.into_keys().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_rollback_to_a_savepoint_that_cannot_be_logged_dooms_the_transaction() {
    let (fs, engine, table) = with_table(15);
    let tree = table.tree(0).clone();
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, &tree, "a", "1");
    let savepoint = txn.savepoint();
    // More than the log queues without writing.
    fs.fail_from(0, Fault::Enospc);
    let filled = (0..).find_map(|i: usize| {
        let value = vec![0; 100_000];
        txn.write(&tree, format!("k{i}").as_bytes(), WriteOp::Insert(&value)).err()
    });
    assert!(matches!(filled, Some(Error::DiskFull { .. })));
    let undone = txn.rollback_to(savepoint);
    fs.heal();
    match undone {
        Ok(()) => txn.commit().unwrap(),
        Err(_) => assert!(txn.commit().is_err()),
    }
    let rows = all(&engine, &tree);
    assert!(rows.len() <= 1);
    drop((table, tree));
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(0)), rows);
}

#[test]
fn row_counts_are_exact_after_a_rollback_to_a_savepoint_from_long_before() {
    let fs = SimulatedFileSystem::new(7);
    let engine = Engine::open(Arc::new(fs.clone()), Options { redo_bytes: 100, ..options() }).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    // Each row is one more record in the log.
    let write = |txn: &mut Transaction, numbers: std::ops::Range<u32>| {
        numbers.for_each(|i| insert(txn, table.tree(0), &format!("{i:04}"), &"x".repeat(100)));
    };
    write(&mut txn, 0..77);
    let savepoint = txn.savepoint();
    write(&mut txn, 77..500);
    txn.rollback_to(savepoint).unwrap();
    txn.commit().unwrap();
    assert_eq!((all(&engine, table.tree(0)).len(), table.tree(0).entries()), (77, 77));
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.open_table("t").unwrap().tree(0).entries(), 77);
}

/// Changes beyond the size of the cache are a reason for a checkpoint, however little log they are; but not those that
/// it cannot fold, again and again.
#[test]
fn a_checkpoint_starts_when_changes_are_more_than_the_cache() {
    const CACHE: u64 = 4 << 20;
    let fs = SimulatedFileSystem::new(3);
    let options =
        Options { background: true, cache_bytes: CACHE, checkpoint_log_bytes: 1 << 40, ..options() };
    let engine = Engine::open(Arc::new(fs), options).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    let before = engine.statistics().checkpoints;
    let write = |txn: &mut Transaction, rows: std::ops::Range<u32>| {
        rows.for_each(|n| insert(txn, table.tree(0), &format!("{n:08}"), &"x".repeat(100)));
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut rows = 0;
    while engine.statistics().checkpoints == before {
        assert!(std::time::Instant::now() < deadline, "no checkpoint after {rows} rows");
        let mut txn = engine.begin(Isolation::Repeatable);
        write(&mut txn, rows..rows + 500);
        txn.commit().unwrap();
        rows += 500;
    }
    assert!(rows > 16_000, "{rows} rows are less than the cache");
    engine.checkpoint().unwrap();
    let before = engine.statistics().checkpoints;
    let mut open = engine.begin(Isolation::Repeatable);
    write(&mut open, rows..rows + 20_000);
    let during = engine.statistics().checkpoints - before;
    assert!(during < 5, "{during} checkpoints of a transaction of more than the cache");
    open.commit().unwrap();
    assert_eq!(all(&engine, table.tree(0)).len() as u32, rows + 20_000);
    engine.close().unwrap();
}
