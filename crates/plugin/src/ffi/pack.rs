//! OPTIMIZE TABLE: a table gives back what it has more than it needs.

use super::border::{RawBytes, SessionHandle, TableHandle};
use super::feed::{report, unreadable, Context, WatchFunction};
use super::guard::value;
use super::session::with_session;
use super::status::Status;
use std::os::raw::{c_int, c_void};
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

/// Told each row, its key and its value: 0 if it stays, 1 if `*to` says what it is to be, as long as until the next
/// call; else it cannot be read (TEAK_CORRUPT). It must not call into Teak.
pub type RewriteFunction =
    Option<unsafe extern "C" fn(*mut c_void, RawBytes, RawBytes, *mut RawBytes) -> c_int>;

/// Exchanges rows for others that say the same, while others read and write; see `Engine::rewrite_rows`. `watch` is as
/// for teak_table_pack, and gets the leaves looked at; both functions get the context.
#[no_mangle]
pub unsafe extern "C" fn teak_table_rewrite(
    session: *const SessionHandle,
    handle: *const TableHandle,
    rewrite: RewriteFunction,
    watch: WatchFunction,
    context: *mut c_void,
) -> Status {
    // SAFETY: the handles are open or NULL, the functions take their context.
    unsafe {
        with_session(session, |_| {
            let t = handle.as_ref().ok_or(Stop::Misuse("no table"))?;
            let rewrite = rewrite.ok_or(Stop::Misuse("nothing that rewrites rows"))?;
            let context = Context(context);
            let mut each = |key: &[u8], row: &[u8], to: &mut Vec<u8>| {
                let mut found = RawBytes::NONE;
                match rewrite(context.0, RawBytes::of(key), RawBytes::of(row), &mut found) {
                    0 => Ok(false),
                    1 => {
                        to.extend_from_slice(found.slice());
                        Ok(true)
                    }
                    _ => Err(unreadable(&t.table, key)),
                }
            };
            t.engine.core.rewrite_rows(&t.table, 0, &mut each, &mut |done| report(watch, context, done))?;
            Ok(())
        })
    }
}
