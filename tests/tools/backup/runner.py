"""How the tests of backups are run: each with a new set-up, whose directory goes afterwards."""

import functools
import shutil
import subprocess
import sys

import pymysql

from kit.cases import Failure, carry_out
from kit.options import parser, seed


def main(description, tests, new, rounds):
    """Runs those that the command line names, or all, and ends the program. `new` makes of the arguments what a test gets; it has `servers`, by what
    they are called. `rounds`: how often a test repeats what it does, unless the command line says."""
    options = parser(description, names="of cases; default: all", rounds=rounds)
    arguments = options.parse_args()
    arguments.seed = seed()

    def with_new(case):
        @functools.wraps(case)
        def run():
            test = new(arguments)
            try:
                case(test)
            except (AssertionError, RuntimeError, pymysql.err.MySQLError, subprocess.SubprocessError) as error:
                logs = "".join(f"\n{name}:\n{server.log_end()}" for name, server in test.servers.items())
                raise Failure(f"{error!r}\n{error}{logs}") from error
            finally:
                for server in test.servers.values():
                    server.kill()
                shutil.rmtree(arguments.directory, ignore_errors=True)
        return run

    sys.exit(carry_out([with_new(case) for case in tests], arguments.names, recover=lambda: None))
