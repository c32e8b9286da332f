#!/usr/bin/python3
"""What follows a backup in the binary log: points in time, replicas, servers that take the place of others.

Prints 'N passed, N failed', a test each.
"""

import json
import os
import shutil
import subprocess
import time

from kit.replicas import let_replicate, wait_until

from backup import RESTORED, Test, checksums, refused, run
from bank import Workload, rows
from runner import main


def differences(one, other, tables):
    """Rows of tables that one of two servers has, and not the other: a few of each."""
    return {table: [sorted(set(these) - set(those))[:5] for these, those in (contents, contents[::-1])]
            for table in sorted(tables) for contents in [[server.query(f"SELECT * FROM {table}") for server in (one, other)]]}


def point_in_time(test):
    """The binary logs from the backup's position on, until a position and until a time, make of a restored backup what the server was then."""
    test.start()
    # The statements of a binary log go through one connection, which cannot prepare one transaction and begin another.
    workload = Workload(test.server, test.random.random(), pledged=())
    workload.wait_for_commits()
    directory = test.backup()
    connection = test.server.connect(autocommit=True)
    expected, ends = [], []
    for limited_by_time in (False, True):
        workload.wait_for_commits()
        if limited_by_time:
            # What waits for the lock has the time at which it began, and would count as from before.
            workload.stop()
        rows(connection, "FLUSH TABLES WITH READ LOCK")
        (file, position, *_), = rows(connection, "SHOW MASTER STATUS")
        # The next second: nothing has been logged in it, and what was is from before.
        second = int(time.time()) + 1
        time.sleep(second + 0.01 - time.time())
        expected.append(checksums(test.server))
        ends.append((file, position, second))
        time.sleep(1)
        rows(connection, "UNLOCK TABLES")
    rows(connection, "UPDATE accounts_Teak SET balance = balance + 1")
    rows(connection, "DROP TABLE journal_Teak, appended")
    connection.close()
    limits = [f"--stop-position={ends[0][1]}", "--stop-datetime=" + time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ends[1][2]))]
    for limit, state, end in zip(limits, expected, ends):
        test.restore(directory)
        test.restored.start(RESTORED)
        replay(test, directory, end[0], limit)
        found = checksums(test.restored)
        if found != state:
            raise AssertionError(f"{limit}: {sorted(set(found) ^ set(state))}")
    test.forget(directory)


def replay(test, directory, last, limit):
    """The binary logs from the position of a backup to a limit in the last, as docs/backup.md says."""
    with open(os.path.join(directory, "backup.json"), encoding="utf-8") as text:
        position = json.load(text)["position"]
    with open(os.path.join(test.server.data, "binlog.index"), encoding="utf-8") as index:
        logs = [os.path.join(test.server.data, os.path.basename(line.strip())) for line in index]
    names = [os.path.basename(log) for log in logs]
    logs = logs[names.index(position["binlog_file"]):names.index(last) + 1]
    with subprocess.Popen(["mariadb-binlog", "--no-defaults", f"--start-position={position['binlog_position']}", limit, *logs],
                          stdout=subprocess.PIPE) as statements:
        run(["mariadb", "--no-defaults", f"--socket={test.restored.socket}", "--user=root"], stdin=statements.stdout)
    assert statements.returncode == 0, f"mariadb-binlog ended with {statements.returncode}"


def until(test):
    """`teak restore --until` makes what the server was at a position, with a transaction, and before a time, of several binary logs; and does nothing when
    one of them is missing or cut, or the point is in none of them."""
    test.start()
    # The statements of a binary log go through one connection, which cannot prepare one transaction and begin another.
    workload = Workload(test.server, test.random.random(), pledged=())
    workload.wait_for_commits()
    directory = test.backup()
    connection = test.server.connect(autocommit=True)
    # Of the server's own engine; and of statements in the log.
    rows(connection, "CREATE TABLE later (id INT AUTO_INCREMENT PRIMARY KEY, body TEXT)")
    points = []
    for kind in ("position", "gtid", "time"):
        for _ in range(2):
            workload.wait_for_commits(5)
            rows(connection, "FLUSH BINARY LOGS")
        if kind == "time":
            # What waits for the lock has the time at which it began, and would count as from before.
            workload.stop()
        rows(connection, f"INSERT INTO later (body) VALUES ('{kind}')")
        rows(connection, "FLUSH TABLES WITH READ LOCK")
        (file, position, *_), = rows(connection, "SHOW MASTER STATUS")
        gtid = rows(connection, "SELECT @@global.gtid_binlog_pos")[0][0]
        second = int(time.time()) + 1
        time.sleep(second + 0.01 - time.time())
        points.append(({"position": f"{file}:{position}", "gtid": gtid, "time": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))}[kind],
                       checksums(test.server), gtid))
        time.sleep(1)
        rows(connection, "UNLOCK TABLES")
    rows(connection, "DROP TABLE journal_Teak, appended")
    connection.close()
    archive = os.path.join(test.directory, "archive")
    os.makedirs(archive)
    logs = sorted(name for name in os.listdir(test.server.data) if name.startswith("binlog.0"))
    for name in logs:
        shutil.copy(os.path.join(test.server.data, name), archive)
    command = [test.teak, "restore", directory, f"--datadir={test.restored.data}", f"--binlogs={archive}", f"--server-option=--plugin-dir={test.server.plugin_dir}"]
    for point, state, gtid in points:
        test.restored.kill()
        shutil.rmtree(test.restored.directory, ignore_errors=True)
        os.makedirs(os.path.join(test.restored.directory, "tmp"))
        told = run([*command, f"--until={point}"])
        assert gtid in told, told
        test.restored.start(RESTORED)
        found = checksums(test.restored)
        assert found == state, f"{point}: {sorted(set(found) ^ set(state))}"
        assert test.restored.query("SELECT DISTINCT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = 'later'") == (("Teak",),)
    test.restored.kill()
    shutil.rmtree(test.restored.directory)
    middle, (file, _, at) = os.path.join(archive, logs[-3]), points[0][0].partition(":")
    now = points[-1][2]
    for point, words in ((f"{file}:{int(at) - 1}", ("within a transaction",)), ("3-1-1", ("earlier one",)), ("2020-01-01 00:00:00", ("earlier one",)),
                         (f"{logs[0]}:4", ("earlier one",)), ("3-1-4000000000", ("in none of", logs[-1])), ("other.000001:4", ("none of the logs",))):
        refused([*command, f"--until={point}"], *words)
    with open(middle, "rb") as log:
        content = log.read()
    for damage, words in ((lambda: os.remove(middle), (logs[-3], "not there")), (lambda: os.truncate(middle, len(content) * 2 // 3), (logs[-2], "is missing"))):
        damage()
        for point in (now, points[-1][0]):
            refused([*command, f"--until={point}"], *words)
        with open(middle, "wb") as log:
            log.write(content)
    assert not os.path.exists(test.restored.data), "something was restored"
    os.makedirs(test.restored.directory)
    refused([*command, f"--until={now}", "--mariadb=/bin/false"], "remove it", "/bin/false")
    test.forget(directory)


def replica(test):
    """A server that starts from a backup made under load follows the one that it was made of, with the statements that the restore prints."""
    test.start()
    connection = test.server.connect(autocommit=True)
    let_replicate(connection)
    connection.close()
    workload = Workload(test.server, test.random.random())
    for _ in range(2):
        workload.wait_for_commits()
        directory = test.backup()
        told = test.restore(directory)
        test.restored.start([*RESTORED, "--gtid-pos-auto-engines=teak", "--slave-parallel-threads=4"])
        connection = test.restored.connect(autocommit=True)
        carry_out_told(connection, told, "to make a replica of it")
        workload.wait_for_commits()
        # The clients stand still; what they have committed is to come to the replica.
        lock = test.server.connect(autocommit=True)
        rows(lock, "FLUSH TABLES WITH READ LOCK")
        position = test.server.query("SELECT @@global.gtid_binlog_pos")[0][0]
        wait_until(connection, lambda: rows(connection, "SELECT @@global.gtid_slave_pos")[0][0] == position, f"the replica at {position}")
        expected, found = checksums(test.server), checksums(test.restored)
        different = differences(test.server, test.restored, {table for table, _ in set(found) ^ set(expected)})
        rows(lock, "UNLOCK TABLES")
        lock.close()
        if different:
            raise AssertionError(f"the replica differs: {different}")
        rows(connection, "STOP SLAVE")
        connection.close()
        test.forget(directory)
    workload.stop()


def carry_out_told(connection, told, heading):
    """The statements that a restore tells below a heading, with a user and a host that are there."""
    lines = told[told.index(heading):].splitlines()[1:]
    for line in lines:
        if not line.startswith("  "):
            break
        statement = line.strip().replace("MASTER_USER = '...', MASTER_PASSWORD = '...'", "MASTER_USER = 'repl', MASTER_PASSWORD = 'repl'")
        host = statement.partition("MASTER_HOST = '")[2].partition("'")[0]
        rows(connection, statement.replace(f"MASTER_HOST = '{host}'", "MASTER_HOST = '127.0.0.1'"))


def successor(test):
    """A server that takes the place of the one that was backed up goes on with its GTIDs, and gives none of them out again."""
    test.start()
    told = test.restore(test.backup())
    test.restored.start(RESTORED)
    last = int(test.server.query("SELECT @@global.gtid_binlog_pos")[0][0].split("-")[2])
    connection = test.restored.connect(autocommit=True)
    carry_out_told(connection, told, "takes the place")
    rows(connection, "INSERT INTO one VALUES (7)")
    found = rows(connection, "SELECT @@global.gtid_binlog_pos")[0][0]
    connection.close()
    assert found == f"3-2-{last + 1}", f"{found} after {last}"


def of_a_replica(test):
    """A backup of a replica, with no binary log of its own, makes another replica of the same primary."""
    test.start()
    connection = test.server.connect(autocommit=True)
    let_replicate(connection)
    connection.close()
    connection = test.server.connect(autocommit=True)
    told = test.restore(test.backup())
    options = [option for option in RESTORED if "binlog" not in option]
    test.restored.start(options)
    replica_connection = test.restored.connect(autocommit=True)
    carry_out_told(replica_connection, told, "to make a replica of it")
    rows(connection, "INSERT INTO one VALUES (8)")
    wait_until(replica_connection, lambda: rows(replica_connection, "SELECT COUNT(*) FROM one")[0][0] == 2, "the row in the replica")
    directory = test.new_dir()
    run([test.teak, "backup", "--no-defaults", "--quiet", f"--socket={test.restored.socket}", "--user=root", directory])
    replica_connection.close()
    test.restored.stop()
    rows(connection, "INSERT INTO one VALUES (9)")
    told = test.restore(directory)
    test.restored.start([*options, "--server-id=3"])
    replica_connection = test.restored.connect(autocommit=True)
    carry_out_told(replica_connection, told, "to replicate from its primary")
    wait_until(replica_connection, lambda: rows(replica_connection, "SELECT COUNT(*) FROM one")[0][0] == 3, "the later row in the new replica")
    replica_connection.close()
    connection.close()
    assert checksums(test.restored) == checksums(test.server)


TESTS = [point_in_time, until, replica, successor, of_a_replica]


if __name__ == "__main__":
    main(__doc__, TESTS, Test, rounds=10)
