#!/usr/bin/env python3
"""What one small statement takes in Teak and in InnoDB, counted by callgrind instead of timed: it is the same on any machine and beside any other work.

    benches/small.py --statements 'point|update' --functions 20
    benches/small.py --record

Each engine has a server of its own. A statement is executed by one client, warm: N times and 2N times, and the difference of what the two took
is that of N. Lines are counted with empty caches, in a few single executions. Exits with 1 if the engines answer differently or Teak takes more
than the table says.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from pymysql.constants import CLIENT

import small_statements
from callgrind import TUNABLES, Counting, Layers, command, hidden_code
from comparison import Comparison, Server, base_options, database, machine, plugin_options
from small_table import ENGINE, differences, growth, markdown, set_lines

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "small.md")
ENGINES = ("Teak", "InnoDB")
# Executions before anything is counted, and then while it is, so that the caches which are simulated are warm as well.
WARM = 50
# Single executions with empty caches.
SINGLE = 10
SETTLE = 30


class Side(Comparison):
    """One engine with its server under callgrind."""

    def __init__(self, arguments, engine):
        directory = os.path.join(arguments.directory, engine)
        plugins = os.path.join(directory, "plugins")
        self.arguments, self.engine, self.dumps = arguments, engine, os.path.join(directory, "dumps")
        # valgrind has no io_uring, and no 8 TB of addresses for a buffer pool that may grow.
        options = base_options("256M", "--character-set-server=utf8mb4", "--innodb-log-file-size=256M", "--innodb-use-native-aio=0",
                               "--loose-innodb-buffer-pool-size-max=256M")
        super().__init__(os.path.join(directory, "server"), plugins, [engine], options + plugin_options([engine], plugins, arguments.plugin_dir, "256M"))
        shutil.copy2(arguments.counting, plugins)
        shutil.rmtree(self.dumps, ignore_errors=True)
        os.makedirs(self.dumps)
        os.environ["GLIBC_TUNABLES"] = TUNABLES
        self.server.program = (*command(self.dumps), *Server.program)
        self.layers = Layers(hidden_code(Server.program[-1]) if engine == "InnoDB" else range(0))
        self.counting = None

    def start(self):
        """A server with an empty database."""
        self.server.install()
        self.server.start(self.options)
        self.query(None, f"CREATE DATABASE {database(self.engine)}")
        self.counting = Counting(self.server, self.dumps)

    def run(self):
        """Measures the statements that were asked for: of each its counts, functions and answers."""
        measured, loaded, links = {}, None, ()
        for statement in small_statements.statements():
            if not re.search(self.arguments.statements, statement.name):
                continue
            # What a statement takes must not depend on those before it.
            if loaded != statement.of_linkbench:
                links = self.load(statement.of_linkbench)
            loaded = None if statement.changes else statement.of_linkbench
            measured[statement.name] = self.measure(statement, links)
            print(f"{self.engine}: {statement.name}: {measured[statement.name]['counts'][ENGINE]['instructions']:.0f} instructions", flush=True)
        return measured

    def load(self, of_linkbench):
        """Fresh tables, written out; the keys of their links."""
        if of_linkbench:
            self.load_links()
        else:
            self.query(self.engine, "DROP TABLE IF EXISTS sbtest1")
            self.query(self.engine, f"{small_statements.TABLE} ENGINE={self.engine}")
            self.query(self.engine, small_statements.FILL.format(rows=small_statements.ROWS))
            self.query(self.engine, "ANALYZE TABLE sbtest1")
        self.write_out(self.engine)
        self.settle(SETTLE)
        return self.query(self.engine, "SELECT id1, id2, link_type FROM linktable ORDER BY id1, link_type, id2") if of_linkbench else ()

    def load_links(self):
        """LinkBench's tables; by one thread, so that they come in the same order always."""
        subprocess.run([
            self.arguments.teak_bench, "linkbench", "load", f"--engine={self.engine}", f"--maxid={small_statements.NODES}", "--loaders=1", "--no-defaults",
            f"--socket={self.server.socket}", "--user=root", f"--database={database(self.engine)}",
        ], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def measure(self, statement, links):
        """One statement."""
        connection = self.server.connect(database(self.engine), autocommit=statement.autocommit, client_flag=CLIENT.MULTI_STATEMENTS, read_timeout=600)
        execute = statement.executor(connection)
        values = statement.values(small_statements.Source(links))

        def run(count):
            return [execute(one) for one in itertools.islice(values, count)]

        def dump():
            return self.counting.dump(connection, self.layers)

        answers = run(WARM)
        self.counting.start()
        answers += run(WARM)
        dump()
        count = self.arguments.executions
        answers += run(count)
        first = dump()
        answers += run(2 * count)
        second = dump()
        self.counting.start()
        nothing = dump()
        for _ in range(SINGLE):
            self.counting.start()
            answers += run(1)
        self.counting.start()
        single = dump()
        self.counting.stop()
        connection.close()
        counts = differences(first.counts, second.counts, count)
        set_lines(counts, differences(nothing.counts, single.counts, SINGLE))
        return {"counts": counts, "functions": differences(first.functions, second.functions, count), "answers": answers}


def functions(measured, count):
    """The functions of the engine that a statement spends most in, and who calls them, as text."""
    lines = []
    for order in ("own", "inclusive", "allocations"):
        lines.append(f"  by {order}: calls, instructions of its own, with those of whom it calls, allocations")
        for name, of in sorted(measured.items(), key=lambda item, order=order: -item[1][order])[:count]:
            if of[order] >= 0.05:
                callers = sorted(((calls, caller) for caller, calls in of.items() if caller.startswith("from ") and calls >= 0.05), reverse=True)
                shown = "; ".join(f"{calls:.1f} {caller}" for calls, caller in callers[:4])
                lines.append(f"  {of['calls']:8.1f} {of['own']:8.0f} {of['inclusive']:8.0f} {of['allocations']:6.1f}  {name}  [{shown}]")
    return "\n".join(lines)


def carry_out(arguments):
    """Both engines at the same time; the exit status."""
    sides = [Side(arguments, engine) for engine in arguments.engines.split(",")]
    try:
        for side in sides:
            side.start()
        with ThreadPoolExecutor(len(sides)) as pool:
            measured = dict(zip((side.engine for side in sides), pool.map(Side.run, sides)))
        for side in sides:
            side.note_error_log()
    finally:
        for side in sides:
            side.server.kill()
            shutil.rmtree(side.server.data, ignore_errors=True)
    return report(arguments, measured, [error["what"] for side in sides for error in side.errors])


def report(arguments, measured, failures):
    """Prints the figures, leaves them in small.md, and compares answers and the table; the exit status."""
    engines = list(measured)
    for name in measured[engines[0]]:
        answers = [measured[engine][name]["answers"] for engine in engines]
        if any(answer != answers[0] for answer in answers):
            failures.append(f"{name}: the engines answered differently")
        for engine in engines if arguments.functions else ():
            print(f"\n{engine}: {name}\n{functions(measured[engine][name]['functions'], arguments.functions)}")
    counts = {name: {engine: measured[engine][name]["counts"] for engine in engines} for name in measured[engines[0]]}
    server = machine()["server"]
    text = markdown(counts, server)
    for path in [os.path.join(arguments.directory, "small.md"), *([TABLE] if arguments.record else ())]:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    print("\n" + text)
    if not arguments.record:
        failures += growth(TABLE, counts, server)
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


def parse():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--teak-bench", required=True, help="the program")
    parser.add_argument("--counting", required=True, help="the library made of counting.c")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--engines", default="Teak,InnoDB")
    parser.add_argument("--statements", default="", metavar="FILTER", help="regular expression for the names of statements")
    parser.add_argument("--executions", type=int, default=100, metavar="N", help="the difference of N and 2N of them counts")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="shows the functions in which each statement spends most")
    parser.add_argument("--record", action="store_true", help="writes the table that later runs are compared with; say in the commit why counts grew")
    arguments = parser.parse_args()
    if arguments.record and (arguments.statements or arguments.engines != "Teak,InnoDB"):
        parser.error("--record wants all statements and both engines")
    os.makedirs(arguments.directory, exist_ok=True)
    return arguments


if __name__ == "__main__":
    sys.exit(carry_out(parse()))
