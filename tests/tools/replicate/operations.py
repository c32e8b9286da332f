#!/usr/bin/python3
"""What `teak replicate check`, `status` and `verify` say, and what `verify --repair` does.

usage: operations.py [CASE...]
"""

import json
import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.agent import FollowingCases, expect_same, run_cases
from kit.cases import check

USAGE = 2


class Cases(FollowingCases):
    """Of subcommands."""

    def status(self):
        """What `teak replicate status` tells, by the names of sources."""
        told = subprocess.run([self.agent.teak, "replicate", "status", "--config", self.agent.config, "--json"], capture_output=True, check=True)
        return {source["source"]: source for source in json.loads(told.stdout)}

    def case_the_status_tells_how_far_a_source_is(self):
        name = self.follow()
        self.at(["create database stat", "create table stat.t (a int)"])
        self.agent.catch_up(name, self.source)
        status = self.status()[name]
        file, position = self.source.query("show master status")[0][:2]
        check((status["is_followed"], status["seconds_behind"], status["log_file"], status["log_position"]) == (True, 0, file, position), f"{status}")
        check(status["gtid"] and set(status["gtid"].split(",")) == set(status["source_gtid"].split(",")), f"{status}")
        check(self.agent.stop() == 0, "SIGTERM is no end in order")
        self.at(["insert into stat.t values (1)"])
        status = self.status()[name]
        check(not status["is_followed"] and status["gtid"] != status["source_gtid"], f"{status}")
        text = subprocess.run([self.agent.teak, "replicate", "status", "--config", self.agent.config], capture_output=True, check=True).stdout.decode()
        check(text.startswith(f"{name}: not followed, at ") and text.endswith(" s behind\n"), text)
        self.agent.configure({"none": {"socket": '"/nowhere"', "start": '"now"'}})
        status = self.status()["none"]
        check(status["gtid"] is None and "/nowhere" in status["source_error"], f"{status}")
        done = subprocess.run([self.agent.teak, "replicate"], capture_output=True, check=False)
        check(done.returncode == USAGE and b"--config" in done.stderr, f"{done}")

    def checked(self):
        """What `teak replicate check` says, and its status."""
        done = subprocess.run([self.agent.teak, "replicate", "check", "--config", self.agent.config], capture_output=True, check=False)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def line_of(self, text):
        """The first line of the configuration that has it."""
        with open(self.agent.config, encoding="utf-8") as config:
            return next(number for number, line in enumerate(config, 1) if text in line)

    def case_a_target_without_room_for_connections_is_waited_for(self):
        name = self.follow()
        self.at(["create database room", "create table room.t (a int)"])
        self.agent.catch_up(name, self.source)
        self.agent.kill()
        before = self.target.query("select @@max_connections", database=None)[0][0]
        self.at(["set global max_connections = 10"], server=self.target)
        held = []
        try:
            while True:
                held.append(self.target.connect(database=None))
        except pymysql.err.OperationalError as error:
            check(error.args[0] == 1040, f"{error}")
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("target: ERROR 1040")
        self.at(["insert into room.t values (1)"])
        time.sleep(1)
        check(self.agent.says().count("trying again") == 1, self.agent.says())
        held.pop().query(f"set global max_connections = {before}")
        for one in held:
            one.close()
        self.agent.catch_up(name, self.source)
        check(self.agent.stop() == 0, "no end in order")

    def case_a_configuration_is_checked(self):
        self.agent.configure({"ck": self.source_keys(colour=1)})
        status, said = self.checked()
        check(status == USAGE and f"replicate.toml:{self.line_of('colour')}: unknown field" in said, said)
        both = ["create database ck", "create table ck.t (a int primary key, b varchar(9))", "create table ck.p (a int primary key)",
                "create table ck.c (a int, foreign key (a) references ck.p (a) on delete cascade)"]
        self.at([*both, "create table ck.missing (a int primary key)", "create table ck.keyless (a int)"])
        self.at([*both[:3], "create table ck.c (a int)", "create table ck.keyless (a bigint, b int)", "alter table ck.t modify b varchar(10)",
                 "create event ck.ev on schedule every 1 day do select 1"], server=self.target)
        self.agent.configure({"ck": self.source_keys(databases='["ck"]', server_id=1)})
        status, said = self.checked()
        for words in ("ck: server_id 1 is its own", "`ck`.`t` column b is varchar(9)", "`ck`.`missing` is not in the target", "warning: ck: `ck`.`keyless` has no key",
                      "`ck`.`keyless` has 1 columns at the source, and 2", "in no log, and the target has it not: `ck`.`c` (a) REFERENCES", "warning: ck: the event `ck`.`ev`"):
            check(status == USAGE and words in said, f"{words}: {said}")
        self.agent.forget()
        self.agent.start()
        self.stops(USAGE, "ck: stopped: source: server_id 1 is its own")
        # Patterns, places in the log, settings.
        for keys, text, words in (({"databases": '["ck", "nowhere*"]'}, "databases", "no database is called nowhere*"), ({"start": '"0-1-999999"', "databases": '["ck"]'}, "start", "1236")):
            self.agent.configure({"ck": self.source_keys(**keys)})
            status, said = self.checked()
            check(status == USAGE and f"replicate.toml:{self.line_of(text)}: error: ck: " in said and words in said, said)
        for variable, here in (("binlog_format", "mixed"), ("slave_run_triggers_for_rbr", "yes")):
            server = self.target if variable.startswith("slave") else self.source
            before = server.query(f"select @@global.{variable}", database=None)[0][0]
            server.query(f"set global {variable} = {here}", database=None)
            self.agent.configure({"ck": self.source_keys(databases='["ck"]')})
            status, said = self.checked()
            check(status == USAGE and f"{variable} is {here.upper()}" in said, said)
            self.agent.forget()
            self.agent.start()
            self.stops(USAGE, "ck: stopped: ", f"{variable} is {here.upper()}")
            server.query(f"set global {variable} = {before}", database=None)
        self.at(["drop table ck.missing, ck.keyless, ck.c"])
        self.at(["drop table ck.keyless, ck.c", "drop event ck.ev", "alter table ck.t modify b varchar(9)"], server=self.target)
        self.at(["set global max_allowed_packet = 16 * 1024 * 1024"])
        status, said = self.checked()
        check((status, said) == (0, "no errors, 0 warnings\n"), said)

    def case_accounts_are_checked(self):
        self.at(["create database if not exists ca", "create user if not exists some@localhost", "grant replication slave on *.* to some@localhost"])
        self.at(["create user if not exists some@localhost", "grant select, insert on ca.* to some@localhost", "create database if not exists ca"], server=self.target)
        self.agent.configure({"ca": self.source_keys(user='"some"', databases='["ca"]')}, user='"some"')
        status, said = self.checked()
        for words in ("target: the account has not BINLOG REPLAY", "SUPER ON *.*", "ON teak_replicate.*", "has not BINLOG MONITOR", "that the account sees is called ca", "no SELECT on"):
            check(status == USAGE and words in said, f"{words}: {said}")
        self.at(["grant select on ca.* to some@localhost"])
        self.agent.configure({"ca": self.source_keys(user='"some"', databases='["ca"]', start='"copy"')})
        said = self.checked()[1]
        check("warning: ca: the account has not SHOW VIEW, TRIGGER ON `ca`" in said, said)
        self.agent.configure({"ca": self.source_keys(socket='"/nowhere"')})
        status, said = self.checked()
        check(status == USAGE and ": error: ca: " in said and "/nowhere" in said, said)

    def case_no_table_is_of_two_sources(self):
        for server in (self.source, self.other, self.target):
            self.at(["create database if not exists both1", "create table both1.t (a int primary key)"], server=server)
        self.at(["create database two2"], server=self.other)
        self.at(["create table both1.u (a int primary key)"], server=self.target)
        keys = {"b1": self.source_keys(databases='["both1"]'), "b2": self.source_keys(server=self.other, databases='["two2"]', rename_databases='{ "two2" = "both1" }')}
        # Such as come later are seen with their first rows.
        self.agent.configure(keys)
        self.agent.forget()
        self.agent.start()
        for name in keys:
            self.agent.wait_for(f"{name}: follows from")
        self.at(["set sql_log_bin = 0", "create table both1.u (a int primary key)", "set sql_log_bin = 1", "insert into both1.u values (1)"])
        self.agent.catch_up("b1", self.source)
        self.at(["set sql_log_bin = 0", "create table two2.u (a int primary key)", "set sql_log_bin = 1", "insert into two2.u values (2)"], server=self.other)
        self.agent.wait_for("b2: stopped: ")
        check("`both1`.`u` of the target is a table of the source b1 as well" in self.agent.says(), self.agent.says())
        check(self.agent.stop() != 0, "a source has stopped, and the end is in order")
        status, said = self.checked()
        check(status == USAGE and "b2: `two2`.`u` and a table of b1 are one in the target, `both1`.`u`" in said, said)
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("is a table of the source")
        self.agent.stop()

    def verified(self, *options):
        """What `teak replicate verify` says, and its status."""
        done = subprocess.run([self.agent.teak, "replicate", "verify", "--config", self.agent.config, *options], capture_output=True, check=False)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def case_rows_that_differ_are_found_and_repaired(self):
        name = self.follow(databases='["ver"]', rename_databases='{ "ver" = "s1_ver" }')
        self.at(["create database ver"])
        self.at(["create table t (a int primary key, b varchar(20) character set latin1, c double, d timestamp(3) null, e enum('x', 'y'), f blob, g int as (a + 1))",
                 "create table two (a varchar(10), b int, c text, primary key (a, b))", "create table bare (a int)", "create table many (a int primary key, b int)",
                 "create table trig (a int primary key)", "create table seen (a int)", "insert into trig values (1)", "insert into seen values (1)", "create sequence sq", "select nextval(sq)",
                 "insert into t (a, b, c, d, e, f) values (1, 'it''s', 0.1, '2024-01-01 00:00:00.5', 1, x'00ff'), (2, 'é', 1e-300, null, 'y', null), (3, '', -0.0, '0000-00-00', 2, '')",
                 "insert into two values ('a', 1, 'x'), ('A', 2, 'y'), ('é', 3, null)", "insert into bare values (1), (1), (null)", "insert into many select seq, seq from seq_1_to_25000"],
                database="ver", init_command="set sql_mode = ''")
        self.agent.catch_up(name, self.source)
        same = f"{name}: 7 tables, 25012 rows, 0 differences, 0 repaired, 0 not decided\n"
        status, said = self.verified()
        check((status, said) == (0, same), said)
        spoil = ["update t set c = 0.10000000000000002, e = 2 where a = 1", "update t set b = 'e' where a = 2", "update t set d = null where a = 3", "delete from two where b = 2",
                 "insert into two values ('z', 9, 'z')", "update two set a = 'A' where b = 1", "delete from many where a in (1, 10000, 25000)", "insert into many values (-5, 0), (30000, 0)",
                 "create trigger s1_ver.tr after insert on trig for each row insert into seen values (new.a)", "delete from trig"]
        self.at(spoil, server=self.target, database="s1_ver", init_command="set sql_mode = ''")
        status, said = self.verified()
        for words in ("`ver`.`t`, key a = 1: differs in c, e", "key a = 2: differs in b", "key a = 3: differs in d", "`ver`.`two`, key a = 'A', b = 2: is missing", "b = 9: is not at the source",
                      "key a = 'a', b = 1: is missing", "key a = 'A', b = 1: is not at the source", "key a = 10000: is missing", "key a = -5: is not", "key a = 30000: is not", "13 differences"):
            check(status == 1 and words in said and "0.10000" not in said, f"{words}: {said}")
        status, said = self.verified("--values")
        check(status == 1 and "c is 0.1 at the source, 0.10000000000000002 in the target" in said, said)
        # Beside the program, and then without it.
        status, said = self.verified("--repair")
        check(status == 1 and "`trig`, key a = 1: not repaired: the target's table has triggers" in said and "12 repaired" in said, said)
        self.at(["drop trigger s1_ver.tr", "insert into s1_ver.trig values (1)"], server=self.target)
        status, said = self.verified()
        check((status, said) == (0, same), said)
        expect_same(self.source, self.target, "ver", "s1_ver")
        self.at(["insert into s1_ver.bare values (5)", "create table s1_ver.more (a int)"], server=self.target)
        status, said = self.verified("--repair")
        check(status == 1 and "`ver`.`bare`: 3 rows at the source, 4 in the target; not repaired" in said and "`s1_ver`.`more` of the target is at no source" in said, said)
        self.at(["delete from s1_ver.bare where a = 5", "drop table s1_ver.more"], server=self.target)
        # What has not come yet is no difference, and none is made up of it.
        check(self.agent.stop() == 0, "no end in order")
        self.at(["update ver.t set e = 1", "insert into ver.bare values (7)"])
        status, said = self.verified("--repair")
        check(status == 1 and " 0 differences, 0 repaired, " in said and "0 not decided" not in said, said)
        self.follow(name, databases='["ver"]', rename_databases='{ "ver" = "s1_ver" }')
        status, said = self.verified()
        check(status == 0, said)
        check(self.agent.stop() == 0, "no end in order")

    def case_rows_are_compared_beside_writers(self):
        name = self.follow(databases='["hot"]')
        self.at(["create database hot"])
        self.at(["create table t (a int primary key, b int)", "insert into t select seq, 0 from seq_1_to_30000"], database="hot")
        self.agent.catch_up(name, self.source)
        self.at(["update hot.t set b = -1 where a = 7"], server=self.target)
        stopped = threading.Event()

        def write():
            connection = self.source.connect(database="hot", autocommit=True)
            pick = random.Random(self.source.socket).randrange
            with connection.cursor() as cursor:
                while not stopped.is_set():
                    first = pick(1000) * 30 + 10
                    cursor.execute(f"update t set b = b + 1 where a between {first} and {first + pick(100)}")
                    cursor.execute(f"replace into t values ({10 + pick(50)}, {pick(9)})")
                    cursor.execute(f"delete from t where a = {10 + pick(50)}")
            connection.close()
        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(3):
                status, said = self.verified()
                check(status == 1 and f"{name}: `hot`.`t`, key a = 7: differs in b" in said and " 1 differences, 0 repaired, 0 not decided" in said, said)
            status, said = self.verified("--repair")
            check(status == 0 and " 1 differences, 1 repaired, " in said, said)
            status, said = self.verified()
            check(status == 0 and " 0 differences, 0 repaired, 0 not decided" in said, said)
        finally:
            stopped.set()
            for writer in writers:
                writer.join()
        self.arrive(name, "hot")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
