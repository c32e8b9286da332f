//! A command that is interrupted, or whose terminal is gone, ends in order: a load ends its transactions and restores
//! settings, a backup ends its pause of checkpoints.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The signals by which users, shells, terminals and supervisors end a program.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How long a read of standard input waits before it looks whether a signal came.
const TICK: Duration = Duration::from_millis(200);

/// The first that came; 0 if none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    let _ = RECEIVED.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    // The second one ends the program at once.
    // SAFETY: signal() may be called in a handler, and SIG_DFL is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// From now on signals that end programs are noted, and a file that reaches a limit of its size is an error of the
/// write. What is ignored stays so, as `nohup` wants it.
pub fn catch() {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let handler: extern "C" fn(libc::c_int) = note;
    for signal in ENDING {
        // SAFETY: the handler does nothing but what handlers may do: it stores to an atomic and calls signal(); SIG_IGN
        // is a valid disposition.
        unsafe {
            if libc::signal(signal, handler as libc::sighandler_t) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Whether one came.
pub fn interrupted() -> bool {
    received().is_some()
}

/// The number of the one that came.
pub fn received() -> Option<i32> {
    Some(RECEIVED.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// Standard input; a read that waits ends with an error when a signal comes, on whichever thread.
pub struct Input(File);

impl Input {
    /// Without a buffer, which a wait for more would not know of.
    pub fn open() -> std::io::Result<Input> {
        Ok(Input(std::io::stdin().as_fd().try_clone_to_owned()?.into()))
    }

    /// Whether something, which may be the end, can be read within so long; a signal ends the wait.
    pub fn wait(&self, at_most: Duration) -> std::io::Result<bool> {
        let mut input = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = libc::c_int::try_from(at_most.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: there is one structure, which lives as long as the call.
        match unsafe { libc::poll(&mut input, 1, milliseconds) } {
            0 => Ok(false),
            -1 if Error::last_os_error().kind() == ErrorKind::Interrupted => Ok(false),
            -1 => Err(Error::last_os_error()),
            _ => Ok(true),
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if interrupted() {
                return Err(Error::other("interrupted"));
            }
            if self.wait(TICK)? {
                return self.0.read(buffer);
            }
        }
    }
}
