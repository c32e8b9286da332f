use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::file::RealFileSystem;
use crate::lock::LockOutcome;
use crate::{LockMode, Seek, TreeSpec, View, WaitRequest, WriteOp};

fn engine() -> (Engine, Arc<Tree>) {
    let engine = Engine::open(Arc::new(RealFileSystem), Options::new("/nowhere")).unwrap();
    engine.create(NewTable { meta: b"meta", ..NewTable::new("t", &[TreeSpec::default()]) }).unwrap();
    let tree = engine.open_table("t").unwrap().tree(0).clone();
    (engine, tree)
}

fn put(engine: &Engine, tree: &Arc<Tree>, key: &[u8], value: &[u8]) {
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.write(tree, key, WriteOp::Insert(value)).unwrap();
    txn.commit().unwrap();
}

fn get(txn: &mut Transaction, tree: &Arc<Tree>, view: View, key: &[u8]) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(tree.clone());
    cursor.get(txn, view, key).unwrap().then(|| cursor.value().unwrap().to_vec())
}

#[test]
fn a_snapshot_does_not_see_later_commits() {
    let (engine, tree) = engine();
    put(&engine, &tree, b"a", b"1");
    let mut old = engine.begin(Isolation::Repeatable);
    assert_eq!(get(&mut old, &tree, View::Snapshot, b"a"), Some(b"1".to_vec()));
    put(&engine, &tree, b"a", b"2");
    assert_eq!(get(&mut old, &tree, View::Snapshot, b"a"), Some(b"1".to_vec()));
    assert_eq!(get(&mut old, &tree, View::Latest, b"a"), Some(b"2".to_vec()));
    assert!(old.changed_since_snapshot(&tree, b"a").unwrap());
    old.close_snapshot();
    assert_eq!(get(&mut old, &tree, View::Snapshot, b"a"), Some(b"2".to_vec()));
}

#[test]
fn own_writes_are_seen_and_savepoints_undo_them() {
    let (engine, tree) = engine();
    put(&engine, &tree, b"a", b"1");
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.write(&tree, b"a", WriteOp::Update(b"2")).unwrap();
    let savepoint = txn.savepoint();
    txn.write(&tree, b"a", WriteOp::Delete).unwrap();
    txn.write(&tree, b"b", WriteOp::Insert(b"3")).unwrap();
    assert_eq!(get(&mut txn, &tree, View::Snapshot, b"a"), None);
    txn.rollback_to(savepoint).unwrap();
    assert_eq!(get(&mut txn, &tree, View::Snapshot, b"a"), Some(b"2".to_vec()));
    assert_eq!(get(&mut txn, &tree, View::Latest, b"b"), None);
    txn.rollback();
    let mut txn = engine.begin(Isolation::Repeatable);
    assert_eq!(get(&mut txn, &tree, View::Latest, b"a"), Some(b"1".to_vec()));
}

#[test]
fn cursors_go_both_ways_over_what_is_visible() {
    let (engine, tree) = engine();
    for key in [b"a", b"b", b"c", b"d"] {
        put(&engine, &tree, key, key);
    }
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.write(&tree, b"c", WriteOp::Delete).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    assert!(cursor.seek(&mut txn, View::Snapshot, Seek::After, b"a").unwrap());
    assert_eq!(cursor.key(), b"b");
    assert!(cursor.next(&mut txn).unwrap());
    assert_eq!(cursor.key(), b"d");
    assert!(!cursor.next(&mut txn).unwrap());
    assert!(cursor.seek(&mut txn, View::Snapshot, Seek::AtOrBefore, b"c").unwrap());
    assert_eq!(cursor.key(), b"b");
    assert!(cursor.prev(&mut txn).unwrap());
    assert_eq!(cursor.key(), b"a");
    assert_eq!(tree.estimate(Bound::Included(b"b"), Bound::Unbounded).unwrap(), 3);
    assert_eq!(tree.entries(), 4);
}

#[test]
fn a_prepared_transaction_outlives_its_handle() {
    let (engine, tree) = engine();
    let mut txn = engine.begin(Isolation::Repeatable);
    let wait = WaitRequest::waiting(Duration::ZERO);
    txn.lock(&tree, b"a", LockMode::Exclusive, &wait).unwrap();
    txn.write(&tree, b"a", WriteOp::Insert(b"1")).unwrap();
    txn.prepare(b"x").unwrap();
    drop(txn);
    assert_eq!(engine.prepared(), [b"x".to_vec()]);
    let mut other = engine.begin(Isolation::Repeatable);
    let refused = other.lock(&tree, b"a", LockMode::Exclusive, &WaitRequest::no_wait());
    assert!(matches!(refused, Err(Error::WouldBlock)));
    engine.commit_prepared(b"x").unwrap();
    assert!(engine.prepared().is_empty());
    assert_eq!(other.lock(&tree, b"a", LockMode::Exclusive, &wait).unwrap(), LockOutcome::New);
    assert_eq!(get(&mut other, &tree, View::Latest, b"a"), Some(b"1".to_vec()));
}

#[test]
fn tables_are_renamed_emptied_and_dropped() {
    let (engine, tree) = engine();
    put(&engine, &tree, b"a", b"1");
    engine.rename(Renaming::new("t", "u")).unwrap();
    assert!(matches!(engine.open_table("t"), Err(Error::NoSuchTable(_))));
    assert_eq!(engine.open_table("u").unwrap().tree(0).entries(), 1);
    engine.empty("u", None).unwrap();
    assert_eq!(engine.open_table("u").unwrap().tree(0).entries(), 0);
    assert_eq!(engine.open_table("u").unwrap().meta(), b"meta");
    engine.empty("u", Some(b"other")).unwrap();
    assert_eq!(engine.open_table("u").unwrap().meta(), b"other");
    engine.create(NewTable::new("v", &[])).unwrap();
    assert_eq!(engine.table_names("").unwrap(), ["u", "v"]);
    engine.drop("u", IfPrepared::Refuse).unwrap();
    engine.drop("v", IfPrepared::Refuse).unwrap();
    assert!(engine.table_names("").unwrap().is_empty());
}

#[test]
fn pending_shows_the_puts_of_open_transactions_but_not_their_deletes() {
    let (engine, tree) = engine();
    put(&engine, &tree, b"a", b"1");
    let mut writer = engine.begin(Isolation::Repeatable);
    writer.write(&tree, b"a", WriteOp::Delete).unwrap();
    writer.write(&tree, b"b", WriteOp::Insert(b"2")).unwrap();
    let mut reader = engine.begin(Isolation::Repeatable);
    assert_eq!(get(&mut reader, &tree, View::Pending, b"a"), Some(b"1".to_vec()));
    assert_eq!(get(&mut reader, &tree, View::Pending, b"b"), Some(b"2".to_vec()));
    assert_eq!(get(&mut reader, &tree, View::Latest, b"b"), None);
    assert_eq!(get(&mut writer, &tree, View::Pending, b"a"), None);
}
