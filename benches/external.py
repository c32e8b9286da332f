#!/usr/bin/env python3
"""A wiki's store of texts on several engines, each on a server of its own with limited memory: reads by random ids, cold and then warm.

The work is done by `teak-bench external-store`; here are the servers, their options, the limit of memory, restarts with empty caches, and the table.
Exits with 1 if anything failed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import pymysql

from kit.cgroup import MemoryLimit

import external_report
from comparison import Side, machine, parse_limited, plugin_options, size_of

# Form of a table: engine, and options of the table.
SIDES = {
    "MyISAM": ("MyISAM", ""), "InnoDB": ("InnoDB", ""), "RocksDB": ("RocksDB", ""), "ARCHIVE": ("ARCHIVE", ""), "Teak": ("Teak", ""),
    "Teak-differences": ("Teak", "SIMILARITY=YES RECOMPRESS=YES"),
}
# A look-up by id reads half the table: only sizes, and how fast it is filled.
SIZES_ONLY = {"ARCHIVE"}
FORMS = ("gzip", "plain")
# So many bytes of text are one of gzip: with fewer pages, the plain texts take as much as the gzipped ones.
PLAIN_TO_GZIP = 3.4
# What --quick sets.
QUICK = {"histories": 100, "revisions": 15, "runs": 2, "group": 500, "memory": "256M", "cache": "16M"}
# What an engine's cache is where the tables are not its own.
IDLE_CACHE = "16M"


def server_options(engine, cache, more):
    """The engine's own cache, those of others small; flush mode 2, no binlog."""
    own = {name: cache if name == engine else IDLE_CACHE for name in ("InnoDB", "Teak")}
    return [
        f"--innodb-buffer-pool-size={own['InnoDB']}", f"--teak-cache-size={own['Teak']}", "--innodb-flush-log-at-trx-commit=2",
        "--teak-flush-log-at-trx-commit=2", "--innodb-log-file-size=256M", "--skip-log-bin", "--skip-name-resolve",
        # A pool that fills itself after a restart is not cold.
        "--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF", *more,
    ]


def forget(directory):
    """The kernel has nothing of the files any more."""
    for path, _, names in os.walk(directory):
        for name in names:
            try:
                file = os.open(os.path.join(path, name), os.O_RDONLY)
            except OSError:
                continue  # a socket, or gone
            try:
                os.fsync(file)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def is_asked(pipe):
    """Whether something was written to it. Nobody may have opened it, or who did has not written yet."""
    try:
        return bool(os.read(pipe, 100))
    except BlockingIOError:
        return False


class StoreSide(Side):
    """One form of a table with one form of texts, on a new server."""

    def __init__(self, arguments, name, form, limit):
        self.arguments, self.form, self.limit = arguments, form, limit
        engine, self.table_options = SIDES[name]
        plugins = os.path.join(arguments.directory, "plugins")
        super().__init__(os.path.join(arguments.directory, "server"), plugins, name, engine)
        of_plugin = plugin_options(self.engines, plugins, arguments.plugin_dir, arguments.cache)
        self.options = server_options(engine, arguments.cache, of_plugin) + arguments.server_option
        self.file = os.path.join(arguments.directory, f"{name}-{form}.json")
        self.result = None

    def run(self):
        """Fills, restarts, reads; nothing if the server has not what it takes."""
        if not self.engines:
            return
        self.server.install()
        self.start()
        if refused := self.refused():
            print(f"{self.name} is left out: the server refuses {self.table_options or self.engine}: {refused}", flush=True)
            return
        print(f"--- {self.name}, {self.form} texts", flush=True)
        if os.path.exists(self.file):
            os.unlink(self.file)
        status = self.bench()
        if status or not os.path.exists(self.file):
            self.failed(self.name, f"teak-bench external-store, {self.form}", f"exit status {status}, see what it printed")
        else:
            with open(self.file, encoding="utf-8") as file:
                self.result = json.load(file)
        self.note_error_log()
        self.server.stop()

    def start(self):
        """The server, in the group whose memory is limited."""
        with self.limit.inside():
            self.server.start(self.options)

    def refused(self):
        """Why a table cannot be made, or None."""
        try:
            self.query(None, f"CREATE TABLE test.probe (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, t LONGBLOB) ENGINE={self.engine}"
                             f" {self.table_options}")
            self.query(None, "DROP TABLE test.probe")
            return None
        except pymysql.err.MySQLError as error:
            return error.args[-1]

    def bench(self):
        """Runs `teak-bench external-store`, and restarts the server when it asks for that; its exit status."""
        arguments, pipes = self.arguments, [os.path.join(self.server.directory, name) for name in ("ask", "answer")]
        for pipe in pipes:
            os.mkfifo(pipe)
        histories = arguments.histories if self.form == "gzip" else max(1, round(arguments.histories / PLAIN_TO_GZIP))
        command = [
            arguments.program, "external-store", f"--engine={self.engine}", f"--table-options={self.table_options}", f"--label={self.name}",
            f"--form={self.form}", f"--histories={histories}", f"--revisions={arguments.revisions}", f"--tables={arguments.tables}",
            f"--threads={arguments.threads}", f"--group={arguments.group}", f"--runs={0 if self.name in SIZES_ONLY else arguments.runs}",
            f"--inserts={arguments.inserts}", f"--seed={arguments.seed}", f"--datadir={self.server.data}", f"--pid={self.server.directory}/pid",
            f"--json={self.file}", f"--restart-command=echo restart > '{pipes[0]}' && read -r answer < '{pipes[1]}' && [ \"$answer\" = done ]",
            "--no-defaults", f"--socket={self.server.socket}", "--user=root", *(["--unrelated"] if arguments.unrelated else []),
            *(["--newest"] if arguments.newest else []),
        ]
        # Not blocking: who asks may end before it does.
        asked = os.open(pipes[0], os.O_RDONLY | os.O_NONBLOCK)
        deadline = time.monotonic() + arguments.limit
        with subprocess.Popen(command) as running:
            try:
                while running.poll() is None:
                    if time.monotonic() > deadline:
                        self.failed(self.name, self.form, f"not done after {arguments.limit} s")
                        running.kill()
                    if is_asked(asked):
                        self.answer(pipes[1])
                    time.sleep(0.1)
            finally:
                running.kill()
                os.close(asked)
        return running.returncode

    def answer(self, pipe):
        """Restarts the server, and tells the command that waits for it, also if that failed."""
        outcome = "failed"
        try:
            self.restart()
            outcome = "done"
        finally:
            with open(pipe, "w", encoding="ascii") as answer:
                answer.write(f"{outcome}\n")

    def put_together(self):
        """What the engine does by and by in the background, to its end."""
        begun = time.monotonic()
        for database, table in self.server.query("SELECT table_schema, table_name FROM information_schema.tables WHERE table_name LIKE 'blobs_cluster%'"):
            answer = self.server.query(f"OPTIMIZE TABLE {database}.{table}")
            if answer[-1][-1] != "OK":
                raise RuntimeError(f"OPTIMIZE TABLE {table}: {answer}")
        print(f"values that are alike were put together after {time.monotonic() - begun:.1f} s more", flush=True)

    def restart(self):
        """Everything is in the data files, and no cache has any of it."""
        if "SIMILARITY" in self.table_options:
            self.put_together()
        self.write_out(self.engine)
        self.settle(self.arguments.settle)
        self.server.stop()
        forget(self.server.data)
        self.start()


def compare(arguments):
    """All sides with all forms of texts; the exit status."""
    os.makedirs(arguments.directory, exist_ok=True)
    limit = MemoryLimit(f"teak-bench-{os.getpid()}", size_of(arguments.memory))
    print(f"memory: {limit.about}", flush=True)
    result = {
        "machine": machine(), "memory": limit.about, "outcomes": [], "errors": [],
        "settings": {name: getattr(arguments, name) for name in ("cache", "memory", "histories", "revisions", "runs", "group", "threads", "inserts", "quick", "newest")},
    }
    files = []
    try:
        for form in arguments.forms.split(","):
            for name in arguments.engines.split(","):
                side = StoreSide(arguments, name, form, limit)
                try:
                    side.carry_out(arguments.keep)
                except (OSError, RuntimeError, subprocess.SubprocessError, pymysql.err.MySQLError) as error:
                    side.errors.append({"engine": name, "where": form, "what": repr(error)})
                result["errors"] += side.errors
                if side.result:
                    result["outcomes"].append(side.result)
                    files.append(side.file)
    finally:
        limit.remove()
        save(arguments, result, files)
    return 1 if result["errors"] else 0


def save(arguments, result, files):
    """external.json, external.md and external.html."""
    base = os.path.join(arguments.directory, "external")
    text = external_report.markdown(result)
    for ending, content in (("json", json.dumps(result, indent=1)), ("md", text)):
        with open(f"{base}.{ending}", "w", encoding="utf-8") as file:
            file.write(content)
    if files:
        subprocess.run([arguments.program, "report", *files, f"--html={base}.html"], check=True)
    print(f"\n{text}\nwritten: {base}.md, {base}.json" + (f", {base}.html" if files else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--program", required=True, help="the program")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--quick", action="store_true", help="everything very small; the figures mean nothing")
    parser.add_argument("--engines", default=",".join(SIDES))
    parser.add_argument("--forms", default=",".join(FORMS), help="of the texts")
    parser.add_argument("--histories", type=int, default=2000, help="pages of gzipped texts; fewer of plain ones, so that both take as much")
    parser.add_argument("--revisions", type=int, default=60, help="of each page")
    parser.add_argument("--unrelated", action="store_true", help="as many texts of different pages instead")
    parser.add_argument("--newest", action="store_true", help="only the last revision of each page is read")
    parser.add_argument("--tables", type=int, default=2)
    parser.add_argument("--threads", type=int, default=6, help="that read")
    parser.add_argument("--group", type=int, default=100_000, help="random ids that each thread reads in a run")
    parser.add_argument("--runs", type=int, default=10, help="the first of them cold")
    parser.add_argument("--inserts", type=float, default=50, help="a second, beside the reads")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="420M", help="of a server, with its files in the kernel's cache")
    parser.add_argument("--cache", default="190M", help="of the engine")
    parser.add_argument("--limit", type=int, default=14400, help="seconds that one engine may take with one form of texts")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds to wait at most, before the restart, for the server to be idle")
    arguments = parse_limited(parser, QUICK, engines=SIDES, forms=FORMS)
    shutil.rmtree(os.path.join(arguments.directory, "server"), ignore_errors=True)
    return compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
