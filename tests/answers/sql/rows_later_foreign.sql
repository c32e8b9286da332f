-- Rows that are written together, as in rows_later, of parents and children, and of a table that refers to itself.
CREATE TABLE p (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES p (id));
CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id));
INSERT INTO p SELECT seq * 7919 % 100003, IF(seq = 1, NULL, (seq - 1) * 7919 % 100003) FROM seq_1_to_500;
INSERT INTO p SELECT seq * 7919 % 100003, (seq + 1) * 7919 % 100003 FROM seq_501_to_900;
INSERT INTO c SELECT seq * 7919 % 100003, seq * 7919 % 100003 FROM seq_1_to_500;
INSERT INTO c SELECT seq * 7919 % 100003, seq * 7919 % 100003 FROM seq_501_to_900;
SELECT COUNT(*), SUM(id) FROM p;
SELECT COUNT(*), SUM(id) FROM c;
DROP TABLE c, p;
