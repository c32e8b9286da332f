"""Loads that do not come to their end, and what is told meanwhile."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time

from kit.cases import Failure, check

from case import ENGINES, NOTHING_TO_RESUME, OPTIONS, SERVER, USAGE
from held import HeldUp


class Interrupted:
    """Cases of loads that are killed, fail, and go on."""

    def big(self, engine):
        """A dump that takes a while."""
        path = os.path.join(self.files, f"big_{engine}.sql")
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as out:
                for table in ("one", "two"):
                    out.write(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(100), KEY (a), KEY (b)) ENGINE={engine};\n")
                    for i in range(0, 60_000, 40):
                        rows = ",".join(f"({j + 1},{j * 7919 % 100_003},'{'x' * (j % 80)}')" for j in range(i, i + 40))
                        out.write(f"INSERT INTO {table} VALUES {rows};\n")
                    out.write(f"CREATE VIEW v_{table} AS SELECT * FROM {table};\n")
        return path

    def loaded(self, database):
        """Rows that are there so far."""
        try:
            return sum(self.value(f"SELECT COUNT(*) FROM {table}", database) for table in ("one", "two"))
        except Exception:  # pylint: disable=broad-exception-caught
            return 0

    def case_killed_and_resumed(self):
        """kill -9 of the loader and of the server, then --resume: no row is missing or there twice."""
        for engine in ENGINES:
            path = self.big(engine)
            self.fresh("serial", "parallel")
            self.mariadb("serial", path)
            for round_ in range(4):
                self.fresh("parallel")
                arguments = ["--defer-indexes=on", "--connections=3"]
                loader = subprocess.Popen(self.command("parallel", path, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                # Some time within the load; how far it is does not matter for the result.
                limit = self.random.randrange(100_000)
                while loader.poll() is None and self.loaded("parallel") <= limit:
                    time.sleep(0.005)
                if round_ % 2 == 0:
                    loader.send_signal(signal.SIGKILL)
                    loader.wait()
                else:
                    self.server.kill()
                    check(loader.wait(timeout=60) in (0, SERVER), "the loader must notice that the server is gone")
                    self.server.start(OPTIONS)
                # It may have been done before it was killed.
                done = not self.server.query("SHOW DATABASES LIKE 'teak_load'", database=None)
                resumed = "" if done else self.teak("parallel", path, "--resume", "--check", *arguments)
                try:
                    self.compare("serial", "parallel")
                except Failure as failure:
                    raise Failure(f"{engine}, round {round_}, killed at over {limit} rows: {failure}\n{resumed}") from failure

    def case_last_statement_of_a_killed_load(self):
        """What the server still carries out when the loader is gone is waited for, before it is asked what is done: by --resume, and by a load that
        begins again, whose records what comes late would belong to."""
        waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'"
        for engine in ENGINES:
            path = self.write("outlived.sql", "".join(
                f"DROP TABLE IF EXISTS {name};\nCREATE TABLE {name} (id INT{key}) ENGINE={engine};\n"
                + "".join(f"INSERT INTO {name} VALUES {','.join(f'({i + j})' for j in range(100))};\n" for i in range(0, 20_000, 100))
                for name, key in (("keyed", " PRIMARY KEY"), ("keyless", ""))))
            self.fresh("serial")
            self.mariadb("serial", path)
            for options in (["--resume"], []):
                self.fresh("parallel")
                road = HeldUp(os.path.join(self.files, "road"), self.server.socket, lambda statement: statement == b"COMMIT")
                command = self.command("parallel", path, "--connections=2")
                command[command.index(f"--socket={self.server.socket}")] = f"--socket={self.files}/road"
                with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as loader:
                    check(road.arrived.wait(timeout=60), "there is no COMMIT")
                    loader.kill()
                with subprocess.Popen(self.command("parallel", path, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as again:
                    # One that does not wait comes to the same rows, and then to an end or to a lock.
                    limit = time.monotonic() + 60
                    while not (waited := self.value(waits)) and again.poll() is None and time.monotonic() < limit:
                        time.sleep(0.02)
                    road.let_go()
                    told = again.communicate(timeout=60)[0].decode(errors="replace")
                check(again.returncode == 0, f"{engine} {options}: status {again.returncode}: {told}")
                self.compare("serial", "parallel")
                check(waited, f"{engine} {options}: it did not wait")
                check(not self.server.query("SHOW DATABASES LIKE 'teak_load'", database=None), "records are left")

    def case_records_of_a_failed_load(self):
        """A load that failed says how to go on; another one tells of its records; the same one twice at a time is refused."""
        path = os.path.join(self.files, "fails.sql")
        with open(path, "wb") as dump:
            dump.write(b"CREATE TABLE f (id INT PRIMARY KEY);\nINSERT INTO f VALUES (1);\nINSERT INTO f VALUES\n(1), \x1b[2J\xff;\n")
        other = os.path.join(self.files, "other.sql")
        with open(other, "wb") as dump:
            dump.write(b"CREATE TABLE o (id INT PRIMARY KEY);\nINSERT INTO o VALUES (1), (2);\n")
        self.fresh("parallel")
        self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)
        failed = self.teak("parallel", path, expect=SERVER)
        check("--resume goes on from here" in failed and "teak_load" in failed, failed)
        check("\x1b" not in failed and "INSERT INTO f VALUES (1), \\u{1b}[2J\\xff" in failed, failed)
        self.fresh("other")
        told = self.teak("other", other, "--check")
        check("the records of another load that did not end" in told, told)
        check("1 table compared: all equal" in told, told)
        holder = self.server.connect(autocommit=True)
        with holder.cursor() as cursor:
            cursor.execute("SELECT DISTINCT load_id FROM teak_load.steps")
            cursor.execute(f"SELECT GET_LOCK('teak_load_{cursor.fetchone()[0]}', 0)")
        check("another teak load" in self.teak("parallel", path, "--resume", expect=USAGE), "twice at a time")
        holder.close()
        with open(path, "rb+") as dump:
            stamp = os.stat(path)
            dump.seek(dump.read().index(b"(1), \x1b"))
            dump.write(b"(2)     /**/")
            dump.flush()
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        self.teak("parallel", path, "--resume", "--check")
        check(self.server.query("SELECT COUNT(*) FROM parallel.f", database=None)[0][0] == 2, "rows after the resume")
        check(not self.server.query("SHOW DATABASES LIKE 'teak_load'", database=None), "records are left")

    def case_resume_without_records(self):
        """What ended well, or was never begun, is not loaded by --resume."""
        self.fresh("parallel")
        path = self.write("again.sql", "CREATE TABLE IF NOT EXISTS no_key (a INT);\nINSERT INTO no_key VALUES (1);\n")
        check("nothing to resume" in self.teak("parallel", path, "--resume", expect=NOTHING_TO_RESUME), "never begun")
        self.teak("parallel", path)
        for _ in range(2):
            check("nothing to resume" in self.teak("parallel", path, "--resume", expect=NOTHING_TO_RESUME), "it ended well")
            os.utime(path)
        check(self.value("SELECT COUNT(*) FROM no_key", "parallel") == 1, "rows are there twice")
        check(not self.server.query("SHOW DATABASES LIKE 'teak_load'", database=None), "records are left")

    def case_keys_of_a_load_that_failed(self):
        """They are named with what builds them, by the load and by the next one, and are not taken off without a record."""
        definition = "CREATE TABLE k (id INT PRIMARY KEY, a INT, KEY ka (a)) ENGINE=%s;\nINSERT INTO k VALUES (1, 1);\nnonsense;\n"
        has_key = lambda: "KEY `ka` (`a`)" in self.server.query("SHOW CREATE TABLE k", "parallel")[0][1]  # noqa: E731
        self.server.query("CREATE OR REPLACE USER plain@localhost", database=None)
        self.server.query("GRANT ALL ON parallel.* TO plain@localhost", database=None)
        other = self.write("next.sql", "DO 1;\n")
        for engine, build in (("InnoDB", "ALTER TABLE `parallel`.`k` ADD KEY `ka` (`a`)"), ("Teak", "ALTER TABLE `parallel`.`k` ENABLE KEYS")):
            path = self.write("keys.sql", definition % engine)
            self.fresh("parallel")
            told = self.teak("parallel", path, "--defer-indexes=on", expect=SERVER)
            check(build in told and has_key() == (engine == "Teak"), told)
            told = self.teak("parallel", other)
            check("keys of these tables are missing" in told and "parallel.k" in told, told)
            for clauses in (f"{build.split('` ', 1)[1]}, DROP PRIMARY KEY", "ENGINE=MyISAM"):
                self.server.query(f"UPDATE teak_load.deferred SET clauses = '{clauses}'", database=None)
                told = self.teak("parallel", path, "--defer-indexes=on", "--resume", expect=USAGE)
                check("teak_load`.deferred" in told and "PRIMARY KEY" in self.server.query("SHOW CREATE TABLE k", "parallel")[0][1], told)
            self.server.query(build, "parallel")
            check(has_key(), "what was told does not build the key")
            self.server.query("DROP DATABASE teak_load", database=None)
            self.fresh("parallel")
            told = self.teak("parallel", path, "--defer-indexes=on", user="plain", expect=SERVER)
            check("progress is not recorded" in told and has_key(), told)
        check("--no-record" in self.teak("parallel", path, "--defer-indexes=on", "--no-record", expect=USAGE), "keys without a record")

    def case_records_of_others(self):
        """A view, or a table that leads elsewhere, in place of the records is not read."""
        self.fresh("parallel")
        self.server.query("CREATE TABLE m (a INT) ENGINE=MyISAM", "parallel")
        path = self.write("others.sql", "DO 1;\n")
        for create in ("CREATE VIEW teak_load.steps AS SELECT 1 AS load_id", "CREATE TABLE teak_load.steps (a INT) ENGINE=MERGE UNION=(parallel.m)"):
            self.server.query("CREATE DATABASE teak_load", database=None)
            self.server.query(create, database=None)
            check("no table that teak load has made" in self.teak("parallel", path, expect=USAGE), create)
            self.server.query("DROP DATABASE teak_load", database=None)

    def case_progress_on_a_terminal(self):
        """Lines of progress do not wrap, and are gone when a message comes."""
        self.fresh("parallel")
        path = self.write("ends_badly.sql", open(self.big("Teak"), "rb").read() + b"\nINSERT INTO nowhere VALUES (1);\n")
        primary, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        with subprocess.Popen(self.command("parallel", path), stdout=subprocess.DEVNULL, stderr=terminal) as loader:
            os.close(terminal)
            shown = b""
            try:
                while part := os.read(primary, 65536):
                    shown += part
            except OSError:
                # The other side is closed.
                pass
        os.close(primary)
        check(loader.returncode == SERVER, f"teak load ended with {loader.returncode}")
        *lines, message = shown.decode(errors="replace").split("\r\x1b[K")
        # None is shown of a load that takes less than half a second.
        check(all(len(line) < 50 and "\n" not in line for line in lines), lines)
        check(message.startswith("teak: ") and "nowhere" in message, shown)
