#!/usr/bin/env python3
"""The bound of the server's memory, in every kind of work that it does: the peak of each may be

    what the server has without work + teak_cache_size + what its leaves take + 1 MiB a thread + 16 MiB for the log + 5 %

Through: loads, many small transactions of eight sessions, checkpoints, long transactions, statements that only read (which write nothing to the
spill file), OPTIMIZE and ALTER, a backup, SIGKILL and recovery, many idle sessions. Where this user may make a control group, the server is in
one of teak_cache_size + 192 MiB (and 75 KiB for each of the idle sessions). What the engine says of its memory is compared with what the process
has: what it has no name for stays.
With --minutes all of it goes on in random order, the server is killed now and then, and tables are checked. Prints 'N passed, N failed'.
"""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import pymysql

from kit.cgroup import MemoryLimit
from kit.options import parser, seed
from kit.server import Server

from memory import MIB, Steps

GROUP_BYTES = 192 * MIB
THREAD_BYTES = MIB
SESSION_BYTES = 75 << 10
LOG_BYTES = 16 * MIB
TABLES = 4
SESSIONS = 8
COLUMNS = "id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)"
DIGITS = "CONCAT_WS('-', " + ", ".join(["LPAD(FLOOR(RAND() * 1e11), 11, '0')"] * 10) + ")"
# What the sessions do again and again, each in a transaction of its own; `r` is any row.
SMALL = {
    "look-ups": "SELECT c INTO x FROM t WHERE id = r",
    "updates": "UPDATE t SET c = REVERSE(c) WHERE id = r",
    "updates of an index": "UPDATE t SET k = k + 1 WHERE id = r",
    "deletes": "DELETE FROM t WHERE id = r",
    "inserts": "REPLACE INTO t VALUES (r, r, SHA2(RAND(), 256), SHA2(r, 224))",
    "values": f"REPLACE INTO large VALUES (r MOD 40, REPEAT({DIGITS}, 1500))",
}
LOOP = """CREATE PROCEDURE {name}{number}(seconds INT) BEGIN
    DECLARE r INT; DECLARE x CHAR(120); DECLARE ends DATETIME(6) DEFAULT SYSDATE(6) + INTERVAL seconds SECOND;
    WHILE SYSDATE(6) < ends DO SET r = 1 + FLOOR(RAND() * {rows}); {statement}; END WHILE; END"""


def procedure(name):
    """What the procedures for small transactions are called, before the number of their table."""
    return name.replace(" ", "_").replace("-", "_")


class Bound(Steps):
    """The server, what it had without work, and its tables."""

    def __init__(self, server, arguments):
        super().__init__(server, arguments.cache_mib * MIB)
        self.rows, self.seconds, self.teak = arguments.rows, arguments.seconds, arguments.teak
        self.random = random.Random(arguments.seed)
        self.options = [f"--teak-cache-size={self.cache}", "--teak-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=8M",
                        "--max-connections=1200", "--thread-stack=192K", "--teak-data-file-buffering=OFF"]
        # What the server itself needs for a session that does nothing.
        sessions = arguments.sessions * SESSION_BYTES
        self.group = MemoryLimit(f"teak-bound-{os.getpid()}", self.cache + GROUP_BYTES + sessions)
        self.alone = self.rest_alone = 0
        self.most_threads = 0

    def start(self):
        """The server, and what it has while nobody wants anything of it."""
        with self.group.inside():
            self.server.start(self.options)
        if not self.alone:
            self.server.query("SELECT COUNT(*) FROM information_schema.tables")
            self.alone, self.rest_alone = self.server.memory()[0], self.status()["rest"]

    def count_threads(self):
        """Notes how many threads the server has, if those are more than before."""
        self.most_threads = max(self.most_threads, len(os.listdir(f"/proc/{self.server.process.pid}/task")))

    def status(self):
        """What the engine says of memory, without the beginning of its names, and of spilling."""
        rows = self.server.query("SHOW GLOBAL STATUS WHERE variable_name LIKE 'Teak_memory_%' OR variable_name = 'Teak_spill_bytes_written'")
        return {name.removeprefix("Teak_memory_"): int(value) for name, value in rows}

    def work(self, name, action):
        """One step; its limit is what it needs at most. Afterwards all memory has a name, but for what it may have."""
        self.most_threads = 0
        self.count_threads()
        leaves = self.status()["leaves"]

        def judged():
            action()
            now = self.status()
            self.count_threads()
            self.limit = (self.alone + self.cache + max(leaves, now["leaves"]) + self.most_threads * THREAD_BYTES + LOG_BYTES) * 21 // 20
            known = self.rest_alone + self.most_threads * THREAD_BYTES + now["resident"] // 20
            # Holes between small objects are in the cache's count.
            holes = max(0, self.counters()["Teak_cache_bytes_used"] - now["slabs"] - now["small"])
            if now["rest"] > known + holes:
                raise AssertionError(f"{now['rest'] / MIB:.0f} MiB without a name, at most {(known + holes) / MIB:.0f} expected")

        self.limit = 1 << 60
        failed = self.failed
        with self.watched() as seen:
            self.step(name, judged)
        if self.failed > failed and seen:
            names = max(seen, key=lambda status: status["resident"])
            print("    at its most: " + ", ".join(f"{name} {value / MIB:.0f}" for name, value in names.items()) + f"; {self.most_threads} threads")

    @contextlib.contextmanager
    def watched(self):
        """What the engine says of memory meanwhile, five times a second."""
        seen, ended = [], threading.Event()

        def watch():
            while not ended.wait(0.2):
                with contextlib.suppress(pymysql.err.MySQLError):
                    seen.append(self.status())
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield seen
        finally:
            ended.set()
            watcher.join()

    def at_once(self, statement, sessions=SESSIONS):
        """A statement by several sessions, each on its table: `{t}` is its number."""
        errors = []

        def client(number):
            try:
                self.count_threads()
                self.server.query(statement.format(t=number % TABLES), read_timeout=600)
            except pymysql.err.MySQLError as error:
                errors.append(error)
        threads = [threading.Thread(target=client, args=(number,)) for number in range(sessions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def create(self):
        """Tables and procedures."""
        self.server.query("CREATE TABLE large (id INT PRIMARY KEY, v LONGTEXT) ENGINE=Teak")
        for number in range(TABLES):
            self.server.query(f"CREATE TABLE t{number} ({COLUMNS}) ENGINE=Teak")
            for name, statement in SMALL.items():
                self.server.query(LOOP.format(name=procedure(name), number=number, rows=self.rows,
                                              statement=statement.replace(" t ", f" t{number} ")))

    def small(self, name):
        """Small transactions of all sessions."""
        before = self.status()["Teak_spill_bytes_written"]
        self.at_once(f"CALL {procedure(name)}{{t}}({self.seconds})")
        return self.status()["Teak_spill_bytes_written"] - before

    def only_reads(self):
        """After a checkpoint nothing has to be written because it was read: each leaf once more at most, as those of the checkpoint are."""
        self.checkpoint()
        self.small("look-ups")
        written = self.small("look-ups")
        if written:
            raise AssertionError(f"{written} bytes were written to the spill file by statements that only read")

    def checkpoint(self):
        """All changes to the tables' files."""
        self.server.query("SET SESSION teak_checkpoint_now = ON", read_timeout=600)

    def long_transaction(self):
        """All rows of two tables, in a transaction each that is rolled back."""
        self.at_once("BEGIN NOT ATOMIC START TRANSACTION; UPDATE t{t} SET c = CONCAT(LEFT(c, 60), id), k = k + 7; ROLLBACK; END", 2)

    def backup(self):
        """A copy of everything."""
        copy = os.path.join(self.server.directory, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run([self.teak, "backup", "--no-defaults", "--quiet", f"--socket={self.server.socket}", "--user=root", copy], check=True, capture_output=True)
        shutil.rmtree(copy)

    def recovery(self):
        """SIGKILL, and a start."""
        self.server.kill()
        self.start()

    def sessions(self, count):
        """Sessions that have read and written something and stay."""
        with contextlib.ExitStack() as stack:
            for number in range(count):
                connection = stack.enter_context(contextlib.closing(self.server.connect(autocommit=True)))
                with connection.cursor() as cursor:
                    cursor.execute(f"UPDATE t{number % TABLES} SET k = k + 1 WHERE id = {number + 1}")
            self.count_threads()

    def check(self):
        """All tables are whole, and their indexes have the same rows."""
        for number in range(TABLES):
            table = f"t{number}"
            verdict = self.server.query(f"CHECK TABLE {table}", read_timeout=600)[-1][3]
            found = [self.server.query(f"SELECT COUNT(*), SUM(id), SUM(k) FROM {table} FORCE INDEX ({index}) WHERE {column} > -1", read_timeout=600)
                     for index, column in (("PRIMARY", "id"), ("k", "k"))]
            if verdict != "OK" or found[0] != found[1]:
                raise AssertionError(f"{table}: {verdict}; by primary key {found[0]}, by k {found[1]}")

    def kinds(self, sessions):
        """All there is to do, in an order in which it may be done; the server is killed by one of them."""
        load = f"INSERT INTO t{{t}} SELECT seq, FLOOR(RAND() * {self.rows}), {DIGITS}, LEFT({DIGITS}, 59) FROM seq_1_to_{self.rows}"
        return [
            ("load of four tables", lambda: (self.at_once("TRUNCATE t{t}", TABLES), self.at_once(load, TABLES))),
            *((f"small transactions: {name}", lambda name=name: self.small(name)) for name in SMALL),
            ("checkpoint", self.checkpoint),
            ("reading alone", self.only_reads),
            ("updates of many rows", lambda: self.at_once("UPDATE t{t} SET c = CONCAT('x', LEFT(c, 100)) WHERE id % 40 IN (3, 17, 31)", TABLES)),
            ("checkpoint of many rows", self.checkpoint),
            ("long transactions, rolled back", self.long_transaction),
            ("deletes without a checkpoint", lambda: self.small("deletes")),
            ("recovery", self.recovery),
            ("ADD INDEX", lambda: self.at_once("ALTER TABLE t{t} ADD INDEX IF NOT EXISTS c (c(20))", TABLES)),
            ("DROP INDEX", lambda: self.at_once("ALTER TABLE t{t} DROP INDEX IF EXISTS c", TABLES)),
            ("OPTIMIZE", lambda: self.at_once("OPTIMIZE TABLE t{t}", TABLES)),
            ("ALTER by copy", lambda: self.at_once("ALTER TABLE t{t} FORCE, ALGORITHM=COPY", TABLES)),
            ("backup", self.backup),
            ("sessions", lambda: self.sessions(sessions)),
        ]

    def run(self, sessions, minutes):
        """Each kind of work once; and again, for so many minutes."""
        self.start()
        print(f"server alone: {self.alone / MIB:.0f} MiB; teak_cache_size {self.cache / MIB:.0f} MiB; {self.group.about}", flush=True)
        self.create()
        kinds = self.kinds(sessions)
        for name, action in kinds:
            self.work(name, action)
        self.work("CHECK TABLE", self.check)
        ends = time.monotonic() + 60 * minutes
        while time.monotonic() < ends:
            name, action = self.random.choice(kinds)
            if self.random.random() < 0.2:
                killer = threading.Timer(self.random.random() * 2 * self.seconds, self.server.process.kill)
                killer.start()
                with contextlib.suppress(pymysql.err.MySQLError, subprocess.CalledProcessError, AttributeError, RuntimeError):
                    action()
                killer.join()
                self.recovery()
                self.work(f"CHECK TABLE after a kill in: {name}", self.check)
            else:
                self.work(name, action)


def main():
    options = parser(__doc__, cache_mib=128)
    options.add_argument("--rows", type=int, default=500_000, help="of each of four tables")
    options.add_argument("--seconds", type=int, default=10, help="of small transactions")
    options.add_argument("--sessions", type=int, default=1000)
    options.add_argument("--minutes", type=float, default=0, help="of work in random order, after all was done once")
    arguments = options.parse_args()
    arguments.seed = seed()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    bound = Bound(server, arguments)
    try:
        bound.run(arguments.sessions, arguments.minutes)
    except (RuntimeError, pymysql.err.MySQLError) as error:
        print(f"FAILED: {error}")
        bound.failed += 1
    finally:
        server.kill()
        bound.group.remove()
    print(f"bound: {bound.passed} passed, {bound.failed} failed")
    return 1 if bound.failed else 0


if __name__ == "__main__":
    sys.exit(main())
