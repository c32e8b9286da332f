-- Rows that a statement inserts in no order into an empty table: the result and the errors are those of rows that come one by one.
CREATE TABLE src (n INT PRIMARY KEY, k INT, b TEXT);
INSERT INTO src SELECT seq, seq * 7919 % 30011, IF(seq % 700 = 3, REPEAT(CONCAT('long ', seq), 3000), CONCAT('row ', seq, REPEAT('.', seq % 90))) FROM seq_1_to_30000;
CREATE TABLE t (k INT PRIMARY KEY, n INT, b TEXT, KEY (n), UNIQUE KEY u (n, k));
INSERT INTO t SELECT k, n, b FROM src ORDER BY n;
SELECT COUNT(*), SUM(k), SUM(n), SUM(CRC32(b)) FROM t;
SELECT COUNT(*), SUM(k) FROM t FORCE INDEX (n) WHERE n > 0;
SELECT COUNT(*), SUM(k) FROM t FORCE INDEX (u) WHERE n > 0;
SELECT k, n FROM t ORDER BY k LIMIT 5;
CHECK TABLE t;
TRUNCATE t;
-- A duplicate of the primary key, near the end, undoes the statement.
INSERT INTO t SELECT IF(n = 29990, (SELECT k FROM src s WHERE s.n = 12), k), n, b FROM src ORDER BY n;
SELECT COUNT(*) FROM t;
-- One of another key.
INSERT INTO t SELECT k, n, b FROM src ORDER BY n;
ALTER TABLE t DROP KEY u, ADD UNIQUE KEY v (n);
TRUNCATE t;
INSERT INTO t SELECT k, IF(n = 29990, 12, n), b FROM src ORDER BY n;
SELECT COUNT(*) FROM t;
-- IGNORE, REPLACE and ON DUPLICATE KEY UPDATE look at each row.
INSERT IGNORE INTO t SELECT k % 20000, n, b FROM src ORDER BY n;
SELECT COUNT(*), SUM(k), SUM(n) FROM t;
TRUNCATE t;
REPLACE INTO t SELECT k % 20000, n, b FROM src ORDER BY n;
SELECT COUNT(*), SUM(k), SUM(n) FROM t;
TRUNCATE t;
INSERT INTO t SELECT k % 20000, n, b FROM src ORDER BY src.n ON DUPLICATE KEY UPDATE b = 'twice';
SELECT COUNT(*), SUM(k), SUM(t.n), SUM(b = 'twice') FROM t;
TRUNCATE t;
-- A transaction that goes on after a failed statement, and savepoints.
BEGIN;
INSERT INTO t SELECT k, n, b FROM src WHERE n > 15000 ORDER BY n;
SAVEPOINT s;
INSERT INTO t SELECT k, n, b FROM src WHERE n > 14000 ORDER BY n;
SELECT COUNT(*), SUM(k) FROM t;
ROLLBACK TO SAVEPOINT s;
INSERT INTO t SELECT k, n, b FROM src WHERE n <= 15000 ORDER BY n;
COMMIT;
SELECT COUNT(*), SUM(k), SUM(n), SUM(CRC32(b)) FROM t;
-- In a transaction that began with a failure.
TRUNCATE t;
BEGIN;
INSERT INTO t SELECT IF(n = 29990, 7919, k), n, b FROM src ORDER BY n;
INSERT INTO t SELECT k, n, b FROM src ORDER BY n DESC;
SELECT COUNT(*), SUM(k) FROM t;
ROLLBACK;
SELECT COUNT(*) FROM t;
-- A function that reads what the statement has written so far sees it.
CREATE TABLE w (k VARCHAR(20) PRIMARY KEY, n INT);
CREATE FUNCTION rows_so_far() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM w);
INSERT INTO w SELECT CONCAT('k', k), rows_so_far() FROM src ORDER BY src.n LIMIT 300;
SELECT COUNT(*), MIN(k), MAX(k), SUM(n) FROM w;
-- Triggers.
CREATE TABLE x LIKE w;
CREATE TABLE seen (n INT);
CREATE TRIGGER x_after AFTER INSERT ON x FOR EACH ROW INSERT INTO seen SELECT COUNT(*) FROM w;
INSERT INTO x SELECT CONCAT('k', k), n FROM src ORDER BY n LIMIT 200;
SELECT COUNT(*), SUM(n) FROM seen;
-- CREATE ... SELECT, and copies with another key.
CREATE TABLE c (PRIMARY KEY (k)) SELECT k, n, b FROM src ORDER BY n;
SELECT COUNT(*), SUM(CRC32(b)) FROM c;
-- (With InnoDB the server's message names the value of a row before, so it is not shown.)
DELIMITER //
BEGIN NOT ATOMIC
  DECLARE EXIT HANDLER FOR 1062 SELECT 'duplicate';
  CREATE TABLE d (PRIMARY KEY (k)) SELECT IF(n = 29000, 7919, k) AS k, n FROM src ORDER BY n;
END//
DELIMITER ;
SHOW TABLES LIKE 'd';
ALTER TABLE src DROP PRIMARY KEY, ADD PRIMARY KEY (k), ADD KEY (n);
SELECT COUNT(*), SUM(CRC32(b)) FROM src FORCE INDEX (n) WHERE n > 0;
UPDATE src SET n = 5 WHERE n = 29000;
ALTER TABLE src DROP PRIMARY KEY, ADD PRIMARY KEY (n);
SELECT COUNT(*), SUM(k) FROM src;
INSERT INTO c VALUES (-1, 1, 'after');
SELECT COUNT(*), SUM(k) FROM c;
CHECK TABLE t, w, x, c, src;
DROP FUNCTION rows_so_far;
DROP TABLE t, w, x, c, src, seen;
