//! What comes before a statement and belongs to it.

use crate::bytes::Bytes;
use crate::error::Problem;

/// A number that the next statement uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intvar {
    /// 1: LAST_INSERT_ID(), 2: the first AUTO_INCREMENT number.
    pub kind: u8,
    /// The number.
    pub value: u64,
}

impl Intvar {
    pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<Intvar, Problem> {
        let what = "an intvar event";
        match bytes.u8(what)? {
            kind @ 1..=2 => Ok(Intvar { kind, value: bytes.u64(what)? }),
            kind => Err(Problem::invalid(format!("{what} of kind {kind}"))),
        }
    }
}

/// The state of RAND() for the next statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rand {
    /// Its halves.
    pub seeds: (u64, u64),
}

impl Rand {
    pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<Rand, Problem> {
        let what = "a rand event";
        Ok(Rand { seeds: (bytes.u64(what)?, bytes.u64(what)?) })
    }
}

/// A variable that the next statement uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserVar<'a> {
    /// Its name, without the @.
    pub name: &'a [u8],
    /// None: NULL.
    pub value: Option<UserValue<'a>>,
}

/// What a variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserValue<'a> {
    /// 0 string, 1 double, 2 integer, 3 row, 4 decimal.
    pub kind: u8,
    /// Of a string.
    pub collation: u32,
    /// As the kind has them.
    pub bytes: &'a [u8],
    /// 1: an integer without sign.
    pub flags: u8,
    /// MariaDB: the name of its type, if it is one of a plugin and so on; behind the flags.
    pub attributes: &'a [u8],
}

impl<'a> UserVar<'a> {
    pub(crate) fn read(mut bytes: Bytes<'a>) -> Result<UserVar<'a>, Problem> {
        let what = "a user_var event";
        let length = bytes.u32(what)?;
        let name = bytes.take_long(length.into(), "the name of a variable")?;
        if bytes.u8(what)? != 0 {
            return Ok(UserVar { name, value: None });
        }
        let (kind, collation, length) = (bytes.u8(what)?, bytes.u32(what)?, bytes.u32(what)?);
        let value = bytes.take_long(length.into(), "the value of a variable")?;
        if kind > 4 {
            return Err(Problem::invalid(format!("a variable of kind {kind}")));
        }
        // Servers before MySQL 5.5 had no flags.
        let flags = if bytes.is_empty() { 0 } else { bytes.u8(what)? };
        let attributes = bytes.rest();
        Ok(UserVar { name, value: Some(UserValue { kind, collation, bytes: value, flags, attributes }) })
    }
}

/// A block of a file that LOAD DATA reads; of the events that have no data, the number of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileBlock<'a> {
    /// The file.
    pub file_id: u32,
    /// The block.
    pub data: &'a [u8],
}

impl<'a> FileBlock<'a> {
    pub(crate) fn read(mut bytes: Bytes<'a>, fixed_bytes: usize) -> Result<FileBlock<'a>, Problem> {
        let what = "the number of a file";
        let file_id = Bytes(bytes.take(fixed_bytes, what)?).u32(what)?;
        Ok(FileBlock { file_id, data: bytes.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_seeds_are_read() {
        assert_eq!(Intvar::read(Bytes(&[2, 23, 0, 0, 0, 0, 0, 0, 0])), Ok(Intvar { kind: 2, value: 23 }));
        assert!(Intvar::read(Bytes(&[3, 23, 0, 0, 0, 0, 0, 0, 0])).is_err());
        assert!(Intvar::read(Bytes(&[2, 23])).is_err() && Rand::read(Bytes(&[0; 15])).is_err());
        let block = FileBlock { file_id: 1, data: b"ab" };
        assert_eq!(FileBlock::read(Bytes(&[1, 0, 0, 0, b'a', b'b']), 4), Ok(block));
    }

    #[test]
    fn variables_are_null_or_have_a_value_with_flags_or_without() {
        assert_eq!(UserVar::read(Bytes(b"\x01\0\0\0a\x01")), Ok(UserVar { name: b"a", value: None }));
        let bytes = b"\x01\0\0\0a\0\x02\x21\0\0\0\x01\0\0\0\x05\x01";
        let value = UserVar::read(Bytes(bytes)).unwrap().value.unwrap();
        assert_eq!((value.kind, value.collation, value.bytes, value.flags), (2, 33, &[5][..], 1));
        assert_eq!(UserVar::read(Bytes(&bytes[..16])).unwrap().value.unwrap().flags, 0);
        for end in 0..16 {
            assert!(UserVar::read(Bytes(&bytes[..end])).is_err(), "{end}");
        }
    }
}
