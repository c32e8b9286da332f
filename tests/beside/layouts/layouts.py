#!/usr/bin/python3
"""Columns that come, go and change at random, in a table of Teak (`t`, with ALGORITHM=INSTANT where it takes that, else in place where it takes that) and in
one of InnoDB (`m`), with the same changes of rows in between: rolled back now and then, under snapshots from before, over kills of the server. Both must have
the same rows, and end with the same errors, warnings and notes. Prints 'N passed, N failed', a round each; the seed of a round repeats it.
"""

import os
import random
import re
import sys

import pymysql

from kit.options import parser, seed
from kit.server import Server

STEPS = 60
REFUSED = (1845, 1846)
CHANGED_TABLE = 1412
# What InnoDB alone finds too much.
TOO_LARGE = (1118, 1713)

# Types, a default, and a value made of a row's `id` and a number.
TYPES = [
    ("int", "-7", "id * {n}"),
    ("bigint unsigned", "18446744073709551615", "id + {n}"),
    ("tinyint", "5", "id % 100 - 50"),
    ("decimal(12,3)", "3.125", "id / {n}"),
    ("double", "0.5", "id * 0.25"),
    ("varchar(20)", "'a default'", "left(concat('v', id, '-', {n}), 20)"),
    ("varchar(90) character set utf8mb4", "'ä'", "repeat('ß', id % 80)"),
    ("varchar(400)", "''", "repeat('w', id % 400)"),
    ("varbinary(60)", "x'00ff'", "left(repeat(char(id % 256), {n} % 60), 60)"),
    ("char(12) character set utf8mb4", "'c'", "left(concat('ç', id), 12)"),
    ("char(5) character set latin1", "'l'", "left(id, 5)"),
    ("binary(4)", "'b'", "left(id, 4)"),
    ("text", "'a text'", "repeat(concat('t', id), {n} % 40)"),
    ("mediumblob", "repeat('x', 300)", "repeat(concat('b', id), {n} % 4000)"),
    ("char(7) character set utf8mb3", "'d '", "left(concat('é', id, {n}), 7)"),
    ("varchar(70) character set utf8mb3", "'dé'", "repeat('è', (id + {n}) % 70)"),
    ("tinytext character set utf8mb3", "'dt'", "repeat('ê', id % 127)"),
    ("date", "'2020-02-29'", "date_add('2000-01-01', interval id day)"),
    ("datetime(3)", "'2020-01-01 01:02:03.456'", "date_add('2000-01-01', interval id * {n} second)"),
    ("time", "'10:11:12'", "sec_to_time(id)"),
    ("enum('x','y','z')", "'y'", "1 + id % 3"),
    ("set('p','q','r')", "'p,r'", "id % 8"),
    ("bit(11)", "b'10101'", "id % 2048"),
    ("year", "2020", "2000 + id % 100"),
    # Of plugins: the server assigns few others to them, or them to few others.
    ("inet4", "'10.0.0.1'", "inet_ntoa(167772160 + id + {n})"),
    ("inet6", "'::1'", "concat('::', hex(id % 65536))"),
    ("uuid", "'123e4567-e89b-12d3-a456-426655440000'", "insert('123e4567-e89b-12d3-a456-426655440000', 1, 4, lpad(hex(id % 65536), 4, '0'))"),
]


# The statements of the present round.
STATEMENTS = []


# What types grow to; the values still fit.
WIDER = {
    "varchar(20)": ["varchar(255)", "varchar(300)"],
    "char(7) character set utf8mb3": ["char(7) character set utf8mb4", "char(9) character set utf8mb4 collate utf8mb4_bin"],
    "varchar(70) character set utf8mb3": ["varchar(70) character set utf8mb4", "varchar(60) character set utf8mb4", "varchar(80)"],
    "tinytext character set utf8mb3": ["text character set utf8mb4", "longtext character set utf8mb3", "tinytext character set utf8mb4"],
    "text": ["mediumtext", "longtext"],
    "mediumblob": ["longblob"],
    "char(12) character set utf8mb4": ["char(12) character set utf8mb4 collate utf8mb4_unicode_ci", "char(20) character set utf8mb4"],
    "tinyint": ["smallint", "mediumint", "int", "bigint"],
    "smallint": ["int", "bigint"],
    "mediumint": ["int"],
    "int": ["bigint"],
}


def run(cursor, statement):
    """The number of the error that a statement ends with; None if there is none."""
    STATEMENTS.append(statement)
    try:
        cursor.execute(statement)
        cursor.fetchall()
    except pymysql.err.MySQLError as error:
        return error.args[0]
    return None


def told(cursor):
    """What SHOW WARNINGS says, whatever the table."""
    cursor.execute("show warnings")
    return [(level, number, re.sub("`test`.`[mt]`", "`test`.`@`", text)) for level, number, text in cursor.fetchall()]


class Column:
    """What the test knows of a column."""

    def __init__(self, kind, nullable):
        self.type, self.default, self.value = kind
        self.nullable = nullable

    def definition(self, with_default):
        return self.type + ("" if self.nullable else " not null") + (f" default {self.default}" if with_default else "")


class Round:
    """A pair of tables."""

    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        # Each engine has a session of its own: what a server without binary log makes of transactions over two engines
        # is not the point here.
        self.connection, self.of_model, self.snapshot = None, None, None
        self.copied = False  # since the snapshot was taken
        self.columns, self.next, self.ids = {}, 0, 0
        self.counts = {"instant": 0, "in place": 0, "copied": 0, "kills": 0, "snapshots": 0, "packed": 0}

    def connect(self):
        connection = self.server.connect(autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("set lock_wait_timeout = 20, sql_mode = 'strict_trans_tables', system_versioning_alter_history = keep, innodb_strict_mode = off, teak_snapshot_isolation = off")
        return connection

    def both(self, statement):
        """The same in both tables ('@' is the name); they must agree about errors. True: there was none."""
        with self.connection.cursor() as cursor, self.of_model.cursor() as of_model:
            model = run(of_model, statement.replace("@", "m"))
            if model in TOO_LARGE:
                return False
            found = run(cursor, statement.replace("@", "t"))
        if found != model:
            raise AssertionError(f"{statement}: error {found}, InnoDB {model}")
        return model is None

    def new_name(self):
        self.next += 1
        return f"c{self.next}"

    def place(self):
        names = ["id", *self.columns]
        return self.random.choice(["", "", " first", f" after {self.random.choice(names)}"])

    def clause(self, changed):
        """A change of a column, and what the columns are then; None: nothing to be changed. Each column is changed once."""
        kind = self.random.choice(["add", "add", "add", "drop", "drop", "move", "null", "grow", "rename", "virtual", "type", "type"])
        free = [name for name, column in self.columns.items() if name not in changed and (column is not None or kind == "drop")]
        if kind in ("add", "virtual"):
            name = self.new_name()
            if kind == "virtual":
                stored = [other for other, column in self.columns.items() if column is not None and other not in changed]
                if not stored:
                    return None
                other = self.random.choice(stored)
                changed.add(other)
                return f"add {name} varchar(60) as (left(concat('g', {other}), 60)) virtual{self.random.choice(['', ' first'])}", {name: None}, []
            column = Column(self.random.choice(TYPES), self.random.random() < 0.5)
            return f"add {name} {column.definition(self.random.random() < 0.6)}{self.place()}", {name: column}, []
        if not free:
            return None
        name = self.random.choice(free)
        changed.add(name)
        column = self.columns[name]
        if kind == "drop":
            return f"drop {name}", {}, [name]
        if kind == "rename":
            new = self.new_name()
            return f"change {name} {new} {column.definition(False)}", {new: column}, [name]
        new = Column((column.type, column.default, column.value), column.nullable)
        if kind == "null":
            new.nullable = True
        elif kind == "grow" and column.type in WIDER:
            new.type = self.random.choice(WIDER[column.type])
        elif kind == "grow":
            return None
        elif kind == "type":
            new = Column(self.random.choice(TYPES), self.random.random() < 0.7)
        place = f" after {self.random.choice([other for other in ('id', *self.columns) if other != name])}" if kind == "move" or self.random.random() < 0.3 else ""
        return f"modify {name} {new.definition(self.random.random() < 0.5)}{place}", {name: new}, []

    def alter(self):
        """One ALTER TABLE with some clauses."""
        changed, clauses, come, go = set(), [], {}, []
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            made = self.clause(changed)
            if made:
                clauses.append(made[0])
                come.update(made[1])
                go += made[2]
        # A column cannot be put behind one that goes, or that gets its name in the same statement.
        gone = set(go)
        if not clauses or any(clause.split(" after ")[-1] in gone for clause in clauses if " after " in clause):
            return
        statement = ", ".join(clauses)
        with self.connection.cursor() as cursor:
            model, said_of_model = run(cursor, f"alter table m {statement}"), told(cursor)
            if model in TOO_LARGE:
                return
            for algorithm, kind in (("instant", "instant"), ("inplace", "in place"), ("default", "copied")):
                found, said = run(cursor, f"alter table t {statement}, algorithm={algorithm}"), told(cursor)
                if found not in REFUSED:
                    break
            if (found, said) != (model, said_of_model):
                raise AssertionError(f"alter table t {statement}, {kind}: error {found}, {said}, InnoDB {model}, {said_of_model}")
            if model is None:
                self.counts[kind] += 1
                self.copied |= kind != "instant"
            # Values of before may not fit, but then nobody looks at them any more.
            if self.snapshot and model is None and run(cursor, f"alter table s {statement}") is not None and not self.copied:
                raise AssertionError(f"alter table s {statement}: an error that the others do not have")
        if model is None:
            for name in go:
                del self.columns[name]
            self.columns.update(come)

    def keys(self):
        """An index comes or goes."""
        names = [name for name, column in self.columns.items() if column is not None]
        if not names or self.random.random() < 0.3:
            self.both(f"alter table @ drop key if exists k{self.random.randrange(4)}")
            return
        name = self.random.choice(names)
        length = "(10)" if "text" in self.columns[name].type or "blob" in self.columns[name].type else ""
        self.both(f"alter table @ add key if not exists k{self.random.randrange(4)} ({name}{length}, id)")

    def change(self):
        """A statement that changes rows, by the columns that there are."""
        stored = [(name, column) for name, column in self.columns.items() if column is not None]
        kind = self.random.choice(["insert", "update", "update", "delete"])
        number = self.random.randrange(2, 97)
        if kind == "insert":
            some = [(name, column) for name, column in stored if self.random.random() < 0.7 or not column.nullable]
            names = ", ".join(["id", *(name for name, _ in some)])
            values = ", ".join(["id", *(column.value.format(n=number) for _, column in some)])
            count = self.random.choice([1, 5, 40])
            self.both(f"insert into @ ({names}) select {values} from (select seq + {self.ids} as id from seq_1_to_{count}) s")
            self.ids += count
            return
        first = self.random.randrange(max(1, self.ids))
        rows = f"id between {first} and {first + self.random.choice([1, 10, 100])}"
        if kind == "delete":
            self.both(f"delete from @ where {rows} and id % 5 = 0")
        elif stored:
            name, column = self.random.choice(stored)
            value = "null" if column.nullable and self.random.random() < 0.2 else column.value.format(n=number)
            self.both(f"update @ set {name} = {value} where {rows}")

    def transaction(self):
        """Some changes, taken back or not."""
        self.everywhere("begin")
        for _ in range(self.random.randrange(1, 4)):
            self.change()
            if self.random.random() < 0.3:
                self.everywhere("savepoint s")
                self.change()
                self.everywhere("rollback to s")
        self.everywhere(self.random.choice(["commit", "rollback"]))

    def pack(self):
        """Rows of older layouts are written anew, in place."""
        answer = self.server.query("optimize table t")
        if [row[2:] for row in answer] != [("status", "OK")]:
            raise AssertionError(f"optimize table: {answer}")
        self.counts["packed"] += 1

    def everywhere(self, statement):
        """A statement for both sessions."""
        for connection in (self.connection, self.of_model):
            with connection.cursor() as cursor:
                run(cursor, statement)

    def view(self, cursor, name):
        """All rows as a session sees them, or the error."""
        try:
            cursor.execute(f"select * from {name} order by id")
            return cursor.fetchall()
        except pymysql.err.MySQLError as error:
            return error.args[0]

    def look_back(self):
        """A snapshot is taken, and a copy of what it sees (`s`), whose columns change as the others' do from then on; or the two are compared. Then the session
        has the definition locked, and goes. (InnoDB's own snapshots show the newest rows after a rebuild and an instant change.)"""
        if not self.snapshot:
            names = ", ".join(["id", *(name for name, column in self.columns.items() if column is not None)])
            with self.connection.cursor() as cursor:
                for statement in ("drop table if exists s", "create table s like m", f"insert into s ({names}) select {names} from m"):
                    run(cursor, statement)
            self.snapshot, self.copied = self.connect(), False
            with self.snapshot.cursor() as cursor:
                run(cursor, "start transaction with consistent snapshot")
            return
        STATEMENTS.append("-- the snapshot is looked at")
        with self.snapshot.cursor() as cursor, self.connection.cursor() as newest:
            found, model = self.view(cursor, "t"), self.view(newest, "s")
        if found != CHANGED_TABLE or not self.copied:
            self.counts["snapshots"] += 1
            self.same(found, model, "a snapshot")
        self.snapshot.close()
        self.snapshot = None

    def same(self, found, model, what):
        if found == model:
            return
        if isinstance(found, int) or isinstance(model, int):
            raise AssertionError(f"{what}: {found if isinstance(found, int) else 'rows'} instead of {model if isinstance(model, int) else 'rows'}")
        differing = [(a, b) for a, b in zip(found, model) if a != b][:2]
        raise AssertionError(f"{what}: {len(found)} rows instead of {len(model)}, {differing}")

    def kill(self):
        """The server goes and comes back."""
        if self.snapshot:
            self.snapshot.close()
            self.snapshot = None
        if self.random.random() < 0.5:
            self.server.query("set global teak_checkpoint_now = 1")
        self.everywhere("begin")
        self.change()
        self.server.kill()
        self.server.start()
        self.connection, self.of_model = self.connect(), self.connect()
        self.counts["kills"] += 1

    def run(self):
        self.server.query("drop database if exists test", database=None)
        self.server.query("create database test", database=None)
        self.connection, self.of_model = self.connect(), self.connect()
        key = self.random.choice(["primary key (id)", "primary key (id)", "key (id)"])
        partitions = " partition by hash (id) partitions 3" if key.startswith("primary") and self.random.random() < 0.3 else ""
        for table, engine in (("t", "Teak"), ("m", "InnoDB")):
            self.server.query(f"create table {table} (id int not null, {key}) engine = {engine}{partitions}")
        steps = {self.alter: 10, self.change: 10, self.transaction: 5, self.keys: 2, self.look_back: 4, self.kill: 1, self.pack: 3}
        for _ in range(STEPS):
            self.random.choices(list(steps), weights=steps.values())[0]()
            with self.connection.cursor() as cursor:
                self.same(self.view(cursor, "t"), self.view(cursor, "m"), "rows")
        verdict = self.server.query("check table t extended")
        if verdict[-1][3] != "OK":
            raise AssertionError(f"check table: {verdict}")

    def close(self):
        """Lets go of the tables."""
        for connection in (self.connection, self.of_model, self.snapshot):
            if connection and connection.open:
                connection.close()


def main():
    arguments = parser(__doc__, rounds=6).parse_args()
    arguments.seed = seed()
    server = Server(os.path.join(arguments.directory, "server"), arguments.plugin_dir)
    server.install()
    server.start()
    passed = failed = 0
    try:
        for number in range(arguments.rounds):
            own = arguments.seed + number
            test = Round(server, own)
            try:
                test.run()
                passed += 1
                print(f"    seed {own}: {test.counts}", flush=True)
            except (AssertionError, pymysql.err.MySQLError) as error:
                failed += 1
                print(f"FAILED with TEAK_SEED={own}: {error}", flush=True)
                with open(os.path.join(arguments.directory, f"{own}.sql"), "w", encoding="utf-8") as file:
                    file.write(";\n".join(STATEMENTS) + ";\n")
            finally:
                test.close()
                STATEMENTS.clear()
    finally:
        server.kill()
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
