//! The foreign keys that are to be added again, in a table of the server: whoever runs the command again, from
//! wherever, finds them there.
//!
//! A definition is recorded before the constraint is dropped, and forgotten after it was added. The table has the
//! engine of the tables whose constraints are dropped: their logs are one, so after a power failure too the record is
//! there if the constraint is not.

use super::definition::ForeignKey;
use super::name::{literal, Name};
use super::ConvertError;
use teak_client::{Connection, Error};

pub const DATABASE: &str = "teak_convert";
const TABLE: &str = "teak_convert.foreign_keys";
/// By this the table is known.
const COMMENT: &str = "Foreign keys that teak convert has dropped and will add again";
/// Those that it may have: others may lead elsewhere.
const ENGINES: &[&str] = &["InnoDB", "Teak"];

/// The records, through a connection of their own.
pub struct Journal {
    connection: Connection,
}

impl Journal {
    pub fn new(connection: Connection) -> Journal {
        Journal { connection }
    }

    /// What is recorded, by child.
    pub fn read(&mut self) -> Result<Vec<(Name, ForeignKey)>, ConvertError> {
        if !self.is_there()? {
            return Ok(Vec::new());
        }
        let rows = self
            .connection
            .query(format!("SELECT child_database, child_table, name, definition FROM {TABLE}"))?;
        let key = |row: Vec<Option<Vec<u8>>>| {
            let texts: Vec<String> = row
                .into_iter()
                .map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned())
                .collect();
            let [database, table, name, definition] = &texts[..] else { return None };
            let key = ForeignKey::parse(definition, database).filter(|key| key.name == *name)?;
            Some((Name::new(database, table), key))
        };
        let damaged = || {
            ConvertError::Usage(format!(
                "{TABLE} has a row that is no foreign key: nothing of it is carried out"
            ))
        };
        rows.into_iter().map(key).collect::<Option<_>>().ok_or_else(damaged)
    }

    /// An error if there is something of this name that this program has not made: reading a view could carry out
    /// functions of others.
    fn is_there(&mut self) -> Result<bool, ConvertError> {
        let rows = self.connection.query(format!(
            "SELECT TABLE_TYPE, ENGINE, TABLE_COMMENT FROM information_schema.TABLES
                WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = 'foreign_keys'"
        ))?;
        let Some(row) = rows.into_iter().next() else { return Ok(false) };
        let texts: Vec<String> = row
            .into_iter()
            .map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned())
            .collect();
        match &texts[..] {
            [kind, engine, comment]
                if kind == "BASE TABLE" && ENGINES.contains(&&engine[..]) && comment == COMMENT =>
            {
                Ok(true)
            }
            _ => Err(ConvertError::Usage(format!(
                "{TABLE} is no table that teak convert has made: see whose it is"
            ))),
        }
    }

    /// Makes the table, unless it is there; it gets the engine.
    pub fn prepare(&mut self, engine: &str) -> Result<(), ConvertError> {
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {TABLE} (child_database VARCHAR(64) NOT NULL, child_table VARCHAR(64) NOT NULL,
                name VARCHAR(64) NOT NULL, definition TEXT NOT NULL COMMENT 'for ALTER TABLE ... ADD',
                dropped TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (child_database, child_table, name))
                ENGINE={engine} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
                COMMENT='{COMMENT}'"
        );
        self.connection.execute(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
        self.connection.execute(create)?;
        // Somebody may have been faster.
        self.is_there()?;
        let own = format!(
            "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = 'foreign_keys'"
        );
        if !self.connection.value(own)?.is_some_and(|own| own.eq_ignore_ascii_case(engine)) {
            self.connection.execute(format!("ALTER TABLE {TABLE} ENGINE={engine}"))?;
        }
        Ok(())
    }

    /// Before constraints of `child` are dropped.
    pub fn note(&mut self, child: &Name, keys: &[ForeignKey]) -> Result<(), Error> {
        let rows = keys.iter().map(|key| {
            let values = [&child.database, &child.table, &key.name, &key.clause()].map(|text| literal(text));
            format!("({})", values.join(", "))
        });
        let rows: Vec<String> = rows.collect();
        self.connection
            .execute(format!(
                "REPLACE INTO {TABLE} (child_database, child_table, name, definition) VALUES {}",
                rows.join(", ")
            ))
            .map(|_| ())
    }

    /// After they were added.
    pub fn forget(&mut self, child: &Name, keys: &[ForeignKey]) -> Result<(), Error> {
        let names: Vec<String> = keys.iter().map(|key| literal(&key.name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.connection
            .execute(format!(
                "DELETE FROM {TABLE} WHERE child_database = {} AND child_table = {} AND name IN ({})",
                literal(&child.database),
                literal(&child.table),
                names.join(", ")
            ))
            .map(|_| ())
    }

    /// How many are recorded.
    pub fn count(&mut self) -> usize {
        self.read().map_or(0, |keys| keys.len())
    }

    /// Removes the table and its database, if nothing is recorded. A run that was ended here may have left the database
    /// alone.
    pub fn remove(&mut self) -> Result<(), ConvertError> {
        if self.is_there()? {
            if !self.read()?.is_empty() {
                return Ok(());
            }
            self.connection.execute(format!("DROP TABLE {TABLE}"))?;
        }
        let empty = format!(
            "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{DATABASE}'
                AND NOT EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}')"
        );
        if self.connection.value(empty)?.is_some() {
            self.connection.execute(format!("DROP DATABASE {DATABASE}"))?;
        }
        Ok(())
    }
}
