//! Servers that say nothing: whether they work, or nobody is there any more.
//!
//! A connection whose other end has gone without a word (its power, a network, something between that forgets
//! connections) looks like one whose server is at a long statement. TCP tells it after a quarter of an hour if
//! something was not received, and never if all was. So the server is asked over another connection what the silent one
//! does. One that waits for a statement has lost what was sent, or the answer; and one that sends, or waits for data,
//! while twice the time has passed and nothing has arrived, has lost that.

use super::connection::Connection;
use super::settings::Settings;
use super::Error;
use std::io;
use std::time::Duration;

/// Who looks waits for a third of the patience, and for this at least: of a machine that is gone nothing comes.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);

/// What servers say of a connection over which they are sending, or waiting for, something: MariaDB, MySQL.
const ON_THE_WIRE: [&str; 4] =
    ["Writing to net", "Reading from net", "Sending to client", "Receiving from client"];

/// Sees to it that a connection that is silent for so long is an error, unless the server works for it.
pub(super) fn watch(
    connection: &mut Connection,
    settings: &Settings,
    patience: Duration,
) -> Result<(), Error> {
    // What stands between may have given it a number of its own.
    let id = connection.value("SELECT CONNECTION_ID()")?.unwrap_or_default();
    let settings = settings.clone();
    let mut was_on_the_wire = false;
    connection.on_silence(Box::new(move |times| {
        let is_stuck = times > 1 && was_on_the_wire;
        was_on_the_wire = must_be_at_work(&settings, &id, patience, is_stuck)? == Work::OnTheWire;
        Ok(())
    }));
    Ok(())
}

/// What a server does for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Something that takes long.
    Statement,
    /// It sends, or waits for data.
    OnTheWire,
    /// It waits for a statement.
    None,
}

impl Work {
    fn of(command: &str, state: &str, seconds: u64, patience: Duration) -> Work {
        match command {
            _ if ON_THE_WIRE.contains(&state) => Work::OnTheWire,
            // What is on its way comes in less.
            "Sleep" if Duration::from_secs(seconds) >= patience / 2 => Work::None,
            _ => Work::Statement,
        }
    }
}

/// Fails unless the server is at a statement of the connection of this number. `is_stuck`: it was on the wire as long
/// ago as it has patience, and nothing has come of it.
fn must_be_at_work(settings: &Settings, id: &str, patience: Duration, is_stuck: bool) -> Result<Work, Error> {
    let silent = |why: &dyn std::fmt::Display| Error::Io {
        what: format!("the server says nothing for {} s", patience.as_secs()),
        error: io::Error::new(io::ErrorKind::TimedOut, why.to_string()),
    };
    let query = format!("SELECT COMMAND, STATE, TIME FROM information_schema.PROCESSLIST WHERE ID = {id}");
    let asked = settings.connect_impatiently((patience / 3).max(LEAST_PATIENCE)).and_then(|mut other| {
        let rows = other.query(query)?;
        Ok((other, rows))
    });
    let (mut other, rows) = match asked {
        Err(error @ Error::Io { .. }) => return Err(silent(&error)),
        // It is there, and does not say more.
        Err(_) => return Ok(Work::Statement),
        Ok(asked) => asked,
    };
    let Some(row) = rows.into_iter().next() else { return Err(silent(&"it has ended the connection")) };
    let mut texts =
        row.into_iter().map(|text| String::from_utf8_lossy(&text.unwrap_or_default()).into_owned());
    let mut next = || texts.next().unwrap_or_default();
    let (command, state, seconds) = (next(), next(), next().parse().unwrap_or(0));
    let why = match Work::of(&command, &state, seconds, patience) {
        Work::None => "it waits for a statement, so what was sent, or the answer, is lost",
        Work::OnTheWire if is_stuck => "it sends, or waits for data, and nothing arrives",
        work => return Ok(work),
    };
    // What that holds is not to outlive it.
    let _ = other.execute(format!("KILL {id}"));
    Err(silent(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_does_is_told_by_its_list_of_processes() {
        let patience = Duration::from_secs(30);
        for (command, state, seconds, work) in [
            ("Query", "Sending data", 3600, Work::Statement),
            ("Query", "Writing to net", 3600, Work::OnTheWire),
            ("Query", "Reading from net", 0, Work::OnTheWire),
            ("Query", "Sending to client", 0, Work::OnTheWire),
            ("Sleep", "", 14, Work::Statement),
            ("Sleep", "", 15, Work::None),
            ("Killed", "Commit", 100, Work::Statement),
        ] {
            assert_eq!(Work::of(command, state, seconds, patience), work, "{command} {state} {seconds}");
        }
    }
}
