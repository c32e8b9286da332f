-- Text that is read from an index only: small letters, which the key gives back, and all others.
CREATE TABLE words (
  id INT PRIMARY KEY,
  l VARCHAR(40) CHARACTER SET latin1,
  c CHAR(12) CHARACTER SET latin1 NOT NULL,
  b VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_bin,
  u VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  p CHAR(12) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  n VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci,
  g VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_german2_ci,
  z VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_swedish_nopad_ci,
  KEY (l), KEY (c), KEY (b), KEY (u), KEY (p), KEY (n), KEY (g), KEY (z), KEY (l DESC, c, u DESC), KEY (c, l, b, u, p, n, g, z)
) CHARACTER SET latin1;
INSERT INTO words VALUES
  (1, 'plain', 'plain', 'plain', 'plain', 'plain', 'plain', 'plain', 'plain'),
  (2, 'Plain', 'Plain', 'Plain', 'Plain', 'Plain', 'Plain', 'Plain', 'Plain'),
  (3, 'UPPER', 'UPPER', 'UPPER', 'UPPER', 'UPPER', 'UPPER', 'UPPER', 'UPPER'),
  (4, '', '', '', '', '', '', '', ''),
  (5, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL),
  (6, 'end ', 'end ', 'end ', 'end ', 'end ', 'end ', 'end ', 'end '),
  (7, 'two  words', 'two  words', 'two  words', 'two  words', 'two  words', 'two  words', 'two  words', 'two  words'),
  (8, ' lead', ' lead', ' lead', ' lead', ' lead', ' lead', ' lead', ' lead'),
  (9, 'gr\xfc\xdfe', 'caf\xe9', 'gr\xfc\xdfe', _utf8mb4'grüße', _utf8mb4'café', _utf8mb4'grüße', 'gr\xfc\xdfe', 'caf\xe9'),
  (10, 'caf\xe9', 'gr\xfc\xdfe', 'caf\xe9', _utf8mb4'straße', _utf8mb4'grüße', _utf8mb4'straße', 'stra\xdfe', 'gr\xfc\xdfe'),
  (11, '17-d782874b2c9f66b9', '0123456789ab', 'd782874b', '0f96342a45b29bb4', 'd782874b2c9f', 'd782874b', 'd782874b', 'd782874b'),
  (12, 'a\0b', 'a\tb', 'a\nb', 'a\0b', 'a\tb', 'a\tb', 'a\tb', 'a\0b'),
  (13, '_`{|}~@[]^', '\\''"%', '_`{|}~@[]^', '_`{|}~@[]^', '\\''"%', '_`{|}~@[]^', '_`{|}~@[]^', '_`{|}~@[]^'),
  (14, 'a\xa0', 'a\xa0', 'a\xa0', 'a', 'a', 'a', 'a\xa0', 'a\xa0'),
  (15, 'John Smith of Cornwall', 'JOHN  SMITHY', 'John Smith', 'John Smith of CornwalL', 'JOHN  SMITHY', 'John Smith', 'John Smith', 'EightIsX  '),
  (16, 'EIGHTisX', 'eightIsX', 'EightIsX', 'eightIsX', 'EightIsX', 'EightIsX', 'EightIsX', 'EightIsX'),
  (17, 'all small', 'One', 'all small', NULL, 'x', NULL, NULL, 'all Small ');
SELECT id, HEX(l) FROM words FORCE INDEX (l) ORDER BY id;
SELECT id, HEX(c) FROM words FORCE INDEX (c) WHERE c >= '' ORDER BY id;
SELECT id, HEX(b) FROM words FORCE INDEX (b) WHERE b >= '' ORDER BY id;
SELECT id, HEX(u) FROM words FORCE INDEX (u) WHERE u >= '' ORDER BY id;
SELECT id, HEX(p) FROM words FORCE INDEX (p) WHERE p >= '' ORDER BY id;
SELECT id, HEX(n) FROM words FORCE INDEX (n) WHERE n >= '' ORDER BY id;
SELECT id, HEX(g) FROM words FORCE INDEX (g) WHERE g >= '' ORDER BY id;
SELECT id, HEX(z) FROM words FORCE INDEX (z) WHERE z >= '' ORDER BY id;
SELECT id, HEX(l), HEX(c), HEX(u) FROM words FORCE INDEX (l_2) WHERE l >= '' ORDER BY id;
SELECT id, HEX(c), HEX(l), HEX(b), HEX(u), HEX(p), HEX(n), HEX(g), HEX(z) FROM words FORCE INDEX (c_2) WHERE c >= '' ORDER BY id;
UPDATE words SET l = LOWER(l), u = UPPER(u) WHERE id < 9;
SELECT id, HEX(l), HEX(u) FROM words FORCE INDEX (l_2) WHERE l >= '' ORDER BY id;
DROP TABLE words;

-- Text in the primary key, and nine columns of it: more than there are bits.
CREATE TABLE many (
  k VARCHAR(10) PRIMARY KEY, a CHAR(3), b CHAR(3), c CHAR(3), d CHAR(3), e CHAR(3), f CHAR(3), g CHAR(3), h CHAR(3), i CHAR(3),
  KEY (a, b, c, d, e, f, g, h, i), UNIQUE KEY (i, k)
) CHARACTER SET latin1;
INSERT INTO many VALUES ('small', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'), ('Large', 'a', 'B', NULL, 'd', 'E', 'f', 'G', 'h', 'I'), ('x ', 'A', '', '', '', '', '', '', '', '');
SELECT a, b, c, d, e, f, g, h, i, CONCAT(k, '|') FROM many FORCE INDEX (a) WHERE a = 'a' ORDER BY k;
SELECT i, CONCAT(k, '|') FROM many FORCE INDEX (i) WHERE i >= '' ORDER BY k;
DROP TABLE many;

-- Every character of ASCII beside every other, in texts of all lengths up to 20, small and capital.
CREATE TABLE mixed (
  id INT PRIMARY KEY, l VARCHAR(40) CHARACTER SET latin1, c CHAR(20) CHARACTER SET latin1, u VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  KEY (l), KEY (c DESC), KEY (u, l), KEY (l, c, u)
);
INSERT INTO mixed SELECT seq, LEFT(t, seq % 21), LEFT(t, seq DIV 3 % 21), RIGHT(t, seq % 11)
  FROM (SELECT seq, CONVERT(CONCAT(CHAR(32 + seq % 95), CHAR(32 + seq DIV 95 % 95), CHAR(32 + seq * 7 % 95), CHAR(65 + seq % 58), CHAR(65 + seq DIV 58 % 58),
    CHAR(97 + seq % 26), CHAR(65 + seq % 26), ' ', CHAR(32 + seq * 31 % 95), CHAR(97 + seq DIV 7 % 26), CHAR(65 + seq * 3 % 26), 'Word', CHAR(65 + seq * 11 % 58), ' B c') USING latin1) t
    FROM seq_1_to_9025) texts;
SELECT COUNT(*), SUM(CRC32(CONCAT(id, ':', HEX(l)))) FROM mixed FORCE INDEX (l) WHERE l >= '';
SELECT COUNT(*), SUM(CRC32(CONCAT(id, ':', HEX(c)))) FROM mixed FORCE INDEX (c) WHERE c >= '';
SELECT COUNT(*), SUM(CRC32(CONCAT(id, ':', HEX(u), ':', HEX(l)))) FROM mixed FORCE INDEX (u) WHERE u >= '';
SELECT COUNT(*), SUM(CRC32(CONCAT(id, ':', HEX(l), ':', HEX(c), ':', HEX(u)))) FROM mixed FORCE INDEX (l_2) WHERE l >= '';
UPDATE mixed SET l = CONCAT(UPPER(LEFT(l, 1)), LOWER(SUBSTR(l, 2))), u = UPPER(u) WHERE id % 3 = 0;
SELECT COUNT(*), SUM(CRC32(CONCAT(id, ':', HEX(l), ':', HEX(c), ':', HEX(u)))) FROM mixed FORCE INDEX (l_2) WHERE l >= '';
SELECT COUNT(*), SUM(CRC32(CONCAT(id, ':', HEX(u), ':', HEX(l)))) FROM mixed FORCE INDEX (u) WHERE u >= '';
DROP TABLE mixed;
