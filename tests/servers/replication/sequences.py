#!/usr/bin/env python3
"""Sequences on a replica: after NEXTVAL, SETVAL, ALTER SEQUENCE and direct writes, committed and rolled back, it has what the primary has.

Also while the replica is killed and started again in between. Prints 'N passed, N failed': a binlog format each, the replica one by one and in parallel.
"""

from kit.asking import rows
from kit.replicas import LIMIT, PARALLEL_OPTIONS, PRIMARY_OPTIONS, REPLICA_OPTIONS, catch_up, main, slave_status, value

STEPS = [
    "DELETE FROM t",
    "SELECT NEXTVAL(s), NEXTVAL(n)",
    "BEGIN", "SELECT NEXTVAL(n)", "INSERT INTO t (v) VALUES (1)", "ROLLBACK",
    "BEGIN", "SELECT NEXTVAL(n)", "INSERT INTO t (v) VALUES (2), (3)", "COMMIT",
    "SELECT SETVAL(n, 100)", "SELECT SETVAL(n, 50)",
    "BEGIN", "SELECT SETVAL(s, 1000)", "ROLLBACK", "SELECT NEXTVAL(s)",
    "ALTER SEQUENCE n INCREMENT BY 3 RESTART 200", "SELECT NEXTVAL(n)",
    "INSERT INTO n VALUES (300, 1, 9223372036854775806, 1, 2, 0, 0, 0)", "INSERT INTO t (v) VALUES (4)",
    "XA START 'x'", "SELECT NEXTVAL(n)", "INSERT INTO t (v) VALUES (5)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
]


# A replica does XA PREPARE and XA COMMIT in one transaction and notes their positions in a second one, with any engine
# (Xid_apply_log_event::do_apply_event in sql/log_event_server.cc): killed between the two it meets what it has done.
DONE_BEFORE = (1397, 1440)  # XAER_NOTA for a COMMIT, XAER_DUPID for a START.


def catch_up_after_kill(writer, control):
    """Waits for a replica that was killed, and has it go on behind the XA statement that it did without its position, as an operator would."""
    last = value(writer, "SELECT @@gtid_binlog_pos")
    for _ in range(5 * LIMIT):
        if value(control, f"SELECT MASTER_GTID_WAIT('{last}', 0.2)") == 0:
            return
        status = slave_status(control)
        if status["Slave_SQL_Running"] == "No":
            if status["Last_SQL_Errno"] in DONE_BEFORE:
                print(f"goes on behind an XA statement: {status['Last_SQL_Error']}")
                rows(control, "SET GLOBAL sql_slave_skip_counter = 1")
                rows(control, "START SLAVE")
            break
    catch_up(writer, control)


def state(connection, database):
    return [rows(connection, f"SELECT * FROM {database}.{table} ORDER BY 1") for table in ("s", "n", "t")]


def attempt(primary, replica, number):
    """Runs the steps in a database of their own, the replica killed twice meanwhile; whether it has the same in the end."""
    writer = primary.connect(autocommit=True)
    database = f"sequences_{number}"
    rows(writer, f"SET SESSION binlog_format = '{('ROW', 'MIXED')[number % 2]}'")
    for statement in (f"CREATE DATABASE {database}", f"USE {database}", "CREATE SEQUENCE s CACHE 5", "CREATE SEQUENCE n NOCACHE",
                      "CREATE TABLE t (id BIGINT PRIMARY KEY DEFAULT (NEXTVAL(n)), v INT)"):
        rows(writer, statement)
    options = REPLICA_OPTIONS + (PARALLEL_OPTIONS if number // 2 else [])
    for kills in range(3):
        for statement in STEPS:
            rows(writer, statement)
        control = replica.connect(autocommit=True)
        if kills == 1:
            # In the middle of what it applies.
            replica.kill()
            replica.start(options)
            control = replica.connect(autocommit=True)
        catch_up_after_kill(writer, control)
        ours, theirs = state(control, database), state(writer, database)
        if ours != theirs:
            print(f"the replica has {ours}, the primary {theirs}")
            return False
        replica.kill()
        replica.start(options)
    return True


def cases(pair):
    """Row and mixed format, one worker and several."""
    for number in range(4):
        yield attempt(pair.primary, pair.replica, number)


if __name__ == "__main__":
    main("sequences", __doc__, cases, lambda arguments: (PRIMARY_OPTIONS + [f"--default-storage-engine={arguments.engine}"], REPLICA_OPTIONS),
         engine="Teak")
