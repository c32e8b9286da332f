#!/usr/bin/python3
"""`teak binlog` beside the server that wrote the log: random histories of tables with columns of all types, decoded, carried out on a model in this program, and
compared with what the server selects, value by value; DDL, XA and domains of GTIDs; what a server sends beside what is in its files; errors.

usage: binlog.py [CASE...]
"""

import glob
import json
import os
import random
import shutil
import subprocess
import sys

from kit.cases import check, on_server
from kit.columns import COLUMNS
from kit.options import parser, seed
from kit.server import Server, free_port

STATEMENTS = 300
USAGE, DAMAGE, SERVER = 2, 3, 5
IMAGES = ("full", "minimal", "noblob")
METADATA = ("no_log", "minimal", "full")


class Log:
    """A server's log, and what `teak` makes of it."""

    def __init__(self, server, teak):
        self.server, self.teak = server, teak

    def run(self, *arguments, **settings):
        """Exit status, objects, and what it says of an error."""
        done = subprocess.run([self.teak, "binlog", "--json", *arguments], capture_output=True, check=False, timeout=300, **settings)
        return done.returncode, [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()], done.stderr.decode("utf-8")

    def events(self, *arguments):
        status, events, error = self.run(*arguments)
        check(status == 0, f"exit status {status}: {error}")
        return events

    def files(self):
        return sorted(glob.glob(os.path.join(self.server.data, "b.[0-9]*[0-9]")))

    def begin(self):
        """A new file; those that come from now on are what `since` gives."""
        self.server.query("flush binary logs")
        return len(self.files()) - 1

    def since(self, first):
        self.server.query("flush binary logs")
        return self.files()[first:-1]

    def sent(self, *arguments, **settings):
        return self.run("--no-defaults", "--source", "mariadb://root@", "--socket", self.server.socket, *arguments, **settings)


def apply(model, event, columns):
    """One event's rows, on rows by their keys; what was there before must be what the event says."""
    for row in event["rows"]:
        old, new = row.get("old"), row.get("new")
        key = None
        if old is not None:
            key = old["id"]
            check(key in model, f"position {event['position']}: there is no row {key}")
            for name, value in old.items():
                check(model[key][name] == value, f"position {event['position']}, row {key}, {name}: {model[key][name]!r} before, and {value!r} as the event has it")
        if new is not None:
            whole = {**(model.pop(key) if key is not None else dict.fromkeys(columns)), **new}
            model[whole["id"]] = whole
        else:
            del model[key]


def history(source, server, table, columns, image):
    """Random statements."""
    connection = server.connect(autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute(f"set sql_mode = '', time_zone = '+00:00', binlog_row_image = {image}")
        values = lambda some: ", ".join(f"{name} = {literal(name)}" for name in some)
        literal = lambda name: "null" if source.random() < 0.15 else columns[name].literal(source)
        for _ in range(STATEMENTS // len(IMAGES)):
            kind = source.random()
            some = source.sample(list(columns), source.randrange(1, len(columns) + 1))
            if kind < 0.6:
                cursor.execute(f"insert into {table} set {values(some)}")
            elif kind < 0.9:
                cursor.execute(f"update {table} set {values(some[:10])} where id % 5 = {source.randrange(5)}")
            else:
                cursor.execute(f"delete from {table} where id % 17 = {source.randrange(17)}")
    connection.close()


def expect_same(server, table, columns, model):
    names = list(columns)
    selects = ", ".join(columns[name].select.format(name) for name in names)
    connection = server.connect()
    with connection.cursor() as cursor:
        cursor.execute("set time_zone = '+00:00'")
        cursor.execute(f"select id, {selects} from {table} order by id")
        found = cursor.fetchall()
    connection.close()
    check(len(found) > 10, f"only {len(found)} rows are left")
    check([row[0] for row in found] == sorted(model), "other rows are left than the events leave")
    compared = 0
    for key, *values in found:
        for name, value in zip(names, values):
            decoded = model[key][name]
            if value is None or decoded is None:
                same = value is None and decoded is None
            else:
                column = columns[name]
                wanted = column.shown(value) if column.select == "{} + 0e0" else str(value).lower() if column.select.startswith("hex") else str(value)
                same = column.shown(decoded) == wanted
                compared += 1
            check(same, f"row {key}, {columns[name].definition}: {decoded!r} in the log, {value!r} in the table")
    print(f"        {table}: {compared} values of {len(found)} rows", flush=True)


class Cases:
    """All need the same."""

    def __init__(self, teak):
        self.teak = teak

    def random_history(self, server, source, table, columns, metadata, compress):
        log = Log(server, self.teak)
        server.query(f"set global binlog_row_metadata = {metadata}, log_bin_compress = {compress}, log_bin_compress_min_len = 10")
        definitions = ", ".join(f"{name} {column.definition}" for name, column in columns.items())
        connection = server.connect(autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("set sql_mode = '', innodb_strict_mode = 0")
            cursor.execute(f"create or replace table {table} (id int auto_increment primary key, {definitions}) character set utf8mb4")
        connection.close()
        first = log.begin()
        for image in IMAGES:
            history(source, server, table, columns, image)
        events = log.events(*log.since(first))
        if metadata != "full":
            names = {f"@{at + 2}": name for at, name in enumerate(columns)} | {"@1": "id"}
            for image in (image for event in events for row in event.get("rows", ()) for image in row.values()):
                for old in list(image):
                    image[names[old]] = image.pop(old)
        kinds = {event["event"] for event in events}
        check(("write_rows_compressed_v1" in kinds) == (compress == 1), f"the log has {kinds}")
        model = {}
        for event in events:
            if "rows" in event and event["table"] == table:
                apply(model, event, ["id", *columns])
        expect_same(server, table, columns, model)

    def case_values_of_all_types_are_those_of_the_tables(self, server):
        source = random.Random(seed())
        for at, metadata in enumerate(METADATA):
            columns = {f"c{n}": column for n, column in enumerate(COLUMNS) if METADATA.index(column.needs) <= at}
            for part in (0, 1):
                # All in one row would be longer than one may be.
                some = {name: column for n, (name, column) in enumerate(columns.items()) if n % 2 == part}
                self.random_history(server, source, "ab"[part], some, metadata, int(part == at % 2))

    def case_old_temporal_types_are_decoded(self, server):
        log = Log(server, self.teak)
        server.query("set global mysql56_temporal_format = off")
        try:
            server.query("create or replace table old (id int primary key, d date, t time, dt datetime, ts timestamp null)")
            first = log.begin()
            server.query("insert into old values (1, '2024-02-29', '-838:59:59', '2024-02-29 12:34:56', from_unixtime(1700000000)), (2, 0, 0, 0, 0), "
                         "(3, null, null, null, null)", init_command="set sql_mode = ''")
        finally:
            server.query("set global mysql56_temporal_format = on")
        rows = [row["new"] for event in log.events(*log.since(first)) for row in event.get("rows", ())]
        check(rows == [{"id": 1, "d": "2024-02-29", "t": "-838:59:59", "dt": "2024-02-29 12:34:56", "ts": "2023-11-14 22:13:20"},
                       {"id": 2, "d": "0000-00-00", "t": "00:00:00", "dt": "0000-00-00 00:00:00", "ts": "0000-00-00 00:00:00"},
                       {"id": 3, "d": None, "t": None, "dt": None, "ts": None}], f"{rows}")

    def case_what_a_log_does_not_tell_is_not_guessed(self, server):
        log = Log(server, self.teak)
        server.query("set global binlog_row_metadata = no_log")
        server.query("create or replace table u (a tinyint unsigned, b int, c varchar(9) character set latin1, d blob, e enum('x', 'y'), f set('x', 'y'))")
        first = log.begin()
        server.query("insert into u values (200, 7, '\u00e9', 'abc', 'y', 'x,y')")
        server.query("set global binlog_row_metadata = full")
        rows = [row["new"] for event in log.events(*log.since(first)) for row in event.get("rows", ())]
        wanted = {"@1": {"signed": -56, "unsigned": 200}, "@2": 7, "@3": {"hex": "e9"}, "@4": "abc", "@5": 2, "@6": 3}
        check(rows == [wanted], f"{rows}")

    def case_tables_are_described(self, server):
        log = Log(server, self.teak)
        server.query("create or replace table m (a bigint unsigned, b varchar(9) character set latin1, c set('x', '\u00e9') character set latin1, d blob, "
                     "e polygon, f varchar(20) character set utf8mb4, primary key (a, f(5)))")
        first = log.begin()
        server.query("insert into m (a, f) values (1, 'x')")
        (table,) = [event for event in log.events(*log.since(first)) if event["event"] == "table_map"]
        by_name = {column["name"]: column for column in table["columns"]}
        check(table["primary_key"] == [{"column": 1}, {"column": 6, "prefix": 5}], f"{table}")
        check((by_name["a"]["unsigned"], by_name["a"]["nullable"], by_name["b"]["nullable"]) == (True, False, True), f"{table}")
        check((by_name["b"]["charset"], by_name["c"]["members"], by_name["d"]["type"], by_name["e"]["geometry_type"]) == ("latin1", ["x", "\u00e9"], "blob", 3), f"{table}")

    def make_transactions(self, server):
        """DDL, XA, domains, statements."""
        connection = server.connect(autocommit=True)
        with connection.cursor() as cursor:
            for statement in (
                    "create or replace table g (a int primary key, b int)", "insert into g values (1, 1)", "set gtid_domain_id = 7", "insert into g values (2, 1)",
                    "xa start 'x', 'y', 9", "insert into g values (3, 1)", "xa end 'x', 'y', 9", "xa prepare 'x', 'y', 9", "xa commit 'x', 'y', 9",
                    "set gtid_domain_id = 0", "flush binary logs", "alter table g add column c int", "update g set b = 2", "set binlog_format = statement", "set @v = '\u00e9', @n = -5",
                    "insert into g (a, b) values (10, rand() * 10), (11, length(@v) + @n)", "set time_zone = '+02:00', gtid_domain_id = 4294967295",
                    "create or replace view vg as select 1", "set server_id = 77", "insert into g (a, b) values (12, microsecond(now(6)))", "set binlog_format = row",
                    "begin", "insert into g values (13, 1, 1)", "savepoint s", "insert into g values (14, 1, 1)", "rollback to s", "delete from g where a = 13", "commit",
                    "set skip_parallel_replication = 1", "truncate table g", "drop table g", "drop view vg"):
                cursor.execute(statement)
        connection.close()

    def case_transactions_are_those_of_the_server(self, server):
        log = Log(server, self.teak)
        self.make_transactions(server)
        log.begin()
        events = log.events(*log.files())
        last = {}
        for event in events:
            if event["event"] == "mariadb_gtid":
                last[event["gtid"].split("-")[0]] = event["gtid"]
        position = server.query("select @@global.gtid_binlog_pos")[0][0]
        check(set(last.values()) == set(position.split(",")), f"{last} instead of {position}")
        flags = {flag for event in events for flag in event.get("transaction", ())}
        check(flags >= {"standalone", "ddl", "transactional", "prepared_xa", "completed_xa", "allow_parallel"}, f"{flags}")
        check(any(event.get("xid") == "X'78',X'79',9" and event["event"] == "xa_prepare" for event in events), "no XA PREPARE")
        theirs = [row for file in log.files() for row in server.query(f"show binlog events in '{os.path.basename(file)}'")]
        check(len(events) == len(theirs), f"{len(events)} events, {len(theirs)} in SHOW BINLOG EVENTS")
        for event, (file, at, _, server_id, end, _) in zip(events, theirs):
            # From MariaDB 11.4 on the end is not told of each.
            wanted = (file, at, server_id, end or event["end"])
            check((event["file"], event["position"], event["server_id"], event["end"]) == wanted, f"{event} instead of {wanted}")

    def case_a_start_is_where_the_server_would_begin(self, server):
        log = Log(server, self.teak)
        server.query("reset master")
        self.make_transactions(server)
        log.begin()
        source = random.Random(seed())
        files, events = log.files(), log.events(*log.files())
        gtids = [event["gtid"] for event in events if event["event"] == "mariadb_gtid"]
        of = lambda found: [event["gtid"] for event in found if event["event"] == "mariadb_gtid"]
        for _ in range(10):
            reached = {gtid.split("-")[0]: gtid for gtid in gtids[:source.randrange(len(gtids) + 1)]}
            start = ",".join(reached.values())
            ours, (status, sent, error) = log.events("--start", start, *files), log.sent("--start", start)
            check(status == 0, error)
            check(of(ours) == of(sent), f"from {start}: {of(ours)} of the files, {of(sent)} as the server sends it")
            rows = lambda found: [event for event in found if "rows" in event or event["event"] == "query"]
            strip = lambda event: {name: value for name, value in event.items() if name != "checksum"}
            check([strip(event) for event in rows(ours)] == [strip(event) for event in rows(sent)], f"other events from {start}")
        for start, status in (("0-1-999999", USAGE), ("x", USAGE), ("0-1-1,0-1-2", USAGE)):
            found, _, error = log.run("--start", start, *files)
            check(found == status and "--start" in error, f"{start}: {found}, {error}")
        found, _, error = log.run("--start", gtids[0], files[-1])
        check(found == USAGE and "earlier log" in error, f"{found}, {error}")
        found, _, error = log.sent("--start", "0-1-999999")
        check(found == SERVER and "999999" in error, f"{found}, {error}")

    def case_a_server_sends_what_is_in_its_files(self, server):
        log = Log(server, self.teak)
        made_up = lambda event: "artificial" in event["flags"] or event["event"] == "heartbeat"
        strip = lambda event: {name: value for name, value in event.items() if name not in ("checksum", "flags")}
        server.query("reset master")
        for checksum in ("none", "crc32"):
            # What is in earlier files stays as it is.
            server.query(f"set global binlog_checksum = {checksum}")
            self.make_transactions(server)
            status, sent, error = log.sent()
            check(status == 0, error)
            stored = log.events(*log.files())
            sent = [strip(event) for event in sent if not made_up(event)]
            check(len(sent) > 50 and sent == [strip(event) for event in stored], f"the server sends other events ({checksum})")

    def case_a_log_is_followed(self, server):
        log = Log(server, self.teak)
        command = [self.teak, "binlog", "--json", "--follow", "--no-defaults", "--source", "mariadb://root@", "--socket", server.socket]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                server.query("create or replace table f (a int)")
                server.query("insert into f values (4711)")
                log.begin()
                server.query("insert into f values (4712)")
                wanted = [4711, 4712]
                while wanted:
                    event = json.loads(process.stdout.readline())
                    if event.get("rows") == [{"new": {"a": wanted[0]}}]:
                        wanted.pop(0)
            finally:
                process.kill()

    def case_errors_name_file_position_and_event(self, server):
        log = Log(server, self.teak)
        first = log.begin()
        server.query("create or replace table d (a int)")
        server.query("insert into d values (1), (2)")
        (file,) = log.since(first)
        (rows,) = [event for event in log.events(file) if "rows" in event]
        copy = os.path.join(server.directory, "damaged")
        for change, wanted in (
                (lambda data: data.__setitem__(rows["position"] + 25, data[rows["position"] + 25] ^ 1), f"damaged, position {rows['position']}, write_rows_v1: the checksum"),
                (lambda data: data.__delitem__(slice(rows["position"] + 30, None)), f"damaged, position {rows['position']}: the log ends 30 bytes into an event"),
                (lambda data: data.__setitem__(0, 0), "damaged, position 0: this is no binary log")):
            data = bytearray(open(file, "rb").read())
            change(data)
            with open(copy, "wb") as out:
                out.write(data)
            status, events, error = log.run(copy)
            check(status == DAMAGE and wanted in error, f"{status}: {error}")
            check(not any("rows" in event for event in events), "rows of a damaged event")
        with open(file, "rb") as whole:
            piped = subprocess.run([self.teak, "binlog", "--json", "-"], stdin=whole, capture_output=True, check=True)
        check(len(piped.stdout.splitlines()) == len(log.events(file)), "standard input gives other events")
        server.query("create or replace user repl@localhost identified by 'secret'")
        status, _, error = log.run("--no-defaults", "--source", "mariadb://repl:secret@localhost")
        check(status == USAGE and "secret" not in error, f"{status}: {error}")
        status, _, error = log.sent("--user", "repl")
        check(status == 0, f"the URL's user is another one: {error}")
        source = ("--no-defaults", "--source", "mariadb://repl@", "--socket", server.socket)
        status, _, error = log.run(*source, env={**os.environ, "MYSQL_PWD": "wrong"})
        check(status == SERVER and "1045" in error, f"{status}: {error}")
        status, _, error = log.run(*source, env={**os.environ, "MYSQL_PWD": "secret"})
        check(status == SERVER and "Access denied" in error, f"without the privilege, {status}: {error}")
        server.query("grant replication slave on *.* to repl@localhost")
        status, events, error = log.run(*source, env={**os.environ, "MYSQL_PWD": "secret"})
        check(status == 0 and events, f"{status}: {error}")


def main():
    arguments = parser(__doc__, names="cases; all without").parse_args()
    shutil.rmtree(arguments.directory, ignore_errors=True)
    server = Server(arguments.directory, arguments.plugin_dir, free_port())
    cases = Cases(arguments.teak)
    holders = [getattr(cases, name) for name in Cases.__dict__ if name.startswith("case_")]
    options = ["--log-bin=b", "--binlog-format=row", "--binlog-row-metadata=full", "--server-id=1", "--default-storage-engine=InnoDB", "--character-set-server=utf8mb4",
               "--default-time-zone=+00:00"]
    return 1 if on_server(holders, arguments.names, server, options) else 0


if __name__ == "__main__":
    sys.exit(main())
