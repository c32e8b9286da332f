//! Changes of tables under old snapshots and under prepared transactions.

use super::*;
use crate::lock::Intention;
use crate::sync::Mutex;
use crate::time::Time;
use crate::{CommitFlush, LogLevel, Observer, WaitRequest};
use std::time::Duration;

fn old(engine: &Engine) -> Transaction {
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.open_snapshot();
    txn
}

/// Each way to read `tree` ends with [`Error::TableChanged`].
fn assert_refused(txn: &mut Transaction, tree: &Arc<Tree>) {
    let refused = |result: Result<bool>| matches!(result, Err(Error::TableChanged));
    let mut cursor = Cursor::new(tree.clone());
    for view in [View::Snapshot, View::Pending] {
        assert!(refused(cursor.first(txn, view)), "first, {view:?}");
        assert!(refused(cursor.last(txn, view)), "last, {view:?}");
        assert!(refused(cursor.get(txn, view, b"a")), "get, {view:?}");
        assert!(refused(cursor.seek(txn, view, Seek::After, b"a")), "seek, {view:?}");
    }
}

fn fill_and_found(engine: &Engine, name: &str, rows: &[(&str, &str)]) {
    let table = engine.open_table(name).unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.founds(&table);
    rows.iter().for_each(|(key, value)| insert(&mut txn, table.tree(0), key, value));
    txn.commit().unwrap();
}

#[test]
fn a_snapshot_gets_an_error_from_what_is_younger_and_not_an_empty_table() {
    let (_fs, engine, table) = with_table(1);
    put(&engine, table.tree(0), &[("a", "1")]);
    let mut first = old(&engine);
    engine.create(NewTable::new("new", &specs(1))).unwrap();
    let mut second = old(&engine);
    put(&engine, table.tree(0), &[("b", "2")]);
    engine.empty("t", None).unwrap();
    for txn in [&mut first, &mut second] {
        assert_refused(txn, engine.open_table("t").unwrap().tree(0));
        assert_eq!(read(txn, table.tree(0), View::Snapshot).len(), 1, "the old trees, for who has them");
    }
    assert_refused(&mut first, engine.open_table("new").unwrap().tree(0));
    assert!(read(&mut second, engine.open_table("new").unwrap().tree(0), View::Snapshot).is_empty());
    let mut third = old(&engine);
    assert!(read(&mut third, engine.open_table("t").unwrap().tree(0), View::Snapshot).is_empty());
    // What is written to an empty table is no beginning of it.
    put(&engine, engine.open_table("t").unwrap().tree(0), &[("c", "3")]);
    assert!(read(&mut third, engine.open_table("t").unwrap().tree(0), View::Snapshot).is_empty());
    // Who has taken no snapshot reads what is there.
    assert_eq!(
        read(
            &mut engine.begin(Isolation::Repeatable),
            engine.open_table("t").unwrap().tree(0),
            View::Pending
        )
        .len(),
        1
    );
}

#[test]
fn what_a_copy_writes_is_how_its_table_begins_however_it_is_committed() {
    for two_phases in [false, true] {
        let (_fs, engine, _) = with_table(2);
        engine.create(NewTable::new("copy", &specs(2))).unwrap();
        // From while the copy goes on, when its table exists and has nothing.
        let mut during = old(&engine);
        let table = engine.open_table("copy").unwrap();
        let mut txn = engine.begin(Isolation::ReadCommitted);
        txn.founds(&table);
        insert(&mut txn, table.tree(0), "a", "1");
        if two_phases {
            txn.prepare(b"x").unwrap();
            txn.commit_ordered();
        }
        txn.commit().unwrap();
        engine.rename(Renaming::new("copy", "renamed")).unwrap();
        assert_refused(&mut during, table.tree(0));
        assert_refused(&mut during, table.tree(1));
        expect(&engine, "renamed", 0, &[("a", "1")]);
    }
    // Of what is empty by now.
    let (_fs, engine, table) = with_table(3);
    engine.create(NewTable::new("copy", &specs(1))).unwrap();
    let mut during = old(&engine);
    put(&engine, table.tree(0), &[("a", "1")]);
    fill_and_found(&engine, "copy", &[]);
    assert_refused(&mut during, engine.open_table("copy").unwrap().tree(0));
}

#[test]
fn a_table_that_was_closed_meanwhile_is_as_young_as_before() {
    let (_fs, engine, table) = with_table(4);
    drop(table);
    let mut before = old(&engine);
    engine.create(NewTable::new("empty", &specs(1))).unwrap();
    engine.create(NewTable::new("copy", &specs(1))).unwrap();
    fill_and_found(&engine, "copy", &[("a", "1")]);
    let mut after = old(&engine);
    for round in 0..3 {
        put(&engine, engine.open_table("t").unwrap().tree(0), &[(&format!("{round}"), "")]);
        engine.checkpoint().unwrap();
    }
    for name in ["empty", "copy"] {
        let table = engine.open_table(name).unwrap();
        assert_refused(&mut before, table.tree(0));
        read(&mut after, table.tree(0), View::Snapshot);
    }
    expect(&engine, "copy", 0, &[("a", "1")]);
    // A rename changes nothing of it, and a table of the session alone is for all its snapshots.
    engine.rename(Renaming::new("copy", "other")).unwrap();
    let table = engine.open_table("other").unwrap();
    assert_refused(&mut before, table.tree(0));
    table.show_to_older_snapshots();
    assert!(read(&mut before, table.tree(0), View::Snapshot).is_empty());
}

/// A prepared transaction without owner that has written a row to `t`.
fn leave_prepared(engine: &Engine) {
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "undecided", "1");
    txn.prepare(b"xid").unwrap();
}

#[test]
fn a_table_is_not_changed_under_a_prepared_transaction_that_nobody_owns() {
    for restarted in [false, true] {
        let (fs, engine, table) = with_table(5);
        put(&engine, table.tree(0), &[("a", "1")]);
        drop(table);
        leave_prepared(&engine);
        let (_fs, engine) = if restarted { crash(&fs, engine) } else { (fs, engine) };
        let undecided = |result: Result<()>| matches!(result, Err(Error::Undecided { xid }) if xid == b"xid");
        assert!(undecided(engine.drop("t", IfPrepared::Refuse)));
        assert!(undecided(engine.empty("t", None)));
        engine.create(NewTable::new("u", &specs(1))).unwrap();
        assert!(undecided(engine.change(&[Replacement { table: "t", by: "u", counter: 1 }.into()], &[])));
        let table = engine.open_table("t").unwrap();
        assert!(undecided(engine.build_trees(&table, &[1], 0).map(drop)));
        let wait = WaitRequest::waiting(Duration::from_millis(10));
        let told = Mutex::new(Vec::new());
        let tell = |xid: &[u8]| told.lock().push(xid.to_vec());
        let wait_for = |name| engine.wait_for_holders(name, &[Intention::Prepared], 0, &wait, &tell);
        assert!(undecided(wait_for("t")));
        assert_eq!(*told.lock(), [b"xid".to_vec()]);
        engine.create(NewTable::new("other", &specs(1))).unwrap();
        wait_for("other").unwrap();
        engine.drop("other", IfPrepared::Refuse).unwrap();
        // The name is not what it has written to.
        engine.rename(Renaming::new("t", "renamed")).unwrap();
        assert!(undecided(engine.drop("renamed", IfPrepared::Refuse)));
        engine.commit_prepared(b"xid").unwrap();
        wait_for("renamed").unwrap();
        expect(&engine, "renamed", 0, &[("a", "1"), ("undecided", "1")]);
        engine.drop("renamed", IfPrepared::Refuse).unwrap();
    }
}

#[test]
fn a_change_that_waits_goes_on_when_the_prepared_transaction_is_decided() {
    let (_fs, engine, table) = with_table(6);
    drop(table);
    leave_prepared(&engine);
    let (told, asked) = std::sync::mpsc::channel();
    let waiter = {
        let engine = engine.clone();
        std::thread::spawn(move || {
            let wait = WaitRequest::waiting(Duration::from_secs(60));
            engine.wait_for_holders("t", &[Intention::Prepared], 0, &wait, &|_| told.send(()).unwrap())?;
            engine.empty("t", None)
        })
    };
    asked.recv().unwrap();
    engine.rollback_prepared(b"xid").unwrap();
    waiter.join().unwrap().unwrap();
    // What only its session could see goes with the session.
    leave_prepared(&engine);
    engine.drop("t", IfPrepared::Ignore).unwrap();
    engine.commit_prepared(b"xid").unwrap();
}

#[test]
fn that_a_prepared_transaction_was_rolled_back_survives_power_loss() {
    let (fs, engine, table) = with_table(7);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "a", "1");
    txn.prepare(b"xid").unwrap();
    txn.try_rollback().unwrap();
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    assert!(engine.prepared().is_empty());
    put(&engine, engine.open_table("t").unwrap().tree(0), &[("a", "2")]);
}

#[test]
fn blocks_of_a_rolled_back_load_are_not_reused_before_that_is_durable() {
    for flush in [CommitFlush::Sync, CommitFlush::Write, CommitFlush::Lazy] {
        let (fs, engine, table) = with_table(8);
        let tree = table.tree(0);
        engine.settings().set_commit_flush(CommitFlush::Sync);
        let load = |from: u64| {
            let mut txn = engine.begin(Isolation::ReadCommitted);
            for i in from..from + 20_000 {
                txn.append(tree, &i.to_be_bytes(), &[i as u8; 30]).unwrap();
            }
            txn
        };
        let mut txn = load(0);
        txn.prepare(b"xid").unwrap();
        engine.settings().set_commit_flush(flush);
        txn.rollback();
        // Where the blocks were that the log names.
        let mut other = load(100_000);
        other.finish_writes().unwrap();
        let fs = fs.kill();
        drop((other, table, engine));
        let engine = open(&fs);
        let table = engine.open_table("t").unwrap();
        assert!(all(&engine, table.tree(0)).is_empty());
        assert!(engine.prepared().is_empty());
    }
}

#[test]
fn a_counter_that_was_asked_for_is_durable_without_any_row() {
    let (fs, engine, table) = with_table(9);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.set_counter(&table, 1000);
    txn.commit().unwrap();
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.open_table("t").unwrap().counter(), 1000);
}

#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl Observer for Listener {
    fn message(&self, level: LogLevel, text: &str) {
        if level == LogLevel::Warning {
            self.0.lock().push(text.to_string());
        }
    }
}

#[test]
fn who_has_most_of_the_log_that_is_kept_is_told_each_time_it_has_doubled() {
    let listener = Arc::new(Listener::default());
    let options = Options { checkpoint_log_bytes: 64 << 10, observer: listener.clone(), ..options() };
    let fs = SimulatedFileSystem::new(10);
    let engine = Engine::open(Arc::new(fs.clone()), options).unwrap();
    engine.create(NewTable::new("t", &specs(2))).unwrap();
    leave_prepared(&engine);
    let table = engine.open_table("t").unwrap();
    let write = |txn: &mut Transaction, key: String, i: u64| {
        let value: Vec<u8> = (0..1024).map(|j| b'a' + ((i * 31 + j * 7) % 23) as u8).collect();
        txn.write(table.tree(1), key.as_bytes(), WriteOp::Insert(&value)).unwrap();
    };
    let mut number = 0;
    let mut churn = |kilobytes: u64| {
        for _ in 0..kilobytes {
            number += 1;
            let mut txn = engine.begin(Isolation::Repeatable);
            write(&mut txn, format!("{number:06}"), number);
            txn.commit().unwrap();
        }
        engine.checkpoint().unwrap();
    };
    // What is small is copied before.
    (0..20).for_each(|_| churn(30));
    assert!(engine.statistics().log_pinned_bytes < 130 << 10);
    assert!(listener.0.lock().is_empty(), "{:?}", listener.0.lock());
    let mut large = engine.begin(Isolation::Repeatable);
    (0..200).for_each(|i| write(&mut large, format!("large {i:03}"), i));
    large.prepare(b"large").unwrap();
    churn(70);
    assert_eq!(listener.0.lock().len(), 1, "{:?}", listener.0.lock());
    assert!(listener.0.lock()[0].contains("by prepared transaction 'large', which is 0 s old"));
    churn(10);
    assert_eq!(listener.0.lock().len(), 1);
    (0..40).for_each(|_| churn(30));
    assert_eq!(listener.0.lock().len(), 2, "{:?}", listener.0.lock());
    assert!(engine.statistics().log_pinned_bytes < 600 << 10);
    large.commit().unwrap();
    engine.rollback_prepared(b"xid").unwrap();
    assert_eq!(engine.statistics().log_pinned_bytes, 0);
}

#[test]
fn a_table_knows_when_it_was_changed_last_until_the_engine_ends() {
    let (fs, time) = (SimulatedFileSystem::new(1), Time::simulated());
    let engine = Engine::open(Arc::new(fs.clone()), Options { time: time.clone(), ..options() }).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    let changed_at = |engine: &Engine| engine.open_table("t").unwrap().tree(0).changed_at();
    assert_eq!(changed_at(&engine), 0);
    time.pass(Duration::from_secs(100));
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, table.tree(0), "a", "1");
    txn.rollback();
    assert_eq!(changed_at(&engine), 0);
    put(&engine, table.tree(0), &[("a", "1")]);
    assert_eq!(changed_at(&engine), 100);
    time.pass(Duration::from_secs(100));
    engine.empty("t", None).unwrap();
    assert_eq!(changed_at(&engine), 200);
    let (_, engine) = crash(&fs, engine);
    assert_eq!(changed_at(&engine), 0);
}
