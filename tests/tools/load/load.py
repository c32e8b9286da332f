#!/usr/bin/env python3
"""Loads dumps by `mariadb` and by `teak load` and compares what is there. Prints 'N passed, N failed', a case each."""

import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from kit.cases import Failure, carry_out, cases_of, check
from kit.options import parser, seed
from kit.server import HAS_MYDUMPER, Server, free_port, own_plugins

import dumps
from accounts import Accounts
from case import DAMAGE, ENGINES, INPUT_OUTPUT, OPTIONS, OTHER, SERVER, USAGE
from endings import Endings
from interrupted import Interrupted

ROWS = 700
DUMP_VARIANTS = {
    "default": [],
    "all objects": ["--routines", "--triggers", "--events"],
    "single rows": ["--skip-extended-insert", "--routines", "--events"],
    "hexadecimal": ["--hex-blob", "--complete-insert"],
    "without locks, comments and keys": ["--skip-add-locks", "--skip-comments", "--skip-disable-keys", "--no-autocommit"],
    "replace": ["--replace"],
    "small statements": ["--net-buffer-length=4096", "--order-by-primary", "--insert-ignore"],
}


class Tests(Accounts, Endings, Interrupted):
    """One server that all cases use, each with databases of its own."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.random = random.Random(arguments.seed)
        plugins = own_plugins(arguments.directory, arguments.plugin_dir)
        self.server = Server(os.path.join(arguments.directory, "server"), plugins, port=arguments.port)
        self.files = os.path.join(arguments.directory, "files")
        shutil.rmtree(self.files, ignore_errors=True)
        os.makedirs(self.files)

    # What cases do.

    def fresh(self, *names):
        """Empty databases."""
        for name in names:
            self.server.query(f"DROP DATABASE IF EXISTS {name}", database=None)
            self.server.query(f"CREATE DATABASE {name} CHARACTER SET latin1", database=None)

    def source(self, engine):
        """The database with everything in it, made once."""
        name = f"source_{engine.lower()}"
        if not self.server.query(f"SHOW DATABASES LIKE '{name}'", database=None):
            self.fresh(name)
            connection = self.server.connect(database=name)
            dumps.fill(connection, engine, ROWS, self.arguments.seed)
            connection.close()
        return name

    def dump(self, database, *options):
        """A file made by mariadb-dump."""
        path = os.path.join(self.files, f"{database}.sql")
        with open(path, "wb") as out:
            subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={self.server.socket}", "--user=root", *options, database], stdout=out, check=True)
        return path

    def write(self, name, text):
        """A file with this text."""
        path = os.path.join(self.files, name)
        with open(path, "wb") as out:
            out.write(text if isinstance(text, bytes) else text.encode())
        return path

    def mariadb(self, database, path, *options, may_fail=False):
        """A serial load."""
        with open(path, "rb") as dump:
            command = ["mariadb", "--no-defaults", f"--socket={self.server.socket}", "--user=root", "--default-character-set=utf8mb4", "--comments", *options, database]
            done = subprocess.run(command, stdin=dump, capture_output=True, check=False)
        check(may_fail or done.returncode == 0, f"mariadb: {done.stderr.decode(errors='replace')}")

    def command(self, database, *arguments, user="root", options=(), file=None):
        """The command line of a load; with a `file` of options."""
        chosen = [] if database is None else [f"--database={database}"]
        defaults = f"--defaults-file={file}" if file else "--no-defaults"
        return [self.arguments.teak, "load", defaults, f"--socket={self.server.socket}", f"--user={user}", *options, *chosen, *arguments]

    def teak(self, database, *arguments, expect=0, user="root", options=(), file=None, **settings):
        """A load by teak; its messages."""
        command = self.command(database, *arguments, user=user, options=options, file=file)
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, **settings)
        text = (done.stdout + done.stderr).decode(errors="replace")
        check(done.returncode in (expect if isinstance(expect, tuple) else (expect,)), f"teak load ended with {done.returncode} and not {expect}: {text}")
        return text

    def value(self, statement, database=None):
        """The first value of a query."""
        return self.server.query(statement, database=database)[0][0]

    def contents(self, database):
        """Everything that can be compared, by name."""
        rows = lambda statement: self.server.query(statement, database=database)  # noqa: E731
        found = {}
        for name, kind in rows(f"SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"):
            quoted = "`%s`" % name.replace("`", "``")
            found[name, "create"] = rows(f"SHOW CREATE TABLE {quoted}")[0][1]
            if kind == "BASE TABLE":
                found[name, "checksum"] = rows(f"CHECKSUM TABLE {quoted}")[0][1]
                found[name, "count"] = rows(f"SELECT COUNT(*) FROM {quoted}")[0][0]
        for schema, table, name, columns in (
                ("TRIGGER_SCHEMA", "TRIGGERS", "TRIGGER_NAME", "ACTION_STATEMENT, SQL_MODE, EVENT_OBJECT_TABLE, CHARACTER_SET_CLIENT, COLLATION_CONNECTION"),
                ("ROUTINE_SCHEMA", "ROUTINES", "ROUTINE_NAME", "ROUTINE_DEFINITION, SQL_MODE, ROUTINE_TYPE, CHARACTER_SET_CLIENT, COLLATION_CONNECTION"),
                ("EVENT_SCHEMA", "EVENTS", "EVENT_NAME", "EVENT_DEFINITION, SQL_MODE, STARTS, TIME_ZONE, STATUS, CHARACTER_SET_CLIENT")):
            for row in rows(f"SELECT {name}, {columns} FROM information_schema.{table} WHERE {schema} = '{database}'"):
                found[row[0], table] = row[1:]
        return found

    def compare(self, expected, found, rename=True):
        """Two databases must be equal."""
        left, right = self.contents(expected), self.contents(found)
        if rename:
            right = json.loads(json.dumps([[list(k), v] for k, v in right.items()], default=str).replace(found, expected))
            left = json.loads(json.dumps([[list(k), v] for k, v in left.items()], default=str))
            left, right = ({tuple(k): v for k, v in pairs} for pairs in (left, right))
        check(left.keys() == right.keys(), f"other objects: {set(left) ^ set(right)}")
        for name, value in left.items():
            check(value == right[name], f"{name} differs:\n  {value}\n  {right[name]}")
        left_over = self.server.query("SHOW DATABASES LIKE 'teak_load'", database=None)
        check(not left_over, "the records of progress were left")

    def both(self, path, *arguments, charset="utf8mb4", **settings):
        """Loads a dump in both ways and compares."""
        self.fresh("serial", "parallel")
        self.mariadb("serial", path, f"--default-character-set={charset}")
        text = self.teak("parallel", path, *arguments, **settings)
        self.compare("serial", "parallel")
        return text

    # Cases.

    def case_dumps_of_mariadb_dump(self):
        """Every kind of dump, both engines, with keys put off and not."""
        for engine in ENGINES:
            source = self.source(engine)
            for name, options in DUMP_VARIANTS.items():
                defer = self.random.choice(["auto", "on", "off"])
                try:
                    self.both(self.dump(source, *options), f"--defer-indexes={defer}", f"--connections={self.random.randrange(1, 9)}", "--check")
                except Failure as failure:
                    raise Failure(f"{engine}, {name}, --defer-indexes={defer}: {failure}") from failure

    def case_several_databases(self):
        """USE and CREATE DATABASE in the dump."""
        sources = [self.source(engine) for engine in ENGINES]
        path = os.path.join(self.files, "several.sql")
        with open(path, "wb") as out:
            command = ["mariadb-dump", "--no-defaults", f"--socket={self.server.socket}", "--user=root", "--routines", "--databases", *sources]
            subprocess.run(command, stdout=out, check=True)
        results = []
        for load in (lambda: self.mariadb("test", path), lambda: self.teak("test", path)):
            for source in sources:
                self.server.query(f"DROP DATABASE {source}", database=None)
            load()
            results.append([self.contents(source) for source in sources])
        for serial, parallel in zip(*results):
            check(serial.keys() == parallel.keys(), "other objects")
            for name, value in serial.items():
                check(parallel[name] == value, f"{name} differs:\n{value}\n{parallel[name]}")

    def case_pipes_and_compression(self):
        """Formats by their first bytes, from files and standard input."""
        path = self.dump(self.source("Teak"))
        self.fresh("serial")
        self.mariadb("serial", path)
        for command in (["gzip", "-kf"], ["bzip2", "-kf"], ["xz", "-kf0"], ["zstd", "-qkf"]):
            if not shutil.which(command[0]):
                continue
            subprocess.run([*command, path], check=True)
            packed = next(name for name in glob.glob(path + ".*"))
            self.fresh("parallel")
            with open(packed, "rb") as pipe:
                self.teak("parallel", *(["-"] if command[0] != "xz" else [packed]), stdin=pipe)
            self.compare("serial", "parallel")
            with open(packed, "r+b") as cut:
                cut.truncate(os.path.getsize(packed) - 20)
            self.fresh("parallel")
            self.teak("parallel", packed, expect=DAMAGE)
            self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)
            os.unlink(packed)

    def case_mydumper(self):
        """A directory of mydumper, against myloader."""
        if not HAS_MYDUMPER:
            print("no mydumper in this Debian")
            return
        check(shutil.which("mydumper"), "mydumper is not installed: scripts/setup.sh --test does it")
        for engine in ENGINES:
            source = self.source(engine)
            for options in (["--rows=200"], ["--compress"], ["--statement-size=2000"]):
                directory = os.path.join(self.files, "mydumper")
                shutil.rmtree(directory, ignore_errors=True)
                # `no_key` has numbers that mydumper prints with fewer digits, alike for both; the odd name breaks its
                # file names.
                command = ["mydumper", f"--socket={self.server.socket}", "--user=root", f"--database={source}", f"--outputdir={directory}",
                           "--triggers", "--routines", "--regex", r"^source_\w+\.\w+$", *options]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                before = self.contents(source)
                self.server.query(f"DROP DATABASE {source}", database=None)
                self.teak(None, directory)
                after = self.contents(source)
                self.server.query(f"DROP DATABASE {source}", database=None)
                subprocess.run(["myloader", f"--socket={self.server.socket}", "--user=root", f"--directory={directory}"], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                expected = self.contents(source)
                for name, value in expected.items():
                    if name[1] in ("checksum", "count"):
                        check(after.get(name) == value, f"{engine} {options}: {name} differs from myloader:\n{value}\n{after.get(name)}")
                for name in before:
                    check(name in after or name[1] in ("EVENTS",) or "odd" in name[0], f"{engine} {options}: {name} is missing")
                self.server.query(f"DROP DATABASE {source}", database=None)
                source = self.source(engine)

    def case_mydumper_into_another_database(self):
        """What -D cannot do is refused, and --into never writes to the dump's own database."""
        if not HAS_MYDUMPER:
            print("no mydumper in this Debian")
            return
        check(shutil.which("mydumper"), "mydumper is not installed: scripts/setup.sh --test does it")
        self.fresh("dumped", "elsewhere")
        self.server.query("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10))", database="dumped")
        self.server.query("CREATE VIEW v AS SELECT b FROM t", database="dumped")
        self.server.query("INSERT INTO t VALUES (1, 'dumped.t')", database="dumped")
        directory = os.path.join(self.files, "mydumper-into")
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run(["mydumper", f"--socket={self.server.socket}", "--user=root", "--database=dumped", f"--outputdir={directory}"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.server.query("UPDATE t SET b = 'newer'", database="dumped")
        text = self.teak("elsewhere", directory, "--on-error=skip", expect=USAGE)
        check("database dumped" in text and "--into=elsewhere" in text, text)
        check(not self.server.query("SHOW TABLES", database="elsewhere"), "something was loaded")
        self.server.query("DROP DATABASE elsewhere", database=None)
        for database in ("elsewhere", "dum`ped 2"):
            self.teak(None, directory, f"--into={database}", "--check")
            check(self.server.query("SELECT a, b, (SELECT b FROM v) FROM t", database=database) == ((1, "dumped.t", "dumped.t"),), database)
            check(self.server.query("SELECT @@character_set_database", database=database) == (("latin1",),), "the character set was lost")
            self.server.query(f"DROP DATABASE `{database.replace('`', '``')}`", database=None)
        check(self.server.query("SELECT b FROM t", database="dumped") == (("newer",),), "the dump's database was written to")
        with open(os.path.join(directory, "dumped.t-schema-triggers.sql"), "w", encoding="ascii") as trigger:
            trigger.write("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW INSERT INTO dumped.u VALUES (1);\n")
        text = self.teak(None, directory, "--into=elsewhere", expect=USAGE)
        check("names the database dumped" in text and "schema-triggers" in text, text)
        check("is for directories of mydumper" in self.teak(None, self.write("plain.sql", "DO 1"), "--into=elsewhere", expect=USAGE), "a file")

    def case_phpmyadmin(self):
        """Keys and AUTO_INCREMENT added by ALTER after the rows."""
        for engine in ENGINES:
            self.both(self.write("phpmyadmin.sql", dumps.phpmyadmin(engine)), "--defer-indexes=on", "--check")

    def case_order_that_shows(self):
        """AUTO_INCREMENT, REPLACE, IGNORE, triggers, INSERT SELECT, variables, warnings."""
        for engine in ENGINES:
            for options in ([], ["--check"]):
                self.both(self.write("order.sql", dumps.order(engine, self.random.randrange(1 << 30))), "--connections=8", *options)

    def case_engines_without_transactions(self):
        """Rows are not joined where a failure could not be taken back."""
        for engine in ("MyISAM", "Aria", "MEMORY"):
            self.both(self.write("order.sql", dumps.order(engine, self.random.randrange(1 << 30))), "--connections=8")

    def ways_to_give(self, charset):
        """Settings of loads by which the connection has the character set before the dump says anything."""
        yield {"options": [f"--default-character-set={charset}"]}
        yield {"file": self.write("charset.cnf", f"[client]\ndefault-character-set={charset}\n")}
        # Whoever is no administrator gets it from the server.
        self.server.query("CREATE OR REPLACE USER plain@localhost", database=None)
        self.server.query("GRANT ALL ON parallel.* TO plain@localhost", database=None)
        self.server.query("GRANT ALL ON teak_load.* TO plain@localhost", database=None)
        self.server.query(f"SET GLOBAL init_connect = 'SET NAMES {charset}'", database=None)
        yield {"user": "plain"}
        self.server.query("SET GLOBAL init_connect = ''", database=None)

    def case_character_sets(self):
        """Strings in which the second byte of a character is a backslash or a quote."""
        for charset, text in (("sjis", "表示ソ能"), ("big5", "功許蓋"), ("gbk", "誠縗"), ("utf8mb4", "💧é"), ("latin1", "é'\\ÿ")):
            encoded = text.encode({"utf8mb4": "utf8", "latin1": "cp1252"}.get(charset, charset))
            rows = b"".join(b"INSERT INTO t VALUES (%d,'%s');\n" % (i, encoded.replace(b"'", b"''") if charset != "latin1" else b"\xe9") for i in range(300))
            head = f"SET NAMES {charset};\nCREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET {charset}, KEY (v)) ENGINE=Teak;\n".encode()
            self.both(self.write("charset.sql", head + rows), "--check", charset=charset)
            check(self.value("SELECT COUNT(*) FROM t", "parallel") == 300, charset)
            for given in self.ways_to_give(charset):
                # Read otherwise, the first string goes on to the second, which is then no string.
                lines = f"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET {charset}, w VARCHAR(40)) ENGINE=Teak;\n".encode()
                lines += b"INSERT INTO t VALUES (1,'%s','; DROP TABLE victim; -- ');\n" % (encoded if charset != "latin1" else b"\xe9")
                if charset in ("sjis", "gbk"):
                    # Outside of strings, too: the second byte of a name is a backtick.
                    lines += b"CREATE TABLE \x83\x60 (id INT) ENGINE=Teak;\nINSERT INTO \x83\x60 VALUES (1);\n"
                path = self.write("unsaid.sql", lines)
                self.fresh("serial", "parallel")
                self.mariadb("serial", path, f"--default-character-set={charset}")
                for database in ("serial", "parallel"):
                    self.server.query("CREATE TABLE victim (a INT)", database)
                self.teak("parallel", "--on-error=skip", "--check", path, **given)
                self.compare("serial", "parallel")
                told = subprocess.run([self.arguments.teak, "load", "--dry-run", "--check", f"--default-character-set={charset}", path], capture_output=True, check=True).stdout
                check(b"t: 1 INSERT statements" in told and b" 1 rows" in told, told)
        self.server.query("SET GLOBAL init_connect = ''", database=None)
        modes = "SET sql_mode='NO_BACKSLASH_ESCAPES,ANSI_QUOTES';\nCREATE TABLE \"t\\\" (a INT, b TEXT) ENGINE=Teak;\nINSERT INTO \"t\\\" VALUES (1,'\\');\nINSERT INTO \"t\\\" VALUES (2,';''');\n"
        self.both(self.write("modes.sql", modes))

    def case_rows_without_parents(self):
        """Dumps switch foreign keys off; the check names a row whose parent is missing."""
        head = "SET FOREIGN_KEY_CHECKS=0;\nCREATE TABLE child (id INT PRIMARY KEY, p INT, CONSTRAINT of_p FOREIGN KEY (p) REFERENCES parent (id)) ENGINE=Teak;\n"
        children = "".join(f"INSERT INTO child VALUES ({i}, {i % 50});\n" for i in range(1000))
        for parents, expect in ((50, 0), (49, DAMAGE)):
            rest = "CREATE TABLE parent (id INT PRIMARY KEY) ENGINE=Teak;\n" + "".join(f"INSERT INTO parent VALUES ({i});\n" for i in range(parents))
            path = self.write("orphans.sql", head + children + rest)
            self.fresh("parallel", "serial")
            message = self.teak("parallel", path, "--check", expect=expect)
            text = "constraint 'of_p' is not met: there is no parent of (`p`) = ('49') in the row `id` = '49'"
            check((text in message) == (expect == DAMAGE), message)
            self.fresh("parallel", "serial")
            self.teak("parallel", path)

    def case_errors_name_their_place(self):
        """Which file, which line, what statement, what the server said; and a status that is not 0."""
        for engine in ENGINES:
            good = "".join(f"INSERT INTO t VALUES ({i});\n" for i in range(1000))
            text = f"CREATE TABLE t (id INT PRIMARY KEY) ENGINE={engine};\n{good}INSERT INTO t VALUES (500);\nINSERT INTO t VALUES (5000);\n"
            path = self.write("errors.sql", text)
            self.fresh("parallel", "serial")
            message = self.teak("parallel", path, expect=SERVER)
            check("errors.sql, line 1002: INSERT INTO t VALUES (500)" in message and "ERROR 1062" in message, message)
            check(self.value("SELECT COUNT(*) FROM t", "parallel") == 1000, "what came before the error must stay")
            message = self.teak("parallel", path, "--on-error=skip", expect=OTHER)
            check("1002 of the dump's statements failed" in message, message)
            self.fresh("parallel")
            message = self.teak("parallel", path, "--on-error=skip", expect=OTHER)
            check("1 of the dump's statements failed" in message, message)
            self.mariadb("serial", path, "--force", may_fail=True)
            self.server.query("DROP DATABASE teak_load", database=None)
            self.compare("serial", "parallel")
        for text, part, expect in (
                ("SET nonsense=1;", "line 1: SET nonsense=1", SERVER), ("SELEC 1;", "ERROR 1064", SERVER), ("INSERT INTO nowhere VALUES (1);", "ERROR 1146", SERVER),
                ("INSERT INTO parallel.x SELECT 1;", "ERROR 1146", SERVER), ("USE nowhere;", "ERROR 1049", SERVER),
                ("CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY);\nSET @x = LAST_INSERT_ID();", "--serial", USAGE),
                ("CREATE TABLE b (c", "ERROR 1064", SERVER), ("INSERT 'x", "ends within a string", DAMAGE), ("/* x", "ends within a comment", DAMAGE),
                ("-- MariaDB dump 10.19\nSELECT 1;\n", "not complete", DAMAGE), ("SELECT '" + "x" * (17 << 20) + "';", "max_allowed_packet", USAGE)):
            self.fresh("parallel")
            message = self.teak("parallel", self.write("hostile.sql", text), expect=expect)
            check(part in message, f"{text[:40]}: {message[:300]}")
        self.teak("parallel", os.path.join(self.files, "no such file"), expect=INPUT_OUTPUT)
        self.teak("parallel", self.files, expect=USAGE)
        self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)

    def case_noise(self):
        """Random bytes and torn dumps end with a message, not with a crash or a hang."""
        with open(self.dump(self.source("Teak")), "rb") as file:
            dump = file.read()
        for _ in range(12):
            self.fresh("parallel")
            cut = self.random.randrange(len(dump))
            torn = bytearray(dump[:cut])
            for _ in range(self.random.randrange(4)):
                torn[self.random.randrange(len(torn))] = self.random.randrange(256)
            done = subprocess.run(self.command("parallel", self.write("noise.sql", bytes(torn))), capture_output=True, timeout=120, check=False)
            check(done.returncode in (DAMAGE, SERVER), f"status {done.returncode}: {done.stderr[-500:]}")
        for _ in range(5):
            self.teak("parallel", self.write("noise.sql", self.random.randbytes(5000)), expect=(USAGE, DAMAGE, SERVER))
        self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)

    def case_keys_are_built_after_rows(self):
        """What the server was asked to do: keys are put off before the first row and built after the last, also when the dump says DISABLE KEYS itself."""
        for engine, build in (("InnoDB", "ADD KEY"), ("Teak", "ENABLE KEYS")):
            source = self.source(engine)
            for options in ([], ["--skip-disable-keys"]):
                path = self.dump(source, *options)
                self.fresh("parallel")
                self.server.query("SET GLOBAL log_output = 'TABLE', general_log = 1", database=None)
                self.server.query("TRUNCATE TABLE mysql.general_log", database=None)
                self.teak("parallel", path, "--defer-indexes=on")
                self.server.query("SET GLOBAL general_log = 0, log_output = DEFAULT", database=None)
                asked = [row[0] for row in self.server.query("SELECT CONVERT(argument USING latin1) FROM mysql.general_log WHERE command_type = 'Query' ORDER BY event_time", database=None)]
                rows = [at for at, text in enumerate(asked) if text.startswith("INSERT INTO `counted`")]
                built = [at for at, text in enumerate(asked) if build in text and "`counted`" in text and text.startswith(("ALTER", "/*!40000 ALTER"))]
                check(rows and built and min(built) > max(rows), f"{engine} {options}: rows {rows}, keys {built}")

    def case_connections_are_refused(self):
        """A server that gives few connections gets few; with too few for any worker, the load ends with what the server said."""
        with open(self.big("Teak"), encoding="ascii") as dump:
            # Views would belong to whoever loads.
            path = self.write("few.sql", "".join(line for line in dump if "CREATE VIEW" not in line))
        self.fresh("serial")
        self.mariadb("serial", path)
        self.server.query("DROP USER IF EXISTS ''@localhost", database=None)
        for limit, options in ((2, []), (4, ["--check"]), (4, ["--connections=6"]), (5, []), (6, ["--check", "--connections=5"]), (5, ["--no-record"])):
            self.server.query(f"CREATE OR REPLACE USER few@localhost IDENTIFIED BY 'few' WITH MAX_USER_CONNECTIONS {limit}", database=None)
            self.server.query("GRANT ALL ON *.* TO few@localhost", database=None)
            self.fresh("parallel")
            text = self.teak("parallel", path, *options, user="few", expect=SERVER if limit == 2 else 0, env={**os.environ, "MYSQL_PWD": "few"})
            check("max_user_connections" in text, f"{limit} {options}: {text}")
            if limit > 2:
                check("goes on with fewer connections" in text, f"{limit} {options}: {text}")
                self.compare("serial", "parallel")

    def case_settings_are_restored(self):
        """Relaxed durability ends with the load, however it ends."""
        names = ("innodb_flush_log_at_trx_commit", "sync_binlog", "teak_flush_log_at_trx_commit")
        settings = lambda: [self.value(f"SELECT @@GLOBAL.{name}") for name in names]  # noqa: E731
        self.server.query("SET GLOBAL sync_binlog = 5", database=None)
        before = settings()
        self.fresh("parallel")
        self.teak("parallel", self.write("bad.sql", "CREATE TABLE t (a INT) ENGINE=Teak;\nINSERT INTO t VALUES (1);\nnonsense;\n"), "--relaxed-durability", expect=SERVER)
        check(settings() == before, "after an error")
        self.fresh("parallel")
        loader = subprocess.Popen(self.command("parallel", self.big("Teak"), "--relaxed-durability"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while loader.poll() is None and self.loaded("parallel") == 0:
            time.sleep(0.005)
        loader.send_signal(signal.SIGTERM)
        ended = loader.wait(timeout=60)
        check(settings() == before, "after a signal")
        # It may have been done before the signal came.
        if ended != 0 and self.server.query("SHOW DATABASES LIKE 'teak_load'", database=None):
            self.teak("parallel", self.big("Teak"), "--resume", "--relaxed-durability", "--skip-log-bin")
        check(settings() == before, "after a load")
        check(self.loaded("parallel") == 120_000, "all rows")

    def case_output(self):
        """--json, --dry-run, --check."""
        path = self.dump(self.source("InnoDB"))
        self.fresh("parallel")
        events = [json.loads(line) for line in self.teak("parallel", path, "--json", "--check").splitlines()]
        summary = next(event for event in events if event["event"] == "summary")
        check(events[-1] == {"event": "end", "ok": True, "error": None} and summary["tables_compared"] > 0 and summary["tables_different"] == 0, events[-2:])
        check(summary["rows"] >= 8 * ROWS and summary["skipped"] == 0, summary)
        checked = {event["table"]: event for event in events if event["event"] == "check"}
        check(checked["parallel.child"]["server"] == str(ROWS) and all(event["equal"] for event in checked.values()), checked)
        text = subprocess.run([self.arguments.teak, "load", "--dry-run", "--check", path], capture_output=True, check=True).stdout.decode()
        check(f"counted: 1 INSERT statements" in text and f"{ROWS} rows" in text and "/s; nothing was loaded" in text, text)

        for text, expect, part in (("nonsense;", SERVER, "ERROR 1064"), ("SELECT 'x", DAMAGE, "ends within a string")):
            self.fresh("parallel")
            last = json.loads(self.teak("parallel", self.write("fails.sql", text), "--json", expect=expect).split("\nteak: ")[0].splitlines()[-1])
            check(last["event"] == "end" and not last["ok"] and part in last["error"], last)
        self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)
        # As editors of Windows and the client's own forms have it.
        self.both(self.write("marked.sql", b"\xef\xbb\xbfCREATE TABLE t (a INT);\nDELIMITER \"$\"\nINSERT INTO t VALUES (1)$\nDELIMITER ';'\nINSERT INTO t VALUES (2);\n"))

    def case_check_compares_values(self):
        """A value of any type that is not the dump's is found, whichever engine and way of loading; so are rows too many or too few."""
        columns = ", ".join(f"c{i} {kind}" for i, (kind, _, _) in enumerate(dumps.TYPES))
        for engine in ENGINES:
            self.fresh("typed")
            self.server.query(f"CREATE TABLE typed (id INT PRIMARY KEY, {columns}, s INT AS (id * 2) STORED, v INT AS (id) VIRTUAL) ENGINE={engine}", "typed")
            names = ", ".join(f"c{i}" for i in range(len(dumps.TYPES)))
            for row, values in enumerate((", ".join(first for _, first, _ in dumps.TYPES), ", ".join(other for _, _, other in dumps.TYPES), ", ".join(["NULL"] * len(dumps.TYPES)))):
                self.server.query(f"SET STATEMENT sql_mode='' FOR INSERT INTO typed (id, {names}) VALUES ({row}, {values})", "typed")
            path = self.dump("typed", "--hex-blob", "--no-create-info", "--complete-insert")
            definition = self.server.query("SHOW CREATE TABLE typed", "typed")[0][1]

            def load(*options, expect=0, trigger=None, before=""):
                self.fresh("parallel")
                self.server.query(definition, "parallel")
                if before:
                    self.server.query(f"SET STATEMENT sql_mode='' FOR INSERT INTO typed (id, {names}) {before}", "parallel")
                if trigger:
                    self.server.query(f"CREATE TRIGGER damage {trigger}", "parallel")
                text = self.teak("parallel", path, "--check", "--json", *options, expect=expect)
                self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)
                events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
                return next(event for event in events if event["event"] == "check" and event["table"] == "parallel.typed")

            for options in ([], ["--serial"], ["--connections=1", "--defer-indexes=on"]):
                check(load(*options)["equal"], f"{engine} {options}: equal rows are told to differ")
                check(load(*options, before="VALUES (70" + ", NULL" * len(dumps.TYPES) + ")")["equal"], "a row that was there before")
            self.server.query("SET GLOBAL sql_mode = ''", database=None)
            chosen = range(len(dumps.TYPES)) if engine == "Teak" else self.random.sample(range(len(dumps.TYPES)), 5)
            for i in chosen:
                kind, first, other = dumps.TYPES[i]
                for value in {other, self.random.choice([other, "NULL"])}:
                    found = load(*self.random.choice(([], ["--serial"])), expect=DAMAGE, trigger=f"BEFORE INSERT ON typed FOR EACH ROW IF NEW.id = 0 THEN SET NEW.c{i} = {value}; END IF")
                    check(not found["equal"] and "other values" in found["why"], f"{engine}: {kind} {value} instead of {first}: {found}")
            self.server.query("SET GLOBAL sql_mode = DEFAULT", database=None)
            other = load(expect=DAMAGE, trigger="BEFORE INSERT ON typed FOR EACH ROW SET NEW.id = NEW.id + 10")
            check(not other["equal"], "another key")

    def case_check_says_what_it_cannot_tell(self):
        """What is not decided by the dump's rows alone is neither called equal nor different."""
        for text, compared in (
                ("INSERT INTO t VALUES (1, 1), (2, 2);", True),
                ("REPLACE INTO t VALUES (1, 1), (2, 2);", True),
                ("REPLACE INTO t VALUES (1, 1);\nREPLACE INTO t VALUES (1, 2);", False),
                ("INSERT IGNORE INTO t VALUES (1, 1), (1, 2);", False),
                ("INSERT INTO t VALUES (1, 1);\nUPDATE t SET v = 2;", False),
                ("INSERT INTO t VALUES (1, 1);\nUPDATE t SET v = v;", True),
                ("INSERT INTO t (id) VALUES (1);\nINSERT INTO t VALUES (1, 7) ON DUPLICATE KEY UPDATE v = 7;", False),
                ("INSERT INTO t VALUES (1, 1);\nALTER TABLE t MODIFY v BIGINT;", False),
                ("INSERT INTO t VALUES (1, 1);\nALTER TABLE t ADD KEY (v);", True),
                ("INSERT INTO t VALUES (1, 1);\nTRUNCATE TABLE t;\nINSERT INTO t VALUES (1, 3);", True),
                ("INSERT INTO t VALUES (1, 1);\nDROP TABLE t;\nCREATE TABLE t (x INT);\nINSERT INTO t VALUES (1);", True)):
            for options in ([], ["--serial"]):
                self.fresh("parallel")
                path = self.write("doubt.sql", "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=Teak;\n" + text + "\n")
                lines = self.teak("parallel", path, "--check", "--json", *options).splitlines()
                event = next(json.loads(line) for line in lines if '"event":"check"' in line)
                check(event["compared"] == compared and event["equal"] == compared, f"{text} {options}: {event}")

    def case_longer_than_the_packet(self):
        """INSERTs that the server would not take are cut between rows; a row that it would not take is an error that says so."""
        packet = 100 * 1024
        for engine in ("Teak", "InnoDB", "MyISAM"):
            source = self.source(engine if engine != "MyISAM" else "Teak")
            head = f"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(3000), n INT) ENGINE={engine};\n"
            rows = ",\n".join(f"({i + 1}, '{'),(' * self.random.randrange(600)}', {i % 9})" for i in range(1000))
            several = f"{head}INSERT INTO t VALUES {rows};\nINSERT INTO t VALUES {rows} ON DUPLICATE KEY UPDATE n = n + VALUES(n);\nREPLACE INTO t VALUES {rows};\n"
            paths = [self.dump(source, "--hex-blob", "--routines"), self.write("long.sql", several)]
            for path in paths:
                for options in ([], ["--check"], ["--serial"], ["--no-record"]):
                    self.fresh("serial", "parallel")
                    self.mariadb("serial", path)
                    self.server.query(f"SET GLOBAL max_allowed_packet = {packet}", database=None)
                    try:
                        self.teak("parallel", path, *options)
                    finally:
                        self.server.query("SET GLOBAL max_allowed_packet = 16777216", database=None)
                    self.compare("serial", "parallel")
            self.server.query(f"SET GLOBAL max_allowed_packet = {packet}", database=None)
            try:
                self.long_statements_that_fail(engine, head, rows, packet)
            finally:
                self.server.query("SET GLOBAL max_allowed_packet = 16777216", database=None)
                self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)

    def long_statements_that_fail(self, engine, head, rows, packet):
        """All rows of a cut statement are there, or none; what can be neither sent nor cut is named."""
        if engine != "MyISAM":
            for skip in ([], ["--on-error=skip"]):
                self.fresh("parallel")
                path = self.write("long.sql", f"{head}INSERT INTO t (id) VALUES (5000);\nINSERT INTO t VALUES {rows},\n(1, 'twice', 0);\nINSERT INTO t (id) VALUES (5001);\n")
                message = self.teak("parallel", path, *skip, expect=OTHER if skip else SERVER)
                check("ERROR 1062" in message and "long.sql, line " in message, message)
                check(self.value("SELECT COUNT(*) FROM t WHERE id <= 1000", "parallel") == 0, f"{engine}: rows of a statement that failed, {skip}")
                check(not skip or self.value("SELECT COUNT(*) FROM t", "parallel") == 2, "the statements before and after it")
        # The longest statement that fits, and one byte more.
        head = "CREATE TABLE t (v LONGTEXT) ENGINE=Teak;\n"
        for more, expect in ((0, 0), (1, USAGE)):
            self.fresh("parallel")
            row = "INSERT INTO t VALUES('')"
            text = row[:-2] + "x" * (packet - 2 - len(row) + more) + row[-2:]
            message = self.teak("parallel", self.write("long.sql", f"{head}{text};\n"), expect=expect)
            check(not expect or all(part in message for part in ("long.sql, line 2: ", "max_allowed_packet", f"{packet}", f"{packet - 1} bytes")), message)
        for text in ("SELECT '" + "x" * packet + "'", "INSERT INTO t SELECT '" + "x" * packet + "'", "INSERT INTO t VALUES ('a'),\n('" + "x" * packet + "')"):
            self.fresh("parallel")
            message = self.teak("parallel", self.write("long.sql", f"{head}{text};\n"), expect=USAGE)
            check("max_allowed_packet" in message and f"line {3 if 'VALUES' in text else 2}: " in message, message[:300])


def main():
    """Runs the cases."""
    arguments = parser(__doc__, names="of cases; default: all").parse_args()
    arguments.seed, arguments.port = seed(), free_port()
    tests = Tests(arguments)
    OPTIONS.extend(tests.certificates())

    def recover():
        if not tests.server.is_running():
            tests.server.start(OPTIONS)
        tests.server.query("DROP DATABASE IF EXISTS teak_load", database=None)

    tests.server.install()
    tests.server.start(OPTIONS)
    try:
        return carry_out(cases_of(tests), arguments.names, recover=recover)
    finally:
        tests.server.kill()


if __name__ == "__main__":
    sys.exit(main())
