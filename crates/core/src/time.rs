//! What time it is, and waiting until it is later: the door to the clock, as `file` is that to the disk.
//!
//! A simulation has a time of its own, which stands still until it is told to pass. Whoever waits in it does not sleep:
//! it runs on one thread, so nobody else would do anything meanwhile, and the time that he waits for has come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time that an engine goes by; clones go together.
#[derive(Debug, Clone, Default)]
pub struct Time(Option<Arc<Simulated>>);

#[derive(Debug)]
struct Simulated {
    origin: Instant,
    passed_nanoseconds: AtomicU64,
}

impl Time {
    /// The time of the machine.
    pub const REAL: Time = Time(None);

    /// A time that passes only by [`Time::pass`], and when somebody waits for it.
    pub fn simulated() -> Time {
        Time(Some(Arc::new(Simulated { origin: Instant::now(), passed_nanoseconds: AtomicU64::new(0) })))
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> Instant {
        match &self.0 {
            None => Instant::now(),
            Some(simulated) => simulated.now(),
        }
    }

    /// Seconds since 1970, or since the simulation began: for people to read.
    pub(crate) fn calendar_seconds(&self) -> u64 {
        let since_1970 = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        match &self.0 {
            None => since_1970().map_or(0, |passed| passed.as_secs()),
            Some(simulated) => simulated.now().duration_since(simulated.origin).as_secs(),
        }
    }

    /// How long ago `earlier` was.
    pub fn since(&self, earlier: Instant) -> Duration {
        self.now().saturating_duration_since(earlier)
    }

    /// Simulated time goes on; that of the machine does so by itself.
    pub fn pass(&self, duration: Duration) {
        if let Some(simulated) = &self.0 {
            let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            let before = simulated.passed_nanoseconds.fetch_add(nanoseconds, Ordering::SeqCst);
            debug_assert!(before.checked_add(nanoseconds).is_some(), "more than 500 years have passed");
        }
    }

    /// Waits by `sleep`, which returns at `until` at the latest.
    pub(crate) fn wait_until(&self, until: Instant, sleep: impl FnOnce()) {
        match &self.0 {
            None => sleep(),
            Some(_) => self.pass(until.saturating_duration_since(self.now())),
        }
    }
}

impl Simulated {
    fn now(&self) -> Instant {
        self.origin + Duration::from_nanos(self.passed_nanoseconds.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_passes_when_it_is_told_to_or_waited_for() {
        let time = Time::simulated();
        let begin = time.now();
        time.pass(Duration::from_secs(3));
        assert_eq!(time.since(begin), Duration::from_secs(3));
        time.clone().wait_until(begin + Duration::from_secs(5), || panic!("nobody sleeps"));
        assert_eq!(time.since(begin), Duration::from_secs(5));
        time.wait_until(begin, || panic!("nobody sleeps"));
        assert_eq!(time.since(begin), Duration::from_secs(5), "what is over is not waited for");
    }
}
