//! Tables that are one in the target: its last column tells whose a row is.

use crate::configuration::is_plain;
use crate::failure::Failure;
use crate::tables::{self, Table};
use serde::Deserialize;
use teak_client::{Connection, Error};
use teak_console::Status;
use teak_sql::quoting::{literal, quoted_name};

/// Character sets in which a letter is more than a byte.
const WIDE: [&str; 4] = ["ucs2", "utf16", "utf16le", "utf32"];

/// What a table is in one of the target that others are in as well. Its rows have one column more there, the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOf {
    /// That column.
    pub column: String,
    /// What it has in them: letters, digits, `_` and `-`.
    pub value: String,
}

impl PartOf {
    /// Whether the rows of two tables can be told apart, whatever collation the column has; None: of one that is no
    /// part.
    pub fn are_apart(one: Option<&PartOf>, other: Option<&PartOf>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => {
                one.column == other.column && !one.value.eq_ignore_ascii_case(&other.value)
            }
            _ => false,
        }
    }

    /// How many bytes the column has at most; an error if it is not there, or is of another kind.
    pub fn bytes_in(&self, target: &mut Connection, database: &str, table: &str) -> Result<u16, Failure> {
        let shown = format!("`{database}`.`{table}`");
        let [schema, name] = [database, table].map(|text| literal(text.as_bytes()));
        let rows = target.query(format!(
            "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME, CHARACTER_OCTET_LENGTH FROM information_schema.COLUMNS
            WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name} ORDER BY ORDINAL_POSITION DESC LIMIT 1"
        ));
        let of_target = |error: Error| Failure::of_target(&error, || format!("columns of {shown}"));
        let row = tables::texts(rows.map_err(of_target)?).next().unwrap_or_default();
        let [column, kind, charset, bytes] = row.try_into().unwrap_or_default();
        let bytes: u16 = bytes.parse().unwrap_or(0);
        let fits = kind == "varchar" && !WIDE.contains(&charset.as_str());
        if column != self.column || !fits || usize::from(bytes) < self.value.len() {
            let (wanted, length) = (&self.column, self.value.len());
            let why =
                format!("the last column of {shown} must be {wanted}, a VARCHAR that takes {length} letters");
            return Err(Failure::Final(why, Status::Damage));
        }
        Ok(bytes)
    }

    /// The condition that a row is of it.
    pub fn condition(&self) -> Vec<u8> {
        [&quoted_name(self.column.as_bytes())[..], b" = ", &self.literal()].concat()
    }

    /// The value, as a statement has it.
    pub fn literal(&self) -> Vec<u8> {
        format!("'{}'", self.value).into_bytes()
    }

    /// The table of the target without that column; None: it is not the last one.
    pub fn without(&self, table: &Table) -> Option<Table> {
        let mut table = table.clone();
        let last = table.columns.pop()?;
        (last.name == self.column.as_bytes()).then_some(table)
    }
}

/// What a table is called in the target: `database.table`, or with others of which it is one there.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum TableKeys {
    /// The name.
    Name(String),
    /// With others.
    Part(PartKeys),
}

/// How it is one with others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartKeys {
    table: String,
    column: String,
    value: Option<String>,
}

impl TableKeys {
    /// Its name, and what part it is, of this source.
    pub fn names(&self, source: &str) -> Result<(&str, Option<PartOf>), String> {
        let part = match self {
            TableKeys::Name(name) => return Ok((name, None)),
            TableKeys::Part(part) => part,
        };
        let value = part.value.as_deref().unwrap_or(source);
        if !is_plain(value) || part.column.is_empty() {
            let why = "a value has letters of ASCII, digits, _ and -, and a column has a name";
            return Err(format!("rename_tables: {}: {why}", part.table));
        }
        Ok((&part.table, Some(PartOf { column: part.column.clone(), value: value.into() })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_by_one_column_under_every_collation() {
        let part = |column: &str, value: &str| PartOf { column: column.into(), value: value.into() };
        let one = part("wiki", "en");
        for (other, apart) in [
            (Some(part("wiki", "de")), true),
            (Some(part("wiki", "EN")), false),
            (Some(part("w", "de")), false),
            (None, false),
        ] {
            assert_eq!(PartOf::are_apart(Some(&one), other.as_ref()), apart, "{other:?}");
            assert_eq!(PartOf::are_apart(other.as_ref(), Some(&one)), apart, "{other:?}");
        }
        assert!(!PartOf::are_apart(None, None));
    }
}
