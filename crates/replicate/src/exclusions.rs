//! What of the rows of a source's tables is left out: some kinds of changes, or the values of some columns.
//!
//! The columns themselves are in the target, so that places of columns, and statements that change definitions, mean
//! the same on both sides. They have there what a row has of which nobody names them.

use crate::failure::Failure;
use crate::renamed_columns::ColumnNames;
use crate::routes::{Name, TablePattern};
use crate::tables::{self, Table};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use teak_binlog::Change;
use teak_client::{Connection, Error};
use teak_console::Status;
use teak_sql::quoting::literal;

/// What can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Rows that come.
    Insert,
    /// Rows that change.
    Update,
    /// Rows that go.
    Delete,
    /// TRUNCATE TABLE.
    Truncate,
}

/// What is left out of tables.
#[derive(Debug, Clone, Default)]
pub struct Exclusions {
    changes: OfTables<Kind>,
    columns: OfTables<String>,
}

/// Of patterns what is said of each.
pub type ByPattern<T> = BTreeMap<String, Vec<T>>;

/// The same, with the patterns taken apart.
pub type OfTables<T> = Vec<(TablePattern, Vec<T>)>;

impl Exclusions {
    /// Adds kinds of changes; the pattern that is none is the error.
    pub fn exclude_changes(&mut self, all: &ByPattern<Kind>) -> Result<(), String> {
        self.changes = of_tables(all)?;
        Ok(())
    }

    /// Adds columns; the pattern that is none is the error.
    pub fn exclude_columns(&mut self, all: &ByPattern<String>) -> Result<(), String> {
        self.columns = of_tables(all)?;
        Ok(())
    }

    /// Whether some changes of it are.
    pub fn leaves_some_out(&self, database: &str, table: &str) -> bool {
        said_of(&self.changes, database, table).next().is_some()
    }

    /// Whether changes of a kind are.
    pub fn leaves_out(&self, database: &str, table: &str, kind: Kind) -> bool {
        said_of(&self.changes, database, table).any(|kinds| kinds.contains(&kind))
    }

    /// Columns of it that are.
    pub fn columns(&self, database: &str, table: &str) -> Vec<&str> {
        said_of(&self.columns, database, table).flatten().map(String::as_str).collect()
    }

    /// A table of the source as it is compared.
    pub fn without_columns(&self, (database, name): (&str, &str), mut table: Table) -> Table {
        let left_out = self.columns(database, name);
        table.columns.retain(|column| !left_out.iter().any(|name| name.as_bytes() == column.name));
        table
    }

    /// Whether a pattern fits none of a source's tables: one of changes, one of columns.
    pub fn without_tables(&self, tables: &[&Name]) -> (bool, bool) {
        (are_for_nobody(&self.changes, tables), are_for_nobody(&self.columns, tables))
    }

    /// The places, from 0, of the columns that are left out of a table, which is called `here` in the target, and its
    /// columns as `names` says.
    pub fn places(
        &self,
        target: &mut Connection,
        (database, name): (&str, &str),
        here: &Name,
        names: &ColumnNames,
    ) -> Result<Vec<usize>, Failure> {
        let mut left_out = self.columns(database, name);
        for name in &mut left_out {
            *name = names.other(name.as_bytes()).unwrap_or(name);
        }
        if left_out.is_empty() {
            return Ok(Vec::new());
        }
        let shown = format!("`{}`.`{}`", here.0, here.1);
        let of_target = |error: Error| Failure::of_target(&error, || format!("columns of {shown}"));
        let table = tables::one(target, &here.0, &here.1).map_err(of_target)?;
        let unique = unique_columns(target, here).map_err(of_target)?;
        let places = table.map_or(Ok(Vec::new()), |table| places_in(&table, &unique, &left_out));
        places.map_err(|why| Failure::Final(format!("{shown} {why}"), Status::Usage))
    }
}

impl From<Change> for Kind {
    fn from(change: Change) -> Kind {
        match change {
            Change::Write => Kind::Insert,
            Change::Update => Kind::Update,
            Change::Delete => Kind::Delete,
        }
    }
}

/// What is said of tables, with their patterns; the one that is none is the error.
pub fn of_tables<T: Clone>(all: &ByPattern<T>) -> Result<OfTables<T>, String> {
    let one = |(text, those): (&String, &Vec<T>)| {
        let pattern = TablePattern::parse(text).ok_or_else(|| format!("{text} is not database.table"))?;
        Ok((pattern, those.clone()))
    };
    all.iter().map(one).collect()
}

/// What is said of one table, by each pattern that fits it.
pub fn said_of<'t: 'n, 'n, T>(
    all: &'t [(TablePattern, Vec<T>)],
    database: &'n str,
    table: &'n str,
) -> impl Iterator<Item = &'t [T]> + 'n {
    let fits = move |pattern: &TablePattern| pattern.fits(database.as_bytes(), table.as_bytes());
    all.iter().filter(move |(pattern, _)| fits(pattern)).map(|(_, those)| &those[..])
}

/// Whether a pattern fits none of a source's tables.
pub fn are_for_nobody<T>(all: &[(TablePattern, Vec<T>)], tables: &[&Name]) -> bool {
    let fits = |pattern: &TablePattern, name: &Name| pattern.fits(name.0.as_bytes(), name.1.as_bytes());
    all.iter().any(|(pattern, _)| !tables.iter().any(|name| fits(pattern, name)))
}

/// The columns of a table's unique keys.
pub fn unique_columns(connection: &mut Connection, name: &Name) -> Result<BTreeSet<String>, Error> {
    let [schema, table] = [&name.0, &name.1].map(|text| literal(text.as_bytes()));
    let rows = connection.query(format!(
        "SELECT COLUMN_NAME FROM information_schema.STATISTICS
        WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table} AND NON_UNIQUE = 0"
    ))?;
    Ok(tables::texts(rows).flatten().collect())
}

/// Where these columns are, or why they cannot be left out.
pub fn places_in(table: &Table, unique: &BTreeSet<String>, left_out: &[&str]) -> Result<Vec<usize>, String> {
    if table.key.is_empty() {
        return Err("has no key without NULLs, by which rows of which columns are left out are found".into());
    }
    let place = |name: &&str| {
        if unique.contains(*name) {
            return Err(format!("has `{name}` in a unique key, so that cannot be left out"));
        }
        let place = table.columns.iter().position(|column| column.name == name.as_bytes());
        place.ok_or_else(|| format!("has no column `{name}`, which is to be left out"))
    };
    left_out.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_are_of_tables_by_patterns() {
        let of = |pattern: &str, kinds: &[Kind]| BTreeMap::from([(pattern.to_string(), kinds.to_vec())]);
        let mut exclusions = Exclusions::default();
        exclusions.exclude_changes(&of("d.log*", &[Kind::Delete, Kind::Truncate])).unwrap();
        exclusions.exclude_columns(&BTreeMap::from([("*.user".into(), vec!["password".into()])])).unwrap();
        assert!(exclusions.leaves_out("d", "log1", Kind::Delete));
        assert!(
            !exclusions.leaves_out("d", "log1", Kind::Insert)
                && !exclusions.leaves_out("e", "log1", Kind::Delete)
        );
        assert_eq!(exclusions.columns("e", "user"), ["password"]);
        assert!(exclusions.columns("e", "users").is_empty());
        assert!(exclusions.leaves_some_out("d", "log") && !exclusions.leaves_some_out("d", "user"));
        let name = |database: &str, table: &str| (database.to_string(), table.to_string());
        let (log, user) = (name("d", "log"), name("e", "user"));
        assert_eq!(exclusions.without_tables(&[&log]), (false, true));
        assert_eq!(exclusions.without_tables(&[&user]), (true, false));
        assert!(exclusions.exclude_changes(&of("log", &[Kind::Delete])).is_err());
        assert_eq!(Kind::from(Change::Update), Kind::Update);
    }
}
