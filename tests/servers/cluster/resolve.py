#!/usr/bin/env python3
"""Transactions over shards: the head or a shard is killed at any moment of transfers, and what is left prepared is ended by `teak resolve`.

Afterwards the sum of all accounts is what it was, each transfer is on both shards or on none, those that were answered are there, and nothing is prepared or locked
any more. Ends with 77 where the plugin of Spider cannot be fetched.
"""

import random
import subprocess
import sys
import time

import pymysql

from kit.asking import rows
from kit.busy import Task
from kit.cases import check
from kit.options import parser, seed
from kit.spider import Spider, on_spider

ACCOUNTS, BALANCE, CLIENTS = 20, 1000, 4
# What waits for what is prepared gives up soon.
WAITS = ["--teak-lock-wait-timeout=3", "--innodb-lock-wait-timeout=3"]


class Bank:
    """Accounts on three shards, and a list of transfers on each."""

    def __init__(self, arguments, plugin_dir, source):
        self.spider, self.teak, self.engine, self.source, self.rounds = Spider(arguments.directory, plugin_dir, 3, WAITS), arguments.teak, arguments.engine, source, arguments.rounds
        self.answered, self.stopping, self.next = set(), False, 0

    def make(self):
        self.spider.install()
        self.spider.table("account", "shard int not null, id int not null, balance int not null, primary key (shard, id)", "shard", self.engine)
        self.spider.table("transfer", "shard int not null, id int not null, primary key (shard, id)", "shard", self.engine)
        self.spider.head.query(f"insert into account select s.seq, a.seq, {BALANCE} from seq_0_to_2 s, seq_1_to_{ACCOUNTS} a")

    def resolve(self, *options):
        """Status and what it says."""
        head = self.spider.head
        command = [self.teak, "resolve", "--no-defaults", "--head", "mysql://root@localhost", f"--socket={head.socket}", *options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        check(self.spider.password not in ended.stdout + ended.stderr, "a password is told")
        return ended.returncode, ended.stdout + ended.stderr

    def client(self, number):
        """Transfers between shards until a server is gone."""
        source, made = random.Random(f"{number} {self.next}"), 0
        try:
            connection = self.spider.head.connect(autocommit=False)
            while not self.stopping:
                made += 1
                self.next += 1
                transfer, (one, other) = self.next * 10 + number, source.sample(range(3), 2)
                try:
                    for shard, change in sorted(((one, -1), (other, 1))):
                        rows(connection, f"update account set balance = balance + {change} where shard = {shard} and id = {source.randint(1, ACCOUNTS)}")
                        rows(connection, f"insert into transfer values ({shard}, {transfer})")
                    connection.commit()
                    self.answered.add(transfer)
                except pymysql.err.OperationalError as error:
                    if error.args[0] not in (1205, 1213):
                        raise
                    connection.rollback()
        except pymysql.err.MySQLError:
            pass  # of whom the server is gone, or a shard

    def quiet(self):
        """Waits until the shards have carried out what a head that is gone had sent."""
        end = time.monotonic() + 30
        while any(shard.is_running() and shard.query("select 1 from information_schema.processlist where user = 'spider'") for shard in self.spider.shards):
            check(time.monotonic() < end, "sessions of a head that was killed do not end")
            time.sleep(0.02)

    def look(self, when):
        """Compares all that is there with what was answered."""
        there = [[row[0] for row in shard.query(f"select id from transfer_{number}")] for number, shard in enumerate(self.spider.shards)]
        counts = {}
        for transfer in sum(there, []):
            counts[transfer] = counts.get(transfer, 0) + 1
        halves = [transfer for transfer, count in counts.items() if count != 2]
        check(not halves, f"{when}: in part only: {halves}")
        missing = self.answered - set(counts)
        check(not missing, f"{when}: answered, and lost: {sorted(missing)}")
        total = sum(int(shard.query(f"select sum(balance) from account_{number}")[0][0]) for number, shard in enumerate(self.spider.shards))
        check(total == 3 * ACCOUNTS * BALANCE, f"{when}: {total} in all accounts")
        for number, shard in enumerate(self.spider.shards):
            check(not shard.query("xa recover"), f"{when}: something is prepared on shard {number}")
            shard.query(f"set statement innodb_lock_wait_timeout = 2 for select * from account_{number} for update")
        check(self.spider.head.query("select (select count(*) from mysql.spider_xa) + (select count(*) from mysql.spider_xa_member)")[0][0] == 0, f"{when}: the head has some yet")

    def case_killed_at_any_moment(self):
        left = 0
        for number in range(self.rounds):
            self.stopping = False
            clients = [Task(self.client, client) for client in range(CLIENTS)]
            time.sleep(self.source.uniform(0.1, 0.6))
            victims = self.source.choice([[self.spider.head], [self.source.choice(self.spider.shards)], [self.spider.head, self.source.choice(self.spider.shards)]])
            for victim in victims:
                victim.kill()
            self.stopping = True
            for client in clients:
                client.end()
            if self.spider.head in victims:
                self.quiet()
            for victim in victims:
                self.spider.start(victim)
            left += sum(len(shard.query("xa recover")) for shard in self.spider.shards)
            said, end = [], time.monotonic() + 60
            while True:
                status, told = self.resolve("--age=0")
                said.append(told)
                if status == 0:
                    break
                check(time.monotonic() < end, f"round {number}: {told}")
                time.sleep(0.2)
            self.look(f"round {number}, {len(victims)} killed ({'head' if self.spider.head in victims else 'shard'}); resolve said {said}")
        print(f"{len(self.answered)} transfers were answered, {left} prepared branches were left in {self.rounds} rounds")

    def case_young_busy_and_unknown_ones_are_left(self):
        shard = self.spider.shards[0]
        stranger = shard.connect(autocommit=True)
        for statement in ("xa start 'somebody', 'else'", "insert into transfer_0 values (0, 1)", "xa end 'somebody', 'else'", "xa prepare 'somebody', 'else'"):
            rows(stranger, statement)
        status, told = self.resolve("--age=0")
        check(status == 1 and "no head has noted it" in told and "XA ROLLBACK X'736f6d65626f6479',X'656c7365',1" in told, told)
        # The head notes one, and has no session that does anything about it.
        head = self.spider.head
        name, branch = "ffff0000000000000001", "1"
        owner = shard.connect(autocommit=True)
        for statement in (f"xa start '{name}', '{branch}'", "insert into transfer_0 values (0, 2)", f"xa end '{name}', '{branch}'", f"xa prepare '{name}', '{branch}'"):
            rows(owner, statement)
        columns = f"(format_id, gtrid_length, bqual_length, data{{}}) values (1, {len(name)}, 1, '{name}{branch}'"
        head.query(f"insert into mysql.spider_xa {columns.format(', status')}, 'COMMIT')")
        head.query(f"insert into mysql.spider_xa_member {columns.format(', scheme, host, port, socket, username, password')}, 'mysql', '{shard.host}', '{shard.port}', '', 'spider', '{self.spider.password}')")
        if self.engine == "Teak":
            status, told = self.resolve()
            check(status == 1 and "younger than 60 s" in told, told)
        status, told = self.resolve("--age=0", "--dry-run")
        check(status == 1 and "would commit" in told and "1 would be resolved, 1 left" in told, told)
        status, told = self.resolve("--age=0")
        check(status == 1 and "has it still: KILL it" in told, told)
        owner.close()
        end = time.monotonic() + 20
        while "resolved, 1 left" not in (told := self.resolve("--age=0")[1]) or told.count("committed") != 1:
            check(time.monotonic() < end, told)
            time.sleep(0.1)
        check(shard.query("select count(*) from transfer_0 where id = 2")[0][0] == 1, "it is not committed")
        stranger.close()
        end = time.monotonic() + 20
        while True:
            try:
                shard.query("xa rollback 'somebody', 'else'")
                break
            except pymysql.err.MySQLError:
                check(time.monotonic() < end, "the stranger's cannot be rolled back")
                time.sleep(0.1)
        shard.query("delete from transfer_0 where id = 2")
        check(self.resolve("--age=0") == (0, "0 resolved, 0 left\n"), "something is left")

    def case_a_shard_that_is_away_is_told(self):
        self.spider.shards[2].kill()
        status, told = self.resolve("--age=0")
        check(status == 1 and f"{self.spider.shards[2].host}:" in told and "cannot be asked" in told, told)
        self.spider.start(self.spider.shards[2])
        ended = subprocess.run([self.teak, "resolve", "--no-defaults", "--head", "mysql://root@localhost", f"--socket={self.spider.shards[0].socket}"],
                               capture_output=True, text=True, check=False)
        check(ended.returncode == 2 and "is no head" in ended.stderr, ended.stderr)


def main():
    arguments = parser(__doc__, rounds=10, engine="Teak").parse_args()
    return on_spider(arguments, lambda plugin_dir: Bank(arguments, plugin_dir, random.Random(seed())), ("young_busy_and_unknown_ones_are_left", "a_shard_that_is_away_is_told", "killed_at_any_moment"))


if __name__ == "__main__":
    sys.exit(main())
