#!/usr/bin/env python3
"""A semi-synchronous primary is killed while commits wait for an acknowledgement that does not come (AFTER_SYNC): they are in its binary log, and prepared
in the engines. Started as one of a set (`init_rpl_role=SLAVE`, scripts/replicas/set.cnf) it must roll them back and take them out of its log, or it could
not follow who has taken over without them; started as a primary it must commit them. What was acknowledged stays.

Each with Teak, with InnoDB, and with both in one transaction; in one file of the log, and over several; and with a definition behind them that cannot be
rolled back, where the server refuses to start as one of a set. Prints 'N passed, N failed'.
"""

import glob
import os
import threading

import pymysql

from kit.asking import error_of, expect, rows, wait_until
from kit.cases import carry_out
from kit.options import parser
from kit.replicas import set_options
from kit.server import Server, free_port

ENGINES = {"Teak": ("Teak",), "InnoDB": ("InnoDB",), "both": ("Teak", "InnoDB")}
# Commits that wait when the server is killed. The first waits for its acknowledgement, the second, in the log as well,
# for the first, and others are prepared only. If the log gets its next file behind the first, that waits in place of
# the second.
WAITING = 3
PRIMARY = ["--rpl-semi-sync-master-enabled=ON", "--read-only=OFF", "--server-id=1"]


class Client(threading.Thread):
    """A client whose statements are never acknowledged."""

    def __init__(self, server, statements):
        super().__init__()
        self.connection, self.statements, self.acknowledged = server.connect(), statements, False

    def run(self):
        try:
            for statement in self.statements:
                rows(self.connection, statement)
            self.acknowledged = True
        except pymysql.err.MySQLError:
            pass


class Test:
    """One server, whose replicas are away."""

    def __init__(self, arguments):
        self.server = Server(arguments.directory + "/primary", arguments.plugin_dir, free_port())
        self.server.install()
        self.options = [*set_options(), *PRIMARY]

    def log_files(self):
        """Sizes of the files of the binary log; commits that wait keep the server from telling them."""
        return [os.stat(path).st_size for path in sorted(glob.glob(self.server.data + "/binlog.0*"))]

    def state(self, engines):
        return [self.server.query(f"select * from in_{engine} order by id") for engine in engines], self.server.query("select @@gtid_binlog_pos")[0][0]

    def killed(self, engines, rotate, behind=()):
        """Tables of these engines with an acknowledged row each, and the state with that; then the server is killed while commits wait, the last in the log
        being `behind`, if that is given."""
        self.server.start([*self.options, "--rpl-semi-sync-master-enabled=OFF"])
        for engine in engines:
            self.server.query(f"create or replace table in_{engine} (id int primary key, v int) engine={engine}")
        control = self.server.connect(autocommit=True)
        rows(control, "begin")
        for engine in engines:
            rows(control, f"insert into in_{engine} values (0, 0)")
        rows(control, "commit")
        before = self.state(engines)
        rows(control, "set global rpl_semi_sync_master_enabled = 1")
        clients, files, logged = [], len(self.log_files()), 1 if rotate else 2

        def begin(statements, condition, what):
            clients.append(Client(self.server, statements))
            clients[-1].start()
            wait_until(condition, what, 20)

        for number in range(1, WAITING + 1):
            size = sum(self.log_files())
            change = (f"insert into in_{engine} values ({number}, 1)" for engine in engines)
            if number <= logged - len(behind):
                begin(["begin", *change, "commit"], lambda: sum(self.log_files()) > size, f"commit {number} is in the log")
            elif number <= logged:
                begin(behind, lambda: sum(self.log_files()) > size, f"{behind} is in the log")
            else:
                begin(["begin", *change, "commit"], lambda: "commit" in [str(thread[7]).lower() for thread in rows(control, "show processlist")], "a commit waits")
            if rotate and number == 1:
                begin(["flush binary logs"], lambda: len(self.log_files()) > files, "the next file of the log")
        expect(self.state(engines)[0], before[0], "rows that others see before the acknowledgement")
        self.server.kill()
        for client in clients:
            client.join()
            expect(client.acknowledged and client.statements[-1] == "commit", False, "an acknowledged commit without a replica")
        return before

    def check_sound(self, engines):
        expect(self.server.query("xa recover"), (), "prepared transactions")
        for engine in engines:
            expect(self.server.query(f"check table in_{engine} extended")[-1][3], "OK", f"CHECK TABLE in_{engine}")

    def rolled_back(self, engines, rotate):
        before = self.killed(engines, rotate)
        self.server.start(self.options)
        expect(self.state(engines), before, "rows and position after the start as one of a set")
        self.check_sound(engines)
        # Numbers go on where the log ends, and the rows are free.
        self.server.query("set global rpl_semi_sync_master_enabled = 0")
        for engine in engines:
            self.server.query(f"insert into in_{engine} values (1, 2)")
        expect(self.sequence(), int(before[1].rpartition("-")[2]) + len(engines), "the next numbers")
        self.server.stop()

    def sequence(self):
        return int(self.server.query("select @@gtid_binlog_pos")[0][0].rpartition("-")[2])

    def committed(self, engines, rotate, behind=()):
        logged = 1 if rotate else 2
        before = self.killed(engines, rotate, behind)
        if behind:
            expect(error_of_start(self.server, self.options), True, "it starts as one of a set, and a definition is behind what it would roll back")
        self.server.start([*self.options, "--init-rpl-role=MASTER"])
        for found in self.state(engines)[0]:
            expect(found, ((0, 0), *((number, 1) for number in range(1, logged + 1 - len(behind)))), "rows after the start as a primary")
        expect(self.sequence(), int(before[1].rpartition("-")[2]) + logged, "the position")
        self.check_sound(engines)
        self.server.stop()


def error_of_start(server, options):
    """Whether the server refuses to start."""
    try:
        server.start(options)
        return False
    except RuntimeError:
        server.process = None
        return True


def main():
    test = Test(parser(__doc__).parse_args())
    cases = []
    for name, engines in ENGINES.items():
        for rotate in (False, True):
            for run in (test.rolled_back, test.committed):
                def case(run=run, engines=engines, rotate=rotate):
                    run(engines, rotate)
                case.__name__ = f"case_{run.__name__}_{name}{'_over_files' if rotate else ''}"
                cases.append(case)
        def case_behind(engines=engines):
            test.committed(engines, False, ["create or replace table behind (id int)"])
        case_behind.__name__ = f"case_definition_behind_{name}"
        cases.append(case_behind)
    try:
        return 1 if carry_out(cases, recover=test.server.kill) else 0
    finally:
        test.server.kill()


if __name__ == "__main__":
    raise SystemExit(main())
