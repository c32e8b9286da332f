//! OPTIMIZE TABLE: a table gives back what it has more than it needs.

use super::border::{SessionHandle, TableHandle};
use super::feed::{report, Context, WatchFunction};
use super::guard::value;
use super::session::with_session;
use super::status::Status;
use std::os::raw::c_void;
use teak_rows::outcome::Stop;

/// About how many steps teak_table_pack takes.
#[no_mangle]
pub unsafe extern "C" fn teak_table_packing_steps(handle: *const TableHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    let t = unsafe { handle.as_ref() };
    t.map_or(0, |t| value(Some(&t.engine), 0, || t.engine.core.packing_steps(&t.table)))
}

/// Packs all trees of the table while others read and write, and shortens its file. `watch` gets the steps done so far;
/// not 0: stop (TEAK_INTERRUPTED), what was done stays. It is called on the calling thread and must not call into Teak.
#[no_mangle]
pub unsafe extern "C" fn teak_table_pack(
    session: *const SessionHandle,
    handle: *const TableHandle,
    watch: WatchFunction,
    context: *mut c_void,
) -> Status {
    // SAFETY: the handles are open or NULL, the function takes its context.
    unsafe {
        with_session(session, |_| {
            let t = handle.as_ref().ok_or(Stop::Misuse("no table"))?;
            let context = Context(context);
            t.engine.core.pack_table(&t.table, &mut |done| report(watch, context, done))?;
            Ok(())
        })
    }
}
