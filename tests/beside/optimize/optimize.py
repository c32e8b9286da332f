#!/usr/bin/python3
"""OPTIMIZE TABLE packs a table in place while others write.

Whatever happens meanwhile, CHECK TABLE EXTENDED finds the table whole; and what is left of a table from which rows were deleted takes about as
much of the disk as a copy would.
"""

import glob
import os
import random
import sys
import time

import pymysql

from kit.asking import error_of, roll_back_prepared, rows, wait_until
from kit.busy import OPTIONS, Task, Writers, check, fresh
from kit.cases import on_server
from kit.options import parser, seed
from kit.replicas import follow, let_replicate
from kit.server import Server, free_port

SEED = seed()
OK = (("test.t", "optimize", "status", "OK"),)
DELETIONS = ("id % 2", "id % 10", "id < 36000", "id > 400")
INTERRUPTED = 1317
KILLED = (("test.t", "optimize", "Error", "Query execution was interrupted"), ("test.t", "optimize", "status", "Operation failed"))
# A file may have so many bytes more than that of a copy, besides a quarter.
SMALL = 512 << 10


def files(server):
    """Size, and bytes on disk, of each table's file."""
    found = {}
    for path in glob.glob(os.path.join(server.data, "#teak", "s[1-9]*.teak")):
        status = os.stat(path)
        found[path] = (status.st_size, status.st_blocks * 512)
    return found


def space(server):
    """What the largest file takes: that of the table."""
    return max(files(server).values())


def shrinks(server):
    """A table is packed as if it had been copied, whatever was deleted."""
    for condition in DELETIONS:
        server.query("drop database if exists test", database=None)
        server.query("create database test", database=None)
        server.query("create table t (id int primary key, v int, text varchar(100), b longblob, key (v), key (text))")
        server.query("insert into t select seq, seq * 7919 % 100003, concat(md5(seq), md5(seq + 1)), if(seq % 500, 'small', repeat(md5(seq), 1000))"
                     " from seq_1_to_40000")
        server.query("set global teak_checkpoint_now = on")
        server.query(f"delete from t where {condition}")
        before = space(server)
        expected = server.query("select count(*), sum(id), sum(v), sum(crc32(text)), sum(crc32(b)) from t")
        assert server.query("optimize table t") == OK
        assert server.query("check table t extended")[-1][3] == "OK", condition
        packed = space(server)
        assert server.query("select count(*), sum(id), sum(v), sum(crc32(text)), sum(crc32(b)) from t") == expected
        server.query("alter table t force, algorithm=copy")
        assert server.query("optimize table t") == OK
        copied = space(server)
        for what, ours, theirs in zip(("size", "disk"), packed, copied):
            assert ours <= theirs * 5 // 4 + SMALL, f"{condition}: {what} {ours}, {theirs} of a copy, {before} before"
        print(f"    {condition}: {before} bytes before, {packed} packed, {copied} copied")


def beside_writers(server):
    """All kinds of writers go on, a snapshot sees what it saw, and a prepared transaction without session is decided later."""
    fresh(server, 30_000)
    server.query("alter table t add index v (v), add index text (text, v)")
    prepared = server.connect()
    rows(prepared, "xa start 'left'")
    rows(prepared, "update t set b = 'prepared' where id between 20000 and 20100")
    rows(prepared, "xa end 'left'")
    rows(prepared, "xa prepare 'left'")
    prepared.close()
    old = server.connect()
    rows(old, "start transaction with consistent snapshot")
    columns = "select count(*), sum(id), sum(v), sum(u), sum(crc32(text)) from t"
    seen = rows(old, columns)
    server.query("delete from t where id between 3000 and 19999 and id % 3")
    writers = Writers(server, 3, SEED)
    try:
        for n in range(8):
            assert server.query("optimize table t, parent")[0] == OK[0]
            assert rows(old, columns) == seen, f"after {n}"
            assert not any(task.failure for task in writers.tasks), [task.failure for task in writers.tasks]
            if n == 3:
                old.close()
                old = server.connect()
                rows(old, "start transaction with consistent snapshot")
                seen = rows(old, columns)
    finally:
        done = writers.stop()
    old.close()
    check(server, "with a prepared transaction")
    wait_until(lambda: server.query("xa recover"), "the prepared transaction")
    server.query("xa commit 'left'")
    assert server.query("select count(*) from t where b = 'prepared'")[0][0] > 0
    assert server.query("optimize table t") == OK
    check(server, "at the end")
    print(f"    {done} transactions")


def layouts(server):
    """Rows of older layouts are written anew in place: a dropped column's space comes back while others write, an old snapshot sees what it saw, and
    a kill leaves rows of both kinds."""
    fresh(server, 40_000)
    server.query("alter table t add index v (v), add column pad varbinary(600), add column large longblob")
    server.query("update t set pad = random_bytes(600), large = if(id % 400, '', random_bytes(50000))")
    server.query("alter table t drop column pad, drop column large, add column late varchar(20) default 'late', algorithm=instant")
    # Large values whose rows become small, and small ones whose rows become large.
    server.query("alter table t add column later varbinary(10000) default (repeat('l', 3)), algorithm=instant")
    columns = "select count(*), sum(id), sum(v), sum(u), sum(crc32(text)), sum(crc32(late)), sum(crc32(later)) from t"
    old = server.connect()
    rows(old, "start transaction with consistent snapshot")
    seen = rows(old, columns)
    server.query("update t set b = 'newer than the snapshot' where id between 5000 and 7000")
    server.query("set global teak_checkpoint_now = on")
    before = space(server)
    # Nobody has changed the row: who writes it with a snapshot from before is in no conflict.
    writer = server.connect()
    rows(writer, "start transaction with consistent snapshot")
    assert server.query("optimize table t") == OK
    rows(writer, "update t set v = v + 1 where id = 30000")
    writer.close()
    writers = Writers(server, 2, SEED)
    try:
        for _ in range(3):
            assert server.query("optimize table t") == OK
            assert rows(old, columns) == seen
            assert not any(task.failure for task in writers.tasks), [task.failure for task in writers.tasks]
    finally:
        done = writers.stop()
    old.close()
    check(server, "beside writers")
    expected = server.query("checksum table t")
    assert server.query("optimize table t") == OK
    packed = space(server)
    server.kill()
    server.start(OPTIONS)
    roll_back_prepared(server)
    check(server, "after a kill")
    assert server.query("checksum table t") == expected
    server.query("alter table t force, algorithm=copy")
    assert server.query("checksum table t") == expected
    assert server.query("optimize table t") == OK
    copied = space(server)
    for what, ours, theirs, first in zip(("size", "disk"), packed, copied, before):
        assert ours <= theirs * 5 // 4 + SMALL and ours < first // 4, f"{what} {ours}, {theirs} of a copy, {first} before"
    print(f"    {before} bytes before, {packed} packed, {copied} copied, {done} transactions")


def killed_while_packing(server, n, seconds):
    """The server is killed beside writers, so many seconds after packing has begun, and started again."""
    writers = Writers(server, 2, SEED + n)
    task = Task(lambda: error_of(lambda: [server.query("optimize table t") for _ in range(1000)]))
    time.sleep(seconds)
    server.kill()
    task.end()
    writers.stopping = True
    try:
        writers.stop()
    except (OSError, RuntimeError):
        pass
    server.start(OPTIONS)
    roll_back_prepared(server)
    check(server, f"crash {n}")


def killed_layouts(server):
    """A crash while rows are written anew."""
    fresh(server, 30_000)
    server.query("alter table t add index v (v)")
    source = random.Random(SEED)
    for n in range(5):
        server.query(f"alter table t add column c{n} varchar(100) default 'of kill {n}', algorithm=instant")
        killed_while_packing(server, n, source.random())
        where = " or ".join(f"c{i} <> 'of kill {i}'" for i in range(n + 1))
        assert server.query(f"select count(*) from t where {where}") == ((0,),)


def readable(server, table):
    """Of each hundred rows what they are, or that they cannot be read."""
    parts = {}
    for first in range(0, 20_000, 100):
        try:
            parts[first] = server.query(f"select count(*), sum(id), sum(v), sum(crc32(pad)) from {table} force index (primary) where id between {first} and {first + 99}")
        except pymysql.err.MySQLError:
            assert server.is_running(), server.log_end(30)
            parts[first] = None
    return parts


def spoiled(server):
    """Two tables of which half was deleted, one with rows of two layouts, and what they have; the server is stopped."""
    server.query("drop database if exists test", database=None)
    server.query("create database test", database=None)
    for table in ("t", "older"):
        server.query(f"create table {table} (id int primary key, v int, pad varbinary(300), gone int, key (v))")
        server.query(f"insert into {table} select seq, seq, random_bytes(300), 5 from seq_1_to_20000")
        server.query(f"delete from {table} where id % 3 = 0")
    server.query("alter table older drop column gone, algorithm=instant")
    content = {table: readable(server, table) for table in ("t", "older")}
    server.stop()
    return content


def refusal(server, statement):
    """Why a statement was not carried out: its error, or what it answers with. None: it was."""
    try:
        found = server.query(statement)
    except pymysql.err.MySQLError as error:
        assert server.is_running(), server.log_end(30)
        return error.args
    return found if found and found[-1][2:] != ("status", "OK") else None


def read_only(server):
    """An engine that does not write says so, and all is as it was."""
    content = spoiled(server)
    server.start([*OPTIONS, "--teak-force-recovery=2"])
    before = files(server)
    for table in content:
        for statement in (f"optimize table {table}", f"alter table {table} force, algorithm=inplace, lock=none"):
            found = refusal(server, statement)
            assert found and "read" in str(found).lower(), f"{statement}: {found}"
        assert readable(server, table) == content[table]
    assert files(server) == before
    server.stop()
    server.start(OPTIONS)
    for table in content:
        assert server.query(f"check table {table} extended")[-1][3] == "OK"
        assert refusal(server, f"optimize table {table}") is None
        assert readable(server, table) == content[table]


def damaged(server):
    """What can be read of a damaged table stays what it is; a rebuild is an error, and so is OPTIMIZE if it comes by the damage."""
    source = random.Random(SEED)
    for _ in range(4):
        content = spoiled(server)
        for path, (size, _) in files(server).items():
            if size < 1 << 20:
                continue
            with open(path, "r+b") as file:
                for place in source.sample(range(size // 4, size * 3 // 4), 6):
                    file.seek(place)
                    file.write(source.randbytes(64))
        server.start(OPTIONS)
        outcomes = []
        for table in content:
            before = readable(server, table)
            assert all(part in (None, content[table][first]) for first, part in before.items())
            whole = before == content[table]
            refused = refusal(server, f"optimize table {table}")
            after = readable(server, table)
            assert after == before, f"{table}: OPTIMIZE has changed {[first for first in before if before[first] != after[first]]}"
            assert whole or refused or table == "t", f"{table}: {refused}"
            assert whole or refusal(server, f"alter table {table} force, algorithm=inplace, lock=none"), f"a damaged table was rebuilt: {table}"
            assert readable(server, table) == before or whole
            outcomes.append((sum(part is None for part in before.values()), refused and refused[-1][-1]))
        print(f"    unreadable parts, and what OPTIMIZE says: {outcomes}")


def answer(connection):
    """What the statement answers with, or number and text of its error."""
    try:
        return rows(connection, "optimize table t")
    except pymysql.err.MySQLError as error:
        return error.args


def killed_statements(server):
    """KILL ends it wherever it is; the next one goes on."""
    fresh(server, 60_000)
    server.query("alter table t add index v (v)")
    server.query("delete from t where id % 3 = 0")
    killed = 0
    watcher = server.connect(autocommit=True)
    for n in range(10):
        server.query(f"update t set b = repeat('x', {n}) where id % 10 = {n}")
        connection = server.connect(autocommit=True)
        number = connection.thread_id()
        outcome = []
        task = Task(lambda c=connection, o=outcome: o.append(answer(c)))
        state = f"select 1 from information_schema.processlist where id = {number} and state = 'Packing table'"
        wait_until(lambda t=task, s=state: not t.is_alive() or rows(watcher, s), "the statement")
        rows(watcher, f"kill query {number}")
        task.end()
        killed += outcome != [OK]
        # It answers with a table, unless the signal comes before it or behind.
        assert outcome == [OK] or outcome[0][0] == INTERRUPTED or outcome == [KILLED], outcome
        check(server, f"kill {n}")
    assert server.query("optimize table t") == OK
    check(server, "at the end")
    print(f"    {killed} of 10 were killed before their end")


def killed_servers(server):
    """A crash in the middle leaves what was written."""
    fresh(server, 30_000)
    server.query("alter table t add index v (v), add index text (text, v)")
    source = random.Random(SEED)
    for n in range(5):
        server.query(f"delete from t where id % 7 = {n}")
        killed_while_packing(server, n, source.random())
        assert server.query("optimize table t") == OK
        check(server, f"packed after crash {n}")


def replica(server):
    """The statement is in the binary log, and a replica packs its own table."""
    server.query("reset master", database=None)
    fresh(server, 20_000)
    second = Server(os.path.join(os.path.dirname(server.directory), "replica"), server.plugin_dir)
    second.install()
    second.start(["--server-id=2", "--log-bin", "--log-slave-updates", "--secure-file-priv="])
    try:
        let_replicate(server.connect(autocommit=True))
        follow(second.connect(autocommit=True), server.port)
        server.query("delete from t where id % 2")
        assert server.query("optimize table t") == OK
        server.query("optimize no_write_to_binlog table t")
        position = server.query("select @@gtid_binlog_pos")[0][0]
        assert second.query(f"select master_gtid_wait('{position}', 300)", database=None) == ((0,),)
        logs = [row[0] for row in second.query("show binary logs")]
        events = [row[5] for name in logs for row in second.query(f"show binlog events in '{name}'")]
        assert sum("optimize" in event.lower() for event in events) == 1, events[-10:]
        check(second, "on the replica")
        assert second.query("checksum table t") == server.query("checksum table t")
    finally:
        second.kill()


TESTS = [shrinks, beside_writers, layouts, killed_layouts, killed_statements, killed_servers, read_only, damaged, replica]


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    port = free_port()
    server = Server(os.path.join(arguments.directory, "server"), arguments.plugin_dir, port)
    server.port = port
    return on_server(TESTS, arguments.names, server, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
