#!/usr/bin/python3
"""`teak backup`, `teak backup verify` and `teak restore` beside clients that change everything.

Prints 'N passed, N failed', a test each.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time

from kit.server import Server, free_port

from bank import Workload, make_tables, rows
from runner import main

HERE = os.path.dirname(os.path.abspath(__file__))

OPTIONS = ["--teak-flush-log-at-trx-commit=1", "--teak-cache-size=8M", "--teak-checkpoint-log-size=2M",
           "--log-bin=binlog", "--binlog-format=ROW", "--server-id=1", "--sync-binlog=0", "--gtid-domain-id=3"]
# Of a server started on a restored directory.
RESTORED = ["--teak-cache-size=8M", "--log-bin=binlog", "--binlog-format=ROW", "--server-id=2", "--gtid-domain-id=3"]


class Test:
    """A server, where its backups go, and a server for what is restored from them."""

    def __init__(self, arguments):
        self.directory, self.teak, self.rounds = arguments.directory, arguments.teak, arguments.rounds
        self.random = random.Random(arguments.seed)
        self.port = free_port()
        self.server = Server(os.path.join(self.directory, "server"), arguments.plugin_dir, self.port)
        self.restored = Server(os.path.join(self.directory, "restored"), arguments.plugin_dir)
        self.servers = {"the server": self.server, "restored": self.restored}
        self.backups = 0

    def start(self):
        """A server with the clients' tables."""
        self.server.install()
        self.server.start(OPTIONS)
        make_tables(self.server)

    def new_dir(self):
        self.backups += 1
        return os.path.join(self.directory, f"backup-{self.backups}")

    def backup_command(self, directory, *options, user=("--user=root",)):
        return [self.teak, "backup", "--no-defaults", "--quiet", f"--socket={self.server.socket}", *user, *options, directory]

    def backup(self, *options):
        """Makes a backup that has to be whole, and the directory it is in."""
        directory = self.new_dir()
        run(self.backup_command(directory, *options))
        return directory

    def restore(self, directory):
        """Verifies a backup and makes the restored server's data directory of it, which is not started. What it tells."""
        self.restored.kill()
        shutil.rmtree(self.restored.directory, ignore_errors=True)
        os.makedirs(os.path.join(self.restored.directory, "tmp"))
        run([self.teak, "backup", "verify", directory])
        return run([self.teak, "restore", directory, f"--datadir={self.restored.data}"])

    def check(self, directory, workload, before, after):
        """A backup that was made between two states of the clients has what was acknowledged, and no half of anything."""
        self.restore(directory)
        self.restored.start(RESTORED)
        workload.check(self.restored, before, after)
        self.restored.stop()
        run([self.teak, "check", self.restored.data])

    def unharmed(self):
        """The server is as if there had never been a backup: checkpoints go on, nothing is locked, no process is left."""
        for _ in range(2):
            self.server.query("SET GLOBAL teak_checkpoint_now = ON")
        self.server.query("CREATE OR REPLACE TABLE unharmed (id INT PRIMARY KEY) ENGINE=InnoDB")
        self.server.query("SET STATEMENT max_statement_time = 120, lock_wait_timeout = 120 FOR INSERT INTO unharmed VALUES (1)")
        limit = time.monotonic() + 120
        while left := subprocess.run(["pgrep", "-f", f"mariadb-backup.*{self.server.data}"], capture_output=True, text=True, check=False).stdout.split():
            if time.monotonic() > limit:
                raise AssertionError(f"mariadb-backup is still running: {left}")
            time.sleep(0.05)

    def forget(self, *directories):
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)


def run(command, **settings):
    """The output of a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command[1:])} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def refused(command, *words, **settings):
    """A command has to fail, and to say why: each of the words is in what it tells, however written."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    told = done.stdout + done.stderr
    if done.returncode == 0 or any(word.lower() not in told.lower() for word in words):
        raise AssertionError(f"{' '.join(command[1:])} ended with {done.returncode} and should say {words}: {told[-4000:]}")
    return told


def under_load(test):
    """Backups at random moments."""
    test.start()
    workload = Workload(test.server, test.random.random())
    for number in range(test.rounds):
        workload.wait_for_commits()
        time.sleep(test.random.random() / 2)
        before = workload.state()
        directory = test.backup()
        after = workload.state()
        test.check(directory, workload, before, after)
        print(f"  backup {number}: {sum(after[client.number] for client in workload.clients)} transactions", flush=True)
        test.forget(directory)
    workload.stop()
    test.unharmed()
    with open(test.server.error_log, encoding="utf-8") as log:
        assert "BACKUP STAGE START" not in log.read(), "teak backup was warned of itself"


def incremental(test):
    """Backups on top of each other, each restored."""
    test.start()
    workload = Workload(test.server, test.random.random())
    made = []
    for _ in range(3):
        workload.wait_for_commits()
        before = workload.state()
        made.append((test.backup(*([f"--incremental-from={made[-1][0]}"] if made else [])), before, workload.state()))
    for directory, before, after in made:
        test.check(directory, workload, before, after)
    workload.stop()
    test.forget(*(directory for directory, _, _ in made))


def little_changed(test):
    """An incremental backup has log in place of blocks while there is little of it; one on top of another server's backup is refused."""
    test.start()
    test.server.query("CREATE TABLE test.scattered (id INT PRIMARY KEY, v INT, filler VARCHAR(200)) ENGINE=Teak")
    test.server.query("INSERT INTO test.scattered SELECT seq, 0, CONCAT(MD5(seq), MD5(-seq), MD5(seq * 0.5), MD5(seq * 1.5), MD5(seq * 2.5), MD5(seq * 3.5)) FROM seq_1_to_30000")
    made = [test.backup()]
    for changes in range(1, 4):
        test.server.query(f"UPDATE test.scattered SET v = {changes} WHERE id % 100 = {changes}")
        if changes == 2:
            test.server.query("SET GLOBAL teak_checkpoint_now = ON")
        made.append(test.backup(f"--incremental-from={made[-1]}"))
    sizes = [engine_bytes(directory) for directory in made]
    print(f"  {sizes} bytes", flush=True)
    # The second has blocks: there was a checkpoint.
    if max(sizes[1], sizes[3]) * 10 > sizes[0]:
        raise AssertionError(f"incremental backups with {sizes[1:]} bytes on top of {sizes[0]}")
    for changes, directory in enumerate(made):
        test.restore(directory)
        test.restored.start(RESTORED)
        found = rows(test.restored.connect(autocommit=True), "SELECT MAX(v), COUNT(*), SUM(v > 0) FROM test.scattered")[0]
        if [int(value) for value in found] != [changes, 30000, 300 * changes]:
            raise AssertionError(f"after {changes} changes: {found}")
        if changes == 0:
            test.restored.query("SET GLOBAL teak_checkpoint_now = ON")
        test.restored.stop()
    test.restored.kill()
    shutil.rmtree(test.restored.directory)
    test.restored.install()
    test.restored.start(RESTORED)
    command = [test.teak, "backup", "--no-defaults", f"--socket={test.restored.socket}", "--user=root"]
    refused([*command, f"--incremental-from={made[0]}", test.new_dir()], made[0], "another server", "full one")
    test.forget(*made)


def engine_bytes(directory):
    """What the files of the engine take on the disk in a backup; they have holes."""
    return sum(512 * os.stat(os.path.join(at, name)).st_blocks for at, _, names in os.walk(os.path.join(directory, "teak")) for name in names)


def killed(test):
    """A backup that is killed leaves the server as it was, and no backup."""
    test.start()
    workload = Workload(test.server, test.random.random())
    interrupted = 0
    rounds = max(3, test.rounds // 2)
    for number in range(rounds):
        workload.wait_for_commits(5)
        directory = test.new_dir()
        with subprocess.Popen(test.backup_command(directory), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            time.sleep(test.random.random() * 2)
            process.send_signal((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[number % 3])
            told = process.communicate(timeout=120)[1].decode()
        if process.returncode != 0:
            interrupted += 1
            refused([test.teak, "backup", "verify", directory], directory)
            refused([test.teak, "restore", directory, f"--datadir={test.directory}/nothing"], directory)
            assert "panicked" not in told, told
        test.unharmed()
        test.forget(directory, f"{test.directory}/nothing")
    print(f"  {interrupted} of {rounds} were interrupted", flush=True)
    before = workload.state()
    directory = test.backup()
    test.check(directory, workload, before, workload.state())
    workload.stop()


def gives_up(test):
    """mariadb-backup that gives up on InnoDB's log is run once more, and nothing is left of what it has sent; one that fails otherwise is not, and is
    the reason that is told."""
    test.start()
    workload = Workload(test.server, test.random.random())
    program, ran = (os.path.join(test.directory, name) for name in ("program", "ran"))
    message = "Was only able to copy log from 1 to 2, not 3; try increasing innodb_log_file_size"
    with open(program, "w", encoding="utf-8") as script:
        script.write(f"""#!/bin/sh
if [ -e {ran} ]; then exec mariadb-backup "$@"; fi
touch {ran}
mariadb-backup "$@" && echo '{message}' >&2
exit 1
""")
    os.chmod(program, 0o700)
    for options in ([], ["--compress"]):
        workload.wait_for_commits()
        before = workload.state()
        directory = test.backup(f"--mariadb-backup={program}", *options)
        test.check(directory, workload, before, workload.state())
        os.remove(ran)
    directory = test.new_dir()
    made = subprocess.run(test.backup_command("-", f"--mariadb-backup={program}"), stdout=subprocess.PIPE, check=True)
    subprocess.run([test.teak, "backup", "unpack", "--quiet", directory], input=made.stdout, check=True)
    test.check(directory, workload, before, workload.state())
    with open(program, "w", encoding="utf-8") as script:
        script.write("#!/bin/sh\necho of its own >&2; exit 3\n")
    refused(test.backup_command(test.new_dir(), f"--mariadb-backup={program}", "--throttle=1"), "of its own", "exit status: 3")
    test.unharmed()
    workload.stop()


def leaves_nothing(test):
    """A backup that is killed when mariadb-backup runs has nothing in the directory of temporary files."""
    test.start()
    program, seen, temporary = (os.path.join(test.directory, name) for name in ("program", "seen", "temporary"))
    os.mkdir(temporary)
    with open(program, "w", encoding="utf-8") as script:
        script.write(f"#!/bin/sh\nls -A {temporary} >> {seen}; kill -9 $PPID\n")
    os.chmod(program, 0o700)
    for directory in (test.new_dir(), "-"):
        command = test.backup_command(directory, f"--mariadb-backup={program}")
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env={**os.environ, "TMPDIR": temporary})
        assert done.returncode == -signal.SIGKILL, f"{' '.join(command[1:])} ended with {done.returncode}"
    with open(seen, encoding="utf-8") as names:
        assert names.read() == "", "there are temporary files"
    test.unharmed()


def is_running(process):
    """Whether a process does; one that has ended, and that nobody has waited for, has no command line."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as line:
            return line.read() != b""
    except OSError:
        return False


def no_orphans(test):
    """A program that a command has started ends with it, also by SIGKILL: what it still wrote would come among the files of the next run."""
    test.start()
    directory = test.backup()
    program, number = (os.path.join(test.directory, name) for name in ("program", "number"))
    for option, command in (
            ("--mariadb-backup", [test.teak, "restore", directory, f"--datadir={test.directory}/restored-to"]),
            ("--mariadbd", [test.teak, "backup", "rehearse", directory, f"--scratch={test.directory}/scratch"]),
            ("--mariadb-backup", test.backup_command(test.new_dir()))):
        with open(program, "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\necho $$ > {number}.new; mv {number}.new {number}; exec sleep 1000\n")
        os.chmod(program, 0o700)
        with subprocess.Popen([*command, f"{option}={program}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while not os.path.exists(number):
                assert process.poll() is None, f"{command} ended with {process.returncode}"
                time.sleep(0.02)
            process.kill()
        with open(number, encoding="ascii") as text:
            started = text.read().strip()
        os.remove(number)
        limit = time.monotonic() + 60
        while is_running(started):
            assert time.monotonic() < limit, f"{option} of {command} goes on"
            time.sleep(0.02)
    test.unharmed()


def target_full(test):
    """A full disk, and a limit of the size of files, are told; the server does not mind."""
    test.start()
    workload = Workload(test.server, test.random.random())
    workload.wait_for_commits()
    disk = os.path.join(test.directory, "small")
    os.makedirs(disk)
    # The last of them has room for nearly all.
    whole = sum(os.stat(name).st_blocks * 512 for name in files_below(test.backup())) >> 20
    for mebibytes in (1, 8, whole - 2):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", disk], check=True)
        try:
            refused(test.backup_command(os.path.join(disk, "b")), "no space left")
        finally:
            subprocess.run(["umount", "-l", disk], check=True)
        test.unharmed()
    directory = test.new_dir()
    refused(test.backup_command(directory), "too large", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    test.unharmed()
    directory = test.backup()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    try:
        refused([test.teak, "restore", directory, f"--datadir={disk}/d"], "no space left")
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
    workload.stop()


def files_below(directory):
    return sorted(os.path.join(parent, name) for parent, _, names in os.walk(directory) for name in names)


def flip(path, at):
    """Another byte at a place in a file; what was there."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x55]))
    return byte


def cut_last_line(path):
    with open(path, "r+b") as file:
        file.truncate(file.read().rstrip(b"\n").rindex(b"\n") + 1)


def damaged(test):
    """A backup that has changed is found out, in each of its files; so is damage in what is backed up."""
    test.start()
    test.server.query("INSERT INTO loaded (client, number, body) SELECT 1, 1, REPEAT(MD5(seq), 6) FROM seq_1_to_20000")
    refused(test.backup_command(test.server.data), "not empty")
    directory = test.backup()
    refused(test.backup_command(directory), "not empty")
    refused([test.teak, "restore", directory, f"--datadir={test.server.data}"], "not empty")
    run([test.teak, "backup", "verify", directory])
    pristine = os.path.join(test.directory, "pristine")
    shutil.copytree(directory, pristine)
    files = [path for path in files_below(directory) if os.path.getsize(path) and not path.endswith("mariadb-backup.log")]
    engine = [path for path in files if f"{directory}/teak/" in path]
    others = [path for path in files if path not in engine]
    def found_out(path, damage):
        damage(path)
        done = subprocess.run([test.teak, "backup", "verify", directory], capture_output=True, text=True, check=False)
        if done.returncode == 0 or directory not in done.stderr:
            raise AssertionError(f"damage of {path} is not found: {done.stdout}{done.stderr}")
        shutil.copyfile(os.path.join(pristine, os.path.relpath(path, directory)), path)

    for path in others if len(others) < 12 else {*test.random.sample(others, 12), *(path for path in others if "/server/" not in path)}:
        found_out(path, lambda path: flip(path, test.random.randrange(os.path.getsize(path))))
        found_out(path, os.remove)
    # A file that the list does not have is missed by nobody who goes by the list.
    found_out(os.path.join(directory, "server.sha256"), cut_last_line)
    for path in engine:
        # Of the two superblocks, either may be the newer one, and the older one is of no use here.
        found_out(path, lambda path: os.truncate(path, os.path.getsize(path) // (2 if not path.endswith("teak.super") else 5)))
        found_out(path, os.remove)
        if "/log/" in path:
            # A recovery takes this for what a crash has torn.
            found_out(path, lambda path: flip(path, os.path.getsize(path) - 9))
    # The largest table's file: bytes in so many places that most of them are in blocks.
    path = max((path for path in files_below(os.path.join(test.server.data, "#teak")) if "/log/" not in path and "reserve" not in path),
               key=lambda path: os.stat(path).st_blocks)
    for at in range(10_000, os.path.getsize(path), 10_000):
        flip(path, at)
    refused(test.backup_command(test.new_dir()), os.path.basename(path))
    for at in range(10_000, os.path.getsize(path), 10_000):
        flip(path, at)
    test.backup()


def chains(test):
    """An incremental backup is verified with all that it stands on, wherever that is; alone, it tells what it does not know."""
    test.start()
    test.server.query("INSERT INTO loaded (client, number, body) SELECT 1, 1, REPEAT(MD5(seq), 6) FROM seq_1_to_20000")
    lsn = test.new_dir()
    streamed = test.new_dir()
    with subprocess.Popen(test.backup_command("-", f"--extra-lsndir={lsn}"), stdout=subprocess.PIPE) as stream:
        run([test.teak, "backup", "unpack", "--quiet", streamed], stdin=stream.stdout)
    assert stream.returncode == 0, f"teak backup - ended with {stream.returncode}"
    refused([test.teak, "backup", "verify", lsn], lsn, "--extra-lsndir")
    refused([test.teak, "restore", lsn, f"--datadir={test.directory}/nothing"], lsn, "--extra-lsndir")
    made = [streamed]
    for below in (lsn, None):
        test.server.query("UPDATE loaded SET body = CONCAT(body, '!') WHERE id % 1000 = 0")
        # So that it has blocks, and not log alone.
        test.server.query("SET GLOBAL teak_checkpoint_now = ON")
        made.append(test.backup(f"--incremental-from={below or made[-1]}"))
    verify, last = [test.teak, "backup", "verify"], made[-1]
    told = run([*verify, last])
    assert "not looked at" in told and made[1] in told and "are whole" in told, told
    # What --extra-lsndir left has the name of a backup, and nothing of it.
    for command in ([*verify, last, f"--base={made[1]}"], [test.teak, "restore", last, f"--datadir={test.directory}/nothing"]):
        refused(command, made[1], lsn, "--extra-lsndir", "--base")
    based = [*verify, last, f"--base={streamed}"]
    told = run(based)
    assert "0 damaged" in told and "the 2 that it stands on are whole" in told, told
    moved = os.path.join(test.directory, "elsewhere")
    os.rename(made[1], moved)
    refused(based, made[1], "--base")
    based.append(f"--base={moved}")
    run(based)
    # In each of them, what the last one takes is looked at, and in the last one alone if nothing is said of the others.
    for directory, alone in ((streamed, True), (moved, True), (last, False)):
        tables = [path for path in files_below(os.path.join(directory, "teak")) if path.endswith(".teak")]
        path = max(tables, key=lambda path: os.stat(path).st_blocks)
        with open(path, "rb") as file:
            content = file.read()
        # Holes are where others have something.
        own = [at for at in range(4096, len(content), 512) if content[at] != 0]
        for at in own:
            flip(path, at)
        assert own, path
        refused(based, path)
        if alone:
            run([*verify, last])
        else:
            refused([*verify, last], path)
        for at in own:
            flip(path, at)
    path = next(path for path in files_below(os.path.join(moved, "server")) if path.endswith("ib_logfile0"))
    flip(path, 5000)
    refused(based, path)
    flip(path, 5000)
    expected = checksums(test.server)
    bases = based[len(verify) + 1:]
    os.makedirs(os.path.join(test.restored.directory, "tmp"))
    run([test.teak, "restore", last, *bases, f"--datadir={test.restored.data}"])
    test.restored.start(RESTORED)
    assert checksums(test.restored) == expected


def checksums(server):
    """Of all tables."""
    tables = ", ".join(row[0] for row in server.query("SHOW TABLES"))
    return server.query(f"CHECKSUM TABLE {tables}")


def same_rows(test):
    """A backup made beside writers and changes of definitions notes what the rows of each table are at its end, and a rehearsal finds the same: or says
    which table has other ones."""
    test.start()
    test.server.query("CREATE DATABASE `my-db`")
    test.server.query("CREATE TABLE `my-db`.`odd.name` (id INT PRIMARY KEY, body TEXT) ENGINE=InnoDB")
    test.server.query("INSERT INTO `my-db`.`odd.name` SELECT seq, MD5(seq) FROM seq_1_to_1000")
    test.server.query("CREATE TABLE `my-db`.forgetful (id INT PRIMARY KEY) ENGINE=Teak IN_MEMORY=YES")
    test.server.query("INSERT INTO `my-db`.forgetful VALUES (1)")
    workload = Workload(test.server, test.random.random())
    for _ in range(2):
        workload.wait_for_commits()
        directory = test.backup("--checksums")
        with open(os.path.join(directory, "backup.json"), encoding="utf-8") as text:
            noted = json.load(text)["checksums"]
        steady = {"test/accounts_Teak", "test/accounts_InnoDB", "test/journal_Teak", "test/journal_InnoDB", "test/loaded", "my@002ddb/odd@002ename"}
        assert steady <= set(noted) and "my@002ddb/forgetful" not in noted and not any(name.startswith("mysql/") for name in noted), noted
        command = [test.teak, "backup", "rehearse", directory, f"--scratch={test.directory}/scratch", f"--server-option=--plugin-dir={test.server.plugin_dir}"]
        told = run(command)
        assert f"the rows of {len(noted)} are those" in told, told
        statements = os.path.join(test.directory, "statements")
        with open(statements, "w", encoding="utf-8") as text:
            text.write("UPDATE test.accounts_InnoDB SET balance = balance + 1 WHERE id = 7;\n")
        refused([*command, f"--server-option=--init-file={statements}"], "test/accounts_InnoDB", "rows are not those")
        test.forget(directory, f"{test.directory}/scratch")
    workload.stop()


def kept(test):
    """`list` tells what is in a directory, and `prune` removes what no rule keeps, but for what others stand on."""
    test.start()
    test.directory = os.path.join(test.directory, "kept")
    os.makedirs(test.directory)
    full = test.backup()
    on_it = test.backup(f"--incremental-from={full}")
    other = test.backup()
    last = test.backup(f"--incremental-from={other}")
    os.makedirs(os.path.join(test.directory, "begun", "teak"))
    listed = run([test.teak, "backup", "list", test.directory])
    words = [f"{os.path.basename(on_it)}: incremental backup on {os.path.basename(full)}", "begun: not finished"]
    assert all(word in listed for word in words), listed
    lines = [json.loads(line) for line in run([test.teak, "backup", "list", "--json", test.directory]).splitlines()]
    assert [line["dir"] for line in lines] == [full, on_it, other, last], lines
    refused([test.teak, "backup", "prune", test.directory], "--keep-last")
    prune = [test.teak, "backup", "prune", test.directory, "--keep-last=1"]
    told = run([*prune, "--dry-run"])
    assert told.count("would remove") == 2 and os.path.exists(full), told
    run(prune)
    assert sorted(os.listdir(test.directory)) == sorted(["begun", os.path.basename(other), os.path.basename(last)])
    run([test.teak, "backup", "verify", last, f"--base={other}"])


def as_json(test):
    """What a program reads of a backup, its verification and its restore."""
    test.start()
    directory, restored = test.new_dir(), os.path.join(test.directory, "data")
    made = json.loads(run([option for option in test.backup_command(directory, "--json") if option != "--quiet"]))
    with open(os.path.join(directory, "backup.json"), encoding="utf-8") as text:
        stored = json.load(text)
    assert (made["dir"], made["kind"], made["backup"]["id"]) == (directory, "backup", stored["id"]), made
    assert made["seconds"] > 0 and made["backup"]["position"] == stored["position"], made
    verified = json.loads(run([test.teak, "backup", "verify", "--json", directory]))
    assert (verified["whole"], verified["id"]) == (True, stored["id"]), verified
    told = json.loads(run([test.teak, "restore", "--json", directory, f"--datadir={restored}"]))
    assert (told["datadir"], told["backup"]["id"]) == (restored, stored["id"]), told
    above = test.backup(f"--incremental-from={directory}")
    verified = json.loads(run([test.teak, "backup", "verify", "--json", above]))
    assert (verified["whole"], verified["missing_base"]) == (False, directory), verified


def impatient(test):
    """A server that ends connections which are idle for a second does not end a backup that takes longer."""
    test.start()
    test.server.query("INSERT INTO loaded (client, number, body) SELECT 1, 1, REPEAT(MD5(RAND()), 6) FROM seq_1_to_40000")
    test.server.query("SET GLOBAL wait_timeout = 1")
    began = time.monotonic()
    directory = test.backup("--throttle=4")
    assert time.monotonic() - began > 3, "the throttle does nothing"
    run([test.teak, "backup", "verify", directory])
    test.forget(directory)


def privileges_of_the_manual():
    """Those that docs/backup.md has an account be given."""
    with open(os.path.join(HERE, "../../../docs/backup.md"), encoding="utf-8") as manual:
        (granted,) = (line for line in manual if line.strip().startswith("GRANT ") and "backup@localhost" in line)
    return granted.strip().removeprefix("GRANT ").partition(" ON ")[0].split(", ")


def least_privileges(test):
    """The privileges that docs/backup.md names are enough, and without one of them an error says so, and there is no backup."""
    test.start()
    test.server.query("CREATE USER backup@localhost IDENTIFIED BY 'secret'")
    # Each as an error names it.
    needed = ["RELOAD", "PROCESS", "BINLOG MONITOR", "SLAVE MONITOR"]
    user = ("--user=backup", "--password=secret")
    for missing in needed:
        test.server.query(f"GRANT {', '.join(one for one in needed if one != missing)} ON *.* TO backup@localhost")
        directory = test.new_dir()
        refused(test.backup_command(directory, user=user), missing)
        refused([test.teak, "backup", "verify", directory], "backup.json")
        test.server.query("REVOKE ALL, GRANT OPTION FROM backup@localhost")
    documented = privileges_of_the_manual()
    assert {one.replace("REPLICA", "SLAVE") for one in documented} == set(needed), documented
    test.server.query(f"GRANT {', '.join(documented)} ON *.* TO backup@localhost")
    directory = test.new_dir()
    run(test.backup_command(directory, user=user))
    run([test.teak, "backup", "verify", directory])


TESTS = [under_load, incremental, little_changed, killed, gives_up, leaves_nothing, no_orphans, target_full, damaged, chains, same_rows, kept, as_json, impatient,
         least_privileges]


if __name__ == "__main__":
    main(__doc__, TESTS, Test, rounds=10)
