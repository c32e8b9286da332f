//! Tables: DDL, statistics, counters.

use std::os::raw::c_void;
use std::sync::Arc;

use teak_core::{Compression, Error, Packing, TreeSpec};

use super::border::{end, put, Array, Bytes, Context, Out, RawBound, RawBytes, SessionHandle, TableHandle};
use super::engine::with_engine;
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
#[derive(Default)]
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

/// Keys of a tree, ascending.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSample {
    pub keys: *const RawBytes,
    pub n_keys: usize,
    /// Of teak_tree_outline: where leaves begin, not larger parts.
    pub are_leaves: u8,
    pub owner: Option<Box<SampledHandle>>,
}

/// What a sample's pointers point into.
pub struct SampledHandle {
    /// Goes with it.
    _bytes: Vec<u8>,
    keys: Vec<RawBytes>,
}

impl RawSample {
    fn of(keys: &[&[u8]], are_leaves: bool) -> RawSample {
        let bytes = keys.concat();
        let mut rest = bytes.as_slice();
        let raw = keys.iter().map(|key| {
            let (this, behind) = rest.split_at(key.len());
            rest = behind;
            RawBytes::of(this)
        });
        let keys: Vec<RawBytes> = raw.collect();
        // Moving the vectors into the box does not move what they point to.
        let owner = Box::new(SampledHandle { _bytes: bytes, keys });
        let (keys, n_keys) = (owner.keys.as_ptr(), owner.keys.len());
        RawSample { keys, n_keys, are_leaves: u8::from(are_leaves), owner: Some(owner) }
    }
}

/// Runs `body` with the table.
pub fn with_table(handle: Option<&TableHandle>, body: impl FnOnce(&TableHandle) -> Result<()>) -> Status {
    run(handle.map(|t| &*t.engine), || body(handle.ok_or(Stop::Misuse("no table"))?))
}

/// Asks the table something, or tells it something, that cannot fail.
pub fn ask_table<T: Default>(handle: Option<&TableHandle>, question: impl FnOnce(&TableHandle) -> T) -> T {
    value(handle.map(|t| &*t.engine), T::default(), || handle.map_or_else(T::default, question))
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
pub(super) fn tree_specs(trees: Array<'_, RawTreeSpec>) -> Result<Vec<TreeSpec>> {
    let trees = trees.slice();
    match trees.is_empty() {
        true => Err(Stop::Misuse("a table without a tree")),
        false => trees.iter().map(|tree| tree.spec()).collect(),
    }
}

/// All DDL is atomic and durable when it returns. `meta` is opaque to Teak. `trees[0]` is the row tree.
#[no_mangle]
pub extern "C" fn teak_table_create(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    trees: Array<'_, RawTreeSpec>,
    meta: Bytes<'_>,
) -> Status {
    with_engine(handle, |engine| {
        let specs = tree_specs(trees)?;
        Ok(engine.core.create(NewTable { meta: meta.slice(), ..NewTable::new(name.name()?, &specs) })?)
    })
}

/// Drops it. TEAK_UNDECIDED if a prepared transaction has written to it; so TRUNCATE, and the build of an index.
#[no_mangle]
pub extern "C" fn teak_table_drop(handle: Option<&Arc<EngineHandle>>, name: Bytes<'_>) -> Status {
    with_engine(handle, |engine| Ok(engine.core.drop(name.name()?, IfPrepared::Refuse)?))
}

/// The same for a temporary table, whatever transactions have written to it.
#[no_mangle]
pub extern "C" fn teak_table_discard(handle: Option<&Arc<EngineHandle>>, name: Bytes<'_>) -> Status {
    with_engine(handle, |engine| Ok(engine.core.drop(name.name()?, IfPrepared::Ignore)?))
}

/// Empties the table and resets its AUTO_INCREMENT. Open handles of the table must be closed and opened again.
#[no_mangle]
pub extern "C" fn teak_table_truncate(handle: Option<&Arc<EngineHandle>>, name: Bytes<'_>) -> Status {
    with_engine(handle, |engine| Ok(engine.core.empty(name.name()?, None)?))
}

/// Drops every table whose name begins with `prefix` ("db/"); TEAK_OK also when there is none.
#[no_mangle]
pub extern "C" fn teak_tables_drop_prefix(handle: Option<&Arc<EngineHandle>>, prefix: Bytes<'_>) -> Status {
    with_engine(handle, |engine| drop_tables(&engine.core, engine.core.table_names(prefix.name()?)?))
}

/// Drops the temporary tables that a server has left which was killed, or copied while it ran, in whatever directory it
/// had them; and the tables that were to take the place of others.
#[no_mangle]
pub extern "C" fn teak_tables_drop_temporary(handle: Option<&Arc<EngineHandle>>) -> Status {
    with_engine(handle, |engine| {
        let names = engine.core.table_names("")?;
        drop_tables(&engine.core, names.into_iter().filter(|name| is_temporary(name)))
    })
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
pub extern "C" fn teak_tables_count(handle: Option<&Arc<EngineHandle>>, out: Out<'_, u64>) -> Status {
    with_engine(handle, |engine| {
        let names = engine.core.table_names("")?;
        let lasts = names.iter().filter(|name| !name.rsplit('/').next().unwrap_or(name).starts_with("#sql"));
        put(out, lasts.count() as u64);
        Ok(())
    })
}

/// 0 or 1; also 0 when that cannot be found out.
#[no_mangle]
pub extern "C" fn teak_table_exists(handle: Option<&Arc<EngineHandle>>, name: Bytes<'_>) -> u8 {
    let status = with_engine(handle, |engine| Ok(engine.core.open_table(name.name()?).map(drop)?));
    u8::from(status == Status::Ok)
}

/// A handle of the table.
#[no_mangle]
pub extern "C" fn teak_table_open(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    out: Out<'_, Box<TableHandle>>,
) -> Status {
    with_engine(handle, |engine| {
        let table = engine.core.open_table(name.name()?)?;
        put(out, Box::new(TableHandle { engine: engine.clone(), table }));
        Ok(())
    })
}

/// After its cursors were freed. NULL is ignored.
#[no_mangle]
pub extern "C" fn teak_table_close(table: Option<Box<TableHandle>>) {
    value(None, (), || drop(table));
}

/// A temporary table: the snapshot of its session may be older than it. To be called after each open.
#[no_mangle]
pub extern "C" fn teak_table_show_to_older_snapshots(table: Option<&TableHandle>) {
    ask_table(table, |t| t.table.show_to_older_snapshots());
}

/// Valid until close.
#[no_mangle]
pub extern "C" fn teak_table_meta(table: Option<&TableHandle>) -> RawBytes {
    table.map_or(RawBytes::NONE, |t| RawBytes::of(t.table.meta()))
}

/// How people are told of the table's keys, in a form of the shim's; it comes back with each lock that is listed, as
/// long as the table is open in the core and not altered.
#[no_mangle]
pub extern "C" fn teak_table_describe(table: Option<&TableHandle>, description: Bytes<'_>) {
    ask_table(table, |t| t.table.describe(description.slice()));
}

/// 0 or 1: what it was described by last begins with these bytes.
#[no_mangle]
pub extern "C" fn teak_table_is_described(table: Option<&TableHandle>, begin: Bytes<'_>) -> u8 {
    let begins = |t: &TableHandle| t.table.description().is_some_and(|all| all.starts_with(begin.slice()));
    u8::from(ask_table(table, begins))
}

/// What was found out about the table's rows, at most 2000 bytes: outlives a restart from the next checkpoint on, and
/// goes with the rows.
#[no_mangle]
pub extern "C" fn teak_table_keep_digest(handle: Option<&TableHandle>, digest: Bytes<'_>) -> Status {
    with_table(handle, |t| Ok(t.engine.core.keep_digest(&t.table, digest.slice())?))
}

/// Calls `visit` with what was told last, if anything is known.
#[no_mangle]
pub extern "C" fn teak_table_get_digest(
    handle: Option<&TableHandle>,
    visit: unsafe extern "C" fn(*mut c_void, RawBytes),
    context: Context,
) -> Status {
    with_table(handle, |t| {
        if let Some(digest) = t.engine.core.digest(&t.table)? {
            context.tell(visit, RawBytes::of(&digest));
        }
        Ok(())
    })
}

/// Number of its trees.
#[no_mangle]
pub extern "C" fn teak_table_trees(table: Option<&TableHandle>) -> usize {
    table.map_or(0, |t| t.table.trees())
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
pub extern "C" fn teak_table_get_space(handle: Option<&TableHandle>, out: Out<'_, RawTableSpace>) {
    let (used_bytes, free_bytes) = ask_table(handle, |t| (t.table.used_bytes(), t.table.free_bytes()));
    put(out, RawTableSpace { used_bytes, free_bytes });
}

/// What could not be found out is 0.
#[no_mangle]
pub extern "C" fn teak_table_get_statistics(handle: Option<&TableHandle>, out: Out<'_, RawTableStatistics>) {
    let none = RawTableStatistics { next_counter: 1, ..RawTableStatistics::default() };
    let statistics = ask_table(handle, |TableHandle { table, .. }| {
        Some(RawTableStatistics {
            rows: table.tree(0).entries(),
            data_bytes: table.tree(0).disk_bytes(),
            index_bytes: (1..table.trees()).map(|i| table.tree(i).disk_bytes()).sum(),
            next_counter: table.counter().max(1),
            raw_bytes: table.tree(0).raw_bytes(),
            changed_at: table.tree(0).changed_at(),
        })
    });
    put(out, statistics.unwrap_or(none));
}

/// Of tree number `number`.
#[no_mangle]
pub extern "C" fn teak_tree_get_statistics(
    handle: Option<&TableHandle>,
    number: u32,
    out: Out<'_, RawTreeStatistics>,
) -> Status {
    with_table(handle, |t| {
        let tree = tree(t, number)?;
        let (entries, leaves, disk_bytes) = (tree.entries(), tree.leaves(), tree.disk_bytes());
        put(out, RawTreeStatistics { entries, leaves, disk_bytes });
        Ok(())
    })
}

/// records_in_range: reads the leaves of the two ends of a short range if they are not in memory. TEAK_TABLE_CHANGED:
/// the snapshot of the session, if there is one, is older than the tree.
#[no_mangle]
pub extern "C" fn teak_estimate_range(
    session: Option<&SessionHandle>,
    handle: Option<&TableHandle>,
    number: u32,
    from: Option<&RawBound<'_>>,
    to: Option<&RawBound<'_>>,
    rows: Out<'_, u64>,
) -> Status {
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

/// Where parts of a tree begin that may have keys from `low` on and before `high` (empty: all): the leaves, if they are
/// not many. The first may begin before `low`. A key here may be the beginning of one, enough to tell it from all
/// before. Reads inner pages only.
#[no_mangle]
pub extern "C" fn teak_tree_outline(
    handle: Option<&TableHandle>,
    number: u32,
    low: Bytes<'_>,
    high: Bytes<'_>,
    out: Out<'_, RawSample>,
) -> Status {
    with_table(handle, |t| {
        let high = Some(high.slice()).filter(|high| !high.is_empty());
        let outline = tree(t, number)?.outline(low.slice(), high)?;
        let firsts: Vec<&[u8]> = outline.firsts.iter().map(Vec::as_slice).collect();
        put(out, RawSample::of(&firsts, outline.are_leaves));
        Ok(())
    })
}

/// The keys of the leaf in which `key` is or would be, for cardinalities.
#[no_mangle]
pub extern "C" fn teak_tree_sample(
    handle: Option<&TableHandle>,
    number: u32,
    key: Bytes<'_>,
    out: Out<'_, RawSample>,
) -> Status {
    with_table(handle, |t| {
        let mut sample = RawSample::of(&[], true);
        tree(t, number)?.sample(key.slice(), &mut |keys| sample = RawSample::of(keys, true))?;
        put(out, sample);
        Ok(())
    })
}

/// Gives it back; idempotent: empties `*sample`.
#[no_mangle]
pub extern "C" fn teak_sample_free(sample: Option<&mut RawSample>) {
    if let Some(sample) = sample {
        *sample = RawSample { keys: std::ptr::null(), n_keys: 0, are_leaves: 0, owner: None };
    }
}

/// AUTO_INCREMENT: one atomic counter per table, no lock. Reserves `n` values `offset + k * increment` at or after the
/// counter; `*first` is the first. `increment` 0 counts as 1. The new counter is persisted with the session's next log
/// write.
#[no_mangle]
pub extern "C" fn teak_counter_reserve(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    offset: u64,
    increment: u64,
    n: u64,
    first: Out<'_, u64>,
) -> Status {
    with_reader(session, |session| {
        let t = table.ok_or(Stop::Misuse("no table"))?;
        put(first, counter::reserve(session.txn().ok(), &t.table, offset, increment, n)?);
        Ok(())
    })
}

/// An explicit value was stored: the next value given out is greater than `value`.
#[no_mangle]
pub extern "C" fn teak_counter_raise(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    given: u64,
) {
    let _ = with_reader(session, |session| {
        let t = table.ok_or(Stop::Misuse("no table"))?;
        counter::raise(session.txn().ok(), &t.table, given);
        Ok(())
    });
}

/// The next value, at least 1.
#[no_mangle]
pub extern "C" fn teak_counter_get(table: Option<&TableHandle>) -> u64 {
    table.map_or(1, |t| t.table.counter().max(1))
}

/// CREATE/ALTER ... AUTO_INCREMENT = value, reset_auto_increment: also downwards. Within a transaction; persisted as
/// above.
#[no_mangle]
pub extern "C" fn teak_counter_set(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    next: u64,
) -> Status {
    with_session(session, |session| {
        let t = table.ok_or(Stop::Misuse("no table"))?;
        counter::set(session.txn()?, &t.table, next);
        Ok(())
    })
}

/// Hidden primary key, never reused. Store big-endian.
#[no_mangle]
pub extern "C" fn teak_next_row_id(table: Option<&TableHandle>) -> u64 {
    ask_table(table, |t| t.table.next_row_id())
}
