#!/usr/bin/python3
"""`teak binlog` beside a MySQL of today: random histories of all its types with compressed transactions and partial images, decoded and compared with what the
server selects; GTIDs with tags; what it sends beside its files. Which MySQL says
kit/mysql.py; without one there is nothing to compare with.

usage: mysql.py [CASE...]
"""

import json
import random
import struct
import sys

from binlog import IMAGES, Log, apply, expect_same
from kit.cases import carry_out, check
from kit.columns import COLUMNS, Column, quoted
from kit.documents import document, foreign
from kit.mysql import MySql, root_with_mysql
from kit.options import parser, seed

STATEMENTS = 150


class MySqlLog(Log):
    """Its log."""

    def begin(self):
        self.server.query("flush binary logs")
        return len(self.files()) - 1

    def sent(self, *arguments, **settings):
        return self.run("--no-defaults", "--source", "mysql://root@", "--socket", self.server.socket, *arguments, **settings)


def json_column(literal):
    return Column("json", literal, "{}", str)


def columns_of_mysql():
    ours = [column for column in COLUMNS if not any(word in column.definition for word in ("compressed", "uuid", "inet6", "json", "38", "utf16le"))]
    floats = lambda source: [source.uniform(-1e3, 1e3) for _ in range(source.randrange(1, 6))]
    return [
        *ours, json_column(lambda source: quoted(json.dumps(document(source), ensure_ascii=False))),
        # Of more than 64 KiB, now and then.
        json_column(lambda source: quoted(json.dumps([document(source) for _ in range(source.choice((0, 3, 200)))], ensure_ascii=False))), json_column(foreign),
        Column("vector(5)", lambda source: f"string_to_vector('{json.dumps(floats(source))}')", "hex({})",
               lambda value: struct.pack(f"{len(value)}f", *value).hex()),
    ]


class Cases:
    """All need the same."""

    def __init__(self, server, teak):
        self.server, self.log = server, MySqlLog(server, teak)

    def case_values_of_all_types_are_those_of_the_tables(self):
        source, every = random.Random(seed()), columns_of_mysql()
        for part in range(3):
            columns = {f"c{n}": column for n, column in enumerate(every) if n % 3 == part}
            connection = self.server.connect(autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("set sql_mode = '', time_zone = '+00:00'")
                cursor.execute("drop table if exists a")
                cursor.execute(f"create table a (id int auto_increment primary key, {', '.join(f'{name} {column.definition}' for name, column in columns.items())})")
                first = self.log.begin()
                for number in range(STATEMENTS):
                    if number % (STATEMENTS // 6) == 0:
                        which = number // (STATEMENTS // 6)
                        cursor.execute(f"set binlog_row_image = {IMAGES[which % 3]}, binlog_transaction_compression = {which % 2}")
                    some = source.sample(list(columns), source.randrange(1, len(columns) + 1))
                    values = ", ".join(f"{name} = {'null' if source.random() < 0.15 else columns[name].literal(source)}" for name in some)
                    kind = source.random()
                    if kind < 0.6:
                        cursor.execute(f"insert into a set {values}")
                    elif kind < 0.9:
                        cursor.execute(f"update a set {values} where id % 5 = {source.randrange(5)}")
                    else:
                        cursor.execute(f"delete from a where id % 17 = {source.randrange(17)}")
            connection.close()
            events, model = self.log.events(*self.log.since(first)), {}
            check("transaction_payload" in {event["event"] for event in events}, "no compressed transactions")
            for event in events:
                if "rows" in event:
                    apply(model, event, ["id", *columns])
            expect_same(self.server, "a", columns, model)

    def case_changes_of_documents_are_told(self):
        self.server.query("create table d (id int primary key, a json, b json, c json)")
        # Of a document that is as short as its change the server logs all.
        self.server.query("""insert into d values (1, '{"a": 1, "b": [1, 2, 3]}', json_array(1, 2, repeat('x', 99)), '{}')""")
        first = self.log.begin()
        connection = self.server.connect(autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("set binlog_row_value_options = partial_json, binlog_row_image = minimal")
            cursor.execute("update d set a = json_remove(json_set(a, '$.a', 2, '$.n', 'x'), '$.b[1]'), c = '[]'")
            cursor.execute("update d set b = json_replace(b, '$[1]', json_object('k', true))")
        connection.close()
        rows = [event["rows"] for event in self.log.events(*self.log.since(first)) if event["event"] == "partial_update_rows"]
        change = lambda operation, path, *value: {"operation": operation, "path": path, **({"value": value[0]} if value else {})}
        check(rows == [
            [{"old": {"id": 1}, "new": {
                "a": {"changes": [change("replace", "$.a", "2"), change("insert", "$.n", '"x"'), change("remove", "$.b[1]")]}, "c": "[]"}}],
            [{"old": {"id": 1}, "new": {"b": {"changes": [change("replace", "$[1]", '{"k": true}')]}}}]], f"{rows}")

    def case_a_server_sends_what_is_in_its_files(self):
        self.server.query("reset binary logs and gtids")
        connection = self.server.connect(autocommit=True)
        with connection.cursor() as cursor:
            for statement in (
                    "create table g (a int primary key)", "insert into g values (1)", "set gtid_next = 'automatic:tag'", "insert into g values (2)",
                    "set gtid_next = 'automatic'", "flush binary logs", "set global binlog_checksum = none", "xa start 'x', 'y', 9", "insert into g values (3)",
                    "xa end 'x', 'y', 9", "xa prepare 'x', 'y', 9", "xa commit 'x', 'y', 9", "set sql_generate_invisible_primary_key = on", "create table i (a int)",
                    "insert into i values (5)", "set binlog_transaction_compression = on", "insert into g values (6)", "set global binlog_checksum = crc32",
                    "set gtid_next = 'automatic:tag'", "insert into g values (7)"):
                cursor.execute(statement)
        connection.close()
        (executed,), = self.server.query("select @@gtid_executed")
        source = executed.split(":")[0]
        made_up = lambda event: "artificial" in event["flags"] or event["event"].startswith("heartbeat") or event["event"] == "rotate" and event["time"] == 0
        strip = lambda event: {name: value for name, value in event.items() if name not in ("checksum", "flags")}
        of = lambda found: [event["gtid"] for event in found if "gtid" in event]
        stored = self.log.events(*self.log.files())
        status, sent, error = self.log.sent()
        check(status == 0, error)
        check([strip(event) for event in sent if not made_up(event)] == [strip(event) for event in stored], "the server sends other events")
        check(len(of(stored)) == 9 and of(stored)[2].endswith(":tag:1"), f"{of(stored)}")
        for start in (f"{source}:1", f"{source}:1-3:5", f"{source}:1-4,{source}:tag:1", executed.replace("\n", "")):
            status, sent, error = self.log.sent("--start", start)
            check(status == 0, error)
            ours = self.log.events("--start", start, *self.log.files())
            check(of(ours) == of(sent) and len(of(ours)) < 9, f"from {start}: {of(ours)} of the files, {of(sent)} as the server sends it")


def main():
    arguments = parser(__doc__, names="cases; all without").parse_args()
    root = root_with_mysql()
    if not root:
        print("skipped: no MySQL")
        return 0
    server = MySql(root)
    try:
        server.start()
        cases = Cases(server, arguments.teak)
        return 1 if carry_out([getattr(cases, name) for name in Cases.__dict__ if name.startswith("case_")], arguments.names) else 0
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
