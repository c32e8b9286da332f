#!/usr/bin/env python3
"""How many increments of a counter are lost, by engine and by the setting for conflicts: the figures of docs/moving.md.

Two sessions at REPEATABLE READ take turns, step by step, so that the counts are the same each time: both read the counter, both write it, both commit. A session
whose write is refused rolls back and tries again, as an application would. Written is either the value that was read plus one (`constant`), or `v + 1` (`relative`).
"""

import sys

import pymysql

from kit.options import parser
from kit.server import Server, conflicted

ROUNDS = 100
INCREMENTS = 2 * ROUNDS
# Which variables a session sets: whether conflicts are refused then. None: as the server's own default is, which is ON
# since 11.6.2.
SETTINGS = {
    "defaults": ((), None),
    "innodb_snapshot_isolation=ON": (("innodb_snapshot_isolation=ON",), True),
    "teak_snapshot_isolation=ON": (("teak_snapshot_isolation=ON",), True),
    "teak_snapshot_isolation=OFF": (("innodb_snapshot_isolation=ON", "teak_snapshot_isolation=OFF"), False),
}


class Session:
    """One that increments."""

    def __init__(self, server, settings, relative):
        self.connection = server.connect()
        self.cursor = self.connection.cursor()
        self.cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for setting in settings:
            self.cursor.execute(f"SET SESSION {setting}")
        self.relative, self.seen, self.refused = relative, None, 0

    def read(self):
        """Begins a transaction with a look at the counter."""
        self.cursor.execute("BEGIN")
        self.cursor.execute("SELECT v FROM counter WHERE id = 1")
        self.seen = self.cursor.fetchone()[0]

    def write(self):
        """Writes it and commits; from the start again if that is refused."""
        while True:
            try:
                self.cursor.execute(f"UPDATE counter SET v = {'v' if self.relative else self.seen} + 1 WHERE id = 1")
                self.cursor.execute("COMMIT")
                return
            except pymysql.err.OperationalError as error:
                if not conflicted(self.connection, error):
                    raise
                self.refused += 1
                self.read()


def count(server, engine, settings, relative):
    """How many increments are lost, and how many writes were refused."""
    server.query("DROP TABLE IF EXISTS counter")
    server.query(f"CREATE TABLE counter (id INT PRIMARY KEY, v INT NOT NULL) ENGINE={engine}")
    server.query("INSERT INTO counter VALUES (1, 0)")
    sessions = [Session(server, settings, relative) for _ in range(2)]
    for _ in range(ROUNDS):
        for session in sessions:
            session.read()
        for session in sessions:
            session.write()
    for session in sessions:
        session.connection.close()
    return INCREMENTS - server.query("SELECT v FROM counter")[0][0], sum(session.refused for session in sessions)


def main():
    arguments = parser(__doc__).parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start(["--teak-snapshot-isolation=INNODB"])
    passed = failed = 0
    try:
        server.query("CREATE DATABASE IF NOT EXISTS test", database=None)
        for engine in ("InnoDB", "Teak"):
            for name, (settings, strict) in SETTINGS.items():
                if engine == "InnoDB" and name.startswith("teak"):
                    continue
                for relative in (False, True):
                    lost, refused = count(server, engine, settings, relative)
                    strict = server.query("select @@global.innodb_snapshot_isolation")[0][0] == 1 if strict is None else strict
                    expected = (0, ROUNDS) if strict else (0 if relative else ROUNDS, 0)
                    good = (lost, refused) == expected
                    passed, failed = passed + good, failed + (not good)
                    print(f"{'ok' if good else 'FAILED'}: {engine} {name}, {'relative' if relative else 'constant'}: "
                          f"of {INCREMENTS} increments {lost} lost, {refused} refused and done again" + ("" if good else f"; expected {expected}"), flush=True)
    finally:
        server.kill()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
