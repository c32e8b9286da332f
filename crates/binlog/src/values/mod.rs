//! Values of rows, bit for bit.
//!
//! | file | is about |
//! |---|---|
//! | `decimal.rs` | DECIMAL |
//! | `temporal.rs` | dates and times |
//! | `json.rs` | MySQL's binary JSON |
//! | `json_text.rs` | the text of JSON |
//! | `json_diff.rs`, `json_change.rs` | changed parts of JSON documents; documents with these |

mod decimal;
mod json;
mod json_change;
mod json_diff;
mod json_text;
mod temporal;

pub use decimal::Decimal;
pub use json::Json;
pub use json_change::changed;
pub use json_diff::{JsonChange, JsonOperation};
pub use temporal::{Date, DateTime, Time, Timestamp};

use crate::bytes::Bytes;
use crate::compressed;
use crate::error::Problem;
use crate::limits::Limits;
use crate::table::{Column, ColumnType, BINARY};
use std::borrow::Cow;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// TINYINT to BIGINT.
    Integer(Integer),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// BIT: its bits as a number.
    Bit(u64),
    /// YEAR: 0, or 1901 to 2155.
    Year(u16),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME.
    DateTime(DateTime),
    /// TIMESTAMP.
    Timestamp(Timestamp),
    /// ENUM: 0 is the empty string of a wrong value, 1 the first member.
    Enum(u16),
    /// SET: the lowest bit is the first member.
    Set(u64),
    /// CHAR, VARCHAR, TEXT in the column's character set, BINARY, VARBINARY, BLOB, and MariaDB's types of plugins and
    /// VECTOR. CHAR has no spaces at its end. BINARY has no zeros there, unless the log has collations.
    Bytes(Cow<'a, [u8]>),
    /// MySQL's JSON.
    Json(Json<'a>),
    /// How a document of MySQL's JSON changed.
    JsonChanges(Vec<JsonChange<'a>>),
    /// GEOMETRY: the reference system in 4 bytes, and well-known binary.
    Geometry(&'a [u8]),
    /// MySQL's VECTOR: numbers of 4 bytes, see [`floats`].
    Vector(&'a [u8]),
}

/// The bits of an integer. Whether they have a sign the log does not always tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    bits: u64,
    bytes: u8,
    /// Whether the column is UNSIGNED, if that is known.
    pub is_unsigned: Option<bool>,
}

impl Integer {
    /// Taken as one with a sign.
    pub fn signed(self) -> i64 {
        let unused = 64 - 8 * u32::from(self.bytes.clamp(1, 8));
        (self.bits << unused) as i64 >> unused
    }

    /// Taken as one without.
    pub fn unsigned(self) -> u64 {
        self.bits
    }

    /// What it is, in any case: none if the log does not tell whether there is a sign, and that makes a difference.
    pub fn number(self) -> Option<i128> {
        let (signed, unsigned) = (i128::from(self.signed()), i128::from(self.unsigned()));
        match self.is_unsigned {
            Some(true) => Some(unsigned),
            Some(false) => Some(signed),
            None => (signed == unsigned).then_some(signed),
        }
    }
}

/// The numbers of a VECTOR.
pub fn floats(vector: &[u8]) -> impl Iterator<Item = f32> + '_ {
    vector
        .chunks_exact(4)
        .filter_map(|bytes| bytes.first_chunk::<4>())
        .map(|bytes| f32::from_le_bytes(*bytes))
}

/// Of a JSON column in an image of a row that has only what changed: whether a value is that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    Changes,
}

/// Reads a value that is not NULL.
pub(crate) fn read<'a>(
    bytes: &mut Bytes<'a>,
    column: &Column,
    extent: Extent,
    limits: &Limits,
) -> Result<Value<'a>, Problem> {
    let what = "a value";
    Ok(match column.kind {
        ColumnType::Integer(length) => {
            let bits = bytes.little(length.into(), what)?;
            Value::Integer(Integer { bits, bytes: length, is_unsigned: column.is_unsigned })
        }
        ColumnType::Float => Value::Float(f32::from_le_bytes(bytes.array(what)?)),
        ColumnType::Double => Value::Double(f64::from_le_bytes(bytes.array(what)?)),
        ColumnType::Decimal { precision, scale } => Value::Decimal(Decimal::read(bytes, precision, scale)?),
        ColumnType::Bit(bits) => bit(bytes.big(usize::from(bits).div_ceil(8), what)?, bits)?,
        ColumnType::Year => Value::Year(match bytes.u8(what)? {
            0 => 0,
            year => 1900 + u16::from(year),
        }),
        ColumnType::Date => Value::Date(Date::read(bytes)?),
        ColumnType::OldTime => Value::Time(Time::read_old(bytes)?),
        ColumnType::OldDateTime => Value::DateTime(DateTime::read_old(bytes)?),
        ColumnType::OldTimestamp => Value::Timestamp(Timestamp::read_old(bytes)?),
        ColumnType::Time(digits) => Value::Time(Time::read(bytes, digits)?),
        ColumnType::DateTime(digits) => Value::DateTime(DateTime::read(bytes, digits)?),
        ColumnType::Timestamp(digits) => Value::Timestamp(Timestamp::read(bytes, digits)?),
        ColumnType::Char(length) => char(bytes, column, length)?,
        ColumnType::Varchar { bytes: most, compressed } => varchar(bytes, most, compressed, limits)?,
        ColumnType::Blob { length_bytes, compressed } => {
            let value = long(bytes, length_bytes)?;
            Value::Bytes(if compressed { compressed::of_column(value, limits)? } else { value.into() })
        }
        ColumnType::Enum(length) => member(bytes.little(length.into(), what)?, column)?,
        ColumnType::Set(length) => set(bytes.little(length.into(), what)?, column)?,
        ColumnType::Json { length_bytes } => {
            let value = long(bytes, length_bytes)?;
            match extent {
                Extent::Whole => Value::Json(Json(value)),
                Extent::Changes => Value::JsonChanges(json_diff::read(Bytes(value))?),
            }
        }
        ColumnType::Geometry { length_bytes } => Value::Geometry(long(bytes, length_bytes)?),
        ColumnType::Vector { length_bytes } => match long(bytes, length_bytes)? {
            vector if vector.len() % 4 == 0 => Value::Vector(vector),
            vector => return Err(Problem::invalid(format!("a VECTOR of {} bytes", vector.len()))),
        },
        ColumnType::Null | ColumnType::OldDecimal | ColumnType::TypedArray => {
            return Err(Problem::invalid(format!(
                "values of the type {} cannot be decoded",
                column.sql_type()
            )));
        }
    })
}

fn long<'a>(bytes: &mut Bytes<'a>, length_bytes: u8) -> Result<&'a [u8], Problem> {
    let length = bytes.little(length_bytes.into(), "the length of a value")?;
    bytes.take_long(length, "a value")
}

fn short<'a>(bytes: &mut Bytes<'a>, most: u16) -> Result<&'a [u8], Problem> {
    long(bytes, if most > 255 { 2 } else { 1 })
}

fn char<'a>(bytes: &mut Bytes<'a>, column: &Column, most: u16) -> Result<Value<'a>, Problem> {
    let value = short(bytes, most)?;
    if value.len() > most.into() {
        return Err(Problem::invalid(format!("{} bytes in a column of {most}", value.len())));
    }
    if column.collation != Some(BINARY) {
        return Ok(Value::Bytes(value.into()));
    }
    // The zeros at the end of BINARY are left out of the log.
    let mut padded = value.to_vec();
    padded.resize(most.into(), 0);
    Ok(Value::Bytes(padded.into()))
}

fn varchar<'a>(
    bytes: &mut Bytes<'a>,
    most: u16,
    compressed: bool,
    limits: &Limits,
) -> Result<Value<'a>, Problem> {
    let mut value = Cow::Borrowed(short(bytes, most)?);
    if let (true, Cow::Borrowed(packed)) = (compressed, &value) {
        value = compressed::of_column(packed, limits)?;
    }
    if value.len() > most.into() {
        return Err(Problem::invalid(format!("{} bytes in a column of {most}", value.len())));
    }
    Ok(Value::Bytes(value))
}

fn bit(number: u64, bits: u8) -> Result<Value<'static>, Problem> {
    match number.checked_shr(bits.into()).unwrap_or(0) {
        0 => Ok(Value::Bit(number)),
        _ => Err(Problem::invalid(format!("{number:#x} in a column of {bits} bits"))),
    }
}

fn member(number: u64, column: &Column) -> Result<Value<'static>, Problem> {
    match &column.members {
        Some(members) if number > members.len() as u64 => {
            Err(Problem::invalid(format!("member {number} of an ENUM of {}", members.len())))
        }
        _ => Ok(Value::Enum(number as u16)),
    }
}

fn set(bits: u64, column: &Column) -> Result<Value<'static>, Problem> {
    match &column.members {
        Some(members) if bits.checked_shr(members.len() as u32).unwrap_or(0) != 0 => {
            Err(Problem::invalid(format!("bits {bits:#x} of a SET of {}", members.len())))
        }
        _ => Ok(Value::Set(bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnType) -> Column {
        Column::new(kind, true)
    }

    fn value<'a>(bytes: &'a [u8], column: &Column) -> Result<Value<'a>, Problem> {
        let mut left = Bytes(bytes);
        let value = read(&mut left, column, Extent::Whole, &Limits::default())?;
        left.end("a value").map(|()| value)
    }

    #[test]
    fn integers_tell_whether_their_sign_matters() {
        for (length, bytes, signed, unsigned) in [
            (1, &[0xff][..], -1, 0xff),
            (3, &[0, 0, 0x80], -0x80_0000, 0x80_0000),
            (8, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], -2, u64::MAX - 1),
            (4, &[1, 0, 0, 0x7f], 0x7f00_0001, 0x7f00_0001),
        ] {
            let kind = column(ColumnType::Integer(length));
            let Ok(Value::Integer(number)) = value(bytes, &kind) else { panic!("{bytes:?}") };
            assert_eq!((number.signed(), number.unsigned()), (signed, unsigned));
            assert_eq!(number.number().is_some(), signed >= 0);
            let known = Integer { is_unsigned: Some(true), ..number };
            assert_eq!(known.number(), Some(unsigned.into()));
        }
    }

    #[test]
    fn strings_have_the_length_that_their_column_has() {
        let bytes = |text: &'static [u8]| Ok(Value::Bytes(Cow::Borrowed(text)));
        let mut char = column(ColumnType::Char(3));
        assert_eq!(value(b"\x02ab", &char), bytes(b"ab"));
        char.collation = Some(BINARY);
        assert_eq!(value(b"\x02ab", &char), bytes(b"ab\0"));
        assert!(value(b"\x04abcd", &char).is_err());
        assert_eq!(value(b"\x02\0ab", &column(ColumnType::Char(1000))), bytes(b"ab"));
        let varchar = |most, compressed| column(ColumnType::Varchar { bytes: most, compressed });
        assert_eq!(value(b"\x02ab", &varchar(255, false)), bytes(b"ab"));
        assert_eq!(value(b"\x02\0ab", &varchar(256, false)), bytes(b"ab"));
        assert_eq!(value(b"\x03\0ab", &varchar(255, true)), bytes(b"ab"));
        assert!(value(b"\x02ab", &varchar(1, false)).is_err());
        let blob = column(ColumnType::Blob { length_bytes: 3, compressed: false });
        assert_eq!(value(b"\x02\0\0ab", &blob), bytes(b"ab"));
        assert!(value(b"\x03\0\0ab", &blob).is_err());
    }

    #[test]
    fn bits_members_and_sets_are_those_that_there_are() {
        assert_eq!(value(&[0x07, 0xff], &column(ColumnType::Bit(11))), Ok(Value::Bit(0x7ff)));
        assert!(value(&[0x08, 0xff], &column(ColumnType::Bit(11))).is_err());
        assert_eq!(value(&[0xff; 8], &column(ColumnType::Bit(64))), Ok(Value::Bit(u64::MAX)));
        let mut choice = column(ColumnType::Enum(2));
        assert_eq!(value(&[1, 1], &choice), Ok(Value::Enum(257)));
        choice.members = Some(vec![vec![]; 2]);
        assert_eq!(value(&[2, 0], &choice), Ok(Value::Enum(2)));
        assert!(value(&[3, 0], &choice).is_err());
        choice.kind = ColumnType::Set(1);
        assert_eq!(value(&[3], &choice), Ok(Value::Set(3)));
        assert!(value(&[4], &choice).is_err());
    }

    #[test]
    fn vectors_are_whole_numbers_of_floats() {
        let vector = column(ColumnType::Vector { length_bytes: 4 });
        let bytes = [&[8, 0, 0, 0][..], &1.5f32.to_le_bytes(), &(-2f32).to_le_bytes()].concat();
        let Ok(Value::Vector(numbers)) = value(&bytes, &vector) else { panic!() };
        assert_eq!(floats(numbers).collect::<Vec<_>>(), [1.5, -2.0]);
        assert!(value(&[3, 0, 0, 0, 1, 2, 3], &vector).is_err());
        assert!(value(&[], &column(ColumnType::OldDecimal)).is_err());
        assert_eq!(value(&[0], &column(ColumnType::Year)), Ok(Value::Year(0)));
        assert_eq!(value(&[255], &column(ColumnType::Year)), Ok(Value::Year(2155)));
    }
}
