#!/usr/bin/env python3
"""Statements that stay inside the server, in several engines and builds of Teak: time and processor time of each, and what it answers.

    benches/engine.py --engines InnoDB,Teak --plugin before=/path/ha_teak.so --statements scan
    benches/engine.py --engines InnoDB,Teak,Teak-in-memory,MEMORY,MEMORY-hash

Each engine, and each further build of Teak that --plugin names, has a server of its own, so that work in the background is on its own
account. All are up at the same time and take turns, statement by statement, so that what else the machine does meets all. Results,
numbers of changed rows and what the tables hold in the end are compared. Exits with 1 if anything failed or differed.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import time

import pymysql

import engine_report
from comparison import TABLES_IN_MEMORY, Side, base_options, in_turn, machine, plugin_options
from engine_statements import CONTENT, ENTRIES, SOURCE, TABLES, selected

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = ["InnoDB", "Teak", "RocksDB", "MEMORY", "MyISAM"]
# Other forms of their tables: the engine, and what is different in CREATE TABLE.
FORMS = {"Teak-in-memory": ("Teak", lambda create: f"{create} IN_MEMORY=YES"), "MEMORY-hash": ("MEMORY", lambda create: create.replace("BTREE", "HASH"))}
WITHOUT_TRANSACTIONS = ("MEMORY", "MyISAM")
# What an engine does after a statement is waited for so long, and so long it must have been idle.
SETTLE = 5
IDLE = 0.1


def write_rows(path, count):
    """The rows, the same in every run: digits as sysbench has them."""
    numbers = random.Random(1)
    with open(path, "w", encoding="ascii") as out:
        for i in range(1, count + 1):
            digits = f"{numbers.getrandbits(550):0166d}"[-165:]
            groups = [digits[at:at + 11] for at in range(0, 165, 11)]
            out.write(f"{i}\t{numbers.randrange(count) + 1}\t{'-'.join(groups[:10])}\t{'-'.join(groups[10:])}\n")


class EngineSide(Side):
    """A side that runs statements one by one."""

    def __init__(self, arguments, name, engine, plugin):
        engine, self.form = FORMS.get(engine, (engine, lambda create: create))
        directory = os.path.join(arguments.directory, re.sub(r"\W", "-", name))
        plugins = os.path.join(directory, "plugins")
        super().__init__(os.path.join(directory, "server"), plugins, name, engine)
        # Only this side's engine gets memory: the later of two equal options counts.
        others = ["--character-set-server=utf8mb4", "--max-connections=20", *TABLES_IN_MEMORY]
        if engine != "InnoDB":
            others += ["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=16M"]
        if engine != "Teak":
            others += ["--teak-cache-size=16M"]
        if engine == "MyISAM":
            others += [f"--key-buffer-size={arguments.cache}"]
        self.options = [*base_options(arguments.cache, *others), *plugin_options(self.engines, plugins, os.path.dirname(plugin), arguments.cache)]
        if engine == "RocksDB":
            self.options += ["--rocksdb-max-row-locks=100000000"]
        self.is_there = bool(self.engines)
        if os.path.basename(plugin) != "ha_teak.so":
            raise SystemExit(f"{plugin}: the file has to be called ha_teak.so")
        self.connection = None

    def fill(self, rows):
        """A new server with the rows in a table that no engine has to itself."""
        self.start()
        self.connection = self.server.connect(autocommit=True, read_timeout=1800, local_infile=True)
        self.execute(SOURCE)
        self.execute(f"LOAD DATA LOCAL INFILE '{rows}' INTO TABLE source")

    def execute(self, sql):
        """What a statement answers: the number of rows it changed, or its rows."""
        with self.connection.cursor() as cursor:
            changed = cursor.execute(sql)
            return cursor.fetchall() if cursor.description else changed

    def fresh(self, table):
        """An empty table."""
        self.execute(f"DROP TABLE IF EXISTS {table}")
        self.execute(self.form(f"CREATE TABLE {table} ({TABLES[table]}) ENGINE={self.engine}"))

    def write_down(self, table):
        """After a load: all of it in the data files, statistics as they will be, caches warm."""
        self.write_out(self.engine)
        self.execute(f"ANALYZE TABLE {table}")
        self.execute(CONTENT.format(table=table))
        self.execute(f"SELECT COUNT(*) FROM {table} WHERE k > -1")
        self.settle(SETTLE, IDLE)

    def measure(self, statement):
        """Runs a statement once."""
        for sql in statement.before:
            self.execute(sql)
        self.settle(SETTLE, IDLE)
        began, cpu = time.monotonic(), self.server.cpu_seconds()
        answer = self.execute(statement.sql)
        took, used = time.monotonic() - began, self.server.cpu_seconds() - cpu
        if not statement.changes:
            return answer, {"wall": took, "cpu": used, "all": used}
        self.settle(SETTLE, IDLE)
        return answer, {"wall": took, "cpu": used, "all": self.server.cpu_seconds() - cpu}

    def carries_out(self, statement):
        """Whether the engine has such a statement."""
        return not (statement.transactional and self.engine in WITHOUT_TRANSACTIONS)


class Bench:
    """All sides, and what was measured."""

    def __init__(self, arguments):
        self.arguments = arguments
        teak = os.path.join(arguments.plugin_dir, "ha_teak.so")
        sides = [EngineSide(arguments, engine, engine, teak) for engine in arguments.engines.split(",")]
        sides += [EngineSide(arguments, name, "Teak", path) for name, path in arguments.plugin]
        self.sides = [side for side in sides if side.is_there]
        if len({side.name for side in self.sides}) != len(self.sides):
            raise SystemExit("two sides have one name")
        self.statements = selected(arguments.rows, re.compile(arguments.statements))
        # Of each statement: of each side: its runs.
        self.measured = {statement.name: {side.name: [] for side in self.sides} for statement, asked in self.statements if asked}
        self.machine = machine()

    def carry_out(self):
        """Everything; the exit status."""
        rows = os.path.join(os.path.abspath(self.arguments.directory), "rows.tsv")
        write_rows(rows, self.arguments.rows)
        try:
            for side in self.sides:
                side.fill(rows)
            for number in range(self.arguments.runs):
                self.run(number)
                self.save()
            for side in self.sides:
                side.note_error_log()
        finally:
            for side in self.sides:
                side.server.kill()
                shutil.rmtree(side.server.data, ignore_errors=True)
            os.unlink(rows)
        print("\n" + self.save(), flush=True)
        return 1 if self.errors() else 0

    def run(self, number):
        """All statements once, on fresh tables. Another side begins each time."""
        order = in_turn(self.sides, number)
        for table in TABLES:
            chosen = [(statement, asked) for statement, asked in self.statements if statement.table == table]
            for at, (statement, asked) in enumerate(chosen):
                if at == 0:
                    for side in order:
                        side.fresh(table)
                for _ in range(statement.turns):
                    self.turn(statement, asked, order, number)
                if at == 0:
                    for side in order:
                        side.write_down(table)
            if chosen:
                self.compare(f"content of {table}", {side: side.execute(CONTENT.format(table=table)) for side in order})
            if chosen and table == "t":
                self.compare("entries of t", {side: side.execute(ENTRIES.format(table=table)) for side in order})

    def turn(self, statement, asked, order, number):
        """One statement, once on each side."""
        answers, shown = {}, []
        for side in order:
            if not side.carries_out(statement):
                continue
            try:
                answers[side], figures = side.measure(statement)
            except pymysql.err.MySQLError as error:
                raise SystemExit(f"{side.name}: {statement.name}: {error!r}\n{side.server.log_end()}") from None
            if asked:
                self.measured[statement.name][side.name].append(figures)
                shown.append(f"{side.name} {figures['wall'] * 1e3:.0f}/{figures['cpu'] * 1e3:.0f}")
        self.compare(statement.name, answers)
        if asked:
            print(f"run {number + 1}: {statement.name:45} ms, wall/cpu: {', '.join(shown)}", flush=True)

    def compare(self, what, answers):
        """All sides have to give the first one's answer."""
        first = next(iter(answers))
        for side, answer in answers.items():
            if answer != answers[first]:
                side.failed(side.name, what, f"{str(answer)[:300]} instead of {str(answers[first])[:300]} as {first.name}")

    def errors(self):
        """Of all sides."""
        return [error for side in self.sides for error in side.errors]

    def result(self):
        """All that is known."""
        settings = {name: getattr(self.arguments, name) for name in ("rows", "runs", "cache", "statements")}
        sides = [{"name": side.name, "engine": side.engine, "options": side.options} for side in self.sides]
        return {"machine": self.machine, "settings": settings, "sides": sides, "measured": self.measured, "errors": self.errors()}

    def save(self):
        """The figures as JSON, and as markdown, which is returned."""
        result = self.result()
        text = engine_report.markdown(result)
        for name, content in (("engine.json", json.dumps(result, indent=1)), ("engine.md", text)):
            with open(os.path.join(self.arguments.directory, name), "w", encoding="utf-8") as out:
                out.write(content)
        return text


def build(text):
    """NAME=PATH of a plugin."""
    name, separator, path = text.partition("=")
    if not separator or not os.path.isfile(path):
        raise argparse.ArgumentTypeError(f"{text}: NAME=PATH of a ha_teak.so is wanted")
    return name, os.path.abspath(path)


def parse(options=None):
    """Command line, or a list in its place."""
    default = os.path.join(HERE, "..", "build")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000, help="a multiple of 10")
    parser.add_argument("--runs", type=int, default=3, help="medians count")
    parser.add_argument("--engines", default=",".join(ENGINES), help="the first is what the others are compared with")
    parser.add_argument("--statements", default="", metavar="FILTER", help="regular expression for the names of statements; also those they need run")
    parser.add_argument("--plugin", type=build, action="append", default=[], metavar="NAME=PATH", help="another build of Teak, as one more engine; repeatable")
    parser.add_argument("--cache", default="1G", help="of each engine")
    parser.add_argument("--plugin-dir", default=os.path.join(default, "plugin"), help="of the build that is called Teak")
    parser.add_argument("--directory", default=os.path.join(default, "bench-engine"))
    arguments = parser.parse_args(options)
    if arguments.rows % 10:
        parser.error("--rows has to be a multiple of 10")
    os.makedirs(arguments.directory, exist_ok=True)
    return arguments


if __name__ == "__main__":
    sys.exit(Bench(parse()).carry_out())
