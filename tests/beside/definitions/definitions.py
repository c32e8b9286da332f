#!/usr/bin/python3
"""Changes of tables: under backups that read an old snapshot, under prepared XA transactions that no session owns, and a kill right after them; what is
known of their content.
"""

import glob
import os
import subprocess
import sys
import threading
import time

from kit.asking import error_number, wait_until
from kit.cases import on_server
from kit.options import parser
from kit.server import HAS_MYDUMPER, Server

LOCK_WAIT_TIMEOUT = 1205
INTERRUPTED = 1317
ROWS = 4000
DUMPS = 12


def fresh(server, *statements):
    """An empty database with what the statements make."""
    server.query("drop database if exists test", database=None)
    server.query("create database test", database=None)
    for statement in statements:
        server.query(statement)


class Changes(threading.Thread):
    """Changes tables until told to stop. `emptied` is truncated and filled again; `state` is 1 whenever it has all its rows."""

    def __init__(self, server):
        super().__init__()
        self.server, self.stopping, self.failure, self.done = server, False, None, 0

    def run(self):
        try:
            connection = self.server.connect(autocommit=True)
            with connection.cursor() as cursor:
                while not self.stopping:
                    for statement in (
                        "optimize table copied",
                        "update state set full = 0",
                        "truncate table emptied",
                        f"begin not atomic insert into emptied select seq, seq from seq_1_to_{ROWS}; update state set full = 1; end",
                        "alter table forced force, algorithm=copy",
                        "alter table parted rebuild partition all",
                    ):
                        # As one transaction, whatever the session commits by itself.
                        if statement.startswith("begin not"):
                            statement = statement.replace("atomic ", "atomic start transaction; ").replace("; end", "; commit; end")
                        cursor.execute(statement)
                        cursor.fetchall()
                    self.done += 1
            connection.close()
        except Exception as error:  # whatever it is, the test has to know
            self.failure = error

    def stop(self):
        """Returns how often each change was made."""
        self.stopping = True
        self.join()
        if self.failure:
            raise self.failure
        return self.done


TABLES = ("copied", "emptied", "forced", "parted", "state")


def complete(counts, full):
    """Whether a dump has all rows of the tables that it has; one that was emptied may be empty if the state says so."""
    return all(rows == ROWS or (name == "emptied" and rows == 0 and not full) for name, rows in counts.items())


def by_mariadb_dump(server):
    """Exit status, rows of each table, and the state; all of one dump. The tables are named: the server's list of them misses one that is just being
    renamed, whatever its engine."""
    command = ["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "--user=root", "--single-transaction", "--compact",
               "--skip-extended-insert", "test", *TABLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts, full = dict.fromkeys(TABLES[:-1], 0), None
    for line in done.stdout.splitlines():
        if line.startswith("INSERT INTO "):
            name = line.split("`")[1]
            if name == "state":
                full = "(1)" in line
            else:
                counts[name] += 1
    return done.returncode, counts, full


def by_mydumper(server):
    """The same of mydumper."""
    directory = os.path.join(server.directory, "mydumper")
    subprocess.run(["rm", "-rf", directory], check=True)
    command = ["mydumper", f"--socket={server.socket}", "--user=root", "--database=test", f"--outputdir={directory}", "--trx-consistency-only",
               "--threads=2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # It knows the tables from the server's list.
    known = [name for name in TABLES[:-1] if os.path.exists(os.path.join(directory, f"test.{name}-schema.sql"))]
    counts, full = dict.fromkeys(known, 0), None
    for path in glob.glob(os.path.join(directory, "test.*.sql")):
        name = os.path.basename(path).split(".")[1]
        if "schema" in os.path.basename(path):
            continue
        with open(path, encoding="utf-8") as file:
            rows = [line for line in file if line.startswith(("(", ",("))]
        if name == "state":
            full = any("(1)" in row for row in rows)
        else:
            counts[name] += len(rows)
    return done.returncode, counts, full


def dumps(server):
    """A backup under OPTIMIZE, ALTER ... FORCE, TRUNCATE and REBUILD PARTITION is complete, or it fails and says so."""
    fresh(
        server,
        "create table copied (id int primary key, v int, key (v))",
        "create table forced (id int primary key, v int)",
        "create table emptied (id int primary key, v int)",
        "create table parted (id int primary key, v int) partition by hash (id) partitions 4",
        "create table state (full int primary key)",
        "insert into state values (1)",
        *(f"insert into {name} select seq, seq from seq_1_to_{ROWS}" for name in ("copied", "forced", "emptied", "parted")),
    )
    for dump in (by_mariadb_dump, by_mydumper) if HAS_MYDUMPER else (by_mariadb_dump,):
        status, counts, full = dump(server)
        assert status == 0 and full and len(counts) == 4 and complete(counts, full), (dump.__name__, status, counts, full)
        changes = Changes(server)
        changes.start()
        failed = 0
        try:
            for _ in range(DUMPS):
                status, counts, full = dump(server)
                failed += status != 0
                assert status != 0 or complete(counts, full), (dump.__name__, counts, full)
        finally:
            done = changes.stop()
        print(f"    {dump.__name__}: {DUMPS} dumps, {failed} failed, tables changed {done} times")


INSTANT = [
    "modify s varchar(50)",
    "modify s varchar(50), rename index v to w, rename index u to v",
    "auto_increment = 1000",
    "alter index v ignored",
    "default charset utf8mb4, comment 'changed'",
    "add g int as (v + 1) virtual",
    "add g int as (v + 1) virtual, add h varchar(20) as (concat(s, '!')) virtual",
    "drop virt",
    "change v n int default 5",
    "modify e enum('x', 'y', 'z')",
]


def old_snapshot_and_instant_changes(server):
    """A change of the definition alone leaves an old snapshot its rows, in a table and in one with partitions; and the same rows as a copy leaves."""
    columns = "id int auto_increment primary key, s varchar(20), v int, u int, e enum('x', 'y'), virt int as (v * 2) virtual, key v (v), key u (u), key s (s)"
    for change in INSTANT:
        for partitions in ("", " partition by hash (id) partitions 3"):
            fresh(server, f"create table t ({columns}){partitions}",
                  "insert into t (s, v, u, e) select concat('s', seq), seq % 10, seq, 1 + seq % 2 from seq_1_to_60", "delete from t where id = 50",
                  "create table c like t", "insert into c (id, s, v, u, e) select id, s, v, u, e from t order by id")
            old = server.connect()
            with old.cursor() as cursor:
                cursor.execute("start transaction with consistent snapshot")
                server.query("update t set v = v + 100, s = concat(s, 'x') where id <= 20")
                server.query("delete from t where id = 33")
                server.query(f"alter table t {change}, algorithm=instant")
                server.query("update t set u = -id where id <= 10")
                server.query("insert into t (id, s, u) values (500, 'new', 500)")
                name = "n" if "change v" in change else "v"
                cursor.execute(f"select id, s, {name}, u, e from t order by id")
                seen = cursor.fetchall()
                cursor.execute(f"select count(*), sum(id) from t where {name} between 0 and 9")
                by_index = cursor.fetchall()
            old.close()
            server.query("update c set v = v + 100, s = concat(s, 'x') where id <= 20")
            before = server.query("select id, concat('s', id), id % 10, id, if(id % 2, 'y', 'x') from t where id < 500 union select 33, 's33', 3, 33, 'y' order by 1")
            assert seen == before, (change, partitions, seen, before)
            assert by_index == ((59, sum(row[0] for row in before)),), (change, partitions, by_index)
            server.query("delete from c where id = 33")
            server.query(f"alter table c {change}, algorithm=copy")
            server.query("update c set u = -id where id <= 10")
            server.query("insert into c (id, s, u) values (500, 'new', 500)")
            definitions = [server.query(f"show create table {table}")[0][1].replace(f"`{table}`", "") for table in "tc"]
            assert definitions[0] == definitions[1], definitions
            assert server.query("select * from t order by id") == server.query("select * from c order by id"), (change, partitions)
            assert server.query("check table t extended")[0][3] == "OK", (change, partitions)


LAYOUTS = [
    "add x int not null default 5",
    "add x int not null default 5 first, add y text default 'y' after s",
    "drop u",
    "drop b, drop u, add b int default 3",
    "modify s varchar(300), modify u bigint first",
    "modify s varchar(20) null after b, drop e",
]


def seen_by(cursor, table, columns):
    """The rows that a session sees."""
    cursor.execute(f"select {', '.join(columns)} from {table} order by id")
    return cursor.fetchall()


def columns_of(server, table):
    """Their names, in order."""
    return [row[0] for row in server.query(f"show columns from {table}")]


def old_snapshot_and_layouts(server):
    """Where columns come and go at once, an old snapshot sees its rows by the new definition, as InnoDB shows them, whichever version of them it is; also
    after a second change, of rows that were written between the two."""
    table = "(id int primary key, s varchar(20) not null, b blob, u bigint, e enum('x', 'y'), v int, key v (v))"
    for change in LAYOUTS:
        for partitions in ("", " partition by hash (id) partitions 3"):
            seen = []
            for engine in ("Teak", "InnoDB"):
                fresh(server, f"create table t {table} engine={engine}{partitions}",
                      "insert into t select seq, concat('s', seq), repeat('b', seq * 5), seq * 10, 1 + seq % 2, seq % 10 from seq_1_to_60", "delete from t where id = 50")
                old, between = server.connect(), server.connect()
                with old.cursor() as cursor, between.cursor() as second:
                    cursor.execute("start transaction with consistent snapshot")
                    server.query("update t set v = v + 100, s = concat(s, 'x') where id <= 20")
                    server.query("delete from t where id = 33")
                    server.query(f"alter table t {change}, algorithm={'instant' if engine == 'Teak' else 'default'}")
                    second.execute("start transaction with consistent snapshot")
                    server.query("update t set s = 'newest' where id <= 10 or id = 40")
                    server.query("insert into t (id, s) values (500, 'new')")
                    server.query("alter table t add w varchar(30) default 'w' first")
                    server.query("update t set w = 'changed' where id < 5")
                    names = columns_of(server, "t")
                    found = [seen_by(second, "t", names), server.query(f"select {', '.join(names)} from t order by id")]
                    # For the others InnoDB rebuilds the table, and gives the first snapshot nothing.
                    if "modify s" not in change:
                        found.append(seen_by(cursor, "t", names))
                    seen.append(found)
                old.close()
                between.close()
                assert server.query("check table t extended")[0][3] == "OK", (change, partitions)
            assert seen[0] == seen[1], (change, partitions, seen)


def layouts_outlive_kills(server):
    """Rows of several layouts come back after a kill: from the log, from blocks, from transactions that were open or prepared, decided either way."""
    rows = "select id, x, s, y, v from t order by id"
    for decision in ("commit", "rollback"):
        fresh(server, "create table t (id int primary key, s varchar(20) not null, b blob, v int, key v (v))",
              "insert into t select seq, concat('s', seq), repeat('b', seq % 50 * 1000), seq % 10 from seq_1_to_400")
        server.query("set global teak_checkpoint_now = 1")
        server.query("update t set v = v + 1 where id % 7 = 0")
        server.query("alter table t add x int not null default 5 after id, algorithm=instant")
        server.query("update t set x = id where id % 5 = 0")
        server.query("alter table t drop b, add y varchar(20) default 'y', algorithm=instant")
        server.query("insert into t values (1000, 1, 'new', 1, 'z')")
        before = server.query(rows)
        leave_prepared(server, "old", "update t set x = -id where id between 11 and 20", "delete from t where id = 21", "insert into t values (1001, 2, 'prepared', 2, 'p')")
        open_one = server.connect()
        with open_one.cursor() as cursor:
            cursor.execute("update t set x = 0, v = 0 where id between 31 and 300")
            # Another transaction's commit brings what is open into the log.
            server.query("update t set y = 'committed' where id = 1")
            server.kill()
        server.start(OPTIONS)
        assert error_number(server.query, "set statement teak_lock_wait_timeout = 0 for alter table t add z int, algorithm=instant") == LOCK_WAIT_TIMEOUT
        server.query(f"xa {decision} 'old'")
        wanted = {row[0]: row for row in before}
        wanted[1] = (*wanted[1][:3], "committed", wanted[1][4])
        if decision == "commit":
            for number in range(11, 21):
                wanted[number] = (number, -number, *wanted[number][2:])
            del wanted[21]
            wanted[1001] = (1001, 2, "prepared", "p", 2)
        assert server.query(rows) == tuple(wanted[number] for number in sorted(wanted)), decision
        server.query("alter table t add z int not null default 9 first, algorithm=instant")
        server.kill()
        server.start(OPTIONS)
        assert server.query(rows) == tuple(wanted[number] for number in sorted(wanted)), decision
        assert server.query("select count(*), min(z), max(z) from t")[0][1:] == (9, 9)
        assert server.query("check table t extended")[0][3] == "OK"


def old_snapshot_inserts(server):
    """What InnoDB tells by a bare number: writes through an old snapshot that have to read."""
    fresh(server, "create table t (id int primary key, v int)", "insert into t values (1, 1)", "create table other (id int primary key)")
    old = server.connect()
    with old.cursor() as cursor:
        for statement in ("insert into other select id from t", "insert into t values (1, 2) on duplicate key update v = 3",
                          "replace into t values (1, 4)", "create temporary table c select * from t"):
            cursor.execute("start transaction with consistent snapshot")
            server.query("alter table t force, algorithm=copy")
            found = error_number(cursor.execute, statement)
            assert found == 1412, (statement, found)
            cursor.execute("rollback")
    old.close()
    assert server.query("select * from t") == ((1, 1),) and server.query("select * from other") == ()


def leave_prepared(server, xid, *statements):
    """A prepared transaction whose session is gone."""
    connection = server.connect()
    with connection.cursor() as cursor:
        for statement in (f"xa start '{xid}'", *statements, f"xa end '{xid}'", f"xa prepare '{xid}'"):
            cursor.execute(statement)
    number = connection.thread_id()
    connection.close()
    gone = f"select count(*) = 0 from information_schema.processlist where id = {number}"
    wait_until(lambda: server.query(gone)[0][0], "the end of the session")


PREPARED = [
    "create table t (id int primary key, v int, key (v)) engine=Teak",
    "insert into t values (1, 1)",
    "create table p (id int primary key, v int) partition by range (id) (partition a values less than (10), partition b values less than maxvalue)",
    "insert into p values (1, 1), (11, 11)",
    "create table x (id int primary key, v int)",
    "create table free (id int primary key, v int)",
]

CHANGES = [
    "alter table t add c int, algorithm=copy",
    "alter table t force",
    "alter table t add key w (v, id), algorithm=inplace",
    "alter table t add unique key w (v), algorithm=inplace",
    "create index w on t (v, id)",
    "alter table t drop key v",
    "alter table t rename key v to u, algorithm=instant",
    "alter table t comment 'changed', algorithm=instant",
    "alter table t add g int as (v) virtual, algorithm=instant",
    "alter table t auto_increment = 7, algorithm=instant",
    "alter table t add c int first, algorithm=instant",
    "alter table t add c int, drop key v, drop v, algorithm=nocopy",
    "alter table t disable keys",
    "alter table t engine=InnoDB",
    "truncate table t",
    "create or replace table t (id int primary key)",
    "drop table t",
    "alter table p exchange partition a with table x",
    "alter table p truncate partition a",
    "alter table p drop partition a",
    "alter table p reorganize partition a into (partition c values less than (5), partition d values less than (10))",
    "alter table p rebuild partition a",
    "alter table p remove partitioning",
    "drop table p",
    "drop database test",
]


def refused(server, statement, before=()):
    """Runs a statement that is expected to fail with 1205; returns the warnings."""
    connection = server.connect(autocommit=True)
    with connection.cursor() as cursor:
        for each in ("set teak_lock_wait_timeout = 0", *before):
            cursor.execute(each)
        number = error_number(cursor.execute, statement)
        assert number == LOCK_WAIT_TIMEOUT, (statement, number)
        cursor.execute("show warnings")
        warnings = cursor.fetchall()
    connection.close()
    return str(warnings)


def prepared(server):
    """Nothing that changes a table goes over the rows of a prepared transaction without owner: before and after a restart."""
    for restarted in (False, True):
        fresh(server, *PREPARED)
        leave_prepared(server, "q", "insert into t values (2, 2)", "update t set v = 3 where id = 1", "insert into p values (2, 2)")
        if restarted:
            server.kill()
            server.start(OPTIONS)
        for statement in CHANGES:
            warnings = refused(server, statement)
            assert "'q'" in warnings or statement.startswith("drop database"), (statement, warnings)
        refused(server, "alter table t force", ["lock tables t write"])
        # It works beside all writers, whoever they are.
        assert server.query("optimize table t") == (("test.t", "optimize", "status", "OK"),)
        assert "waits for the prepared transaction 'q'" in server.log_end(2000), server.log_end()
        # What it has not written to is free. DROP DATABASE has dropped some of it before it came to the others.
        for statement in ("create table if not exists free (id int primary key)", "create table if not exists x (id int primary key)",
                          "alter table free force, algorithm=copy", "truncate free", "drop table free", "rename table x to y", "rename table y to x"):
            server.query(statement)
        server.query("rename table t to u")
        refused(server, "drop table u")
        server.query("rename table u to t")
        server.query("xa commit 'q'")
        for index in ("primary", "v"):
            assert server.query(f"select id, v from t force index ({index}) order by id") == ((1, 3), (2, 2)), index
        for statement in CHANGES:
            if "add unique" not in statement and "index w" not in statement and "exchange" not in statement:
                fresh(server, *PREPARED)
                server.query(statement)
        server.query("drop database if exists test", database=None)
        server.query("create database test", database=None)


def prepared_sides_of_a_foreign_key(server):
    """ADD FOREIGN KEY looks at no side that a prepared transaction without owner has written to, before and after a restart; what is decided counts."""
    no_parent, is_parent = 1452, 1451
    add = "alter table c add constraint f foreign key (x) references p (id)"
    for restarts in (False, True):
        fresh(server, "create table p (id int primary key)", "create table c (id int primary key, x int, key (x))", "insert into p values (1), (2)",
              "insert into c values (1, 1), (2, 2)")
        leave_prepared(server, "parent", "delete from p where id = 2")
        leave_prepared(server, "child", "insert into c values (3, 9)")
        if restarts:
            server.kill()
            server.start(OPTIONS)
        assert "'child'" in refused(server, add)
        server.query("xa rollback 'child'")
        assert "'parent'" in refused(server, add)
        server.query("xa commit 'parent'")
        assert error_number(server.query, add) == no_parent
        server.query("insert into p values (2)")
        server.query(add)
        # And a child that is prepared keeps its parent, by whatever name the parent's column goes.
        server.query("delete from c where id = 1")
        leave_prepared(server, "child", "insert into c values (3, 1)")
        if restarts:
            server.kill()
            server.start(OPTIONS)
        refused(server, "alter table c drop foreign key f")
        refused(server, "delete from p where id = 1")
        server.query("alter table p rename column id to number")
        refused(server, "delete from p where number = 1")
        server.query("xa commit 'child'")
        assert error_number(server.query, "delete from p where number = 1") == is_parent
        server.query("alter table c drop foreign key f")
        server.query("delete from p where number = 1")


def partitions(server):
    """A partitioned table that a prepared transaction has written to is emptied whole or not at all."""
    rows = ((1, 1), (11, 11))
    for statement in ("truncate table p", "alter table p truncate partition all", "alter table p drop partition a", "alter table p remove partitioning"):
        fresh(server, *PREPARED)
        leave_prepared(server, "second", "insert into p values (12, 12)")
        refused(server, statement)
        assert server.query("select * from p order by id") == rows, statement
        server.query("xa commit 'second'")
        assert server.query("select * from p order by id") == (*rows, (12, 12)), statement
        server.query(statement)


def waits(server):
    """A change waits for the decision; KILL ends the wait."""
    fresh(server, *PREPARED)
    for statement, number, after in (
        ("alter table t add c int, algorithm=copy", 2, ((1, 1), (2, 2))),
        ("alter table t add key w (v, id), algorithm=inplace", 3, ((1, 1), (2, 2), (3, 3))),
        ("truncate table t", 4, ()),
    ):
        leave_prepared(server, "w", f"insert into t (id, v) values ({number}, {number})")
        connection = server.connect(autocommit=True)
        results = []
        thread = threading.Thread(target=lambda: results.append(error_number(connection.cursor().execute, statement)))  # pylint: disable=cell-var-from-loop
        thread.start()
        marker = f"by connection {connection.thread_id()} waits for the prepared transaction 'w'"
        wait_until(lambda: marker in server.log_end(2000), marker)  # pylint: disable=cell-var-from-loop
        assert thread.is_alive()
        server.query("xa commit 'w'")
        thread.join()
        assert results == [None], (statement, results)
        connection.close()
        assert server.query("select id, v from t order by id") == after, statement
    leave_prepared(server, "k", "insert into t (id, v) values (9, 9)")
    for statement in ("alter table t force", "drop table t", "truncate table t"):
        connection = server.connect(autocommit=True)
        results = []
        thread = threading.Thread(target=lambda: results.append(error_number(connection.cursor().execute, statement)))  # pylint: disable=cell-var-from-loop
        thread.start()
        marker = f"by connection {connection.thread_id()} waits for the prepared transaction 'k'"
        wait_until(lambda: marker in server.log_end(2000), marker)  # pylint: disable=cell-var-from-loop
        began = time.monotonic()
        server.query(f"kill query {connection.thread_id()}")
        thread.join()
        assert results == [INTERRUPTED] and time.monotonic() - began < 5, (statement, results)
        connection.close()
    server.query("xa rollback 'k'")
    # A temporary table goes with its session, whatever the session has left prepared.
    began = time.monotonic()
    leave_prepared(server, "t", "insert into t (id, v) values (10, 10)", "create temporary table own (id int primary key)", "insert into own values (1)")
    server.query("xa commit 't'")
    server.query("drop table t")
    assert time.monotonic() - began < 10


def killed_after_rollback(server):
    """XA ROLLBACK by the session that prepared is there after a kill, also that of rows which went past the log."""
    for rows in (1, 40000):
        fresh(server, "create table t (id int primary key, v varchar(100))", f"insert into t select 1000000 + seq, md5(seq) from seq_1_to_{rows}")
        connection = server.connect()
        with connection.cursor() as cursor:
            cursor.execute("xa start 'r'")
            cursor.execute(f"insert into t select seq, md5(seq) from seq_1_to_{rows}")
            cursor.execute("xa end 'r'")
            cursor.execute("xa prepare 'r'")
            cursor.execute("xa rollback 'r'")
            if rows > 1:
                cursor.execute("begin")
                cursor.execute(f"insert into t select 2000000 + seq, md5(seq) from seq_1_to_{rows}")
        server.kill()
        server.start(OPTIONS)
        assert server.query("xa recover") == ()
        assert server.query("select count(*), min(id) from t") == ((rows, 1000001),)
        server.query("insert into t values (1, 'again')")


def killed_after_counter(server):
    """An AUTO_INCREMENT value that was asked for is there after a kill, though nothing follows that would be synced."""
    table = "(id int auto_increment primary key, v int)"
    for statements, value in (
        ([f"create table t {table} auto_increment = 1000"], 1000),
        ([f"create table t {table}", "insert into t (v) values (1)", "alter table t auto_increment = 500"], 500),
        ([f"create table t {table} auto_increment = 1000", "truncate table t"], 1),
        ([f"create table t {table} auto_increment = 90 partition by hash (id) partitions 3"], 90),
        ([f"create table t {table}", "insert into t values (700, 1)", "alter table t force, algorithm=copy"], 701),
    ):
        fresh(server, *statements)
        server.kill()
        server.start(OPTIONS)
        found = server.query("select auto_increment from information_schema.tables where table_schema = 'test' and table_name = 't'")
        assert found == ((value,),), (statements, found)


def status(server, name):
    """A status variable."""
    return int(server.query(f"show global status like 'Teak_{name}'")[0][1])


def pinned_log(server):
    """Prepared transactions and a large open one stay undecided while others write thirty checkpoints' worth of log: the log is bounded all the
    time, it is told what they keep, and a kill and a restart bring back what was prepared, and nothing else."""
    fresh(server, "create table t (id int primary key, v varbinary(1000), key (v))", "create table w (id int primary key, v varbinary(1000))",
          "insert into t select seq, 'old' from seq_1_to_6000")
    leave_prepared(server, "pin", "insert into t values (10001, 'a')", "savepoint s", "insert into t values (10002, 'b')",
                   "rollback to s", "update t set v = 'pin' where id = 1", "delete from t where id = 2")
    leave_prepared(server, "large", "update t set v = concat(random_bytes(500), 'large') where id between 1001 and 3000")
    leave_prepared(server, "gone", "update t set v = concat(random_bytes(600), 'gone') where id between 501 and 600")
    session = server.connect(autocommit=False)
    with session.cursor() as cursor:
        cursor.execute("update t set v = concat(random_bytes(700), 'open') where id between 3001 and 6000")
        checkpoint, redo, most = 4 << 20, status(server, "log_bytes_pinned"), 0
        assert redo > 2 << 20, redo
        for number in range(45):
            server.query("replace into w select seq % 300, random_bytes(900) from seq_1_to_3000")
            if number == 20:
                cursor.execute("savepoint s")
                cursor.execute("update t set v = random_bytes(900) where id between 3001 and 3500")
            elif number == 30:
                cursor.execute("rollback to s")
            most = max(most, server.redo_size())
        written, copied = status(server, "log_bytes_written"), status(server, "log_bytes_copied")
        assert most < 7 * (checkpoint + redo) < written / 1.5, (most, redo, written)
        assert redo < copied < written / 3, (copied, written)
        wait_until(lambda: "of the log are kept for open and prepared" in server.log_end(2000), "the warning")
        server.kill()
    server.start(OPTIONS)
    xids = {row[3] for row in server.query("xa recover")}
    assert xids == {b"pin", b"large", b"gone"}, xids
    server.query("replace into w select seq % 300, random_bytes(900) from seq_1_to_3000")
    server.query("xa commit 'pin'")
    server.query("xa rollback 'gone'")
    server.kill()
    server.start(OPTIONS)
    server.query("xa commit 'large'")
    # In the primary key and in the other index, which also answer the check.
    assert server.query("check table t extended")[0][3] == "OK"
    for index in ("primary", "v"):
        kinds = ("'pin'", "'a'", "'old'")
        counts = [server.query(f"select count(*) from t force index ({index}) where v = {kind}")[0][0] for kind in kinds]
        assert counts == [1, 1, 3998], (index, counts)
        large = server.query(f"select count(*), sum(id between 1001 and 3000) from t force index ({index}) where right(v, 5) = 'large'")
        assert large == ((2000, 2000),), (index, large)
        assert server.query(f"select count(*) from t force index ({index}) where id < 11000")[0][0] == 6000, index
    assert status(server, "log_bytes_pinned") == 0


def cardinalities(server, table):
    """What the optimizer is told of each index."""
    return {row[2:5]: row[6] for row in server.query(f"show index from {table}")}


def statistics_outlive_a_restart(server):
    """Statistics are kept with a table: a restart finds those of before, and an index that they do not tell of has them taken anew."""
    fresh(server, "create table t (id int primary key, a int not null, b int not null, key a (a), key ab (a, b))")
    server.query("insert into t select seq, seq % 10, seq from seq_1_to_20000")
    server.query("analyze table t")
    sampled = cardinalities(server, "t")
    # Too few to be worth another sample, but enough to be seen by one: the old statistics are those of before the
    # restart.
    server.query("update t set a = 10 + id where id <= 1500")
    for end in (server.stop, lambda: (server.query("set global teak_checkpoint_now = 1"), server.kill())):
        end()
        server.start(OPTIONS)
        assert cardinalities(server, "t") == sampled, (cardinalities(server, "t"), sampled)
    # More than a tenth has other keys, and no leaf has dead entries. (Who has the table open tells of them when it is
    # closed.)
    for statement in ("update t set a = 10 + id where id <= 6000", "set global teak_checkpoint_now = 1", "flush tables t"):
        server.query(statement)
    resampled = cardinalities(server, "t")
    server.query("analyze table t")
    assert resampled != sampled and resampled == cardinalities(server, "t"), (sampled, resampled)
    server.query("alter table t add key b (b)")
    server.stop()
    server.start(OPTIONS)
    altered = cardinalities(server, "t")
    assert altered[("b", 1, "b")] > 5000, altered
    server.query("truncate table t")
    server.stop()
    server.start(OPTIONS)
    server.query("insert into t values (1, 1, 1)")


OPTIONS = ["--teak-cache-size=32M", "--teak-checkpoint-log-size=4M", "--teak-log-segment-size=1M", "--teak-flush-log-at-trx-commit=2"]
TESTS = [dumps, old_snapshot_inserts, old_snapshot_and_instant_changes, old_snapshot_and_layouts, layouts_outlive_kills, prepared, prepared_sides_of_a_foreign_key, partitions, waits, killed_after_rollback, killed_after_counter, pinned_log,
         statistics_outlive_a_restart]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(TESTS, arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
