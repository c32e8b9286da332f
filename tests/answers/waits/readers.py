#!/usr/bin/python3
"""All that the engine tells of itself is read in loops while sessions write in every way, tables are altered, and readers are killed: no row twice, nothing of
what has ended beside what runs, and nothing breaks."""

import random
import sys
import threading
import time

import pymysql

from kit.asking import error_of, rows
from kit.busy import LOST, OPTIONS, Task, Writers, check, fresh
from kit.options import parser, seed
from kit.server import Server

# What is told, and the columns that tell its rows apart.
TOLD = {
    "TEAK_TRX": "TRX_ID",
    "TEAK_LOCK_WAITS": "WAITING_TRX_ID",
    "TEAK_DEADLOCKS": "DEADLOCK_ID, TRX_ID",
    "TEAK_LOCKS": "TRX_ID, TABLE_SCHEMA, TABLE_NAME, TREE, LOCK_MODE, LOCK_TYPE, LOCK_KEY",
    "TEAK_INDEXES": "TABLE_SCHEMA, TABLE_NAME, TREE",
    "TEAK_TABLES": "TABLE_SCHEMA, TABLE_NAME, TREE",
    "TEAK_MEMORY": "PURPOSE",
    "TEAK_METRICS": "NAME, KIND, UP_TO",
    "TEAK_SNAPSHOTS": "CONNECTION_ID, SNAPSHOT_TIMESTAMP",
    "TEAK_FOREIGN": "ID",
    "TEAK_FOREIGN_COLS": "ID, POS",
}
OTHERS = ("show engine teak status", "show global status like 'teak%'", "show full processlist", "show table status from test",
          "select * from performance_schema.threads where name like '%teak%'", "select * from performance_schema.file_instances where event_name like '%teak%'")
DEFINITIONS = ("alter table t add key more (v, u)", "alter table t drop key more", "create table other like t", "alter table other rename to another", "drop table another",
               "insert into other select * from t", "optimize table t",
               "alter table t add column extra int default 5", "alter table t drop column extra", "analyze table t", "flush tables")
SERVER = (*OPTIONS, "--performance-schema=ON", "--performance-schema-max-stage-classes=200", "--performance-schema-consumer-events-stages-current=ON")


class Readers:
    """Sessions that read it all, again and again, although they are killed."""

    def __init__(self, server, count, source):
        self.server, self.random, self.stopping, self.latch = server, source, False, threading.Lock()
        self.ids, self.asked, self.struck, self.reads, self.kills = {}, {}, [0] * count, 0, 0
        self.tasks = [Task(self.read, n) for n in range(count)] + [Task(self.kill)]

    def read(self, n):
        session, begun = None, (0, 0)
        while not self.stopping:
            try:
                begun = (begun[1], self.struck[n])
                if session is None:
                    session = self.server.connect(autocommit=True)
                    self.ids[n] = session.thread_id()
                self.look(session, n)
                self.reads += 1
            except pymysql.err.MySQLError as error:
                # The server may tell of a kill as of what it could not do then: discover a table, open a directory.
                # One may hit the statement behind that at which it was aimed; an odd number is one on its way.
                if self.struck[n] == begun[0] and self.struck[n] % 2 == 0:
                    raise AssertionError(f"{self.asked.get(n)}: {error!r}") from error
                if error.args[0] in LOST:
                    session = None

    def look(self, session, n):
        with self.latch:
            name = self.asked[n] = self.random.choice([*TOLD, *OTHERS])
        if name in OTHERS:
            rows(session, name)
            return
        twice = rows(session, f"select {TOLD[name]}, count(*) from information_schema.{name} group by {TOLD[name]} having count(*) > 1 limit 3")
        assert not twice, f"{name} has more than once {twice}"

    def kill(self):
        while not self.stopping:
            time.sleep(0.02)
            with self.latch:
                n, victim = self.random.choice(list(self.ids.items()) or [(0, 0)])
                how = self.random.choice(("query", "query", "query", "connection"))
            self.struck[n] += 1
            self.kills += error_of(self.server.query, f"kill {how} {victim}") is None
            self.struck[n] += 1

    def stop(self):
        self.stopping = True
        for task in self.tasks:
            task.end()


def nothing_is_left(server):
    """Of transactions and locks, when all sessions have ended."""
    for _ in range(100):
        left = server.query("select count(*) from information_schema.teak_trx") + server.query("select count(*) from information_schema.teak_locks")
        if left == ((0,), (0,)):
            return
        time.sleep(0.1)
    raise AssertionError(f"{left} transactions and locks of nobody, {server.query('select * from information_schema.teak_trx')}")


def main():
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=15)
    arguments = options.parse_args()
    source = random.Random(seed())
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start(SERVER)
    try:
        fresh(server, 3000, ", constraint f foreign key (parent) references parent (id) on delete cascade on update cascade, key v (v), key u (u))")
        # A writer once found its body empty (1064, "Query was empty"): perhaps a reader was killed that opened it.
        server.query("drop trigger t_insert")
        writers, readers = Writers(server, 6, source.randrange(1000)), Readers(server, 5, source)
        try:
            definitions, end = 0, time.monotonic() + arguments.seconds
            while time.monotonic() < end and not any(task.failure for task in (*writers.tasks, *readers.tasks)):
                # On a slow server OPTIMIZE TABLE finds no moment between the checkpoints that such writers need.
                definitions += error_of(server.query, f"set statement max_statement_time = 10 for {source.choice(DEFINITIONS)}") is None
        finally:
            readers.stopping = writers.stopping = True
        readers.stop()
        transactions = writers.stop()
        check(server, "after all of it")
        nothing_is_left(server)
        print(f"{transactions} transactions, {definitions} definitions, {readers.reads} reads, {readers.kills} kills\n1 passed, 0 failed")
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
