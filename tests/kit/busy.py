"""A table, and sessions that write to it in every way while something is done with it."""

import os
import random
import tempfile
import threading

import pymysql

from kit.asking import error_of, rows

# What writers may meet, and then roll back: conflicts, duplicates of an index that is there by now, no parent, and a
# deadlock with who alters the table.
CONFLICTS = (1020, 1205, 1213, 1062, 1452, 1451)
LOST = (0, 2006, 2013, 2014)
PARENTS = 200
# Each is given to one row, or to rows of one statement behind three more digits.
NUMBERS = iter(range(10_000_000, 1 << 50))
FAMILY = ", constraint f foreign key (parent) references parent (id) on delete cascade on update cascade)"
PARTS = ") partition by hash (id) partitions 3"


def fresh(server, count, rest=FAMILY):
    """A table `t` with a parent, a trigger, columns of many kinds, and so many rows; or with partitions and no parent."""
    server.query("drop database if exists test", database=None)
    server.query("create database test", database=None)
    for statement in (
        "create table parent (id int primary key, name varchar(20))",
        f"insert into parent select seq, concat('parent ', seq) from seq_1_to_{PARENTS}",
        "create table log (id bigint auto_increment primary key, what varchar(10), row_id bigint)",
        "create table t (id bigint auto_increment primary key, v int not null, u bigint not null, parent int, text varchar(60) collate utf8mb4_unicode_ci,"
        " g int as (length(b)) virtual, b text" + rest,
        "create trigger t_insert after insert on t for each row insert into log (what, row_id) values ('insert', new.id)",
        f"insert into t (v, u, parent, text, b) select seq * 7919 % 100003, seq, 1 + seq % {PARENTS}, concat('Text ', seq % 997), repeat('b', seq % 50)"
        f" from seq_1_to_{count}",
    ):
        server.query(statement)


def check(server, what, table="t"):
    """The table is sound, and each of its indexes shows what the rows are."""
    found = server.query(f"check table {table} extended")
    assert found[-1][3] == "OK", f"{what}: {found}"
    columns = "count(*), sum(id), sum(v), sum(cast(u as decimal(40))), sum(crc32(text))"
    expected = server.query(f"select {columns} from {table} use index ()")
    for (name,) in server.query(f"select distinct index_name from information_schema.statistics where table_schema = 'test' and table_name = '{table}'"):
        if name != "PRIMARY":
            by_index = server.query(f"select {columns} from {table} force index (`{name}`) where {first_column(server, table, name)} > -1"
                                    f" or {first_column(server, table, name)} is null or {first_column(server, table, name)} <= -1")
            assert by_index == expected, f"{what}: {name} has {by_index}, the rows {expected}"


def first_column(server, table, index):
    """Of an index, its first column."""
    return server.query("select column_name from information_schema.statistics where table_schema = 'test' and "
                        f"table_name = '{table}' and index_name = '{index}' and seq_in_index = 1")[0][0]


class Task(threading.Thread):
    """Runs something, and keeps how it ended."""

    def __init__(self, run, *arguments):
        super().__init__()
        self.run_it, self.arguments, self.failure = run, arguments, None
        self.start()

    def run(self):
        try:
            self.run_it(*self.arguments)
        except Exception as error:  # whatever it is, the test has to know
            self.failure = error

    def end(self):
        """Waits; raises what it failed with."""
        self.join()
        if self.failure:
            raise self.failure


class Writers:
    """Sessions that write in every way until they are stopped, or the server is gone."""

    def __init__(self, server, count, seed):
        self.server, self.stopping, self.done, self.statements = server, False, [0] * count, [""] * count
        self.tasks = [Task(self.write, n, random.Random(seed * 100 + n)) for n in range(count)]

    def write(self, n, source):
        try:
            connection = self.server.connect()
            rows(connection, f"set session innodb_lock_wait_timeout = 2, lock_wait_timeout = 2, foreign_key_checks = {source.randrange(4) > 0:d}")
            with tempfile.TemporaryDirectory() as directory:
                while not self.stopping:
                    try:
                        self.transaction(connection, source, n, directory)
                    except pymysql.err.MySQLError as error:
                        if error.args[0] not in CONFLICTS + LOST:
                            raise AssertionError(f"{self.statements[n]}: {error}, {rows(connection, 'show warnings')}") from error
                        connection.rollback()
                    self.done[n] += 1
            connection.close()
        except (pymysql.err.MySQLError, ConnectionError, OSError) as error:
            if error.args and error.args[0] not in LOST:
                raise

    def transaction(self, connection, source, n, directory):
        if source.random() < 0.1:
            xid = f"'{n} {self.done[n]}'"
            rows(connection, f"xa start {xid}")
            try:
                self.change(connection, source, n, directory)
                rows(connection, f"xa end {xid}")
                rows(connection, f"xa prepare {xid}")
                rows(connection, f"xa {source.choice(['commit', 'commit', 'rollback'])} {xid}")
            except pymysql.err.MySQLError as error:
                # A deadlock may have ended it already.
                for statement in (f"xa end {xid}", f"xa rollback {xid}"):
                    error_of(rows, connection, statement)
                if error.args[0] not in (*CONFLICTS, 1402, 1399):
                    raise
            return
        for _ in range(source.randrange(1, 5)):
            if source.random() < 0.2:
                rows(connection, "savepoint s")
                self.change(connection, source, n, directory)
                rows(connection, "rollback to s")
            self.change(connection, source, n, directory)
        if source.random() < 0.2:
            connection.rollback()
        else:
            connection.commit()

    def change(self, connection, source, n, directory):
        """One statement."""
        some = source.randrange(1, 3000)
        number = next(NUMBERS)
        few = source.randrange(1, 30)
        text = f"'{source.choice(['Text', 'text', 'other'])} {source.randrange(997)}'"
        parent = source.randrange(1, PARENTS + 1)
        statement = source.choice((
            f"insert into t (v, u, parent, text) values ({some}, {number}, {parent}, {text})",
            f"insert into t (v, u, text) select {some} + seq, {number} * 1000 + seq, {text} from seq_1_to_{few * 10}",
            f"update t set v = {some} where id = {some}",
            f"update t set v = v + 1, text = {text} where id between {some} and {some + few}",
            f"update t set u = {number} where id = {some}",
            f"update t set b = repeat('x', {few * 100}) where id between {some} and {some + few}",
            f"update t set id = id + 100000000 + {number % 1000} where id = {some}",
            f"delete from t where id between {some} and {some + few // 4}",
            f"replace into t (id, v, u, parent, text) values ({some}, {some}, {number}, {parent}, {text})",
            f"insert into t (id, v, u, text) values ({some}, {some}, {number}, {text}) on duplicate key update v = v + 7, u = values(u)",
            f"insert ignore into t (id, v, u) values ({some}, 1, {number}), ({some + 1}, 2, {number} + (1 << 60))",
            f"update parent set id = id + 1000 where id = {parent}",
            f"update parent set id = id - 1000 where id = {parent} + 1000",
            f"delete from parent where id = {parent} + 1000" if source.random() < 0.1 else f"update t set parent = null where id = {some}",
            "load data",
        ))
        if statement == "load data":
            path = os.path.join(directory, "rows.txt")
            with open(path, "w", encoding="ascii") as file:
                for i in range(few * 20):
                    file.write(f"{some + i}\t{number * 1000 + i}\tloaded {i}\n")
            os.chmod(directory, 0o755)
            statement = f"load data infile '{path}' into table t (v, u, text)"
        self.statements[n] = statement
        rows(connection, statement)

    def stop(self):
        """Ends them; how many transactions they made."""
        self.stopping = True
        for task in self.tasks:
            task.end()
        return sum(self.done)


OPTIONS = ["--teak-cache-size=64M", "--teak-checkpoint-log-size=16M", "--teak-log-segment-size=4M", "--teak-flush-log-at-trx-commit=2", "--secure-file-priv=",
           "--teak-sort-buffer-size=1M", "--log-bin", "--binlog-format=ROW", "--server-id=1"]
