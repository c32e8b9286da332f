#!/usr/bin/python3
"""`teak replicate` follows several servers at once under writers and DDL, and everything is killed: in the end the target has what all of them have.

Of five sources one writes to several GTID domains, one is a replica of another, one compresses its log, and one has a session with statements in place of
rows: that one stops, and the others go on. Further ones have other character sets. Half of them are copied, the others are followed from the beginning. Some have several workers, with the order of commits kept
and not.

usage: sources.py [--sources N] [--kills N]
"""

import os
import random
import shutil
import sys
import time

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, Agent, beside, expect_same
from kit.cases import carry_out, check
from kit.columns import COLUMNS
from kit.options import parser, seed
from kit.server import Server, free_port
from kills import Definer, Writer, setup, start_again

SOME = 10  # columns of a table of random types
DOMAINS = 3
CHARACTER_SETS = ["latin1", "utf8mb3", "cp1251"]
SECONDS = 60.0


class DomainWriter(Writer):
    """Its transactions are of several GTID domains."""

    def transaction(self, connection, number):
        with connection.cursor() as cursor:
            cursor.execute(f"set gtid_domain_id = {100 + self.random.randrange(DOMAINS)}")
        return super().transaction(connection, number)


class Source:
    """One server that is followed, and what is special about it."""

    def __init__(self, number, directory, plugin_dir, choices):
        self.number, self.name, self.random = number, f"s{number}", choices
        self.kind = ("parent", "compressed", "domains", "statements", "replica")[number] if number < 5 else "other"
        self.server = Server(os.path.join(directory, self.name), plugin_dir, free_port())
        self.port = int(self.server.network[1].split("=")[1])
        # The replica has its parent's database as well.
        self.database = "p" if self.kind == "parent" else "w"
        self.is_copied = number % 2 == 0
        self.workers, self.order = ((1, "true"), (4, "false"), (3, "true"), (1, "true"), (2, "false"))[number % 5]
        self.options = [*SOURCE_OPTIONS, f"--server-id={number + 1}", f"--gtid-domain-id={number + 1}", "--innodb-lock-wait-timeout=2", "--log-slave-updates", "--relay-log=r",
                        "--relay-log-recovery", "--master-retry-count=0", f"--binlog-row-metadata={choices.choice(['no_log', 'full'])}", f"--max-binlog-size={choices.choice(['64K', '1G'])}"]
        if self.kind == "compressed":
            self.options += ["--log-bin-compress=1", "--log-bin-compress-min-len=10"]
        if self.kind == "other":
            self.options += [f"--character-set-server={CHARACTER_SETS[number % len(CHARACTER_SETS)]}", f"--log-bin-compress={choices.randrange(2)}"]
        chosen = choices.sample(COLUMNS, SOME)
        self.tables = {"r0": {f"c{n}": column for n, column in enumerate(chosen)}}

    def databases(self):
        """Those that are followed, and what they are called in the target."""
        names = [self.database] + (["p"] if self.kind == "replica" else [])
        return {name: f"{self.name}_{name}" for name in names}

    def keys(self):
        """Its part of the configuration."""
        names = ", ".join(f'"{name}"' for name in self.databases())
        renamed = ", ".join(f'"{name}" = "{here}"' for name, here in self.databases().items())
        return {"host": '"127.0.0.1"', "port": self.port, "start": '"copy"' if self.is_copied else '"now"', "databases": f"[{names}]", "rename_databases": f"{{ {renamed} }}",
                "workers": self.workers, "commit_order": self.order}

    def make(self):
        """Its tables, and some rows if they are to be copied."""
        made = [f"create table {self.database}.{name} (id int auto_increment primary key, {', '.join(f'{column} {of.definition}' for column, of in columns.items())})"
                for name, columns in self.tables.items()]
        connection = self.server.connect(database=None, autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("set sql_mode = '', innodb_strict_mode = 0, time_zone = '+00:00'")
            for statement in setup(self.database, ", primary key (writer, number)" if self.workers > 1 else "") + made:
                cursor.execute(statement)
            cursor.execute(f"use {self.database}")
            if self.is_copied:
                for statement in ("insert into parent select seq, seq from seq_0_to_19", "insert into child (parent, b) select seq % 20, 'c' from seq_1_to_5000",
                                  "insert into made (a) select seq from seq_1_to_20000", "insert into d0 (a) select seq % 100 from seq_1_to_20000"):
                    cursor.execute(statement)
        connection.close()

    def writers(self):
        """Those of rows, and one of definitions but where a server of MariaDB that is killed, or its replica, would not bear it."""
        kind = DomainWriter if self.kind == "domains" else Writer
        writers = [kind(number, self.server, self.tables, random.Random(self.random.random()), self.database) for number in range(2)]
        if self.kind != "parent":
            definer = Definer(0, self.server, self.tables, random.Random(self.random.random()), self.database)
            # While tables are copied, these stop the source.
            definer.without = ("trigger",) if self.is_copied else ()
            writers.append(definer)
        return writers

    def start(self):
        start_again(self.server, self.options)


class Cases:
    """One run."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.random = random.Random(seed())
        shutil.rmtree(arguments.directory, ignore_errors=True)
        self.sources = [Source(number, arguments.directory, arguments.plugin_dir, random.Random(self.random.random())) for number in range(arguments.sources)]
        self.target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir)
        self.agent = Agent(arguments.teak, arguments.directory, self.target)

    def of_kind(self, kind):
        return next((source for source in self.sources if source.kind == kind), None)

    def begin(self):
        for server, start in [(source.server, source.start) for source in self.sources] + [(self.target, lambda: self.target.start(TARGET_OPTIONS))]:
            server.install()
            start()
        replica = self.of_kind("replica")
        if replica:
            for statement in (f"change master to master_host = '127.0.0.1', master_port = {self.of_kind('parent').port}, master_user = 'root', master_use_gtid = slave_pos, "
                              "master_connect_retry = 1", "start slave"):
                replica.server.query(statement, database=None)
        for source in self.sources:
            if source.is_copied:
                source.make()
        self.wait_for_replica()
        self.configure(self.sources)
        self.agent.start()
        for source in self.sources:
            self.agent.wait_for(f"{source.name}: follows from")
        for source in self.sources:
            if not source.is_copied:
                source.make()

    def configure(self, sources):
        self.agent.configure({source.name: source.keys() for source in sources})

    def wait_for_replica(self):
        """Until the replica has what its parent has."""
        parent, replica = self.of_kind("parent"), self.of_kind("replica")
        if replica is None:
            return
        wanted, limit = parent.server.query("select @@gtid_binlog_pos", database=None)[0][0], time.monotonic() + SECONDS
        while replica.server.query("select @@gtid_slave_pos", database=None)[0][0] != wanted:
            check(time.monotonic() < limit, f"the replica has not {wanted}: {replica.server.query('show slave status', database=None)}")
            time.sleep(0.05)

    def write_a_statement(self):
        """In one session of one source, in place of its rows."""
        source = self.of_kind("statements")
        if source is None:
            return
        connection = source.server.connect(database=source.database, autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("set binlog_format = statement")
            cursor.execute("insert into ledger values (99, 1)")
        connection.close()

    def kill_all(self):
        """One after the other, and again."""
        for kill in range(self.arguments.kills):
            time.sleep(self.random.choice([0.1, 0.5, 1.5]) * (0.5 + self.random.random()))
            self.kill(("agent", "source", "target")[kill % 3])
            if kill == self.arguments.kills // 2:
                self.write_a_statement()

    def case_all_sources_are_followed_whatever_is_killed(self):
        self.begin()
        writers = [writer for source in self.sources for writer in source.writers()]
        beside(writers, self.kill_all)
        followed = [source for source in self.sources if source.kind != "statements"]
        if len(followed) < len(self.sources):
            self.agent.until(lambda: "s3: stopped: " in self.agent.says() and "binlog_format must be ROW" in self.agent.says(), "that a source stops for a statement")
        self.wait_for_replica()
        self.expect_all(followed)
        status = self.agent.stop()
        check((status == 0) == (len(followed) == len(self.sources)), f"SIGTERM ends it with {status}: {self.agent.says()[-2000:]}")

    def expect_all(self, sources):
        """The target has what these have."""
        names = ", ".join(f"'{source.name}'" for source in sources)
        self.agent.until(lambda: not self.target.query(f"select 1 from teak_replicate.copy where source in ({names})", database=None), "that all is copied")
        rows = 0
        for source in sources:
            self.agent.catch_up(source.name, source.server)
            for there, here in source.databases().items():
                rows += expect_same(source.server, self.target, there, here)
                twice = self.target.query(f"select writer, number from `{here}`.ledger group by 1, 2 having count(*) > 1", database=None)
                check(not twice, f"{here} has transactions twice: {twice}")
        check(not self.target.query(f"select * from teak_replicate.ddl where source in ({names})", database=None), "a note of a statement is left")
        # The file is read when the program begins, which goes on with what it has.
        self.configure(sources)
        status, said = self.agent.command("verify")
        check(status == 0, said)
        print(f"        {len(sources)} sources, {rows} rows", flush=True)

    def kill(self, what):
        source = self.random.choice(self.sources)
        with Definer.alone:
            if what == "agent" or self.random.random() < 0.3:
                self.agent.kill()
                self.agent.start()
            if what == "source":
                source.server.kill()
                source.start()
            if what == "target":
                self.target.kill()
                self.target.start(TARGET_OPTIONS)

    def end(self):
        self.agent.kill()
        for server in [source.server for source in self.sources] + [self.target]:
            server.kill()


def main():
    arguments = parser(__doc__, sources=5, kills=5).parse_args()
    cases = Cases(arguments)
    try:
        failed = carry_out([cases.case_all_sources_are_followed_whatever_is_killed])
        if failed:
            print(cases.agent.says()[-3000:], cases.target.log_end())
        return 1 if failed else 0
    finally:
        cases.end()


if __name__ == "__main__":
    sys.exit(main())
