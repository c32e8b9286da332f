//! gc and scrub, beside whoever asks: a thread for each, one of a kind at a time, with its state told.

use crate::problem::Problem;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{json, Value as Json};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use teak_archive::{Archive, Oid, Scrub, Value};

/// Jobs that are told of; older ones that have ended are forgotten.
const KEPT: usize = 100;
/// Damaged chunks, and records of each, that are told.
const TOLD: usize = 100;

/// What is to be done.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Task {
    /// Gives back what nobody names any more.
    Gc {
        /// Instead of the archive's own grace period, in seconds.
        grace: Option<u64>,
    },
    /// Reads all bytes and compares them with their hashes.
    Scrub {
        /// Bytes a second at most.
        rate: Option<NonZeroU64>,
        /// From the beginning, also if one was interrupted.
        #[serde(default)]
        restart: bool,
    },
}

impl Task {
    fn kind(&self) -> &'static str {
        match self {
            Task::Gc { .. } => "gc",
            Task::Scrub { .. } => "scrub",
        }
    }
}

struct Job {
    id: u64,
    kind: &'static str,
    /// In microseconds since 1970.
    began: i64,
    /// When, and how: its state with what it has found.
    ended: Option<(i64, &'static str, Json)>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Job {
    fn json(&self) -> Json {
        let moment = |micros| Value::Timestamp(micros).to_json();
        let (state, ended, result) = match &self.ended {
            Some((ended, state, result)) => (*state, moment(*ended), result.clone()),
            None if self.stop.load(Ordering::SeqCst) => ("stopping", Json::Null, Json::Null),
            None => ("running", Json::Null, Json::Null),
        };
        let (id, began) = (self.id.to_string(), moment(self.began));
        json!({ "id": id, "kind": self.kind, "state": state, "began": began, "ended": ended, "result": result })
    }
}

/// All that were begun, the newest last.
#[derive(Default)]
pub(crate) struct Jobs(Arc<Mutex<Vec<Job>>>);

fn locked(jobs: &Mutex<Vec<Job>>) -> MutexGuard<'_, Vec<Job>> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    pub(crate) fn all(&self) -> Vec<Json> {
        locked(&self.0).iter().map(Job::json).collect()
    }

    pub(crate) fn one(&self, id: &str) -> Result<Json, Problem> {
        find(&locked(&self.0), id).map(Job::json)
    }

    pub(crate) fn stop(&self, id: &str) -> Result<Json, Problem> {
        let jobs = locked(&self.0);
        let job = find(&jobs, id)?;
        job.stop.store(true, Ordering::SeqCst);
        Ok(job.json())
    }

    /// Begins one; what it is then.
    pub(crate) fn start(&self, archive: &Arc<Archive>, task: Task) -> Result<Json, Problem> {
        let mut jobs = locked(&self.0);
        if let Some(job) = jobs.iter().find(|job| job.kind == task.kind() && job.ended.is_none()) {
            let text = format!("job {} is a {} that has not ended", job.id, job.kind);
            return Err(Problem::new(StatusCode::CONFLICT, text));
        }
        if jobs.len() >= KEPT {
            if let Some(oldest) = jobs.iter().position(|job| job.ended.is_some()) {
                jobs.remove(oldest);
            }
        }
        let id = jobs.last().map_or(1, |job| job.id + 1);
        let (kind, began, stop) = (task.kind(), archive.now(), Arc::new(AtomicBool::new(false)));
        let (all, archive, stopped) = (Arc::clone(&self.0), Arc::clone(archive), Arc::clone(&stop));
        let work = move || {
            let stop = || stopped.load(Ordering::SeqCst);
            // A panic is a failed job, and no more.
            let work = std::panic::AssertUnwindSafe(|| carry_out(&archive, &task, &stop));
            let done = std::panic::catch_unwind(work);
            let failed = |text: String| ("failed", json!({ "error": text }));
            let (state, result) = match done {
                Ok(Ok((true, result))) => ("done", result),
                Ok(Ok((false, result))) => ("stopped", result),
                Ok(Err(error)) => failed(error.to_string()),
                Err(_) => failed("the server failed at it: its log says where".into()),
            };
            let ended = archive.now();
            drop(archive);
            if let Some(job) = locked(&all).iter_mut().find(|job| job.id == id) {
                job.ended = Some((ended, state, result));
            }
        };
        let thread = std::thread::Builder::new().name(kind.into()).spawn(work);
        let thread = thread.map_err(|error| Problem::busy(format!("no thread: {error}")))?;
        let job = Job { id, kind, began, ended: None, stop, thread: Some(thread) };
        let told = job.json();
        jobs.push(job);
        Ok(told)
    }

    /// Stops all, and waits for them.
    pub(crate) fn end(&self) {
        let threads: Vec<_> = locked(&self.0)
            .iter_mut()
            .filter_map(|job| {
                job.stop.store(true, Ordering::SeqCst);
                job.thread.take()
            })
            .collect();
        for thread in threads {
            // Its panic was caught.
            let _ = thread.join();
        }
    }
}

fn find<'a>(jobs: &'a [Job], id: &str) -> Result<&'a Job, Problem> {
    jobs.iter()
        .find(|job| job.id.to_string() == id)
        .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such job"))
}

/// Whether it came to its end, and what it has done.
fn carry_out(archive: &Archive, task: &Task, stop: &dyn Fn() -> bool) -> teak_archive::Result<(bool, Json)> {
    match task {
        Task::Gc { grace } => {
            let done = archive.collect(*grace, stop)?;
            let result = json!({
                "data": done.data, "kept": done.kept, "lists": done.lists, "chunks": done.chunks,
                "bytes": done.bytes, "entries": done.entries,
            });
            Ok((!stop(), result))
        }
        Task::Scrub { rate, restart } => {
            let done = archive.scrub(&Scrub {
                bytes_per_second: rate.map(NonZeroU64::get),
                restart: *restart,
                stop,
            })?;
            let damage = done.damage.iter().take(TOLD).map(|damage| {
                let data = damage.data.iter().take(TOLD).map(ToString::to_string);
                let records = damage.records.iter().take(TOLD).map(Oid::to_string);
                json!({
                    "chunk": damage.chunk.to_string(), "data": data.collect::<Vec<_>>(),
                    "records": records.collect::<Vec<_>>(),
                })
            });
            let result = json!({
                "chunks": done.chunks, "bytes": done.bytes, "damaged": done.damage.len(),
                "damage": damage.collect::<Vec<_>>(),
            });
            Ok((done.is_complete, result))
        }
    }
}
