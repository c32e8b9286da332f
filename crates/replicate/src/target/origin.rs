//! Where transactions come from, as the target's own log has it if a source has a `gtid_domain_id`: the domain, and the
//! servers by their numbers in the source's log. So those who follow the target see its sources apart, and a server
//! knows what comes back to it. Positions alone are in the target's log once a minute only: who follows the target at
//! the source would tell of his own for each, and so on for ever.

use super::Target;
use crate::failure::Failure;
use std::time::{Duration, Instant};
use teak_client::{Connection, Error};
use teak_console::Status;

/// How old a position may be where the target's log is followed, if nothing else comes.
const UNLOGGED: Duration = Duration::from_secs(60);

/// Why nothing can be told apart.
pub const ONE_SERVER_ID: &str =
    "source and target have one server_id, so that with gtid_domain_id all would have come back to where it is from";

/// What the target's log is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// The target's own number.
    own: u32,
    /// The one that its log has of what comes.
    told: u32,
    /// When its log was last told of a position.
    logged: Instant,
}

/// Whether the target's log is told of what is done.
fn log_position(connection: &mut Connection, tells: bool) -> Result<(), Error> {
    connection.execute(format!("SET SESSION sql_log_bin = {}", u8::from(tells))).map(|_| ())
}

/// A server's number.
pub fn server_id(connection: &mut Connection) -> Result<u32, Error> {
    let number = connection.value("SELECT @@GLOBAL.server_id")?.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::Protocol("a server_id that is no number".into()))
}

/// What is applied over a connection is of this domain, and, if it is known, of this server.
pub fn set_origin(connection: &mut Connection, domain: u32, server_id: Option<u32>) -> Result<(), Error> {
    let server = server_id.map_or(String::new(), |number| format!(", server_id = {number}"));
    connection.execute(format!("SET SESSION gtid_domain_id = {domain}{server}")).map(|_| ())
}

impl Origin {
    /// Of a connection that was just made.
    pub fn begin(connection: &mut Connection, domain: u32) -> Result<Origin, Error> {
        set_origin(connection, domain, None)?;
        let own = server_id(connection)?;
        // It needs a privilege, whatever it was.
        log_position(connection, true)?;
        Ok(Origin { own, told: own, logged: Instant::now() })
    }
}

impl Target<'_> {
    /// Whether a transaction of this server has come back to where it is from.
    pub fn is_own(&self, server_id: u32) -> bool {
        self.origin.is_some_and(|origin| origin.own == server_id)
    }

    /// Before anything of a source is done.
    pub fn begin_from(&mut self, source: &mut Connection) -> Result<(), Failure> {
        if self.origin.is_none() {
            return Ok(());
        }
        let number = server_id(source).map_err(|error| Failure::of_source(&error))?;
        match self.is_own(number) {
            true => Err(Failure::Final(ONE_SERVER_ID.into(), Status::Usage)),
            false => self.comes_from(number),
        }
    }

    /// Whether what was added last is of another server, as its log has it.
    pub fn comes_from_another(&self, server_id: u32) -> bool {
        self.origin.is_some_and(|origin| origin.told != server_id)
    }

    /// Before a position is committed: whether the target's log is told of it. If it is not, [`Target::has_position`]
    /// is to be called behind it.
    pub(super) fn logs_position(&mut self) -> Result<bool, Failure> {
        let is_alone = !self.is_open;
        let Some(origin) = &mut self.origin else { return Ok(true) };
        if !is_alone || origin.logged.elapsed() >= UNLOGGED {
            origin.logged = Instant::now();
            return Ok(true);
        }
        log_position(&mut self.connection, false).map_err(|error| of_log(&error)).map(|()| false)
    }

    /// It is committed.
    pub(super) fn has_position(&mut self, is_logged: bool) -> Result<(), Failure> {
        match is_logged {
            true => Ok(()),
            false => log_position(&mut self.connection, true).map_err(|error| of_log(&error)),
        }
    }

    /// What is added from now on is of this server; nothing is open.
    pub fn comes_from(&mut self, server_id: u32) -> Result<(), Failure> {
        let Some(origin) = &mut self.origin else { return Ok(()) };
        let set = self.connection.execute(format!("SET SESSION server_id = {server_id}"));
        set.map_err(|error| Failure::of_target(&error, || "server_id".into()))?;
        origin.told = server_id;
        Ok(())
    }
}

fn of_log(error: &Error) -> Failure {
    Failure::of_target(error, || "sql_log_bin".into())
}
