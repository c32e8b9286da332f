//! What the server says of its tables, indexes and itself.

use crate::asking::{each, Row};
use crate::ReportError;
use serde::Serialize;
use std::collections::BTreeMap;
use teak_client::Connection;

const USES: &str =
    "SELECT TABLE_SCHEMA, TABLE_NAME, TREE, INDEX_NAME, FILL, LOOK_UPS, SCANS, INSERTS, LOCK_WAITS \
    FROM information_schema.TEAK_INDEXES";
const SIZES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, TREE, ENTRIES, RAW_BYTES, DISK_BYTES, DICTIONARY_BYTES, \
    MEMORY_BYTES, COMPRESSION, BUNDLED_VALUES, BUNDLED_BYTES, BUNDLED_DISK_BYTES FROM information_schema.TEAK_TABLES";
const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, DATA_LENGTH + INDEX_LENGTH, DATA_FREE \
    FROM information_schema.TABLES WHERE ENGINE = 'Teak'";
const COLUMNS: &str = "SELECT s.TABLE_SCHEMA, s.TABLE_NAME, s.INDEX_NAME, s.NON_UNIQUE, s.COLUMN_NAME, s.SUB_PART, \
    s.INDEX_TYPE FROM information_schema.STATISTICS s JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME) \
    WHERE t.ENGINE = 'Teak' ORDER BY 1, 2, 3, s.SEQ_IN_INDEX";
const CONSTRAINTS: &str =
    "SELECT DISTINCT k.TABLE_SCHEMA, k.TABLE_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA, \
    k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE k \
    WHERE k.REFERENCED_TABLE_NAME IS NOT NULL AND k.POSITION_IN_UNIQUE_CONSTRAINT = 1";
const SNAPSHOT: &str = "SELECT CONNECTION_ID, AGE_SECONDS, VERSIONS, MEMORY_BYTES, SPILLED_BYTES \
    FROM information_schema.TEAK_SNAPSHOTS ORDER BY AGE_SECONDS DESC LIMIT 1";
const METRICS: &str =
    "SELECT NAME, VALUE FROM information_schema.TEAK_METRICS WHERE UP_TO IS NULL AND KIND <> 'HISTOGRAM'";
const SERVER: &str = "SELECT VERSION(), @@hostname, NOW(), VARIABLE_VALUE, @@teak_cache_size, \
    @@teak_checkpoint_log_size FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME'";
const MAY_SEE: &str = "SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES \
    WHERE PRIVILEGE_TYPE = 'PROCESS' AND GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')";

/// The server, and when it was asked.
#[derive(Debug, Default, Serialize)]
pub struct Server {
    pub version: String,
    pub host: String,
    pub asked: String,
    pub uptime_seconds: u64,
    pub cache_bytes: u64,
    pub checkpoint_log_bytes: u64,
}

/// A table with all of its partitions.
#[derive(Debug, Default, Serialize)]
pub struct Table {
    pub database: String,
    pub name: String,
    pub rows: u64,
    /// Blocks of rows and entries before they are encoded and compressed.
    pub raw_bytes: u64,
    /// The same on disk.
    pub block_bytes: u64,
    /// Rows, entries, large values.
    pub disk_bytes: u64,
    /// Of its file, beside that.
    pub free_bytes: u64,
    /// Of a table that lives in memory.
    pub memory_bytes: u64,
    pub dictionary_bytes: u64,
    pub compression: String,
    /// Large values that are stored together with others.
    pub bundled_values: u64,
    pub bundled_bytes: u64,
    pub bundled_disk_bytes: u64,
    pub has_primary_key: bool,
    pub indexes: Vec<Index>,
}

/// An index; of all partitions.
#[derive(Debug, Default, Serialize)]
pub struct Index {
    pub name: String,
    /// `a`, or `a(10)` for the beginning of a text. Empty: the server tells of none, as of rows without a primary key.
    pub columns: Vec<String>,
    pub is_unique: bool,
    pub is_btree: bool,
    /// A foreign key needs one that begins with its column.
    pub serves_foreign_key: bool,
    pub entries: u64,
    pub raw_bytes: u64,
    pub disk_bytes: u64,
    /// Of what its blocks could have at most, the least of all partitions.
    pub fill: Option<f64>,
    /// Before the report opened anything; None: the table was not open then.
    pub uses: Option<Uses>,
}

/// Since the table was opened.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Uses {
    pub look_ups: u64,
    pub scans: u64,
    pub inserts: u64,
    pub lock_waits: u64,
}

/// The oldest snapshot.
#[derive(Debug, Serialize)]
pub struct Snapshot {
    pub connection: u64,
    pub age_seconds: u64,
    pub versions: u64,
    pub memory_bytes: u64,
    pub spilled_bytes: u64,
}

/// An engine's directory that no server uses.
#[derive(Debug, Default, Serialize)]
pub struct Directory {
    pub path: String,
    /// Of the log, which a start replays.
    pub log_bytes: u64,
    /// They wait for their coordinator.
    pub prepared_transactions: u64,
    /// Tables that cannot be opened, and why; they are not among the tables.
    pub damaged: Vec<String>,
}

/// All of it: of a server, or of a directory.
#[derive(Debug, Default, Serialize)]
pub struct Facts {
    pub server: Option<Server>,
    pub directory: Option<Directory>,
    /// The largest first.
    pub tables: Vec<Table>,
    pub oldest_snapshot: Option<Snapshot>,
    /// `information_schema.TEAK_METRICS`.
    pub metrics: BTreeMap<String, u64>,
}

/// Database, table, tree.
type Key = (String, String, u64);
/// Database, table, index.
type Name = (String, String, String);

/// A partition's or vector index's table: its name up to the mark.
pub(crate) fn table_of(name: &str) -> &str {
    ["#P#", "#p#", "#i#"].iter().filter_map(|mark| name.find(mark)).min().map_or(name, |end| &name[..end])
}

fn key(row: &Row) -> Key {
    (row.text(0).to_string(), table_of(row.text(1)).to_string(), row.number(2))
}

impl Facts {
    /// Asks for all. How often indexes are used comes first, as most that follows opens tables.
    pub fn of(connection: &mut Connection) -> Result<Facts, ReportError> {
        let mut facts = Facts::default();
        let uses = uses(connection)?;
        each(connection, SERVER, &mut |row| {
            facts.server = Some(Server {
                version: row.text(0).to_string(),
                host: row.text(1).to_string(),
                asked: row.text(2).to_string(),
                uptime_seconds: row.number(3),
                cache_bytes: row.number(4),
                checkpoint_log_bytes: row.number(5),
            });
        })?;
        facts.tables = tables(connection, &uses)?;
        each(connection, SNAPSHOT, &mut |row| {
            facts.oldest_snapshot = Some(Snapshot {
                connection: row.number(0),
                age_seconds: row.number(1),
                versions: row.number(2),
                memory_bytes: row.number(3),
                spilled_bytes: row.number(4),
            });
        })?;
        each(connection, METRICS, &mut |row| {
            facts.metrics.insert(row.text(0).to_string(), row.number(1));
        })?;
        let mut may_see = false;
        each(connection, MAY_SEE, &mut |row| may_see = row.number(0) > 0)?;
        // A role may have the privilege, too, and then there are trees.
        match may_see || facts.tables.iter().any(|table| !table.indexes.is_empty()) {
            true => Ok(facts),
            false => Err(ReportError::NoPrivilege),
        }
    }
}

/// How often the indexes of open tables were used; of all partitions.
fn uses(connection: &mut Connection) -> Result<BTreeMap<Name, Uses>, ReportError> {
    let mut uses: BTreeMap<Name, Uses> = BTreeMap::new();
    each(connection, USES, &mut |row| {
        // Without a name the table is not open: its trees may have other numbers when it is, after an ALTER.
        if row.text(3).is_empty() {
            return;
        }
        let (database, table, _) = key(row);
        let all = uses.entry((database, table, row.text(3).to_string())).or_default();
        all.look_ups += row.number(5);
        all.scans += row.number(6);
        all.inserts += row.number(7);
        all.lock_waits += row.number(8);
    })?;
    Ok(uses)
}

/// All tables with their indexes, the largest first.
fn tables(connection: &mut Connection, uses: &BTreeMap<Name, Uses>) -> Result<Vec<Table>, ReportError> {
    let mut tables: BTreeMap<(String, String), Table> = BTreeMap::new();
    each(connection, TABLES, &mut |row| {
        let table = Table {
            database: row.text(0).to_string(),
            name: row.text(1).to_string(),
            disk_bytes: row.number(2),
            free_bytes: row.number(3),
            ..Table::default()
        };
        tables.insert((table.database.clone(), table.name.clone()), table);
    })?;
    let columns = columns(connection)?;
    for (key, mut index) in trees(connection, &mut tables)? {
        let Some(table) = tables.get_mut(&(key.0.clone(), key.1.clone())) else { continue };
        let named = (key.0, key.1, index.name.clone());
        index.uses = uses.get(&named).copied();
        if let Some(known) = columns.get(&named) {
            index.columns.clone_from(&known.columns);
            (index.is_unique, index.is_btree) = (known.is_unique, known.is_btree);
            index.serves_foreign_key = known.serves_foreign_key;
            table.has_primary_key |= index.name == "PRIMARY";
        } else if index.name.is_empty() {
            index.name = if key.2 == 0 { "rows".into() } else { format!("tree {}", key.2) };
        }
        table.indexes.push(index);
    }
    let mut tables: Vec<Table> = tables.into_values().collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.disk_bytes));
    Ok(tables)
}

/// All trees, with their sums in `tables`.
fn trees(
    connection: &mut Connection,
    tables: &mut BTreeMap<(String, String), Table>,
) -> Result<BTreeMap<Key, Index>, ReportError> {
    let mut trees: BTreeMap<Key, Index> = BTreeMap::new();
    each(connection, SIZES, &mut |row| {
        let key = key(row);
        let index = trees.entry(key.clone()).or_default();
        index.entries += row.number(3);
        index.raw_bytes += row.number(4);
        index.disk_bytes += row.number(5);
        let Some(table) = tables.get_mut(&(key.0, key.1)) else { return };
        table.raw_bytes += row.number(4);
        table.block_bytes += row.number(5);
        table.dictionary_bytes += row.number(6);
        if key.2 == 0 {
            table.rows += row.number(3);
            table.memory_bytes += row.number(7);
            table.compression = row.text(8).to_string();
            table.bundled_values += row.number(9);
            table.bundled_bytes += row.number(10);
            table.bundled_disk_bytes += row.number(11);
        }
    })?;
    // By now the tables are open, and their indexes have names.
    each(connection, USES, &mut |row| {
        let Some(index) = trees.get_mut(&key(row)) else { return };
        index.name = row.text(3).to_string();
        index.fill = match (index.fill, row.share(4)) {
            (Some(least), Some(fill)) => Some(least.min(fill)),
            (least, fill) => least.or(fill),
        };
    })?;
    Ok(trees)
}

/// What the server says of the columns of each index.
fn columns(connection: &mut Connection) -> Result<BTreeMap<Name, Index>, ReportError> {
    let mut constraints = std::collections::BTreeSet::new();
    each(connection, CONSTRAINTS, &mut |row| {
        constraints.insert([0, 1, 2].map(|at| row.text(at).to_string()));
        constraints.insert([3, 4, 5].map(|at| row.text(at).to_string()));
    })?;
    let mut indexes: BTreeMap<Name, Index> = BTreeMap::new();
    each(connection, COLUMNS, &mut |row| {
        let [database, table, index, column] = [0, 1, 2, 4].map(|at| row.text(at).to_string());
        let serves = constraints.contains(&[database.clone(), table.clone(), column.clone()]);
        let known = indexes.entry((database, table, index)).or_default();
        known.is_unique = row.number(3) == 0;
        known.is_btree = row.text(6) == "BTREE";
        known.serves_foreign_key |= known.columns.is_empty() && serves;
        known.columns.push(match row.text(5) {
            "" => column,
            part => format!("{column}({part})"),
        });
    })?;
    Ok(indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_belong_to_their_table() {
        let names = ["t", "t#P#p0", "t#P#p0#SP#s", "t#i#01", "#P#"].map(table_of);
        assert_eq!(names, ["t", "t", "t", "t", ""]);
    }
}
