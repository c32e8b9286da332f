#!/usr/bin/env python3
"""What a transaction without snapshot isolation reads after writes over rows that are newer than its snapshot: the same from Teak as from InnoDB.

Random histories, the same for both: session A has a snapshot and writes by primary key, session B commits changes of the same rows; after each write of A all
indexes are read. A history ends where the engines differ about locks (nobody waits: innodb_lock_wait_timeout is 0). Prints 'N passed, N failed', a history each.

Left out are reads by the unique index: Teak does not find a row by it whose key the transaction itself has given to another (docs/design/locking-reads.md).
"""

import random
import sys

import pymysql

from kit.options import parser, seed
from kit.server import Server

TABLE = ("CREATE TABLE x (id INT PRIMARY KEY, u INT, s VARCHAR(10), n INT, b VARCHAR(200), g INT AS (n % 4) VIRTUAL, UNIQUE KEY u (u), KEY s (s), KEY n (n),"
         " KEY g (g), KEY sn (s, n)) COLLATE utf8mb4_general_ci ENGINE={engine}")
READS = (
    "SELECT id, u, s, n, g, b FROM x ORDER BY id",
    "SELECT id, s FROM x FORCE INDEX (s) WHERE s > '' ORDER BY s, id",
    "SELECT n FROM x FORCE INDEX (n) WHERE n > -1 ORDER BY n",
    "SELECT id, n, b FROM x FORCE INDEX (n) WHERE n BETWEEN 3 AND 12 ORDER BY n DESC, id",
    "SELECT id, g FROM x FORCE INDEX (g) WHERE g >= 0 ORDER BY g, id",
    "SELECT id, s, n FROM x FORCE INDEX (sn) WHERE s >= 'b' AND n > 2 ORDER BY s, n, id",
    "SELECT id, s, n FROM x FORCE INDEX (sn) WHERE BINARY s = '{s}' ORDER BY 1",
    "SELECT COUNT(*) FROM x FORCE INDEX (s) WHERE s LIKE 'b%'",
    "SELECT MAX(n) FROM x",
    "SELECT id FROM x WHERE n = {n} OR s = '{s}' ORDER BY id",
    "SELECT a.id, b.id FROM x a JOIN x b FORCE INDEX (n) ON a.n = b.n ORDER BY 1, 2",
)
WRITES = (
    "DELETE FROM x WHERE id = {id}",
    "INSERT INTO x (id, u, s, n, b) VALUES ({id}, {u}, '{s}', {n}, REPEAT('{s}', {n}))",
    "REPLACE INTO x (id, u, s, n, b) VALUES ({id}, {u}, '{s}', {n}, 'replaced')",
    "INSERT INTO x (id, u, s, n) VALUES ({id}, {u}, '{s}', {n}) ON DUPLICATE KEY UPDATE n = n + 1, s = '{s}'",
    "UPDATE x SET id = {u} WHERE id = {id}",
    "UPDATE x SET u = {u} WHERE id = {id}",
    "UPDATE x SET s = '{s}' WHERE id = {id}",
    "UPDATE x SET n = {n} WHERE id = {id}",
    "UPDATE x SET n = n + 1, s = UPPER(s) WHERE id = {id}",
    "UPDATE x SET b = '{s}{n}' WHERE id = {id}",
    "UPDATE x SET u = {u}, s = '{s}', n = {n} WHERE id = {id}",
)
LOCK_ERRORS = (1205, 1213)


class Error(tuple):
    """The error that a statement ended with: its number."""


def values(chance):
    """For the places in statements."""
    return {"id": chance.randint(1, 12), "u": chance.randint(1, 25), "s": chance.choice(["a", "A", "b", "B", "bb", "c", ""]), "n": chance.randint(0, 15)}


def history(seed):
    """Whose statement, and what it is; the first ones fill the table."""
    chance = random.Random(seed)
    letters = [chance.choice("abcAB") for _ in range(8)]
    rows = ", ".join(f"({i + 1}, {i + 1}, '{letter}', {chance.randint(0, 15)}, 'x')" for i, letter in enumerate(letters))
    steps = [("A", f"INSERT INTO x (id, u, s, n, b) VALUES {rows}"), ("A", "BEGIN"), ("A", READS[0])]
    for _ in range(chance.randint(4, 14)):
        who = chance.choice("AAB")
        steps.append((who, chance.choice(WRITES).format(**values(chance))))
        if who == "A":
            steps += [("A", read.format(**values(chance))) for read in READS]
    return steps + [("A", chance.choice(["COMMIT", "ROLLBACK"]))] + [("A", read.format(**values(chance))) for read in READS]


def run(connection, statement):
    """Rows, the number of rows written, or an error."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            return Error((error.args[0],))
        return cursor.fetchall() if cursor.description else cursor.rowcount


def difference(steps, sessions):
    """The first step whose results differ, but for locks: its number, and both results."""
    for engine, of in sessions.items():
        run(of["A"], "ROLLBACK")
        run(of["A"], "DROP TABLE IF EXISTS x")
        run(of["A"], TABLE.format(engine=engine))
    for number, (who, statement) in enumerate(steps):
        results = [run(of[who], statement) for of in sessions.values()]
        if results[0] != results[1]:
            about_locks = any(isinstance(result, Error) and result[0] in LOCK_ERRORS for result in results)
            return None if about_locks else (number, results)
    return None


def main():
    arguments = parser(__doc__, rounds=100).parse_args()
    arguments.seed = seed()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start(["--teak-snapshot-isolation=INNODB", "--innodb-snapshot-isolation=OFF", "--innodb-lock-wait-timeout=0"])
    failed = 0
    try:
        sessions = {}
        for engine in ("Teak", "InnoDB"):
            server.query(f"CREATE DATABASE own_{engine}", database=None)
            sessions[engine] = {who: server.connect(database=f"own_{engine}", autocommit=True) for who in "AB"}
        for number in range(arguments.seed, arguments.seed + arguments.rounds):
            steps = history(number)
            found = difference(steps, sessions)
            check = run(sessions["Teak"]["A"], "CHECK TABLE x EXTENDED")[-1][3]
            if found or check != "OK":
                failed += 1
                print(f"FAILED history {number}: CHECK says {check}")
            if found:
                for who, statement in steps[:found[0] + 1]:
                    if not statement.startswith("SELECT"):
                        print(f"    {who}: {statement}")
                print(f"    {steps[found[0]]}\n    Teak:   {found[1][0]}\n    InnoDB: {found[1][1]}", flush=True)
    finally:
        server.kill()
    print(f"{arguments.rounds - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
