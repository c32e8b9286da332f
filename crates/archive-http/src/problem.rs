//! What is answered if something fails: a status, and a JSON object with `error`, and with `field` where one is at
//! fault. Paths of files, and what went wrong inside, are for the log.

use hyper::header::{HeaderName, HeaderValue, ALLOW, RETRY_AFTER};
use hyper::StatusCode;
use serde_json::json;
use teak_archive::Error;
use teak_core::Error as CoreError;

/// Why a request is not answered as it wants to be.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    text: String,
    /// Of the schema, of a JSON object, a parameter, a header.
    field: Option<String>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// What the log is told, and nobody else.
    pub(crate) detail: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Problem {
        Problem { status, text: text.into(), field: None, headers: Vec::new(), detail: None }
    }

    /// Of a request that says something wrong.
    pub(crate) fn bad(text: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, text)
    }

    /// The same, with what is wrong in it.
    pub(crate) fn of_field(field: &str, text: impl Into<String>) -> Problem {
        Problem::bad(text).with_field(field)
    }

    pub(crate) fn with_field(self, field: &str) -> Problem {
        Problem { field: Some(field.to_string()), ..self }
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: &str) -> Problem {
        self.headers.extend(HeaderValue::from_str(value).map(|value| (name, value)));
        self
    }

    pub(crate) fn not_allowed(allowed: &[&str]) -> Problem {
        let allowed = allowed.join(", ");
        let text = format!("this path has the methods {allowed}");
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, text).with_header(ALLOW, &allowed)
    }

    /// For who may try again.
    pub(crate) fn busy(text: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, text).with_header(RETRY_AFTER, "1")
    }

    /// What is wrong here, and nobody else is to know how.
    pub(crate) fn inside(detail: impl Into<String>) -> Problem {
        let text = "the server could not do it: its log says why";
        Problem { detail: Some(detail.into()), ..Problem::new(StatusCode::INTERNAL_SERVER_ERROR, text) }
    }

    /// In a question, where a field that there is not is no matter of a record.
    pub(crate) fn in_question(self) -> Problem {
        match self.status {
            StatusCode::UNPROCESSABLE_ENTITY => Problem { status: StatusCode::BAD_REQUEST, ..self },
            _ => self,
        }
    }

    /// Of a tree of names, in which a path and what it gives fits what is there, or not.
    pub(crate) fn in_tree(self) -> Problem {
        match self.status {
            StatusCode::UNPROCESSABLE_ENTITY => Problem { status: StatusCode::CONFLICT, ..self },
            _ => self.in_path(),
        }
    }

    /// In a path of a view, which fits the view or not.
    pub(crate) fn in_path(self) -> Problem {
        match self.status {
            StatusCode::BAD_REQUEST => Problem { status: StatusCode::CONFLICT, ..self },
            _ => self,
        }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = json!({ "error": self.text });
        if let Some(field) = &self.field {
            body["field"] = field.clone().into();
        }
        (body.to_string() + "\n").into_bytes()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let status = match &error {
            Error::Name(_)
            | Error::Syntax { .. }
            | Error::Query(_)
            | Error::Usage(_)
            | Error::Stream { .. } => StatusCode::BAD_REQUEST,
            Error::Missing(_) | Error::MissingVersion { .. } | Error::Unknown(_) => StatusCode::NOT_FOUND,
            Error::Conflict(_) | Error::Schema(_) => StatusCode::CONFLICT,
            Error::OtherVersion { .. } | Error::Precondition(_) => StatusCode::PRECONDITION_FAILED,
            Error::Range { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            Error::Field { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Error::Protected { .. } => StatusCode::LOCKED,
            Error::Quota(_) => StatusCode::INSUFFICIENT_STORAGE,
            Error::Damaged { .. } | Error::Inconsistent(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Error::Core(error) => return of_core(error),
            Error::InUse(_) | Error::NoArchive(_) | Error::Exists(_) | Error::TooNew { .. } => {
                return Problem::inside(error.to_string())
            }
        };
        let problem = Problem::new(status, error.to_string());
        match error {
            Error::Field { field, .. } => problem.with_field(&field),
            Error::Damaged { .. } | Error::Inconsistent(_) => {
                Problem { detail: Some(error.to_string()), ..problem }
            }
            _ => problem,
        }
    }
}

/// Without the names of files.
fn of_core(error: &CoreError) -> Problem {
    match error {
        CoreError::DiskFull { .. } | CoreError::SpillFull { .. } => Problem {
            detail: Some(error.to_string()),
            ..Problem::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "no space is left; nothing was lost, and what is there can be read",
            )
        },
        CoreError::Deadlock
        | CoreError::LockTimeout
        | CoreError::WouldBlock
        | CoreError::SnapshotConflict
        | CoreError::SnapshotTooOld { .. }
        | CoreError::HistoryFull { .. }
        | CoreError::LockMemory { .. }
        | CoreError::CheckpointsPaused
        | CoreError::NoDescriptor { .. } => {
            Problem { detail: Some(error.to_string()), ..Problem::busy("the server is too busy: try again") }
        }
        CoreError::TooLarge { .. } => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        _ => Problem::inside(error.to_string()),
    }
}
