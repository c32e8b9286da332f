//! Why tables were not converted.

use super::name::Name;
use teak_client as client;

#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    #[error("{0}")]
    Server(#[from] client::Error),
    #[error("{error}\n  in {statement}")]
    Statement { statement: String, error: client::Error },
    #[error("{0}")]
    Usage(String),
    /// Each was told.
    #[error("nothing was converted: {0}")]
    Refused(String),
    #[error("{table} differs from what it was before: {detail}")]
    Different { table: Name, detail: String },
    #[error("interrupted")]
    Interrupted,
    /// Some of the work is done.
    #[error("{error}\n  {}", what_is_left(error, *missing))]
    Unfinished { error: Box<ConvertError>, missing: usize },
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
