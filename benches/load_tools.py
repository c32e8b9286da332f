#!/usr/bin/env python3
"""Times `mariadb`, `myloader` and `teak load` with the same rows into several engines on one server.

One table, 125 bytes of data a row and as much of indexes, with AUTO_INCREMENT and without; extended INSERTs and, of fewer rows,
single-row INSERTs. The tools take turns; the order of all measurements is the same in each round. After each load the table is compared with
what the serial load by `mariadb` left: CHECKSUM TABLE and SHOW CREATE TABLE. Exits with 1 if anything failed or differed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import pymysql

from comparison import Comparison, base_options, machine, plugin_options

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = """CREATE TABLE `loaded` (
  `id` bigint(20) NOT NULL%(counter)s,
  `site` int(11) NOT NULL,
  `published` datetime NOT NULL,
  `hash` char(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `author` varchar(40) NOT NULL,
  `note` varchar(60) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `site` (`site`,`published`),
  KEY `hash` (`hash`),
  KEY `author` (`author`,`site`)
) ENGINE=%(engine)s DEFAULT CHARSET=utf8mb4"""
HEAD = """SET NAMES utf8mb4;
SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0, @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0;
SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO';
DROP TABLE IF EXISTS `loaded`;
%s;
LOCK TABLES `loaded` WRITE;
/*!40000 ALTER TABLE `loaded` DISABLE KEYS */;
"""
TAIL = "/*!40000 ALTER TABLE `loaded` ENABLE KEYS */;\nUNLOCK TABLES;\n"
# As mariadb-dump's --net-buffer-length.
STATEMENT = 1_000_000


def rows(count):
    """Values of the rows, the same in every run."""
    state = 88172645463325252
    for i in range(1, count + 1):
        state ^= (state << 13) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= (state << 17) & 0xFFFFFFFFFFFFFFFF
        yield (f"({i},{state % 5000},'2024-{i % 12 + 1:02}-{i % 28 + 1:02} {i % 24:02}:00:00','{state:016x}{i:016x}',"
               f"'author number {state % 100_003}','{'it is said, ' * (state % 5)}{i}')")


class Tools(Comparison):
    """The server, the dumps and what was measured."""

    def __init__(self, arguments):
        self.arguments = arguments
        engines = arguments.engines.split(",")
        options = base_options(arguments.cache, "--max-allowed-packet=64M")
        options += plugin_options(engines, os.path.join(arguments.directory, "plugins"), arguments.plugin_dir, arguments.cache)
        super().__init__(os.path.join(arguments.directory, "server"), os.path.join(arguments.directory, "plugins"), engines, options)
        self.tools = [tool for tool in arguments.tools.split(",") if tool != "myloader" or shutil.which("myloader")]
        if len(self.tools) != len(arguments.tools.split(",")):
            print("myloader is left out: the package mydumper is not installed", flush=True)
        self.dumps = os.path.join(arguments.directory, "dumps")
        self.measured = {}
        self.expected = {}

    def write_dump(self, engine, counter, single):
        """The file for `mariadb` and `teak load`, and the directory for `myloader`; made once."""
        count = self.arguments.single_rows if single else self.arguments.rows
        name = f"{engine.lower()}-{'auto' if counter else 'plain'}-{'single' if single else 'extended'}-{count}"
        path, directory = os.path.join(self.dumps, name + ".sql"), os.path.join(self.dumps, name)
        if os.path.exists(path) and os.path.exists(os.path.join(directory, "metadata")):
            return path, directory, count
        os.makedirs(directory, exist_ok=True)
        create = TABLE % {"engine": engine, "counter": " AUTO_INCREMENT" if counter else ""}
        with open(os.path.join(directory, "tools.loaded-schema.sql"), "w", encoding="utf-8") as out:
            out.write(f"/*!40101 SET NAMES binary*/;\n/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n\n{create};\n")
        chunk = chunk_rows = 0
        with open(path, "w", encoding="utf-8") as out:
            out.write(HEAD % create)
            part = None
            for statement in statements(rows(count), single):
                # mydumper cuts a table into files of so many rows, which myloader's threads share.
                if part is None or chunk_rows > count // 16:
                    if part:
                        part.close()
                    part = open(os.path.join(directory, f"tools.loaded.{chunk:05}.sql"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
                    part.write("/*!40101 SET NAMES binary*/;\n/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n/*!40103 SET TIME_ZONE='+00:00' */;\n")
                    chunk, chunk_rows = chunk + 1, 0
                text, in_it = statement
                out.write(text)
                part.write(text)
                chunk_rows += in_it
            part.close()
            out.write(TAIL)
        with open(os.path.join(directory, "metadata"), "w", encoding="utf-8") as out:
            out.write("Started dump at: 2026-01-01 00:00:00\nFinished dump at: 2026-01-01 00:00:01\n")
        return path, directory, count

    def command(self, tool, path, directory):
        """What is run, and what it reads."""
        connection = [f"--socket={self.server.socket}", "--user=root"]
        threads = str(self.arguments.connections)
        if tool == "mariadb":
            return ["mariadb", "--no-defaults", *connection, "tools"], path
        if tool == "myloader":
            return ["myloader", *connection, f"--directory={directory}", f"--threads={threads}", "--overwrite-tables"], None
        return [self.arguments.teak, "load", "--no-defaults", *connection, "--database=tools", f"--connections={threads}", "--quiet", path], None

    def measure(self, tool, engine, counter, single):
        """One load and its proof; the rows a second."""
        path, directory, count = self.write_dump(engine, counter, single)
        self.query(None, "DROP DATABASE IF EXISTS tools")
        self.query(None, "CREATE DATABASE tools CHARACTER SET utf8mb4")
        command, source = self.command(tool, path, directory)
        self.settle(10)
        with open(source or os.devnull, "rb") as text:
            began = time.monotonic()
            subprocess.run(command, stdin=text, check=True, capture_output=True)
            seconds = time.monotonic() - began
        key = (engine, counter, single)
        found = (self.server.query("CHECKSUM TABLE loaded", "tools")[0][1], self.server.query("SHOW CREATE TABLE loaded", "tools")[0][1],
                 self.server.query("SELECT COUNT(*) FROM loaded", "tools")[0][0])
        if engine != "BLACKHOLE" and found[2] != count:
            self.failed(engine, tool, f"{found[2]} rows instead of {count}")
        if self.expected.setdefault(key, found) != found:
            self.failed(engine, tool, f"the table differs from the one that {self.tools[0]} has loaded: {found} instead of {self.expected[key]}")
        rate = count / seconds
        self.measured.setdefault(key, {}).setdefault(tool, []).append(rate)
        print(f"{engine:10} {'AUTO_INCREMENT' if counter else 'without':15} {'single rows' if single else 'extended':12} {tool:10}"
              f" {seconds:8.1f} s {rate:10.0f} rows/s", flush=True)

    def run(self):
        """All measurements, then what the issue wants to know of them."""
        os.makedirs(self.dumps, exist_ok=True)
        self.server.install()
        self.server.start(self.options)
        try:
            for _ in range(self.arguments.runs):
                for single in (False, True):
                    for engine in self.engines:
                        for counter in (True, False):
                            for tool in self.tools:
                                try:
                                    self.measure(tool, engine, counter, single)
                                except subprocess.CalledProcessError as error:
                                    self.failed(engine, tool, (error.stderr or b"").decode(errors="replace")[-600:])
                                except pymysql.err.MySQLError as error:
                                    self.failed(engine, tool, repr(error))
            self.note_error_log()
        finally:
            self.server.kill()
            self.save()
        self.verdicts()

    def rate(self, tool, engine, counter=True, single=False):
        """Median of the rates; None if it was not measured."""
        found = self.measured.get((engine, counter, single), {}).get(tool)
        return statistics.median(found) if found else None

    def verdicts(self):
        """The ratios that the loaders are judged by."""
        def ratio(text, numerator, denominator, goal):
            if numerator and denominator:
                met = "" if numerator / denominator >= goal else "   NOT MET"
                print(f"{text:66} {numerator / denominator:6.2f}   (goal {goal}){met}", flush=True)
        print("\nmedians of rows per second, divided", flush=True)
        for tool in self.tools:
            ratio(f"Teak, {tool}: with AUTO_INCREMENT / without", self.rate(tool, "Teak"), self.rate(tool, "Teak", False), 0.97)
        for engine in self.engines:
            for tool in ("mariadb", "myloader"):
                ratio(f"{engine}: teak load / {tool}", self.rate("teak", engine), self.rate(tool, engine), 1)
            ratio(f"{engine}, single rows: teak load / mariadb", self.rate("teak", engine, single=True), self.rate("mariadb", engine, single=True), 4)
        ratio("teak load: Teak / InnoDB", self.rate("teak", "Teak"), self.rate("teak", "InnoDB"), 3)
        ratio("teak load: Teak / BLACKHOLE", self.rate("teak", "Teak"), self.rate("teak", "BLACKHOLE"), 0.5)

    def save(self):
        """The figures as JSON."""
        result = {"machine": machine(), "options": self.options, "rows": self.arguments.rows, "single_rows": self.arguments.single_rows, "errors": self.errors,
                  "rates": [{"engine": key[0], "auto_increment": key[1], "single_rows": key[2], "rates": rates} for key, rates in self.measured.items()]}
        with open(os.path.join(self.arguments.directory, "load_tools.json"), "w", encoding="utf-8") as out:
            json.dump(result, out, indent=1)


def statements(values, single):
    """INSERTs as mariadb-dump writes them, with the number of their rows."""
    if single:
        for value in values:
            yield f"INSERT INTO `loaded` VALUES {value};\n", 1
        return
    collected, length = [], 0
    for value in values:
        collected.append(value)
        length += len(value) + 1
        if length > STATEMENT:
            yield f"INSERT INTO `loaded` VALUES {','.join(collected)};\n", len(collected)
            collected, length = [], 0
    if collected:
        yield f"INSERT INTO `loaded` VALUES {','.join(collected)};\n", len(collected)


def main():
    """Reads the options and runs."""
    build = os.path.join(HERE, "..", "build")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of extended INSERTs")
    parser.add_argument("--single-rows", type=int, default=200_000, help="of single-row INSERTs")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--engines", default="BLACKHOLE,InnoDB,Teak")
    parser.add_argument("--tools", default="mariadb,myloader,teak", help="the first is what the others' results are compared with")
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--cache", default="1G")
    parser.add_argument("--teak", default=os.path.join(build, "bin", "teak"))
    parser.add_argument("--plugin-dir", default=os.path.join(build, "plugin"))
    parser.add_argument("--directory", default=os.path.join(build, "load-tools"))
    tools = Tools(parser.parse_args())
    tools.run()
    sys.exit(1 if tools.errors else 0)


if __name__ == "__main__":
    main()
