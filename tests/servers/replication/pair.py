"""What the small tests of replication have in common: a command line, a primary and a replica that follows it, and a count of what went well."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from replication import PRIMARY_OPTIONS, REPLICA_OPTIONS, follow, let_replicate
from server import Server, free_port


class Pair:
    """A primary, and a replica of it, each in a directory of its own; what was asked for on the command line is in `arguments`."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.port = free_port()
        self.primary = Server(os.path.join(arguments.directory, "primary"), arguments.plugin_dir, self.port)
        self.replica = Server(os.path.join(arguments.directory, "replica"), arguments.plugin_dir)

    def start(self, primary_options, replica_options):
        """Fresh servers, of which one follows the other; with None the replica is neither installed nor started."""
        self.primary.install()
        self.primary.start(primary_options)
        let_replicate(self.primary.connect(autocommit=True))
        if replica_options is not None:
            self.replica.install()
            self.replica.start(replica_options)
            follow(self.replica.connect(autocommit=True), self.port)

    def kill(self):
        """Both."""
        self.replica.kill()
        self.primary.kill()


def main(name, about, cases, options=lambda arguments: (PRIMARY_OPTIONS, REPLICA_OPTIONS), **defaults):
    """Runs `cases`, a generator over a pair that says of each whether it went well, and ends the program. `options` gives those of both servers;
    `defaults` are options of the command line and their values."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--directory", required=True)
    for option, default in defaults.items():
        parser.add_argument(f"--{option}", type=type(default), default=default)
    arguments = parser.parse_args()
    pair = Pair(arguments)
    outcomes = []
    try:
        pair.start(*options(arguments))
        outcomes.extend(cases(pair))
    finally:
        pair.kill()
    failed = outcomes.count(False)
    print(f"{name}: {len(outcomes) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
