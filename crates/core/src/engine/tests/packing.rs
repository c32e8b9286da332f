//! Tables that are packed: their files are as small as those of copies.

use super::*;
use crate::options::Residence;

const ROWS: u32 = 20_000;

fn value(row: u32) -> Vec<u8> {
    let mut state = u64::from(row) | 1 << 63;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    let bytes = if row.is_multiple_of(200) { 6000 } else { 100 };
    (0..bytes).map(|_| next()).collect()
}

fn fill(engine: &Engine, table: &Table, stays: impl Fn(u32) -> bool) {
    let rows: Vec<u32> = (0..ROWS).filter(|row| stays(*row)).collect();
    for part in rows.chunks(500) {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for row in part {
            let key = row.to_be_bytes();
            txn.write(table.tree(0), &key, WriteOp::Insert(&value(*row))).unwrap();
            // An index by something that has no order.
            txn.write(table.tree(1), &entry(*row), WriteOp::Insert(&key)).unwrap();
        }
        txn.commit().unwrap();
    }
}

fn entry(row: u32) -> [u8; 8] {
    (u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()
}

fn delete(engine: &Engine, table: &Table, goes: impl Fn(u32) -> bool) {
    let rows: Vec<u32> = (0..ROWS).filter(|row| goes(*row)).collect();
    for part in rows.chunks(500) {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for row in part {
            txn.write(table.tree(0), &row.to_be_bytes(), WriteOp::Delete).unwrap();
            txn.write(table.tree(1), &entry(*row), WriteOp::Delete).unwrap();
        }
        txn.commit().unwrap();
    }
}

fn pack(engine: &Engine, table: &Table) {
    let mut before = 0;
    let mut watch = |done| {
        assert!(done >= before, "{done} steps after {before}");
        before = done;
        Ok(())
    };
    engine.pack_table(table, &mut watch).unwrap();
}

fn assert_rows(engine: &Engine, table: &Table, stays: impl Fn(u32) -> bool) {
    let rows = all(engine, table.tree(0));
    let expected: Rows =
        (0..ROWS).filter(|row| stays(*row)).map(|row| (row.to_be_bytes().to_vec(), value(row))).collect();
    assert!(rows == expected, "{} rows instead of {}", rows.len(), expected.len());
    assert_eq!(all(engine, table.tree(1)).len(), expected.len());
    engine.check_table(table).unwrap();
}

#[test]
fn the_file_is_about_as_small_as_that_of_a_copy() {
    type Stays = fn(u32) -> bool;
    let cases: [Stays; 4] =
        [|row| row % 2 == 0, |row| row % 10 == 0, |row| row > ROWS * 9 / 10, |row| row < 200];
    for stays in cases {
        let (fs, engine, table) = with_table(1);
        fill(&engine, &table, |_| true);
        engine.checkpoint().unwrap();
        let before = table.space().file_bytes();
        delete(&engine, &table, |row| !stays(row));
        pack(&engine, &table);
        engine.create(NewTable { meta: b"meta", ..NewTable::new("copy", &specs(2)) }).unwrap();
        let copy = engine.open_table("copy").unwrap();
        fill(&engine, &copy, stays);
        pack(&engine, &copy);
        let (packed, copied) = (table.space().file_bytes(), copy.space().file_bytes());
        assert!(
            packed < copied * 5 / 4 + (96 << 10),
            "{packed} bytes, {copied} of a copy, {before} at first"
        );
        // Whole blocks of the file system.
        assert!(table.disk_bytes() <= packed + 4096);
        assert_rows(&engine, &table, stays);
        drop((table, copy));
        let (fs, engine) = crash(&fs, engine);
        assert_rows(&engine, &engine.open_table("t").unwrap(), stays);
        drop((engine, fs));
    }
}

#[test]
fn what_was_packed_before_an_interruption_or_a_crash_stays_packed() {
    let (mut fs, mut engine, table) = with_table(2);
    fill(&engine, &table, |_| true);
    engine.checkpoint().unwrap();
    delete(&engine, &table, |row| row % 2 == 1);
    drop(table);
    for turn in 0..6 {
        let table = engine.open_table("t").unwrap();
        let most = engine.packing_steps(&table) / 8;
        let mut stop = |done: u64| if done > most { Err(Error::Interrupted) } else { Ok(()) };
        let outcome = engine.pack_table(&table, &mut stop);
        assert!(matches!(outcome, Err(Error::Interrupted)) || turn > 0, "{outcome:?}");
        if turn % 2 == 0 {
            engine.checkpoint().unwrap();
        }
        assert_rows(&engine, &table, |row| row % 2 == 0);
        drop(table);
        (fs, engine) = crash(&fs, engine);
        assert!(engine.check_everything(&mut |_| Ok(())).unwrap().is_empty());
    }
    let table = engine.open_table("t").unwrap();
    let leaves = table.tree(0).leaves();
    pack(&engine, &table);
    assert!(table.tree(0).leaves() <= leaves);
    assert_rows(&engine, &table, |row| row % 2 == 0);
    drop(fs);
}

#[test]
fn nothing_is_packed_while_checkpoints_are_held_back() {
    let (_fs, engine, table) = with_table(3);
    fill(&engine, &table, |row| row < 1000);
    let pause = engine.pause_checkpoints();
    assert!(matches!(engine.pack_table(&table, &mut |_| Ok(())), Err(Error::CheckpointsPaused)));
    drop(pause);
    pack(&engine, &table);
    assert_rows(&engine, &table, |row| row < 1000);
}

/// A snapshot keeps what it sees, and no checkpoint after the other is made for it.
#[test]
fn an_old_snapshot_does_not_keep_a_table_from_being_packed() {
    let (_fs, engine, table) = with_table(4);
    fill(&engine, &table, |_| true);
    engine.checkpoint().unwrap();
    let mut old = engine.begin(Isolation::Repeatable);
    let before = read(&mut old, table.tree(0), View::Snapshot);
    delete(&engine, &table, |row| row % 4 != 0);
    let leaves = table.tree(0).leaves();
    let checkpoints = engine.statistics().checkpoints;
    pack(&engine, &table);
    let made = engine.statistics().checkpoints - checkpoints;
    assert!(made < 20, "{made} checkpoints");
    assert!(table.tree(0).leaves() < leaves / 2, "{} of {leaves}", table.tree(0).leaves());
    assert!(read(&mut old, table.tree(0), View::Snapshot) == before);
    old.rollback();
    assert_rows(&engine, &table, |row| row % 4 == 0);
    pack(&engine, &table);
    assert_rows(&engine, &table, |row| row % 4 == 0);
}

#[test]
fn a_table_in_memory_alone_is_packed_without_a_checkpoint() {
    let (_fs, engine, _) = with_table(5);
    let residence = Residence::Memory { limit_bytes: 0 };
    engine.create(NewTable { residence, meta: b"meta", ..NewTable::new("m", &specs(2)) }).unwrap();
    let table = engine.open_table("m").unwrap();
    fill(&engine, &table, |row| row < 5000);
    delete(&engine, &table, |row| row < 5000 && row % 2 == 1);
    let (leaves, checkpoints) = (table.tree(0).leaves(), engine.statistics().checkpoints);
    let pause = engine.pause_checkpoints();
    pack(&engine, &table);
    drop(pause);
    assert!(table.tree(0).leaves() < leaves * 2 / 3, "{} of {leaves}", table.tree(0).leaves());
    assert_eq!(engine.statistics().checkpoints, checkpoints);
    assert_rows(&engine, &table, |row| row < 5000 && row % 2 == 0);
}

#[test]
fn rows_that_were_rewritten_before_an_interruption_stay_so_after_a_checkpoint() {
    let (mut fs, mut engine, mut table) = with_table(5);
    fill(&engine, &table, |_| true);
    engine.checkpoint().unwrap();
    let mut rewrite = |_: &[u8], row: &[u8], to: &mut Vec<u8>| {
        to.extend_from_slice(row);
        to.push(7);
        Ok(row.len().is_multiple_of(2))
    };
    for most in [64, u64::MAX] {
        let mut looks = 0;
        let mut stop = |done: u64| {
            looks += 1;
            assert_eq!(done, looks * 16);
            if done >= most {
                Err(Error::Interrupted)
            } else {
                Ok(())
            }
        };
        let outcome = engine.rewrite_rows(&table, 0, &mut rewrite, &mut stop);
        assert_eq!(outcome.is_ok(), most == u64::MAX, "{outcome:?}");
        engine.checkpoint().unwrap();
        drop(table);
        (fs, engine) = crash(&fs, engine);
        table = engine.open_table("t").unwrap();
        let rows = all(&engine, table.tree(0));
        assert_eq!(rows.len(), ROWS as usize);
        // The walk has come by the first ones.
        let done = rows.values().take_while(|row| row.len() % 2 == 1).count();
        assert!(done > 0 && (done == rows.len()) == (most == u64::MAX), "{done} rows");
        for (n, row) in (0..ROWS).zip(rows.values()) {
            let expected = if (n as usize) < done { [value(n), vec![7]].concat() } else { value(n) };
            assert!(*row == expected, "row {n}");
        }
    }
    drop(fs);
}
