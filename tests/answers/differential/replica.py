"""A replica that follows Teak's side of the server on which histories are played: what it has must be what the server has. InnoDB's side is left out, as its own
replicas stop or differ with indexes over virtual columns and minimal row images."""

import os
import re

import pymysql

from kit.asking import nothing_prepared, wait_until
from kit.replicas import REPLICA_OPTIONS, follow, let_replicate
from kit.server import Server

from known import STOPS, Case, reason, ruled
from pair import DATABASES, Conflict, Difference, Pair, compare_rows, programs

TEAK = DATABASES["Teak"]


class Alone(Pair):
    """Teak's side of a pair: what its replica makes of several sessions' statements is all that is compared. Beside InnoDB a session rolls back where either side
    gives up a lock, so nothing comes of one that Teak does not ask for."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        del self.sides[0]

    def run(self, session, statement):
        """One statement. Raises Difference if the server ends, and Conflict where IGNORE has passed over what is locked outside of a
        transaction: no replica knows of it."""
        self.at += 1
        outcome = self.run_on(self.sides[0], session, statement)
        if outcome.conflicts():
            self.give_up(session, Case(statement, outcome, outcome, self))

    def compare(self):
        """Rows are compared with the replica's."""


class Stop:
    """What a replica has stopped at, and what is in the primary's tables."""

    def __init__(self, error, primary):
        self.error = error
        self.texts = {name: primary.query(f"show create table {name}", database=TEAK)[0][1] for (name, *_) in primary.query("show tables", database=TEAK)}
        self.programs = programs(primary)
        self.table = re.search(r"on table d_t\.(t\d+)", error)

    def is_of(self, *numbers):
        """Whether it is one of these errors."""
        return any(f"Error_code: {number}" in self.error for number in numbers)

    def comes_back(self):
        """Whether a trigger or a function changes a table above which rules change the one whose row could not be changed."""
        return any(self.table[1] in ruled(text, self.texts) for text in self.programs) if self.table else False


class Replica:
    """The second server."""

    def __init__(self, primary, directory, plugin_dir, port):
        self.primary, self.port, self.works = primary, port, False
        self.server = Server(os.path.join(directory, "replica"), plugin_dir)

    def begin(self):
        """Follows; if it has stopped or differs, from the primary's present end on, with nothing of what was before."""
        # Sessions of the history before may be about to end yet.
        wait_until(lambda: nothing_prepared(self.primary), "the end of prepared transactions")
        if self.works and self.reached()[1]:
            # What a killed primary has forgotten, as it had changed nothing: it writes no XA ROLLBACK for that.
            wait_until(lambda: nothing_prepared(self.server), "the end of the replica's prepared transactions")
            return
        self.primary.query(f"drop database if exists {TEAK}", database=None)
        if not self.server.is_running():
            let_replicate(self.primary.connect(database=None, autocommit=True))
            self.server.install()
            self.server.start([*REPLICA_OPTIONS, f"--replicate-ignore-db={DATABASES['InnoDB']}", "--teak-snapshot-isolation=INNODB",
                               "--innodb-lock-wait-timeout=10"])
            follow(self.server.connect(database=None, autocommit=True), self.port)
        position = self.primary.query("select @@gtid_binlog_pos", database=None)[0][0]
        self.server.query("stop slave", database=None)
        wait_until(lambda: nothing_prepared(self.server), "the end of the replica's prepared transactions")
        for statement in (f"drop database if exists {TEAK}", f"set global gtid_slave_pos = '{position}'", "start slave"):
            self.server.query(statement, database=None)
        self.works = True

    def reached(self):
        """The primary's position, and whether the replica comes to it before it stops."""
        position = self.primary.query("select @@gtid_binlog_pos", database=None)[0][0]
        for _ in range(300):
            if self.server.query(f"select master_gtid_wait('{position}', 0.2)", database=None)[0][0] == 0:
                return position, True
            if self.last_error():
                break
        return position, False

    def compare(self):
        """Waits until the replica has all, and compares. Raises Difference, or Conflict if it has stopped for a reason that is known."""
        self.works = False
        position, reached = self.reached()
        if not reached:
            error = self.last_error()
            known = reason(STOPS, Stop(error, self.primary))
            if known:
                raise Conflict(known)
            number = re.search(r"Error_code: (\d+)", error)
            raise Difference(f"replica stops {number and number[1]}", f"at {position}: {error}")
        for (name, *_) in self.primary.query("show tables", database=TEAK):
            try:
                compare_rows(name, [("the primary", self.primary, TEAK), ("the replica", self.server, TEAK)], "replica rows")
            except Difference as difference:
                if self.is_zeroed(name) and "'0000-00-00 00:00:00'" in str(difference):
                    raise Conflict("a TIMESTAMP that an INSERT leaves out is zero on a replica of minimal images") from None
                raise
            found = self.server.query(f"check table {name} extended", database=TEAK)
            if any("orrupt" in row[3] for row in found):
                raise Difference("replica check", f"check table {name} extended on the replica: {found}")
        self.works = True

    def is_zeroed(self, name):
        """Whether an INSERT may leave out a TIMESTAMP NOT NULL of a table with a trigger, which minimal images lack, with any engine."""
        shown = self.primary.query(f"show create table {name}", database=TEAK)[0][1]
        return re.search(r" timestamp(\(\d\))? NOT NULL", shown) and any(text.startswith(f"{name} ") for text in programs(self.primary))

    def last_error(self):
        """What the replica stopped at."""
        connection = self.server.connect(database=None)
        with connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("show slave status")
            return cursor.fetchone()["Last_SQL_Error"]
