#!/usr/bin/python3
"""What performance_schema has of Teak: its threads, its files with what was read and written, the stages of long statements."""

import os
import sys
import threading
from pathlib import Path

from kit.asking import expect, rows, wait_until
from kit.cases import cases_of, on_server
from kit.options import parser
from kit.server import Server

# The server's own stages leave room for few others.
OPTIONS = ("--performance-schema=ON", "--performance-schema-max-stage-classes=200", "--performance-schema-instrument=%=ON", "--performance-schema-consumer-events-stages-current=ON",
           "--performance-schema-consumer-events-stages-history-long=ON", "--teak-cache-size=16M")
ALWAYS = {"ahead", "alike", "block", "checkpoint", "history", "log-sync"}


def threads(server):
    """Names and numbers of the operating system of all threads that are listed."""
    return server.query("select substring(name, 13), thread_os_id from performance_schema.threads where name like 'thread/teak/%'")


def named(server):
    """The engine's threads by what the operating system has: number and name."""
    return {int(task.name): (task / "comm").read_text().strip() for task in Path(f"/proc/{server.process.pid}/task").iterdir()
            if (task / "comm").read_text().startswith("teak-")}


def files(server, kind="%"):
    """Counts of each listed file that is open or has a name."""
    found = server.query(
        "select file_name, event_name, count_read, sum_number_of_bytes_read, count_write, sum_number_of_bytes_write, count_misc "
        f"from performance_schema.file_summary_by_instance where event_name like 'wait/io/file/teak/{kind}'")
    names = [row[0] for row in found]
    expect(len(names), len(set(names)), "names that are listed twice")
    return {os.path.basename(row[0]): row[1:] for row in found}


def written(server, kind):
    """Bytes that were written to files of a kind, those that are gone included."""
    return int(server.query("select sum_number_of_bytes_write from performance_schema.file_summary_by_event_name "
                            f"where event_name = 'wait/io/file/teak/{kind}'")[0][0])


def stages(session, statement):
    """The stages of Teak that a statement went through, in their order, each with how much of it was done."""
    rows(session, "truncate table performance_schema.events_stages_history_long")
    rows(session, statement)
    return rows(session, "select substring(event_name, 12), work_completed, work_estimated from performance_schema.events_stages_history_long "
                         "where event_name like 'stage/teak/%' order by event_id")


def fill(server, table="t", count=60_000):
    server.query(f"create or replace table {table} (id int primary key, v int, w varchar(200)) engine=Teak")
    server.query(f"insert into {table} select seq, seq * 7 % 1000, sha2(seq, 512) from seq_1_to_{count}")


def case_threads(server):
    listed = threads(server)
    expect(ALWAYS - {name for name, _ in listed}, set(), "threads that are always there")
    system = named(server)
    assert listed and all(system[number].startswith(f"teak-{name}"[:15]) for name, number in listed), (listed, system)
    expect(len(system), len(listed), "threads that are listed, and that there are")
    # Those that a statement starts come and go.
    fill(server, count=200_000)
    server.query("alter table t add key v (v), add key w (w)")
    wait_until(lambda: len(threads(server)) == len(named(server)), "ends of threads")
    server.query("set global teak_checkpoint_now = on")
    writers = server.query(
        "select distinct substring(t.name, 13) from performance_schema.events_waits_summary_by_thread_by_event_name s join performance_schema.threads t "
        "using (thread_id) where s.event_name like 'wait/io/file/teak/%' and s.count_star > 0 and t.name like 'thread/teak/%'")
    assert {("checkpoint",), ("log-sync",)} & set(writers), writers


def case_files(server):
    fill(server)
    server.query("set global teak_checkpoint_now = on")
    before = files(server)
    kinds = {row[0].rsplit("/", 1)[1] for row in before.values()}
    assert {"table", "log", "other"} <= kinds, kinds
    on_disk = {entry.name for entry in Path(server.data, "#teak").rglob("*") if entry.is_file()}
    expect({name for name, row in before.items() if not row[0].endswith("/temporary")} - on_disk, set(), "files that are not there")
    expect({name for name in on_disk if name.endswith(".teak")} - set(before), set(), "tables' files that are not listed")
    logged = written(server, "log")
    said = int(server.query("show global status like 'Teak_log_bytes_written'")[0][1])
    server.query("insert into t select seq + 1000000, 0, sha2(seq, 512) from seq_1_to_5000")
    more = int(server.query("show global status like 'Teak_log_bytes_written'")[0][1]) - said
    wait_until(lambda: written(server, "log") - logged >= more, "the log's writes")
    # A dropped table's file goes with it.
    server.query("drop table t")
    wait_until(lambda: set(files(server, "table")) <= {entry.name for entry in Path(server.data, "#teak").glob("*.teak")}, "the dropped file")


def case_segments_are_renamed(server):
    fill(server, count=150_000)
    for _ in range(4):
        server.query("update t set w = reverse(w)")
        server.query("set global teak_checkpoint_now = on")
    listed, there = set(files(server, "log")), {entry.name for entry in Path(server.data, "#teak", "log").iterdir()}
    expect(listed - there, set(), "segments that have another name by now")


def case_temporary_files(server):
    fill(server, count=150_000)
    with server.connect(autocommit=True) as session:
        rows(session, "create temporary table large (id int primary key, w text) engine=Teak as select id, concat(w, w, w) as w from t")
        assert any(row[4] > 0 for row in files(server, "temporary").values()), files(server, "temporary")
    wait_until(lambda: not any("#sql" in name for name in files(server, "temporary")), "its file goes")


def case_stages(server):
    fill(server)
    with server.connect(autocommit=True) as session:
        online = stages(session, "alter table t add key v (v)")
        expect([name for name, *_ in online], ["Building indexes", "Applying changes to indexes"], "an index beside writers")
        assert online[0][2] >= online[0][1] > 10_000, online
        alone = stages(session, "alter table t add key w (w), algorithm=copy")
        assert "Building indexes" in [name for name, *_ in alone], alone
        expect([name for name, *_ in stages(session, "alter table t modify v bigint, algorithm=inplace")],
               ["Rebuilding the table", "Applying changes to the table"], "a rebuild")
        checked = stages(session, "check table t extended")
        expect([name for name, *_ in checked][:1], ["Checking table"], "a check")
        expect([name for name, *_ in stages(session, "optimize table t")][:1], ["Packing table"], "packing")


def case_waits(server):
    fill(server, count=100)
    with server.connect() as holder, server.connect() as waiter:
        rows(holder, "update t set v = 0 where id = 5")
        number = waiter.thread_id()
        thread = threading.Thread(target=rows, args=(waiter, "update t set v = 1 where id = 5"))
        thread.start()
        current = ("select s.event_name, t.processlist_state from performance_schema.threads t join performance_schema.events_stages_current s "
                   f"using (thread_id) where processlist_id = {number}")
        wait_until(lambda: server.query(current) == (("stage/teak/Waiting for a row lock", "Waiting for a row lock"),), "the wait")
        state = server.query(f"select state from information_schema.processlist where id = {number}")
        expect(state, (("Waiting for a row lock in test.t, index PRIMARY",),), "the process list, which has a text for each wait")
        holder.rollback()
        thread.join()
        waiter.rollback()
        assert not server.query(current) or "teak" not in server.query(current)[0][0], server.query(current)


def case_restarts(server):
    fill(server, count=1000)
    server.kill()
    server.start(OPTIONS)
    assert ALWAYS <= {name for name, _ in threads(server)}
    expect(server.query("select count(*) from t"), ((1000,),), "rows")
    assert any(row[2] > 0 for row in files(server, "log").values()), "recovery reads the log"


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    return on_server(cases_of(sys.modules[__name__]), arguments.names, Server(arguments.directory, arguments.plugin_dir), OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
