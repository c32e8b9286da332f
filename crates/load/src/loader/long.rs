//! Statements that are longer than the server takes: INSERTs are cut between rows, and their parts are in one
//! transaction.

use super::super::error::{LoadError, Place};
use super::super::task::Unit;
use super::Loader;
use std::borrow::Cow;
use teak_sql::cut::{cut, Part, Uncut};
use teak_sql::splitter::Statement;
use teak_sql::statement::{classify, Kind};

impl Loader<'_> {
    pub(super) fn is_long(&self, statement: Statement<'_>) -> bool {
        statement.text.len() > self.server.longest_statement()
    }

    pub(super) fn too_long(&self, what: &'static str, statement: Statement<'_>, size: usize) -> LoadError {
        LoadError::TooLong { what, size, limit: self.server.max_allowed_packet, place: self.place(statement) }
    }

    /// The statement as it can be sent: itself, or its parts.
    pub(super) fn parts_of<'t>(&self, statement: Statement<'t>) -> Result<Vec<Cow<'t, [u8]>>, LoadError> {
        if !self.is_long(statement) {
            return Ok(vec![Cow::Borrowed(statement.text)]);
        }
        Ok(self.cut(statement)?.into_iter().map(|part| Cow::Owned(part.text)).collect())
    }

    /// The same, for a worker.
    pub(super) fn units_of(&self, statement: Statement<'_>, rows: u64) -> Result<Vec<Unit>, LoadError> {
        let Statement { text, line, offset } = statement;
        if !self.is_long(statement) {
            return Ok(vec![Unit::whole(text, line, offset, rows)]);
        }
        let parts = self.cut(statement)?;
        Ok(parts.into_iter().map(|part| Unit::part(line_at(statement, part.from), offset, part)).collect())
    }

    fn cut(&self, statement: Statement<'_>) -> Result<Vec<Part>, LoadError> {
        let whole =
            || self.too_long("a statement that is not a list of rows", statement, statement.text.len());
        let Kind::Insert(insert) = classify(statement.text, self.dialect, false) else { return Err(whole()) };
        cut(statement.text, insert.rows_at, self.dialect, self.server.longest_statement()).map_err(|uncut| {
            match uncut {
                Uncut::NoRows => whole(),
                Uncut::LongRow(from, size) => LoadError::TooLong {
                    what: "an INSERT of one row",
                    size,
                    limit: self.server.max_allowed_packet,
                    place: Place::new(&self.origin.name, line_at(statement, from), &statement.text[from..]),
                },
            }
        })
    }
}

/// The line of a place in a statement.
fn line_at(statement: Statement<'_>, place: usize) -> u64 {
    statement.line + memchr::memchr_iter(b'\n', &statement.text[..place]).count() as u64
}
