//! `teak restore`: a data directory from a backup, or from a full one and the incremental ones on top of it.
//!
//! ```text
//! DIR/server ── copy, compare ──> D/#restore/server ── mariadb-backup --prepare ──┐
//! DIR/teak   ── by extents ─────> D/#restore/teak   ── recovery ──────────────────┴── rename ──> D
//! ```
//! Everything is made in a directory of its own within the new data directory, and moved in the end, the tables of
//! privileges last: a server cannot be started on what a restore left that was interrupted, and the next restore begins
//! anew.

mod move_in;
mod partial;
mod prepare;
pub mod rehearse;
mod server;
mod summary;
mod until;

use crate::backup::chain::Backups;
use crate::backup::complete::Complete;
use crate::backup::files::{digest, original_name, share_out};
use crate::backup::layout::{self, Description};
use crate::backup::options::{Telling, Work};
use crate::backup::pace::Pace;
use crate::backup::time_line::TimeLine;
use crate::backup::{sync_dirs, unpack, BackupError};
use crate::directory;
use clap::Args;
use move_in::move_in;
use prepare::Prepare;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_console::signals;
use teak_core::file::{FileSystem, RealFileSystem};
use until::{PointInTime, Route};

/// Where everything is made, in the new data directory.
const WORK: &str = "#restore";

/// Options of `teak restore`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The backup; of incremental ones the last, which knows those below it. - is the stream of a backup, on standard
    /// input
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The new data directory: empty, or does not exist
    #[arg(long, value_name = "D")]
    datadir: PathBuf,
    /// Where a backup is on which DIR stands, if it was moved; can be given several times
    #[arg(long, value_name = "DIR")]
    base: Vec<PathBuf>,
    #[command(flatten)]
    work: Work,
    /// Memory for the recovery of InnoDB tables, as mariadb-backup takes it
    #[arg(long, value_name = "BYTES")]
    use_memory: Option<String>,
    /// The program that prepares the other engines' tables
    #[arg(long, value_name = "FILE", default_value = "mariadb-backup")]
    mariadb_backup: PathBuf,
    /// An option for that program, such as where the keys of encrypted tables are on this machine; can be given several
    /// times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    mariadb_backup_option: Vec<String>,
    #[command(flatten)]
    point: PointInTime,
    #[command(flatten)]
    telling: Telling,
}

/// Makes the data directory.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BackupError> {
    let streamed = arguments.dir == Path::new("-");
    // Before anything is done.
    let given = (!streamed).then(|| Backups::find(&arguments.dir, &arguments.base)).transpose()?;
    let route = match &given {
        Some(backups) => arguments.point.route(backups)?,
        None if arguments.point.until.is_none() => None,
        None => {
            let why = "--until looks at the binary logs before anything is restored, and a stream is known in the end only: \
                       make a directory of it first (teak backup unpack)";
            return Err(BackupError::Usage(why.into()));
        }
    };
    signals::catch();
    let datadir = &arguments.datadir;
    let owner = begin(datadir)?;
    let pace = arguments.work.pace(&arguments.telling);
    let work = datadir.join(WORK);
    layout::create_empty_dir(&work)?;
    let backups = match given {
        Some(given) => given,
        None => Backups::find(&receive(&work, &pace)?, &arguments.base)?,
    };
    pace.expect(pace.done() + backups.bytes());

    pace.phase("Teak");
    let engine = work.join(layout::ENGINE);
    let fs: Arc<dyn FileSystem> = Arc::new(RealFileSystem);
    let threads = arguments.work.threads();
    let chain = backups.chain()?;
    chain.verify_log(backups.last().log_end)?;
    match streamed && backups.last().base.is_none() {
        // It is ours, and on this file system.
        true => {
            chain.verify(threads, &|_| Ok(()))?;
            let from = backups.dir().join(layout::ENGINE);
            std::fs::rename(&from, &engine).map_err(BackupError::io("cannot rename", &from))?;
        }
        false => chain.restore(&fs, &engine, threads, &|bytes| pace.wrote(bytes))?,
    }

    pace.phase("other engines");
    let server = work.join(layout::SERVER);
    let prepare = Prepare {
        program: &arguments.mariadb_backup,
        use_memory: arguments.use_memory.as_deref(),
        options: &arguments.mariadb_backup_option,
        log: &work.join(layout::MESSAGES),
    };
    let mut listed = Vec::new();
    for (i, (dir, description)) in backups.all().enumerate() {
        let to = if i == 0 { server.clone() } else { work.join("incremental") };
        listed = copy_files((dir, description), &to, threads, &pace)?;
        pace.clear();
        prepare.run(&server, (i > 0).then_some(&to))?;
        if i > 0 {
            std::fs::remove_dir_all(&to).map_err(BackupError::io("cannot remove", &to))?;
        }
    }

    // Recovery writes as a server does that was killed, and is repeated if this is.
    directory::recover(&engine).map_err(|failure| BackupError::damaged(&engine, failure.to_string()))?;
    // Before anything can be backed up: what it has from now on, no other backup knows.
    TimeLine::draw(&backups.last().id)?.write(&engine)?;
    sync_dirs(&server)?;
    if let Some((user, group)) = owner {
        chown(&work, user, group)?;
    }
    move_in(datadir, &work, &listed)?;
    if let Some(route) = &route {
        pace.phase("binary logs");
        arguments.point.go(route, &backups, datadir)?;
        owner.map_or(Ok(()), |(user, group)| chown(datadir, user, group))?;
    }
    pace.clear();
    tell(arguments, (&backups, route), (pace.done(), pace.seconds()), owner.is_some(), out)
}

/// The summary: so many bytes were written in so many seconds, and belong to somebody else.
fn tell(
    arguments: &Arguments,
    (backups, route): (&Backups, Option<Route>),
    (written, seconds): (u64, f64),
    given: bool,
    out: &mut dyn Write,
) -> Result<(), BackupError> {
    let (datadir, backup) = (&arguments.datadir, backups.last());
    let transactions = route.as_ref().map(|route| route.transactions);
    // A point in time is behind the backup's.
    let position = route.map_or_else(|| backup.position.clone(), |route| route.end);
    arguments.telling.tell(
        out,
        || {
            serde_json::json!({
                "datadir": datadir,
                "seconds": seconds,
                "backup": backup,
                "position": position,
                "transactions": transactions,
            })
        },
        || {
            let there = Description { position: position.clone(), ..backup.clone() };
            let applied = transactions.map(|number| format!("transactions of binary logs: {number}\n"));
            summary::of(&there, datadir, (written, seconds), given) + &applied.unwrap_or_default()
        },
    )
}

/// Unpacks the stream of a backup from standard input.
fn receive(work: &Path, pace: &Pace) -> Result<PathBuf, BackupError> {
    let dir = work.join("backup");
    layout::create_empty_dir(&dir)?;
    pace.phase("receive");
    let input = signals::Input::open().map_err(BackupError::io("reading", Path::new("standard input")))?;
    unpack::unpack(input, &dir, pace)?;
    Ok(dir)
}

/// The new data directory is empty, but for what an interrupted restore left, which goes. Who is to own the files, if
/// that is somebody else: the one whose directory it is.
fn begin(datadir: &Path) -> Result<Option<(u32, u32)>, BackupError> {
    let work = datadir.join(WORK);
    if work.exists() {
        let names = std::fs::read_dir(datadir).map_err(BackupError::io("cannot read", datadir))?;
        if names.flatten().filter(|entry| !layout::is_of_file_system(entry)).count() > 1 {
            return Err(BackupError::Usage(format!(
                "{} is not empty, and has {WORK} of a restore that was interrupted in its last step: remove all that \
                 is in it and restore again",
                datadir.display()
            )));
        }
        std::fs::remove_dir_all(&work).map_err(BackupError::io("cannot remove", &work))?;
    }
    layout::create_empty_dir(datadir)?;
    let metadata = std::fs::metadata(datadir).map_err(BackupError::io("cannot look at", datadir))?;
    // SAFETY: geteuid has no arguments and cannot fail.
    let caller = unsafe { libc::geteuid() };
    Ok((caller == 0 && metadata.uid() != 0).then_some((metadata.uid(), metadata.gid())))
}

/// Copies the files of the other engines, and compares them with their digests. Their paths in the backup, as they are
/// stored.
fn copy_files(
    (backup, description): (&Path, &Description),
    to: &Path,
    threads: usize,
    pace: &Pace,
) -> Result<Vec<PathBuf>, BackupError> {
    layout::create_dirs(to)?;
    let listed = layout::checksums(backup, description)?;
    let below = |path: &Path| match path.strip_prefix(layout::SERVER) {
        Ok(below) if is_below(below) => Ok(below.to_path_buf()),
        _ => Err(BackupError::damaged(backup, format!("{} lies elsewhere", path.display()))),
    };
    let paths = listed.iter().map(|(_, path)| below(path)).collect::<Result<Vec<_>, _>>()?;
    share_out(&listed, threads, |files| {
        let mut complete = Complete::default();
        for (expected, path) in files {
            let target = to.join(original_name(&below(path)?.to_string_lossy()).0);
            target.parent().map_or(Ok(()), layout::create_dirs)?;
            let file = copy_file(&backup.join(path), expected, &target, pace)?;
            complete.add(target, file)?;
        }
        complete.sync()
    })?;
    Ok(paths)
}

/// Copies a file as it was before it was compressed, if its digest is the one that is expected.
fn copy_file(from: &Path, expected: &str, target: &Path, pace: &Pace) -> Result<File, BackupError> {
    let mut file = layout::create_file(target)?;
    match digest(from, Some(&mut file), pace)? == expected {
        true => Ok(file),
        false => Err(BackupError::damaged(from, "the file has changed since the backup was made")),
    }
}

/// Whether a path goes down only.
fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

fn chown(path: &Path, user: u32, group: u32) -> Result<(), BackupError> {
    std::os::unix::fs::lchown(path, Some(user), Some(group))
        .map_err(BackupError::io("cannot give away", path))?;
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).map_err(BackupError::io("cannot read", path))?.flatten() {
            chown(&entry.path(), user, group)?;
        }
    }
    Ok(())
}
