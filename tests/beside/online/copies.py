#!/usr/bin/python3
"""ALTER TABLE ... ALGORITHM=COPY, LOCK=NONE, which MariaDB has since 11.2: the server copies a snapshot of the rows, and brings after what others write.

The rows are those that were written, each in all of its indexes. Without such a server there is nothing to test. Of partitioned tables such copies end with
errors 1032 and 1062 now and then, with InnoDB as with Teak (11.8.6), so that none is here; nor is one with rules of foreign keys, whose changes are not in the
server's notes: it refuses those.
"""

import sys

from kit.asking import rows, wait_until
from kit.busy import Writers, check, fresh

from online import SEED, Addition, main
from rebuilds import content, left_over

FIRST_RELEASE = (11, 2)
# In this order each finds what the one before has left.
COPIES = ("force", "modify v bigint not null, add index v (v)", "drop index v, add column c int not null default 7, add index c (c)", "modify text varchar(80) character set latin1",
          "drop column c, add index g (g), add unique vi (v, id)", "modify v int not null, modify u varchar(30) not null, drop index g", "add column s bigint as (v + 1) stored",
          "drop column s, modify u bigint not null, drop index vi, modify text varchar(60) collate utf8mb4_unicode_ci")
# Instead of a foreign key.
PLAIN = ")"


def copies_beside_writers(server):
    """Is there such a server? Not a debug server: 11.8.6 counts temporary files of one session as given back by another, and ends itself once a count is below
    zero, with InnoDB too. One that is none is told not to count."""
    version = server.query("select version()", database=None)[0][0]
    found = tuple(int(number) for number in version.split(".")[:2]) >= FIRST_RELEASE and "debug" not in version
    if found:
        server.query("set global max_tmp_session_space_usage = 0, max_tmp_total_space_usage = 0")
    return found


def the_same_rows(server):
    """Nobody writes after the last turn has begun: the table has what was there then."""
    done = met = 0
    fresh(server, 30_000, PLAIN)
    files = left_over(server)
    for n, what in enumerate(COPIES if copies_beside_writers(server) else ()):
        writers = Writers(server, 3, SEED + n)
        blocker = server.connect()
        try:
            alter = Addition(server, what, "copy")
            wait_until(lambda alter=alter: alter.state() == "copy to tmp table" or not alter.task.is_alive(), what)
            rows(blocker, "set session transaction isolation level read committed")
            rows(blocker, "select id from t limit 1")
            wait_until(lambda alter=alter: alter.state() == "Waiting for table metadata lock" or not alter.task.is_alive(), what)
            met += alter.task.is_alive()
        finally:
            done += writers.stop()
        before = content(blocker)
        blocker.rollback()
        outcome = alter.end()
        assert outcome is None, (what, outcome)
        assert content(blocker) == before, what
        blocker.close()
        check(server, what)
    assert left_over(server) == files, (files, left_over(server))
    print(f"    {met} copies met by writers, beside {done} transactions")


def one_after_the_other(server):
    """Writers go on from one to the next, and to what follows without a copy."""
    fresh(server, 30_000, PLAIN)
    writers = Writers(server, 3, SEED + 20)
    try:
        for what in COPIES + COPIES if copies_beside_writers(server) else ():
            server.query(f"alter table t {what}, algorithm=copy, lock=none")
            assert not any(task.failure for task in writers.tasks), [task.failure for task in writers.tasks]
    finally:
        done = writers.stop()
    check(server, "the last")
    print(f"    copies beside {done} transactions")


if __name__ == "__main__":
    sys.exit(main([the_same_rows, one_after_the_other]))
