#!/usr/bin/python3
"""`teak exporter`: its numbers are the server's; a server that is away, hangs, or lacks something costs no more than the parts that are missing; who asks badly
holds nobody up; accounts and passwords.

usage: exporter.py [CASE...]
"""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from asked import Exporter, samples
from kit.asking import error_number, expect, rows, wait_until
from kit.cases import OnServer, carry_out, cases_of
from kit.options import parser, seed
from kit.server import Server
from kit.web import get

UNIT = pathlib.Path(__file__).resolve().parents[3] / "packaging/teak-exporter.service"
USAGE, INPUT_OUTPUT = 2, 4
# Seconds that an exporter with --timeout=1 may take to answer, on a busy machine.
SOON = 3
SERVER_PARTS = ["engine", "replication", "server_status", "server_variables"]
UNITS = {"BYTES": ("bytes", 1), "SECONDS": ("seconds", 1), "MILLISECONDS": ("seconds", 1000), "MICROSECONDS": ("seconds", 1_000_000), None: ("", 1)}


class Cases(OnServer):
    """On one server."""

    def __init__(self, arguments):
        super().__init__(arguments)
        self.log = os.path.join(self.directory, "exporter.log")

    def exporter(self, *options, **how):
        """One that asks the server, within a second."""
        return Exporter(self.teak, "--timeout=1", *options, server=self.server, log=self.log, **how)

    def run(self, *options, **environment):
        """Exit status and messages of a command that should end by itself."""
        done = subprocess.run([self.teak, "exporter", *options], capture_output=True, check=False, timeout=20, env={**os.environ, **environment})
        return done.returncode, done.stderr.decode() + done.stdout.decode()

    def account(self, name, password="", grants=()):
        """A new account with these privileges."""
        self.server.query(f"create or replace user {name}@localhost identified by '{password}'")
        for grant in grants:
            self.server.query(f"grant {grant} to {name}@localhost")

    def case_numbers_are_the_engines(self):
        self.server.query("create or replace table t (id int primary key, v int) engine=Teak")
        for at in range(20):
            self.server.query(f"insert into t values ({at}, {at})")
        query = "select name, kind, unit, up_to, value, help from information_schema.teak_metrics order by name, up_to is null, up_to"
        with self.exporter() as exporter:
            before = self.server.query(query)
            time.sleep(0.6)
            found = exporter.scrape()
            after = self.server.query(query)
        histograms = {row[0] for row in before if row[1] == "HISTOGRAM"}
        moved = counts = 0
        for (name, kind, unit, _, least, _), (*_, most, _) in zip(before, after):
            if name in histograms:
                continue
            base, divisor = UNITS[unit]
            words = [word for word in name.split("_") if not unit or word not in ("bytes", "seconds", "milliseconds", "microseconds")]
            told = "_".join(["teak", *words, *filter(None, [base, "total" if kind == "COUNTER" else ""])])
            value = found[told, ()]
            low, high = sorted((least / divisor, most / divisor))
            if kind == "COUNTER" or least == most:
                assert low <= value <= high, (told, low, value, high)
            moved += least != most
            counts += 1
        assert counts > 70 and moved < 30, (counts, moved)
        for name in histograms:
            told = "teak_" + name.replace("microseconds", "seconds")
            ranges = [(row[3], row[4]) for row in before if row[0] == name and row[1] == "HISTOGRAM"]
            buckets = {dict(labels)["le"]: value for (other, labels), value in found.items() if other == f"{told}_bucket"}
            expect(len(buckets), len(ranges), f"ranges of {told}")
            cumulated = [buckets[le] for le in sorted(buckets, key=float)]
            expect(cumulated, sorted(cumulated), f"they add up: {told}")
            expect(sorted(float(le) for le in buckets)[:3], [0.000001, 0.000002, 0.000004], told)
            expect((buckets["+Inf"], found[f"{told}_sum", ()] >= 0), (found[f"{told}_count", ()], True), told)
        assert found["teak_commit_seconds_count", ()] >= 20, found["teak_commit_seconds_count", ()]
        assert not any(name.startswith("mysql_global_status_teak") for name, _ in found), "Teak's numbers are there twice"

    def case_numbers_are_the_servers(self):
        with self.exporter() as exporter:
            found = exporter.scrape()
            expect(exporter.missing(), ([], 1, 1), "missing")
        expect(found["mysql_global_variables_max_connections", ()], float(self.server.query("select @@max_connections")[0][0]), "a variable")
        for name in ("queries", "threads_running", "uptime", "innodb_buffer_pool_read_requests", "innodb_history_list_length", "buffer_pool_dirty_pages"):
            assert found[f"mysql_global_status_{name}", ()] >= 0, name
        assert found["mysql_global_status_commands_total", (("command", "insert"),)] >= 20
        version = dict(next(labels for name, labels in found if name == "mysql_version_info"))
        expect(version["version"], self.server.query("select version()")[0][0], "the version")
        disk = os.statvfs(self.server.data)
        expect(found["teak_data_directory_size_bytes", ()], disk.f_blocks * disk.f_frsize, "the size of the disk")
        assert 0 < found["teak_data_directory_free_bytes", ()] <= disk.f_blocks * disk.f_frsize

    def case_situations_are_seen(self):
        """A wait, a deadlock, an old snapshot that holds history, a prepared transaction."""
        self.server.query("create or replace table t (id int primary key, v int) engine=Teak")
        self.server.query("insert into t values (1, 0), (2, 0)")
        with self.exporter() as exporter, contextlib.ExitStack() as sessions:
            one, other, old, prepared = (self.server.connect() for _ in range(4))
            for session in (one, other, old):
                sessions.enter_context(session)
            before = exporter.scrape()

            def seen(name, least):
                wait_until(lambda: exporter.value(name) >= before[name, ()] + least, name)

            rows(old, "start transaction with consistent snapshot")
            rows(prepared, "xa start 'x'")
            rows(prepared, "insert into t values (9, 9)")
            rows(prepared, "xa end 'x'")
            rows(prepared, "xa prepare 'x'")
            # Without a session it is one that somebody must decide.
            prepared.close()
            seen("teak_transactions_prepared", 1)
            rows(one, "update t set v = v + 1 where id = 1")
            rows(other, "update t set v = v + 1 where id = 2")
            with concurrent.futures.ThreadPoolExecutor() as pool:
                waiter = pool.submit(rows, other, "update t set v = v + 1 where id = 1")
                seen("teak_row_lock_current_waits", 1)
                ends = [error_number(rows, one, "update t set v = v + 1 where id = 2"), waiter.exception()]
                assert ends[0] == 1213 or ends[1] and ends[1].args[0] == 1213, ends
            for session in (one, other):
                session.commit()
            for name in ("teak_deadlocks_total", "teak_row_lock_waits_total", "teak_lock_wait_seconds_count", "teak_rollbacks_total"):
                seen(name, 1)
            wait_until(lambda: exporter.value("teak_row_lock_current_waits") == 0, "nobody to wait")
            for _ in range(20):
                self.server.query("update t set v = v + 1 where id < 3")
            self.server.query("set global teak_checkpoint_now = on")
            seen("teak_history_versions", 1)
            wait_until(lambda: exporter.value("teak_snapshot_oldest_seconds") >= 1, "the age of the snapshot")
            self.server.query("xa rollback 'x'")
            old.rollback()
            wait_until(lambda: exporter.value("teak_snapshot_oldest_seconds") == 0 and exporter.value("teak_transactions_prepared") == 0, "all to end")

    def case_a_hundred_at_once_are_one_question(self):
        def questions():
            return int(self.server.query("show global status like 'com_show_variables'")[0][1])

        with self.exporter() as exporter:
            exporter.scrape()
            time.sleep(0.6)
            before = questions()
            host, _, port = exporter.at.rpartition(":")
            asking = [socket.create_connection((host, int(port)), timeout=20) for _ in range(100)]
            for one in asking:
                one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            answers = []
            for one in asking:
                with one, one.makefile("rb") as text:
                    answers.append(text.read().decode())
            asked = questions() - before
            # And the one that asks here.
            expect(len(self.server.query("select id from information_schema.processlist where user = 'root'")), 2, "connections")
        assert all(text.startswith("HTTP/1.1 200 OK\r\n") and "\nteak_up 1\n" in text for text in answers), answers[0]
        # On a busy machine some of a hundred threads come late.
        assert 1 <= asked <= 2, f"the server was asked {asked} times"

    def case_a_server_that_hangs_costs_its_parts(self):
        with self.exporter() as exporter:
            expect(exporter.missing(), ([], 1, 1), "before")
            self.server.process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(0.6)
                for _ in range(3):
                    began = time.monotonic()
                    missing, *up = exporter.missing()
                    # What the file system says may be late on a busy machine.
                    expect(([part for part in missing if part != "disk"], up), (SERVER_PARTS, [0, 0]), "of a server that hangs")
                    assert time.monotonic() - began < SOON, "an answer that is late"
                began = time.monotonic()
                with concurrent.futures.ThreadPoolExecutor(50) as pool:
                    answers = list(pool.map(lambda _: get(exporter.at), range(50)))
                assert all("mysql_up 0\n" in text for _, _, text in answers) and time.monotonic() - began < SOON, "many answers"
                wait_until(lambda: "does not answer" in get(exporter.at, "/healthz")[2], "health to say so")
                expect(get(exporter.at, "/healthz")[0], 200, "the exporter itself works")
            finally:
                self.server.process.send_signal(signal.SIGCONT)
            wait_until(lambda: exporter.missing() == ([], 1, 1), "it to go on")
            self.server.process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(0.6)
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    late = pool.submit(get, exporter.at)
                    time.sleep(0.2)
                    began = time.monotonic()
                    expect(exporter.end(), 0, "the end, while it waits")
                    assert time.monotonic() - began < SOON, "an end that is late"
                    late.exception()
            finally:
                self.server.process.send_signal(signal.SIGCONT)

    def case_a_server_that_goes_and_comes(self):
        with self.exporter() as exporter:
            expect(exporter.missing(), ([], 1, 1), "before")
            self.server.kill()
            time.sleep(0.6)
            began = time.monotonic()
            expect(exporter.missing(), (SERVER_PARTS, 0, 0), "of a server that is away")
            assert time.monotonic() - began < SOON
            self.server.start()
            wait_until(lambda: exporter.missing() == ([], 1, 1), "it to be there again")
            expect(exporter.value("teak_exporter_connections_total"), 2, "connections")
            said = exporter.said()
            assert said.count("engine is missing: cannot connect") == 1 or "engine is missing" in said, said
            assert said.count("is there again") >= len(SERVER_PARTS), said
            # What a killed session leaves is noticed before it is asked.
            [(number,)] = self.server.query("select id from information_schema.processlist where command = 'Sleep' and user = 'root'")
            self.server.query(f"kill {number}")
            time.sleep(0.6)
            expect(exporter.missing(), ([], 1, 1), "after a KILL")
        # It can begin before the server does.
        self.server.stop()
        with self.exporter() as exporter:
            expect(exporter.missing(), (sorted(SERVER_PARTS + ["disk"]), 0, 0), "at the beginning")
            self.server.start()
            wait_until(lambda: exporter.missing() == ([], 1, 1), "the server to be found")

    def case_somebody_else_at_the_servers_port(self):
        """Who listens and says nothing, or without an end, or nonsense."""
        def impostor(speak):
            listener = socket.create_server(("127.0.0.1", 0))

            def serve():
                while True:
                    try:
                        peer, _ = listener.accept()
                    except OSError:
                        return
                    threading.Thread(target=speak, args=(peer,), daemon=True).start()
            threading.Thread(target=serve, daemon=True).start()
            return listener

        def drip(peer):
            with peer:
                try:
                    peer.sendall(b"\xff\xff\xff\x00")
                    while True:
                        peer.sendall(b"\x0a")
                        time.sleep(0.1)
                except OSError:
                    pass

        speakers = (lambda peer: time.sleep(60), drip, lambda peer: peer.sendall(os.urandom(5000)), lambda peer: peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), lambda peer: peer.close())
        for at, speak in enumerate(speakers):
            listener = impostor(speak)
            options = ("--no-defaults", "--host=127.0.0.1", f"--port={listener.getsockname()[1]}", "--user=x", "--timeout=1")
            with Exporter(self.teak, *options, log=self.log) as exporter:
                for _ in range(2):
                    began = time.monotonic()
                    expect(exporter.missing(), (SERVER_PARTS, 0, 0), f"impostor {at}")
                    assert time.monotonic() - began < SOON, f"impostor {at}: an answer that is late"
                began = time.monotonic()
                expect(exporter.end(), 0, f"the end behind impostor {at}")
                assert time.monotonic() - began < SOON
            listener.close()

    def case_a_server_without_teak(self):
        empty = os.path.join(self.directory, "no-plugins")
        os.makedirs(empty, exist_ok=True)
        other = Server(os.path.join(self.directory, "without"), empty)
        other.install()
        other.start(["--default-storage-engine=InnoDB"])
        try:
            with Exporter(self.teak, server=other, log=self.log) as exporter:
                expect(exporter.missing(), (["engine"], 1, 0), "missing")
                found = exporter.scrape()
                assert found["mysql_global_status_uptime", ()] >= 0 and not any(name.startswith("teak_cache") for name, _ in found)
                assert "engine is missing: ERROR 1109" in exporter.said(), exporter.said()
                expect(exporter.said().count("engine is missing"), 1, "it is said once")
        finally:
            other.kill()

    def case_accounts_need_what_is_documented(self):
        grants = {"nothing": (), "monitor": ("slave monitor on *.*",), "whole": ("process, slave monitor on *.*",)}
        self.server.query("create or replace table t (id int primary key) engine=Teak")
        self.server.query("insert into t values (1)")
        for name, given in grants.items():
            self.account(name, "secret", given)
            options = ("--no-defaults", f"--socket={self.server.socket}", f"--user={name}", "--indexes")
            with Exporter(self.teak, *options, environment={"MYSQL_PWD": "secret"}, log=self.log) as exporter:
                missing, *up = exporter.missing()
                indexes = [labels for labels, value in exporter.scrape().items() if labels[0] == "teak_index_entries"]
                expect(up, [1, 1], f"what {name} sees")
                expect("replication" in missing, name == "nothing", f"replication of {name}: {missing}")
                expect(bool(indexes), name == "whole", f"indexes of {name}")
                expect([part for part in missing if part not in ("replication", "indexes")], [], f"what {name} misses")
        expect(self.server.query("select count(*) from information_schema.teak_metrics where value > 0")[0][0] > 10, True, "numbers")

    def case_passwords_are_nowhere_else(self):
        self.account("p", "hush-hush", ("process, slave monitor on *.*",))
        at = ("--no-defaults", f"--socket={self.server.socket}", "--user=p")
        for option in ("--password=hush-hush", "-phush-hush"):
            status, said = self.run(*at, option)
            assert status == USAGE and "hush" not in said and "--password-file" in said, (status, said)
        file = os.path.join(self.directory, "password")
        with open(file, "w", encoding="utf-8") as out:
            print("hush-hush", file=out)
        options = os.path.join(self.directory, "my.cnf")
        with open(options, "w", encoding="utf-8") as out:
            print(f"[client]\nuser=p\npassword=hush-hush\nsocket={self.server.socket}\ndatabase=missing", file=out)
        for given, environment in (((*at, f"--password-file={file}"), {}), ((f"--defaults-file={options}",), {}), (at, {"MYSQL_PWD": "hush-hush"})):
            with Exporter(self.teak, *given, environment=environment, log=self.log) as exporter:
                expect(exporter.missing(), ([], 1, 1), f"{given}")
                with open(f"/proc/{exporter.process.pid}/cmdline", "rb") as line:
                    assert b"hush" not in line.read(), "it is in the arguments"
                for path in ("/", "/metrics", "/healthz", "/history"):
                    assert "hush" not in get(exporter.at, path)[2], path
                assert "hush" not in exporter.said(), exporter.said()
        with Exporter(self.teak, *at, environment={"MYSQL_PWD": "wrong-one"}, log=self.log) as exporter:
            expect(exporter.missing(), (sorted(SERVER_PARTS + ["disk"]), 0, 0), "with a wrong password")
            assert "ERROR 1045" in exporter.said() and "wrong-one" not in exporter.said(), exporter.said()
        status, said = self.run(*at, "--password-file=/nowhere/x")
        assert status == INPUT_OUTPUT and "/nowhere/x" in said, (status, said)

    def case_the_command_line(self):
        at = ("--no-defaults", f"--socket={self.server.socket}")
        status, said = self.run("--help")
        assert status == 0 and "--listen" in said and "127.0.0.1:9869" in said and "--password-file" in said, said
        for options in (("--listen=localhost:1",), ("--listen=run/x",), ("--timeout=0",), ("--timeout=601",), ("--no-such",), ("--defaults-file=/nowhere/x", "--protocol=pipe")):
            status, said = self.run(*at, *options)
            assert status == USAGE and said, (options, status, said)
        with self.exporter() as exporter:
            status, said = self.run(*at, f"--listen={exporter.at}")
            assert status == INPUT_OUTPUT and f"--listen {exporter.at}: " in said, (status, said)
            expect(exporter.end(), 0, "SIGTERM")
        # It has said good-bye to the server.
        before = int(self.server.query("show global status like 'aborted_clients'")[0][1])
        for how in (signal.SIGTERM, signal.SIGINT):
            with self.exporter() as exporter:
                expect(exporter.missing()[0], [], "missing")
                expect(exporter.end(how), 0, f"{how}")
        expect(int(self.server.query("show global status like 'aborted_clients'")[0][1]), before, "clients that were cut off")
        path = os.path.join(self.directory, "e.sock")
        with self.exporter(listen=path) as exporter:
            expect(exporter.missing()[0], [], "over a socket")
            expect(exporter.end(), 0, "SIGTERM")
            assert not os.path.exists(path), "the socket is left"

    def case_pages(self):
        with self.exporter() as exporter:
            exporter.scrape()
            status, kind, page = get(exporter.at, "/")
            assert status == 200 and kind.startswith("text/html") and "<script>" in page and "://" not in page and "function chart(" in page, page
            wait_until(lambda: '"times":[]' not in get(exporter.at, "/history")[2], "a point")
            status, kind, text = get(exporter.at, "/history")
            assert (status, kind) == (200, "application/json") and '"teak_cache_used_bytes":[' in text and '"mysql_up":[1' in text, text
            # Each series that the page draws is kept, if the server has it.
            named = set(part for part in page.replace('"', " ").split() if part.startswith(("teak_", "mysql_")))
            kept = set(text.replace('"', " ").split())
            missing = {name for name in named if name not in kept and f"{name}_sum" not in kept}
            expect(missing, {"mysql_slave_status_seconds_behind_master"}, "series that the page draws and nobody has")
            expect([get(exporter.at, "/no")[0], get(exporter.at, method="POST")[0], get(exporter.at, "/metrics?x=1")[0]], [404, 405, 200], "statuses")
            expect(get(exporter.at, method="HEAD")[0::2], (200, ""), "HEAD")
            status, _, text = get(exporter.at, "/healthz")
            expect((status, text), (200, "ok: the server answers\n"), "health")

    def case_who_asks_badly_holds_nobody_up(self):
        source = random.Random(seed())
        with self.exporter() as exporter:
            host, _, port = exporter.at.rpartition(":")
            lasting = []

            def say(request):
                lasting.append(socket.create_connection((host, int(port))))
                lasting[-1].sendall(request)

            requests = [b"", b"GET /metrics HTTP/1.1\r\n", b"GET /" + b"x" * 8000, b"\0" * 5000, b"\r\n\r\n", b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 100_000]
            for at in range(150):
                try:
                    say(requests[at % len(requests)] if at < 100 else source.randbytes(source.randrange(3000)))
                except OSError:
                    pass  # it had enough of it
            began = time.monotonic()
            expect(exporter.missing(), ([], 1, 1), "behind others")
            assert time.monotonic() - began < 2, "others are waited for"
            # Who takes no answer, too.
            for _ in range(50):
                say(b"GET /metrics HTTP/1.1\r\n\r\n")
            expect(exporter.missing(), ([], 1, 1), "behind those who do not read")
            # As many as are served at once, and more.
            for _ in range(400):
                say(b"GET")
            began = time.monotonic()
            expect(exporter.missing(), ([], 1, 1), "behind many")
            assert time.monotonic() - began < 10, f"{time.monotonic() - began}"
            for one in lasting:
                one.close()
            with open(f"/proc/{exporter.process.pid}/status", encoding="ascii") as about:
                memory = next(int(line.split()[1]) for line in about if line.startswith("VmHWM"))
            assert memory < 100 << 10, f"{memory} KiB"
            wait_until(lambda: len(os.listdir(f"/proc/{exporter.process.pid}/task")) <= 4, "threads to end")
            expect(exporter.end(), 0, "the end")

    def case_indexes_by_option(self):
        self.server.query("create or replace table `a\"b\\c` (id int primary key, v int, key `k\n1` (v)) engine=Teak")
        self.server.query("insert into `a\"b\\c` select seq, seq from seq_1_to_100")
        with self.exporter() as exporter:
            assert not any(name.startswith("teak_index_") for name, _ in exporter.scrape()), "without the option"
        with self.exporter("--indexes") as exporter:
            text = get(exporter.at)[2]
            found = samples(text)
            labels = (("database", "test"), ("index", "PRIMARY"), ("table", 'a\\"b\\\\c'), ("tree", "0"))
            expect(found["teak_index_entries", labels], 100, "entries")
            assert 'index="k\\n1"' in text, "a name with a line's end"
            for name in ("raw_bytes", "disk_bytes", "look_ups_total", "scans_total", "lock_waits_total", "lock_wait_seconds_total"):
                assert any(known == f"teak_index_{name}" for known, _ in found), name

    def case_systemd_is_told(self):
        at = os.path.join(self.directory, "notify.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            if os.path.exists(at):
                os.remove(at)
            listener.bind(at)
            listener.settimeout(10)
            told = []

            def wait(word):
                while word not in told:
                    told.extend(listener.recv(4096).decode().splitlines())

            with self.exporter(environment={"NOTIFY_SOCKET": at, "WATCHDOG_USEC": "400000"}) as exporter:
                wait("READY=1")
                wait("STATUS=the server answers")
                wait("WATCHDOG=1")
                expect(exporter.end(), 0, "the end")
                wait("STOPPING=1")

    def case_the_unit_is_one(self):
        text = UNIT.read_text(encoding="utf-8")
        assert "Type=notify" in text and "teak exporter --defaults-file" in text, text
        if shutil.which("systemd-analyze"):
            copy = pathlib.Path(self.directory) / UNIT.name
            copy.write_text(text.replace("/usr/bin/teak", os.path.abspath(self.teak)).replace("=teak\n", "=root\n"), encoding="utf-8")
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, check=False)
            said = done.stderr.decode()
            assert done.returncode == 0 or "Failed to" in said and UNIT.name not in said, said


def main():
    arguments = parser(__doc__, "cases").parse_args()
    cases = Cases(arguments)
    try:
        return carry_out(cases_of(cases), arguments.names)
    finally:
        cases.server.kill()


if __name__ == "__main__":
    sys.exit(main())
