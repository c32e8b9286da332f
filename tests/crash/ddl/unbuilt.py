"""A definition with a unique index that was never built, which only a lost DDL log (or an early version of the engine) can leave: it must not be silent."""

import glob
import os
import threading
import time

import pymysql

from kit.asking import rows

DATABASE = "ddl_unbuilt"
# As a rule enough that the build can be watched; if it cannot, twice as many are tried.
ROWS = 200_000
MOST_ROWS = 32 * ROWS


def alter_that_is_seen(server, watcher):
    """A thread with an ALTER that was seen to build the index; None if it has ended (by the duplicate that the table has) before anybody saw it."""
    connection = server.connect(database=DATABASE, autocommit=True)
    alter = threading.Thread(target=end_by_kill, args=(connection, "ALTER TABLE t ADD UNIQUE KEY u (v)"))
    alter.start()
    while not rows(watcher, "SELECT 1 FROM information_schema.processlist WHERE state = 'Building indexes'"):
        if not alter.is_alive():
            connection.close()
            return None
        time.sleep(0.002)
    return alter


def killed_in_build(server):
    """Kills the server while it builds the index, and puts the new definition in place by hand."""
    watcher = server.connect(database=DATABASE, autocommit=True)
    count = ROWS
    while not (alter := alter_that_is_seen(server, watcher)):
        if count >= MOST_ROWS:
            raise AssertionError(f"an index of {count} rows was built before anybody saw it")
        rows(watcher, f"INSERT INTO t SELECT seq, seq FROM seq_{count + 1}_to_{2 * count}")
        count *= 2
    server.kill()
    alter.join()
    directory = os.path.join(server.data, DATABASE)
    definition, = glob.glob(os.path.join(directory, "#sql-alter*.frm"))
    os.rename(definition, os.path.join(directory, "t.frm"))
    os.remove(os.path.join(server.data, "ddl_recovery.log"))


def end_by_kill(connection, statement):
    try:
        rows(connection, statement)
    except (pymysql.err.MySQLError, OSError):
        pass


def expect(connection, statement, code, text=""):
    try:
        rows(connection, statement)
    except pymysql.err.MySQLError as error:
        told = error.args[1] + str(rows(connection, "SHOW WARNINGS"))
        if error.args[0] != code or text not in told:
            raise AssertionError(f"{statement}: {error.args}, not {code} with '{text}' ({told})") from error
    else:
        raise AssertionError(f"{statement} ends without error {code}")


def check(server, start):
    """On a server that runs; `start` starts it again after the kill."""
    connection = server.connect(database=None, autocommit=True)
    for statement in (f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)",
                      f"INSERT INTO t SELECT seq, seq FROM seq_1_to_{ROWS}", "UPDATE t SET v = 17 WHERE id = 150000"):
        rows(connection, statement)
    connection.close()
    killed_in_build(server)
    start()
    connection = server.connect(database=DATABASE, autocommit=True)
    expect(connection, "INSERT INTO t VALUES (-1, 17)", 1296, "unique index 'u'")
    expect(connection, "UPDATE t SET v = 17 WHERE id = 1", 1296, "unique index 'u'")
    if rows(connection, "CHECK TABLE t")[-1][3] == "OK":
        raise AssertionError("CHECK TABLE does not mind a unique index that was never built")
    if "unique index 'u'" not in server.log_end(200):
        raise AssertionError("the error log does not mind a unique index that was never built")
    if rows(connection, "SELECT COUNT(*) FROM t WHERE v = 17") != ((2,),):
        raise AssertionError("rows cannot be read")
    expect(connection, "ALTER TABLE t ENABLE KEYS", 1062, "'17'")
    rows(connection, "DELETE FROM t WHERE id = 150000")
    rows(connection, "ALTER TABLE t ENABLE KEYS")
    expect(connection, "INSERT INTO t VALUES (-1, 17)", 1062, "'u'")
    rows(connection, "INSERT INTO t VALUES (-1, -1)")
    verdict = rows(connection, "CHECK TABLE t")
    if verdict[-1][3] != "OK":
        raise AssertionError(f"CHECK TABLE after ENABLE KEYS: {verdict}")
    rows(connection, f"DROP DATABASE {DATABASE}")
    connection.close()
