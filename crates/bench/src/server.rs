//! The server that is measured.

use super::Error;
use teak_client::{Arguments, Settings};
use teak_console::terminal;

/// Where benchmarks have their tables, unless the command line says otherwise.
const DATABASE: &str = "linkbench";

/// What every benchmark has to know of the server.
#[derive(clap::Args)]
pub struct Server {
    /// Storage engine of the tables that are made
    #[arg(long, default_value = "Teak")]
    pub engine: String,
    #[command(flatten)]
    client: Arguments,
}

impl Server {
    /// The settings of connections to the database, which is made if it is not there.
    pub fn settings(&self) -> Result<Settings, Error> {
        self.settings_in(DATABASE)
    }

    /// The same for a benchmark whose tables are in another database than the usual one.
    pub fn settings_in(&self, usual: &str) -> Result<Settings, Error> {
        let mut settings = Settings::read(&self.client)?;
        let database = settings.database.take().unwrap_or_else(|| usual.into());
        let mut connection = settings.connect()?;
        let made =
            connection.execute(format!("CREATE DATABASE IF NOT EXISTS `{}`", database.replace('`', "``")))?;
        // With a note if it was there.
        if made.warnings == 0 {
            terminal::message(&format!(
                "made the database {database}, which stays: DROP DATABASE removes it"
            ));
        }
        settings.database = Some(database);
        // That of the tables, so that the server converts nothing; a COMMIT can be sent with the statement before it.
        settings.character_set = "latin1".into();
        settings.several_statements = true;
        Ok(settings)
    }
}

/// Whether a name can be an engine's; it becomes part of statements.
pub fn checked_engine(engine: &str) -> Result<&str, Error> {
    if engine.is_empty() || !engine.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(Error::Usage(format!("'{engine}' is not the name of a storage engine")));
    }
    Ok(engine)
}
