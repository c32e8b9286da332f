//! The locks that sessions hold, for information_schema.TEAK_LOCKS.

use std::ops::{Bound, ControlFlow};
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use super::border::{Context, RawBytes};
use super::engine::with_engine;
use super::status::Status;
use super::waits::RawSought;
use teak_core::server::{LockKind, Sought};
use teak_core::LockMode;
use teak_rows::engine::EngineHandle;
use teak_rows::locks::{held_locks, Locked, ShownLock};

/// What a lock is of: a row that somebody waits for.
pub const TEAK_LOCK_ROW: u32 = 0;
/// All rows of a transaction that nobody waits for: nothing is known of them but how many there are.
pub const TEAK_LOCK_ROWS: u32 = 1;
/// Keys that nobody else may insert.
pub const TEAK_LOCK_RANGE: u32 = 2;
/// Rows of consecutive keys.
pub const TEAK_LOCK_RUN: u32 = 3;
/// The same, with what lies between them.
pub const TEAK_LOCK_WIDENED: u32 = 4;

/// A lock that somebody holds.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawHeldLock {
    pub txn: u64,
    /// Its number in the process list; 0: nobody works on it, or not known.
    pub session: u64,
    pub user: RawBytes,
    pub host: RawBytes,
    /// `TEAK_LOCK_`
    pub kind: u32,
    /// Not of TEAK_LOCK_ROWS.
    pub keys: RawSought,
    /// Of TEAK_LOCK_ROWS.
    pub rows: u64,
}

fn raw(lock: &ShownLock<'_>) -> RawHeldLock {
    let nothing = || Sought {
        tree: 0,
        from: Bound::Unbounded,
        to: Bound::Unbounded,
        mode: LockMode::Shared,
        is_range: false,
    };
    let (kind, keys, rows) = match &lock.locked {
        Locked::Rows(rows) => (TEAK_LOCK_ROWS, RawSought::of(None, &nothing()), *rows),
        Locked::Keys { name, keys, kind } => {
            let kind = match kind {
                None => TEAK_LOCK_ROW,
                Some(LockKind::Range) => TEAK_LOCK_RANGE,
                Some(LockKind::Run) => TEAK_LOCK_RUN,
                Some(LockKind::Widened) => TEAK_LOCK_WIDENED,
            };
            (kind, RawSought::of(name.as_ref(), keys), 0)
        }
    };
    let of = |bytes: fn(&teak_rows::host::Person) -> &Vec<u8>| {
        lock.open.map_or(RawBytes::NONE, |open| RawBytes::of(bytes(&open.person)))
    };
    RawHeldLock {
        txn: lock.txn,
        session: lock.open.map_or(0, |open| open.session),
        user: of(|person| &person.user),
        host: of(|person| &person.host),
        kind,
        keys,
        rows,
    }
}

/// Calls `visit` for all locks, until it returns something but 0. No latch is held meanwhile.
#[no_mangle]
pub extern "C" fn teak_locks_report(
    handle: Option<&Arc<EngineHandle>>,
    visit: unsafe extern "C" fn(*mut c_void, *const RawHeldLock) -> c_int,
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        held_locks(engine, &mut |lock| match context.tell(visit, &raw(&lock)) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
        Ok(())
    })
}
