#!/usr/bin/python3
"""Random tables and random statements, the same in InnoDB and in Teak, whatever a user may write: rows, counts, errors, warnings and definitions must be the
same. A history that shows a difference is made smaller by itself and printed as SQL. Prints 'N passed, N failed', a history each."""

import random
import sys
import time

import pymysql

from kit.options import parser, seed
from kit.replicas import PRIMARY_OPTIONS
from kit.server import Server, free_port

from known import Uses
from pair import Conflict, Difference, Pair
from replica import Alone, Replica
from shrink import shrunk
from statements import Writer

# Each kind of history: what its tables may have, how many sessions, settings of both sides, settings of Teak's.
KINDS = {
    "plain": ({"generated": True}, 1, [], []),
    "foreign": ({"foreign": True}, 1, [], []),
    "all": ({"generated": True, "foreign": True, "versioned": True, "partitions": True}, 1, [], []),
    "versions": ({"foreign": True, "versioned": True}, 1, [], []),
    "memory": ({"generated": True, "partitions": True}, 1, [], ["teak_default_in_memory = on"]),
    "sessions": ({"foreign": True}, 3, ["innodb_snapshot_isolation = on"], []),
    "replica": ({"foreign": True, "generated": True}, 1, ["binlog_row_image = minimal", "binlog_format = row"], []),
    "mixed": ({"foreign": True, "generated": True}, 2, ["binlog_format = mixed", "innodb_snapshot_isolation = on"], []),
    "alone": ({"foreign": True, "generated": True}, 3, ["binlog_format = mixed"], []),
    "committed": ({"foreign": True, "generated": True}, 3, ["tx_isolation = 'READ-COMMITTED'"], []),
}
# Those that a replica follows.
FOLLOWED = ("replica", "mixed", "alone")
# Columns that a REPLACE does not name are not in a minimal image: with any engine replicas keep what was there, so this
# kind has none.
MINIMAL = "replica"
FEATURES = ("foreign", "generated", "partitions", "versioned")
# A partitioned table without its .par file: with that the server begins a DROP, also one that has to wait for a
# prepared transaction, with any engine.
HALF_DROPPED = 1696
RESTART, KILL, COMPARE = "-- restart", "-- kill", "-- compare"


def history(kind, seed, length):
    """The steps of a history, as its seed says: pairs of a session and a statement."""
    features, sessions, _, _ = KINDS[kind]
    writer = Writer(random.Random(seed), {name: features.get(name, False) for name in FEATURES}, sessions)
    steps = list(writer.beginning())
    for number in range(length):
        steps += writer.steps()
        if number % 25 == 24:
            steps.append((0, COMPARE))
    # What is in memory alone does not outlive the server.
    if kind not in ("memory", *FOLLOWED) and seed % 4 == 0:
        steps.insert(len(steps) * 2 // 3, (0, KILL if seed % 8 == 0 else RESTART))
    return steps + [(0, COMPARE)]


class Runner:
    """Carries out histories on one server, which a replica may follow."""

    def __init__(self, server, options, replica):
        self.server, self.options, self.replica = server, options, replica
        self.counts = {"statements": 0, "conflicts": 0, "cut short": 0}
        self.uses = Uses()

    def play(self, kind, steps):
        """The steps, from empty databases on. Returns the Difference that they end with, or None, and how many steps were carried out."""
        _, sessions, settings, teak_settings = KINDS[kind]
        if not self.server.is_running():
            self.server.start(self.options)
        pair = (Alone if kind == "alone" else Pair)(self.server, sessions, settings, teak_settings, self.uses)
        replica = self.replica if kind in FOLLOWED else None
        done = 0
        try:
            if replica:
                replica.begin()
            pair.begin()
            for session, statement in steps:
                if kind == MINIMAL and (statement.startswith("replace") or " replace into " in statement):
                    done += 1
                    continue
                self.one(pair, session, statement)
                done += 1
                if replica and statement == COMPARE:
                    replica.compare()
        except Difference as difference:
            if difference.kind == "end":
                # It may be about to go yet.
                self.server.kill()
                said = self.server.log_end(300)
                if "InnoDB: Assertion failure" in said and "ha_teak" not in said:
                    self.cut_short("InnoDB has ended the server")
                    return None, done
            return difference, done + 1
        except Conflict as conflict:
            self.cut_short(str(conflict))
        except (pymysql.err.MySQLError, RuntimeError) as error:
            if error.args[:1] == (HALF_DROPPED,):
                self.cut_short("a DROP that waited in vain has left a table without its partitions")
                return None, done
            said = self.server.log_end()
            self.server.kill()
            return Difference("end", f"{error}\n{said}"), done + 1
        finally:
            self.counts["statements"] += done
            self.counts["conflicts"] += pair.conflicts
            for side in pair.sides:
                side.close()
        return None, done

    def cut_short(self, reason):
        """Counts a history that proves nothing more."""
        self.counts["cut short"] += 1
        self.uses.ends[reason] += 1

    def one(self, pair, session, statement):
        """One step."""
        if statement == COMPARE:
            pair.compare()
        elif statement in (RESTART, KILL):
            for side in pair.sides:
                side.close()
            if statement == KILL:
                self.server.kill()
            else:
                self.server.stop()
            self.server.start(self.options)
            for side in pair.sides:
                side.connect()
            pair.compare()
        else:
            pair.run(session, statement)


def printed(steps):
    """A history as SQL."""
    several = len({session for session, _ in steps}) > 1
    return "\n".join(f"{statement}{'' if statement.startswith('--') else ';'}{f'    -- session {session}' if several else ''}" for session, statement in steps)


def report(runner, kind, seed, steps, difference, arguments):
    """Prints a history that ends in a difference, as small as it could be made."""
    print(f"FAILED {kind}, seed {seed} ({difference.kind}), step {len(steps)}:\n    {difference}", flush=True)
    if arguments.shrink_seconds:
        small, last = shrunk(steps, lambda tried: runner.play(kind, tried)[0], difference, arguments.shrink_seconds)
        print(f"--- smaller ({len(small)} of {len(steps)} steps), {kind}, seed {seed}\n{printed(small)}\n    {last}\n---", flush=True)


def main():
    """Plays histories until the time is up or their number is reached."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--histories", type=int, default=10**9)
    options.add_argument("--length", type=int, default=120, help="statements of a history")
    options.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    options.add_argument("--shrink-seconds", type=float, default=60)
    options.add_argument("--keep-going", action="store_true", help="after a difference, too")
    arguments = options.parse_args()
    arguments.seed = seed(1)

    followed = any(kind in FOLLOWED for kind in arguments.kinds)
    port = free_port() if followed else None
    server = Server(arguments.directory, arguments.plugin_dir, port)
    server.install()
    options = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=1", "--teak-flush-log-at-trx-commit=1", "--teak-cache-size=64M",
               "--teak-snapshot-isolation=INNODB", "--teak-memory-max-size=512M", "--thread-stack=512K"]
    options += PRIMARY_OPTIONS if followed else []
    server.start(options)
    replica = Replica(server, arguments.directory, arguments.plugin_dir, port) if followed else None
    runner = Runner(server, options, replica)
    passed, failures, began = 0, 0, time.monotonic()
    try:
        for number in range(arguments.histories):
            if time.monotonic() - began > arguments.seconds:
                break
            kind, own = arguments.kinds[number % len(arguments.kinds)], arguments.seed + number
            steps = history(kind, own, arguments.length)
            difference, done = runner.play(kind, steps)
            if difference is None:
                passed += 1
                continue
            failures += 1
            report(runner, kind, own, steps[:done], difference, arguments)
            if not arguments.keep_going:
                break
    finally:
        server.kill()
        if replica:
            replica.server.kill()
        # Also of a run that is ended.
        print(f"what is known to differ, and how often it was met:\n{runner.uses}")
        print(", ".join(f"{count} {name}" for name, count in runner.counts.items()))
        print(f"{passed} passed, {failures} failed", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
