#!/usr/bin/python3
"""Backups of some databases or tables: `teak backup --databases`, `--tables` and their kin.

Prints 'N passed, N failed', a test each.
"""

import json
import os
import subprocess
import threading

import pymysql

from backup import RESTORED, Test as BackupTest, refused, run
from bank import CHECKPOINTS_PAUSED, Workload, rows
from runner import main

LOCK_WAIT_TIMEOUT = 1205
DATABASES = ("one", "two", "my-db")
# As their files are called.
FILES = {"my-db": "my@002ddb"}
# By what is in the engine of them.
TABLES = {"t": ["t"], "p": ["p#P#p0", "p#P#p1"], "s": ["s"], "w": ["w"]}


class Test(BackupTest):
    """With databases of tables of all kinds."""

    def start(self):
        super().start()
        for database in DATABASES:
            name = f"`{database}`"
            for statement in [
                f"CREATE DATABASE {name}",
                f"CREATE TABLE {name}.t (id INT PRIMARY KEY, body TEXT, KEY (body(20))) ENGINE=Teak",
                f"CREATE TABLE {name}.p (id INT PRIMARY KEY, body TEXT) ENGINE=Teak PARTITION BY HASH (id) PARTITIONS 2",
                f"CREATE SEQUENCE {name}.s ENGINE=Teak",
                f"CREATE TABLE {name}.w (id INT PRIMARY KEY) ENGINE=Teak IN_MEMORY=YES",
                f"CREATE TABLE {name}.i (id INT PRIMARY KEY, body TEXT) ENGINE=InnoDB",
                f"CREATE TABLE {name}.a (id INT PRIMARY KEY) ENGINE=Aria",
                f"CREATE VIEW {name}.v AS SELECT id FROM {name}.t",
                f"CREATE TRIGGER {name}.g BEFORE INSERT ON {name}.a FOR EACH ROW SET NEW.id = NEW.id + 1",
                *(f"INSERT INTO {name}.{table} SELECT seq, '{database} {table}' FROM seq_1_to_1000" for table in "tpi"),
            ]:
                self.server.query(statement)

    def restored_tables(self, directory):
        """Restores a backup and starts a server on it. What the engine has, as `teak check` tells it, whose catalogue has to be that of the server."""
        told = self.restore(directory)
        found = self.engine_tables()
        self.restored.start(RESTORED)
        shown = self.ask("SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE engine = 'Teak'")
        assert {(FILES.get(database, database), table) for database, table, _ in shown} == {(database, table.partition("#P#")[0]) for database, table in found}, (shown, found)
        for database, table, kind in shown:
            if kind == "BASE TABLE":
                (*_, result), = self.ask(f"CHECK TABLE `{database}`.`{table}` EXTENDED")
                assert result == "OK", (database, table, result)
        return told, found

    def ask(self, statement):
        """Rows of the restored server, which may lack the database in which clients begin."""
        return self.restored.query(statement, database=None)

    def engine_tables(self):
        """Databases and tables in the restored engine, which is whole."""
        told = run([self.teak, "check", "--verbose", self.restored.data])
        return {tuple(line.removesuffix(": ok").split("/")) for line in told.splitlines() if line.endswith(": ok")}

    def stop_restored(self):
        """A server that worked on a restored directory leaves a sound one."""
        self.restored.stop()
        self.engine_tables()


def of(*names):
    """The engine's tables that belong to databases, or to tables written with a dot."""
    found = set()
    for name in names:
        database, _, table = name.partition(".")
        for files in [TABLES[table]] if table else TABLES.values():
            found |= {(FILES.get(database, database), file) for file in files}
    return found


def selections(test):
    """What is selected is restored, of each engine, and nothing else; the same from a directory and from a stream."""
    test.start()
    listed = os.path.join(test.directory, "listed")
    with open(listed, "w", encoding="utf-8") as file:
        file.write("one.p\nmy-db.t\n")
    for options, expected in [
        (["--databases=mysql one"], of("one")),
        (["--databases=mysql my-db two.t"], of("my-db", "two.t")),
        (["--databases=mysql my@002ddb", "--databases-exclude=my-db.s"], of("my-db.t", "my-db.p", "my-db.w")),
        (["--tables=^mysql[.],^one[.](t|p)$,^my@002ddb[.]s"], of("one.t", "one.p", "my-db.s")),
        (["--tables-exclude=^test[.],^two[.],[.]p$"], of("one.t", "one.s", "my-db.t", "my-db.s", "one.w", "my-db.w")),
        (["--databases=mysql", f"--tables-file={listed}", "--compress"], of("one.p", "my-db.t")),
    ]:
        print(f"  {options}", flush=True)
        directory = test.backup(*options)
        with open(os.path.join(directory, "backup.json"), encoding="utf-8") as text:
            assert json.load(text)["selection"], options
        _, found = test.restored_tables(directory)
        assert found == expected, (options, sorted(found))
        for database in {database for database, _ in expected}:
            database = {file: name for name, file in FILES.items()}.get(database, database)
            there = {table for table, in test.ask(f"SHOW TABLES IN `{database}`")}
            for table in there & {"t", "p", "i"}:
                count = f"SELECT COUNT(*), MIN(body), MAX(body) FROM `{database}`.{table}"
                assert test.ask(count) == ((1000, f"{database} {table}", f"{database} {table}"),), (options, database, table)
        test.stop_restored()
        test.forget(directory)
    # What was left out of InnoDB's tables is in its dictionary still: DROP TABLE makes room for one of that name.
    directory = test.new_dir()
    with subprocess.Popen(test.backup_command("-", "--databases=mysql one.t one.i"), stdout=subprocess.PIPE) as stream:
        run([test.teak, "backup", "unpack", directory], stdin=stream.stdout)
    assert stream.returncode == 0
    _, found = test.restored_tables(directory)
    assert found == of("one.t"), found
    for statement in ["CREATE DATABASE two", "DROP TABLE IF EXISTS two.i", "CREATE TABLE two.i (id INT PRIMARY KEY) ENGINE=InnoDB",
                      "CREATE TABLE two.t (id INT PRIMARY KEY) ENGINE=Teak", "INSERT INTO two.t VALUES (1)"]:
        test.ask(statement)
    test.stop_restored()


def under_load(test):
    """A backup of the database in which clients work is as good as one of all."""
    test.start()
    workload = Workload(test.server, test.random.random())
    for _ in range(test.rounds):
        workload.wait_for_commits()
        before = workload.state()
        directory = test.backup("--databases=mysql test")
        after = workload.state()
        test.check(directory, workload, before, after)
        test.forget(directory)
    workload.stop()
    test.unharmed()


class Mover(threading.Thread):
    """Moves tables into and out of a database, and makes, empties, changes and drops some, until told to stop."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.connection, self.random, self.stopping, self.failure = server.connect(autocommit=True), seed, False, None
        self.where = {f"m{number}": "one" if number % 2 else "two" for number in range(6)}
        for table, database in self.where.items():
            self.make(database, table)

    def make(self, database, table):
        rows(self.connection, f"CREATE OR REPLACE TABLE {database}.{table} (id INT PRIMARY KEY, body VARCHAR(300)) ENGINE=Teak")
        rows(self.connection, f"INSERT INTO {database}.{table} SELECT seq, '{table}' FROM seq_1_to_500")

    def run(self):
        try:
            while not self.stopping:
                self.step()
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error

    def step(self):
        table = self.random.choice(sorted(self.where))
        database = self.where[table]
        match self.random.randrange(6):
            case 0 | 1:
                other = "two" if database == "one" else "one"
                rows(self.connection, f"RENAME TABLE {database}.{table} TO {other}.{table}")
                self.where[table] = other
            case 2:
                rows(self.connection, f"TRUNCATE TABLE {database}.{table}")
                rows(self.connection, f"INSERT INTO {database}.{table} SELECT seq, '{table}' FROM seq_1_to_500")
            case 3:
                rows(self.connection, f"DROP TABLE {database}.{table}")
                self.make(database, table)
            case 4:
                rows(self.connection, f"ALTER TABLE {database}.{table} ALGORITHM=COPY, FORCE")
            case 5:
                rows(self.connection, f"UPDATE {database}.{table} SET body = CONCAT('{table}', REPEAT('x', id % 200))")


def names_change(test):
    """Tables that are renamed into the selection and out of it, made, emptied, copied and dropped meanwhile: the backup has those whose definition it has."""
    test.start()
    mover = Mover(test.server, test.random)
    mover.start()
    below = []
    for number in range(test.rounds):
        options = [f"--incremental-from={below[-1]}"] if number % 3 else []
        directory = test.backup("--databases=mysql one", *options)
        below.append(directory)
        _, found = test.restored_tables(directory)
        assert {database for database, _ in found} == {"one"} and of("one") <= found, found
        moved = sorted(table for _, table in found if table.startswith("m"))
        for table in moved:
            (count, least), = test.ask(f"SELECT COUNT(*), MIN(LEFT(body, 2)) FROM one.{table}")
            # Between TRUNCATE and INSERT there are none.
            assert (count, least) in ((500, table), (0, None)), (table, count, least)
        print(f"  backup {number}: {moved}", flush=True)
        test.stop_restored()
    mover.stopping = True
    mover.join(30)
    if mover.failure:
        raise mover.failure
    test.unharmed()


def undecided(test):
    """A prepared transaction that has written to what is left out is prepared in what is restored, with the rest of it, and is decided there."""
    test.start()
    for number in range(3):
        connection = test.server.connect(autocommit=True)
        rows(connection, f"XA START 'x{number}'")
        for database in ("two",) if number == 2 else ("one", "two"):
            rows(connection, f"INSERT INTO {database}.t VALUES ({2000 + number}, 'prepared')")
            rows(connection, f"UPDATE {database}.p SET body = 'prepared' WHERE id = {1 + number}")
        rows(connection, f"XA END 'x{number}'")
        rows(connection, f"XA PREPARE 'x{number}'")
        connection.close()
    open_one = test.server.connect(autocommit=False)
    rows(open_one, "INSERT INTO one.t SELECT seq, 'never' FROM seq_5000_to_9000")
    directory = test.backup("--databases=mysql one")
    open_one.close()
    test.restore(directory)
    test.engine_tables()
    for _ in range(2):
        test.restored.start(RESTORED)
        prepared = sorted(row[3] for row in test.ask("XA RECOVER"))
        assert prepared == [b"x0", b"x1", b"x2"], prepared
        test.restored.kill()
    test.restored.start(RESTORED)
    test.ask("XA COMMIT 'x0'")
    test.ask("XA ROLLBACK 'x1'")
    test.ask("XA COMMIT 'x2'")
    test.restored.kill()
    test.restored.start(RESTORED)
    written = [*test.ask("SELECT id, body FROM one.t WHERE id > 1000"), *test.ask("SELECT id, body FROM one.p WHERE body = 'prepared'")]
    assert written == [(2000, "prepared"), (1, "prepared")], written
    test.stop_restored()


class Copier(threading.Thread):
    """Has ALTER copy a table again and again until told to stop."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.connection, self.stopping = server.connect(autocommit=True), False

    def run(self):
        while not self.stopping:
            try:
                rows(self.connection, "ALTER TABLE one.t ALGORITHM=COPY, FORCE")
            except pymysql.err.OperationalError as error:
                # The building of its index needs a checkpoint, and they are paused.
                if error.args[0] not in (CHECKPOINTS_PAUSED, LOCK_WAIT_TIMEOUT):
                    raise


def altered(test):
    """What an ALTER works with that goes on during a backup, of all tables or of some, is not in what is restored: nobody could drop it."""
    test.start()
    test.server.query("INSERT INTO one.t SELECT seq, REPEAT(MD5(seq), 20) FROM seq_2001_to_102000")
    copier = Copier(test.server)
    copier.start()
    made = [test.backup(*options) for options in ([], ["--databases=mysql one"])]
    assert copier.is_alive()
    copier.stopping = True
    copier.join()
    for directory, databases in zip(made, [DATABASES, ["one"]]):
        _, found = test.restored_tables(directory)
        assert {(database, table) for database, table in found if database != "test"} == of(*databases), sorted(found)
        assert test.ask("SELECT COUNT(*) FROM one.t") == ((101000,),)
        test.stop_restored()


def incremental(test):
    """Backups of the same selection stand on each other, and of no other."""
    test.start()
    first = test.backup("--databases=mysql my-db")
    for statement in ["UPDATE `my-db`.t SET body = 'new' WHERE id < 10", "UPDATE `my-db`.i SET body = 'new' WHERE id < 10", "UPDATE one.t SET body = 'new'",
                      "CREATE TABLE `my-db`.u AS SELECT * FROM `my-db`.t", "DROP TABLE `my-db`.s"]:
        test.server.query(statement)
    on_top = f"--incremental-from={first}"
    for options in ([], ["--databases=mysql"], ["--databases=mysql my-db one"], ["--tables=."]):
        refused(test.backup_command(test.new_dir(), on_top, *options), "--databases=my@002ddb mysql", "this would be of")
    # The same, written otherwise.
    second = test.backup(on_top, "--databases=my@002ddb my-db.t mysql")
    assert "are whole" in run([test.teak, "backup", "verify", f"--base={first}", second])
    for directory, expected in [(second, (of("my-db") | {("my@002ddb", "u")}) - of("my-db.s")), (first, of("my-db"))]:
        _, found = test.restored_tables(directory)
        assert found == expected, found
        changed = [test.ask(f"SELECT COUNT(*) FROM `my-db`.{table} WHERE body = 'new'")[0][0] for table in "ti"]
        assert changed == ([9, 9] if directory == second else [0, 0]), changed
        test.stop_restored()
    whole = test.backup()
    refused(test.backup_command(test.new_dir(), f"--incremental-from={whole}", "--databases=one"), "all tables")


def without_privileges(test):
    """Without the database mysql the restore says what is missing and what can be done, and that can be done."""
    test.start()
    told = test.restore(test.backup("--databases=one"))
    assert "--skip-grant-tables" in told and "CHANGE MASTER" not in told, told
    assert test.engine_tables() == of("one")
    test.restored.start(["--skip-grant-tables"])
    dump = run(["mariadb-dump", "--no-defaults", f"--socket={test.restored.socket}", "--databases", "one"])
    assert dump.count("CREATE TABLE `") == 5 and "one t" in dump and "one i" in dump, dump[:2000]
    # One of its tables goes to the server that works.
    connection = test.restored.connect(database="one", autocommit=True)
    rows(connection, "FLUSH TABLES t FOR EXPORT")
    test.server.query("CREATE TABLE two.back LIKE one.t")
    test.server.query("ALTER TABLE two.back DISCARD TABLESPACE")
    run(["cp", os.path.join(test.restored.data, "one", "t.teak"), os.path.join(test.server.data, "two", "back.teak")])
    connection.close()
    test.server.query("ALTER TABLE two.back IMPORT TABLESPACE")
    assert test.server.query("SELECT COUNT(*), MIN(body) FROM two.back") == ((1000, "one t"),)
    test.stop_restored()


def mistakes(test):
    """A selection that cannot be meant is refused, and there is no backup."""
    test.start()
    for options, words in [
        (["--databases=one tow"], ["no database tow"]),
        (["--databases=one.u"], ["no table one.u"]),
        (["--databases= "], ["names none"]),
        (["--tables=^(one[.]t"], ["regular expression", "Unmatched"]),
        (["--tables=^nothing[.]"], ["matches no table"]),
        (["--databases-exclude=one.t"], ["--tables-exclude"]),
        (["--mariadb-backup-option=--databases=one"], ["--databases=one", "teak backup itself"]),
        (["--databases-file=/nowhere"], ["/nowhere"]),
        (["--database=one"], ["--databases"]),
    ]:
        directory = test.new_dir()
        refused(test.backup_command(directory, *options), *words)
        refused([test.teak, "backup", "verify", directory], "backup.json")
        test.forget(directory)
    test.unharmed()


TESTS = [selections, under_load, names_change, undecided, altered, incremental, without_privileges, mistakes]


if __name__ == "__main__":
    main(__doc__, TESTS, Test, rounds=3)
