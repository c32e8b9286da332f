//! Servers that say nothing: whether they work, or nobody is there any more.
//!
//! A connection whose other end has gone without a word (its power, a network, something between that forgets
//! connections) looks like one whose server is at a long statement. TCP tells it after a quarter of an hour if
//! something was not received, and never if all was. So the server is asked over another connection what the silent one
//! does.

use super::connection::Connection;
use super::settings::Settings;
use super::Error;
use std::io;
use std::time::Duration;

/// Sees to it that a connection that is silent for so long is an error, unless the server works for it.
pub(super) fn watch(
    connection: &mut Connection,
    settings: &Settings,
    patience: Duration,
) -> Result<(), Error> {
    // What stands between may have given it a number of its own.
    let id = connection.value("SELECT CONNECTION_ID()")?.unwrap_or_default();
    let settings = settings.clone();
    connection.on_silence(Box::new(move || must_be_at_work(&settings, &id, patience)));
    Ok(())
}

/// Fails unless the server is at a statement of the connection of this number.
fn must_be_at_work(settings: &Settings, id: &str, patience: Duration) -> Result<(), Error> {
    let silent = |why: &dyn std::fmt::Display| Error::Io {
        what: format!("the server says nothing for {} s", patience.as_secs()),
        error: io::Error::new(io::ErrorKind::TimedOut, why.to_string()),
    };
    let query = format!("SELECT COMMAND, TIME FROM information_schema.PROCESSLIST WHERE ID = {id}");
    let asked = settings.log_in().and_then(|mut other| {
        let rows = other.query(query)?;
        Ok((other, rows))
    });
    let (mut other, rows) = match asked {
        Err(error @ Error::Io { .. }) => return Err(silent(&error)),
        // It is there, and does not say more.
        Err(_) => return Ok(()),
        Ok(asked) => asked,
    };
    let texts = rows.into_iter().next().map(|row| {
        let mut texts =
            row.into_iter().map(|text| String::from_utf8_lossy(&text.unwrap_or_default()).into_owned());
        (texts.next().unwrap_or_default(), texts.next().and_then(|time| time.parse().ok()).unwrap_or(0))
    });
    match texts {
        None => Err(silent(&"it has ended the connection")),
        // What is on its way comes in less.
        Some((command, seconds)) if command == "Sleep" && Duration::from_secs(seconds) >= patience / 2 => {
            // What that holds is not to outlive it.
            let _ = other.execute(format!("KILL {id}"));
            Err(silent(&"it waits for a statement, so what was sent, or the answer, is lost"))
        }
        Some(_) => Ok(()),
    }
}
