//! Checksums of tables' rows, as the server itself sees them at the moment that a backup shows: what a rehearsal finds
//! in the restored server has to be the same.
//!
//! ```text
//! commits are blocked: START TRANSACTION WITH CONSISTENT SNAPSHOT, and what each definition's file is
//! later, beside writers: CHECKSUM TABLE each, in that transaction
//! ```
//! A table whose definition's file is another by then was altered, renamed, or made anew: nothing is noted of it. Nor
//! of tables whose rows are not kept (in memory), of the server's own, which a start changes, and of engines without
//! snapshots.

use super::files::original_name;
use super::BackupError;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use teak_client::{Connection, Rows, Settings};
use teak_console::signals;

/// By the name of the table's files, `database/table`: what CHECKSUM TABLE says.
pub type Checksums = BTreeMap<String, u64>;

/// Tables of engines that have snapshots, their names as they are and as their files are called.
const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, CAST(CONVERT(TABLE_SCHEMA USING filename) AS BINARY), \
    CAST(CONVERT(TABLE_NAME USING filename) AS BINARY) FROM information_schema.TABLES \
    WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE IN ('Teak', 'InnoDB') AND CREATE_OPTIONS NOT LIKE '%IN_MEMORY%' \
    AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1, 2";
/// What a table's definition has become meanwhile: gone, or another one than the snapshot's.
const CHANGED: [u16; 3] = [1146, 1412, 1932];

/// A transaction of the server that sees what a backup has.
pub struct Snapshot {
    connection: Connection,
    datadir: PathBuf,
    definitions: BTreeMap<PathBuf, Identity>,
}

/// A file as one statement has left it: inode, and when that was changed.
type Identity = (u64, i64, i64);

impl Snapshot {
    /// Begins it, while nothing commits.
    pub fn begin(settings: &Settings, datadir: &Path) -> Result<Snapshot, BackupError> {
        let mut connection = settings.connect()?;
        connection.execute(
            "SET SESSION wait_timeout = 31536000, max_statement_time = 0, tx_isolation = 'REPEATABLE-READ'",
        )?;
        connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        Ok(Snapshot { connection, datadir: datadir.to_path_buf(), definitions: definitions(datadir) })
    }

    /// The checksums of those tables whose definitions are among `files`, which are seen from the data directory.
    pub fn checksums<'a>(
        mut self,
        files: impl Iterator<Item = &'a String>,
    ) -> Result<Checksums, BackupError> {
        let files: BTreeSet<&str> = files.map(|file| original_name(file).0).collect();
        let mut found = Checksums::new();
        for table in tables(&mut self.connection)? {
            if signals::interrupted() {
                return Err(BackupError::Interrupted);
            }
            let definition = PathBuf::from(format!("{}.frm", table.file));
            if !files.contains(&*definition.to_string_lossy()) {
                continue;
            }
            let checksum = match table.checksum(&mut self.connection).map(Some) {
                Err(BackupError::Server(error))
                    if error.code().is_some_and(|code| CHANGED.contains(&code)) =>
                {
                    None
                }
                other => other?,
            };
            let now = identity(&self.datadir.join(&definition));
            if now.is_some() && now == self.definitions.get(&definition).copied() {
                found.extend(checksum.map(|checksum| (table.file, checksum)));
            }
        }
        Ok(found)
    }
}

/// A table of a server.
pub struct Table {
    /// In backticks.
    pub name: String,
    /// Of its files, from the data directory.
    pub file: String,
}

impl Table {
    /// What CHECKSUM TABLE says of the rows that the session sees.
    pub fn checksum(&self, connection: &mut Connection) -> Result<u64, BackupError> {
        let told = connection.query(format!("CHECKSUM TABLE {} EXTENDED", self.name))?;
        match cell(&told, 0, 1).and_then(|text| text.parse().ok()) {
            Some(checksum) => Ok(checksum),
            None => {
                // It does not tell why there is none; who reads the table is told.
                connection.execute(format!("SELECT * FROM {} LIMIT 1", self.name))?;
                Err(BackupError::Usage(format!("CHECKSUM TABLE {} has no result", self.name)))
            }
        }
    }
}

/// Those of which checksums are noted, as far as the account sees them.
pub fn tables(connection: &mut Connection) -> Result<Vec<Table>, BackupError> {
    let rows = connection.query(TABLES)?;
    let text = |row, column| cell(&rows, row, column).unwrap_or_default();
    let quoted = |name: String| format!("`{}`", name.replace('`', "``"));
    let table = |row| Table {
        name: format!("{}.{}", quoted(text(row, 0)), quoted(text(row, 1))),
        file: format!("{}/{}", text(row, 2), text(row, 3)),
    };
    Ok((0..rows.len()).map(table).collect())
}

fn cell(rows: &Rows, row: usize, column: usize) -> Option<String> {
    Some(String::from_utf8_lossy(rows.get(row)?.get(column)?.as_ref()?).into_owned())
}

/// The files of the definitions of all tables, from the data directory.
fn definitions(datadir: &Path) -> BTreeMap<PathBuf, Identity> {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found = BTreeMap::new();
    for database in entries(datadir).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        for file in
            entries(&database.path()).filter(|file| file.path().extension().is_some_and(|end| end == "frm"))
        {
            let path = Path::new(&database.file_name()).join(file.file_name());
            found.extend(identity(&file.path()).map(|identity| (path, identity)));
        }
    }
    found
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = path.metadata().ok()?;
    Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_that_was_renamed_is_another_one_even_when_it_came_back() {
        let dir = std::env::temp_dir().join(format!("teak-definitions-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("d")).unwrap();
        let (one, two) = (dir.join("d/one.frm"), dir.join("d/two.frm"));
        std::fs::write(&one, "1").unwrap();
        std::fs::write(&two, "2").unwrap();
        std::fs::write(dir.join("d/one.ibd"), "").unwrap();
        let before = definitions(&dir);
        assert_eq!(before.keys().collect::<Vec<_>>(), [Path::new("d/one.frm"), Path::new("d/two.frm")]);
        assert_eq!(before, definitions(&dir));
        std::fs::rename(&one, dir.join("d/three.frm")).unwrap();
        std::fs::rename(&two, &one).unwrap();
        assert_ne!(identity(&one), before.get(Path::new("d/one.frm")).copied());
        assert_eq!(identity(&two), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
