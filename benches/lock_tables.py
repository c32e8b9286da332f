#!/usr/bin/python3
"""What it takes to look at transactions and lock waits: 1,000 sessions, of which 100 wait, with 1,000,000 row locks.

Prints the median and the longest time of a SELECT from each table, and the longest time of a writer's statement with and without
such looks beside it. The goal: 50 ms a look, and 1 ms more for a writer.
"""

import contextlib
import multiprocessing
import statistics
import sys
import threading
import time

import pymysql

from kit.asking import rows
from kit.options import parser
from kit.server import Server

TABLES = ("teak_lock_waits", "teak_trx", "teak_locks", "teak_deadlocks")


def milliseconds(action):
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


class Writer:
    """Changes one row after the other, each by a transaction of its own, and notes how long each takes; in a process of its own."""

    def __init__(self, server):
        self.stop = multiprocessing.Event()
        self.result, there = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=self.run, args=(server, there))
        self.process.start()

    def run(self, server, there):
        connection, times, number = server.connect(), [], 0
        rows(connection, "set autocommit = 1")
        while not self.stop.is_set():
            number = number % 1000 + 1
            times.append(milliseconds(lambda number=number: rows(connection, f"update w set v = v + 1 where id = {number}")))
        times.sort()
        there.send(f"{len(times)} statements, median {statistics.median(times):.3f} ms, 99 % {times[len(times) * 99 // 100]:.3f} ms, "
                   f"99.9 % {times[len(times) * 999 // 1000]:.3f} ms, longest {times[-1]:.3f} ms")

    def end(self):
        self.stop.set()
        text = self.result.recv()
        self.process.join()
        return text


def prepare(server, sessions, waiting, locks):
    """The sessions; those that wait do so when this returns."""
    server.query("create table w (id int primary key, v int) engine=Teak")
    server.query("insert into w select seq, 0 from seq_1_to_1000")
    server.query("create table t (id int primary key, v int) engine=Teak")
    server.query(f"insert into t select 2 * seq, 0 from seq_1_to_{locks + sessions}")
    connections = [server.connect() for _ in range(sessions)]
    holders = 10
    for number, connection in enumerate(connections[:sessions - waiting]):
        rows(connection, "begin")
        if number < holders:
            share = 2 * locks // holders
            rows(connection, f"update t set v = 1 where id > {number * share} and id <= {(number + 1) * share}")
        else:
            rows(connection, f"update t set v = 1 where id = {2 * (locks + number)}")

    def wait(connection, number):
        with contextlib.suppress(pymysql.err.Error):  # the server is killed in the end
            rows(connection, "begin")
            rows(connection, f"update t set v = 2 where id = {2 * (1 + number)}")

    threads = [threading.Thread(target=wait, args=(connection, number), daemon=True) for number, connection in enumerate(connections[-waiting:])]
    for thread in threads:
        thread.start()
    while server.query("select count(distinct waiting_trx_id) from information_schema.teak_lock_waits")[0][0] < waiting:
        time.sleep(0.05)
    return connections


def main():
    made = parser(__doc__, sessions=1000, waiting=100, locks=1_000_000, looks=100)
    arguments = made.parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    server.start([f"--max-connections={arguments.sessions + 100}", "--teak-cache-size=1G", "--teak-lock-wait-timeout=600", "--open-files-limit=8192",
                  "--teak-flush-log-at-trx-commit=0"])
    try:
        server.query("create database if not exists test", database=None)
        kept = prepare(server, arguments.sessions, arguments.waiting, arguments.locks)
        print("row locks:", server.query("select sum(row_locks), count(*) from information_schema.teak_trx")[0], flush=True)
        writer = Writer(server)
        time.sleep(3)
        print("a writer alone:", writer.end(), flush=True)
        looker = server.connect()
        for table in TABLES:
            writer = Writer(server)
            time.sleep(0.2)
            times = [milliseconds(lambda table=table: rows(looker, f"select * from information_schema.{table}")) for _ in range(arguments.looks)]
            print(f"{table}: median {statistics.median(times):.1f} ms, longest {max(times):.1f} ms; the writer beside it: {writer.end()}", flush=True)
        del kept
        return 0
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
