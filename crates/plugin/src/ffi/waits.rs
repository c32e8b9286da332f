//! Who waits for whom, for information_schema.TEAK_LOCK_WAITS.

use std::ops::Bound;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use super::border::{Context, RawBytes, TEAK_BOUND_EXCLUDE, TEAK_BOUND_INCLUDE, TEAK_BOUND_NONE};
use super::engine::with_engine;
use super::status::Status;
use teak_core::server::{KeyBound, Sought, TreeName};
use teak_core::LockMode;
use teak_rows::engine::EngineHandle;
use teak_rows::lock_waits::{lock_waits, Waiting};

/// What somebody wants who waits.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSought {
    /// "db/table", as created; empty: it is not open any more.
    pub table: RawBytes,
    /// Its number in the table.
    pub tree: u64,
    /// What teak_table_describe was given; empty: nobody has opened the table since it was made, or altered.
    pub description: RawBytes,
    /// As the tree has them; `TEAK_BOUND_`: EXCLUDE is behind, or before, this very key. A row is from one key to it.
    pub from: RawBytes,
    pub from_kind: u32,
    pub to_kind: u32,
    pub to: RawBytes,
    /// 0 or 1.
    pub is_exclusive: u64,
    /// 0 or 1: it is a range, or lies in one of another's.
    pub is_range: u64,
}

impl RawSought {
    /// What is wanted of a tree, if its table is open.
    pub fn of(name: Option<&TreeName>, sought: &Sought) -> RawSought {
        let ((from, from_kind), (to, to_kind)) = (end(&sought.from), end(&sought.to));
        let description = name.and_then(|name| name.description.as_deref());
        RawSought {
            table: name.map_or(RawBytes::NONE, |name| RawBytes::of(name.table.as_bytes())),
            tree: name.map_or(0, |name| name.tree as u64),
            description: description.map_or(RawBytes::NONE, RawBytes::of),
            from,
            from_kind,
            to_kind,
            to,
            is_exclusive: u64::from(sought.mode == LockMode::Exclusive),
            is_range: u64::from(sought.is_range),
        }
    }
}

/// A transaction that waits for another.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawLockWait {
    pub waiter_txn: u64,
    /// Its number in the process list; 0: it is gone.
    pub waiter: u64,
    /// Who works for it.
    pub user: RawBytes,
    pub host: RawBytes,
    pub holder_txn: u64,
    /// 0: nobody works on the transaction, which is prepared.
    pub holder: u64,
    /// Whom the holder waits for in the end; the holder, if it does not wait.
    pub root_txn: u64,
    pub root: u64,
    /// So many transactions wait for the root, or for others who do.
    pub behind_root: u64,
    pub milliseconds: u64,
    pub sought: RawSought,
}

fn end(bound: &KeyBound) -> (RawBytes, u32) {
    match bound {
        Bound::Included(key) => (RawBytes::of(key), TEAK_BOUND_INCLUDE),
        Bound::Excluded(key) => (RawBytes::of(key), TEAK_BOUND_EXCLUDE),
        Bound::Unbounded => (RawBytes::NONE, TEAK_BOUND_NONE),
    }
}

fn raw(waiting: &Waiting) -> RawLockWait {
    let wait = &waiting.wait;
    RawLockWait {
        waiter_txn: wait.waiter,
        waiter: waiting.waiter,
        user: RawBytes::of(&waiting.person.user),
        host: RawBytes::of(&waiting.person.host),
        holder_txn: wait.holder,
        holder: waiting.holder,
        root_txn: waiting.root,
        root: waiting.root_session,
        behind_root: waiting.behind_root,
        milliseconds: u64::try_from(wait.age.as_millis()).unwrap_or(u64::MAX),
        sought: RawSought::of(wait.name.as_ref(), &wait.sought),
    }
}

/// Calls `visit` for all who wait, until it returns something but 0. No latch is held meanwhile.
#[no_mangle]
pub extern "C" fn teak_lock_waits_report(
    handle: Option<&Arc<EngineHandle>>,
    visit: unsafe extern "C" fn(*mut c_void, *const RawLockWait) -> c_int,
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        for waiting in lock_waits(engine) {
            if context.tell(visit, &raw(&waiting)) != 0 {
                break;
            }
        }
        Ok(())
    })
}
