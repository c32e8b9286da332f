#!/usr/bin/python3
"""A server and a plugin, or a plugin and files, that do not fit each other: what is said, and that nothing is touched.

usage: tests/run versions [CASE...]
"""

import hashlib
import os
import re
import struct
import subprocess
import sys

from kit.cases import carry_out, cases_of, check
from kit.options import parser
from kit.server import MARIADBD, Server, own_plugins

ROWS = 1000


def server_version():
    """The three numbers of the server's version."""
    told = subprocess.run([MARIADBD, "--no-defaults", "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(int(number) for number in re.search(r"Ver (\d+)\.(\d+)\.(\d+)", told).groups())


def digests(directory):
    """Names and contents of all files below."""
    found = {}
    for path, _, files in os.walk(directory):
        for name in files:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), directory)] = hashlib.sha256(file.read()).hexdigest()
    return found


def make_of_another_version(library):
    """As if it had been built for the patch release before: what it declares to the server, and what it says of itself. Returns that version."""
    major, minor, patch = server_version()
    with open(library, "rb") as file:
        content = file.read()

    def interface(patch):
        return struct.pack("<i", (major * 10000 + minor * 100 + patch) << 8)

    check(content.count(interface(patch)) >= 1, "the library declares no version of the server")
    now, before = (f"{major}.{minor}.{number}".encode() for number in (patch, patch - 1))
    check(len(now) == len(before) and content.count(now + b"-MariaDB\0") == 1, "the library does not say what it was built for")
    with open(library, "wb") as file:
        file.write(content.replace(interface(patch), interface(patch - 1)).replace(now + b"-MariaDB\0", before + b"-MariaDB\0"))
    return before.decode()


class Versions:
    """One data directory, with a table in it."""

    def __init__(self, server, plugin_dir):
        self.server, self.plugin_dir = server, plugin_dir
        server.install()
        server.start()
        server.query(f"create table t engine=Teak select seq as a, repeat('x', seq % 100) as b from seq_1_to_{ROWS}")
        self.content = server.query("checksum table t")
        server.stop()

    def has_all(self):
        """The table is as it was."""
        self.server.start()
        try:
            check(self.server.query("checksum table t") == self.content, "the table has other rows")
            check(self.server.query("check table t")[0][3] == "OK", "the table is damaged")
        finally:
            self.server.stop()

    def log_since(self, start):
        """What was added to the error log."""
        with open(self.server.error_log, encoding="utf-8", errors="replace") as file:
            file.seek(start)
            return file.read()

    def case_plugin_of_another_server(self):
        """The server starts without it, says both versions and what to do, and touches no table."""
        files = os.path.join(self.server.data, "#teak")
        before, start = digests(files), os.path.getsize(self.server.error_log)
        self.server.plugin_dir = own_plugins(self.server.directory, self.plugin_dir)
        built_for = make_of_another_version(os.path.join(self.server.plugin_dir, "ha_teak.so"))
        try:
            self.server.start(["--default-storage-engine=InnoDB", "--loose-teak-cache-size=64M"])
            engines = {row[0] for row in self.server.query("show engines")}
            check("Teak" not in engines, "a plugin of another version was loaded")
            self.server.stop()
        finally:
            self.server.plugin_dir = self.plugin_dir
        told = [line for line in self.log_since(start).splitlines() if "Teak:" in line]
        running = ".".join(str(number) for number in server_version())
        check(len(told) == 1 and built_for in told[0] and running in told[0] and "Install" in told[0], f"the error log says {told}")
        check(digests(files) == before, "files of Teak have changed")
        self.has_all()


def main():
    arguments = parser(__doc__, names="cases; all without").parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    try:
        return carry_out(cases_of(Versions(server, arguments.plugin_dir)), arguments.names)
    finally:
        if server.is_running():
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
