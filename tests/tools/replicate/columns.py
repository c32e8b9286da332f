#!/usr/bin/python3
"""Columns that `teak replicate` calls otherwise in the target: rows, definitions that name them, copies, `check`, `verify` and its repairs.

usage: columns.py [CASE...]
"""

import random
import sys
import time

from kit.agent import FollowingCases, run_cases
from kit.cases import check
from kit.options import seed

USAGE, DAMAGE = 2, 3


class Cases(FollowingCases):
    """Each has a database of its own."""

    def rows(self, query, server=None):
        return [tuple(row) for row in (server or self.target).query(query, database=None)]

    def columns(self, table, server=None):
        database, name = table.split(".")
        return [row[0] for row in self.rows(f"select column_name from information_schema.columns where table_schema = '{database}' and table_name = '{name}' order by ordinal_position", server)]

    def same(self, table, names):
        """The columns are the source's but for `names`, and so are the rows."""
        there, here = self.columns(table, self.source), self.columns(table)
        check([names.get(name, name) for name in there] == here, f"{table}: {there} at the source, {here} in the target")
        both = [sorted(map(repr, self.rows(f"select * from {table}", server))) for server in (self.source, self.target)]
        check(both[0] == both[1], f"{table}: {set(both[0]) ^ set(both[1])}")
        return len(both[0])

    def begin_database(self):
        database = f"rc{self.names}"
        for server in (self.source, self.target):
            self.at([f"create database {database}"], server=server)
        return database

    def case_rows_and_definitions_of_columns_with_other_names(self):
        names = {"a": "first", "date": "on_day", "b": "c", "c": "b", "late": "later"}
        key = ", ".join(f"{name} = \"{other}\"" for name, other in names.items())
        for keys, metadata in (({}, "minimal"), ({"workers": 3}, "full"), ({"on_conflict": '"overwrite"'}, "no_log")):
            database = self.begin_database()
            self.source.query(f"set global binlog_row_metadata = {metadata}", database=None)
            name = self.follow(databases=f'["{database}"]', rename_columns=f'{{ "{database}.t*" = {{ {key} }} }}', **keys)
            self.at(["create table t (a int primary key, date date, b varchar(20), c int, d int as (c + 1) stored, unique key b (b), key date (date, c), check (a > -1000000))",
                     "create table u (a int primary key, b int)", "create table t_like like t", "insert into u values (1, 2)",
                     "create table child (x int primary key, p int, foreign key (p) references t (a))"], database=database)
            for image in ("full", "minimal", "noblob"):
                first = {"full": 0, "minimal": 1000, "noblob": 2000}[image]
                self.at([f"set session binlog_row_image = {image}", f"insert into t (a, date, b, c) select {first} + seq, '2000-01-01' + interval seq day, concat('x', {first} + seq), seq from seq_1_to_100",
                         f"update t set c = -c, date = null where a between {first} + 10 and {first} + 30", f"update t set a = a + 10000 where a = {first} + 50", f"delete from t where a > {first} + 90 and a < 9000",
                         f"insert into child values ({first} + 1, {first} + 1)"], database=database)
            self.agent.catch_up(name, self.source)
            self.same(f"{database}.t", names)
            self.agent.kill()
            # What an ALTER makes of such a column, it makes of the one that is called otherwise.
            self.at(["alter table t add late int default 5 after date, drop key date, add key late (late, date), modify c bigint", "insert into t (a, date, b, late, c) values (5000, '2001-02-03', 'z', 7, 8)",
                     "alter table t change date day_of datetime, rename column late to early", "update t set day_of = now(), early = 3 where a < 20", "create index b2 on t (b(5), c)",
                     "alter table t drop column d, add (late int, e int as (c + late) virtual)", "update t set late = a where a % 3 = 0", "alter table t rename column day_of to date",
                     "rename table t to t2, t_like to t", "insert into t (a, b) values (1, 'new')", "truncate u"], database=database)
            self.agent.start()
            self.agent.catch_up(name, self.source)
            check(self.same(f"{database}.t2", names) == 271, "not all rows")
            check(self.same(f"{database}.t", names) == 1, "not the row")
            for table in ("u", "child"):
                self.same(f"{database}.{table}", {})
            check("REFERENCES `t2` (`first`)" in self.rows(f"show create table {database}.child")[0][1], "the foreign key is another one")
            for command in ("check", "verify"):
                status, said = self.agent.command(command)
                check(status == 0, said)
            # Rows that somebody has changed are told by the source's names, and made the source's.
            self.at([f"update {database}.t2 set b = 77 where first = 5", f"delete from {database}.t2 where first = 6", f"insert into {database}.t2 (first, c) values (-7, 'more')"], server=self.target)
            status, said = self.agent.command("verify")
            check(status == 1 and all(words in said for words in ("key a = 5: differs in c", "key a = 6: is missing", "key a = -7: is not at the source")), said)
            status, said = self.agent.command("verify", "--repair")
            check(status == 0 and "3 differences, 3 repaired" in said, said)
            self.same(f"{database}.t2", names)
            # One that goes by its name at the source would not be the one that is meant.
            self.agent.forget()
            self.at(["rename table t2 to other"], database=database)
            self.stops(DAMAGE, f"{name}: stopped:", "`t2` has columns of other names here, and `other` other ones")
        self.source.query("set global binlog_row_metadata = no_log", database=None)

    def case_histories_by_chance(self):
        source = random.Random(seed())
        for _ in range(3):
            database = self.begin_database()
            known = [f"k{number}" for number in range(8)]
            others = source.sample(known, 4)
            names = dict(zip(source.sample(known, 4), [f"n{number}" for number in range(4)])) if source.random() < 0.5 else dict(zip(others, others[1:] + others[:1]))
            key = ", ".join(f"{name} = \"{other}\"" for name, other in names.items())
            name = self.follow(databases=f'["{database}"]', rename_columns=f'{{ "{database}.t" = {{ {key} }} }}', workers=source.choice([1, 3]))
            columns, indexes = ["id", *source.sample(known, 4)], []
            self.at([f"create table t (id int primary key, {', '.join(f'{column} int' for column in columns[1:])})"], database=database)
            for step in range(60):
                free, own = [one for one in known if one not in columns], columns[1:]
                what = source.choice(["insert", "update", "delete", "add", "drop", "rename", "change", "modify", "index", "drop index", "generated", "kill"])
                quote = (lambda text: f"`{text}`") if source.random() < 0.5 else (lambda text: text)
                statement = None
                if what == "insert":
                    statement = f"insert into t ({', '.join(columns)}) select {1000 * step} + seq, {', '.join(f'seq * {source.randrange(100)}' for _ in own) or 'seq'} from seq_1_to_{source.randrange(1, 20)}" if own else None
                elif what == "update" and own:
                    statement = f"update t set {source.choice(own)} = {step} where id % {source.randrange(2, 5)} = 0"
                elif what == "delete":
                    statement = f"delete from t where id % {source.randrange(5, 9)} = 1"
                elif what == "add" and free:
                    column = source.choice(free)
                    place = source.choice([" first", "", *(f" after {quote(one)}" for one in columns)])
                    at = 0 if place == " first" else len(columns) if not place else columns.index(place.split()[1].strip("`")) + 1
                    columns.insert(at, column)
                    columns.remove("id")
                    columns.insert(0, "id")
                    statement = f"alter table t add column {quote(column)} int default {step}{place}"
                elif what == "drop" and len(own) > 1:
                    column = source.choice(own)
                    if not any(column in index for index in indexes):
                        columns.remove(column)
                        statement = f"alter table t drop {quote(column)}"
                elif what in ("rename", "change") and own and free:
                    column, other = source.choice(own), source.choice(free)
                    columns[columns.index(column)] = other
                    indexes = [[other if one == column else one for one in index] for index in indexes]
                    statement = f"alter table t rename column {quote(column)} to {quote(other)}" if what == "rename" else f"alter table t change {quote(column)} {quote(other)} bigint"
                elif what == "modify" and own:
                    statement = f"alter table t modify {quote(source.choice(own))} bigint default 7"
                elif what == "index" and len(own) > 1 and not indexes:
                    indexes.append(source.sample(own, 2))
                    # The index may be called as a column.
                    statement = f"create index k0 on t ({', '.join(map(quote, indexes[0]))})"
                elif what == "drop index" and indexes:
                    indexes.clear()
                    statement = "alter table t drop index k0"
                elif what == "generated" and own:
                    self.at([f"alter table t add g int as ({quote(source.choice(own))} + 1) virtual", "insert into t (id) values (-1)", "delete from t where id = -1", "alter table t drop g"], database=database)
                elif what == "kill":
                    self.agent.kill()
                    self.agent.start()
                if statement:
                    self.at([statement], database=database)
            self.agent.catch_up(name, self.source)
            self.same(f"{database}.t", names)
            for command in ("check", "verify"):
                status, said = self.agent.command(command)
                check(status == 0, f"{names}: {said}")
            check(self.agent.stop() == 0, self.agent.says())

    def case_copies_have_the_other_names(self):
        self.source.query("create database rcc", database=None)
        self.at(["create table t (a int primary key, b varchar(20), c int, d int as (c + 1) virtual, key b (b), unique (c), check (b <> ''))", "create table p (a int primary key, b int references t (a))",
                 "insert into t (a, b, c) select seq, concat('x', seq), -seq from seq_1_to_60000", "insert into p values (1, 1)", "create view v as select a from t"], database="rcc")
        self.at(["set global local_infile = 1"], server=self.target)
        names = {"a": "first", "b": "c", "c": "b"}
        key = ", ".join(f"{name} = \"{other}\"" for name, other in names.items())
        name = self.follow(start='"copy"', databases='["rcc"]', rename_columns=f'{{ "rcc.t" = {{ {key} }} }}')
        for step in range(4):
            self.at([f"update t set c = c - 1000000 where a % 7 = {step}", f"insert into t (a, b, c) values ({70000 + step}, 'y', {step})", f"delete from t where a % 11 = {step} and a > 1"], database="rcc")
            time.sleep(0.05)
            self.agent.kill()
            self.agent.start()
        self.agent.until(lambda: not self.rows(f"select 1 from teak_replicate.copy where source = '{name}'"), "that all is copied")
        self.agent.catch_up(name, self.source)
        self.same("rcc.t", names)
        self.same("rcc.p", {})
        for command in ("check", "verify"):
            status, said = self.agent.command(command)
            check(status == 0, said)
        check(self.agent.stop() == 0, self.agent.says())

    def case_what_cannot_be_told_stops_the_source(self):
        database = self.begin_database()
        self.at([f"create table {database}.t (a int primary key, month int, b datetime)"])
        self.at([f"create table {database}.t (a int primary key, m int, b datetime) engine = teak"], server=self.target)
        name = self.follow(databases=f'["{database}"]', rename_columns=f'{{ "{database}.t" = {{ month = "m" }} }}')
        self.at(["insert into t values (1, 2, now())", "create view v as select month from t", "alter table t add c int as (timestampdiff(month, b, b)) virtual"], database=database)
        self.stops(DAMAGE, f"{name}: stopped:", "whether MONTH is a column, which has another name here, cannot be told")
        check("is passed over: what it names may be called otherwise" in self.agent.says(), self.agent.says())
        # By hand, and with the name that the column has here.
        last = self.rows("select @@gtid_binlog_pos", self.source)[0][0]
        self.at([f"alter table {database}.t add c int as (timestampdiff(month, b, b)) virtual"], server=self.target)
        self.agent.forget()
        self.agent.start()
        self.stops(DAMAGE, "cannot be told")
        check(self.agent.command("skip", "--gtid", next(one for one in last.split(",") if one.startswith("0-")))[0] == 0, "no skip")
        self.agent.forget()
        self.agent.start()
        self.agent.catch_up(name, self.source)
        self.at(["update t set month = 9", "insert into t (a, month) values (2, 5)"], database=database)
        self.agent.catch_up(name, self.source)
        check(self.rows(f"select a, m from {database}.t order by 1") == [(1, 9), (2, 5)], "the rows are others")
        # A table that has the column by its name at the source.
        self.agent.forget()
        self.at([f"alter table {database}.t change m month int"], server=self.target)
        self.agent.kill()
        self.agent.start()
        self.at(["update t set month = 10"], database=database)
        self.stops(DAMAGE, f"`{database}`.`t` has a column `month`, which is to be called `m` here")
        status, said = self.agent.command("check")
        check(status == 0 or "column 2 is called m at the source, and month in the target" in said, said)

    def case_check_knows_names_that_nobody_has(self):
        database = self.begin_database()
        self.at([f"create table {database}.t (a int primary key, b int)"])
        self.at([f"create table {database}.t (a int primary key, c int) engine = teak"], server=self.target)
        for key, words in ((f'{{ "{database}.nobody" = {{ a = "x" }} }}', "no table that is followed is called as one of these says"),
                           (f'{{ "{database}.t" = {{ nobody = "x", b = "d" }} }}', "warning: n: `{database}`.`t` has no column `nobody`, which is to have another name".format(database=database)),
                           (f'{{ "{database}.t" = {{ a = "x", b = "c" }} }}', "column 1 is called x at the source, and a in the target"),
                           (f'{{ "{database}.t" = {{ a = "x", b = "X" }} }}', "two columns would be"),
                           ('{ "t" = { a = "x" } }', "t is not database.table"), (f'{{ "{database}.t" = {{ b = "c" }} }}', None)):
            self.agent.configure({"n": self.source_keys(databases=f'["{database}"]', rename_columns=key)})
            status, said = self.agent.command("check")
            check(status == 0 if words is None else status == USAGE and words in said, f"{key}: {said}")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
