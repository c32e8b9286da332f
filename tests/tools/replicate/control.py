#!/usr/bin/python3
"""`teak replicate pause`, `resume`, `skip` and `stop`, of one source and of all, whatever else is going on.

usage: control.py [CASE...]
"""

import random
import sys
import threading
import time

import pymysql

from kit.agent import TARGET_OPTIONS, FollowingCases, expect_same, run_cases
from kit.cases import check
from kit.options import seed

USAGE = 2
# Rows are seen to be away for so many seconds.
WHILE = 1.5


class Cases(FollowingCases):
    """Each has databases of its own."""

    def last(self, statements, database):
        """Carries out statements at the source; the GTID of the last one's transaction."""
        connection = self.source.connect(database=database, autocommit=True)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            cursor.execute("select @@last_gtid")
            found = cursor.fetchone()[0]
        connection.close()
        return found

    def rows(self, table):
        """The numbers in a table of the target."""
        return [row[0] for row in self.target.query(f"select a from {table} order by 1", database=None)]

    def holds(self, table, wanted):
        """It has these numbers, and no others come."""
        end = time.monotonic() + WHILE
        while time.monotonic() < end:
            check(self.rows(table) == wanted, f"{table} has {self.rows(table)}, {wanted} are wanted")
            time.sleep(0.1)

    def case_a_source_pauses_and_goes_on(self):
        self.at(["create database p1"])
        self.at(["create database p2"], server=self.other)
        self.at(["create database p1", "create database p2"], server=self.target)
        keys = {"p1": self.source_keys(databases='["p1"]'), "p2": self.source_keys(server=self.other, databases='["p2"]')}
        self.agent.configure(keys)
        self.agent.forget()
        status, said = self.agent.command("pause")
        check(status == USAGE and "p1: it was not begun: the target has no position of it" in said, said)
        self.agent.start()
        for name in keys:
            self.agent.wait_for(f"{name}: follows from")
        self.at(["create table p1.t (a int primary key)", "insert into p1.t values (1)"])
        self.agent.catch_up("p1", self.source)
        status, said = self.agent.command("pause", "p1")
        check(status == 0 and said.startswith("p1: paused at ") and ";" not in said, said)
        self.at(["insert into p1.t values (2)", "alter table p1.t add column b int"])
        self.at(["create table p2.t (a int)", "insert into p2.t values (5)"], server=self.other)
        self.agent.catch_up("p2", self.other)
        self.holds("p1.t", [1])
        check(self.agent.command("status")[1].startswith("p1: paused, at "), self.agent.command("status")[1])
        # It stays so whatever is killed.
        self.agent.kill()
        check("; nobody follows it now" in self.agent.command("pause", "p1")[1], "nobody follows it")
        self.agent.start()
        self.target.kill()
        self.target.start(TARGET_OPTIONS)
        self.holds("p1.t", [1])
        self.at(["insert into p2.t values (6)"], server=self.other)
        self.agent.catch_up("p2", self.other)
        status, said = self.agent.command("resume", "p1")
        check(status == 0 and said.startswith("p1: goes on behind ") and "nobody" not in said, said)
        self.agent.catch_up("p1", self.source)
        expect_same(self.source, self.target, "p1")
        # All of them; and asked for while nothing comes.
        check(self.agent.command("pause")[1].count(": paused at ") == 2 and self.agent.command("resume")[1].count(": goes on behind ") == 2, "all")
        self.at(["insert into p1.t values (3, 3)"])
        self.agent.catch_up("p1", self.source)
        status, said = self.agent.command("pause", "p3")
        check(status == USAGE and "there is no source p3 in the configuration: it has p1, p2" in said, said)
        check(self.agent.stop() == 0, self.agent.says())

    def case_positions_of_a_build_before_go_on(self):
        for server in (self.source, self.target):
            self.at(["create database b1", "create table b1.t (a int primary key)"], server=server)
        self.agent.configure({"b1": self.source_keys(databases='["b1"]')})
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("b1: follows from")
        self.at(["insert into b1.t values (1)"])
        self.agent.catch_up("b1", self.source)
        check(self.agent.stop() == 0, self.agent.says())
        # As it was before anybody could ask for anything.
        self.at(["alter table teak_replicate.position drop column wanted, drop column asked, drop column mark", "drop table teak_replicate.skip, teak_replicate.worker"], server=self.target)
        status, said = self.agent.command("pause")
        check(status == USAGE and "b1: it was not begun" in said, said)
        self.at(["insert into b1.t values (2)"])
        self.agent.start()
        self.agent.catch_up("b1", self.source)
        self.holds("b1.t", [1, 2])
        status, said = self.agent.command("pause")
        check(status == 0 and said.startswith("b1: paused at "), said)
        check(self.agent.command("resume")[1].startswith("b1: goes on behind "), "resumed")
        check(self.agent.stop() == 0, self.agent.says())

    def case_a_source_stops_and_all_do(self):
        self.at(["create database o1", "create table o1.t (a int)"])
        self.at(["create database o2", "create table o2.t (a int primary key)"], server=self.other)
        self.at(["create database o1", "create table o1.t (a int)", "create database o2", "create table o2.t (a int primary key)"], server=self.target)
        keys = {"o1": self.source_keys(databases='["o1"]'), "o2": self.source_keys(server=self.other, databases='["o2"]')}
        self.agent.configure(keys)
        self.agent.forget()
        self.agent.start()
        for name in keys:
            self.agent.wait_for(f"{name}: follows from")
        status, said = self.agent.command("stop", "o1")
        check(status == 0 and said.startswith("o1: stopped at "), said)
        self.at(["insert into o1.t values (1)"])
        self.at(["insert into o2.t values (1)"], server=self.other)
        self.agent.catch_up("o2", self.other)
        self.holds("o1.t", [])
        check(self.agent.command("stop", "o1")[1].startswith("o1: nobody follows it, it is at "), "stopped twice")
        check("nobody" not in self.agent.command("resume", "o1")[1], self.agent.says())
        self.agent.catch_up("o1", self.source)
        # One that a row has stopped goes on when it is mended, without a new program.
        self.at(["insert into o2.t values (2)"], server=self.target)
        self.at(["insert into o2.t values (2), (3)"], server=self.other)
        self.agent.wait_for("o2: stopped: ")
        self.at(["delete from o2.t where a = 2"], server=self.target)
        check("nobody" not in self.agent.command("resume", "o2")[1], self.agent.says())
        self.agent.catch_up("o2", self.other)
        status, said = self.agent.command("stop")
        check(status == 0 and said.count(": stopped at ") == 2, said)
        check(self.agent.ended() == 0, self.agent.says())
        check(self.agent.command("stop")[1].count(": nobody follows it") == 2, "nobody is there")
        # What was to stop a former program is nothing to the next one.
        self.agent.forget()
        self.agent.start()
        self.at(["insert into o1.t values (2)"])
        self.agent.catch_up("o1", self.source)
        check(self.agent.stop() == 0, self.agent.says())

    def case_one_transaction_is_skipped(self):
        self.at(["create database sk", "create table sk.t (a int primary key)"])
        self.at(["create database sk", "create table sk.t (a int primary key)", "insert into sk.t values (7)"], server=self.target)
        name = self.follow(databases='["sk"]')
        # What stops it, whose neighbours are joined with it: a duplicate.
        gtid = self.last(["insert into t values (1)", "insert into t values (7), (8)"], "sk")
        self.at(["insert into sk.t values (2)"])
        self.stops(5, gtid, "Duplicate entry '7'")
        check(self.rows("sk.t") == [1, 7], f"{self.rows('sk.t')}")
        for given, wanted in ((["--gtid", "0-1"], "no GTID of one transaction"), (["--gtid", "0-1-1,0-1-2"], "no GTID"), (["--gtid", "5ccc1033-44a8-11ea-bd59-0242ac190003:5"], "of the other family"),
                              (["--gtid", ",".join(self.agent.position(name))], "was applied already"), ([], "--gtid")):
            status, said = self.agent.command("skip", *given)
            check(status == USAGE and wanted in said, said)
        check(self.agent.command("skip", "--gtid", gtid) == (0, f"{name}: {gtid} will be skipped\n"), "noted")
        check("is noted to be skipped already" in self.agent.command("skip", "--gtid", gtid)[1], "noted twice")
        check(f"to be skipped: {gtid}" in self.agent.command("status")[1], "the status")
        self.agent.start()
        self.agent.catch_up(name, self.source)
        check(self.rows("sk.t") == [1, 2, 7] and f"{gtid} is skipped, as teak_replicate.skip has it" in self.agent.says(), self.agent.says())
        noted = self.target.query(f"select gtid, skipped is null from teak_replicate.skip where source = '{name}'", database=None)
        check(noted == ((gtid, 0),), f"{noted}")
        check("numbers fall only" in self.agent.command("skip", "--gtid", "0-1-1")[1], "a number of long ago")
        # Definitions, statements without rows, and those that would stop it.
        self.agent.command("pause")
        skipped = [self.last(["alter table t add column b int"], "sk"), self.last(["set binlog_format = statement", "insert into t (a) values (20)"], "sk"),
                   self.last(["create table u as select 1 as a"], "sk"), self.last(["create table m (a int) engine=myisam", "insert into m values (1)"], "sk")]
        self.at(["alter table t drop column b", "insert into t values (21)"], database="sk")
        for gtid in skipped:
            check(self.agent.command("skip", "--gtid", gtid)[0] == 0, gtid)
        self.agent.command("resume")
        self.agent.wait_for("stopped: ")
        check(self.agent.ended() == 5 and "ALTER TABLE" in self.agent.says().upper(), self.agent.says())
        # The column was never there, so that its DROP is skipped as well.
        failed = self.agent.says().rsplit("stopped: ", 1)[1].split(",")[0]
        check(self.agent.command("skip", "--gtid", failed)[0] == 0, failed)
        self.agent.start()
        self.agent.catch_up(name, self.source)
        check(self.rows("sk.t") == [1, 2, 7, 21], f"{self.rows('sk.t')}")
        tables = [row[0] for row in self.target.query("show tables", database="sk")]
        check(tables == ["m", "t"] and self.rows("sk.m") == [], f"{tables}")
        check(not self.target.query("select * from teak_replicate.ddl", database=None), "a note of a statement is left")
        # Prepared, and completed.
        self.at(["xa start 'x1'", "insert into sk.t values (30)", "xa end 'x1'", "xa prepare 'x1'"])
        self.agent.catch_up(name, self.source)
        self.agent.command("pause")
        gtid = self.last(["xa commit 'x1'", "do 1"], "sk")
        check(self.agent.command("skip", "--gtid", gtid)[0] == 0, gtid)
        self.at(["insert into sk.t values (31)"])
        self.agent.command("resume")
        self.agent.catch_up(name, self.source)
        check(self.rows("sk.t")[-1] == 31 and 30 not in self.rows("sk.t"), f"{self.rows('sk.t')}")
        check(not self.target.query("select * from teak_replicate.xa", database=None), "something is kept of it")
        check(self.agent.stop() == 0, self.agent.says())

    def case_pauses_and_skips_beside_writers_copies_and_kills(self):
        """While rows are copied, defined and written, the agent and the target killed: nothing but what was skipped is away."""
        choices = random.Random(seed())
        self.at(["create database pk", "create table pk.t (a int primary key, b int)", "create table pk.log (a int primary key)", "create table pk.d (a int)"])
        self.at(["insert into t select seq, 0 from seq_1_to_60000"], database="pk")
        stopped, skipped, troubles = threading.Event(), [], []

        def write():
            number = 0
            connection = self.source.connect(database="pk", autocommit=True)
            with connection.cursor() as cursor:
                while not stopped.is_set():
                    number += 1
                    cursor.execute(f"update t set b = b + 1 where a between {number % 600 * 100} and {number % 600 * 100 + 20}")
                    if number % 40 == 0:
                        cursor.execute(choices.choice(["alter table d add column if not exists b int", "alter table d drop column if exists b", "truncate table d"]))
                    time.sleep(0.005)

        writer = threading.Thread(target=lambda: self.guarded(write, troubles))
        name = self.follow(start='"copy"', databases='["pk"]')
        writer.start()
        try:
            for number in range(30):
                time.sleep(choices.random() * 0.4)
                kind = choices.choice(["pause", "skip", "kill", "target", "stop"])
                if kind in ("pause", "skip"):
                    status, said = self.agent.command("pause")
                    check(status == 0, said)
                    before = self.agent.position(name)
                    gtid = self.last([f"insert into log values ({number})"], "pk")
                    if kind == "skip":
                        check(self.agent.command("skip", "--gtid", gtid)[0] == 0, gtid)
                        skipped.append(number)
                    if choices.random() < 0.4:
                        self.agent.kill()
                        self.agent.start()
                    time.sleep(choices.random() * 0.3)
                    check(self.agent.position(name) == before or "behind the statement" in said, f"{self.agent.position(name)}, {before}: {said}")
                    check(self.agent.command("resume")[0] == 0, "resume")
                elif kind == "stop":
                    check(self.agent.command("stop")[0] == 0, "stop")
                    self.agent.kill()
                    self.agent.start()
                elif kind == "kill":
                    self.agent.kill()
                    self.agent.start()
                else:
                    self.target.kill()
                    self.target.start(TARGET_OPTIONS)
        finally:
            stopped.set()
            writer.join()
        check(not troubles, f"{troubles}")
        self.agent.until(lambda: not self.target.query("select 1 from teak_replicate.copy", database=None), "that all is copied")
        self.agent.catch_up(name, self.source)
        there, here = ({row[0] for row in server.query("select a from pk.log", database=None)} for server in (self.source, self.target))
        # Rows of the log table that a copy brought are there, whatever was skipped of the log behind it.
        check(there - here <= set(skipped) and here <= there, f"{there - here} are away, {skipped} were skipped")
        noted = self.target.query(f"select count(*), sum(skipped is null) from teak_replicate.skip where source = '{name}'", database=None)[0]
        check(noted[0] == len(skipped) and not noted[1], f"{noted}, {skipped}")
        for table in ("t", "d"):
            rows = [sorted(map(repr, server.query(f"select * from pk.{table}", database=None))) for server in (self.source, self.target)]
            check(rows[0] == rows[1], f"{table}: {len(rows[0])} rows at the source, {len(rows[1])} here")
        print(f"        {len(there)} pauses, {len(skipped)} of them with a transaction that is skipped, {len(there - here)} away", flush=True)
        check(self.agent.stop() == 0, self.agent.says())

    @staticmethod
    def guarded(work, troubles):
        """Carries it out, and notes what fails."""
        try:
            work()
        except pymysql.err.MySQLError as error:
            troubles.append(error)


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
