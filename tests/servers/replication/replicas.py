#!/usr/bin/env python3
"""`make replicas`: a primary with two replicas, as a user makes them; the primary is killed, a replica takes over, the old one comes back; wrong input; the end.

All of it under the directory of the servers.
"""

import glob
import os
import socket
import subprocess
import sys
import time

import pymysql

from kit.cases import carry_out, cases_of, check
from kit.options import ROOT, parser
from kit.server import free_port

SCRIPT = os.path.join(ROOT, "scripts/replicas.sh")


class Replicas:
    """The cases, which go on with what the one before has left."""

    def __init__(self, directory):
        self.directory, self.port = os.path.join(directory, "replicas"), free_port()
        self.environment = {**os.environ, "TEAK_REPLICAS": self.directory, "TEAK_REPLICAS_PORT": str(self.port), "TEAK_VAR": os.path.join(directory, "var")}

    def script(self, *command, status=0):
        """What the script says."""
        ended = subprocess.run([SCRIPT, *command], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        check(status is None or ended.returncode == status, f"{' '.join(command)} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.stdout + ended.stderr

    def ask(self, number, query):
        path = os.path.join(self.directory, str(number), "run/teak.sock")
        with pymysql.connect(unix_socket=path, user="root", database="catalogue", autocommit=True, read_timeout=60) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def pids(self):
        return [int(open(path, encoding="ascii").read()) for path in glob.glob(os.path.join(self.directory, "*/run/mariadbd.pid"))]

    def everywhere(self, query, numbers=(1, 2, 3)):
        """The answer of all, once they have what the primary has."""
        (position,), = self.ask(self.primary(), "select @@gtid_binlog_pos")
        answers = {}
        for number in numbers:
            check(number == self.primary() or self.ask(number, f"select master_gtid_wait('{position}', 60)") == ((0,),), f"server {number} is not at {position}")
            answers[number] = self.ask(number, query)
        check(len(set(answers.values())) == 1, f"{query}: {answers}")
        return answers[numbers[0]]

    def primary(self):
        with open(os.path.join(self.directory, "primary"), encoding="ascii") as file:
            return int(file.read())

    def case_a_taken_port_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.3", self.port + 2))
            taken.listen()
            told = self.script("up", status=1)
        check(f"port {self.port + 2} on 127.0.0.3 is taken" in told and "TEAK_REPLICAS_PORT=" in told, told)
        check(not self.pids(), "a server runs")

    def case_made_with_all_rows(self):
        told = self.script("up")
        check("primary of 2" in told and told.count("follows 1: Yes/Yes") == 2, told)
        (count,), = self.everywhere("select count(*) from packages")
        check(count > 1000, f"{count} rows")
        self.everywhere("checksum table packages")
        began = time.monotonic()
        check("loading" not in self.script("up"), "it was loaded again")
        print(f"the second time took {time.monotonic() - began:.1f} s")

    def case_a_replica_takes_over(self):
        self.ask(1, "insert into packages (package, version, architecture, size, filename, sha256) values ('zz-first', '1', 'all', 1, 'zz', unhex(sha2('zz', 256)))")
        check("no server is the primary" in self.script("kill"), "it says something else")
        check("no server is the primary" in self.script("sql", status=1), "it says something else")
        self.script("promote")
        check(self.primary() != 1, "the same one")
        check(self.ask(self.primary(), "select count(*) from packages where package = 'zz-first'") == ((1,),), "a row is missing")
        self.ask(self.primary(), "delete from packages where package = 'zz-first'")
        check(f"follows {self.primary()}: Yes/Yes" in self.script("up"), "the old one does not follow")
        self.everywhere("checksum table packages")

    def case_all_are_started_again(self):
        primary = self.primary()
        self.script("down")
        self.script("up")
        check(self.primary() == primary, "another primary")
        self.script("kill", str(primary % 3 + 1))
        check(" away" in self.script("status"), "status does not say it")
        self.script("kill", "7", status=1)
        self.script("up")
        self.everywhere("checksum table packages")

    def case_ended_with_nothing_left(self):
        pids = self.pids()
        check(len(pids) == 3, f"{pids}")
        self.script("down")
        check(not [pid for pid in pids if os.path.exists(f"/proc/{pid}")], "servers are left")


def main():
    arguments = parser(__doc__, names="cases, which go on with what those before them have left").parse_args()
    subprocess.run(["rm", "-rf", arguments.directory], check=True)
    os.makedirs(arguments.directory)
    replicas = Replicas(arguments.directory)
    try:
        return 1 if carry_out(cases_of(Replicas), arguments.names, arguments=(replicas,)) else 0
    finally:
        replicas.script("down", status=None)


if __name__ == "__main__":
    sys.exit(main())
