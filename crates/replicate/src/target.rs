//! The connection to the target, whose transactions have rows and position together.
//!
//! One connection does all, also statements that change definitions: the lock by name that it holds says that a source
//! is followed by somebody, and a server gives it up only when what the connection began has ended.

mod definitions;
mod keys;
mod locks;
mod of_mysql;
mod origin;
mod prepared;
mod workers;

pub use definitions::without_counter;
pub use locks::{lock_of, lock_of_worker, take_free_lock, take_over_lock};
pub use origin::{server_id, set_origin, ONE_SERVER_ID};

use crate::above::Above;
use crate::claims::Claims;
use crate::configuration::{SourcePlan, TargetPlan};
use crate::control::{self, Wish};
use crate::events::{self, MapColumns};
use crate::failure::Failure;
use crate::own_columns;
use crate::part::PartOf;
use crate::requirements;
use crate::routes::Name;
use crate::rows_variable::RowsVariable;
use crate::schema;
use crate::tables;
use locks::take_lock;
use origin::Origin;
use std::collections::{BTreeSet, HashMap};
use teak_binlog::Table;
use teak_client::{Completed, Connection, Error};
use teak_console::Status;
use teak_sql::quoting::{literal, quoted_name};

/// The session in which rows are applied: that of a replica's applier, and nothing of an earlier statement.
const SESSION: &str =
    "SET SESSION sql_mode = '', time_zone = '+00:00', timestamp = DEFAULT, foreign_key_checks = 1, \
     unique_checks = 1, sql_auto_is_null = 0, lc_time_names = 0, character_set_client = utf8mb4, \
     character_set_results = utf8mb4, collation_connection = utf8mb4_general_ci, collation_server = DEFAULT, \
     auto_increment_increment = 1, auto_increment_offset = 1, explicit_defaults_for_timestamp = DEFAULT";
/// What holds for the whole connection.
const LIMITS: &str = "SET SESSION tx_isolation = 'READ-COMMITTED', autocommit = 1, wait_timeout = 31536000, \
     net_write_timeout = 3600, max_statement_time = 0";
/// The target's own log need not have each statement of rows once more, as a text. That takes BINLOG ADMIN.
const NO_ANNOTATIONS: &str = "SET SESSION binlog_annotate_row_events = 0";
/// What a server says to who lacks a privilege.
const DENIED: u16 = 1227;
/// So much waits to be sent at most, about.
const ENOUGH: usize = 256 << 10;
/// And so many statements, whose answers wait to be read.
const MOST: usize = 200;
/// Bytes of statements from which on a transaction is long: what it would share its end with makes it no shorter.
const LONG: usize = 4 << 20;
/// What a server says of a database that is not there.
const NO_DATABASE: u16 = 1049;
/// And of a table that is not, or whose database is not.
const NO_TABLE: [u16; 2] = [NO_DATABASE, 1146];
/// Who follows a source looks every second what is wanted of it. Who has not for twice the limit of time of the target,
/// and for so long, is gone, and his connection is there only since nobody has told the server.
const GONE_SECONDS: u64 = 10;

/// A statement that changes definitions and may have been carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Its transaction.
    pub gtid: String,
    /// How what it names was defined.
    pub before: Vec<u8>,
}

/// Where in the source's log an applied transaction ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// Where the next event begins.
    pub position: u64,
    /// When it was committed, in seconds of Unix time.
    pub time: u32,
}

/// How rows of a table of the source become rows of one of the target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fit {
    /// What its columns are.
    pub columns: MapColumns,
    /// The places of columns of which no values come.
    pub left_out: Vec<usize>,
}

/// A connection to the target, for one source.
pub struct Target<'p> {
    connection: Connection,
    rows: RowsVariable,
    claims: &'p Claims,
    source: String,
    engine: Option<String>,
    /// As it is committed; None if there is none of the source.
    position: Option<String>,
    /// What somebody wants of the source, and how often somebody has wanted anything.
    wanted: Wish,
    asked: u64,
    /// Transactions that somebody wants passed over.
    skips: BTreeSet<String>,
    intent: Option<Intent>,
    /// What workers did above the position, those of former programs, and what those of this one go by.
    above: Above,
    /// Some of it has become part of the position.
    above_has_changed: bool,
    /// How much of it is noted in the target.
    done_above: usize,
    longest_packet: usize,
    /// Tables of the source that were looked at, and may be written.
    known: HashMap<Name, Fit>,
    is_open: bool,
    /// Of its statements.
    open_bytes: usize,
    /// Primary keys of tables that it holds.
    held: HashMap<Name, Option<Vec<usize>>>,
    /// The same of tables that were looked at, with their definitions.
    keys: HashMap<Name, (Vec<u8>, Option<Vec<usize>>)>,
    /// Statements that were not sent yet.
    waiting: Vec<Vec<u8>>,
    waiting_bytes: usize,
    /// If its own log is to tell where transactions come from.
    origin: Option<Origin>,
}

impl<'p> Target<'p> {
    /// Connects, and makes the tables of positions if they are not there.
    pub fn connect(
        plan: &TargetPlan,
        source: &SourcePlan,
        claims: &'p Claims,
    ) -> Result<Target<'p>, Failure> {
        let mut connection = plan.settings.connect().map_err(|error| refused(&error))?;
        let wrong = requirements::of_target(&mut connection, plan);
        let wrong = wrong.map_err(|error| Failure::of_target(&error, || "its settings".into()))?;
        if !wrong.is_empty() {
            return Err(Failure::Final(format!("target: {}", wrong.join("; ")), Status::Usage));
        }
        let patience = plan.settings.patience.unwrap_or_default();
        let gone_seconds = (2 * patience.as_secs()).max(GONE_SECONDS);
        let (mut longest_packet, mut origin) = (0, None);
        let mut begin = || -> Result<bool, Error> {
            set_session(&mut connection)?;
            let domain = source.gtid_domain_id;
            origin = domain.map(|domain| Origin::begin(&mut connection, domain)).transpose()?;
            for statement in schema::STATEMENTS {
                // Not where they are there: a server that takes no changes can still be asked.
                let is_there = connection.value(schema::exists(statement))?;
                if is_there.is_none() {
                    connection.execute(statement)?;
                }
            }
            if connection.value(schema::HAS_ADDED)?.is_none() {
                connection.execute(schema::ADDED)?;
            }
            connection.execute("USE teak_replicate")?;
            let packet = connection.value("SELECT @@max_allowed_packet")?;
            longest_packet = packet.and_then(|text| text.parse().ok()).unwrap_or(0);
            take_lock(&mut connection, &lock_of(&source.name), gone_seconds)
        };
        let is_ours = begin().map_err(|error| Failure::of_target(&error, || "the beginning".into()))?;
        if !is_ours {
            let why = "somebody else follows this source, or what he began in the target has not ended";
            return Err(Failure::Passing(format!("target: {why}")));
        }
        let rows = RowsVariable::of(&mut connection);
        let rows = rows.map_err(|error| Failure::of_target(&error, || "the beginning".into()))?;
        let (name, engine) = (source.name.clone(), plan.engine.clone());
        let mut target = Target {
            connection,
            rows,
            claims,
            source: name,
            engine,
            position: None,
            wanted: Wish::Follow,
            asked: 0,
            skips: BTreeSet::new(),
            intent: None,
            above: Above::default(),
            above_has_changed: false,
            done_above: 0,
            longest_packet,
            known: HashMap::new(),
            is_open: false,
            open_bytes: 0,
            held: HashMap::new(),
            keys: HashMap::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            origin,
        };
        target.read_state()?;
        target.must_have_transactions("teak_replicate", "position")?;
        target.connection.execute(events::introduction()).map_err(|error| {
            Failure::of_target(&error, || "BINLOG (which needs the privilege BINLOG REPLAY)".into())
        })?;
        Ok(target)
    }

    /// Reads position, note and wishes.
    pub fn read_state(&mut self) -> Result<(), Failure> {
        self.try_to_read_state().map_err(|error| Failure::of_target(&error, || "its position".into()))
    }

    fn try_to_read_state(&mut self) -> Result<(), Error> {
        let source = &self.source;
        // Before what is to be skipped: what is noted between the two has another number.
        (self.position, self.wanted, self.asked) = match control::read(&mut self.connection, source)? {
            Some(state) => (Some(state.gtid), state.wanted, state.asked),
            None => (None, Wish::Follow, 0),
        };
        let skips =
            format!("SELECT gtid FROM teak_replicate.skip WHERE source = '{source}' AND skipped IS NULL");
        self.skips = tables::texts(self.connection.query(skips)?).flatten().collect();
        let intent = format!("SELECT gtid, before_it FROM teak_replicate.ddl WHERE source = '{source}'");
        self.intent = self.connection.query(intent)?.into_iter().next().map(|row| {
            let mut row = row.into_iter().map(Option::unwrap_or_default);
            let gtid = String::from_utf8_lossy(&row.next().unwrap_or_default()).into_owned();
            Intent { gtid, before: row.next().unwrap_or_default() }
        });
        Ok(())
    }

    /// How far the source was applied; None if it was not begun.
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// What somebody wants of the source, and how often somebody has wanted anything, as of the last look.
    pub fn wanted(&self) -> (Wish, u64) {
        (self.wanted, self.asked)
    }

    /// Whether a transaction is to be passed over.
    pub fn skips(&self, gtid: &str) -> bool {
        self.skips.contains(gtid)
    }

    /// Adds to the transaction that one was passed over.
    pub fn has_skipped(&mut self, gtid: &str) -> Result<(), Failure> {
        let update = format!(
            "UPDATE teak_replicate.skip SET skipped = NOW(6) WHERE source = '{}' AND gtid = '{gtid}'",
            self.source
        );
        self.add(update.into_bytes())
    }

    /// Fails if somebody wants something since the last look.
    pub fn must_go_on(&mut self) -> Result<(), Failure> {
        let state = control::read(&mut self.connection, &self.source);
        let state = state.map_err(|error| Failure::of_target(&error, || "its position".into()))?;
        match state.is_some_and(|state| state.asked != self.asked) {
            true => Err(Failure::Asked),
            false => Ok(()),
        }
    }

    /// Notes that the source has become what somebody wanted.
    pub fn becomes(&mut self, wanted: Wish) -> Result<(), Failure> {
        let update = format!(
            "UPDATE teak_replicate.position SET wanted = '{}', applied = applied WHERE source = '{}' AND asked = {}",
            wanted.name(),
            self.source,
            self.asked
        );
        let done = self.connection.execute(update);
        done.map_err(|error| Failure::of_target(&error, || "what is wanted of it".into()))?;
        self.wanted = wanted;
        Ok(())
    }

    /// Which tables of the target are of which source.
    pub fn claims(&self) -> &'p Claims {
        self.claims
    }

    /// The source's name.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The connection; what waits to be sent is not sent yet.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The longest packet that it takes.
    pub fn longest_packet(&self) -> usize {
        self.longest_packet
    }

    /// The source begins at a position.
    pub fn begin_at(&mut self, position: &str) -> Result<(), Failure> {
        let insert = format!(
            "INSERT INTO teak_replicate.position (source, gtid) VALUES ('{}', '{position}')",
            self.source
        );
        let done = self.connection.execute(insert);
        done.map_err(|error| Failure::of_target(&error, || "its first position".into()))?;
        self.position = Some(position.to_string());
        Ok(())
    }

    /// Whether a transaction is open.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the transaction that is open is to end with what it has.
    pub fn is_long(&self) -> bool {
        self.is_open && self.open_bytes >= LONG
    }

    /// Adds a statement to the transaction, which begins with the first one. It is sent some time before the end.
    pub fn add(&mut self, statement: Vec<u8>) -> Result<(), Failure> {
        self.open();
        self.waiting_bytes += statement.len();
        self.open_bytes += statement.len();
        self.waiting.push(statement);
        if self.waiting_bytes > ENOUGH || self.waiting.len() >= MOST {
            // The target carries it out while more is read.
            self.waiting_bytes = 0;
            let waiting = std::mem::take(&mut self.waiting);
            return self
                .connection
                .execute_ahead(self.rows.requests(&waiting))
                .map_err(|error| Failure::of_several(&error));
        }
        Ok(())
    }

    fn open(&mut self) {
        if !self.is_open {
            self.is_open = true;
            self.open_bytes = 0;
            self.held.clear();
            self.waiting.push(b"BEGIN".to_vec());
        }
    }

    /// Sends what waits; an error does not tell which statement it is of.
    pub fn send(&mut self) -> Result<Completed, Failure> {
        self.waiting_bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        self.connection.execute_all(self.rows.requests(&waiting)).map_err(|error| Failure::of_several(&error))
    }

    /// The same; an error becomes a failure as is said.
    pub fn send_of(&mut self, failure: &dyn Fn(&Error) -> Failure) -> Result<(), Failure> {
        self.waiting_bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        self.connection.execute_all(self.rows.requests(&waiting)).map(|_| ()).map_err(|error| failure(&error))
    }

    /// Carries out one statement of the transaction, behind those that wait.
    pub fn carry_out(&mut self, statement: &[u8]) -> Result<(), Error> {
        self.open();
        let waiting = std::mem::take(&mut self.waiting);
        self.connection.execute_all(self.rows.requests(&waiting))?;
        self.connection.execute(statement).map(|_| ())
    }

    /// Ends the transaction: rows and position are there together, or neither is.
    ///
    /// That the position was the one before is made sure of, so that what somebody else did to it is no loss, and that
    /// nobody has asked for something else. The statement that was noted is forgotten if the transaction has its end:
    /// it was carried out, whatever somebody has asked for meanwhile.
    pub fn commit(&mut self, position: &str, place: &Place, ends_intent: bool) -> Result<(), Failure> {
        let before = self.position.clone().unwrap_or_default();
        let mut if_as_it_was = format!("gtid = '{before}'");
        if std::mem::take(&mut self.above_has_changed) {
            self.add(self.noting_above().into_bytes())?;
        }
        if ends_intent {
            self.intent = None;
            self.add(self.forgetting().into_bytes())?;
        } else {
            if_as_it_was += &format!(" AND asked = {}", self.asked);
        }
        let update = self.moving(position, place, "", &if_as_it_was);
        let is_logged = self.logs_position()?;
        self.open();
        self.waiting.push(update.into_bytes());
        let updated = self.send()?;
        if updated.affected_rows != 1 {
            return Err(self.moved());
        }
        // An end that is not seen may have been one: the next connection reads the position.
        let committed = self.connection.execute("COMMIT");
        committed.map_err(|error| Failure::of_target(&error, || "COMMIT".into()))?;
        self.position = Some(position.to_string());
        self.done_above = self.above.done.len();
        self.is_open = false;
        self.has_position(is_logged)
    }

    /// What moves the position; `set`: what else changes in its row.
    fn moving(&self, position: &str, place: &Place, set: &str, condition: &str) -> String {
        format!(
            "UPDATE teak_replicate.position SET {set}gtid = '{position}', log_file = {}, log_position = {}, \
             source_time = FROM_UNIXTIME({}), applied = NOW(6) WHERE source = '{}' AND {condition}",
            literal(place.file.as_bytes()),
            place.position,
            place.time.max(1),
            self.source
        )
    }

    /// Ends a transaction that leaves the position as it is, and sees to it that it is.
    pub fn commit_beside(&mut self) -> Result<(), Failure> {
        self.send()?;
        let position = self.position.as_deref().unwrap_or_default();
        let same = control::as_it_was(&self.source, position, self.asked, "FOR UPDATE");
        let of_target = |error: Error| Failure::of_target(&error, || "COMMIT".into());
        if self.connection.value(same).map_err(of_target)?.as_deref() != Some("1") {
            return Err(self.moved());
        }
        self.connection.execute("COMMIT").map_err(of_target)?;
        self.is_open = false;
        Ok(())
    }

    /// Why the row of the position is not what it was.
    fn moved(&mut self) -> Failure {
        let position = self.position.as_deref().unwrap_or_default();
        control::moved(&mut self.connection, &self.source, position)
    }

    /// Begins a transaction again with the next statement, after COMMIT.
    pub fn end_transaction(&mut self) {
        self.is_open = false;
    }

    /// Takes the transaction back.
    pub fn roll_back(&mut self) -> Result<(), Error> {
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.is_open = false;
        // What failed of it is taken back as well.
        let _ = self.connection.finish();
        self.connection.execute("ROLLBACK").map(|_| ())
    }

    /// Fails unless rows of a table can be applied: it is there, takes part in transactions, and has as many columns as
    /// at the source. `here` are its names in the target.
    pub fn must_fit(
        &mut self,
        table: &Table,
        here: &Name,
        part: Option<&PartOf>,
        plan: &SourcePlan,
    ) -> Result<Fit, Failure> {
        let name = (table.database.clone(), table.name.clone());
        if let Some(fit) = self.known.get(&name) {
            return Ok(fit.clone());
        }
        let columns = self.must_have_transactions(&here.0, &here.1)?;
        let theirs = table.columns.len();
        let names = plan.renamed_columns.of(&name.0, &name.1);
        let one_more = part.map(|part| part.bytes_in(&mut self.connection, &here.0, &here.1)).transpose()?;
        let conversions = of_mysql::conversions(&mut self.connection, table, here);
        let of_target =
            |error: Error| Failure::of_target(&error, || format!("columns of `{}`.`{}`", here.0, here.1));
        let conversions = conversions.map_err(of_target)?;
        let columns_become = MapColumns { are_renamed: !names.is_empty(), one_more, conversions };
        let own = plan.own_columns.of(&name.0, &name.1);
        // What a server hides is behind that column.
        let is_whole = part.is_none() && own.is_empty() && columns.contains(&theirs);
        let more = own.len() + usize::from(part.is_some());
        let is_wider = more > 0 && columns[0] == theirs + more;
        if !is_whole && !is_wider {
            let ours = columns[0];
            let why =
                format!("`{}`.`{}` has {theirs} columns at the source, and {ours} here", here.0, here.1);
            return Err(Failure::Final(why, Status::Damage));
        }
        self.claims.claim(&self.source, &name, here, part)?;
        if !own.is_empty() {
            own_columns::must_be_last(&mut self.connection, own, here)?;
        }
        if !names.is_empty() {
            names.must_be_in(&mut self.connection, here)?;
        }
        let left_out = plan.exclusions.places(&mut self.connection, (&name.0, &name.1), here, &names)?;
        let fit = Fit { columns: columns_become, left_out };
        self.known.insert(name, fit.clone());
        Ok(fit)
    }

    /// How many columns a table has: as it shows them, with those that the server hides, and without those that stand
    /// for expressions in keys.
    fn must_have_transactions(&mut self, database: &str, table: &str) -> Result<Vec<usize>, Failure> {
        let (schema, name) = (literal(database.as_bytes()), literal(table.as_bytes()));
        let of_table = format!("TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}");
        let query = format!(
            "SELECT t.ENGINE, e.TRANSACTIONS, t.TABLE_TYPE,
                (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE {of_table}),
                (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE {of_table} AND GENERATION_EXPRESSION = 'ROW START'),
                (SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE {of_table} AND NON_UNIQUE = 0
                    AND INDEX_TYPE = 'HASH'),
                (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE {of_table} AND {})
            FROM information_schema.TABLES t LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
            WHERE {of_table}",
            of_mysql::is_of_function()
        );
        let shown = format!("`{database}`.`{table}`");
        let of_target = |error: Error| Failure::of_target(&error, || format!("columns of {shown}"));
        let mut rows = self.connection.query(&query).map_err(of_target)?;
        if rows.is_empty() {
            // To who holds locks, information_schema leaves out what is being changed, as a worker builds its keys.
            let quoted =
                [&quoted_name(database.as_bytes())[..], b".", &quoted_name(table.as_bytes())].concat();
            match self.connection.query([b"SELECT 1 FROM ", &quoted[..], b" LIMIT 0"].concat()) {
                Err(error) if error.code().is_some_and(|code| NO_TABLE.contains(&code)) => (),
                waited => {
                    waited.map_err(of_target)?;
                    rows = self.connection.query(&query).map_err(of_target)?;
                }
            }
        }
        let Some(row) = rows.into_iter().next() else {
            let why = format!("{shown}: there is no such table in the target");
            return Err(Failure::Final(why, Status::Damage));
        };
        let text: Vec<String> = row
            .into_iter()
            .map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned())
            .collect();
        let number = |at: usize| text.get(at).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        if text[1] != "YES" {
            let why = format!("{shown} is of the engine {}, which has no transactions", text[0]);
            return Err(Failure::Final(
                format!("{why}: rows and position could not be kept together"),
                Status::Usage,
            ));
        }
        let (columns, hidden_keys) = (number(3), number(5));
        let hidden_times = if text[2] == "SYSTEM VERSIONED" && number(4) == 0 { 2 } else { 0 };
        // A source that is no MySQL has columns of its own for expressions in keys.
        let of_functions = number(6);
        Ok(vec![columns, columns + hidden_keys + hidden_times, columns - of_functions.min(columns)])
    }

    /// Whether tables are made with an engine of the configuration.
    pub fn has_engine(&self) -> bool {
        self.engine.is_some()
    }
}

/// Makes a session one that applies rows, up to [`begin_session`].
fn set_session(connection: &mut Connection) -> Result<(), Error> {
    connection.execute(SESSION)?;
    connection.execute(LIMITS)?;
    match connection.execute(NO_ANNOTATIONS) {
        Err(error) if error.code() == Some(DENIED) => Ok(()),
        set => set.map(|_| ()),
    }
}

/// Makes it one that takes events with rows, where the tables of this program are there.
pub fn begin_session(connection: &mut Connection) -> Result<RowsVariable, Error> {
    set_session(connection)?;
    connection.execute("USE teak_replicate")?;
    connection.execute(events::introduction())?;
    RowsVariable::of(connection)
}

/// An error of a login is final only if the server refuses it.
fn refused(error: &Error) -> Failure {
    Failure::of_target(error, || "the login".into())
}
