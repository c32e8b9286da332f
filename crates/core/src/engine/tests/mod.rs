//! Tests of the engine as a whole, mostly on the simulated file system without threads, so that they repeat exactly.

mod alike;
mod append;
mod build;
mod check;
mod crash;
mod damage;
mod ddl;
mod deferred;
mod definitions;
mod descriptors;
mod dictionary;
mod exports;
mod full_disk;
mod holes;
mod in_memory;
mod left_out;
mod links;
mod log_copy;
mod many_tables;
mod online;
mod packing;
mod patches;
mod rebuild;
mod recompressed;
mod replay;
mod snapshots;
mod sorting;
mod stored_values;
mod stress;
mod temporary;
mod transactions;
mod unreadable;
mod vanishing;
mod verbs;

use super::*;
use crate::file::SimulatedFileSystem;
use crate::{Error, Packing, Seek, TreeSpec, View, WriteOp};
use std::collections::BTreeMap;

pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) fn options() -> Options {
    Options {
        background: false,
        recovery_threads: 1,
        log_segment_bytes: 1 << 20,
        cache_bytes: 8 << 20,
        ..Options::new("/teak")
    }
}

pub(super) fn open(fs: &SimulatedFileSystem) -> Engine {
    Engine::open(Arc::new(fs.clone()), options()).unwrap()
}

pub(super) fn specs(n: usize) -> Vec<TreeSpec> {
    vec![TreeSpec { block_bytes: 4096, ..TreeSpec::default() }; n]
}

/// A new engine with an empty table `t` of two trees.
pub(super) fn with_table(seed: u64) -> (SimulatedFileSystem, Engine, Arc<Table>) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = open(&fs);
    engine.create(NewTable { meta: b"meta", ..NewTable::new("t", &specs(2)) }).unwrap();
    let table = engine.open_table("t").unwrap();
    (fs, engine, table)
}

/// Loses power and starts again.
pub(super) fn crash(fs: &SimulatedFileSystem, engine: Engine) -> (SimulatedFileSystem, Engine) {
    drop(engine);
    let fs = fs.crash();
    let engine = open(&fs);
    (fs, engine)
}

/// Another compression for all trees of the table.
pub(super) fn repack(engine: &Engine, name: &str, packing: Packing) {
    let table = engine.open_table(name).unwrap();
    let layout: Vec<TreeSource> = (0..table.trees()).map(TreeSource::Keep).collect();
    let meta = table.meta();
    let alteration = Alteration { packing: Some(packing), ..Alteration::new(name, &layout, meta) };
    engine.change(&[alteration.into()], &[]).unwrap();
}

pub(super) fn insert(txn: &mut Transaction, tree: &Arc<Tree>, key: &str, value: &str) {
    txn.write(tree, key.as_bytes(), WriteOp::Insert(value.as_bytes())).unwrap();
}

pub(super) fn put(engine: &Engine, tree: &Arc<Tree>, rows: &[(&str, &str)]) {
    let mut txn = engine.begin(Isolation::Repeatable);
    rows.iter().for_each(|(key, value)| insert(&mut txn, tree, key, value));
    txn.commit().unwrap();
}

pub(super) fn read(txn: &mut Transaction, tree: &Arc<Tree>, view: View) -> Rows {
    let mut cursor = Cursor::new(tree.clone());
    let mut rows = Rows::new();
    let mut found = cursor.seek(txn, view, Seek::AtOrAfter, b"").unwrap();
    while found {
        rows.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
        found = cursor.next(txn).unwrap();
    }
    rows
}

pub(super) fn all(engine: &Engine, tree: &Arc<Tree>) -> Rows {
    read(&mut engine.begin(Isolation::Repeatable), tree, View::Snapshot)
}

pub(super) fn expect(engine: &Engine, table: &str, tree: usize, rows: &[(&str, &str)]) {
    let table = engine.open_table(table).unwrap();
    let rows: Rows = rows.iter().map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec())).collect();
    assert_eq!(all(engine, table.tree(tree)), rows);
}
