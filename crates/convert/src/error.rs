//! Why tables were not converted.

use super::name::Name;
use teak_client as client;
use teak_console::Status;

/// Why a conversion failed.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// No connection, or what was asked failed.
    #[error("{0}")]
    Server(#[from] client::Error),
    /// The server refused a statement, or the connection broke meanwhile.
    #[error("{error}\n  in {statement}")]
    Statement {
        /// As it was sent.
        statement: String,
        /// Why.
        error: client::Error,
    },
    /// What the command line asks for cannot be done.
    #[error("{0}")]
    Usage(String),
    /// Each was told.
    #[error("nothing was converted: {0}")]
    Refused(String),
    /// A table is not what it was.
    #[error("{table} differs from what it was before: {detail}")]
    Different {
        /// Which.
        table: Name,
        /// In what.
        detail: String,
    },
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
    /// Some of the work is done.
    #[error("{error}\n  {}", what_is_left(error, *missing))]
    Unfinished {
        /// Why it ended.
        error: Box<ConvertError>,
        /// Foreign keys that are not added again yet.
        missing: usize,
    },
    /// Standard output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

fn what_is_left(error: &ConvertError, missing: usize) -> String {
    let goes_on = match error {
        ConvertError::Different { .. } => {
            "it has the new engine, and the same command would not look at it again: look why before that goes on with \
             the others"
        }
        _ => "the same command goes on from here",
    };
    let kept = "definition is in the table teak_convert.foreign_keys";
    match missing {
        0 => goes_on.to_string(),
        1 => format!("{goes_on}; until then 1 foreign key is missing, whose {kept}"),
        _ => format!(
            "{goes_on}; until then {missing} foreign keys are missing, whose {}",
            kept.replace(" is", "s are")
        ),
    }
}

impl ConvertError {
    /// Of a statement that is worth showing.
    pub fn of(statement: &str) -> impl FnOnce(client::Error) -> ConvertError + '_ {
        move |error| ConvertError::Statement { statement: statement.to_string(), error }
    }
}

impl ConvertError {
    /// The exit status of a command that fails by it.
    pub fn status(&self) -> Status {
        match self {
            ConvertError::Server(error) | ConvertError::Statement { error, .. } => error.status(),
            ConvertError::Usage(_) => Status::Usage,
            ConvertError::Different { .. } => Status::Damage,
            ConvertError::Output(_) => Status::InputOutput,
            ConvertError::Unfinished { error, .. } => error.status(),
            ConvertError::Refused(_) | ConvertError::Interrupted => Status::Other,
        }
    }
}
