//! DDL, and what a crash in the middle of it leaves.

use super::*;
use crate::catalog::space_of_file_name;
use crate::file::{Fault, FileSystem, OpenMode};
use crate::{Compression, Packing};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn a_closed_engine_opens_with_everything_it_had() {
    let (fs, engine, table) = with_table(1);
    put(&engine, table.tree(0), &[("a", "1"), ("b", "2")]);
    put(&engine, table.tree(1), &[("x", "")]);
    drop(table);
    engine.close().unwrap();
    assert!(matches!(engine.create(NewTable::new("u", &specs(1))), Err(Error::ReadOnly(_))));
    drop(engine);
    let engine = open(&fs);
    let table = engine.open_table("t").unwrap();
    assert_eq!((table.meta(), table.trees(), table.name()), (&b"meta"[..], 2, "t".to_string()));
    assert_eq!(table.tree(0).entries(), 2);
    expect(&engine, "t", 0, &[("a", "1"), ("b", "2")]);
    expect(&engine, "t", 1, &[("x", "")]);
    engine.check_table(&table).unwrap();
    assert_eq!(engine.statistics().replayed_operations, 0, "a clean start has nothing to replay");
}

#[test]
fn a_directory_is_used_by_one_engine_at_a_time() {
    let fs = SimulatedFileSystem::new(1);
    let engine = open(&fs);
    assert!(matches!(Engine::open(Arc::new(fs.clone()), options()), Err(Error::InUse { .. })));
    engine.close().unwrap();
    open(&fs);
}

#[test]
fn names_are_unique_and_listed_by_prefix() {
    let (_fs, engine, _) = with_table(2);
    assert!(matches!(engine.create(NewTable::new("t", &specs(1))), Err(Error::TableExists(_))));
    engine.create(NewTable::new("db/a", &specs(1))).unwrap();
    engine.create(NewTable::new("db/b", &specs(1))).unwrap();
    assert_eq!(engine.table_names("db/").unwrap(), ["db/a", "db/b"]);
    assert_eq!(engine.table_names("").unwrap(), ["db/a", "db/b", "t"]);
    assert!(matches!(engine.rename(Renaming::new("db/a", "db/b")), Err(Error::TableExists(_))));
    assert!(matches!(engine.drop("nix", IfPrepared::Refuse), Err(Error::NoSuchTable(_))));
    engine.drop("db/a", IfPrepared::Refuse).unwrap();
    assert!(matches!(engine.open_table("db/a"), Err(Error::NoSuchTable(_))));
}

#[test]
fn a_renamed_table_keeps_rows_handles_and_survives_a_crash() {
    let (fs, engine, table) = with_table(3);
    put(&engine, table.tree(0), &[("a", "1")]);
    engine.checkpoint().unwrap();
    engine.rename(Renaming::new("t", "u")).unwrap();
    assert_eq!(table.name(), "u");
    put(&engine, table.tree(0), &[("b", "2")]);
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.table_names("").unwrap(), ["u"]);
    expect(&engine, "u", 0, &[("a", "1"), ("b", "2")]);
}

#[test]
fn a_truncated_table_is_empty_and_old_handles_know() {
    let (fs, engine, table) = with_table(4);
    put(&engine, table.tree(0), &[("a", "1")]);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.note_counter(&table, 17);
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    engine.empty("t", None).unwrap();
    assert!(!table.is_current());
    let table = engine.open_table("t").unwrap();
    assert!(table.is_current());
    assert_eq!(table.counter(), 0);
    put(&engine, table.tree(0), &[("b", "2")]);
    drop(table);
    let (fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("b", "2")]);
    engine.checkpoint().unwrap();
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("b", "2")]);
    assert_eq!(engine.open_table("t").unwrap().counter(), 0);
}

#[test]
fn replacing_a_table_is_one_step() {
    let (fs, engine, table) = with_table(5);
    put(&engine, table.tree(0), &[("a", "1")]);
    drop(table);
    engine.create(NewTable { meta: b"new", ..NewTable::new("new", &specs(3)) }).unwrap();
    engine.change(&[Replacement { table: "t", by: "new", counter: 1 }.into()], &[]).unwrap();
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(
        (engine.table_names("").unwrap(), engine.table_meta("t").unwrap()),
        (vec!["t".into()], b"new".to_vec())
    );
    assert_eq!(engine.open_table("t").unwrap().trees(), 3);
    expect(&engine, "t", 0, &[]);
}

fn files(fs: &SimulatedFileSystem) -> BTreeSet<u32> {
    let names = fs.list(Path::new("/teak")).unwrap();
    names.iter().filter_map(|name| space_of_file_name(name)).collect()
}

/// Each file but the system's belongs to a table, and each table has its file.
pub(super) fn no_orphans(fs: &SimulatedFileSystem, engine: &Engine) {
    let names = engine.table_names("").unwrap();
    let used: BTreeSet<u32> =
        names.iter().map(|name| engine.open_table(name).unwrap().space().id()).chain([0]).collect();
    assert_eq!(files(fs), used);
}

#[test]
fn a_power_cut_at_any_moment_of_ddl_leaves_old_or_new_and_no_stray_files() {
    type Step = fn(&Engine) -> Result<()>;
    let script: &[(&str, Step)] = &[
        ("create", |e| e.create(NewTable::new("new", &specs(2)))),
        ("drop", |e| e.drop("old", IfPrepared::Refuse)),
        ("rename", |e| e.rename(Renaming::new("old", "renamed"))),
        ("truncate", |e| e.empty("old", None)),
        ("empty", |e| e.empty("old", Some(b"other"))),
        ("replace", |e| {
            e.create(NewTable { meta: b"replaced", ..NewTable::new("new", &specs(1)) })?;
            e.change(&[Replacement { table: "old", by: "new", counter: 1 }.into()], &[])
        }),
    ];
    for (what, step) in script {
        for cut in 0.. {
            let fs = SimulatedFileSystem::new(cut * 7 + 1);
            let engine = open(&fs);
            engine.create(NewTable::new("old", &specs(1))).unwrap();
            put(&engine, engine.open_table("old").unwrap().tree(0), &[("a", "1")]);
            if cut % 2 == 0 {
                engine.checkpoint().unwrap();
            }
            fs.fail_after(cut, Fault::PowerCut);
            let result = step(&engine).and_then(|()| engine.checkpoint());
            let finished = !fs.power_is_off();
            let (fs, engine) = crash(&fs, engine);
            no_orphans(&fs, &engine);
            let names = engine.table_names("").unwrap();
            let done = match *what {
                "create" => names == ["new", "old"],
                "drop" => names.is_empty(),
                "rename" => names == ["renamed"],
                _ => engine.open_table("old").is_ok_and(|old| all(&engine, old.tree(0)).is_empty()),
            };
            assert!(done || !finished || result.is_err(), "{what}, cut {cut}");
            if !done {
                expect(&engine, "old", 0, &[("a", "1")]);
            } else if *what == "rename" {
                expect(&engine, "renamed", 0, &[("a", "1")]);
            }
            if finished {
                assert!(result.is_ok() && done);
                break;
            }
        }
    }
}

#[test]
fn a_missing_file_is_an_error_of_its_table_alone() {
    let (fs, engine, table) = with_table(6);
    engine.create(NewTable::new("u", &specs(1))).unwrap();
    put(&engine, table.tree(0), &[("a", "1")]);
    let path = table.space().path().to_path_buf();
    drop(table);
    engine.close().unwrap();
    drop(engine);
    fs.remove(&path).unwrap();
    let engine = open(&fs);
    assert!(matches!(engine.open_table("t"), Err(Error::Corrupt { .. })));
    expect(&engine, "u", 0, &[]);
    engine.drop("t", IfPrepared::Refuse).unwrap();
    assert_eq!(engine.table_names("").unwrap(), ["u"]);
}

#[test]
fn a_table_that_cannot_take_its_log_stays_closed_and_its_log_is_kept() {
    let (fs, engine, table) = with_table(7);
    engine.create(NewTable::new("u", &specs(1))).unwrap();
    engine.checkpoint().unwrap();
    put(&engine, table.tree(0), &[("a", "1")]);
    put(&engine, engine.open_table("u").unwrap().tree(0), &[("b", "2")]);
    let path = table.space().path().to_path_buf();
    let hidden = path.with_extension("hidden");
    drop((table, engine));
    fs.rename(&path, &hidden).unwrap();
    let engine = open(&fs);
    assert!(matches!(engine.open_table("t"), Err(Error::Corrupt { .. })));
    expect(&engine, "u", 0, &[("b", "2")]);
    engine.checkpoint().unwrap();
    drop(engine);
    // The file comes back, and with it what the log still has.
    fs.rename(&hidden, &path).unwrap();
    expect(&open(&fs), "t", 0, &[("a", "1")]);
}

#[test]
fn tables_nobody_uses_are_let_go_after_a_checkpoint_unless_a_snapshot_needs_them() {
    let (_fs, engine, table) = with_table(8);
    put(&engine, table.tree(0), &[("a", "1")]);
    engine.checkpoint().unwrap();
    let mut old = engine.begin(Isolation::Repeatable);
    old.open_snapshot();
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.write(table.tree(0), b"a", WriteOp::Update(b"2")).unwrap();
    txn.commit().unwrap();
    drop(table);
    for _ in 0..3 {
        engine.checkpoint().unwrap();
    }
    assert_eq!(engine.statistics().open_tables, 1, "the old snapshot needs versions in memory");
    let table = engine.open_table("t").unwrap();
    assert_eq!(read(&mut old, table.tree(0), View::Snapshot), Rows::from([(b"a".to_vec(), b"1".to_vec())]));
    old.commit().unwrap();
    drop(table);
    engine.checkpoint().unwrap();
    assert_eq!(engine.statistics().open_tables, 0);
    expect(&engine, "t", 0, &[("a", "2")]);
}

#[test]
fn tables_beyond_the_bound_of_open_files_are_written_recovered_and_read_after_their_drop() {
    let open_few = |fs: &SimulatedFileSystem| {
        Engine::open(Arc::new(fs.clone()), Options { open_files: 3, ..options() }).unwrap()
    };
    let name = |i: usize| format!("t{i:02}");
    let fs = SimulatedFileSystem::new(9);
    let engine = open_few(&fs);
    let mut tables = Vec::new();
    for i in 0..40 {
        engine.create(NewTable::new(&name(i), &specs(2))).unwrap();
        tables.push(engine.open_table(&name(i)).unwrap());
    }
    for round in ["1", "2", "3"] {
        for table in &tables {
            put(&engine, table.tree(0), &[(round, "x")]);
            put(&engine, table.tree(1), &[(round, "y")]);
        }
        if round != "3" {
            engine.checkpoint().unwrap();
        }
    }
    drop(tables);
    drop(engine);
    let fs = fs.crash();
    let engine = open_few(&fs);
    let rows = [("1", "x"), ("2", "x"), ("3", "x")];
    (0..40).for_each(|i| expect(&engine, &name(i), 0, &rows));
    engine.checkpoint().unwrap();
    drop(engine);

    // Nothing is in memory now, and the file of the dropped table is closed when it is dropped.
    let engine = open_few(&fs);
    let dropped = engine.open_table(&name(0)).unwrap();
    let mut old = engine.begin(Isolation::Repeatable);
    old.open_snapshot();
    (1..40).for_each(|i| expect(&engine, &name(i), 0, &rows));
    engine.drop(&name(0), IfPrepared::Refuse).unwrap();
    (1..40).for_each(|i| expect(&engine, &name(i), 0, &rows));
    assert!(!fs.exists(dropped.space().path()).unwrap());
    // Opening a table reads from its first tree, not from the second.
    let read = read(&mut old, dropped.tree(1), View::Snapshot);
    assert_eq!(read.len(), rows.len());
}

#[test]
fn a_table_gets_another_compression_while_it_is_used_and_keeps_its_rows() {
    let fs = SimulatedFileSystem::new(31);
    let engine = open(&fs);
    let none = TreeSpec { block_bytes: 4096, packing: Compression::None.into() };
    engine.create(NewTable { meta: b"meta", ..NewTable::new("t", &[none; 2]) }).unwrap();
    let table = engine.open_table("t").unwrap();
    let write = |engine: &Engine, from: u32, value: &str| {
        let table = engine.open_table("t").unwrap();
        let mut txn = engine.begin(Isolation::Repeatable);
        for i in from..from + 300 {
            let key = format!("key {i:05}");
            for place in 0..2 {
                let value = format!("{value} {i} {}", "compressible ".repeat(20));
                txn.write(table.tree(place), key.as_bytes(), WriteOp::Update(value.as_bytes())).unwrap();
            }
        }
        txn.commit().unwrap();
    };
    (0..5).for_each(|part| write(&engine, part * 300, "old"));
    engine.checkpoint().unwrap();
    let before = table.tree(0).disk_bytes();
    drop(table);
    let packing = Packing { compression: Compression::Zstd, level: 3, similarity: false };
    repack(&engine, "t", packing);
    engine.checkpoint().unwrap();
    // The power goes in the middle of the conversion: what is left of it stays as it was.
    write(&engine, 100, "new");
    let rows = all(&engine, engine.open_table("t").unwrap().tree(0));
    let (fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert_eq!(table.tree(1).spec().packing, packing);
    assert_eq!(all(&engine, table.tree(0)), rows);
    let half = table.tree(0).disk_bytes();
    assert!(half < before * 19 / 20, "{half} of {before}");
    // Again: now to its end.
    repack(&engine, "t", packing);
    for turn in 0..100 {
        write(&engine, turn * 13, "again");
        engine.checkpoint().unwrap();
        if !table.tree(0).is_converting() && !table.tree(1).is_converting() {
            break;
        }
    }
    assert!(!table.tree(0).is_converting());
    let rows = all(&engine, table.tree(0));
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert!(table.tree(0).disk_bytes() < before / 3, "{} of {before}", table.tree(0).disk_bytes());
    assert_eq!(all(&engine, table.tree(0)), rows);
    assert_eq!(all(&engine, table.tree(1)), rows);
    engine.check_table(&table).unwrap();
}

/// The files of tables.
fn table_files(fs: &SimulatedFileSystem) -> Vec<String> {
    let names = fs.list(Path::new("/teak")).unwrap();
    names.into_iter().filter(|name| space_of_file_name(name).is_some_and(|space| space > 0)).collect()
}

#[test]
fn a_file_that_could_not_be_removed_goes_after_the_next_checkpoint() {
    let fs = SimulatedFileSystem::new(9);
    let engine = open(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    // The commit, its sync, and then the removal.
    fs.fail_after(2, Fault::Eio);
    engine.drop("t", IfPrepared::Refuse).unwrap();
    assert_eq!(table_files(&fs), ["s1.teak"]);
    engine.checkpoint().unwrap();
    assert!(table_files(&fs).is_empty());
    assert!(engine.shared.definitions.orphans.lock().is_empty());
}

#[test]
fn a_file_that_could_not_be_removed_goes_at_the_next_start_though_the_log_forgot_it() {
    let fs = SimulatedFileSystem::new(10);
    let engine = open(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    engine.create(NewTable::new("u", &specs(1))).unwrap();
    fs.fail_after(2, Fault::Eio);
    engine.drop("t", IfPrepared::Refuse).unwrap();
    // The power goes before it is tried again.
    for _ in 0..2 {
        let shared = &engine.shared;
        let pace = crate::checkpoint::Pace { writers: &|| 1, files: 1 };
        let made = shared.care.checkpointer.run(&pace, || Some(shared.capture(false)), |_, _| ());
        assert!(matches!(made, Some(Ok((_, None)))));
    }
    let findings = engine.check_files(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
    assert_eq!(table_files(&fs), ["s1.teak", "s2.teak"]);
    let (fs, engine) = crash(&fs, engine);
    assert_eq!(table_files(&fs), ["s2.teak"]);
    engine.checkpoint().unwrap();
    assert!(engine.shared.system.orphans().unwrap().is_empty());
    engine.open_table("u").unwrap();
}

#[test]
fn the_number_of_a_file_that_could_not_be_removed_at_a_start_is_not_used_again() {
    let mut left_over = 0;
    for after in 0..60 {
        let fs = SimulatedFileSystem::new(11);
        drop(open(&fs));
        // Of a creation whose commit the power cut.
        fs.open(Path::new("/teak/s1.teak"), OpenMode::Create).unwrap().sync().unwrap();
        fs.sync_dir(Path::new("/teak")).unwrap();
        fs.fail_after(after, Fault::Eio);
        let opened = Engine::open(Arc::new(fs.clone()), options());
        fs.heal();
        let Ok(engine) = opened else { continue };
        left_over += usize::from(!engine.shared.definitions.orphans.lock().is_empty());
        engine.create(NewTable::new("t", &specs(1))).unwrap();
        engine.checkpoint().unwrap();
        let (_, engine) = crash(&fs, engine);
        engine.open_table("t").unwrap();
    }
    assert!(left_over > 0);
}
