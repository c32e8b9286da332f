//! Building indexes, or a whole table, while others write the rows.

use std::sync::Arc;

use super::border::{put, Array, Bytes, Context, Out, RawBytes, RawEntryView, TableHandle};
use super::build::{BuildHandle, Duplicate};
use super::feed::{report, RawRowReader, RowSource};
use super::guard::{run, value};
use super::status::Status;
use super::table::{places, with_table};
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
pub extern "C" fn teak_online_new(
    handle: Option<&TableHandle>,
    into: Option<&TableHandle>,
    trees: Array<'_, u32>,
    sort_bytes: u64,
    label: u64,
    out: Out<'_, Box<OnlineHandle>>,
) -> Status {
    with_table(handle, |t| {
        let into = into.ok_or(Stop::Misuse("no table"))?;
        let places = places(into, trees.slice())?;
        let online = t.engine.core.build_online(&t.table, &into.table, &places, sort_bytes, label)?;
        let (engine, table) = (t.engine.clone(), t.table.clone());
        let (parts, duplicate, row) = (places.len(), Duplicate::default(), Vec::new());
        put(out, Box::new(OnlineHandle { engine, table, parts, online, duplicate, row }));
        Ok(())
    })
}

/// The build of all rows as they were when it began: to be fed and finished before teak_online_catch_up.
#[no_mangle]
pub extern "C" fn teak_online_build(
    handle: Option<&mut OnlineHandle>,
    out: Out<'_, Box<BuildHandle>>,
) -> Status {
    let Some(OnlineHandle { engine, table, parts, online, .. }) = handle else { return Status::Misuse };
    run(Some(engine), || {
        put(out, Box::new(BuildHandle::new(engine, table, *parts, online.build()?)));
        Ok(())
    })
}

/// Keys that were written since the last teak_online_catch_up, each as often as it was written.
#[no_mangle]
pub extern "C" fn teak_online_noted(handle: Option<&OnlineHandle>) -> u64 {
    handle.map_or(0, |handle| value(Some(&handle.engine), 0, || handle.online.noted()))
}

/// Brings the trees up to now. `reader` is called on this thread; `looked_at` is how many rows have changed.
/// TEAK_DUPLICATE if so many of them have the key of another that it is not worth going on.
#[no_mangle]
pub extern "C" fn teak_online_catch_up(
    handle: Option<&mut OnlineHandle>,
    reader: Option<&RawRowReader>,
    context: Context,
    looked_at: Out<'_, u64>,
) -> Status {
    let (Some(handle), Some(reader)) = (handle, reader) else { return Status::Misuse };
    let (engine, table) = (handle.engine.clone(), handle.table.clone());
    run(Some(&engine), || {
        let source = RowSource { engine: &engine, table: &table };
        let mut maker = reader.maker(context, &source)?;
        let make = |pk: &[u8], row: &[u8], feed: &mut Feed| maker.row(pk, row, feed);
        let outcome = handle.online.catch_up(make, |done| report(reader.watch, context, done));
        let keys = handle.duplicate.note(outcome)?;
        put(looked_at, keys);
        Ok(())
    })
}

/// After the last teak_online_catch_up, since which nobody has written. TEAK_DUPLICATE if two rows have one key.
#[no_mangle]
pub extern "C" fn teak_online_finish(handle: Option<&mut OnlineHandle>) -> Status {
    let Some(handle) = handle else { return Status::Misuse };
    let engine = handle.engine.clone();
    run(Some(&engine), || handle.duplicate.note(handle.online.finish()))
}

/// After TEAK_DUPLICATE of this build, or of the one that it began with (which may be NULL): one of the entries, valid
/// until both are freed, and which part it was.
#[no_mangle]
pub extern "C" fn teak_online_duplicate_entry(
    handle: Option<&OnlineHandle>,
    build: Option<&BuildHandle>,
    part: Out<'_, u32>,
) -> RawEntryView {
    let none = Duplicate::default();
    let duplicate = build.map(BuildHandle::duplicate).or_else(|| handle.map(|handle| &handle.duplicate));
    duplicate.unwrap_or(&none).entry(part)
}

/// The row with this key, as of what the trees have the entries of. Valid until the next call.
#[no_mangle]
pub extern "C" fn teak_online_row(
    handle: Option<&mut OnlineHandle>,
    pk: Bytes<'_>,
    row: Out<'_, RawBytes>,
) -> Status {
    let Some(OnlineHandle { engine, online, row: kept, .. }) = handle else { return Status::Misuse };
    run(Some(engine), || {
        *kept = online.row(pk.slice())?.ok_or(Stop::NotFound)?;
        put(row, RawBytes::of(kept));
        Ok(())
    })
}

/// Nothing is noted any more. NULL is ignored.
#[no_mangle]
pub extern "C" fn teak_online_free(handle: Option<Box<OnlineHandle>>) {
    value(None, (), || drop(handle));
}
