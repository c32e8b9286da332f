-- Statements with many rows gather the entries of non-unique indexes: whatever reads, changes or undoes them in the middle must find them.
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(30), u INT UNIQUE, KEY a (a), KEY b (b, a), KEY ab (a, b));
INSERT INTO t SELECT seq, seq * 7919 % 1000, MD5(seq), seq * 3 FROM seq_1_to_5000;
SELECT COUNT(*), SUM(id) FROM t FORCE INDEX (a) WHERE a BETWEEN 100 AND 199;
SELECT COUNT(*), MIN(b), MAX(b) FROM t FORCE INDEX (b) WHERE b > '';
-- From itself, and through the index that it fills.
INSERT INTO t SELECT id + 10000, a, b, u + 20000 FROM t FORCE INDEX (a) WHERE a < 500;
SELECT COUNT(*), SUM(id) FROM t FORCE INDEX (ab) WHERE a >= 0;
-- The index that is scanned is the one that changes.
UPDATE t FORCE INDEX (a) SET a = a + 10 WHERE a >= 900;
UPDATE t FORCE INDEX (a) SET a = a + 1 WHERE a > 100 ORDER BY a DESC;
SELECT COUNT(*), SUM(a), MAX(a) FROM t FORCE INDEX (a) WHERE a > 0;
SELECT SUM(a), SUM(CRC32(b)) FROM t FORCE INDEX (PRIMARY);
-- There and back again, in one statement and in one transaction.
START TRANSACTION;
UPDATE t SET a = -a;
UPDATE t SET a = -a;
SAVEPOINT s;
DELETE FROM t WHERE id % 3 = 0;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > 'a';
INSERT INTO t SELECT seq, seq % 10, 'again', NULL FROM seq_30001_to_30500;
ROLLBACK TO s;
UPDATE t SET b = CONCAT('x', b) WHERE id < 2000;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > 'x';
COMMIT;
SELECT COUNT(*), SUM(a) FROM t FORCE INDEX (a) WHERE a > -10000;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > 'x';
START TRANSACTION;
UPDATE t SET a = 0, b = 'gone';
DELETE FROM t;
ROLLBACK;
SELECT COUNT(*), SUM(a), SUM(CRC32(b)) FROM t FORCE INDEX (ab) WHERE a > -10000;
-- Errors in the middle.
INSERT INTO t SELECT seq, 5, 'five', NULL FROM seq_40000_to_40500 UNION ALL SELECT 40250, 5, 'five', NULL;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b = 'five';
UPDATE t SET a = 5, u = IF(id = 4000, 3, u) ORDER BY id;
SELECT COUNT(*) FROM t FORCE INDEX (a) WHERE a = 5;
INSERT IGNORE INTO t SELECT seq, 6, 'six', seq * 3 FROM seq_4500_to_5500;
UPDATE IGNORE t SET a = 7, u = u + 3 WHERE id BETWEEN 100 AND 400 ORDER BY id;
SELECT a, COUNT(*) FROM t FORCE INDEX (a) WHERE a IN (5, 6, 7) GROUP BY a;
REPLACE INTO t SELECT seq, 8, 'eight', seq * 3 + 3 FROM seq_1_to_300;
INSERT INTO t SELECT seq, 9, 'nine', NULL FROM seq_200_to_700 ON DUPLICATE KEY UPDATE a = VALUES(a), b = CONCAT(VALUES(b), t.b);
SELECT a, COUNT(*) FROM t FORCE INDEX (a) WHERE a BETWEEN 5 AND 9 GROUP BY a;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b LIKE 'nine%';
-- A trigger and a function read through the index in the middle of the statement.
CREATE TABLE seen (id INT PRIMARY KEY, n INT, KEY n (n));
CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW INSERT INTO seen VALUES (NEW.id, (SELECT COUNT(*) FROM seen FORCE INDEX (n) WHERE n >= 0));
UPDATE t SET a = a + 1 WHERE id BETWEEN 1000 AND 1200 ORDER BY id;
SELECT COUNT(*), MIN(n), MAX(n), SUM(n) FROM seen FORCE INDEX (n);
DROP TRIGGER tr;
-- Two tables in one statement.
UPDATE t JOIN seen ON t.id = seen.id SET t.a = 11, seen.n = seen.n + 1000;
SELECT COUNT(*), SUM(n) FROM seen FORCE INDEX (n) WHERE n >= 1000;
SELECT COUNT(*) FROM t FORCE INDEX (a) WHERE a = 11;
DELETE t, seen FROM t JOIN seen ON t.id = seen.id WHERE seen.n % 2 = 0;
SELECT COUNT(*) FROM seen FORCE INDEX (n) WHERE n >= 0;
SELECT COUNT(*) FROM t FORCE INDEX (a) WHERE a = 11;
DELETE FROM t WHERE a > 200;
SELECT COUNT(*), SUM(a), SUM(CRC32(b)) FROM t FORCE INDEX (ab) WHERE a > -10000;
SELECT COUNT(*), SUM(a), SUM(CRC32(b)) FROM t FORCE INDEX (PRIMARY);
DELETE FROM t;
SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > '';
CHECK TABLE t EXTENDED;
CHECK TABLE seen EXTENDED;
-- Partitions, and a key of many NULLs.
CREATE TABLE p (id INT PRIMARY KEY, a INT, KEY a (a)) PARTITION BY HASH (id) PARTITIONS 5;
INSERT INTO p SELECT seq, IF(seq % 3, NULL, seq % 50) FROM seq_1_to_2000;
UPDATE p SET a = 77 WHERE a IS NULL;
SELECT COUNT(*), SUM(id) FROM p FORCE INDEX (a) WHERE a = 77;
UPDATE p SET id = id + 5001 WHERE a = 77;
SELECT COUNT(*), SUM(id) FROM p FORCE INDEX (a) WHERE a = 77;
DROP TABLE p, t, seen;
