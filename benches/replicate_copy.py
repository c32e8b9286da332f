#!/usr/bin/python3
"""How long a copy by `teak replicate` takes from InnoDB to Teak, against `mariadb-dump` to a file and `teak load` of that.

    PYTHONPATH=tests benches/replicate_copy.py [--mib N] [--runs N]
"""

import os
import shutil
import subprocess
import time

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, Agent
from kit.options import parser
from kit.server import Server

CACHE = 512 << 20
ROW_BYTES = 220


def main():
    arguments = parser(__doc__, mib=300, runs=2).parse_args()
    shutil.rmtree(arguments.directory, ignore_errors=True)
    source = Server(os.path.join(arguments.directory, "source"), arguments.plugin_dir)
    target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir)
    agent = Agent(arguments.teak, arguments.directory, target)
    rows = (arguments.mib << 20) // ROW_BYTES
    try:
        for server, options in ((source, [*SOURCE_OPTIONS, "--server-id=1", f"--innodb-buffer-pool-size={CACHE}", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"]),
                                (target, [*TARGET_OPTIONS, f"--teak-cache-size={CACHE}", "--teak-flush-log-at-trx-commit=2"])):
            server.install()
            server.start(options)
        source.query("create database v", database=None)
        source.query("create table t (id int primary key, k int not null, c varchar(200) not null, d datetime not null, key (k))", database="v")
        for first in range(0, rows, 100_000):
            source.query(f"insert into t select seq, seq * 7919 % 100000, concat(sha2(seq, 512), sha2(seq + 1, 256)), now() from seq_{first}_to_{min(first + 100_000, rows) - 1}", database="v")
        for run in range(arguments.runs):
            name = f"s{run}"
            agent.configure({name: {"socket": f'"{source.socket}"', "start": '"copy"', "databases": '["v"]'}})
            agent.forget()
            began, before = time.monotonic(), [server.cpu_seconds() for server in (source, target)]
            agent.start()
            agent.wait_for("all tables are copied")
            copied = time.monotonic() - began
            used = [server.cpu_seconds() - spent for server, spent in zip((source, target), before)]
            print(f"copy: {copied:.1f} s for {rows} rows; processor time {used[0]:.1f} s at the source, {used[1]:.1f} s in the target, {time.clock_gettime((~agent.process.pid << 3) | 2):.1f} s in the program",
                  flush=True)
            agent.stop()
            target.query("drop database v", database=None)
            before = [server.cpu_seconds() for server in (source, target)]
            dump = os.path.join(arguments.directory, "dump.sql")
            began = time.monotonic()
            with open(dump, "wb") as file:
                subprocess.run(["mariadb-dump", "-S", source.socket, "-u", "root", "--single-transaction", "--databases", "v"], stdout=file, check=True)
            dumped = time.monotonic() - began
            with open(dump, encoding="utf-8") as text, open(dump + ".teak", "w", encoding="utf-8") as other:
                for line in text:
                    other.write(line.replace("ENGINE=InnoDB", "ENGINE=Teak") if line.startswith(")") else line)
            began = time.monotonic()
            subprocess.run([arguments.teak, "load", "-S", target.socket, "-u", "root", dump + ".teak"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            used = [server.cpu_seconds() - spent for server, spent in zip((source, target), before)]
            loaded = time.monotonic() - began
            print(f"ratio {copied / (dumped + loaded):.2f}: mariadb-dump: {dumped:.1f} s, teak load: {loaded:.1f} s; processor time {used[0]:.1f} s and {used[1]:.1f} s", flush=True)
            target.query("drop database v", database=None)
    finally:
        agent.kill()
        source.kill()
        target.kill()


if __name__ == "__main__":
    main()
