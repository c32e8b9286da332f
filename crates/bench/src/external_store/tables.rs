//! The tables: made, filled, asked. Ids are given out in the order of the records, so that each table's first record
//! has 1.

use super::corpus::{Corpus, Record};
use crate::server::checked_engine;
use crate::Error;
use std::time::{Duration, Instant};
use teak_client::Connection;

/// A statement is sent when it is longer than this: less than any server's max_allowed_packet.
const STATEMENT_BYTES: usize = 1 << 20;
/// The server's number for a table that exists already.
const EXISTS: u16 = 1050;

/// Name of a table, by its number from 0.
pub fn name(table: u64) -> String {
    format!("blobs_cluster{}", table + 1)
}

/// What a connection has to have set: names of engines and options that are unknown are errors, and a backslash in a
/// string is what it usually is.
pub fn prepare(connection: &mut Connection) -> Result<(), Error> {
    connection.execute("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'")?;
    Ok(())
}

/// How tables are made.
pub struct Definition<'a> {
    pub engine: &'a str,
    /// Written behind the engine.
    pub options: &'a str,
    pub tables: u64,
    pub corpus: Corpus,
}

impl Definition<'_> {
    /// By which a later run knows the tables; it begins as when this was a command of `teak`.
    fn comment(&self) -> String {
        format!("teak-bench external-store: {}, {} tables", self.corpus.line(), self.tables)
    }

    /// Makes the tables; those that are there are an error unless they shall be replaced.
    pub fn create(&self, connection: &mut Connection, replace: bool) -> Result<(), Error> {
        let engine = checked_engine(self.engine)?;
        for table in 0..self.tables {
            let name = name(table);
            if replace {
                connection.execute(format!("DROP TABLE IF EXISTS {name}"))?;
            }
            let statement = format!(
                "CREATE TABLE {name} (blob_id INT UNSIGNED NOT NULL AUTO_INCREMENT, blob_text LONGBLOB, PRIMARY KEY (blob_id)) \
                 ENGINE={engine} {} COMMENT='{}'",
                self.options,
                self.comment()
            );
            connection.execute(statement).map_err(|error| match error.code() {
                Some(EXISTS) => Error::Usage(format!(
                    "the table {name} is there already: --replace makes it anew, --keep reads it as it is, --database takes another database"
                )),
                _ => error.into(),
            })?;
        }
        Ok(())
    }

    /// Whether all tables are there, with this corpus in whole. None is there: false; another state is an error.
    pub fn are_there(&self, connection: &mut Connection) -> Result<bool, Error> {
        let mut sizes = vec![0; self.tables as usize];
        (0..self.corpus.records())
            .for_each(|record| sizes[self.corpus.table(record, self.tables) as usize] += 1);
        let mut found = 0;
        for (table, size) in (0..).zip(sizes) {
            let name = name(table);
            let comment = connection.value(format!(
                "SELECT table_comment FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{name}'"
            ))?;
            let Some(comment) = comment else { continue };
            if comment != self.comment() {
                return Err(Error::Usage(format!(
                    "the table {name} holds something else than is asked for ({comment}): --replace makes it anew"
                )));
            }
            let last = connection.value(format!("SELECT MAX(blob_id) FROM {name}"))?;
            if last.and_then(|text| text.parse().ok()).unwrap_or(0) < size {
                return Err(Error::Usage(format!(
                    "the table {name} was not filled to its end: --replace makes it anew"
                )));
            }
            found += 1;
        }
        match found {
            0 => Ok(false),
            found if found == self.tables => Ok(true),
            found => Err(Error::Usage(format!(
                "{found} of {} tables are there: --replace makes them anew",
                self.tables
            ))),
        }
    }

    /// Drops the tables.
    pub fn drop(&self, connection: &mut Connection) -> Result<(), Error> {
        for table in 0..self.tables {
            connection.execute(format!("DROP TABLE {}", name(table)))?;
        }
        Ok(())
    }

    /// Lets the server count what it counts only when it is told to.
    pub fn analyze(&self, connection: &mut Connection) -> Result<(), Error> {
        // Some engines have nothing to count, and say so in the result.
        (0..self.tables)
            .try_for_each(|table| connection.execute(format!("ANALYZE TABLE {}", name(table))).map(drop))?;
        Ok(())
    }

    /// Data and indexes of all tables in bytes, as the server says. Reads no rows, so that caches stay as they are.
    pub fn bytes(&self, connection: &mut Connection) -> Result<u64, Error> {
        let mut total = 0;
        for table in 0..self.tables {
            let bytes = connection.value(format!(
                "SELECT CAST(data_length + index_length AS UNSIGNED) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = '{}'",
                name(table)
            ))?;
            total += bytes.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(total)
    }
}

/// Fills tables with statements of many rows.
pub struct Filler<'a> {
    connection: &'a mut Connection,
    tables: Vec<Filling>,
    /// Time in statements.
    pub inserting: Duration,
}

struct Filling {
    statement: Vec<u8>,
    last_id: u64,
}

impl Filler<'_> {
    /// Of so many tables.
    pub fn new(connection: &mut Connection, tables: u64) -> Filler<'_> {
        let tables = (0..tables).map(|_| Filling { statement: Vec::new(), last_id: 0 }).collect();
        Filler { connection, tables, inserting: Duration::ZERO }
    }

    /// Adds a record to a table.
    pub fn add(&mut self, table: u64, record: &Record) -> Result<(), Error> {
        let filling = &mut self.tables[table as usize];
        filling.last_id += 1;
        let head = match filling.statement.is_empty() {
            true => format!("INSERT INTO {} (blob_id, blob_text) VALUES ({},", name(table), filling.last_id),
            false => format!(",({},", filling.last_id),
        };
        filling.statement.extend_from_slice(head.as_bytes());
        write_literal(&mut filling.statement, &record.value);
        filling.statement.push(b')');
        if filling.statement.len() >= STATEMENT_BYTES {
            self.send(table)?;
        }
        Ok(())
    }

    /// Sends what is left.
    pub fn finish(&mut self) -> Result<(), Error> {
        (0..self.tables.len() as u64).try_for_each(|table| self.send(table))
    }

    fn send(&mut self, table: u64) -> Result<(), Error> {
        let statement = &mut self.tables[table as usize].statement;
        if !statement.is_empty() {
            let began = Instant::now();
            self.connection.execute(&statement)?;
            self.inserting += began.elapsed();
            statement.clear();
        }
        Ok(())
    }
}

/// The statement that adds one record as a wiki does: the server gives the id.
pub fn insert(table: u64, record: &Record) -> Vec<u8> {
    let mut statement = format!("INSERT INTO {} (blob_text) VALUES (", name(table)).into_bytes();
    write_literal(&mut statement, &record.value);
    statement.push(b')');
    statement
}

/// Bytes as a string of SQL, as clients escape them.
fn write_literal(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"_binary'");
    for byte in bytes {
        match byte {
            0 => out.extend_from_slice(b"\\0"),
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            _ => out.push(*byte),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_hold_every_byte() {
        let mut out = Vec::new();
        let all: Vec<u8> = (0..=255).collect();
        write_literal(&mut out, &all);
        assert_eq!(&out[..10], b"_binary'\\0");
        let body = &out[8..out.len() - 1];
        let (mut read, mut rest) = (Vec::new(), body.iter());
        while let Some(byte) = rest.next() {
            read.push(match byte {
                b'\\' => match rest.next() {
                    Some(b'0') => 0,
                    other => *other.unwrap(),
                },
                b'\'' => panic!("the string ends early"),
                byte => *byte,
            });
        }
        assert_eq!(read, all);
    }
}
