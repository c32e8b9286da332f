#!/usr/bin/env python3
"""The smallest case of a stall of parallel replication: a transaction queues for a row behind a later one.

On the replica two sessions lock the rows a and x. T1 (a, then x) waits for a, T2 (x) for x. Once a is free, T1 queues for x
behind T2; once x is free, T2 gets it and waits to commit after T1, which waits for T2's lock. The server can only roll T2
back if the engine has told it that T1 waits for T2 (thd_rpl_deadlock_check); else T1 waits for its lock wait timeout.
Prints the seconds that the replica takes, for InnoDB as well, and 'N passed, N failed'.
"""

import time

from kit.asking import rows
from kit.replicas import PARALLEL_OPTIONS, PRIMARY_OPTIONS, REPLICA_OPTIONS, main, value, wait_until, waits

# Far below the lock wait timeout, far above what a rollback takes.
LIMIT = 20
LOCK_WAIT_TIMEOUT = 50


def lock_waits(connection, engine):
    if engine == "InnoDB":
        # The server refreshes this table only now and then; not asked more often than that.
        time.sleep(0.2)
        return value(connection, "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
    return rows(connection, "SHOW ENGINE Teak STATUS")[0][2].count(" waits for transaction ")


def stalls(primary, replica, engine):
    """Whether T1 and T2 are not applied within the limit."""
    table = f"queue_{engine}"
    writer, control = primary.connect(autocommit=True), replica.connect(autocommit=True)
    rows(writer, f"CREATE TABLE {table} (id CHAR(1) PRIMARY KEY, n INT) ENGINE={engine}")
    rows(writer, f"INSERT INTO {table} VALUES ('a', 0), ('x', 0)")

    def catch_up(seconds):
        return value(control, f"SELECT MASTER_GTID_WAIT('{value(writer, 'SELECT @@gtid_binlog_pos')}', {seconds})") == 0

    if not catch_up(LIMIT):
        raise AssertionError("the replica has no table")
    holders = {}
    for row in "ax":
        holders[row] = replica.connect(autocommit=False)
        rows(holders[row], f"SELECT * FROM {table} WHERE id = '{row}' FOR UPDATE")
    rows(writer, "BEGIN")
    rows(writer, f"UPDATE {table} SET n = n + 1 WHERE id = 'a'")
    rows(writer, f"UPDATE {table} SET n = n + 1 WHERE id = 'x'")
    rows(writer, "COMMIT")
    rows(writer, f"UPDATE {table} SET n = n + 10 WHERE id = 'x'")
    wait_until(control, lambda: lock_waits(control, engine) == 2, "T1 waits for a, T2 for x")
    holders["a"].rollback()
    # The server hears at once that T1 is behind T2, so T2 may be rolled back and wait elsewhere: nothing to wait for
    # that lasts.
    time.sleep(1)
    holders["x"].rollback()
    began = time.monotonic()
    applied = catch_up(LIMIT)
    print(f"{engine}: {'applied' if applied else 'NOT applied'} after {time.monotonic() - began:.1f} s", flush=True)
    if not applied:
        print(waits(control))
    return not applied


def cases(pair):
    """The same in both engines."""
    for engine in ("InnoDB", "Teak"):
        yield not stalls(pair.primary, pair.replica, engine)


if __name__ == "__main__":
    replica_options = REPLICA_OPTIONS + PARALLEL_OPTIONS + [f"--teak-lock-wait-timeout={LOCK_WAIT_TIMEOUT}"]
    main("queue_deadlock", __doc__, cases, lambda _: (PRIMARY_OPTIONS, replica_options))
