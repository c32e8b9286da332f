//! Exit statuses: by what a script would do about a failure. The table is in docs/operations.md.

use crate::signals;
use std::process::ExitCode;

/// Added to the number of the signal that ended a command, as shells do it.
const OF_SIGNALS: u8 = 128;

/// Why a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// None of the others.
    Other = 1,
    /// The command line, option files, or what was asked for is wrong: the same command fails again. The number that
    /// the parser of command lines has, too.
    Usage = 2,
    /// Data, a backup or a dump is damaged or incomplete, or rows are not what they should be.
    Damage = 3,
    /// A file or the output could not be read or written.
    InputOutput = 4,
    /// No connection to the server, it broke, or the server refused what it was asked.
    Server = 5,
    /// `--resume` without anything recorded.
    NothingToResume = 6,
}

/// That of a signal, if one ended the command.
impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        match signals::received() {
            Some(signal) => (OF_SIGNALS + u8::try_from(signal).unwrap_or(0)).into(),
            None => (status as u8).into(),
        }
    }
}
