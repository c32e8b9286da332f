#!/usr/bin/python3
"""What `teak top` costs on a server with many sessions: processor time of the program and of the server, with two samples a second, for each view and for a
recording. To be measured on an idle machine.

usage: cost.py [--sessions N] [--seconds S] [--busy N]
"""

import contextlib
import os
import resource
import subprocess
import sys
import time

from kit.asking import rows
from kit.options import parser
from kit.server import Server
from kit.waiting import Waiter
from shown import Top, options

VIEWS = ("Overview", "Sessions", "Locks", "Trx", "SQL", "Deadlocks", "Memory", "Replicas")


def used(process):
    """Seconds of the processor that a process has used, in all its threads."""
    return time.clock_gettime((~process << 3) | 2)


def measured(server, process, seconds):
    """Shares of a core, of the program and of the server."""
    before = used(process), server.cpu_seconds()
    time.sleep(seconds)
    return [100 * (now - then) / seconds for now, then in zip((used(process), server.cpu_seconds()), before)]


def main():
    arguments = parser(__doc__, sessions=1000, seconds=20, busy=100).parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = Server(os.path.join(arguments.directory, "server"), arguments.plugin_dir)
    server.install()
    server.start([f"--max-connections={arguments.sessions + 200}", "--performance-schema=ON", "--performance-schema-consumer-statements-digest=ON",
                  "--innodb-lock-wait-timeout=3600"])
    waiters = []
    try:
        server.query("create database if not exists test", database=None)
        server.query("create table t (id int primary key, v int) engine=Teak")
        server.query("insert into t select seq, 0 from seq_1_to_1000")
        # Some wait for one; the others have a transaction each.
        root = Waiter(server, "update t set v = 1 where id = 1")
        waiters = [Waiter(server).waits("update t set v = 2 where id = 1") for _ in range(arguments.busy)]
        with contextlib.ExitStack() as idle:
            for number in range(arguments.sessions - arguments.busy - 1):
                session = idle.enter_context(server.connect())
                rows(session, "begin")
                rows(session, f"select v from t where id = {2 + number % 900}")
            before = server.cpu_seconds()
            time.sleep(arguments.seconds)
            alone = 100 * (server.cpu_seconds() - before) / arguments.seconds
            print(f"{arguments.sessions} sessions, {arguments.busy} of which wait; the server alone takes {alone:.2f} % of a core")
            print(f"{'view':<12} {'teak top':>9} {'server':>9}   (% of a core, two samples a second)", flush=True)
            with Top(arguments.directory, arguments.teak, *options(server), "--interval=0.5") as top:
                for number, name in enumerate(VIEWS, 1):
                    top.press(str(number))
                    top.until(f"[{number} ", without=("asked for",))
                    here, there = measured(server, top.process(), arguments.seconds)
                    print(f"{name:<12} {here:>9.2f} {there - alone:>9.2f}", flush=True)
            file = os.path.join(arguments.directory, "recording")
            with contextlib.suppress(FileNotFoundError):
                os.remove(file)
            with subprocess.Popen([arguments.teak, "top", *options(server), "--interval=0.5", f"--record={file}"], stdout=subprocess.DEVNULL) as process:
                here, there = measured(server, process.pid, arguments.seconds)
                process.terminate()
            print(f"{'recording':<12} {here:>9.2f} {there - alone:>9.2f}   {os.path.getsize(file) / 2 / arguments.seconds / 1000:.1f} kB a sample")
    finally:
        # Ends all waits at once.
        server.kill()
        for waiter in waiters:
            waiter.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
