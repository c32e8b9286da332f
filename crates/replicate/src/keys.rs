//! A row as an error names it: by the values of its key, and which columns that has.

use crate::failure::Failure;
use teak_binlog::{Image, Row, Table, Value};
use teak_client::Connection;
use teak_sql::quoting::literal;

/// Longer values are cut.
const LONGEST: usize = 100;

/// The columns of a table's primary key, or of its first key without duplicates and NULLs: their places from 0, and
/// their names.
pub fn columns(connection: &mut Connection, table: &Table) -> Result<Vec<(usize, String)>, Failure> {
    let (schema, name) = (literal(table.database.as_bytes()), literal(table.name.as_bytes()));
    let query = format!(
        "SELECT s.INDEX_NAME, c.ORDINAL_POSITION, COLUMN_NAME FROM information_schema.STATISTICS s JOIN information_schema.COLUMNS c
            USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME)
        WHERE s.TABLE_SCHEMA = {schema} AND s.TABLE_NAME = {name} AND s.NON_UNIQUE = 0 AND NOT s.NULLABLE = 'YES'
        ORDER BY s.INDEX_NAME <> 'PRIMARY', s.INDEX_NAME, s.SEQ_IN_INDEX"
    );
    let rows = connection.query(query);
    let rows =
        rows.map_err(|error| Failure::of_target(&error, || format!("keys of {}", table.quoted_name())))?;
    let first = rows.first().and_then(|row| row.first().cloned());
    let of_first = rows.iter().filter(|row| row.first() == first.as_ref());
    let column = |row: &Vec<Option<Vec<u8>>>| {
        let text = |at: usize| Some(String::from_utf8_lossy(row.get(at)?.as_ref()?).into_owned());
        Some((text(1)?.parse::<usize>().ok()?.checked_sub(1)?, text(2)?))
    };
    Ok(of_first.filter_map(column).collect())
}

/// The row by the values of these columns, places and names: before the change, if there is something before it.
pub fn shown(row: &Row<'_>, columns: &[(usize, String)]) -> String {
    let Some(Image(values)) = row.old.as_ref().or(row.new.as_ref()) else { return "a row".into() };
    let named = columns.iter().map(|(at, name)| {
        let value = values.get(*at).and_then(Option::as_ref);
        format!("{name} = {}", value.map_or("?".into(), self::value))
    });
    match columns.is_empty() {
        true => "a row of a table without a key".into(),
        false => format!("key {}", named.collect::<Vec<_>>().join(", ")),
    }
}

fn value(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".into(),
        // Where the log does not tell the sign.
        Value::Integer(number) => {
            number.number().map_or_else(|| number.signed().to_string(), |number| number.to_string())
        }
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Bit(number) => number.to_string(),
        Value::Year(number) => number.to_string(),
        Value::Date(date) => date.to_string(),
        Value::Time(time) => time.to_string(),
        Value::DateTime(moment) => moment.to_string(),
        Value::Timestamp(moment) => moment.to_string(),
        Value::Enum(member) => format!("member {member}"),
        Value::Set(bits) => format!("bits {bits}"),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => {
                format!("'{}'", text.chars().take(LONGEST).collect::<String>())
            }
            _ => format!("x'{}'", teak_sql::quoting::hex(&bytes[..bytes.len().min(LONGEST)])),
        },
        Value::Json(_) | Value::JsonChanges(_) | Value::Geometry(_) | Value::Vector(_) => {
            "(a document)".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_by_its_key() {
        let row = Row {
            old: Some(Image(vec![
                Some(Value::Bit(7)),
                None,
                Some(Value::Bytes(b"it's".into())),
                Some(Value::Bytes(b"\xff\0".into())),
            ])),
            new: Some(Image(vec![Some(Value::Null), None, None, None])),
        };
        let columns = |places: &[usize]| places.iter().map(|&at| (at, format!("c{at}"))).collect::<Vec<_>>();
        assert_eq!(shown(&row, &columns(&[2, 0])), "key c2 = 'it's', c0 = 7");
        assert_eq!(shown(&row, &columns(&[3, 1, 9])), "key c3 = x'ff00', c1 = ?, c9 = ?");
        assert_eq!(shown(&row, &[]), "a row of a table without a key");
        assert_eq!(shown(&Row { old: None, ..row }, &columns(&[0])), "key c0 = NULL");
    }
}
