"""Runs the cases of a program, says how each ended, and counts."""

import os
import time
import traceback

from kit.server import Server


class Failure(Exception):
    """A case found something wrong, and says all of it."""


def check(condition, text):
    """Fails the case with a text."""
    if not condition:
        raise Failure(text)


def name_of(case):
    """What a case is called on the command line."""
    return case.__name__.removeprefix("case_").removeprefix("test_")


def cases_of(*holders):
    """The cases among what these have, an object's in the order of their names, a class's as they are written."""
    return [getattr(holder, name) for holder in holders for name in (holder.__dict__ if isinstance(holder, type) else dir(holder))
            if name.startswith(("case_", "test_"))]


def chosen(cases, names):
    """Those of `cases` that `names` has, or all; ends the program if there is no case of a name."""
    there = {name_of(case) for case in cases}
    if unknown := set(names) - there:
        raise SystemExit(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(sorted(there))}")
    return [case for case in cases if not names or name_of(case) in names]


def carry_out(cases, names=(), arguments=(), recover=None):
    """Runs those of `cases` that `names` has, or all, one after the other with these arguments; returns whether any failed.

    What comes after a failure can do with what that has left, once `recover` was called; without it the first failure is the end.
    """
    passed = failed = 0
    for case in chosen(cases, names):
        began = time.monotonic()
        try:
            case(*arguments)
            passed += 1
            print(f"ok      {name_of(case)} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED  {name_of(case)}: {error if isinstance(error, Failure) else traceback.format_exc()}", flush=True)
            if recover is None:
                break
            recover()
    print(f"{passed} passed, {failed} failed", flush=True)
    return failed > 0


class OnServer:
    """Cases of the program `teak` with a server, which is new and has a database `test`."""

    def __init__(self, arguments):
        self.teak, self.directory = arguments.teak, arguments.directory
        self.server = Server(os.path.join(self.directory, "server"), arguments.plugin_dir)
        self.server.install()
        self.server.start()
        self.server.query("create database if not exists test", database=None)


def carry_out_all(cases, names):
    """Runs those of an object with a server, which ends with them, whichever fail; returns whether any did."""
    try:
        return carry_out(cases_of(cases), names, recover=lambda: None)
    finally:
        cases.server.kill()


def on_server(cases, names, server, options=()):
    """Runs cases on a server, which is new, with a database `test`; the first that fails is the end. Returns whether one did."""
    cases = chosen(cases, names)
    server.install()
    server.start(options)
    try:
        server.query("create database if not exists test", database=None)
        failed = carry_out(cases, arguments=(server,))
        if failed:
            print(server.log_end())
        return failed
    finally:
        server.kill()
