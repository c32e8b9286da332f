#!/usr/bin/python3
"""How far `teak replicate` is behind its sources at half of the rate that it can apply.

    PYTHONPATH=tests benches/replicate_lag.py [--sources 15] [--transactions N] [--seconds N] [--rate N] [--workers N]

First each source has a log of so many transactions, and it is measured how many a second are applied of all of them. Then each writes at half of that, or at
`--rate` transactions a second, and the target is asked all the time when the newest transaction that it has of each source was made. Prints the middle and the
99th percentile, of which the goal is less than 1 s with 15 sources.
"""

import threading
import time

import pymysql

from following import Following
from kit.options import parser

# A source writes in bursts, so many a second.
BURSTS = 100
ROWS = 10_000


class Pace:
    """All sources write at a rate, a context."""

    def __init__(self, following, rate):
        self.following, self.each = following, max(1, round(rate / BURSTS))
        self.pause = self.each / rate
        self.threads = [threading.Thread(target=self.write, args=(number, source)) for number, source in enumerate(following.sources)]

    def write(self, number, source):
        """One source, until its connection is ended."""
        try:
            connection = source.connect(database=f"d{number}", autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("create table if not exists p (id int primary key, k int not null, made timestamp(6) default now(6), key (made))")
                cursor.execute(f"""begin not atomic
                    declare i int default 0;
                    declare due double default unix_timestamp(now(6));
                    while not exists (select 1 from information_schema.schemata where schema_name = 'ends') do
                        for j in 1..{self.each} do
                            set i = i + 1;
                            replace into p (id, k) values (i * 7919 % {ROWS}, i);
                        end for;
                        set due = due + {self.pause};
                        do sleep(greatest(0, due - unix_timestamp(sysdate(6))));
                    end while;
                end""")
            connection.close()
        except pymysql.err.MySQLError as trouble:
            print(f"source {number}: {trouble}", flush=True)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        time.sleep(1)
        return self

    def __exit__(self, *error):
        for source in self.following.sources:
            source.query("create database ends", database=None)
        for thread in self.threads:
            thread.join()


def fill(source, number, transactions):
    """Writes a log."""
    source.query("create table t (id int primary key, k int not null, c varchar(100) not null, key (k))", database=f"d{number}")
    source.query(f"begin not atomic for i in 1..{transactions} do replace into t values (i * 7919 % {ROWS}, i, sha2(i, 256)); end for; end", database=f"d{number}")


def percentile(numbers, part):
    """Of a sorted list."""
    return numbers[min(len(numbers) - 1, int(len(numbers) * part))]


def main():
    arguments = parser(__doc__, sources=3, transactions=5000, seconds=10, rate=0, workers=1).parse_args()
    with Following(arguments, arguments.sources) as following:
        for number, source in enumerate(following.sources):
            fill(source, number, arguments.transactions)
        following.configure(workers=arguments.workers)
        began = time.monotonic()
        following.agent.start()
        following.catch_up()
        highest = arguments.sources * arguments.transactions / (time.monotonic() - began)
        rate = arguments.rate or highest / 2 / arguments.sources
        print(f"{arguments.sources} sources: {highest:.0f} transactions a second at most, {rate:.0f} of each source now", flush=True)
        with Pace(following, rate):
            following.catch_up()
            asked = " union all ".join(f"select timestampdiff(microsecond, (select max(made) from d{number}.p), now(6)) / 1000" for number in range(arguments.sources))
            behind, ends = [], time.monotonic() + arguments.seconds
            before = following.logged()
            while time.monotonic() < ends:
                behind += [float(row[0]) for row in following.target.query(asked, database=None)]
                time.sleep(0.01)
            written = sum(int(gtid.rsplit("-", 1)[1]) - int(before[name].rsplit("-", 1)[1]) for name, gtid in following.logged().items())
        behind.sort()
        print(f"{written / arguments.seconds:.0f} transactions a second were written; behind by {percentile(behind, 0.5):.0f} ms in the middle, {percentile(behind, 0.99):.0f} ms at the 99th percentile, "
              f"{behind[-1]:.0f} ms at most ({len(behind)} looks)", flush=True)


if __name__ == "__main__":
    main()
