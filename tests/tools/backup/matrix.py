#!/usr/bin/python3
"""Set-ups of a server, each backed up, restored and compared with what was there, or refused at the backup with the reason.

Without names a few of the set-ups, which together have most properties; all with --all. Prints 'N passed, N failed'.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading

from kit.server import Server, own_plugins

from backup import refused, run
from bank import rows
from runner import main

ENGINES = ("Teak", "InnoDB", "Aria", "MyISAM")
# Names that files of mariadb-backup, of the server or of a file system have, or that somebody may quote wrongly.
HOSTILE = ("xtrabackup_logs", "mariadb_backup_history", "mariadb_backup", "back`tick", "größe", "lost+found", "#teak", "#restore", "server", "a b.c;d'e\"f",
           "-dash", "日本語", "x@y", "teak", "ibdata9", "undo999", "p.ibd", "backup.json")
NAMES = {"plain": ("plain",), "hostile": ("plain", *HOSTILE)}
SYSTEM = ("mysql", "sys", "information_schema", "performance_schema", "test")
PLUGINS = "/usr/lib/mysql/plugin"
KEY = "a7addd9adea9978fda19f21e6be987880e68ac92632ca052e5bb42b1a506939a"


class SetUp:
    """What a server is, and what is done to it. `install`: options that its data directory is made with, too; `elsewhere`: those of directories, which
    a restored server has not; %d in them is a directory. `tables`: statements; `step`: what is done to the backup beyond a plain one."""

    def __init__(self, name, install=(), options=(), elsewhere=(), tables=(), step="full", names="plain", keys="", flags=()):
        self.name, self.install, self.options, self.elsewhere, self.tables = name, list(install), list(options), list(elsewhere), list(tables)
        self.step, self.names, self.keys, self.flags = step, names, keys, list(flags)


BINLOG = ["--log-bin=binlog", "--server-id=1"]
TWO_FILES = "--innodb-data-file-path=ibdata1:12M;ibdata2:24M:autoextend"
SMALL = "CREATE TABLE plain.packed (a INT PRIMARY KEY, b TEXT) ENGINE=InnoDB"
FILLED = "INSERT INTO plain.packed SELECT seq, REPEAT(MD5(seq), 20) FROM seq_1_to_2000"
MEMORY = "CREATE TABLE plain.quick (a INT PRIMARY KEY) ENGINE=Teak IN_MEMORY=YES"

ALL = [
    *(SetUp(f"pages_{size}k", install=[f"--innodb-page-size={size}k"], step=step, names=names)
      for size, step, names in ((4, "incremental", "plain"), (8, "full", "hostile"), (16, "stream", "hostile"), (32, "compressed", "plain"), (64, "load", "plain"))),
    SetUp("pages_8k_incremental", install=["--innodb-page-size=8k"], step="incremental", names="hostile"),
    SetUp("pages_64k_incremental", install=["--innodb-page-size=64k"], step="incremental"),
    SetUp("two_files", install=[TWO_FILES], step="full"),
    # With a log of 16M, the default of tests, mariadb-backup stopped under this load, where it began anew: 3 of 3.
    SetUp("two_files_load", install=[TWO_FILES], options=["--innodb-file-per-table=0", "--innodb-log-file-size=96M"], step="load"),
    SetUp("two_files_incremental", install=[TWO_FILES], options=["--innodb-file-per-table=0"], step="incremental", names="hostile"),
    SetUp("two_files_fixed", install=["--innodb-data-file-path=ibdata1:20M;ibdata2:20M;ibdata3:12M:autoextend"], step="stream"),
    SetUp("file_added", step="file_added"),
    SetUp("one_tablespace", options=["--innodb-file-per-table=0"], step="incremental"),
    SetUp("undo_three", install=["--innodb-undo-tablespaces=3"], step="load"),
    SetUp("undo_incremental", install=["--innodb-undo-tablespaces=3"], step="incremental", names="hostile"),
    SetUp("undo_elsewhere", install=["--innodb-undo-tablespaces=3"], elsewhere=["--innodb-undo-directory=%d/undo"], step="incremental"),
    SetUp("encrypted_table", keys="plain", tables=["CREATE TABLE plain.secret (a INT PRIMARY KEY, b TEXT) ENGINE=InnoDB ENCRYPTED=YES",
                                                  "INSERT INTO plain.secret SELECT seq, MD5(seq) FROM seq_1_to_3000"]),
    SetUp("encrypted_all", keys="plain", options=["--innodb-encrypt-tables=ON", "--innodb-encrypt-log=ON", "--innodb-encryption-threads=2"], step="incremental"),
    SetUp("encrypted_forced", keys="plain", options=["--innodb-encrypt-tables=FORCE", "--innodb-encrypt-log=ON", "--aria-encrypt-tables=ON",
                                                     "--encrypt-binlog=ON", *BINLOG], step="load", names="hostile"),
    SetUp("encrypted_stream", keys="plain", options=["--innodb-encrypt-tables=ON", "--innodb-encryption-threads=2"], step="stream"),
    SetUp("encrypted_ctr", keys="plain", options=["--file-key-management-encryption-algorithm=AES_CTR", "--innodb-encrypt-log=ON",
                                                  "--innodb-encrypt-tables=ON"], step="compressed"),
    SetUp("encrypted_key_file", keys="sealed", options=["--innodb-encrypt-tables=ON", "--innodb-encrypt-log=ON"], step="incremental"),
    SetUp("keys_moved", keys="plain", options=["--innodb-encrypt-tables=ON", "--innodb-encrypt-log=ON"], step="keys_moved"),
    SetUp("encrypted_8k_two_files", install=["--innodb-page-size=8k", TWO_FILES], keys="plain", step="incremental",
          options=["--innodb-encrypt-tables=ON", "--innodb-encryption-threads=2"]),
    SetUp("lower_case", install=["--lower-case-table-names=1"], step="incremental", names="hostile"),
    SetUp("strict_checksums", install=["--innodb-checksum-algorithm=strict_full_crc32"], step="compressed", names="hostile"),
    SetUp("old_checksums", install=["--innodb-checksum-algorithm=crc32"], step="incremental"),
    SetUp("row_formats", tables=[f"{SMALL} ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4", FILLED,
                                 "CREATE TABLE plain.holes (a INT PRIMARY KEY, b TEXT) ENGINE=InnoDB PAGE_COMPRESSED=1",
                                 "INSERT INTO plain.holes SELECT seq, REPEAT('x', 900) FROM seq_1_to_2000"], step="incremental"),
    SetUp("home_elsewhere", elsewhere=["--innodb-data-home-dir=%d/home"], step="incremental"),
    SetUp("redo_elsewhere", elsewhere=["--innodb-log-group-home-dir=%d/redo"], step="incremental"),
    SetUp("aria_elsewhere", elsewhere=["--aria-log-dir-path=%d/aria"], step="full", names="hostile"),
    SetUp("teak_elsewhere", elsewhere=["--teak-data-home-dir=%d/teak"], step="incremental", names="hostile"),
    SetUp("teak_elsewhere_stream", elsewhere=["--teak-data-home-dir=%d/teak", "--teak-tmpdir=%d/temporary"], step="stream"),
    SetUp("binlog_elsewhere", options=["--server-id=1"], elsewhere=["--log-bin=%d/log/binlog"], step="load"),
    SetUp("everything_elsewhere", install=[TWO_FILES, "--innodb-undo-tablespaces=2"], step="incremental", options=["--server-id=1"],
          elsewhere=["--innodb-data-home-dir=%d/home", "--innodb-log-group-home-dir=%d/redo", "--innodb-undo-directory=%d/undo",
                     "--aria-log-dir-path=%d/aria", "--teak-data-home-dir=%d/teak", "--log-bin=%d/log/binlog"]),
    SetUp("in_memory", tables=[MEMORY, "INSERT INTO plain.quick SELECT seq FROM seq_1_to_100"], step="incremental"),
    SetUp("teak_small", options=["--teak-cache-size=8M", "--teak-checkpoint-log-size=1M", "--teak-log-segment-size=1M"], step="load"),
    SetUp("data_directory", tables=[statement for engine in ("InnoDB", "MyISAM") for statement in
                                    (f"CREATE TABLE plain.far_{engine} (a INT PRIMARY KEY) ENGINE={engine} DATA DIRECTORY='%d/tmp'",
                                     f"INSERT INTO plain.far_{engine} SELECT seq FROM seq_1_to_500")], step="incremental"),
    SetUp("partitions", tables=[f"CREATE TABLE plain.parts_{engine} (a INT PRIMARY KEY, b INT) ENGINE={engine} PARTITION BY HASH (a) PARTITIONS 4"
                                for engine in ("Teak", "InnoDB")]
          + [f"INSERT INTO plain.parts_{engine} SELECT seq, seq FROM seq_1_to_500" for engine in ("Teak", "InnoDB")], step="incremental"),
    SetUp("other_objects", tables=["CREATE VIEW plain.seen AS SELECT * FROM plain.t_Teak", "CREATE SEQUENCE plain.numbers ENGINE=InnoDB",
                                   "CREATE TABLE plain.aged (a INT PRIMARY KEY) WITH SYSTEM VERSIONING ENGINE=InnoDB",
                                   "INSERT INTO plain.aged VALUES (1), (2)", "UPDATE plain.aged SET a = 3 WHERE a = 1",
                                   "CREATE TRIGGER plain.tr BEFORE INSERT ON plain.t_InnoDB FOR EACH ROW SET NEW.b = NEW.b",
                                   "CREATE PROCEDURE plain.p() SELECT 1", "CREATE DATABASE nothing"], step="incremental"),
    SetUp("dropped", step="dropped", names="hostile"),
    SetUp("lost_time_line", step="lost_time_line", options=BINLOG),
    SetUp("lost_time_line_8k", install=["--innodb-page-size=8k"], step="lost_time_line"),
    SetUp("rolled_back", step="rolled_back"),
    *(SetUp(f"signal_{name.lower()}", step=f"signal {name}", options=BINLOG, names="hostile") for name in ("SIGINT", "SIGTERM", "SIGKILL")),
    SetUp("database_of_own_name", step="own_name"),
    SetUp("aria_data_directory", tables=["CREATE TABLE plain.far (a INT PRIMARY KEY) ENGINE=Aria DATA DIRECTORY='%d/tmp'"], step="far_aria"),
]
FEW = ("pages_8k", "two_files_load", "encrypted_ctr", "everything_elsewhere", "lost_time_line", "database_of_own_name")


class Test:
    """A server of a set-up, and one for what is restored."""

    def __init__(self, arguments, set_up=None):
        self.arguments, self.set_up = arguments, set_up
        self.directory, self.teak = os.path.abspath(arguments.directory), os.path.abspath(arguments.teak)
        self.random = random.Random(arguments.seed)
        os.makedirs(self.directory, exist_ok=True)
        plugins = own_plugins(self.directory, arguments.plugin_dir)
        shutil.copy(os.path.join(PLUGINS, "file_key_management.so"), plugins)
        self.server = Server(os.path.join(self.directory, "server"), plugins)
        self.restored = Server(os.path.join(self.directory, "restored"), plugins)
        self.servers = {"the server": self.server, "restored": self.restored}
        self.backups = 0

    def options(self, elsewhere=True):
        """Of a server of the set-up."""
        there = [option.replace("%d", self.server.directory) for option in self.set_up.elsewhere] if elsewhere else []
        return [*self.keys(), *self.set_up.install, *self.set_up.options, *there]

    def keys(self):
        """Options of the keys, whose file is made."""
        if not self.set_up.keys:
            return []
        path, secret = os.path.join(self.directory, "keys"), os.path.join(self.directory, "secret")
        options = ["--plugin-load-add=file_key_management", f"--file-key-management-filename={path}"]
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as file:
                file.write(f"1;{KEY}\n")
            if self.set_up.keys == "sealed":
                with open(secret, "w", encoding="ascii") as file:
                    file.write("a long secret\n")
                os.rename(path, path + ".open")
                run(["openssl", "enc", "-aes-256-cbc", "-md", "sha1", "-pass", f"file:{secret}", "-in", path + ".open", "-out", path])
        return options + ([f"--file-key-management-filekey=FILE:{secret}"] if self.set_up.keys == "sealed" else [])

    def start(self):
        """The server with its tables."""
        template = "-".join(self.set_up.install).translate(str.maketrans("/;:=", "____")) or "plain"
        template = os.path.join(os.path.dirname(self.directory), "templates", template)
        if not os.path.exists(template):
            self.server.install(self.set_up.install)
            os.makedirs(os.path.dirname(template), exist_ok=True)
            os.rename(self.server.data, template)
        shutil.rmtree(self.server.directory, ignore_errors=True)
        os.makedirs(os.path.join(self.server.directory, "tmp"))
        shutil.copytree(template, self.server.data)
        self.move_files()
        self.server.start(self.options())
        for name in NAMES[self.set_up.names]:
            self.make(name)
        for statement in self.set_up.tables:
            self.server.query(statement.replace("%d", self.server.directory))

    def move_files(self):
        """What the installation made of directories that are elsewhere is moved there."""
        for option in self.set_up.elsewhere:
            name, _, place = option.replace("%d", self.server.directory).partition("=")
            os.makedirs(os.path.dirname(place) if name == "--log-bin" else place, exist_ok=True)
            beginning = {"--innodb-data-home-dir": "ibdata", "--innodb-log-group-home-dir": "ib_logfile", "--innodb-undo-directory": "undo",
                         "--aria-log-dir-path": "aria_log"}.get(name)
            for file in sorted(os.listdir(self.server.data)):
                if beginning and file.startswith(beginning):
                    shutil.move(os.path.join(self.server.data, file), place)

    def make(self, name):
        """A database with a table of each engine."""
        quoted = quote(name)
        self.server.query(f"CREATE DATABASE {quoted}")
        for engine in ENGINES:
            self.server.query(f"CREATE TABLE {quoted}.t_{engine} (a INT PRIMARY KEY, b VARCHAR(400), KEY (b)) ENGINE={engine}")
            self.server.query(f"INSERT INTO {quoted}.t_{engine} SELECT seq, CONCAT(seq, REPEAT('x', 300)) FROM seq_1_to_300")

    def change(self, number):
        """Something in each database."""
        for name in NAMES[self.set_up.names]:
            for engine in ENGINES:
                self.server.query(f"UPDATE {quote(name)}.t_{engine} SET b = CONCAT('{number} ', b) WHERE a % 7 = {number}")
                self.server.query(f"INSERT INTO {quote(name)}.t_{engine} VALUES ({1000 + number}, 'new')")
        self.make(f"later_{number}")

    def new_dir(self):
        self.backups += 1
        return os.path.join(self.directory, f"backup-{self.backups}")

    def command(self, directory, *options, server=None):
        socket = (server or self.server).socket
        return [self.teak, "backup", "--no-defaults", "--quiet", f"--socket={socket}", "--user=root", *options, directory]

    def backup(self, *options, server=None):
        """A backup that has to be whole, as `verify` says, too."""
        directory = self.new_dir()
        run(self.command(directory, *options, server=server))
        run([self.teak, "backup", "verify", directory])
        return directory

    def restore(self, directory, *options, start=True):
        """A started server of what a backup has."""
        self.restored.kill()
        shutil.rmtree(self.restored.directory, ignore_errors=True)
        os.makedirs(os.path.join(self.restored.directory, "tmp"))
        told = run([self.teak, "restore", directory, f"--datadir={self.restored.data}", *options])
        if start:
            self.restored.start(self.options(elsewhere=False))
        return told

    def compare(self, directory, expected, *options):
        """What is restored is what was there, and whole."""
        self.restore(directory, *options)
        found = content(self.restored, whole=True)
        for thing in sorted({*expected, *found}):
            if expected.get(thing) != found.get(thing):
                raise AssertionError(f"{thing} was {expected.get(thing)}, and is {found.get(thing)} in what {directory} was restored to")
        self.restored.stop()
        run([self.teak, "check", self.restored.data])


def quote(name):
    return "`" + name.replace("`", "``") + "`"


def content(server, whole=False):
    """Databases, definitions and checksums of a server, by what they are of."""
    connection = server.connect(autocommit=True)
    found = {"users": rows(connection, "SELECT COUNT(*) FROM mysql.global_priv")}
    for (database,) in rows(connection, "SHOW DATABASES"):
        if database in SYSTEM:
            continue
        found[database] = rows(connection, f"SHOW CREATE DATABASE {quote(database)}")
        for table, kind in rows(connection, f"SHOW FULL TABLES FROM {quote(database)}"):
            name = f"{quote(database)}.{quote(table)}"
            # What was elsewhere is in the data directory when it is restored.
            definition = re.sub(r" (DATA|INDEX) DIRECTORY='[^']*'", "", rows(connection, f"SHOW CREATE TABLE {name}")[0][1])
            # A table in memory begins empty.
            is_kept = "IN_MEMORY" not in definition.upper()
            found[name] = (kind, definition, rows(connection, f"CHECKSUM TABLE {name} EXTENDED")[0][1] if is_kept and kind != "VIEW" else None)
            if whole and kind != "VIEW":
                verdict = rows(connection, f"CHECK TABLE {name} EXTENDED")
                assert verdict[-1][3] == "OK" or kind == "SEQUENCE", verdict
    connection.close()
    return found


def full(test, *options):
    """A backup, restored."""
    directory = test.backup(*options)
    test.compare(directory, content(test.server))


def compressed(test):
    """The same, compressed, by several threads; and rehearsed."""
    directory = test.backup("--compress", "--parallel=4")
    rehearse(test, directory)
    test.compare(directory, content(test.server))


def rehearse(test, directory):
    """A rehearsal checks all tables, and leaves a line in its log and nothing else; one that fails says why."""
    scratch, log = (os.path.join(test.directory, name) for name in ("scratch", "rehearsals"))
    command = [test.teak, "backup", "rehearse", directory, f"--scratch={scratch}", f"--log={log}", f"--server-option=--plugin-dir={test.server.plugin_dir}",
               "--server-option=--innodb-buffer-pool-size=32M"]
    told = run(command)
    tables = test.server.query("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_TYPE NOT LIKE '%VIEW'"
                               " AND TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema')")[0][0]
    assert f"restored, {tables} tables checked" in told, f"{told}, and not {tables}"
    assert not os.path.exists(scratch)
    refused([*command, "--mariadbd=/bin/false"], "no server starts")
    shutil.rmtree(scratch)
    with open(log, encoding="utf-8") as lines:
        assert ["FAILED" in line for line in lines] == [False, True]


def stream(test):
    """A backup through a pipe, unpacked, and restored from the pipe."""
    made = subprocess.run(test.command("-"), stdout=subprocess.PIPE, check=True).stdout
    directory = test.new_dir()
    subprocess.run([test.teak, "backup", "unpack", "--quiet", directory], input=made, check=True)
    run([test.teak, "backup", "verify", directory])
    expected = content(test.server)
    test.compare(directory, expected)
    shutil.rmtree(test.restored.data)
    subprocess.run([test.teak, "restore", "-", "--quiet", f"--datadir={test.restored.data}"], input=made, check=True)
    test.restored.start(test.options(elsewhere=False))
    assert content(test.restored) == expected


def incremental(test):
    """Three backups on top of each other; the first and the last are restored."""
    made = [(test.backup(), content(test.server))]
    for number in range(2):
        test.change(number)
        made.append((test.backup(f"--incremental-from={made[-1][0]}"), content(test.server)))
    if test.set_up.keys:
        rehearse(test, made[-1][0])
    for directory, expected in (made[-1], made[0]):
        test.compare(directory, expected)


def load(test):
    """A backup beside transactions over two engines: both have the same of each."""
    connection = test.server.connect(autocommit=False, database="plain")
    for engine in ("Teak", "InnoDB"):
        rows(connection, f"CREATE TABLE counted_{engine} (a INT PRIMARY KEY, n INT, filler VARCHAR(300)) ENGINE={engine}")
        rows(connection, f"INSERT INTO counted_{engine} SELECT seq, 0, REPEAT('y', 300) FROM seq_1_to_20000")
    connection.commit()
    stopping, failures, counts = threading.Event(), [], {"before": 0, "after": 0}

    def write():
        try:
            number = 0
            while not stopping.is_set():
                for engine in ("Teak", "InnoDB"):
                    rows(connection, f"UPDATE counted_{engine} SET n = n + 1, filler = MD5(n) WHERE a BETWEEN {number % 190 * 100} AND {number % 190 * 100 + 300}")
                connection.commit()
                number += 1
                counts["after"] = number
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    directory = test.backup()
    stopping.set()
    writer.join()
    assert not failures, failures
    connection.close()
    test.restore(directory)
    sums = [test.restored.query(f"SELECT SUM(n), SUM(CRC32(CONCAT(a, n))) FROM plain.counted_{engine}") for engine in ("Teak", "InnoDB")]
    assert sums[0] == sums[1], sums
    content(test.restored, whole=True)
    for engine in ("Teak", "InnoDB"):
        test.server.query(f"DROP TABLE plain.counted_{engine}")
        test.restored.query(f"DROP TABLE plain.counted_{engine}")
    assert content(test.restored) == content(test.server)


def dropped(test):
    """Tables and databases that are dropped, renamed and made anew between two backups."""
    base = test.backup()
    names = NAMES[test.set_up.names]
    for name in names[::2]:
        test.server.query(f"DROP DATABASE {quote(name)}")
    for name in names[1::2]:
        for engine in ENGINES[:2]:
            test.server.query(f"RENAME TABLE {quote(name)}.t_{engine} TO {quote(name)}.`other {engine}`")
        test.server.query(f"DROP TABLE {quote(name)}.t_Aria")
    test.make(names[0])
    test.compare(test.backup(f"--incremental-from={base}"), content(test.server))


def lost_time_line(test):
    """A backup of a time line that was given up is no base; the one that was restored is."""
    test.server.query("CREATE TABLE plain.line (a INT PRIMARY KEY, b CHAR(200)) ENGINE=InnoDB")
    test.server.query("INSERT INTO plain.line SELECT seq, 'first' FROM seq_1_to_5000")
    base = test.backup()
    test.server.query("UPDATE plain.line SET b = 'lost' WHERE a BETWEEN 2000 AND 3000")
    lost = test.backup(f"--incremental-from={base}")
    test.restore(base)
    test.server.stop()
    connection = test.restored.connect(autocommit=True)
    rows(connection, "UPDATE plain.line SET b = 'kept' WHERE a < 30")
    for number in range(100):
        rows(connection, f"UPDATE plain.line SET b = 'k{number}' WHERE a BETWEEN 30 AND 200")
    connection.close()
    for server in (test.restored,):
        refused(test.command(test.new_dir(), f"--incremental-from={lost}", server=server), "time line", lost, "full one")
    made = [base]
    for number in range(2):
        test.restored.query(f"UPDATE plain.line SET b = 'on {number}' WHERE a BETWEEN {number} AND 900")
        made.append(test.backup(f"--incremental-from={made[-1]}", server=test.restored))
    expected = content(test.restored)
    # What was restored goes on where it is; the next restore is beside it.
    test.server, test.restored = test.restored, Server(os.path.join(test.directory, "again"), test.restored.plugin_dir)
    test.servers["again"] = test.restored
    test.compare(made[-1], expected)


def rolled_back(test):
    """A copy of the files from before a backup is put back: that backup is no base."""
    base = test.backup()
    test.server.stop()
    earlier = os.path.join(test.directory, "earlier")
    shutil.copytree(test.server.data, earlier)
    test.server.start(test.options())
    test.change(0)
    later = test.backup(f"--incremental-from={base}")
    test.server.stop()
    shutil.rmtree(test.server.data)
    os.rename(earlier, test.server.data)
    test.server.start(test.options())
    refused(test.command(test.new_dir(), f"--incremental-from={later}"), later, "from before it", "full one")
    test.change(1)
    test.compare(test.backup(f"--incremental-from={base}"), content(test.server))


def file_added(test):
    """InnoDB gets another data file between two backups: the second is to be a full one, and says so."""
    base = test.backup()
    test.server.query("SET GLOBAL innodb_fast_shutdown = 0")
    test.server.stop()
    size = os.path.getsize(os.path.join(test.server.data, "ibdata1")) >> 20
    test.set_up.options.append(f"--innodb-data-file-path=ibdata1:{size}M;ibdata2:12M:autoextend")
    test.server.start(test.options())
    refused(test.command(test.new_dir(), f"--incremental-from={base}"), "innodb_data_file_path", base, "full one")
    full(test)
    test.set_up.options.pop()


def keys_moved(test):
    """The keys are elsewhere on the machine of the restore: an option says where."""
    directory = test.backup()
    expected = content(test.server)
    keys, moved = (os.path.join(test.directory, name) for name in ("keys", "moved"))
    test.server.stop()
    os.rename(keys, moved)
    refused([test.teak, "restore", directory, f"--datadir={test.directory}/nothing"], "encryption", "--mariadb-backup-option")
    test.restore(directory, f"--mariadb-backup-option=--file-key-management-filename={moved}", start=False)
    os.rename(moved, keys)
    test.restored.start(test.options())
    assert content(test.restored, whole=True) == expected


def own_name(test):
    """A database that is called as a file of mariadb-backup cannot be in a backup."""
    for name in ("xtrabackup_info", "xtrabackup_checkpoints"):
        test.server.query(f"CREATE DATABASE {name}")
        refused(test.command(test.new_dir()), name, "database")
        test.server.query(f"DROP DATABASE {name}")
    refused(test.command(os.path.join(test.server.data, "inside")), "data directory")
    assert not os.path.exists(os.path.join(test.server.data, "inside"))
    full(test)


def far_aria(test):
    """mariadb-backup fails at tables of Aria whose files are links: that is said before it begins."""
    refused(test.command(test.new_dir()), "far.MAD", "DATA DIRECTORY", "--databases-exclude")
    test.server.query("DROP TABLE plain.far")
    full(test)


def interrupted(test, name):
    """A backup that is ended by a signal, at several moments, does not harm the next."""
    for _ in range(3):
        directory = test.new_dir()
        with subprocess.Popen(test.command(directory), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(timeout=test.random.random())
            except subprocess.TimeoutExpired:
                process.send_signal(getattr(signal, name))
            process.wait(timeout=120)
        if process.returncode != 0:
            refused([test.teak, "backup", "verify", directory], directory)
        shutil.rmtree(directory, ignore_errors=True)
    incremental(test)


STEPS = {step.__name__: step for step in (full, compressed, stream, incremental, load, dropped, lost_time_line, rolled_back, file_added, keys_moved, own_name, far_aria)}


def test_of(set_up):
    """The test of a set-up, by its name."""
    def test(case):
        case.set_up = set_up
        case.start()
        step, _, argument = set_up.step.partition(" ")
        if step == "signal":
            interrupted(case, argument)
        else:
            STEPS[step](case)
    test.__name__ = set_up.name
    return test


if __name__ == "__main__":
    named = [set_up.name for set_up in ALL if set_up.name in sys.argv]
    chosen = [set_up for set_up in ALL if "--all" in sys.argv or set_up.name in (named or FEW)]
    sys.argv = [argument for argument in sys.argv if argument != "--all"]
    main(__doc__, [test_of(set_up) for set_up in chosen], Test, rounds=1)
