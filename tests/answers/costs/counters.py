#!/usr/bin/python3
"""What the whole server counts: each status variable moves by what statements do, and information_schema.TEAK_METRICS has all of them, and how often what took
how long."""

import contextlib
import os
import sys
import threading
import time

from kit.asking import error_number, expect, rows, wait_until
from kit.cases import cases_of, on_server
from kit.options import parser
from kit.server import Server

OPTIONS = ("--teak-cache-size=8M", "--teak-flush-log-at-trx-commit=1")
HISTOGRAMS = ("commit_microseconds", "lock_wait_microseconds", "log_sync_microseconds", "read_microseconds")


def status(server):
    """All numbers, by their names in small letters."""
    found = server.query("show global status like 'teak\\_%'")
    return {name.lower().removeprefix("teak_"): int(value) for name, value in found if value.isdigit()}


@contextlib.contextmanager
def moved(server):
    """By how much each number has moved, once the block is done."""
    before, by = status(server), {}
    yield by
    by.update({name: value - before[name] for name, value in status(server).items()})


def at_least(found, **wanted):
    """Fails unless each of these is as large as that."""
    short = {name: found[name] for name, least in wanted.items() if found[name] < least}
    assert not short, f"found {short}, expected at least {wanted}"


def table(server, count=10_000, definition="id int primary key, v int, t varchar(200), key v (v)"):
    """A table with so many rows, whose texts cannot be made small."""
    server.query(f"create or replace table t ({definition}) engine=Teak")
    server.query(f"insert into t select seq, seq % 100, concat(sha2(seq, 512), sha2(-seq, 256)) from seq_1_to_{count}")


def restart(server):
    """Nothing is in memory."""
    server.stop()
    server.start(OPTIONS)


def case_look_ups(server):
    table(server)
    with server.connect(autocommit=True) as session:
        rows(session, "select * from t where id = 7")
        with moved(server) as by:
            rows(session, "select * from t where id = 7")
        at_least(by, buffer_pool_read_requests=1, keys_read=1)
        assert by["buffer_pool_read_requests"] < 10 and by["keys_read"] == 1, by
        for name in ("buffer_pool_reads", "blocks_read", "data_reads", "buffer_pool_write_requests", "log_writes", "data_writes", "old_versions_passed"):
            expect(by[name], 0, name)


def case_reads(server):
    table(server)
    server.query("create or replace table large (id int primary key, t longtext) engine=Teak")
    server.query("insert into large select seq, repeat(sha2(seq, 512), 2000) from seq_1_to_5")
    restart(server)
    server.query("select count(*) from t where id < 5")
    server.query("select count(*) from large where id < 5")
    with moved(server) as by:
        server.query("select * from t where id = 9000")
    at_least(by, buffer_pool_reads=1, blocks_read=1, block_bytes_read=1000, data_reads=1, data_read=1000, decompress_bytes_in=1000, decompress_bytes_out=1000)
    expect(by["values_read"], 0, "large values")
    assert by["decompress_bytes_out"] >= by["decompress_bytes_in"], by
    with moved(server) as by:
        server.query("select length(t) from large where id = 3")
    at_least(by, values_read=1, value_bytes_read=100, data_reads=1)
    expect(by["values_read"], 1, "large values")


def case_changes(server):
    table(server)
    server.query("set global teak_checkpoint_now = on")
    with server.connect(autocommit=True) as session:
        with moved(server) as by:
            rows(session, "update t set t = 'changed' where id = 7")
        at_least(by, buffer_pool_write_requests=1, keys_written=1, commits=1, log_writes=1, os_log_fsyncs=1, log_bytes_written=20, os_log_written=20,
                 commit_microseconds=1, log_sync_microseconds=1, checkpoint_age=20)
        expect(by["keys_written"], 1, "rows written")
        assert by["commit_microseconds"] >= by["log_sync_microseconds"] > 0, by
    with moved(server) as by:
        server.query("update t set t = concat(t, 'x')")
    # What is in the log is no reason to write to files.
    at_least(by, keys_written=10_000, buffer_pool_write_requests=10, checkpoint_age=100_000)
    now = status(server)
    expect(now["checkpoint_age"], now["log_bytes_since_checkpoint"], "one number by two names")
    assert now["checkpoint_max_age"] > now["checkpoint_age"], now
    with moved(server) as by:
        server.query("set global teak_checkpoint_now = on")
    at_least(by, checkpoints=1, data_writes=1, data_written=10_000, data_fsyncs=1, compress_bytes_in=10_000, compress_bytes_out=10_000)
    assert by["compress_bytes_out"] <= by["compress_bytes_in"] and by["checkpoint_age"] < -100_000, by


def case_lock_waits(server):
    table(server, 10)
    with server.connect() as holder, server.connect() as waiter:
        rows(holder, "update t set v = 0 where id = 1")
        with moved(server) as by:
            thread = threading.Thread(target=rows, args=(waiter, "update t set v = 1 where id = 1"))
            thread.start()
            wait_until(lambda: status(server)["row_lock_current_waits"] == 1, "the wait")
            time.sleep(0.05)
            holder.rollback()
            thread.join()
            waiter.rollback()
        at_least(by, row_lock_waits=1, lock_wait_microseconds=50_000, row_lock_time=50)
        now = status(server)
        expect((by["row_lock_waits"], now["row_lock_current_waits"]), (1, 0), "waits")
        assert now["row_lock_time_max"] >= 50, now
        rows(holder, "update t set v = 0 where id = 1")
        rows(waiter, "set teak_lock_wait_timeout = 1")
        with moved(server) as by:
            expect(error_number(rows, waiter, "update t set v = 1 where id = 1"), 1205, "a time-out")
        expect((by["row_lock_waits"], by["row_lock_timeouts"]), (1, 1), "waits")
        holder.rollback()


def case_memory(server):
    """What does not fit into memory gives it back; an old snapshot makes others pass versions."""
    table(server, 100_000)
    server.query("set global teak_checkpoint_now = on")
    with moved(server) as by:
        for _ in range(4):
            server.query("select sum(length(t)) from t")
    at_least(by, cache_evictions=50, cache_bytes_evicted=1_000_000, buffer_pool_reads=20, data_read=1_000_000)
    with server.connect() as old:
        rows(old, "start transaction with consistent snapshot")
        rows(old, "select v from t where id = 1")
        server.query("update t set v = v + 1 where id <= 50")
        with moved(server) as by:
            rows(old, "select sum(v) from t where id <= 50")
        at_least(by, old_versions_passed=50)
        assert by["old_versions_passed"] <= 60, by


def case_sorting(server):
    table(server, 100_000)
    with server.connect(autocommit=True) as session:
        rows(session, "set teak_sort_buffer_size = 1048576")
        with moved(server) as by:
            rows(session, "alter table t add key (t)")
        at_least(by, sort_runs_spilled=1, spill_bytes_written=1_000_000, spill_bytes_read=1_000_000, data_written=1_000_000)


def case_what_threads_counted_stays(server):
    """Connections that end take nothing of what they have counted with them."""
    table(server)
    last = status(server)
    growing = [name for name, kind in server.query("select name, kind from information_schema.teak_metrics where up_to is null") if kind == "COUNTER"]
    for _ in range(15):
        sessions = [server.connect(autocommit=True) for _ in range(10)]
        for session in sessions:
            rows(session, "select * from t where id = 7")
        for session in sessions:
            session.close()
        now = status(server)
        less = {name: (last[name], now[name]) for name in growing if now[name] < last[name]}
        assert not less, f"numbers that fell: {less}"
        at_least({name: now[name] - last[name] for name in now}, buffer_pool_read_requests=10, keys_read=10)
        last = now


def case_metrics(server):
    """Each status variable is there by its name, with its value and a meaning; and nothing else but ranges of times."""
    table(server)
    found = server.query("select name, kind, up_to, value, help from information_schema.teak_metrics")
    plain = {name: value for name, kind, _, value, _ in found if kind != "HISTOGRAM"}
    now = status(server)
    expect(sorted(plain), sorted(now), "names")
    expect(len(plain), sum(kind != "HISTOGRAM" for _, kind, _, _, _ in found), "one row each")
    same = {name for name in plain if plain[name] == now[name]}
    # Of a server that has nothing to do hardly any moves.
    assert len(same) > len(plain) - 20, set(plain) - same
    for name, kind, up_to, _, text in found:
        assert kind in ("COUNTER", "GAUGE", "HISTOGRAM") and 10 < len(text) < 128 and text[0].isupper(), (name, kind, text)
        assert (kind == "HISTOGRAM") == (name in HISTOGRAMS) or (kind == "COUNTER" and up_to is None), (name, kind, up_to)
    for histogram in HISTOGRAMS:
        ends = [up_to for name, kind, up_to, _, _ in found if name == histogram and kind == "HISTOGRAM"]
        expect(ends, [1 << at for at in range(len(ends) - 1)] + [None], f"ranges of {histogram}")
    # What a number is of stands in its column, also where name or meaning say it.
    units = {name: (unit, text) for name, unit, text in server.query("select name, unit, help from information_schema.teak_metrics")}
    for name, (unit, text) in units.items():
        named = [word for word in ("bytes", "seconds", "milliseconds", "microseconds") if word in name.split("_") or text.endswith(f"in {word}")]
        assert not named or unit in [word.upper() for word in named], (name, unit, text)
    expect([units[name][0] for name in ("os_log_written", "row_lock_time_max", "commits", "snapshot_oldest_seconds")], ["BYTES", "MILLISECONDS", None, "SECONDS"], "units")


def case_ranges(server):
    """How long something took is in the range that it belongs to."""
    def ranges(name):
        found = server.query(f"select up_to, value from information_schema.teak_metrics where name = '{name}' and kind = 'HISTOGRAM'")
        return {up_to: value for up_to, value in found}

    table(server, 10)
    before, syncs, commits = ranges("lock_wait_microseconds"), ranges("log_sync_microseconds"), ranges("commit_microseconds")
    with server.connect() as holder, server.connect() as waiter:
        rows(holder, "update t set v = 0 where id = 1")
        thread = threading.Thread(target=rows, args=(waiter, "update t set v = 1 where id = 1"))
        thread.start()
        wait_until(lambda: status(server)["row_lock_current_waits"] == 1, "the wait")
        time.sleep(0.3)
        holder.commit()
        thread.join()
        waiter.commit()
    after = ranges("lock_wait_microseconds")
    more = {up_to: after[up_to] - before[up_to] for up_to in after if after[up_to] != before[up_to]}
    expect(sum(more.values()), 1, "waits")
    assert next(iter(more)) in (1 << 19, 1 << 20, 1 << 21), more
    # Two commits of changes, each with its sync or with that of a group.
    expect(sum(ranges("commit_microseconds").values()) - sum(commits.values()), 2, "commits")
    assert 1 <= sum(ranges("log_sync_microseconds").values()) - sum(syncs.values()) <= 6
    expect(sum(ranges("log_sync_microseconds").values()), status(server)["os_log_fsyncs"], "syncs")


def case_rights(server):
    """The numbers are nobody's in particular: whoever may see the status may see them."""
    server.query("create or replace user somebody")
    found = server.query("show grants for somebody")
    assert "PROCESS" not in str(found), found
    client = f"mariadb --no-defaults --socket={server.socket} --user=somebody --skip-column-names -e"
    with os.popen(f"{client} 'select count(*) from information_schema.teak_metrics'") as answer:
        assert int(answer.read()) > 150


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(cases_of(sys.modules[__name__]), arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
