#!/usr/bin/python3
"""SQL tests once as they are and once with *warm handlers*: what a handler, or a session, keeps across statements must
not show. Both with Teak; each statement must have the same rows, error, warnings and number of rows.

In the second run another session does one of the following before a statement that reads or writes, or nothing, at
random. It reads each table of the test's database through each of its indexes, and deletes a row of each and takes that
back: so the table cache has handlers that have written, and looked for parents and children. Or it changes the
definition of a table to what it was: ALTER ... FORCE (in place or by copy), an index, a CHECK or a constraint that comes
and goes, TRUNCATE of an empty one. (One after the other before each statement would not do: a handler that has just
been used has just been made current.) It waits for no lock: what the test has locked it passes by. While the test is in
a transaction it changes no definition, since snapshots end there (error 1412).

Leaves <name>.cold and <name>.warm in the output directory where they differ. Prints 'warm: N passed, N failed'. With
--seconds no test begins after so many.
"""

import difflib
import itertools
import pathlib
import random
import re
import sys
import time

import pymysql
from pymysql.constants import SERVER_STATUS

from kit.options import parser, seed

from serving import serving

HERE = pathlib.Path(__file__).parent
# What these print depends on statistics, plans, counters of the server or the time, or on what is stored where.
UNSTABLE = {
    "mrr": "plans",
    "system_time_partitions": "a copy puts history into the partition that it goes to now, with InnoDB too",
    "server_facts": "names of files, counters",
    "update_time": "the time of the last change",
}
# Those in which tables know each other, or are changed and written in turn.
SOME = ["foreign_keys_cascade", "foreign_keys", "foreign_keys_rebuilds", "alter", "generated", "partitions"]
DISTURBED = re.compile(r"(?:insert|replace|update|delete|select|call|execute|with|truncate|alter|drop|rename|optimize|check|handler|\()",
                       re.IGNORECASE)
# One statement of the client: quoted texts, comments and what is between, up to the delimiter.
QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`", re.DOTALL)
PLAIN = re.compile(r"[\w ,()=.*<>]+|\n")
COMMENT = re.compile(r"(?:--(?=\s)|#)[^\n]*|/\*(?![!M]).*?\*/", re.DOTALL)
DELIMITER = re.compile(r"delimiter[ \t]+(\S+)[^\n]*", re.IGNORECASE)


def statements(text):
    """What the mariadb client would send, one after the other."""
    delimiter, at, kept = ";", 0, []
    while at < len(text):
        if not "".join(kept[-1:]).strip() and not "".join(kept).strip() and (at == 0 or text[at - 1] == "\n"):
            command = DELIMITER.match(text, at)
            if command:
                delimiter, at, kept = command[1], command.end(), []
                continue
        part = PLAIN.match(text, at) or QUOTED.match(text, at)
        ends = next((end for end in (delimiter, "\\G", "\\g") if text.startswith(end, at)), None)
        if ends:
            at += len(ends)
            if statement := "".join(kept).strip():
                yield statement
            kept = []
        elif part and (len(delimiter) == 1 or delimiter[0] not in part[0] or not part.re is PLAIN):
            kept.append(part[0])
            at = part.end()
        elif comment := COMMENT.match(text, at):
            kept.append(" ")
            at = comment.end()
        else:
            kept.append(text[at])
            at += 1
    if statement := "".join(kept).strip():
        yield statement


def quote(name):
    return "`" + name.replace("`", "``") + "`"


class Disturber:
    """The other session. Its own errors are of no interest: it may meet locks, rows that break constraints, anything."""

    def __init__(self, socket, database, seed):
        self.choice = random.Random(seed)
        self.connection = pymysql.connect(unix_socket=socket, user="root", database=database, autocommit=True, charset="utf8mb4")
        for setting in ("lock_wait_timeout = 0", "teak_lock_wait_timeout = 0", "innodb_lock_wait_timeout = 0", "max_statement_time = 5"):
            self.run(f"set {setting}")

    def run(self, statement):
        """The rows, or nothing."""
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        except pymysql.err.MySQLError:
            return ()

    def tables(self):
        """Names and definitions of Teak's tables."""
        names = [row[0] for row in self.run("show full tables where table_type = 'BASE TABLE'")][:12]
        found = [(quote(name), "".join(str(row[1]) for row in self.run(f"show create table {quote(name)}"))) for name in names]
        return [(name, definition) for name, definition in found if "ENGINE=Teak" in definition]

    def warm(self, name, definition, may_delete):
        indexes = re.findall(r"^\s+(?:UNIQUE )?KEY (`[^`]+`)", definition, re.MULTILINE)
        for index in indexes + ["`PRIMARY`"] * ("PRIMARY KEY" in definition):
            self.run(f"select * from {name} force index ({index}) limit 3")
        if may_delete:
            for statement in ("begin", f"delete from {name} limit 1", "rollback"):
                self.run(statement)

    def change(self, name, definition):
        """Another definition, and the one of before."""
        kind = self.choice.choice(["force", "copy", "truncate", "index", "check", "link"])
        # The index that the server makes for a constraint goes when another one serves.
        bound = set(re.findall(r"`[^`]+`", "".join(re.findall(r"FOREIGN KEY \(([^)]*)\)", definition))))
        columns = [column for column in re.findall(r"^\s+(`[^`]+`)", definition, re.MULTILINE) if column not in bound]
        key = re.search(r"PRIMARY KEY \((`[^`]+`)\)", definition)
        if kind == "truncate" and "AUTO_INCREMENT" not in definition and not self.run(f"select 1 from {name} limit 1"):
            # Rows that are not committed are not seen; of a table that has some the truncation does not get the lock.
            self.run(f"truncate table {name}")
        elif kind == "index" and columns:
            self.run(f"alter table {name} add index warm_index ({columns[0]})")
            self.run(f"alter table {name} drop index warm_index")
        elif kind == "check":
            self.run(f"alter table {name} add constraint warm_check check (1 = 1)")
            self.run(f"alter table {name} drop constraint warm_check")
        elif kind == "link" and key:
            self.run(f"alter table {name} add constraint warm_link foreign key ({key[1]}) references {name} ({key[1]})")
            self.run(f"alter table {name} drop foreign key if exists warm_link")
        else:
            self.run(f"alter table {name} force, algorithm = {'copy' if kind == 'copy' else 'default'}")

    def disturb(self, in_transaction):
        what = self.choice.choice(["warm", "change", "change", "nothing", "nothing"])
        tables = self.tables() if what != "nothing" else []
        if what == "warm":
            # A trigger may write what no rollback takes back, such as numbers of a counter.
            may_delete = not self.run("show triggers")
            for name, definition in tables:
                self.warm(name, definition, may_delete)
        elif tables and not in_transaction:
            self.change(*self.choice.choice(tables))

    def close(self):
        self.connection.close()


def answer(connection, statement):
    """What a statement says, as lines."""
    said = []
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement)
            while True:
                if cursor.description:
                    said.append("\t".join(column[0] for column in cursor.description))
                    said += ["\t".join(str(value) for value in row) for row in cursor.fetchall()]
                else:
                    said.append(f"{cursor.rowcount} rows")
                if not cursor.nextset():
                    break
        except pymysql.err.MySQLError as error:
            said.append(f"error {error.args}")
            if not connection.open:
                return said
        if connection._result is not None and connection._result.warning_count:  # pylint: disable=protected-access
            cursor.execute("show warnings")
            said += [f"{level} {number} {text}" for level, number, text in cursor.fetchall()]
    return said


def run(socket, path, seed):
    """The outputs of a test, as lines; with a seed, warm."""
    database = f"w_{path.stem}"
    admin = pymysql.connect(unix_socket=socket, user="root", autocommit=True)
    with admin.cursor() as cursor:
        cursor.execute(f"drop database if exists {database}")
        cursor.execute(f"create database {database}")
    connection = pymysql.connect(unix_socket=socket, user="root", database=database, autocommit=None, charset="utf8mb4", local_infile=True,
                                 init_command="set default_storage_engine = Teak, max_statement_time = 30")
    disturber = Disturber(socket, database, f"{seed} {path.stem}") if seed is not None else None
    lines = []
    try:
        for statement in statements(path.read_text(encoding="utf-8")):
            if disturber and DISTURBED.match(statement):
                disturber.disturb(bool(connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS))
            lines += [f"> {line}" for line in statement.splitlines()] + answer(connection, statement)
    finally:
        connection.close()
        if disturber:
            disturber.close()
        with admin.cursor() as cursor:
            cursor.execute(f"drop database {database}")
        admin.close()
    return lines


def compare(server, names, seeds, seconds):
    """Plays the tests cold and warm, once for each seed, and none any more after so many seconds; how many went well and how many did not."""
    began, passed, failed = time.monotonic(), 0, 0
    for name in names:
        path, cold = HERE / f"{name}.sql", None
        for number in seeds:
            if seconds and time.monotonic() - began > seconds:
                break
            cold = cold or run(server.socket, path, None)
            warm = run(server.socket, path, number)
            if cold == warm:
                passed += 1
                continue
            failed += 1
            for kind, lines in (("cold", cold), ("warm", warm)):
                pathlib.Path(server.directory, f"{name}.{kind}").write_text("\n".join(lines) + "\n", encoding="utf-8")
            print(f"FAILED {name}, warm handlers, TEAK_SEED={number} (cold -, warm +):", flush=True)
            for line in itertools.islice(difflib.unified_diff(cold, warm, lineterm="", n=2), 40):
                print(f"    {line}", flush=True)
    return passed, failed


def main():
    options = parser(__doc__, names="of tests; default: some", rounds=1, seconds=0.0)
    options.add_argument("--all", action="store_true", help="all tests but those of UNSTABLE")
    arguments = options.parse_args()
    names = arguments.names or SOME
    if arguments.all:
        names = sorted(path.stem for path in HERE.glob("*.sql") if path.stem not in UNSTABLE)
    first = seed(1)
    with serving(arguments) as server:
        passed, failed = compare(server, names, range(first, first + arguments.rounds), arguments.seconds)
    print(f"warm: {passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
