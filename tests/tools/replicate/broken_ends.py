#!/usr/bin/python3
"""`teak replicate` behind logs that end within a transaction, as their server died while it wrote it.

usage: broken_ends.py [CASE...]
"""

import contextlib
import glob
import os
import struct
import sys
import threading
import time
import zlib

import pymysql

from kit.agent import SOURCE_OPTIONS, FollowingCases, expect_same, run_cases
from kit.cases import check

DAMAGE, SERVER = 3, 5
HEADER_BYTES, CHECKSUM_BYTES = 19, 4
QUERY, XID, TABLE_MAP, WRITE_ROWS, GTID = 2, 16, 19, 23, 162

# Rows that are in no transaction with an end have numbers above.
OTHERS = 1_000_000


def events_of(log):
    """The places of a log's events, each with its kind."""
    at, found = 4, []
    while at < len(log):
        kind, length = log[at + 4], struct.unpack_from("<I", log, at + 9)[0]
        found.append((kind, at, at + length))
        at += length
    return found


def next_one(log, change):
    """What would come behind the last transaction of a log, which is the same but for what `change` does to each event, by its kind: the bytes of its events."""
    events = events_of(log)
    last = max(at for at, (kind, _, _) in enumerate(events) if kind == GTID)
    check(events[-1][0] == XID, f"the log does not end with a transaction of rows: {events}")
    end, made = len(log), []
    for kind, begins, ends in events[last:]:
        event = bytearray(log[begins:ends - CHECKSUM_BYTES])
        end += ends - begins
        struct.pack_into("<I", event, 13, end)
        if kind == GTID:
            struct.pack_into("<Q", event, HEADER_BYTES, struct.unpack_from("<Q", event, HEADER_BYTES)[0] + 1)
        change(kind, event)
        made.append(bytes(event) + struct.pack("<I", zlib.crc32(event)))
    return made


def inserting(number):
    """Of the transaction that has inserted the row of this number another one, which inserts another row."""
    def change(kind, event):
        if kind == WRITE_ROWS:
            struct.pack_into("<i", event, event.rindex(struct.pack("<i", number)), number + OTHERS)
    return change


def making(table):
    """Of CREATE TABLE ... SELECT that has made the table `made` another one, which makes this table, of a name as long."""
    def change(kind, event):
        if kind in (QUERY, TABLE_MAP):
            at = event.rindex(b"made")
            event[at:at + 4] = table
    return change


class Cases(FollowingCases):
    """Each has a database, and sources of its own."""

    def log(self):
        """The source's last log."""
        return sorted(glob.glob(os.path.join(self.source.data, "b.0*")))[-1]

    def start_source(self):
        self.source.start([*SOURCE_OPTIONS, "--server-id=1"])

    def end_within(self, change, whole, some_bytes):
        """Kills the source and lets its log end with so many events of a transaction that is like the last one, and some bytes of the next one."""
        self.source.kill()
        with open(self.log(), "rb") as file:
            made = next_one(file.read(), change)
        check(len(made) > whole, f"a transaction of {len(made)} events")
        with open(self.log(), "ab") as file:
            file.write(b"".join(made[:whole]) + made[whole][:some_bytes])
        self.start_source()

    def case_what_ends_within_a_transaction_is_passed(self):
        name = self.follow()
        self.at(["create database wi", "create table wi.t (a int primary key, b varchar(1000))"])
        number = 0
        for whole in range(5):
            for some_bytes in (0, 10, 25):
                number += 1
                self.at([f"insert into wi.t values ({number}, repeat('x', 1000))"])
                self.end_within(inserting(number), whole, some_bytes)
                self.at([f"insert into wi.t values (-{number}, '')"])
                self.agent.catch_up(name, self.source)
        self.arrive(name, "wi")

    def case_what_is_whole_before_such_an_end_is_applied(self):
        number = 0
        for keys in ({}, {"workers": 3}, {"workers": 3, "commit_order": "false"}):
            name = self.follow(**keys)
            database = f"wb{self.names}"
            self.at([f"create database {database}", f"create table {database}.t (a int primary key, b varchar(1000))"])
            for whole, some_bytes in ((0, 10), (2, 0), (2, 25), (3, 100)):
                self.agent.catch_up(name, self.source)
                self.agent.kill()
                for _ in range(20):
                    number += 1
                    self.at([f"insert into {database}.t values ({number}, repeat('x', 1000))"])
                self.end_within(inserting(number), whole, some_bytes)
                # What comes next has the number of what had no end; here nothing comes.
                self.agent.forget()
                self.agent.start()
                self.agent.catch_up(name, self.source)
                if some_bytes > 0:
                    self.agent.wait_for("ends within an event")
                check(some_bytes > 0 or "ends within an event" not in self.agent.says(), self.agent.says())
            self.arrive(name, database)

    def case_several_such_ends_are_passed(self):
        name = self.follow()
        self.at(["create database ws", "create table ws.t (a int primary key, b varchar(1000))", "insert into ws.t values (1, '')"])
        self.agent.catch_up(name, self.source)
        self.agent.kill()
        for number in range(2, 5):
            self.at([f"insert into ws.t values ({number}, '')"])
            self.end_within(inserting(number), 3, 30)
        self.agent.start()
        self.arrive(name, "ws")

    def case_a_table_whose_select_has_no_end_is_not_there(self):
        # Whole events: of the number, the definition, the statement as a comment, the table, its rows.
        for keys in ({}, {"workers": 3}):
            name = self.follow(**keys)
            database = f"wc{self.names}"
            self.at([f"create database {database}", f"create table {database}.t (a int primary key, b varchar(1000))", f"insert into {database}.t values (1, repeat('x', 1000)), (2, '')"])
            for whole, some_bytes, replaces in ((1, 10, ""), (2, 0, ""), (3, 0, "or replace"), (3, 30, ""), (4, 0, ""), (4, 50, ""), (5, 0, "or replace"), (5, 10, "")):
                self.at(["drop table if exists made"], database=database)
                self.agent.catch_up(name, self.source)
                # One that has all before the end is sent nothing of what has none.
                self.agent.kill()
                self.at([f"create {replaces} table made select * from t"], database=database)
                self.end_within(making(b"more"), whole, some_bytes)
                self.agent.forget()
                self.agent.start()
                self.agent.catch_up(name, self.source)
                if whole > 1:
                    self.agent.wait_for(f"`{database}`.`more` is dropped")
                expect_same(self.source, self.target, database)
                # The first of these has the number of what had no end.
                self.at(["create table next select a from t", "drop table next", "create table more (a int primary key)", "insert into more values (1)", "drop table more"], database=database)
                self.agent.catch_up(name, self.source)
                expect_same(self.source, self.target, database)
                check(not self.target.query("select 1 from teak_replicate.ddl", database=None), "a statement is noted whose end nobody waits for")
            self.arrive(name, database)

    def case_an_event_that_cannot_be_read_stops_the_source_before_its_transaction(self):
        def checksum(event):
            event[-1] ^= 1

        def kind(event):
            event[4] = 200
            struct.pack_into("<I", event, len(event) - CHECKSUM_BYTES, zlib.crc32(event[:-CHECKSUM_BYTES]))

        def length(event):
            # Of the text, as it says itself.
            event[event.index(b"text") - 1] = 255
            struct.pack_into("<I", event, len(event) - CHECKSUM_BYTES, zlib.crc32(event[:-CHECKSUM_BYTES]))
        for spoil, words in ((checksum, "checksum"), (kind, "200"), (length, "`t`, column 2:")):
            name = self.follow()
            database = f"wd{self.names}"
            self.at([f"create database {database}", f"create table {database}.t (a int primary key, b varchar(255))"])
            self.agent.catch_up(name, self.source)
            self.agent.kill()
            self.at([f"insert into {database}.t values (1, '')", f"insert into {database}.t values (2, 'text')", f"insert into {database}.t values (3, '')"])
            log = self.log()
            self.source.stop()
            with open(log, "r+b") as file:
                whole = file.read()
                begins, ends = [(begins, ends) for kind_of, begins, ends in events_of(whole) if kind_of == WRITE_ROWS][-2]
                event = bytearray(whole[begins:ends])
                spoil(event)
                file.seek(begins)
                file.write(event)
            self.start_source()
            self.agent.forget()
            self.agent.start()
            self.stops(DAMAGE, f"{name}: stopped:", os.path.basename(log), words)
            rows = self.target.query(f"select a from {database}.t", database=None)
            check(rows == ((1,),), f"{rows}")

    def case_a_source_may_die_in_create_or_replace_select(self):
        name = self.follow()
        self.at(["create database wr", "create table wr.t (a int primary key)", "insert into wr.t values (1), (2)"])
        self.agent.catch_up(name, self.source)

        def replace():
            with contextlib.suppress(pymysql.err.MySQLError):
                self.at(["create or replace table t (a int primary key) select seq as a, sleep(0.05) as b from seq_1_to_10000"], database="wr")
        thread = threading.Thread(target=replace)
        thread.start()
        time.sleep(1)
        self.source.kill()
        thread.join()
        self.start_source()
        self.at(["create table if not exists t (a int primary key)", "replace into t (a) values (3)"], database="wr")
        self.arrive(name, "wr")

    def case_a_log_that_has_lost_something_stops_the_source(self):
        name = self.follow()
        self.at(["create database wl", "create table wl.t (a int primary key)", "insert into wl.t values (1)"])
        self.agent.catch_up(name, self.source)
        self.agent.kill()
        self.at(["insert into wl.t values (2)", "insert into wl.t values (3)"])
        self.source.kill()
        log = self.log()
        self.start_source()
        os.truncate(log, os.path.getsize(log) - 20)
        self.agent.forget()
        self.agent.start()
        self.stops(SERVER, f"{name}: stopped: source: ERROR 1236", "truncated in the middle of event")
        rows = self.target.query("select a from wl.t", database=None)
        check(rows == ((1,), (2,)), f"{rows}")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
