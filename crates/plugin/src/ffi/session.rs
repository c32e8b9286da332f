//! Sessions and transactions.

use std::cell::UnsafeCell;
use std::os::raw::c_void;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::border::{put, RawBytes, SessionHandle, TableHandle};
use super::callbacks::token;
use super::engine::{share, with_engine};
use super::guard::{run, value};
use super::row::RawDuplicate;
use super::status::Status;
use super::window::Windows;
use teak_core::server::Intention;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};
use teak_rows::session::{Level, Session};

/// A savepoint: savepoint_offset = sizeof(teak_savepoint).
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSavepoint {
    pub token: u64,
}

/// Levels of isolation: this one is READ UNCOMMITTED as well.
pub const TEAK_READ_COMMITTED: u32 = 1;
/// REPEATABLE READ.
pub const TEAK_REPEATABLE_READ: u32 = 2;
/// SERIALIZABLE.
pub const TEAK_SERIALIZABLE: u32 = 3;

fn level(isolation: u32) -> Result<Level> {
    match isolation {
        TEAK_READ_COMMITTED => Ok(Level::ReadCommitted),
        TEAK_REPEATABLE_READ => Ok(Level::RepeatableRead),
        TEAK_SERIALIZABLE => Ok(Level::Serializable),
        _ => Err(Stop::Misuse("isolation level")),
    }
}

/// Runs `body` with the session's state. What it changes, no window shows: those that are open end.
///
/// # Safety
/// `handle` is NULL or open, and no other thread works for the session.
pub unsafe fn with_session(
    handle: *const SessionHandle,
    body: impl FnOnce(&mut Session) -> Result<()>,
) -> Status {
    // SAFETY: by the contract of this function.
    if let Some(handle) = unsafe { handle.as_ref() } {
        handle.windows.end_all();
    }
    // SAFETY: likewise.
    unsafe { with_reader(handle, body) }
}

/// Runs `body` with the session's state, in which it changes nothing that a window of the session's cursors shows.
///
/// # Safety
/// As [`with_session`].
pub unsafe fn with_reader(
    handle: *const SessionHandle,
    body: impl FnOnce(&mut Session) -> Result<()>,
) -> Status {
    // SAFETY: by the contract of this function.
    let handle = unsafe { handle.as_ref() };
    run(handle.map(|h| &*h.engine), || {
        let handle = handle.ok_or(Stop::Misuse("no session"))?;
        // SAFETY: one thread works for a session at a time, and none of these functions is called from within another.
        body(unsafe { &mut *handle.state.get() })
    })
}

/// Changes something of the session's state that cannot fail, and so has no status.
///
/// # Safety
/// As [`with_session`].
unsafe fn tell(handle: *const SessionHandle, change: impl FnOnce(&mut Session)) {
    let body = |session: &mut Session| {
        change(session);
        Ok(())
    };
    // SAFETY: by the contract of this function.
    let _ = unsafe { with_session(handle, body) };
}

/// Reads something off the session's state.
///
/// # Safety
/// As [`with_session`].
pub unsafe fn ask<T: Default>(handle: *const SessionHandle, question: impl FnOnce(&Session) -> T) -> T {
    // SAFETY: by the contract of this function.
    let handle = unsafe { handle.as_ref() };
    value(handle.map(|h| &*h.engine), T::default(), || match handle {
        // SAFETY: as in `with_session`.
        Some(handle) => question(unsafe { &*handle.state.get() }),
        None => T::default(),
    })
}

/// A session without a transaction. `thd` must stay valid until teak_session_free; `id` (thread id) labels the session
/// in status texts.
#[no_mangle]
pub unsafe extern "C" fn teak_session_new(
    handle: *const EngineHandle,
    thd: *mut c_void,
    id: u64,
    out: *mut *mut SessionHandle,
) -> Status {
    // SAFETY: the handle is open, the result writable.
    unsafe {
        with_engine(handle, |_| {
            let engine = share(handle)?;
            let session = Session::new(engine.clone(), token(thd), id);
            let tag = session.tag().clone();
            let windows = Windows::default();
            let session = SessionHandle { engine, tag, windows, state: UnsafeCell::new(session) };
            put(out, Box::into_raw(Box::new(session)));
            Ok(())
        })
    }
}

/// Rolls an open transaction back; a prepared one is left to teak_commit_by_xid / teak_rollback_by_xid.
#[no_mangle]
pub unsafe extern "C" fn teak_session_free(session: *mut SessionHandle) {
    if session.is_null() {
        return;
    }
    // SAFETY: `teak_session_new` made the box, and the shim does not use the handle again.
    let session = unsafe { Box::from_raw(session) };
    let engine = session.engine.clone();
    value(Some(&engine), (), || drop(session));
}

/// Where the session's moment is, as long as the session.
#[no_mangle]
pub unsafe extern "C" fn teak_session_moment(session: *const SessionHandle) -> *const u64 {
    // SAFETY: the handle is open or NULL.
    unsafe { session.as_ref() }.map_or(std::ptr::null(), |session| session.windows.moment())
}

/// Memory for sorting rows with TEAK_ROW_SORT.
#[no_mangle]
pub unsafe extern "C" fn teak_session_set_sort_bytes(session: *const SessionHandle, bytes: u64) {
    // SAFETY: the handle is open.
    unsafe { tell(session, |session| session.set_sort_bytes(usize::try_from(bytes).unwrap_or(usize::MAX))) }
}

/// Longest wait for a lock; 50,000 until it is set.
#[no_mangle]
pub unsafe extern "C" fn teak_session_set_lock_wait_timeout(
    session: *const SessionHandle,
    milliseconds: u64,
) {
    // SAFETY: the handle is open.
    unsafe { tell(session, |session| session.set_lock_wait_timeout(Duration::from_millis(milliseconds))) }
}

/// teak_snapshot_isolation: 1 (default) = writing or locking what was committed after the snapshot is TEAK_CONFLICT.
/// Counts from the next teak_txn_begin or teak_txn_set_isolation.
#[no_mangle]
pub unsafe extern "C" fn teak_session_set_snapshot_isolation(session: *const SessionHandle, strict: u8) {
    // SAFETY: the handle is open.
    unsafe { tell(session, |session| session.set_strict(strict != 0)) }
}

/// Does nothing if a transaction is open (but applies the isolation, as teak_txn_set_isolation). `read_only` refuses
/// all writes, also to temporary tables, which READ ONLY transactions of the server may write: leave such checks to the
/// server and pass 0 then.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_begin(
    session: *const SessionHandle,
    isolation: u32,
    read_only: u8,
) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, |session| session.begin(level(isolation)?, read_only != 0)) }
}

/// 0 or 1: a transaction is open.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_is_active(session: *const SessionHandle) -> u8 {
    // SAFETY: the handle is open or NULL.
    u8::from(unsafe { ask(session, Session::is_active) })
}

/// 0 or 1: it has written something.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_has_writes(session: *const SessionHandle) -> u8 {
    // SAFETY: the handle is open or NULL.
    u8::from(unsafe { ask(session, Session::has_writes) })
}

/// 0 or 1: it is prepared.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_is_prepared(session: *const SessionHandle) -> u8 {
    // SAFETY: the handle is open or NULL.
    u8::from(unsafe { ask(session, Session::is_prepared) })
}

/// How many rows it has added to `table`, less those that it has deleted: what the table's statistics do not count yet.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_rows_added(
    session: *const SessionHandle,
    table: *const TableHandle,
) -> i64 {
    // SAFETY: the handles are open or NULL.
    unsafe { table.as_ref().map_or(0, |t| ask(session, |session| session.rows_added(t.table.tree(0)))) }
}

/// Its identifier; 0: there is none.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_id(session: *const SessionHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    unsafe { ask(session, Session::txn_id) }
}

/// 0 or 1: it has locks, which it keeps to its end.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_has_locks(session: *const SessionHandle) -> u8 {
    // SAFETY: the handle is open or NULL.
    u8::from(unsafe { ask(session, Session::has_locks) })
}

/// Flag of teak_table_wait_for_holders: prepared transactions that have written to the table.
pub const TEAK_HOLDERS_PREPARED: u32 = 1;
/// Flag of teak_table_wait_for_holders: transactions that have looked at the table with TEAK_LOOK_COUNTS_ON.
pub const TEAK_HOLDERS_LOOKS: u32 = 2;

/// Before anything that changes what a table is made of, or reads its rows to make it anew: waits until no other
/// transaction holds it in one of these ways, as long as the session waits for locks, then TEAK_UNDECIDED if it is
/// prepared, else TEAK_LOCK_TIMEOUT. The session's KILL ends it. The metadata lock is to keep writers out, and looks.
#[no_mangle]
pub unsafe extern "C" fn teak_table_wait_for_holders(
    session: *const SessionHandle,
    name: RawBytes,
    flags: u32,
) -> Status {
    let all = [(TEAK_HOLDERS_PREPARED, Intention::Prepared), (TEAK_HOLDERS_LOOKS, Intention::Looked)];
    let asked: Vec<Intention> =
        all.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, kind)| *kind).collect();
    // SAFETY: the handle is open, the name readable.
    unsafe { with_session(session, |session| session.wait_for_holders(name.name()?, &asked)) }
}

/// Per statement; a snapshot already taken stays.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_set_isolation(session: *const SessionHandle, isolation: u32) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, |session| session.set_level(level(isolation)?)) }
}

/// START TRANSACTION WITH CONSISTENT SNAPSHOT; otherwise the first consistent read takes it.
#[no_mangle]
pub unsafe extern "C" fn teak_open_snapshot(session: *const SessionHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, |session| session.open_snapshot().map(drop)) }
}

/// What the open transaction writes to `table`, which no other session has seen, is how the table begins: snapshots
/// from before the commit get TEAK_TABLE_CHANGED, not an empty table.
#[no_mangle]
pub unsafe extern "C" fn teak_txn_founds(session: *const SessionHandle, table: *const TableHandle) -> Status {
    // SAFETY: the handles are open.
    unsafe {
        with_session(session, |session| {
            let t = table.as_ref().ok_or(Stop::Misuse("no table"))?;
            session.txn()?.founds(&t.table);
            Ok(())
        })
    }
}

/// A statement begins (once each statement, after teak_txn_begin): the point a statement rollback returns to.
#[no_mangle]
pub unsafe extern "C" fn teak_statement_begin(session: *const SessionHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, Session::statement_begin) }
}

/// No more rows of the table with TEAK_ROW_APPEND follow. May wait for range locks; after an error the statement is to
/// be rolled back, or, if `drops` is not 0, the table to be dropped. TEAK_DUPLICATE, only after rows with
/// TEAK_ROW_SORT, fills `*duplicate`.
#[no_mangle]
pub unsafe extern "C" fn teak_append_end(
    session: *const SessionHandle,
    table: *const TableHandle,
    drops: u32,
    duplicate: *mut RawDuplicate,
) -> Status {
    // SAFETY: the handles are open, the result writable or NULL.
    unsafe {
        with_session(session, |session| {
            let table = table.as_ref().ok_or(Stop::Misuse("no table"))?;
            let result = session.finish_rows(&table.table, drops != 0);
            if matches!(result, Err(Stop::Duplicate)) {
                put(duplicate, RawDuplicate::of(&session.collision));
            }
            result
        })
    }
}

/// It ended inside a transaction that goes on. READ COMMITTED drops the snapshot.
#[no_mangle]
pub unsafe extern "C" fn teak_statement_commit(session: *const SessionHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, Session::statement_commit) }
}

/// Undoes its writes, keeps its locks.
#[no_mangle]
pub unsafe extern "C" fn teak_statement_rollback(session: *const SessionHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, Session::statement_rollback) }
}

/// A savepoint of the transaction as it is now.
#[no_mangle]
pub unsafe extern "C" fn teak_savepoint_set(session: *const SessionHandle, out: *mut RawSavepoint) -> Status {
    // SAFETY: the handle is open, the result writable.
    unsafe {
        with_session(session, |session| {
            put(out, RawSavepoint { token: session.savepoint()? });
            Ok(())
        })
    }
}

/// Undoes what was written since. Locks taken since are kept.
#[no_mangle]
pub unsafe extern "C" fn teak_savepoint_rollback(
    session: *const SessionHandle,
    savepoint: *const RawSavepoint,
) -> Status {
    // SAFETY: the handle is open, the savepoint readable.
    unsafe {
        with_session(session, |session| {
            let savepoint = savepoint.as_ref().ok_or(Stop::Misuse("no savepoint"))?;
            session.savepoint_rollback(savepoint.token)
        })
    }
}

/// First phase of a two-phase commit: durable (as commit_flush says), synced once a group. The transaction goes on.
/// `is_external` 0: a restart need not know of the transaction if all its writes are in memory alone.
#[no_mangle]
pub unsafe extern "C" fn teak_prepare(
    session: *const SessionHandle,
    xid: RawBytes,
    is_external: u8,
) -> Status {
    // SAFETY: the handle is open, the xid readable.
    unsafe { with_session(session, |session| session.prepare(xid.slice(), is_external != 0)) }
}

/// After `teak_prepare`: publishes, no I/O; then `teak_commit` ends it.
#[no_mangle]
pub unsafe extern "C" fn teak_commit_ordered(session: *const SessionHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, Session::commit_ordered) }
}

/// Ends the transaction (`teak_txn_is_active` becomes 0); without one it is TEAK_OK, as is `teak_rollback`. On an error
/// it was rolled back; a prepared one stays prepared (recover).
#[no_mangle]
pub unsafe extern "C" fn teak_commit(session: *const SessionHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, Session::commit) }
}

/// Undoes all its writes and ends it.
#[no_mangle]
pub unsafe extern "C" fn teak_rollback(session: *const SessionHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, Session::try_rollback) }
}

/// kill_query, from any thread: wakes the session if it waits for a lock; `is_killed` then decides.
#[no_mangle]
pub unsafe extern "C" fn teak_interrupt(session: *const SessionHandle) {
    // SAFETY: the handle is open or NULL; only the parts that any thread may use are touched.
    let Some(handle) = (unsafe { session.as_ref() }) else { return };
    // Without transaction (0) it may wait to change a table.
    value(Some(&handle.engine), (), || handle.engine.core.interrupt(handle.tag.txn.load(Ordering::SeqCst)))
}
