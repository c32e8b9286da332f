//! The one connection to the server, and what is asked over it: samples, plans of statements, and ends of sessions.

use crate::queries;
use crate::sample::{beginning, Answer, Part, Sample, MOST_ROWS};
use crate::wanted::Wanted;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use teak_client::{Connection, Error, Settings};

/// A server that says nothing for so long is away.
const PATIENCE: Duration = Duration::from_secs(5);
/// What takes longer is ended by the server itself, before the connection is given up; and what is asked here is
/// nobody's slow statement. An EXPLAIN that waits for a table gives up.
const LIMITS: &str =
    "SET SESSION max_statement_time = 4, log_slow_filter = 'filesort_on_disk', lock_wait_timeout = 2";
const UNKNOWN_TABLE: u16 = 1109;
const UNKNOWN_COLUMN: u16 = 1054;
const ACCESS_DENIED: u16 = 1227;
/// A long statement is more than EXPLAIN is worth.
const MOST_EXPLAINED: usize = 1 << 20;

/// A connection, once there is one.
pub struct Session {
    settings: Settings,
    connection: Option<Connection>,
    /// What the server is, as long as the connection stands, and whether all may be seen.
    server: Answer,
    may_see_all: bool,
}

impl Session {
    /// Not connected yet.
    pub fn new(settings: Settings) -> Session {
        Session { settings, connection: None, server: Answer::default(), may_see_all: false }
    }

    /// Sees to it that there is a connection. What comes by itself over one that nobody has used since is its end.
    pub fn connect(&mut self) -> Result<(), Error> {
        if let Some(connection) = &mut self.connection {
            if connection.wait(Duration::ZERO).is_ok_and(|has_ended| !has_ended) {
                return Ok(());
            }
        }
        self.connection = None;
        let mut connection = self.settings.connect_impatiently(PATIENCE)?;
        match connection.execute(LIMITS) {
            // A server that does not know these variables is asked without them.
            Ok(_) | Err(Error::Server { .. }) => (),
            Err(error) => return Err(error),
        }
        self.may_see_all = match connection.execute(queries::NEEDS_PROCESS) {
            Ok(_) => true,
            Err(Error::Server { code: ACCESS_DENIED, .. }) => false,
            Err(error) => return Err(error),
        };
        self.server = answer(&mut connection, queries::SERVER)?;
        self.connection = Some(connection);
        Ok(())
    }

    /// What is so now. What cannot be had is missing, and says why.
    pub fn sample(&mut self, wanted: &Wanted) -> Sample {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut sample = Sample { at: now.as_millis() as u64, ..Sample::default() };
        if let Err(error) = self.connect() {
            sample.missing.insert(Part::Server, beginning(&error.to_string()));
            return sample;
        }
        sample.parts.insert(Part::Server, self.server.clone());
        if !self.may_see_all {
            let why = "the user has no PROCESS privilege, and sees his own sessions only";
            sample.missing.insert(Part::Server, why.into());
        }
        for part in [Part::Status].iter().chain(&wanted.parts) {
            self.ask(*part, wanted, &mut sample);
        }
        if wanted.parts.contains(&Part::Waits) {
            self.ask_for_parties(wanted, &mut sample);
        }
        sample
    }

    /// What waits for locks of others than Teak, and who all of those that wait are.
    fn ask_for_parties(&mut self, wanted: &Wanted, sample: &mut Sample) {
        if sample.status("innodb_row_lock_current_waits").is_some_and(|waits| waits > 0.0) {
            self.ask(Part::InnodbWaits, wanted, sample);
        }
        if sample.records(Part::Waits).any(|wait| wait.id("BLOCKING_CONNECTION_ID").is_none()) {
            self.ask(Part::Prepared, wanted, sample);
        }
        self.ask(Part::Parties, wanted, sample);
        let waits_for_metadata = sample.records(Part::Parties).any(waits_for_metadata);
        if waits_for_metadata {
            if self.has("metadata_lock_info") {
                self.ask(Part::Metadata, wanted, sample);
                // Those who are in the way were not known before.
                self.ask(Part::Parties, wanted, sample);
            } else {
                let why = "the plugin is not there, which says whose metadata locks are in the way: \
                    INSTALL SONAME 'metadata_lock_info'";
                sample.missing.insert(Part::Metadata, why.into());
            }
        }
    }

    /// Whether the server has this, by the column's name in what it says of itself.
    fn has(&self, column: &str) -> bool {
        self.server.records().next().and_then(|row| row.number(column)).is_some_and(|number| number > 0.0)
    }

    fn ask(&mut self, part: Part, wanted: &Wanted, sample: &mut Sample) {
        let has_digests = self.has("performance_schema");
        let Some(connection) = &mut self.connection else {
            sample.missing.insert(part, "the connection is lost".into());
            return;
        };
        let statement = match part {
            Part::Server => return,
            Part::Status => queries::STATUS.into(),
            Part::Sessions => queries::sessions(wanted),
            Part::Waits => queries::waits(),
            Part::InnodbWaits => queries::limited(queries::INNODB_WAITS),
            Part::Metadata => queries::limited(queries::METADATA),
            Part::Parties => queries::parties(&parties(sample)),
            Part::Prepared => queries::limited(queries::PREPARED),
            Part::Transactions => queries::transactions(wanted),
            Part::Snapshots => queries::limited(queries::SNAPSHOTS),
            Part::Statements if has_digests => queries::limited(queries::DIGESTS),
            Part::Statements => queries::limited(queries::RUNNING),
            Part::Deadlocks => queries::limited(queries::DEADLOCKS),
            Part::Replicas => queries::REPLICAS.into(),
        };
        match answer(connection, &statement) {
            Ok(mut answer) => {
                if part == Part::Replicas {
                    answer = only(answer, &queries::OF_REPLICAS);
                }
                sample.parts.insert(part, answer);
            }
            Err(error) => {
                if !matches!(error, Error::Server { .. }) {
                    self.connection = None;
                }
                sample.missing.insert(part, why_not(&error));
            }
        }
    }

    /// The plan of what a session does: of the statement as it runs, or else of its text.
    pub fn explain(&mut self, session: u64) -> Result<Vec<String>, String> {
        self.connect().map_err(|error| error.to_string())?;
        let Some(connection) = &mut self.connection else { return Err("the connection is lost".into()) };
        let result = explain(connection, session);
        if matches!(&result, Err(error) if error.code().is_none()) {
            self.connection = None;
        }
        result.map_err(|error| error.to_string())
    }

    /// Carries out a statement that ends a session, a query or a transaction.
    pub fn end(&mut self, statement: &str) -> Result<(), String> {
        self.connect().map_err(|error| error.to_string())?;
        let Some(connection) = &mut self.connection else { return Err("the connection is lost".into()) };
        connection.execute(statement).map(drop).map_err(|error| error.to_string())
    }
}

/// Whether a session of `Part::Parties` waits for metadata.
pub fn waits_for_metadata(session: crate::sample::Record<'_>) -> bool {
    session
        .text("STATE")
        .is_some_and(|state| state.starts_with("Waiting for") && state.ends_with("metadata lock"))
}

/// All connections that waits name.
fn parties(sample: &Sample) -> Vec<u64> {
    let waits = [Part::Waits, Part::InnodbWaits, Part::Metadata];
    let columns = ["WAITING_CONNECTION_ID", "BLOCKING_CONNECTION_ID", "ROOT_CONNECTION_ID"];
    let named = waits.iter().flat_map(|part| sample.records(*part));
    let all: BTreeSet<u64> = named.flat_map(|row| columns.map(|column| row.id(column))).flatten().collect();
    all.into_iter().collect()
}

fn answer(connection: &mut Connection, statement: &str) -> Result<Answer, Error> {
    // SHOW has no LIMIT.
    let (columns, rows) = connection.query_at_most(statement, 10 * MOST_ROWS)?;
    let is_cut = rows.len() > MOST_ROWS && statement.contains(" LIMIT ");
    let text = |value: Option<Vec<u8>>| value.map(|bytes| beginning(&String::from_utf8_lossy(&bytes)));
    let rows = rows.into_iter().take(if is_cut { MOST_ROWS } else { usize::MAX });
    let rows = rows.map(|row| row.into_iter().map(text).collect()).collect();
    Ok(Answer { columns, rows, is_cut })
}

fn only(answer: Answer, columns: &[&str]) -> Answer {
    let kept: Vec<usize> = (0..answer.columns.len())
        .filter(|at| columns.iter().any(|name| name.eq_ignore_ascii_case(&answer.columns[*at])))
        .collect();
    let of = |row: &Vec<Option<String>>| kept.iter().map(|at| row.get(*at).cloned().flatten()).collect();
    Answer {
        columns: kept.iter().map(|at| answer.columns[*at].clone()).collect(),
        rows: answer.rows.iter().map(of).collect(),
        is_cut: answer.is_cut,
    }
}

fn why_not(error: &Error) -> String {
    match error {
        Error::Server { code: UNKNOWN_TABLE, .. } => {
            "this server has no such table: no Teak, or another version of it. INSTALL SONAME 'ha_teak'"
                .into()
        }
        Error::Server { code: UNKNOWN_COLUMN, message, .. } => {
            format!("another version of the server or of Teak: {}", beginning(message))
        }
        error => beginning(&error.to_string()),
    }
}

fn explain(connection: &mut Connection, session: u64) -> Result<Vec<String>, Error> {
    // As it runs, which also has what a plan needed to know of its tables. It waits until the session says it.
    match connection.query_with_names(&format!("SHOW EXPLAIN FOR {session}")) {
        Ok((names, rows)) => return Ok(plan("as it runs (SHOW EXPLAIN)", &names, rows)),
        Err(Error::Server { .. }) => (),
        Err(error) => return Err(error),
    }
    let text = format!(
        "SELECT DB, INFO FROM information_schema.PROCESSLIST WHERE ID = {session} AND INFO IS NOT NULL \
         AND LENGTH(INFO) < {MOST_EXPLAINED}"
    );
    let row = connection.query(text)?.into_iter().next();
    let Some((db, Some(statement))) =
        row.and_then(|row| <[_; 2]>::try_from(row).ok().map(|[db, info]| (db, info)))
    else {
        return Ok(vec!["the session runs no statement now".into()]);
    };
    if let Some(db) = db {
        let name = String::from_utf8_lossy(&db).replace('`', "``");
        connection.execute(format!("USE `{name}`"))?;
    }
    // EXPLAIN calls functions of what is constant: what those change is taken back.
    connection.execute("START TRANSACTION")?;
    let explained = connection.query_with_names(&format!("EXPLAIN {}", String::from_utf8_lossy(&statement)));
    if !matches!(&explained, Err(error) if error.code().is_none()) {
        connection.execute("ROLLBACK")?;
    }
    explained.map(|(names, rows)| plan("of its text (EXPLAIN)", &names, rows))
}

/// A plan as lines: of each table what EXPLAIN says, without what is NULL.
fn plan(of: &str, names: &[String], rows: teak_client::Rows) -> Vec<String> {
    let mut lines = vec![format!("The plan {of}:")];
    for row in rows.iter().take(MOST_ROWS) {
        let known = names.iter().zip(row).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let words: Vec<String> = known
            .map(|(name, value)| format!("{name}={}", beginning(&String::from_utf8_lossy(value))))
            .collect();
        lines.push(words.join("  "));
    }
    lines
}
