//! Checkpoints and recovery: what a crash, a full disk or a failing device in any moment leaves.

use super::*;
use crate::file::{Fault, FileSystem, RealFileSystem};
use std::path::{Path, PathBuf};

/// A small deterministic source of choices.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Random transactions over both trees of a table; `rows` follows what was committed.
fn work(engine: &Engine, table: &Table, random: &mut Random, rows: &mut [Rows; 2], steps: u64) -> Result<()> {
    work_until_failure(engine, table, random, rows, &mut rows.clone(), steps)
}

/// After an error, `next` is what the rows are if the last commit came through after all.
fn work_until_failure(
    engine: &Engine,
    table: &Table,
    random: &mut Random,
    rows: &mut [Rows; 2],
    next: &mut [Rows; 2],
    steps: u64,
) -> Result<()> {
    for _ in 0..steps {
        let mut txn = engine.begin(Isolation::Repeatable);
        *next = rows.clone();
        for _ in 0..=random.below(20) {
            let tree = random.below(2) as usize;
            let key = format!("{:04}", random.below(500)).into_bytes();
            let size = if random.below(50) == 0 { 5000 } else { random.below(200) as usize };
            let value = vec![random.below(256) as u8; size];
            let exists = next[tree].contains_key(&key);
            let op = match (exists, random.below(3)) {
                (true, 0) => WriteOp::Delete,
                (true, _) => WriteOp::Update(&value),
                (false, _) => WriteOp::Insert(&value),
            };
            txn.write(table.tree(tree), &key, op)?;
            match op {
                WriteOp::Delete => next[tree].remove(&key),
                _ => next[tree].insert(key, value.clone()),
            };
        }
        match random.below(5) {
            0 => txn.rollback(),
            1 => {
                txn.prepare(b"x")?;
                txn.commit_ordered();
                txn.commit()?;
                // The commit record itself need not be durable.
                engine.sync_log()?;
                *rows = next.clone();
            }
            _ => {
                txn.commit()?;
                *rows = next.clone();
            }
        }
    }
    Ok(())
}

fn matches(engine: &Engine, rows: &[Rows; 2]) -> bool {
    let table = engine.open_table("t").unwrap();
    rows.iter().enumerate().all(|(i, rows)| all(engine, table.tree(i)) == *rows)
}

fn check(engine: &Engine, rows: &[Rows; 2], context: &str) {
    let table = engine.open_table("t").unwrap();
    for (i, rows) in rows.iter().enumerate() {
        let found = all(engine, table.tree(i));
        assert!(found == *rows, "{context}: tree {i} has {} rows, {} expected", found.len(), rows.len());
        assert_eq!(table.tree(i).entries(), rows.len() as u64, "{context}: row count of tree {i}");
    }
    engine.check_table(&table).unwrap();
}

#[test]
fn committed_rows_survive_any_number_of_crashes_and_checkpoints() {
    for seed in 0..12 {
        let (mut fs, mut engine, mut table) = with_table(seed);
        let mut random = Random(seed);
        let mut rows = [Rows::new(), Rows::new()];
        for round in 0..6 {
            work(&engine, &table, &mut random, &mut rows, 30).unwrap();
            if random.below(2) == 0 {
                engine.checkpoint().unwrap();
                work(&engine, &table, &mut random, &mut rows, 10).unwrap();
            }
            check(&engine, &rows, &format!("seed {seed} round {round} before the crash"));
            drop(table);
            (fs, engine) = crash(&fs, engine);
            check(&engine, &rows, &format!("seed {seed} round {round}"));
            table = engine.open_table("t").unwrap();
        }
    }
}

#[test]
fn a_power_cut_at_any_moment_of_a_checkpoint_loses_nothing() {
    let (mut cut, mut finished) = (0, false);
    while !finished {
        let (fs, engine, table) = with_table(cut + 1);
        let mut random = Random(cut);
        let mut rows = [Rows::new(), Rows::new()];
        work(&engine, &table, &mut random, &mut rows, 40).unwrap();
        engine.checkpoint().unwrap();
        work(&engine, &table, &mut random, &mut rows, 40).unwrap();
        fs.fail_after(cut, Fault::PowerCut);
        finished = engine.checkpoint().is_ok();
        drop(table);
        let (fs, engine) = crash(&fs, engine);
        check(&engine, &rows, &format!("cut {cut}"));
        // What the crash left behind must not stand in the way of what follows.
        let table = engine.open_table("t").unwrap();
        work(&engine, &table, &mut random, &mut rows, 20).unwrap();
        engine.checkpoint().unwrap();
        drop(table);
        let (_fs, engine) = crash(&fs, engine);
        check(&engine, &rows, &format!("cut {cut}, second start"));
        cut += if cut < 30 { 1 } else { 7 };
    }
    assert!(cut > 20, "a checkpoint consists of more than {cut} operations");
}

#[test]
fn a_power_cut_at_any_moment_leaves_the_commits_before_it_and_at_most_the_one_under_way() {
    for round in 0..120u64 {
        let fs = SimulatedFileSystem::new(round + 3000);
        let mut random = Random(round);
        let options = Options {
            // Checkpoints happen on the way.
            checkpoint_log_bytes: 8 << 10,
            log_segment_bytes: 16 << 10,
            ..options()
        };
        let engine = Engine::open(Arc::new(fs.clone()), options.clone()).unwrap();
        engine.create(NewTable::new("t", &specs(2))).unwrap();
        let table = engine.open_table("t").unwrap();
        fs.fail_after(random.below(400), Fault::PowerCut);
        let mut rows = [Rows::new(), Rows::new()];
        let mut next = rows.clone();
        let result = work_until_failure(&engine, &table, &mut random, &mut rows, &mut next, 300);
        assert!(result.is_err() == fs.power_is_off());
        drop((table, engine));
        let mut fs = fs.crash();
        let mut engine = Engine::open(Arc::new(fs.clone()), options.clone()).unwrap();
        for xid in engine.prepared() {
            engine.rollback_prepared(&xid).unwrap();
        }
        if !matches(&engine, &rows) {
            assert!(matches(&engine, &next), "round {round}");
            rows = next;
        }
        // And again, during what comes after.
        let table = engine.open_table("t").unwrap();
        work(&engine, &table, &mut random, &mut rows, 20).unwrap();
        drop((table, engine));
        fs = fs.crash();
        engine = Engine::open(Arc::new(fs.clone()), options).unwrap();
        check(&engine, &rows, &format!("round {round}"));
    }
}

#[test]
fn a_full_disk_fails_a_checkpoint_and_the_next_succeeds() {
    for at in [0, 1, 2, 3, 5, 8, 13, 21, 34] {
        let (fs, engine, table) = with_table(at + 100);
        let mut random = Random(at);
        let mut rows = [Rows::new(), Rows::new()];
        work(&engine, &table, &mut random, &mut rows, 60).unwrap();
        fs.fail_from(at, Fault::Enospc);
        let failed = engine.checkpoint().is_err();
        fs.heal();
        check(&engine, &rows, "after the failure");
        work(&engine, &table, &mut random, &mut rows, 20).unwrap();
        engine.checkpoint().unwrap();
        assert_eq!(engine.statistics().failed_checkpoints, u64::from(failed));
        work(&engine, &table, &mut random, &mut rows, 20).unwrap();
        drop(table);
        let (_fs, engine) = crash(&fs, engine);
        check(&engine, &rows, &format!("disk full at {at}"));
    }
}

#[test]
fn a_failing_device_during_a_checkpoint_never_loses_a_commit() {
    for at in 0..40 {
        let (fs, engine, table) = with_table(at + 200);
        let mut random = Random(at);
        let mut rows = [Rows::new(), Rows::new()];
        work(&engine, &table, &mut random, &mut rows, 30).unwrap();
        fs.fail_after(at, Fault::Eio);
        let _ = engine.checkpoint();
        fs.heal();
        // Read-only by now, or as if nothing had happened.
        if engine.checkpoint().is_ok() {
            work(&engine, &table, &mut random, &mut rows, 10).unwrap();
        }
        drop(table);
        let (_fs, engine) = crash(&fs, engine);
        check(&engine, &rows, &format!("device failed at {at}"));
    }
}

#[test]
fn after_failed_checkpoints_and_a_restart_the_durable_image_is_never_overwritten() {
    for cut in 0..40 {
        let (fs, engine, table) = with_table(cut + 300);
        let mut random = Random(cut);
        let mut rows = [Rows::new(), Rows::new()];
        work(&engine, &table, &mut random, &mut rows, 30).unwrap();
        fs.fail_from(cut % 8, Fault::Enospc);
        for _ in 0..3 {
            engine.checkpoint().unwrap_err();
        }
        fs.heal();
        engine.checkpoint().unwrap();
        drop(table);
        let (fs, engine) = crash(&fs, engine);
        let table = engine.open_table("t").unwrap();
        for _ in 0..2 {
            work(&engine, &table, &mut random, &mut rows, 5).unwrap();
            engine.checkpoint().unwrap();
        }
        work(&engine, &table, &mut random, &mut rows, 5).unwrap();
        fs.fail_after(cut, Fault::PowerCut);
        let _ = engine.checkpoint();
        drop(table);
        let (_fs, engine) = crash(&fs, engine);
        check(&engine, &rows, &format!("cut {cut}"));
        engine.close().unwrap();
    }
}

#[test]
fn a_superblock_that_a_dead_process_left_unsynced_is_not_relied_on() {
    for seed in 0..200 {
        let (fs, engine, table) = with_table(seed + 400);
        let mut random = Random(seed);
        let mut rows = [Rows::new(), Rows::new()];
        work(&engine, &table, &mut random, &mut rows, 10).unwrap();
        engine.checkpoint().unwrap();
        work(&engine, &table, &mut random, &mut rows, 10).unwrap();
        let fault = if seed % 2 == 0 { Fault::PowerCut } else { Fault::Eio };
        fs.fail_after(random.below(20), fault);
        let _ = engine.checkpoint();
        let fs = fs.kill();
        drop((table, engine));
        let engine = open(&fs);
        let table = engine.open_table("t").unwrap();
        work(&engine, &table, &mut random, &mut rows, 5).unwrap();
        fs.fail_after(random.below(20), Fault::PowerCut);
        let _ = engine.checkpoint();
        drop(table);
        let (_fs, engine) = crash(&fs, engine);
        check(&engine, &rows, &format!("seed {seed}"));
        engine.close().unwrap();
    }
}

#[test]
fn a_prepared_transaction_whose_rollback_cannot_be_logged_stays_prepared() {
    let (fs, engine, table) = with_table(7);
    let mut txn = engine.begin(Isolation::Repeatable);
    let wait = crate::WaitRequest::no_wait();
    txn.lock(table.tree(0), b"k", crate::LockMode::Exclusive, &wait).unwrap();
    insert(&mut txn, table.tree(0), "k", "prepared");
    txn.prepare(b"xid").unwrap();
    txn.detach();
    fs.fail_from(0, Fault::Enospc);
    assert!(matches!(engine.rollback_prepared(b"xid"), Err(Error::DiskFull { .. })));
    fs.heal();
    assert_eq!(engine.prepared(), [b"xid"]);
    let mut other = engine.begin(Isolation::Repeatable);
    let refused = other.lock(table.tree(0), b"k", crate::LockMode::Exclusive, &wait);
    assert!(matches!(refused, Err(Error::WouldBlock)));
    drop((other, table));
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.prepared(), [b"xid"]);
    engine.rollback_prepared(b"xid").unwrap();
    expect(&engine, "t", 0, &[]);
}

#[test]
fn a_prepared_transaction_whose_session_cannot_roll_it_back_keeps_no_snapshot() {
    let (fs, engine, table) = with_table(7);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.open_snapshot();
    insert(&mut txn, table.tree(0), "k", "prepared");
    txn.prepare(b"xid").unwrap();
    fs.fail_from(0, Fault::Enospc);
    assert!(matches!(txn.try_rollback(), Err(Error::DiskFull { .. })));
    fs.heal();
    assert_eq!(engine.prepared(), [b"xid"]);
    assert_eq!(engine.statistics().snapshots, 0, "nobody reads with it");
    engine.rollback_prepared(b"xid").unwrap();
}

#[test]
fn a_counter_that_the_log_does_not_know_yet_survives_checkpoints() {
    let (_fs, engine, table) = with_table(8);
    let counter_after_checkpoints = |table: Arc<Table>| {
        drop(table);
        engine.checkpoint().unwrap();
        engine.checkpoint().unwrap();
        engine.open_table("t").unwrap().counter()
    };
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.note_counter(&table, 50);
    assert_eq!(counter_after_checkpoints(table), 50);
    txn.commit().unwrap();
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.set_counter(&table, 5);
    assert_eq!(counter_after_checkpoints(table), 5);
    txn.commit().unwrap();
    assert_eq!(counter_after_checkpoints(engine.open_table("t").unwrap()), 5);
    assert_eq!(engine.statistics().open_tables, 1, "only what was opened just now");
}

#[test]
fn a_counter_noted_before_its_table_was_idle_does_not_hide_a_later_one() {
    let (fs, engine, table) = with_table(9);
    engine.create(NewTable::new("other", &specs(1))).unwrap();
    let mut early = engine.begin(Isolation::Repeatable);
    early.note_counter(&table, 50);
    let note = |table: Arc<Table>, value| {
        let mut txn = engine.begin(Isolation::Repeatable);
        txn.note_counter(&table, value);
        txn.commit().unwrap();
    };
    note(table, 60);
    engine.checkpoint().unwrap();
    engine.checkpoint().unwrap();
    let table = engine.open_table("t").unwrap();
    early.commit().unwrap();
    note(table, 70);
    // The log is not needed from before this commit.
    put(&engine, engine.open_table("other").unwrap().tree(0), &[("k", "v")]);
    engine.checkpoint().unwrap();
    let (_fs, engine) = crash(&fs, engine.clone());
    assert_eq!(engine.open_table("t").unwrap().counter(), 70);
}

#[test]
fn a_table_opened_while_a_checkpoint_runs_has_the_counter_that_the_log_had() {
    let (fs, engine, table) = with_table(10);
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.note_counter(&table, 50);
    drop(table);
    txn.rollback();
    engine.sync_log().unwrap();
    let (_fs, engine) = crash(&fs, engine);
    let _captured = engine.shared.capture(false);
    assert_eq!(engine.open_table("t").unwrap().counter(), 50);
}

fn log_files(fs: &dyn FileSystem, dir: &Path) -> usize {
    fs.list(&dir.join("log")).unwrap().len()
}

#[test]
fn without_threads_writers_make_the_checkpoints_and_the_log_stays_short() {
    let fs = SimulatedFileSystem::new(5);
    let options = Options { checkpoint_log_bytes: 1 << 20, log_segment_bytes: 256 << 10, ..options() };
    let engine = Engine::open(Arc::new(fs.clone()), options).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    for i in 0..8000u32 {
        let mut txn = engine.begin(Isolation::Repeatable);
        let key = (i % 1000).to_be_bytes();
        txn.write(table.tree(0), &key, WriteOp::Update(&vec![i as u8; 1000])).unwrap();
        txn.commit().unwrap();
    }
    assert!(engine.statistics().checkpoints >= 5);
    assert!(log_files(&fs, Path::new("/teak")) < 16, "{} log files", log_files(&fs, Path::new("/teak")));
    assert!(table.disk_bytes() < 8 << 20, "{} bytes for 1 MB of rows", table.disk_bytes());
}

/// Removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("teak-engine-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn threads_write_read_and_checkpoint_at_once_and_a_parallel_replay_restores_it() {
    let dir = Directory::new("threads");
    let options = Options {
        checkpoint_log_bytes: 1 << 20,
        log_segment_bytes: 1 << 20,
        cache_bytes: 16 << 20,
        recovery_threads: 4,
        commit_flush: crate::CommitFlush::Write,
        ..Options::new(&dir.0)
    };
    let engine = Engine::open(Arc::new(RealFileSystem), options.clone()).unwrap();
    engine.create(NewTable::new("t", &specs(2))).unwrap();
    let table = engine.open_table("t").unwrap();
    const ACCOUNTS: u64 = 50;
    let mut txn = engine.begin(Isolation::Repeatable);
    for account in 0..ACCOUNTS {
        txn.write(table.tree(0), &account.to_be_bytes(), WriteOp::Insert(&100u64.to_le_bytes())).unwrap();
    }
    txn.commit().unwrap();
    let transfer = |seed: u64| {
        let mut random = Random(seed);
        for i in 0..2500u64 {
            let mut txn = engine.begin(Isolation::Repeatable);
            let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
            let (low, high) = (from.min(to), from.max(to));
            let wait = crate::WaitRequest::waiting(std::time::Duration::from_secs(20));
            for account in [low, high] {
                txn.lock(table.tree(0), &account.to_be_bytes(), crate::LockMode::Exclusive, &wait).unwrap();
            }
            let mut cursor = Cursor::new(table.tree(0).clone());
            let mut change = |txn: &mut Transaction, account: u64, by: i64| {
                assert!(cursor.get(txn, View::Latest, &account.to_be_bytes()).unwrap());
                let balance = u64::from_le_bytes(cursor.value().unwrap().try_into().unwrap());
                let balance = balance.wrapping_add_signed(by).to_le_bytes();
                txn.write(table.tree(0), &account.to_be_bytes(), WriteOp::Update(&balance)).unwrap();
            };
            change(&mut txn, from, -1);
            change(&mut txn, to, 1);
            let key = (seed << 32 | i).to_be_bytes();
            txn.write(table.tree(1), &key, WriteOp::Insert(&[7; 300])).unwrap();
            txn.commit().unwrap();
        }
    };
    let total = |engine: &Engine, table: &Table| -> u64 {
        let sum = |v: &Vec<u8>| u64::from_le_bytes(v.as_slice().try_into().unwrap());
        all(engine, table.tree(0)).values().map(sum).fold(0, u64::wrapping_add)
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|seed| scope.spawn(move || transfer(seed))).collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            assert_eq!(total(&engine, &table), 100 * ACCOUNTS, "a snapshot is consistent");
        }
    });
    assert!(engine.statistics().checkpoints > 0);
    // So that there is something to replay.
    engine.settings().set_checkpoint_log_bytes(1 << 30);
    engine.checkpoint().unwrap();
    transfer(9);
    let rows = [all(&engine, table.tree(0)), all(&engine, table.tree(1))];
    assert_eq!(rows[1].len(), 12_500);
    // Not closed: as after the death of the process, but for the lock on the directory.
    drop(table);
    drop(engine);
    let engine = loop {
        match Engine::open(Arc::new(RealFileSystem), options.clone()) {
            // The last thread is about to let go of it.
            Err(Error::InUse { .. }) => std::thread::yield_now(),
            other => break other.unwrap(),
        }
    };
    assert!(engine.statistics().replayed_operations > 0);
    check(&engine, &rows, "after the replay");
    engine.close().unwrap();
}
