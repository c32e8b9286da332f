"""A private mariadbd that can be killed: own data directory, socket only."""

import os
import signal
import subprocess
import time

import pymysql


class Server:
    """Starts, kills and connects to one server under `directory`."""

    def __init__(self, directory, plugin_dir):
        self.directory = directory
        self.plugin_dir = plugin_dir
        self.socket = os.path.join(directory, "s.sock")
        self.error_log = os.path.join(directory, "error.log")
        self.process = None

    def install(self):
        """A fresh data directory."""
        subprocess.run(["rm", "-rf", self.directory], check=True)
        os.makedirs(os.path.join(self.directory, "tmp"))
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.directory}/data", "--auth-root-authentication-method=normal"]
        if os.geteuid() == 0:
            command.append("--user=root")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def start(self, options=(), limit=120.0):
        """Starts the server and returns the seconds until it answered a query."""
        command = [
            "mariadbd", "--no-defaults", f"--datadir={self.directory}/data", f"--socket={self.socket}",
            f"--tmpdir={self.directory}/tmp", f"--log-error={self.error_log}", f"--pid-file={self.directory}/pid",
            "--skip-networking", f"--plugin-dir={self.plugin_dir}", "--plugin-load-add=ha_teak",
            "--default-storage-engine=Teak", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
            *options,
        ]
        if os.geteuid() == 0:
            command.append("--user=root")
        began = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"mariadbd ended with {self.process.returncode} while starting:\n{self.log_end()}")
            try:
                self.connect(database=None).close()
                return time.monotonic() - began
            except pymysql.err.OperationalError:
                if time.monotonic() - began > limit:
                    self.kill()
                    raise RuntimeError(f"mariadbd did not answer within {limit} s:\n{self.log_end()}") from None
                time.sleep(0.05)

    def connect(self, database="test", **settings):
        """A new connection."""
        return pymysql.connect(unix_socket=self.socket, user="root", database=database, charset="utf8mb4", **settings)

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

    def log_end(self):
        """The last lines of the error log."""
        try:
            with open(self.error_log, errors="replace") as log:
                return "".join(log.readlines()[-30:])
        except OSError:
            return ""
