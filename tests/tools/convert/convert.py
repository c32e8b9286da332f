#!/usr/bin/env python3
"""Converts tables by `teak convert` and compares what is there. Prints 'N passed, N failed', a case each."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pymysql

from kit.cases import Failure, carry_out, cases_of, check
from kit.options import parser, seed
from kit.server import Server, own_plugins

import schema

OPTIONS = ("--log-bin=binlog", "--binlog-format=ROW", "--server-id=1", "--innodb-buffer-pool-size=64M")
# What a writer may be told while tables are converted: constraint, lock, deadlock, definition changed, connection gone.
REFUSED = (1451, 1452, 1205, 1213, 1412, 1020)

# Exit statuses of the program; what cannot be converted is OTHER.
OTHER, USAGE, DAMAGE, INPUT_OUTPUT, SERVER = range(1, 6)

# The comment of the table of records.
RECORDS = "Foreign keys that teak convert has dropped and will add again"

# And that of the database of a trial.
TRIAL = "empty copies of tables, made by teak convert"


class Tests:
    """One server that all cases use."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.random = random.Random(arguments.seed)
        plugins = own_plugins(arguments.directory, arguments.plugin_dir)
        shutil.copy("/usr/lib/mysql/plugin/file_key_management.so", plugins)
        self.server = Server(os.path.join(arguments.directory, "server"), plugins)

    # What cases do.

    def install(self):
        """A new server, with keys to encrypt tables."""
        self.server.install()
        with open(os.path.join(self.server.directory, "keys"), "w", encoding="ascii") as keys:
            keys.write("1;" + "a1" * 32 + "\n")

    def start(self):
        """Starts the server."""
        self.server.start([*OPTIONS, "--plugin-load-add=file_key_management", f"--file-key-management-filename={self.server.directory}/keys"])

    def run(self, *statements, database=None):
        """Statements on one connection; the rows of the last."""
        connection = self.server.connect(database=database, autocommit=True)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return cursor.fetchall()
        finally:
            connection.close()

    def fresh(self, *statements):
        """Databases shop and far, with nothing but what the statements make."""
        self.run("SET foreign_key_checks = 0", *(f"DROP DATABASE IF EXISTS {name}" for name in ("shop", "far", "teak_convert")),
                 "CREATE DATABASE shop", "CREATE DATABASE far", "SET foreign_key_checks = 1", "USE shop", *statements)

    def command(self, *arguments, user="root"):
        """The command line of a conversion."""
        return [self.arguments.teak, "convert", "--no-defaults", f"--socket={self.server.socket}", f"--user={user}", *arguments]

    def teak(self, *arguments, expect=0, **settings):
        """A conversion; its messages."""
        done = subprocess.run(self.command(*arguments, **settings), capture_output=True, check=False, timeout=300)
        text = (done.stdout + done.stderr).decode(errors="replace")
        check(done.returncode == expect, f"teak convert {' '.join(arguments)} ended with {done.returncode} and not {expect}: {text}")
        return text

    def tables(self):
        """All tables of both databases."""
        return self.run("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('shop', 'far') AND TABLE_TYPE <> 'VIEW' "
                        "ORDER BY 1, 2")

    @staticmethod
    def quoted(database, table):
        """For statements."""
        return f"`{database}`.`{table.replace('`', '``')}`"

    def definitions(self):
        """Each table's definition, without its engine and in no order."""
        found = {}
        for database, table in self.tables():
            text = self.run(f"SHOW CREATE TABLE {self.quoted(database, table)}")[0][1]
            text = re.sub(r" ENGINE ?= ?\w+|/\* | \*/", "", text)
            found[database, table] = sorted(line.rstrip(",") for line in text.splitlines())
        return found

    def rows(self):
        """Each table's rows, with their history."""
        found = {}
        for database, table in self.tables():
            history = self.run("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_TYPE = 'SYSTEM VERSIONED' AND TABLE_SCHEMA = %r AND TABLE_NAME = %r"
                               % (database, table))[0][0]
            found[database, table] = sorted(map(repr, self.run(f"SELECT * FROM {self.quoted(database, table)}" + (" FOR SYSTEM_TIME ALL" if history else ""))))
        return found

    def engines(self, *databases):
        """The engines of the tables there are."""
        listed = ", ".join(f"'{name}'" for name in databases)
        return {engine for (engine,) in self.run(f"SELECT DISTINCT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({listed}) AND ENGINE IS NOT NULL")}

    def compare(self, definitions, rows, killed=False):
        """Nothing was lost, and no records were left. `killed`: the server was, before."""
        found = self.definitions()
        for name, definition in definitions.items():
            check(found.get(name) == definition, f"the definition of {name} is {found.get(name)} and was {definition}")
        found = self.rows()
        for name, content in rows.items():
            check(found.get(name) == content, f"{name} has other rows: {found.get(name)} were {content}")
        left = self.run("SELECT SCHEMA_NAME, SCHEMA_COMMENT, (SELECT GROUP_CONCAT(TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = SCHEMA_NAME) "
                        "FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'teak\\_%'")
        left = [database for database in left if not (killed and self.is_forgotten(*database))]
        check(not left, f"{left} is left")

    def is_forgotten(self, database, _comment, tables):
        """The server has been killed between the list of a table's partitions and the table, and does not know the file: it cannot drop the database. The
        file goes, as the message says that it may, so that the next run can."""
        directory = os.path.join(self.server.data, database)
        files = os.listdir(directory)
        if tables or not files or not all(name.endswith(".par") for name in files):
            return False
        for name in files:
            os.remove(os.path.join(directory, name))
        return True

    # Cases.

    def case_a_database_there_and_back(self):
        """Rows, definitions, triggers, counters, sequences, generated columns, partitions are the same afterwards."""
        self.fresh(*schema.EVERYTHING)
        definitions, rows = self.definitions(), self.rows()
        text = self.teak("shop", "far")
        check(self.engines("shop", "far") == {"Teak"}, f"{self.engines('shop', 'far')}: {text}")
        self.compare(definitions, rows)
        for table in ("child", "parent", "ring_a", "ring_b"):
            self.expect_no_orphan(table)
        self.run("INSERT INTO parent(code, name) VALUES ('new', 'x')", database="shop")
        check(self.run("SELECT id FROM shop.parent WHERE code = 'new'")[0][0] == 500, "AUTO_INCREMENT was lost")
        check(self.run("SELECT COUNT(*) FROM shop.audit")[0][0] == 2, "the trigger was lost")
        self.run("DELETE FROM parent WHERE code = 'new'", database="shop")
        definitions, rows = self.definitions(), self.rows()
        self.teak("shop", "far", "--to=innodb")
        check(self.engines("shop", "far") == {"InnoDB"}, f"{self.engines('shop', 'far')}")
        self.compare(definitions, rows)
        text = self.teak("shop", "far", "--to=innodb")
        check(" 0 tables" in text and "have the engine already" in text, text)

    def expect_no_orphan(self, table):
        """The constraints hold: a row of a parent that has children stays, a child without a parent does not come."""
        statements = {"child": "INSERT INTO child(id, parent_code) VALUES (999, 'none')", "parent": "DELETE FROM parent WHERE id = 2",
                      "ring_a": "UPDATE ring_a SET b = 77", "ring_b": "DELETE FROM ring_b"}
        try:
            self.run(statements[table], database="shop")
        except pymysql.err.IntegrityError:
            return
        raise Failure(f"{statements[table]} was accepted")

    def case_other_engines(self):
        """MyISAM, Aria with history, MEMORY."""
        self.fresh(*schema.OTHER_ENGINES)
        definitions, rows = self.definitions(), self.rows()
        text = self.teak("shop")
        check(self.engines("shop") == {"Teak"} and "4 tables compared" in text, text)
        self.compare(definitions, rows)

    def case_connected_tables_belong_together(self):
        """A connected table that was not named is named in the error, also in another database; an option includes it."""
        self.fresh(*schema.EVERYTHING)
        definitions, rows = self.definitions(), self.rows()
        text = self.teak("shop", expect=OTHER)
        check("far.grandchild cannot be converted" in text and "--with-connected" in text and "nothing was converted" in text, text)
        text = self.teak("far.grandchild", expect=OTHER)
        check("shop.child cannot" in text and "shop.parent cannot" in text, text)
        check(self.engines("shop", "far") == {"InnoDB"}, "something was converted")
        self.teak("far.grandchild", "--with-connected")
        check(self.engines("far") == {"Teak"}, "far was not converted")
        self.compare(definitions, rows)

    def case_what_cannot_be_converted_is_told_before_anything_is_done(self):
        """With its reason, and left alone on demand."""
        self.fresh(*schema.OBSTACLES)
        definitions, rows = self.definitions(), self.rows()
        text = self.teak("shop", expect=OTHER)
        for table, reason in (("words", "FULLTEXT"), ("places", "SPATIAL"), ("versions", "system-versioned"), ("secret", "encrypted"),
                              ("orphans", "rows without a parent"), ("widow", "does not exist"), ("merged", "MRG_MyISAM"), ("namesake", "other_namesake has a foreign key of the same name")):
            check(re.search(f"shop.{table} cannot be converted: .*{reason}", text), f"{table}, {reason}: {text}")
        in_teak = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop' AND ENGINE = 'Teak' ORDER BY 1"
        check(self.run(in_teak) == (("other_namesake",),), "something was converted")
        self.teak("shop", "--skip")
        check(self.run(in_teak) == (("other_namesake",), ("plain",)), "only plain can be")
        self.compare(definitions, rows)
        for wrong, reason in (("mysql", "server's own"), ("nowhere", "no table"), ("shop.nothing", "no table"), ("shop.", "neither"), ("shop.a_view", "view")):
            check(reason in self.teak(wrong, expect=OTHER if reason == "view" else USAGE), wrong)

    def case_orphans_and_encryption_on_demand(self):
        """Constraints with rows that have no parent are added as they were; encryption goes only when asked."""
        self.fresh(*schema.OBSTACLES)
        definitions, rows = self.definitions(), self.rows()
        self.teak("shop.orphans", "shop.plain", "shop.widow", "--unchecked-keys", "--with-connected")
        self.teak("shop.secret", expect=OTHER)
        self.teak("shop.secret", "--decrypt")
        for table in ("orphans", "widow", "secret"):
            check(self.run(f"SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = '{table}'") == (("Teak",),), table)
        self.compare(definitions, rows)

    def case_a_dry_run_changes_nothing_and_prints_what_would_be_done(self):
        """Its statements, given to the client, convert."""
        self.fresh(*schema.EVERYTHING)
        definitions, rows = self.definitions(), self.rows()
        logged = self.run("SHOW MASTER STATUS")
        done = subprocess.run(self.command("shop", "far", "--dry-run"), capture_output=True, check=False, timeout=120)
        check(done.returncode == 0, done.stderr.decode())
        check(self.run("SHOW MASTER STATUS") == logged, "a dry run is in the binary log")
        self.compare(definitions, rows)
        check(self.engines("shop", "far") == {"InnoDB"}, "something was converted")
        subprocess.run(["mariadb", "--no-defaults", f"--socket={self.server.socket}", "--user=root"], input=done.stdout, check=True)
        check(self.engines("shop", "far") == {"Teak"}, "the statements do not convert")
        check(self.rows() == rows, "other rows")

    def case_as_json(self):
        """One object tells what would be done, what was done, and what was not and why."""
        self.fresh(*schema.OBSTACLES)

        def told(*arguments, expect=0):
            done = subprocess.run(self.command(*arguments, "--json"), capture_output=True, check=False, timeout=300)
            check(done.returncode == expect, f"{arguments} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
            return json.loads(done.stdout)

        planned = told("shop", "--dry-run", expect=OTHER)
        reasons = {obstacle["table"]: obstacle["reason"] for obstacle in planned["obstacles"]}
        check("FULLTEXT" in reasons["shop.words"] and not planned["ok"] and "--skip" in planned["error"], planned)
        check(any("ALTER TABLE `shop`.`plain`" in statement for statement in planned["statements"]), planned)
        refused = told("shop", expect=OTHER)
        # A reason may name the trial's database, which has another name each time.
        check({obstacle["table"] for obstacle in refused["obstacles"]} == set(reasons) and "tables" not in refused, refused)
        done = told("shop", "--skip")
        check((done["ok"], done["error"], done["tables"], done["compared"]) == (True, None, 1, 1) and done["seconds"] > 0, done)
        check(told("shop.plain")["already"] == 1, "it is of Teak already")

    def case_nobody_sees_tables_without_their_constraints(self):
        """Writers that would break them are refused all the time."""
        self.fresh(*schema.EVERYTHING)
        ended, broken = threading.Event(), []

        def write(statement):
            connection = self.server.connect(database="shop", autocommit=True)
            while not ended.is_set():
                try:
                    with connection.cursor() as cursor:
                        cursor.execute(statement)
                    broken.append(f"accepted: {statement}")
                    return
                except pymysql.err.MySQLError as error:
                    if error.args[0] not in REFUSED:
                        broken.append(f"{statement}: {error}")
                        return
            connection.close()

        writers = [threading.Thread(target=write, args=(statement,)) for statement in
                   ("INSERT INTO child(id, parent_code) VALUES (999, 'none')", "DELETE FROM parent WHERE id = 2", "UPDATE ring_a SET b = 77")]
        for writer in writers:
            writer.start()
        try:
            for target in ("teak", "innodb", "teak"):
                self.teak("shop", "far", f"--to={target}")
        finally:
            ended.set()
            for writer in writers:
                writer.join()
        check(not broken, f"{broken}")

    def case_unlocked_lets_writers_go_on(self):
        """Rows that are written meanwhile are there."""
        self.fresh(*schema.EVERYTHING)
        definitions = self.definitions()
        ended, written = threading.Event(), []

        def write():
            connection = self.server.connect(database="shop", autocommit=True)
            while not ended.is_set():
                with connection.cursor() as cursor:
                    cursor.execute("INSERT INTO parent(code, name) VALUES (%s, 'w')", (f"w{len(written)}",))
                    written.append(1)
            connection.close()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            while not written:
                time.sleep(0.01)
            self.teak("shop", "far", "--unlocked")
        finally:
            ended.set()
            writer.join()
        check(self.run("SELECT COUNT(*) FROM shop.parent WHERE name = 'w'")[0][0] == len(written), "rows were lost")
        strip = lambda found: {name: [re.sub(r" AUTO_INCREMENT=\d+", "", line) for line in lines] for name, lines in found.items()}  # noqa: E731
        check(strip(self.definitions()) == strip(definitions), "definitions differ")

    def case_whatever_is_killed_the_next_run_goes_on(self):
        """SIGINT, SIGKILL, KILL of its connection, kill -9 of the server: after one more run all is there and the same."""
        self.fresh(*schema.EVERYTHING, *schema.ROWS)
        definitions, rows = self.definitions(), self.rows()
        targets = ["teak", "innodb"] * (self.arguments.rounds // 2)
        stopped, killed = 0, False
        for number, target in enumerate(targets):
            how = self.random.choice(("SIGINT", "SIGKILL", "KILL", "server"))
            options = ["--unlocked"] if self.random.random() < 0.3 else []
            after = self.random.random() * 0.6
            process = subprocess.Popen(self.command("shop", "far", f"--to={target}", *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            # Any moment will do: the next run must go on from wherever this one was.
            time.sleep(after)
            self.stop(process, how)
            text = process.communicate(timeout=120)[0].decode(errors="replace")
            stopped += process.returncode != 0
            if how == "server":
                self.start()
            if process.returncode != 0 and "goes on from here" in text:
                self.check_nothing_is_forgotten(definitions, f"round {number}, {how}: {text}")
            self.teak("shop", "far", f"--to={target}")
            check(self.engines("shop", "far") == {"Teak" if target == "teak" else "InnoDB"}, f"round {number}: {self.engines('shop', 'far')}")
            killed |= how == "server"
            self.compare(definitions, rows, killed)
        print(f"  {stopped} of {len(targets)} conversions were stopped", flush=True)

    def stop(self, process, how):
        """Ends a conversion."""
        if how == "SIGINT":
            process.send_signal(signal.SIGINT)
        elif how == "SIGKILL":
            process.kill()
        elif how == "KILL":
            for (connection,) in self.run("SELECT ID FROM information_schema.PROCESSLIST WHERE DB IS NULL AND ID <> CONNECTION_ID()"):
                try:
                    self.run(f"KILL {connection}")
                except pymysql.err.MySQLError as error:
                    check(error.args[0] == 1094, str(error))
        else:
            self.server.kill()

    def check_nothing_is_forgotten(self, definitions, context):
        """Each foreign key is in its table or in the records."""
        # What was ended between the database of records and its table, either way, has a database without one.
        has_records = self.run("SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'teak_convert' AND TABLE_NAME = 'foreign_keys'")
        recorded = {row[0] for row in self.run("SELECT name FROM teak_convert.foreign_keys")} if has_records else set()
        for name, lines in self.definitions().items():
            for line in definitions[name]:
                key = re.match(r"  CONSTRAINT `([^`]+)` FOREIGN KEY", line)
                check(not key or line in lines or key.group(1) in recorded, f"{name} has lost {line}: {context}")

    def case_the_way_back_adds_what_the_way_there_dropped(self):
        """After a failure in the middle both directions restore all constraints."""
        self.fresh(*schema.EVERYTHING)
        definitions, rows = self.definitions(), self.rows()
        for target in ("teak", "innodb"):
            # A run that was ended when the parents were converted.
            self.run("CREATE DATABASE teak_convert",
                     "CREATE TABLE teak_convert.foreign_keys (child_database VARCHAR(64), child_table VARCHAR(64), name VARCHAR(64), definition TEXT, "
                     f"dropped TIMESTAMP, PRIMARY KEY (child_database, child_table, name)) ENGINE=InnoDB COMMENT='{RECORDS}'")
            keys = self.run("SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'shop' "
                            "AND REFERENCED_TABLE_NAME IN ('parent', 'child')")
            keys += self.run("SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'far'")
            check(len(keys) >= 3, f"{keys}")
            for database, table, key in keys:
                (line,) = (line for line in definitions[database, table] if f"CONSTRAINT `{key}`" in line)
                self.run("INSERT INTO teak_convert.foreign_keys VALUES (%r, %r, %r, %r, NOW())" % (database, table, key, line.strip()),
                         f"ALTER TABLE {database}.{table} DROP FOREIGN KEY `{key}`")
            self.run("ALTER TABLE shop.parent ENGINE=Teak")
            self.teak("shop", "far", f"--to={target}")
            self.compare(definitions, rows)
            self.teak("shop", "far", "--to=innodb")
            self.compare(definitions, rows)

    def case_what_an_ended_run_left_is_removed(self):
        """An empty database of records, or an empty table in it, a record of a constraint that is there."""
        self.fresh("CREATE TABLE t (a INT PRIMARY KEY, b INT, CONSTRAINT up FOREIGN KEY (b) REFERENCES t (a)) ENGINE=InnoDB")
        for target, *left in (("teak", "CREATE DATABASE teak_convert"),
                              ("teak", "CREATE DATABASE teak_convert", "CREATE TABLE teak_convert.foreign_keys (child_database VARCHAR(64), child_table VARCHAR(64), "
                               f"name VARCHAR(64), definition TEXT) ENGINE=InnoDB COMMENT='{RECORDS}'"),
                              ("teak", "CREATE DATABASE teak_convert", "CREATE TABLE teak_convert.foreign_keys (child_database VARCHAR(64), child_table VARCHAR(64), "
                               f"name VARCHAR(64), definition TEXT) ENGINE=InnoDB COMMENT='{RECORDS}'", "INSERT INTO teak_convert.foreign_keys VALUES "
                               "('shop', 't', 'up', 'CONSTRAINT `up` FOREIGN KEY (`b`) REFERENCES `shop`.`t` (`a`)')")):
            self.run(*left)
            self.teak("shop", f"--to={target}")
            check(not self.run("SHOW DATABASES LIKE 'teak\\_%'"), f"something is left of {left}")
        trial = "teak_convert_trial_0123456789abcdef"
        # What is left if the server is killed between a directory and its options.
        self.run(f"CREATE DATABASE {trial}")
        self.teak("shop", "--to=innodb")
        check(not self.run("SHOW DATABASES LIKE 'teak\\_%'"), "a database without anything in it is left")
        # And of a server that is killed while it makes a table with partitions: a file that it does not know.
        self.run(f"CREATE DATABASE {trial} COMMENT '{TRIAL}'")
        forgotten = os.path.join(self.server.data, trial, "t8.par")
        with open(forgotten, "wb"):
            pass
        for target in ("teak", "innodb"):
            text = self.teak("shop", f"--to={target}")
            check(f"{trial}, the empty copies of a run that was killed, stays" in text, text)
        os.remove(forgotten)
        self.teak("shop", "--to=innodb")
        check(not self.run("SHOW DATABASES LIKE 'teak\\_%'"), "a database whose file is gone is left")
        # And of a removal that is killed while it waits for a table.
        self.run(f"CREATE DATABASE {trial} COMMENT '{TRIAL}'", f"CREATE TABLE {trial}.t0 (a INT) ENGINE=InnoDB")
        reader = self.server.connect(database=trial)
        with reader.cursor() as cursor:
            cursor.execute("SELECT * FROM t0")
        process = subprocess.Popen(self.command("shop", "--to=teak"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while not (waiting := self.run("SELECT ID FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for % metadata lock'")):
            check(process.poll() is None, "it ended")
            time.sleep(0.02)
        self.run(f"KILL {waiting[0][0]}")
        text = process.communicate(timeout=120)[0].decode(errors="replace")
        check(process.returncode == SERVER, text)
        reader.close()
        self.teak("shop", "--to=teak")
        check(not self.run("SHOW DATABASES LIKE 'teak\\_%'"), "what a killed removal has left is still there")

    def case_what_others_own_is_neither_dropped_nor_believed(self):
        """A database with the name of a trial; records that say more than a foreign key, or are none of this program's."""
        self.fresh("CREATE TABLE p (a INT PRIMARY KEY) ENGINE=InnoDB", "CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB", "INSERT INTO t VALUES (1, 1)")
        trials = ("teak_convert_trial", "teak_convert_trial_0123456789abcdef")
        for name in trials:
            self.run(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.kept (a INT)")
        for options in (["--dry-run"], []):
            self.teak("shop", "--to=teak", *options)
            check(all(self.run(f"SHOW TABLES FROM {name}") == (("kept",),) for name in trials), f"a database of others is gone, {options}")
        check(len(self.run("SHOW DATABASES LIKE 'teak\\_%'")) == len(trials), "a trial is left")
        self.run(*(f"DROP DATABASE {name}" for name in trials))
        before = self.run("SHOW CREATE TABLE shop.t")
        columns = "child_database VARCHAR(64), child_table VARCHAR(64), name VARCHAR(64), definition TEXT"
        key = "CONSTRAINT `z` FOREIGN KEY (a) REFERENCES shop.p (a)"
        own = f"CREATE TABLE teak_convert.foreign_keys ({columns}) ENGINE=InnoDB COMMENT='{RECORDS}'"
        for create, definition in ((own, f"{key}, COMMENT='injected', DROP PRIMARY KEY"), (own, f"{key} ON DELETE CASCADE, DROP PRIMARY KEY"), (own, f"{key} /*! , DROP PRIMARY KEY */"),
                                   (own, f"{key} ON DELETE"), (own, key.replace("`z`", "`other`")), (own.replace(RECORDS, "made by hand"), key),
                                   (own.replace("ENGINE=InnoDB", "ENGINE=MyISAM"), key), (f"CREATE VIEW teak_convert.foreign_keys AS SELECT 'shop' AS child_database, 't' AS child_table, "
                                                                                         f"'z' AS name, '{key}' AS definition", None)):
            self.run("CREATE DATABASE teak_convert", create)
            if definition:
                self.run("INSERT INTO teak_convert.foreign_keys VALUES ('shop', 't', 'z', \"%s\")" % definition)
            text = self.teak("shop", "--to=innodb", expect=USAGE)
            check("teak_convert.foreign_keys" in text, text)
            check(self.run("SHOW CREATE TABLE shop.t") == before, f"carried out: {definition}")
            self.run("DROP DATABASE teak_convert")

    def case_the_password_is_nowhere(self):
        """While it waits for a lock, the list of processes shows none; nor do the messages."""
        self.fresh("CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB", "CREATE OR REPLACE USER 'converter'@'localhost' IDENTIFIED BY 'verysecret'",
                   "GRANT ALL ON *.* TO 'converter'@'localhost'")
        holder = self.server.connect(database="shop")
        with holder.cursor() as cursor:
            cursor.execute("LOCK TABLES t READ")
        process = subprocess.Popen(self.command("shop", "--password=verysecret", "--lock-wait-timeout=600", user="converter"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while not (waiting := self.run("SELECT INFO FROM information_schema.PROCESSLIST WHERE INFO LIKE 'LOCK TABLES%'")):
            check(process.poll() is None, "it ended")
            time.sleep(0.02)
        with open(f"/proc/{process.pid}/cmdline", "rb") as line:
            shown = line.read()
        other = self.teak("shop", "--lock-wait-timeout=1", expect=USAGE)
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=60)[0].decode()
        holder.close()
        check(b"verysecret" not in shown and b"--user=converter" in shown, f"{shown}")
        check("verysecret" not in text + str(waiting) and "interrupted" in text, text)
        check("another teak convert" in other, other)

    def case_settings_of_the_server(self):
        """enforce_storage_engine, an account without rights, --skip-log-bin, a lock that others hold."""
        self.fresh("CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO t VALUES (0)", "CREATE OR REPLACE USER poor@localhost",
                   "GRANT SELECT ON shop.* TO poor@localhost")
        self.run("SET GLOBAL enforce_storage_engine = InnoDB")
        try:
            check("makes tables of InnoDB only" in self.teak("shop", expect=USAGE), "enforce_storage_engine")
        finally:
            self.run("SET GLOBAL enforce_storage_engine = NULL")
        self.teak("shop", expect=SERVER, user="poor")
        holder = self.server.connect(database="shop")
        with holder.cursor() as cursor:
            cursor.execute("LOCK TABLES t READ")
        check("1205" in self.teak("shop", "--lock-wait-timeout=1", expect=SERVER), "a lock")
        holder.close()
        logged = self.run("SHOW MASTER STATUS")
        self.teak("shop", "--skip-log-bin")
        check(self.run("SHOW MASTER STATUS") == logged, "it is in the binary log")
        check(self.engines("shop") == {"Teak"}, "not converted")


def main():
    """Runs all cases, or those that are named."""
    arguments = parser(__doc__, names="of cases; default: all", rounds=16).parse_args()
    arguments.seed = seed()
    tests = Tests(arguments)
    tests.install()

    def recover():
        if not tests.server.is_running():
            tests.start()

    try:
        tests.start()
        return carry_out(cases_of(tests), arguments.names, recover=recover)
    finally:
        tests.server.kill()


if __name__ == "__main__":
    sys.exit(main())
