#!/usr/bin/env python3
"""LinkBench on two servers at the same time: the processor time that each takes for an operation.

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


class LinkBenchSide(Side):
    """One of the two servers, with its client program."""

    def __init__(self, arguments, number, engine, plugin_dir):
        directory = os.path.join(arguments.directory, f"side{number}")
        plugins = os.path.join(directory, "plugins")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        self.arguments = arguments
        self.json, self.log = (os.path.join(directory, name) for name in ("run.json", "teak.log"))
        super().__init__(os.path.join(directory, "server"), plugins, f"{engine} {number}", engine,
                         server_options([engine], plugins, plugin_dir, arguments.cache))

    def start(self):
        """A server without data."""
        super().start()
        self.server.query("CREATE DATABASE linkbench", None)

    def bench(self, *what):
        """Starts a stage of `teak-bench linkbench`."""
        command = [
            self.arguments.program, "linkbench", *what, f"--maxid={self.arguments.maxid}", "--no-defaults", f"--socket={self.server.socket}",
            "--user=root",
        ]
        with open(self.log, "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

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


def both(sides, stage):
    """Has both sides do the same at the same time."""
    processes = [stage(side) for side in sides]
    for side, status in zip(sides, [process.wait() for process in processes]):
        if status != 0:
            raise SystemExit(f"teak-bench failed with {side.engine}, see {side.log}")


def measure(arguments, sides):
    """Loads, warms up, and prints round by round operations and processor time of both sides."""
    for side in sides:
        side.start()
    both(sides, lambda side: side.bench("load", f"--engine={side.engine}"))
    both(sides, lambda side: side.run(arguments.warmup, 1))
    snapshot = sides[1].open_snapshot() if arguments.snapshot else None
    about = machine()
    print(f"{about['cores']} cores ({about['cpu']}), {about['server']}; {arguments.maxid} nodes, {arguments.requesters} requesters on each side, rounds of {arguments.seconds} s"
          + ("; the second side has an old snapshot" if snapshot else ""))
    ratios = []
    for number in range(1, arguments.rounds + 1):
        before = [side.server.cpu_seconds() for side in sides]
        both(sides, lambda side: side.run(0, max(1, arguments.seconds // 3)))
        spent = [side.server.cpu_seconds() - start for side, start in zip(sides, before)]
        operations = [side.operations() for side in sides]
        costs = [1e6 * seconds / count for seconds, count in zip(spent, operations)]
        ratios.append(costs[1] / costs[0])
        shown = ", ".join(f"{side.engine} {count} operations, {cost:.1f} us" for side, count, cost in zip(sides, operations, costs))
        print(f"round {number}: {shown}; second to first {ratios[-1]:.3f}", flush=True)
    if snapshot:
        snapshot.close()
    print(f"processor time for an operation, second to first: median {statistics.median(ratios):.3f} of {min(ratios):.3f} to {max(ratios):.3f}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--program", required=True, help="the program")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--first", default="Teak", help="engine of the first side")
    parser.add_argument("--second", default="InnoDB", help="engine of the second side")
    parser.add_argument("--second-plugin-dir", help="another build of Teak for the second side")
    parser.add_argument("--snapshot", action="store_true", help="a transaction stays open on the second side from the end of the warm-up on")
    parser.add_argument("--maxid", type=int, default=1_000_000, help="nodes, on each side")
    parser.add_argument("--requesters", type=int, default=8, help="on each side")
    parser.add_argument("--warmup", type=int, default=30, help="seconds")
    parser.add_argument("--seconds", type=int, default=30, help="of a round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--cache", default="4G", help="cache of each engine")
    arguments = parser.parse_args()
    sides = [
        LinkBenchSide(arguments, 1, arguments.first, arguments.plugin_dir),
        LinkBenchSide(arguments, 2, arguments.second, arguments.second_plugin_dir or arguments.plugin_dir),
    ]
    try:
        measure(arguments, sides)
    finally:
        for side in sides:
            side.server.kill()
            shutil.rmtree(side.server.data, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
