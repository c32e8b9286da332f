#!/usr/bin/env python3
"""Commits transactions over Teak and InnoDB and kills the server as soon as the last is acknowledged, with a binary log and without: all of them are
there after a restart, in both engines.

Without a binary log that is Teak's doing: the server's recovery does not go by the file in which it notes such commits.
"""

import sys

from kit.options import parser
from kit.server import Server

KILLS = 4
BINLOG = ["--log-bin", "--binlog-format=ROW"]
TABLES = [f"in_{engine}" for engine in ("teak", "innodb")]


def commit(server, number):
    """Some transactions, the last of which is acknowledged when this returns."""
    connection = server.connect(autocommit=False)
    with connection.cursor() as cursor:
        for row in range(number, number + 3):
            for statement in ("BEGIN", *(f"INSERT INTO {table} VALUES ({row})" for table in TABLES), "COMMIT"):
                cursor.execute(statement)
    # The connection stays: nothing of it has ended when the server is killed.
    return connection


def main():
    arguments = parser(__doc__).parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    passed = failed = 0
    try:
        for options in ([], BINLOG):
            server.start(options)
            for table in TABLES:
                server.query(f"CREATE OR REPLACE TABLE {table} (id INT PRIMARY KEY) ENGINE={table[3:]}")
            for kill in range(KILLS):
                connection = commit(server, 3 * kill)
                server.kill()
                connection.close()
                server.start(options)
                counts = [server.query(f"SELECT COUNT(*) FROM {table}")[0][0] for table in TABLES]
                well = counts == [3 * (kill + 1)] * 2
                print(f"{' '.join(options) or 'no binary log'}: {counts}", flush=True)
                passed, failed = passed + well, failed + (not well)
            server.stop()
    finally:
        server.kill()
    print(f"two_engines: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
