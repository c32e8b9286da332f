#!/usr/bin/env python3
"""Kills a server in the middle of DDL, restarts it and looks at what is there: tables as before the statement or as after it, definitions and engine of one
mind, no file of nothing, unique keys unique, indexes of the rows they should have, and the binary log of the same opinion.

Each round chooses one step of one case (cases.py) as its target. In half of the rounds it is killed before one of the changes that it makes to files, chosen at random
(stopper.c): that reaches the places between which time is short. Some starts are killed in the same way. In the others it is killed at a random moment of its duration, while a few other cases run
their cycles, so that a kill meets several statements. Prepared XA transactions lie around. The second half of the rounds has the binary log.

Where partitions come and go (`moves_partitions`), the server's own recovery is not atomic with any engine: with --engine InnoDB the same is asked of InnoDB,
which then has tables without definition (1932) or with indexes that the definition has not, leftover files, and statements that the binary log lacks. There only what the
engine answers for is asked: indexes agree with rows, and it has no tables or files besides those of the server. Prints 'N passed, N failed', a round each.
"""

import os
import random
import re
import shutil
import sys
import threading
import time

import pymysql

from kit.asking import rows
from kit.options import parser, seed
from kit.server import Server
from kit.stops import Stops

import unbuilt
from cases import CASES
from state import check_tables, engine_strangers, state_of, strangers, tables_left

# Files are changed about this often by a start.
START_CHANGES = 150
# Cases that run in a round besides the one with the target.
COMPANY = 3
# The server is gone, which is the point.
LOST = (0, 2006, 2013, 2014)
# A table that cannot be opened: there is none, its list of partitions (.par) is missing, the engine has none.
NO_TABLE, NO_LIST, NOT_IN_ENGINE = 1146, 1696, 1932


class HalfDone(AssertionError):
    """There is neither the old nor the new: the server's to answer for where partitions come and go."""


class Rubbish(HalfDone):
    """The server lost track of a partitioned table: there is no list of its partitions (it is replaced by removing and renaming), so that the table cannot be
    opened or the parts of its old version are not found and dropped."""


class Cycle:
    """A case on a server: what its states are, where it is in its cycle, how long its steps take, and how often they change a file."""

    def __init__(self, case):
        self.case = case
        self.database = f"ddl_{case.name}"
        # state[i]: after step i, which is that before step i + 1.
        self.states, self.seconds, self.changes = [], [], []
        self.done = 0
        # Statements since the binary log began, as the log must have them: by step.
        self.logged = [0] * len(case.steps)
        self.logged_at_most = [0] * len(case.steps)

    def marker(self, number):
        return f"/* {self.case.name} {number} */"

    def run_step(self, cursor, number):
        step = self.case.steps[number]
        try:
            cursor.execute(f"{step.statement} {self.marker(number)}")
        except pymysql.err.MySQLError as error:
            if not step.error or error.args[0] != step.error:
                raise
        else:
            if step.error:
                raise AssertionError(f"{self.case.name}: no error {step.error} of {step.statement}")

    def prepare(self, connection, stops):
        """Creates the database and goes once through the cycle, to know it."""
        self.reset(connection)
        cursor = connection.cursor()
        before = state_of(connection, self.database)
        for number, _ in enumerate(self.case.steps):
            stops.arm(Stops.NEVER)
            began = time.monotonic()
            self.run_step(cursor, number)
            self.seconds.append(time.monotonic() - began)
            self.changes.append(stops.changed())
            self.states.append(state_of(connection, self.database))
        if self.states[-1] != before:
            raise AssertionError(f"{self.case.name} does not end as it began:\n{before}\n{self.states[-1]}")

    def reset(self, connection):
        connection.autocommit(True)
        rows(connection, f"DROP DATABASE IF EXISTS {self.database}")
        rows(connection, f"CREATE DATABASE {self.database}")
        rows(connection, f"USE {self.database}")
        for statement in self.case.setup:
            rows(connection, statement)
        self.done = 0

    def forget_log(self):
        self.logged = [0] * len(self.case.steps)

    def count(self):
        """The next step is done."""
        self.logged[self.done % len(self.case.steps)] += 1
        self.done += 1

    def settle(self, connection, start_was_killed):
        """After a crash: is the step that was under way done or not? An error if the state is neither.

        Recovery of an ALTER in place that is undone removes the new definition first and then its own record of the statement. The next recovery takes a new definition that is
        not there for one that is in its place, and logs the statement: killed between the two (one change of a file of some 150), the server has the statement in the
        binary log although the table is as before. Seen with InnoDB's tables at the same place (ALTER TABLE ... DROP COLUMN of a virtual column; change 141 of the start)."""
        found = state_of(connection, self.database)
        length = len(self.case.steps)
        before, after = self.states[(self.done - 1) % length], self.states[self.done % length]
        self.logged_at_most = list(self.logged)
        if found == before == after:
            self.logged_at_most[self.done % length] += 1
        elif found == after:
            number = self.done % length
            self.count()
            self.logged_at_most = list(self.logged)
            self.logged[number] -= self.case.steps[number].may_be_unlogged
        elif found == self.states[-1] and self.case.steps[self.done % length].may_restart:
            self.logged_at_most[self.done % length] += 1
            self.done = 0
        elif found == before and (start_was_killed or self.case.steps[self.done % length].may_be_undone):
            self.logged_at_most[self.done % length] += 1
        elif found != before:
            step = self.case.steps[self.done % length].statement
            raise HalfDone(f"{self.case.name}: after a kill in or just after '{step}' there is neither the old nor the new:\n"
                                 f"found {found}\nold   {before}\nnew   {after}")

    def check_log(self, events):
        """The binary log has what was done, and nothing else."""
        mine = [text for text in events if f"use `{self.database}`" in text]
        for number, step in enumerate(self.case.steps):
            if step.logged is None or step.error:
                continue
            pattern = step.logged or re.escape(self.marker(number))
            count = sum(bool(re.search(pattern, text)) for text in mine)
            if not self.logged[number] <= count <= self.logged_at_most[number]:
                raise HalfDone(f"{self.case.name}: '{step.statement}' is {count} times in the binary log, and was done {self.logged[number]} to"
                                     f" {self.logged_at_most[number]} times:\n" + "\n".join(mine[-8:]))


class Runner(threading.Thread):
    """Repeats a cycle until the server is gone. `target` begins counts how often the step `target` was begun."""

    def __init__(self, server, cycle, target=None):
        super().__init__()
        self.connection = server.connect(database=cycle.database, autocommit=True)
        self.cycle, self.target = cycle, target
        self.target_begins = threading.Event()
        self.failure = None

    def run(self):
        cursor = self.connection.cursor()
        try:
            while True:
                number = self.cycle.done % len(self.cycle.case.steps)
                if number == self.target:
                    self.target_begins.set()
                began = time.monotonic()
                self.cycle.run_step(cursor, number)
                self.cycle.seconds[number] += (time.monotonic() - began - self.cycle.seconds[number]) / 3
                self.cycle.count()
        except (pymysql.err.MySQLError, ConnectionError, OSError) as error:
            if error.args and error.args[0] not in LOST:
                self.failure = error
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
        finally:
            self.target_begins.set()


class Bystanders:
    """Prepared transactions: of a session that goes before the kill, and of one that is there when it comes."""

    DATABASE = "ddl_bystander"

    def __init__(self, server):
        self.server, self.round, self.expected = server, 0, {}
        self.kept = []
        connection = server.connect(database=None, autocommit=True)
        rows(connection, f"DROP DATABASE IF EXISTS {self.DATABASE}")
        rows(connection, f"CREATE DATABASE {self.DATABASE}")
        rows(connection, f"CREATE TABLE {self.DATABASE}.b (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, KEY (v))")
        connection.close()

    def prepare(self, number):
        self.round = number
        for name in ("left", "held"):
            connection = self.server.connect(database=self.DATABASE, autocommit=True)
            xid = f"'{name} {number}'"
            rows(connection, f"XA START {xid}")
            rows(connection, f"INSERT INTO b VALUES ({2 * number + (name == 'held')}, {number})")
            rows(connection, f"XA END {xid}")
            rows(connection, f"XA PREPARE {xid}")
            if name == "left":
                connection.close()
            else:
                self.kept = [connection]

    def check(self, random_source):
        connection = self.server.connect(database=self.DATABASE, autocommit=True)
        prepared = {row[3].decode() for row in rows(connection, "XA RECOVER")}
        expected = {f"{name} {self.round}" for name in ("left", "held")}
        if prepared != expected:
            raise AssertionError(f"prepared transactions {prepared}, not {expected}")
        for name in ("left", "held"):
            commits = random_source.random() < 0.5
            rows(connection, f"XA {'COMMIT' if commits else 'ROLLBACK'} '{name} {self.round}'")
            if commits:
                self.expected[2 * self.round + (name == "held")] = self.round
        for index in ("PRIMARY", "v"):
            found = dict(rows(connection, f"SELECT id, v FROM b FORCE INDEX ({index}) WHERE {'id' if index == 'PRIMARY' else 'v'} >= 0"))
            if found != self.expected:
                raise AssertionError(f"rows of prepared transactions by {index}: {found}, not {self.expected}")
        connection.close()


def events_of(connection):
    """Texts of all statements in the binary log."""
    found = []
    for log in rows(connection, "SHOW BINARY LOGS"):
        found += [event[5] for event in rows(connection, f"SHOW BINLOG EVENTS IN '{log[0]}'") if event[2] == "Query"]
    return found


def log_errors(server, start):
    """What the engine had to complain of since `start`, and where the log ends now."""
    with open(server.error_log, errors="replace") as log:
        log.seek(start)
        lines = log.readlines()
        return [line.strip() for line in lines if "Teak: " in line and ("[ERROR]" in line or "panic" in line)], log.tell()


class Test:
    """The rounds."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.random = random.Random(arguments.seed)
        self.server = Server(arguments.directory, arguments.plugin_dir)
        self.stops = Stops(f"{arguments.directory}.stops")
        self.cycles = [Cycle(case) for case in CASES
                       if (arguments.engine == "Teak" or not case.only_teak) and (not arguments.case or case.name in arguments.case)]
        self.log_at = 0
        self.half_done = self.killed_starts = 0
        self.bystanders = None
        self.targets = []

    def options(self, has_log):
        # Statements name latin1 as what tables have unless they are told otherwise.
        options = ["--teak-flush-log-at-trx-commit=1", f"--default-storage-engine={self.arguments.engine}", "--character-set-server=latin1"]
        return options + ["--log-bin=binlog", "--binlog-format=MIXED", "--server-id=1", "--sync-binlog=1"] if has_log else options

    def start(self, has_log, change=0):
        """Starts the server; with a `change` it is killed before it changes a file so many times."""
        self.stops.arm(change)
        self.stops.start(self.server, self.options(has_log))

    def restart(self, has_log):
        """After a kill. Some starts are killed as well: recovery begins anew. Whether one was."""
        start_was_killed = False
        if self.random.random() < 0.3:
            try:
                self.start(has_log, self.random.randint(1, START_CHANGES))
            except RuntimeError:
                start_was_killed = True
                self.killed_starts += 1
            self.server.kill()
        self.start(has_log)
        return start_was_killed

    def next_target(self):
        """Every step once, in an order of chance, and then again."""
        if not self.targets:
            self.targets = [(cycle, number) for cycle in self.cycles for number, _ in enumerate(cycle.case.steps)]
            self.random.shuffle(self.targets)
        return self.targets.pop()

    def round(self, number, has_log):
        """One kill; what was done, for who reads the output."""
        target, step = self.next_target()
        for cycle in self.cycles:
            cycle.forget_log()
        self.bystanders.prepare(number)
        killed = self.killed_at_a_change if self.random.random() < 0.5 else self.killed_at_a_moment
        when, cycles = killed(target, step)
        self.check(cycles, has_log, self.restart(has_log))
        return f"{target.case.name}: {target.case.steps[step].statement[:60]}, {when}"

    def killed_at_a_change(self, target, step):
        connection = self.server.connect(database=target.database, autocommit=True)
        cursor = connection.cursor()
        while target.done % len(target.case.steps) != step:
            target.run_step(cursor, target.done % len(target.case.steps))
            target.count()
        change = self.random.randint(1, target.changes[step] + 3)
        self.stops.arm(change)
        try:
            target.run_step(cursor, step)
            target.count()
        except (pymysql.err.MySQLError, ConnectionError, OSError) as error:
            if error.args and error.args[0] not in LOST:
                raise
        self.server.kill()
        return f"change {change} of {target.changes[step]}", [target]

    def killed_at_a_moment(self, target, step):
        others = [cycle for cycle in self.cycles if cycle is not target]
        runners = [Runner(self.server, target, step)]
        runners += [Runner(self.server, cycle) for cycle in self.random.sample(others, min(COMPANY, len(others)))]
        for runner in runners:
            runner.start()
        runners[0].target_begins.wait(60)
        # A little more than it takes: what comes after the last of it, at the server, is of interest too.
        delay = self.random.random() * 1.2 * target.seconds[step]
        time.sleep(delay)
        self.server.kill()
        for runner in runners:
            runner.join()
        for runner in runners:
            if runner.failure is not None:
                raise AssertionError(f"{runner.cycle.case.name}, step {runner.cycle.done % len(runner.cycle.case.steps)}: {runner.failure!r}")
        return f"{delay * 1000:.0f} ms of {target.seconds[step] * 1000:.0f}", [runner.cycle for runner in runners]

    def check(self, cycles, has_log, start_was_killed):
        connection = self.server.connect(autocommit=False)
        try:
            events = events_of(connection) if has_log else None
            for cycle in cycles:
                try:
                    self.check_cycle(connection, cycle, events, start_was_killed)
                except HalfDone as error:
                    if not cycle.case.moves_partitions and not isinstance(error, Rubbish):
                        raise
                    # Its reads hold the tables' definitions.
                    connection.rollback()
                    self.give_up(cycle, error)
            connection.rollback()
            self.bystanders.check(self.random)
            found = strangers(connection, self.server.data)
            if self.arguments.engine == "Teak":
                found += engine_strangers(connection, self.server.data)
            errors, self.log_at = log_errors(self.server, self.log_at)
            found += errors
            if found:
                raise AssertionError("\n".join(found))
            if has_log:
                rows(connection, "RESET MASTER")
        finally:
            connection.close()

    def check_cycle(self, connection, cycle, events, start_was_killed):
        half_done = None
        try:
            cycle.settle(connection, start_was_killed)
            if events is not None:
                cycle.check_log(events)
        except HalfDone as error:
            half_done = error
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (NO_TABLE, NO_LIST, NOT_IN_ENGINE):
                raise
            kind = Rubbish if error.args[0] == NO_LIST else HalfDone
            step = cycle.case.steps[cycle.done % len(cycle.case.steps)].statement
            raise kind(f"{cycle.case.name}: in or just after '{step}': {error}") from error
        # Whatever state there is, its indexes must agree with its rows.
        check_tables(connection, cycle.database)
        if half_done is None and cycle.case.has_partitions():
            left = [name for name in strangers(connection, self.server.data) if name.startswith(f"{cycle.database}/")]
            if self.arguments.engine == "Teak":
                left += tables_left(connection, cycle.database)
            half_done = Rubbish(f"{cycle.case.name}: {left}") if left else None
        if half_done is not None:
            raise half_done

    def give_up(self, cycle, error):
        """What the server made of its partitions is put away."""
        self.half_done += 1
        print(f"    left by the server: {str(error).splitlines()[0][:200]}")
        connection = self.server.connect(database=None, autocommit=True)
        try:
            rows(connection, f"DROP DATABASE {cycle.database}")
        except pymysql.err.MySQLError:
            # Files that it does not know are in the way.
            shutil.rmtree(os.path.join(self.server.data, cycle.database), ignore_errors=True)
        cycle.reset(connection)
        connection.close()

    def run(self):
        """(passed, failed)"""
        passed = 0
        rounds = self.arguments.rounds
        try:
            self.server.install()
            for half, has_log in ((range(rounds // 2), False), (range(rounds // 2, rounds), True)):
                self.start(has_log)
                connection = self.server.connect(autocommit=True)
                for cycle in self.cycles if half.start == 0 else ():
                    cycle.prepare(connection, self.stops)
                if has_log:
                    rows(connection, "RESET MASTER")
                connection.close()
                if half.start == 0:
                    self.bystanders = Bystanders(self.server)
                    if self.arguments.engine == "Teak" and not self.arguments.case:
                        unbuilt.check(self.server, lambda: self.start(has_log))
                        _, self.log_at = log_errors(self.server, self.log_at)
                for number in half:
                    print(f"round {number}: {self.round(number, has_log)}", flush=True)
                    passed += 1
                self.server.stop()
        except (AssertionError, RuntimeError, pymysql.err.MySQLError) as error:
            print(f"FAILED: {error}\n{self.server.log_end()}")
            return passed, 1
        finally:
            print(f"{self.killed_starts} starts were killed")
            if self.half_done:
                print(f"{self.half_done} times the server's own recovery left partitions neither old nor new")
            self.server.kill()
        return passed, 0


def main():
    options = parser(__doc__, rounds=20, engine="Teak")
    options.add_argument("--case", action="append", help="only this one (or these)")
    arguments = options.parse_args()
    arguments.seed = seed()
    passed, failed = Test(arguments).run()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
