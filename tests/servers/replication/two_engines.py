#!/usr/bin/env python3
"""Transactions over Teak and InnoDB on a replica that applies them in parallel: the last one of a row has the last word.

MariaDB's binary log as coordinator does not have workers wait for each other where it has nothing to write: on a replica with
log_bin and without log_slave_updates (`commits_out_of_order` in the plugin). Prints 'N passed, N failed': without and with.
"""

import random
import threading

from kit.asking import rows
from kit.replicas import PARALLEL_OPTIONS, PRIMARY_OPTIONS, REPLICA_OPTIONS, catch_up, main
from kit.server import attempt

ENGINES = ("Teak", "InnoDB")
ROWS = 100
CLIENTS = 6
TRANSACTIONS = 300
REPLICA = [*(option for option in REPLICA_OPTIONS if "log" not in option), *PARALLEL_OPTIONS, "--slave-parallel-threads=8", "--log-bin=binlog",
           "--binlog-format=ROW", "--gtid-pos-auto-engines=teak"]


def change(primary, number):
    """Adds to rows of both engines, the same in one transaction."""
    connection, chooser = primary.connect(autocommit=False), random.Random(number)
    for _ in range(TRANSACTIONS):
        row = chooser.randint(1, ROWS)
        attempt(connection, [(f"UPDATE in_{engine} SET v = v + 1 WHERE id = {row}", None) for engine in ENGINES], chooser)
    connection.close()


def differences(primary, replica):
    """Rows that are not what they are on the primary, an engine each."""
    def contents(server):
        return [server.query(f"SELECT id, v FROM in_{engine} ORDER BY id") for engine in ENGINES]
    return [[(here, there) for here, there in zip(*pair) if here != there] for pair in zip(contents(primary), contents(replica))]


def cases(pair):
    """Without updates of the replica in its binary log, and with them."""
    primary, replica = pair.primary, pair.replica
    writer = primary.connect(autocommit=True)
    for engine in ENGINES:
        rows(writer, f"CREATE TABLE in_{engine} (id INT PRIMARY KEY, v INT) ENGINE={engine}")
        rows(writer, f"INSERT INTO in_{engine} SELECT seq, 0 FROM seq_1_to_{ROWS}")
    for options in ([], ["--log-slave-updates"]):
        if options:
            replica.start(REPLICA + options)
        control = replica.connect(autocommit=True)
        clients = [threading.Thread(target=change, args=(primary, number)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        catch_up(writer, control)
        different = differences(primary, replica)
        print(f"{options}: rows that differ: {different}", flush=True)
        yield not any(different)
        replica.kill()


if __name__ == "__main__":
    main("two_engines", __doc__, cases, lambda _: (PRIMARY_OPTIONS, REPLICA))
