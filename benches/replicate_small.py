#!/usr/bin/python3
"""How many small transactions of several sources a second `teak replicate` applies, and MariaDB's own multi-source replica, from the same logs in the same engine.

    PYTHONPATH=tests benches/replicate_small.py [--sources N] [--transactions N] [--rows N] [--width BYTES] [--runs N] [--workers 1,4] [--orders kept,free]

Each source has a log of transactions of one row each (INSERT, UPDATE, DELETE by key), or of `--rows`, in a database of its own before anybody reads it. Rows have a text of 64 bytes, or of `--width`, which does not repeat itself. The replica has
`slave_parallel_threads` 4 in optimistic mode; the program has each of these numbers of workers, if there are several with each order of commits. Prints seconds from the beginning to the last transaction, transactions a second, and the ratio.
"""

import contextlib
import os
import shutil
import time

import pymysql

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, Agent
from kit.options import parser
from kit.server import Server, free_port

CACHE = 256 << 20
ROWS = 10_000


def text(number, width):
    """An expression of so many bytes, which depends on a number: SHA-512 has 128 hexadecimal digits."""
    return f"sha2({number}, 256)" if width == 64 else f"left(concat({', '.join(f'sha2({number} + {part}, 512)' for part in range(width // 128 + 1))}), {width})"


def small(cursor, transactions, width):
    """Transactions of a row each."""
    cursor.execute(f"""begin not atomic
        for i in 1..{transactions} do
            case i % 4 when 0 then delete from t where id = (i * 7919) % {ROWS}; when 1 then replace into t values ((i * 7919) % {ROWS}, i, {text('i', width)});
            else update t set k = k + 1 where id = (i * 7919) % {ROWS}; end case;
        end for;
    end""")


def large(cursor, transactions, rows, width):
    """Transactions of so many rows, a third of which come, change and go each."""
    part = rows // 3
    for first in range(ROWS, ROWS + transactions * rows, rows):
        cursor.execute("begin")
        cursor.execute(f"insert into t select seq, seq, {text('seq', width)} from seq_{first}_to_{first + part - 1}")
        cursor.execute(f"update t set k = k + 1, c = {text('k', width)} where id between {first} and {first + part - 1}")
        cursor.execute(f"delete from t where id between {first - rows} and {first - rows + part - 1}")
        cursor.execute("commit")


def fill(source, number, transactions, rows, width):
    """Writes the log."""
    connection = source.connect(database=None, autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute(f"create database d{number}")
        cursor.execute(f"create table d{number}.t (id int primary key, k int not null, c varchar({max(100, width)}) not null, key (k))")
        cursor.execute(f"use d{number}")
        cursor.execute(f"insert into t select seq, seq, {text('seq', width)} from seq_1_to_{ROWS - 1}")
        if rows > 1:
            large(cursor, transactions, rows, width)
        else:
            small(cursor, transactions, width)
        cursor.execute("select @@gtid_binlog_pos")
        position = cursor.fetchone()[0]
    connection.close()
    return position


def wait(target, query, wanted):
    """Until the positions that a query gives are these."""
    while True:
        with contextlib.suppress(pymysql.err.ProgrammingError):
            if set(",".join(row[0] for row in target.query(query, database=None)).split(",")) == wanted:
                return
        time.sleep(0.01)


def by_replica(target, ports, wanted):
    """Seconds of MariaDB's own."""
    target.query("set global slave_parallel_threads = 4, slave_parallel_mode = 'optimistic', gtid_slave_pos = ''", database=None)
    for number, port in enumerate(ports):
        target.query(f"change master 's{number}' to master_host = '127.0.0.1', master_port = {port}, master_user = 'root', master_use_gtid = slave_pos", database=None)
    began = time.monotonic()
    target.query("start all slaves", database=None)
    wait(target, "select @@gtid_slave_pos", wanted)
    return time.monotonic() - began


def by_agent(agent, ports, wanted, workers, order):
    """Seconds of the program."""
    agent.configure(workers=workers, commit_order="true" if order == "kept" else "false", sources={f"s{number}": {"host": '"127.0.0.1"', "port": port, "start": '{ file = "b.000001", position = 4 }', "databases": f'["d{number}"]'} for number, port in enumerate(ports)})
    began = time.monotonic()
    agent.start()
    wait(agent.target, "select gtid from teak_replicate.position", wanted)
    took = time.monotonic() - began
    print(f"processor time {time.clock_gettime((~agent.process.pid << 3) | 2):.1f} s in the program", flush=True)
    agent.stop()
    return took


def main():
    arguments = parser(__doc__, sources=5, transactions=20_000, rows=1, width=64, runs=2, workers="1", orders="kept").parse_args()
    ways = ["replica", *((workers, order) for workers in map(int, arguments.workers.split(",")) for order in (arguments.orders.split(",") if workers > 1 else ["kept"]))]
    shutil.rmtree(arguments.directory, ignore_errors=True)
    sources = [Server(os.path.join(arguments.directory, f"s{number}"), arguments.plugin_dir, free_port()) for number in range(arguments.sources)]
    target, agent = None, None
    try:
        positions = []
        for number, source in enumerate(sources):
            source.install()
            source.start([*SOURCE_OPTIONS, f"--server-id={number + 1}", f"--gtid-domain-id={number + 1}", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"])
            positions.append(fill(source, number, arguments.transactions, arguments.rows, arguments.width))
        ports = [int(source.network[1].split("=")[1]) for source in sources]
        # Statements that find no row are in no log.
        total = sum(int(position.split("-")[2]) for position in positions)
        for _ in range(arguments.runs):
            took = {}
            for way in ways:
                target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir)
                agent = Agent(arguments.teak, arguments.directory, target)
                target.install()
                # The replica's tables are made by statements that name no engine.
                # The replica's position is kept in the engine of the rows, so that neither way has two logs to write.
                target.start([*TARGET_OPTIONS, f"--teak-cache-size={CACHE}", "--teak-flush-log-at-trx-commit=2", "--innodb-flush-log-at-trx-commit=2", "--gtid-pos-auto-engines=Teak"])
                took[way] = by_replica(target, ports, set(positions)) if way == "replica" else by_agent(agent, ports, set(positions), *way)
                name = way if way == "replica" else f"agent, {way[0]} worker{'s' if way[0] > 1 else ''}{', order ' + way[1] if way[0] > 1 else ''}"
                print(f"{name}: {took[way]:.1f} s, {total / took[way]:.0f} transactions a second; processor time {target.cpu_seconds():.1f} s in the target", flush=True)
                target.kill()
            print("ratio " + ", ".join(f"{took['replica'] / took[way]:.2f}" for way in ways[1:]), flush=True)
    finally:
        if agent:
            agent.kill()
        for server in [*sources, *([target] if target else [])]:
            server.kill()


if __name__ == "__main__":
    main()
