#!/usr/bin/python3
"""The optimizer chooses as well for Teak's tables as for InnoDB's whether their rows are in memory, the server has just been started, or they do not fit: the same
queries on both, compared by how many rows the server asked for (Handler_read_...). Prints 'N passed, N failed', a kind of query in a state each."""

import random
import sys

from kit.options import parser, seed
from kit.server import Server

ENGINES = ("InnoDB", "Teak")
ORDERS, LINES, PEOPLE = 60_000, 120_000, 6_000
DAYS, KINDS = ORDERS // 4, LINES // 660
# Values of what is skewed: a person of the first city is one of two thousand, of the last one alone.
SCHEMA = [
    "create table people (id int primary key, city int, born int, name varchar(60), key city (city), key born (born, city)) engine={engine}",
    "create table orders (id int primary key, person int, state int, day int, n int, pad varchar(200), key state (state), key day (day), key person (person, day)) engine={engine}",
    "create table parts (id int primary key, o int, kind int, weight int, key kind (kind), key o (o), key weight (weight, kind)) engine={engine}",
    f"insert into people select seq, floor(pow(seq % 97, 2) / 40), 1900 + seq * 7919 % 100, concat('name ', seq) from seq_1_to_{PEOPLE}",
    f"insert into orders select seq, 1 + floor(pow(seq * 7919 % 10007 / 10007, 3) * {PEOPLE - 1}), seq % 700, seq * 104729 % {DAYS}, 0, "
    f"concat(sha2(seq, 512), 'p') from seq_1_to_{ORDERS}",
    f"insert into parts select seq, seq % {ORDERS}, seq * 31 % {KINDS}, floor(pow(seq * 7907 % 997, 2) / 500) from seq_1_to_{LINES}",
    "analyze table people, orders, parts",
]
# Each kind of query with what its numbers are drawn from.
QUERIES = {
    "join by a rare and a common value": ("select count(*), max(pad) from orders o join parts a on a.o = o.id where o.day = {0} and a.kind = {1}", (DAYS, KINDS)),
    "two indexes of one table": ("select count(*), max(pad) from orders where state = {0} and day = {1}", (700, DAYS)),
    "a range beside a value": ("select count(*), max(pad) from orders where day between {0} and {0} + 5 and state = {1}", (DAYS, 700)),
    "a range beside a short range": ("select count(*), max(weight + id + o) from parts where weight between {0} and {0} + 100 and kind between {1} and {1} + 1", (1900, KINDS)),
    "three tables": ("select count(*), max(pad) from people p join orders o on o.person = p.id join parts a on a.o = o.id where p.city = {0} and o.day = {1}", (230, DAYS)),
    "three tables, another way round": ("select count(*), max(pad) from people p join orders o on o.person = p.id join parts a on a.o = o.id where p.born = 1900 + {0} and p.city = {1} "
                                        "and a.kind = {2}", (100, 230, KINDS)),
    "lists of values": ("select count(*), max(pad) from orders where day in ({0}, {1}, {2}) and state in ({3}, {4})", (DAYS, DAYS, DAYS, 700, 700)),
    "what exists": ("select count(*) from orders o where o.day between {0} and {0} + 3 and exists (select 1 from parts a where a.o = o.id and a.kind < {1})", (DAYS, KINDS)),
}
STATES = {
    "in memory": (["--innodb-buffer-pool-size=64M", "--teak-cache-size=64M"], None),
    "after a start": (["--innodb-buffer-pool-size=64M", "--teak-cache-size=64M"], 12),
    "beyond memory": (["--innodb-buffer-pool-size=6M", "--teak-cache-size=6M"], None),
}
OPTIONS = ["--innodb-buffer-pool-load-at-startup=off", "--innodb-buffer-pool-dump-at-shutdown=off", "--innodb-stats-persistent-sample-pages=200"]


def read_rows(session):
    """How many rows the session has asked its tables for."""
    with session.cursor() as cursor:
        cursor.execute("show session status like 'handler_read%'")
        return sum(int(value) for _, value in cursor.fetchall())


def asked(session, statement):
    """The rows that a query gives, and how many were asked for."""
    with session.cursor() as cursor:
        cursor.execute("flush status")
        cursor.execute(statement)
        return cursor.fetchall(), read_rows(session)


class Plans:
    """One server with the tables of both engines."""

    def __init__(self, server, queries, source):
        self.server, self.count, self.random = server, queries, source
        self.passed = self.failed = 0

    def prepare(self):
        """Tables of the same rows in a database for each engine."""
        self.start(STATES["in memory"][0])
        for engine in ENGINES:
            self.server.query(f"create database {engine}", database=None)
            for statement in SCHEMA:
                self.server.query(statement.format(engine=engine), database=engine)
        self.server.query("set global teak_checkpoint_now = 1")

    def start(self, options):
        """Starts, or starts again."""
        if self.server.is_running():
            self.server.stop()
        self.server.start([*OPTIONS, *options])

    def sessions(self):
        """A session for each engine."""
        return [self.server.connect(database=engine, autocommit=True) for engine in ENGINES]

    def pairs(self, kind, state):
        """Rows asked for by both engines, for each query of the kind in this state; `state` says after how many of them the server is started anew."""
        text, limits = QUERIES[kind]
        _, restart = STATES[state]
        sessions = self.sessions()
        for number in range(self.count):
            if restart and number and number % restart == 0:
                self.start(STATES[state][0])
                sessions = self.sessions()
            query = text.format(*(self.random.randrange(limit) for limit in limits))
            (inner_rows, inner), (rows, teak) = (asked(session, query) for session in sessions)
            if inner_rows != rows:
                raise RuntimeError(f"{query}: InnoDB gives {inner_rows}, Teak {rows}")
            yield inner, teak, query

    def run(self):
        """All kinds in all states: in none is Teak asked for many more rows than InnoDB."""
        self.prepare()
        for state, (options, _) in STATES.items():
            if state != "in memory":
                self.start(options)
            for kind in QUERIES:
                if state == "beyond memory":
                    for table in ("orders", "parts", "people"):
                        self.server.query(f"select count(*) from {table} use index () where id + 0 > 0", database="Teak")
                pairs = list(self.pairs(kind, state))
                inner, teak = (sum(column) for column in list(zip(*pairs))[:2])
                worst = max(pairs, key=lambda pair: pair[1] - pair[0])
                well = teak <= inner * 1.1 + 4 * self.count
                self.passed, self.failed = self.passed + well, self.failed + (not well)
                print(f"{'ok    ' if well else 'FAILED'} {state}, {kind}: {teak} rows, InnoDB {inner}"
                      f"{'' if well else f'; worst {worst[1]} for {worst[0]}: {worst[2]}'}", flush=True)
        print(f"{self.passed} passed, {self.failed} failed")


def main():
    """Runs all of it; status 1 if something is worse than InnoDB's."""
    options = parser(__doc__)
    options.add_argument("--queries", type=int, default=36, help="of each kind, in each state")
    arguments = options.parse_args()
    arguments.seed = seed(1)
    server = Server(arguments.directory, arguments.plugin_dir)
    server.install()
    plans = Plans(server, arguments.queries, random.Random(arguments.seed))
    try:
        plans.run()
    finally:
        server.kill()
    sys.exit(1 if plans.failed else 0)


if __name__ == "__main__":
    main()
