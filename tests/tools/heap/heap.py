#!/usr/bin/python3
"""`teak_heap`: what a session's statements leak by design is found, all of it and nothing else, beside busy sessions, with jemalloc and tcmalloc, with a thread
for each connection and with the thread pool; samples and dumps; who may, and what is refused; with glibc's malloc an error that helps.

usage: heap.py [CASE...]
"""

import contextlib
import json
import os
import random
import stat
import subprocess
import sys
import threading

import pymysql

from kit.asking import error_of, expect, rows, wait_until
from kit.cases import carry_out, cases_of, check, chosen, name_of
from kit.options import parser, seed
from kit.server import MARIADBD, Server, own_plugins
from profile import Profile, read_by

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SESSIONS, CHECKS = 32, 100
PLANTED = ("planted_leak", "planted_calloc")
FUNCTIONS = {"leak": "integer", "leak_otherwise": "integer", "churn": "integer", "fork_while": "integer", "interrupted": "integer"}
POOL = ("--thread-handling=pool-of-threads", "--thread-pool-size=4")
# Name, library that is preloaded, options.
WATCHED = [("jemalloc", "libjemalloc.so.2", ()), ("jemalloc, thread pool", "libjemalloc.so.2", POOL), ("tcmalloc", "libtcmalloc.so.4", ()),
           ("tcmalloc, thread pool", "libtcmalloc.so.4", POOL)]


def one(connection, statement, values=None):
    """The one value that a statement returns."""
    return rows(connection, statement, values)[0][0]


def leaks(connection, name):
    """Objects and bytes that are told for a mark, and the same by function."""
    told = json.loads(one(connection, "select teak_heap_leaks(%s)", (name,)))
    by_function = {}
    for site in told["sites"]:
        if site["kept_by"]:
            continue
        objects, size = by_function.get(site["function"], (0, 0))
        by_function[site["function"]] = (objects + site["objects"], size + site["bytes"])
    return told, by_function


@contextlib.contextmanager
def alone(server, **settings):
    """A connection that is followed no more when it ends."""
    connection = server.connect(autocommit=True, **settings)
    try:
        yield connection
    finally:
        connection.close()


class Busy:
    """Sessions that allocate, free and leak while others are checked."""

    STATEMENTS = (
        "select churn(300)", "select leak(777, 3)", "select count(distinct v), max(text) from t", "insert into t (v, text) values (1, 'x'), (2, repeat('y', 500))",
        "update t set v = v + 1 where id < 20", "delete from t order by id desc limit 3", "select group_concat(seq) from seq_1_to_500",
        "create or replace temporary table mine as select * from t limit 50",
    )

    def __init__(self, server, count):
        self.server, self.stopping, self.failures, self.done = server, False, [], 0
        self.threads = [threading.Thread(target=self.work, args=(random.Random(number),)) for number in range(count)]

    def work(self, source):
        try:
            with alone(self.server) as connection:
                while not self.stopping:
                    try:
                        rows(connection, source.choice(self.STATEMENTS))
                    except pymysql.err.OperationalError as error:
                        if error.args[0] not in (1020, 1205, 1213):
                            raise
                    self.done += 1
        except Exception as error:  # whatever it is, the test has to know
            self.failures.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads:
            thread.join()
        check(not self.failures, f"a busy session: {self.failures[:1]}")


# Statements that a client may send in which `{}` is an expression that leaks.
SHAPES = (
    "select {}", "do {}", "select {} from seq_1_to_1 union all select 1", "set @x = {}", "select * from (select {} as n) as d",
    "insert into kept (n) values ({})", "execute immediate 'select {}'", "call nested('{}')", "select {}, sum(v) from t where id < 10",
)


def expected(source):
    """An expression that leaks, with its objects and bytes by function."""
    if source.random() < 0.3:
        size = source.randrange(100, 3000)
        return f"leak_otherwise({size})", {"planted_calloc": (1, size)}
    size, times = source.randrange(1, 5000), source.randrange(1, 20)
    return f"leak({size}, {times})", {"planted_leak": (times, size * times)}


def warm(connection, source):
    """What the server keeps of a statement that it sees for the first time is there already."""
    rows(connection, "select teak_heap_mark('warm')")
    for _ in range(2):
        for shape in SHAPES:
            run(connection, shape.format(expected(source)[0]))
    rows(connection, "select teak_heap_mark('warm')")
    leaks(connection, "warm")


def run(connection, statement):
    """Runs it to its end; what it returns is of no interest."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        while cursor.nextset():
            pass


class Fresh:
    """With a server that has done nothing yet: what the engine frees while it is watched, it has allocated then."""

    def case_what_the_engine_counts_of_small_objects_is_what_is_found(self, server):
        with alone(server) as connection:
            def counted():
                # What TEAK_MEMORY adds up to, without blocks, changes and what is large: these lie in mappings.
                mapped = "sum(if(name in ('memory_slabs', 'memory_slabs_kept', 'memory_large', 'memory_large_kept'), value, 0))"
                named = "sum(if(name like 'memory\\_of\\_%%', value, 0))"
                return int(one(connection, f"select {named} - {mapped} from information_schema.teak_metrics"))

            rows(connection, "create or replace table big (id int primary key, v int, text varchar(200), key (v))")
            rows(connection, "select teak_heap_start(1)")
            before = counted()
            for part in range(20):
                rows(connection, "insert into big select seq, seq * 7 %% 1000, repeat('x', 50 + seq %% 100) from seq_%s_to_%s" % (part * 4000 + 1, part * 4000 + 4000))
            # Changes that stay, each with its status: small objects for each row of an open transaction.
            connection.begin()
            rows(connection, "update big set v = v + 1 where id % 2 = 0")
            more = counted() - before
            rows(connection, "select teak_heap_stop()")
            # What zstd has is C's, and not the engine's own allocator's.
            found = rows(connection, "select live_objects, live_bytes from information_schema.teak_heap where stack like '%teak_core::%' and function not like 'ZSTD%'")
            # As the engine counts them: with the C library's words in front, in steps of 16 bytes.
            taken = sum(objects * max(32, (size // objects + 23) // 16 * 16) for objects, size in found)
            lost = one(connection, "select lost_objects from information_schema.teak_heap_allocator")
            connection.rollback()
            check(more > 1_000_000 and abs(taken - more) < 0.05 * more and lost == 0, f"the engine counts {more} bytes, {taken} were found, {lost} lost")


class Cases:
    """With an allocator that can be watched."""

    def case_all_planted_leaks_and_no_others_are_found_beside_busy_sessions(self, server):
        source = random.Random(server.seed)
        # Tables of others would be opened, and kept, by whoever comes when they were closed.
        with Busy(server, SESSIONS) as busy, alone(server) as connection:
            warm(connection, source)
            for number in range(CHECKS):
                shape = source.choice(SHAPES)
                expression, planted = expected(source)
                rows(connection, "select teak_heap_mark(%s)", (f"m{number}",))
                run(connection, shape.format(expression))
                told, found = leaks(connection, f"m{number}")
                more = [site["stack"] for site in told["sites"] if site["function"] not in planted and not site["kept_by"]]
                expect(found, planted, f"{shape.format(expression)}: {more}")
                expect(told["lost"], 0, "objects without a place")
            check(busy.done > SESSIONS, "nobody was busy")

    def case_what_is_freed_is_no_leak(self, server):
        with alone(server) as connection:
            rows(connection, "select churn(10)")
            rows(connection, "select teak_heap_mark('a')")
            rows(connection, "select churn(1)")
            rows(connection, "select teak_heap_mark('a')")
            rows(connection, "select churn(20000)")
            expect(leaks(connection, "a")[1], {}, "churn")

    def case_several_statements_in_one_packet_are_all_followed(self, server):
        flag = pymysql.constants.CLIENT.MULTI_STATEMENTS
        with alone(server, client_flag=flag) as connection:
            statement = "select leak(10, 1); select leak(100, 2); select leak(1000, 3)"
            rows(connection, "select teak_heap_mark('a')")
            run(connection, statement)
            rows(connection, "select teak_heap_mark('a')")
            run(connection, statement)
            expect(leaks(connection, "a")[1], {"planted_leak": (6, 3210)}, statement)

    def case_marks_are_points_between_which_is_counted(self, server):
        with alone(server) as connection, alone(server) as other:
            rows(connection, "select teak_heap_mark('a'), leak(1, 1)")
            rows(connection, "select leak(10, 1)")
            rows(connection, "select teak_heap_mark('b')")
            rows(connection, "select leak(100, 1)")
            expect(leaks(connection, "b")[1], {"planted_leak": (1, 100)}, "since b")
            expect(leaks(connection, "a")[1].get("planted_leak"), (2, 110), "since a")
            said = error_of(rows, connection, "select teak_heap_leaks('c')")
            check(said[0] == 1105 and "no mark 'c': it has a, b" in said[1], said)
            said = error_of(rows, other, "select teak_heap_leaks('a')")
            check(said[0] == 1105 and "teak_heap_mark() sets one" in said[1], said)

    def case_the_table_has_sites_by_session_and_statement(self, server):
        with alone(server) as connection, alone(server) as other:
            number = connection.thread_id()
            rows(connection, "select teak_heap_session(1)")
            rows(connection, "select 'first', leak(10, 2)")
            rows(connection, "select teak_heap_mark('a')")
            rows(connection, "select 'first', leak(20, 3)")
            rows(connection, "/* a word */ select leak(30, 4) + 0")
            found = rows(other, "select live_objects, live_bytes, new_objects, new_bytes, digest_text, walk, stack from information_schema.teak_heap "
                         f"where session = {number} and function = 'planted_leak' order by live_bytes")
            expect([row[:6] for row in found], [(5, 80, 3, 60, "select ?, leak(?)", "WHOLE"), (4, 120, 4, 120, "select leak(?) + ?", "WHOLE")], "sites")
            for name in ("planted_leak", "Item_func_udf_int::val_int", "dispatch_command"):
                check(name in found[0][6], f"no {name} in {found[0][6]}")
            rows(connection, "select teak_heap_session(0)")
            rows(connection, "select leak(40, 5)")
            expect(one(other, f"select sum(live_objects) from information_schema.teak_heap where session = {number} and function = 'planted_leak'"), 9,
                   "objects after the session was left")

    def case_a_connection_that_ends_leaves_its_thread_to_others(self, server):
        with alone(server) as other:
            for _ in range(3):
                with alone(server) as connection:
                    rows(connection, "select teak_heap_session(1)")
                    number = connection.thread_id()
                    thread = threading.Thread(target=error_of, args=(rows, connection, "select sleep(20), leak(10, 1)"))
                    thread.start()
                    wait_until(lambda: rows(other, f"select 1 from information_schema.processlist where id = {number} and info like 'select sleep%'"), "sleep")
                    rows(other, f"kill {number}")
                    thread.join()
            wait_until(lambda: one(other, "select sessions from information_schema.teak_heap_allocator") == 0, "sessions to go")
            expect(one(other, "select recording from information_schema.teak_heap_allocator"), "NO", "recording")

    def case_samples_of_all_threads_stand_for_what_there_is(self, server):
        with alone(server) as connection, alone(server) as other:
            expect(one(connection, "select teak_heap_start(4096)"), 4096, "the period")
            said = error_of(rows, other, "select teak_heap_start()")
            check(said[0] == 1105 and "sampled already, every 4096 bytes" in said[1], said)
            threads = [threading.Thread(target=rows, args=(each, "select leak(1000, 10000)")) for each in (connection, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            expect(one(connection, "select teak_heap_stop()"), 1, "that it was stopped")
            expect(one(connection, "select teak_heap_stop()"), 0, "that nothing was stopped")
            objects, size, sessions = rows(connection, "select sum(live_objects), sum(live_bytes), count(distinct session) from information_schema.teak_heap "
                                           "where function = 'planted_leak' and live_bytes > 1000000")[0]
            check(18_000 < objects < 22_000 and 18_000_000 < size < 22_000_000 and sessions == 2, f"{objects} objects, {size} bytes, {sessions} sessions")

    def case_dumps_are_read_by_other_programs(self, server):
        with alone(server) as connection:
            rows(connection, "select teak_heap_start(16384)")
            rows(connection, "select leak(2000, 10000)")
            paths = {suffix: one(connection, "select teak_heap_dump(%s)", (f"{server.number}{suffix}",)) for suffix in (".heap", ".pb", ".pb.gz")}
            rows(connection, "select teak_heap_stop()")
            for path in paths.values():
                expect(os.path.dirname(path), server.dumps, "the directory")
                expect(stat.S_IMODE(os.stat(path).st_mode) & 0o7137, 0, f"rights of {path}")
            for program in ("jeprof", "google-pprof"):
                functions = read_by(program, MARIADBD, paths[".heap"])
                check(functions[0][0] == "planted_leak" and 17 < functions[0][1] < 22, f"{program}: {functions[:3]}")
            for suffix in (".pb", ".pb.gz"):
                profile = Profile(paths[suffix])
                found = profile.bytes_by_innermost()
                check(max(found, key=found.get) == "planted_leak" and 18e6 < found["planted_leak"] < 22e6, f"{suffix}: {found}")
                expect(profile.period, 16384, "the period")
                stack, _, labels = next(sample for sample in profile.samples if sample[0][0] == "planted_leak")
                check(any(name.startswith("dispatch_command") for name in stack), stack)
                expect(labels, {"session": connection.thread_id(), "statement": "select leak(?)"}, "labels")
                check(any(name.endswith("planted.so") for name in profile.mappings), profile.mappings)

    def case_a_dump_of_a_followed_session_has_each_object(self, server):
        with alone(server) as connection:
            rows(connection, "select teak_heap_session(1)")
            rows(connection, "select leak(300000, 10)")
            path = one(connection, "select teak_heap_dump(%s)", (f"exact{server.number}.heap",))
            with open(path, encoding="ascii") as file:
                lines = file.read().splitlines()
            check(lines[0].endswith("@ heapprofile"), lines[0])
            check(lines[1].startswith("10: 3000000 [10: 3000000] @ 0x"), lines[1])
            expect(read_by("google-pprof", MARIADBD, path)[0], ("planted_leak", 2.9), "google-pprof")

    def case_a_dump_is_never_written_over_a_file_nor_elsewhere(self, server):
        with alone(server) as connection:
            rows(connection, "select teak_heap_session(1)")
            name = f"twice{server.number}.pb"
            path = one(connection, "select teak_heap_dump(%s)", (name,))
            with open(path, "rb") as file:
                before = file.read()
            os.symlink("/tmp/teak-heap-test", os.path.join(server.dumps, f"link{server.number}.pb"))
            for bad, reason in ((name, "is there already"), (f"link{server.number}.pb", "is there already"), ("../a.pb", "no name for a dump"),
                                ("/tmp/a.pb", "no name for a dump"), ("", "no name for a dump"), (".pb", "no name for a dump"), ("ibdata1", "ends with .heap")):
                said = error_of(rows, connection, "select teak_heap_dump(%s)", (bad,))
                check(said and said[0] == 1105 and reason in said[1], f"{bad}: {said}")
            expect(one(connection, "select teak_heap_dump(null)"), None, "of NULL")
            with open(path, "rb") as file:
                check(file.read() == before, "the file was written over")
            check(not os.path.exists("/tmp/teak-heap-test"), "a link was followed")

    def case_only_those_with_super_may(self, server):
        server.query("create or replace user plain@localhost")
        server.query("grant all on test.* to plain@localhost")
        server.query("create or replace definer = root@localhost procedure test.by_root() sql security definer select teak_heap_leaks('x')")
        plain = pymysql.connect(unix_socket=server.socket, user="plain", database="test", autocommit=True)
        with plain, alone(server) as connection:
            rows(connection, "select teak_heap_session(1)")
            rows(connection, "select leak(10, 1)")
            for call in ("start()", "start(1)", "stop()", "dump('x.pb')", "session(1)", "session(0)", "mark('x')", "leaks('x')"):
                said = error_of(rows, plain, f"select teak_heap_{call}")
                check(said and said[0] == 1227 and "SUPER" in said[1], f"{call}: {said}")
            expect(rows(plain, "select * from information_schema.teak_heap"), (), "the table")
            expect(rows(plain, "select * from information_schema.teak_heap_allocator"), (), "the allocator")
            # In root's procedure it is root's right, and the session's own marks.
            said = error_of(rows, plain, "call by_root()")
            check(said[0] == 1105 and "no mark 'x'" in said[1], said)

    def case_wrong_calls_are_errors(self, server):
        with alone(server) as connection:
            for call in ("start(1, 2)", "stop(1)", "dump()", "session()", "mark()", "leaks('a', 'b')"):
                expect(error_of(rows, connection, f"select teak_heap_{call}")[0], 1582, call)
            expect(rows(connection, "select teak_heap_mark(null), teak_heap_leaks(null), teak_heap_session(null)"), ((None, None, None),), "of NULL")
            check(error_of(rows, connection, "create table g (a int, b int as (teak_heap_stop()))")[0] in (1901, 1903), "a generated column")
            check("at most 64 characters" in error_of(rows, connection, "select teak_heap_mark(repeat('x', 65))")[1], "a long name")
            check("quoted" in str(error_of(rows, connection, "select teak_heap_leaks('quoted %s %n')")), "a name with a format in it")

    def case_forks_and_signals_do_no_harm(self, server):
        with alone(server) as connection, Busy(server, 4):
            rows(connection, "select teak_heap_start(1)")
            rows(connection, "select teak_heap_session(1)")
            expect(one(connection, "select fork_while(20)"), 20, "children that ended well")
            check(one(connection, "select interrupted(300000)") > 0, "no signal came")
            rows(connection, "select teak_heap_mark('a')")
            rows(connection, "select leak(10, 10)")
            expect(leaks(connection, "a")[1], {"planted_leak": (10, 100)}, "after forks and signals")
            rows(connection, "select teak_heap_stop()")

    def case_the_plugin_goes_and_comes_back_beside_busy_sessions(self, server):
        there = "select plugin_name, plugin_status from information_schema.plugins where plugin_library = 'teak_heap.so'"
        with Busy(server, 8), alone(server) as connection:
            for _ in range(5):
                # The error is about what is about to go since the last time.
                check(error_of(rows, connection, "uninstall soname 'teak_heap'") in (None, (1305, "PLUGIN teak_heap_statements does not exist")), "UNINSTALL")
                check(error_of(rows, connection, "select teak_heap_stop()")[0] in (1305, 1046), "a function that is gone")
                # What sessions are within goes when they are not; until then INSTALL SONAME passes it over.
                rows(connection, "install soname 'teak_heap'")
                said = error_of(rows, connection, "select teak_heap_start(64)")
                check(said is None or "teak_heap_statements is not installed" in said[1] or "sampled already" in said[1], said)
                rows(connection, "select leak(10, 1000)")
                # MariaDB tells no more of sessions that had statements while the plugin was about to go.
                said = error_of(rows, connection, "select teak_heap_mark('a')")
                check(said is None or "connect anew" in said[1] or "is not installed" in said[1], said)
            error_of(rows, connection, "uninstall soname 'teak_heap'")
        with alone(server) as connection:
            wait_until(lambda: not rows(connection, there), "the plugin to go")
        with alone(server) as connection:
            rows(connection, "install soname 'teak_heap'")
            expect(one(connection, "select teak_heap_stop()"), 0, "that nothing runs")
            rows(connection, "select leak(10, 10)")
            rows(connection, "select teak_heap_mark('a')")
            rows(connection, "select leak(10, 10)")
            told, found = leaks(connection, "a")
            expect(found, {"planted_leak": (10, 100)}, f"after it came back: {told}, {rows(connection, 'select * from information_schema.teak_heap_allocator')}")

    def case_the_allocator_says_how_much_there_is(self, server):
        with alone(server) as connection:
            row = rows(connection, "select name, library, allocated, active, resident, retained, refusal from information_schema.teak_heap_allocator")[0]
            name, library, allocated, active, resident, retained, refusal = row
            expect((name, library.endswith(server.library), refusal), (server.allocator, True, None), "allocator")
            check(10e6 < allocated <= active and resident > 10e6 and retained >= 0, row)
            rows(connection, "select leak(50000000, 1)")
            more = one(connection, "select allocated from information_schema.teak_heap_allocator") - allocated
            # Others of the server give some back meanwhile.
            check(49e6 <= more < 60e6, f"{more} bytes more")

    def case_functions_of_the_engine_have_names_and_lines(self, server):
        with alone(server) as connection:
            rows(connection, "select teak_heap_start(256)")
            rows(connection, "insert into t (v, text) select seq, repeat('z', 200) from seq_1_to_5000")
            rows(connection, "select teak_heap_stop()")
            found = rows(connection, "select function, file, line from information_schema.teak_heap where module like '%/ha_teak.so' and file like '%crates/core/src/%'")
            check(found and all(line > 0 for _, _, line in found), f"{found[:3]}")
            check(any("teak_core::" in function for function, _, _ in found), f"{found[:10]}")


class Refused:
    """With an allocator that nobody can watch."""

    def case_glibc_is_refused_with_what_helps(self, server):
        with alone(server) as connection:
            for call in ("start()", "session(1)", "mark('a')"):
                said = error_of(rows, connection, f"select teak_heap_{call}")
                for word in ("glibc's malloc", "libjemalloc2", "LD_PRELOAD=/usr/lib/", "systemctl edit mariadb", "[mysqld_safe] in my.cnf"):
                    check(said[0] == 1105 and word in said[1], f"{call}: {said}")
            check("nothing was recorded" in error_of(rows, connection, "select teak_heap_dump('a.pb')")[1], "a dump")
            expect(rows(connection, "select teak_heap_stop(), teak_heap_session(0)"), ((0, 0),), "what ends nothing")
            expect(rows(connection, "select * from information_schema.teak_heap"), (), "the table")
            name, allocated, recording, refusal = rows(connection, "select name, allocated, recording, refusal from information_schema.teak_heap_allocator")[0]
            check(name == "glibc" and allocated > 1e6 and recording == "NO" and "libjemalloc2" in refusal, (name, allocated, recording, refusal))


def prepare(server):
    """Tables, functions and the plugin."""
    for statement in ("create database if not exists test", "install soname 'teak_heap'"):
        server.query(statement, database=None)
    for name, kind in FUNCTIONS.items():
        server.query(f"create function {name} returns {kind} soname 'planted.so'")
    for statement in ("create table t (id bigint auto_increment primary key, v int, text text)", "insert into t (v, text) select seq, 'a' from seq_1_to_100",
                      "create table kept (n int)", "create procedure nested(expression text) execute immediate concat('select ', expression)"):
        server.query(statement)


def main():
    arguments = parser(__doc__, "cases").parse_args()
    number = seed()
    names = {name_of(case) for case in chosen(cases_of(Fresh(), Cases(), Refused()), arguments.names)}
    failed = False
    plugins = own_plugins(arguments.directory, arguments.plugin_dir)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-I/usr/include/mariadb", "-o",
                    os.path.join(plugins, "planted.so"), os.path.join(HERE, "planted.c")], check=True)
    server = Server(os.path.join(arguments.directory, "server"), plugins)
    server.install()
    server.dumps = os.path.join(server.directory, "dumps")
    os.mkdir(server.dumps)
    server.start()
    prepare(server)
    server.stop()
    for at, (what, library, options) in enumerate([*WATCHED, ("glibc", None, ())]):
        holders = [Fresh(), Cases()] if library else [Refused()]
        cases = [case for case in cases_of(*holders) if name_of(case) in names]
        if not cases:
            continue
        print(f"-- {what}")
        server.seed, server.number, server.library, server.allocator = number + at, at, library, what.split(",")[0]
        server.program = ("env", f"LD_PRELOAD={LIBRARIES}/{library}", MARIADBD) if library else (MARIADBD,)
        server.start(["--teak-cache-size=32M", "--teak-flush-log-at-trx-commit=0", "--innodb-flush-log-at-trx-commit=0", f"--loose-teak-heap-directory={server.dumps}", *options])
        try:
            # Of itself it comes back with the server; after a case that failed perhaps not all of it.
            error_of(server.query, "install soname 'teak_heap'")
            failed |= carry_out(cases, arguments=(server,), recover=lambda: check(server.is_running(), server.log_end()))
        finally:
            if server.is_running():
                server.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main())
