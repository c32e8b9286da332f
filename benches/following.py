"""Sources, a target and `teak replicate` between them, for the benchmarks of that."""

import contextlib
import os
import shutil
import time

import pymysql

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, Agent
from kit.server import Server, free_port


class Following:
    """So many sources, the databases `d0`, `d1` ... of which are followed, and a target with a cache of so many bytes. A context: when it ends, so do all."""

    def __init__(self, arguments, sources, cache=256 << 20):
        shutil.rmtree(arguments.directory, ignore_errors=True)
        self.sources = [Server(os.path.join(arguments.directory, f"s{number}"), arguments.plugin_dir, free_port()) for number in range(sources)]
        self.target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir)
        self.agent = Agent(arguments.teak, arguments.directory, self.target)
        self.cache = cache

    def __enter__(self):
        for number, source in enumerate(self.sources):
            source.install()
            source.start([*SOURCE_OPTIONS, f"--server-id={number + 1}", f"--gtid-domain-id={number + 1}", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"])
            source.query(f"create database d{number}", database=None)
        self.target.install()
        self.target.start([*TARGET_OPTIONS, f"--teak-cache-size={self.cache}", "--teak-flush-log-at-trx-commit=2"])
        return self

    def __exit__(self, *error):
        self.agent.kill()
        for server in [*self.sources, self.target]:
            server.kill()

    def configure(self, **target):
        """All sources from the beginning of their logs on."""
        self.agent.configure({f"s{number}": {"socket": f'"{source.socket}"', "start": '{ file = "b.000001", position = 4 }', "databases": f'["d{number}"]'}
                              for number, source in enumerate(self.sources)}, **target)

    def positions(self):
        """How far each source was applied."""
        with contextlib.suppress(pymysql.err.MySQLError):
            return dict(self.target.query("select source, gtid from teak_replicate.position", database=None))
        return {}

    def logged(self):
        """How far each source's log goes."""
        return {f"s{number}": source.query("select @@gtid_binlog_pos", database=None)[0][0] for number, source in enumerate(self.sources)}

    def catch_up(self):
        """Until all that the logs have now is applied."""
        def number(gtid):
            return int(gtid.rsplit("-", 1)[-1] or 0)

        wanted = {name: number(gtid) for name, gtid in self.logged().items()}
        while not all(number(self.positions().get(name, "")) >= last for name, last in wanted.items()):
            if self.agent.process.poll() is not None:
                raise SystemExit(f"the program has ended: {self.agent.says()}")
            time.sleep(0.005)
