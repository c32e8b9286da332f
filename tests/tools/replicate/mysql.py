#!/usr/bin/python3
"""`teak replicate` follows a MySQL of today into a MariaDB: rows of many types in compressed transactions and partial images, GTIDs with tags, definitions, kills;
and what stops it. Skipped where there is no MySQL (kit/mysql.py).

usage: mysql.py [CASE...]
"""

import json
import os
import random
import shutil
import sys
import threading
import time

import pymysql

from kit.agent import TARGET_OPTIONS, Agent
from kit.cases import carry_out, check
from kit.columns import quoted
from kit.documents import document, foreign
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
        whole = {"bit": "`{}` + 0", "point": "hex(st_aswkb(`{}`))", **dict.fromkeys(("blob", "text", "binary", "varbinary", "char", "varchar", "vector"), "hex(`{}`)")}
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

    def documents(self, database, table, choices, steps):
        """A history of a table with JSON and VECTOR: whole documents, and changes of parts of some, in all images."""
        literal = lambda: quoted(json.dumps(document(choices), ensure_ascii=False))
        key = lambda: choices.choice(("a", "bb", "list", "list[1]", "list[2].x", "list[9]", '"x y"', '"\u00e9"', '"\\""', "deep.a.b", "deep"))
        rich = lambda: quoted(json.dumps({"a": document(choices), "list": [1, document(choices), {"x": 1}], "deep": {"a": {"b": "x" * 300, "c": 2.50}}, "long": ["y" * choices.randrange(9000)] * choices.randrange(9)}, ensure_ascii=False))
        vector = lambda: f"string_to_vector('{json.dumps([choices.uniform(-9, 9) for _ in range(choices.randrange(1, 6))])}')"
        part = lambda column: choices.choice((f"json_set({column}, {quoted('$.' + key())}, cast({literal()} as json))", f"json_replace({column}, {quoted('$.' + key())}, {choices.choice((foreign(choices), '1.5', 'null', repr('x')))})",
                                              f"json_remove({column}, {quoted('$.' + key())})", f"json_set({column}, '$.list[0]', {choices.randrange(99)}, {quoted('$.' + key())}, 'new')"))
        for step in range(steps):
            image, partial = choices.choice(IMAGES), choices.choice(("", "partial_json"))
            rows = [f"({step * 10 + number}, {choices.choice((literal(), foreign(choices), 'null'))}, {rich()}, {choices.choice((vector(), 'null'))}, {number})" for number in range(10)]
            self.at([f"set session binlog_row_image = {image}, binlog_row_value_options = '{partial}', binlog_transaction_compression = {step % 2}", "begin", f"insert into {table} (a, d, e, v, n) values {', '.join(rows)}",
                     f"update {table} set e = {part('e')} where a % 3 = {step % 3}", f"update {table} set e = {part('e')}, d = {literal()}, n = n + 1 where a % 5 = {step % 5}",
                     f"update {table} set e = {part('e')}, v = {vector()} where a % 2 = {step % 2} and a > {step * 10 - 60}", f"delete from {table} where a % 13 = {step % 13}", "commit"], database=database)
            if step % 8 == 5:
                self.agent.kill()
                self.agent.start()

    def case_documents_and_vectors_come_as_text_and_bytes(self):
        choices = random.Random(seed())
        for name, keys in (("myj", {}), ("myjw", {"workers": 3}), ("myjc", {"on_conflict": '"overwrite"'})):
            self.follow(name, **keys)
            self.at([f"create database {name}"])
            self.at(["create table t (a int primary key, d json, e json not null, v vector(5), n int, w vector(6000), k int as (json_length(e)) stored, l int as (json_length(d->'$')) virtual, key f ((json_length(e))))",
                     "create table u (a int, d json, e json, v vector(5), n int)"], database=name)
            self.documents(name, "t", choices, 16)
            if not keys:
                # Without a key rows are found by all of their values, which only whole images have.
                self.at(["set session binlog_row_value_options = partial_json", "insert into u select a, d, e, v, n from t", "update u set e = json_set(e, '$.a', 'x'), n = 4 where a % 3 = 1", "delete from u where a % 4 = 1"], database=name)
            self.catch_up(name)
            rows = self.same(f"{name}.t"), self.same(f"{name}.u")
            check(rows[0] > 50 and (rows[1] > 20) == (not keys), f"{rows}")
            kinds = dict(self.target.query(f"select column_name, column_type from information_schema.columns where table_schema = '{name}' and table_name = 't'", database=None))
            check((kinds["d"], kinds["v"], kinds["w"]) == ("longtext", "varbinary(20)", "mediumblob"), f"{kinds}")
            self.is_sound(f"{name}.t")
            check(self.agent.command("check")[0] == 0, self.agent.command("check")[1])
            status, said = self.agent.command("verify")
            check(status == 0 and f"{name}: 2 tables" in said, said)
            self.target.query(f"update {name}.t set e = '[1]', v = x'00000000' order by a limit 2", database=None)
            status, said = self.agent.command("verify", "--repair")
            check(status == 0 and "2 differences, 2 repaired" in said and self.same(f"{name}.t") == rows[0], said)
            check(self.agent.stop() == 0, self.agent.says())

    def case_documents_deeper_than_mariadb_checks(self):
        self.follow("mydd")
        self.at(["create database mydd"])
        self.at(["create table t (a int primary key, d json)", "insert into t values (1, concat(repeat('[', 31), repeat(']', 31))), (2, concat(repeat('[', 99), repeat(']', 99)))", "update t set d = json_array(d) where a = 1"], database="mydd")
        self.catch_up("mydd")
        check(self.same("mydd.t") == 2, "rows are missing")
        # The server looks at rows again that are there when a constraint comes.
        self.at(["alter table t add check (a > 0)"], database="mydd")
        status = self.agent.ended()
        check(status == SERVER and "4025" in self.agent.says(), f"{status}: {self.agent.says()}")
        self.target.query("alter table mydd.t modify d longtext character set utf8mb4 collate utf8mb4_bin", database=None)
        self.agent.start()
        self.at(["insert into t values (3, '{}')"], database="mydd")
        self.catch_up("mydd")
        check(self.same("mydd.t") == 3 and self.agent.command("verify")[0] == 0 and self.agent.stop() == 0, self.agent.says())

    def case_documents_are_left_out_and_merged(self):
        self.target.query("create database mylm", database=None)
        self.target.query("create table mylm.t (nr int, d json, v varbinary(12), wiki varchar(20), primary key (wiki, nr)) engine = teak", database=None)
        self.follow("myl", rename_tables='{ "myl.t" = { table = "mylm.t", column = "wiki", value = "en" } }', exclude_columns='{ "myl.u" = ["d"] }', rename_columns='{ "myl.*" = { a = "nr" } }')
        self.at(["create database myl"])
        self.at(["set session sql_log_bin = 0", "create table t (a int primary key, d json, v vector(3))", "set session sql_log_bin = 1", "create table u (a int primary key, d json, e json)",
                 "set session binlog_row_value_options = partial_json", """insert into t values (1, '{"a": [1, "x"]}', string_to_vector('[1,2,3]'))""", """insert into u values (1, '{"a": "secret and long, so that parts are shorter"}', '{"b": "something long enough"}')""",
                 "update t set d = json_set(d, '$.b', true)", "update u set d = json_set(d, '$.b', 1), e = json_set(e, '$.a', 2)"], database="myl")
        self.catch_up("myl")
        check(self.target.query("select nr, d, hex(v), wiki from mylm.t", database=None) == ((1, '{"a": [1, "x"], "b": true}', "0000803F0000004000004040", "en"),), "the row is another one")
        check(self.target.query("select * from myl.u", database=None) == ((1, None, '{"a": 2, "b": "something long enough"}'),), f"{self.target.query('select * from myl.u', database=None)}")
        check(self.agent.command("verify")[0] == 0 and self.agent.stop() == 0, self.agent.command("verify")[1])

    def case_copies_beside_writers_and_kills(self):
        choices, stopped = random.Random(seed()), threading.Event()
        self.at(["create database mycp"])
        row = lambda: (f"({choices.randrange(100000)}, {quoted(json.dumps(document(choices), ensure_ascii=False))}, string_to_vector('[{choices.random()}, 2, 3]'), '{choices.randrange(1000)}', "
                       f"'2011-02-03 04:05:06.123456', {choices.randrange(1, 3)}, {choices.randrange(8)}, {choices.random()}, st_geomfromtext('point(1 {choices.randrange(9)})'))")
        self.at(["""create table t (id int auto_increment primary key, a int, j json, v vector(3), b varchar(20), ts timestamp(6) null, e enum('x', 'y'), s bit(3), d double, g point srid 0, my int invisible default 3,
                    k int as (a + 1) virtual, l int as (json_length(j)) stored, key f ((a * 2)), key (b), check (a >= 0), key h (a) invisible) charset utf8mb4 collate utf8mb4_0900_ai_ci""",
                 "create table u (a varchar(50) collate utf8mb4_0900_as_cs primary key, b int) partition by key () partitions 3", "create table p (a int primary key)", "create table w (a int)",
                 "create table c (a int primary key, p int, foreign key (p) references p (a) on delete cascade)", "create view v as select a from t"], database="mycp")
        for _ in range(30):
            self.at([f"insert into t (a, j, v, b, ts, e, s, d, g) values {', '.join(row() for _ in range(400))}"], database="mycp")
        self.at([f"insert into u values {', '.join(f'({quoted(chr(choices.randrange(0x3040, 0x9000)) + chr(choices.randrange(97, 123)) + str(number))}, {number})' for number in range(3000))}",
                 f"insert into p values {', '.join(f'({number})' for number in range(500))}", f"insert into c values {', '.join(f'({number}, {number % 500})' for number in range(2000))}", "insert into w values (1), (1), (2)"], database="mycp")
        trouble = []

        def write():
            try:
                mine, number = random.Random(choices.random()), 0
                while not stopped.is_set():
                    number += 1
                    key = mine.randrange(12000)
                    self.at(["begin", f"update t set a = a + 1, j = json_object('n', {number}) where id between {key} and {key + 5}", f"delete from t where id = {key + 9}", f"insert into t (a, b) values ({number}, 'new')",
                             f"update u set b = b + 1 where a > '\u6000' and b % 50 = {number % 50}", f"replace into u values ('w{number % 40}', {number})", "commit", f"delete from p where a = {mine.randrange(500)}",
                             f"update w set a = a + 1 where a = {number % 3} limit 1", *([f"alter table t add x{number} int default {number}"] if number % 60 == 30 else [])], database="mycp")
            except pymysql.MySQLError as error:
                trouble.append(error)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            self.target.query("set global local_infile = 1", database=None)
            self.agent.configure({"mycp": {"socket": f'"{self.source.socket}"', "start": '"copy"', "databases": '["mycp"]'}})
            status, said = self.agent.command("check")
            check(status == 0, said)
            self.agent.forget()
            for _ in range(4):
                self.agent.start()
                self.agent.wait_for("mycp: follows from")
                time.sleep(choices.random() * 0.5)
                self.agent.kill()
                self.agent.forget()
            self.agent.start()
            self.agent.until(lambda: not self.target.query("select * from teak_replicate.copy where source = 'mycp'", database=None), "that all is copied")
        finally:
            stopped.set()
            writer.join()
        check(not trouble, f"{trouble}")
        self.catch_up("mycp")
        check(self.same("mycp.t", "id") > 5000 and self.same("mycp.u", "hex(a)") > 2900 and self.same("mycp.c") > 100 and self.same("mycp.w") == 3, "rows are missing")
        shown = self.shown("mycp.t")
        check("KEY f (teak_function_1)" in shown and "KEY h (a) IGNORED" in shown and "t_chk_1" in shown and "my int(11) INVISIBLE" in shown and "utf8mb4_uca1400_nopad_ai_ci" in shown, shown)
        status, said = self.agent.command("verify")
        check(status == 0 and "mycp: 5 tables" in said, said)
        self.is_sound("mycp.t", "mycp.u", "mycp.c")
        check(self.agent.stop() == 0, self.agent.says())

    def case_copies_wait_for_who_has_written(self):
        self.at(["create database myw"])
        self.at(["create table t (a int primary key)", "insert into t values (1), (2)", "create table w (a int primary key, b json)", "insert into w values (1, '[1]'), (2, '[2]')"], database="myw")
        self.target.query("set global local_infile = 1", database=None)
        held = self.source.connect(database="myw")
        with held.cursor() as cursor:
            cursor.execute("update w set b = '[3]' where a = 1")
        self.agent.configure({"myw": {"socket": f'"{self.source.socket}"', "start": '"copy"', "databases": '["myw"]'}})
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for("myw: follows from")
        left = lambda: self.target.query("select table_name from teak_replicate.copy where source = 'myw'", database=None)
        self.at(["insert into t values (3)"], database="myw")
        check(("w",) in left(), f"{left()}")
        held.commit()
        self.at(["insert into w values (3, '{}')"], database="myw")
        held.close()
        self.agent.until(lambda: not left(), "that all is copied")
        self.catch_up("myw")
        check(self.same("myw.t") == 3 and self.same("myw.w") == 3 and self.agent.command("verify")[0] == 0 and self.agent.stop() == 0, self.agent.says())

    def case_texts_are_compared_whatever_their_order(self):
        self.follow("myo")
        choices = random.Random(seed())
        self.at(["create database myo"])
        self.at(["create table t (a varchar(30) collate utf8mb4_0900_as_cs, b int, primary key (a, b))", "create table u (a varchar(30) collate utf8mb4_ja_0900_as_cs primary key, b varchar(20) collate utf8mb4_0900_ai_ci)"], database="myo")
        text = lambda: "".join(chr(choices.choice((choices.randrange(32, 127), choices.randrange(0xc0, 0x250), choices.randrange(0x3040, 0x3100), choices.randrange(0x4e00, 0x9000), choices.randrange(0x1f300, 0x1f700)))) for _ in range(choices.randrange(6)))
        named = lambda number: quoted(f"{text()}|{number}")
        for part in range(30):
            self.at([f"insert into t values {', '.join(f'({quoted(text())}, {part * 500 + number})' for number in range(500))}",
                     f"insert into u values {', '.join(f'({named(part * 500 + number)}, {quoted(text())})' for number in range(500))}"], database="myo")
        self.catch_up("myo")
        status, said = self.agent.command("verify")
        check(status == 0 and "myo: 2 tables, 30000 rows, 0 differences" in said, said)
        self.target.query("update myo.u set b = 'other' order by hex(a) limit 3", database=None)
        self.target.query("delete from myo.t order by b desc limit 2", database=None)
        self.target.query("insert into myo.t values ('\u9999', 70000)", database=None)
        status, said = self.agent.command("verify", "--repair")
        check(status == 0 and "6 differences, 6 repaired" in said, said)
        check(self.agent.command("verify")[0] == 0 and self.same("myo.t", "b") == 15000, "rows are missing")
        check(self.agent.stop() == 0, self.agent.says())

    def case_numbers_are_compared_however_they_are_shown(self):
        self.follow("myf")
        choices = random.Random(seed())
        number = lambda: f"{choices.choice(('', '-'))}{choices.randrange(10 ** choices.randrange(1, 18))}e{choices.randrange(-340, 291)}"
        self.at(["create database myf"])
        self.at(["create table t (a int primary key, d double, f float)", "insert into t values (0, 0, 0), (1, -0e0, -0e0), (2, null, null)",
                 f"insert into t values {', '.join(f'({key + 3}, {number()}, {choices.uniform(-1, 1):.16f}e{choices.randrange(-37, 38)})' for key in range(3000))}"], database="myf")
        self.catch_up("myf")
        status, said = self.agent.command("verify")
        check(status == 0 and "3003 rows, 0 differences" in said, said)
        self.target.query("update myf.t set d = d * 2 where a % 100 = 7", database=None)
        changed = self.target.query("select count(*) from myf.t where a % 100 = 7 and d <> 0", database=None)[0][0]
        status, said = self.agent.command("verify", "--repair")
        check(status == 0 and f"{changed} differences, {changed} repaired" in said and self.agent.command("verify")[0] == 0, f"{changed}: {said}")
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

    def shown(self, table):
        """SHOW CREATE TABLE of the target, without quotes of names."""
        return self.target.query(f"show create table {table}", database=None)[0][1].replace("`", "")

    def case_definitions_become_those_of_mariadb(self):
        self.follow("myd")
        self.at(["create database myd"])
        for statement, has, has_not in (
                ("create table t (a int primary key, b varchar(20) collate utf8mb4_0900_as_cs, c char(5) character set utf8mb4) charset utf8mb4 collate utf8mb4_da_0900_ai_ci",
                 ("b varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_nopad_as_cs", "c char(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_nopad_ai_ci", "COLLATE=utf8mb4_uca1400_danish_nopad_ai_ci", "ENGINE=Teak"), ()),
                ("create table t (a int primary key, b varchar(20)) encryption 'N' compression 'none' autoextend_size 4m, stats_persistent = 0, secondary_engine_attribute '{}' comment 'x'",
                 ("COLLATE=utf8mb4_uca1400_nopad_ai_ci", "STATS_PERSISTENT=0", "COMMENT='x'"), ("ENCRYPTION", "COMPRESSION")),
                ("create table t (a int primary key, b int default (a + 1), c date default (curdate() + interval 1 day), d binary(16) default (unhex(replace(uuid(), '-', ''))), e text default ('x'))",
                 ("b int(11) DEFAULT (a + 1)", "c date DEFAULT (curdate() + interval 1 day)", "e text DEFAULT 'x'"), ()),
                ("create table t (a int primary key, b int, c int, key i (b) invisible, key j (c) visible comment 'x')", ("KEY i (b) IGNORED", "KEY j (c) COMMENT 'x'"), ()),
                ("create table t (a int primary key, b int /*!80023 invisible */, c int not null invisible, d int default 3 visible /*!80000 comment 'd' */, e int column_format fixed storage disk secondary_engine_attribute '{}')",
                 ("b int(11) INVISIBLE DEFAULT NULL", "c int(11) NOT NULL,", "d int(11) DEFAULT 3 COMMENT 'd'", "e int(11) DEFAULT NULL"), ()),
                ("create table t (a int primary key check (a > 0), b int constraint c check (b < 9) enforced, check (b > a) not enforced)",
                 ("CONSTRAINT t_chk_1 CHECK (a > 0)", "CONSTRAINT c CHECK (b < 9)", "CONSTRAINT t_chk_2 CHECK (1 or b > a)"), ()),
                ("create table t (a int primary key, b int generated always as (a * 2) stored not null, c int as (a + b) virtual null unique comment 'c' invisible)", ("GENERATED ALWAYS AS (a * 2) STORED", "UNIQUE KEY c (c)"), ()),
                ("create table t (a int primary key, g point not null srid 4326, h geomcollection, i geometry /*!80003 srid 0 */)", ("g point NOT NULL", "h geometrycollection"), ()),
                ("create table t (a int primary key, offset int, slow int default 3, key (offset, slow))", ("offset int(11)", "KEY offset (offset,slow)"), ()),
                ("create table t (a int, b int, primary key (a)) partition by range (a) (partition p values less than (10) engine = innodb comment 'p', partition q values less than maxvalue engine = innodb)",
                 ("PARTITION p VALUES LESS THAN (10)", "ENGINE = Teak"), ("InnoDB",)),
                ("create table t (a serial, b bool, c dec(5, 2) unsigned, d nchar(3), e national varchar(3), f long varchar, g double precision, h float8, i int8, j character varying(5) charset latin1, k bit(3) default b'101', l year)",
                 ("j varchar(5) CHARACTER SET latin1 COLLATE latin1_swedish_ci", "k bit(3) DEFAULT b'101'"), ())):
            self.at(["drop table if exists t", statement], database="myd")
            self.catch_up("myd")
            shown = self.shown("myd.t")
            check(all(part in shown for part in has) and not any(part in shown for part in has_not), f"{statement}: {shown}")
        self.at(["create database mydx character set latin1 encryption 'N'", "drop database mydx", "alter database myd collate utf8mb4_0900_bin", "create table u (a varchar(5))",
                 "create view v as select a collate utf8mb4_0900_ai_ci as a from u", "create table w (j json, a int)", "create view x as select j->>'$.a' as b from w"], database="myd")
        self.catch_up("myd")
        check("utf8mb4_nopad_bin" in self.shown("myd.u") and "json_unquote(json_extract" in self.shown("myd.x"), self.shown("myd.x"))
        check(self.agent.stop() == 0, self.agent.says())

    def is_sound(self, *tables):
        """Whether the target finds the same rows by all keys."""
        told = self.target.query(f"check table {', '.join(tables)} extended", database=None)
        check(all(row[3] == "OK" for row in told), f"{told}")

    def case_keys_of_expressions_are_columns(self):
        self.follow("myk")
        self.at(["create database myk"])
        self.at(["create table t (a int primary key, b varchar(20), c int, key f ((b + 1) desc, c), unique key ((lower(b))))", "insert into t values (1, '5', 2), (2, '-3', 3)", "create table u like t",
                 "insert into u select * from t"], database="myk")
        self.catch_up("myk")
        shown = self.shown("myk.t")
        check("KEY f (teak_function_1 DESC,c)" in shown and "UNIQUE KEY functional_index (teak_function_2)" in shown and "teak_function_2 varchar(20)" in shown, shown)
        check(self.target.query("select teak_function_1, teak_function_2 from myk.u order by a", database=None) == ((6.0, "5"), (-2.0, "-3")), "they are computed otherwise")
        check(self.agent.command("verify")[0] == 0 and self.agent.command("check")[0] == 0, self.agent.command("check")[1])
        self.agent.kill()
        # Columns that come stay before those that stand for expressions.
        self.at(["alter table t add d int default 7", "alter table t add e int first, add g int after c, add h int", "insert into t (a, b, h) values (3, '8', 4)", "alter table t add key k ((a * 2)), add i int, drop h, algorithm = copy",
                 "create index l on t ((a + c), (upper(b))) algorithm = inplace lock = shared", "update t set i = a, c = a", "rename table t to t2, u to t, t2 to u", "update u set d = 1 where a = 2",
                 "alter table u rename index k to m, drop index functional_index", "drop index l on u", "insert into u (a, b) values (5, '9'), (6, '9')", "alter table u add j int, drop key m, alter index f invisible",
                 "delete from u where a = 1", "update t set c = 4"], database="myk")
        self.agent.start()
        self.catch_up("myk")
        shown = self.shown("myk.u")
        check("KEY f (teak_function_1 DESC,c) IGNORED" in shown and shown.count("teak_function_") == 2, shown)
        check(self.same("myk.u") == 4 and self.same("myk.t") == 2, "rows are missing")
        self.is_sound("myk.t", "myk.u")
        check(self.agent.command("verify")[0] == 0, self.agent.command("verify")[1])
        self.at(["drop index f on u", "alter table u modify b varchar(30) collate utf8mb4_0900_as_cs after a, convert to character set utf8mb4 collate utf8mb4_0900_ai_ci", "insert into u (a, b) values (7, 'Y')"], database="myk")
        self.catch_up("myk")
        check("teak_function" not in self.shown("myk.u") and self.same("myk.u") == 5, self.shown("myk.u"))
        check(self.agent.stop() == 0, self.agent.says())

    def case_databases_have_other_names(self):
        self.at(["create database myr1"])
        self.at(["create table t (a int primary key, b varchar(20), key f ((upper(b))))", "insert into t values (1, 'x'), (2, 'y')"], database="myr1")
        self.target.query("set global local_infile = 1", database=None)
        self.follow("myr1", start='"copy"', rename_databases='{ "myr1" = "here1" }')
        self.at(["create table u (a int primary key, t int check (t > 0), j json, key g ((t + 1)), foreign key (t) references myr1.t (a))", "create index h on myr1.u ((json_length(j)), t)", "insert into u values (1, 1, '[1, 2]')",
                 "alter table myr1.u add c char(3) character set utf8mb4, drop index g", "create table w as select a, j, c, a / 3 as d from u", "create table x select * from w where a > 5", "insert into x values (6, '{}', 'z', 0.5)"], database="myr1")
        self.catch_up("myr1")
        self.agent.until(lambda: not self.target.query("select * from teak_replicate.copy where source = 'myr1'", database=None), "that all is copied")
        shown = self.shown("here1.u")
        check("REFERENCES t (a)" in shown and "KEY h (teak_function_2,t)" in shown and shown.count("teak_function") == 2, shown)
        for table in ("t", "u", "w", "x"):
            there, here = (server.query(f"select * from {database}.{table}", database=None) for server, database in ((self.source, "myr1"), (self.target, "here1")))
            check(there == here and there, f"{table}: {there} {here}")
        check(self.agent.command("verify")[0] == 0 and self.agent.command("check")[0] == 0 and self.agent.stop() == 0, self.agent.command("check")[1])

    def case_kills_between_definitions(self):
        self.follow("myx")
        choices = random.Random(seed())
        self.at(["create database myx"])
        self.at(["create table t (a int auto_increment primary key, b varchar(20), key f ((lower(b))), check (length(b) > 0))"], database="myx")
        for step in range(24):
            self.at([f"alter table t add c{step} int default {step}, add key k{step} ((length(b) + {step}))", "insert into t (b) values ('X'), ('Y')", f"create index l{step} on t ((upper(b)), a)",
                     f"drop index k{step} on t", f"alter table t add check (c{step} < {1000 + step}), drop check t_chk_1", f"update t set c{step} = a where a % 3 = 0",
                     *([f"alter table t drop key l{step}, drop column c{step - 1}"] if step % 2 else [])], database="myx")
            if choices.random() < 0.5:
                self.agent.kill()
                self.agent.start()
                if choices.random() < 0.5:
                    self.agent.wait_for("myx: follows from")
        self.catch_up("myx")
        there = self.source.query("select column_name from information_schema.columns where table_schema = 'myx' order by ordinal_position", database=None)
        here = self.target.query("select column_name, extra from information_schema.columns where table_schema = 'myx' order by ordinal_position", database=None)
        check([name for name, extra in here if "INVISIBLE" not in extra] == [name for name, in there] and len(here) == len(there) + 13, f"{there} {here}")
        check(self.same("myx.t") == 48 and "t_chk_1 CHECK (c23 < 1023)" in self.shown("myx.t"), self.shown("myx.t"))
        self.is_sound("myx.t")
        check(self.agent.command("verify")[0] == 0 and self.agent.stop() == 0, self.agent.says())

    def write(self, database, choices, stopped):
        """Changes rows until it is told to stop, over whatever connection there is."""
        pick = choices.randrange
        changes = ("insert into t values ({r}, '{s}', {r}, '{{}}') on duplicate key update b = concat(b, 'x')", "update t set c = c + {s} where a between {r} and {r} + 9", "delete from t where a between {r} and {r} + 2",
                   "update t set j = json_set(j, '$.k{s}', {r}) where a = {r}", "update t set a = {r} + 40000 where a = {r}", "replace into t (a, b, j) values ({r}, 'y', '{{\"k\": {s}}}')")
        while not stopped.is_set():
            try:
                connection = self.source.connect(database=database)
                with connection.cursor() as cursor:
                    while not stopped.is_set():
                        cursor.execute(f"set session binlog_transaction_compression = {pick(2)}, gtid_next = '{choices.choice(['automatic', 'automatic:some'])}'")
                        cursor.execute("begin")
                        for _ in range(pick(1, 4)):
                            cursor.execute(choices.choice(changes).format(r=pick(40000), s=pick(9)))
                        cursor.execute("commit")
                        time.sleep(0.01 * choices.random())
            except (pymysql.err.MySQLError, OSError):
                time.sleep(0.05)

    def case_everything_is_killed_beside_writers(self):
        choices = random.Random(seed())
        self.target.query("set global local_infile = 1", database=None)
        self.at(["create database mykill"])
        self.at(["create table t (a int primary key, b varchar(2000), c int, j json, key (c))", "set session cte_max_recursion_depth = 40000",
                 "insert into t with recursive n (i) as (select 1 union all select i + 1 from n where i < 40000) select i, repeat('b', i % 300), i, json_object('i', i) from n"], database="mykill")
        stopped = threading.Event()
        writers = [threading.Thread(target=self.write, args=("mykill", random.Random(choices.random()), stopped)) for _ in range(2)]
        self.follow("mykill", start='"copy"')
        for writer in writers:
            writer.start()
        try:
            for kill in range(9):
                time.sleep(choices.random() * 0.7)
                if kill % 3 == 0:
                    self.agent.kill()
                    self.agent.start()
                elif kill % 3 == 1:
                    self.target.kill()
                    self.target.start(TARGET_OPTIONS)
                else:
                    self.source.kill()
                    self.source.start_again()
            self.agent.until(lambda: not self.target.query("select * from teak_replicate.copy where source = 'mykill'", database=None), "that all is copied")
            time.sleep(1)
        finally:
            stopped.set()
            for writer in writers:
                writer.join()
        self.catch_up("mykill")
        check(self.same("mykill.t") > 10000, "few rows")
        self.is_sound("mykill.t")
        check(self.agent.command("verify")[0] == 0, self.agent.command("verify")[1])
        check(self.agent.stop() == 0, self.agent.says())

    def case_constraints_are_changed_later(self):
        self.follow("myc")
        self.at(["create database myc"])
        self.at(["create table t (a int primary key check (a > 0), b int, check (b < 100) not enforced)", "insert into t values (1, 500)", "alter table t add c int check (c > 1), add check (b > 1)", "alter table t drop check t_chk_1",
                 "insert into t values (-1, 500, 3)", "alter table t alter check t_chk_3 not enforced", "insert into t values (-2, 500, 1)", "alter table t drop constraint t_chk_2"], database="myc")
        self.catch_up("myc")
        shown = self.shown("myc.t")
        check(self.same("myc.t") == 3 and "t_chk_3 CHECK (1 or c > 1)" in shown and "t_chk_4 CHECK (b > 1)" in shown and "t_chk_1" not in shown, shown)
        check(self.agent.stop() == 0, self.agent.says())

    def case_what_has_no_form_stops_the_source_before_it(self):
        for number, (statements, words) in enumerate(((["create table t (a int primary key, j json, key m ((cast(j->'$.x' as unsigned array))))"], "elements of JSON arrays"),
                                                      (["create table t (a int primary key, b binary(16) default (uuid_to_bin(uuid())))"], "uuid_to_bin"),
                                                      (["create table t (a int primary key, b text, fulltext key (b) with parser ngram)"], "a parser of texts"),
                                                      (["create table t (a int primary key, b varchar(9) character set gb18030)"], "gb18030"),
                                                      (["create table t (a int primary key, b int, key f ((b + 1)))", "alter table t modify b bigint"], "in the expression of the key `f`"),
                                                      (["create table t (a int primary key, b int)", "alter table t alter b set invisible"], "its whole definition"))):
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
