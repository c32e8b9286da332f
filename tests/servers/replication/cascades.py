#!/usr/bin/env python3
"""Foreign keys on replicas: what follows for children from a change of their parent is not in the binary log, and each replica's engine does it again.

Clients write to parents, children and grandchildren at once, with rules of every kind; half of what they try is refused. Replicas apply it one transaction after the
other, and in parallel, with events of rows and with statements. In the end tables are equal by CHECKSUM TABLE, and CHECK TABLE finds no row without its parent.
Prints 'N passed, N failed': a combination each.
"""

import random
import threading

import pymysql

from kit.asking import rows
from kit.options import seed
from kit.replicas import BINLOG_OPTIONS, PARALLEL_OPTIONS, REPLICA_OPTIONS, catch_up, main, value
from kit.server import conflicted

PARENTS = 40
CLIENTS = 4
TRANSACTIONS = 250
# A duplicate, perhaps of a child that a cascade changes; a child that is in the way, a parent that is missing.
REFUSALS = (1062, 1451, 1452, 1761)

SCHEMA = [
    "CREATE TABLE parent (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL, n INT NOT NULL, UNIQUE KEY (code))",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, code VARCHAR(20), doubled INT AS (p * 2) VIRTUAL, KEY (doubled), FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE,"
    " FOREIGN KEY (code) REFERENCES parent (code) ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, p INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE CASCADE, FOREIGN KEY (p) REFERENCES child (p) ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE strict (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id))",
    "CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE)",
    "CREATE TABLE kept (id INT PRIMARY KEY, n INT NOT NULL) WITH SYSTEM VERSIONING",
    "CREATE TABLE follower (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES kept (id) ON DELETE CASCADE ON UPDATE CASCADE) WITH SYSTEM VERSIONING",
    f"INSERT INTO kept SELECT seq, 0 FROM seq_1_to_{PARENTS}",
    f"INSERT INTO parent SELECT seq, CONCAT('code ', seq), 0 FROM seq_1_to_{PARENTS}",
    "INSERT INTO tree SELECT seq, NULLIF(seq DIV 3, 0) FROM seq_1_to_200",
]
TABLES = ("parent", "child", "grandchild", "strict", "tree", "follower", "kept")
# The history that cascades leave has other times on a replica of row events, which have seconds only (so with InnoDB).
HISTORY = "SELECT 'history of follower', SUM(CRC32(CONCAT_WS(',', id, p, row_end > NOW() + INTERVAL 1 YEAR))) FROM follower FOR SYSTEM_TIME ALL"


class Client(threading.Thread):
    """Tries transactions of one to four changes."""

    def __init__(self, primary, number, seed, binlog_format):
        super().__init__(daemon=True)
        # Of a table with two unique keys the server calls it unsafe (warning 1592): that the first key was free is held
        # by no lock once the second was not, so another may have it before this one commits, and a replica updates the
        # row of that. InnoDB does the same.
        self.upserted = "kept VALUES ({0}, {1})" if binlog_format == "STATEMENT" else "parent VALUES ({0}, 'code {0}', {1})"
        self.connection = primary.connect(autocommit=False)
        self.number, self.random, self.made = number, random.Random(seed * 100 + number), 0
        self.committed, self.failure = 0, None

    def run(self):
        try:
            for _ in range(TRANSACTIONS):
                self.committed += self.attempt([self.change() for _ in range(self.random.randint(1, 4))])
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
        self.connection.close()

    def attempt(self, statements):
        """One transaction; a statement that a constraint refuses is left out."""
        try:
            with self.connection.cursor() as cursor:
                for statement in statements:
                    try:
                        cursor.execute(statement)
                    except pymysql.err.MySQLError as error:
                        if error.args[0] not in REFUSALS:
                            raise
            self.connection.commit()
            return True
        except pymysql.err.OperationalError as error:
            if not conflicted(self.connection, error):
                raise
            return False

    def change(self):
        self.made += 1
        new, parent, other = self.number * 100_000 + self.made, self.random.randint(1, PARENTS), self.random.randint(1, PARENTS)
        return self.random.choice([
            f"INSERT INTO child VALUES ({new}, {parent}, 'code {other}', DEFAULT)",
            f"INSERT INTO child VALUES ({new}, {parent}, NULL, DEFAULT)",
            f"INSERT INTO grandchild SELECT {new}, MAX(id), {parent} FROM child WHERE p = {parent}",
            f"INSERT INTO strict VALUES ({new}, {parent})",
            f"INSERT INTO parent VALUES ({parent}, 'code {parent}', {new})",
            f"INSERT INTO {self.upserted.format(parent, new)} ON DUPLICATE KEY UPDATE n = n + 1",
            f"DELETE FROM parent WHERE id = {parent}",
            f"UPDATE parent SET id = {other} WHERE id = {parent}",
            f"UPDATE parent SET code = 'code {other}' WHERE id = {parent}",
            f"UPDATE child SET p = {other} WHERE p = {parent}",
            f"DELETE FROM child WHERE p = {parent}",
            f"DELETE FROM strict WHERE p = {parent}",
            f"REPLACE INTO parent VALUES ({parent}, 'code {other}', {new})",
            f"INSERT INTO kept VALUES ({parent}, {new})",
            f"DELETE FROM kept WHERE id = {parent}",
            f"UPDATE kept SET id = {other} WHERE id = {parent}",
            f"UPDATE kept SET n = {new} WHERE id = {parent}",
            f"INSERT INTO follower VALUES ({new}, {parent})",
            f"UPDATE follower SET p = {other} WHERE p = {parent}",
            f"DELETE FROM follower WHERE p = {parent}",
            f"INSERT INTO tree VALUES ({new}, {self.random.randint(1, 200)})",
            f"DELETE FROM tree WHERE id = {self.random.randint(2, 200)}",
        ])


def state(server):
    """Sums of all tables, and what CHECK TABLE has against them."""
    listed = ", ".join(TABLES)
    complaints = [line for line in server.query(f"CHECK TABLE {listed}") if line[3] != "OK"]
    sums = [line for line in server.query(f"CHECKSUM TABLE {listed}") if not line[0].endswith(".follower")]
    return sums + list(server.query(HISTORY)), complaints


def run(primary, replica, binlog_format, seed):
    """One combination; what is wrong, as texts."""
    control = primary.connect(autocommit=True)
    rows(control, "DROP TABLE IF EXISTS grandchild, child, strict, tree, parent, follower, kept")
    for statement in SCHEMA:
        rows(control, statement)
    rows(control, f"SET GLOBAL binlog_format = {binlog_format}")
    clients = [Client(primary, number, seed, binlog_format) for number in range(1, CLIENTS + 1)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    catch_up(control, replica.connect(autocommit=True))
    (here, complaints), (there, replica_complaints) = state(primary), state(replica)
    wrong = [f"client: {client.failure!r}" for client in clients if client.failure]
    wrong += [f"{table[0]}: {table[1]} on the primary, {other[1]} on the replica" for table, other in zip(here, there) if table != other]
    wrong += [str(line) for line in complaints + replica_complaints]
    committed, left = sum(client.committed for client in clients), primary.query("SELECT (SELECT COUNT(*) FROM child), (SELECT COUNT(*) FROM grandchild)")[0]
    print(f"{binlog_format}: {committed} transactions, {left} children and grandchildren are left: {wrong or 'equal'}", flush=True)
    return wrong


def restarted_within_a_second(primary, replica):
    """A row changes three times within a second of the primary, and the replica's thread begins anew before each: to it all three have the same time."""
    writer, control = primary.connect(autocommit=True), replica.connect(autocommit=True)
    rows(writer, "SET binlog_format = ROW")
    rows(writer, "CREATE TABLE above (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
    rows(writer, "CREATE TABLE below (id INT, p INT, q INT, PRIMARY KEY (id, q), FOREIGN KEY (p) REFERENCES above (id) ON DELETE CASCADE ON UPDATE CASCADE,"
         " FOREIGN KEY (q) REFERENCES above (id) ON DELETE CASCADE ON UPDATE CASCADE) WITH SYSTEM VERSIONING")
    second = int(value(writer, "SELECT UNIX_TIMESTAMP()")) - 60
    changes = ["INSERT INTO above VALUES (1), (2)", "INSERT INTO below VALUES (100, 1, 1), (101, 2, 1)",
               "UPDATE above SET id = id + 10", "UPDATE above SET id = id + 10", "DELETE FROM above WHERE id = 21"]
    for number, change in enumerate(changes):
        rows(writer, f"SET timestamp = {second + (number > 1)}.{number + 1}")
        rows(control, "STOP SLAVE SQL_THREAD")
        rows(writer, change)
        rows(control, "START SLAVE SQL_THREAD")
        catch_up(writer, control)
    versions = "SELECT id, p, q, row_end > NOW() + INTERVAL 1 YEAR FROM below FOR SYSTEM_TIME ALL ORDER BY id, row_start, row_end"
    backwards = "SELECT id FROM below FOR SYSTEM_TIME ALL WHERE row_start > row_end"
    here, there, wrong = rows(writer, versions), rows(control, versions), rows(control, backwards)
    rows(writer, "DROP TABLE below, above")
    print(f"restarts within a second: {here} on the primary, {there} on the replica, {wrong} end before they begin", flush=True)
    return here == there and not wrong


def cases(pair):
    """Each way in which a replica applies, with both formats of the binary log."""
    primary, replica, number = pair.primary, pair.replica, seed()
    yield restarted_within_a_second(primary, replica)
    for options in ([], BINLOG_OPTIONS, PARALLEL_OPTIONS, PARALLEL_OPTIONS + BINLOG_OPTIONS):
        replica.kill()
        replica.start(REPLICA_OPTIONS + options)
        print(f"{' '.join(options) or 'one after the other'}:", flush=True)
        for binlog_format in ("ROW", "STATEMENT"):
            yield not run(primary, replica, binlog_format, number)


if __name__ == "__main__":
    main("cascades", __doc__, cases)
