//! What undecided transactions have in the log is copied forward: the log stays bounded, and whatever happens meanwhile
//! they come out as if it were not.

use super::*;
use crate::file::{Fault, FileSystem};
use crate::options::{LogLevel, Observer};
use crate::sync::Mutex;
use std::path::Path;

const CHECKPOINT: u64 = 32 << 10;

fn small() -> Options {
    Options {
        checkpoint_log_bytes: CHECKPOINT,
        log_segment_bytes: 8 << 10,
        redo_bytes: 2 << 10,
        ..super::options()
    }
}

fn open(fs: &SimulatedFileSystem) -> Engine {
    Engine::open(Arc::new(fs.clone()), small()).unwrap()
}

/// With a recovery by several threads, each of which sees a few of the many segments.
fn open_on_threads(fs: &SimulatedFileSystem) -> Engine {
    Engine::open(Arc::new(fs.clone()), Options { recovery_threads: 3, ..small() }).unwrap()
}

fn with_table(seed: u64) -> (SimulatedFileSystem, Engine) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = open(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    (fs, engine)
}

fn log_bytes(fs: &SimulatedFileSystem) -> u64 {
    let dir = Path::new("/teak/log");
    fs.list(dir)
        .unwrap()
        .iter()
        .map(|name| fs.open(&dir.join(name), crate::file::OpenMode::ReadOnly).unwrap().len().unwrap())
        .sum()
}

/// A transaction of the test, with what it would change.
struct Undecided {
    name: String,
    txn: Transaction,
    changes: Rows,
    kept: Vec<(Savepoint, Rows)>,
}

impl Undecided {
    fn new(engine: &Engine, name: &str) -> Undecided {
        let txn = engine.begin(Isolation::Repeatable);
        Undecided { name: name.into(), txn, changes: Rows::new(), kept: Vec::new() }
    }

    /// Writes `count` of its hundred keys; an empty value: it is deleted.
    fn write(&mut self, engine: &Engine, count: usize, mark: u8) -> Result<()> {
        let table = engine.open_table("t")?;
        for i in 0..count {
            let key = format!("{}/{:03}", self.name, (i * 7 + usize::from(mark) * 13) % 100).into_bytes();
            let value = vec![mark; 40 + i * 37 % 200];
            let exists = self.changes.get(&key).is_some_and(|value| !value.is_empty());
            let op = match (exists, i % 5) {
                (true, 0) => WriteOp::Delete,
                (true, _) => WriteOp::Update(&value),
                (false, _) => WriteOp::Insert(&value),
            };
            let after = if matches!(op, WriteOp::Delete) { Vec::new() } else { value.clone() };
            self.txn.write(table.tree(0), &key, op)?;
            self.changes.insert(key, after);
        }
        Ok(())
    }

    fn savepoint(&mut self) {
        self.kept.push((self.txn.savepoint(), self.changes.clone()));
    }

    fn roll_back(&mut self) -> Result<()> {
        let Some((savepoint, changes)) = self.kept.pop() else { return Ok(()) };
        self.changes = changes;
        self.txn.rollback_to(savepoint)
    }
}

fn apply(rows: &mut Rows, changes: &Rows) {
    rows.extend(changes.clone());
    rows.retain(|_, value| !value.is_empty());
}

/// One committed transaction of others, of about 4 KiB of log.
fn other(engine: &Engine, rows: &mut Rows, number: usize) -> Result<()> {
    let table = engine.open_table("t")?;
    let mut txn = engine.begin(Isolation::Repeatable);
    let mut written = Rows::new();
    for i in 0..20 {
        let key = format!("other/{:02}", (number + i) % 60).into_bytes();
        let value = vec![number as u8; 150 + i];
        let op = if rows.contains_key(&key) { WriteOp::Update(&value) } else { WriteOp::Insert(&value) };
        txn.write(table.tree(0), &key, op)?;
        written.insert(key, value);
    }
    // An error leaves it open whether they are there.
    rows.extend(written);
    txn.commit()
}

fn rows(engine: &Engine) -> Rows {
    let table = engine.open_table("t").unwrap();
    engine.check_table(&table).unwrap();
    let rows = all(engine, table.tree(0));
    assert_eq!(table.tree(0).entries(), rows.len() as u64);
    rows
}

fn assert_same(found: &Rows, expected: &Rows, context: &str) {
    let differs = |(key, value): &(&Vec<u8>, &Vec<u8>)| expected.get(*key) != Some(value);
    let wrong: Vec<_> = found.iter().filter(differs).map(|(key, _)| key.escape_ascii().to_string()).collect();
    let missing = expected.keys().filter(|key| !found.contains_key(*key)).count();
    assert!(wrong.is_empty() && missing == 0, "{context}: {missing} missing, wrong: {wrong:?}");
}

#[test]
fn the_log_stays_bounded_with_a_prepared_and_a_large_open_transaction() {
    let (fs, engine) = with_table(1);
    let mut rows_now = Rows::new();
    let mut prepared = Undecided::new(&engine, "p");
    prepared.write(&engine, 10, 1).unwrap();
    prepared.txn.prepare(b"p").unwrap();
    let mut large = Undecided::new(&engine, "l");
    large.savepoint();
    large.write(&engine, 60, 2).unwrap();
    large.roll_back().unwrap();
    for mark in 3..12 {
        large.write(&engine, 30, mark).unwrap();
    }
    large.savepoint();
    large.write(&engine, 40, 12).unwrap();
    // Some 60 KiB of redo.
    let redo = engine.statistics().log_pinned_bytes;
    assert!(redo > 30 << 10, "{redo}");
    let mut most = 0;
    for number in 0..600 {
        other(&engine, &mut rows_now, number).unwrap();
        most = most.max(log_bytes(&fs));
        if number == 300 {
            large.roll_back().unwrap();
            large.write(&engine, 10, 13).unwrap();
        }
    }
    let statistics = engine.statistics();
    assert!(statistics.log_bytes > 2 << 20, "{}", statistics.log_bytes);
    assert!(most < 7 * (CHECKPOINT + redo), "{most}");
    let others = statistics.log_bytes - statistics.log_copied_bytes;
    assert!(statistics.log_copied_bytes > redo, "{}", statistics.log_copied_bytes);
    assert!(statistics.log_copied_bytes < others / 2, "{} of {others}", statistics.log_copied_bytes);
    large.txn.commit().unwrap();
    apply(&mut rows_now, &large.changes);
    assert_same(&rows(&engine), &rows_now, "running");
    drop(prepared.txn);
    drop(engine);

    let fs = fs.crash();
    let engine = open(&fs);
    assert_same(&rows(&engine), &rows_now, "after the crash");
    assert_eq!(engine.prepared(), [b"p".to_vec()]);
    // It is copied on after a restart.
    for number in 0..100 {
        other(&engine, &mut rows_now, number).unwrap();
    }
    assert!(engine.statistics().log_copied_bytes > 0);
    drop(engine);
    let fs = fs.crash();
    let engine = open(&fs);
    engine.commit_prepared(b"p").unwrap();
    apply(&mut rows_now, &prepared.changes);
    assert_same(&rows(&engine), &rows_now, "decided");
    drop(engine);
    assert_same(&rows(&open(&fs.crash())), &rows_now, "at the end");
}

/// What a life has done before it ended, and the state that an operation under way may have led to.
#[derive(Default)]
struct Known {
    rows: Rows,
    prepared: BTreeMap<Vec<u8>, Rows>,
    next: Option<(Rows, BTreeMap<Vec<u8>, Rows>)>,
}

/// A prepared and an open transaction over many checkpoints, which roll back, prepare, commit or go on while they are
/// copied. `turn` shifts what happens when.
fn life(engine: &Engine, known: &mut Known, turn: usize) -> Result<()> {
    let mut first = Undecided::new(engine, "first");
    first.write(engine, 50, 1)?;
    first.savepoint();
    first.write(engine, 30, 2)?;
    first.roll_back()?;
    first.write(engine, 30, 3)?;
    let mut prepared = known.prepared.clone();
    prepared.insert(b"first".to_vec(), first.changes.clone());
    known.next = Some((known.rows.clone(), prepared.clone()));
    first.txn.prepare(b"first")?;
    known.prepared = prepared;
    let mut second = Undecided::new(engine, "second");
    second.write(engine, 70, 4)?;
    second.savepoint();
    for number in 0..90 {
        known.next = None;
        let mut next = known.rows.clone();
        let result = other(engine, &mut next, number);
        known.next = Some((next.clone(), known.prepared.clone()));
        result?;
        known.rows = next;
        known.next = None;
        match (number + turn) % 12 {
            0 => second.savepoint(),
            2 => second.write(engine, 25, number as u8)?,
            5 => second.roll_back()?,
            7 => second.write(engine, 5, number as u8)?,
            // As a rule the first is being copied by then, or the second.
            11 if number == 20 + turn => {
                known.prepared.insert(b"second".to_vec(), second.changes.clone());
                known.next = Some((known.rows.clone(), known.prepared.clone()));
                known.prepared.remove(&b"second"[..]);
                second.txn.prepare(b"second")?;
                known.prepared.insert(b"second".to_vec(), second.changes.clone());
                second = Undecided::new(engine, "third");
            }
            _ => {}
        }
    }
    let mut next = known.rows.clone();
    apply(&mut next, &second.changes);
    known.next = Some((next.clone(), known.prepared.clone()));
    second.txn.commit()?;
    known.rows = next;
    known.next = None;
    Ok(())
}

/// The rows with those of the prepared transactions that `commits` names.
fn decided(rows: &Rows, prepared: &BTreeMap<Vec<u8>, Rows>, commits: impl Fn(&[u8]) -> bool) -> Rows {
    let mut rows = rows.clone();
    prepared.iter().filter(|(xid, _)| commits(xid)).for_each(|(_, changes)| apply(&mut rows, changes));
    rows
}

#[test]
fn a_power_cut_at_any_moment_of_copying_changes_nothing() {
    let (mut cut, mut finished, mut copied) = (0, false, 0);
    while !finished {
        let (fs, engine) = with_table(cut + 1);
        let mut known = Known::default();
        fs.fail_after(cut, Fault::PowerCut);
        finished = life(&engine, &mut known, cut as usize % 3).is_ok() && !fs.power_is_off();
        copied = copied.max(engine.statistics().log_copied_bytes);
        drop(engine);
        let fs = fs.crash();
        let engine = if cut % 2 == 0 { open(&fs) } else { open_on_threads(&fs) };
        let mut found: Vec<_> = known.prepared.keys().cloned().collect();
        if engine.prepared() != found {
            let (_, prepared) = known.next.as_ref().unwrap_or_else(|| panic!("cut {cut}: prepared ones"));
            known.prepared = prepared.clone();
            found = known.prepared.keys().cloned().collect();
        }
        assert_eq!(engine.prepared(), found, "cut {cut}");
        let now = rows(&engine);
        if now != known.rows {
            let (rows, _) = known.next.take().unwrap_or((known.rows, BTreeMap::new()));
            assert_same(&now, &rows, &format!("cut {cut}"));
            known.rows = rows;
        }
        // On they go, and another crash.
        for number in 0..30 {
            other(&engine, &mut known.rows, number).unwrap();
        }
        let commits = |xid: &[u8]| xid[0] % 2 == cut as u8 % 2;
        for xid in &found {
            match commits(xid) {
                true => engine.commit_prepared(xid).unwrap(),
                false => engine.rollback_prepared(xid).unwrap(),
            }
        }
        let expected = decided(&known.rows, &known.prepared, commits);
        assert_same(&rows(&engine), &expected, &format!("cut {cut}, decided"));
        drop(engine);
        let engine = open(&fs.crash());
        assert_same(&rows(&engine), &expected, &format!("cut {cut}, second start"));
        cut += if cut < 40 { 1 } else { 5 };
    }
    assert!(copied > 20 << 10 && cut > 300, "{copied} bytes copied, {cut} operations");
}

#[test]
fn rows_that_a_load_wrote_past_the_log_and_large_values_move_with_their_transaction() {
    let fs = SimulatedFileSystem::new(9);
    let engine = open(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    let (mut rows_now, mut loaded) = (Rows::new(), Rows::new());
    let mut txn = engine.begin(Isolation::Repeatable);
    for i in 0u32..2000 {
        let (key, value) = (format!("load/{i:05}").into_bytes(), vec![i as u8; 60]);
        txn.append(table.tree(0), &key, &value).unwrap();
        loaded.insert(key, value);
    }
    let value = vec![9; 50 << 10];
    txn.write(table.tree(0), b"large", WriteOp::Insert(&value)).unwrap();
    loaded.insert(b"large".to_vec(), value);
    assert!(engine.statistics().direct_bytes > 100 << 10);
    txn.prepare(b"x").unwrap();
    for number in 0..100 {
        other(&engine, &mut rows_now, number).unwrap();
    }
    assert!(engine.statistics().log_copied_bytes > 0);
    drop((txn, table, engine));
    let fs = fs.crash();
    let engine = open(&fs);
    for number in 0..100 {
        other(&engine, &mut rows_now, number).unwrap();
    }
    engine.commit_prepared(b"x").unwrap();
    rows_now.append(&mut loaded);
    assert_same(&rows(&engine), &rows_now, "committed");
    drop(engine);
    let engine = open(&fs.crash());
    assert_same(&rows(&engine), &rows_now, "after another crash");
    engine.checkpoint().unwrap();
    engine.close().unwrap();
}

#[test]
fn an_idle_engine_does_not_copy_for_ever() {
    let (_fs, engine) = with_table(4);
    let mut rows_now = Rows::new();
    let mut many: Vec<Undecided> = (0..12).map(|i| Undecided::new(&engine, &format!("u{i}"))).collect();
    for undecided in &mut many {
        undecided.write(&engine, 60, 7).unwrap();
        other(&engine, &mut rows_now, 5).unwrap();
    }
    for number in 0..200 {
        other(&engine, &mut rows_now, number).unwrap();
    }
    let mut last = engine.statistics().log_copied_bytes;
    for _ in 0..200 {
        engine.checkpoint().unwrap();
    }
    assert!(engine.statistics().log_copied_bytes - last < 500 << 10);
    last = engine.statistics().log_copied_bytes;
    for _ in 0..100 {
        engine.checkpoint().unwrap();
    }
    assert_eq!(engine.statistics().log_copied_bytes, last);
}

/// Keeps what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Observer for Told {
    fn message(&self, _level: LogLevel, text: &str) {
        self.0.lock().push(text.to_string());
    }
}

#[test]
fn a_record_that_cannot_be_read_keeps_the_log_and_is_told_once() {
    let fs = SimulatedFileSystem::new(5);
    let told = Arc::new(Told::default());
    let engine = Engine::open(Arc::new(fs.clone()), Options { observer: told.clone(), ..small() }).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let mut rows_now = Rows::new();
    let mut undecided = Undecided::new(&engine, "u");
    undecided.write(&engine, 60, 7).unwrap();
    engine.sync_log().unwrap();
    let dir = Path::new("/teak/log");
    let mut segments = fs.list(dir).unwrap();
    segments.sort();
    let path = dir.join(segments.iter().find(|name| name.starts_with('0')).unwrap());
    let file = fs.open(&path, crate::file::OpenMode::Existing).unwrap();
    let length = file.len().unwrap();
    file.write_at(4096 + 1500, &vec![0x5a; (length - 4096 - 1500) as usize]).unwrap();
    for number in 0..200 {
        other(&engine, &mut rows_now, number).unwrap();
    }
    let warned =
        |text: &str| told.0.lock().iter().filter(|line| line.contains(text)).cloned().collect::<Vec<_>>();
    assert_eq!(warned("keeps the log until it ends").len(), 1, "{:?}", told.0.lock());
    assert!(engine.statistics().log_pinned_bytes > 500 << 10);
    // It is told that it keeps much of the log.
    assert!(
        !warned("of the log are kept for open and prepared transactions").is_empty(),
        "{:?}",
        told.0.lock()
    );
    undecided.txn.commit().unwrap();
    apply(&mut rows_now, &undecided.changes);
    engine.checkpoint().unwrap();
    engine.checkpoint().unwrap();
    assert!(engine.statistics().log_pinned_bytes == 0 && log_bytes(&fs) < 100 << 10);
    assert_same(&rows(&engine), &rows_now, "running");
}

/// A thread's transactions: what is certain, and what the one under way would make of it.
#[derive(Default)]
struct Own {
    rows: Rows,
    next: Rows,
    xid: Vec<u8>,
}

/// Transactions on keys of their own, with redo in the log, until something fails.
fn many(engine: &Engine, name: &str, own: &mut Own) -> Result<()> {
    for round in 0u32.. {
        own.xid = format!("{name}/{round}").into_bytes();
        let mut undecided = Undecided { changes: own.rows.clone(), ..Undecided::new(engine, name) };
        for part in 0..4 {
            undecided.savepoint();
            undecided.write(engine, 15, (round * 5 + part) as u8)?;
            if (round + part) % 3 == 0 {
                undecided.roll_back()?;
            }
        }
        own.next = own.rows.clone();
        apply(&mut own.next, &undecided.changes);
        match round % 4 {
            0 => undecided.txn.commit()?,
            1 => {
                undecided.txn.prepare(&own.xid)?;
                undecided.txn.commit()?;
            }
            2 => {
                undecided.txn.prepare(&own.xid)?;
                undecided.txn.try_rollback()?;
                continue;
            }
            _ => {
                undecided.txn.rollback();
                continue;
            }
        }
        own.rows = own.next.clone();
    }
    Ok(())
}

#[test]
fn transactions_end_on_other_threads_while_they_are_copied() {
    let mut copied = 0;
    for round in 0..50u64 {
        let fs = SimulatedFileSystem::new(round);
        let options = Options { checkpoint_log_bytes: 3 << 10, redo_bytes: 500, ..small() };
        let engine = Engine::open(Arc::new(fs.clone()), options.clone()).unwrap();
        engine.create(NewTable::new("t", &specs(1))).unwrap();
        fs.fail_after(800 + round * 97, Fault::PowerCut);
        let mut others = Rows::new();
        let mut owns = [Own::default(), Own::default(), Own::default()];
        std::thread::scope(|scope| {
            for (own, name) in owns.iter_mut().zip(["a", "b", "c"]) {
                let engine = &engine;
                scope.spawn(move || assert!(many(engine, name, own).is_err()));
            }
            scope.spawn(|| while other(&engine, &mut others, round as usize).is_ok() {});
            while engine.checkpoint().is_ok() {}
        });
        copied += engine.statistics().log_copied_bytes;
        drop(engine);
        let engine = Engine::open(Arc::new(fs.crash()), options).unwrap();
        for xid in engine.prepared() {
            assert!(owns.iter().any(|own| own.xid == xid), "{} is decided", xid.escape_ascii());
            engine.commit_prepared(&xid).unwrap();
        }
        let found = rows(&engine);
        for (own, name) in owns.iter().zip([b"a/", b"b/", b"c/"]) {
            let found: Rows = found.clone().into_iter().filter(|(key, _)| key.starts_with(name)).collect();
            if found != own.rows {
                assert_same(&found, &own.next, &format!("round {round}"));
            }
        }
    }
    assert!(copied > 0);
}
