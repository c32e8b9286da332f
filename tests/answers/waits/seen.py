#!/usr/bin/python3
"""Who waits for whom, as an administrator sees it: information_schema.TEAK_LOCK_WAITS."""

import re
import sys
import threading

import pymysql

from kit.asking import expect, rows, wait_until
from kit.cases import on_server
from kit.options import parser
from kit.server import Server
from kit.waiting import Waiter

COLUMNS = ("waiting_connection_id, blocking_connection_id, root_connection_id, behind_root, table_schema, table_name, index_name, lock_mode, lock_type, "
           "lock_key, kill_statement, waiting_trx_id, blocking_trx_id, root_trx_id, wait_seconds")
INTERRUPTED = 1317


def shown(server):
    return {row[0]: row[1:] for row in server.query(f"select {COLUMNS} from information_schema.teak_lock_waits")}


def until_shown(server, *waiters):
    """What the table has once all of these wait."""
    wait_until(lambda: all(waiter.id in shown(server) for waiter in waiters), "all to be shown")
    return shown(server)


def table(server):
    server.query("create or replace table `t-1 ü` (id int primary key, u int, v int, unique u (u)) engine=Teak")
    server.query("insert into `t-1 ü` values (1, 10, 0), (2, 20, 0), (3, 30, 0), (9, 90, 0)")


def chain(server):
    """Three wait one behind the other: all of them for the first, in the end, and its KILL frees all."""
    table(server)
    root = Waiter(server, "update `t-1 ü` set v = 1 where id = 1")
    second = Waiter(server, "update `t-1 ü` set v = 1 where id = 2").waits("update `t-1 ü` set v = 2 where id = 1")
    third = Waiter(server, "update `t-1 ü` set v = 1 where id = 3").waits("select * from `t-1 ü` where id = 2 lock in share mode")
    fourth = Waiter(server).waits("delete from `t-1 ü` where id = 3")
    found = until_shown(server, second, third, fourth)
    expect(len(found), 3, "rows")
    for waiter, holder, mode, number in ((second, root, "EXCLUSIVE", 1), (third, second, "SHARED", 2), (fourth, third, "EXCLUSIVE", 3)):
        expect(found[waiter.id][:10], (holder.id, root.id, 3, "test", "t-1 ü", "PRIMARY", mode, "ROW", f"({number})", f"KILL {root.id}"), f"row {number}")
        waiting, blocking, at_root, seconds = found[waiter.id][10:]
        assert waiting > 0 and blocking > 0 and at_root > 0 and 0 <= seconds < 60, found
    expect(found[third.id][11], found[second.id][10], "transaction of the second")
    joined = server.query("select p.info from information_schema.teak_lock_waits w join information_schema.processlist p on p.id = w.waiting_connection_id "
                          f"where w.waiting_connection_id = {fourth.id}")
    expect(joined, (("delete from `t-1 ü` where id = 3",),), "the query of the fourth")
    text = server.query("show engine teak status")[0][2]
    assert f"waits for transaction {found[second.id][11]}" in text and ", and so for transaction" in text, text
    server.query(found[fourth.id][9])
    second.join()
    second.end()
    third.join()
    third.end()
    for session in (fourth, root):
        session.end()
    expect([session.error for session in (second, third, fourth)], [None] * 3, "errors")
    wait_until(lambda: not shown(server), "no one to wait")


def ranges_and_indexes(server):
    """An insert waits for a range, and another for the entry of a unique index that is not committed."""
    table(server)
    root = Waiter(server, "select * from `t-1 ü` where id between 4 and 8 for update", "insert into `t-1 ü` values (50, 55, 0)")
    gap = Waiter(server).waits("insert into `t-1 ü` values (6, 60, 0)")
    entry = Waiter(server).waits("insert into `t-1 ü` values (51, 55, 0)")
    found = until_shown(server, gap, entry)
    expect(found[gap.id][:10], (root.id, root.id, 2, "test", "t-1 ü", "PRIMARY", "EXCLUSIVE", "RANGE", "(6)", f"KILL {root.id}"), "in a gap")
    expect((found[entry.id][0], found[entry.id][5], found[entry.id][8]), (root.id, "u", "(55)"), "an entry of the first index")
    rows(root.connection, "rollback")
    for session in (gap, entry, root):
        session.end()
    expect((gap.error, entry.error), (None, None), "errors")


# Types of a column, with a value and how its key is shown.
SHOWN = [
    ("tinyint", "-7", "-7"), ("smallint unsigned", "65535", "65535"), ("mediumint", "-8388608", "-8388608"), ("bigint", "-9000000000", "-9000000000"),
    ("bigint unsigned", "18446744073709551615", "18446744073709551615"), ("bit(12)", "b'100000000001'", "2049"), ("decimal(9,3)", "-1234.5", "-1234.500"),
    ("double", "-1.5", "-1.5"), ("float", "2.25", "2.25"), ("year", "2026", "2026"), ("date", "'2026-11-29'", "'2026-11-29'"),
    ("datetime", "'2026-11-29 17:00:01'", "'2026-11-29 17:00:01'"), ("datetime(6)", "'1999-01-02 03:04:05.000678'", "'1999-01-02 03:04:05.000678'"),
    ("timestamp(3)", "'2026-11-29 17:00:01.25'", "'2026-11-29 17:00:01.250'"), ("time(2)", "'-12:30:01.5'", "'-12:30:01.50'"),
    ("enum('a','b','c')", "'b'", "2"), ("set('x','y')", "'x,y'", "3"), ("varbinary(9)", "'it''s'", "'it''s'"), ("varbinary(9)", "x'610062'", "X'610062'"),
    ("binary(3)", "'abc'", "'abc'"), ("varchar(20) charset latin1", "'Teak  Tree'", "'teak  tree'"), ("char(20) collate utf8mb4_general_ci", "'Größe'", "'grose'"),
    ("varchar(20) collate utf8mb4_unicode_ci", "'Oak, 5'", "'oak, 5'"), ("varchar(20) collate utf8mb4_bin", "'Eiche Ä'", "'Eiche Ä'"),
    ("varchar(20) collate utf8mb4_nopad_bin", "' x '", "' x '"), ("varchar(20) collate utf8mb4_unicode_ci", "'木'", "weights X'FB40E728'"),
]


def kinds_of_keys(server):
    """A key of each type, ascending and descending, as a column that may be NULL and as one of several."""
    server.query("set global time_zone = '+00:00'")
    for number, (kind, value, text) in enumerate(SHOWN):
        server.query("drop table if exists k")
        server.query(f"create table k (a {kind}, n int, v int, id int primary key, unique d (a desc, n), unique u (n, a)) engine=Teak")
        server.query(f"insert into k values ({value}, 1, 0, {number}), ({value}, null, 0, {number + 1000})")
        root = Waiter(server, f"insert into k values ({value}, 2, 0, 500)", begin="set time_zone = '+00:00', autocommit = 0")
        waiter = Waiter(server).waits(f"insert into k values ({value}, 2, 0, 501)")
        found = until_shown(server, waiter)[waiter.id]
        expect((found[5], found[8]), ("d", f"({text}, 2)"), f"key of {kind}")
        for session in (waiter, root):
            server.query(f"kill {session.id}")
            session.end()


def rows_without_a_key(server):
    """Rows of a table without a primary key are shown by the number that they have instead, also behind an index's columns."""
    server.query("create or replace table w (a varchar(10), b int, key ab (a, b)) engine=Teak")
    server.query("insert into w values ('m', 1), (null, 1)")
    root = Waiter(server, "select * from w for update", "select * from w force index (ab) where a > '' or a is null for update")
    row = Waiter(server).waits("select * from w force index (ab) where a is null for update")
    entry = Waiter(server).waits("insert into w values ('q', 5)")
    found = until_shown(server, row, entry)
    expect(found[row.id][4:8], ("w", None, "EXCLUSIVE", "ROW"), "a row")
    expect(found[entry.id][4:8], ("w", "ab", "EXCLUSIVE", "RANGE"), "an entry")
    assert re.fullmatch(r"\(row \d\)", found[row.id][8]) and re.fullmatch(r"\('q', 5, row \d\)", found[entry.id][8]), found
    for session in (root, row, entry):
        session.end()


def prepared(server):
    """Who waits for a prepared transaction that nobody works on any more waits for no connection."""
    table(server)
    holder = Waiter(server, "update `t-1 ü` set v = 1 where id = 1", "xa end 'gone'", "xa prepare 'gone'", begin="xa start 'gone'")
    holder.end()
    waiter = Waiter(server).waits("update `t-1 ü` set v = 2 where id = 1")
    found = until_shown(server, waiter)
    expect(found[waiter.id][:3], (None, None, 1), "connections")
    expect(found[waiter.id][9], None, "a KILL")
    server.query("xa rollback 'gone'")
    waiter.end()
    expect(waiter.error, None, "error")


def many(server):
    """A hundred wait for one row: each is there once, and is gone when it does not wait any more."""
    table(server)
    root = Waiter(server, "update `t-1 ü` set v = 1 where id = 1")
    waiters = [Waiter(server).waits("update `t-1 ü` set v = v + 1 where id = 1") for _ in range(100)]
    found = until_shown(server, *waiters)
    expect(len(server.query("select * from information_schema.teak_lock_waits")), 100, "rows")
    assert all(row[:3] == (root.id, root.id, 100) for row in found.values()), found
    for waiter in waiters[:50]:
        server.query(f"kill query {waiter.id}")
    for waiter in waiters[:50]:
        waiter.end()
        expect(waiter.error, INTERRUPTED, "error")
    expect(len(shown(server)), 50, "rows")
    root.end()
    for waiter in waiters[50:]:
        waiter.end()
    wait_until(lambda: not shown(server), "no one to wait")


def rights(server):
    """Other people's sessions are for those with the PROCESS privilege."""
    table(server)
    root = Waiter(server, "update `t-1 ü` set v = 1 where id = 1")
    waiter = Waiter(server).waits("update `t-1 ü` set v = v + 1 where id = 1")
    until_shown(server, waiter)
    server.query("create or replace user nobody@localhost")
    connection = pymysql.connect(unix_socket=server.socket, user="nobody", database="information_schema")
    expect(rows(connection, "select * from teak_lock_waits"), (), "without PROCESS")
    server.query("grant all on test.* to nobody@localhost")
    own = pymysql.connect(unix_socket=server.socket, user="nobody", database="test")
    rows(own, "begin")
    waits = threading.Thread(target=rows, args=(own, "update `t-1 ü` set v = v + 1 where id = 1"))
    waits.start()
    wait_until(lambda: rows(connection, "select waiting_connection_id from teak_lock_waits") == ((own.thread_id(),),), "one's own wait")
    server.query(f"kill {root.id}")
    waiter.join()
    rows(waiter.connection, "rollback")
    waits.join()
    own.close()
    root.end()
    waiter.end()
    root = Waiter(server, "update `t-1 ü` set v = 1 where id = 1")
    waiter = Waiter(server).waits("update `t-1 ü` set v = v + 1 where id = 1")
    until_shown(server, waiter)
    server.query("grant process on *.* to nobody@localhost")
    connection.close()
    connection = pymysql.connect(unix_socket=server.socket, user="nobody", database="information_schema")
    expect(len(rows(connection, "select * from teak_lock_waits")), 1, "with it")
    connection.close()
    server.query("drop user nobody@localhost")
    root.end()
    waiter.end()


TESTS = [chain, ranges_and_indexes, kinds_of_keys, rows_without_a_key, prepared, many, rights]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir), ["--innodb-lock-wait-timeout=50"])


if __name__ == "__main__":
    sys.exit(main())
