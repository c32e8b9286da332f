//! The request phase: starts the requesters, opens the snapshot for the middle phase, shows progress, and puts together
//! what the requesters measured.

use super::graph::Graph;
use super::operation::Operation;
use super::recorder::{PhasePart, Recorder, SecondPart};
use super::requester::{Report, Requester};
use super::schedule::{Pace, Schedule};
use super::session::Connections;
use super::snapshot::Snapshot;
use super::workload::Requests;
use crate::random::Random;
use crate::result::{self, Run, Second};
use crate::Error;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use teak_client::Settings;

/// Phases of a run.
const PHASES: usize = 3;
/// The one with the snapshot, if there is one.
const MIDDLE: usize = 1;
/// The number of the second that is shown is this much behind: requesters send a second's figures when an operation
/// ends in a later one.
const SHOWN_BEHIND: i64 = 2;

/// How to run.
pub struct Plan {
    pub settings: Settings,
    pub graph: Arc<Graph>,
    pub seed: u64,
    pub requesters: u64,
    pub warmup: Duration,
    pub phase: Duration,
    pub rate: f64,
    pub snapshot: bool,
    pub isolation: Option<String>,
}

/// Runs all phases and fills in what was measured. `progress` gets a line each second.
pub fn run(plan: &Plan, result: &mut Run, mut progress: impl FnMut(&str)) -> Result<(), Error> {
    let connect = || Connections::connect(&plan.settings, plan.isolation.as_deref());
    let sessions = (0..plan.requesters).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let schedule = Schedule { zero: start + plan.warmup, phase: plan.phase, phases: PHASES };
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let (reports, parts) = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(index, session)| {
                let requester = Requester {
                    connect: &connect,
                    session,
                    requests: Requests::new(plan.graph.clone(), plan.seed, index as u64),
                    recorder: Recorder::new(schedule, sender.clone()),
                    schedule,
                    pace: Pace::new(plan.rate, plan.requesters, start),
                    intervals: Random::new(plan.seed ^ 1, index as u64),
                    stop: &stop,
                };
                scope.spawn(move || requester.run())
            })
            .collect();
        drop(sender);
        let parts = watch(plan, schedule, &receiver, result, &mut progress);
        if parts.is_err() {
            stop.store(true, Ordering::SeqCst);
        }
        let reports: Result<Vec<Report>, Error> = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| Error::Panic("a requester")))
            .collect();
        (reports, parts)
    });
    let (reports, parts) = (reports?, parts?);
    gather(plan, result, &reports, &parts);
    Ok(())
}

/// Collects seconds until all requesters have ended, and opens and closes the snapshot meanwhile.
fn watch(
    plan: &Plan,
    schedule: Schedule,
    receiver: &Receiver<SecondPart>,
    result: &mut Run,
    progress: &mut impl FnMut(&str),
) -> Result<BTreeMap<i64, SecondPart>, Error> {
    let mut parts: BTreeMap<i64, SecondPart> = BTreeMap::new();
    let mut snapshot: Option<Snapshot> = None;
    let mut shown = schedule.second_of(Instant::now()) - 1;
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(part) => parts.entry(part.second).or_default().merge(&part),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = Instant::now();
        if plan.snapshot && result.snapshot.is_none() && now >= schedule.start(MIDDLE) {
            snapshot = Some(Snapshot::open(&plan.settings)?);
            result.snapshot = Some(result::Snapshot::default());
        }
        if now >= schedule.start(MIDDLE + 1) {
            if let Some(snapshot) = snapshot.take() {
                result.snapshot = Some(close(snapshot));
            }
        }
        while shown < schedule.second_of(now) - SHOWN_BEHIND {
            shown += 1;
            progress(&line(plan, schedule, shown, parts.get(&shown)));
        }
    }
    // Requesters that could not go on end early.
    let last = schedule.second_of(schedule.end().min(Instant::now())) - 1;
    for second in shown + 1..=last {
        progress(&line(plan, schedule, second, parts.get(&second)));
    }
    Ok(parts)
}

fn close(snapshot: Snapshot) -> result::Snapshot {
    let seconds = snapshot.seconds();
    result::Snapshot { seconds, error: snapshot.close().err().map(|error| error.to_string()) }
}

/// The name of a phase.
fn phase_name(plan: &Plan, index: usize) -> &'static str {
    let names = if plan.snapshot { ["before", "snapshot", "after"] } else { ["first", "second", "third"] };
    names[index]
}

fn line(plan: &Plan, schedule: Schedule, second: i64, part: Option<&SecondPart>) -> String {
    let length = schedule.phase.as_secs().max(1) as i64;
    let place = if second < 0 {
        format!("warm-up {:>4}/{} s", second + 1 + plan.warmup.as_secs() as i64, plan.warmup.as_secs())
    } else {
        let index = ((second / length) as usize).min(PHASES - 1);
        format!("{} {:>4}/{length} s", phase_name(plan, index), second - index as i64 * length + 1)
    };
    let default = SecondPart::default();
    let part = part.unwrap_or(&default);
    let failures = if part.failures > 0 { format!("  {} FAILED", part.failures) } else { String::new() };
    format!(
        "{place:<22} {:>7} ops/s  p99 {:>9.3} ms  max {:>9.3} ms  {} mean {:>8.3} ms{failures}",
        part.all.count(),
        part.all.percentile_ms(0.99),
        part.all.max_ms(),
        Operation::GetLinksList.name(),
        part.lists.mean_ms(),
    )
}

/// Puts the requesters' parts together.
fn gather(plan: &Plan, result: &mut Run, reports: &[Report], parts: &BTreeMap<i64, SecondPart>) {
    let seconds = plan.phase.as_secs_f64();
    for index in 0..PHASES {
        let mut phase = PhasePart::default();
        reports.iter().filter_map(|report| report.phases.get(index)).for_each(|part| phase.merge(part));
        let has_snapshot = plan.snapshot && index == MIDDLE;
        result.phases.push(phase.result(phase_name(plan, index), has_snapshot, index, seconds));
    }
    result.warmup_operations = parts.range(..0).map(|(_, part)| part.all.count()).sum();
    // Seconds in which nothing ended are zeros, not gaps.
    let all = 0..(seconds * PHASES as f64) as u64;
    let of_second = |second: u64| parts.get(&(second as i64)).map(|part| part.result(second));
    result.series =
        all.map(|second| of_second(second).unwrap_or(Second { second, ..Second::default() })).collect();
    let mut failures: BTreeMap<&String, (u64, &String)> = BTreeMap::new();
    for (kind, (count, first)) in reports.iter().flat_map(|report| &report.failures) {
        failures.entry(kind).or_insert((0, first)).0 += count;
    }
    result.failures = failures
        .into_iter()
        .map(|(kind, (count, first))| (format!("{kind}, first: {first}"), count))
        .collect();
    result.unserved = reports.iter().map(|report| report.unserved).sum();
}
