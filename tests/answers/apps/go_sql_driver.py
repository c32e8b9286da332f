"""go-sql-driver/mysql: the driver's own tests, which come with its module."""

import json
import os

VERSION = "v1.9.3"


def install(place):
    """From the module proxy."""
    place.need("go")
    with open(place.path("go.mod"), "w", encoding="utf-8") as module:
        module.write(f"module applications\n\ngo 1.21\n\nrequire github.com/go-sql-driver/mysql {VERSION}\n")
    with open(place.path("use.go"), "w", encoding="utf-8") as source:
        source.write('package applications\n\nimport _ "github.com/go-sql-driver/mysql"\n')
    place.command("go", "mod", "tidy", env=environment(place))


def environment(place):
    """Whatever Go keeps is kept in the directory, and the toolchain is the machine's."""
    return {**os.environ, "GOFLAGS": "-mod=mod -modcacherw", "GOPATH": place.path("go"), "GOCACHE": place.path("go-build"), "GOTOOLCHAIN": "local"}


def run(place, server):
    """The outcome of each test."""
    server.query("CREATE DATABASE IF NOT EXISTS gotest", database=None)
    settings = {"MYSQL_TEST_USER": "root", "MYSQL_TEST_PASS": "", "MYSQL_TEST_PROT": "tcp", "MYSQL_TEST_ADDR": f"127.0.0.1:{server.port}",
                "MYSQL_TEST_DBNAME": "gotest"}
    lines = place.output("go", "test", "-json", "-count=1", "-timeout=20m", "github.com/go-sql-driver/mysql", env={**environment(place), **settings})
    outcomes = {}
    for line in lines:
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("Action") in ("pass", "fail", "skip") and "Test" in event:
            outcomes[event["Test"]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}[event["Action"]]
    return outcomes
