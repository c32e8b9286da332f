//! The server that is backed up: where its files are, its checkpoints, and where a backup ends.

use super::companion::is_own;
use super::layout::{Description, Position, Primary, Server, LOWER_CASE};
use super::rows::Snapshot;
use super::time_line::TimeLine;
use super::BackupError;
use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use teak_client::{Address, Connection, Rows, Settings};
use teak_core::file::RealFileSystem;
use teak_core::server::{Checkpoint, ExtentList};
use teak_sql::quoting::literal;

/// Unknown system variable: the engine is not there.
const UNKNOWN_VARIABLE: u16 = 1193;

/// So much log since the newest checkpoint a backup takes as it is: a restore replays it in a second or two, while a
/// checkpoint would write each block with a change in it, and the backup would copy them all.
const LITTLE_LOG: u64 = 64 << 20;

/// What InnoDB's files are made for, and how files are called; other values need other files.
const INNODB: [&str; 4] =
    ["innodb_page_size", "innodb_data_file_path", "innodb_undo_tablespaces", LOWER_CASE];

/// A server, and a connection to it that makes checkpoints and pauses them.
pub struct Source {
    connection: Connection,
    pub server: Server,
    pub places: Places,
    pub time_line: TimeLine,
}

/// Where the server has its files.
#[derive(Debug, Clone)]
pub struct Places {
    pub datadir: PathBuf,
    pub engine: PathBuf,
    pub plugin_dir: PathBuf,
    pub aria_log_dir: PathBuf,
    /// Beginning of the names of binary logs, which are in no backup.
    binlogs: Option<PathBuf>,
}

/// Where a backup ends.
pub struct End {
    /// Of the engine's log.
    pub lsn: u64,
    pub position: Position,
    /// Sees what is in the backup, if that is wanted.
    pub snapshot: Option<Snapshot>,
}

impl Source {
    /// Connects, and makes sure that the server's files are those that this process sees.
    pub fn connect(settings: &Settings) -> Result<Source, BackupError> {
        let mut connection = settings.connect()?;
        // It is idle while files are copied, and the pause of checkpoints ends with it.
        connection.execute("SET SESSION wait_timeout = 31536000")?;
        let home = connection.value("SELECT @@teak_data_home_dir").map_err(|error| match error.code() {
            Some(UNKNOWN_VARIABLE) => BackupError::Usage(
                "the server has no engine Teak: mariadb-backup alone makes a backup of it".into(),
            ),
            _ => error.into(),
        })?;
        let mut text = |what: &str| -> Result<String, BackupError> {
            Ok(connection.value(format!("SELECT {what}"))?.unwrap_or_default())
        };
        let datadir = PathBuf::from(text("@@datadir")?);
        let server = Server {
            version: text("@@version")?,
            host: text("@@hostname")?,
            port: text("@@port")?.parse().unwrap_or(0),
            server_id: text("@@server_id")?.parse().unwrap_or(0),
            default_storage_engine: text("@@global.default_storage_engine")?,
        };
        let (plugin_dir, aria) = (text("@@plugin_dir")?, text("@@aria_log_dir_path")?);
        let binlogs = Some(text("@@log_bin_basename")?).filter(|name| !name.is_empty());
        let home = home.filter(|home| !home.is_empty()).unwrap_or_else(|| "#teak".into());
        let places = Places {
            engine: datadir.join(home),
            aria_log_dir: datadir.join(aria),
            plugin_dir: plugin_dir.into(),
            binlogs: binlogs.map(PathBuf::from),
            datadir,
        };
        let mut source = Source { connection, server, places, time_line: TimeLine::default() };
        source.make_sure_of_files(&settings.address)?;
        source.time_line = TimeLine::read(&source.places.engine)?;
        Ok(source)
    }

    /// Another server may have files of that name on this machine. Who is asked through a socket is not on another
    /// machine, and his newest checkpoint is the one in the files; of others a new checkpoint is asked for, and found.
    fn make_sure_of_files(&mut self, address: &Address) -> Result<(), BackupError> {
        let before = self.newest_checkpoint()?.number;
        let is_there = match address {
            Address::Socket(_) => {
                let named = self.status("Teak_checkpoint_newest")?;
                // The server says so a moment after it is in the file.
                (before.saturating_sub(1)..=self.newest_checkpoint()?.number).contains(&named)
            }
            Address::Tcp { .. } => {
                self.checkpoint()?;
                before < self.newest_checkpoint()?.number
            }
        };
        if !is_there {
            return Err(BackupError::Usage(format!(
                "{} is not written by the server on {}: run this on the server's machine, as a user who may read its files",
                self.places.engine.display(),
                self.server.host
            )));
        }
        Ok(())
    }

    fn newest_checkpoint(&self) -> Result<Checkpoint, BackupError> {
        let newest = Checkpoint::newest(&RealFileSystem, &self.places.engine);
        let missing = || {
            let detail = format!(
                "there is no engine of the server on {}: run this on the server's machine, as a user who may read its files",
                self.server.host
            );
            BackupError::damaged(&self.places.engine, detail)
        };
        match newest {
            Ok(newest) => newest.ok_or_else(missing),
            Err(error) => Err(error.into()),
        }
    }

    /// An incremental backup can stand on one of this engine only, and of this time line of it, or on what it was
    /// restored of.
    pub fn make_sure_of_base(
        &mut self,
        dir: &Path,
        base: &Description,
        list: &ExtentList,
    ) -> Result<(), BackupError> {
        let (dir, host) = (dir.display(), self.server.host.clone());
        let refused = |why: String| Err(BackupError::Usage(format!("{why}: make a full one")));
        if self.newest_checkpoint()?.engine_id != list.engine_id {
            return refused(format!("the backup in {dir} is of another server than the one on {host}"));
        }
        if !self.time_line.has(base) {
            return refused(format!(
                "the backup in {dir} is of another time line: the server on {host} was restored of another backup, and \
                 what this one has need never have been in it"
            ));
        }
        // A copy of the files was put in place, without a restore.
        let ends = [("Teak_lsn_flushed", Some(base.log_end)), ("Innodb_lsn_current", base.innodb_end())];
        for (name, end) in ends {
            let now = self.status(name)?;
            if end.is_some_and(|end| end > now) {
                return refused(format!(
                    "the backup in {dir} has more than the server on {host} has ({name} is {now}): the server's files \
                     are from before it"
                ));
            }
        }
        Ok(())
    }

    /// What InnoDB's files are made for.
    pub fn innodb(&mut self) -> Result<BTreeMap<String, String>, BackupError> {
        let names = INNODB.map(|name| format!("'{name}'")).join(", ");
        let rows =
            self.connection.query(format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))?;
        Ok((0..rows.len()).filter_map(|row| Some((cell(&rows, row, 0)?, cell(&rows, row, 1)?))).collect())
    }

    /// What a file is called that the server names so; as it is, if it can be the name of one already. A dot between
    /// database and table stays one.
    pub fn file_name(&mut self, name: &str) -> Result<String, BackupError> {
        let is_of_file =
            |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_@#".contains(&byte));
        let mut parts = Vec::new();
        for part in name.splitn(2, '.') {
            parts.push(match is_of_file(part) {
                true => part.to_string(),
                false => {
                    let part = literal(part.as_bytes());
                    let sql = format!("SELECT CAST(CONVERT({part} USING filename) AS BINARY)");
                    self.connection.value(sql)?.unwrap_or_default()
                }
            });
        }
        Ok(parts.join("."))
    }

    /// Has the server write a checkpoint.
    pub fn checkpoint(&mut self) -> Result<(), BackupError> {
        // RELOAD is enough for a session's variable; a global one is for SUPER.
        self.connection.execute("SET SESSION teak_checkpoint_now = ON")?;
        Ok(())
    }

    /// Has it write one if there is much log since the newest.
    pub fn checkpoint_if_due(&mut self) -> Result<(), BackupError> {
        self.checkpoint_beyond(LITTLE_LOG)
    }

    /// Has it write one if there are more bytes of log since the newest.
    pub fn checkpoint_beyond(&mut self, bytes: u64) -> Result<(), BackupError> {
        match self.status("Teak_log_bytes_since_checkpoint")? > bytes {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// A status variable that is a number.
    fn status(&mut self, name: &str) -> Result<u64, BackupError> {
        let rows = self.connection.query(format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        let value = cell(&rows, 0, 1).and_then(|text| text.parse().ok());
        value.ok_or_else(|| BackupError::Usage(format!("the server does not tell its {name}")))
    }

    /// From now on there are no checkpoints, until `resume` or the end of this process.
    pub fn pause_checkpoints(&mut self) -> Result<(), BackupError> {
        self.connection.execute("SET SESSION teak_pause_checkpoints = ON")?;
        Ok(())
    }

    /// Ends the pause.
    pub fn resume(&mut self) -> Result<(), BackupError> {
        self.connection.execute("SET SESSION teak_pause_checkpoints = OFF")?;
        Ok(())
    }

    /// The end of a backup, while nothing commits.
    pub fn end(&mut self) -> Result<End, BackupError> {
        self.connection.execute("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")?;
        let lsn = self.status("Teak_lsn_flushed")?;
        let binlog = self.connection.query("SHOW MASTER STATUS")?;
        let gtids = self.connection.query(
            "SELECT @@global.gtid_binlog_pos, @@global.gtid_slave_pos, @@global.gtid_current_pos, \
             @@global.gtid_binlog_state",
        )?;
        let gtid = |column| cell(&gtids, 0, column).unwrap_or_default();
        let position = Position {
            binlog_file: cell(&binlog, 0, 0),
            binlog_position: cell(&binlog, 0, 1).and_then(|text| text.parse().ok()),
            gtid_binlog_pos: gtid(0),
            gtid_slave_pos: gtid(1),
            gtid_current_pos: gtid(2),
            gtid_binlog_state: gtid(3),
            primaries: self.primaries()?,
        };
        Ok(End { lsn, position, snapshot: None })
    }

    /// The servers that this one is a replica of.
    fn primaries(&mut self) -> Result<Vec<Primary>, BackupError> {
        let (columns, rows) = self.connection.query_with_names("SHOW ALL SLAVES STATUS")?;
        let of = |row: usize, name: &str| {
            let column = columns.iter().position(|column| column == name);
            column.and_then(|column| cell(&rows, row, column)).unwrap_or_default()
        };
        let primary = |row| Primary {
            name: of(row, "Connection_name"),
            host: of(row, "Master_Host"),
            port: of(row, "Master_Port").parse().unwrap_or(0),
            file: of(row, "Relay_Master_Log_File"),
            position: of(row, "Exec_Master_Log_Pos").parse().unwrap_or(0),
            using_gtid: of(row, "Using_Gtid"),
        };
        Ok((0..rows.len()).map(primary).collect())
    }
}

impl Places {
    /// A backup does not go into what it is a backup of: it would be a database of the server, to be dropped as one.
    pub fn make_sure_outside(&self, target: &Path) -> Result<(), BackupError> {
        // What has something in it is refused for that.
        if std::fs::read_dir(target).is_ok_and(|mut names| names.next().is_some()) {
            return Ok(());
        }
        // What does not exist yet is where its parent is.
        let found = target.canonicalize().or_else(|_| match target.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new(".").canonicalize(),
            Some(parent) => parent.canonicalize(),
            None => target.canonicalize(),
        });
        let Ok(found) = found else { return Ok(()) };
        let is_within = |dir: &Path| dir.canonicalize().is_ok_and(|dir| found.starts_with(dir));
        match target != Path::new("-") && (is_within(&self.datadir) || is_within(&self.engine)) {
            false => Ok(()),
            true => Err(BackupError::Usage(format!(
                "{} is in the data directory of the server: it would be a database of it, until somebody drops that",
                target.display()
            ))),
        }
    }

    /// What mariadb-backup would fail at in the middle: a database that is called as a file of its own, and tables of
    /// Aria whose files are elsewhere.
    pub fn make_sure_of_names(&self) -> Result<(), BackupError> {
        let names = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().collect::<Vec<_>>();
        let is_dir = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let refused = |what: String| {
            Err(BackupError::Usage(format!(
                "there cannot be a backup of {what}; change that, or leave it out with --databases-exclude"
            )))
        };
        for database in names(&self.datadir).into_iter().filter(is_dir) {
            let name = database.file_name().to_string_lossy().into_owned();
            if is_own(&name) {
                return refused(format!("the database {name}: mariadb-backup has a file of that name"));
            }
            let is_link = |entry: &DirEntry| {
                let is_of_aria =
                    entry.path().extension().is_some_and(|ending| ending == "MAD" || ending == "MAI");
                is_of_aria && entry.file_type().is_ok_and(|kind| kind.is_symlink())
            };
            if let Some(table) = names(&database.path()).into_iter().find(is_link) {
                let table = table.path();
                return refused(format!(
                    "{}: mariadb-backup does not copy Aria tables with DATA DIRECTORY or INDEX DIRECTORY",
                    table.display()
                ));
            }
        }
        Ok(())
    }

    /// Bytes on disk of the engine's tables.
    pub fn table_bytes(&self) -> u64 {
        allocated(&self.engine, &|path| path.extension().is_some_and(|extension| extension == "teak"))
    }

    /// Bytes on disk of what a backup copies of the rest of the server, about.
    pub fn other_bytes(&self) -> u64 {
        let is_binlog = |path: &Path| {
            self.binlogs.as_ref().is_some_and(|binlogs| {
                path.as_os_str().as_encoded_bytes().starts_with(binlogs.as_os_str().as_encoded_bytes())
            })
        };
        allocated(&self.datadir, &|path| !path.starts_with(&self.engine) && !is_binlog(path))
    }
}

fn cell(rows: &Rows, row: usize, column: usize) -> Option<String> {
    let value = rows.get(row)?.get(column)?.as_ref()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// What those of the files below `dir` take that count. What cannot be read does not.
fn allocated(dir: &Path, is_counted: &dyn Fn(&Path) -> bool) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => allocated(&entry.path(), is_counted),
            Ok(metadata) if is_counted(&entry.path()) => metadata.blocks() * 512,
            _ => 0,
        })
        .sum()
}
