//! What there is to say of every tree of every table, for information_schema.TEAK_TABLES.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use teak_core::Error;

use super::border::{Context, RawBytes};
use super::engine::with_engine;
use super::status::Status;
use teak_core::server::{Table, Tree};
use teak_rows::engine::EngineHandle;

/// Of one tree. What it takes, of its leaves only: large values and inner pages are not in it.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTreeReport {
    /// "db/table", as created.
    pub table: RawBytes,
    /// Its number in the table.
    pub tree: u64,
    /// Committed, approximate.
    pub entries: u64,
    pub leaves: u64,
    /// Before compression, as of the last checkpoint.
    pub raw_bytes: u64,
    /// The same after it.
    pub disk_bytes: u64,
    pub dictionary_bytes: u64,
    /// Of a table in memory, with its first tree: what all of them take. 0 of any other.
    pub memory_bytes: u64,
    /// As in teak_tree_spec.
    pub compression: u32,
    pub level: u32,
    /// With its first tree, of the table: large values that are stored together with others which they are like.
    pub bundled_values: u64,
    /// Their bytes.
    pub bundled_bytes: u64,
    /// What they take.
    pub bundled_disk_bytes: u64,
    /// The most of them that are, or were, read for one.
    pub largest_bundle: u64,
}

fn report(name: &str, number: usize, table: &Table) -> RawTreeReport {
    let tree: &Tree = table.tree(number);
    let packing = tree.spec().packing;
    // A file whose map cannot be read says nothing of them.
    let bundles =
        Some(table).filter(|_| number == 0).and_then(|table| table.bundle_usage().ok()).unwrap_or_default();
    RawTreeReport {
        table: RawBytes::of(name.as_bytes()),
        tree: number as u64,
        entries: tree.entries(),
        leaves: tree.leaves(),
        raw_bytes: tree.raw_bytes(),
        disk_bytes: tree.disk_bytes(),
        dictionary_bytes: tree.dictionary_bytes(),
        memory_bytes: tree.memory_bytes().filter(|_| number == 0).unwrap_or(0),
        compression: packing.compression as u32,
        level: u32::from(packing.level),
        bundled_values: bundles.values,
        bundled_bytes: bundles.value_bytes,
        bundled_disk_bytes: bundles.stored_bytes,
        largest_bundle: bundles.most_values,
    }
}

/// Calls `visit` for every tree of every table, until it returns something but 0. Tables that are damaged are left out.
#[no_mangle]
pub extern "C" fn teak_trees_report(
    handle: Option<&Arc<EngineHandle>>,
    visit: unsafe extern "C" fn(*mut c_void, *const RawTreeReport) -> c_int,
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        for name in engine.core.table_names("")? {
            let table = match engine.core.open_table(&name) {
                Ok(table) => table,
                // Dropped since the names were read, or damaged: the others are of interest all the same.
                Err(Error::NoSuchTable(_) | Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            for number in 0..table.trees() {
                let tree = report(&name, number, &table);
                if context.tell(visit, &tree) != 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}
