#!/usr/bin/env python3
"""Differential SQL tests: each *.sql here runs once with Teak and once with InnoDB as the default engine; the outputs (rows, errors, warnings) must be
the same. Each runs with Teak's tables in memory as well, but for those in NOT_IN_MEMORY.

Those in own/ are about what only Teak has; their outputs must be the .result files beside them (the name `own` for these alone). Where a release of the
server has other words or rules, its file is NAME.RELEASE.result, and NAME.sql says why.

With --plans those named (default: MANY_PLANS) run once for each of the settings that make the server read in another way (PLANS), the lines of both
outputs sorted: what comes first may be another row then. A run of all tests does that with FEW_PLANS.

Leaves the outputs as <name>.{teak,memory,innodb,diff} beside the server's log. TEAK_SQL_TIMEOUT (60): seconds for a file, and half of them for a
statement; whoever runs them on the debug server allows more. Prints 'N passed, N failed'.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys

import pymysql

from kit.options import parser

from serving import serving

HERE = pathlib.Path(__file__).parent
LIMIT = int(os.environ.get("TEAK_SQL_TIMEOUT") or 60)
# Foreign keys, sequences and exports want a file.
NOT_IN_MEMORY = {
    "autoinc", "exports", "foreign_keys", "foreign_keys_alter", "foreign_keys_cascade", "foreign_keys_ddl", "foreign_keys_definitions",
    "foreign_keys_null", "foreign_keys_rebuilds", "foreign_keys_versioned", "instant_columns", "own_changes", "rebuilds", "rows_later_foreign",
    "unique_later_foreign",
}
# What makes the server use an engine in other ways: each strategy of semi-joins alone, sorted reads of many ranges, row
# ids as filters and in merges of indexes, and as little memory as it will do with.
PLANS = [
    "optimizer_switch='materialization=off,firstmatch=off,loosescan=off'",
    "optimizer_switch='materialization=off,loosescan=off,firstmatch=on'",
    "optimizer_switch='materialization=off,firstmatch=off,loosescan=on'",
    "optimizer_switch='firstmatch=off,loosescan=off,materialization=on'",
    "optimizer_switch='semijoin=off,in_to_exists=on,materialization=off'",
    "optimizer_switch='mrr=on,mrr_cost_based=off,mrr_sort_keys=on,join_cache_bka=on', join_cache_level=8",
    "optimizer_switch='rowid_filter=on,index_condition_pushdown=off', join_cache_level=0",
    "optimizer_switch='index_merge_sort_intersection=on,rowid_filter=off,extended_keys=off'",
    "sort_buffer_size=1024, join_buffer_size=128, tmp_memory_table_size=0, max_length_for_sort_data=4",
]
DEFAULTS = ", ".join(f"global {name} = default" for name in ("optimizer_switch", "join_cache_level", "sort_buffer_size", "join_buffer_size",
                                                             "tmp_memory_table_size", "max_length_for_sort_data"))
FEW_PLANS = ["row_ids", "index_only_rows"]
MANY_PLANS = ["queries", "more_reads", *FEW_PLANS, "own_changes", "dml", "partitions", "prefix_keys"]
# Lines of a difference that are shown.
SHOWN = 25


class Tests:
    """The tests on one server, and how many went well."""

    def __init__(self, server):
        self.server, self.passed, self.failed = server, 0, 0
        self.directory = pathlib.Path(server.directory)
        self.client = ["mariadb", "--no-defaults", f"--socket={server.socket}", "--user=root"]

    def run(self, path, engine, more="", charset=""):
        """What the client prints for a file, with this engine as the default and more variables, and this character set or the server's."""
        database = f"t_{path.stem}"
        self.server.query(f"drop database if exists {database}", database=None)
        self.server.query(f"create database {database} {charset}", database=None)
        command = ["timeout", str(LIMIT), *self.client, "--force", "--unbuffered", "--batch", "--show-warnings", "--default-character-set=utf8mb4",
                   f"--init-command=set default_storage_engine={engine}, max_statement_time={LIMIT // 2}{more and ', ' + more}", database]
        with open(path, "rb") as statements:
            told = subprocess.run(command, stdin=statements, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
        text = told.decode("utf-8", "surrogateescape")
        text = re.sub(r"\b(Teak|InnoDB)\b", "ENGINE", text, flags=re.IGNORECASE | re.ASCII)
        text = re.sub(r"#sql-alter-[0-9a-f]+-[0-9a-f]+", "#sql-alter", text)
        lines = re.sub(r" `?IN_MEMORY`?='?ON'?", "", text).split("\n")
        if not lines[-1]:
            lines.pop()
        try:
            if engine == "Teak":
                lines += self.unsound(database)
            self.server.query(f"drop database {database}", database=None)
        except pymysql.err.MySQLError as error:
            lines.append(f"the server is gone: {error}")
        return lines

    def unsound(self, database):
        """What CHECK TABLE finds in the tables that a test has left, but rows without a parent: tests leave them on purpose."""
        names = self.server.query("select concat('`', replace(table_name, '`', '``'), '`') from information_schema.tables where table_type = 'BASE TABLE' and"
                                  f" engine = 'Teak' and table_schema = '{database}'", database=None)
        if not names:
            return []
        found = self.server.query(f"check table {', '.join(name for (name,) in names)} extended", database=database)
        return ["\t".join(line) for line in found
                if line[2] != "note" and line[3] != "OK" and not re.search("constraint .* (is not met|cannot be checked)", line[3])]

    def compare(self, what, name, sides):
        """Whether the second of two outputs, which `sides` names by their suffixes, is the first."""
        for suffix, lines in sides.items():
            (self.directory / f"{name}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
        (expected, wanted), (found, lines) = sides.items()
        difference = list(difflib.unified_diff(wanted, lines, expected, found, lineterm=""))
        if not difference:
            self.passed += 1
            return
        self.failed += 1
        text = "\n".join(difference)
        (self.directory / f"{name}.{found}.diff").write_text(text + "\n", encoding="utf-8", errors="surrogateescape")
        print(f"FAILED {what} ({expected} -, {found} +):", flush=True)
        for line in difference[:SHOWN]:
            print("    " + line.encode("utf-8", "backslashreplace").decode(), flush=True)

    def beside_innodb(self, name):
        """One test, with tables in files and in memory."""
        path = HERE / f"{name}.sql"
        inner = self.run(path, "InnoDB")
        self.compare(f"{name}, teak", name, {"innodb": inner, "teak": self.run(path, "Teak")})
        if name not in NOT_IN_MEMORY:
            self.compare(f"{name}, memory", name, {"innodb": inner, "memory": self.run(path, "Teak", "teak_default_in_memory=on")})

    def own(self):
        """Those that only Teak has."""
        release = re.match(r"\d+\.\d+", self.server.query("select version()", database=None)[0][0])[0]
        for path in sorted((HERE / "own").glob("*.sql")):
            files = [path.with_suffix(f".{release}.result"), path.with_suffix(".result")]
            expected = next(file for file in files if file.exists()).read_text(encoding="utf-8", errors="surrogateescape").split("\n")[:-1]
            # The results are of a server that had latin1 unless it was told otherwise.
            self.compare(f"own/{path.stem}", f"own-{path.stem}", {"result": expected, "teak": self.run(path, "Teak", charset="character set latin1")})

    def in_all_plans(self, name):
        """One test under each setting."""
        path = HERE / f"{name}.sql"
        for number, plan in enumerate(PLANS, 1):
            # A join of this kind whose inner side is partitioned ends the server, with every engine.
            if "join_cache_level=8" in plan and "partition by" in path.read_text(encoding="utf-8"):
                continue
            self.server.query("set global " + plan.replace(", ", ", global "), database=None)
            outputs = {suffix: sorted(self.run(path, engine)) for suffix, engine in ((f"innodb-{number}", "InnoDB"), (f"teak-{number}", "Teak"))}
            self.server.query(f"set {DEFAULTS}", database=None)
            self.compare(f"{name} with {plan}", name, outputs)


def main():
    options = parser(__doc__, names="of tests without .sql, or `own`; default: all")
    options.add_argument("--plans", action="store_true", help="under each setting of PLANS")
    arguments = options.parse_args()
    for name in arguments.names:
        if name != "own" and not (HERE / f"{name}.sql").exists():
            sys.exit(f"there is no test {name}.sql")
    with serving(arguments) as server:
        tests = Tests(server)
        if arguments.plans:
            for name in arguments.names or MANY_PLANS:
                tests.in_all_plans(name)
        else:
            for name in arguments.names or sorted(path.stem for path in HERE.glob("*.sql")):
                if name != "own":
                    tests.beside_innodb(name)
            if not arguments.names or "own" in arguments.names:
                tests.own()
            for name in FEW_PLANS if not arguments.names else ():
                tests.in_all_plans(name)
    print(f"{tests.passed} passed, {tests.failed} failed")
    return tests.failed > 0


if __name__ == "__main__":
    sys.exit(main())
