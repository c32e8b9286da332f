//! Less durability while a load runs that can be repeated: commits do not wait for the disk.
//!
//! The settings are the whole server's, so they must come back whatever becomes of this program. A second connection,
//! the guard, waits in the server for a lock that the first one holds, and then sets them back:
//!
//! ```text
//! holder:  GET_LOCK   ...load...   RELEASE_LOCK, or the connection is gone
//! guard:              waits ...................  SET GLOBAL each = what it was
//! ```
//!
//! The guard's is one statement, which the server carries out to its end although nobody is there to take the answer.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use teak_client::{Connection, Error, Settings};
use teak_console::terminal;

/// What is set, and to what, as far as the server has it.
const RELAXED: &[(&str, &str)] =
    &[("innodb_flush_log_at_trx_commit", "2"), ("sync_binlog", "0"), ("teak_flush_log_at_trx_commit", "2")];
/// No load takes longer than this many seconds.
const FOREVER: u32 = 31_536_000;
/// Until the guard waits, it is asked for so long, and so often.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// The server's settings are relaxed as long as this lives, and are restored when it is dropped.
pub struct Relaxed {
    settings: Settings,
    /// Name and value of those that are changed.
    before: Vec<(&'static str, String)>,
    guard: Option<Guard>,
}

struct Guard {
    holder: Connection,
    waits: JoinHandle<Result<(), Error>>,
}

impl Relaxed {
    pub fn begin(settings: &Settings) -> Result<Relaxed, Error> {
        let mut connection = settings.connect()?;
        let mut before = Vec::new();
        for (name, relaxed) in RELAXED {
            match connection.value(format!("SELECT @@GLOBAL.{name}")) {
                Ok(value) => {
                    before.extend(value.filter(|value| value != relaxed).map(|value| (*name, value)))
                }
                // The engine is not there.
                Err(Error::Server { code: 1193, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let mut relaxed = Relaxed { settings: settings.clone(), before, guard: None };
        if relaxed.before.is_empty() {
            return Ok(relaxed);
        }
        match relaxed.guard() {
            Ok(guard) => relaxed.guard = Some(guard),
            Err(error) => terminal::message(&format!(
                "teak: if this program is killed, the server stays without durability, since it takes no guard: {error}"
            )),
        }
        for (name, value) in RELAXED.iter().filter(|(name, _)| relaxed.has_changed(name)) {
            connection.execute(format!("SET GLOBAL {name} = {value}"))?;
        }
        Ok(relaxed)
    }

    fn has_changed(&self, name: &str) -> bool {
        self.before.iter().any(|(changed, _)| *changed == name)
    }

    /// Comes back when the guard waits in the server.
    fn guard(&self) -> Result<Guard, Error> {
        let (mut holder, mut guard) = (self.settings.connect()?, self.settings.connect()?);
        let id = guard.value("SELECT CONNECTION_ID()")?.unwrap_or_default();
        let lock = format!("'teak_load_relaxed_{id}'");
        for connection in [&mut holder, &mut guard] {
            connection
                .execute(format!("SET SESSION wait_timeout = {FOREVER}, SESSION max_statement_time = 0"))?;
        }
        holder.value(format!("SELECT GET_LOCK({lock}, 0)"))?;
        let restores: String =
            self.before.iter().map(|(name, value)| format!("SET GLOBAL {name} = {value}; ")).collect();
        let statement = format!("BEGIN NOT ATOMIC DO GET_LOCK({lock}, {FOREVER}); {restores}END");
        let waits = std::thread::Builder::new()
            .name("guard".into())
            .spawn(move || guard.execute(statement).map(drop))
            .map_err(|error| Error::Io { what: "cannot begin a thread".into(), error })?;
        let asked =
            format!("SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {id} AND STATE = 'User lock'");
        let began = Instant::now();
        while !waits.is_finished() && began.elapsed() < PATIENCE {
            if holder.value(&asked)?.is_some() {
                return Ok(Guard { holder, waits });
            }
            std::thread::sleep(PAUSE);
        }
        drop(holder);
        Err(ended(waits).err().unwrap_or_else(|| Error::Protocol("it did not wait".into())))
    }

    fn restore(&mut self) -> Result<(), Error> {
        if let Some(Guard { holder, waits }) = self.guard.take() {
            // Its lock goes with it.
            drop(holder);
            if ended(waits).is_ok() {
                return Ok(());
            }
        }
        if self.before.is_empty() {
            return Ok(());
        }
        let mut connection = self.settings.connect()?;
        for (name, value) in &self.before {
            connection.execute(format!("SET GLOBAL {name} = {value}"))?;
        }
        Ok(())
    }
}

/// The guard's answer.
fn ended(guard: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    guard.join().unwrap_or_else(|_| Err(Error::Protocol("a thread ended by a bug".into())))
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Err(error) = self.restore() {
            let settings: Vec<String> =
                self.before.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            terminal::message(&format!(
                "teak: the server's settings could not be restored ({error}); they were: {}",
                settings.join(", ")
            ));
        }
    }
}
