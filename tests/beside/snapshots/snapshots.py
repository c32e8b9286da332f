#!/usr/bin/python3
"""Old snapshots on a server with a small cache.

Writers change tables in a way that can be computed again: the n-th transaction of writer w changes what `Writer.state` says and stores n. So
whatever a snapshot or a dump shows can be compared row by row with what was there at one moment.
"""

import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.asking import error_of, rows, wait_until
from kit.cases import on_server
from kit.options import parser
from kit.server import Server

SNAPSHOT_TOO_OLD = 1296
LOCK_WAIT_TIMEOUT = 1205
INTERRUPTED = 1317
ROWS = 400


class Writer(threading.Thread):
    """Transactions on the rows of one writer, until told to stop."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number, self.stopping, self.failure, self.done = server, number, False, None, 0

    def run(self):
        try:
            connection = self.server.connect()
            with connection.cursor() as cursor:
                while not self.stopping:
                    self.done += 1
                    for statement, values in self.changes(self.done):
                        cursor.execute(statement, values)
                    connection.commit()
            connection.close()
        except Exception as error:  # whatever it is, the test has to know
            self.failure = error

    def stop(self):
        """Ends the transactions; returns how many there were."""
        self.stopping = True
        self.join()
        if self.failure:
            raise self.failure
        return self.done

    def operations(self, n):
        """What the n-th transaction does: (row, new value or None)."""
        chance = random.Random(n * 1000 + self.number)
        for _ in range(10):
            row = chance.randrange(ROWS) + (n // 50 * 40 if chance.random() < 0.5 else 0)
            yield row, None if chance.random() < 0.3 else f"{n}-{self.number}-" + "x" * chance.randrange(600)

    def changes(self, n):
        for row, value in self.operations(n):
            if value is None:
                yield "delete from t where w = %s and id = %s", (self.number, row)
            else:
                yield "replace into t values (%s, %s, %s)", (self.number, row, value)
        yield "update counts set n = %s where w = %s", (n, self.number)

    def state(self, n):
        """The rows after n transactions."""
        rows = {}
        for i in range(1, n + 1):
            for row, value in self.operations(i):
                if value is None:
                    rows.pop(row, None)
                else:
                    rows[row] = value
        return rows


def load(server, count=4):
    """Starts writers on fresh tables."""
    server.query("drop table if exists t, counts")
    server.query("create table t (w int, id int, value text, primary key (w, id), key (value(20))) engine=Teak")
    server.query("create table counts (w int primary key, n int) engine=Teak")
    server.query("insert into counts values " + ",".join(f"({w},0)" for w in range(count)))
    writers = [Writer(server, w) for w in range(count)]
    for writer in writers:
        writer.start()
    return writers


def read(connection):
    """The counts, and the rows by writer; through the primary key and through the index."""
    with connection.cursor() as cursor:
        cursor.execute("select w, n from counts")
        counts = dict(cursor.fetchall())
        cursor.execute("select w, id, value from t")
        rows = cursor.fetchall()
        cursor.execute("select count(*), sum(id) from t force index (value) where value >= ''")
        indexed = cursor.fetchone()
    assert indexed[0] == len(rows) and (indexed[1] or 0) == sum(row[1] for row in rows), (indexed, len(rows))
    return counts, rows


def check(writers, counts, rows):
    """The rows are those of the moment that the counts name."""
    for writer in writers:
        found = {row: value for w, row, value in rows if w == writer.number}
        expected = writer.state(counts[writer.number])
        different = [row for row in found.keys() | expected.keys() if found.get(row) != expected.get(row)]
        assert not different, f"writer {writer.number} after {counts[writer.number]}: rows {sorted(different)[:10]}"


def status(server, name):
    return int(server.query(f"show global status like 'teak_{name}'")[0][1])


def open_snapshot(server):
    connection = server.connect()
    connection.query("start transaction with consistent snapshot")
    return connection


def exact(server):
    """Snapshots of all ages read exactly under load, through splits, evictions, checkpoints and spills."""
    writers = load(server)
    snapshots = []
    for _ in range(5):
        wait_until(lambda: sum(w.done for w in writers) > 300 * (len(snapshots) + 1) or any(w.failure for w in writers), "load")
        connection = open_snapshot(server)
        snapshots.append((connection, read(connection)))
        server.query("set global teak_checkpoint_now = on")
        for connection, seen in snapshots:
            assert read(connection) == seen
    for writer in writers:
        writer.stop()
    for connection, seen in snapshots:
        assert read(connection) == seen
        check(writers, *seen)
        connection.close()


def dump(server):
    """mariadb-dump --single-transaction under load is the state of one moment."""
    writers = load(server)
    wait_until(lambda: all(w.done > 200 for w in writers), "load")
    command = ["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "--user=root", "--single-transaction", "test"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    wait_until(lambda: all(w.done > 400 for w in writers), "load")
    for writer in writers:
        writer.stop()
    server.query("create or replace database copy")
    subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "--user=root", "copy"], input=text, check=True)
    connection = server.connect(database="copy")
    check(writers, *read(connection))
    connection.close()
    server.query("drop database copy")


def hot_row(server):
    """One row changed over and over under an old snapshot keeps one old version."""
    server.query("create or replace table hot (id int primary key, n int) engine=Teak")
    server.query("insert into hot values (1, 0)")
    old = open_snapshot(server)
    connection = server.connect(autocommit=True)
    with connection.cursor() as cursor:
        for _ in range(3000):
            cursor.execute("update hot set n = n + 1 where id = 1")
    connection.close()
    server.query("set global teak_checkpoint_now = on")
    held = server.query(f"select versions, memory_bytes + spilled_bytes from information_schema.teak_snapshots where connection_id = {old.thread_id()}")
    # The engine's own rows (the directory of the checkpoint) count as well.
    assert held[0][0] < 100 and held[0][1] < 20000, held
    with old.cursor() as cursor:
        cursor.execute("select n from hot")
        assert cursor.fetchone() == (0,)
    old.close()


def queue(server):
    """What was deleted is not in the way of new readers."""
    count = 100_000
    server.query("create or replace table queue (id int primary key auto_increment, payload varchar(100)) engine=Teak")
    server.query(f"insert into queue (payload) select repeat('p', 90) from seq_1_to_{count}")
    old = open_snapshot(server)
    server.query("set global teak_checkpoint_now = on")
    for low in range(0, count - 100, 1000):
        server.query(f"delete from queue where id > {low} and id <= {min(low + 1000, count - 100)}")
    connection = server.connect(autocommit=True)
    with connection.cursor() as cursor:
        for query, first in [("order by id limit 1", count - 99), ("order by id desc limit 1", count),
                             (f"where id > {count // 2} order by id limit 1", count - 99)]:
            times = []
            for _ in range(20):
                began = time.monotonic()
                cursor.execute(f"select id from queue {query}")
                assert cursor.fetchone() == (first,)
                times.append(time.monotonic() - began)
            print(f"  {query}: {sorted(times)[10] * 1000:.2f} ms (first {times[0] * 1000:.2f} ms)")
    connection.close()
    with old.cursor() as cursor:
        cursor.execute("select count(*), min(id), max(id) from queue")
        assert cursor.fetchone() == (count, 1, count)
    old.close()
    wait_until(lambda: status(server, "history_bytes") < 1 << 20, "history to go with its snapshot")


def change_all(server):
    """Old versions go to history when leaves are consolidated, at the latest by a checkpoint."""
    server.query(f"update filler set payload = '{random.random()}'")
    server.query("set global teak_checkpoint_now = on")


def fill(server):
    server.query("create or replace table filler (id int primary key, payload varchar(300)) engine=Teak")
    server.query("insert into filler select seq, repeat('f', 200) from seq_1_to_20000")


def too_old(server):
    """The oldest snapshot gives way; nobody else notices."""
    fill(server)
    server.query("set global teak_history_max_size = 1048576")
    before = status(server, "snapshots_too_old")
    old, idle = open_snapshot(server), open_snapshot(server)
    assert error_of(rows, old, "select count(*) from filler") is None
    change_all(server)
    wait_until(lambda: status(server, "snapshots_too_old") > before, "the oldest snapshot to give way")
    state = server.query(f"select state, versions from information_schema.teak_snapshots where connection_id = {old.thread_id()}")
    assert state == (("TOO OLD", 0),), state
    for statement in ["select count(*) from filler", "select * from filler where id = 7", "select max(id) from filler"]:
        number, text = error_of(rows, old, statement)
        assert number == SNAPSHOT_TOO_OLD and "snapshot too old" in text and "seconds" in text and "teak_history_max_size" in text, text
    # It does not become another transaction in silence; ended, the session goes on.
    assert error_of(rows, old, "select count(*) from filler")[0] == SNAPSHOT_TOO_OLD
    old.rollback()
    assert error_of(rows, old, "select count(*) from filler") is None
    wait_until(lambda: status(server, "history_bytes") <= 1 << 20, "what it held to go")
    assert "gives way" in server.log_end(200)
    assert f"session {old.thread_id()}" in server.log_end(200)
    old.close()
    idle.close()
    server.query("set global teak_history_max_size = default")


def wait(server):
    """Writers wait for the snapshot, if they are told to: with a limit, until it ends, and not if they are killed."""
    fill(server)
    server.query("set global teak_history_full = wait")
    server.query("set global teak_history_max_size = 1048576")
    old = open_snapshot(server)
    assert error_of(rows, old, "select sum(id) from filler") is None
    connection = server.connect(autocommit=True)
    assert error_of(rows, connection, "set teak_lock_wait_timeout = 1") is None
    change_all(server)
    number, _ = error_of(rows, connection, "update filler set payload = concat('a', id)")
    assert number == LOCK_WAIT_TIMEOUT, number
    with connection.cursor() as cursor:
        cursor.execute("show warnings")
        assert any("teak_history_max_size" in row[2] for row in cursor.fetchall())
    assert error_of(rows, old, "select sum(id) from filler") is None, "nobody has to give way"
    assert error_of(rows, connection, "set teak_lock_wait_timeout = 1000") is None

    def in_background():
        found, waits = [], status(server, "history_waits")
        thread = threading.Thread(target=lambda: found.append(error_of(rows, connection, "update filler set payload = 'b' where id < 100")))
        thread.start()
        wait_until(lambda: status(server, "history_waits") > waits, "a writer to wait")
        return thread, found

    thread, found = in_background()
    server.query(f"kill query {connection.thread_id()}")
    thread.join()
    assert found[0] and found[0][0] == INTERRUPTED, found
    thread, found = in_background()
    old.rollback()
    thread.join()
    assert found == [None], found
    old.close()
    connection.close()
    server.query("set global teak_history_full = default")
    server.query("set global teak_history_max_size = default")


def shown(server):
    """What an operator sees: the table, SHOW ENGINE STATUS, the status variables, the warning, and who may look."""
    fill(server)
    old = open_snapshot(server)
    change_all(server)
    rows = server.query("select connection_id, age_seconds, versions, memory_bytes, spilled_bytes, state, snapshot_timestamp from information_schema.teak_snapshots")
    (row,) = [row for row in rows if row[0] == old.thread_id()]
    assert row[2] >= 20000 and row[3] + row[4] > 20000 * 200 and row[5] == "ACTIVE" and row[6] > 0, row
    assert status(server, "history_versions") >= row[2] and status(server, "history_bytes") >= row[3] + row[4]
    text = server.query("show engine teak status")[0][2]
    assert f"session {old.thread_id()}, age" in text, text
    server.query("set global teak_snapshot_warn_age = 1")
    wait_until(lambda: f"session {old.thread_id()} has had its snapshot open" in server.log_end(200), "the warning")
    server.query("set global teak_snapshot_warn_age = default")
    server.query("create or replace user nobody")
    connection = pymysql.connect(unix_socket=server.socket, user="nobody", database="information_schema")
    with connection.cursor() as cursor:
        cursor.execute("select * from teak_snapshots")
        assert cursor.fetchall() == ()
    connection.close()
    server.query("drop user nobody")
    old.close()
    wait_until(lambda: not server.query("select 1 from information_schema.teak_snapshots where versions > 1000"), "the snapshot to go")


def plugins(server):
    """One option loads all plugins of the library."""
    found = server.query("select plugin_name, plugin_type from information_schema.plugins where plugin_library like 'ha_teak%' order by 1")
    assert ("Teak", "STORAGE ENGINE") in found and ("TEAK_SNAPSHOTS", "INFORMATION SCHEMA") in found, found
    assert server.query("select * from information_schema.teak_snapshots") == ()


OPTIONS = ["--teak-cache-size=8M", "--teak-checkpoint-log-size=4M", "--teak-flush-log-at-trx-commit=2"]
TESTS = [plugins, exact, dump, hot_row, queue, too_old, wait, shown]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
