#!/usr/bin/python3
"""ALTER TABLE that writes all rows anew, ALGORITHM=INPLACE, LOCK=NONE, while others write.

Whatever happens meanwhile, the table has the rows that were written, each in all of its indexes; and nothing is left of an ALTER that did not come to its end.
"""

import glob
import os
import random
import sys
import time

from kit.asking import error_of, roll_back_prepared, rows, wait_until
from kit.busy import OPTIONS, Writers, check, fresh

from online import BUILDING, CHANGED, DUPLICATE, INTERRUPTED, SEED, TIMEOUT, Addition, main

TRUNCATED = 1265
# In this order each finds what the one before has left.
REBUILDS = ("force", "drop primary key, add primary key (u), add unique id (id)", "drop primary key, add primary key (id desc), drop index id, add index v (v)",
            "add column c int not null default 7, add index c (c), drop index v, force", "drop column c, drop primary key, add primary key (u, id), add unique id (id), add index g (g)",
            "modify v int, drop index g", "modify v int not null", "drop primary key, add primary key (id), drop index id, engine=teak",
            "modify u decimal(30) not null, modify v bigint not null", "modify u varchar(30) not null, modify v varchar(20) not null, modify text varchar(80) character set latin1, add index v (v)",
            "modify u bigint not null, modify v int not null, modify text varchar(60) collate utf8mb4_unicode_ci, add unique u (u)",
            "modify id bigint unsigned not null auto_increment, drop index u, drop index v")


def content(connection):
    """What the rows say, whatever columns come and go."""
    texts = ", ".join(f"ifnull({column}, 'null')" for column in ("id", "v", "u", "parent", "text", "b", "g"))
    return rows(connection, f"select count(*), sum(crc32(concat_ws('|', {texts}))) from t")


def left_over(server):
    """Files of tables, and tables that wait to take a place."""
    files = len(glob.glob(os.path.join(server.data, "#teak", "s*.teak")))
    return files, server.query("select count(*) from information_schema.teak_tables where table_schema = '#rebuild'")[0][0]


def rebuild(server, what):
    """An ALTER in a session of its own."""
    return Addition(server, what, "inplace")


def held(server):
    """An ALTER that waits for a transaction, at its end, and that transaction."""
    while True:
        alter, holder = rebuild(server, "force"), server.connect()
        wait_until(lambda: alter.state() in BUILDING or not alter.task.is_alive(), "the rebuild")
        rows(holder, "select id from t limit 1")
        wait_until(lambda: alter.state() == "Waiting for table metadata lock" or not alter.task.is_alive(), "the wait")
        if alter.task.is_alive():
            return alter, holder
        # It was faster.
        assert alter.end() is None
        holder.close()


def beside_writers(server, what, number, algorithm="inplace", states=BUILDING):
    """One ALTER, of which nobody writes after the last turn has begun: the table has what was there then. Whether it was met, and how many transactions there were."""
    writers = Writers(server, 3, SEED + number)
    blocker = server.connect()
    try:
        # It keeps the ALTER from its end; that it begins before is what a wait for the state sees.
        alter = Addition(server, what, algorithm)
        wait_until(lambda: alter.state() in states or not alter.task.is_alive(), what)
        rows(blocker, "set session transaction isolation level read committed")
        rows(blocker, "select id from t limit 1")
        wait_until(lambda: alter.state() == "Waiting for table metadata lock" or not alter.task.is_alive(), what)
        met = alter.task.is_alive()
    finally:
        # Who waits for the ALTER gives up.
        done = writers.stop()
    before = content(blocker)
    blocker.rollback()
    outcome = alter.end()
    assert outcome is None, (what, outcome)
    assert content(blocker) == before, what
    blocker.close()
    check(server, f"{what}, met {met}")
    return met, done


def in_turn(server, alterations, algorithm="inplace"):
    """Writers go on from one ALTER to the next; how many transactions there were."""
    writers = Writers(server, 3, SEED + 20)
    try:
        for what in alterations:
            server.query(f"alter table t {what}, algorithm={algorithm}, lock=none")
            assert not any(task.failure for task in writers.tasks), [task.failure for task in writers.tasks]
    finally:
        done = writers.stop()
    check(server, "the last")
    return done


def the_same_rows(server):
    """Each finds what the one before has left."""
    fresh(server, 30_000)
    done = sum(beside_writers(server, what, n)[1] for n, what in enumerate(REBUILDS))
    assert left_over(server) == (4, 0), left_over(server)
    print(f"    {len(REBUILDS)} rebuilds beside {done} transactions")


def one_after_the_other(server):
    """Writers go on from one to the next."""
    fresh(server, 30_000)
    done = in_turn(server, REBUILDS + REBUILDS)
    assert left_over(server) == (4, 0), left_over(server)
    print(f"    {2 * len(REBUILDS)} rebuilds beside {done} transactions")


def errors_of_rows(server):
    """Two rows with one key, and NULLs: what counts is what is there at the end; before it began as well."""
    fresh(server, 60_000)
    writer, files = server.connect(), left_over(server)
    for statement, what, expected in (
        ("insert into t (v, u) values (1, 4711)", "drop primary key, add primary key (u), add unique id (id)", (DUPLICATE, "Duplicate entry '4711' for key 'PRIMARY'")),
        ("insert into t (v, u, text) values (1, 4711, 'x')", "add unique u (u), drop primary key, add primary key (id, v)", (DUPLICATE, "Duplicate entry '4711' for key 'u'")),
        ("update t set text = null where id = 7", "modify text varchar(60) collate utf8mb4_unicode_ci not null", (TRUNCATED, "Data truncated for column 'text' at row 7")),
        ("update t set text = null where id = 7", "modify text varchar(60) character set latin1 not null", (TRUNCATED, "Data truncated for column 'text' at row 7")),
        ("update t set text = 'longer than 12' where id in (7, 50000)", "modify text varchar(12) collate utf8mb4_unicode_ci", (TRUNCATED, "Data truncated for column 'text' at row 7")),
        ("update t set text = 'no \u01ff' where id = 7", "modify v bigint not null, modify text varchar(60) character set latin1",
         (1366, "Incorrect string value: '\\xC7\\xBF' for column `test`.`t`.`text` at row 7")),
        ("insert into t (v, u) values (1, 4711)", "modify u varchar(20) not null, add unique u (u)", (DUPLICATE, "Duplicate entry '4711' for key 'u'")),
    ):
        # Beside it, and before it.
        for is_open in (True, False):
            if is_open:
                alter = rebuild(server, what)
                alter.builds()
            rows(writer, statement)
            if is_open:
                alter.waits()
                writer.commit()
                outcome = alter.end()
            else:
                writer.commit()
                outcome = error_of(server.query, f"alter table t {what}, algorithm=inplace, lock=none")
            assert outcome == expected, (is_open, what, outcome)
            assert left_over(server) == files, left_over(server)
            server.query("delete from t where v = 1 and u = 4711")
            server.query("update t set text = 'Text 7' where id in (7, 50000)")
            check(server, what)
    # They come and go.
    alter = rebuild(server, "drop primary key, add primary key (u), add unique id (id)")
    alter.builds()
    rows(writer, "insert into t (v, u) select 1, seq from seq_1_to_50")
    writer.commit()
    rows(writer, "update t set u = 5 - u where id in (2, 3)")
    rows(writer, "delete from t where id > 60000")
    alter.waits()
    writer.commit()
    outcome = alter.end()
    assert outcome is None, outcome
    check(server, "after duplicates that have gone")
    assert server.query("select id from t where u = 2") == ((3,),)
    writer.close()


def old_snapshots_and_xa(server):
    """A snapshot from before the end does not see the new table, a prepared transaction is waited for."""
    for what in "force", "modify u decimal(30) not null, modify v varchar(20) not null":
        old_snapshot_and_xa(server, what)


def old_snapshot_and_xa(server, what):
    fresh(server, 60_000)
    old, writer = server.connect(), server.connect()
    rows(old, "start transaction with consistent snapshot")
    alter = rebuild(server, what)
    alter.builds()
    rows(writer, "xa start 'x'")
    rows(writer, "update t set v = v + 1000000 where id <= 100")
    rows(writer, "xa end 'x'")
    rows(writer, "xa prepare 'x'")
    alter.waits()
    assert error_of(server.query, "set statement lock_wait_timeout = 1 for insert into t (v, u) values (1, 2)")[0] == TIMEOUT
    rows(writer, "xa commit 'x'")
    assert alter.end() is None
    assert error_of(rows, old, "select count(*) from t")[0] == CHANGED
    assert rows(old, "select count(*) from parent") == ((200,),)
    old.rollback()
    assert rows(old, "select count(*) from t where v >= 1000000") == ((100,),)
    check(server, "after XA")
    old.close()
    writer.close()


def killed_statements(server):
    """KILL at any moment: the table is as it was, and nothing is left."""
    fresh(server, 40_000)
    files = left_over(server)
    writers = Writers(server, 2, SEED + 1)
    source = random.Random(SEED)
    interrupted = 0
    try:
        for n in range(9):
            if n < 3:
                # However fast the machine is.
                alter, holder = held(server)
            else:
                alter, holder = rebuild(server, source.choice(["force", "modify v varchar(20) not null", "modify v int not null"])), None
                wait_until(lambda alter=alter: alter.state() in BUILDING or not alter.task.is_alive(), "the rebuild")
                time.sleep(source.random() * 0.5)
            error_of(server.query, f"kill query {alter.id}")
            outcome = alter.end()
            assert outcome is None or outcome[0] == INTERRUPTED, outcome
            assert outcome or not holder
            interrupted += outcome is not None
            if holder:
                holder.close()
            assert left_over(server) == files, left_over(server)
    finally:
        writers.stop()
    check(server, "after kills")
    server.query("alter table t force, algorithm=inplace, lock=none")
    check(server, "after the last")
    print(f"    {interrupted} of 9 were killed")


# What a new table is known by.
KILLED = {
    "drop primary key, add primary key (u), add unique id (id), add index g (g)": "PRIMARY KEY (`u`)",
    "modify u decimal(30) not null, modify text varchar(80) character set latin1, add unique u (u), add index text (text)": "`u` decimal(30,0)",
}


def killed_servers(server):
    """SIGKILL at any moment: the old table is there, or the new one, whole, and nothing of the other."""
    source = random.Random(SEED + 2)
    there = 0
    for n in range(8):
        what = list(KILLED)[n % 2]
        fresh(server, 30_000)
        files = left_over(server)
        writers = Writers(server, 2, SEED + 10 + n)
        alter = rebuild(server, what)
        if source.random() < 0.8:
            wait_until(lambda alter=alter: alter.state() in BUILDING or not alter.task.is_alive(), "the rebuild")
        time.sleep(source.random() * source.choice([0.05, 0.3, 1]))
        server.kill()
        alter.task.end()
        writers.stop()
        server.start(OPTIONS)
        roll_back_prepared(server)
        is_new = KILLED[what] in server.query("show create table t")[0][1]
        there += is_new
        assert left_over(server) == files, left_over(server)
        check(server, f"kill {n}, new: {is_new}")
        if is_new:
            assert error_of(server.query, "insert into t (v, u) select 1, u from t limit 1")[0] == DUPLICATE
        server.query("alter table t force, algorithm=inplace, lock=none")
        check(server, f"after kill {n}")
    print(f"    the new table was there after {there} of 8 kills")


TESTS = [errors_of_rows, old_snapshots_and_xa, the_same_rows, one_after_the_other, killed_statements, killed_servers]

if __name__ == "__main__":
    sys.exit(main(TESTS))
