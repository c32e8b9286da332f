//! Exit statuses of failures.

use crate::backup::BackupError;
use crate::Failure;
use teak_console::Status;
use teak_core::Error as CoreError;

/// The exit status of a command that failed.
pub fn of(failure: &Failure) -> Status {
    match failure {
        Failure::Core(error) => of_core(error),
        Failure::Load(error) => error.status(),
        Failure::Convert(error) => error.status(),
        Failure::Binlog(error) => error.status(),
        Failure::Replicate(error) => error.status(),
        Failure::Exporter(error) => error.status(),
        Failure::Report(error) => error.status(),
        Failure::Top(error) => error.status(),
        Failure::Resolve(error) => error.status(),
        Failure::Archive(error) => error.status(),
        Failure::Backup(error) => of_backup(error),
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

fn of_backup(error: &BackupError) -> Status {
    match error {
        BackupError::Server(error) => error.status(),
        BackupError::Core(error) => of_core(error),
        BackupError::Io { .. } => Status::InputOutput,
        BackupError::Usage(_) => Status::Usage,
        BackupError::Damaged { .. } => Status::Damage,
        _ => Status::Other,
    }
}
