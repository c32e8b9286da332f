//! What of a load is done, kept in the server it loads into, so that `--resume` neither repeats nor leaves out a row.
//!
//! A database of its own (`teak_load`), which is removed when the last load has ended well:
//!
//! ```text
//! rows_<engine>   what was inserted: written in the transaction of the rows, so in a table of their own engine
//! steps           other statements: first as begun, then as done, since DDL ends transactions
//! deferred        keys that are to be built in the end
//! ```
//!
//! A load is known by its sources (names, sizes and times of change) and by the database that it goes into unless the
//! dump says another. While it runs, its connection holds a lock of that name. A statement is known by its source and
//! offset.
//!
//! Each other connection that changes something is in `steps`, too, and holds a lock of its own: when a load was
//! killed, the server may still carry out its last statements, a COMMIT among them. The next one waits for these locks
//! before it asks what is done.

use super::deferred::only_builds_keys;
use super::error::LoadError;
use super::input::Source;
use super::report::Report;
use super::task::{Table, Task};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use teak_client::{Connection, Error};
use teak_console::signals;
use teak_sql::quoting::hex;

/// The database of the records.
const DATABASE: &str = "`teak_load`";
/// Seconds until a server has noticed that a load of the same files is gone, which was killed.
const PATIENCE: u32 = 10;
/// Held while the database is made or removed.
const LOCK: &str = "'teak_load'";

/// What a former run did with a statement.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Verdict {
    New,
    Done,
    /// It began, and may have ended.
    Begun,
}

/// Statements of one table and one source: from the first to the last of the table's, with both.
struct Range {
    first: u64,
    last: u64,
    done: bool,
}

/// The records of one load.
pub struct Progress {
    /// Digits and letters.
    id: String,
    /// By source and table, sorted. The name of no table is that of statements about several.
    past: HashMap<(usize, String), Vec<Range>>,
    /// The last offset that anything is known of, by source.
    furthest: HashMap<usize, u64>,
    /// Tables that exist, by engine in small letters.
    engines: Mutex<HashSet<String>>,
}

/// The name that records give to what concerns no single table.
const NO_TABLE: &str = "";
/// The number that no source has: in place of offsets are 0, for the load itself, and the numbers of its connections.
const NO_SOURCE: usize = i32::MAX as usize;

impl Progress {
    /// Makes the tables if need be. Without `resume` what a former run recorded is forgotten. The lock by which others
    /// know of this load ends with the connection.
    pub fn open(
        control: &mut Connection,
        sources: &[Source],
        database: Option<&str>,
        resume: bool,
        report: &Report,
    ) -> Result<Progress, LoadError> {
        let id = identity(sources, database);
        let lock = format!("SELECT GET_LOCK({}, {PATIENCE})", lock_of(&id));
        if control.value(lock)?.as_deref() != Some("1") {
            let problem = "these files are being loaded by another teak load";
            return Err(LoadError::Usage(problem.into()));
        }
        control.value(format!("SELECT GET_LOCK({LOCK}, 60)"))?;
        refuse_what_others_made(control)?;
        control.execute(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
        control.execute(format!(
            "CREATE TABLE IF NOT EXISTS {DATABASE}.steps (load_id CHAR(32) CHARACTER SET ascii NOT NULL, source INT NOT NULL,
                first BIGINT NOT NULL, last BIGINT NOT NULL, tbl VARBINARY(600) NOT NULL, done TINYINT NOT NULL,
                PRIMARY KEY (load_id, source, first, tbl))"
        ))?;
        control.execute(format!(
            "CREATE TABLE IF NOT EXISTS {DATABASE}.deferred (load_id CHAR(32) CHARACTER SET ascii NOT NULL, db VARBINARY(300) NOT NULL,
                tbl VARBINARY(300) NOT NULL, clauses LONGBLOB NOT NULL, PRIMARY KEY (load_id, db, tbl))"
        ))?;
        let mut progress = Progress {
            id,
            past: HashMap::new(),
            furthest: HashMap::new(),
            engines: Mutex::new(HashSet::new()),
        };
        progress.wait_for_killed(control, report)?;
        let tables = tables(control)?;
        let asked = format!("SELECT 1 FROM {DATABASE}.steps WHERE load_id = '{}' LIMIT 1", progress.id);
        if resume && control.value(asked)?.is_none() {
            control.value(format!("SELECT RELEASE_LOCK({LOCK})"))?;
            progress.remove(control)?;
            return Err(LoadError::NothingToResume);
        }
        if !resume {
            for table in &tables {
                control
                    .execute(format!("DELETE FROM {DATABASE}.`{table}` WHERE load_id = '{}'", progress.id))?;
            }
        }
        // By this the load is known to be under way, before anything of it is.
        control.execute(progress.step(NO_SOURCE, (0, 0), NO_TABLE, true))?;
        control.value(format!("SELECT RELEASE_LOCK({LOCK})"))?;
        for table in tables.iter().filter(|name| *name == "steps" || name.starts_with("rows_")) {
            progress.read(control, table)?;
        }
        Ok(progress)
    }

    /// Before a connection changes anything: those who find this load's records later can wait for what it does.
    pub fn join(&self, connection: &mut Connection) -> Result<(), LoadError> {
        let session = connection.value("SELECT CONNECTION_ID()")?.unwrap_or_default();
        let number = session
            .parse()
            .map_err(|_| Error::Protocol(format!("{session} is no number of a connection")))?;
        connection.execute(self.step(NO_SOURCE, (number, number), NO_TABLE, true))?;
        match connection.value(format!("SELECT GET_LOCK({}, 0)", self.lock_of(&session)))?.as_deref() {
            Some("1") => Ok(()),
            _ => Err(LoadError::Usage(format!("the lock {} is somebody else's", self.lock_of(&session)))),
        }
    }

    /// Waits until the server carries out nothing more of a load of these files that was killed: what it still commits
    /// is done, and not yet to be seen. The lock for making and removing the database is held before and after.
    fn wait_for_killed(&self, control: &mut Connection, report: &Report) -> Result<(), LoadError> {
        let of_connections = format!("load_id = '{}' AND source = {NO_SOURCE} AND first > 0", self.id);
        let sessions = control.query(format!("SELECT first FROM {DATABASE}.steps WHERE {of_connections}"))?;
        if sessions.is_empty() {
            return Ok(());
        }
        // Their records keep the database. Others need not wait for what this load waits for.
        control.value(format!("SELECT RELEASE_LOCK({LOCK})"))?;
        for session in sessions.into_iter().flatten().flatten() {
            let session = String::from_utf8_lossy(&session).into_owned();
            let (lock, mut told) = (self.lock_of(&session), false);
            while control.value(format!("SELECT GET_LOCK({lock}, 1)"))?.as_deref() != Some("1") {
                if signals::interrupted() {
                    return Err(LoadError::Interrupted);
                }
                if !std::mem::replace(&mut told, true) {
                    report.warn(&format!(
                        "the server still carries out the last statement of a load of these files that was killed, on \
                         its connection {session}: this load waits for that"
                    ));
                }
            }
            control.value(format!("SELECT RELEASE_LOCK({lock})"))?;
        }
        control.value(format!("SELECT GET_LOCK({LOCK}, 60)"))?;
        control.execute(format!("DELETE FROM {DATABASE}.steps WHERE {of_connections}"))?;
        Ok(())
    }

    /// The name of the lock of one of its connections.
    fn lock_of(&self, session: &str) -> String {
        lock_of(&format!("{}_{session}", self.id))
    }

    /// How many other loads did not end well, and do not run: their records are still there.
    pub fn left_by_others(&self, control: &mut Connection) -> Result<usize, Error> {
        let others = control
            .query(format!("SELECT DISTINCT load_id FROM {DATABASE}.steps WHERE load_id <> '{}'", self.id))?;
        let mut left = 0;
        for id in others.into_iter().filter_map(|row| String::from_utf8(row.into_iter().next()??).ok()) {
            let is_free = control.value(format!("SELECT IS_FREE_LOCK({})", lock_of(&id)))?;
            left += usize::from(is_free.as_deref() == Some("1"));
        }
        Ok(left)
    }

    fn read(&mut self, control: &mut Connection, table: &str) -> Result<(), Error> {
        let last = if table == "steps" { "last, done" } else { "last, 1" };
        let rows = control.query(format!(
            "SELECT source, tbl, first, {last} FROM {DATABASE}.`{table}` WHERE load_id = '{}'",
            self.id
        ))?;
        for row in rows {
            let text = |i: usize| {
                String::from_utf8_lossy(row.get(i).and_then(Option::as_deref).unwrap_or_default())
                    .into_owned()
            };
            let number = |i: usize| {
                text(i)
                    .parse::<u64>()
                    .map_err(|_| Error::Protocol(format!("a damaged record in {DATABASE}.{table}")))
            };
            let source = number(0)? as usize;
            let range = Range { first: number(2)?, last: number(3)?, done: number(4)? == 1 };
            let furthest = self.furthest.entry(source).or_default();
            *furthest = range.first.max(*furthest);
            self.past.entry((source, text(1))).or_default().push(range);
        }
        self.past.values_mut().for_each(|ranges| ranges.sort_by_key(|range| range.first));
        Ok(())
    }

    /// What became of the rows of a statement.
    pub fn of_rows(&self, source: usize, table: &Table, offset: u64) -> Verdict {
        let Some(ranges) = self.past.get(&(source, table.shown())) else { return Verdict::New };
        let after = ranges.partition_point(|range| range.first <= offset);
        let found = ranges[..after].iter().rev().find(|range| offset <= range.last);
        found.map_or(Verdict::New, |range| if range.done { Verdict::Done } else { Verdict::Begun })
    }

    /// What became of a statement about one table. Something later about the table tells that it was done.
    pub fn of_definition(&self, source: usize, table: &Table, offset: u64) -> Verdict {
        let later = |range: &Range| range.first > offset;
        match self.past.get(&(source, table.shown())) {
            Some(ranges) if ranges.iter().any(later) => Verdict::Done,
            _ => self.of_rows(source, table, offset),
        }
    }

    /// What became of a statement that everything later waited for.
    pub fn of_exclusive(&self, source: usize, offset: u64) -> Verdict {
        if self.furthest.get(&source).is_some_and(|&furthest| furthest > offset) {
            return Verdict::Done;
        }
        let ranges = self.past.get(&(source, NO_TABLE.to_string()));
        match ranges.and_then(|ranges| ranges.iter().find(|range| range.first == offset)) {
            None => Verdict::New,
            Some(range) => {
                if range.done {
                    Verdict::Done
                } else {
                    Verdict::Begun
                }
            }
        }
    }

    /// Makes the table for records of rows of an engine.
    pub fn prepare(&self, control: &mut Connection, engine: &str) -> Result<(), Error> {
        let engine = engine.to_ascii_lowercase();
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        if engines.insert(engine.clone()) {
            control.execute(format!(
                "CREATE TABLE IF NOT EXISTS {DATABASE}.`rows_{engine}` (load_id CHAR(32) CHARACTER SET ascii NOT NULL,
                    source INT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL, tbl VARBINARY(600) NOT NULL,
                    PRIMARY KEY (load_id, source, first)) ENGINE={engine}"
            ))?;
        }
        Ok(())
    }

    /// The statement that records rows, for their transaction.
    pub fn rows(&self, task: &Task, engine: &str, last: u64) -> String {
        let (engine, table, first) =
            (engine.to_ascii_lowercase(), hex(task.table.shown().as_bytes()), task.range().0);
        format!(
            "INSERT INTO {DATABASE}.`rows_{engine}` VALUES ('{}', {}, {first}, {last}, x'{table}')",
            self.id, task.origin.index
        )
    }

    /// The statement that records another statement, as begun or done.
    pub fn step(&self, source: usize, (first, last): (u64, u64), table: &str, done: bool) -> String {
        let (table, done) = (hex(table.as_bytes()), u8::from(done));
        format!(
            "REPLACE INTO {DATABASE}.steps VALUES ('{}', {source}, {first}, {last}, x'{table}', {done})",
            self.id
        )
    }

    /// The statement that records an exclusive one.
    pub fn exclusive(&self, source: usize, offset: u64, done: bool) -> String {
        self.step(source, (offset, offset), NO_TABLE, done)
    }

    /// The statement that records keys to build.
    pub fn deferred(&self, table: &Table, clauses: &[u8]) -> String {
        let (db, name, clauses) = (hex(&table.database), hex(&table.name), hex(clauses));
        format!("REPLACE INTO {DATABASE}.deferred VALUES ('{}', x'{db}', x'{name}', x'{clauses}')", self.id)
    }

    /// The statement that forgets them again.
    pub fn built(&self, table: &Table) -> String {
        let (db, name) = (hex(&table.database), hex(&table.name));
        format!(
            "DELETE FROM {DATABASE}.deferred WHERE load_id = '{}' AND db = x'{db}' AND tbl = x'{name}'",
            self.id
        )
    }

    /// Tables whose keys loads have taken off that did not end well.
    pub fn keys_of_others(&self, control: &mut Connection) -> Result<Vec<String>, Error> {
        let rows = control.query(format!(
            "SELECT DISTINCT CONCAT(db, '.', tbl) FROM {DATABASE}.deferred WHERE load_id <> '{}'
                AND IS_FREE_LOCK(CONCAT('teak_load_', load_id)) ORDER BY 1",
            self.id
        ))?;
        Ok(rows
            .into_iter()
            .flatten()
            .flatten()
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect())
    }

    /// Keys that a former run put off: database, table, clauses.
    pub fn deferred_before(&self, control: &mut Connection) -> Result<Vec<[Vec<u8>; 3]>, LoadError> {
        let rows = control.query(format!(
            "SELECT db, tbl, clauses FROM {DATABASE}.deferred WHERE load_id = '{}'",
            self.id
        ))?;
        let row = |row: Vec<Option<Vec<u8>>>| {
            row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().try_into().ok()
        };
        let keys: Vec<[Vec<u8>; 3]> = rows.into_iter().filter_map(row).collect();
        match keys.iter().find(|[_, _, clauses]| !only_builds_keys(clauses)) {
            None => Ok(keys),
            Some([_, table, _]) => Err(LoadError::Usage(format!(
                "{DATABASE}.deferred has something else than keys for the table {}: nothing of it is carried out",
                String::from_utf8_lossy(table)
            ))),
        }
    }

    /// The load ended well: its records go, and with those of the last load, the database.
    pub fn remove(&self, control: &mut Connection) -> Result<(), Error> {
        control.value(format!("SELECT GET_LOCK({LOCK}, 60)"))?;
        let tables = tables(control)?;
        let mut left = false;
        for table in &tables {
            control.execute(format!("DELETE FROM {DATABASE}.`{table}` WHERE load_id = '{}'", self.id))?;
            left |= control.value(format!("SELECT 1 FROM {DATABASE}.`{table}` LIMIT 1"))?.is_some();
        }
        let count = control
            .value("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'teak_load'")?;
        if !left && count == Some(tables.len().to_string()) {
            control.execute(format!("DROP DATABASE {DATABASE}"))?;
        }
        control.value(format!("SELECT RELEASE_LOCK({LOCK})"))?;
        Ok(())
    }
}

/// What this program makes are tables of engines that keep their rows themselves. A view could carry out functions of
/// others, and tables of other engines lead elsewhere.
fn refuse_what_others_made(control: &mut Connection) -> Result<(), LoadError> {
    const ELSEWHERE: &str =
        "'CONNECT', 'FEDERATED', 'MRG_MyISAM', 'SPIDER', 'SEQUENCE', 'CSV', 'S3', 'OQGRAPH'";
    let other = control.value(format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'teak_load'
            AND (TABLE_TYPE <> 'BASE TABLE' OR ENGINE IS NULL OR ENGINE IN ({ELSEWHERE})) LIMIT 1"
    ))?;
    match other {
        None => Ok(()),
        Some(name) => Err(LoadError::Usage(format!(
            "{DATABASE}.`{name}` is no table that teak load has made: see whose it is, or load with --no-record"
        ))),
    }
}

/// The tables of records that exist.
fn tables(control: &mut Connection) -> Result<Vec<String>, Error> {
    let rows =
        control.query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'teak_load'")?;
    let names = rows.into_iter().filter_map(|row| String::from_utf8(row.into_iter().next()??).ok());
    Ok(names.filter(|name| name == "steps" || name == "deferred" || name.starts_with("rows_")).collect())
}

/// The name of the lock of a load.
fn lock_of(id: &str) -> String {
    format!("'teak_load_{id}'")
}

/// The same for the same files and database.
fn identity(sources: &[Source], database: Option<&str>) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(format!("{database:?}\n").as_bytes());
    for source in sources {
        let path = source.path.as_ref().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        let changed = path.as_ref().and_then(|path| path.metadata().ok()?.modified().ok());
        context.update(format!("{path:?} {:?} {changed:?}\n", source.size).as_bytes());
    }
    hex(&context.finish().as_ref()[..16])
}

/// A table without transactions that a former run was just filling.
pub fn cannot_resume(table: &Table, engine: &str) -> LoadError {
    LoadError::Usage(format!(
        "{} is of the engine {engine}, which has no transactions: what of its rows the former run inserted cannot be told. \
         Load again without --resume",
        table.shown()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Table {
        Table { lane: 1, database: b"d".to_vec(), name: name.into() }
    }

    #[test]
    fn what_is_recorded_is_done_and_what_comes_before_a_later_thing_too() {
        let range = |first, last, done| Range { first, last, done };
        let past = HashMap::from([
            ((0, "d.a".to_string()), vec![range(10, 10, true), range(20, 40, true), range(60, 60, false)]),
            ((0, NO_TABLE.to_string()), vec![range(90, 90, false)]),
        ]);
        let progress =
            Progress { id: "x".into(), past, furthest: HashMap::from([(0, 90)]), engines: Mutex::default() };
        let rows = |offset| progress.of_rows(0, &table("a"), offset);
        assert_eq!(
            [15, 20, 30, 40, 41, 60].map(rows),
            [Verdict::New, Verdict::Done, Verdict::Done, Verdict::Done, Verdict::New, Verdict::Begun]
        );
        assert_eq!(progress.of_rows(1, &table("a"), 30), Verdict::New);
        assert_eq!(progress.of_rows(0, &table("b"), 30), Verdict::New);
        assert_eq!(progress.of_definition(0, &table("a"), 5), Verdict::Done);
        assert_eq!(progress.of_definition(0, &table("a"), 60), Verdict::Begun);
        assert_eq!(progress.of_definition(0, &table("a"), 70), Verdict::New);
        assert_eq!(
            [80, 90, 95].map(|offset| progress.of_exclusive(0, offset)),
            [Verdict::Done, Verdict::Begun, Verdict::New]
        );
    }
}
