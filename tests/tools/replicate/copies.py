#!/usr/bin/python3
"""`teak replicate` with start = "copy": tables are copied beside writers and statements that change them, from InnoDB to Teak, whatever is killed.

usage: copies.py [CASE...]
"""

import contextlib
import random
import subprocess
import sys
import threading
import time

import pymysql

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, FollowingCases, beside, expect_same, others_of, run_cases
from kit.cases import Failure, check
from kit.columns import COLUMNS
from kit.options import seed

USAGE, DAMAGE = 2, 3
CONFLICTS = (1020, 1062, 1205, 1213, 1451, 1452, 1146, 1054, 1412)
UNKNOWN_XID, ROLLED_BACK = 1397, 1402
SEVERAL = 6
MANY_ROWS = 20000
TABLES = [
    "create table one (a int primary key, b int, c varchar(200))", "create table wide (a bigint unsigned, b int, c int, primary key (a, b))", "create table text (a varchar(20) primary key, b int)",
    "create table bare (a int, b int, key (b))", "create table parent (id int primary key, a int)",
    "create table child (id int auto_increment primary key, parent int, foreign key (parent) references parent (id) on delete cascade on update cascade)",
    "create table self (id int primary key, up int, foreign key (up) references self (id) on delete set null)", "create table negative (a smallint primary key, b int)",
    "create table made (id int auto_increment primary key, a int, v int as (a + 1) virtual, s int as (a * 2) stored, i int invisible default 7)", "create sequence sq",
    "create table renamed (a int primary key, b int)", "create table sole (a int primary key, u int, v int, unique (u), key (v))",
]
ROWS = [
    "insert into one select seq * 2, seq, repeat('x', seq % 200) from seq_1_to_60000", "insert into wide select 18446744073709551615 - (seq % 30000), seq, seq from seq_1_to_60000",
    "insert into text select concat('k', seq), seq from seq_1_to_3000", "insert into bare select seq % 100, seq from seq_1_to_2000", "insert into parent select seq, seq from seq_1_to_5000",
    "insert into child (parent) select 1 + seq % 5000 from seq_1_to_25000", "insert into self select seq, nullif(seq div 2, 0) from seq_1_to_2000",
    "insert into negative select cast(seq as signed) - 5000, seq from seq_0_to_10000", "insert into made (a, i) select seq, seq % 3 from seq_1_to_60000", "select nextval(sq), nextval(sq)",
    "insert into renamed select seq, seq from seq_1_to_20000", "insert into sole select seq, seq, seq % 100 from seq_1_to_60000", "set sql_mode = 'no_auto_value_on_zero'", "insert into made (id, a) values (0, 5)",
]
CHANGES = [
    "insert into one values ({r} * 2 + 1, 1, 'new')", "update one set b = b + 1 where a between {r} and {r} + 20", "delete from one where a between {r} and {r} + 5", "update one set a = {s} where a = {r}",
    "replace into wide values (18446744073709551615 - {r} % 30000, {s}, 5)", "update wide set a = a - 1 where b = {r}", "delete from wide where b = {r}", "insert into text values ('n{r}', 1)",
    "update text set b = b + 1, a = concat(a, 'x') where a = 'k{t}'", "delete from text where a = 'k{t}'", "insert into bare values (1, {r}), (2, {r})", "delete from bare where b = {t} limit 1",
    "update bare set a = 5 where b = {t}", "insert ignore into parent values ({u}, 1)", "delete from parent where id = {u}", "update parent set id = {u} + 6000 where id = {u}",
    "insert into child (parent) select id from parent where id >= {u} limit 3", "delete from child where id = {r}", "update child set parent = null where id = {r}",
    "delete from self where id = {t}", "insert into self values ({r}, null)", "update negative set a = {t} - 5000 where a = {u} - 5000", "delete from negative where a = {t} - 5000",
    "insert into made (a) values ({r})", "update made set id = {r} where id = {s}", "update made set a = a + 1 where id % 1000 = {r} % 1000", "do nextval(sq)",
    # Values of a unique key wander between rows that are copied and others.
    "update sole set u = null where a = {s}", "update ignore sole set u = {r} where a = {u}", "delete from sole where a = {r}", "insert into sole (a, u) values ({s}, {r})",
    "update sole set v = v + 1 where a between {r} and {r} + 20",
]
DEFINITIONS = [
    "alter table one add column d{n} int default 5", "alter table one add index (b)", "truncate table bare", "alter table made add column e{n} int", "create table new{n} (a int primary key)",
    "insert into new{n} values (1), (2)", "rename table renamed to renamed1", "rename table renamed1 to renamed", "drop table if exists new{n}", "alter table text modify b bigint",
    "create or replace view dv as select a, {n} as n from one", "drop view if exists dv", "create or replace trigger dt before insert on made for each row set new.a = new.a + {n}",
    "drop trigger if exists dt", "create or replace procedure dp() select {n}", "drop procedure if exists dp", "alter table wide force", "create or replace table again (a int primary key)", "insert into again values (3)",
]


class Writer(threading.Thread):
    """Changes at random, of rows or of definitions."""

    def __init__(self, server, database, statements, pause, choices, more=lambda pick: {}):
        super().__init__()
        self.server, self.database, self.statements, self.pause, self.random, self.more = server, database, statements, pause, choices, more
        self.stopped, self.trouble = threading.Event(), None

    def run(self):
        connection = None
        while not self.stopped.is_set():
            try:
                connection = connection or self.server.connect(database=self.database, autocommit=True)
                pick = self.random.randrange
                with connection.cursor() as cursor:
                    cursor.execute("begin")
                    for _ in range(pick(1, 4)):
                        numbers = {"r": pick(60000), "s": pick(120000), "t": pick(3000), "u": pick(5000), "n": pick(3), **self.more(pick)}
                        cursor.execute(self.random.choice(self.statements).format(**numbers))
                    cursor.execute("commit")
                time.sleep(self.pause * self.random.random())
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
                if error.args[0] not in CONFLICTS:
                    connection = None
            except pymysql.err.MySQLError as error:
                if error.args[0] not in CONFLICTS and self.statements is CHANGES:
                    self.trouble = error
                    return


class Branches(Writer):
    """Changes in XA transactions, of which some are only read in, and some are left by their connection once they are prepared, for `end_left` to end."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.left, self.number = [], 0

    def run(self):
        while not self.stopped.is_set():
            try:
                connection = self.server.connect(database=self.database, autocommit=True)
                with connection.cursor() as cursor:
                    cursor.execute("set innodb_lock_wait_timeout = 0")
                    while not self.one(cursor):
                        time.sleep(self.pause * self.random.random())
                        self.end_left(cursor)
                connection.close()
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
                time.sleep(0.01)

    def one(self, cursor):
        """Whether it was left prepared, or all is to end."""
        self.number += 1
        xid = f"'{self.name}', 'b{self.number}', {self.random.randrange(1, 9)}"
        pick = self.random.randrange
        cursor.execute(f"xa start {xid}")
        with contextlib.suppress(pymysql.err.IntegrityError):
            for _ in range(pick(1, 4)):
                numbers = {"r": pick(60000), "s": pick(120000), **self.more(pick)}
                cursor.execute(self.random.choice(self.statements).format(**numbers))
        cursor.execute(f"xa end {xid}")
        self.left.append(xid)
        cursor.execute(f"xa prepare {xid}")
        if pick(5) == 0:
            return True
        cursor.execute(f"xa {self.random.choice(['commit', 'commit', 'rollback'])} {xid}")
        self.left.remove(xid)
        return self.stopped.is_set()

    def end_left(self, cursor):
        """Those that are left, once their connections have ended."""
        while self.left:
            for _ in range(200):
                try:
                    cursor.execute(f"xa {self.random.choice(['commit', 'rollback'])} {self.left[0]}")
                    break
                except pymysql.err.MySQLError as error:
                    if error.args[0] == ROLLED_BACK:
                        break
                    if error.args[0] != UNKNOWN_XID:
                        raise
                    time.sleep(0.005)
            del self.left[0]


class Cases(FollowingCases):
    """Each copies a database."""

    def made(self, database):
        self.at([f"create database {database}"])
        self.at(TABLES + ROWS, database=database)

    def copied(self, name):
        """Until all tables are copied."""
        self.agent.until(lambda: name in (self.agent.says() + name) and self.agent.position(name) is not None
                         and not self.target.query(f"select 1 from teak_replicate.copy where source = '{name}'", database=None), "that all is copied")

    def same(self, name, database, renamed=None):
        self.agent.catch_up(name, self.source)
        disabled = self.target.query(f"select * from information_schema.statistics where table_schema = '{renamed or database}' and comment <> ''", database=None)
        check(not disabled, f"keys that are not built: {disabled}")
        done = subprocess.run([self.agent.teak, "replicate", "verify", "--config", self.agent.config], capture_output=True, check=False)
        said = done.stdout.decode() + done.stderr.decode()
        check(done.returncode == 0, said)
        return expect_same(self.source, self.target, database, renamed)

    def writers(self, database, choices):
        """Of rows, two, and of definitions."""
        writers = [Writer(self.source, database, CHANGES, 0.01, random.Random(choices.random())) for _ in range(2)]
        return writers + [Writer(self.source, database, DEFINITIONS, 0.3, random.Random(choices.random()))]

    def case_tables_are_copied(self):
        self.made("co")
        name = self.follow(start='"copy"', databases='["co"]', rename_databases='{ "co" = "s1_co" }')
        self.copied(name)
        rows = self.same(name, "co", "s1_co")
        check(rows > 100000, f"{rows} rows")
        # Where it is there, it is followed, and not copied again.
        check(self.agent.stop() == 0, "no end in order")
        self.at(["insert into co.one values (-1, 1, 'x')"])
        self.follow(name, start='"copy"', databases='["co"]', rename_databases='{ "co" = "s1_co" }')
        self.same(name, "co", "s1_co")
        check(self.agent.stop() == 0, "no end in order")

    def case_tables_are_copied_into_innodb_too(self):
        self.made("ci")
        self.agent.configure({"ci": self.source_keys(start='"copy"', databases='["ci"]')}, engine='"InnoDB"')
        self.agent.start()
        self.copied("ci")
        self.same("ci", "ci")
        engines = self.target.query("select distinct engine from information_schema.tables where table_schema = 'ci' and table_type = 'BASE TABLE'", database=None)
        check(engines == (("InnoDB",),), f"{engines}")
        check(self.agent.stop() == 0, "no end in order")

    def case_views_triggers_and_routines_are_copied(self):
        others = ["create function f(x int) returns int deterministic return x + 1", "create view v as select a, f(a) as b from t where a > 1", "create view a_view as select count(*) as n from v",
                  "create trigger before_t before insert on t for each row set new.b = coalesce(new.b, 7)", "create trigger again_t before insert on t for each row follows before_t set new.b = new.b + 1",
                  "create procedure p(x int) begin insert into t (a) values (x); insert into log values (x, 'a\\\\b'); end"]
        for database, renamed in (("co1", None), ("co2", "other")):
            self.at([f"create database {database}", f"use {database}", "create table t (a int primary key, b int)", "create table log (a int, b varchar(20))", *others,
                     "set sql_mode = 'ansi_quotes,no_backslash_escapes'", """create procedure "of ""quotes" () select 'a\\' as "b" """, "set sql_mode = default",
                     "insert into t select seq, seq from seq_1_to_50000", "create table gone (a int)", "create view broken as select a from gone", "drop table gone"])
            name = self.follow(start='"copy"', databases=f'["{database}"]', rename_databases=f'{{ "{database}" = "{renamed}" }}' if renamed else None)
            # Beside the copy, and behind it.
            self.at(["create view meanwhile as select 1 as a", "drop view a_view", "create or replace view v as select a, f(a) as b, 2 as c from t", "drop trigger again_t", "alter table t add column c int",
                     "call p(-1)"], database=database)
            self.copied(name)
            self.at(["drop procedure p", "create view later as select * from meanwhile", "create trigger later after delete on t for each row insert into log values (old.a, 'x')", "delete from t where a = 5"],
                    database=database)
            self.same(name, database, renamed)
            here = renamed or database
            there, made = (set(others_of(server, of)) for server, of in ((self.source, database), (self.target, here)))
            check(there - made == {("view", "broken", "")} and not made - there, f"{made} instead of {there}")
            check("view `{}`.`broken` is not copied".format(database) in self.agent.says(), self.agent.says())
            for kind, one in (("view", "v"), ("function", "f"), ("trigger", "before_t"), ("procedure", "`of \"quotes`")):
                of_source, of_target = (server.query(f"show create {kind} {one}", database=of)[0][:5] for server, of in ((self.source, database), (self.target, here)))
                check(of_source == of_target, f"{of_target} instead of {of_source}")
            check(self.agent.stop() == 0, "no end in order")
        self.at(["create database co3", "create table co3.t (a int)", "create view co3.v as select a from co3.t"])
        self.at(["create database co3", "create view co3.v as select 1 as a"], server=self.target)
        self.follow("mine", start='"copy"', databases='["co3"]')
        self.stops(USAGE, "mine: stopped: target: view `co3`.`v` is there already")

    def case_values_of_all_types_are_copied(self):
        source = random.Random(seed())
        self.at(["create database ty character set utf8mb4"])
        for part in range(3):
            some = {f"c{n}": column for n, column in enumerate(COLUMNS) if n % 3 == part}
            definitions = ", ".join(f"{column} {of.definition}" for column, of in some.items())
            connection = self.source.connect(database="ty", autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("set sql_mode = '', innodb_strict_mode = 0, time_zone = '+00:00'")
                cursor.execute(f"create table t{part} (id int auto_increment primary key, {definitions})")
                cursor.execute(f"create table k{part} ({definitions})")
                for _ in range(60):
                    chosen = source.sample(list(some), source.randrange(1, len(some) + 1))
                    values = ", ".join(f"{column} = {'null' if source.random() < 0.15 else some[column].literal(source)}" for column in chosen)
                    cursor.execute(f"insert into t{part} set {values}")
                    cursor.execute(f"insert into k{part} set {values}")
            connection.close()
        name = self.follow(start='"copy"', databases='["ty"]')
        self.copied(name)
        self.same(name, "ty")
        check(self.agent.stop() == 0, "no end in order")

    def case_tables_are_copied_beside_writers_and_kills(self):
        choices = random.Random(seed())
        self.made("cw")

        def work():
            nonlocal name
            name = self.follow(start='"copy"', databases='["cw"]')
            for _ in range(12):
                time.sleep(choices.random() * 0.4)
                self.agent.kill()
                self.agent.start()
            time.sleep(1)
        name = None
        beside(self.writers("cw", choices), work)
        self.copied(name)
        print(f"        {self.same(name, 'cw')} rows", flush=True)
        there, here = (others_of(server, "cw") for server in (self.source, self.target))
        check(there == here, f"{here} instead of {there}")
        check(self.agent.stop() == 0, "no end in order")

    def waits_for(self, info):
        """Who waits for a definition with a statement like this."""
        return self.source.query(f"select id from information_schema.processlist where info like '{info}' and state = 'Waiting for table metadata lock'", database=None)

    def held(self, table, statement):
        """A statement that rebuilds a table waits, in its last step, for a transaction that has changed a row: its connection, and the thread of the statement."""
        holder = self.source.connect(database="cr")
        for _ in range(20):
            thread = threading.Thread(target=self.at, args=([statement],), kwargs={"database": "cr"})
            thread.start()
            while thread.is_alive() and not self.source.query(f"select 1 from information_schema.processlist where info = '{statement}' and state = 'altering table'", database=None):
                pass
            with holder.cursor() as cursor:
                cursor.execute(f"update {table} set c = c + 1 where a = 1")
            while thread.is_alive() and not self.waits_for(statement):
                time.sleep(0.01)
            if thread.is_alive():
                return holder, thread
            holder.rollback()
        raise Failure(f"{statement} is too fast")

    def case_a_table_is_rebuilt_as_its_snapshot_begins(self):
        # To a snapshot that began meanwhile InnoDB shows the new table, without the rows that were changed since.
        self.at(["create database cr", "use cr", "create table parent (id int primary key)", "insert into parent values (1)",
                 "create table child (a bigint unsigned, b int, c int, up int, d varchar(100), primary key (a, b), foreign key (up) references parent (id))",
                 "insert into child select seq, seq, 0, 1, repeat('x', 100) from seq_1_to_200000"])
        holder, thread = self.held("child", "alter table child force")
        # Once the parent is copied, it is known where the log is, and that nothing is between it and the snapshot.
        name = self.follow(start='"copy"', databases='["cr"]')
        self.agent.until(lambda: self.waits_for("%SELECT 1 FROM `cr`.`child`%"), "that the copy waits")
        with holder.cursor() as cursor:
            for change in ("delete from child where a = 2", "update child set c = 7 where a between 3 and 9", "insert into child values (2, 1, 1, 1, '')", "update child set a = 0 where a = 100"):
                cursor.execute(change)
        holder.commit()
        holder.close()
        thread.join()
        self.copied(name)
        self.same(name, "cr")
        check(self.agent.stop() == 0, "no end in order")

    def case_a_range_is_committed_while_the_next_program_begins(self):
        self.at(["create database cc", "use cc", "create table t (a int primary key, b int)", "insert into t select seq, seq from seq_1_to_200000"])
        name = self.follow(start='"copy"', databases='["cc"]')
        self.agent.until(lambda: self.parts(name), "that a range is copied")
        self.agent.kill()
        last = self.parts(name)[0][1]
        # The next program reads no range before it is to commit none.
        reader, committer = self.source.connect(database="cc"), self.target.connect(database=None)
        with reader.cursor() as at_source, committer.cursor() as at_target:
            at_source.execute("lock tables t write")
            self.agent.start()
            self.agent.until(lambda: self.waits_for("%SELECT 1 FROM `cc`.`t`%"), "that it copies")
            for stage in ("start", "flush", "block_ddl", "block_commit"):
                at_target.execute(f"backup stage {stage}")
            at_source.execute("unlock tables")
            self.agent.until(lambda: self.target.query("select 1 from information_schema.processlist where info = 'COMMIT' and state like 'Waiting for backup lock%'", database=None), "that it commits")
            self.agent.kill()
            self.at([f"delete from t where a = {last + 1}", f"update t set b = -1 where a = {last + 2}"], database="cc")
            self.agent.forget()
            self.agent.start()
            self.agent.until(lambda: self.target.query("select 1 from information_schema.processlist where state = 'User lock'", database=None), "that it waits for what is committed")
            at_target.execute("backup stage end")
        reader.close()
        committer.close()
        self.copied(name)
        self.same(name, "cc")
        check(self.agent.stop() == 0, "no end in order")

    def several(self, database):
        """Tables of some ranges each: with other keys, with another unique one, with two columns in the key."""
        forms = ["a int primary key, b int, c varchar(1000), key (b), key (c(20))", "a bigint primary key, b int, c varchar(1000), unique (b)",
                 "a smallint, b int, c varchar(1000), primary key (a, b), key (b)"]
        self.at([f"create database {database}", *(f"create table {database}.t{n} ({forms[n % len(forms)]})" for n in range(SEVERAL))])
        self.at([f"insert into t{n} select seq {'% 300' if n % len(forms) == 2 else ''}, seq, repeat(seq, 100) from seq_1_to_{MANY_ROWS}" for n in range(SEVERAL)], database=database)

    def parts(self, name):
        """The tables of which some rows are there, and how far they are."""
        return self.target.query(f"select table_name, last from teak_replicate.copy where source = '{name}' and key_column is not null", database=None)

    def kill_some(self, server, choices):
        """Connections, by KILL."""
        connections = [row[0] for row in server.query("select id from information_schema.processlist where id <> connection_id()", database=None)]
        for connection in choices.sample(connections, min(3, len(connections))):
            with contextlib.suppress(pymysql.err.MySQLError):
                server.query(f"kill {connection}", database=None)

    def kill_something(self, kill, choices):
        """Agent, target, source, or connections of both."""
        if kill % 4 == 0:
            self.agent.kill()
            self.agent.start()
        elif kill % 4 == 1:
            self.target.kill()
            self.target.start(TARGET_OPTIONS)
        elif kill % 4 == 2:
            self.source.kill()
            self.source.start([*SOURCE_OPTIONS, "--server-id=1"])
        else:
            for server in (self.source, self.target):
                self.kill_some(server, choices)

    def case_several_tables_are_copied_at_once_while_writers_change_them_and_everything_is_killed(self):
        choices = random.Random(seed())
        self.several("cs")
        changes = ["update t{t} set c = concat(c, 'x') where a between {r} and {r} + 9 limit 20", "delete from t{t} where b = {r}", "insert ignore into t{t} values ({r} % 30000, {s}, 'new')",
                   "update ignore t{t} set b = {s} where b = {r}", "update ignore t{t} set a = {r} % 30000 where b = {u}", "update ignore t{t} set b = b + 1 where a = {r} limit 1"]
        writers = [Writer(self.source, "cs", changes, 0.01, random.Random(choices.random()), lambda pick: {"t": pick(SEVERAL)}) for _ in range(3)]
        # The source is faster with these than the target, so that the log is behind.
        writers.append(Writer(self.source, "cs", ["update t0 set c = left(concat(c, 'y'), 1000) where a between {u} and {u} + 500"], 0.0, random.Random(choices.random())))
        # Values of a unique key change places between rows of the first and of the last range, back and forth.
        self.at(["use cs", """create procedure swap(x int, y int) begin declare p, q int; select b into p from t1 where a = x for update; select b into q from t1 where a = y for update;
            update t1 set b = null where a in (x, y); update t1 set b = q where a = x; update t1 set b = p where a = y; end"""])
        writers.append(Writer(self.source, "cs", ["call swap({x}, {y})"], 0.002, random.Random(choices.random()), lambda pick: {"x": 1 + pick(3), "y": MANY_ROWS - pick(3)}))
        seen = set()

        def watch():
            while not watched.wait(0.01):
                with contextlib.suppress(pymysql.err.MySQLError):
                    seen.add(len(self.parts("cs")))

        def work():
            self.follow("cs", start='"copy"', databases='["cs"]')
            for kill in range(12):
                time.sleep(choices.random() * 0.5)
                self.kill_something(kill, choices)
            self.agent.command("verify")
            time.sleep(1)
        watched = threading.Event()
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            beside(writers, work)
            self.copied("cs")
        finally:
            watched.set()
            watcher.join()
        print(f"        {self.same('cs', 'cs')} rows, {self.source.query('select @@gtid_binlog_pos', database=None)[0][0]}, parts of {max(seen)} tables at once", flush=True)
        check(max(seen) > 1, f"no two tables were copied at once: {seen}")
        check(self.agent.stop() == 0, "no end in order")

    def case_tables_are_copied_beside_xa_transactions(self):
        choices = random.Random(seed())
        self.several("cx")
        self.at(["use cx", "create table parent (id int primary key, b int)", "create table child (id int primary key, b int, foreign key (b) references parent (id) on delete cascade on update cascade)",
                 "insert into parent select seq, seq from seq_1_to_20000", "insert into child select seq, seq % 20000 + 1 from seq_1_to_60000"])
        changes = ["update t{t} set c = concat(c, 'x') where a between {r} % 20000 and {r} % 20000 + 5 limit 20", "delete from t{t} where a = {r} % 20000", "insert ignore into t{t} values ({r} % 30000, {s}, 'new')",
                   "update ignore t{t} set b = {s} where a = {r} % 20000", "delete from parent where id = {r} % 20000", "update ignore parent set id = {s} where id = {r} % 20000", "select count(*) from t{t} where a < 9",
                   "insert ignore into child values ({s}, {r} % 20000)", "update child set id = id + 1 where id = {s}"]
        writers = [Branches(self.source, "cx", changes, 0.02, random.Random(choices.random()), lambda pick: {"t": pick(SEVERAL)}) for _ in range(6)]
        # Two that were prepared before: one is there for long.
        older = self.source.connect(database="cx", autocommit=True)
        for n in range(2):
            self.at([f"xa start 'older{n}'", f"update t0 set b = -{n + 1} where a = {19000 + n}", f"insert into t1 values ({40000 + n}, {500000 + n}, 'older')", f"xa end 'older{n}'", f"xa prepare 'older{n}'"], database="cx")

        def work():
            self.follow("cx", start='"copy"', databases='["cx"]')
            time.sleep(choices.random() * 0.5)
            with older.cursor() as cursor:
                cursor.execute("xa commit 'older0'")
                self.agent.wait_for("the copy waits for XA transactions that the source has prepared, such as X'")
                check(not self.target.query("select 1 from cx.t0 limit 1", database=None), "rows are there beside what may have changed them")
                cursor.execute("xa commit 'older1'")
            self.agent.until(lambda: self.parts("cx"), "that something is copied")
            # Not the source: that would leave some prepared there that have ended in its log.
            for kill in (0, 1, 3, 0, 1, 3):
                time.sleep(choices.random() * 0.5)
                self.kill_something(kill, choices)
            time.sleep(1)
        beside(writers, work)
        connection = self.source.connect(database="cx", autocommit=True)
        with connection.cursor() as cursor:
            for writer in writers:
                writer.end_left(cursor)
            cursor.execute("xa recover")
            check(not cursor.fetchall(), "some are prepared still")
        self.copied("cx")
        print(f"        {self.same('cx', 'cx')} rows, {sum(writer.number for writer in writers)} XA transactions", flush=True)
        check(self.target.query("select count(*) from teak_replicate.xa", database=None) == ((0,),), "some are kept")
        check(self.agent.stop() == 0, "no end in order")

    def case_a_copy_pauses_goes_on_skips_and_stops(self):
        self.several("cp")
        self.at(["create table cp.whole (a int primary key)"])
        name = self.follow(start='"copy"', databases='["cp"]')
        self.agent.until(lambda: self.parts(name), "that something is copied")
        check(self.agent.command("pause")[0] == 0, "no pause")
        self.agent.wait_for("pauses at")

        def now():
            return (self.target.query("select * from teak_replicate.copy", database=None),
                    [self.target.query(f"select count(*) from t{n}", database="cp") for n in range(SEVERAL)])
        before = now()
        check(before[0], "all is copied already")
        self.at(["create table cp.other (a int primary key)"])
        skipped = self.source.query("select @@gtid_binlog_pos", database=None)[0][0]
        self.at(["insert into cp.t0 values (-2, -2, 'x')"])
        time.sleep(1)
        check(before == now(), "something is copied in a pause")
        check(self.agent.command("skip", "--gtid", skipped)[0] == 0 and self.agent.command("resume")[0] == 0, "it does not go on")
        self.agent.until(lambda: now() != before, "that it goes on")
        check(self.agent.command("stop")[0] == 0 and self.agent.ended() == 0, "no end in order")
        self.agent.start()
        self.copied(name)
        self.agent.catch_up(name, self.source)
        check(not self.target.query("show tables like 'other'", database="cp"), "what was to be skipped is there")
        self.at(["create table cp.other (a int primary key)"], server=self.target)
        self.same(name, "cp")
        check(self.agent.stop() == 0, "no end in order")

    def case_two_sources_are_copied_into_one_database(self):
        for server, table in ((self.source, "one"), (self.other, "other")):
            self.at(["create database ct", "use ct", f"create table {table} (a int primary key, b int, key (b))", f"insert into {table} select seq, seq % 7 from seq_1_to_100000"], server=server)
        keys = {"start": '"copy"', "databases": '["ct"]', "rename_databases": '{ "ct" = "both" }'}
        self.agent.configure({"first": self.source_keys(**keys), "second": self.source_keys(self.other, **keys)})
        self.agent.start()
        for name, server in (("first", self.source), ("second", self.other)):
            self.copied(name)
            self.agent.catch_up(name, server)
        check(self.agent.command("verify")[0] == 0, "they differ")
        counts = [self.target.query(f"select count(*) from `both`.{table}", database=None)[0][0] for table in ("one", "other")]
        check(counts == [100000, 100000], f"{counts}")
        check(self.agent.stop() == 0, "no end in order")

    def case_rows_longer_than_a_range_are_copied(self):
        self.at(["create database cl", "use cl", "create table t (a int primary key, b longblob, c longtext, key (c(10)))"])
        self.at(["use cl"] + [f"insert into t values ({n}, repeat(char({n}, 9, 10, 92, 0), {1 << 20}), repeat('{n}\t\\\\', {1 << 20}))" for n in range(3)]
                + ["insert into t select seq, '', '\n' from seq_10_to_20000", "update t set b = null, c = null where a % 3 = 0 and a > 9"])
        name = self.follow(start='"copy"', databases='["cl"]')
        self.copied(name)
        self.same(name, "cl")
        check(self.agent.stop() == 0, "no end in order")

    def case_a_range_that_is_not_what_the_source_has_stops_the_copy(self):
        self.at(["create database cd", "use cd", "create table cd.t (a int primary key, b int)", "insert into cd.t select seq, seq from seq_1_to_1000"])
        name = f"s{self.names + 1}"
        holder = self.source.connect(database="cd")
        with holder.cursor() as cursor:
            # It is made in the target meanwhile, and not read.
            cursor.execute("lock tables t write")
            self.follow(start='"copy"', databases='["cd"]')
            self.at(["create trigger cd.other before insert on cd.t for each row set new.b = if(new.a = 7, 8, new.b)"], server=self.target)
        holder.close()
        self.stops(DAMAGE, f"{name}: stopped:", "copy of `cd`.`t`: 1000 rows at the source are", "in the target, or others")
        check(self.target.query("select count(*) from cd.t", database=None) == ((0,),), "rows of the range are there")
        self.at(["drop trigger cd.other"], server=self.target)
        self.agent.forget()
        self.agent.start()
        self.copied(name)
        self.same(name, "cd")
        check(self.agent.stop() == 0, "no end in order")

    def case_what_cannot_be_copied_is_told(self):
        self.at(["create database cn", "create table cn.m (a int) engine=myisam"])
        self.at(["create database cn", "create table cn.t (a int primary key)"], server=self.target)
        keys = {"start": '"copy"', "databases": '["cn"]'}
        for statements, words in ((["create table cn.t (a int primary key)"], "`cn`.`m` is of MyISAM, which has no snapshots"), (["drop table cn.m"], "`cn`.`t` is there already"),
                                  (["drop table cn.t", "create table cn.v (a int) with system versioning"], "`cn`.`v` has versions"),
                                  (["drop table cn.v", "create table cn.c1 (a int primary key, b int)", "create table cn.c2 (a int primary key, foreign key (a) references cn.c1 (a))",
                                    "alter table cn.c1 add foreign key (b) references cn.c2 (a)"], "are a circle"),
                                  (["set foreign_key_checks = 0", "drop table cn.c1, cn.c2", "set global binlog_row_image = minimal"], "binlog_row_image is MINIMAL")):
            self.at(statements)
            self.names += 1
            self.agent.configure({f"s{self.names}": self.source_keys(**keys)})
            checked = subprocess.run([self.agent.teak, "replicate", "check", "--config", self.agent.config], capture_output=True, check=False)
            check("circle" in words or (checked.returncode == USAGE and words in checked.stdout.decode()), f"{words}: {checked}")
            self.agent.forget()
            self.agent.start()
            self.stops(USAGE, f"s{self.names}: stopped: ", words)
        self.at(["set global binlog_row_image = full"])
        self.at(["set global local_infile = 0"], server=self.target)
        self.agent.configure({"last": self.source_keys(**keys)})
        status, said = self.agent.command("check")
        check(status == USAGE and "local_infile is OFF" in said, f"{status} {said}")
        self.agent.start()
        self.stops(USAGE, "last: stopped: ", "local_infile is OFF")
        self.at(["set global local_infile = 1"], server=self.target)


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
