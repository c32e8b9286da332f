//! Tables in memory alone: as others while the engine lives, and empty when it comes back.

use super::*;
use crate::options::Residence;
use proptest::prelude::*;

const MEMORY: Residence = Residence::Memory { limit_bytes: 0 };

/// A new engine with an empty table `m` in memory and one with a file, `t`, each of two trees.
fn with_tables(options: Options) -> (SimulatedFileSystem, Engine, Arc<Table>, Arc<Table>) {
    with_resident(MEMORY, options)
}

/// The same, with `m` where `residence` says.
pub(super) fn with_resident(
    residence: Residence,
    options: Options,
) -> (SimulatedFileSystem, Engine, Arc<Table>, Arc<Table>) {
    let fs = SimulatedFileSystem::new(3);
    let engine = Engine::open(Arc::new(fs.clone()), options).unwrap();
    engine.create(NewTable { residence, meta: b"meta", ..NewTable::new("m", &specs(2)) }).unwrap();
    engine.create(NewTable::new("t", &specs(2))).unwrap();
    let (memory, file) = (engine.open_table("m").unwrap(), engine.open_table("t").unwrap());
    (fs, engine, memory, file)
}

pub(super) fn sound(engine: &Engine) {
    let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

pub(super) fn files(fs: &SimulatedFileSystem) -> Vec<String> {
    use crate::file::FileSystem;
    let mut files = fs.list(std::path::Path::new("/teak")).unwrap();
    files.sort();
    files
}

#[test]
fn what_is_written_to_it_is_there_until_the_engine_goes_and_no_byte_of_it_is_written() {
    let (fs, engine, memory, _file) = with_tables(options());
    let (log, names) = (engine.shared.log.end(), files(&fs));
    put(&engine, memory.tree(0), &[("a", "1"), ("b", "2")]);
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, memory.tree(0), "c", "3");
    let savepoint = txn.savepoint();
    insert(&mut txn, memory.tree(1), "d", &"4".repeat(5000));
    insert(&mut txn, memory.tree(0), "e", "5");
    txn.rollback_to(savepoint).unwrap();
    assert!(txn.has_writes());
    txn.commit().unwrap();
    put(&engine, memory.tree(1), &[("f", &"6".repeat(5000))]);
    let mut undone = engine.begin(Isolation::Repeatable);
    let nothing = undone.savepoint();
    insert(&mut undone, memory.tree(0), "g", "7");
    undone.rollback_to(nothing).unwrap();
    assert!(!undone.has_writes());
    undone.commit().unwrap();
    expect(&engine, "m", 0, &[("a", "1"), ("b", "2"), ("c", "3")]);
    expect(&engine, "m", 1, &[("f", &"6".repeat(5000))]);
    assert_eq!(memory.tree(0).entries(), 3);
    assert!(memory.memory_bytes().unwrap() > 5000);
    assert_eq!((engine.shared.log.end(), files(&fs)), (log, names.clone()));
    engine.checkpoint().unwrap();
    sound(&engine);
    expect(&engine, "m", 0, &[("a", "1"), ("b", "2"), ("c", "3")]);
    assert!(!names.iter().any(|name| name == "s1.teak") && names.iter().any(|name| name == "s2.teak"));
    engine.close().unwrap();
    let engine = open(&fs);
    assert_eq!(engine.table_meta("m").unwrap(), b"meta");
    expect(&engine, "m", 0, &[]);
    expect(&engine, "m", 1, &[]);
    sound(&engine);
}

#[test]
fn a_transaction_over_both_kinds_is_atomic_while_the_engine_lives_and_its_lasting_part_lasts() {
    let (fs, engine, memory, file) = with_tables(options());
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, memory.tree(0), "m", "1");
    insert(&mut txn, file.tree(0), "t", "1");
    txn.commit().unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    insert(&mut txn, file.tree(0), "u", "2");
    insert(&mut txn, memory.tree(0), "n", "2");
    drop(txn);
    expect(&engine, "m", 0, &[("m", "1")]);
    expect(&engine, "t", 0, &[("t", "1")]);
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "m", 0, &[]);
    expect(&engine, "t", 0, &[("t", "1")]);
}

#[test]
fn two_phases_are_logged_if_somebody_will_ask_for_the_transaction_or_it_has_more_than_memory() {
    let (fs, engine, memory, file) = with_tables(options());
    let log = engine.shared.log.end();
    for (n, commits) in [true, false, true].into_iter().enumerate() {
        let mut txn = engine.begin(Isolation::Repeatable);
        insert(&mut txn, memory.tree(0), &format!("{n}"), "v");
        txn.prepare_what_lasts(b"server").unwrap();
        match commits {
            true => {
                txn.commit_ordered();
                expect(&engine, "m", 0, &[("0", "v"), ("2", "v")][..n / 2 + 1]);
                txn.commit().unwrap();
            }
            false => txn.rollback(),
        }
    }
    assert_eq!(engine.shared.log.end(), log);
    let mut lasting = engine.begin(Isolation::Repeatable);
    insert(&mut lasting, memory.tree(0), "lasting", "v");
    insert(&mut lasting, file.tree(0), "lasting", "v");
    lasting.prepare_what_lasts(b"lasting").unwrap();
    let mut asked_for = engine.begin(Isolation::Repeatable);
    insert(&mut asked_for, memory.tree(0), "asked for", "v");
    asked_for.prepare(b"asked for").unwrap();
    drop((lasting, asked_for));
    assert_eq!(engine.prepared().len(), 2);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.prepared(), [b"asked for".to_vec(), b"lasting".to_vec()]);
    engine.commit_prepared(b"lasting").unwrap();
    engine.commit_prepared(b"asked for").unwrap();
    expect(&engine, "t", 0, &[("lasting", "v")]);
    expect(&engine, "m", 0, &[]);
}

/// Inserts rows of a kilobyte, one transaction each, until there is no room; how many.
fn fill(engine: &Engine, tree: &Arc<Tree>, from: usize) -> usize {
    for n in from.. {
        let mut txn = engine.begin(Isolation::Repeatable);
        let key = format!("{n:06}");
        match txn.write(tree, key.as_bytes(), WriteOp::Insert(&[b'x'; 900])) {
            Ok(()) => txn.commit().unwrap(),
            Err(Error::MemoryFull { .. }) => return n,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

fn delete(engine: &Engine, tree: &Arc<Tree>, keys: std::ops::Range<usize>) {
    let mut txn = engine.begin(Isolation::Repeatable);
    keys.for_each(|n| txn.write(tree, format!("{n:06}").as_bytes(), WriteOp::Delete).unwrap());
    txn.commit().unwrap();
}

#[test]
fn a_full_memory_refuses_writes_and_takes_them_again_when_something_has_gone() {
    let (_fs, engine, memory, file) = with_tables(Options { memory_max_bytes: 2 << 20, ..options() });
    let tree = memory.tree(0);
    let filled = fill(&engine, tree, 0);
    assert!((1200..2300).contains(&filled), "{filled}");
    assert_eq!(all(&engine, tree).len(), filled);
    put(&engine, file.tree(0), &[("others", "are not concerned")]);
    // Deleted, and taken again.
    delete(&engine, tree, 0..filled / 2);
    let again = fill(&engine, tree, filled) - filled;
    assert!(again >= filled * 2 / 5, "{again} of {filled}");
    // While a snapshot sees them, what is deleted takes its place.
    let mut old = engine.begin(Isolation::Repeatable);
    old.open_snapshot();
    delete(&engine, tree, filled / 2..filled);
    assert!(fill(&engine, tree, 2 * filled) < 2 * filled + filled / 10);
    assert_eq!(read(&mut old, tree, View::Snapshot).len(), filled - filled / 2 + again);
    drop(old);
    let more = fill(&engine, tree, 4 * filled) - 4 * filled;
    assert!(more >= filled * 2 / 5, "{more} of {filled}");
    // All of it goes with a rollback.
    engine.empty("m", None).unwrap();
    drop(memory);
    let memory = engine.open_table("m").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    let rows = (0..).take_while(|n: &usize| {
        let key = format!("{n:06}");
        txn.write(memory.tree(0), key.as_bytes(), WriteOp::Insert(&[b'x'; 900])).is_ok()
    });
    let undecided = rows.count();
    assert!(undecided > filled / 2, "{undecided} of {filled}");
    txn.rollback();
    assert!(fill(&engine, memory.tree(0), 0) > filled * 4 / 5);
    engine.settings().set_memory_max_bytes(8 << 20);
    put(&engine, memory.tree(0), &[("more", "room")]);
    sound(&engine);
}

#[test]
fn a_table_with_a_limit_of_its_own_is_full_before_the_others() {
    let (fs, engine, memory, _file) = with_tables(options());
    let limited = Residence::Memory { limit_bytes: 1 << 20 };
    engine.create(NewTable { residence: limited, ..NewTable::new("small", &specs(1)) }).unwrap();
    let small = engine.open_table("small").unwrap();
    let filled = fill(&engine, small.tree(0), 0);
    assert!((500..1200).contains(&filled), "{filled}");
    put(&engine, memory.tree(0), &[("others", "are not concerned")]);
    engine.rename(Renaming::new("small", "other")).unwrap();
    let (_fs, engine) = crash(&fs, engine);
    let again = fill(&engine, engine.open_table("other").unwrap().tree(0), 0);
    assert!(again.abs_diff(filled) < 50, "{again}, {filled}");
}

#[test]
fn another_limit_counts_at_once_and_after_a_crash_whether_rows_are_there_or_not() {
    let (fs, engine, memory, _file) = with_tables(options());
    fill(&engine, memory.tree(0), 0);
    put_limit(&engine, "m", 64 << 10);
    let table = engine.open_table("m").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    let refused = txn.write(table.tree(0), b"x", WriteOp::Insert(b"y")).unwrap_err();
    assert!(matches!(refused, Error::MemoryFull { maximum, .. } if maximum == 64 << 10), "{refused}");
    txn.rollback();
    assert!(table.memory_bytes().unwrap() > 64 << 10);
    let (_fs, engine) = crash(&fs, engine);
    let filled = fill(&engine, engine.open_table("m").unwrap().tree(0), 0);
    assert!(filled < 100, "{filled}");
    put_limit(&engine, "m", 0);
    let more = fill(&engine, engine.open_table("m").unwrap().tree(0), filled);
    assert!(more > 10 * filled, "{more}, {filled}");
    // Of a table with a file it says nothing.
    put_limit(&engine, "t", 1);
    put(&engine, engine.open_table("t").unwrap().tree(0), &[("a", "1")]);
    sound(&engine);
}

fn put_limit(engine: &Engine, table: &str, bytes: u64) {
    let layout = [TreeSource::Keep(0), TreeSource::Keep(1)];
    let alteration = Alteration { memory_limit: Some(bytes), ..Alteration::new(table, &layout, b"") };
    engine.change(&[alteration.into()], &[]).unwrap();
}

#[test]
fn what_a_restart_has_taken_is_known_until_others_are_told_and_until_the_table_is_emptied_for_all() {
    let (fs, engine, memory, file) = with_tables(options());
    for part in ["p#1", "p#2"] {
        engine.create(NewTable { residence: MEMORY, ..NewTable::new(part, &specs(1)) }).unwrap();
    }
    assert!(!memory.is_untold() && !memory.has_lost_rows());
    drop((memory, file));
    let (_fs, engine) = crash(&fs, engine);
    let state = |name: &str| {
        let table = engine.open_table(name).unwrap();
        (table.is_untold(), table.has_lost_rows())
    };
    assert_eq!(
        (state("m"), state("p#1"), state("p#2"), state("t")),
        ((true, true), (true, true), (true, true), (false, false))
    );
    engine.note_told("p", "p#").unwrap();
    assert_eq!((state("m"), state("p#1"), state("p#2")), ((true, true), (false, true), (false, true)));
    // Whatever becomes of it with its rows.
    engine
        .change(
            &[Alteration::new("m", &[TreeSource::Keep(0), TreeSource::New(specs(1)[0])], b"").into()],
            &[],
        )
        .unwrap();
    engine.rename(Renaming::new("m", "n")).unwrap();
    assert_eq!(state("n"), (true, true));
    engine.note_told("n", "n#").unwrap();
    engine.create(NewTable { residence: MEMORY, ..NewTable::new("copy", &specs(1)) }).unwrap();
    assert_eq!(state("copy"), (false, false));
    engine.inherit_losses("copy", "p", "p#").unwrap();
    assert_eq!(state("copy"), (false, true));
    engine.create(NewTable { residence: MEMORY, ..NewTable::new("rebuilt", &specs(1)) }).unwrap();
    engine.change(&[Replacement { table: "copy", by: "rebuilt", counter: 1 }.into()], &[]).unwrap();
    assert_eq!(state("copy"), (false, true));
    engine.empty("copy", None).unwrap();
    assert_eq!(state("copy"), (false, false));
    sound(&engine);
}

#[test]
fn a_transaction_knows_how_many_rows_it_has_added() {
    let (_fs, engine, memory, _file) = with_tables(options());
    let tree = memory.tree(0);
    put(&engine, tree, &[("a", "1"), ("b", "2")]);
    let mut txn = engine.begin(Isolation::Repeatable);
    assert_eq!(txn.rows_added(tree), 0);
    insert(&mut txn, tree, "c", "3");
    let savepoint = txn.savepoint();
    insert(&mut txn, tree, "d", "4");
    txn.write(tree, b"a", WriteOp::Delete).unwrap();
    txn.write(tree, b"b", WriteOp::Delete).unwrap();
    assert_eq!((txn.rows_added(tree), txn.rows_added(memory.tree(1))), (0, 0));
    txn.rollback_to(savepoint).unwrap();
    assert_eq!((txn.rows_added(tree), tree.entries()), (1, 2));
    txn.commit().unwrap();
    assert_eq!(tree.entries(), 3);
}

#[test]
fn memory_of_what_was_rolled_back_overwritten_or_deleted_is_given_back_in_the_background() {
    let (_fs, engine, memory, _file) = with_tables(options());
    let tree = memory.tree(0);
    let before = memory.memory_bytes().unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    for n in 0..5000 {
        txn.append(tree, format!("{n:06}").as_bytes(), &[b'x'; 500]).unwrap();
    }
    txn.finish_writes().unwrap();
    assert!(memory.memory_bytes().unwrap() > 2_500_000);
    txn.rollback();
    engine.shared.look_after_history();
    engine.shared.look_after_history();
    let after = memory.memory_bytes().unwrap();
    assert!(after < before + (64 << 10), "{after}");
    let rows: Vec<String> = (0..20).map(|n| format!("{n:06}")).collect();
    for round in 0..100 {
        let value = format!("{round:0100}");
        let mut txn = engine.begin(Isolation::Repeatable);
        for key in &rows {
            let op = if round == 0 {
                WriteOp::Insert(value.as_bytes())
            } else {
                WriteOp::Update(value.as_bytes())
            };
            txn.write(tree, key.as_bytes(), op).unwrap();
        }
        txn.commit().unwrap();
    }
    engine.shared.look_after_history();
    assert!(memory.memory_bytes().unwrap() < after + (16 << 10));
    assert!(!tree.is_dirty());
    sound(&engine);
}

#[test]
fn rows_in_key_order_and_index_builds_go_into_it_as_blocks() {
    let (fs, engine, memory, _file) = with_tables(options());
    let log = engine.shared.log.end();
    let mut txn = engine.begin(Isolation::Repeatable);
    let rows: Vec<(String, String)> = (0..3000).map(|n| (format!("{n:06}"), format!("value {n}"))).collect();
    rows.iter()
        .for_each(|(key, value)| txn.append(memory.tree(0), key.as_bytes(), value.as_bytes()).unwrap());
    assert_eq!(all(&engine, memory.tree(0)).len(), 0);
    txn.commit().unwrap();
    assert_eq!(all(&engine, memory.tree(0)).len(), 3000);
    let mut build = engine.build_trees(&memory, &[1], 1 << 20).unwrap();
    rows.iter().for_each(|(key, value)| build.add(0, value.as_bytes(), key.as_bytes()).unwrap());
    build.finish(|_| Ok(())).unwrap();
    assert_eq!(all(&engine, memory.tree(1)).len(), 3000);
    assert_eq!((engine.shared.log.end(), memory.tree(1).entries()), (log, 3000));
    engine.checkpoint().unwrap();
    sound(&engine);
    // Another index, and one less.
    let layout = [TreeSource::Keep(0), TreeSource::New(specs(1)[0])];
    engine.change(&[Alteration::new("m", &layout, b"altered").into()], &[]).unwrap();
    let altered = engine.open_table("m").unwrap();
    put(&engine, altered.tree(1), &[("k", "v")]);
    assert_eq!(all(&engine, altered.tree(0)).len(), 3000);
    engine.checkpoint().unwrap();
    engine.drop("m", IfPrepared::Refuse).unwrap();
    engine.checkpoint().unwrap();
    sound(&engine);
    let (_fs, engine) = crash(&fs, engine);
    assert!(engine.open_table("m").is_err());
    sound(&engine);
}

/// One step of the comparison of two kinds.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Write { txn: usize, tree: usize, key: u8, value: Option<(u8, usize)> },
    Append { txn: usize, from: u8, count: u8 },
    Savepoint(usize),
    RollbackTo(usize),
    End { txn: usize, commits: bool },
    Look(usize),
    Settle,
    Checkpoint,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let txn = 0..3usize;
    let value = proptest::option::of((any::<u8>(), prop_oneof![9 => 0..200usize, 1 => 1100..3000usize]));
    prop_oneof![
        12 => (txn.clone(), 0..2usize, 0..60u8, value)
            .prop_map(|(txn, tree, key, value)| Step::Write { txn, tree, key, value }),
        1 => (txn.clone(), 60..200u8, 1..50u8).prop_map(|(txn, from, count)| Step::Append { txn, from, count }),
        2 => txn.clone().prop_map(Step::Savepoint),
        1 => txn.clone().prop_map(Step::RollbackTo),
        3 => (txn.clone(), prop::bool::weighted(0.7)).prop_map(|(txn, commits)| Step::End { txn, commits }),
        3 => txn.prop_map(Step::Look),
        1 => Just(Step::Settle),
        1 => Just(Step::Checkpoint),
    ]
}

/// A transaction that does the same to both tables, and the keys that it has written: no other writes them.
struct Both {
    txn: Transaction,
    savepoint: Option<Savepoint>,
    taken: Vec<(usize, Vec<u8>)>,
}

fn begin(engine: &Engine) -> Both {
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.open_snapshot();
    Both { txn, savepoint: None, taken: Vec::new() }
}

fn write_both(both: &mut Both, tables: [&Arc<Table>; 2], tree: usize, key: &[u8], value: Option<&[u8]>) {
    let is_there = read(&mut both.txn, tables[1].tree(tree), View::Latest).contains_key(key);
    let op = match (value, is_there) {
        (Some(value), true) => WriteOp::Update(value),
        (Some(value), false) => WriteOp::Insert(value),
        (None, true) => WriteOp::Delete,
        (None, false) => return,
    };
    for table in tables {
        both.txn.write(table.tree(tree), key, op).unwrap();
    }
    both.taken.push((tree, key.to_vec()));
}

fn is_free(open: &[Both], own: usize, tree: usize, key: &[u8]) -> bool {
    let others = open.iter().enumerate().filter(|(at, _)| *at != own);
    others.flat_map(|(_, both)| &both.taken).all(|taken| *taken != (tree, key.to_vec()))
}

fn compare(txn: &mut Transaction, tables: [&Arc<Table>; 2]) {
    for tree in 0..2 {
        for view in [View::Snapshot, View::Latest] {
            let [memory, file] = tables.map(|table| read(txn, table.tree(tree), view));
            assert_eq!(memory, file);
        }
    }
}

/// Does the same to a table of the kind `residence` and to one with a file: all transactions see the same in both.
pub(super) fn compare_kinds(steps: Vec<Step>, residence: Residence, options: Options) {
    let (_fs, engine, other, file) = with_resident(residence, options);
    let tables = [&other, &file];
    let mut open: Vec<Both> = (0..3).map(|_| begin(&engine)).collect();
    for step in steps {
        match step {
            Step::Write { txn, tree, key, value } => {
                let key = [b'k', key];
                let bytes = value.map(|(byte, length)| vec![byte; length]);
                if is_free(&open, txn, tree, &key) {
                    write_both(&mut open[txn], tables, tree, &key, bytes.as_deref());
                }
            }
            Step::Append { txn, from, count } => {
                for n in from..=from.saturating_add(count) {
                    let key = [b'k', n, n];
                    let mut latest = read(&mut open[txn].txn, file.tree(0), View::Latest);
                    if is_free(&open, txn, 0, &key) && latest.remove(&key[..]).is_none() {
                        for table in tables {
                            open[txn].txn.append(table.tree(0), &key, &[n; 100]).unwrap();
                        }
                        open[txn].taken.push((0, key.to_vec()));
                    }
                }
            }
            Step::Savepoint(txn) => open[txn].savepoint = Some(open[txn].txn.savepoint()),
            Step::RollbackTo(txn) => {
                if let Some(savepoint) = open[txn].savepoint {
                    open[txn].txn.rollback_to(savepoint).unwrap();
                }
            }
            Step::End { txn, commits } => {
                let both = std::mem::replace(&mut open[txn], begin(&engine));
                match commits {
                    true => both.txn.commit().unwrap(),
                    false => both.txn.rollback(),
                }
                open[txn] = begin(&engine);
            }
            Step::Look(txn) => compare(&mut open[txn].txn, tables),
            Step::Settle => engine.shared.look_after_history(),
            Step::Checkpoint => engine.checkpoint().unwrap(),
        }
    }
    open.iter_mut().for_each(|both| compare(&mut both.txn, tables));
    drop(open);
    compare(&mut engine.begin(Isolation::Repeatable), tables);
    sound(&engine);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 48 }))]

    #[test]
    fn both_kinds_show_the_same_to_every_transaction(steps in prop::collection::vec(step(), 1..250)) {
        compare_kinds(steps, MEMORY, options());
    }
}
