#!/usr/bin/python3
"""ALTER TABLE ... ADD INDEX, ALGORITHM=NOCOPY, LOCK=NONE, while others write.

usage: online.py DIRECTORY PLUGIN_DIR [NAME...]

Whatever happens meanwhile, an index that is there has exactly the entries of the rows: CHECK TABLE and scans by it say so.
"""

import os
import random
import sys
import tempfile
import threading
import time

import pymysql

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../kit"))
from asking import error_of, roll_back_prepared, rows, wait_until  # noqa: E402
from server import Server, carry_out  # noqa: E402

DUPLICATE, INTERRUPTED, TIMEOUT, CHANGED = 1062, 1317, 1205, 1412
# What an ALTER beside writers says of itself.
BUILDING = ("Building indexes", "Applying changes to indexes", "Rebuilding the table", "Applying changes to the table")
# What writers may meet, and then roll back: conflicts, duplicates of an index that is there by now, no parent, and a
# deadlock with who alters the table.
CONFLICTS = (1020, 1205, 1213, DUPLICATE, 1452, 1451)
LOST = (0, 2006, 2013, 2014)
PARENTS = 200
# Each is given to one row, or to rows of one statement behind three more digits.
NUMBERS = iter(range(10_000_000, 1 << 50))
SEED = int(os.environ.get("TEAK_SEED", "1"))


FAMILY = ", constraint f foreign key (parent) references parent (id) on delete cascade on update cascade)"
PARTS = ") partition by hash (id) partitions 3"


def fresh(server, count, rest=FAMILY):
    """A table `t` with a parent, a trigger, columns of many kinds, and so many rows; or with partitions and no parent."""
    server.query("drop database if exists test", database=None)
    server.query("create database test", database=None)
    for statement in (
        "create table parent (id int primary key, name varchar(20))",
        f"insert into parent select seq, concat('parent ', seq) from seq_1_to_{PARENTS}",
        "create table log (id bigint auto_increment primary key, what varchar(10), row_id bigint)",
        "create table t (id bigint auto_increment primary key, v int not null, u bigint not null, parent int, text varchar(60) collate utf8mb4_unicode_ci,"
        " g int as (length(b)) virtual, b text" + rest,
        "create trigger t_insert after insert on t for each row insert into log (what, row_id) values ('insert', new.id)",
        f"insert into t (v, u, parent, text, b) select seq * 7919 % 100003, seq, 1 + seq % {PARENTS}, concat('Text ', seq % 997), repeat('b', seq % 50)"
        f" from seq_1_to_{count}",
    ):
        server.query(statement)


def check(server, what, table="t"):
    """The table is sound, and each of its indexes shows what the rows are."""
    found = server.query(f"check table {table} extended")
    assert found[-1][3] == "OK", f"{what}: {found}"
    columns = "count(*), sum(id), sum(v), sum(cast(u as decimal(40))), sum(crc32(text))"
    expected = server.query(f"select {columns} from {table} use index ()")
    for (name,) in server.query(f"select distinct index_name from information_schema.statistics where table_schema = 'test' and table_name = '{table}'"):
        if name != "PRIMARY":
            by_index = server.query(f"select {columns} from {table} force index (`{name}`) where {first_column(server, table, name)} > -1"
                                    f" or {first_column(server, table, name)} is null or {first_column(server, table, name)} <= -1")
            assert by_index == expected, f"{what}: {name} has {by_index}, the rows {expected}"


def first_column(server, table, index):
    """Of an index, its first column."""
    return server.query("select column_name from information_schema.statistics where table_schema = 'test' and "
                        f"table_name = '{table}' and index_name = '{index}' and seq_in_index = 1")[0][0]


def indexes(server, table="t"):
    """Names of the indexes that the table has."""
    return {row[0] for row in server.query("select distinct index_name from information_schema.statistics where table_schema = 'test' and "
                                           f"table_name = '{table}'")}


class Task(threading.Thread):
    """Runs something, and keeps how it ended."""

    def __init__(self, run, *arguments):
        super().__init__()
        self.run_it, self.arguments, self.failure = run, arguments, None
        self.start()

    def run(self):
        try:
            self.run_it(*self.arguments)
        except Exception as error:  # whatever it is, the test has to know
            self.failure = error

    def end(self):
        """Waits; raises what it failed with."""
        self.join()
        if self.failure:
            raise self.failure


class Writers:
    """Sessions that write in every way until they are stopped, or the server is gone."""

    def __init__(self, server, count, seed):
        self.server, self.stopping, self.done, self.statements = server, False, [0] * count, [""] * count
        self.tasks = [Task(self.write, n, random.Random(seed * 100 + n)) for n in range(count)]

    def write(self, n, source):
        try:
            connection = self.server.connect()
            rows(connection, f"set session innodb_lock_wait_timeout = 2, lock_wait_timeout = 2, foreign_key_checks = {source.randrange(4) > 0:d}")
            with tempfile.TemporaryDirectory() as directory:
                while not self.stopping:
                    try:
                        self.transaction(connection, source, n, directory)
                    except pymysql.err.MySQLError as error:
                        if error.args[0] not in CONFLICTS + LOST:
                            raise AssertionError(f"{self.statements[n]}: {error}, {rows(connection, 'show warnings')}") from error
                        connection.rollback()
                    self.done[n] += 1
            connection.close()
        except (pymysql.err.MySQLError, ConnectionError, OSError) as error:
            if error.args and error.args[0] not in LOST:
                raise

    def transaction(self, connection, source, n, directory):
        if source.random() < 0.1:
            xid = f"'{n} {self.done[n]}'"
            rows(connection, f"xa start {xid}")
            try:
                self.change(connection, source, n, directory)
                rows(connection, f"xa end {xid}")
                rows(connection, f"xa prepare {xid}")
                rows(connection, f"xa {source.choice(['commit', 'commit', 'rollback'])} {xid}")
            except pymysql.err.MySQLError as error:
                # A deadlock may have ended it already.
                for statement in (f"xa end {xid}", f"xa rollback {xid}"):
                    error_of(rows, connection, statement)
                if error.args[0] not in (*CONFLICTS, 1402, 1399):
                    raise
            return
        for _ in range(source.randrange(1, 5)):
            if source.random() < 0.2:
                rows(connection, "savepoint s")
                self.change(connection, source, n, directory)
                rows(connection, "rollback to s")
            self.change(connection, source, n, directory)
        if source.random() < 0.2:
            connection.rollback()
        else:
            connection.commit()

    def change(self, connection, source, n, directory):
        """One statement."""
        some = source.randrange(1, 3000)
        number = next(NUMBERS)
        few = source.randrange(1, 30)
        text = f"'{source.choice(['Text', 'text', 'other'])} {source.randrange(997)}'"
        parent = source.randrange(1, PARENTS + 1)
        statement = source.choice((
            f"insert into t (v, u, parent, text) values ({some}, {number}, {parent}, {text})",
            f"insert into t (v, u, text) select {some} + seq, {number} * 1000 + seq, {text} from seq_1_to_{few * 10}",
            f"update t set v = {some} where id = {some}",
            f"update t set v = v + 1, text = {text} where id between {some} and {some + few}",
            f"update t set u = {number} where id = {some}",
            f"update t set b = repeat('x', {few * 100}) where id between {some} and {some + few}",
            f"update t set id = id + 100000000 + {number % 1000} where id = {some}",
            f"delete from t where id between {some} and {some + few // 4}",
            f"replace into t (id, v, u, parent, text) values ({some}, {some}, {number}, {parent}, {text})",
            f"insert into t (id, v, u, text) values ({some}, {some}, {number}, {text}) on duplicate key update v = v + 7, u = values(u)",
            f"insert ignore into t (id, v, u) values ({some}, 1, {number}), ({some + 1}, 2, {number} + (1 << 60))",
            f"update parent set id = id + 1000 where id = {parent}",
            f"update parent set id = id - 1000 where id = {parent} + 1000",
            f"delete from parent where id = {parent} + 1000" if source.random() < 0.1 else f"update t set parent = null where id = {some}",
            "load data",
        ))
        if statement == "load data":
            path = os.path.join(directory, "rows.txt")
            with open(path, "w", encoding="ascii") as file:
                for i in range(few * 20):
                    file.write(f"{some + i}\t{number * 1000 + i}\tloaded {i}\n")
            os.chmod(directory, 0o755)
            statement = f"load data infile '{path}' into table t (v, u, text)"
        self.statements[n] = statement
        rows(connection, statement)

    def stop(self):
        """Ends them; how many transactions they made."""
        self.stopping = True
        for task in self.tasks:
            task.end()
        return sum(self.done)


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


OPTIONS = ["--teak-cache-size=64M", "--teak-checkpoint-log-size=16M", "--teak-log-segment-size=4M", "--teak-flush-log-at-trx-commit=2", "--secure-file-priv=",
           "--teak-sort-buffer-size=1M", "--log-bin", "--binlog-format=ROW", "--server-id=1"]
TESTS = [locks_and_refusals, duplicates, old_snapshots_and_xa, checked_at_once, of_parts, all_kinds_of_writers, killed_statements, killed_servers]


def main(tests):
    """Runs those that the command line names, or all."""
    directory, plugin_dir, *names = sys.argv[1:]
    print(f"TEAK_SEED={SEED}")
    server = Server(directory, plugin_dir)
    carry_out(tests, names, server, OPTIONS)


if __name__ == "__main__":
    main(TESTS)
