//! A connection on which rows of the dump are inserted once more, into temporary tables, to learn what they should be.
//!
//! A temporary table hides the table of the same name, so the dump's statements go to it as they stand, in the same
//! session. It holds the rows of one task at a time.

use super::super::error::LoadError;
use super::super::session::SessionState;
use super::super::state::LoadState;
use super::super::task::{Facts, Table};
use super::Sum;
use std::collections::HashMap;
use std::sync::Arc;
use teak_client::{Connection, Error};
use teak_sql::columns::{self, Digest};

/// Temporary tables that are kept on one connection.
const MOST_TABLES: usize = 100;

/// Remembers what of the session decides how the loader's own statements are read, and sets it.
const OWN_SESSION: &str = "SET @teak_mode = @@SESSION.sql_mode, @teak_client = @@SESSION.character_set_client,
    @teak_connection = @@SESSION.collation_connection, @teak_results = @@SESSION.character_set_results,
    SESSION sql_mode = '', SESSION character_set_client = utf8mb4, SESSION collation_connection = utf8mb4_general_ci,
    SESSION character_set_results = utf8mb4";
/// Goes back to the dump's.
const DUMPS_SESSION: &str = "SET SESSION sql_mode = @teak_mode, SESSION character_set_client = @teak_client,
    SESSION collation_connection = @teak_connection, SESSION character_set_results = @teak_results";

/// One connection with its temporary tables.
pub struct Checker<'a> {
    shared: &'a LoadState,
    connection: Connection,
    session: SessionState,
    /// The temporary tables, by lane, with the facts that they were made after.
    made: HashMap<usize, (Arc<Facts>, Vec<u8>)>,
}

/// Its statements reach no binary log from now on.
fn unlogged(mut connection: Connection) -> Result<Connection, LoadError> {
    if let Err(error) = connection.execute("SET SESSION sql_log_bin = 0") {
        // Rows of temporary tables are not logged as rows.
        if connection.value("SELECT @@log_bin AND @@binlog_format <> 'ROW'")?.as_deref() != Some("0") {
            return Err(LoadError::Usage(format!("--check needs the right to set sql_log_bin: {error}")));
        }
    }
    Ok(connection)
}

impl<'a> Checker<'a> {
    /// On a connection of its own, as it was made.
    pub fn new(shared: &'a LoadState, connection: Connection) -> Result<Checker<'a>, LoadError> {
        let (connection, session) = (unlogged(connection)?, shared.first_session());
        Ok(Checker { shared, connection, session, made: HashMap::new() })
    }

    /// What these statements should have added to the table. `Err` of a server: it cannot be told.
    pub fn sum<'t>(
        &mut self,
        session: &SessionState,
        table: &Table,
        facts: &Arc<Facts>,
        statements: impl Iterator<Item = &'t [u8]>,
    ) -> Result<Sum, LoadError> {
        self.enter(session)?;
        if !self.made.get(&table.lane).is_some_and(|(made, _)| Arc::ptr_eq(made, facts)) {
            self.make(table, facts)?;
        }
        for statement in statements {
            if let Err(error) = self.connection.execute(statement) {
                self.drop_table(table.lane)?;
                return Err(error.into());
            }
        }
        self.connection.execute(OWN_SESSION)?;
        let sum =
            Sum::ask(&mut self.connection, &columns::sum(&table.quoted(), &facts.definition, Digest::Md5))?;
        self.connection.execute([b"TRUNCATE TABLE ", &table.quoted()[..]].concat())?;
        self.connection.execute(DUMPS_SESSION)?;
        Ok(sum)
    }

    fn enter(&mut self, wanted: &SessionState) -> Result<(), LoadError> {
        let (shared, made) = (self.shared, &mut self.made);
        shared.enter((&mut self.connection, &mut self.session), wanted, || {
            let connection = unlogged(shared.connect()?)?;
            // The tables went with the other.
            made.clear();
            Ok(connection)
        })
    }

    fn make(&mut self, table: &Table, facts: &Arc<Facts>) -> Result<(), LoadError> {
        if self.made.len() >= MOST_TABLES {
            for lane in self.made.keys().copied().collect::<Vec<_>>() {
                self.drop_table(lane)?;
            }
        }
        self.drop_table(table.lane)?;
        self.connection.execute(OWN_SESSION)?;
        let made = self.connection.execute(columns::scratch(&table.quoted(), &facts.definition));
        self.connection.execute(DUMPS_SESSION)?;
        made?;
        self.made.insert(table.lane, (facts.clone(), table.quoted()));
        Ok(())
    }

    fn drop_table(&mut self, lane: usize) -> Result<(), Error> {
        let Some((_, quoted)) = self.made.remove(&lane) else { return Ok(()) };
        self.connection.execute([b"DROP TEMPORARY TABLE IF EXISTS ", &quoted[..]].concat())?;
        Ok(())
    }
}

/// A connection on which tables are compared, with the same settings as those under which sums are made.
pub fn for_comparison(shared: &LoadState) -> Result<Connection, LoadError> {
    let mut connection = shared.connect()?;
    connection.execute(OWN_SESSION)?;
    Ok(connection)
}
