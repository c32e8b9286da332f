"""What the tests load: a database with every kind of object, and dumps as other programs write them."""

import random

OBJECTS = """
CREATE TABLE parent (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) CHARACTER SET utf8mb4, UNIQUE KEY (name)) ENGINE=%(engine)s;
CREATE TABLE child (id INT PRIMARY KEY, parent INT, note TEXT, KEY of_parent (parent), KEY (note(10), parent)%(foreign)s) ENGINE=%(engine)s;
CREATE TABLE bytes (id INT PRIMARY KEY, short VARBINARY(300), `long` LONGBLOB, bits BIT(17), KEY (short)) ENGINE=%(engine)s;
CREATE TABLE computed (a INT, b INT AS (a * 2) VIRTUAL, c VARCHAR(20) AS (CONCAT('<', a, '>')) STORED, KEY (c), KEY (a)) ENGINE=%(engine)s;
CREATE TABLE sorts (id INT AUTO_INCREMENT PRIMARY KEY, l VARCHAR(50) CHARACTER SET latin1, s VARCHAR(50) CHARACTER SET sjis,
    u VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, KEY (l), KEY (u)) ENGINE=%(engine)s;
CREATE TABLE `odd ``name;` (`a;'"` INT PRIMARY KEY COMMENT 'x''; -- y', `select` ENUM('a','b\\\\','c;') DEFAULT 'c;', KEY `k;` (`select`)) ENGINE=%(engine)s;
CREATE TABLE no_key (v DOUBLE, d DATETIME(6), n DECIMAL(30,10), j JSON) ENGINE=%(engine)s;
CREATE TABLE parts (id INT, y INT, PRIMARY KEY (id, y), KEY (y)) ENGINE=%(engine)s PARTITION BY RANGE (y) (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN MAXVALUE);
CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT, filler VARCHAR(60), KEY (v), KEY (filler)) ENGINE=%(engine)s;
CREATE TABLE empty (a INT) ENGINE=%(engine)s;
"""

# After the rows: what must not act while they are loaded.
AFTER = [
    "CREATE TRIGGER child_note BEFORE INSERT ON child FOR EACH ROW BEGIN SET NEW.note = CONCAT(NEW.note, '; changed'); END",
    "CREATE TRIGGER parent_log AFTER INSERT ON parent FOR EACH ROW INSERT INTO empty VALUES (NEW.id)",
    "CREATE VIEW a_view AS SELECT p.name, z.sum FROM parent p JOIN z_view z ON z.parent = p.id",
    "CREATE PROCEDURE a_procedure(x INT) BEGIN DECLARE y INT DEFAULT 1; /* ; */ SELECT x + y; SELECT LAST_INSERT_ID(); END",
    "CREATE FUNCTION a_function(x INT) RETURNS VARCHAR(20) DETERMINISTIC RETURN CONCAT('a;b', x)",
    "CREATE EVENT an_event ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01 00:00:00' DO DELETE FROM empty",
]


def fill(connection, engine, rows, seed):
    """Makes the objects in the present database and fills the tables."""
    chance = random.Random(seed)
    # A table with a foreign key, where the engine has them.
    foreign = ", FOREIGN KEY (parent) REFERENCES parent (id)" if engine in ("InnoDB", "Teak") else ""
    with connection.cursor() as cursor:
        for statement in (OBJECTS % {"engine": engine, "foreign": foreign}).split(";\n"):
            if statement.strip():
                cursor.execute(statement)
        cursor.executemany("INSERT INTO parent VALUES (%s, %s)", [(i + 1, f"näme {i} '\\;") for i in range(rows)])
        notes = ["", "'", "\\", "\\'", "a;b", "-- x", "/* x", "*/", "#", "\n;\n", "`", '"', "\0", "\x1a", "%", "x" * 3000]
        cursor.executemany("INSERT INTO child VALUES (%s, %s, %s)", [
            (i, chance.randrange(rows) + 1, None if i % 17 == 0 else "".join(chance.choice(notes) for _ in range(3))) for i in range(rows)])
        cursor.executemany("INSERT INTO bytes VALUES (%s, %s, %s, %s)", [
            (i, chance.randbytes(chance.randrange(300)), bytes(range(256)) * (i % 9), chance.randrange(1 << 17)) for i in range(rows)])
        cursor.executemany("INSERT INTO computed (a) VALUES (%s)", [(None if i % 5 == 0 else i,) for i in range(rows)])
        cursor.executemany("INSERT INTO sorts (l, s, u) VALUES (%s, %s, %s)", [
            ("é'\\ÿ", "表ソ\\'能", "💧;'" + str(i)) for i in range(rows)])
        cursor.executemany("INSERT INTO `odd ``name;` VALUES (%s, %s)", [(i, "b\\" if i % 2 else "c;") for i in range(rows)])
        cursor.executemany("INSERT INTO no_key VALUES (%s, %s, %s, %s)", [
            (chance.random() * 10 ** chance.randrange(-300, 300), f"2024-01-{i % 28 + 1:02} 01:02:03.{i % 1000000:06}", f"-{i}.0000000001", '{"a": "\\\\\\";"}')
            for i in range(rows)])
        cursor.executemany("INSERT INTO parts VALUES (%s, %s)", [(i, i % 200) for i in range(rows)])
        cursor.executemany("INSERT INTO counted VALUES (%s, %s, %s)", [(i * 3 + 1, i % 7, "x" * (i % 60)) for i in range(rows)])
        connection.commit()
        cursor.execute("CREATE VIEW z_view AS SELECT parent, COUNT(*) AS sum FROM child GROUP BY parent")
        for statement in AFTER:
            cursor.execute(statement)


# A type of each kind, and two values of it that a careless comparison takes for the same.
TYPES = [
    ("TINYINT", "1", "-1"), ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551614"), ("INT(6) ZEROFILL", "7", "8"),
    ("DECIMAL(30,10)", "0.0000000001", "0.0000000002"), ("FLOAT", "1.0000001", "1.0000002"), ("DOUBLE", "0.1", "0.10000000000000002"),
    ("DOUBLE(10,3)", "1.001", "1.002"), ("BIT(17)", "b'1'", "b'10000000000000001'"), ("YEAR", "1999", "2000"), ("DATE", "'0000-00-00'", "'2024-02-29'"),
    ("TIME(6)", "'-838:59:58.000001'", "'-838:59:58.000002'"), ("DATETIME(6)", "'2024-01-01 00:00:00.000001'", "'2024-01-01 00:00:00.000002'"),
    ("TIMESTAMP NULL", "FROM_UNIXTIME(1729990800)", "FROM_UNIXTIME(1729994400)"), ("TIMESTAMP(3) NULL DEFAULT current_timestamp(3)", "'2024-01-01 00:00:00.001'", "'0000-00-00 00:00:00'"),
    ("CHAR(5)", "'a'", "'A'"), ("VARCHAR(20) CHARACTER SET utf8mb4", "'a'", "'a '"), ("VARCHAR(20) CHARACTER SET latin1", "'é'", "'e'"), ("VARCHAR(9) CHARACTER SET sjis", "'表'", "'ソ'"),
    ("BINARY(4)", "x'0000'", "x'000020'"), ("VARBINARY(20)", "x'00'", "x'0000'"), ("TINYTEXT", "'a|b'", "'a|B'"), ("LONGTEXT CHARACTER SET ucs2", "'x'", "'X'"),
    ("LONGBLOB", "REPEAT('x', 200000)", "CONCAT(REPEAT('x', 199999), 'y')"), ("ENUM('a', '', 'b') CHARACTER SET utf8mb4", "''", "'wrong'"), ("SET('a', 'b', 'ü')", "'a,b'", "'a'"),
    ("JSON", "'{\"a\": 1}'", "'{\"a\":1}'"), ("POINT", "ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(1 2.0000000000000004)')"), ("INET6", "'::1'", "'::2'"), ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", "'123e4567-e89b-12d3-a456-426655440001'"),
]

# As phpMyAdmin writes: no DISABLE KEYS, keys and AUTO_INCREMENT added at the end, the transaction around all.
PHPMYADMIN = """-- phpMyAdmin SQL Dump
-- version 5.2.1
SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";
START TRANSACTION;
SET time_zone = "+00:00";

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;

-- --------------------------------------------------------
CREATE TABLE `wp` (
  `id` int(11) NOT NULL,
  `title` varchar(80) DEFAULT NULL,
  `place` point DEFAULT NULL,
  `ts` timestamp NOT NULL DEFAULT current_timestamp()
) ENGINE=%(engine)s DEFAULT CHARSET=utf8mb4;

%(rows)s

DELIMITER $$
CREATE TRIGGER `wp_guard` BEFORE DELETE ON `wp` FOR EACH ROW BEGIN
  IF OLD.id = 1 THEN SIGNAL SQLSTATE '45000'; END IF;
END
$$
DELIMITER ;

ALTER TABLE `wp`
  ADD PRIMARY KEY (`id`),
  ADD KEY `title` (`title`);
ALTER TABLE `wp`
  MODIFY `id` int(11) NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=5001;
COMMIT;

/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
"""


def phpmyadmin(engine):
    """A dump of 5000 rows."""
    def row(i):
        return f"({i}, 'It''s \\\\ {i};', ST_GeomFromText('POINT({i} 2)'), '2024-01-01 00:00:00')"
    rows = (f"INSERT INTO `wp` (`id`, `title`, `place`, `ts`) VALUES\n{row(i)},\n{row(i + 1)};" for i in range(1, 5000, 2))
    return PHPMYADMIN % {"engine": engine, "rows": "\n".join(rows)}


# Where the order of statements shows in the result.
ORDER = """
CREATE TABLE gen (id INT AUTO_INCREMENT PRIMARY KEY, v INT, KEY (v)) ENGINE=%(engine)s;
CREATE TABLE twice (id INT PRIMARY KEY, v INT, UNIQUE KEY (v)) ENGINE=%(engine)s;
CREATE TABLE ign (id INT PRIMARY KEY, v INT) ENGINE=%(engine)s;
CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, of INT) ENGINE=%(engine)s;
CREATE TABLE watched (id INT PRIMARY KEY) ENGINE=%(engine)s;
CREATE TABLE warned (id INT PRIMARY KEY, v TINYINT NOT NULL, s VARCHAR(3)) ENGINE=%(engine)s;
DELIMITER //
CREATE TRIGGER watch AFTER INSERT ON watched FOR EACH ROW BEGIN INSERT INTO log (of) VALUES (NEW.id); END //
DELIMITER ;
SET @total = 0;
SET sql_mode = '';
"""


def order(engine, seed):
    """A dump that only loads right if what must wait waits."""
    chance = random.Random(seed)
    lines, zero = [ORDER % {"engine": engine}], ["0", "NULL", "DEFAULT"]
    for i in range(500):
        lines.append(f"INSERT INTO gen (v) VALUES ({i});")
        lines.append(f"INSERT INTO gen VALUES ({chance.choice([*zero, str(100_000 + 1000 * i)])}, {i});")
        lines.append(f"REPLACE INTO twice VALUES ({chance.randrange(300)}, {chance.randrange(300)});")
        lines.append(f"INSERT IGNORE INTO ign VALUES ({chance.randrange(300)}, {i});")
        lines.append(f"INSERT INTO watched VALUES ({i * 7919 % 1501});")
        lines.append(f"INSERT INTO warned VALUES ({i}, {chance.choice(['1', '1000', chr(39) + 'x' + chr(39), '5'])}, 'abc{'d' * chance.randrange(2)}');")
        if i % 100 == 50:
            lines.append("INSERT INTO log (of) SELECT -COUNT(*) FROM gen;")
            lines.append(f"SET @total = @total + {i};")
            lines.append("INSERT INTO log (of) VALUES (@total);")
            lines.append(f"INSERT INTO twice VALUES (1, 1) ON DUPLICATE KEY UPDATE v = {100_000 + i};")
            lines.append("UPDATE ign SET v = v + 1;")
            # Then 0 is a number like any other, and could be there only once; DEFAULT means it.
            zero = ["NULL"] if i % 200 == 50 else ["0", "NULL", "DEFAULT"]
            lines.append(f"SET sql_mode = '{'NO_AUTO_VALUE_ON_ZERO' if i % 200 == 50 else ''}';")
    return "\n".join(lines) + "\n"
