"""Servers of which one is the primary and the others can take over, as scripts/replicas/set.cnf and scripts/promote.sh have them."""

import os
import re
import subprocess

from kit.options import ROOT
from kit.replicas import let_replicate, set_options, slave_status
from kit.server import Server, free_port

PROMOTE = os.path.join(ROOT, "scripts/promote.sh")
# As scripts/promote.sh ends if it left out a server.
NOT_ALL = 3


class ReplicaSet:
    """The servers, and their addresses, which are their names for the script. Who is the primary is what that has said last."""

    def __init__(self, directory, plugin_dir, count=3):
        self.directory, self.primary = directory, None
        self.servers = []
        for number in range(1, count + 1):
            port = free_port()
            server = Server(os.path.join(directory, str(number)), plugin_dir, port)
            server.address, server.number, server.port = f"127.0.0.1:{port}", number, port
            self.servers.append(server)

    def start(self, server, *options):
        """Also after a kill; the seconds it took."""
        return server.start([*set_options(), f"--server-id={server.number}", "--skip-name-resolve", *options])

    def install(self):
        """Fresh data on all, the first one as the primary."""
        os.makedirs(self.directory, exist_ok=True)
        self.password_file = os.path.join(self.directory, "password")
        with open(self.password_file, "w", encoding="ascii") as file:
            file.write("repl\n")
        for server in self.servers:
            server.install()
            self.start(server)
            self.admit(server)
        self.promote("--to", self.servers[0].address)
        self.primary.query("create database if not exists test", database=None)

    @staticmethod
    def admit(server):
        """Makes the account of replicas there."""
        with server.connect(database=None, autocommit=True) as connection:
            let_replicate(connection)

    def promote(self, *options, status=0, servers=None):
        """What the script says, which has to end so; the primary is whom it says to be it."""
        names = [f"{server.address}={server.socket}" for server in (servers or self.servers)]
        command = [PROMOTE, "--replica-user", "repl", "--replica-password-file", self.password_file, *options, *names]
        # With no option file, or the machine's own would say who asks.
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={**os.environ, "HOME": self.directory, "USER": "root"})
        told = ended.stdout + ended.stderr
        assert ended.returncode == status, f"promote.sh {' '.join(options)} ended with {ended.returncode}:\n{told}"
        if found := re.search(r"(\S+) can be written$", told, re.MULTILINE):
            self.primary = next(server for server in self.servers if server.address == found[1])
        return told

    def replicas(self):
        """All that run but the primary."""
        return [server for server in self.servers if server is not self.primary and server.is_running()]

    def caught_up(self, limit=60):
        """Waits for all that run to have what the primary has; its position."""
        position = self.primary.query("select @@gtid_binlog_pos", database=None)[0][0]
        for server in self.replicas():
            if server.query(f"select master_gtid_wait('{position}', {limit})", database=None) != ((0,),):
                with server.connect(database=None) as connection:
                    raise AssertionError(f"server {server.number} is not at {position} within {limit} s: {slave_status(connection)}")
        return position

    def check_same(self, tables):
        """All that run have the same rows."""
        self.caught_up()
        statement = "checksum table " + ", ".join(tables)
        wanted = self.primary.query(statement)
        for server in self.replicas():
            found = server.query(statement)
            assert found == wanted, f"server {server.number} has {found}, the primary {wanted}"

    def kill(self):
        """All."""
        for server in self.servers:
            server.kill()


def went_asynchronous(server):
    """Whether a primary has given up to wait for acknowledgements since its error log was begun: only that tells it of one that is gone."""
    with open(server.error_log, encoding="utf-8", errors="replace") as log:
        return "Timeout waiting for reply of binlog" in log.read()
