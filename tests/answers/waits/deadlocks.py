#!/usr/bin/python3
"""Who was in a deadlock, for what, in which statement, and who had to give up: information_schema.TEAK_DEADLOCKS."""

import sys

import pymysql

from kit.asking import expect, rows, wait_until
from kit.cases import on_server
from kit.options import parser
from kit.server import Server
from kit.waiting import Waiter
from seen import until_shown

COLUMNS = ("deadlock_id, trx_id, connection_id, user, host, query, waits_for_trx_id, wait_seconds, table_schema, table_name, index_name, lock_mode, lock_type, "
           "lock_key, writes, victim, reason").split(", ")
DEADLOCK = 1213


def listed(server, connection=None):
    """The newest deadlock first: a list for each, of a dictionary for each of its transactions."""
    query = f"select {', '.join(COLUMNS)} from information_schema.teak_deadlocks"
    deadlocks = {}
    for row in rows(connection, query) if connection else server.query(query):
        row = dict(zip(COLUMNS, row))
        deadlocks.setdefault(row["deadlock_id"], []).append(row)
    return list(deadlocks.values())


def table(server):
    server.query("create or replace table d (id int primary key, v int) engine=Teak")
    server.query("insert into d select seq, 0 from seq_1_to_100")


def circle(server, size, writes=()):
    """So many sessions, each of which waits for the next; the first has written these rows as well. Returns them, once one of them has had to give up."""
    before = server.query("select ifnull(max(deadlock_id), 0) from information_schema.teak_deadlocks")[0][0]
    sessions = [Waiter(server, f"update d set v = 1 where id = {number}", *(writes if number == 1 else ())) for number in range(1, size + 1)]
    for number, session in enumerate(sessions, 1):
        session.waits(f"update d set v = 2 where id = {number % size + 1}")
        if number < size:
            until_shown(server, session)
    wait_until(lambda: server.query("select ifnull(max(deadlock_id), 0) from information_schema.teak_deadlocks")[0][0] > before, "a deadlock")
    return sessions


def unwind(sessions):
    """Ends all: first who has had to give up, and then whoever has waited for the last."""
    for session in reversed(sessions):
        session.end()


def two(server):
    """Two wait for each other; who came last gives up, as both have written as much."""
    table(server)
    first, last = sessions = circle(server, 2)
    last.join()
    expect(last.error, DEADLOCK, "error")
    newest = {row["connection_id"]: row for row in listed(server)[0]}
    expect(sorted(newest), sorted([first.id, last.id]), "connections")
    for session, other, key, verdict in ((first, last, 2, ("NO", None)), (last, first, 1, ("YES", "WAITED LAST"))):
        row = newest[session.id]
        expect([row[name] for name in ("user", "host", "query", "waits_for_trx_id", "table_schema", "table_name", "index_name", "lock_mode", "lock_type",
                                       "lock_key", "writes")],
               ["root", "localhost", f"update d set v = 2 where id = {key}", newest[other.id]["trx_id"], "test", "d", "PRIMARY", "EXCLUSIVE", "ROW",
                f"({key})", 1], "a row")
        expect((row["victim"], row["reason"]), verdict, "verdict")
        assert 0 < row["wait_seconds"] < 60, row
    text = server.query("show engine teak status")[0][2]
    number = newest[first.id]["deadlock_id"]
    assert f"deadlock {number} of 2 transactions" in text and "exclusive row of test/d: PRIMARY (1)" in text and "as it waited last" in text, text
    unwind(sessions)


def who_wrote_least(server):
    """Who has written least gives up, though others came later."""
    table(server)
    first, last = sessions = circle(server, 2)
    unwind(sessions)
    first, last = sessions = circle(server, 2, ["update d set v = 7 where id between 50 and 60"])
    last.join()
    (victim,) = [row for row in listed(server)[0] if row["victim"] == "YES"]
    expect((victim["connection_id"], victim["reason"]), (last.id, "WROTE LEAST"), "victim")
    expect([row["writes"] for row in listed(server)[0] if row["connection_id"] == first.id], [12], "writes of the other")
    unwind(sessions)


def five(server):
    """Five wait in a circle: each is there, waiting for the next."""
    table(server)
    sessions = circle(server, 5)
    newest = {row["trx_id"]: row for row in listed(server)[0]}
    expect(sorted(row["connection_id"] for row in newest.values()), sorted(session.id for session in sessions), "connections")
    expect(sorted(row["waits_for_trx_id"] for row in newest.values()), sorted(newest), "who is waited for")
    expect([row["victim"] for row in newest.values()].count("YES"), 1, "victims")
    for session in reversed(sessions):
        session.join()
        session.end()


def history(server):
    """So many are kept as are asked for, and the error log has them if it is to."""
    table(server)
    server.query("set global teak_deadlock_history = 2, global teak_print_all_deadlocks = on")
    for _ in range(3):
        unwind(circle(server, 2))
    numbers = [deadlock[0]["deadlock_id"] for deadlock in listed(server)]
    expect(len(numbers), 2, "deadlocks")
    assert numbers[0] == numbers[1] + 1, numbers
    assert f"deadlock {numbers[0]} of 2 transactions" in server.log_end(), server.log_end()
    server.query("set global teak_deadlock_history = 0, global teak_print_all_deadlocks = off")
    expect(listed(server), [], "deadlocks")
    server.query("set global teak_deadlock_history = default")


def rights(server):
    """Without PROCESS, one sees what is one's own."""
    table(server)
    unwind(circle(server, 2))
    server.query("create or replace user nobody@localhost")
    connection = pymysql.connect(unix_socket=server.socket, user="nobody", database="information_schema")
    expect(listed(server, connection), [], "without PROCESS")
    connection.close()
    server.query("drop user nobody@localhost")


TESTS = [two, who_wrote_least, five, history, rights]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir))


if __name__ == "__main__":
    sys.exit(main())
