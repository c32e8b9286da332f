#!/usr/bin/python3
"""A target whose disk is full is waited for by `teak replicate`: it says so once, is no busy loop, and goes on when there is room. The engine's directory is a
small tmpfs.

usage: full.py [CASE...]
"""

import os
import subprocess
import sys
import time

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, FollowingCases, run_cases
from kit.cases import check

MEBIBYTES, ENOUGH = 96, 512
# Seconds of processor time that the program may take while it waits, and how long that is looked at.
AT_REST, LOOK = 0.4, 4.0
FULL = ("ERROR 1021", "ERROR 1114", "ERROR 28")


class Cases(FollowingCases):
    """The target's disk is made larger when it was full for a while, and is a new one for each case."""

    def begin(self):
        for server, options in ((self.source, [*SOURCE_OPTIONS, "--server-id=1"]),):
            server.install()
            server.start(options)

    def begin_target(self):
        self.target.kill()
        disk = os.path.join(self.directory, "disk")
        os.makedirs(disk, exist_ok=True)
        subprocess.run(["umount", disk], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", disk], check=True)
        self.target.install()
        self.target.start([*TARGET_OPTIONS, f"--teak-data-home-dir={disk}/teak", "--teak-cache-size=16M", "--teak-log-segment-size=4M", "--teak-checkpoint-log-size=8M", "--local-infile=1"])
        return disk

    def spent(self):
        """Seconds of processor time of the program."""
        return time.clock_gettime((~self.agent.process.pid << 3) | 2)

    def waits_and_goes_on(self, name, disk, database):
        self.agent.until(lambda: any(error in self.agent.says() for error in FULL), "that the disk is full")
        # What is rolled back makes room for a part of the rest, which is told, and so is that it is full again.
        time.sleep(LOOK)
        said, before = self.agent.says(), (self.spent(), self.target.cpu_seconds())
        time.sleep(LOOK)
        spent = self.spent() - before[0], self.target.cpu_seconds() - before[1]
        check(max(spent) < AT_REST * LOOK, f"{spent} s of processor time of {LOOK} s while it waits")
        check(self.agent.says()[len(said):].count("trying again") <= 2 and said.count("trying again") < 9 and self.agent.process.poll() is None, self.agent.says())
        # Nothing is lost by a kill meanwhile.
        self.agent.kill()
        self.agent.start()
        time.sleep(1)
        subprocess.run(["mount", "-o", f"remount,size={ENOUGH}m", disk], check=True)
        self.agent.until(lambda: not self.target.query(f"select 1 from teak_replicate.copy where source = '{name}'", database=None), "that all is copied")
        self.agent.catch_up(name, self.source)
        check("follows from" in self.agent.says().rsplit("trying again", 1)[1], "it says not that it goes on")
        theirs, ours = (server.query(f"select count(*), sum(crc32(pad)), sum(id) from {database}.t", database=None) for server in (self.source, self.target))
        check(theirs == ours, f"{theirs} {ours}")
        status, said = self.agent.command("verify")
        check(status == 0, said)
        check(self.agent.stop() == 0, self.agent.says())

    def fill(self, database, mebibytes):
        for _ in range(mebibytes):
            self.at(["insert into t (pad) select random_bytes(1000) from seq_1_to_1000"], database=database)

    def case_rows_that_come_wait_for_room(self):
        for keys in ({}, {"workers": 3, "commit_order": "false"}):
            database = f"fu{self.names}"
            disk = self.begin_target()
            self.at([f"create database {database}"])
            self.at([f"create database {database}"], server=self.target)
            name = self.follow(databases=f'["{database}"]', **keys)
            self.at(["create table t (id int auto_increment primary key, pad varbinary(1000))"], database=database)
            self.fill(database, MEBIBYTES + 20)
            self.waits_and_goes_on(name, disk, database)

    def case_definitions_wait_for_room(self):
        disk = self.begin_target()
        self.at(["create database fd"])
        self.at(["create database fd"], server=self.target)
        name = self.follow(databases='["fd"]')
        self.at(["create table t (id int auto_increment primary key, pad varbinary(1000))"], database="fd")
        self.fill("fd", MEBIBYTES // 2)
        self.at(["alter table t add key (pad)", "insert into t (pad) values ('behind it')"], database="fd")
        self.waits_and_goes_on(name, disk, "fd")

    def case_copies_wait_for_room(self):
        self.at(["create database fc", "create table fc.t (id int auto_increment primary key, pad varbinary(1000))"])
        self.fill("fc", MEBIBYTES + 20)
        disk = self.begin_target()
        name = self.follow(databases='["fc"]', start='"copy"')
        self.waits_and_goes_on(name, disk, "fc")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
