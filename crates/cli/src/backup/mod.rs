//! `teak backup`: a backup of a running server, of Teak's tables and all others, without stopping its writers.
//!
//! ```text
//!                       rounds ...                    last round        tail
//! engine's files  ────────────────────────────────────────┬───────────────┬──> DIR/teak
//! mariadb-backup          └─ InnoDB, Aria, .frm ... ──────┤ BLOCK_COMMIT ─┴──> DIR/server
//!                                                         end: LSN, binary log, GTID
//! ```
//!
//! The copy of the engine is `teak_core`'s ([`BackupCopy`]); `companion` runs `mariadb-backup` for the rest and notices
//! when it blocks commits; `both` does the two at once; `source` asks the server; `layout` says what lies where. The
//! design is in docs/design/backup.md, the use in docs/backup.md.

mod both;
pub mod chain;
pub mod companion;
pub mod complete;
mod error;
pub mod files;
pub mod kept;
pub mod layout;
mod mbstream;
pub mod messages;
pub mod options;
pub mod pace;
pub mod rows;
pub mod selection;
mod source;
mod stream;
mod target;
pub mod time_line;
mod unnamed;
pub mod unpack;
pub mod verify;

pub use error::BackupError;

use both::{Companion, EngineCopy};
use clap::Args;
use companion::Call;
use files::Files;
use layout::{Base, Description};
use options::{Telling, Work};
use pace::Pace;
use selection::Selection;
use source::Source;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use target::Target;
use teak_client::{self as client, Settings};
use teak_console::amounts::bytes;
use teak_console::signals;
use teak_core::file::RealFileSystem;
use teak_core::server::{BackupCopy, ExtentList};
use teak_sql::quoting::hex;

/// Log since the newest checkpoint that a full backup begins with: what a start replays in a fraction of a second. The
/// blocks that a checkpoint would write in its place may be most of a table, if a few rows in each were changed.
const FULL_LOG: u64 = 16 << 20;

/// Options of `teak backup`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    client: client::Arguments,
    /// Where the backup goes: a directory that is empty or does not exist; - is standard output, for `teak restore -`
    /// or `teak backup unpack` on another machine
    #[arg(value_name = "DIR", required = true)]
    dir: Option<PathBuf>,
    /// Only what has changed since this backup, which a restore needs, too
    #[arg(long, value_name = "OLDDIR", alias = "incremental-basedir")]
    incremental_from: Option<PathBuf>,
    /// Compress the other engines' files with zstd; Teak's blocks are compressed as they are
    #[arg(long)]
    compress: bool,
    /// Leave here what an incremental backup on top of this one needs, if the backup itself goes elsewhere
    #[arg(long, value_name = "NEWDIR")]
    extra_lsndir: Option<PathBuf>,
    /// Note CHECKSUM TABLE of each table of Teak and InnoDB as of the backup's end, for `teak backup rehearse`: the
    /// server reads all rows for it, when all else is copied
    #[arg(long)]
    checksums: bool,
    #[command(flatten)]
    work: Work,
    /// Leave the processor to the server while blocks are copied, by so much niceness: 0 (none) to 19
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=19))]
    nice: u8,
    /// The program that copies the other engines' tables
    #[arg(long, value_name = "FILE", default_value = "mariadb-backup")]
    mariadb_backup: PathBuf,
    /// An option for that program; can be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    mariadb_backup_option: Vec<String>,
    #[command(flatten)]
    telling: Telling,
    #[command(flatten)]
    selection: selection::Arguments,
}

/// Makes a backup.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BackupError> {
    match &arguments.dir {
        Some(dir) => make(arguments, dir, out),
        None => Err(BackupError::Usage("no directory for the backup was given".into())),
    }
}

fn make(arguments: &Arguments, dir: &Path, out: &mut dyn Write) -> Result<(), BackupError> {
    let settings = Settings::read(&arguments.client)?;
    let below = arguments.incremental_from.as_deref().map(Below::read).transpose()?;
    signals::catch();
    let mut source = Source::connect(&settings)?;
    let innodb = source.innodb()?;
    if let Some(Below { dir, description, list }) = &below {
        source.make_sure_of_base(dir, description, list)?;
        make_sure_of_innodb(dir, description, &innodb)?;
    }
    let selection = select(arguments, &mut source, below.as_ref())?;
    make_sure_of_places((dir, arguments.extra_lsndir.as_deref()), &source, selection.as_ref())?;
    let target = Target::of(dir)?;
    let extra = arguments.extra_lsndir.clone().map(|dir| Target::of(&dir)).transpose()?;
    let began = now();
    let pace = arguments.work.pace(&arguments.telling);
    let takes_all = below.is_none() && selection.is_none();
    let (engine_bytes, other_bytes) = match takes_all {
        true => (source.places.table_bytes(), source.places.other_bytes()),
        false => (0, 0),
    };
    pace.expect(engine_bytes + other_bytes);

    let places = source.places.clone();
    let mut engine =
        engine_copy(arguments, (&target, below.as_ref(), selection.as_ref()), &mut source, &pace)?;
    engine.snapshot = arguments.checksums.then_some(&settings);
    let messages = target.messages()?;
    let companion = Companion {
        call: Call {
            program: &arguments.mariadb_backup,
            parallel: arguments.work.threads(),
            incremental_lsn: below.as_ref().and_then(|below| below.description.innodb_lsn.clone()),
            selection: selection.as_ref(),
            options: &arguments.mariadb_backup_option,
            messages: &messages,
            pace: &pace,
        },
        settings: &settings,
        places: &places,
        files: Files::new(target.server()?, arguments.compress, &pace),
        engine_bytes,
        other_bytes,
    };
    let (copy, end, received) = both::copy(engine, companion).inspect_err(|_| pace.clear())?;

    selection.iter().try_for_each(|selection| selection.must_have_matched(&received))?;
    pace.phase("log");
    let (list, _) = copy.finish(end.lsn, &|bytes| pace.wrote(bytes))?;
    source.resume()?;
    pace.phase("rows");
    let rows = end.snapshot.map(|snapshot| snapshot.checksums(received.files.keys())).transpose()?;
    let checksums = files::checksums(layout::SERVER, &received.files);
    target.write_file(layout::CHECKSUMS, checksums.as_bytes())?;
    let description = Description {
        format: Description::FORMAT,
        teak: env!("CARGO_PKG_VERSION").into(),
        id: new_id()?,
        base: below.map(|below| below.base(dir)).transpose()?,
        began,
        ended: now(),
        server: source.server,
        time_line: source.time_line.id,
        innodb,
        selection,
        checksums: rows,
        position: end.position,
        log_end: end.lsn,
        engine_bytes: list.bytes(),
        own_engine_bytes: list.own_bytes(),
        server_bytes: received.files.values().map(|file| file.bytes).sum(),
        innodb_lsn: received.innodb_lsn,
        checksums_sha256: layout::digest(checksums.as_bytes()),
        sha256: String::new(),
    };
    for target in [Some(target), extra].iter().flatten() {
        target.finish(&list, &description)?;
    }
    pace.clear();
    tell(arguments, &description, (dir, pace.seconds()), out)
}

/// The summary of what was made in `dir`, in so many seconds.
fn tell(
    arguments: &Arguments,
    description: &Description,
    (dir, seconds): (&Path, f64),
    out: &mut dyn Write,
) -> Result<(), BackupError> {
    let kind = description.kind();
    // Standard output has the stream.
    let out = if dir == Path::new("-") { &mut std::io::stderr() } else { out };
    arguments.telling.tell(
        out,
        || serde_json::json!({ "dir": dir, "seconds": seconds, "kind": kind, "backup": description }),
        || summary(description, dir, seconds),
    )
}

/// The copy of the engine, at its beginning.
fn engine_copy<'a>(
    arguments: &Arguments,
    (target, below, selection): (&Target, Option<&Below>, Option<&Selection>),
    source: &'a mut Source,
    pace: &'a Pace,
) -> Result<EngineCopy<'a>, BackupError> {
    let (fs, to) = target.engine();
    let copy = BackupCopy::new(
        (Arc::new(RealFileSystem), &source.places.engine),
        (fs, &to),
        arguments.work.threads(),
    );
    let copy = below.iter().fold(copy, |copy, below| copy.on_top_of(&below.list));
    let copy = selection::narrow(copy, selection)?;
    // A full backup reads all blocks, so that new ones cost it less than an incremental one.
    if below.is_none() {
        source.checkpoint_beyond(FULL_LOG)?;
    }
    Ok(EngineCopy { copy, source, pace, nice: arguments.nice, snapshot: None, end: None })
}

/// Which tables are wanted; of an incremental backup those that the one below has.
fn select(
    arguments: &Arguments,
    source: &mut Source,
    below: Option<&Below>,
) -> Result<Option<Selection>, BackupError> {
    if let Some(database) = &arguments.client.database {
        let detail =
            format!("--database={database} selects nothing: to back up a database alone, give --databases");
        return Err(BackupError::Usage(detail));
    }
    if let Some(option) =
        arguments.mariadb_backup_option.iter().find(|option| selection::is_selecting(option))
    {
        let detail = format!("{option} would leave Teak's tables as they are: give it to teak backup itself");
        return Err(BackupError::Usage(detail));
    }
    let selection = Selection::of(&arguments.selection, source)?;
    match below.map(|below| &below.description.selection) {
        Some(other) if *other != selection => {
            let told = |selection: &Option<Selection>| match selection {
                Some(selection) => selection.to_string(),
                None => "all tables".into(),
            };
            Err(BackupError::Usage(format!(
                "an incremental backup has the tables that the one below it has: that is of {}, and this would be of {}",
                told(other),
                told(&selection)
            )))
        }
        _ => Ok(selection),
    }
}

/// The backup does not go into the data directory, and nothing there is in its way.
fn make_sure_of_places(
    (dir, extra): (&Path, Option<&Path>),
    source: &Source,
    selection: Option<&Selection>,
) -> Result<(), BackupError> {
    source.places.make_sure_outside(dir)?;
    extra.map_or(Ok(()), |dir| source.places.make_sure_outside(dir))?;
    match selection {
        None => source.places.make_sure_of_names(),
        Some(_) => Ok(()),
    }
}

/// InnoDB's files are those that the backup below has, by number and size of their pages: what mariadb-backup makes of
/// others' changes nobody could restore.
fn make_sure_of_innodb(
    dir: &Path,
    base: &Description,
    innodb: &BTreeMap<String, String>,
) -> Result<(), BackupError> {
    let changed = base.innodb.iter().find(|(name, value)| innodb.get(*name) != Some(value));
    changed.map_or(Ok(()), |(name, value)| {
        let now = innodb.get(name).map_or("not there", String::as_str);
        let dir = dir.display();
        Err(BackupError::Usage(format!(
            "{name} is {now}, and was {value} when the backup in {dir} was made: make a full one"
        )))
    })
}

/// The backup that an incremental one stands on.
struct Below {
    dir: PathBuf,
    description: Description,
    list: ExtentList,
}

impl Below {
    fn read(dir: &Path) -> Result<Below, BackupError> {
        let description = Description::read(dir)?;
        let list = ExtentList::read(&RealFileSystem, &dir.join(layout::EXTENTS))?;
        if description.innodb_lsn.is_none() {
            let detail = "it does not say where InnoDB's changes end: no incremental backup can stand on it";
            return Err(BackupError::damaged(dir, detail));
        }
        Ok(Below { dir: dir.to_path_buf(), description, list })
    }

    /// How the backup in `dir` finds it.
    fn base(self, dir: &Path) -> Result<Base, BackupError> {
        let absolute = |path: &Path| path.canonicalize().map_err(BackupError::io("cannot find", path));
        let below = absolute(&self.dir)?;
        let beside = dir.canonicalize().is_ok_and(|above| above.parent() == below.parent());
        let relative = below.file_name().filter(|_| beside).map(|name| Path::new("..").join(name));
        Ok(Base { id: self.description.id, relative, absolute: below })
    }
}

fn summary(description: &Description, dir: &Path, seconds: f64) -> String {
    let Description { position, .. } = description;
    let kind = description.kind();
    let place = if dir == Path::new("-") { "the stream".into() } else { dir.display().to_string() };
    let mut text = format!(
        "{kind} in {place}: Teak {}, other engines {}, in {seconds:.1} s\n",
        bytes(description.own_engine_bytes as f64),
        bytes(description.server_bytes as f64),
    );
    if let (Some(file), Some(at)) = (&position.binlog_file, position.binlog_position) {
        text += &format!("binary log: {file}, position {at}\n");
    }
    if !position.gtid_current_pos.is_empty() {
        text += &format!("GTID: {}\n", position.gtid_current_pos);
    }
    text
}

/// Makes the names in a directory and those below it durable.
pub fn sync_dirs(dir: &Path) -> Result<(), BackupError> {
    for entry in std::fs::read_dir(dir).map_err(BackupError::io("cannot read", dir))?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !layout::is_of_file_system(&entry) {
            sync_dirs(&entry.path())?;
        }
    }
    layout::sync_dir(dir)
}

/// Random.
pub fn new_id() -> Result<String, BackupError> {
    let mut id = [0; 16];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut id)
        .map_err(|_| BackupError::Usage("the system has no random numbers".into()))?;
    Ok(hex(&id))
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
