#!/usr/bin/env python3
"""Single commits, each synced, by some clients at once: an UPDATE of an indexed column by primary key, in autocommit.

Each engine, and each further build of Teak that --plugin names, has a server of its own; all are up at the same time and take turns, round
by round. The client is mysqlslap, which costs little. Prints, for each, medians of the rounds: commits a second, and the server's processor
time for one; and both to the first engine's, as medians of the ratios within a round. What else the machine does enters into the rates, and
hardly into processor time.

usage: benches/commits.py [--engines InnoDB,Teak] [--plugin NAME=FILE]... [--clients N] [--commits N] [--rounds N] [--flush 0|1|2]
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time

from kit.options import BUILD

from comparison import in_turn, sides_of

ROWS = 100_000
TABLE = "CREATE TABLE s (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)) ENGINE={}"
FILL = f"INSERT INTO s SELECT seq, seq * 7 % {ROWS}, LPAD(seq, 120, 'c'), LPAD(seq, 60, 'p') FROM seq_1_to_{ROWS}"
UNMEASURED = 1


def commit(server, statements, clients, count):
    """Commits a second, and microseconds of the server's processor time for one."""
    cpu, began = server.cpu_seconds(), time.monotonic()
    subprocess.run(
        ["mysqlslap", "--no-defaults", f"--socket={server.socket}", "--user=root", "--create-schema=test", "--no-drop", "--silent",
         "--delimiter=;", f"--query={statements}", f"--concurrency={clients}", f"--number-of-queries={count}"],
        check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    return count / seconds, (server.cpu_seconds() - cpu) / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", default="InnoDB,Teak")
    parser.add_argument("--plugin", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--commits", type=int, default=5000, help="in a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--flush", type=int, default=1)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="teak-commits-", dir=BUILD)
    rounds, sides = [], sides_of(arguments, directory, [
        "--innodb-buffer-pool-size=256M", "--teak-cache-size=256M", "--innodb-log-file-size=1G", "--skip-log-bin",
        f"--innodb-flush-log-at-trx-commit={arguments.flush}", f"--teak-flush-log-at-trx-commit={arguments.flush}",
    ])
    try:
        for side in sides:
            side.start()
            side.server.query(TABLE.format(side.engine))
            side.server.query(FILL)
        numbers = random.Random(1)
        statements = os.path.join(directory, "statements")
        with open(statements, "w", encoding="ascii") as out:
            for _ in range(arguments.commits):
                out.write(f"UPDATE s SET k = (k + {numbers.randrange(1, ROWS)}) % {ROWS} WHERE id = {numbers.randrange(ROWS) + 1};\n")
        for n in range(UNMEASURED + arguments.rounds):
            figures = {side.name: commit(side.server, statements, arguments.clients, arguments.commits) for side in in_turn(sides, n)}
            if n >= UNMEASURED:
                rounds.append(figures)
                print("  ".join(f"{name} {rate:.0f}/s {cpu:.0f} us" for name, (rate, cpu) in sorted(figures.items())), flush=True)
    finally:
        for side in sides:
            side.server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    first = sides[0].name
    print(f"\n| {arguments.clients} clients | commits/s | us | commits, to {first} | us, to {first} |\n|---|--:|--:|--:|--:|")
    for name in (side.name for side in sides):
        rate, cpu = (statistics.median(figures[name][i] for figures in rounds) for i in (0, 1))
        to_rate, to_cpu = (statistics.median(figures[name][i] / figures[first][i] for figures in rounds) for i in (0, 1))
        print(f"| {name} | {rate:.0f} | {cpu:.0f} | {to_rate:.2f} | {to_cpu:.2f} |")


if __name__ == "__main__":
    main()
