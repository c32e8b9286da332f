#!/usr/bin/env python3
"""Kills a server under load, restarts it and compares what is there with what was acknowledged.

Workloads: bank transfers between accounts, each with a row in a journal; appends with a secondary index and a large text
now and then; appends to a table whose keys are disabled, enabled, added and dropped meanwhile; and loads of so many rows a statement that
their blocks go to the file past the log. Every other round runs with the binary log. Prints 'N passed, N failed', a round each.
"""

import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.asking import rows
from kit.server import attempt
from kit.writers import LOADED_ROWS, Appends, Loads

from rounds import rounds

ACCOUNTS = 200
START_BALANCE = 1000
BANKERS = 4
WRITERS = 2
LOADERS = 2
# Enough that ALTER builds the indexes at the end instead of row by row.
OLD_ROWS = 12_000

SCHEMA = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL, changed INT NOT NULL, KEY (changed), KEY (balance, id))",
    "CREATE TABLE journal (client INT, number INT, source INT, target INT, amount INT, PRIMARY KEY (client, number),"
    " KEY (source), KEY (target, amount))",
    "CREATE TABLE appended (id BIGINT AUTO_INCREMENT PRIMARY KEY, client INT, number INT, note VARCHAR(60), body MEDIUMTEXT,"
    " UNIQUE KEY (client, number), KEY (note))",
    "CREATE TABLE altered (id BIGINT AUTO_INCREMENT PRIMARY KEY, client INT, number INT, note VARCHAR(60), UNIQUE KEY (client, number), KEY (note),"
    " KEY (number))",
    # A unique key in no order: a load looks for it when its entries are written.
    "CREATE TABLE loaded (id BIGINT AUTO_INCREMENT PRIMARY KEY, client INT, number INT, body VARCHAR(300),"
    " code BINARY(16) AS (UNHEX(MD5(CONCAT(client, ' ', number, ' ', body)))) STORED, KEY (number), UNIQUE KEY (code))",
    # And a primary key in no order, for which it is the same; some rows are too long to wait.
    "CREATE TABLE scattered (code BINARY(16) PRIMARY KEY, client INT, number INT, body VARCHAR(3000), KEY (number))",
    "INSERT INTO altered (client, number, note) SELECT -1, seq, MD5(seq) FROM seq_1_to_%d" % OLD_ROWS,
    "INSERT INTO accounts SELECT seq, %d, 0 FROM seq_1_to_%d" % (START_BALANCE, ACCOUNTS),
]

INDEXES = {
    "accounts": (["PRIMARY", "changed", "balance"], "id, balance, changed"),
    "journal": (["PRIMARY", "source", "target"], "client, number, source, target, amount"),
    "loaded": (["PRIMARY", "number", "code"], "id, client, number, MD5(body), code"),
    "scattered": (["PRIMARY", "number"], "code, client, number, MD5(body)"),
    "appended": (["PRIMARY", "client", "note"], "id, client, number, note, MD5(body)"),
}


class Client(threading.Thread):
    """Commits until the server is gone; `acknowledged` is the number of its last acknowledged commit."""

    def __init__(self, server, number, start, seed):
        super().__init__()
        self.connection = server.connect(autocommit=False)
        self.number, self.acknowledged = number, start
        self.random = random.Random(seed)
        self.failure = None

    def run(self):
        try:
            cursor = self.connection.cursor()
            while True:
                if self.step(cursor, self.acknowledged + 1):
                    self.acknowledged += 1
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError, OSError) as error:
            # 2006, 2013: the server was killed, which is the point.
            if error.args and error.args[0] not in (0, 2006, 2013, 2014):
                self.failure = error
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error


class Banker(Client):
    """Moves money and writes it down."""

    def step(self, cursor, number):
        source, target = self.random.sample(range(1, ACCOUNTS + 1), 2)
        amount = self.random.randint(1, 50)
        change = "UPDATE accounts SET balance = balance + %s, changed = changed + 1 WHERE id = %s"
        write = "INSERT INTO journal VALUES (%s, %s, %s, %s, %s)"
        statements = [(change, (-amount, source)), (write, (self.number, number, source, target, amount)), (change, (amount, target))]
        return attempt(self.connection, statements, self.random)


class Writer(Appends, Client):
    """Appends rows."""


class Loader(Loads, Client):
    """Loads rows, and changes and deletes them at times."""

    KEPT, DELETES, CHANGES = 5, 0.5, 0.3
    COPIES = {"scattered": "INSERT INTO scattered SELECT code, client, number, REPEAT(body, IF(id MOD 50, 1, 10)) FROM loaded"
                           " WHERE client = %s AND number = %s ORDER BY id"}


class Alterer(Client):
    """Appends rows, changes the indexes of their table, and copies it: by ALTER, and into another in no order of its keys."""

    CHANGES = ["DISABLE KEYS", "ENABLE KEYS", "ENABLE KEYS", "ADD KEY IF NOT EXISTS extra (note, number)", "DROP KEY IF EXISTS extra",
               "ADD UNIQUE KEY IF NOT EXISTS single (client, number, id)", "DROP KEY IF EXISTS single",
               "COMPRESSION=lz4", "COMPRESSION=zstd COMPRESSION_LEVEL=3", "FORCE, ALGORITHM=COPY"]
    SHUFFLE = "CREATE OR REPLACE TABLE shuffled (PRIMARY KEY (note, id), KEY (id)) SELECT id, client, number, note FROM altered"

    def step(self, cursor, number):
        if self.random.random() < 0.2:
            cursor.execute(f"ALTER TABLE altered {self.random.choice(self.CHANGES)}" if self.random.random() < 0.8 else self.SHUFFLE)
        write = "INSERT INTO altered (client, number, note) VALUES (%s, %s, %s)"
        return attempt(self.connection, [(write, (self.number, number, f"note {self.random.randint(0, 999)}"))], self.random)


def check_numbers(found, clients, what):
    """Acknowledged numbers are there without a gap; at most the one in flight may be there besides."""
    for client in clients:
        count, last = found.get(client.number, (0, 0))
        if count != last:
            raise AssertionError(f"{what}: client {client.number} has {count} rows up to number {last}")
        if not client.acknowledged <= last <= client.acknowledged + 1:
            raise AssertionError(f"{what}: client {client.number} was told {client.acknowledged}, found {last}")
        client.acknowledged = last


def check_altered(connection):
    """Each index that is not disabled agrees with the rows."""
    columns = "id, client, number, note"
    reference = sorted(rows(connection, f"SELECT {columns} FROM altered FORCE INDEX (PRIMARY) WHERE id > 0"))
    enabled = rows(connection, "SELECT index_name, column_name FROM information_schema.statistics"
                   " WHERE table_name = 'altered' AND table_schema = DATABASE() AND comment = '' AND seq_in_index = 1")
    for index, column in enabled:
        content = sorted(rows(connection, f"SELECT {columns} FROM altered FORCE INDEX ({index}) WHERE {column} IS NOT NULL"))
        if content != reference:
            raise AssertionError(f"altered: index {index} has {len(content)} rows, the table {len(reference)}")
    verdict = rows(connection, "CHECK TABLE altered")
    if verdict[-1][3] != "OK":
        raise AssertionError(f"CHECK TABLE altered: {verdict}")
    check_shuffled(connection, {row[0]: row for row in reference})


def check_shuffled(connection, originals):
    """The copy, if it came to its end, has rows of the original; the oldest are all there, nobody changes them."""
    if not rows(connection, "SHOW TABLES LIKE 'shuffled'"):
        return
    for index in ("PRIMARY", "id"):
        copies = rows(connection, f"SELECT id, client, number, note FROM shuffled FORCE INDEX ({index}) WHERE note >= '' AND id > 0")
        wrong = [row for row in copies if originals.get(row[0]) != row]
        if wrong or len(copies) < OLD_ROWS:
            raise AssertionError(f"shuffled: {len(copies)} rows by {index}, of which {len(wrong)} are not those of the original: {wrong[:3]}")


def check_loaded(connection, loaders):
    """Each load is there with all its rows or not at all, in both tables, and those that were acknowledged are."""
    counts, copies = ({(client, number): count for client, number, count in
                       rows(connection, f"SELECT client, number, COUNT(*) FROM {table} FORCE INDEX (PRIMARY) WHERE {key} > 0 GROUP BY client, number")}
                      for table, key in (("loaded", "id"), ("scattered", "LENGTH(code)")))
    if copies != counts:
        raise AssertionError(f"scattered has the loads {copies}, loaded {counts}")
    for (client, number), count in counts.items():
        if count != LOADED_ROWS:
            raise AssertionError(f"loaded: load {number} of client {client} has {count} rows")
    for client in loaders:
        last = max((number for of, number in counts if of == client.number), default=0)
        if not client.acknowledged <= last <= client.acknowledged + 1:
            raise AssertionError(f"loaded: client {client.number} was told {client.acknowledged}, found {last}")
        missing = set(range(max(1, last - client.KEPT + 1), last + 1)) - {number for of, number in counts if of == client.number}
        if missing:
            raise AssertionError(f"loaded: client {client.number} misses loads {sorted(missing)}")
        client.acknowledged = last


def check(server, bankers, writers, alterers, loaders):
    connection = server.connect()
    check_loaded(connection, loaders)
    per_client = "SELECT client, COUNT(*), MAX(number) FROM {} GROUP BY client"
    found = {client: (count, last) for client, count, last in rows(connection, per_client.format("journal"))}
    check_numbers(found, bankers, "journal")
    found = {client: (count, last) for client, count, last in rows(connection, per_client.format("appended"))}
    check_numbers(found, writers, "appended")
    found = {client: (count, last) for client, count, last in rows(connection, per_client.format("altered"))}
    check_numbers(found, alterers, "altered")
    check_altered(connection)
    expected = {account: START_BALANCE for account in range(1, ACCOUNTS + 1)}
    changes = {account: 0 for account in range(1, ACCOUNTS + 1)}
    for source, target, amount in rows(connection, "SELECT source, target, amount FROM journal"):
        expected[source] -= amount
        expected[target] += amount
        changes[source] += 1
        changes[target] += 1
    for account, balance, changed in rows(connection, "SELECT id, balance, changed FROM accounts"):
        if (balance, changed) != (expected[account], changes[account]):
            raise AssertionError(f"account {account} is {(balance, changed)}, the journal says {(expected[account], changes[account])}")
    for table, (indexes, columns) in INDEXES.items():
        reference = None
        for index in indexes:
            content = sorted(rows(connection, f"SELECT {columns} FROM {table} FORCE INDEX ({index}) WHERE {leading(table, index)} IS NOT NULL"))
            reference = content if reference is None else reference
            if content != reference:
                raise AssertionError(f"{table}: index {index} disagrees with the rows")
        verdict = rows(connection, f"CHECK TABLE {table}")
        if verdict[-1][3] != "OK":
            raise AssertionError(f"CHECK TABLE {table}: {verdict}")
    connection.close()


def leading(table, index):
    first = {("accounts", "PRIMARY"): "id", ("journal", "PRIMARY"): "client", ("appended", "PRIMARY"): "id",
             ("loaded", "PRIMARY"): "id", ("scattered", "PRIMARY"): "code"}
    return first.get((table, index), index)


def check_structures(server, teak):
    """Every structure in memory and in the files is whole, as of the crash that was just now."""
    found = subprocess.run([teak, "check", server.data], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise AssertionError(f"teak check: {found.stdout}{found.stderr}")


def one_round(server, teak, number, acknowledged, random_source):
    options = ["--teak-flush-log-at-trx-commit=1"]
    if number % 2:
        options += ["--log-bin=binlog", "--binlog-format=ROW", "--server-id=1", "--sync-binlog=1"]
    seconds = server.start(options)
    seed = random_source.random()
    bankers = [Banker(server, n, acknowledged.get(n, 0), f"{seed} {n}") for n in range(BANKERS)]
    writers = [Writer(server, n, acknowledged.get(n, 0), f"{seed} {n}") for n in range(BANKERS, BANKERS + WRITERS)]
    alterers = [Alterer(server, n, acknowledged.get(n, 0), f"{seed} {n}") for n in range(BANKERS + WRITERS, BANKERS + WRITERS + 1)]
    others = BANKERS + WRITERS + 1
    loaders = [Loader(server, n, acknowledged.get(n, 0), f"{seed} {n}") for n in range(others, others + LOADERS)]
    clients = bankers + writers + alterers + loaders
    for client in clients:
        client.start()
    time.sleep(0.3 + random_source.random() * 1.7)
    server.kill()
    for client in clients:
        client.join()
    for client in clients:
        if client.failure is not None:
            raise AssertionError(f"client {client.number}: {client.failure!r}")
    server.start(options)
    check(server, bankers, writers, alterers, loaders)
    server.kill()
    check_structures(server, teak)
    commits = 0
    for client in clients:
        commits += client.acknowledged - acknowledged.get(client.number, 0)
        acknowledged[client.number] = client.acknowledged
    return f"{commits} commits, start {seconds:.1f} s"


if __name__ == "__main__":
    sys.exit(rounds(__doc__, 20, SCHEMA, one_round))
