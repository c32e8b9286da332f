#!/usr/bin/env python3
"""What many locks of one transaction cost: time, memory, and what other sessions do meanwhile.

Statements that lock many rows or many missing keys run with Teak and with InnoDB on one server; prints the seconds, the
growth of the resident memory (and its growth over the server's peak before), and how many rows another session inserted
meanwhile. With --check the time of missing keys with Teak must not be more than four times InnoDB's, and a second beside
that: enough to tell a cost that grows with the square. Locks of consecutive rows must take less than 2 MiB, and those of
scattered ones not more than teak_lock_max_size and 4 MiB; two transactions that could take more get error 1206.
"""

import sys
import threading
import time

import pymysql

from kit.options import parser
from kit.server import Server

MIB = 1 << 20


class Inserter(threading.Thread):
    """Inserts single rows into a table until told to stop; counts them, and the longest insert."""

    def __init__(self, server, statement):
        super().__init__()
        self.server, self.statement = server, statement
        self.stopped, self.inserted, self.longest = False, 0, 0.0

    def run(self):
        connection = self.server.connect(autocommit=True)
        with connection.cursor() as cursor:
            while not self.stopped:
                began = time.monotonic()
                cursor.execute(self.statement)
                self.longest = max(self.longest, time.monotonic() - began)
                self.inserted += 1
                time.sleep(0.001)
        connection.close()

    def stop(self):
        self.stopped = True
        self.join()
        return f"{self.inserted} inserts of another meanwhile, the longest {self.longest * 1000:.0f} ms"


class Run:
    def __init__(self, server):
        self.server = server
        self.failed = self.lock_bytes = 0

    def check_locks(self, most):
        """The last statement's locks took at most so many bytes."""
        if self.lock_bytes > most:
            print(f"  FAILED: {self.lock_bytes / MIB:.2f} MiB of locks, {most / MIB:.0f} are allowed")
            self.failed += 1

    def execute(self, *statements):
        connection = self.server.connect(autocommit=True, read_timeout=600)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.close()

    @staticmethod
    def locks_of(cursor):
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Teak_lock_memory'")
        return sum(int(value) for _, value in cursor.fetchall())

    def resident(self):
        return self.server.memory()[0]

    def timed(self, name, *statements, beside=None):
        """Runs the statements in one transaction that is rolled back, as a commit is not what is measured."""
        connection = self.server.connect(read_timeout=600)
        inserter = Inserter(self.server, beside) if beside else None
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            before, locks_before = self.resident(), self.locks_of(cursor)
            if inserter:
                inserter.start()
            began = time.monotonic()
            for statement in statements:
                cursor.execute(statement)
            seconds = time.monotonic() - began
            grown = self.resident() - before
            meanwhile = f", {inserter.stop()}" if inserter else ""
            self.lock_bytes = self.locks_of(cursor) - locks_before
            began = time.monotonic()
            cursor.execute("ROLLBACK")
            end = time.monotonic() - began
        connection.close()
        print(f"{name:<44} {seconds:7.2f} s, rollback {end:.2f} s, resident {grown / MIB:+7.1f} MiB, "
              f"locks {self.lock_bytes / MIB:.2f} MiB{meanwhile}", flush=True)
        return seconds

    def missing_keys(self, rows):
        """A join that finds no row for each of many, at REPEATABLE READ: each missing key is locked as a range."""
        times = {}
        for engine in ("InnoDB", "Teak"):
            self.execute(
                "CREATE OR REPLACE TABLE a (id INT PRIMARY KEY, x INT) ENGINE=" + engine,
                "CREATE OR REPLACE TABLE b (id INT PRIMARY KEY, x INT) ENGINE=" + engine,
                "CREATE OR REPLACE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, x INT) ENGINE=" + engine,
                f"INSERT INTO a SELECT seq * 7919 % 1000003 * 2, seq FROM seq_1_to_{rows}",
                "INSERT INTO b VALUES (-5, 1), (100000001, 1)")
            times[engine] = self.timed(
                f"{engine}: {rows} missing keys",
                "INSERT INTO c (x) SELECT a.x FROM a LEFT JOIN b ON b.id = a.id + 1 WHERE b.id IS NULL",
                beside="INSERT INTO b SELECT MIN(id) - 1, 1 FROM b")
        if times["Teak"] > 4 * times["InnoDB"] + 1:
            print(f"  FAILED: {times['Teak']:.1f} s with Teak, {times['InnoDB']:.1f} s with InnoDB")
            self.failed += 1

    def many_rows(self, rows):
        for engine in ("InnoDB", "Teak"):
            self.execute(
                "CREATE OR REPLACE TABLE u (id INT PRIMARY KEY, x INT) ENGINE=" + engine,
                "CREATE OR REPLACE TABLE v (id INT AUTO_INCREMENT PRIMARY KEY, x INT) ENGINE=" + engine,
                f"INSERT INTO u SELECT seq, seq FROM seq_1_to_{rows}")
            for name, statement in (("UPDATE", "UPDATE u SET x = x + 1"),
                                    ("INSERT ... SELECT", "INSERT INTO v (x) SELECT x FROM u"),
                                    ("SELECT ... FOR UPDATE", "SELECT SUM(x) FROM u FOR UPDATE")):
                self.timed(f"{engine}: {name} of {rows}", statement)
                self.check_locks(2 * MIB)

    def scattered_rows(self, rows):
        self.execute("CREATE OR REPLACE TABLE s (id BINARY(16) PRIMARY KEY, x INT)",
                     f"INSERT INTO s SELECT UNHEX(MD5(seq)), seq FROM seq_1_to_{rows}",
                     "SET GLOBAL teak_lock_max_size = 8 << 20")
        self.timed(f"Teak: FOR UPDATE of {rows} scattered", "SELECT SUM(x) FROM s FOR UPDATE")
        self.check_locks(12 * MIB)
        self.execute("SET GLOBAL teak_lock_max_size = DEFAULT")
        self.timed("Teak: the same, enough memory", "SELECT SUM(x) FROM s FOR UPDATE")

    def two_of_scattered_rows(self, rows):
        """The second of two transactions cannot lock a stretch of the table in which the first has one: it fails and is rolled
        back before the locks take three times what they may."""
        self.execute(f"CREATE OR REPLACE TABLE s (id INT PRIMARY KEY, x INT) SELECT seq * 2 id, seq x FROM seq_1_to_{3 * rows}",
                     "SET GLOBAL teak_lock_max_size = 1 << 20")
        lock = "SELECT COUNT(x) FROM seq_%d_to_%d STRAIGHT_JOIN s ON s.id = seq * 2 FOR UPDATE"
        first, second = self.server.connect(read_timeout=600), self.server.connect(read_timeout=600)
        with first.cursor() as a, second.cursor() as b:
            a.execute(lock % (1, 2000))
            b.execute(lock % (rows, 2 * rows))
            failure = None
            try:
                a.execute(lock % (2 * rows + 1, 3 * rows))
            except pymysql.MySQLError as error:
                failure = error.args[0]
            taken = self.locks_of(b)
            b.execute("SELECT x FROM s WHERE id = 2 FOR UPDATE NOWAIT")
            b.execute(lock % (2 * rows + 1, 3 * rows))
        print(f"Teak: two of {rows} scattered: error {failure}, locks {taken / MIB:.2f} MiB", flush=True)
        if failure != 1206 or taken > 2 * MIB:
            print("  FAILED: error 1206 and a rollback are expected")
            self.failed += 1
        first.close()
        second.close()
        self.execute("SET GLOBAL teak_lock_max_size = DEFAULT")


def main():
    options = parser(__doc__, cache_mib=64)
    options.add_argument("--missing", type=int, nargs="*", default=[40000, 80000, 160000])
    options.add_argument("--rows", type=int, nargs="*", default=[1500000])
    options.add_argument("--check", action="store_true")
    arguments = options.parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start([f"--teak-cache-size={arguments.cache_mib}M", f"--innodb-buffer-pool-size={arguments.cache_mib}M",
                  "--innodb-log-file-size=64M"])
    try:
        run = Run(server)
        for rows in arguments.missing:
            run.missing_keys(rows)
        for rows in arguments.rows:
            run.many_rows(rows)
            run.scattered_rows(rows // 3)
            run.two_of_scattered_rows(rows // 2)
    finally:
        server.stop()
    sys.exit(1 if arguments.check and run.failed else 0)


if __name__ == "__main__":
    main()
