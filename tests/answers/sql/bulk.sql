-- Statements that insert so many rows in the order of their keys that an engine may take another way than for single rows.
CREATE TABLE bulk (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT, body VARCHAR(200), KEY (n));
INSERT INTO bulk (id, n, body) SELECT seq, seq % 97, CONCAT(MD5(seq), REPEAT('x', seq % 150)) FROM seq_1_to_20000;
SELECT COUNT(*), SUM(id), SUM(n), SUM(CRC32(body)) FROM bulk;
SELECT COUNT(*), SUM(id) FROM bulk FORCE INDEX (n) WHERE n = 5;
-- A duplicate far behind the first rows undoes the statement.
INSERT INTO bulk (id, n, body) SELECT IF(seq = 49000, 17, seq), 1, REPEAT('y', 150) FROM seq_30000_to_50000;
SELECT COUNT(*), MAX(id) FROM bulk;
-- IGNORE passes over it.
INSERT IGNORE INTO bulk (id, n, body) SELECT IF(seq % 1000 = 0, seq - 30000, seq), 2, REPEAT('z', 150) FROM seq_30000_to_50000;
SELECT COUNT(*), MAX(id), SUM(n) FROM bulk;
-- Into gaps, downwards, and in no order.
INSERT INTO bulk (id, n, body) SELECT seq, 3, REPEAT('g', 150) FROM seq_25000_to_29999;
INSERT INTO bulk (id, n, body) SELECT 24999 - seq, 4, REPEAT('d', 150) FROM seq_0_to_3999;
INSERT INTO bulk (id, n, body) SELECT 100000 + seq * 7919 % 4001, 5, REPEAT('r', 150) FROM seq_0_to_4000;
SELECT COUNT(*), MIN(id), MAX(id), SUM(id), SUM(n) FROM bulk;
-- In a transaction: own rows are seen, changed and taken back.
BEGIN;
INSERT INTO bulk (id, n, body) SELECT seq, 6, REPEAT('t', 150) FROM seq_200001_to_210000;
SELECT COUNT(*) FROM bulk WHERE id > 200000;
SAVEPOINT s;
INSERT INTO bulk (id, n, body) SELECT seq, 7, REPEAT('s', 150) FROM seq_210001_to_220000;
UPDATE bulk SET n = 8 WHERE id > 205000 AND id % 2 = 0;
DELETE FROM bulk WHERE id > 215000 AND id % 3 = 0;
SELECT n, COUNT(*), SUM(id) FROM bulk WHERE id > 200000 GROUP BY n;
ROLLBACK TO SAVEPOINT s;
SELECT n, COUNT(*), SUM(id) FROM bulk WHERE id > 200000 GROUP BY n;
INSERT INTO bulk (id, n, body) SELECT seq, 9, REPEAT('u', 150) FROM seq_210001_to_215000;
COMMIT;
SELECT n, COUNT(*), SUM(id) FROM bulk WHERE id > 200000 GROUP BY n;
BEGIN;
INSERT INTO bulk (id, n, body) SELECT seq, 10, REPEAT('v', 150) FROM seq_300001_to_310000;
ROLLBACK;
SELECT COUNT(*), MAX(id) FROM bulk;
-- From the table itself.
INSERT INTO bulk (n, body) SELECT 11, body FROM bulk WHERE id <= 5000 ORDER BY id;
SELECT COUNT(*), SUM(CRC32(body)) FROM bulk WHERE n = 11;
-- A trigger that looks at the table the rows go to, and a function that does.
CREATE TABLE counted (id INT PRIMARY KEY, seen INT, body VARCHAR(200));
CREATE TRIGGER before_counted BEFORE INSERT ON counted FOR EACH ROW SET NEW.seen = (SELECT COUNT(*) FROM counted);
INSERT INTO counted (id, body) SELECT seq, REPEAT('c', 200) FROM seq_1_to_500;
SELECT COUNT(*), SUM(seen), SUM(seen = id - 1) FROM counted;
DROP TRIGGER before_counted;
CREATE TABLE journal (id INT AUTO_INCREMENT PRIMARY KEY, of INT);
CREATE TRIGGER after_counted AFTER INSERT ON counted FOR EACH ROW INSERT INTO journal (of) VALUES (NEW.id);
INSERT INTO counted (id, body) SELECT seq, REPEAT('c', 200) FROM seq_501_to_5000;
SELECT COUNT(*), SUM(of) FROM journal;
-- REPLACE and ON DUPLICATE KEY UPDATE read what they meet.
REPLACE INTO bulk (id, n, body) SELECT seq, 12, 'replaced' FROM seq_15001_to_22000;
INSERT INTO bulk (id, n, body) SELECT seq, 13, 'new' FROM seq_14001_to_16000 ON DUPLICATE KEY UPDATE n = 14, body = CONCAT(body, '!');
SELECT n, COUNT(*), SUM(id), SUM(CRC32(body)) FROM bulk GROUP BY n;
-- Large values among small ones, and rows without a primary key.
CREATE TABLE mixed (id INT PRIMARY KEY, body MEDIUMTEXT);
INSERT INTO mixed SELECT seq, REPEAT(CHAR(65 + seq % 26), IF(seq % 100 = 7, 100000, seq % 300)) FROM seq_1_to_8000;
SELECT COUNT(*), SUM(LENGTH(body)), SUM(CRC32(body)) FROM mixed;
CREATE TABLE keyless (n INT, body VARCHAR(200));
INSERT INTO keyless SELECT seq, REPEAT('k', 150) FROM seq_1_to_10000;
SELECT COUNT(*), SUM(n) FROM keyless;
CREATE TABLE parted (id INT PRIMARY KEY, body VARCHAR(200)) PARTITION BY HASH (id) PARTITIONS 4;
INSERT INTO parted SELECT seq, REPEAT('p', 150) FROM seq_1_to_10000;
SELECT COUNT(*), SUM(id) FROM parted;
CREATE TABLE copied (PRIMARY KEY (id)) SELECT id, n, body FROM bulk ORDER BY id;
SELECT COUNT(*), SUM(id), SUM(CRC32(body)) FROM copied;
ALTER TABLE copied ADD COLUMN more INT DEFAULT 5, ALGORITHM=COPY;
SELECT COUNT(*), SUM(id), SUM(CRC32(body)), SUM(more) FROM copied;
DROP TABLE bulk, counted, journal, mixed, keyless, parted, copied;
