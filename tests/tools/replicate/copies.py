#!/usr/bin/python3
"""`teak replicate` with start = "copy": tables are copied beside writers and statements that change them, from InnoDB to Teak, whatever is killed.

usage: copies.py [CASE...]
"""

import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.agent import FollowingCases, expect_same, run_cases
from kit.cases import check
from kit.columns import COLUMNS
from kit.options import seed

USAGE = 2
CONFLICTS = (1020, 1062, 1205, 1213, 1451, 1452, 1146, 1054, 1412)
TABLES = [
    "create table one (a int primary key, b int, c varchar(200))", "create table wide (a bigint unsigned, b int, c int, primary key (a, b))", "create table text (a varchar(20) primary key, b int)",
    "create table bare (a int, b int)", "create table parent (id int primary key, a int)",
    "create table child (id int auto_increment primary key, parent int, foreign key (parent) references parent (id) on delete cascade on update cascade)",
    "create table self (id int primary key, up int, foreign key (up) references self (id) on delete set null)", "create table negative (a smallint primary key, b int)",
    "create table made (id int auto_increment primary key, a int, v int as (a + 1) virtual, s int as (a * 2) stored, i int invisible default 7)", "create sequence sq",
    "create table renamed (a int primary key, b int)",
]
ROWS = [
    "insert into one select seq * 2, seq, repeat('x', seq % 200) from seq_1_to_60000", "insert into wide select 18446744073709551615 - (seq % 30000), seq, seq from seq_1_to_60000",
    "insert into text select concat('k', seq), seq from seq_1_to_3000", "insert into bare select seq % 100, seq from seq_1_to_2000", "insert into parent select seq, seq from seq_1_to_5000",
    "insert into child (parent) select 1 + seq % 5000 from seq_1_to_25000", "insert into self select seq, nullif(seq div 2, 0) from seq_1_to_2000",
    "insert into negative select cast(seq as signed) - 5000, seq from seq_0_to_10000", "insert into made (a, i) select seq, seq % 3 from seq_1_to_60000", "select nextval(sq), nextval(sq)",
    "insert into renamed select seq, seq from seq_1_to_20000", "set sql_mode = 'no_auto_value_on_zero'", "insert into made (id, a) values (0, 5)",
]
CHANGES = [
    "insert into one values ({r} * 2 + 1, 1, 'new')", "update one set b = b + 1 where a between {r} and {r} + 20", "delete from one where a between {r} and {r} + 5", "update one set a = {s} where a = {r}",
    "replace into wide values (18446744073709551615 - {r} % 30000, {s}, 5)", "update wide set a = a - 1 where b = {r}", "delete from wide where b = {r}", "insert into text values ('n{r}', 1)",
    "update text set b = b + 1, a = concat(a, 'x') where a = 'k{t}'", "delete from text where a = 'k{t}'", "insert into bare values (1, {r}), (2, {r})", "delete from bare where b = {t} limit 1",
    "update bare set a = 5 where b = {t}", "insert ignore into parent values ({u}, 1)", "delete from parent where id = {u}", "update parent set id = {u} + 6000 where id = {u}",
    "insert into child (parent) select id from parent where id >= {u} limit 3", "delete from child where id = {r}", "update child set parent = null where id = {r}",
    "delete from self where id = {t}", "insert into self values ({r}, null)", "update negative set a = {t} - 5000 where a = {u} - 5000", "delete from negative where a = {t} - 5000",
    "insert into made (a) values ({r})", "update made set id = {r} where id = {s}", "update made set a = a + 1 where id % 1000 = {r} % 1000", "do nextval(sq)",
]
DEFINITIONS = [
    "alter table one add column d{n} int default 5", "alter table one add index (b)", "truncate table bare", "alter table made add column e{n} int", "create table new{n} (a int primary key)",
    "insert into new{n} values (1), (2)", "rename table renamed to renamed1", "rename table renamed1 to renamed", "drop table if exists new{n}", "alter table text modify b bigint",
    "alter table wide force", "create or replace table again (a int primary key)", "insert into again values (3)",
]


class Writer(threading.Thread):
    """Changes at random, of rows or of definitions."""

    def __init__(self, server, database, statements, pause, choices):
        super().__init__()
        self.server, self.database, self.statements, self.pause, self.random = server, database, statements, pause, choices
        self.stopped, self.trouble = threading.Event(), None

    def run(self):
        connection = None
        while not self.stopped.is_set():
            try:
                connection = connection or self.server.connect(database=self.database, autocommit=True)
                pick = self.random.randrange
                with connection.cursor() as cursor:
                    cursor.execute("begin")
                    for _ in range(pick(1, 4)):
                        cursor.execute(self.random.choice(self.statements).format(r=pick(60000), s=pick(120000), t=pick(3000), u=pick(5000), n=pick(3)))
                    cursor.execute("commit")
                time.sleep(self.pause * self.random.random())
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
                if error.args[0] not in CONFLICTS:
                    connection = None
            except pymysql.err.MySQLError as error:
                if error.args[0] not in CONFLICTS and self.statements is CHANGES:
                    self.trouble = error
                    return


class Cases(FollowingCases):
    """Each copies a database."""

    def made(self, database):
        self.at([f"create database {database}"])
        self.at(TABLES + ROWS, database=database)

    def copied(self, name):
        """Until all tables are copied."""
        self.agent.until(lambda: name in (self.agent.says() + name) and self.agent.position(name) is not None
                         and not self.target.query(f"select 1 from teak_replicate.copy where source = '{name}'", database=None), "that all is copied")

    def same(self, name, database, renamed=None):
        self.agent.catch_up(name, self.source)
        done = subprocess.run([self.agent.teak, "replicate", "verify", "--config", self.agent.config], capture_output=True, check=False)
        said = done.stdout.decode() + done.stderr.decode()
        check(done.returncode == 0, said)
        return expect_same(self.source, self.target, database, renamed)

    def writers(self, database, choices):
        """Of rows, two, and of definitions."""
        writers = [Writer(self.source, database, CHANGES, 0.01, random.Random(choices.random())) for _ in range(2)]
        return writers + [Writer(self.source, database, DEFINITIONS, 0.3, random.Random(choices.random()))]

    def beside(self, writers, work):
        for writer in writers:
            writer.start()
        try:
            work()
        finally:
            for writer in writers:
                writer.stopped.set()
            for writer in writers:
                writer.join()
        troubles = [writer.trouble for writer in writers if writer.trouble]
        check(not troubles, f"{troubles}")

    def case_tables_are_copied(self):
        self.made("co")
        name = self.follow(start='"copy"', databases='["co"]', rename_databases='{ "co" = "s1_co" }')
        self.copied(name)
        rows = self.same(name, "co", "s1_co")
        check(rows > 100000, f"{rows} rows")
        # Where it is there, it is followed, and not copied again.
        check(self.agent.stop() == 0, "no end in order")
        self.at(["insert into co.one values (-1, 1, 'x')"])
        self.follow(name, start='"copy"', databases='["co"]', rename_databases='{ "co" = "s1_co" }')
        self.same(name, "co", "s1_co")
        check(self.agent.stop() == 0, "no end in order")

    def case_values_of_all_types_are_copied(self):
        source = random.Random(seed())
        self.at(["create database ty character set utf8mb4"])
        for part in range(3):
            some = {f"c{n}": column for n, column in enumerate(COLUMNS) if n % 3 == part}
            definitions = ", ".join(f"{column} {of.definition}" for column, of in some.items())
            connection = self.source.connect(database="ty", autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("set sql_mode = '', innodb_strict_mode = 0, time_zone = '+00:00'")
                cursor.execute(f"create table t{part} (id int auto_increment primary key, {definitions})")
                cursor.execute(f"create table k{part} ({definitions})")
                for _ in range(60):
                    chosen = source.sample(list(some), source.randrange(1, len(some) + 1))
                    values = ", ".join(f"{column} = {'null' if source.random() < 0.15 else some[column].literal(source)}" for column in chosen)
                    cursor.execute(f"insert into t{part} set {values}")
                    cursor.execute(f"insert into k{part} set {values}")
            connection.close()
        name = self.follow(start='"copy"', databases='["ty"]')
        self.copied(name)
        self.same(name, "ty")
        check(self.agent.stop() == 0, "no end in order")

    def case_tables_are_copied_beside_writers_and_kills(self):
        choices = random.Random(seed())
        self.made("cw")

        def work():
            nonlocal name
            name = self.follow(start='"copy"', databases='["cw"]')
            for _ in range(12):
                time.sleep(choices.random() * 0.4)
                self.agent.kill()
                self.agent.start()
            time.sleep(1)
        name = None
        self.beside(self.writers("cw", choices), work)
        self.copied(name)
        print(f"        {self.same(name, 'cw')} rows", flush=True)
        check(self.agent.stop() == 0, "no end in order")

    def case_what_cannot_be_copied_is_told(self):
        self.at(["create database cn", "create table cn.m (a int) engine=myisam"])
        self.at(["create database cn", "create table cn.t (a int primary key)"], server=self.target)
        keys = {"start": '"copy"', "databases": '["cn"]'}
        for statements, words in ((["create table cn.t (a int primary key)"], "`cn`.`m` is of MyISAM, which has no snapshots"), (["drop table cn.m"], "`cn`.`t` is there already"),
                                  (["drop table cn.t", "create table cn.v (a int) with system versioning"], "`cn`.`v` has versions"),
                                  (["drop table cn.v", "create table cn.c1 (a int primary key, b int)", "create table cn.c2 (a int primary key, foreign key (a) references cn.c1 (a))",
                                    "alter table cn.c1 add foreign key (b) references cn.c2 (a)"], "are a circle"),
                                  (["set foreign_key_checks = 0", "drop table cn.c1, cn.c2", "set global binlog_row_image = minimal"], "binlog_row_image is MINIMAL")):
            self.at(statements)
            self.names += 1
            self.agent.configure({f"s{self.names}": self.source_keys(**keys)})
            checked = subprocess.run([self.agent.teak, "replicate", "check", "--config", self.agent.config], capture_output=True, check=False)
            check("circle" in words or (checked.returncode == USAGE and words in checked.stdout.decode()), f"{words}: {checked}")
            self.agent.forget()
            self.agent.start()
            self.stops(USAGE, f"s{self.names}: stopped: ", words)
        self.at(["set global binlog_row_image = full"])


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
