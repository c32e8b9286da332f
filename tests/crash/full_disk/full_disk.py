#!/usr/bin/env python3
"""A disk that is full: what was acknowledged stays, reading goes on, and what gives space back works.

The engine's directory is a small tmpfs. Prints 'N passed, N failed', a case each.
"""

import functools
import os
import subprocess
import sys
import time

import pymysql

from kit.cases import Failure, carry_out, cases_of, check
from kit.options import parser
from kit.server import Server

MEBIBYTES = 64
FULL = {1021, 1114}
OPTIONS = ["--teak-cache-size=16M", "--teak-log-segment-size=4M", "--teak-checkpoint-log-size=8M"]


class Tests:
    """A server whose disk is filled anew for each case."""

    def __init__(self, arguments):
        self.server = Server(arguments.directory, arguments.plugin_dir)
        self.disk = os.path.join(arguments.directory, "disk")
        self.stored = {}

    def mount(self):
        """The disk, empty."""
        os.makedirs(self.disk, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", self.disk], check=True)

    def start(self):
        """The server, with its engine on that disk."""
        self.server.start([f"--teak-data-home-dir={self.disk}/teak", *OPTIONS])

    def execute(self, statement):
        """The number of rows that a statement changed."""
        connection = self.server.connect(autocommit=True)
        try:
            with connection.cursor() as cursor:
                return cursor.execute(statement)
        finally:
            connection.close()

    def value(self, statement):
        """Of the first column of the first row."""
        return self.server.query(statement)[0][0]

    def refused(self, statement):
        """The statement fails since the disk is full, and says so."""
        try:
            self.execute(statement)
        except pymysql.err.MySQLError as error:
            check(error.args[0] in FULL, f"{statement[:60]}: {error.args}")
            return True
        return False

    def fill(self):
        """Two tables, and rows until the disk has no more room; notes how many each has."""
        for table in ("a", "b"):
            self.execute(f"CREATE OR REPLACE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, v INT, pad VARBINARY(1000), KEY (v)) ENGINE=Teak")
        self.stored = {"a": 0, "b": 0}
        refusals = 0
        for number in range(4000):
            table = "ab"[number % 2]
            # Bytes that nothing compresses.
            rows = ", ".join("(FLOOR(RAND() * 1000), RANDOM_BYTES(1000))" for _ in range(50))
            if self.refused(f"INSERT INTO {table} (v, pad) VALUES {rows}"):
                refusals += 1
                if refusals == 3:
                    return
            else:
                self.stored[table] += 50
        raise AssertionError("the disk never was full")

    def compare(self):
        """Rows, read by each index, are those that were acknowledged."""
        for table, rows in self.stored.items():
            for index in ("PRIMARY", "v"):
                found = self.value(f"SELECT COUNT(*) FROM {table} FORCE INDEX ({index}) WHERE {'id' if index == 'PRIMARY' else 'v'} >= 0")
                check(found == rows, f"{table} has {found} rows by {index}, {rows} were acknowledged")

    def until_writable(self, table):
        """Inserts go on, soon after there is room."""
        end = time.monotonic() + 30
        while self.refused(f"INSERT INTO {table} (v, pad) VALUES (1, 'x')"):
            check(time.monotonic() < end, "half a minute after space was given back inserts are still refused")
            time.sleep(0.1)
        self.stored[table] += 1

    def case_reading_goes_on(self):
        """Also of more than fits the cache, more than once."""
        for _ in range(2):
            self.compare()
            check(self.value("SELECT SUM(LENGTH(pad)) FROM a") >= 1000 * (self.stored["a"] - 50), "the values")

    def case_delete_gives_space_back(self):
        """All rows of a table, some hundred at a time."""
        while self.stored["a"] > 0:
            self.stored["a"] -= self.execute("DELETE FROM a ORDER BY id LIMIT 500")
        self.until_writable("b")
        self.compare()

    def case_one_big_delete(self):
        """Half of a table with one statement."""
        self.stored["a"] -= self.execute("DELETE FROM a WHERE id % 2 = 0")
        self.until_writable("b")
        self.compare()

    def case_truncate_gives_space_back(self):
        """The other table takes it."""
        self.execute("TRUNCATE TABLE a")
        self.stored["a"] = 0
        self.until_writable("b")
        self.compare()

    def case_drop_gives_space_back(self):
        """Likewise."""
        self.execute("DROP TABLE a")
        del self.stored["a"]
        self.until_writable("b")
        self.compare()

    def case_a_checkpoint_that_fails_says_so(self):
        """SET GLOBAL teak_checkpoint_now is an error where the checkpoint was none."""
        try:
            self.execute("SET GLOBAL teak_checkpoint_now = ON")
        except pymysql.err.MySQLError as error:
            check(error.args[0] in FULL, str(error.args))
        else:
            check(self.value("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Teak_checkpoints'") != "0", "no checkpoint was made")

    def case_killed_on_a_full_disk(self):
        """SIGKILL, a start on the full disk, a drop, and on it goes."""
        self.server.kill()
        self.start()
        self.compare()
        self.execute("DROP TABLE a")
        del self.stored["a"]
        self.until_writable("b")
        self.compare()

    def case_an_export_of_a_full_engine(self):
        """It goes elsewhere; what it needs of the engine's disk is a checkpoint, for which there may be no room. Nothing is left of it, whatever became
        of it."""
        print(f"  {'refused' if self.refused('FLUSH TABLES a FOR EXPORT') else 'made'}", flush=True)
        end = time.monotonic() + 30
        while os.path.exists(self.export_path("a")):
            check(time.monotonic() < end, "the file of an export is there when its connection is gone")
            time.sleep(0.05)
        self.compare()

    def case_an_export_to_a_full_disk(self):
        """The file does not fit: an error says so, nothing is left of it, and the table is used as before."""
        home = os.path.dirname(self.export_path("a"))
        # There has to be a checkpoint.
        self.execute("TRUNCATE TABLE b")
        self.stored["b"] = 0
        self.until_writable("b")
        # The server has the definitions open; what is below this is of no use to it but for the export.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", home], check=True)
        try:
            check(self.refused("FLUSH TABLES a FOR EXPORT"), "there is an export on a disk that is full")
            check(os.listdir(home) == [], f"{os.listdir(home)} is left")
        finally:
            subprocess.run(["umount", home], check=True)
        self.stored["a"] -= self.execute("DELETE FROM a WHERE id % 100 = 0")
        self.until_writable("a")
        self.compare()

    def case_an_import_to_a_full_disk(self):
        """The rows do not fit: the table stays discarded, and is imported when there is room."""
        self.execute("TRUNCATE TABLE b")
        self.until_writable("b")
        content = self.exported("a")
        self.execute("ALTER TABLE a DISCARD TABLESPACE")
        with open(self.export_path("a"), "wb") as file:
            file.write(content)
        while not self.refused("INSERT INTO b (v, pad) SELECT 1, RANDOM_BYTES(1000) FROM seq_1_to_500"):
            pass
        for _ in range(2):
            check(self.refused("ALTER TABLE a IMPORT TABLESPACE"), "a table is imported that does not fit")
            check(os.path.exists(self.export_path("a")), "the file of an import that failed is gone")
        self.execute("TRUNCATE TABLE b")
        self.stored["b"] = 0
        self.until_writable("b")
        self.execute("ALTER TABLE a IMPORT TABLESPACE")
        self.compare()
        self.until_writable("a")

    def files(self):
        """Of the engine's tables, which a statement that failed leaves as they were."""
        return sorted(name for name in os.listdir(os.path.join(self.disk, "teak")) if name.endswith(".teak"))

    def case_a_rebuild_does_not_fit(self):
        """ALTER that writes all rows anew beside writers: an error says so, the table is what it was, and nothing is left of the other one."""
        before = self.files()
        for _ in range(2):
            check(self.refused("ALTER TABLE a FORCE, ALGORITHM=INPLACE, LOCK=NONE"), "a table is rebuilt on a disk that is full")
            self.compare()
        check(self.files() == before, f"{self.files()} instead of {before}")
        self.grow()
        self.until_writable("b")
        self.execute("ALTER TABLE a FORCE, ALGORITHM=INPLACE, LOCK=NONE")
        self.until_writable("a")
        self.compare()

    def optimized(self, table):
        """Whether OPTIMIZE TABLE came to its end; if not, it says that the disk is full."""
        answer = self.server.query(f"OPTIMIZE TABLE {table}")
        if answer[-1][2:] == ("status", "OK"):
            return True
        check(any("full" in row[3] or "space" in row[3] for row in answer), str(answer))
        return False

    def case_optimize_on_a_full_disk(self):
        """Of a table that is full, of one of which half was deleted, and of one whose rows become longer by it."""
        print(f"  full: {self.optimized('a')}", flush=True)
        self.compare()
        self.stored["a"] -= self.execute("DELETE FROM a WHERE id % 2 = 0")
        print(f"  half: {self.optimized('a')}", flush=True)
        self.compare()
        self.grow()
        self.until_writable("b")
        check(self.optimized("a"), "OPTIMIZE of a half deleted table, where there is room")
        self.compare()
        # The rows of b become longer.
        self.execute("ALTER TABLE b ADD COLUMN late VARBINARY(3000) DEFAULT 'late', ALGORITHM=INSTANT")
        while not self.refused("INSERT INTO a (v, pad) SELECT 1, RANDOM_BYTES(1000) FROM seq_1_to_200"):
            self.stored["a"] += 200
        print(f"  longer: {self.optimized('b')}", flush=True)
        self.compare()
        self.execute("TRUNCATE TABLE a")
        self.stored["a"] = 0
        self.until_writable("a")
        check(self.optimized("b"), "OPTIMIZE of a table with two layouts, where there is room")
        self.compare()
        check(self.value("SELECT COUNT(*) FROM b WHERE late = 'late'") == self.stored["b"], "the default of rows from before")

    def export_path(self, table):
        """The file of an exported table, or of one that is to be imported."""
        return os.path.join(self.server.data, "test", f"{table}.teak")

    def exported(self, table):
        """What an export has."""
        connection = self.server.connect(autocommit=True)
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"FLUSH TABLES {table} FOR EXPORT")
            with open(self.export_path(table), "rb") as file:
                return file.read()
        finally:
            connection.close()

    def grow(self):
        """The disk, to twice its size."""
        subprocess.run(["mount", "-o", f"remount,size={2 * MEBIBYTES}m", self.disk], check=True)

    def case_a_disk_that_grows(self):
        """From outside; nobody restarts anything."""
        self.grow()
        self.until_writable("a")
        self.compare()

    def on_fresh_disk(self, case):
        """The case on a disk of its own, with tables, and a server that is well afterwards."""
        @functools.wraps(case)
        def run():
            self.mount()
            try:
                self.start()
                self.fill()
                case()
                self.execute("DROP TABLE IF EXISTS a, b")
                self.server.stop()
                log = self.server.log_end(200)
                check("panick" not in log, log)
            except Exception as error:
                self.server.kill()
                # The server's own files of those tables would be in the way.
                subprocess.run(["rm", "-rf", os.path.join(self.server.data, "test")], check=True)
                os.makedirs(os.path.join(self.server.data, "test"))
                raise Failure(f"{type(error).__name__}: {error}\n{self.server.log_end(12)}") from error
            finally:
                subprocess.run(["umount", self.disk], check=True)
        return run


def main():
    """Runs the cases."""
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    tests = Tests(arguments)
    tests.server.install()
    return carry_out([tests.on_fresh_disk(case) for case in cases_of(tests)], arguments.names, recover=lambda: None)


if __name__ == "__main__":
    sys.exit(main())
