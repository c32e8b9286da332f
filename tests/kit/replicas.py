"""A primary and a replica that follows it: their options, how one waits for the other, and a program of cases over such a pair."""

import os
import sys
import time

import pymysql

from kit.asking import expect, rows
from kit.options import ROOT, parser
from kit.server import Server, free_port

# Seconds to wait for what should happen soon.
PATIENCE = 120.0
# And for a replica to have all that its primary has.
LIMIT = 30
PRIMARY_OPTIONS = ["--server-id=1", "--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=0", "--skip-name-resolve"]
REPLICA_OPTIONS = [
    "--server-id=2", "--gtid-pos-auto-engines=teak", "--relay-log=relay", "--relay-log-recovery",
    "--teak-flush-log-at-trx-commit=1", "--teak-lock-wait-timeout=10",
]
BINLOG_OPTIONS = ["--log-bin=binlog", "--binlog-format=ROW", "--log-slave-updates", "--sync-binlog=1"]
PARALLEL_OPTIONS = ["--slave-parallel-threads=4", "--slave-parallel-mode=optimistic"]


def set_options():
    """What scripts/replicas/set.cnf has, for a command line."""
    with open(os.path.join(ROOT, "scripts/replicas/set.cnf"), encoding="ascii") as file:
        lines = [line.strip() for line in file if not line.startswith(("#", "["))]
    return ["--" + line.replace(" = ", "=") for line in lines if line]


def value(connection, query):
    """Of the first column of the first row."""
    return rows(connection, query)[0][0]


def let_replicate(primary):
    """An account for replicas; nothing more of this connection is logged."""
    rows(primary, "SET sql_log_bin = 0")
    rows(primary, "GRANT REPLICATION SLAVE ON *.* TO repl@127.0.0.1 IDENTIFIED BY 'repl'")


def follow(replica, port):
    """Makes the server a replica of the one at `port`."""
    rows(replica, f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='repl',"
         " MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1")
    rows(replica, "START SLAVE")


def slave_status(connection):
    """SHOW SLAVE STATUS, by its names."""
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        return cursor.fetchone()


def check_slave(connection):
    """No error has stopped the slave threads."""
    status = slave_status(connection)
    for kind in ("SQL", "IO"):
        expect((status[f"Last_{kind}_Errno"], status[f"Last_{kind}_Error"]), (0, ""), f"slave {kind} thread")
    return status


def waits(connection):
    """Who waits for what on the replica."""
    threads = [f"{thread[0]} {thread[4]}: {thread[6]}, {thread[5]} s" for thread in rows(connection, "SHOW FULL PROCESSLIST")]
    return "\n".join(threads + [rows(connection, "SHOW ENGINE Teak STATUS")[0][2]])


def wait_until(connection, condition, what):
    """Polls, and gives up early when the slave has."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        check_slave(connection)
        if time.monotonic() > limit:
            raise AssertionError(f"{what}: not within {PATIENCE} s\n{waits(connection)}")
        time.sleep(0.01)


def catch_up(writer, control):
    """Waits for the replica to have all that the primary has."""
    last = value(writer, "SELECT @@gtid_binlog_pos")
    if value(control, f"SELECT MASTER_GTID_WAIT('{last}', {LIMIT})") != 0:
        status = slave_status(control)
        told = status["Last_SQL_Error"] or status["Last_IO_Error"] or status["Slave_SQL_Running_State"]
        raise AssertionError(f"the replica is at {value(control, 'SELECT @@gtid_slave_pos')} and not at {last} within {LIMIT} s: {told}")


class Pair:
    """A primary, and a replica of it, each in a directory of its own; what was asked for on the command line is in `arguments`."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.port = free_port()
        self.primary = Server(os.path.join(arguments.directory, "primary"), arguments.plugin_dir, self.port)
        self.replica = Server(os.path.join(arguments.directory, "replica"), arguments.plugin_dir)

    def start(self, primary_options, replica_options):
        """Fresh servers, of which one follows the other; with None the replica is neither installed nor started."""
        self.primary.install()
        self.primary.start(primary_options)
        let_replicate(self.primary.connect(autocommit=True))
        if replica_options is not None:
            self.replica.install()
            self.replica.start(replica_options)
            follow(self.replica.connect(autocommit=True), self.port)

    def kill(self):
        """Both."""
        self.replica.kill()
        self.primary.kill()


def main(name, about, cases, options=lambda arguments: (PRIMARY_OPTIONS, REPLICA_OPTIONS), **defaults):
    """Runs `cases`, a generator over a pair that says of each whether it went well, and ends the program. `options` gives those of both servers;
    `defaults` are options of the command line and their values."""
    arguments = parser(about, **defaults).parse_args()
    pair = Pair(arguments)
    outcomes = []
    try:
        pair.start(*options(arguments))
        outcomes.extend(cases(pair))
    finally:
        pair.kill()
    failed = outcomes.count(False)
    print(f"{name}: {len(outcomes) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
