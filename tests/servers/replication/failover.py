#!/usr/bin/env python3
"""The primary of a set of three is killed under load, and scripts/promote.sh has a replica take over: no commit that a client was told of is missing, nothing
is there that no client wrote, a transaction over tables of Teak and InnoDB is whole, and all servers have the same in the end.

Before some kills a replica is killed and started again, or one receives nothing any more, or does not get on with applying. The old primary comes back as one
of the set, which rolls back what nobody was told of, or by chance without that: then it joins if it has nothing of its own, and else is refused, with just the
transactions that only it has listed, and made anew by `teak backup` of the new primary, under load. A primary that has given up to wait for acknowledgements
ends its round, with an error.

Prints a line a round, with the seconds from the last commit acknowledged by the old primary to the first one by the new one, and 'N passed, N failed'. With
--limit that must not take longer, with --start-limit no start of a server that was killed, in seconds.
"""

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import traceback

import pymysql

from kit.asking import expect, rows, wait_until
from kit.options import parser, seed
from kit.replica_set import NOT_ALL, ReplicaSet, went_asynchronous
from kit.server import conflicted

CLIENTS = 4
ACCOUNTS = 20
# Acknowledged commits before a kill: at least, and at most.
COMMITS = 100, 500
# What a client meets when its server is gone, or not there yet, or read-only still.
GONE = (0, 1290, 1927, 2002, 2003, 2006, 2013, 2014)
TABLES = ["written_Teak", "written_InnoDB", "accounts"]


class Client(threading.Thread):
    """Commits numbered transactions on whoever is the primary, and remembers which it was told to be committed, and of which it does not know."""

    def __init__(self, test, number):
        super().__init__(daemon=True)
        self.test, self.number, self.random, self.working = test, number, random.Random(f"{test.seed} {number}"), threading.Lock()
        self.acknowledged, self.unknown, self.failure, self.connection, self.server = set(), set(), None, None, None

    def run(self):
        number = 0
        while not self.test.ending:
            number += 1
            self.test.may_write.wait()
            with self.working:
                try:
                    self.commit(number)
                except (pymysql.err.MySQLError, OSError) as error:
                    if isinstance(error, pymysql.err.OperationalError) and self.connection and conflicted(self.connection, error):
                        continue
                    if error.args[0] not in GONE:
                        self.failure = error
                        return
                    self.connection = None
                    time.sleep(0.01)

    def commit(self, number):
        if self.connection is None:
            self.server = self.test.set.primary
            self.connection = self.server.connect()
        source, target = self.random.sample(range(1, ACCOUNTS + 1), 2)
        rows(self.connection, "begin")
        rows(self.connection, "update accounts set balance = balance - 1 where id = %s", (source,))
        rows(self.connection, "update accounts set balance = balance + 1 where id = %s", (target,))
        rows(self.connection, "insert into written_Teak values (%s, %s)", (self.number, number))
        rows(self.connection, "insert into written_InnoDB values (%s, %s)", (self.number, number))
        self.unknown.add(number)
        rows(self.connection, "commit")
        now = time.monotonic()
        self.acknowledged.add(number)
        self.unknown.remove(number)
        self.test.acknowledged[self.server].append(now)


class Test:
    """The set, its clients, and what they were told."""

    def __init__(self, arguments):
        self.arguments, self.seed = arguments, seed()
        self.random, self.set = random.Random(self.seed), ReplicaSet(arguments.directory, arguments.plugin_dir)
        self.ending, self.may_write = False, threading.Event()
        # When commits of this round were acknowledged, by each server.
        self.acknowledged = {server: [] for server in self.set.servers}
        self.clients = [Client(self, number) for number in range(CLIENTS)]

    def set_up(self):
        self.set.install()
        for engine in ("Teak", "InnoDB"):
            self.set.primary.query(f"create table written_{engine} (client int, number int, primary key (client, number)) engine={engine}")
        self.set.primary.query("create table accounts (id int primary key, balance int not null)")
        self.set.primary.query(f"insert into accounts select seq, 1000 from seq_1_to_{ACCOUNTS}")
        self.set.caught_up()
        self.may_write.set()
        for client in self.clients:
            client.start()

    def alive(self):
        """Fails with a client that met what it should not."""
        for client in self.clients:
            if client.failure:
                raise AssertionError(f"client {client.number}: {client.failure!r}")
        return True

    def wait_for_commits(self, server, count):
        """More of them, acknowledged by this server."""
        goal = len(self.acknowledged[server]) + count
        wait_until(lambda: self.alive() and len(self.acknowledged[server]) >= goal, f"{count} commits on server {server.number}")

    def pause(self):
        """No client is in a transaction."""
        self.may_write.clear()
        for client in self.clients:
            with client.working:
                pass
        self.alive()

    @staticmethod
    def written(server, engine="Teak"):
        return set(server.query(f"select client, number from written_{engine}"))

    def check_rows(self, server):
        """What clients were told is there, and what else is there they were told nothing of. Clients pause."""
        found = self.written(server)
        expect(self.written(server, "InnoDB") ^ found, set(), "transactions of which one engine has its part")
        told, unknown = ({(client.number, number) for client in self.clients for number in numbers(client)}
                         for numbers in (lambda client: client.acknowledged, lambda client: client.unknown))
        expect(told - found, set(), f"acknowledged commits that server {server.number} has not")
        expect(found - told - unknown, set(), "rows that nobody wrote")
        expect(server.query("select sum(balance) from accounts"), ((1000 * ACCOUNTS,),), "the sum of all accounts")

    def kill_a_replica(self):
        """It rolls back what it applied last, and gets it again: until it has, it is a second failure if the primary is lost."""
        victim = self.random.choice(self.set.replicas())
        victim.kill()
        position = self.set.primary.query("select @@gtid_binlog_pos", database=None)[0][0]
        self.set.start(victim)
        expect(victim.query(f"select master_gtid_wait('{position}', 60)", database=None), ((0,),), f"whether server {victim.number} has {position} again")

    def hold_up(self):
        """One replica may be behind when the primary is killed, or both; what lets it go on."""
        chance, victim, old = self.random.random(), self.random.choice(self.set.replicas()), self.set.primary
        if chance < 0.3:
            victim.query("stop slave io_thread", database=None)
            self.wait_for_commits(old, COMMITS[0])
            return f"server {victim.number} received no more", lambda: None
        if chance < 0.6:
            holder = victim.connect()
            rows(holder, "begin")
            rows(holder, "select * from accounts where id = 1 for update")
            self.wait_for_commits(old, COMMITS[0])
            return f"server {victim.number} applied no more", holder.close
        if chance < 0.75:
            for replica in self.set.replicas():
                replica.query("stop slave io_thread", database=None)
            waiting = "show global status like 'Rpl_semi_sync_master_wait_sessions'"
            wait_until(lambda: old.query(waiting, database=None)[0][1] != "0", "a commit that is not acknowledged")
            return "nobody received any more", lambda: None
        self.wait_for_commits(old, COMMITS[0])
        return "nobody was behind", lambda: None

    def one_round(self):
        old = self.set.primary
        for times in self.acknowledged.values():
            times.clear()
        self.wait_for_commits(old, self.random.randint(*COMMITS))
        if self.random.random() < 0.4:
            self.kill_a_replica()
        what, let_go = self.hold_up()
        old.kill()
        expect(went_asynchronous(old), False, f"whether server {old.number} gave up to wait for acknowledgements, so that this round says nothing")
        threading.Timer(0.5, let_go).start()
        self.set.promote()
        expect(self.set.primary is not old, True, "another primary")
        self.wait_for_commits(self.set.primary, 1)
        seconds = self.acknowledged[self.set.primary][0] - self.acknowledged[old][-1]
        self.check_time(seconds, self.arguments.limit, "a failover")
        self.pause()
        self.check_rows(self.set.primary)
        self.may_write.set()
        back = self.come_back(old)
        self.pause()
        self.set.check_same(TABLES)
        for server in self.set.servers:
            self.check_rows(server)
        self.may_write.set()
        return f"{what}; server {self.set.primary.number} took over in {seconds:.2f} s; server {old.number} {back}"

    @staticmethod
    def check_time(seconds, limit, what):
        """Only if there is a limit: how fast the machine is, is not for a test to say."""
        if 0 < limit < seconds:
            raise AssertionError(f"{what} took {seconds:.2f} s")

    def come_back(self, old):
        """The old primary joins, or is refused, by what it has of its own."""
        as_primary = self.random.random() < 0.4
        seconds = self.set.start(old, *(["--init-rpl-role=MASTER"] if as_primary else []))
        self.check_time(seconds, self.arguments.start_limit, "a start after a kill")
        own = self.written(old) - self.written(self.set.primary)
        how = f"was up in {seconds:.2f} s{' as it was' if as_primary else ''}"
        expect(as_primary or not own, True, f"nothing of its own after a start as one of the set: {own}")
        told = self.set.promote(status=NOT_ALL if own else 0)
        if not own:
            return how + " and joined"
        listed = re.findall(r"^    (\d+-\d+-\d+)$", told, re.MULTILINE)
        expect(len(set(listed)), len(own), f"transactions that are listed for rows {own}")
        self.make_anew(old)
        return f"{how}, had {len(own)} transactions of its own, and was made anew"

    def make_anew(self, server):
        """Of a backup of the primary, beside its clients."""
        backup = os.path.join(self.set.directory, "backup")
        server.stop()
        for directory in (backup, server.data):
            subprocess.run(["rm", "-rf", directory], check=True)
        teak = self.arguments.teak
        subprocess.run([teak, "backup", "--no-defaults", "--quiet", f"--socket={self.set.primary.socket}", "--user=root", backup], check=True)
        told = json.loads(subprocess.run([teak, "restore", "--json", backup, f"--datadir={server.data}"], check=True, capture_output=True, text=True).stdout)
        self.set.start(server)
        server.query(f"set global gtid_slave_pos = '{told['backup']['position']['gtid_current_pos']}'", database=None)
        self.set.promote()


def main():
    arguments = parser(__doc__, rounds=3, limit=0.0, start_limit=0.0).parse_args()
    test = Test(arguments)
    passed = failed = 0
    try:
        test.set_up()
        for number in range(arguments.rounds):
            print(f"round {number}: {test.one_round()}", flush=True)
            passed += 1
    except Exception as error:  # whatever it is, the logs are wanted
        traceback.print_exception(error)
        failed = 1
        for server in test.set.servers:
            print(f"--- server {server.number}\n{server.log_end(12)}")
    finally:
        test.ending = True
        test.may_write.set()
        test.set.kill()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
