//! Tables that are opened, made and dropped by many at the same time.

use super::ddl::no_orphans;
use super::*;
use crate::checkpoint::Pace;
use crate::file::{Directory, Fault, File, FileSystem, OpenMode};
use crate::sync::{Condvar, Mutex};
use crate::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than anything takes that does not wait for the wrong thing.
const NEVER: Duration = Duration::from_secs(60);

/// Holds up whoever does one thing to one file.
#[derive(Default)]
struct Gate {
    state: Mutex<(Option<PathBuf>, bool)>,
    changed: Condvar,
    /// Files that were synced since it was shut.
    synced: Mutex<Vec<PathBuf>>,
}

impl Gate {
    fn shut(&self, path: &Path) {
        *self.state.lock() = (Some(path.to_path_buf()), false);
        self.synced.lock().clear();
    }

    fn pass(&self, path: &Path) {
        let mut state = self.state.lock();
        while state.0.as_ref().is_some_and(|shut| path.starts_with(shut)) {
            state.1 = true;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
    }

    /// Returns when somebody stands before it.
    fn wait_for_one(&self) {
        let mut state = self.state.lock();
        while !state.1 {
            assert!(!self.changed.wait_for(&mut state, NEVER).timed_out(), "nobody came");
        }
    }

    fn has_synced(&self, path: &Path) -> bool {
        self.synced.lock().iter().any(|synced| synced == path)
    }

    fn open(&self) {
        *self.state.lock() = (None, false);
        self.changed.notify_all();
    }
}

/// A file system whose syncs go through a gate.
struct Gated {
    fs: SimulatedFileSystem,
    gate: Arc<Gate>,
}

struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl FileSystem for Gated {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = self.fs.open(path, mode)?;
        Ok(Arc::new(GatedFile { file, gate: self.gate.clone() }))
    }
    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.fs.open_unnamed(path)
    }
    fn create_dir(&self, path: &Path) -> Result<()> {
        self.fs.create_dir(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.fs.list(dir)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.fs.exists(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(path)
    }
    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        self.fs.open_dir(dir)
    }
    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.fs.lock_exclusive(path)
    }
}

impl File for GatedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.file.write_at(offset, buf)
    }
    fn sync(&self) -> Result<()> {
        self.gate.pass(self.file.path());
        self.file.sync()?;
        self.gate.synced.lock().push(self.file.path().to_path_buf());
        Ok(())
    }
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn set_len(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes)
    }
    fn punch_hole(&self, offset: u64, bytes: u64) -> Result<bool> {
        self.file.punch_hole(offset, bytes)
    }
    fn allocated_bytes(&self) -> Result<u64> {
        self.file.allocated_bytes()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        Arc::new(GatedFile { file: self.file.renamed(path), gate: self.gate.clone() })
    }
}

/// An engine with the tables `a` and `b`, both closed, and the gate before its syncs.
fn gated(seed: u64) -> (Engine, Arc<Gate>) {
    let (gate, fs) = (Arc::<Gate>::default(), SimulatedFileSystem::new(seed));
    let open = || Engine::open(Arc::new(Gated { fs: fs.clone(), gate: gate.clone() }), options()).unwrap();
    let engine = open();
    for name in ["a", "b"] {
        engine.create(NewTable { meta: name.as_bytes(), ..NewTable::new(name, &specs(2)) }).unwrap();
        put(&engine, engine.open_table(name).unwrap().tree(0), &[("k", name)]);
    }
    engine.close().unwrap();
    drop(engine);
    (open(), gate)
}

/// Runs `body` while `stuck` stands before the gate, which it is to reach; `body` must not wait for it.
fn meanwhile(gate: &Gate, stuck: impl FnOnce() + Send, body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let stuck = scope.spawn(stuck);
        gate.wait_for_one();
        let (sender, done) = mpsc::channel();
        let body = scope.spawn(move || {
            body();
            sender.send(()).unwrap();
        });
        let in_time = done.recv_timeout(NEVER).is_ok();
        assert!(!stuck.is_finished(), "the gate did not hold it up");
        gate.open();
        stuck.join().unwrap();
        body.join().unwrap();
        assert!(in_time, "it waited for what is none of its business");
    });
}

#[test]
fn tables_are_opened_made_and_dropped_while_the_file_of_another_is_synced() {
    let (engine, gate) = gated(1);
    gate.shut(&engine.shared.space_path(3));
    meanwhile(
        &gate,
        || engine.create(NewTable::new("new", &specs(1))).unwrap(),
        || {
            expect(&engine, "a", 0, &[("k", "a")]);
            engine.create(NewTable::new("other", &specs(1))).unwrap();
            engine.rename(Renaming::new("other", "another")).unwrap();
            engine.empty("another", None).unwrap();
            engine.drop("b", IfPrepared::Refuse).unwrap();
            assert!(matches!(engine.open_table("b"), Err(Error::NoSuchTable(_))));
        },
    );
    assert_eq!(engine.table_names("").unwrap(), ["a", "another", "new"]);
}

#[test]
fn tables_are_opened_while_ddl_and_the_capture_of_a_checkpoint_wait_for_the_log() {
    let (engine, gate) = gated(2);
    gate.shut(Path::new("/teak/log"));
    let checkpoint = || {
        std::thread::scope(|scope| {
            let ddl = scope.spawn(|| engine.drop("b", IfPrepared::Refuse).unwrap());
            gate.wait_for_one();
            let checkpoint = scope.spawn(|| engine.checkpoint().unwrap());
            ddl.join().unwrap();
            checkpoint.join().unwrap();
        });
    };
    meanwhile(&gate, checkpoint, || {
        // The checkpoint stands in line behind the DDL.
        while engine.shared.definitions.ddl.try_read().is_some() {
            std::thread::yield_now();
        }
        expect(&engine, "a", 0, &[("k", "a")]);
    });
    assert_eq!(engine.table_names("").unwrap(), ["a"]);
    engine.checkpoint().unwrap();
    assert!(engine.check_everything(&mut |_| Ok(())).unwrap().is_empty());
}

#[test]
fn a_table_that_many_open_at_once_is_loaded_once() {
    let (engine, _gate) = gated(3);
    for _ in 0..50 {
        let start = std::sync::Barrier::new(8);
        let open = |name| {
            start.wait();
            engine.open_table(name).unwrap()
        };
        let tables: Vec<Arc<Table>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|i| scope.spawn(move || open(["a", "b"][i % 2]))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!((2..8).all(|i| Arc::ptr_eq(&tables[i], &tables[i % 2])));
        drop(tables);
        engine.checkpoint().unwrap();
        assert_eq!(engine.statistics().open_tables, 0);
    }
}

/// As with background threads.
const SIDE_BY_SIDE: Pace<'static> = Pace { writers: &|| 2, files: 3 };

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The number of a table, which its metadata and its only row have; `None`: there is none of the name.
type Numbered = Option<u64>;

/// What is known of a name.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    now: Numbered,
    /// A change that has not been answered leads here.
    perhaps: Option<Numbered>,
}

/// Sessions that change tables under locks of their own, as a server's do, and look at them without.
struct Crowd<'a> {
    engine: &'a Engine,
    known: [Mutex<Known>; NAMES.len()],
    next: AtomicU64,
}

impl Crowd<'_> {
    fn change(&self, dice: &mut impl FnMut(usize) -> usize) -> Result<()> {
        let (one, two) = (dice(NAMES.len()), dice(NAMES.len()));
        if one != two && dice(3) == 0 {
            return self.rename(one, two);
        }
        let (name, number) = (NAMES[one], self.next.fetch_add(1, Ordering::SeqCst));
        let mut known = self.known[one].lock();
        if known.perhaps.is_some() {
            // The power went in the middle of it.
            return Ok(());
        }
        let wanted = match (known.now, dice(3)) {
            (None, _) | (_, 0) => Some(number),
            (now, 1) => now,
            _ => None,
        };
        known.perhaps = Some(wanted);
        match (known.now, wanted) {
            (Some(_), None) => self.engine.drop(name, IfPrepared::Refuse)?,
            (Some(now), Some(wanted)) if now == wanted => self.engine.empty(name, None)?,
            (Some(_), Some(_)) => self.engine.empty(name, Some(&number.to_le_bytes()))?,
            (None, _) => {
                let meta = number.to_le_bytes();
                self.engine.create(NewTable { meta: &meta, ..NewTable::new(name, &specs(2)) })?
            }
        }
        if let Some(wanted) = wanted {
            let table = self.engine.open_table(name)?;
            let mut txn = self.engine.begin(Isolation::Repeatable);
            txn.write(table.tree(0), &wanted.to_le_bytes(), WriteOp::Insert(b""))?;
            txn.commit()?;
        }
        *known = Known { now: wanted, perhaps: None };
        Ok(())
    }

    fn rename(&self, from: usize, to: usize) -> Result<()> {
        // In one order: no two wait for each other.
        let [mut first, mut second] = [from.min(to), from.max(to)].map(|name| self.known[name].lock());
        let (source, target) =
            if from < to { (&mut *first, &mut *second) } else { (&mut *second, &mut *first) };
        let in_doubt = source.perhaps.is_some() || target.perhaps.is_some();
        if in_doubt || source.now.is_none() || target.now.is_some() {
            return Ok(());
        }
        (source.perhaps, target.perhaps) = (Some(None), Some(source.now));
        self.engine.rename(Renaming::new(NAMES[from], NAMES[to]))?;
        *target = Known { now: source.now, perhaps: None };
        *source = Known::default();
        Ok(())
    }

    /// The number that metadata and row of a table agree on; it may be gone, or have no row yet.
    fn look(&self, name: &str) -> Result<()> {
        let table = match self.engine.open_table(name) {
            Err(Error::NoSuchTable(_)) => return Ok(()),
            opened => opened?,
        };
        let rows = keys(self.engine, &table)?;
        assert!(rows.is_empty() || rows == [table.meta()], "the rows of another table");
        Ok(())
    }

    fn session(&self, seed: u64) -> Result<()> {
        let mut state = seed;
        let mut dice = |sides: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % sides
        };
        for _ in 0..40 {
            match dice(12) {
                0..=4 => self.change(&mut dice)?,
                5 => assert!(self.engine.shared.try_checkpoint(false, &SIDE_BY_SIDE)?),
                _ => self.look(NAMES[dice(NAMES.len())])?,
            }
        }
        Ok(())
    }

    /// After a crash.
    fn compare(&self, engine: &Engine) {
        for (name, known) in NAMES.iter().zip(&self.known) {
            let known = *known.lock();
            let table = match engine.open_table(name) {
                Err(Error::NoSuchTable(_)) => None,
                opened => Some(opened.unwrap()),
            };
            let found = table.as_ref().map(|table| u64::from_le_bytes(table.meta().try_into().unwrap()));
            assert!(found == known.now || Some(found) == known.perhaps, "{name}: {found:?}, {known:?}");
            if let Some(table) = table {
                let rows = keys(engine, &table).unwrap();
                assert!(
                    rows == [table.meta()] || known.perhaps.is_some() && rows.is_empty(),
                    "{name}: {rows:?}"
                );
            }
        }
    }
}

fn keys(engine: &Engine, table: &Table) -> Result<Vec<Vec<u8>>> {
    let mut txn = engine.begin(Isolation::Repeatable);
    let mut cursor = Cursor::new(table.tree(0).clone());
    let mut keys = Vec::new();
    let mut found = cursor.seek(&mut txn, View::Snapshot, Seek::AtOrAfter, b"")?;
    while found {
        keys.push(cursor.key().to_vec());
        found = cursor.next(&mut txn)?;
    }
    Ok(keys)
}

#[test]
fn a_power_cut_in_the_middle_of_much_ddl_leaves_each_table_as_it_was_or_is_to_be() {
    for seed in 0..60 {
        let fs = SimulatedFileSystem::new(seed);
        let engine = open(&fs);
        // Some rounds end without.
        fs.fail_after(seed * 13 % 700, Fault::PowerCut);
        let crowd = Crowd { engine: &engine, known: Default::default(), next: AtomicU64::new(1) };
        std::thread::scope(|scope| {
            for session in 0..4 {
                let (crowd, fs) = (&crowd, &fs);
                scope.spawn(move || {
                    let result = crowd.session(seed * 4 + session);
                    assert!(result.is_ok() || fs.power_is_off(), "{result:?}");
                });
            }
        });
        let Crowd { known, next, .. } = crowd;
        let (fs, engine) = crash(&fs, engine);
        no_orphans(&fs, &engine);
        Crowd { engine: &engine, known, next }.compare(&engine);
        engine.checkpoint().unwrap();
        let found = engine.check_everything(&mut |_| Ok(())).unwrap();
        assert!(found.is_empty(), "seed {seed}: {found:?}");
    }
}

fn digest(engine: &Engine, name: &str) -> Option<Vec<u8>> {
    engine.digest(&engine.open_table(name).unwrap()).unwrap()
}

#[test]
fn what_is_known_of_a_table_outlives_restarts_and_goes_with_its_rows() {
    let (fs, engine, table) = with_table(40);
    put(&engine, table.tree(0), &[("a", "1")]);
    assert_eq!(engine.digest(&table).unwrap(), None);
    engine.keep_digest(&table, b"first").unwrap();
    assert!(matches!(engine.keep_digest(&table, &[0; 2001]), Err(Error::TooLarge { .. })));
    engine.checkpoint().unwrap();
    engine.keep_digest(&table, b"second").unwrap();
    assert_eq!(digest(&engine, "t").unwrap(), b"second");
    drop(table);
    // A crash takes it back to the checkpoint, a shutdown does not.
    let (fs, engine) = crash(&fs, engine);
    assert_eq!(digest(&engine, "t").unwrap(), b"first");
    engine.keep_digest(&engine.open_table("t").unwrap(), b"third").unwrap();
    engine.rename(Renaming::new("t", "u")).unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = open(&fs);
    assert_eq!(digest(&engine, "u").unwrap(), b"third");
    let old = engine.open_table("u").unwrap();
    let layout = [TreeSource::Keep(0), TreeSource::New(specs(1)[0])];
    engine.change(&[Alteration::new("u", &layout, b"altered").into()], &[]).unwrap();
    assert_eq!(digest(&engine, "u").unwrap(), b"third");
    engine.empty("u", None).unwrap();
    // Too late: these are not the rows any more.
    engine.keep_digest(&old, b"fourth").unwrap();
    assert_eq!(digest(&engine, "u"), None);
    engine.checkpoint().unwrap();
    engine.keep_digest(&engine.open_table("u").unwrap(), b"fifth").unwrap();
    engine.checkpoint().unwrap();
    engine.drop("u", IfPrepared::Refuse).unwrap();
    engine.checkpoint().unwrap();
    assert!(engine.check_everything(&mut |_| Ok(())).unwrap().is_empty());
}

/// An engine with so many tables, each with a change since the last checkpoint.
fn with_dirty_tables(fs: &SimulatedFileSystem, count: usize) -> (Engine, Vec<String>) {
    let engine = open(fs);
    let names: Vec<String> = (0..count).map(|i| format!("t{i:02}")).collect();
    for name in &names {
        engine.create(NewTable::new(name, &specs(2))).unwrap();
        put(&engine, engine.open_table(name).unwrap().tree(0), &[("a", name)]);
    }
    engine.checkpoint().unwrap();
    for name in &names {
        put(&engine, engine.open_table(name).unwrap().tree(1), &[("b", name)]);
    }
    (engine, names)
}

#[test]
fn a_checkpoint_that_writes_files_side_by_side_can_fail_at_any_moment() {
    for (fault, sticky) in [(Fault::PowerCut, false), (Fault::Eio, false), (Fault::Enospc, true)] {
        for cut in 0.. {
            let fs = SimulatedFileSystem::new(cut);
            let (engine, names) = with_dirty_tables(&fs, 9);
            match sticky {
                true => fs.fail_from(cut, fault),
                false => fs.fail_after(cut, fault),
            }
            let made = engine.shared.try_checkpoint(false, &SIDE_BY_SIDE);
            let struck = fs.has_struck() || fs.power_is_off();
            fs.heal();
            assert!(made.is_ok() || struck, "{made:?}");
            // A superblock that could not be written ends writing.
            if matches!(made, Err(Error::DiskFull { .. })) && engine.shared.health.check().is_ok() {
                // Everything is as before, and the next one writes it.
                engine.shared.try_checkpoint(false, &SIDE_BY_SIDE).unwrap();
                assert_eq!(engine.statistics().dirty_trees, 0);
            }
            let (_fs, engine) = crash(&fs, engine);
            for name in &names {
                expect(&engine, name, 0, &[("a", name)]);
                expect(&engine, name, 1, &[("b", name)]);
            }
            engine.shared.try_checkpoint(false, &SIDE_BY_SIDE).unwrap();
            assert!(engine.check_everything(&mut |_| Ok(())).unwrap().is_empty(), "{fault:?}, cut {cut}");
            if !struck {
                break;
            }
        }
    }
}

#[test]
fn files_wait_for_their_syncs_at_the_same_time() {
    let (engine, gate) = gated(4);
    for name in ["a", "b"] {
        put(&engine, engine.open_table(name).unwrap().tree(0), &[("l", name)]);
    }
    // The first file's sync stands still; the second's is done meanwhile.
    gate.shut(&engine.shared.space_path(1));
    let second = engine.open_table("b").unwrap();
    meanwhile(
        &gate,
        || assert!(engine.shared.try_checkpoint(false, &Pace { writers: &|| 1, files: 2 }).unwrap()),
        || {
            while !gate.has_synced(second.space().path()) {
                std::thread::yield_now();
            }
        },
    );
}

#[test]
fn a_table_that_an_alter_took_trees_from_during_a_checkpoint_stays_open_until_their_space_is_free() {
    let (engine, gate) = gated(5);
    let table = engine.open_table("a").unwrap();
    put(&engine, table.tree(1), &[("l", "a")]);
    let path = table.space().path().to_path_buf();
    drop(table);
    gate.shut(&path);
    meanwhile(
        &gate,
        || engine.checkpoint().unwrap(),
        || engine.change(&[Alteration::new("a", &[TreeSource::Keep(0)], b"a").into()], &[]).unwrap(),
    );
    assert_eq!(engine.statistics().open_tables, 1, "the next checkpoint frees what the tree had");
    engine.checkpoint().unwrap();
    assert_eq!(engine.statistics().open_tables, 0);
    assert!(engine.check_everything(&mut |_| Ok(())).unwrap().is_empty());
}

#[test]
fn idle_tables_are_let_go_a_bounded_number_at_a_time() {
    let (_fs, engine, table) = with_table(41);
    let mut names = vec!["t".to_string()];
    for i in 0..1500 {
        names.push(format!("n{i}"));
        engine.create(NewTable::new(&names[i + 1], &specs(1))).unwrap();
    }
    let tables: Vec<Arc<Table>> = names.iter().map(|name| engine.open_table(name).unwrap()).collect();
    drop(table);
    engine.checkpoint().unwrap();
    assert_eq!(engine.statistics().open_tables, 1501, "all are used");
    drop(tables);
    engine.checkpoint().unwrap();
    assert_eq!(engine.statistics().open_tables, 1501 - 1024);
    engine.checkpoint().unwrap();
    assert_eq!(engine.statistics().open_tables, 0);
}

#[test]
fn a_tree_is_entered_by_its_first_commit_after_a_capture_and_leaves_with_its_table() {
    let (_fs, engine, table) = with_table(42);
    let dirty = |engine: &Engine| engine.statistics().dirty_trees;
    engine.checkpoint().unwrap();
    for round in ["a", "b"] {
        assert_eq!((dirty(&engine), table.tree(0).is_entered()), (0, false));
        put(&engine, table.tree(0), &[(round, "1")]);
        put(&engine, table.tree(0), &[("again", round)]);
        assert_eq!((dirty(&engine), table.tree(0).is_entered()), (1, true));
        let mut txn = engine.begin(Isolation::Repeatable);
        txn.write(table.tree(0), b"again", WriteOp::Delete).unwrap();
        txn.commit().unwrap();
        engine.checkpoint().unwrap();
    }
    put(&engine, table.tree(1), &[("c", "1")]);
    engine.drop("t", IfPrepared::Refuse).unwrap();
    assert!(!table.tree(1).is_entered());
    // The catalog.
    assert_eq!(dirty(&engine), 1);
}

#[test]
fn transactions_that_are_prepared_at_the_same_time_keep_their_names_and_their_log() {
    let (_fs, engine, table) = with_table(43);
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let (engine, table) = (&engine, &table);
            scope.spawn(move || {
                for i in 0..50u8 {
                    let mut txn = engine.begin(Isolation::Repeatable);
                    txn.write(table.tree(0), &[thread, i], WriteOp::Insert(b"")).unwrap();
                    txn.prepare(&[thread, i]).unwrap();
                    match i % 3 {
                        0 => txn.commit().unwrap(),
                        1 => txn.rollback(),
                        _ => txn.detach(),
                    }
                }
            });
        }
    });
    let waiting: Vec<Vec<u8>> =
        (0..8u8).flat_map(|thread| (0..50u8).filter(|i| i % 3 == 2).map(move |i| vec![thread, i])).collect();
    assert_eq!(engine.prepared(), waiting);
    assert_eq!(engine.statistics().prepared_transactions, waiting.len() as u64);
    let mut again = engine.begin(Isolation::Repeatable);
    again.write(table.tree(0), b"x", WriteOp::Insert(b"")).unwrap();
    assert!(matches!(again.prepare(&waiting[7]), Err(Error::Xid(_))));
    again.rollback();
    assert!(engine.statistics().log_pinned_bytes > 0);
    for xid in &waiting {
        engine.commit_prepared(xid).unwrap();
    }
    assert!(engine.prepared().is_empty());
    assert_eq!(engine.statistics().log_pinned_bytes, 0);
    assert_eq!(all(&engine, table.tree(0)).len(), 8 * (17 + 16));
}
