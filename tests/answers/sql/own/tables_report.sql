-- information_schema.TEAK_TABLES: sizes before and after compression; a table of text gets a dictionary.
SET max_recursive_iterations = 1000000;
CREATE TABLE texts (id INT PRIMARY KEY, body TEXT, KEY (body(20))) ENGINE=Teak CHARACTER SET latin1;
CREATE TABLE `odd-name` (id INT PRIMARY KEY) ENGINE=Teak COMPRESSION=lz4;
INSERT INTO `odd-name` VALUES (1), (2);
INSERT INTO texts SELECT seq, (SELECT GROUP_CONCAT(ELT(1 + CRC32(CONCAT(texts_outer.seq, ',', inner_seq.seq)) MOD 11, 'snapshot', 'checkpoint', 'version', 'history',
  'extent', 'segment', 'dictionary', 'compression', 'transaction', 'deadlock', 'replication') ORDER BY inner_seq.seq SEPARATOR ' ') FROM seq_1_to_60 inner_seq)
  FROM seq_1_to_30000 texts_outer;
SET GLOBAL teak_checkpoint_now = 1;
SELECT table_schema, table_name, tree, entries, raw_bytes > disk_bytes AS smaller, dictionary_bytes > 0 AS dictionary, compression, compression_level
  FROM information_schema.teak_tables WHERE table_name IN ('texts', 'odd-name') ORDER BY table_name, tree;
SELECT raw_bytes BETWEEN 15e6 AND 30e6 AS raw, ABS(ratio - disk_bytes / raw_bytes) < 1e-5 AS ratio FROM information_schema.teak_tables WHERE table_name = 'texts' AND tree = 0;
SELECT COUNT(*), SUM(CRC32(body)) = (SELECT SUM(CRC32(body)) FROM texts IGNORE INDEX (body)) AS same FROM texts;
DELETE FROM texts WHERE id > 10;
ALTER TABLE texts COMPRESSION=none;
TRUNCATE TABLE texts;
SET GLOBAL teak_checkpoint_now = 1;
SELECT entries, dictionary_bytes, compression FROM information_schema.teak_tables WHERE table_name = 'texts' ORDER BY tree;
DROP TABLE texts, `odd-name`;
-- Partitions have their parts behind the table's name.
CREATE TABLE `o-p` (id INT PRIMARY KEY) ENGINE=Teak PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION `p-1` VALUES LESS THAN (5));
SELECT table_name, tree FROM information_schema.teak_tables WHERE table_schema = DATABASE() ORDER BY table_name;
DROP TABLE `o-p`;
