//! Building indexes, or a whole table, while others write the rows.

use std::os::raw::c_void;
use std::sync::Arc;

use super::border::{array, put, RawBytes, RawEntryView, TableHandle};
use super::build::{BuildHandle, Duplicate};
use super::feed::{report, Context, RawRowReader, RowSource};
use super::guard::{run, value};
use super::status::Status;
use super::table::places;
use teak_core::server::{Feed, OnlineBuild, Table};
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::Stop;

/// A build of indexes beside writers. From teak_online_new to teak_online_free what is written to the table's rows is
/// noted.
pub struct OnlineHandle {
    engine: Arc<EngineHandle>,
    table: Arc<Table>,
    parts: usize,
    online: OnlineBuild,
    duplicate: Duplicate,
    /// What the last call of teak_online_row has found.
    row: Vec<u8>,
}

/// Begins a build of the trees of `into` with the numbers `trees`, which are empty. `into` is the table itself, or one
/// that is to take its place. Until it returns nobody may write to the table, or have written to it and be undecided.
/// `sort_bytes`: memory for sorting; `label` names who builds, as the build has a snapshot.
#[no_mangle]
pub unsafe extern "C" fn teak_online_new(
    handle: *mut TableHandle,
    into: *mut TableHandle,
    trees: *const u32,
    n_trees: usize,
    sort_bytes: u64,
    label: u64,
    out: *mut *mut OnlineHandle,
) -> Status {
    // SAFETY: the handles are open or NULL, the array readable.
    let (table, into, trees) = unsafe { (handle.as_ref(), into.as_ref(), array(trees, n_trees)) };
    run(table.map(|t| &*t.engine), || {
        let t = table.ok_or(Stop::Misuse("no table"))?;
        let into = into.ok_or(Stop::Misuse("no table"))?;
        let places = places(into, trees)?;
        let online = t.engine.core.build_online(&t.table, &into.table, &places, sort_bytes, label)?;
        let (engine, table) = (t.engine.clone(), t.table.clone());
        let (parts, duplicate, row) = (places.len(), Duplicate::default(), Vec::new());
        let online = OnlineHandle { engine, table, parts, online, duplicate, row };
        // SAFETY: by the contract of the header.
        unsafe { put(out, Box::into_raw(Box::new(online))) };
        Ok(())
    })
}

/// The build of all rows as they were when it began: to be fed and finished before teak_online_catch_up.
#[no_mangle]
pub unsafe extern "C" fn teak_online_build(handle: *mut OnlineHandle, out: *mut *mut BuildHandle) -> Status {
    // SAFETY: the handle is open or NULL and used by one thread.
    let Some(OnlineHandle { engine, table, parts, online, .. }) = (unsafe { handle.as_mut() }) else {
        return Status::Misuse;
    };
    run(Some(engine), || {
        let build = BuildHandle::new(engine, table, *parts, online.build()?);
        // SAFETY: by the contract of the header.
        unsafe { put(out, Box::into_raw(Box::new(build))) };
        Ok(())
    })
}

/// Keys that were written since the last teak_online_catch_up, each as often as it was written.
#[no_mangle]
pub unsafe extern "C" fn teak_online_noted(handle: *const OnlineHandle) -> u64 {
    // SAFETY: the handle is open or NULL and used by one thread.
    let handle = unsafe { handle.as_ref() };
    handle.map_or(0, |handle| value(Some(&handle.engine), 0, || handle.online.noted()))
}

/// Brings the trees up to now. `reader` is called on this thread; `looked_at` is how many rows have changed.
/// TEAK_DUPLICATE if so many of them have the key of another that it is not worth going on.
#[no_mangle]
pub unsafe extern "C" fn teak_online_catch_up(
    handle: *mut OnlineHandle,
    reader: *const RawRowReader,
    context: *mut c_void,
    looked_at: *mut u64,
) -> Status {
    // SAFETY: the handle is open or NULL and used by one thread; the reader is readable.
    let (handle, reader) = unsafe { (handle.as_mut(), reader.as_ref()) };
    let (Some(handle), Some(reader)) = (handle, reader) else { return Status::Misuse };
    let (engine, table) = (handle.engine.clone(), handle.table.clone());
    let context = Context(context);
    run(Some(&engine), || {
        let source = RowSource { engine: &engine, table: &table };
        let mut maker = reader.maker(context, &source)?;
        let make = |pk: &[u8], row: &[u8], feed: &mut Feed| maker.row(pk, row, feed);
        let outcome = handle.online.catch_up(make, |done| report(reader.watch, context, done));
        let keys = handle.duplicate.note(outcome)?;
        // SAFETY: by the contract of the header.
        unsafe { put(looked_at, keys) };
        Ok(())
    })
}

/// After the last teak_online_catch_up, since which nobody has written. TEAK_DUPLICATE if two rows have one key.
#[no_mangle]
pub unsafe extern "C" fn teak_online_finish(handle: *mut OnlineHandle) -> Status {
    // SAFETY: the handle is open or NULL and used by one thread.
    let Some(handle) = (unsafe { handle.as_mut() }) else { return Status::Misuse };
    let engine = handle.engine.clone();
    run(Some(&engine), || handle.duplicate.note(handle.online.finish()))
}

/// After TEAK_DUPLICATE of this build, or of the one that it began with (which may be NULL): one of the entries, valid
/// until both are freed, and which part it was.
#[no_mangle]
pub unsafe extern "C" fn teak_online_duplicate_entry(
    handle: *const OnlineHandle,
    build: *const BuildHandle,
    part: *mut u32,
) -> RawEntryView {
    // SAFETY: both are open or NULL and used by one thread.
    let (handle, build) = unsafe { (handle.as_ref(), build.as_ref()) };
    let none = Duplicate::default();
    let duplicate = build.map(BuildHandle::duplicate).or_else(|| handle.map(|handle| &handle.duplicate));
    // SAFETY: by the contract of the header.
    unsafe { duplicate.unwrap_or(&none).entry(part) }
}

/// The row with this key, as of what the trees have the entries of. Valid until the next call.
#[no_mangle]
pub unsafe extern "C" fn teak_online_row(
    handle: *mut OnlineHandle,
    pk: RawBytes,
    row: *mut RawBytes,
) -> Status {
    // SAFETY: the handle is open or NULL and used by one thread; the key is readable.
    let (handle, pk) = unsafe { (handle.as_mut(), pk.slice()) };
    let Some(OnlineHandle { engine, online, row: kept, .. }) = handle else { return Status::Misuse };
    run(Some(engine), || {
        *kept = online.row(pk)?.ok_or(Stop::NotFound)?;
        // SAFETY: by the contract of the header.
        unsafe { put(row, RawBytes::of(kept)) };
        Ok(())
    })
}

/// Nothing is noted any more. NULL is ignored.
#[no_mangle]
pub unsafe extern "C" fn teak_online_free(handle: *mut OnlineHandle) {
    if !handle.is_null() {
        // SAFETY: `teak_online_new` made the box, and the shim does not use the handle again.
        value(None, (), || drop(unsafe { Box::from_raw(handle) }));
    }
}
