"""Files of tables that are damaged while a server runs, each in another part: nothing else is the worse for it."""

import os
import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.options import parser, seed
from kit.server import Server

# Bytes that a file begins with, before its blocks.
HEADER = 4096
# Stretches of what is behind it: leaves of the rows and of the index, pages above them, large values.
STRETCHES = 6
PARTS = ("header", *range(STRETCHES), "blocks", "all")
ROWS = 12000
OPTIONS = ["--teak-cache-size=64M", "--teak-checkpoint-log-size=1M", "--teak-snapshot-isolation=ON", "--lock-wait-timeout=60"]
# The index has more leaves than are read for statistics when a table is opened.
COLUMNS = "(id INT PRIMARY KEY, v INT, pad MEDIUMTEXT, KEY kv (v, pad(250))) ENGINE=Teak"
# Of the first numbers: what no compression makes smaller, and of some rows what has an extent of its own.
PAD = "CONCAT(SHA2(seq, 512), SHA2(-seq, 512), IF(seq % 300 = 0, (SELECT GROUP_CONCAT(SHA2(s.seq * {0}, 512)) FROM seq_1_to_300 s), ''))"
LOST = (2006, 2013, 2055)


class Wrong(Exception):
    """What must not happen."""


def fill(server, table, number=1):
    """A table of rows, an index in another order, and large values; its file."""
    engine = os.path.join(server.data, "#teak")
    before = set(os.listdir(engine))
    server.query(f"CREATE TABLE {table} {COLUMNS}")
    (file,) = set(os.listdir(engine)) - before
    server.query(f"INSERT INTO {table} SELECT seq, seq * 7919 % 100003, {PAD.format(number)} FROM seq_1_to_{ROWS}", init_command="SET group_concat_max_len = 1000000")
    return os.path.join(engine, file)


def damage(path, part):
    """Turns bits over in that part of the file."""
    size = os.path.getsize(path)
    step = (size - HEADER) // STRETCHES
    begin, end = {"header": (0, HEADER), "blocks": (HEADER, size), "all": (0, size)}.get(part) or (HEADER + part * step, HEADER + (part + 1) * step)
    with open(path, "r+b") as file:
        file.seek(begin)
        content = file.read(end - begin)
        file.seek(begin)
        file.write(bytes(byte ^ 0x55 for byte in content))


class Worker(threading.Thread):
    """Work on tables of its own, none of which is damaged: each statement of it has to succeed, and do what it says."""

    def __init__(self, server, seed):
        super().__init__()
        self.server, self.random = server, random.Random(seed)
        self.stopped, self.failure, self.statements = threading.Event(), None, 0

    def run(self):
        try:
            connection = self.server.connect(autocommit=True)
            while not self.stopped.is_set():
                self.work(lambda text: self.do(connection, text))
            connection.close()
        except Exception as error:  # noqa: BLE001  (told by the main thread)
            self.failure = f"{type(self).__name__}: {error!r}"

    def do(self, connection, text):
        """Rows of a statement, or how many it changed."""
        self.statements += 1
        with connection.cursor() as cursor:
            changed = cursor.execute(text)
            return cursor.fetchall() if cursor.description else changed

    def end(self):
        self.stopped.set()
        self.join()


class Writer(Worker):
    """Inserts, changes and deletes ranges of a table, in transactions, some of which it rolls back; knows each row."""

    def __init__(self, server, number, values=None):
        super().__init__(server, number)
        self.number, self.table = number, f"good_{number}"
        self.values = values or {key: key * 7919 % 100003 for key in range(1, ROWS + 1)}

    def work(self, do):
        values = dict(self.values)
        do("BEGIN")
        for _ in range(self.random.randrange(1, 4)):
            first = self.random.randrange(1, 2 * ROWS)
            last = first + self.random.randrange(400)
            within = [key for key in range(first, last + 1) if key in values]
            kind = self.random.randrange(3)
            if kind == 0:
                expected = last - first + 1 - len(within)
                got = do(f"INSERT IGNORE INTO {self.table} SELECT seq, seq, SHA2(seq, 512) FROM seq_{first}_to_{last}")
                values.update((key, key) for key in range(first, last + 1) if key not in values)
            elif kind == 1:
                expected = len(within)
                got = do(f"UPDATE {self.table} SET v = v + 1 WHERE id BETWEEN {first} AND {last}")
                values.update((key, values[key] + 1) for key in within)
            else:
                expected = len(within)
                got = do(f"DELETE FROM {self.table} WHERE id BETWEEN {first} AND {last}")
                for key in within:
                    del values[key]
            if got != expected:
                raise Wrong(f"{got} rows of {self.table} were changed instead of {expected}")
        if self.random.randrange(5) == 0:
            do("ROLLBACK")
        else:
            do("COMMIT")
            self.values = values

    def compare(self, server):
        """The table has what was committed, by its rows and by its index."""
        for index in ("PRIMARY", "kv"):
            found = dict(server.query(f"SELECT id, v FROM {self.table} FORCE INDEX ({index})"))
            if found != self.values:
                raise Wrong(f"{self.table} by {index}: {len(found)} rows instead of {len(self.values)}, or others")
        (*_, result), = server.query(f"CHECK TABLE {self.table} EXTENDED")
        if result != "OK":
            raise Wrong(f"{self.table}: {result}")


class Reader(Worker):
    """Old snapshots of the writers' tables: what has to be kept for them, and is collected when they end."""

    def work(self, do):
        do("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        question = "SELECT COUNT(*), SUM(v), SUM(CRC32(pad)) FROM {}"
        seen = [do(question.format(table)) for table in ("good_0", "good_1")]
        self.stopped.wait(0.5)
        if seen != [do(question.format(table)) for table in ("good_0", "good_1")]:
            raise Wrong("a snapshot has changed")
        do("COMMIT")


class InMemory(Worker):
    """A table without a file, whose changes are settled by the thread that collects history, and one that is made and dropped."""

    def work(self, do):
        do("REPLACE INTO memory SELECT seq, seq FROM seq_1_to_2000")
        do("DELETE FROM memory WHERE id % 3 > 0")
        do("CREATE TABLE passing (id INT PRIMARY KEY) ENGINE=Teak")
        do("INSERT INTO passing SELECT seq FROM seq_1_to_1000")
        do("ALTER TABLE passing ADD v INT, ADD KEY (v)")
        do("DROP TABLE passing")


class Beside:
    """One server with damaged tables and others."""

    def __init__(self, server, teak, seed):
        self.server, self.teak, self.seed = server, teak, seed
        self.outcomes, self.workers, self.writers, self.files, self.refused = {}, [], [], {}, 0

    def status(self, name):
        (_, value), = self.server.query(f"SHOW GLOBAL STATUS LIKE 'teak_{name}'")
        return int(value)

    def checkpoint(self):
        """One has to succeed, whatever is damaged, and none may have failed."""
        before = self.status("checkpoints")
        self.server.query("SET GLOBAL teak_checkpoint_now = 1")
        if self.status("checkpoints") <= before or self.status("checkpoints_failed"):
            raise Wrong("a checkpoint has failed")

    def on_damaged(self, table, statement):
        """A statement on a damaged table, which may fail; rows, or the error."""
        try:
            return self.server.query(statement), None
        except pymysql.MySQLError as error:
            if error.args[0] in LOST or not self.server.is_running():
                raise Wrong(f"{statement}: {error}") from error
            self.outcomes.setdefault(table, set()).add(error.args[0])
            self.refused += 1
            return None, error

    def damage_one(self, part):
        """What the background, and sessions, meet first of a table that is damaged behind their backs."""
        table = f"bad_{part}"
        # The way to all leaves is in memory, and the last one of the rows.
        self.server.query(f"SELECT v FROM {table} WHERE id = {ROWS}")
        self.server.query(f"SELECT id FROM {table} FORCE INDEX (kv) WHERE v = 1")
        damage(self.files[table], part)
        # Entries of the index are written without a look at what is there: the checkpoint is the first, as they are
        # more than an eighth of each leaf. (Of fewer it would write what has changed, and not look either.)
        self.on_damaged(table, f"INSERT INTO {table} SELECT seq, seq * 31 % 100003, SHA2(seq, 512) FROM seq_{ROWS + 1}_to_{ROWS + ROWS * 3 // 8}")
        self.checkpoint()
        found, _ = self.on_damaged(table, f"SELECT id, v FROM {table} FORCE INDEX (PRIMARY) WHERE id <= {ROWS}")
        if found is not None and dict(found) != {key: key * 7919 % 100003 for key in range(1, ROWS + 1)}:
            raise Wrong(f"{table}: wrong rows, and no error")
        for statement in ("UPDATE {} SET v = v + 1 WHERE id % 7 = 0", "SELECT SUM(LENGTH(pad)) FROM {}", "DELETE FROM {}", "CHECK TABLE {}"):
            self.on_damaged(table, statement.format(table))
        self.checkpoint()
        self.listed()

    def listed(self):
        """Lists of all tables have the others, at least, whole."""
        for statement in ("SELECT TABLE_NAME FROM information_schema.TEAK_TABLES WHERE TABLE_SCHEMA = 'test'", "SHOW TABLE STATUS"):
            if not {"good_0", "good_1"} <= {row[0] for row in self.server.query(statement)}:
                raise Wrong(f"{statement} lacks tables")

    def collected(self):
        """Without snapshots nothing is kept for them, damaged tables or not."""
        limit = time.monotonic() + 60
        while self.status("history_bytes") > 1 << 20:
            if time.monotonic() > limit:
                raise Wrong(f"history is not collected: {self.status('history_bytes')} bytes")
            time.sleep(0.1)

    def backup(self, name, *options):
        directory = os.path.join(self.server.directory, name)
        command = [self.teak, "backup", f"--socket={self.server.socket}", "--user=root", "--no-defaults", *options, directory]
        return directory, subprocess.run(command, capture_output=True, text=True, check=False)

    def backups(self, whole):
        """With all tables it is refused, and names those that are damaged; without these it is made."""
        directory, done = self.backup(f"backup_{whole}_all")
        if done.returncode != 3 or any(f"test/{table}" not in done.stderr for table in self.outcomes):
            raise Wrong(f"teak backup beside damaged tables ended with {done.returncode}: {done.stdout}{done.stderr}")
        directory, done = self.backup(f"backup_{whole}", "--tables-exclude=^test[.]bad_")
        verified = subprocess.run([self.teak, "backup", "verify", directory], capture_output=True, text=True, check=False)
        if done.returncode or verified.returncode:
            raise Wrong(f"teak backup without the damaged tables: {done.stdout}{done.stderr}{verified.stdout}{verified.stderr}")

    def prepare(self):
        self.server.query("CREATE DATABASE IF NOT EXISTS test", database=None)
        self.server.query("CREATE TABLE memory (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=Teak IN_MEMORY=YES")
        tables = ["good_0", "good_1", *(f"bad_{part}" for part in PARTS)]
        self.files = {table: fill(self.server, table, number) for number, table in enumerate(tables, 1)}
        self.server.query("SET GLOBAL teak_checkpoint_now = 1")
        # Nothing of them is in memory then.
        self.server.stop()
        self.server.start(OPTIONS)

    def begin(self):
        self.writers = [Writer(self.server, writer.number, writer.values) for writer in self.writers]
        self.workers = [*self.writers, Reader(self.server, self.seed), InMemory(self.server, self.seed)]
        for worker in self.workers:
            worker.start()

    def look_after_workers(self):
        for worker in self.workers:
            if worker.failure:
                raise Wrong(worker.failure)

    def end(self):
        for worker in self.workers:
            worker.end()
        self.look_after_workers()
        for writer in self.writers:
            writer.compare(self.server)
        self.collected()

    def run(self, seconds):
        self.prepare()
        self.writers = [Writer(self.server, number) for number in range(2)]
        self.begin()
        began = time.monotonic()
        for part in PARTS:
            self.damage_one(part)
            self.look_after_workers()
        while time.monotonic() < began + seconds:
            # Somebody asks again and again.
            table = f"bad_{random.choice(PARTS)}"
            self.on_damaged(table, f"SELECT SUM(LENGTH(pad)) FROM {table}")
            self.on_damaged(table, f"INSERT INTO {table} VALUES ({random.randrange(10**6, 10**9)}, 1, '')")
            self.look_after_workers()
            time.sleep(0.05)
        self.checkpoint()
        self.end()
        statements = sum(worker.statements for worker in self.workers)
        checkpoints, failed = self.status("checkpoints"), self.status("checkpoints_failed")
        closed = sum(f"table 'test/bad_{part}' is closed" in self.server.log_end(10**6) for part in PARTS)
        self.backups("before")
        for stop in (self.server.kill, self.server.stop):
            self.begin()
            time.sleep(1)
            self.look_after_workers()
            self.end()
            stop()
            self.server.start(OPTIONS)
            for writer in self.writers:
                writer.compare(self.server)
            self.checkpoint()
        self.backups("after")
        for part in PARTS:
            self.server.query(f"DROP TABLE bad_{part}")
        self.checkpoint()
        _, done = self.backup("backup_dropped")
        if done.returncode:
            raise Wrong(f"teak backup when the damaged tables are dropped: {done.stdout}{done.stderr}")
        self.server.stop()
        checked = subprocess.run([self.teak, "check", self.server.data], capture_output=True, text=True, check=False)
        if checked.returncode:
            raise Wrong(f"teak check: {checked.stdout}{checked.stderr}")
        print(f"{statements} statements on other tables in {time.monotonic() - began:.0f} s, none failed; {checkpoints} checkpoints, {failed} failed; "
              f"{self.refused} statements on {len(self.outcomes)} of {len(PARTS)} damaged tables were refused, {closed} were closed")
        if len(self.outcomes) < 4 or closed < 2:
            raise Wrong(f"the damage was met too seldom: {self.outcomes}, {closed} tables were closed by a checkpoint")


def main():
    arguments = parser(__doc__, seconds=0).parse_args()
    arguments.seed = seed()
    random.seed(arguments.seed)
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start(OPTIONS)
    beside = Beside(server, arguments.teak, arguments.seed)
    try:
        beside.run(arguments.seconds)
        print("1 passed, 0 failed")
    except Wrong as wrong:
        print(f"seed {arguments.seed}: FAILED: {wrong}\n{server.log_end(30)}\n0 passed, 1 failed")
        sys.exit(1)
    finally:
        for worker in beside.workers:
            worker.stopped.set()
        server.kill()


if __name__ == "__main__":
    main()
