//! Reading.

use teak_core::LockMode;

use super::border::{end, put, CursorHandle, RawBound, RawBytes, RawEntryView, SessionHandle, TableHandle};
use super::guard::{run, value};
use super::session::with_reader;
use super::status::Status;
use super::window::{windows_of, Pace, RawWindow};
use teak_rows::bounds::Start;
use teak_rows::outcome::{Result, Stop};
use teak_rows::scan::{Busy, Read, Sight, TableCursor};
use teak_rows::session::Session;

fn read(flags: u32) -> Result<Read> {
    let sight = match flags & 0x0F {
        0 => Sight::Snapshot,
        1 => Sight::Locking(LockMode::Shared),
        2 => Sight::Locking(LockMode::Exclusive),
        3 => Sight::Latest,
        _ => return Err(Stop::Misuse("mode of a read")),
    };
    let busy = match flags & 0x30 {
        0x10 => Busy::Fail,
        0 => Busy::Wait,
        _ => Busy::Skip,
    };
    Ok(Read { sight, busy, ranges: flags & 0x40 == 0 })
}

fn start(seek: u32) -> Result<Start> {
    match seek {
        0 => Ok(Start::First),
        1 => Ok(Start::Last),
        2 => Ok(Start::AtOrAfter),
        3 => Ok(Start::After),
        4 => Ok(Start::AtOrBefore),
        5 => Ok(Start::Before),
        _ => Err(Stop::Misuse("kind of seek")),
    }
}

/// Runs `body` with session and cursor, then stores what the cursor stands on.
///
/// # Safety
/// The handles are NULL or open and used by this thread; `out` is writable or NULL.
unsafe fn with_cursor(
    session: *const SessionHandle,
    cursor: *mut CursorHandle,
    out: *mut RawEntryView,
    body: impl FnOnce(&mut Session, &mut TableCursor) -> Result<()>,
) -> Status {
    // SAFETY: by the contract of this function.
    unsafe {
        with_reader(session, |session| {
            let handle = cursor.as_mut().ok_or(Stop::Misuse("no cursor"))?;
            handle.settle_for(session);
            handle.placed();
            body(session, &mut handle.cursor)?;
            put(out, RawEntryView::of(&handle.cursor)?);
            Ok(())
        })
    }
}

/// Moves a cursor by `step`, stores what it stands on, and may open its window.
///
/// # Safety
/// As [`with_cursor`].
unsafe fn moving(
    session: *const SessionHandle,
    cursor: *mut CursorHandle,
    out: *mut RawEntryView,
    step: fn(&mut TableCursor, &mut Session) -> Result<()>,
) -> Status {
    // SAFETY: by the contract of this function.
    unsafe {
        with_reader(session, |state| {
            let handle = cursor.as_mut().ok_or(Stop::Misuse("no cursor"))?;
            handle.settle_for(state);
            step(&mut handle.cursor, state)?;
            put(out, RawEntryView::of(&handle.cursor)?);
            windows_of(session).map_or(Ok(()), |windows| handle.moved(state, windows))
        })
    }
}

/// `teak_cursor_new`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_new(
    table: *const TableHandle,
    tree: u32,
    unique: u8,
    out: *mut *mut CursorHandle,
) -> Status {
    // SAFETY: the handle is open or NULL.
    let table = unsafe { table.as_ref() };
    run(table.map(|t| &*t.engine), || {
        let table = table.ok_or(Stop::Misuse("no table"))?;
        let cursor = TableCursor::new(table.table.clone(), tree, unique != 0)?;
        let (window, pace) = (RawWindow::closed(), Pace::default());
        let handle = CursorHandle { engine: table.engine.clone(), window, pace, cursor };
        // SAFETY: the result is writable.
        unsafe { put(out, Box::into_raw(Box::new(handle))) };
        Ok(())
    })
}

/// `teak_cursor_window`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_window(cursor: *mut CursorHandle) -> *mut RawWindow {
    // SAFETY: the handle is open.
    unsafe { cursor.as_mut() }.map_or(std::ptr::null_mut(), |cursor| &mut cursor.window)
}

/// `teak_cursor_free`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_free(cursor: *mut CursorHandle) {
    if !cursor.is_null() {
        // SAFETY: `teak_cursor_new` made the box, and the shim does not use the handle again.
        value(None, (), || drop(unsafe { Box::from_raw(cursor) }));
    }
}

/// `teak_cursor_reset`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_reset(cursor: *mut CursorHandle) {
    // SAFETY: the handle is open or NULL, and used by this thread.
    if let Some(handle) = unsafe { cursor.as_mut() } {
        let engine = handle.engine.clone();
        value(Some(&engine), (), || {
            handle.settle_alone();
            handle.cursor.reset();
        });
    }
}

/// `teak_cursor_seek`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_seek(
    session: *const SessionHandle,
    cursor: *mut CursorHandle,
    seek: u32,
    key: RawBytes,
    bound: *const RawBound,
    flags: u32,
    out: *mut RawEntryView,
) -> Status {
    // SAFETY: the handles are open, key and bound readable, the result writable.
    unsafe {
        with_cursor(session, cursor, out, |session, cursor| {
            cursor.seek(session, start(seek)?, key.slice(), end(bound)?, read(flags)?)
        })
    }
}

/// `teak_cursor_next`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_next(
    session: *const SessionHandle,
    cursor: *mut CursorHandle,
    out: *mut RawEntryView,
) -> Status {
    // SAFETY: the handles are open, the result writable.
    unsafe { moving(session, cursor, out, TableCursor::next) }
}

/// `teak_cursor_prev`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_prev(
    session: *const SessionHandle,
    cursor: *mut CursorHandle,
    out: *mut RawEntryView,
) -> Status {
    // SAFETY: the handles are open, the result writable.
    unsafe { moving(session, cursor, out, TableCursor::prev) }
}

/// `teak_cursor_get`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_get(
    session: *const SessionHandle,
    cursor: *mut CursorHandle,
    key: RawBytes,
    flags: u32,
    out: *mut RawEntryView,
) -> Status {
    // SAFETY: the handles are open, the key readable, the result writable.
    unsafe {
        with_cursor(session, cursor, out, |session, cursor| cursor.get(session, key.slice(), read(flags)?))
    }
}

/// `teak_fetch_row`
#[no_mangle]
pub unsafe extern "C" fn teak_fetch_row(
    session: *const SessionHandle,
    index: *mut CursorHandle,
    row: *mut CursorHandle,
    pk: RawBytes,
    flags: u32,
    out: *mut RawEntryView,
    entry: *mut RawEntryView,
) -> Status {
    if std::ptr::eq(index, row) {
        return run(None, || Err(Stop::Misuse("the row and its entry have the same cursor")));
    }
    // SAFETY: the handles are open and, as just checked, different; the key is readable until the index cursor moves,
    // which `fetch` minds; the results are writable or NULL.
    unsafe {
        with_cursor(session, row, out, |session, row| {
            let index = index.as_mut().ok_or(Stop::Misuse("no index cursor"))?;
            let read = read(flags)?;
            if read.sight != Sight::Snapshot {
                index.settle_for(session);
            }
            row.fetch(session, &mut index.cursor, pk.slice(), read)?;
            if !entry.is_null() {
                index.settle_for(session);
                put(entry, RawEntryView::of(&index.cursor)?);
            }
            Ok(())
        })
    }
}

/// `teak_cursor_committed`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_committed(
    session: *const SessionHandle,
    index: *mut CursorHandle,
    out: *mut RawEntryView,
) -> Status {
    // SAFETY: the handles are open, the result writable.
    unsafe {
        with_reader(session, |session| {
            let index = index.as_mut().ok_or(Stop::Misuse("no index cursor"))?;
            index.settle_for(session);
            let index = &index.cursor;
            let value = index.committed(session)?;
            put(out, RawEntryView { key: RawBytes::of(index.key()), value: RawBytes::of(value) });
            Ok(())
        })
    }
}

/// `teak_cursor_unlock_row`
#[no_mangle]
pub unsafe extern "C" fn teak_cursor_unlock_row(session: *const SessionHandle, row: *mut CursorHandle) {
    // SAFETY: the handles are open. What cannot fail has no status.
    let _ = unsafe {
        with_reader(session, |session| {
            let row = row.as_mut().ok_or(Stop::Misuse("no cursor"))?;
            row.settle_for(session);
            row.cursor.unlock_row(session);
            Ok(())
        })
    };
}
