//! What the server does for the engine: its error log, KILL, and reports of lock waits.

use std::os::raw::{c_char, c_int, c_void};

use teak_core::{LogLevel, Observer};

/// The server's THD, never dereferenced here: a token that goes back to the server's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thd(pub *mut c_void);

// SAFETY: the pointer is only handed back to the server, whose functions accept a THD from any thread; that the THD is
// alive is seen to by the registry of sessions (`engine::Sessions`), which a session leaves before its THD goes.
unsafe impl Send for Thd {}
// SAFETY: as above; the token itself is immutable.
unsafe impl Sync for Thd {}

/// `teak_callbacks` of `teak_ffi.h`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)] // each is explained in the header
pub struct Callbacks {
    pub log: Option<unsafe extern "C" fn(level: c_int, text: *const c_char, len: usize)>,
    pub is_killed: Option<unsafe extern "C" fn(thd: *mut c_void) -> c_int>,
    pub report_wait: Option<unsafe extern "C" fn(waiter: *mut c_void, holder: *mut c_void) -> c_int>,
    pub reports_made: Option<unsafe extern "C" fn()>,
    pub wait_begin: Option<unsafe extern "C" fn(thd: *mut c_void)>,
    pub wait_end: Option<unsafe extern "C" fn(thd: *mut c_void)>,
}

impl Callbacks {
    /// Writes to the server's error log.
    pub fn log(&self, level: LogLevel, text: &str) {
        if let Some(log) = self.log {
            let level = match level {
                LogLevel::Note => 0,
                LogLevel::Warning => 1,
                LogLevel::Error => 2,
            };
            // SAFETY: the shim promised a function that may be called from any thread; the text lives through the call.
            unsafe { log(level, text.as_ptr().cast(), text.len()) }
        }
    }

    /// Whether the statement of `thd` was killed.
    pub fn is_killed(&self, thd: Thd) -> bool {
        // SAFETY: asked on the session's own thread, whose THD is alive.
        self.is_killed.is_some_and(|is_killed| unsafe { is_killed(thd.0) } != 0)
    }

    /// Tells the server that `waiter` is about to wait; whether it wants to know for whom.
    pub fn wait_is_reported(&self, waiter: Thd) -> bool {
        // SAFETY: the waiter is the calling session.
        self.report_wait.is_some_and(|report| unsafe { report(waiter.0, std::ptr::null_mut()) } != 0)
    }

    /// Tells parallel replication that `waiter` is about to wait for `holder`; whether that is to be rolled back.
    pub fn report_wait(&self, waiter: Thd, holder: Thd) -> bool {
        // SAFETY: the waiter is the calling session; the holder is registered, and the registry is locked by the
        // caller.
        self.report_wait.is_some_and(|report| unsafe { report(waiter.0, holder.0) } != 0)
    }

    /// Sees to it that those are rolled back whom [`Callbacks::report_wait`] said it of. Comes back with calls from
    /// another thread.
    pub fn reports_made(&self) {
        if let Some(made) = self.reports_made {
            // SAFETY: the shim promised a function that may be called by any session's thread that holds no latch.
            unsafe { made() }
        }
    }

    /// The thread of `thd` is about to sleep.
    pub fn wait_begin(&self, thd: Thd) {
        if let Some(begin) = self.wait_begin {
            // SAFETY: called on the session's own thread, whose THD is alive.
            unsafe { begin(thd.0) }
        }
    }

    /// It woke up.
    pub fn wait_end(&self, thd: Thd) {
        if let Some(end) = self.wait_end {
            // SAFETY: called on the session's own thread, whose THD is alive.
            unsafe { end(thd.0) }
        }
    }
}

impl Observer for Callbacks {
    fn message(&self, level: LogLevel, text: &str) {
        self.log(level, text);
    }

    fn xid(&self, xid: &[u8]) -> String {
        crate::xid::text(xid)
    }
}
