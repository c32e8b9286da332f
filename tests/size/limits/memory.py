#!/usr/bin/env python3
"""Resident memory of a server that is given far more data than its cache.

The server's VmHWM (the kernel's own peak of resident memory) has to stay below teak_cache_size + 300 MiB through: a load
of three times the cache, one transaction larger than the cache committed, one rolled back, an update of every row under
an old snapshot, and scans. Contents are checked after each step. Prints 'N passed, N failed', a step each.
"""

import sys
import threading
import time

import pymysql

from kit.options import parser
from kit.server import Server

MIB = 1 << 20
ALLOWANCE = 300 * MIB
# A statement, or the update of all rows, that takes longer hangs.
STATEMENT_SECONDS = 180
# About 1 KiB a row: half of it cannot be compressed, as in real tables.
ROW = "seq, seq * 2654435761 % 4294967291, CONCAT(REPEAT(SHA2(CONCAT(seq, '{salt}'), 512), 4), REPEAT('compressible ', 39))"
ROW_BYTES = 1024 + 16


class Steps:
    """The server, its limit, and the steps that ran."""

    def __init__(self, server, cache, allowance=ALLOWANCE):
        self.server, self.cache = server, cache
        self.limit = cache + allowance
        self.passed = self.failed = 0

    def connect(self):
        return self.server.connect(autocommit=True, read_timeout=STATEMENT_SECONDS)

    def counters(self):
        """What the engine itself says it uses, to tell it from what the allocator keeps; and what it has spilled."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SHOW GLOBAL STATUS WHERE variable_name IN ('Teak_cache_bytes_used', 'Teak_spilled_bytes')")
                return {name: int(value) for name, value in cursor.fetchall()}
        finally:
            connection.close()

    def reset_peak(self):
        """Makes VmHWM start anew, so that each step has a peak of its own."""
        with open(f"/proc/{self.server.process.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def step(self, name, action):
        """Runs one step and judges the peak and the contents."""
        self.reset_peak()
        began = time.monotonic()
        try:
            action()
            problem = None
        except (AssertionError, pymysql.err.MySQLError) as error:
            problem = repr(error)
        seconds = time.monotonic() - began
        if not self.server.is_running():
            print(self.server.log_end(80))
            raise RuntimeError(f"{name}: the server ended with {self.server.process.returncode}")
        resident, peak = self.server.memory()
        if problem is None and peak >= self.limit:
            problem = f"more than {self.limit / MIB:.0f} MiB"
        counters = self.counters()
        print(f"{name:<52} {seconds:6.1f} s   peak {peak / MIB:5.0f} MiB, now {resident / MIB:5.0f}, by the engine's count"
              f" {counters.get('Teak_cache_bytes_used', 0) / MIB:5.0f}, spilled {counters.get('Teak_spilled_bytes', 0) / MIB:5.0f}"
              f"   {'ok' if problem is None else 'FAILED: ' + problem}", flush=True)
        if problem is None:
            self.passed += 1
        else:
            self.failed += 1


class Memory(Steps):
    """Rows of about a KiB."""

    def __init__(self, server, cache):
        super().__init__(server, cache)
        self.rows = 0

    def insert(self, connection, first, last, salt=""):
        """Rows `first` to `last`, in one statement."""
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO loaded SELECT {ROW.format(salt=salt)} FROM seq_{first}_to_{last}")

    def expect(self, connection, rows):
        """The table has exactly the rows 1 to `rows`, by both indexes."""
        with connection.cursor() as cursor:
            for index, condition in (("PRIMARY", "id > 0"), ("hash", "hash > -1")):
                cursor.execute(f"SELECT COUNT(*), SUM(id) FROM loaded FORCE INDEX ({index}) WHERE {condition}")
                found = cursor.fetchone()
                if found != (rows, rows * (rows + 1) // 2):
                    raise AssertionError(f"by index {index}: {found[0]} rows with sum {found[1]}, expected {rows}")

    def load(self):
        """Three times the cache, in transactions of 2,000 rows from two clients."""
        total = 3 * self.cache // ROW_BYTES
        batches = iter(range(1, total + 1, 2000))
        turn, errors = threading.Lock(), []

        def client():
            connection = self.connect()
            try:
                while not errors:
                    with turn:
                        first = next(batches, None)
                    if first is None:
                        return
                    self.insert(connection, first, min(first + 1999, total))
            except pymysql.err.MySQLError as error:
                errors.append(error)
            finally:
                connection.close()

        clients = [threading.Thread(target=client) for _ in range(2)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        if errors:
            raise errors[0]
        self.rows = total
        connection = self.connect()
        self.expect(connection, total)
        connection.close()

    def large_transaction(self, commits):
        """One transaction of one and a half times the cache."""
        count = self.cache * 3 // 2 // ROW_BYTES
        connection = self.connect()
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            self.insert(connection, self.rows + 1, self.rows + count, "large")
            cursor.execute("COMMIT" if commits else "ROLLBACK")
        if commits:
            self.rows += count
        self.expect(connection, self.rows)
        connection.close()

    def old_snapshot(self):
        """Every row is updated while a reader holds a snapshot from before; the reader must not notice."""
        reader, writer = self.connect(), self.connect()
        read = "SELECT COUNT(*), SUM(CRC32(body)) FROM loaded"
        with reader.cursor() as old, writer.cursor() as new:
            old.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            old.execute(read)
            before = old.fetchone()
            began = time.monotonic()
            for first in range(1, self.rows + 1, 5000):
                if time.monotonic() - began > STATEMENT_SECONDS:
                    raise AssertionError(f"only {first - 1} of {self.rows} rows are updated after {STATEMENT_SECONDS} s")
                new.execute(f"UPDATE loaded SET body = REVERSE(body) WHERE id BETWEEN {first} AND {first + 4999}")
            old.execute(read)
            after = old.fetchone()
            old.execute("COMMIT")
            old.execute(read)
            later = old.fetchone()
        reader.close()
        writer.close()
        if before != after:
            raise AssertionError(f"the snapshot changed from {before} to {after}")
        if later == before:
            raise AssertionError("the update is not to be seen")

    def scans(self):
        """Scans by both indexes from two clients at once."""
        def client():
            connection = self.connect()
            self.expect(connection, self.rows)
            connection.close()
        threads = [threading.Thread(target=client) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        connection = self.connect()
        with connection.cursor() as cursor:
            cursor.execute("CHECK TABLE loaded")
            verdict = cursor.fetchall()[-1][3]
        connection.close()
        if verdict != "OK":
            raise AssertionError(f"CHECK TABLE: {verdict}")

    def run(self):
        """All steps."""
        baseline = self.server.memory()[0]
        print(f"server alone: {baseline / MIB:.0f} MiB; teak_cache_size {self.cache / MIB:.0f} MiB; limit {self.limit / MIB:.0f} MiB", flush=True)
        connection = self.connect()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE loaded (id INT PRIMARY KEY, hash BIGINT NOT NULL, body VARCHAR(2000) CHARACTER SET latin1, KEY hash (hash)) ENGINE=Teak")
        connection.close()
        self.step("load three times the cache", self.load)
        self.step("one transaction of 1.5 times the cache, committed", lambda: self.large_transaction(True))
        self.step("one transaction of 1.5 times the cache, rolled back", lambda: self.large_transaction(False))
        self.step("update of every row under an old snapshot", self.old_snapshot)
        self.step("scans and CHECK TABLE", self.scans)


def main():
    arguments = parser(__doc__, cache_mib=128).parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    cache = arguments.cache_mib * MIB
    memory = Memory(server, cache)
    try:
        server.start([f"--teak-cache-size={cache}", "--teak-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=8M"])
        memory.run()
    except (RuntimeError, pymysql.err.MySQLError) as error:
        print(f"FAILED: {error}")
        memory.failed += 1
    finally:
        server.kill()
    print(f"memory: {memory.passed} passed, {memory.failed} failed")
    return 1 if memory.failed else 0


if __name__ == "__main__":
    sys.exit(main())
