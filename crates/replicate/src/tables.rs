//! The tables of a server, as its information_schema describes them: columns, keys, foreign keys that cascade.

use crate::routes::OWN;
use std::collections::{BTreeMap, BTreeSet};
use teak_client::{Connection, Error, Rows};
use teak_sql::columns::Column;
use teak_sql::mysql::FUNCTION_COLUMN;
use teak_sql::quoting::literal;

/// All columns of foreign keys with their rules.
const FOREIGN_KEYS: &str =
    "information_schema.REFERENTIAL_CONSTRAINTS r JOIN information_schema.KEY_COLUMN_USAGE k
            ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME
            AND k.TABLE_NAME = r.TABLE_NAME AND k.REFERENCED_TABLE_NAME IS NOT NULL";

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its engine.
    pub engine: String,
    /// All columns that are shown, in order.
    pub columns: Vec<Column>,
    /// The names of the columns of its primary key, or of its first key without duplicates and NULLs; empty if it has
    /// none.
    pub key: Vec<String>,
    /// That key is called so.
    pub index: String,
    /// It has keys that are not unique.
    pub has_other_keys: bool,
    /// It has further unique keys.
    pub has_more_unique_keys: bool,
    /// It is a sequence, which has one row.
    pub is_sequence: bool,
    /// It keeps old versions of its rows.
    pub is_versioned: bool,
    /// How long its rows are together, about.
    pub bytes: u64,
    /// How many rows there are, about.
    pub rows: u64,
}

/// Tables by the names of their databases and their own.
pub type Tables = BTreeMap<(String, String), Table>;

/// Tables, not views, that are meant by the names of their databases and their own, as far as the account sees them.
pub fn all(connection: &mut Connection, is_meant: &dyn Fn(&str, &str) -> bool) -> Result<Tables, Error> {
    // Databases of the server itself are left out.
    described(connection, &format!("TABLE_SCHEMA NOT IN ('{}')", OWN.join("', '")), is_meant)
}

/// One table; None if the account does not see it.
pub fn one(connection: &mut Connection, database: &str, table: &str) -> Result<Option<Table>, Error> {
    let [schema, name] = [database, table].map(|text| literal(text.as_bytes()));
    let condition = format!("TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}");
    Ok(described(connection, &condition, &|_, _| true)?.into_values().next())
}

fn described(
    connection: &mut Connection,
    condition: &str,
    is_meant: &dyn Fn(&str, &str) -> bool,
) -> Result<Tables, Error> {
    let listed = connection.query(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_TYPE, DATA_LENGTH, TABLE_ROWS FROM information_schema.TABLES
        WHERE {condition} AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"
    ))?;
    let mut tables = Tables::new();
    for row in texts(listed).filter(|row| is_meant(&row[0], &row[1])) {
        let [database, name, engine, kind, bytes, rows] = row.try_into().unwrap_or_default();
        let table = Table {
            engine,
            columns: Vec::new(),
            key: Vec::new(),
            index: String::new(),
            has_other_keys: false,
            has_more_unique_keys: false,
            is_sequence: kind == "SEQUENCE",
            is_versioned: kind == "SYSTEM VERSIONED",
            bytes: bytes.parse().unwrap_or(0),
            rows: rows.parse().unwrap_or(0),
        };
        tables.insert((database, name), table);
    }
    let is_mariadb = connection.version().contains("MariaDB");
    let columns = connection.query(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_TYPE, CHARACTER_SET_NAME,
            COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT, UPPER(EXTRA), GENERATION_EXPRESSION FROM information_schema.COLUMNS
        WHERE {condition} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
    ))?;
    for mut row in columns {
        let rest = row.split_off(2);
        if let Some(table) = tables.get_mut(&pair(row)) {
            let column = Column::read(rest, is_mariadb);
            table.columns.push(if is_mariadb { column } else { column.in_mariadb() });
        }
    }
    // Of a key with a column that is not whole, or with an expression, no column is taken.
    let keys = connection.query(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME,
            SUB_PART IS NULL AND NULLABLE <> 'YES' AND COLUMN_NAME IS NOT NULL AND INDEX_TYPE = 'BTREE' FROM information_schema.STATISTICS
        WHERE {condition} AND NON_UNIQUE = 0
        ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"
    ))?;
    // Name, columns, and whether they can be taken.
    type Index = (String, Vec<String>, bool);
    let mut found: BTreeMap<(String, String), Vec<Index>> = BTreeMap::new();
    for row in texts(keys) {
        let [database, table, index, column, fits] = row.try_into().unwrap_or_default();
        let indexes = found.entry((database, table)).or_default();
        if indexes.last().is_none_or(|(name, ..)| *name != index) {
            indexes.push((index, Vec::new(), true));
        }
        if let Some((_, columns, fit)) = indexes.last_mut() {
            columns.push(column);
            *fit &= fits == "1";
        }
    }
    for (name, indexes) in found {
        if let Some(table) = tables.get_mut(&name) {
            let unique = indexes.len();
            let first = indexes.into_iter().find(|(_, _, fit)| *fit);
            table.has_more_unique_keys = unique > usize::from(first.is_some());
            if let Some((index, key, _)) = first {
                (table.index, table.key) = (index, key);
            }
        }
    }
    let others = connection.query(format!(
        "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.STATISTICS WHERE {condition} AND NON_UNIQUE = 1"
    ))?;
    for row in others {
        if let Some(table) = tables.get_mut(&pair(row)) {
            table.has_other_keys = true;
        }
    }
    Ok(tables)
}

/// Engines with transactions.
pub fn engines(connection: &mut Connection) -> Result<Vec<String>, Error> {
    let engines =
        connection.query("SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES'")?;
    Ok(texts(engines).flatten().collect())
}

/// A column of a foreign key.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    /// Database and table that have the key.
    pub child: (String, String),
    /// Those that it refers to.
    pub parent: (String, String),
    /// The column of the child.
    pub column: String,
    /// It changes with the parent's row.
    pub changes_with_parent: bool,
}

/// All columns of foreign keys.
pub fn references(connection: &mut Connection) -> Result<Vec<Reference>, Error> {
    let rows = connection.query(format!(
        "SELECT r.CONSTRAINT_SCHEMA, r.TABLE_NAME, k.REFERENCED_TABLE_SCHEMA, r.REFERENCED_TABLE_NAME, k.COLUMN_NAME,
            r.UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') FROM {FOREIGN_KEYS}"
    ))?;
    let reference = |row: Vec<String>| {
        let [child, table, parent, parents, column, changes] = row.try_into().unwrap_or_default();
        Reference {
            child: (child, table),
            parent: (parent, parents),
            column,
            changes_with_parent: changes == "1",
        }
    };
    Ok(texts(rows).map(reference).collect())
}

/// Foreign keys through which changes of one table's rows change another's, as texts that are equal if the keys are
/// but for their own names; `rename`: what databases and tables are called in the texts.
pub fn cascades(
    connection: &mut Connection,
    is_meant: &dyn Fn(&str, &str) -> bool,
    rename: &dyn Fn(&str, &str) -> (String, String),
) -> Result<BTreeSet<String>, Error> {
    let rows = connection.query(format!(
        "SELECT r.CONSTRAINT_SCHEMA, r.TABLE_NAME, k.REFERENCED_TABLE_SCHEMA, r.REFERENCED_TABLE_NAME,
            GROUP_CONCAT(k.COLUMN_NAME ORDER BY k.ORDINAL_POSITION),
            GROUP_CONCAT(k.REFERENCED_COLUMN_NAME ORDER BY k.ORDINAL_POSITION), r.UPDATE_RULE, r.DELETE_RULE
        FROM {FOREIGN_KEYS}
        WHERE NOT (r.UPDATE_RULE IN ('RESTRICT', 'NO ACTION') AND r.DELETE_RULE IN ('RESTRICT', 'NO ACTION'))
        GROUP BY r.CONSTRAINT_SCHEMA, r.TABLE_NAME, r.CONSTRAINT_NAME, k.REFERENCED_TABLE_SCHEMA, r.REFERENCED_TABLE_NAME,
            r.UPDATE_RULE, r.DELETE_RULE"
    ))?;
    let texts = texts(rows).filter(|row| is_meant(&row[0], &row[1])).map(|row| {
        let [child, table, parent, parents, columns, referenced, update, delete] =
            row.try_into().unwrap_or_default();
        // Both mean the same.
        let rule = |rule: String| rule.replace("NO ACTION", "RESTRICT");
        let ((child, table), (parent, parents)) = (rename(&child, &table), rename(&parent, &parents));
        format!(
            "`{child}`.`{table}` ({columns}) REFERENCES `{parent}`.`{parents}` ({referenced}) ON UPDATE {} ON DELETE {}",
            rule(update),
            rule(delete)
        )
    });
    Ok(texts.collect())
}

/// Why rows of a table cannot be applied in another one. `engines` are those with transactions.
pub fn differences(there: &Table, here: &Table, engines: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if !engines.contains(&here.engine) {
        found.push(format!("is of the engine {} in the target, which has no transactions", here.engine));
    }
    let mut here = here.clone();
    if here.columns.len() > there.columns.len() {
        // What stands for an expression in a key is at a MySQL no column.
        here.columns
            .retain(|column| column.is_given() || !column.name.starts_with(FUNCTION_COLUMN.as_bytes()));
    }
    let (theirs, ours) = (there.columns.len(), here.columns.len());
    if theirs != ours {
        found.push(format!("has {theirs} columns at the source, and {ours} in the target"));
        return found;
    }
    for (number, (there, here)) in there.columns.iter().zip(&here.columns).enumerate() {
        let (theirs, ours) = (there.type_of_values(), here.type_of_values());
        let name = |column: &Column| String::from_utf8_lossy(&column.name).into_owned();
        if theirs != ours {
            found.push(format!("column {} is {theirs} at the source, and {ours} in the target", name(there)));
        } else if there.name != here.name {
            let number = number + 1;
            found.push(format!(
                "column {number} is called {} at the source, and {} in the target",
                name(there),
                name(here)
            ));
        }
    }
    found
}

/// Of databases and tables that are called as they are.
pub fn as_they_are(database: &str, table: &str) -> (String, String) {
    (database.into(), table.into())
}

/// Rows whose values are text; NULL is empty.
pub fn texts(rows: Rows) -> impl Iterator<Item = Vec<String>> {
    let text = |value: Option<Vec<u8>>| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
    rows.into_iter().map(move |row| row.into_iter().map(text).collect())
}

fn pair(row: Vec<Option<Vec<u8>>>) -> (String, String) {
    let mut texts = texts(vec![row]).flatten();
    (texts.next().unwrap_or_default(), texts.next().unwrap_or_default())
}
