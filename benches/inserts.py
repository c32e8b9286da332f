#!/usr/bin/env python3
"""INSERTs of many rows whose primary keys come in no order, into a table that has rows, with four secondary keys in random order.

Each engine, and each further build of Teak that --plugin names, has a server of its own; all are up at the same time and take turns, round
by round, with the same statements, which some clients share. Prints, for each, medians of the rounds: time and the server's processor time
for one row; and how many times as fast as the first engine it is by both, as medians of the ratios within a round. In the end all have to
have the same rows and intact indexes, or the exit status is 1.

usage: benches/inserts.py [--engines InnoDB,Teak] [--plugin NAME=FILE]... [--rows N] [--batch N] [--clients N] [--rounds N]
"""

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time

from kit.options import BUILD

from comparison import in_turn, sides_of

# Of the keys that there are at the beginning, so that new ones lie between them.
STEP = 16
VALUES = 1_000_003
COLUMNS = "id INT PRIMARY KEY, a INT, b INT, c INT, e INT, x CHAR(60), KEY (a), KEY (b), KEY (c), KEY (e)"
SCATTERED = ", ".join(f"seq * {prime} % {VALUES}" for prime in (7919, 104729, 1299709, 15485863))
CONTENT = "SELECT COUNT(*), SUM(id), SUM(a), SUM(b), SUM(c), SUM(e) FROM t"
UNMEASURED = 1


class Clients:
    """Connections to one side, which share its statements."""

    def __init__(self, server, count):
        self.server, self.connections = server, [server.connect(autocommit=True) for _ in range(count)]

    def insert(self, statements, rows):
        """Microseconds of time, and of the server's processor time, for one row."""
        cpu, began = self.server.cpu_seconds(), time.monotonic()
        threads = [threading.Thread(target=self.execute, args=(n, statements)) for n in range(len(self.connections))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (time.monotonic() - began) / rows * 1e6, (self.server.cpu_seconds() - cpu) / rows * 1e6

    def execute(self, number, statements):
        """One client's share."""
        with self.connections[number].cursor() as cursor:
            for statement in statements[number::len(self.connections)]:
                cursor.execute(statement)


def content(server):
    """What the table has, and whether its indexes are as they should be."""
    return server.query(CONTENT), server.query("CHECK TABLE t EXTENDED")[-1][-1]


def new_rows(numbers, used, count, most):
    """Rows as VALUES has them, whose keys nobody has."""
    rows = []
    while len(rows) < count:
        key = numbers.randrange(1, most)
        if key % STEP and key not in used:
            used.add(key)
            rows.append(f"({key},{','.join(str(numbers.randrange(VALUES)) for _ in range(4))},'some text')")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", default="InnoDB,Teak")
    parser.add_argument("--plugin", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--rows", type=int, default=200_000, help="that the table has at the beginning")
    parser.add_argument("--added", type=int, default=10_000, help="rows of a round")
    parser.add_argument("--batch", type=int, default=1000, help="rows of a statement")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="teak-inserts-", dir=BUILD)
    rounds, clients, numbers, used = [], {}, random.Random(1), set()
    sides = sides_of(arguments, directory, [
        "--innodb-buffer-pool-size=512M", "--teak-cache-size=512M", "--innodb-log-file-size=1G", "--skip-log-bin",
        "--innodb-flush-log-at-trx-commit=2", "--teak-flush-log-at-trx-commit=2", "--max-allowed-packet=64M",
    ])
    try:
        for side in sides:
            side.start()
            side.server.query(f"CREATE TABLE t ({COLUMNS}) ENGINE={side.engine}")
            side.server.query(f"INSERT INTO t SELECT seq * {STEP}, {SCATTERED}, LPAD(seq, 60, 'x') FROM seq_1_to_{arguments.rows}")
            clients[side.name] = Clients(side.server, arguments.clients)
        for n in range(UNMEASURED + arguments.rounds):
            rows = new_rows(numbers, used, arguments.added, arguments.rows * STEP)
            batches = [rows[at:at + arguments.batch] for at in range(0, len(rows), arguments.batch)]
            statements = [f"INSERT INTO t VALUES {','.join(batch)}" for batch in batches]
            figures = {side.name: clients[side.name].insert(statements, len(rows)) for side in in_turn(sides, n)}
            if n >= UNMEASURED:
                rounds.append(figures)
        contents = [content(side.server) for side in sides]
    finally:
        for side in sides:
            side.server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    first = sides[0].name
    print(f"| {arguments.clients} clients, {arguments.batch} rows a statement | us a row | processor us a row | times as fast as {first} | by processor time |")
    print("|---|--:|--:|--:|--:|")
    for name in (side.name for side in sides):
        own = [statistics.median(figures[name][i] for figures in rounds) for i in (0, 1)]
        ratios = [statistics.median(figures[first][i] / figures[name][i] for figures in rounds) for i in (0, 1)]
        print(f"| {name} | {own[0]:.1f} | {own[1]:.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    if any(one != contents[0] for one in contents):
        print(f"ERROR: the tables differ: {contents}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
