#!/usr/bin/python3
"""`teak replicate` as a service: the metrics that it tells over HTTP, what systemd is told, and its unit file.

usage: service.py [CASE...]
"""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

from kit.agent import TARGET_OPTIONS, FollowingCases, run_cases
from kit.cases import check
from kit.server import free_port
from kit.web import get

INPUT_OUTPUT = 4
UNIT = pathlib.Path(__file__).resolve().parents[3] / "packaging/teak-replicate.service"


class Cases(FollowingCases):
    """Of who asks, and who listens."""

    def listen(self, at):
        """Adds to the configuration where metrics are told."""
        with open(self.agent.config, "a", encoding="utf-8") as config:
            print("[metrics]", f'listen = "{at}"', sep="\n", file=config)
        self.agent.forget()

    def count(self, at, name, source, **labels):
        """A number of the metrics; None if there is none."""
        text = get(at)[2]
        labels = ",".join(f'{key}="{value}"' for key, value in {"source": source, **labels}.items())
        found = re.search(rf"^teak_replicate_{name}{{{labels}}} (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else None

    def case_metrics_tell_how_sources_are(self):
        at = f"127.0.0.1:{free_port()}"
        self.at(["create database mo"], server=self.other)
        self.at(["create database mo"], server=self.target)
        self.agent.configure({"m1": self.source_keys(databases='["me"]'), "m2": self.source_keys(server=self.other, databases='["mo"]')})
        self.listen(at)
        self.agent.start()
        for name in ("m1", "m2"):
            self.agent.wait_for(f"{name}: follows from")
        before = self.count(at, "transactions_total", "m1")
        self.at(["create database me", "create table me.t (a int primary key)", "insert into me.t values (1)", "insert into me.t values (2)"])
        self.agent.catch_up("m1", self.source)
        self.agent.until(lambda: self.count(at, "behind_seconds", "m1") == 0, "that m1 has all")
        check(self.count(at, "transactions_total", "m1") == before + 4, get(at)[2])
        check(self.count(at, "done_above", "m1") == 0, get(at)[2])
        check(self.count(at, "state", "m1", state="following") == 1 and self.count(at, "received_bytes_total", "m1") > 100, get(at)[2])
        check(abs(self.count(at, "source_time_seconds", "m1") - time.time()) < 60, get(at)[2])
        status, said = self.agent.command("pause", "m1")
        check(status == 0, said)
        self.agent.until(lambda: self.count(at, "state", "m1", state="paused") == 1, "that m1 is paused")
        self.at(["insert into me.t values (3)"])
        time.sleep(1.2)
        check(self.count(at, "behind_seconds", "m1") >= 1 and self.count(at, "transactions_total", "m1") == before + 4, get(at)[2])
        check(self.agent.command("resume", "m1")[0] == 0, "no resume")
        self.agent.until(lambda: self.count(at, "transactions_total", "m1") == before + 5, "that m1 goes on")
        # One stops, and the target is away.
        self.at(["set sql_log_bin = 0", "create table mo.t (a int)", "set sql_log_bin = 1", "insert into mo.t values (1)"], server=self.other)
        self.agent.until(lambda: self.count(at, "state", "m2", state="stopped") == 1, "that m2 has stopped")
        self.target.kill()
        self.agent.until(lambda: self.count(at, "state", "m1", state="waiting") == 1 and self.count(at, "failures_total", "m1") > 0, "that m1 waits")
        self.target.start(TARGET_OPTIONS)
        self.agent.until(lambda: self.count(at, "behind_seconds", "m1") == 0 and self.count(at, "connections_total", "m1") >= 2, "that m1 has all again")
        status, kind, page = get(at, "/")
        check(status == 200 and kind.startswith("text/html") and "<script>" in page and "://" not in page, page)
        check((get(at, "/no")[0], get(at, method="POST")[0]) == (404, 405), "other requests are answered")
        check(self.agent.stop() != 0, "a source has stopped, and the end is in order")

    def case_what_is_done_above_the_position_is_counted(self):
        at = f"127.0.0.1:{free_port()}"
        for server in (self.source, self.target):
            self.at(["create database ma", "create table ma.t (a int primary key) engine = innodb"], server=server)
        self.agent.configure({"ma": self.source_keys(databases='["ma"]', workers=3, commit_order="false")})
        self.listen(at)
        self.agent.start()
        self.agent.wait_for("ma: follows from")
        holder = self.target.connect(database="ma")
        with holder.cursor() as cursor:
            cursor.execute("insert into t values (1)")
        self.at([f"insert into t values ({number})" for number in range(1, 101)], database="ma")
        # Those that are in one transaction with the first one wait with it.
        self.agent.until(lambda: 50 < self.count(at, "done_above", "ma") < 100, "that others are done above it")
        # What the program before it has left counts too.
        self.agent.kill()
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("ma: follows from")
        done = "select sum(1 + length(done) - length(replace(done, ',', ''))) from teak_replicate.worker where source = 'ma' and done > ''"
        self.agent.until(lambda: self.count(at, "done_above", "ma") == self.target.query(done, database=None)[0][0] > 50, "that these are counted")
        holder.close()
        self.agent.catch_up("ma", self.source)
        self.agent.until(lambda: self.count(at, "done_above", "ma") == 0, "that none is above")
        check(self.agent.stop() == 0, "no end in order")

    def case_who_asks_badly_holds_nobody_up(self):
        at = os.path.join(self.directory, "metrics.sock")
        self.agent.configure({"mb": self.source_keys(databases='["mb"]')})
        self.listen(at)
        self.agent.start()
        self.agent.wait_for("mb: follows from")
        lasting = []
        for request in (b"", b"GET /metrics HTTP/1.1\r\n", b"GET /" + b"x" * 8000, b"\0" * 5000):
            lasting.append(socket.socket(socket.AF_UNIX))
            lasting[-1].connect(at)
            lasting[-1].sendall(request)
        began = time.monotonic()
        with contextlib.suppress(TimeoutError):
            check(get(at)[0] == 200, "no answer behind others")
        check(time.monotonic() - began < 10, "others are waited for too long")
        for one in lasting:
            one.close()
        self.at(["create database mb", "create table mb.t (a int)"])
        self.agent.catch_up("mb", self.source)
        # What a killed program leaves is in nobody's way; who listens is.
        self.agent.kill()
        check(os.path.exists(at), "the socket is gone")
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("mb: follows from")
        check(get(at)[0] == 200, "no answer after a kill")
        second = subprocess.run([self.agent.teak, "replicate", "--config", self.agent.config], capture_output=True, check=False)
        check(second.returncode == INPUT_OUTPUT and b"metrics: " in second.stderr and b"in use" in second.stderr, f"{second}")
        check(self.agent.stop() == 0 and not os.path.exists(at), "the socket is left")

    def case_systemd_is_told(self):
        at = os.path.join(self.directory, "notify.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(at)
        listener.settimeout(10)
        self.agent.configure({"n1": self.source_keys(databases='["no1"]'), "n2": self.source_keys(socket='"/nowhere"')})
        self.agent.forget()
        os.environ.update(NOTIFY_SOCKET=at, WATCHDOG_USEC="400000")
        try:
            self.agent.start()
        finally:
            del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
        told = []

        def wait(word):
            while not any(word in one for one in told):
                told.extend(listener.recv(4096).decode().splitlines())

        # A source that is away keeps nothing from being ready, and is told of.
        wait("READY=1")
        check("WATCHDOG=1" in told, f"{told}")
        wait("STATUS=following 1 of 2 sources; waiting: n2")
        began, alive = time.monotonic(), told.count("WATCHDOG=1")
        while time.monotonic() < began + 2:
            told.extend(listener.recv(4096).decode().splitlines())
        check(told.count("WATCHDOG=1") - alive >= 5, f"{told}")
        check(self.agent.command("stop", "n1")[0] == 0, "no stop")
        wait("ended: n1")
        check(told.count("READY=1") == 1 and "STOPPING=1" not in told, f"{told}")
        check(self.agent.stop() == 0, self.agent.says())
        wait("STOPPING=1")
        listener.close()

    def case_the_unit_is_one(self):
        text = UNIT.read_text(encoding="utf-8")
        check("Type=notify" in text, text)
        if shutil.which("systemd-analyze"):
            directory = pathlib.Path(self.directory)
            (directory / UNIT.name).write_text(text.replace("/usr/bin/teak", self.agent.teak).replace("User=teak", "User=root").replace("Group=teak", "Group=root"), encoding="utf-8")
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", directory / UNIT.name], capture_output=True, check=False)
            said = done.stderr.decode()
            check(done.returncode == 0 or "Failed to" in said and UNIT.name not in said, said)


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
