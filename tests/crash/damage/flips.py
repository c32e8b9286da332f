"""Bit flips in all files of a stopped engine."""

import os
import random
import shutil
import subprocess
import sys

import pymysql

from kit.options import parser, seed
from kit.server import Server

TABLES = {
    "ordered": "id INT PRIMARY KEY, v INT, pad VARCHAR(200), KEY kv (v)",
    "texts": "id INT PRIMARY KEY, v INT, pad MEDIUMTEXT, UNIQUE KEY kv (v)",
    "hidden": "id INT NOT NULL, v INT, pad VARCHAR(200), KEY kv (v)",
    "small": "id INT PRIMARY KEY, v INT, pad VARCHAR(200), KEY kv (v)",
}
ROWS = {"ordered": 6000, "texts": 300, "hidden": 3000, "small": 20}
# Rows that are only in the log when the server is killed.
LATE = 50


class Wrong(Exception):
    """What must not happen."""


def fill(server):
    """The tables, with rows that were loaded, and rows that were written one by one."""
    for name, definition in TABLES.items():
        server.query(f"CREATE TABLE {name} ({definition}) ENGINE=Teak")
        pad = "REPEAT(MD5(seq), 250)" if name == "texts" else "CONCAT(MD5(seq), MD5(seq + 1))"
        server.query(f"INSERT INTO {name} SELECT seq, seq * 7, {pad} FROM seq_1_to_{ROWS[name]}")
    server.query("SET GLOBAL teak_checkpoint_now = 1")
    for name in TABLES:
        server.query(f"UPDATE {name} SET v = v + 1 WHERE id % 97 = 3")
        first, last = ROWS[name] + 1, ROWS[name] + LATE
        server.query(f"INSERT INTO {name} SELECT seq, seq * 7, MD5(seq) FROM seq_{first}_to_{last}")
    # Rows of a load that the log does not have, only the names of their blocks.
    server.query("CREATE TABLE loaded (id INT PRIMARY KEY, v INT, pad VARCHAR(200), KEY kv (v)) ENGINE=Teak")
    server.query("INSERT INTO loaded SELECT seq, seq * 7, CONCAT(MD5(seq), MD5(seq + 1)) FROM seq_1_to_12000")


def rows_of(server, table, index="PRIMARY"):
    """All rows, by a scan of the table."""
    hint = "" if table == "hidden" else f"FORCE INDEX ({index})"
    return {row[0]: row for row in server.query(f"SELECT id, v, pad FROM {table} {hint}")}


def flip(path, rng):
    """Flips one bit, mostly where something is written."""
    with open(path, "r+b") as file:
        content = file.read()
        at = rng.randrange(len(content))
        for _ in range(50):
            if content[at] or rng.random() < 0.02:
                break
            at = rng.randrange(len(content))
        file.seek(at)
        file.write(bytes([content[at] ^ (1 << rng.randrange(8))]))
    return at


def choose(engine, rng):
    """Files to damage: of tables, and at most one that all tables need."""
    names = sorted(os.listdir(engine))
    tables = [name for name in names if name.startswith("s") and name.endswith(".teak") and name != "s0.teak"]
    logs = sorted(name for name in os.listdir(os.path.join(engine, "log")) if name[0].isdigit())
    common = ["s0.teak", "s0.copy", "teak.super", os.path.join("log", logs[-1])]
    chosen = rng.sample(tables, rng.randrange(3))
    if not chosen or rng.random() < 0.6:
        chosen.append(rng.choice(common))
    return chosen


class Round:
    """One directory with flipped bits."""

    def __init__(self, server, expected, kind, flipped, teak):
        self.server, self.expected, self.kind, self.flipped, self.teak = server, expected, kind, flipped, teak
        self.engine = os.path.join(server.data, "#teak")

    def start(self, force=0):
        """Whether the engine started; if not, the error log says why, and what can be done."""
        self.server.error_log = os.path.join(self.server.directory, f"error-{force}.log")
        if os.path.exists(self.server.error_log):
            os.remove(self.server.error_log)
        try:
            self.server.start([f"--teak-force-recovery={force}"])
            return True
        except RuntimeError:
            self.server.kill()
            log = self.server.log_end(200)
            if "Teak: cannot start" not in log or (force < 3 and "--teak-force-recovery" not in log):
                raise Wrong(f"a start that failed without saying how to go on:\n{log}") from None
            return False

    def are_told_older(self):
        """Whether the error log says of a touched file that rows are as they were before, as what has changed of them since cannot be read."""
        told = [line for line in self.server.log_end(400).splitlines() if "lack their latest changes" in line]
        return any(name in line for name in self.flipped for line in told)

    def compare(self, allow_missing, allow_older=False):
        """The damaged tables: those with an error, and those that lack rows, which only a forced start may. Without the end of the log rows
        may be as they were before the late update, and in a forced start those of which it says so."""
        damaged = []
        for table, expected in self.expected.items():
            try:
                found = rows_of(self.server, table)
                if not allow_missing:
                    found_by_index = rows_of(self.server, table, "kv")
                    if found_by_index != found:
                        raise Wrong(f"{table}: rows and index differ")
            except pymysql.MySQLError as error:
                if not self.server.is_running():
                    raise Wrong("the server died") from error
                damaged.append(table)
                continue
            for key, row in found.items():
                if expected.get(key) == row:
                    continue
                is_older = (row[0], row[1] + 1, row[2]) == expected.get(key)
                if not is_older or not (allow_older or allow_missing and self.are_told_older()):
                    raise Wrong(f"{table}: row {key} is {row}, not {expected.get(key)}")
            if len(found) < len(expected):
                damaged.append(table)
                if not allow_missing:
                    raise Wrong(f"{table}: {len(found)} of {len(expected)} rows, and no error")
        return damaged

    def check_others(self, damaged):
        """Only the tables whose files were touched may be damaged."""
        touched = {name for name in self.flipped if name not in ("s0.teak", "s0.copy", "teak.super", "teak.copy") and "log" not in name}
        if len(damaged) > len(touched):
            raise Wrong(f"{damaged} are damaged, {self.flipped} were touched")

    def salvage(self):
        """teak salvage has at least the rows that the server gave, of each table, and changes nothing."""
        before = {name: os.stat(os.path.join(self.engine, name)).st_mtime_ns for name in os.listdir(self.engine)}
        output = os.path.join(self.server.directory, "salvaged")
        shutil.rmtree(output, ignore_errors=True)
        done = subprocess.run([self.teak, "salvage", "-o", output, self.engine], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise Wrong(f"teak salvage: {done.stdout}{done.stderr}")
        after = {name: os.stat(os.path.join(self.engine, name)).st_mtime_ns for name in before}
        changed = [name for name in before if before[name] != after[name] and name not in ("tmp", "teak.lock")]
        if changed:
            raise Wrong(f"teak salvage changed {changed}")
        counts = {}
        for table in self.expected:
            path = os.path.join(output, f"test@{table}.tsv")
            with open(path, encoding="ascii") if os.path.exists(path) else open(os.devnull, encoding="ascii") as file:
                counts[table] = sum(line.startswith("0\t") for line in file)
        return counts, done.stdout

    def run(self):
        """What came of it, in a word."""
        outcome = "harmless"
        if self.start():
            damaged = self.compare(allow_missing=False)
            self.check_others(damaged)
            log = self.server.log_end(200)
            if damaged:
                outcome = "told"
                if "corrupt" not in log and "cannot be recovered" not in log:
                    raise Wrong(f"{damaged} gave errors, and the error log says nothing:\n{log}")
            elif "damaged" in log or "was read from" in log:
                outcome = "mended"
            self.server.kill()
            if not damaged:
                return outcome
        else:
            outcome = "refused"
        counts, report = self.salvage()
        for force in (1, 2, 3):
            if not self.start(force):
                continue
            damaged = self.compare(allow_missing=True, allow_older=force == 3)
            self.check_others(damaged if force < 3 else [])
            lost = int(dict(self.server.query("SHOW GLOBAL STATUS LIKE 'teak_lost_ranges'"))["Teak_lost_ranges"])
            given, refused = {}, set()
            for table in self.expected:
                try:
                    given[table] = len(rows_of(self.server, table))
                except pymysql.MySQLError:
                    given[table] = 0
                    refused.add(table)
            self.server.kill()
            if force < 2 and any(given[table] < counts[table] for table in given):
                # Tables that cannot be recovered are left out before a start for reading only.
                continue
            for table, number in given.items():
                if number != counts[table]:
                    raise Wrong(f"{table}: {number} rows from the server, {counts[table]} from teak salvage:\n{report}")
                told = lost or table in refused or force == 3
                if number < len(self.expected[table]) and not told:
                    log = self.server.log_end(200)
                    if "lacks what the log has" not in log:
                        raise Wrong(f"{table}: rows are gone without a word")
            return f"{outcome}, level {force}"
        raise Wrong("no forced start helped")


def main():
    arguments = parser(__doc__, rounds=20).parse_args()
    arguments.seed = seed()
    rng = random.Random(arguments.seed)
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    engine = os.path.join(server.data, "#teak")
    images = {}
    server.start()
    try:
        server.query("CREATE DATABASE IF NOT EXISTS test", database=None)
        fill(server)
        expected = {table: rows_of(server, table) for table in [*TABLES, "loaded"]}
        for kind, end in (("killed", server.kill), ("closed", server.stop)):
            end()
            images[kind] = os.path.join(server.directory, kind)
            subprocess.run(["cp", "-a", "--sparse=always", engine, images[kind]], check=True)
            if kind == "killed":
                server.start()
        failures, outcomes = 0, {}
        for number in range(arguments.rounds):
            kind = rng.choice(sorted(images))
            shutil.rmtree(engine)
            subprocess.run(["cp", "-a", "--sparse=always", images[kind], engine], check=True)
            flipped = {name: flip(os.path.join(engine, name), rng) for name in choose(engine, rng)}
            try:
                outcome = Round(server, expected, kind, flipped, arguments.teak).run()
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                print(f"round {number}: {kind}, {flipped}: {outcome}", flush=True)
            except Wrong as wrong:
                failures += 1
                print(f"round {number}: {kind}, {flipped}: FAILED: {wrong}", flush=True)
            finally:
                server.kill()
    finally:
        server.kill()
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    print(f"{arguments.rounds - failures} passed, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
