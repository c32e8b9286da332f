#!/usr/bin/env python3
"""LinkBench, or workloads of sysbench, on two servers at the same time: the processor time that each takes for an operation.

On a machine whose speed changes from minute to minute, what is measured one after the other says little. Two servers that run beside each
other meet the same neighbours: the ratio of their processor times is steady within 2 % where rates vary by 30 %. It compares two engines, or
two builds of Teak, or one engine with and without an old snapshot. Exits with 1 if anything failed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

from comparison import Side, machine
from linkbench import operations_of, server_options
from sysbench import WORKLOADS, command_of, parse


class BusySide(Side):
    """One of the two servers, with its client program."""

    # The database that the client program uses.
    database = ""

    def __init__(self, arguments, number, engine, plugin_dir):
        directory = os.path.join(arguments.directory, f"side{number}")
        plugins = os.path.join(directory, "plugins")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        self.arguments = arguments
        self.json, self.log = (os.path.join(directory, name) for name in ("run.json", "client.log"))
        super().__init__(os.path.join(directory, "server"), plugins, f"{engine} {number}", engine,
                         server_options([engine], plugins, plugin_dir, arguments.cache))

    def start(self):
        """A server without data."""
        super().start()
        self.server.query(f"CREATE DATABASE {self.database}", None)

    def client(self, *command, output=None):
        """Starts the client program; its output goes to `output`, or behind the log."""
        with open(output or self.log, "wb" if output else "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)


class LinkBenchSide(BusySide):
    """Requesters of LinkBench."""

    database = "linkbench"

    def bench(self, *what):
        """Starts a stage of `teak-bench linkbench`."""
        return self.client(self.arguments.program, "linkbench", *what, f"--maxid={self.arguments.maxid}", "--no-defaults",
                           f"--socket={self.server.socket}", "--user=root")

    def load(self):
        """Starts to fill the tables."""
        return self.bench("load", f"--engine={self.engine}")

    def run(self, warmup, phase):
        """Starts the requesters."""
        requesters = self.arguments.requesters
        return self.bench("run", f"--requesters={requesters}", f"--warmup-seconds={warmup}", f"--phase-seconds={phase}", f"--json={self.json}")

    def open_snapshot(self):
        """What a logical backup does: it reads a little and stays. Returns its connection."""
        connection = self.server.connect("linkbench")
        with connection.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SELECT id, version FROM nodetable ORDER BY id LIMIT 1000")
            cursor.fetchall()
        return connection

    def operations(self):
        """Of the run that has ended."""
        with open(self.json, encoding="utf-8") as file:
            return operations_of(json.load(file))


class SysbenchSide(BusySide):
    """Threads of sysbench, whose four tables are in the cache."""

    database = "sbtest"

    def bench(self, workload, tables, *what, output=None):
        """Starts one command of sysbench."""
        call = command_of(self.server, self.database, self.engine, workload, tables, self.arguments.rows, self.arguments.requesters, *what)
        return self.client(*call, output=output)

    def load(self):
        """Starts to fill the tables."""
        return self.bench("oltp_read_write", 4, "prepare")

    def run(self, workload, tables, seconds):
        """Starts the threads."""
        return self.bench(workload, tables, "run", f"--time={seconds}", "--events=0", output=self.json)

    def operations(self):
        """Transactions of the run that has ended."""
        with open(self.json, encoding="utf-8", errors="replace") as file:
            return parse(file.read())["transactions"]


def both(sides, stage):
    """Has both sides do the same at the same time."""
    processes = [stage(side) for side in sides]
    for side, status in zip(sides, [process.wait() for process in processes]):
        if status != 0:
            raise SystemExit(f"the client program failed with {side.engine}, see {side.log} and {side.json}")


def costs(sides, stage):
    """Processor time for an operation, in microseconds, of each side; and the operations."""
    before = [side.server.cpu_seconds() for side in sides]
    both(sides, stage)
    spent = [side.server.cpu_seconds() - start for side, start in zip(sides, before)]
    operations = [side.operations() for side in sides]
    return [1e6 * seconds / count for seconds, count in zip(spent, operations)], operations


def ratio_of(ratios):
    """The median and what it is of."""
    return f"{statistics.median(ratios):.3f} of {min(ratios):.3f} to {max(ratios):.3f}"


def measure_sysbench(arguments, sides):
    """Workload by workload a line: the processor time for a transaction of both sides, and the ratio."""
    for side in sides:
        side.start()
    both(sides, SysbenchSide.load)
    about = machine()
    print(f"{about['cores']} cores ({about['cpu']}), {about['server']}; 4 tables of {arguments.rows} rows, {arguments.requesters} threads on each side, "
          f"{arguments.rounds} rounds of {arguments.seconds} s")
    print(f"| processor time for a transaction, us | {sides[0].engine} | {sides[1].engine} | second to first |\n|---|--:|--:|--:|", flush=True)
    means, chosen = [], arguments.sysbench.split(",")
    for workload, _, tables in WORKLOADS:
        if workload not in chosen and chosen != ["all"]:
            continue
        both(sides, lambda side: side.run(workload, tables, max(2, arguments.seconds // 2)))  # pylint: disable=cell-var-from-loop
        rounds = [
            costs(sides, lambda side: side.run(workload, tables, arguments.seconds))[0]  # pylint: disable=cell-var-from-loop
            for _ in range(arguments.rounds)
        ]
        ratios = [second / first for first, second in rounds]
        means.append(statistics.median(ratios))
        first, second = (statistics.median(cost) for cost in zip(*rounds))
        print(f"| {workload} | {first:.1f} | {second:.1f} | {ratio_of(ratios)} |", flush=True)
    print(f"| mean | | | {statistics.geometric_mean(means):.3f} |")


def measure_linkbench(arguments, sides):
    """Loads, warms up, and prints round by round operations and processor time of both sides."""
    for side in sides:
        side.start()
    both(sides, LinkBenchSide.load)
    both(sides, lambda side: side.run(arguments.warmup, 1))
    snapshot = sides[1].open_snapshot() if arguments.snapshot else None
    about = machine()
    print(f"{about['cores']} cores ({about['cpu']}), {about['server']}; {arguments.maxid} nodes, {arguments.requesters} requesters on each side, rounds of {arguments.seconds} s"
          + ("; the second side has an old snapshot" if snapshot else ""))
    ratios = []
    for number in range(1, arguments.rounds + 1):
        each, operations = costs(sides, lambda side: side.run(0, max(1, arguments.seconds // 3)))
        ratios.append(each[1] / each[0])
        shown = ", ".join(f"{side.engine} {count} operations, {cost:.1f} us" for side, count, cost in zip(sides, operations, each))
        print(f"round {number}: {shown}; second to first {ratios[-1]:.3f}", flush=True)
    if snapshot:
        snapshot.close()
    print(f"processor time for an operation, second to first: median {ratio_of(ratios)}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--program", required=True, help="teak-bench")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--first", default="Teak", help="engine of the first side")
    parser.add_argument("--second", default="InnoDB", help="engine of the second side")
    parser.add_argument("--second-plugin-dir", help="another build of Teak for the second side")
    parser.add_argument("--snapshot", action="store_true", help="a transaction stays open on the second side from the end of the warm-up on")
    parser.add_argument("--sysbench", metavar="WORKLOADS", help="these workloads of sysbench, with commas, or all, in place of LinkBench")
    parser.add_argument("--rows", type=int, default=250_000, help="rows of each of sysbench's four tables")
    parser.add_argument("--maxid", type=int, default=1_000_000, help="nodes, on each side")
    parser.add_argument("--requesters", type=int, default=8, help="on each side")
    parser.add_argument("--warmup", type=int, default=30, help="seconds")
    parser.add_argument("--seconds", type=int, default=30, help="of a round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--cache", default="4G", help="cache of each engine")
    arguments = parser.parse_args()
    kind, measure = (SysbenchSide, measure_sysbench) if arguments.sysbench else (LinkBenchSide, measure_linkbench)
    sides = [
        kind(arguments, 1, arguments.first, arguments.plugin_dir),
        kind(arguments, 2, arguments.second, arguments.second_plugin_dir or arguments.plugin_dir),
    ]
    try:
        measure(arguments, sides)
    finally:
        for side in sides:
            side.server.kill()
            shutil.rmtree(side.server.data, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
