"""How tests ask a server: for rows, for the error that something ends with, and again and again."""

import time

import pymysql

# Bytes of the empty frame that seals the log once it is quiet: after what was written before.
SEAL = 24


def rows(connection, statement, values=None):
    """What a statement returns."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return tuple(cursor.fetchall())  # of no rows some releases of PyMySQL make a list


def error_of(run, *arguments):
    """Number and text of the error that `run` ends with; None if there is none."""
    try:
        run(*arguments)
    except pymysql.err.MySQLError as error:
        return error.args
    return None


def error_number(run, *arguments):
    """The number of the error that `run` ends with; None if there is none."""
    error = error_of(run, *arguments)
    return error and error[0]


def expect(found, expected, what):
    """Fails, with both, if they are not the same."""
    assert found == expected, f"{what}: found {found!r}, expected {expected!r}"


def log_bytes(connection):
    """What Teak has written to its log since the start."""
    return int(rows(connection, "show global status like 'Teak_log_bytes_written'")[0][1])


def expect_no_log(connection, before, what):
    """Since it was `before`, nothing was logged."""
    logged = log_bytes(connection) - before
    assert logged in (0, SEAL), f"{logged} bytes of log: {what}"


def roll_back_prepared(server):
    """Ends what a killed server had prepared."""
    for (_, _, _, xid) in server.query("xa recover"):
        name = xid.decode() if isinstance(xid, bytes) else xid
        with server.connect(database=None, autocommit=True) as connection, connection.cursor() as cursor:
            # As tests/answers/differential prepares them: those of InnoDB are in no binary log.
            cursor.execute(f"set sql_log_bin = {int(not name.endswith('-InnoDB'))}")
            cursor.execute(f"xa rollback '{name}'")


def nothing_prepared(server):
    """Rolls back what is prepared; False if some of it belongs to sessions that are still about to end."""
    error_number(roll_back_prepared, server)
    return not server.query("xa recover", database=None)


def wait_until(condition, what, limit=60.0):
    """Looks again and again; gives up after `limit` seconds, which are far more than it takes."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            raise AssertionError(f"waited {limit} s for {what}")
        time.sleep(0.01)
