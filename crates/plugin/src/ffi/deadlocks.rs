//! The last deadlocks, for information_schema.TEAK_DEADLOCKS.

use std::os::raw::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::border::{Context, RawBytes};
use super::engine::with_engine;
use super::guard::value;
use super::status::Status;
use super::waits::RawSought;
use teak_core::server::Reason;
use teak_rows::deadlocks::{Member, Resolved};
use teak_rows::engine::EngineHandle;

/// Why a transaction was the victim of a deadlock: preferred, by who replicates.
pub const TEAK_VICTIM_PREFERRED: u32 = 0;
/// It had written least.
pub const TEAK_VICTIM_WROTE_LEAST: u32 = 1;
/// It had begun to wait last.
pub const TEAK_VICTIM_WAITED_LAST: u32 = 2;

/// One transaction of a deadlock.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawEntangled {
    /// Which deadlock: they are counted since the start.
    pub deadlock: u64,
    /// When it was resolved, in seconds since 1970.
    pub at: u64,
    pub txn: u64,
    /// Its number in the process list.
    pub session: u64,
    pub user: RawBytes,
    pub host: RawBytes,
    /// The beginning of the statement that waited.
    pub query: RawBytes,
    pub waits_for: u64,
    pub wait_milliseconds: u64,
    pub sought: RawSought,
    /// Rows, and entries of indexes.
    pub written: u64,
    /// 0 or 1.
    pub is_victim: u32,
    /// `TEAK_VICTIM_`, of the victim.
    pub reason: u32,
}

fn raw(deadlock: &Resolved, member: &Member) -> RawEntangled {
    RawEntangled {
        deadlock: deadlock.number,
        at: deadlock.at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        txn: member.txn,
        session: member.session,
        user: RawBytes::of(&member.person.user),
        host: RawBytes::of(&member.person.host),
        query: RawBytes::of(&member.person.query),
        waits_for: member.waits_for,
        wait_milliseconds: u64::try_from(member.age.as_millis()).unwrap_or(u64::MAX),
        sought: RawSought::of(member.name.as_ref(), &member.sought),
        written: member.written,
        is_victim: u32::from(member.txn == deadlock.victim),
        reason: match deadlock.reason {
            Reason::Preference => TEAK_VICTIM_PREFERRED,
            Reason::Weight => TEAK_VICTIM_WROTE_LEAST,
            Reason::Last => TEAK_VICTIM_WAITED_LAST,
        },
    }
}

/// Calls `visit` for each transaction of each deadlock that is kept, the newest first, until it returns something but
/// 0. No latch is held meanwhile.
#[no_mangle]
pub extern "C" fn teak_deadlocks_report(
    handle: Option<&Arc<EngineHandle>>,
    visit: unsafe extern "C" fn(*mut c_void, *const RawEntangled) -> c_int,
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        for deadlock in engine.deadlocks.list() {
            for member in &deadlock.members {
                if context.tell(visit, &raw(&deadlock, member)) != 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

/// teak_deadlock_history, and whether each goes to the error log.
#[no_mangle]
pub extern "C" fn teak_deadlocks_keep(handle: Option<&Arc<EngineHandle>>, most: usize, prints: u8) {
    let Some(engine) = handle else { return };
    value(Some(engine), (), || {
        engine.deadlocks.keep(most);
        engine.deadlocks.print(prints != 0);
    });
}

/// Room for a key as people read it.
pub const TEAK_KEY_TEXT_BYTES: usize = 2048;

/// A key as people read it.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawKeyText {
    pub data: [c_char; TEAK_KEY_TEXT_BYTES],
    pub len: usize,
}
