//! Statements whose rows are numbers and names.

use crate::ReportError;
use teak_client::{values, Connection, Error};

/// No such table of information_schema; not asked for by this server's engine.
const UNKNOWN_TABLE: u16 = 1109;
const UNKNOWN_COLUMN: u16 = 1054;

/// A row as texts; NULL is None.
pub struct Row(Vec<Option<String>>);

impl Row {
    /// A name or a text; empty if it is NULL.
    pub fn text(&self, at: usize) -> &str {
        self.0.get(at).and_then(Option::as_deref).unwrap_or_default()
    }

    /// What is no number is 0: the server's types are known.
    pub fn number(&self, at: usize) -> u64 {
        self.text(at).parse().unwrap_or(0)
    }

    /// A share; None if it is not known.
    pub fn share(&self, at: usize) -> Option<f64> {
        self.text(at).parse().ok()
    }
}

/// Shows all rows of an answer, one after the other.
pub fn each(
    connection: &mut Connection,
    statement: &str,
    see: &mut dyn FnMut(&Row),
) -> Result<(), ReportError> {
    let asked = connection.query_each(statement, &mut |bytes| {
        let mut row = Row(Vec::new());
        for value in values(bytes) {
            row.0.push(value?.map(|value| String::from_utf8_lossy(value).into_owned()));
        }
        see(&row);
        Ok(())
    });
    match asked {
        Err(Error::Server { code: UNKNOWN_TABLE | UNKNOWN_COLUMN, .. }) => Err(ReportError::NoEngine),
        other => Ok(other?),
    }
}
