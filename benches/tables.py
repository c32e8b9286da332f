#!/usr/bin/env python3
"""Many tables: creating them, opening all after a restart, and a checkpoint over many that are dirty.

    benches/tables.py --tables 20000 --engines Teak,InnoDB      creates them under --directory, unless that is there
    benches/tables.py --tables 20000 --dirty 5000               a checkpoint over so many of them

Two builds are compared with one --directory and their two --plugin-dir, in turns.

Each table has a primary key, two indexes and some rows. Opening is the first `SELECT ... LIMIT 0` of each table after a start of
the server, by one session and by --sessions; the files are first thrown out of the page cache unless --warm is given. A checkpoint
is one that nobody waits for, as when the log has grown, and one that somebody asks for.
"""

import argparse
import os
import threading
import time

from kit.server import Server

SCHEMA = "CREATE TABLE t{} (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(40) NOT NULL, KEY a (a), KEY b (b)) ENGINE={}"
ROWS = "INSERT INTO t{} SELECT seq, seq * 7919 % 100, SHA1(seq) FROM seq_1_to_50"
OPTIONS = ["--table-open-cache=2000", "--table-definition-cache=2000", "--max-connections=300", "--innodb-buffer-pool-size=256M",
           "--innodb-log-file-size=256M", "--innodb-flush-log-at-trx-commit=2", "--teak-flush-log-at-trx-commit=2",
           "--teak-cache-size=256M"]


def share(server, database, sessions, numbers, statements):
    """Runs each of `statements` for each of `numbers`, from so many sessions; returns the seconds it took."""
    numbers = iter(numbers)
    latch = threading.Lock()
    failures = []

    def work():
        connection = server.connect(database=database, autocommit=True)
        try:
            with connection.cursor() as cursor:
                while True:
                    with latch:
                        number = next(numbers, None)
                    if number is None:
                        return
                    for statement in statements:
                        cursor.execute(statement.format(number))
        except Exception as error:  # pylint: disable=broad-exception-caught
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(sessions)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.monotonic() - began


def forget_files(directory):
    """Takes the files out of the page cache."""
    os.sync()
    for path, _, names in os.walk(directory):
        for name in names:
            descriptor = os.open(os.path.join(path, name), os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def status(server, name):
    """A number of SHOW STATUS."""
    return int(server.query(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])


def prepare(server, arguments):
    """A data directory with the tables, and an orderly shutdown."""
    if os.path.exists(server.data):
        return
    server.install()
    server.start(OPTIONS)
    for engine in arguments.engines:
        server.query(f"CREATE DATABASE {engine}", database=None)
        tables = range(arguments.tables)
        statements = [SCHEMA.format("{}", engine), ROWS]
        seconds = share(server, engine, arguments.sessions, tables, statements[:1])
        print(f"{engine}: creating {arguments.tables} tables, {arguments.sessions} sessions: {seconds:.1f} s", flush=True)
        share(server, engine, arguments.sessions, tables, statements[1:])
    server.stop()


def open_all(server, arguments):
    """The first use of every table after a start."""
    for engine in arguments.engines:
        for sessions in (1, arguments.sessions):
            if not arguments.warm:
                forget_files(server.data)
            server.start(OPTIONS)
            began = server.cpu_seconds()
            seconds = share(server, engine, sessions, range(arguments.tables), ["SELECT 1 FROM t{} LIMIT 0"])
            used = server.cpu_seconds() - began
            print(f"{engine}: opening {arguments.tables} tables, {sessions} sessions: {seconds:.1f} s, {used:.1f} s of processor time", flush=True)
            server.stop()


def checkpoints(server, arguments):
    """Makes tables dirty and times the checkpoint that writes them."""
    server.start([*OPTIONS, "--teak-checkpoint-log-size=64G"])
    server.query("CREATE TABLE IF NOT EXISTS log (id INT PRIMARY KEY, bytes LONGTEXT) ENGINE=Teak", database="Teak")
    for name in ("in the background", "that is asked for"):
        server.query("SET GLOBAL teak_checkpoint_now = ON", database=None)
        change = ["UPDATE t{} SET a = a + 1, b = REVERSE(b) WHERE id < 10"]
        share(server, "Teak", arguments.sessions, range(arguments.dirty), change)
        done, began = status(server, "Teak_checkpoints"), time.monotonic()
        asked = threading.Thread(target=server.query, args=("SET GLOBAL teak_checkpoint_now = ON", None))
        if name == "that is asked for":
            asked.start()
        else:
            server.query("SET GLOBAL teak_checkpoint_log_size = 1048576", database=None)
            server.query("REPLACE INTO log VALUES (1, REPEAT('x', 2000000))", database="Teak")
        while status(server, "Teak_checkpoints") == done:
            time.sleep(0.005)
        seconds = time.monotonic() - began
        if asked.ident:
            asked.join()
            # Who asked waits until free ranges are given back to the file system, too.
            name += f" ({time.monotonic() - began:.2f} s to the answer)"
        server.query("SET GLOBAL teak_checkpoint_log_size = 68719476736", database=None)
        print(f"Teak: a checkpoint {name} over {arguments.dirty} tables: {seconds:.2f} s", flush=True)
    server.stop()


def main():
    """See the module's documentation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    parser.add_argument("--tables", type=int, default=20000)
    parser.add_argument("--dirty", type=int, default=0, help="measure checkpoints over so many tables instead of openings")
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["Teak"])
    parser.add_argument("--warm", action="store_true", help="the files may be in the page cache")
    parser.add_argument("--directory", default=os.path.join(root, "build", "tables"))
    parser.add_argument("--plugin-dir", default=os.path.join(root, "build", "plugin"))
    arguments = parser.parse_args()
    server = Server(arguments.directory, arguments.plugin_dir)
    try:
        prepare(server, arguments)
        if arguments.dirty:
            checkpoints(server, arguments)
        else:
            open_all(server, arguments)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
