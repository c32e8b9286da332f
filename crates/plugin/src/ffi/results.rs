//! Results of queries that the server keeps.

use super::border::{put, Bytes, Out, SessionHandle, TableHandle};
use super::engine::with_engine;
use super::session::with_reader;
use super::status::Status;
use std::sync::Arc;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};
use teak_rows::results::{fate_in, fate_now, version_read, Fate};

/// The version of a table of which no result may be kept.
pub const TEAK_NO_VERSION: u64 = 0;

/// TEAK_NOT_FOUND: the result is right, but not for the session. TEAK_TABLE_CHANGED: it is not right any more.
fn outcome(fate: Fate) -> Result<()> {
    match fate {
        Fate::Taken => Ok(()),
        Fate::Passed => Err(Stop::NotFound),
        Fate::Stale => Err(Stop::Core(teak_core::Error::TableChanged)),
    }
}

/// The version of the table that the session's statement, which has begun, reads; TEAK_NO_VERSION if the result must
/// not be kept. Takes the snapshot.
#[no_mangle]
pub extern "C" fn teak_result_version(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    out: Out<'_, u64>,
) -> Status {
    with_reader(session, |session| {
        let t = table.ok_or(Stop::Misuse("no table"))?;
        put(out, version_read(session, &t.table)?.unwrap_or(TEAK_NO_VERSION));
        Ok(())
    })
}

/// TEAK_OK: a result of this version of the table is what a query that begins now would read. TEAK_TABLE_CHANGED: it is
/// not, or nobody knows. No I/O.
#[no_mangle]
pub extern "C" fn teak_result_fate(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    version: u64,
) -> Status {
    with_engine(handle, |engine| outcome(fate_now(engine, name.name()?, version)))
}

/// The same for a session in a transaction, which takes its snapshot if `repeats` is 1. TEAK_NOT_FOUND: the result is
/// right for others.
#[no_mangle]
pub extern "C" fn teak_result_fate_in(
    session: Option<&SessionHandle>,
    name: Bytes<'_>,
    version: u64,
    repeats: u8,
) -> Status {
    with_reader(session, |session| outcome(fate_in(session, name.name()?, version, repeats != 0)?))
}
