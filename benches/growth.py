#!/usr/bin/env python3
"""What checkpoints of few changes write, and what the file of the table takes after many of them.

A table of sysbench's columns (random digits) is loaded; before each checkpoint each row has one chance in --share to
change. Prints for some of the checkpoints KB written for a changed row (all that the server wrote: log, patches,
blocks, pages, map), the file's size, what of it is on disk, and what of that is in use and free.

usage: benches/growth.py [--plugin-dir DIRECTORY] [--rows N] [--share N] [--checkpoints N]
"""

import argparse
import glob
import os
import shutil
import tempfile

from kit.server import Server

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20


def digits(groups):
    """SQL for so many groups of random digits."""
    return "CONCAT_WS('-', " + ", ".join(["LPAD(FLOOR(RAND() * 99999999999), 11, '0')"] * groups) + ")"


def written(server):
    """Bytes that the server has given to the kernel so far, the binary log and sockets included."""
    with open(f"/proc/{server.process.pid}/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("wchar"))


def sizes(server):
    """MiB: the table's file, of it on disk, in use, free and on disk."""
    files = [os.stat(name) for name in glob.glob(os.path.join(server.data, "#teak", "s*.teak"))]
    in_use, free = server.query("SELECT data_length, data_free FROM information_schema.tables WHERE table_name = 't'")[0]
    return [size / MIB for size in (sum(file.st_size for file in files), sum(file.st_blocks * 512 for file in files), in_use, free)]


def measure(server, arguments):
    server.query("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL) ENGINE=Teak")
    server.query(f"INSERT INTO t SELECT seq, FLOOR(RAND() * {arguments.rows}), {digits(10)}, {digits(5)} FROM seq_1_to_{arguments.rows}")
    server.query("SET GLOBAL teak_checkpoint_now = ON")
    print("checkpoint   KB a row   file   on disk   in use   free (MiB)")
    print("{:>10}   {:>8}   {:.1f}   {:.1f}   {:.1f}   {:.1f}".format("loaded", "", *sizes(server)))
    changed = bytes_written = 0
    for number in range(1, arguments.checkpoints + 1):
        before = written(server)
        changed += server.query(f"SELECT COUNT(*) FROM t WHERE CRC32(CONCAT(id, '-', {number})) % {arguments.share} = 0")[0][0]
        server.query(f"UPDATE t SET c = {digits(10)} WHERE CRC32(CONCAT(id, '-', {number})) % {arguments.share} = 0")
        server.query("SET GLOBAL teak_checkpoint_now = ON")
        bytes_written += written(server) - before
        if number == 1 or number % 20 == 0:
            print("{:>10}   {:>8.2f}   {:.1f}   {:.1f}   {:.1f}   {:.1f}".format(number, bytes_written / changed / 1024, *sizes(server)), flush=True)
            changed = bytes_written = 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--plugin-dir", default=os.path.join(ROOT, "build", "plugin"))
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--share", type=int, default=331)
    options.add_argument("--checkpoints", type=int, default=200)
    arguments = options.parse_args()
    directory = tempfile.mkdtemp(prefix="teak-growth-")
    server = Server(os.path.join(directory, "server"), arguments.plugin_dir)
    try:
        server.install()
        server.start(["--teak-cache-size=256M", "--teak-flush-log-at-trx-commit=0", "--teak-checkpoint-log-size=4G"])
        measure(server, arguments)
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
