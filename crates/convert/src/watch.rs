//! Looks after a statement that takes long: shows how far it is, and ends it when the user interrupts.

use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::{Duration, Instant};
use teak_client::{Connection, Error, Settings};
use teak_console::amounts::{bytes, clock};
use teak_console::{signals, terminal};

const TICK: Duration = Duration::from_millis(300);

/// How far the whole is.
#[derive(Debug, Default, Clone)]
pub struct Progress {
    pub tables: usize,
    pub tables_done: usize,
    pub bytes: u64,
    pub bytes_done: u64,
    /// Of the table that is being converted.
    pub bytes_now: u64,
}

pub struct Watch {
    connection: Connection,
    /// The session that is watched.
    session: String,
    shows: bool,
    began: Instant,
    pub progress: Progress,
}

impl Watch {
    pub fn new(settings: &Settings, session: &mut Connection, quiet: bool) -> Result<Watch, Error> {
        let session = session.value("SELECT CONNECTION_ID()")?.unwrap_or_default();
        let shows = !quiet && terminal::is_there();
        let connection = settings.connect()?;
        Ok(Watch { connection, session, shows, began: Instant::now(), progress: Progress::default() })
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Carries out `work`, which is a statement of the watched session.
    pub fn during<T>(&mut self, what: &str, work: impl FnOnce() -> T) -> T {
        let (done, is_done) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(TICK) {
                    self.tick(what);
                }
                terminal::clear_line();
            });
            let result = work();
            drop(done);
            result
        })
    }

    fn tick(&mut self, what: &str) {
        if signals::interrupted() {
            // Again with every tick: it may come before the statement begins. If the server does not answer, neither
            // does it to the session, which tells why.
            let _ = self.connection.execute(format!("KILL QUERY {}", self.session));
        }
        if self.shows {
            let part = self.part().unwrap_or(0.0);
            terminal::show_line(&self.line(what, part));
        }
    }

    /// The share of the statement that is done, as far as the server tells.
    fn part(&mut self) -> Option<f64> {
        let asked = format!(
            "SELECT STAGE, MAX_STAGE, PROGRESS FROM information_schema.PROCESSLIST WHERE ID = {}",
            self.session
        );
        let row = self.connection.query(asked).ok()?.into_iter().next()?;
        let number = |at: usize| String::from_utf8_lossy(row.get(at)?.as_ref()?).parse::<f64>().ok();
        let (stage, stages, percent) = (number(0)?, number(1)?, number(2)?);
        (stages > 0.0).then(|| ((stage - 1.0).max(0.0) + percent / 100.0) / stages)
    }

    fn line(&self, what: &str, part: f64) -> String {
        let progress = &self.progress;
        let done = progress.bytes_done as f64 + part * progress.bytes_now as f64;
        let share = done / (progress.bytes.max(1) as f64);
        let left = match share > 0.01 {
            true => format!(", {} left", clock(self.elapsed().mul_f64((1.0 - share).max(0.0) / share))),
            false => String::new(),
        };
        format!(
            "{}/{} tables, {} of {}{left}: {what} {:.0} %",
            progress.tables_done,
            progress.tables,
            bytes(done),
            bytes(progress.bytes as f64),
            part * 100.0
        )
    }
}
