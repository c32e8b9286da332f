#!/usr/bin/python3
"""The later server's part of upgrade.py: it goes on with the data directory that lies there. Not a test by itself.

usage: tests/run versions upgraded {first|again}
"""

import json
import os
import subprocess
import sys
import time

from kit.cases import carry_out, check
from kit.options import parser
from kit.server import Server

import content


class Upgraded:
    """A server on a directory that an earlier one has left."""

    def __init__(self, server, when):
        self.server, self.when = server, when

    def compare(self, found, upgraded=True):
        """All is as the earlier server had it."""
        now = content.digest(self.server)
        different = [name for name in found if now[name] != found[name]]
        check(not different, f"not as before: {[(name, found[name], now[name]) for name in different]}")
        wrong = content.unsound(self.server, upgraded)
        check(not wrong, f"CHECK TABLE: {wrong}")

    def upgrade(self, seconds=None):
        """mariadb-upgrade, which is killed after so many seconds."""
        command = ["mariadb-upgrade", "--no-defaults", f"--socket={self.server.socket}", "--user=root", "--force"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
            if seconds is not None:
                time.sleep(seconds)
                program.kill()
                self.server.kill()
            told = program.communicate()[0]
            check(seconds is not None or program.returncode == 0, f"mariadb-upgrade ended with {program.returncode}:\n{told}")

    def case_goes_on(self):
        """Content, a killed upgrade, the upgrade, and changes of all tables."""
        with open(os.path.join(self.server.directory, "found.json"), encoding="utf-8") as file:
            found = json.load(file)
        self.server.start()
        if self.when == "first":
            self.compare(found, upgraded=False)
            self.upgrade(seconds=0.2)
            self.server.start()
            self.upgrade()
            check([row[3] for row in self.server.query("xa recover")] in (["left"], [b"left"]), "the prepared transaction is gone")
            self.compare(found)
            self.server.query("xa rollback 'left'")
            self.change()
            found = content.digest(self.server)
            with open(os.path.join(self.server.directory, "found.json"), "w", encoding="utf-8") as file:
                json.dump(found, file)
            self.server.kill()
            self.server.start()
        self.compare(found)
        self.server.stop()

    def change(self):
        """Statements of all kinds, also what is written anew."""
        for statement in (
            "update types set d = d + 1, t = concat(t, 'x') where id % 3 = 0", "delete from parent where id <= 50", "insert into parts values (100000, 1)",
            "update history set v = 0 where id < 10", "insert into no_key values (1, 'new')", "alter table layouts add column c int default 5",
            "insert into layouts (id) values (9999)", "alter table dense compression='lz4'", "optimize table types", "select nextval(s)",
            "alter table child add index later (p, id)",
        ):
            self.server.query(statement)


def main():
    arguments = parser(__doc__, names="first, or again after the earlier server was tried").parse_args()
    server = Server(arguments.directory.replace("versions-upgraded", "upgraded"), arguments.plugin_dir)
    try:
        return carry_out([Upgraded(server, arguments.names[0]).case_goes_on])
    finally:
        if server.is_running():
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
