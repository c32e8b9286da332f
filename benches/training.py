#!/usr/bin/env python3
"""The work by which a build learns what is hot (scripts/build-profiled.sh): small statements, LinkBench, statements over whole tables.

sysbench's own programs are left out, so that they can judge what came of it. Exits with 1 if anything failed.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys

import small_statements
from comparison import Comparison, base_options
from engine_statements import SOURCE, TABLES, selected

DATABASE = "training"
# Of each small statement.
EXECUTIONS = 4_000
# Of the tables that are scanned and changed as a whole.
ROWS = 100_000
NODES = 20_000
SECONDS = 15


class Training(Comparison):
    """A server that is ended in good order, as it writes down then what it has counted."""

    def __init__(self, arguments):
        super().__init__(os.path.join(arguments.directory, "server"), arguments.plugin_dir, ["Teak"], base_options("512M"))
        self.program = arguments.teak_bench

    def run(self):
        self.server.install()
        self.server.start(self.options)
        self.server.query(f"CREATE DATABASE {DATABASE}", None)
        self.small_statements()
        self.whole_tables()
        self.linkbench("load", "--engine=Teak", "--loaders=2")
        self.linkbench("run", "--requesters=4", "--warmup-seconds=1", f"--phase-seconds={SECONDS // 3}")
        self.server.stop()
        self.note_error_log()

    def small_statements(self):
        """Those of sysbench, each many times."""
        connection = self.server.connect(DATABASE, autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute(f"{small_statements.TABLE} ENGINE=Teak")
            cursor.execute(small_statements.FILL.format(rows=small_statements.ROWS))
            cursor.execute("ANALYZE TABLE sbtest1")
        for statement in small_statements.sysbench():
            execute = statement.executor(connection)
            for values in itertools.islice(statement.values(small_statements.Source(())), EXECUTIONS):
                execute(values)
        connection.close()

    def whole_tables(self):
        """Scans, look-ups in joins, changes of many rows, an index that is built, a check."""
        connection = self.server.connect(DATABASE, autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute(SOURCE)
            cursor.execute(f"INSERT INTO source SELECT id, k, c, pad FROM sbtest1 WHERE id <= {ROWS}")
            for name, columns in TABLES.items():
                cursor.execute(f"CREATE TABLE {name} ({columns}) ENGINE=Teak")
            for statement, _ in selected(ROWS, re.compile("")):
                for sql in (*statement.before, statement.sql):
                    cursor.execute(sql)
                    cursor.fetchall()
            for sql in ("ALTER TABLE t ADD INDEX c (c)", "CHECK TABLE t EXTENDED"):
                cursor.execute(sql)
                cursor.fetchall()
        connection.close()

    def linkbench(self, *what):
        """A stage of it."""
        subprocess.run([self.program, "linkbench", *what, f"--maxid={NODES}", "--no-defaults", f"--socket={self.server.socket}", "--user=root",
                        f"--database={DATABASE}"], check=True, stdout=subprocess.DEVNULL)


def main():
    """Command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--teak-bench", required=True, help="the program")
    parser.add_argument("--directory", required=True, help="for the server and its data")
    return Training(parser.parse_args()).carry_out(keep=False)


if __name__ == "__main__":
    sys.exit(main())
