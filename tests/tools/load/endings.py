"""Commands that a signal ends, whose terminal is gone, or whose output nobody takes: each command of the program in one loop."""

import os
import shutil
import signal
import subprocess
import time

from kit.cases import check

RELAXED = ("innodb_flush_log_at_trx_commit", "sync_binlog", "teak_flush_log_at_trx_commit")
ENDING = (signal.SIGHUP, signal.SIGQUIT, signal.SIGINT, signal.SIGTERM)


class Endings:
    """Cases of what ends commands from outside."""

    def durability(self):
        """The settings that --relaxed-durability changes."""
        return [self.value(f"SELECT @@GLOBAL.{name}") for name in RELAXED]

    def wait_until(self, condition, what):
        """Waits for something that comes, however slow the machine is."""
        began = time.monotonic()
        while not condition():
            check(time.monotonic() - began < 60, f"{what} did not come")
            time.sleep(0.02)

    def command_of(self, name, *arguments):
        """The command line of a command that connects."""
        return [self.arguments.teak, name, "--no-defaults", f"--socket={self.server.socket}", "--user=root", *arguments]

    def waiting(self):
        """Commands that wait for something that does not come by itself, and what tells that they do."""
        before = self.durability()
        yield ("load", self.command("parallel", "-", "--relaxed-durability"), lambda: self.durability() != before)
        yield ("load --serial", self.command("parallel", "-", "--relaxed-durability", "--serial"), lambda: self.durability() != before)
        locked = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table%'"
        yield ("convert", self.command_of("convert", "parallel.held"), lambda: self.value(locked) > 0)
        target = os.path.join(self.files, "unpacked")
        yield ("unpack", [self.arguments.teak, "backup", "unpack", target], lambda: os.path.isdir(target))

    def case_signals(self):
        """Each ends a command in order: with a status that names it, and with the server's settings as they were. SIGKILL, too, leaves the settings."""
        self.server.query("SET GLOBAL sync_binlog = 7", database=None)
        before = self.durability()
        self.fresh("parallel")
        self.server.query("CREATE TABLE held (a INT) ENGINE=InnoDB", "parallel")
        holder = self.server.connect(database="parallel")
        with holder.cursor() as cursor:
            cursor.execute("LOCK TABLES held READ")
        for number in (*ENDING, signal.SIGKILL):
            for name, command, waits in self.waiting():
                shutil.rmtree(os.path.join(self.files, "unpacked"), ignore_errors=True)
                with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
                    self.wait_until(lambda: process.poll() is not None or waits(), f"{name}, {number!r}")  # pylint: disable=cell-var-from-loop
                    process.send_signal(number)
                    # Its input stays open.
                    ended = process.wait(timeout=60)
                    text = process.stdout.read().decode(errors="replace")
                check(ended == (-9 if number == signal.SIGKILL else 128 + number), f"{name}, {number!r}: status {ended}: {text}")
                check(number == signal.SIGKILL or "interrupted" in text, f"{name}, {number!r}: {text}")
                self.wait_until(lambda: self.durability() == before, f"{name}, {number!r}: the settings of before")
        holder.close()
        # What is to go on without a terminal does.
        with subprocess.Popen(["nohup", *self.command("parallel", "-")], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            process.stdin.write(b"CREATE TABLE begun (a INT);\nCREATE TABLE again (a INT);\n")
            process.stdin.flush()
            self.wait_until(lambda: process.poll() is not None or self.server.query("SHOW TABLES LIKE 'begun'", "parallel"), "the load")
            process.send_signal(signal.SIGHUP)
            process.stdin.close()
            check(process.wait(timeout=60) == 0, "nohup")
        self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)

    def case_output_that_nobody_takes(self):
        """Standard output or error closed, full, or a pipe without a reader: what was done is done, and no command panics."""
        self.fresh("parallel")
        self.server.query("CREATE TABLE t (a INT) ENGINE=InnoDB", "parallel")
        dump = self.write("nobody.sql", "CREATE TABLE IF NOT EXISTS u (a INT);\nDROP TABLE IF EXISTS gone;\n")
        stopped = os.path.join(self.files, "stopped")
        shutil.rmtree(stopped, ignore_errors=True)
        shutil.copytree(os.path.join(self.server.data, "#teak"), stopped)
        commands = {
            "load": self.command("parallel", dump, "--on-error=skip"), "load --json": self.command("parallel", dump, "--json"),
            "load that fails": self.command("parallel", self.write("fails.sql", "SELEC;")), "dry run": [self.arguments.teak, "load", "--no-defaults", "--dry-run", dump],
            "convert": self.command_of("convert", "parallel.t", "--to=innodb"), "convert --dry-run": self.command_of("convert", "parallel.t", "--dry-run"),
            "check": [self.arguments.teak, "check", "-v", stopped], "inspect": [self.arguments.teak, "inspect", stopped],
            "salvage": [self.arguments.teak, "salvage", stopped, "--output"], "version": [self.arguments.teak, "version"]}
        # Those whose output is what they are for.
        answers = ("dry run", "convert --dry-run", "check", "inspect", "salvage", "version")
        for name, command in commands.items():
            ways = {"as usual": "", "no output": ">&-", "no errors": "2>&-", "neither": ">&- 2>&-", "full": ">/dev/full", "errors full": "2>/dev/full", "errors in a pipe": "2>&3", "in a pipe": ">&3"}
            for i, (way, redirection) in enumerate(ways.items()):
                reader, writer = os.pipe()
                os.close(reader)
                line = [*command, os.path.join(self.files, f"salvaged{i}")] if name == "salvage" else command
                shutil.rmtree(os.path.join(self.files, f"salvaged{i}"), ignore_errors=True)
                script = f'exec 3>&{writer} {writer}>&-; exec "$@" {redirection}'
                ended = subprocess.run(["bash", "-c", script, "bash", *line], capture_output=True, check=False, timeout=60, pass_fds=(writer,))
                os.close(writer)
                usual = 5 if name == "load that fails" else 0
                expected = (usual, 4) if name in answers and way in ("full", "in a pipe") else (usual,)
                check(ended.returncode in expected, f"{name}, {way}: status {ended.returncode}: {ended.stderr.decode(errors='replace')}")
            self.server.query("DROP DATABASE IF EXISTS teak_load", database=None)
