//! Types of columns, as the fixed part of a table map has them: a number for each, and what that needs besides.

use crate::bytes::Bytes;
use crate::error::Problem;
use std::fmt;

/// How a column's values are written in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// DECIMAL of MySQL 4: what its values look like is not in the log.
    OldDecimal,
    /// Always NULL.
    Null,
    /// TINYINT to BIGINT, of so many bytes.
    Integer(u8),
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// DECIMAL.
    Decimal {
        /// Digits.
        precision: u8,
        /// Those behind the point.
        scale: u8,
    },
    /// BIT, of so many bits.
    Bit(u8),
    /// YEAR.
    Year,
    /// DATE.
    Date,
    /// TIME of servers before MySQL 5.6 and MariaDB 10.0, or with `mysql56_temporal_format=OFF`.
    OldTime,
    /// DATETIME, likewise.
    OldDateTime,
    /// TIMESTAMP, likewise.
    OldTimestamp,
    /// TIME with so many digits of a fraction.
    Time(u8),
    /// DATETIME, likewise.
    DateTime(u8),
    /// TIMESTAMP, likewise.
    Timestamp(u8),
    /// CHAR, BINARY, and types of MariaDB's plugins (INET4, INET6, UUID), of so many bytes at most.
    Char(u16),
    /// VARCHAR, VARBINARY, and MariaDB's VECTOR.
    Varchar {
        /// At most.
        bytes: u16,
        /// Whether it is COMPRESSED.
        compressed: bool,
    },
    /// TEXT and BLOB.
    Blob {
        /// Of lengths: 1 is TINYTEXT, 4 LONGTEXT.
        length_bytes: u8,
        /// Whether it is COMPRESSED.
        compressed: bool,
    },
    /// ENUM, of so many bytes.
    Enum(u8),
    /// SET, of so many bytes.
    Set(u8),
    /// MySQL's JSON; MariaDB's is a LONGTEXT.
    Json {
        /// Of lengths.
        length_bytes: u8,
    },
    /// GEOMETRY and what is one.
    Geometry {
        /// Of lengths.
        length_bytes: u8,
    },
    /// MySQL's VECTOR.
    Vector {
        /// Of lengths.
        length_bytes: u8,
    },
    /// MySQL's index on the elements of a JSON array: a hidden column, of which rows have no values.
    TypedArray,
}

impl ColumnType {
    /// Whether the table map's bits of signedness have one for it: also for YEAR, which has no sign.
    pub fn has_sign(self) -> bool {
        use ColumnType::{Decimal, Double, Float, Integer, Year};
        matches!(self, Integer(_) | Float | Double | Decimal { .. } | Year)
    }

    /// Whether the table map has a collation for it that is not one of ENUM and SET. MariaDB has one for GEOMETRY.
    pub fn has_collation(self) -> bool {
        use ColumnType::{Blob, Char, Varchar, Vector};
        matches!(self, Char(_) | Varchar { .. } | Blob { .. } | Vector { .. })
    }

    /// By its number in the table map; what it needs besides is taken from `metadata`.
    pub(crate) fn read(code: u8, metadata: &mut Bytes<'_>) -> Result<ColumnType, Problem> {
        use ColumnType as Type;
        let what = "what is told of a column's type";
        let kind = match code {
            0 => Type::OldDecimal,
            1 => Type::Integer(1),
            2 => Type::Integer(2),
            3 => Type::Integer(4),
            4 => sized(metadata.u8(what)?, 4, Type::Float)?,
            5 => sized(metadata.u8(what)?, 8, Type::Double)?,
            6 => Type::Null,
            7 => Type::OldTimestamp,
            8 => Type::Integer(8),
            9 => Type::Integer(3),
            10 | 14 => Type::Date,
            11 => Type::OldTime,
            12 => Type::OldDateTime,
            13 => Type::Year,
            15 | 141 => Type::Varchar { bytes: metadata.u16(what)?, compressed: code == 141 },
            16 => bit(metadata.array(what)?)?,
            17 => Type::Timestamp(within(metadata.u8(what)?, 0..=6)?),
            18 => Type::DateTime(within(metadata.u8(what)?, 0..=6)?),
            19 => Type::Time(within(metadata.u8(what)?, 0..=6)?),
            20 => typed_array(metadata)?,
            140 | 249..=252 => {
                Type::Blob { length_bytes: within(metadata.u8(what)?, 1..=4)?, compressed: code == 140 }
            }
            242 => Type::Vector { length_bytes: within(metadata.u8(what)?, 1..=4)? },
            245 => Type::Json { length_bytes: within(metadata.u8(what)?, 1..=4)? },
            246 => decimal(metadata.array(what)?)?,
            247 | 248 | 253 | 254 => string(metadata.array(what)?)?,
            255 => Type::Geometry { length_bytes: within(metadata.u8(what)?, 1..=4)? },
            other => return Err(Problem::invalid(format!("a column of the unknown type {other}"))),
        };
        Ok(kind)
    }
}

fn within(number: u8, range: std::ops::RangeInclusive<u8>) -> Result<u8, Problem> {
    if range.contains(&number) {
        return Ok(number);
    }
    Err(Problem::invalid(format!("{number} is told of a column's type, and cannot be")))
}

fn sized(told: u8, bytes: u8, kind: ColumnType) -> Result<ColumnType, Problem> {
    within(told, bytes..=bytes).map(|_| kind)
}

fn bit([bits, bytes]: [u8; 2]) -> Result<ColumnType, Problem> {
    let bits = within(bits, 0..=7)? + 8 * within(bytes, 0..=8)?;
    Ok(ColumnType::Bit(within(bits, 1..=64)?))
}

fn decimal([precision, scale]: [u8; 2]) -> Result<ColumnType, Problem> {
    within(precision, 1..=65)?;
    Ok(ColumnType::Decimal { precision, scale: within(scale, 0..=precision.min(38))? })
}

/// ENUM and SET come as strings, and lengths of strings above 255 have two of their bits in the type's number.
fn string([real, length]: [u8; 2]) -> Result<ColumnType, Problem> {
    match real {
        247 => Ok(ColumnType::Enum(within(length, 1..=2)?)),
        248 => Ok(ColumnType::Set(within(length, 1..=8)?)),
        _ if matches!(real | 0x30, 0xfd | 0xfe) => {
            Ok(ColumnType::Char(u16::from(real & 0x30 ^ 0x30) << 4 | u16::from(length)))
        }
        other => Err(Problem::invalid(format!("a string column of the unknown type {other}"))),
    }
}

/// The type of its elements, and what that needs.
fn typed_array(metadata: &mut Bytes<'_>) -> Result<ColumnType, Problem> {
    let what = "what is told of an array's elements";
    let element = metadata.u8(what)?;
    // Of a string the length has three bytes.
    let more = match element {
        15 => 3,
        _ => 0,
    };
    metadata.take(more, what)?;
    Ok(ColumnType::TypedArray)
}

/// As in SQL, as far as the log has it; `collation` 63 makes bytes of strings, elsewhere it is not looked at.
pub(crate) struct SqlType {
    pub kind: ColumnType,
    pub is_binary: bool,
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = |f: &mut fmt::Formatter<'_>, name: &str, digits: u8| match digits {
            0 => write!(f, "{name}"),
            _ => write!(f, "{name}({digits})"),
        };
        let of_two = |text: &'static str, bytes: &'static str| if self.is_binary { bytes } else { text };
        match self.kind {
            ColumnType::OldDecimal => write!(f, "decimal of MySQL 4"),
            ColumnType::Null => write!(f, "null"),
            ColumnType::Integer(1) => write!(f, "tinyint"),
            ColumnType::Integer(2) => write!(f, "smallint"),
            ColumnType::Integer(3) => write!(f, "mediumint"),
            ColumnType::Integer(4) => write!(f, "int"),
            ColumnType::Integer(_) => write!(f, "bigint"),
            ColumnType::Float => write!(f, "float"),
            ColumnType::Double => write!(f, "double"),
            ColumnType::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            ColumnType::Bit(bits) => write!(f, "bit({bits})"),
            ColumnType::Year => write!(f, "year"),
            ColumnType::Date => write!(f, "date"),
            ColumnType::OldTime => write!(f, "time"),
            ColumnType::OldDateTime => write!(f, "datetime"),
            ColumnType::OldTimestamp => write!(f, "timestamp"),
            ColumnType::Time(digits) => fraction(f, "time", digits),
            ColumnType::DateTime(digits) => fraction(f, "datetime", digits),
            ColumnType::Timestamp(digits) => fraction(f, "timestamp", digits),
            ColumnType::Char(_) => write!(f, "{}", of_two("char", "binary")),
            ColumnType::Varchar { .. } => write!(f, "{}", of_two("varchar", "varbinary")),
            ColumnType::Blob { length_bytes, .. } => {
                let size = ["tiny", "", "medium", "long"].get(usize::from(length_bytes).wrapping_sub(1));
                write!(f, "{}{}", size.unwrap_or(&""), of_two("text", "blob"))
            }
            ColumnType::Enum(_) => write!(f, "enum"),
            ColumnType::Set(_) => write!(f, "set"),
            ColumnType::Json { .. } => write!(f, "json"),
            ColumnType::Geometry { .. } => write!(f, "geometry"),
            ColumnType::Vector { .. } => write!(f, "vector"),
            ColumnType::TypedArray => write!(f, "array"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_take_what_they_need() {
        for (code, metadata, text) in [
            (3, &[][..], "int"),
            (4, &[4], "float"),
            (16, &[3, 1], "bit(11)"),
            (16, &[0, 8], "bit(64)"),
            (18, &[6], "datetime(6)"),
            (19, &[0], "time"),
            (246, &[65, 30], "decimal(65,30)"),
            (252, &[3], "mediumtext"),
            (254, &[247, 2], "enum"),
            (248, &[248, 8], "set"),
        ] {
            let mut bytes = Bytes(metadata);
            let kind = ColumnType::read(code, &mut bytes).unwrap();
            assert_eq!(SqlType { kind, is_binary: false }.to_string(), text);
            assert!(bytes.is_empty());
        }
        // CHAR(255) of utf8mb4, and of latin1.
        assert_eq!(ColumnType::read(254, &mut Bytes(&[0xce, 0xfc])), Ok(ColumnType::Char(1020)));
        assert_eq!(ColumnType::read(254, &mut Bytes(&[0xfe, 0xff])), Ok(ColumnType::Char(255)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (code, metadata) in [
            (4, &[8][..]),
            (16, &[0, 0]),
            (16, &[1, 8]),
            (16, &[8, 1]),
            (17, &[7]),
            (246, &[66, 0]),
            (246, &[5, 6]),
            (252, &[0]),
            (252, &[5]),
            (254, &[247, 3]),
            (254, &[1, 1]),
            (21, &[]),
            (243, &[]),
            (15, &[1]),
        ] {
            assert!(ColumnType::read(code, &mut Bytes(metadata)).is_err(), "{code} {metadata:?}");
        }
    }
}
