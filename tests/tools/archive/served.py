#!/usr/bin/python3
"""`teak archive serve`: what goes in and out by HTTP, for curl and Python, in bounded memory; who may ask; how it ends, in order and by a kill."""

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from command import content, run_cases

from kit.asking import expect

MUSIC = {"namespaces": {"music": {"artist": "string(20)", "track": "long"}}, "indexes": [["music.artist", "music.track"]]}


class Serving:
    """A server of an archive, at a port of its choice."""

    def __init__(self, archive, *arguments):
        words = archive.words("serve", "--listen", "127.0.0.1:0", *arguments)
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        line = self.process.stderr.readline()
        assert line.startswith(f"serving {archive.path} at http://"), line
        self.address = line.split()[-1]
        self.host = self.address.removeprefix("http://")
        self.authorization = {}

    def ask(self, method, path, body=None, headers=None):
        """Status, headers by their names in small letters, and bytes of an answer."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, {**self.authorization, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def json(self, method, path, body=None, status=200):
        """The JSON of an answer that must have this status."""
        found, _, told = self.ask(method, path, None if body is None else json.dumps(body))
        expect(found, status, f"{method} {path}: {told}")
        return json.loads(told) if told else None

    def put(self, data, parameters=""):
        """The OID of what is put."""
        status, _, told = self.ask("POST", "/api/objects" + parameters, data)
        expect(status, 201, told)
        return json.loads(told)["oid"]

    def curl(self, path, *words):
        """What curl writes."""
        return subprocess.run(["curl", "--silent", "--show-error", "--fail-with-body", *words, self.address + path], check=True, capture_output=True).stdout

    def end(self, how=signal.SIGTERM, status=0):
        """Ends it; what it has written since it began."""
        self.process.send_signal(how)
        told = self.process.stderr.read()
        self.process.stderr.close()
        expect(self.process.wait(), status, told)
        return told

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.returncode is None:
            if kind:
                self.process.kill()
                self.process.wait()
            else:
                expect(self.end(), "", "nothing is told of what goes well")


def case_forms_that_scripts_rely_on(archive):
    archive.ok("init")
    path = archive.file("a b.txt", content(1, 300_000))
    with Serving(archive) as server:
        server.json("PUT", "/api/schema", MUSIC)
        told = json.loads(server.curl("/api/objects?meta=artist=Bach&meta=track=3", "--data-binary", f"@{path}", "--header", "Content-Type: text/plain"))
        oid, data = told["oid"], told["data"]
        expect(server.curl(f"/api/objects/{oid}"), content(1, 300_000), "by its OID")
        expect(server.curl(f"/api/objects/{data}", "--range", "5-9"), content(1, 300_000)[5:10], "a range by its content")
        found = json.loads(server.curl("/api/query", "--get", "--data-urlencode", "q=artist = 'Bach' and track < 10", "--data", "fields=track"))
        expect(found, {"records": [{"music.track": 3}], "cursor": None}, "query")
        streamed = subprocess.run(["curl", "-sT", "-", "-X", "POST", server.address + "/api/objects"], input=b"streamed", capture_output=True, check=True)
        expect(server.ask("GET", "/api/objects/" + json.loads(streamed.stdout)["oid"])[2], b"streamed", "chunked")
        archive.refused(2, f"is served at {server.address}: use its API", "query", "")
        archive.refused(2, "is served at", "serve", "--listen", "127.0.0.1:0")
        expect(json.loads(server.curl("/healthz")), {"status": "ok"}, "health")
    expect(archive.get(oid), content(1, 300_000), "by the command line")
    expect(archive.stat(oid)["system.content_type"], "text/plain", "type")
    expect(os.path.exists(os.path.join(archive.path, "http-address")), False, "the file with its address")


def case_memory_is_bounded(archive):
    archive.ok("init")
    block = content(2, 1 << 20)
    parts = 192

    def whole():
        for number in range(parts):
            yield number.to_bytes(8, "big") + block[number * 1000:] + block[:number * 1000]

    with Serving(archive) as server:
        oid = server.put(whole())
        connection = http.client.HTTPConnection(server.host, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", f"/api/objects/{oid}")
            answer = connection.getresponse()
            for part in whole():
                assert answer.read(len(part)) == part
            expect(answer.read(), b"", "the end")
        with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
            most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    assert most < 200_000, f"{most} KiB for an object of {parts} MiB"


def case_passwords_and_addresses(archive):
    archive.ok("init")
    path = archive.file("password", b"a secret\n")
    with Serving(archive, "--user", "me", "--password-file", path) as server:
        expect(server.ask("GET", "/api/query")[0], 401, "without")
        server.authorization = {"Authorization": "Basic " + base64.b64encode(b"me:a secre").decode()}
        expect(server.ask("GET", "/api/query")[0], 401, "another")
        server.authorization = {"Authorization": "Basic " + base64.b64encode(b"me:a secret").decode()}
        oid = server.put(b"x")
        server.json("DELETE", f"/api/objects/{oid}", status=204)
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
            assert b"a secret" not in file.read()
    lines = [json.loads(line) for line in archive.ok("audit").splitlines()]
    expect([(line["actor"], line["action"]) for line in lines], [("me", "remove")], "who has done it")
    archive.refused(2, "can be reached by other machines", "serve", "--listen", "0.0.0.0:0")
    archive.refused(2, "password-file", "serve", "--user", "me")
    archive.refused(2, "has no password", "serve", "--user", "me", "--password-file", archive.file("none", b"\n"))
    archive.refused(4, "nowhere", "serve", "--user", "me", "--password-file", "/nowhere")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        archive.refused(4, "cannot listen at 127.0.0.1", "serve", "--listen", "127.0.0.1:%d" % taken.getsockname()[1])
    with Serving(archive) as server:
        expect(server.ask("GET", "/api/query", headers={"Host": "elsewhere.example"})[0], 403, "a name that leads here")
        expect(server.ask("POST", "/api/objects", b"x", {"Origin": "https://elsewhere.example"})[0], 403, "a page of elsewhere")


def case_damage_breaks_the_answer_off(archive):
    archive.ok("init")
    contents = [content(number, size) for number, size in enumerate((400_000, 3_000_000, 70_000))]
    oids = [archive.put(each) for each in contents]
    archive.damage(contents[1][2_000_000:2_000_100])
    server = Serving(archive)
    try:
        ended = subprocess.run(["curl", "-s", f"{server.address}/api/objects/{oids[1]}"], capture_output=True, check=False)
        expect((ended.returncode, contents[1].startswith(ended.stdout)), (18, True), "curl says that a part is missing")
        assert len(ended.stdout) > 1_000_000
        for number in (0, 2):
            expect(server.ask("GET", f"/api/objects/{oids[number]}")[2], contents[number], "others")
        server.put(b"goes on")
    finally:
        told = server.end()
    assert "is damaged" in told and "b3:" in told, told


def case_many_at_a_time_beside_gc_and_scrub(archive):
    archive.ok("init", "--grace", "0")
    failures, oids = [], []

    def work(server, number):
        try:
            for turn in range(20):
                data = content(number * 1000 + turn, (turn % 5) ** 5 * 600)
                oid = server.put(data)
                assert server.ask("GET", f"/api/objects/{oid}")[2] == data
                if turn % 2:
                    server.json("DELETE", f"/api/objects/{oid}", status=204)
                else:
                    oids.append(oid)
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    with Serving(archive) as server:
        threads = [threading.Thread(target=work, args=(server, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        ended = set()
        while any(thread.is_alive() for thread in threads):
            for kind in ("gc", "scrub"):
                status, headers, _ = server.ask("POST", "/api/jobs", json.dumps({"kind": kind}))
                assert status in (202, 409), status
                if status == 202:
                    job = server.json("GET", headers["location"])
                    while job["ended"] is None:
                        job = server.json("GET", headers["location"])
                    expect(job["state"], "done", job)
                    ended.add(kind)
        for thread in threads:
            thread.join()
        expect((failures, ended), ([], {"gc", "scrub"}), "at work")
    expect(sorted(archive.query("")), sorted(oids), "what was not removed")
    archive.ok("gc")
    assert " 0 damaged" in archive.ok("scrub")
    expect(archive.ok("check"), "", "rows")


def case_killed_in_the_middle(archive):
    archive.ok("init")
    there, lock = {}, threading.Lock()

    def work(server, number):
        # Until the server is gone.
        with contextlib.suppress(OSError, http.client.HTTPException):
            for turn in range(10_000):
                data = content(number * 10_000 + turn, 100 if turn % 3 else 1_000_000)
                oid = server.put(data)
                with lock:
                    there[oid] = data

    for turn in range(3):
        server = Serving(archive)
        threads = [threading.Thread(target=work, args=(server, turn * 4 + number)) for number in range(4)]
        for thread in threads:
            thread.start()
        wanted = len(there) + 30
        while len(there) < wanted:
            time.sleep(0.01)
        server.end(signal.SIGKILL, -signal.SIGKILL)
        for thread in threads:
            thread.join()
        # What a killed server has left says nothing.
        found = set(archive.query(""))
        assert set(there) <= found, f"{set(there) - found} were answered"
    expect(archive.ok("check"), "", "rows")
    with Serving(archive) as server:
        for oid, data in there.items():
            assert server.ask("GET", f"/api/objects/{oid}")[2] == data


if __name__ == "__main__":
    sys.exit(run_cases(sys.modules[__name__]))
