-- Views over what Teak, InnoDB and the server say of waits, as `teak views` prints them. To be made, and made anew after
-- InnoDB or METADATA_LOCK_INFO has come or gone: teak views | mariadb
--
-- Each shows what who asks may see: all of it with the PROCESS privilege.

CREATE DATABASE IF NOT EXISTS teak;

-- Open transactions of Teak, the oldest first, with who works on them.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW teak.transactions AS
SELECT t.TRX_ID AS trx_id, t.CONNECTION_ID AS connection_id, p.USER AS user, p.HOST AS host, p.DB AS db, t.STATE AS state,
       p.COMMAND AS command, p.TIME_MS / 1000 AS command_seconds, t.AGE_SECONDS AS age_seconds, t.ISOLATION_LEVEL AS isolation_level,
       t.SNAPSHOT_SECONDS AS snapshot_seconds, t.ROWS_WRITTEN AS rows_written, t.ROW_LOCKS AS row_locks, t.LOCK_MEMORY AS lock_memory,
       t.REDO_BYTES AS redo_bytes, t.LOG_BYTES_PINNED AS log_bytes_pinned, t.WAITS_FOR_TRX_ID AS waits_for_trx_id, t.XID AS xid,
       t.QUERY AS query,
       CASE WHEN t.CONNECTION_ID IS NOT NULL THEN CONCAT('KILL ', t.CONNECTION_ID)
            WHEN t.XID IS NOT NULL THEN CONCAT('XA ROLLBACK ', t.XID) END AS kill_statement
  FROM information_schema.TEAK_TRX t LEFT JOIN information_schema.PROCESSLIST p ON p.ID = t.CONNECTION_ID
  ORDER BY t.AGE_SECONDS DESC;

-- Who waits for whom: for locks of Teak and of InnoDB, and for metadata. The server does not say for the metadata of
-- which table a session waits: there, whoever has that of a table which the statement names may be in its way.
SET @innodb = (SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'INNODB_LOCK_WAITS' AND PLUGIN_STATUS = 'ACTIVE');
SET @metadata = (SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'METADATA_LOCK_INFO' AND PLUGIN_STATUS = 'ACTIVE');
SET @view = CONCAT('CREATE OR REPLACE SQL SECURITY INVOKER VIEW teak.waits AS
SELECT ''Teak'' AS kind, w.WAITING_CONNECTION_ID AS waiting_connection, p.INFO AS waiting_query, w.WAIT_SECONDS AS wait_seconds,
       CONCAT(w.TABLE_SCHEMA, ''.'', w.TABLE_NAME) AS locked_table, w.INDEX_NAME AS locked_index, w.LOCK_MODE AS lock_mode,
       w.LOCK_KEY AS lock_key, w.BLOCKING_CONNECTION_ID AS blocking_connection
  FROM information_schema.TEAK_LOCK_WAITS w
  LEFT JOIN information_schema.PROCESSLIST p ON p.ID = w.WAITING_CONNECTION_ID',
IF(@innodb, '
UNION ALL
SELECT ''InnoDB'', r.trx_mysql_thread_id, r.trx_query, TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()),
       REPLACE(l.lock_table, ''`'', ''''), l.lock_index, l.lock_mode, l.lock_data, b.trx_mysql_thread_id
  FROM information_schema.INNODB_LOCK_WAITS w
  JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
  JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id
  LEFT JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id', ''),
IF(@metadata, '
UNION ALL
SELECT DISTINCT ''metadata'', p.ID, p.INFO, p.TIME_MS / 1000, CONCAT(m.TABLE_SCHEMA, ''.'', m.TABLE_NAME), NULL, m.LOCK_MODE, NULL, m.THREAD_ID
  FROM information_schema.PROCESSLIST p
  JOIN information_schema.METADATA_LOCK_INFO m
    ON m.THREAD_ID <> p.ID AND m.LOCK_TYPE = ''Table metadata lock'' AND LOCATE(m.TABLE_NAME, p.INFO) > 0
  WHERE p.STATE LIKE ''Waiting for%metadata lock''', ''));
PREPARE made FROM @view;
EXECUTE made;
DEALLOCATE PREPARE made;

-- Whom to end: who is in others' way and waits for nobody, with how many wait for it, directly or behind others.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW teak.blockers AS
WITH RECURSIVE behind (connection_id, waiting_connection, wait_seconds) AS (
    SELECT blocking_connection, waiting_connection, wait_seconds FROM teak.waits
    UNION
    SELECT b.connection_id, w.waiting_connection, w.wait_seconds FROM behind b JOIN teak.waits w ON w.blocking_connection = b.waiting_connection
)
SELECT b.connection_id, COUNT(DISTINCT b.waiting_connection) AS waiting, MAX(b.wait_seconds) AS longest_seconds, p.USER AS user,
       p.HOST AS host, p.COMMAND AS command, p.TIME_MS / 1000 AS command_seconds, p.INFO AS query,
       CONCAT('KILL ', b.connection_id) AS kill_statement
  FROM behind b LEFT JOIN information_schema.PROCESSLIST p ON p.ID = b.connection_id
  WHERE b.connection_id IS NOT NULL AND b.connection_id NOT IN (SELECT waiting_connection FROM teak.waits)
  GROUP BY b.connection_id ORDER BY waiting DESC;

-- The last deadlocks, the newest first: what each of their transactions waited for.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW teak.deadlocks AS
SELECT DEADLOCK_ID AS deadlock_id, OCCURRED AS occurred, CONNECTION_ID AS connection_id, USER AS user, HOST AS host, QUERY AS query,
       CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) AS locked_table, INDEX_NAME AS locked_index, LOCK_MODE AS lock_mode, LOCK_KEY AS lock_key,
       WAITS_FOR_TRX_ID AS waits_for_trx_id, TRX_ID AS trx_id, VICTIM AS victim, REASON AS reason
  FROM information_schema.TEAK_DEADLOCKS ORDER BY DEADLOCK_ID DESC;
