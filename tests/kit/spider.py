"""A head with Spider over shards, each a private server with an address of its own; the plugin is Debian's."""

import os
import subprocess

from kit.cases import carry_out
from kit.options import ROOT
from kit.server import Server, free_port

SKIPPED, UNAVAILABLE = 77, 69
HEAD_OPTIONS = ["--plugin-load-add=ha_spider", "--server-id=1", "--loose-spider-internal-xa=1", "--loose-spider-internal-xa-id-type=1", "--loose-spider-local-lock-table=1"]


def plugins(directory):
    """A directory with Teak's plugin and Spider's, or None where that cannot be fetched."""
    made = subprocess.run([os.path.join(ROOT, "scripts/cluster.sh"), "plugin"], env={**os.environ, "TEAK_CLUSTER": directory}, stdin=subprocess.DEVNULL, check=False)
    return None if made.returncode == UNAVAILABLE else os.path.join(directory, "plugins")


class Spider:
    """The servers. A table is made on all shards, with the number of its partition, and at the head."""

    def __init__(self, directory, plugin_dir, shards, options=()):
        self.options, self.password = list(options), os.urandom(8).hex()
        self.head = Server(os.path.join(directory, "head"), plugin_dir, free_port())
        self.shards = []
        for number in range(shards):
            port = free_port()
            shard = Server(os.path.join(directory, f"shard{number}"), plugin_dir, port)
            shard.host, shard.port = f"127.0.0.{number + 2}", port
            shard.network = [f"--bind-address={shard.host}", f"--port={port}", "--skip-name-resolve"]
            self.shards.append(shard)

    def install(self):
        """Fresh data, and all of them started."""
        for number, shard in enumerate(self.shards):
            shard.install()
            self.start(shard)
            shard.query(f"create user spider@127.0.0.1 identified by '{self.password}'", database=None)
            shard.query("grant all on *.* to spider@127.0.0.1", database=None)
            shard.query("create database if not exists test", database=None)
            shard.number = number
        self.head.install()
        self.start(self.head)
        self.head.query("create database if not exists test", database=None)
        for number, shard in enumerate(self.shards):
            self.head.query(f"create server shard{number} foreign data wrapper mysql options (host '{shard.host}', port {shard.port}, user 'spider', password '{self.password}', database 'test')")

    def start(self, server):
        """Also after a kill."""
        number = None if server is self.head else self.shards.index(server)
        server.start(HEAD_OPTIONS if number is None else [f"--server-id={number + 2}", *self.options])

    def table(self, name, columns, key, engine):
        """One that is spread by LIST of `key`, whose values are the numbers of the shards."""
        for number, shard in enumerate(self.shards):
            shard.query(f"create table {name}_{number} ({columns}) engine={engine}")
        parts = ", ".join(f"partition p{number} values in ({number}) comment='srv \"shard{number}\", table \"{name}_{number}\"'" for number in range(len(self.shards)))
        self.head.query(f"create table {name} ({columns}) engine=Spider comment='wrapper \"mysql\"' partition by list ({key}) ({parts})")

    def kill(self):
        """All."""
        for server in (self.head, *self.shards):
            server.kill()


def on_spider(arguments, make, cases):
    """Runs these cases of what `make` makes of a directory of plugins, which has servers as `spider`; the exit status, 77 where there is no plugin of Spider."""
    subprocess.run(["rm", "-rf", arguments.directory], check=True)
    plugin_dir = plugins(arguments.directory)
    if plugin_dir is None:
        return SKIPPED
    made = make(plugin_dir)
    try:
        made.make()
        return 1 if carry_out([getattr(made, f"case_{name}") for name in cases]) else 0
    finally:
        made.spider.kill()
