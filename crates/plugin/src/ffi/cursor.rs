//! Reading.

use teak_core::LockMode;

use super::border::{
    end, put, Bytes, CursorHandle, Out, RawBound, RawBytes, RawEntryView, SessionHandle, TableHandle,
};
use super::guard::{run, value};
use super::session::with_reader;
use super::status::Status;
use super::table::with_table;
use super::window::{Pace, RawWindow};
use teak_rows::bounds::Start;
use teak_rows::outcome::{Result, Stop};
use teak_rows::scan::{Busy, Read, Sight, TableCursor};
use teak_rows::session::Session;

/// How a read sees: consistent, takes the snapshot if there is none; no locks, no waits. One of the first four is or'ed
/// with any of those after them.
pub const TEAK_READ_SNAPSHOT: u32 = 0x00;
/// The newest committed, locked shared.
pub const TEAK_READ_SHARED: u32 = 0x01;
/// The newest committed, locked exclusive.
pub const TEAK_READ_EXCLUSIVE: u32 = 0x02;
/// The newest committed, no locks.
pub const TEAK_READ_LATEST: u32 = 0x03;
/// Locked rows are not waited for: TEAK_WOULD_BLOCK.
pub const TEAK_READ_NOWAIT: u32 = 0x10;
/// Locked rows are passed over; at REPEATABLE READ no range is locked either.
pub const TEAK_READ_SKIP_LOCKED: u32 = 0x20;
/// Never lock ranges (a table nobody else can write to).
pub const TEAK_READ_NO_RANGE: u32 = 0x40;
/// In a scan of the rows at READ COMMITTED, locked rows are not waited for but returned as they were committed last:
/// teak_cursor_is_unlocked. Elsewhere it says nothing.
pub const TEAK_READ_SEMI_CONSISTENT: u32 = 0x80;
/// What of the flags says how a read sees.
const SIGHT: u32 = 0x0F;

/// Where a cursor is placed. Prefix semantics as for bounds: "at" the key = begins with its bytes. This one:
/// key ignored; then next.
pub const TEAK_SEEK_FIRST: u32 = 0;
/// Key ignored; then prev.
pub const TEAK_SEEK_LAST: u32 = 1;
/// HA_READ_KEY_OR_NEXT; HA_READ_KEY_EXACT with the same key as a bound that is inside; then next.
pub const TEAK_SEEK_AT_OR_AFTER: u32 = 2;
/// HA_READ_AFTER_KEY: behind all keys that begin with it; then next.
pub const TEAK_SEEK_AFTER: u32 = 3;
/// HA_READ_PREFIX_LAST_OR_PREV, HA_READ_KEY_OR_PREV; HA_READ_PREFIX_LAST with the same key as a bound that is inside:
/// the last key that begins with it or is smaller; then prev.
pub const TEAK_SEEK_AT_OR_BEFORE: u32 = 4;
/// HA_READ_BEFORE_KEY; then prev.
pub const TEAK_SEEK_BEFORE: u32 = 5;

fn read(flags: u32) -> Result<Read> {
    let sight = match flags & SIGHT {
        TEAK_READ_SNAPSHOT => Sight::Snapshot,
        TEAK_READ_SHARED => Sight::Locking(LockMode::Shared),
        TEAK_READ_EXCLUSIVE => Sight::Locking(LockMode::Exclusive),
        TEAK_READ_LATEST => Sight::Latest,
        _ => return Err(Stop::Misuse("mode of a read")),
    };
    let busy = match flags & (TEAK_READ_NOWAIT | TEAK_READ_SKIP_LOCKED) {
        TEAK_READ_NOWAIT => Busy::Fail,
        0 if flags & TEAK_READ_SEMI_CONSISTENT != 0 => Busy::AsCommitted,
        0 => Busy::Wait,
        _ => Busy::Skip,
    };
    Ok(Read { sight, busy, ranges: flags & TEAK_READ_NO_RANGE == 0 })
}

fn start(seek: u32) -> Result<Start> {
    match seek {
        TEAK_SEEK_FIRST => Ok(Start::First),
        TEAK_SEEK_LAST => Ok(Start::Last),
        TEAK_SEEK_AT_OR_AFTER => Ok(Start::AtOrAfter),
        TEAK_SEEK_AFTER => Ok(Start::After),
        TEAK_SEEK_AT_OR_BEFORE => Ok(Start::AtOrBefore),
        TEAK_SEEK_BEFORE => Ok(Start::Before),
        _ => Err(Stop::Misuse("kind of seek")),
    }
}

/// Runs `body` with session and cursor, then stores what the cursor stands on.
fn with_cursor(
    session: Option<&SessionHandle>,
    cursor: Option<&mut CursorHandle>,
    out: Out<'_, RawEntryView>,
    body: impl FnOnce(&mut Session, &mut TableCursor) -> Result<()>,
) -> Status {
    with_reader(session, |session| {
        let handle = cursor.ok_or(Stop::Misuse("no cursor"))?;
        handle.settle_for(session);
        handle.placed();
        body(session, &mut handle.cursor)?;
        put(out, RawEntryView::of(&handle.cursor)?);
        Ok(())
    })
}

/// Moves a cursor by `step`, stores what it stands on, and may open its window.
fn moving(
    session: Option<&SessionHandle>,
    cursor: Option<&mut CursorHandle>,
    out: Out<'_, RawEntryView>,
    step: fn(&mut TableCursor, &mut Session) -> Result<()>,
) -> Status {
    with_reader(session, |state| {
        let handle = cursor.ok_or(Stop::Misuse("no cursor"))?;
        handle.settle_for(state);
        step(&mut handle.cursor, state)?;
        put(out, RawEntryView::of(&handle.cursor)?);
        session.map_or(Ok(()), |of| handle.moved(state, &of.windows))
    })
}

/// `unique`: the tree is of a unique index (its values begin with length and primary key); 0 for tree 0.
#[no_mangle]
pub extern "C" fn teak_cursor_new(
    table: Option<&TableHandle>,
    tree: u32,
    unique: u8,
    out: Out<'_, Box<CursorHandle>>,
) -> Status {
    with_table(table, |t| {
        let cursor = TableCursor::new(t.table.clone(), tree, unique != 0)?;
        let (window, pace) = (RawWindow::closed(), Pace::default());
        put(out, Box::new(CursorHandle { engine: t.engine.clone(), window, pace, cursor }));
        Ok(())
    })
}

/// What may be walked over without calls; as long as the cursor.
#[no_mangle]
pub extern "C" fn teak_cursor_window(cursor: Option<&mut CursorHandle>) -> *mut RawWindow {
    cursor.map_or(std::ptr::null_mut(), |cursor| &mut cursor.window)
}

/// NULL is ignored.
#[no_mangle]
pub extern "C" fn teak_cursor_free(cursor: Option<Box<CursorHandle>>) {
    value(None, (), || drop(cursor));
}

/// Keys that the cursor is going to be asked for, or whose beginnings, in ascending order; each behind its length (two
/// bytes, little-endian), in any order. They are a hint, and forgotten with the next reset.
#[no_mangle]
pub extern "C" fn teak_cursor_expect(cursor: Option<&mut CursorHandle>, keys: Bytes<'_>) {
    if let Some(handle) = cursor {
        let engine = handle.engine.clone();
        value(Some(&engine), (), || handle.cursor.expect(keys.slice()));
    }
}

/// Lets go of the pinned block and the position (index_end, reset, end of statement).
#[no_mangle]
pub extern "C" fn teak_cursor_reset(cursor: Option<&mut CursorHandle>) {
    if let Some(handle) = cursor {
        let engine = handle.engine.clone();
        value(Some(&engine), (), || {
            handle.settle_alone();
            handle.cursor.reset();
        });
    }
}

/// Places a cursor. `bound` (may be NULL) bounds the scan in its direction: upper bound for scans that go on with next,
/// lower bound for prev. Past it the answer is TEAK_NOT_FOUND (seek) or TEAK_END (next, prev), and nothing there is
/// locked. The bound and the flags (`TEAK_READ_...`) hold for the following next and prev. prev after an upward seek,
/// or next after a downward one, is allowed; the bound does not apply against its direction.
///
/// Locking modes on tree 0: the row is locked, then read again under the lock; rows that went away meanwhile are passed
/// over. A row that another transaction has inserted and not committed is waited for. At REPEATABLE READ with strict
/// snapshot isolation a row that was changed after an existing snapshot is TEAK_CONFLICT.
///
/// Locking modes on an index tree: the entry comes back *unlocked* (evaluate the pushed condition on it), then
/// teak_fetch_row locks. It may be the entry of a transaction that has not committed: without teak_fetch_row it must
/// not reach the user.
///
/// Both lock the key range they pass (REPEATABLE READ and SERIALIZABLE) against inserts of others.
#[no_mangle]
pub extern "C" fn teak_cursor_seek(
    session: Option<&SessionHandle>,
    cursor: Option<&mut CursorHandle>,
    seek: u32,
    key: Bytes<'_>,
    bound: Option<&RawBound<'_>>,
    flags: u32,
    out: Out<'_, RawEntryView>,
) -> Status {
    with_reader(session, |state| {
        let handle = cursor.ok_or(Stop::Misuse("no cursor"))?;
        handle.settle_for(state);
        handle.placed();
        handle.cursor.seek(state, start(seek)?, key.slice(), end(bound)?, read(flags)?)?;
        put(out, RawEntryView::of(&handle.cursor)?);
        session.map_or(Ok(()), |of| handle.found_first(state, &of.windows))
    })
}

/// Goes to the next entry.
#[no_mangle]
pub extern "C" fn teak_cursor_next(
    session: Option<&SessionHandle>,
    cursor: Option<&mut CursorHandle>,
    out: Out<'_, RawEntryView>,
) -> Status {
    moving(session, cursor, out, TableCursor::next)
}

/// Goes to the previous entry.
#[no_mangle]
pub extern "C" fn teak_cursor_prev(
    session: Option<&SessionHandle>,
    cursor: Option<&mut CursorHandle>,
    out: Out<'_, RawEntryView>,
) -> Status {
    moving(session, cursor, out, TableCursor::prev)
}

/// The entry with exactly this key (rnd_pos, primary key or unique key given whole): only that row, or that one missing
/// key, is locked. The cursor can be moved from there by next/prev. Of keys that a snapshot is asked for in ascending
/// order the shim finds most in the window.
#[no_mangle]
pub extern "C" fn teak_cursor_get(
    session: Option<&SessionHandle>,
    cursor: Option<&mut CursorHandle>,
    key: Bytes<'_>,
    flags: u32,
    out: Out<'_, RawEntryView>,
) -> Status {
    with_reader(session, |state| {
        let handle = cursor.ok_or(Stop::Misuse("no cursor"))?;
        handle.settle_for(state);
        handle.placed();
        let (key, read) = (key.slice(), read(flags)?);
        let ascends = read.sight == Sight::Snapshot && handle.cursor.key() < key;
        handle.cursor.get(state, key, read)?;
        put(out, RawEntryView::of(&handle.cursor)?);
        session.map_or(Ok(()), |of| handle.looked_up(ascends, state, &of.windows))
    })
}

/// The row with this key, which teak_look has found and locked to be changed, as it is now: it is no error that the
/// table's content is younger than the session's snapshot. TEAK_NOT_FOUND: the session has deleted it since.
#[no_mangle]
pub extern "C" fn teak_cursor_get_held(
    session: Option<&SessionHandle>,
    row: Option<&mut CursorHandle>,
    pk: Bytes<'_>,
    out: Out<'_, RawEntryView>,
) -> Status {
    with_cursor(session, row, out, |session, row| row.get_held(session, pk.slice()))
}

/// The row of the index entry that `index` stands on. `row` is a cursor on tree 0, `pk` the primary key the shim took
/// from the entry (may point into `index`'s memory). Flags as for the seek that found the entry.
///
/// TEAK_READ_SNAPSHOT: reads the row as of the snapshot. TEAK_READ_SHARED, TEAK_READ_EXCLUSIVE: locks the row, checks
/// that the index entry is still there, reads the row.
///
/// TEAK_NOT_FOUND: the entry is stale or (SKIP LOCKED) its row is locked: go on with next or prev. The index cursor's
/// memory is invalid after a locking fetch: take key and value from `entry` (filled if not NULL) for a covering read.
#[allow(clippy::missing_safety_doc)] // Two cursors that are told apart before they are references.
#[no_mangle]
pub unsafe extern "C" fn teak_fetch_row(
    session: Option<&SessionHandle>,
    index: *mut CursorHandle,
    row: *mut CursorHandle,
    pk: RawBytes,
    flags: u32,
    out: Out<'_, RawEntryView>,
    entry: Out<'_, RawEntryView>,
) -> Status {
    if std::ptr::eq(index, row) {
        return run(None, || Err(Stop::Misuse("the row and its entry have the same cursor")));
    }
    // SAFETY: the handles are NULL or open and used by this thread and, as just checked, different; the key is readable
    // until the index cursor moves, which `fetch` minds.
    let (index, row, pk) = unsafe { (index.as_mut(), row.as_mut(), pk.slice()) };
    with_cursor(session, row, out, |session, row| {
        let index = index.ok_or(Stop::Misuse("no index cursor"))?;
        let read = read(flags)?;
        if read.sight != Sight::Snapshot {
            index.settle_for(session);
        }
        row.fetch(session, &mut index.cursor, pk, read)?;
        if entry.is_some() {
            index.settle_for(session);
            put(entry, RawEntryView::of(&index.cursor)?);
        }
        Ok(())
    })
}

/// The newest committed version (or the transaction's own) of the entry that a locking cursor stands on, whose version
/// may be that of a transaction that has not committed. TEAK_NOT_FOUND: there is none. Valid until the session's next
/// call.
#[no_mangle]
pub extern "C" fn teak_cursor_committed(
    session: Option<&SessionHandle>,
    index: Option<&mut CursorHandle>,
    out: Out<'_, RawEntryView>,
) -> Status {
    with_reader(session, |session| {
        let index = index.ok_or(Stop::Misuse("no index cursor"))?;
        index.settle_for(session);
        let index = &index.cursor;
        let value = index.committed(session)?;
        put(out, RawEntryView { key: RawBytes::of(index.key()), value: RawBytes::of(value) });
        Ok(())
    })
}

/// handler::unlock_row: the row last returned by this tree-0 cursor did not match. Its lock is released at READ
/// COMMITTED, if this read took it.
#[no_mangle]
pub extern "C" fn teak_cursor_unlock_row(session: Option<&SessionHandle>, row: Option<&mut CursorHandle>) {
    let _ = with_reader(session, |session| {
        let row = row.ok_or(Stop::Misuse("no cursor"))?;
        row.settle_for(session);
        row.cursor.unlock_row(session);
        Ok(())
    });
}

/// handler::was_semi_consistent_read: whether the row last returned by this tree-0 cursor is as it was committed last,
/// and another transaction has it locked. Then next, or prev, returns it once more, locked, unless
/// teak_cursor_unlock_row is called before.
#[no_mangle]
pub extern "C" fn teak_cursor_is_unlocked(row: Option<&CursorHandle>) -> u8 {
    row.map_or(0, |row| u8::from(row.cursor.is_unlocked()))
}
