//! One requester: sends its requests, one after the other, until the run ends.

use super::operation::Operation;
use super::recorder::{PhasePart, Recorder};
use super::schedule::{Pace, Schedule};
use super::session::{is_conflict, Answer, Connections};
use super::workload::{Request, Requests};
use crate::random::Random;
use crate::Error;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use teak_client as client;

/// A transaction that had this many conflicts is given up, as failed.
const REPETITIONS: u32 = 1000;

/// What a requester did.
#[derive(Default)]
pub struct Report {
    pub phases: Vec<PhasePart>,
    /// Operations that failed for good: how often, and the first error, by operation and kind of error.
    pub failures: BTreeMap<String, (u64, String)>,
    /// Requests that were due before the end and not sent.
    pub unserved: u64,
}

/// Everything that one requester needs.
pub struct Requester<'a> {
    /// Makes new connections after one broke.
    pub connect: &'a (dyn Fn() -> Result<Connections, Error> + Sync),
    pub session: Connections,
    pub requests: Requests,
    pub recorder: Recorder,
    pub schedule: Schedule,
    pub pace: Pace,
    /// Random numbers for intervals, apart from those of the requests.
    pub intervals: Random,
    /// Set when the run is to end early.
    pub stop: &'a AtomicBool,
}

impl Requester<'_> {
    /// Sends requests until the end of the last phase.
    pub fn run(mut self) -> Report {
        let mut report = Report::default();
        let end = self.schedule.end();
        while !self.stop.load(Ordering::SeqCst) {
            let due = self.pace.next(&mut self.intervals, Instant::now());
            if due >= end || !self.wait_until(due) {
                break;
            }
            let began = Instant::now();
            if began >= end {
                report.unserved = 1 + self.pace.left_before(&mut self.intervals, end);
                break;
            }
            let (operation, request) = self.requests.next();
            // Without a rate, inventing the request is no part of its latency.
            let from = if due < began { due } else { Instant::now() };
            match self.perform(&request) {
                Ok(answer) => {
                    let now = Instant::now();
                    self.recorder.done(operation, now.saturating_duration_since(from), now);
                    if let Request::GetLinksList(list) = &request {
                        self.requests.was_read(list, answer.rows, answer.last_time);
                    }
                }
                Err(error) => {
                    if !self.failed(&mut report, operation, &error) {
                        break;
                    }
                }
            }
        }
        report.phases = self.recorder.finish();
        report
    }

    /// Waits in steps, so that a run which is stopped ends soon; false if it is.
    fn wait_until(&self, due: Instant) -> bool {
        const STEP: std::time::Duration = std::time::Duration::from_millis(200);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            if self.stop.load(Ordering::SeqCst) {
                return false;
            }
            std::thread::sleep(left.min(STEP));
        }
    }

    /// Repeats the request until it has no conflict.
    fn perform(&mut self, request: &Request) -> Result<Answer, client::Error> {
        let mut attempts = 0;
        loop {
            match self.session.perform(request) {
                Err(error) if is_conflict(&error) && attempts < REPETITIONS => {
                    attempts += 1;
                    self.recorder.retried(error.code().unwrap_or(0));
                    self.session.roll_back()?;
                }
                other => return other,
            }
        }
    }

    /// Notes a failure and makes the session usable again; false if that is not possible.
    fn failed(&mut self, report: &mut Report, operation: Operation, error: &client::Error) -> bool {
        self.recorder.failed();
        let kind = match error {
            client::Error::Server { code, .. } => format!("{}: ERROR {code}", operation.name()),
            _ => format!("{}: connection", operation.name()),
        };
        report.failures.entry(kind).or_insert_with(|| (0, error.to_string())).0 += 1;
        if error.code().is_some() && self.session.roll_back().is_ok() {
            return true;
        }
        match (self.connect)() {
            Ok(session) => {
                self.session = session;
                true
            }
            Err(error) => {
                report
                    .failures
                    .insert(format!("{}: no new connection", operation.name()), (1, error.to_string()));
                false
            }
        }
    }
}
