#!/usr/bin/env python3
"""What watching the heap costs: sysbench on servers with jemalloc, in turn without teak_heap, with it, while it samples, and while another session is recorded.

All servers are up at the same time and take turns, round by round. Prints, for each state, medians of the rounds: transactions a second, and the server's
processor time for one; and both to those of the first state, as medians of the ratios within a round. What else the machine does enters into the rates, and
hardly into processor time.

usage: benches/heap.py [--engine Teak|InnoDB] [--work oltp_read_write] [--threads N] [--seconds N] [--rounds N] [--period BYTES] [--library FILE]
"""

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile

from kit.options import BUILD, PLUGIN_DIR
from kit.server import MARIADBD, Server

ROWS = 100_000


class State:
    """A server in a state: whether the plugin is there, and what a session has called."""

    def __init__(self, name, arguments, directory, call=None, installed=True):
        self.name, self.arguments, self.call, self.installed = name, arguments, call, installed
        self.server = Server(os.path.join(directory, re.sub(r"\W+", "-", name)), PLUGIN_DIR)
        self.server.program = ("env", f"LD_PRELOAD={arguments.library}", MARIADBD)
        self.watcher = None

    def start(self):
        """With its tables filled, and in its state."""
        self.server.install()
        self.server.start(["--innodb-buffer-pool-size=256M", "--teak-cache-size=256M", "--innodb-flush-log-at-trx-commit=2",
                           "--teak-flush-log-at-trx-commit=2", f"--default-storage-engine={self.arguments.engine}", "--skip-log-bin"])
        self.server.query("create database if not exists test", database=None)
        self.sysbench("prepare")
        if self.installed:
            self.server.query("install soname 'teak_heap'")
        if self.call:
            self.watcher = self.server.connect(autocommit=True)
            with self.watcher.cursor() as cursor:
                cursor.execute(f"select {self.call}")

    def sysbench(self, command, *more):
        """What it says."""
        return subprocess.run(
            ["sysbench", self.arguments.work, f"--mysql-socket={self.server.socket}", "--mysql-user=root", "--mysql-db=test", "--tables=1",
             f"--table-size={ROWS}", f"--threads={self.arguments.threads}", *more, command], check=True, capture_output=True, text=True).stdout

    def measure(self):
        """Transactions a second, and microseconds of the server's processor time for one."""
        before = self.server.cpu_seconds()
        said = self.sysbench("run", f"--time={self.arguments.seconds}", "--report-interval=0")
        count, rate = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", said).groups()
        return float(rate), (self.server.cpu_seconds() - before) / int(count) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="Teak")
    parser.add_argument("--work", default="oltp_read_write")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=10, help="of a run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--period", type=int, default=512 << 10, help="bytes between samples")
    parser.add_argument("--library", default="/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="teak-heap-", dir=BUILD)
    states = [State("without teak_heap", arguments, directory, installed=False), State("installed, not started", arguments, directory),
              State(f"sampled, {arguments.period} bytes", arguments, directory, f"teak_heap_start({arguments.period})"),
              State("beside a recorded session", arguments, directory, "teak_heap_session(1)")]
    rounds = []
    try:
        for state in states:
            state.start()
        for state in states:
            state.measure()  # the first run of each is not counted
        for _ in range(arguments.rounds):
            order = random.sample(states, len(states))
            rounds.append({state.name: state.measure() for state in order})
    finally:
        for state in states:
            state.server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{arguments.work}, {arguments.engine}, {arguments.threads} threads, {arguments.rounds} rounds of {arguments.seconds} s")
    print(f"{'':28} {'tps':>8} {'us cpu':>8} {'tps ratio':>10} {'cpu ratio':>10}")
    first = states[0].name
    for state in states:
        rate, cpu = (statistics.median(one[state.name][at] for one in rounds) for at in (0, 1))
        ratios = [statistics.median(one[state.name][at] / one[first][at] for one in rounds) for at in (0, 1)]
        print(f"{state.name:28} {rate:8.0f} {cpu:8.0f} {ratios[0]:10.3f} {ratios[1]:10.3f}")


if __name__ == "__main__":
    main()
