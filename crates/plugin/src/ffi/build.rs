//! Building indexes.

use super::border::{put, Array, Bytes, Context, Out, RawBytes, RawEntryView, TableHandle};
use super::feed::{place_of, report, WatchFunction};
use super::guard::{run, value};
use super::status::Status;
use super::table::{places, with_table};
use std::sync::Arc;
use teak_core::server::{Table, TreeBuild};
use teak_core::Error;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};
use teak_rows::unique::primary_key;

/// A build fills trees that are empty and that nobody else uses, from entries in any order and without the log. After a
/// crash before teak_build_finish returns they are empty.
pub struct BuildHandle {
    pub(super) engine: Arc<EngineHandle>,
    pub(super) table: Arc<Table>,
    parts: usize,
    /// `None`: finished.
    pub(super) build: Option<TreeBuild>,
    /// What the build ended with, if two entries had one key: which part, and the value of one of them.
    duplicate: Duplicate,
}

/// What a build ended with, if two rows have one key: which part, the key, and the value of one entry.
#[derive(Default)]
pub(super) struct Duplicate(Option<(usize, Vec<u8>, Vec<u8>)>);

impl Duplicate {
    /// Keeps what there is to tell of an outcome.
    pub(super) fn note<T>(&mut self, outcome: teak_core::Result<T>) -> Result<T> {
        if let Err(Error::DuplicateEntry { part, key, value }) = &outcome {
            self.0 = Some((*part, key.clone(), value.clone()));
        }
        Ok(outcome?)
    }

    /// The primary key of one of the rows, and which part it was.
    pub(super) fn told(&self, part: Out<'_, u32>) -> RawBytes {
        let Some((number, _, value)) = &self.0 else { return RawBytes::NONE };
        put(part, *number as u32);
        primary_key(value).map_or(RawBytes::NONE, RawBytes::of)
    }

    /// The entry, and which part it was.
    pub(super) fn entry(&self, part: Out<'_, u32>) -> RawEntryView {
        let Some((number, key, value)) = &self.0 else {
            return RawEntryView { key: RawBytes::NONE, value: RawBytes::NONE };
        };
        put(part, *number as u32);
        RawEntryView { key: RawBytes::of(key), value: RawBytes::of(value) }
    }
}

impl BuildHandle {
    pub(super) fn new(
        engine: &Arc<EngineHandle>,
        table: &Arc<Table>,
        parts: usize,
        build: TreeBuild,
    ) -> BuildHandle {
        let (engine, table) = (engine.clone(), table.clone());
        BuildHandle { engine, table, parts, build: Some(build), duplicate: Duplicate::default() }
    }

    pub(super) fn duplicate(&self) -> &Duplicate {
        &self.duplicate
    }
}

/// Begins a build of the trees with the numbers `trees`. `sort_bytes`: memory for sorting; what is more goes to
/// temporary files.
#[no_mangle]
pub extern "C" fn teak_build_new(
    handle: Option<&TableHandle>,
    trees: Array<'_, u32>,
    sort_bytes: u64,
    out: Out<'_, Box<BuildHandle>>,
) -> Status {
    with_table(handle, |t| {
        let places = places(t, trees.slice())?;
        let build = t.engine.core.build_trees(&t.table, &places, sort_bytes)?;
        put(out, Box::new(BuildHandle::new(&t.engine, &t.table, places.len(), build)));
        Ok(())
    })
}

/// An entry for the `part`-th of the trees.
#[no_mangle]
pub extern "C" fn teak_build_add(
    handle: Option<&mut BuildHandle>,
    part: u32,
    key: Bytes<'_>,
    value: Bytes<'_>,
) -> Status {
    let Some(BuildHandle { engine, parts, build, .. }) = handle else { return Status::Misuse };
    run(Some(engine), || {
        let build = build.as_mut().ok_or(Stop::Misuse("a build that is finished"))?;
        Ok(build.add(place_of(part, *parts)?, key.slice(), value.slice())?)
    })
}

/// teak_build_feed is to call `reader` on its own thread only.
#[no_mangle]
pub extern "C" fn teak_build_use_one_thread(handle: Option<&mut BuildHandle>) {
    if let Some(build) = handle.and_then(|handle| handle.build.as_mut()) {
        build.use_one_thread();
    }
}

/// Sorts, loads and, unless it is of teak_online_build, makes a checkpoint; `watch` is as in teak_row_reader, with
/// entries of all trees. TEAK_DUPLICATE if two entries of a unique index have one key. Not to be called twice; the
/// build is freed all the same.
#[no_mangle]
pub extern "C" fn teak_build_finish(
    handle: Option<&mut BuildHandle>,
    watch: WatchFunction,
    context: Context,
) -> Status {
    let Some(BuildHandle { engine, build, duplicate, .. }) = handle else { return Status::Misuse };
    run(Some(engine), || {
        let build = build.take().ok_or(Stop::Misuse("a build that is finished"))?;
        duplicate.note(build.finish(|entries| report(watch, context, entries)))
    })
}

/// Entries that it has taken.
#[no_mangle]
pub extern "C" fn teak_build_entries(handle: Option<&BuildHandle>) -> u64 {
    handle.and_then(|handle| handle.build.as_ref()).map_or(0, TreeBuild::entries)
}

/// After TEAK_DUPLICATE: the primary key of one of the rows, valid until the build is freed, and which part it was.
#[no_mangle]
pub extern "C" fn teak_build_duplicate(handle: Option<&BuildHandle>, part: Out<'_, u32>) -> RawBytes {
    handle.map_or(RawBytes::NONE, |handle| handle.duplicate.told(part))
}

/// NULL is ignored.
#[no_mangle]
pub extern "C" fn teak_build_free(handle: Option<Box<BuildHandle>>) {
    value(None, (), || drop(handle));
}
