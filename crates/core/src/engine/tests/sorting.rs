//! Rows that come in no order into an empty table: they end up as if they had come in order, or none does.

use super::*;

/// Little: runs are spilled.
const SORT_BYTES: usize = 64 << 10;

/// The keys of a permutation of `0..rows`.
fn shuffled(rows: u64) -> impl Iterator<Item = u64> {
    // 7919 is a prime.
    (0..rows).map(move |i| i * 7919 % rows)
}

fn key(i: u64) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

/// Mostly small; one in 500 does not fit into a leaf.
fn value(i: u64) -> Vec<u8> {
    let length = if i % 500 == 499 { 9000 } else { 20 + i % 60 };
    vec![i as u8; length as usize]
}

fn rows(range: std::ops::Range<u64>) -> Rows {
    range.map(|i| (key(i), value(i))).collect()
}

/// Inserts as a statement does that a duplicate ends; returns how many rows were sorted.
fn insert(txn: &mut Transaction, tree: &Arc<Tree>, keys: impl Iterator<Item = u64>) -> Result<u64> {
    let mut sorted = 0;
    for i in keys {
        if txn.sorts(tree, &key(i), SORT_BYTES)? {
            sorted += 1;
        }
        txn.append(tree, &key(i), &value(i))?;
    }
    Ok(sorted)
}

#[test]
fn rows_in_no_order_become_blocks_and_survive_a_crash() {
    let (fs, engine, table) = with_table(1);
    let before = engine.statistics().log_bytes;
    let mut txn = engine.begin(Isolation::ReadCommitted);
    assert!(insert(&mut txn, table.tree(0), shuffled(20_000)).unwrap() > 19_900);
    txn.finish_writes().unwrap();
    assert!(all(&engine, table.tree(0)).is_empty(), "not committed");
    txn.commit().unwrap();
    let logged = engine.statistics().log_bytes - before;
    let bytes: usize = rows(0..20_000).values().map(Vec::len).sum();
    assert!(logged * 2 < bytes as u64, "{logged} bytes of log for {bytes} bytes of rows");
    assert!(all(&engine, table.tree(0)) == rows(0..20_000));
    assert_eq!(table.tree(0).entries(), 20_000);
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)) == rows(0..20_000));
    assert_eq!(table.tree(0).entries(), 20_000);
    engine.check_table(&table).unwrap();
}

#[test]
fn a_key_twice_is_told_at_the_end_and_going_back_leaves_nothing() {
    let (_, engine, table) = with_table(2);
    let tree = table.tree(0);
    put(&engine, table.tree(1), &[("before", "1")]);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let start = txn.savepoint();
    insert(&mut txn, tree, shuffled(5000).chain([17])).unwrap();
    assert!(matches!(txn.finish_writes(), Err(Error::DuplicateRow { key: twice }) if twice == key(17)));
    txn.rollback_to(start).unwrap();
    assert!(read(&mut txn, tree, View::Latest).is_empty());
    // And once more without it.
    insert(&mut txn, tree, shuffled(5000)).unwrap();
    txn.commit().unwrap();
    assert!(all(&engine, tree) == rows(0..5000));
    assert_eq!(tree.entries(), 5000);
}

#[test]
fn a_key_that_another_transaction_has_committed_meanwhile_is_a_duplicate() {
    let (_, engine, table) = with_table(3);
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    insert(&mut txn, tree, shuffled(4000)).unwrap();
    let mut other = engine.begin(Isolation::ReadCommitted);
    other.write(tree, &key(2500), WriteOp::Insert(b"first")).unwrap();
    other.write(tree, &key(9999), WriteOp::Insert(b"no twin")).unwrap();
    other.commit().unwrap();
    assert!(matches!(txn.finish_writes(), Err(Error::DuplicateRow { key: twice }) if twice == key(2500)));
    txn.rollback();
    assert_eq!(all(&engine, tree).len(), 2);
}

#[test]
fn own_reads_and_writes_in_between_meet_the_rows() {
    let (_, engine, table) = with_table(4);
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    insert(&mut txn, tree, shuffled(3000)).unwrap();
    assert!(txn.sorts(tree, &key(9999), SORT_BYTES).unwrap());
    let mut cursor = Cursor::new(tree.clone());
    assert!(cursor.get(&mut txn, View::Latest, &key(2999)).unwrap());
    assert!(!txn.sorts(tree, &key(9999), SORT_BYTES).unwrap());
    // The table is not empty any more: what follows is not sorted, and as right.
    let more = [5000, 4000, 4500, 3500];
    assert_eq!(insert(&mut txn, tree, more.into_iter()).unwrap(), 0);
    txn.write(tree, &key(10), WriteOp::Delete).unwrap();
    txn.commit().unwrap();
    let mut expected = rows(0..3000);
    expected.extend(more.map(|i| (key(i), value(i))));
    expected.remove(&key(10));
    assert!(all(&engine, tree) == expected);
}

#[test]
fn rows_in_order_and_tables_with_rows_are_not_sorted() {
    let (_, engine, table) = with_table(5);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    assert_eq!(insert(&mut txn, table.tree(0), 0..3000).unwrap(), 0);
    assert_eq!(insert(&mut txn, table.tree(0), (3000..3100).rev()).unwrap(), 0);
    txn.commit().unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    assert_eq!(insert(&mut txn, table.tree(0), (4000..4100).rev()).unwrap(), 0);
    txn.commit().unwrap();
    let mut expected = rows(0..3100);
    expected.extend(rows(4000..4100));
    assert!(all(&engine, table.tree(0)) == expected);
}

#[test]
fn an_error_of_rows_that_are_gone_comes_again_until_they_are_undone() {
    let twice = |result: Result<()>| matches!(result, Err(Error::DuplicateRow { key: k }) if k == key(17));
    // The end of the statement meets it, or a savepoint, which says nothing.
    for told in [true, false] {
        let (_, engine, table) = with_table(7);
        let tree = table.tree(0);
        let mut txn = engine.begin(Isolation::ReadCommitted);
        let before = txn.savepoint();
        insert(&mut txn, tree, shuffled(5000).chain([17])).unwrap();
        assert!(!told || twice(txn.finish_writes()));
        let after = txn.savepoint();
        assert!(twice(txn.finish_writes()) && twice(txn.append(tree, &key(9999), b"")));
        txn.write(table.tree(1), b"k", WriteOp::Insert(b"")).unwrap();
        txn.rollback_to(after).unwrap();
        assert!(twice(txn.finish_writes()));
        txn.rollback_to(before).unwrap();
        txn.finish_writes().unwrap();
        insert(&mut txn, tree, shuffled(10)).unwrap();
        txn.commit().unwrap();
        assert!(all(&engine, tree) == rows(0..10));
    }
    // Who goes on all the same cannot commit, nor prepare.
    for prepares in [false, true] {
        let (_, engine, table) = with_table(8);
        let mut txn = engine.begin(Isolation::ReadCommitted);
        insert(&mut txn, table.tree(0), shuffled(5000).chain([17])).unwrap();
        assert!(twice(txn.finish_writes()));
        let ended = match prepares {
            true => txn.prepare(b"xid"),
            false => txn.commit(),
        };
        assert!(twice(ended));
        assert!(all(&engine, table.tree(0)).is_empty());
    }
}
