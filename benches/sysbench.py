#!/usr/bin/env python3
"""Runs sysbench's workloads against two engines in turn on one server; medians, ratios, disk, errors.

Both engines hold the same tables in databases of their own, with the same cache size and flush mode. Runs alternate
(InnoDB, Teak, InnoDB, Teak ...), so that what else happens on the machine meets both. Exits with 1 if anything failed.
"""

import argparse
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

import pymysql

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import report  # pylint: disable=wrong-import-position
from server import Server  # pylint: disable=wrong-import-position

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


class Bench:
    """One server, two engines, and what was measured so far."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.engines = arguments.engines.split(",")
        self.server = Server(arguments.directory, arguments.plugin_dir)
        self.options = [
            f"--innodb-buffer-pool-size={arguments.cache}", f"--teak-cache-size={arguments.cache}",
            "--innodb-flush-log-at-trx-commit=2", "--teak-flush-log-at-trx-commit=2",
            "--innodb-log-file-size=2G", f"--character-set-server={arguments.charset}",
            "--skip-log-bin", "--skip-name-resolve", "--max-connections=200", *arguments.server_option,
        ]
        self.errors = []
        self.result = {
            "engines": self.engines, "machine": machine(), "server_options": self.options, "load": {}, "workloads": [],
            "settings": {name: getattr(arguments, name) for name in ("rows", "runs", "seconds", "cache", "charset")},
            "errors": self.errors,
        }

    def sysbench(self, engine, workload, tables, threads, command, *options, limit=None):
        """Runs sysbench to its end; returns its output, and what went wrong or None."""
        call = [
            "sysbench", workload, "--db-driver=mysql", f"--mysql-socket={self.server.socket}", "--mysql-user=root",
            f"--mysql-db={database(engine)}", f"--mysql-storage-engine={engine}", f"--mysql-ignore-errors={LOCK_CONFLICTS}",
            f"--tables={tables}", f"--table-size={self.arguments.rows}", f"--threads={threads}", *options, command,
        ]
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

    def processes(self):
        """What the server's sessions do, for the report of a hang."""
        try:
            sessions = self.query(None, "SELECT id, time, state, info FROM information_schema.processlist WHERE command <> 'Sleep'")
            return "; ".join(map(str, sessions[:8]))
        except pymysql.err.MySQLError as error:
            return repr(error)

    def query(self, engine, statement):
        """All rows of one statement on a connection of its own."""
        connection = self.server.connect(database=database(engine) if engine else None, autocommit=True, read_timeout=600)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        finally:
            connection.close()

    def failed(self, engine, where, what):
        """Notes an error; a dead server is started again, so that the other measurements still happen."""
        entry = {"engine": engine, "where": where, "what": what}
        if not self.server.is_running():
            entry["error_log"] = self.server.log_end(150)
            entry["what"] += f"; the server ended with {self.server.process.returncode}"
        self.errors.append(entry)
        print(f"ERROR: {engine}, {where}: {entry['what']}", flush=True)
        if "error_log" in entry:
            seconds = self.server.start(self.options)
            print(f"the server was started again in {seconds:.1f} s", flush=True)

    def load(self, engine):
        """Fills the tables of one engine, brings them to disk, and warms the cache."""
        self.query(None, f"CREATE DATABASE {database(engine)}")
        began = time.monotonic()
        _, failure = self.sysbench(engine, "oltp_read_write", 4, 4, "prepare", limit=1800)
        seconds = time.monotonic() - began
        if failure:
            self.failed(engine, "prepare", failure)
        self.write_out()
        self.result["load"][engine] = {"seconds": seconds, "disk_bytes": self.disk_bytes(engine)}
        for number in range(1, 5):
            self.query(engine, f"ANALYZE TABLE sbtest{number}")
            self.query(engine, f"SELECT AVG(LENGTH(pad)) FROM sbtest{number} FORCE INDEX (PRIMARY)")
            self.query(engine, f"SELECT COUNT(*) FROM sbtest{number} FORCE INDEX (k_{number}) WHERE k > 0")
        print(f"{engine}: loaded in {seconds:.1f} s, {self.result['load'][engine]['disk_bytes'] / 2**20:.1f} MiB on disk", flush=True)

    def write_out(self):
        """Brings every change of both engines to their data files."""
        if "Teak" in self.engines:
            self.query(None, "SET GLOBAL teak_checkpoint_now = 1")
        self.query(None, "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0")
        self.query(None, "SET GLOBAL innodb_max_dirty_pages_pct = 0")
        deadline = time.monotonic() + 120
        while int(self.query(None, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")[0][1]) > 0:
            if time.monotonic() > deadline:
                self.failed("InnoDB", "write out", "dirty pages are left after 120 s")
                break
            time.sleep(0.2)
        self.query(None, "SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT")

    def disk_bytes(self, engine):
        """Bytes that the engine's data files take from the disk; logs are not counted."""
        pattern = "#teak/s*.teak" if engine == "Teak" else f"{database(engine)}/*.[iM]*"
        return sum(os.stat(path).st_blocks * 512 for path in glob.glob(os.path.join(self.server.data, pattern)))

    def settle(self):
        """Waits until the server is idle: what one run left behind (purge, flushing, checkpoints) must not slow the next."""
        deadline = time.monotonic() + self.arguments.settle
        while time.monotonic() < deadline:
            before = self.server.cpu_seconds()
            time.sleep(0.5)
            if self.server.cpu_seconds() - before <= 0.02:
                return

    def measure(self, engine, workload, tables, threads):
        """One timed run; None if it failed."""
        self.settle()
        seconds = self.arguments.seconds
        cpu = self.server.cpu_seconds()
        output, failure = self.sysbench(engine, workload, tables, threads, "run", f"--time={seconds}", "--events=0", limit=seconds + 60)
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

    def compare(self, workload, kind, tables, threads):
        """All runs of one workload at one number of threads."""
        runs = {engine: [] for engine in self.engines}
        broken = set()
        for _ in range(self.arguments.runs):
            for engine in self.engines:
                if engine in broken:
                    continue
                run = self.measure(engine, workload, tables, threads)
                if run is None:
                    broken.add(engine)
                else:
                    runs[engine].append(run)
        row = {"workload": workload, "kind": kind, "threads": threads, "runs": runs}
        self.result["workloads"].append(row)
        print(report.line(row, self.engines), flush=True)

    def check(self, engine):
        """After the workloads: every table is intact and its indexes have the same rows."""
        for number in range(1, 5):
            try:
                verdict = self.query(engine, f"CHECK TABLE sbtest{number}")[-1][3]
                counts = [
                    self.query(engine, f"SELECT COUNT(*), SUM(id), SUM(k) FROM sbtest{number} FORCE INDEX ({index}) WHERE {column} > -1")
                    for index, column in (("PRIMARY", "id"), (f"k_{number}", "k"))
                ]
            except pymysql.err.MySQLError as error:
                self.failed(engine, f"check of sbtest{number}", repr(error))
                continue
            if verdict != "OK" or counts[0] != counts[1]:
                self.failed(engine, f"check of sbtest{number}", f"CHECK TABLE: {verdict}; by primary key {counts[0]}, by k {counts[1]}")

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
            self.write_out()
            for engine in self.engines:
                self.check(engine)
                self.result["load"][engine]["disk_bytes_at_end"] = self.disk_bytes(engine)
        finally:
            self.note_error_log()
            self.save()
        self.server.stop()

    def note_error_log(self):
        """Errors that the server logged are errors, also where no client saw one."""
        try:
            with open(self.server.error_log, errors="replace", encoding="utf-8") as log:
                found = [line.strip() for line in log if "[ERROR]" in line or "panicked" in line]
        except OSError:
            found = []
        for line in found[:20]:
            self.errors.append({"engine": "", "where": "error log", "what": line})

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


def database(engine):
    """Each engine's tables live in a database of their own."""
    return "bench_" + engine.lower()


def machine():
    """What the figures depend on besides the engines."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), platform.machine())
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"cpu": model, "cores": os.cpu_count(), "load_average": os.getloadavg()[0], "server": version, "kernel": platform.release()}


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
        "p95_ms": number(r"95th percentile:\s+([\d.]+)"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--engines", default="InnoDB,Teak", help="two engines; ratios are second to first")
    parser.add_argument("--rows", type=int, default=250_000, help="rows of each of the 4 tables")
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median counts")
    parser.add_argument("--seconds", type=int, default=10, help="of one run")
    parser.add_argument("--threads", default="1,8,32")
    parser.add_argument("--workloads", default="", help="some only, with commas")
    parser.add_argument("--cache", default="1G", help="cache of each engine")
    parser.add_argument("--charset", default="utf8mb4", help="character set of the tables; Debian's default is utf8mb4")
    parser.add_argument("--settle", type=float, default=15.0, help="seconds to wait at most, before a run, for the server to be idle")
    parser.add_argument("--server-option", action="append", default=[], help="a further option of mariadbd; repeatable")
    parser.add_argument("--keep", action="store_true", help="keep the data directory")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    try:
        bench.run()
    finally:
        bench.server.kill()
        if not arguments.keep:
            shutil.rmtree(bench.server.data, ignore_errors=True)
    return 1 if bench.errors else 0


if __name__ == "__main__":
    sys.exit(main())
