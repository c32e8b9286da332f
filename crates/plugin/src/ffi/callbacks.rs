//! The server's functions, as the shim hands them over.

use std::os::raw::{c_char, c_int, c_void};

use teak_core::{LogLevel, Observer};
use teak_rows::host::{Host, Thd};

/// Levels of messages in the error log.
pub const TEAK_LOG_NOTE: u32 = 0;
/// Likewise.
pub const TEAK_LOG_WARNING: u32 = 1;
/// Likewise.
pub const TEAK_LOG_ERROR: u32 = 2;

/// What the server does for the engine.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Callbacks {
    /// To the error log; called from any thread, also before teak_engine_open returns. Required.
    pub log: Option<unsafe extern "C" fn(level: u32, text: *const c_char, len: usize)>,
    /// thd_kill_level(thd) != THD_IS_NOT_KILLED. Called from the session's own thread while it waits. May be NULL.
    pub is_killed: Option<unsafe extern "C" fn(thd: *mut c_void) -> c_int>,
    /// thd_rpl_deadlock_check(waiter, holder), on the waiter's thread before it sleeps: whether the server is to roll
    /// `holder` back. `holder` is alive during the call; NULL asks, before the first sleep, whether the server wants to
    /// know for whom this session waits: it is told then, and only then. Must not call into Teak. May be NULL.
    pub report_wait: Option<unsafe extern "C" fn(waiter: *mut c_void, holder: *mut c_void) -> c_int>,
    /// After reports that were answered with yes, on the same thread before it sleeps: sees to it that the server does
    /// what it said. No latch is held, so it may end in teak_interrupt. May be NULL.
    pub reports_made: Option<unsafe extern "C" fn()>,
    /// thd_wait_begin(thd, THD_WAIT_ROW_LOCK) and thd_wait_end(thd), around each sleep. May be NULL.
    pub wait_begin: Option<unsafe extern "C" fn(thd: *mut c_void)>,
    pub wait_end: Option<unsafe extern "C" fn(thd: *mut c_void)>,
}

/// What the shim gave as the THD of a session.
fn pointer(thd: Thd) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(thd.0)
}

/// The token for a THD.
pub fn token(thd: *mut c_void) -> Thd {
    Thd(thd.expose_provenance())
}

impl Host for Callbacks {
    fn log(&self, level: LogLevel, text: &str) {
        if let Some(log) = self.log {
            let level = match level {
                LogLevel::Note => TEAK_LOG_NOTE,
                LogLevel::Warning => TEAK_LOG_WARNING,
                LogLevel::Error => TEAK_LOG_ERROR,
            };
            // SAFETY: the shim promised a function that may be called from any thread; the text lives through the call.
            unsafe { log(level, text.as_ptr().cast(), text.len()) }
        }
    }

    fn is_killed(&self, thd: Thd) -> bool {
        // SAFETY: asked on the session's own thread, whose THD is alive.
        self.is_killed.is_some_and(|is_killed| unsafe { is_killed(pointer(thd)) } != 0)
    }

    fn wait_is_reported(&self, waiter: Thd) -> bool {
        // SAFETY: the waiter is the calling session.
        self.report_wait.is_some_and(|report| unsafe { report(pointer(waiter), std::ptr::null_mut()) } != 0)
    }

    fn report_wait(&self, waiter: Thd, holder: Thd) -> bool {
        // SAFETY: the waiter is the calling session; the holder is registered, and the registry is locked by the
        // caller.
        self.report_wait.is_some_and(|report| unsafe { report(pointer(waiter), pointer(holder)) } != 0)
    }

    fn reports_made(&self) {
        if let Some(made) = self.reports_made {
            // SAFETY: the shim promised a function that may be called by any session's thread that holds no latch.
            unsafe { made() }
        }
    }

    fn wait_begin(&self, thd: Thd) {
        if let Some(begin) = self.wait_begin {
            // SAFETY: called on the session's own thread, whose THD is alive.
            unsafe { begin(pointer(thd)) }
        }
    }

    fn wait_end(&self, thd: Thd) {
        if let Some(end) = self.wait_end {
            // SAFETY: called on the session's own thread, whose THD is alive.
            unsafe { end(pointer(thd)) }
        }
    }
}

impl Observer for Callbacks {
    fn message(&self, level: LogLevel, text: &str) {
        self.log(level, text);
    }

    fn xid(&self, xid: &[u8]) -> String {
        teak_rows::xid::text(xid)
    }
}
