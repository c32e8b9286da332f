//! Less durability while a load runs that can be repeated: commits do not wait for the disk.

use crate::client::{Error, Settings};
use crate::terminal;

/// What is set, and to what, as far as the server has it.
const RELAXED: &[(&str, &str)] =
    &[("innodb_flush_log_at_trx_commit", "2"), ("sync_binlog", "0"), ("teak_flush_log_at_trx_commit", "2")];

/// The server's settings are relaxed as long as this lives, and are restored when it is dropped.
pub struct Relaxed {
    settings: Settings,
    /// Name and value of those that were changed.
    before: Vec<(&'static str, String)>,
}

impl Relaxed {
    pub fn begin(settings: &Settings) -> Result<Relaxed, Error> {
        let mut connection = settings.connect()?;
        let mut relaxed = Relaxed { settings: settings.clone(), before: Vec::new() };
        for (name, value) in RELAXED {
            let before = match connection.value(format!("SELECT @@GLOBAL.{name}")) {
                Ok(before) => before.unwrap_or_default(),
                // The engine is not there.
                Err(Error::Server { code: 1193, .. }) => continue,
                Err(error) => return Err(error),
            };
            if before != *value {
                relaxed.before.push((name, before));
                connection.execute(format!("SET GLOBAL {name} = {value}"))?;
            }
        }
        Ok(relaxed)
    }

    fn restore(&self) -> Result<(), Error> {
        let mut connection = self.settings.connect()?;
        for (name, value) in &self.before {
            connection.execute(format!("SET GLOBAL {name} = {value}"))?;
        }
        Ok(())
    }
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
