#!/usr/bin/env python3
"""Vector indexes, which MariaDB has since 11.7: searched while sessions write, the server killed under both, and dumped.

Each search finds rows that there are; after a kill the table has what was committed, CHECK TABLE finds nothing, and searches by the index find most of what a search of all rows does, in order, as they do of a dump that was loaded.
Without such a server there is nothing to test. Prints 'vectors: N passed, N failed'.
"""

import math
import random
import struct
import subprocess
import sys
import threading
import time

import pymysql

from kit.options import parser, seed
from kit.server import Server, conflicted

FIRST_RELEASE = (11, 7)
DIMENSIONS = 8
WRITERS = 3
ROWS = 400
NEAREST = 10
# What searches by the index find of the nearest rows, in the mean: they are not exact.
LEAST_FOUND = 0.8
DISTANCE = "VEC_DISTANCE_EUCLIDEAN(e, x'{}')"
LOST = (2006, 2013, 1053, 0)


def vector(source):
    """As the server keeps it, in hexadecimal digits."""
    return struct.pack(f"<{DIMENSIONS}f", *(source.uniform(-1, 1) for _ in range(DIMENSIONS))).hex()


def distance(one, other):
    """Between two vectors in hexadecimal digits."""
    return math.dist(*(struct.unpack(f"<{DIMENSIONS}f", bytes.fromhex(text)) for text in (one, other)))


class Writer(threading.Thread):
    """Writes rows whose numbers leave `number` when divided by WRITERS, until the server is gone, and notes what is committed."""

    def __init__(self, server, number, rows, source):
        super().__init__()
        self.server, self.number, self.source, self.problem = server, number, source, None
        self.rows = rows
        # What the rows are if the commit of which nothing was heard has happened.
        self.doubted = None

    def change(self, rows):
        """A statement that changes one row, and `rows` as it does."""
        number = self.source.randrange(ROWS) * WRITERS + self.number
        value = vector(self.source)
        if number not in rows:
            rows[number] = value
            return f"INSERT INTO v VALUES ({number}, x'{value}', 'text {number}')"
        if self.source.random() < 0.3:
            del rows[number]
            return f"DELETE FROM v WHERE id = {number}"
        rows[number] = value
        return f"UPDATE v SET e = x'{value}' WHERE id = {number}"

    def transaction(self, connection):
        """One, which is committed, rolled back, or lost by a conflict."""
        rows = dict(self.rows)
        with connection.cursor() as cursor:
            try:
                cursor.execute("BEGIN")
                for _ in range(self.source.choice([1, 1, 3, 8])):
                    cursor.execute(self.change(rows))
                if self.source.random() < 0.15:
                    cursor.execute("ROLLBACK")
                    return
                self.doubted = rows
                cursor.execute("COMMIT")
            except pymysql.err.OperationalError as error:
                if not conflicted(connection, error):
                    raise
                rows = self.rows
        self.rows, self.doubted = rows, None

    def run(self):
        try:
            connection = self.server.connect()
            while True:
                self.transaction(connection)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in LOST:
                self.problem = repr(error)


class Searcher(threading.Thread):
    """Searches until the server is gone."""

    def __init__(self, server, source):
        super().__init__()
        self.server, self.source, self.problem, self.done = server, source, None, 0

    def run(self):
        try:
            connection = self.server.connect(autocommit=True)
            while not self.problem:
                self.problem = self.search(connection)
                self.done += 1
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (*LOST, 1020, 1205, 1213):
                self.problem = repr(error)

    def search(self, connection):
        """What is wrong with one search, or None."""
        sought = vector(self.source)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT id, HEX(e), {DISTANCE.format(sought)} d FROM v ORDER BY {DISTANCE.format(sought)} LIMIT {NEAREST}")
            found = cursor.fetchall()
        # With InnoDB, too, a search beside writers may have rows in another order, and one of them twice: the server's
        # graph, which all share, is ahead of its snapshot.
        if any(abs(distance(value, sought) - d) > 1e-4 for _, value, d in found):
            return f"a distance that is none: {found}"
        return None


def found_by_index(server, database, source):
    """Which part of the nearest rows searches by the index find, in the mean of some; 0 if they are not in order."""
    parts = []
    for _ in range(40):
        by = DISTANCE.format(vector(source))
        far = [distance for distance, in server.query(f"SELECT {by} d FROM v ORDER BY {by} LIMIT {NEAREST}", database)]
        if far != sorted(far):
            return 0
        near, exact = ({row for row, in server.query(f"SELECT id FROM v {how} ORDER BY {by} LIMIT {NEAREST}", database)} for how in ("", "IGNORE INDEX (e)"))
        parts.append(len(near & exact) / max(len(exact), 1))
    return sum(parts) / len(parts)


def kill_under_writers(server, rows, source):
    """Writers and searchers, and SIGKILL; what is wrong afterwards."""
    writers = [Writer(server, number, rows[number], random.Random(source.random())) for number in range(WRITERS)]
    searchers = [Searcher(server, random.Random(source.random())) for _ in range(2)]
    for thread in writers + searchers:
        thread.start()
    time.sleep(source.uniform(0.5, 3))
    server.kill()
    for thread in writers + searchers:
        thread.join()
    server.start()
    problems = [thread.problem for thread in writers + searchers if thread.problem]
    kept = {row: value.lower() for row, value in server.query("SELECT id, HEX(e) FROM v")}
    for writer in writers:
        own = {row: value for row, value in kept.items() if row % WRITERS == writer.number}
        if own not in (writer.rows, writer.doubted):
            problems.append(f"writer {writer.number} has committed {len(writer.rows)} rows, {len(own)} are there")
        rows[writer.number] = own
    if (told := server.query("CHECK TABLE v")) != (("test.v", "check", "status", "OK"),):
        problems.append(repr(told))
    part = found_by_index(server, "test", source)
    print(f"    {len(kept)} rows, {sum(searcher.done for searcher in searchers)} searches before the kill, {part:.2f} of the nearest rows found", flush=True)
    return problems + [f"searches find {part:.2f}"] * (part < LEAST_FOUND)


def dumped(server, source):
    """What is wrong with the table that a dump of it makes."""
    server.query("CREATE OR REPLACE DATABASE other")
    connection = [f"--socket={server.socket}", "--user=root"]
    dump = subprocess.run(["mariadb-dump", "--no-defaults", *connection, "test", "v"], stdout=subprocess.PIPE, check=True)
    subprocess.run(["mariadb", "--no-defaults", *connection, "other"], input=dump.stdout, check=True)
    problems = [] if server.query("SELECT * FROM test.v EXCEPT SELECT * FROM other.v") == () else ["not the same rows"]
    if server.query("SELECT COUNT(*) FROM test.v") != server.query("SELECT COUNT(*) FROM other.v"):
        problems.append("not as many rows")
    if (part := found_by_index(server, "other", source)) < LEAST_FOUND:
        problems.append(f"searches find {part:.2f}")
    return problems


def main():
    arguments = parser(__doc__, rounds=6).parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    passed = failed = 0
    try:
        server.start()
        release = server.query("SELECT VERSION()")[0][0]
        rounds = arguments.rounds if tuple(int(part) for part in release.split(".")[:2]) >= FIRST_RELEASE else 0
        if rounds:
            source = random.Random(seed())
            server.query(f"CREATE TABLE v (id INT PRIMARY KEY, e VECTOR({DIMENSIONS}) NOT NULL, t VARCHAR(20), VECTOR INDEX (e)) ENGINE=Teak")
        else:
            print(f"MariaDB {release} has no vector indexes")
        rows = [{} for _ in range(WRITERS)]
        for step in [lambda: kill_under_writers(server, rows, source)] * rounds + [lambda: dumped(server, source)] * (rounds > 0):
            problems = step()
            passed, failed = passed + (not problems), failed + bool(problems)
            print("\n".join(problems), end="\n" * bool(problems), flush=True)
        server.stop()
    finally:
        server.kill()
    print(f"vectors: {passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
