//! Tests of the operations.
//!
//! The table they use has three trees: rows, a unique index, a plain index. A row is `(pk, unique, plain)`, all text.

mod contention;
mod foreign;
mod later;
mod listing;
mod locks;
mod orphans;
mod random;
mod results;
mod rows;
mod transactions;
mod vanished;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use teak_core::file::RealFileSystem;
use teak_core::{CommitFlush, LockMode, LogLevel, Options, TreeSpec};

use crate::bounds::{End, Start};
use crate::engine::EngineHandle;
use crate::host::{Host, Thd};
use crate::outcome::{Result, Stop};
use crate::row::{Batch, Entry, Promise};
use crate::scan::{Read, TableCursor};
use crate::session::{Level, Session};
use teak_core::server::{Engine, NewTable, Table};

/// A row of the test table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row<'a> {
    pk: &'a str,
    unique: &'a str,
    plain: &'a str,
}

fn row<'a>(pk: &'a str, unique: &'a str, plain: &'a str) -> Row<'a> {
    Row { pk, unique, plain }
}

/// A row as bytes: what the shim would hand over.
#[derive(Debug, Clone)]
struct Image {
    pk: Vec<u8>,
    row: Vec<u8>,
    unique: (Vec<u8>, Vec<u8>),
    plain: (Vec<u8>, Vec<u8>),
}

impl Row<'_> {
    fn image(&self) -> Image {
        let pk = self.pk.as_bytes().to_vec();
        let mut reference = (pk.len() as u16).to_le_bytes().to_vec();
        reference.extend_from_slice(&pk);
        Image {
            row: format!("{}/{}/{}", self.pk, self.unique, self.plain).into_bytes(),
            unique: (self.unique.as_bytes().to_vec(), reference),
            plain: (plain_key(self.plain, self.pk), Vec::new()),
            pk,
        }
    }
}

fn plain_key(plain: &str, pk: &str) -> Vec<u8> {
    format!("{plain}\0{pk}").into_bytes()
}

impl Image {
    fn entries(&self) -> [Entry<'_>; 2] {
        [
            Entry { tree: 1, unique: true, key: &self.unique.0, value: &self.unique.1 },
            Entry { tree: 2, unique: false, key: &self.plain.0, value: &self.plain.1 },
        ]
    }
}

/// What stands in for a THD.
#[derive(Default)]
struct Connection {
    asleep: AtomicBool,
    sleeps: AtomicU64,
    killed: AtomicBool,
    /// The THDs that it reported to wait for.
    waited_for: Mutex<Vec<Thd>>,
    /// Who waits for it is told that it will be rolled back.
    victim: AtomicBool,
}

impl Connection {
    /// Returns when it waits for a lock.
    fn until_asleep(&self) {
        while !self.asleep.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

/// Of sessions of tests that do not care.
const NOBODY: Thd = Thd(usize::MAX);

/// The server: a connection's THD is its place.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Vec<Arc<Connection>>>>);

impl Server {
    fn connect(&self) -> (Thd, Arc<Connection>) {
        let mut connections = self.0.lock().unwrap();
        connections.push(Arc::default());
        (Thd(connections.len() - 1), connections.last().unwrap().clone())
    }

    fn connection(&self, thd: Thd) -> Option<Arc<Connection>> {
        self.0.lock().unwrap().get(thd.0).cloned()
    }
}

type Act = Box<dyn FnOnce()>;

thread_local! {
    /// What the server does on the next call of `report_wait`, of `reports_made` on this thread; a call that is not
    /// expected does nothing.
    static REPORT_WAIT: RefCell<Option<Act>> = const { RefCell::new(None) };
    static REPORTS_MADE: RefCell<Option<Act>> = const { RefCell::new(None) };
}

impl Host for Server {
    fn log(&self, _: LogLevel, _: &str) {}

    fn is_killed(&self, thd: Thd) -> bool {
        self.connection(thd).is_some_and(|c| c.killed.load(Ordering::SeqCst))
    }

    fn wait_is_reported(&self, _: Thd) -> bool {
        true
    }

    fn report_wait(&self, waiter: Thd, holder: Thd) -> bool {
        if let Some(waiter) = self.connection(waiter) {
            waiter.waited_for.lock().unwrap().push(holder);
        }
        if let Some(act) = REPORT_WAIT.take() {
            act();
        }
        self.connection(holder).is_some_and(|c| c.victim.load(Ordering::SeqCst))
    }

    fn reports_made(&self) {
        if let Some(act) = REPORTS_MADE.take() {
            act();
        }
    }

    fn wait_begin(&self, thd: Thd) {
        if let Some(connection) = self.connection(thd) {
            connection.sleeps.fetch_add(1, Ordering::SeqCst);
            connection.asleep.store(true, Ordering::SeqCst);
        }
    }

    fn wait_end(&self, thd: Thd) {
        if let Some(connection) = self.connection(thd) {
            connection.asleep.store(false, Ordering::SeqCst);
        }
    }
}

/// An engine with the test table.
struct Bench {
    engine: Arc<EngineHandle>,
    server: Server,
    table: Arc<Table>,
    dir: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let dir = std::env::temp_dir().join(format!("teak-rows-{}-{number}", std::process::id()));
        Bench::open(dir, |core| {
            core.create(NewTable { meta: b"meta", ..NewTable::new("db/t", &[TreeSpec::default(); 3]) })
                .expect("a table");
        })
    }

    fn open(dir: PathBuf, before: impl FnOnce(&Engine)) -> Bench {
        let options = Options { commit_flush: CommitFlush::Lazy, ..Options::new(&dir) };
        let core = Engine::open(Arc::new(RealFileSystem), options).expect("an engine");
        before(&core);
        let table = core.open_table("db/t").expect("the table");
        let server = Server::default();
        let engine = Arc::new(EngineHandle::new(core, Box::new(server.clone())));
        Bench { engine, server, table, dir }
    }

    /// Closes the engine and opens it again.
    fn reopen(mut self) -> Bench {
        let dir = std::mem::take(&mut self.dir);
        drop(self);
        Bench::open(dir, |_| ())
    }

    fn session(&self, level: Level) -> Session {
        let mut session = Session::new(self.engine.clone(), NOBODY, 1);
        session.set_lock_wait_timeout(Duration::from_millis(30));
        session.begin(level).expect("a transaction");
        session
    }

    /// A session that waits for long, and its connection.
    fn patient(&self) -> (Session, Arc<Connection>) {
        let (thd, connection) = self.server.connect();
        let mut session = Session::new(self.engine.clone(), thd, 2);
        session.set_lock_wait_timeout(Duration::from_secs(20));
        session.begin(Level::RepeatableRead).expect("a transaction");
        (session, connection)
    }

    fn repeatable(&self) -> Session {
        self.session(Level::RepeatableRead)
    }

    /// Commits `rows` in a transaction of their own.
    fn fill(&self, rows: &[Row<'_>]) {
        let mut session = self.repeatable();
        for row in rows {
            self.insert(&mut session, *row).expect("a new row");
        }
        session.commit().expect("a commit");
    }

    fn insert(&self, session: &mut Session, row: Row<'_>) -> Result<()> {
        self.insert_with(session, row, Promise::default()).map_err(|(stop, _)| stop)
    }

    /// On an error also the tree that refused.
    fn insert_with(
        &self,
        session: &mut Session,
        row: Row<'_>,
        promise: Promise,
    ) -> std::result::Result<(), (Stop, u32)> {
        let image = row.image();
        let entries = image.entries();
        session
            .insert(&self.table, &image.pk, &image.row, entries.iter().copied(), promise)
            .map_err(|stop| (stop, session.collision.tree))
    }

    fn update(&self, session: &mut Session, old: Row<'_>, new: Row<'_>) -> Result<()> {
        let (old, new) = (old.image(), new.image());
        let (before, after) = (old.entries(), new.entries());
        let pairs = before.iter().zip(after.iter()).map(|(old, new)| (Some(*old), Some(*new)));
        session.update(&self.table, &old.pk, &new.pk, &new.row, pairs, Promise::default())
    }

    fn delete(&self, session: &mut Session, row: Row<'_>) -> Result<()> {
        let image = row.image();
        session.delete(&self.table, &image.pk, image.entries().iter().copied(), Promise::default())
    }

    fn cursor(&self, tree: u32) -> TableCursor {
        TableCursor::new(self.table.clone(), tree, tree == 1).expect("a cursor")
    }

    /// The row with this primary key.
    fn get(&self, session: &mut Session, pk: &str, read: Read) -> Result<String> {
        let mut cursor = self.cursor(0);
        cursor.get(session, pk.as_bytes(), read)?;
        text(&cursor)
    }

    /// All keys of a tree.
    fn keys(&self, session: &mut Session, tree: u32, read: Read) -> Result<Vec<String>> {
        let mut cursor = self.cursor(tree);
        let mut keys = Vec::new();
        let mut result = cursor.seek(session, Start::First, b"", End::Open, read);
        loop {
            match result {
                Ok(()) => keys.push(String::from_utf8_lossy(cursor.key()).into_owned()),
                Err(Stop::NotFound | Stop::End) => return Ok(keys),
                Err(error) => return Err(error),
            }
            result = cursor.next(session);
        }
    }

    /// What a new transaction sees.
    fn committed(&self, tree: u32) -> Vec<String> {
        self.keys(&mut self.repeatable(), tree, Read::SNAPSHOT).expect("a scan")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let closed = self.engine.core.close();
        if !std::thread::panicking() {
            closed.expect("a clean end");
        }
        // A directory that stays behind spoils no other test.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn text(cursor: &TableCursor) -> Result<String> {
    Ok(String::from_utf8_lossy(cursor.value()?).into_owned())
}

const EXCLUSIVE: Read = Read::locking(LockMode::Exclusive);
const SHARED: Read = Read::locking(LockMode::Shared);
