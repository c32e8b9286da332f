#!/usr/bin/python3
"""Which transactions there are, as an administrator sees it: information_schema.TEAK_TRX."""

import contextlib
import datetime
import random
import sys
import threading

import pymysql

from kit.waiting import Waiter
from seen import INTERRUPTED, until_shown
from kit.asking import expect, rows, wait_until
from kit.cases import on_server
from kit.options import parser, seed
from kit.server import Server

COLUMNS = ("trx_id, connection_id, state, started, age_seconds, isolation_level, snapshot_timestamp, snapshot_seconds, rows_written, row_locks, lock_memory, "
           "redo_bytes, log_bytes_pinned, waits_for_trx_id, wait_seconds, xid, query").split(", ")


def listed(server, connection=None):
    """All of it: a dictionary for each transaction."""
    query = f"select {', '.join(COLUMNS)} from information_schema.teak_trx"
    found = rows(connection, query) if connection else server.query(query)
    return [dict(zip(COLUMNS, row)) for row in found]


def of(server, session):
    """The transaction of a session; nothing if it has none."""
    found = [row for row in listed(server) if row["connection_id"] == session.id]
    assert len(found) <= 1, found
    return found[0] if found else {}


def table(server):
    server.query("create or replace table t (id int primary key, v int, w int, key w (w), text longtext) engine=Teak")
    server.query("insert into t select seq, 0, seq, null from seq_1_to_100")


def numbers(server):
    """What a transaction has done so far."""
    table(server)
    session = Waiter(server, "select * from t where id = 1", "update t set v = 1 where id < 4", "delete from t where id = 4",
                     "insert into t values (1000, 0, 0, null)")
    # The server has sent the answer a moment before it forgets the statement.
    wait_until(lambda: of(server, session)["query"] is None, "the end of the statement")
    found = of(server, session)
    expect([found[name] for name in ("state", "isolation_level", "rows_written", "query", "xid", "waits_for_trx_id", "wait_seconds", "log_bytes_pinned")],
           ["RUNNING", "REPEATABLE READ", 5, None, None, None, None, 0], "a transaction")
    assert found["trx_id"] > 0 and found["snapshot_timestamp"] > 0 and 0 <= found["snapshot_seconds"] <= found["age_seconds"] < 60, found
    assert 5 <= found["row_locks"] < 20 and 100 < found["lock_memory"] < 5000 and 100 < found["redo_bytes"] < 5000, found
    assert abs(found["started"] - server.query("select now()")[0][0]) < datetime.timedelta(seconds=60), found
    rows(session.connection, "rollback")
    expect(of(server, session), {}, "after its end")
    rows(session.connection, "set session transaction isolation level read committed")
    rows(session.connection, "begin")
    rows(session.connection, "select count(*) from t")
    found = of(server, session)
    expect([found[name] for name in ("isolation_level", "rows_written", "row_locks", "redo_bytes", "snapshot_timestamp")],
           ["READ COMMITTED", 0, 0, 0, None], "the next transaction")
    own = [row for row in listed(server, session.connection) if row["connection_id"] == session.id]
    expect([row["query"][:6] for row in own], ["select"], "its own query")
    session.end()
    wait_until(lambda: not of(server, session), "it to end")


def waiting(server):
    """Who waits, for whom, in which statement."""
    table(server)
    holder = Waiter(server, "update t set v = 1 where id = 1")
    waiter = Waiter(server, "update t set v = 1 where id = 2").waits("update t set v = 2 where id = 1")
    until_shown(server, waiter)
    found = of(server, waiter)
    expect([found[name] for name in ("state", "waits_for_trx_id", "query", "rows_written")],
           ["LOCK WAIT", of(server, holder)["trx_id"], "update t set v = 2 where id = 1", 1], "who waits")
    assert 0 <= found["wait_seconds"] < 60, found
    rows(holder.connection, "commit")
    waiter.join()
    found = of(server, waiter)
    expect([found[name] for name in ("state", "waits_for_trx_id", "rows_written")], ["RUNNING", None, 2], "who has waited")
    for session in (holder, waiter):
        session.end()


def pinned(server):
    """A transaction with much redo has it in the log, which is kept for it."""
    table(server)
    server.query("insert into t select seq, 0, seq, null from seq_1001_to_9000")
    session = Waiter(server, "update t set text = repeat('abcdefgh', 40) where id < 8900")
    server.query("insert into t values (20000, 0, 0, repeat('x', 100000))")
    found = of(server, session)
    assert found["redo_bytes"] > 100_000 and found["log_bytes_pinned"] > 100_000, found
    session.end()


def prepared(server):
    """A prepared transaction, with its session and without."""
    table(server)
    session = Waiter(server, "update t set v = 1 where id = 1", "xa end 'gone'", "xa prepare 'gone'", begin="xa start 'gone'")
    found = of(server, session)
    expect([found[name] for name in ("state", "xid", "rows_written")], ["PREPARED", "'gone'", 1], "with its session")
    session.end()
    wait_until(lambda: not of(server, session), "the session to end")
    (alone,) = [row for row in listed(server) if row["xid"]]
    expect([alone[name] for name in ("trx_id", "connection_id", "state", "xid", "row_locks", "rows_written", "isolation_level", "query")],
           [found["trx_id"], None, "PREPARED", "'gone'", found["row_locks"], None, None, None], "without it")
    assert alone["log_bytes_pinned"] > 0 and alone["age_seconds"] is not None, alone
    server.query("xa rollback 'gone'")
    expect(listed(server), [], "after its end")


def rights(server):
    """Without PROCESS, one sees what is one's own."""
    table(server)
    server.query("create or replace user nobody@localhost")
    server.query("grant all on test.* to nobody@localhost")
    other = Waiter(server, "update t set v = 1 where id = 1")
    connections = [pymysql.connect(unix_socket=server.socket, user="nobody", database="test") for _ in range(2)]
    rows(connections[0], "begin")
    rows(connections[0], "update t set v = 1 where id = 2")
    expect([row["connection_id"] for row in listed(server, connections[1])], [connections[0].thread_id()], "one's own")
    expect(len(listed(server)), 2, "with PROCESS")
    for connection in connections:
        connection.close()
    other.end()
    server.query("drop user nobody@localhost")


def under_change(server):
    """While sessions begin and end transactions of two kinds, none is there twice, and none has numbers of another kind's."""
    table(server)
    server.query("create or replace table n (id int primary key, v int) engine=Teak")
    server.query("insert into n select seq, 0 from seq_0_to_63")
    stop, failures = threading.Event(), []

    def work(number):
        try:
            connection = server.connect()
            while not stop.is_set():
                rows(connection, "set transaction isolation level read committed")
                rows(connection, f"update n set v = v + 1 where id = {8 * number}")
                rows(connection, "commit")
                rows(connection, "set transaction isolation level serializable")
                rows(connection, "begin")
                for place in range(1, 8):
                    rows(connection, f"update n set v = v + 1 where id = {8 * number + place}")
                rows(connection, "rollback")
            connection.close()
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    seen = 0
    for _ in range(1000):
        found = listed(server)
        for name in ("trx_id", "connection_id"):
            values = [row[name] for row in found]
            expect(len(values), len(set(values)), f"{name} of one row each")
        for row in found:
            most = 1 if row["isolation_level"] == "READ COMMITTED" else 7
            assert row["rows_written"] <= most and row["row_locks"] <= most + 1, row
            assert row["isolation_level"] in ("READ COMMITTED", "SERIALIZABLE"), row
        seen += len(found)
    stop.set()
    for worker in workers:
        worker.join()
    expect(failures, [], "failures")
    assert seen > 100, seen
    wait_until(lambda: not listed(server), "all to end")


def readers_are_killed(server):
    """All tables are read in loops by sessions whose statements are killed, while others wait for each other, in circles too."""
    table(server)
    stop, failures, choices = threading.Event(), [], random.Random(seed())
    names = ("teak_trx", "teak_lock_waits", "teak_locks", "teak_deadlocks", "teak_snapshots")

    def work(connection, source):
        try:
            while not stop.is_set():
                with contextlib.suppress(pymysql.err.OperationalError):
                    for _ in range(4):
                        rows(connection, f"update t set v = v + 1 where id = {source.randrange(1, 9)}")
                        rows(connection, f"select * from t where w > {source.randrange(90, 110)} for update")
                    rows(connection, "commit")
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    def read(connection, source):
        seen = 0
        try:
            while not stop.is_set():
                try:
                    seen += len(rows(connection, f"select * from information_schema.{source.choice(names)}"))
                except pymysql.err.OperationalError as error:
                    if error.args[0] != INTERRUPTED:
                        raise
            assert seen > 10, seen
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    workers, readers = ([server.connect() for _ in range(count)] for count in (6, 3))
    threads = [threading.Thread(target=action, args=(connection, random.Random(choices.random())))
               for action, connections in ((work, workers), (read, readers)) for connection in connections]
    for thread in threads:
        thread.start()
    for _ in range(1000):
        with contextlib.suppress(pymysql.err.OperationalError):
            server.query(f"kill query {choices.choice(readers + workers).thread_id()}")
    stop.set()
    for thread in threads:
        thread.join()
    expect(failures, [], "failures")
    for connection in workers + readers:
        connection.close()
    wait_until(lambda: not listed(server), "all to end")
    expect(server.query("select count(*) from information_schema.teak_locks")[0][0], 0, "locks")


TESTS = [numbers, waiting, pinned, prepared, rights, under_change, readers_are_killed]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir))


if __name__ == "__main__":
    sys.exit(main())
