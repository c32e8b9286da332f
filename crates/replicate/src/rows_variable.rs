//! Long statements with events go to the target through a variable of the session, so that its parser does not read
//! them, byte by byte: a value that a prepared statement gets is only copied.
//!
//! ```text
//! BINLOG 'digits'   ->   SET @teak_rows = ?  (prepared, with the digits)   BINLOG @teak_rows, @teak_none
//! ```
//!
//! Both are sent ahead, one behind the other. BINLOG takes two variables, puts them together, and makes them NULL
//! before it does anything else; so nothing is left of what was carried out, and NULL is as good as an empty text
//! later. What fails between the two is an error, after which the transaction is taken back, whatever the second one
//! was given.

use crate::events::BINLOG;
use teak_client::{Connection, Error, Prepared, Request};

/// Shorter ones are parsed for less than another statement costs.
const LONG: usize = 8 << 10;
const SET: &str = "SET @teak_rows = ?";
/// A space to the server's decoder, as it is in Latin-1, and none of ASCII: where one is found the server looks no
/// further whether a value is ASCII only.
const SPACE: &[u8] = b"\xa0";
const APPLY: &[u8] = b"BINLOG @teak_rows, @teak_none";

/// The variable of a session, if that has one.
#[derive(Debug, Clone, Copy)]
pub struct RowsVariable {
    set: Option<Prepared>,
}

impl RowsVariable {
    /// That of a session that has begun.
    pub fn of(connection: &mut Connection) -> Result<RowsVariable, Error> {
        connection.execute("SET @teak_none = ''")?;
        match connection.prepare(SET) {
            Ok(set) => Ok(RowsVariable { set: Some(set) }),
            // It has as many prepared statements as it may have (max_prepared_stmt_count).
            Err(Error::Server { .. }) => Ok(RowsVariable { set: None }),
            Err(error) => Err(error),
        }
    }

    /// What carries statements out.
    pub fn requests<'s>(self, statements: &'s [Vec<u8>]) -> impl Iterator<Item = Request<'s>> {
        statements.iter().flat_map(move |statement| {
            let digits = digits(statement).filter(|digits| digits.len() >= LONG);
            match self.set.zip(digits) {
                Some((set, digits)) => {
                    [Some(Request::Prepared(set, [SPACE, digits])), Some(Request::Statement(APPLY))]
                }
                None => [Some(Request::from(statement)), None],
            }
            .into_iter()
            .flatten()
        })
    }
}

/// Those of a statement with events.
fn digits(statement: &[u8]) -> Option<&[u8]> {
    statement.strip_prefix(BINLOG)?.strip_suffix(b"'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_or_has_no_events_is_a_statement_as_it_was() {
        let short = b"BINLOG 'QUJD'".to_vec();
        let long = [BINLOG, &[b'A'; LONG], b"'"].concat();
        let other = vec![b'x'; 2 * LONG];
        let statements = [short, long, other];
        let as_they_are: Vec<Request<'_>> = statements.iter().map(Request::from).collect();
        let without = RowsVariable { set: None };
        assert_eq!(without.requests(&statements).collect::<Vec<_>>(), as_they_are);
    }
}
