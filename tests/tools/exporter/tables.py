#!/usr/bin/python3
"""What an answer costs does not depend on how many tables there are: with `--tables` of them, all open, and with a few. `--tables 10000` is for the goal of 100
ms; without, there are fewer, so that it is short.

usage: tables.py [--tables N]
"""

import os
import statistics
import sys
import time

from asked import Exporter
from kit.asking import rows
from kit.options import parser
from kit.server import Server
from kit.web import get

LOOKS = 9
GOAL = 0.1


def seconds(exporter):
    """The median of some answers, each of which asks the server; and how long the answer is."""
    took = []
    for _ in range(LOOKS):
        time.sleep(0.6)
        began = time.monotonic()
        text = get(exporter.at)[2]
        took.append(time.monotonic() - began)
        assert "teak_exporter_last_scrape_error 0\n" in text, text[:2000]
    return statistics.median(took), len(text)


def processor_time(server, exporter):
    """What an answer takes of the processor: in the server, and in the exporter."""
    def used():
        return server.cpu_seconds(), time.clock_gettime((~exporter.process.pid << 3) | 2)

    before = used()
    seconds(exporter)
    return [(now - then) / LOOKS for now, then in zip(used(), before)]


def main():
    arguments = parser(__doc__, tables=400).parse_args()
    server = Server(os.path.join(arguments.directory, "server"), arguments.plugin_dir)
    server.install()
    server.start(["--table-open-cache=20000", "--table-definition-cache=20000", "--open-files-limit=40000", "--teak-flush-log-at-trx-commit=0"])
    try:
        with Exporter(arguments.teak, server=server) as exporter:
            few, length = seconds(exporter)
            server.query("create database if not exists test", database=None)
            began = time.monotonic()
            with server.connect(autocommit=True) as connection:
                for at in range(arguments.tables):
                    rows(connection, f"create table t{at} (id int primary key, v int, key v (v)) engine=Teak")
                    rows(connection, f"insert into t{at} values (1, 1)")
            print(f"{arguments.tables} tables in {time.monotonic() - began:.1f} s", flush=True)
            many, longer = seconds(exporter)
            opened = exporter.value("teak_open_tables")
            of_server, of_exporter = processor_time(server, exporter)
        with Exporter(arguments.teak, "--indexes", server=server) as exporter:
            indexes, longest = seconds(exporter)
        print(f"an answer takes {few * 1000:.1f} ms ({length} bytes) with few tables, {many * 1000:.1f} ms ({longer} bytes) with {opened:.0f} that are open, "
              f"{indexes * 1000:.1f} ms ({longest} bytes) with --indexes; of the processor {of_server * 1000:.1f} ms in the server, whatever else that does, and {of_exporter * 1000:.1f} ms in the exporter")
        assert opened >= arguments.tables, opened
        assert abs(longer - length) < 2000, "an answer that grows with tables"
        assert many < GOAL, f"{many} s, the goal is {GOAL}"
        print("1 passed, 0 failed")
        return 0
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
