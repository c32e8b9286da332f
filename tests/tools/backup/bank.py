"""Clients over Teak and InnoDB whose commits are told from what a copy of their server has; and the check of such a copy.

Transactions are numbered, client by client, and leave their numbers: a copy has to have all that was acknowledged before
it was made, nothing that was not begun by then, and no half of anything.
"""

import random
import threading
import time

import pymysql

from kit.server import attempt, conflicted
from kit.writers import LOADED_ROWS, Appends, Loads

ACCOUNTS = 100
START_BALANCE = 1000
MADE_ROWS = 500
BOTH = ("Teak", "InnoDB")
DECISIONS = ("COMMIT", "ROLLBACK")
# What a statement is told that needs a checkpoint while the engine's files are being copied.
CHECKPOINTS_PAUSED = 1296

ACCOUNT_COLUMNS = "(id INT PRIMARY KEY, balance BIGINT NOT NULL, changed INT NOT NULL, KEY (changed), KEY (balance, id))"
JOURNAL_COLUMNS = "(client INT, number INT, source INT, target INT, amount INT, PRIMARY KEY (client, number), KEY (source), KEY (target, amount))"
SCHEMA = [
    *(f"CREATE TABLE accounts_{engine} {ACCOUNT_COLUMNS} ENGINE={engine}" for engine in BOTH),
    *(f"CREATE TABLE journal_{engine} {JOURNAL_COLUMNS} ENGINE={engine}" for engine in BOTH),
    *(f"CREATE TABLE pledged_{engine} (id INT PRIMARY KEY, KEY (id)) ENGINE={engine}" for engine in BOTH),
    *(f"INSERT INTO accounts_{engine} SELECT seq, {START_BALANCE}, 0 FROM seq_1_to_{ACCOUNTS}" for engine in BOTH),
    "CREATE TABLE appended (id BIGINT AUTO_INCREMENT PRIMARY KEY, client INT, number INT, note VARCHAR(60), body MEDIUMTEXT,"
    " UNIQUE KEY (client, number), KEY (note)) ENGINE=Teak",
    "CREATE TABLE loaded (id BIGINT AUTO_INCREMENT PRIMARY KEY, client INT, number INT, body VARCHAR(300), KEY (number)) ENGINE=Teak",
    "CREATE TABLE altered (id BIGINT AUTO_INCREMENT PRIMARY KEY, client INT, number INT, note VARCHAR(60), UNIQUE KEY (client, number),"
    " KEY (note)) ENGINE=Teak",
    "CREATE TABLE emptied (id INT PRIMARY KEY, generation INT, KEY (generation)) ENGINE=Teak",
    "CREATE TABLE one (tag INT PRIMARY KEY) ENGINE=Teak",
    "CREATE TABLE two (tag INT PRIMARY KEY) ENGINE=Teak",
    "INSERT INTO one VALUES (1)",
    "INSERT INTO two VALUES (2)",
]


def make_tables(server, more=()):
    """What the clients need."""
    connection = server.connect(autocommit=True)
    for statement in [*SCHEMA, *more]:
        rows(connection, statement)
    connection.close()


def rows(connection, query, values=None):
    """All rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()


class Client(threading.Thread):
    """Commits numbered transactions until told to stop; `acknowledged` is the last that it knows to be committed."""

    def __init__(self, server, number, seed):
        super().__init__(daemon=True)
        self.connection = server.connect(autocommit=False)
        self.number, self.acknowledged, self.stopping, self.failure = number, 0, False, None
        self.random = random.Random(f"{seed} {number}")

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                while not self.stopping:
                    if self.step(cursor, self.acknowledged + 1):
                        self.acknowledged += 1
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error


class Banker(Client):
    """Moves money and writes it down, the same in each of its engines."""

    def __init__(self, server, number, seed, engines):
        super().__init__(server, number, seed)
        self.engines = engines

    def step(self, cursor, number):
        source, target = self.random.sample(range(1, ACCOUNTS + 1), 2)
        amount = self.random.randint(1, 50)
        statements = []
        for engine in self.engines:
            change = f"UPDATE accounts_{engine} SET balance = balance + %s, changed = changed + 1 WHERE id = %s"
            statements += [
                (change, (-amount, source)),
                (f"INSERT INTO journal_{engine} VALUES (%s, %s, %s, %s, %s)", (self.number, number, source, target, amount)),
                (change, (amount, target)),
            ]
        return attempt(self.connection, statements, self.random)


class Writer(Appends, Client):
    """Appends rows."""


class Loader(Loads, Client):
    """Loads rows and deletes old ones."""


class Pledger(Client):
    """Prepares XA transactions over its engines, and decides each later: the even ones are committed."""

    def __init__(self, server, number, seed, engines):
        super().__init__(server, number, seed)
        self.engines = engines
        # Up to which number a decision was begun, and acknowledged.
        self.deciding = self.decided = 0

    def step(self, cursor, number):
        for statement in ("XA START 'pledge{0}'", *(f"INSERT INTO pledged_{engine} VALUES ({{0}})" for engine in self.engines),
                          "XA END 'pledge{0}'", "XA PREPARE 'pledge{0}'"):
            cursor.execute(statement.format(number))
        self.acknowledged = number
        time.sleep(self.random.random() / 20)
        self.deciding = number
        cursor.execute(f"XA {DECISIONS[number % 2]} 'pledge{number}'")
        self.decided = number
        return False


class Alterer(Client):
    """Changes definitions, and appends a row after each change."""

    def step(self, cursor, number):
        change = self.random.choice([self.alter, self.empty, self.make, self.swap])
        try:
            change(cursor, number)
        except pymysql.err.MySQLError as error:
            if error.args[0] != CHECKPOINTS_PAUSED and not conflicted(self.connection, error):
                raise
        write = "INSERT INTO altered (client, number, note) VALUES (%s, %s, %s)"
        return attempt(self.connection, [(write, (self.number, number, f"note {self.random.randint(0, 999)}"))], self.random)

    def alter(self, cursor, _):
        cursor.execute("ALTER TABLE altered " + self.random.choice([
            "ADD KEY IF NOT EXISTS extra (note, number)", "DROP KEY IF EXISTS extra", "FORCE, ALGORITHM=COPY", "ADD COLUMN IF NOT EXISTS c INT",
            "DROP COLUMN IF EXISTS c", "COMPRESSION=lz4", "COMPRESSION=zstd"]))

    def empty(self, cursor, number):
        cursor.execute("TRUNCATE TABLE emptied")
        cursor.execute(f"INSERT INTO emptied SELECT seq, {number} FROM seq_1_to_{MADE_ROWS}")
        self.connection.commit()

    def make(self, cursor, number):
        cursor.execute(f"CREATE OR REPLACE TABLE made_{number % 5} (PRIMARY KEY (id), KEY (v)) ENGINE=Teak"
                       f" SELECT seq AS id, seq % 10 AS v FROM seq_1_to_{MADE_ROWS}")
        cursor.execute(f"DROP TABLE IF EXISTS made_{(number + 2) % 5}")

    def swap(self, cursor, _):
        cursor.execute("RENAME TABLE one TO three, two TO one, three TO two")


class Workload:
    """All clients of a server, running. `engines`: those of each banker; `pledged`: those of XA transactions, if there are any."""

    def __init__(self, server, seed, engines=(BOTH, BOTH, ("Teak",)), pledged=BOTH):
        self.bankers = [Banker(server, number, seed, these) for number, these in enumerate(engines)]
        self.writers = [Writer(server, 3, seed), Writer(server, 4, seed)]
        self.loader, self.alterer, self.pledger = Loader(server, 5, seed), Alterer(server, 6, seed), None
        self.clients = [*self.bankers, *self.writers, self.loader, self.alterer]
        if pledged:
            self.pledger = Pledger(server, 7, seed, pledged)
            self.clients.append(self.pledger)
        for client in self.clients:
            client.start()

    def state(self):
        """What is acknowledged now, for `check`; raises what has ended a client."""
        for client in self.clients:
            if client.failure is not None:
                raise AssertionError(f"{type(client).__name__} {client.number}: {client.failure!r}") from client.failure
        state = {client.number: client.acknowledged for client in self.clients}
        return state | ({"deciding": self.pledger.deciding, "decided": self.pledger.decided} if self.pledger else {})

    def wait_for_commits(self, more=20, limit=300.0):
        """Until each client has committed some more."""
        began, start = time.monotonic(), self.state()
        while any(self.state()[client.number] < start[client.number] + (more if client in self.bankers else 1) for client in self.clients):
            if time.monotonic() - began > limit:
                raise AssertionError(f"in {limit} s the clients came from {start} to {self.state()} only")
            time.sleep(0.02)

    def stop(self):
        """Lets each client end what it does."""
        for client in self.clients:
            client.stopping = True
        for client in self.clients:
            client.join(300)
            if client.is_alive():
                raise AssertionError(f"{type(client).__name__} {client.number} does not end")
            client.connection.close()
        return self.state()

    def check(self, server, before, after):
        """What `server` has was committed between the states `before` and `after`: what was acknowledged in the first is there, and what had
        not begun in the second is not. Changes the data: XA transactions are decided."""
        connection = server.connect(autocommit=True)
        try:
            if self.pledger:
                check_pledges(connection, before, after, self.pledger)
            for client in self.bankers:
                for engine in client.engines:
                    check_numbers(connection, f"journal_{engine}", client, before, after)
            for client in self.writers:
                check_numbers(connection, "appended", client, before, after)
            check_numbers(connection, "altered", self.alterer, before, after)
            check_loads(connection, self.loader, before, after)
            check_balances(connection, [client.number for client in self.bankers if client.engines == BOTH])
            check_definitions(connection)
            check_tables(connection)
        finally:
            connection.close()


def within(what, found, before, after):
    """Between what was acknowledged before, and what was acknowledged or under way after."""
    if not before <= found <= after + 1:
        raise AssertionError(f"{what}: {found} is there; {before} was acknowledged before, {after} after")


def check_numbers(connection, table, client, before, after):
    """The numbers of one client are there without a gap."""
    (count, last), = rows(connection, f"SELECT COUNT(*), COALESCE(MAX(number), 0) FROM {table} WHERE client = {client.number}")
    if count != last:
        raise AssertionError(f"{table}: client {client.number} has {count} rows up to number {last}")
    within(f"{table} of client {client.number}", last, before[client.number], after[client.number])


def check_loads(connection, loader, before, after):
    """Each load is there with all its rows or not at all."""
    counts = dict(rows(connection, "SELECT number, COUNT(*) FROM loaded FORCE INDEX (PRIMARY) WHERE id > 0 GROUP BY number"))
    last = max(counts, default=0)
    within("loaded", last, before[loader.number], after[loader.number])
    expected = {number: LOADED_ROWS for number in range(max(1, last - loader.KEPT + 1), last + 1)}
    if counts != expected:
        raise AssertionError(f"loaded: found {counts}, not {expected}")


def check_balances(connection, of_both):
    """Accounts are what the journal of their engine says; what both engines were told, both have."""
    for engine in BOTH:
        expected = {account: [START_BALANCE, 0] for account in range(1, ACCOUNTS + 1)}
        for source, target, amount in rows(connection, f"SELECT source, target, amount FROM journal_{engine}"):
            for account, change in ((source, -amount), (target, amount)):
                expected[account][0] += change
                expected[account][1] += 1
        found = {account: [balance, changed] for account, balance, changed in rows(connection, f"SELECT id, balance, changed FROM accounts_{engine}")}
        wrong = {account: (found.get(account), expected[account]) for account in expected if found.get(account) != expected[account]}
        if wrong or len(found) != ACCOUNTS:
            raise AssertionError(f"accounts_{engine}: found, and expected from the journal: {wrong}")
    journals = [[row for row in rows(connection, f"SELECT * FROM journal_{engine} ORDER BY client, number") if row[0] in of_both]
                for engine in BOTH]
    if journals[0] != journals[1]:
        different = set(journals[0]) ^ set(journals[1])
        raise AssertionError(f"one of Teak and InnoDB lacks {sorted(different)[:5]}")


def check_pledges(connection, before, after, pledger):
    """What was prepared and not decided is prepared in all engines: it can be committed and rolled back."""
    number = pledger.number
    prepared = sorted(int(xid[3].removeprefix(b"pledge")) for xid in rows(connection, "XA RECOVER"))
    # InnoDB does not write an XA ROLLBACK at once: what was rolled back right before may be prepared again.
    forgotten = [one for one in prepared if one <= before["decided"] and DECISIONS[one % 2] == "ROLLBACK" and "InnoDB" in pledger.engines]
    open_ones = [one for one in prepared if one not in forgotten]
    if before[number] > after["deciding"] and open_ones != [before[number]]:
        raise AssertionError(f"XA RECOVER has {prepared}; {before[number]} was prepared and is not decided")
    if len(open_ones) > 1 or any(not before["decided"] < one <= after[number] + 1 for one in open_ones):
        raise AssertionError(f"XA RECOVER has {prepared}; before {before}, after {after}")
    for one in prepared:
        # A decision that was begun may have come to one of the engines: whoever coordinates repeats it. So may a
        # PREPARE that was not acknowledged, and then the other has nothing to commit.
        is_known = one <= before[number] or any(rows(connection, f"SELECT 1 FROM pledged_{engine} WHERE id = {one}") for engine in pledger.engines)
        decision = DECISIONS[one % 2] if one <= after["deciding"] else random.choice(DECISIONS)
        rows(connection, f"XA {decision if is_known else 'ROLLBACK'} 'pledge{one}'")
    found = [{row[0] for row in rows(connection, f"SELECT id FROM pledged_{engine}")} for engine in pledger.engines]
    if found[0] != found[-1]:
        raise AssertionError(f"pledges in one of Teak and InnoDB only: {sorted(found[0] ^ found[-1])}")
    settled = {one for one in found[0] if one <= before["decided"]}
    expected = {one for one in range(2, before["decided"] + 1, 2)}
    if settled != expected:
        raise AssertionError(f"pledges that were decided: missing {sorted(expected - settled)}, rolled back {sorted(settled - expected)}")
    within("pledges", max([*found[0], *prepared, before["decided"]]), before["decided"], after[number])


def check_definitions(connection):
    """Tables that were emptied, made and renamed are as one of these statements has left them."""
    tables = {row[0] for row in rows(connection, "SHOW TABLES")}
    generations = rows(connection, "SELECT generation, COUNT(*) FROM emptied GROUP BY generation")
    if len(generations) > 1 or any(count != MADE_ROWS for _, count in generations):
        raise AssertionError(f"emptied: generations and their rows: {generations}")
    for table in sorted(name for name in tables if name.startswith("made_")):
        counts = rows(connection, f"SELECT COUNT(*), SUM(v) FROM {table}")[0]
        if counts[0] != MADE_ROWS:
            raise AssertionError(f"{table} has {counts[0]} rows, not {MADE_ROWS}")
    tags = [rows(connection, f"SELECT tag FROM {table}") for table in ("one", "two")]
    if "three" in tables or sorted(tags) != [((1,),), ((2,),)]:
        raise AssertionError(f"one and two have {tags}; tables: {sorted(tables)}")


def check_tables(connection):
    """Indexes agree with rows, and every structure is whole."""
    for (table,) in rows(connection, "SHOW TABLES"):
        verdict = rows(connection, f"CHECK TABLE {table} EXTENDED")
        if verdict[-1][3] != "OK":
            raise AssertionError(f"CHECK TABLE {table}: {verdict}")
