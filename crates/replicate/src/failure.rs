//! Why following a source comes to a halt, by what is done about it.

use crate::DumpError;
use teak_client::Error;
use teak_console::Status;

/// Why following a source comes to a halt.
#[derive(Debug)]
pub enum Failure {
    /// It passes: it is tried again.
    Passing(String),
    /// Something of several transactions, or of many rows, could not be applied: one by one it is found out what.
    Unclear(String),
    /// It does not pass: the source stops, and somebody must look.
    Final(String, Status),
    /// `pause`, `resume`, `skip` or `stop` has asked for something: the next connection finds out what.
    Asked,
}

/// Of a target that refuses what another time it would not: conflicts with others (1020, 1205, 1213), too many
/// connections or no room for one more (1040, 1203, 1226), its end (1053, 1927, 1317), full disks (1021, 1114), time
/// limits (1969), and servers that take no changes for now (1290, 1836).
const PASSING: [u16; 14] =
    [1020, 1021, 1040, 1053, 1114, 1203, 1205, 1213, 1226, 1290, 1317, 1836, 1927, 1969];

impl Failure {
    /// An error of the target: `what` was being done.
    pub fn of_target(error: &Error, what: impl FnOnce() -> String) -> Failure {
        match error {
            Error::Server { code, .. } if !PASSING.contains(code) => {
                Failure::Final(format!("{}: target: {error}", what()), Status::Server)
            }
            Error::Server { .. } | Error::Io { .. } | Error::Protocol(_) => {
                Failure::Passing(format!("target: {error}"))
            }
            _ => Failure::Final(format!("target: {error}"), error.status()),
        }
    }

    /// The same of statements of which the error does not tell which one it was.
    pub fn of_several(error: &Error) -> Failure {
        match Failure::of_target(error, String::new) {
            Failure::Final(..) if matches!(error, Error::Server { .. }) => {
                Failure::Unclear(format!("target: {error}"))
            }
            other => other,
        }
    }

    /// An error of the source.
    pub fn of_source(error: &Error) -> Failure {
        match error {
            Error::Server { code, .. } if !PASSING.contains(code) => {
                Failure::Final(format!("source: {error}"), Status::Server)
            }
            Error::Server { .. } | Error::Io { .. } | Error::Protocol(_) => {
                Failure::Passing(format!("source: {error}"))
            }
            _ => Failure::Final(format!("source: {error}"), error.status()),
        }
    }
}

impl From<DumpError> for Failure {
    fn from(error: DumpError) -> Failure {
        match error {
            DumpError::Server(error) => Failure::of_source(&error),
            DumpError::Log(error) => Failure::Final(format!("source: {error}"), Status::Damage),
            other => Failure::Final(format!("source: {other}"), Status::Usage),
        }
    }
}
