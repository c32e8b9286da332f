//! An interrupted load ends in order: running transactions end, settings are restored.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::SeqCst);
    // The second one ends the program at once.
    // SAFETY: signal() may be called in a handler, and SIG_DFL is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// From now on SIGINT and SIGTERM are noted.
pub fn catch() {
    let handler: extern "C" fn(libc::c_int) = note;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does nothing but what handlers may do: it stores to an atomic and calls signal().
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Whether one came.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}
