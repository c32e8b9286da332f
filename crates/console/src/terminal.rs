//! The line on a terminal that tells how far something is. Standard error's lock orders who writes: a message takes the
//! line off the screen first, and what is shown never wraps, since a line that has scrolled away cannot be taken back.

use std::io::{IsTerminal, StderrLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

const TAKE_OFF: &str = "\r\x1b[K";
/// Of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;

/// Whether there is a line on the screen. Read and written with the lock of standard error held.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Whether people see standard error as it is written.
pub fn is_there() -> bool {
    std::io::stderr().is_terminal()
}

/// Shows a line in place of the one before, as much of it as the terminal is wide.
pub fn show_line(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // One column stays free: some terminals wrap when the last one is written.
    let shown: String = text.chars().take(width().saturating_sub(1)).collect();
    // Nobody may look any more; the work goes on.
    let _ = write!(stderr, "{TAKE_OFF}{shown}").and_then(|()| stderr.flush());
    // Relaxed: the lock orders it.
    SHOWN.store(true, Ordering::Relaxed);
}

/// Takes the line off, if there is one.
pub fn clear_line() {
    take_off(&mut std::io::stderr().lock());
}

/// Prints a line that stays, on a terminal in place of the one that was shown.
pub fn message(text: &str) {
    let mut stderr = std::io::stderr().lock();
    take_off(&mut stderr);
    // Nobody may look any more; what was done is done.
    let _ = writeln!(stderr, "{text}");
}

fn take_off(stderr: &mut StderrLock<'_>) {
    // Relaxed: the lock orders it.
    if SHOWN.swap(false, Ordering::Relaxed) {
        let _ = stderr.write_all(TAKE_OFF.as_bytes());
    }
}

/// Columns of the terminal.
fn width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one winsize to where the pointer leads, which lives as long as the call.
    let answered = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) } == 0;
    if answered && size.ws_col > 0 {
        usize::from(size.ws_col)
    } else {
        USUAL_WIDTH
    }
}
