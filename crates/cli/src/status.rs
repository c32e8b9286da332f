//! Exit statuses: by what a script would do about a failure. The table is in docs/operations.md.

use crate::backup::BackupError;
use crate::convert::ConvertError;
use crate::load::LoadError;
use crate::{bench, client, signals, Failure};
use std::process::ExitCode;
use teak_core::Error as CoreError;

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

/// The exit status of a command that failed.
pub fn of(failure: &Failure) -> ExitCode {
    match signals::received() {
        Some(signal) => (OF_SIGNALS + u8::try_from(signal).unwrap_or(0)).into(),
        None => (Status::of(failure) as u8).into(),
    }
}

impl Status {
    fn of(failure: &Failure) -> Status {
        match failure {
            Failure::Core(error) => Status::of_core(error),
            Failure::Bench(error) => Status::of_bench(error),
            Failure::Load(error) => Status::of_load(error),
            Failure::Convert(error) => Status::of_convert(error),
            Failure::Backup(error) => Status::of_backup(error),
            Failure::Output(_) => Status::InputOutput,
            Failure::Damaged(_) => Status::Damage,
            Failure::NoEngine(_) => Status::Usage,
        }
    }

    fn of_core(error: &CoreError) -> Status {
        match error {
            CoreError::Io { .. } | CoreError::DiskFull { .. } | CoreError::NoDescriptor { .. } => {
                Status::InputOutput
            }
            CoreError::Corrupt { .. } => Status::Damage,
            CoreError::InUse { .. } => Status::Usage,
            _ => Status::Other,
        }
    }

    fn of_client(error: &client::Error) -> Status {
        match error {
            client::Error::Settings(_) => Status::Usage,
            _ => Status::Server,
        }
    }

    fn of_bench(error: &bench::Error) -> Status {
        match error {
            bench::Error::Client(error) => Status::of_client(error),
            bench::Error::File { .. } => Status::InputOutput,
            bench::Error::Usage(_) => Status::Usage,
            bench::Error::Changed { .. } | bench::Error::WrongValue { .. } => Status::Damage,
            bench::Error::Json { .. } | bench::Error::Failed(_) | bench::Error::Panic(_) => Status::Other,
        }
    }

    fn of_load(error: &LoadError) -> Status {
        match error {
            LoadError::Read { .. } | LoadError::Output(_) => Status::InputOutput,
            LoadError::Split { error, .. } if error.is_of_reading() => Status::InputOutput,
            LoadError::Split { .. } | LoadError::Different(_) => Status::Damage,
            LoadError::Statement { error, .. } | LoadError::Server(error) => Status::of_client(error),
            LoadError::TooLong { .. } | LoadError::SerialOnly { .. } | LoadError::OtherDatabase { .. } => {
                Status::Usage
            }
            LoadError::Usage(_) => Status::Usage,
            LoadError::Unfinished { error, .. } => Status::of_load(error),
            LoadError::NothingToResume => Status::NothingToResume,
            LoadError::Skipped(_) | LoadError::Interrupted | LoadError::Stopped => Status::Other,
        }
    }

    fn of_convert(error: &ConvertError) -> Status {
        match error {
            ConvertError::Server(error) | ConvertError::Statement { error, .. } => Status::of_client(error),
            ConvertError::Usage(_) => Status::Usage,
            ConvertError::Different { .. } => Status::Damage,
            ConvertError::Output(_) => Status::InputOutput,
            ConvertError::Unfinished { error, .. } => Status::of_convert(error),
            ConvertError::Refused(_) | ConvertError::Interrupted => Status::Other,
        }
    }

    fn of_backup(error: &BackupError) -> Status {
        match error {
            BackupError::Server(error) => Status::of_client(error),
            BackupError::Core(error) => Status::of_core(error),
            BackupError::Io { .. } => Status::InputOutput,
            BackupError::Usage(_) => Status::Usage,
            BackupError::Damaged { .. } => Status::Damage,
            _ => Status::Other,
        }
    }
}
