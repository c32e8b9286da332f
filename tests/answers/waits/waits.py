#!/usr/bin/env python3
"""Who waits for whom: each pair of statements of two transactions, by isolation level, with Teak and with InnoDB.

The first transaction takes its steps and stays open; then the second takes one. What it comes to is its rows, how many it changed, or its error: 1205
if it waits. Nothing depends on time: a statement that waits is refused at once, but for those that InnoDB treats otherwise then
(semi-consistent reads), which wait a second. Both are rolled back, so that each pair finds the same tables.
"""

import os
import queue
import sys
import threading

import pymysql

from kit.options import parser
from kit.server import Server

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected-differences.txt")
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
WORKERS = 8
AGAIN = 3

SCHEMA = [
    "CREATE TABLE p (id INT PRIMARY KEY, n INT) ENGINE={engine}",
    "CREATE TABLE t (id INT PRIMARY KEY, u INT, k INT, v INT, UNIQUE u (u), KEY k (k)) ENGINE={engine}",
    "CREATE TABLE c (id INT PRIMARY KEY, pid INT, KEY pid (pid), FOREIGN KEY (pid) REFERENCES p (id)) ENGINE={engine}",
    "INSERT INTO p VALUES (1, 0), (2, 0), (3, 0)",
    "INSERT INTO t SELECT seq * 10, seq * 10, seq * 10, seq FROM seq_1_to_9",
    "INSERT INTO c VALUES (1, 1), (2, 2)",
    "ANALYZE TABLE p, t, c",
]

# What the second transaction does, and the first. Rows of t are 10, 20 .. 90, by all keys.
STATEMENTS = {
    "insert free": "INSERT INTO t VALUES (35, 35, 35, 0)",
    "insert taken id": "INSERT INTO t VALUES (30, 35, 35, 0)",
    "insert taken u": "INSERT INTO t VALUES (35, 30, 35, 0)",
    "insert ignore taken id": "INSERT IGNORE INTO t VALUES (30, 35, 35, 0)",
    "insert ignore taken u": "INSERT IGNORE INTO t VALUES (35, 30, 35, 0)",
    "replace free": "REPLACE INTO t VALUES (35, 35, 35, 0)",
    "replace taken id": "REPLACE INTO t VALUES (30, 35, 35, 0)",
    "replace taken u": "REPLACE INTO t VALUES (35, 30, 35, 0)",
    "odku taken id": "INSERT INTO t VALUES (30, 35, 35, 0) ON DUPLICATE KEY UPDATE v = v + 1",
    "odku taken u": "INSERT INTO t VALUES (35, 30, 35, 0) ON DUPLICATE KEY UPDATE v = v + 1",
    "update id": "UPDATE t SET v = v + 1 WHERE id = 30",
    "update id nothing": "UPDATE t SET v = v + 1 WHERE id = 35",
    "update id other": "UPDATE t SET v = v + 1 WHERE id = 40",
    "update id unmatched": "UPDATE t SET v = v + 1 WHERE id = 30 AND v = 77",
    "update k": "UPDATE t SET v = v + 1 WHERE k = 30",
    "update k nothing": "UPDATE t SET v = v + 1 WHERE k = 35",
    "update scan": "UPDATE t IGNORE INDEX (u, k) SET v = v + 10 WHERE v = 3",
    "update scan nothing": "UPDATE t IGNORE INDEX (u, k) SET v = v + 10 WHERE v = 77",
    "update u onto taken": "UPDATE t SET u = 30 WHERE id = 50",
    "update moves id": "UPDATE t SET id = 35 WHERE id = 50",
    "delete id": "DELETE FROM t WHERE id = 30",
    "delete id nothing": "DELETE FROM t WHERE id = 35",
    "delete u": "DELETE FROM t WHERE u = 30",
    "delete k": "DELETE FROM t WHERE k = 30",
    "delete range": "DELETE FROM t WHERE id BETWEEN 25 AND 35",
    "delete scan nothing": "DELETE FROM t WHERE v = 77",
    "select": "SELECT * FROM t WHERE id = 30",
    "for update id": "SELECT * FROM t WHERE id = 30 FOR UPDATE",
    "for update id nothing": "SELECT * FROM t WHERE id = 35 FOR UPDATE",
    "for update range": "SELECT * FROM t WHERE id BETWEEN 25 AND 35 FOR UPDATE",
    "for update u": "SELECT * FROM t WHERE u = 30 FOR UPDATE",
    "for update k": "SELECT * FROM t WHERE k = 30 FOR UPDATE",
    "share id": "SELECT * FROM t WHERE id = 30 LOCK IN SHARE MODE",
    "share id nothing": "SELECT * FROM t WHERE id = 35 LOCK IN SHARE MODE",
    "share range": "SELECT * FROM t WHERE id BETWEEN 25 AND 35 LOCK IN SHARE MODE",
    "share u": "SELECT * FROM t WHERE u = 30 LOCK IN SHARE MODE",
    "share k": "SELECT * FROM t WHERE k = 30 LOCK IN SHARE MODE",
}
PARENTS = {
    "insert child": "INSERT INTO c VALUES (5, 1)",
    "insert child without": "INSERT IGNORE INTO c VALUES (5, 9)",
    "insert parent": "INSERT INTO p VALUES (9, 0)",
    "insert ignore parent": "INSERT IGNORE INTO p VALUES (1, 0)",
    "update parent": "UPDATE p SET n = n + 1 WHERE id = 1",
    "update parent key": "UPDATE p SET id = 8 WHERE id = 3",
    "delete parent": "DELETE FROM p WHERE id = 3",
    "delete parent refused": "DELETE FROM p WHERE id = 1",
    "delete child": "DELETE FROM c WHERE id = 1",
    "update child": "UPDATE c SET pid = 3 WHERE id = 2",
    "share parent": "SELECT * FROM p WHERE id = 1 LOCK IN SHARE MODE",
    "for update parent": "SELECT * FROM p WHERE id = 1 FOR UPDATE",
}
# What the first transaction does besides, in several steps: locks of its own are there when it is refused.
STEPS = {
    "share id, insert ignore": ("share id", "insert ignore taken id"),
    "share id, insert": ("share id", "insert taken id"),
    "insert ignore twice": ("insert ignore taken id", "insert ignore taken id"),
    "insert ignore u twice": ("insert ignore taken u", "insert ignore taken u"),
    "share id, update scan nothing": ("share id", "update scan nothing"),
    "share id, delete scan nothing": ("share id", "delete scan nothing"),
    "update u onto taken twice": ("update u onto taken", "update u onto taken"),
    "for update id, insert ignore": ("for update id", "insert ignore taken id"),
}
PARENT_STEPS = {
    "insert child, insert ignore parent": ("insert child", "insert ignore parent"),
    "delete parent refused twice": ("delete parent refused", "delete parent refused"),
}
WAITING = {"update scan", "update scan nothing"}


def pairs():
    """Level, name of the first, its statements, name of the second, its statement."""
    for statements, steps in ((STATEMENTS, STEPS), (PARENTS, PARENT_STEPS)):
        firsts = {name: (name,) for name in statements} | steps
        for level in LEVELS:
            for first, parts in firsts.items():
                for second, statement in statements.items():
                    yield level, first, [statements[part] for part in parts], second, statement


class Bench:
    """Two connections of each engine, to tables of their own."""

    def __init__(self, server, number):
        self.connections = {}
        for engine in ("InnoDB", "Teak"):
            database = f"{engine}_{number}".lower()
            setup = server.connect(autocommit=True)
            run(setup, f"CREATE DATABASE {database}")
            setup.select_db(database)
            for statement in SCHEMA:
                run(setup, statement.format(engine=engine))
            setup.close()
            self.connections[engine] = [server.connect(database=database, autocommit=False) for _ in range(2)]
        self.level = None

    def at(self, level):
        """All connections work at this level."""
        if level != self.level:
            for connection in self.all():
                run(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            self.level = level

    def all(self):
        """The connections of both engines."""
        return [connection for two in self.connections.values() for connection in two]

    def outcome(self, engine, first, second, waits):
        """What the second comes to."""
        one, other = self.connections[engine]
        seconds = 1 if waits else 0
        run(other, f"SET innodb_lock_wait_timeout = {seconds}, teak_lock_wait_timeout = {seconds}")
        try:
            before = [attempt(one, statement) for statement in first]
            if any(result == "waits" for result in before):
                raise RuntimeError(f"{engine}: the first waits: {first}")
            return attempt(other, second)
        finally:
            one.rollback()
            other.rollback()


def run(connection, statement):
    """All rows of the answer, or how many were changed."""
    with connection.cursor() as cursor:
        changed = cursor.execute(statement)
        return cursor.fetchall() if cursor.description else changed


def attempt(connection, statement):
    """The same as text; of an error its number."""
    try:
        return str(run(connection, statement))
    except pymysql.err.MySQLError as error:
        return "waits" if error.args[0] == 1205 else f"error {error.args[0]}"


def work(bench, tasks, found, failures):
    """Takes pairs until there are none."""
    while not failures:
        try:
            level, first, steps, second, statement = tasks.get_nowait()
        except queue.Empty:
            return
        try:
            bench.at(level)
            waits = second in WAITING and level == "READ COMMITTED"
            results = [bench.outcome(engine, steps, statement, waits) for engine in ("InnoDB", "Teak")]
        except (RuntimeError, pymysql.err.MySQLError) as error:
            failures.append(f"{level} | {first} | {second}: {error}")
            return
        if results[0] != results[1]:
            found.append(f"{level} | {first} | {second} | {results[0]} | {results[1]}")


def name_of(pair):
    """Level and the two names, as a difference begins with."""
    return f"{pair[0]} | {pair[1]} | {pair[3]}"


def compare(benches, chosen):
    """The differences of these pairs."""
    tasks, found, failures = queue.Queue(), [], []
    for pair in chosen:
        tasks.put(pair)
    threads = [threading.Thread(target=work, args=(bench, tasks, found, failures)) for bench in benches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(failures[0])
    return set(found)


def settle(benches, chosen, known):
    """The differences; what is not as expected is asked for again: what InnoDB locks behind a range depends on what it has not cleaned up yet."""
    found = compare(benches, chosen)
    for _ in range(AGAIN):
        unexpected = {" | ".join(line.split(" | ")[:3]) for line in found ^ known}
        doubtful = [pair for pair in chosen if name_of(pair) in unexpected]
        if not doubtful:
            break
        names = {name_of(pair) for pair in doubtful}
        kept = {line for line in found if " | ".join(line.split(" | ")[:3]) not in names}
        found = kept | compare(benches[:1], doubtful)
    return found


def expected():
    """The differences that have a reason."""
    with open(EXPECTED, encoding="utf-8") as lines:
        return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def main():
    options = parser(__doc__)
    options.add_argument("--only", help="pairs of which the level and the two names have this text")
    options.add_argument("--write", action="store_true", help="print all differences and judge none")
    arguments = options.parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    # With snapshot isolation InnoDB has no semi-consistent reads.
    server.start(["--innodb-snapshot-isolation=OFF", "--teak-snapshot-isolation=INNODB", "--innodb-flush-log-at-trx-commit=2", "--teak-flush-log-at-trx-commit=2"])
    chosen = [pair for pair in pairs() if not arguments.only or arguments.only in name_of(pair)]
    try:
        benches = [Bench(server, number) for number in range(WORKERS)]
        if arguments.write:
            print("\n".join(sorted(compare(benches, chosen))))
            return 0
        names = {name_of(pair) for pair in chosen}
        known = {line for line in expected() if not arguments.only or " | ".join(line.split(" | ")[:3]) in names}
        found = settle(benches, chosen, known)
    finally:
        server.kill()
    new, gone = sorted(found - known), sorted(known - found)
    for line in new:
        print(f"FAILED (level, first, second, InnoDB, Teak): {line}")
    for line in gone:
        print(f"FAILED: expected and not found: {line}")
    print(f"waits: {len(chosen)} pairs, {len(found)} differences, {len(new)} of them new, {len(gone)} gone")
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
