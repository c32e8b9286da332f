//! The engine and the model side by side: each call goes to both, and the answers must be equal.

use std::sync::Arc;
use teak_core::server::{IfPrepared, LockOutcome, NewTable, Renaming};

use crate::seeds::{shown, tell};
use crate::subject;
use teak_core::file::SimulatedFileSystem;
use teak_core::model;
use teak_core::{
    Compression, Error, Isolation, LockMode, Options, Packing, Result, Seek, TreeSpec, View, WaitRequest,
    WriteOp,
};

const TREES: [TreeSpec; 2] = [
    TreeSpec {
        block_bytes: 4096,
        packing: Packing { compression: Compression::Lz4, level: 0, similarity: false },
    },
    TreeSpec {
        block_bytes: 4096,
        packing: Packing { compression: Compression::None, level: 0, similarity: false },
    },
];

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Where a scan begins; it goes up from `First`, `AtOrAfter` and `After`.
pub enum Scan {
    First,
    Last,
    Seek(Seek, Vec<u8>),
}

impl Scan {
    fn upwards(&self) -> bool {
        matches!(self, Scan::First | Scan::Seek(Seek::AtOrAfter | Seek::After, _))
    }
}

/// Both sides' answer, which must be the same: the same value or the same kind of error.
fn same<T: PartialEq + std::fmt::Debug>(subject: Result<T>, model: Result<T>) -> Result<T> {
    match (&subject, &model) {
        (Ok(a), Ok(b)) => assert_eq!(a, b, "engine left, model right"),
        (Err(a), Err(b)) if std::mem::discriminant(a) == std::mem::discriminant(b) => {}
        _ => panic!("the engine says {subject:?}, the model {model:?}"),
    }
    subject
}

struct Table {
    name: String,
    subject: Arc<subject::Table>,
    model: Arc<model::Table>,
}

/// Both engines with the same tables.
pub struct World {
    fs: SimulatedFileSystem,
    subject: subject::Engine,
    model: model::Engine,
    tables: Vec<Table>,
    renames: usize,
    xids: std::cell::Cell<u64>,
    /// Transactions that have begun.
    begun: std::cell::Cell<usize>,
    little_history: bool,
}

/// With `little_history` old snapshots often have to give way.
fn options(seed: u64, little_history: bool) -> Options {
    Options {
        history_max_bytes: if little_history { 30 << 10 } else { 64 << 30 },
        cache_bytes: [1 << 20, 2 << 20, 8 << 20][seed as usize % 3],
        log_segment_bytes: 1 << 20,
        dictionary_sample_bytes: [0, 16 << 10, 60 << 10][seed as usize / 3 % 3],
        frame_bytes: [400, 0, 1500][seed as usize / 9 % 3],
        background: false,
        recovery_threads: 1,
        ..Options::new("/teak")
    }
}

impl World {
    pub fn new(seed: u64) -> World {
        let fs = SimulatedFileSystem::new(seed);
        let little_history = seed % 2 == 1;
        let subject = subject::Engine::open(Arc::new(fs.clone()), options(seed, little_history)).unwrap();
        let model = model::Engine::open(Arc::new(fs.clone()), options(seed, little_history)).unwrap();
        let xids = std::cell::Cell::new(seed);
        let begun = std::cell::Cell::new(0);
        let mut world =
            World { fs, subject, model, tables: Vec::new(), renames: 0, xids, begun, little_history };
        for name in ["t0", "t1"] {
            world.subject.create(NewTable { meta: name.as_bytes(), ..NewTable::new(name, &TREES) }).unwrap();
            world.model.create(NewTable { meta: name.as_bytes(), ..NewTable::new(name, &TREES) }).unwrap();
        }
        world.open_tables(&["t0".to_string(), "t1".to_string()]);
        world
    }

    fn open_tables(&mut self, names: &[String]) {
        let open = |name: &String| Table {
            name: name.clone(),
            subject: self.subject.open_table(name).unwrap(),
            model: self.model.open_table(name).unwrap(),
        };
        self.tables = names.iter().map(open).collect();
    }

    fn names(&self) -> Vec<String> {
        self.tables.iter().map(|t| t.name.clone()).collect()
    }

    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    pub fn begin(&self, isolation: Isolation) -> Twin {
        self.begun.set(self.begun.get() + 1);
        tell(self.begun.get(), || format!("begin {isolation:?}"));
        Twin {
            number: self.begun.get(),
            subject: self.subject.begin(isolation),
            model: self.model.begin(isolation),
            savepoints: Vec::new(),
            cursor: None,
            reads_only: false,
            gathers: false,
        }
    }

    pub fn checkpoint(&self) {
        tell(0, || "checkpoint".into());
        self.subject.checkpoint().unwrap();
    }

    /// Closes the engine and opens it again; no transaction is open.
    pub fn reopen(&mut self) {
        tell(0, || "reopen".into());
        let names = self.names();
        self.tables.clear();
        let seed = self.xids.get();
        self.subject.close().unwrap();
        // Another engine takes its place before the new one asks for the directory.
        let idle =
            subject::Engine::open(Arc::new(SimulatedFileSystem::new(0)), options(seed, self.little_history))
                .unwrap();
        drop(std::mem::replace(&mut self.subject, idle));
        self.subject =
            subject::Engine::open(Arc::new(self.fs.clone()), options(seed, self.little_history)).unwrap();
        self.open_tables(&names);
    }

    pub fn truncate(&mut self, table: usize) {
        tell(0, || format!("truncate table {table}"));
        let names = self.names();
        self.subject.empty(&names[table], None).unwrap();
        self.model.empty(&names[table], None).unwrap();
        self.open_tables(&names);
    }

    pub fn rename(&mut self, table: usize) {
        tell(0, || format!("rename table {table}"));
        let mut names = self.names();
        self.renames += 1;
        let to = format!("t{table}-{}", self.renames);
        same(
            self.subject.rename(Renaming::new(&names[table], &to)),
            self.model.rename(Renaming::new(&names[table], &to)),
        )
        .unwrap();
        let gone = &names[table];
        assert!(same(self.subject.drop(gone, IfPrepared::Refuse), self.model.drop(gone, IfPrepared::Refuse))
            .is_err());
        assert_eq!(self.tables[table].subject.name(), to);
        names[table] = to;
        self.open_tables(&names);
    }

    /// A new table in the place of an old one, as ALTER TABLE leaves it.
    pub fn replace(&mut self, table: usize) {
        tell(0, || format!("replace table {table}"));
        let names = self.names();
        let name = &names[table];
        let (subject, model) = (&self.subject, &self.model);
        assert!(same(
            subject.create(NewTable { meta: b"other", ..NewTable::new(name, &TREES) }),
            model.create(NewTable { meta: b"other", ..NewTable::new(name, &TREES) })
        )
        .is_err());
        same(subject.drop(name, IfPrepared::Refuse), model.drop(name, IfPrepared::Refuse)).unwrap();
        same(
            subject.create(NewTable { meta: b"new", ..NewTable::new(name, &TREES) }),
            model.create(NewTable { meta: b"new", ..NewTable::new(name, &TREES) }),
        )
        .unwrap();
        self.open_tables(&names);
    }

    /// Every row of every tree, upwards and downwards; no transaction is open.
    pub fn compare_everything(&self) {
        assert_eq!(self.subject.table_names("").unwrap(), self.model.table_names("").unwrap());
        let mut txn = self.begin(Isolation::Repeatable);
        for (i, table) in self.tables.iter().enumerate() {
            assert_eq!(table.subject.meta(), table.model.meta());
            for tree in 0..TREES.len() {
                txn.scan(self, i, tree, View::Snapshot, Scan::First, usize::MAX, None);
                txn.scan(self, i, tree, View::Latest, Scan::Last, usize::MAX, None);
            }
        }
        txn.rollback();
        self.check();
    }

    /// All structures are whole.
    pub fn check(&self) {
        crate::sound::assert_sound(&self.subject, "while running", false).unwrap();
    }

    pub fn close(mut self) {
        self.tables.clear();
        self.subject.close().unwrap();
        self.model.close().unwrap();
    }
}

struct CursorPair {
    subject: subject::Cursor,
    model: model::Cursor,
    found: bool,
    /// Snapshots may have to give way. Until then they read as the model does.
    little_history: bool,
}

impl CursorPair {
    fn entry(&mut self, subject: Result<bool>, model: Result<bool>) -> Option<Entry> {
        if self.little_history && matches!(subject, Err(Error::SnapshotTooOld { .. })) {
            self.found = false;
            return None;
        }
        self.found = same(subject, model).unwrap();
        if !self.found {
            return None;
        }
        assert_eq!(self.subject.key(), self.model.key(), "engine left, model right");
        let (value, expected) = (self.subject.value().unwrap(), self.model.value().unwrap());
        // Not assert_eq: the values may be long.
        assert!(
            value == expected,
            "key {:?}: {} and {} bytes",
            self.model.key(),
            value.len(),
            expected.len()
        );
        Some(Entry { key: self.subject.key().to_vec(), value: value.to_vec() })
    }
}

/// A transaction on both sides.
pub struct Twin {
    /// By the order in which they begin, from 1.
    number: usize,
    subject: subject::Transaction,
    model: model::Transaction,
    savepoints: Vec<(subject::Savepoint, model::Savepoint)>,
    cursor: Option<CursorPair>,
    /// It was opened to keep a snapshot and a cursor.
    pub reads_only: bool,
    /// What it writes may wait for [`Twin::finish_writes`].
    pub gathers: bool,
}

impl Twin {
    /// Notes what the transaction does, for the table of a history that fails.
    fn tell(&self, what: impl FnOnce() -> String) {
        tell(self.number, what);
    }

    pub fn open_snapshot(&mut self) {
        self.tell(|| "snapshot".into());
        self.subject.open_snapshot();
        self.model.open_snapshot();
    }

    pub fn lock(
        &mut self,
        world: &World,
        table: usize,
        tree: usize,
        key: &[u8],
        mode: LockMode,
    ) -> Result<LockOutcome> {
        self.tell(|| format!("lock {table}/{tree} {} {mode:?}", shown(key)));
        let table = &world.tables[table];
        let wait = WaitRequest::no_wait();
        same(
            self.subject.lock(table.subject.tree(tree), key, mode, &wait),
            self.model.lock(table.model.tree(tree), key, mode, &wait),
        )
    }

    /// A key that came and went, so that nobody can see that it was there, leaves no trace in the engine: it may call
    /// it unchanged.
    pub fn changed_since_snapshot(&mut self, world: &World, table: usize, key: &[u8]) -> bool {
        let trees = &world.tables[table];
        let subject = self.subject.changed_since_snapshot(trees.subject.tree(0), key);
        let model = self.model.changed_since_snapshot(trees.model.tree(0), key);
        if world.little_history && matches!(subject, Err(Error::SnapshotTooOld { .. })) {
            return true;
        }
        if let (Ok(false), Ok(true)) = (&subject, &model) {
            let mut cursor = new_cursors(world, table, 0).model;
            let there =
                [View::Snapshot, View::Latest].map(|view| cursor.get(&mut self.model, view, key).unwrap());
            assert_eq!(there, [false, false], "the engine misses a change");
            return false;
        }
        same(subject, model).unwrap()
    }

    pub fn get(
        &mut self,
        world: &World,
        table: usize,
        tree: usize,
        view: View,
        key: &[u8],
    ) -> Option<Vec<u8>> {
        self.tell(|| format!("get {table}/{tree} {} {view:?}", shown(key)));
        let mut cursors = new_cursors(world, table, tree);
        let subject = cursors.subject.get(&mut self.subject, view, key);
        let model = cursors.model.get(&mut self.model, view, key);
        cursors.entry(subject, model).map(|entry| entry.value)
    }

    /// `exists`: whether the key has a value in this transaction's eyes; `None` deletes.
    pub fn write(
        &mut self,
        world: &World,
        table: usize,
        tree: usize,
        key: &[u8],
        exists: bool,
        new: Option<&[u8]>,
    ) {
        let op = match new {
            Some(value) if exists => WriteOp::Update(value),
            Some(value) => WriteOp::Insert(value),
            None => WriteOp::Delete,
        };
        self.tell(|| match new {
            Some(value) => format!("write {table}/{tree} {} = {} bytes", shown(key), value.len()),
            None => format!("delete {table}/{tree} {}", shown(key)),
        });
        let table = &world.tables[table];
        let written = match self.gathers {
            true => self.subject.write_later(table.subject.tree(tree), key, op),
            false => self.subject.write(table.subject.tree(tree), key, op),
        };
        same(written, self.model.write(table.model.tree(tree), key, op)).unwrap();
        assert!(self.subject.has_writes());
    }

    /// A new row, behind those appended before or not.
    pub fn append(&mut self, world: &World, table: usize, key: &[u8], value: &[u8]) {
        self.tell(|| format!("append {table}/0 {} = {} bytes", shown(key), value.len()));
        let table = &world.tables[table];
        same(
            self.subject.append(table.subject.tree(0), key, value),
            self.model.write(table.model.tree(0), key, WriteOp::Insert(value)),
        )
        .unwrap();
        assert!(self.subject.has_writes());
    }

    /// Until here others, even those that look at what is pending, do not meet what was appended or gathered; the model
    /// knows no such thing.
    pub fn finish_writes(&mut self) {
        self.tell(|| "finish writes".into());
        self.gathers = false;
        self.subject.finish_writes().unwrap();
    }

    /// Places a cursor that stays until [`Twin::close_cursor`].
    pub fn open_cursor(
        &mut self,
        world: &World,
        table: usize,
        tree: usize,
        view: View,
        start: Scan,
    ) -> Option<Entry> {
        self.tell(|| match &start {
            Scan::First => format!("first {table}/{tree} {view:?}"),
            Scan::Last => format!("last {table}/{tree} {view:?}"),
            Scan::Seek(seek, key) => format!("{seek:?} {table}/{tree} {} {view:?}", shown(key)),
        });
        let mut cursors = new_cursors(world, table, tree);
        let (subject, model) = match &start {
            Scan::First => {
                (cursors.subject.first(&mut self.subject, view), cursors.model.first(&mut self.model, view))
            }
            Scan::Last => {
                (cursors.subject.last(&mut self.subject, view), cursors.model.last(&mut self.model, view))
            }
            Scan::Seek(seek, key) => (
                cursors.subject.seek(&mut self.subject, view, *seek, key),
                cursors.model.seek(&mut self.model, view, *seek, key),
            ),
        };
        let entry = cursors.entry(subject, model);
        self.cursor = Some(cursors);
        entry
    }

    /// Moves the cursor if it stands on a key.
    pub fn step_cursor(&mut self, upwards: bool) -> Option<Entry> {
        self.tell(|| if upwards { "next" } else { "previous" }.into());
        let cursors = self.cursor.as_mut().filter(|c| c.found)?;
        let (subject, model) = match upwards {
            true => (cursors.subject.next(&mut self.subject), cursors.model.next(&mut self.model)),
            false => (cursors.subject.prev(&mut self.subject), cursors.model.prev(&mut self.model)),
        };
        cursors.entry(subject, model)
    }

    pub fn close_cursor(&mut self) {
        self.cursor = None;
    }

    /// A scan of up to `steps` keys that turns round after `turn` of them.
    #[allow(clippy::too_many_arguments)]
    pub fn scan(
        &mut self,
        world: &World,
        table: usize,
        tree: usize,
        view: View,
        start: Scan,
        steps: usize,
        turn: Option<usize>,
    ) {
        let mut upwards = start.upwards();
        let standing = self.cursor.take();
        let mut found = self.open_cursor(world, table, tree, view, start);
        let mut step = 0;
        while let (Some(entry), true) = (found, step < steps) {
            if step % 8 == 7 {
                self.refresh(view, &entry);
            }
            if Some(step) == turn {
                upwards = !upwards;
            }
            found = self.step_cursor(upwards);
            step += 1;
        }
        self.cursor = standing;
    }

    fn refresh(&mut self, view: View, expected: &Entry) {
        let Some(cursors) = &mut self.cursor else { return };
        let subject = cursors.subject.refresh(&mut self.subject, view);
        let model = cursors.model.refresh(&mut self.model, view);
        let too_old = subject.is_err();
        let found = cursors.entry(subject, model);
        assert!(found.as_ref() == Some(expected) || too_old && found.is_none());
    }

    pub fn savepoint(&mut self) {
        self.tell(|| "savepoint".into());
        self.savepoints.push((self.subject.savepoint(), self.model.savepoint()));
    }

    /// Back to one of the newest savepoints, or to the begin.
    pub fn rollback_to_savepoint(&mut self) {
        self.tell(|| "rollback to savepoint".into());
        self.cursor = None;
        if let Some((subject, model)) = self.savepoints.pop() {
            same(self.subject.rollback_to(subject), self.model.rollback_to(model)).unwrap();
            assert_eq!(self.subject.has_writes(), self.model.has_writes());
        }
    }

    /// READ COMMITTED gives its snapshot back.
    pub fn end_statement(&mut self) {
        self.tell(|| "end statement".into());
        if self.subject.isolation() == Isolation::ReadCommitted {
            self.cursor = None;
            self.subject.close_snapshot();
            self.model.close_snapshot();
        }
    }

    pub fn commit(self) {
        self.tell(|| "commit".into());
        same(self.subject.commit(), self.model.commit()).unwrap();
    }

    pub fn rollback(self) {
        self.tell(|| "rollback".into());
        self.subject.rollback();
        self.model.rollback();
    }

    /// Prepares; then 0: commits as with a binlog, 1: lets go and commits by identifier, 2: likewise rolls back.
    pub fn commit_in_two_phases(mut self, world: &World, how: usize) {
        self.tell(|| {
            ["prepare", "prepare, commit by identifier", "prepare, roll back by identifier"][how].into()
        });
        self.cursor = None;
        world.xids.set(world.xids.get() + 1);
        let xid = world.xids.get().to_be_bytes();
        same(self.subject.prepare(&xid), self.model.prepare(&xid)).unwrap();
        if how == 0 {
            self.subject.commit_ordered();
            self.model.commit_ordered();
            return self.commit();
        }
        drop((self.subject, self.model));
        assert_eq!(world.subject.prepared(), world.model.prepared());
        let (subject, model) = (&world.subject, &world.model);
        match how {
            1 => same(subject.commit_prepared(&xid), model.commit_prepared(&xid)).unwrap(),
            _ => same(subject.rollback_prepared(&xid), model.rollback_prepared(&xid)).unwrap(),
        }
        assert!(matches!(
            same(subject.commit_prepared(&xid), model.commit_prepared(&xid)),
            Err(Error::Xid(_))
        ));
    }
}

fn new_cursors(world: &World, table: usize, tree: usize) -> CursorPair {
    let table = &world.tables[table];
    CursorPair {
        subject: subject::Cursor::new(table.subject.tree(tree).clone()),
        model: model::Cursor::new(table.model.tree(tree).clone()),
        found: false,
        little_history: world.little_history,
    }
}
