//! A recovery by several threads makes of any log what one thread makes of it.

use super::*;
use crate::catalog::{space_of_file_name, SYSTEM_SPACE};
use crate::file::{FileSystem, OpenMode};
use crate::{LockMode, WaitRequest};
use std::path::Path;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

const TABLES: [&str; 3] = ["a", "b", "c"];

/// Many segments, and a cache that does not hold all.
fn options(threads: usize) -> Options {
    Options {
        recovery_threads: threads,
        log_segment_bytes: 128 << 10,
        cache_bytes: 4 << 20,
        checkpoint_log_bytes: 1 << 30,
        ..super::options()
    }
}

/// Everything that can be asked of the engine after a start.
struct Found {
    /// By table that is not closed: counter, and rows and their count of each tree.
    tables: BTreeMap<String, (u64, Vec<(Rows, u64)>)>,
    closed: Vec<String>,
    prepared: Vec<Vec<u8>>,
    /// Keys that prepared transactions have locked.
    locked: usize,
    operations: u64,
}

impl Found {
    /// Whole tables are too much to print.
    fn assert_same(&self, other: &Found, when: &str) {
        assert!(self.tables.keys().eq(other.tables.keys()), "{when}: other tables");
        assert_eq!(self.closed, other.closed, "{when}: closed tables");
        for (name, (counter, trees)) in &self.tables {
            let (other_counter, others) = &other.tables[name];
            assert_eq!(counter, other_counter, "{when}: counter of {name}");
            for (at, (tree, other)) in trees.iter().zip(others).enumerate() {
                assert_eq!(tree.1, other.1, "{when}: number of rows in tree {at} of {name}");
                assert!(tree.0 == other.0, "{when}: rows of tree {at} of {name}");
            }
        }
        assert_eq!(self.prepared, other.prepared, "{when}: prepared transactions");
        assert_eq!(self.locked, other.locked, "{when}: keys of prepared transactions");
        assert_eq!(self.operations, other.operations, "{when}: operations");
    }
}

fn key(i: u64) -> Vec<u8> {
    format!("{i:08}").into_bytes()
}

fn found(engine: &Engine, xids: u64) -> Found {
    let mut tables = BTreeMap::new();
    let (mut closed, mut locked) = (Vec::new(), 0);
    for name in engine.table_names("").unwrap() {
        let Ok(table) = engine.open_table(&name) else {
            closed.push(name);
            continue;
        };
        let mut probe = engine.begin(Isolation::ReadCommitted);
        let is_free = |key: &Vec<u8>, probe: &mut Transaction| {
            probe.lock(table.tree(0), key, LockMode::Exclusive, &WaitRequest::no_wait()).is_ok()
        };
        locked += (0..xids).filter(|&xid| !is_free(&prepared_key(xid), &mut probe)).count();
        drop(probe);
        let trees = (0..table.trees()).map(|at| (all(engine, table.tree(at)), table.tree(at).entries()));
        tables.insert(name, (table.counter(), trees.collect()));
        engine.check_table(&table).unwrap();
    }
    let mut prepared = engine.prepared();
    prepared.sort();
    Found { tables, closed, prepared, locked, operations: engine.statistics().replayed_operations }
}

fn prepared_key(xid: u64) -> Vec<u8> {
    format!("prepared {xid}").into_bytes()
}

/// The same files again.
fn copy_of(fs: &SimulatedFileSystem) -> SimulatedFileSystem {
    let copy = SimulatedFileSystem::new(0);
    for dir in ["/teak", "/teak/log"].map(Path::new) {
        copy.create_dir(dir).unwrap();
        for path in fs.list(dir).unwrap().iter().map(|name| dir.join(name)) {
            let Ok(from) = fs.open(&path, OpenMode::ReadOnly) else { continue };
            let mut bytes = vec![0; from.len().unwrap() as usize];
            from.read_exact_at(0, &mut bytes).unwrap();
            copy.open(&path, OpenMode::Create).unwrap().write_at(0, &bytes).unwrap();
        }
    }
    copy
}

/// One random transaction, or something else that is logged.
struct History<'a> {
    engine: &'a Engine,
    random: Random,
    xids: u64,
    appended: u64,
}

impl History<'_> {
    fn table(&mut self) -> Arc<Table> {
        let names = self.engine.table_names("").unwrap();
        self.engine.open_table(&names[self.random.below(names.len() as u64) as usize]).unwrap()
    }

    /// Changes rows, hot ones among them, in both trees.
    fn change(&mut self, txn: &mut Transaction, table: &Table, writes: u64, bytes: u64) {
        for _ in 0..writes {
            let tree = table.tree(self.random.below(2) as usize);
            let reach = [5, 3000][self.random.below(2) as usize];
            let key = key(self.random.below(reach));
            let there = {
                let mut cursor = Cursor::new(tree.clone());
                cursor.get(txn, View::Pending, &key).unwrap()
            };
            let value = vec![self.random.below(256) as u8; self.random.below(bytes) as usize];
            let op = match (there, self.random.below(3)) {
                (false, _) => WriteOp::Insert(&value),
                (true, 0) => WriteOp::Delete,
                (true, _) => WriteOp::Update(&value),
            };
            txn.write(tree, &key, op).unwrap();
        }
    }

    fn step(&mut self) {
        let table = self.table();
        let mut txn = self.engine.begin(Isolation::ReadCommitted);
        match self.random.below(24) {
            0..=11 => {
                let writes = 1 + self.random.below(8);
                self.change(&mut txn, &table, writes, 200);
                txn.commit().unwrap();
            }
            12..=13 => {
                // More than the redo buffer holds: its records lie in several segments.
                self.change(&mut txn, &table, 200, 3000);
                let savepoint = txn.savepoint();
                self.change(&mut txn, &table, 800, 4000);
                if self.random.below(2) == 0 {
                    txn.rollback_to(savepoint).unwrap();
                }
                self.change(&mut txn, &table, 10, 100);
                match self.random.below(3) {
                    0 => txn.rollback(),
                    _ => txn.commit().unwrap(),
                }
            }
            14 => {
                // Blocks that the log names.
                for _ in 0..2000 {
                    self.appended += 1;
                    let value = vec![self.appended as u8; 100];
                    txn.append(table.tree(0), format!("z{:08}", self.appended).as_bytes(), &value).unwrap();
                }
                txn.finish_writes().unwrap();
                txn.commit().unwrap();
            }
            15 => {
                // Large values, so many that the log only names them.
                for _ in 0..80 {
                    self.appended += 1;
                    let value = key(self.appended).repeat(2500);
                    let key = format!("y{:08}", self.appended);
                    txn.write(table.tree(1), key.as_bytes(), WriteOp::Insert(&value)).unwrap();
                }
                txn.commit().unwrap();
            }
            16..=17 => {
                self.xids += 1;
                txn.write(table.tree(0), &prepared_key(self.xids - 1), WriteOp::Insert(b"new")).unwrap();
                let xid = self.xids.to_string();
                txn.prepare(xid.as_bytes()).unwrap();
                match self.random.below(3) {
                    0 => txn.detach(),
                    1 => txn.commit().unwrap(),
                    _ => txn.rollback(),
                }
            }
            18 => self.decide(),
            19 => txn.note_counter(&table, self.random.below(1000)),
            20 => {
                txn.set_counter(&table, self.random.below(1000));
                txn.commit().unwrap();
            }
            21 => {
                drop((txn, table));
                self.define();
            }
            22 => self.engine.checkpoint().unwrap(),
            _ => drop(txn),
        }
    }

    /// Of the prepared transactions, the first is decided.
    fn decide(&mut self) {
        if let Some(xid) = self.engine.prepared().first() {
            match self.random.below(2) {
                0 => self.engine.commit_prepared(xid).unwrap(),
                _ => self.engine.rollback_prepared(xid).unwrap(),
            }
        }
    }

    /// Tables with prepared transactions refuse it.
    fn define(&mut self) {
        let name = TABLES[self.random.below(3) as usize];
        let _ = match self.random.below(4) {
            0 => self.engine.drop(name, IfPrepared::Refuse),
            1 => self.engine.empty(name, None),
            2 => self.engine.rename(Renaming::new(name, "renamed")),
            _ => self.engine.create(NewTable::new("fresh", &specs(2))).map(drop),
        };
        for name in TABLES {
            let _ = self.engine.create(NewTable::new(name, &specs(2)));
        }
    }
}

/// What a random history leaves, and how many transactions were prepared in it.
fn left_by(seed: u64) -> (SimulatedFileSystem, u64) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = Engine::open(Arc::new(fs.clone()), options(1)).unwrap();
    for name in TABLES {
        engine.create(NewTable::new(name, &specs(2))).unwrap();
    }
    let mut history = History { engine: &engine, random: Random(seed), xids: 0, appended: 0 };
    (0..120).for_each(|_| history.step());
    let left = if seed.is_multiple_of(2) { fs.kill() } else { fs.crash() };
    (left, history.xids)
}

fn start(left: &SimulatedFileSystem, xids: u64, threads: usize) -> Found {
    found(&Engine::open(Arc::new(copy_of(left)), options(threads)).unwrap(), xids)
}

#[test]
fn threads_make_of_a_random_log_what_one_makes_of_it() {
    let mut most = [0; 2];
    for seed in 0..14 {
        let (left, xids) = left_by(seed);
        let alone = start(&left, xids, 1);
        most[0] = most[0].max(alone.operations);
        most[1] = most[1].max(alone.prepared.len() as u64);
        for threads in [2, 3, 8] {
            start(&left, xids, threads).assert_same(&alone, &format!("seed {seed}, {threads} threads"));
        }
    }
    assert!(most[0] > 5000 && most[1] > 2, "the histories are too short: {most:?}");
}

#[test]
fn threads_close_the_tables_that_one_closes_and_recover_the_others() {
    let mut closed = 0;
    for seed in 100..108 {
        let (left, xids) = left_by(seed);
        // All that the file of one table has, but its header.
        let is_table = |name: &String| space_of_file_name(name).is_some_and(|space| space != SYSTEM_SPACE);
        let files = left.list(Path::new("/teak")).unwrap();
        let tables: Vec<&String> = files.iter().filter(|name| is_table(name)).collect();
        let file =
            left.open(&Path::new("/teak").join(tables[seed as usize % tables.len()]), OpenMode::Existing);
        let file = file.unwrap();
        let bytes = file.len().unwrap().saturating_sub(4096);
        file.write_at(4096, &vec![0xa5; bytes as usize]).unwrap();
        let alone = start(&left, xids, 1);
        closed += alone.closed.len();
        for threads in [2, 5] {
            start(&left, xids, threads).assert_same(&alone, &format!("seed {seed}, {threads} threads"));
        }
    }
    assert!(closed > 3, "only {closed} tables were closed");
}

#[test]
fn threads_keep_to_the_memory_that_is_theirs() {
    let fs = SimulatedFileSystem::new(3);
    let engine = Engine::open(Arc::new(fs.clone()), options(1)).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    let mut expected = Rows::new();
    for i in 0..300u64 {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for at in 0..100 {
            let (key, value) = (key(i * 7919 % 1000 * 100 + at), vec![i as u8; 500]);
            txn.write(table.tree(0), &key, WriteOp::Update(&value)).unwrap();
            expected.insert(key, value);
        }
        txn.commit().unwrap();
    }
    drop((table, engine));
    let engine = Engine::open(Arc::new(fs.kill()), options(6)).unwrap();
    let used = engine.statistics().cache_used_bytes;
    assert!(used < 6 << 20, "{used} bytes in use");
    assert!(all(&engine, engine.open_table("t").unwrap().tree(0)) == expected);
}
