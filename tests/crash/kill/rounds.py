"""Rounds of a test that kills a server: what each of its files has to be told, one server for all of them, and the sum."""

import random

import pymysql

from kit.asking import rows
from kit.options import parser, seed
from kit.server import Server


def rounds(about, default_rounds, schema, one_round, nothing_tested=lambda: None):
    """The exit status of a test that `about` describes, after as many rounds as the command line says.

    `one_round(server, teak, number, acknowledged, random)` starts the server, kills it, checks it, and says what it met; `acknowledged` is a
    dictionary that lasts. `nothing_tested()` says why all rounds together have tested nothing, if so.
    """
    arguments = parser(about, rounds=default_rounds).parse_args()
    random_source = random.Random(seed())
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    passed = failed = 0
    try:
        server.start()
        connection = server.connect(autocommit=True)
        for statement in schema:
            rows(connection, statement)
        connection.close()
        server.kill()
        acknowledged = {}
        for number in range(arguments.rounds):
            print(f"round {number}: {one_round(server, arguments.teak, number, acknowledged, random_source)}", flush=True)
            passed += 1
        if why := nothing_tested():
            raise AssertionError(f"{why}: this has tested nothing")
    except (AssertionError, RuntimeError, pymysql.err.MySQLError) as error:
        print(f"FAILED: {error}\n{server.log_end()}")
        failed = 1
    finally:
        server.kill()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
