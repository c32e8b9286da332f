"""A definition with a unique index that was never built, which only a lost DDL log (or an early version of the engine) can leave: it must not be silent."""

import glob
import os
import threading
import time

import pymysql

from state import rows

DATABASE = "ddl_unbuilt"
# Enough that the build can be watched.
ROWS = 200_000


def killed_in_build(server):
    """Kills the server while it builds the index, and puts the new definition in place by hand."""
    connection = server.connect(database=DATABASE, autocommit=True)
    alter = threading.Thread(target=end_by_kill, args=(connection, "ALTER TABLE t ADD UNIQUE KEY u (v)"))
    alter.start()
    while not rows_of(server, "SELECT 1 FROM information_schema.processlist WHERE state = 'Building indexes'"):
        if not alter.is_alive():
            raise AssertionError("the index was built before anybody saw it")
        time.sleep(0.005)
    server.kill()
    alter.join()
    directory = os.path.join(server.data, DATABASE)
    definition, = glob.glob(os.path.join(directory, "#sql-alter*.frm"))
    os.rename(definition, os.path.join(directory, "t.frm"))
    os.remove(os.path.join(server.data, "ddl_recovery.log"))


def rows_of(server, query):
    return server.query(query, database=None)


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
