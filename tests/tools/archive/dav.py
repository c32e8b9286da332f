#!/usr/bin/python3
"""WebDAV of `teak archive serve`: litmus passes its five parts, cadaver and rclone do their work, ten thousand files are listed, and what is answered is there after a kill."""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xml.etree.ElementTree

from command import content, run_cases
from served import Serving

from kit.asking import expect

MUSIC = {"namespaces": {"music": {"artist": "string(20)", "track": "long", "title": "string(40)"}}}
PARTS = ["basic", "copymove", "props", "locks", "http"]


def wanted(program):
    """A program that scripts/setup.sh --test installs."""
    assert shutil.which(program), f"{program} is missing: scripts/setup.sh --test"
    return program


def listed(server, path, depth="1"):
    """Decoded addresses of what PROPFIND answers, below the path, and the sizes of files."""
    status, _, told = server.ask("PROPFIND", path, headers={"Depth": depth})
    expect(status, 207, f"PROPFIND {path}")
    found = {}
    for response in xml.etree.ElementTree.fromstring(told).findall("{DAV:}response"):
        href = urllib.parse.unquote(response.findtext("{DAV:}href"))
        size = response.findtext(".//{DAV:}getcontentlength")
        found[href.removeprefix(path)] = None if size is None else int(size)
    del found[""]
    return found


def case_litmus(archive):
    archive.ok("init")
    with Serving(archive) as server:
        for part in PARTS:
            ended = subprocess.run([wanted("litmus"), server.address + "/dav/files/"], env={**os.environ, "TESTS": part}, cwd=archive.files, capture_output=True, text=True, check=False)
            assert ended.returncode == 0 and ", 0 failed" in ended.stdout, ended.stdout[-4000:]
    expect(archive.ok("check"), "", "rows")


def case_cadaver(archive):
    archive.ok("init")
    path = archive.file("a b.txt", content(1, 300_000))
    with Serving(archive) as server:
        lines = [f'put "{path}" /dav/files/one', "mkcol /dav/files/d", "copy one d/two", "move one d/three", "lock d/two", "propset d/two color red", "propget d/two color", "unlock d/two", "ls d",
                 f'get d/two "{archive.files}/back"', "delete d/three", "quit"]
        ended = subprocess.run([wanted("cadaver"), server.address + "/dav/files/"], input="\n".join(lines) + "\n", cwd=archive.files, capture_output=True, text=True, check=False, env={**os.environ, "HOME": archive.files})
        assert "failed" not in ended.stdout and "Value of color is: red" in ended.stdout, ended.stdout
        expect(listed(server, "/dav/files/", "infinity"), {"d/": None, "d/two": 300_000}, "what is left")
        with open(os.path.join(archive.files, "back"), "rb") as file:
            expect(file.read(), content(1, 300_000), "what came back")


def case_rclone(archive):
    archive.ok("init")
    archive.schema(MUSIC)
    archive.ok("view", "create", "music", "/{artist}/{track:02}-{title}")
    source = os.path.join(archive.files, "source")
    for number, name in enumerate(["Bach/01-Air", "Bach/02-a & b", "Dvořák/01-{x}'s & +"]):
        path = os.path.join(source, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content(number, 10 ** (number + 3)))
    with Serving(archive) as server:
        def rclone(*words):
            environment = {**os.environ, "RCLONE_CONFIG_T_TYPE": "webdav", "RCLONE_CONFIG_T_VENDOR": "other", "RCLONE_CONFIG_T_URL": server.address + "/dav", "RCLONE_CONFIG": os.path.join(archive.files, "none")}
            ended = subprocess.run([wanted("rclone"), *words], env=environment, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, f"{words}: {ended.stderr}"
            return ended.stdout

        for root in ("T:files/source", "T:views/music"):
            rclone("copy", source, root)
            rclone("check", "--download", source, root)
        rclone("moveto", "T:files/source/Bach", "T:files/moved/Bach")
        expect(set(rclone("lsf", "-R", "T:files").splitlines()), {"moved/", "source/", "moved/Bach/", "source/Dvořák/", "moved/Bach/01-Air", "moved/Bach/02-a & b", "source/Dvořák/01-{x}'s & +"}, "moved")
        rclone("moveto", "T:views/music/Bach/01-Air", "T:views/music/Brahms/07-Air")
        rclone("sync", os.path.join(source, "Bach"), "T:files/moved/Bach")
        rclone("purge", "T:files/source")
        expect(listed(server, "/dav/files/", "infinity"), {"moved/": None, "moved/Bach/": None, "moved/Bach/01-Air": 1000, "moved/Bach/02-a & b": 10_000}, "what is left")
    expect(archive.query("artist = Brahms", "--fields", "music.track,music.title"), ["7\tAir"], "moved in a view")
    # The bytes are there once, whatever names they have.
    expect(len({archive.stat(oid)["system.data"] for oid in archive.query("")}), 3, "contents")
    expect(archive.ok("check"), "", "rows")


def case_davfs2(archive):
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not shutil.which("mount.davfs"):
        print("skipped davfs2: it needs root, /dev/fuse and the package")
        return
    archive.ok("init")
    # It works as a user of its own, who must reach what it has on disk.
    with tempfile.TemporaryDirectory(dir="/tmp") as place, Serving(archive) as server:
        os.chmod(place, 0o755)
        cache, mounted, conf = (os.path.join(place, name) for name in ("cache", "mounted", "conf"))
        os.mkdir(mounted)
        os.mkdir(cache)
        os.chmod(cache, 0o777)
        with open(conf, "w", encoding="utf-8") as file:
            file.write(f"ask_auth 0\nuse_locks 1\ndelay_upload 0\ncache_dir {cache}\n")
        subprocess.run(["mount.davfs", "-o", f"conf={conf},uid=0,gid=0", server.address + "/dav/files", mounted], check=True, capture_output=True)
        try:
            # No directory is listed: its version of Debian 12 cannot, on kernels of today, whoever the server is.
            os.mkdir(f"{mounted}/d")
            for name, data in [("x", b"1"), ("large", content(1, 3_000_000)), ("x", b"another")]:
                with open(f"{mounted}/d/{name}", "wb") as file:
                    file.write(data)
            os.rename(f"{mounted}/d/x", f"{mounted}/d/y é")
            with open(f"{mounted}/d/large", "rb") as file:
                expect(file.read(), content(1, 3_000_000), "what is read")
        finally:
            subprocess.run(["umount", mounted], check=True, capture_output=True)
        expect(listed(server, "/dav/files/", "infinity"), {"d/": None, "d/large": 3_000_000, "d/y é": 7}, "what is there")


# What would take d/f away, or change it, and the headers. In the view, d/f is the same record.
DOORS = [
    ("DELETE", "files/d/f", {}),
    ("DELETE", "files/d", {}),
    ("PUT", "files/d/f", {"Content-Length": "0"}),
    ("MOVE", "files/other", {"Destination": "/dav/files/d/f"}),
    ("MOVE", "files/other", {"Destination": "/dav/files/d"}),
    ("COPY", "files/other", {"Destination": "/dav/files/d/f"}),
    ("COPY", "files/other", {"Destination": "/dav/files/d"}),
    ("DELETE", "views/v/d/f", {}),
    ("DELETE", "views/v/d", {}),
    ("PUT", "views/v/d/f", {"Content-Length": "0"}),
    ("MOVE", "views/v/o/other", {"Destination": "/dav/views/v/d/f"}),
    ("COPY", "views/v/o/other", {"Destination": "/dav/views/v/d/f"}),
    ("COPY", "files/other", {"Destination": "/dav/views/v/d/f"}),
]
# Of data, a move changes nothing that is protected.
MOVES = [
    ("MOVE", "files/d/f", {"Destination": "/dav/files/d/g"}),
    ("MOVE", "files/d", {"Destination": "/dav/files/e"}),
    ("MOVE", "views/v/d/f", {"Destination": "/dav/views/v/z/g"}),
    ("MOVE", "views/v/d", {"Destination": "/dav/views/v/z"}),
]


def case_doors_times_protections(archive):
    archive.ok("init")
    archive.schema({"namespaces": {"m": {"a": "string(9)", "b": "string(9)"}}})
    archive.ok("view", "create", "v", "/{a}/{b}")
    oid = archive.put(b"evidence", "--meta", "system.path=d/f", "--meta", "a=d", "--meta", "b=f")
    archive.put(b"beside", "--meta", "system.path=d/beside", "--meta", "a=d", "--meta", "b=beside")
    archive.put(b"other", "--meta", "system.path=other", "--meta", "a=o", "--meta", "b=other")
    data = archive.stat(oid)["system.data"]
    before = [archive.query("", "--json", "--order", "system.oid"), archive.ok("audit")]
    protections = [(["hold", oid, "case"], ["hold", oid, "case", "--release"], DOORS + MOVES), (["hold", data, "case"], ["hold", data, "case", "--release"], DOORS), (["retain", oid, "2999-01-01"], None, DOORS + MOVES)]
    for protect, release, doors in protections:
        archive.ok(*protect)
        with Serving(archive) as server:
            for method, path, headers in doors:
                status, _, told = server.ask(method, "/dav/" + path, headers=headers)
                expect(status, 423, f"{protect[0]} of {protect[1]}: {method} {path} {headers}: {told}")
            expect(server.ask("GET", "/dav/views/v/d/f")[2], b"evidence", "the bytes")
            expect((listed(server, "/dav/files/", "infinity"), listed(server, "/dav/views/v/", "infinity")),
                   ({"d/": None, "d/f": 8, "d/beside": 6, "other": 5}, {"d/": None, "o/": None, "d/f": 8, "d/beside": 6, "o/other": 5}), "all of it")
        if release:
            archive.ok(*release)
    expect(archive.query("", "--json", "--order", "system.oid"), before[0], "records")
    expect({json.loads(line)["action"] for line in archive.ok("audit").splitlines()[len(before[1].splitlines()):]}, {"hold", "release", "retain"}, "what was done")
    expect(archive.ok("check"), "", "rows")


def case_a_large_proppatch_in_bounded_memory(archive):
    archive.ok("init")
    archive.put(b"x", "--meta", "system.path=x")
    value = b"v" * (1 << 20)

    def whole():
        yield b'<propertyupdate xmlns="DAV:"><set><prop><x xmlns="x">'
        for _ in range(100):
            yield value

    with Serving(archive) as server:
        # The server answers before all is sent, and may end the connection then.
        for _ in range(3):
            with contextlib.suppress(OSError):
                expect(server.ask("PROPPATCH", "/dav/files/x", whole())[0], 413, "100 MB")
        expect(server.ask("PROPPATCH", "/dav/files/x", b"<a>" * 10_000 + b"</a>" * 10_000)[0], 400, "deep")
        expect(server.ask("PROPFIND", "/dav/files/x", headers={"Depth": "0"})[0], 207, "still there")
        with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
            most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    assert most < 64 << 10, f"{most} KiB"


def case_many_at_a_time_in_one_tree(archive):
    archive.ok("init")
    failures, counts = [], {}

    def work(server, seed):
        choices = random.Random(seed)
        paths = [f"{one}/{two}" for one in "abc" for two in "xyz"] + ["a", "b", "c"]
        for turn in range(150):
            method, path = choices.choice(["PUT", "PUT", "MKCOL", "DELETE", "MOVE", "COPY", "PROPFIND", "GET"]), choices.choice(paths)
            headers = {"Destination": "/dav/files/" + choices.choice(paths)} if method in ("MOVE", "COPY") else {}
            body = content(seed * 1000 + turn, choices.choice([0, 100, 300_000])) if method == "PUT" else None
            status, _, told = server.ask(method, "/dav/files/" + path, body, headers)
            counts[method, status] = counts.get((method, status), 0) + 1
            if status not in (200, 201, 204, 207, 403, 404, 405, 409):
                failures.append((method, path, headers, status, told))

    with Serving(archive) as server:
        threads = [threading.Thread(target=work, args=(server, seed)) for seed in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert server.ask("POST", "/api/jobs", b'{"kind": "gc", "grace": 0}')[0] in (202, 409)
            time.sleep(0.02)
        expect(failures, [], "at work")
        found = listed(server, "/dav/files/", "infinity")
        # Each path has one record, whoever has put, moved and copied there at a time.
        assert not [path for path in found if "~" in path], found
    expect(len(archive.query("")), len([path for path, size in found.items() if size is not None]), "records and files")
    assert counts.get(("MOVE", 201), 0) + counts.get(("MOVE", 204), 0) > 0, counts
    archive.ok("gc")
    assert " 0 damaged" in archive.ok("scrub")
    expect(archive.ok("check"), "", "rows")


def case_many_files_of_one_directory(archive):
    archive.ok("init")
    count = 10_000

    def put(server, part):
        connection = http.client.HTTPConnection(server.host, timeout=60)
        with contextlib.closing(connection):
            for number in range(part, count, 8):
                connection.request("PUT", f"/dav/files/d/{number:05}", b"%d" % number)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 201, answer.status

    with Serving(archive) as server:
        expect(server.ask("MKCOL", "/dav/files/d")[0], 201, "MKCOL")
        threads = [threading.Thread(target=put, args=(server, part)) for part in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        begun = time.monotonic()
        found = listed(server, "/dav/files/d/")
        print(f"{len(found)} files listed in {(time.monotonic() - begun) * 1000:.0f} ms, with the client's reading")
        expect(found, {f"{number:05}": len(str(number)) for number in range(count)}, "names and sizes")
        expect(server.ask("MOVE", "/dav/files/d", headers={"Destination": "/dav/files/e"})[0], 201, "MOVE")
        expect(server.ask("DELETE", "/dav/files/e")[0], 204, "DELETE")
    expect((archive.query(""), archive.ok("check")), ([], ""), "rows")


def case_killed_while_a_directory_moves(archive):
    archive.ok("init")
    names = [f"{number:03}" for number in range(200)]
    with Serving(archive) as server:
        server.ask("MKCOL", "/dav/files/0")
        for name in names:
            expect(server.ask("PUT", f"/dav/files/0/{name}", name.encode())[0], 201, name)
    at = 0
    for turn in range(4):
        server = Serving(archive)
        answered = []

        def move(server=server, at=at, answered=answered):
            with contextlib.suppress(OSError, http.client.HTTPException):
                for number in range(at, at + 10_000):
                    status = server.ask("MOVE", f"/dav/files/{number}", headers={"Destination": f"/dav/files/{number + 1}"})[0]
                    expect(status, 201, "MOVE")
                    answered.append(number + 1)

        thread = threading.Thread(target=move)
        thread.start()
        while len(answered) < 3 + turn:
            time.sleep(0.01)
        server.end(signal.SIGKILL, -signal.SIGKILL)
        thread.join()
        with Serving(archive) as server:
            found = listed(server, "/dav/files/", "infinity")
            (directory,) = {name.split("/")[0] for name in found}
            # The last answered, or the one that was under way.
            assert int(directory) in (answered[-1], answered[-1] + 1), f"{directory} after {answered[-1]}"
            expect(sorted(found), [directory + "/"] + [f"{directory}/{name}" for name in names], "all of them")
            at = int(directory)
    expect(archive.ok("check"), "", "rows")


if __name__ == "__main__":
    sys.exit(run_cases(sys.modules[__name__]))
