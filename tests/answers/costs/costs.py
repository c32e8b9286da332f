#!/usr/bin/python3
"""What a statement cost the engine, as the server has it shown: ANALYZE FORMAT=JSON and the slow log, beside InnoDB."""

import json
import os
import sys
import threading

from kit.asking import error_number, expect, rows
from kit.cases import cases_of, on_server
from kit.options import parser
from kit.server import Server

ENGINES = ("Teak", "InnoDB")
ROWS = 20_000
# Of a cache that has not room for the rows of `wide`.
OPTIONS = ("--teak-cache-size=8M",)


def found_in(plan, name):
    """The values of all members of that name, whatever they are in."""
    members = list(plan.items() if isinstance(plan, dict) else enumerate(plan) if isinstance(plan, list) else ())
    return [value for key, value in members if key == name] + [inner for _, value in members for inner in found_in(value, name)]


def costs(connection, statement):
    """What the engine says of each table of the statement."""
    return found_in(json.loads(rows(connection, f"analyze format=json {statement}")[0][0]), "r_engine_stats")


def cost(connection, statement):
    """The sum over all tables."""
    total = {}
    for found in costs(connection, statement):
        for name, number in found.items():
            total[name] = total.get(name, 0) + number
    return total


def make(server, *names, definition="id int primary key, v int, w int, t varchar(200), key v (v)", count=ROWS):
    """The same table for each engine: `name_Teak` and `name_InnoDB`."""
    for name in names:
        for engine in ENGINES:
            server.query(f"create or replace table {name}_{engine} ({definition}) engine={engine}")
            server.query(f"insert into {name}_{engine} select seq, seq % 1000, seq, repeat(md5(seq), 4) from seq_1_to_{count}")


def case_look_ups_and_scans(server):
    make(server, "t")
    with server.connect(autocommit=True) as session:
        for engine in ENGINES:
            point = cost(session, f"select * from t_{engine} where id = 77")
            scan = cost(session, f"select count(w) from t_{engine}")
            index = cost(session, f"select w from t_{engine} force index (v) where v between 3 and 5")
            assert 1 <= point["pages_accessed"] <= 4, (engine, point)
            assert scan["pages_accessed"] > 30 > point["pages_accessed"], (engine, scan)
            # The rows behind 60 entries.
            assert 3 <= index["pages_accessed"] <= 400, (engine, index)
            for found in (point, scan, index):
                assert "pages_updated" not in found and "old_rows_read" not in found, (engine, found)
        both = costs(session, "select straight_join a.w from t_Teak a, t_InnoDB b where a.id < 50 and b.id = a.id")
        assert len(both) == 2 and all(found["pages_accessed"] > 0 for found in both), both


def case_changes(server):
    make(server, "t")
    with server.connect(autocommit=True) as session:
        for engine in ENGINES:
            for statement in (f"update t_{engine} set w = w + 1 where id < 100", f"update t_{engine} set v = v + 1 where id < 100",
                              f"delete from t_{engine} where id between 200 and 300"):
                found = cost(session, statement)
                assert found["pages_accessed"] > 0 and found["pages_updated"] > 0, (engine, statement, found)


def case_old_versions(server):
    make(server, "t", count=2000)
    with server.connect() as old, server.connect(autocommit=True) as new:
        for engine in ENGINES:
            rows(old, "start transaction with consistent snapshot")
            rows(old, f"select count(*) from t_{engine} where id = 0")
            rows(new, f"update t_{engine} set w = w + 1 where id <= 100")
            found = cost(old, f"select sum(w) from t_{engine} where id <= 200")
            assert 100 <= found["old_rows_read"] <= 200, (engine, found)
            found = cost(old, f"select sum(w) from t_{engine} where id > 200")
            assert "old_rows_read" not in found, (engine, found)
            old.commit()


def case_reads(server):
    """What is read from disk is counted, and how long that takes; scans have others read for them."""
    make(server, "t", "wide", count=100_000)
    server.stop()
    server.start(OPTIONS)
    with server.connect(autocommit=True) as session:
        for engine in ENGINES:
            point = cost(session, f"select * from t_{engine} where id = 77")
            assert 1 <= point["pages_read_count"] <= 5 and 0 < point["pages_read_time_ms"] < 10_000, (engine, point)
            again = cost(session, f"select * from t_{engine} where id = 77")
            assert "pages_read_count" not in again and "pages_read_time_ms" not in again, (engine, again)
        scan = cost(session, "select sum(w) from wide_Teak")
        assert scan["pages_prefetch_read_count"] > 10 and scan["pages_read_count"] > 0, scan
        # Look-ups in the order of their keys.
        rows(session, "set optimizer_switch = 'mrr=on,mrr_cost_based=off,mrr_sort_keys=on'")
        server.stop()
        server.start(OPTIONS)
    with server.connect(autocommit=True) as session:
        rows(session, "set optimizer_switch = 'mrr=on,mrr_cost_based=off,mrr_sort_keys=on'")
        found = json.loads(rows(session, "analyze format=json select sum(w) from wide_Teak force index (v) where v between 10 and 60")[0][0])
        assert found_in(found, "mrr_type"), found
        assert found_in(found, "r_engine_stats")[0]["pages_accessed"] > 5 and found_in(found, "r_engine_stats")[0]["pages_read_count"] > 0, found


def case_ways_of_reading(server):
    """Each has its costs, with none left out and none counted twice."""
    make(server, "t", definition="id int primary key, v int, w int, t varchar(200), key v (v), key w (w)")
    server.query("create or replace table p (id int primary key, v int, w int, t varchar(200), key v (v)) engine=Teak partition by hash (id) partitions 4")
    server.query("insert into p select * from t_Teak")
    with server.connect(autocommit=True) as session:
        rows(session, "create temporary table tmp (id int primary key, v int, w int, t varchar(200)) engine=Teak select * from t_Teak")
        for name, trees in (("t_Teak", "= 't_Teak'"), ("p", "like 'p#%'")):
            leaves = int(rows(session, f"select sum(leaves) from information_schema.teak_tables where tree = 0 and table_schema = 'test' and table_name {trees}")[0][0])
            # The first scans have the changes of leaves folded, and come by those twice.
            for _ in range(3):
                found = cost(session, f"select count(t) from {name}")["pages_accessed"]
            # Each leaf, and the way to the first.
            assert leaves <= found <= leaves + 10, (name, found, leaves)
        assert 30 < cost(session, "select count(t) from tmp")["pages_accessed"] < 300
        one = cost(session, "select * from p where id = 5")["pages_accessed"]
        assert 1 <= one <= 4, one
        entries = cost(session, "select t from t_Teak force index (v) where v < 20 and v % 19 = 3")["pages_accessed"]
        assert 2 <= entries < 200, f"{entries} pages: the condition is for the index, few rows are looked up"
        merged = cost(session, "select /* merged */ t from t_Teak where v = 5 or w = 5")["pages_accessed"]
        assert 2 <= merged < 150, merged
        two = costs(session, "select straight_join count(*) from t_Teak a, t_Teak b where a.id < 100 and b.id = a.w")
        assert len(two) == 2 and all(found["pages_accessed"] > 0 for found in two), two
        rows(session, "handler t_Teak open")
        rows(session, "handler t_Teak read first")
        rows(session, "handler t_Teak close")


def case_foreign_keys(server):
    """What goes on in children belongs to the change that they follow, once."""
    server.query("create or replace table child (id int primary key, p int, key p (p)) engine=Teak")
    server.query("create or replace table parent (id int primary key) engine=Teak")
    server.query("insert into parent select seq from seq_1_to_10")
    server.query("create or replace table child (id int primary key, p int, foreign key (p) references parent (id) on delete cascade) engine=Teak")
    server.query("insert into child select seq, 1 + seq % 10 from seq_1_to_1000")
    with server.connect(autocommit=True) as session:
        found = cost(session, "delete from parent where id = 3")
        assert 100 < found["pages_updated"] < 500, found
    expect(server.query("select count(*) from child")[0][0], 900, "children")


def case_ends_of_all_kinds(server):
    """After an error, a KILL and a time-out, the next statement costs what it cost before."""
    make(server, "t", count=2000)
    with server.connect(autocommit=True) as session, server.connect() as holder:
        point = "select * from t_Teak where id = 1000"
        before = cost(session, point)
        rows(session, "set innodb_lock_wait_timeout = 1, teak_lock_wait_timeout = 1")
        rows(holder, "update t_Teak set w = 0 where id = 1500")
        expect(error_number(rows, session, "analyze format=json update t_Teak set w = 1 where id > 1400"), 1205, "a time-out")
        expect(error_number(rows, session, "insert into t_Teak select * from t_Teak where id = 4"), 1062, "a duplicate")
        expect(error_number(rows, session, "analyze format=json insert into t_Teak select * from t_Teak where id = 4"), 1062, "a duplicate")
        rows(session, "set max_statement_time = 0.2")
        expect(error_number(rows, session, "analyze format=json select count(*) from t_Teak a, t_Teak b, t_Teak c where a.w + b.w + c.w = -1"), 1969, "a limit")
        rows(session, "set max_statement_time = 0")
        expect(cost(session, point), before, "a look-up behind errors")
        holder.rollback()


def case_beside_others(server):
    """Checkpoints, and other sessions, are no part of what a statement costs."""
    make(server, "t")
    over = threading.Event()

    def work():
        with server.connect(autocommit=True) as busy:
            while not over.is_set():
                rows(busy, "update t_Teak set w = w + 1 where id > 10000")
                rows(busy, "set global teak_checkpoint_now = on")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        with server.connect(autocommit=True) as session:
            for _ in range(200):
                found = cost(session, "select * from t_Teak where id = 77")
                assert found["pages_accessed"] <= 4 and "pages_updated" not in found, found
    finally:
        over.set()
        worker.join()


def case_slow_log(server):
    """The slow log has the costs if it is asked to; with what commits add, as entries of indexes are written then."""
    make(server, "t", count=2000)
    log = os.path.join(server.directory, "slow.log")
    server.query(f"set global slow_query_log_file = '{log}'")
    server.query("set global slow_query_log = on")

    def lines(statement, verbosity):
        """What the log has of the statement."""
        with server.connect(autocommit=True) as session:
            size = os.path.getsize(log)
            rows(session, f"set log_slow_verbosity = '{verbosity}'")
            rows(session, "set long_query_time = 0")
            rows(session, statement)
            rows(session, "set long_query_time = 100")
        with open(log, encoding="utf8") as file:
            file.seek(size)
            text = file.read()
        at = text.index(statement)
        return text[text.rindex("# User@Host", 0, at):at]

    found = lines("select count(t) from t_Teak where w < 2000", "engine")
    assert int(numbers_of(found)["Pages_accessed"]) > 5 and float(numbers_of(found)["Engine_time"]) >= 0, found
    found = lines("update t_Teak set v = v + 1, w = w + 1 where id < 1000", "engine")
    assert int(numbers_of(found)["Pages_updated"]) > 500, found
    assert "Pages_accessed" not in lines("select count(t) from t_Teak where w < 2001", ""), "nobody has asked"
    server.query("set global slow_query_log = off")


def numbers_of(text):
    """Name and number of each `Name: number` in lines of the slow log."""
    words = text.replace("#", " ").split()
    return {word[:-1]: words[at + 1] for at, word in enumerate(words[:-1]) if word.endswith(":")}


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(cases_of(sys.modules[__name__]), arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
