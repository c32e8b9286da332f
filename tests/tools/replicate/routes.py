#!/usr/bin/python3
"""Tables that `teak replicate` follows, leaves out and calls otherwise: rows, definitions, copies, `check` and `verify` through the routes.

usage: routes.py [CASE...]
"""

import random
import sys
import time

from kit.agent import TARGET_OPTIONS, FollowingCases, run_cases
from kit.cases import check
from kit.options import seed

USAGE, DAMAGE, SERVER = 2, 3, 5


class Cases(FollowingCases):
    """Of tables."""

    def tables(self, database):
        """Of the target."""
        return [row[0] for row in self.target.query(f"select table_name from information_schema.tables where table_schema = '{database}' order by 1", database=None)]

    def same(self, there, here):
        """A table has the same rows on both sides."""
        both = [sorted(map(repr, server.query(f"select * from {table}", database=None))) for server, table in ((self.source, there), (self.target, here))]
        check(both[0] == both[1], f"{there}: {both[0][:5]} at the source, {both[1][:5]} as {here}")

    def case_tables_are_chosen_and_left_out(self):
        keys = {"databases": '["ch", "cg"]', "tables": '["ch.*", "cg.page*"]', "exclude_tables": '["*.*_tmp", "ch.big"]'}
        name = self.follow(**keys)
        self.at(["create database ch", "create database cg"])
        self.at(["create table t (a int primary key, b int)", "create table t_tmp like t", "create table big (a int)", "create table cg.page (a int primary key)", "create table cg.user (a int)",
                 "begin", "insert into t values (1, 1)", "insert into t_tmp values (1, 1)", "insert into big values (1)", "insert into cg.page values (1)", "insert into cg.user values (1)", "commit",
                 "update t, t_tmp set t.b = 2, t_tmp.b = 3", "alter table big add b int", "alter table cg.user add b int", "create index i on t (b)", "create index i on big (a)",
                 "drop table t_tmp", "truncate big", "rename table cg.user to cg.users", "create view v as select * from big", "create trigger tr before insert on t for each row set new.b = 7",
                 "insert into t (a) values (2)", "drop view v", "drop trigger tr", "insert into t values (3, 3)", "create sequence sq", "select nextval(sq)"], database="ch")
        self.agent.catch_up(name, self.source)
        check((self.tables("ch"), self.tables("cg")) == (["sq", "t"], ["page"]), f"{self.tables('ch')}, {self.tables('cg')}")
        self.same("ch.t", "ch.t")
        self.same("cg.page", "cg.page")
        said = self.agent.says()
        check(said.count(" is passed over: what it names") == 4 and "drop view v ... is passed over" in said, said)
        # What is left out is nobody's difference, whatever the target has of it.
        self.at(["create table ch.big (z int)", "create table cg.other (z int)"], server=self.target)
        status, said = self.agent.command("verify")
        check(status == 0 and f"{name}: 3 tables, " in said, said)
        self.at(["create table ch.more (a int)"], server=self.target)
        status, said = self.agent.command("verify")
        check(status == 1 and "`ch`.`more` of the target is at no source" in said, said)
        self.at(["drop table ch.more, ch.big, cg.other"], server=self.target)
        status, said = self.agent.command("check")
        check(status == 0, said)
        # A table that would come, or one of both.
        for statement in ("rename table ch.big to ch.small", "drop table ch.big, ch.t", "create table ch.part (a int) partition by hash (a) partitions 2;alter table ch.part exchange partition p0 with table ch.big"):
            self.at(statement.split(";"))
            self.stops(DAMAGE, f"{name}: stopped: 0-1-", "a statement about tables that are followed and others that are not")
            name = self.follow(**keys)
            self.at(["create table if not exists ch.big (a int)", "drop table if exists ch.small"])
            self.agent.catch_up(name, self.source)
            self.at(["create table if not exists ch.t (a int)"], server=self.target)
        # What somebody has in the target under a name that is left out does not go with the source's database.
        self.at(["drop database cg"])
        self.agent.catch_up(name, self.source)
        check(self.tables("cg") == [], "the database is here")
        self.at(["create table ch.big (z int)"], server=self.target)
        self.at(["drop database ch"])
        self.stops(DAMAGE, "DROP DATABASE of ch, in which `big` here is no table of this source")
        check("big" in self.tables("ch"), "a table of the target is gone")

    def case_tables_get_other_names(self):
        rename = '{ "rn.t" = "allx.rn_t", "rn.p" = "rm.parent" }'
        keys = {"databases": '["rn"]', "rename_databases": '{ "rn" = "rm" }', "rename_tables": rename}
        self.at(["create database allx"], server=self.target)
        name = self.follow(**keys)
        self.at(["create database rn"])
        self.at(["create table t (a int primary key, b varchar(9))", "create table p (a int primary key)", "create table c (a int, p int, foreign key (p) references p (a) on delete cascade)",
                 "create table l like t", "insert into t values (1, 't'), (2, 'u')", "insert into p values (1), (2)", "insert into c values (1, 1), (2, 2)", "delete from p where a = 1",
                 "alter table rn.t add c int default 5, add index (b)", "update t set c = a", "create unique index u on t (a, b)", "drop index u on t",
                 # As gh-ost does.
                 "create table _t_gho like t", "alter table _t_gho add d int", "insert into _t_gho select *, 1 from t", "rename table t to _t_del, _t_gho to t", "insert into t values (3, 'v', 3, 3)",
                 "drop table _t_del", "create or replace table l (a int primary key)", "insert into l values (1)"], database="rn")
        self.agent.catch_up(name, self.source)
        for there, here in (("rn.t", "allx.rn_t"), ("rn.p", "rm.parent"), ("rn.c", "rm.c"), ("rn.l", "rm.l")):
            self.same(there, here)
        check((self.tables("rm"), self.tables("allx")) == (["c", "l", "parent"], ["rn_t"]), f"{self.tables('rm')}, {self.tables('allx')}")
        status, said = self.agent.command("check")
        check(status == 0, said)
        status, said = self.agent.command("verify")
        check(status == 0 and f"{name}: 4 tables, " in said, said)
        self.at(["update allx.rn_t set b = 'x' where a = 2", "delete from rm.parent"], server=self.target, init_command="set foreign_key_checks = 0")
        status, said = self.agent.command("verify", "--repair")
        check(status == 0 and "`rn`.`t`, key a = 2: differs in b" in said and "`rn`.`p`, key a = 2: is missing" in said, said)
        status, said = self.agent.command("verify")
        check(status == 0, said)
        # A row that does not fit is told by the source's names.
        self.at(["delete from allx.rn_t where a = 1"], server=self.target)
        self.at(["delete from rn.t"])
        self.stops(SERVER, "`rn`.`t`, key a = 1: target: ERROR 1032")
        self.at(["insert into allx.rn_t values (1, 't', 1, 1)"], server=self.target)
        self.follow(name, **keys)
        self.agent.catch_up(name, self.source)
        # A database that tables have left, or that a name of one is taken by another.
        self.at(["drop database rn"])
        self.stops(DAMAGE, "DROP DATABASE of rn, of which rename_tables has tables come or go")

    def case_two_tables_are_not_one(self):
        for database in ("tw", "tv"):
            self.at([f"create database {database}", f"create table {database}.t (a int primary key)", f"create table {database}.u (a int primary key)"])
            self.at([f"create database {database}", f"create table {database}.t (a int primary key)", f"create table {database}.u (a int primary key)"], server=self.target)
        keys = {"databases": '["tw", "tv"]', "rename_tables": '{ "tw.t" = "tv.u" }'}
        self.agent.configure({"tw": self.source_keys(**keys)})
        self.agent.forget()
        self.agent.start()
        self.stops(USAGE, "tw: stopped: `tv`.`u` of the target is the source's")
        status, said = self.agent.command("check")
        with open(self.agent.config, encoding="utf-8") as config:
            line = next(number for number, text in enumerate(config, 1) if "rename_tables" in text)
        check(status == USAGE and "are one in the target, `tv`.`u`" in said, said)
        self.agent.configure({"tw": self.source_keys(databases='["tw"]', tables='["tw.t", "tw.none*"]', rename_tables='{ "tw.t" = "tv.t" }'),
                              "tv": self.source_keys(databases='["tv"]', rename_tables='{ "tv.u" = "tv.w" }')})
        status, said = self.agent.command("check")
        for words in ("tw: no table that is followed is called as this says", "tv: `tv`.`t` and a table of tw are one in the target, `tv`.`t`"):
            check(status == USAGE and words in said, said)
        self.agent.configure({"tw": self.source_keys(databases='["tw"]', rename_tables='{ "tw.no" = "tv.no" }')})
        status, said = self.agent.command("check")
        check(status == USAGE and f"toml:{line}: error: tw: rename_tables: there is no table `tw`.`no`" in said, said)
        # Of tables that come later the second one is not carried out.
        name = self.follow(databases='["tw", "tv"]', tables='["tw.x", "tv.x"]', rename_tables='{ "tw.x" = "tv.x" }')
        self.at(["create table tw.x (a int primary key)", "insert into tw.x values (1)"])
        self.agent.catch_up(name, self.source)
        self.at(["drop table if exists tv.x"])
        self.stops(USAGE, "`tv`.`x` of the target is the source's `tw`.`x` and its `tv`.`x`")
        check(self.target.query("select count(*) from tv.x", database=None)[0][0] == 1, "the other table is gone")

    def case_sources_share_a_database(self):
        self.at(["create database sh", "create table sh.a (a int primary key)", "insert into sh.a values (1)"])
        self.at(["create database sh", "create table sh.a (a int primary key)", "insert into sh.a values (2)"], server=self.other)
        for name, server in (("h1", self.source), ("h2", self.other)):
            self.at([f"create database if not exists shared", f"create table shared.{name}_a (a int primary key)", f"insert into shared.{name}_a values ({name[1]})"], server=self.target)
        self.agent.configure({name: self.source_keys(server=server, databases='["sh"]', rename_tables=f'{{ "sh.a" = "shared.{name}_a" }}')
                              for name, server in (("h1", self.source), ("h2", self.other))})
        self.agent.forget()
        self.agent.start()
        for name in ("h1", "h2"):
            self.agent.wait_for(f"{name}: follows from")
        self.at(["insert into sh.a values (11)", "alter table sh.a add b int default 1"])
        self.at(["insert into sh.a values (12)", "alter table sh.a add c int default 2"], server=self.other)
        self.agent.catch_up("h1", self.source)
        self.agent.catch_up("h2", self.other)
        self.same("sh.a", "shared.h1_a")
        status, said = self.agent.command("verify")
        check(status == 0, said)
        check(self.agent.stop() == 0, "no end in order")
        # What one drops with its database would be the other's as well.
        self.agent.configure({"g1": self.source_keys(databases='["sh"]', rename_databases='{ "sh" = "shared" }', tables='["sh.x"]'),
                              "g2": self.source_keys(server=self.other, databases='["sh"]', rename_databases='{ "sh" = "shared" }', tables='["sh.y"]')})
        self.at(["create table sh.x (a int)"])
        self.at(["create table sh.y (a int)"], server=self.other)
        self.at(["create table shared.x (a int)", "create table shared.y (a int)"], server=self.target)
        self.agent.forget()
        self.agent.start()
        for name in ("g1", "g2"):
            self.agent.wait_for(f"{name}: follows from")
        self.at(["drop database sh"])
        self.agent.wait_for("DROP DATABASE of sh, in which the source g2 has tables here")
        check("y" in self.tables("shared"), "the other's table is gone")
        self.agent.stop()

    def case_copies_go_through_routes_whatever_is_killed(self):
        source = random.Random(seed())
        self.at(["create database cp"])
        self.at(["create table t (a int primary key, b int, unique (b))", "insert into t select seq, -seq from seq_1_to_60000", "create table big_tmp (a int)", "insert into big_tmp values (1)",
                 "create table p (a int primary key)", "create table c (a int primary key, p int, foreign key (p) references p (a))", "insert into p select seq from seq_1_to_1000",
                 "insert into c select seq, seq from seq_1_to_1000"], database="cp")
        keys = {"start": '"copy"', "databases": '["cp"]', "exclude_tables": '["*.*_tmp"]', "rename_tables": '{ "cp.t" = "cq.t1", "cp.p" = "cp.parents" }'}
        self.at(["set global local_infile = 1"], server=self.target)
        name = self.follow(**keys)
        for step in range(4):
            self.at([f"update t set b = b - 1000000 where a % 7 = {step}", f"insert into c values ({2000 + step}, 5)", "delete from big_tmp", "insert into big_tmp values (2)",
                     f"insert into t (a, b) values ({70000 + step}, {step})"] + ["alter table t add d int default 4"] * (step == 2), database="cp")
            time.sleep(source.random() / 5)
            if step == 3:
                self.target.kill()
                self.target.start([*TARGET_OPTIONS, "--local-infile=1"])
            else:
                self.agent.kill()
                self.agent.start()
        self.agent.until(lambda: not self.target.query(f"select 1 from teak_replicate.copy where source = '{name}'", database=None), "that all is copied")
        self.agent.catch_up(name, self.source)
        check((self.tables("cp"), self.tables("cq")) == (["c", "parents"], ["t1"]), f"{self.tables('cp')}, {self.tables('cq')}")
        for there, here in (("cp.t", "cq.t1"), ("cp.p", "cp.parents"), ("cp.c", "cp.c")):
            self.same(there, here)
        check("REFERENCES `parents`" in self.target.query("show create table cp.c", database=None)[0][1], "the foreign key is another one")
        status, said = self.agent.command("verify")
        check(status == 0 and f"{name}: 3 tables" in said, said)
        check(self.agent.stop() == 0, "no end in order")

    def case_tables_of_several_sources_are_one(self):
        source = random.Random(seed())
        made = ["create database pa", "create table pa.t (a int primary key, b varchar(20), c double, d bit(3), e text, unique (b))",
                "create table pa.k (c1 int, c2 int, c3 int, c4 int, c5 int, c6 int, c7 int, c8 int)"]
        for server in (self.source, self.other):
            self.at(made, server=server)
        # Of one the bits of a row fill a byte, and the column takes more than 255 bytes.
        self.at(["create database pall", "create table pall.t (a int, b varchar(20), c double, d bit(3), e text, wiki varchar(20) character set ascii not null, primary key (wiki, a), unique (b, wiki))",
                 "create table pall.k (c1 int, c2 int, c3 int, c4 int, c5 int, c6 int, c7 int, c8 int, wiki varchar(100) character set utf8mb4)"], server=self.target)
        name = lambda value, table: f'{{ table = "pall.{table}", column = "wiki", value = "{value}" }}'
        keys = lambda server, value, **more: self.source_keys(
            server=server, databases='["pa"]', rename_tables=f'{{ "pa.t" = {name(value, "t")}, "pa.k" = {name(value, "k")} }}', **more)
        sources = {"p1": keys(self.source, "one", on_conflict='"overwrite"'), "p2": keys(self.other, "two")}
        self.agent.configure(sources)
        self.agent.forget()
        self.agent.start()
        for one in sources:
            self.agent.wait_for(f"{one}: follows from")
        for step in range(6):
            for server in (self.source, self.other):
                image = source.choice(["full", "minimal", "noblob"]) if server is self.other else "full"
                first = 100 * step
                self.at([f"set binlog_row_image = {image}", f"insert into t select seq, concat('x', seq), seq / 7, seq % 8, if(seq % 3, repeat('y', seq), null) from seq_{first + 1}_to_{first + 100}",
                         f"insert into k select seq, null, seq, null, seq, seq, null, if(seq % 2, seq, null) from seq_1_to_{source.randrange(2, 20)}",
                         f"update t set c = null, e = 'z' where a % 5 = {step}", f"update t set a = a + 10000 where a % 11 = {step} and a < 10000", f"delete from t where a % 7 = {step}",
                         f"update k set c2 = {step} where c1 % 3 = 1", "delete from k where c1 = 2 limit 1"], server=server, database="pa")
                self.at(["xa start 'x'", f"insert into t (a) values ({20000 + step})", f"insert into k values ({step}, 1, 1, 1, 1, 1, 1, 1)", "xa end 'x'", "xa prepare 'x'", "xa commit 'x'"],
                        server=server, database="pa")
            if step == 2:
                self.agent.kill()
                self.agent.start()
            if step == 4:
                self.target.kill()
                self.target.start(TARGET_OPTIONS)
        self.at(["insert into t values (-1, 'minus', 1, 1, 'x')"], server=self.other, database="pa")
        self.agent.catch_up("p1", self.source)
        self.agent.catch_up("p2", self.other)

        def same():
            for server, value in ((self.source, "one"), (self.other, "two")):
                for table, columns in (("t", "a, b, c, d, e"), ("k", "c1, c2, c3, c4, c5, c6, c7, c8")):
                    there = sorted(map(repr, server.query(f"select {columns} from pa.{table}", database=None)))
                    here = sorted(map(repr, self.target.query(f"select {columns} from pall.{table} where wiki = '{value}'", database=None)))
                    check(there == here, f"{table} of {value}: {len(there)} rows at the source, {len(here)} here: {sorted(set(there) ^ set(here))[:4]}")
        same()
        status, said = self.agent.command("check")
        check(status == 0, said)
        status, said = self.agent.command("verify")
        check(status == 0 and "p1: 2 tables" in said and "p2: 2 tables" in said, said)
        # Rows of one that differ are its own; what stands in the way of one is not of the other.
        self.at(["delete from pall.t where a = -1", "update pall.t set b = 'other' where wiki = 'one' and b = 'x13'", "insert into pall.t values (-5, 'new', 1, 1, 'x', 'one'), (-6, 'next', 1, 1, 'x', 'one'), "
                 "(-7, 'next', 1, 1, 'x', 'two')"], server=self.target)
        status, said = self.agent.command("verify")
        for words in ("p2: `pa`.`t`, key a = -1: is missing", "p1: `pa`.`t`, key a = -5: is not at the source", "p2: `pa`.`t`, key a = -7"):
            check(status == 1 and words in said, f"{words}: {said}")
        self.at(["insert into t values (-5, 'mine', 2, 2, 'y'), (-8, 'next', 2, 2, 'y')", "update t set c = 5 where b = 'x13'", "update t set b = 'x13!' where b = 'x13'"], database="pa")
        self.agent.catch_up("p1", self.source)
        self.at(["delete from pall.t where wiki = 'two' and a = -7", "insert into pall.t values (-1, 'minus', 1, 1, 'x', 'two')"], server=self.target)
        same()
        check("p1: 0-1-" in self.agent.says() and "is overwritten" in self.agent.says(), self.agent.says())
        # What only one of them would change.
        for statement in ("truncate pa.t", "alter table pa.t add x int", "drop table pa.k"):
            self.at([statement])
            self.agent.wait_for("p1: stopped: ")
            check("a statement about a table that is one with others here: change that, and skip it" in self.agent.says(), self.agent.says())
            last = next(one for one in self.source.query("select @@gtid_binlog_pos", database=None)[0][0].split(",") if one.startswith("0-"))
            self.agent.forget()
            check(self.agent.command("skip", "--gtid", last, "p1")[0] == 0, "no skip")
            self.agent.catch_up("p1", self.source)
        check(self.agent.stop() == 0, "no end in order")
        # Others than these are refused, by line where the file has it.
        self.agent.configure({"p1": keys(self.source, "one"), "p2": keys(self.other, "ONE")})
        status, said = self.agent.command("check")
        check(status == USAGE and "rename_tables: a table of p1 would be pall.k as well" in said, said)
        self.at(["alter table pall.t add late int"], server=self.target)
        self.agent.configure({"p4": keys(self.other, "four")})
        status, said = self.agent.command("check")
        check(status == USAGE and "has no last column wiki in the target" in said, said)
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("p4: follows from")
        self.at(["insert into t values (-9, 'nine', 1, 1, 'x')"], server=self.other, database="pa")
        self.stops(DAMAGE, "the last column of `pall`.`t` must be wiki, a VARCHAR that takes 4 letters")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
