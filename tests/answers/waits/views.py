#!/usr/bin/python3
"""The views that `teak views` makes: waits for locks of Teak, of InnoDB and for metadata in one chain."""

import os
import shutil
import subprocess
import sys
import time

from kit.asking import expect, rows, wait_until
from kit.cases import on_server
from kit.options import parser
from kit.server import Server, own_plugins
from kit.waiting import Waiter

TEAK = None
DEBIAN_PLUGINS = "/usr/lib/mysql/plugin"


def make(server):
    statements = subprocess.run([TEAK, "views"], check=True, capture_output=True).stdout
    subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "--user=root"], input=statements, check=True)


def chain(server):
    """One waits in Teak for one that waits in InnoDB, and one for metadata: all for the one who is to be ended."""
    shutil.copy(os.path.join(DEBIAN_PLUGINS, "metadata_lock_info.so"), server.plugin_dir)
    server.query("install soname 'metadata_lock_info'")
    make(server)
    make(server)
    server.query("create or replace table inno (id int primary key, v int) engine=InnoDB")
    server.query("create or replace table teak_rows (id int primary key, v int) engine=Teak")
    for name in ("inno", "teak_rows"):
        server.query(f"insert into {name} values (1, 0), (2, 0)")
    root = Waiter(server, "update inno set v = 1 where id = 1")
    second = Waiter(server, "update teak_rows set v = 1 where id = 1").waits("update inno set v = 2 where id = 1")
    third = Waiter(server).waits("update teak_rows set v = 2 where id = 1")
    fourth = Waiter(server).waits("alter table teak_rows force")

    def waits():
        time.sleep(0.15)  # else InnoDB's tables are what they were when they were read last
        found = server.query("select kind, waiting_connection, blocking_connection, locked_table from teak.waits")
        return {row[1:3]: (row[0], row[3]) for row in found}

    wanted = {(second.id, root.id): ("InnoDB", "test.inno"), (third.id, second.id): ("Teak", "test.teak_rows"),
              (fourth.id, second.id): ("metadata", "test.teak_rows"), (fourth.id, third.id): ("metadata", "test.teak_rows")}
    wait_until(lambda: waits() == wanted, f"the waits {wanted}")
    expect(server.query("select connection_id, waiting, kill_statement from teak.blockers"), ((root.id, 3, f"KILL {root.id}"),), "who is to be ended")
    expect(server.query("select lock_key, lock_mode from teak.waits where kind = 'Teak'"), (("(1)", "EXCLUSIVE"),), "the key")
    trx = dict(server.query("select connection_id, kill_statement from teak.transactions"))
    expect(trx, {session.id: f"KILL {session.id}" for session in (second, third)}, "transactions")
    expect(server.query("select count(*) from teak.deadlocks")[0][0], 0, "deadlocks")
    server.query(f"kill {root.id}")
    for session in (root, second, third, fourth):
        if session.ident:
            session.join()
        if session is second:
            rows(session.connection, "commit")
        if session is third:
            rows(session.connection, "commit")
    for session in (root, second, third, fourth):
        session.end()


def without_others(server):
    """Made again without METADATA_LOCK_INFO, they show the rest."""
    server.query("uninstall soname 'metadata_lock_info'")
    make(server)
    time.sleep(0.15)
    expect(server.query("select count(*) from teak.waits")[0][0], 0, "waits")
    expect(server.query("select count(*) from teak.blockers")[0][0], 0, "blockers")


TESTS = [chain, without_others]


def main():
    global TEAK  # pylint: disable=global-statement
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    TEAK = arguments.teak
    plugins = own_plugins(arguments.directory, arguments.plugin_dir)
    return on_server(TESTS, arguments.names, Server(os.path.join(arguments.directory, "server"), plugins))


if __name__ == "__main__":
    sys.exit(main())
