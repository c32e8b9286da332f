//! Tables: DDL, statistics, counters.

use std::os::raw::c_void;

use teak_core::{Compression, Error, Packing, TreeSpec};

use super::border::{array, end, put, RawBound, RawBytes, SessionHandle, TableHandle};
use super::engine::{share, with_engine};
use super::guard::{run, value};
use super::session::{with_reader, with_session};
use super::status::Status;
use teak_core::server::Tree;
use teak_rows::bounds::{Direction, Edge};
use teak_rows::counter;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};

/// `teak_tree_spec`
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTreeSpec {
    pub block_bytes: u32,
    pub compression: u16,
    /// Of Zstandard; 0: the default.
    pub level: u16,
}

impl RawTreeSpec {
    fn level(self) -> Result<u8> {
        u8::try_from(self.level)
            .ok()
            .filter(|&level| level <= Packing::MOST_LEVEL)
            .ok_or(Stop::Misuse("level of compression"))
    }

    pub(super) fn spec(self) -> Result<TreeSpec> {
        let compression = match self.compression {
            0 => Compression::None,
            1 => Compression::Lz4,
            2 => Compression::Zstd,
            _ => return Err(Stop::Misuse("compression")),
        };
        let block_bytes = match self.block_bytes {
            0 => TreeSpec::default().block_bytes,
            bytes if (4 << 10..=1 << 20).contains(&bytes) => bytes,
            _ => return Err(Stop::Misuse("block size")),
        };
        Ok(TreeSpec { block_bytes, packing: Packing { compression, level: self.level()? } })
    }
}

/// `teak_tree_statistics`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTreeStatistics {
    pub entries: u64,
    pub leaves: u64,
    pub disk_bytes: u64,
}

/// `teak_table_statistics`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTableStatistics {
    pub rows: u64,
    pub data_bytes: u64,
    pub index_bytes: u64,
    pub next_counter: u64,
    pub raw_bytes: u64,
}

/// `teak_sample`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSample {
    pub keys: *const RawBytes,
    pub n_keys: usize,
    pub leaf_ends: *const usize,
    pub n_leaves: usize,
    pub owner: *mut c_void,
}

/// What a sample's pointers point into.
#[derive(Default)]
struct Sample {
    bytes: Vec<u8>,
    key_ends: Vec<usize>,
    leaf_ends: Vec<usize>,
    keys: Vec<RawBytes>,
}

impl Sample {
    fn push_leaf(&mut self, keys: &[&[u8]]) {
        for key in keys {
            self.bytes.extend_from_slice(key);
            self.key_ends.push(self.bytes.len());
        }
        self.leaf_ends.push(self.key_ends.len());
    }

    fn into_raw(mut self) -> RawSample {
        let mut start = 0;
        for end in &self.key_ends {
            self.keys.push(RawBytes::of(&self.bytes[start..*end]));
            start = *end;
        }
        // Moving the vectors into the box does not move what they point to.
        let owner = Box::new(self);
        RawSample {
            keys: owner.keys.as_ptr(),
            n_keys: owner.keys.len(),
            leaf_ends: owner.leaf_ends.as_ptr(),
            n_leaves: owner.leaf_ends.len(),
            owner: Box::into_raw(owner).cast(),
        }
    }
}

/// Runs `body` with the table.
///
/// # Safety
/// `handle` is NULL or open.
unsafe fn with_table(handle: *const TableHandle, body: impl FnOnce(&TableHandle) -> Result<()>) -> Status {
    // SAFETY: by the contract of this function.
    let table = unsafe { handle.as_ref() };
    run(table.map(|t| &*t.engine), || body(table.ok_or(Stop::Misuse("no table"))?))
}

fn tree(handle: &TableHandle, number: u32) -> Result<&Tree> {
    if number as usize >= handle.table.trees() {
        return Err(Stop::Misuse("no such tree"));
    }
    Ok(handle.table.tree(number as usize))
}

/// `teak_table_create`
#[no_mangle]
pub unsafe extern "C" fn teak_table_create(
    handle: *const EngineHandle,
    name: RawBytes,
    trees: *const RawTreeSpec,
    n_trees: usize,
    meta: RawBytes,
) -> Status {
    // SAFETY: the handle is open, the arrays readable.
    unsafe {
        with_engine(handle, |engine| {
            let specs = array(trees, n_trees).iter().map(|s| s.spec()).collect::<Result<Vec<_>>>()?;
            if specs.is_empty() {
                return Err(Stop::Misuse("a table without a tree"));
            }
            Ok(engine.core.create_table(name.name()?, &specs, meta.slice(), None)?)
        })
    }
}

/// `teak_table_drop`
#[no_mangle]
pub unsafe extern "C" fn teak_table_drop(handle: *const EngineHandle, name: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.drop_table(name.name()?)?)) }
}

/// `teak_table_discard`
#[no_mangle]
pub unsafe extern "C" fn teak_table_discard(handle: *const EngineHandle, name: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.discard_table(name.name()?)?)) }
}

/// `teak_table_rename`
#[no_mangle]
pub unsafe extern "C" fn teak_table_rename(
    handle: *const EngineHandle,
    from: RawBytes,
    to: RawBytes,
) -> Status {
    // SAFETY: the handle is open, the names readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.rename_table(from.name()?, to.name()?)?)) }
}

/// `teak_table_truncate`
#[no_mangle]
pub unsafe extern "C" fn teak_table_truncate(handle: *const EngineHandle, name: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.truncate_table(name.name()?)?)) }
}

/// `teak_tables_drop_prefix`
#[no_mangle]
pub unsafe extern "C" fn teak_tables_drop_prefix(handle: *const EngineHandle, prefix: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe {
        with_engine(handle, |engine| {
            for name in engine.core.table_names(prefix.name()?)? {
                match engine.core.drop_table(&name) {
                    Ok(()) | Err(Error::NoSuchTable(_)) => (),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })
    }
}

/// `teak_table_exists`
#[no_mangle]
pub unsafe extern "C" fn teak_table_exists(handle: *const EngineHandle, name: RawBytes) -> u8 {
    // SAFETY: the handle is open, the name readable.
    let status = unsafe { with_engine(handle, |engine| Ok(engine.core.open_table(name.name()?).map(drop)?)) };
    u8::from(status == Status::Ok)
}

/// `teak_table_open`
#[no_mangle]
pub unsafe extern "C" fn teak_table_open(
    handle: *const EngineHandle,
    name: RawBytes,
    out: *mut *mut TableHandle,
) -> Status {
    // SAFETY: the handle is open, the name readable, the result writable.
    unsafe {
        with_engine(handle, |_| {
            let engine = share(handle)?;
            let table = engine.core.open_table(name.name()?)?;
            put(out, Box::into_raw(Box::new(TableHandle { engine, table })));
            Ok(())
        })
    }
}

/// `teak_table_close`
#[no_mangle]
pub unsafe extern "C" fn teak_table_close(table: *mut TableHandle) {
    if !table.is_null() {
        // SAFETY: `teak_table_open` made the box, and the shim does not use the handle again.
        value(None, (), || drop(unsafe { Box::from_raw(table) }));
    }
}

/// `teak_table_show_to_older_snapshots`
#[no_mangle]
pub unsafe extern "C" fn teak_table_show_to_older_snapshots(table: *mut TableHandle) {
    // SAFETY: the handle is open or NULL.
    let table = unsafe { table.as_ref() };
    value(table.map(|t| &*t.engine), (), || {
        if let Some(t) = table {
            t.table.show_to_older_snapshots();
        }
    });
}

/// `teak_table_meta`
#[no_mangle]
pub unsafe extern "C" fn teak_table_meta(table: *const TableHandle) -> RawBytes {
    // SAFETY: the handle is open or NULL; it owns the table, whose metadata does not change.
    unsafe { table.as_ref() }.map_or(RawBytes::NONE, |t| RawBytes::of(t.table.meta()))
}

/// `teak_table_keep_digest`
#[no_mangle]
pub unsafe extern "C" fn teak_table_keep_digest(handle: *const TableHandle, digest: RawBytes) -> Status {
    // SAFETY: the handle is open, the bytes readable.
    unsafe { with_table(handle, |t| Ok(t.engine.core.keep_digest(&t.table, digest.slice())?)) }
}

/// `teak_table_get_digest`
#[no_mangle]
pub unsafe extern "C" fn teak_table_get_digest(
    handle: *const TableHandle,
    visit: extern "C" fn(*mut c_void, RawBytes),
    context: *mut c_void,
) -> Status {
    // SAFETY: the handle is open.
    unsafe {
        with_table(handle, |t| {
            if let Some(digest) = t.engine.core.digest(&t.table)? {
                visit(context, RawBytes::of(&digest));
            }
            Ok(())
        })
    }
}

/// `teak_table_trees`
#[no_mangle]
pub unsafe extern "C" fn teak_table_trees(table: *const TableHandle) -> usize {
    // SAFETY: the handle is open or NULL.
    unsafe { table.as_ref() }.map_or(0, |t| t.table.trees())
}

/// `teak_table_free_bytes`
#[no_mangle]
pub unsafe extern "C" fn teak_table_free_bytes(handle: *const TableHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    let table = unsafe { handle.as_ref() };
    value(None, 0, || table.map_or(0, |t| t.table.free_bytes()))
}

/// `teak_table_get_statistics`
#[no_mangle]
pub unsafe extern "C" fn teak_table_get_statistics(handle: *const TableHandle, out: *mut RawTableStatistics) {
    let mut statistics =
        RawTableStatistics { rows: 0, data_bytes: 0, index_bytes: 0, next_counter: 1, raw_bytes: 0 };
    // SAFETY: the handle is open or NULL. Statistics that could not be had stay 0.
    let _ = unsafe {
        with_table(handle, |t| {
            let table = &t.table;
            statistics = RawTableStatistics {
                rows: table.tree(0).entries(),
                data_bytes: table.tree(0).disk_bytes(),
                index_bytes: (1..table.trees()).map(|i| table.tree(i).disk_bytes()).sum(),
                next_counter: table.counter().max(1),
                raw_bytes: table.tree(0).raw_bytes(),
            };
            Ok(())
        })
    };
    // SAFETY: the result is writable.
    unsafe { put(out, statistics) }
}

/// `teak_tree_get_statistics`
#[no_mangle]
pub unsafe extern "C" fn teak_tree_get_statistics(
    handle: *const TableHandle,
    number: u32,
    out: *mut RawTreeStatistics,
) -> Status {
    // SAFETY: the handle is open, the result writable.
    unsafe {
        with_table(handle, |t| {
            let tree = tree(t, number)?;
            let (entries, leaves, disk_bytes) = (tree.entries(), tree.leaves(), tree.disk_bytes());
            put(out, RawTreeStatistics { entries, leaves, disk_bytes });
            Ok(())
        })
    }
}

/// `teak_estimate_range`
#[no_mangle]
pub unsafe extern "C" fn teak_estimate_range(
    handle: *const TableHandle,
    number: u32,
    from: *const RawBound,
    to: *const RawBound,
    rows: *mut u64,
) -> Status {
    // SAFETY: the handle is open, the bounds readable, the result writable.
    unsafe {
        with_table(handle, |t| {
            let (mut low, mut high) = (Edge::default(), Edge::default());
            low.set_end(end(from)?, Direction::Down);
            high.set_end(end(to)?, Direction::Up);
            let estimate = match (low.bound(), high.bound()) {
                (Some(low), Some(high)) => tree(t, number)?.estimate(low, high)?,
                _ => 0,
            };
            put(rows, estimate);
            Ok(())
        })
    }
}

/// `teak_tree_sample`
#[no_mangle]
pub unsafe extern "C" fn teak_tree_sample(
    handle: *const TableHandle,
    number: u32,
    max_leaves: usize,
    out: *mut RawSample,
) -> Status {
    // SAFETY: the handle is open, the result writable.
    unsafe {
        with_table(handle, |t| {
            let mut sample = Sample::default();
            tree(t, number)?.sample(max_leaves, &mut |keys| sample.push_leaf(keys))?;
            put(out, sample.into_raw());
            Ok(())
        })
    }
}

/// `teak_sample_free`
#[no_mangle]
pub unsafe extern "C" fn teak_sample_free(sample: *mut RawSample) {
    // SAFETY: the shim's sample is writable or NULL.
    let Some(sample) = (unsafe { sample.as_mut() }) else { return };
    if !sample.owner.is_null() {
        // SAFETY: the owner is a box turned raw by `Sample::into_raw`, and is forgotten below.
        drop(unsafe { Box::from_raw(sample.owner.cast::<Sample>()) });
    }
    let (keys, leaf_ends, owner) = (std::ptr::null(), std::ptr::null(), std::ptr::null_mut());
    *sample = RawSample { keys, n_keys: 0, leaf_ends, n_leaves: 0, owner };
}

/// `teak_counter_reserve`
#[no_mangle]
pub unsafe extern "C" fn teak_counter_reserve(
    session: *const SessionHandle,
    table: *const TableHandle,
    offset: u64,
    increment: u64,
    n: u64,
    first: *mut u64,
) -> Status {
    // SAFETY: the handles are open, the result writable.
    unsafe {
        with_reader(session, |session| {
            let t = table.as_ref().ok_or(Stop::Misuse("no table"))?;
            put(first, counter::reserve(session.txn().ok(), &t.table, offset, increment, n)?);
            Ok(())
        })
    }
}

/// `teak_counter_raise`
#[no_mangle]
pub unsafe extern "C" fn teak_counter_raise(
    session: *const SessionHandle,
    table: *const TableHandle,
    given: u64,
) {
    // SAFETY: the handles are open. What cannot fail has no status.
    let _ = unsafe {
        with_reader(session, |session| {
            let t = table.as_ref().ok_or(Stop::Misuse("no table"))?;
            counter::raise(session.txn().ok(), &t.table, given);
            Ok(())
        })
    };
}

/// `teak_counter_get`
#[no_mangle]
pub unsafe extern "C" fn teak_counter_get(table: *const TableHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    unsafe { table.as_ref() }.map_or(1, |t| t.table.counter().max(1))
}

/// `teak_counter_set`
#[no_mangle]
pub unsafe extern "C" fn teak_counter_set(
    session: *const SessionHandle,
    table: *const TableHandle,
    next: u64,
) -> Status {
    // SAFETY: the handles are open.
    unsafe {
        with_session(session, |session| {
            let t = table.as_ref().ok_or(Stop::Misuse("no table"))?;
            counter::set(session.txn()?, &t.table, next);
            Ok(())
        })
    }
}

/// `teak_next_row_id`
#[no_mangle]
pub unsafe extern "C" fn teak_next_row_id(handle: *mut TableHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    let table = unsafe { handle.as_ref() };
    value(table.map(|t| &*t.engine), 0, || table.map_or(0, |t| t.table.next_row_id()))
}
