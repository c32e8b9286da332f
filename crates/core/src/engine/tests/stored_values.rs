//! Large values that the log names and does not have, and what a restart makes of the log when the image has part of
//! it.

use super::*;

const BYTES: usize = 20_000;

fn key(i: u64) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

/// Random, so that nothing gets smaller.
fn text(i: u64, round: u64) -> Vec<u8> {
    let mut state = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round.wrapping_mul(0xd134_2543_de82_ef95);
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u8
    };
    (0..BYTES).map(|_| next()).collect()
}

fn texts(range: std::ops::Range<u64>, round: u64) -> Rows {
    range.map(|i| (key(i), text(i, round))).collect()
}

fn write(txn: &mut Transaction, tree: &Arc<Tree>, range: std::ops::Range<u64>, round: u64) {
    for i in range {
        let value = text(i, round);
        let op = if round == 0 { WriteOp::Insert(&value) } else { WriteOp::Update(&value) };
        txn.write(tree, &key(i), op).unwrap();
    }
}

fn commit(engine: &Engine, tree: &Arc<Tree>, range: std::ops::Range<u64>, round: u64) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    write(&mut txn, tree, range, round);
    txn.commit().unwrap();
}

fn used(table: &Table) -> u64 {
    table.disk_bytes() - table.free_bytes()
}

#[test]
fn the_log_has_the_large_values_of_small_transactions_and_names_those_of_large_ones() {
    let (fs, engine, table) = with_table(1);
    let logged = |range, round| {
        let before = engine.statistics().log_bytes;
        commit(&engine, table.tree(0), range, round);
        engine.statistics().log_bytes - before
    };
    assert!(logged(0..10, 0) > 10 * BYTES as u64);
    // The first MiB of redo is collected before anybody knows that the transaction is large.
    let bytes = logged(10..500, 0);
    assert!(bytes < 2 << 20, "{bytes} bytes of log for {} of values", 490 * BYTES);
    assert!(all(&engine, table.tree(0)) == texts(0..500, 0));
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)) == texts(0..500, 0));
    assert_eq!(table.tree(0).entries(), 500);
    commit(&engine, table.tree(0), 0..500, 1);
    engine.checkpoint().unwrap();
    commit(&engine, table.tree(0), 100..400, 2);
    drop(table);
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    let mut expected = texts(0..500, 1);
    expected.append(&mut texts(100..400, 2));
    assert!(all(&engine, table.tree(0)) == expected);
    assert_eq!(table.tree(0).entries(), 500);
    engine.check_table(&table).unwrap();
}

#[test]
fn values_that_are_rolled_back_give_their_space_back_wherever_the_log_names_them() {
    let (fs, engine, table) = with_table(2);
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    write(&mut txn, tree, 0..100, 0);
    let savepoint = txn.savepoint();
    write(&mut txn, tree, 0..400, 1);
    txn.rollback_to(savepoint).unwrap();
    txn.commit().unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    write(&mut txn, tree, 0..400, 2);
    engine.checkpoint().unwrap();
    txn.rollback();
    engine.checkpoint().unwrap();
    engine.checkpoint().unwrap();
    assert!(all(&engine, tree) == texts(0..100, 0));
    assert!(used(&table) < 120 * BYTES as u64, "{} bytes in use", used(&table));
    // One that is open when the power goes leaves nothing either.
    let mut txn = engine.begin(Isolation::ReadCommitted);
    write(&mut txn, tree, 0..400, 3);
    txn.detach();
    drop(table);
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)) == texts(0..100, 0));
    engine.checkpoint().unwrap();
    assert!(used(&table) < 120 * BYTES as u64, "{} bytes in use", used(&table));
}

#[test]
fn prepared_values_are_there_after_crashes_until_it_is_decided() {
    let (fs, engine, table) = with_table(3);
    commit(&engine, table.tree(0), 0..10, 0);
    for (xid, tree) in [(b"a", 0), (b"b", 1)] {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        write(&mut txn, table.tree(tree), 10..300, 0);
        txn.prepare(xid).unwrap();
        txn.detach();
    }
    engine.checkpoint().unwrap();
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    let (fs, engine) = crash(&fs, engine);
    assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == texts(0..10, 0));
    engine.commit_prepared(b"a").unwrap();
    engine.rollback_prepared(b"b").unwrap();
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)) == texts(0..300, 0));
    assert!(all(&engine, table.tree(1)).is_empty());
}

#[test]
fn a_replay_from_far_back_does_not_undo_what_the_image_has() {
    let (fs, engine, table) = with_table(4);
    let tree = table.tree(0);
    commit(&engine, tree, 0..200, 0);
    engine.checkpoint().unwrap();
    // Holds the log from here on.
    let mut old = engine.begin(Isolation::ReadCommitted);
    old.write(table.tree(1), b"held", WriteOp::Insert(b"1")).unwrap();
    old.prepare(b"x").unwrap();
    old.detach();
    // Small updates that the log has, over them large ones that it names; deletions, and over them a load of blocks.
    for i in 0..200 {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        txn.write(tree, &key(i), WriteOp::Update(b"short")).unwrap();
        txn.commit().unwrap();
    }
    commit(&engine, tree, 0..200, 1);
    let row = |i: u64| format!("{i:0200}").into_bytes();
    let load = |engine: &Engine| {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        (1000..6000).for_each(|i| txn.append(tree, &key(i), &row(i)).unwrap());
        txn.commit().unwrap();
    };
    load(&engine);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    (1000..6000).for_each(|i| txn.write(tree, &key(i), WriteOp::Delete).unwrap());
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    load(&engine);
    engine.checkpoint().unwrap();
    let mut expected = texts(0..200, 1);
    expected.extend((1000..6000).map(|i| (key(i), row(i))));
    assert!(all(&engine, tree) == expected);
    drop(table);
    let (_, engine) = crash(&fs, engine);
    let found = all(&engine, engine.open_table("t").unwrap().tree(0));
    assert_eq!(found.len(), expected.len());
    assert!(found == expected);
    assert_eq!(engine.open_table("t").unwrap().tree(0).entries(), expected.len() as u64);
}
