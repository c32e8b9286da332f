//! The one connection, and what is asked over it in time.

use crate::disk;
use crate::part::{Missing, Part};
use crate::{engine, indexes, replication, server_status, server_variables};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use teak_client::{values, Connection, Error, Settings};
use teak_metrics::Family;

/// A server has some thousand status variables, and an index of each of 10,000 tables is still one row.
const MOST_ROWS: usize = 200_000;

/// A connection, once there is one. It stays from round to round.
pub struct Session {
    settings: Settings,
    connection: Option<Connection>,
    data_directory: Option<PathBuf>,
    /// How often one was made.
    pub connections: u64,
}

impl Session {
    /// Not connected yet.
    pub fn new(settings: Settings) -> Session {
        Session { settings, connection: None, data_directory: None, connections: 0 }
    }

    /// Sees to it that there is a connection. What comes by itself over one that nobody has used since is its end.
    pub fn connect(&mut self, until: Instant) -> Result<(), Missing> {
        if let Some(connection) = &mut self.connection {
            if connection.wait(Duration::ZERO).is_ok_and(|has_ended| !has_ended) {
                return Ok(());
            }
        }
        self.connection = None;
        let left = left(until)?;
        let mut connection = self.settings.connect_impatiently(left)?;
        // What takes longer has no reader any more, and what the exporter asks is nobody's slow statement. A server
        // that does not know these variables is asked without them.
        let limit = format!(
            "SET SESSION max_statement_time = {}, log_slow_filter = 'filesort_on_disk'",
            left.as_secs_f64()
        );
        match connection.execute(limit) {
            Err(Error::Server { .. }) | Ok(_) => self.connections += 1,
            Err(error) => return Err(error.into()),
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// The numbers of a part. After an error that is not the server's the connection is gone.
    pub fn collect(&mut self, part: Part, until: Instant) -> Result<Vec<Family>, Missing> {
        if part == Part::Disk {
            return disk::families(self.data_directory.as_deref());
        }
        let Some(connection) = &mut self.connection else {
            return Err(Missing::NotConnected("the connection is lost".into()));
        };
        let mut asking = Asking { connection, until };
        let found = match part {
            Part::ServerStatus => server_status::families(&mut asking),
            Part::ServerVariables => server_variables::families(&mut asking).map(|(families, directory)| {
                self.data_directory = directory;
                families
            }),
            Part::Engine => engine::families(&mut asking),
            Part::Replication => replication::families(&mut asking),
            Part::Indexes => indexes::families(&mut asking),
            Part::Disk => Ok(Vec::new()),
        };
        if !matches!(&found, Ok(_) | Err(Missing::Server(Error::Server { .. }) | Missing::NoEngine)) {
            self.connection = None;
        }
        found
    }
}

fn left(until: Instant) -> Result<Duration, Missing> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Missing::Late);
    }
    Ok(left)
}

/// Statements, each with what is left of the round's time.
pub struct Asking<'s> {
    connection: &'s mut Connection,
    until: Instant,
}

impl Asking<'_> {
    /// Shows each row's values, as text; NULL is None.
    pub fn each(&mut self, statement: &str, see: &mut dyn FnMut(&[Option<String>])) -> Result<(), Missing> {
        self.connection.set_read_timeout(left(self.until)?)?;
        let (until, mut count, mut row) = (self.until, 0, Vec::new());
        let asked = self.connection.query_each(statement, &mut |bytes| {
            count += 1;
            if count > MOST_ROWS || Instant::now() >= until {
                return Err(Error::Protocol("too much".into()));
            }
            row.clear();
            for value in values(bytes) {
                row.push(value?.map(|value| String::from_utf8_lossy(value).into_owned()));
            }
            see(&row);
            Ok(())
        });
        match asked {
            Err(_) if count > MOST_ROWS => Err(Missing::TooMuch(MOST_ROWS)),
            Err(Error::Protocol(_)) if Instant::now() >= until => Err(Missing::Late),
            other => Ok(other?),
        }
    }

    /// Rows with the names of their columns, of an answer that is short.
    pub fn named(&mut self, statement: &str) -> Result<Vec<Vec<(String, String)>>, Missing> {
        self.connection.set_read_timeout(left(self.until)?)?;
        let (names, rows) = self.connection.query_with_names(statement)?;
        let text = |value: Option<Vec<u8>>| {
            String::from_utf8_lossy(value.unwrap_or_default().as_slice()).into_owned()
        };
        let named =
            rows.into_iter().map(|row| names.iter().cloned().zip(row.into_iter().map(text)).collect());
        Ok(named.collect())
    }
}
