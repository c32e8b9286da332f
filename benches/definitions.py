#!/usr/bin/env python3
"""What definitions cost: changes of a large table at once, and foreign keys.

Prints the time of each ALTER TABLE ... ALGORITHM=INSTANT on a table of Teak with many rows, and the server's processor
time for rows that are inserted into a child, with its foreign key and without, in Teak and InnoDB, by turns: one row a
statement (in a procedure, in one transaction) and all in one statement; and for as many children that follow ten
parents by a rule. Medians. --rows 0 leaves the changes of a large table out.

usage: benches/definitions.py [--rows N] [--children N] [--runs N]
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time

from kit.server import Server

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


CHANGES = [
    "ADD a INT NOT NULL DEFAULT 5",
    "ADD b VARCHAR(30) DEFAULT 'bb' FIRST",
    "DROP COLUMN c",
    "MODIFY k INT NOT NULL AFTER t",
    "CHANGE v w VARCHAR(40)",
    "RENAME INDEX k TO kk",
    "ALTER a SET DEFAULT 6",
    "MODIFY a INT NULL",
    "MODIFY a BIGINT",
    "MODIFY b VARCHAR(500)",
    "MODIFY w VARCHAR(60)",
    "CONVERT TO CHARACTER SET utf8mb4",
    "ADD g INT AS (k + 1) VIRTUAL",
    "COMMENT = 'changed'",
]
PARENTS = 10_000
# What a child has besides its columns, its rule, and how the ten parents change.
GO, MOVE = "DELETE FROM ten", "UPDATE ten SET id = id + 100"
CASCADES = {
    "DELETE CASCADE": ("PRIMARY KEY (id), KEY (p)", "ON DELETE CASCADE", GO),
    "DELETE CASCADE, two more indexes": ("PRIMARY KEY (id), KEY (p), KEY (v), KEY (v, p)", "ON DELETE CASCADE", GO),
    "DELETE CASCADE, PRIMARY KEY (p, id)": ("PRIMARY KEY (p, id)", "ON DELETE CASCADE", GO),
    "DELETE SET NULL": ("PRIMARY KEY (id), KEY (p)", "ON DELETE SET NULL", GO),
    "UPDATE CASCADE": ("PRIMARY KEY (id), KEY (p)", "ON UPDATE CASCADE", MOVE),
    "UPDATE CASCADE, PRIMARY KEY (p, id)": ("PRIMARY KEY (p, id)", "ON UPDATE CASCADE", MOVE),
}
ENGINES = ("Teak", "InnoDB")


def changes(server, rows):
    """Milliseconds of each change of a table with so many rows."""
    server.query(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, v VARCHAR(40), c CHAR(20) NOT NULL DEFAULT 'c', t TEXT, KEY k (k), KEY v (v))"
        " ENGINE=Teak DEFAULT CHARSET=utf8mb3"
    )
    server.query(f"INSERT INTO t SELECT seq, seq * 7 % 1000003, CONCAT('v', seq), 'abc', 'some text' FROM seq_1_to_{rows}")
    print(f"{rows} rows, ALGORITHM=INSTANT, milliseconds:")
    for change in CHANGES:
        began = time.monotonic()
        server.query(f"ALTER TABLE t {change}, ALGORITHM=INSTANT")
        print(f"  {(time.monotonic() - began) * 1000:8.1f}  {change}", flush=True)
    server.query("DROP TABLE t")


def prepare_family(server, engine):
    server.query(f"CREATE TABLE {engine}_parent (id INT PRIMARY KEY, v INT) ENGINE={engine}")
    server.query(f"INSERT INTO {engine}_parent SELECT seq, seq FROM seq_1_to_{PARENTS}")
    for kind, key in (("with", f", FOREIGN KEY (p) REFERENCES {engine}_parent (id)"), ("without", "")):
        table = f"{engine}_{kind}"
        server.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, p INT NOT NULL, v VARCHAR(40), KEY (p){key}) ENGINE={engine}")
        server.query(
            f"CREATE PROCEDURE fill_{table}(n INT) BEGIN DECLARE i INT DEFAULT 0; START TRANSACTION; WHILE i < n DO"
            f" INSERT INTO {table} VALUES (i, 1 + i * 7919 % {PARENTS}, 'a child'); SET i = i + 1; END WHILE; COMMIT; END"
        )


def spent(server, table, statement):
    """Seconds of the server's processors for a statement that fills the table."""
    server.query(f"TRUNCATE TABLE {table}")
    began = server.cpu_seconds()
    server.query(statement)
    return server.cpu_seconds() - began


def families(server, children, runs):
    for engine in ENGINES:
        prepare_family(server, engine)
    figures = {}
    for run in range(runs + 1):
        for engine in ENGINES if run % 2 else ENGINES[::-1]:
            for kind in ("with", "without"):
                table = f"{engine}_{kind}"
                rows = f"INSERT INTO {table} SELECT seq, 1 + seq * 7919 % {PARENTS}, 'a child' FROM seq_1_to_{children}"
                for way, statement in (("a row a statement", f"CALL fill_{table}({children})"), ("in one statement", rows)):
                    seconds = spent(server, table, statement)
                    if run:  # the first is for warming up
                        figures.setdefault((way, engine, kind), []).append(seconds)
    print(f"{children} children of {PARENTS} parents, microseconds of processor time each:")
    print(f"  {'':20}{'':8}{'with key':>10}{'without':>10}{'ratio':>8}")
    for way in ("a row a statement", "in one statement"):
        for engine in ENGINES:
            with_key, without = (statistics.median(figures[way, engine, kind]) / children * 1e6 for kind in ("with", "without"))
            print(f"  {way:20}{engine:8}{with_key:10.2f}{without:10.2f}{with_key / without:8.2f}")


def cascade(server, engine, children, keys, rule, statement):
    """Seconds, and seconds of the server's processors, in which all children follow their parents."""
    server.query(f"CREATE TABLE ten (id INT PRIMARY KEY) ENGINE={engine}")
    server.query(f"CREATE TABLE follower (id INT, p INT, v INT, x CHAR(20), {keys}, FOREIGN KEY (p) REFERENCES ten (id) {rule}) ENGINE={engine}")
    server.query("INSERT INTO ten SELECT seq FROM seq_1_to_10")
    server.query(f"INSERT INTO follower SELECT seq, 1 + seq % 10, seq * 7919 % 100003, 'some text' FROM seq_1_to_{children}")
    cpu, began = server.cpu_seconds(), time.monotonic()
    server.query(statement)
    took = time.monotonic() - began, server.cpu_seconds() - cpu
    server.query("DROP TABLE follower, ten")
    return took


def cascades(server, children, runs):
    print(f"{children} children follow ten parents, seconds (of the processors):")
    for name, (keys, rule, statement) in CASCADES.items():
        figures = {engine: [] for engine in ENGINES}
        for run in range(runs):
            for engine in ENGINES if run % 2 else ENGINES[::-1]:
                figures[engine].append(cascade(server, engine, children, keys, rule, statement))
        medians = {engine: [statistics.median(column) for column in zip(*figures[engine])] for engine in ENGINES}
        print(f"  {name:36}" + "".join(f"{engine:>8} {medians[engine][0]:5.2f} ({medians[engine][1]:.2f})" for engine in ENGINES), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--children", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    home = tempfile.mkdtemp(prefix="teak-definitions-", dir=os.path.join(ROOT, "build"))
    server = Server(home, os.path.join(ROOT, "build", "plugin"))
    try:
        server.install()
        server.start(["--innodb-buffer-pool-size=512M", "--teak-cache-size=512M", "--innodb-log-file-size=256M"])
        families(server, arguments.children, arguments.runs)
        cascades(server, arguments.children, arguments.runs)
        if arguments.rows:
            changes(server, arguments.rows)
    finally:
        server.kill()
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
