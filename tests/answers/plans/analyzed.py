#!/usr/bin/python3
"""What the optimizer is told of skewed indexes stays as it is: over ANALYZE TABLE again and again, over few changes, over restarts, for which no leaf is read."""

import random
import sys

from kit.asking import expect, rows
from kit.cases import cases_of, on_server
from kit.options import parser, seed
from kit.server import Server

OPTIONS = ("--teak-cache-size=32M",)
ROWS = 60_000
# Columns: nearly all rows with one value, few values with most of the rows, many of which each has fewer, none alike.
SKEWS = {
    "one": "if(seq % 50, 7, seq)",
    "few": "floor(pow(seq * 7919 % 10007 / 10007, 6) * 400)",
    "zipf": "floor(1 / (0.0001 + seq * 7907 % 9973 / 9973))",
    "even": "seq * 31 % 1000",
    "apart": "seq * 104729 % 60013",
}
QUERIES = [f"select * from t where {column} = {value} and {other} between {low} and {low} + 50" for column, other in
           (("one", "apart"), ("few", "even"), ("zipf", "one"), ("even", "zipf"), ("apart", "few")) for value, low in ((7, 3), (350, 100), (1, 900))]
QUERIES += [f"select count(*) from t a join t b on b.{column} = a.{other} where a.apart < 40" for column in ("one", "few", "zipf", "even") for other in ("even", "apart")]


def make(server, count=ROWS, options=""):
    columns = ", ".join(f"{name} int" for name in SKEWS)
    keys = ", ".join(f"key {name} ({name})" for name in SKEWS)
    server.query(f"create or replace table t (id int primary key, {columns}, pad varchar(100), {keys}, key two (few, zipf)) engine=Teak {options}")
    server.query(f"insert into t select seq, {', '.join(SKEWS.values())}, sha2(seq, 256) from seq_1_to_{count}")
    server.query("set global teak_checkpoint_now = on")
    server.query("analyze table t")
    # The server is told twice as many as there are, as by InnoDB.
    values = told(server)
    true = {name: number for name, number in zip(SKEWS, server.query(f"select {', '.join(f'count(distinct {name})' for name in SKEWS)} from t")[0])}
    far = {name: (number, values[(name, 1)]) for name, number in true.items() if not number * 0.7 <= values[(name, 1)] <= number * 3 + 4}
    expect(far, {}, "numbers of values that are far from those that there are")


def told(server):
    """How many values each part of each index has, as the server was told."""
    return {(name, part): number for name, part, number in server.query(
        "select index_name, seq_in_index, cardinality from information_schema.statistics where table_name = 't'")}


def plans(server):
    """For each query which index each table is read by, and how; of two that begin with the same column either is as good."""
    with server.connect(autocommit=True) as session:
        return [tuple((row[2], row[3], row[5] and row[5].replace("two", "few")) for row in rows(session, f"explain {query}")) for query in QUERIES]


def reads(server):
    """Blocks that were read from files since the start."""
    return int(server.query("show global status like 'Teak_blocks_read'")[0][1])


def case_again_and_again(server):
    make(server)
    values, chosen = told(server), plans(server)
    assert values[("apart", 1)] > ROWS / 3 and values[("even", 1)] < 4000, values
    for _ in range(5):
        server.query("analyze table t")
        expect(told(server), values, "numbers of values")
    expect(plans(server), chosen, "plans")


def case_few_changes(server):
    make(server)
    change_a_few(server)


def case_few_changes_of_many_leaves(server):
    make(server, 3 * ROWS, "block_size=4096")
    change_a_few(server)


def change_a_few(server):
    values, chosen = told(server), plans(server)
    source = random.Random(seed(1))
    for turn in range(8):
        for _ in range(ROWS // 800):
            server.query(f"update t set even = (even + 1) % 1000, apart = apart + 1 where id = {source.randrange(ROWS)}")
        server.query(f"insert into t select {1_000_000 * (turn + 1)} + seq, {', '.join(SKEWS.values())}, '' from seq_{turn * 60 + 1}_to_{turn * 60 + 60}")
        server.query(f"delete from t where id between {source.randrange(ROWS)} and {source.randrange(ROWS)} + 20 limit 20")
        server.query("analyze table t")
        now = told(server)
        far = {key: (values[key], number) for key, number in now.items() if not values[key] / 2 <= number <= values[key] * 2}
        expect(far, {}, f"numbers of values that are far from those before, turn {turn}")
        expect([(query, old, new) for query, old, new in zip(QUERIES, chosen, plans(server)) if old != new], [], f"other plans, turn {turn}")


def case_restarts(server):
    make(server)
    values, chosen = told(server), plans(server)
    server.stop()
    server.start(OPTIONS)
    before = reads(server)
    expect(told(server), values, "numbers of values after a restart")
    read = reads(server) - before
    assert read <= 2, f"{read} blocks were read to open the table"
    expect(plans(server), chosen, "plans after a restart")
    server.kill()
    server.start(OPTIONS)
    expect(told(server), values, "numbers of values after a crash")


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(cases_of(sys.modules[__name__]), arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
