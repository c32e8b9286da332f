#!/usr/bin/python3
"""What the optimizer of MariaDB 11 and later should take for the cost of single rows, and what it makes of what Teak says (shim/ha_teak_costs.cc).

First part: processor time of the server for a row or look-up of statements that do one thing, in Teak, InnoDB and MEMORY, all data in memory. Second part:
plans of the queries of tests/answers/mtr/extra/plans.test and of 140 random ones, with InnoDB, with Teak at InnoDB's costs, and with Teak at its own; of the
queries whose plan its own costs change, the processor time with either.

usage: benches/costs.py [--rows N] [--runs N]       a server since MariaDB 11.0 is needed
"""

import argparse
import os
import random
import re
import shutil
import statistics
import tempfile

from kit.options import PLUGIN_DIR, ROOT
from kit.server import Server

ENGINES = ("Teak", "InnoDB", "MEMORY")
COLUMNS = """id INT PRIMARY KEY, k INT NOT NULL, l INT NOT NULL, m INT NOT NULL, q DECIMAL(10, 2) NOT NULL, p DECIMAL(10, 2) NOT NULL, d1 DATE NOT NULL,
    d2 DATE NOT NULL, f CHAR(1) NOT NULL, g CHAR(1) NOT NULL, h CHAR(25) NOT NULL, i CHAR(10) NOT NULL, c VARCHAR(44) NOT NULL, n1 INT NOT NULL, n2 INT NOT NULL,
    n3 INT NOT NULL, KEY k (k) USING BTREE, KEY l (l) USING BTREE"""
FILL = """INSERT INTO {table} SELECT seq, seq * 7919 % {rows}, seq * 104729 % {rows}, seq % 100, seq % 50, seq / 3, '1995-01-01' + INTERVAL seq % 1000 DAY,
    '1996-01-01' + INTERVAL seq % 1000 DAY, 'A', 'B', 'DELIVER IN PERSON', 'TRUCK', CONCAT('comment ', seq), seq, seq + 1, seq + 2 FROM seq_1_to_{rows}"""
# What is timed, what for, and for how many rows of a hundred.
STATEMENTS = [
    ("a scan, three columns", "SELECT COUNT(*) FROM {table} USE INDEX () WHERE n1 + n2 + n3 < 0", 100),
    ("a scan, many columns", "SELECT SUM(LENGTH(CONCAT(k, l, m, q, p, d1, d2, f, g, h, i, c, n1, n2, n3))) < 0 FROM {table} WHERE n1 < 0 OR LENGTH(c) < 0", 100),
    ("a scan of an index", "SELECT COUNT(*) FROM {table} FORCE INDEX (k) WHERE k + 0 < 0", 100),
    ("a range of an index, with rows", "SELECT COUNT(*) FROM {table} FORCE INDEX (l) WHERE l BETWEEN 1 AND {rows} * 0.3 AND n1 < 0", 30),
    ("look-ups by primary key", "SELECT COUNT(*) FROM ids STRAIGHT_JOIN {table} t ON t.id = ids.a WHERE t.n1 < 0", 20),
    ("look-ups in an index", "SELECT COUNT(*) FROM ids STRAIGHT_JOIN {table} t FORCE INDEX (k) ON t.k = ids.a", 20),
    ("look-ups by an index, with rows", "SELECT COUNT(*) FROM ids STRAIGHT_JOIN {table} t FORCE INDEX (k) ON t.k = ids.a WHERE t.n1 < 0", 20),
    ("none of them", "SELECT COUNT(*) FROM ids WHERE a < 0", 20),
]
COSTS = ("row_next_find", "row_copy", "key_next_find", "key_lookup", "row_lookup", "rowid_compare")
# Columns, and how many values they have.
VALUES = {"t1.k": 10007, "t1.g": 5, "t1.n": 300, "t1.id": 20000, "t2.a": 1000, "t2.b": 20, "t3.x": 1000, "t3.z": 10000, "t4.id": 2000}
JOINS = [("t1", "t2", "t2.a = t1.n"), ("t1", "t3", "t3.x = t1.n"), ("t1", "t4", "t4.id = t1.k"), ("t2", "t3", "t3.x = t2.a"), ("t2", "t4", "t4.id = t2.a"),
         ("t3", "t4", "t4.id = t3.z")]
WIDE = {"t1": "t1.pad", "t2": "t2.v", "t3": "t3.y"}


def seconds(server, statement, runs, **settings):
    """Of the server's processor time for one execution, the median."""
    took = []
    for _ in range(runs):
        before = server.cpu_seconds()
        server.query(statement, **settings)
        took.append(server.cpu_seconds() - before)
    return statistics.median(took)


def rows(server, arguments):
    """The first part."""
    server.query("CREATE DATABASE costs")
    for engine in ENGINES:
        server.query(f"CREATE TABLE costs.{engine} ({COLUMNS}) ENGINE={engine}")
        server.query(FILL.format(table=f"costs.{engine}", rows=arguments.rows))
        server.query(f"ANALYZE TABLE costs.{engine}")
    server.query(f"CREATE TABLE costs.ids (a INT NOT NULL PRIMARY KEY) ENGINE=MEMORY AS SELECT seq * 31337 % {arguments.rows} a FROM seq_1_to_{arguments.rows // 5}")
    print(f"{'ns for a row':34}" + "".join(f"{engine:>8}" for engine in ENGINES) + "   Teak/InnoDB")
    for what, statement, percent in STATEMENTS:
        of_one = [seconds(server, statement.format(table=engine, rows=arguments.rows), arguments.runs, database="costs") * 1e11 / arguments.rows / percent
                  for engine in ENGINES]
        print(f"{what:34}" + "".join(f"{value:8.0f}" for value in of_one) + f"{of_one[0] / of_one[1]:8.2f}", flush=True)


def random_queries(source):
    """Over the tables of plans.test."""
    def condition(tables):
        column = source.choice([name for name in VALUES if name[:2] in tables])
        first = source.randrange(VALUES[column])
        wide = max(1, int(VALUES[column] * source.choice([.0005, .002, .01, .03, .1, .2, .4])))
        return f"{column} = {first}" if source.random() < 0.3 else f"{column} BETWEEN {first} AND {first + wide}"
    for number in range(140):
        one, other, on = source.choice(JOINS)
        tables, shown = (one, other), f"COUNT(*), SUM(LENGTH({WIDE[one]}))"
        if number % 2:
            tables, shown = (one,), source.choice(["*", "COUNT(*)", f"SUM(LENGTH({WIDE[one]}))"])
        conditions = " AND ".join(condition(tables) for _ in range(source.choice([1, 2, 2])))
        yield f"SELECT {shown} FROM {one}" + (f" JOIN {other} ON {on}" if tables[1:] else "") + f" WHERE {conditions}"


def plans(server, arguments):
    """The second part."""
    with open(os.path.join(ROOT, "tests/answers/mtr/extra/plans.test"), encoding="utf-8") as file:
        text = file.read()
    for engine in ENGINES[:2]:
        server.query(f"CREATE DATABASE {engine} CHARACTER SET latin1")
        for statement in re.findall(r"(CREATE TABLE t\d .*?|^INSERT INTO t\d .*?);", text, re.DOTALL | re.MULTILINE):
            server.query(statement.replace("$storage_engine", engine), database=engine)
        server.query("ANALYZE TABLE t1, t2, t3, t4", database=engine)
    queries = [*re.findall(r"^\('(.*)'\)[,;]$", text, re.MULTILINE), *random_queries(random.Random(5))]

    def explained(engine):
        return [[tuple(step[at] for at in (2, 3, 5, 6, 9)) for step in server.query(f"EXPLAIN {query}", database=engine)] for query in queries]

    def costs_of(engine):
        return {name: server.query(f"SELECT @@GLOBAL.{engine}.optimizer_{name}_cost")[0][0] for name in COSTS}

    def take(costs):
        for name, value in costs.items():
            server.query(f"SET GLOBAL Teak.optimizer_{name}_cost = {value}")
        server.query("FLUSH TABLES")

    own, theirs = costs_of("Teak"), costs_of("InnoDB")
    with_own, of_innodb = explained("Teak"), explained("InnoDB")
    take(theirs)
    with_theirs = explained("Teak")
    changed = [at for at, query in enumerate(queries) if with_own[at] != with_theirs[at] and query.startswith("SELECT")]
    took = {at: [] for at in changed}
    for costs in (theirs, own, theirs, own):
        take(costs)
        for at in changed:
            took[at].append(seconds(server, queries[at], arguments.runs, database="Teak") * 1e6)
    print(f"\n{len(queries)} queries; other plans than InnoDB's: {sum(map(list.__ne__, with_theirs, of_innodb))} with its costs, "
          f"{sum(map(list.__ne__, with_own, of_innodb))} with Teak's own, which change {len(changed)} SELECTs")
    for at in changed:
        print(f"{queries[at]}\n    InnoDB's costs {min(took[at][::2]):6.0f} us {with_theirs[at]}\n    its own        {min(took[at][1::2]):6.0f} us {with_own[at]}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--runs", type=int, default=9)
    arguments = arguments.parse_args()
    directory = tempfile.mkdtemp(prefix="teak-costs-")
    server = Server(directory, PLUGIN_DIR)
    try:
        server.install()
        server.start(["--teak-cache-size=1G", "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M", "--max-heap-table-size=2G"])
        rows(server, arguments)
        plans(server, arguments)
        server.stop()
    finally:
        server.kill()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
