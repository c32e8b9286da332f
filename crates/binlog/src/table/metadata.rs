//! What a table map tells of its columns besides their types, if the server is set so (`binlog_row_metadata`).
//!
//! ```text
//! { number of a field: 1 | length: packed | the field }
//! ```

use super::{Column, KeyColumn, Table};
use crate::bytes::Bytes;
use crate::error::Problem;
use crate::format::Family;
use crate::table::ColumnType;

/// A table's field of the log: collations as a default and what differs from it, or one for each column.
#[derive(Clone, Copy, PartialEq)]
enum Collations {
    WithDefault,
    Each,
}

/// Reads all fields into the table.
pub fn read(table: &mut Table, mut bytes: Bytes<'_>, family: Family) -> Result<(), Problem> {
    let what = "what a table map tells of columns";
    // To MariaDB a geometry is text, of bytes.
    let is_geometry = |kind: ColumnType| matches!(kind, ColumnType::Geometry { .. });
    let is_text = |column: &Column| {
        column.kind.has_collation() || family == Family::MariaDb && is_geometry(column.kind)
    };
    let is_choice = |column: &Column| matches!(column.kind, ColumnType::Enum(_) | ColumnType::Set(_));
    while !bytes.is_empty() {
        let field = bytes.u8(what)?;
        let value = Bytes(bytes.packed_string(what)?);
        match field {
            1 => signedness(table, value),
            2 => collations(table, value, Collations::WithDefault, is_text)?,
            3 => collations(table, value, Collations::Each, is_text)?,
            4 => names(table, value)?,
            5 => members(table, value, |kind| matches!(kind, ColumnType::Set(_)))?,
            6 => members(table, value, |kind| matches!(kind, ColumnType::Enum(_)))?,
            7 => numbers(
                table,
                value,
                |kind| matches!(kind, ColumnType::Geometry { .. }),
                |column, number| {
                    column.geometry_type = Some(number);
                },
            )?,
            8 => key(table, value, false)?,
            9 => key(table, value, true)?,
            10 => collations(table, value, Collations::WithDefault, is_choice)?,
            11 => collations(table, value, Collations::Each, is_choice)?,
            12 => {
                for (at, column) in table.columns.iter_mut().enumerate() {
                    column.is_visible = Some(bit(value.0, at));
                }
            }
            13 => numbers(
                table,
                value,
                |kind| matches!(kind, ColumnType::Vector { .. }),
                |column, number| {
                    column.dimensions = Some(number);
                },
            )?,
            // Of a newer server: its length says where the next begins.
            _ => (),
        }
    }
    Ok(())
}

/// A bit, counted from the highest of the first byte.
fn bit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at / 8).is_some_and(|byte| byte << (at % 8) & 0x80 != 0)
}

fn signedness(table: &mut Table, bytes: Bytes<'_>) {
    let with_sign = table.columns.iter_mut().filter(|column| column.kind.has_sign());
    for (at, column) in with_sign.enumerate() {
        column.is_unsigned = Some(bit(bytes.0, at));
    }
}

fn narrow(number: u64, what: &str) -> Result<u32, Problem> {
    u32::try_from(number).map_err(|_| Problem::invalid(format!("{number} is no {what}")))
}

fn collations(
    table: &mut Table,
    mut bytes: Bytes<'_>,
    form: Collations,
    counts: impl Fn(&Column) -> bool,
) -> Result<(), Problem> {
    let what = "the collations of columns";
    let mut of_columns: Vec<&mut Column> = table.columns.iter_mut().filter(|column| counts(column)).collect();
    if form == Collations::Each {
        for column in of_columns {
            column.collation = Some(narrow(bytes.packed(what)?, "collation")?);
        }
        return bytes.end(what);
    }
    let default = narrow(bytes.packed(what)?, "collation")?;
    for column in &mut of_columns {
        column.collation = Some(default);
    }
    while !bytes.is_empty() {
        let at = bytes.packed(what)?;
        let collation = narrow(bytes.packed(what)?, "collation")?;
        let column = usize::try_from(at).ok().and_then(|at| of_columns.get_mut(at));
        let column =
            column.ok_or_else(|| Problem::invalid(format!("{what} name column {at}, which is not there")))?;
        column.collation = Some(collation);
    }
    Ok(())
}

fn names(table: &mut Table, mut bytes: Bytes<'_>) -> Result<(), Problem> {
    for column in &mut table.columns {
        column.name = Some(super::name(bytes.packed_string("the name of a column")?)?);
    }
    bytes.end("the names of columns")
}

fn members(
    table: &mut Table,
    mut bytes: Bytes<'_>,
    counts: impl Fn(ColumnType) -> bool,
) -> Result<(), Problem> {
    let what = "the strings of an ENUM or a SET";
    for column in table.columns.iter_mut().filter(|column| counts(column.kind)) {
        let number = bytes.packed(what)?;
        let most = if matches!(column.kind, ColumnType::Set(_)) { 64 } else { 65535 };
        if number > most {
            return Err(Problem::invalid(format!("{number} strings of an ENUM or a SET")));
        }
        let strings: Result<_, _> = (0..number).map(|_| Ok(bytes.packed_string(what)?.to_vec())).collect();
        column.members = Some(strings?);
    }
    bytes.end(what)
}

fn numbers(
    table: &mut Table,
    mut bytes: Bytes<'_>,
    counts: impl Fn(ColumnType) -> bool,
    set: impl Fn(&mut Column, u32),
) -> Result<(), Problem> {
    let what = "numbers of columns";
    for column in table.columns.iter_mut().filter(|column| counts(column.kind)) {
        set(column, narrow(bytes.packed(what)?, "number of a column")?);
    }
    bytes.end(what)
}

fn key(table: &mut Table, mut bytes: Bytes<'_>, with_prefix: bool) -> Result<(), Problem> {
    let what = "the columns of a primary key";
    let mut key = Vec::new();
    while !bytes.is_empty() {
        let at = bytes.packed(what)?;
        let prefix = if with_prefix { narrow(bytes.packed(what)?, "length")? } else { 0 };
        match usize::try_from(at) {
            Ok(column) if column < table.columns.len() => {
                key.push(KeyColumn { column, prefix_characters: prefix })
            }
            _ => return Err(Problem::invalid(format!("{what} name column {at}, which is not there"))),
        }
    }
    table.primary_key = Some(key);
    Ok(())
}
