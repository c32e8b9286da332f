#!/usr/bin/env python3
"""What scripts/promote.sh refuses, and says then; what goes on once that was seen to. Of a set of three, which is made whole behind each case.
"""

import os
import re
import subprocess
import sys
import threading

import pymysql

from kit.asking import expect, rows, wait_until
from kit.cases import carry_out, cases_of, check
from kit.options import parser
from kit.replica_set import NOT_ALL, PROMOTE, ReplicaSet, went_asynchronous
from kit.replicas import slave_status

WAITING = "show global status like 'Rpl_semi_sync_master_wait_sessions'"


PRIVILEGES = "reload, binlog monitor, replica monitor, replication slave admin, replication master admin, read_only admin"


class Promote:
    """The cases."""

    def __init__(self, arguments):
        self.teak, self.set, self.number = arguments.teak, ReplicaSet(arguments.directory, arguments.plugin_dir), 0
        self.set.install()
        self.set.primary.query("create table t (id int primary key, v int)")
        self.set.caught_up()

    def write(self):
        """A row that is acknowledged."""
        self.number += 1
        self.set.primary.query(f"insert into t values ({self.number}, 0)", read_timeout=30)

    def begin_unacknowledged(self):
        """A row that is not, as no replica receives it."""
        for replica in self.set.replicas():
            replica.query("stop slave io_thread", database=None)
        self.number += 1
        statement = f"insert into t values ({self.number}, 0)"
        primary = self.set.primary

        def run():
            try:
                primary.query(statement)
            except pymysql.err.MySQLError:
                pass
        threading.Thread(target=run).start()
        wait_until(lambda: primary.query(WAITING, database=None)[0][1] == "1", "a commit that is not acknowledged")

    def make_whole(self):
        """All of them run, and have the same."""
        for server in self.set.servers:
            if not server.is_running():
                self.set.start(server)
        self.set.promote()
        for replica in self.set.replicas():
            wait_until(lambda r=replica: self.status(r)["Slave_IO_Running"] == "Yes", f"server {replica.number} receives")
        self.write()
        self.set.check_same(["t"])

    @staticmethod
    def status(server):
        with server.connect(database=None) as connection:
            return slave_status(connection)

    def refused(self, *words, servers=None):
        """The script ends with an error that has these, and nothing else has happened."""
        told = self.set.promote(status=1, servers=servers)
        for word in words:
            check(word in told, f"no '{word}' in: {told}")
        for server in self.set.servers:
            check(not server.is_running() or server.query("select @@read_only", database=None) == ((1,),), "a server can be written")

    def case_wrong_arguments_are_told(self):
        one = f"{self.set.primary.address}={self.set.primary.socket}"
        for arguments, word in (((), "two servers"), ((one,), "two servers"), ((one, one), "given twice"), ((one, "other"), "is not HOST:PORT"), ((one, "--wait"), "needs a value"),
                                ((one, "--wait", "x"), "takes seconds"), ((one, "--lossy"), "no option --lossy"), ((one, "a:1", "--to", "b:1"), "none of the servers"),
                                ((one, "a:1", "--defaults-file", "/nowhere"), "cannot read /nowhere"), ((one, "a:1", "--replica-user", "x'y"), "letters, digits")):
            ended = subprocess.run([PROMOTE, *arguments], capture_output=True, text=True, check=False)
            check(ended.returncode == 1 and word in ended.stderr, f"{arguments}: {ended.returncode} {ended.stderr}")

    def case_a_primary_that_answers_stays(self):
        told = self.set.promote("--to", self.set.replicas()[0].address, status=1)
        check("it answers, and can be written" in told, told)
        check(f"{self.set.primary.address} is the primary" in self.set.promote(), "it is not")

    def case_another_one_on_purpose(self):
        """Also by an account with the privileges that docs/scale-out.md has."""
        old, new = self.set.primary, self.set.replicas()[-1]
        self.write()
        path = os.path.join(self.set.directory, "promoter.cnf")
        with open(path, "w", encoding="ascii") as file:
            file.write("[client]\nuser = promoter\npassword = it's\n")
        for server in self.set.servers:
            with server.connect(autocommit=True) as connection:
                rows(connection, "set sql_log_bin = 0")
                rows(connection, f"grant {PRIVILEGES} on *.* to promoter@localhost identified by 'it''s'")
        old.query("set global read_only = 1", database=None)
        self.set.caught_up()
        self.set.promote("--to", new.address, "--defaults-file", path)
        check(self.set.primary is new, "another one")
        expect(self.status(old)["Master_Port"], new.port, "whom the old one follows")

    def case_two_that_can_be_written(self):
        replica = self.set.replicas()[0]
        replica.query("set global read_only = 0", database=None)
        check("can be written, and follows" in self.set.promote(status=1), "it says something else")
        replica.query("set global read_only = 1", database=None)

    def case_a_replica_that_is_away_may_have_more(self):
        away, other = self.set.replicas()
        other.query("stop slave io_thread", database=None)
        self.write()
        # What it has only received it would throw away when it starts, and after a kill roll the last one back.
        wait_until(lambda: away.query(f"select count(*) from t where id = {self.number}") == ((1,),), "the row is there")
        away.stop()
        self.set.primary.kill()
        self.refused(f"{away.address} does not answer, and may be the only one")
        # What only it, and the old primary, have is lost.
        told = self.set.promote("--accept-loss")
        check(self.set.primary is other, "another one")
        check("it waits until one does" in told, told)
        other.query("set global rpl_semi_sync_master_enabled = 0", database=None)
        self.write()
        other.query("set global rpl_semi_sync_master_enabled = 1", database=None)
        self.set.start(away)
        told = self.set.promote(status=NOT_ALL)
        check(f"{away.address} is refused: it has 1 transactions" in told, told)
        for server in self.set.servers:
            if server is not other:
                self.make_anew(server)

    def make_anew(self, server):
        """As a replica of the primary that has nothing yet."""
        server.kill()
        server.install()
        self.set.start(server)
        self.set.admit(server)
        self.set.promote()

    def case_a_restart_throws_away_what_was_received(self):
        old = self.set.primary
        old.kill()
        for server in self.set.replicas():
            server.stop()
            self.set.start(server)
        self.refused("was started when its primary was gone", old.address)
        self.set.start(old)
        self.set.promote()

    def case_what_cannot_be_applied_is_told(self):
        first, second = self.set.replicas()
        with first.connect(autocommit=True) as connection:
            rows(connection, "set sql_log_bin = 0")
            rows(connection, f"insert into t values ({self.number + 1}, 7)")
        second.query("stop slave io_thread", database=None)
        self.write()
        wait_until(lambda: self.status(first)["Slave_SQL_Running"] == "No", "the replica stops")
        self.set.primary.kill()
        self.refused("cannot apply what it has received", "Duplicate entry")
        with first.connect(autocommit=True) as connection:
            rows(connection, "set sql_log_bin = 0")
            rows(connection, f"delete from t where id = {self.number}")
            rows(connection, "start slave sql_thread")
        self.set.promote()
        check(self.set.primary is first, "another one")

    def case_a_run_that_was_killed_is_gone_on_with(self):
        self.write()
        self.set.caught_up()
        chosen, other = self.set.replicas()
        self.set.primary.kill()
        for server, statement in ((chosen, "stop slave"), (other, "stop slave"), (chosen, "reset slave all"), (chosen, "set global rpl_semi_sync_master_enabled = 1"),
                                  (other, f"change master to master_port = {chosen.port}")):
            server.query(statement, database=None)
            told = self.set.promote("--dry-run")
            check("would be the primary" in told, told)
        self.set.promote()
        self.write()

    def case_replicas_that_do_not_acknowledge(self):
        for server in self.set.replicas():
            server.query("set global rpl_semi_sync_slave_enabled = 0", database=None)
        self.set.primary.kill()
        self.refused("no replica acknowledges commits")
        for server in self.set.replicas():
            server.query("set global rpl_semi_sync_slave_enabled = 1", database=None)
        self.set.promote()

    def case_a_delayed_one_has_the_most(self):
        delayed, other = self.set.replicas()
        with delayed.connect(autocommit=True) as connection:
            rows(connection, "stop slave")
            rows(connection, "change master to master_delay = 3600")
            rows(connection, "start slave")
        wait_until(lambda: self.status(delayed)["Slave_IO_Running"] == "Yes", "it receives")
        other.query("stop slave io_thread", database=None)
        self.write()
        self.set.primary.kill()
        self.refused("applies it 3600 s late on purpose")
        # As docs/scale-out.md has it: its relay log has to stay. The refusal has stopped it to receive.
        with delayed.connect(autocommit=True) as connection:
            rows(connection, "stop slave")
            status = slave_status(connection)
            rows(connection, f"change master to relay_log_file = '{status['Relay_Log_File']}', relay_log_pos = {status['Relay_Log_Pos']}, master_use_gtid = no, master_delay = 0")
            rows(connection, "start slave sql_thread")
            wait_until(lambda: rows(connection, f"select count(*) from t where id = {self.number}") == ((1,),), "the row is there")
        self.set.promote()
        check(self.set.primary is delayed, "another one")

    def case_a_fall_back_is_seen(self):
        primary = self.set.primary
        check(not went_asynchronous(primary), "it says so before")
        primary.query("set global rpl_semi_sync_master_timeout = 100", database=None)
        for replica in self.set.replicas():
            replica.query("stop slave io_thread", database=None)
        self.write()
        check(went_asynchronous(primary), "the error log says nothing")
        check("goes on without acknowledgements after 100 ms" in self.set.promote(), "the script says nothing")
        primary.query("set global rpl_semi_sync_master_timeout = 31536000000", database=None)

    def case_what_only_the_old_primary_has_is_listed(self):
        old = self.set.primary
        self.write()
        self.begin_unacknowledged()
        only = self.number
        old.kill()
        self.set.promote()
        self.write()
        self.set.start(old, "--init-rpl-role=MASTER")
        own = old.query("select @@gtid_binlog_pos", database=None)[0][0]
        told = self.set.promote(status=NOT_ALL)
        expect(re.findall(r"^    (\d+-\d+-\d+)$", told, re.MULTILINE), [own], "the list")
        with self.set.primary.connect(autocommit=True) as connection:
            rows(connection, "set sql_log_bin = 0")
            rows(connection, "grant select on *.* to repl@127.0.0.1")
        expect(self.verified(old), {f"key id = {only}: is not at the source", f"key id = {self.number}: is missing in the target"}, "what teak replicate verify says")
        # As one of the set it would have rolled that back, had it not been started otherwise.
        self.make_anew(old)

    def verified(self, server):
        """The rows in which it differs from the primary."""
        path = os.path.join(self.set.directory, "verify.toml")
        with open(path, "w", encoding="ascii") as file:
            file.write(f'[target]\nsocket = "{server.socket}"\nuser = "root"\n\n[[source]]\nname = "primary"\nhost = "127.0.0.1"\nport = {self.set.primary.port}\n'
                       f'user = "repl"\npassword_file = "{self.set.password_file}"\nstart = "now"\ndatabases = ["test"]\n')
        ended = subprocess.run([self.teak, "replicate", "verify", "--config", path], capture_output=True, text=True, check=False)
        print(ended.stdout, ended.stderr)
        return set(re.findall(r"(key id = .*)$", ended.stdout, re.MULTILINE))


def main():
    arguments = parser(__doc__, names="cases").parse_args()
    subprocess.run(["rm", "-rf", arguments.directory], check=True)
    test = Promote(arguments)

    def whole(case):
        def run():
            case(test)
            test.make_whole()
        run.__name__ = case.__name__
        return run
    try:
        return 1 if carry_out([whole(case) for case in cases_of(Promote)], arguments.names) else 0
    finally:
        test.set.kill()


if __name__ == "__main__":
    sys.exit(main())
