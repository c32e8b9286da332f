//! Reads the sources and decides, statement by statement, who carries it out and after what.
//!
//! The main connection is in the session of the dump at the place where it is read: it carries out SET and USE at once,
//! and statements that concern more than one table once all before them are done. All else goes to the workers.

use super::error::{LoadError, Place};
use super::input::{self, Source};
use super::into;
use super::progress::{cannot_resume, Verdict};
use super::queue::Work;
use super::server::Server;
use super::session::SessionState;
use super::state::LoadState;
use super::task::{Action, Facts, Origin, Piece, Table, Task, Unit};
use super::verify::{self, Checker};
use super::worker::{is_conflict, says_it_is_done};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use teak_client::{Connection, Error};
use teak_console::signals;
use teak_sql::charset::Dialect;
use teak_sql::quoting::quoted_name;
use teak_sql::rows::Rows;
use teak_sql::splitter::{Splitter, Statement, LONGEST};
use teak_sql::statement::{classify, classify_complex_insert, Insert, Kind, TableName};

mod check;
mod long;

/// A task with this much text is handed over; small statements are joined to as much.
const TASK: usize = 512 << 10;
/// Longer INSERTs are sent as they are: joining them would only copy.
const JOINED: usize = 64 << 10;
/// Tables whose rows are collected at once.
const MOST_OPEN: usize = 256;

/// The thread that reads.
pub struct Loader<'a> {
    shared: &'a LoadState,
    server: Server,
    main: Connection,
    control: Connection,
    session: SessionState,
    dialect: Dialect,
    origin: Arc<Origin>,
    tables: HashMap<(Vec<u8>, Vec<u8>), Arc<Table>>,
    facts: HashMap<usize, Arc<Facts>>,
    /// Tasks that more statements may be added to, by lane.
    open: HashMap<usize, Task>,
    /// All statements on the main connection, in their order.
    serial: bool,
    /// For rows that the main connection inserts.
    checker: Option<Checker<'a>>,
    /// Lanes of tables for which the dump itself has made triggers.
    triggered: HashSet<usize>,
}

impl<'a> Loader<'a> {
    /// `control`: a connection for questions and records, in no session of a dump.
    pub fn new(
        shared: &'a LoadState,
        mut control: Connection,
        serial: bool,
    ) -> Result<Loader<'a>, LoadError> {
        let main = shared.connect_to_change()?;
        let server = Server::ask(&mut control)?;
        let session = shared.first_session();
        let dialect = session.dialect();
        let origin = Arc::new(Origin { index: 0, name: String::new(), avoided: None });
        let (tables, facts, open, triggered) = Default::default();
        Ok(Loader {
            shared,
            server,
            main,
            control,
            session,
            dialect,
            origin,
            tables,
            facts,
            open,
            serial,
            checker: None,
            triggered,
        })
    }

    /// Carries out all sources; when it returns, all is done, or something failed.
    pub fn run(&mut self, sources: &[Source]) -> Result<(), LoadError> {
        self.adopt_deferred()?;
        for (index, source) in sources.iter().enumerate() {
            let avoided = source.of_mydumper.clone().filter(|of| Some(of) != source.database.as_ref());
            let avoided = avoided.filter(|_| source.database.is_some());
            self.origin = Arc::new(Origin { index, name: source.name.clone(), avoided });
            self.begin_session(source.database.as_deref())?;
            self.read(source)?;
        }
        self.hand_over_all()?;
        self.shared.queue.wait_for_all()?;
        for table in self.shared.deferred.tables() {
            let (origin, session) = (self.origin.clone(), self.shared.first_session());
            let task = Task {
                table,
                origin,
                session,
                action: Action::Define,
                barrier: true,
                maybe_done: false,
                loaded: false,
                units: Vec::new(),
            };
            self.shared.queue.push(task)?;
        }
        self.shared.queue.wait_for_all()
    }

    /// Keys that an interrupted run has put off are put off in this one.
    fn adopt_deferred(&mut self) -> Result<(), LoadError> {
        let Some(progress) = &self.shared.progress else { return Ok(()) };
        for [database, name, clauses] in progress.deferred_before(&mut self.control)? {
            let table = self.table(&(Some(database), name));
            self.shared.deferred.add(table, clauses);
        }
        Ok(())
    }

    /// A source begins with a session of its own, as if a client had been started for it.
    fn begin_session(&mut self, database: Option<&str>) -> Result<(), LoadError> {
        // The first has the connection that was made for it.
        if self.origin.index > 0 {
            self.main = self.shared.connect_to_change()?;
            self.session = self.shared.first_session();
        }
        if let Some(database) = database {
            self.session.database = Some(database.as_bytes().to_vec());
            self.main.execute([b"USE ", &quoted_name(database.as_bytes())[..]].concat())?;
        }
        self.dialect = self.session.dialect();
        Ok(())
    }

    fn read(&mut self, source: &Source) -> Result<(), LoadError> {
        let input = input::open(source, self.shared.counters.read.clone())
            .map_err(|error| or_interrupted(LoadError::Read { name: source.name.clone(), error }))?;
        let mut splitter = Splitter::new(input, LONGEST, source.delimiter, self.dialect);
        let mut counted = 0;
        loop {
            let statement = splitter
                .next_statement()
                .map_err(|error| or_interrupted(LoadError::Split { name: source.name.clone(), error }))?;
            let Some(statement) = statement else { return Ok(()) };
            if signals::interrupted() {
                return Err(LoadError::Interrupted);
            }
            // Relaxed: a number to be shown, and final when the threads have been joined.
            self.shared.counters.statements.fetch_add(1, Ordering::Relaxed);
            let before = self.dialect;
            self.carry_out(statement)?;
            if self.dialect != before {
                splitter.set_dialect(self.dialect);
            }
            // Relaxed: as above.
            self.shared.counters.sql.fetch_add(splitter.offset() - counted, Ordering::Relaxed);
            counted = splitter.offset();
        }
    }

    fn carry_out(&mut self, statement: Statement<'_>) -> Result<(), LoadError> {
        let kind = classify(statement.text, self.dialect, self.session.checks_foreign_keys());
        if self.is_long(statement) && !matches!(kind, Kind::Insert(_)) {
            return Err(self.too_long("a statement", statement, statement.text.len()));
        }
        if let Some(database) = &self.origin.avoided {
            if into::names_database(statement.text, &kind, self.dialect, database) {
                let (database, place) = (database.clone(), self.place(statement));
                return Err(LoadError::OtherDatabase { database, place });
            }
        }
        match kind {
            Kind::SessionState => self.set(statement),
            Kind::Use(database) => self.enter_database(statement, database),
            _ if self.serial => self.serially(statement, kind),
            Kind::Insert(insert) => self.insert(statement, insert),
            Kind::Table(name) => self.define(statement, &name, Action::Define),
            Kind::CreateTable(name) => self.define(statement, &name, Action::Create),
            Kind::DisableKeys(name) => self.define(statement, &name, Action::DisableKeys),
            Kind::Dropped => Ok(()),
            Kind::Exclusive => self.on_its_own(statement),
            Kind::SerialOnly(what) => Err(LoadError::SerialOnly { what, place: self.place(statement) }),
        }
    }

    fn place(&self, statement: Statement<'_>) -> Place {
        Place::new(&self.origin.name, statement.line, statement.text)
    }

    /// A statement that fails on the main connection: the end, or to be passed over.
    fn failed(&self, statement: Statement<'_>, error: Error) -> Result<(), LoadError> {
        let refused = matches!(error, Error::Server { .. });
        let error = LoadError::Statement { place: self.place(statement), error };
        match refused {
            true => self.shared.pass_over(error),
            false => Err(error),
        }
    }

    fn set(&mut self, statement: Statement<'_>) -> Result<(), LoadError> {
        if let Err(error) = self.main.execute(statement.text) {
            return self.failed(statement, error);
        }
        if !self.serial && SessionState::sets_autocommit(statement.text, self.dialect) {
            self.main.execute("SET SESSION autocommit = 1")?;
        }
        self.session.update(statement.text, self.dialect, &mut self.main)?;
        self.dialect = self.session.dialect();
        Ok(())
    }

    fn enter_database(&mut self, statement: Statement<'_>, database: Vec<u8>) -> Result<(), LoadError> {
        match self.main.execute(statement.text) {
            Ok(_) => self.session.database = Some(database),
            Err(error) => self.failed(statement, error)?,
        }
        Ok(())
    }

    /// The table of a name in the present session.
    fn table(&mut self, name: &TableName) -> Arc<Table> {
        let default = self.session.database.clone().unwrap_or_default();
        let table = Table::of(self.tables.len(), name, &default);
        let fold =
            |name: &[u8]| if self.server.folds_names { name.to_ascii_lowercase() } else { name.to_vec() };
        let key = (fold(&table.database), fold(&table.name));
        self.tables.entry(key).or_insert_with(|| Arc::new(table)).clone()
    }

    /// What is known of a table, once all that defines it is done.
    fn facts(&mut self, table: &Table) -> Result<Arc<Facts>, LoadError> {
        if let Some(facts) = self.facts.get(&table.lane) {
            return Ok(facts.clone());
        }
        self.shared.queue.wait_for_lane(table.lane)?;
        let mut facts = self.server.facts(&mut self.control, table)?;
        if self.shared.verify.is_some() && !facts.engine.is_empty() {
            facts.definition = verify::columns_of(&mut self.control, &table.database, &table.name)?;
        }
        let facts = Arc::new(facts);
        if let Some(progress) = self.shared.progress.as_ref().filter(|_| facts.transactional) {
            progress.prepare(&mut self.control, &facts.engine)?;
        }
        self.facts.insert(table.lane, facts.clone());
        Ok(facts)
    }

    fn insert(&mut self, statement: Statement<'_>, insert: Insert) -> Result<(), LoadError> {
        let table = self.table(&insert.table);
        let facts = self.facts(&table)?;
        let elsewhere = facts.has_triggers || (facts.has_foreign_keys && self.session.checks_foreign_keys());
        if facts.engine.is_empty() {
            return self.on_its_own(statement);
        }
        if elsewhere {
            return self.insert_on_main(statement, insert, &table, &facts);
        }
        let Some(rows) = self.scan(statement, &insert, &facts) else {
            return match classify_complex_insert(statement.text, self.dialect) {
                Kind::SerialOnly(what) => Err(LoadError::SerialOnly { what, place: self.place(statement) }),
                _ => self.insert_on_main(statement, insert, &table, &facts),
            };
        };
        self.expect(&table, &facts, rows)?;
        let verdict =
            self.shared.progress.as_ref().map_or(Verdict::New, |progress| {
                progress.of_rows(self.origin.index, &table, statement.offset)
            });
        match verdict {
            Verdict::Done if self.shared.verify.is_none() => Ok(()),
            Verdict::Begun => Err(cannot_resume(&table, &facts.engine)),
            verdict => self.collect(statement, insert, table, &facts, (rows, verdict == Verdict::Done)),
        }
    }

    /// Adds rows to the table's open task, or begins another.
    fn collect(
        &mut self,
        statement: Statement<'_>,
        insert: Insert,
        table: Arc<Table>,
        facts: &Arc<Facts>,
        (rows, loaded): (Rows, bool),
    ) -> Result<(), LoadError> {
        let skips = self.shared.skips_errors();
        let ordered = insert.order_matters || rows.generates || skips;
        // One statement for several is the same only if it can be taken back when a row of it raises a warning.
        let joins = facts.can_repeat() && !rows.generates && !skips && statement.text.len() <= JOINED;
        if let Some(task) = self.open.get(&table.lane) {
            let fits = !self.is_long(statement)
                && task.barrier == ordered
                && task.loaded == loaded
                && task.session == self.session
                && task.origin.index == self.origin.index;
            if !fits {
                self.hand_over(table.lane)?;
            }
        }
        if !self.open.contains_key(&table.lane) {
            if self.open.len() >= MOST_OPEN {
                self.hand_over_all()?;
            }
            let (origin, session, action) =
                (self.origin.clone(), self.session.clone(), Action::Rows(facts.clone()));
            let task = Task {
                table: table.clone(),
                origin,
                session,
                action,
                barrier: ordered,
                maybe_done: false,
                loaded,
                units: Vec::new(),
            };
            self.open.insert(table.lane, task);
        }
        if self.is_long(statement) {
            // By itself: its parts are in one transaction.
            let units = self.units_of(statement, rows.count)?;
            if let Some(task) = self.open.get_mut(&table.lane) {
                task.units = units;
            }
            return self.hand_over(table.lane);
        }
        let Some(task) = self.open.get_mut(&table.lane) else { return Ok(()) };
        let Statement { text, line, offset } = statement;
        let piece = Piece { line, offset, from: insert.rows_at, to: text.len(), rows: rows.count };
        let limit = TASK.min(self.server.max_allowed_packet / 2);
        let joined = joins && task.units.last_mut().is_some_and(|unit| unit.join(text, piece, limit));
        if !joined && joins {
            task.units.push(Unit::joinable(text, insert.rows_at, line, offset, rows.count));
        } else if !joined {
            task.units.push(Unit::whole(text, line, offset, rows.count));
        }
        if task.bytes() >= TASK - JOINED {
            self.hand_over(table.lane)?;
        }
        Ok(())
    }

    fn hand_over(&mut self, lane: usize) -> Result<(), LoadError> {
        match self.open.remove(&lane) {
            Some(task) => self.shared.queue.push(task),
            None => Ok(()),
        }
    }

    fn hand_over_all(&mut self) -> Result<(), LoadError> {
        let mut tasks: Vec<Task> = self.open.drain().map(|(_, task)| task).collect();
        tasks.sort_by_key(Task::range);
        tasks.into_iter().try_for_each(|task| self.shared.queue.push(task))
    }

    /// A statement about one table: after what was done to the table, and before all that comes.
    fn define(
        &mut self,
        statement: Statement<'_>,
        name: &TableName,
        action: Action,
    ) -> Result<(), LoadError> {
        let table = self.table(name);
        let progress = self.shared.progress.as_ref();
        let verdict = progress.map_or(Verdict::New, |progress| {
            progress.of_definition(self.origin.index, &table, statement.offset)
        });
        self.note_trigger(statement, &table);
        if verdict == Verdict::Done {
            return self.defined_before(statement, &table);
        }
        self.hand_over(table.lane)?;
        self.facts.remove(&table.lane);
        let Statement { text, line, offset } = statement;
        self.shared.queue.push(Task {
            table,
            origin: self.origin.clone(),
            session: self.session.clone(),
            action,
            barrier: true,
            maybe_done: verdict == Verdict::Begun,
            loaded: false,
            units: vec![Unit::whole(text, line, offset, 0)],
        })
    }

    /// A statement that waits for all before it.
    fn exclusive(&mut self, statement: Statement<'_>) -> Result<(), LoadError> {
        if self.serial {
            return self.on_main(statement, false);
        }
        self.hand_over_all()?;
        self.shared.queue.wait_for_all()?;
        let progress = self.shared.progress.as_ref();
        match progress
            .map_or(Verdict::New, |progress| progress.of_exclusive(self.origin.index, statement.offset))
        {
            Verdict::Done => Ok(()),
            verdict => self.on_main(statement, verdict == Verdict::Begun),
        }
    }

    fn on_main(&mut self, statement: Statement<'_>, maybe_done: bool) -> Result<(), LoadError> {
        let first = statement.text.split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
        let changes_rows = ["INSERT", "REPLACE", "UPDATE", "DELETE"]
            .iter()
            .any(|word| first.eq_ignore_ascii_case(word.as_bytes()));
        if !changes_rows {
            // It may be about any table.
            self.facts.clear();
        }
        let parts = self.parts_of(statement)?;
        match self.recorded_on_main(statement, &parts, changes_rows, maybe_done) {
            Ok(affected) => {
                self.shared.counters.add_rows(if changes_rows { affected } else { 0 });
                Ok(())
            }
            Err(error) => self.failed(statement, error),
        }
    }

    /// With its record: in the same transaction if it changes rows, else before and after. The affected rows.
    fn recorded_on_main(
        &mut self,
        statement: Statement<'_>,
        parts: &[Cow<'_, [u8]>],
        changes_rows: bool,
        maybe_done: bool,
    ) -> Result<u64, Error> {
        let (progress, source) = (self.shared.progress.as_ref(), self.origin.index);
        let record = |done| progress.map(|progress| progress.exclusive(source, statement.offset, done));
        if self.serial || (progress.is_none() && parts.len() == 1) {
            return self.execute_all(parts, None);
        }
        if !changes_rows {
            self.execute_all(&[], record(false))?;
            match self.execute_all(parts, None) {
                Err(error) if maybe_done && says_it_is_done(&error) => {}
                result => drop(result?),
            }
            return self.execute_all(&[], record(true));
        }
        loop {
            self.main.execute("BEGIN")?;
            let result = self.execute_all(parts, record(true)).and_then(|affected| {
                self.main.execute("COMMIT")?;
                Ok(affected)
            });
            match result {
                Err(error) if is_conflict(&error) => drop(self.main.execute("ROLLBACK")?),
                Err(error @ Error::Server { .. }) => {
                    self.main.execute("ROLLBACK")?;
                    return Err(error);
                }
                result => return result,
            }
        }
    }

    /// The affected rows of all parts.
    fn execute_all(&mut self, parts: &[Cow<'_, [u8]>], record: Option<String>) -> Result<u64, Error> {
        let mut affected = 0;
        for part in parts {
            affected += self.main.execute(part)?.affected_rows;
        }
        record.map_or(Ok(()), |record| self.main.execute(record).map(drop))?;
        Ok(affected)
    }

    /// All is loaded: the records are not needed any more.
    pub fn remove_records(&mut self) -> Result<(), LoadError> {
        match &self.shared.progress {
            Some(progress) => Ok(progress.remove(&mut self.control)?),
            None => Ok(()),
        }
    }
}

/// A read that a signal has ended, or another error.
fn or_interrupted(error: LoadError) -> LoadError {
    match signals::interrupted() {
        true => LoadError::Interrupted,
        false => error,
    }
}
