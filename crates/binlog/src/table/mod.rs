//! Tables, as table maps have them.
//!
//! ```text
//! table id: 6 (4 before MySQL 5.1.4) | flags: 2        (that is the fixed part)
//! | length: 1 | database | 0 | length: 1 | table | 0 | number of columns: packed | a type for each
//! | length: packed | what types need besides | a bit for each: it may be NULL | what else is told of columns
//! ```
//!
//! | file | is about |
//! |---|---|
//! | `column.rs` | types of columns |
//! | `metadata.rs` | what else is told of columns |

mod column;
mod metadata;

pub use column::ColumnType;
use column::SqlType;

use crate::bytes::{bytes_of_bits, Bitmap, Bytes};
use crate::error::Problem;
use crate::format::Family;

/// More columns than this a table cannot have, in either family.
const MOST_COLUMNS: u64 = 4096;
/// Of the fixed part before MySQL 5.1.4.
const SHORT_FIXED_BYTES: usize = 6;
const FIXED_BYTES: usize = 8;
/// The collation of bytes.
pub(crate) const BINARY: u32 = 63;

/// A table whose rows follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// By which events with rows name it, until the end of the statement.
    pub id: u64,
    /// Bits that the server sets.
    pub flags: u16,
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// In the order of the table's definition, with those that are invisible or generated.
    pub columns: Vec<Column>,
    /// The columns of the primary key, if the log has them.
    pub primary_key: Option<Vec<KeyColumn>>,
}

/// A column. What is None is not in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its type.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// Its name.
    pub name: Option<String>,
    /// Of numbers: whether they are UNSIGNED.
    pub is_unsigned: Option<bool>,
    /// By its number: 63 is that of bytes.
    pub collation: Option<u32>,
    /// The strings of an ENUM or a SET, in the column's character set.
    pub members: Option<Vec<Vec<u8>>>,
    /// 0 GEOMETRY, 1 POINT, 2 LINESTRING, 3 POLYGON, 4 MULTIPOINT, 5 MULTILINESTRING, 6 MULTIPOLYGON, 7
    /// GEOMETRYCOLLECTION.
    pub geometry_type: Option<u32>,
    /// Of a VECTOR: how many numbers it can have.
    pub dimensions: Option<u32>,
    /// Whether `SELECT *` shows it.
    pub is_visible: Option<bool>,
}

/// A column of a primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its place in the table, from 0 on.
    pub column: usize,
    /// How much of it is in the key; 0 is all.
    pub prefix_characters: u32,
}

impl Column {
    /// One of which nothing else is told.
    pub(crate) fn new(kind: ColumnType, is_nullable: bool) -> Column {
        let (name, is_unsigned, collation, members) = (None, None, None, None);
        let (geometry_type, dimensions, is_visible) = (None, None, None);
        Column {
            kind,
            is_nullable,
            name,
            is_unsigned,
            collation,
            members,
            geometry_type,
            dimensions,
            is_visible,
        }
    }

    /// Its type, as in SQL as far as the log has it: `varchar` without a length, `blob` for a BLOB whose collation is
    /// known to be that of bytes, and `text` otherwise.
    pub fn sql_type(&self) -> String {
        SqlType { kind: self.kind, is_binary: self.collation == Some(BINARY) }.to_string()
    }
}

impl Table {
    /// `` `database`.`table` ``
    pub fn quoted_name(&self) -> String {
        format!("`{}`.`{}`", self.database.replace('`', "``"), self.name.replace('`', "``"))
    }

    /// What a column is called in texts: its number from 1 on, and its name.
    pub fn column_name(&self, at: usize) -> String {
        match self.columns.get(at).and_then(|column| column.name.as_ref()) {
            Some(name) => format!("{} `{}`", at + 1, name.replace('`', "``")),
            None => format!("{}", at + 1),
        }
    }

    pub(crate) fn read(mut bytes: Bytes<'_>, fixed_bytes: usize, family: Family) -> Result<Table, Problem> {
        let what = "a table map";
        let mut fixed = Bytes(bytes.take(fixed_bytes, what)?);
        let id = table_id(&mut fixed, fixed_bytes)?;
        let flags = fixed.u16(what)?;
        let mut a_name = || {
            let name = name(bytes.packed_string("the name of a table")?)?;
            match bytes.u8(what)? {
                0 => Ok(name),
                _ => Err(Problem::invalid("the name of a table has no end")),
            }
        };
        let (database, name) = (a_name()?, a_name()?);
        let number = bytes.packed(what)?;
        if number > MOST_COLUMNS {
            return Err(Problem::invalid(format!("a table of {number} columns")));
        }
        let codes = bytes.take_long(number, "the types of columns")?;
        if bytes.is_empty() {
            return Err(Problem::invalid(
                "a table map of MySQL 5.1 before its release, whose rows cannot be decoded",
            ));
        }
        let mut metadata = Bytes(bytes.packed_string("what is told of types")?);
        let nullable = Bitmap(bytes.take(bytes_of_bits(codes.len()), "what may be NULL")?);
        let column = |(at, &code): (usize, &u8)| {
            Ok(Column::new(ColumnType::read(code, &mut metadata)?, nullable.has(at)))
        };
        let columns: Result<_, Problem> = codes.iter().enumerate().map(column).collect();
        let mut table = Table { id, flags, database, name, columns: columns?, primary_key: None };
        metadata.end("what is told of types")?;
        metadata::read(&mut table, bytes, family)?;
        Ok(table)
    }
}

/// A name, which is in UTF-8 in all logs.
fn name(bytes: &[u8]) -> Result<String, Problem> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Problem::invalid("a name that is not UTF-8"))
}

/// What events with rows and table maps begin with.
pub(crate) fn table_id(fixed: &mut Bytes<'_>, fixed_bytes: usize) -> Result<u64, Problem> {
    match fixed_bytes {
        SHORT_FIXED_BYTES => fixed.little(4, "a table id"),
        FIXED_BYTES.. => fixed.little(6, "a table id"),
        other => Err(Problem::invalid(format!("a fixed part of {other} bytes in front of a table's rows"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// id INT, y YEAR, a VARCHAR, e ENUM, n INT UNSIGNED, s SET, t TEXT, g GEOMETRY.
    fn map(metadata: &[&[u8]]) -> Vec<u8> {
        let head = b"\x05\0\0\0\0\0\x01\0\x02db\0\x01t\0\x08\x03\x0d\x0f\xfe\x03\xfe\xfc\xff\x08\x28\0\xf7\x01\xf8\x01\x02\x04\x06";
        [&head[..], &metadata.concat()].concat()
    }

    fn read(bytes: &[u8], family: Family) -> Result<Table, Problem> {
        Table::read(Bytes(bytes), 8, family)
    }

    #[test]
    fn a_map_without_metadata_has_types_alone() {
        let table = read(&map(&[]), Family::MySql).unwrap();
        assert_eq!((table.id, table.quoted_name()), (5, "`db`.`t`".into()));
        let types: Vec<String> = table.columns.iter().map(Column::sql_type).collect();
        assert_eq!(types.join(" "), "int year varchar enum int set text geometry");
        assert_eq!(table.columns.iter().map(|c| c.is_nullable).collect::<Vec<_>>()[..3], [false, true, true]);
        assert!(table.columns.iter().all(|c| c.is_unsigned.is_none() && c.collation.is_none()));
        let whole = map(&[]);
        for end in 0..whole.len() {
            assert!(read(&whole[..end], Family::MySql).is_err(), "{end}");
        }
    }

    #[test]
    fn all_that_can_be_told_of_columns_is_read() {
        let bytes = map(&[
            b"\x02\x03\x2d\x01\x3f",
            b"\x04\x10\x01i\x01y\x01a\x01e\x01n\x01s\x01t\x01g",
            b"\x05\x05\x02\x01x\x01y",
            b"\x06\x03\x01\x01z",
            b"\x07\x01\x01",
            b"\x09\x04\x00\x00\x02\x05",
            b"\x0a\x01\x21",
            b"\x0c\x01\xfe",
            b"\x63\x02ab",
        ]);
        let table = read(&bytes, Family::MariaDb).unwrap();
        assert_eq!(read(&bytes, Family::MySql).unwrap().columns[7].collation, None);
        let collations: Vec<_> = table.columns.iter().map(|c| c.collation).collect();
        assert_eq!(collations, [None, None, Some(45), Some(33), None, Some(33), Some(63), Some(45)]);
        assert_eq!(table.columns[6].sql_type(), "blob");
        assert_eq!(table.column_name(2), "3 `a`");
        assert_eq!(table.columns[5].members.as_ref().unwrap(), &[b"x", b"y"]);
        assert_eq!(table.columns[3].members.as_ref().unwrap(), &[b"z"]);
        assert_eq!(table.columns[7].geometry_type, Some(1));
        let key: Vec<_> =
            table.primary_key.unwrap().iter().map(|c| (c.column, c.prefix_characters)).collect();
        assert_eq!(key, [(0, 0), (2, 5)]);
        assert_eq!((table.columns[6].is_visible, table.columns[7].is_visible), (Some(true), Some(false)));
    }

    #[test]
    fn year_has_a_bit_of_signedness() {
        // As MariaDB 10.11 and MySQL 9.7 write it, though mariadb-binlog does not read it so.
        for family in [Family::MariaDb, Family::MySql] {
            let table = read(&map(&[b"\x01\x01\x60"]), family).unwrap();
            let unsigned = [0, 1, 2, 4].map(|at| table.columns[at].is_unsigned);
            assert_eq!(unsigned, [Some(false), Some(true), None, Some(true)]);
        }
    }

    #[test]
    fn what_names_other_columns_is_refused() {
        for field in [
            &b"\x02\x03\x2d\x03\x3f"[..],
            b"\x03\x01\x2d",
            b"\x04\x02\x01i",
            b"\x05\x01\x05",
            b"\x08\x01\x08",
            b"\x08\x05\x01",
        ] {
            assert!(read(&map(&[field]), Family::MySql).is_err(), "{field:?}");
        }
    }
}
