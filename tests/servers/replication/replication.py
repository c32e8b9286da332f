#!/usr/bin/env python3
"""Kills a replica while it applies transactions and checks that no transaction is applied twice or left out.

With gtid_pos_auto_engines=teak the server keeps the replica's position in a Teak table, so a transaction over Teak tables
and its position commit as one. Every transaction of the workload is one GTID and writes one row into a journal without
any key; therefore a replica's journal has as many rows as its position says, after every crash and in every snapshot.
A round kills the replica twice: once restarted without and once with its slave threads. Rounds differ in parallel
replication (every other) and in the replica's own binary log (every other pair). Prints 'N passed, N failed': a round
each, the comparison with the primary, the position table, and that no lock wait ran into its time limit.
"""

import os
import random
import sys
import threading
import time

import pymysql

from kit.asking import expect, rows
from kit.options import parser, seed
from kit.replicas import BINLOG_OPTIONS, PARALLEL_OPTIONS, PATIENCE, PRIMARY_OPTIONS, REPLICA_OPTIONS, check_slave, follow, let_replicate, value, wait_until, waits
from kit.server import Server, attempt, free_port

# Few, so that transactions meet each other and optimistic replication has to undo some.
ACCOUNTS = 20
START_BALANCE = 1000
CLIENTS = 3
# Transactions that the clients commit during a round.
QUOTA = 600

SCHEMA = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL, changed INT NOT NULL, KEY (changed), KEY (balance, id))",
    # No key at all: a transaction applied twice shows as two rows.
    "CREATE TABLE journal (client INT, number INT, source INT, target INT, amount INT)",
    # A hidden primary key, but an index by which the replica finds the rows to change.
    "CREATE TABLE items (client INT, number INT, version INT, note VARCHAR(200), KEY (client, number), KEY (note))",
    "INSERT INTO accounts SELECT seq, %d, 0 FROM seq_1_to_%d" % (START_BALANCE, ACCOUNTS),
]
TABLES = ("accounts", "journal", "items")

POSITION_TABLE = "mysql.gtid_slave_pos_Teak"


class Quota:
    """How many transactions the clients may still begin."""

    def __init__(self):
        self.left, self.ended, self.changed = 0, False, threading.Condition()

    def grant(self, transactions):
        with self.changed:
            self.left += transactions
            self.changed.notify_all()

    def end(self):
        """Lets the clients use up what is left and end."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def take(self):
        """Waits for a transaction to do; False if there will be none."""
        with self.changed:
            self.changed.wait_for(lambda: self.left or self.ended)
            if self.left:
                self.left -= 1
                return True
            return False


class Client(threading.Thread):
    """Commits numbered transactions on the primary."""

    def __init__(self, server, number, quota, seed):
        super().__init__(daemon=True)
        self.connection = server.connect(autocommit=False)
        self.number, self.quota, self.committed = number, quota, 0
        self.random = random.Random(seed)
        self.failure = None

    def run(self):
        try:
            while self.quota.take():
                while not attempt(self.connection, self.transaction(self.committed + 1), self.random):
                    pass
                self.committed += 1
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error

    def transaction(self, number):
        """A transfer, written down; a new item, a change of a recent one, and sometimes the end of an old one."""
        source, target = self.random.sample(range(1, ACCOUNTS + 1), 2)
        amount = self.random.randint(1, 50)
        change = "UPDATE accounts SET balance = balance + %s, changed = changed + 1 WHERE id = %s"
        statements = [
            (change, (-amount, source)),
            ("INSERT INTO journal VALUES (%s, %s, %s, %s, %s)", (self.number, number, source, target, amount)),
            (change, (amount, target)),
            ("INSERT INTO items VALUES (%s, %s, 0, %s)", (self.number, number, "n" * self.random.randint(0, 200))),
            ("UPDATE items SET version = version + 1, note = CONCAT('v', version) WHERE client = %s AND number = %s",
             (self.number, number - self.random.randint(1, 20))),
        ]
        if self.random.random() < 0.5:
            statements.append(
                ("DELETE FROM items WHERE client = %s AND number = %s", (self.number, number - self.random.randint(1, 40))))
        return statements


def sequence(position):
    """The sequence number of a position with one domain."""
    return int(position.rpartition("-")[2] or 0)


def timeouts(connection):
    return int(rows(connection, "SHOW GLOBAL STATUS LIKE 'Teak_row_lock_timeouts'")[0][1])


class Test:
    """The two servers and what is known of them."""

    def __init__(self, arguments):
        self.random = random.Random(arguments.seed)
        self.port = free_port()
        self.primary = Server(os.path.join(arguments.directory, "primary"), arguments.plugin_dir, self.port)
        self.replica = Server(os.path.join(arguments.directory, "replica"), arguments.plugin_dir)
        self.quota = Quota()
        self.clients = []
        # The primary's sequence number when the journal was still empty.
        self.base = None
        # The replica's sequence number when the position table was in use.
        self.set_up_to = None
        # Lock waits of the replica that ran into the time limit.
        self.timeouts = 0

    def set_up(self):
        """The schema and the first transactions, replicated; the position table is there."""
        self.primary.install()
        self.replica.install()
        self.primary.start(PRIMARY_OPTIONS)
        connection = self.primary.connect(autocommit=True)
        for statement in SCHEMA:
            rows(connection, statement)
        self.base = sequence(value(connection, "SELECT @@gtid_binlog_pos"))
        let_replicate(connection)
        connection.close()
        seed = self.random.random()
        self.clients = [Client(self.primary, n, self.quota, f"{seed} {n}") for n in range(CLIENTS)]
        for client in self.clients:
            client.start()
        self.quota.grant(100)

        self.replica.start(REPLICA_OPTIONS)
        connection = self.replica.connect(autocommit=True)
        follow(connection, self.port)
        # The server creates it in the background, and no transaction uses it before.
        wait_until(connection, lambda: self.position_engine(connection) is not None, POSITION_TABLE)
        expect(self.position_engine(connection), "Teak", f"engine of {POSITION_TABLE}")
        def in_use():
            self.quota.grant(1)
            return value(connection, f"SELECT COUNT(*) FROM {POSITION_TABLE}") > 0
        wait_until(connection, in_use, f"rows in {POSITION_TABLE}")
        self.set_up_to = value(connection, f"SELECT MAX(seq_no) FROM {POSITION_TABLE}")
        self.replica.stop()

    @staticmethod
    def position_engine(connection):
        found = rows(connection, "SELECT engine FROM information_schema.tables"
                     " WHERE table_schema = 'mysql' AND table_name = 'gtid_slave_pos_Teak'")
        return found[0][0] if found else None

    def check_snapshot(self):
        """In one snapshot, the position and the balances are those of the journal. Returns the position."""
        connection = self.replica.connect(autocommit=False)
        rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        position = value(connection, f"SELECT MAX(seq_no) FROM {POSITION_TABLE}")
        journal = rows(connection, "SELECT client, number, source, target, amount FROM journal")
        accounts = rows(connection, "SELECT id, balance, changed FROM accounts")
        connection.close()
        expect(len(journal), position - self.base, f"rows of the journal at position {position}")
        expect(len(set(journal)), len(journal), "different rows of the journal")
        for client in range(CLIENTS):
            numbers = sorted(row[1] for row in journal if row[0] == client)
            expect(numbers, list(range(1, len(numbers) + 1)), f"transactions of client {client}")
        balances = {account: [START_BALANCE, 0] for account in range(1, ACCOUNTS + 1)}
        for _, _, source, target, amount in journal:
            for account, change in ((source, -amount), (target, amount)):
                balances[account][0] += change
                balances[account][1] += 1
        expect({account: [balance, changed] for account, balance, changed in accounts}, balances, "accounts")
        return position

    def check_stopped(self, connection, with_binlog):
        """After a start without slave threads, everything that tells the position tells the same."""
        position = self.check_snapshot()
        expect(sequence(value(connection, "SELECT @@gtid_slave_pos")), position, "gtid_slave_pos")
        if with_binlog:
            expect(sequence(value(connection, "SELECT @@gtid_binlog_pos")), position, "gtid_binlog_pos")
        return position

    def applied(self, connection):
        return sequence(value(connection, "SELECT @@gtid_slave_pos"))

    def run_and_kill(self, connection, start, transactions):
        """Kills the replica at a random moment after it has applied so many transactions since position `start`."""
        wait_until(connection, lambda: self.applied(connection) >= start + transactions, f"{transactions} transactions from {start}")
        foreign = rows(connection, "SHOW GLOBAL STATUS LIKE 'Transactions_gtid_foreign_engine'")
        expect(int(foreign[0][1]), 0, "transactions with the position in another engine")
        self.timeouts += timeouts(connection)
        retried = int(rows(connection, "SHOW GLOBAL STATUS LIKE 'Slave_retried_transactions'")[0][1])
        time.sleep(self.random.random() * 0.1)
        self.replica.kill()
        return retried

    def one_round(self, number):
        parallel, with_binlog = number % 2 == 1, number // 2 % 2 == 1
        options = REPLICA_OPTIONS + (PARALLEL_OPTIONS if parallel else []) + (BINLOG_OPTIONS if with_binlog else [])
        self.replica.start(options + ["--skip-slave-start"])
        connection = self.replica.connect(autocommit=True)
        # The last round may have ended with another choice about the binary log.
        start = self.check_stopped(connection, with_binlog=False)
        rows(connection, "START SLAVE")
        self.quota.grant(QUOTA)
        retried = self.run_and_kill(connection, start, self.random.randint(1, QUOTA // 2))

        recovery = self.replica.start(options + ["--skip-slave-start"])
        connection = self.replica.connect(autocommit=True)
        first = self.check_stopped(connection, with_binlog)
        rows(connection, "START SLAVE")
        self.quota.grant(QUOTA)
        retried += self.run_and_kill(connection, first, self.random.randint(1, QUOTA // 2))

        self.quota.grant(QUOTA)
        # This time the slave threads start by themselves.
        self.replica.start(options)
        second = self.check_snapshot()
        connection = self.replica.connect(autocommit=True)
        wait_until(connection, lambda: self.applied(connection) > second, f"progress from {second}")
        check_slave(connection)
        # In order, as the next round may change what coordinates commits; but without waiting for the primary's last.
        self.replica.stop()
        self.check_clients()
        return (f"{'parallel' if parallel else 'serial'}, {'own binary log' if with_binlog else 'no binary log'}:"
                f" killed at {first - start} and {second - start} transactions or a few before, {retried} retried,"
                f" recovery {recovery:.1f} s")

    def check_clients(self):
        for client in self.clients:
            if client.failure is not None:
                raise AssertionError(f"client {client.number}: {client.failure!r}")

    def compare(self):
        """Once the replica has everything, it has just what the primary has."""
        self.quota.end()
        for client in self.clients:
            client.join(PATIENCE)
            expect(client.is_alive(), False, f"client {client.number} is running")
        self.check_clients()
        self.replica.start(REPLICA_OPTIONS + PARALLEL_OPTIONS)
        primary, replica = self.primary.connect(autocommit=True), self.replica.connect(autocommit=True)
        last = value(primary, "SELECT @@gtid_binlog_pos")
        expect(sequence(last) - self.base, sum(client.committed for client in self.clients), "transactions in the primary's binary log")
        if value(replica, f"SELECT MASTER_GTID_WAIT('{last}', {PATIENCE})") != 0:
            raise AssertionError(f"not at {last} within {PATIENCE} s but at {self.applied(replica)}\n{waits(replica)}")
        status = check_slave(replica)
        expect((status["Slave_IO_Running"], status["Slave_SQL_Running"]), ("Yes", "Yes"), "slave threads")
        expect(self.check_snapshot(), sequence(last), "position in the end")
        for table in TABLES:
            expect(sorted(rows(replica, f"SELECT * FROM {table}")), sorted(rows(primary, f"SELECT * FROM {table}")), f"rows of {table}")
            checksum = f"CHECKSUM TABLE {table}"
            expect(rows(replica, checksum), rows(primary, checksum), checksum)
            for server in (primary, replica):
                expect(rows(server, f"CHECK TABLE {table}")[-1][3], "OK", f"CHECK TABLE {table}")
        self.timeouts += timeouts(replica)
        counts = ", ".join(f"{value(replica, f'SELECT COUNT(*) FROM {table}')} rows in {table}" for table in TABLES)
        return f"equal at {last}: {counts}"

    def check_position_table(self):
        """The position was kept in Teak's table, and in no other since that was made."""
        connection = self.replica.connect(autocommit=True)
        expect(self.position_engine(connection), "Teak", f"engine of {POSITION_TABLE}")
        newest = value(connection, f"SELECT MAX(seq_no) FROM {POSITION_TABLE}")
        expect(newest, self.applied(connection), f"position in {POSITION_TABLE}")
        other = value(connection, "SELECT COALESCE(MAX(seq_no), 0) FROM mysql.gtid_slave_pos")
        if other > self.set_up_to:
            raise AssertionError(f"mysql.gtid_slave_pos has position {other}, from after {POSITION_TABLE} was in use")
        expect(rows(connection, f"CHECK TABLE {POSITION_TABLE}")[-1][3], "OK", f"CHECK TABLE {POSITION_TABLE}")
        return f"{POSITION_TABLE} holds {newest}, mysql.gtid_slave_pos at most {other}"

    def check_timeouts(self):
        """The server ends each deadlock of replication by rolling back the later transaction; time limits are not for that."""
        expect(self.timeouts, 0, "lock waits of the replica that ran into teak_lock_wait_timeout")
        return "none"

    def end(self):
        self.replica.kill()
        self.primary.kill()


def main():
    arguments = parser(__doc__, rounds=6).parse_args()
    arguments.seed = seed()
    test = Test(arguments)
    passed = failed = 0
    try:
        test.set_up()
        for number in range(arguments.rounds):
            print(f"round {number}: {test.one_round(number)}", flush=True)
            passed += 1
        for step in (test.compare, test.check_position_table, test.check_timeouts):
            print(f"{step.__name__}: {step()}", flush=True)
            passed += 1
    except (AssertionError, RuntimeError, pymysql.err.MySQLError) as error:
        print(f"FAILED: {error}\n--- primary\n{test.primary.log_end()}\n--- replica\n{test.replica.log_end()}")
        failed = 1
    finally:
        test.end()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
