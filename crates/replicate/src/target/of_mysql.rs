//! What has to be known of the target for definitions of a MySQL.

use super::{Target, NO_DATABASE, SESSION};
use crate::routes::Name;
use crate::tables;
use teak_binlog::{Column as TableColumn, ColumnType, Conversion, Table};
use teak_client::{Connection, Error};
use teak_sql::mysql::{FunctionColumn, KnownTable, Probe, FUNCTION_COLUMN};
use teak_sql::quoting::{literal, quoted_name};

/// Temporary tables: one as that is to be which is made, and one with the expressions as columns.
const COLUMNS: &str = "teak_replicate.`columns of a table`";
const EXPRESSIONS: &str = "teak_replicate.`expressions of keys`";

/// The condition that a column of information_schema stands for an expression in a key.
pub fn is_of_function() -> String {
    format!(
        "(LEFT(COLUMN_NAME, {}) = '{FUNCTION_COLUMN}' AND IFNULL(GENERATION_EXPRESSION, '') <> '')",
        FUNCTION_COLUMN.len()
    )
}

/// What the columns of MySQL's own types are in the target, by their places from 0 on.
pub(super) fn conversions(
    connection: &mut Connection,
    table: &Table,
    (database, name): &Name,
) -> Result<Vec<(usize, Conversion)>, Error> {
    let is_own =
        |column: &TableColumn| matches!(column.kind, ColumnType::Json { .. } | ColumnType::Vector { .. });
    if !table.columns.iter().any(is_own) {
        return Ok(Vec::new());
    }
    let shown = connection.query(format!(
        "SELECT LOWER(DATA_TYPE), CHARACTER_OCTET_LENGTH FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        literal(database.as_bytes()),
        literal(name.as_bytes())
    ))?;
    let mut shown = tables::texts(shown);
    let mut found = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let [kind, bytes] = shown.next().and_then(|row| row.try_into().ok()).unwrap_or_default();
        match column.kind {
            ColumnType::Json { .. } => found.push((at, Conversion::Text)),
            ColumnType::Vector { .. } => found.push((at, of_vector(&kind, &bytes))),
            _ => (),
        }
    }
    Ok(found)
}

/// What a VECTOR is in a column of this type, of so many bytes.
fn of_vector(kind: &str, bytes: &str) -> Conversion {
    match (kind, bytes.parse()) {
        ("tinyblob", _) => Conversion::Blob(1),
        ("blob", _) => Conversion::Blob(2),
        ("longblob", _) => Conversion::Blob(4),
        ("varbinary" | "vector", Ok(bytes)) => Conversion::Varbinary(bytes),
        // Where it is another type yet the server says so.
        _ => Conversion::Blob(3),
    }
}

impl Target<'_> {
    /// A table, if it is there.
    pub fn known_table(&mut self, (database, table): &Name) -> Result<Option<KnownTable>, Error> {
        let (schema, name) = (literal(database.as_bytes()), literal(table.as_bytes()));
        let of_table = format!("TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}");
        let columns = self.connection.query(format!(
            "SELECT COLUMN_NAME, {}, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE {of_table}
            ORDER BY ORDINAL_POSITION",
            is_of_function()
        ))?;
        if columns.is_empty() {
            return Ok(None);
        }
        let keys = self.connection.query(format!(
            "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE {of_table}"
        ))?;
        let keys: Vec<[Vec<u8>; 2]> = keys.into_iter().map(values).collect();
        let mut known = KnownTable::default();
        for [name, is_function, expression] in columns.into_iter().map(values) {
            if is_function != b"1" {
                known.columns.push(name);
                continue;
            }
            let key = keys.iter().find(|[_, column]| *column == name).map(|[key, _]| key.clone());
            known.functions.push(FunctionColumn { name, expression, key: key.unwrap_or_default() });
        }
        known.keys = keys.into_iter().map(|[key, _]| key).collect();
        let checks = self.connection.query(format!(
            "SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS
            WHERE CONSTRAINT_SCHEMA = {schema} AND TABLE_NAME = {name}"
        ))?;
        known.checks = checks.into_iter().map(values).map(|[name, demand]| (name, demand)).collect();
        Ok(Some(known))
    }

    /// The types that columns have which stand for expressions, in the session of a statement. `quoted` is the table
    /// that they are about, if it is there.
    pub fn types_of(
        &mut self,
        session: &str,
        database: &[u8],
        quoted: &[u8],
        probe: &Probe,
    ) -> Result<Vec<String>, Error> {
        if !database.is_empty() {
            let used = self.connection.execute([b"USE ", &quoted_name(database)[..]].concat());
            if !matches!(&used, Err(error) if error.code() == Some(NO_DATABASE)) {
                used?;
            }
        }
        self.connection.execute(session)?;
        let told = types_in(&mut self.connection, quoted, probe);
        if matches!(told, Ok(_) | Err(Error::Server { .. })) {
            for table in [COLUMNS, EXPRESSIONS] {
                self.connection.execute(format!("DROP TEMPORARY TABLE IF EXISTS {table}"))?;
            }
            self.connection.execute(SESSION)?;
            self.connection.execute("USE teak_replicate")?;
        }
        told
    }
}

fn types_in(connection: &mut Connection, quoted: &[u8], probe: &Probe) -> Result<Vec<String>, Error> {
    let mut table = quoted.to_vec();
    if let Some(columns) = &probe.columns {
        table = COLUMNS.into();
        connection.execute([b"CREATE OR REPLACE TEMPORARY TABLE ", &table[..], b" ", columns].concat())?;
    }
    let named = probe.expressions.iter().enumerate();
    let named: Vec<Vec<u8>> = named
        .map(|(at, expression)| [b"(", &expression[..], format!(") AS `{at}`").as_bytes()].concat())
        .collect();
    let make = format!("CREATE OR REPLACE TEMPORARY TABLE {EXPRESSIONS} AS SELECT ");
    let select = [make.as_bytes(), &named.join(&b", "[..]), b" FROM ", &table, b" LIMIT 0"].concat();
    connection.execute(select)?;
    let shown = connection.query(format!("SHOW FULL COLUMNS FROM {EXPRESSIONS}"))?;
    let told = tables::texts(shown).map(|row| {
        let mut row = row.into_iter().skip(1);
        let (kind, collation) = (row.next().unwrap_or_default(), row.next().unwrap_or_default());
        match collation.as_str() {
            "" => kind,
            name => format!("{kind} COLLATE {name}"),
        }
    });
    Ok(told.collect())
}

/// The values of a row; NULL is empty.
fn values<const MANY: usize>(row: Vec<Option<Vec<u8>>>) -> [Vec<u8>; MANY] {
    let mut row = row.into_iter().map(Option::unwrap_or_default);
    std::array::from_fn(|_| row.next().unwrap_or_default())
}
