//! What the server knows of its tables.

use super::definition::Definition;
use super::name::{literal, Asked, Name};
use super::ConvertError;
use teak_client::{Connection, Error};

/// Engines whose tables hold their rows themselves, and nothing that is not in their definitions.
const KNOWN_ENGINES: &[&str] =
    &["InnoDB", "Teak", "MyISAM", "Aria", "MEMORY", "ROCKSDB", "TokuDB", "ARCHIVE", "CSV"];
/// Between these CHECKSUM TABLE is the same: rows of the others can have other bytes for the same values.
const SAME_RECORDS: &[&str] = &["InnoDB", "Teak"];
const TABLES: &str =
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, CREATE_OPTIONS, DATA_LENGTH + INDEX_LENGTH, \
                      TABLE_ROWS, TABLE_COMMENT FROM information_schema.TABLES";
const SYSTEM_DATABASES: &[&str] = &["mysql", "information_schema", "performance_schema", "sys"];

/// A table as information_schema has it.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: Name,
    kind: String,
    pub engine: Option<String>,
    options: String,
    pub bytes: u64,
    pub rows: u64,
    comment: String,
}

impl Table {
    pub fn has_engine(&self, engine: &str) -> bool {
        self.engine.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(engine))
    }

    pub fn is_view(&self) -> bool {
        self.kind.contains("VIEW")
    }

    /// Whether CHECKSUM TABLE tells of the same rows the same number before and after. It reads generated columns in
    /// some engines and in others not.
    pub fn has_same_checksum(&self, definition: &Definition) -> bool {
        SAME_RECORDS.iter().any(|engine| self.has_engine(engine)) && !definition.has_generated_columns()
    }

    pub fn has_history(&self) -> bool {
        self.kind == "SYSTEM VERSIONED"
    }

    /// Why it cannot be converted, as far as that can be told without trying.
    pub fn obstacle(&self, encryption: &Encryption, to: &str) -> Option<String> {
        let Some(engine) = &self.engine else {
            return Some(format!("the server cannot open it: {}", self.comment));
        };
        if self.is_view() {
            return Some("it is a view".into());
        }
        if !KNOWN_ENGINES.iter().any(|known| self.has_engine(known)) {
            return Some(format!("tables of the engine {engine} are not converted"));
        }
        if self.has_history() && (self.has_engine("InnoDB") || to == "InnoDB") {
            return Some(
                "the server does not change the engine of system-versioned tables to or from InnoDB".into(),
            );
        }
        let teak_would_lose = encryption.is_of(self) && !encryption.may_be_lost;
        teak_would_lose.then(|| {
            "it is encrypted, and Teak does not encrypt: --decrypt converts it to a table that is not".into()
        })
    }
}

/// Which tables are encrypted.
#[derive(Debug)]
pub struct Encryption {
    innodb: bool,
    aria: bool,
    /// The user says so, or the new engine has it too.
    pub may_be_lost: bool,
}

impl Encryption {
    pub fn read(connection: &mut Connection, may_be_lost: bool) -> Result<Encryption, Error> {
        let mut is_on = |name: &str| -> Result<bool, Error> {
            let rows = connection.query(format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
            let value = rows.into_iter().next().and_then(|mut row| row.pop()).flatten();
            Ok(value.is_some_and(|value| value != b"OFF"))
        };
        Ok(Encryption {
            innodb: is_on("innodb_encrypt_tables")?,
            aria: is_on("aria_encrypt_tables")?,
            may_be_lost,
        })
    }

    fn is_of(&self, table: &Table) -> bool {
        let options = table.options.to_ascii_lowercase().replace(['`', '\'', '"'], "");
        let says =
            |value: &str| options.split_whitespace().any(|option| option == format!("encrypted={value}"));
        if table.has_engine("InnoDB") {
            says("yes") || (self.innodb && !says("no"))
        } else {
            table.has_engine("Aria") && self.aria
        }
    }
}

/// The tables and sequences that are meant; views of a database are left out.
pub fn tables(connection: &mut Connection, asked: &[Asked]) -> Result<Vec<Table>, ConvertError> {
    let exact = connection.value("SELECT @@lower_case_table_names")?.as_deref() == Some("0");
    let same = |one: &str, other: &str| one == other || (!exact && one.eq_ignore_ascii_case(other));
    let mut found: Vec<Table> = Vec::new();
    for asked in asked {
        let database = asked.database();
        if SYSTEM_DATABASES.iter().any(|system| database.eq_ignore_ascii_case(system)) {
            return Err(ConvertError::Usage(format!(
                "{database} is the server's own: its tables stay as they are"
            )));
        }
        let mut tables = of_database(connection, database)?;
        tables.retain(|table| same(&table.name.database, database));
        match asked {
            Asked::Database(_) => tables.retain(|table| !table.is_view()),
            Asked::Table(name) => tables.retain(|table| same(&table.name.table, &name.table)),
        }
        if tables.is_empty() {
            let what = match asked {
                Asked::Database(database) => format!("there is no table in a database '{database}'"),
                Asked::Table(name) => format!("there is no table '{name}'"),
            };
            return Err(ConvertError::Usage(format!("{what}, or none that this account may see")));
        }
        tables.retain(|table| found.iter().all(|other| other.name != table.name));
        found.extend(tables);
    }
    Ok(found)
}

/// One table, by its exact name, if it is there.
pub fn find(connection: &mut Connection, name: &Name) -> Result<Option<Table>, Error> {
    let rows = connection.query(format!(
        "{TABLES} WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        literal(&name.database),
        literal(&name.table)
    ))?;
    Ok(rows.into_iter().map(of_row).find(|table| table.name == *name))
}

fn of_database(connection: &mut Connection, database: &str) -> Result<Vec<Table>, Error> {
    let rows = connection.query(format!(
        "{TABLES} WHERE TABLE_SCHEMA = {} AND TABLE_TYPE <> 'TEMPORARY'",
        literal(database)
    ))?;
    Ok(rows.into_iter().map(of_row).collect())
}

fn of_row(row: Vec<Option<Vec<u8>>>) -> Table {
    let mut row =
        row.into_iter().map(|value| value.map(|value| String::from_utf8_lossy(&value).into_owned()));
    let mut next = || row.next().flatten();
    let (database, table) = (next().unwrap_or_default(), next().unwrap_or_default());
    Table {
        name: Name { database, table },
        kind: next().unwrap_or_default(),
        engine: next(),
        options: next().unwrap_or_default(),
        bytes: next().and_then(|text| text.parse().ok()).unwrap_or(0),
        rows: next().and_then(|text| text.parse().ok()).unwrap_or(0),
        comment: next().unwrap_or_default(),
    }
}

/// A foreign key, as far as all tables of a server are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    pub child: Name,
    pub parent: Name,
    pub key: String,
}

/// Each foreign key on the server that the account may see.
pub fn edges(connection: &mut Connection) -> Result<Vec<Edge>, Error> {
    let rows = connection.query(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_NAME
            FROM information_schema.REFERENTIAL_CONSTRAINTS",
    )?;
    let edge = |row: Vec<Option<Vec<u8>>>| {
        let mut texts =
            row.into_iter().map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned());
        let mut next = || texts.next().unwrap_or_default();
        let (child, parent) = (Name::new(next(), next()), Name::new(next(), next()));
        Edge { child, parent, key: next() }
    };
    Ok(rows.into_iter().map(edge).collect())
}

/// How a table is defined.
pub fn definition(connection: &mut Connection, name: &Name) -> Result<Definition, ConvertError> {
    let rows = connection.query(format!("SHOW CREATE TABLE {}", name.quoted()))?;
    let text = rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let unknown = || ConvertError::Usage(format!("the definition of {name} is not understood: {text}"));
    Definition::parse(&text, &name.database).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(engine: &str, options: &str) -> Table {
        Table {
            name: Name::new("d", "t"),
            kind: "BASE TABLE".into(),
            engine: Some(engine.into()),
            options: options.into(),
            bytes: 0,
            rows: 0,
            comment: String::new(),
        }
    }

    #[test]
    fn encryption_is_not_lost_silently() {
        let read = |innodb| Encryption { innodb, aria: true, may_be_lost: false };
        let is_refused =
            |engine, options, innodb| table(engine, options).obstacle(&read(innodb), "Teak").is_some();
        assert!(is_refused("InnoDB", "`ENCRYPTED`='YES'", false));
        assert!(is_refused("InnoDB", "row_format=DYNAMIC `encrypted`=yes `encryption_key_id`=2", false));
        assert!(is_refused("InnoDB", "", true) && is_refused("Aria", "", false));
        assert!(!is_refused("InnoDB", "", false) && !is_refused("InnoDB", "`encrypted`=no", true));
        assert!(!is_refused("Teak", "`encrypted`=yes", true) && !is_refused("MyISAM", "", true));
        let allowed = Encryption { innodb: true, aria: true, may_be_lost: true };
        assert!(table("InnoDB", "").obstacle(&allowed, "Teak").is_none());
        assert!(is_refused("SPIDER", "", false));
    }
}
