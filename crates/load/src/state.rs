//! What the loader and its workers share.

use super::deferred::Deferred;
use super::error::LoadError;
use super::progress::Progress;
use super::queue::Queue;
use super::report::{Counters, Report};
use super::session::{Initial, SessionState};
use super::task::{Facts, Task};
use super::verify::Verify;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use teak_client::{Connection, Error, Settings};

/// How long it is tried to connect while the server gives no more connections, and how long to wait between.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

/// What is done about statements that the server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Default, clap::ValueEnum)]
pub enum OnError {
    /// End the load
    #[default]
    Stop,
    /// Say so and go on; the exit status is 1 in the end
    Skip,
}

/// The state of one load.
pub struct LoadState {
    pub settings: Settings,
    initial: Arc<Initial>,
    pub queue: Queue<Task>,
    pub report: Report,
    pub counters: Arc<Counters>,
    pub progress: Option<Progress>,
    pub deferred: Deferred,
    /// With `--check`.
    pub verify: Option<Verify>,
    pub on_error: OnError,
    pub skip_log_bin: bool,
    pub resumes: bool,
    /// Bytes of all inputs, if known.
    pub total: Option<u64>,
    failure: Mutex<Option<LoadError>>,
    /// That the server gives no more connections was told.
    refused: AtomicBool,
}

/// What a load is begun with.
pub struct Beginning {
    pub settings: Settings,
    /// What a new connection is like.
    pub initial: Arc<Initial>,
    pub report: Report,
    pub progress: Option<Progress>,
    pub deferred: Deferred,
    pub verify: Option<Verify>,
    pub on_error: OnError,
    pub skip_log_bin: bool,
    pub resumes: bool,
    pub total: Option<u64>,
    /// Memory for statements that wait.
    pub queue_bytes: usize,
}

impl LoadState {
    pub fn new(beginning: Beginning) -> LoadState {
        let Beginning {
            settings,
            initial,
            report,
            progress,
            deferred,
            verify,
            on_error,
            skip_log_bin,
            resumes,
            total,
            queue_bytes,
        } = beginning;
        let (queue, counters) = (Queue::new(queue_bytes), report.counters.clone());
        LoadState {
            settings,
            initial,
            queue,
            report,
            counters,
            progress,
            deferred,
            verify,
            on_error,
            skip_log_bin,
            resumes,
            total,
            failure: Mutex::default(),
            refused: AtomicBool::new(false),
        }
    }

    /// A new connection in the session in which every source begins. If the server gives no more, a worker has to do
    /// without its.
    pub fn connect(&self) -> Result<Connection, Error> {
        let began = Instant::now();
        loop {
            match connect(&self.settings, self.skip_log_bin) {
                Err(error) if gives_no_more(&error) && began.elapsed() < PATIENCE => {
                    self.do_with(self.queue.give_way(), &error);
                    std::thread::sleep(PAUSE);
                }
                result => return result,
            }
        }
    }

    /// The same of a connection that changes something.
    pub fn connect_to_change(&self) -> Result<Connection, LoadError> {
        let mut connection = self.connect()?;
        self.join(&mut connection)?;
        Ok(connection)
    }

    /// A connection is going to change something.
    pub fn join(&self, connection: &mut Connection) -> Result<(), LoadError> {
        self.progress.as_ref().map_or(Ok(()), |progress| progress.join(connection))
    }

    /// The connection of a worker; the first always gets one, the others only if there are enough.
    pub fn connect_worker(&self, number: usize) -> Result<Option<Connection>, Error> {
        if number == 0 {
            return self.connect().map(Some);
        }
        match connect(&self.settings, self.skip_log_bin) {
            Err(error) if gives_no_more(&error) => {
                self.do_with(self.queue.limit(number), &error);
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// The server refused a connection: from now on there are so many workers.
    fn do_with(&self, workers: usize, error: &Error) {
        self.counters.connections.fetch_min(workers, Ordering::Relaxed);
        if !self.refused.swap(true, Ordering::Relaxed) {
            self.report.warn(&format!(
                "the load goes on with fewer connections, as the server gives no more: {error}"
            ));
        }
    }

    /// The session of a new connection.
    pub fn first_session(&self) -> SessionState {
        let database = self.settings.database.as_ref().map(|name| name.clone().into_bytes());
        SessionState::new(database, self.initial.clone())
    }

    /// Brings a connection from the session that it is in into `wanted`; `anew` makes another where no way leads there.
    pub fn enter(
        &self,
        (connection, session): (&mut Connection, &mut SessionState),
        wanted: &SessionState,
        anew: impl FnOnce() -> Result<Connection, LoadError>,
    ) -> Result<(), LoadError> {
        let changes = match wanted.changes_from(session) {
            Some(changes) => changes,
            None => {
                *connection = anew()?;
                wanted.changes_from(&self.first_session()).unwrap_or_default()
            }
        };
        for change in changes {
            connection.execute(change)?;
        }
        *session = wanted.clone();
        Ok(())
    }

    pub fn skips_errors(&self) -> bool {
        self.on_error == OnError::Skip
    }

    /// A statement that the server refused: reported and skipped, if that is wanted, or the end.
    pub fn pass_over(&self, error: LoadError) -> Result<(), LoadError> {
        if !self.skips_errors() {
            return Err(error);
        }
        self.skip(error);
        Ok(())
    }

    /// Reports a statement that is skipped.
    pub fn skip(&self, error: LoadError) {
        self.counters.skipped.fetch_add(1, Ordering::Relaxed);
        self.report.warn(&error.to_string());
    }

    /// Ends the load for all threads. The first failure is the one that is told.
    pub fn fail(&self, error: LoadError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() && !matches!(error, LoadError::Stopped) {
            *failure = Some(error);
        }
        drop(failure);
        self.queue.fail();
    }

    pub fn take_failure(&self) -> Option<LoadError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The statement that records a task's rows up to the statement at `last`.
    pub fn record_of(&self, task: &Task, facts: &Facts, last: u64) -> Option<String> {
        let progress = self.progress.as_ref().filter(|_| facts.transactional)?;
        Some(progress.rows(task, &facts.engine, last))
    }

    /// Records that a task which cannot be taken back begins.
    pub fn note_begun(&self, connection: &mut Connection, task: &Task) -> Result<(), Error> {
        self.note(connection, task, false)
    }

    /// Records that such a task is done.
    pub fn note_done(&self, connection: &mut Connection, task: &Task) -> Result<(), Error> {
        self.note(connection, task, true)
    }

    fn note(&self, connection: &mut Connection, task: &Task, done: bool) -> Result<(), Error> {
        // A task without statements is the loader's own.
        let Some(progress) = self.progress.as_ref().filter(|_| !task.units.is_empty()) else { return Ok(()) };
        connection
            .execute(progress.step(task.origin.index, task.range(), &task.table.shown(), done))
            .map(drop)
    }
}

/// The server, the user or an account's limit has no more connections, at present.
fn gives_no_more(error: &Error) -> bool {
    matches!(error.code(), Some(1040 | 1203 | 1226))
}

/// A connection of a load.
pub fn connect(settings: &Settings, skip_log_bin: bool) -> Result<Connection, Error> {
    let mut connection = settings.connect()?;
    if skip_log_bin {
        connection.execute("SET SESSION sql_log_bin = 0")?;
    }
    Ok(connection)
}
