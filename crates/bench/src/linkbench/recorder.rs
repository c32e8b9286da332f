//! What one requester measures: latencies by phase and operation, and a summary of each second that it sends away.

use super::operation::Operation;
use super::schedule::Schedule;
use crate::histogram::Histogram;
use crate::result::{Latency, Phase, Second};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The operations that ended in one second.
#[derive(Clone, Debug, Default)]
pub struct SecondPart {
    pub second: i64,
    pub all: Histogram,
    pub lists: Histogram,
    pub failures: u64,
}

/// The operations that ended in one phase.
#[derive(Clone, Debug, Default)]
pub struct PhasePart {
    operations: [Histogram; 10],
    retries: BTreeMap<u16, u64>,
    failures: u64,
}

/// Counts for one requester.
pub struct Recorder {
    schedule: Schedule,
    phases: Vec<PhasePart>,
    current: SecondPart,
    seconds: Sender<SecondPart>,
}

impl Recorder {
    /// Summaries of seconds go to `seconds`.
    pub fn new(schedule: Schedule, seconds: Sender<SecondPart>) -> Recorder {
        let current = SecondPart { second: schedule.second_of(Instant::now()), ..SecondPart::default() };
        Recorder { schedule, phases: vec![PhasePart::default(); schedule.phases], current, seconds }
    }

    /// The operation ended at `now`.
    pub fn done(&mut self, operation: Operation, latency: Duration, now: Instant) {
        self.turn_to(now);
        self.current.all.record(latency);
        if operation == Operation::GetLinksList {
            self.current.lists.record(latency);
        }
        if let Some(phase) = self.schedule.phase_of(now) {
            self.phases[phase].operations[operation.index()].record(latency);
        }
    }

    /// A transaction has to be repeated, after this error of the server.
    pub fn retried(&mut self, code: u16) {
        if let Some(phase) = self.schedule.phase_of(Instant::now()) {
            *self.phases[phase].retries.entry(code).or_default() += 1;
        }
    }

    /// An operation failed for good.
    pub fn failed(&mut self) {
        let now = Instant::now();
        self.turn_to(now);
        self.current.failures += 1;
        if let Some(phase) = self.schedule.phase_of(now) {
            self.phases[phase].failures += 1;
        }
    }

    /// The phases, after the last second was sent.
    pub fn finish(mut self) -> Vec<PhasePart> {
        self.send();
        self.phases
    }

    fn turn_to(&mut self, now: Instant) {
        let second = self.schedule.second_of(now);
        if second != self.current.second {
            self.send();
            self.current.second = second;
        }
    }

    fn send(&mut self) {
        // Nobody listens any more only when the run has failed already.
        let _ = self.seconds.send(std::mem::take(&mut self.current));
    }
}

impl PhasePart {
    /// Adds another requester's part.
    pub fn merge(&mut self, other: &PhasePart) {
        for (mine, others) in self.operations.iter_mut().zip(&other.operations) {
            mine.merge(others);
        }
        for (code, count) in &other.retries {
            *self.retries.entry(*code).or_default() += count;
        }
        self.failures += other.failures;
    }

    /// The result of phase `index` with this name.
    pub fn result(&self, name: &str, snapshot: bool, index: usize, seconds: f64) -> Phase {
        let mut total = Histogram::default();
        self.operations.iter().for_each(|operation| total.merge(operation));
        let operations = Operation::all().filter(|operation| self.operations[operation.index()].count() > 0);
        Phase {
            name: name.into(),
            snapshot,
            start: index as f64 * seconds,
            seconds,
            operations_per_second: total.count() as f64 / seconds,
            total: Latency::from(&total),
            operations: operations
                .map(|operation| {
                    (operation.name().to_string(), Latency::from(&self.operations[operation.index()]))
                })
                .collect(),
            retries: self.retries.iter().map(|(code, count)| (code.to_string(), *count)).collect(),
            failures: self.failures,
        }
    }
}

impl SecondPart {
    /// Adds another requester's part of the same second.
    pub fn merge(&mut self, other: &SecondPart) {
        self.all.merge(&other.all);
        self.lists.merge(&other.lists);
        self.failures += other.failures;
    }

    /// The result of a second after the warm-up.
    pub fn result(&self, second: u64) -> Second {
        Second {
            second,
            operations: self.all.count(),
            mean: self.all.mean_ms(),
            p99: self.all.percentile_ms(0.99),
            max: self.all.max_ms(),
            list_mean: self.lists.mean_ms(),
            list_p99: self.lists.percentile_ms(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_count_in_the_phase_and_second_they_end_in() {
        let zero = Instant::now() + Duration::from_secs(10);
        let schedule = Schedule { zero, phase: Duration::from_secs(2), phases: 2 };
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut recorder = Recorder::new(schedule, sender);
        let at = |seconds: i64| (zero + Duration::from_secs(20)) - Duration::from_secs((20 - seconds) as u64);
        for (operation, second) in [
            (Operation::GetNode, -5),
            (Operation::GetLinksList, 0),
            (Operation::GetNode, 1),
            (Operation::GetNode, 7),
        ] {
            recorder.done(operation, Duration::from_millis(3), at(second));
        }
        recorder.retried(1213);
        let phases = recorder.finish();
        let results: Vec<Phase> = phases.iter().map(|phase| phase.result("x", false, 0, 2.0)).collect();
        assert_eq!(
            [results[0].total.count, results[1].total.count],
            [2, 1],
            "the warm-up is not in it, what ends late is"
        );
        assert_eq!(results[0].operations.keys().collect::<Vec<_>>(), ["GET_LINKS_LIST", "GET_NODE"]);
        assert_eq!(results[0].operations_per_second, 1.0);
        let seconds: Vec<(i64, u64, u64)> = receiver
            .iter()
            .map(|part| (part.second, part.all.count(), part.lists.count()))
            .filter(|part| part.1 > 0)
            .collect();
        assert_eq!(seconds, [(-5, 1, 0), (0, 1, 1), (1, 1, 0), (7, 1, 0)]);
    }
}
