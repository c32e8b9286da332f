#!/usr/bin/env python3
"""Runs applications, or their own tests, on Teak and on InnoDB and compares test by test.

An application is a module of this directory with

    install(place)                 puts its pinned version into place.directory, from a package registry
    run(place, server)             -> {name of a test or step: what came of it}, "passed" if it is well. place.engine is the engine, server.port its port,
                                   server.options what to start it with again

They are installed into the directory (build/tests/apps) on the first run. mediawiki_external is MediaWiki whose texts are in external storage: 2,400
revisions written, moved, compressed, deleted and undeleted by its own scripts, and read back after each step.

What InnoDB passes and Teak does not is a difference; so is another outcome of a step. Differences that have a reason are in known-differences.txt. Ends with
'N passed, N failed': failed are the differences without a reason."""

import importlib
import json
import os
import subprocess
import sys

from kit.options import parser
from kit.server import Server, free_port

from place import Place, Unavailable

HERE = os.path.dirname(os.path.abspath(__file__))

ENGINES = ("InnoDB", "Teak")
APPLICATIONS = ("sqlalchemy", "django", "sequelize", "mysql2", "go_sql_driver", "connector_j", "mydumper", "pt_osc", "wordpress", "mediawiki",
                "mediawiki_external")
# Applications write ENGINE=InnoDB: each server makes its own engine of any.
OPTIONS = ("--teak-snapshot-isolation=INNODB", "--innodb-buffer-pool-size=256M", "--innodb-log-file-size=96M", "--character-set-server=utf8mb4",
           "--collation-server=utf8mb4_general_ci", "--local-infile=1", "--log-bin=binlog", "--binlog-format=ROW", "--server-id=1",
           "--sql-mode=STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER", "--innodb-flush-log-at-trx-commit=2",
           "--teak-flush-log-at-trx-commit=2", "--sync-binlog=0", "--max-allowed-packet=64M")


def known_differences():
    """{application: {test: reason}}. A name may end with *."""
    known = {}
    with open(os.path.join(HERE, "known-differences.txt"), encoding="utf-8") as lines:
        reason = ""
        for line in map(str.rstrip, lines):
            if line.startswith("#") or not line:
                reason = ""
            elif line.startswith("- "):
                reason = line[2:]
            else:
                application, _, test = line.strip().partition(": ")
                known.setdefault(application, {})[test] = reason
    return known


def reason_of(test, known):
    """Why the test may differ, or None."""
    for name, reason in known.items():
        if test == name or (name.endswith("*") and test.startswith(name[:-1])):
            return reason
    return None


def serve(directory, plugin_dir, engine):
    """A fresh server of one engine, in a directory of the application's."""
    port = free_port()
    server = Server(os.path.join(directory, f"server-{engine.lower()}"), plugin_dir, port=port)
    server.port = port
    server.install()
    server.options = [*OPTIONS, f"--default-storage-engine={engine}"]
    server.start(server.options)
    zones = subprocess.run(["mariadb-tzinfo-to-sql", "--skip-write-binlog", "/usr/share/zoneinfo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "--user=root", "mysql"], input=zones.stdout, check=True)
    server.query("ALTER DATABASE test CHARACTER SET utf8mb4", database=None)
    # Last, since the server's own tables stay as they are.
    server.query(f"SET GLOBAL enforce_storage_engine = {engine}", database=None)
    return server


def compare(name, outcomes, known):
    """Prints what differs; returns how many tests agree, and how many differ without a reason."""
    innodb, teak = outcomes["InnoDB"], outcomes["Teak"]
    different = [test for test in sorted(innodb.keys() | teak.keys()) if innodb.get(test) != teak.get(test)]
    worse = [test for test in different if not (teak.get(test) == "passed" and innodb.get(test) != "passed")]
    unknown = [test for test in worse if reason_of(test, known) is None]
    passed = [sum(outcome == "passed" for outcome in outcomes[engine].values()) for engine in ENGINES]
    count = len(innodb.keys() | teak.keys())
    print(f"{name}: {count} tests or steps, {passed[0]} pass on InnoDB and {passed[1]} on Teak; {count - len(different)} end alike, {len(different) - len(worse)} pass on Teak "
          f"only, {len(worse) - len(unknown)} differ for a known reason, {len(unknown)} without one", flush=True)
    for test in unknown:
        print(f"  {test}: InnoDB {innodb.get(test, 'nothing')}, Teak {teak.get(test, 'nothing')}")
    return count - len(unknown), len(unknown)


def main():
    """Runs the chosen applications."""
    options = parser(__doc__)
    options.add_argument("--engine", choices=ENGINES, action="append", help="run only on this one; results of the other are those of its last run")
    options.add_argument("applications", nargs="*", metavar="APPLICATION", help=", ".join(APPLICATIONS))
    arguments = options.parse_args()
    known = known_differences()
    passed = failed = 0
    for name in arguments.applications or APPLICATIONS:
        module = importlib.import_module(name)
        place = Place(os.path.abspath(arguments.directory), name)
        try:
            module.install(place)
        except Unavailable as error:
            print(f"{name}: skipped: {error}", flush=True)
            continue
        outcomes = {}
        for engine in ENGINES:
            kept = os.path.join(place.directory, f"outcomes-{engine}.json")
            if engine in (arguments.engine or ENGINES):
                server = serve(place.directory, arguments.plugin_dir, engine)
                try:
                    place.engine = engine
                    outcome = module.run(place, server)
                    if not server.is_running():
                        outcome["the server lives"] = "no: see its error log"
                finally:
                    server.kill()
                with open(kept, "w", encoding="utf-8") as out:
                    json.dump(outcome, out, indent=1, sort_keys=True)
            if not os.path.exists(kept):
                sys.exit(f"{name} has not been run on {engine} yet")
            with open(kept, encoding="utf-8") as saved:
                outcomes[engine] = json.load(saved)
        agree, differ = compare(name, outcomes, known.get(name, {}))
        passed, failed = passed + agree, failed + differ
    print(f"{passed} passed, {failed} failed")
    sys.exit(bool(failed))


main()
