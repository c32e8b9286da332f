//! Real threads on one engine, with checkpoints and eviction in the background: money is neither made nor lost, a
//! snapshot is one moment in all trees, ranges keep phantoms out, and of trees that come and go nothing is left.

#[path = "simulation/seeds.rs"]
#[allow(dead_code)]
mod seeds;
#[path = "simulation/sound.rs"]
mod sound;
#[path = "simulation/subject.rs"]
mod subject;

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use seeds::Random;
use teak_core::file::SimulatedFileSystem;
use teak_core::server::{Alteration, NewTable};
use teak_core::{Error, Isolation, LockMode, Options, Result, Seek, TreeSpec, View, WaitRequest, WriteOp};

const ACCOUNTS: usize = 200;
const START: u64 = 1000;
const LASTS: Duration = Duration::from_secs(2);

/// Ends the other threads' loops, also when a thread panics.
struct Finish<'a>(&'a AtomicBool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn options() -> Options {
    Options {
        cache_bytes: 2 << 20,
        checkpoint_log_bytes: 256 << 10,
        log_segment_bytes: 128 << 10,
        ..Options::new("/teak")
    }
}

fn engine(fs: &SimulatedFileSystem) -> subject::Engine {
    subject::Engine::open(Arc::new(fs.clone()), options()).unwrap()
}

/// What the threads have left in the files is whole: as of a kill now, and as of an orderly end of the engine that
/// recovers from it.
fn end(engine: subject::Engine, fs: &SimulatedFileSystem) {
    let fs = fs.kill();
    drop(engine);
    let quiet = Options { background: false, ..options() };
    for when in ["after a kill", "after an orderly end"] {
        let engine = subject::Engine::open(Arc::new(fs.clone()), quiet.clone()).unwrap();
        sound::assert_sound(&engine, when, false).unwrap();
        engine.close().unwrap();
    }
}

fn wait() -> WaitRequest<'static> {
    WaitRequest::waiting(Duration::from_secs(60))
}

fn spec() -> TreeSpec {
    TreeSpec { block_bytes: 4096, ..TreeSpec::default() }
}

fn account(n: usize) -> Vec<u8> {
    format!("account/{n:06}").into_bytes()
}

/// A row: the balance, and something to fill blocks with.
fn row(balance: u64) -> Vec<u8> {
    [&balance.to_be_bytes()[..], &[b'.'; 100]].concat()
}

fn balance(row: &[u8]) -> u64 {
    u64::from_be_bytes(row[..8].try_into().unwrap())
}

fn by_balance(balance: u64, account: &[u8]) -> Vec<u8> {
    [&balance.to_be_bytes()[..], account].concat()
}

fn set_balance(
    txn: &mut subject::Transaction,
    table: &subject::Table,
    key: &[u8],
    old: Option<u64>,
    new: u64,
) -> Result<()> {
    let value = row(new);
    let op = if old.is_some() { WriteOp::Update(&value) } else { WriteOp::Insert(&value) };
    txn.write(table.tree(0), key, op)?;
    if let Some(old) = old {
        txn.write(table.tree(1), &by_balance(old, key), WriteOp::Delete)?;
    }
    txn.write(table.tree(1), &by_balance(new, key), WriteOp::Insert(b""))
}

fn transfer(engine: &subject::Engine, table: &subject::Table, random: &mut Random) -> Result<()> {
    let from = account(random.below(ACCOUNTS));
    let to = account(random.below(ACCOUNTS));
    if from == to {
        return Ok(());
    }
    let mut txn = engine.begin(Isolation::Repeatable);
    if random.percent(30) {
        txn.open_snapshot();
    }
    let mut cursor = subject::Cursor::new(table.tree(0).clone());
    let mut balances = Vec::new();
    for key in [&from, &to] {
        txn.lock(table.tree(0), key, LockMode::Exclusive, &wait())?;
        if txn.changed_since_snapshot(table.tree(0), key)? {
            return Err(Error::SnapshotConflict);
        }
        assert!(cursor.get(&mut txn, View::Latest, key)?);
        balances.push(balance(cursor.value()?));
    }
    let amount = random.below(balances[0] as usize + 1).min(100) as u64;
    let savepoint = txn.savepoint();
    set_balance(&mut txn, table, &from, Some(balances[0]), balances[0] - amount)?;
    if random.percent(10) {
        txn.rollback_to(savepoint)?;
        set_balance(&mut txn, table, &from, Some(balances[0]), balances[0] - amount)?;
    }
    set_balance(&mut txn, table, &to, Some(balances[1]), balances[1] + amount)?;
    if random.percent(5) {
        txn.rollback();
        return Ok(());
    }
    txn.commit()
}

/// The balances of one snapshot, from the rows and from the index.
fn audit(txn: &mut subject::Transaction, table: &subject::Table) -> Vec<(Vec<u8>, u64)> {
    let mut rows = Vec::new();
    let mut cursor = subject::Cursor::new(table.tree(0).clone());
    let mut more = cursor.first(txn, View::Snapshot).unwrap();
    while more {
        rows.push((cursor.key().to_vec(), balance(cursor.value().unwrap())));
        more = cursor.next(txn).unwrap();
    }
    let mut index = Vec::new();
    let mut cursor = subject::Cursor::new(table.tree(1).clone());
    let mut more = cursor.last(txn, View::Snapshot).unwrap();
    while more {
        let (money, account) = cursor.key().split_at(8);
        index.push((account.to_vec(), u64::from_be_bytes(money.try_into().unwrap())));
        more = cursor.prev(txn).unwrap();
    }
    index.sort();
    assert!(rows == index, "rows and index of one snapshot differ: {} and {}", rows.len(), index.len());
    assert_eq!(rows.len(), ACCOUNTS);
    assert_eq!(rows.iter().map(|(_, money)| money).sum::<u64>(), ACCOUNTS as u64 * START);
    rows
}

#[test]
fn transfers_keep_the_sum_in_every_snapshot() {
    let fs = SimulatedFileSystem::new(1);
    let engine = engine(&fs);
    engine.create(NewTable::new("bank", &[spec(), spec()])).unwrap();
    let table = engine.open_table("bank").unwrap();
    let mut txn = engine.begin(Isolation::Repeatable);
    for n in 0..ACCOUNTS {
        set_balance(&mut txn, &table, &account(n), None, START).unwrap();
    }
    txn.commit().unwrap();

    let done = AtomicBool::new(false);
    let transfers = AtomicU64::new(0);
    let audits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let (engine, table, done, transfers) = (&engine, &table, &done, &transfers);
            scope.spawn(move || {
                let _finish = Finish(done);
                let mut random = Random::new(seed);
                while !done.load(Ordering::SeqCst) {
                    match transfer(engine, table, &mut random) {
                        Ok(()) => drop(transfers.fetch_add(1, Ordering::SeqCst)),
                        Err(Error::Deadlock | Error::SnapshotConflict) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for old in [false, false, true] {
            let (engine, table, done, audits) = (&engine, &table, &done, &audits);
            scope.spawn(move || {
                let _finish = Finish(done);
                while !done.load(Ordering::SeqCst) {
                    let mut txn = engine.begin(Isolation::Repeatable);
                    let first = audit(&mut txn, table);
                    let again = Instant::now();
                    // An old snapshot goes on seeing its moment.
                    while old && again.elapsed() < LASTS / 4 && !done.load(Ordering::SeqCst) {
                        assert!(audit(&mut txn, table) == first, "a snapshot has changed");
                    }
                    audits.fetch_add(1, Ordering::SeqCst);
                    txn.rollback();
                }
            });
        }
        let _finish = Finish(&done);
        let start = Instant::now();
        while start.elapsed() < LASTS && !done.load(Ordering::SeqCst) {
            engine.checkpoint().unwrap();
            // While everything goes on.
            engine.check_table(&table).unwrap();
            let findings = engine.check_files(&mut |_| Ok(())).unwrap();
            assert!(findings.is_empty(), "{findings}");
            let so_far = transfers.load(Ordering::SeqCst);
            let moves_on = || transfers.load(Ordering::SeqCst) >= so_far + 5 || done.load(Ordering::SeqCst);
            while !moves_on() && start.elapsed() < LASTS {
                std::thread::yield_now();
            }
        }
    });
    assert!(transfers.load(Ordering::SeqCst) > 50 && audits.load(Ordering::SeqCst) > 5);
    audit(&mut engine.begin(Isolation::Repeatable), &table);
    engine.check_table(&table).unwrap();
    drop(table);
    end(engine, &fs);
}

/// Adds a row to a group unless it is full, serializably: the range is locked, then counted.
fn join(engine: &subject::Engine, table: &subject::Table, group: u8, row: u64, limit: usize) -> Result<bool> {
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::Serializable);
    let (from, to) = ([group], [group + 1]);
    txn.lock_range(tree, Bound::Included(&from), Bound::Excluded(&to), LockMode::Shared, &wait())?;
    let mut cursor = subject::Cursor::new(tree.clone());
    let mut members = 0;
    let mut more = cursor.seek(&mut txn, View::Pending, Seek::AtOrAfter, &from)?;
    while more && cursor.key() < &to[..] {
        let key = cursor.key().to_vec();
        txn.lock(tree, &key, LockMode::Shared, &wait())?;
        members += usize::from(cursor.refresh(&mut txn, View::Latest)?);
        more = cursor.seek(&mut txn, View::Pending, Seek::After, &key)?;
    }
    if members >= limit {
        txn.rollback();
        return Ok(false);
    }
    let key = [&[group][..], &row.to_be_bytes()].concat();
    txn.lock(tree, &key, LockMode::Exclusive, &wait())?;
    txn.check_insert(tree, &key, &wait())?;
    txn.write(tree, &key, WriteOp::Insert(b"member"))?;
    // Once more: a range may have been locked since (see `lock/`).
    txn.check_insert(tree, &key, &wait())?;
    txn.commit()?;
    Ok(true)
}

#[test]
fn no_phantom_gets_into_a_locked_range() {
    const GROUPS: u8 = 20;
    const LIMIT: usize = 5;
    let fs = SimulatedFileSystem::new(1);
    let engine = engine(&fs);
    engine.create(NewTable::new("groups", &[spec()])).unwrap();
    let table = engine.open_table("groups").unwrap();
    let next = AtomicU64::new(1);
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let (engine, table, next) = (&engine, &table, &next);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut full = 0;
                while full < GROUPS {
                    match join(
                        engine,
                        table,
                        full,
                        next.fetch_add(1, Ordering::SeqCst) ^ random.next() << 32,
                        LIMIT,
                    ) {
                        Ok(true) | Err(Error::Deadlock) => {}
                        Ok(false) => full += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let mut txn = engine.begin(Isolation::Repeatable);
    let mut cursor = subject::Cursor::new(table.tree(0).clone());
    let mut members = vec![0; GROUPS as usize];
    let mut more = cursor.first(&mut txn, View::Snapshot).unwrap();
    while more {
        members[cursor.key()[0] as usize] += 1;
        more = cursor.next(&mut txn).unwrap();
    }
    assert_eq!(members, vec![LIMIT; GROUPS as usize]);
    drop((txn, cursor, table));
    end(engine, &fs);
}

/// One transaction on all trees of the table: a load of new rows, or changes of old ones, of which some are large.
/// Each `writer` has keys of its own.
fn write_anything(engine: &subject::Engine, writer: u64, number: u64, random: &mut Random) -> Result<()> {
    let table = engine.open_table("t")?;
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let is_load = random.percent(10);
    for i in 0..if is_load { 400 } else { 20u64 } {
        let row = if is_load { 1000 * number + i } else { random.below(300) as u64 };
        let key = [&[u8::from(is_load)][..], &writer.to_be_bytes(), &row.to_be_bytes()].concat();
        let value = seeds::value(random, if is_load { 200 } else { 5000 });
        for at in 0..table.trees() {
            let tree = table.tree(at);
            let exists = subject::Cursor::new(tree.clone()).get(&mut txn, View::Latest, &key)?;
            match (exists, is_load) {
                (false, true) => txn.append(tree, &key, &value)?,
                (false, false) => txn.write(tree, &key, WriteOp::Insert(&value))?,
                (true, _) if random.percent(40) => txn.write(tree, &key, WriteOp::Delete)?,
                (true, _) => txn.write(tree, &key, WriteOp::Update(&value))?,
            }
        }
    }
    match random.percent(10) {
        true => txn.rollback(),
        false => txn.commit()?,
    }
    Ok(())
}

#[test]
fn trees_that_come_and_go_while_checkpoints_run_leave_no_space_behind() {
    let fs = SimulatedFileSystem::new(1);
    let engine = engine(&fs);
    engine.create(NewTable::new("t", &[spec(), spec()])).unwrap();
    let done = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    // Whoever changes the trees keeps writers out, as a server does.
    let definition = RwLock::new(());
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (engine, done, written, definition) = (&engine, &done, &written, &definition);
            scope.spawn(move || {
                let _finish = Finish(done);
                let mut random = Random::new(writer);
                for number in 0.. {
                    if done.load(Ordering::SeqCst) {
                        break;
                    }
                    let _unchanged = definition.read().unwrap();
                    write_anything(engine, writer, number, &mut random).unwrap();
                    written.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let (engine, done, written, definition) = (&engine, &done, &written, &definition);
        scope.spawn(move || {
            let _finish = Finish(done);
            let mut random = Random::new(9);
            let mut next = 0;
            while !done.load(Ordering::SeqCst) {
                if written.load(Ordering::SeqCst) < next {
                    std::thread::yield_now();
                    continue;
                }
                let _alone = definition.write().unwrap();
                let layout = [
                    subject::TreeSource::Keep(0),
                    subject::TreeSource::New(spec()),
                    subject::TreeSource::New(spec()),
                ];
                engine
                    .change(&[Alteration::new("t", &layout[..1 + random.below(3)], b"").into()], &[])
                    .unwrap();
                next = written.load(Ordering::SeqCst) + random.below(10) as u64;
            }
        });
        let _finish = Finish(done);
        let start = Instant::now();
        while start.elapsed() < LASTS && !done.load(Ordering::SeqCst) {
            engine.checkpoint().unwrap();
            let findings = engine.check_files(&mut |_| Ok(())).unwrap();
            assert!(findings.is_empty(), "{findings}");
        }
    });
    assert!(written.load(Ordering::SeqCst) > 50);
    end(engine, &fs);
}
