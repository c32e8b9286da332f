//! What goes to a server as one command: a statement, or one that it has prepared, with its value.

use super::packet::Fields;
use super::Error;

const COM_QUERY: u8 = 3;
const COM_STMT_EXECUTE: u8 = 0x17;
/// MYSQL_TYPE_BLOB: bytes without a character set.
const BLOB: u8 = 0xfc;

/// A statement with one parameter that a server has prepared. It is of one connection, and ends with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared(u32);

/// One command, whose answer is that of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// A statement.
    Statement(&'a [u8]),
    /// One that was prepared, with bytes in two parts for its parameter, which the server does not parse.
    Prepared(Prepared, [&'a [u8]; 2]),
}

impl<'a, S: AsRef<[u8]> + ?Sized> From<&'a S> for Request<'a> {
    fn from(statement: &'a S) -> Request<'a> {
        Request::Statement(statement.as_ref())
    }
}

impl<'a> Request<'a> {
    /// The command's payload: its head goes to `head`, what is returned follows.
    pub(super) fn payload(self, head: &mut Vec<u8>) -> &'a [u8] {
        head.clear();
        match self {
            Request::Statement(statement) => {
                head.push(COM_QUERY);
                statement
            }
            Request::Prepared(Prepared(number), [first, value]) => {
                head.push(COM_STMT_EXECUTE);
                head.extend_from_slice(&number.to_le_bytes());
                // No cursor; once; nothing is NULL; types follow: of the one value, without flags.
                head.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, BLOB, 0]);
                // A length of eight bytes.
                head.push(0xfe);
                head.extend_from_slice(&((first.len() + value.len()) as u64).to_le_bytes());
                head.extend_from_slice(first);
                value
            }
        }
    }
}

/// What a server says when it has prepared a statement: that, and how many packets tell of parameters and columns.
pub(super) fn prepared(payload: &[u8]) -> Result<(Prepared, usize), Error> {
    let number = payload.get(1..5).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let mut rest = Fields(payload.get(5..).unwrap_or_default());
    let (columns, parameters) = (usize::from(rest.u16()?), usize::from(rest.u16()?));
    match (payload.first(), number, parameters) {
        (Some(0), Some(number), 1) => {
            // Behind either there is the packet that ends it.
            let behind = |packets: usize| packets + usize::from(packets > 0);
            Ok((Prepared(number), behind(parameters) + behind(columns)))
        }
        _ => Err(Error::Protocol("a statement with one parameter was prepared as something else".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_statement_is_told_by_its_number_and_a_value_goes_behind_it() {
        let (statement, packets) = prepared(b"\x00\x05\x01\0\0\x00\x00\x01\x00\0\0\0").unwrap();
        assert_eq!((statement, packets), (Prepared(0x105), 2));
        let mut head = Vec::new();
        assert_eq!(Request::Prepared(statement, [b"a", b"bc"]).payload(&mut head), b"bc");
        assert_eq!(head, b"\x17\x05\x01\0\0\0\x01\0\0\0\0\x01\xfc\0\xfe\x03\0\0\0\0\0\0\0a");
        assert_eq!(Request::from("SELECT 1").payload(&mut head), b"SELECT 1");
        assert_eq!(head, [COM_QUERY]);
    }

    #[test]
    fn what_is_no_answer_to_one_parameter_is_an_error() {
        for answer in
            [&b""[..], b"\0", b"\x00\x05\x01\0\0\x00\x00\x02\x00", b"\x01\x05\x01\0\0\x00\x00\x01\x00"]
        {
            assert!(prepared(answer).is_err(), "{answer:?}");
        }
    }
}
