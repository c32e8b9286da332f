//! How fast a backup or a restore goes: what was done, what may be done, and whether to go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use teak_console::amounts::{bytes, clock};
use teak_console::{signals, terminal};

/// Time between two lines of progress, on a terminal and elsewhere.
const ON_TERMINAL: Duration = Duration::from_millis(500);
const ELSEWHERE: Duration = Duration::from_secs(10);

/// Counts bytes, shows them, and makes those wait who are too fast.
pub struct Pace {
    began: Instant,
    done: AtomicU64,
    /// What is going to be done, as far as that is known.
    expected: AtomicU64,
    /// Bytes a second; 0: any number.
    most: u64,
    /// Those of what was done that wait for others; what the server's locks or its log wait for does not.
    paced: AtomicU64,
    /// Others wait for us.
    hurries: AtomicBool,
    /// Somebody failed, and all are to end.
    stopped: AtomicBool,
    shown: Mutex<Shown>,
    interval: Option<Duration>,
}

struct Shown {
    at: Instant,
    phase: &'static str,
}

impl Pace {
    /// `quiet`: nothing is shown. Else there is a line on a terminal twice a second, and one every ten elsewhere.
    pub fn new(most: u64, quiet: bool) -> Pace {
        let now = Instant::now();
        let interval = if terminal::is_there() { ON_TERMINAL } else { ELSEWHERE };
        Pace {
            began: now,
            done: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            most,
            paced: AtomicU64::new(0),
            hurries: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            shown: Mutex::new(Shown { at: now, phase: "" }),
            interval: (!quiet).then_some(interval),
        }
    }

    /// What is going to be done in all, in bytes: an estimate.
    pub fn expect(&self, bytes: u64) {
        // Relaxed: synchronises with nothing; a number that is shown.
        self.expected.store(bytes, Ordering::Relaxed);
    }

    /// What is being done now.
    pub fn phase(&self, phase: &'static str) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).phase = phase;
    }

    /// So many bytes were written. Waits if that was too fast; an error if the user wants an end.
    pub fn wrote(&self, bytes: u64) -> teak_core::Result<()> {
        self.wrote_in_haste(bytes)?;
        // Relaxed: as above, and that the server's locks are held is noticed a moment later at worst.
        if self.most > 0 && !self.hurries.load(Ordering::Relaxed) {
            // Relaxed: as above.
            let paced = self.paced.fetch_add(bytes, Ordering::Relaxed) + bytes;
            let due = Duration::from_secs_f64(paced as f64 / self.most as f64);
            if let Some(early) = due.checked_sub(self.began.elapsed()) {
                std::thread::sleep(early);
            }
        }
        Ok(())
    }

    /// The same of what cannot wait, and does not count: InnoDB's log, which is copied as fast as the server writes it
    /// or never ends.
    pub fn wrote_in_haste(&self, bytes: u64) -> teak_core::Result<()> {
        // Relaxed: synchronises with nothing; a number that is shown.
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if signals::interrupted() || self.is_stopped() {
            return Err(teak_core::Error::Interrupted);
        }
        self.show(done);
        Ok(())
    }

    /// From now on the server waits for what is copied, or it does no longer.
    pub fn hurry(&self, hurries: bool) {
        // Relaxed: synchronises with nothing.
        self.hurries.store(hurries, Ordering::Relaxed);
    }

    /// Whoever writes is to end, as if the user wanted it.
    pub fn stop(&self) {
        // Relaxed: synchronises with nothing; who failed tells why on another way.
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        // Relaxed: as above.
        self.stopped.load(Ordering::Relaxed)
    }

    pub fn done(&self) -> u64 {
        // Relaxed: synchronises with nothing; whoever wants the sum has joined the writers.
        self.done.load(Ordering::Relaxed)
    }

    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn show(&self, done: u64) {
        let Some(interval) = self.interval else { return };
        // Who finds it taken leaves it to the other.
        let Ok(mut shown) = self.shown.try_lock() else { return };
        if shown.at.elapsed() < interval {
            return;
        }
        shown.at = Instant::now();
        let seconds = self.seconds().max(0.001);
        // Relaxed: as where it is stored.
        let expected = self.expected.load(Ordering::Relaxed).max(done);
        let left = seconds / done.max(1) as f64 * (expected - done) as f64;
        let line = format!(
            "{}: {} of about {}, {}/s, about {} left",
            shown.phase,
            bytes(done as f64),
            bytes(expected as f64),
            bytes(done as f64 / seconds),
            clock(Duration::from_secs_f64(left.min(1e7))),
        );
        match interval == ON_TERMINAL {
            true => terminal::show_line(&line),
            false => terminal::message(&line),
        }
    }

    /// Takes the line of progress off the terminal.
    pub fn clear(&self) {
        terminal::clear_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_waits_for_is_not_held_back() {
        // A byte a second: if one of these waited, that would be for years.
        let pace = Pace::new(1, true);
        pace.wrote_in_haste(1 << 30).unwrap();
        pace.hurry(true);
        pace.wrote(1 << 30).unwrap();
        pace.hurry(false);
        let began = Instant::now();
        pace.wrote(1).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60));
        assert_eq!(pace.done(), (2 << 30) + 1);
    }
}
