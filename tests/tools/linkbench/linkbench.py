#!/usr/bin/env python3
"""Tests of `teak-bench` with a real server. Ends with 'N passed, N failed'."""

import json
import os
import subprocess
import sys

from kit.cases import carry_out, cases_of
from kit.options import parser
from kit.server import Server

from external_store import ExternalStore

ENGINES = ("Teak", "InnoDB")
OPERATIONS = {
    "ADD_LINK", "DELETE_LINK", "UPDATE_LINK", "COUNT_LINK", "MULTIGET_LINK", "GET_LINKS_LIST", "ADD_NODE", "UPDATE_NODE",
    "DELETE_NODE", "GET_NODE",
}
NODES = 5000
# An error of the lock wait must not take longer than a phase.
OPTIONS = ["--innodb-lock-wait-timeout=5", "--teak-lock-wait-timeout=5", "--innodb-buffer-pool-size=128M"]
CONTENTS = {
    "linktable": "id1, id2, link_type, visibility, data, time, version", "counttable": "id, link_type, count, time, version",
    "nodetable": "id, type, version, time, data",
}


class Tests(ExternalStore):
    """The tests, and the server they share."""

    options = OPTIONS

    def __init__(self, arguments):
        self.server = Server(arguments.directory, arguments.plugin_dir)
        self.binary = os.path.join(os.path.dirname(os.path.abspath(arguments.teak)), "teak-bench")

    def teak(self, *arguments):
        """Runs `teak-bench`; returns its exit status and all it printed."""
        done = subprocess.run([self.binary, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                              check=False)
        return done.returncode, done.stdout

    def bench(self, name, engine, *arguments):
        """The same, on this server and the engine's own database."""
        return self.teak(name, *arguments, "--no-defaults", f"--socket={self.server.socket}", "--user=root", f"--database={engine.lower()}")

    def file(self, name):
        """A file for results."""
        return os.path.join(self.server.directory, name)

    def load(self, engine, *arguments):
        """Makes fresh tables."""
        status, output = self.bench("linkbench", engine, "load", f"--engine={engine}", f"--maxid={NODES}", *arguments)
        assert status == 0, output

    def contents(self, engine):
        """Rows and a checksum of each table."""
        sums = {}
        for table, columns in CONTENTS.items():
            select = f"SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', {columns}))) FROM {table}"
            sums[table] = self.server.query(select, database=engine.lower())
        return sums

    def test_a_run_with_a_snapshot_is_consistent_and_well_formed(self):
        for engine in ENGINES:
            status, output = self.bench(
                "linkbench", engine, "all", f"--engine={engine}", f"--maxid={NODES}", "--requesters=4", "--warmup-seconds=1",
                "--phase-seconds=3", "--snapshot=middle", "--verify", f"--json={self.file(engine)}.json", f"--html={self.file(engine)}.html")
            assert status == 0 and "verified:" in output, output
            with open(self.file(engine) + ".json", encoding="utf-8") as file:
                run = json.load(file)
            assert (run["label"], run["engine"]) == (engine, engine)
            assert [(phase["name"], phase["snapshot"]) for phase in run["phases"]] == [("before", False), ("snapshot", True), ("after", False)]
            seen = set()
            for phase in run["phases"]:
                seen |= set(phase["operations"])
                assert phase["total"]["count"] == sum(one["count"] for one in phase["operations"].values()) > 0
                for latency in phase["operations"].values():
                    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["max"] and latency["mean"] <= latency["max"]
            assert seen == OPERATIONS, OPERATIONS - seen
            assert [second["second"] for second in run["series"]] == list(range(9))
            assert run["snapshot"]["error"] is None and run["snapshot"]["seconds"] > 2
            assert not run["failures"] and not run["inconsistencies"]
            assert run["load"]["nodes"] == NODES and run["load"]["links"] > 3 * NODES

    def test_a_report_shows_runs_side_by_side_without_scripts(self):
        status, output = self.teak("report", *(self.file(engine) + ".json" for engine in ENGINES), f"--html={self.file('both.html')}")
        assert status == 0, output
        with open(self.file("both.html"), encoding="utf-8") as file:
            page = file.read()
        assert all(engine in page for engine in ENGINES) and page.count("<svg") == 4 and "<script" not in page
        with open(self.file("other.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        status, output = self.teak("report", self.file("other.json"), f"--html={self.file('other.html')}")
        assert status == 2 and not os.path.exists(self.file("other.html")), output

    def test_what_is_loaded_depends_on_the_seed_alone(self):
        self.load("Teak", "--loaders=1", "--seed=7")
        first = self.contents("Teak")
        self.load("InnoDB", "--loaders=4", "--seed=7")
        assert first == self.contents("InnoDB")
        self.load("InnoDB", "--loaders=4", "--seed=8")
        assert first != self.contents("InnoDB")

    def test_wrong_counts_are_noticed(self):
        self.load("Teak")
        status, output = self.bench("linkbench", "Teak", "verify", f"--maxid={NODES}")
        assert status == 0 and "verified" in output, output
        self.server.query("UPDATE counttable SET count = count + 1 WHERE count > 0 ORDER BY id LIMIT 1", database="teak")
        status, output = self.bench("linkbench", "Teak", "verify", f"--maxid={NODES}")
        assert status == 1 and "visible links" in output, output

    def test_failed_operations_are_counted_and_named(self):
        self.load("InnoDB")
        self.server.query("DROP TABLE counttable", database="innodb")
        status, output = self.bench("linkbench", "InnoDB", "run", f"--maxid={NODES}", "--requesters=2", "--warmup-seconds=0", "--phase-seconds=1")
        assert status == 1 and "COUNT_LINK: ERROR 1146" in output and "GET_NODE: ERROR" not in output, output

    def test_a_server_that_dies_ends_the_run_with_an_error(self):
        self.load("Teak")
        command = [self.binary, "linkbench", "run", f"--maxid={NODES}", "--requesters=3", "--warmup-seconds=0", "--phase-seconds=100",
                   "--snapshot=middle", "--no-defaults", f"--socket={self.server.socket}", "--user=root", "--database=teak"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
            try:
                # Requesters are at work once there are nodes that were not loaded.
                while self.server.query(f"SELECT COUNT(*) FROM nodetable WHERE id > {NODES}", database="teak")[0][0] == 0:
                    assert run.poll() is None, run.stdout.read()
                self.server.kill()
                output, _ = run.communicate(timeout=60)
            finally:
                run.kill()
        self.server.start(OPTIONS)
        assert run.returncode == 1 and ": connection" in output, output

    def test_a_rate_is_kept(self):
        self.load("Teak")
        name = self.file("rate.json")
        status, output = self.bench("linkbench", "Teak", "run", f"--maxid={NODES}", "--requesters=4", "--warmup-seconds=0", "--phase-seconds=1",
                                    "--rate=300", f"--json={name}")
        assert status == 0, output
        with open(name, encoding="utf-8") as file:
            run = json.load(file)
        # The number of requests follows from the seed: what the machine is too slow for counts as never sent.
        requests = sum(phase["total"]["count"] for phase in run["phases"]) + run["unserved"]
        assert 750 <= requests <= 1050, requests

    def test_wrong_use_is_refused(self):
        self.load("Teak")
        status, output = self.bench("linkbench", "Teak", "run", f"--maxid={NODES * 10}")
        assert status == 2 and "--maxid" in output, output
        status, output = self.bench("linkbench", "Teak", "load", "--engine=Nothing", "--maxid=10")
        assert status == 5 and "Nothing" in output, output
        status, output = self.bench("linkbench", "Teak", "load", "--engine=x; DROP DATABASE test", "--maxid=10")
        assert status == 2 and "name of a storage engine" in output, output

    def test_hot_row_and_queue(self):
        for engine in ENGINES:
            name = self.file("hotrow.json")
            status, output = self.bench("hotrow", engine, f"--engine={engine}", "--clients=4", "--seconds=1", f"--json={name}")
            assert status == 0, output
            with open(name, encoding="utf-8") as file:
                hot = json.load(file)
            assert hot["without"]["updates"] > 0 and hot["with"]["updates"] > 0 and not hot["errors"]
            name = self.file("queue.json")
            status, output = self.bench("queue", engine, f"--engine={engine}", "--rows=10000", f"--json={name}")
            assert status == 0, output
            with open(name, encoding="utf-8") as file:
                queue = json.load(file)
            assert queue["rows"] == 10000 and [point["deleted"] for point in queue["points"]] == list(range(1000, 10001, 1000))


def main():
    tests = Tests(parser(__doc__).parse_args())
    tests.server.install()
    tests.server.start(OPTIONS)
    try:
        failed = carry_out([getattr(tests, case.__name__) for case in cases_of(Tests, ExternalStore)], recover=lambda: None)
        tests.server.stop()
        return failed
    finally:
        tests.server.kill()


if __name__ == "__main__":
    sys.exit(main())
