//! Rows that go to table files past the log: who sees them when, and what a crash leaves.

use super::*;
use crate::cache::Evictable;
use crate::file::{FileSystem, OpenMode};
use crate::tree::MOST_READS;
use std::sync::atomic::{AtomicU64, Ordering};

fn key(i: u64) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

fn value(i: u64) -> Vec<u8> {
    format!("{i} {:032x} {}", u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835), i * 7919)
        .into_bytes()
}

fn rows(range: std::ops::Range<u64>) -> Rows {
    range.map(|i| (key(i), value(i))).collect()
}

fn append(txn: &mut Transaction, tree: &Arc<Tree>, range: std::ops::Range<u64>) {
    for i in range {
        txn.append(tree, &key(i), &value(i)).unwrap();
    }
}

fn load(engine: &Engine, tree: &Arc<Tree>, range: std::ops::Range<u64>) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    append(&mut txn, tree, range);
    txn.commit().unwrap();
}

#[test]
fn a_load_leaves_little_in_the_log_and_all_in_the_table_also_after_a_crash() {
    let (fs, engine, table) = with_table(1);
    let before = engine.statistics().log_bytes;
    load(&engine, table.tree(0), 0..20_000);
    let logged = engine.statistics().log_bytes - before;
    let bytes: usize = rows(0..20_000).values().map(Vec::len).sum();
    assert!(logged * 10 < bytes as u64, "{logged} bytes of log for {bytes} bytes of rows");
    assert!(all(&engine, table.tree(0)) == rows(0..20_000));
    assert_eq!(table.tree(0).entries(), 20_000);
    let (fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)) == rows(0..20_000));
    assert_eq!(table.tree(0).entries(), 20_000);
    // Behind what was recovered, and once more with a checkpoint in between.
    load(&engine, table.tree(0), 20_000..30_000);
    engine.checkpoint().unwrap();
    load(&engine, table.tree(0), 30_000..40_000);
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)) == rows(0..40_000));
    assert_eq!(table.tree(0).entries(), 40_000);
    engine.check_table(&table).unwrap();
}

#[test]
fn nobody_else_sees_an_append_before_its_commit_nor_an_old_snapshot_after_it() {
    let (_, engine, table) = with_table(2);
    let tree = table.tree(0);
    load(&engine, tree, 0..3000);
    let mut old = engine.begin(Isolation::Repeatable);
    old.open_snapshot();
    let mut txn = engine.begin(Isolation::Repeatable);
    append(&mut txn, tree, 3000..9000);
    assert!(all(&engine, tree) == rows(0..3000));
    assert!(read(&mut txn, tree, View::Snapshot) == rows(0..9000), "its own rows");
    append(&mut txn, tree, 9000..12_000);
    txn.finish_writes().unwrap();
    assert!(read(&mut old, tree, View::Pending) == rows(0..12_000));
    assert!(read(&mut old, tree, View::Latest) == rows(0..3000));
    engine.checkpoint().unwrap();
    txn.commit().unwrap();
    assert!(read(&mut old, tree, View::Snapshot) == rows(0..3000));
    assert!(read(&mut old, tree, View::Latest) == rows(0..12_000));
    assert!(old.changed_since_snapshot(tree, &key(5000)).unwrap());
    assert!(!old.changed_since_snapshot(tree, &key(2000)).unwrap());
    // Changes of such rows fold births into histories.
    let mut other = engine.begin(Isolation::ReadCommitted);
    for i in 3000..12_000 {
        other.write(tree, &key(i), WriteOp::Update(b"changed")).unwrap();
    }
    other.commit().unwrap();
    engine.checkpoint().unwrap();
    assert!(read(&mut old, tree, View::Snapshot) == rows(0..3000));
    assert!(read(&mut old, tree, View::Latest).values().skip(3000).all(|value| value == b"changed"));
}

#[test]
fn what_is_rolled_back_is_gone_and_gives_its_space_back() {
    let (fs, engine, table) = with_table(3);
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    append(&mut txn, tree, 0..2000);
    let savepoint = txn.savepoint();
    append(&mut txn, tree, 2000..9000);
    txn.rollback_to(savepoint).unwrap();
    append(&mut txn, tree, 5000..6000);
    txn.finish_writes().unwrap();
    txn.commit().unwrap();
    let mut expected = rows(0..2000);
    expected.append(&mut rows(5000..6000));
    assert!(all(&engine, tree) == expected);
    assert_eq!(tree.entries(), 3000);

    let mut txn = engine.begin(Isolation::ReadCommitted);
    append(&mut txn, tree, 10_000..30_000);
    txn.finish_writes().unwrap();
    txn.rollback();
    assert!(all(&engine, tree) == expected);
    engine.checkpoint().unwrap();
    engine.checkpoint().unwrap();
    let leaves = tree.leaves();
    assert!(leaves < 100, "{leaves} leaves are left");
    let used = table.disk_bytes() - table.free_bytes();
    assert!(used < 300_000, "{used} bytes are in use");
    let (_, engine) = crash(&fs, engine);
    assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == expected);
}

#[test]
fn rows_in_any_order_and_of_several_trees_are_written_all_the_same() {
    let (fs, engine, table) = with_table(4);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for i in 0..3000 {
        let i = i * 7919 % 3001;
        txn.append(table.tree(0), &key(i), &value(i)).unwrap();
        txn.append(table.tree(1), &key(i), b"").unwrap();
    }
    txn.commit().unwrap();
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert_eq!(all(&engine, table.tree(0)).len(), 3000);
    assert_eq!(all(&engine, table.tree(1)).len(), 3000);
}

#[test]
fn appends_between_others_go_where_they_belong() {
    let (fs, engine, table) = with_table(5);
    let tree = table.tree(0);
    // Several loaders share the keys out among them, and finish in any order.
    let mut loads: Vec<Transaction> = (0..4).map(|_| engine.begin(Isolation::ReadCommitted)).collect();
    for part in 0..5 {
        for (n, txn) in loads.iter_mut().enumerate().rev() {
            let from = (part * 4 + n as u64) * 1000;
            append(txn, tree, from..from + 1000);
            txn.finish_writes().unwrap();
        }
    }
    loads.swap_remove(1).commit().unwrap();
    drop(loads.swap_remove(2));
    loads.into_iter().for_each(|txn| txn.commit().unwrap());
    let mut expected = rows(0..20_000);
    let lost = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap()) / 1000 % 4 == 2;
    expected.retain(|key, _| !lost(key));
    assert!(all(&engine, tree) == expected);
    let (_, engine) = crash(&fs, engine);
    assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == expected);
}

#[test]
fn loads_side_by_side_are_not_in_each_others_way() {
    let (fs, engine, table) = with_table(4);
    let tree = table.tree(0);
    let before = engine.statistics().log_bytes;
    let mut bytes = 0;
    // As several connections do that take statements of one dump in turn.
    for round in 0..6u64 {
        let first = round * 20_000;
        let mut open: Vec<_> = (0..4).map(|_| engine.begin(Isolation::ReadCommitted)).collect();
        for step in 0..10 {
            for (number, txn) in (0..).zip(open.iter_mut()) {
                let from = first + number * 5000 + step * 500;
                append(txn, tree, from..from + 500);
            }
        }
        open.into_iter().for_each(|txn| txn.commit().unwrap());
        bytes += rows(first..first + 20_000).values().map(Vec::len).sum::<usize>() as u64;
    }
    let logged = engine.statistics().log_bytes - before;
    assert!(logged * 8 < bytes, "{logged} bytes of log for {bytes} bytes of rows");
    let (_, engine) = crash(&fs, engine);
    assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == rows(0..120_000));
}

#[test]
fn a_prepared_load_waits_for_its_decision_over_a_crash() {
    let (fs, engine, table) = with_table(6);
    for (xid, range) in [(b"a", 0..5000), (b"b", 5000..10_000)] {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        append(&mut txn, table.tree(0), range);
        txn.prepare(xid).unwrap();
    }
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)).is_empty());
    engine.checkpoint().unwrap();
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    engine.commit_prepared(b"a").unwrap();
    engine.rollback_prepared(b"b").unwrap();
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(all(&engine, table.tree(0)) == rows(0..5000));
    assert_eq!(table.tree(0).entries(), 5000);
}

/// Where the block that the log names is lost, what is told depends on whether the log was synced behind it.
#[test]
fn a_block_that_is_damaged_after_it_was_synced_closes_its_table_and_no_other() {
    let (fs, engine, table) = with_table(7);
    engine.create(NewTable { meta: b"meta", ..NewTable::new("other", &specs(1)) }).unwrap();
    put(&engine, engine.open_table("other").unwrap().tree(0), &[("a", "1")]);
    engine.checkpoint().unwrap();
    load(&engine, table.tree(0), 0..5000);
    // A record behind that knows of the sync.
    put(&engine, engine.open_table("other").unwrap().tree(0), &[("b", "2")]);
    put(&engine, engine.open_table("other").unwrap().tree(0), &[("c", "3")]);
    let path = table.space().path().to_path_buf();
    drop((table, engine));
    let fs = fs.crash();
    let file = fs.open(&path, OpenMode::Existing).unwrap();
    let length = file.len().unwrap();
    for offset in (4096..length).step_by(1024) {
        file.write_at(offset, &[0xee; 16]).unwrap();
    }
    file.sync().unwrap();
    let engine = open(&fs);
    assert!(matches!(engine.open_table("t"), Err(Error::Corrupt { .. })));
    expect(&engine, "other", 0, &[("a", "1"), ("b", "2"), ("c", "3")]);
}

#[test]
fn blocks_of_a_dictionary_that_no_checkpoint_has_saved_are_read_after_a_crash() {
    let fs = SimulatedFileSystem::new(8);
    let with_words = || Options { dictionary_sample_bytes: 64 << 10, ..options() };
    let engine = Engine::open(Arc::new(fs.clone()), with_words()).unwrap();
    engine.create(NewTable { meta: b"meta", ..NewTable::new("t", &specs(1)) }).unwrap();
    let table = engine.open_table("t").unwrap();
    let text = |i: u64| {
        let word =
            |n: u64| ["storage ", "engine ", "snapshot ", "checkpoint ", "dictionary "][(n % 5) as usize];
        (0..20).map(|n| word(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n * 3))).collect::<String>()
    };
    let mut expected = Rows::new();
    for part in 0..4 {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for i in part * 1000..(part + 1) * 1000 {
            txn.append(table.tree(0), &key(i), text(i).as_bytes()).unwrap();
            expected.insert(key(i), text(i).into_bytes());
        }
        txn.commit().unwrap();
    }
    assert!(table.tree(0).dictionary_bytes() > 0, "none was trained");
    drop((table, engine));
    let mut fs = fs.crash();
    for _ in 0..2 {
        let engine = Engine::open(Arc::new(fs.clone()), with_words()).unwrap();
        assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == expected);
        drop(engine);
        fs = fs.crash();
    }
    let engine = Engine::open(Arc::new(fs.clone()), with_words()).unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let engine = Engine::open(Arc::new(fs.crash()), with_words()).unwrap();
    assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == expected);
}

#[test]
fn a_table_file_whose_sync_finds_the_disk_full_ends_writing_as_any_failed_sync_does() {
    let (fs, engine, table) = with_table(9);
    load(&engine, table.tree(0), 0..3000);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    append(&mut txn, table.tree(0), 3000..9000);
    txn.finish_writes().unwrap();
    fs.fill_at_next_sync();
    assert!(matches!(txn.commit(), Err(Error::DiskFull { .. })));
    // What else was on its way to the file may be lost: nothing may build on it.
    let mut txn = engine.begin(Isolation::ReadCommitted);
    assert!(matches!(txn.append(table.tree(0), &key(9000), b"x"), Err(Error::ReadOnly(_))));
    drop((txn, table));
    let (_, engine) = crash(&fs, engine);
    assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == rows(0..3000));
}

/// Has the leaf behind which the next block is to be attached evicted before it is latched, `times` times; what becomes
/// of the bytes freed.
fn evict_before_attaching(tree: &Arc<Tree>, times: usize) -> Arc<AtomicU64> {
    let freed = Arc::new(AtomicU64::new(0));
    for _ in 0..times {
        let (tree, freed) = (tree.clone(), freed.clone());
        crate::stop::on("attach: read and not latched", move || {
            freed.fetch_add(tree.last_leaf().unwrap().evict().unwrap(), Ordering::SeqCst);
        });
    }
    freed
}

#[test]
fn what_is_evicted_while_a_block_is_attached_behind_it_does_not_send_the_rest_through_the_log() {
    let (_, engine, table) = with_table(9);
    let tree = table.tree(0);
    load(&engine, tree, 0..2000);
    engine.checkpoint().unwrap();
    let mut from = 2000;
    // Often enough for one block, and not for another.
    for times in [1, MOST_READS - 1, MOST_READS, 3 * MOST_READS] {
        let before = engine.statistics().log_bytes;
        let freed = evict_before_attaching(tree, times);
        load(&engine, tree, from..from + 20_000);
        assert!(freed.load(Ordering::SeqCst) > 0, "nothing was evicted");
        let logged = engine.statistics().log_bytes - before;
        let bytes: usize = rows(from..from + 20_000).values().map(Vec::len).sum();
        assert!(logged * 5 < bytes as u64, "{times}: {logged} bytes of log for {bytes} bytes of rows");
        engine.checkpoint().unwrap();
        from += 20_000;
    }
    assert!(all(&engine, tree) == rows(0..from));
    assert_eq!(tree.entries(), from);
    engine.check_table(&table).unwrap();
}
