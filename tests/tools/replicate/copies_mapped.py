#!/usr/bin/python3
"""Copies by `teak replicate`, and repairs, of tables that are not in the target as at the source: one with those of other sources, with columns left out or
of their own; beside writers, with kills.

usage: copies_mapped.py [CASE...]
"""

import random
import sys
import threading
import time

import pymysql

from kit.agent import FollowingCases, beside, run_cases
from kit.cases import check
from kit.options import seed

USAGE = 2


class Writer(threading.Thread):
    """Changes rows of a table until it is `stopped`."""

    def __init__(self, server, database, number):
        super().__init__(name=f"writer {number}")
        self.server, self.database, self.choices = server, database, random.Random(seed() + number)
        self.stopped, self.trouble = threading.Event(), None

    def run(self):
        try:
            connection = self.server.connect(database=self.database, autocommit=True)
            with connection.cursor() as cursor:
                while not self.stopped.is_set():
                    row = self.choices.randrange(1, 130000)
                    cursor.execute(self.choices.choice([
                        f"insert ignore into t (a, b, secret) values ({row}, 'new{row}', 'seen')", f"update t set c = c + 1, secret = 'changed' where a = {row}", f"delete from t where a between {row} and {row + 3}",
                        f"update ignore t set a = a + {self.choices.randrange(-20000, 20000)} where a = {row}", f"insert into k values ({row}, {row})", f"delete from k where a = {row}"]))
            connection.close()
        except pymysql.err.MySQLError as trouble:
            self.trouble = trouble


class Cases(FollowingCases):
    """Each has a database of its own."""

    def rows(self, query, server=None):
        return sorted(map(repr, (server or self.target).query(query, database=None)))

    def fill(self, database, server):
        self.at([f"create database {database}"], server=server)
        self.at(["create table t (a int primary key, secret varchar(20) not null, b varchar(20), c int default 0, d int as (c + 1) stored, unique (b), key (c))",
                 "create table k (a int, b int, key (b))", "insert into t (a, secret, b) select seq, 'seen', concat('x', seq) from seq_1_to_100000", "insert into k select seq, seq from seq_1_to_50"],
                server=server, database=database)

    def all_copied(self, *names):
        for name in names:
            self.agent.until(lambda name=name: not self.target.query(f"select 1 from teak_replicate.copy where source = '{name}'", database=None), "that all is copied")

    def case_tables_of_several_sources_are_copied_into_one(self):
        for server in (self.source, self.other):
            self.fill("ma", server)
        self.at(["set global local_infile = 1", "create database mb",
                 "create table mb.t (nr int, secret varchar(20) not null, b varchar(20), c int default 0, d int as (c + 1) stored, wiki varchar(20) not null, primary key (wiki, nr), unique (b, wiki), key (c))",
                 "create table mb.k (a int, b int, wiki varchar(20), key (wiki, b))", "insert into mb.t (nr, secret, b, wiki) values (1, '', 'of somebody', 'three'), (7, '', 'y', 'three')"], server=self.target)
        into = lambda value: f'{{ "ma.t" = {{ table = "mb.t", column = "wiki", value = "{value}" }}, "ma.k" = {{ table = "mb.k", column = "wiki", value = "{value}" }} }}'
        sources = {name: self.source_keys(server=server, start='"copy"', databases='["ma"]', rename_tables=into(value), rename_columns='{ "ma.t" = { a = "nr" } }', workers=2)
                   for name, server, value in (("m1", self.source, "one"), ("m2", self.other, "two"))}
        self.agent.configure(sources)
        status, said = self.agent.command("check")
        check(status == 0, said)
        self.agent.forget()
        self.agent.start()
        choices = random.Random(seed())

        def kills():
            for _ in range(5):
                time.sleep(choices.random() / 3)
                self.agent.kill()
                self.agent.start()
            self.all_copied("m1", "m2")
        beside([Writer(server, "ma", number) for number, server in enumerate((self.source, self.other, self.source))], kills)
        for name, server in (("m1", self.source), ("m2", self.other)):
            self.agent.catch_up(name, server)
        for server, value in ((self.source, "one"), (self.other, "two")):
            for table, there, here in (("t", "a, secret, b, c, d", "nr, secret, b, c, d"), ("k", "a, b", "a, b")):
                theirs, ours = self.rows(f"select {there} from ma.{table}", server), self.rows(f"select {here} from mb.{table} where wiki = '{value}'")
                check(theirs == ours and theirs, f"{table} of {value}: {len(theirs)} at the source, {len(ours)} here: {sorted(set(theirs) ^ set(ours))[:4]}")
        check(len(self.rows("select * from mb.t where wiki = 'three'")) == 2, "rows of others are gone")
        for command in ("check", "verify"):
            status, said = self.agent.command(command)
            check(status == 0, said)
        # Repairs are of a source's own rows, under the names of the target's columns.
        self.at(["update mb.t set b = 'other' where wiki = 'one' order by nr limit 1", "delete from mb.t where wiki = 'two' order by nr limit 2", "insert into mb.t (nr, secret, b, wiki) values (-5, 'x', 'more', 'two')"], server=self.target)
        before = self.rows("select * from mb.t where wiki = 'three'")
        status, said = self.agent.command("verify", "--repair")
        check(status == 0 and "m1: 2 tables" in said and "1 differences, 1 repaired" in said and "3 differences, 3 repaired" in said and "key a = -5: is not at the source" in said, said)
        check(self.agent.command("verify")[0] == 0 and self.rows("select * from mb.t where wiki = 'three'") == before, "rows are others after a repair")
        check(self.agent.stop() == 0, self.agent.says())
        # One that has rows of the source already is not filled.
        self.agent.configure({"m3": self.source_keys(server=self.other, start='"copy"', databases='["ma"]', rename_tables=into("three"), rename_columns='{ "ma.t" = { a = "nr" } }')})
        status, said = self.agent.command("check")
        check(status == USAGE and "`ma`.`t` is to be copied, and `mb`.`t` has rows of it already" in said, said)
        self.agent.forget()
        self.agent.start()
        self.stops(USAGE, "m3: stopped:", "`mb`.`t` has rows of it already")

    def case_copies_leave_columns_out(self):
        self.fill("xc", self.source)
        self.at(["set global local_infile = 1"], server=self.target)
        name = self.follow(start='"copy"', databases='["xc"]', exclude_columns='{ "xc.t" = ["secret"] }')

        def kills():
            for _ in range(4):
                time.sleep(0.1)
                self.agent.kill()
                self.agent.start()
            self.all_copied(name)
        beside([Writer(self.source, "xc", number) for number in range(2)], kills)
        self.agent.catch_up(name, self.source)
        for table, columns in (("t", "a, b, c, d"), ("k", "a, b")):
            theirs, ours = self.rows(f"select {columns} from xc.{table}", self.source), self.rows(f"select {columns} from xc.{table}")
            check(theirs == ours, f"{table}: {len(theirs)} {len(ours)} {sorted(set(theirs) ^ set(ours))[:4]}")
        check(self.rows("select distinct secret from xc.t") == ["('',)"], f"{self.rows('select distinct secret from xc.t')}")
        self.at(["delete from xc.t order by a limit 3", "update xc.t set c = -99, secret = 'mine' order by a desc limit 1"], server=self.target)
        status, said = self.agent.command("verify", "--repair")
        check(status == 0 and "4 differences, 4 repaired" in said, said)
        check(self.rows("select distinct secret from xc.t") == ["('',)", "('mine',)"], "a value came")
        check(self.agent.stop() == 0, self.agent.says())

    def case_copies_fill_tables_with_columns_of_their_own(self):
        self.fill("oc", self.source)
        self.at(["set global local_infile = 1", "create database oc", "create table oc.t (a int primary key, secret varchar(20) not null, b varchar(20), c int default 0, d int as (c + 1) stored, "
                 "note varchar(20) default 'none', unique (b), key (note))"], server=self.target)
        keys = {"start": '"copy"', "databases": '["oc"]', "own_columns": '{ "oc.t" = ["note"] }'}
        name = self.follow(**keys)

        def kills():
            for _ in range(3):
                time.sleep(0.1)
                self.agent.kill()
                self.agent.start()
            self.all_copied(name)
        beside([Writer(self.source, "oc", 0)], kills)
        self.agent.catch_up(name, self.source)
        theirs, ours = self.rows("select a, secret, b, c, d from oc.t", self.source), self.rows("select a, secret, b, c, d from oc.t")
        check(theirs == ours, f"{len(theirs)} {len(ours)} {sorted(set(theirs) ^ set(ours))[:4]}")
        check(self.rows("select distinct note from oc.t") == ["('none',)"], "a column of the target's own is another one")
        self.at(["update oc.t set note = 'mine', c = 77 order by a limit 1", "delete from oc.t order by a desc limit 1"], server=self.target)
        status, said = self.agent.command("verify", "--repair")
        check(status == 0 and "2 differences, 2 repaired" in said, said)
        check(self.rows("select count(*) from oc.t where note = 'mine'") == ["(1,)"], "a repair changed a column of the target's own")
        check(self.agent.stop() == 0, self.agent.says())

    def case_what_cannot_be_copied_is_refused(self):
        self.fill("nc", self.source)
        self.at(["create table nc.twice like nc.k"])
        self.at(["set global local_infile = 1", "create database ncm", "create table ncm.k (a int, b int, wiki varchar(20))"], server=self.target)
        part = lambda value: f'{{ table = "ncm.k", column = "wiki", value = "{value}" }}'
        for keys, words in (({"exclude_changes": '{ "nc.t" = ["delete"] }'}, "`nc`.`t` has changes that are left out (exclude_changes)"),
                            ({"rename_tables": f'{{ "nc.k" = {part("x")}, "nc.twice" = {part("y")} }}'}, "is one with `nc`.`twice` of the same source"),
                            ({"rename_tables": '{ "nc.t" = { table = "ncm.nobody", column = "wiki" } }'}, "is not in the target, as `ncm`.`nobody`, which start = \"copy\" fills, and does not make"),
                            ({"rename_tables": '{ "nc.t" = { table = "ncm.k", column = "wiki" } }'}, "has 5 columns at the source, and 2 in the target"),
                            ({"own_columns": '{ "nc.k" = ["note"] }'}, "is not in the target, as `nc`.`k`, which start = \"copy\" fills"),
                            ({"exclude_columns": '{ "nc.t" = ["b"] }'}, "has `b` in a unique key"),
                            ({"exclude_columns": '{ "nc.k" = ["b"] }'}, "has no key without NULLs")):
            self.agent.configure({"nc": {**self.source_keys(databases='["nc"]', start='"copy"'), **keys}})
            status, said = self.agent.command("check")
            check(status == USAGE and words in said, f"{keys}: {said}")
            self.agent.forget()
            self.agent.start()
            self.stops(USAGE, "nc: stopped:", words)
            check(not self.target.query("select 1 from information_schema.tables where table_schema = 'nc'", database=None), "something was made")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
