#!/usr/bin/env python3
"""What the query cache keeps of Teak's tables and serves, case by case: hits where there can be some, and never a result that the session would not read.

The cases that InnoDB can do are carried out with its tables first. Where it serves less, or what it should not, the case says so (`innodb`).
"""

import os
import sys
import time

import pymysql

from kit.cases import chosen, on_server
from kit.options import parser
from kit.server import Server

OPTIONS = ["--query-cache-type=1", "--query-cache-size=16M", "--innodb-lock-wait-timeout=1", "--lock-wait-timeout=20", "--log-bin=b", "--server-id=1"]


class Session:
    """A connection that tells what was served to it."""

    def __init__(self, server, level="REPEATABLE READ"):
        self.server = server
        self.cursor = server.connect(autocommit=True).cursor()
        self.do(f"SET SESSION default_storage_engine = {server.engine}", f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")

    def do(self, *statements):
        """Runs them, and returns the rows of the last."""
        for statement in statements:
            self.cursor.execute(statement)
        return self.cursor.fetchall()

    def hits(self):
        """How many results the server has served so far."""
        return int(self.do("SHOW STATUS LIKE 'Qcache_hits'")[0][1])

    def read(self, query, rows, served, innodb=None):
        """The query gives `rows`, from the cache or not; `innodb`: of InnoDB's tables, if that is another."""
        if innodb is not None and self.server.engine == "InnoDB":
            served = innodb
        before = self.hits()
        found, was_served = self.do(query), self.hits() > before
        expected = tuple(row if isinstance(row, tuple) else (row,) for row in rows)
        assert found == expected, f"{query}: {found}, not {expected} ({'served' if was_served else 'read'})"
        assert was_served == served, f"{query}: {'served' if was_served else 'not served'}"

    def keep(self, query, rows, innodb=None):
        """It is read, kept, and served the next time."""
        self.read(query, rows, served=False)
        self.read(query, rows, served=True, innodb=innodb)

    def close(self):
        """Ends, and waits until the server has ended it."""
        number = self.cursor.connection.thread_id()
        self.cursor.connection.close()
        deadline = time.monotonic() + 20
        while self.server.query(f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {number}"):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def fails(self, statement, number):
        """It ends with this error."""
        try:
            found = self.do(statement)
        except pymysql.err.MySQLError as error:
            assert error.args[0] == number, error
        else:
            raise AssertionError(f"{statement}: {found}")


def tables(server, *statements):
    """A new database, and a table t with three rows unless something else is wanted."""
    server.query("DROP DATABASE IF EXISTS test", database=None)
    server.query("CREATE DATABASE test", database=None)
    session = Session(server)
    session.do(*(statements or ("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")))
    return session


SUM = "SELECT SUM(v) FROM t"


def results_are_kept_until_a_commit_changes_the_table(server):
    a, b = tables(server), Session(server)
    a.keep(SUM, [60])
    b.read(SUM, [60], served=True)
    b.do("UPDATE t SET v = 11 WHERE id = 1")
    a.keep(SUM, [61])
    b.do("INSERT INTO t VALUES (4, 0)", "DELETE FROM t WHERE id = 3", "REPLACE INTO t VALUES (1, 1)")
    a.keep(SUM, [21])
    b.do("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    a.read(SUM, [21], served=True)
    both = "SELECT SUM(v), MAX(other.id) FROM t, other"
    a.keep(both, [(21, 1)])
    b.do("INSERT INTO other VALUES (2)")
    a.keep(both, [(42, 2)])


def uncommitted_changes_are_served_to_nobody(server):
    a, b = tables(server), Session(server)
    a.keep(SUM, [60])
    b.do("BEGIN", "UPDATE t SET v = 11 WHERE id = 1")
    # The statement has dropped it; for others it is kept again, and what has changed is the writer's alone. InnoDB has
    # nothing in the cache of a table in which somebody has locked a row.
    a.keep(SUM, [60], innodb=False)
    b.read(SUM, [61], served=False)
    b.read(SUM, [61], served=False)
    a.read(SUM, [60], served=True, innodb=False)
    b.do("COMMIT")
    a.keep(SUM, [61])
    for end in ("ROLLBACK", "ROLLBACK TO SAVEPOINT s"):
        b.do("BEGIN", "SAVEPOINT s", "UPDATE t SET v = 12 WHERE id = 1")
        a.keep(SUM, [61], innodb=False)
        b.read(SUM, [62], served=False)
        b.do(end)
        b.read(SUM, [61], served=end == "ROLLBACK", innodb=False)
        b.do("COMMIT")
        a.read(SUM, [61], served=True, innodb=end == "ROLLBACK")
    a.do(SUM)
    # A statement that fails.
    b.fails("UPDATE t SET id = 3, v = 13 WHERE id = 2 OR id = 1", 1062)
    a.read(SUM, [61], served=True)


def a_snapshot_neither_takes_what_is_newer_nor_leaves_what_is_older(server):
    old, writer, other = tables(server), Session(server), Session(server)
    old.do("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    writer.do("UPDATE t SET v = 11 WHERE id = 1")
    other.keep(SUM, [61])
    other.do("BEGIN")
    for _ in range(2):
        old.read(SUM, [60], served=False)
    other.keep(SUM, [61])
    for _ in range(2):
        old.read(SUM, [60], served=False)
    other.read(SUM, [61], served=True)
    other.do("COMMIT")
    other.read(SUM, [61], served=True)
    old.do("COMMIT", "BEGIN")
    old.read(SUM, [61], served=True)
    # What was served first is what the transaction reads again.
    writer.do("UPDATE t SET v = 12 WHERE id = 1", "UPDATE t SET v = 13 WHERE id = 1")
    other.do("BEGIN")
    other.keep(SUM, [63])
    old.read(SUM, [61], served=False)
    old.read("SELECT SQL_NO_CACHE SUM(v) FROM t", [61], served=False)
    old.do("COMMIT")
    # Tables that were changed before the snapshot only are served to it.
    other.do("COMMIT", "CREATE TABLE u (v INT)", "INSERT INTO u VALUES (5)", "SELECT * FROM u")
    old.do("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    writer.do("UPDATE t SET v = 14 WHERE id = 1")
    other.do("BEGIN")
    other.keep("SELECT SUM(v) FROM u", [5])
    old.read("SELECT SUM(v) FROM u", [5], served=True)
    old.read("SELECT SUM(t.v) + MAX(u.v) FROM t, u", [68], served=False)


def read_committed_takes_the_newest(server):
    for level in ("READ COMMITTED", "READ UNCOMMITTED"):
        a, b = tables(server), Session(server, level)
        writer = Session(server)
        b.do("BEGIN")
        b.keep(SUM, [60])
        writer.do("UPDATE t SET v = 11 WHERE id = 1")
        b.keep(SUM, [61])
        writer.do("BEGIN", "UPDATE t SET v = 12 WHERE id = 1")
        # Teak has no reads of what is not committed.
        seen = int(server.engine == "InnoDB" and level == "READ UNCOMMITTED")
        b.keep(SUM, [61 + seen], innodb=False)
        b.do("UPDATE t SET v = 21 WHERE id = 2")
        b.read(SUM, [62 + seen], served=False)
        b.read(SUM, [62 + seen], served=False)
        a.keep(SUM, [61], innodb=False)
        b.do("COMMIT")
        writer.do("ROLLBACK")


def serializable_reads_lock(server):
    a, b = tables(server), Session(server, "SERIALIZABLE")
    a.do("BEGIN")
    a.keep(SUM, [60])
    b.do("BEGIN")
    # InnoDB learns of the level of a session when that locks a table for the first time, and serves what locks nothing.
    b.read(SUM, [60], served=False, innodb=True)
    if server.engine == "InnoDB":
        b.do("SELECT * FROM t")
        b.read(SUM, [60], served=False)
    a.fails("UPDATE t SET v = 0", 1205)


def transactions_without_begin(server):
    a, b = tables(server), Session(server)
    a.do("SET autocommit = 0")
    a.keep(SUM, [60])
    b.do("UPDATE t SET v = 11 WHERE id = 1")
    for _ in range(2):
        a.read(SUM, [60], served=False)
    a.do("COMMIT")
    a.keep(SUM, [61])
    a.do("UPDATE t SET v = 12 WHERE id = 1")
    b.read(SUM, [61], served=False)
    b.read(SUM, [61], served=True, innodb=False)
    for _ in range(2):
        a.read(SUM, [62], served=False)
    a.do("COMMIT")
    b.keep(SUM, [62])
    # With a level for one transaction only.
    a.do("SET autocommit = 1", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN")
    a.keep(SUM, [62])
    b.do("UPDATE t SET v = 13 WHERE id = 1")
    a.keep(SUM, [63])
    a.do("COMMIT", "BEGIN")
    a.read(SUM, [63], served=True)
    b.do("UPDATE t SET v = 14 WHERE id = 1")
    a.read(SUM, [63], served=False)
    a.do("COMMIT")
    # And in one that only reads, and one of XA that was only served.
    a.do("START TRANSACTION READ ONLY")
    a.keep(SUM, [64])
    a.do("COMMIT", "XA START 'r'")
    a.read(SUM, [64], served=True)
    a.do("XA END 'r'", "XA PREPARE 'r'")
    b.do("UPDATE t SET v = 15 WHERE id = 1")
    a.do("XA COMMIT 'r'")
    a.keep(SUM, [65])


def what_a_statement_does_not_name(server):
    a, b = tables(server), Session(server)
    a.do(
        "CREATE TABLE log (n INT)", "INSERT INTO log VALUES (0)", "CREATE VIEW seen AS SELECT MAX(n) AS n FROM log",
        "CREATE TRIGGER changed AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (NEW.v)",
    )
    a.keep("SELECT n FROM seen", [0])
    b.do("BEGIN", "UPDATE t SET v = 11 WHERE id = 1")
    a.keep("SELECT n FROM seen", [0], innodb=False)
    b.read("SELECT n FROM seen", [11], served=False)
    b.read("SELECT n FROM seen", [11], served=False)
    b.do("COMMIT")
    a.keep("SELECT n FROM seen", [11])
    # What a locked table's owner reads is not served, nor kept.
    a.do("LOCK TABLES t WRITE")
    a.do("UPDATE t SET v = 12 WHERE id = 1")
    for _ in range(2):
        a.read(SUM, [62], served=False)
    a.do("UNLOCK TABLES")
    a.keep(SUM, [62])


def names_of_any_letters(server):
    names = ("`a-b`", "`tä b#P#x`", "`#P#`", "`ü/.`", "`SELECT`")
    a, b = tables(server, *(f"CREATE TABLE {name} (v INT)" for name in names)), Session(server)
    for name in names:
        a.keep(f"SELECT COUNT(*) FROM {name}", [0])
        b.do(f"INSERT INTO {name} VALUES (1)")
        a.keep(f"SELECT COUNT(*) FROM {name}", [1])
        a.read(f"SELECT COUNT(*) FROM {name}", [1], served=True)


def children_follow_their_parents(server):
    for rule, changes in (("CASCADE", [(1, 1), (7, 2)]), ("SET NULL", [(1, 1), (None, 2)])):
        a = tables(
            server,
            "CREATE TABLE p (id INT PRIMARY KEY)",
            f"CREATE TABLE c (p INT, n INT, FOREIGN KEY (p) REFERENCES p (id) ON UPDATE {rule} ON DELETE CASCADE)",
            "INSERT INTO p VALUES (1), (2)", "INSERT INTO c VALUES (1, 1), (2, 2)",
        )
        b, children = Session(server), "SELECT p, n FROM c ORDER BY n"
        a.keep(children, [(1, 1), (2, 2)])
        b.do("BEGIN", "UPDATE p SET id = 7 WHERE id = 2")
        b.read(children, changes, served=False)
        b.read(children, changes, served=False)
        a.read(children, [(1, 1), (2, 2)], served=True)
        b.do("COMMIT")
        a.keep(children, changes)
        b.do("DELETE FROM p WHERE id = 1")
        a.keep(children, changes[1:])


def definitions_change(server):
    a = tables(server)
    old = Session(server)
    every = "SELECT * FROM t ORDER BY id"
    rows = [(1, 10), (2, 20), (3, 30)]
    a.keep(every, rows)
    a.do("ALTER TABLE t ADD COLUMN w INT DEFAULT 5, ALGORITHM=INSTANT")
    a.keep(every, [row + (5,) for row in rows])
    a.do("ALTER TABLE t DROP COLUMN w, FORCE")
    a.keep(every, rows)
    for change in ("ADD INDEX v (v)", f"ENGINE={server.engine}", "MODIFY v BIGINT", "DROP INDEX v"):
        a.do(f"ALTER TABLE t {change}")
        a.keep(every, rows)
    a.do("OPTIMIZE TABLE t")
    a.read(every, rows, served=False)
    a.do("TRUNCATE TABLE t")
    a.keep(every, [])
    a.do("CREATE TABLE u (id INT PRIMARY KEY, v INT)", "INSERT INTO u VALUES (8, 80)")
    a.keep("SELECT * FROM u", [(8, 80)])
    a.do("RENAME TABLE t TO x, u TO t, x TO u")
    a.keep(every, [(8, 80)])
    a.keep("SELECT * FROM u", [])
    # An older snapshot gets an error for the emptied table, not what is kept of it. InnoDB serves what is kept.
    old.do("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    a.do("TRUNCATE TABLE t", "BEGIN")
    a.keep(every, [])
    if server.engine == "InnoDB":
        old.read(every, [], served=True)
    else:
        old.fails(every, 1412)
    old.do("COMMIT")
    a.do("COMMIT", "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (9)")
    a.keep(every, [9])


def tablespaces_come_and_go(server):
    a = tables(server)
    a.keep(SUM, [60])
    a.do("FLUSH TABLES t FOR EXPORT")
    path = os.path.join(server.data, "test", {"Teak": "t.teak", "InnoDB": "t.ibd"}[server.engine])
    with open(path, "rb") as exported:
        content = exported.read()
    a.do("UNLOCK TABLES", "UPDATE t SET v = 0")
    a.keep(SUM, [0])
    a.do("ALTER TABLE t DISCARD TABLESPACE")
    a.fails(SUM, 1814)
    with open(path, "wb") as file:
        file.write(content)
    a.do("ALTER TABLE t IMPORT TABLESPACE")
    a.keep(SUM, [60])


def partitions_are_tables_of_their_own(server):
    a = tables(
        server,
        "CREATE TABLE t (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2"
        " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (30, 30)",
        "CREATE TABLE u (id INT PRIMARY KEY, v INT)", "INSERT INTO u VALUES (3, 7)",
    )
    b, one = Session(server), "SELECT SUM(v) FROM t PARTITION (p0)"
    a.keep(SUM, [60])
    b.do("UPDATE t SET v = 31 WHERE id = 30")
    a.keep(SUM, [61])
    a.keep(one, [30])
    old = Session(server)
    old.do("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    b.do("BEGIN", "UPDATE t SET v = 11 WHERE id = 1")
    a.keep(SUM, [61], innodb=False)
    b.read(SUM, [62], served=False)
    b.do("COMMIT")
    # It is dropped although no statement came in between.
    a.keep(SUM, [62])
    old.read(SUM, [61], served=False)
    old.do("COMMIT")
    b.do("ALTER TABLE t TRUNCATE PARTITION p1")
    a.keep(SUM, [31])
    a.keep(one, [31])
    b.do("ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION p2 VALUES LESS THAN (2), PARTITION p3 VALUES LESS THAN (10))")
    a.keep(SUM, [31])
    a.do("CREATE TABLE w (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 2", "INSERT INTO w VALUES (1, 1)")
    a.keep("SELECT SUM(v) FROM w", [1])
    b.do("ALTER TABLE w EXCHANGE PARTITION p1 WITH TABLE u")
    a.keep("SELECT SUM(v) FROM w", [7])
    a.keep("SELECT SUM(v) FROM u", [1])
    # Of two such tables none is right any more.
    both = "SELECT SUM(t.v) + MAX(w.v) FROM t, w"
    a.keep(both, [38])
    b.do("BEGIN", "UPDATE t SET v = 12 WHERE id = 1", "UPDATE w SET v = 8")
    a.keep(both, [38], innodb=False)
    b.do("COMMIT")
    a.keep(both, [40])


def temporary_tables_hide_others(server):
    a, b = tables(server), Session(server)
    a.keep(SUM, [60])
    b.do("CREATE TEMPORARY TABLE t (v INT)", "INSERT INTO t VALUES (1)")
    b.read(SUM, [1], served=False)
    b.read(SUM, [1], served=False)
    a.read(SUM, [60], served=True)
    b.do("DROP TEMPORARY TABLE t")
    b.read(SUM, [60], served=True)


def tables_in_memory(server):
    a, b = tables(server, "CREATE TABLE t (v INT) IN_MEMORY=YES", "INSERT INTO t VALUES (1)"), Session(server)
    a.keep(SUM, [1])
    b.do("BEGIN", "INSERT INTO t VALUES (2)")
    a.keep(SUM, [1])
    b.read(SUM, [3], served=False)
    b.do("COMMIT")
    a.keep(SUM, [3])


def large_loads(server):
    # Rows that go to the table's file past the log; those that are sorted first; entries that are gathered.
    for statement in ("INSERT INTO t SELECT seq, 1 FROM seq_1_to_60000", "INSERT INTO t SELECT seq * 7919 % 60013, 1 FROM seq_1_to_60000"):
        a, b = tables(server, "CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v))"), Session(server)
        a.keep(SUM, [None])
        b.do("BEGIN", statement)
        a.keep(SUM, [None], innodb=False)
        b.read(SUM, [60000], served=False)
        b.read(SUM, [60000], served=False)
        b.do("COMMIT")
        a.keep(SUM, [60000])
        b.do("BEGIN", "UPDATE t SET v = 2 WHERE id > 5", "ROLLBACK")
        a.keep(SUM, [60000])


def prepared_transactions(server):
    a, b = tables(server), Session(server)
    a.keep(SUM, [60])
    b.do("XA START 'x'", "UPDATE t SET v = 11 WHERE id = 1", "XA END 'x'", "XA PREPARE 'x'")
    a.keep(SUM, [60], innodb=False)
    b.close()
    a.read(SUM, [60], served=True, innodb=False)
    a.do("XA COMMIT 'x'")
    a.keep(SUM, [61])
    b = Session(server)
    b.do("XA START 'y'", "UPDATE t SET v = 12 WHERE id = 1", "XA END 'y'", "XA PREPARE 'y'")
    server.kill()
    server.start(OPTIONS)
    a, b = Session(server), Session(server)
    a.keep(SUM, [61], innodb=False)
    b.do("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    a.do("XA COMMIT 'y'")
    a.keep(SUM, [62])
    b.read(SUM, [61], served=False)
    a.read(SUM, [62], served=True)
    b.do("COMMIT")


def a_transaction_that_was_only_served_ends_as_any_other(server):
    a, b = tables(server), Session(server)
    b.do("BEGIN")
    b.keep(SUM, [60])
    open_snapshots = "SELECT COUNT(*) FROM information_schema.TEAK_SNAPSHOTS"
    for end in ("COMMIT", "ROLLBACK"):
        a.do("BEGIN")
        a.read(SUM, [60], served=True)
        assert server.engine == "InnoDB" or b.do(open_snapshots) == ((2,),)
        a.do(end)
        assert server.engine == "InnoDB" or b.do(open_snapshots) == ((1,),)
    a.do("SET autocommit = 0", "BEGIN")
    a.do(SUM)
    a.do("SET autocommit = 1")
    assert server.engine == "InnoDB" or b.do(open_snapshots) == ((1,),)
    # It may write.
    a.do("BEGIN")
    a.read(SUM, [60], served=True)
    a.do("SAVEPOINT s", "UPDATE t SET v = 11 WHERE id = 1", "ROLLBACK TO SAVEPOINT s", "UPDATE t SET v = 12 WHERE id = 1", "COMMIT")
    b.do("COMMIT")
    b.do(SUM)
    b.read(SUM, [62], served=True)


def the_cache_may_be_switched_on_and_off(server):
    a, b = tables(server), Session(server)
    a.do("SET GLOBAL query_cache_size = 0", "UPDATE t SET v = 11 WHERE id = 1")
    a.read(SUM, [61], served=False)
    a.read(SUM, [61], served=False)
    b.do("BEGIN", "UPDATE t SET v = 12 WHERE id = 1")
    old = Session(server)
    old.do("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    a.do("SET GLOBAL query_cache_size = 16777216")
    a.keep(SUM, [61], innodb=False)
    b.do("COMMIT")
    a.keep(SUM, [62])
    old.read(SUM, [61], served=False)
    a.read(SUM, [62], served=True)


def sequences_are_never_kept(server):
    a = tables(server, "CREATE SEQUENCE s CACHE 1")
    for value in (1, 2, 3):
        a.read("SELECT NEXTVAL(s)", [value], served=False)
        a.read("SELECT next_not_cached_value FROM s", [value + 1], served=False)


def nothing_is_left_of_an_engine_that_is_uninstalled(server):
    server.kill()
    server.start(OPTIONS + ["--default-storage-engine=InnoDB", "--table-definition-cache=400", "--table-open-cache=200"])
    a, b = tables(server), Session(server)
    a.keep(SUM, [60])
    a.close()
    # The table is closed when so many others have been opened; FLUSH TABLES would drop its results.
    for n in range(420):
        b.do(f"SELECT SQL_NO_CACHE MAX(seq) FROM seq_0_to_{n}")
    b.do("SET SESSION default_storage_engine = InnoDB", "UNINSTALL SONAME 'ha_teak'")
    assert not b.do("SHOW WARNINGS"), "the engine is used"
    assert b.do("SHOW STATUS LIKE 'Qcache_queries_in_cache'") == (("Qcache_queries_in_cache", "0"),)
    b.fails(SUM, 1286)


# What both engines do.
CASES = [
    results_are_kept_until_a_commit_changes_the_table,
    uncommitted_changes_are_served_to_nobody,
    a_snapshot_neither_takes_what_is_newer_nor_leaves_what_is_older,
    read_committed_takes_the_newest,
    serializable_reads_lock,
    transactions_without_begin,
    what_a_statement_does_not_name,
    names_of_any_letters,
    children_follow_their_parents,
    definitions_change,
    tablespaces_come_and_go,
    partitions_are_tables_of_their_own,
    temporary_tables_hide_others,
    large_loads,
    prepared_transactions,
    a_transaction_that_was_only_served_ends_as_any_other,
    the_cache_may_be_switched_on_and_off,
    sequences_are_never_kept,
]
TEAK_ALONE = [tables_in_memory, nothing_is_left_of_an_engine_that_is_uninstalled]


def main():
    arguments = parser(__doc__.splitlines()[0], names="of cases; default: all").parse_args()
    failed = False
    wanted = chosen(CASES + TEAK_ALONE, arguments.names)
    for engine, cases in (("InnoDB", [case for case in wanted if case in CASES]), ("Teak", wanted)):
        server = Server(arguments.directory, arguments.plugin_dir)
        server.engine = engine
        print(f"{engine}:", flush=True)
        failed |= on_server(cases, (), server, OPTIONS)
    return failed


if __name__ == "__main__":
    sys.exit(main())
