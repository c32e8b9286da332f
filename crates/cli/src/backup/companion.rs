//! `mariadb-backup`, which copies the rest of the server: it runs below this program and talks to the server through
//! it.
//!
//! ```text
//! mariadb-backup ── statements ──> socket here ──> a connection of ours each ──> server
//!               └── stream of files ──> Files
//! ```
//! So it is known when commits are about to be blocked, and when they are (`Stages`).

use super::files::Files;
use super::messages::Messages;
use super::pace::Pace;
use super::selection::Selection;
use super::source::Places;
use super::unnamed::Door;
use super::BackupError;
use crate::children::ends_with_us;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use teak_client::{Answered, Guest, Settings};
use teak_console::signals;

/// Between two looks at whether it has ended.
const POLL: Duration = Duration::from_millis(20);
/// Before each backup in a session: the warning that the engine's tables are not in it is not for us.
const ANNOUNCE: &str = "SET SESSION teak_backup_warning = OFF";

/// Files at the top that mariadb-backup keeps for itself, but for the beginnings of their names.
const OWN: [&str; 2] = ["backup-my.cnf", "donor_galera_info"];
const OWN_BEGINNINGS: [&str; 2] = ["xtrabackup_", "mariadb_backup_"];
const OWN_ENDINGS: [&str; 8] = [
    "checkpoints",
    "info",
    "binlog_info",
    "slave_info",
    "galera_info",
    "binlog_pos_innodb",
    "logfile",
    "suspended",
];

/// What is done around the statement that blocks commits.
pub trait Stages: Send {
    /// Large files are copied, and what comes next blocks others: MyISAM's and Aria's writers at first, then DDL.
    fn before_flush(&mut self) -> Result<(), BackupError>;
    /// Commits are about to be blocked: the server waits.
    fn before_block(&mut self) -> Result<(), BackupError>;
    /// Commits are blocked, and are until this returns.
    fn blocked(&mut self) -> Result<(), BackupError>;
}

/// How `mariadb-backup` is called.
pub struct Call<'a> {
    pub program: &'a Path,
    pub parallel: usize,
    /// Only what has changed since.
    pub incremental_lsn: Option<String>,
    /// Only these tables.
    pub selection: Option<&'a Selection>,
    /// Options of the user.
    pub options: &'a [String],
    pub messages: &'a Messages,
    /// Is stopped when it fails, and stops it.
    pub pace: &'a Pace,
}

/// Runs it to its end; `files` are those that it sent.
pub fn run(
    call: &Call<'_>,
    settings: &Settings,
    places: &Places,
    stages: &mut dyn Stages,
    files: &mut Files<'_>,
) -> Result<(), BackupError> {
    let door = Door::open()?;
    let mut child = spawn(call, places, &door)?;
    let output = child.stdout.take();
    let failure = Failure::default();
    let stages = Mutex::new(stages);
    std::thread::scope(|scope| {
        let files = scope.spawn(|| receive(output, files));
        let (door, listening) = (&door, &failure);
        let stages = &stages;
        scope.spawn(move || {
            for stream in door.listener.incoming() {
                let Ok(stream) = stream else { break };
                if listening.has_ended() {
                    break;
                }
                scope.spawn(move || {
                    if let Err(error) = serve(stream, settings, stages) {
                        listening.note(error);
                    }
                });
            }
        });
        let status = wait(&mut child, &failure, call.pace);
        failure.end();
        let is_done = status.as_ref().is_ok_and(|status| status.success());
        if !is_done && !call.messages.tell_that_log_was_missed() {
            // What it waits for here is to end, too.
            call.pace.stop();
        }
        // The listener notices the end when somebody comes.
        let _ = UnixStream::connect(door.path());
        let files = files.join().map_err(|_| BackupError::Stopped);
        if let Some(first) = failure.take() {
            return Err(first);
        }
        let status = status?;
        match status.success() {
            true => files?,
            false => match files {
                // Its own end is the reason of whatever was found in the stream; but not of a full disk here.
                Ok(Err(error @ (BackupError::Io { .. } | BackupError::Interrupted))) if !is_cut(&error) => {
                    Err(error)
                }
                _ => Err(call.messages.failed(status)),
            },
        }
    })
}

/// The stream ended too early.
fn is_cut(error: &BackupError) -> bool {
    matches!(error, BackupError::Io { error, .. } if error.kind() == std::io::ErrorKind::UnexpectedEof)
}

fn spawn(call: &Call<'_>, places: &Places, door: &Door) -> Result<Child, BackupError> {
    let mut command = Command::new(call.program);
    command
        .args(["--no-defaults", "--backup", "--stream=mbstream", "--protocol=socket"])
        .args(["--host=localhost", "--user=teak", "--password=unused"])
        .arg(path_option("socket", &door.path()))
        .arg(path_option("datadir", &places.datadir))
        .arg(path_option("plugin-dir", &places.plugin_dir))
        .arg(path_option("aria-log-dir-path", &places.aria_log_dir))
        .arg(format!("--parallel={}", call.parallel))
        .args(call.incremental_lsn.iter().map(|lsn| format!("--incremental-lsn={lsn}")))
        .args(call.selection.iter().flat_map(|selection| selection.options()))
        .args(call.options)
        .env_remove("MYSQL_PWD")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(call.messages.output()?);
    ends_with_us(&mut command).spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => BackupError::Usage(format!(
            "{} is not there: install the package mariadb-backup of the server's version, or name the program with \
             --mariadb-backup=FILE",
            call.program.display()
        )),
        _ => BackupError::io("cannot run", call.program)(error),
    })
}

/// An option of `mariadb-backup` whose value is a path, which need not be a text.
pub fn path_option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    option.push(path);
    option
}

fn receive(output: Option<ChildStdout>, files: &mut Files<'_>) -> Result<(), BackupError> {
    let output = output.ok_or(BackupError::Stopped)?;
    // If this fails, its pipe closes, and it ends.
    files.receive(std::io::BufReader::with_capacity(1 << 16, output))
}

/// Until it ends, or has to.
fn wait(child: &mut Child, failure: &Failure, pace: &Pace) -> Result<std::process::ExitStatus, BackupError> {
    let unknown = |error| BackupError::Io { what: "cannot wait for mariadb-backup".into(), error };
    loop {
        if let Some(status) = child.try_wait().map_err(unknown)? {
            return Ok(status);
        }
        if signals::interrupted() {
            failure.note(BackupError::Interrupted);
        }
        if pace.is_stopped() {
            failure.note(BackupError::Stopped);
        }
        if failure.is_there() {
            // It may have ended by itself just now.
            let _ = child.kill();
            return child.wait().map_err(unknown);
        }
        std::thread::sleep(POLL);
    }
}

/// One connection of it.
fn serve(
    stream: UnixStream,
    settings: &Settings,
    stages: &Mutex<&mut dyn Stages>,
) -> Result<(), BackupError> {
    let mut server = settings.connect()?;
    // mariadb-backup asks for as much itself, but may come to it late on a busy machine.
    server.execute("SET SESSION wait_timeout = 31536000")?;
    let Ok(mut guest) = Guest::welcome(stream, &server) else { return Ok(()) };
    let failed = Mutex::new(None);
    let staged = |work: &mut dyn FnMut(&mut dyn Stages) -> Result<(), BackupError>| {
        let mut stages = stages.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut **stages).map_err(|error| {
            let message = error.to_string();
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            message
        })
    };
    loop {
        let answered = guest.serve(
            &mut server,
            &mut |statement, server| match stage(statement) {
                None => {
                    if let Some(quoted) = quoted(statement) {
                        *statement = quoted;
                    }
                    Ok(())
                }
                Some("START") => server.execute(ANNOUNCE).map(drop).map_err(|error| error.to_string()),
                Some("FLUSH") => staged(&mut |stages| stages.before_flush()),
                Some("BLOCK_COMMIT") => staged(&mut |stages| stages.before_block()),
                _ => Ok(()),
            },
            &mut |statement| match stage(statement) {
                Some("BLOCK_COMMIT") => staged(&mut |stages| stages.blocked()),
                _ => Ok(()),
            },
        );
        if let Some(error) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        match answered {
            Ok(Answered::Yes) => {}
            // What has become of it, its exit status says.
            Ok(Answered::Gone) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// mariadb-backup locks Aria's tables by their names, between backticks, and does not quote those that are in a name:
/// the statement as it is meant, if that is another.
fn quoted(statement: &str) -> Option<String> {
    let (database, table) = statement.strip_prefix("BACKUP LOCK `")?.strip_suffix('`')?.split_once("`.`")?;
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let meant = format!("BACKUP LOCK {}.{}", quoted(database), quoted(table));
    (meant != statement).then_some(meant)
}

/// The stage that a statement begins.
fn stage(statement: &str) -> Option<&'static str> {
    let words: Vec<_> = statement.split_whitespace().map(str::to_ascii_uppercase).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["BACKUP", "STAGE", "START"] => Some("START"),
        ["BACKUP", "STAGE", "FLUSH"] => Some("FLUSH"),
        ["BACKUP", "STAGE", "BLOCK_COMMIT"] => Some("BLOCK_COMMIT"),
        _ => None,
    }
}

/// The first thing that went wrong, and whether it is all over.
#[derive(Default)]
struct Failure(Mutex<(Option<BackupError>, bool)>);

impl Failure {
    fn lock(&self) -> std::sync::MutexGuard<'_, (Option<BackupError>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, error: BackupError) {
        self.lock().0.get_or_insert(error);
    }

    fn is_there(&self) -> bool {
        self.lock().0.is_some()
    }

    fn take(&self) -> Option<BackupError> {
        self.lock().0.take()
    }

    fn end(&self) {
        self.lock().1 = true;
    }

    fn has_ended(&self) -> bool {
        self.lock().1
    }
}

/// Whether a file at the top is mariadb-backup's own, and no server's.
pub fn is_own(name: &str) -> bool {
    let is_it =
        |beginning: &&str| name.strip_prefix(*beginning).is_some_and(|end| OWN_ENDINGS.contains(&end));
    OWN.contains(&name) || OWN_BEGINNINGS.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_mariadb_backup_are_known_by_their_whole_names() {
        for name in
            ["xtrabackup_info", "mariadb_backup_checkpoints", "backup-my.cnf", "xtrabackup_slave_info"]
        {
            assert!(is_own(name), "{name}");
        }
        for name in ["xtrabackup_logs", "mariadb_backup_history", "xtrabackup_", "ibdata1", "backup-my"] {
            assert!(!is_own(name), "{name}");
        }
    }

    #[test]
    fn backticks_in_names_are_quoted() {
        assert_eq!(quoted("BACKUP LOCK `a`b`.``t`").unwrap(), "BACKUP LOCK `a``b`.```t`");
        assert_eq!(quoted("BACKUP LOCK `a`.`t`"), None);
        assert_eq!(quoted("BACKUP UNLOCK"), None);
    }

    #[test]
    fn stages_are_recognised_however_they_are_written() {
        assert_eq!(stage("BACKUP STAGE BLOCK_COMMIT"), Some("BLOCK_COMMIT"));
        assert_eq!(stage(" backup  stage\nblock_commit "), Some("BLOCK_COMMIT"));
        assert_eq!(stage("BACKUP STAGE START"), Some("START"));
        assert_eq!(stage("BACKUP STAGE FLUSH"), Some("FLUSH"));
        assert_eq!(stage("BACKUP STAGE END"), None);
        assert_eq!(stage("SELECT 'BACKUP STAGE START'"), None);
    }
}
