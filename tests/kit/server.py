"""A private mariadbd for tests and benchmarks, which may be killed: own data directory, socket only unless given a port."""

import contextlib
import glob
import os
import platform
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import pymysql

# By its full path: started by name, the server cannot find itself when it writes a backtrace with symbols.
MARIADBD = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin") or "mariadbd"
# Debian 13 has the server's messages under its new name, and no mydumper.
SHARE = "/usr/share/mysql" if os.path.exists("/usr/share/mysql/english") else "/usr/share/mariadb"
HAS_MYDUMPER = platform.freedesktop_os_release().get("VERSION_CODENAME") == "bookworm"


def free_port():
    """A TCP port that nobody has at the moment, and that the kernel gives to none who connects: a replica that tries again and again to reach a server which is
    being started would otherwise take its port now and then."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    for _ in range(1000):
        port = random.SystemRandom().randrange(10_000, max(first, 10_100))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no port of 127.0.0.1 is free")


def conflicted(connection, error):
    """Whether `error` is a lock conflict that ends a transaction; it is then rolled back. Call while handling the error, and raise it again if not."""
    if error.args[0] not in (1020, 1205, 1213):
        return False
    connection.rollback()
    return True


def attempt(connection, statements, source):
    """One transaction of statements and their values; False if it was rolled back, by a lock conflict or on purpose: one of twenty is, as the random
    numbers of `source` come."""
    try:
        with connection.cursor() as cursor:
            for statement, values in statements:
                cursor.execute(statement, values)
        if source.random() < 0.05:
            connection.rollback()
            return False
        connection.commit()
        return True
    except pymysql.err.OperationalError as error:
        if not conflicted(connection, error):
            raise
        return False


def own_plugins(directory, plugin_dir):
    """A copy of a directory of plugins, in which those of Debian can be put beside Teak's."""
    plugins = os.path.join(directory, "plugins")
    shutil.rmtree(plugins, ignore_errors=True)
    shutil.copytree(plugin_dir, plugins)
    return plugins


class Server:
    """Starts, kills and connects to one server under `directory`. With a `port` it listens on 127.0.0.1 too."""

    # The command that runs it; what watches over it may come first.
    program = (MARIADBD,)

    def __init__(self, directory, plugin_dir, port=None):
        # The server changes into its data directory, so relative paths would not do.
        directory, plugin_dir = os.path.abspath(directory), os.path.abspath(plugin_dir)
        self.directory = directory
        self.data = os.path.join(directory, "data")
        self.plugin_dir = plugin_dir
        self.socket = os.path.join(directory, "s.sock")
        self.network = ["--skip-networking"] if port is None else ["--bind-address=127.0.0.1", f"--port={port}"]
        self.error_log = os.path.join(directory, "error.log")
        self.process = None

    def install(self, options=()):
        """A fresh data directory, made with these options of the server."""
        subprocess.run(["rm", "-rf", self.directory], check=True)
        os.makedirs(os.path.join(self.directory, "tmp"))
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal", *options]
        if os.geteuid() == 0:
            command.append("--user=root")
        # It has files of fixed names in the directory for temporary ones, and fails if others install at the same time.
        own = {**os.environ, "TMPDIR": os.path.join(self.directory, "tmp")}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=own)

    def start(self, options=(), limit=120.0):
        """Starts the server and returns the seconds until it answered a query."""
        command = [
            *self.program, "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}",
            f"--tmpdir={self.directory}/tmp", f"--log-error={self.error_log}", f"--pid-file={self.directory}/pid",
            *self.network, f"--plugin-dir={self.plugin_dir}", "--plugin-load-add=ha_teak",
            "--default-storage-engine=Teak", "--loose-teak-snapshot-isolation=ON", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
            *options,
        ]
        if os.geteuid() == 0:
            command.append("--user=root")
        # Ended by a time limit, Python would skip every `finally` and leave the server behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        began = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            if not self.is_running():
                raise RuntimeError(f"mariadbd ended with {self.process.returncode} while starting:\n{self.log_end()}")
            try:
                self.connect(database=None).close()
                return time.monotonic() - began
            except pymysql.err.OperationalError:
                if time.monotonic() - began > limit:
                    self.kill()
                    raise RuntimeError(f"mariadbd did not answer within {limit} s:\n{self.log_end()}") from None
                time.sleep(0.05)

    def is_running(self):
        """Whether the process is there; it may be starting."""
        return self.process is not None and self.process.poll() is None

    def connect(self, database="test", **settings):
        """A new connection."""
        return pymysql.connect(unix_socket=self.socket, user="root", database=database, charset="utf8mb4", **settings)

    def query(self, statement, database="test", **settings):
        """All rows of one statement on a connection of its own."""
        connection = self.connect(database=database, autocommit=True, **settings)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return tuple(cursor.fetchall())  # of no rows some releases of PyMySQL make a list
        finally:
            connection.close()

    def kill(self):
        """SIGKILL, and waits for the end."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def stop(self):
        """An orderly shutdown."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=120)
            self.process = None

    def memory(self):
        """Resident bytes of the process: now, and at most so far."""
        fields = {}
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                name, _, value = line.partition(":")
                fields[name] = value
        return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))

    def cpu_seconds(self):
        """Processor time the server has used, in all its threads, to the microsecond."""
        # What clock_getcpuclockid(3) gives for the process in Linux: the complement of its number, and 2 for the
        # scheduler's clock.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def io(self):
        """What the kernel counted of the process's reading and writing, in bytes: `write_bytes` went to a disk or will."""
        with open(f"/proc/{self.process.pid}/io", encoding="ascii") as counts:
            return {name: int(value) for name, _, value in (line.partition(":") for line in counts)}

    def redo_size(self):
        """Bytes of the engine's redo log on disk; a checkpoint may remove a file while they are counted."""
        size = 0
        for path in glob.glob(os.path.join(self.data, "#teak", "log", "*")):
            with contextlib.suppress(FileNotFoundError):
                size += os.stat(path).st_size
        return size

    def log_end(self, lines=30):
        """The last lines of the error log."""
        try:
            with open(self.error_log, errors="replace") as log:
                return "".join(log.readlines()[-lines:])
        except OSError:
            return ""
