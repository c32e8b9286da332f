#!/usr/bin/env python3
"""Data larger than memory: sysbench's workloads and the Insert Benchmark, each engine in turn on a server of its own with limited memory.

The limit (tests/kit/cgroup.py) counts the kernel's cache of the server's files. Each engine takes part with the same cache, and once
more (-whole) with as much of the group's memory as it may have. A server that the kernel kills for memory is a result of the step
that it happened in, is started again, and goes on with the next one. Exits with 1 if anything failed, such a kill included.
"""

import argparse
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pymysql

from kit.cgroup import MemoryLimit

import insert_benchmark
import memory_bound_report
import memory_bound_sysbench
from comparison import Side, database, machine, parse_limited, size_of
from linkbench import DATA_FILES
from memory_bound_sides import ENGINES, SIDES, WHOLE, engine_of, options_of
from sysbench import Clients, parse

PARTS = {"sysbench": memory_bound_sysbench.Steps, "inserts": insert_benchmark.Steps}
# What a group has beyond the cache, if nobody says how large it is.
BESIDE_CACHE = "192M"
# What --quick sets. So small a group has no room for larger caches.
QUICK = {"rows": 100_000, "insert_rows": 200_000, "seconds": 3, "cache": "32M", "memory": "224M", "settle": 1.0, "sides": ",".join(ENGINES)}


class BoundedSide(Side, Clients):
    """One engine with one size of its cache, on a new server, through one part."""

    # How long a run may take beyond its time, in seconds.
    OVERRUN = 120

    def __init__(self, arguments, name, part, limit, lines):
        self.arguments, self.part, self.limit, self.lines, self.died = arguments, part, limit, lines, False
        plugins = os.path.join(arguments.directory, "plugins")
        options, self.is_installed = options_of(name, arguments.cache, arguments.memory, plugins, arguments.plugin_dir)
        super().__init__(os.path.join(arguments.directory, "server"), plugins, name, engine_of(name), options + arguments.server_option)

    def run(self):
        """The part, unless the engine is not installed."""
        if not self.is_installed:
            return
        self.server.install()
        self.start()
        self.query(None, f"CREATE DATABASE {database(self.engine)}")
        PARTS[self.part](self, self.arguments).run()
        self.note_error_log()
        self.server.stop()

    def start(self):
        """The server, in the group whose memory is limited."""
        with self.limit.inside():
            self.server.start(self.options)

    def timed(self, script, tables, threads, *options, seconds=None, limit=None):
        """One run of sysbench's clients, as long as runs are, or `seconds`: its figures, and what went wrong or None."""
        seconds = self.arguments.seconds if seconds is None else seconds
        output, failure = self.sysbench(self.engine, script, tables, threads, "run", f"--time={seconds}", "--events=0", "--percentile=99", *options,
                                        limit=limit or seconds + self.OVERRUN)
        found = parse(output)
        return {"operations": found["transactions"], "rate": found["tps"], "p99_ms": found["p99_ms"], "max_ms": found["max_ms"]}, failure

    def checkpoint(self, operations=None):
        """All changes go to the data files."""
        self.write_out(self.engine)
        return {"operations": operations}, None

    def at_once(self, statements, limit):
        """Runs each on a connection of its own, all at the same time; how many rows they changed."""
        def execute(statement):
            with contextlib.closing(self.server.connect(database(self.engine), autocommit=True, read_timeout=limit)) as connection:
                return connection.cursor().execute(statement)
        with ThreadPoolExecutor(len(statements)) as sessions:
            return sum(sessions.map(execute, statements))

    def after_pause(self, name, work):
        """A step that is not to pay for what the engine still does of the one before."""
        return self.step(name, work, self.arguments.settle)

    def step(self, name, work, pause=0.0):
        """Measures a step; `work` returns its figures, and what went wrong or None. Returns the number of operations, if it has one.

        `pause`: seconds to wait at most, before it, for the server to be idle.
        """
        began = time.monotonic()
        try:
            self.settle(pause)
            self.forget_peak()
            before, began = self.counts(), time.monotonic()
            found, failure = work()
            seconds = time.monotonic() - began
            after, (resident, peak) = self.counts(), self.server.memory()
        except (OSError, pymysql.err.MySQLError) as error:
            failure = repr(error)
        if failure:
            self.add(name, {"seconds": time.monotonic() - began, "outcome": self.outcome(name, failure)})
            return None
        spent = {count: value - before[count] for count, value in after.items()}
        beside = found.pop("beside", None)
        self.add(name, {"seconds": seconds, **found, **spent, "resident": resident, "peak": peak, "disk": self.disk_bytes()})
        if beside:
            self.add(f"{name}: inserts", {"seconds": seconds, **beside})
        return found["operations"]

    def forget_peak(self):
        """The peak of the server's resident memory counts from here."""
        with open(f"/proc/{self.server.process.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def add(self, name, figures):
        """A line of the result, which is printed."""
        self.lines.append({"part": self.part, "step": name, "side": self.name, **figures})
        print(memory_bound_report.line(self.lines[-1], self.lines), flush=True)

    def outcome(self, name, failure):
        """What a step that failed has come to. A dead server is started again."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its connections end some time before it does.
            self.server.process.wait(timeout=10)
        code = self.server.process.returncode
        word = "failed" if code is None else "killed" if code == -signal.SIGKILL else "crashed"
        self.failed(self.engine, name, f"{word}: {failure}")
        if code is not None:
            self.died = True
            self.start()
        return word

    def failed(self, engine, where, what):
        """Notes an error, with the end of a dead server's log; servers are started again by steps."""
        entry = {"engine": self.name, "where": where, "what": what.partition("\n")[0]}
        if not self.server.is_running():
            entry["error_log"] = self.server.log_end(150)
        self.errors.append(entry)
        print(f"ERROR: {self.name}, {where}: {entry['what']}", flush=True)

    def counts(self):
        """What the server has used so far: processor time in seconds, bytes read, written, and written to Teak's spill file."""
        io, spill = self.server.io(), self.query(None, "SHOW GLOBAL STATUS LIKE 'Teak_spill_bytes_written'")
        return {"cpu": self.server.cpu_seconds(), "read": io["read_bytes"], "written": io["write_bytes"], "spill": int(spill[0][1])}

    def disk_bytes(self):
        """Bytes that the engine's data files take from the disk; logs are not counted."""
        total = 0
        for pattern in DATA_FILES[self.engine]:
            for path in glob.glob(os.path.join(glob.escape(self.server.data), pattern)):
                with contextlib.suppress(FileNotFoundError):  # compacted away meanwhile
                    total += os.stat(path).st_blocks * 512
        return total


def compare(arguments):
    """All parts with all sides; the exit status."""
    os.makedirs(arguments.directory, exist_ok=True)
    limit = MemoryLimit(f"teak-memory-bound-{os.getpid()}", size_of(arguments.memory))
    settings = ("rows", "insert_rows", "clients", "seconds", "cache", "memory", "quick")
    result = {"machine": machine(), "memory": limit.about, "settings": {name: getattr(arguments, name) for name in settings}, "lines": [], "errors": []}
    print(f"memory: {limit.about}\n{memory_bound_report.head()}", flush=True)
    try:
        for part in arguments.parts.split(","):
            for name in arguments.sides.split(","):
                side = BoundedSide(arguments, name, part, limit, result["lines"])
                try:
                    side.carry_out(arguments.keep)
                except (OSError, RuntimeError, subprocess.SubprocessError, pymysql.err.MySQLError) as error:
                    side.failed(name, part, str(error))
                result["errors"] += side.errors
                save(arguments, result)
    finally:
        limit.remove()
    print(f"\nerrors: {len(result['errors'])}; written: {os.path.join(arguments.directory, 'memory_bound.md')}, .json", flush=True)
    return 1 if result["errors"] else 0


def save(arguments, result):
    """memory_bound.json and memory_bound.md, with all that is known so far."""
    base = os.path.join(arguments.directory, "memory_bound")
    for ending, content in (("json", json.dumps(result, indent=1)), ("md", memory_bound_report.markdown(result))):
        with open(f"{base}.{ending}", "w", encoding="utf-8") as file:
            file.write(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--quick", action="store_true", help="everything small; the figures mean nothing")
    parser.add_argument("--sides", default=",".join(SIDES), help=f"engines; with {WHOLE}, the group's memory is in its own cache")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rows", type=int, default=1_000_000, help=f"of each of sysbench's {memory_bound_sysbench.TABLES} tables")
    parser.add_argument("--insert-rows", type=int, default=3_000_000, help="of the Insert Benchmark, in all tables together")
    parser.add_argument("--clients", type=int, default=2, help="of the Insert Benchmark, each with a table of its own")
    parser.add_argument("--seconds", type=int, default=30, help="of each run that has no end of its own")
    parser.add_argument("--cache", default="128M", help="of the engine")
    parser.add_argument("--memory", help=f"of a server, with its files in the kernel's cache; the cache and {BESIDE_CACHE} if not said")
    parser.add_argument("--settle", type=float, default=15.0, help="seconds to wait at most, before a run, for the server to be idle")
    arguments = parse_limited(parser, QUICK, sides=SIDES, parts=PARTS)
    arguments.memory = arguments.memory or str(size_of(arguments.cache) + size_of(BESIDE_CACHE))
    shutil.rmtree(os.path.join(arguments.directory, "server"), ignore_errors=True)
    return compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
