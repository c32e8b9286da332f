#!/usr/bin/python3
"""What one writer keeps of its rate beside many idle sessions, with a small cache.

The sessions are in a transaction each, in one of these states:

failed      a statement that inserted 960 rows has ended with a duplicate key
statement   a row was changed
savepoint   960 rows were inserted, and rolled back to a savepoint
inserted    960 rows were inserted
snapshot    a row was read at REPEATABLE READ
prepared    a row was inserted, and the transaction was prepared (XA)

The writer updates rows by primary key in a stored procedure, in autocommit. It is measured without idle sessions and with them in turn, round
by round. Prints, for each state, medians: updates a second without and with them, the ratio within a round of the rates and of the server's
processor time for one update, and what the cache has in use.

usage: benches/idle.py [--engine Teak|InnoDB] [--cache 128M] [--sessions N] [--updates N] [--rounds N] [--states NAME,...]
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time

import pymysql

from kit.server import Server

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


ROWS = 200_000
GATHERED = 960
COLUMNS = "(id INT PRIMARY KEY, v INT NOT NULL, pad CHAR(100) NOT NULL, KEY v (v))"
UPDATES = """CREATE PROCEDURE updates(number INT) BEGIN
    DECLARE key_of_row INT;
    WHILE number > 0 DO
        SET key_of_row = 1 + FLOOR(RAND() * %d);
        UPDATE t SET v = v + 1 WHERE id = key_of_row;
        SET number = number - 1;
    END WHILE;
END""" % ROWS


def rows_of(number):
    """Keys that nobody else has."""
    first = (number + 1) * 10_000
    return f"SELECT seq, seq * 7919 % 100003, 'x' FROM seq_{first}_to_{first + GATHERED - 1}"


def failed(execute, number):
    execute("BEGIN")
    try:
        execute(f"INSERT INTO idle {rows_of(number)} UNION ALL SELECT 1, 1, 'twin'")
    except pymysql.err.IntegrityError:
        return
    raise SystemExit("a duplicate key was not refused")


def statement(execute, number):
    execute("BEGIN")
    execute(f"UPDATE idle SET v = v + 1 WHERE id = {number + 10}")


def savepoint(execute, number):
    statement(execute, number)
    execute("SAVEPOINT before_rows")
    execute(f"INSERT INTO idle {rows_of(number)}")
    execute("ROLLBACK TO before_rows")


def inserted(execute, number):
    execute("BEGIN")
    execute(f"INSERT INTO idle {rows_of(number)}")


def snapshot(execute, number):
    execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    execute(f"SELECT v FROM t WHERE id = {number + 1}")


def prepared(execute, number):
    execute(f"XA START 'x{number}'")
    execute(f"INSERT INTO idle VALUES ({(number + 1) * 10_000}, 1, 'x')")
    execute(f"XA END 'x{number}'")
    execute(f"XA PREPARE 'x{number}'")


STATES = {state.__name__: state for state in (failed, statement, savepoint, inserted, snapshot, prepared)}


class Idle:
    """Sessions in a state, until they are ended."""

    def __init__(self, server, state, count):
        self.is_prepared = state is prepared
        self.connections = []
        for number in range(count):
            connection = server.connect()
            connection.cursor().execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            state(connection.cursor().execute, number)
            self.connections.append(connection)

    def end(self):
        for number, connection in enumerate(self.connections):
            connection.cursor().execute(f"XA ROLLBACK 'x{number}'" if self.is_prepared else "ROLLBACK")
            connection.close()


class Bench:
    """The server, and what is measured on it."""

    def __init__(self, server, engine, updates):
        self.server, self.updates = server, updates
        for table in ("t", "idle"):
            server.query(f"CREATE TABLE {table} {COLUMNS} ENGINE={engine}")
        server.query(f"INSERT INTO t SELECT seq, seq, REPEAT('p', 100) FROM seq_1_to_{ROWS}")
        server.query("INSERT INTO idle SELECT seq, seq, 'x' FROM seq_1_to_5000")
        server.query(UPDATES)

    def rate(self):
        """Updates a second, and microseconds of the server's processor time for one."""
        cpu, began = self.server.cpu_seconds(), time.monotonic()
        self.server.query(f"CALL updates({self.updates})")
        return self.updates / (time.monotonic() - began), (self.server.cpu_seconds() - cpu) / self.updates * 1e6

    def cache_bytes(self):
        return int(dict(self.server.query("SHOW GLOBAL STATUS LIKE 'teak_cache_bytes_used'")).get("Teak_cache_bytes_used", 0))

    def measure(self, name, sessions, rounds):
        without, beside, used = [], [], []
        for _ in range(rounds):
            without.append(self.rate())
            idle = Idle(self.server, STATES[name], sessions)
            beside.append(self.rate())
            used.append(self.cache_bytes())
            idle.end()
        rate = statistics.median(b[0] / w[0] for w, b in zip(without, beside))
        cpu = statistics.median(b[1] / w[1] for w, b in zip(without, beside))
        before, after = (statistics.median(side[0] for side in sides) for sides in (without, beside))
        print(f"{name:10} {before:9.0f} {after:9.0f} {rate:7.2f} {cpu:7.2f} {statistics.median(used) / 2**20:9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="Teak")
    parser.add_argument("--cache", default="128M")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--states", default=",".join(STATES))
    parser.add_argument("--plugin-dir", default=os.path.join(ROOT, "build", "plugin"))
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="teak-idle-")
    server = Server(os.path.join(directory, "server"), arguments.plugin_dir)
    try:
        server.install()
        server.start([
            f"--teak-cache-size={arguments.cache}", f"--innodb-buffer-pool-size={arguments.cache}", "--innodb-log-file-size=256M",
            f"--max-connections={arguments.sessions + 20}", "--teak-flush-log-at-trx-commit=0", "--innodb-flush-log-at-trx-commit=0",
            "--teak-snapshot-isolation=OFF", "--thread-stack=256K",
        ])
        bench = Bench(server, arguments.engine, arguments.updates)
        bench.rate()
        print(f"{arguments.engine}, cache {arguments.cache}, {arguments.sessions} idle sessions, {arguments.rounds} rounds of {arguments.updates} updates")
        print("state        without    beside    rate     cpu cache, MB")
        for name in arguments.states.split(","):
            bench.measure(name, arguments.sessions, arguments.rounds)
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
