#!/usr/bin/env python3
"""Which anomalies occur at which isolation level: clients append to lists and read them, and their history is searched for cycles.

Each run has a level and a kind of list (lists.py), some also DDL or kills of the server in between. What the level forbids fails the test, what it allows is
reported. InnoDB at REPEATABLE READ, which loses updates, shows that the search finds something. Prints 'N passed, N failed', a run each.
"""

import sys
import threading
import time

from kit.options import parser, seed
from kit.server import Server

import lists as list_kinds
from anomalies import KINDS, READ_COMMITTED_ALLOWS, SERIALIZABLE_ALLOWS, SNAPSHOT_ALLOWS, Analysis
from clients import Changer, Client, Keys
from history import COMMITTED

ALLOWED = {"READ COMMITTED": READ_COMMITTED_ALLOWS, "REPEATABLE READ": SNAPSHOT_ALLOWS, "SERIALIZABLE": SERIALIZABLE_ALLOWS}
OPTIONS = ["--teak-snapshot-isolation=ON", "--teak-lock-wait-timeout=2", "--innodb-lock-wait-timeout=2", "--lock-wait-timeout=5", "--innodb-print-all-deadlocks=OFF"]
# What is left of lists that are read without a lock and overwritten, where that is allowed.
OVERWRITTEN = READ_COMMITTED_ALLOWS | {"incompatible order", "lost append", "stale read"}
# More shows nothing new.
SHOWN = 4


class Run:
    """A level, a kind of list, and what happens meanwhile."""

    def __init__(self, engine, level, kind, meanwhile="", settings=(), allowed=None, expected=()):
        self.engine, self.level, self.kind, self.meanwhile, self.settings = engine, level, kind, meanwhile, settings
        self.allowed = ALLOWED[level] if allowed is None else allowed
        # What has to be found.
        self.expected = expected
        self.name = " ".join(filter(None, (engine, level, kind, meanwhile, *settings)))


def runs():
    """All of them."""
    lost = {"allowed": OVERWRITTEN, "expected": ("lost append",)}
    for level in ALLOWED:
        for kind in list_kinds.KINDS:
            yield Run("Teak", level, kind, **(lost if (level, kind) == ("READ COMMITTED", "rewrite") else {}))
    for level in ALLOWED:
        yield Run("Teak", level, "rows" if level == "SERIALIZABLE" else "concat", "with DDL")
        yield Run("Teak", level, "index" if level == "SERIALIZABLE" else "concat", "with kills")
        # The same trees, and other ways of a commit.
        for kind in ("concat", "rows", "index"):
            yield Run("Teak IN_MEMORY=YES", level, kind)
    yield Run("Teak IN_MEMORY=YES", "REPEATABLE READ", "rows", "with DDL")
    yield Run("InnoDB", "SERIALIZABLE", "rows")
    # Documented as lenient: as InnoDB without innodb_snapshot_isolation.
    yield Run("Teak", "REPEATABLE READ", "rewrite", settings=("teak_snapshot_isolation=OFF",), **lost)
    yield Run("InnoDB", "REPEATABLE READ", "rewrite", **lost)


class Tests:
    """One server for all runs."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.server = Server(arguments.directory, arguments.plugin_dir)
        self.report = []

    def carry_out(self, run, seed):
        """Clients for some seconds; the analysis of what they saw."""
        lists, keys, stop = list_kinds.KINDS[run.kind](), Keys(), threading.Event()
        self.server.query("DROP TABLE IF EXISTS lists")
        self.server.query(f"CREATE TABLE lists {lists.schema.format(engine=run.engine)}")
        settings, waits = (f"TRANSACTION ISOLATION LEVEL {run.level}", *run.settings), run.meanwhile == "with DDL"
        threads = [Client(i, self.server, lists, keys, seed * 1000 + i, stop, settings, waits) for i in range(self.arguments.clients)]
        changer = [Changer(self.server, lists, seed, stop)] if run.meanwhile == "with DDL" else []
        for thread in threads + changer:
            thread.start()
        end = time.monotonic() + self.arguments.seconds
        while run.meanwhile == "with kills" and time.monotonic() < end:
            time.sleep(self.arguments.seconds / 3)
            self.server.kill()
            self.server.start(OPTIONS)
        time.sleep(max(0.0, end - time.monotonic()))
        stop.set()
        for thread in threads + changer:
            thread.join(timeout=120)
            if thread.is_alive():
                raise AssertionError("a client does not come to an end")
            if thread.failure is not None:
                raise thread.failure
        connection = self.server.connect(autocommit=True)
        try:
            found = lists.read_range(connection.cursor(), 0, max(keys.all()), "")
        finally:
            connection.close()
        transactions = [transaction for thread in threads for transaction in thread.transactions]
        final = {key: found.get(key, []) for key in keys.all()}
        return threads, changer, Analysis(transactions, final, rereads_may_differ=run.level == "READ COMMITTED")

    def check(self, run, seed):
        """Whether the run shows nothing that its level forbids, and what it has to show."""
        began = time.monotonic()
        threads, changer, analysis = self.carry_out(run, seed)
        counts = analysis.counts()
        committed = sum(transaction.outcome == COMMITTED for transaction in analysis.transactions)
        forbidden = [anomaly for anomaly in analysis.found if anomaly.kind not in run.allowed]
        missing = [kind for kind in run.expected if not counts.get(kind)]
        good = committed > 0 and not forbidden and not missing
        shown = ", ".join(f"{kind} {counts[kind]}" for kind in KINDS if kind in counts) or "none"
        errors = {}
        for thread in threads:
            for code, count in thread.errors.items():
                errors[code] = errors.get(code, 0) + count
        more = f", {changer[0].changes} changes of the table" if changer else ""
        print(f"{'ok' if good else 'FAILED':7} {run.name}: {committed} committed of {len(analysis.transactions)}{more}; errors {errors}; anomalies: {shown} ({time.monotonic() - began:.0f} s)", flush=True)
        for anomaly in forbidden[:SHOWN]:
            print(f"        {anomaly.kind}: {anomaly.text}", flush=True)
            for number in anomaly.transactions:
                print(analysis.story(number), flush=True)
        for kind in missing:
            print(f"        no '{kind}', which this run has to find", flush=True)
        self.report.append((run, counts))
        return good

    def run(self):
        """All runs; the number that failed."""
        passed = failed = 0
        self.server.install()
        self.server.start(OPTIONS)
        try:
            for number, run in enumerate(runs()):
                if self.arguments.only and self.arguments.only not in run.name:
                    continue
                try:
                    good = self.check(run, self.arguments.seed + number)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    print(f"FAILED  {run.name}: {type(error).__name__}: {error}", flush=True)
                    good = False
                    if not self.server.is_running():
                        self.server.start(OPTIONS)
                passed, failed = passed + good, failed + (not good)
        finally:
            self.server.kill()
        self.table()
        print(f"{passed} passed, {failed} failed")
        return failed

    def table(self):
        """Level by level: what may occur, and what did."""
        groups = {}
        for run, counts in self.report:
            group = groups.setdefault(" ".join(filter(None, (run.engine, run.level, *run.settings))), [run, {}])
            for kind, count in counts.items():
                group[1][kind] = group[1].get(kind, 0) + count
        for name, (run, counts) in groups.items():
            may = ", ".join(kind for kind in KINDS if kind in run.allowed) or "nothing"
            did = ", ".join(f"{kind} {counts[kind]}" for kind in KINDS if kind in counts) or "nothing"
            print(f"{name}: may show {may}; showed {did}")


def main():
    """Runs what the command line asks for."""
    options = parser(__doc__, clients=8)
    options.add_argument("--seconds", type=float, default=3.0, help="of each run")
    options.add_argument("--only", help="runs whose name contains this")
    arguments = options.parse_args()
    arguments.seed = seed()
    sys.exit(1 if Tests(arguments).run() else 0)


if __name__ == "__main__":
    main()
