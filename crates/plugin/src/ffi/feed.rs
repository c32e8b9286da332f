//! Feeding a build or a check with the entries of all rows: the shim's functions, called on several threads.

use super::border::{Bytes, Context, RawBytes, SessionHandle};
use super::build::BuildHandle;
use super::guard::run;
use super::session::with_session;
use super::status::Status;
use std::os::raw::{c_int, c_void};
use teak_core::server::{Feed, Table};
use teak_core::Error;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};
use teak_rows::session::Session;

/// `TEAK_OK` and others, as the shim returns them.
const OK: u32 = Status::Ok as u32;
const INTERRUPTED: u32 = Status::Interrupted as u32;
const CORRUPT: u32 = Status::Corrupt as u32;

/// Told on the calling thread how much is done; not 0: stop.
pub type WatchFunction = Option<unsafe extern "C" fn(context: *mut c_void, done: u64) -> c_int>;

/// What is called for the entries of rows; `context` is that of teak_build_feed, used by all threads at once.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRowReader {
    /// On each thread, once: what the calls below get. NULL: memory is out.
    pub begin: Option<unsafe extern "C" fn(context: *mut c_void) -> *mut c_void>,
    /// Takes one row apart. A teak_status: that of teak_feed_add, TEAK_CORRUPT, TEAK_OUT_OF_MEMORY, or TEAK_INTERRUPTED
    /// if the shim knows why not to go on.
    pub row: Option<unsafe extern "C" fn(*mut c_void, *mut FeedHandle, RawBytes, RawBytes) -> u32>,
    /// What `begin` made is not used any more.
    pub end: Option<unsafe extern "C" fn(maker: *mut c_void)>,
    /// Now and then on the calling thread, with the rows done so far. Not 0: stop (TEAK_INTERRUPTED).
    pub watch: WatchFunction,
}

/// Where a thread puts the entries of a row, for the time of that row.
pub struct FeedHandle<'a> {
    engine: &'a EngineHandle,
    feed: &'a mut Feed,
    /// Why an entry was not taken.
    error: Option<Error>,
}

/// What the shim made for one thread.
pub(super) struct Maker<'a> {
    reader: &'a RawRowReader,
    made: *mut c_void,
    build: &'a RowSource<'a>,
}

/// Whose rows are read.
pub(super) struct RowSource<'a> {
    pub(super) engine: &'a EngineHandle,
    pub(super) table: &'a Table,
}

impl RawRowReader {
    /// What takes rows apart on the calling thread.
    pub(super) fn maker<'a>(
        &'a self,
        context: Context,
        build: &'a RowSource<'a>,
    ) -> teak_core::Result<Maker<'a>> {
        // SAFETY: the function takes the context from any thread.
        let made = self.begin.map_or(std::ptr::null_mut(), |begin| unsafe { begin(context.0) });
        match made.is_null() {
            true => Err(Error::OutOfMemory("reading rows")),
            false => Ok(Maker { reader: self, made, build }),
        }
    }
}

/// The place of a part among so many.
pub(super) fn place_of(part: u32, parts: usize) -> Result<usize> {
    let place = part as usize;
    (place < parts).then_some(place).ok_or(Stop::Misuse("no such part of a build or check"))
}

/// The row with this key is none of the table's.
pub(super) fn unreadable(table: &Table, pk: &[u8]) -> Error {
    Error::corrupt(table.path(), 0, format!("a row that cannot be read, key {pk:02x?}"))
}

/// Calls the shim's function, on the thread that the shim came on.
pub(super) fn report(watch: WatchFunction, context: Context, done: u64) -> teak_core::Result<()> {
    match watch.is_some_and(|watch| context.tell(watch, done) != 0) {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

impl Maker<'_> {
    pub(super) fn row(&mut self, pk: &[u8], row: &[u8], feed: &mut Feed) -> teak_core::Result<()> {
        let Some(take) = self.reader.row else { return Err(Error::OutOfMemory("reading rows")) };
        let mut handle = FeedHandle { engine: self.build.engine, feed, error: None };
        // SAFETY: what was made is this thread's own; key, row and handle live through the call.
        let status = unsafe { take(self.made, &mut handle, RawBytes::of(pk), RawBytes::of(row)) };
        match (handle.error, status) {
            (Some(error), _) => Err(error),
            (None, OK) => Ok(()),
            (None, CORRUPT) => Err(unreadable(self.build.table, pk)),
            (None, INTERRUPTED) => Err(Error::Interrupted),
            (None, _) => Err(Error::OutOfMemory("reading rows")),
        }
    }
}

impl Drop for Maker<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.reader.end {
            // SAFETY: it was made for this thread, and is not used again.
            unsafe { end(self.made) }
        }
    }
}

/// An entry for the `part`-th of the trees, made of the row under way.
#[no_mangle]
pub extern "C" fn teak_feed_add(
    handle: Option<&mut FeedHandle<'_>>,
    part: u32,
    key: Bytes<'_>,
    value: Bytes<'_>,
) -> Status {
    let Some(FeedHandle { engine, feed, error }) = handle else { return Status::Misuse };
    run(Some(engine), || {
        let place = place_of(part, feed.parts())?;
        Ok(feed.add(place, key.slice(), value.slice()).inspect_err(|why| *error = Some(why.clone()))?)
    })
}

/// Takes the entries of all rows, by several threads. The rows are those that the session's transaction sees as the
/// latest, its own included, or, of teak_online_build, those of the build's first snapshot.
#[no_mangle]
pub extern "C" fn teak_build_feed(
    session: Option<&SessionHandle>,
    handle: Option<&mut BuildHandle>,
    reader: Option<&RawRowReader>,
    context: Context,
) -> Status {
    let (Some(BuildHandle { engine, table, build, .. }), Some(reader)) = (handle, reader) else {
        return Status::Misuse;
    };
    let feed = |session: &mut Session| {
        let build = build.as_mut().ok_or(Stop::Misuse("a build that is finished"))?;
        let source = RowSource { engine, table };
        let maker = || {
            let mut maker = reader.maker(context, &source)?;
            Ok(move |pk: &[u8], row: &[u8], feed: &mut Feed| maker.row(pk, row, feed))
        };
        Ok(build.feed(session.txn()?, table.tree(0), maker, |rows| report(reader.watch, context, rows))?)
    };
    with_session(session, feed)
}
