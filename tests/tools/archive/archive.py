#!/usr/bin/python3
"""`teak archive`: what is put comes back, is found and is protected; what is asked wrongly, damaged or interrupted is told, and costs nothing else."""

import json
import os
import shutil
import signal
import subprocess
import sys

from command import content, run_cases

from kit.asking import expect

MUSIC = {"namespaces": {"music": {"artist": "string(20)", "track": "long", "tags": "list of string(9)"}}, "indexes": [["music.artist", "music.track"]]}


def case_forms_that_scripts_rely_on(archive):
    archive.ok("init")
    archive.schema(MUSIC)
    path = archive.file("a b.txt", b"hello\n")
    oid = archive.ok("put", path, "--meta", "artist=Bach", "--meta", "track=3", "--meta", "tags=x", "--meta", "tags=y").strip()
    expect(archive.get(oid), b"hello\n", "by its OID")
    stat = archive.stat(oid)
    expect((stat["file.name"], stat["music.track"], stat["music.tags"], stat["system.size"]), ("a b.txt", 3, ["x", "y"], 6), "stat")
    expect(archive.get(stat["system.data"]), b"hello\n", "by its content")
    expect(archive.query("artist = Bach"), [oid], "query")
    expect(archive.query("artist = 'Bach' and track < 5", "--fields", "file_name,track"), ["a b.txt\t3"], "chosen fields")
    told = json.loads(archive.query("tags = y", "--json")[0])
    expect(told["system.oid"], oid, "as JSON")
    expect(archive.query("artist = Bach", "--explain"), ["index (music.artist =, music.track), 1 range"], "explained")
    two = json.loads(archive.ok("put", "-", "--json", given=b""))
    expect((two["size"], archive.get(two["oid"])), (0, b""), "nothing")
    expect(archive.ok("change", oid, "--meta", "track=4", "--unset", "artist"), "2\n", "another version")
    expect(json.loads(archive.ok("stat", oid, "--json", "--version", "1"))["music.artist"], "Bach", "the one before")
    archive.ok("rm", oid)
    archive.refused(2, f"there is no {oid}", "get", oid)
    expect(archive.get(stat["system.data"]), b"hello\n", "within the grace period")
    archive.ok("gc", "--grace", "0")
    archive.refused(2, "there is no b3:", "get", stat["system.data"])
    expect(archive.ok("check"), "", "rows")


def case_large_and_alike(archive):
    archive.ok("init")
    whole = content(1, 9_000_000)
    changed = whole[:4_000_000] + b"inserted" + whole[4_000_000:]
    oids = [archive.put(each) for each in (whole, changed, whole)]
    expect([archive.get(oid) == each for oid, each in zip(oids, (whole, changed, whole))], [True] * 3, "bytes")
    expect(archive.get(oids[1], "--range", "3999998-4000009"), b"".join([whole[3_999_998:4_000_000], b"inserted", whole[4_000_000:4_000_002]]), "a range")
    expect((archive.get(oids[0], "--range=-5"), archive.get(oids[0], "--range", "8999999-")), (whole[-5:], whole[-1:]), "ends")
    target = os.path.join(archive.files, "out")
    archive.ok("get", oids[1], "-o", target)
    with open(target, "rb") as file:
        assert file.read() == changed
    archive.refused(4, "out", "get", oids[1], "-o", target)
    told = archive.ok("scrub")
    assert "0 damaged" in told and "9.0 MiB" not in told and int(told.split()[0]) < 260, told
    size = sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(archive.path) for name in names)
    assert size < 40_000_000, size


def case_memory_is_bounded(archive):
    archive.ok("init")
    block = content(2, 1 << 20)
    with subprocess.Popen(archive.words("put", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as putting:
        for number in range(256):
            putting.stdin.write(number.to_bytes(8, "big") + block[number * 1000:] + block[:number * 1000])
        putting.stdin.close()
        oid = putting.stdout.read().decode().strip()
        _, status, usage = os.wait4(putting.pid, 0)
        putting.returncode = status
    assert status == 0 and usage.ru_maxrss < 200_000, (status, usage.ru_maxrss)
    with subprocess.Popen(archive.words("get", oid), stdout=subprocess.PIPE) as getting:
        count = sum(len(part) for part in iter(lambda: getting.stdout.read(1 << 20), b""))
        _, status, usage = os.wait4(getting.pid, 0)
        getting.returncode = status
    expect((status, count), (0, 256 * ((1 << 20) + 8)), "bytes")
    assert usage.ru_maxrss < 200_000, usage.ru_maxrss


def case_what_is_asked_wrongly(archive):
    archive.refused(2, "is not an archive", "query", "")
    archive.refused(2, "chunks of MIN,AVERAGE,MAX", "init", "--chunks", "1,2")
    archive.refused(2, "chunks of [1, 2, 3] bytes", "init", "--chunks", "1,2,3")
    archive.ok("init")
    archive.refused(2, "there already", "init")
    archive.refused(2, "FIELD=VALUE is expected", "put", "-", "--meta", "x")
    archive.refused(2, "field nothing: there is no field", "put", "-", "--meta", "nothing=1", given=b"x")
    archive.schema(MUSIC)
    archive.refused(2, "field music.track: 'three' is no long", "put", "-", "--meta", "track=three", given=b"x")
    archive.refused(2, "too long for string(20)", "put", "-", "--meta", f"artist={'x' * 21}", given=b"x")
    archive.refused(4, "No such file", "put", os.path.join(archive.files, "none"))
    archive.refused(2, "is a directory", "put", archive.files)
    archive.refused(2, "no name of an object", "get", "x")
    archive.refused(2, "a comparison is expected", "query", "artist")
    archive.refused(2, "schema: ", "schema", "--set", "-", given=b"{")
    archive.refused(2, "an OID is expected", "rm", "b3:" + "0" * 64)
    oid = archive.put(b"x")
    archive.refused(2, "is no range", "get", oid, "--range", "x-y")
    archive.refused(2, "the range begins at 5", "get", oid, "--range", "5-")
    expect(archive.query(""), [oid], "what was refused left nothing")


def case_one_process_at_a_time(archive):
    archive.ok("init")
    with subprocess.Popen(archive.words("put", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as putting:
        # It has the archive before it reads, and has read once what it was given is gone.
        for number in range(100):
            putting.stdin.write(content(number, 1 << 16))
        archive.refused(2, "in use by another process", "query", "")
        putting.stdin.close()
        oid = putting.stdout.read().decode().strip()
    expect(archive.query(""), [oid], "and then it goes on")


def case_an_interrupted_put_leaves_nothing(archive):
    archive.ok("init")
    with subprocess.Popen(archive.words("put", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as putting:
        for number in range(200):
            putting.stdin.write(content(number, 1 << 16))
        putting.send_signal(signal.SIGINT)
        out = putting.stdout.read()
        status = putting.wait()
        putting.stdin = None
    expect((status, out), (130, b""), "status and output")
    expect(archive.query(""), [], "records")
    archive.ok("gc")
    assert archive.ok("scrub").startswith("0 chunks"), archive.ok("scrub")
    expect(archive.ok("check"), "", "rows")


def case_pages(archive):
    archive.ok("init")
    archive.schema(MUSIC)
    paths = [archive.file(f"{number}", content(number, 10)) for number in range(30)]
    oids = archive.ok("put", *paths, "--meta", "artist=A").split()
    found, more = [], ()
    while True:
        status, out, errors = archive.asked("query", "artist = A", "--order", "file_name:desc", "--limit", "7", *more)
        expect(status, 0, errors)
        found += out.decode().split()
        if not errors:
            break
        more = ("--cursor", errors.split()[-1])
    by_name = sorted(range(30), key=str, reverse=True)
    expect(found, [oids[number] for number in by_name], "all, in their order")
    archive.refused(2, "cursor", "query", "artist = B", "--order", "file_name:desc", *more)


def case_views(archive):
    archive.ok("init")
    archive.schema({"namespaces": {"music": {"artist": "string(20)", "track": "long", "title": "string(30)"}}})
    archive.ok("view", "create", "music", "/{artist}/{track:02}-{title}-{file_name}", "--where", "track > 0")
    for track, artist in ((1, "AC/DC"), (2, "Bach"), (12, "Bach"), (0, "Bach")):
        archive.ok("put", archive.file("x.ogg", f"{track}".encode()), "--meta", f"artist={artist}", "--meta", f"track={track}", "--meta", "title=A-B")
    expect(archive.ok("view", "list"), "music\t/{artist}/{track:02}-{title}-{file_name}\ttrack > 0\n", "list")
    expect(archive.ok("view", "show", "music"), "/{artist}/{track:02}-{title}-{file_name}\ntrack > 0\n", "show")
    expect(archive.ok("view", "ls", "music").splitlines(), ["AC%2FDC/", "Bach/"], "directories")
    expect(archive.ok("view", "ls", "music", "/Bach").splitlines(), ["02-A%2DB-x.ogg", "12-A%2DB-x.ogg"], "files")
    expect(archive.ok("view", "cat", "music", "/Bach/12-A%2DB-x.ogg"), "12", "bytes")
    oid = archive.ok("view", "put", "music", "/Händel/03-Water-w.ogg", "-", "--meta", "system.content_type=audio/ogg", given=b"water").strip()
    expect((archive.stat(oid)["music.track"], archive.ok("view", "cat", "music", "/Händel/03-Water-w.ogg")), (3, "water"), "put")
    assert oid in archive.ok("view", "ls", "music", "Händel", "-l")
    archive.refused(2, "'x' is no long", "view", "put", "music", "/a/x-y-z", "-", given=b"")
    archive.refused(2, "there is no file", "view", "cat", "music", "/Bach/12-A-B-x.ogg")
    archive.refused(2, "between two fields", "view", "create", "other", "/{artist}{title}")
    archive.refused(2, "view music needs", "schema", "--set", "-", given=b"{}")
    archive.ok("view", "drop", "music")
    archive.refused(2, "there is no view", "view", "ls", "music")


def case_folders_go_out_and_in_again(archive):
    archive.ok("init")
    archive.schema(MUSIC)
    folder = os.path.join(archive.files, "folder")
    os.makedirs(os.path.join(folder, "b", "c"))
    files = {"a": b"1", "b/x y": content(1, 5_000_000), "b/c/empty": b"", "b/c/again": b"1"}
    for name, each in files.items():
        archive.file(os.path.join("folder", name), each)
    os.symlink("a", os.path.join(folder, "link"))
    status, out, errors = archive.asked("put", "--recursive", folder, "--meta", "artist=Bach", "--meta", "tags=1", "--meta", "tags=2")
    assert status == 0 and "link is no file" in errors, (status, errors)
    oids = out.decode().split()
    expect(archive.query("", "--fields", "path"), ["folder/a", "folder/b/c/again", "folder/b/c/empty", "folder/b/x y"], "paths")
    expect(archive.query("path = 'folder/b/x y'"), [oids[3]], "by its path")
    archive.ok("hold", oids[0], "case")
    target = os.path.join(archive.files, "export")
    expect(archive.ok("export", target), "4 records, 3 files\n", "export")
    with open(os.path.join(target, "manifest.b3"), encoding="ascii") as file:
        lines = dict(line.rstrip("\n").split("  ") for line in file)
    expect(sorted(lines), sorted(archive.stat(oid)["system.data"][3:] for oid in (oids[0], oids[2], oids[3])), "the manifest")
    if shutil.which("b3sum"):
        subprocess.run(["b3sum", "-c", "manifest.b3"], cwd=target, check=True, stdout=subprocess.DEVNULL)
    archive.refused(2, "is not empty", "export", target)
    one, archive.path = archive.path, archive.path + "-2"
    archive.ok("init")
    expect(archive.ok("import", target), "4 records, 0 were there\n", "import")
    expect(archive.ok("import", target), "0 records, 4 were there\n", "again")
    other, archive.path = archive.path, one
    for oid in oids:
        shown = []
        for archive.path in (one, other):
            shown.append((archive.ok("stat", oid, "--json"), archive.get(oid)))
        expect(shown[0][1], shown[1][1], "bytes")
        first, second = (json.loads(text) for text, _ in shown)
        expect(first, second, "metadata")
    archive.refused(2, "is protected", "rm", oids[0])
    expect(archive.ok("check"), "", "rows")
    path = os.path.join(target, "data", *next((digits[:2], digits) for digits, name in lines.items() if name.endswith(digits)))
    os.chmod(path, 0o640)
    with open(path, "ab") as file:
        file.write(b"more")
    archive.path = one + "-3"
    archive.ok("init")
    archive.refused(3, "what is to be b3:", "import", target)


def case_holds(archive):
    """Each door of the command line times each protection."""
    archive.ok("init", "--grace", "0")
    archive.schema(MUSIC)
    doors = {
        "rm": lambda oid: ("rm", oid),
        "change": lambda oid: ("change", oid, "--meta", "artist=Other"),
        "schema": lambda oid: ("schema", "--set", archive.file("empty.json", b"{}")),
    }
    protections = [("record", "hold", "case"), ("record", "retain", "2999-01-01"), ("data", "hold", "case"), ("data", "retain", "2999-01-01")]
    for number, (what, how, value) in enumerate(protections):
        bytes_of = f"evidence {number}".encode()
        oid = archive.put(bytes_of, "--meta", "artist=Bach")
        data = archive.stat(oid)["system.data"]
        archive.ok(how, {"record": oid, "data": data}[what], value)
        for name, door in doors.items():
            if what == "record" or name == "rm":
                archive.refused(2, "is protected", *door(oid))
        archive.ok("gc", "--grace", "0")
        expect((archive.get(oid), archive.stat(oid)["music.artist"]), (bytes_of, "Bach"), f"{what} {how}")
    archive.refused(2, "longer, not shorter", "retain", data, "2998-01-01")
    lonely = archive.put(b"lonely")
    data = archive.stat(lonely)["system.data"]
    archive.ok("rm", lonely)
    archive.ok("hold", data, "case")
    assert "0 data removed, 1 kept" in archive.ok("gc", "--grace", "0")
    archive.ok("hold", data, "case", "--release")
    assert "1 data removed" in archive.ok("gc", "--grace", "0")
    actions = [json.loads(line)["action"] for line in archive.ok("audit").splitlines()]
    expect(sorted(set(actions)), ["collect", "hold", "release", "remove", "retain", "schema"], "audit")


def case_damage_is_named_and_costs_nothing_else(archive):
    archive.ok("init")
    contents = [content(number, size) for number, size in enumerate((400_000, 50_000, 70_000))]
    oids = [archive.put(each) for each in contents]
    archive.damage(contents[1][1000:1100])
    archive.refused(3, "is damaged", "get", oids[1])
    expect([archive.get(oids[number]) == contents[number] for number in (0, 2)], [True, True], "others")
    status, out, errors = archive.asked("scrub")
    assert status == 3 and "damaged" in errors, (status, errors)
    assert f"record {oids[1]}" in out.decode() and oids[0] not in out.decode(), out
    oid = archive.put(b"goes on")
    expect(archive.get(oid), b"goes on", "writing")


if __name__ == "__main__":
    sys.exit(run_cases(sys.modules[__name__]))
