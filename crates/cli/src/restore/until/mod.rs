//! `teak restore --until`: what was restored goes on, by binary logs that were kept elsewhere, to a point in time.
//!
//! ```text
//! before anything is restored:  logs ── route: which, from where, to where
//! afterwards:                   a server on it <── mariadb ── mariadb-binlog ── logs
//! ```
//! `route` finds the way, `events` reads what it needs of the logs, `gtids` counts transactions.

mod events;
mod gtids;
mod route;

use super::server::{Launch, Server};
use crate::backup::chain::Backups;
use crate::backup::companion::path_option;
use crate::backup::{kept, new_id, BackupError};
use crate::children::ends_with_us;
use clap::Args;
use gtids::Gtid;
pub use route::Route;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use teak_console::signals;

/// Between two looks at whether the programs have ended.
const POLL: Duration = Duration::from_millis(50);
/// Bytes of what a program tells that are shown when it has failed.
const SHOWN: usize = 2000;

/// Options of a point in time.
#[derive(Args, Debug, Default)]
pub struct PointInTime {
    /// Apply binary logs to what was restored, until a time ('2026-03-01 14:29:59': what was committed before it), a
    /// position (binlog.000018:4711) or with a transaction (GTID 0-1-4711)
    #[arg(long, value_name = "WHEN", requires = "binlogs", value_parser = Until::parse)]
    pub until: Option<Until>,
    /// Where the binary logs are, from that in which the backup's position is
    #[arg(long, value_name = "DIR", requires = "until")]
    binlogs: Option<PathBuf>,
    /// The program that makes statements of binary logs
    #[arg(long, value_name = "FILE", default_value = "mariadb-binlog")]
    mariadb_binlog: PathBuf,
    /// The program that gives them to the server
    #[arg(long, value_name = "FILE", default_value = "mariadb")]
    mariadb: PathBuf,
    #[command(flatten)]
    server: Launch,
}

/// Until when binary logs are applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// To before the first transaction that was committed at this time, in seconds since 1970, or later.
    Time(u64),
    /// To this position in a log.
    Position(String, u64),
    /// With this transaction.
    Gtid(Gtid),
}

impl Until {
    /// `YYYY-MM-DD HH:MM:SS` in the machine's time zone, `FILE:POSITION`, or `DOMAIN-SERVER-NUMBER`.
    pub fn parse(text: &str) -> Result<Until, String> {
        let position = || {
            let (file, at) = text.rsplit_once(':')?;
            route::number_of(file)?;
            Some(Until::Position(file.into(), at.parse().ok()?))
        };
        let until = Gtid::parse(text).map(Until::Gtid).or_else(position);
        until.or_else(|| kept::seconds_of(text).map(Until::Time)).ok_or_else(|| {
            "neither a time (2026-03-01 14:29:59), nor a position (binlog.000018:4711), nor a GTID (0-1-4711)".into()
        })
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Time(time) => f.write_str(&kept::local_time(*time)),
            Until::Position(file, at) => write!(f, "{file}:{at}"),
            Until::Gtid(gtid) => gtid.fmt(f),
        }
    }
}

impl PointInTime {
    /// The way from what the last of some backups shows, if one is wanted.
    pub fn route(&self, backups: &Backups) -> Result<Option<Route>, BackupError> {
        let (Some(until), Some(dir)) = (&self.until, &self.binlogs) else { return Ok(None) };
        if backups.last().selection.is_some() {
            let why = "binary logs are about all tables, and the backup has some of them: --until needs a backup of all";
            return Err(BackupError::Usage(why.into()));
        }
        Route::find(dir, &backups.last().position, until).map(Some)
    }

    /// Goes it, with a server on the restored `datadir`.
    pub fn go(&self, route: &Route, backups: &Backups, datadir: &Path) -> Result<(), BackupError> {
        let scratch = std::env::temp_dir().join(format!("teak-restore-{}", new_id()?));
        let created = std::fs::DirBuilder::new().mode(0o700).create(&scratch);
        created.map_err(BackupError::io("cannot create", &scratch))?;
        let done = self.apply(route, backups, (datadir, &scratch));
        // Nobody minds what is left in the directory of temporary files.
        let _ = std::fs::remove_dir_all(&scratch);
        done.map_err(|error| match error {
            BackupError::Interrupted => error,
            error => BackupError::damaged(
                datadir,
                format!("it was restored, but the binary logs were not applied to their end, so remove it: {error}"),
            ),
        })
    }

    fn apply(
        &self,
        route: &Route,
        backups: &Backups,
        (datadir, scratch): (&Path, &Path),
    ) -> Result<(), BackupError> {
        let server = Server::start(&self.server, backups, datadir, scratch)?;
        let mut reader = Command::new(&self.mariadb_binlog);
        reader
            .args(["--no-defaults", &format!("--start-position={}", route.start)])
            .arg(format!("--stop-position={}", route.stop))
            .args(&route.files)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut reader = Program::run(reader, &self.mariadb_binlog, scratch.join("reader"))?;
        let output = reader.child.stdout.take().map_or(Stdio::null(), Stdio::from);
        let mut writer = Command::new(&self.mariadb);
        writer
            .args(["--no-defaults", "--binary-mode", "--max-allowed-packet=1G", "--user=root"])
            .arg(path_option("socket", &server.socket))
            .stdin(output)
            .stdout(Stdio::null());
        let mut writer = Program::run(writer, &self.mariadb, scratch.join("writer"))?;
        // If the server refuses something, the reader's pipe closes: the writer knows why.
        writer.wait()?;
        reader.wait()?;
        server.stop()
    }
}

/// A program that is running, and ends with this.
struct Program {
    child: Child,
    name: PathBuf,
    messages: PathBuf,
}

impl Program {
    fn run(mut command: Command, name: &Path, messages: PathBuf) -> Result<Program, BackupError> {
        let file = File::create(&messages).map_err(BackupError::io("cannot create", &messages))?;
        let child =
            ends_with_us(&mut command).stderr(file).spawn().map_err(BackupError::io("cannot run", name))?;
        Ok(Program { child, name: name.to_path_buf(), messages })
    }

    /// Waits until it has ended well.
    fn wait(&mut self) -> Result<(), BackupError> {
        let unknown = |error| BackupError::Io { what: "cannot wait for a program".into(), error };
        loop {
            match self.child.try_wait().map_err(unknown)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(self.failed(status)),
                None if signals::interrupted() => return Err(BackupError::Interrupted),
                None => std::thread::sleep(POLL),
            }
        }
    }

    fn failed(&self, status: ExitStatus) -> BackupError {
        let told = std::fs::read(&self.messages).unwrap_or_default();
        let told = String::from_utf8_lossy(&told[told.len().saturating_sub(SHOWN)..]).trim().to_string();
        BackupError::Usage(format!("{} ended with {status}: {told}", self.name.display()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_told_apart() {
        assert_eq!(Until::parse("binlog.000018:4711"), Ok(Until::Position("binlog.000018".into(), 4711)));
        assert_eq!(Until::parse("0-1-4711").unwrap().to_string(), "0-1-4711");
        for time in ["2026-03-01 14:29:59", "1999-12-31 00:00:00"] {
            assert_eq!(Until::parse(time).unwrap().to_string(), time);
        }
        for wrong in [
            "",
            "binlog.18:4",
            "yesterday",
            "2026-13-01 00:00:00",
            "2026-03-01",
            "0-1",
            "2026-02-30 10:00:00",
        ] {
            assert!(Until::parse(wrong).is_err(), "{wrong}");
        }
    }
}
