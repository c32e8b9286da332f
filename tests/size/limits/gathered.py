#!/usr/bin/env python3
"""A statement with many rows writes their index entries late: the end of the statement waits for those who locked a range of the index meanwhile.

The statement is held in the middle by the lock of a row that comes late; meanwhile a reader locks a range in which entries are going to lie, and
finds nothing. What ends the wait: the reader's end, a timeout, KILL. After an error nothing of the statement is left, in a transaction and without one.
"""

import sys
import threading
import time

import pymysql

from kit.options import parser
from kit.server import Server

ROWS = 500
LOCKED_RANGE = "SELECT id FROM t FORCE INDEX (v) WHERE v BETWEEN 10050 AND 10060 FOR UPDATE"
STATEMENTS = {
    f"UPDATE t SET v = IF(id = {ROWS}, -1, v + 10000) ORDER BY id": 10055,
    f"INSERT INTO t SELECT seq, seq + 9000, 1 FROM seq_1001_to_1400 UNION ALL SELECT {ROWS + 1}, 1, 1": 10055,
}


class Statement(threading.Thread):
    """Runs a statement and keeps its error."""

    def __init__(self, connection, statement):
        super().__init__(daemon=True)
        self.connection, self.statement, self.error = connection, statement, None
        self.start()

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(self.statement)
        except pymysql.err.MySQLError as error:
            self.error = error.args[0]


def execute(connection, statement):
    """All rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def until_waiting(server, number, statement):
    """Returns when Teak says that the connection waits for a lock."""
    for _ in range(400):
        state = server.query(f"SELECT state, time_ms FROM information_schema.processlist WHERE id = {number}")
        if not statement.is_alive():
            raise RuntimeError(f"the statement did not wait: {statement.error}")
        if state and state[0][1] > 300:
            return
        time.sleep(0.02)
    raise RuntimeError("the statement does not come to its wait")


def scenario(server, statement, entry, ending, autocommit):
    """What is wrong with how it ends."""
    setup = server.connect(autocommit=True)
    execute(setup, "DROP TABLE IF EXISTS t")
    execute(setup, "CREATE TABLE t (id INT PRIMARY KEY, v INT, n INT, KEY v (v)) ENGINE=Teak")
    execute(setup, f"INSERT INTO t SELECT seq, seq, 0 FROM seq_1_to_{ROWS}")
    before = execute(setup, "SELECT COUNT(*), SUM(v) FROM t")
    holder, reader, writer = (server.connect(autocommit=False) for _ in range(3))
    writer.autocommit(autocommit)
    execute(holder, f"SELECT * FROM t WHERE id = {ROWS} FOR UPDATE")
    execute(holder, f"DELETE FROM t WHERE id = {ROWS + 1}")
    execute(holder, f"INSERT INTO t VALUES ({ROWS + 1}, 0, 0)")
    if ending == "timeout":
        execute(writer, "SET teak_lock_wait_timeout = 4")
    running = Statement(writer, statement)
    until_waiting(server, writer.thread_id(), running)
    if found := execute(reader, LOCKED_RANGE):
        yield f"entries are in the index early: {found}"
    holder.rollback()
    running.join(1.5)
    if not running.is_alive():
        yield f"did not wait for the range: {running.error}"
    if ending == "kill":
        execute(setup, f"KILL QUERY {writer.thread_id()}")
    if ending == "reader":
        reader.rollback()
    running.join(20)
    expected = {"reader": None, "timeout": 1205, "kill": 1317}[ending]
    if running.is_alive() or running.error != expected:
        yield f"ended with {running.error}, expected {expected}"
    writer.commit()
    reader.rollback()
    after = execute(setup, "SELECT COUNT(*), SUM(v) FROM t")
    if (after == before) != (ending != "reader"):
        yield f"rows before {before}, after {after}"
    count = execute(setup, f"SELECT COUNT(*) FROM t FORCE INDEX (v) WHERE v = {entry}")[0][0]
    if count != (1 if ending == "reader" else 0):
        yield f"{count} entries {entry}"
    if (verdict := execute(setup, "CHECK TABLE t EXTENDED")[-1][3]) != "OK":
        yield f"CHECK TABLE: {verdict}"
    for connection in (setup, holder, reader, writer):
        connection.close()


def main():
    arguments = parser(__doc__).parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    problems, passed = [], 0
    try:
        server.install()
        server.start(["--teak-cache-size=32M"])
        for statement, entry in STATEMENTS.items():
            for ending in ("reader", "timeout", "kill"):
                for autocommit in (True, False):
                    found = list(scenario(server, statement, entry, ending, autocommit))
                    passed += not found
                    problems += [f"{statement[:20]}, {ending}, autocommit {autocommit}: {problem}" for problem in found]
        server.stop()
    except (RuntimeError, pymysql.err.MySQLError) as error:
        problems.append(f"{error}\n{server.log_end(80)}")
    finally:
        server.kill()
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"gathered: {passed} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
