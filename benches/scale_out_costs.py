#!/usr/bin/env python3
"""What a node of a large cluster costs, by a small model whose inputs are measured here, on private servers with a cache of 64 MB: memory for a session, an
open table, a leaf, a prepared transaction; bytes of log for a commit; processor time of recovery; connections, statements and memory of a head with Spider. The
formulae are in `node` and `cluster`; docs/design/scale-out.md has what comes of them.

usage: PYTHONPATH=tests benches/scale_out_costs.py [--shards 1000] [--tb 10] [--clients 1000000] [--heads 100] ...

Bytes, connections and statements are counted, and hardly depend on what else the machine does; processor time does. What is measured elsewhere is in
RECORDED, with its source. Takes two minutes.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pymysql

from kit.asking import rows
from kit.options import parser
from kit.server import Server
from kit.spider import Spider, plugins

MB, GB, TB = 10**6, 10**9, 10**12
OPTIONS = ["--teak-cache-size=64M", "--max-connections=700", "--table-open-cache=2000", "--table-definition-cache=2000", "--open-files-limit=20000", "--teak-flush-log-at-trx-commit=2"]
SESSIONS, TABLES, PARTITIONS, TRANSACTIONS, READS, ROUNDS = 400, 400, 200, 1000, 200, 8
SCHEMA = "create table {} (id int primary key, k int not null, c char(100) not null, pad char(60) not null, key k (k)) engine={}"
# As in crates/core/benches/large: 190 bytes a row, about half of which compress.
ROWS = "insert into {} select seq, seq * 7919 % 100003, sha2(seq, 384), repeat('p', 60) from seq_1_to_{}"
LEAF_ROWS = 200_000
LOG_MIB = 64
# What other scripts have measured, each with where it is written.
RECORDED = {
    "backup_processor_s_a_gb": (3.2, "of files, server and command: 0.36 s for 113 MB (benches/README.md, Backups)"),
    "copy_processor_s_a_gb": (14.7, "of rows, in the target: 4.4 s for 300 MB (docs/design/replicate.md, The copy)"),
    "load_processor_s_a_gb": (20.7, "of rows, dump and load, in the target: 6.2 s for 300 MB (the same)"),
    "extent_of_backup": (32, "bytes in memory of `teak backup` (docs/design/backup.md)"),
    "leaves_a_page": (256, "docs/design/scale.md"),
    "resolve_s": (0.0006, "of `teak resolve`, a transaction (docs/scale-out.md)"),
}
COPIERS = 4
# Ports that a client of Linux has to one address by default, and how long one is taken after its connection was closed.
PORTS, TIME_WAIT_S = 28_232, 60


def status(server, name):
    """A number of SHOW GLOBAL STATUS."""
    return int(server.query(f"show global status like '{name}'", database=None)[0][1])


def of_engine(server, *purposes):
    """Bytes that TEAK_MEMORY has for these purposes; of all of them but what is spare, if none is named."""
    found = dict(server.query("select lower(purpose), bytes from information_schema.teak_memory", database=None))
    return int(sum(size for purpose, size in found.items() if (purpose in purposes if purposes else purpose != "spare")))


def each(statements, sessions):
    for number, session in enumerate(sessions):
        for statement in statements:
            rows(session, statement.format(number + 1))


@contextlib.contextmanager
def working(server, *options):
    """A server while it is used."""
    server.start([*OPTIONS, *options])
    try:
        yield server
    finally:
        server.stop()


def sessions(server, found, name):
    """Of a session that has asked once, and of one that has read and changed a row in a transaction: of the process, and of the engine."""
    server.query("select v.id, t.id from t join t v using (id) where t.id = 1")
    before, engine = server.memory()[0], of_engine(server)
    connected = [server.connect(autocommit=True) for _ in range(SESSIONS)]
    each(["select 1"], connected)
    found[f"session_idle{name}"] = (server.memory()[0] - before) / SESSIONS
    each(["begin", "select c from t where id = {}", "update t set k = k + 1 where id = {}"], connected)
    found[f"session_active{name}"] = (server.memory()[0] - before) / SESSIONS
    found[f"session_active_engine{name}"] = (of_engine(server) - engine) / SESSIONS
    each(["rollback"], connected)
    for session in connected:
        session.close()


def tables(server, found):
    """Bytes of an open table with two trees, of the process and of the engine; and what a start takes of the processors with and without the tables."""
    with working(server):
        found["start_processor_s"] = server.cpu_seconds()
        with server.connect(autocommit=True) as session:
            for number in range(TABLES):
                rows(session, SCHEMA.format(f"many{number}", "Teak"))
    with working(server):
        found["start_with_tables_processor_s"] = server.cpu_seconds()
        with server.connect(autocommit=True) as session:
            rows(session, "select 1 from t limit 0")
            before, engine = server.memory()[0], of_engine(server)
            for number in range(TABLES):
                rows(session, f"select 1 from many{number} limit 0")
            found["table_open"] = (server.memory()[0] - before) / TABLES
            found["table_open_engine"] = (of_engine(server) - engine) / TABLES


def leaves(server, found):
    """Bytes of a leaf: of its rows, on disk, and what stands for it in memory."""
    raw, disk, number = (int(value) for value in server.query("select sum(raw_bytes), sum(disk_bytes), sum(leaves) from information_schema.teak_indexes where table_name = 't' and tree = 0", database=None)[0])
    server.query("select count(*), sum(length(c)) from t use index ()")
    found["leaf_raw"], found["leaf_disk"] = raw / number, disk / number
    every = int(server.query("select sum(leaves) from information_schema.teak_indexes where table_name = 't'", database=None)[0][0])
    found["leaf_in_memory"] = of_engine(server, "leaves") / every
    found["rows_a_leaf"] = LEAF_ROWS / number


def commits(server, found):
    """Bytes and syncs of log, and bytes of the binary log, for the commit of an update of a row, plain and in two phases; memory for one that is prepared."""
    plain = ["update t set c = reverse(c) where id = {}"]
    prepare = ["xa start 'x{0}'", *plain, "xa end 'x{0}'", "xa prepare 'x{0}'"]
    for name, statements in (("commit", plain), ("commit_xa", [*prepare, "xa commit 'x{0}'"])):
        binary = "select variable_value from information_schema.global_status where variable_name = 'binlog_bytes_written'"
        with server.connect(autocommit=True) as session:
            before = status(server, "Teak_log_bytes_written"), int(server.query(binary)[0][0]), status(server, "Teak_os_log_fsyncs")
            for number in range(TRANSACTIONS):
                for statement in statements:
                    rows(session, statement.format(number + 1))
            found[f"{name}_log"] = (status(server, "Teak_log_bytes_written") - before[0]) / TRANSACTIONS
            found[f"{name}_binlog"] = (int(server.query(binary)[0][0]) - before[1]) / TRANSACTIONS
            found[f"{name}_log_syncs"] = (status(server, "Teak_os_log_fsyncs") - before[2]) / TRANSACTIONS
    before = of_engine(server)
    for number in range(SESSIONS):
        with server.connect(autocommit=True) as session:
            each([statement.format(number + 1) for statement in prepare], [session])
    found["prepared"] = (of_engine(server) - before) / SESSIONS
    with server.connect(autocommit=True) as session:
        for number in range(SESSIONS):
            rows(session, f"xa rollback 'x{number + 1}'")


def replay(server, found):
    """Processor seconds of a start for a GiB of log, less those of a start without any."""
    server.start([*OPTIONS, "--teak-checkpoint-log-size=1T"])
    with server.connect(autocommit=True) as session:
        first = 0
        while status(server, "Teak_log_bytes_since_checkpoint") < LOG_MIB << 20:
            for _ in range(20):
                first = (first + 7919) % (LEAF_ROWS - 500)
                rows(session, f"update t set c = reverse(c), k = k + 1 where id between {first} and {first + 499}")
    time.sleep(2)  # the log is written once a second
    size = status(server, "Teak_log_bytes_since_checkpoint")
    server.kill()
    with working(server):
        server.query("select * from t where id = 1")
        found["replay_processor_s_a_gib"] = (server.cpu_seconds() - found["start_processor_s"]) / size * 2**30


def single(arguments, found):
    """Everything that one server tells."""
    server = Server(os.path.join(arguments.directory, "node"), arguments.plugin_dir)
    server.install()
    try:
        with working(server, "--log-bin", "--binlog-format=ROW"):
            server.query(SCHEMA.format("t", "Teak"))
            server.query(ROWS.format("t", LEAF_ROWS))
            server.query("set global teak_checkpoint_now = on", database=None)
        with working(server):
            server.query("select count(*) from t force index (k)")
            leaves(server, found)
        with working(server, "--log-bin", "--binlog-format=ROW", "--sync-binlog=1", "--teak-flush-log-at-trx-commit=1"):
            commits(server, found)
        with working(server):
            sessions(server, found, "")
        with working(server, "--thread-handling=pool-of-threads"):
            sessions(server, found, "_pool")
        tables(server, found)
        replay(server, found)
    finally:
        server.kill()


def connections_of_head(spider, found):
    """For each spider_conn_recycle_mode: how many connections forty idle sessions of the head leave at a shard that each has read from, and how many connections
    and statements a read and a commit there make."""
    shard, head = spider.shards[0], spider.head
    for mode in (0, 1, 2):
        head.query(f"set global spider_conn_recycle_mode = {mode}", database=None)
        connected = [head.connect(autocommit=True) for _ in range(40)]
        before = connections_at(shard)
        each(["select n from wide where p = 2 and id = 2"], connected)
        found[f"recycle{mode}_kept"] = (connections_at(shard) - before) / len(connected)
        for name, statement in (("read", "select n from wide where p = 2 and id = 2"), ("commit", "update wide set n = n + 1 where p = 2 and id = 2")):
            made, asked = status(shard, "Connections"), status(shard, "Questions")
            for _ in range(READS):
                rows(connected[0], statement)
            # Each look is a connection and a statement itself.
            found[f"recycle{mode}_connections_a_{name}"] = (status(shard, "Connections") - made - 2) / READS
            found[f"recycle{mode}_statements_a_{name}"] = (status(shard, "Questions") - asked - 2) / READS
        for session in connected:
            session.close()
    head.query("set global spider_conn_recycle_mode = 0", database=None)


def processors_of_head(spider, found):
    """Microseconds of the head's processors for a read and a commit on one shard with spider_conn_recycle_mode = 1, of a table of two partitions and of a wide
    one: the least of some rounds, as others have the caches, too."""
    head = spider.head
    head.query("set global spider_conn_recycle_mode = 1", database=None)
    statements = {"read": "select n from {} where p = 0 and id = 0", "commit": "update {} set n = n + 1 where p = 0 and id = 0"}
    with head.connect(autocommit=True) as session:
        for _ in range(ROUNDS):
            for name, statement in statements.items():
                for table in ("small", "wide"):
                    used = head.cpu_seconds()
                    for _ in range(READS):
                        rows(session, statement.format(table))
                    taken, what = (head.cpu_seconds() - used) / READS * 1e6, f"head_us_a_{name}_{table}"
                    found[what] = min(taken, found.get(what, taken))
    # Of commits the difference is less than their noise.
    found["head_us_a_partition"] = (found["head_us_a_read_wide"] - found["head_us_a_read_small"]) / (PARTITIONS - 2)
    head.query("set global spider_conn_recycle_mode = 0", database=None)


def connections_at(shard):
    """Of all heads."""
    return int(shard.query("select count(*) from information_schema.processlist where user = 'spider'", database=None)[0][0])


def memory_of_head(spider, found):
    """Bytes that a session of the head takes for a partition of a table that it has open, and for a connection to a shard, at both ends."""
    head, shard, count = spider.head, spider.shards[0], 100
    of_server = lambda: status(head, "Memory_used")
    connected = [head.connect(autocommit=True) for _ in range(count)]
    each(["select 1"], connected)
    of_shard, used = shard.memory()[0], of_server()
    each(["begin", "select n from wide where p = 0 and id = 0"], connected)
    found["shard_connection"] = (shard.memory()[0] - of_shard) / count
    of_head, first = head.memory()[0], of_server() - used
    each(["select n from wide where p = 1 and id = 1"], connected)
    found["head_connection"] = (head.memory()[0] - of_head) / count
    found["head_partition"] = (first - (of_server() - used - first)) / count / PARTITIONS
    for session in connected:
        session.close()


def silent_shard(spider, found):
    """Seconds until a statement fails, of a session that has a connection to a shard that answers nothing more, with spider_net_read_timeout = 3; and of one
    that has none, with what the head has by itself."""
    shard, head = spider.shards[1], spider.head
    session = head.connect(autocommit=True)
    rows(session, "set session spider_net_read_timeout = 3")
    rows(session, "begin")
    rows(session, "select n from small where p = 1 and id = 1")
    other = head.connect(autocommit=True)
    rows(other, "select n from small where p = 0 and id = 0")
    shard.process.send_signal(signal.SIGSTOP)
    try:
        for name, one in (("silent_connected_s", session), ("silent_unconnected_s", other)):
            began = time.monotonic()
            try:
                rows(one, "select n from small where p = 1 and id = 1")
            except pymysql.err.MySQLError as error:
                found[name + "_error"] = error.args[0]
            found[name] = time.monotonic() - began
    finally:
        shard.process.send_signal(signal.SIGCONT)
        session.close()
        other.close()


def head_of(arguments, found):
    """What a head tells; nothing where there is no plugin of Spider."""
    plugin_dir = plugins(arguments.directory)
    if plugin_dir is None:
        return
    spider = Spider(arguments.directory, plugin_dir, 2, OPTIONS)
    try:
        spider.install()
        columns = "p int not null, id int not null, n int not null, primary key (p, id)"
        spider.table("small", columns, "p", "Teak")
        spider.head.query("insert into small values (0, 0, 0), (1, 1, 0)")
        parts = []
        for number in range(PARTITIONS):
            spider.shards[number % 2].query(f"create table wide_{number} ({columns}) engine=Teak")
            parts.append(f"partition p{number} values in ({number}) comment='srv \"shard{number % 2}\", table \"wide_{number}\"'")
        began, asked = time.monotonic(), [status(shard, "Questions") for shard in spider.shards]
        spider.head.query(f"create table wide ({columns}) engine=Spider comment='wrapper \"mysql\"' partition by list (p) ({', '.join(parts)})")
        found["ddl_ms_a_partition"] = (time.monotonic() - began) / PARTITIONS * 1000
        spider.head.query(f"insert into wide select seq, seq, 0 from seq_0_to_{PARTITIONS - 1}")
        spider.head.query("flush tables")
        asked, began = [status(shard, "Questions") for shard in spider.shards], time.monotonic()
        spider.head.query("select n from wide where p = 2 and id = 2")
        found["open_ms_a_partition"] = (time.monotonic() - began) / PARTITIONS * 1000
        found["open_statements_a_partition"] = sum(status(shard, "Questions") - before - 1 for shard, before in zip(spider.shards, asked)) / PARTITIONS
        connections_of_head(spider, found)
        processors_of_head(spider, found)
        memory_of_head(spider, found)
        silent_shard(spider, found)
    finally:
        spider.kill()


def amount(value, unit):
    """As a person reads it."""
    if unit == "B":
        for name, size in (("TB", TB), ("GB", GB), ("MB", MB), ("KB", 1000)):
            if value >= size:
                return f"{value / size:,.1f} {name}"
    if unit == "s":
        for name, size in (("days", 86400), ("h", 3600), ("min", 60)):
            if value >= 2 * size:
                return f"{value / size:,.1f} {name}"
        return f"{value:,.2g} s" if value < 10 else f"{value:,.0f} s"
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:,.2f} {unit}"


def node(found, given):
    """One shard: what, value, unit. Sizes are of rows before they are compressed, unless it is said."""
    size, cache, rate = given.tb * TB, given.cache_gb * GB, given.gbit / 8 * GB
    number, log = size / found["leaf_raw"], 2 * max(2**28, cache / 64)
    files = number * found["leaf_disk"]
    backup_rate = min(given.disk_gb * GB, rate, given.cores / 2 / found["backup_processor_s_a_gb"] * GB)
    commits = given.clients * given.rate * given.touched / given.shards
    return [
        ("rows", number * found["rows_a_leaf"], ""),
        ("leaves", number, ""),
        ("files", files, "B"),
        ("pages of level 1", number / found["leaves_a_page"], ""),
        ("share of the leaves that the cache has", 100 * cache / size, "%"),
        ("what stands for those, beside the cache", cache / found["leaf_raw"] * found["leaf_in_memory"], "B"),
        ("open tables", given.tables * found["table_open"], "B"),
        ("log that a start has to read, at most", log, "B"),
        ("processor time of that start", log / 2**30 * found["replay_processor_s_a_gib"], "s"),
        ("the start, on all cores", log / 2**30 * found["replay_processor_s_a_gib"] / given.cores, "s"),
        ("to read the cache anew, in order", cache / found["leaf_raw"] * found["leaf_disk"] / (given.disk_gb * GB), "s"),
        ("commits a second", commits, ""),
        ("log a day", commits * found["commit_xa_log"] * 86400, "B"),
        ("binary log a day", commits * found["commit_xa_binlog"] * 86400, "B"),
        ("backup, processor time", files / GB * found["backup_processor_s_a_gb"], "s"),
        ("backup on half of the cores, through the network", files / backup_rate, "s"),
        ("memory of the backup's list", number * found["extent_of_backup"], "B"),
        ("copy by teak replicate, processor time", size / GB * found["copy_processor_s_a_gb"], "s"),
        ("the copy, by its four threads", size / GB * found["copy_processor_s_a_gb"] / COPIERS, "s"),
        ("dump and load, processor time", size / GB * found["load_processor_s_a_gb"], "s"),
        ("binary log that comes during the copy", commits * found["commit_xa_binlog"] * size / GB * found["copy_processor_s_a_gb"] / COPIERS, "B"),
    ]


def cluster(found, given):
    """All of them behind heads with Spider: what, value, unit."""
    per_head, trip, working_now = given.clients / given.heads, given.trip_us / 1e6, given.clients * given.busy_percent / 100
    busy_head, servers = working_now / given.heads, given.shards * given.replicas + given.heads
    opened = given.shards * given.tables * found["open_statements_a_partition"]
    pooled = found["recycle1_statements_a_commit"]
    us = {name: found[f"head_us_a_{name}_small"] + given.shards * found["head_us_a_partition"] for name in ("read", "commit")}
    in_doubt = per_head * given.rate * 2 * given.touched * trip
    return [
        ("servers", servers, ""),
        ("between two failures of one", given.mtbf_years * 365 * 86400 / servers, "s"),
        ("sessions of a head", per_head, ""),
        ("memory of a head for its sessions", per_head * found["session_idle"], "B"),
        ("and for partitions of a table that each has open", per_head * given.shards * found["head_partition"], "B"),
        ("recycle mode 2, connections at a shard", given.clients, ""),
        ("memory of the shard for them", given.clients * found["shard_connection"], "B"),
        ("connections of a head", per_head * given.shards, ""),
        ("memory of the head for them", per_head * given.shards * found["head_connection"], "B"),
        ("modes 0 and 1, with the key: connections at a shard", working_now * given.touched / given.shards, ""),
        ("connections of a head", busy_head * given.touched, ""),
        ("modes 0 and 1, without the key: connections at a shard", working_now, ""),
        ("memory of the shard for them", working_now * found["shard_connection"], "B"),
        ("connections of a head", busy_head * given.shards, ""),
        ("memory of the head for them", busy_head * given.shards * found["head_connection"], "B"),
        ("transactions a second of a head", per_head * given.rate, ""),
        ("mode 1: cores that so many reads take", per_head * given.rate * given.touched * us["read"] / 1e6, ""),
        ("mode 1: cores that so many commits take", per_head * given.rate * given.touched * us["commit"] / 1e6, ""),
        ("mode 0: transactions a second, one head to one shard", PORTS / TIME_WAIT_S, ""),
        ("mode 1: a commit on one shard, round trips", pooled * trip, "s"),
        (f"a commit on {given.touched} shards, round trips", given.touched * pooled * trip, "s"),
        ("a statement without the key, shard by shard", given.shards * pooled * trip, "s"),
        ("a head opens a table first", given.shards * found["open_statements_a_partition"] * trip, "s"),
        ("a head opens all tables, one after the other", opened * trip, "s"),
        ("statements at a shard, when all heads do", given.heads * given.tables * found["open_statements_a_partition"], ""),
        ("transactions in doubt when a head dies", in_doubt, ""),
        ("teak resolve, round trips to all shards", given.shards * 3 * trip + in_doubt * found["resolve_s"], "s"),
    ]


def main():
    arguments = parser(__doc__, shards=1000, tb=10.0, clients=1_000_000, heads=100, cores=64, cache_gb=256.0, disk_gb=3.0, gbit=25.0, tables=100, replicas=3,
                       rate=1.0, touched=2, busy_percent=1.0, trip_us=200.0, mtbf_years=3.0).parse_args()
    subprocess.run(["rm", "-rf", arguments.directory], check=True)
    os.makedirs(arguments.directory)
    found = {}
    single(arguments, found)
    head_of(arguments, found)
    print("measured here:")
    for name, value in found.items():
        print(f"  {name:34}{value:14,.2f}")
    print("recorded:")
    for name, (value, source) in RECORDED.items():
        found[name] = value
        print(f"  {name:34}{value:14,.4g}   {source}")
    print("given: " + ", ".join(f"{name} {value:,}" for name, value in vars(arguments).items() if isinstance(value, (int, float))))
    print("computed, of a shard:")
    for what, value, unit in node(found, arguments):
        print(f"  {what:58}{amount(value, unit):>16}")
    if "head_connection" not in found:
        print("There is no plugin of Spider, so nothing of heads.")
        return 0
    print("computed, of all:")
    for what, value, unit in cluster(found, arguments):
        print(f"  {what:58}{amount(value, unit):>16}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
