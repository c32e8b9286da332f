#!/usr/bin/env python3
"""Kills a server whose clients take values from sequences, restarts it, and goes on: no value may come twice.

Clients take values one by one, in transactions that commit or roll back, as defaults of rows, and with SETVAL in between, from a sequence
with a cache and one without. Rounds differ in teak_flush_log_at_trx_commit (1 and 2: SIGKILL takes nothing that was written) and in
the binary log. Prints 'N passed, N failed', a round each.
"""

import random
import sys
import threading
import time

import pymysql

from kit.options import parser, seed
from kit.server import Server, conflicted

CLIENTS = 4
SEQUENCES = ("cached", "uncached")
# SETVAL goes so far ahead of what a client has seen.
JUMP = 50


class Client(threading.Thread):
    """Takes values until the server is gone; `taken` are those it was told."""

    def __init__(self, server, seed):
        super().__init__()
        self.connection = server.connect(autocommit=True)
        self.random = random.Random(seed)
        self.taken = {name: [] for name in SEQUENCES}
        self.error = None

    def one(self, cursor, statement, *arguments):
        cursor.execute(statement, arguments)
        return cursor.fetchone()[0]

    def take(self, cursor, name):
        value = self.one(cursor, f"SELECT NEXTVAL({name})")
        self.taken[name].append(value)
        return value

    def step(self, cursor):
        name = self.random.choice(SEQUENCES)
        kind = self.random.randrange(5)
        if kind == 0:
            self.take(cursor, name)
        elif kind == 1:
            cursor.execute("BEGIN")
            for _ in range(self.random.randrange(1, 4)):
                self.take(cursor, name)
            cursor.execute(self.random.choice(("COMMIT", "ROLLBACK")))
        elif kind == 2:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("INSERT INTO taken VALUES (DEFAULT, 1)")
            self.taken["uncached"].append(self.one(cursor, "SELECT LASTVAL(uncached)"))
            cursor.execute(self.random.choice(("COMMIT", "ROLLBACK")))
        elif kind == 3:
            cursor.execute("INSERT INTO taken VALUES (NEXTVAL(uncached), 2)")
            self.taken["uncached"].append(self.one(cursor, "SELECT LASTVAL(uncached)"))
        elif self.random.randrange(10) == 0:
            # NULL if others are further already. The next value is beyond it in any case.
            cursor.execute(f"SELECT SETVAL({name}, %s)", (self.take(cursor, name) + JUMP,))

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                while True:
                    try:
                        self.step(cursor)
                    except pymysql.err.MySQLError as error:
                        if not conflicted(self.connection, error):
                            raise
        except pymysql.err.MySQLError as error:
            # 2006, 2013: the server was killed, as it should be.
            if error.args[0] not in (0, 2006, 2013):
                self.error = error


def play(server, seed, seconds, earlier):
    """One round of the clients, killed at its end; what is wrong, as text, or None. `earlier` has all values taken before."""
    clients = [Client(server, seed + number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    time.sleep(seconds)
    server.kill()
    for client in clients:
        client.join()
    for client in clients:
        if client.error is not None:
            return repr(client.error)
        for name in SEQUENCES:
            for value in client.taken[name]:
                if value in earlier[name]:
                    return f"{name} gave {value} twice"
                earlier[name].add(value)
    return None


def main():
    options = parser(__doc__, rounds=8)
    options.add_argument("--engine", default="Teak", help="another one to compare with")
    arguments = options.parse_args()
    arguments.seed = seed()
    choose = random.Random(arguments.seed)
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    earlier = {name: set() for name in SEQUENCES}
    passed = failed = 0
    engine = arguments.engine.lower()
    try:
        for number in range(arguments.rounds):
            options = [f"--{engine}-flush-log-at-trx-commit={1 + number % 2}", f"--default-storage-engine={engine}"]
            if number // 2 % 2:
                options += ["--log-bin", "--binlog-format=MIXED"]
            server.start(options)
            if number == 0:
                server.query("CREATE SEQUENCE cached CACHE 7")
                server.query("CREATE SEQUENCE uncached NOCACHE")
                server.query("CREATE TABLE taken (id BIGINT PRIMARY KEY DEFAULT (NEXTVAL(uncached)), kind INT)")
            before = sum(map(len, earlier.values()))
            problem = play(server, choose.randrange(1 << 30), 0.5 + choose.random() * 2, earlier)
            taken = sum(map(len, earlier.values())) - before
            print(f"round {number}: {taken} values, {' '.join(options)}: {problem or 'ok'}", flush=True)
            passed, failed = passed + (problem is None), failed + (problem is not None)
    finally:
        server.kill()
    print(f"sequences: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
