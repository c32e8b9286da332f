#!/usr/bin/python3
"""`teak top`: situations are read from its screen, and from what it prints; keys explain, end, filter and sort; what is missing is said; the terminal comes
back.

usage: top.py [CASE...]
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

import pymysql

from kit.asking import error_of, expect, rows, wait_until
from kit.cases import carry_out_all
from kit.options import parser
from kit.server import Server, own_plugins
from kit.waiting import Waiter
from shown import Top, once, options, view

DEBIAN_PLUGINS = "/usr/lib/mysql/plugin"
OTHER, USAGE, SERVER = 1, 2, 5
# Of the overview, once a sample has come.
READY = "of log since"
# What a terminal would do something about: a title, a cleared screen, colours.
HOSTILE = "\x1b]0;stolen title\x07\x1b[2J\x1b[31m"


class Cases:
    """On one server."""

    def __init__(self, arguments):
        self.teak, self.directory = arguments.teak, arguments.directory
        os.makedirs(self.directory, exist_ok=True)
        plugins = own_plugins(self.directory, arguments.plugin_dir)
        shutil.copy(os.path.join(DEBIAN_PLUGINS, "metadata_lock_info.so"), plugins)
        self.server = Server(os.path.join(self.directory, "server"), plugins)
        self.server.install()
        self.start()
        self.server.query("create database if not exists test", database=None)

    def start(self, *more):
        """The server, with digests of statements."""
        self.server.start(["--performance-schema=ON", "--performance-schema-consumer-statements-digest=ON", "--max-connections=400", *more])

    def top(self, *arguments, user="root", interval="0.2", **how):
        """One on a terminal."""
        return Top(self.directory, self.teak, *options(self.server, user), f"--interval={interval}", *arguments, **how)

    def table(self):
        """With three rows."""
        self.server.query("create or replace table t (id int primary key, v int) engine=Teak")
        self.server.query("insert into t values (1, 0), (2, 0), (3, 0)")

    @contextlib.contextmanager
    def chain(self):
        """Three in a row: the first is in the way of all."""
        self.table()
        root = Waiter(self.server, "update t set v = 1 where id = 1")
        second = Waiter(self.server, "update t set v = 1 where id = 2").waits("update t set v = 2 where id = 1")
        third = Waiter(self.server).waits("select * from t where id = 2 lock in share mode")
        try:
            yield root, second, third
        finally:
            for session in (root, second, third):
                error_of(self.server.query, f"kill {session.id}")
            for session in (second, third, root):
                session.end()

    def case_a_chain_of_three(self):
        with self.chain() as (root, second, third), self.top() as top:
            top.until("[1 Overview]", "in the way", f"2 wait, at last, for {root.id}: KILL {root.id}")
            top.press("3")
            screen = top.until("[3 Locks]", f"KILL {root.id}", "t PRIMARY (1) X", "t PRIMARY (2) S")
            lines = [line.lstrip("> ").split()[:2] for line in screen.splitlines()[6:9]]
            expect(lines, [[str(root.id), "2"], [str(second.id), "1"], [str(third.id), "0"]], "chain")
            wait_until(lambda: len(view(self.teak, self.server, "locks")) == 3, "the chain in JSON")
            told = view(self.teak, self.server, "locks")
            found = [(row["connection"], row["depth"], row["behind"], row["waits_for"], row["kill"], row["table"], row["key"]) for row in told]
            expect(found, [(root.id, 0, 2, None, f"KILL {root.id}", None, None), (second.id, 1, 1, str(root.id), f"KILL {second.id}", "test.t", "(1)"),
                           (third.id, 2, 0, str(second.id), f"KILL {third.id}", "test.t", "(2)")], "chain in JSON")
            expect((told[0]["query"], told[1]["query"], told[1]["user"]), ("Sleep", "update t set v = 2 where id = 1", "root"), "who they are")
            top.press("Enter")
            top.until("All of the row", f"KILL {root.id}")
            top.press("q")
            top.until("[3 Locks]", without=("All of the row",))
            # What ends the root frees all.
            top.press("k")
            top.until(f"End {root.id}?", "Any other key: no")
            top.press("n")
            top.until("nobody was ended", "t PRIMARY (2) S")
            top.press("k", "c")
            top.until(f"done: KILL {root.id}")
            second.join()
            expect(second.error, None, "end of the second")

    def case_a_query_is_ended_and_its_session_stays(self):
        with self.chain() as (_, second, third), self.top() as top:
            top.press("2")
            top.until("[2 Sessions]", "update t set v = 2")
            top.press("/", *"share", "Enter")
            top.until("only rows with 'share'", "select * from t", without=("update t",))
            top.press("k")
            top.until(f"End {third.id}?", f"KILL QUERY {third.id}", "select * from t where id = 2 lock in share mode")
            top.press("q")
            top.until(f"done: KILL QUERY {third.id}")
            third.join()
            expect(third.error, 1317, "the query's end")
            expect(rows(third.connection, "select 1"), ((1,),), "its session")
            top.press("Escape")
            top.until("update t set v = 2", without=("only rows with",))
            assert second.is_alive()

    def case_metadata(self):
        self.table()
        for with_plugin in (False, True):
            if with_plugin:
                self.server.query("install soname 'metadata_lock_info'")
            with Top(self.directory, self.teak, *options(self.server), "--interval=0.2") as top:
                holder = Waiter(self.server, "select * from t")
                waiter = Waiter(self.server).waits("alter table t force")
                top.press("3")
                if with_plugin:
                    top.until("metadata t", f"KILL {holder.id}")
                    wanted = [(holder.id, 1, None, None), (waiter.id, 0, "metadata", str(holder.id))]
                    found = lambda: [(row["connection"], row["behind"], row["kind"], row["waits_for"]) for row in view(self.teak, self.server, "locks")]
                    wait_until(lambda: found() == wanted, f"{wanted} in JSON")
                else:
                    top.until("unknown", "alter table t", "INSTALL SONAME 'metadata_lock_info'")
                rows(holder.connection, "rollback")
                for session in (waiter, holder):
                    session.end()
        self.server.query("uninstall soname 'metadata_lock_info'")

    def case_innodb_and_teak_in_one_chain(self):
        self.table()
        self.server.query("create or replace table inno (id int primary key, v int) engine=InnoDB")
        self.server.query("insert into inno values (1, 0)")
        root = Waiter(self.server, "update inno set v = 1 where id = 1")
        second = Waiter(self.server, "update t set v = 1 where id = 1").waits("update inno set v = 2 where id = 1")
        third = Waiter(self.server).waits("update t set v = 2 where id = 1")
        found = lambda: [(row["connection"], row["depth"], row["kind"]) for row in view(self.teak, self.server, "locks")]
        wanted = [(root.id, 0, None), (second.id, 1, "InnoDB"), (third.id, 2, "Teak")]
        wait_until(lambda: found() == wanted, f"{wanted}")
        self.server.query(f"kill {root.id}")
        second.join()
        rows(second.connection, "rollback")
        for session in (third, second, root):
            session.end()

    def case_a_deadlock(self):
        self.table()
        with self.top() as top:
            top.press("6")
            top.until("[6 Deadlocks]", "nothing")
            one, other = Waiter(self.server, "update t set v = 1 where id = 1"), Waiter(self.server, "update t set v = 1 where id = 2")
            one.waits("update t set v = 2 where id = 2")
            last = error_of(rows, other.connection, "update t set v = 2 where id = 1")
            one.join()
            errors = [one.error, last and last[0]]
            assert 1213 in errors, errors
            victim = (one, other)[errors.index(1213)]
            line = next(line for line in top.until("YES", "NO").splitlines() if "YES" in line)
            assert str(victim.id) in line.split(), line
            told = view(self.teak, self.server, "deadlocks")
            expect(sorted((row["connection"], row["victim"], row["key"]) for row in told),
                   sorted((each.id, "YES" if each is victim else "NO", key) for each, key in ((one, "(2)"), (other, "(1)"))), "in JSON")
            for session in (one, other):
                error_of(rows, session.connection, "rollback")
                session.end()

    def case_an_old_snapshot(self):
        self.table()
        with self.server.connect() as reader:
            rows(reader, "start transaction with consistent snapshot")
            rows(reader, "select * from t")
            self.server.query("update t set v = v + 1")
            wait_until(lambda: any(row["connection"] == reader.thread_id() and row["snapshot_seconds"] for row in view(self.teak, self.server, "transactions")),
                       "the snapshot in JSON")
            with self.top() as top:
                assert str(reader.thread_id()) in top.line("oldest snapshot").split()
                top.press("4")
                line = top.until("[4 Trx]", "RUNNING").splitlines()[6].split()
                expect((line[1], line[2]), (str(reader.thread_id()), "RUNNING"), "the transaction")

    def case_prepared_without_a_session(self):
        self.table()
        session = self.server.connect()
        for statement in ("xa start 'gone'", "update t set v = 5 where id = 1", "xa end 'gone'", "xa prepare 'gone'"):
            rows(session, statement)
        session.close()
        wait_until(lambda: any(row["xid"] and row["connection"] is None for row in view(self.teak, self.server, "transactions")), "it is nobody's")
        waiter = Waiter(self.server).waits("update t set v = 6 where id = 1")
        with self.top() as top:
            top.press("3")
            top.until("XA ROLLBACK 'gone'", "trx ")
            top.press("k")
            top.until("XA ROLLBACK 'gone'?  y: yes")
            top.press("c")
            top.until("nobody was ended")
            expect(len(self.server.query("xa recover")), 1, "prepared")
            top.press("Home", "k", "y")
            top.until("done: XA ROLLBACK 'gone'")
        waiter.end()
        expect((waiter.error, self.server.query("xa recover")), (None, ()), "who waited")

    def case_explain(self):
        self.table()
        with self.chain() as (root, second, _), self.top() as top:
            top.press("3")
            top.until(f"KILL {root.id}", "t PRIMARY (1) X")
            top.press("Down", "e")
            top.until(f"Connection {second.id}", "table=t", "key=PRIMARY")
            top.press("Escape")
            top.until("[3 Locks]", without=("key=PRIMARY",))
            top.press("Home", "e")
            top.until(f"Connection {root.id}", "runs no statement")
            # Where there is no session there is no plan.
            top.press("Escape", "7", "e")
            top.until("[7 Memory]", "not about a session")

    def case_sorted_and_filtered_by_the_server(self):
        sessions = [self.server.connect(autocommit=True) for _ in range(250)]
        try:
            self.server.query("create or replace user zoe@localhost")
            zoe = self.server_connection("zoe")
            with self.top() as top:
                top.press("2")
                top.until("[2 Sessions]", "nothing")
                top.press("i")
                top.until("Sleep", "PROCESSLIST: the first 200 only")
                top.press("/", *"zoe", "Enter")
                top.until("only rows with 'zoe'", "zoe", without=("first 200",))
                top.press("Escape", "s")
                top.until("vID", str(max(session.thread_id() for session in sessions)))
                top.press("r")
                first = min(session.thread_id() for session in sessions)
                top.until("^ID", str(first))
                top.press("/", *"nobody'has\\this", "Enter")
                top.until("nothing has 'nobody'has")
            zoe.close()
        finally:
            for session in sessions:
                session.close()

    def server_connection(self, user):
        """As somebody else."""
        return pymysql.connect(unix_socket=self.server.socket, user=user, autocommit=True)

    def case_statements(self):
        self.table()
        for number in range(30):
            self.server.query(f"select v from t where id = {number}")
        with self.top() as top:
            top.press("5")
            top.until("[5 SQL]", "SELECT")
            top.press("/", *"`v`", "Enter")
            top.until("SELECT `v` FR")
        told = {row["query"].strip(): row for row in view(self.teak, self.server, "statements")}
        expect(told["SELECT `v` FROM `t` WHERE ID = ?"]["count"], 30, "how often")

    def case_hostile_texts(self):
        self.table()
        for user in (f"x{HOSTILE}", "quote'`\"\\"):
            name = user.replace("\\", "\\\\").replace("'", "''")
            self.server.query(f"create or replace user '{name}'@localhost")
            self.server.query(f"grant all on *.* to '{name}'@localhost")
        holder = Waiter(self.server, "update t set v = 1 where id = 1")
        connection = self.server_connection(f"x{HOSTILE}")
        waiter = Waiter(self.server).waits(f"update t set v = 2 where id = 1 and '{HOSTILE}\u009b2J\u202e' <> ''")
        with self.top() as top:
            top.press("2", "i")
            top.until("[2 Sessions]", "update t set v = 2", "x\\x1b]0;s")
            for number in "13456":
                top.press(number)
                top.until(f"[{number} ")
            top.press("3")
            top.until(f"  {waiter.id} ")
            top.press("End", "Enter")
            top.until("All of the row", f"KILL {waiter.id}")
            top.until("\\x1b]0;stolen", "title\\x07\\x1b[2J\\x1b[31m\\x9b2J\\u{202e}")
            expect("stolen" in top.tmux("display-message", "-p", "#{pane_title}"), False, "title")
            top.press("x", "k")
            top.until(f"End {waiter.id}?", "\\x1b]0;stolen")
            top.press("n", "e")
            top.until(f"Connection {waiter.id}", "table=t")
        told = [row for row in view(self.teak, self.server, "locks") if row["connection"] == waiter.id]
        assert HOSTILE + "\u009b2J\u202e" in told[0]["query"], told
        rows(holder.connection, "rollback")
        connection.close()
        for session in (waiter, holder):
            session.end()

    def case_without_process(self):
        self.server.query("create or replace user somebody@localhost")
        self.server.query("grant select, update on test.* to somebody@localhost")
        with self.chain() as (root, second, _):
            found = once(self.teak, self.server, user="somebody")
            assert "no PROCESS privilege" in found["missing"]["server"], found["missing"]
            assert "SLAVE MONITOR" in found["missing"]["SHOW ALL SLAVES STATUS"], found["missing"]
            expect((found["views"]["sessions"], found["views"]["locks"], found["views"]["deadlocks"]), ([], [], []), "others")
            expect(found["server"]["lock_waits"] >= 2, True, "numbers of all")
            own = self.server_connection("somebody")
            rows(own, "begin")
            rows(own, "select * from test.t where id = 3 for update")
            with self.top(user="somebody") as top:
                top.until("! server: the user has no PROCESS privilege")
                top.press("4")
                top.until("[4 Trx]", str(own.thread_id()), without=(f" {second.id} ",))
                top.press("2", "i")
                top.until("somebody", str(own.thread_id()), without=("root",))
            own.close()
            self.server.query("grant process, slave monitor on *.* to somebody@localhost")
            self.server.query("grant select on performance_schema.* to somebody@localhost")
            wait_until(lambda: len(view(self.teak, self.server, "locks", user="somebody")) == 3, "all is seen")
            expect(once(self.teak, self.server, user="somebody")["missing"], {}, "with PROCESS")
            assert root.id

    def case_replicas(self):
        self.server.query("change master 'far' to master_host='127.0.0.1', master_port=1, master_user='x', master_connect_retry=60", database=None)
        self.server.query("start slave 'far'", database=None)
        try:
            with self.top() as top:
                top.until("replica far")
                top.press("8")
                top.until("[8 Replicas]", "far", "127.0.0.1", "Connecting")
            told = view(self.teak, self.server, "replicas")
            expect((told[0]["name"], told[0]["io"], told[0]["sql"], told[0]["lag_seconds"]), ("far", "Connecting", "Yes", None), "in JSON")
        finally:
            self.server.query("stop slave 'far'", database=None)
            self.server.query("reset slave 'far' all", database=None)

    def case_paused(self):
        with self.top() as top:
            top.press("2", "i")
            top.until("[2 Sessions]", without=("asked for",))
            top.press("p")
            top.until("PAUSED")
            with self.server.connect() as session:
                name = str(session.thread_id())
                # Another view is asked for, all the same; nothing else is.
                top.press("p")
                top.until(name, without=("PAUSED",))

    def case_the_server_goes_away_and_comes_back(self):
        with self.top() as top:
            top.until("[1 Overview]", READY)
            self.server.kill()
            top.until("! server: ", without=(READY,))
            top.press("2", "3", "?")
            top.until("Keys")
            top.press("x")
            self.start()
            top.press("1")
            top.until(READY, without=("! server: ",))
            # The session has settings of its own again, and keys work.
            top.press("2", "i")
            top.until("[2 Sessions]", without=("! ",))

    def case_colours(self):
        for environment, wanted in (((), True), ((("NO_COLOR", "1"),), False)):
            with self.top(environment=environment) as top:
                top.until("[1 Overview]", READY)
                seen = top.screen("-e")
                expect(bool(re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|38;5;\d+)(?:;\d+)*m", seen)), wanted, f"colours with {environment}")
                # What is chosen is told otherwise.
                assert "\n> " in top.screen()

    def case_sizes(self):
        for columns, lines in ((80, 24), (40, 10), (200, 60), (30, 7)):
            with self.top(columns=columns, lines=lines) as top:
                top.until("[1 Over")
                for key in ("2", "k", "n", "3", "Enter", "x", "7", "?"):
                    top.press(key)
                top.until("Keys")
                top.tmux("resize-window", "-x", "80", "-y", "24")
                top.press("x")
                top.until("[7 Memory]", "Teak_memory_of_blocks")

    def case_the_terminal_comes_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            with self.top() as top:
                top.until("[1 Overview]", READY)
                os.kill(top.process(), number)
                top.ended()
        with self.top() as top:
            top.until("[1 Overview]", READY)
            top.press("q")
            top.ended()
        with self.top() as top:
            top.until("[1 Overview]", READY)
            top.press("C-c")
            top.ended()

    def case_a_terminal_that_is_gone_ends_it(self):
        for how in ("closed", "hung up on"):
            with self.top() as top:
                top.until("[1 Overview]", READY)
                process = top.process()
                if how == "closed":
                    top.tmux("kill-server")
                else:
                    # Nobody sends a signal, as where a program in between ends.
                    os.kill(int(top.tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
                wait_until(lambda: not os.path.exists(f"/proc/{process}"), "its end")

    def case_what_cannot_begin(self):
        def ends(*arguments):
            done = subprocess.run([self.teak, "top", *arguments], capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
            return done.returncode, done.stderr

        known = options(self.server)
        for arguments, status, text in (
            ((*known,), USAGE, "no terminal"),
            ((*known, "--json"), USAGE, "--once"),
            ((*known, "--once", "--interval=0"), USAGE, "0.1 to 3600"),
            ((*known, "--once", "--interval=nan"), USAGE, "0.1 to 3600"),
            ((*known, "--record-size=1"), USAGE, "--record"),
            ((*known, "--once", "--record=x"), USAGE, "cannot be used"),
            (("--no-defaults", "--socket=/nowhere", "--once"), SERVER, "/nowhere"),
            ((*options(self.server, "nobody-of-that-name"), "--password=x", "--once"), SERVER, "Access denied"),
        ):
            found, errors = ends(*arguments)
            assert found == status and text in errors, (arguments, found, errors)
        with Top(self.directory, self.teak, "--no-defaults", "--socket=/nowhere") as top:
            assert "/nowhere" in top.ended(SERVER)
        done = subprocess.run([self.teak, "top", *known, "--once", "--interval=0.1"], capture_output=True, text=True, check=True)
        assert "[1 Overview]" in done.stdout and "\x1b" not in done.stdout, done.stdout

    def case_zz_a_server_without_the_plugin(self):
        self.server.stop()
        for name in ("#teak", "test"):
            shutil.rmtree(os.path.join(self.server.data, name))
        plugins = self.server.plugin_dir
        empty = os.path.join(self.directory, "no-plugins")
        shutil.rmtree(empty, ignore_errors=True)
        os.makedirs(empty)
        self.server.plugin_dir = empty
        try:
            self.start("--default-storage-engine=InnoDB")
            self.server.query("create database test", database=None)
            self.server.query("create table plain (id int primary key, v int) engine=InnoDB")
            self.server.query("insert into plain values (1, 1)")
            found = once(self.teak, self.server)
            for table in ("TEAK_LOCK_WAITS", "TEAK_TRX", "TEAK_SNAPSHOTS", "TEAK_DEADLOCKS"):
                assert "INSTALL SONAME 'ha_teak'" in found["missing"][table], found["missing"]
            expect((found["server"]["engine"], found["server"]["log_bytes"] is None), ("InnoDB", False), "whose numbers")
            root = Waiter(self.server, "update plain set v = 2 where id = 1")
            waiter = Waiter(self.server).waits("update plain set v = 3 where id = 1")
            with self.top() as top:
                top.until("! TEAK_LOCK_WAITS", "(InnoDB)", "update plain set")
                for number, text in (("2", "update plain"), ("3", "InnoDB plain PRIMARY"), ("4", "TEAK_TRX: this server has no such table"), ("6", "no such table"),
                                     ("7", "Innodb_buffer_pool_byte")):
                    top.press(number)
                    top.until(f"[{number} ", text)
            rows(root.connection, "rollback")
            for session in (waiter, root):
                session.end()
        finally:
            self.server.plugin_dir = plugins


def main():
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    if not shutil.which("tmux"):
        print("tmux is missing: scripts/setup.sh --test")
        return OTHER
    return carry_out_all(Cases(arguments), arguments.names)


if __name__ == "__main__":
    sys.exit(main())
