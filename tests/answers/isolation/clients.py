"""Clients that append to lists and read them at the same time, and note what they saw."""

import itertools
import random
import threading
import time

import pymysql

from history import ABORTED, COMMITTED, UNKNOWN, Append, Read, Transaction

# Lists that are in use at a time, and elements after which another takes the place of one.
WINDOW = 6
FULL = 40
# Changed since the snapshot, lock wait, deadlock, duplicate (of a place), definition changed; under DDL also: metadata
# lock, table is gone for a moment.
CONFLICTS = {1020, 1205, 1213, 1062, 1412}
GONE = {0, 2002, 2003, 2006, 2013, 2014, 1053, 1927}


class Keys:
    """Which lists are in use. They change, so that none grows for ever."""

    def __init__(self):
        self.latch = threading.Lock()
        self.window = list(range(1, WINDOW + 1))
        self.sizes = dict.fromkeys(self.window, 0)
        self.elements = itertools.count(1)

    def any(self, chance):
        """A list in use."""
        return chance.choice(self.window)

    def appended(self, key):
        """Counts, and puts a new list in the place of a full one."""
        with self.latch:
            self.sizes[key] += 1
            if self.sizes[key] == FULL:
                self.window[self.window.index(key)] = max(self.sizes) + 1
                self.sizes[max(self.sizes) + 1] = 0

    def range(self):
        """The first and the last list in use."""
        with self.latch:
            return min(self.window), max(self.window)

    def all(self):
        """All lists that have ever been in use."""
        with self.latch:
            return sorted(self.sizes)


class Client(threading.Thread):
    """One connection with some settings, until `stop`; connects again when the server has gone. With `waits`, some snapshots are old when they are used."""

    def __init__(self, number, server, lists, keys, seed, stop, settings, waits):
        super().__init__(daemon=True)
        self.number, self.server, self.lists, self.keys = number, server, lists, keys
        self.chance = random.Random(seed)
        self.stop, self.settings, self.waits = stop, settings, waits
        self.transactions, self.failure, self.errors = [], None, {}

    def run(self):
        while not self.stop.is_set():
            try:
                connection = self.server.connect(autocommit=True)
            except (pymysql.err.OperationalError, OSError):
                self.stop.wait(0.05)
                continue
            try:
                self.serve(connection)
            except Exception as error:  # pylint: disable=broad-except
                self.failure = error
                return
            finally:
                connection.close()

    def serve(self, connection):
        """Transactions until the server is gone."""
        cursor = connection.cursor()
        try:
            for setting in self.settings:
                cursor.execute(f"SET SESSION {setting}")
            while not self.stop.is_set():
                self.transaction(cursor)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
            if not error.args or error.args[0] not in GONE:
                raise

    def transaction(self, cursor):
        """One transaction, noted with its outcome."""
        done = Transaction(self.number, began=time.monotonic())
        self.transactions.append(done)
        try:
            if self.waits and self.chance.random() < 0.3:
                # A snapshot that has not touched the table keeps nobody from changing it.
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                cursor.execute(f"DO SLEEP({self.chance.random() * 0.3})")
            else:
                cursor.execute("BEGIN")
            for _ in range(self.chance.randint(1, 5)):
                self.operation(cursor, done)
            if self.chance.random() < 0.05:
                cursor.execute("ROLLBACK")
                return
            # From here on nobody knows, until the answer comes.
            done.outcome = UNKNOWN
            cursor.execute("COMMIT")
            done.ended, done.outcome = time.monotonic(), COMMITTED
        except (pymysql.err.OperationalError, pymysql.err.IntegrityError, pymysql.err.InternalError, pymysql.err.ProgrammingError) as error:
            code = error.args[0]
            if code not in CONFLICTS:
                raise
            done.outcome = ABORTED
            self.errors[code] = self.errors.get(code, 0) + 1
            cursor.execute("ROLLBACK")

    def operation(self, cursor, done):
        """An append, a read of one list or of several, or an append that is taken back."""
        key, kind = self.keys.any(self.chance), self.chance.random()
        if kind < 0.45:
            self.append(cursor, done, key)
        elif kind < 0.5:
            cursor.execute("SAVEPOINT early")
            self.append(cursor, done, key, undone=True)
            cursor.execute("ROLLBACK TO SAVEPOINT early")
        elif kind < 0.85:
            began, locking = time.monotonic(), self.locking()
            done.operations.append(Read(key, self.lists.read(cursor, key, locking), began, locking))
        else:
            self.read_range(cursor, done)

    def append(self, cursor, done, key, undone=False):
        """Noted before it is sent: who fails in the middle may have written. What is read for an append that is taken back is not noted: if nothing
        came before the savepoint, the server rolls the engine's whole transaction back with it, locks and snapshot too (also InnoDB's)."""
        made = Append(key, next(self.keys.elements), undone)
        done.operations.append(made)
        self.lists.append(cursor, key, made.element, self.chance.choice, lambda read: undone or done.operations.insert(-1, read))
        self.keys.appended(key)

    def read_range(self, cursor, done):
        """Also the lists that have no row: nothing is something that can be read."""
        began, locking, (first, last) = time.monotonic(), self.locking(), self.keys.range()
        found = self.lists.read_range(cursor, first, last, locking)
        done.operations.extend(Read(key, found.get(key, []), began, locking) for key in range(first, last + 1))

    def locking(self):
        """Some reads lock."""
        return self.chance.choice(("", "", "", "", "FOR UPDATE", "LOCK IN SHARE MODE"))


class Changer(threading.Thread):
    """Changes the table's definition all the time."""

    def __init__(self, server, lists, seed, stop):
        super().__init__(daemon=True)
        self.server, self.lists, self.chance, self.stop = server, lists, random.Random(seed), stop
        self.changes, self.failure = 0, None

    def run(self):
        statements = ("ALTER TABLE lists FORCE, ALGORITHM=COPY", "OPTIMIZE TABLE lists", f"ALTER TABLE lists {self.lists.extra_index}",
                      "ALTER TABLE lists DROP INDEX IF EXISTS extra", "ALTER TABLE lists ADD COLUMN IF NOT EXISTS more INT DEFAULT 5", "ALTER TABLE lists DROP COLUMN IF EXISTS more")
        while not self.stop.is_set():
            try:
                self.server.query(self.chance.choice(statements))
                self.changes += 1
            except pymysql.err.MySQLError as error:
                # The index is there already, or somebody holds the table for longer than we wait.
                if error.args[0] not in CONFLICTS | GONE | {1061}:
                    self.failure = error
                    return
            self.stop.wait(self.chance.random() * 0.3)
