#!/usr/bin/env python3
"""Times the import of one dump of forum articles into several engines on one server; disk, bytes written, processor.

Each round is a server with fresh data that all engines load into, one after the other; rounds repeat. The dump is made once
by mariadb-dump and kept. After each load the contents, by three indexes, are compared with the source's.
Exits with 1 if anything failed.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time

import pymysql

import load_report
from comparison import Comparison, base_options, database, machine, plugin_options, sync

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = "article87"

# Files with data and indexes, in the data directory; logs and undo are not counted.
DATA_FILES = {
    "BLACKHOLE": [], "InnoDB": [f"{database('InnoDB')}/*.ibd"], "Teak": ["#teak/s*.teak"],
    "MyISAM": [f"{database('MyISAM')}/*.MY[DI]"], "RocksDB": ["#rocksdb/*.sst", "#rocksdb/*.blob"],
}
# Which engines take part. Only the two that the question is about build their keys afterwards.
VARIANTS = {"default": list(DATA_FILES), "after": ["InnoDB", "Teak"], "each": ["InnoDB", "Teak"]}

COLUMNS = ("ext_key site_id forum_id thread_id published crawled inserted title author url author_url thread_title thread_url forum_name"
           " author_location language tags author_id is_thread_start status replies rating hash warning bodyuc").split()
NULLABLE = ("author_location", "language", "rating", "warning")
KEYS = {
    "ext_key": "ext_key", "forum_thread_published": "forum_id, thread_id, published", "site_published": "site_id, published", "hash": "hash",
    "forum_start_published": "forum_id, is_thread_start, published", "published": "published", "inserted": "inserted",
    "forum_thread_start": "forum_id, thread_id, is_thread_start", "site_author": "site_id, author_id",
}
# An index, a condition that lets it be read as a range, and what is summed of each row.
CHECKSUMS = {
    "PRIMARY": ("id > 0", ["id", *(f"IFNULL({name}, 'none')" if name in NULLABLE else name for name in COLUMNS)]),
    "hash": ("hash >= ''", ["hash", "id"]),
    "forum_thread_published": ("forum_id >= 0", ["forum_id", "thread_id", "published", "id"]),
}


class Load(Comparison):
    """One server at a time, and what was measured so far."""

    def __init__(self, arguments):
        self.arguments = arguments
        plugins = os.path.join(arguments.directory, "plugins")
        engines = arguments.engines.split(",")
        unknown = set(engines) - set(DATA_FILES)
        if unknown:
            raise SystemExit(f"no such engine: {', '.join(unknown)}; known: {', '.join(DATA_FILES)}")
        options = base_options(arguments.cache, f"--key-buffer-size={arguments.cache}")
        options += plugin_options(engines, plugins, arguments.plugin_dir, arguments.cache)
        super().__init__(os.path.join(arguments.directory, "server"), plugins, engines, options + arguments.server_option)
        self.dump, self.expected = None, None
        self.result = {
            "engines": self.engines, "machine": machine(), "server_options": self.options, "loads": [],
            "plugin": {"built": os.path.getmtime(os.path.join(plugins, "ha_teak.so")), "bytes": os.path.getsize(os.path.join(plugins, "ha_teak.so"))},
            "settings": {name: getattr(arguments, name) for name in ("size", "seed", "runs", "cache", "variant")}, "errors": self.errors,
        }

    def run(self):
        """Everything; results are written even if a step in the middle fails."""
        self.find_dump()
        variants = list(VARIANTS) if self.arguments.variant == "all" else self.arguments.variant.split(",")
        self.result["loads"] = [
            {"variant": variant, "engine": engine, "runs": []}
            for variant in variants for engine in self.engines if engine in VARIANTS[variant]
        ]
        print(load_report.head(), flush=True)
        try:
            for _ in range(self.arguments.runs):
                for variant in variants:
                    self.round([row for row in self.result["loads"] if row["variant"] == variant])
        finally:
            self.save()

    def round(self, rows):
        """Loads of all engines, on one server with fresh data."""
        self.server.install()
        self.server.start(self.options)
        try:
            for row in rows:
                try:
                    row["runs"].append(self.measure(row["variant"], row["engine"]))
                except (pymysql.err.MySQLError, subprocess.SubprocessError, OSError) as error:
                    self.failed(row["engine"], row["variant"], explain(error))
                    continue
                print(load_report.line(row, self.result), flush=True)
            self.note_error_log()
            self.server.stop()
        finally:
            self.server.kill()

    def measure(self, variant, engine):
        """One load, with the building of keys where the variant has it; then the checks."""
        self.query(None, f"CREATE DATABASE {database(engine)}")
        dump = self.dump_for(engine, with_keys=variant == "default")
        try:
            steps = [self.step(engine, "load", lambda: self.client(engine, dump))]
        finally:
            os.unlink(dump)
        clauses = {name: f"ADD KEY {name} ({columns})" for name, columns in KEYS.items()}
        if variant == "after":
            steps.append(self.step(engine, "all keys", lambda: self.alter(engine, ", ".join(clauses.values()))))
        elif variant == "each":
            steps += [self.step(engine, name, lambda clause=clause: self.alter(engine, clause)) for name, clause in clauses.items()]
        run = {name: sum(step[name] for step in steps) for name in ("seconds", "flush_seconds", "cpu_seconds", "written", "cancelled")}
        run.update(steps=steps, load_seconds=steps[0]["seconds"], keys_seconds=sum(step["seconds"] for step in steps[1:]),
                   disk_bytes=sum(os.stat(path).st_blocks * 512 for path in self.data_files(engine)))
        self.check(engine, variant)
        return run

    def step(self, engine, name, work):
        """Times one step. Written bytes and processor time include writing out and what goes on in the background after it."""
        self.settle(self.arguments.settle)
        cpu, before = self.server.cpu_seconds(), self.server.io()
        began = time.monotonic()
        work()
        done = time.monotonic()
        self.write_out(engine)
        for path in self.data_files(engine):
            sync(path)
        flushed = time.monotonic()
        self.settle(self.arguments.settle)
        after = self.server.io()
        return {
            "name": name, "seconds": done - began, "flush_seconds": flushed - done, "cpu_seconds": self.server.cpu_seconds() - cpu,
            "written": after["write_bytes"] - before["write_bytes"],
            "cancelled": after["cancelled_write_bytes"] - before["cancelled_write_bytes"],
        }

    def data_files(self, engine):
        """The engine's files that count as data."""
        return [path for pattern in DATA_FILES[engine] for path in glob.glob(os.path.join(glob.escape(self.server.data), pattern))]

    def alter(self, engine, clause):
        self.query(engine, f"ALTER TABLE {TABLE} {clause}", limit=self.arguments.limit)

    def client(self, engine, path):
        """What a user does: mariadb < dump.sql"""
        with open(path, "rb") as dump:
            subprocess.run(self.call("mariadb", database(engine)), stdin=dump, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           timeout=self.arguments.limit, check=True)

    def call(self, program, *arguments):
        """The command line of a client program."""
        return [program, "--no-defaults", f"--socket={self.server.socket}", "--user=root", *arguments]

    def dump_for(self, engine, with_keys):
        """The dump with another engine, or also without secondary keys; on disk already, so that its writing back slows no load."""
        path = os.path.join(self.arguments.directory, "load.sql")
        edits = [f"s/^) ENGINE=[A-Za-z]*/) ENGINE={engine}/"]
        if not with_keys:
            edits += ["/^  KEY /d", "s/^\\(  PRIMARY KEY (.*)\\),$/\\1/"]
        with open(path, "wb") as file:
            subprocess.run(["sed", "1,/^) ENGINE=/{" + ";".join(edits) + "}", self.dump], stdout=file, env={**os.environ, "LC_ALL": "C"}, check=True)
        sync(path)
        return path

    def find_dump(self):
        """The dump of this size and seed, from an earlier run or made now, and the checksums of its source."""
        digest = hashlib.sha256()
        for name in ("articles.py", "article87.sql"):
            with open(os.path.join(HERE, name), "rb") as file:
                digest.update(file.read())
        name = f"{self.arguments.size}MB-seed{self.arguments.seed}-{digest.hexdigest()[:8]}"
        self.dump = os.path.join(self.arguments.directory, "dumps", name + ".sql")
        about = os.path.join(self.arguments.directory, "dumps", name + ".json")
        if not os.path.exists(self.dump) or not os.path.exists(about):
            os.makedirs(os.path.dirname(self.dump), exist_ok=True)
            began = time.monotonic()
            self.make_dump(about)
            print(f"made {self.dump} in {time.monotonic() - began:.0f} s", flush=True)
        with open(about, encoding="utf-8") as file:
            self.expected = json.load(file)
        self.result["rows"] = self.expected["PRIMARY"][0]
        self.result["dump_bytes"] = os.path.getsize(self.dump)
        print(f"{self.dump}: {self.result['dump_bytes'] / 2**20:.0f} MiB, {self.result['rows']} rows", flush=True)

    def make_dump(self, about):
        """Fills a MyISAM table, takes its checksums, dumps it."""
        self.server.install()
        self.server.start(self.options)
        try:
            self.query(None, f"CREATE DATABASE {database('source')}")
            with open(os.path.join(HERE, "article87.sql"), encoding="utf-8") as schema:
                self.query("source", schema.read())
            # Never enabled again: the checksums read the rows, and the dump has the keys all the same.
            self.query("source", f"ALTER TABLE {TABLE} DISABLE KEYS")
            fill = (f"SET time_zone = '+00:00'; LOAD DATA LOCAL INFILE '/dev/stdin' INTO TABLE {TABLE} CHARACTER SET latin1"
                    f" ({', '.join(COLUMNS)}); SHOW WARNINGS LIMIT 5")
            generator = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "articles.py"), f"--size={self.arguments.size}", f"--seed={self.arguments.seed}"],
                stdout=subprocess.PIPE)
            with generator:
                warnings = subprocess.run(self.call("mariadb", "--local-infile", "--skip-column-names", database("source"), "--execute", fill),
                                          stdin=generator.stdout, capture_output=True, text=True, check=True).stdout
            if generator.returncode or warnings:
                raise RuntimeError(f"the source table was not filled: generator {generator.returncode}, {warnings}")
            sums = self.checksums("source", forced=False)
            with open(self.dump + ".partial", "wb") as file:
                subprocess.run(self.call("mariadb-dump", database("source"), TABLE), stdout=file, check=True)
            os.rename(self.dump + ".partial", self.dump)
            with open(about, "w", encoding="utf-8") as file:
                json.dump(sums, file)
            self.server.stop()
        finally:
            self.server.kill()

    def checksums(self, engine, forced=True):
        """Number of rows and sum of checksums, by each index of CHECKSUMS."""
        sums = {}
        for index, (condition, parts) in CHECKSUMS.items():
            hint = f"FORCE INDEX ({index})" if forced else "IGNORE INDEX (PRIMARY)"
            select = f"SELECT COUNT(*), CAST(SUM(CRC32(CONCAT_WS('|', {', '.join(parts)}))) AS CHAR) FROM {TABLE} {hint} WHERE {condition}"
            used = self.query(engine, "EXPLAIN " + select)[0][5]
            if forced and used != index:
                self.failed(engine, "check", f"wanted to read index {index}, the server chose {used}")
            sums[index] = list(self.query(engine, select)[0])
        return sums

    def check(self, engine, variant):
        """The contents are those of the source by every index that is read; Teak's table is intact."""
        if engine == "BLACKHOLE":
            return
        found = self.checksums(engine)
        if found != self.expected:
            self.failed(engine, f"check of {variant}", f"the table has {found}, the source {self.expected}")
        if engine == "Teak":
            verdict = self.query(engine, f"CHECK TABLE {TABLE}", limit=self.arguments.limit)[-1][3]
            if verdict != "OK":
                self.failed(engine, f"check of {variant}", f"CHECK TABLE: {verdict}")
        self.settle(self.arguments.settle)

    def save(self):
        """Writes load.json and load.md."""
        base = os.path.join(self.arguments.directory, "load")
        with open(base + ".json", "w", encoding="utf-8") as file:
            json.dump(self.result, file, indent=1)
        with open(base + ".md", "w", encoding="utf-8") as file:
            file.write(load_report.markdown(self.result))
        print("\n" + load_report.summary(self.result))
        print(f"written: {base}.md, {base}.json")


def explain(error):
    """An exception with what the client program said."""
    complaint = getattr(error, "stderr", None)
    return f"{error}: {re.sub(rb'[^ -~]+', b' ', complaint)[:500].decode()}" if complaint else repr(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--size", type=int, default=1000, help="MB of data")
    parser.add_argument("--seed", type=int, default=1, help="of the data")
    parser.add_argument("--runs", type=int, default=1, help="runs of which the median counts")
    parser.add_argument("--engines", default=",".join(DATA_FILES))
    parser.add_argument("--variant", default="default,after", help=f"of {', '.join(VARIANTS)}, with commas; or all")
    parser.add_argument("--cache", default="4G", help="cache of each engine")
    parser.add_argument("--limit", type=int, default=7200, help="seconds that one statement or load may take")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds to wait at most, around a step, for the server to be idle")
    parser.add_argument("--server-option", action="append", default=[], help="a further option of mariadbd; repeatable")
    parser.add_argument("--keep", action="store_true", help="keep the data directory")
    arguments = parser.parse_args()
    unknown = set(arguments.variant.split(",")) - {"all", *VARIANTS}
    if unknown:
        parser.error(f"no such variant: {', '.join(unknown)}")
    return Load(arguments).carry_out(arguments.keep)


if __name__ == "__main__":
    sys.exit(main())
