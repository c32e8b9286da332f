#!/usr/bin/python3
"""Single tables from one server to another, as users do it: FLUSH TABLES ... FOR EXPORT, a copy of the file, DISCARD and IMPORT TABLESPACE.
"""

import glob
import os
import random
import stat
import sys
import threading
import time

import pymysql

from kit.asking import error_number
from kit.cases import carry_out
from kit.options import parser, seed
from kit.server import Server
from kit.stops import Stops

LOCK_WAIT_TIMEOUT, READ_ONLY_LOCK, NOT_LOCKED = 1205, 1099, 1100
INTERRUPTED, NOT_IMPLEMENTED, SYNTAX_ERROR = 1317, 1031, 1064
SCHEMA_MISMATCH, MISSING, EXISTS, DISCARDED, BROKEN = 1808, 1812, 1813, 1814, 1815
ROWS = 20000
KILLS = 15
KILLED_QUERIES = 20

TABLES = {
    "plain": "(a int auto_increment primary key, b varchar(50), key (b))",
    "many_keys": "(a varchar(40) collate utf8mb4_german2_ci, b decimal(12,3), c datetime(6), d bigint unsigned, e char(9) collate latin1_bin, "
            "primary key (a, d), unique key (b desc, c), key (e(4), a), key (c))",
    "hidden": "(a int, b text, c blob, key (a), key (b(30)))",
    "large": "(a int primary key, b longtext, c varchar(3000)) block_size = 16384 compression = lz4",
    "made": "(a int primary key, b int as (a * 2) stored, c int as (a % 97) virtual, d enum('x','y','z'), e set('p','q'), f bit(12), key (c), key (b))",
}
FILL = {
    "plain": "(b) select md5(seq) from seq_1_to_{rows}",
    "many_keys": "select concat('ä', md5(seq)), seq / 7, '2020-01-01' + interval seq * 1.37 second, seq, concat('k', seq % 100) from seq_1_to_{rows}",
    "hidden": "select if(seq % 5, seq, null), repeat(md5(seq), seq % 30), unhex(md5(seq)) from seq_1_to_{rows}",
    "large": "select seq, repeat(md5(seq), if(seq % 400, 5, 4000)), repeat('wort ', seq % 500) from seq_1_to_{rows}",
    "made": "(a, d, e, f) select seq, 1 + seq % 3, seq % 4, seq % 4096 from seq_1_to_{rows}",
}


def equal(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")


def path_of(server, table):
    return os.path.join(server.data, "test", table + ".teak")


def create(server, name, kind=None, rows=0, definition=None):
    """A table of one of the TABLES, or with another definition."""
    server.query(f"drop table if exists {name}")
    server.query(f"create table {name} {definition or TABLES[kind or name]} engine = Teak")
    if rows:
        server.query(f"insert into {name} " + FILL[kind or name].format(rows=rows))


def export(server, *names):
    """The files of exported tables."""
    connection = server.connect(autocommit=True)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"flush tables {', '.join(names)} for export")
            files = []
            for name in names:
                equal(stat.S_IMODE(os.stat(path_of(server, name)).st_mode), 0o640, "mode")
                with open(path_of(server, name), "rb") as file:
                    files.append(file.read())
            cursor.execute("unlock tables")
        for name in names:
            equal(os.path.exists(path_of(server, name)), False, "after UNLOCK TABLES")
        return files
    finally:
        connection.close()


def put(server, table, content):
    with open(path_of(server, table), "wb") as file:
        file.write(content)


def bring(server, table, content):
    server.query(f"alter table {table} discard tablespace")
    put(server, table, content)
    server.query(f"alter table {table} import tablespace")


def sound(server, *names):
    for name in names:
        equal([row[3] for row in server.query(f"check table {name} extended")], ["OK"], f"CHECK TABLE {name}")


def state(server, table):
    status = server.query(f"show table status like '{table}'")[0]
    return server.query(f"checksum table {table}")[0][1], server.query(f"select count(*) from {table}")[0][0], status[10]


class Exports:
    """The tests: each public method is one."""

    def __init__(self, directory, plugin_dir):
        self.source = Server(os.path.join(directory, "source"), plugin_dir)
        self.target = Server(os.path.join(directory, "target"), plugin_dir)
        for server in (self.source, self.target):
            server.install()
        self.stops = Stops(os.path.join(directory, "stops"))
        self.source.start()
        self.start_target()
        # Other numbers of spaces and trees.
        for number in range(5):
            self.target.query(f"create table other_{number} (a int primary key, b int, key (b)) engine = Teak")
        self.random = random.Random(seed())

    def start_target(self):
        self.stops.arm(0)
        self.stops.start(self.target)

    def stop(self):
        self.source.kill()
        self.target.kill()

    def every_kind_of_table(self):
        for name in TABLES:
            create(self.source, name, rows=ROWS)
            create(self.target, name, rows=10)
        files = dict(zip(TABLES, export(self.source, *TABLES)))
        for name, content in files.items():
            bring(self.target, name, content)
            equal(os.path.exists(path_of(self.target, name)), False, "after IMPORT")
            equal(state(self.target, name), state(self.source, name), name)
            plan = "select table_rows from information_schema.tables where table_schema = 'test' and table_name = %r"
            equal(self.target.query(plan % name), self.source.query(plan % name), "rows as the optimizer has them")
        sound(self.target, *TABLES)
        # They go on as tables like any other, here as there.
        for server in (self.source, self.target):
            server.query("insert into plain (b) values ('next')")
            server.query("delete from many_keys where d % 3 = 0")
            server.query("update hidden set b = 'changed' where a < 1000")
            server.query("insert into hidden values (1, 'one', 'two')")
            server.query("update made set d = 'z' where c = 5")
        self.target.kill()
        self.start_target()
        for name in TABLES:
            equal(state(self.target, name), state(self.source, name), name)
        sound(self.target, *TABLES)
        # And back.
        bring(self.source, "plain", export(self.target, "plain")[0])
        equal(state(self.target, "plain"), state(self.source, "plain"))

    def names_as_files(self):
        for server in (self.source, self.target):
            server.query("create database if not exists `da-ta`")
            server.query("create table if not exists `da-ta`.`ta ble$` (a int primary key) engine = Teak", database="da-ta")
        self.source.query("insert into `ta ble$` select seq from seq_1_to_100", database="da-ta")
        connection = self.source.connect(database="da-ta")
        with connection.cursor() as cursor:
            cursor.execute("flush tables `ta ble$` for export")
            path, = glob.glob(os.path.join(self.source.data, "da@002dta", "*.teak"))
            with open(path, "rb") as file:
                content = file.read()
            equal(os.path.exists(path.replace(".teak", ".frm")), True, "beside its definition")
        # The connection goes, and so does its lock, and the file.
        connection.close()
        self.source.query("lock tables `ta ble$` write", database="da-ta")
        equal(os.path.exists(path), False, "after the connection")
        self.target.query("alter table `ta ble$` discard tablespace", database="da-ta")
        with open(path.replace(self.source.data, self.target.data), "wb") as file:
            file.write(content)
        self.target.query("alter table `ta ble$` import tablespace", database="da-ta")
        equal(self.target.query("select count(*), sum(a) from `ta ble$`", database="da-ta"), ((100, 5050),))
        with open(path.replace(self.source.data, self.target.data), "wb") as file:
            file.write(content)
        self.target.query("drop database `da-ta`", database=None)

    def wrong_definitions(self):
        base = "(a int primary key, b varchar(20) collate utf8mb4_general_ci, c int, key (b), unique key u (c))"
        create(self.source, "w", definition=base)
        self.source.query("insert into w select seq, left(md5(seq), 20), seq from seq_1_to_100")
        content, = export(self.source, "w")
        others = {
            "column `a`": base.replace("a int", "a bigint"),
            "varchar(21)": base.replace("(20)", "(21)"),
            "utf8mb4_bin": base.replace("utf8mb4_general_ci", "utf8mb4_bin"),
            "not null": base.replace("c int", "c int not null"),
            "column `d`": base.replace("key (b)", "d int, key (b)"),
            "nothing more": base.replace(", unique key u (c)", ""),
            "key `u`": base.replace("unique key u", "key u"),
            "`b`(40)": base.replace("key (b)", "key (b(10))"),
            "desc": base.replace("key (b)", "key (b desc)"),
            "block_size 8192": base + " block_size = 8192",
            "signed": base.replace("a int", "a int unsigned"),
        }
        for told, definition in others.items():
            create(self.target, "w", definition=definition)
            self.target.query("alter table w discard tablespace")
            put(self.target, "w", content)
            try:
                self.target.query("alter table w import tablespace")
                raise AssertionError(f"{told} was imported")
            except pymysql.err.MySQLError as error:
                equal(error.args[0], SCHEMA_MISMATCH)
                equal(told in error.args[1], True, error.args[1])
            equal(os.path.exists(path_of(self.target, "w")), True, "a file that was refused stays")
            equal(error_number(self.target.query, "select * from w"), DISCARDED)
        # How blocks are compressed from now on is another matter; so are names of constraints, comments and defaults.
        create(self.target, "w", definition=base.replace("c int", "c int default 5 comment 'text'") + " compression = none")
        bring(self.target, "w", content)
        equal(state(self.target, "w")[:2], state(self.source, "w")[:2])
        sound(self.target, "w")

    def rows_of_several_layouts(self):
        """A file brings its rows' layouts along, whatever those of the table are that takes them."""
        create(self.source, "l", definition="(a int primary key, b varchar(20), c int, key (c))")
        self.source.query("insert into l select seq, md5(seq), seq from seq_1_to_1000".replace("md5(seq)", "left(md5(seq), 20)"))
        self.source.query("alter table l add d text default 'd' after a, drop b, algorithm=instant")
        self.source.query("update l set d = 'changed' where a % 3 = 0")
        self.source.query("alter table l add e varchar(10) not null default 'e' first, algorithm=instant")
        self.source.query("update l set e = 'new' where a % 5 = 0")
        content, = export(self.source, "l")
        fresh = "(e varchar(10) not null default 'e', a int primary key, d text, c int, key (c))"
        for before in ((), ("alter table l add z int default 3, algorithm=instant", "insert into l (a) values (5)", "alter table l drop z, algorithm=instant")):
            create(self.target, "l", definition=fresh)
            for statement in before:
                self.target.query(statement)
            bring(self.target, "l", content)
            equal(state(self.target, "l"), state(self.source, "l"))
            sound(self.target, "l")
            self.target.query("insert into l (a) values (2000)")
            self.target.query("alter table l add f int default 6 first, algorithm=instant")
            equal(self.target.query("select count(*), sum(f) from l"), ((1001, 6006),))
            self.target.kill()
            self.start_target()
            equal(self.target.query("select count(*), sum(f), sum(e = 'e'), sum(d = 'd') from l"), ((1001, 6006, 801, 667),))
            sound(self.target, "l")
        # And one without layouts, into a table that has some.
        create(self.source, "l", definition=fresh)
        self.source.query("insert into l select 'plain', seq, seq, seq from seq_1_to_100")
        plain, = export(self.source, "l")
        self.target.query("alter table l drop f, algorithm=instant")
        bring(self.target, "l", plain)
        equal(state(self.target, "l"), state(self.source, "l"))
        self.target.query("insert into l values ('after', 101, 'after', 1)")
        # Emptied in between, the table keeps what its definition is, and no rows' layouts.
        self.target.query("alter table l add g int default 1, algorithm=instant")
        self.target.query("alter table l discard tablespace")
        self.target.query("truncate table l")
        self.target.query("insert into l (e, a) values ('x', 1)")
        sound(self.target, "l")

    def damaged_files(self):
        create(self.source, "plain", rows=5000)
        create(self.target, "plain")
        content, = export(self.source, "plain")
        self.target.query("alter table plain discard tablespace")
        equal(error_number(self.target.query, "alter table plain import tablespace"), MISSING)
        broken = [b"", b"x", content[:40], content[:len(content) // 2], content[:-1], content + b"x", bytes(len(content))]
        for _ in range(12):
            changed = bytearray(content)
            changed[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
            broken.append(bytes(changed))
        for damaged in broken:
            put(self.target, "plain", damaged)
            equal(error_number(self.target.query, "alter table plain import tablespace"), BROKEN, f"{len(damaged)} bytes")
            equal(error_number(self.target.query, "select * from plain"), DISCARDED)
        put(self.target, "plain", content)
        self.target.query("alter table plain import tablespace")
        sound(self.target, "plain")
        equal(error_number(self.target.query, "alter table plain import tablespace"), EXISTS)

    def undecided_rows(self):
        create(self.source, "plain", rows=10)
        connection = self.source.connect()
        with connection.cursor() as cursor:
            for statement in ("xa start 'x'", "insert into plain (b) values ('prepared')", "xa end 'x'", "xa prepare 'x'"):
                cursor.execute(statement)
        connection.close()
        equal(error_number(self.source.query, "set statement teak_lock_wait_timeout = 1 for flush tables plain for export"), LOCK_WAIT_TIMEOUT)
        self.source.kill()
        self.source.start()
        equal(error_number(self.source.query, "set statement teak_lock_wait_timeout = 1 for flush tables plain for export"), LOCK_WAIT_TIMEOUT)
        equal(glob.glob(os.path.join(self.source.data, "test", "*.teak")), [])
        self.source.query("xa commit 'x'")
        create(self.target, "plain")
        bring(self.target, "plain", export(self.source, "plain")[0])
        equal(self.target.query("select count(*) from plain"), ((11,),))

    def partitions(self):
        """Each partition of an exported table is a table by itself."""
        columns = "(a int primary key, b int, key (b)) engine = Teak"
        self.source.query(f"create table parts {columns} partition by range (a) (partition p0 values less than (100), partition p1 values less than (maxvalue))")
        self.source.query("insert into parts select seq, seq from seq_1_to_1000")
        create(self.target, "part", definition="(a int primary key, b int, key (b))")
        bring(self.target, "part", self.partition_file("parts", "p1"))
        equal(self.target.query("select count(*), min(a) from part"), ((901, 100),))
        sound(self.target, "part")
        self.target.query(f"create table parts {columns} partition by range (a) (partition p0 values less than (100), partition p1 values less than (maxvalue))")
        self.target.query("alter table parts exchange partition p1 with table part")
        equal(self.target.query("select count(*), min(a) from parts"), ((901, 100),))
        sound(self.target, "parts")
        # What the server does not have, for no engine.
        for engine in ("Teak", "InnoDB"):
            self.target.query(f"create or replace table parts (a int primary key) engine = {engine} partition by hash (a) partitions 2")
            for what in ("discard", "import"):
                equal(error_number(self.target.query, f"alter table parts {what} tablespace"), NOT_IMPLEMENTED, engine)
                equal(error_number(self.target.query, f"alter table parts {what} partition p0 tablespace"), SYNTAX_ERROR, engine)

    def partition_file(self, table, partition):
        connection = self.source.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"flush tables {table} for export")
                with open(path_of(self.source, f"{table}#P#{partition}"), "rb") as file:
                    return file.read()
        finally:
            connection.close()

    def killed_queries(self):
        """KILL QUERY in the middle of each statement, before a change of a file: it ends with an error or has done all, and can be repeated."""
        create(self.target, "plain", rows=ROWS)
        wanted = state(self.target, "plain")
        content, = export(self.target, "plain")
        for name, statement in (("export", "flush tables plain for export"), ("discard", "alter table plain discard tablespace"),
                                ("import", "alter table plain import tablespace")):
            ended = {}
            for at in [None, *range(KILLED_QUERIES)]:
                if name == "import" and error_number(self.target.query, "select a from plain limit 1") is None:
                    self.target.query("alter table plain discard tablespace")
                if name == "import":
                    put(self.target, "plain", content)
                elif name == "discard" and error_number(self.target.query, "select a from plain limit 1") == DISCARDED:
                    bring(self.target, "plain", content)
                if at is None:
                    # How many changes there are.
                    self.stops.arm(Stops.NEVER)
                    self.killed_query(statement, None)
                    changes = self.stops.changed()
                    continue
                end = self.killed_query(statement, 1 + at * changes // KILLED_QUERIES)
                ended[end] = ended.get(end, 0) + 1
                equal(os.path.exists(path_of(self.target, "plain")), name == "import" and end is not None, f"the file after {name} ended with {end}")
                found = error_number(self.target.query, "select a from plain limit 1")
                equal(found, DISCARDED if (end is None) == (name == "discard") and name != "export" else None, f"{name} that ended with {end}")
                equal(error_number(self.target.query, "lock tables plain write"), None)
            print("   ", name, f"{changes} changes, ended with", ended)
            equal(set(ended) <= {None, INTERRUPTED}, True, f"{name}: {ended}")
            equal(name == "discard" or INTERRUPTED in ended, True, f"{name} was never interrupted")
        if error_number(self.target.query, "select a from plain limit 1") == DISCARDED:
            put(self.target, "plain", content)
            self.target.query("alter table plain import tablespace")
        equal(state(self.target, "plain"), wanted)
        sound(self.target, "plain")

    def killed_query(self, statement, change):
        """What a statement ends with that is killed before a change of a file; None: with no error."""
        connection = self.target.connect(autocommit=True)
        number = connection.thread_id()
        ended = []

        def execute():
            try:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
                ended.append(None)
            except pymysql.err.MySQLError as error:
                ended.append(error.args[0])

        if change:
            self.stops.arm(change, hold=True)
        thread = threading.Thread(target=execute)
        thread.start()
        while change and thread.is_alive() and not self.stops.is_held():
            time.sleep(0.001)
        if change:
            # If it is a thread of the background that is held, the statement may have ended.
            if not ended:
                self.target.query(f"kill query {number}")
            self.stops.arm(0)
        thread.join()
        # An export that was whole has its file for as long as its lock.
        connection.close()
        while self.target.query(f"select count(*) from information_schema.processlist where id = {number}") != ((0,),):
            time.sleep(0.001)
        return ended[0]

    def killed_while_it_waits(self):
        """KILL QUERY of a statement that waits: for a transaction that has read the table, or for a prepared one."""
        create(self.target, "plain", rows=10)
        content, = export(self.target, "plain")
        reader = self.target.connect(autocommit=False)
        for statement in ("alter table plain discard tablespace", "alter table plain import tablespace"):
            if "import" in statement:
                self.target.query("alter table plain discard tablespace")
                put(self.target, "plain", content)
                with reader.cursor() as cursor:
                    # Nobody can read it; who has it locked can be waited for.
                    cursor.execute("lock tables plain read")
            else:
                with reader.cursor() as cursor:
                    cursor.execute("select * from plain")
            equal(self.killed_in_state(statement, "Waiting for table metadata lock"), INTERRUPTED, statement)
            with reader.cursor() as cursor:
                cursor.execute("unlock tables" if "import" in statement else "commit")
        self.target.query("alter table plain import tablespace")
        with reader.cursor() as cursor:
            for statement in ("xa start 'w'", "insert into plain (b) values ('prepared')", "xa end 'w'", "xa prepare 'w'"):
                cursor.execute(statement)
        reader.close()
        # It waits where the server takes the engine's lock.
        equal(self.killed_in_state("flush tables plain for export", "System lock"), INTERRUPTED)
        equal(os.path.exists(path_of(self.target, "plain")), False)
        self.target.query("xa commit 'w'")
        equal(len(export(self.target, "plain")), 1)
        equal(self.target.query("select count(*) from plain"), ((11,),))

    def killed_in_state(self, statement, wanted):
        """What a statement ends with that is killed when it is in a state."""
        connection = self.target.connect(autocommit=True)
        number = connection.thread_id()
        ended = threading.Event()

        def kill():
            waits = f"select count(*) from information_schema.processlist where id = {number} and state = '{wanted}'"
            while self.target.query(waits) == ((0,),) and not ended.is_set():
                time.sleep(0.001)
            self.target.query(f"kill query {number}")

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            return error.args[0]
        finally:
            ended.set()
            killer.join()
            connection.close()
        return None

    def killed_anywhere(self):
        """The server is killed before a change of a file, of those that DISCARD and IMPORT make."""
        create(self.source, "plain", rows=ROWS)
        content, = export(self.source, "plain")
        wanted = None
        outcomes = {"whole": 0, "discarded": 0, "before": 0}
        for kill in range(KILLS):
            create(self.target, "plain", rows=5)
            steps = ["alter table plain discard tablespace", "alter table plain import tablespace"]
            if kill % 3:
                self.target.query(steps.pop(0))
                put(self.target, "plain", content)
            self.stops.arm(Stops.NEVER)
            if kill < 3:
                # How many changes there are.
                wanted = wanted or {}
                self.target.query(steps[0])
                wanted[len(steps)] = self.stops.changed()
                continue
            # Half of them near the end, where it is decided.
            changes = wanted[len(steps)]
            self.stops.arm(changes - self.random.randrange(6) if kill % 2 else 1 + self.random.randrange(changes))
            died = error_number(self.target.query, steps[0])
            if died is None:
                # What others do to files was counted, too.
                self.target.process.kill()
            else:
                equal(died, 2013, f"kill {kill}")
            self.target.process.wait()
            self.target.process = None
            self.start_target()
            seen = error_number(self.target.query, "select * from plain")
            if seen == DISCARDED:
                outcomes["discarded"] += 1
                put(self.target, "plain", content)
                self.target.query("alter table plain import tablespace")
            elif len(steps) == 2 and self.target.query("select count(*) from plain") == ((5,),):
                outcomes["before"] += 1
                bring(self.target, "plain", content)
            else:
                outcomes["whole"] += 1
            equal(state(self.target, "plain"), state(self.source, "plain"), f"kill {kill}")
            sound(self.target, "plain")
        print("   ", outcomes)


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    tests = Exports(arguments.directory, arguments.plugin_dir)

    def recover():
        for server in (tests.source, tests.target):
            if not server.is_running():
                server.process = None
                server.start()

    cases = [getattr(tests, name) for name, value in vars(Exports).items() if callable(value) and not name.startswith("_")
             and name not in ("start_target", "stop", "partition_file", "killed_query", "killed_in_state")]
    try:
        return carry_out(cases, arguments.names, recover=recover)
    finally:
        tests.stop()


if __name__ == "__main__":
    sys.exit(main())
