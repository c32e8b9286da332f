#!/usr/bin/python3
"""A real Prometheus asks `teak exporter` of a server that is a replica: promtool has nothing to say against the answer, each expression of the dashboard and of
the rules is answered, alerts know of a server that goes; and what prometheus-mysqld-exporter tells beside it is the same.

usage: prometheus.py [CASE...]
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from asked import Exporter, samples
from kit.asking import expect, rows, wait_until
from kit.cases import carry_out, cases_of
from kit.options import parser
from kit.replicas import PRIMARY_OPTIONS, REPLICA_OPTIONS, follow, let_replicate
from kit.server import Server, free_port
from kit.web import answers, get

SKIPPED = 77
PACKAGING = pathlib.Path(__file__).resolve().parents[3] / "packaging"
RULES, EXAMPLE, DASHBOARD = PACKAGING / "prometheus/teak-alerts.yml", PACKAGING / "prometheus/prometheus.yml", PACKAGING / "grafana/teak.json"
ALERTS_TEST = pathlib.Path(__file__).resolve().parent / "alerts.yml"
# Who looks is seen: the other exporter has more connections while it asks, and what they take.
OF_WHO_LOOKS = {"threads_cached", "threads_connected", "threads_running", "memory_used", "max_used_connections_time"}
LOOKS = 10
SHARED = ("mysql_global_status_", "mysql_global_variables_", "mysql_slave_status_", "mysql_version_info", "mysql_transaction_isolation", "mysql_up")
# Names of it that `promtool check metrics` would refuse (docs/exporter.md).
REFUSED = re.compile(r"_(?:total|count|sum|bucket)$|"
                     r"_(?:days|hours|minutes|weeks|milliseconds|microseconds|counter|gauge|histogram|summary)(?:_|$)")


class Prometheus:
    """The real one, which asks each second."""

    def __init__(self, directory, target):
        self.port = free_port()
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        config = os.path.join(directory, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as out:
            print("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}", f"rule_files: ['{RULES}']",
                  f"scrape_configs: [{{job_name: teak, static_configs: [{{targets: ['{target}']}}]}}]", sep="\n", file=out)
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory}/data", f"--web.listen-address=127.0.0.1:{self.port}"]
        self.log = os.path.join(directory, "log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)

    def __enter__(self):
        def is_ready():
            assert self.process.poll() is None, open(self.log, encoding="utf-8").read()
            return answers(f"127.0.0.1:{self.port}", "/-/ready")

        try:
            wait_until(is_ready, "Prometheus")
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, path, **parameters):
        """The data of an answer of its API."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}{query}", timeout=20) as answer:
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        assert said["status"] == "success", said
        return said["data"]

    def query(self, expression):
        """What an expression is, now."""
        return self.ask("query", query=expression)["result"]


def expressions(dashboard):
    """Those of all panels, with what Grafana puts in for variables, by their titles."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "15s").replace("$job", ".*").replace("$instance", ".*")


def ended_well(*command, given=None):
    """Fails with what the command says, if that is anything or its status is not 0."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=ALERTS_TEST.parent)
    assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


class Cases:
    """On a primary and its replica, which is asked."""

    def __init__(self, arguments):
        self.teak, self.directory = arguments.teak, arguments.directory
        self.servers = [Server(os.path.join(self.directory, name), arguments.plugin_dir, port=port) for name, port in (("primary", free_port()), ("replica", None))]
        for server, options in zip(self.servers, (PRIMARY_OPTIONS, REPLICA_OPTIONS)):
            server.install()
            server.start(options)
        self.primary, self.server = self.servers
        with self.primary.connect(database=None) as connection:
            let_replicate(connection)
            rows(connection, "set sql_log_bin = 1")
            rows(connection, "create database if not exists test")
            rows(connection, "create table test.t (id int primary key) engine=Teak")
        with self.server.connect(database=None) as connection:
            follow(connection, int(self.primary.network[1].split("=")[1]))
        wait_until(lambda: self.server.query("show tables from test", database=None), "the replica")
        self.log = os.path.join(self.directory, "exporter.log")

    def close(self):
        for server in self.servers:
            server.kill()

    def exporter(self, *options):
        return Exporter(self.teak, *options, server=self.server, log=self.log)

    def write(self):
        """Something of each kind that is counted."""
        with self.primary.connect(autocommit=True) as connection:
            number = rows(connection, "select coalesce(max(id), 0) from t")[0][0]
            rows(connection, f"insert into t select seq from seq_{number + 1}_to_{number + 100}")
            rows(connection, "create or replace table i (id int primary key) engine=InnoDB")
        self.server.query("select count(*) from t")

    def case_promtool_has_nothing_to_say(self):
        self.write()
        with self.exporter("--indexes") as exporter:
            wait_until(lambda: "mysql_slave_status_seconds_behind_master{" in get(exporter.at)[2], "the replica to follow")
            expect(exporter.missing(), ([], 1, 1), "missing")
            expect(ended_well("promtool", "check", "metrics", given=get(exporter.at)[2]), "", "said of metrics")
        # Also of what is said of a server that is away.
        with Exporter(self.teak, "--no-defaults", "--socket=/nowhere", log=self.log) as exporter:
            expect(ended_well("promtool", "check", "metrics", given=get(exporter.at)[2]), "", "said of an answer with nothing")
        ended_well("promtool", "check", "rules", str(RULES))
        ended_well("promtool", "check", "config", str(EXAMPLE))
        ended_well("promtool", "test", "rules", str(ALERTS_TEST))
        # The test knows all alerts.
        named = set(re.findall(r"alert: (\w+)", RULES.read_text(encoding="utf-8")))
        expect(named - set(re.findall(r'alertname="(\w+)"', ALERTS_TEST.read_text(encoding="utf-8"))), set(), "alerts that nobody tests")

    def case_expressions_are_answered(self):
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        with self.exporter() as exporter, Prometheus(os.path.join(self.directory, "prometheus"), exporter.at) as prometheus:
            def has_three():
                with contextlib.suppress(OSError):
                    self.write()
                    return any(int(series["value"][1]) >= 3 for series in prometheus.query('count_over_time(mysql_up[1m])'))
                return False

            wait_until(has_three, "three answers")
            [target] = prometheus.ask("targets")["activeTargets"]
            expect((target["health"], target["lastError"]), ("up", ""), "the target")
            empty = [(title, text) for title, text in expressions(dashboard) if not prometheus.query(text)]
            expect(empty, [], "expressions of the dashboard without an answer")
            names = set(prometheus.ask("label/__name__/values"))
            rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
            assert len(rules) >= 20, rules
            wait_until(lambda: all(rule["health"] == "ok" for group in prometheus.ask("rules")["groups"] for rule in group["rules"]), "rules to be evaluated")
            for rule in rules:
                prometheus.query(rule["query"])
                used = set(re.findall(r"\b(?:teak|mysql)_\w+", rule["query"]))
                missing = {name for name in used - names if not name.startswith("teak_replicate_")}
                expect(missing, set(), f"metrics of {rule['name']} that nobody tells")
            expect([rule["name"] for rule in rules if rule["state"] == "firing"], [], "alerts of a server that is well")
            # A histogram is one to it: the mean of the half is between the least and the most.
            [half] = prometheus.query("histogram_quantile(0.5, teak_commit_seconds_bucket)")
            assert 0 < float(half["value"][1]) < 60, half
            self.server.kill()
            try:
                # Pending, as it has not been away for a minute.
                wait_until(lambda: prometheus.query('ALERTS{alertname="TeakServerAway"}'), "the alert")
                expect(float(prometheus.query("mysql_up")[0]["value"][1]), 0, "mysql_up")
                expect(float(prometheus.query("up")[0]["value"][1]), 1, "the exporter itself")
            finally:
                self.server.start(REPLICA_OPTIONS)
            wait_until(lambda: prometheus.query("mysql_up == 1"), "the server")

    def case_the_other_exporter_tells_the_same(self):
        other_at = f"127.0.0.1:{free_port()}"
        # It wants a password, and knows no other way that all its releases have.
        for statement in ("create or replace user other@localhost identified by 'secret'", "grant process, slave monitor, select on *.* to other@localhost"):
            self.server.query(statement)
        options = os.path.join(self.directory, "other.cnf")
        with open(options, "w", encoding="utf-8") as out:
            print("[client]", "user=other", "password=secret", f"socket={self.server.socket}", sep="\n", file=out)
        command = ["prometheus-mysqld-exporter", f"--config.my-cnf={options}", f"--web.listen-address={other_at}", "--collect.slave_status"]
        other = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with self.exporter() as exporter:
                wait_until(lambda: answers(other_at), "the other exporter")
                wait_until(lambda: exporter.missing()[0] == [], "the replica")
                # What moves is between two looks of ours, sooner or later.
                differ, shared, ours = None, 0, exporter.scrape()
                for _ in range(LOOKS):
                    theirs = self.shared(samples(get(other_at)[2]))
                    time.sleep(0.6)
                    before, ours = ours, exporter.scrape()
                    expect({name for name, _ in theirs.keys() - before.keys() if not REFUSED.search(name)}, set(), "names that only the other one has")
                    now = {key: (before[key], value, ours[key]) for key, value in theirs.items() if key in before and key in ours}
                    found = {key for key, (low, value, high) in now.items() if not min(low, high) <= value <= max(low, high)}
                    differ = found if differ is None else differ & found
                    shared = len(now)
                    unequal = {name.removeprefix("mysql_global_status_") for name, _ in differ}
                    if unequal <= OF_WHO_LOOKS:
                        break
        finally:
            other.kill()
            other.wait()
        print(f"{shared} shared numbers, all equal but {sorted(differ)}", flush=True)
        assert shared > 900, shared
        assert unequal <= OF_WHO_LOOKS, {key: now[key] for key in differ}
        expect({name for name, _ in self.shared(before)} - {name for name, _ in theirs}, set(), "names like the other one's that it has not")

    @staticmethod
    def shared(found):
        """What both tell, of the numbers of one."""
        return {(name, labels): value for (name, labels), value in found.items() if name.startswith(SHARED) and not name.startswith("mysql_global_status_teak_")}


def main():
    arguments = parser(__doc__, "cases").parse_args()
    for program in ("prometheus", "promtool", "prometheus-mysqld-exporter"):
        if not shutil.which(program):
            print(f"there is no {program}: scripts/setup.sh --test installs it")
            return SKIPPED
    cases = Cases(arguments)
    try:
        return carry_out(cases_of(cases), arguments.names)
    finally:
        cases.close()


if __name__ == "__main__":
    sys.exit(main())
