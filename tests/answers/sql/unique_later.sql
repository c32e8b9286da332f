-- Statements of many rows that a duplicate ends look for unique keys when entries are written together: which key is told, and that nothing stays.
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) COLLATE utf8mb4_general_ci, b INT, c INT, UNIQUE KEY ua (a), UNIQUE KEY ub (b), KEY (c));
INSERT INTO t VALUES (1, 'one', 1, 1), (2, 'two', 2, 2), (3, NULL, NULL, 3);
-- A row that is there, with a key in other letters; of another index; two rows of the statement; of more than what is gathered at a time.
INSERT INTO t SELECT seq, IF(seq = 1900, 'TWO', CONCAT('x', seq)), seq, seq FROM seq_1000_to_2000;
INSERT INTO t SELECT seq, CONCAT('x', seq), IF(seq = 1900, 1, seq), seq FROM seq_1000_to_2000;
INSERT INTO t SELECT seq, CONCAT('x', seq), IF(seq = 1900, 1500, seq), seq FROM seq_1000_to_2000;
INSERT INTO t SELECT seq, CONCAT('x', seq), IF(seq = 91234, 5678, seq), seq FROM seq_1000_to_100000;
INSERT INTO t SELECT seq, CONCAT('x', seq), IF(seq = 91234, 2, seq), seq FROM seq_100000_to_1000;
SELECT * FROM t ORDER BY id;
-- In a transaction the statements before stay, and the keys of the one that failed are free.
BEGIN;
INSERT INTO t VALUES (4, 'four', 4, 4);
INSERT INTO t SELECT seq, CONCAT('x', seq), IF(seq = 1900, 4, seq), seq FROM seq_1000_to_2000;
INSERT INTO t SELECT seq, CONCAT('x', seq), seq, seq FROM seq_1000_to_1100;
COMMIT;
SELECT COUNT(*), SUM(b), SUM(c) FROM t;
SELECT COUNT(*), SUM(b) FROM t FORCE INDEX (ub) WHERE b > 3;
SELECT COUNT(*) FROM t FORCE INDEX (ua) WHERE a > 'a';
-- NULL is no duplicate of NULL.
INSERT INTO t SELECT seq, NULL, NULL, seq FROM seq_3000_to_3500;
SELECT COUNT(*) FROM t WHERE a IS NULL AND b IS NULL;
-- Statements that go on after a duplicate know at each row.
INSERT IGNORE INTO t SELECT seq, CONCAT('x', seq), seq, seq FROM seq_1050_to_1200;
SELECT ROW_COUNT();
REPLACE INTO t SELECT seq, CONCAT('x', seq - 5000), seq - 5000, 0 FROM seq_6000_to_6200;
SELECT COUNT(*), SUM(b), SUM(c) FROM t;
INSERT INTO t SELECT seq, CONCAT('x', seq - 6000), seq - 6000, 0 FROM seq_7000_to_7200 ON DUPLICATE KEY UPDATE c = c + 1;
SELECT COUNT(*), SUM(b), SUM(c) FROM t;
CHECK TABLE t EXTENDED;
DROP TABLE t;
-- Without a primary key.
CREATE TABLE t (a VARCHAR(20), b INT, UNIQUE KEY (a), UNIQUE KEY (b));
INSERT INTO t VALUES ('x1700', 1), (NULL, NULL);
INSERT INTO t SELECT CONCAT('x', seq), seq FROM seq_1000_to_2000;
INSERT INTO t SELECT CONCAT('y', seq), IF(seq = 1950, 1400, seq) FROM seq_2000_to_1000;
INSERT INTO t SELECT CONCAT('y', seq), seq * 7919 % 100003 + 10 FROM seq_1000_to_90000;
INSERT INTO t SELECT CONCAT('z', seq), IF(seq = 80000, 1, seq + 200000) FROM seq_1000_to_90000;
INSERT INTO t SELECT NULL, NULL FROM seq_1_to_100;
SELECT COUNT(*), COUNT(a), SUM(b) FROM t;
SELECT COUNT(*), SUM(b) FROM t FORCE INDEX (b) WHERE b > 0;
CHECK TABLE t EXTENDED;
DROP TABLE t;
