//! The tables of this program in the target.
//!
//! ```text
//! teak_replicate.position   a row for each source: how far it was applied
//! teak_replicate.worker     rows for the workers of a source: what they did above its position
//! teak_replicate.ddl        a row for a statement that changes definitions, from before it begins until its end is known
//! teak_replicate.skip       a row for each transaction that somebody wants passed over, or that was
//! teak_replicate.conflict   a row for each row that did not fit and was skipped
//! teak_replicate.copy       a row for each table that is not copied yet, or in part
//! teak_replicate.xa         rows for what an XA transaction did, from XA PREPARE until XA COMMIT
//! ```

/// Columns of the table of positions that those of older builds lack.
macro_rules! wanted {
    () => {
        "wanted ENUM('follow', 'pause', 'stop', 'stopped') CHARACTER SET ascii NOT NULL DEFAULT 'follow' \
         COMMENT 'what somebody has asked for; stopped: it was done'"
    };
}
macro_rules! asked {
    () => {
        "asked BIGINT UNSIGNED NOT NULL DEFAULT 0 \
         COMMENT 'counts how often; nothing is committed without this number'"
    };
}
macro_rules! mark {
    () => {
        "mark BIGINT UNSIGNED NOT NULL DEFAULT 0 \
         COMMENT 'of those that teak_replicate.worker numbers the last one that is part of gtid'"
    };
}

/// What makes them, each if it is not there.
pub const STATEMENTS: [&str; 8] = [
    "CREATE DATABASE IF NOT EXISTS teak_replicate",
    concat!(
        "CREATE TABLE IF NOT EXISTS teak_replicate.position (
        source VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        gtid LONGTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL
            COMMENT 'what was applied: of MariaDB the last transaction of each domain, of MySQL a set',
        log_file VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'the source''s log',
        log_position BIGINT UNSIGNED NULL COMMENT 'where in it the next event begins',
        source_time TIMESTAMP NULL COMMENT 'when the last transaction was committed at the source',
        applied TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
        ",
        wanted!(),
        ", ",
        asked!(),
        ", ",
        mark!(),
        ") COMMENT 'teak replicate: how far each source was applied'"
    ),
    "CREATE TABLE IF NOT EXISTS teak_replicate.skip (
        source VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        gtid VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        noted TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        skipped TIMESTAMP(6) NULL COMMENT 'when it was passed over; NULL: it has not come yet',
        PRIMARY KEY (source, gtid)
    ) COMMENT 'teak replicate: transactions that are not applied'",
    "CREATE TABLE IF NOT EXISTS teak_replicate.ddl (
        source VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        gtid VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        statement LONGBLOB NOT NULL,
        before_it LONGBLOB NOT NULL COMMENT 'what SHOW CREATE said of what the statement names',
        noted TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
    ) COMMENT 'teak replicate: statements that may have been carried out'",
    "CREATE TABLE IF NOT EXISTS teak_replicate.xa (
        source VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        xid VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        part INT UNSIGNED NOT NULL COMMENT '0 has names of tables; without xid: nothing is copied yet',
        statement LONGBLOB NOT NULL,
        prepared TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        PRIMARY KEY (source, xid, part)
    ) COMMENT 'teak replicate: what XA transactions did that are prepared at the source'",
    "CREATE TABLE IF NOT EXISTS teak_replicate.copy (
        source VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        table_schema VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        table_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        last DECIMAL(20) NULL COMMENT 'rows with at most this number are here; NULL: none; without key_column: all, keys are missing',
        key_column INT UNSIGNED NULL COMMENT 'the column that has the number, from 0',
        is_unsigned BOOLEAN NULL,
        PRIMARY KEY (source, table_schema, table_name)
    ) COMMENT 'teak replicate: tables that are not copied yet, or in part'",
    "CREATE TABLE IF NOT EXISTS teak_replicate.conflict (
        id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        source VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        gtid VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        table_schema VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        table_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        row_key TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        error TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        statement LONGTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'what would have applied it, and can',
        noted TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
    ) COMMENT 'teak replicate: rows that did not fit, and were skipped'",
    "CREATE TABLE IF NOT EXISTS teak_replicate.worker (
        source VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        worker SMALLINT UNSIGNED NOT NULL COMMENT '0: what former programs left',
        generation BIGINT UNSIGNED NOT NULL COMMENT 'nothing is committed without this number',
        done LONGTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL
            COMMENT 'transactions, numbered: those above the mark of the position are done',
        commits BIGINT UNSIGNED NOT NULL DEFAULT 0,
        PRIMARY KEY (source, worker)
    ) COMMENT 'teak replicate: what the workers of a source did above its position'",
];

/// What the table of positions had not in builds before `pause`, or workers, were there.
pub const ADDED: &str = concat!(
    "ALTER TABLE teak_replicate.position ADD COLUMN IF NOT EXISTS ",
    wanted!(),
    ", ADD COLUMN IF NOT EXISTS ",
    asked!(),
    ", ADD COLUMN IF NOT EXISTS ",
    mark!()
);
/// Asks whether it has it.
pub const HAS_ADDED: &str = "SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'teak_replicate'
    AND TABLE_NAME = 'position' AND COLUMN_NAME IN ('wanted', 'asked', 'mark') HAVING COUNT(*) = 3";

/// Asks whether what a statement of the schema makes is there.
pub fn exists(statement: &str) -> String {
    let name = statement.split_whitespace().nth(5).unwrap_or_default();
    match name.split_once('.') {
        None => format!("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{name}'"),
        Some((database, table)) => has_table(database, table),
    }
}

/// Asks whether a table is there; of both names all is letters of ASCII, digits, `_`, `-` and points.
pub fn has_table(database: &str, table: &str) -> String {
    format!(
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = '{table}'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_the_schema_names_what_is_asked_for() {
        assert!(
            exists(STATEMENTS[0]).ends_with("SCHEMA_NAME = 'teak_replicate'"),
            "{}",
            exists(STATEMENTS[0])
        );
        for (statement, table) in
            STATEMENTS[1..].iter().zip(["position", "skip", "ddl", "xa", "copy", "conflict", "worker"])
        {
            let asked = exists(statement);
            assert!(asked.ends_with(&format!("TABLE_NAME = '{table}'")), "{asked}");
        }
    }
}
