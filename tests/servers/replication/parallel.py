#!/usr/bin/env python3
"""A replica applies random transactions over tables of Teak and InnoDB, and over both at once, in each mode of MariaDB's parallel replication, with positions in
a table of each engine (`gtid_pos_auto_engines`): it has the primary's rows and, with log_slave_updates, the primary's transactions in the same order. It is
killed amid that once in each mode.

Also: a replica that applies late on purpose, and one that follows three primaries, whose domains it keeps apart. Prints 'N passed, N failed'.
"""

import os
import random
import sys
import threading

from kit.asking import error_number, expect, rows, wait_until
from kit.cases import carry_out
from kit.options import parser, seed
from kit.replicas import BINLOG_OPTIONS, PRIMARY_OPTIONS, follow, let_replicate, slave_status, value
from kit.server import Server, attempt, free_port

MODES = ("none", "minimal", "conservative", "optimistic", "aggressive")
ENGINES = ("Teak", "InnoDB")
TABLES = [f"{kind}_{engine}" for engine in ENGINES for kind in ("keyed", "plain")]
ROWS, CLIENTS, TRANSACTIONS = 40, 4, 150
# The first table of positions is InnoDB's, and Teak's is made when it is wanted.
REPLICA = ["--gtid-pos-auto-engines=Teak,InnoDB", "--relay-log=relay", "--relay-log-recovery", "--slave-parallel-threads=6", "--skip-name-resolve", "--gtid-strict-mode=ON",
           "--slave-domain-parallel-threads=0", *BINLOG_OPTIONS]
SECONDS = 60


def schema(connection):
    rows(connection, "create database if not exists test")
    rows(connection, "use test")
    for engine in ENGINES:
        rows(connection, f"create or replace table keyed_{engine} (id int primary key, v int not null, text varchar(100), unique (v)) engine={engine}")
        rows(connection, f"insert into keyed_{engine} select seq, seq * 1000, 'x' from seq_1_to_{ROWS}")
        rows(connection, f"create or replace table plain_{engine} (client int, number int, text varchar(100), key (client, number)) engine={engine}")


def statements(source, client, number):
    """Of one transaction: in one of both engines, or in both."""
    made = []
    for engine in source.choice((ENGINES[:1], ENGINES[1:], ENGINES)):
        row = source.randint(1, ROWS)
        made += source.sample([
            (f"update keyed_{engine} set text = concat(left(text, 50), %s) where id = %s", (str(number % 10), row)),
            (f"update keyed_{engine} set v = v + 1 where id = %s", (row,)),
            (f"delete from keyed_{engine} where id = %s", (row,)),
            (f"insert into keyed_{engine} values (%s, %s, 'new') on duplicate key update text = 'again'", (row, row * 1000 + source.randint(0, 900))),
            (f"insert into plain_{engine} values (%s, %s, %s)", (client, number, "t" * source.randint(0, 100))),
            (f"update plain_{engine} set text = %s where client = %s and number = %s", (str(number), client, number - source.randint(1, 5))),
            (f"delete from plain_{engine} where client = %s and number = %s", (client, number - source.randint(5, 20))),
        ], source.randint(1, 3))
    return made


def write(server, client, source):
    connection = server.connect()
    for number in range(TRANSACTIONS):
        attempt(connection, statements(source, client, number), source)
    connection.close()


def logged(server):
    """The transactions of a server's log, in its order."""
    return [event[5].split("GTID ")[1].split()[0] for (file, *_) in server.query("show binary logs", database=None)
            for event in server.query(f"show binlog events in '{file}'", database=None) if event[2] == "Gtid"]


def caught_up(source, replica, limit=SECONDS):
    position = source.query("select @@gtid_binlog_pos", database=None)[0][0]
    with replica.connect(database=None) as connection:
        if value(connection, f"select master_gtid_wait('{position}', {limit})") != 0:
            raise AssertionError(f"not at {position} within {limit} s: {slave_status(connection)}")


def check_same(one, other, tables=TABLES, database="test"):
    statement = "checksum table " + ", ".join(tables)
    expect(other.query(statement, database=database), one.query(statement, database=database), statement)
    for table in tables:
        expect(other.query(f"check table {table}", database=database)[-1][3], "OK", f"CHECK TABLE {table}")


class Test:
    """Three primaries, each with a domain of its own, and a replica."""

    def __init__(self, arguments):
        self.random = random.Random(seed())
        self.primaries = [Server(os.path.join(arguments.directory, f"primary{number}"), arguments.plugin_dir, free_port()) for number in (1, 2, 3)]
        self.replica = Server(os.path.join(arguments.directory, "replica"), arguments.plugin_dir, free_port())

    def start_primary(self, number):
        server = self.primaries[number]
        server.install()
        server.start([*PRIMARY_OPTIONS, f"--server-id={number + 1}", f"--gtid-domain-id={number + 1}"])
        with server.connect(database=None, autocommit=True) as connection:
            let_replicate(connection)
            rows(connection, "set sql_log_bin = 1")
            if number == 0:
                schema(connection)
        return server

    def start_replica(self, *options, fresh=True):
        if fresh:
            self.replica.kill()
            self.replica.install()
        self.replica.start([*REPLICA, "--server-id=10", *options])

    def writers(self, server):
        threads = [threading.Thread(target=write, args=(server, client, random.Random(self.random.random()))) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        return threads

    def follow_first(self):
        with self.replica.connect(database=None, autocommit=True) as connection:
            follow(connection, self.primaries[0].network[1].rpartition("=")[2])

    def mode(self, mode):
        primary = self.primaries[0]
        self.start_replica(f"--slave-parallel-mode={mode}")
        self.follow_first()
        writers = self.writers(primary)
        caught_up(primary, self.replica)
        self.replica.kill()
        self.start_replica(f"--slave-parallel-mode={mode}", fresh=False)
        for thread in writers:
            thread.join()
        caught_up(primary, self.replica)
        check_same(primary, self.replica)
        expect(logged(self.replica), logged(primary), "transactions in the log")
        engines = {engine for (engine,) in self.replica.query("select engine from information_schema.tables where table_schema = 'mysql' and table_name like 'gtid_slave_pos%'")}
        expect(engines, set(ENGINES), "engines of positions")
        with self.replica.connect(database=None) as connection:
            expect(value(connection, "select @@slave_parallel_mode"), mode, "the mode")

    def case_delayed(self):
        primary = self.primaries[0]
        self.start_replica("--slave-parallel-mode=optimistic")
        self.follow_first()
        caught_up(primary, self.replica)
        with self.replica.connect(database=None, autocommit=True) as connection:
            rows(connection, "stop slave")
            rows(connection, "change master to master_delay = 3600")
            rows(connection, "start slave")
            before = self.replica.query("select @@gtid_slave_pos")
            for thread in self.writers(primary):
                thread.join()
            last = primary.query("select @@gtid_binlog_pos")[0][0]
            wait_until(lambda: slave_status(connection)["Gtid_IO_Pos"] == last, "it has received all")
            expect(self.replica.query("select @@gtid_slave_pos"), before, "what it has applied")
            # What came before it was told to wait it has, and is asked for while it waits.
            expect(error_number(rows, connection, "select count(*) from test.keyed_Teak"), None, "a query")
            rows(connection, "stop slave")
            rows(connection, "change master to master_delay = 0")
            rows(connection, "start slave")
        caught_up(primary, self.replica)
        check_same(primary, self.replica)

    def case_three_primaries(self):
        for number in (1, 2):
            self.start_primary(number)
        # Each has a table of its own there, and the first one those of the other cases.
        for number, primary in enumerate(self.primaries, 1):
            with primary.connect(database=None, autocommit=True) as connection:
                rows(connection, f"create or replace table test.only_{number} (id int primary key, v int)")
        self.start_replica("--slave-parallel-mode=optimistic", "--slave-domain-parallel-threads=2")
        with self.replica.connect(database=None, autocommit=True) as connection:
            for number, primary in enumerate(self.primaries, 1):
                port = primary.network[1].rpartition("=")[2]
                rows(connection, f"change master 'p{number}' to master_host='127.0.0.1', master_port={port}, master_user='repl', master_password='repl', master_use_gtid=slave_pos")
            rows(connection, "start all slaves")

        def fill(number, primary):
            own = primary.connect(autocommit=True)
            for row in range(200):
                rows(own, f"insert into only_{number} values ({row}, {row})")
                rows(own, f"update only_{number} set v = v + 1 where id = {row // 2}")
        threads = [threading.Thread(target=fill, args=pair) for pair in enumerate(self.primaries, 1)]
        for thread in threads:
            thread.start()
        wait_until(lambda: error_number(self.replica.query, "select * from only_3 limit 1") is None and len(self.replica.query("select * from only_3")) > 20, "rows of the third")
        self.replica.kill()
        self.start_replica("--slave-parallel-mode=optimistic", "--slave-domain-parallel-threads=2", fresh=False)
        for thread in threads + self.writers(self.primaries[0]):
            thread.join()
        for number, primary in enumerate(self.primaries, 1):
            caught_up(primary, self.replica)
            check_same(primary, self.replica, [f"only_{number}"])
        check_same(self.primaries[0], self.replica)
        expect(len(self.replica.query("select @@gtid_slave_pos")[0][0].split(",")), 3, "domains")


def main():
    arguments = parser(__doc__, names="cases").parse_args()
    test = Test(arguments)
    cases = []
    for mode in MODES:
        def case(mode=mode):
            test.mode(mode)
        case.__name__ = f"case_{mode}"
        cases.append(case)
    try:
        test.start_primary(0)
        return 1 if carry_out([*cases, test.case_delayed, test.case_three_primaries], arguments.names) else 0
    finally:
        for server in (*test.primaries, test.replica):
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
