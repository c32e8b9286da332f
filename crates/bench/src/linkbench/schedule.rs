//! When what happens in a run: warm-up, then phases of equal length; and when a requester sends its next request.

use crate::random::Random;
use std::time::{Duration, Instant};

/// The times of a run.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The end of the warm-up and the start of the first phase.
    pub zero: Instant,
    /// The length of a phase.
    pub phase: Duration,
    /// How many phases there are.
    pub phases: usize,
}

impl Schedule {
    /// The end of the last phase.
    pub fn end(&self) -> Instant {
        self.start(self.phases)
    }

    /// The start of phase `index`.
    pub fn start(&self, index: usize) -> Instant {
        self.zero + self.phase * index as u32
    }

    /// The phase that `time` lies in: none during the warm-up; what ends late belongs to the last.
    pub fn phase_of(&self, time: Instant) -> Option<usize> {
        let since = time.checked_duration_since(self.zero)?;
        Some(((since.as_secs_f64() / self.phase.as_secs_f64()) as usize).min(self.phases - 1))
    }

    /// The second of the run that `time` lies in; the warm-up has negative ones.
    pub fn second_of(&self, time: Instant) -> i64 {
        match time.checked_duration_since(self.zero) {
            Some(since) => since.as_secs() as i64,
            None => -((self.zero - time).as_nanos().div_ceil(1_000_000_000) as i64),
        }
    }
}

/// When one requester's requests are due.
pub struct Pace {
    /// The mean interval; without it the next request is due when the last is answered.
    interval: Option<Duration>,
    due: Instant,
}

impl Pace {
    /// `rate` requests a second from all `requesters` together; 0 is without a limit.
    pub fn new(rate: f64, requesters: u64, start: Instant) -> Pace {
        let interval = (rate > 0.0).then(|| Duration::from_secs_f64(requesters as f64 / rate));
        Pace { interval, due: start }
    }

    /// When the next request is due. With a rate, intervals are random (exponential) and do not wait for answers.
    pub fn next(&mut self, random: &mut Random, now: Instant) -> Instant {
        match self.interval {
            Some(interval) => self.due += interval.mul_f64(random.exponential()),
            None => self.due = now,
        }
        self.due
    }

    /// How many more requests are due before `end`.
    pub fn left_before(&mut self, random: &mut Random, end: Instant) -> u64 {
        if self.interval.is_none() {
            return 0;
        }
        let mut count = 0;
        while self.next(random, end) < end {
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_their_phases_and_seconds() {
        let zero = Instant::now() + Duration::from_secs(100);
        let schedule = Schedule { zero, phase: Duration::from_secs(10), phases: 3 };
        let at = |seconds: f64| schedule.phase_of(zero + Duration::from_secs_f64(seconds));
        assert_eq!([0.0, 9.9, 10.1, 29.9, 31.0].map(at), [Some(0), Some(0), Some(1), Some(2), Some(2)]);
        let before = zero - Duration::from_millis(1500);
        assert_eq!((schedule.phase_of(before), schedule.second_of(before)), (None, -2));
        assert_eq!(schedule.second_of(zero - Duration::from_millis(1)), -1);
        assert_eq!(schedule.second_of(zero + Duration::from_millis(1500)), 1);
        assert_eq!(schedule.end(), zero + Duration::from_secs(30));
    }

    #[test]
    fn requests_with_a_rate_are_due_whatever_the_answers_take() {
        let start = Instant::now();
        let mut random = Random::new(1, 0);
        let mut pace = Pace::new(1000.0, 4, start);
        let late = start + Duration::from_secs(3600);
        let tenth = (0..250).map(|_| pace.next(&mut random, late)).last().unwrap();
        let seconds = (tenth - start).as_secs_f64();
        assert!((0.8..1.2).contains(&seconds), "{seconds}: 250 a second are this requester's part");
        let left = pace.left_before(&mut random, start + Duration::from_secs(11)) as f64;
        assert!((2300.0..2700.0).contains(&left), "{left}");
    }

    #[test]
    fn requests_without_a_rate_are_due_at_once() {
        let start = Instant::now();
        let mut pace = Pace::new(0.0, 4, start);
        let later = start + Duration::from_secs(5);
        assert_eq!(pace.next(&mut Random::new(1, 0), later), later);
        assert_eq!(pace.left_before(&mut Random::new(1, 0), later), 0);
    }
}
