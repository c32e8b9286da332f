#!/usr/bin/python3
"""`teak replicate` from InnoDB to Teak: values of all types, definitions of all kinds, where it begins, what it refuses and what it says of that, what it waits for.

usage: replicate.py [CASE...]
"""

import os
import random
import signal
import sys
import time

import pymysql

from kit.agent import TARGET_OPTIONS, Agent, FollowingCases, expect_same, run_cases
from kit.cases import check
from kit.columns import COLUMNS
from kit.options import seed

USAGE, DAMAGE, SERVER = 2, 3, 5
STATEMENTS = 120


class Cases(FollowingCases):
    """Of following."""

    def case_values_of_all_types_arrive(self):
        source = random.Random(seed())
        name = self.follow()
        self.at(["create database types character set utf8mb4"])
        columns = [{f"c{n}": column for n, column in enumerate(COLUMNS) if n % 3 == part} for part in range(3)]
        for part, some in enumerate(columns):
            definitions = ", ".join(f"{column} {of.definition}" for column, of in some.items())
            self.at([f"create table t{part} (id int auto_increment primary key, {definitions})", f"create table k{part} ({definitions})"], database="types",
                    init_command="set sql_mode = '', innodb_strict_mode = 0")
        for image in ("full", "minimal", "noblob"):
            self.source.query(f"set global log_bin_compress = {source.randrange(2)}, log_bin_compress_min_len = 10, binlog_row_metadata = {source.choice(['no_log', 'full'])}")
            for part, some in enumerate(columns):
                connection = self.source.connect(database="types", autocommit=True)
                with connection.cursor() as cursor:
                    cursor.execute(f"set sql_mode = '', time_zone = '+00:00', binlog_row_image = {image}")
                    for _ in range(STATEMENTS // 9):
                        self.change(source, cursor, part, some)
                connection.close()
        print(f"        {self.arrive(name, 'types')} rows", flush=True)

    @staticmethod
    def change(source, cursor, part, columns):
        """With a key and without one."""
        some = source.sample(list(columns), source.randrange(1, len(columns) + 1))
        values = ", ".join(f"{column} = {'null' if source.random() < 0.15 else columns[column].literal(source)}" for column in some)
        cursor.execute(f"insert into t{part} set {values}")
        cursor.execute(f"insert into k{part} set {values}")
        kind = source.random()
        if kind < 0.4:
            cursor.execute(f"update t{part} set {values} where id % 5 = {source.randrange(5)}")
            cursor.execute(f"update k{part} set {values} limit {source.randrange(3)}")
        elif kind < 0.6:
            cursor.execute(f"delete from t{part} where id % 7 = {source.randrange(7)}")
            cursor.execute(f"delete from k{part} limit {source.randrange(3)}")

    def case_definitions_of_all_kinds_arrive(self):
        name = self.follow()
        self.at(["create database d character set latin1", "create database `d-\u00e9` collate utf8mb4_bin"])
        self.at([
            "create table t (a int primary key, b varchar(20) default 'x', c timestamp default current_timestamp)", "insert into t (a) values (1), (2)",
            "create table `t-\u00e9` (`\u00e9` varchar(10) default '\u00e9')", "insert into `t-\u00e9` values ('\u00e9')", "create index i on t (b)", "drop index i on t",
            "set names latin1", "create table l (a varchar(10) default '\u00e9', e enum('\u00e9', 'b'))", "insert into l values (default, 1)", "set names utf8mb4",
            "set sql_mode = 'ansi_quotes'", 'create table "q" ("a" int)', "set sql_mode = default", "set time_zone = '+05:00'",
            "create table z (a int, t timestamp default '2024-01-01 12:00:00')", "insert into z (a) values (1)", "set time_zone = default",
            "create table s select a, b from t", "create table u like t", "insert into u select * from t", "rename table t to x, u to t, x to u",
            "alter table t add column d int default 5 first, modify b text",
            "set statement lock_wait_timeout = 7 for alter table t add index (d)", "alter table u rename d.w", "create sequence sq", "select nextval(sq)", "drop sequence sq",
            "create table p (a int primary key, b int) partition by range (a) (partition p0 values less than (10), partition p1 values less than maxvalue)",
            "insert into p values (1, 1), (20, 2)", "create table e (a int primary key, b int)", "insert into e values (5, 5)",
            "alter table p exchange partition p0 with table e", "alter table p truncate partition p1", "insert into p values (30, 3)",
            "create table v (a int) with system versioning", "insert into v values (1)", "update v set a = 2", "delete from v",
            "create table h (a int, b text, unique (b))", "insert into h values (1, repeat('x', 2000)), (2, null)", "update h set b = 'y' where a = 1",
            "create temporary table tt (a int)", "insert into tt values (1)", "insert into t (a) select a + 100 from tt", "drop temporary table tt",
            "create table g (a int)", "create trigger gt before insert on g for each row set new.a = new.a + 1", "insert into g values (1)",
            "create table au (a int)", "create trigger ga after insert on g for each row insert into au values (new.a)", "insert into g values (5)",
            "create view vw as select a from t where a > 1", "create procedure pr(x int) begin select x; select 2; end", "create function fn() returns int deterministic return 4711",
            "create event ev on schedule every 1 second do insert into au values (-1)", "create role ro", "drop role ro", "analyze table t", "optimize table g",
            "set foreign_key_checks = 0", "create table fc (a int, foreign key (a) references fp (b))", "insert into fc values (77)", "create table fp (b int primary key)",
            "set foreign_key_checks = 1", "insert into fp values (1)", "insert into fc values (1)", "truncate table z", "drop table if exists q, nowhere", "create table m (a int) engine=myisam",
            "insert into m values (1), (2)", "begin", "insert into m values (3)", "insert into t (a) values (900)", "commit", "create or replace table m (b int) engine=memory",
        ], database="d")
        self.at(["create table t (a varchar(10))", "insert into t values ('x')", "create table d.other as select * from t", "create table gone (a int)",
                 "drop table gone"], database="d-\u00e9")
        self.arrive(name, "d", "d-\u00e9")
        said = self.agent.says()
        check(all(word in said for word in (" event ... is passed over", "drop role ro ... is passed over", "analyze table t ... is passed over")), said)
        for kind, what in (("view", "vw"), ("procedure", "pr"), ("function", "fn"), ("trigger", "gt"), ("database", "d"), ("database", "`d-\u00e9`")):
            there, here = ([value for value in server.query(f"show create {kind} {what}", database="d")[0] if not hasattr(value, "year")] for server in (self.source, self.target))
            check(there == here, f"{kind} {what}: {there} at the source, {here} here")
        check(not self.target.query("select * from information_schema.events", database=None), "the event is here, too")
        name = self.follow(name)
        self.at(["drop database d", "drop database `d-\u00e9`", "drop database if exists d"])
        self.arrive(name)
        check(not self.target.query("show databases like 'd%'", database=None), "databases are left")

    def case_an_alter_in_two_parts_is_one(self):
        name = self.follow()
        self.at(["create database two", "create table two.t (a int primary key)", "insert into two.t values (1)", "set binlog_alter_two_phase = 1", "alter table two.t add column b int default 4"])
        try:
            self.at(["set binlog_alter_two_phase = 1", "alter table two.t add unique (b), add column c int not null default 1, add unique (c)", "insert into two.t (a) values (2)"])
        except pymysql.err.IntegrityError:
            pass
        self.arrive(name, "two")

    def case_xa_transactions_are_there_with_their_commit(self):
        made = ["create table xa.t (a int primary key, b longtext)", "insert into xa.t values (1, 'a')", "create table xa.k (a int)", "create table xa.n (a int primary key)", "insert into xa.n values (1)"]
        for server in (self.source, self.target):
            self.at(["create database xa", *made], server=server)
        prepared = lambda name, *statements: [f"xa start {name}", *statements, f"xa end {name}", f"xa prepare {name}"]
        self.at(prepared("'before'", "insert into xa.k values (0)"))
        name = self.follow()
        self.at(prepared("'a\\'b', 'c', 9", "insert into xa.t values (2, repeat('x', 3 * 1024 * 1024))", "insert into xa.t select seq, seq from seq_10_to_20000", "savepoint s1",
                         "update xa.t set b = 'z' where a = 1"), database="xa")
        self.at(prepared("'two'", "insert into xa.k values (1), (2)"))
        # Nothing is in the log between its beginning and its end.
        self.at([*prepared("'nothing'", "insert ignore into xa.n values (1)"), "xa commit 'nothing'"])
        self.at(["insert into xa.k values (3)", "xa start 'once'", "insert into xa.k values (4)", "xa end 'once'", "xa commit 'once' one phase"])
        self.agent.catch_up(name, self.source)
        self.agent.kill()
        count = lambda table: self.target.query(f"select count(*) from xa.{table}", database=None)[0][0]
        check((count("t"), count("k")) == (1, 2), f"rows are there before they are committed: {count('t')}, {count('k')}")
        check(self.target.query("select count(distinct xid) from teak_replicate.xa", database=None)[0][0] == 2, "not both that did something are kept")
        self.follow(name)
        self.at(["xa commit 'a\\'b', 'c', 9", "xa rollback 'two'"])
        self.at(prepared("'two'", "insert into xa.k values (7)"))
        self.commit_detached("'two'")
        self.arrive(name, "xa")
        check(not self.target.query("select * from teak_replicate.xa", database=None), "something is kept")
        self.follow(name)
        self.at(["xa commit 'before'"])
        self.stops(DAMAGE, "X'6265666f7265'", "prepared before this source was begun")

    def commit_detached(self, xid):
        """XA COMMIT, once the connection that has prepared it has ended."""
        def is_committed():
            try:
                self.at([f"xa commit {xid}"])
                return True
            except pymysql.err.OperationalError as error:
                if error.args[0] != 1397:
                    raise
                return False
        self.agent.until(is_committed, f"that {xid} can be committed")

    def case_large_transactions_and_rows_arrive(self):
        name = self.follow()
        self.at(["set global max_allowed_packet = 256 * 1024 * 1024"])
        self.at(["set global max_allowed_packet = 64 * 1024 * 1024"], server=self.target)
        self.at(["create database large"])
        self.at(["create table large.t (a int auto_increment primary key, b longblob)",
                 "insert into large.t (b) values (repeat('x', 20 * 1024 * 1024)), (repeat('y', 17 * 1024 * 1024)), (1)",
                 "insert into large.t (b) select repeat(seq, 200) from seq_1_to_30000", "update large.t set b = concat(b, 'z') where a > 2", "delete from large.t where a % 2 = 0"], database="large")
        self.agent.kill()
        name = self.follow(name)
        self.arrive(name, "large")
        name = self.follow(name)
        self.at(["insert into large.t (b) values (repeat('x', 60 * 1024 * 1024))"])
        check(self.agent.ended() == DAMAGE and "max_allowed_packet" in self.agent.says(), self.agent.says())

    def case_long_transactions_need_no_more_than_keys(self):
        tables = ["create table long_.p (a varchar(20), b int, c int, d text, primary key (b, a), key (c), unique u (c, b))",
                  "create table long_.g (a int primary key, b int, c int as (b + 1) virtual, d varchar(300), key (c))",
                  "create table long_.n (a int, b int, c int, d varchar(300), key (a))"]
        fill = [f"insert into long_.{name} (a, b, c, d) select seq, seq % 7, seq, repeat(sha2(seq, 256), 4) from seq_1_to_6000" for name in "pn"]
        fill.append("insert into long_.g (a, b, d) select seq, seq % 7, repeat(sha2(seq, 256), 4) from seq_1_to_6000")
        name = self.follow()
        self.at(["create database long_", *tables])
        self.at([*fill, "begin", *(f"update long_.{table} set b = b + 10, d = reverse(d) where a % 3 > 0" for table in "pgn"), "savepoint s",
                 *(f"delete from long_.{table} where a % 4 = 1" for table in "pgn"), "update long_.p set c = -c where c > 3000", "commit"], database="long_")
        self.arrive(name, "long_")
        check(self.target.query("select count(*), sum(c < 0) from long_.p")[0] == (4500, 2250), "rows of the target")
        # The key is asked for anew when the table has another one.
        self.follow(name)
        self.at(["alter table long_.p drop primary key, add primary key (c)", "update long_.p set d = concat(d, 'x'), a = a + 1"])
        self.arrive(name, "long_")
        # A row that is not there is named, however late it comes.
        gone = self.target.query("select max(c) from long_.p")[0][0]
        self.at([f"delete from long_.p where c = {gone}"], server=self.target)
        self.follow(name)
        self.at(["update long_.p set d = reverse(d), b = b + 1"])
        self.stops(SERVER, f"`long_`.`p`, key c = {gone}: target: ERROR 1032")

    def case_a_source_begins_where_it_is_told(self):
        self.at(["create database st", "create table st.t (a int primary key)", "insert into st.t values (1)"])
        first = self.source.query("select @@gtid_binlog_pos")[0][0]
        file, position = self.source.query("show master status")[0][:2]
        self.at(["create database st", "create table st.t (a int primary key)", "insert into st.t values (1)"], server=self.target)
        self.at(["set gtid_domain_id = 7", "insert into st.t values (2)", "set gtid_domain_id = 3, server_id = 12", "insert into st.t values (3)", "flush binary logs", "insert into st.t values (4)"])
        for start in (f'"{first}"', f'{{ file = "{file}", position = {position} }}'):
            self.at(["delete from st.t where a > 1"], server=self.target)
            self.arrive(self.follow(start=start), "st")
        name = self.follow()
        self.at(["insert into st.t values (5)"])
        self.arrive(name, "st")
        place = self.target.query(f"select log_file, log_position, source_time > now() - interval 1 hour from teak_replicate.position where source = '{name}'")[0]
        check(place == (*self.source.query("show master status")[0][:2], 1), f"{place}")

    def case_rows_that_do_not_fit_stop_the_source(self):
        both = ["create table bad.t (id int, n bigint unsigned, v varchar(10), primary key (n, id), unique u (v))", "create table bad.k (a int, b int)", "create table bad.c (a int)",
                "insert into bad.t values (1, 18446744073709551615, 'a'), (2, 2, 'b'), (3, 3, 'c')", "insert into bad.k values (1, 1), (2, 2)"]
        self.at(["create database bad", *both])
        self.at(["create database bad", *both], server=self.target)
        missing = "target: ERROR 1032"
        for spoil, statement, repair, words in (
                ("delete from bad.t where n = 2", "update bad.t set v = concat(v, '!') where id < 3", "insert into bad.t values (2, 2, 'b')", (f"`bad`.`t`, key n = 2, id = 2: {missing}",)),
                ("delete from bad.t where n = 3", "delete from bad.t where n = 3", "insert into bad.t values (3, 3, 'c')", (f"`bad`.`t`, key n = 3, id = 3: {missing}",)),
                ("insert into bad.t values (50, 50, 'y')", "insert into bad.t values (9, 8, 'x'), (9, 9, 'y')", "delete from bad.t where v = 'y'",
                 ("`bad`.`t`, key n = 9, id = 9: target: ERROR 1062", "'y' for key 'u'")),
                ("delete from bad.k where a = 2", "delete from bad.k where a = 2", "insert into bad.k values (2, 2)", (f"`bad`.`k`, a row of a table without a key: {missing}",))):
            self.at([spoil], server=self.target)
            name = self.follow()
            # Those before and behind it are in one transaction of the target's with it, until it is looked for.
            self.at(["insert into bad.c values (1)", statement, "insert into bad.c values (2)"])
            sequence = int(next(one for one in self.source.query("select @@gtid_binlog_pos")[0][0].split(",") if one.startswith("0-")).split("-")[2]) - 1
            self.stops(SERVER, f"{name}: stopped: 0-1-{sequence}, table ", *words)
            # What somebody has mended goes on.
            self.at([repair], server=self.target)
            self.arrive(self.follow(name), "bad")

    def case_what_cannot_be_followed_is_told(self):
        self.at(["create database no"])
        self.at(["create database no"], server=self.target)
        for statements, here, status, words in (
                (["set binlog_format = statement", "create table no.s (a int)", "insert into no.s values (1)"], [], DAMAGE, ("binlog_format",)),
                (["set sql_log_bin = 0", "create table no.a (a int)", "set sql_log_bin = 1", "insert into no.a values (1)"], [], DAMAGE, ("`no`.`a`", "no such table")),
                (["set sql_log_bin = 0", "create table no.b (a int, b int)", "set sql_log_bin = 1", "insert into no.b values (1, 1)"], ["create table no.b (a int)"], DAMAGE,
                 ("`no`.`b` has 2 columns at the source, and 1 here",)),
                (["set sql_log_bin = 0", "create table no.c (a int)", "set sql_log_bin = 1", "insert into no.c values (1)"], ["create table no.c (a int) engine=aria"], USAGE,
                 ("`no`.`c` is of the engine Aria",)),
                (["set sql_log_bin = 0", "create table no.d (a int)", "set sql_log_bin = 1", "insert into no.d values (1)"], ["create table no.d (a varchar(10))"], DAMAGE, ("table `no`.`d`", "error log only")),
                (["create table no.e (a int)"], ["create table no.e (a int)"], SERVER, ("create table no.e (a int)", "1050")),
        ):
            self.at(here, server=self.target)
            name = self.follow()
            self.at(statements)
            self.stops(status, f"{name}: stopped: 0-1-", *words)
        check(not self.target.query("select * from teak_replicate.ddl", database=None), "a note of a statement that failed is left")

    def case_purged_logs_and_other_histories_are_told(self):
        self.at(["create database pu", "create table pu.t (a int)", "flush binary logs", "insert into pu.t values (1)", "flush binary logs"])
        self.at([f"purge binary logs to '{self.source.query('show binary logs')[-1][0]}'"])
        # Logs that are being sent to somebody stay.
        oldest = self.source.query("show binary logs")[0][0]
        behind = self.source.query(f"select binlog_gtid_pos('{oldest}', 4)")[0][0]
        for start, words in (('"0-1-1"', ("1236", f"the oldest log there is, {oldest}", behind)), ('"0-1-999999"', ("1236", "0-1-999999"))):
            self.names += 1
            self.agent.configure({f"s{self.names}": self.source_keys(start=start)})
            self.agent.forget()
            self.agent.start()
            self.stops(SERVER, f"s{self.names}: stopped: source: ", *words)

    def case_a_configuration_that_is_wrong_starts_nothing(self):
        for keys, words in (({"colour": 1}, ("replicate.toml:", "unknown field `colour`")), ({"start": '"copies"'}, ("start: copies", "no GTID")),
                            ({"rename_databases": '{ "a" = "mysql" }'}, ("rename_databases", "cannot be mysql")), ({"password_file": '"/nowhere"'}, ("/nowhere",))):
            self.agent.configure({"x": self.source_keys(**keys)})
            self.agent.forget()
            self.agent.start()
            self.stops(USAGE, *words)

    def case_databases_are_chosen_by_patterns(self):
        name = self.follow(databases='["en*", "de"]')
        for database in ("enwiki", "de", "frwiki", "mysql"):
            self.at([f"create database if not exists {database}", f"create table {database}.followed (a int)", f"insert into {database}.followed values (1)"])
        self.at(["begin", "insert into enwiki.followed values (2)", "insert into frwiki.followed values (2)", "insert into de.followed values (2)", "commit",
                 "update enwiki.followed e, frwiki.followed f set e.a = 5, f.a = 6", "alter table frwiki.followed add b int", "drop table mysql.followed"])
        self.arrive(name, "enwiki", "de")
        check(not self.target.query("show databases like 'frwiki'", database=None), "frwiki is here")
        name = self.follow(name, databases='["en*", "de"]')
        self.at(["rename table frwiki.followed to enwiki.came"])
        self.stops(DAMAGE, "databases that are followed and others that are not")

    def case_databases_are_renamed(self):
        name = self.follow(rename_databases='{ "ra" = "s1_ra", "rb" = "ra" }')
        self.at(["create database ra collate utf8mb4_bin", "create database rb", "create table ra.t (a int primary key, b int)", "create table rb.u like ra.t",
                 "insert into ra.t values (1, 1), (2, 2)", "insert into rb.u select a + 1, b from ra.t", "update ra.t t, rb.u u set t.b = 5, u.b = 6 where t.a = u.a",
                 "alter table rb.u add c int, add foreign key (a) references rb.u (a)", "create table rb.s select * from ra.t", "rename table rb.s to rb.s2", "drop table rb.s2"])
        self.at(["create table own (a int)", "create view v as select a from own", "insert into own values (1)", "delete from own"], database="rb")
        self.agent.catch_up(name, self.source)
        for theirs, ours in (("ra", "s1_ra"), ("rb", "ra")):
            expect_same(self.source, self.target, theirs, ours)
        check(not self.target.query("show databases like 'rb'", database=None), "rb is here")
        self.at(["alter table ra.t drop b", "truncate table rb.own", "drop view rb.v", "drop database rb"])
        self.agent.catch_up(name, self.source)
        expect_same(self.source, self.target, "ra", "s1_ra")
        check(not self.target.query("show databases like 'ra'", database=None), "what rb is called here is left")
        self.at(["delete from s1_ra.t where a = 1"], server=self.target)
        self.at(["delete from ra.t"])
        self.stops(SERVER, "`ra`.`t`, key a = 1")
        self.at(["insert into s1_ra.t values (1)"], server=self.target)
        self.follow(name, rename_databases='{ "ra" = "s1_ra", "rb" = "ra" }')
        self.at(["create view ra.w as select ra.a from ra.t as ra"])
        self.stops(DAMAGE, "names a renamed database")

    def case_accounts_need_few_privileges(self):
        self.at(["create user follower@localhost identified by 'secret1'", "grant replication slave, binlog monitor on *.* to follower@localhost"])
        self.at(["create user applier@localhost identified by 'secret2'", "grant all on gr.* to applier@localhost", "grant all on teak_replicate.* to applier@localhost",
                 "grant binlog replay on *.* to applier@localhost"], server=self.target)
        passwords = {}
        for side, text in (("source", "secret1"), ("target", "secret2")):
            passwords[side] = os.path.join(self.directory, f"{side}.password")
            with open(passwords[side], "w", encoding="ascii") as file:
                file.write(text + "\n")
        keys = self.source_keys(user='"follower"', password_file=f'"{passwords["source"]}"')
        self.agent.configure({"gr": keys}, user='"applier"', password_file=f'"{passwords["target"]}"', engine=None)
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("follows from")
        self.at(["create database gr", "create table gr.t (a int primary key)", "insert into gr.t values (1)", "alter table gr.t add b int", "update gr.t set b = 1"])
        self.agent.catch_up("gr", self.source)
        # Who may not write where nobody may waits until it may.
        self.at(["set global read_only = 1"], server=self.target)
        self.at(["insert into gr.t values (2, 2)"])
        self.agent.wait_for("1290")
        self.at(["set global read_only = 0"], server=self.target)
        self.arrive("gr", "gr")
        said = self.agent.says()
        check(said.count("1290") < 3 and "secret" not in said, said)

    def case_two_sources_and_a_target_that_is_away(self):
        self.at(["create database if not exists o", "create table o.t (a int primary key)"], server=self.other)
        self.at(["create database if not exists o", "create table o.t (a int primary key)"], server=self.target)
        self.agent.configure({"two1": self.source_keys(), "two2": self.source_keys(server=self.other)})
        self.agent.forget()
        self.agent.start()
        for name in ("two1", "two2"):
            self.agent.wait_for(f"{name}: follows from")
        second = Agent(self.agent.teak, self.directory, self.target)
        second.start()
        self.agent.wait_for("somebody else follows this source")
        second.kill()
        self.at(["create database o1", "create table o1.t (a int primary key)", "insert into o1.t values (1)"])
        self.at(["insert into o.t values (1)"], server=self.other)
        self.agent.catch_up("two1", self.source)
        self.agent.catch_up("two2", self.other)
        self.target.kill()
        self.at(["insert into o1.t values (2)"])
        self.at(["insert into o.t values (2)"], server=self.other)
        self.agent.wait_for("trying again")
        self.target.start(TARGET_OPTIONS)
        self.agent.catch_up("two2", self.other)
        # One that stops does not stop the other.
        self.at(["insert into o.t values (4)"], server=self.target)
        self.at(["insert into o.t values (4)"], server=self.other)
        self.agent.wait_for("two2: stopped: ")
        self.at(["insert into o1.t values (3)"])
        self.agent.catch_up("two1", self.source)
        expect_same(self.source, self.target, "o1")
        check(self.agent.stop() != 0, "a source has stopped, and the end is in order")

    def case_servers_that_are_silent_are_waited_for(self):
        name = self.follow()
        self.at(["create database si", "create table si.t (a int)"])
        self.agent.catch_up(name, self.source)
        # As a machine that has lost its power: nothing ends the connection. A target may be at an ALTER.
        self.target.process.send_signal(signal.SIGSTOP)
        self.at(["insert into si.t values (1)"])
        time.sleep(2)
        self.target.process.send_signal(signal.SIGCONT)
        self.agent.catch_up(name, self.source)
        self.source.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        try:
            while "trying again" not in self.agent.says():
                check(time.monotonic() < began + 60, f"it waits for a source of which nothing comes: {self.agent.says()}")
                time.sleep(0.1)
        finally:
            self.source.process.send_signal(signal.SIGCONT)
        check(time.monotonic() > began + 20, f"it does not wait: {self.agent.says()}")
        self.at(["insert into si.t values (2)"])
        self.arrive(name, "si")

    def note(self, name, statement, tables):
        """What is in the target when the agent ended between the note of a statement and the position behind it; the statement is carried out at the source."""
        before = b""
        for table in tables:
            try:
                before += "".join(text + "\n" for text in self.target.query(f"show create table once.{table}", database=None)[0]).encode()
            except pymysql.err.ProgrammingError:
                pass
            before += b"\0"
        self.at([statement])
        gtid = next(one for one in self.source.query("select @@gtid_binlog_pos")[0][0].split(",") if one.startswith("0-"))
        self.at([f"insert into teak_replicate.ddl (source, gtid, statement, before_it) values ('{name}', '{gtid}', '', x'{before.hex()}')"], server=self.target)

    def change_places(self):
        """Tables of one definition look the same before and after it: a table of the agent, renamed with them, tells."""
        circle = "rename table once.a to once.c, once.b to once.a, once.c to once.b"
        for was_carried_out in (False, True):
            name = self.follow()
            check(self.agent.stop() == 0, "no end in order")
            self.note(name, circle, ["a", "c", "b"])
            self.at([f"create table teak_replicate.`{name}.0` (x int)"], server=self.target)
            if was_carried_out:
                self.at([f"{circle}, teak_replicate.`{name}.0` to teak_replicate.`{name}.1`"], server=self.target)
            self.arrive(self.follow(name), "once")
            self.at([f"{circle} -- again"])
            self.arrive(self.follow(name), "once")

    def case_definitions_are_carried_out_once(self):
        made = ["create database once", "create table once.t (x int, y int)", "create table once.a (x int)", "create table once.b (x int)", "insert into once.a values (1)"]
        for server in (self.source, self.target):
            self.at(made, server=server)
        for statement, back, tables in (("alter table once.t add z int", "alter table once.t drop z", ["t"]), ("rename table once.t to once.u", "rename table once.u to once.t", ["t", "u"]),
                                        ("alter table once.t rename once.u", "rename table once.u to once.t", ["t", "u"]),
                                        ("create table once.n (x int)", "drop table once.n", ["n"]), ("drop table once.b", "create table once.b (x int)", ["b"]),
                                        ("create or replace table once.b (y int)", "create or replace table once.b (x int)", ["b"]),
                                        ("truncate table once.t", "insert into once.t values (1, 1)", ["t"])):
            for was_carried_out in (False, True):
                name = self.follow()
                check(self.agent.stop() == 0, "no end in order")
                self.note(name, statement, tables)
                if was_carried_out:
                    self.at([statement], server=self.target)
                self.follow(name)
                self.agent.catch_up(name, self.source)
                expect_same(self.source, self.target, "once")
                self.at([back])
                self.arrive(name, "once")
        self.change_places()
        # Rows that change places with those of a partition look the same before and after it.
        for server in (self.source, self.target):
            self.at(["create table once.p (x int) partition by hash (x) partitions 2", "create table once.e (x int)"], server=server)
        name = self.follow()
        check(self.agent.stop() == 0, "no end in order")
        self.note(name, "alter table once.p exchange partition p0 with table once.e", ["p", "e"])
        self.agent.start()
        self.stops(DAMAGE, "cannot be told", f"DELETE FROM teak_replicate.ddl WHERE source = '{name}'")
        self.at([f"DELETE FROM teak_replicate.ddl WHERE source = '{name}'"], server=self.target)
        self.arrive(self.follow(name), "once")
        name = self.follow()
        self.at(["drop table once.a"], server=self.target)
        self.at(["drop table once.a"])
        self.stops(SERVER, "DROP TABLE `once`.`a`", "1051")

    def case_a_position_that_somebody_moves_stops_the_source(self):
        name = self.follow()
        self.at(["create database mo", "create table mo.t (a int)"])
        self.agent.catch_up(name, self.source)
        self.at([f"update teak_replicate.position set gtid = '0-1-1' where source = '{name}'"], server=self.target)
        self.at(["insert into mo.t values (1)"])
        self.stops(1, "somebody has changed the position")
        check(self.target.query("select count(*) from mo.t", database=None)[0][0] == 0, "the row is there")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
