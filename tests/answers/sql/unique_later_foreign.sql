-- Reads of the statement's own see what it has gathered.
CREATE TABLE g (id INT PRIMARY KEY, b INT, parent INT, UNIQUE KEY (b), FOREIGN KEY (parent) REFERENCES g (b));
INSERT INTO g SELECT seq, seq, IF(seq > 1, seq - 1, NULL) FROM seq_1_to_500;
INSERT INTO g SELECT seq, IF(seq = 900, 300, seq), NULL FROM seq_501_to_1000;
SELECT COUNT(*), SUM(b), SUM(parent) FROM g;
CHECK TABLE g EXTENDED;
DROP TABLE g;
