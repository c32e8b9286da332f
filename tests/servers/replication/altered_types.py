#!/usr/bin/env python3
"""Columns get other types on the primary while clients write to the table; a parallel replica repeats that between their row events, and has the same rows and
definitions in the end, once with the time zone and sql_mode of the session that altered. Prints 'N passed, N failed'.
"""

import random
import threading

from kit.asking import rows
from kit.replicas import PARALLEL_OPTIONS, PRIMARY_OPTIONS, REPLICA_OPTIONS, catch_up, main
from kit.server import attempt

ROWS = 3000
CLIENTS = 3
ALTERATIONS = (
    "modify id bigint not null, modify v bigint", "modify v varchar(20), modify note varchar(300) character set utf8mb4", "modify at timestamp null, add key at (at)",
    "modify v decimal(20,2), modify at varchar(30)", "modify id int not null, modify v int, modify note varchar(60) character set latin1, modify at datetime, drop key at",
)


def change(primary, number, stop, done):
    """Writes until it is to stop."""
    connection, chooser = primary.connect(autocommit=False), random.Random(number)
    while not stop.is_set():
        row = chooser.randint(1, ROWS)
        done[number] += attempt(connection, [
            (f"UPDATE t SET v = v + 1, at = '2020-01-01 00:00:00' + INTERVAL {row} MINUTE WHERE id = {row}", None),
            (f"REPLACE INTO t VALUES ({row + chooser.randint(0, 2 * ROWS)}, {row}, 'note {row}', NULL)", None),
        ], chooser)
    connection.close()


def contents(server):
    """The rows and the definition."""
    return server.query("SELECT * FROM t ORDER BY id"), server.query("SHOW CREATE TABLE t"), server.query("CHECK TABLE t EXTENDED")[-1][3]


def cases(pair):
    """Strict; then with what a copy does without strict mode."""
    primary, replica = pair.primary, pair.replica
    writer, control = primary.connect(autocommit=True), replica.connect(autocommit=True)
    rows(writer, "CREATE TABLE t (id INT PRIMARY KEY, v INT, note VARCHAR(60) CHARACTER SET latin1, at DATETIME, KEY v (v), KEY note (note))")
    rows(writer, f"INSERT INTO t SELECT seq, seq, CONCAT('note ', seq), '2020-06-01 12:00:00' FROM seq_1_to_{ROWS}")
    for mode in ("STRICT_TRANS_TABLES", ""):
        rows(writer, f"SET sql_mode = '{mode}', time_zone = '+05:30'")
        stop, done = threading.Event(), [0] * CLIENTS
        clients = [threading.Thread(target=change, args=(primary, number, stop, done)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            for alteration in ALTERATIONS + ALTERATIONS:
                rows(writer, f"ALTER TABLE t {alteration}")
        finally:
            stop.set()
            for client in clients:
                client.join()
        catch_up(writer, control)
        here, there = contents(primary), contents(replica)
        print(f"sql_mode '{mode}': {done} transactions, {len(here[0])} rows, the same on the replica: {here == there}", flush=True)
        yield here == there and here[2] == "OK"


if __name__ == "__main__":
    main("altered_types", __doc__, cases, lambda _: (PRIMARY_OPTIONS, [*REPLICA_OPTIONS, *PARALLEL_OPTIONS, "--slave-parallel-threads=6"]))
