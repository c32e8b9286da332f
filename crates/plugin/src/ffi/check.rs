//! CHECK TABLE: the structures of a table, and its indexes against its rows.

use super::border::{put, Array, Bytes, Context, Out, RawBytes, Room, SessionHandle, TableHandle};
use super::feed::{place_of, report, RawRowReader, RowSource, WatchFunction};
use super::guard::{run, value};
use super::session::with_session;
use super::status::Status;
use super::table::{places, with_table};
use std::os::raw::{c_int, c_void};
use std::sync::Arc;
use teak_core::server::{Depth, Difference, Feed, IndexCheck, Table};
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::Stop;
use teak_rows::session::Session;

/// What a check of trees came to.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct RawTableCheckResult {
    /// `note` is called for the first hundred.
    pub findings: u64,
    /// That there were: so many of `entries` are filled.
    pub trees: u64,
}

/// Entries of a tree, counted.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawIndexCount {
    /// Entries that the rows make.
    pub wanted: u64,
    pub found: u64,
    /// 0 or 1: they are the same.
    pub equal: u64,
}

/// Where a tree differs from what the rows make.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawDifference {
    pub part: u32,
    pub kind: u32,
    pub key: RawBytes,
    pub wanted: RawBytes,
    pub found: RawBytes,
}

/// Each block on disk.
pub const TEAK_CHECK_BLOCKS: u32 = 0;
/// And how they fit together; entries are counted.
pub const TEAK_CHECK_STRUCTURE: u32 = 1;

/// The row of `key` and `wanted` has no entry.
pub const TEAK_ENTRY_MISSING: u32 = 0;
/// No row makes the entry of `key` and `found`.
pub const TEAK_ENTRY_UNEXPECTED: u32 = 1;
/// A row makes `wanted`, there is `found`.
pub const TEAK_ENTRY_OTHER: u32 = 2;

/// Whether trees have exactly the entries that the table's rows make, as the session's snapshot sees both: the entries
/// of all rows are given by teak_check_feed or teak_check_add, then compared, once.
pub struct CheckHandle {
    engine: Arc<EngineHandle>,
    table: Arc<Table>,
    parts: usize,
    /// `None`: its differences were told.
    check: Option<IndexCheck>,
}

/// Told what was found.
pub type NoteFunction = Option<unsafe extern "C" fn(context: *mut c_void, text: RawBytes)>;
/// Told of a difference; 0: no more of this part.
pub type DifferenceFunction = Option<unsafe extern "C" fn(*mut c_void, *const RawDifference) -> c_int>;

/// Looks at as many trees of the table from tree `first` on as there is room for in `entries`, while others read and
/// write. `entries[i]`: what the session's snapshot sees in tree `first + i`. `note` gets the text of a finding,
/// `watch` the leaves done so far; not 0: stop (TEAK_INTERRUPTED). Both are called on the calling thread and must not
/// call into Teak.
#[no_mangle]
pub extern "C" fn teak_table_check(
    session: Option<&SessionHandle>,
    handle: Option<&TableHandle>,
    first: u32,
    depth: u32,
    note: NoteFunction,
    watch: WatchFunction,
    context: Context,
    entries: Room<'_, u64>,
    out: Out<'_, RawTableCheckResult>,
) -> Status {
    with_session(session, |session| {
        let t = handle.ok_or(Stop::Misuse("no table"))?;
        let depth = match depth {
            TEAK_CHECK_BLOCKS => Depth::Blocks,
            TEAK_CHECK_STRUCTURE => Depth::Structure,
            _ => return Err(Stop::Misuse("depth of a check")),
        };
        let mut progress = |leaves| report(watch, context, leaves);
        let first = (first as usize).min(t.table.trees());
        let trees = first..t.table.trees().min(first.saturating_add(entries.capacity()));
        let core = &t.engine.core;
        let checked = core.check_trees(session.txn()?, (&t.table, trees), depth, &mut progress)?;
        let trees = entries.fill(checked.entries.iter().copied()) as u64;
        let findings = checked.findings.count();
        if let Some(note) = note {
            for text in checked.findings.iter().map(|finding| finding.to_string()) {
                context.tell(note, RawBytes::of(text.as_bytes()));
            }
        }
        put(out, RawTableCheckResult { findings, trees });
        Ok(())
    })
}

/// Begins a comparison of the trees with the numbers `trees`. `sort_bytes` 0: as sums, which tell whether there is a
/// difference; else one by one.
#[no_mangle]
pub extern "C" fn teak_check_new(
    handle: Option<&TableHandle>,
    trees: Array<'_, u32>,
    sort_bytes: u64,
    out: Out<'_, Box<CheckHandle>>,
) -> Status {
    with_table(handle, |t| {
        let places = places(t, trees.slice())?;
        let sort_bytes = (sort_bytes > 0).then_some(sort_bytes);
        let check = Some(t.engine.core.compare_trees(&t.table, &places, sort_bytes));
        let (engine, table) = (t.engine.clone(), t.table.clone());
        put(out, Box::new(CheckHandle { engine, table, parts: places.len(), check }));
        Ok(())
    })
}

/// An entry for the `part`-th of the trees.
#[no_mangle]
pub extern "C" fn teak_check_add(
    handle: Option<&mut CheckHandle>,
    part: u32,
    key: Bytes<'_>,
    value: Bytes<'_>,
) -> Status {
    let Some(CheckHandle { engine, parts, check, .. }) = handle else { return Status::Misuse };
    run(Some(engine), || {
        let check = check.as_mut().ok_or(Stop::Misuse("a check that is over"))?;
        Ok(check.add(place_of(part, *parts)?, key.slice(), value.slice())?)
    })
}

/// As teak_build_feed.
#[no_mangle]
pub extern "C" fn teak_check_feed(
    session: Option<&SessionHandle>,
    handle: Option<&mut CheckHandle>,
    reader: Option<&RawRowReader>,
    context: Context,
) -> Status {
    let (Some(CheckHandle { engine, table, check, .. }), Some(reader)) = (handle, reader) else {
        return Status::Misuse;
    };
    let feed = |session: &mut Session| {
        let check = check.as_mut().ok_or(Stop::Misuse("a check that is over"))?;
        let source = RowSource { engine, table };
        let maker = || {
            let mut maker = reader.maker(context, &source)?;
            Ok(move |pk: &[u8], row: &[u8], feed: &mut Feed| maker.row(pk, row, feed))
        };
        Ok(check.feed(session.txn()?, maker, |rows| report(reader.watch, context, rows))?)
    };
    with_session(session, feed)
}

/// Fills one for each part.
#[no_mangle]
pub extern "C" fn teak_check_sums(
    session: Option<&SessionHandle>,
    handle: Option<&mut CheckHandle>,
    watch: WatchFunction,
    context: Context,
    out: Room<'_, RawIndexCount>,
) -> Status {
    let Some(CheckHandle { check: Some(check), .. }) = handle else { return Status::Misuse };
    let compare = |session: &mut Session| {
        let counts = check.sums(session.txn()?, |entries| report(watch, context, entries))?;
        out.fill(counts.iter().map(|count| {
            let equal = u64::from(count.equal);
            RawIndexCount { wanted: count.wanted, found: count.found, equal }
        }));
        Ok(())
    };
    with_session(session, compare)
}

/// Calls `each` for what differs, until it returns 0, which ends the part.
#[no_mangle]
pub extern "C" fn teak_check_differences(
    session: Option<&SessionHandle>,
    handle: Option<&mut CheckHandle>,
    each: DifferenceFunction,
    watch: WatchFunction,
    context: Context,
) -> Status {
    let check = handle.and_then(|handle| handle.check.take());
    let (Some(check), Some(each)) = (check, each) else { return Status::Misuse };
    let tell = |part: usize, difference: Difference<'_>| {
        let (kind, key, wanted, found) = match difference {
            Difference::Missing { key, value } => {
                (TEAK_ENTRY_MISSING, key, RawBytes::of(value), RawBytes::NONE)
            }
            Difference::Unexpected { key, value } => {
                (TEAK_ENTRY_UNEXPECTED, key, RawBytes::NONE, RawBytes::of(value))
            }
            Difference::Other { key, wanted, found } => {
                (TEAK_ENTRY_OTHER, key, RawBytes::of(wanted), RawBytes::of(found))
            }
        };
        let raw = RawDifference { part: part as u32, kind, key: RawBytes::of(key), wanted, found };
        Ok(context.tell(each, &raw) != 0)
    };
    let compare = |session: &mut Session| {
        Ok(check.differences(session.txn()?, tell, |entries| report(watch, context, entries))?)
    };
    with_session(session, compare)
}

/// NULL is ignored.
#[no_mangle]
pub extern "C" fn teak_check_free(handle: Option<Box<CheckHandle>>) {
    value(None, (), || drop(handle));
}
