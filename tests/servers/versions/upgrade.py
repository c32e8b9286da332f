#!/usr/bin/python3
"""A data directory of MariaDB 10.11 goes on under 11.8, in the Debian that has it (scripts/root.sh); what becomes of it on the way back.

Makes tables of many kinds on this machine's server, hands a copy of the directory to the other Debian, where upgraded.py goes on with it, and starts this
machine's server on what comes back. Needs root, Debian 12, and the plugin built in the other one: `make test` sees to that (step other_debian).

usage: tests/run versions upgrade
"""

import json
import os
import shutil
import subprocess
import sys

from kit.cases import carry_out, check
from kit.options import BUILD, ROOT, parser
from kit.server import Server

import content

OTHER = "trixie"
SKIPPED = 77


def shared(name):
    """Where a directory below build/ of the other Debian is for this one."""
    return os.path.join(BUILD, OTHER, "build", name)


def in_other(*command):
    """Runs a command there; what it printed."""
    done = subprocess.run([os.path.join(ROOT, "scripts/root.sh"), OTHER, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Upgrade:
    """A server here, and its directory there."""

    def __init__(self, server):
        self.server = server

    def case_there_and_not_back(self):
        """What 10.11 has written is there under 11.8, with mariadb-upgrade killed and run again; 10.11 harms nothing of what 11.8 leaves."""
        server, there = self.server, shared("tests/upgraded")
        server.install()
        server.start()
        content.make(server)
        found = content.digest(server)
        server.stop()
        shutil.rmtree(there, ignore_errors=True)
        os.makedirs(os.path.join(there, "tmp"))
        shutil.copytree(server.data, os.path.join(there, "data"))
        with open(os.path.join(there, "found.json"), "w", encoding="utf-8") as file:
            json.dump(found, file)
        self.go_on("first")
        shutil.rmtree(server.data)
        shutil.copytree(os.path.join(there, "data"), server.data)
        # The server may refuse it or not (10.11.18 does not, as InnoDB's log is the same): Teak's files do not stand in
        # its way, and take no harm.
        try:
            server.start()
        except RuntimeError as error:
            check("InnoDB" in str(error), f"10.11 ends for another reason than InnoDB's files:\n{error}")
        else:
            with open(os.path.join(there, "found.json"), encoding="utf-8") as file:
                found = json.load(file)
            now = content.digest(server)
            # What is not history is later than this server's time.
            check(all(now[name] == found[name] for name in found if "history" not in name), f"10.11 reads other rows: {found} {now}")
            server.stop()
        shutil.rmtree(os.path.join(there, "data"))
        shutil.copytree(server.data, os.path.join(there, "data"))
        self.go_on("again")

    def go_on(self, when):
        """The other server's part."""
        told = in_other(*os.environ.get("TEAK_IN_OTHER", "").split(), "tests/run", "versions", "upgraded", when)
        check("1 passed, 0 failed" in told, told)


def main():
    arguments = parser(__doc__, names="cases; all without").parse_args()
    if os.geteuid() != 0 or not os.path.exists(shared("plugin/ha_teak.so")):
        print(f"no plugin for the server of {OTHER} in build/{OTHER}, or not root")
        return SKIPPED
    server = Server(arguments.directory, arguments.plugin_dir)
    try:
        return carry_out([Upgrade(server).case_there_and_not_back], arguments.names)
    finally:
        if server.is_running():
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
