#!/usr/bin/env python3
"""`make cluster`: a head with Spider over three shards, as a user makes it; what happens when one is killed, when a partition moves beside writers, and when such a
move is killed.

All of it under the directory of the servers. Ends with 77 where the plugin of Spider cannot be fetched.
"""

import glob
import os
import signal
import subprocess
import sys
import time

import pymysql

from kit.asking import error_of
from kit.busy import Task
from kit.cases import carry_out, cases_of, check
from kit.options import ROOT, parser
from kit.server import free_port
from kit.spider import SKIPPED, UNAVAILABLE

SCRIPT = os.path.join(ROOT, "scripts/cluster.sh")


class Cluster:
    """The cases, which go on with what the one before has left."""

    def __init__(self, directory):
        self.directory = os.path.join(directory, "cluster")
        self.environment = {**os.environ, "TEAK_CLUSTER": self.directory, "TEAK_CLUSTER_PORT": str(free_port()), "TEAK_VAR": os.path.join(directory, "var"), "TEAK_MOVE_SECONDS": "60"}
        self.writing, self.answered = False, {}

    def script(self, *command, status=0, **settings):
        """What the script says."""
        ended = subprocess.run([SCRIPT, *command], env={**self.environment, **settings}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        check(status is None or ended.returncode == status, f"{' '.join(command)} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.stdout + ended.stderr

    def connect(self, member):
        return pymysql.connect(unix_socket=os.path.join(self.directory, member, "run/teak.sock"), user="root", database="catalogue", autocommit=True)

    def ask(self, member, query):
        with self.connect(member) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def server_of(self, partition):
        """The shard that a partition is on."""
        return str(self.ask("head", f"select port from mysql.servers where server_name = 'part{partition}'")[0][0] - int(self.environment["TEAK_CLUSTER_PORT"]))

    def pids(self):
        return [int(open(path, encoding="ascii").read()) for path in glob.glob(os.path.join(self.directory, "*/run/mariadbd.pid"))]

    def case_made_with_all_rows(self):
        told = self.script("up")
        for number in (1, 2, 3):
            check(f"127.0.0.{number + 1}:" in told, told)
        check(told.count(" ms  SELECT") == 3, told)
        with open(os.path.join(self.environment["TEAK_VAR"], "job/distinct.tsv"), encoding="utf-8") as lines:
            wanted = sum(1 for _ in lines)
        sums = "select count(*), coalesce(sum(crc32(concat_ws('|', package, version, architecture, section, size, description))), 0) from "
        whole, parts = self.ask("head", sums + "packages")[0], [self.ask(self.server_of(number), f"{sums} packages_{number}")[0] for number in range(6)]
        check(whole[0] == wanted > 1000, f"{whole[0]} rows, and {wanted} in the catalogue")
        check(whole == tuple(map(sum, zip(*parts))), f"{whole} at the head, {parts} on the shards")
        check({engine for number in "123" for (engine,) in self.ask(number, "select distinct engine from information_schema.tables where table_schema = 'catalogue'")} == {"Teak"}, "other engines")
        check(len({self.server_of(number) for number in range(6)}) == 3, "not all shards have something")
        began = time.monotonic()
        check("loading" not in self.script("up"), "it was loaded again")
        print(f"the second time took {time.monotonic() - began:.1f} s")

    def case_one_shard_is_killed(self):
        victim = self.server_of(1)
        by_shard = {self.server_of(number): self.ask(self.server_of(number), f"select package from packages_{number} limit 1")[0][0] for number in range(6)}
        rows = self.ask("head", "select count(*) from packages")
        told = self.script("kill", victim)
        check("Unable to connect to foreign data source" in told, told)
        check(f"{victim} " in self.script("status") and "away" in self.script("status"), "status does not say it")
        for shard, package in by_shard.items():
            error = error_of(self.ask, "head", f"select * from packages where package = '{package}'")
            check((error is not None) == (shard == victim), f"shard {shard}: {error}")
        self.script("kill", victim, status=1)
        self.script("up")
        check(self.ask("head", "select count(*) from packages") == rows, "rows are missing")

    def writer(self, name):
        """Puts rows into all partitions, and changes them, in transactions that are over two shards mostly, until it is told to end."""
        with self.connect("head") as connection, connection.cursor() as cursor:
            while self.writing:
                number = self.answered[name] + 1
                cursor.execute("begin")
                cursor.execute(f"insert into packages (package, version, architecture, size) values ('{name}-{number}', '1', 'all', 1), ('{name}+{number}', '1', 'all', 2)")
                cursor.execute(f"update packages set size = size + 10 where package = '{name}-{number // 2}'")
                cursor.execute("commit")
                self.answered[name] = number

    def beside_writers(self, name, work):
        """Does the work beside two writers, and compares what is there with what they were answered."""
        self.writing, self.answered = True, {f"{name}{number}": 0 for number in (1, 2)}
        tasks = [Task(self.writer, writer) for writer in self.answered]
        try:
            told = work()
        finally:
            self.writing = False
            for task in tasks:
                task.end()
        for writer, count in self.answered.items():
            there = [self.ask("head", f"select count(*), sum(size) from packages where package like '{writer}{sign}%'")[0] for sign in "-+"]
            check(there == [(count, 11 * count - 10), (count, 2 * count)], f"{writer} was answered {count} times: {there}")
        print(f"{sum(self.answered.values())} transactions beside it")
        return told

    def case_moved_beside_writers(self):
        told = self.beside_writers("moved", lambda: self.script("add"))
        check("met no error" in told, told)
        check("4" in {self.server_of(number) for number in range(6)}, "nothing is on the new shard")

    def case_killed_moves_begin_anew(self):
        elsewhere = lambda: [number for number in range(6) if self.server_of(number) != "4"]
        content = "select count(*), sum(crc32(concat_ws('|', package, version, architecture, size))) from packages"
        before = self.ask("head", content)
        for seconds in (0.05, 0.15, 0.3, 0.45, 0.6):
            partition = elsewhere()[0]
            mover = subprocess.Popen([SCRIPT, "move", str(partition), "4"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(seconds)
            os.killpg(mover.pid, signal.SIGKILL)
            mover.wait()
            check(self.ask("head", content) == before, f"other rows after a kill at {seconds} s")
            print(f"killed after {seconds} s: partition {partition} is on {self.server_of(partition)}")
        partition = elsewhere()[0]
        self.beside_writers("again", lambda: self.script("move", str(partition), "4"))
        check(self.server_of(partition) == "4", "it is not there")
        self.script("move", str(partition), "4", status=1)

    def case_ended_with_nothing_left(self):
        pids = self.pids()
        check(len(pids) == 5, f"{pids}")
        self.script("down")
        check(not [pid for pid in pids if os.path.exists(f"/proc/{pid}")], "servers are left")


def main():
    arguments = parser(__doc__, names="cases, which go on with what those before them have left").parse_args()
    subprocess.run(["rm", "-rf", arguments.directory], check=True)
    os.makedirs(arguments.directory)
    cluster = Cluster(arguments.directory)
    plugin = subprocess.run([SCRIPT, "plugin"], env=cluster.environment, stdin=subprocess.DEVNULL, check=False)
    if plugin.returncode == UNAVAILABLE:
        return SKIPPED
    try:
        return 1 if carry_out(cases_of(Cluster), arguments.names, arguments=(cluster,)) else 0
    finally:
        cluster.script("down", status=None)


if __name__ == "__main__":
    sys.exit(main())
