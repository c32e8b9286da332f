#!/usr/bin/env python3
"""What a head with Spider sends to shards of Teak and of InnoDB: the same statements, which have the same answers.

Each shard has the same rows in a table of each engine, and the head has a table over each; statements are made by chance, changes among them, and given to both. What
is sent is read from the shards' general logs. Ends with 77 where the plugin of Spider cannot be fetched.
"""

import random
import re
import sys

import pymysql

from kit.asking import rows
from kit.cases import check
from kit.options import parser, seed
from kit.spider import Spider, on_spider

ENGINES = ("Teak", "InnoDB")
COLUMNS = "shard int not null, id int not null, a int, b int, word varchar(40), price decimal(10,2), made datetime, primary key (shard, id), key a (a), key ba (b, a), key word (word(10))"
# Sent now and then, by the time and not by the statement: statistics, and what a connection is set to.
PASSING = re.compile(r"^(show |select table_rows|explain |set |xa |start transaction|commit|rollback|begin|select 1$|select @@|select `?data_length|/\*|.*information_schema)", re.I)


class Two:
    """A head, two shards, and a table over them for each engine."""

    def __init__(self, arguments, plugin_dir, source):
        self.spider, self.source, self.count = Spider(arguments.directory, plugin_dir, 2, ["--log-output=TABLE"]), source, arguments.statements
        self.session = None

    def make(self):
        self.spider.install()
        for engine in ENGINES:
            self.spider.table(engine.lower(), COLUMNS, "shard", engine)
            self.spider.head.query(f"insert into {engine.lower()} select s.seq, q.seq, q.seq % 17, if(q.seq % 11, q.seq % 29, null), concat('word ', q.seq % 53), q.seq / 7,"
                                   " '2026-01-01' + interval q.seq hour from seq_0_to_1 s, seq_1_to_400 q")
        for number, shard in enumerate(self.spider.shards):
            shard.query(f"analyze table teak_{number}, innodb_{number}")
            shard.query("set global general_log = on", database=None)
        self.session = self.spider.head.connect(autocommit=True)

    def sent(self):
        """To each shard, since the last time: statements, without what comes by the time."""
        found = []
        for shard in self.spider.shards:
            lines = [row[0] for row in shard.query("select convert(argument using utf8mb4) from mysql.general_log where command_type = 'Query' and user_host like 'spider%' order by event_time", database=None)]
            shard.query("truncate mysql.general_log", database=None)
            found.append([re.sub(r"\b(?:teak|innodb)_|(?<=tmp_spider_bka_)0x[0-9a-f]+", "table_", line) for line in lines if not PASSING.match(line)])
        return found

    def condition(self):
        """Of one to three tests, with the partitions' key or without."""
        number, word = self.source.randint(0, 30), f"'word {self.source.randint(0, 60)}'"
        tests = self.source.sample([
            f"a = {number}", f"b between {number} and {number + 4}", "b is null", f"word = {word}", f"word like 'word {number}%'", f"id = {number}", f"id > {400 - number}",
            f"a in ({number}, 3, 5)", f"price > {number}", f"made < '2026-01-{1 + number % 28:02}'", f"(a = {number} or b = {number})", "not a <=> b", f"id < {number * 10}",
        ], self.source.randint(1, 3))
        if self.source.random() < 0.5:
            tests.append(f"shard = {self.source.randint(0, 1)}")
        return " and ".join(tests)

    def statement(self):
        """With {t} for the table."""
        where, number = self.condition(), self.source.randint(0, 500)
        return self.source.choice([
            f"select * from {{t}} where {where} order by shard, id",
            f"select * from {{t}} where {where} order by b, shard, id limit {self.source.randint(1, 20)}",
            f"select * from {{t}} where {where} order by id desc, shard limit 3, 5",
            f"select count(*), sum(a), min(b), max(word), avg(price) from {{t}} where {where}",
            f"select a, count(*), sum(price) from {{t}} where {where} group by a order by a",
            f"select distinct word from {{t}} where {where} order by word",
            f"select x.id, y.id from {{t}} x join {{t}} y on x.shard = y.shard and x.id = y.a where x.{self.source.choice('ab')} = {number % 20} order by x.shard, x.id, y.id",
            f"select * from {{t}} where shard = {number % 2} and id = {number}",
            f"update {{t}} set b = {number}, price = price + 1 where {where}",
            f"update {{t}} set word = 'changed' where {where} order by shard, id limit 3",
            f"delete from {{t}} where {where} and id % 5 = {number % 5}",
            f"insert into {{t}} values ({number % 2}, {number + 400}, {number}, null, 'new', 1.5, '2026-02-03') on duplicate key update a = a + 1, b = {number}",
            f"replace into {{t}} values ({number % 2}, {number}, 1, 2, 'replaced', 0, null)",
            f"insert ignore into {{t}} values ({number % 2}, {number}, 1, 2, 'ignored', 0, null), ({number % 2}, {number + 1000}, 1, 2, 'ignored', 0, null)",
        ])

    def ask(self, statement):
        try:
            with self.session.cursor() as cursor:
                count = cursor.execute(statement)
                return count, cursor.fetchall()
        except pymysql.err.MySQLError as error:
            return error.args

    def case_the_same_is_sent_and_answered(self):
        self.sent()
        pushed = 0
        for number in range(self.count):
            statement = self.statement()
            (answer, sent), (other, other_sent) = ((self.ask(statement.format(t=engine.lower())), self.sent()) for engine in ENGINES)
            check(answer == other, f"{statement}\nTeak: {str(answer)[:1000]}\nInnoDB: {str(other)[:1000]}")
            check(sent == other_sent, f"{statement}\nto Teak: {sent}\nto InnoDB: {other_sent}")
            pushed += sum(len(lines) for lines in sent)
        print(f"{self.count} statements, {pushed} sent to the shards")
        status = dict(rows(self.session, "show status like 'Spider_direct%'"))
        check(all(int(status[name]) > 0 for name in ("Spider_direct_aggregate", "Spider_direct_order_limit")), f"nothing was sent as it was: {status}")

    def case_tables_are_equal(self):
        for number, shard in enumerate(self.spider.shards):
            one, other = (shard.query(f"select * from {engine.lower()}_{number} order by shard, id") for engine in ENGINES)
            check(one == other, f"shard {number} has other rows")


def main():
    arguments = parser(__doc__, statements=400).parse_args()
    return on_spider(arguments, lambda plugin_dir: Two(arguments, plugin_dir, random.Random(seed())), ("the_same_is_sent_and_answered", "tables_are_equal"))


if __name__ == "__main__":
    sys.exit(main())
