//! Tables in memory: what they take, how many rows they have, and what restarts have taken.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::border::{Bytes, SessionHandle, TableHandle};
use super::engine::{ask_engine, with_engine};
use super::session::with_reader;
use super::status::Status;
use super::table::ask_table;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::Stop;

/// Memory that a table takes which lives there alone; 0 of any other.
#[no_mangle]
pub extern "C" fn teak_table_memory_bytes(handle: Option<&TableHandle>) -> u64 {
    ask_table(handle, |t| t.table.memory_bytes().unwrap_or(0))
}

/// 1 if a restart may have emptied the table and nobody has told the binary log ([`teak_tables_note_told`]).
#[no_mangle]
pub extern "C" fn teak_table_is_untold(handle: Option<&TableHandle>) -> u8 {
    ask_table(handle, |t| u8::from(t.table.is_untold()))
}

/// 1 if the table may be without rows that a restart has taken.
#[no_mangle]
pub extern "C" fn teak_table_has_lost_rows(handle: Option<&TableHandle>) -> u8 {
    ask_table(handle, |t| u8::from(t.table.has_lost_rows()))
}

/// The binary log has it that the table is empty, and those whose names begin with `parts`.
#[no_mangle]
pub extern "C" fn teak_tables_note_told(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    parts: Bytes<'_>,
) -> Status {
    with_engine(handle, |engine| Ok(engine.core.note_told(name.name()?, parts.name()?)?))
}

/// `copy` is about to get the rows of table `of`, or of those whose names begin with `parts`, without those that are
/// lost.
#[no_mangle]
pub extern "C" fn teak_table_inherit_losses(
    handle: Option<&Arc<EngineHandle>>,
    copy: Bytes<'_>,
    of: Bytes<'_>,
    parts: Bytes<'_>,
) -> Status {
    with_engine(handle, |engine| Ok(engine.core.inherit_losses(copy.name()?, of.name()?, parts.name()?)?))
}

/// A change of a row that a restart has taken was passed over: for the status variables.
#[no_mangle]
pub extern "C" fn teak_count_lost_row(handle: Option<&Arc<EngineHandle>>) {
    // Relaxed: a statistic.
    ask_engine(handle, |engine| engine.lost_rows.fetch_add(1, Ordering::Relaxed));
}

/// Rows of the table: those that were committed and those of the session's own transaction. What others have not
/// committed yet is not counted.
#[no_mangle]
pub extern "C" fn teak_table_rows(session: Option<&SessionHandle>, table: Option<&TableHandle>) -> u64 {
    let mut rows = 0;
    let _ = with_reader(session, |session| {
        let t = table.ok_or(Stop::Misuse("no table"))?;
        let tree = t.table.tree(0);
        let own = session.txn().map_or(0, |txn| txn.rows_added(tree));
        rows = tree.entries().saturating_add_signed(own);
        Ok(())
    });
    rows
}
