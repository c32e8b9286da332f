//! A server of this program's own, on what was restored: by a socket only, it asks for no password, reaches nobody
//! and nobody reaches it. It has the set-up that the backup notes (`backup-my.cnf`); what it is told besides, the user
//! says.

use super::copy_file;
use crate::backup::chain::Backups;
use crate::backup::companion::path_option;
use crate::backup::files::original_name;
use crate::backup::layout::{self, LOWER_CASE};
use crate::backup::pace::Pace;
use crate::backup::BackupError;
use crate::children::ends_with_us;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use teak_client::{Address, Connection, Settings};
use teak_console::signals;

/// Between two attempts to connect.
const POLL: Duration = Duration::from_millis(100);
/// Of the server's error log, when it has failed.
const SHOWN_LINES: usize = 12;
/// A longer path is no address of a socket.
const LONGEST_SOCKET: usize = 100;

/// How it is started.
#[derive(Args, Debug, Default)]
pub struct Launch {
    /// Seconds that the server may take to start
    #[arg(long, value_name = "N", default_value_t = 600)]
    timeout: u64,
    /// The program of the server
    #[arg(long, value_name = "FILE", default_value = "mariadbd")]
    mariadbd: PathBuf,
    /// An option for it, such as --plugin-dir=DIR; can be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    server_option: Vec<String>,
}

/// The server, which ends with this.
pub struct Server {
    process: Child,
    pub connection: Connection,
    pub socket: PathBuf,
}

impl Server {
    /// On what `backups` were restored to; its socket, log and temporary files are in `scratch`.
    pub fn start(
        launch: &Launch,
        backups: &Backups,
        datadir: &Path,
        scratch: &Path,
    ) -> Result<Server, BackupError> {
        let here = |path: &Path| path.canonicalize().map_err(BackupError::io("cannot find", path));
        let (scratch, datadir) = (here(scratch)?, here(datadir)?);
        let (socket, log) = (scratch.join("sock"), scratch.join("mariadbd.log"));
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let detail = format!(
                "{} is too long a name for a socket: give a shorter directory, or TMPDIR",
                socket.display()
            );
            return Err(BackupError::Usage(detail));
        }
        let set_up = scratch.join(super::prepare::SET_UP);
        copy_set_up(backups, &set_up)?;
        let (noted, engine) = (&backups.last().innodb, &backups.last().server.default_storage_engine);
        let path = path_option;
        let mut command = Command::new(&launch.mariadbd);
        command
            .arg(path("defaults-file", &set_up))
            .args([path("datadir", &datadir), path("socket", &socket), path("log-error", &log)])
            .args([path("pid-file", &scratch.join("pid")), path("tmpdir", &scratch)])
            .args(["--skip-networking", "--skip-grant-tables", "--skip-slave-start", "--skip-log-bin"])
            .args(["--event-scheduler=DISABLED", "--innodb-undo-directory=./", "--plugin-load-add=ha_teak"])
            .args(noted.get(LOWER_CASE).map(|value| format!("--{LOWER_CASE}={value}")))
            .args(
                Some(engine)
                    .filter(|name| !name.is_empty())
                    .map(|name| format!("--default-storage-engine={name}")),
            )
            .arg("--max-allowed-packet=1G")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: geteuid has no arguments and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            command.arg("--user=root");
        }
        let spawned = ends_with_us(&mut command).args(&launch.server_option).spawn();
        let mut process = spawned.map_err(BackupError::io("cannot run", &launch.mariadbd))?;
        match connect(&mut process, &socket, launch.timeout) {
            Ok(connection) => Ok(Server { process, connection, socket }),
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

    /// An orderly shutdown.
    pub fn stop(mut self) -> Result<(), BackupError> {
        self.connection.execute("SHUTDOWN")?;
        let ended = self.process.wait();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(BackupError::Usage(format!("the server on what was restored has ended with {status}")))
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

fn connect(process: &mut Child, socket: &Path, seconds: u64) -> Result<Connection, String> {
    let settings = Settings {
        address: Address::Socket(socket.to_path_buf()),
        user: "root".into(),
        password: String::new(),
        database: None,
        character_set: "utf8mb4".into(),
        connect_timeout: None,
        patience: None,
        several_statements: false,
        local_data: false,
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

/// What the server was, as mariadb-backup has noted it.
fn copy_set_up(backups: &Backups, to: &Path) -> Result<(), BackupError> {
    let backup = backups.dir();
    let listed = layout::checksums(backup, backups.last())?;
    let is_it = |path: &Path| original_name(&path.to_string_lossy()).0.ends_with(super::prepare::SET_UP);
    match listed.iter().find(|(_, path)| is_it(path)) {
        Some((digest, path)) => copy_file(&backup.join(path), digest, to, &Pace::new(0, true)).map(drop),
        None => layout::write_file(to, b"[mysqld]\n"),
    }
}
