#!/usr/bin/python3
"""Who has locked what: information_schema.TEAK_LOCKS, and what the process list says of who waits."""

import sys

import pymysql

from kit.asking import expect, rows, wait_until
from kit.cases import on_server
from kit.options import parser
from kit.server import Server
from kit.waiting import Waiter
from seen import until_shown

COLUMNS = "connection_id, table_schema, table_name, index_name, lock_mode, lock_type, lock_key, other_rows"


def listed(server, session=None):
    """All locks, or those of a session, in their order."""
    found = server.query(f"select {COLUMNS} from information_schema.teak_locks")
    return [row[1:] for row in found if session is None or row[0] == session.id]


def table(server):
    server.query("create or replace table h (id int primary key, a varchar(10) collate latin1_swedish_ci, b int, key ab (a, b)) engine=Teak")
    server.query("insert into h select seq, concat('k', seq), seq from seq_1_to_3000")


def ranges(server):
    """Both ends of each range that a session has locked; ranges that touch are one."""
    table(server)
    for statement, expected in (
            ("select * from h where id between 4 and 8 for update", ("PRIMARY", ">= (4) AND < (9)")),
            ("select * from h where id > 2990 for update", ("PRIMARY", ">= (2991)")),
            ("select * from h where id < 3 lock in share mode", ("PRIMARY", "< (3)")),
            ("select * from h force index (ab) where a = 'K7' and b > 5 for update", ("ab", ">= ('k7', 6) AND <= ('k7')")),
            ("select * from h force index (ab) where a = 'nothing' for update", ("ab", ">= ('nothing') AND <= ('nothing')"))):
        session = Waiter(server, statement)
        found = [row for row in listed(server, session) if row[4] == "RANGE"]
        expect(found, [("test", "h", expected[0], "SHARED", "RANGE", expected[1], None)], statement)
        session.end()


def runs(server):
    """Rows of consecutive keys are locked as one; the first thousand of a transaction one by one."""
    table(server)
    session = Waiter(server, "update h set b = b + 1 where id <= 2500")
    expect(listed(server, session), [("test", "h", "PRIMARY", "SHARED", "RANGE", "< (2501)", None),
                                     ("test", "h", "PRIMARY", "EXCLUSIVE", "RUN", ">= (1025) AND < (2305)", None),
                                     (None, None, None, None, "OTHER ROWS", None, 2500 - 1280)], "a range, a run, and the rest")
    session.end()


def rows_that_are_waited_for(server):
    """A row that somebody waits for is there with its key; other rows are counted."""
    table(server)
    holder = Waiter(server, "update h set b = 0 where id in (1, 5, 9)")
    expect(listed(server, holder), [(None, None, None, None, "OTHER ROWS", None, 3)], "rows")
    waiter = Waiter(server).waits("delete from h where id = 5")
    until_shown(server, waiter)
    expect(sorted(listed(server, holder), key=str), sorted([("test", "h", "PRIMARY", "EXCLUSIVE", "ROW", "(5)", None),
                                                            (None, None, None, None, "OTHER ROWS", None, 2)], key=str), "with one that is waited for")
    for session in (holder, waiter):
        session.end()
    wait_until(lambda: not listed(server), "no locks")


def a_limit_ends_the_listing(server):
    """Of many locks only as many are listed as the statement wants."""
    table(server)
    session = Waiter(server, *(f"select * from h where id = {4000 + 2 * number} for update" for number in range(500)))
    everything = len(listed(server, session))
    assert everything > 400, everything
    looker = server.connect()

    def written(query):
        """Rows that the query gives, and rows of the table that were made for it."""
        made = [int(rows(looker, "show local status like 'Handler_tmp_write'")[0][1])]
        found = rows(looker, query)
        made.append(int(rows(looker, "show local status like 'Handler_tmp_write'")[0][1]))
        return found, made[1] - made[0]

    rest = written("select * from information_schema.teak_locks limit 0")[1]
    for limit, found, made in (("3", 3, 3), ("2, 3", 3, 5), ("3 offset 2", 3, 5), ("1000", everything, everything)):
        found_rows, made_rows = written(f"select * from information_schema.teak_locks limit {limit}")
        expect((len(found_rows), made_rows - rest), (found, made), f"rows, and made rows, with LIMIT {limit}")
    for query in ("select count(*) from information_schema.teak_locks limit 1", "select distinct lock_type from information_schema.teak_locks limit 1",
                  "select lock_key from information_schema.teak_locks order by lock_key desc limit 1",
                  "select a.lock_key from information_schema.teak_locks a join information_schema.teak_locks b on a.lock_key = b.lock_key limit 500"):
        found_rows, made_rows = written(query)
        assert made_rows >= everything, (query, made_rows)
    expect(len(rows(looker, "select * from information_schema.teak_locks where lock_key = '(4998)' limit 1")), 1, "rows with a condition")
    expect(rows(looker, "select count(*) from (select 1 from information_schema.teak_locks limit 7) x")[0][0], 7, "rows in a subquery")
    looker.close()
    session.end()


def process_list(server):
    """After a second, the state of who waits names table and index; then it is what it was."""
    table(server)
    holder = Waiter(server, "update h set b = 0 where id = 1", "select * from h where id = 3500 for update")
    row = Waiter(server).waits("delete from h where id = 1")
    gap = Waiter(server).waits("insert into h values (3500, 'x', 0)")
    state = {session: lambda session=session: server.query(f"select state from information_schema.processlist where id = {session.id}")[0][0]
             for session in (row, gap)}
    wait_until(lambda: state[row]() == "Waiting for a row lock in test.h, index PRIMARY", "the state of a row")
    wait_until(lambda: state[gap]() == "Waiting for a range lock in test.h, index PRIMARY", "the state of a range")
    rows(holder.connection, "commit")
    for session in (row, gap):
        session.join()
        assert "Waiting" not in (state[session]() or ""), state[session]()
    for session in (holder, row, gap):
        session.end()


def rights(server):
    """Without PROCESS, one sees what is one's own."""
    table(server)
    server.query("create or replace user nobody@localhost")
    server.query("grant all on test.* to nobody@localhost")
    other = Waiter(server, "update h set b = 0 where id = 1")
    own = pymysql.connect(unix_socket=server.socket, user="nobody", database="test")
    rows(own, "begin")
    rows(own, "update h set b = 0 where id = 2")
    expect([row[0] for row in rows(own, f"select {COLUMNS} from information_schema.teak_locks")], [own.thread_id()], "one's own")
    assert len(listed(server, other)) == 1
    own.close()
    other.end()
    server.query("drop user nobody@localhost")


TESTS = [ranges, runs, rows_that_are_waited_for, a_limit_ends_the_listing, process_list, rights]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir))


if __name__ == "__main__":
    sys.exit(main())
