#!/usr/bin/python3
"""`teak replicate` from InnoDB to Teak while writers and DDL work at the source, and agent, target and source are killed again and again: in the end both sides
have the same tables, and each transaction was applied once.

With --copy 1 the source has rows before it is followed, which are copied meanwhile. With --workers N several connections apply its transactions, and commit them in
the log's order, or with --order 0 in any.

usage: kills.py [--kills N] [--writers N] [--copy 1] [--workers N] [--order 0]
"""

import os
import random
import shutil
import subprocess
import sys
import threading
import time

import pymysql

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, Agent, expect_same, others_of
from kit.cases import carry_out, check
from kit.columns import COLUMNS
from kit.options import parser, seed
from kit.server import Server, free_port

SOME = 14  # columns of a table of random types
TABLES = 2
SETUP = [
    "create database w character set utf8mb4",
    "create table w.ledger (writer int, number int)",
    "create table w.parent (id int primary key, a int)",
    "create table w.child (id int auto_increment primary key, parent int, b varchar(20), foreign key (parent) references w.parent (id) on delete cascade on update cascade)",
    "create table w.bare (a int, f float, t varchar(20), b blob)",
    "create table w.made (id int auto_increment primary key, a int, v int as (a + 1) virtual, s int as (a * 2) stored, i int invisible default 7, unique (a))",
    "create table w.d0 (id int auto_increment primary key, a int)",
]


def setup(database, ledger_key=""):
    """What makes the tables in a database of this name. Without a key of the ledger each transaction is applied behind the one before it, by whatever workers."""
    statements = [statement.replace(" w.", f" {database}.").replace(" w ", f" {database} ") for statement in SETUP]
    return [statement.replace("number int)", f"number int{ledger_key})") for statement in statements]


IMPOSSIBLE = "Failing assertion: tail.trx_no <= last_trx_no"
# What others did to a row: duplicates, parents that are gone, locks.
CONFLICTS = (1020, 1062, 1205, 1213, 1452)


def start_again(server, options):
    """Starts a server, again if InnoDB of 10.11.18 ends it: its purge now and then finds a recovered transaction that it holds for impossible."""
    for _ in range(5):
        try:
            server.start(options)
            return
        except RuntimeError:
            if IMPOSSIBLE not in server.log_end(200):
                raise


def rolled_back(connection):
    """Whether the connection could be used for that."""
    try:
        connection.rollback()
        return True
    except (pymysql.err.MySQLError, OSError):
        return False


class Writer(threading.Thread):
    """Transactions at the source; those whose COMMIT was answered are in `acknowledged`."""

    def __init__(self, number, server, tables, choices, database="w"):
        super().__init__()
        self.number, self.server, self.tables, self.random, self.database = number, server, tables, choices, database
        self.acknowledged, self.stopped, self.trouble, self.image = 0, threading.Event(), None, "full"

    def run(self):
        connection = None
        transaction = 0
        while not self.stopped.is_set():
            try:
                connection = connection or self.connect()
                transaction += 1
                if self.transaction(connection, transaction):
                    self.acknowledged = transaction
            except (pymysql.err.MySQLError, OSError) as error:
                if error.args[0] in CONFLICTS and rolled_back(connection):
                    continue
                if not isinstance(error, (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError)) and error.args[0] not in CONFLICTS:
                    self.trouble = error
                    return
                connection = None
                time.sleep(0.05)

    def connect(self):
        connection = self.server.connect(database=self.database)
        self.image = self.random.choice(["full", "minimal", "noblob"])
        with connection.cursor() as cursor:
            cursor.execute(f"set sql_mode = '', time_zone = '+00:00', binlog_row_image = {self.image}")
        return connection

    def transaction(self, connection, number):
        with connection.cursor() as cursor:
            cursor.execute("begin")
            for _ in range(self.random.randrange(1, 5)):
                cursor.execute(self.statement())
            if self.random.random() < 0.1:
                cursor.execute("savepoint s")
                cursor.execute(self.statement())
                cursor.execute("rollback to s")
            if self.random.random() < 0.05:
                connection.rollback()
                return False
            cursor.execute(f"insert into ledger values ({self.number}, {number})")
            cursor.execute("commit")
        return True

    def statement(self):
        pick = self.random.randrange
        name, columns = self.random.choice(list(self.tables.items()))
        some = self.random.sample(list(columns), pick(1, len(columns) + 1))
        values = ", ".join(f"{column} = {'null' if self.random.random() < 0.15 else columns[column].literal(self.random)}" for column in some)
        statements = [
            f"insert into {name} set {values}", f"insert into {name} set {values}", f"update {name} set {values} where id % 37 = {pick(37)}",
            f"delete from {name} where id % 41 = {pick(41)}",
            f"insert into bare values ({pick(5)}, {self.random.random()}, 'a', repeat('x', {pick(900)}))", f"insert into bare (a) values ({pick(5)}), (null)",
            f"update bare set f = {self.random.random()} where a = {pick(5)} limit 1", f"delete from bare where a = {pick(5)} limit 2",
            f"insert ignore into parent values ({pick(20)}, {pick(9)})", f"insert into child (parent, b) values ({pick(20)}, 'b')", f"delete from parent where id = {pick(20)}",
            f"update ignore parent set id = {pick(20)} where id = {pick(20)}", f"insert into made (a) values ({pick(10 ** 6)})",
            f"update made set i = i + 1 where id % 7 = {pick(7)}", f"insert into d0 (a) values ({pick(100)})", f"delete from d0 where a = {pick(100)}",
        ]
        # In other images the server leaves out of a REPLACE what it does not name: replicas keep what was there.
        if self.image == "full":
            statements += [f"replace into {name} set id = {pick(200)}, {values}", f"replace into parent values ({pick(20)}, {pick(9)})",
                           f"replace into made (a, i) values ({pick(50)}, 1)"]
        return self.random.choice(statements)


class Definer(Writer):
    """DDL; a statement that is refused because a killed one was carried out is none.

    The source is not killed within one: MariaDB 10.11 then takes an ALTER of InnoDB back that is in its log, or does not start any more. Those of the target are
    Teak's, and killed at any time.
    """

    alone = threading.Lock()
    def transaction(self, connection, number):
        pick = self.random.randrange
        statement = self.random.choice(self.statements_of(pick))
        with self.alone, connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError as error:
                if error.args[0] in (2006, 2013, 1205, 1213):
                    raise
        time.sleep(self.random.random() * 0.1)
        return True

    def statements_of(self, pick):
        """Of all kinds."""
        return [
            f"alter table d0 add column c{pick(4)} int default {pick(100)}", f"alter table d0 drop column c{pick(4)}", "alter table d0 add index (a)", "alter table d0 drop index a",
            f"alter table d0 modify a {self.random.choice(['int', 'bigint'])}", "create table d1 like d0", "create table d2 select * from d0", "drop table if exists d1, d2",
            "rename table d0 to dx, d1 to d0, dx to d1", "rename table d1 to d3", "rename table d3 to d1", "alter table d2 rename d4", "drop table d4", "truncate table d1",
            f"create or replace table d5 (a int default {pick(100)})", "insert into d5 values (1)", "create or replace view dv as select a from d0", "alter table d0 force",
            "create trigger dt before insert on d5 for each row set new.a = new.a + 1", "drop trigger dt", "create procedure dp() select 1", "drop procedure dp",
        ]


class Cases:
    """One run."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.random = random.Random(seed())
        shutil.rmtree(arguments.directory, ignore_errors=True)
        self.source = Server(os.path.join(arguments.directory, "source"), arguments.plugin_dir, free_port())
        self.target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir)
        self.agent = Agent(arguments.teak, arguments.directory, self.target)
        # A circle of row locks and locks of tables is found by neither side.
        self.source_options = [*SOURCE_OPTIONS, "--server-id=1", "--innodb-lock-wait-timeout=2", f"--log-bin-compress={self.random.randrange(2)}", "--log-bin-compress-min-len=10",
                               f"--binlog-row-metadata={self.random.choice(['no_log', 'full'])}", f"--max-binlog-size={self.random.choice(['64K', '1G'])}"]

    def tables(self):
        """Some columns of all types for each table."""
        chosen = self.random.sample(COLUMNS, SOME * TABLES)
        return {f"r{at}": {f"c{n}": column for n, column in enumerate(chosen[at * SOME:(at + 1) * SOME])} for at in range(TABLES)}

    def begin(self, tables):
        for server, options in ((self.source, self.source_options), (self.target, TARGET_OPTIONS)):
            server.install()
            server.start(options)
        address = {"host": '"127.0.0.1"', "port": self.source.network[1].split("=")[1], "start": '"copy"' if self.arguments.copy else '"now"'}
        self.agent.configure({"s1": address}, workers=self.arguments.workers, commit_order="true" if self.arguments.order else "false")
        if not self.arguments.copy:
            self.agent.start()
            self.agent.wait_for("follows from")
        made = [f"create table w.{name} (id int auto_increment primary key, {', '.join(f'{column} {of.definition}' for column, of in columns.items())})"
                for name, columns in tables.items()]
        for statement in setup("w", ", primary key (writer, number)" if self.arguments.workers > 1 else "") + made:
            self.source.query(statement, database=None, init_command="set sql_mode = '', innodb_strict_mode = 0")
        if self.arguments.copy:
            self.fill(tables)
            self.agent.start()

    def fill(self, tables):
        """Rows that are there before the source is followed."""
        connection = self.source.connect(database="w", autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("set sql_mode = '', time_zone = '+00:00'")
            for name, columns in tables.items():
                for _ in range(500):
                    cursor.execute(f"insert into {name} set " + ", ".join(f"{column} = {of.literal(self.random)}" for column, of in columns.items()))
            for statement in ("insert into parent select seq, seq from seq_0_to_19", "insert into child (parent, b) select seq % 20, 'c' from seq_1_to_30000",
                              "insert into made (a) select seq from seq_1_to_60000", "insert into d0 (a) select seq % 100 from seq_1_to_50000", "insert into bare (a) select seq % 5 from seq_1_to_500"):
                cursor.execute(statement)
        connection.close()

    def case_kills_lose_nothing_and_apply_nothing_twice(self):
        tables = self.tables()
        self.begin(tables)
        writers = [Writer(number, self.source, tables, random.Random(self.random.random())) for number in range(self.arguments.writers)]
        writers.append(Definer(0, self.source, tables, random.Random(self.random.random())))
        for writer in writers:
            writer.start()
        try:
            for kill in range(self.arguments.kills):
                time.sleep(self.random.choice([0.05, 0.3, 1.0]) * (0.5 + self.random.random()))
                self.kill(("agent", "target", "source")[kill % 3])
        finally:
            for writer in writers:
                writer.stopped.set()
            for writer in writers:
                writer.join()
        if not self.source.is_running() and IMPOSSIBLE in self.source.log_end(200):
            self.start_source()
        troubles = [writer.trouble for writer in writers if writer.trouble]
        check(not troubles, f"{troubles}")
        self.agent.until(lambda: not self.arguments.copy or self.is_copied(), "that all is copied")
        self.agent.catch_up("s1", self.source)
        rows = expect_same(self.source, self.target, "w")
        there, here = (others_of(server, "w") for server in (self.source, self.target))
        check(there == here, f"{here} instead of {there}")
        for writer in writers[:-1]:
            numbers = [row[0] for row in self.target.query(f"select number from ledger where writer = {writer.number}", database="w")]
            check(len(numbers) == len(set(numbers)), f"writer {writer.number} has a transaction twice")
        transactions = self.target.query("select count(*) from ledger", database="w")[0][0]
        check(not self.target.query("select * from teak_replicate.ddl", database=None), "a note of a statement is left")
        verified = subprocess.run([self.agent.teak, "replicate", "verify", "--config", self.agent.config], capture_output=True, check=False)
        check(verified.returncode == 0, f"{verified}")
        print(f"        {transactions} transactions, {rows} rows", flush=True)
        check(self.agent.stop() == 0, "SIGTERM is no end in order")

    def is_copied(self):
        """No table is left to be copied."""
        try:
            return self.agent.position("s1") is not None and not self.target.query("select 1 from teak_replicate.copy", database=None)
        except pymysql.err.MySQLError:
            return False

    def kill(self, what):
        if what == "agent":
            self.agent.kill()
            self.agent.start()
            return
        if what == "source":
            with Definer.alone:
                self.source.kill()
        else:
            self.target.kill()
        if self.random.random() < 0.3:
            self.agent.kill()
            self.agent.start()
        if what == "source":
            self.start_source()
        else:
            self.target.start(TARGET_OPTIONS)

    def start_source(self):
        start_again(self.source, self.source_options)

    def end(self):
        self.agent.kill()
        self.source.kill()
        self.target.kill()


def main():
    arguments = parser(__doc__, kills=20, writers=3, copy=0, workers=1, order=1).parse_args()
    cases = Cases(arguments)
    try:
        failed = carry_out([cases.case_kills_lose_nothing_and_apply_nothing_twice])
        if failed:
            print(cases.agent.says()[-3000:], cases.target.log_end(), cases.source.log_end())
        return 1 if failed else 0
    finally:
        cases.end()


if __name__ == "__main__":
    sys.exit(main())
