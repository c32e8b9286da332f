//! Rows and values in JSON. Each form gives back the bits of the value: docs/binlog.md has them.

use super::json::{bytes, hex, list, string, Object};
use teak_binlog::{character_set, floats, to_utf8, Column, Image, Integer, JsonChange, Rows, Value};

/// The rows of an event: an error of a value is the event's.
pub fn rows(rows: &Rows<'_>) -> Result<String, teak_binlog::Error> {
    let mut out = Vec::new();
    for row in rows {
        let row = row?;
        let mut object = Object::new();
        for (name, shown) in [("old", &row.old), ("new", &row.new)] {
            if let Some(shown) = shown {
                object.raw(name, &image(rows, shown)?);
            }
        }
        out.push(object.finish());
    }
    Ok(list(out))
}

/// The columns that an image has, by their names, or as `@1` and so on.
pub fn image(rows: &Rows<'_>, image: &Image<'_>) -> Result<String, teak_binlog::Error> {
    let mut object = Object::new();
    for (at, (column, shown)) in rows.table.columns.iter().zip(&image.0).enumerate() {
        let Some(shown) = shown else { continue };
        let json = value(column, shown).map_err(|problem| rows.error(at, problem))?;
        match &column.name {
            Some(name) => object.raw(name, &json),
            None => object.raw(&format!("@{}", at + 1), &json),
        };
    }
    Ok(object.finish())
}

fn value(column: &Column, value: &Value<'_>) -> Result<String, teak_binlog::Problem> {
    Ok(match value {
        Value::Null => "null".into(),
        Value::Integer(number) => integer(*number),
        Value::Float(number) if number.is_finite() => format!("{number:?}"),
        Value::Double(number) if number.is_finite() => format!("{number:?}"),
        Value::Float(number) => hex(&number.to_be_bytes()),
        Value::Double(number) => hex(&number.to_be_bytes()),
        Value::Decimal(number) => string(&number.to_string()),
        Value::Bit(bits) => bits.to_string(),
        Value::Year(year) => year.to_string(),
        Value::Date(date) => string(&date.to_string()),
        Value::Time(time) => string(&time.to_string()),
        Value::DateTime(moment) => string(&moment.to_string()),
        Value::Timestamp(moment) => string(&moment.to_string()),
        Value::Enum(member) => match &column.members {
            Some(members) => match usize::from(*member).checked_sub(1).and_then(|at| members.get(at)) {
                Some(text) => of_column(column, text),
                None => string(""),
            },
            None => member.to_string(),
        },
        Value::Set(bits) => match &column.members {
            Some(members) => {
                let set = members.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
                list(set.map(|(_, text)| of_column(column, text)))
            }
            None => bits.to_string(),
        },
        Value::Bytes(text) => of_column(column, text),
        Value::Json(document) => string(&document.text()?),
        Value::JsonChanges(changes) => {
            let changes: Result<Vec<String>, _> = changes.iter().map(change).collect();
            let mut object = Object::new();
            object.raw("changes", &list(changes?));
            object.finish()
        }
        Value::Geometry(bytes) => hex(bytes),
        Value::Vector(vector) => match floats(vector).all(f32::is_finite) {
            true => list(floats(vector).map(|number| format!("{number:?}"))),
            false => hex(vector),
        },
    })
}

/// Both numbers if the log does not tell which it is.
fn integer(number: Integer) -> String {
    match number.number() {
        Some(number) => number.to_string(),
        None => {
            let mut object = Object::new();
            object.plain("signed", number.signed()).plain("unsigned", number.unsigned());
            object.finish()
        }
    }
}

/// Text of a column: as a string if its character set is known here and has these bytes, or if the log tells none and
/// they are UTF-8.
pub fn of_column(column: &Column, text: &[u8]) -> String {
    match column.collation.map(character_set) {
        None => bytes(text),
        Some(Some("binary")) => hex(text),
        Some(Some(set)) => to_utf8(set, text).map_or_else(|| hex(text), |text| string(&text)),
        Some(None) => hex(text),
    }
}

fn change(change: &JsonChange<'_>) -> Result<String, teak_binlog::Problem> {
    let mut object = Object::new();
    object.text("operation", change.operation.name()).text("path", change.path);
    if let Some(value) = &change.value {
        object.text("value", value.text()?);
    }
    Ok(object.finish())
}
