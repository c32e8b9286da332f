-- Statements and transactions whose index entries, in no order, are many times what the cache holds: rows and indexes agree all the way.
SET @cache = @@global.teak_cache_size;
SET GLOBAL teak_cache_size = 8 << 20;
CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT, KEY (v), KEY (w, v));
INSERT INTO t SELECT seq, seq * 7919 % 30011, seq % 1000 FROM seq_1_to_30000;
SELECT COUNT(*), SUM(id), SUM(v), SUM(w) FROM t;
SELECT COUNT(*), SUM(id), SUM(v) FROM t FORCE INDEX (v) WHERE v >= 0;
SELECT COUNT(*), SUM(id), SUM(v), SUM(w) FROM t FORCE INDEX (w) WHERE w >= 0;
-- Its own reads, undone statements and savepoints within one transaction.
BEGIN;
UPDATE t SET v = v + 1, w = 999 - w;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (v) WHERE v >= 0;
SELECT id, v FROM t FORCE INDEX (v) WHERE v BETWEEN 500 AND 505 ORDER BY v;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (w) WHERE w = 17;
SAVEPOINT s;
DELETE FROM t WHERE id % 2 = 0;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (v) WHERE v >= 0;
INSERT INTO t SELECT IF(id = 29999, 1, id + 100000), v, w FROM t FORCE INDEX (v) WHERE id % 2 = 1 AND v >= 0 ORDER BY v;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (v) WHERE v >= 0;
INSERT INTO t SELECT id + 100000, v, w FROM t;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (w) WHERE w >= 0;
ROLLBACK TO SAVEPOINT s;
SELECT COUNT(*), SUM(v) FROM t FORCE INDEX (v) WHERE v >= 0;
SELECT COUNT(*), SUM(v), SUM(w) FROM t FORCE INDEX (w) WHERE w >= 0;
ROLLBACK;
SELECT COUNT(*), SUM(id), SUM(v) FROM t FORCE INDEX (v) WHERE v >= 0;
SELECT COUNT(*), SUM(id), SUM(w) FROM t FORCE INDEX (w) WHERE w >= 0;
-- The index that is changed is the way to the rows.
UPDATE t FORCE INDEX (v) SET v = v + 100 WHERE v >= 0;
SELECT COUNT(*), SUM(v), MIN(v), MAX(v) FROM t FORCE INDEX (v) WHERE v >= 0;
-- Rows that are there already.
INSERT INTO t SELECT id + 20000, v, w FROM t ORDER BY w, id ON DUPLICATE KEY UPDATE v = VALUES(v), w = t.w + 1;
SELECT COUNT(*), SUM(v), SUM(w) FROM t FORCE INDEX (w) WHERE w >= 0;
REPLACE INTO t SELECT id + 5000, 60000 - v, w FROM t ORDER BY v;
SELECT COUNT(*), SUM(v), SUM(w) FROM t FORCE INDEX (v) WHERE v > -100000;
INSERT IGNORE INTO t SELECT id + 10000, v, w FROM t ORDER BY v DESC;
SELECT COUNT(*), SUM(v), SUM(w) FROM t FORCE INDEX (v) WHERE v > -100000;
DELETE FROM t WHERE v % 3 = 0;
SELECT COUNT(*), SUM(v), SUM(w) FROM t FORCE INDEX (v) WHERE v > -100000;
SELECT COUNT(*), SUM(v), SUM(w) FROM t FORCE INDEX (w) WHERE w >= 0;
SELECT COUNT(*), SUM(v), SUM(w) FROM t;
CHECK TABLE t;
SET GLOBAL teak_cache_size = @cache;
