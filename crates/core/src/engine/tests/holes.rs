//! Free extents go back to the file system after a checkpoint, and nothing that anybody may ask for goes with them.

use super::*;
use crate::file::Fault;
use crate::options::{LogLevel, Observer};
use crate::sync::Mutex;

const ROWS: u32 = 1500;

/// 200 bytes that no compression makes smaller.
fn value(row: u32, turn: u32) -> Vec<u8> {
    let mut state = u64::from(row) << 32 | u64::from(turn) | 1 << 63;
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) as u8
    };
    (0..200).map(|_| next(&mut state)).collect()
}

fn rewrite(engine: &Engine, tree: &Arc<Tree>, turn: u32) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for row in 0..ROWS {
        txn.write(tree, &row.to_be_bytes(), WriteOp::Update(&value(row, turn))).unwrap();
    }
    txn.commit().unwrap();
}

fn check(engine: &Engine, tree: &Arc<Tree>, turn: u32) {
    let rows = all(engine, tree);
    assert_eq!(rows.len(), ROWS as usize);
    assert!((0..ROWS).all(|row| rows[&row.to_be_bytes()[..]] == value(row, turn)));
}

#[test]
fn a_table_that_was_rewritten_takes_no_more_space_than_its_rows() {
    let (mut fs, mut engine, table) = with_table(1);
    rewrite(&engine, table.tree(0), 0);
    engine.checkpoint().unwrap();
    let once = table.disk_bytes();
    drop(table);
    for turn in 1..5 {
        let table = engine.open_table("t").unwrap();
        rewrite(&engine, table.tree(0), turn);
        engine.checkpoint().unwrap();
        let (taken, free) = (table.disk_bytes(), table.free_bytes());
        assert!(taken < once + once / 8, "turn {turn}: {taken} bytes, at first {once}");
        assert!(free < once / 8, "turn {turn}: {free} bytes of {taken} are free");
        // Each second time the rows are in the first half, and the rest was cut off.
        assert_eq!(table.space().file_bytes() > once * 3 / 2, turn % 2 == 1, "turn {turn}");
        drop(table);
        // What the log and the image have is there, in each of the ways an engine ends.
        (fs, engine) = match turn % 2 {
            0 => crash(&fs, engine),
            _ => {
                engine.close().unwrap();
                let engine = open(&fs);
                (fs, engine)
            }
        };
        check(&engine, engine.open_table("t").unwrap().tree(0), turn);
    }
}

#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Observer for Messages {
    fn message(&self, _level: LogLevel, text: &str) {
        self.0.lock().push(text.to_string());
    }
}

#[test]
fn a_file_system_without_holes_is_served_in_silence() {
    let fs = SimulatedFileSystem::new(2);
    fs.refuse_holes();
    let messages = Arc::new(Messages::default());
    let options = Options { observer: messages.clone(), ..options() };
    let engine = Engine::open(Arc::new(fs.clone()), options.clone()).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    for turn in 0..2 {
        rewrite(&engine, table.tree(0), turn);
        engine.checkpoint().unwrap();
    }
    assert!(table.free_bytes() > table.disk_bytes() / 3);
    assert_eq!(*messages.0.lock(), Vec::<String>::new());
    check(&engine, table.tree(0), 1);
}

/// Each operation of a rewrite and its checkpoint fails once, with the power or without: the punched holes never have
/// anything that is asked for.
#[test]
fn no_failure_between_two_checkpoints_lets_a_hole_take_rows_with_it() {
    for (fault, step) in [(Fault::PowerCut, 1), (Fault::Eio, 3), (Fault::Enospc, 3)] {
        let mut after = 0;
        loop {
            let (fs, engine, table) = with_table(after);
            for turn in 0..2 {
                rewrite(&engine, table.tree(0), turn);
                engine.checkpoint().unwrap();
            }
            let before = fs.operations();
            fs.fail_after(after, fault);
            let mut txn = engine.begin(Isolation::ReadCommitted);
            let rows = 0..ROWS;
            let written = rows.into_iter().try_for_each(|row| {
                txn.write(table.tree(0), &row.to_be_bytes(), WriteOp::Update(&value(row, 2)))
            });
            let committed = written.and_then(|()| txn.commit());
            let _ = engine.checkpoint();
            let all_done = fs.operations() <= before + after;
            drop(table);
            let (_fs, engine) = crash(&fs, engine);
            let found = engine.open_table("t").unwrap();
            let rows = all(&engine, found.tree(0));
            let turn = match rows[&0u32.to_be_bytes()[..]] == value(0, 2) {
                true => 2,
                false => 1,
            };
            assert!(turn == 2 || committed.is_err(), "operation {after}: a commit is lost");
            check(&engine, found.tree(0), turn);
            if all_done {
                assert!(turn == 2 && after > 50, "{after} operations");
                break;
            }
            after += step;
        }
    }
}
