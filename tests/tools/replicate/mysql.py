#!/usr/bin/python3
"""`teak replicate` follows a MySQL of today into a MariaDB: rows of many types in compressed transactions and partial images, GTIDs with tags, definitions, kills;
and what stops it. Skipped where there is no MySQL (kit/mysql.py).

usage: mysql.py [CASE...]
"""

import os
import random
import shutil
import sys

from kit.agent import TARGET_OPTIONS, Agent
from kit.cases import carry_out, check
from kit.mysql import MySql, root_with_mysql
from kit.options import parser, seed
from kit.server import Server

DAMAGE, SERVER = 3, 5
IMAGES = ("full", "minimal", "noblob")
TABLE = """(a int primary key, b varchar(50), c bigint unsigned, d decimal(20, 5), e datetime(3), f timestamp(6) null, g time(2), h double, i blob, j text,
    k enum('x', 'y', 'z'), l set('p', 'q', 'r'), m bit(11), n date, o year, p binary(5), q varbinary(20), r char(9), s mediumint, unique key b (b), key c (c, d))"""

NAMES = "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s"


class Cases:
    """A MySQL and a target. Each has a database of its own."""

    def __init__(self, arguments, root):
        shutil.rmtree(arguments.directory, ignore_errors=True)
        self.source = MySql(root)
        self.target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir)
        self.agent = Agent(arguments.teak, arguments.directory, self.target)

    def begin(self):
        self.source.start()
        self.target.install()
        self.target.start(TARGET_OPTIONS)

    def end(self):
        self.agent.kill()
        self.source.stop()
        self.target.kill()

    def recover(self):
        """After a case that failed."""
        self.agent.kill()

    def at(self, statements, database=None):
        """Statements on one connection of the source."""
        connection = self.source.connect(database=database, autocommit=True)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.close()

    def follow(self, database, **keys):
        """From now on, the database of this name, which is the source's as well."""
        self.agent.configure({database: {"socket": f'"{self.source.socket}"', "start": '"now"', "databases": f'["{database}"]', **keys}})
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for(f"{database}: follows from")

    def executed(self):
        return self.source.query("select @@gtid_executed", database=None)[0][0].replace("\n", "")

    def catch_up(self, name):
        """Until all that was executed is part of the position."""
        wanted = self.executed()

        def has_all():
            found = self.target.query(f"select gtid from teak_replicate.position where source = '{name}'", database=None)
            return found and self.source.query(f"select gtid_subset('{wanted}', '{found[0][0]}')", database=None)[0][0] == 1
        self.agent.until(has_all, f"{name} at {wanted}")

    def same(self, table, order="a"):
        columns = self.source.query(f"select column_name, data_type from information_schema.columns where concat(table_schema, '.', table_name) = '{table}' order by ordinal_position", database=None)
        whole = {"bit": "`{}` + 0", **dict.fromkeys(("blob", "text", "binary", "varbinary", "char", "varchar"), "hex(`{}`)")}
        values = ", ".join(whole.get(kind, "cast(`{}` as char)").format(name) for name, kind in columns)
        query = f"select {values} from {table} order by {order}"
        there, here = self.source.query(query, database=None), self.target.query(query, database=None)
        check(list(there) == list(here), f"{table}: {len(there)} rows at the source, {len(here)} here; {[pair for pair in zip(there, here) if pair[0] != pair[1]][:2]}")
        return len(there)

    def case_rows_of_many_types_come_in_all_images(self):
        choices = random.Random(seed())
        for keys in ({}, {"workers": 3}):
            database = f"my{len(keys)}"
            self.follow(database, **keys)
            self.at([f"create database {database} character set utf8mb4 collate utf8mb4_general_ci"])
            self.at([f"create table t {TABLE} engine = innodb"], database=database)
            row = lambda number: (f"({number}, 'text{number}\u00e9', {choices.randrange(2 ** 64)}, {choices.randrange(-10 ** 9, 10 ** 9)}.5, '2001-02-03 04:05:06.789', '2011-02-03 04:05:06.123456', '-12:34:56.78', "
                                  f"{choices.random()}, x'00ff{number % 256:02x}', repeat('j', {choices.randrange(400)}), {choices.randrange(1, 4)}, {choices.randrange(8)}, {choices.randrange(2048)}, '1999-12-31', 1999, 'ab', x'ff00', 'r', {choices.randrange(-8000000, 8000000)})")
            for step in range(24):
                image, compression = choices.choice(IMAGES), choices.choice(("on", "off"))
                tag = choices.choice(("automatic", "automatic", f"automatic:tag{step % 3}"))
                self.at([f"set session binlog_row_image = {image}, binlog_transaction_compression = {compression}", f"set gtid_next = '{tag}'", "begin",
                         f"insert into t ({NAMES}) values {', '.join(row(step * 1000 + number) for number in range(30))}", f"update t set c = c / 2, j = null, s = s + 1 where a % 5 = {step % 5}",
                         f"update t set b = concat(b, '!'), k = 2 where a % 7 = {step % 7}", f"delete from t where a % 11 = {step % 11}", "commit", "set gtid_next = 'automatic'"], database=database)
                if step % 6 == 3:
                    self.agent.kill()
                    self.at([f"alter table t add x{step} int default {step} after c, add key (x{step})", f"update t set x{step} = a where a % 3 = 0"], database=database)
                    self.agent.start()
            self.catch_up(database)
            check(self.same(f"{database}.t") > 100, "few rows")
            status, said = self.agent.command("verify")
            check(status == 0 and f"{database}: 1 tables" in said, said)
            self.target.query(f"update {database}.t set c = 5, b = 'other' order by a limit 1", database=None)
            status, said = self.agent.command("verify", "--repair")
            check(status == 0 and "1 differences, 1 repaired" in said, said)
            check(self.agent.stop() == 0, self.agent.says())

    def case_accounts_with_passwords_of_mysql(self):
        self.at(["create database myp", "create user repl identified with caching_sha2_password by 'secret'", "grant replication slave, replication client, select on *.* to repl"])
        self.target.query("create database myp", database=None)
        password = os.path.join(os.path.dirname(self.agent.config), "password")
        with open(password, "w", encoding="ascii") as file:
            file.write("secret\n")
        # The first time the password itself is sent, and then a number made of it.
        for _ in range(2):
            self.follow("myp", user='"repl"', password_file=f'"{password}"')
            self.at(["create table if not exists t (a int primary key)", "insert into t select ifnull(max(a), 0) + 1 from t"], database="myp")
            self.catch_up("myp")
            check(self.agent.command("verify")[0] == 0 and self.agent.stop() == 0, self.agent.says())
        check(self.same("myp.t") == 2, "rows are missing")

    def case_columns_have_other_names_and_tables_are_one(self):
        self.target.query("create database mym", database=None)
        self.target.query("create table mym.page (nr int, title varchar(50), wiki varchar(20), primary key (wiki, nr)) engine = teak", database=None)
        self.follow("myn", rename_tables='{ "myn.page" = { table = "mym.page", column = "wiki", value = "en" } }', rename_columns='{ "myn.*" = { a = "nr", b = "title" } }')
        self.at(["create database myn"])
        self.at(["set session sql_log_bin = 0", "create table page (a int primary key, b varchar(50))", "set session sql_log_bin = 1", "insert into page values (1, 'x'), (2, 'y')", "update page set b = 'z' where a = 1",
                 "create table other (a int primary key, b int, key (b)) engine = innodb", "insert into other values (1, 2)", "alter table other add c int after a, drop key b", "delete from page where a = 2"], database="myn")
        self.catch_up("myn")
        check(self.target.query("select * from mym.page", database=None) == ((1, "z", "en"),), "the rows are others")
        check(self.target.query("select nr, c, title from myn.other", database=None) == ((1, None, 2),), "the columns are others")
        status, said = self.agent.command("verify")
        check(status == 0, said)
        check(self.agent.stop() == 0, self.agent.says())

    def case_keys_that_the_server_generates(self):
        self.follow("myg")
        self.at(["create database myg"])
        self.at(["set session sql_generate_invisible_primary_key = on", "create table t (a int) engine = innodb", "insert into t values (1), (2), (2)", "update t set a = 3 where a = 2 limit 1",
                 "delete from t where a = 1"], database="myg")
        self.catch_up("myg")
        check(self.same("myg.t") == 2 and self.target.query("select my_row_id from myg.t order by 1", database=None) == ((2,), (3,)), "the key is another one")
        check(self.agent.command("verify")[0] == 0 and self.agent.stop() == 0, self.agent.says())

    def case_what_is_not_built_stops_the_source(self):
        for number, (statements, words) in enumerate(((["create table t (a int primary key, d json)", "insert into t values (1, '{}')"], "JSON"),
                                                      (["create table t (a int primary key, b varchar(9)) charset utf8mb4 collate utf8mb4_0900_ai_ci"], "Unknown collation"),
                                                      (["create table t (a int primary key, b int)", "create index i on t ((b + 1))"], "create index i on t"),
                                                      (["create table t (a int primary key, v vector(3))"], "vector"))):
            database = f"mys{number}"
            self.at([f"create database {database}"])
            self.target.query(f"create database {database}", database=None)
            self.follow(database)
            self.at(statements, database=database)
            status = self.agent.ended()
            check(status in (DAMAGE, SERVER) and words.lower() in self.agent.says().lower(), f"{status}: {self.agent.says()}")


def main():
    arguments = parser(__doc__, names="cases; all without").parse_args()
    root = root_with_mysql()
    if not root:
        print("skipped: no MySQL")
        return 0
    cases = Cases(arguments, root)
    try:
        cases.begin()
        return 1 if carry_out([getattr(cases, name) for name in Cases.__dict__ if name.startswith("case_")], arguments.names, recover=cases.recover) else 0
    finally:
        cases.end()


if __name__ == "__main__":
    sys.exit(main())
