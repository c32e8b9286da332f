#!/usr/bin/python3
"""Temporary tables: nothing of them is logged or synced, they may be larger than memory, and nothing of them is left.
"""

import glob
import os
import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.asking import error_number, expect, expect_no_log, log_bytes, rows, wait_until
from kit.cases import on_server
from kit.options import TEAK, parser, seed
from kit.server import Server

SEED = seed()
CACHE = 8 << 20
OPTIONS = ["--server-id=1", "--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=0", f"--teak-cache-size={CACHE}", "--teak-memory-max-size=64M",
           "--teak-checkpoint-log-size=1G", "--teak-flush-log-at-trx-commit=1"]
GONE = (0, 2006, 2013, 2014)
KINDS = ("", "in_memory=yes")
# 640 letters of a row that do not compress to much less.
TEXT = "concat(sha2(seq, 512), sha2(-seq, 512), sha2(seq + 0.1, 512), sha2(seq + 0.2, 512), sha2(seq + 0.3, 512))"
# In rows of temporary tables, and in nothing else.
MARK = "QuetzalMark"


def files_of_engine(server):
    """Names in the engine's directory, those of the log apart, which come and go."""
    return sorted(path for path in glob.glob(os.path.join(server.data, "#teak", "**", "*"), recursive=True) if "/log/" not in path)


def unnamed_bytes(server):
    """What files without a name take, by their sizes: spilled data, and the files of temporary tables."""
    taken = 0
    for descriptor in glob.glob(f"/proc/{server.process.pid}/fd/*"):
        try:
            if "#teak/tmp" in os.readlink(descriptor):
                taken += os.stat(descriptor).st_size
        except OSError:
            pass  # closed meanwhile
    return taken


def check_stopped(server):
    """What `teak check` says of the files, and that no temporary table has left any."""
    checked = subprocess.run([TEAK, "check", os.path.join(server.data, "#teak")], capture_output=True, text=True)
    expect(checked.returncode, 0, f"teak check: {checked.stdout}{checked.stderr}")
    expect(os.listdir(os.path.join(server.data, "#teak", "tmp")), [], "temporary files")


def fresh(server):
    server.query("drop database if exists test", database=None)
    server.query("create database test", database=None)
    server.query("create table d (id bigint primary key, v int, key v (v))")


def nothing_is_logged(server):
    """No statement about a temporary table adds a byte to the log, or to the engine's files; nor do its transactions."""
    fresh(server)
    for kind in KINDS:
        connection = server.connect(autocommit=True)
        before, files, written = log_bytes(connection), files_of_engine(server), server.io()["wchar"]
        rows(connection, f"create temporary table t (id bigint auto_increment primary key, v int, t text, key v (v), unique u (v, id)) {kind} auto_increment=5")
        for n in range(300):
            rows(connection, f"insert into t (v, t) values ({n % 7}, '{MARK}')")
        rows(connection, f"insert into t (v, t) select seq * 7 % 1000, concat('{MARK} ', seq) from seq_1_to_5000")
        expect(rows(connection, "select min(id), count(*) from t"), ((5, 5300),), "rows")
        rows(connection, "update t set v = v + 1 where id % 3 = 0")
        rows(connection, "delete from t where v between 10 and 300")
        rows(connection, "optimize table t")
        connection.begin()
        rows(connection, "replace into t select * from t where id < 100")
        rows(connection, "savepoint s")
        rows(connection, f"update t set t = concat(t, repeat(' {MARK}', 1000)) where id % 10 = 0")
        rows(connection, "rollback to s")
        rows(connection, "insert into t (v, t) values (1, 'last')")
        connection.commit()
        rows(connection, "alter table t add column w varchar(20) default 'w', add index (w), drop index u")
        expect(rows(connection, "select count(*) from t where w = 'w' and t = 'last'"), ((1,),), "after ALTER TABLE")
        expect(rows(connection, "check table t extended")[-1][3], "OK", "CHECK TABLE")
        rows(connection, "analyze table t")
        rows(connection, "alter table t rename u")
        rows(connection, "truncate table u")
        rows(connection, "insert into u (v) values (1)")
        expect(rows(connection, "select id from u"), ((1,),), "after TRUNCATE TABLE")
        rows(connection, "create temporary table c (primary key (id)) select id, v from u")
        rows(connection, "drop temporary table u, c")
        expect_no_log(connection, before, f"statements ({kind})")
        expect(files_of_engine(server), files, "files")
        # Results of the statements above, and the binary log of none of them.
        assert server.io()["wchar"] - written < 256 << 10, "bytes written"
        connection.close()


def sessions_end(server):
    """A table goes with its session, however that ends, without log."""
    fresh(server)
    watch = server.connect(autocommit=True)
    before, taken = log_bytes(watch), unnamed_bytes(server)
    for ends in ("close", "kill", "undecided"):
        connection = server.connect(autocommit=ends != "undecided")
        rows(connection, "create temporary table t (id int primary key, t varchar(2000))")
        rows(connection, f"insert into t select seq, {TEXT} from seq_1_to_20000")
        if ends == "kill":
            rows(watch, f"kill {connection.thread_id()}")
        else:
            connection.close()
        wait_until(lambda: unnamed_bytes(server) <= taken + (2 << 20), "the table's file is gone")
    expect_no_log(watch, before, "ends of sessions")


def bytes_written(server, connection, statement):
    before = server.io()["wchar"]
    rows(connection, statement)
    return server.io()["wchar"] - before


def larger_than_memory(server):
    """Ten times the cache, in key order and in no order, with large values; a full budget is an error of its statement alone."""
    fresh(server)
    connection = server.connect(autocommit=True)
    before, files = log_bytes(connection), files_of_engine(server)
    rows(connection, "create temporary table t (id int primary key, v int, t varchar(2000), b longtext, key (v))")
    rows(connection, f"insert into t select seq, seq * 7919 % 100003, {TEXT}, if(seq % 1000, null, repeat({TEXT}, 100)) from seq_1_to_25000")
    rows(connection, "create temporary table u like t")
    rows(connection, "insert into u select v, id, t, b from t")
    sums = "select count(*), sum(v), sum(length(t)), sum(length(b)), sum(crc32(t)) from "
    expected = rows(connection, sums + "t")
    expect(expected[0][0], 25000, "rows")
    expect(rows(connection, sums + "u")[0][2:], expected[0][2:], "the same rows in another order")
    assert unnamed_bytes(server) > CACHE, "a file"
    assert server.memory()[0] < 1 << 30, "memory"
    expect(rows(connection, "select count(*) from t join u on u.id = t.v where u.v = t.id"), ((25000,),), "a join")
    wait_until(lambda: bytes_written(server, connection, "select sum(length(t)) from u") < 1 << 20, "who reads does not write")
    connection.begin()
    rows(connection, "update u set t = reverse(t)")
    rows(connection, "delete from u where v % 2")
    connection.rollback()
    expect(rows(connection, sums + "u")[0][2:], expected[0][2:], "after a rollback")
    rows(connection, "delete from u where v % 2")
    expect(rows(connection, "select count(*), sum(v % 2) from u"), ((12500, 0),), "after a deletion")
    expect([row[3] for row in rows(connection, "check table t, u extended")], ["OK", "OK"], "CHECK TABLE")
    taken = unnamed_bytes(server)
    expect_no_log(connection, before, "large tables")
    expect(files_of_engine(server), files, "files")
    rows(connection, "drop temporary table t, u")
    rows(connection, "set global teak_spill_max_size = 1024 * 1024")
    full = error_number(rows, connection, f"create temporary table w (primary key (id)) select seq as id, {TEXT} as t from seq_1_to_25000")
    expect(full, 1114, "more than the budget of temporary data")
    rows(connection, "set global teak_spill_max_size = default")
    rows(connection, "insert into d values (1, 1)")
    wait_until(lambda: unnamed_bytes(server) < taken / 4, "space is given back")


def beside_others(server):
    """Transactions over temporary tables and others: one outcome for both, and of the log only what lasts; so XA."""
    fresh(server)
    for kind in KINDS:
        connection = server.connect(autocommit=False)
        rows(connection, "delete from d")
        rows(connection, f"create temporary table t (id bigint primary key, t text) {kind}")
        for n, ends in enumerate((connection.commit, connection.rollback)):
            rows(connection, f"insert into t values ({n}, '{MARK}')")
            rows(connection, f"insert into d values ({n}, {n})")
            ends()
            expect(rows(connection, "select (select group_concat(id) from t), (select group_concat(id) from d)"), (("0", "0"),), "one outcome")
            connection.commit()
        for statement in ("xa start 'x'", f"insert into t values (2, '{MARK}')", "insert into d values (2, 2)", "xa end 'x'", "xa prepare 'x'", "xa commit 'x'",
                          "xa start 'y'", f"insert into t values (3, '{MARK}')", "insert into d values (3, 3)", "xa end 'y'", "xa prepare 'y'", "xa rollback 'y'"):
            rows(connection, statement)
        expect(rows(connection, "select (select group_concat(id) from t), (select group_concat(id) from d)"), (("0,2", "0,2"),), "XA")
        connection.commit()
        for statement in ("xa start 'left'", f"insert into t values (4, '{MARK}')", "insert into d values (4, 4)", "xa end 'left'", "xa prepare 'left'"):
            rows(connection, statement)
        connection.close()
        server.kill()
        for path in glob.glob(os.path.join(server.data, "#teak", "**", "*"), recursive=True):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    assert MARK.encode() not in file.read(), f"rows of a temporary table in {path}"
        server.start(OPTIONS)
        server.query("xa commit 'left'")
        expect(server.query("select group_concat(id) from d"), (("0,2,4",),), "what lasts")


class Maker(threading.Thread):
    """Makes, fills, changes and drops temporary tables, and writes to a table that lasts, until the server goes."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number, self.done, self.failure = server, number, 0, None
        self.source = random.Random(SEED * 100 + number)
        self.start()

    def run(self):
        try:
            while True:
                connection = self.server.connect(autocommit=True)
                for n in range(3):
                    self.work(connection, f"t{n}")
                connection.close()
        except (pymysql.err.MySQLError, ConnectionError, OSError) as error:
            if error.args and error.args[0] not in GONE:
                self.failure = error

    def work(self, connection, name):
        count = self.source.choice((1, 100, 4000))
        rows(connection, f"create temporary table {name} (id int primary key, v int, t varchar(500), key (v)) {self.source.choice(KINDS)}")
        rows(connection, f"insert into {name} select seq, seq * 7 % 1000, repeat('x', 400) from seq_1_to_{count}")
        if self.source.random() < 0.5:
            rows(connection, f"alter table {name} add column w int default 3, add key (w)")
            expect(rows(connection, f"select count(*) from {name} where w = 3"), ((count,),), "rows after ALTER TABLE")
        if self.source.random() < 0.5:
            rows(connection, f"truncate table {name}")
        rows(connection, f"replace into d values ({self.number}, {self.done})")
        if self.source.random() < 0.7:
            rows(connection, f"drop temporary table {name}")
        self.done += 1


def killed_servers(server):
    """Killed at any moment, a server leaves nothing of its temporary tables: no file, and nothing in the catalog."""
    fresh(server)
    source = random.Random(SEED)
    files = files_of_engine(server)
    for _ in range(6):
        makers = [Maker(server, number) for number in range(4)]
        goal = 4 + source.randrange(40)
        while sum(maker.done for maker in makers) < goal and not any(maker.failure for maker in makers):
            time.sleep(0.002)
        time.sleep(source.random() * 0.05)
        server.kill()
        for maker in makers:
            maker.join()
            if maker.failure:
                raise maker.failure
        expect(files_of_engine(server), files, "files after a kill")
        check_stopped(server)
        server.start(OPTIONS)
        expect(files_of_engine(server), files, "files after the restart")
        with open(server.error_log, errors="replace") as log:
            assert "#sql-temptable" not in log.read(), "something to be removed"
    server.query("create temporary table t (id int primary key) select seq as id from seq_1_to_1000")
    server.stop()
    expect(files_of_engine(server), files, "files after an orderly shutdown")
    check_stopped(server)
    server.start(OPTIONS)


TESTS = [nothing_is_logged, sessions_end, larger_than_memory, beside_others, killed_servers]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
