-- Indexes added to, and enabled on, tables of many blocks: what each index says is what the rows say.
CREATE TABLE t (
  id INT NOT NULL, tag VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL, name VARCHAR(60) COLLATE utf8mb4_unicode_ci,
  body TEXT, fixed CHAR(10) CHARACTER SET latin1, at DATETIME(3), amount DECIMAL(12,3), ratio DOUBLE, raw VARBINARY(30),
  PRIMARY KEY (tag, id)
) DEFAULT CHARSET=utf8mb4;
INSERT INTO t
SELECT seq, CONCAT(IF(seq % 3, 'Tag', 'täG'), seq % 17), IF(seq % 7, CONCAT('Nämé ', seq * 7919 % 10007), NULL), IF(seq % 5, REPEAT(CONCAT('body ', seq, ' '), seq % 40), NULL),
  CONCAT('F', seq % 1000), IF(seq % 11, '2020-01-01' + INTERVAL seq * 104729 % 100000 SECOND, NULL), seq * 31 % 5003 / 8 - 300, IF(seq % 13, -seq / 7, NULL), UNHEX(SHA1(seq))
FROM seq_1_to_30000;
ALTER TABLE t ADD KEY k_name (name), ADD KEY k_body (body(12), fixed), ADD KEY k_at (at, tag), ADD KEY k_amount (amount, ratio), ADD UNIQUE KEY k_raw (raw), ADD UNIQUE KEY k_id (id), ADD KEY k_fixed (fixed DESC, id);
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag, HEX(name), MD5(body), fixed, at, amount, ratio, HEX(raw)))) FROM t FORCE INDEX (PRIMARY);
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag, HEX(name), MD5(body), fixed, at, amount, ratio, HEX(raw)))) FROM t FORCE INDEX (k_name) WHERE name > '' OR name IS NULL;
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag, HEX(name)))) FROM t FORCE INDEX (k_name) WHERE name > '' OR name IS NULL;
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag, MD5(body), fixed))) FROM t FORCE INDEX (k_body) WHERE body >= '' OR body IS NULL;
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag, at))) FROM t FORCE INDEX (k_at) WHERE at > 0 OR at IS NULL;
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag, amount, ratio))) FROM t FORCE INDEX (k_amount) WHERE amount > -1000000;
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag, HEX(raw)))) FROM t FORCE INDEX (k_raw) WHERE raw >= '';
SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, tag))) FROM t FORCE INDEX (k_id) WHERE id > 0;
SELECT id, fixed FROM t FORCE INDEX (k_fixed) ORDER BY fixed DESC, id LIMIT 5;
CHECK TABLE t;
-- A duplicate far from its twin.
UPDATE t SET amount = 999999.125, fixed = 'same', tag = 'Tag1' WHERE id IN (17, 29987);
ALTER TABLE t ADD UNIQUE KEY k_twice (amount, fixed, tag);
SHOW CREATE TABLE t;
-- No declared key; columns that the server computes, and that no thread but the session's can.
CREATE TABLE v (a INT, b VARCHAR(30), c INT AS (a % 100) VIRTUAL, d VARCHAR(40) AS (CONCAT(b, '!')) PERSISTENT, e BLOB);
INSERT INTO v (a, b, e) SELECT seq * 7919 % 30011, CONCAT('b', seq % 321), REPEAT(CHAR(seq % 200), seq % 50) FROM seq_1_to_20000;
ALTER TABLE v ADD KEY k_c (c, a), ADD KEY k_d (d), ADD KEY k_e (e(5));
SELECT COUNT(*), SUM(c), SUM(a) FROM v FORCE INDEX (k_c) WHERE c >= 0;
SELECT COUNT(*), SUM(CRC32(d)) FROM v FORCE INDEX (k_d) WHERE d > '';
SELECT COUNT(*), SUM(CRC32(e)) FROM v FORCE INDEX (k_e) WHERE e >= '';
CREATE TABLE h (a INT, b VARCHAR(30), KEY k_b (b), KEY k_a (a));
-- InnoDB notes that it has no such option.
SET sql_notes = 0;
ALTER TABLE h DISABLE KEYS;
INSERT INTO h SELECT a, b FROM v;
ALTER TABLE h ENABLE KEYS;
SET sql_notes = 1;
SELECT COUNT(*), SUM(a) FROM h FORCE INDEX (k_a) WHERE a >= 0;
SELECT COUNT(*), SUM(CRC32(b)) FROM h FORCE INDEX (k_b) WHERE b > '';
-- A copy that has its own rows only.
ALTER TABLE h MODIFY a BIGINT NOT NULL, ADD KEY k_ab (a, b);
SELECT COUNT(*), SUM(a) FROM h FORCE INDEX (k_ab) WHERE a >= 0;
CHECK TABLE v, h;
DROP TABLE t, v, h;
