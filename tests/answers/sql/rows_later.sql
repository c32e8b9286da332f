-- Rows of statements of many rows that a duplicate ends are written together when their primary keys come in no order: which key is told, what
-- the same transaction sees, and that nothing stays.
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(2000), b INT, UNIQUE KEY ub (b), KEY (a(20)));
INSERT INTO t SELECT seq * 1000, 'before', seq FROM seq_1_to_50;
-- A row that is there, two of the statement, another's unique key before and behind it, of more than what is gathered at a time.
INSERT INTO t SELECT 1 + seq * 7919 % 100003, 'x', seq + 1000 FROM seq_1_to_2000;
INSERT INTO t SELECT IF(seq = 1900, 7000, 200000 + seq * 7919 % 100003), 'x', seq + 1000 FROM seq_1_to_2000;
INSERT INTO t SELECT 200000 + IF(seq = 1900, 77, seq) * 7919 % 100003, 'x', seq + 1000 FROM seq_1_to_2000;
INSERT INTO t SELECT 200000 + IF(seq = 1900, 77, seq) * 7919 % 100003, 'x', IF(seq = 1890, 7, seq + 1000) FROM seq_1_to_2000;
INSERT INTO t SELECT 200000 + IF(seq = 1890, 77, seq) * 7919 % 100003, 'x', IF(seq = 1900, 7, seq + 1000) FROM seq_1_to_2000;
INSERT INTO t SELECT 200000 + IF(seq = 1890, 77, seq) * 7919 % 100003, 'x', IF(seq = 1890, 7, seq + 1000) FROM seq_1_to_2000;
INSERT INTO t SELECT 200000 + IF(seq = 51234, 40000, seq) * 7919 % 100003, REPEAT('y', 300), seq + 1000 FROM seq_1_to_60000;
INSERT INTO t SELECT 200000 + IF(seq = 51234, 40000, seq) * 7919 % 100003, REPEAT('y', seq * 7 % 2000), seq + 1000 FROM seq_1_to_60000;
INSERT INTO t SELECT IF(seq = 51234, 40000, 200000 + seq * 7919 % 100003), REPEAT('y', 300), seq + 1000 FROM seq_1_to_60000;
SELECT COUNT(*), SUM(id), SUM(b) FROM t;
SELECT COUNT(*), SUM(b) FROM t FORCE INDEX (ub) WHERE b > 0;
SELECT COUNT(*) FROM t FORCE INDEX (a) WHERE a > 'a';
-- In a transaction the statements before stay, and the keys of the one that failed are free.
BEGIN;
INSERT INTO t VALUES (4, 'four', 100);
INSERT INTO t SELECT IF(seq = 1900, 4, 200000 + seq * 7919 % 100003), 'x', seq + 1000 FROM seq_1_to_2000;
SELECT COUNT(*), SUM(id) FROM t;
INSERT INTO t SELECT 200000 + seq * 7919 % 100003, REPEAT('z', seq * 7 % 2000), seq + 1000 FROM seq_1_to_2000;
SELECT COUNT(*), SUM(id), SUM(LENGTH(a)) FROM t;
SELECT id, b FROM t WHERE id BETWEEN 200000 AND 200200 ORDER BY id;
SAVEPOINT s;
UPDATE t SET b = -b WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
INSERT INTO t SELECT 400000 + seq * 7919 % 100003, 'q', seq + 100000 FROM seq_1_to_2000;
ROLLBACK TO s;
INSERT INTO t SELECT 400000 + seq * 7919 % 100003, 'q', seq + 100000 FROM seq_1_to_500;
COMMIT;
SELECT COUNT(*), SUM(id), SUM(b), SUM(LENGTH(a)) FROM t;
CHECK TABLE t EXTENDED;
-- Keys that the same transaction has taken out are free, and those that another statement has changed are not.
BEGIN;
DELETE FROM t WHERE id < 20000;
INSERT INTO t SELECT 1 + seq * 7919 % 100003, 'again', -seq FROM seq_1_to_100;
UPDATE t SET id = id + 1000000 WHERE id > 450000;
INSERT INTO t SELECT IF(seq = 200, 1450003, 500000 + seq * 7919 % 100003), 'w', 200000 + seq FROM seq_1_to_300;
INSERT INTO t SELECT 400000 + seq * 7919 % 100003, 'w', 200000 + seq FROM seq_501_to_800;
COMMIT;
SELECT COUNT(*), SUM(id), SUM(b) FROM t;
-- From the table itself, and of statements that go on after a duplicate.
INSERT INTO t SELECT 2000000 + id * 7919 % 100003, a, b + 1000000 FROM t WHERE id < 250000;
INSERT IGNORE INTO t SELECT 1 + seq * 7919 % 100003, 'ignored', seq + 3000000 FROM seq_1_to_300;
SELECT ROW_COUNT();
REPLACE INTO t SELECT 1 + seq * 7919 % 100003, 'replaced', seq + 4000000 FROM seq_1_to_300;
INSERT INTO t SELECT 1 + seq * 7919 % 100003, 'x', seq + 5000000 FROM seq_200_to_400 ON DUPLICATE KEY UPDATE a = CONCAT(a, '+');
SELECT COUNT(*), SUM(id), SUM(b), SUM(a LIKE '%+') FROM t;
CHECK TABLE t EXTENDED;
-- A trigger that reads, and a row's value that does not fit.
CREATE TABLE seen (n INT) ENGINE=MyISAM;
CREATE TRIGGER looks BEFORE INSERT ON t FOR EACH ROW SET NEW.a = (SELECT COUNT(*) FROM t WHERE id BETWEEN 3000000 AND 4000000);
INSERT INTO t SELECT 3000000 + seq * 7919 % 100003, '', seq + 6000000 FROM seq_1_to_100;
SELECT MIN(a + 0), MAX(a + 0), COUNT(DISTINCT a) FROM t WHERE id BETWEEN 3000000 AND 4000000;
DROP TRIGGER looks;
DROP TABLE seen;
INSERT INTO t SELECT 5000000 + seq * 7919 % 100003, 'x', IF(seq = 150, 5000000000, seq + 7000000) FROM seq_1_to_200;
SELECT COUNT(*) FROM t WHERE id > 5000000;
DROP TABLE t;
-- Text as primary key, with keys that differ in case; values that are null, generated, or given by a counter.
CREATE TABLE t (k VARCHAR(40) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT NOT NULL AUTO_INCREMENT UNIQUE, w INT, v INT AS (w * 2) VIRTUAL, UNIQUE KEY v (v));
INSERT INTO t (k, w) SELECT MD5(seq), seq FROM seq_1_to_3000;
INSERT INTO t (k, w) SELECT IF(seq = 4000, UPPER(MD5(17)), MD5(seq)), seq FROM seq_3001_to_5000;
INSERT INTO t (k, w) SELECT MD5(seq), IF(seq = 4000, 17, seq) FROM seq_3001_to_5000;
INSERT INTO t (k, w) SELECT CONCAT(MD5(seq)), NULL FROM seq_3001_to_5000;
-- The numbers that the failed statements have used up differ from InnoDB's: it learns of the duplicate earlier.
SELECT COUNT(*), COUNT(DISTINCT n), SUM(v) FROM t;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (v) WHERE v > 0;
CHECK TABLE t EXTENDED;
DROP TABLE t;
