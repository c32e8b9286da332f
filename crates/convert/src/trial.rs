//! What the server will say, found out with empty copies of the tables: it knows best what its engines take.
//!
//! The copies are in a database of their own, which goes in the end, and nothing of it is in the binary log. Its name
//! is drawn by lot, so that it is nobody else's. One that is there already is not touched, unless its comment says that
//! it is a trial's, or it has neither a comment nor anything else, and the lock that each trial holds by the name of
//! its database is free: that run was killed. The server writes the comment after it has made the database, and deletes
//! it before it drops the tables, so these are dropped first.

use super::definition::{Definition, ForeignKey};
use super::name::{quoted, Name};
use super::plan::Members;
use super::{catalog, ConvertError};
use ring::rand::SecureRandom;
use std::collections::BTreeMap;
use std::time::Instant;
use teak_client::{Connection, Error};
use teak_console::terminal;

/// Of the database, before digits.
const PREFIX: &str = "teak_convert_trial_";
const PATIENCE_SECONDS: u32 = 5;
/// Error of DROP DATABASE: there is something in the directory that the server does not know.
const NOT_EMPTY: u16 = 1010;
const COMMENT: &str = "empty copies of tables, made by teak convert";
/// So many rows are copied to find out how fast that goes; fewer than the second number tell nothing.
const SAMPLE: u64 = 50_000;
const LEAST: u64 = 2_000;

pub struct Trial<'a> {
    connection: Connection,
    /// Made by this trial.
    database: String,
    engine: &'a str,
    /// The copies' names.
    copies: BTreeMap<Name, Name>,
    /// Copies that were begun.
    made: usize,
    keys: usize,
}

impl<'a> Trial<'a> {
    /// None if the account may not keep it out of the binary log.
    pub fn begin(mut connection: Connection, engine: &'a str) -> Result<Option<Trial<'a>>, Error> {
        let logged = connection.value("SELECT @@sql_log_bin AND @@log_bin")?.as_deref() == Some("1");
        if logged && connection.execute("SET SESSION sql_log_bin = 0").is_err() {
            return Ok(None);
        }
        remove_ended(&mut connection, PATIENCE_SECONDS)?;
        let mut lot = [0; 8];
        let drawn = ring::rand::SystemRandom::new().fill(&mut lot);
        drawn.map_err(|_| Error::Settings("the system gives no random numbers".into()))?;
        let database = format!("{PREFIX}{:016x}", u64::from_ne_bytes(lot));
        // Held as long as this connection: whoever can take it knows that nobody works in there any more.
        connection.value(format!("SELECT GET_LOCK('{database}', 0)"))?;
        connection.execute(format!("CREATE DATABASE {database} COMMENT '{COMMENT}'"))?;
        Ok(Some(Trial { connection, database, engine, copies: BTreeMap::new(), made: 0, keys: 0 }))
    }

    /// Converts an empty copy of the table. What the server says against it, or what changes in the definition.
    pub fn convert(
        &mut self,
        name: &Name,
        before: &Definition,
    ) -> Result<Result<Vec<String>, String>, ConvertError> {
        let copy = Name::new(&self.database, format!("t{}", self.made));
        self.made += 1;
        let statements = [
            format!("CREATE TABLE {} LIKE {}", copy.quoted(), name.quoted()),
            format!("ALTER TABLE {} ENGINE={}", copy.quoted(), self.engine),
        ];
        for statement in statements {
            match self.connection.execute(&statement) {
                Err(error @ Error::Server { .. }) => return Ok(Err(error.to_string())),
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
        }
        let after = catalog::definition(&mut self.connection, &copy)?;
        self.copies.insert(name.clone(), copy);
        // The copy is empty, and its counter at the beginning.
        let lost =
            before.missing_from(&after).into_iter().filter(|lost| !lost.starts_with("AUTO_INCREMENT="));
        Ok(Ok(lost.collect()))
    }

    /// Adds the foreign keys to the copies; what the server says against them.
    pub fn add_keys(&mut self, members: &Members) -> Result<Vec<(Name, String)>, ConvertError> {
        let mut refused = Vec::new();
        for (child, member) in members {
            let Some(copy) = self.copies.get(child) else { continue };
            for key in member.foreign_keys.iter().chain(&member.missing) {
                self.keys += 1;
                let absent = Name::new(&self.database, "absent");
                let parent = self.copies.get(&key.parent).unwrap_or(&absent);
                let clause = key.clause_to(&format!("f{}", self.keys), parent);
                let statement = format!("ALTER TABLE {} ADD {clause}", copy.quoted());
                match self.connection.execute(statement) {
                    Err(error @ Error::Server { .. }) => {
                        refused
                            .push((child.clone(), format!("its foreign key {}: {error}", quoted(&key.name))));
                    }
                    other => drop(other?),
                }
            }
        }
        Ok(refused)
    }

    /// Bytes a second, as the server tells a table's size, at which some of its rows go into the copy.
    pub fn rate(&mut self, table: &catalog::Table) -> Result<Option<f64>, Error> {
        let Some(copy) = self.copies.get(&table.name).filter(|_| table.rows >= LEAST) else {
            return Ok(None);
        };
        let asked = format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{}' AND TABLE_NAME = '{}'
                AND COALESCE(GENERATION_EXPRESSION, '') = ''",
            self.database, copy.table
        );
        let columns = self.connection.query(asked)?.into_iter().flatten().flatten();
        let columns: Vec<String> = columns.map(|name| quoted(&String::from_utf8_lossy(&name))).collect();
        let list = columns.join(",");
        let statement = format!(
            "INSERT INTO {} ({list}) SELECT {list} FROM {} LIMIT {SAMPLE}",
            copy.quoted(),
            table.name.quoted()
        );
        let began = Instant::now();
        match self.connection.execute(statement) {
            Ok(done) if done.affected_rows >= LEAST => {
                let bytes = table.bytes as f64 / table.rows as f64 * done.affected_rows as f64;
                Ok(Some(bytes / began.elapsed().as_secs_f64()))
            }
            Ok(_) | Err(Error::Server { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        // The next trial removes what a broken connection leaves.
        let _ = remove(&mut self.connection, &self.database);
        // Whose last statement was not yet done when this trial began.
        let _ = remove_ended(&mut self.connection, 0);
    }
}

/// Removes what runs have left that were killed. The server may still be at the last statement of one: it has so many
/// seconds to end it.
fn remove_ended(connection: &mut Connection, patience: u32) -> Result<(), Error> {
    let asked = format!(
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME REGEXP '^{PREFIX}[0-9a-f]{{16}}$'
            AND SCHEMA_COMMENT IN ('{COMMENT}', '')"
    );
    for name in connection.query(asked)?.into_iter().flatten().flatten() {
        let name = String::from_utf8_lossy(&name).into_owned();
        let is_free = connection.value(format!("SELECT GET_LOCK('{name}', {patience})"))?;
        if is_free.as_deref() != Some("1") {
            continue;
        }
        let what = format!("teak: {name}, the empty copies of a run that was killed,");
        match remove(connection, &name) {
            Ok(true) => terminal::message(&format!("{what} is removed")),
            Ok(false) => {}
            // A server that is killed in CREATE TABLE ... PARTITION BY may forget the list of partitions.
            Err(error) if error.code() == Some(NOT_EMPTY) => {
                if patience > 0 {
                    terminal::message(&format!(
                        "{what} stays, as the server has forgotten a file in its directory, which may go: {error}"
                    ));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Drops the database, if it is a trial's, tables first; whether it was.
fn remove(connection: &mut Connection, database: &str) -> Result<bool, Error> {
    let of_trial = format!(
        "SELECT SCHEMA_COMMENT = '{COMMENT}' OR NOT EXISTS (
            SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'
            UNION ALL SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{database}'
            UNION ALL SELECT 1 FROM information_schema.EVENTS WHERE EVENT_SCHEMA = '{database}'
         ) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{database}'"
    );
    if connection.value(of_trial)?.as_deref() != Some("1") {
        return Ok(false);
    }
    let tables = connection.query(format!("SHOW TABLES FROM {database}"))?.into_iter().flatten().flatten();
    let tables: Vec<String> =
        tables.map(|table| format!("{database}.{}", quoted(&String::from_utf8_lossy(&table)))).collect();
    // Copies refer to each other.
    connection.execute("SET SESSION foreign_key_checks = 0")?;
    if !tables.is_empty() {
        connection.execute(format!("DROP TABLE IF EXISTS {}", tables.join(",")))?;
    }
    connection.execute(format!("DROP DATABASE IF EXISTS {database}"))?;
    connection.execute("SET SESSION foreign_key_checks = DEFAULT")?;
    Ok(true)
}

/// Whether there is a row without a parent.
pub fn has_orphan(connection: &mut Connection, child: &Name, key: &ForeignKey) -> Result<bool, Error> {
    let pairs = || key.columns.iter().zip(&key.parent_columns).map(|(c, p)| (quoted(c), quoted(p)));
    let joined: Vec<String> =
        pairs().map(|(column, of_parent)| format!("c.{column} = p.{of_parent}")).collect();
    let named: Vec<String> = pairs().map(|(column, _)| format!("c.{column} IS NOT NULL")).collect();
    let (_, first) = pairs().next().unwrap_or_default();
    let asked = format!(
        "SELECT 1 FROM {} c LEFT JOIN {} p ON {} WHERE {} AND p.{first} IS NULL LIMIT 1",
        child.quoted(),
        key.parent.quoted(),
        joined.join(" AND "),
        named.join(" AND ")
    );
    Ok(connection.value(asked)?.is_some())
}
