#!/usr/bin/env python3
"""What definitions cost: changes of a large table at once, and foreign keys.

Prints the time of each ALTER TABLE ... ALGORITHM=INSTANT on a table of Teak with many rows, and the server's processor
time for rows that are inserted into a child, with its foreign key and without, in Teak and InnoDB, by turns: one row a
statement (in a procedure, in one transaction) and all in one statement; and for as many children that follow one
parent, or as many of their own, by a rule. Medians. --rows 0 leaves the changes of a large table out, --only cascades
the rows of families, too; with --second another build's plugin takes part in the cascades, on a server of its own.

usage: benches/definitions.py [--rows N] [--children N] [--runs N] [--only cascades] [--second DIRECTORY]
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
# What a child has besides its columns, its rule, how the parents change, and whether each child has one of its own.
GO, MOVE = "DELETE FROM above", "UPDATE above SET id = id + 1000000"
PLAIN = "PRIMARY KEY (id), KEY (p)"
CASCADES = {
    "DELETE CASCADE": (PLAIN, "ON DELETE CASCADE", GO, False),
    "DELETE CASCADE, two more indexes": (PLAIN + ", KEY (v), KEY (v, p)", "ON DELETE CASCADE", GO, False),
    "DELETE CASCADE, PRIMARY KEY (p, id)": ("PRIMARY KEY (p, id)", "ON DELETE CASCADE", GO, False),
    "DELETE CASCADE, a child each": (PLAIN, "ON DELETE CASCADE", GO, True),
    "DELETE SET NULL": (PLAIN, "ON DELETE SET NULL", GO, False),
    "UPDATE CASCADE": (PLAIN, "ON UPDATE CASCADE", MOVE, False),
    "UPDATE CASCADE, PRIMARY KEY (p, id)": ("PRIMARY KEY (p, id)", "ON UPDATE CASCADE", MOVE, False),
    "UPDATE CASCADE, a child each": (PLAIN, "ON UPDATE CASCADE", MOVE, True),
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


def cascade(server, engine, children, keys, rule, statement, each):
    """Seconds, and seconds of the server's processors, in which all children follow their parents."""
    parents = children if each else 1
    server.query(f"CREATE TABLE above (id INT PRIMARY KEY) ENGINE={engine}")
    server.query(f"CREATE TABLE follower (id INT, p INT, v INT, x CHAR(20), {keys}, FOREIGN KEY (p) REFERENCES above (id) {rule}) ENGINE={engine}")
    server.query(f"INSERT INTO above SELECT seq FROM seq_1_to_{parents}")
    server.query(f"INSERT INTO follower SELECT seq, 1 + seq % {parents}, seq * 7919 % 1000003, 'some text' FROM seq_1_to_{children}")
    cpu, began = server.cpu_seconds(), time.monotonic()
    server.query(statement)
    took = time.monotonic() - began, server.cpu_seconds() - cpu
    server.query("DROP TABLE follower, above")
    return took


def cascades(sides, children, runs):
    """`sides`: what is written of each, its server, and its engine."""
    print(f"{children} children follow one parent, or one each, seconds (of the processors):")
    for name, case in CASCADES.items():
        figures = [[] for _ in sides]
        for run in range(runs):
            for place in range(len(sides))[:: 1 if run % 2 else -1]:
                _, server, engine = sides[place]
                figures[place].append(cascade(server, engine, children, *case))
        medians = [[statistics.median(column) for column in zip(*figure)] for figure in figures]
        cells = (f"{side[0]:>10} {took:6.3f} ({cpu:.3f})" for side, (took, cpu) in zip(sides, medians))
        print(f"  {name:36}" + "".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--children", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=["cascades"])
    parser.add_argument("--second", help="the directory of another build's plugin")
    arguments = parser.parse_args()
    home = tempfile.mkdtemp(prefix="teak-definitions-", dir=os.path.join(ROOT, "build"))
    server = Server(os.path.join(home, "first"), os.path.join(ROOT, "build", "plugin"))
    second = Server(os.path.join(home, "second"), arguments.second) if arguments.second else None
    servers = [one for one in (server, second) if one]
    try:
        for one in servers:
            one.install()
            one.start(["--innodb-buffer-pool-size=512M", "--teak-cache-size=512M", "--innodb-log-file-size=256M"])
        if not arguments.only:
            families(server, arguments.children, arguments.runs)
        cascades([(engine, server, engine) for engine in ENGINES] + [("second", one, "Teak") for one in servers[1:]], arguments.children, arguments.runs)
        if arguments.rows and not arguments.only:
            changes(server, arguments.rows)
    finally:
        for one in servers:
            one.kill()
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
