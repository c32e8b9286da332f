"""Runs the tests of a file, each on servers of its own."""

import argparse
import shutil
import subprocess
import sys
import time

import pymysql


def main(description, tests, new, rounds):
    """Runs those that the command line names, or all, and ends the program. `new` makes of the arguments what a test gets; it has `servers`, by what
    they are called. `rounds`: how often a test repeats what it does, unless the command line says."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("directory")
    parser.add_argument("plugin_dir")
    parser.add_argument("teak")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=rounds)
    arguments = parser.parse_intermixed_args()
    passed = failed = 0
    for case in tests:
        if arguments.names and case.__name__ not in arguments.names:
            continue
        began = time.monotonic()
        print(f"{case.__name__}, seed {arguments.seed}", flush=True)
        test = new(arguments)
        try:
            case(test)
            passed += 1
        except (AssertionError, RuntimeError, pymysql.err.MySQLError, subprocess.SubprocessError) as error:
            failed += 1
            logs = "".join(f"\n{name}:\n{server.log_end()}" for name, server in test.servers.items())
            print(f"FAILED {case.__name__}: {error!r}\n{error}{logs}")
        finally:
            for server in test.servers.values():
                server.kill()
            shutil.rmtree(arguments.directory, ignore_errors=True)
        print(f"  {time.monotonic() - began:.0f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
