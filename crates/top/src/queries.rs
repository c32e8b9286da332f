//! The statements that a sample is made of. Each is short for a server with thousands of sessions: it sorts and limits
//! what it sends, and no row or table of users is read.

use crate::sample::MOST_ROWS;
use crate::wanted::{Order, Wanted};

/// Asked once for each connection.
pub const SERVER: &str =
    "SELECT VERSION() AS version, @@hostname AS host, @@port AS port, CURRENT_USER() AS user, \
    CONNECTION_ID() AS connection, @@performance_schema AS performance_schema, \
    (SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'METADATA_LOCK_INFO' \
        AND PLUGIN_STATUS = 'ACTIVE') AS metadata_lock_info";
/// Refused without PROCESS, by a role as well, and nothing else.
pub const NEEDS_PROCESS: &str = "SHOW ENGINE MEMORY STATUS";
pub const STATUS: &str = "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
    WHERE VARIABLE_NAME LIKE 'TEAK\\_%' OR VARIABLE_NAME IN ('UPTIME', 'QUESTIONS', 'QUERIES', 'THREADS_CONNECTED', \
    'THREADS_RUNNING', 'CONNECTIONS', 'SLOW_QUERIES', 'ABORTED_CONNECTS', 'COM_SELECT', 'COM_INSERT', 'COM_UPDATE', \
    'COM_DELETE', 'HANDLER_COMMIT', 'ROWS_READ', 'ROWS_SENT', 'HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE', \
    'BYTES_RECEIVED', 'BYTES_SENT', 'MEMORY_USED', 'CREATED_TMP_DISK_TABLES', 'INNODB_ROW_LOCK_CURRENT_WAITS', \
    'INNODB_OS_LOG_WRITTEN', 'INNODB_OS_LOG_FSYNCS', 'INNODB_DATA_READ', 'INNODB_DATA_WRITTEN', \
    'INNODB_BUFFER_POOL_READS', 'INNODB_BUFFER_POOL_READ_REQUESTS', 'INNODB_BUFFER_POOL_BYTES_DATA', \
    'INNODB_CHECKPOINT_AGE', 'INNODB_CHECKPOINT_MAX_AGE', 'INNODB_DEADLOCKS', 'INNODB_HISTORY_LIST_LENGTH')";
pub const INNODB_WAITS: &str = "SELECT r.trx_mysql_thread_id AS WAITING_CONNECTION_ID, \
    b.trx_mysql_thread_id AS BLOCKING_CONNECTION_ID, TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS WAIT_SECONDS, \
    REPLACE(l.lock_table, '`', '') AS LOCKED_TABLE, l.lock_index AS INDEX_NAME, l.lock_mode AS LOCK_MODE, \
    l.lock_data AS LOCK_KEY FROM information_schema.INNODB_LOCK_WAITS w \
    JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
    JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id \
    LEFT JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id";
/// Of which table a session waits for the metadata the server does not say: it is in the statement, by its name.
pub const METADATA: &str = "SELECT DISTINCT p.ID AS WAITING_CONNECTION_ID, m.THREAD_ID AS BLOCKING_CONNECTION_ID, \
    p.TIME_MS / 1000 AS WAIT_SECONDS, CONCAT(m.TABLE_SCHEMA, '.', m.TABLE_NAME) AS LOCKED_TABLE, \
    m.LOCK_MODE AS LOCK_MODE FROM information_schema.PROCESSLIST p JOIN information_schema.METADATA_LOCK_INFO m \
    ON m.THREAD_ID <> p.ID AND m.LOCK_TYPE = 'Table metadata lock' AND LOCATE(m.TABLE_NAME, p.INFO) > 0 \
    WHERE p.STATE LIKE 'Waiting for%metadata lock'";
pub const SNAPSHOTS: &str = "SELECT * FROM information_schema.TEAK_SNAPSHOTS ORDER BY AGE_SECONDS DESC";
pub const DIGESTS: &str = "SELECT SCHEMA_NAME AS db, DIGEST AS digest, LEFT(DIGEST_TEXT, 1024) AS query, \
    COUNT_STAR AS count, SUM_TIMER_WAIT / 1e12 AS seconds, MAX_TIMER_WAIT / 1e12 AS longest, SUM_ERRORS AS errors, \
    SUM_ROWS_EXAMINED AS rows_read, SUM_ROWS_SENT AS rows_sent, SUM_ROWS_AFFECTED AS rows_written \
    FROM performance_schema.events_statements_summary_by_digest ORDER BY SUM_TIMER_WAIT DESC";
pub const PREPARED: &str =
    "SELECT TRX_ID, XID FROM information_schema.TEAK_TRX WHERE XID IS NOT NULL ORDER BY AGE_SECONDS DESC";
/// Where there are no digests.
pub const RUNNING: &str = "SELECT DB AS db, LEFT(INFO, 1024) AS query, COUNT(*) AS count, \
    SUM(TIME_MS) / 1000 AS seconds, MAX(TIME_MS) / 1000 AS longest, SUM(EXAMINED_ROWS) AS rows_read \
    FROM information_schema.PROCESSLIST WHERE INFO IS NOT NULL AND ID <> CONNECTION_ID() \
    GROUP BY DB, LEFT(INFO, 1024) ORDER BY 4 DESC";
pub const DEADLOCKS: &str = "SELECT * FROM information_schema.TEAK_DEADLOCKS ORDER BY DEADLOCK_ID DESC";
pub const REPLICAS: &str = "SHOW ALL SLAVES STATUS";
/// What is kept of it.
pub const OF_REPLICAS: [&str; 13] = [
    "Connection_name",
    "Master_Host",
    "Master_Port",
    "Slave_IO_Running",
    "Slave_SQL_Running",
    "Seconds_Behind_Master",
    "Slave_IO_State",
    "Slave_SQL_Running_State",
    "Last_IO_Error",
    "Last_SQL_Error",
    "Relay_Log_Space",
    "Gtid_IO_Pos",
    "Gtid_Slave_Pos",
];
const PROCESSES: &str = "SELECT ID, USER, HOST, DB, COMMAND, TIME_MS / 1000 AS SECONDS, STATE, \
    LEFT(INFO, 1024) AS QUERY, EXAMINED_ROWS, MEMORY_USED FROM information_schema.PROCESSLIST";

/// With a limit, of which one row more says that there are others.
pub fn limited(statement: &str) -> String {
    format!("{statement} LIMIT {}", MOST_ROWS + 1)
}

/// A text as SQL has it, whatever is in it.
pub fn text(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02X}")).collect();
    format!("CONVERT(X'{digits}' USING utf8mb4)")
}

/// The sessions that were asked for, the worst first.
pub fn sessions(wanted: &Wanted) -> String {
    let mut conditions = String::from("ID <> CONNECTION_ID() AND COMMAND <> 'Daemon'");
    if !wanted.with_idle {
        conditions += " AND COMMAND <> 'Sleep'";
    }
    if !wanted.filter.is_empty() {
        let found_in = "CONCAT_WS(' ', ID, USER, HOST, DB, COMMAND, STATE, LEFT(INFO, 1024))";
        conditions += &format!(" AND LOCATE({}, {found_in}) > 0", text(&wanted.filter));
    }
    let order = match wanted.order.as_ref().and_then(|order| Some((column(order)?, order.is_descending))) {
        Some((column, true)) => format!("{column} DESC"),
        Some((column, false)) => column.into(),
        None => "COMMAND = 'Sleep', TIME_MS DESC".into(),
    };
    limited(&format!("{PROCESSES} WHERE {conditions} ORDER BY {order}"))
}

/// By its name in the table that is shown.
fn column(order: &Order) -> Option<&'static str> {
    Some(match order.key {
        "connection" => "ID",
        "user" => "USER",
        "host" => "HOST",
        "db" => "DB",
        "command" => "COMMAND",
        "seconds" => "TIME_MS",
        "state" => "STATE",
        "rows_read" => "EXAMINED_ROWS",
        "memory_bytes" => "MEMORY_USED",
        "query" => "INFO",
        _ => return None,
    })
}

/// Transactions: the oldest, or in another order.
pub fn transactions(wanted: &Wanted) -> String {
    let column = match wanted.order.as_ref().map(|order| order.key) {
        Some("snapshot_seconds") => "SNAPSHOT_SECONDS",
        Some("rows_written") => "ROWS_WRITTEN",
        Some("row_locks") => "ROW_LOCKS",
        Some("lock_bytes") => "LOCK_MEMORY",
        Some("log_pinned_bytes") => "LOG_BYTES_PINNED",
        _ => "AGE_SECONDS",
    };
    limited(&format!("SELECT * FROM information_schema.TEAK_TRX ORDER BY {column} DESC"))
}

/// Who waits longest for those for whom most wait.
pub fn waits() -> String {
    limited("SELECT * FROM information_schema.TEAK_LOCK_WAITS ORDER BY BEHIND_ROOT DESC, WAIT_SECONDS DESC")
}

/// The sessions of waits, and those that wait for metadata, which are in no table.
pub fn parties(connections: &[u64]) -> String {
    let numbers: Vec<String> = connections.iter().chain([&0]).map(u64::to_string).collect();
    let waits = "STATE LIKE 'Waiting for%metadata lock'";
    limited(&format!("{PROCESSES} WHERE ID IN ({}) OR {waits} ORDER BY TIME_MS DESC", numbers.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_text_whatever_is_in_it() {
        let wanted = Wanted { filter: "x' OR 1 %_\\".into(), ..Wanted::default() };
        let statement = sessions(&wanted);
        assert!(statement.contains("LOCATE(CONVERT(X'7827204F52203120255F5C' USING utf8mb4)"), "{statement}");
        assert!(statement.contains("COMMAND <> 'Sleep'") && statement.ends_with("TIME_MS DESC LIMIT 201"));
    }

    #[test]
    fn an_order_is_the_servers() {
        let order = |key| Some(Order { key, is_descending: true });
        let by_memory = Wanted { with_idle: true, order: order("memory_bytes"), ..Wanted::default() };
        let statement = sessions(&by_memory);
        assert!(statement.ends_with("ORDER BY MEMORY_USED DESC LIMIT 201"), "{statement}");
        assert!(!statement.contains("'Sleep'"));
        let unknown = Wanted { order: order("x; DROP"), ..Wanted::default() };
        assert!(
            !sessions(&unknown).contains("DROP") && transactions(&unknown).contains("BY AGE_SECONDS DESC")
        );
    }
}
