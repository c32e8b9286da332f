#!/usr/bin/env python3
"""A replica is shut down while an earlier transaction still has to get past later ones.

On the replica a session locks the row a. T1 (a, x, y, z) waits for it; T2 (x), T3 (y) and T4 (z) have what they want and wait to
commit after T1. The shutdown ends the session, and T1 comes to wait for T2, T3 and T4, one after the other; each has to be
rolled back by the server's deadlock handler. MariaDB's ends in a shutdown after it has seen to one of them: then T1 runs into
eleven time-outs, and the shutdown never ends, as with --engine InnoDB. Teak has the handler run again (`reports_made` in the
plugin). Afterwards the replica is started once more and must have what the primary has.

Prints 'N passed, N failed': the replica without and with a binary log of its own.
"""

import subprocess
import time

from kit.asking import rows
from kit.replicas import BINLOG_OPTIONS, LIMIT, PARALLEL_OPTIONS, PRIMARY_OPTIONS, REPLICA_OPTIONS, catch_up, follow, main, wait_until

TIMEOUT_OPTIONS = ["--teak-lock-wait-timeout=100", "--innodb-lock-wait-timeout=100"]
LATER = "xyz"


def waiting_to_commit(control):
    """How many workers wait for an earlier one."""
    return sum("prior transaction to commit" in str(thread[6]) for thread in rows(control, "SHOW FULL PROCESSLIST"))


def shut_down(replica):
    """Whether an orderly shutdown ends within the limit; prints what it took."""
    began = time.monotonic()
    replica.process.terminate()
    try:
        replica.process.wait(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        print(f"NOT down after {LIMIT} s:\n{replica.log_end()}", flush=True)
        replica.kill()
        return False
    print(f"down after {time.monotonic() - began:.1f} s", flush=True)
    replica.process = None
    return True


def attempt(pair, options):
    """Whether the replica, started with `options`, gets through the shutdown and has everything after the next start."""
    primary, replica, engine = pair.primary, pair.replica, pair.arguments.engine
    table = f"shutdown_{'logged' if '--log-bin=binlog' in options else 'plain'}"
    writer = primary.connect(autocommit=True)
    rows(writer, f"CREATE TABLE {table} (id CHAR(1) PRIMARY KEY, n INT) ENGINE={engine}")
    rows(writer, f"INSERT INTO {table} VALUES ('a', 0), {', '.join(f'({row!r}, 0)' for row in LATER)}")
    replica.install()
    replica.start(options)
    control, holder = replica.connect(autocommit=True), replica.connect(autocommit=False)
    follow(control, pair.port)
    catch_up(writer, control)
    rows(holder, f"SELECT * FROM {table} WHERE id = 'a' FOR UPDATE")
    rows(writer, "BEGIN")
    for row in "a" + LATER:
        rows(writer, f"UPDATE {table} SET n = n + 1 WHERE id = '{row}'")
    rows(writer, "COMMIT")
    for row in LATER:
        rows(writer, f"UPDATE {table} SET n = n * 10 WHERE id = '{row}'")
    wait_until(control, lambda: waiting_to_commit(control) == len(LATER), "the later transactions wait to commit")
    if not shut_down(replica):
        return False
    replica.start(options)
    control = replica.connect(autocommit=True)
    catch_up(writer, control)
    query = f"SELECT * FROM {table} ORDER BY id"
    if rows(control, query) != rows(writer, query):
        raise AssertionError(f"the replica has {rows(control, query)}, the primary {rows(writer, query)}")
    return shut_down(replica)


def cases(pair):
    """Without a binary log on the replica, and with one."""
    parallel = REPLICA_OPTIONS + PARALLEL_OPTIONS + TIMEOUT_OPTIONS
    for options in (parallel, parallel + BINLOG_OPTIONS):
        yield attempt(pair, options)


if __name__ == "__main__":
    main("shutdown_deadlock", __doc__, cases, lambda _: (PRIMARY_OPTIONS, None), engine="Teak")
