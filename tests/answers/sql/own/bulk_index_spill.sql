-- Index entries in no order, many times what the cache holds: what goes through the spill file is bounded by what the statement writes.
-- (Not on a debug server: its assertions look up each entry that goes, which reads what is spilled.)
SET @cache = @@global.teak_cache_size;
SET GLOBAL teak_cache_size = 8 << 20;
CREATE TABLE spill (step VARCHAR(20) PRIMARY KEY, written BIGINT, was_read BIGINT) ENGINE=MyISAM;
DELIMITER |
CREATE PROCEDURE note(name VARCHAR(20)) BEGIN
  REPLACE INTO spill SELECT name, MAX(IF(variable_name LIKE '%WRITTEN', variable_value + 0, 0)), MAX(IF(variable_name LIKE '%READ', variable_value + 0, 0))
    FROM information_schema.global_status WHERE variable_name LIKE 'Teak_spill_bytes%';
END|
CREATE PROCEDURE bound(before_it VARCHAR(20), after_it VARCHAR(20), megabytes INT)
  SELECT after_it, b.written > a.written AS spilled, b.written - a.written < megabytes << 20 AS written_within, b.was_read - a.was_read < megabytes << 20 AS read_within
    FROM spill a, spill b WHERE a.step = before_it AND b.step = after_it|
DELIMITER ;
CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT, KEY (v), KEY (w)) ENGINE=Teak;
CALL note('start');
-- 5 MB of rows and 4 MB of entries.
INSERT INTO t SELECT seq, seq * 7919 % 1000003, seq % 1000 FROM seq_1_to_200000;
CALL note('insert');
CALL bound('start', 'insert', 27);
BEGIN;
UPDATE t SET v = v + 1, w = w + 1;
ROLLBACK;
CALL note('update');
CALL bound('insert', 'update', 100);
DELETE FROM t WHERE id % 2 = 0;
CALL note('delete');
CALL bound('update', 'delete', 40);
SELECT COUNT(*), SUM(id), SUM(v) FROM t FORCE INDEX (v) WHERE v >= 0;
SELECT COUNT(*), SUM(id), SUM(w) FROM t FORCE INDEX (w) WHERE w >= 0;
SET GLOBAL teak_cache_size = @cache;
