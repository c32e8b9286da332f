#!/usr/bin/python3
"""Several workers of one source of `teak replicate`: what is done above one that waits, that the order of commits is kept where it is to be, and that nothing is
lost, or applied twice, whatever is killed, stops, or is asked for meanwhile.

usage: workers.py [CASE...]
"""

import random
import sys
import threading
import time

import pymysql

from kills import CONFLICTS, rolled_back, start_again
from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, FollowingCases, beside, expect_same, run_cases
from kit.asking import error_number
from kit.cases import check
from kit.options import seed

SERVER = 5
USAGE = 2
NO_SUCH_THREAD = 1094
KEPT, FREE = "true", "false"
TABLES = 8
# So many that one is touched by few of the transactions that a worker has at once.
VALUES = 400
SOME = 0.2


class Stepper(threading.Thread):
    """Writes 1, 2, 3 ..., each in a transaction of its own, to tables in turns."""

    def __init__(self, server, database):
        super().__init__()
        self.server, self.database, self.stopped, self.trouble = server, database, threading.Event(), None

    def run(self):
        connection = None
        while not self.stopped.is_set():
            try:
                connection = connection or self.server.connect(database=self.database, autocommit=True)
                with connection.cursor() as cursor:
                    # Whether the last one was committed is told by nobody if the server was killed.
                    cursor.execute(newest(self.database))
                    number = (cursor.fetchone()[1] or 0) + 1
                    for number in range(number, number + 200):
                        cursor.execute(f"insert into t{number % TABLES} values ({number})")
                        if self.stopped.is_set():
                            return
            except (pymysql.err.MySQLError, OSError) as error:
                if not isinstance(error, (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError)):
                    self.trouble = error
                    return
                connection = None
                time.sleep(0.05)


class Reader(threading.Thread):
    """Sees to it that the numbers in the target have no gaps, ever; without `is_kept` it counts how often they have."""

    def __init__(self, server, database, is_kept):
        super().__init__()
        self.server, self.database, self.is_kept = server, database, is_kept
        self.stopped, self.trouble, self.looks, self.gaps = threading.Event(), None, 0, 0

    def run(self):
        connection = None
        while not self.stopped.is_set():
            try:
                connection = connection or self.server.connect(database=None, autocommit=True)
                with connection.cursor() as cursor:
                    cursor.execute(newest(self.database))
                    count, last = cursor.fetchone()
            except (pymysql.err.MySQLError, OSError):
                connection = None
                time.sleep(0.02)
                continue
            self.looks += 1
            if count != (last or 0):
                self.gaps += 1
                if self.is_kept:
                    self.trouble = f"{count} numbers up to {last} are in the target at once"
                    return


class Swapper(threading.Thread):
    """Takes values of unique keys from rows and gives them to others, with and without a transaction around both."""

    TABLES = ["create table {}.numbers (a int auto_increment primary key, u int, unique (u))",
              "create table {}.letters (a int auto_increment primary key, u varchar(9) character set utf8mb4 collate utf8mb4_general_ci, unique (u))",
              "create table {}.codes (a int auto_increment primary key, u varchar(9) character set utf8mb4 collate utf8mb4_bin, unique (u))",
              "create table {}.moments (a datetime(3) not null, b decimal(5,2) not null, primary key (a, b), u binary(4), unique (u))",
              "create table {}.bare (u varchar(9))",
              "create table {}.parent (u varchar(9) primary key)",
              "create table {}.child (a int auto_increment primary key, u varchar(9), foreign key (u) references parent (u) on delete cascade on update cascade)"]

    def __init__(self, server, database, choices):
        super().__init__()
        self.server, self.database, self.random, self.stopped, self.trouble = server, database, choices, threading.Event(), None

    def run(self):
        connection = self.server.connect(database=self.database, autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("set sql_mode = ''")
            while not self.stopped.is_set():
                if self.random.randrange(20) == 0:
                    cursor.execute(f"set binlog_row_image = {self.random.choice(['full', 'minimal', 'noblob'])}")
                together = self.random.random() < 0.3
                try:
                    cursor.execute("begin" if together else "do 0")
                    for statement in self.statements():
                        cursor.execute(statement)
                    cursor.execute("commit")
                except pymysql.err.MySQLError as error:
                    # The last one: no counter for who is rolled back.
                    if error.args[0] not in (*CONFLICTS, 1467) or not rolled_back(connection):
                        self.trouble = error
                        return
        connection.close()

    def statements(self):
        pick = self.random.randrange
        table = self.random.choice(["numbers", "letters", "codes"])
        one, other = ((str(pick(VALUES)), str(pick(VALUES))) if table == "numbers" else (f"'{self.random.choice('aAbBäÄcC')}{' ' * pick(2)}'", f"'{self.random.choice('aAbBäÄcC')}'"))
        moment = f"a = '2024-01-01 00:00:0{pick(3)}.{pick(2)}', b = {self.random.choice(['-0.5', '0', '-0', '1.25'])}"
        return self.random.choice([
            [f"delete from {table} where u = {one}", f"insert ignore into {table} (u) values ({one})"],
            [f"insert ignore into {table} (u) values ({one}), ({other}), (null)"],
            *3 * [[f"update ignore {table} set u = {one} where u = {other}", f"insert ignore into {table} (u) values ({other})"]],
            [f"update ignore {table} set a = a + 1000 where u = {one}", f"delete from {table} where u is null limit 1"],
            [f"delete from moments where u = x'0{pick(3)}00'", f"insert ignore into moments set {moment}, u = x'0{pick(3)}{'00' * pick(3)}'"],
            [f"insert into bare values ('{pick(5)}')", f"delete from bare where u = '{pick(5)}' limit 1"],
            [f"insert ignore into parent values ('{pick(9)}')", f"insert ignore into child (u) values ('{pick(9)}')"],
            [f"delete from parent where u = '{pick(9)}'"], [f"update ignore parent set u = '{pick(9)}' where u = '{pick(9)}'"],
        ])


def newest(database):
    """Asks for how many numbers there are, and for the largest."""
    tables = " union all ".join(f"select a from {database}.t{table}" for table in range(TABLES))
    return f"select count(*), max(a) from ({tables}) numbers"


class Cases(FollowingCases):
    """Each has databases of its own."""

    def both(self, database, *statements):
        """The same on both sides; the target's tables are of Teak."""
        self.at([f"create database {database}", *statements], database=None)
        self.at([f"create database {database}", *statements], server=self.target, init_command="set default_storage_engine = teak")

    def follow_with(self, order, database, **keys):
        """With four workers; the name."""
        return self.follow(workers=4, commit_order=order, databases=f'["{database}"]', **keys)

    def rows(self, table):
        """The numbers in a table of the target."""
        return [row[0] for row in self.target.query(f"select a from {table} order by 1", database=None)]

    def done_above(self, name):
        """How many transactions are noted to be."""
        return sum(len(row[0].split(",")) for row in self.target.query(f"select done from teak_replicate.worker where source = '{name}' and done > ''", database=None))

    def hold(self, statement):
        """A session of the target that has carried this out, and has not ended it."""
        holder = self.target.connect(database=None)
        with holder.cursor() as cursor:
            cursor.execute(statement)
        return holder

    def numbers(self, table, numbers):
        """Each as a row in a transaction of its own."""
        self.at([f"insert into {table} values ({number})" for number in numbers])

    def case_others_are_done_above_one_that_waits(self):
        self.both("ab", "create table ab.t (a int primary key)")
        name = self.follow_with(FREE, "ab")
        before = self.agent.position(name)
        holder = self.hold("insert into ab.t values (1)")
        self.numbers("ab.t", range(1, 101))
        # Those that are in one transaction with the first one wait with it.
        self.agent.until(lambda: len(self.rows("ab.t")) > 50, "that others are there")
        check(self.agent.position(name) == before and self.done_above(name) > 50 and 1 not in self.rows("ab.t"), f"{self.agent.position(name)}, {self.rows('ab.t')}")
        status, said = self.agent.command("status")
        check(status == 0 and " above" in said, said)
        # Its connection waits for the lock in the server, and has nobody any more.
        self.agent.kill()
        left = self.rows("ab.t")
        gtid = self.target.query(f"select done from teak_replicate.worker where source = '{name}' and done > ''", database=None)[0][0].split(",")[0].split(" ")[1]
        status, said = self.agent.command("skip", "--gtid", gtid)
        check(status == USAGE and "was applied already" in said, said)
        self.agent.start()
        time.sleep(SOME)
        check(self.rows("ab.t") == left, f"{self.rows('ab.t')} instead of {left}")
        holder.rollback()
        self.agent.catch_up(name, self.source)
        check(self.rows("ab.t") == list(range(1, 101)) and self.done_above(name) == 0, f"{self.rows('ab.t')}")
        check(self.agent.stop() == 0, "no end in order")
        # One worker goes on with what four have left.
        self.follow(name, workers=4, commit_order=FREE, databases='["ab"]')
        holder = self.hold("insert into ab.t values (201)")
        self.numbers("ab.t", range(201, 301))
        self.agent.until(lambda: len(self.rows("ab.t")) > 150, "that others are there")
        self.agent.kill()
        self.follow(name, databases='["ab"]')
        self.numbers("ab.t", range(301, 303))
        holder.rollback()
        self.agent.catch_up(name, self.source)
        check(self.rows("ab.t") == [*range(1, 101), *range(201, 303)], f"{self.rows('ab.t')}")
        check(self.agent.stop() == 0, "no end in order")

    def case_what_was_in_a_unique_key_and_what_comes_into_it_waits(self):
        self.both("uk", "create table uk.gate (a int primary key)", "create table uk.t (a int primary key, u int, unique (u))", "insert into uk.t values (1, 5), (2, 9), (10, 20)")
        name = self.follow_with(FREE, "uk")
        holder = self.hold("insert into uk.gate values (1)")
        self.at(["begin", "insert into uk.gate values (1)", "update uk.t set u = 6 where a = 1", "delete from uk.t where a = 2", "commit"])
        waits = "select 1 from information_schema.processlist where db = 'uk' and command = 'Query'"
        # What is sent while nobody has the first one yet would be given out with it.
        self.agent.until(lambda: self.target.query(waits, database=None), "that a worker waits")
        # The first takes what the update leaves, the second what the delete does; the third has to do with neither.
        self.at(["insert into uk.t values (3, 5)", "update uk.t set u = 9 where a = 10", "insert into uk.t values (4, 30)"])
        self.agent.until(lambda: 4 in self.rows("uk.t"), "that what is independent is there")
        check(self.rows("uk.t") == [1, 2, 4, 10], f"{self.rows('uk.t')}")
        holder.rollback()
        self.arrive(name, "uk")
        check("looking which" not in self.agent.says(), f"an order was wrong: {self.agent.says()}")

    def case_nothing_is_done_above_one_that_waits_if_the_order_is_kept(self):
        self.both("bl", "create table bl.t (a int primary key)")
        name = self.follow_with(KEPT, "bl")
        for end in (lambda: None, self.agent.kill):
            self.at(["truncate bl.t"])
            self.agent.catch_up(name, self.source)
            holder = self.hold("insert into bl.t values (1)")
            self.numbers("bl.t", range(1, 101))
            self.agent.until(lambda: len(self.target.query("select 1 from information_schema.processlist where db = 'teak_replicate' and command = 'Sleep'", database=None)) >= 3, "that others wait")
            # They give back what they hold, as the one before them might wait for it.
            self.agent.until(lambda: self.takes("insert into bl.t values (100)"), "that others let go of their rows")
            check(self.rows("bl.t") == [] and self.done_above(name) == 0, f"{self.rows('bl.t')}")
            end()
            holder.rollback()
            if self.agent.process is None:
                self.agent.start()
            self.agent.catch_up(name, self.source)
            check(self.rows("bl.t") == list(range(1, 101)), f"{self.rows('bl.t')}")
        check(self.agent.stop() == 0, "no end in order")

    def takes(self, statement):
        """Whether the target carries it out at once, and takes it back."""
        connection = self.target.connect(database=None)
        try:
            with connection.cursor() as cursor:
                cursor.execute("set innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
                cursor.execute("set statement max_statement_time = 0.2 for " + statement)
            return True
        except pymysql.err.MySQLError:
            return False
        finally:
            connection.rollback()
            connection.close()

    def case_the_order_is_kept_whatever_is_killed(self):
        choices = random.Random(seed())
        for order in (KEPT, FREE):
            database = f"st_{order}"
            self.both(database, *(f"create table {database}.t{table} (a int primary key)" for table in range(TABLES)))
            name = self.follow_with(order, database)
            stepper, reader = Stepper(self.source, database), Reader(self.target, database, order == KEPT)
            beside([stepper, reader], lambda: self.kill_all(choices))
            self.agent.catch_up(name, self.source)
            rows = expect_same(self.source, self.target, database)
            print(f"        commit_order = {order}: {rows} transactions, {reader.gaps} of {reader.looks} looks saw a gap", flush=True)
            check(self.agent.stop() == 0, "no end in order")

    def kill_all(self, choices):
        """The program, both servers, and connections of workers."""
        for what in ("agent", "worker", "target", "source", "both", "worker", "agent"):
            time.sleep(choices.random() * 0.8)
            if what in ("agent", "both"):
                self.agent.kill()
            if what in ("target", "both"):
                self.target.kill()
                self.target.start(TARGET_OPTIONS)
            if what == "source":
                self.source.kill()
                start_again(self.source, [*SOURCE_OPTIONS, "--server-id=1"])
            if what == "worker":
                for (number,) in self.target.query("select id from information_schema.processlist where db = 'teak_replicate' order by rand() limit 1", database=None):
                    # The program may have ended that one itself by now.
                    gone = error_number(lambda connection=number: self.target.query(f"kill {connection}", database=None))
                    check(gone in (None, NO_SUCH_THREAD), f"kill {number}: error {gone}")
            if self.agent.process is None:
                self.agent.start()

    def case_values_of_unique_keys_wander_in_their_order(self):
        choices = random.Random(seed())
        for order in (KEPT, FREE):
            database = f"sw_{order}"
            name = self.follow_with(order, database)
            self.at([f"create database {database}", *(table.format(database) for table in Swapper.TABLES)])
            swappers = [Swapper(self.source, database, random.Random(choices.random())) for _ in range(3)]
            beside(swappers, lambda: self.fall_behind(2.5))
            self.agent.start()
            self.agent.catch_up(name, self.source)
            expect_same(self.source, self.target, database)
            # What goes on one by one is right in any case.
            check("looking which" not in self.agent.says(), f"an order was wrong: {self.agent.says()}")
            check(self.agent.stop() == 0, "no end in order")

    def fall_behind(self, seconds):
        """Follows what is written for a while, and leaves as much to be applied at once."""
        time.sleep(seconds / 2)
        self.agent.kill()
        time.sleep(seconds / 2)

    def case_what_is_no_rows_is_alone(self):
        for order in (KEPT, FREE):
            database = f"al_{order}"
            self.both(database, f"create table {database}.t (a int primary key, b longtext)", f"create table {database}.u (a int primary key)")
            name = self.follow_with(order, database)
            connection = self.source.connect(database=database, autocommit=True)
            with connection.cursor() as cursor:
                for number in range(200):
                    cursor.execute(f"insert into t (a) values ({number})")
                    cursor.execute(f"insert into u (a) values ({number})")
                    if number % 100 == 10:
                        cursor.execute(f"alter table t add column c{number} int default {number}")
                    if number % 100 == 30:
                        for statement in ("xa start 'x'", f"update t set b = 'x' where a = {number}", f"insert into u values ({-number})", "xa end 'x'", "xa prepare 'x'"):
                            cursor.execute(statement)
                        cursor.execute("xa commit 'x'")
                    if number % 100 == 50:
                        cursor.execute(f"insert into u select seq from seq_{number}0000_to_{number}9999")
                        cursor.execute(f"insert into t (a, b) values ({-number}, repeat('x', 3000000))")
                    if number % 100 == 70:
                        cursor.execute(f"create table made{number} select a from u where a < 10")
                        cursor.execute(f"rename table made{number} to w{number}")
                    if number % 100 == 90:
                        cursor.execute("begin")
                        for statement in (f"insert into u values ({-number})", "savepoint s", f"update t set b = 'y' where a < {number}", "rollback to s", "commit"):
                            cursor.execute(statement)
            connection.close()
            self.arrive(name, database)

    def case_a_row_that_does_not_fit_stops_or_is_skipped(self):
        for order in (KEPT, FREE):
            database = f"co_{order}"
            self.both(database, f"create table {database}.t (a int primary key)")
            name = self.follow_with(order, database)
            self.agent.kill()
            self.at([f"insert into {database}.t values (100)"], server=self.target)
            self.numbers(f"{database}.t", range(1, 251))
            self.agent.start()
            self.stops(SERVER, f"{name}: stopped: 0-1-", "key a = 100", "1062")
            rows = self.rows(f"{database}.t")
            check(rows[:100] == list(range(1, 101)) and (order == FREE or len(rows) == 100), f"{len(rows)} rows, {rows[:100]}")
            # Again, with what is noted to be done above it.
            self.agent.start()
            self.stops(SERVER, "key a = 100")
            again = self.rows(f"{database}.t")
            check(set(again) >= set(rows) and (order == FREE or again == rows), f"{len(again)} rows, there were {len(rows)}")
            self.at([f"delete from {database}.t where a = 100"], server=self.target)
            self.agent.start()
            self.agent.catch_up(name, self.source)
            check(self.rows(f"{database}.t") == list(range(1, 251)), "rows are missing, or there twice")
            check(self.agent.stop() == 0, "no end in order")
            # By a policy it goes on.
            self.at([f"insert into {database}.t values (300), (400)"], server=self.target)
            name = self.follow_with(order, database, on_conflict='"skip"')
            self.numbers(f"{database}.t", range(251, 501))
            self.agent.catch_up(name, self.source)
            noted = self.target.query(f"select row_key from teak_replicate.conflict where source = '{name}' order by id", database=None)
            check([row[0] for row in noted] == ["key a = 300", "key a = 400"], f"{noted}")
            self.arrive(name, database)

    def case_a_source_pauses_skips_and_goes_on(self):
        for order in (KEPT, FREE):
            database = f"pa_{order}"
            self.both(database, *(f"create table {database}.t{table} (a int primary key)" for table in range(TABLES)), f"create table {database}.s (a int primary key)")
            name = self.follow_with(order, database)
            stepper, reader = Stepper(self.source, database), Reader(self.target, database, order == KEPT)
            beside([stepper, reader], lambda: self.ask(name, database))
            self.agent.catch_up(name, self.source)
            check(self.rows(f"{database}.s") == [1, 3], f"{self.rows(f'{database}.s')}")
            check(self.agent.stop() == 0, "no end in order")

    def ask(self, name, database):
        """Pauses, and what is to be skipped comes meanwhile."""
        for number in (1, 2, 3):
            time.sleep(SOME)
            status, said = self.agent.command("pause")
            check(status == 0 and said.startswith(f"{name}: paused"), said)
            before = self.target.query(newest(database), database=None)
            connection = self.source.connect(database=database, autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute(f"insert into s values ({number})")
                cursor.execute("select @@last_gtid")
                gtid = cursor.fetchone()[0]
            connection.close()
            if number == 2:
                status, said = self.agent.command("skip", "--gtid", gtid)
                check(status == 0, said)
            if number == 3:
                self.agent.kill()
                self.agent.start()
            time.sleep(2 * SOME)
            after = self.target.query(newest(database), database=None)
            check(before == after, f"{after} instead of {before} in a pause")
            check(self.agent.command("resume")[0] == 0, "resume")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
