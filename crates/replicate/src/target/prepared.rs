//! What XA transactions did that are prepared at the source: statements, kept in the target until these are completed.

use super::Target;
use crate::events;
use crate::failure::Failure;
use teak_sql::quoting::{hex, literal};

impl Target<'_> {
    /// Adds to the transaction that a statement is kept for the end of an XA transaction.
    pub fn keep(&mut self, xid: &str, part: u32, statement: &[u8]) -> Result<(), Failure> {
        let (source, xid) = (&self.source, literal(xid.as_bytes()));
        let insert = format!(
            "INSERT INTO teak_replicate.xa (source, xid, part, statement) VALUES ('{source}', {xid}, {part}, "
        );
        let mut insert = insert.into_bytes();
        // Base64 is as long here as it was; others are short.
        match statement.strip_prefix(events::BINLOG).and_then(|rest| rest.strip_suffix(b"'")) {
            Some(digits) => {
                insert.extend_from_slice(b"'BINLOG ''");
                insert.extend_from_slice(digits);
                insert.extend_from_slice(b"''')");
            }
            None => insert.extend_from_slice(format!("x'{}')", hex(statement)).as_bytes()),
        }
        self.add(insert)
    }

    /// How many statements of an XA transaction are kept, with the empty first one.
    pub fn kept(&mut self, xid: &str) -> Result<u32, Failure> {
        self.send()?;
        let of_xid = self.of_xid(xid);
        let number = self.connection.value(format!("SELECT COUNT(*) FROM teak_replicate.xa WHERE {of_xid}"));
        let number = number.map_err(|error| Failure::of_target(&error, || "teak_replicate.xa".into()))?;
        Ok(number.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// One of them.
    pub fn kept_statement(&mut self, xid: &str, part: u32) -> Result<Vec<u8>, Failure> {
        let of_xid = self.of_xid(xid);
        let query = format!("SELECT statement FROM teak_replicate.xa WHERE {of_xid} AND part = {part}");
        let rows = self.connection.query(query);
        let rows = rows.map_err(|error| Failure::of_target(&error, || "teak_replicate.xa".into()))?;
        Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
    }

    /// Adds to the transaction that they are not needed any more.
    pub fn give_up(&mut self, xid: &str) -> Result<(), Failure> {
        let of_xid = self.of_xid(xid);
        self.add(format!("DELETE FROM teak_replicate.xa WHERE {of_xid}").into_bytes())
    }

    fn of_xid(&self, xid: &str) -> String {
        format!("source = '{}' AND xid = {}", self.source, literal(xid.as_bytes()))
    }
}
