#!/usr/bin/env python3
"""Row events that do not have all columns, and those for a replica that has more columns than its primary: what the replica does to its indexes over virtual
columns is what it does to the rows. Prints 'N passed, N failed'.
"""

from kit.asking import rows
from kit.replicas import PRIMARY_OPTIONS, REPLICA_OPTIONS, catch_up, main

# Columns and what is behind them.
TABLES = {
    "one": "id INT PRIMARY KEY, x INT, w INT DEFAULT 1, z INT AS (x + 1) VIRTUAL, KEY (z))",
    "uniq": "id INT PRIMARY KEY, x INT, w INT DEFAULT 1, z INT AS (x + w - 1) VIRTUAL, UNIQUE (z))",
    "texts": "id INT PRIMARY KEY, x INT, w TEXT, z TEXT AS (CONCAT(w, '-', x)) VIRTUAL, KEY (z(20), x), KEY (w(5)))",
    "stored": "id INT PRIMARY KEY, x INT, w INT DEFAULT 1, s INT AS (x * 2) STORED, z INT AS (s + w) VIRTUAL, KEY (z), KEY (s))",
    "parts": "id INT PRIMARY KEY, x INT, w INT DEFAULT 1, z INT AS (x + w) VIRTUAL, KEY (z)) PARTITION BY HASH (id) PARTITIONS 3",
    "moves": "id INT, x INT, w INT DEFAULT 1, z INT AS (x + w) VIRTUAL, PRIMARY KEY (id, w), KEY (z)) PARTITION BY HASH (w) PARTITIONS 3",
    "nokey": "id INT, x INT, w INT DEFAULT 1, z INT AS (x + w) VIRTUAL, KEY (z))",
}
CHANGES = (
    "INSERT INTO {t} (id, x) VALUES (1, 1), (2, 2), (3, 3), (8, 8), (9, 9), (10, 10)",
    "UPDATE {t} SET w = 5 WHERE id > 0 ORDER BY id DESC",
    "DELETE FROM {t} WHERE id = 8",
    "INSERT INTO {t} (id, x) VALUES (8, 8)",
    "REPLACE INTO {t} (id, x, w) VALUES (9, 29, 1), (11, 11, 1)",
    "INSERT INTO {t} (id, x, w) VALUES (10, 40, 5) ON DUPLICATE KEY UPDATE x = VALUES (x), id = id + 100",
    "UPDATE {t} SET x = x + 50 WHERE id IN (1, 2)",
    "UPDATE {t} SET id = id + 1000 WHERE id = 3",
    "DELETE a FROM {t} a JOIN {t} b ON b.id = a.id WHERE a.id = 2",
    "DELETE FROM {t} WHERE id = 1 RETURNING id",
)


def soundness(control, name):
    """What CHECK TABLE says, and whether rows are found by the index what they are found by the table."""
    status = rows(control, f"CHECK TABLE {name} EXTENDED")[-1][3]
    if status != "OK":
        return status, False
    by_index = rows(control, f"SELECT id, x, z FROM {name} FORCE INDEX (z) WHERE z > '' ORDER BY id, w")
    by_table = rows(control, f"SELECT id, x, z FROM {name} IGNORE INDEX (z) WHERE z > '' ORDER BY id, w")
    return status, by_index == by_table


def cases(pair):
    """Each image of the old row, then with a column and an index of the replica's own."""
    writer, control = pair.primary.connect(autocommit=True), pair.replica.connect(autocommit=True)
    rows(control, "SET sql_log_bin = 0")
    for image in ("MINIMAL", "NOBLOB", "FULL"):
        for own in (False, True):
            rows(writer, f"SET binlog_format = 'ROW', binlog_row_image = '{image}', sql_mode = ''")
            for name, columns in TABLES.items():
                rows(writer, f"CREATE TABLE {name} ({columns}")
            catch_up(writer, control)
            # Without a key the server compares whole records, and finds none that has more columns than the event.
            tables = [name for name in TABLES if not own or name != "nokey"]
            for name in tables if own else ():
                rows(control, f"ALTER TABLE {name} ADD COLUMN q INT AS (x * 3) VIRTUAL, ADD KEY (q)")
            for name in tables:
                for change in CHANGES:
                    rows(writer, change.format(t=name))
            catch_up(writer, control)
            for name in tables:
                same = rows(writer, f"SELECT id, x, w, z FROM {name} ORDER BY id, w") == rows(control, f"SELECT id, x, w, z FROM {name} ORDER BY id, w")
                found = soundness(control, name)
                good = same and found == ("OK", True)
                print(f"{image}, {name}{', a column of its own' if own else ''}: the same rows {same}, {found}", flush=True)
                yield good
            rows(writer, f"DROP TABLE {', '.join(TABLES)}")
            catch_up(writer, control)


if __name__ == "__main__":
    main("row_images", __doc__, cases, lambda _: (PRIMARY_OPTIONS, REPLICA_OPTIONS))
