//! The long-running snapshot: a session that begins a transaction, reads a little, as a logical backup does first, and
//! then stays open.

use crate::Error;
use std::time::Instant;
use teak_client::{Connection, Rows, Settings};

/// What it reads, at the begin and again at the end.
const SHORT_SELECT: &str = "SELECT COUNT(*), SUM(CRC32(data)), SUM(version) FROM nodetable WHERE id <= 1000";

/// An open snapshot.
pub struct Snapshot {
    connection: Connection,
    opened: Instant,
    first: Rows,
}

impl Snapshot {
    /// Begins the transaction.
    pub fn open(settings: &Settings) -> Result<Snapshot, Error> {
        let mut connection = settings.connect()?;
        connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let first = connection.query(SHORT_SELECT)?;
        Ok(Snapshot { connection, opened: Instant::now(), first })
    }

    /// How many seconds it is open.
    pub fn seconds(&self) -> f64 {
        self.opened.elapsed().as_secs_f64()
    }

    /// Ends it. What it read first it must still read.
    pub fn close(mut self) -> Result<(), Error> {
        let last = self.connection.query(SHORT_SELECT)?;
        if last != self.first {
            return Err(Error::Changed { first: format!("{:?}", self.first), last: format!("{last:?}") });
        }
        self.connection.execute("COMMIT")?;
        Ok(())
    }
}
