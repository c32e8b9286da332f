//! A command that is interrupted ends in order: a load ends its transactions and restores settings, a backup ends its
//! pause of checkpoints.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::SeqCst);
    // The second one ends the program at once.
    // SAFETY: signal() may be called in a handler, and SIG_DFL is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// From now on SIGINT and SIGTERM are noted, and a file that reaches a limit of its size is an error of the write.
pub fn catch() {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
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
