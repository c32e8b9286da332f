//! Checks of a table's files and of its indexes, and what becomes of damaged trees.

use super::*;
use crate::checkpoint::{Capture, Pace};
use crate::file::{FileSystem, OpenMode};

fn key(n: u32) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

/// Rows in tree 0; in tree 1 an entry for each, in the opposite order.
fn fill(engine: &Engine, table: &Table, rows: u32) {
    let mut txn = engine.begin(Isolation::Repeatable);
    for n in 0..rows {
        txn.write(table.tree(0), &key(n), WriteOp::Insert(&[n as u8; 60])).unwrap();
        txn.write(table.tree(1), &key(u32::MAX - n), WriteOp::Insert(&key(n))).unwrap();
    }
    txn.commit().unwrap();
}

/// The entry that a row makes.
fn make(row: &[u8], _: &[u8], feed: &mut Feed) -> Result<()> {
    let n = u32::from_be_bytes(row.try_into().unwrap());
    feed.add(0, &key(u32::MAX - n), &key(n))
}

fn counts(engine: &Engine, table: &Arc<Table>, txn: &mut Transaction) -> IndexCount {
    let mut check = engine.compare_trees(table, &[1], None);
    check.feed(txn, || Ok(make), |_| Ok(())).unwrap();
    check.sums(txn, |_| Ok(())).unwrap()[0]
}

fn differences(engine: &Engine, table: &Arc<Table>) -> Vec<String> {
    let mut txn = engine.begin(Isolation::Repeatable);
    let mut check = engine.compare_trees(table, &[1], Some(1));
    check.feed(&mut txn, || Ok(make), |_| Ok(())).unwrap();
    let mut found = Vec::new();
    let note = |_, difference: Difference<'_>| {
        let (kind, key) = match difference {
            Difference::Missing { key, .. } => ("missing", key),
            Difference::Unexpected { key, .. } => ("unexpected", key),
            Difference::Other { key, .. } => ("other", key),
        };
        found.push(format!("{kind} {}", u32::MAX - u32::from_be_bytes(key.try_into().unwrap())));
        Ok(true)
    };
    check.differences(&mut txn, note, |_| Ok(())).unwrap();
    found
}

#[test]
fn an_index_is_compared_with_the_rows_of_one_snapshot_entry_by_entry() {
    let (_fs, engine, table) = with_table(1);
    fill(&engine, &table, 3000);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.open_snapshot();
    let mut changes = engine.begin(Isolation::Repeatable);
    for (n, op) in [(70, WriteOp::Delete), (2000, WriteOp::Update(b"abcd")), (5000, WriteOp::Insert(b""))] {
        changes.write(table.tree(1), &key(u32::MAX - n), op).unwrap();
    }
    changes.commit().unwrap();
    // The snapshot is older than the changes.
    let count = counts(&engine, &table, &mut txn);
    assert_eq!((count.wanted, count.found, count.equal), (3000, 3000, true));
    let count = counts(&engine, &table, &mut engine.begin(Isolation::Repeatable));
    assert_eq!((count.wanted, count.found, count.equal), (3000, 3000, false));
    assert_eq!(differences(&engine, &table), ["unexpected 5000", "other 2000", "missing 70"]);
}

#[test]
fn checks_of_structures_and_files_find_nothing_in_a_sound_engine_and_what_was_damaged() {
    let (fs, engine, table) = with_table(2);
    fill(&engine, &table, 3000);
    engine.checkpoint().unwrap();
    let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
    let node = table.tree(1).find_leaf(&key(u32::MAX - 1500)).unwrap();
    let at = *node.leaf().unwrap().latch().copies.durable().unwrap().image.extent.address();
    drop((node, table));
    engine.close().unwrap();
    drop(engine);
    fs.open(std::path::Path::new("/teak/s1.teak"), OpenMode::Existing)
        .unwrap()
        .write_at(at.offset, &[0xee; 8])
        .unwrap();
    let engine = open(&fs);
    let findings = engine.check_files(&mut |_| Ok(())).unwrap();
    assert!(findings.iter().any(|finding| finding.offset == Some(at.offset)), "{findings}");
    let table = engine.open_table("t").unwrap();
    assert!(matches!(engine.check_table(&table), Err(Error::Corrupt { .. })));
    // Another tree takes the place of the damaged one, as in a repair: the next checkpoints must not stumble over it.
    drop(table);
    engine
        .change(
            &[Alteration::new("t", &[TreeSource::Keep(0), TreeSource::New(specs(1)[0])], b"meta").into()],
            &[],
        )
        .unwrap();
    engine.checkpoint().unwrap();
    let table = engine.open_table("t").unwrap();
    engine.check_table(&table).unwrap();
    assert_eq!(all(&engine, table.tree(0)).len(), 3000);
}

#[test]
fn a_tree_that_goes_while_a_checkpoint_writes_it_leaves_no_space_behind() {
    for replaced in [false, true] {
        let (_fs, engine, table) = with_table(3);
        fill(&engine, &table, 3000);
        engine.checkpoint().unwrap();
        let change = |from: u32| {
            let mut txn = engine.begin(Isolation::Repeatable);
            for n in (from..3000).step_by(100) {
                txn.write(table.tree(1), &key(u32::MAX - n), WriteOp::Update(b"changed")).unwrap();
            }
            txn.commit().unwrap();
        };
        change(0);
        // A checkpoint under way, which has the tree, but not what is committed from now on.
        let shared = &engine.shared;
        let capture = || {
            let capture = shared.capture(false);
            change(50);
            let layout = [TreeSource::Keep(0), TreeSource::New(specs(1)[0])];
            engine
                .change(&[Alteration::new("t", &layout[..1 + usize::from(replaced)], b"meta").into()], &[])
                .unwrap();
            Some(capture)
        };
        let run =
            shared.care.checkpointer.run(&Pace { writers: &|| 1, files: 1 }, capture, |capture, outcome| {
                shared.leave_to_the_next(capture, outcome)
            });
        let (capture, leftover) = run.unwrap().unwrap();
        assert!(leftover.is_none());
        shared.checkpoint_done(capture);
        for _ in 0..2 {
            engine.checkpoint().unwrap();
            let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
            assert!(findings.is_empty(), "{findings}");
        }
    }
}

#[test]
fn what_was_published_while_a_checkpoint_ran_is_in_the_next_however_soon_that_begins() {
    let (fs, engine, table) = with_table(5);
    put(&engine, table.tree(0), &[("a", "1")]);
    let shared = &engine.shared;
    let capture = || {
        let capture = shared.capture(false);
        put(&engine, table.tree(0), &[("b", "2")]);
        // As if the commit had found the mark that the capture was just taking.
        assert_eq!(shared.data.dirty.take().len(), 1);
        Some(capture)
    };
    let pace = Pace { writers: &|| 1, files: 1 };
    let run = shared.care.checkpointer.run(&pace, capture, |capture, outcome| {
        shared.leave_to_the_next(capture, outcome);
    });
    // The next one, before whoever made the first has put anything in order.
    engine.checkpoint().unwrap();
    drop(run);
    drop(table);
    let (_, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    assert_eq!(all(&engine, table.tree(0)).len(), 2);
    assert!(engine.check_everything(&mut |_| Ok(())).unwrap().is_empty());
}

#[test]
fn a_count_that_lacks_what_its_image_has_is_written_again_by_the_next_checkpoint() {
    let (fs, engine, table) = with_table(6);
    put(&engine, table.tree(0), &[("a", "1")]);
    engine.checkpoint().unwrap();
    let (shared, before) = (&engine.shared, engine.shared.log.end());
    put(&engine, table.tree(0), &[("b", "2")]);
    // As if the commit were published between the look at the counts and T.
    let capture = || {
        let mut capture = shared.capture(false);
        capture.trees.iter_mut().for_each(|image| image.entries -= 1);
        (capture.replay_from, capture.counted.common.before) = (before, before);
        Some(capture)
    };
    let leave = |capture: &mut Capture, outcome| shared.leave_to_the_next(capture, outcome);
    let run = shared.care.checkpointer.run(&Pace { writers: &|| 1, files: 1 }, capture, leave);
    assert!(run.is_some_and(|run| run.is_ok()));
    engine.checkpoint().unwrap();
    assert!(!table.tree(0).awaits_checkpoint());
    drop(table);
    let (_, engine) = crash(&fs, engine);
    assert!(engine.check_everything(&mut |_| Ok(())).unwrap().is_empty());
    assert_eq!(engine.open_table("t").unwrap().tree(0).entries(), 2);
}

#[test]
fn a_table_stays_open_until_a_tree_that_it_lost_has_given_back_its_space() {
    let (_fs, engine, table) = with_table(4);
    fill(&engine, &table, 3000);
    engine.checkpoint().unwrap();
    drop(table);
    // The tree goes while a checkpoint runs, at the end of which nobody uses the table.
    let shared = &engine.shared;
    put(&engine, engine.open_table("t").unwrap().tree(0), &[("a", "1")]);
    let capture = || {
        let capture = shared.capture(false);
        engine.change(&[Alteration::new("t", &[TreeSource::Keep(0)], b"meta").into()], &[]).unwrap();
        Some(capture)
    };
    let run =
        shared.care.checkpointer.run(&Pace { writers: &|| 1, files: 1 }, capture, |capture, outcome| {
            shared.leave_to_the_next(capture, outcome)
        });
    let (capture, leftover) = run.unwrap().unwrap();
    assert!(leftover.is_none());
    shared.checkpoint_done(capture);
    put(&engine, engine.open_table("t").unwrap().tree(0), &[("b", "2")]);
    engine.checkpoint().unwrap();
    let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
}

#[test]
fn rows_about_tables_that_could_not_be_recovered_are_known() {
    let (_fs, engine, table) = with_table(5);
    put(&engine, table.tree(0), &[("a", "1")]);
    let contained = engine.shared.care.damaged.lock().contained.common.clone();
    engine.shared.care.damaged.lock().spaces.insert(table.space().id(), contained);
    engine.checkpoint().unwrap();
    let findings = engine.check_files(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
}
