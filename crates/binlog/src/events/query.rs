//! Statements: query events, and what they tell of the session.

use crate::bytes::{before_zero, Bytes};
use crate::compressed;
use crate::error::Problem;
use crate::limits::Limits;
use std::borrow::Cow;

/// The fixed part without the length of the status variables, as MySQL 4 had it.
const SHORT_FIXED_BYTES: usize = 11;
const FIXED_BYTES: usize = 13;
/// MySQL names no databases if they are more than this.
const MOST_DATABASES: u8 = 16;

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query<'a> {
    /// The connection that carried it out.
    pub thread_id: u32,
    /// How long that took, in seconds.
    pub seconds: u32,
    /// The error that it ended with; 0 if with none.
    pub error_code: u16,
    /// The session.
    pub session: Session<'a>,
    /// The default database; empty if there was none.
    pub database: &'a [u8],
    /// In the character set of the session's client.
    pub statement: Cow<'a, [u8]>,
    /// Whether the log has it compressed.
    pub was_compressed: bool,
}

/// What a query event tells of its session. What is not there was not in the event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session<'a> {
    /// Bits of `autocommit` and so on: 0x4000 SQL_AUTO_IS_NULL, 0x80000 not autocommit, 0x4000000 no
    /// foreign_key_checks, 0x8000000 no unique_checks; MariaDB: 0x10000 IF EXISTS is implied.
    pub flags: Option<u32>,
    /// `sql_mode`, in the bits of the server's family.
    pub sql_mode: Option<u64>,
    /// Always `std`.
    pub catalog: Option<&'a [u8]>,
    /// `auto_increment_increment` and `auto_increment_offset`.
    pub auto_increment: Option<(u16, u16)>,
    /// The collations of `character_set_client`, `collation_connection` and `collation_server`.
    pub collations: Option<[u16; 3]>,
    /// `time_zone`.
    pub time_zone: Option<&'a [u8]>,
    /// `lc_time_names`, by number.
    pub time_names: Option<u16>,
    /// The collation of the default database, if it is not the server's.
    pub database_collation: Option<u16>,
    /// Tables of an UPDATE that change, a bit for each.
    pub updated_tables: Option<u64>,
    /// How long the event was at the first master, if that is of another format.
    pub original_bytes: Option<u32>,
    /// User and host of the definer of what is made.
    pub invoker: Option<(&'a [u8], &'a [u8])>,
    /// MySQL: databases that change; none if they are too many.
    pub databases: Option<Vec<&'a [u8]>>,
    /// Millionths of a second to be added to the header's time.
    pub microseconds: Option<u32>,
    /// MySQL: `explicit_defaults_for_timestamp`.
    pub explicit_timestamp_defaults: Option<bool>,
    /// Of a DDL statement that is one transaction of the engines.
    pub xid: Option<u64>,
    /// MySQL: `default_collation_for_utf8mb4`.
    pub utf8mb4_collation: Option<u16>,
    /// MySQL: `sql_require_primary_key`.
    pub requires_primary_key: Option<u8>,
    /// MySQL: `default_table_encryption`.
    pub table_encryption: Option<u8>,
    /// MariaDB: flags of an ALTER TABLE in two parts, as those of its GTID, and the number of the part that began it.
    pub alter: Option<(u8, Option<u64>)>,
    /// From the first variable on that is not known: what it is, and so where the next begins, cannot be told.
    pub unknown: &'a [u8],
}

impl<'a> Query<'a> {
    pub(crate) fn read(bytes: Bytes<'a>, fixed_bytes: usize) -> Result<Query<'a>, Problem> {
        let (mut query, rest) = Query::read_head(bytes, fixed_bytes)?;
        query.statement = Cow::Borrowed(rest);
        Ok(query)
    }

    pub(crate) fn read_compressed(
        bytes: Bytes<'a>,
        fixed_bytes: usize,
        limits: &Limits,
    ) -> Result<Query<'a>, Problem> {
        let (mut query, rest) = Query::read_head(bytes, fixed_bytes)?;
        query.statement = Cow::Owned(compressed::of_event(rest, limits)?);
        query.was_compressed = true;
        Ok(query)
    }

    /// All but the statement, and what is left.
    fn read_head(mut bytes: Bytes<'a>, fixed_bytes: usize) -> Result<(Query<'a>, &'a [u8]), Problem> {
        let mut fixed = Bytes(bytes.take(fixed_bytes, "the fixed part of a query event")?);
        let what = "the head of a query event";
        let (thread_id, seconds) = (fixed.u32(what)?, fixed.u32(what)?);
        let (database_bytes, error_code) = (fixed.u8(what)?, fixed.u16(what)?);
        let mut session = Session::default();
        if fixed_bytes >= FIXED_BYTES {
            let length = fixed.u16(what)?;
            session =
                Session::read(Bytes(bytes.take(length.into(), "the status variables of a query event")?))?;
        } else if fixed_bytes != SHORT_FIXED_BYTES {
            return Err(Problem::invalid(format!("a query event with a fixed part of {fixed_bytes} bytes")));
        }
        let database = bytes.take(database_bytes.into(), "the database of a query event")?;
        if bytes.u8("the end of the database's name")? != 0 {
            return Err(Problem::invalid("the database's name in a query event has no end"));
        }
        let statement = Cow::Borrowed(&[][..]);
        let query =
            Query { thread_id, seconds, error_code, session, database, statement, was_compressed: false };
        Ok((query, bytes.rest()))
    }
}

impl<'a> Session<'a> {
    /// Of the status variables: each a number and what that number says.
    fn read(mut bytes: Bytes<'a>) -> Result<Session<'a>, Problem> {
        let mut session = Session::default();
        while !bytes.is_empty() {
            let before = bytes.0;
            let code = bytes.u8("a status variable")?;
            if !session.read_variable(code, &mut bytes)? && !session.read_newer(code, &mut bytes)? {
                session.unknown = before;
                break;
            }
        }
        Ok(session)
    }

    /// Those of both families; whether it is one.
    fn read_variable(&mut self, code: u8, bytes: &mut Bytes<'a>) -> Result<bool, Problem> {
        let what = "a status variable";
        match code {
            0 => self.flags = Some(bytes.u32(what)?),
            1 => self.sql_mode = Some(bytes.u64(what)?),
            2 => {
                // Of MySQL 5.0.0 to 5.0.3, with a zero behind it.
                self.catalog = Some(bytes.short_string(what)?);
                bytes.u8(what)?;
            }
            3 => self.auto_increment = Some((bytes.u16(what)?, bytes.u16(what)?)),
            4 => self.collations = Some([bytes.u16(what)?, bytes.u16(what)?, bytes.u16(what)?]),
            5 => self.time_zone = Some(bytes.short_string(what)?),
            6 => self.catalog = Some(bytes.short_string(what)?),
            7 => self.time_names = Some(bytes.u16(what)?),
            8 => self.database_collation = Some(bytes.u16(what)?),
            9 => self.updated_tables = Some(bytes.u64(what)?),
            10 => self.original_bytes = Some(bytes.u32(what)?),
            11 => self.invoker = Some((bytes.short_string(what)?, bytes.short_string(what)?)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Those of MySQL from 5.6 on, and of MariaDB; whether it is one.
    fn read_newer(&mut self, code: u8, bytes: &mut Bytes<'a>) -> Result<bool, Problem> {
        let what = "a status variable";
        match code {
            12 => {
                let number = bytes.u8(what)?;
                let named = if number > MOST_DATABASES { 0 } else { number };
                let names: Result<_, _> = (0..named).map(|_| bytes.terminated("a database's name")).collect();
                self.databases = Some(names?);
            }
            13 | 128 => self.microseconds = Some(bytes.little(3, what)? as u32),
            16 => self.explicit_timestamp_defaults = Some(bytes.u8(what)? != 0),
            17 | 129 => self.xid = Some(bytes.u64(what)?),
            18 => self.utf8mb4_collation = Some(bytes.u16(what)?),
            19 => self.requires_primary_key = Some(bytes.u8(what)?),
            20 => self.table_encryption = Some(bytes.u8(what)?),
            130 => {
                let flags = bytes.u8(what)?;
                // The second part of an ALTER TABLE names the first.
                let begun = if flags & 0x0c != 0 { Some(bytes.u64(what)?) } else { None };
                self.alter = Some((flags, begun));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// LOAD DATA of a file whose blocks came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteLoadQuery<'a> {
    /// The statement, and the rest.
    pub query: Query<'a>,
    /// The number of the file.
    pub file_id: u32,
    /// Where in the statement the file's name begins and ends.
    pub name_at: (u32, u32),
    /// What happens to duplicates: 0 error, 1 IGNORE, 2 REPLACE.
    pub duplicates: u8,
}

impl<'a> ExecuteLoadQuery<'a> {
    /// Its fixed part has four numbers behind those of a query event.
    pub(crate) fn read(bytes: Bytes<'a>, fixed_bytes: usize) -> Result<ExecuteLoadQuery<'a>, Problem> {
        let what = "the fixed part of an execute_load_query event";
        let mut fixed = Bytes(bytes.0.get(..fixed_bytes).unwrap_or_default());
        fixed.take(FIXED_BYTES, what)?;
        let (file_id, from, to) = (fixed.u32(what)?, fixed.u32(what)?, fixed.u32(what)?);
        let duplicates = fixed.u8(what)?;
        Ok(ExecuteLoadQuery {
            query: Query::read(bytes, fixed_bytes)?,
            file_id,
            name_at: (from, to),
            duplicates,
        })
    }
}

/// The statement of the rows that follow, as MySQL has it: behind a length of one byte that does not count.
pub(crate) fn rows_query(mut bytes: Bytes<'_>) -> Result<&[u8], Problem> {
    bytes.u8("the length of a statement")?;
    Ok(bytes.rest())
}

/// A name that may have zeros behind it.
pub(crate) fn file_name(bytes: &[u8]) -> Result<&[u8], Problem> {
    match before_zero(bytes) {
        [] => Err(Problem::invalid("the name of a log is empty")),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(status: &[u8]) -> Vec<u8> {
        let mut bytes = vec![7, 0, 0, 0, 1, 0, 0, 0, 2, 0x26, 0x04, status.len() as u8, 0];
        bytes.extend_from_slice(status);
        bytes.extend_from_slice(b"db\0SELECT 1");
        bytes
    }

    #[test]
    fn status_variables_of_both_families_are_read() {
        let status = [
            &[0, 0, 0, 0, 4][..],
            &[1, 1, 2, 3, 4, 5, 6, 7, 8],
            b"\x06\x03std\x03\x02\0\x01\0\x04\x21\0\x2d\0\x08\0\x05\x03UTC\x07\x01\0\x08\x21\0",
            b"\x09\x01\0\0\0\0\0\0\0\x0b\x02me\x01h\x0c\x02a\0bc\0\x80\x01\x02\x03\x10\x01\x11\x08\0\0\0\0\0\0\0",
            b"\x12\xff\0\x13\x01\x14\x00\x82\x08\x05\0\0\0\0\0\0\0",
        ]
        .concat();
        let bytes = event(&status);
        let query = Query::read(Bytes(&bytes), 13).unwrap();
        assert_eq!(
            (query.database, &*query.statement, query.error_code),
            (&b"db"[..], &b"SELECT 1"[..], 1062)
        );
        let session = query.session;
        assert_eq!((session.flags, session.sql_mode), (Some(0x400_0000), Some(0x0807_0605_0403_0201)));
        assert_eq!((session.auto_increment, session.collations), (Some((2, 1)), Some([33, 45, 8])));
        assert_eq!((session.time_zone, session.catalog), (Some(&b"UTC"[..]), Some(&b"std"[..])));
        assert_eq!(
            (session.invoker, session.databases),
            (Some((&b"me"[..], &b"h"[..])), Some(vec![&b"a"[..], b"bc"]))
        );
        assert_eq!((session.microseconds, session.xid), (Some(0x03_0201), Some(8)));
        assert_eq!((session.utf8mb4_collation, session.table_encryption), (Some(255), Some(0)));
        assert_eq!((session.alter, session.unknown), (Some((8, Some(5))), &b""[..]));
    }

    #[test]
    fn an_unknown_variable_ends_what_is_known_and_no_length_passes_its_event() {
        let bytes = event(&[7, 1, 0, 99, 1, 2]);
        let session = Query::read(Bytes(&bytes), 13).unwrap().session;
        assert_eq!((session.time_names, session.unknown), (Some(1), &[99, 1, 2][..]));
        for status in [&[0, 1][..], &[5, 9, b'x'], &[12, 2, b'a', 0, b'b'], &[130, 4, 1]] {
            assert!(Query::read(Bytes(&event(status)), 13).is_err(), "{status:?}");
        }
        let whole = event(&[]);
        for end in 0..16 {
            assert!(Query::read(Bytes(&whole[..end]), 13).is_err(), "{end}");
        }
        assert!(Query::read(Bytes(&whole), 12).is_err());
    }

    #[test]
    fn load_data_has_its_numbers_before_the_status() {
        let mut bytes = event(&[]);
        bytes.splice(13..13, [4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2]);
        let load = ExecuteLoadQuery::read(Bytes(&bytes), 26).unwrap();
        assert_eq!((load.file_id, load.name_at, load.duplicates), (4, (1, 3), 2));
        assert_eq!(&*load.query.statement, b"SELECT 1");
        assert!(ExecuteLoadQuery::read(Bytes(&bytes), 13).is_err());
    }
}
