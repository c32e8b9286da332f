#!/usr/bin/env python3
"""Resident memory of a server while transactions write large values, each of which has an extent of its own.

The server's VmHWM has to stay below teak_cache_size + an allowance through: INSERT ... SELECT of texts that are many times the
cache, LOAD DATA of them, ALTER TABLE by copy, an UPDATE of all of them rolled back and one committed, a scan, and one value as
large as the cache. Contents are checked after each step. Prints 'large_values: N passed, N failed', a step each.
"""

import os
import sys

import pymysql

from kit.options import parser
from kit.server import Server

from memory import MIB, STATEMENT_SECONDS, Steps

TEXT_BYTES = 20_000
# Half of it cannot be compressed.
TEXT = "CONCAT(REPEAT(MD5({0}), 313), REPEAT(MD5({0} + 1), 312))"


class LargeValues(Steps):
    """Texts of 20,000 bytes, and one of many MiB."""

    def __init__(self, server, cache, allowance, texts, engine):
        super().__init__(server, cache, allowance)
        self.texts, self.engine = texts, engine

    def run_statements(self, *statements):
        """On one connection, which commits only when told to."""
        connection = self.server.connect(read_timeout=STATEMENT_SECONDS, local_infile=True)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()

    def create(self, table):
        """An empty table."""
        columns = "id INT PRIMARY KEY, body LONGTEXT CHARACTER SET latin1 NOT NULL"
        self.run_statements(f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} ({columns}) ENGINE={self.engine}")

    def expect(self, table, expression="body"):
        """All rows are there, as they were made."""
        found = self.server.query(f"SELECT COUNT(*), SUM(CRC32({expression})) FROM {table}")[0]
        # The same without any table.
        expected = self.server.query(f"SELECT COUNT(*), SUM(CRC32({TEXT.format('seq')})) FROM seq_1_to_{self.texts}")[0]
        if found != expected:
            raise AssertionError(f"{table}: {found}, expected {expected}")

    def insert_select(self):
        """All in one transaction."""
        self.create("texts")
        self.run_statements(f"INSERT INTO texts SELECT seq, {TEXT.format('seq')} FROM seq_1_to_{self.texts}", "COMMIT")
        self.expect("texts")

    def load_data(self):
        """From a file, in one transaction."""
        self.create("loaded")
        path = os.path.join(self.server.directory, "tmp", "texts")
        self.run_statements(f"SELECT seq, {TEXT.format('seq')} INTO OUTFILE '{path}' FROM seq_1_to_{self.texts}")
        try:
            self.run_statements(f"LOAD DATA INFILE '{path}' INTO TABLE loaded", "COMMIT")
        finally:
            os.remove(path)
        self.expect("loaded")
        self.run_statements("DROP TABLE loaded")

    def copy(self):
        """ALTER TABLE by copy."""
        self.run_statements("ALTER TABLE texts FORCE, ALGORITHM=COPY")
        self.expect("texts")

    def update(self, end):
        """Every text is another one afterwards, as long as before; or not."""
        self.run_statements("UPDATE texts SET body = REVERSE(body)", end)
        self.expect("texts", "body" if end == "ROLLBACK" else "REVERSE(body)")

    def savepoint(self):
        """Half of the work of a transaction is undone."""
        self.create("halves")
        half = self.texts // 2
        self.run_statements(
            f"INSERT INTO halves SELECT seq, {TEXT.format('seq')} FROM seq_1_to_{half}", "SAVEPOINT s",
            "UPDATE halves SET body = REVERSE(body)", "ROLLBACK TO s",
            f"INSERT INTO halves SELECT seq, {TEXT.format('seq')} FROM seq_{half + 1}_to_{self.texts}", "COMMIT")
        self.expect("halves")
        self.run_statements("DROP TABLE halves")

    def single(self, mebibytes):
        """One value."""
        self.create("single")
        self.run_statements(f"INSERT INTO single VALUES (1, REPEAT(MD5(1), {mebibytes} * 1048576 / 32))", "COMMIT")
        found = self.server.query("SELECT LENGTH(body) FROM single")[0][0]
        if found != mebibytes * MIB:
            raise AssertionError(f"{found} bytes")

    def run(self, mebibytes):
        """All steps."""
        baseline = self.server.memory()[0]
        print(f"server alone: {baseline / MIB:.0f} MiB; cache {self.cache / MIB:.0f} MiB; limit {self.limit / MIB:.0f} MiB; "
              f"{self.texts * TEXT_BYTES / MIB:.0f} MiB of texts", flush=True)
        self.step("INSERT ... SELECT, one transaction", self.insert_select)
        self.step("LOAD DATA, one transaction", self.load_data)
        self.step("ALTER TABLE by copy", self.copy)
        self.step("UPDATE of all, rolled back", lambda: self.update("ROLLBACK"))
        self.step("INSERT, UPDATE of all rolled back to a savepoint", self.savepoint)
        self.step("UPDATE of all", lambda: self.update("COMMIT"))
        if mebibytes:
            # The server itself has it several times: as text of the statement, as value, in the record.
            self.limit += 4 * mebibytes * MIB
            self.step(f"one value of {mebibytes} MiB", lambda: self.single(mebibytes))


def main():
    options = parser(__doc__, cache_mib=32, allowance_mib=300, texts_mib=400, single_mib=60)
    options.add_argument("--engine", default="Teak", help="InnoDB, to compare")
    arguments = options.parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    cache = arguments.cache_mib * MIB
    pool = cache if arguments.engine == "InnoDB" else 8 * MIB
    texts = arguments.texts_mib * MIB // TEXT_BYTES
    steps = LargeValues(server, cache, arguments.allowance_mib * MIB, texts, arguments.engine)
    try:
        server.start([f"--teak-cache-size={cache}", f"--innodb-buffer-pool-size={pool}", "--innodb-log-file-size=1G",
                      "--max-allowed-packet=1G"])
        steps.run(arguments.single_mib)
    except (RuntimeError, pymysql.err.MySQLError) as error:
        print(f"FAILED: {error}")
        steps.failed += 1
    finally:
        server.kill()
    print(f"large_values: {steps.passed} passed, {steps.failed} failed")
    return 1 if steps.failed else 0


if __name__ == "__main__":
    sys.exit(main())
