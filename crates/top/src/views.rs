//! The tables of each view, made of samples alone.

use crate::moment::Moment;
use crate::sample::{Part, Record, Sample};
use crate::table::Place::{Detail, Rest, Wide};
use crate::table::{number, text, Cell, Column, Row, Subject, Table, Unit};
use std::collections::BTreeMap;

/// A table that is shown by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    Overview,
    Sessions,
    Locks,
    Transactions,
    Statements,
    Deadlocks,
    Memory,
    Replicas,
}

impl View {
    /// In the order of their keys, from 1 on.
    pub const ALL: [View; 8] = [
        View::Overview,
        View::Sessions,
        View::Locks,
        View::Transactions,
        View::Statements,
        View::Deadlocks,
        View::Memory,
        View::Replicas,
    ];

    /// In JSON.
    pub fn name(self) -> &'static str {
        match self {
            View::Overview => "overview",
            View::Sessions => "sessions",
            View::Locks => "locks",
            View::Transactions => "transactions",
            View::Statements => "statements",
            View::Deadlocks => "deadlocks",
            View::Memory => "memory",
            View::Replicas => "replicas",
        }
    }

    /// What it is made of, beside the status.
    pub fn parts(self) -> &'static [Part] {
        match self {
            View::Overview => &[Part::Sessions, Part::Waits, Part::Snapshots, Part::Replicas],
            View::Sessions => &[Part::Sessions],
            View::Locks => &[Part::Waits],
            View::Transactions => &[Part::Transactions, Part::Snapshots],
            View::Statements => &[Part::Statements],
            View::Deadlocks => &[Part::Deadlocks],
            View::Memory => &[],
            View::Replicas => &[Part::Replicas],
        }
    }

    /// The table, with what is missing in it.
    pub fn table(self, moment: &Moment<'_>) -> Table {
        let mut table = match self {
            View::Overview => crate::overview::table(moment),
            View::Sessions => sessions(moment.now),
            View::Locks => crate::locks::table(moment.now),
            View::Transactions => transactions(moment.now),
            View::Statements => statements(moment),
            View::Deadlocks => deadlocks(moment.now),
            View::Memory => memory(moment.now),
            View::Replicas => replicas(moment.now),
        };
        let of_waits = [Part::InnodbWaits, Part::Metadata, Part::Parties, Part::Prepared];
        let has_waits = self.parts().contains(&Part::Waits);
        let parts = [Part::Server, Part::Status]
            .iter()
            .chain(self.parts())
            .chain(has_waits.then_some(&of_waits).into_iter().flatten());
        for part in parts {
            let now = moment.now;
            match (now.missing.get(part), now.parts.get(part)) {
                (Some(why), _) => table.notes.push(format!("{}: {why}", part.name())),
                (None, Some(answer)) if answer.is_cut => {
                    table.notes.push(format!("{}: the first {} only", part.name(), answer.rows.len()));
                }
                // Another view was shown.
                (None, None)
                    if self.parts().contains(part) && moment.now.parts.contains_key(&Part::Status) =>
                {
                    table.notes.push(format!("{}: is asked for", part.name()));
                }
                _ => {}
            }
        }
        table
    }
}

const SESSIONS: &[Column] = &[
    number("connection", "ID", Wide(7), "ID", Unit::Id),
    text("user", "USER", Wide(9), "USER"),
    text("host", "HOST", Detail, "HOST"),
    text("db", "DB", Wide(8), "DB"),
    text("command", "COMMAND", Wide(7), "COMMAND"),
    number("seconds", "TIME", Wide(7), "SECONDS", Unit::Seconds),
    text("state", "STATE", Wide(12), "STATE"),
    number("rows_read", "ROWS READ", Detail, "EXAMINED_ROWS", Unit::Count),
    number("memory_bytes", "MEMORY", Detail, "MEMORY_USED", Unit::Bytes),
    text("query", "QUERY", Rest, "QUERY"),
];

fn sessions(sample: &Sample) -> Table {
    let id = |row: Record<'_>| row.text("ID").unwrap_or_default().to_string();
    let rows = sample.records(Part::Sessions).map(|row| Row::of(SESSIONS, row, id(row), row.id("ID")));
    Table { rows: rows.collect(), ..Table::new(SESSIONS) }
}

const TRANSACTIONS: &[Column] = &[
    number("connection", "ID", Wide(7), "CONNECTION_ID", Unit::Id),
    number("transaction", "TRANSACTION", Detail, "TRX_ID", Unit::Id),
    text("state", "STATE", Wide(10), "STATE"),
    text("started", "STARTED", Detail, "STARTED"),
    text("isolation", "ISOLATION", Detail, "ISOLATION_LEVEL"),
    number("age_seconds", "AGE", Wide(7), "AGE_SECONDS", Unit::Seconds),
    number("snapshot_seconds", "SNAPSHOT", Wide(8), "SNAPSHOT_SECONDS", Unit::Seconds),
    number("rows_written", "WRITTEN", Wide(7), "ROWS_WRITTEN", Unit::Count),
    number("row_locks", "LOCKS", Wide(6), "ROW_LOCKS", Unit::Count),
    number("lock_bytes", "LOCK MEMORY", Detail, "LOCK_MEMORY", Unit::Bytes),
    number("redo_bytes", "REDO", Detail, "REDO_BYTES", Unit::Bytes),
    number("log_pinned_bytes", "LOG KEPT", Wide(8), "LOG_BYTES_PINNED", Unit::Bytes),
    number("history_bytes", "KEPT FOR ITS SNAPSHOT", Detail, "", Unit::Bytes),
    number("waits_for_transaction", "WAITS FOR", Detail, "WAITS_FOR_TRX_ID", Unit::Id),
    number("wait_seconds", "WAITS", Detail, "WAIT_SECONDS", Unit::Seconds),
    text("xid", "XID", Detail, "XID"),
    text("query", "QUERY, OR: XID", Rest, "QUERY"),
];

fn transactions(sample: &Sample) -> Table {
    let bytes = |row: Record<'_>| Some(row.number("MEMORY_BYTES")? + row.number("SPILLED_BYTES")?);
    let kept =
        sample.records(Part::Snapshots).filter_map(|row| Some((row.id("CONNECTION_ID")?, bytes(row)?)));
    let kept: BTreeMap<u64, f64> = kept.collect();
    let mut table = Table::new(TRANSACTIONS);
    for record in sample.records(Part::Transactions) {
        let (connection, xid) = (record.id("CONNECTION_ID"), record.text("XID"));
        let id = record.text("TRX_ID").unwrap_or_default();
        let mut row = Row::of(TRANSACTIONS, record, id.into(), connection);
        row.set(
            TRANSACTIONS,
            "history_bytes",
            Cell::number(connection.and_then(|id| kept.get(&id).copied()), Unit::Bytes),
        );
        if let (None, Some(xid)) = (connection, xid) {
            row.set(TRANSACTIONS, "query", Cell::Text(xid.into()));
            row.subject.statement = Some(format!("XA ROLLBACK {xid}"));
        }
        table.rows.push(row);
    }
    table
}

const STATEMENTS: &[Column] = &[
    number("seconds", "TIME", Wide(8), "seconds", Unit::Seconds),
    number("seconds_rate", "TIME/s", Wide(7), "", Unit::Seconds),
    number("count", "COUNT", Wide(7), "count", Unit::Count),
    number("count_rate", "COUNT/s", Wide(7), "", Unit::Count),
    number("longest_seconds", "LONGEST", Detail, "longest", Unit::Seconds),
    number("rows_read", "READ", Wide(7), "rows_read", Unit::Count),
    number("rows_sent", "SENT", Detail, "rows_sent", Unit::Count),
    number("rows_written", "WRITTEN", Detail, "rows_written", Unit::Count),
    number("errors", "ERRORS", Detail, "errors", Unit::Count),
    text("db", "DB", Detail, "db"),
    text("digest", "DIGEST", Detail, "digest"),
    text("query", "STATEMENT", Rest, "query"),
];

fn statements(moment: &Moment<'_>) -> Table {
    let mut table = Table::new(STATEMENTS);
    let Some(answer) = moment.now.parts.get(&Part::Statements) else { return table };
    let are_digests = answer.columns.iter().any(|column| column == "digest");
    let of = if are_digests { "digest" } else { "query" };
    // The digest is NULL of all that had no room.
    let key = |row: Record<'_>| {
        format!("{} {}", row.text(of).unwrap_or_default(), row.text("db").unwrap_or_default())
    };
    let before = moment.before().filter(|_| are_digests).into_iter();
    let before: BTreeMap<String, Record<'_>> =
        before.flat_map(|sample| sample.records(Part::Statements)).map(|row| (key(row), row)).collect();
    for record in answer.records() {
        let rate = |column| {
            let grown = record.number(column)? - before.get(&key(record))?.number(column)?;
            Some(grown.max(0.0) / moment.seconds()?)
        };
        let mut row = Row::of(STATEMENTS, record, key(record), None);
        row.set(STATEMENTS, "seconds_rate", Cell::number(rate("seconds"), Unit::Seconds));
        row.set(STATEMENTS, "count_rate", Cell::number(rate("count"), Unit::Count));
        table.rows.push(row);
    }
    if !are_digests {
        table.notes.push(
            "performance_schema is off (it is set at the start of the server): these run now, with their time so far".into(),
        );
    }
    table
}

const DEADLOCKS: &[Column] = &[
    number("deadlock", "NO", Wide(4), "DEADLOCK_ID", Unit::Id),
    text("occurred", "WHEN", Wide(19), "OCCURRED"),
    number("connection", "ID", Wide(7), "CONNECTION_ID", Unit::Id),
    text("victim", "VICTIM", Wide(6), "VICTIM"),
    text("user", "USER", Detail, "USER"),
    text("host", "HOST", Detail, "HOST"),
    number("transaction", "TRANSACTION", Detail, "TRX_ID", Unit::Id),
    number("waits_for_transaction", "WAITS FOR", Detail, "WAITS_FOR_TRX_ID", Unit::Id),
    number("wait_seconds", "WAITED", Detail, "WAIT_SECONDS", Unit::Seconds),
    text("database", "DATABASE", Detail, "TABLE_SCHEMA"),
    text("table", "TABLE", Detail, "TABLE_NAME"),
    text("index", "INDEX", Detail, "INDEX_NAME"),
    text("mode", "MODE", Detail, "LOCK_MODE"),
    text("key", "KEY", Wide(12), "LOCK_KEY"),
    number("writes", "WRITES", Detail, "WRITES", Unit::Count),
    text("reason", "WHY IT", Detail, "REASON"),
    text("query", "QUERY", Rest, "QUERY"),
];

fn deadlocks(sample: &Sample) -> Table {
    let id = |row: Record<'_>| {
        ["DEADLOCK_ID", "TRX_ID"].map(|column| row.text(column).unwrap_or_default()).join(" ")
    };
    // What has happened ends nobody who is there now.
    let rows = sample.records(Part::Deadlocks).map(|row| Row::of(DEADLOCKS, row, id(row), None));
    Table { rows: rows.collect(), ..Table::new(DEADLOCKS) }
}

const MEMORY: &[Column] = &[
    text("name", "NAME", Wide(29), ""),
    number("bytes", "BYTES", Wide(10), "", Unit::Bytes),
    number("share", "SHARE", Wide(6), "", Unit::Share),
    text("meaning", "WHAT IT IS", Rest, ""),
];
/// By the names of status variables.
const PURPOSES: [(&str, &str); 22] = [
    ("Teak_memory_resident", "of the process in memory, with files that it maps"),
    ("Teak_memory_rest", "of it: server, sessions, free heap of the C library"),
    ("Teak_cache_bytes_used", "of it: what counts in the cache"),
    ("Teak_cache_bytes_budget", "teak_cache_size"),
    ("Teak_memory_of_blocks", "blocks of leaves"),
    ("Teak_memory_of_changes", "changes that are not in blocks yet"),
    ("Teak_memory_of_history", "old versions for snapshots"),
    ("Teak_memory_of_leaves", "what stands for leaves, wherever their content is"),
    ("Teak_memory_of_values", "large values"),
    ("Teak_memory_of_dictionaries", "dictionaries and their samples"),
    ("Teak_memory_of_locks", "row locks"),
    ("Teak_memory_of_transactions", "redo and gathered entries of open transactions"),
    ("Teak_memory_of_sorting", "indexes that are being built"),
    ("Teak_memory_of_log", "the log's buffers"),
    ("Teak_memory_of_checkpoints", "pages that a checkpoint writes"),
    ("Teak_memory_of_recovery", "the log that a start replays"),
    ("Teak_memory_of_catalog", "open tables"),
    ("Teak_memory_of_tables", "tables in memory"),
    ("Teak_memory_of_spare", "free, and kept for the next"),
    ("Teak_memory_of_others", "all else of the engine"),
    ("Innodb_buffer_pool_bytes_data", "InnoDB's pages"),
    ("Memory_used", "sessions and caches, as the server counts them"),
];

fn memory(sample: &Sample) -> Table {
    let mut table = Table::new(MEMORY);
    let all = sample.status("teak_memory_resident").filter(|bytes| *bytes > 0.0);
    for (name, meaning) in PURPOSES {
        let Some(bytes) = sample.status(name) else { continue };
        let cells = vec![
            Cell::Text(name.into()),
            Cell::Number(bytes, Unit::Bytes),
            Cell::number(all.map(|all| bytes / all), Unit::Share),
            Cell::Text(meaning.into()),
        ];
        table.rows.push(Row { id: name.into(), cells, subject: Subject::default() });
    }
    if all.is_none() && sample.parts.contains_key(&Part::Status) {
        table
            .notes
            .push("the server has no Teak, which tells what memory is for: INSTALL SONAME 'ha_teak'".into());
    }
    table
}

const REPLICAS: &[Column] = &[
    text("name", "NAME", Wide(12), "Connection_name"),
    text("host", "HOST", Wide(16), "Master_Host"),
    number("lag_seconds", "BEHIND", Wide(8), "Seconds_Behind_Master", Unit::Seconds),
    text("io", "IO", Wide(10), "Slave_IO_Running"),
    text("sql", "SQL", Wide(4), "Slave_SQL_Running"),
    text("gtid_received", "GTID RECEIVED", Detail, "Gtid_IO_Pos"),
    text("gtid_applied", "GTID APPLIED", Detail, "Gtid_Slave_Pos"),
    number("relay_log_bytes", "RELAY LOGS", Detail, "Relay_Log_Space", Unit::Bytes),
    text("state", "STATE, OR: ERROR", Rest, ""),
];

fn replicas(sample: &Sample) -> Table {
    let mut table = Table::new(REPLICAS);
    for record in sample.records(Part::Replicas) {
        let name = record.text("Connection_name").unwrap_or_default();
        let mut row = Row::of(REPLICAS, record, name.into(), None);
        row.set(REPLICAS, "state", Cell::text(replica_state(record)));
        table.rows.push(row);
    }
    if table.rows.is_empty() && sample.parts.contains_key(&Part::Replicas) {
        table.notes.push("the server follows no other".into());
    }
    table
}

/// Its error, or what it does.
pub(crate) fn replica_state(row: Record<'_>) -> Option<&str> {
    let columns = ["Last_SQL_Error", "Last_IO_Error", "Slave_SQL_Running_State", "Slave_IO_State"];
    columns.iter().find_map(|column| row.text(column).filter(|text| !text.is_empty()))
}
