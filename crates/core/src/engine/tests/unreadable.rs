//! Files that cannot be read any more while the engine runs: one table is closed, and all that is done for the others
//! goes on.

use super::damage::{contents, put_back, Told};
use super::*;
use crate::checkpoint::Failure;
use crate::options::Residence;
use crate::tree::Care;
use crate::WaitRequest;

const ROWS: u64 = 3000;
/// Stretches of the file that are damaged, one after the other: leaves of both trees, nodes above them, large values.
const PARTS: usize = 12;
/// Bytes that a file begins with, before its blocks.
const HEADER: usize = 4096;

fn number(i: u64) -> Vec<u8> {
    format!("{i:06}").into_bytes()
}

/// What no compression makes smaller.
fn value(i: u64) -> Vec<u8> {
    (0..40u64)
        .flat_map(|at| (i * 0x9E37_79B9 + at).wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes())
        .collect()
}

/// A table of two trees, the second with every third key, and with a few large values.
fn fill(engine: &Engine, name: &str) {
    let table = engine.open_table(name).unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for i in 0..ROWS {
        txn.write(table.tree(0), &number(i), WriteOp::Insert(&value(i))).unwrap();
        if i % 3 == 0 {
            let large = value(i).repeat(if i % 150 == 0 { 9 } else { 1 });
            txn.write(table.tree(1), &number(i), WriteOp::Insert(&large)).unwrap();
        }
    }
    txn.commit().unwrap();
}

/// `t` and `other` on disk, and nothing of them in memory but the first leaf of each tree, and what leads there.
fn cold(seed: u64, checkpoint_log_bytes: u64) -> (SimulatedFileSystem, Engine, Arc<Told>) {
    let (fs, engine, table) = with_table(seed);
    engine.create(NewTable::new("other", &specs(2))).unwrap();
    ["t", "other"].into_iter().for_each(|name| fill(&engine, name));
    drop(table);
    engine.close().unwrap();
    drop(engine);
    let told = Arc::new(Told::default());
    let options = Options { observer: told.clone(), checkpoint_log_bytes, ..options() };
    let engine = Engine::open(Arc::new(fs.clone()), options).unwrap();
    for name in ["t", "other"] {
        let table = engine.open_table(name).unwrap();
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for tree in 0..2 {
            assert!(Cursor::new(table.tree(tree).clone()).get(&mut txn, View::Latest, &number(0)).unwrap());
        }
    }
    (fs, engine, told)
}

/// Writes without a look at what is there; whether it was committed.
fn write(engine: &Engine, table: &Arc<Table>, tree: usize, i: u64, value: Option<&[u8]>) -> Result<()> {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.wait_for_checkpoint(&WaitRequest::no_wait())?;
    let op = value.map_or(WriteOp::Delete, WriteOp::Update);
    txn.write(table.tree(tree), &number(i), op)?;
    txn.commit()
}

fn path_of(table: &Table) -> String {
    table.path().to_str().unwrap().to_string()
}

/// Nothing is written in smaller pieces.
const PIECE: usize = 32;

fn stretch(whole: &[u8], part: usize) -> std::ops::Range<usize> {
    let pieces = (whole.len() - HEADER) / PIECE;
    HEADER + part * pieces / PARTS * PIECE..HEADER + (part + 1) * pieces / PARTS * PIECE
}

fn damage_part(fs: &SimulatedFileSystem, path: &str, whole: &[u8], part: usize) {
    let mut damaged = whole.to_vec();
    damaged[stretch(whole, part)].iter_mut().for_each(|byte| *byte ^= 0x55);
    put_back(fs, path, &damaged);
}

fn damage_all(fs: &SimulatedFileSystem, path: &str) {
    let mut damaged = contents(fs, path);
    damaged[HEADER..].iter_mut().for_each(|byte| *byte ^= 0x55);
    put_back(fs, path, &damaged);
}

#[test]
fn a_table_that_a_checkpoint_cannot_read_is_closed_and_the_others_go_on_whichever_part_is_damaged() {
    let mut closed = 0;
    for part in 0..PARTS {
        let (fs, engine, told) = cold(20 + part as u64, 16 << 10);
        let (table, other) = (engine.open_table("t").unwrap(), engine.open_table("other").unwrap());
        let path = path_of(&table);
        let whole = contents(&fs, &path);
        damage_part(&fs, &path, &whole, part);
        // What is told is told of this table. What is not there is not told.
        let mut expected = all_of(&engine, &other);
        let mut written = Rows::new();
        // Of few changes of a leaf the checkpoint does not read the block, of many it does.
        let step = if part % 4 == 0 { 7 } else { 1 };
        for i in (0..ROWS).step_by(step) {
            match write(&engine, &table, 0, i, Some(b"new")) {
                Ok(()) => _ = written.insert(number(i), b"new".to_vec()),
                Err(error) => assert!(error.is_damage_of(table.path()), "{error}"),
            }
            // Checkpoints are due all the time, as the log may have 16 KiB.
            write(&engine, &other, 0, i, Some(b"new")).unwrap();
            expected.insert(number(i), b"new".to_vec());
        }
        engine.checkpoint().unwrap();
        assert_eq!(engine.statistics().failed_checkpoints, 0);
        assert_eq!(all_of(&engine, &other), expected);
        if told.has("table 't' is closed") {
            closed += 1;
            let error = engine.open_table("t").err().unwrap();
            assert!(error.is_damage_of(table.path()), "{error}");
            let refused = write(&engine, &table, 0, 0, Some(b"late")).unwrap_err();
            assert!(refused.is_damage_of(table.path()), "{refused}");
        }
        drop((table, other));
        match part % 2 {
            0 => engine.close().unwrap(),
            _ => drop(engine),
        }
        // Readable again, it has all that was committed.
        let fs = fs.kill();
        put_back(&fs, &path, &mended(&whole, &contents(&fs, &path), part));
        let engine = open(&fs);
        let table = engine.open_table("t").unwrap();
        let rows = all_of(&engine, &table);
        assert_eq!(rows.len() as u64, ROWS);
        assert!(written.iter().all(|(key, value)| rows.get(key) == Some(value)), "part {part}");
        assert_eq!(all_of(&engine, &engine.open_table("other").unwrap()), expected);
        assert_eq!(table.tree(0).entries(), ROWS);
        engine.checkpoint().unwrap();
        assert!(engine.shared.system.counted_apart().unwrap().is_empty());
    }
    assert!(closed >= PARTS / 3, "{closed}");
}

/// A file of which a part was damaged, with the bytes of before where nothing was written since.
fn mended(whole: &[u8], now: &[u8], part: usize) -> Vec<u8> {
    let mut mended = now.to_vec();
    for at in stretch(whole, part).step_by(PIECE) {
        let piece = at..at + PIECE;
        if now[piece.clone()].iter().zip(&whole[piece.clone()]).all(|(now, then)| *now == then ^ 0x55) {
            mended[piece.clone()].copy_from_slice(&whole[piece]);
        }
    }
    mended
}

fn all_of(engine: &Engine, table: &Arc<Table>) -> Rows {
    all(engine, table.tree(0))
}

#[test]
fn a_table_that_was_closed_can_be_dropped_and_lets_the_log_go() {
    let (fs, engine, told) = cold(40, 64 << 20);
    let table = engine.open_table("t").unwrap();
    damage_all(&fs, &path_of(&table));
    (0..ROWS).step_by(50).for_each(|i| write(&engine, &table, 0, i, None).unwrap_or(()));
    engine.checkpoint().unwrap();
    assert!(told.has("table 't' is closed"), "{:?}", told.0);
    assert!(!engine.shared.care.damaged.lock().trees.is_empty());
    drop(table);
    engine.drop("t", IfPrepared::Refuse).unwrap();
    engine.checkpoint().unwrap();
    assert!(engine.shared.care.damaged.lock().trees.is_empty());
    assert!(engine.shared.system.counted_apart().unwrap().is_empty());
    engine.close().unwrap();
    drop(engine);
    let engine = open(&fs.kill());
    assert_eq!(engine.table_names("").unwrap(), ["other"]);
    assert_eq!(all_of(&engine, &engine.open_table("other").unwrap()).len() as u64, ROWS);
}

#[test]
fn a_checkpoint_that_meets_a_table_which_another_has_closed_goes_on_without_it() {
    let (fs, engine, _) = cold(45, 64 << 20);
    let (table, other) = (engine.open_table("t").unwrap(), engine.open_table("other").unwrap());
    damage_all(&fs, &path_of(&table));
    (0..ROWS).step_by(50).for_each(|i| write(&engine, &table, 0, i, None).unwrap_or(()));
    write(&engine, &other, 0, 0, Some(b"new")).unwrap();
    let space = Some(table.space().id());
    let failure = Failure { error: Error::corrupt(table.path(), 0, "damaged"), fatal: false, space };
    let captured = engine.shared.data.dirty.all();
    assert!(captured.iter().any(|tree| Some(tree.space().id()) == space));
    assert!(engine.shared.close_unreadable(&failure));
    // The other one's have been captured before, and are put back when it has failed as well.
    engine.shared.mark_dirty(captured.iter());
    assert!(engine.shared.close_unreadable(&failure));
    engine.checkpoint().unwrap();
    assert_eq!(engine.statistics().failed_checkpoints, 0);
}

fn delete_all(engine: &Engine, table: &Arc<Table>) {
    // Its leaves are in memory then.
    assert_eq!(all_of(engine, table).len() as u64, ROWS);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    (0..ROWS).for_each(|i| txn.write(table.tree(0), &number(i), WriteOp::Delete).unwrap());
    txn.commit().unwrap();
}

#[test]
fn what_the_background_cannot_read_of_one_table_keeps_it_from_nothing_else_and_is_told_once() {
    let (fs, engine, told) = cold(50, 64 << 20);
    engine
        .create(NewTable { residence: Residence::Memory { limit_bytes: 0 }, ..NewTable::new("m", &specs(1)) })
        .unwrap();
    let open = |name| engine.open_table(name).unwrap();
    let (table, other, memory) = (open("t"), open("other"), open("m"));
    delete_all(&engine, &table);
    engine.shared.settings.set_cache_bytes(0);
    (0..20).for_each(|_| engine.shared.context.cache.make_room_if_possible());
    engine.shared.settings.set_cache_bytes(64 << 20);
    damage_all(&fs, &path_of(&table));
    delete_all(&engine, &other);
    put(&engine, memory.tree(0), &[("a", "1")]);
    let has_spent = |table: &Table| table.tree(0).waits(Care::Retire);
    assert!(has_spent(&table) && has_spent(&other) && memory.tree(0).is_dirty());
    engine.shared.look_after_history();
    assert!(!memory.tree(0).is_dirty(), "tables in memory wait for a leaf that cannot be read");
    assert!(!has_spent(&other), "leaves of a table wait for one of another that cannot be read");
    (0..3).for_each(|_| engine.shared.look_after_history());
    let lines = told.0.lock().iter().filter(|text| text.contains("empty leaves")).count();
    assert_eq!(lines, 1, "{:?}", told.0);
}
