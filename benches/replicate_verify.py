#!/usr/bin/python3
"""How long `teak replicate verify` takes for a table beside writers, from InnoDB to Teak, and what it costs those who apply.

    PYTHONPATH=tests benches/replicate_verify.py [--rows N] [--writers N]

Writers change single rows at the source all the time, as many as the target keeps up with (`--rate` transactions a second of each). Prints seconds of
each comparison, and how many transactions were applied a second, without one and beside it.
"""

import os
import random
import shutil
import subprocess
import threading
import time

from kit.agent import SOURCE_OPTIONS, TARGET_OPTIONS, Agent
from kit.options import parser
from kit.server import Server

CACHE = 512 << 20


def write(source, rows, rate, number, stopped):
    """One client: so many updates, inserts and deletes a second."""
    choices = random.Random(number)
    connection = source.connect(database="v", autocommit=True)
    with connection.cursor() as cursor:
        while not stopped.is_set():
            began = time.monotonic()
            row = choices.randrange(rows)
            cursor.execute(choices.choice([f"update t set k = k + 1 where id = {row}", f"delete from t where id = {row}", f"replace into t values ({row}, {row}, 'x', now())"]))
            time.sleep(max(0.0, 1 / rate - (time.monotonic() - began)))
    connection.close()


def applied(target, seconds):
    """Transactions applied a second."""
    counted = "select sum(substring_index(gtid, '-', -1)) from teak_replicate.position"
    before = float(target.query(counted, database=None)[0][0])
    time.sleep(seconds)
    return (float(target.query(counted, database=None)[0][0]) - before) / seconds


def main():
    arguments = parser(__doc__, rows=1_000_000, writers=4, rate=200, runs=3).parse_args()
    shutil.rmtree(arguments.directory, ignore_errors=True)
    source = Server(os.path.join(arguments.directory, "source"), arguments.plugin_dir)
    target = Server(os.path.join(arguments.directory, "target"), arguments.plugin_dir)
    agent = Agent(arguments.teak, arguments.directory, target)
    stopped, writers = threading.Event(), []
    try:
        for server, options in ((source, [*SOURCE_OPTIONS, "--server-id=1", f"--innodb-buffer-pool-size={CACHE}", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"]),
                                (target, [*TARGET_OPTIONS, f"--teak-cache-size={CACHE}", "--teak-flush-log-at-trx-commit=2"])):
            server.install()
            server.start(options)
        agent.configure({"s": {"socket": f'"{source.socket}"', "start": '"now"', "databases": '["v"]'}})
        agent.start()
        agent.wait_for("follows from")
        source.query("create database v", database=None)
        source.query("create table t (id int primary key, k int not null, c varchar(100) not null, d datetime not null, key (k))", database="v")
        for first in range(0, arguments.rows, 100_000):
            source.query(f"insert into t select seq, seq % 1000, sha2(seq, 256), now() from seq_{first}_to_{min(first + 100_000, arguments.rows) - 1}", database="v")
        agent.catch_up("s", source)
        writers = [threading.Thread(target=write, args=(source, arguments.rows, arguments.rate, number, stopped)) for number in range(arguments.writers)]
        for writer in writers:
            writer.start()
        print(f"applied without: {applied(target, 5):.0f} transactions a second", flush=True)
        for _ in range(arguments.runs):
            began = time.monotonic()
            with subprocess.Popen([agent.teak, "replicate", "verify", "--config", agent.config], stdout=subprocess.PIPE, text=True) as verify:
                rate = applied(target, 1)
                said = verify.communicate()[0]
            print(f"{time.monotonic() - began:.1f} s, {rate:.0f} transactions a second, status {verify.returncode}: {said.strip()}", flush=True)
    finally:
        stopped.set()
        for writer in writers:
            writer.join()
        agent.kill()
        source.kill()
        target.kill()


if __name__ == "__main__":
    main()
