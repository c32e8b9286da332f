//! Patches of leaves in a table's file: who finds them, and what a damaged one costs.

use super::damage::{contents, force, number, put_back};
use super::*;
use crate::store::BlockAddress;
use crate::ForceRecovery;

const ROWS: u64 = 3000;

/// Two tables of the same rows, of which every hundredth was changed since their leaves were written, or is gone.
fn with_patches(seed: u64) -> (SimulatedFileSystem, Vec<BlockAddress>) {
    let (fs, engine, table) = with_table(seed);
    engine.create(NewTable::new("other", &specs(1))).unwrap();
    let tables = [table, engine.open_table("other").unwrap()];
    for table in &tables {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        (0..ROWS).for_each(|i| txn.append(table.tree(0), &number(i), &[1; 60]).unwrap());
        txn.commit().unwrap();
    }
    engine.checkpoint().unwrap();
    for table in &tables {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for i in (0..ROWS).step_by(100) {
            let op = if i % 300 == 0 { WriteOp::Delete } else { WriteOp::Update(&[2; 60]) };
            txn.write(table.tree(0), &number(i), op).unwrap();
        }
        txn.commit().unwrap();
    }
    engine.checkpoint().unwrap();
    let mut patches = Vec::new();
    each_leaf(tables[0].tree(0), &mut |patch| patches.extend(patch));
    drop(tables);
    engine.close().unwrap();
    (fs, patches)
}

fn each_leaf(tree: &Arc<Tree>, visit: &mut dyn FnMut(Option<BlockAddress>)) {
    let mut key = Some(Vec::new());
    while let Some(from) = key {
        let node = tree.find_leaf(&from).unwrap();
        let leaf = node.leaf().unwrap();
        let state = leaf.latch();
        let patch = state.copies.durable().and_then(|copy| copy.patch.clone());
        visit(patch.map(|patch| *patch.extent().address()));
        key = leaf.view().next_key();
    }
}

#[test]
fn a_damaged_patch_costs_the_changes_of_a_leaf_and_nothing_else() {
    let (fs, patches) = with_patches(1);
    assert!(patches.len() > 20, "{} patches", patches.len());
    let path = "/teak/s1.teak";
    let bytes = contents(&fs, path);
    for patch in [patches[0], patches[patches.len() / 2]] {
        let mut damaged = bytes.clone();
        damaged[patch.offset as usize + 3] ^= 1;
        put_back(&fs, path, &damaged);
        // A check names it.
        let engine = open(&fs);
        let findings = engine.check_files(&mut |_| Ok(())).unwrap();
        assert!(findings.iter().any(|finding| finding.offset == Some(patch.offset)), "{findings}");
        // Who reads what it has gets an error; other tables do not.
        let (table, other) = (engine.open_table("t").unwrap(), engine.open_table("other").unwrap());
        assert_eq!(all(&engine, other.tree(0)).len() as u64, ROWS - ROWS / 300);
        let mut cursor = Cursor::new(table.tree(0).clone());
        let mut txn = engine.begin(Isolation::ReadCommitted);
        let mut found = cursor.first(&mut txn, View::Latest);
        while matches!(found, Ok(true)) {
            found = cursor.next(&mut txn);
        }
        assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");
        drop((cursor, txn, table, other));
        drop(engine);
        // What is saved are the rows as they were before, with a word about it.
        let (engine, told) = force(&fs, ForceRecovery::ReadOnly);
        let engine = engine.unwrap();
        let saved = all(&engine, engine.open_table("t").unwrap().tree(0));
        let lost = engine.lost();
        assert!(lost.len() == 1 && lost[0].is_older && told.has("lack their latest changes"), "{lost:?}");
        let (mut older, mut changed) = (0, 0);
        for i in 0..ROWS {
            let key = number(i);
            let in_range = *lost[0].low <= *key && lost[0].high.as_ref().is_none_or(|high| *key < **high);
            let is_gone = i % 300 == 0;
            match saved.get(&key) {
                Some(value) if in_range && i % 100 == 0 => {
                    assert_eq!(*value, [1; 60]);
                    older += 1;
                }
                Some(value) => {
                    assert_eq!(*value, [if i % 100 == 0 { 2 } else { 1 }; 60], "row {i}");
                    changed += u32::from(i % 100 == 0);
                }
                None => assert!(is_gone && !in_range, "row {i} is gone"),
            }
        }
        assert!(older > 0 && changed > 10, "{older} older, {changed} changed");
        drop(engine);
        put_back(&fs, path, &bytes);
    }
}

/// Loads so many rows, of which a patch takes the last two away, and then others from there on; whether there was one.
fn load_over_patch(seed: u64, rows: u64) -> bool {
    let (_fs, engine, table) = with_table(seed);
    let tree = table.tree(0);
    let load = |rows: std::ops::Range<u64>| {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        rows.for_each(|i| txn.append(tree, &number(i), &[1; 60]).unwrap());
        txn.commit().unwrap();
    };
    load(0..rows);
    engine.checkpoint().unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    (rows - 2..rows).for_each(|i| txn.write(tree, &number(i), WriteOp::Delete).unwrap());
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    let mut has_patch = false;
    each_leaf(tree, &mut |patch| has_patch = patch.is_some());
    // Folded, as readers do.
    tree.maintain(&tree.find_leaf(&number(rows)).unwrap()).unwrap();
    load(rows - 2..2 * rows);
    engine.checkpoint().unwrap();
    let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{rows} rows: {findings}");
    assert_eq!(all(&engine, tree).len() as u64, 2 * rows);
    has_patch
}

#[test]
fn rows_that_a_patch_takes_away_are_not_left_behind_by_a_load_in_their_place() {
    let patched = (1000..1060).step_by(3).filter(|&rows| load_over_patch(rows, rows)).count();
    assert!(patched > 5, "{patched} with a patch");
}
