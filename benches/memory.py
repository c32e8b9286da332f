#!/usr/bin/env python3
"""Tables in memory: MEMORY with hash and with btree keys, Teak with IN_MEMORY=YES, beside InnoDB and Teak with all rows in the cache.

    benches/memory.sh                                      the default: some combinations, short runs
    benches/memory.sh --full                               all of 1 and 8 tables, 1, 4, 16 and 64 threads
    benches/memory.sh --rows 40000 --runs 1 --seconds 1 --bytes-rows 20000 --statement-rows 20000

Three parts. sysbench: all forms of the tables are on one server with the same rows and take turns, run by run. bytes: what a row takes,
by the engine's own account and by what the server's resident memory grows. statements: those of engine.py. Exits with 1 if
anything failed.
"""

import argparse
import json
import os
import re
import sys
import time

import engine as statements
import memory_report
import sysbench
from comparison import TABLES_IN_MEMORY, database
from engine import FORMS

ENGINES = "InnoDB,Teak,Teak-in-memory,MEMORY,MEMORY-hash"
PARTS = "bytes,sysbench,statements"
# Name, sysbench's script, its options. Those that change rows come last.
WORKLOADS = [
    ("point-select", "oltp_point_select", ()),
    ("ranges", "oltp_read_only", ("--point_selects=0",)),
    ("read-only", "oltp_read_only", ()),
    ("read-write", "oltp_read_write", ()),
    ("write-only", "oltp_write_only", ()),
]
DEFAULT_WORKLOADS = ",".join(name for name, _, _ in WORKLOADS)
# Where rows are made: a table that is in no engine's memory, and survives restarts.
SOURCE = "MyISAM"
# For bytes: the definition, and what of sysbench's rows goes into it. MEMORY is told MAX_ROWS, as its account is of
# blocks, which would be of 1 GiB with so much of max_heap_table_size.
SHAPES = {
    "sysbench's table": ("CREATE TABLE {} (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '',"
                         " pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k (k)) ENGINE=MyISAM MAX_ROWS={}", "*"),
    "two INTs": ("CREATE TABLE {} (id INT NOT NULL, k INT NOT NULL, PRIMARY KEY (id)) ENGINE=MyISAM MAX_ROWS={}", "id, k"),
    "VARCHAR(255) with 11 characters": ("CREATE TABLE {} (id INT NOT NULL, v VARCHAR(255) NOT NULL, PRIMARY KEY (id)) ENGINE=MyISAM MAX_ROWS={}",
                                        "id, LEFT(c, 11)"),
}
PARTS_OF_ROWS = 20
# Seconds without work after which an engine has done what it does once a second.
TIDIED = 1.5
# What a row of sysbench's tables takes in all forms together, somewhat rounded up: CHAR in MEMORY has four bytes for
# each character of utf8mb4.
BYTES_OF_ALL_FORMS = 3500


def engine_of(form):
    """The engine that a form of table belongs to."""
    return FORMS.get(form, (form,))[0]


def definition(form, shown):
    """CREATE TABLE of one form, made from MyISAM's."""
    keyed = re.sub(r"KEY [^(]*\([^)]*\)", r"\g<0> USING BTREE", shown)
    created = keyed.replace(f"ENGINE={SOURCE}", f"ENGINE={engine_of(form)}")
    return FORMS[form][1](created) if form in FORMS else created


class Memory(sysbench.Bench):
    """One server with all forms of the tables."""

    # A server with so many runs has little left over from each; scans of a large table by many threads take minutes.
    IDLE = 0.2
    OVERRUN = 600

    def __init__(self, arguments):
        arguments.server_option = [*TABLES_IN_MEMORY, *arguments.server_option]
        super().__init__(arguments)
        self.tables, self.threads = (list(map(int, text.split(","))) for text in (arguments.tables, arguments.threads))
        self.workloads = [one for one in WORKLOADS if one[0] in arguments.workloads.split(",")]
        self.parts = arguments.parts.split(",")
        self.result.update(bytes=[], plans={}, statements=None)
        self.result["settings"].update(tables=self.tables, threads=self.threads, bytes_rows=arguments.bytes_rows)
        self.planned = len(self.workloads) * len(self.tables) * len(self.threads) * arguments.runs * len(self.engines)
        self.done, self.began = 0, None

    def failed(self, engine, where, what):
        """A server that was started again has nothing in memory: what it answered then would be no figure."""
        lives = self.server.is_running()
        super().failed(engine, where, what)
        if not lives:
            raise SystemExit("The server ended, and with it all tables in memory. No more is measured.")

    def make_rows(self, tables, rows):
        """sysbench's tables with its rows, for all forms to be filled from."""
        self.rows = rows
        self.query(None, f"DROP DATABASE IF EXISTS {database(SOURCE)}")
        self.query(None, f"CREATE DATABASE {database(SOURCE)}")
        _, failure = self.sysbench(SOURCE, "oltp_read_write", tables, min(tables, 4), "prepare", limit=3600)
        if failure:
            raise SystemExit(f"sysbench prepare: {failure}")

    def fill(self, form, tables):
        """The tables of one form, which all get the same rows."""
        self.query(None, f"CREATE DATABASE {database(form)}")
        began = time.monotonic()
        for number in range(1, tables + 1):
            name = f"{database(SOURCE)}.sbtest{number}"
            self.query(form, definition(form, self.query(None, f"SHOW CREATE TABLE {name}")[0][1]))
            self.query(form, f"INSERT INTO sbtest{number} SELECT * FROM {name}", limit=3600)
        seconds = time.monotonic() - began
        self.write_out(engine_of(form))
        self.warm(form, tables)
        self.result["load"].setdefault(str(tables), {})[form] = seconds
        print(f"{memory_report.count(tables, 'table')} of {self.rows} rows: {memory_report.label(form)} filled in {seconds:.1f} s", flush=True)

    def measure(self, engine, workload, tables, threads, *options):
        """One run, with how often a transaction waited for the lock of a whole table; tells how far all is."""
        waited = self.table_lock_waits()
        run = super().measure(engine, workload, tables, threads, *options)
        self.done += 1
        if run:
            run["lock_waits"] = (self.table_lock_waits() - waited) / run["transactions"]
            left = (time.monotonic() - self.began) / self.done * (self.planned - self.done) / 60
            shown = f"{memory_report.label(engine)}: {memory_report.rate(run['tps'])}/s, {memory_report.rate(run['cpu_us'])} us"
            print(f"{self.done}/{self.planned}, about {left:.0f} min left: {' '.join([workload, *options])}, {memory_report.setting(tables, threads)}, {shown}",
                  flush=True)
        return run

    def table_lock_waits(self):
        """Of the server, since it started."""
        return int(self.query(None, "SHOW GLOBAL STATUS LIKE 'Table_locks_waited'")[0][1])

    def sysbench(self, engine, workload, tables, threads, command, *options, limit=None):
        """Between a DELETE and the INSERT that follows it another session may come where there are no transactions: sysbench repeats it then."""
        if engine_of(engine) == "MEMORY":
            options = (*options, f"--mysql-ignore-errors={sysbench.LOCK_CONFLICTS},1062")
        return super().sysbench(engine, workload, tables, threads, command, *options, limit=limit)

    def compare_all(self, tables):
        """All workloads with so many tables."""
        self.make_rows(tables, self.arguments.rows // tables)
        for form in self.engines:
            self.fill(form, tables)
            plan = self.query(form, "EXPLAIN SELECT c FROM sbtest1 WHERE id BETWEEN 1000 AND 1099")[0]
            self.result["plans"].setdefault(str(tables), {})[form] = {"type": plan[3], "rows": int(plan[8])}
        for name, script, options in self.workloads:
            for threads in self.threads:
                runs = self.turns(script, tables, threads, *options)
                self.result["workloads"].append({"workload": name, "tables": tables, "threads": threads, "runs": runs})
        for form in self.engines:
            self.check(form, tables)
            self.query(None, f"DROP DATABASE {database(form)}")

    def weigh(self, form, shape):
        """What a row takes. A new server each time gives no memory to a table that another one had. With a first table everything grows that does not depend on
        rows; of two more the lesser growth counts, as what an engine needs for a moment and frees again is not the rows'."""
        create, columns = SHAPES[shape]
        rows = self.arguments.bytes_rows
        self.server.stop()
        self.server.start(self.options)
        self.query(None, f"CREATE DATABASE {database(form)}")
        growth = []
        for table in ("first", "second", "third"):
            before = self.server.memory()[0]
            self.query(form, definition(form, create.format(table, rows)))
            # In parts, so that what a statement leaves behind (purge, sorters) is little beside the rows.
            for part in range(PARTS_OF_ROWS):
                chosen = f"id > {rows * part // PARTS_OF_ROWS} AND id <= {rows * (part + 1) // PARTS_OF_ROWS}"
                self.query(form, f"INSERT INTO {table} SELECT {columns} FROM {database(SOURCE)}.sbtest1 WHERE {chosen}")
            self.write_out(engine_of(form))
            self.query(form, f"ANALYZE TABLE {table}")
            self.query(form, f"CHECKSUM TABLE {table}")
            if "KEY k" in create:
                self.query(form, f"SELECT COUNT(*) FROM {table} FORCE INDEX (k) WHERE k > -1")
            self.settle(self.arguments.settle, TIDIED)
            growth.append(self.server.memory()[0] - before)
        grown, own = min(growth[1:]) / rows, self.own_account(form, "third") / rows
        self.query(None, f"DROP DATABASE {database(form)}")
        self.result["bytes"].append({"shape": shape, "form": form, "grown": grown, "own": own})
        print(f"bytes for a row, {shape}: {memory_report.label(form)} {grown:.0f}, by its own account {own:.0f}", flush=True)

    def own_account(self, form, name):
        """Bytes of a table as the engine tells them: those in memory, or those of the file where rows are in one."""
        table = f"table_schema = '{database(form)}' AND table_name = '{name}'"
        if form == "Teak-in-memory":
            return int(self.query(None, f"SELECT SUM(memory_bytes) FROM information_schema.teak_tables WHERE {table}")[0][0])
        return int(self.query(None, f"SELECT data_length + index_length FROM information_schema.tables WHERE {table}")[0][0])

    def run(self):
        """The parts; results are written even if one fails."""
        try:
            if {"bytes", "sysbench"} & set(self.parts):
                self.server.install()
                self.server.start(self.options)
            if "bytes" in self.parts:
                self.make_rows(1, self.arguments.bytes_rows)
                for shape in SHAPES:
                    for form in self.engines:
                        self.weigh(form, shape)
            if "sysbench" in self.parts:
                self.began = time.monotonic()
                for tables in self.tables:
                    self.compare_all(tables)
            self.note_error_log()
            self.server.stop()
            if "statements" in self.parts:
                self.run_statements()
        finally:
            self.save()

    def run_statements(self):
        """engine.py, with the same forms."""
        arguments = self.arguments
        bench = statements.Bench(statements.parse([
            f"--engines={arguments.engines}", f"--rows={arguments.statement_rows}", f"--runs={arguments.runs}", f"--cache={arguments.cache}",
            f"--statements={arguments.statements}", f"--plugin-dir={arguments.plugin_dir}", f"--directory={arguments.directory}/statements",
        ]))
        bench.carry_out()
        self.errors += bench.errors()
        self.result["statements"] = bench.result()

    def save(self):
        """memory.json, memory.md, whose charts are also printed, and memory.html."""
        base = os.path.join(self.arguments.directory, "memory")
        forms = {"json": json.dumps(self.result, indent=1), "md": memory_report.markdown(self.result), "html": memory_report.page(self.result)}
        for ending, content in forms.items():
            with open(f"{base}.{ending}", "w", encoding="utf-8") as file:
                file.write(content)
        print(f"\n{memory_report.text(self.result)}\nwritten: {base}.html, {base}.md, {base}.json", flush=True)


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sysbench.add_options(parser, seconds=2, settle=5.0)
    parser.add_argument("--full", action="store_true", help="sysbench with 1, 4, 16 and 64 threads, 5 s a run, unless --threads or --seconds say otherwise")
    parser.add_argument("--parts", default=PARTS, help="some only, with commas")
    parser.add_argument("--engines", default=ENGINES, help="forms of tables; ratios are to the first")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of sysbench's tables together, so that 8 tables have an eighth each")
    parser.add_argument("--tables", default="1,8", help="numbers of tables")
    parser.add_argument("--threads", default="1,16", help="numbers of threads")
    parser.add_argument("--workloads", default=DEFAULT_WORKLOADS, help="some only, with commas")
    parser.add_argument("--bytes-rows", type=int, default=200_000, help="of the tables whose bytes are counted")
    parser.add_argument("--statement-rows", type=int, default=200_000, help="of the tables for statements, a multiple of 10")
    parser.add_argument("--statements", default="", metavar="FILTER", help="regular expression for the names of statements")
    if parser.parse_args().full:
        parser.set_defaults(threads="1,4,16,64", seconds=5)
    arguments = parser.parse_args()
    for wanted, known in ((arguments.workloads, DEFAULT_WORKLOADS), (arguments.parts, PARTS)):
        if unknown := set(wanted.split(",")) - set(known.split(",")):
            parser.error(f"not known: {', '.join(unknown)}; there are {known}")
    needed, available = arguments.rows * BYTES_OF_ALL_FORMS / 2**30, memory_available() / 2**30
    if needed > available:
        parser.error(f"{arguments.rows} rows in all forms need about {needed:.1f} GiB of memory, and {available:.1f} are free: give fewer --rows")
    os.makedirs(arguments.directory, exist_ok=True)
    return arguments


def memory_available():
    """Bytes that the system could give to a process."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


if __name__ == "__main__":
    command_line = parse()
    sys.exit(Memory(command_line).carry_out(command_line.keep))
