//! OPTIMIZE TABLE: a table gives back what it has more than it needs.

use super::border::{Context, RawBytes, SessionHandle, TableHandle};
use super::feed::{report, unreadable, WatchFunction};
use super::session::with_session;
use super::status::Status;
use super::table::ask_table;
use std::os::raw::{c_int, c_void};
use teak_rows::outcome::Stop;

/// About how many steps teak_table_pack takes.
#[no_mangle]
pub extern "C" fn teak_table_packing_steps(handle: Option<&TableHandle>) -> u64 {
    ask_table(handle, |t| t.engine.core.packing_steps(&t.table))
}

/// Packs all trees of the table while others read and write, and shortens its file. `watch` gets the steps done so far;
/// not 0: stop (TEAK_INTERRUPTED), what was done stays. It is called on the calling thread and must not call into Teak.
#[no_mangle]
pub extern "C" fn teak_table_pack(
    session: Option<&SessionHandle>,
    handle: Option<&TableHandle>,
    watch: WatchFunction,
    context: Context,
) -> Status {
    with_session(session, |_| {
        let t = handle.ok_or(Stop::Misuse("no table"))?;
        t.engine.core.pack_table(&t.table, &mut |done| report(watch, context, done))?;
        Ok(())
    })
}

/// Told each row, its key and its value: 0 if it stays, 1 if `*to` says what it is to be, as long as until the next
/// call; else it cannot be read (TEAK_CORRUPT). It must not call into Teak.
pub type RewriteFunction =
    Option<unsafe extern "C" fn(*mut c_void, RawBytes, RawBytes, *mut RawBytes) -> c_int>;

/// Exchanges rows for others that say the same, while others read and write; see `Engine::rewrite_rows`. `watch` is as
/// for teak_table_pack, and gets the leaves looked at; both functions get the context.
#[no_mangle]
pub extern "C" fn teak_table_rewrite(
    session: Option<&SessionHandle>,
    handle: Option<&TableHandle>,
    rewrite: RewriteFunction,
    watch: WatchFunction,
    context: Context,
) -> Status {
    with_session(session, |_| {
        let t = handle.ok_or(Stop::Misuse("no table"))?;
        let rewrite = rewrite.ok_or(Stop::Misuse("nothing that rewrites rows"))?;
        let mut each = |key: &[u8], row: &[u8], to: &mut Vec<u8>| {
            let mut found = RawBytes::NONE;
            // SAFETY: as for `Context::tell`.
            match unsafe { rewrite(context.0, RawBytes::of(key), RawBytes::of(row), &mut found) } {
                0 => Ok(false),
                1 => {
                    // SAFETY: what it gives is readable until it is called again.
                    to.extend_from_slice(unsafe { found.slice() });
                    Ok(true)
                }
                _ => Err(unreadable(&t.table, key)),
            }
        };
        t.engine.core.rewrite_rows(&t.table, 0, &mut each, &mut |done| report(watch, context, done))?;
        Ok(())
    })
}
