//! Indexes that are built while others write: whatever happens meanwhile, they end with what the rows say.
//!
//! A row's value is two numbers. Tree 1 has an entry for the first, with the row's key in its own; tree 2 has one for
//! the second, which must be unique.

use super::*;
use crate::{LockMode, WaitRequest};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

pub(super) fn key(i: u64) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

fn row(first: u64, second: u64) -> Vec<u8> {
    [key(first), key(second)].concat()
}

/// What the trees have of a row.
fn entries(key: &[u8], row: &[u8]) -> [(Vec<u8>, Vec<u8>); 2] {
    let (first, second) = row.split_at(8);
    [([first, key].concat(), Vec::new()), (second.to_vec(), key.to_vec())]
}

fn take_apart(key: &[u8], row: &[u8], feed: &mut Feed) -> Result<()> {
    let parts = entries(key, row);
    parts.iter().enumerate().try_for_each(|(part, (key, value))| feed.add(part, key, value))
}

pub(super) fn table(seed: u64) -> (SimulatedFileSystem, Engine, Arc<Table>) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = open(&fs);
    engine.create(NewTable { meta: b"meta", ..NewTable::new("t", &specs(3)) }).unwrap();
    let table = engine.open_table("t").unwrap();
    (fs, engine, table)
}

fn begin(engine: &Engine, table: &Arc<Table>) -> OnlineBuild {
    engine.build_online(table, table, &[1, 2], 1 << 20, 7).unwrap()
}

fn build(engine: &Engine, online: &OnlineBuild, table: &Table) -> Result<()> {
    let mut build = online.build()?;
    let mut txn = engine.begin(Isolation::ReadCommitted);
    build.feed(&mut txn, table.tree(0), || Ok(take_apart), |_| Ok(()))?;
    build.finish(|_| Ok(()))
}

fn catch_up(online: &mut OnlineBuild) -> Result<u64> {
    online.catch_up(take_apart, |_| Ok(()))
}

/// Both trees have what the rows say.
fn check(engine: &Engine, table: &Table, what: &str) {
    let rows = all(engine, table.tree(0));
    for part in 0..2 {
        let wanted: Rows = rows.iter().map(|(key, row)| entries(key, row)[part].clone()).collect();
        assert_eq!(wanted.len(), rows.len(), "{what}: the second number is unique");
        assert_eq!(all(engine, table.tree(part + 1)), wanted, "{what}, tree {}", part + 1);
    }
}

pub(super) fn insert_rows(engine: &Engine, table: &Table, rows: std::ops::Range<u64>) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for i in rows {
        txn.write(table.tree(0), &key(i), WriteOp::Insert(&row(i % 10, i))).unwrap();
    }
    txn.commit().unwrap();
}

/// Some transactions, of which the n-th writes keys of its own.
pub(super) struct Writers<'a> {
    engine: &'a Engine,
    table: &'a Table,
    pub(super) random: Random,
    open: Vec<Option<Transaction>>,
    xids: u64,
}

impl<'a> Writers<'a> {
    const KEYS: u64 = 40;

    pub(super) fn new(engine: &'a Engine, table: &'a Table, seed: u64) -> Writers<'a> {
        let open = (0..4).map(|_| None).collect();
        Writers { engine, table, random: Random(seed), open, xids: seed << 20 }
    }

    pub(super) fn step(&mut self) {
        let n = self.random.below(self.open.len() as u64) as usize;
        let mut txn = self.open[n].take().unwrap_or_else(|| self.engine.begin(Isolation::Repeatable));
        match self.random.below(12) {
            0 => txn.rollback(),
            1 | 2 => txn.commit().unwrap(),
            3 => self.prepare(txn),
            4 => {
                let savepoint = txn.savepoint();
                (0..3).for_each(|_| self.write(&mut txn, n));
                txn.rollback_to(savepoint).unwrap();
                self.open[n] = Some(txn);
            }
            5 => {
                // Rows in order, which would go past the log.
                let first = 1_000_000 * (self.xids + 1) + n as u64;
                self.xids += 1;
                for i in 0..self.random.below(2000) {
                    let i = first + i * 10;
                    txn.append(self.table.tree(0), &key(i), &row(i, i)).unwrap();
                }
                self.open[n] = Some(txn);
            }
            _ => {
                self.write(&mut txn, n);
                self.open[n] = Some(txn);
            }
        }
    }

    fn write(&mut self, txn: &mut Transaction, n: usize) {
        let (rows, writers) = (self.table.tree(0), self.open.len() as u64);
        let at = key(self.random.below(Self::KEYS) * writers + n as u64);
        // A prepared transaction may have it.
        if txn.lock(rows, &at, LockMode::Exclusive, &WaitRequest::no_wait()).is_err() {
            return;
        }
        let mut cursor = Cursor::new(rows.clone());
        let there = cursor.get(txn, View::Latest, &at).unwrap();
        // Few numbers: two rows often have one.
        let value = row(self.random.below(5), self.random.below(4 * Self::KEYS * writers));
        let op = match there {
            true if self.random.below(3) == 0 => WriteOp::Delete,
            true => WriteOp::Update(&value),
            false => WriteOp::Insert(&value),
        };
        txn.write(rows, &at, op).unwrap();
    }

    /// Decided by somebody else, later.
    fn prepare(&mut self, mut txn: Transaction) {
        if txn.has_writes() {
            self.xids += 1;
            txn.prepare(&self.xids.to_be_bytes()).unwrap();
        }
    }

    pub(super) fn decide(&mut self) {
        for xid in self.engine.prepared() {
            match self.random.below(3) {
                0 => self.engine.rollback_prepared(&xid).unwrap(),
                _ => self.engine.commit_prepared(&xid).unwrap(),
            }
        }
    }

    /// All are decided.
    pub(super) fn end(&mut self) {
        for n in 0..self.open.len() {
            match self.open[n].take() {
                Some(txn) if self.random.below(2) == 0 => txn.rollback(),
                Some(txn) => txn.commit().unwrap(),
                None => {}
            }
        }
        self.decide();
    }

    /// Rows whose second number another has, too, get one of their own.
    pub(super) fn make_unique(&mut self) {
        let mut seen = std::collections::BTreeSet::new();
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        for (at, value) in all(self.engine, self.table.tree(0)) {
            if !seen.insert(value[8..].to_vec()) {
                self.xids += 1;
                let value = row(1, (1 << 40) + self.xids);
                txn.write(self.table.tree(0), &at, WriteOp::Update(&value)).unwrap();
            }
        }
        txn.commit().unwrap();
    }
}

#[test]
fn whatever_is_written_meanwhile_the_trees_end_with_what_the_rows_say() {
    let mut finished = 0;
    'seeds: for seed in 0..60 {
        let (fs, engine, table) = table(seed);
        insert_rows(&engine, &table, 0..seed * 7);
        let mut online = begin(&engine, &table);
        let followed = table.clone();
        let mut writers = Writers::new(&engine, &followed, seed);
        (0..writers.random.below(100)).for_each(|_| writers.step());
        build(&engine, &online, &table).unwrap();
        for _ in 0..writers.random.below(5) {
            (0..writers.random.below(100)).for_each(|_| writers.step());
            match catch_up(&mut online) {
                Ok(_) => {}
                // More rows with numbers of others than may wait: that is the end of the build.
                Err(Error::DuplicateEntry { part: 1, .. }) => continue 'seeds,
                Err(error) => panic!("seed {seed}: {error}"),
            }
            if writers.random.below(3) == 0 {
                writers.decide();
            }
        }
        writers.end();
        let rows = all(&engine, table.tree(0));
        let numbers: std::collections::BTreeSet<_> = rows.values().map(|row| row[8..].to_vec()).collect();
        let outcome = catch_up(&mut online).and_then(|_| online.finish());
        if numbers.len() < rows.len() {
            assert!(
                matches!(outcome, Err(Error::DuplicateEntry { part: 1, .. })),
                "seed {seed}: {outcome:?}"
            );
            if rows.len() - numbers.len() >= 10 {
                continue;
            }
            writers.make_unique();
            catch_up(&mut online).unwrap();
            online.finish().unwrap();
        } else {
            outcome.unwrap();
        }
        drop(online);
        check(&engine, &table, &format!("seed {seed}"));
        finished += 1;
        insert_rows(&engine, &table, 5_000_000..5_000_010);
        drop((writers, table));
        let (_fs, engine) = crash(&fs, engine);
        let table = engine.open_table("t").unwrap();
        let trees = |tree| all(&engine, table.tree(tree)).len();
        assert_eq!(
            (trees(1), trees(2)),
            (trees(0) - 10, trees(0) - 10),
            "seed {seed}: what was built is durable"
        );
    }
    assert!(finished > 20, "{finished} builds came to their end");
}

#[test]
fn a_transaction_counts_when_it_commits_and_not_when_it_writes() {
    let (_fs, engine, table) = table(1);
    insert_rows(&engine, &table, 0..300);
    let mut online = begin(&engine, &table);
    let mut long = engine.begin(Isolation::ReadCommitted);
    for i in 300..400 {
        long.write(table.tree(0), &key(i), WriteOp::Insert(&row(i, i))).unwrap();
    }
    let mut prepared = engine.begin(Isolation::ReadCommitted);
    prepared.write(table.tree(0), &key(5), WriteOp::Delete).unwrap();
    prepared.prepare(b"xid").unwrap();
    build(&engine, &online, &table).unwrap();
    drop(prepared);
    for _ in 0..3 {
        catch_up(&mut online).unwrap();
    }
    assert_eq!(all(&engine, table.tree(2)).len(), 300, "nothing is decided");
    long.commit().unwrap();
    assert_eq!(catch_up(&mut online).unwrap(), 100);
    assert_eq!(all(&engine, table.tree(2)).len(), 400);
    engine.commit_prepared(b"xid").unwrap();
    assert_eq!(catch_up(&mut online).unwrap(), 1);
    assert_eq!(catch_up(&mut online).unwrap(), 0);
    online.finish().unwrap();
    check(&engine, &table, "at the end");
}

#[test]
fn a_key_that_two_rows_have_for_a_while_is_no_duplicate() {
    let (_fs, engine, table) = table(2);
    insert_rows(&engine, &table, 0..10);
    let mut online = begin(&engine, &table);
    build(&engine, &online, &table).unwrap();
    let change = |at: u64, op: WriteOp<'_>| {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        txn.write(table.tree(0), &key(at), op).unwrap();
        txn.commit().unwrap();
    };
    change(3, WriteOp::Update(&row(0, 4)));
    catch_up(&mut online).unwrap();
    let error = online.finish().unwrap_err();
    assert!(
        matches!(&error, Error::DuplicateEntry { part: 1, value, key: of } if *value == key(3) && *of == key(4)),
        "{error:?}"
    );
    // The row whose entry is there goes, and the one that waits moves up; another comes and goes while it waits.
    change(11, WriteOp::Insert(&row(0, 4)));
    catch_up(&mut online).unwrap();
    change(11, WriteOp::Delete);
    change(4, WriteOp::Delete);
    catch_up(&mut online).unwrap();
    online.finish().unwrap();
    check(&engine, &table, "after a duplicate that went");
    // All move by one: each takes the key of its neighbour.
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for (at, value) in all(&engine, table.tree(0)) {
        let second = u64::from_be_bytes(value[8..].try_into().unwrap());
        txn.write(table.tree(0), &at, WriteOp::Update(&row(second, second + 1))).unwrap();
    }
    txn.commit().unwrap();
    catch_up(&mut online).unwrap();
    online.finish().unwrap();
    check(&engine, &table, "all moved");
    // More than may wait.
    for i in 100..120 {
        change(i, WriteOp::Insert(&row(0, 500)));
    }
    let error = catch_up(&mut online).unwrap_err();
    assert!(matches!(error, Error::DuplicateEntry { part: 1, .. }), "{error:?}");
}

#[test]
fn a_build_that_is_dropped_is_forgotten_and_another_may_begin() {
    let (_fs, engine, table) = table(3);
    insert_rows(&engine, &table, 0..10);
    let online = begin(&engine, &table);
    assert!(engine.build_online(&table, &table, &[1, 2], 1 << 20, 7).is_err(), "one at a time");
    let mut open = engine.begin(Isolation::ReadCommitted);
    open.write(table.tree(0), &key(50), WriteOp::Insert(&row(1, 50))).unwrap();
    drop(online);
    open.write(table.tree(0), &key(51), WriteOp::Insert(&row(1, 51))).unwrap();
    open.commit().unwrap();
    assert!(engine.snapshots().is_empty());
    let mut online = begin(&engine, &table);
    assert_eq!(engine.snapshots().len(), 1, "people see why versions are kept");
    build(&engine, &online, &table).unwrap();
    assert_eq!(catch_up(&mut online).unwrap(), 0);
    online.finish().unwrap();
    check(&engine, &table, "the second build");
}

#[test]
fn a_prepared_transaction_and_an_older_snapshot_are_told_about() {
    let (_fs, engine, table) = table(4);
    insert_rows(&engine, &table, 0..10);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.write(table.tree(0), &key(3), WriteOp::Delete).unwrap();
    txn.prepare(b"xid").unwrap();
    drop(txn);
    let refused = engine.build_online(&table, &table, &[1, 2], 1 << 20, 7);
    assert!(matches!(refused.err(), Some(Error::Undecided { .. })));
    engine.commit_prepared(b"xid").unwrap();
    let mut online = begin(&engine, &table);
    build(&engine, &online, &table).unwrap();
    let mut old = engine.begin(Isolation::Repeatable);
    old.open_snapshot();
    insert_rows(&engine, &table, 20..30);
    catch_up(&mut online).unwrap();
    online.finish().unwrap();
    let mut cursor = Cursor::new(table.tree(1).clone());
    assert!(matches!(cursor.first(&mut old, View::Snapshot), Err(Error::TableChanged)));
    check(&engine, &table, "new snapshots");
}

#[test]
fn writers_in_threads_lose_nothing() {
    let (_fs, engine, table) = table(5);
    insert_rows(&engine, &table, 0..1000);
    let mut online = begin(&engine, &table);
    let (stop, numbers) = (AtomicBool::new(false), AtomicU64::new(1 << 32));
    std::thread::scope(|scope| {
        for n in 0..3 {
            let (engine, table, stop, numbers) = (&engine, &table, &stop, &numbers);
            scope.spawn(move || {
                let mut random = Random(n);
                while !stop.load(Ordering::SeqCst) {
                    let mut txn = engine.begin(Isolation::ReadCommitted);
                    for _ in 0..random.below(8) {
                        let at = key(random.below(400) * 3 + n);
                        let number = numbers.fetch_add(1, Ordering::SeqCst);
                        let mut cursor = Cursor::new(table.tree(0).clone());
                        let there = cursor.get(&mut txn, View::Latest, &at).unwrap();
                        let value = row(number % 7, number);
                        let op = match there {
                            true if number.is_multiple_of(3) => WriteOp::Delete,
                            true => WriteOp::Update(&value),
                            false => WriteOp::Insert(&value),
                        };
                        txn.write(table.tree(0), &at, op).unwrap();
                    }
                    txn.commit().unwrap();
                }
            });
        }
        build(&engine, &online, &table).unwrap();
        let (mut turns, mut looked_at) = (0, 0);
        // The writers may not have begun yet.
        while turns < 50 || looked_at == 0 {
            looked_at += catch_up(&mut online).unwrap();
            turns += 1;
        }
        stop.store(true, Ordering::SeqCst);
    });
    catch_up(&mut online).unwrap();
    online.finish().unwrap();
    check(&engine, &table, "after threads");
}
