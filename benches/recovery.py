#!/usr/bin/env python3
"""How long a start after kill -9 takes with gigabytes of log, on how many processors, and how long InnoDB takes after the same work.

    benches/recovery.py write --engine Teak --directory build/bench/recovery-teak
    benches/recovery.py recover --engine Teak --directory build/bench/recovery-teak [--runs 3] [--processors 1,2]

`write` makes a data directory: eight clients change rows of a table with two secondary indexes, without a checkpoint, until there is as much
log as wanted (`--log-mib`), or for a given number of transactions each (`--transactions`: the same work for another engine); then SIGKILL. It
prints how many transactions they were. What a client does depends on its number only. `recover` starts a server on a copy of the files that a
recovery changes, several times, and measures the start: wall clock and processor time of the process up to the first answer from the table, less
those of a start without anything to recover, and the greatest resident memory. The content must be the same after each.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import threading
import time

import pymysql

from kit.server import Server, conflicted

MIB = 1 << 20
CLIENTS = 8
ROWS = 250_000
CHUNK = 500
# Transactions of a client between two looks at the amount of log.
ROUND = 50
SCHEMA = [
    "CREATE TABLE written (id INT PRIMARY KEY, client INT NOT NULL, number INT NOT NULL, k INT NOT NULL,"
    " c CHAR(120) CHARACTER SET latin1 NOT NULL, KEY k (k), KEY client (client, number)) ENGINE={engine}",
    f"INSERT INTO written SELECT seq, (seq - 1) DIV {ROWS}, 0, seq * 7919 % 100000, SHA2(seq, 256) FROM seq_1_to_{CLIENTS * ROWS}",
]
CONTENT = "SELECT COUNT(*), SUM(k), SUM(number), SUM(CRC32(c)) FROM written"


def options(engine, arguments):
    """Of the server: no checkpoint while there is a client."""
    size = arguments.cache_mib * MIB
    if engine == "Teak":
        return [f"--teak-cache-size={size}", "--teak-checkpoint-log-size=1T", "--teak-flush-log-at-trx-commit=2"]
    return [
        f"--innodb-buffer-pool-size={size}", f"--innodb-log-file-size={arguments.innodb_log_gib}G", "--innodb-flush-log-at-trx-commit=2",
        "--innodb-adaptive-flushing=OFF", "--innodb-max-dirty-pages-pct=99.9", "--innodb-max-dirty-pages-pct-lwm=0",
        "--teak-cache-size=16M",
    ]


def log_bytes(server, engine):
    """Log since the last checkpoint."""
    name = "Teak_log_bytes_since_checkpoint" if engine == "Teak" else "Innodb_checkpoint_age"
    return int(server.query(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])


class Client(threading.Thread):
    """Changes rows of its own: nine of ten transactions one row, the tenth some hundred neighbours."""

    def __init__(self, server, number, goes_on):
        super().__init__(daemon=True)
        self.connection = server.connect(autocommit=True)
        self.number = number
        self.goes_on = goes_on
        self.random = random.Random(number)
        self.done = 0

    def run(self):
        with self.connection.cursor() as cursor:
            while self.goes_on(self.done):
                for _ in range(ROUND):
                    self.transaction(cursor)

    def transaction(self, cursor):
        """One statement."""
        count = 1 if self.random.random() < 0.9 else CHUNK
        first = self.number * ROWS + self.random.randint(1, ROWS - count + 1)
        self.done += 1
        statement = (
            f"UPDATE written SET number = {self.done}, c = REVERSE(c), k = k + {int(count == 1)} WHERE id BETWEEN {first} AND {first + count - 1}"
        )
        while True:
            try:
                cursor.execute(statement)
                return
            except pymysql.err.OperationalError as error:
                if not conflicted(self.connection, error):
                    raise


def write(arguments):
    """The stage `write`."""
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    try:
        server.start(options(arguments.engine, arguments))
        connection = server.connect(autocommit=True)
        with connection.cursor() as cursor:
            for statement in SCHEMA:
                cursor.execute(statement.format(engine=arguments.engine))
        connection.close()
        # What the clients start from is in the tables' files.
        server.stop()
        server.start(options(arguments.engine, arguments), limit=600)
        server.query("SELECT COUNT(*) FROM written FORCE INDEX (k)")
        written, began = 0, time.monotonic()

        def goes_on(done):
            return done < arguments.transactions if arguments.transactions else written < arguments.log_mib * MIB

        clients = [Client(server, number, goes_on) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        while any(client.is_alive() for client in clients):
            time.sleep(0.5)
            written = log_bytes(server, arguments.engine)
        seconds = time.monotonic() - began
        written = log_bytes(server, arguments.engine)
        content = server.query(CONTENT)
        done = [client.done for client in clients]
        # The log is written once a second.
        time.sleep(2)
    finally:
        server.kill()
    facts = {"engine": arguments.engine, "log_mib": round(written / MIB), "transactions": done, "content": str(content)}
    with open(os.path.join(arguments.directory, "facts.json"), "w", encoding="ascii") as out:
        json.dump(facts, out)
    print(f"{arguments.engine}: {written / MIB:.0f} MiB of log since the checkpoint, {sum(done)} transactions in {seconds:.0f} s"
          f" (--transactions={max(done)} for as many in another engine)", flush=True)


def copy_of(directory):
    """A data directory to recover in. The kernel has all of it in memory afterwards, if that is large enough."""
    copy = directory.rstrip("/") + "-copy"
    shutil.rmtree(copy, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", directory, copy], check=True)
    return copy


def recover(arguments):
    """The stage `recover`."""
    with open(os.path.join(arguments.directory, "facts.json"), encoding="ascii") as found:
        facts = json.load(found)
    if facts["engine"] != arguments.engine:
        raise SystemExit(f"the directory is of {facts['engine']}")
    for processors in arguments.processors.split(","):
        runs = []
        for _ in range(arguments.runs):
            server = Server(arguments.directory if arguments.once else copy_of(arguments.directory), arguments.plugin_dir)
            runs.append(recovery(server, int(processors), facts, arguments))
            print(f"  {processors} processors: {runs[-1]}", flush=True)
            if arguments.once:
                return
            shutil.rmtree(server.directory)
        wall, cpu = (statistics.median(run[name] for run in runs) for name in ("wall", "cpu"))
        print(f"{arguments.engine}, {facts['log_mib']} MiB of log, {processors} processors:"
              f" {wall:.1f} s, {cpu:.1f} s of processor time (median of {len(runs)})", flush=True)


def recovery(server, processors, facts, arguments):
    """One recovery, compared with a start of the same directory without work."""
    every = os.sched_getaffinity(0)
    try:
        # The server inherits it.
        os.sched_setaffinity(0, set(sorted(every)[:processors]))
        wall, cpu = start(server, arguments)
        resident = server.memory()[1]
        os.sched_setaffinity(0, every)
        if str(server.query(CONTENT)) != facts["content"]:
            raise SystemExit("the content is not what it was before the kill")
        server.query("SET GLOBAL innodb_fast_shutdown = 1")
        server.stop()
        if not arguments.empty_start:
            return {"wall": round(wall, 2), "cpu": round(cpu, 2), "resident_mib": resident // MIB}
        os.sched_setaffinity(0, set(sorted(every)[:processors]))
        empty_wall, empty_cpu = start(server, arguments)
        return {"wall": round(wall - empty_wall, 2), "cpu": round(cpu - empty_cpu, 2), "resident_mib": resident // MIB}
    finally:
        os.sched_setaffinity(0, every)
        server.kill()


def start(server, arguments):
    """Seconds to the first answer from the table, and of processor time."""
    began = time.monotonic()
    server.start(options(arguments.engine, arguments), limit=1800)
    server.query("SELECT * FROM written WHERE id = 1")
    return time.monotonic() - began, server.cpu_seconds()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["write", "recover"])
    parser.add_argument("--engine", default="Teak", choices=["Teak", "InnoDB"])
    parser.add_argument("--directory", required=True)
    parser.add_argument("--plugin-dir", default="build/plugin")
    parser.add_argument("--log-mib", type=int, default=4096)
    parser.add_argument("--transactions", type=int, default=0, help="of each client, in place of --log-mib")
    parser.add_argument("--cache-mib", type=int, default=2048)
    parser.add_argument("--processors", default=str(len(os.sched_getaffinity(0))), help="numbers of processors to try")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--once", action="store_true", help="recover in the directory itself: it takes no more space, and can be done once")
    parser.add_argument("--innodb-log-gib", type=int, default=12, help="InnoDB makes its log of this size at once")
    parser.add_argument("--no-empty-start", dest="empty_start", action="store_false", help="do not subtract a start without work")
    arguments = parser.parse_args()
    {"write": write, "recover": recover}[arguments.stage](arguments)


if __name__ == "__main__":
    main()
