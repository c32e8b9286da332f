#!/usr/bin/env python3
"""Runs sysbench's workloads against two engines in turn on one server; medians, ratios, disk, errors.

Both engines hold the same tables in databases of their own, with the same cache size and flush mode. Runs alternate
(InnoDB, Teak, InnoDB, Teak ...), so that what else happens on the machine meets both. Exits with 1 if anything failed.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time

import pymysql

import report
from comparison import Comparison, base_options, database, machine

# Name, kind (the goals are set by kind), tables it can use. Those that grow or shrink the tables come last.
WORKLOADS = [
    ("oltp_point_select", "read", 4),
    ("select_random_points", "read", 1),
    ("select_random_ranges", "read", 1),
    ("oltp_read_only", "read", 4),
    ("oltp_read_write", "mixed", 4),
    ("oltp_update_non_index", "write", 4),
    ("oltp_update_index", "write", 4),
    ("oltp_write_only", "write", 4),
    ("oltp_delete", "write", 4),
    ("oltp_insert", "write", 4),
]

# Deadlock, row changed since the snapshot, lock wait timeout: sysbench repeats the transaction and counts it.
LOCK_CONFLICTS = "1213,1020,1205"


def command_of(server, schema, engine, workload, tables, rows, threads, *options):
    """The call of sysbench for a server and a database of it."""
    return [
        "sysbench", workload, "--db-driver=mysql", f"--mysql-socket={server.socket}", "--mysql-user=root", f"--mysql-db={schema}",
        f"--mysql-storage-engine={engine}", f"--mysql-ignore-errors={LOCK_CONFLICTS}", f"--tables={tables}", f"--table-size={rows}",
        f"--threads={threads}", *options,
    ]


class Clients(Comparison):
    """A server whose clients are processes of sysbench, with tables of `rows` rows each."""

    rows = 0

    def sysbench(self, engine, workload, tables, threads, command, *options, limit=None):
        """Runs sysbench to its end; returns its output, and what went wrong or None."""
        call = command_of(self.server, database(engine), engine, workload, tables, self.rows, threads, *options, command)
        try:
            done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=limit, check=False)
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b""
            output = output if isinstance(output, str) else output.decode(errors="replace")
            return output, f"sysbench did not end within {limit} s; processes of the server: {self.processes()}"
        complaints = [line for line in done.stdout.splitlines() if re.match(r"(FATAL|ALERT|ERROR|\(last message repeated)", line)]
        if done.returncode or complaints:
            return done.stdout, f"sysbench exit status {done.returncode}: " + " | ".join(complaints[:6] or [done.stdout[-500:]])
        return done.stdout, None

    def check(self, engine, tables):
        """After the workloads: every table is intact and its indexes have the same rows."""
        for number in range(1, tables + 1):
            try:
                kind, verdict = self.query(engine, f"CHECK TABLE sbtest{number}")[-1][2:]
                counts = [
                    self.query(engine, f"SELECT COUNT(*), SUM(id), SUM(k) FROM sbtest{number} FORCE INDEX ({index}) WHERE {column} > -1")
                    for index, column in (("PRIMARY", "id"), (f"k_{number}", "k"))
                ]
            except pymysql.err.MySQLError as error:
                self.failed(engine, f"check of sbtest{number}", repr(error))
                continue
            # A note says that the engine has no such check.
            if (kind, verdict) != ("status", "OK") and kind != "note" or counts[0] != counts[1]:
                self.failed(engine, f"check of sbtest{number}", f"CHECK TABLE: {verdict}; by primary key {counts[0]}, by k {counts[1]}")


class Bench(Clients):
    """One server, two engines, and what was measured so far."""

    # How long the server has to be idle before a run, and how long a run may take beyond its time, in seconds.
    IDLE = 0.5
    OVERRUN = 60

    def __init__(self, arguments):
        super().__init__(os.path.join(arguments.directory, "server"), arguments.plugin_dir, arguments.engines.split(","), base_options(
            arguments.cache, f"--character-set-server={arguments.charset}", "--max-connections=200", *arguments.server_option))
        self.arguments = arguments
        self.rows = arguments.rows
        self.result = {
            "engines": self.engines, "machine": machine(), "server_options": self.options, "load": {}, "workloads": [],
            "settings": {name: getattr(arguments, name) for name in ("rows", "runs", "seconds", "cache", "charset")},
            "errors": self.errors,
        }

    def load(self, engine):
        """Fills the tables of one engine, brings them to disk, and warms the cache."""
        self.query(None, f"CREATE DATABASE {database(engine)}")
        began = time.monotonic()
        _, failure = self.sysbench(engine, "oltp_read_write", 4, 4, "prepare", limit=1800)
        seconds = time.monotonic() - began
        if failure:
            self.failed(engine, "prepare", failure)
        self.write_out(engine)
        self.result["load"][engine] = {"seconds": seconds, "disk_bytes": self.disk_bytes(engine)}
        self.warm(engine, 4)
        print(f"{engine}: loaded in {seconds:.1f} s, {self.result['load'][engine]['disk_bytes'] / 2**20:.1f} MiB on disk", flush=True)

    def warm(self, engine, tables):
        """Statistics as they will be, and both indexes of each table in the cache."""
        for number in range(1, tables + 1):
            self.query(engine, f"ANALYZE TABLE sbtest{number}")
            self.query(engine, f"SELECT AVG(LENGTH(pad)) FROM sbtest{number} FORCE INDEX (PRIMARY)")
            self.query(engine, f"SELECT COUNT(*) FROM sbtest{number} FORCE INDEX (k_{number}) WHERE k > 0")

    def disk_bytes(self, engine):
        """Bytes that the engine's data files take from the disk; logs are not counted."""
        pattern = "#teak/s*.teak" if engine == "Teak" else f"{database(engine)}/*.[iM]*"
        return sum(os.stat(path).st_blocks * 512 for path in glob.glob(os.path.join(self.server.data, pattern)))

    def measure(self, engine, workload, tables, threads, *options):
        """One timed run, with further options of sysbench; None if it failed."""
        self.settle(self.arguments.settle, self.IDLE)
        seconds = self.arguments.seconds
        cpu = self.server.cpu_seconds()
        output, failure = self.sysbench(engine, workload, tables, threads, "run", f"--time={seconds}", "--events=0", *options,
                                        limit=seconds + self.OVERRUN)
        if failure:
            self.failed(engine, f"{workload}, {threads} threads", failure)
            return None
        cpu = self.server.cpu_seconds() - cpu
        run = parse(output)
        if not run["transactions"]:
            self.failed(engine, f"{workload}, {threads} threads", "no transaction ended")
            return None
        run["cpu_us"] = cpu * 1e6 / run["transactions"]
        return run

    def turns(self, workload, tables, threads, *options):
        """All runs of one workload at one number of threads, the engines in turns; the runs of each."""
        runs = {engine: [] for engine in self.engines}
        broken = set()
        for _ in range(self.arguments.runs):
            for engine in self.engines:
                if engine in broken:
                    continue
                run = self.measure(engine, workload, tables, threads, *options)
                if run is None:
                    broken.add(engine)
                else:
                    runs[engine].append(run)
        return runs

    def compare(self, workload, kind, tables, threads):
        """One workload at one number of threads, as a line of the report."""
        row = {"workload": workload, "kind": kind, "threads": threads, "runs": self.turns(workload, tables, threads)}
        self.result["workloads"].append(row)
        print(report.line(row, self.engines), flush=True)

    def run(self):
        """Everything; results are written even if a step in the middle fails."""
        self.server.install()
        self.server.start(self.options)
        try:
            for engine in self.engines:
                self.load(engine)
            print(report.head(self.engines), flush=True)
            chosen = self.arguments.workloads.split(",") if self.arguments.workloads else None
            for workload, kind, tables in WORKLOADS:
                for threads in map(int, self.arguments.threads.split(",")):
                    if not chosen or workload in chosen:
                        self.compare(workload, kind, tables, threads)
            for engine in self.engines:
                self.write_out(engine)
            for engine in self.engines:
                self.check(engine, 4)
                self.result["load"][engine]["disk_bytes_at_end"] = self.disk_bytes(engine)
        finally:
            self.note_error_log()
            self.save()
        self.server.stop()

    def save(self):
        """Writes sysbench.json and sysbench.md."""
        base = os.path.join(self.arguments.directory, "sysbench")
        with open(base + ".json", "w", encoding="utf-8") as file:
            json.dump(self.result, file, indent=1)
        text = report.markdown(self.result)
        with open(base + ".md", "w", encoding="utf-8") as file:
            file.write(text)
        print("\n" + report.summary(self.result))
        print(f"written: {base}.md, {base}.json")


def parse(output):
    """The figures of one sysbench report."""
    def number(pattern):
        found = re.search(pattern, output)
        return float(found.group(1)) if found else 0.0
    return {
        "transactions": number(r"transactions:\s+(\d+)"),
        "tps": number(r"transactions:\s+\d+\s+\(([\d.]+) per sec"),
        "qps": number(r"queries:\s+\d+\s+\(([\d.]+) per sec"),
        "conflicts": number(r"ignored errors:\s+(\d+)"),
        "reconnects": number(r"reconnects:\s+(\d+)"),
        # One of them, as --percentile says; 95 is sysbench's default.
        "p95_ms": number(r"95th percentile:\s+([\d.]+)"),
        "p99_ms": number(r"99th percentile:\s+([\d.]+)"),
        "max_ms": number(r"max:\s+([\d.]+)"),
    }


def add_options(parser, seconds, settle):
    """Those that every benchmark with sysbench has."""
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median counts")
    parser.add_argument("--seconds", type=int, default=seconds, help="of one run")
    parser.add_argument("--cache", default="1G", help="cache of each engine")
    parser.add_argument("--charset", default="utf8mb4", help="character set of the tables; Debian's default is utf8mb4")
    parser.add_argument("--settle", type=float, default=settle, help="seconds to wait at most, before a run, for the server to be idle")
    parser.add_argument("--server-option", action="append", default=[], help="a further option of mariadbd; repeatable")
    parser.add_argument("--keep", action="store_true", help="keep the data directory")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, seconds=10, settle=15.0)
    parser.add_argument("--engines", default="InnoDB,Teak", help="two engines; ratios are second to first")
    parser.add_argument("--rows", type=int, default=250_000, help="rows of each of the 4 tables")
    parser.add_argument("--threads", default="1,8,32")
    parser.add_argument("--workloads", default="", help="some only, with commas")
    arguments = parser.parse_args()
    return Bench(arguments).carry_out(arguments.keep)


if __name__ == "__main__":
    sys.exit(main())
