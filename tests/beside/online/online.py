#!/usr/bin/python3
"""ALTER TABLE ... ADD INDEX, ALGORITHM=NOCOPY, LOCK=NONE, while others write.

Whatever happens meanwhile, an index that is there has exactly the entries of the rows: CHECK TABLE and scans by it say so.
"""

import random
import sys
import time

from kit.asking import error_of, roll_back_prepared, rows, wait_until
from kit.busy import OPTIONS, PARTS, Task, Writers, check, fresh
from kit.cases import on_server
from kit.options import parser, seed
from kit.server import Server

DUPLICATE, INTERRUPTED, TIMEOUT, CHANGED = 1062, 1317, 1205, 1412
# What an ALTER beside writers says of itself.
BUILDING = ("Building indexes", "Applying changes to indexes", "Rebuilding the table", "Applying changes to the table")
SEED = seed()


def indexes(server, table="t"):
    """Names of the indexes that the table has."""
    return {row[0] for row in server.query("select distinct index_name from information_schema.statistics where table_schema = 'test' and "
                                           f"table_name = '{table}'")}


ADDITIONS = ("add index v (v), add index g (g, v)", "add unique u (u)", "add index text (text, v desc), add index bt (b(10))", "add unique u (u), add unique vi (v, id)",
             "add index p2 (text, parent)")


def all_kinds_of_writers(server):
    """Indexes come and go while everything is written."""
    fresh(server, 30_000)
    writers = Writers(server, 3, SEED)
    added = 0
    try:
        for n in range(15):
            addition = ADDITIONS[n % len(ADDITIONS)]
            server.query(f"alter table t {addition}, algorithm=nocopy, lock=none")
            added += 1
            for index in sorted(indexes(server) - {"PRIMARY", "f"}):
                server.query(f"alter table t drop index {index}, lock=none")
            assert not any(task.failure for task in writers.tasks), [task.failure for task in writers.tasks]
    finally:
        done = writers.stop()
    server.query("alter table t add unique u (u), add index v (v), add index g (g, v), add index text (text), lock=none")
    check(server, "the last")
    print(f"    {added} additions beside {done} transactions")


def checked_at_once(server):
    """After each addition the writers stop, so that the index is looked at as the addition has left it."""
    fresh(server, 20_000)
    for n, addition in enumerate(ADDITIONS):
        writers = Writers(server, 3, SEED + 50 + n)
        try:
            server.query(f"alter table t {addition}, algorithm=nocopy, lock=none")
        finally:
            writers.stop()
        check(server, addition)
        for index in sorted(indexes(server) - {"PRIMARY", "f"}):
            server.query(f"alter table t drop index {index}, lock=none")


def of_parts(server):
    """All partitions have the indexes, or none has them."""
    fresh(server, 20_000, PARTS)
    done = 0
    additions = {"add index v (v), add unique ui (u, id)": "v", "add index g (g, v)": "g", "add index text (text, v desc), add index bt (b(10))": "bt"}
    for n, (addition, goes) in enumerate(additions.items()):
        writers = Writers(server, 3, SEED + 70 + n)
        try:
            server.query(f"alter table t {addition}, algorithm=nocopy, lock=none")
        finally:
            done += writers.stop()
        check(server, addition)
        server.query(f"alter table t drop index {goes}, algorithm=nocopy, lock=none")
        check(server, f"without {goes}")
    assert indexes(server) == {"PRIMARY", "ui", "text"}, indexes(server)
    print(f"    beside {done} transactions")


def state_of(server, text):
    """What the session does that runs the statement that begins with `text`."""
    found = server.query(f"select state, id from information_schema.processlist where info like '{text}%' and id <> connection_id()")
    return found[0] if found else ("", 0)


class Addition:
    """An ALTER in a session of its own, met at a moment of its course."""

    def __init__(self, server, what, algorithm="nocopy"):
        self.server, self.outcome = server, None
        self.statement = f"alter table t {what}, algorithm={algorithm}, lock=none"
        self.connection = server.connect(autocommit=True)
        self.id = rows(self.connection, "select connection_id()")[0][0]
        self.task = Task(self.run)

    def run(self):
        self.outcome = error_of(rows, self.connection, self.statement)

    def state(self):
        found = self.server.query(f"select state from information_schema.processlist where id = {self.id}")
        return found[0][0] if found else ""

    def wait_for(self, *states):
        wait_until(lambda: self.state() in states or not self.task.is_alive(), f"{self.statement} to be in {states}")
        assert self.task.is_alive(), f"{self.statement} has ended: {self.outcome}"

    def builds(self):
        """It has begun to follow writers."""
        self.wait_for(*BUILDING, "Waiting for table metadata lock")

    def waits(self):
        """It waits for transactions to end."""
        self.wait_for("Waiting for table metadata lock")

    def end(self):
        self.task.end()
        self.connection.close()
        return self.outcome


def duplicates(server):
    """What counts is whether there are two rows with one key in the end."""
    fresh(server, 100_000)
    writer = server.connect()
    # They come, and stay.
    addition = Addition(server, "add unique u (u)")
    addition.builds()
    rows(writer, "insert into t (v, u) values (1, 4711)")
    addition.waits()
    writer.commit()
    outcome = addition.end()
    assert outcome == (DUPLICATE, "Duplicate entry '4711' for key 'u'"), outcome
    assert "u" not in indexes(server)
    server.query("delete from t where u = 4711 and v = 1")
    check(server, "after a duplicate")
    # They come with one commit and go with another, while the addition is under way.
    blocker = server.connect()
    addition = Addition(server, "add unique u (u), add unique tu (text, u)")
    addition.builds()
    rows(blocker, "update t set v = 5 where id = 99999")
    rows(writer, "insert into t (v, u, text) select 1, seq, 'Text 1' from seq_1_to_50")
    writer.commit()
    # Under the eyes of one more transaction, which keeps the addition from its end.
    rows(writer, "update t set u = 5 - u where id in (2, 3)")
    time.sleep(0.3)
    rows(writer, "delete from t where id > 100000")
    addition.waits()
    writer.commit()
    blocker.commit()
    outcome = addition.end()
    assert outcome is None, outcome
    check(server, "after a duplicate that has gone")
    assert server.query("select id from t force index (u) where u = 2") == ((3,),)
    assert error_of(server.query, "insert into t (v, u) values (1, 20)")[0] == DUPLICATE
    server.query("alter table t drop index u, drop index tu")
    # They were there before.
    server.query("insert into t (v, u, text) values (1, 77, 'Text 1')")
    outcome = error_of(server.query, "alter table t add unique u (u), lock=none")
    assert outcome == (DUPLICATE, "Duplicate entry '77' for key 'u'"), outcome
    writer.close()
    blocker.close()


def old_snapshots_and_xa(server):
    """A snapshot from before the end does not see the index, a prepared transaction is waited for."""
    fresh(server, 100_000)
    old, writer = server.connect(), server.connect()
    addition = Addition(server, "add index v (v)")
    addition.builds()
    rows(old, "start transaction with consistent snapshot")
    rows(writer, "xa start 'x'")
    rows(writer, "update t set v = v + 1000000 where id <= 100")
    rows(writer, "xa end 'x'")
    rows(writer, "xa prepare 'x'")
    addition.waits()
    assert error_of(server.query, "set statement lock_wait_timeout = 1 for insert into t (v, u) values (1, 2)")[0] == TIMEOUT
    rows(writer, "xa commit 'x'")
    assert addition.end() is None
    assert rows(old, "select count(*) from t use index () where v >= 1000000") == ((0,),)
    assert error_of(rows, old, "select count(*) from t force index (v) where v >= 1000000")[0] == CHANGED
    old.rollback()
    assert rows(old, "select count(*) from t force index (v) where v >= 1000000") == ((100,),)
    check(server, "after XA")
    old.close()
    writer.close()


def kill(server, addition):
    """KILL QUERY of an addition; whether it was interrupted. If so there is no index, and if not there is none any more."""
    error_of(server.query, f"kill query {addition.id}")
    outcome = addition.end()
    assert outcome is None or outcome[0] == INTERRUPTED, outcome
    if outcome:
        assert indexes(server) == {"PRIMARY", "f"}, indexes(server)
    else:
        server.query("alter table t drop index u, drop index v")
    return outcome is not None


def killed_statements(server):
    """KILL at any moment: the index is not there, numbers do not come twice, and the next attempt has all it needs."""
    fresh(server, 60_000)
    writers = Writers(server, 2, SEED + 1)
    source = random.Random(SEED)
    what = "add unique u (u), add index v (v)"
    interrupted = 0
    try:
        for _ in range(9):
            addition = Addition(server, what)
            if source.random() < 0.8:
                wait_until(lambda: addition.state() in BUILDING or not addition.task.is_alive(), "the build")
            time.sleep(source.random() * 0.5)
            interrupted += kill(server, addition)
        # However fast the machine is: a transaction that has read the table, if it came in time, holds these.
        held = 0
        while held < 3:
            addition, holder = Addition(server, what), server.connect()
            wait_until(lambda: addition.state() in BUILDING or not addition.task.is_alive(), "the build")
            rows(holder, "select id from t limit 1")
            wait_until(lambda: addition.state() == "Waiting for table metadata lock" or not addition.task.is_alive(), "the wait")
            holds = addition.task.is_alive()
            if not holds:
                holder.rollback()
            assert kill(server, addition) == holds
            held += holds
            holder.close()
        server.query("alter table t add unique u (u), add index v (v), lock=none")
    finally:
        writers.stop()
    check(server, "after kills")
    print(f"    {interrupted} of 9 were killed, and {held} that waited")


def killed_servers(server):
    """SIGKILL at any moment: the index is there, and whole, or it is not."""
    source = random.Random(SEED + 2)
    there = 0
    for n in range(5):
        fresh(server, 30_000)
        writers = Writers(server, 2, SEED + 10 + n)
        addition = Addition(server, "add unique u (u), add index g (g)")
        if source.random() < 0.8:
            wait_until(lambda: addition.state() == "Building indexes" or not addition.task.is_alive(), "the build")
        time.sleep(source.random() * source.choice([0.05, 0.2, 0.6]))
        server.kill()
        addition.task.end()
        writers.stop()
        server.start(OPTIONS)
        roll_back_prepared(server)
        found = indexes(server) - {"PRIMARY", "f"}
        assert found in (set(), {"u", "g"}), found
        there += bool(found)
        if found:
            assert error_of(server.query, "insert into t (v, u) select 1, u from t limit 1")[0] == DUPLICATE
        else:
            server.query("alter table t add unique u (u), add index g (g), lock=none")
        check(server, f"kill {n}")
    print(f"    the index was there after {there} of 5 kills")


def locks_and_refusals(server):
    """Statements that ask for less, and those that cannot be had."""
    fresh(server, 200)
    server.query("alter table t add index v (v), algorithm=inplace, lock=shared")
    server.query("alter table t add index v2 (v), algorithm=inplace, lock=exclusive")
    server.query("create index v3 on t (v desc) algorithm=nocopy lock=none")
    connection = server.connect(autocommit=True)
    rows(connection, "lock tables t write, log write, parent write")
    rows(connection, "alter table t add unique v4 (v, id), lock=none")
    rows(connection, "insert into t (v, u) values (1, 2)")
    rows(connection, "unlock tables")
    outcome = error_of(server.query, "alter table t add index v5 (v), add constraint f2 foreign key (v) references parent (id), lock=none")
    assert outcome[0] == 1846, outcome
    outcome = error_of(server.query, "alter table t add index v5 (v), algorithm=instant")
    assert outcome == (1846, "ALGORITHM=INSTANT is not supported. Reason: ADD INDEX. Try ALGORITHM=NOCOPY"), outcome
    connection.close()
    check(server, "the small ones")


TESTS = [locks_and_refusals, duplicates, old_snapshots_and_xa, checked_at_once, of_parts, all_kinds_of_writers, killed_statements, killed_servers]


def main(tests):
    """Runs those that the command line names, or all."""
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(tests, arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main(TESTS))
