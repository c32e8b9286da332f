//! Dictionaries of trees: trained, durable, dropped, damaged.

use super::*;
use crate::file::{FileSystem, OpenMode};
use crate::{Compression, Packing};

const SPEC: TreeSpec = TreeSpec {
    block_bytes: 4096,
    packing: Packing { compression: Compression::Zstd, level: 0, similarity: false },
};

fn open_with(fs: &SimulatedFileSystem, dictionary_sample_bytes: usize) -> Engine {
    Engine::open(Arc::new(fs.clone()), Options { dictionary_sample_bytes, ..options() }).unwrap()
}

/// Text whose words are the same in all rows, but not their order.
fn text(row: u32) -> String {
    let mut state = row;
    let word = |_| {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        let number = state >> 20;
        let part = |n: u32| ["ver", "stand", "gel", "it", "form", "ung", "crawl", "art"][(n & 7) as usize];
        format!("{}{}{} ", part(number), part(number >> 3), part(number >> 6 & 1))
    };
    (0..40).map(word).collect()
}

fn fill(engine: &Engine, table: &str, place: usize, rows: std::ops::Range<u32>) {
    let table = engine.open_table(table).unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    for row in rows {
        txn.write(table.tree(place), &row.to_be_bytes(), WriteOp::Insert(text(row).as_bytes())).unwrap();
    }
    txn.commit().unwrap();
}

/// An engine whose table `t` has two trees, of which the first has a dictionary.
fn with_dictionary(seed: u64) -> (SimulatedFileSystem, Engine) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = open_with(&fs, 60 << 10);
    engine.create(NewTable::new("t", &[SPEC; 2])).unwrap();
    fill(&engine, "t", 0, 0..600);
    engine.checkpoint().unwrap();
    (fs, engine)
}

fn dictionary_bytes(engine: &Engine, tree: usize) -> u64 {
    engine.open_table("t").unwrap().tree(tree).dictionary_bytes()
}

/// Where the directory has the dictionary of the first tree.
fn stored(engine: &Engine, table: &str) -> Option<(u16, crate::store::BlockAddress)> {
    let id = engine.open_table(table).unwrap().tree(0).id();
    engine.shared.system.dictionary(id).unwrap()
}

#[test]
fn a_dictionary_makes_a_tree_smaller_and_survives_restarts_and_crashes() {
    let (fs, engine) = with_dictionary(1);
    assert!(dictionary_bytes(&engine, 0) > 0);
    fill(&engine, "t", 0, 600..1200);
    engine.checkpoint().unwrap();
    let (fs, engine) = {
        drop(engine);
        let fs = fs.crash();
        let engine = open_with(&fs, 60 << 10);
        (fs, engine)
    };
    // What is written after a restart uses it too.
    fill(&engine, "t", 0, 1200..2400);
    engine.checkpoint().unwrap();
    let table = engine.open_table("t").unwrap();
    engine.check_table(&table).unwrap();
    let with = table.tree(0).disk_bytes();
    let rows = all(&engine, table.tree(0));
    assert_eq!(rows.len(), 2400);
    assert!(rows.iter().all(|(key, value)| {
        text(u32::from_be_bytes(key[..].try_into().unwrap())).as_bytes() == &value[..]
    }));
    drop(table);
    engine.close().unwrap();
    drop(engine);

    // The same without.
    let plain = open_with(&SimulatedFileSystem::new(2), 0);
    plain.create(NewTable::new("t", &[SPEC; 2])).unwrap();
    (0..4).for_each(|part| fill(&plain, "t", 0, part * 600..part * 600 + 600));
    plain.checkpoint().unwrap();
    assert_eq!(dictionary_bytes(&plain, 0), 0);
    let without = plain.open_table("t").unwrap().tree(0).disk_bytes();
    assert!(with * 10 < without * 9, "{with} of {without}");
    // An engine that trains none uses those that are there.
    let engine = open_with(&fs, 0);
    assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(0)), rows);
}

#[test]
fn what_does_not_get_smaller_gets_no_dictionary() {
    let fs = SimulatedFileSystem::new(3);
    let engine = open_with(&fs, 20 << 10);
    engine.create(NewTable::new("t", &[SPEC; 2])).unwrap();
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    let mut state = 7u64;
    for row in 0..900u32 {
        let noise: Vec<u8> = (0..12)
            .flat_map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 16).to_be_bytes()
            })
            .collect();
        txn.write(table.tree(0), &row.to_be_bytes(), WriteOp::Insert(&noise)).unwrap();
    }
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    assert_eq!(table.tree(0).dictionary_bytes(), 0);
}

#[test]
fn tables_that_are_renamed_keep_theirs_and_those_that_are_emptied_or_dropped_do_not() {
    let (fs, engine) = with_dictionary(4);
    let tree = engine.open_table("t").unwrap().tree(0).id();
    let before = stored(&engine, "t").unwrap();
    engine.rename(Renaming::new("t", "u")).unwrap();
    engine.checkpoint().unwrap();
    assert_eq!(stored(&engine, "u"), Some(before));
    engine.empty("u", None).unwrap();
    engine.checkpoint().unwrap();
    assert_eq!(stored(&engine, "u"), None);
    assert_eq!(engine.shared.system.dictionary(tree).unwrap(), None);
    fill(&engine, "u", 0, 0..600);
    engine.checkpoint().unwrap();
    assert!(stored(&engine, "u").is_some());
    let tree = engine.open_table("u").unwrap().tree(0).id();
    engine.drop("u", IfPrepared::Refuse).unwrap();
    engine.checkpoint().unwrap();
    assert_eq!(engine.shared.system.dictionary(tree).unwrap(), None);
    crash(&fs, engine);
}

#[test]
fn an_index_that_is_dropped_gives_back_the_space_of_its_dictionary() {
    let (fs, engine) = with_dictionary(5);
    let mut sizes = Vec::new();
    for turn in 0..6 {
        fill(&engine, "t", 1, 0..600);
        engine.checkpoint().unwrap();
        assert!(dictionary_bytes(&engine, 1) > 0, "turn {turn}");
        engine
            .change(&[Alteration::new("t", &[TreeSource::Keep(0), TreeSource::New(SPEC)], b"").into()], &[])
            .unwrap();
        engine.checkpoint().unwrap();
        engine.checkpoint().unwrap();
        assert_eq!(dictionary_bytes(&engine, 1), 0);
        sizes.push(engine.open_table("t").unwrap().space().file_bytes());
    }
    assert_eq!(sizes[2], sizes[5], "{sizes:?}");
    let (_fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    engine.check_table(&table).unwrap();
    assert_eq!(all(&engine, table.tree(0)).len(), 600);
}

#[test]
fn a_compression_without_dictionary_and_back() {
    let (fs, engine) = with_dictionary(6);
    let rows = all(&engine, engine.open_table("t").unwrap().tree(0));
    for compression in [Compression::Lz4, Compression::None, Compression::Zstd] {
        repack(&engine, "t", compression.into());
        fill(&engine, "t", 1, compression as u32 * 100..compression as u32 * 100 + 50);
        while {
            engine.checkpoint().unwrap();
            engine.open_table("t").unwrap().tree(0).is_converting()
        } {}
        assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(0)), rows);
    }
    let (_fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    engine.check_table(&table).unwrap();
    assert_eq!(all(&engine, table.tree(0)), rows);
}

#[test]
fn a_damaged_dictionary_is_told_with_file_and_place_and_harms_no_other_tree() {
    let (fs, engine) = with_dictionary(7);
    fill(&engine, "t", 0, 600..1200);
    fill(&engine, "t", 1, 0..3);
    engine.checkpoint().unwrap();
    let (number, at) = stored(&engine, "t").unwrap();
    let path = engine.open_table("t").unwrap().space().path().to_path_buf();
    engine.close().unwrap();
    drop(engine);
    let file = fs.open(&path, OpenMode::Existing).unwrap();
    file.write_at(at.offset + 9, &[0xee; 3]).unwrap();
    drop(file);
    let engine = open_with(&fs, 60 << 10);
    let table = engine.open_table("t").unwrap();
    let mut cursor = Cursor::new(table.tree(0).clone());
    let mut txn = engine.begin(Isolation::Repeatable);
    let error = cursor.seek(&mut txn, View::Snapshot, Seek::AtOrAfter, &1100u32.to_be_bytes()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Corrupt { .. }) && text.contains("s1.teak"), "{text}");
    assert!(
        text.contains(&format!("dictionary {number}")) && text.contains(&at.offset.to_string()),
        "{text}"
    );
    assert!(engine.check_table(&table).is_err());
    assert_eq!(all(&engine, table.tree(1)).len(), 3);
}
