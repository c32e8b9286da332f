//! `teak backup rehearse`: the proof that a backup is good. It is restored to a directory for that, a server of its own
//! starts there, and every table is checked.
//!
//! ```text
//! restore ──> SCRATCH/data ── mariadbd, by a socket only ── CHECK TABLE ... EXTENDED each ── shut down ── removed
//! ```
//! The server has the set-up that the backup notes (`backup-my.cnf`), asks for no password, reaches nobody and nobody
//! reaches it; what it is told besides, the user says.

use super::{copy_file, Backups};
use crate::backup::files::original_name;
use crate::backup::layout;
use crate::backup::pace::Pace;
use crate::backup::{kept, BackupError};
use crate::client::{Address, Connection, Settings};
use crate::signals;
use clap::Args;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Between two attempts to connect.
const POLL: Duration = Duration::from_millis(100);
/// Of the server's error log, when it has failed.
const SHOWN_LINES: usize = 12;
/// A longer path is no address of a socket.
const LONGEST_SOCKET: usize = 100;

/// Options of `teak backup rehearse`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The backup; of incremental ones the last
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Where it is restored to, and removed afterwards: empty, or does not exist
    #[arg(long, value_name = "SCRATCH")]
    scratch: PathBuf,
    /// Leave what was restored
    #[arg(long)]
    keep: bool,
    /// Append a line with the result to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Where a backup is on which DIR stands, if it was moved; can be given several times
    #[arg(long, value_name = "DIR")]
    base: Vec<PathBuf>,
    /// Threads that copy
    #[arg(long, value_name = "N", default_value_t = 2)]
    parallel: usize,
    /// Seconds that the server may take to start
    #[arg(long, value_name = "N", default_value_t = 600)]
    timeout: u64,
    /// The program of the server
    #[arg(long, value_name = "FILE", default_value = "mariadbd")]
    mariadbd: PathBuf,
    /// An option for it, such as --plugin-dir=DIR; can be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    server_option: Vec<String>,
    /// The program that prepares the other engines' tables
    #[arg(long, value_name = "FILE", default_value = "mariadb-backup")]
    mariadb_backup: PathBuf,
    /// An option for that program; can be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    mariadb_backup_option: Vec<String>,
    /// Show no progress and no result
    #[arg(long, short = 'q')]
    quiet: bool,
    /// Print this help
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Rehearses the restore. An error if there is anything that is not as it should be.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BackupError> {
    let began = Instant::now();
    layout::create_empty_dir(&arguments.scratch)?;
    let result = rehearse(arguments);
    let seconds = began.elapsed().as_secs_f64();
    let line = match &result {
        Ok(tables) => {
            format!("{}: restored, {tables} tables checked, in {seconds:.1} s", arguments.dir.display())
        }
        Err(error) => {
            let first = error.to_string().lines().next().unwrap_or_default().to_string();
            format!("{}: FAILED after {seconds:.1} s: {first}", arguments.dir.display())
        }
    };
    if let Some(log) = &arguments.log {
        let opened = File::options().append(true).create(true).open(log);
        let written =
            opened.and_then(|mut log| writeln!(log, "{} {line}", kept::local_time(crate::backup::now())));
        written.map_err(BackupError::io("cannot write", log))?;
    }
    result?;
    if !arguments.keep {
        std::fs::remove_dir_all(&arguments.scratch)
            .map_err(BackupError::io("cannot remove", &arguments.scratch))?;
    }
    match arguments.quiet {
        true => Ok(()),
        false => writeln!(out, "{line}")
            .map_err(|error| BackupError::Io { what: "cannot write the output".into(), error }),
    }
}

/// How many tables were checked.
fn rehearse(arguments: &Arguments) -> Result<usize, BackupError> {
    let backups = Backups::find(&arguments.dir, &arguments.base)?;
    let datadir = arguments.scratch.join("data");
    let restore = super::Arguments {
        dir: arguments.dir.clone(),
        datadir: datadir.clone(),
        base: arguments.base.clone(),
        parallel: arguments.parallel,
        throttle: None,
        use_memory: None,
        mariadb_backup: arguments.mariadb_backup.clone(),
        mariadb_backup_option: arguments.mariadb_backup_option.clone(),
        quiet: true,
        json: false,
    };
    super::run(&restore, &mut std::io::sink())?;
    let listed = layout::checksums(backups.dir(), backups.last())?;
    let set_up = arguments.scratch.join(super::prepare::SET_UP);
    copy_set_up(backups.dir(), &listed, &set_up)?;
    let mut server = Server::start(arguments, &set_up, &datadir, &backups.last().innodb)?;
    let checked = check(&mut server.connection, definitions(&listed))?;
    server.stop()?;
    Ok(checked)
}

/// What the server was, as mariadb-backup has noted it.
fn copy_set_up(backup: &Path, listed: &[(String, PathBuf)], to: &Path) -> Result<(), BackupError> {
    let is_it = |path: &Path| original_name(&path.to_string_lossy()).0.ends_with(super::prepare::SET_UP);
    match listed.iter().find(|(_, path)| is_it(path)) {
        Some((digest, path)) => copy_file(&backup.join(path), digest, to, &Pace::new(0, true)).map(drop),
        None => layout::write_file(to, b"[mysqld]\n"),
    }
}

/// How many tables and views a backup has, by the files of their definitions.
fn definitions(listed: &[(String, PathBuf)]) -> usize {
    let names = listed.iter().map(|(_, path)| path.to_string_lossy());
    names.filter(|name| original_name(name).0.ends_with(".frm") && !name.contains("#sql")).count()
}

/// The server of a rehearsal, which ends with it.
struct Server {
    process: Child,
    connection: Connection,
}

impl Server {
    fn start(
        arguments: &Arguments,
        set_up: &Path,
        datadir: &Path,
        noted: &BTreeMap<String, String>,
    ) -> Result<Server, BackupError> {
        let here = |path: &Path| path.canonicalize().map_err(BackupError::io("cannot find", path));
        let (scratch, datadir) = (here(&arguments.scratch)?, here(datadir)?);
        let (socket, log) = (scratch.join("sock"), scratch.join("mariadbd.log"));
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let detail =
                format!("{} is too long a name for a socket: give a shorter --scratch", socket.display());
            return Err(BackupError::Usage(detail));
        }
        let path = super::path_option;
        let mut command = Command::new(&arguments.mariadbd);
        command
            .arg(path("defaults-file", &here(set_up)?))
            .args([path("datadir", &datadir), path("socket", &socket), path("log-error", &log)])
            .args([path("pid-file", &scratch.join("pid")), path("tmpdir", &scratch)])
            .args(["--skip-networking", "--skip-grant-tables", "--skip-slave-start", "--skip-log-bin"])
            .args(["--event-scheduler=DISABLED", "--innodb-undo-directory=./", "--plugin-load-add=ha_teak"])
            .args(noted.get(LOWER_CASE).map(|value| format!("--{LOWER_CASE}={value}")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: geteuid has no arguments and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            command.arg("--user=root");
        }
        let spawned = command.args(&arguments.server_option).spawn();
        let mut process = spawned.map_err(BackupError::io("cannot run", &arguments.mariadbd))?;
        match connect(&mut process, &socket, arguments.timeout) {
            Ok(connection) => Ok(Server { process, connection }),
            Err(why) => {
                end(&mut process);
                let told = std::fs::read_to_string(&log).unwrap_or_default();
                let lines: Vec<_> = told.lines().collect();
                let tail = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
                Err(BackupError::damaged(
                    &datadir,
                    format!("no server starts on it: {why}; its last messages:\n{tail}"),
                ))
            }
        }
    }

    fn stop(mut self) -> Result<(), BackupError> {
        self.connection.execute("SHUTDOWN")?;
        let ended = self.process.wait();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(BackupError::Usage(format!("the server of the rehearsal has ended with {status}")))
            }
            Err(error) => Err(BackupError::Io { what: "cannot wait for the server".into(), error }),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// It may have ended already.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

/// The variable by which names of files are made.
pub const LOWER_CASE: &str = "lower_case_table_names";

fn connect(process: &mut Child, socket: &Path, seconds: u64) -> Result<Connection, String> {
    let settings = Settings {
        address: Address::Socket(socket.to_path_buf()),
        user: "root".into(),
        password: String::new(),
        database: None,
        character_set: "utf8mb4".into(),
        connect_timeout: None,
        several_statements: false,
        tls: Default::default(),
    };
    let began = Instant::now();
    loop {
        match (settings.connect(), process.try_wait()) {
            (Ok(connection), _) => return Ok(connection),
            (_, Ok(Some(status))) => return Err(status.to_string()),
            (Err(error), _) if began.elapsed() > Duration::from_secs(seconds) => {
                return Err(error.to_string())
            }
            _ if signals::interrupted() => return Err("interrupted".into()),
            _ => std::thread::sleep(POLL),
        }
    }
}

/// Checks all tables; there have to be so many of them and of views.
fn check(connection: &mut Connection, definitions: usize) -> Result<usize, BackupError> {
    let text =
        |value: &Option<Vec<u8>>| String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned();
    let quoted = |value: &Option<Vec<u8>>| format!("`{}`", text(value).replace('`', "``"));
    let tables = connection.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema') ORDER BY 1, 2",
    )?;
    if tables.len() != definitions {
        let detail =
            format!("the backup lists {definitions} tables and views, and the server knows {}", tables.len());
        return Err(BackupError::damaged(Path::new("the restored server"), detail));
    }
    let mut checked = 0;
    for table in tables.iter().filter(|table| !text(&table[2]).ends_with("VIEW")) {
        if signals::interrupted() {
            return Err(BackupError::Interrupted);
        }
        let name = format!("{}.{}", quoted(&table[0]), quoted(&table[1]));
        let found = connection.query(format!("CHECK TABLE {name} EXTENDED"))?;
        let is_bad = |row: &&Vec<Option<Vec<u8>>>| {
            let (kind, said) = (text(&row[2]), text(&row[3]));
            kind.eq_ignore_ascii_case("error")
                || (kind == "status" && said != "OK" && !said.contains("not support"))
        };
        match found.iter().find(is_bad) {
            Some(row) => return Err(BackupError::damaged(Path::new(&name), text(&row[3]))),
            None => checked += 1,
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_those_of_tables_and_views() {
        let names =
            ["server/d/t.frm.zst", "server/d/v.frm", "server/d/t.ibd", "server/d/#sql-1.frm", "server/d/frm"];
        let listed: Vec<_> = names.iter().map(|name| (String::new(), PathBuf::from(name))).collect();
        assert_eq!(definitions(&listed), 2);
    }
}
