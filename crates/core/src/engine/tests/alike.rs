//! Large values that are alike and are put together.

use super::*;
use crate::store::BundleUse;
use crate::tree::{Looked, MOST_VALUE_BYTES};
use crate::values::texts::{deflated, text};
use crate::{Compression, Packing};

const PAGES: u64 = 6;

fn key(page: u64, version: u64) -> Vec<u8> {
    // Pages come in turns, as in a history of a wiki.
    (version * 100 + page).to_be_bytes().to_vec()
}

/// Versions of a page differ by a few words in front.
fn content(page: u64, version: u64) -> Vec<u8> {
    [text(10_000 + version, 50 + 10 * version as usize), text(page, 24_000)].concat()
}

fn value(page: u64, version: u64) -> Vec<u8> {
    deflated(&content(page, version))
}

fn packing(similarity: bool) -> Packing {
    Packing { compression: Compression::Recompress, level: 3, similarity }
}

fn create(engine: &Engine, similarity: bool) -> Arc<Table> {
    let spec = TreeSpec { packing: packing(similarity), ..TreeSpec::default() };
    engine.create(NewTable::new("t", &[spec])).unwrap();
    engine.open_table("t").unwrap()
}

fn insert_versions(engine: &Engine, table: &Table, versions: std::ops::Range<u64>, rows: &mut Rows) {
    for version in versions {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for page in 0..PAGES {
            let (key, value) = (key(page, version), value(page, version));
            txn.write(table.tree(0), &key, WriteOp::Insert(&value)).unwrap();
            rows.insert(key, value);
        }
        txn.commit().unwrap();
    }
}

fn delete(engine: &Engine, table: &Table, keys: impl Iterator<Item = Vec<u8>>, rows: &mut Rows) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for key in keys {
        txn.write(table.tree(0), &key, WriteOp::Delete).unwrap();
        rows.remove(&key);
    }
    txn.commit().unwrap();
}

/// The rows are these, and so are all files.
fn is_sound(engine: &Engine, rows: &Rows) {
    let table = engine.open_table("t").unwrap();
    assert!(&all(engine, table.tree(0)) == rows);
    engine.check_table(&table).unwrap();
    let findings = engine.check_files(&mut |_| Ok(())).unwrap();
    let found: Vec<_> = findings.iter().collect();
    assert!(found.is_empty(), "{found:?}");
}

fn optimize(engine: &Engine, table: &Table) {
    engine.pack_table(table, &mut |_| Ok(())).unwrap();
}

#[test]
fn versions_that_come_in_turns_take_a_tenth_and_survive_everything() {
    let (fs, mut rows) = (SimulatedFileSystem::new(1), Rows::new());
    let engine = open(&fs);
    let table = create(&engine, true);
    insert_versions(&engine, &table, 0..40, &mut rows);
    engine.checkpoint().unwrap();
    let alone = table.used_bytes();
    assert_eq!(table.bundle_usage().unwrap(), BundleUse::default());
    optimize(&engine, &table);
    let usage = table.bundle_usage().unwrap();
    // The newest version of each page is alone.
    assert_eq!((usage.bundles, usage.values, usage.most_values), (PAGES, 39 * PAGES, 39));
    let older = rows.iter().filter(|(at, _)| **at < key(0, 39)).map(|(_, value)| value.len() as u64);
    assert_eq!(usage.value_bytes, older.sum::<u64>());
    assert!(table.used_bytes() < alone / 8, "{} of {alone}", table.used_bytes());
    is_sound(&engine, &rows);
    // More come, and join the bundles that have room.
    insert_versions(&engine, &table, 40..60, &mut rows);
    engine.checkpoint().unwrap();
    optimize(&engine, &table);
    let usage = table.bundle_usage().unwrap();
    assert_eq!((usage.bundles, usage.values, usage.most_values), (PAGES, 59 * PAGES, 59));
    is_sound(&engine, &rows);
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    is_sound(&engine, &rows);
    let table = engine.open_table("t").unwrap();
    assert_eq!(table.bundle_usage().unwrap(), usage);
    // An old snapshot sees what it saw.
    let mut old = engine.begin(Isolation::Repeatable);
    let before = rows.clone();
    assert!(read(&mut old, table.tree(0), View::Snapshot) == before);
    delete(
        &engine,
        &table,
        (0..50).flat_map(|version| (1..PAGES).map(move |page| key(page, version))),
        &mut rows,
    );
    engine.checkpoint().unwrap();
    is_sound(&engine, &rows);
    assert!(read(&mut old, table.tree(0), View::Snapshot) == before);
    optimize(&engine, &table);
    assert!(read(&mut old, table.tree(0), View::Snapshot) == before);
    drop(old);
    engine.checkpoint().unwrap();
    let thinned = table.bundle_usage().unwrap();
    assert_eq!((thinned.bundles, thinned.values), (PAGES, 59 + 9 * (PAGES - 1)));
    assert!(thinned.stored_bytes < usage.stored_bytes * 9 / 10, "{thinned:?} after {usage:?}");
    is_sound(&engine, &rows);
    // All of them go.
    delete(&engine, &table, rows.clone().into_keys(), &mut rows);
    engine.checkpoint().unwrap();
    let none = table.bundle_usage().unwrap();
    assert_eq!((none.bundles, none.values, none.value_bytes, none.stored_bytes), (0, 0, 0, 0));
    is_sound(&engine, &rows);
    drop(table);
    let (_, engine) = crash(&fs, engine);
    is_sound(&engine, &rows);
}

/// Rows whose values are in no bundle.
fn alone(table: &Table) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut next = Some(Vec::new());
    while let Some(key) = next {
        let (values, after) = table.tree(0).lone_values(&key, Looked::Any, MOST_VALUE_BYTES).unwrap();
        keys.extend(values.into_iter().map(|value| value.key));
        next = after;
    }
    keys
}

#[test]
fn the_newest_version_stays_as_it_came_through_restarts_and_moves() {
    let (mut fs, mut rows) = (SimulatedFileSystem::new(5), Rows::new());
    let mut engine = open(&fs);
    create(&engine, true);
    let newest = |version| (0..PAGES).map(move |page| key(page, version));
    for (round, (from, to)) in [(0, 12), (12, 13), (13, 15), (15, 24)].into_iter().enumerate() {
        let table = engine.open_table("t").unwrap();
        // A version at a time, as they come; what is alike is looked for in between.
        for version in from..to {
            insert_versions(&engine, &table, version..version + 1, &mut rows);
            engine.checkpoint().unwrap();
            engine.shared.look_for_alike_values();
        }
        optimize(&engine, &table);
        engine.checkpoint().unwrap();
        let lone = alone(&table);
        assert!(newest(to - 1).all(|key| lone.contains(&key)), "round {round}");
        // Of each run what it cannot tell to belong to an older bundle: at most a newest one, and two of its own.
        assert!(lone.len() as u64 <= PAGES * 3, "round {round}: {} are alone", lone.len());
        is_sound(&engine, &rows);
        drop(table);
        (fs, engine) = crash(&fs, engine);
    }
    // Holes before them, into which they move.
    let table = engine.open_table("t").unwrap();
    delete(&engine, &table, (0..9).flat_map(newest), &mut rows);
    engine.checkpoint().unwrap();
    optimize(&engine, &table);
    engine.checkpoint().unwrap();
    optimize(&engine, &table);
    let lone = alone(&table);
    assert!(newest(23).all(|key| lone.contains(&key)));
    is_sound(&engine, &rows);
}

#[test]
fn the_option_may_come_later_and_go_again() {
    let (fs, mut rows) = (SimulatedFileSystem::new(2), Rows::new());
    let engine = open(&fs);
    let table = create(&engine, false);
    insert_versions(&engine, &table, 0..20, &mut rows);
    engine.checkpoint().unwrap();
    optimize(&engine, &table);
    assert_eq!(table.bundle_usage().unwrap().bundles, 0);
    drop(table);
    repack(&engine, "t", packing(true));
    let table = engine.open_table("t").unwrap();
    optimize(&engine, &table);
    assert_eq!(table.bundle_usage().unwrap().values, 19 * PAGES);
    is_sound(&engine, &rows);
    drop(table);
    repack(&engine, "t", Compression::None.into());
    let table = engine.open_table("t").unwrap();
    insert_versions(&engine, &table, 20..40, &mut rows);
    optimize(&engine, &table);
    is_sound(&engine, &rows);
    assert_eq!(table.bundle_usage().unwrap().values, 19 * PAGES, "what is there stays");
    // Bundles that lose more than half are taken apart, into others, and one value alone.
    delete(&engine, &table, (1..20).map(|version| key(0, version)), &mut rows);
    delete(&engine, &table, (2..20).map(|version| key(1, version)), &mut rows);
    engine.checkpoint().unwrap();
    engine.shared.look_for_alike_values();
    engine.checkpoint().unwrap();
    let usage = table.bundle_usage().unwrap();
    assert_eq!((usage.bundles, usage.values), (PAGES - 1, 19 * (PAGES - 2) + 2));
    is_sound(&engine, &rows);
}

#[test]
fn values_that_change_while_they_are_put_together_are_theirs_who_changed_them() {
    let (fs, mut rows) = (SimulatedFileSystem::new(3), Rows::new());
    let engine = open(&fs);
    let table = create(&engine, true);
    insert_versions(&engine, &table, 0..20, &mut rows);
    engine.checkpoint().unwrap();
    // In the middle of it, between two leaves.
    let mut step = 0;
    let watch = &mut |_| {
        step += 1;
        if step % 3 == 0 {
            let (page, version) = (step / 3 % PAGES, step / 3 % 20);
            let mut txn = engine.begin(Isolation::ReadCommitted);
            if rows.contains_key(&key(page, version)) {
                let value = text(step, 9_000);
                let (key, op) = (key(page, version), WriteOp::Update(&value));
                txn.write(table.tree(0), &key, op).unwrap();
                rows.insert(key, value.clone());
            }
            txn.commit().unwrap();
        }
        Ok(())
    };
    engine.pack_table(&table, watch).unwrap();
    assert!(step > 60, "{step}");
    is_sound(&engine, &rows);
    engine.checkpoint().unwrap();
    is_sound(&engine, &rows);
    drop(table);
    let (_, engine) = crash(&fs, engine);
    is_sound(&engine, &rows);
}

#[test]
fn bundles_that_lie_at_the_end_of_a_file_are_moved_to_its_beginning() {
    let (fs, mut rows) = (SimulatedFileSystem::new(4), Rows::new());
    let engine = open(&fs);
    let table = create(&engine, true);
    // Large values that nothing is like take the beginning.
    let others = || (0..60u64).map(|i| (1u64 << 40 | i).to_be_bytes().to_vec());
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for (i, key) in others().enumerate() {
        txn.write(table.tree(0), &key, WriteOp::Insert(&deflated(&text(100 + i as u64, 200_000)))).unwrap();
    }
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    insert_versions(&engine, &table, 0..30, &mut rows);
    engine.checkpoint().unwrap();
    engine.shared.put_alike_together(&table, &mut |_| Ok(())).unwrap();
    engine.checkpoint().unwrap();
    let mut gone = Rows::new();
    delete(&engine, &table, others(), &mut gone);
    engine.checkpoint().unwrap();
    let end = || table.space().extent_usage().unwrap().0;
    let before = end();
    optimize(&engine, &table);
    engine.checkpoint().unwrap();
    is_sound(&engine, &rows);
    let usage = table.bundle_usage().unwrap();
    assert_eq!((usage.bundles, usage.values), (PAGES, 29 * PAGES));
    assert!(end() < before / 8, "{} after {before}", end());
}
