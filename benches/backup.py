#!/usr/bin/env python3
"""Backups of the same rows in Teak (teak backup) and in InnoDB (mariadb-backup), each on a server of its own, in turn.

Prints, for each engine: time and bytes of a full backup, and of an incremental one after 1 % of the rows were changed;
the processor time that they take, of the server and of all commands; the time from the backup to the first query on a
restored server; and what writers did while backups ran, against what they did without. Ratios are Teak's figure divided
by InnoDB's, of medians. What it is at is told on standard error.

usage: benches/backup.py [--rows N] [--runs N] [--seconds N]
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from kit.server import Server

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


TEAK = os.path.join(ROOT, "build", "bin", "teak")
PLUGIN = os.path.join(ROOT, "build", "plugin")
ENGINES = ("Teak", "InnoDB")
WRITERS = 2
# Of backups that are to be in nobody's way, in MB a second.
LIMIT = 30
# Digits, as sysbench writes them: a third of what InnoDB takes is left by zstd.
TEXT = "CONCAT_WS('-', {})"
GROUP = "LPAD(FLOOR(RAND() * 100000000000), 11, '0')"


def text(groups):
    return TEXT.format(", ".join([GROUP] * groups))


class Subject:
    """A server whose rows are all of one engine."""

    def __init__(self, engine, home, rows):
        self.engine, self.rows = engine, rows
        self.home = os.path.join(home, engine)
        self.server = Server(self.home, PLUGIN)
        self.server.install()
        self.server.start(["--innodb-buffer-pool-size=256M", "--teak-cache-size=256M", "--innodb-log-file-size=256M"])
        self.server.query(
            f"CREATE TABLE s (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k)) ENGINE={engine}"
        )
        self.server.query(
            f"INSERT INTO s SELECT seq, FLOOR(RAND() * {rows}), {text(10)}, {text(5)} FROM seq_1_to_{rows}"
        )
        # What was loaded is in the tables' files, and not only in memory and log.
        self.server.query("SET GLOBAL teak_checkpoint_now = ON" if engine == "Teak" else "FLUSH TABLES s FOR EXPORT")

    def connection(self):
        return [f"--socket={self.server.socket}", "--user=root"]

    def backup(self, directory, below=None):
        """Makes a backup; seconds, seconds of processors, and bytes."""
        before = self.processor_seconds()
        seconds = timed(self.command(directory, below))
        return seconds, self.processor_seconds() - before, allocated(directory)

    def processor_seconds(self):
        """Of the server, and of all commands so far."""
        commands = resource.getrusage(resource.RUSAGE_CHILDREN)
        return commands.ru_utime + commands.ru_stime + self.server.cpu_seconds()

    def command(self, directory, below=None, limited=False):
        """That makes a backup, limited to LIMIT MB a second or not."""
        if self.engine == "Teak":
            command = [TEAK, "backup", "--quiet", "--no-defaults", *self.connection(), directory]
            command += [f"--incremental-from={below}"] if below else []
            command += [f"--throttle={LIMIT}"] if limited else []
        else:
            command = ["mariadb-backup", "--no-defaults", "--backup", "--parallel=2", *self.connection(), f"--target-dir={directory}"]
            command += [f"--incremental-basedir={below}"] if below else []
            # In chunks of 10 MiB a second. A small file is one, too: the 200 of the server's own take minutes, after
            # InnoDB's have been copied.
            command += [f"--throttle={LIMIT // 10}"] if limited else []
        return command

    def change(self):
        """One row in a hundred, anywhere."""
        self.server.query("UPDATE s SET k = k + 1, c = REVERSE(c) WHERE id % 100 = 7")

    def restore(self, directory):
        """Seconds until a server that was made of the backup answers a query about the rows."""
        other = Server(os.path.join(self.home, "restored"), PLUGIN)
        shutil.rmtree(other.directory, ignore_errors=True)
        os.makedirs(os.path.join(other.directory, "tmp"))
        began = time.monotonic()
        if self.engine == "Teak":
            timed([TEAK, "restore", "--quiet", directory, f"--datadir={other.data}"])
        else:
            timed(["mariadb-backup", "--no-defaults", "--prepare", f"--target-dir={directory}"])
            timed(["mariadb-backup", "--no-defaults", "--copy-back", f"--target-dir={directory}", f"--datadir={other.data}"])
        other.start()
        other.query("SELECT c FROM s WHERE id = 1")
        seconds = time.monotonic() - began
        other.stop()
        shutil.rmtree(other.directory)
        return seconds

    def writes(self, seconds, backup=False, limited=False):
        """Commits a second of clients that update single rows, with backups running one after the other or none. The last
        backup ends with the clients: a limited one would go on long after them."""
        done, ended = [0] * WRITERS, time.monotonic() + seconds

        def write(client):
            connection = self.server.connect(autocommit=True)
            cursor, number = connection.cursor(), client + 1
            while time.monotonic() < ended:
                number = (number * 48271 + client) % 2147483647
                cursor.execute("UPDATE s SET k = k + 1 WHERE id = %s", (number % self.rows + 1,))
                done[client] += 1
            connection.close()

        threads = [threading.Thread(target=write, args=(client,)) for client in range(WRITERS)]
        for thread in threads:
            thread.start()
        target = os.path.join(self.home, "beside")
        while backup and time.monotonic() < ended:
            timed(self.command(target, limited=limited), ended)
            shutil.rmtree(target, ignore_errors=True)
        for thread in threads:
            thread.join()
        return sum(done) / seconds


def timed(command, until=None):
    """Seconds that a command takes, which is killed at `until`."""
    began = time.monotonic()
    limit = None if until is None else max(until - began, 0)
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return time.monotonic() - began
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}\n{run.stdout[-3000:]}")
    return time.monotonic() - began


def allocated(directory):
    """Bytes of the files below a directory, without holes."""
    files = (os.path.join(path, name) for path, _, names in os.walk(directory) for name in names)
    return sum(min(os.stat(name).st_blocks * 512, os.stat(name).st_size) for name in files)


def measure(subject, figures, run, seconds):
    full, incremental = (os.path.join(subject.home, f"{kind}{run}") for kind in ("full", "incremental"))

    def note(what, value):
        figures.setdefault((what, subject.engine), []).append(value)
        print(f"run {run}, {subject.engine}: {what} {value:.2f}", file=sys.stderr, flush=True)

    taken, processors, size = subject.backup(full)
    note("full backup, s", taken)
    note("full backup, processor s", processors)
    note("full backup, MB", size / 1e6)
    subject.change()
    taken, processors, size = subject.backup(incremental, full)
    note("incremental after 1 %, s", taken)
    note("incremental, processor s", processors)
    note("incremental after 1 %, MB", size / 1e6)
    note("restore to first query, s", subject.restore(full))
    alone, beside = subject.writes(seconds), subject.writes(seconds, backup=True)
    note("commits/s without a backup", alone)
    note("commits/s during one", beside)
    note("share of commits during one", beside / alone)
    note(f"the same, limited to {LIMIT} MB/s", subject.writes(seconds, backup=True, limited=True) / subject.writes(seconds))
    shutil.rmtree(full)
    shutil.rmtree(incremental)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    home = tempfile.mkdtemp(prefix="teak-bench-backup-")
    subjects, figures = [], {}
    try:
        for engine in ENGINES:
            print(f"loading {arguments.rows} rows into {engine}", file=sys.stderr, flush=True)
            subjects.append(Subject(engine, home, arguments.rows))
        for run in range(arguments.runs):
            for subject in subjects if run % 2 == 0 else subjects[::-1]:
                measure(subject, figures, run, arguments.seconds)
    finally:
        for subject in subjects:
            subject.server.kill()
        shutil.rmtree(home)
    print(f"{arguments.rows} rows, {arguments.runs} runs, medians\n")
    print(f"{'':32}{'Teak':>10}{'InnoDB':>10}{'ratio':>8}")
    for what in dict.fromkeys(what for what, _ in figures):
        teak, innodb = (statistics.median(figures[what, engine]) for engine in ENGINES)
        print(f"{what:32}{teak:10.2f}{innodb:10.2f}{teak / innodb:8.2f}")


if __name__ == "__main__":
    main()
