//! Tables that are written anew while others write, and take the place of the old ones.
//!
//! The old rows are those of the online builds' tests: two numbers, of which the second is unique. In the new table
//! that is the key of the rows, and tree 1 has an entry for the first.

use super::online::{insert_rows, key, table, Writers};
use super::*;
use crate::file::Fault;

fn entries(at: &[u8], row: &[u8]) -> [(Vec<u8>, Vec<u8>); 2] {
    let (first, second) = row.split_at(8);
    [(second.to_vec(), [first, at].concat()), ([first, second].concat(), Vec::new())]
}

fn take_apart(key: &[u8], row: &[u8], feed: &mut Feed) -> Result<()> {
    let parts = entries(key, row);
    parts.iter().enumerate().try_for_each(|(part, (key, value))| feed.add(part, key, value))
}

fn begin(engine: &Engine, table: &Arc<Table>) -> OnlineBuild {
    engine.create(NewTable { meta: b"new", ..NewTable::new("new", &specs(2)) }).unwrap();
    let into = engine.open_table("new").unwrap();
    engine.build_online(table, &into, &[0, 1], 1 << 20, 7).unwrap()
}

fn build(engine: &Engine, online: &OnlineBuild, table: &Table) {
    let mut build = online.build().unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    build.feed(&mut txn, table.tree(0), || Ok(take_apart), |_| Ok(())).unwrap();
    build.finish(|_| Ok(())).unwrap();
}

fn replace(engine: &Engine, counter: u64) -> Result<()> {
    engine.change(&[Replacement { table: "t", by: "new", counter }.into()], &[])
}

/// The new table has what the old rows say.
fn check(engine: &Engine, old: &Rows, what: &str) {
    let table = engine.open_table("t").unwrap();
    assert_eq!(table.meta(), b"new", "{what}");
    for part in 0..2 {
        let wanted: Rows = old.iter().map(|(key, row)| entries(key, row)[part].clone()).collect();
        assert_eq!(all(engine, table.tree(part)), wanted, "{what}, tree {part}");
    }
    engine.check_table(&table).unwrap();
    assert_eq!(engine.table_names("").unwrap(), ["t"], "{what}");
}

#[test]
fn whatever_is_written_meanwhile_the_new_table_has_the_rows() {
    let mut finished = 0;
    'seeds: for seed in 0..40 {
        let (fs, engine, table) = table(seed);
        insert_rows(&engine, &table, 0..seed * 7);
        let mut online = begin(&engine, &table);
        let followed = table.clone();
        let mut writers = Writers::new(&engine, &followed, seed);
        (0..writers.random.below(100)).for_each(|_| writers.step());
        build(&engine, &online, &table);
        for _ in 0..writers.random.below(5) {
            (0..writers.random.below(100)).for_each(|_| writers.step());
            match online.catch_up(take_apart, |_| Ok(())) {
                Ok(_) => {}
                // More rows with numbers of others than may wait: that is the end of the build.
                Err(Error::DuplicateEntry { .. }) => continue 'seeds,
                Err(error) => panic!("seed {seed}: {error}"),
            }
            if writers.random.below(3) == 0 {
                engine.checkpoint().unwrap();
            }
        }
        writers.end();
        writers.make_unique();
        match online.catch_up(take_apart, |_| Ok(())) {
            Ok(_) => online.finish().unwrap(),
            Err(Error::DuplicateEntry { .. }) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        let old = all(&engine, table.tree(0));
        drop(writers);
        drop((online, followed, table));
        replace(&engine, 70 + seed).unwrap();
        check(&engine, &old, &format!("seed {seed}"));
        let (fs, engine) = crash(&fs, engine);
        check(&engine, &old, &format!("seed {seed}, after a crash"));
        engine.checkpoint().unwrap();
        let (_fs, engine) = crash(&fs, engine);
        check(&engine, &old, &format!("seed {seed}, after a checkpoint and a crash"));
        assert_eq!(engine.open_table("t").unwrap().counter(), 70 + seed);
        finished += 1;
    }
    assert!(finished > 10, "{finished} rebuilds came to their end");
}

#[test]
fn a_snapshot_from_before_the_end_does_not_see_the_new_table() {
    let (_fs, engine, table) = table(1);
    insert_rows(&engine, &table, 0..300);
    let mut online = begin(&engine, &table);
    build(&engine, &online, &table);
    let mut old = engine.begin(Isolation::Repeatable);
    assert_eq!(read(&mut old, table.tree(0), View::Snapshot).len(), 300);
    insert_rows(&engine, &table, 300..301);
    online.catch_up(take_apart, |_| Ok(())).unwrap();
    online.finish().unwrap();
    let rows = all(&engine, table.tree(0));
    drop((online, table));
    replace(&engine, 0).unwrap();
    engine.checkpoint().unwrap();
    let table = engine.open_table("t").unwrap();
    let outcome = Cursor::new(table.tree(0).clone()).seek(&mut old, View::Snapshot, Seek::AtOrAfter, b"");
    assert!(matches!(outcome, Err(Error::TableChanged)), "{outcome:?}");
    check(&engine, &rows, "for a new one");
}

#[test]
fn a_prepared_transaction_keeps_the_old_table() {
    let (_fs, engine, table) = table(1);
    insert_rows(&engine, &table, 0..3);
    engine.create(NewTable { meta: b"new", ..NewTable::new("new", &specs(2)) }).unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.write(table.tree(0), &key(1), WriteOp::Delete).unwrap();
    txn.prepare(b"xid").unwrap();
    drop(txn);
    assert!(matches!(replace(&engine, 0), Err(Error::Undecided { .. })));
    engine.rollback_prepared(b"xid").unwrap();
    drop(table);
    replace(&engine, 0).unwrap();
    check(&engine, &Rows::new(), "an empty table");
}

#[test]
fn a_power_cut_leaves_all_tables_of_one_statement_new_or_none() {
    let (mut cut, mut finished) = (0, false);
    while !finished {
        let (fs, engine, table) = with_table(cut + 1);
        let old = [("a", "old"), ("b", "old")];
        put(&engine, table.tree(0), &old);
        drop(table);
        engine.create(NewTable { meta: b"meta", ..NewTable::new("u", &specs(1)) }).unwrap();
        for (name, place) in [("new t", "t"), ("new u", "u")] {
            engine.create(NewTable { meta: b"new", ..NewTable::new(name, &specs(2)) }).unwrap();
            put(&engine, engine.open_table(name).unwrap().tree(0), &[(place, "new")]);
        }
        fs.fail_after(cut, Fault::PowerCut);
        let both = [("t", "new t"), ("u", "new u")].map(|(table, by)| Replacement { table, by, counter: 5 });
        let wrong = [both[0], Replacement { by: "nobody", ..both[1] }];
        assert!(engine.change(&wrong.map(TableChange::from), &[]).is_err());
        finished = engine.change(&both.map(TableChange::from), &[]).is_ok();
        let (fs, engine) = crash(&fs, engine);
        let metas = ["t", "u"].map(|name| engine.table_meta(name).unwrap());
        assert!(metas[0] == metas[1] && (!finished || metas[0] == b"new"), "cut {cut}: {metas:?}");
        match metas[0] == b"new" {
            true => {
                expect(&engine, "t", 0, &[("t", "new")]);
                expect(&engine, "u", 0, &[("u", "new")]);
                assert_eq!(engine.open_table("u").unwrap().counter(), 5);
                assert_eq!(engine.table_names("").unwrap(), ["t", "u"]);
            }
            false => expect(&engine, "t", 0, &old),
        }
        engine.checkpoint().unwrap();
        super::ddl::no_orphans(&fs, &engine);
        cut += 1;
    }
    assert!(cut > 1, "it consists of more than {cut} operations");
}
