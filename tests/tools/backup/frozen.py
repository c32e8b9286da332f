#!/usr/bin/python3
"""Copies of a running server's files, as a snapshot of the file system makes them, started by another server.

A snapshot is atomic: here, the server is stopped as it stands (SIGSTOP) while its directory is copied. Prints 'N passed, N failed'.
"""

import os
import random
import shutil
import signal
import subprocess
import threading
import time

from kit.server import Server

from bank import Workload, make_tables, rows
from runner import main

OPTIONS = ["--teak-flush-log-at-trx-commit=1", "--teak-cache-size=8M", "--teak-checkpoint-log-size=2M"]
BINLOG = ["--log-bin=binlog", "--binlog-format=ROW", "--server-id=1", "--sync-binlog=1"]


class Test:
    """A server, and another that starts on copies of its files."""

    def __init__(self, arguments):
        self.teak, self.rounds, self.random = arguments.teak, arguments.rounds, random.Random(arguments.seed)
        self.server = Server(os.path.join(arguments.directory, "server"), arguments.plugin_dir)
        self.copy = Server(os.path.join(arguments.directory, "copy"), arguments.plugin_dir)
        self.servers = {"the server": self.server, "the copy": self.copy}

    def start_copy(self, options, check):
        """Starts the copy, lets `check` look at it, and has all of its files checked as they are then."""
        self.copy.start(options)
        try:
            check(self.copy)
        finally:
            self.copy.kill()
        found = subprocess.run([self.teak, "check", self.copy.data], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            raise AssertionError(f"teak check: {found.stdout}{found.stderr}")


def freeze(server):
    """Stops every thread of the server."""
    process = server.process.pid
    os.kill(process, signal.SIGSTOP)
    tasks = f"/proc/{process}/task"
    while any(state_of(f"{tasks}/{task}/stat") not in "TZX" for task in os.listdir(tasks)):
        time.sleep(0.001)


def state_of(path):
    with open(path, encoding="ascii", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def thaw(server):
    os.kill(server.process.pid, signal.SIGCONT)


def copy_at_once(source, target):
    """All files of a server that is stopped."""
    shutil.rmtree(target.directory, ignore_errors=True)
    os.makedirs(os.path.join(target.directory, "tmp"))
    subprocess.run(["cp", "-a", "--sparse=always", source.data, target.data], check=True)


def snapshots(test, options, **settings):
    """Atomic copies at moments of a load over Teak and InnoDB."""
    server = test.server
    server.install()
    server.start(options)
    make_tables(server)
    workload = Workload(server, test.random.random(), **settings)
    for number in range(test.rounds):
        workload.wait_for_commits()
        time.sleep(test.random.random() / 2)
        before = workload.state()
        freeze(server)
        try:
            copy_at_once(server, test.copy)
            # What it has answered has arrived by then.
            time.sleep(0.05)
            after = workload.state()
        finally:
            thaw(server)
        test.start_copy(options, lambda copied: workload.check(copied, before, after))
        print(f"  copy {number}: {sum(after[client.number] for client in workload.clients)} transactions", flush=True)
    workload.stop()


def with_binlog(test):
    """Transactions over both engines; the binary log decides on what was prepared."""
    snapshots(test, OPTIONS + BINLOG)


def without_binlog(test):
    """Transactions over one engine. MariaDB's other coordinator (tc.log) forgets decisions when the server is killed, with any two engines: so those
    over both are in no test, but for XA transactions of users."""
    snapshots(test, OPTIONS, engines=(("Teak",), ("Teak",), ("InnoDB",)))


def copy_slowly(source, target, order, seconds):
    """File by file in a random order, as nobody should who does not hold FLUSH TABLES WITH READ LOCK AND DISABLE CHECKPOINT."""
    shutil.rmtree(target.directory, ignore_errors=True)
    os.makedirs(os.path.join(target.directory, "tmp"))
    files = [os.path.join(parent, name) for parent, _, names in os.walk(source.data) for name in names]
    for parent, _, _ in os.walk(source.data):
        os.makedirs(os.path.join(target.data, os.path.relpath(parent, source.data)))
    order.shuffle(files)
    for file in files:
        to = os.path.join(target.data, os.path.relpath(file, source.data))
        # One that vanishes meanwhile is nothing that the copy needs.
        subprocess.run(["cp", "-a", "--sparse=always", file, to], check=False, stderr=subprocess.DEVNULL)
        if not os.path.exists(to) and os.path.exists(file):
            raise AssertionError(f"{file} could not be copied")
        time.sleep(seconds / len(files))


class Others(threading.Thread):
    """What goes on under the lock: scans, which evict changed leaves from a small cache; temporary tables; and what it was told to end."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.connection, self.stopping, self.failure = server.connect(autocommit=True), False, None

    def run(self):
        try:
            number = 0
            while not self.stopping:
                number += 1
                for table in ("loaded FORCE INDEX (PRIMARY)", "appended", "journal_Teak", "accounts_Teak"):
                    rows(self.connection, f"SELECT COUNT(*), SUM(id) FROM {table}" if "journal" not in table else f"SELECT SUM(amount) FROM {table}")
                rows(self.connection, f"CREATE TEMPORARY TABLE passing_{number} (id INT PRIMARY KEY, t VARCHAR(300), KEY (t(9))) ENGINE=Teak")
                for _ in range(20):
                    rows(self.connection, f"INSERT INTO passing_{number} SELECT seq, REPEAT(MD5(seq + RAND()), 8) FROM seq_1_to_1000")
                    rows(self.connection, f"DELETE FROM passing_{number}")
                rows(self.connection, f"DROP TEMPORARY TABLE passing_{number}")
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
        finally:
            self.connection.close()


def locked(test):
    """Copies file by file while FLUSH TABLES WITH READ LOCK AND DISABLE CHECKPOINT is held. Teak alone: InnoDB promises nothing of the kind."""
    server = test.server
    # Checkpoints are paused for seconds, in which nobody is to wait for one: writers do from 32 times this on.
    options = OPTIONS + BINLOG + ["--teak-log-segment-size=1M", "--teak-checkpoint-log-size=32M"]
    server.install()
    server.start(options)
    make_tables(server, ["CREATE TABLE undone (id INT PRIMARY KEY, t VARCHAR(300), KEY (t(9))) ENGINE=Teak"])
    connection = server.connect(autocommit=True)
    workload = Workload(server, test.random.random(), engines=(("Teak",),) * 3, pledged=("Teak",))
    for number in range(test.rounds):
        # Two that are old by the time of the lock: one has read, one has written more than stays in memory.
        reader, writer = server.connect(), server.connect()
        rows(reader, "SELECT COUNT(*) FROM appended")
        rows(writer, "INSERT INTO undone SELECT seq, REPEAT(MD5(seq), 9) FROM seq_1_to_20000")
        workload.wait_for_commits(5)
        rows(connection, "FLUSH TABLES WITH READ LOCK AND DISABLE CHECKPOINT")
        state = workload.state()
        others = Others(server)
        others.start()
        ending = threading.Timer(1.0, lambda: (writer.close(), reader.close()))
        ending.start()
        copy_slowly(server, test.copy, test.random, 3.0)
        ending.join()
        others.stopping = True
        others.join()
        if others.failure is not None:
            raise AssertionError(f"under the lock: {others.failure!r}")
        # Nothing can have been committed meanwhile; what was just committed may be told late.
        after = workload.state()
        rows(connection, "UNLOCK TABLES")
        def check(copied):
            workload.check(copied, state, after)
            undone = copied.query("SELECT COUNT(*) FROM undone")
            assert undone == ((0,),), f"{undone} rows of a transaction that was open"

        test.start_copy(options, check)
        print(f"  copy {number}: {sum(after[client.number] for client in workload.clients)} transactions", flush=True)
    workload.stop()
    connection.close()


TESTS = [with_binlog, without_binlog, locked]


if __name__ == "__main__":
    main(__doc__, TESTS, Test, rounds=5)
