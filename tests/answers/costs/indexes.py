#!/usr/bin/python3
"""How large each index is and how it is used: information_schema.TEAK_INDEXES."""

import datetime
import os
import sys
import threading
import time

from kit.asking import expect, rows, wait_until
from kit.cases import cases_of, on_server
from kit.options import parser
from kit.server import Server

OPTIONS = ("--teak-cache-size=32M",)
AT_ONCE = 16
COLUMNS = ("index_name, tree, entries, leaves, height, raw_bytes, disk_bytes, fill, ratio, dictionary_bytes, look_ups, scans, inserts, lock_waits, lock_wait_seconds, "
           "last_change").split(", ")


def listed(server, table="t"):
    """What is said of each index of a table, by its name."""
    found = server.query(f"select {', '.join(COLUMNS)} from information_schema.teak_indexes where table_schema = 'test' and table_name = '{table}'")
    return {row[0]: dict(zip(COLUMNS, row)) for row in found}


def table(server, count=50_000):
    server.query("create or replace table t (id int primary key, v int, w int, t varchar(100), unique key v (v), key `w, t` (w, t(10)), key unused (w)) engine=Teak")
    server.query(f"insert into t select seq, seq, seq % 100, sha2(seq, 256) from seq_1_to_{count}")


def used(server, statement):
    """By how much each index is used by a statement: look-ups and scans."""
    server.query("flush tables")
    with server.connect(autocommit=True) as session:
        # What a handler has used is told the first time, and then for sixteen uses.
        rows(session, statement)
        before = listed(server)
        for _ in range(AT_ONCE):
            rows(session, statement)
        after = listed(server)
    found = {name: tuple((after[name][what] - before[name][what]) / AT_ONCE for what in ("look_ups", "scans")) for name in after}
    return {name: uses for name, uses in found.items() if uses != (0, 0)}


def case_sizes(server):
    table(server)
    server.query("set global teak_checkpoint_now = on")
    found = listed(server)
    expect(sorted(found), ["PRIMARY", "unused", "v", "w, t"], "names")
    for name, index in found.items():
        expect(index["entries"], 50_000, f"entries of {name}")
        assert index["leaves"] > 10 and index["height"] == 2, index
        assert 0 < index["disk_bytes"] < index["raw_bytes"] and abs(index["ratio"] - index["disk_bytes"] / index["raw_bytes"]) < 0.01, index
        assert 0.1 < index["fill"] <= 1.2, index
        assert abs(index["last_change"] - server.query("select now()")[0][0]) < datetime.timedelta(seconds=60), index
    assert found["PRIMARY"]["raw_bytes"] > found["v"]["raw_bytes"], found
    report = dict(server.query("select tree, leaves from information_schema.teak_tables where table_schema = 'test' and table_name = 't'"))
    expect({index["tree"]: index["leaves"] for index in found.values()}, report, "leaves as TEAK_TABLES has them")
    server.query("create or replace table empty_one (id int primary key) engine=Teak")
    server.query("select * from empty_one")
    one = listed(server, "empty_one")["PRIMARY"]
    expect((one["entries"], one["leaves"], one["height"], one["fill"], one["ratio"], one["last_change"]), (0, 1, 1, None, None, None), "an empty table")


def case_uses(server):
    table(server)
    server.query("flush tables")
    server.query("select * from t where id = 7")
    assert listed(server)["PRIMARY"]["look_ups"] >= 1, "the first use is told"
    expect(used(server, "select * from t where id = 7"), {"PRIMARY": (1, 0)}, "a look-up")
    expect(used(server, "select * from t where v = 7"), {"v": (1, 0), "PRIMARY": (1, 0)}, "a look-up of an entry")
    expect(used(server, "select count(t) from t"), {"PRIMARY": (0, 1)}, "a scan")
    expect(used(server, "select v from t where v between 5 and 9"), {"v": (0, 1)}, "a range of entries")
    expect(used(server, "select id from t force index (unused) where w = 5 limit 1"), {"unused": (0, 1)}, "entries of one key")
    expect(used(server, "select id from t force index (v) order by v desc limit 3"), {"v": (0, 1)}, "entries from the end")
    found = used(server, "select count(b.t) from t a straight_join t b force index (primary) on b.id = a.w * 400 where a.id < 50")
    assert 20 <= found["PRIMARY"][0] <= 49 and found["PRIMARY"][1] == 1, found
    # What no statement has used is 0 since the table was opened.
    server.stop()
    server.start(OPTIONS)
    server.query("select * from t where v = 7")
    found = listed(server)
    expect([name for name in found if found[name]["look_ups"] + found[name]["scans"] == 0], ["w, t", "unused"], "indexes that nobody used")


def case_inserts(server):
    server.query("create or replace table i (id int primary key, v int, w int, key v (v), unique key w (w)) engine=Teak")
    with server.connect() as session:
        rows(session, "insert into i values (1, 1, 1), (2, 2, 2), (3, null, null)")
        expect([listed(server, "i")[name]["inserts"] for name in ("PRIMARY", "v", "w")], [0, 0, 0], "before the commit")
        session.commit()
        expect([listed(server, "i")[name]["inserts"] for name in ("PRIMARY", "v", "w")], [3, 3, 3], "inserts")
        rows(session, "update i set v = v + 1")
        rows(session, "update i set w = 10 where id = 1")
        rows(session, "delete from i where id = 2")
        session.commit()
        expect([listed(server, "i")[name]["inserts"] for name in ("PRIMARY", "v", "w")], [3, 5, 4], "what changes put in")
        rows(session, "insert into i values (4, 4, 4)")
        session.rollback()
        expect([listed(server, "i")[name]["inserts"] for name in ("PRIMARY", "v", "w")], [3, 5, 4], "what was rolled back")


def case_lock_waits(server):
    table(server, 100)
    with server.connect() as holder, server.connect() as waiter:
        rows(holder, "update t set t = 'x' where id = 5")
        thread = threading.Thread(target=rows, args=(waiter, "update t set t = 'y' where id = 5"))
        thread.start()
        wait_until(lambda: server.query("select count(*) from information_schema.teak_lock_waits")[0][0], "the wait")
        time.sleep(0.1)
        holder.rollback()
        thread.join()
        waiter.rollback()
    found = listed(server)
    expect({name: index["lock_waits"] for name, index in found.items()}, {"PRIMARY": 1, "v": 0, "w, t": 0, "unused": 0}, "waits")
    assert 0.1 <= found["PRIMARY"]["lock_wait_seconds"] < 30, found


def case_partitions_and_old_names(server):
    server.query("create or replace table p (id int primary key, v int, key v (v)) engine=Teak partition by hash (id) partitions 2")
    server.query("insert into p select seq, seq from seq_1_to_10")
    found = server.query("select table_name, index_name, entries from information_schema.teak_indexes where table_name like 'p#%' order by 1, 2")
    expect(found, (("p#P#p0", "PRIMARY", 5), ("p#P#p0", "v", 5), ("p#P#p1", "PRIMARY", 5), ("p#P#p1", "v", 5)), "partitions")
    table(server, 10)
    server.query("alter table t rename key unused to w2, rename to renamed")
    server.query("select * from renamed")
    expect(sorted(listed(server, "renamed")), ["PRIMARY", "v", "w, t", "w2"], "names behind ALTER")
    server.query("drop table renamed, p")
    expect(server.query("select count(*) from information_schema.teak_indexes where table_name like 'p#%' or table_name = 'renamed'")[0][0], 0, "dropped")


def case_rights(server):
    table(server, 10)
    server.query("create or replace user somebody")
    client = f"mariadb --no-defaults --socket={server.socket} --user=somebody --skip-column-names -e"
    with os.popen(f"{client} 'select count(*) from information_schema.teak_indexes'") as answer:
        expect(int(answer.read()), 0, "without PROCESS")


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(cases_of(sys.modules[__name__]), arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
