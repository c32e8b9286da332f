//! Programs that commands start: none outlives the one that started it.

use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program is killed when the thread that starts it ends, whatever ends that, SIGKILL, too. Else what it still
/// writes would come among the files of the next run.
pub fn ends_with_us(command: &mut Command) -> &mut Command {
    let us = std::process::id();
    let bind = move || {
        // SAFETY: both calls take numbers only, and may be made between fork and exec.
        let (set, parent) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
        match set == 0 && u32::try_from(parent) == Ok(us) {
            true => Ok(()),
            // Who has started it may be gone already.
            false => Err(Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: the closure makes two system calls, and allocates nothing.
    unsafe { command.pre_exec(bind) }
}
