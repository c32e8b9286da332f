//! The server's functions, as the shim hands them over.

use std::os::raw::{c_char, c_int, c_void};

use super::deadlocks::{RawKeyText, TEAK_KEY_TEXT_BYTES};
use super::instruments::Instruments;
use super::waits::RawSought;
use teak_core::server::{Sought, TreeName};
use teak_core::{LogLevel, Observer};
use teak_rows::host::{Host, Person, Thd};

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
    /// Who works for `thd`, and at what: from any thread, while it is alive. Must not call into Teak. May be NULL.
    pub person: Option<unsafe extern "C" fn(thd: *mut c_void, out: *mut RawPerson)>,
    /// After wait_begin, on the same thread: the wait has lasted for a while, for this. Until wait_end the process list
    /// may say so. May be NULL.
    pub wait_lasts: Option<unsafe extern "C" fn(thd: *mut c_void, sought: *const RawSought)>,
    /// The index and the keys that are sought as people read them; from any thread. May be NULL.
    pub key_text: Option<unsafe extern "C" fn(sought: *const RawSought, out: *mut RawKeyText)>,
    /// Who is told of threads and files.
    pub instruments: Instruments,
}

/// Bytes of a name, and of the beginning of a statement.
pub const TEAK_NAME_BYTES: usize = 392;
/// Likewise.
pub const TEAK_QUERY_BYTES: usize = 1024;

/// Who works for a session, and at what.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawPerson {
    pub user: [u8; TEAK_NAME_BYTES],
    pub user_len: usize,
    pub host: [u8; TEAK_NAME_BYTES],
    pub host_len: usize,
    pub query: [u8; TEAK_QUERY_BYTES],
    pub query_len: usize,
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

    fn person(&self, thd: Thd) -> Person {
        let Some(person) = self.person else { return Person::default() };
        let mut found = RawPerson {
            user: [0; TEAK_NAME_BYTES],
            user_len: 0,
            host: [0; TEAK_NAME_BYTES],
            host_len: 0,
            query: [0; TEAK_QUERY_BYTES],
            query_len: 0,
        };
        // SAFETY: the session is registered, and the registry is locked by the caller, so its THD is alive.
        unsafe { person(pointer(thd), &mut found) };
        Person {
            user: filled(&found.user, found.user_len),
            host: filled(&found.host, found.host_len),
            query: filled(&found.query, found.query_len),
        }
    }

    fn key_text(&self, name: Option<&TreeName>, sought: &Sought) -> String {
        let Some(key_text) = self.key_text else { return String::new() };
        let mut text = Box::new(RawKeyText { data: [0; TEAK_KEY_TEXT_BYTES], len: 0 });
        // SAFETY: the shim promised a function that may be called from any thread; both live through the call.
        unsafe { key_text(&RawSought::of(name, sought), &mut *text) };
        let bytes: Vec<u8> = text.data.iter().take(text.len).map(|&c| c as u8).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn wait_lasts(&self, thd: Thd, name: Option<&TreeName>, sought: &Sought) {
        if let Some(lasts) = self.wait_lasts {
            // SAFETY: called on the session's own thread, whose THD is alive; what is sought lives through the call.
            unsafe { lasts(pointer(thd), &RawSought::of(name, sought)) }
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

/// The first bytes of a buffer.
fn filled(buffer: &[u8], len: usize) -> Vec<u8> {
    buffer[..len.min(buffer.len())].to_vec()
}

impl Observer for Callbacks {
    fn message(&self, level: LogLevel, text: &str) {
        self.log(level, text);
    }

    fn xid(&self, xid: &[u8]) -> String {
        teak_rows::xid::text(xid)
    }
}
