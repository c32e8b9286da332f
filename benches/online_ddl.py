#!/usr/bin/env python3
"""ADD INDEX, ADD UNIQUE, OPTIMIZE TABLE, ADD COLUMN and other types of columns beside writers, of the same rows in Teak and
in InnoDB, each on a server of its own, in turn.

Prints, for each engine: how long the statement takes without writers and beside them, what the writers do in the seconds
before it and while it runs, and the server's processor time for each transaction before and while. Ratios are of medians:
Teak's figure divided by InnoDB's, and the writers' rate while the statement runs divided by that before. Whatever else
the machine does enters into times and rates, and hardly into processor time.

OPTIMIZE TABLE is of a table of which every other row was deleted just before; each of its runs has a new one. ADD COLUMN
is instant, so one column is added twice a second for as long as the writers are watched before; the slowest counts. The
type is that of an indexed column, INT to BIGINT and back; InnoDB copies the table for it, and writers wait.
What instant changes of a large table take is measured by benches/definitions.py.

usage: benches/online_ddl.py [--rows N] [--runs N] [--seconds N] [--writers N] [--sync] [STATEMENT...]
"""

import argparse
import os
import random
import shutil
import statistics
import tempfile
import threading
import time

from kit.server import Server

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


PLUGIN = os.path.join(ROOT, "build", "plugin")
ENGINES = ("Teak", "InnoDB")
TEXT = "CONCAT_WS('-', {})"
GROUP = "LPAD(FLOOR(RAND() * 100000000000), 11, '0')"
NOCOPY = "ALGORITHM=NOCOPY, LOCK=NONE"
# Of the name of each: what is measured, and what makes the table again what it was.
STATEMENTS = {
    "index": (f"ALTER TABLE s ADD INDEX c (c, k), {NOCOPY}", "ALTER TABLE s DROP INDEX c"),
    "unique": (f"ALTER TABLE s ADD UNIQUE u (u), {NOCOPY}", "ALTER TABLE s DROP INDEX u"),
    "optimize": ("OPTIMIZE TABLE s", None),
    "column": ("ALTER TABLE s ADD COLUMN extra INT NOT NULL DEFAULT 7, ALGORITHM=INSTANT", "ALTER TABLE s DROP COLUMN extra, ALGORITHM=INSTANT"),
    "type": ("ALTER TABLE s MODIFY k BIGINT NOT NULL", "ALTER TABLE s MODIFY k INT NOT NULL"),
}
FIGURES = ("seconds alone", "seconds beside writers", "transactions a second before", "transactions a second while", "rate while / before",
           "processor us a transaction before", "processor us a transaction while")


def text(groups):
    return TEXT.format(", ".join([GROUP] * groups))


class Writers:
    """Sessions that make small transactions: an UPDATE of an indexed column, one of another, an INSERT, a DELETE."""

    def __init__(self, subject, count):
        self.subject, self.stopping, self.done = subject, False, [0] * count
        self.threads = [threading.Thread(target=self.write, args=(n,)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def write(self, n):
        connection = self.subject.server.connect()
        source, rows = random.Random(n), self.subject.rows
        with connection.cursor() as cursor:
            while not self.stopping:
                # Rows of its own, so that nobody waits for another's lock.
                row = 2 * (source.randrange(rows // len(self.done)) * len(self.done) + n + 1)
                new = next(self.subject.numbers)
                cursor.execute(f"UPDATE s SET k = {source.randrange(rows)} WHERE id = {row}")
                cursor.execute(f"UPDATE s SET c = CONCAT({new}, SUBSTR(c, 12)) WHERE id = {row}")
                cursor.execute(f"INSERT INTO s (id, u, k, c, pad) VALUES ({new}, {new}, {new}, 'new', 'row')")
                cursor.execute(f"DELETE FROM s WHERE id = {new}")
                connection.commit()
                self.done[n] += 1
        connection.close()

    def count(self):
        return sum(self.done)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


class Subject:
    """A server whose rows are all of one engine."""

    def __init__(self, engine, home, rows, sync):
        self.engine, self.rows = engine, rows
        self.numbers = iter(range(rows * 10, 1 << 31))
        self.server = Server(os.path.join(home, engine), PLUGIN)
        self.server.install()
        flush = 1 if sync else 2
        self.server.start(["--innodb-buffer-pool-size=512M", "--teak-cache-size=512M", "--innodb-log-file-size=512M", "--innodb-online-alter-log-max-size=4G",
                           f"--innodb-flush-log-at-trx-commit={flush}", f"--teak-flush-log-at-trx-commit={flush}"])
        self.server.query("CREATE DATABASE IF NOT EXISTS test", database=None)
        self.load(rows)

    def load(self, rows):
        """A new table: rows with even numbers, and where it is asked for twice as many, one with an odd number behind each."""
        step = 2 * self.rows // rows
        self.server.query("DROP TABLE IF EXISTS s")
        self.server.query("CREATE TABLE s (id INT PRIMARY KEY, u INT NOT NULL, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))"
                          f" ENGINE={self.engine}")
        self.server.query(f"INSERT INTO s SELECT seq * {step}, seq, FLOOR(RAND() * {self.rows}), {text(10)}, {text(5)} FROM seq_1_to_{rows}")

    def make_holes(self):
        """A table whose half was deleted, and nothing of it is left to be done in the background."""
        self.load(2 * self.rows)
        self.server.query("DELETE FROM s WHERE id & 1")
        give_up = time.monotonic() + 120
        while self.engine == "InnoDB" and time.monotonic() < give_up:
            if int(self.server.query("SHOW GLOBAL STATUS LIKE 'innodb_history_list_length'")[0][1]) < 100:
                break
            time.sleep(0.2)

    def take(self, what):
        """Seconds that the statement takes."""
        statement, back = STATEMENTS[what]
        began = time.monotonic()
        answer = self.server.query(statement)
        taken = time.monotonic() - began
        if answer and answer[-1][3] != "OK":
            raise RuntimeError(f"{self.engine}: {statement}: {answer}")
        if back:
            self.server.query(back)
        return taken

    def take_for(self, what, seconds):
        """Seconds of the statement; what is instant is repeated, for the writers' sake, and the slowest counts."""
        if what != "column":
            return self.take(what)
        slowest, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            slowest = max(slowest, self.take(what))
            time.sleep(0.5)
        return slowest

    def measure(self, figures, what, seconds, count):
        """One run: alone, then beside writers."""
        if what == "optimize":
            self.make_holes()
        figures[f"{what}: seconds alone"].append(self.take(what))
        if what == "optimize":
            self.make_holes()
        writers = Writers(self, count)
        time.sleep(1)
        rates = {}
        for moment in ("before", "while"):
            began, done, used = time.monotonic(), writers.count(), self.server.cpu_seconds()
            if moment == "before":
                time.sleep(seconds)
            else:
                figures[f"{what}: seconds beside writers"].append(self.take_for(what, seconds))
            rates[moment] = (writers.count() - done) / (time.monotonic() - began)
            figures[f"{what}: transactions a second {moment}"].append(rates[moment])
            spent = self.server.cpu_seconds() - used
            figures[f"{what}: processor us a transaction {moment}"].append(1e6 * spent / max(1, writers.count() - done))
        writers.stop()
        figures[f"{what}: rate while / before"].append(rates["while"] / rates["before"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="how long writers are watched before an index is added")
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--sync", action="store_true", help="each commit is synced (flush_log_at_trx_commit=1)")
    parser.add_argument("statements", nargs="*", metavar="STATEMENT", help=f"{', '.join(STATEMENTS)}; default: all")
    arguments = parser.parse_args()
    chosen = arguments.statements or list(STATEMENTS)
    if unknown := set(chosen) - set(STATEMENTS):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(STATEMENTS)}")
    names = [f"{what}: {figure}" for what in chosen for figure in FIGURES]
    home = tempfile.mkdtemp(prefix="teak-online-ddl.")
    subjects, figures = [], {engine: {name: [] for name in names} for engine in ENGINES}
    try:
        for engine in ENGINES:
            subjects.append(Subject(engine, home, arguments.rows, arguments.sync))
        for what in chosen:
            for _ in range(arguments.runs):
                for subject in subjects:
                    subject.measure(figures[subject.engine], what, arguments.seconds, arguments.writers)
    finally:
        for subject in subjects:
            subject.server.kill()
        shutil.rmtree(home, ignore_errors=True)
    print(f"{arguments.rows} rows, {arguments.writers} writers, medians of {arguments.runs} runs")
    print(f"{'':42} {'Teak':>10} {'InnoDB':>10} {'ratio':>7}")
    for name in names:
        teak, other = (statistics.median(figures[engine][name]) for engine in ENGINES)
        print(f"{name:42} {teak:10.2f} {other:10.2f} {teak / other:7.2f}")


if __name__ == "__main__":
    main()
