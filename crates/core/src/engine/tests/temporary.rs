//! Temporary tables: nothing of them is logged or waited for, and nothing of them is left.

use super::in_memory::{compare_kinds, files, sound, step, with_resident};
use super::*;
use crate::options::Residence;
use proptest::prelude::*;

const TEMPORARY: Residence = Residence::Temporary { limit_bytes: None };
const IN_MEMORY: Residence = Residence::Temporary { limit_bytes: Some(0) };

/// Little memory: most leaves of the table below leave it.
fn small() -> Options {
    Options { cache_bytes: 256 << 10, ..options() }
}

fn key(n: usize) -> String {
    // In no order.
    format!("{:06}", n * 7919 % 100_003)
}

/// Rows of half a kilobyte, one in fifty of 5000 bytes, a transaction for each hundred.
fn fill(engine: &Engine, tree: &Arc<Tree>, rows: std::ops::Range<usize>) -> Result<()> {
    for hundred in rows.clone().step_by(100) {
        let mut txn = engine.begin(Isolation::Repeatable);
        for n in hundred..rows.end.min(hundred + 100) {
            let value = n.to_string().repeat(if n % 50 == 0 { 1500 } else { 130 });
            txn.write(tree, key(n).as_bytes(), WriteOp::Insert(value.as_bytes()))?;
        }
        txn.commit()?;
    }
    Ok(())
}

#[test]
fn definition_and_rows_cost_no_write_and_a_restart_finds_nothing() {
    for residence in [TEMPORARY, IN_MEMORY] {
        let fs = SimulatedFileSystem::new(5);
        let engine = open(&fs);
        let (log, operations, names) = (engine.shared.log.end(), fs.operations(), files(&fs));
        engine.create(NewTable { residence, meta: b"meta", ..NewTable::new("m", &specs(2)) }).unwrap();
        let table = engine.open_table("m").unwrap();
        put(&engine, table.tree(0), &[("a", "1"), ("b", "2")]);
        let mut txn = engine.begin(Isolation::Repeatable);
        insert(&mut txn, table.tree(0), "c", "3");
        let savepoint = txn.savepoint();
        insert(&mut txn, table.tree(1), "d", &"4".repeat(5000));
        txn.rollback_to(savepoint).unwrap();
        txn.set_counter(&table, 7);
        txn.commit().unwrap();
        engine.shared.look_after_history();
        expect(&engine, "m", 0, &[("a", "1"), ("b", "2"), ("c", "3")]);
        engine
            .change(
                &[Alteration::new("m", &[TreeSource::Keep(0), TreeSource::New(specs(1)[0])], b"altered")
                    .into()],
                &[],
            )
            .unwrap();
        engine.rename(Renaming::new("m", "n")).unwrap();
        assert_eq!(engine.table_meta("n").unwrap(), b"altered");
        expect(&engine, "n", 0, &[("a", "1"), ("b", "2"), ("c", "3")]);
        engine.empty("n", None).unwrap();
        expect(&engine, "n", 0, &[]);
        engine.create(NewTable { residence, ..NewTable::new("o", &specs(1)) }).unwrap();
        engine.drop("o", IfPrepared::Refuse).unwrap();
        assert!(matches!(engine.open_table("o"), Err(Error::NoSuchTable(_))));
        put(&engine, engine.open_table("n").unwrap().tree(1), &[("e", "5")]);
        assert!(engine.table_names("").unwrap().is_empty());
        assert_eq!((engine.shared.log.end(), fs.operations()), (log, operations));
        sound(&engine);
        engine.checkpoint().unwrap();
        sound(&engine);
        expect(&engine, "n", 1, &[("e", "5")]);
        assert_eq!(files(&fs), names);
        drop((table, engine));
        for fs in [fs.crash(), fs.kill()] {
            let engine = open(&fs);
            assert!(matches!(engine.open_table("n"), Err(Error::NoSuchTable(_))));
            sound(&engine);
            engine.create(NewTable { residence, ..NewTable::new("n", &specs(1)) }).unwrap();
            engine.close().unwrap();
            drop(engine);
            assert!(matches!(open(&fs).open_table("n"), Err(Error::NoSuchTable(_))));
        }
    }
}

#[test]
fn a_name_is_that_of_a_temporary_table_or_of_another() {
    let (_fs, engine, _table) = with_table(1);
    engine.create(NewTable { residence: TEMPORARY, ..NewTable::new("m", &specs(1)) }).unwrap();
    for (new, residence) in [("t", TEMPORARY), ("m", Residence::File), ("m", TEMPORARY)] {
        let refused = engine.create(NewTable { residence, ..NewTable::new(new, &specs(1)) });
        assert!(matches!(refused, Err(Error::TableExists(_))));
    }
    assert!(matches!(engine.rename(Renaming::new("m", "t")), Err(Error::TableExists(_))));
    assert!(matches!(engine.rename(Renaming::new("t", "m")), Err(Error::TableExists(_))));
    sound(&engine);
}

#[test]
fn what_memory_has_no_room_for_goes_to_a_file_that_nobody_syncs_and_comes_back() {
    let (fs, engine, table, _file) = with_resident(TEMPORARY, small());
    let (log, syncs, names) = (engine.shared.log.end(), fs.syncs(), files(&fs));
    let tree = table.tree(0);
    fill(&engine, tree, 0..4000).unwrap();
    engine.shared.look_after_history();
    let (cache, spill) = (&engine.shared.context.cache, &engine.shared.context.spill);
    assert!(cache.used() < 512 << 10, "{}", cache.used());
    assert!(spill.used_bytes() > 256 << 10, "{}", spill.used_bytes());
    // What was read and not written is not written again.
    let rows = all(&engine, tree);
    let writes = fs.writes();
    assert_eq!((rows.len(), all(&engine, tree) == rows), (4000, true));
    assert_eq!(fs.writes(), writes);
    let mut old = engine.begin(Isolation::Repeatable);
    old.open_snapshot();
    let mut txn = engine.begin(Isolation::Repeatable);
    for n in (0..4000).step_by(3) {
        txn.write(tree, key(n).as_bytes(), WriteOp::Delete).unwrap();
    }
    for n in (1..4000).step_by(3) {
        txn.write(tree, key(n).as_bytes(), WriteOp::Update(b"new")).unwrap();
    }
    txn.commit().unwrap();
    engine.shared.look_after_history();
    let now = all(&engine, tree);
    assert!(now.len() == 2666 && now[key(1).as_bytes()] == b"new");
    assert!(read(&mut old, tree, View::Snapshot) == rows);
    drop(old);
    sound(&engine);
    assert_eq!((engine.shared.log.end(), fs.syncs(), files(&fs)), (log, syncs, names.clone()));
    engine.checkpoint().unwrap();
    assert!(all(&engine, tree) == now);
    engine.drop("m", IfPrepared::Refuse).unwrap();
    drop(table);
    assert_eq!(engine.shared.context.spill.used_bytes(), 0, "space is given back");
    assert_eq!(files(&fs), names);
}

#[test]
fn space_of_what_was_deleted_is_used_again() {
    let (_fs, engine, table, _file) = with_resident(TEMPORARY, small());
    let tree = table.tree(0);
    let mut used = Vec::new();
    for _ in 0..6 {
        fill(&engine, tree, 0..2000).unwrap();
        let mut txn = engine.begin(Isolation::Repeatable);
        (0..2000).for_each(|n| txn.write(tree, key(n).as_bytes(), WriteOp::Delete).unwrap());
        txn.commit().unwrap();
        engine.shared.look_after_history();
        used.push(engine.shared.context.spill.used_bytes());
    }
    assert!(used[5] < used[0] * 2, "{used:?}");
    sound(&engine);
}

#[test]
fn rows_in_key_order_of_one_transaction_may_be_more_than_memory_and_are_undone() {
    let (fs, engine, table, _file) = with_resident(TEMPORARY, small());
    let (log, syncs) = (engine.shared.log.end(), fs.syncs());
    for commits in [false, true] {
        let mut txn = engine.begin(Isolation::Repeatable);
        for n in 0..5000 {
            txn.append(table.tree(0), format!("{n:06}").as_bytes(), &[n as u8; 300]).unwrap();
        }
        txn.finish_writes().unwrap();
        assert_eq!(read(&mut txn, table.tree(0), View::Latest).len(), 5000);
        engine.shared.look_after_history();
        match commits {
            true => txn.commit().unwrap(),
            false => txn.rollback(),
        }
        engine.shared.look_after_history();
        assert_eq!(all(&engine, table.tree(0)).len(), if commits { 5000 } else { 0 });
        sound(&engine);
    }
    assert_eq!((engine.shared.log.end(), fs.syncs()), (log, syncs));
}

#[test]
fn its_file_is_paid_for_by_the_budget_of_temporary_data() {
    let (_fs, engine, table, file) = with_resident(TEMPORARY, small());
    engine.settings().set_spill_max_bytes(512 << 10);
    let refused = (0..200).find_map(|n| fill(&engine, table.tree(0), n * 100..n * 100 + 100).err());
    assert!(matches!(refused, Some(Error::SpillFull { .. })), "{refused:?}");
    assert!(engine.shared.context.spill.used_bytes() <= 512 << 10);
    // What was committed before is there.
    let rows = all(&engine, table.tree(0)).len();
    assert!(rows > 500 && rows.is_multiple_of(100), "{rows}");
    engine.drop("m", IfPrepared::Refuse).unwrap();
    drop(table);
    put(&engine, file.tree(0), &[("others", "go on")]);
    sound(&engine);
}

#[test]
fn a_transaction_over_a_temporary_table_and_another_is_atomic_and_its_lasting_part_lasts() {
    let (fs, engine, temporary, file) = with_resident(TEMPORARY, options());
    for (n, commits) in [true, false].into_iter().enumerate() {
        let mut txn = engine.begin(Isolation::Repeatable);
        insert(&mut txn, temporary.tree(0), &n.to_string(), "v");
        insert(&mut txn, file.tree(0), &n.to_string(), "v");
        if commits {
            txn.commit().unwrap();
        }
    }
    expect(&engine, "m", 0, &[("0", "v")]);
    expect(&engine, "t", 0, &[("0", "v")]);
    let mut prepared = engine.begin(Isolation::Repeatable);
    insert(&mut prepared, temporary.tree(0), "prepared", "v");
    insert(&mut prepared, file.tree(0), "prepared", "v");
    prepared.prepare(b"x").unwrap();
    drop(prepared);
    // The session goes, and its table with it.
    assert!(matches!(engine.drop("m", IfPrepared::Refuse), Err(Error::Undecided { .. })));
    engine.drop("m", IfPrepared::Ignore).unwrap();
    drop(temporary);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.prepared(), [b"x".to_vec()]);
    engine.commit_prepared(b"x").unwrap();
    expect(&engine, "t", 0, &[("0", "v"), ("prepared", "v")]);
    sound(&engine);
}

#[test]
fn a_snapshot_from_before_sees_the_table_of_its_own_session() {
    let (_fs, engine, _file) = with_table(2);
    let mut session = engine.begin(Isolation::Repeatable);
    session.open_snapshot();
    engine.create(NewTable { residence: TEMPORARY, ..NewTable::new("m", &specs(1)) }).unwrap();
    let table = engine.open_table("m").unwrap();
    insert(&mut session, table.tree(0), "own", "row");
    assert_eq!(read(&mut session, table.tree(0), View::Snapshot).len(), 1);
    session.commit().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 48 }))]

    #[test]
    fn a_temporary_table_shows_the_same_as_another(
        steps in prop::collection::vec(step(), 1..250),
        cache_bytes in prop_oneof![Just(16u64 << 10), Just(8 << 20)],
    ) {
        compare_kinds(steps, TEMPORARY, Options { cache_bytes, ..options() });
    }
}
