#!/usr/bin/env python3
"""How long a server killed under load, with 1 GiB of log since its last checkpoint, takes to answer again.

Checkpoints are put off; eight clients write (ranges of rows in one statement, and single rows); at 1 GiB of log the
server gets SIGKILL and is started again. Measured: seconds from the start of the process to the first answer, and to
the first answer from a Teak table. Limit: 10 s. Then the contents are compared with what was acknowledged.
"""

import random
import sys
import threading
import time

import pymysql

from kit.options import parser, seed
from kit.server import Server, conflicted

MIB = 1 << 20
CLIENTS = 8
ROWS_EACH = 50_000
SCHEMA = [
    "CREATE TABLE written (id INT PRIMARY KEY, client INT NOT NULL, number INT NOT NULL, k INT NOT NULL, c CHAR(120) CHARACTER SET latin1 NOT NULL,"
    " KEY k (k), KEY client (client, number)) ENGINE=Teak",
    "CREATE TABLE progress (client INT PRIMARY KEY, number INT NOT NULL) ENGINE=Teak",
    f"INSERT INTO written SELECT seq, (seq - 1) DIV {ROWS_EACH}, 0, seq * 7919 % 100000, SHA2(seq, 256) FROM seq_1_to_{CLIENTS * ROWS_EACH}",
    f"INSERT INTO progress SELECT seq, 0 FROM seq_0_to_{CLIENTS - 1}",
]


class Client(threading.Thread):
    """Writes to rows of its own until the server is gone; each transaction also counts itself in `progress`."""

    def __init__(self, server, number, seed):
        super().__init__(daemon=True)
        self.connection = server.connect(autocommit=False)
        self.number = number
        self.random = random.Random(f"{seed} {number}")
        self.acknowledged = 0
        self.failure = None

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                while True:
                    if self.transaction(cursor, self.acknowledged + 1):
                        self.acknowledged += 1
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
            # 2006, 2013: the server was killed, which is the point.
            if error.args and error.args[0] not in (0, 2006, 2013, 2014):
                self.failure = error

    def transaction(self, cursor, number):
        """Nine of ten change one row, as most transactions do; one of ten makes most of the log. False if a lock
        conflict (ranges of neighbours touch) rolled it back."""
        count = 1 if self.random.random() < 0.9 else 1000
        first = self.number * ROWS_EACH + self.random.randint(1, ROWS_EACH - count + 1)
        try:
            cursor.execute(
                "UPDATE written SET number = %s, c = REVERSE(c), k = k + %s WHERE id BETWEEN %s AND %s",
                (number, int(count == 1), first, first + count - 1),
            )
            cursor.execute("UPDATE progress SET number = %s WHERE client = %s", (number, self.number))
            self.connection.commit()
            return True
        except pymysql.err.OperationalError as error:
            if not conflicted(self.connection, error):
                raise
            return False


def log_bytes(server):
    """Log since the last checkpoint, by the engine's own count."""
    found = server.query("SHOW GLOBAL STATUS LIKE 'Teak_log_bytes_since_checkpoint'")
    if not found:
        raise RuntimeError("the server has no status variable Teak_log_bytes_since_checkpoint")
    return int(found[0][1])


def write_log(server, wanted, seed, limit=900):
    """Runs the clients until there is `wanted` log, then kills the server under them."""
    clients = [Client(server, number, seed) for number in range(CLIENTS)]
    began = time.monotonic()
    for client in clients:
        client.start()
    while True:
        time.sleep(0.2)
        written = log_bytes(server)
        failures = [client.failure for client in clients if client.failure]
        if failures or not all(client.is_alive() for client in clients):
            raise RuntimeError(f"clients stopped early: {failures}")
        if written >= wanted:
            break
        if time.monotonic() - began > limit:
            raise RuntimeError(f"only {written / MIB:.0f} MiB of log after {limit} s: is a checkpoint forced before?")
    server.kill()
    for client in clients:
        client.join()
    commits = sum(client.acknowledged for client in clients)
    print(f"killed with {written / MIB:.0f} MiB of log since the checkpoint ({server.redo_size() / MIB:.0f} MiB in segments),"
          f" {commits} commits in {time.monotonic() - began:.0f} s", flush=True)
    return clients


def problems_in_contents(server, clients):
    """What was acknowledged and is missing, or is there without reason."""
    found = dict(server.query("SELECT client, number FROM progress"))
    newest = dict(server.query("SELECT client, MAX(number) FROM written FORCE INDEX (client) GROUP BY client"))
    problems = []
    for client in clients:
        number = found.get(client.number)
        # The commit in flight when the server died may have happened.
        if number not in (client.acknowledged, client.acknowledged + 1):
            problems.append(f"client {client.number} was told {client.acknowledged}, found {number}")
        if newest.get(client.number) != number:
            problems.append(f"client {client.number}: newest row {newest.get(client.number)}, progress {number}")
    reference = None
    for index, condition in (("PRIMARY", "id > 0"), ("k", "k > -1"), ("client", "client > -1")):
        content = server.query(f"SELECT COUNT(*), SUM(id), SUM(k), SUM(number), SUM(CRC32(c)) FROM written FORCE INDEX ({index}) WHERE {condition}")
        reference = reference or content
        if content != reference:
            problems.append(f"index {index} disagrees with the rows: {content}, {reference}")
    for table in ("written", "progress"):
        verdict = server.query(f"CHECK TABLE {table}")[-1][3]
        if verdict != "OK":
            problems.append(f"CHECK TABLE {table}: {verdict}")
    return problems


def run(server, arguments):
    """Returns what is wrong."""
    options = [
        f"--teak-cache-size={arguments.cache_mib * MIB}", "--teak-checkpoint-log-size=1T", "--teak-flush-log-at-trx-commit=2",
        "--innodb-buffer-pool-size=8M",
    ]
    server.install()
    server.start(options)
    for statement in SCHEMA:
        connection = server.connect(autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute(statement)
        connection.close()
    server.query("SET GLOBAL teak_checkpoint_now = 1")
    clients = write_log(server, arguments.log_mib * MIB, arguments.seed)
    began = time.monotonic()
    answers = server.start(options, limit=600)
    server.query("SELECT COUNT(*) FROM progress")
    teak_answers, cpu = time.monotonic() - began, server.cpu_seconds()
    print(f"answers after {answers:.1f} s, a Teak table after {teak_answers:.1f} s (limit {arguments.limit} s);"
          f" {cpu:.1f} s of processor time, resident {server.memory()[0] / MIB:.0f} MiB", flush=True)
    problems = problems_in_contents(server, clients)
    if teak_answers >= arguments.limit:
        problems.append(f"{teak_answers:.1f} s to the first answer is not below {arguments.limit} s")
    server.stop()
    return problems


def main():
    arguments = parser(__doc__, log_mib=1024, cache_mib=1024, limit=10.0).parse_args()
    arguments.seed = seed()
    server = Server(arguments.directory, arguments.plugin_dir)
    try:
        problems = run(server, arguments)
    except (RuntimeError, pymysql.err.MySQLError) as error:
        problems = [f"{error}\n{server.log_end(80)}"]
    finally:
        server.kill()
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"restart: {0 if problems else 1} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
