#!/usr/bin/python3
"""Tables with IN_MEMORY=YES: nothing of their rows is written, and after a restart they are empty.
"""

import glob
import os
import random
import sys
import threading
import time

import pymysql

from kit.asking import expect, expect_no_log, log_bytes, rows
from kit.cases import on_server
from kit.options import parser, seed
from kit.replicas import follow, let_replicate
from kit.server import Server, free_port

# In every row, and in nothing else.
MARK = "QuetzalMark"
SEED = seed()
OPTIONS = ["--server-id=1", "--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=0", "--teak-cache-size=8M", "--teak-log-segment-size=1M",
           "--teak-memory-max-size=128M", "--teak-flush-log-at-trx-commit=1"]
GONE = (0, 2006, 2013, 2014)
CONFLICTS = (1020, 1205, 1213)


def fresh(server):
    server.query("drop database if exists test", database=None)
    server.query("create database test", database=None)
    server.query("create table m (id bigint auto_increment primary key, v int, t text, key v (v), key t (t(20))) in_memory=yes")
    server.query("create table d (id bigint primary key, v int, key v (v))")


def files_of_engine(server):
    """Those with rows or log; not what may be anything's."""
    return sorted(glob.glob(os.path.join(server.data, "#teak", "**", "*"), recursive=True))


def files_with_mark(server):
    found = []
    for path in files_of_engine(server):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                if MARK.encode() in file.read():
                    found.append(path)
    return found


def nothing_is_written(server):
    """No statement that changes rows adds a byte to the log, no file has anything of them."""
    fresh(server)
    connection = server.connect(autocommit=True)
    rows(connection, "set sql_log_bin = 0")
    before, files = log_bytes(connection), [path for path in files_of_engine(server) if path.endswith(".teak")]
    rows(connection, f"insert into m (v, t) select seq * 7 % 1000, concat('{MARK} ', seq) from seq_1_to_20000")
    rows(connection, f"insert into m (v, t) values (1, repeat('{MARK}', 2000))")
    for statement in ("update m set v = v + 1 where id % 3 = 0", "delete from m where v between 10 and 300", "replace into m select * from m where id < 100"):
        rows(connection, statement)
    connection.begin()
    rows(connection, f"update m set t = concat(t, ' {MARK}')")
    connection.rollback()
    expect_no_log(connection, before, "changed rows")
    for statement in ("optimize table m", "alter table m add index vt (v, t(30))", f"alter table m add column w varchar(20) default '{MARK[::-1]}'"):
        rows(connection, statement)
    rows(connection, "set global teak_checkpoint_now = on")
    expect(files_with_mark(server), [], "files with rows")
    expect([path for path in files_of_engine(server) if path.endswith(".teak")], files, "files of tables")
    expect(rows(connection, "check table m extended")[-1][3], "OK", "CHECK TABLE")
    connection.close()
    server.kill()
    expect(files_with_mark(server), [], "files with rows after a kill")
    server.start(OPTIONS)


class Writer(threading.Thread):
    """Moves sums between rows of both tables, which each transaction writes alike, until the server goes."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.source, self.done, self.failure = server, random.Random(SEED * 10 + number), 0, None
        self.start()

    def run(self):
        try:
            connection = self.server.connect()
            while True:
                try:
                    self.transfer(connection)
                    self.done += 1
                except pymysql.err.MySQLError as error:
                    if error.args[0] not in CONFLICTS:
                        raise
                    connection.rollback()
        except (pymysql.err.MySQLError, ConnectionError, OSError) as error:
            if error.args and error.args[0] not in GONE:
                self.failure = error

    def transfer(self, connection):
        giver, taker = self.source.sample(range(1, 51), 2)
        amount = self.source.randrange(10)
        for table in ("m", "d"):
            for account, change in sorted(((giver, -amount), (taker, amount))):
                rows(connection, f"update {table} set v = v + {change} where id = {account}")
            if self.source.random() < 0.1:
                expect(rows(connection, f"select count(*), sum(v) from {table} where id <= 50"), ((50, 5000),), f"the sum of {table}")
        if self.source.random() < 0.2:
            connection.rollback()
        else:
            connection.commit()


def killed_servers(server):
    """Transactions over both kinds are atomic while the server lives; then one is empty, and the other as it was."""
    source = random.Random(SEED)
    fresh(server)
    for n in range(4):
        server.query("replace into d select seq, 100 from seq_1_to_50")
        expect(server.query("select count(*) from m"), ((0,),), f"rows in memory at the beginning of round {n}")
        server.query("insert into m (id, v, t) select seq, 100, 'x' from seq_1_to_50")
        writers = [Writer(server, 10 * n + number) for number in range(3)]
        check = server.connect(autocommit=True)
        goal = 20 + source.randrange(200)
        while sum(writer.done for writer in writers) < goal and not any(writer.failure for writer in writers):
            both = rows(check, "select (select group_concat(v order by id) from m where id <= 50) = (select group_concat(v order by id) from d where id <= 50)")
            expect(both, ((1,),), "what both tables have, in one snapshot")
            time.sleep(0.002)
        server.kill()
        for writer in writers:
            writer.join()
            if writer.failure:
                raise writer.failure
        server.start(OPTIONS)
        expect(server.query("select count(*), sum(v) from d where id <= 50"), ((50, 5000),), "the table with a file after a kill")
        expect(server.query("select count(*) from m force index (v)"), ((0,),), "the table in memory after a kill")
        expect(server.query("show create table m")[0][1].count("KEY"), 3, "keys after a kill")
        expect([row[3] for row in server.query("check table m, d extended")], ["OK", "OK"], "CHECK TABLE after a kill")
        expect(server.query("insert into m (v) values (1)"), (), "a first row")
        expect(server.query("select id from m"), ((1,),), "its number")
        server.query("truncate table m")
    server.stop()
    server.start(OPTIONS)
    expect(server.query("select count(*) from m"), ((0,),), "rows after an orderly restart")
    server.query("drop table m")
    tables = int(server.query("select count(distinct table_schema, table_name) from information_schema.teak_tables")[0][0])
    files = [path for path in files_of_engine(server) if os.path.basename(path).startswith("s") and path.endswith(".teak")]
    expect(len(files), tables + 1, "files of tables, and that of the catalog")


def prepared(server):
    """What a client has prepared is known after a restart, and may be decided, though its rows are gone."""
    fresh(server)
    connection = server.connect()
    for statement in ("xa start 'm'", "insert into m (id, v) values (1, 1)", "xa end 'm'", "xa prepare 'm'"):
        rows(connection, statement)
    assert "m" in str(server.query("xa recover")), "prepared"
    connection.close()
    server.kill()
    server.start(OPTIONS)
    assert "m" in str(server.query("xa recover")), "prepared, after a kill"
    server.query("xa commit 'm'")
    expect(server.query("select count(*) from m"), ((0,),), "rows")


def restarts_reach_the_replica(server):
    """Before anything new of the table is in the binary log, that it is empty."""
    fresh(server)
    server.stop()
    port = free_port()
    server.network = ["--bind-address=127.0.0.1", f"--port={port}"]
    replica = Server(server.directory + "-replica", server.plugin_dir)
    replica.install()
    try:
        server.start(OPTIONS)
        replica.start(["--server-id=2", "--relay-log=relay", "--teak-memory-max-size=64M"])
        let_replicate(server.connect(autocommit=True))
        server.query("reset master")
        for connection in (server.connect(autocommit=True), replica.connect(database=None, autocommit=True)):
            rows(connection, "create or replace database test")
        server.query("reset master")
        connection = replica.connect(autocommit=True)
        follow(connection, port)
        server.query("create table m (id int primary key, v int, t text, key (v)) in_memory=yes")
        server.query("create table p (id int primary key) in_memory=yes partition by hash (id) partitions 3")
        server.query("insert into m select seq, seq, 'before' from seq_1_to_100")
        server.query("insert into p select seq from seq_1_to_10")
        wait_for(connection, "select (select count(*) from m), (select count(*) from p)", ((100, 10),))
        server.kill()
        server.start(OPTIONS)
        expect(server.query("select count(*) from m"), ((0,),), "rows after a restart")
        wait_for(connection, "select count(*) from m", ((0,),))
        server.query("insert into m select seq, seq, 'after' from seq_91_to_110")
        server.query("insert into p values (1), (20)")
        server.query("update m set v = v + 1")
        wait_for(connection, "select count(*), sum(v), min(t), (select group_concat(id order by id) from p) from m", ((20, 2030, "after", "1,20"),))
        expect(rows(connection, "check table m extended")[-1][3], "OK", "CHECK TABLE on the replica")
    finally:
        replica.kill()


def wait_for(connection, statement, expected, limit=60.0):
    """Until the replica says `expected`, or has stopped."""
    began = time.monotonic()
    while True:
        try:
            found = rows(connection, statement)
        except pymysql.err.ProgrammingError as missing:
            found = missing
        if found == expected:
            return
        with connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("show slave status")
            error = cursor.fetchone()["Last_SQL_Error"]
        if error or time.monotonic() - began > limit:
            raise AssertionError(f"{statement}: found {found!r}, expected {expected!r}; {error}")
        time.sleep(0.02)


TESTS = [nothing_is_written, killed_servers, prepared, restarts_reach_the_replica]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
