#!/usr/bin/python3
"""ALTER TABLE ... ALGORITHM=COPY, LOCK=NONE, which MariaDB has since 11.2: the server copies a snapshot of the rows, and brings after what others write.

The rows are those that were written, each in all of its indexes. Without such a server there is nothing to test. Of partitioned tables such copies end with
errors 1032 and 1062 now and then, with InnoDB as with Teak (11.8.6), so that none is here; nor is one with rules of foreign keys, whose changes are not in the
server's notes: it refuses those.
"""

import sys

from kit.busy import fresh

from online import main
from rebuilds import beside_writers, in_turn, left_over

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
    fresh(server, 30_000, PLAIN)
    files = left_over(server)
    found = [beside_writers(server, what, n, "copy", ["copy to tmp table"]) for n, what in enumerate(COPIES if copies_beside_writers(server) else ())]
    assert left_over(server) == files, (files, left_over(server))
    print(f"    {sum(met for met, _ in found)} copies met by writers, beside {sum(done for _, done in found)} transactions")


def one_after_the_other(server):
    """Writers go on from one to the next."""
    fresh(server, 30_000, PLAIN)
    print(f"    copies beside {in_turn(server, COPIES + COPIES if copies_beside_writers(server) else (), 'copy')} transactions")


if __name__ == "__main__":
    sys.exit(main([the_same_rows, one_after_the_other]))
