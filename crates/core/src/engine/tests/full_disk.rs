//! A disk that has no more room, and writers that wait for checkpoints.

use super::*;
use crate::file::Fault;
use crate::{Error, WaitRequest};
use std::time::Duration;

fn with_reserve(fs: &SimulatedFileSystem) -> Engine {
    let options = Options { disk_reserve_bytes: 64 << 10, ..options() };
    Engine::open(Arc::new(fs.clone()), options).unwrap()
}

#[test]
fn on_a_full_disk_rows_can_be_deleted_and_no_more_inserted_until_there_is_room() {
    let fs = SimulatedFileSystem::new(1);
    let engine = with_reserve(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let tree = engine.open_table("t").unwrap().tree(0).clone();
    put(&engine, &tree, &[("a", "1"), ("b", "2")]);

    // One write finds the disk full: the commit takes what the reserve held.
    fs.fail_after(0, Fault::Enospc);
    put(&engine, &tree, &[("c", "3")]);
    let mut txn = engine.begin(Isolation::Repeatable);
    let refused = txn.write(&tree, b"d", WriteOp::Insert(b"4"));
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "{refused:?}");
    txn.write(&tree, b"a", WriteOp::Delete).unwrap();
    txn.commit().unwrap();

    // The simulated disk has room; the checkpoint finds it.
    engine.checkpoint().unwrap();
    put(&engine, &tree, &[("d", "4")]);
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("b", "2"), ("c", "3"), ("d", "4")]);
}

#[test]
fn a_checkpoint_that_finds_the_disk_full_takes_the_reserve() {
    let fs = SimulatedFileSystem::new(2);
    let engine = with_reserve(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let tree = engine.open_table("t").unwrap().tree(0).clone();
    put(&engine, &tree, &[("a", "1")]);
    fs.fail_after(0, Fault::Enospc);
    engine.checkpoint().unwrap();
    put(&engine, &tree, &[("b", "2")]);
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("a", "1"), ("b", "2")]);
}

#[test]
fn what_gives_space_back_is_not_refused_while_checkpoints_find_none() {
    let fs = SimulatedFileSystem::new(3);
    let engine = with_reserve(&fs);
    for name in ["t", "u", "v"] {
        engine.create(NewTable::new(name, &specs(1))).unwrap();
    }
    let tree = engine.open_table("t").unwrap().tree(0).clone();
    put(&engine, &tree, &[("a", "1"), ("b", "2")]);
    fs.fail_from(0, Fault::Enospc);
    for _ in 0..3 {
        assert!(matches!(engine.checkpoint(), Err(Error::DiskFull { .. })));
    }
    fs.heal();
    // Each finds the disk full once, and that the checkpoints have left something.
    let full = || fs.fail_after(0, Fault::Enospc);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.write(&tree, b"a", WriteOp::Delete).unwrap();
    full();
    txn.commit().unwrap();
    full();
    engine.drop("u", IfPrepared::Refuse).unwrap();
    full();
    engine.empty("v", None).unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    let refused = txn.write(&tree, b"c", WriteOp::Insert(b"3"));
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "{refused:?}");
    txn.rollback();
    engine.checkpoint().unwrap();
    put(&engine, &tree, &[("d", "4")]);
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("b", "2"), ("d", "4")]);
    assert_eq!(engine.table_names("").unwrap(), ["t", "v"]);
}

#[test]
fn a_wait_for_a_checkpoint_can_be_interrupted() {
    let fs = SimulatedFileSystem::new(4);
    let engine = Engine::open(Arc::new(fs), Options { background: true, ..options() }).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let tree = engine.open_table("t").unwrap().tree(0).clone();
    put(&engine, &tree, &[("a", &"x".repeat(100_000))]);
    let mut txn = engine.begin(Isolation::Repeatable);
    // Checkpoints wait for this.
    let _ddl = engine.shared.definitions.ddl.read();
    engine.settings().set_checkpoint_log_bytes(1000);
    assert!(txn.checkpoint_is_far_behind());
    let killed = WaitRequest { interrupted: &|| true, ..WaitRequest::waiting(Duration::from_secs(50)) };
    assert!(matches!(txn.wait_for_checkpoint(&killed), Err(Error::Interrupted)));
}
