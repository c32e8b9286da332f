//! Which transactions there are, for information_schema.TEAK_TRX.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use super::border::{Context, RawBytes};
use super::engine::with_engine;
use super::session::{TEAK_READ_COMMITTED, TEAK_REPEATABLE_READ, TEAK_SERIALIZABLE};
use super::status::Status;
use teak_rows::engine::EngineHandle;
use teak_rows::session::Level;
use teak_rows::transactions::{open_transactions, OpenTransaction, Phase};

/// Phases of a transaction: its statements, or between two.
pub const TEAK_PHASE_RUNNING: u32 = 0;
/// The first phase of a commit is done.
pub const TEAK_PHASE_PREPARED: u32 = 1;
/// It is committing.
pub const TEAK_PHASE_COMMITTING: u32 = 2;
/// It is being undone.
pub const TEAK_PHASE_ROLLING_BACK: u32 = 3;

/// An open transaction.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawTransaction {
    pub txn: u64,
    /// Its number in the process list; 0: nobody works on it, it is prepared.
    pub session: u64,
    /// `TEAK_PHASE_`
    pub phase: u32,
    /// As of teak_txn_begin; 0: not known, of nobody's.
    pub isolation: u32,
    /// When its first statement began, as teak_txn_begin was told; 0: not known, of nobody's.
    pub started: u64,
    /// Of nobody's: since when the log has it.
    pub age_milliseconds: u64,
    /// 0: it has none.
    pub snapshot: u64,
    pub snapshot_milliseconds: u64,
    /// Written, also if that was undone; `u64::MAX`: not known, of nobody's.
    pub rows: u64,
    /// As of its last lock or statement.
    pub redo_bytes: u64,
    pub row_locks: u64,
    pub lock_bytes: u64,
    pub pinned_bytes: u64,
    /// 0: it waits for none.
    pub waits_for: u64,
    pub wait_milliseconds: u64,
    /// As XA COMMIT takes it; empty: it is not prepared.
    pub xid: RawBytes,
    /// Who works on it.
    pub user: RawBytes,
    pub host: RawBytes,
    /// The beginning of the statement.
    pub query: RawBytes,
}

fn milliseconds(age: std::time::Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

fn raw(open: &OpenTransaction) -> RawTransaction {
    let (snapshot, snapshot_age) = open.snapshot.unwrap_or_default();
    let (waits_for, wait) = open.waits_for.unwrap_or_default();
    RawTransaction {
        txn: open.txn,
        session: open.session,
        phase: match open.phase {
            Phase::Running => TEAK_PHASE_RUNNING,
            Phase::Prepared => TEAK_PHASE_PREPARED,
            Phase::Committing => TEAK_PHASE_COMMITTING,
            Phase::RollingBack => TEAK_PHASE_ROLLING_BACK,
        },
        isolation: match open.level {
            None => 0,
            Some(Level::ReadCommitted) => TEAK_READ_COMMITTED,
            Some(Level::RepeatableRead) => TEAK_REPEATABLE_READ,
            Some(Level::Serializable) => TEAK_SERIALIZABLE,
        },
        started: open.started.unwrap_or(0),
        age_milliseconds: milliseconds(open.age),
        snapshot,
        snapshot_milliseconds: milliseconds(snapshot_age),
        rows: open.rows.unwrap_or(u64::MAX),
        redo_bytes: open.figures.redo_bytes,
        row_locks: open.figures.locks,
        lock_bytes: open.figures.lock_bytes(),
        pinned_bytes: open.pinned_bytes,
        waits_for,
        wait_milliseconds: milliseconds(wait),
        xid: open.xid.as_ref().map_or(RawBytes::NONE, |xid| RawBytes::of(xid.as_bytes())),
        user: RawBytes::of(&open.person.user),
        host: RawBytes::of(&open.person.host),
        query: RawBytes::of(&open.person.query),
    }
}

/// Calls `visit` for all open transactions, until it returns something but 0. No latch is held meanwhile.
#[no_mangle]
pub extern "C" fn teak_transactions_report(
    handle: Option<&Arc<EngineHandle>>,
    visit: unsafe extern "C" fn(*mut c_void, *const RawTransaction) -> c_int,
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        for open in open_transactions(engine) {
            if context.tell(visit, &raw(&open)) != 0 {
                break;
            }
        }
        Ok(())
    })
}
