//! Single tables: from one engine to another, through power cuts, damage and full disks.

use super::*;
use crate::file::{Fault, FileSystem, OpenMode};
use crate::{Compression, Packing};
use std::path::Path;

const EXPORT: &str = "/t.teak";
const SPEC: TreeSpec = TreeSpec {
    block_bytes: 4096,
    packing: Packing { compression: Compression::Zstd, level: 0, similarity: false },
};

/// Words in some order, so that a dictionary is trained on them.
fn text(row: u32) -> String {
    let words = ["Bernstein ", "Leuchtturm ", "Wanderweg ", "Apfelbaum ", "Dachboden ", "Kirchturm "];
    (0..30).map(|i| words[(row.wrapping_mul(2654435761) >> (i % 25)) as usize % words.len()]).collect()
}

fn opened(fs: &SimulatedFileSystem) -> Engine {
    Engine::open(Arc::new(fs.clone()), Options { dictionary_sample_bytes: 60 << 10, ..options() }).unwrap()
}

/// A table with a large tree that has large values, a small tree, and an empty one.
fn source(seed: u64) -> (SimulatedFileSystem, Engine) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = opened(&fs);
    engine.create(NewTable { meta: b"source", ..NewTable::new("t", &[SPEC; 3]) }).unwrap();
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    for row in 0..3000u32 {
        let value = if row % 300 == 7 { text(row).repeat(20) } else { text(row) };
        txn.write(table.tree(0), &row.to_be_bytes(), WriteOp::Insert(value.as_bytes())).unwrap();
    }
    insert(&mut txn, table.tree(1), "k", "v");
    txn.note_counter(&table, 3001);
    txn.commit().unwrap();
    engine.keep_digest(&table, b"digest").unwrap();
    engine.checkpoint().unwrap();
    // Some of it is in no image yet.
    put(&engine, table.tree(1), &[("l", "w")]);
    (fs, engine)
}

/// An engine with other numbers, whose table `u` waits for rows.
fn target(seed: u64) -> (SimulatedFileSystem, Engine) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = opened(&fs);
    engine.create(NewTable::new("other", &specs(4))).unwrap();
    engine.create(NewTable { meta: b"old", ..NewTable::new("u", &[SPEC; 3]) }).unwrap();
    put(&engine, engine.open_table("u").unwrap().tree(0), &[("old", "row")]);
    engine.empty("u", Some(b"discarded")).unwrap();
    (fs, engine)
}

fn export(engine: &Engine) -> Result<()> {
    engine.export_table("t", b"definition", Path::new(EXPORT), &|_| Ok(()))
}

fn import(engine: &Engine) -> Result<()> {
    let admit = |incoming: Incoming<'_>| {
        assert_eq!((incoming.definition, incoming.meta), (&b"definition"[..], &b"source"[..]));
        let (pending, meta) = (b"discarded".to_vec(), b"imported".to_vec());
        Ok(Admission { pending, meta, packing: SPEC.packing, guarded: false })
    };
    engine.import_table("u", Path::new(EXPORT), &admit, &|_| Ok(()))
}

fn bytes_of(fs: &SimulatedFileSystem) -> Vec<u8> {
    let file = fs.open(Path::new(EXPORT), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

fn bring(fs: &SimulatedFileSystem, bytes: &[u8]) {
    let file = fs.open(Path::new(EXPORT), OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
}

fn content(engine: &Engine, name: &str) -> (Vec<Rows>, u64, Option<Vec<u8>>) {
    let table = engine.open_table(name).unwrap();
    let rows = (0..table.trees()).map(|tree| all(engine, table.tree(tree))).collect();
    (rows, table.counter(), engine.digest(&table).unwrap())
}

fn assert_sound(engine: &Engine) {
    let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
}

#[test]
fn a_table_whose_leaves_have_patches_arrives_with_them() {
    let (fs, engine) = source(30);
    let table = engine.open_table("t").unwrap();
    engine.checkpoint().unwrap();
    for row in (40..3000u32).step_by(150) {
        let mut txn = engine.begin(Isolation::Repeatable);
        let op = if row % 4 == 0 { WriteOp::Delete } else { WriteOp::Update(b"changed") };
        txn.write(table.tree(0), &row.to_be_bytes(), op).unwrap();
        txn.commit().unwrap();
    }
    engine.checkpoint().unwrap();
    export(&engine).unwrap();
    let bytes = bytes_of(&fs);
    assert_eq!(bytes[8..12], [4, 0, 0, 0]);
    let (other_fs, other) = target(31);
    bring(&other_fs, &bytes);
    import(&other).unwrap();
    assert_eq!(content(&other, "u"), content(&engine, "t"));
    assert_sound(&other);
}

#[test]
fn a_table_comes_to_an_engine_with_other_numbers_as_it_was() {
    let (from, engine) = source(1);
    export(&engine).unwrap();
    let expected = content(&engine, "t");
    assert_eq!((expected.0[0].len(), expected.0[1].len(), expected.1), (3000, 2, 3001));
    assert!(engine.open_table("t").unwrap().tree(0).dictionary_bytes() > 0, "there is a dictionary");
    let (fs, engine) = target(2);
    bring(&fs, &bytes_of(&from));
    let mut old = engine.begin(Isolation::Repeatable);
    old.open_snapshot();
    import(&engine).unwrap();
    let table = engine.open_table("u").unwrap();
    assert_eq!(table.meta(), b"imported");
    assert_eq!(content(&engine, "u"), expected);
    assert_eq!(table.tree(0).entries(), 3000);
    let refused = Cursor::new(table.tree(0).clone()).first(&mut old, View::Snapshot);
    assert!(matches!(refused, Err(Error::TableChanged)));
    drop(old);
    assert_sound(&engine);
    // It is a table as any other.
    put(&engine, table.tree(0), &[("new", "row")]);
    engine.checkpoint().unwrap();
    assert_sound(&engine);
    let expected = content(&engine, "u");
    let (_, engine) = crash(&fs, engine);
    assert_eq!(content(&engine, "u"), expected);
    assert_sound(&engine);
}

#[test]
fn an_import_is_durable_when_it_returns_whatever_follows() {
    let (from, engine) = source(3);
    export(&engine).unwrap();
    let expected = content(&engine, "t");
    let (fs, engine) = target(4);
    bring(&fs, &bytes_of(&from));
    import(&engine).unwrap();
    let (fs, engine) = crash(&fs, engine);
    assert_eq!(content(&engine, "u"), expected);
    engine.empty("u", None).unwrap();
    let (_, engine) = crash(&fs, engine);
    assert!(content(&engine, "u").0[0].is_empty());
    assert_sound(&engine);
}

/// Each operation of the file system fails once, and the power goes.
#[test]
fn a_power_cut_anywhere_leaves_the_empty_table_or_the_whole_one() {
    let (from, engine) = source(5);
    export(&engine).unwrap();
    let (expected, bytes) = (content(&engine, "t"), bytes_of(&from));
    let (mut whole, mut empty) = (0, 0);
    for at in (1..).step_by(7) {
        let (fs, engine) = target(1000 + at);
        bring(&fs, &bytes);
        fs.fail_after(at, Fault::PowerCut);
        let imported = import(&engine).is_ok();
        let (fs, engine) = crash(&fs, engine);
        let table = engine.open_table("u").unwrap();
        match table.meta() {
            b"imported" => {
                assert_eq!(content(&engine, "u"), expected, "at {at}");
                whole += 1;
            }
            meta => {
                assert!(!imported && meta == b"discarded", "at {at}");
                // It is repeated, on top of what is left.
                bring(&fs, &bytes);
                import(&engine).unwrap();
                assert_eq!(content(&engine, "u"), expected, "at {at}");
                empty += 1;
            }
        }
        assert_sound(&engine);
        if imported {
            break;
        }
    }
    assert!(empty > 10 && whole > 0, "{empty} {whole}");
}

#[test]
fn a_full_disk_fails_export_and_import_and_leaves_nothing_behind() {
    let (from, engine) = source(6);
    for at in [1, 3, 6] {
        from.fail_after(at, Fault::Enospc);
        if export(&engine).is_err() {
            assert!(!from.exists(Path::new(EXPORT)).unwrap(), "at {at}");
        }
    }
    export(&engine).unwrap();
    let (fs, engine) = target(7);
    bring(&fs, &bytes_of(&from));
    for at in (2..60).step_by(9) {
        fs.fail_after(at, Fault::Enospc);
        if import(&engine).is_err() {
            let table = engine.open_table("u").unwrap();
            assert_eq!(table.meta(), b"discarded");
            assert_sound(&engine);
        }
    }
    import(&engine).unwrap();
    assert_eq!(content(&engine, "u").0[0].len(), 3000);
    assert_sound(&engine);
}

/// What the engine shows of it after the error is of the checkpoint that failed: it is in no log, so neither a sync of
/// that nor another commit makes it durable, and a restart may find the other.
#[test]
fn a_failed_import_leaves_no_table_to_use_whatever_is_committed_after_it() {
    let (from, engine) = source(12);
    export(&engine).unwrap();
    let (expected, bytes) = (content(&engine, "t"), bytes_of(&from));
    let whole = |engine: &Engine, when: &str| {
        assert_eq!(engine.table_meta("u").unwrap(), b"discarded", "{when}");
        let found = content(engine, "u");
        assert!(found == expected || found.0.iter().all(|rows| rows.is_empty()), "{when}");
        found == expected
    };
    let (fs, engine) = target(13);
    bring(&fs, &bytes);
    let before = fs.operations();
    import(&engine).unwrap();
    let operations = fs.operations() - before;
    let mut vanished = (0, 0);
    // From the last blocks on.
    for at in operations - 20..operations {
        // An I/O error of the superblock or of the log ends all writing, a full disk only that of the superblock.
        for fault in [Fault::Eio, Fault::Enospc] {
            let when = format!("{fault:?} at {at}");
            let (fs, engine) = target(3000 + at);
            bring(&fs, &bytes);
            fs.fail_after(at, fault);
            if import(&engine).is_ok() {
                continue;
            }
            fs.heal();
            let shown = whole(&engine, &when);
            let other = engine.open_table("other").unwrap();
            let mut txn = engine.begin(Isolation::Repeatable);
            let op = WriteOp::Insert(b"row");
            let committed = txn.write(other.tree(0), b"new", op).and_then(|()| txn.commit()).is_ok();
            drop(other);
            let (fs, engine) = crash(&fs, engine);
            if !committed && engine.table_meta("u").unwrap() == b"imported" {
                // The last step was in the log after all.
                assert_eq!(content(&engine, "u"), expected, "{when}");
                continue;
            }
            let found = whole(&engine, &when);
            match shown && !found {
                true if committed => vanished.0 += 1,
                true => vanished.1 += 1,
                false => {}
            }
            let other = engine.open_table("other").unwrap();
            assert_eq!(all(&engine, other.tree(0)).len(), usize::from(committed), "{when}");
            bring(&fs, &bytes);
            import(&engine).unwrap();
            assert_eq!(content(&engine, "u"), expected, "{when}");
            assert_sound(&engine);
        }
    }
    assert!(vanished.0 > 0 && vanished.1 > 0, "{vanished:?}");
}

#[test]
fn an_export_that_was_cut_or_changed_anywhere_is_refused() {
    let (from, engine) = source(8);
    export(&engine).unwrap();
    let bytes = bytes_of(&from);
    let (fs, engine) = target(9);
    let refuse = |bytes: &[u8], what: &str| {
        bring(&fs, bytes);
        match import(&engine) {
            Err(Error::Corrupt { path, .. }) | Err(Error::UnknownVersion { path, .. }) => {
                assert_eq!(path, Path::new(EXPORT), "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    };
    for at in (0..bytes.len()).step_by(bytes.len() / 150).chain(0..40) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        refuse(&changed, &format!("a bit at {at}"));
    }
    for length in [0, 1, 39, 40, 100, bytes.len() / 2, bytes.len() - 1] {
        refuse(&bytes[..length], &format!("cut at {length}"));
    }
    refuse(&[&bytes[..], b"more"].concat(), "more behind it");
    // Nothing of all that is left.
    let table = engine.open_table("u").unwrap();
    assert!(table.disk_bytes() <= 2 * crate::store::Space::HEADER_BYTES, "{}", table.disk_bytes());
    assert_sound(&engine);
}

#[test]
fn a_damaged_block_ends_an_export_and_is_named() {
    let (fs, engine) = source(10);
    engine.checkpoint().unwrap();
    let table = engine.open_table("t").unwrap();
    let file = fs.open(table.path(), OpenMode::Existing).unwrap();
    let half = file.len().unwrap() / 2;
    let mut bytes = vec![0; 4096];
    file.read_exact_at(half, &mut bytes).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
    file.write_at(half, &bytes).unwrap();
    match export(&engine) {
        Err(Error::Corrupt { path, offset, .. }) => {
            assert_eq!(path, table.path());
            assert!(offset.abs_diff(half) < 8192, "{offset} {half}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!fs.exists(Path::new(EXPORT)).unwrap());
}

#[test]
fn an_export_waits_for_nobody_and_refuses_what_is_undecided() {
    let (_fs, engine) = source(11);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, engine.open_table("t").unwrap().tree(1), "u", "ndecided");
    txn.prepare(b"xid").unwrap();
    drop(txn);
    assert!(matches!(export(&engine), Err(Error::Undecided { .. })));
    engine.commit_prepared(b"xid").unwrap();
    export(&engine).unwrap();
    // Nor is there one, nor an import, while the files are being copied.
    let _pause = engine.pause_checkpoints();
    assert!(matches!(export(&engine), Err(Error::CheckpointsPaused)));
}
