//! The operations as SQL, with the statements and transactions that LinkBench's own MySQL store has: single statements
//! with autocommit on one connection, transactions of several statements on another, in the text protocol.

use super::graph::NODE_TYPE;
use super::workload::{LinkKey, List, Request, LIST_LIMIT};
use crate::Error as BenchError;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use teak_client::{Connection, Error, Rows, Settings};

/// Errors that end a transaction for no fault of its own: lock wait too long, deadlock, row changed since the snapshot.
const CONFLICTS: [u16; 3] = [1205, 1213, 1020];

/// What a requester has to know of an answer: how many links a list had, and the time of the last of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub rows: usize,
    pub last_time: u64,
}

/// The connections of one requester.
pub struct Connections {
    single: Connection,
    several: Connection,
}

impl Connections {
    /// Connects. `isolation` is a level as SQL has it; without it, it is the server's default.
    pub fn connect(settings: &Settings, isolation: Option<&str>) -> Result<Connections, BenchError> {
        let connect = || -> Result<Connection, Error> {
            let mut connection = settings.connect()?;
            if let Some(isolation) = isolation {
                connection.execute(format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"))?;
            }
            Ok(connection)
        };
        let (single, mut several) = (connect()?, connect()?);
        several.execute("SET SESSION autocommit = 0")?;
        Ok(Connections { single, several })
    }

    /// Does what the request asks for, once. After an error the transaction is still open: see
    /// [`Connections::roll_back`].
    pub fn perform(&mut self, request: &Request) -> Result<Answer, Error> {
        match request {
            Request::AddLink(key, data) | Request::UpdateLink(key, data) => self.add_link(key, data)?,
            Request::DeleteLink(key) => self.delete_link(key)?,
            Request::CountLinks { id1, link_type } => {
                self.single.query(format!(
                    "SELECT count FROM counttable WHERE id = {id1} AND link_type = {link_type}"
                ))?;
            }
            Request::MultigetLinks { id1, link_type, id2s } => self.get_links(*id1, *link_type, id2s)?,
            Request::GetLinksList(list) => return self.get_list(list),
            Request::AddNode(data) => {
                self.single.execute(format!(
                    "INSERT INTO nodetable (type, version, time, data) VALUES ({NODE_TYPE}, 1, {}, {})",
                    seconds(),
                    literal(data)
                ))?;
            }
            Request::UpdateNode(id, data) => {
                self.single.execute(format!(
                    "UPDATE nodetable SET version = 2, time = {}, data = {} WHERE id = {id} AND type = {NODE_TYPE}",
                    seconds(),
                    literal(data)
                ))?;
            }
            Request::DeleteNode(id) => {
                self.single
                    .execute(format!("DELETE FROM nodetable WHERE id = {id} AND type = {NODE_TYPE}"))?;
            }
            Request::GetNode(id) => {
                self.single
                    .query(format!("SELECT id, type, version, time, data FROM nodetable WHERE id = {id}"))?;
            }
        }
        Ok(Answer::default())
    }

    /// Makes the session usable after an error of the server.
    pub fn roll_back(&mut self) -> Result<(), Error> {
        self.several.execute("ROLLBACK")?;
        Ok(())
    }

    /// Adds the link, or gives it other contents if it exists; the count changes if it was not there or hidden.
    fn add_link(&mut self, key: &LinkKey, data: &[u8]) -> Result<(), Error> {
        let LinkKey { id1, id2, link_type } = key;
        let (now, data) = (milliseconds(), literal(data));
        // Only the visibility changes if the link exists, so that the number of changed rows tells what was there.
        let inserted = self.several.execute(format!(
            "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) \
             VALUES ({id1}, {id2}, {link_type}, 1, {data}, {now}, 0) \
             ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)"
        ))?;
        let (is_new, was_visible) = (inserted.affected_rows == 1, inserted.affected_rows == 0);
        if !was_visible {
            let commit = if is_new { "; COMMIT" } else { "" };
            self.several.execute(format!(
                "INSERT INTO counttable (id, link_type, count, time, version) \
                 VALUES ({id1}, {link_type}, 1, {now}, 0) \
                 ON DUPLICATE KEY UPDATE count = count + 1, version = version + 1, time = {now}{commit}"
            ))?;
        }
        if !is_new {
            self.several.execute(format!(
                "UPDATE linktable SET visibility = 1, data = {data}, time = {now}, version = 0 \
                 WHERE id1 = {id1} AND id2 = {id2} AND link_type = {link_type}; COMMIT"
            ))?;
        }
        Ok(())
    }

    /// Hides the link, if it is there and visible.
    fn delete_link(&mut self, key: &LinkKey) -> Result<(), Error> {
        let LinkKey { id1, id2, link_type } = key;
        let this = format!("id1 = {id1} AND id2 = {id2} AND link_type = {link_type}");
        let found =
            self.several.query(format!("SELECT visibility FROM linktable WHERE {this} FOR UPDATE"))?;
        if number(&found, 0, 0) == Some(1) {
            let now = milliseconds();
            self.several.execute(format!("UPDATE linktable SET visibility = 0 WHERE {this}"))?;
            self.several.execute(format!(
                "INSERT INTO counttable (id, link_type, count, time, version) \
                 VALUES ({id1}, {link_type}, 0, {now}, 0) \
                 ON DUPLICATE KEY UPDATE count = IF (count = 0, 0, count - 1), time = {now}, version = version + 1"
            ))?;
        }
        self.several.execute("COMMIT")?;
        Ok(())
    }

    fn get_links(&mut self, id1: u64, link_type: u64, id2s: &[u64]) -> Result<(), Error> {
        let mut statement = format!(
            "SELECT id1, id2, link_type, visibility, data, time, version FROM linktable \
             WHERE id1 = {id1} AND link_type = {link_type} AND id2 IN ("
        );
        for (index, id2) in id2s.iter().enumerate() {
            let _ = write!(statement, "{}{id2}", if index > 0 { "," } else { "" });
        }
        statement.push(')');
        self.single.query(statement)?;
        Ok(())
    }

    fn get_list(&mut self, list: &List) -> Result<Answer, Error> {
        let List { id1, link_type, older_than } = list;
        let (newest, skip) = older_than.map_or((i64::MAX as u64, 0), |time| (time, 1));
        let rows = self.single.query(format!(
            "SELECT id1, id2, link_type, visibility, data, time, version FROM linktable FORCE INDEX (id1_type) \
             WHERE id1 = {id1} AND link_type = {link_type} AND time >= 0 AND time <= {newest} AND visibility = 1 \
             ORDER BY time DESC LIMIT {skip},{LIST_LIMIT}"
        ))?;
        let last_time = rows.len().checked_sub(1).and_then(|last| number(&rows, last, 5)).unwrap_or(0);
        Ok(Answer { rows: rows.len(), last_time })
    }
}

/// Whether the transaction only has to be done again.
pub fn is_conflict(error: &Error) -> bool {
    error.code().is_some_and(|code| CONFLICTS.contains(&code))
}

/// A value of a result as a number.
pub fn number(rows: &Rows, row: usize, column: usize) -> Option<u64> {
    let value = rows.get(row)?.get(column)?.as_ref()?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Bytes as a literal of SQL, which no character set changes.
pub fn literal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2 + 3);
    out.push_str("x'");
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
        }
    }
    out.push('\'');
    out
}

fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn seconds() -> u64 {
    milliseconds() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_hold_every_byte() {
        let all: Vec<u8> = (0..=255).collect();
        let text = literal(&all);
        assert!(text.starts_with("x'000102") && text.ends_with("fdfeff'") && text.len() == 515);
        assert_eq!(literal(b""), "x''");
    }
}
