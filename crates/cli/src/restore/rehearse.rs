//! `teak backup rehearse`: the proof that a backup is good. It is restored to a directory for that, a server of its own
//! starts there, and every table is checked.
//!
//! ```text
//! restore ──> SCRATCH/data ── mariadbd, by a socket only ── CHECK TABLE ... EXTENDED each ── shut down ── removed
//! ```
//! The server has the set-up that the backup notes (`backup-my.cnf`), asks for no password, reaches nobody and nobody
//! reaches it; what it is told besides, the user says.

use super::server::{Launch, Server};
use super::until::PointInTime;
use crate::backup::chain::Backups;
use crate::backup::files::original_name;
use crate::backup::layout;
use crate::backup::options::{Help, Telling, Work};
use crate::backup::rows::{self, Checksums};
use crate::backup::{kept, BackupError};
use clap::Args;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use teak_client::Connection;
use teak_console::signals;

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
    #[command(flatten)]
    work: Work,
    #[command(flatten)]
    server: Launch,
    /// The program that prepares the other engines' tables
    #[arg(long, value_name = "FILE", default_value = "mariadb-backup")]
    mariadb_backup: PathBuf,
    /// An option for that program; can be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    mariadb_backup_option: Vec<String>,
    #[command(flatten)]
    telling: Telling,
    #[command(flatten)]
    help: Help,
}

/// Rehearses the restore. An error if there is anything that is not as it should be.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BackupError> {
    let began = Instant::now();
    layout::create_empty_dir(&arguments.scratch)?;
    let result = rehearse(arguments);
    let seconds = began.elapsed().as_secs_f64();
    let line = match &result {
        Ok(Proof { checked, compared }) => {
            let compared = match compared {
                Some(compared) => format!(", the rows of {compared} are those of the backup's server"),
                None => String::new(),
            };
            let dir = arguments.dir.display();
            format!("{dir}: restored, {checked} tables checked{compared}, in {seconds:.1} s")
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
    let proof = result?;
    if !arguments.keep {
        std::fs::remove_dir_all(&arguments.scratch)
            .map_err(BackupError::io("cannot remove", &arguments.scratch))?;
    }
    let Proof { checked, compared } = proof;
    arguments.telling.tell(
        out,
        || serde_json::json!({ "dir": arguments.dir, "seconds": seconds, "checked": checked, "compared": compared }),
        || line + "\n",
    )
}

/// How many tables were looked at.
struct Proof {
    checked: usize,
    /// With what was noted at the backup, if anything was.
    compared: Option<usize>,
}

fn rehearse(arguments: &Arguments) -> Result<Proof, BackupError> {
    let backups = Backups::find(&arguments.dir, &arguments.base)?;
    let datadir = arguments.scratch.join("data");
    let restore = super::Arguments {
        point: PointInTime::default(),
        dir: arguments.dir.clone(),
        datadir: datadir.clone(),
        base: arguments.base.clone(),
        work: arguments.work.clone(),
        use_memory: None,
        mariadb_backup: arguments.mariadb_backup.clone(),
        mariadb_backup_option: arguments.mariadb_backup_option.clone(),
        telling: Telling::NOTHING,
    };
    super::run(&restore, &mut std::io::sink())?;
    let listed = layout::checksums(backups.dir(), backups.last())?;
    let mut server = Server::start(&arguments.server, &backups, &datadir, &arguments.scratch)?;
    let checked = check(&mut server.connection, definitions(&listed))?;
    let noted = backups.last().checksums.as_ref();
    let compared = noted.map(|noted| compare(&mut server.connection, noted)).transpose()?;
    server.stop()?;
    Ok(Proof { checked, compared })
}

/// How many tables and views a backup has, by the files of their definitions.
fn definitions(listed: &[(String, PathBuf)]) -> usize {
    let names = listed.iter().map(|(_, path)| path.to_string_lossy());
    names.filter(|name| original_name(name).0.ends_with(".frm") && !name.contains("#sql")).count()
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

/// Compares the rows of tables with the checksums that were noted at the backup; of how many tables.
fn compare(connection: &mut Connection, noted: &Checksums) -> Result<usize, BackupError> {
    let tables = rows::tables(connection)?;
    for (file, expected) in noted {
        if signals::interrupted() {
            return Err(BackupError::Interrupted);
        }
        let table = tables.iter().find(|table| table.file == *file);
        let found = table.map(|table| table.checksum(connection)).transpose()?;
        if found != Some(*expected) {
            let detail = format!(
                "its rows are not those of the backup's server: CHECKSUM TABLE was {expected} there, and is {} here",
                found.map_or("not told".into(), |found| found.to_string())
            );
            return Err(BackupError::damaged(Path::new(file), detail));
        }
    }
    Ok(noted.len())
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
