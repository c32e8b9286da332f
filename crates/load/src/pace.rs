//! How many connections insert at once: found out while loading.
//!
//! Nobody can tell beforehand where a server is fastest: more connections use more processors and hide waits, until
//! they get in each other's way. So the load is measured in windows; after some at one number another is tried, and
//! kept if it was faster by enough. A number that was tried in vain is not tried again soon: each time after twice as
//! many windows.
//!
//! ```text
//! hold at n ──> try n+1, or n-1 ──> faster by 5 %? ── yes: hold there, go on in this direction at once
//!      ^                                           └─ no: back to n, the other direction next, hold for longer
//!      └───────────────────────────────────────────────────┘
//! ```
//!
//! Windows in which connections waited for work tell nothing about their number and are left out. This knows no clock
//! and no connections: it is told what was measured and says how many there should be; `team` does so.

/// Windows of one measurement.
const WINDOWS: u32 = 2;
/// What is tried must be faster by this to be kept.
const GAIN: f64 = 1.05;
/// Windows between attempts: at first, and in the end.
const FIRST_HOLD: u32 = 2;
const LONGEST_HOLD: u32 = 64;

/// What a window of time has shown.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Work done in a second, in any unit.
    pub rate: f64,
    /// A connection had nothing to do for a while.
    pub starved: bool,
    /// There can be no more connections than this.
    pub most: usize,
}

/// Decides the number of connections.
#[derive(Debug)]
pub struct Pace {
    most: usize,
    /// The number that is known to be good.
    base: usize,
    /// The number that is tried, if one is.
    trial: Option<usize>,
    /// Whether more is tried next, rather than fewer.
    upwards: bool,
    /// Sum and number of the windows measured at the present number.
    sum: f64,
    windows: u32,
    /// The rate at `base`, of the last measurement there.
    rate: f64,
    hold: u32,
}

impl Pace {
    /// Begins with `first` connections, of at most `most`.
    pub fn new(first: usize, most: usize) -> Pace {
        let most = most.max(1);
        Pace {
            most,
            base: first.clamp(1, most),
            trial: None,
            upwards: true,
            sum: 0.0,
            windows: 0,
            rate: 0.0,
            hold: FIRST_HOLD,
        }
    }

    /// How many connections there should be.
    pub fn connections(&self) -> usize {
        self.trial.unwrap_or(self.base)
    }

    fn limit(&mut self, most: usize) {
        self.most = most.max(1).min(self.most);
        if self.connections() > self.most {
            self.base = self.base.min(self.most);
            self.settle(None);
        }
    }

    /// Takes a window's measurement; `connections` may be another number then.
    pub fn observe(&mut self, window: Window) {
        self.limit(window.most);
        if window.starved || !window.rate.is_finite() {
            return;
        }
        self.sum += window.rate;
        self.windows += 1;
        let measured = self.sum / f64::from(self.windows);
        match self.trial {
            None if self.windows >= self.hold.max(WINDOWS) => {
                self.rate = measured;
                let next = self.neighbour();
                self.settle(next);
            }
            Some(trial) if self.windows >= WINDOWS => self.judge(trial, measured),
            _ => {}
        }
    }

    fn judge(&mut self, trial: usize, measured: f64) {
        // Fewer connections that do as much are better too, but more must pay.
        let wanted = if trial > self.base { self.rate * GAIN } else { self.rate };
        if measured >= wanted {
            (self.base, self.rate, self.hold) = (trial, measured, FIRST_HOLD);
            let next = self.neighbour();
            self.settle(next.filter(|&next| (next > trial) == self.upwards));
        } else {
            self.upwards = !self.upwards;
            self.hold = (self.hold * 2).min(LONGEST_HOLD);
            self.settle(None);
        }
    }

    /// The number to be tried next; none if there is only one.
    fn neighbour(&mut self) -> Option<usize> {
        // A fourth more or less, so that many connections are not changed one by one.
        let step = (self.base / 4).max(1);
        if self.upwards && self.base == self.most || !self.upwards && self.base == 1 {
            self.upwards = !self.upwards;
        }
        let next = if self.upwards { self.base + step } else { self.base.saturating_sub(step) };
        Some(next.clamp(1, self.most)).filter(|&next| next != self.base)
    }

    fn settle(&mut self, trial: Option<usize>) {
        (self.trial, self.sum, self.windows) = (trial, 0.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of connections over so many windows, at the rates that a server has with each.
    fn run(pace: &mut Pace, windows: usize, rate: impl Fn(usize, usize) -> f64) -> Vec<usize> {
        (0..windows)
            .map(|window| {
                let connections = pace.connections();
                pace.observe(Window { rate: rate(connections, window), starved: false, most: usize::MAX });
                connections
            })
            .collect()
    }

    #[test]
    fn it_comes_to_the_fastest_number_from_anywhere() {
        for peak in [1, 2, 3, 5, 8, 12] {
            for first in [1, 4, 12] {
                let mut pace = Pace::new(first, 12);
                let used = run(&mut pace, 300, |n, _| 1000.0 - 100.0 * n.abs_diff(peak) as f64);
                assert!(used.iter().all(|n| (1..=12).contains(n)));
                assert!(pace.base.abs_diff(peak) <= 1, "{peak} from {first}: {used:?}");
            }
        }
    }

    #[test]
    fn more_that_bring_nothing_are_not_kept_and_tried_ever_more_rarely() {
        let mut pace = Pace::new(4, 32);
        let used = run(&mut pace, 400, |n, _| 100.0 * n.min(4) as f64);
        let others = used[200..].iter().filter(|&&n| n != 4).count();
        assert!(others <= 20, "{others} of 200 windows at other numbers: {used:?}");
    }

    #[test]
    fn noise_below_the_gain_does_not_drive_it_up() {
        let mut seed = 88_172_645_463_325_252u64;
        let noise: Vec<f64> = (0..1000)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                (seed % 1000) as f64 / 1000.0
            })
            .collect();
        let mut pace = Pace::new(4, 64);
        let used =
            run(&mut pace, 1000, |n, window| 1000.0 * (n.min(4) as f64) * (0.98 + 0.04 * noise[window]));
        assert!(used.iter().all(|&n| n <= 8), "{used:?}");
    }

    #[test]
    fn windows_without_work_tell_nothing() {
        let mut pace = Pace::new(4, 8);
        for _ in 0..100 {
            pace.observe(Window { rate: 0.0, starved: true, most: usize::MAX });
            pace.observe(Window { rate: f64::NAN, starved: false, most: usize::MAX });
        }
        assert_eq!(pace.connections(), 4);
    }

    #[test]
    fn it_follows_a_server_that_changes() {
        let mut pace = Pace::new(2, 16);
        run(&mut pace, 200, |n, _| 100.0 * n.min(2) as f64);
        run(&mut pace, 600, |n, _| 100.0 * n.min(9) as f64);
        assert!(pace.base >= 7, "{}", pace.base);
    }

    #[test]
    fn limits_hold_at_once() {
        let mut pace = Pace::new(10, 16);
        pace.observe(Window { rate: 1.0, starved: true, most: 3 });
        assert_eq!(pace.connections(), 3);
        let used = run(&mut pace, 100, |n, _| n as f64);
        assert!(used.iter().all(|&n| n <= 3));
        pace.observe(Window { rate: 1.0, starved: true, most: 0 });
        assert_eq!(pace.connections(), 1);
        assert!(run(&mut pace, 50, |n, _| n as f64).iter().all(|&n| n == 1));
        assert_eq!(Pace::new(0, 0).connections(), 1);
    }
}
