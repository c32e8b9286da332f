#!/usr/bin/python3
"""`teak replicate` between servers that say nothing more: networks that are gone, connections that somebody has forgotten, and statements that take long.

usage: silence.py [CASE...]
"""

import random
import sys
import threading
import time

import pymysql

from kit.agent import FollowingCases, beside, expect_same, run_cases
from kit.cases import check
from kit.options import seed
from kit.wire import Wire

# Seconds after which somebody looks whether a server is there, as the configuration of these cases has it.
TIMEOUT = 2
# And those after which who follows a source, and has asked for nothing, is taken for gone.
GONE = 10
# Seconds after which a copy that takes a few is whole, of which connections were forgotten: it is looked twice.
RECOVERED = TIMEOUT * 4 + 10


class Writer(threading.Thread):
    """Transactions of a few rows."""

    def __init__(self, server, database, choices):
        super().__init__()
        self.server, self.database, self.random = server, database, choices
        self.stopped, self.trouble = threading.Event(), None

    def run(self):
        connection = self.server.connect(database=self.database, autocommit=True)
        with connection.cursor() as cursor:
            while not self.stopped.is_set():
                number = self.random.randrange(5000)
                try:
                    cursor.execute(f"update t set b = b + 1, c = repeat('x', {number % 200}) where a between {number} and {number + self.random.randrange(9)}")
                    cursor.execute(f"replace into t values ({5000 + number}, 1, 'new')")
                    cursor.execute("insert into log (b) values (1)")
                except pymysql.err.OperationalError as error:
                    if error.args[0] not in (1205, 1213):
                        self.trouble = error
                        return
                time.sleep(0.002)


class Cases(FollowingCases):
    """Each has a database, and ports of its own before the servers."""

    def begin(self):
        super().begin()
        # A server sends no log to who asks again before it has given up to send it over the connection before.
        self.at(["set global net_write_timeout = 3"])
        self.to_source, self.to_target = Wire(self.source.socket), Wire(self.target.socket)

    def end(self):
        super().end()
        for wire in (self.to_source, self.to_target):
            wire.close()

    def recover(self):
        super().recover()
        for wire in (self.to_source, self.to_target):
            wire.mend()

    def made(self, database, rows=5000):
        self.at([f"create database {database}", f"use {database}", "create table t (a int primary key, b int, c varchar(200))", "create table log (a int auto_increment primary key, b int)",
                 f"insert into t select seq, 0, repeat('x', 100) from seq_1_to_{rows}"])

    def follow_by_wire(self, name, database, **keys):
        """Follows a database over both wires."""
        through = {"host": '"127.0.0.1"', "timeout": TIMEOUT}
        source = self.source_keys(databases=f'["{database}"]', **{"start": '"copy"', **keys}, **through, port=self.to_source.port)
        self.agent.configure({name: {**source, "socket": None}}, socket=None, port=self.to_target.port, **through)
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for(f"{name}: follows from")

    def copied(self, name):
        self.agent.until(lambda: not self.target.query(f"select 1 from teak_replicate.copy where source = '{name}'", database=None), "that all is copied")

    def same(self, name, database):
        self.agent.catch_up(name, self.source)
        rows = expect_same(self.source, self.target, database)
        check(self.agent.stop() == 0, f"no end in order: {self.agent.says()}")
        return rows

    def case_a_target_that_is_cut_off_is_given_up_and_comes_back(self):
        for workers in (1, 3):
            name = database = f"cut{workers}"
            self.made(database)
            self.follow_by_wire(name, database, workers=workers)
            self.copied(name)

            def work():
                time.sleep(0.5)
                self.agent.forget()
                self.to_target.cut()
                began = time.monotonic()
                self.agent.wait_for(f"target: the server says nothing for {TIMEOUT} s")
                took = time.monotonic() - began
                check(TIMEOUT * 0.5 < took < TIMEOUT * 2 + 3, f"after {took:.1f} s")
                time.sleep(3)
                said = self.agent.says()
                check(said.count("trying again") < 8, f"no pauses: {said}")
                self.to_target.mend()
                time.sleep(1)
            beside([Writer(self.source, database, random.Random(seed()))], work)
            self.same(name, database)

    def case_connections_that_are_forgotten_are_given_up(self):
        for workers in (1, 3):
            name = database = f"forgotten{workers}"
            self.made(database)
            self.follow_by_wire(name, database, workers=workers)
            self.copied(name)

            def work():
                for _ in range(3):
                    time.sleep(0.5)
                    self.agent.forget()
                    self.to_target.forget()
                    self.agent.wait_for("target: the server says nothing")
                    self.agent.wait_for("follows from")
                    self.agent.forget()
                    self.to_source.forget()
                    self.agent.wait_for(f"source: nothing comes from it for {TIMEOUT} s, ")
                    self.agent.wait_for("follows from")
            beside([Writer(self.source, database, random.Random(seed()))], work)
            self.same(name, database)
        # Nobody else has forgotten them.
        self.to_target.mend()
        self.to_source.mend()

    def case_a_copy_goes_on_when_connections_are_forgotten(self):
        choices = random.Random(seed())
        self.made("copied", 400000)

        def work():
            self.follow_by_wire("copied", "copied")
            for wire in (self.to_target, self.to_source, self.to_target):
                time.sleep(choices.random())
                if not self.target.query("select 1 from teak_replicate.copy", database=None):
                    break
                self.agent.forget()
                wire.forget()
                self.agent.wait_for("trying again")
                self.agent.wait_for("follows from")
        beside([Writer(self.source, "copied", random.Random(choices.random()))], work)
        self.copied("copied")
        check(self.same("copied", "copied") > 400000, "rows are missing")

    def case_a_copy_goes_on_wherever_in_it_connections_are_forgotten(self):
        self.made("places", 150000)
        places = [(self.to_source, b"`t` FORCE INDEX"), (self.to_source, b"CONSISTENT SNAPSHOT"), (self.to_target, b"LOAD DATA"), (self.to_target, b"`t` FORCE INDEX"),
                  (self.to_target, b"LOCK IN SHARE MODE"), (self.to_target, b"ENABLE KEYS")]
        for wire, words in places:
            name = f"places{places.index((wire, words))}"
            wire.forget_behind(words)
            self.follow_by_wire(name, "places")
            self.agent.until(lambda: wire.words is None, f"{words}")
            began = time.monotonic()
            self.agent.wait_for("trying again")
            self.copied(name)
            took = time.monotonic() - began
            check(took < RECOVERED, f"{words}: after {took:.1f} s: {self.agent.says()}")
            self.same(name, "places")
            wire.mend()
            self.at(["drop database places"], server=self.target)

    def case_what_takes_long_is_waited_for(self):
        self.made("slow")
        self.follow_by_wire("slow", "slow")
        self.copied("slow")
        self.agent.catch_up("slow", self.source)
        holder = self.target.connect(database="slow")
        with holder.cursor() as cursor:
            for statement in ("insert into t values (-1, 1, '')", "alter table t add column d int"):
                self.agent.forget()
                cursor.execute("lock tables t write")
                self.at([statement], database="slow")
                time.sleep(TIMEOUT * 3)
                check(not self.agent.says(), f"it does not wait: {self.agent.says()}")
                cursor.execute("unlock tables")
                self.agent.catch_up("slow", self.source)
        holder.close()
        self.same("slow", "slow")

    def case_who_is_gone_does_not_keep_the_source(self):
        for workers in (1, 3):
            name = database = f"gone{workers}"
            self.made(database)
            self.follow_by_wire(name, database, workers=workers)
            self.copied(name)
            # As if the machine of the program had lost its power: the server is told nothing. Of workers, one has a
            # transaction that lacks its COMMIT only.
            if workers > 1:
                self.to_target.forget_behind(b"UPDATE teak_replicate.worker SET done")
                self.at(["update t set b = b + 1 where a < 100"], database=database)
                self.agent.until(lambda: self.to_target.words is None, "that a worker is at its end")
            else:
                self.to_target.forget()
            self.agent.kill()
            began = time.monotonic()
            self.follow_by_wire(name, database, workers=workers)
            took = time.monotonic() - began
            check(GONE / 2 < took < GONE + 10, f"after {took:.1f} s: {self.agent.says()}")
            self.at(["insert into t values (-1, 1, '')", "update t set b = b + 1"], database=database)
            self.same(name, database)
            self.to_target.mend()


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
