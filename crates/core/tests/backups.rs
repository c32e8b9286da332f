//! Backups of an engine with all its threads, while others write to it.

mod scratch;

use scratch::Scratch;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use teak_core::file::{Fault, FileSystem, OpenMode, RealFileSystem, SimulatedFileSystem};
use teak_core::server::{
    BackupCopy, Chain, Engine, ExtentList, IfPrepared, NewTable, Pacer, Table, Transaction,
};
use teak_core::{
    CommitFlush, Error, ForceRecovery, Isolation, LockMode, Options, Result, TreeSpec, View, WaitRequest,
};

const WRITERS: u64 = 3;
const ACCOUNTS: u64 = 400;
const OPENING_BALANCE: u64 = 1000;
const BACKUPS: usize = 4;

fn open(dir: &Path) -> Engine {
    let options = Options {
        // A checkpoint each few hundred commits.
        checkpoint_log_bytes: 256 << 10,
        log_segment_bytes: 128 << 10,
        cache_bytes: 4 << 20,
        commit_flush: CommitFlush::Write,
        ..Options::new(dir)
    };
    Engine::open(Arc::new(RealFileSystem), options).unwrap()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn add(txn: &mut Transaction, table: &Table, key: &[u8], by: i64) -> Result<()> {
    let tree = table.tree(0);
    txn.lock(tree, key, LockMode::Exclusive, &WaitRequest::no_wait())?;
    let mut cursor = teak_core::server::Cursor::new(tree.clone());
    assert!(cursor.get(txn, View::Latest, key)?);
    let value = number(cursor.value()?).checked_add_signed(by).ok_or(Error::WouldBlock)?;
    // With a tail, so that rows take space and blocks change.
    let row = [&value.to_le_bytes()[..], &[value as u8; 300]].concat();
    txn.write(tree, key, teak_core::WriteOp::Update(&row))
}

fn account(number: u64) -> Vec<u8> {
    [&b"account/"[..], &(number % ACCOUNTS).to_be_bytes()].concat()
}

fn writer_key(writer: u64) -> Vec<u8> {
    [&b"writer/"[..], &writer.to_be_bytes()].concat()
}

/// Moves money about; each commit also counts the writer's transfers, in another table.
fn transfer(engine: &Engine, tables: &[Arc<Table>; 2], writer: u64, turn: u64) -> Result<()> {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let (from, to) = (turn * 7919 + writer, turn * 104_729 + writer * 31 + 1);
    if from % ACCOUNTS == to % ACCOUNTS {
        return Err(Error::WouldBlock);
    }
    add(&mut txn, &tables[0], &account(from), -1)?;
    add(&mut txn, &tables[0], &account(to), 1)?;
    add(&mut txn, &tables[1], &writer_key(writer), 1)?;
    txn.commit()
}

fn copy_to(dir: &Path, to: &Path, threads: usize) -> BackupCopy {
    let fs: Arc<dyn FileSystem> = Arc::new(RealFileSystem);
    BackupCopy::new((fs.clone(), dir), (fs, to), threads)
}

/// What a restored engine has: the balances' sum, and the transfers of each writer.
fn look(engine: &Engine) -> (u64, Vec<u64>) {
    for name in engine.table_names("").unwrap() {
        engine.check_table(&engine.open_table(&name).unwrap()).unwrap();
    }
    let mut txn = engine.begin(Isolation::Repeatable);
    let mut get = |table: &str, key: &[u8]| {
        let table = engine.open_table(table).unwrap();
        let mut cursor = teak_core::server::Cursor::new(table.tree(0).clone());
        assert!(cursor.get(&mut txn, View::Snapshot, key).unwrap());
        number(cursor.value().unwrap())
    };
    let sum = (0..ACCOUNTS).map(|number| get("accounts", &account(number))).sum();
    let transfers = (0..WRITERS).map(|writer| get("writers", &writer_key(writer))).collect();
    txn.rollback();
    (sum, transfers)
}

/// The same of a chain: of what is restored of it, and of the chain itself.
fn look_restored(chain: Chain, to: &Path, fs: &Arc<dyn FileSystem>) -> (u64, Vec<u64>) {
    chain.restore(fs, to, 2, &|_| Ok(())).unwrap();
    let engine = open(to);
    let found = look(&engine);
    engine.close().unwrap();
    let options = Options {
        force_recovery: ForceRecovery::ReadOnly,
        background: false,
        temp_dir: to.to_path_buf(),
        ..Options::new(chain.dir())
    };
    let unrestored = Engine::open(chain.files(), options).unwrap();
    assert!(unrestored.lost().is_empty() && look(&unrestored) == found);
    found
}

#[test]
fn a_backup_has_all_that_was_committed_before_its_end_and_nothing_by_half() {
    let home = Scratch::new("backups");
    let engine = open(&home.0.join("engine"));
    let tables = ["accounts", "writers"].map(|name| {
        engine.create(NewTable::new(name, &[TreeSpec::default()])).unwrap();
        engine.open_table(name).unwrap()
    });
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for (table, keys) in [
        (&tables[0], (0..ACCOUNTS).map(account).collect::<Vec<_>>()),
        (&tables[1], (0..WRITERS).map(writer_key).collect()),
    ] {
        let opening = if table.name() == "accounts" { OPENING_BALANCE } else { 0 };
        for key in keys {
            txn.write(table.tree(0), &key, teak_core::WriteOp::Insert(&opening.to_le_bytes())).unwrap();
        }
    }
    txn.commit().unwrap();
    let (stop, done) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; WRITERS as usize]);
    let mut below: Option<ExtentList> = None;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (engine, tables, stop, done) = (&engine, &tables, &stop, &done[writer as usize]);
            scope.spawn(move || {
                let mut turn = 0;
                while !stop.load(SeqCst) {
                    turn += 1;
                    match transfer(engine, tables, writer, turn) {
                        Ok(()) => drop(done.fetch_add(1, SeqCst)),
                        Err(Error::WouldBlock) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for i in 0..BACKUPS {
            let to = home.0.join(format!("backup{i}"));
            let mut copy = copy_to(&home.0.join("engine"), &to, 1 + i % 3);
            // Each but the first is on top of the one before.
            copy = below.iter().fold(copy, |copy, list| copy.on_top_of(list));
            for _ in 0..i {
                engine.checkpoint().unwrap();
                copy.round(&|_| Ok(())).unwrap();
            }
            engine.checkpoint().unwrap();
            let pause = engine.pause_checkpoints();
            copy.settle(&|_| Ok(())).unwrap();
            let before: Vec<u64> = done.iter().map(|done| done.load(SeqCst)).collect();
            let end = engine.durable_log_end().unwrap();
            let after: Vec<u64> = done.iter().map(|done| done.load(SeqCst)).collect();
            let (list, _) = copy.finish(end, &|_| Ok(())).unwrap();
            drop(pause);
            let path = to.join("extents");
            std::fs::write(&path, list.encode()).unwrap();
            assert_eq!(ExtentList::read(&RealFileSystem, &path).unwrap(), list);
            let dirs = (0..=i).map(|i| home.0.join(format!("backup{i}"))).collect();
            let fs: Arc<dyn FileSystem> = Arc::new(RealFileSystem);
            let chain = Chain::new(fs.clone(), dirs, list.clone()).unwrap();
            chain.verify(2, &|_| Ok(())).unwrap();
            chain.verify_log(end).unwrap();
            let (sum, transfers) = look_restored(chain, &home.0.join(format!("restored{i}")), &fs);
            below = Some(list);
            assert_eq!(sum, ACCOUNTS * OPENING_BALANCE, "backup {i}");
            for writer in 0..WRITERS as usize {
                // One more may have been committed, and not counted yet.
                let allowed = before[writer]..=after[writer] + 1;
                assert!(allowed.contains(&transfers[writer]), "{allowed:?} {transfers:?}");
            }
        }
        stop.store(true, SeqCst);
    });
    engine.close().unwrap();
}

/// An engine on a simulated disk with a table of a few hundred blocks, all in its image.
fn with_blocks(fs: &SimulatedFileSystem) -> Engine {
    let options = Options { background: false, ..Options::new("/teak") };
    let engine = Engine::open(Arc::new(fs.clone()), options).unwrap();
    engine.create(NewTable::new("t", &[TreeSpec { block_bytes: 4096, ..TreeSpec::default() }])).unwrap();
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for i in 0..5000u32 {
        let value: Vec<u8> = (0..200u32).map(|j| (i.wrapping_mul(2_654_435_761) >> (j % 24)) as u8).collect();
        txn.write(table.tree(0), &i.to_be_bytes(), teak_core::WriteOp::Insert(&value)).unwrap();
    }
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    engine
}

fn simulated_copy(fs: &SimulatedFileSystem, threads: usize) -> BackupCopy {
    let from: Arc<dyn FileSystem> = Arc::new(fs.clone());
    BackupCopy::new(
        (from, Path::new("/teak")),
        (Arc::new(SimulatedFileSystem::new(2)), Path::new("/copy")),
        threads,
    )
}

#[test]
fn a_second_round_copies_what_has_changed() {
    [1, 3].into_iter().for_each(copy_what_has_changed);
}

fn copy_what_has_changed(threads: usize) {
    let fs = SimulatedFileSystem::new(1);
    let engine = with_blocks(&fs);
    let mut copy = simulated_copy(&fs, threads);
    let first = copy.round(&|_| Ok(())).unwrap();
    assert!(first.copied_bytes > 200_000 && first.missed == 0, "{first:?}");
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.write(table.tree(0), &7u32.to_be_bytes(), teak_core::WriteOp::Update(b"new")).unwrap();
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    let second = copy.round(&|_| Ok(())).unwrap();
    assert_eq!(second.checkpoint, first.checkpoint + 1);
    assert!(second.copied_bytes < first.copied_bytes / 10, "{second:?} after {first:?}");
}

/// Where threads wait for each other when they tell what they have written, until so many have come.
struct Meeting {
    wanted: usize,
    /// Calls before it begins; and who came.
    state: Mutex<(usize, HashSet<ThreadId>)>,
    came: Condvar,
}

impl Meeting {
    fn of(wanted: usize, calls_before: usize) -> Meeting {
        Meeting { wanted, state: Mutex::new((calls_before, HashSet::new())), came: Condvar::new() }
    }

    fn come(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        if state.0 > 0 {
            state.0 -= 1;
            return Ok(());
        }
        state.1.insert(std::thread::current().id());
        self.came.notify_all();
        let limit = Duration::from_secs(60);
        let waited = self.came.wait_timeout_while(state, limit, |(_, threads)| threads.len() < self.wanted);
        assert!(!waited.unwrap().1.timed_out(), "not so many threads work on one table at a time");
        Ok(())
    }
}

#[test]
fn several_threads_copy_one_table_and_restore_it() {
    const THREADS: usize = 3;
    let fs = SimulatedFileSystem::new(1);
    let engine = with_blocks(&fs);
    let to: Arc<dyn FileSystem> = Arc::new(SimulatedFileSystem::new(2));
    let copied = |dir: &str, threads: usize, pacer: Pacer<'_>| {
        let from: Arc<dyn FileSystem> = Arc::new(fs.clone());
        let mut copy = BackupCopy::new((from, Path::new("/teak")), (to.clone(), Path::new(dir)), threads);
        let _pause = engine.pause_checkpoints();
        let round = copy.settle(pacer).unwrap();
        let (list, _) = copy.finish(engine.durable_log_end().unwrap(), &|_| Ok(())).unwrap();
        (round, list)
    };
    // The system trees come first, and are one thread's work.
    let meeting = Meeting::of(THREADS, 1);
    let (round, list) = copied("/shared", THREADS, &|_| meeting.come());
    assert_eq!((round, list.clone()), copied("/single", 1, &|_| Ok(())), "they have copied the same");
    let chain = |dir: &str| Chain::new(to.clone(), vec![dir.into()], list.clone()).unwrap();
    let [verified, restored] = [(); 2].map(|()| Meeting::of(THREADS, 0));
    chain("/shared").verify(THREADS, &|_| verified.come()).unwrap();
    chain("/shared").restore(&to, Path::new("/r3"), THREADS, &|_| restored.come()).unwrap();
    chain("/single").restore(&to, Path::new("/r1"), 1, &|_| Ok(())).unwrap();
    // What was restored has the same extents.
    for dir in ["/r1", "/r3"] {
        chain(dir).verify(1, &|_| Ok(())).unwrap();
    }
}

#[test]
fn a_backup_on_top_of_another_has_what_has_changed() {
    let fs = SimulatedFileSystem::new(1);
    let engine = with_blocks(&fs);
    let settled = |mut copy: BackupCopy| {
        let _pause = engine.pause_checkpoints();
        copy.settle(&|_| Ok(())).unwrap();
        copy.finish(engine.durable_log_end().unwrap(), &|_| Ok(())).unwrap().0
    };
    let full = settled(simulated_copy(&fs, 1));
    let table = engine.open_table("t").unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.write(table.tree(0), &7u32.to_be_bytes(), teak_core::WriteOp::Update(b"new")).unwrap();
    txn.commit().unwrap();
    engine.checkpoint().unwrap();
    let next = settled(simulated_copy(&fs, 1).on_top_of(&full));
    assert!(next.own_bytes() < full.own_bytes() / 10 && next.bytes() >= full.bytes());
    assert_eq!((full.backup, next.backup, full.engine_id), (0, 1, next.engine_id));
}

#[test]
fn of_the_log_only_what_a_start_needs_is_copied() {
    let fs = SimulatedFileSystem::new(1);
    let engine = with_blocks(&fs);
    let table = engine.open_table("t").unwrap();
    let write = |value: &[u8]| {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        txn.write(table.tree(0), &7u32.to_be_bytes(), teak_core::WriteOp::Update(value)).unwrap();
        txn.commit().unwrap();
    };
    // In the segment that is written to, and in blocks since the checkpoint.
    (0..1000u32).for_each(|i| write(&[i as u8; 400]));
    engine.checkpoint().unwrap();
    write(b"newer");
    let target = SimulatedFileSystem::new(2);
    let files: Arc<dyn FileSystem> = Arc::new(target.clone());
    let from: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let mut copy = BackupCopy::new((from, Path::new("/teak")), (files.clone(), Path::new("/copy")), 1);
    let pause = engine.pause_checkpoints();
    copy.settle(&|_| Ok(())).unwrap();
    let end = engine.durable_log_end().unwrap();
    let (list, written) = copy.finish(end, &|_| Ok(())).unwrap();
    drop(pause);
    assert!(written < 8192, "{written} bytes for one row in the log");
    let chain = Chain::new(files.clone(), vec!["/copy".into()], list).unwrap();
    chain.verify(1, &|_| Ok(())).and_then(|()| chain.verify_log(end)).unwrap();
    let options = Options { background: false, ..Options::new("/copy") };
    let copied = Engine::open(files, options).unwrap();
    let mut cursor = teak_core::server::Cursor::new(copied.open_table("t").unwrap().tree(0).clone());
    let mut txn = copied.begin(Isolation::ReadCommitted);
    assert!(cursor.get(&mut txn, View::Snapshot, &7u32.to_be_bytes()).unwrap());
    assert_eq!(cursor.value().unwrap(), b"newer");
}

#[test]
fn each_damaged_byte_of_a_chain_is_found_wherever_it_lies() {
    let fs = SimulatedFileSystem::new(1);
    let engine = with_blocks(&fs);
    let target = SimulatedFileSystem::new(2);
    let files: Arc<dyn FileSystem> = Arc::new(target.clone());
    let backup = |to: &str, below: Option<&ExtentList>| {
        let from: Arc<dyn FileSystem> = Arc::new(fs.clone());
        let copy = BackupCopy::new((from, Path::new("/teak")), (files.clone(), Path::new(to)), 1);
        let mut copy = below.into_iter().fold(copy, BackupCopy::on_top_of);
        let _pause = engine.pause_checkpoints();
        copy.settle(&|_| Ok(())).unwrap();
        let end = engine.durable_log_end().unwrap();
        (copy.finish(end, &|_| Ok(())).unwrap().0, end)
    };
    let write = |value: &[u8]| {
        let table = engine.open_table("t").unwrap();
        let mut txn = engine.begin(Isolation::ReadCommitted);
        txn.write(table.tree(0), &7u32.to_be_bytes(), teak_core::WriteOp::Update(value)).unwrap();
        txn.commit().unwrap();
    };
    let (full, _) = backup("/full", None);
    write(b"new");
    engine.checkpoint().unwrap();
    write(b"newer, in the log");
    let (next, end) = backup("/next", Some(&full));
    let dirs = || ["/full", "/next"].map(Into::into).to_vec();
    let whole = || Chain::new(files.clone(), dirs(), next.clone()).unwrap();
    let alone = || Chain::last_alone(files.clone(), "/next".into(), next.clone());
    let is_sound = |chain: Chain| chain.verify(1, &|_| Ok(())).and_then(|()| chain.verify_log(end)).is_ok();
    assert!(is_sound(whole()) && is_sound(alone()));

    let flipped = |path: &Path, at: u64| {
        let file = target.open(path, OpenMode::Existing).unwrap();
        let mut byte = [0];
        file.read_exact_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 1]).unwrap();
    };
    // What the newer one takes from the one below: not all of it.
    let path = Path::new("/full/s1.teak");
    let bytes = target.open(path, OpenMode::Existing).unwrap().len().unwrap();
    let mut found = 0;
    for at in (0..bytes).step_by(997) {
        flipped(path, at);
        found += u64::from(!is_sound(whole()));
        assert!(is_sound(alone()), "it is not its own");
        flipped(path, at);
    }
    assert!(found * 997 * 10 > bytes * 8, "{found} in {bytes} bytes");
    // A record of the log, up to the last byte.
    let name = target.list(Path::new("/next/log")).unwrap().remove(0);
    let path = Path::new("/next/log").join(name);
    let last = target.open(&path, OpenMode::Existing).unwrap().len().unwrap() - 1;
    flipped(&path, last - 8);
    assert!(!is_sound(whole()) && !is_sound(alone()));
    assert!(alone().restore(&files, Path::new("/restored"), 1, &|_| Ok(())).is_err());
}

#[test]
fn damage_is_left_to_the_next_round_until_there_is_none_and_then_named() {
    [1, 3].into_iter().for_each(meet_damage);
}

fn meet_damage(threads: usize) {
    let fs = SimulatedFileSystem::new(1);
    let engine = with_blocks(&fs);
    let damaged = fs.open(Path::new("/teak/s1.teak"), OpenMode::Existing).unwrap();
    damaged.write_at(40_000, &[7; 100]).unwrap();
    let mut copy = simulated_copy(&fs, threads);
    assert!(copy.round(&|_| Ok(())).unwrap().missed > 0);
    let pause = engine.pause_checkpoints();
    match copy.settle(&|_| Ok(())) {
        Err(Error::Corrupt { path, offset, .. }) => {
            assert_eq!(path, Path::new("/teak/s1.teak"));
            assert!((30_000..=40_000).contains(&offset), "{offset}");
        }
        other => panic!("{other:?}"),
    }
    // It has no image, and cannot become one.
    let end = engine.durable_log_end().unwrap();
    assert!(copy.finish(end, &|_| Ok(())).is_err());
    drop(pause);
}

#[test]
fn who_needs_a_checkpoint_while_they_are_paused_is_told_so() {
    let fs = SimulatedFileSystem::new(1);
    let engine = with_blocks(&fs);
    let table = engine.open_table("t").unwrap();
    let pauses = [engine.pause_checkpoints(), engine.pause_checkpoints()];
    assert!(matches!(engine.checkpoint(), Err(Error::CheckpointsPaused)));
    let before = engine.statistics().checkpoints;
    // As much log as would be several checkpoints.
    engine.settings().set_checkpoint_log_bytes(64 << 10);
    for round in 0..20u32 {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for i in 0..200u32 {
            let value = [round as u8; 200];
            txn.write(table.tree(0), &i.to_be_bytes(), teak_core::WriteOp::Update(&value)).unwrap();
        }
        txn.commit().unwrap();
    }
    assert_eq!(engine.statistics().checkpoints, before);
    drop(pauses);
    engine.checkpoint().unwrap();
    assert!(engine.statistics().checkpoints > before);
}

#[test]
fn a_log_that_ends_with_what_found_no_space_can_be_copied() {
    for after in 0..12 {
        let fs = SimulatedFileSystem::new(1);
        let engine = with_blocks(&fs);
        let table = engine.open_table("t").unwrap();
        fs.fail_from(after, Fault::Enospc);
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for i in 0..500u32 {
            let key = (100_000 + i).to_be_bytes();
            let written = txn.write(table.tree(0), &key, teak_core::WriteOp::Insert(&[i as u8; 200]));
            assert!(written.is_ok() || matches!(written, Err(Error::DiskFull { .. })), "{written:?}");
        }
        let committed = txn.commit();
        fs.heal();
        // A part of the log is void, and its bytes were never written.
        let mut copy = simulated_copy(&fs, 1);
        let pause = engine.pause_checkpoints();
        copy.settle(&|_| Ok(())).unwrap();
        let end = engine.durable_log_end().unwrap();
        copy.finish(end, &|_| Ok(())).unwrap_or_else(|error| panic!("{after}, {committed:?}: {error}"));
        drop(pause);
    }
}

#[test]
fn what_is_dropped_and_created_behind_the_end_makes_no_difference() {
    let (fs, target) = (SimulatedFileSystem::new(1), SimulatedFileSystem::new(2));
    let engine = with_blocks(&fs);
    let mut copy = BackupCopy::new(
        (Arc::new(fs.clone()), Path::new("/teak")),
        (Arc::new(target.clone()), Path::new("/copy")),
        1,
    );
    let pause = engine.pause_checkpoints();
    copy.settle(&|_| Ok(())).unwrap();
    // The log alone has it, and it has its file.
    engine.create(NewTable::new("made", &[TreeSpec::default()])).unwrap();
    let table = engine.open_table("made").unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.write(table.tree(0), b"key", teak_core::WriteOp::Insert(b"value")).unwrap();
    txn.commit().unwrap();
    drop(table);
    let end = engine.durable_log_end().unwrap();
    engine.drop("made", IfPrepared::Refuse).unwrap();
    // A table is being created: its file is there, and nothing is in it yet.
    fs.open(Path::new("/teak/s99.teak"), OpenMode::Create).unwrap();
    copy.finish(end, &|_| Ok(())).unwrap();
    assert!(fs.exists(Path::new("/teak/s2.teak")).unwrap());
    drop(pause);
    assert!(!fs.exists(Path::new("/teak/s2.teak")).unwrap(), "the file of a dropped table stays");

    let options = Options { background: false, ..Options::new("/copy") };
    let restored = Engine::open(Arc::new(target), options).unwrap();
    assert!(restored.lost().is_empty(), "{:?}", restored.lost());
    let table = restored.open_table("made").unwrap();
    let mut txn = restored.begin(Isolation::ReadCommitted);
    let mut cursor = teak_core::server::Cursor::new(table.tree(0).clone());
    assert!(cursor.get(&mut txn, View::Latest, b"key").unwrap());
    txn.rollback();
}

#[test]
fn a_pacer_ends_a_backup() {
    let fs = SimulatedFileSystem::new(1);
    let _engine = with_blocks(&fs);
    let interrupted = simulated_copy(&fs, 1).round(&|_| Err(Error::Interrupted));
    assert!(matches!(interrupted, Err(Error::Interrupted)), "{interrupted:?}");
}
