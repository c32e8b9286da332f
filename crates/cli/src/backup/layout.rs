//! What lies where in a backup's directory.
//!
//! ```text
//! DIR/teak/                the engine's files, as a start after a crash takes them
//! DIR/extents              what they consist of, for a restore and for incremental backups (teak_core's ExtentList)
//! DIR/server/              what mariadb-backup made of the rest of the server, not prepared
//! DIR/server.sha256        its files, in the form of sha256sum
//! DIR/mariadb-backup.log   its messages
//! DIR/backup.json          what all this is: written last, so that without it there is no backup
//! ```

use super::rows::Checksums;
use super::selection::Selection;
use super::BackupError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use teak_sql::quoting::hex;

pub const ENGINE: &str = "teak";
pub const EXTENTS: &str = "extents";
pub const SERVER: &str = "server";
pub const CHECKSUMS: &str = "server.sha256";
pub const MESSAGES: &str = "mariadb-backup.log";
pub const DESCRIPTION: &str = "backup.json";
/// The variable by which a server makes names of files.
pub const LOWER_CASE: &str = "lower_case_table_names";
/// Version of the layout that this program writes and reads.
const FORMAT: u32 = 1;

/// What a backup is, and of what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Description {
    pub format: u32,
    /// Version of the program that made it.
    pub teak: String,
    /// Random.
    pub id: String,
    /// The backup below it; none: it is a full one.
    pub base: Option<Base>,
    /// Seconds since 1970: what was committed at the end is in the backup, and nothing that was committed after it.
    pub began: u64,
    pub ended: u64,
    pub server: Server,
    /// Which of its engine's histories it is of; none: the first, or it is from before they were told apart.
    #[serde(default)]
    pub time_line: Option<String>,
    /// What InnoDB's files are made for, by the names of the server's variables; empty in backups from before this was
    /// kept.
    #[serde(default)]
    pub innodb: BTreeMap<String, String>,
    /// None: it has all tables.
    #[serde(default)]
    pub selection: Option<Selection>,
    /// Of the rows that the server had at its end, with `--checksums`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<Checksums>,
    pub position: Position,
    /// End of the engine's log in the backup.
    pub log_end: u64,
    /// Bytes that a restore writes for the engine; those of them that this backup has itself.
    pub engine_bytes: u64,
    pub own_engine_bytes: u64,
    /// Bytes of the rest, as they are stored.
    pub server_bytes: u64,
    /// Where InnoDB's changes end that are in it.
    pub innodb_lsn: Option<String>,
    /// Digest of the list of digests of the files that are not the engine's.
    pub checksums_sha256: String,
    /// Digest of the text that this is stored as, with nothing here; [`Description::encode`] makes it.
    pub sha256: String,
}

/// The backup that an incremental one stands on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Base {
    pub id: String,
    /// As seen from the incremental one.
    pub relative: Option<PathBuf>,
    pub absolute: PathBuf,
}

/// Where the backup comes from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Server {
    pub version: String,
    pub host: String,
    pub port: u16,
    pub server_id: u64,
    /// Of tables whose statements in the binary log name none; empty in backups from before this was kept.
    #[serde(default)]
    pub default_storage_engine: String,
}

/// The end of the backup in binary logs and GTIDs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Position {
    /// None without a binary log.
    pub binlog_file: Option<String>,
    pub binlog_position: Option<u64>,
    pub gtid_binlog_pos: String,
    pub gtid_slave_pos: String,
    pub gtid_current_pos: String,
    /// What a server is told that goes on where this one ended; empty also in backups from before this was kept.
    #[serde(default)]
    pub gtid_binlog_state: String,
    /// The servers that it was a replica of.
    #[serde(default)]
    pub primaries: Vec<Primary>,
}

/// A server that the one that was backed up was a replica of, and how far it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Primary {
    /// Of the connection; mostly empty.
    pub name: String,
    pub host: String,
    pub port: u16,
    pub file: String,
    pub position: u64,
    /// `No`, `Slave_Pos` or `Current_Pos`.
    pub using_gtid: String,
}

impl Description {
    /// The version that this program writes.
    pub const FORMAT: u32 = FORMAT;

    /// Where InnoDB's changes end that are in it.
    pub fn innodb_end(&self) -> Option<u64> {
        self.innodb_lsn.as_ref()?.parse().ok()
    }

    /// What it is called.
    pub fn kind(&self) -> &'static str {
        match (&self.base, &self.selection) {
            (None, None) => "backup",
            (Some(_), None) => "incremental backup",
            (None, Some(_)) => "partial backup",
            (Some(_), Some(_)) => "incremental partial backup",
        }
    }

    /// Of the backup in `dir`, if there is one that was finished.
    pub fn read(dir: &Path) -> Result<Description, BackupError> {
        let path = dir.join(DESCRIPTION);
        let text = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => BackupError::damaged(
                dir,
                format!("there is no {DESCRIPTION} in it: this is no backup, or one that was not finished"),
            ),
            _ => BackupError::io("cannot read", &path)(error),
        })?;
        Description::decode(&text).map_err(|detail| BackupError::damaged(&path, detail))
    }

    /// From what is stored, if that is what was written; otherwise why it is not.
    fn decode(text: &[u8]) -> Result<Description, String> {
        let description: Description = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if description.format != FORMAT {
            return Err(format!("version {} of backups; this program reads {FORMAT}", description.format));
        }
        // Of the text itself: what a reader skips would not be in what it has read.
        let text = String::from_utf8_lossy(text);
        let without = match text.rsplit_once(&description.sha256) {
            Some((before, after)) => [before, after].concat(),
            None => text.into_owned(),
        };
        match description.sha256 == digest(without.as_bytes()) {
            true => Ok(description),
            false => Err("the file has changed since the backup was made".into()),
        }
    }

    /// As it is stored.
    pub fn encode(&self) -> Result<Vec<u8>, BackupError> {
        let text = |description: &Description| {
            serde_json::to_vec_pretty(description)
                .map_err(|error| BackupError::Usage(format!("cannot describe the backup: {error}")))
        };
        let mut description = Description { sha256: String::new(), ..self.clone() };
        description.sha256 = digest(&text(&description)?);
        text(&description)
    }

    /// Makes the backup in `dir`, all of which is durable, one that is finished.
    pub fn write(&self, dir: &Path) -> Result<(), BackupError> {
        let text = self.encode()?;
        let (path, unnamed) = (dir.join(DESCRIPTION), dir.join(format!("{DESCRIPTION}.new")));
        write_file(&unnamed, &text)?;
        std::fs::rename(&unnamed, &path).map_err(BackupError::io("cannot rename", &unnamed))?;
        sync_dir(dir)
    }
}

/// SHA-256 in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// Digests and paths, seen from `dir`, of the files in a backup that are not the engine's. `description` is that of the
/// backup.
pub fn checksums(dir: &Path, description: &Description) -> Result<Vec<(String, PathBuf)>, BackupError> {
    let path = dir.join(CHECKSUMS);
    let text = std::fs::read_to_string(&path).map_err(BackupError::io("cannot read", &path))?;
    if digest(text.as_bytes()) != description.checksums_sha256 {
        return Err(BackupError::damaged(&path, "the file has changed since the backup was made"));
    }
    super::files::parse_checksums(&text)
        .map_err(|line| BackupError::damaged(&path, format!("line {line} is no digest and path")))
}

/// Creates a directory that holds nothing: 0700, unless it is there and empty.
pub fn create_empty_dir(dir: &Path) -> Result<(), BackupError> {
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut names = std::fs::read_dir(dir).map_err(BackupError::io("cannot read", dir))?;
            match names.find(|entry| !entry.as_ref().is_ok_and(is_of_file_system)) {
                None => Ok(()),
                Some(_) => Err(BackupError::Usage(format!(
                    "{} is not empty: give a directory that is, or that does not exist",
                    dir.display()
                ))),
            }
        }
        Err(error) => Err(BackupError::io("cannot create", dir)(error)),
    }
}

/// Whether it is what a file system has at its top, for itself; a mount point with that is empty. A database of this
/// name is called otherwise.
pub fn is_of_file_system(entry: &std::fs::DirEntry) -> bool {
    entry.file_name() == "lost+found" && entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Creates a directory and those above it, which are to hold what a backup or a restore writes.
pub fn create_dirs(dir: &Path) -> Result<(), BackupError> {
    let created = std::fs::DirBuilder::new().mode(0o700).recursive(true).create(dir);
    created.map_err(BackupError::io("cannot create", dir))
}

/// A new file of mode 0600, to be written and read.
pub fn create_file(path: &Path) -> Result<std::fs::File, BackupError> {
    let mut options = std::fs::File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path).map_err(BackupError::io("cannot create", path))
}

/// Writes a new file and makes it durable; its name is not.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    let mut file = create_file(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(BackupError::io("cannot write", path))
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> Result<(), BackupError> {
    let opened = std::fs::File::open(dir).and_then(|dir| dir.sync_all());
    opened.map_err(BackupError::io("cannot sync", dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Description {
        Description {
            format: FORMAT,
            teak: "0.1.0".into(),
            id: "00112233445566778899aabbccddeeff".into(),
            base: Some(Base {
                id: "ffeeddccbbaa99887766554433221100".into(),
                relative: None,
                absolute: "/backups/sunday".into(),
            }),
            began: 1_700_000_000,
            ended: 1_700_000_100,
            server: Server {
                version: "10.11".into(),
                host: "größe".into(),
                port: 3306,
                server_id: 1,
                default_storage_engine: "Teak".into(),
            },
            time_line: Some("11".repeat(16)),
            innodb: [("innodb_page_size".to_string(), "16384".to_string())].into(),
            selection: Some(Selection { tables: vec!["^größe[.]".into()], ..Selection::default() }),
            checksums: Some([("d/t".to_string(), u64::MAX)].into()),
            position: Position { binlog_file: Some("binlog.000001".into()), ..Position::default() },
            log_end: 4096,
            engine_bytes: 1 << 30,
            own_engine_bytes: 1 << 20,
            server_bytes: 0,
            innodb_lsn: None,
            checksums_sha256: digest(b""),
            sha256: String::new(),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let text = description().encode().unwrap();
        let read = Description::decode(&text).unwrap();
        assert_eq!(read.encode().unwrap(), text);
        assert_eq!(read.log_end, description().log_end);
    }

    #[test]
    fn a_byte_that_has_changed_is_found_out() {
        let text = description().encode().unwrap();
        let mut parsed = 0;
        for at in 0..text.len() {
            for with in 1..=u8::MAX {
                let mut changed = text.clone();
                changed[at] ^= with;
                parsed += usize::from(serde_json::from_slice::<Description>(&changed).is_ok());
                assert!(Description::decode(&changed).is_err(), "byte {at} ^ {with}: {}", text[at] as char);
            }
        }
        assert!(parsed > 10_000, "only {parsed} of the changed ones are JSON: this shows nothing");
    }

    #[test]
    fn what_was_written_before_there_were_time_lines_is_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/backup/layout/first.json");
        let read = Description::decode(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!((read.time_line, read.innodb.len(), read.position.primaries.len()), (None, 0, 0));
        assert_eq!((read.log_end, read.position.gtid_binlog_state.as_str()), (4096, ""));
    }

    #[test]
    fn a_description_of_another_length_is_found_out() {
        let text = description().encode().unwrap();
        for length in 0..text.len() {
            assert!(Description::decode(&text[..length]).is_err(), "{length} bytes");
        }
        assert!(Description::decode(&[text.as_slice(), b"\n"].concat()).is_err());
    }
}
