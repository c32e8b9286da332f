//! The public interface, on the simulated file system.

use super::*;
use crate::file::SimulatedFileSystem;
use crate::{Error, Isolation, Options, TreeSpec};
use std::sync::Arc;
use std::time::Duration;

fn engine(seed: u64) -> (Engine, Arc<Table>) {
    let options = Options { background: false, recovery_threads: 1, ..Options::new("/teak") };
    let engine = Engine::open_on(Arc::new(SimulatedFileSystem::new(seed)), options).unwrap();
    let spec = TreeSpec { block_bytes: 4096, ..TreeSpec::default() };
    let table = engine.create_table("t", &[spec]).unwrap();
    (engine, table)
}

fn filled(seed: u64, rows: u32) -> (Engine, Arc<Table>) {
    let (engine, table) = engine(seed);
    let mut txn = engine.begin();
    for i in 0..rows {
        txn.insert(table.tree(0), i.to_be_bytes(), i.to_string()).unwrap();
    }
    txn.commit().unwrap();
    (engine, table)
}

fn numbers(rows: Cursor<'_>) -> Vec<u32> {
    rows.map(|row| u32::from_be_bytes(row.unwrap().0.try_into().unwrap())).collect()
}

#[test]
fn a_range_has_the_rows_between_its_ends_in_either_order() {
    let (engine, table) = filled(1, 1000);
    let tree = table.tree(0);
    engine.checkpoint().unwrap();
    let snapshot = engine.snapshot();
    let key = |i: u32| i.to_be_bytes();
    for level in [Isolation::ReadCommitted, Isolation::Repeatable, Isolation::Serializable] {
        let mut txn = engine.begin_at(level);
        for (from, to) in [(0, 1000), (17, 400), (400, 400), (500, 20), (990, 5000), (2000, 3000)] {
            let exclusive = (from..to.min(1000)).collect::<Vec<_>>();
            let inclusive = (from..=to).filter(|i| *i < 1000).collect::<Vec<_>>();
            let reversed = |rows: &[u32]| rows.iter().rev().copied().collect::<Vec<_>>();
            assert_eq!(numbers(txn.range(tree, key(from)..key(to)).unwrap()), exclusive);
            assert_eq!(numbers(snapshot.range(tree, key(from)..key(to))), exclusive);
            assert_eq!(numbers(txn.range(tree, key(from)..=key(to)).unwrap()), inclusive);
            assert_eq!(
                numbers(txn.range(tree, key(from)..key(to)).unwrap().descending()),
                reversed(&exclusive)
            );
            assert_eq!(numbers(snapshot.range(tree, key(from)..=key(to)).descending()), reversed(&inclusive));
        }
        assert_eq!(numbers(txn.range(tree, key(997)..).unwrap()), [997, 998, 999]);
        assert_eq!(numbers(txn.range(tree, ..key(2)).unwrap().descending()), [1, 0]);
        assert_eq!(txn.rows(tree).unwrap().count(), 1000);
    }
    // Rows that are left, the last first.
    let mut rows = snapshot.range(tree, ..key(6));
    assert!(rows.advance().unwrap() && rows.advance().unwrap());
    assert_eq!(numbers(rows.descending()), [5, 4, 3, 2]);
}

#[test]
fn a_cursor_lends_its_rows_and_ends_once() {
    let (engine, table) = filled(2, 3);
    let snapshot = engine.snapshot();
    let mut rows = snapshot.rows(table.tree(0));
    assert_eq!(rows.key(), b"");
    for i in 0..3u32 {
        assert!(rows.advance().unwrap());
        assert_eq!((rows.key(), rows.value().unwrap()), (&i.to_be_bytes()[..], i.to_string().as_bytes()));
    }
    assert!(!rows.advance().unwrap() && !rows.advance().unwrap());
    assert!(rows.next().is_none());
}

#[test]
fn a_snapshot_stays_and_a_reader_at_read_committed_goes_on() {
    let (engine, table) = filled(3, 10);
    let tree = table.tree(0);
    let before = engine.snapshot();
    let (mut fixed, mut moving) = (engine.begin(), engine.begin_at(Isolation::ReadCommitted));
    assert_eq!(fixed.get(tree, 1u32.to_be_bytes()).unwrap(), Some(b"1".to_vec()));
    assert_eq!(moving.get(tree, 1u32.to_be_bytes()).unwrap(), Some(b"1".to_vec()));
    let mut txn = engine.begin();
    assert!(txn.update(tree, 1u32.to_be_bytes(), "new").unwrap());
    assert!(txn.delete(tree, 2u32.to_be_bytes()).unwrap());
    assert_eq!(txn.rows(tree).unwrap().count(), 9);
    txn.commit().unwrap();
    assert_eq!((before.rows(tree).count(), fixed.rows(tree).unwrap().count()), (10, 10));
    assert_eq!(before.get(tree, 1u32.to_be_bytes()).unwrap(), Some(b"1".to_vec()));
    assert_eq!(before.get(tree, b"none").unwrap(), None);
    assert_eq!(moving.rows(tree).unwrap().count(), 9);
    assert_eq!(moving.get(tree, 1u32.to_be_bytes()).unwrap(), Some(b"new".to_vec()));
    assert!(matches!(fixed.update(tree, 1u32.to_be_bytes(), "x"), Err(Error::SnapshotConflict)));
}

#[test]
fn what_a_serializable_transaction_has_read_nobody_changes() {
    let (engine, table) = filled(4, 10);
    let tree = table.tree(0);
    let mut reader = engine.begin_at(Isolation::Serializable);
    assert_eq!(reader.range(tree, 2u32.to_be_bytes()..5u32.to_be_bytes()).unwrap().count(), 3);
    assert_eq!(reader.get(tree, b"missing").unwrap(), None);
    let mut writer = engine.begin();
    writer.set_lock_timeout(Duration::ZERO);
    assert!(matches!(writer.update(tree, 3u32.to_be_bytes(), "x"), Err(Error::WouldBlock)));
    assert!(matches!(writer.insert(tree, [0, 0, 0, 3, 0], "x"), Err(Error::WouldBlock)));
    assert!(matches!(writer.insert(tree, b"missing", "x"), Err(Error::WouldBlock)));
    writer.insert(tree, [0, 0, 0, 7, 0], "x").unwrap();
    assert!(writer.update(tree, 7u32.to_be_bytes(), "x").unwrap());
    // What another has not committed is waited for.
    reader.set_lock_timeout(Duration::ZERO);
    let later = reader.range(tree, 5u32.to_be_bytes()..).unwrap().collect::<Result<Vec<_>, _>>();
    assert!(matches!(later, Err(Error::WouldBlock)));
    writer.commit().unwrap();
    assert_eq!(reader.rows(tree).unwrap().count(), 11);
}

#[test]
fn what_is_undone_is_gone_and_a_savepoint_is_a_point_to_go_back_to() {
    let (engine, table) = engine(5);
    let tree = table.tree(0);
    let mut txn = engine.begin();
    txn.insert(tree, "a", "1").unwrap();
    let point = txn.savepoint();
    txn.insert(tree, "b", "2").unwrap();
    txn.rollback_to(point).unwrap();
    assert_eq!(txn.get(tree, "b").unwrap(), None);
    txn.commit().unwrap();
    let mut txn = engine.begin();
    txn.put(tree, "a", "3").unwrap();
    txn.rollback();
    assert_eq!(engine.snapshot().get(tree, "a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(engine.table_names("").unwrap(), ["t"]);
    let findings = engine.check().unwrap();
    assert!(findings.is_empty(), "{findings}");
}
