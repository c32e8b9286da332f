#!/usr/bin/python3
"""How much memory `teak replicate` takes with several sources beside one transaction that is large.

    PYTHONPATH=tests benches/replicate_memory.py [--sources 15] [--mib 1024] [--workers N]

All sources write small transactions while one of them commits a transaction of so many MiB. Prints the most resident memory that the program ever had, before
that transaction and when all was applied. Its goal is less than 200 MB with 15 sources and 1024 MiB.
"""

import threading
import time

from following import Following
from kit.options import parser

ROW_BYTES = 1000


def resident(process):
    """MiB, at most so far."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def write(source, number, stopped):
    """Small transactions."""
    connection = source.connect(database=f"d{number}", autocommit=True)
    with connection.cursor() as cursor:
        row = 0
        while not stopped.is_set():
            row += 1
            cursor.execute(f"insert into t values ({row}, 'x')")
            time.sleep(0.005)
    connection.close()


def main():
    arguments = parser(__doc__, sources=3, mib=64, workers=1).parse_args()
    stopped = threading.Event()
    with Following(arguments, arguments.sources) as following:
        for number, source in enumerate(following.sources):
            source.query("create table t (id int primary key, c varchar(20))", database=f"d{number}")
        following.sources[0].query("create table large (id int primary key, c varbinary(1000))", database="d0")
        following.configure(workers=arguments.workers)
        following.agent.start()
        writers = [threading.Thread(target=write, args=(source, number, stopped)) for number, source in enumerate(following.sources)]
        for writer in writers:
            writer.start()
        time.sleep(3)
        before = resident(following.agent.process)
        began = time.monotonic()
        following.sources[0].query(f"insert into large select seq, random_bytes({ROW_BYTES}) from seq_1_to_{(arguments.mib << 20) // ROW_BYTES}", database="d0")
        written = time.monotonic() - began
        following.catch_up()
        stopped.set()
        for writer in writers:
            writer.join()
        took = time.monotonic() - began
        print(f"{arguments.sources} sources, {arguments.mib} MiB: {before:.0f} MiB before, {resident(following.agent.process):.0f} MiB at most; written in {written:.1f} s, applied {took - written:.1f} s later", flush=True)


if __name__ == "__main__":
    main()
