//! Tables: DDL, statistics, counters.

use std::os::raw::c_void;

use teak_core::{Compression, Error, Packing, TreeSpec};

use super::border::{array, end, put, RawBound, RawBytes, SessionHandle, TableHandle};
use super::engine::{share, with_engine};
use super::guard::{run, value};
use super::session::{ask, with_reader, with_session};
use super::status::Status;
use teak_core::server::{Engine, IfPrepared, NewTable, Tree};
use teak_rows::bounds::{Direction, Edge};
use teak_rows::counter;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};

/// Compression of blocks: none.
pub const TEAK_COMPRESSION_NONE: u16 = 0;
/// LZ4.
pub const TEAK_COMPRESSION_LZ4: u16 = 1;
/// Zstandard.
pub const TEAK_COMPRESSION_ZSTD: u16 = 2;
/// Zstandard; of large values that are deflate streams, what is in them.
pub const TEAK_COMPRESSION_RECOMPRESS: u16 = 3;

/// How the blocks of a tree are made.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTreeSpec {
    /// 4 KiB to 1 MiB; 0: default (32 KiB).
    pub block_bytes: u32,
    pub compression: u16,
    /// Of Zstandard; 0: the default.
    pub level: u16,
    /// Not 0: large values that are alike are put together.
    pub similarity: u16,
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
            TEAK_COMPRESSION_NONE => Compression::None,
            TEAK_COMPRESSION_LZ4 => Compression::Lz4,
            TEAK_COMPRESSION_ZSTD => Compression::Zstd,
            TEAK_COMPRESSION_RECOMPRESS => Compression::Recompress,
            _ => return Err(Stop::Misuse("compression")),
        };
        let block_bytes = match self.block_bytes {
            0 => TreeSpec::default().block_bytes,
            bytes if (4 << 10..=1 << 20).contains(&bytes) => bytes,
            _ => return Err(Stop::Misuse("block size")),
        };
        let packing = Packing { compression, level: self.level()?, similarity: self.similarity != 0 };
        Ok(TreeSpec { block_bytes, packing })
    }
}

/// Sizes of a tree.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTreeStatistics {
    /// Committed, approximate.
    pub entries: u64,
    pub leaves: u64,
    pub disk_bytes: u64,
}

/// Sizes of a table.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTableStatistics {
    pub rows: u64,
    /// Tree 0.
    pub data_bytes: u64,
    /// The other trees.
    pub index_bytes: u64,
    /// Next AUTO_INCREMENT value.
    pub next_counter: u64,
    /// Tree 0 before compression, as of the last checkpoint.
    pub raw_bytes: u64,
    /// When the last transaction that changed a row was committed, in seconds since 1970; 0: none since the start.
    pub changed_at: u64,
}

/// Keys of some leaves of a tree.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSample {
    /// All sampled keys, leaf after leaf, ascending within a leaf.
    pub keys: *const RawBytes,
    pub n_keys: usize,
    /// Leaf `i` has the keys from `leaf_ends[i - 1]` on, before `leaf_ends[i]`.
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

/// Numbers of trees that the table has.
pub(super) fn places(handle: &TableHandle, numbers: &[u32]) -> Result<Vec<usize>> {
    let places: Vec<usize> = numbers.iter().map(|&number| number as usize).collect();
    match places.iter().all(|&place| place < handle.table.trees()) {
        true => Ok(places),
        false => Err(Stop::Misuse("no such tree")),
    }
}

fn tree(handle: &TableHandle, number: u32) -> Result<&Tree> {
    if number as usize >= handle.table.trees() {
        return Err(Stop::Misuse("no such tree"));
    }
    Ok(handle.table.tree(number as usize))
}

/// What the trees of a table are to be, of which there is at least one.
///
/// # Safety
/// The array is readable.
pub(super) unsafe fn tree_specs(trees: *const RawTreeSpec, n_trees: usize) -> Result<Vec<TreeSpec>> {
    // SAFETY: by the contract of this function.
    let trees = unsafe { array(trees, n_trees) };
    match trees.is_empty() {
        true => Err(Stop::Misuse("a table without a tree")),
        false => trees.iter().map(|tree| tree.spec()).collect(),
    }
}

/// All DDL is atomic and durable when it returns. `meta` is opaque to Teak. `trees[0]` is the row tree.
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
            let specs = tree_specs(trees, n_trees)?;
            Ok(engine.core.create(NewTable { meta: meta.slice(), ..NewTable::new(name.name()?, &specs) })?)
        })
    }
}

/// Drops it. TEAK_UNDECIDED if a prepared transaction has written to it; so TRUNCATE, and the build of an index.
#[no_mangle]
pub unsafe extern "C" fn teak_table_drop(handle: *const EngineHandle, name: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.drop(name.name()?, IfPrepared::Refuse)?)) }
}

/// The same for a temporary table, whatever transactions have written to it.
#[no_mangle]
pub unsafe extern "C" fn teak_table_discard(handle: *const EngineHandle, name: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.drop(name.name()?, IfPrepared::Ignore)?)) }
}

/// Empties the table and resets its AUTO_INCREMENT. Open handles of the table must be closed and opened again.
#[no_mangle]
pub unsafe extern "C" fn teak_table_truncate(handle: *const EngineHandle, name: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.empty(name.name()?, None)?)) }
}

/// Drops every table whose name begins with `prefix` ("db/"); TEAK_OK also when there is none.
#[no_mangle]
pub unsafe extern "C" fn teak_tables_drop_prefix(handle: *const EngineHandle, prefix: RawBytes) -> Status {
    // SAFETY: the handle is open, the name readable.
    unsafe {
        with_engine(handle, |engine| drop_tables(&engine.core, engine.core.table_names(prefix.name()?)?))
    }
}

/// Drops the temporary tables that a server has left which was killed, or copied while it ran, in whatever directory it
/// had them; and the tables that were to take the place of others.
#[no_mangle]
pub unsafe extern "C" fn teak_tables_drop_temporary(handle: *const EngineHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe {
        with_engine(handle, |engine| {
            let names = engine.core.table_names("")?;
            drop_tables(&engine.core, names.into_iter().filter(|name| is_temporary(name)))
        })
    }
}

fn drop_tables(engine: &Engine, names: impl IntoIterator<Item = String>) -> Result<()> {
    for name in names {
        match engine.drop(&name, IfPrepared::Refuse) {
            Ok(()) | Err(Error::NoSuchTable(_)) => (),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What the names of tables begin with that an ALTER fills to put them into others' places. No database has this name.
const REBUILT: &str = "#rebuild/";

/// Made by CREATE TEMPORARY TABLE, or by an ALTER of one: they lie in the server's tmpdir. Names of other tables are
/// encoded and have no '#' of their own.
fn is_temporary(name: &str) -> bool {
    let last = last_part(name);
    let is_of_tmpdir = name.starts_with('/') && last.starts_with("#sql");
    name.starts_with(REBUILT) || last.starts_with("#sql-temptable-") || is_of_tmpdir
}

/// Of "db/table", the table.
fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// How many tables there are, partitions counted one by one, without temporary ones and what an ALTER is making.
#[no_mangle]
pub unsafe extern "C" fn teak_tables_count(handle: *const EngineHandle, out: *mut u64) -> Status {
    // SAFETY: the handle is open, the result writable.
    unsafe {
        with_engine(handle, |engine| {
            let names = engine.core.table_names("")?;
            let lasts =
                names.iter().filter(|name| !name.rsplit('/').next().unwrap_or(name).starts_with("#sql"));
            put(out, lasts.count() as u64);
            Ok(())
        })
    }
}

/// 0 or 1; also 0 when that cannot be found out.
#[no_mangle]
pub unsafe extern "C" fn teak_table_exists(handle: *const EngineHandle, name: RawBytes) -> u8 {
    // SAFETY: the handle is open, the name readable.
    let status = unsafe { with_engine(handle, |engine| Ok(engine.core.open_table(name.name()?).map(drop)?)) };
    u8::from(status == Status::Ok)
}

/// A handle of the table.
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

/// After its cursors were freed. NULL is ignored.
#[no_mangle]
pub unsafe extern "C" fn teak_table_close(table: *mut TableHandle) {
    if !table.is_null() {
        // SAFETY: `teak_table_open` made the box, and the shim does not use the handle again.
        value(None, (), || drop(unsafe { Box::from_raw(table) }));
    }
}

/// A temporary table: the snapshot of its session may be older than it. To be called after each open.
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

/// Valid until close.
#[no_mangle]
pub unsafe extern "C" fn teak_table_meta(table: *const TableHandle) -> RawBytes {
    // SAFETY: the handle is open or NULL; it owns the table, whose metadata does not change.
    unsafe { table.as_ref() }.map_or(RawBytes::NONE, |t| RawBytes::of(t.table.meta()))
}

/// What was found out about the table's rows, at most 2000 bytes: outlives a restart from the next checkpoint on, and
/// goes with the rows.
#[no_mangle]
pub unsafe extern "C" fn teak_table_keep_digest(handle: *const TableHandle, digest: RawBytes) -> Status {
    // SAFETY: the handle is open, the bytes readable.
    unsafe { with_table(handle, |t| Ok(t.engine.core.keep_digest(&t.table, digest.slice())?)) }
}

/// Calls `visit` with what was told last, if anything is known.
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

/// Number of its trees.
#[no_mangle]
pub unsafe extern "C" fn teak_table_trees(table: *const TableHandle) -> usize {
    // SAFETY: the handle is open or NULL.
    unsafe { table.as_ref() }.map_or(0, |t| t.table.trees())
}

/// What a table's file takes from the disk.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTableSpace {
    /// With large values, which no tree counts.
    pub used_bytes: u64,
    /// What is free and still takes space.
    pub free_bytes: u64,
}

/// Asks the file system.
#[no_mangle]
pub unsafe extern "C" fn teak_table_get_space(handle: *const TableHandle, out: *mut RawTableSpace) {
    // SAFETY: the handle is open or NULL.
    let table = unsafe { handle.as_ref() };
    let space = || RawTableSpace {
        used_bytes: table.map_or(0, |t| t.table.used_bytes()),
        free_bytes: table.map_or(0, |t| t.table.free_bytes()),
    };
    // SAFETY: the caller's structure.
    unsafe { put(out, value(None, RawTableSpace { used_bytes: 0, free_bytes: 0 }, space)) };
}

/// What could not be found out is 0.
#[no_mangle]
pub unsafe extern "C" fn teak_table_get_statistics(handle: *const TableHandle, out: *mut RawTableStatistics) {
    let mut statistics = RawTableStatistics {
        rows: 0,
        data_bytes: 0,
        index_bytes: 0,
        next_counter: 1,
        raw_bytes: 0,
        changed_at: 0,
    };
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
                changed_at: table.tree(0).changed_at(),
            };
            Ok(())
        })
    };
    // SAFETY: the result is writable.
    unsafe { put(out, statistics) }
}

/// Of tree number `number`.
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

/// records_in_range: reads the leaves of the two ends of a short range if they are not in memory. TEAK_TABLE_CHANGED:
/// the snapshot of the session, if there is one, is older than the tree.
#[no_mangle]
pub unsafe extern "C" fn teak_estimate_range(
    session: *const SessionHandle,
    handle: *const TableHandle,
    number: u32,
    from: *const RawBound,
    to: *const RawBound,
    rows: *mut u64,
) -> Status {
    // SAFETY: the handles are open, or the session's NULL, the bounds readable, the result writable.
    unsafe {
        with_table(handle, |t| {
            if ask(session, |session| tree(t, number).is_ok_and(|tree| session.precedes(tree))) {
                return Err(Stop::Core(Error::TableChanged));
            }
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

/// Keys of up to `max_leaves` leaves spread over the tree, for cardinalities.
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

/// Gives it back; idempotent: empties `*sample`.
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

/// AUTO_INCREMENT: one atomic counter per table, no lock. Reserves `n` values `offset + k * increment` at or after the
/// counter; `*first` is the first. `increment` 0 counts as 1. The new counter is persisted with the session's next log
/// write.
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

/// An explicit value was stored: the next value given out is greater than `value`.
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

/// The next value, at least 1.
#[no_mangle]
pub unsafe extern "C" fn teak_counter_get(table: *const TableHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    unsafe { table.as_ref() }.map_or(1, |t| t.table.counter().max(1))
}

/// CREATE/ALTER ... AUTO_INCREMENT = value, reset_auto_increment: also downwards. Within a transaction; persisted as
/// above.
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

/// Hidden primary key, never reused. Store big-endian.
#[no_mangle]
pub unsafe extern "C" fn teak_next_row_id(handle: *mut TableHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    let table = unsafe { handle.as_ref() };
    value(table.map(|t| &*t.engine), 0, || table.map_or(0, |t| t.table.next_row_id()))
}
