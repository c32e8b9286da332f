//! Sessions and transactions.

use std::cell::UnsafeCell;
use std::os::raw::c_void;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use super::border::{put, Bytes, Out, SessionHandle, TableHandle};
use super::callbacks::token;
use super::engine::with_engine;
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
pub fn with_session(handle: Option<&SessionHandle>, body: impl FnOnce(&mut Session) -> Result<()>) -> Status {
    if let Some(handle) = handle {
        handle.windows.end_all();
    }
    with_reader(handle, body)
}

/// Runs `body` with the session's state, in which it changes nothing that a window of the session's cursors shows.
pub fn with_reader(handle: Option<&SessionHandle>, body: impl FnOnce(&mut Session) -> Result<()>) -> Status {
    run(handle.map(|h| &*h.engine), || {
        let handle = handle.ok_or(Stop::Misuse("no session"))?;
        // SAFETY: one thread works for a session at a time; `body` calls no function of the border, nor do the shim's
        // functions that it calls; and teak_interrupt, which any thread may call, leaves the state alone.
        body(unsafe { &mut *handle.state.get() })
    })
}

/// Changes something of the session's state that cannot fail, and so has no status.
fn tell(handle: Option<&SessionHandle>, change: impl FnOnce(&mut Session)) {
    let _ = with_session(handle, |session| {
        change(session);
        Ok(())
    });
}

/// Reads something off the session's state.
pub fn ask<T: Default>(handle: Option<&SessionHandle>, question: impl FnOnce(&Session) -> T) -> T {
    value(handle.map(|h| &*h.engine), T::default(), || match handle {
        // SAFETY: as in `with_reader`.
        Some(handle) => question(unsafe { &*handle.state.get() }),
        None => T::default(),
    })
}

/// A session without a transaction. `thd` must stay valid until teak_session_free; `id` (thread id) labels the session
/// in status texts.
#[no_mangle]
pub extern "C" fn teak_session_new(
    handle: Option<&Arc<EngineHandle>>,
    thd: *mut c_void,
    id: u64,
    out: Out<'_, Box<SessionHandle>>,
) -> Status {
    with_engine(handle, |engine| {
        let session = Session::new(engine.clone(), token(thd), id);
        let tag = session.tag().clone();
        let windows = Windows::default();
        let session = SessionHandle { engine: engine.clone(), tag, windows, state: UnsafeCell::new(session) };
        put(out, Box::new(session));
        Ok(())
    })
}

/// Rolls an open transaction back; a prepared one is left to teak_commit_by_xid / teak_rollback_by_xid.
#[no_mangle]
pub extern "C" fn teak_session_free(session: Option<Box<SessionHandle>>) {
    let Some(session) = session else { return };
    let engine = session.engine.clone();
    value(Some(&engine), (), || drop(session));
}

/// Where the session's moment is, as long as the session.
#[no_mangle]
pub extern "C" fn teak_session_moment(session: Option<&SessionHandle>) -> *const u64 {
    session.map_or(std::ptr::null(), |session| session.windows.moment())
}

/// Memory for sorting rows with TEAK_ROW_MANY_OR_NONE.
#[no_mangle]
pub extern "C" fn teak_session_set_sort_bytes(session: Option<&SessionHandle>, bytes: u64) {
    tell(session, |session| session.set_sort_bytes(usize::try_from(bytes).unwrap_or(usize::MAX)))
}

/// Longest wait for a lock; 50,000 until it is set.
#[no_mangle]
pub extern "C" fn teak_session_set_lock_wait_timeout(session: Option<&SessionHandle>, milliseconds: u64) {
    tell(session, |session| session.set_lock_wait_timeout(Duration::from_millis(milliseconds)))
}

/// Begins a transaction; in one that is open it only sets the isolation, and a snapshot already taken stays. `strict`,
/// teak_snapshot_isolation: 1 = writing or locking what was committed after the snapshot is TEAK_CONFLICT. `now`: when
/// the statement began, in microseconds by a clock of the caller's, for who lists transactions.
#[no_mangle]
pub extern "C" fn teak_txn_begin(
    session: Option<&SessionHandle>,
    isolation: u32,
    strict: u8,
    now: u64,
) -> Status {
    with_session(session, |session| begin(session, isolation, strict, now))
}

fn begin(session: &mut Session, isolation: u32, strict: u8, now: u64) -> Result<()> {
    session.note_time(now);
    session.set_strict(strict != 0);
    session.begin(level(isolation)?)
}

/// 0 or 1: a transaction is open.
#[no_mangle]
pub extern "C" fn teak_txn_is_active(session: Option<&SessionHandle>) -> u8 {
    u8::from(ask(session, Session::is_active))
}

/// 0 or 1: it has written something.
#[no_mangle]
pub extern "C" fn teak_txn_has_writes(session: Option<&SessionHandle>) -> u8 {
    u8::from(ask(session, Session::has_writes))
}

/// 0 or 1: it is prepared.
#[no_mangle]
pub extern "C" fn teak_txn_is_prepared(session: Option<&SessionHandle>) -> u8 {
    u8::from(ask(session, Session::is_prepared))
}

/// How many rows it has added to `table`, less those that it has deleted: what the table's statistics do not count yet.
#[no_mangle]
pub extern "C" fn teak_txn_rows_added(session: Option<&SessionHandle>, table: Option<&TableHandle>) -> i64 {
    table.map_or(0, |t| ask(session, |session| session.rows_added(t.table.tree(0))))
}

/// Its identifier; 0: there is none.
#[no_mangle]
pub extern "C" fn teak_txn_id(session: Option<&SessionHandle>) -> u64 {
    ask(session, Session::txn_id)
}

/// 0 or 1: it has locks, which it keeps to its end.
#[no_mangle]
pub extern "C" fn teak_txn_has_locks(session: Option<&SessionHandle>) -> u8 {
    u8::from(ask(session, Session::has_locks))
}

/// Flag of teak_table_wait_for_holders: prepared transactions that have written to the table.
pub const TEAK_HOLDERS_PREPARED: u32 = 1;
/// Flag of teak_table_wait_for_holders: transactions that have looked at the table with TEAK_LOOK_COUNTS_ON.
pub const TEAK_HOLDERS_LOOKS: u32 = 2;

/// Before anything that changes what a table is made of, or reads its rows to make it anew: waits until no other
/// transaction holds it in one of these ways, as long as the session waits for locks, then TEAK_UNDECIDED if it is
/// prepared, else TEAK_LOCK_TIMEOUT. The session's KILL ends it. The metadata lock is to keep writers out, and looks.
#[no_mangle]
pub extern "C" fn teak_table_wait_for_holders(
    session: Option<&SessionHandle>,
    name: Bytes<'_>,
    flags: u32,
) -> Status {
    let all = [(TEAK_HOLDERS_PREPARED, Intention::Prepared), (TEAK_HOLDERS_LOOKS, Intention::Looked)];
    let asked: Vec<Intention> =
        all.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, kind)| *kind).collect();
    with_session(session, |session| session.wait_for_holders(name.name()?, &asked))
}

/// START TRANSACTION WITH CONSISTENT SNAPSHOT; otherwise the first consistent read takes it.
#[no_mangle]
pub extern "C" fn teak_open_snapshot(session: Option<&SessionHandle>) -> Status {
    with_session(session, |session| session.open_snapshot().map(drop))
}

/// What the open transaction writes to `table`, which no other session has seen, is how the table begins: snapshots
/// from before the commit get TEAK_TABLE_CHANGED, not an empty table.
#[no_mangle]
pub extern "C" fn teak_txn_founds(session: Option<&SessionHandle>, table: Option<&TableHandle>) -> Status {
    with_session(session, |session| {
        let t = table.ok_or(Stop::Misuse("no table"))?;
        session.txn()?.founds(&t.table);
        Ok(())
    })
}

/// A statement begins, once each, and with it a transaction as by teak_txn_begin: the point a statement rollback
/// returns to.
#[no_mangle]
pub extern "C" fn teak_statement_begin(
    session: Option<&SessionHandle>,
    isolation: u32,
    strict: u8,
    now: u64,
) -> Status {
    with_session(session, |session| {
        begin(session, isolation, strict, now)?;
        session.statement_begin()
    })
}

/// No more rows of the table with TEAK_ROW_MANY follow. May wait for range locks; after an error the statement is to
/// be rolled back, or, if `drops` is not 0, the table to be dropped. TEAK_DUPLICATE, only after rows with
/// TEAK_ROW_MANY_OR_NONE, fills `*duplicate`.
#[no_mangle]
pub extern "C" fn teak_append_end(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    drops: u32,
    duplicate: Out<'_, RawDuplicate>,
) -> Status {
    with_session(session, |session| {
        let table = table.ok_or(Stop::Misuse("no table"))?;
        let result = session.finish_rows(&table.table, drops != 0);
        if matches!(result, Err(Stop::Duplicate)) {
            put(duplicate, RawDuplicate::of(&session.collision));
        }
        result
    })
}

/// It ended inside a transaction that goes on. READ COMMITTED drops the snapshot.
#[no_mangle]
pub extern "C" fn teak_statement_commit(session: Option<&SessionHandle>) -> Status {
    with_session(session, Session::statement_commit)
}

/// Undoes its writes, keeps its locks.
#[no_mangle]
pub extern "C" fn teak_statement_rollback(session: Option<&SessionHandle>) -> Status {
    with_session(session, Session::statement_rollback)
}

/// A savepoint of the transaction as it is now.
#[no_mangle]
pub extern "C" fn teak_savepoint_set(session: Option<&SessionHandle>, out: Out<'_, RawSavepoint>) -> Status {
    with_session(session, |session| {
        put(out, RawSavepoint { token: session.savepoint()? });
        Ok(())
    })
}

/// Undoes what was written since. Locks taken since are kept.
#[no_mangle]
pub extern "C" fn teak_savepoint_rollback(
    session: Option<&SessionHandle>,
    savepoint: Option<&RawSavepoint>,
) -> Status {
    with_session(session, |session| {
        let savepoint = savepoint.ok_or(Stop::Misuse("no savepoint"))?;
        session.savepoint_rollback(savepoint.token)
    })
}

/// First phase of a two-phase commit: durable (as commit_flush says), synced once a group. The transaction goes on.
/// `is_external` 0: a restart need not know of the transaction if all its writes are in memory alone.
#[no_mangle]
pub extern "C" fn teak_prepare(session: Option<&SessionHandle>, xid: Bytes<'_>, is_external: u8) -> Status {
    with_session(session, |session| session.prepare(xid.slice(), is_external != 0))
}

/// After `teak_prepare`: publishes, no I/O; then `teak_commit` ends it.
#[no_mangle]
pub extern "C" fn teak_commit_ordered(session: Option<&SessionHandle>) -> Status {
    with_session(session, Session::commit_ordered)
}

/// Ends the transaction (`teak_txn_is_active` becomes 0); without one it is TEAK_OK, as is `teak_rollback`. On an error
/// it was rolled back; a prepared one stays prepared (recover).
#[no_mangle]
pub extern "C" fn teak_commit(session: Option<&SessionHandle>) -> Status {
    with_session(session, Session::commit)
}

/// Undoes all its writes and ends it.
#[no_mangle]
pub extern "C" fn teak_rollback(session: Option<&SessionHandle>) -> Status {
    with_session(session, Session::try_rollback)
}

/// kill_query, from any thread: wakes the session if it waits for a lock; `is_killed` then decides.
#[no_mangle]
pub extern "C" fn teak_interrupt(session: Option<&SessionHandle>) {
    let Some(handle) = session else { return };
    // Without transaction (0) it may wait to change a table.
    value(Some(&handle.engine), (), || handle.engine.core.interrupt(handle.tag.txn.load(Ordering::SeqCst)))
}
