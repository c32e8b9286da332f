"""What is converted."""

EVERYTHING = (
    "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(20) CHARACTER SET utf8mb4 NOT NULL UNIQUE COMMENT 'a, (b) ''c''', name VARCHAR(100)) "
    "ENGINE=InnoDB AUTO_INCREMENT=500",
    # The server names the key of the first constraint after the column, and would name it anew.
    "CREATE TABLE child (id INT PRIMARY KEY, parent_code VARCHAR(20) CHARACTER SET utf8mb4, parent_id INT, self INT, "
    "doubled INT AS (id * 2) VIRTUAL, stored INT AS (id + 1) STORED, KEY (doubled), FOREIGN KEY (parent_code) REFERENCES parent(code), "
    "CONSTRAINT `by id` FOREIGN KEY (parent_id) REFERENCES parent(id) ON DELETE SET NULL ON UPDATE CASCADE, "
    "CONSTRAINT myself FOREIGN KEY (self) REFERENCES child(id) ON DELETE CASCADE) ENGINE=InnoDB",
    "CREATE TABLE far.grandchild (id INT PRIMARY KEY, child INT NOT NULL, CONSTRAINT up FOREIGN KEY (child) REFERENCES shop.child(id)) ENGINE=InnoDB COMMENT='ENGINE=x'",
    "CREATE TABLE ring_a (id INT PRIMARY KEY, b INT) ENGINE=InnoDB",
    "CREATE TABLE ring_b (id INT PRIMARY KEY, a INT, CONSTRAINT b_to_a FOREIGN KEY (a) REFERENCES ring_a(id)) ENGINE=InnoDB",
    "ALTER TABLE ring_a ADD CONSTRAINT a_to_b FOREIGN KEY (b) REFERENCES ring_b(id)",
    "CREATE TABLE parts (id INT PRIMARY KEY, v INT AS (id * 2) VIRTUAL, KEY (v)) ENGINE=InnoDB PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE packed (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
    "CREATE TABLE holes (id INT PRIMARY KEY, d DATE, CHECK (id < 10)) ENGINE=InnoDB PAGE_COMPRESSED=1",
    "CREATE TABLE audit (what VARCHAR(100)) ENGINE=InnoDB",
    "CREATE TABLE `odd ``name` (`a,b` INT, `key` VARCHAR(10) DEFAULT 'KEY `x`', KEY `k (1)` (`a,b`, `key`(3))) ENGINE=InnoDB",
    "CREATE SEQUENCE numbers ENGINE=InnoDB",
    "CREATE TRIGGER note AFTER INSERT ON parent FOR EACH ROW INSERT INTO audit VALUES (CONCAT('parent ', NEW.id))",
    "CREATE VIEW both_of_them AS SELECT p.name, c.id FROM parent p JOIN child c ON c.parent_id = p.id",
    "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "INSERT INTO parent VALUES (0, 'zero', NULL)",
    "DELETE FROM audit",
    "INSERT INTO audit VALUES ('x')",
    "CREATE OR REPLACE TRIGGER note AFTER INSERT ON parent FOR EACH ROW INSERT INTO audit SELECT CONCAT('parent ', NEW.id) FROM dual WHERE NEW.code = 'new'",
    "INSERT INTO parent VALUES (1, 'one', 'x'), (2, 'two', 'ä€😀'), (3, 'three', '')",
    "INSERT INTO child(id, parent_code, parent_id, self) VALUES (1, 'one', 1, 1), (2, 'two', 2, 1), (3, NULL, NULL, NULL)",
    "INSERT INTO far.grandchild VALUES (1, 1), (2, 2)",
    "INSERT INTO ring_a VALUES (1, NULL)",
    "INSERT INTO ring_b VALUES (1, 1)",
    "UPDATE ring_a SET b = 1",
    "INSERT INTO parts(id) VALUES (1), (2), (3)",
    "INSERT INTO packed VALUES (1, REPEAT('abc', 100000)), (2, NULL)",
    # A date that a strict mode does not take, and a row that its CHECK does not.
    "SET check_constraint_checks = 0",
    "INSERT INTO holes VALUES (1, '0000-00-00'), (2, '2020-00-01'), (30, NULL)",
    "INSERT INTO `odd ``name` VALUES (1, 'x'), (NULL, NULL)",
)

# More to copy, for who stops in the middle.
ROWS = (
    "INSERT INTO child(id, parent_id) SELECT seq, seq % 3 + 1 FROM seq_10_to_6000",
    "INSERT INTO far.grandchild SELECT seq, seq FROM seq_10_to_6000",
)

OTHER_ENGINES = (
    "CREATE TABLE fixed (a INT, b CHAR(20), KEY (b)) ENGINE=MyISAM ROW_FORMAT=FIXED",
    "CREATE TABLE loose (a INT AUTO_INCREMENT PRIMARY KEY, b TEXT) ENGINE=MyISAM AUTO_INCREMENT=77",
    "CREATE TABLE history (a INT PRIMARY KEY, b INT) ENGINE=Aria WITH SYSTEM VERSIONING",
    "CREATE TABLE quick (a INT, b VARCHAR(20), KEY (b) USING HASH) ENGINE=MEMORY",
    "INSERT INTO fixed VALUES (1, 'x'), (2, NULL)",
    "INSERT INTO loose(b) VALUES ('y'), (NULL)",
    "INSERT INTO history VALUES (1, 1), (2, 2)",
    "UPDATE history SET b = b + 1",
    "DELETE FROM history WHERE a = 2",
    "INSERT INTO quick VALUES (1, 'z'), (NULL, NULL)",
)

OBSTACLES = (
    "CREATE TABLE plain (a INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE words (a TEXT, FULLTEXT (a)) ENGINE=InnoDB",
    "CREATE TABLE places (p POINT NOT NULL, SPATIAL KEY (p)) ENGINE=InnoDB",
    "CREATE TABLE versions (a INT PRIMARY KEY) ENGINE=InnoDB WITH SYSTEM VERSIONING",
    "CREATE TABLE secret (a INT PRIMARY KEY) ENGINE=InnoDB ENCRYPTED=YES",
    "CREATE TABLE orphans (a INT PRIMARY KEY, p INT, CONSTRAINT lonely FOREIGN KEY (p) REFERENCES orphans(a)) ENGINE=InnoDB",
    "CREATE TABLE merged (a INT) ENGINE=MRG_MyISAM",
    "CREATE VIEW a_view AS SELECT * FROM plain",
    "SET foreign_key_checks = 0",
    "CREATE TABLE widow (a INT PRIMARY KEY, p INT, CONSTRAINT gone FOREIGN KEY (p) REFERENCES nowhere(a)) ENGINE=InnoDB",
    "CREATE TABLE other_namesake (a INT PRIMARY KEY, p INT, CONSTRAINT namesake FOREIGN KEY (p) REFERENCES other_namesake(a)) ENGINE=Teak",
    "CREATE TABLE namesake (a INT PRIMARY KEY, p INT, CONSTRAINT namesake FOREIGN KEY (p) REFERENCES namesake(a)) ENGINE=InnoDB",
    "INSERT INTO plain VALUES (0), (1)",
    "INSERT INTO orphans VALUES (1, 7), (2, 1)",
)
