#!/usr/bin/env python3
"""LinkBench with a long-running snapshot in its middle phase, a hot row and a queue under an old snapshot; engines in turn on one server.

The work is done by `teak-bench`; here are the server, its options, sizes, bytes written, and goals. Exits with 1 if anything failed
(a goal that is missed is no failure).
"""

import argparse
import glob
import json
import os
import subprocess
import sys

import pymysql

import linkbench_report
from comparison import Comparison, base_options, database, machine, plugin_options, sync

# Files with data and indexes, in the data directory; logs and undo are not counted.
DATA_FILES = {
    "InnoDB": [f"{database('InnoDB')}/*.ibd"], "Teak": ["#teak/s*.teak"], "RocksDB": ["#rocksdb/*.sst", "#rocksdb/*.blob"],
}


def server_options(engines, plugins, plugin_dir, cache):
    """Of a server with these engines; those that are not installed are taken out of `engines`."""
    options = base_options(cache) + plugin_options(engines, plugins, plugin_dir, cache)
    if "RocksDB" in engines:
        # Off by default; without it, transactions that wait for each other wait until a time-out.
        options.append("--rocksdb-deadlock-detect=ON")
    return options


def operations_of(run):
    """All that a run of `teak-bench linkbench` has carried out, by its JSON."""
    return run["warmup_operations"] + sum(phase["total"]["count"] for phase in run["phases"])


class LinkBench(Comparison):
    """One server at a time, and what was measured so far."""

    def __init__(self, arguments):
        self.arguments = arguments
        engines = arguments.engines.split(",")
        unknown = set(engines) - set(DATA_FILES)
        if unknown:
            raise SystemExit(f"no such engine: {', '.join(unknown)}; known: {', '.join(DATA_FILES)}")
        plugins = os.path.join(arguments.directory, "plugins")
        options = server_options(engines, plugins, arguments.plugin_dir, arguments.cache)
        super().__init__(os.path.join(arguments.directory, "server"), plugins, engines, options + arguments.server_option)
        self.result = {
            "engines": self.engines, "machine": machine(), "server_options": self.options, "errors": self.errors,
            "settings": {name: getattr(arguments, name) for name in
                         ("maxid", "requesters", "warmup", "phase", "rate", "hotrow", "queue", "cache", "runs", "seed", "parts")},
            "linkbench": {engine: [] for engine in self.engines}, "hotrow": {engine: [] for engine in self.engines},
            "queue": {engine: [] for engine in self.engines},
        }

    def run(self):
        """Everything; results are written even if a step in the middle fails."""
        parts = self.arguments.parts.split(",")
        try:
            for number in range(1, self.arguments.runs + 1):
                self.server.install()
                self.server.start(self.options)
                try:
                    for part in parts:
                        for engine in self.engines:
                            self.attempt(part, engine, number)
                    self.note_error_log()
                    self.server.stop()
                finally:
                    self.server.kill()
        finally:
            self.save()

    def attempt(self, part, engine, number):
        """One measurement of one engine; a failure is noted, and the others still happen."""
        measure = {"linkbench": self.linkbench, "hotrow": self.hotrow, "queue": self.queue}[part]
        print(f"--- {part}, {engine}, round {number}", flush=True)
        try:
            self.settle(self.arguments.settle)
            self.result[part][engine].append(measure(engine, f"{engine.lower()}-{number}"))
        except (pymysql.err.MySQLError, subprocess.SubprocessError, OSError, ValueError) as error:
            self.failed(engine, part, repr(error))

    def teak(self, engine, what, name, *arguments):
        """Runs `teak-bench WHAT` in the engine's database; returns its JSON."""
        file = os.path.join(self.arguments.directory, f"{what}-{name}.json")
        if os.path.exists(file):
            os.unlink(file)
        command = [
            self.arguments.program, what, *arguments, f"--json={file}", "--no-defaults", f"--socket={self.server.socket}", "--user=root",
            f"--database={database(engine)}",
        ]
        done = subprocess.run(command, timeout=self.arguments.limit, check=False)
        if done.returncode != 0:
            self.failed(engine, f"teak-bench {what}", f"exit status {done.returncode}, see what it printed")
        with open(file, encoding="utf-8") as result:
            return json.load(result)

    def linkbench(self, engine, name):
        """Load, then the phases."""
        size = [f"--maxid={self.arguments.maxid}", f"--seed={self.arguments.seed}"]
        loaded = self.teak(engine, "linkbench", f"load-{name}", "load", f"--engine={engine}", *size)
        loaded_bytes = self.disk_bytes(engine)
        self.settle(self.arguments.settle)
        rate = [f"--rate={self.arguments.rate}"] if self.arguments.rate else []
        cpu, before = self.server.cpu_seconds(), self.server.io()
        run = self.teak(
            engine, "linkbench", name, "run", *size, f"--requesters={self.arguments.requesters}", f"--warmup-seconds={self.arguments.warmup}",
            f"--phase-seconds={self.arguments.phase}", "--snapshot=middle", *rate)
        bytes_after = self.disk_bytes(engine)
        ran_cpu = self.server.cpu_seconds() - cpu
        self.settle(self.arguments.settle)
        after = self.server.io()
        self.verify(engine, size)
        return {
            "load": loaded["load"], "phases": run["phases"], "snapshot": run["snapshot"], "operations": operations_of(run), "loaded_bytes": loaded_bytes,
            "disk_bytes": bytes_after, "written": after["write_bytes"] - before["write_bytes"],
            "cancelled": after["cancelled_write_bytes"] - before["cancelled_write_bytes"], "cpu_seconds": ran_cpu,
            "file": f"linkbench-{name}.json",
        }

    def verify(self, engine, size):
        """Counts, links and indexes agree; after the figures are taken, since it reads everything."""
        self.teak(engine, "linkbench", "verified", "verify", *size)

    def disk_bytes(self, engine):
        """What the data files take once every change is in them."""
        self.write_out(engine)
        files = [path for pattern in DATA_FILES[engine] for path in glob.glob(os.path.join(glob.escape(self.server.data), pattern))]
        for path in files:
            sync(path)
        return sum(os.stat(path).st_blocks * 512 for path in files if os.path.exists(path))

    def hotrow(self, engine, name):
        """Eight clients update one row."""
        return self.teak(engine, "hotrow", name, f"--engine={engine}", f"--seconds={self.arguments.hotrow}")

    def queue(self, engine, name):
        """The first row of a queue."""
        return self.teak(engine, "queue", name, f"--engine={engine}", f"--rows={self.arguments.queue}")

    def save(self):
        """Writes linkbench.json, linkbench.md and linkbench.html."""
        base = os.path.join(self.arguments.directory, "linkbench")
        with open(base + ".json", "w", encoding="utf-8") as file:
            json.dump(self.result, file, indent=1)
        text = linkbench_report.markdown(self.result)
        with open(base + ".md", "w", encoding="utf-8") as file:
            file.write(text)
        runs = [os.path.join(self.arguments.directory, run["file"]) for runs in self.result["linkbench"].values() for run in runs[:1]]
        if runs:
            subprocess.run([self.arguments.program, "report", *runs, f"--html={base}.html"], check=True)
        print("\n" + text)
        print(f"written: {base}.md, {base}.json" + (f", {base}.html" if runs else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--program", required=True, help="the program")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--engines", default=",".join(DATA_FILES))
    parser.add_argument("--parts", default="linkbench,hotrow,queue")
    parser.add_argument("--maxid", type=int, default=1_000_000, help="nodes")
    parser.add_argument("--requesters", type=int, default=16)
    parser.add_argument("--warmup", type=int, default=180, help="seconds; with less the first phase is faster than the others in all engines")
    parser.add_argument("--phase", type=int, default=300, help="seconds of each of the three phases")
    parser.add_argument("--rate", type=float, default=0, help="requests per second; 0 is as many as possible")
    parser.add_argument("--hotrow", type=int, default=60, help="seconds without and with the snapshot")
    parser.add_argument("--queue", type=int, default=1_000_000, help="rows deleted")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1, help="rounds with fresh data; medians count")
    parser.add_argument("--cache", default="4G", help="cache of each engine")
    parser.add_argument("--limit", type=int, default=14400, help="seconds that one call of teak-bench may take")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds to wait at most, between measurements, for the server to be idle")
    parser.add_argument("--server-option", action="append", default=[], help="a further option of mariadbd; repeatable")
    parser.add_argument("--keep", action="store_true", help="keep the data directory")
    arguments = parser.parse_args()
    unknown = set(arguments.parts.split(",")) - {"linkbench", "hotrow", "queue"}
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    return LinkBench(arguments).carry_out(arguments.keep)


if __name__ == "__main__":
    sys.exit(main())
