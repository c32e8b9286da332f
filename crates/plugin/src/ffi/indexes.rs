//! What there is to say of the trees of open tables, for information_schema.TEAK_INDEXES.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use teak_core::server::{Table, Tree};
use teak_rows::engine::EngineHandle;

use super::border::{Context, RawBytes};
use super::engine::with_engine;
use super::status::Status;

/// Of one tree: how large it is, and how it was used since it was opened.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawIndexReport {
    /// "db/table", as it is called now.
    pub table: RawBytes,
    /// What teak_table_describe was told; empty: nothing.
    pub description: RawBytes,
    /// Its number in the table.
    pub tree: u64,
    /// Committed, approximate.
    pub entries: u64,
    pub leaves: u64,
    /// Pages from the root to a leaf.
    pub height: u64,
    /// Of its leaves before compression, as of the last checkpoint.
    pub raw_bytes: u64,
    /// The same after it.
    pub disk_bytes: u64,
    /// That a leaf may have before it is split.
    pub block_bytes: u64,
    pub dictionary_bytes: u64,
    /// Of single keys.
    pub look_ups: u64,
    /// Ranges that were begun.
    pub scans: u64,
    /// Keys that were put in.
    pub inserts: u64,
    pub lock_waits: u64,
    pub lock_wait_microseconds: u64,
    /// Seconds since 1970 when a transaction last committed a change; 0: none has.
    pub changed_at: u64,
}

fn report(
    engine: &EngineHandle,
    name: &str,
    description: &[u8],
    table: &Table,
    number: usize,
) -> RawIndexReport {
    let tree: &Tree = table.tree(number);
    let (look_ups, scans) = tree.uses();
    let (lock_waits, waited) = engine.core.lock_waits_for(tree);
    RawIndexReport {
        table: RawBytes::of(name.as_bytes()),
        description: RawBytes::of(description),
        tree: number as u64,
        entries: tree.entries(),
        leaves: tree.leaves(),
        height: u64::from(tree.height()),
        raw_bytes: tree.raw_bytes(),
        disk_bytes: tree.disk_bytes(),
        block_bytes: u64::from(tree.spec().block_bytes),
        dictionary_bytes: tree.dictionary_bytes(),
        look_ups,
        scans,
        inserts: tree.inserts(),
        lock_waits,
        lock_wait_microseconds: u64::try_from(waited.as_micros()).unwrap_or(u64::MAX),
        changed_at: tree.changed_at(),
    }
}

/// Calls `visit` for every tree of every table that is open, until it returns something but 0. No I/O.
#[no_mangle]
pub extern "C" fn teak_indexes_report(
    handle: Option<&Arc<EngineHandle>>,
    visit: unsafe extern "C" fn(*mut c_void, *const RawIndexReport) -> c_int,
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        for table in engine.core.opened_tables() {
            let (name, description) = (table.name(), table.description().unwrap_or_default());
            for number in 0..table.trees() {
                if context.tell(visit, &report(engine, &name, &description, &table, number)) != 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}
