#!/usr/bin/env python3
"""Statements over tables that are not in memory: time and processor time, InnoDB and builds and settings of Teak in turns.

    benches/cold.py --side now=build-real/plugin --side off=build-real/plugin,--teak-read-ahead=0 --side before=/path/to/plugin

Before each statement its server starts anew. `disk`: also the kernel has nothing of its files; `pages`: the kernel has all of them (InnoDB
reads past the kernel and so finds nothing there). All sides' answers are compared. Exits with 1 if any differ.
"""

import argparse
import os
import shutil
import statistics
import sys
import time

from comparison import Side, base_options, in_turn
from engine import write_rows

TABLE = "id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)"
SORTED = "SET optimizer_switch='mrr=on,mrr_sort_keys=on,mrr_cost_based=off', join_cache_level=6, mrr_buffer_size=4194304, join_buffer_size=4194304"
JOIN = "SELECT COUNT(*), SUM(LENGTH(t.pad)), SUM(t.k) FROM d STRAIGHT_JOIN t "
STATEMENTS = {
    "full scan": (None, "SELECT COUNT(*), SUM(k) FROM t FORCE INDEX (PRIMARY) WHERE pad LIKE '%77%'"),
    "scan descending": (None, "SELECT id FROM t FORCE INDEX (PRIMARY) WHERE pad LIKE '%7777%' ORDER BY id DESC"),
    "index scan": (None, "SELECT COUNT(*), SUM(k) FROM t FORCE INDEX (k) WHERE k > 0"),
    "index range, rows": (None, "SELECT COUNT(*), SUM(LENGTH(c)), SUM(id) FROM t FORCE INDEX (k) WHERE k < {rows} / 100"),
    "the same, MRR": (SORTED, "SELECT COUNT(*), SUM(LENGTH(c)), SUM(id) FROM t FORCE INDEX (k) WHERE k < {rows} / 100"),
    "join by primary key": (None, JOIN + "ON t.id = d.i"),
    "the same, BKA": (SORTED, JOIN + "ON t.id = d.i"),
    "join by index": (None, JOIN + "FORCE INDEX (k) ON t.k = d.i"),
    "the same by BKA": (SORTED, JOIN + "FORCE INDEX (k) ON t.k = d.i"),
    "1000 look-ups": (None, "SELECT SUM(k) FROM (SELECT i FROM d LIMIT 1000) s STRAIGHT_JOIN t ON t.id = s.i"),
}


class ColdSide(Side):
    """A side with its table, whose server starts anew for each statement."""

    def __init__(self, arguments, text):
        name, _, rest = text.partition("=")
        plugins, *more = rest.split(",")
        options = base_options(arguments.cache, "--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF", *more)
        super().__init__(os.path.join(arguments.directory, name), plugins or arguments.plugin_dir, name, "Teak" if plugins else "InnoDB", options)

    def fill(self, rows, count):
        """The rows, and a table of one in a hundred of their numbers."""
        self.start()
        connection = self.server.connect(autocommit=True, local_infile=True)
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE t ({TABLE}) ENGINE={self.engine}")
            cursor.execute(f"LOAD DATA LOCAL INFILE '{rows}' INTO TABLE t")
            cursor.execute("CREATE TABLE d (i INT) ENGINE=MyISAM")
            cursor.execute(f"INSERT INTO d SELECT seq * 7919 % {count} + 1 FROM seq_1_to_{max(1000, count // 100)}")
            cursor.execute("ANALYZE TABLE t, d")
        connection.close()
        self.server.stop()

    def forget(self, wanted):
        """The kernel has nothing of the server's files, or all of them."""
        for directory, _, names in os.walk(self.server.data):
            for name in names:
                try:
                    file = os.open(os.path.join(directory, name), os.O_RDONLY)
                except OSError:
                    continue
                if wanted:
                    while os.read(file, 1 << 20):
                        pass
                else:
                    os.fsync(file)
                    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)

    def measure(self, statement, rows, in_pages):
        """Seconds, processor seconds and the answer of a statement whose table nobody has in memory."""
        self.server.start(self.options)
        try:
            connection = self.server.connect(autocommit=True)
            before, sql = STATEMENTS[statement]
            with connection.cursor() as cursor:
                if before:
                    cursor.execute(before)
                cursor.execute("SELECT COUNT(*) FROM d")
                cursor.execute("SELECT 1 FROM t LIMIT 0")
                self.forget(in_pages)
                began, cpu = time.monotonic(), self.server.cpu_seconds()
                cursor.execute(sql.format(rows=rows))
                answer = cursor.fetchall()
                took, used = time.monotonic() - began, self.server.cpu_seconds() - cpu
            connection.close()
        finally:
            self.server.stop()
        return took, used, answer


def main():
    """Measures, and prints medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", action="append", default=[], metavar="NAME=PLUGINDIR[,OPTION...]")
    parser.add_argument("--plugin-dir", default="build/plugin")
    parser.add_argument("--directory", default="build/bench-cold")
    parser.add_argument("--rows", type=int, default=500000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cache", default="512M")
    parser.add_argument("--statements", default="")
    parser.add_argument("--modes", default="disk,pages")
    arguments = parser.parse_args()
    texts = arguments.side or [f"Teak={arguments.plugin_dir}", f"without={arguments.plugin_dir},--teak-read-ahead=0"]
    sides = [ColdSide(arguments, text) for text in ["InnoDB=", *texts]]
    rows = os.path.join(os.path.abspath(arguments.directory), "rows.tsv")
    os.makedirs(arguments.directory, exist_ok=True)
    write_rows(rows, arguments.rows)
    differ = 0
    try:
        for side in sides:
            side.fill(rows, arguments.rows)
        names = [name for name in STATEMENTS if arguments.statements in name]
        for mode in arguments.modes.split(","):
            print(f"\n| {mode}: ms, processor ms | " + " | ".join(side.name for side in sides) + " |\n|---|" + "--:|" * len(sides), flush=True)
            for name in names:
                runs = {side.name: [] for side in sides}
                for number in range(arguments.runs):
                    for side in in_turn(sides, number):
                        runs[side.name].append(side.measure(name, arguments.rows, mode == "pages"))
                differ += len({run[2] for side in runs.values() for run in side}) != 1
                middle = [[1000 * statistics.median(run[i] for run in side) for i in (0, 1)] for side in runs.values()]
                print(f"| {name} | " + " | ".join(f"{wall:.0f}, {cpu:.0f}" for wall, cpu in middle) + " |", flush=True)
    finally:
        for side in sides:
            side.server.kill()
        shutil.rmtree(arguments.directory, ignore_errors=True)
    if differ:
        print(f"{differ} answers differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
