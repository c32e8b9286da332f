"""A server of MySQL in another root directory, where there is one: TEAK_MYSQL_ROOT is a root in which /usr/sbin/mysqld is, or else what `make mysql-root` has made."""

import os
import shutil
import subprocess
import time

import pymysql

from kit.cases import check

WHERE = "/var/tmp/teak-mysql"


def root_with_mysql():
    """The root directory; None if there is none, or not for who is not root."""
    cache = os.environ.get("TEAK_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "teak")
    root = os.environ.get("TEAK_MYSQL_ROOT") or os.path.join(cache, "roots/sid")
    return os.path.abspath(root) if os.geteuid() == 0 and os.path.exists(root + "/usr/sbin/mysqld") else None


class MySql:
    """A server in another root directory."""

    def __init__(self, root):
        self.root, self.directory, self.process, self.options = root, root + WHERE, None, ()
        self.data, self.socket = f"{self.directory}/data", f"{self.directory}/s"

    def run(self, *options):
        """The program."""
        command = ["chroot", self.root, "/usr/sbin/mysqld", "--no-defaults", "--user=root", f"--datadir={WHERE}/data", "--innodb-buffer-pool-size=64M", *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, *options):
        """Anew, with a database `h`."""
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        check(self.run("--initialize-insecure").wait() == 0, "mysqld makes no data directory")
        self.options = options
        self.start_again()
        self.query("create database h", database=None)

    def kill(self):
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def start_again(self):
        """With the data that is there."""
        self.process = self.run(f"--socket={WHERE}/s", "--skip-networking", "--mysqlx=OFF", "--log-bin=b", "--server-id=97", "--gtid-mode=ON", "--secure-file-priv=",
                                "--enforce-gtid-consistency=ON", "--binlog-row-metadata=FULL", "--binlog-rows-query-log-events=ON", f"--log-error={WHERE}/log", *self.options)
        until = time.monotonic() + 60
        while True:
            try:
                self.query("select 1", database=None)
                return
            except pymysql.err.OperationalError:
                check(self.process.poll() is None and time.monotonic() < until, "mysqld does not start")
                time.sleep(0.1)

    def stop(self):
        """Ends it, and what it has goes."""
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self, database="h", **settings):
        """A client."""
        return pymysql.connect(unix_socket=self.socket, user="root", database=database, charset="utf8mb4", **settings)

    def query(self, statement, **settings):
        """The rows of a statement."""
        connection = self.connect(autocommit=True, **settings)
        with connection.cursor() as cursor:
            cursor.execute(statement)
            found = cursor.fetchall()
        connection.close()
        return found
