#!/usr/bin/env python3
"""Tables over shards: reads and commits through a head with Spider against direct ones, of Teak against InnoDB on the same shards, in turns; and how long
`teak resolve` takes.

usage: PYTHONPATH=tests benches/scale_out.py [--seconds 3] [--rounds 5] [--clients 4] [--undecided 1000]

Rates are of clients in Python, and so the same share of each is theirs; medians of the rounds. On an idle machine.
"""

import random
import statistics
import subprocess
import sys
import threading
import time

from kit.asking import rows
from kit.options import parser
from kit.spider import Spider, plugins

ROWS = 20_000
ENGINES = ("Teak", "InnoDB")


class Load(threading.Thread):
    """Does one thing again and again, and counts."""

    def __init__(self, connection, statements, end):
        super().__init__()
        self.connection, self.statements, self.end, self.count = connection, statements, end, 0
        self.start()

    def run(self):
        source = random.Random(id(self))
        with self.connection.cursor() as cursor:
            while time.monotonic() < self.end:
                for statement in self.statements:
                    cursor.execute(statement.format(id=source.randint(1, ROWS)))
                self.count += 1


def rate(server, statements, arguments):
    """Of so many clients, a second."""
    connections = [server.connect(autocommit=True) for _ in range(arguments.clients)]
    end = time.monotonic() + arguments.seconds
    loads = [Load(connection, statements, end) for connection in connections]
    for load in loads:
        load.join()
    for connection in connections:
        connection.close()
    return sum(load.count for load in loads) / arguments.seconds


def works(spider):
    """What is measured: on which server, and the statements, with {t} for the table at the head and {s} for a shard's."""
    shard = spider.shards[0]
    return {
        "point read, through the head": (spider.head, ["select v from {t} where shard = 0 and id = {{id}}"]),
        "point read, direct": (shard, ["select v from {t}_0 where shard = 0 and id = {{id}}"]),
        "commit, through the head": (spider.head, ["update {t} set n = n + 1 where shard = 0 and id = {{id}}"]),
        "commit, direct": (shard, ["update {t}_0 set n = n + 1 where shard = 0 and id = {{id}}"]),
        "commit over two shards": (spider.head, ["begin", "update {t} set n = n + 1 where shard = 0 and id = {{id}}", "update {t} set n = n - 1 where shard = 1 and id = {{id}}", "commit"]),
    }


def resolve(spider, arguments):
    """Seconds for so many transactions that a head has left."""
    shard, head = spider.shards[0], spider.head
    session = shard.connect(autocommit=True)
    noted, members = [], []
    for number in range(arguments.undecided):
        name = f"ffff{number:016x}"
        for statement in (f"xa start '{name}', '1'", f"update teak_0 set n = n + 1 where shard = 0 and id = {number + 1}", f"xa end '{name}', '1'", f"xa prepare '{name}', '1'"):
            rows(session, statement)
        session.close()
        session = shard.connect(autocommit=True)
        noted.append(f"(1, {len(name)}, 1, '{name}1', 'COMMIT')")
        members.append(f"(1, {len(name)}, 1, '{name}1', 'mysql', '{shard.host}', '{shard.port}', '', 'spider', '{spider.password}')")
    head.query("insert into mysql.spider_xa (format_id, gtrid_length, bqual_length, data, status) values " + ", ".join(noted))
    head.query("insert into mysql.spider_xa_member (format_id, gtrid_length, bqual_length, data, scheme, host, port, socket, username, password) values " + ", ".join(members))
    time.sleep(2)
    began = time.monotonic()
    ended = subprocess.run([arguments.teak, "resolve", "--no-defaults", "--head", "mysql://root@localhost", f"--socket={head.socket}", "--age=0"], capture_output=True, text=True, check=False)
    taken = time.monotonic() - began
    assert ended.stdout.endswith(f"{arguments.undecided} resolved, 0 left\n"), ended.stdout[-300:] + ended.stderr
    return taken


def main():
    arguments = parser(__doc__, seconds=3.0, rounds=5, clients=4, undecided=1000).parse_args()
    subprocess.run(["rm", "-rf", arguments.directory], check=True)
    spider = Spider(arguments.directory, plugins(arguments.directory), 2, ["--innodb-buffer-pool-size=128M", "--teak-cache-size=128M", "--innodb-log-file-size=128M"])
    try:
        spider.install()
        for engine in ENGINES:
            spider.table(engine.lower(), "shard int not null, id int not null, n int not null, v varchar(100), primary key (shard, id)", "shard", engine)
            spider.head.query(f"insert into {engine.lower()} select s.seq, q.seq, 0, repeat('v', 80) from seq_0_to_1 s, seq_1_to_{ROWS} q")
        rates = {}
        for number in range(arguments.rounds):
            for what, (server, statements) in works(spider).items():
                for engine in ENGINES if number % 2 else ENGINES[::-1]:
                    rates.setdefault((what, engine), []).append(rate(server, [statement.format(t=engine.lower()) for statement in statements], arguments))
        print(f"{'a second, ' + str(arguments.clients) + ' clients':32}{'Teak':>10}{'InnoDB':>10}{'ratio':>8}   of each round")
        for what in works(spider):
            teak, innodb = (statistics.median(rates[what, engine]) for engine in ENGINES)
            ratios = [one / other for one, other in zip(rates[what, "Teak"], rates[what, "InnoDB"])]
            print(f"{what:32}{teak:10.0f}{innodb:10.0f}{statistics.median(ratios):8.2f}   {' '.join(f'{ratio:.2f}' for ratio in ratios)}")
        print(f"teak resolve, {arguments.undecided} undecided transactions: {resolve(spider, arguments):.2f} s")
        return 0
    finally:
        spider.kill()


if __name__ == "__main__":
    sys.exit(main())
