//! Trees that are filled without the log: what is there afterwards, after a crash, and what is given back.

use super::*;
use crate::file::Fault;
use crate::Compression;

const DISABLED: &[u8] = b"disabled";
const ENABLED: &[u8] = b"enabled";

const SPEC: TreeSpec = TreeSpec {
    block_bytes: 4096,
    packing: crate::Packing { compression: crate::Compression::Zstd, level: 0, similarity: false },
};
const RENEW: [TreeSource; 2] = [TreeSource::Keep(0), TreeSource::New(SPEC)];
const KEEP: [TreeSource; 2] = [TreeSource::Keep(0), TreeSource::Keep(1)];

fn key(i: u64) -> Vec<u8> {
    format!("{i:06}").into_bytes()
}

/// The entry of a row, as a second tree has it: other order, the row's key as value; a few values are large.
fn entry(i: u64) -> (Vec<u8>, Vec<u8>) {
    let value = if i.is_multiple_of(97) { vec![i as u8; 3000] } else { key(i) };
    (format!("{:06}", i * 7919 % 10_007).into_bytes(), value)
}

fn entries(rows: impl Iterator<Item = u64>) -> Rows {
    rows.map(entry).collect()
}

/// Rows without entries.
fn fill(engine: &Engine, table: &Table, rows: std::ops::Range<u64>) -> Result<()> {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for i in rows {
        txn.write(table.tree(0), &key(i), WriteOp::Insert(&[i as u8; 50]))?;
    }
    txn.commit()
}

fn build(engine: &Engine, rows: u64, sort_bytes: u64) -> Result<()> {
    let table = engine.open_table("t")?;
    let mut build = engine.build_trees(&table, &[1], sort_bytes)?;
    for i in 0..rows {
        let (key, value) = entry(i);
        build.add(0, &key, &value)?;
    }
    build.finish(|_| Ok(()))
}

#[test]
fn a_built_tree_has_all_entries_survives_a_crash_and_is_written_to_like_any_other() {
    for rows in [0, 1, 30, 5000] {
        let (fs, engine, table) = with_table(rows);
        fill(&engine, &table, 0..rows).unwrap();
        drop(table);
        build(&engine, rows, 0).unwrap();
        let (fs, engine) = crash(&fs, engine);
        let table = engine.open_table("t").unwrap();
        let mut expected = entries(0..rows);
        assert!(all(&engine, table.tree(1)) == expected, "{rows} rows");
        assert_eq!(table.tree(1).entries(), rows);
        engine.check_table(&table).unwrap();
        put(&engine, table.tree(1), &[("000000x", "new"), ("zzz", "last")]);
        expected.extend([(b"000000x".to_vec(), b"new".to_vec()), (b"zzz".to_vec(), b"last".to_vec())]);
        drop(table);
        let (_fs, engine) = crash(&fs, engine);
        let table = engine.open_table("t").unwrap();
        assert!(all(&engine, table.tree(1)) == expected);
        engine.checkpoint().unwrap();
        engine.check_table(&table).unwrap();
    }
}

/// The entry of a row whose key [`key`] made.
fn make(key: &[u8], _: &[u8], feed: &mut Feed) -> Result<()> {
    let (key, value) = entry(std::str::from_utf8(key).unwrap().parse().unwrap());
    feed.add(0, &key, &value)
}

#[test]
fn threads_that_share_a_scan_feed_each_row_once_as_its_transaction_sees_it() {
    for (rows, threads, sort_bytes) in [(0, 3, 0), (1, 3, 0), (3000, 1, 0), (5000, 3, 0), (9000, 4, 8 << 20)]
    {
        let (_fs, engine, table) = with_table(rows);
        fill(&engine, &table, 0..rows / 2).unwrap();
        // Half of them are in stored blocks, and some are not committed.
        engine.checkpoint().unwrap();
        fill(&engine, &table, rows / 2..rows).unwrap();
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for i in rows..rows + 50 {
            txn.write(table.tree(0), &key(i), WriteOp::Insert(b"mine")).unwrap();
        }
        let mut other = engine.begin(Isolation::ReadCommitted);
        other.write(table.tree(0), &key(10_006), WriteOp::Insert(b"not mine")).unwrap();
        let mut build = engine.build_trees(&table, &[1], sort_bytes).unwrap();
        build.threads = threads;
        build.feed(&mut txn, table.tree(0), || Ok(make), |_| Ok(())).unwrap();
        build.finish(|_| Ok(())).unwrap();
        assert!(all(&engine, table.tree(1)) == entries(0..rows + 50), "{rows} rows, {threads} threads");
        assert_eq!(table.tree(1).entries(), rows + 50);
    }
}

#[test]
fn an_error_of_any_thread_or_of_who_watches_ends_a_scan() {
    let (_fs, engine, table) = with_table(3);
    fill(&engine, &table, 0..5000).unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let mut build = engine.build_trees(&table, &[1], 0).unwrap();
    let seen = std::sync::atomic::AtomicU64::new(0);
    let watched = |rows| match rows > 100 {
        true => Err(Error::Interrupted),
        false => Ok(()),
    };
    let stopped = build.feed(&mut txn, table.tree(0), || Ok(make), watched);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let failing = || {
        Ok(|key: &[u8], _: &[u8], _: &mut Feed| {
            seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            match key == b"002500" {
                true => Err(Error::OutOfMemory("a row")),
                false => Ok(()),
            }
        })
    };
    build.threads = 3;
    let stopped = build.feed(&mut txn, table.tree(0), failing, |_| Ok(()));
    assert!(matches!(stopped, Err(Error::OutOfMemory("a row"))));
    drop(build);
    // Also while the entries are loaded.
    let mut build = engine.build_trees(&table, &[1], 0).unwrap();
    build.feed(&mut txn, table.tree(0), || Ok(make), |_| Ok(())).unwrap();
    assert_eq!(build.entries(), 5000);
    assert!(matches!(build.finish(watched), Err(Error::Interrupted)));
    assert!(all(&engine, table.tree(1)).is_empty());
}

#[test]
fn a_snapshot_from_before_the_build_is_told_so_and_the_rows_stay_readable_to_it() {
    let (_fs, engine, table) = with_table(1);
    fill(&engine, &table, 0..10).unwrap();
    let mut old = engine.begin(Isolation::Repeatable);
    assert_eq!(read(&mut old, table.tree(0), View::Snapshot).len(), 10);
    fill(&engine, &table, 10..20).unwrap();
    build(&engine, 20, 1 << 20).unwrap();
    let mut cursor = Cursor::new(table.tree(1).clone());
    assert!(matches!(cursor.first(&mut old, View::Snapshot), Err(Error::TableChanged)));
    assert!(cursor.first(&mut old, View::Latest).unwrap());
    assert_eq!(read(&mut old, table.tree(0), View::Snapshot).len(), 10);
    assert_eq!(all(&engine, table.tree(1)), entries(0..20));
}

#[test]
fn an_unsorted_feed_with_a_key_twice_is_an_error_and_changes_nothing() {
    let (_fs, engine, table) = with_table(1);
    let mut build = engine.build_trees(&table, &[1], 1 << 20).unwrap();
    for (key, value) in [(b"b", b"2"), (b"a", b"1"), (b"b", b"1")] {
        build.add(0, key, value).unwrap();
    }
    let outcome = build.finish(|_| Ok(()));
    assert!(
        matches!(&outcome, Err(Error::DuplicateEntry { part: 0, value, .. }) if value == b"1"),
        "{outcome:?}"
    );
    assert!(all(&engine, table.tree(1)).is_empty());
    put(&engine, table.tree(1), &[("k", "v")]);
    let build = engine.build_trees(&table, &[1], 1 << 20).unwrap();
    assert!(matches!(build.finish(|_| Ok(())), Err(Error::Corrupt { .. })), "the tree is not empty");
}

#[test]
fn renewed_trees_give_their_space_back() {
    let (fs, engine, table) = with_table(1);
    fill(&engine, &table, 0..3000).unwrap();
    drop(table);
    build(&engine, 3000, 0).unwrap();
    let mut sizes = Vec::new();
    let mut state = (fs, engine);
    for round in 0..6 {
        let (fs, engine) = state;
        engine.change(&[Alteration::new("t", &RENEW, DISABLED).into()], &[]).unwrap();
        let table = engine.open_table("t").unwrap();
        assert_eq!((table.meta(), all(&engine, table.tree(1)).len()), (DISABLED, 0));
        assert_eq!(all(&engine, table.tree(0)).len(), 3000);
        drop(table);
        // With and without a start between the change and the checkpoint that gives the space back.
        state = if round % 2 == 0 { crash(&fs, engine) } else { (fs, engine) };
        build(&state.1, 3000, 0).unwrap();
        state.1.change(&[Alteration::new("t", &KEEP, ENABLED).into()], &[]).unwrap();
        state.1.checkpoint().unwrap();
        let table = state.1.open_table("t").unwrap();
        assert_eq!(all(&state.1, table.tree(1)), entries(0..3000));
        sizes.push(table.disk_bytes());
    }
    assert!(sizes[5] <= sizes[1], "the file grows with each round: {sizes:?}");
}

#[test]
fn a_counter_is_set_with_the_definition_also_downwards() {
    let (fs, engine, table) = with_table(1);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.note_counter(&table, 50);
    txn.commit().unwrap();
    let change = |meta, value| {
        let layout = &[TreeSource::Keep(0), TreeSource::Keep(1)];
        let alteration = Alteration { counter: Some(value), ..Alteration::new("t", layout, meta) };
        engine.change(&[alteration.into()], &[]).unwrap();
    };
    change(b"up", 70);
    assert_eq!(engine.open_table("t").unwrap().counter(), 70);
    change(b"down", 20);
    let (fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert_eq!((table.meta(), table.counter()), (&b"down"[..], 20));
    engine.checkpoint().unwrap();
    let (_, engine) = crash(&fs, engine);
    assert_eq!(engine.open_table("t").unwrap().counter(), 20);
}

#[test]
fn the_counter_survives_a_change_of_trees_and_a_crash_after_it() {
    let (fs, engine, table) = with_table(1);
    let count = |engine: &Engine, value| {
        let table = engine.open_table("t").unwrap();
        let mut txn = engine.begin(Isolation::ReadCommitted);
        txn.note_counter(&table, value);
        txn.write(table.tree(0), &value.to_be_bytes(), WriteOp::Insert(b"row")).unwrap();
        txn.commit().unwrap();
    };
    count(&engine, 10);
    drop(table);
    engine.checkpoint().unwrap();
    count(&engine, 20);
    engine.change(&[Alteration::new("t", &RENEW, DISABLED).into()], &[]).unwrap();
    assert_eq!(engine.open_table("t").unwrap().counter(), 20);
    count(&engine, 30);
    let (fs, engine) = crash(&fs, engine);
    assert_eq!(engine.open_table("t").unwrap().counter(), 30);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.open_table("t").unwrap().counter(), 30);
}

/// Disables, changes rows, builds, enables: as ALTER TABLE does it.
fn round_trip(engine: &Engine, rows: u64) -> Result<()> {
    engine.change(&[Alteration::new("t", &RENEW, DISABLED).into()], &[])?;
    let table = engine.open_table("t")?;
    fill(engine, &table, rows..rows + 300)?;
    drop(table);
    build(engine, rows + 300, 0)?;
    engine.change(&[Alteration::new("t", &KEEP, ENABLED).into()], &[])?;
    engine.checkpoint()
}

#[test]
fn a_power_cut_at_any_moment_leaves_an_index_that_is_whole_or_said_to_be_disabled() {
    let (mut cut, mut finished) = (0, false);
    while !finished {
        let (fs, engine, table) = with_table(cut + 1);
        fill(&engine, &table, 0..400).unwrap();
        drop(table);
        build(&engine, 400, 0).unwrap();
        engine.change(&[Alteration::new("t", &KEEP, ENABLED).into()], &[]).unwrap();
        fs.fail_after(cut, Fault::PowerCut);
        finished = round_trip(&engine, 400).is_ok();
        let (fs, engine) = crash(&fs, engine);
        let table = engine.open_table("t").unwrap();
        let rows = all(&engine, table.tree(0)).len() as u64;
        assert!(rows == 400 || rows == 700, "cut {cut}: {rows} rows");
        if table.meta() == ENABLED {
            assert!(all(&engine, table.tree(1)) == entries(0..rows), "cut {cut}");
        }
        engine.check_table(&table).unwrap();
        drop(table);
        // What is half done does not stand in the way.
        engine.change(&[Alteration::new("t", &RENEW, DISABLED).into()], &[]).unwrap();
        build(&engine, rows, 0).unwrap();
        engine.change(&[Alteration::new("t", &KEEP, ENABLED).into()], &[]).unwrap();
        engine.checkpoint().unwrap();
        let (_fs, engine) = crash(&fs, engine);
        let table = engine.open_table("t").unwrap();
        assert!(all(&engine, table.tree(1)) == entries(0..rows), "cut {cut}, second start");
        engine.check_table(&table).unwrap();
        cut += if cut < 60 { 1 } else { 5 };
    }
    assert!(cut > 40, "it consists of more than {cut} operations");
}

#[test]
fn a_table_dropped_with_renewed_trees_leaves_no_trace() {
    let (fs, engine, table) = with_table(1);
    fill(&engine, &table, 0..1000).unwrap();
    drop(table);
    build(&engine, 1000, 0).unwrap();
    engine.change(&[Alteration::new("t", &RENEW, DISABLED).into()], &[]).unwrap();
    engine.drop("t", IfPrepared::Refuse).unwrap();
    engine.checkpoint().unwrap();
    let (_fs, engine) = crash(&fs, engine);
    assert!(engine.table_names("").unwrap().is_empty());
    engine.checkpoint().unwrap();
}

#[test]
fn trees_are_added_moved_and_dropped_and_keep_their_rows() {
    let (fs, engine, table) = with_table(1);
    fill(&engine, &table, 0..100).unwrap();
    put(&engine, table.tree(1), &[("b", "2")]);
    drop(table);
    use TreeSource::{Keep, New};
    engine.change(&[Alteration::new("t", &[Keep(0), New(SPEC), Keep(1)], b"added").into()], &[]).unwrap();
    let table = engine.open_table("t").unwrap();
    put(&engine, table.tree(1), &[("a", "1")]);
    drop(table);
    assert!(matches!(
        engine.change(&[Alteration::new("t", &[Keep(0), Keep(3)], b"").into()], &[]),
        Err(Error::NoSuchTree(3))
    ));
    let (fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 1, &[("a", "1")]);
    expect(&engine, "t", 2, &[("b", "2")]);
    engine.change(&[Alteration::new("t", &[Keep(0), Keep(2)], b"dropped").into()], &[]).unwrap();
    expect(&engine, "t", 1, &[("b", "2")]);
    engine.checkpoint().unwrap();
    let (_fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert_eq!((table.trees(), table.meta(), all(&engine, table.tree(0)).len()), (2, &b"dropped"[..], 100));
    expect(&engine, "t", 1, &[("b", "2")]);
}

#[test]
fn a_power_cut_leaves_all_tables_of_one_alteration_altered_or_none() {
    let (mut cut, mut finished) = (0, false);
    let packing = Packing { compression: Compression::Lz4, level: 0, similarity: false };
    while !finished {
        let (fs, engine, table) = with_table(cut + 1);
        fill(&engine, &table, 0..10).unwrap();
        drop(table);
        engine.create(NewTable { meta: b"meta", ..NewTable::new("u", &specs(2)) }).unwrap();
        fs.fail_after(cut, Fault::PowerCut);
        let change = |table| Alteration {
            packing: Some(packing),
            guarded: true,
            ..Alteration::new(table, &RENEW, b"new")
        };
        let wrong = Alteration { layout: &[TreeSource::Keep(7)], ..change("u") };
        assert!(engine.change(&[change("t").into(), wrong.into()], &[]).is_err());
        finished = engine.change(&[change("t").into(), change("u").into()], &[]).is_ok();
        let (_fs, engine) = crash(&fs, engine);
        let metas = ["t", "u"].map(|name| engine.table_meta(name).unwrap());
        assert!(metas[0] == metas[1] && (!finished || metas[0] == b"new"), "cut {cut}: {metas:?}");
        for (name, meta) in ["t", "u"].iter().zip(&metas) {
            let table = engine.open_table(name).unwrap();
            assert_eq!(table.tree(1).spec().packing == packing, meta == b"new", "cut {cut}");
            engine.check_table(&table).unwrap();
        }
        assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(0)).len(), 10);
        cut += 1;
    }
    assert!(cut > 1, "it consists of more than {cut} operations");
}

#[test]
fn a_tree_that_the_replayed_log_takes_away_and_brings_back_stays() {
    let (fs, engine, table) = with_table(1);
    fill(&engine, &table, 0..3000).unwrap();
    drop(table);
    engine.create(NewTable::new("other", &specs(1))).unwrap();
    // The log is kept from here on, and so replayed from before the image.
    let other = engine.open_table("other").unwrap();
    let mut prepared = engine.begin(Isolation::Repeatable);
    insert(&mut prepared, other.tree(0), "key", "value");
    prepared.prepare(b"xid").unwrap();
    drop((prepared, other));
    for _ in 0..2 {
        engine.change(&[Alteration::new("t", &RENEW, DISABLED).into()], &[]).unwrap();
        build(&engine, 3000, 0).unwrap();
        engine.change(&[Alteration::new("t", &KEEP, ENABLED).into()], &[]).unwrap();
    }
    engine.checkpoint().unwrap();
    let mut state = (fs, engine);
    for start in 0..4 {
        state = crash(&state.0, state.1);
        let table = state.1.open_table("t").unwrap();
        assert!(all(&state.1, table.tree(1)) == entries(0..3000), "start {start}");
        state.1.check_table(&table).unwrap();
        fill(&state.1, &table, 3000 + start * 100..3100 + start * 100).unwrap();
        state.1.checkpoint().unwrap();
        assert_eq!(state.1.prepared(), [b"xid"]);
    }
}
