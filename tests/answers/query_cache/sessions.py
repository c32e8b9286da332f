#!/usr/bin/env python3
"""Sessions at several isolation levels read through the query cache what others are changing.

Each query is also asked with SQL_NO_CACHE. Within a snapshot both must give the same, before and after. Of sessions that read what is newest the answers must lie
between those before and after: whatever is changed, sums of committed rows only grow, and the parent's sum is changed in the same transaction as the child's.
Meanwhile two tables are exchanged for others of larger sums, by RENAME and as partitions, and those are emptied, dropped and made. Ends
with an error at the first that differs; prints 'N passed, 0 failed', a level each, and how many results were served.
"""

import random
import threading

import pymysql

from kit.options import parser, seed
from kit.server import Server, conflicted

OPTIONS = [
    "--query-cache-type=1", "--query-cache-size=16M", "--innodb-lock-wait-timeout=2", "--lock-wait-timeout=20", "--log-bin=b", "--server-id=1",
    "--teak-flush-log-at-trx-commit=2",
]
ROWS = 12
SCHEMA = [
    "CREATE TABLE plain (id INT PRIMARY KEY, v INT NOT NULL, KEY (v))",
    "CREATE TABLE parts (id INT PRIMARY KEY, v INT NOT NULL) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE memory (id INT PRIMARY KEY, v INT NOT NULL) IN_MEMORY=YES",
    # A parent's number only grows, and its child's follows.
    "CREATE TABLE parent (id INT PRIMARY KEY, v INT NOT NULL, UNIQUE KEY (v))",
    "CREATE TABLE child (id INT PRIMARY KEY, v INT NOT NULL, FOREIGN KEY (v) REFERENCES parent (v) ON UPDATE CASCADE)",
    "CREATE TABLE renamed (id INT PRIMARY KEY, v INT NOT NULL)",
    "CREATE TABLE exchanged (id INT PRIMARY KEY, v INT NOT NULL) PARTITION BY HASH (id) PARTITIONS 1",
]
# Tables that are exchanged, and those that come next; nobody else writes to them, and their sums only grow.
EXCHANGED = ("renamed", "exchanged")
EXCHANGE = [
    "CREATE OR REPLACE TABLE next (id INT PRIMARY KEY, v INT NOT NULL)",
    "INSERT INTO next SELECT seq, {n} FROM seq_0_to_{last}",
    "RENAME TABLE renamed TO before_it, next TO renamed, before_it TO next",
    "TRUNCATE TABLE next",
    "INSERT INTO next SELECT seq, {n} FROM seq_0_to_{last}",
    "ALTER TABLE exchanged EXCHANGE PARTITION p0 WITH TABLE next",
    "ALTER TABLE renamed FORCE",
    "DROP TABLE next",
]
TABLES = ("plain", "parts", "memory", "parent", "child")
CHANGED = ("plain", "parts", "memory", "parent")
LEVELS = ("REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE")
# Of two tables whose sums are the same in each state.
EQUAL = "SELECT {} (SELECT SUM(v) FROM parent), (SELECT SUM(v) FROM child)"


def query(table, cached, clause=""):
    return f"SELECT {'' if cached else 'SQL_NO_CACHE '}SUM(v), COUNT(*) FROM {table}{clause}"


class Session(threading.Thread):
    """Reads, and sometimes writes, in transactions or not."""

    def __init__(self, server, level, seed, stop):
        super().__init__(daemon=True)
        self.connection = server.connect(autocommit=True)
        self.cursor = self.connection.cursor()
        self.random, self.stop, self.level = random.Random(seed), stop, level
        self.failure, self.reads = None, 0
        self.do(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        # In half of the sessions, a write goes over what was committed after the snapshot, and nothing is refused.
        self.do(f"SET SESSION teak_snapshot_isolation = {self.random.choice(('ON', 'OFF'))}")

    def do(self, statement):
        self.cursor.execute(statement)
        return self.cursor.fetchall()

    def run(self):
        try:
            while not self.stop.is_set():
                try:
                    self.transaction()
                except pymysql.err.OperationalError as error:
                    if not conflicted(self.connection, error):
                        raise
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
            self.stop.set()
        self.connection.close()

    def transaction(self):
        """Reads and writes, as a transaction or each by itself."""
        begin = self.random.choice((None, "BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT"))
        if begin:
            self.do(begin)
        for _ in range(self.random.randint(1, 8)):
            if self.random.random() < 0.15:
                self.write()
            elif begin and self.level != "READ COMMITTED":
                self.read_twice()
            else:
                self.read_newest(TABLES if begin else TABLES + EXCHANGED)
            if begin and self.random.random() < 0.1:
                self.do("SAVEPOINT s")
                self.write()
                self.do("ROLLBACK TO SAVEPOINT s")
        if begin:
            self.do(self.random.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK")))

    def write(self):
        table = self.random.choice(CHANGED)
        row = self.random.randrange(ROWS)
        # Numbers of a parent are never those of another.
        self.do(f"UPDATE {table} SET v = v + {ROWS} WHERE id = {row}")

    def read_twice(self):
        """What a snapshot sees, before, from the cache or not, and after."""
        table, clause = self.random.choice(TABLES), self.random.choice(("", f" WHERE id = {self.random.randrange(ROWS)}"))
        first, cached, last = (self.do(query(table, cached, clause)) for cached in (self.random.random() < 0.5, True, False))
        self.expect(first == cached == last, table, first, cached, last)
        if self.random.random() < 0.3:
            sums = self.do(EQUAL.format(""))[0]
            self.expect(sums[0] == sums[1], "parent and child", *sums)

    def read_newest(self, tables):
        """What is newest is not older than what was read before, nor younger than what is read after."""
        table = self.random.choice(tables)
        before, cached, after = (self.do(query(table, cached))[0] for cached in (False, True, False))
        self.expect(before[0] <= cached[0] <= after[0] and cached[1] == ROWS, table, before, cached, after)
        # A statement is a snapshot of all its tables.
        sums = self.do(EQUAL.format(self.random.choice(("", "SQL_NO_CACHE"))))[0]
        self.expect(sums[0] == sums[1], "parent and child", *sums)

    def expect(self, holds, table, *answers):
        self.reads += 1
        if not holds:
            raise AssertionError(f"{self.level}, {table}: {answers}")


class Exchange(Session):
    """Puts tables in the place of others."""

    def transaction(self):
        """One table after the other."""
        self.reads += 1
        for statement in EXCHANGE:
            self.do(statement.format(n=self.reads * ROWS, last=ROWS - 1))


def main():
    arguments = parser(__doc__, seconds=15.0).parse_args()
    arguments.seed = seed()
    server, stop = Server(arguments.directory, arguments.plugin_dir), threading.Event()
    server.install()
    server.start(OPTIONS)
    try:
        server.query("CREATE DATABASE IF NOT EXISTS test", database=None)
        for statement in SCHEMA + [f"INSERT INTO {table} SELECT seq, seq FROM seq_0_to_{ROWS - 1}" for table in TABLES + EXCHANGED]:
            server.query(statement)
        sessions = [Session(server, level, arguments.seed * 100 + n, stop) for n, level in enumerate(LEVELS * 3)]
        exchange = Exchange(server, LEVELS[0], arguments.seed * 100 + 99, stop)
        sessions.append(exchange)
        for session in sessions:
            session.start()
        stop.wait(arguments.seconds)
        stop.set()
        for session in sessions:
            session.join(60)
        failures = [session.failure for session in sessions if session.failure]
        if failures:
            raise SystemExit(f"seed {arguments.seed}: {failures[0]!r}")
        hits, kept = (int(server.query(f"SHOW STATUS LIKE 'Qcache_{name}'")[0][1]) for name in ("hits", "inserts"))
        reads = sum(session.reads for session in sessions) - exchange.reads
        print(f"{reads} comparisons, {exchange.reads} exchanges, {kept} results kept, {hits} served (seed {arguments.seed})")
        if hits * 20 < reads:
            raise SystemExit("hardly anything was served")
    finally:
        server.kill()
    print(f"{len(LEVELS)} passed, 0 failed")


main()
