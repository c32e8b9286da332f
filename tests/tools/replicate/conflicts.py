#!/usr/bin/python3
"""Rows that do not fit, with `on_conflict` of `teak replicate`: what is skipped is noted with the position, what is overwritten is as at the source, whatever is killed.

usage: conflicts.py [CASE...]
"""

import random
import re
import sys
import time

from kit.agent import TARGET_OPTIONS, FollowingCases, expect_same, run_cases
from kit.cases import check
from kit.options import seed

SERVER = 5


class Cases(FollowingCases):
    """Of policies."""

    def both(self, database, *statements, **settings):
        """The same on both sides; the target's tables are of Teak."""
        self.at([f"create database {database}", *statements], database=None, **settings)
        self.at([f"create database {database}", *statements], server=self.target, init_command="set default_storage_engine = teak")

    def noted(self, name):
        """Table, key and the error's number of what was skipped."""
        found = self.target.query(f"select table_name, row_key, error from teak_replicate.conflict where source = '{name}' order by id", database=None)
        return [(table, key, int(re.search(r"ERROR (\d+)", error)[1])) for table, key, error in found]

    def case_rows_are_skipped_and_noted(self):
        self.both("sk", "create table sk.t (a int primary key, b varchar(20), unique (b))", "create table sk.k (a int)", "create table sk.p (a int primary key)",
                  "create table sk.c (a int primary key, foreign key (a) references sk.p (a))", "insert into sk.t values (1, 'a'), (2, 'b'), (3, 'c')", "insert into sk.k values (1), (2)",
                  "insert into sk.p values (1), (2)")
        self.at(["delete from sk.t where a = 2", "insert into sk.t values (9, 'it''s')", "delete from sk.k where a = 2", "delete from sk.p where a = 2", "insert into sk.c values (1)"],
                server=self.target)
        name = self.follow(on_conflict='"skip"')
        self.at(["begin", "insert into sk.t values (4, 'd')", "update sk.t set b = concat(b, '!') where a < 4", "insert into sk.t values (5, 'it''s')", "delete from sk.k", "commit",
                 "insert into sk.c values (2)", "delete from sk.c", "delete from sk.p where a = 1", "insert into sk.k values (7)"])
        self.agent.catch_up(name, self.source)
        check(self.noted(name) == [("t", "key a = 2", 1032), ("t", "key a = 5", 1062), ("k", "a row of a table without a key", 1032), ("c", "key a = 2", 1452), ("c", "key a = 2", 1032),
                                   ("p", "key a = 1", 1451)], f"{self.noted(name)}")
        rows = self.target.query("select * from sk.t order by a", database=None)
        check(list(rows) == [(1, "a!"), (3, "c!"), (4, "d"), (9, "it's")], f"{rows}")
        check([row[0] for row in self.target.query("select a from sk.k", database=None)] == [7], "other rows of the transaction are not there")
        said = self.agent.says()
        check(f"{name}: 0-1-" in said and ", table `sk`.`t`, key a = 2: is skipped, and noted in teak_replicate.conflict: target: ERROR 1032" in said and "it's" not in said.replace("'it's' for key", ""), said)
        # What was noted can be carried out, when there is room for it.
        self.at(["delete from sk.t where a = 9"], server=self.target)
        statement = self.target.query(f"select statement from teak_replicate.conflict where source = '{name}' and row_key = 'key a = 5'", database=None)[0][0]
        self.at([statement], server=self.target)
        check(self.target.query("select b from sk.t where a = 5", database=None)[0][0] == "it's", "the statement does not add the row")
        status, said = self.agent.command("verify")
        check(status == 1 and "`sk`.`t`, key a = 2: is missing" in said and "key a = 1: is not at the source" in said, said)
        check(self.agent.stop() == 0, "no end in order")

    def case_rows_are_overwritten(self):
        types = "n bigint unsigned, d decimal(10,3), v varchar(20) character set latin1, t timestamp(3) null, e enum('x', 'y'), x varbinary(9)"
        self.both("ow", f"create table ow.t (a int primary key, b varchar(20), {types}, unique (b), unique two (n, d), unique (v, e), unique (t), unique (x))",
                  "create table ow.p (a int primary key, b int)", "create table ow.c (a int primary key, foreign key (a) references ow.p (a) on delete cascade)",
                  "insert into ow.t (a, b) values (1, 'a'), (2, 'b'), (3, 'c'), (10, 'j'), (11, 'k')", "insert into ow.p values (1, 1)", "insert into ow.c values (1)")
        self.at(["delete from ow.t where a in (2, 11)", "update ow.t set b = 'other' where a = 3", "insert into ow.t (a, b) values (4, 'old'), (20, 'e'), (21, 'a!')",
                 "insert into ow.t (a, n, d) values (22, 18446744073709551615, 1.5)", "insert into ow.t (a, v, e) values (23, 'é', 'y')", "insert into ow.t (a, t) values (24, '2024-01-01 00:00:00.5')",
                 "insert into ow.t (a, x) values (25, x'00ff')", "insert into ow.p values (2, 5)", "insert into ow.c values (2)"], server=self.target)
        name = self.follow(on_conflict='"overwrite"', databases='["ow"]')
        self.at(["update ow.t set b = concat(b, '!') where a < 3", "insert into ow.t (a, b) values (4, 'd'), (5, 'e')", "delete from ow.t where a = 11", "update ow.t set a = 20, b = 'z' where a = 10",
                 "insert into ow.t (a, n, d) values (6, 18446744073709551615, 1.5)", "insert into ow.t (a, v, e) values (7, 'é', 2)", "insert into ow.t (a, t) values (8, '2024-01-01 00:00:00.5')",
                 "insert into ow.t (a, x) values (9, x'00ff')", "update ow.t set b = 'f' where a = 3", "insert into ow.p values (2, 6)"])
        self.agent.catch_up(name, self.source)
        expected = self.source.query("select * from ow.t order by a", database=None)
        found = self.target.query("select * from ow.t order by a", database=None)
        check(list(found) == list(expected), f"{found} instead of {expected}; {self.agent.says()}")
        check(list(self.target.query("select * from ow.p order by a", database=None)) == [(1, 1), (2, 6)], "not the source's")
        # A row that was made the source's took none with it that refers to it.
        check(len(self.target.query("select * from ow.c", database=None)) == 2, "rows went with one that was overwritten")
        check(self.noted(name) == [] and "is overwritten: target: ERROR 1062" in self.agent.says(), self.agent.says())
        self.at(["delete from ow.c where a = 2"], server=self.target)
        status, said = self.agent.command("verify")
        check(status == 0, said)
        check(self.agent.stop() == 0, "no end in order")

    def case_what_cannot_be_overwritten_stops(self):
        self.both("no", "create table no.k (a int)", "create table no.t (a int primary key, b double, unique (b))", "create table no.p (a int primary key)",
                  "create table no.c (a int primary key, foreign key (a) references no.p (a))", "create table no.m (a int primary key, b int)", "create table no.g (a int primary key, b int, unique (b))",
                  "insert into no.k values (1)", "insert into no.p values (1)", "insert into no.m values (1, 1)")
        self.at(["create trigger no.tr after delete on g for each row set @x = 1", "delete from no.p", "delete from no.k", "delete from no.m", "insert into no.t values (9, 0.1)",
                 "insert into no.g values (9, 5)"], server=self.target, database="no")
        for statement, words in (("update no.k set a = 2", "the table has no key"), ("insert into no.c values (1)", "that would need another table's rows"),
                                 ("insert into no.t values (1, 0.1)", "the unique key b has columns"), ("insert into no.g values (1, 5)", "has triggers, which would act"),
                                 ("set binlog_row_image = minimal; update no.m set b = 2", "the log has not all of it")):
            name = self.follow(on_conflict='"overwrite"')
            self.at(statement.split("; "))
            self.stops(SERVER, f"{name}: stopped: 0-1-", "it is not overwritten: ", words)
        name = self.follow(on_conflict='"skip"')
        self.at(["create table no.made (a int)"], server=self.target)
        self.at(["create table no.made (a int)"])
        self.stops(SERVER, "create table no.made", "1050")

    def case_policies_hold_whatever_is_killed(self):
        source = random.Random(seed())
        for policy in ("skip", "overwrite"):
            database = f"k{policy[0]}"
            self.both(database, f"create table {database}.t (a int primary key, b int, unique (b))", f"create table {database}.ledger (a int auto_increment primary key, b int)")
            # Every second one has the key, the others a unique value.
            self.at(["insert into t select if(seq % 2, seq * 3, seq * 3 + 1000), if(seq % 2, -seq, seq * 3) from seq_1_to_300"], server=self.target, database=database)
            name = self.follow(on_conflict=f'"{policy}"', databases=f'["{database}"]')
            connection = self.source.connect(database=database, autocommit=True)
            conflicts = {number for number in range(1, 901) if number % 3 == 0}
            with connection.cursor() as cursor:
                for number in range(1, 901):
                    cursor.execute("begin")
                    cursor.execute(f"insert into t values ({number}, {number})")
                    cursor.execute(f"insert into ledger (b) values ({number})")
                    cursor.execute("commit")
                    if number % 150 == 0:
                        time.sleep(source.random() / 4)
                        if source.randrange(2):
                            self.agent.kill()
                            self.agent.start()
                        else:
                            self.target.kill()
                            self.target.start(TARGET_OPTIONS)
            connection.close()
            self.agent.catch_up(name, self.source)
            check(len(self.target.query(f"select * from {database}.ledger", database=None)) == 900, "a transaction is lost, or there twice")
            if policy == "skip":
                noted = [key for _, key, _ in self.noted(name)]
                check(sorted(noted) == sorted(f"key a = {number}" for number in conflicts), f"{len(noted)} rows are noted, {len(conflicts)} did not fit")
            else:
                expect_same(self.source, self.target, database)
            check(self.agent.stop() == 0, "no end in order")

    def case_a_target_that_would_overwrite_by_itself_is_refused(self):
        self.target.query("set global slave_exec_mode = idempotent", database=None)
        try:
            self.agent.configure({"idem": self.source_keys()})
            self.agent.forget()
            self.agent.start()
            self.stops(2, "idem: stopped: target: slave_exec_mode is IDEMPOTENT")
        finally:
            self.target.query("set global slave_exec_mode = strict", database=None)


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
