#!/usr/bin/env python3
"""A server with few file descriptors, more tables than that, and sessions that take the rest.

What is asked for: a statement that finds none fails with an error that says so, and nothing else happens: the engine goes on as soon as there are
descriptors again, without a restart, a checkpoint is made whatever was refused before, and a restart finds what was acknowledged. So it is for
the tables' files (Teak opens them as they are used), segments of the log, and the superblock.
"""

import collections
import os
import resource
import subprocess
import sys

import pymysql

from kit import server as harness
from kit.options import parser

# Segments of the least size that the server takes, so that starting one is common.
OPTIONS = ["--teak-cache-size=32M", "--teak-log-segment-size=1M", "--table-open-cache=400", "--max-connections=200"]
# Names in the messages of the server (1016: can't open file, 1105 and 23: out of resources, 1030, 1296, 1180 with errno
# 24; 1146: it could not open the definition).
REFUSED = (23, 1016, 1017, 1030, 1105, 1146, 1180, 1296)


def limited(directory, descriptors):
    """A program that is the server with so few descriptors."""
    path = os.path.join(directory, "limited")
    with open(path, "w", encoding="ascii") as script:
        script.write(f'#!/bin/sh\nulimit -n {descriptors}\nexec {harness.MARIADBD} "$@"\n')
    os.chmod(path, 0o755)
    return path


def limit(server, descriptors):
    """The running server may open so many from now on."""
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (descriptors, hard))


def open_descriptors(server):
    """How many it has."""
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def sessions(server, wanted):
    """As many idle sessions as can be had, up to `wanted`."""
    found = []
    try:
        while len(found) < wanted:
            found.append(server.connect(connect_timeout=2, read_timeout=2))
    except pymysql.err.MySQLError:
        pass
    return found


class Work:
    """Rows in all tables: what was acknowledged, and what was refused."""

    def __init__(self, tables):
        self.rows = {f"t{i}": 0 for i in range(tables)}
        self.refused = []

    def create(self, connection):
        """The tables, with enough rows in some for blocks that the log names."""
        with connection.cursor() as cursor:
            for i, table in enumerate(self.rows):
                cursor.execute(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, c VARCHAR(2000)) ENGINE=Teak")
                count = 300 if i % 3 == 0 else 1
                cursor.execute(f"INSERT INTO {table} (c) SELECT REPEAT(MD5(seq), 40) FROM seq_1_to_{count}")
                self.rows[table] = count

    def insert(self, connection):
        """One row each."""
        with connection.cursor() as cursor:
            for table in self.rows:
                try:
                    cursor.execute(f"INSERT INTO {table} (c) VALUES (REPEAT('x', 2000))")
                    self.rows[table] += 1
                except pymysql.err.MySQLError as error:
                    if error.args[0] not in REFUSED:
                        raise
                    self.refused.append(error.args)

    def problems(self, server):
        """Tables that have other rows."""
        connection = server.connect(autocommit=True)
        with connection.cursor() as cursor:
            for table, expected in self.rows.items():
                cursor.execute(f"SELECT COUNT(*), COUNT(c) FROM {table}")
                if (found := cursor.fetchone()) != (expected, expected):
                    yield f"{table} has {found} rows, {expected} were acknowledged"
        connection.close()


def starved(server, work):
    """Takes descriptors away while statements run, gives them back, and writes checkpoints; what is wrong."""
    connection = server.connect(autocommit=True)
    work.insert(connection)
    # One that is free is enough: files of tables are closed for others.
    limit(server, open_descriptors(server) + 1)
    work.insert(connection)
    work.insert(connection)
    with connection.cursor() as cursor:
        cursor.execute("SET GLOBAL teak_checkpoint_now = 1")
    if work.refused:
        yield f"refused with one descriptor: {work.refused[:3]}"
    # Nobody gets any.
    limit(server, 3)
    for _ in range(3):
        work.insert(connection)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET GLOBAL teak_checkpoint_now = 1")
    except pymysql.err.MySQLError as error:
        work.refused.append(error.args)
    print(f"no descriptor: {len(work.refused)} statements refused: {collections.Counter(e for e in map(str, work.refused)).most_common(4)}", flush=True)
    if not work.refused:
        yield "nothing was refused: were there descriptors?"
    limit(server, 10_000)
    before = len(work.refused)
    work.insert(connection)
    with connection.cursor() as cursor:
        cursor.execute("SET GLOBAL teak_checkpoint_now = 1")
    if work.refused[before:]:
        yield f"refused with enough descriptors: {work.refused[before:][:3]}"
    connection.close()


def crowded(server, work, descriptors):
    """A server that was started with few descriptors lets sessions in while all tables are used."""
    connection = server.connect(autocommit=True)
    work.insert(connection)
    held = open_descriptors(server)
    others = sessions(server, descriptors)
    print(f"limit {descriptors}: {held} open after the use of {len(work.rows)} tables, {len(others)} more sessions", flush=True)
    if len(others) < descriptors // 8:
        yield f"only {len(others)} sessions beside {held} open files"
    work.insert(connection)
    for other in others:
        other.close()
    before = len(work.refused)
    work.insert(connection)
    if work.refused[before:]:
        yield f"refused without other sessions: {work.refused[before:][:3]}"
    with connection.cursor() as cursor:
        cursor.execute("SET GLOBAL teak_checkpoint_now = 1")
    connection.close()


def run(server, arguments):
    """Returns what is wrong."""
    server.install()
    server.start(OPTIONS)
    work = Work(arguments.tables)
    connection = server.connect(autocommit=True)
    work.create(connection)
    connection.close()
    problems = list(starved(server, work))
    # The log names blocks in many files, which a start looks at.
    server.kill()
    server.program = (limited(server.directory, arguments.descriptors),)
    server.start(OPTIONS)
    with open(f"/proc/{server.process.pid}/limits", encoding="ascii") as limits:
        if not any(line.startswith("Max open files") and int(line.split()[3]) == arguments.descriptors for line in limits):
            return [*problems, "the limit is not what was asked for: the server can raise it"]
    problems += crowded(server, work, arguments.descriptors)
    problems += work.problems(server)
    server.kill()
    server.start(OPTIONS)
    problems += work.problems(server)
    server.stop()
    with open(server.error_log, errors="replace") as log:
        problems += [line for line in log if "read-only" in line or "could not be removed" in line]
    return problems


def main():
    arguments = parser(__doc__, tables=300, descriptors=80).parse_args()
    server = harness.Server(arguments.directory, arguments.plugin_dir)
    try:
        problems = run(server, arguments)
    except (RuntimeError, pymysql.err.MySQLError, subprocess.SubprocessError) as error:
        problems = [f"{error}\n{server.log_end(80)}"]
    finally:
        server.kill()
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"descriptors: {0 if problems else 1} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
