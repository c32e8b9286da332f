//! Results of queries that the server keeps (its query cache): whether a session may leave one, or take one.
//!
//! A result goes with a *version* of each table that it was read from: the last commit that has changed the table. As
//! long as the version is the same, the result is what a query that begins now would read. A session with a snapshot
//! takes it only if the snapshot has that commit, and nobody takes it whose own transaction has written to the table.

use std::sync::Arc;

use teak_core::server::Table;
use teak_core::Timestamp;

use crate::engine::EngineHandle;
use crate::outcome::Result;
use crate::session::Session;

/// What becomes of a result that the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The session may take it.
    Taken,
    /// It is right, for others.
    Passed,
    /// It is not right any more.
    Stale,
}

/// The version of the table that the session's statement reads, if that is the newest: its result may be kept.
pub fn version_read(session: &mut Session, table: &Table) -> Result<Option<Timestamp>> {
    let rows = table.tree(0);
    // The snapshot first: what is committed in between makes the version younger.
    let snapshot = session.open_snapshot()?;
    let version = session.engine().core.last_change(rows);
    Ok((version <= snapshot && !session.has_written(rows)).then_some(version))
}

/// The table of that name, if it is open and this is its version.
fn newest(engine: &EngineHandle, name: &str, version: Timestamp) -> Option<Arc<Table>> {
    let table = engine.core.opened_table(name)?;
    (engine.core.known_last_change(table.tree(0)) == Some(version)).then_some(table)
}

/// What becomes of a result of this version for somebody who reads what is newest. The table is only looked at if it is
/// open.
pub fn fate_now(engine: &EngineHandle, name: &str, version: Timestamp) -> Fate {
    newest(engine, name, version).map_or(Fate::Stale, |_| Fate::Taken)
}

/// What becomes of it for the session, in a transaction. `repeats`: what that reads it will read again, so it has a
/// snapshot from here on.
pub fn fate_in(session: &mut Session, name: &str, version: Timestamp, repeats: bool) -> Result<Fate> {
    // The snapshot first: the version that is compared below is then the newest at a moment after it.
    let has_it = !repeats || session.open_snapshot()? >= version;
    Ok(match newest(session.engine(), name, version) {
        None => Fate::Stale,
        Some(table) if !has_it || session.has_written(table.tree(0)) => Fate::Passed,
        Some(_) => Fate::Taken,
    })
}
