#!/usr/bin/python3
"""`teak report`: what it says of sizes, uses and snapshots is what the server has, and each statement that it advises does what it says."""

import json
import re
import subprocess
import sys

import pymysql

from kit.asking import expect, rows
from kit.cases import cases_of, on_server
from kit.options import parser
from kit.server import Server

OPTIONS = ("--teak-cache-size=32M",)
TEAK = None


def asked(server, *options, user="root"):
    """Status and output of the command."""
    ended = subprocess.run([TEAK, "report", "--no-defaults", f"--socket={server.socket}", f"--user={user}", *options], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def report(server, *options):
    status, text, errors = asked(server, "--format=json", *options)
    assert status == 0 and not errors, (status, errors)
    return json.loads(text)


def table(server, count=20_000):
    for statement in ("drop database if exists r", "create database r", "create table r.parent (id int primary key) engine=Teak", "insert into r.parent values (0), (1)"):
        server.query(statement, database=None)
    server.query("create table r.t (id int primary key, a int, b int, p int, w varchar(200), key a (a), key ab (a, b), key idle (b), key w (w(20)), unique key u (b, id), "
                 "constraint c foreign key (p) references r.parent (id)) engine=Teak")
    server.query(f"insert into r.t select seq, seq % 100, seq, seq % 2, sha2(seq, 512) from seq_1_to_{count}")
    server.query("set global teak_checkpoint_now = on")


def case_sizes_and_advice(server):
    table(server)
    server.query("create table r.`odd``<b>` (v int) engine=Teak")
    server.query("insert into r.`odd``<b>` values (1)")
    server.query("create table r.parts (id int primary key, v int, key v (v)) engine=Teak partition by hash (id) partitions 3")
    server.query("insert into r.parts select seq, seq from seq_1_to_3000")
    server.query("set global teak_checkpoint_now = on")
    with server.connect(database="r", autocommit=True) as session:
        for number in range(300):
            rows(session, f"select w from t where id = {number}")
            rows(session, f"select id from t force index (ab) where a = {number % 100} and b = {number}")
            rows(session, f"select id from t force index (w) where w = '{number}'")
        rows(session, "select id from parts where v = 7")
        found = report(server, "--unused-after=0")
    tables = {f"{table['database']}.{table['name']}": table for table in found["tables"]}
    expect(sorted(tables), ["r.odd`<b>", "r.parent", "r.parts", "r.t"], "tables")
    told = server.query("select sum(raw_bytes), sum(disk_bytes) from information_schema.teak_tables where table_schema = 'r' and table_name = 't'")
    expect((tables["r.t"]["raw_bytes"], tables["r.t"]["block_bytes"]), tuple(int(number) for number in told[0]), "bytes")
    expect((tables["r.t"]["rows"], tables["r.parts"]["rows"]), (20_000, 3000), "rows")
    expect(sorted((index["name"], index["entries"]) for index in tables["r.parts"]["indexes"]), [("PRIMARY", 3000), ("v", 3000)], "indexes of all partitions")
    indexes = {index["name"]: index for index in tables["r.t"]["indexes"]}
    expect(sorted(indexes), ["PRIMARY", "a", "ab", "c", "idle", "u", "w"], "indexes")
    expect((indexes["w"]["columns"], indexes["u"]["is_unique"], indexes["c"]["serves_foreign_key"]), (["w(20)"], True, True), "what they are")
    assert indexes["PRIMARY"]["uses"]["look_ups"] >= 280 and indexes["idle"]["uses"]["look_ups"] == 0, indexes
    advice = {(each["kind"], each["statement"]) for each in found["advice"]}
    expect(advice, {("duplicate-index", "ALTER TABLE `r`.`t` DROP INDEX `a`"), ("duplicate-index", "ALTER TABLE `r`.`t` DROP INDEX `idle`"),
                    ("unused-index", "ALTER TABLE `r`.`t` ALTER INDEX `a` IGNORED"), ("unused-index", "ALTER TABLE `r`.`t` ALTER INDEX `idle` IGNORED"),
                    ("no-primary-key", "ALTER TABLE `r`.`odd``<b>` ADD id BIGINT AUTO_INCREMENT PRIMARY KEY")}, "advice")
    # Each of it can be run, and is not advised again.
    for kind, statement in sorted(advice, reverse=True):
        server.query(statement, database=None)
    expect(report(server, "--unused-after=0")["advice"], [], "advice that was taken")


def case_nothing_of_unused_indexes_is_said_too_early(server):
    table(server, 1000)
    with server.connect(database="r", autocommit=True) as session:
        for number in range(300):
            rows(session, f"select w from t where id = {number}")
        assert not any(each["kind"] == "unused-index" for each in report(server)["advice"])
    server.query("flush tables")
    server.stop()
    server.start(OPTIONS)
    expect([each for each in report(server, "--unused-after=0")["advice"] if each["kind"] == "unused-index"], [], "unused indexes of a table that nobody has opened")


def case_a_snapshot(server):
    table(server, 100)
    with server.connect(database="r") as reader:
        rows(reader, "start transaction with consistent snapshot")
        rows(reader, "select count(*) from t")
        server.query("update r.t set a = a + 1")
        oldest = report(server)["oldest_snapshot"]
        assert oldest["connection"] == reader.thread_id(), oldest
        assert f"oldest snapshot: connection {reader.thread_id()}" in asked(server)[1]


def case_forms(server):
    table(server)
    status, text, _ = asked(server, "--largest=1")
    assert status == 0 and re.search(r"^table +compression +rows +raw +disk +ratio +free$", text, re.MULTILINE), text
    expect(len(re.findall(r"^r\.t ", text, re.MULTILINE)), 2, "a table and an index")
    assert "advice\n  1. duplicate-index r.t: " in text and "\n     ALTER TABLE `r`.`t` DROP INDEX `a`;\n" in text, text
    server.query("create table r.`<script>` (id int primary key) engine=Teak")
    page = asked(server, "--format=html")[1]
    assert page.startswith("<!doctype html>") and "<script>" not in page and "&lt;script&gt;" in page and "http" not in page, page[:500]


def case_a_directory_says_the_same_of_sizes(server):
    table(server)
    server.query("create table r.`a b-c` (id int primary key) engine=Teak partition by hash (id) partitions 2")
    server.query("insert into r.`a b-c` select seq from seq_1_to_100")
    server.query("set global teak_checkpoint_now = on")
    running = report(server)
    status, text, errors = asked(server, f"--directory={server.data}")
    assert status != 0 and not text and errors, "while the server runs"
    server.stop()
    try:
        status, text, errors = asked(server, "--format=json", f"--directory={server.data}")
        stopped = json.loads(text)
        shown = asked(server, f"--directory={server.data}/#teak")[1]
    finally:
        server.start(OPTIONS)
    assert status == 0 and not stopped["advice"] and stopped["server"] is None and not stopped["directory"]["damaged"], (status, errors, stopped)
    names = ("database", "name", "rows", "raw_bytes", "block_bytes", "compression")

    def sizes(found):
        return sorted([each[name] for name in names] + [[index["entries"], index["disk_bytes"]] for index in each["indexes"]] for each in found["tables"])

    expect(sizes(stopped), sizes(running), "sizes")
    # With inner pages and the file's own.
    assert all(table["block_bytes"] < table["disk_bytes"] <= table["block_bytes"] + 16_384 + table["block_bytes"] // 10 for table in stopped["tables"]), stopped
    assert "of log; 0 prepared transactions wait" in shown and "r.a b-c" in shown and "tree 3" in shown and "snapshot" not in shown, shown
    status, _, errors = asked(server, "--directory=/nowhere")
    assert status != 0 and "/nowhere" in errors, errors


def case_who_may_not_see(server):
    table(server, 10)
    server.query("create or replace user somebody@localhost")
    server.query("grant select on r.* to somebody@localhost")
    status, text, errors = asked(server, user="somebody")
    assert status == 5 and not text and "PROCESS" in errors, (status, text, errors)
    server.query("grant process on *.* to somebody@localhost")
    status, text, errors = asked(server, user="somebody")
    assert status == 0 and "r.t" in text, (status, errors)
    server.query("set password for somebody@localhost = password('x')")
    status, _, errors = asked(server, user="somebody")
    assert status == 5 and "Access denied" in errors, (status, errors)


def case_without_the_engine(server):
    for name in ("r", "test"):
        server.query(f"drop database if exists {name}", database=None)
    try:
        server.query("uninstall soname 'ha_teak'", database=None)
        status, _, errors = asked(server)
        assert status == 5 and "no Teak" in errors, (status, errors)
    except pymysql.err.MySQLError as error:
        raise AssertionError(f"the engine stays: {error}") from error
    finally:
        server.stop()
        server.start(OPTIONS)
        server.query("create database test", database=None)


def main():
    global TEAK  # pylint: disable=global-statement
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    TEAK = arguments.teak
    return on_server(cases_of(sys.modules[__name__]), arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
