#!/usr/bin/python3
"""What the memory is for: each purpose of TEAK_MEMORY moves by what is done for it, and together they are all that the engine has."""

import sys
import threading
import time

from kit.asking import expect, rows
from kit.cases import cases_of, check, on_server
from kit.options import parser
from kit.server import Server

OPTIONS = ("--teak-cache-size=96M", "--table-open-cache=2000")
MIB = 1 << 20
PURPOSES = {
    "blocks", "catalog", "changes", "checkpoints", "dictionaries", "history", "leaves", "locks", "log", "others", "recovery", "sorting",
    "spare", "tables", "transactions", "values",
}
WAIT_SECONDS = 60
# The numbers of the allocator, none of which is a part of another.
ALLOCATED = "('memory_slabs', 'memory_slabs_kept', 'memory_large', 'memory_large_kept', 'memory_leaves', 'memory_small')"


def memory(connection):
    """Bytes by purpose."""
    return {purpose: int(size) for purpose, size in rows(connection, "select purpose, bytes from information_schema.teak_memory")}


class Measured:
    """How much more a purpose has at the end than at the beginning."""

    def __init__(self, connection, purpose):
        self.connection = connection
        self.purpose = purpose
        self.before = self.now()

    def now(self):
        """Bytes now."""
        return memory(self.connection)[self.purpose]

    def more(self):
        """Bytes more than at the beginning."""
        return self.now() - self.before

    def grown(self, least, most=None):
        """Checks how much more it is."""
        check(least <= self.more() and (most is None or self.more() <= most), f"{self.purpose}: {self.before} and {self.more()} more, not {least} to {most}")

    def falls(self, most):
        """Waits until it has at most so many bytes more than at the beginning."""
        end = time.monotonic() + WAIT_SECONDS
        while self.more() > most:
            check(time.monotonic() < end, f"{self.purpose} stays at {self.now()}, which was {self.before}")
            time.sleep(0.05)


def numbers(connection, name, count, definition="v int, t varchar(100)", values="seq, repeat('x', 50)", options=""):
    """A table of so many rows."""
    rows(connection, f"create or replace table {name} (id int primary key, {definition}) engine=Teak {options}")
    rows(connection, f"insert into {name} select seq, {values} from seq_1_to_{count}")


def case_names_and_their_sum(server):
    """Of one look, the purposes are all that the allocator knows of."""
    with server.connect(autocommit=True) as connection:
        numbers(connection, "sums", 50_000)
        expect(set(memory(connection)), PURPOSES, "purposes")
        for _ in range(20):
            parts, whole = rows(
                connection,
                f"select sum(if(name like 'memory\\_of\\_%', value, 0)), sum(if(name in {ALLOCATED}, value, 0)) from information_schema.teak_metrics",
            )[0]
            check(abs(parts - whole) * 100 <= whole, f"{parts} for purposes, {whole} in all")
        status = dict(rows(connection, "show global status like 'Teak_memory_of_%'"))
        expect({name.lower().removeprefix("teak_memory_of_") for name in status}, PURPOSES, "status variables")


def case_blocks_changes_and_transactions(server):
    """Rows of an open transaction are changes and redo; those that a scan has read are blocks."""
    with server.connect(autocommit=True) as connection:
        changes, transactions = Measured(connection, "changes"), Measured(connection, "transactions")
        numbers(connection, "much", 1, "v int, t varchar(1000)", "0, ''")
        connection.begin()
        # Behind a row that is there, and in no order: not as a load writes.
        rows(connection, "insert into much select 2 + seq * 7919 % 20011, seq, repeat('x', 900) from seq_1_to_10000")
        changes.grown(9 * MIB)
        transactions.grown(100_000)
        connection.commit()
        transactions.falls(1000)
        rows(connection, "set session teak_checkpoint_now = 1")
        blocks = Measured(connection, "blocks")
        rows(connection, "select count(t) from much")
        # Folded now, or by the checkpoint.
        changes.falls(2 * MIB)
        check(memory(connection)["blocks"] > 8 * MIB, f"blocks: {memory(connection)} after {blocks.before}")


def case_history_lasts_as_long_as_a_snapshot(server):
    """Versions that an old snapshot may need."""
    with server.connect(autocommit=True) as connection, server.connect(autocommit=True) as old:
        numbers(connection, "versions", 20_000)
        history = Measured(connection, "history")
        rows(old, "start transaction with consistent snapshot")
        rows(old, "select count(*) from versions")
        for _ in range(3):
            rows(connection, "update versions set v = v + 1, t = concat(t, 'y')")
            rows(connection, "set session teak_checkpoint_now = 1")
        history.grown(500_000)
        expect(rows(old, "select sum(v) from versions")[0][0], 20_000 * 20_001 // 2, "the old sum")
        old.rollback()
        history.falls(0)


def case_large_values(server):
    """Each counts while it is in memory, and no more when its table is gone."""
    with server.connect(autocommit=True) as connection:
        values = Measured(connection, "values")
        numbers(connection, "lobs", 1, "b longblob", "''")
        connection.begin()
        for key in range(2, 18):
            rows(connection, f"insert into lobs values ({key}, repeat(char(65 + {key}), 1000000))")
        # Of transactions with much redo they go to the file at once.
        values.grown(900_000, 17 * MIB)
        connection.rollback()
        rows(connection, "drop table lobs")
        values.falls(0)


def case_locks_of_rows(server):
    """One by one, and not in the order of their keys, in which many are one lock."""
    with server.connect(autocommit=True) as connection:
        numbers(connection, "locked", 300_000)
        locks = Measured(connection, "locks")
        connection.begin()
        rows(connection, "select count(*) from seq_1_to_100000 straight_join locked on id = seq * 7919 % 300007 for update")
        locks.grown(500_000)
        connection.rollback()
        locks.falls(locks.more() // 2)


def case_dictionaries_and_their_samples(server):
    """What texts may make a dictionary of."""
    with server.connect(autocommit=True) as connection:
        dictionaries = Measured(connection, "dictionaries")
        numbers(connection, "texts", 80_000, "t text", "concat_ws(' ', 'the quick brown fox', seq, 'jumps over', seq * 7919 % 80021, 'lazy dogs and whatever else there is')")
        dictionaries.grown(50_000)
        rows(connection, "drop table texts")
        dictionaries.falls(0)


def case_sorting_while_an_index_is_built(server):
    """Entries that are sorted; nothing is left of them."""
    with server.connect(autocommit=True) as connection, server.connect(autocommit=True) as other:
        numbers(connection, "sorted", 200_000, "v int, t varchar(100)", "seq * 7919 % 200003, md5(seq)")
        sorting = Measured(other, "sorting")
        most = 0
        for attempt in range(20):
            builder = threading.Thread(target=rows, args=(connection, f"alter table sorted add index i{attempt} (t, v)"))
            builder.start()
            while builder.is_alive():
                most = max(most, sorting.more())
            builder.join()
            if most > MIB:
                break
        check(most > MIB, f"sorting: at most {most}")
        sorting.falls(0)


def case_tables_in_memory(server):
    """They are beside the cache."""
    with server.connect(autocommit=True) as connection:
        tables = Measured(connection, "tables")
        numbers(connection, "volatile", 20_000, options="in_memory=yes")
        tables.grown(20_000 * 50)
        rows(connection, "drop table volatile")
        tables.falls(0)


def case_the_catalog_has_open_tables(server):
    """About what they take, whatever the number of indexes; and what is not named is little beside it."""
    with server.connect(autocommit=True) as connection:
        catalog, others = Measured(connection, "catalog"), Measured(connection, "others")
        for number in range(300):
            rows(connection, f"create table c{number} (id int primary key, a int, b int, key (a), key (b)) engine=Teak")
            rows(connection, f"select * from c{number}")
        catalog.grown(300 * 9_000, 300 * 12_000)
        check(others.more() < catalog.more() / 3, f"others: {others.more()} more, catalog: {catalog.more()}")
        for number in range(300):
            rows(connection, f"drop table c{number}")
        catalog.falls(100_000)


def case_the_log_has_its_buffer(server):
    """As much as a group of records has needed."""
    with server.connect(autocommit=True) as connection:
        numbers(connection, "logged", 1, "t text", "''")
        rows(connection, "insert into logged select 2 + seq * 7919 % 20011, repeat('z', 100) from seq_1_to_10000")
        size = memory(connection)["log"]
        check(10_000 < size <= 13 * MIB, f"log: {size}")


def case_what_is_not_named_is_little(server):
    """After all that, in a server that has something in memory."""
    with server.connect(autocommit=True) as connection:
        told = memory(connection)
        check(told["others"] < sum(told.values()) / 5, f"{told}")


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(cases_of(sys.modules[__name__]), arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
