//! The server's functions, as the shim hands them over.

use std::os::raw::{c_char, c_int, c_void};

use teak_core::{LogLevel, Observer};
use teak_rows::host::{Host, Thd};

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
                LogLevel::Note => 0,
                LogLevel::Warning => 1,
                LogLevel::Error => 2,
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
