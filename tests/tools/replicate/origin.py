#!/usr/bin/python3
"""`teak replicate` with gtid_domain_id: the target's log tells where transactions come from, and what comes back to where it is from is passed over.

usage: origin.py [CASE...]
"""

import os
import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.agent import SOURCE_OPTIONS, Agent, FollowingCases, expect_same, run_cases
from kit.cases import check
from kit.options import seed
from kit.server import free_port

USAGE = 2
CONFLICTS = (1020, 1205, 1213)


class Writer(threading.Thread):
    """Writes rows of its own until it is stopped."""

    def __init__(self, server, database, part, choices):
        super().__init__()
        self.server, self.database, self.part, self.random, self.stopped, self.trouble, self.written = server, database, part, choices, threading.Event(), None, 0

    def run(self):
        connection = self.server.connect(database=self.database, autocommit=True)
        with connection.cursor() as cursor:
            while not self.stopped.is_set():
                row = self.random.randrange(300) * 2 + self.part
                try:
                    cursor.execute(self.random.choice(["insert into t values ({row}, 1) on duplicate key update b = b + 1", "delete from t where a = {row}", "update t set b = b + 1 where a % 2 = {part} and a < {row}",
                                                       "create table if not exists n{part} (a int primary key)", "drop table if exists n{part}"]).format(row=row, part=self.part))
                    self.written += 1
                except pymysql.err.MySQLError as error:
                    if error.args[0] not in CONFLICTS:
                        self.trouble = error
                        return
                time.sleep(0.003 * self.random.random())


class Cases(FollowingCases):
    """Each has a database of its own."""

    there = None

    def recover(self):
        super().recover()
        if self.there:
            self.there.kill()

    def domains(self, server):
        """The domain and the server of each transaction of a server's log that has rows of a table `t`."""
        found = set()
        for name in sorted(os.listdir(os.path.join(server.directory, "data"))):
            if not name.startswith("b.0"):
                continue
            said = subprocess.run([self.agent.teak, "binlog", os.path.join(server.directory, "data", name)], capture_output=True, check=True).stdout.decode()
            gtid = None
            for line in said.splitlines():
                if " mariadb_gtid " in line:
                    gtid = line.split(" mariadb_gtid ")[1].split()[0]
                elif gtid and " table_map " in line and ".`t` " in line:
                    found.add(tuple(int(part) for part in gtid.split("-")[:2]))
        return found

    def ring(self, database, back, options):
        """Writers at both servers, each with rows of its own, while each follows the other one; `back` follows the second one at the first."""
        choices = random.Random(seed())
        there = self.there = Agent(self.agent.teak, self.directory, self.other)
        there.config, there.log = os.path.join(self.directory, "there.toml"), os.path.join(self.directory, "there.log")
        for server in (self.source, self.other):
            self.at([f"create database {database}", f"create table {database}.t (a int primary key, b int)"], server=server)
        there.configure({"there": self.source_keys(databases=f'["{database}"]', gtid_domain_id=11, **options)})
        there.forget()
        there.start()
        there.wait_for("there: follows from")
        back()
        writers = [Writer(server, database, part, random.Random(choices.random())) for part, server in enumerate((self.source, self.other))]
        for writer in writers:
            writer.start()
        for kill in range(3):
            time.sleep(1)
            for agent in (there, self.agent):
                if agent.process and kill < 2:
                    agent.kill()
                    agent.start()
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join()
            check(writer.trouble is None and writer.written > 20, f"{writer.trouble}, {writer.written} statements")
        return there

    def becomes_same(self, database, agents):
        """Until both have the same, and nothing more comes."""
        def is_still():
            before = [server.query("select @@gtid_binlog_pos", database=None) for server in (self.source, self.other)]
            time.sleep(1)
            return before == [server.query("select @@gtid_binlog_pos", database=None) for server in (self.source, self.other)]
        try:
            agents[0].until(is_still, "that nothing more comes")
            check(expect_same(self.source, self.other, database) > 20, "few rows")
        finally:
            for agent in agents:
                check(agent.process is None or agent.process.poll() is None, agent.says())

    def case_two_servers_follow_each_other(self):
        for database, options in (("ring1", {}), ("ring3", {"workers": 3}), ("ringf", {"workers": 3, "commit_order": "false"})):
            here = Agent(self.agent.teak, self.directory, self.source)
            self.agent = here

            def back():
                here.configure({"back": self.source_keys(self.other, databases=f'["{database}"]', gtid_domain_id=22, **options)})
                here.forget()
                here.start()
                here.wait_for("back: follows from")
            there = self.ring(database, back, options)
            self.becomes_same(database, (there, here))
            check(self.domains(self.other) == {(0, 2), (11, 1)}, f"{self.domains(self.other)} in the second one's log")
            check(self.domains(self.source) == {(0, 1), (22, 2)}, f"{self.domains(self.source)} in the first one's log")
            for agent in (there, here):
                check(agent.stop() == 0, agent.says())
            for server in (self.source, self.other):
                self.at(["delete from teak_replicate.position", "reset master"], server=server)

    def case_rows_that_somebody_else_has_changed_are_named(self):
        self.agent = Agent(self.agent.teak, self.directory, self.other)
        self.at(["create database named"])
        self.at(["create table t (a int, b varchar(9), c int, primary key (b, a))", "create table u (a int)", "insert into t select seq, 'x', 0 from seq_1_to_300"], database="named")
        self.agent.configure({"named": self.source_keys(databases='["named"]', rename_databases='{ "named" = "here" }', start='"copy"', gtid_domain_id=11)})
        self.at(["set global local_infile = 1", "reset master"], server=self.other)
        self.agent.forget()
        self.agent.start()
        self.agent.until(lambda: "all tables are copied" in self.agent.says(), "that all is copied")
        self.at(["update t set c = 1 where a = 7", "delete from t where a = 8", "create table v (a int primary key)", "insert into v values (1)"], database="named")
        self.agent.catch_up("named", self.source)
        status, said = self.agent.command("verify", "--target-log")
        check(status == 0 and not said, said)
        self.at(["create database mine", "create table mine.t (a int)", "insert into mine.t values (1)", "update here.t set c = 2 where a in (7, 9)", "insert into here.u values (3)", "flush binary logs", "delete from here.t where a > 100"],
                server=self.other)
        wanted = ["named: `here`.`t`, key b = 'x', a = 7: changed in 0-2-", "named: `here`.`t`, key b = 'x', a = 9: changed in 0-2-", "named: `here`.`u`, a row of a table without a key: inserted in 0-2-",
                  "named: `here`.`t`, key b = 'x', a = 101: deleted in 0-2-", "named: `here`.`t`: 102 more rows", "teak: somebody else has changed 203 rows"]
        status, said = self.agent.command("verify", "--target-log")
        check(status == 1 and all(text in said for text in wanted) and len(said.splitlines()) == 103, said)
        status, said = self.agent.command("verify", "--target-log", "b.000002")
        check(status == 1 and not any(text in said for text in wanted[:3]) and wanted[3] in said and "200 rows" in said, said)
        self.agent.configure({"named": self.source_keys(databases='["named"]')})
        status, said = self.agent.command("verify", "--target-log")
        check(status == USAGE and "named: without gtid_domain_id" in said, said)
        self.agent.kill()
        self.at(["drop database here", "delete from teak_replicate.position", "reset master"], server=self.other)
        self.at(["reset master"])

    def case_two_servers_of_one_number_are_refused(self):
        self.at(["set global server_id = 1"], server=self.other)
        self.agent = Agent(self.agent.teak, self.directory, self.other)
        self.agent.configure({"same": self.source_keys(gtid_domain_id=11)})
        self.agent.forget()
        status, said = self.agent.command("check")
        check(status == USAGE and "replicate.toml:5: error: same: source and target have one server_id" in said, said)
        self.agent.start()
        check(self.agent.ended() == USAGE and "same: stopped: source and target have one server_id" in self.agent.says(), self.agent.says())
        self.at(["set global server_id = 2", "delete from teak_replicate.position"], server=self.other)

    def case_a_replica_of_mariadb_passes_over_what_comes_back(self):
        # The first one is a replica of the second.
        self.other.kill()
        port = free_port()
        self.other.network = ["--bind-address=127.0.0.1", f"--port={port}"]
        self.other.start([*SOURCE_OPTIONS, "--server-id=2", "--gtid-domain-id=2"])
        self.at(["create user repl@localhost identified by 'x'", "grant replication slave on *.* to repl@localhost"], server=self.other)
        self.source.kill()
        self.source.start([*SOURCE_OPTIONS, "--server-id=1", "--log-slave-updates", "--replicate-wild-ignore-table=teak_replicate.%"])

        def back():
            self.at(["reset master"], server=self.other)
            self.at([f"change master to master_host = '127.0.0.1', master_port = {port}, master_user = 'repl', master_password = 'x', master_use_gtid = slave_pos", "start slave"])
        there = self.ring("ringm", back, {})
        self.becomes_same("ringm", (there,))
        state = self.source.query("show all slaves status", database=None)
        check("Yes" in str(state) and self.source.query("show status like 'slave_running'", database=None)[0][1] == "ON", f"{state}")
        check(self.domains(self.other) == {(2, 2), (11, 1)}, f"{self.domains(self.other)} in the second one's log")
        check(there.stop() == 0, there.says())
        self.at(["stop slave"])


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
