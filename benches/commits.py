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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from kit.server import Server

PLUGIN = os.path.join(ROOT, "build", "plugin", "ha_teak.so")
ROWS = 100_000
TABLE = "CREATE TABLE s (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)) ENGINE={}"
FILL = f"INSERT INTO s SELECT seq, seq * 7 % {ROWS}, LPAD(seq, 120, 'c'), LPAD(seq, 60, 'p') FROM seq_1_to_{ROWS}"
UNMEASURED = 1


class Side:
    """One engine, or one build of Teak, with its server."""

    def __init__(self, directory, name, engine, plugin, flush):
        self.name = name
        directory = os.path.join(directory, name)
        plugins = os.path.join(directory, "plugins")
        os.makedirs(plugins)
        shutil.copy2(plugin, os.path.join(plugins, "ha_teak.so"))
        self.server = Server(os.path.join(directory, "server"), plugins)
        self.server.install()
        self.server.start([
            "--innodb-buffer-pool-size=256M", "--teak-cache-size=256M", "--innodb-log-file-size=1G", "--skip-log-bin",
            f"--innodb-flush-log-at-trx-commit={flush}", f"--teak-flush-log-at-trx-commit={flush}",
        ])
        self.server.query(TABLE.format(engine))
        self.server.query(FILL)

    def commit(self, statements, clients, count):
        """Commits a second, and microseconds of the server's processor time for one."""
        cpu, began = self.server.cpu_seconds(), time.monotonic()
        subprocess.run(
            ["mysqlslap", "--no-defaults", f"--socket={self.server.socket}", "--user=root", "--create-schema=test", "--no-drop", "--silent",
             "--delimiter=;", f"--query={statements}", f"--concurrency={clients}", f"--number-of-queries={count}"],
            check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        return count / seconds, (self.server.cpu_seconds() - cpu) / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", default="InnoDB,Teak")
    parser.add_argument("--plugin", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--commits", type=int, default=5000, help="in a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--flush", type=int, default=1)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="teak-commits-", dir=os.path.join(ROOT, "build"))
    sides, rounds = [], []
    try:
        wanted = [(engine, engine, PLUGIN) for engine in arguments.engines.split(",")]
        wanted += [(name, "Teak", file) for name, _, file in (plugin.partition("=") for plugin in arguments.plugin)]
        for name, engine, plugin in wanted:
            sides.append(Side(directory, name, engine, plugin, arguments.flush))
        numbers = random.Random(1)
        statements = os.path.join(directory, "statements")
        with open(statements, "w", encoding="ascii") as out:
            for _ in range(arguments.commits):
                out.write(f"UPDATE s SET k = (k + {numbers.randrange(1, ROWS)}) % {ROWS} WHERE id = {numbers.randrange(ROWS) + 1};\n")
        for n in range(UNMEASURED + arguments.rounds):
            turn = n % len(sides)
            figures = {side.name: side.commit(statements, arguments.clients, arguments.commits) for side in sides[turn:] + sides[:turn]}
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
