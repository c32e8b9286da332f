"""`teak replicate` between servers of a test: the configuration, the process, how far it is, and whether both sides have the same."""

import os
import re
import shutil
import signal
import subprocess
import time

import pymysql

from kit.cases import carry_out, check
from kit.options import parser
from kit.server import Server, free_port

# Seconds in which something must have moved, and those in which what is waited for must be there: machines are slow.
PATIENCE = 30.0
LONGEST = 4 * PATIENCE
SOURCE_OPTIONS = ["--log-bin=b", "--binlog-format=row", "--default-storage-engine=InnoDB", "--character-set-server=utf8mb4", "--default-time-zone=+00:00",
                  "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"]
TARGET_OPTIONS = ["--character-set-server=utf8mb4", "--default-time-zone=+00:00", "--server-id=99"]


class Agent:
    """The program; what it says goes to a file beside its configuration."""

    def __init__(self, teak, directory, target):
        self.teak, self.target = teak, target
        self.config, self.log = os.path.join(directory, "replicate.toml"), os.path.join(directory, "replicate.log")
        self.process = None

    def configure(self, sources, **target):
        """`sources` are the keys of each one by its name, as TOML has their values."""
        parts = [("[target]", {"socket": f'"{self.target.socket}"', "user": '"root"', "engine": '"Teak"', **target})]
        parts += [("[[source]]", {"name": f'"{name}"', "user": '"root"', **keys}) for name, keys in sources.items()]
        with open(self.config, "w", encoding="utf-8") as file:
            for head, keys in parts:
                print(head, *(f"{key} = {value}" for key, value in keys.items() if value is not None), sep="\n", file=file)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.teak, "replicate", "--config", self.config], stderr=log)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self):
        """By SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=30)
        self.process = None
        return status

    def ended(self):
        """Waits for its end; the exit status."""
        status = self.process.wait(timeout=PATIENCE)
        self.process = None
        return status

    def command(self, name, *arguments):
        """A subcommand: its exit status, and what it says."""
        done = subprocess.run([self.teak, "replicate", name, "--config", self.config, *arguments], capture_output=True, check=False)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def says(self):
        """All that it has said."""
        if not os.path.exists(self.log):
            return ""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def forget(self):
        """What it has said so far."""
        with open(self.log, "w", encoding="utf-8"):
            pass

    def wait_for(self, text):
        """Until it has said something."""
        self.until(lambda: text in self.says(), f"that it says {text!r}")

    def until(self, condition, what):
        """Waits for it, while the program runs, and as long as sources go on."""
        began = since = time.monotonic()
        stands = self.all_positions()
        while not condition():
            check(self.process is not None and self.process.poll() is None, f"the agent has ended while there was to wait for {what}:\n{self.says()}")
            now = time.monotonic()
            if now > since + PATIENCE:
                moved = self.all_positions()
                check(moved != stands and now < began + LONGEST, f"not within {now - began:.0f} s, at {moved}: {what}:\n{self.says()}\n"
                      f"{self.target.query('show full processlist', database=None)}")
                since, stands = now, moved
            time.sleep(0.02)

    def all_positions(self):
        """How far all sources are; None if that cannot be told now."""
        try:
            return self.target.query("select source, gtid from teak_replicate.position order by 1", database=None)
        except pymysql.err.MySQLError:
            return None

    def position(self, name):
        """GTIDs up to which a source was applied; None if that cannot be told now."""
        try:
            found = self.target.query(f"select gtid from teak_replicate.position where source = '{name}'", database=None)
            return set(found[0][0].split(",")) if found else None
        except pymysql.err.MySQLError:
            return None

    def catch_up(self, name, source):
        """Until the target has what the source has now."""
        wanted = set(source.query("select @@gtid_binlog_pos", database=None)[0][0].split(","))
        self.until(lambda: self.position(name) == wanted, f"{name} at {wanted}, it is at {self.position(name)}")


def definition(server, database, table):
    """SHOW CREATE TABLE, but for the engine and the counter."""
    text = server.query(f"show create table `{database}`.`{table}`", database=None)[0][1]
    return re.sub(r" ENGINE ?= ?\w+| AUTO_INCREMENT=\d+", "", text)


def columns_of(server, database, table):
    """Names of all columns, and whether one is computed as it is read: of such tables CHECKSUM TABLE depends on the engine."""
    found = server.query(f"select column_name, extra from information_schema.columns where table_schema = '{database}' and table_name = '{table}'", database=None)
    return [name for name, _ in found], any("VIRTUAL" in extra for _, extra in found)


def expect_same(source, target, database, renamed=None):
    """All tables of a database are the same, in definition and rows, whatever it is called in the target; returns how many rows there are."""
    both = ((source, database), (target, renamed or database))
    listed = "select table_name from information_schema.tables where table_schema = '{}' and table_type <> 'VIEW' order by 1"
    tables, theirs = ([row[0] for row in server.query(listed.format(name), database=None)] for server, name in both)
    check(tables == theirs, f"tables of {database}: {tables} at the source, {theirs} at the target")
    rows = 0
    for table in tables:
        there, here = (definition(server, name, table) for server, name in both)
        check(there == here, f"{database}.{table} is defined otherwise:\n{there}\n{here}")
        columns, is_virtual = columns_of(source, database, table)
        names = ", ".join(f"`{name}`" for name in columns)
        there, here = (sorted(map(repr, server.query(f"select {names} from `{name}`.`{table}`", database=None))) for server, name in both)
        check(there == here, f"{database}.{table}: {len(there)} rows at the source, {len(here)} here; {sorted(set(there) - set(here))[:3]} instead of {sorted(set(here) - set(there))[:3]}")
        sums = [server.query(f"checksum table `{name}`.`{table}`", database=None)[0][1] for server, name in both]
        check(is_virtual or sums[0] == sums[1], f"{database}.{table}: checksum {sums[0]} at the source, {sums[1]} here")
        rows += len(there)
    return rows


def others_of(server, database):
    """Views, routines and triggers of a database, the last two with their bodies."""
    query = """select 'view', table_name, '' from information_schema.views where table_schema = '{0}'
        union all select routine_type, routine_name, routine_definition from information_schema.routines where routine_schema = '{0}'
        union all select 'trigger', trigger_name, action_statement from information_schema.triggers where trigger_schema = '{0}' order by 1, 2"""
    return list(server.query(query.format(database), database=None))


def beside(writers, work):
    """Does `work` while threads write, each of which has `stopped`, and its `trouble`, in the end."""
    for writer in writers:
        writer.start()
    try:
        work()
    finally:
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join()
    troubles = [writer.trouble for writer in writers if writer.trouble]
    check(not troubles, f"{troubles}")


class FollowingCases:
    """Cases with two sources and a target. Each has databases of its own, and a source of its own name."""

    def __init__(self, arguments):
        shutil.rmtree(arguments.directory, ignore_errors=True)
        self.directory = arguments.directory
        self.source = Server(os.path.join(arguments.directory, "source"), arguments.plugin_dir)
        self.other = Server(os.path.join(arguments.directory, "other"), arguments.plugin_dir)
        self.target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir, free_port())
        self.agent = Agent(arguments.teak, arguments.directory, self.target)
        self.names = 0

    def begin(self):
        for server, options in ((self.source, [*SOURCE_OPTIONS, "--server-id=1"]), (self.other, [*SOURCE_OPTIONS, "--server-id=2"]), (self.target, TARGET_OPTIONS)):
            server.install()
            server.start(options)

    def end(self):
        self.agent.kill()
        for server in (self.source, self.other, self.target):
            server.kill()

    def recover(self):
        """After a case that failed."""
        self.agent.kill()
        self.source.query("set global binlog_format = row, log_bin_compress = 0", database=None)

    def at(self, statements, server=None, database=None, **settings):
        """Statements on one connection of the source, or another server."""
        connection = (server or self.source).connect(database=database, autocommit=True, **settings)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.close()

    def source_keys(self, server=None, **keys):
        return {"socket": f'"{(server or self.source).socket}"', "start": '"now"', **keys}

    def follow(self, name=None, **keys):
        """Begins to follow the source under a new name; the name."""
        self.names += 1
        name = name or f"s{self.names}"
        self.agent.configure({name: self.source_keys(**keys)})
        self.agent.forget()
        self.agent.start()
        self.agent.wait_for(f"{name}: follows from")
        return name

    def arrive(self, name, *databases):
        """All has come, and SIGTERM ends it."""
        self.agent.catch_up(name, self.source)
        rows = sum(expect_same(self.source, self.target, database) for database in databases)
        check(self.agent.stop() == 0, f"SIGTERM is no end in order: {self.agent.says()}")
        return rows

    def stops(self, status, *words, **keys):
        """What follows the last name stops, and says why."""
        found = self.agent.ended()
        said = self.agent.says()
        check(found == status and all(word in said for word in words), f"status {found} instead of {status}, {words}: {said}")


def run_cases(kind, about):
    """The cases of a class of this kind, as a program; its exit status."""
    arguments = parser(about, names="cases; all without").parse_args()
    cases = kind(arguments)
    try:
        cases.begin()
        return 1 if carry_out([getattr(cases, name) for name in kind.__dict__ if name.startswith("case_")], arguments.names, recover=cases.recover) else 0
    finally:
        cases.end()
